// Proof that a directory controller unit (DCU) blocks no event for ever. The argument has five steps; the claims of
// each are proven by induction:
// 1. Each event completes within seven cycles after it was picked (`completes_soon`). An event without a ROM row is
//    dropped and reported; the report ends when the slice accepts it (`report_ends`).
// 2. An idle unit picks an event if any is pending (`idle_unit_picks`), and a response or a memory completion before
//    all others (`high_priority_first`). The choice among equals is round-robin, as rr_pick_proof.sv proves.
// 3. A memory completion never stalls (`completion_never_stalls`), so reads and writes end if memory responds.
// 4. A response stalls only if all write entries are in use (`response_lacks_only_write_entry`), and no event that may
//    stall gets one while a response is pending (`write_entry_reserved_for_response`).
// 5. A blocked event is retried after a change, and until then an operation is outstanding whose end causes one
//    (`blocked_response_awaits_write`, `blocked_event_awaits_operation`).
//
// The rows are arbitrary except for the properties that crates/rtl/src/rom verifies (`is_legal_row`), so the proof
// covers every protocol. The unit has one entry of each kind and one group of ways.

`include "assertions.svh"

module dcu_proof #(
  localparam int unsigned TagWidth  = 1,
  localparam int unsigned SetWidth  = 1,
  localparam int unsigned LineWidth = TagWidth + SetWidth
) (
  input  logic                      clk_i,
  input  logic [1:0]                rx_valid_i,
  input  logic [1:0][3:0]           rx_event_i,
  input  logic [1:0][LineWidth-1:0] rx_line_i,
  input  logic [1:0]                rx_slot_i,
  input  logic                      local_valid_i,
  input  logic [2:0]                local_operation_i,
  input  logic [LineWidth-1:0]      local_line_i,
  input  logic                      unlock_valid_i,
  input  logic [LineWidth-1:0]      unlock_line_i,
  input  logic                      local_rsp_ready_i,
  input  logic                      read_ready_i,
  input  logic                      write_ready_i,
  input  logic [1:0]                tx_ready_i,
  input  logic                      read_done_i,
  input  logic                      read_lost_i,
  input  logic                      write_done_i,
  input  logic                      tx_done_i,
  input  logic                      change_ready_i,
  input  logic                      unexpected_ready_i,
  input  logic [16:0]               row_i
);
  // Two circuits to the home, both with payload: circuit 0 has requests, which may stall; circuit 1 has responses.
  typedef enum logic [3:0] {
    ReadRequest = 4'd0, WriteRequest = 4'd1,    // messages of circuit 0
    WriteBack   = 4'd2, InvalidateAck = 4'd3,   // messages of circuit 1
    Clean       = 4'd4, Lock = 4'd5,            // local operations; `Clean` is also the recall
    Unlock      = 4'd6,
    MemoryData  = 4'd7, MemoryDone = 4'd8   // memory completions
  } event_e;
  // S0 is the initial state, which needs no directory entry.
  typedef enum logic [1:0] { S0 = 2'd0, S1 = 2'd1, S2 = 2'd2, S3 = 2'd3 } state_e;
  typedef enum logic { Forward = 1'b0, Grant = 1'b1 } send_e;
  typedef struct packed {
    home_pkg::effect_e effect;
    home_pkg::memory_e memory;
    logic              acknowledge;
    logic              grant_valid;
    send_e             grant;
    logic              forward_valid;
    send_e             forward;
    home_pkg::permission_e from;
    home_pkg::permission_e to;
    state_e            next;
  } row_t;

  localparam home_pkg::protocol_t Protocol = '{
    line_bytes:   16'd128,
    messages:     8'd4,
    locals:       8'd2,
    unlock:       8'd6,
    memory_data:  8'd7,
    memory_done:  8'd8,
    evict:        8'd4,
    rx_circuits:  8'd2,
    tx_circuits:  8'd2,
    rx_payload:   4'b0011,
    rx_waits:     4'b0001,
    tx_payload:   4'b0010,
    locking:      8'b10,
    payload:      64'b0110,
    circuit:      {64'd0, 64'd0, 64'b1100, 64'b0011},
    send_payload: 16'b10,
    grants:       16'b10,
    forwards:     16'b01,
    send_circuit: {16'd0, 16'd0, 16'b10, 16'b01},
    default:      '0
  };

  // Reset in the first cycle only; then the directory is cleared.
  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;
  logic [1:0] init_q;
  always_ff @(posedge clk_i) init_q <= !rst_ni ? '0 : init_q + 2'(init_q != '1);

  logic [1:0]            rx_ready, tx_valid;
  logic                  local_ready, unlock_ready, rsp_valid, rom_valid, read_valid, write_valid, idle;
  logic [5:0]            rom_addr;
  event_e                read_event, write_event, step_event;
  logic                  rsp_unlock, rsp_refused, drop_valid, drop_slot, write_payload_slot, read_slot, write_slot;
  logic [1:0]            tx_slot;
  logic [2:0]            rsp_operation;
  logic [LineWidth-1:0]  rsp_line, read_line, write_line, step_line;
  logic [1:0][LineWidth-1:0] tx_line;
  logic [1:0]            write_circuit, drop_circuit;
  send_e [1:0]           tx_send;
  logic                  step_valid, step_blocked, step_evict;
  state_e                step_state, step_next;
  home_pkg::effect_e     step_effect;
  row_t                  row;
  logic                  row_valid_q;
  logic [5:0]            rom_addr_q;

  assign row = row_t'(row_i[$bits(row_t)-1:0]);

  home_pkg::stall_e unused_stall;
  home_pkg::permission_e unused_from, unused_to, unused_permission;
  logic             unused_evicted, unused_change, unused_lost, unused_locks, unused_returned;
  logic [LineWidth-1:0] unused_line, unused_dropped;
  logic             unexpected_valid;
  event_e           unused_event;
  state_e           unused_state;

  dcu #(
    .Protocol       (Protocol),
    .state_e        (state_e),
    .event_e        (event_e),
    .send_e         (send_e),
    .row_t          (row_t),
    .TagWidth       (TagWidth),
    .SetWidth       (SetWidth),
    .Ways           (2),
    .WaysPerStep    (2),
    .Reads          (1),
    .Writes         (1),
    .Locals         (1),
    .MaxDeferred    (1),
    .StoreSlots     (1),
    .RecallDelayLog2(0)
  ) u_dcu (
    .clk_i,
    .rst_ni,
    .init_busy_i          (init_q != '1),
    .init_addr_i          (1'(init_q)),
    .rx_valid_i           (rx_valid_i & rx_ready),
    .rx_ready_o           (rx_ready),
    .rx_event_i,
    .rx_line_i,
    .rx_slot_i,
    .local_valid_i,
    .local_ready_o        (local_ready),
    .local_operation_i,
    .local_event_i        (event_e'(4'd4 + 4'(local_operation_i))),
    .local_line_i,
    .locks_full_o         (unused_locks),
    .local_returned_o     (unused_returned),
    .unlock_valid_i,
    .unlock_ready_o       (unlock_ready),
    .unlock_line_i,
    .local_rsp_valid_o    (rsp_valid),
    .local_rsp_ready_i,
    .local_rsp_unlock_o   (rsp_unlock),
    .local_rsp_refused_o  (rsp_refused),
    .local_rsp_operation_o(rsp_operation),
    .local_rsp_line_o     (rsp_line),
    .rom_valid_o          (rom_valid),
    .rom_ready_i          (1'b1),
    .rom_addr_o           (rom_addr),
    .row_valid_i          (row_valid_q),
    .row_i                (row),
    .read_valid_o         (read_valid),
    .read_ready_i,
    .read_line_o          (read_line),
    .read_slot_o          (read_slot),
    .read_event_o         (read_event),
    .read_done_i,
    .read_lost_i,
    .write_valid_o        (write_valid),
    .write_ready_i,
    .write_line_o         (write_line),
    .write_slot_o         (write_slot),
    .write_event_o        (write_event),
    .write_circuit_o      (write_circuit),
    .write_payload_slot_o (write_payload_slot),
    .write_done_i,
    .drop_valid_o         (drop_valid),
    .drop_circuit_o       (drop_circuit),
    .drop_slot_o          (drop_slot),
    .tx_valid_o           (tx_valid),
    .tx_ready_i,
    .tx_send_o            (tx_send),
    .tx_line_o            (tx_line),
    .tx_slot_o            (tx_slot),
    .tx_done_i,
    .unexpected_valid_o   (unexpected_valid),
    .unexpected_ready_i,
    .unexpected_event_o   (unused_event),
    .unexpected_state_o   (unused_state),
    .unexpected_line_o    (unused_dropped),
    .step_valid_o         (step_valid),
    .step_blocked_o       (step_blocked),
    .step_evict_o         (step_evict),
    .step_event_o         (step_event),
    .step_state_o         (step_state),
    .step_effect_o        (step_effect),
    .step_next_o          (step_next),
    .step_line_o          (step_line),
    .stall_o              (unused_stall),
    .evicted_o            (unused_evicted),
    .change_valid_o       (unused_change),
    .change_ready_i,
    .change_from_o        (unused_from),
    .change_to_o          (unused_to),
    .change_line_o        (unused_line),
    .change_lost_o        (unused_lost),
    .write_permission_o   (unused_permission),
    .idle_o               (idle)
  );

  // ------------------------------------------------------------------ inputs

  // Messages arrive on their circuits, and local operations are defined: dcs.sv rejects all others.
  `ASSUME_OR(rx0_is_request, rx_event_i[0] <= 4'd1, ("no request"))
  `ASSUME_OR(rx1_is_response, rx_event_i[1] == 4'd2 || rx_event_i[1] == 4'd3, ("no response"))
  `ASSUME_OR(local_operation_known, local_operation_i <= 3'd1, ("no operation"))

  // ------------------------------------------------------------------ assumption about the rows

  // Properties of every row of a compiled ROM.
  function automatic logic is_legal_row(input row_t row, input event_e event_id, input state_e state);
    logic is_request, is_response, is_local_op, is_completion;
    is_request    = event_id == ReadRequest || event_id == WriteRequest;
    is_response   = event_id == WriteBack || event_id == InvalidateAck;
    is_local_op   = event_id == Clean || event_id == Lock;
    is_completion = event_id == MemoryData || event_id == MemoryDone;
    // Each event may lack a row.
    is_legal_row = row.effect == home_pkg::Never
        || (row.effect != home_pkg::Stall || is_request || is_local_op)
        && (row.effect != home_pkg::Refuse || is_local_op || event_id == Unlock)
        && (row.memory == home_pkg::MemoryNone || !is_completion)
        && (row.memory != home_pkg::MemoryRead || !is_response)
        && (!row.grant_valid || is_request || is_completion)
        && (is_request || is_local_op || state != S0 || row.next == S0);
  endfunction

  always_ff @(posedge clk_i) begin
    row_valid_q <= rst_ni && rom_valid;
    rom_addr_q  <= rom_addr;
  end
  // The ROM returns the row in the cycle after the request.
  `ASSUME_OR(rom_row_is_legal,
    !row_valid_q || is_legal_row(row, event_e'(rom_addr_q[3:0]), state_e'(rom_addr_q[5:4])), ("no such row"))

  // ------------------------------------------------------------------ invariants for the inductive steps

  // The claims of this section state that the unit's registers describe one event of a legal source: the step is one of
  // `step_e`, the current event is one that its source delivers and is still stored there, and the current row is a
  // legal row for the event's state.

  // Position of the unit in the steps of an event, by the numbers of `step_e` in dcu.sv.
  localparam int unsigned Sources = 8;
  logic [Sources-1:0] source;
  logic               in_init, in_idle, in_read_ways, in_compare, in_await_row, in_execute, in_forward, in_report;
  logic               in_progress, row_is_never;
  assign source       = u_dcu.source;
  assign in_init      = u_dcu.step_q == 3'd0;
  assign in_idle      = u_dcu.step_q == 3'd1;
  assign in_read_ways = u_dcu.step_q == 3'd2;
  assign in_compare   = u_dcu.step_q == 3'd3;
  assign in_await_row = u_dcu.step_q == 3'd4;
  assign in_execute   = u_dcu.step_q == 3'd5;
  assign in_forward   = u_dcu.step_q == 3'd6;
  assign in_report    = u_dcu.step_q == 3'd7;
  assign row_is_never = u_dcu.row_q.effect == home_pkg::Never;
  assign in_progress  = in_read_ways || in_compare || in_await_row || in_execute || in_forward;

  // Source of the current event.
  logic is_write, is_read, is_request, is_response, is_deferred, is_unlock, is_local_op, is_recall;
  assign {is_recall, is_local_op, is_unlock, is_deferred, is_response, is_request, is_read, is_write} = source;

  `ASSUME_OR(unlock_of_locked_line,
    !in_execute || !is_unlock || u_dcu.row_q.effect != home_pkg::Take || u_dcu.u_locals.locks_q != '0,
    ("nothing is locked"))

  // A message arrives on its circuit and is deferred only if it is a request; a local operation is defined.
  `ASSERT(step_legal, in_init || in_idle || in_progress || in_report)
  `ASSERT(source_known, !in_progress || source != '0)
  `ASSERT(message_on_its_circuit, (u_dcu.rx_ready_o[0] || u_dcu.u_messages.rx_q[0].event_id <= WriteRequest)
    && (u_dcu.rx_ready_o[1] || u_dcu.u_messages.rx_q[1].event_id == WriteBack
        || u_dcu.u_messages.rx_q[1].event_id == InvalidateAck))
  `ASSERT(only_requests_deferred,
    !u_dcu.u_messages.deferred_used_q || u_dcu.u_messages.deferred_q[0].event_id <= WriteRequest)
  `ASSERT(operation_legal,
    u_dcu.local_ready_o || u_dcu.u_locals.request_event_q == Clean || u_dcu.u_locals.request_event_q == Lock)
  // The current event is one that its source delivers, and is still stored there.
  `ASSERT(event_matches_source, !in_progress || (is_write ? u_dcu.current.event_id == MemoryDone
    : is_read ? u_dcu.current.event_id == MemoryData
    : is_response ? u_dcu.current.event_id == WriteBack || u_dcu.current.event_id == InvalidateAck
    : is_request || is_deferred ? u_dcu.current.event_id <= WriteRequest : is_unlock ? u_dcu.current.event_id == Unlock
    : is_recall ? u_dcu.current.event_id == Clean : u_dcu.current.event_id == Clean || u_dcu.current.event_id == Lock))
  `ASSERT(source_is_valid, !in_progress || in_forward
    || (!is_response || !u_dcu.rx_ready_o[1]) && (!is_request || !u_dcu.rx_ready_o[0])
    && (!is_local_op || !u_dcu.local_ready_o) && (!is_unlock || !u_dcu.unlock_ready_o)
    && (!is_deferred || u_dcu.u_messages.deferred_used_q) && (!is_recall || u_dcu.recall_active))
  // The row is that of the current event and state; a line without entry is in the initial state.
  `ASSERT(rom_addr_matches_event, !in_progress || !row_valid_q || u_dcu.rom_valid_q
    || rom_addr_q == {u_dcu.current.state, u_dcu.current.event_id})
  `ASSERT(miss_has_initial_state, !in_progress || u_dcu.hit || u_dcu.current.state == S0)
  `ASSERT(row_legal, !in_progress || !u_dcu.row_current_q
    || is_legal_row(u_dcu.row_q, u_dcu.current.event_id, u_dcu.current.state)
       && u_dcu.row_keeps_entry_q == (u_dcu.row_q.next != S0)
       && u_dcu.row_starts_read_q == (u_dcu.row_q.memory == home_pkg::MemoryRead)
       && u_dcu.row_is_take_q == (u_dcu.row_q.effect == home_pkg::Take))
  `ASSERT(row_current_when_executed, !(in_execute || in_forward) || u_dcu.row_current_q && !u_dcu.rom_valid_q)
  `ASSERT(completion_needs_no_lookup, !(is_write || is_read) || !(in_read_ways || in_compare))

  // ------------------------------------------------------------------ 1: each event completes soon

  // Number of cycles since the current event was picked.
  logic [3:0] cycles_q;
  always_ff @(posedge clk_i) cycles_q <= !rst_ni || !in_progress ? '0 : cycles_q + 4'd1;
  `ASSERT(completes_soon, !in_progress || cycles_q <= 4'd6)
  // The number of cycles determines the step.
  `ASSERT(read_ways_timing, !in_read_ways || cycles_q == 4'd0 && u_dcu.rom_valid_q && !u_dcu.row_current_q)
  `ASSERT(compare_timing, !in_compare
    || cycles_q == 4'd1 && !u_dcu.u_lookup.evaluate_q && u_dcu.u_lookup.compared_group_q == '0
       && row_valid_q && !u_dcu.rom_valid_q && !u_dcu.row_current_q
    || cycles_q == 4'd2 && u_dcu.u_lookup.evaluate_q && u_dcu.u_lookup.evaluated_group_q == '0
       && u_dcu.row_current_q && !u_dcu.rom_valid_q)
  `ASSERT(await_row_timing, !in_await_row || !u_dcu.row_current_q
    && (u_dcu.rom_valid_q ? cycles_q == (is_read || is_write ? 4'd0 : 4'd3)
       : row_valid_q && cycles_q == (is_read || is_write ? 4'd1 : 4'd4)))
  `ASSERT(execute_timing, !in_execute || cycles_q <= 4'd5)
  `ASSERT(forward_timing, !in_forward || cycles_q <= 4'd6)
  `ASSERT(report_ends, !in_report || unexpected_valid && (u_dcu.step_d == 3'd1) == unexpected_ready_i)
  // A dropped event has left its source.
  `ASSERT(dropped_event_leaves_source, !in_execute || !row_is_never
    || (!is_response || u_dcu.u_messages.rx_used_d[1] == 1'b0) && (!is_request || u_dcu.u_messages.rx_used_d[0] == 1'b0)
    && (!is_deferred || !u_dcu.u_messages.deferred_used_d)
    && (!is_read || !u_dcu.u_reads.used_d) && (!is_write || !u_dcu.u_writes.used_d)
    && (!is_unlock || !u_dcu.u_locals.unlock_used_d)
    && (!is_local_op || !u_dcu.u_locals.request_used_d || u_dcu.locals_full))

  // ------------------------------------------------------------------ 2: an event is picked, high priority first

  // An event of high priority, or another one, is offered and not blocked.
  logic high_valid, low_valid;
  assign high_valid = (u_dcu.trigger_valid & u_dcu.HighPriority & ~u_dcu.u_scheduler.blocked_q) != '0;
  assign low_valid  = (u_dcu.trigger_valid & ~u_dcu.HighPriority & ~u_dcu.u_scheduler.blocked_q) != '0;
  `ASSERT(idle_unit_picks, !in_idle || (u_dcu.step_d != 3'd1) == (high_valid || low_valid))
  `ASSERT(high_priority_first, !in_idle || !high_valid || (u_dcu.u_scheduler.pick & u_dcu.HighPriority) != '0)
  `ASSERT(picks_offered_event,
    !in_idle || (u_dcu.u_scheduler.pick & ~(u_dcu.trigger_valid & ~u_dcu.u_scheduler.blocked_q)) == '0)

  // ------------------------------------------------------------------ 3: memory completions never stall

  `ASSERT(completion_never_stalls, !in_execute || !(is_write || is_read) || u_dcu.execute || row_is_never)

  // ------------------------------------------------------------------ 4: resources that a response may lack

  `ASSERT(response_lacks_only_write_entry, !in_execute || !is_response || u_dcu.execute || row_is_never
    || u_dcu.row_q.memory == home_pkg::MemoryWrite && u_dcu.writes_full)
  logic response_prev_q;
  always_ff @(posedge clk_i) response_prev_q <= rst_ni && !u_dcu.rx_ready_o[1];
  `ASSERT(write_entry_reserved_for_response, !u_dcu.execute || is_response || is_write || is_read || !response_prev_q
    || u_dcu.row_q.memory != home_pkg::MemoryWrite)

  // ------------------------------------------------------------------ 5: blocked events are retried

  // An operation is outstanding whose end changes a resource.
  logic operation_outstanding;
  assign operation_outstanding = u_dcu.u_reads.used_q || u_dcu.u_writes.used_q || u_dcu.u_locals.used_q
    || u_dcu.u_tx.immediate_used_q || u_dcu.u_locals.unlock_rsp_pending_q || u_dcu.u_locals.locks_q != '0
    || u_dcu.u_messages.deferred_used_q || u_dcu.recall_active;
  // The full flags are one cycle late.
  `ASSERT(full_flags_match, in_init || (!u_dcu.writes_full || u_dcu.u_writes.used_q || u_dcu.u_scheduler.unblock_q)
    && (!u_dcu.reads_full || u_dcu.u_reads.used_q || u_dcu.u_scheduler.unblock_q)
    && (!u_dcu.locals_full || u_dcu.u_locals.used_q || u_dcu.u_scheduler.unblock_q)
    && (!u_dcu.deferred_full || u_dcu.u_messages.deferred_used_q || u_dcu.u_scheduler.unblock_q)
    && (!u_dcu.u_locals.locks_full_q || u_dcu.u_locals.locks_q != '0 || u_dcu.u_scheduler.unblock_q))
  `ASSERT(blocked_response_awaits_write,
    !u_dcu.u_scheduler.blocked_q[3] || u_dcu.u_scheduler.unblock_q || u_dcu.u_writes.used_q)
  `ASSERT(blocked_response_is_pending,
    !u_dcu.u_scheduler.blocked_q[3] || !u_dcu.rx_ready_o[1] || u_dcu.u_scheduler.unblock_q)
  `ASSERT(current_is_not_blocked, !in_progress || in_forward || (source & u_dcu.u_scheduler.blocked_q) == '0)
  // Sources of blocked events that lacked a resource. An event that lacks a write entry reserved for a response waits
  // for the response.
  logic [Sources-1:0] lacking_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || u_dcu.u_scheduler.unblock_q) begin
      lacking_q <= '0;
    end else if (in_execute && u_dcu.row_q.effect != home_pkg::Stall && !u_dcu.execute) begin
      lacking_q <= lacking_q | (source & u_dcu.u_scheduler.blocked_d);
    end
  end
  `ASSERT(blocked_event_awaits_operation,
    lacking_q == '0 || u_dcu.u_scheduler.unblock_q || operation_outstanding || !u_dcu.rx_ready_o[1])
endmodule : dcu_proof
