// Shared definitions of the home: headers, local operations, and the parameters of a generated protocol package.
//
// Nothing here is specific to a protocol. The layout of headers is this project's own.

package home_pkg;
  // Outcome of an event.
  typedef enum logic [1:0] {
    Never  = 2'd0,  // illegal
    Leave  = 2'd1,  // stalls until its line has changed state
    Refuse = 2'd2,  // consumed and reported as refused
    Take   = 2'd3
  } effect_e;

  // The memory operation that a row of the ROM begins.
  typedef enum logic [1:0] {
    MemoryNone  = 2'd0,
    MemoryRead  = 2'd1,
    MemoryWrite = 2'd2   // the payload of the event
  } memory_e;

  // Maximum sizes of a protocol.
  localparam int unsigned MaxEvents   = 64;
  localparam int unsigned MaxSends    = 16;
  localparam int unsigned MaxCircuits = 4;
  localparam int unsigned MaxLocals   = 8;

  // Protocol parameters that the hardware needs besides the ROM.
  typedef struct packed {
    logic [15:0]               line_bytes;
    // Numbers of events: messages to the home first, then the local operations.
    logic [7:0]                messages;
    logic [7:0]                locals;
    logic [7:0]                unlock;
    logic [7:0]                memory_data;
    logic [7:0]                memory_done;
    logic [7:0]                evict;         // the local operation that frees a way of the directory
    logic [7:0]                rx_circuits;   // number of circuits to the home
    logic [7:0]                tx_circuits;   // number of circuits to the remote
    logic [MaxCircuits-1:0]    rx_payload;    // some of the circuit's messages carry payload
    logic [MaxCircuits-1:0]    rx_waits;      // its messages may wait
    logic [MaxCircuits-1:0]    tx_payload;
    logic [MaxLocals-1:0]      locking;       // by local operation: takes a lock
    logic [MaxEvents-1:0]      payload;       // by event: carries payload
    logic [MaxEvents-1:0]      reads;         // by event: requests read permission, or more
    logic [MaxEvents-1:0]      writes;        // by event: requests write permission
    logic [MaxCircuits-1:0][MaxEvents-1:0] circuit;       // by circuit and event: arrives by it
    logic [MaxSends-1:0]                   send_payload;  // by message to the remote: carries the line
    logic [MaxSends-1:0]                   grants;        // by message to the remote: answers requests
    logic [MaxSends-1:0]                   forwards;      // by message to the remote: is a forward
    logic [MaxCircuits-1:0][MaxSends-1:0]  send_circuit;  // by circuit and message to the remote: leaves by it
  } protocol_t;

  localparam int unsigned LineWidth = 36;  // width of a line number: address divided by line size

  // The first beat of every message.
  typedef struct packed {
    logic [15:0]          mask;     // of a partial store: written sixteenths of the line
    logic [7:0]           message;  // number of the event, or of the message to the remote
    logic [3:0]           remote;   // sender or receiver
    logic [LineWidth-1:0] line;
  } header_t;

  // A local operation of the device behind the home.
  typedef struct packed {
    logic [2:0]           operation;  // number among the local operations
    logic [LineWidth-1:0] line;
  } local_req_t;

  // The answer to a local operation or to an unlock.
  typedef struct packed {
    logic                 unlock;     // it answers an unlock
    logic                 refused;
    logic [2:0]           operation;
    logic [LineWidth-1:0] line;
  } local_rsp_t;

  // Step of a unit, for observers.
  typedef struct packed {
    logic                 blocked;    // the row was looked up, but a resource was missing: no effect
    logic                 evict;      // the directory frees a way by itself
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

  // Change of the highest permission that the remote may have for a line, as far as the home knows.
  typedef struct packed {
    permission_e          from;
    permission_e          to;
    logic [LineWidth-1:0] line;
  } change_t;

  // Reason for which a port rejected its input before it reached a unit.
  typedef enum logic [3:0] {
    RejectNone       = 4'd0,
    RejectMessage    = 4'd1,  // of a message: not one of this circuit
    RejectRemote     = 4'd2,  // of a message
    RejectLine       = 4'd3,  // of a message: not one of this slice
    RejectOperation  = 4'd4,  // undefined local operation
    RejectLocalLine  = 4'd5,  // the line of a local operation
    RejectUnlockLine = 4'd6,  // the line of an unlock
    RejectLength     = 4'd7,  // of a message: its number of beats differs from that of its number
    RejectRead       = 4'd8,  // a beat from memory for a read that is not in flight
    RejectBurst      = 4'd9,  // a read with more or fewer beats from memory than a line has
    RejectWrite      = 4'd10  // an answer of memory to a write that is not in flight or not completely sent
  } reject_e;

  // The first rejected input, as the register shows it.
  typedef struct packed {
    logic [3:0]           zero;
    reject_e              reason;
    logic [5:0]           none;
    logic [1:0]           circuit;  // of a message
    logic [7:0]           number;   // number of the message or the operation
    logic [3:0]           remote;
    logic [LineWidth-1:0] line;     // of an answer of memory: its AXI ID
  } reject_t;

  // The first event without a ROM row, as the register shows it.
  typedef struct packed {
    logic                 valid;
    logic [2:0]           zero;
    logic [7:0]           unit;
    logic [7:0]           state;
    logic [7:0]           event_id;
    logic [LineWidth-1:0] line;
  } unexpected_t;

  // Reason for which a unit stalled an event after look-up. The order is that of the counters.
  typedef enum logic [2:0] {
    StallNone  = 3'd0,  // no stall
    StallLine  = 3'd1,  // the line has an operation in progress
    StallRoom  = 3'd2,  // the set of the directory is full
    StallRead  = 3'd3,  // all reads are in flight
    StallWrite = 3'd4,  // all writes are in flight, or a response has priority
    StallLocal = 3'd5,  // all entries of local operations, or all locks, are in use
    StallSend  = 3'd6   // an earlier message without a memory operation is still queued
  } stall_e;

  // Bits that encode this many values; at least one.
  function automatic int unsigned bits(input int unsigned values);
    return values > 1 ? unsigned'($clog2(values)) : 1;
  endfunction

  // The next number. Up to four or five bits, a carry chain would take more LUTs than it saves.
  function automatic logic [7:0] incremented(input logic [7:0] value);
    logic carry;
    carry = 1'b1;
    for (int unsigned i = 0; i < 8; i++) begin
      incremented[i] = value[i] ^ carry;
      carry          = carry && value[i];
    end
  endfunction

  // A line's number has, from bit 0, the slice's number, the unit's number, and the line within the unit.
  function automatic logic [LineWidth-1:0] line_number(
    input logic [LineWidth-1:0] line, input logic [LineWidth-1:0] unit, input int unsigned units, input int unsigned slice);
    return (line << (1 + $clog2(units))) | (unit << 1) | LineWidth'(slice);
  endfunction
endpackage : home_pkg
