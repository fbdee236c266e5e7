// A directory controller unit: executes the protocol for the lines that belong to it, one event at a time.
//
// An event is picked (dcu_scheduler), its line is looked up in the directory (dcu_lookup), the protocol ROM returns the row,
// and the row is executed. Messages to the remote leave by their queues (dcu_tx). Longer operations are kept in entries
// while the unit continues: reads and writes of memory (dcu_accesses), local operations (dcu_locals), deferred requests
// (dcu_messages), and the recall that frees a way (dcu_recall). This module has the steps of an event and its outcome.
//
// An event that may not wait always finds an entry, so the unit blocks no response for ever:
// each entry holds at most one message to the remote and one answer to the device, and has room for them in
// the queues; and the ROM sends a forward only for a local operation in progress (see crates/rtl/src/rom.rs).
// An event that lacks an entry is retried after a change.
// An illegal event is dropped and reported: its resources are freed, and the line's state is unchanged.

`include "assertions.svh"

module dcu #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type                 state_e  = logic,
  parameter type                 event_e  = logic,
  parameter type                 send_e   = logic,
  parameter type                 row_t    = logic,
  parameter int unsigned         TagWidth    = 16,
  parameter int unsigned         SetWidth    = 7,
  parameter int unsigned         Ways        = 16,
  parameter int unsigned         WaysPerStep = 4,  // ways compared per cycle of a look-up
  parameter int unsigned         Reads       = 2,  // reads of memory in flight
  parameter int unsigned         Writes      = 2,  // writes of memory in flight
  parameter int unsigned         Locals      = 2,  // local operations in progress
  parameter int unsigned         MaxDeferred     = 2,  // deferred requests, and maximum number of locked lines
  parameter int unsigned         StoreSlots  = 2,  // payload slots per circuit whose messages may wait
  parameter int unsigned         RecallDelayLog2    = 8,  // recall delay: log2 of the cycles in which a full set may free a way

  localparam int unsigned NumRx      = int'(Protocol.rx_circuits),
  localparam int unsigned NumTx      = int'(Protocol.tx_circuits),
  localparam int unsigned EventWidth = $bits(event_e),
  localparam int unsigned StateWidth = $bits(state_e),
  localparam int unsigned LineWidth  = TagWidth + SetWidth,
  localparam int unsigned SlotWidth  = home_pkg::bits(StoreSlots),
  localparam int unsigned ReadWidth  = home_pkg::bits(Reads),
  localparam int unsigned WriteWidth = home_pkg::bits(Writes),
  localparam int unsigned Groups     = Ways / WaysPerStep,
  localparam int unsigned AddrWidth  = $clog2(2 ** SetWidth * Groups)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // After reset the directory is cleared, one word per cycle.
  input  logic                             sweep_valid_i,
  input  logic [AddrWidth-1:0]             sweep_addr_i,

  // Messages to the home, one stream per circuit. Their payload stays outside, in the given slot.
  input  logic [NumRx-1:0]                 rx_valid_i,
  output logic [NumRx-1:0]                 rx_ready_o,
  input  logic [NumRx-1:0][EventWidth-1:0] rx_event_i,
  input  logic [NumRx-1:0][LineWidth-1:0]  rx_line_i,
  input  logic [NumRx-1:0][SlotWidth-1:0]  rx_slot_i,

  // Local operations of the device, its unlocks, and the answers to both.
  input  logic                             local_valid_i,
  output logic                             local_ready_o,
  input  logic [2:0]                       local_operation_i,
  input  event_e                           local_event_i,     // the number of the operation among events
  input  logic [LineWidth-1:0]             local_line_i,
  output logic                             locks_full_o,      // no operation that takes a lock can proceed before an unlock
  output logic                             local_returned_o,      // so the current operation was returned in the cycle before
  input  logic                             unlock_valid_i,
  output logic                             unlock_ready_o,
  input  logic [LineWidth-1:0]             unlock_line_i,
  output logic                             local_rsp_valid_o,
  input  logic                             local_rsp_ready_i,
  output logic                             local_rsp_unlock_o,
  output logic                             local_rsp_refused_o,
  output logic [2:0]                       local_rsp_operation_o,
  output logic [LineWidth-1:0]             local_rsp_line_o,

  // The protocol ROM.
  output logic                             rom_valid_o,
  input  logic                             rom_ready_i,
  output logic [StateWidth+EventWidth-1:0] rom_addr_o,
  input  logic                             row_valid_i,
  input  row_t                             row_i,

  // Reads of memory: request, and later completion. The bytes stay outside, in the slot of the read.
  output logic                             read_valid_o,
  input  logic                             read_ready_i,
  output logic [LineWidth-1:0]             read_line_o,
  output logic [ReadWidth-1:0]             read_slot_o,
  output event_e                           read_event_o,
  input  logic [Reads-1:0]                 read_done_i,
  input  logic [Reads-1:0]                 read_lost_i,   // lost: its entry is freed, its line waits for ever

  // Writes of memory: request, and later completion. The bytes are those of a slot of a circuit.
  output logic                             write_valid_o,
  input  logic                             write_ready_i,
  output logic [LineWidth-1:0]             write_line_o,
  output logic [WriteWidth-1:0]            write_slot_o,
  output event_e                           write_event_o,
  output home_pkg::permission_e                 write_permission_o,   // permission that the remote keeps
  output logic [1:0]                       write_circuit_o,
  output logic [SlotWidth-1:0]             write_payload_slot_o,
  input  logic [Writes-1:0]                write_done_i,

  // Slot of a circuit whose payload is not needed.
  output logic                             drop_valid_o,
  output logic [1:0]                       drop_circuit_o,
  output logic [SlotWidth-1:0]             drop_slot_o,

  // Messages to the remote, by circuit, in order per circuit. If they carry the line, it is in the slot of the read,
  // which is free again once its bytes have left.
  output logic  [NumTx-1:0]                tx_valid_o,
  input  logic  [NumTx-1:0]                tx_ready_i,
  output send_e [NumTx-1:0]                tx_send_o,
  output logic  [NumTx-1:0][LineWidth-1:0] tx_line_o,
  output logic  [NumTx-1:0][ReadWidth-1:0] tx_slot_o,
  input  logic [Reads-1:0]                 tx_done_i,

  // An event without a ROM row was dropped; the report stays until it is taken.
  output logic                             unexpected_valid_o,
  input  logic                             unexpected_ready_i,
  output event_e                           unexpected_event_o,
  output state_e                           unexpected_state_o,
  output logic [LineWidth-1:0]             unexpected_line_o,

  // The step of this cycle.
  output logic                             step_valid_o,
  output logic                             step_blocked_o,
  output logic                             step_evict_o,
  output event_e                           step_event_o,
  output state_e                           step_state_o,
  output home_pkg::effect_e                step_effect_o,
  output state_e                           step_next_o,
  output logic [LineWidth-1:0]             step_line_o,

  // For counters: the step of the cycle before.
  output home_pkg::stall_e                 stall_o,
  output logic                             evicted_o,

  // Change of the remote's permission for a line. A change is lost while the previous one waits.
  output logic                             change_valid_o,
  input  logic                             change_ready_i,
  output home_pkg::permission_e                 change_from_o,
  output home_pkg::permission_e                 change_to_o,
  output logic [LineWidth-1:0]             change_line_o,
  output logic                             change_lost_o,   // in the cycle before

  // In the cycle before, no event was in progress, queued or waiting.
  output logic                             idle_o
);
  import home_pkg::*;

  localparam int unsigned WayWidth = bits(Ways);

  // Ways are counted in eight bits.
  if (Ways % WaysPerStep != 0 || 2 ** $clog2(Ways) != Ways || 2 ** $clog2(WaysPerStep) != WaysPerStep || Ways > 128) begin : gen_invalid_ways
    $error("dcu: Ways and WaysPerStep must be powers of two up to 128, and Ways a multiple of WaysPerStep");
  end
  if (MaxDeferred >= Ways || MaxDeferred < 1) begin : gen_invalid_max_deferred
    $error("dcu: MaxDeferred must be at least 1 and less than Ways: a locked line cannot make room for another");
  end
  if (StoreSlots < MaxDeferred) begin : gen_invalid_slots
    $error("dcu: StoreSlots must be at least MaxDeferred: each deferred request may have bytes");
  end
  if (RecallDelayLog2 > 32) begin : gen_recall_delay_too_large
    $error("dcu: RecallDelayLog2 must be at most 32");
  end
  if (Reads < 1 || Writes < 1 || Locals < 1 || SetWidth < 1 || TagWidth < 1) begin : gen_invalid_entries
    $error("dcu: Reads, Writes, Locals, SetWidth and TagWidth must be at least 1");
  end

  // ------------------------------------------------------------------ types and signals

  // An event with its context.
  typedef struct packed {
    event_e               event_id;
    logic [LineWidth-1:0] line;
    logic [1:0]           circuit;  // and slot: location of the payload, if it is a message
    logic [SlotWidth-1:0] slot;
    state_e               state;    // and way: known in advance for memory completions
    logic [WayWidth-1:0]  way;
  } trigger_t;

  typedef enum logic [2:0] {
    Sweep,  // the directory is cleared after reset
    Idle,   // the next event is picked
    Read,   // the first group of ways is read; the ROM is read as for a miss
    Look,   // a group of ways is compared, while the previous one is evaluated
    Ask,    // the ROM is read, and returns the row
    Exec,   // the row is executed
    Second, // a second message is put into its queue
    Report  // a dropped event is reported
  } step_e;

  // Sources of events.
  localparam int unsigned FromWrite    = 0;
  localparam int unsigned FromRead     = FromWrite + Writes;
  localparam int unsigned FromRx       = FromRead + Reads;
  localparam int unsigned FromDeferred = FromRx + NumRx;
  localparam int unsigned FromUnlock   = FromDeferred + MaxDeferred;
  localparam int unsigned FromLocal    = FromUnlock + 1;
  localparam int unsigned FromRecall   = FromLocal + 1;
  localparam int unsigned Sources      = FromRecall + 1;
  // Events that may not wait: completions of memory and responses.
  localparam logic [NumRx-1:0]   Responses = ~Protocol.rx_waits[NumRx-1:0];
  localparam logic [Sources-1:0] Early     = Sources'({Responses, {(Reads + Writes){1'b1}}});

  typedef struct packed {
    event_e               event_id;
    permission_e          permission;  // permission that the remote keeps
    logic [1:0]           circuit;     // and slot: location of the payload
    logic [SlotWidth-1:0] slot;
  } write_t;

  step_e    step_d, step_q;
  trigger_t now;                     // the current event
  logic     hit, room;               // the directory holds its line; its set has a free way
  logic     found, missed, vacated;  // results of the look-up
  logic     pick_valid, pick_of_memory;
  trigger_t picked;

  // The ROM's row.
  row_t     row_q;
  logic     row_stays_q;             // its next state is not the initial one
  logic     row_reads_q;             // it begins a read
  logic     row_takes_q;             // its effect is `Take`
  logic     is_refused;              // it has a refusal, or is illegal
  logic     known_d, known_q;        // `row_q` is the row of the current state and event
  logic     asks_d, asks_q;          // the ROM is read

  // Outcome of the event.
  logic     takes, drops;            // the row is executed; or the event is dropped silently
  logic     ends;                    // so the event leaves its source
  logic     reads, writes, grants;   // the executed row begins a read or a write of memory; it sends a grant
  logic     refuses, returns;        // a refusal is reported to the device; a local operation returns to its queue to wait for a lock
  logic     defers, skips, blocks;   // a message is deferred; a recall tries another way; the event lacks a resource

  // Resources that the event may lack.
  logic     needs_room, has_entries, lacks_lock, lacks_tx;
  logic     reads_full, writes_full, locals_full, deferred_full;
  logic     unblock;                 // one of them has changed
  logic     yields_q;                // a response is pending, and the current event is none

  // The sources of events, and that of the current event.
  logic     [Sources-1:0]  ask;
  trigger_t [Sources-1:0]  offered;
  logic     [Sources-1:0]  source;
  logic                    of_message, of_deferred, of_unlock, of_device, of_recall, of_local, may_wait;
  logic                    recall_used, recall_last;
  logic     [WayWidth-1:0] recall_way;
  logic                    reads_idle, writes_idle, messages_idle, locals_idle, tx_idle;
  write_t                  write_request;
  // An answer or a message has left, and the entries whose message it was.
  logic                    answered, tx_left;
  logic     [Reads-1:0]    left_reads;
  logic     [Writes-1:0]   left_writes;

  // ------------------------------------------------------------------ the current event

  assign of_message  = source[FromRx+:NumRx] != '0;
  assign of_deferred = source[FromDeferred+:MaxDeferred] != '0;
  assign of_unlock   = source[FromUnlock];
  assign of_device   = source[FromLocal];
  assign of_recall   = source[FromRecall];
  assign of_local    = of_device || of_recall;
  assign may_wait    = (source & Early) == '0;

  dcu_scheduler #(
    .trigger_t(trigger_t),
    .Sources  (Sources),
    .Memory   (Writes + Reads),
    .Early    (Early),
    .WayWidth (WayWidth)
  ) u_scheduler (
    .clk_i,
    .rst_ni,
    .ask_i       (ask),
    .offered_i   (offered),
    .recall_way_i(recall_way),
    .idle_i      (step_q == Idle),
    .valid_o     (pick_valid),
    .of_memory_o (pick_of_memory),
    .picked_o    (picked),
    .source_o    (source),
    .block_i     (blocks),
    .unblock_i   (unblock)
  );

  dcu_lookup #(
    .trigger_t  (trigger_t),
    .state_e    (state_e),
    .TagWidth   (TagWidth),
    .SetWidth   (SetWidth),
    .Ways       (Ways),
    .WaysPerStep(WaysPerStep)
  ) u_lookup (
    .clk_i,
    .clear_i     (step_q == Sweep),
    .clear_addr_i(sweep_addr_i),
    .idle_i      (step_q == Idle),
    .read_i      (step_q == Read),
    .look_i      (step_q == Look),
    .picked_i    (picked),
    .of_memory_i (pick_of_memory),
    .of_recall_i (of_recall),
    .found_o     (found),
    .missed_o    (missed),
    .vacated_o   (vacated),
    .wr_en_i     (takes && (hit || row_stays_q)),
    .wr_held_i   (row_stays_q),
    .wr_state_i  (row_q.next),
    .now_o       (now),
    .hit_o       (hit),
    .room_o      (room)
  );

  assign rom_valid_o = asks_q;
  assign rom_addr_o  = {now.state, now.event_id};

  always_comb begin
    step_d  = step_q;
    // A row that arrives while the ROM is read again belongs to a guess.
    known_d = known_q || row_valid_i && !asks_q;
    asks_d  = asks_q && !rom_ready_i;
    case (step_q)
      Sweep: if (!sweep_valid_i) step_d = Idle;
      Idle: begin
        known_d = 1'b0;
        // For other events than memory completions this is a guess: most lines are not held, and then the row is there in time.
        asks_d  = pick_valid;
        if (pick_valid) step_d = pick_of_memory ? Ask : Read;
      end
      Read: step_d = Look;
      Look: begin
        if (found) begin
          step_d  = Ask;
          asks_d  = 1'b1;
          known_d = 1'b0;
        end else if (vacated) begin
          step_d  = Idle;
          asks_d  = 1'b0;
          known_d = 1'b0;
        end else if (missed) begin
          step_d  = known_d ? Exec : Ask;
        end
      end
      Ask: if (known_d) step_d = Exec;
      Exec: begin
        step_d = Idle;
        if (takes && row_q.grant_valid && row_q.forward_valid) step_d = Second;
        if (row_q.effect == Never && (!of_device || refuses)) step_d = Report;
      end
      Second: step_d = Idle;
      Report: if (unexpected_ready_i) step_d = Idle;
      default: step_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q <= Sweep;
      asks_q <= 1'b0;
    end else begin
      step_q <= step_d;
      asks_q <= asks_d;
    end
  end

  always_ff @(posedge clk_i) begin
    known_q <= known_d;
    if (row_valid_i && !asks_q) begin
      row_q       <= row_i;
      row_stays_q <= row_i.next != state_e'(0);
      row_reads_q <= row_i.memory == MemoryRead;
      row_takes_q <= row_i.effect == Take;
    end
  end

  // ------------------------------------------------------------------ its outcome

  assign needs_room = !hit && row_stays_q && !room;
  assign is_refused = row_q.effect == Refuse || row_q.effect == Never;
  // A response may lack the entry of a write. No other event takes one while a response is pending: otherwise others could
  // take it before the response every time.
  assign has_entries = (!row_reads_q || !reads_full)
                    && (row_q.memory != MemoryWrite || !writes_full && !yields_q)
                    && (!of_local || !locals_full)
                    && !lacks_lock
                    && !lacks_tx
                    && !needs_room;
  assign takes      = step_q == Exec && row_takes_q && has_entries;
  // The device gets an answer even to an illegal request. The directory itself asks again.
  assign refuses    = step_q == Exec && is_refused && (of_device ? !locals_full : of_unlock);
  assign returns    = step_q == Exec && row_takes_q && lacks_lock;
  assign drops      = step_q == Exec && row_q.effect == Never && !of_local && !of_unlock;
  assign ends       = takes || drops;
  assign reads      = takes && row_q.memory == MemoryRead;
  assign writes     = takes && row_q.memory == MemoryWrite;
  assign grants     = takes && row_q.grant_valid;

  always_comb begin
    {skips, defers, blocks} = '0;
    if (step_q == Exec && !ends && !refuses && !returns) begin
      if (of_recall && row_q.effect != Take) begin
        skips  = 1'b1;
        blocks = recall_last;
      end else if ((row_q.effect == Stall || needs_room) && (of_message && !deferred_full || of_deferred)) begin
        defers = 1'b1;
      end else begin
        blocks = 1'b1;
      end
    end
  end

  assign unblock = ends || vacated || read_lost_i != '0 || tx_done_i != '0 || tx_left || answered;

  always_ff @(posedge clk_i) yields_q <= (ask[FromRx+:NumRx] & Responses) != '0 && may_wait;

  // ------------------------------------------------------------------ sources of events, and outputs

  dcu_accesses #(
    .trigger_t(trigger_t),
    .event_e  (event_e),
    .state_e  (state_e),
    .request_t(event_e),
    .Event    (int'(Protocol.memory_data)),
    .Size     (Reads),
    .LineWidth(LineWidth),
    .SetWidth (SetWidth),
    .WayWidth (WayWidth)
  ) u_reads (
    .clk_i,
    .rst_ni,
    .done_i         (read_done_i),
    .ask_o          (ask[FromRead+:Reads]),
    .offered_o      (offered[FromRead+:Reads]),
    .source_i       (source[FromRead+:Reads]),
    .ends_i         (ends),
    .grants_i       (grants),
    .free_i         (read_lost_i | tx_done_i | left_reads),
    .line_i         (now.line),
    .way_i          (now.way),
    .hit_i          (hit),
    .takes_i        (takes),
    .next_i         (row_q.next),
    .begins_i       (reads),
    .request_i      (now.event_id),
    .full_o         (reads_full),
    .request_valid_o(read_valid_o),
    .request_ready_i(read_ready_i),
    .request_line_o (read_line_o),
    .request_entry_o(read_slot_o),
    .request_o      (read_event_o),
    .idle_o         (reads_idle)
  );

  dcu_accesses #(
    .trigger_t(trigger_t),
    .event_e  (event_e),
    .state_e  (state_e),
    .request_t(write_t),
    .Event    (int'(Protocol.memory_done)),
    .Size     (Writes),
    .LineWidth(LineWidth),
    .SetWidth (SetWidth),
    .WayWidth (WayWidth)
  ) u_writes (
    .clk_i,
    .rst_ni,
    .done_i         (write_done_i),
    .ask_o          (ask[FromWrite+:Writes]),
    .offered_o      (offered[FromWrite+:Writes]),
    .source_i       (source[FromWrite+:Writes]),
    .ends_i         (ends),
    .grants_i       (grants),
    .free_i         (left_writes),
    .line_i         (now.line),
    .way_i          (now.way),
    .hit_i          (hit),
    .takes_i        (takes),
    .next_i         (row_q.next),
    .begins_i       (writes),
    .request_i      ('{now.event_id, row_q.to, now.circuit, now.slot}),
    .full_o         (writes_full),
    .request_valid_o(write_valid_o),
    .request_ready_i(write_ready_i),
    .request_line_o (write_line_o),
    .request_entry_o(write_slot_o),
    .request_o      (write_request),
    .idle_o         (writes_idle)
  );

  assign write_event_o        = write_request.event_id;
  assign write_permission_o   = write_request.permission;
  assign write_circuit_o      = write_request.circuit;
  assign write_payload_slot_o = write_request.slot;

  dcu_messages #(
    .Protocol (Protocol),
    .trigger_t(trigger_t),
    .event_e  (event_e),
    .state_e  (state_e),
    .MaxDeferred  (MaxDeferred),
    .LineWidth(LineWidth),
    .SetWidth (SetWidth),
    .SlotWidth(SlotWidth)
  ) u_messages (
    .clk_i,
    .rst_ni,
    .rx_valid_i,
    .rx_ready_o,
    .rx_event_i,
    .rx_line_i,
    .rx_slot_i,
    .ask_o         (ask[FromRx+:NumRx+MaxDeferred]),
    .offered_o     (offered[FromRx+:NumRx+MaxDeferred]),
    .source_i      (source[FromRx+:NumRx+MaxDeferred]),
    .event_i       (now.event_id),
    .line_i        (now.line),
    .circuit_i     (now.circuit),
    .slot_i        (now.slot),
    .ends_i        (ends),
    .takes_i       (takes),
    .initial_i     (!row_stays_q),
    .writes_i      (writes),
    .vacated_i     (vacated),
    .defers_i      (defers),
    .needs_room_i  (needs_room),
    .full_o        (deferred_full),
    .drop_valid_o,
    .drop_circuit_o,
    .drop_slot_o,
    .idle_o        (messages_idle)
  );

  dcu_locals #(
    .Protocol (Protocol),
    .trigger_t(trigger_t),
    .event_e  (event_e),
    .state_e  (state_e),
    .Locals   (Locals),
    .Locks    (MaxDeferred),
    .LineWidth(LineWidth),
    .SetWidth (SetWidth),
    .WayWidth (WayWidth)
  ) u_locals (
    .clk_i,
    .rst_ni,
    .local_valid_i,
    .local_ready_o,
    .local_operation_i,
    .local_event_i,
    .local_line_i,
    .unlock_valid_i,
    .unlock_ready_o,
    .unlock_line_i,
    .ask_o             (ask[FromUnlock+:2]),
    .offered_o         (offered[FromUnlock+:2]),
    .of_unlock_i       (of_unlock),
    .of_device_i       (of_device),
    .of_recall_i       (of_recall),
    .line_i            (now.line),
    .way_i             (now.way),
    .hit_i             (hit),
    .takes_i           (takes),
    .acknowledge_i     (row_q.acknowledge),
    .is_refused_i      (is_refused),
    .refuses_i         (refuses),
    .returns_i         (returns),
    .full_o            (locals_full),
    .locks_full_o,
    .lacks_lock_o      (lacks_lock),
    .local_rsp_valid_o,
    .local_rsp_ready_i,
    .local_rsp_unlock_o,
    .local_rsp_refused_o,
    .local_rsp_operation_o,
    .local_rsp_line_o,
    .answered_o        (answered),
    .idle_o            (locals_idle)
  );

  dcu_recall #(
    .trigger_t(trigger_t),
    .event_e  (event_e),
    .state_e  (state_e),
    .Event    (int'(Protocol.evict)),
    .LineWidth(LineWidth),
    .SetWidth (SetWidth),
    .Ways     (Ways),
    .RecallDelayLog2 (RecallDelayLog2)
  ) u_recall (
    .clk_i,
    .rst_ni,
    .ask_o     (ask[FromRecall]),
    .offered_o (offered[FromRecall]),
    .way_o     (recall_way),
    .used_o    (recall_used),
    .last_o    (recall_last),
    .set_i     (now.line[SetWidth-1:0]),
    .needs_i   (step_q == Exec && row_q.effect == Take && needs_room),
    .recalled_i(takes && of_recall),
    .frees_i   (takes && hit && !row_stays_q),
    .vacated_i (vacated),
    .skips_i   (skips)
  );

  dcu_tx #(
    .Protocol (Protocol),
    .send_e   (send_e),
    .Reads    (Reads),
    .Writes   (Writes),
    .Forwards (Locals),
    .LineWidth(LineWidth)
  ) u_tx (
    .clk_i,
    .rst_ni,
    .takes_i        (takes),
    .second_i       (step_q == Second),
    .grant_valid_i  (row_q.grant_valid),
    .grant_i        (row_q.grant),
    .forward_valid_i(row_q.forward_valid),
    .forward_i      (row_q.forward),
    .line_i         (now.line),
    .of_reads_i     (source[FromRead+:Reads]),
    .of_writes_i    (source[FromWrite+:Writes]),
    .lacks_room_o   (lacks_tx),
    .tx_valid_o,
    .tx_ready_i,
    .tx_send_o,
    .tx_line_o,
    .tx_slot_o,
    .left_o         (tx_left),
    .left_reads_o   (left_reads),
    .left_writes_o  (left_writes),
    .idle_o         (tx_idle)
  );

  // ------------------------------------------------------------------ observers and assertions

  assign step_valid_o  = step_q == Exec;
  assign step_blocked_o   = row_q.effect == Take && !takes
                      || row_q.effect == Refuse && !refuses
                      || row_q.effect == Never && of_device && !refuses;
  assign step_evict_o  = of_recall;
  assign step_event_o  = now.event_id;
  assign step_state_o  = now.state;
  assign step_effect_o = row_q.effect;
  assign step_next_o   = row_q.next;
  assign step_line_o   = now.line;

  assign unexpected_valid_o = step_q == Report;
  assign unexpected_event_o = now.event_id;
  assign unexpected_state_o = now.state;
  assign unexpected_line_o  = now.line;

  logic changes, change_waits;
  assign changes      = takes && row_q.from != row_q.to;
  assign change_waits = change_valid_o && !change_ready_i;

  always_ff @(posedge clk_i) begin
    change_valid_o <= rst_ni && (changes || change_waits);
    change_lost_o  <= rst_ni && changes && change_waits;
  end
  always_ff @(posedge clk_i) begin
    if (!change_waits) begin
      change_from_o <= row_q.from;
      change_to_o   <= row_q.to;
      change_line_o <= now.line;
    end
  end

  always_ff @(posedge clk_i) begin
    evicted_o    <= rst_ni && takes && of_recall;
    local_returned_o <= rst_ni && returns;
    if (!rst_ni || step_q != Exec || takes)           stall_o <= StallNone;
    else if (refuses || drops)                        stall_o <= StallNone;
    else if (of_device && is_refused)                 stall_o <= StallLocal;
    else if (row_q.effect != Take)                    stall_o <= StallLine;
    else if (needs_room)                              stall_o <= StallRoom;
    else if (row_reads_q && reads_full)               stall_o <= StallRead;
    else if (of_local && (locals_full || lacks_lock)) stall_o <= StallLocal;
    else if (lacks_tx)                                stall_o <= StallSend;
    else                                              stall_o <= StallWrite;
  end

  always_ff @(posedge clk_i) begin
    idle_o <= step_q == Idle && reads_idle && writes_idle && messages_idle && locals_idle && tx_idle && !recall_used;
  end

  `NOTICE_OR(event_expected, step_q != Exec || row_q.effect != Never,
    ("dcu: the ROM has no row for event %0d in state %0d", now.event_id, now.state))
  `ASSERT(leaves_what_may_wait,
    step_q != Exec || row_q.effect != Stall || of_local || (of_message && may_wait) || of_deferred)
  `ASSERT(refuses_what_is_the_device_s, step_q != Exec || row_q.effect != Refuse || of_local || of_unlock)
endmodule : dcu
