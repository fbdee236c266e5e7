// Memory accesses of a directory controller unit (DCU): either its reads or its writes. Each access in flight has an
// entry, and requests to memory are queued.
//
// The completion of an access is an event of the unit. It frees the entry, or, if it sends a grant, the departure of
// the grant does. The request queue has room for all entries, so starting an access never stalls.

`include "assertions.svh"

module dcu_accesses #(
  parameter type         trigger_t = logic,  // an event with its context
  parameter type         event_e   = logic,
  parameter type         state_e   = logic,
  parameter type         request_t = logic,  // memory request, besides line and entry
  parameter int unsigned Event     = 0,      // number of the completion event
  parameter int unsigned Size      = 2,      // entries
  parameter int unsigned LineWidth = 23,
  parameter int unsigned SetWidth  = 7,
  parameter int unsigned WayWidth  = 4,

  localparam int unsigned EntryWidth = home_pkg::bits(Size)
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  // Completions of memory, offered as events, and the outcome of the current event.
  input  logic     [Size-1:0]       done_i,   // by entry: memory has completed the access
  output logic     [Size-1:0]       trigger_valid_o,
  output trigger_t [Size-1:0]       trigger_o,
  input  logic     [Size-1:0]       source_i,       // by entry: the current event is its completion
  input  logic                      retire_i,       // the current event ends
  input  logic                      grant_sent_i,   // it sends a grant, which keeps the entry until it has been sent
  input  logic     [Size-1:0]       free_i,         // by entry: its grant has been sent, or the access was lost

  // Line of the current event, stable for at least one cycle before its row is executed, and effect of the row.
  input  logic     [LineWidth-1:0]  line_i,
  input  logic     [WayWidth-1:0]   way_i,
  input  logic                      hit_i,       // the directory holds the line in this way
  input  logic                      execute_i,   // the row is executed: the line enters state `next_i`
  input  state_e                    next_i,
  input  logic                      start_i,   // the row starts an access
  input  request_t                  request_i,
  output logic                      full_o,   // no entry is free; one cycle late

  // Memory requests.
  output logic                      request_valid_o,
  input  logic                      request_ready_i,
  output logic     [LineWidth-1:0]  request_line_o,
  output logic     [EntryWidth-1:0] request_entry_o,
  output request_t                  request_o,

  output logic                      idle_o
);
  // An access in flight. `state` is a copy of the state in the directory, so that the completion needs no look-up.
  typedef struct packed {
    logic                 done;  // memory has completed the access; the completion event is pending
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
  logic    [Size-1:0]       used_d, used_q, same_line_q;  // in use; access to the current line
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
    .Depth    (2 ** $clog2(Size)),
    .NeverFull(1'b1),
    .data_t   (queued_t)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .wr_valid_i(start_i),
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
      trigger_valid_o[i] = used_q[i] && access_q[i].done;
      trigger_o[i]       = '{event_e'(Event), access_q[i].line, 2'd0, '0, access_q[i].state, access_q[i].way};
    end
  end

  always_comb begin
    access_d = access_q;
    used_d   = used_q & ~free_i;
    for (int unsigned i = 0; i < Size; i++) begin
      access_d[i].done |= done_i[i];
      if (source_i[i] && retire_i) begin
        access_d[i].done = 1'b0;
        if (!grant_sent_i) used_d[i] = 1'b0;
      end
    end
    if (start_i) begin
      used_d[entry]   = 1'b1;
      access_d[entry] = '{1'b0, line_i, way_i, next_i};
    end
    for (int unsigned i = 0; i < Size; i++) begin
      if (execute_i && same_line_q[i]) access_d[i].state = next_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) used_q <= '0;
    else         used_q <= used_d;
  end

  // A line with an access in flight is not in the initial state, so the directory holds it; set and way identify it.
  always_ff @(posedge clk_i) begin
    access_q <= access_d;
    for (int unsigned i = 0; i < Size; i++) begin
      same_line_q[i] <= used_q[i] && hit_i && access_q[i].line[SetWidth-1:0] == line_i[SetWidth-1:0] && access_q[i].way == way_i;
    end
  end

  `ASSERT(queue_has_room, !start_i || wr_ready)
endmodule : dcu_accesses
