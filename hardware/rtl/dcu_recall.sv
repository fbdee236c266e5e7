// Recall of a directory controller unit (DCU): recalls a line from the remote to free a way of a full directory set.
// The ways of the set are tried in turn.
//
// A remote cache with the same sets evicts a line itself when it requests another one, but its victim message may
// arrive later. The recall is therefore delayed, so that the remote loses no line without need.

module dcu_recall #(
  parameter type         trigger_t = logic,  // an event with its context
  parameter type         event_e   = logic,
  parameter type         state_e   = logic,
  parameter int unsigned Event     = 0,   // event number of the local operation that recalls a line
  parameter int unsigned LineWidth = 23,
  parameter int unsigned SetWidth  = 7,
  parameter int unsigned Ways      = 16,
  parameter int unsigned RecallDelayLog2  = 8,   // log2 of the delay of a recall, in cycles

  localparam int unsigned WayWidth = home_pkg::bits(Ways)
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Recall event, and its state.
  output logic                trigger_valid_o,
  output trigger_t            trigger_o,
  output logic [WayWidth-1:0] way_o,        // way that is tried
  output logic                active_o,     // a set needs a free way
  output logic                last_way_o,   // all other ways of the set were tried

  // Set of the current event, and its outcome.
  input  logic [SetWidth-1:0] set_i,
  input  logic                way_needed_i,        // the event stalls because its set is full
  input  logic                recall_executed_i,   // the recall is executed
  input  logic                way_freed_i,         // the event frees a way
  input  logic                lookup_empty_i,      // the way of the recall is empty already
  input  logic                skip_i               // the line in the way of the recall cannot be recalled now
);
  import home_pkg::*;

  logic                active_d;
  logic [SetWidth-1:0] set_d, set_q;
  logic [WayWidth-1:0] way_d, tries_d, tries_q;
  logic                same_set_q;   // the full set is that of the current event
  logic [RecallDelayLog2:0]   delay_q;

  assign trigger_valid_o = active_o && delay_q[RecallDelayLog2];
  assign trigger_o       = '{event_e'(Event), LineWidth'(set_q), 2'd0, '0, state_e'(0), way_o};
  assign last_way_o      = tries_q == WayWidth'(Ways - 1);

  always_comb begin
    active_d = active_o;
    set_d    = set_q;
    way_d    = way_o;
    tries_d  = tries_q;
    if (recall_executed_i || lookup_empty_i || way_freed_i && same_set_q) active_d = 1'b0;
    if (skip_i) begin
      way_d   = WayWidth'(incremented(8'(way_o)));
      tries_d = WayWidth'(incremented(8'(tries_q)));
    end
    if (way_needed_i && !active_o) begin
      active_d = 1'b1;
      set_d    = set_i;
      tries_d  = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_o <= 1'b0;
      way_o    <= '0;
      tries_q  <= '0;
    end else begin
      active_o <= active_d;
      way_o    <= way_d;
      tries_q  <= tries_d;
    end
  end

  always_ff @(posedge clk_i) begin
    set_q      <= set_d;
    same_set_q <= set_q == set_i;
    delay_q    <= !active_o ? '0 : delay_q[RecallDelayLog2] ? delay_q : delay_q + 1'b1;
  end
endmodule : dcu_recall
