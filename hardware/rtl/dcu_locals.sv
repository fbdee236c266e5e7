// Local operations of a directory controller unit (DCU): the received operation and unlock, the operations in progress,
// the number of locks, and the responses to the device.
//
// A recall by the directory is a local operation too, but the device gets no response to it.

`include "assertions.svh"

module dcu_locals #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type         trigger_t = logic,  // an event with its context
  parameter type         event_e   = logic,
  parameter type         state_e   = logic,
  parameter int unsigned Locals    = 2,   // maximum number of operations in progress
  parameter int unsigned Locks     = 2,   // maximum number of locked lines
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
  input  event_e                local_event_i,   // event number of the operation
  input  logic [LineWidth-1:0]  local_line_i,
  input  logic                  unlock_valid_i,
  output logic                  unlock_ready_o,
  input  logic [LineWidth-1:0]  unlock_line_i,

  // Events offered: the unlock (bit 0) and the local operation (bit 1).
  output logic [1:0]            trigger_valid_o,
  output trigger_t [1:0]        trigger_o,

  // Current event: its kind, its line, and its outcome.
  input  logic                  is_unlock_i,
  input  logic                  is_device_op_i,
  input  logic                  is_recall_i,
  input  logic [LineWidth-1:0]  line_i,
  input  logic [WayWidth-1:0]   way_i,
  input  logic                  hit_i,           // the directory holds the line in this way
  input  logic                  execute_i,       // its row is executed
  input  logic                  acknowledge_i,   // the row completes an operation or the unlock
  input  logic                  is_refused_i,    // the effect of the row is `Refuse` or `Never`
  input  logic                  refuse_i,        // the refusal is sent to the device
  input  logic                  return_i,        // the operation returns to dcs_locals for lack of a lock

  output logic                  full_o,         // no entry is free; one cycle late
  output logic                  locks_full_o,   // all locks are in use
  output logic                  lacks_lock_o,   // the current operation needs a lock, and none is free; one cycle late

  // Responses to local operations and unlocks.
  output logic                  local_rsp_valid_o,
  input  logic                  local_rsp_ready_i,
  output logic                  local_rsp_unlock_o,
  output logic                  local_rsp_refused_o,
  output logic [2:0]            local_rsp_operation_o,
  output logic [LineWidth-1:0]  local_rsp_line_o,
  output logic                  rsp_sent_o,   // a response was sent in the previous cycle

  output logic                  idle_o
);
  localparam int unsigned LockWidth = home_pkg::bits(Locks + 1);

  // An operation in progress. Set and way identify its line.
  typedef struct packed {
    logic                      acknowledged;  // its response is queued
    logic                      recall;        // recall by the directory
    logic [OperationWidth-1:0] operation;
    logic [SetWidth-1:0]       set_index;  // set of the line in the directory
    logic [WayWidth-1:0]       way;
  } local_t;

  // A queued response; `entry` is the entry of its operation, freed when the response has been sent.
  typedef struct packed {
    logic                      unlock;
    logic                      refused;
    logic [OperationWidth-1:0] operation;
    logic [LineWidth-1:0]      line;
    logic [EntryWidth-1:0]     entry;
  } rsp_t;

  // Received operation and unlock, until they are executed, refused or returned.
  logic                      request_used_d, request_used_q;
  logic [OperationWidth-1:0] request_operation_q;
  event_e                    request_event_q;
  logic                      request_locks_q;
  logic [LineWidth-1:0]      request_line_q;
  logic                      unlock_used_d, unlock_used_q;
  logic [LineWidth-1:0]      unlock_line_q;

  local_t [Locals-1:0]       local_d, local_q;
  logic   [Locals-1:0]       used_d, used_q, same_line_q;                 // in use; on the current line, and not acknowledged
  logic                      unlock_rsp_pending_d, unlock_rsp_pending_q;  // the response to an unlock is queued
  logic   [LockWidth-1:0]    locks_d, locks_q;                            // locked lines and locking operations in progress
  logic                      locks_full_q, wants_lock, is_local_op;
  logic   [EntryWidth-1:0]   entry, line_entry;
  logic                      line_is_recall;
  logic                      rsp_wr, rsp_wr_ready;
  rsp_t                   rsp_wr_data, first_rsp, sent_rsp_q;  // first in the queue; sent in the previous cycle

  first_free #(
    .Size(Locals)
  ) u_free (
    .clk_i,
    .used_i (used_q),
    .full_o,
    .entry_o(entry)
  );

  // The queue has room for all operations in progress and an unlock, so a response never stalls here.
  fifo #(
    .Depth    (2 ** $clog2(Locals + 1)),
    .NeverFull(1'b1),
    .data_t   (rsp_t)
  ) u_queue (
    .clk_i,
    .rst_ni,
    .wr_valid_i(rsp_wr),
    .wr_ready_o(rsp_wr_ready),
    .wr_data_i (rsp_wr_data),
    .rd_valid_o(local_rsp_valid_o),
    .rd_ready_i(local_rsp_ready_i),
    .rd_data_o (first_rsp)
  );

  assign local_rsp_unlock_o    = first_rsp.unlock;
  assign local_rsp_refused_o   = first_rsp.refused;
  assign local_rsp_operation_o = 3'(first_rsp.operation);
  assign local_rsp_line_o      = first_rsp.line;

  logic unused;
  assign unused = ^{sent_rsp_q.refused, sent_rsp_q.operation, sent_rsp_q.line};

  assign is_local_op  = is_device_op_i || is_recall_i;
  assign wants_lock   = is_device_op_i && request_locks_q;
  assign lacks_lock_o = wants_lock && locks_full_q;
  assign locks_full_o = locks_q == LockWidth'(Locks);
  assign idle_o       = used_q == '0 && !request_used_q && !unlock_used_q && !unlock_rsp_pending_q && !local_rsp_valid_o;

  assign trigger_valid_o = {request_used_q, unlock_used_q && !unlock_rsp_pending_q};
  assign trigger_o       = {
    trigger_t'{request_event_q, request_line_q, 2'd0, '0, state_e'(0), '0},
    trigger_t'{event_e'(Protocol.unlock), unlock_line_q, 2'd0, '0, state_e'(0), '0}
  };

  // The operation in progress on the current line.
  always_comb begin
    line_entry     = '0;
    line_is_recall = 1'b0;
    for (int unsigned i = 0; i < Locals; i++) begin
      if (same_line_q[i]) begin
        line_entry  |= EntryWidth'(i);
        line_is_recall |= local_q[i].recall;
      end
    end
  end

  always_comb begin
    rsp_wr      = refuse_i;
    rsp_wr_data = '{
      unlock:    is_unlock_i,
      refused:   is_refused_i,
      operation: is_device_op_i ? request_operation_q : local_q[line_entry].operation,
      line:      line_i,
      entry:     is_device_op_i ? entry : line_entry
    };
    if (execute_i && acknowledge_i) rsp_wr = is_unlock_i || is_device_op_i || (!is_local_op && !line_is_recall);
  end

  // Received operation and unlock, and locks.
  always_comb begin
    request_used_d       = request_used_q || local_valid_i;
    unlock_used_d        = unlock_used_q || unlock_valid_i;
    unlock_rsp_pending_d = unlock_rsp_pending_q;
    locks_d              = locks_q;
    if (rsp_sent_o && sent_rsp_q.unlock) unlock_rsp_pending_d = 1'b0;
    if (is_unlock_i && (execute_i || refuse_i)) begin
      unlock_used_d        = 1'b0;
      unlock_rsp_pending_d = 1'b1;
      if (execute_i) locks_d = locks_q - 1'b1;
    end
    if (is_device_op_i && (execute_i || refuse_i || return_i)) begin
      request_used_d = 1'b0;
      if (execute_i && wants_lock) locks_d = locks_q + 1'b1;
    end
  end

  // Operations in progress.
  always_comb begin
    local_d = local_q;
    used_d  = used_q;
    if (rsp_sent_o && !sent_rsp_q.unlock) used_d[sent_rsp_q.entry] = 1'b0;
    if (execute_i && is_local_op || refuse_i && is_device_op_i) begin
      // A recall that completes immediately needs no entry.
      used_d[entry]  = is_device_op_i || !acknowledge_i;
      local_d[entry] = '{acknowledge_i || refuse_i, is_recall_i, request_operation_q, line_i[SetWidth-1:0], way_i};
    end else if (execute_i && acknowledge_i && !is_unlock_i) begin
      local_d[line_entry].acknowledged = 1'b1;
      if (line_is_recall) used_d[line_entry] = 1'b0;
    end
  end

  // The free flags of the received requests are registers, because they enable the writes of the entries.
  assign request_used_q = !local_ready_o;
  assign unlock_used_q  = !unlock_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      local_ready_o        <= 1'b1;
      unlock_ready_o       <= 1'b1;
      rsp_sent_o           <= 1'b0;
      unlock_rsp_pending_q <= 1'b0;
      locks_q              <= '0;
      used_q               <= '0;
    end else begin
      local_ready_o        <= !request_used_d;
      unlock_ready_o       <= !unlock_used_d;
      rsp_sent_o           <= local_rsp_valid_o && local_rsp_ready_i;
      unlock_rsp_pending_q <= unlock_rsp_pending_d;
      locks_q              <= locks_d;
      used_q               <= used_d;
    end
  end

  // A line with an operation in progress is not in the initial state, so the directory holds it; set and way identify
  // it.
  always_ff @(posedge clk_i) begin
    local_q      <= local_d;
    sent_rsp_q   <= first_rsp;
    locks_full_q <= locks_full_o;
    for (int unsigned i = 0; i < Locals; i++) begin
      same_line_q[i] <= used_q[i] && !local_q[i].acknowledged && hit_i && local_q[i].set_index == line_i[SetWidth-1:0]
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

  `ASSERT(locks_conserved, !(execute_i && is_unlock_i) || locks_q != '0)
  `ASSERT(one_operation_of_a_line, !execute_i || $onehot0(same_line_q))
  `ASSERT(queue_has_room, !rsp_wr || rsp_wr_ready)
endmodule : dcu_locals
