// Recall of a line by a unit's directory, to free a way of a full set. The ways of the set are tried in turn.
//
// A remote cache with the directory's sets evicts a line when it requests another; the eviction message may arrive later.
// So the directory delays the recall of a line that the remote may still use.

module dcu_recall #(
  parameter type         trigger_t = logic,  // an event with its context
  parameter type         event_e   = logic,
  parameter type         state_e   = logic,
  parameter int unsigned Event     = 0,      // number of the local operation that recalls
  parameter int unsigned LineWidth = 23,
  parameter int unsigned SetWidth  = 7,
  parameter int unsigned Ways      = 16,
  parameter int unsigned RecallDelayLog2  = 8,      // log2 of the delay in cycles

  localparam int unsigned WayWidth = home_pkg::bits(Ways)
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  output logic                ask_o,
  output trigger_t            offered_o,
  output logic [WayWidth-1:0] way_o,        // the way that is tried
  output logic                used_o,       // a set needs a way
  output logic                last_o,       // all other ways were tried

  // The current event, in this set.
  input  logic [SetWidth-1:0] set_i,
  input  logic                needs_i,      // it needs a way
  input  logic                recalled_i,   // it is the recall, and is executed
  input  logic                frees_i,      // it frees a way
  input  logic                vacated_i,    // it is the recall, and the way is free already
  input  logic                skips_i       // it is the recall, and the way cannot be freed now
);
  import home_pkg::*;

  logic                used_d;
  logic [SetWidth-1:0] set_d, set_q;
  logic [WayWidth-1:0] way_d, tries_d, tries_q;
  logic                same_q;      // the set is that of the current line
  logic [RecallDelayLog2:0]   delay_q;

  assign ask_o     = used_o && delay_q[RecallDelayLog2];
  assign offered_o = '{event_e'(Event), LineWidth'(set_q), 2'd0, '0, state_e'(0), way_o};
  assign last_o    = tries_q == WayWidth'(Ways - 1);

  always_comb begin
    used_d  = used_o;
    set_d   = set_q;
    way_d   = way_o;
    tries_d = tries_q;
    if (recalled_i || vacated_i || frees_i && same_q) used_d = 1'b0;
    if (skips_i) begin
      way_d   = WayWidth'(incremented(8'(way_o)));
      tries_d = WayWidth'(incremented(8'(tries_q)));
    end
    if (needs_i && !used_o) begin
      used_d  = 1'b1;
      set_d   = set_i;
      tries_d = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      used_o  <= 1'b0;
      way_o   <= '0;
      tries_q <= '0;
    end else begin
      used_o  <= used_d;
      way_o   <= way_d;
      tries_q <= tries_d;
    end
  end

  always_ff @(posedge clk_i) begin
    set_q   <= set_d;
    same_q  <= set_q == set_i;
    delay_q <= !used_o ? '0 : delay_q[RecallDelayLog2] ? delay_q : delay_q + 1'b1;
  end
endmodule : dcu_recall
