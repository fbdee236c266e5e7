// What the parts of a home share: headers, local operations, and what a generated package says of its protocol.
//
// Nothing here is specific to a protocol. The layout of headers is this project's own.

package home_pkg;
  // What becomes of an event.
  typedef enum logic [1:0] {
    Never  = 2'd0,  // it cannot happen
    Leave  = 2'd1,  // it waits until its line has moved on
    Refuse = 2'd2,  // it is taken away and reported as refused
    Take   = 2'd3
  } effect_e;

  // The memory operation that a row of the ROM begins.
  typedef enum logic [1:0] {
    MemoryNone  = 2'd0,
    MemoryRead  = 2'd1,
    MemoryWrite = 2'd2   // the bytes that came with the event
  } memory_e;

  // The most that a protocol may have.
  localparam int unsigned MaxEvents   = 64;
  localparam int unsigned MaxSends    = 16;
  localparam int unsigned MaxCircuits = 4;
  localparam int unsigned MaxLocals   = 8;

  // What the hardware has to know of a protocol besides its ROM.
  typedef struct packed {
    logic [15:0]               line_bytes;
    // Numbers of events: messages to the home come first, then the local operations.
    logic [7:0]                messages;
    logic [7:0]                locals;
    logic [7:0]                unlock;
    logic [7:0]                memory_data;
    logic [7:0]                memory_done;
    logic [7:0]                evict;         // the local operation that frees a way of the directory
    logic [7:0]                rx_circuits;   // toward the home
    logic [7:0]                tx_circuits;   // toward the remote
    logic [MaxCircuits-1:0]    rx_payload;    // some of the circuit's messages carry bytes
    logic [MaxCircuits-1:0]    rx_waits;      // its messages may have to wait
    logic [MaxCircuits-1:0]    tx_payload;
    logic [MaxLocals-1:0]      locking;       // by local operation: it takes a lock
    logic [MaxEvents-1:0]      payload;       // by event: it carries bytes
    logic [MaxEvents-1:0]      reads;         // by event: the request asks for the right to read, or more
    logic [MaxEvents-1:0]      writes;        // by event: it asks for the right to write
    logic [MaxCircuits-1:0][MaxEvents-1:0] circuit;       // by circuit and event: it comes by it
    logic [MaxSends-1:0]                   send_payload;  // by message to the remote: it carries the line
    logic [MaxSends-1:0]                   grants;        // by message to the remote: it answers requests
    logic [MaxSends-1:0]                   forwards;      // it asks the remote for something
    logic [MaxCircuits-1:0][MaxSends-1:0]  send_circuit;  // by circuit and message to the remote: it leaves by it
  } protocol_t;

  localparam int unsigned LineWidth = 36;  // of a line's number: its address divided by the line's size

  // The first beat of every message.
  typedef struct packed {
    logic [15:0]          mask;     // of a partial store: which sixteenths of the line are written
    logic [7:0]           message;  // its number: that of the event, or of the message to the remote
    logic [3:0]           remote;   // the one that sent it or that it goes to
    logic [LineWidth-1:0] line;
  } header_t;

  // A request of the device behind the home.
  typedef struct packed {
    logic [2:0]           operation;  // its number among the local operations
    logic [LineWidth-1:0] line;
  } local_req_t;

  // The answer to a local operation or to an unlock.
  typedef struct packed {
    logic                 unlock;     // it answers an unlock
    logic                 refused;
    logic [2:0]           operation;
    logic [LineWidth-1:0] line;
  } local_rsp_t;

  // What a unit has just done, for observers.
  typedef struct packed {
    logic                 held;       // the row was looked up, and something it needs was lacking: nothing was done
    logic                 evict;      // the directory makes room by itself
    logic [5:0]           happened;   // number of the event
    logic [7:0]           state;      // before it
    effect_e              effect;
    logic [7:0]           next;
    logic [LineWidth-1:0] line;
  } step_t;

  // What a remote may do with a line.
  typedef enum logic [1:0] {
    RightNone  = 2'd0,
    RightRead  = 2'd1,
    RightWrite = 2'd2   // and read, alone
  } right_e;

  // The most that the remote may do with a line, by all that the home knows, has changed.
  typedef struct packed {
    right_e               from;
    right_e               to;
    logic [LineWidth-1:0] line;
  } change_t;

  // What is wrong with something that was refused at a port, and never reached a unit.
  typedef enum logic [3:0] {
    WrongNone      = 4'd0,
    WrongNumber    = 4'd1,  // of a message: it does not come by this circuit
    WrongRemote    = 4'd2,  // of a message
    WrongLine      = 4'd3,  // of a message: it is not the slice's
    WrongOperation = 4'd4,  // there is no such local operation
    WrongLocal     = 4'd5,  // the line of a local operation
    WrongUnlock    = 4'd6,  // the line of an unlock
    WrongLength    = 4'd7,  // of a message: it has more or fewer beats than its number says
    WrongRead      = 4'd8,  // a beat of memory for a read that is not in flight
    WrongBurst     = 4'd9,  // a read that memory answers with more or fewer beats than a line has
    WrongWrite     = 4'd10  // an answer of memory to a write that is not in flight, or has not all left
  } wrong_e;

  // The first thing that was refused, as a register tells it.
  typedef struct packed {
    logic [3:0]           zero;
    wrong_e               why;
    logic [5:0]           none;
    logic [1:0]           circuit;  // of a message
    logic [7:0]           number;   // of the message or the operation
    logic [3:0]           remote;
    logic [LineWidth-1:0] line;     // of an answer of memory, its AXI ID
  } wrong_t;

  // The first event for which the ROM had no row, as a register tells it.
  typedef struct packed {
    logic                 valid;
    logic [2:0]           zero;
    logic [7:0]           unit;
    logic [7:0]           state;
    logic [7:0]           happened;
    logic [LineWidth-1:0] line;
  } impossible_t;

  // Why a unit did nothing with an event that it looked up. The order is that of the counters.
  typedef enum logic [2:0] {
    StallNone  = 3'd0,  // it did something
    StallLine  = 3'd1,  // the line has something in hand
    StallRoom  = 3'd2,  // the set of the directory is full
    StallRead  = 3'd3,  // all reads are in flight
    StallWrite = 3'd4,  // all writes are, or a response goes first
    StallLocal = 3'd5,  // as many local operations are in hand, or locks, as may be
    StallSend  = 3'd6   // a message that left at once is still there
  } stall_e;

  // Bits that tell this many values apart; at least one.
  function automatic int unsigned bits(input int unsigned values);
    return values > 1 ? unsigned'($clog2(values)) : 1;
  endfunction

  // The number that follows. Up to four or five bits, a carry chain would take more LUTs than it saves.
  function automatic logic [7:0] incremented(input logic [7:0] value);
    logic carry;
    carry = 1'b1;
    for (int unsigned i = 0; i < 8; i++) begin
      incremented[i] = value[i] ^ carry;
      carry          = carry && value[i];
    end
  endfunction

  // The number of a line: its slice in the lowest bit, above it its unit, above that the line within the unit.
  function automatic logic [LineWidth-1:0] line_number(
    input logic [LineWidth-1:0] line, input logic [LineWidth-1:0] unit, input int unsigned units, input int unsigned slice);
    return (line << (1 + $clog2(units))) | (unit << 1) | LineWidth'(slice);
  endfunction
endpackage : home_pkg
