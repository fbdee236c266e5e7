// Scheduler of a unit: chooses the next event among the sources that offer one.
//
// Early sources (responses and completions of memory) come before all others; within each class the choice is round-robin.
// An event that lacked a resource is blocked until a resource has changed.

`include "assertions.svh"

module dcu_scheduler #(
  parameter type                trigger_t = logic,  // an event with its context
  parameter int unsigned        Sources   = 8,
  parameter int unsigned        Memory    = 2,      // the first sources are completions of memory
  parameter logic [Sources-1:0] Early     = '0,     // by source: its events may not wait
  parameter int unsigned        WayWidth  = 4
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic     [Sources-1:0]  ask_i,
  input  trigger_t [Sources-1:0]  offered_i,
  input  logic     [WayWidth-1:0] recall_way_i,

  // The choice. It becomes the current event if the unit is idle.
  input  logic                    idle_i,
  output logic                    valid_o,
  output logic                    of_memory_o,
  output trigger_t                picked_o,

  // Source of the current event, one-hot.
  output logic     [Sources-1:0]  source_o,
  input  logic                    block_i,    // the current event lacks a resource
  input  logic                    unblock_i   // a resource that an event may lack has changed; effective a cycle later
);
  logic [Sources-1:0] ask_early, ask_late, pick_early, pick_late, pick;
  logic [Sources-1:0] blocked_d, blocked_q;  // tried, and lacked a resource
  logic               unblock_q;
  trigger_t           picked_early, picked_late;
  logic [home_pkg::bits(Sources)-1:0] unused_early, unused_late;

  rr_pick #(
    .Size   (Sources),
    .GroupSize(Sources)
  ) u_pick_early (
    .clk_i,
    .rst_ni,
    .req_i  (ask_early),
    .accept_i(idle_i),
    .pick_o (pick_early),
    .index_o(unused_early)
  );

  rr_pick #(
    .Size   (Sources),
    .GroupSize(Sources)
  ) u_pick_late (
    .clk_i,
    .rst_ni,
    .req_i  (ask_late),
    .accept_i(idle_i && ask_early == '0),
    .pick_o (pick_late),
    .index_o(unused_late)
  );

  assign ask_early = ask_i & Early & ~blocked_q;
  assign ask_late  = ask_i & ~Early & ~blocked_q;
  assign pick      = ask_early != '0 ? pick_early : pick_late;

  assign valid_o     = ask_early != '0 || ask_late != '0;
  assign of_memory_o = pick_early[Memory-1:0] != '0;

  // Both are precomputed; a later signal selects between them.
  always_comb begin
    picked_early = '0;
    picked_late  = '0;
    for (int unsigned i = 0; i < Sources; i++) begin
      if (pick_early[i]) picked_early |= offered_i[i];
      if (pick_late[i]) picked_late |= offered_i[i];
    end
    picked_o = ask_early != '0 ? picked_early : picked_late;
    // Completions of memory carry their way, a recall has its own; for all other events the look-up determines the way.
    picked_o.way = of_memory_o ? picked_early.way : recall_way_i;
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
      if (idle_i) source_o <= pick;
      blocked_q <= blocked_d;
      unblock_q <= unblock_i;
    end
  end

  `ASSERT(source_one, $onehot0(source_o))
endmodule : dcu_scheduler
