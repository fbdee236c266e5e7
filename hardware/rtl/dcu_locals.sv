// Local operations and unlocks of the device in a unit: those received, those in progress, the locks, and the answers.
// The recalls of the directory are local operations too; they are not answered.

`include "assertions.svh"

module dcu_locals #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type         trigger_t = logic,  // an event with its context
  parameter type         event_e   = logic,
  parameter type         state_e   = logic,
  parameter int unsigned Locals    = 2,      // operations in progress
  parameter int unsigned Locks     = 2,      // maximum number of locked lines
  parameter int unsigned LineWidth = 23,
  parameter int unsigned SetWidth  = 7,
  parameter int unsigned WayWidth  = 4,

  localparam int unsigned EntryWidth     = home_pkg::bits(Locals),
  localparam int unsigned OperationWidth = home_pkg::bits(int'(Protocol.locals))
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Local operations and unlocks of the device.
  input  logic                  local_valid_i,
  output logic                  local_ready_o,
  input  logic [2:0]            local_operation_i,
  input  event_e                local_event_i,   // the number of the operation among events
  input  logic [LineWidth-1:0]  local_line_i,
  input  logic                  unlock_valid_i,
  output logic                  unlock_ready_o,
  input  logic [LineWidth-1:0]  unlock_line_i,

  // The unlock, and the operation.
  output logic [1:0]            ask_o,
  output trigger_t [1:0]        offered_o,

  // The current event: its source, its line, and its outcome.
  input  logic                  of_unlock_i,
  input  logic                  of_device_i,
  input  logic                  of_recall_i,
  input  logic [LineWidth-1:0]  line_i,
  input  logic [WayWidth-1:0]   way_i,
  input  logic                  hit_i,           // the directory holds the line in this way
  input  logic                  takes_i,         // its row is executed
  input  logic                  acknowledge_i,   // the row ends the operation in progress, the unlock, or an operation at once
  input  logic                  is_refused_i,    // the row has a refusal, or is illegal
  input  logic                  refuses_i,       // the refusal is reported to the device
  input  logic                  returns_i,       // the operation returns to its queue to wait for a lock

  output logic                  full_o,          // no entry is free; a cycle late
  output logic                  locks_full_o,    // all locks are in use
  output logic                  lacks_lock_o,    // the current event lacks one; a cycle late

  // Answers to both.
  output logic                  local_rsp_valid_o,
  input  logic                  local_rsp_ready_i,
  output logic                  local_rsp_unlock_o,
  output logic                  local_rsp_refused_o,
  output logic [2:0]            local_rsp_operation_o,
  output logic [LineWidth-1:0]  local_rsp_line_o,
  output logic                  answered_o,      // an answer has left in the cycle before

  output logic                  idle_o
);
  localparam int unsigned LockWidth = home_pkg::bits(Locks + 1);

  // An operation in progress.
  typedef struct packed {
    logic                      answered;
    logic                      recall;     // issued by the directory itself
    logic [OperationWidth-1:0] operation;
    logic [SetWidth-1:0]       in_set;     // position of the line in the directory
    logic [WayWidth-1:0]       way;
  } local_t;

  // An answer in the queue; `entry` is the entry of its operation.
  typedef struct packed {
    logic                      unlock;
    logic                      refused;
    logic [OperationWidth-1:0] operation;
    logic [LineWidth-1:0]      line;
    logic [EntryWidth-1:0]     entry;
  } answer_t;

  // Received, and not yet picked.
  logic                      request_used_d, request_used_q;
  logic [OperationWidth-1:0] request_operation_q;
  event_e                    request_event_q;
  logic                      request_locks_q;
  logic [LineWidth-1:0]      request_line_q;
  logic                      unlock_used_d, unlock_used_q;
  logic [LineWidth-1:0]      unlock_line_q;

  local_t [Locals-1:0]       local_d, local_q;
  logic   [Locals-1:0]       used_d, used_q, same_q;    // in use; of the current line, and not answered
  logic                      unlocking_d, unlocking_q;  // the answer to an unlock is still queued
  logic   [LockWidth-1:0]    locks_d, locks_q;          // lines locked or about to be
  logic                      locks_full_q, wants_lock, of_local;
  logic   [EntryWidth-1:0]   entry, answered_entry;
  logic                      answered_recall;
  logic                      answer_wr, answer_wr_ready;
  answer_t                   answer_wr_data, answer, answered_q;  // the first in the queue; the last that has left

  first_free #(
    .Size(Locals)
  ) u_free (
    .clk_i,
    .used_i (used_q),
    .full_o,
    .entry_o(entry)
  );

  // The queue has room for all operations in progress and an unlock, so a write never stalls.
  fifo #(
    .Depth (2 ** $clog2(Locals + 1)),
    .NeverFull  (1'b1),
    .data_t(answer_t)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .wr_valid_i(answer_wr),
    .wr_ready_o(answer_wr_ready),
    .wr_data_i (answer_wr_data),
    .rd_valid_o(local_rsp_valid_o),
    .rd_ready_i(local_rsp_ready_i),
    .rd_data_o (answer)
  );

  assign local_rsp_unlock_o    = answer.unlock;
  assign local_rsp_refused_o   = answer.refused;
  assign local_rsp_operation_o = 3'(answer.operation);
  assign local_rsp_line_o      = answer.line;

  logic unused;
  assign unused = ^{answered_q.refused, answered_q.operation, answered_q.line};

  assign of_local     = of_device_i || of_recall_i;
  assign wants_lock   = of_device_i && request_locks_q;
  assign lacks_lock_o = wants_lock && locks_full_q;
  assign locks_full_o = locks_q == LockWidth'(Locks);
  assign idle_o       = used_q == '0 && !request_used_q && !unlock_used_q && !unlocking_q && !local_rsp_valid_o;

  assign ask_o     = {request_used_q, unlock_used_q && !unlocking_q};
  assign offered_o = {
    trigger_t'{request_event_q, request_line_q, 2'd0, '0, state_e'(0), '0},
    trigger_t'{event_e'(Protocol.unlock), unlock_line_q, 2'd0, '0, state_e'(0), '0}
  };

  // The operation in progress on the current line.
  always_comb begin
    answered_entry  = '0;
    answered_recall = 1'b0;
    for (int unsigned i = 0; i < Locals; i++) begin
      if (same_q[i]) begin
        answered_entry  |= EntryWidth'(i);
        answered_recall |= local_q[i].recall;
      end
    end
  end

  always_comb begin
    answer_wr      = refuses_i;
    answer_wr_data = '{
      unlock:    of_unlock_i,
      refused:   is_refused_i,
      operation: of_device_i ? request_operation_q : local_q[answered_entry].operation,
      line:      line_i,
      entry:     of_device_i ? entry : answered_entry
    };
    if (takes_i && acknowledge_i) answer_wr = of_unlock_i || of_device_i || (!of_local && !answered_recall);
  end

  // Operations and unlocks received, and locks.
  always_comb begin
    request_used_d = request_used_q || local_valid_i;
    unlock_used_d  = unlock_used_q || unlock_valid_i;
    unlocking_d    = unlocking_q;
    locks_d        = locks_q;
    if (answered_o && answered_q.unlock) unlocking_d = 1'b0;
    if (of_unlock_i && (takes_i || refuses_i)) begin
      unlock_used_d = 1'b0;
      unlocking_d   = 1'b1;
      if (takes_i) locks_d = locks_q - 1'b1;
    end
    if (of_device_i && (takes_i || refuses_i || returns_i)) begin
      request_used_d = 1'b0;
      if (takes_i && wants_lock) locks_d = locks_q + 1'b1;
    end
  end

  // Operations in progress.
  always_comb begin
    local_d = local_q;
    used_d  = used_q;
    if (answered_o && !answered_q.unlock) used_d[answered_q.entry] = 1'b0;
    if (takes_i && of_local || refuses_i && of_device_i) begin
      // An operation of the directory that completes at once needs no entry.
      used_d[entry]  = of_device_i || !acknowledge_i;
      local_d[entry] = '{acknowledge_i || refuses_i, of_recall_i, request_operation_q, line_i[SetWidth-1:0], way_i};
    end else if (takes_i && acknowledge_i && !of_unlock_i) begin
      local_d[answered_entry].answered = 1'b1;
      if (answered_recall) used_d[answered_entry] = 1'b0;
    end
  end

  // Each entry that is written from outside has a register for "free", which enables the write.
  assign request_used_q = !local_ready_o;
  assign unlock_used_q  = !unlock_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      local_ready_o  <= 1'b1;
      unlock_ready_o <= 1'b1;
      answered_o     <= 1'b0;
      unlocking_q    <= 1'b0;
      locks_q        <= '0;
      used_q         <= '0;
    end else begin
      local_ready_o  <= !request_used_d;
      unlock_ready_o <= !unlock_used_d;
      answered_o     <= local_rsp_valid_o && local_rsp_ready_i;
      unlocking_q    <= unlocking_d;
      locks_q        <= locks_d;
      used_q         <= used_d;
    end
  end

  // A line with an operation in progress is not in the initial state, so the directory holds it, and its way and set
  // identify it.
  always_ff @(posedge clk_i) begin
    local_q      <= local_d;
    answered_q   <= answer;
    locks_full_q <= locks_full_o;
    for (int unsigned i = 0; i < Locals; i++) begin
      same_q[i] <= used_q[i] && !local_q[i].answered && hit_i && local_q[i].in_set == line_i[SetWidth-1:0]
                && local_q[i].way == way_i;
    end
    if (local_ready_o) begin
      request_operation_q <= OperationWidth'(local_operation_i);
      request_locks_q     <= Protocol.locking[local_operation_i];
      request_event_q     <= local_event_i;
      request_line_q      <= local_line_i;
    end
    if (unlock_ready_o) unlock_line_q <= unlock_line_i;
  end

  `ASSERT(locks_conserved, !(takes_i && of_unlock_i) || locks_q != '0)
  `ASSERT(one_operation_of_a_line, !takes_i || $onehot0(same_q))
  `ASSERT(queue_has_room, !answer_wr || answer_wr_ready)
endmodule : dcu_locals
