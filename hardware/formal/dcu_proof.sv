// Proof that a unit blocks no response, and no other event for ever. Each step follows from the previous by induction.
//
// The only assumptions about the ROM's rows are those that crates/rtl/src/rom.rs verifies, so the proof covers every protocol.
// 1. Each event completes within a few cycles after it was picked (`done_soon`).
// 2. An idle unit picks an event if any is pending, and a response or a memory completion before all others
//    (`picks`, `responses_first`); the choice among equals is round-robin, as rr_pick_proof.sv proves.
// 3. A memory completion never stalls (`memory_goes`), so reads and writes end if memory answers.
// 4. A response stalls only if all write entries are in use (`lacks`), and no other event takes one while a response
//    is pending (`yields`).
// An event without a ROM row is dropped and reported; this ends when the slice accepts the report (`leaves_report`).
// 5. A stalled event is retried after a change, and until then an operation is outstanding that will cause
//    one (`blocked_response_waits_for`, `blocked_waits_for`).

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
  // Two circuits to the home; only messages of the first may wait; both carry payload.
  typedef enum logic [3:0] {
    Ask = 4'd0, Store = 4'd1, Back = 4'd2, Ack = 4'd3, Clean = 4'd4, Lock = 4'd5, Unlock = 4'd6, Data = 4'd7, Done = 4'd8
  } event_e;
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
    home_pkg::permission_e  from;
    home_pkg::permission_e  to;
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

  // Reset in the first cycle only; the directory is already empty.
  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;
  logic [1:0] sweep_q;
  always_ff @(posedge clk_i) sweep_q <= !rst_ni ? '0 : sweep_q + 2'(sweep_q != '1);

  logic [1:0]            rx_ready, tx_valid;
  logic                  local_ready, unlock_ready, answer_valid, rom_valid, read_valid, write_valid, idle;
  logic [5:0]            rom_addr;
  event_e                read_event, write_event, step_event;
  logic                  answer_unlock, answer_refused, drop_valid, drop_slot, write_bytes, read_slot, write_slot;
  logic [1:0]            tx_slot;
  logic [2:0]            answer_operation;
  logic [LineWidth-1:0]  answer_line, read_line, write_line, step_line;
  logic [1:0][LineWidth-1:0] tx_line;
  logic [1:0]            write_circuit, drop_circuit;
  send_e [1:0]           tx_send;
  logic                  step_valid, step_held, step_evict;
  state_e                step_state, step_next;
  home_pkg::effect_e     step_effect;
  row_t                  row;
  logic                  asked_q;
  logic [5:0]            addr_q;

  assign row = row_t'(row_i[$bits(row_t)-1:0]);

  home_pkg::stall_e unused_stall;
  home_pkg::permission_e unused_from, unused_to, unused_permission;
  logic             unused_evicted, unused_changes, unused_lost, unused_locks, unused_back;
  logic [LineWidth-1:0] unused_line, unused_dropped;
  logic             impossible_valid;
  event_e           unused_event;
  state_e           unused_state;

  dcu #(
    .Protocol   (Protocol),
    .state_e    (state_e),
    .event_e    (event_e),
    .send_e     (send_e),
    .row_t      (row_t),
    .TagWidth   (TagWidth),
    .SetWidth   (SetWidth),
    .Ways       (2),
    .WaysPerStep(2),
    .Reads      (1),
    .Writes     (1),
    .Locals     (1),
    .MaxDeferred    (1),
    .StoreSlots (1),
    .RecallDelayLog2   (0)
  ) u_dcu (
    .clk_i,
    .rst_ni,
    .sweep_valid_i     (sweep_q != '1),
    .sweep_addr_i      (1'(sweep_q)),
    .rx_valid_i        (rx_valid_i & rx_ready),
    .rx_ready_o        (rx_ready),
    .rx_event_i,
    .rx_line_i,
    .rx_slot_i,
    .local_valid_i,
    .local_ready_o     (local_ready),
    .local_operation_i,
    .local_event_i     (event_e'(4'd4 + 4'(local_operation_i))),
    .local_line_i,
    .locks_full_o      (unused_locks),
    .local_returned_o      (unused_back),
    .unlock_valid_i,
    .unlock_ready_o    (unlock_ready),
    .unlock_line_i,
    .local_rsp_valid_o    (answer_valid),
    .local_rsp_ready_i,
    .local_rsp_unlock_o   (answer_unlock),
    .local_rsp_refused_o  (answer_refused),
    .local_rsp_operation_o(answer_operation),
    .local_rsp_line_o     (answer_line),
    .rom_valid_o       (rom_valid),
    .rom_ready_i       (1'b1),
    .rom_addr_o        (rom_addr),
    .row_valid_i       (asked_q),
    .row_i             (row),
    .read_valid_o      (read_valid),
    .read_ready_i,
    .read_line_o       (read_line),
    .read_slot_o       (read_slot),
    .read_event_o      (read_event),
    .read_done_i,
    .read_lost_i,
    .write_valid_o     (write_valid),
    .write_ready_i,
    .write_line_o      (write_line),
    .write_slot_o      (write_slot),
    .write_event_o     (write_event),
    .write_circuit_o   (write_circuit),
    .write_payload_slot_o     (write_bytes),
    .write_done_i,
    .drop_valid_o      (drop_valid),
    .drop_circuit_o    (drop_circuit),
    .drop_slot_o       (drop_slot),
    .tx_valid_o        (tx_valid),
    .tx_ready_i,
    .tx_send_o         (tx_send),
    .tx_line_o         (tx_line),
    .tx_slot_o         (tx_slot),
    .tx_done_i,
    .unexpected_valid_o(impossible_valid),
    .unexpected_ready_i,
    .unexpected_event_o(unused_event),
    .unexpected_state_o(unused_state),
    .unexpected_line_o (unused_dropped),
    .step_valid_o      (step_valid),
    .step_blocked_o       (step_held),
    .step_evict_o      (step_evict),
    .step_event_o      (step_event),
    .step_state_o      (step_state),
    .step_effect_o     (step_effect),
    .step_next_o       (step_next),
    .step_line_o       (step_line),
    .stall_o           (unused_stall),
    .evicted_o         (unused_evicted),
    .change_valid_o    (unused_changes),
    .change_ready_i,
    .change_from_o   (unused_from),
    .change_to_o    (unused_to),
    .change_line_o     (unused_line),
    .change_lost_o     (unused_lost),
    .write_permission_o     (unused_permission),
    .idle_o            (idle)
  );

  // ------------------------------------------------------------------ inputs

  `ASSUME_OR(request, rx_event_i[0] <= 4'd1, ("no request"))
  `ASSUME_OR(response, rx_event_i[1] == 4'd2 || rx_event_i[1] == 4'd3, ("no response"))
  `ASSUME_OR(operation, local_operation_i <= 3'd1, ("no operation"))

  // ------------------------------------------------------------------ assumptions that hold for every ROM

  function automatic logic fits(input row_t row, input event_e event_id, input state_e state);
    logic of_request, of_response, of_local, of_memory;
    of_request  = event_id == Ask || event_id == Store;
    of_response = event_id == Back || event_id == Ack;
    of_local    = event_id == Clean || event_id == Lock;
    of_memory   = event_id == Data || event_id == Done;
    // Any event may be illegal.
    fits = row.effect == home_pkg::Never
        || (row.effect != home_pkg::Stall || of_request || of_local)
        && (row.effect != home_pkg::Refuse || of_local || event_id == Unlock)
        && (row.memory == home_pkg::MemoryNone || !of_memory)
        && (row.memory != home_pkg::MemoryRead || !of_response)
        && (!row.grant_valid || of_request || of_memory)
        && (of_request || of_local || state != S0 || row.next == S0);
  endfunction

  always_ff @(posedge clk_i) begin
    asked_q <= rst_ni && rom_valid;
    addr_q  <= rom_addr;
  end
  `ASSUME_OR(every_rom, !asked_q || fits(row, event_e'(addr_q[3:0]), state_e'(addr_q[5:4])), ("no such row"))

  // ------------------------------------------------------------------ invariants

  localparam int unsigned Sources = 8;
  logic [Sources-1:0] source;
  logic               sweeps, rests, reads, looks, asks, execs, seconds, reports, works, never;
  assign source  = u_dcu.source;
  assign sweeps  = u_dcu.step_q == 3'd0;
  assign rests   = u_dcu.step_q == 3'd1;
  assign reads   = u_dcu.step_q == 3'd2;
  assign looks   = u_dcu.step_q == 3'd3;
  assign asks    = u_dcu.step_q == 3'd4;
  assign execs   = u_dcu.step_q == 3'd5;
  assign seconds = u_dcu.step_q == 3'd6;
  assign reports = u_dcu.step_q == 3'd7;
  assign never   = u_dcu.row_q.effect == home_pkg::Never;
  assign works   = reads || looks || asks || execs || seconds;

  logic of_write, of_read, of_request, of_response, of_deferred, of_unlock, of_local, of_evict;
  assign {of_evict, of_local, of_unlock, of_deferred, of_response, of_request, of_read, of_write} = source;

  `ASSUME_OR(unlocks_what_is_locked, !execs || !of_unlock || u_dcu.row_q.effect != home_pkg::Take || u_dcu.u_locals.locks_q != '0,
    ("nothing is locked"))

  `ASSERT(a_step, sweeps || rests || works || reports)
  `ASSERT(a_source, !works || source != '0)
  `ASSERT(comes_by_its_circuit, (u_dcu.rx_ready_o[0] || u_dcu.u_messages.rx_q[0].event_id <= Store)
    && (u_dcu.rx_ready_o[1] || u_dcu.u_messages.rx_q[1].event_id == Back || u_dcu.u_messages.rx_q[1].event_id == Ack))
  `ASSERT(requests_wait, !u_dcu.u_messages.deferred_used_q || u_dcu.u_messages.deferred_q[0].event_id <= Store)
  `ASSERT(operations, u_dcu.local_ready_o || u_dcu.u_locals.request_event_q == Clean || u_dcu.u_locals.request_event_q == Lock)
  `ASSERT(event_of_source, !works || (of_write ? u_dcu.now.event_id == Done : of_read ? u_dcu.now.event_id == Data
    : of_response ? u_dcu.now.event_id == Back || u_dcu.now.event_id == Ack
    : of_request || of_deferred ? u_dcu.now.event_id <= Store : of_unlock ? u_dcu.now.event_id == Unlock
    : of_evict ? u_dcu.now.event_id == Clean : u_dcu.now.event_id == Clean || u_dcu.now.event_id == Lock))
  `ASSERT(source_is_there, !works || seconds || (!of_response || !u_dcu.rx_ready_o[1]) && (!of_request || !u_dcu.rx_ready_o[0])
    && (!of_local || !u_dcu.local_ready_o) && (!of_unlock || !u_dcu.unlock_ready_o) && (!of_deferred || u_dcu.u_messages.deferred_used_q) && (!of_evict || u_dcu.recall_used))
  `ASSERT(row_of_event, !works || !asked_q || u_dcu.asks_q || addr_q == {u_dcu.now.state, u_dcu.now.event_id})
  `ASSERT(not_held_is_first, !works || u_dcu.hit || u_dcu.now.state == S0)
  `ASSERT(row_known, !works || !u_dcu.known_q
    || fits(u_dcu.row_q, u_dcu.now.event_id, u_dcu.now.state) && u_dcu.row_stays_q == (u_dcu.row_q.next != S0)
       && u_dcu.row_reads_q == (u_dcu.row_q.memory == home_pkg::MemoryRead) && u_dcu.row_takes_q == (u_dcu.row_q.effect == home_pkg::Take))
  `ASSERT(known_when_done, !(execs || seconds) || u_dcu.known_q && !u_dcu.asks_q)
  `ASSERT(memory_needs_no_look, !(of_write || of_read) || !(reads || looks))

  // ------------------------------------------------------------------ 1: each event is done soon

  logic [3:0] since_q;
  always_ff @(posedge clk_i) since_q <= !rst_ni || !works ? '0 : since_q + 4'd1;
  `ASSERT(done_soon, !works || since_q <= 4'd6)
  // The cycle since the pick determines the step.
  `ASSERT(in_read, !reads || since_q == 4'd0 && u_dcu.asks_q && !u_dcu.known_q)
  `ASSERT(in_look, !looks
    || since_q == 4'd1 && !u_dcu.u_lookup.judges_q && u_dcu.u_lookup.group_q == '0 && asked_q && !u_dcu.asks_q && !u_dcu.known_q
    || since_q == 4'd2 && u_dcu.u_lookup.judges_q && u_dcu.u_lookup.judged_q == '0 && u_dcu.known_q && !u_dcu.asks_q)
  `ASSERT(in_ask, !asks || !u_dcu.known_q && (u_dcu.asks_q ? since_q == (of_read || of_write ? 4'd0 : 4'd3)
    : asked_q && since_q == (of_read || of_write ? 4'd1 : 4'd4)))
  `ASSERT(in_exec, !execs || since_q <= 4'd5)
  `ASSERT(in_second, !seconds || since_q <= 4'd6)
  `ASSERT(leaves_report, !reports || impossible_valid && (u_dcu.step_d == 3'd1) == unexpected_ready_i)
  // A dropped event has left its source.
  `ASSERT(drops, !execs || !never || (!of_response || u_dcu.u_messages.rx_used_d[1] == 1'b0) && (!of_request || u_dcu.u_messages.rx_used_d[0] == 1'b0)
    && (!of_deferred || !u_dcu.u_messages.deferred_used_d) && (!of_read || !u_dcu.u_reads.used_d) && (!of_write || !u_dcu.u_writes.used_d)
    && (!of_unlock || !u_dcu.u_locals.unlock_used_d) && (!of_local || !u_dcu.u_locals.request_used_d || u_dcu.locals_full))

  // ------------------------------------------------------------------ 2: an event is picked, responses first

  logic early_asks, late_asks;
  assign early_asks = (u_dcu.ask & u_dcu.Early & ~u_dcu.u_scheduler.blocked_q) != '0;
  assign late_asks  = (u_dcu.ask & ~u_dcu.Early & ~u_dcu.u_scheduler.blocked_q) != '0;
  `ASSERT(picks, !rests || (u_dcu.step_d != 3'd1) == (early_asks || late_asks))
  `ASSERT(responses_first, !rests || !early_asks || (u_dcu.u_scheduler.pick & u_dcu.Early) != '0)
  `ASSERT(picks_one_that_asks, !rests || (u_dcu.u_scheduler.pick & ~(u_dcu.ask & ~u_dcu.u_scheduler.blocked_q)) == '0)

  // ------------------------------------------------------------------ 3: memory completions never stall

  `ASSERT(memory_goes, !execs || !(of_write || of_read) || u_dcu.takes || never)

  // ------------------------------------------------------------------ 4: resources that a response may lack

  `ASSERT(lacks, !execs || !of_response || u_dcu.takes || never || u_dcu.row_q.memory == home_pkg::MemoryWrite && u_dcu.writes_full)
  logic response_was_q;
  always_ff @(posedge clk_i) response_was_q <= rst_ni && !u_dcu.rx_ready_o[1];
  `ASSERT(yields, !u_dcu.takes || of_response || of_write || of_read || !response_was_q
    || u_dcu.row_q.memory != home_pkg::MemoryWrite)

  // ------------------------------------------------------------------ 5: stalled events are retried

  logic something_ends;
  assign something_ends = u_dcu.u_reads.used_q || u_dcu.u_writes.used_q || u_dcu.u_locals.used_q || u_dcu.u_tx.immediate_q || u_dcu.u_locals.unlocking_q
    || u_dcu.u_locals.locks_q != '0 || u_dcu.u_messages.deferred_used_q || u_dcu.recall_used;
  `ASSERT(full_is_full, sweeps || (!u_dcu.writes_full || u_dcu.u_writes.used_q || u_dcu.u_scheduler.unblock_q)
    && (!u_dcu.reads_full || u_dcu.u_reads.used_q || u_dcu.u_scheduler.unblock_q)
    && (!u_dcu.locals_full || u_dcu.u_locals.used_q || u_dcu.u_scheduler.unblock_q)
    && (!u_dcu.deferred_full || u_dcu.u_messages.deferred_used_q || u_dcu.u_scheduler.unblock_q)
    && (!u_dcu.u_locals.locks_full_q || u_dcu.u_locals.locks_q != '0 || u_dcu.u_scheduler.unblock_q))
  `ASSERT(blocked_response_waits_for,
    !u_dcu.u_scheduler.blocked_q[3] || u_dcu.u_scheduler.unblock_q || u_dcu.u_writes.used_q)
  `ASSERT(blocked_is_there, !u_dcu.u_scheduler.blocked_q[3] || !u_dcu.rx_ready_o[1] || u_dcu.u_scheduler.unblock_q)
  `ASSERT(in_hand_is_not_blocked, !works || seconds || (source & u_dcu.u_scheduler.blocked_q) == '0)
  // Events that may wait but instead lacked a resource. An event that yielded waits for the response.
  logic [Sources-1:0] lacking_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || u_dcu.u_scheduler.unblock_q)                                    lacking_q <= '0;
    else if (execs && u_dcu.row_q.effect != home_pkg::Stall && !u_dcu.takes) lacking_q <= lacking_q | (source & u_dcu.u_scheduler.blocked_d);
  end
  `ASSERT(blocked_waits_for, lacking_q == '0 || u_dcu.u_scheduler.unblock_q || something_ends || !u_dcu.rx_ready_o[1])
endmodule : dcu_proof
