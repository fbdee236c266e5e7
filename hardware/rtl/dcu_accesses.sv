// A unit's reads of memory in flight, or its writes: the queue of requests to memory, and an entry for each access.
//
// The completion of an access is an event. The entry is freed later if a message to the remote follows.
// The queue has room for all entries, so a write never stalls.

`include "assertions.svh"

module dcu_accesses #(
  parameter type         trigger_t = logic,  // an event with its context
  parameter type         event_e   = logic,
  parameter type         state_e   = logic,
  parameter type         request_t = logic,  // a request to memory, besides its line and its entry
  parameter int unsigned Event     = 0,      // number of the event that is a completion
  parameter int unsigned Size      = 2,
  parameter int unsigned LineWidth = 23,
  parameter int unsigned SetWidth  = 7,
  parameter int unsigned WayWidth  = 4,

  localparam int unsigned EntryWidth = home_pkg::bits(Size)
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  // Completions.
  input  logic     [Size-1:0]       done_i,           // memory has completed the access
  output logic     [Size-1:0]       ask_o,
  output trigger_t [Size-1:0]       offered_o,
  input  logic     [Size-1:0]       source_i,         // the current event, if it is a completion
  input  logic                      ends_i,           // it leaves its entry
  input  logic                      grants_i,         // so a message follows, which needs the entry until it has left
  input  logic     [Size-1:0]       free_i,

  // The current event. Its line is known for some cycles before its row is executed.
  input  logic     [LineWidth-1:0]  line_i,
  input  logic     [WayWidth-1:0]   way_i,
  input  logic                      hit_i,            // the directory holds the line in this way
  input  logic                      takes_i,          // the row is executed: the line gets a state
  input  state_e                    next_i,
  input  logic                      begins_i,         // the row begins an access
  input  request_t                  request_i,
  output logic                      full_o,           // no entry is free; a cycle late

  // Requests to memory.
  output logic                      request_valid_o,
  input  logic                      request_ready_i,
  output logic     [LineWidth-1:0]  request_line_o,
  output logic     [EntryWidth-1:0] request_entry_o,
  output request_t                  request_o,

  output logic                      idle_o
);
  // The line's state is that of the directory.
  typedef struct packed {
    logic                 done;  // memory has completed it, and the unit has not yet handled the completion
    logic [LineWidth-1:0] line;
    logic [WayWidth-1:0]  way;
    state_e               state;
  } access_t;

  typedef struct packed {
    logic [LineWidth-1:0]  line;
    logic [EntryWidth-1:0] entry;
    request_t              request;
  } queued_t;

  access_t [Size-1:0]       access_d, access_q;
  logic    [Size-1:0]       used_d, used_q, same_q;  // in use; of the current line
  logic    [EntryWidth-1:0] entry;
  logic                     wr_ready;
  queued_t                  queued;

  first_free #(
    .Size(Size)
  ) u_free (
    .clk_i,
    .used_i (used_q),
    .full_o,
    .entry_o(entry)
  );

  fifo #(
    .Depth (2 ** $clog2(Size)),
    .NeverFull  (1'b1),
    .data_t(queued_t)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .wr_valid_i(begins_i),
    .wr_ready_o(wr_ready),
    .wr_data_i ('{line_i, entry, request_i}),
    .rd_valid_o(request_valid_o),
    .rd_ready_i(request_ready_i),
    .rd_data_o (queued)
  );

  assign request_line_o  = queued.line;
  assign request_entry_o = queued.entry;
  assign request_o       = queued.request;
  assign idle_o          = used_q == '0 && !request_valid_o;

  always_comb begin
    for (int unsigned i = 0; i < Size; i++) begin
      ask_o[i]     = used_q[i] && access_q[i].done;
      offered_o[i] = '{event_e'(Event), access_q[i].line, 2'd0, '0, access_q[i].state, access_q[i].way};
    end
  end

  always_comb begin
    access_d = access_q;
    used_d   = used_q & ~free_i;
    for (int unsigned i = 0; i < Size; i++) begin
      access_d[i].done |= done_i[i];
      if (source_i[i] && ends_i) begin
        access_d[i].done = 1'b0;
        if (!grants_i) used_d[i] = 1'b0;
      end
    end
    if (begins_i) begin
      used_d[entry]   = 1'b1;
      access_d[entry] = '{1'b0, line_i, way_i, next_i};
    end
    for (int unsigned i = 0; i < Size; i++) begin
      if (takes_i && same_q[i]) access_d[i].state = next_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) used_q <= '0;
    else         used_q <= used_d;
  end

  // A line with an access in flight is not in the initial state, so the directory holds it, and its way and set identify it.
  always_ff @(posedge clk_i) begin
    access_q <= access_d;
    for (int unsigned i = 0; i < Size; i++) begin
      same_q[i] <= used_q[i] && hit_i && access_q[i].line[SetWidth-1:0] == line_i[SetWidth-1:0] && access_q[i].way == way_i;
    end
  end

  `ASSERT(queue_has_room, !begins_i || wr_ready)
endmodule : dcu_accesses
