// Proof of dcs_locals:
// - Each local operation reaches its unit once. Operations on one line keep their order.
// - At most one operation without a free lock is on trial at a time, and each is tried once.
// - Deferred operations stall the port only if the queue is full.

`include "assertions.svh"

module dcs_locals_proof #(
  parameter int unsigned Units           = 2,
  parameter int unsigned LocalQueueDepth = 3
) (
  input  logic                           clk_i,
  input  logic                           wr_valid_i,
  input  home_pkg::local_req_t           wr_req_i,
  input  logic [Units-1:0]               unit_ready_i,
  input  logic [Units-1:0]               unit_locks_full_i,
  input  logic [Units-1:0]               unit_returned_i,
  input  logic [home_pkg::LineWidth-1:0] line_i   // the watched line: arbitrary and constant
);
  localparam int unsigned UnitWidth = home_pkg::bits(Units);

  // Operations 1, 2, 5 and 7 lock their line.
  localparam home_pkg::protocol_t Protocol = '{locking: 8'b1010_0110, default: '0};

  // Reset in the first cycle only.
  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic                 wr_ready, idle;
  logic [Units-1:0]     unit_valid;
  home_pkg::local_req_t unit_req;

  dcs_locals #(
    .Protocol       (Protocol),
    .Units          (Units),
    .LocalQueueDepth(LocalQueueDepth)
  ) u_locals (
    .clk_i,
    .rst_ni,
    .wr_valid_i,
    .wr_ready_o  (wr_ready),
    .wr_req_i,
    .unit_valid_o(unit_valid),
    .unit_ready_i,
    .unit_locks_full_i,
    .unit_returned_i,
    .unit_req_o  (unit_req),
    .idle_o      (idle)
  );

  logic [home_pkg::LineWidth-1:0] line_q;
  always_ff @(posedge clk_i) line_q <= line_i;
  `ASSUME_OR(line_constant, line_i == line_q, ("the line changes"))

  // Reference model of a trial: a locking operation that a unit without a free lock accepts. The unit reports the
  // result when it is ready again; it may return the operation.
  logic [UnitWidth-1:0]           unit, trial_unit_q;
  logic                           trial_start, trial_q, trial_end;
  logic [home_pkg::LineWidth-1:0] trial_line_q;
  assign unit        = UnitWidth'(unit_req.line >> 1);
  assign trial_start = (unit_valid & unit_ready_i) != '0 && unit_locks_full_i[unit]
                    && Protocol.locking[unit_req.operation];
  assign trial_end   = trial_q && unit_ready_i[trial_unit_q];
  always_ff @(posedge clk_i) begin
    trial_q <= rst_ni && (trial_q && !trial_end || trial_start);
    if (trial_start) begin
      trial_unit_q <= unit;
      trial_line_q <= unit_req.line;
    end
  end

  // Operations on the watched line carry sequence numbers modulo 8 as their operation code, assigned on arrival. They
  // must depart in that order.
  logic [2:0] arrived_q, departed_q;
  logic       arrives, unit_accepts, departs;
  assign arrives      = wr_valid_i && wr_ready && wr_req_i.line == line_i;
  assign unit_accepts = (unit_valid & unit_ready_i) != '0 && unit_req.line == line_i;
  // An operation on trial departs when its unit is ready again and does not return it.
  assign departs = unit_accepts && !trial_start
                || trial_end && !unit_returned_i[trial_unit_q] && trial_line_q == line_i;

  `ASSUME_OR(arrivals_numbered, !wr_valid_i || wr_req_i.line != line_i || wr_req_i.operation == arrived_q,
    ("another number"))

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      arrived_q  <= '0;
      departed_q <= '0;
    end else begin
      arrived_q  <= arrived_q + 3'(arrives);
      departed_q <= departed_q + 3'(departs);
    end
  end

  `ASSERT(offered_to_addressed_unit, unit_valid == '0 || unit_valid == Units'(1) << unit)
  `ASSERT(in_order, !unit_accepts || unit_req.operation == departed_q)
  // At most one operation without a free lock is on trial at a time, and each is tried once.
  `ASSERT(one_trial, !trial_start || !trial_q && u_locals.retry_q && (u_locals.retry_entry_q & u_locals.tried_q) == '0)
  `ASSERT(idle_means_empty, !idle || arrived_q == departed_q)
  // The port is served at least every other cycle: its operation is dispatched, or deferred if an entry is free.
  logic retry_prev_q;
  always_ff @(posedge clk_i) retry_prev_q <= rst_ni && u_locals.retry_q;
  `ASSERT(retry_every_other_cycle, !u_locals.retry_q || !retry_prev_q)
  `ASSERT(stalls_only_if_full, wr_ready || u_locals.retry_q || u_locals.used_q == '1)
  // A retried operation is a deferred one.
  `ASSERT(retry_is_deferred, !u_locals.retry_q || (u_locals.retry_entry_q & u_locals.used_q) == u_locals.retry_entry_q
    && $onehot(u_locals.retry_entry_q))

  // Invariants for the induction. A trial of the module is the trial of the model, of one deferred operation:
  `ASSERT(trial_matches, trial_q == u_locals.trial_q && (!trial_q || trial_unit_q == u_locals.trial_unit_q
    && trial_unit_q == UnitWidth'(trial_line_q >> 1)
    && $onehot(u_locals.trial_entry_q) && (u_locals.trial_entry_q & u_locals.used_q) == u_locals.trial_entry_q))
  `ASSERT(retry_is_not_trial, !u_locals.retry_q || !trial_q || u_locals.retry_entry_q != u_locals.trial_entry_q)
  `ASSERT(tried_matches,
    !u_locals.retry_q || u_locals.retry_tried_q == ((u_locals.retry_entry_q & u_locals.tried_q) != '0))
  // The operations on the watched line that have arrived and not departed are exactly those that the queue holds:
  logic [2:0]                 deferred_count;
  logic [LocalQueueDepth-1:0] on_line;
  assign deferred_count = arrived_q - departed_q;
  `ASSERT(deferred_count_matches, 32'(deferred_count) == $countones(on_line))
  for (genvar i = 0; i < LocalQueueDepth; i++) begin : gen_entry
    // Number of older operations on the watched line, if the entry is on that line.
    logic [2:0] older_count;
    assign on_line[i]  = u_locals.used_q[i] && u_locals.req_q[i].line == line_i;
    assign older_count = u_locals.req_q[i].operation - departed_q;
    // An operation on trial, or retried, is the oldest one of its line.
    `ASSERT(trial_is_oldest, !(trial_q && u_locals.trial_entry_q[i]) || u_locals.req_q[i].line == trial_line_q
      && u_locals.older_q[i] == '0 && (!on_line[i] || older_count == '0))
    // The numbers in the queue are those that have arrived and not departed.
    `ASSERT(numbers_in_range, !on_line[i] || older_count < deferred_count)
    `ASSERT(retry_req_matches, !(u_locals.retry_q && u_locals.retry_entry_q[i])
      || u_locals.retry_req_q == u_locals.req_q[i] && (!on_line[i] || older_count == '0))
    // The module's matrix `older_q` relates entries of one line only. On the watched line it agrees with the numbers.
    for (genvar j = 0; j < LocalQueueDepth; j++) begin : gen_other
      `ASSERT(older_is_same_line, !u_locals.used_q[i] || !u_locals.older_q[i][j]
        || i != j && u_locals.used_q[j] && u_locals.req_q[i].line == u_locals.req_q[j].line)
      `ASSERT(older_matches_numbers, i == j || !on_line[i] || !on_line[j]
        || u_locals.req_q[i].operation != u_locals.req_q[j].operation
        && u_locals.older_q[i][j] == (u_locals.req_q[j].operation - departed_q < older_count))
    end
  end
endmodule : dcs_locals_proof
