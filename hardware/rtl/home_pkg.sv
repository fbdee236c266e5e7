// Shared definitions of the home: headers, local operations, and the parameters of a generated protocol package.
//
// Nothing here is specific to a protocol. The layout of headers is this project's own.

package home_pkg;
  // Effect of an event on the unit, in a row of the ROM.
  typedef enum logic [1:0] {
    Never  = 2'd0,  // no row: the event is unexpected
    Stall  = 2'd1,  // the event stalls until its line changes state
    Refuse = 2'd2,  // the device's request is refused
    Take   = 2'd3   // the row is executed
  } effect_e;

  // Memory operation that a row of the ROM starts.
  typedef enum logic [1:0] {
    MemoryNone  = 2'd0,
    MemoryRead  = 2'd1,
    MemoryWrite = 2'd2   // writes the payload of the event
  } memory_e;

  // Maximum sizes of a protocol.
  localparam int unsigned MaxEvents   = 64;
  localparam int unsigned MaxSends    = 16;
  localparam int unsigned MaxCircuits = 4;
  localparam int unsigned MaxLocals   = 8;

  // Protocol parameters that the hardware needs besides the ROM.
  typedef struct packed {
    logic [15:0]               line_bytes;
    // Event numbers: messages to the home first, then local operations, then the next three events.
    logic [7:0]                messages;      // number of messages to the home
    logic [7:0]                locals;        // number of local operations
    logic [7:0]                unlock;        // event: the device unlocks a line
    logic [7:0]                memory_data;   // event: memory has read a line
    logic [7:0]                memory_done;   // event: memory has written a line
    logic [7:0]                evict;         // event: local operation that frees a way of the directory
    logic [7:0]                rx_circuits;   // number of circuits to the home
    logic [7:0]                tx_circuits;   // number of circuits to the remote
    logic [MaxCircuits-1:0]    rx_payload;    // by circuit to the home: some of its messages carry payload
    logic [MaxCircuits-1:0]    rx_waits;      // by circuit to the home: its messages may be deferred
    logic [MaxCircuits-1:0]    tx_payload;    // by circuit to the remote: some of its messages carry payload
    logic [MaxLocals-1:0]      locking;       // by local operation: takes a lock
    logic [MaxEvents-1:0]      payload;       // by event: carries payload
    logic [MaxEvents-1:0]      reads;         // by event: requests read permission, or more
    logic [MaxEvents-1:0]      writes;        // by event: requests write permission
    logic [MaxCircuits-1:0][MaxEvents-1:0] circuit;       // by circuit and message to the home: uses the circuit
    logic [MaxSends-1:0]                   send_payload;  // by message to the remote: carries the line
    logic [MaxSends-1:0]                   grants;        // by message to the remote: responds to a request
    logic [MaxSends-1:0]                   forwards;      // by message to the remote: is a forward
    logic [MaxCircuits-1:0][MaxSends-1:0]  send_circuit;  // by circuit and message to the remote: uses the circuit
  } protocol_t;

  localparam int unsigned LineWidth = 36;  // width of a line number (address / line size)

  // Header, valid with the first beat of every message. Names of circuits and numbers of messages are in the printed
  // package.
  typedef struct packed {
    logic [15:0]          mask;     // byte mask of a partial store, one bit per sixteenth of the line
    logic [7:0]           message;  // number of the event, or of the message to the remote
    logic [3:0]           remote;   // sender or receiver
    logic [LineWidth-1:0] line;
  } header_t;

  // A local operation of the device behind the home: it takes or downgrades the remote's copy of a line.
  typedef struct packed {
    logic [2:0]           operation;  // number among the local operations
    logic [LineWidth-1:0] line;
  } local_req_t;

  // Response to a local operation or to an unlock.
  typedef struct packed {
    logic                 unlock;     // response to an unlock
    logic                 refused;
    logic [2:0]           operation;
    logic [LineWidth-1:0] line;
  } local_rsp_t;

  // One step of a unit, for lockstep and proofs.
  typedef struct packed {
    logic                 blocked;    // no effect: a resource was missing after the look-up
    logic                 evict;      // recall issued by the directory itself
    logic [5:0]           event_id;   // number of the event
    logic [7:0]           state;      // state before the step
    effect_e              effect;
    logic [7:0]           next;
    logic [LineWidth-1:0] line;
  } step_t;

  // Permission of a remote for a line.
  typedef enum logic [1:0] {
    PermissionNone  = 2'd0,
    PermissionRead  = 2'd1,
    PermissionWrite = 2'd2   // write and read, exclusive
  } permission_e;

  // Change of the remote's maximum permission for a line, as tracked by the home.
  typedef struct packed {
    permission_e          from;
    permission_e          to;
    logic [LineWidth-1:0] line;
  } change_t;

  // Reason for which a port rejected its input before it reached a unit.
  typedef enum logic [3:0] {
    RejectNone       = 4'd0,
    RejectMessage    = 4'd1,  // message number of another circuit
    RejectRemote     = 4'd2,  // message of a non-existent remote
    RejectLine       = 4'd3,  // message for a line of another slice
    RejectOperation  = 4'd4,  // undefined local operation
    RejectLocalLine  = 4'd5,  // local operation on a line of another slice
    RejectUnlockLine = 4'd6,  // unlock of a line of another slice
    RejectLength     = 4'd7,  // message with an illegal number of beats
    RejectRead       = 4'd8,  // read beat of memory without an outstanding read
    RejectBurst      = 4'd9,  // read response of memory with an illegal number of beats
    RejectWrite      = 4'd10  // write response of memory without a complete outstanding write
  } reject_e;

  // Layout of register FirstWrong: the first rejected input. `zero` and `none` are 0.
  typedef struct packed {
    logic [3:0]           zero;
    reject_e              reason;
    logic [5:0]           none;
    logic [1:0]           circuit;  // of the message
    logic [7:0]           number;   // of the message or of the local operation
    logic [3:0]           remote;
    logic [LineWidth-1:0] line;     // line number, or AXI ID of a memory response
  } reject_t;

  // Layout of register FirstImpossible: the first event without a ROM row.
  typedef struct packed {
    logic                 valid;
    logic [2:0]           zero;
    logic [7:0]           unit;
    logic [7:0]           state;
    logic [7:0]           event_id;
    logic [LineWidth-1:0] line;
  } unexpected_t;

  // Reason for which a unit stalled an event after look-up, in the order of the counters.
  typedef enum logic [2:0] {
    StallNone  = 3'd0,  // no stall
    StallLine  = 3'd1,  // the line has an operation in progress
    StallRoom  = 3'd2,  // the set of the directory is full
    StallRead  = 3'd3,  // all reads are in flight
    StallWrite = 3'd4,  // all writes are in flight, or reserved for a response
    StallLocal = 3'd5,  // all entries for local operations, or all locks, are in use
    StallSend  = 3'd6   // an earlier message without a memory operation is still queued
  } stall_e;

  // Returns the number of bits that encode `values` values; at least one.
  function automatic int unsigned bits(input int unsigned values);
    return values > 1 ? unsigned'($clog2(values)) : 1;
  endfunction

  // Returns `value` + 1. For up to five bits, this ripple of LUTs is smaller than a carry chain.
  function automatic logic [7:0] incremented(input logic [7:0] value);
    logic carry;
    carry = 1'b1;
    for (int unsigned i = 0; i < 8; i++) begin
      incremented[i] = value[i] ^ carry;
      carry          = carry && value[i];
    end
  endfunction

  // Returns a line number. Its fields, from bit 0, are the slice, the unit, and the line index within the unit.
  function automatic logic [LineWidth-1:0] line_number(
    input logic [LineWidth-1:0] line, input logic [LineWidth-1:0] unit, input int unsigned units, input int unsigned slice);
    return (line << (1 + $clog2(units))) | (unit << 1) | LineWidth'(slice);
  endfunction
endpackage : home_pkg
