// Each local operation reaches its unit once, and operations on one line in order of arrival. At most one operation that
// lacks a lock is on trial at a time, and each once. Deferred operations stall no others unless the buffer is full.

`include "assertions.svh"

module dcs_locals_proof #(
  parameter int unsigned Units   = 2,
  parameter int unsigned Pending = 3
) (
  input  logic                           clk_i,
  input  logic                           wr_valid_i,
  input  home_pkg::local_req_t           wr_req_i,
  input  logic [Units-1:0]               unit_ready_i,
  input  logic [Units-1:0]               unit_locks_full_i,
  input  logic [Units-1:0]               unit_back_i,
  input  logic [home_pkg::LineWidth-1:0] line_i   // an arbitrary line, constant
);
  localparam int unsigned UnitWidth = home_pkg::bits(Units);

  localparam home_pkg::protocol_t Protocol = '{locking: 8'b1010_0110, default: '0};

  // Reset in the first cycle only.
  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic                 wr_ready, idle;
  logic [Units-1:0]     unit_valid;
  home_pkg::local_req_t unit_req;

  dcs_locals #(
    .Protocol(Protocol),
    .Units   (Units),
    .Pending (Pending)
  ) u_locals (
    .clk_i,
    .rst_ni,
    .wr_valid_i,
    .wr_ready_o       (wr_ready),
    .wr_req_i,
    .unit_valid_o     (unit_valid),
    .unit_ready_i,
    .unit_locks_full_i,
    .unit_back_i,
    .unit_req_o       (unit_req),
    .idle_o           (idle)
  );

  logic [home_pkg::LineWidth-1:0] line_q;
  always_ff @(posedge clk_i) line_q <= line_i;
  `ASSUME_OR(same_line, line_i == line_q, ("the line changes"))

  logic [UnitWidth-1:0] unit, trial_unit_q;
  logic                 tries, trial_q, ends;
  logic [home_pkg::LineWidth-1:0] trial_line_q;
  assign unit  = UnitWidth'(unit_req.line >> 1);
  assign tries = (unit_valid & unit_ready_i) != '0 && unit_locks_full_i[unit] && Protocol.locking[unit_req.operation];
  assign ends  = trial_q && unit_ready_i[trial_unit_q];
  always_ff @(posedge clk_i) begin
    trial_q <= rst_ni && (trial_q && !ends || tries);
    if (tries) begin
      trial_unit_q <= unit;
      trial_line_q <= unit_req.line;
    end
  end

  // Operations on the watched line carry sequence numbers, assigned on arrival; they must leave in that order.
  logic [2:0] comes_q, goes_q;
  logic       comes, taken, goes;
  assign comes = wr_valid_i && wr_ready && wr_req_i.line == line_i;
  assign taken = (unit_valid & unit_ready_i) != '0 && unit_req.line == line_i;
  // An operation on trial has left when its unit is done with it and did not return it.
  assign goes  = taken && !tries || ends && !unit_back_i[trial_unit_q] && trial_line_q == line_i;

  `ASSUME_OR(numbered, !wr_valid_i || wr_req_i.line != line_i || wr_req_i.operation == comes_q, ("another number"))

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      comes_q <= '0;
      goes_q  <= '0;
    end else begin
      comes_q <= comes_q + 3'(comes);
      goes_q  <= goes_q + 3'(goes);
    end
  end

  `ASSERT(to_its_unit, unit_valid == '0 || unit_valid == Units'(1) << unit)
  `ASSERT(in_order, !taken || unit_req.operation == goes_q)
  // At most one operation that lacks a lock is on trial at a time, and each is tried once.
  `ASSERT(tries_one, !tries || !trial_q && u_locals.again_q && (u_locals.again_place_q & u_locals.tried_q) == '0)
  `ASSERT(nothing_left, !idle || comes_q == goes_q)
  // The port has every other cycle; its operation is then dispatched, or deferred if there is room.
  logic again_before_q;
  always_ff @(posedge clk_i) again_before_q <= rst_ni && u_locals.again_q;
  `ASSERT(takes_turns, !u_locals.again_q || !again_before_q)
  `ASSERT(holds_up_none, wr_ready || u_locals.again_q || u_locals.used_q == '1)
  // An operation that is offered again is a deferred one.
  `ASSERT(offers, !u_locals.again_q || (u_locals.again_place_q & u_locals.used_q) == u_locals.again_place_q
    && $onehot(u_locals.again_place_q))

  // Inductive strengthening.
  `ASSERT(trial, trial_q == u_locals.trial_q && (!trial_q || trial_unit_q == u_locals.trial_unit_q
    && trial_unit_q == UnitWidth'(trial_line_q >> 1)
    && $onehot(u_locals.trial_place_q) && (u_locals.trial_place_q & u_locals.used_q) == u_locals.trial_place_q))
  `ASSERT(not_both, !u_locals.again_q || !trial_q || u_locals.again_place_q != u_locals.trial_place_q)
  `ASSERT(tried, !u_locals.again_q || u_locals.again_tried_q == ((u_locals.again_place_q & u_locals.tried_q) != '0))
  logic [2:0] waiting;
  logic [Pending-1:0] mine;
  assign waiting = comes_q - goes_q;
  `ASSERT(all_wait_here, 32'(waiting) == $countones(mine))
  for (genvar i = 0; i < Pending; i++) begin : gen_place
    logic [2:0] since;   // operations on the line that precede it
    assign mine[i] = u_locals.used_q[i] && u_locals.req_q[i].line == line_i;
    assign since   = u_locals.req_q[i].operation - goes_q;
    `ASSERT(is_tried, !(trial_q && u_locals.trial_place_q[i]) || u_locals.req_q[i].line == trial_line_q
      && u_locals.before_q[i] == '0 && (!mine[i] || since == '0))
    `ASSERT(in_turn, !mine[i] || since < waiting)
    `ASSERT(offered, !(u_locals.again_q && u_locals.again_place_q[i]) || u_locals.again_req_q == u_locals.req_q[i]
      && (!mine[i] || since == '0))
    for (genvar j = 0; j < Pending; j++) begin : gen_other
      `ASSERT(earlier, !u_locals.used_q[i] || !u_locals.before_q[i][j]
        || i != j && u_locals.used_q[j] && u_locals.req_q[i].line == u_locals.req_q[j].line)
      `ASSERT(ordered, i == j || !mine[i] || !mine[j] || u_locals.req_q[i].operation != u_locals.req_q[j].operation
        && u_locals.before_q[i][j] == (u_locals.req_q[j].operation - goes_q < since))
    end
  end
endmodule : dcs_locals_proof
