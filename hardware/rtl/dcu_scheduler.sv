// Event scheduler of a directory controller unit (DCU): picks the next event from the sources that offer one.
//
// Sources with high priority (memory completions and responses) come before all others; within each class the choice is
// round-robin. An event that lacked a resource is blocked until a resource changes.

`include "assertions.svh"

module dcu_scheduler #(
  parameter type                trigger_t = logic,  // an event with its context
  parameter int unsigned        Sources   = 8,
  parameter int unsigned        Completions    = 2,      // the first sources offer memory completions
  parameter logic [Sources-1:0] HighPriority     = '0,   // by source: its events must not stall
  parameter int unsigned        WayWidth  = 4
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // Events offered by the sources; way of the recall.
  input  logic     [Sources-1:0]  trigger_valid_i,
  input  trigger_t [Sources-1:0]  trigger_i,
  input  logic     [WayWidth-1:0] recall_way_i,

  // Picked event. With `load_i`, it becomes the current event in the next cycle.
  input  logic                    load_i,
  output logic                    valid_o,
  output logic                    is_completion_o,
  output trigger_t                picked_o,

  // Source of the current event, one-hot.
  output logic     [Sources-1:0]  source_o,
  input  logic                    block_i,    // the current event lacks a resource
  input  logic                    unblock_i   // a resource has changed; effective one cycle later
);
  logic [Sources-1:0] high_valid, low_valid, high_pick, low_pick, pick;
  logic [Sources-1:0] blocked_d, blocked_q;  // the event of the source lacked a resource
  logic               unblock_q;
  trigger_t           high_picked, low_picked;
  logic [home_pkg::bits(Sources)-1:0] unused_high, unused_low;

  rr_pick #(
    .Size     (Sources),
    .GroupSize(Sources)
  ) u_pick_high (
    .clk_i,
    .rst_ni,
    .req_i   (high_valid),
    .accept_i(load_i),
    .pick_o  (high_pick),
    .index_o (unused_high)
  );

  rr_pick #(
    .Size     (Sources),
    .GroupSize(Sources)
  ) u_pick_low (
    .clk_i,
    .rst_ni,
    .req_i   (low_valid),
    .accept_i(load_i && high_valid == '0),
    .pick_o  (low_pick),
    .index_o (unused_low)
  );

  assign high_valid = trigger_valid_i & HighPriority & ~blocked_q;
  assign low_valid  = trigger_valid_i & ~HighPriority & ~blocked_q;
  assign pick       = high_valid != '0 ? high_pick : low_pick;

  assign valid_o         = high_valid != '0 || low_valid != '0;
  assign is_completion_o = high_pick[Completions-1:0] != '0;

  // The events of both classes are selected in parallel; the late signal `high_valid` then chooses between them.
  always_comb begin
    high_picked = '0;
    low_picked  = '0;
    for (int unsigned i = 0; i < Sources; i++) begin
      if (high_pick[i]) high_picked |= trigger_i[i];
      if (low_pick[i]) low_picked |= trigger_i[i];
    end
    picked_o = high_valid != '0 ? high_picked : low_picked;
    // A completion carries its way. All other events get the way of the recall; the look-up overwrites it unless the
    // event is the recall.
    picked_o.way = is_completion_o ? high_picked.way : recall_way_i;
  end

  always_comb begin
    blocked_d = blocked_q;
    if (block_i) blocked_d |= source_o;
    if (unblock_q) blocked_d = '0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      source_o  <= '0;
      blocked_q <= '0;
      unblock_q <= 1'b0;
    end else begin
      if (load_i) source_o <= pick;
      blocked_q <= blocked_d;
      unblock_q <= unblock_i;
    end
  end

  `ASSERT(source_one, $onehot0(source_o))
endmodule : dcu_scheduler
