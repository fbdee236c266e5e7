// A directory controller unit: executes the protocol for the lines that belong to it, one event at a time.
//
// An event is picked, its line is looked up in the directory, the protocol ROM returns the row, and the row is executed.
// Longer operations are kept in entries while the unit continues: reads and writes of memory, local operations in progress,
// and deferred requests. Responses come before requests.
//
// An event that may not wait always finds an entry, so the unit blocks no response for ever:
// each entry holds at most one message to the remote and one answer to the device, and has room for them in
// the queues here; and the ROM sends a forward only for a local operation in progress (see crates/rtl/src/rom.rs).
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
  parameter int unsigned         WaysPerStep = 4,      // ways compared per cycle of a look-up
  parameter int unsigned         Reads       = 2,      // reads of memory in flight
  parameter int unsigned         Writes      = 2,      // writes of memory in flight
  parameter int unsigned         Locals      = 2,      // local operations in progress
  parameter int unsigned         MaxDeferred = 2,      // deferred requests, and maximum number of locked lines
  parameter int unsigned         StoreSlots  = 2,      // payload slots per circuit whose messages may wait
  parameter int unsigned         RecallDelayLog2 = 8,  // recall delay: log2 of the cycles in which a full set may free a way

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
  output logic                             locks_full_o,          // no operation that takes a lock can proceed before an unlock
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
  output home_pkg::permission_e            write_permission_o,   // permission that the remote keeps
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
  output home_pkg::permission_e            change_from_o,
  output home_pkg::permission_e            change_to_o,
  output logic [LineWidth-1:0]             change_line_o,
  output logic                             change_lost_o,   // in the cycle before

  // In the cycle before, no event was in progress, queued or waiting.
  output logic                             idle_o
);
  import home_pkg::*;

  localparam int unsigned WayWidth     = bits(Ways);
  localparam int unsigned PlaceWidth   = bits(WaysPerStep);
  localparam int unsigned GroupWidth   = bits(Groups);
  localparam int unsigned LocalWidth   = bits(Locals);
  localparam int unsigned WaitingWidth = bits(MaxDeferred);
  localparam int unsigned LockWidth    = bits(MaxDeferred + 1);
  localparam int unsigned LocalsWidth  = bits(int'(Protocol.locals));   // width of a local operation's number
  // One grant per read and write, and one for a request that is answered at once; one forward per local operation.
  localparam int unsigned TxGrants     = Reads + Writes + 1;
  localparam int unsigned TxForwards   = Locals;
  localparam int unsigned AnswerDepth  = 2 ** $clog2(Locals + 1);
  localparam int unsigned ReadDepth    = 2 ** $clog2(Reads);
  localparam int unsigned WriteDepth   = 2 ** $clog2(Writes);

  // Ways are counted in eight bits.
  if (Ways % WaysPerStep != 0 || 2 ** $clog2(Ways) != Ways || 2 ** $clog2(WaysPerStep) != WaysPerStep || Ways > 128) begin : gen_wrong_ways
    $error("dcu: Ways and WaysPerStep must be powers of two up to 128, and Ways a multiple of WaysPerStep");
  end
  if (MaxDeferred >= Ways || MaxDeferred < 1) begin : gen_wrong_waiting
    $error("dcu: MaxDeferred must be at least 1 and less than Ways: a locked line cannot make room for another");
  end
  if (StoreSlots < MaxDeferred) begin : gen_wrong_slots
    $error("dcu: StoreSlots must be at least MaxDeferred: each request that is set aside may have bytes");
  end
  if (RecallDelayLog2 > 32) begin : gen_wrong_patience
    $error("dcu: RecallDelayLog2 must be at most 32");
  end
  if (Reads < 1 || Writes < 1 || Locals < 1 || SetWidth < 1 || TagWidth < 1) begin : gen_wrong_places
    $error("dcu: Reads, Writes, Locals, SetWidth and TagWidth must be at least 1");
  end

  // ------------------------------------------------------------------ stored state

  // An event and its context.
  typedef struct packed {
    event_e               happened;
    logic [LineWidth-1:0] line;
    logic [1:0]           circuit;  // and slot: location of the payload, if it is a message
    logic [SlotWidth-1:0] slot;
    state_e               state;    // and way: known in advance for memory completions
    logic [WayWidth-1:0]  way;
  } occasion_t;

  // A line with an outstanding memory operation. Its state is that of the directory.
  typedef struct packed {
    logic                 done;     // memory has completed it, and the unit has not yet handled the completion
    logic [LineWidth-1:0] line;
    logic [WayWidth-1:0]  way;
    state_e               state;
  } operation_t;

  typedef struct packed {
    logic                 answered;
    logic                 evict;    // issued by the directory itself
    logic [LocalsWidth-1:0] operation;
    logic [SetWidth-1:0]  in_set;   // position of the line in the directory
    logic [WayWidth-1:0]  way;
  } local_t;

  typedef struct packed {
    logic                 ready;    // a line of its set has changed state
    logic                 room;     // it waits for a way of the directory
    event_e               happened;
    logic [LineWidth-1:0] line;
    logic [1:0]           circuit;
    logic [SlotWidth-1:0] slot;
  } waiting_t;

  // Entry to notify once a message to the remote has left.
  typedef enum logic [1:0] {
    TxForward,    // none: the response to it completes the operation
    TxRead,       // the read whose bytes it carries
    TxWrite,      // the write whose completion it reports
    TxImmediate
  } tx_of_e;

  typedef struct packed {
    send_e                send;
    logic [LineWidth-1:0] line;
    tx_of_e               of;
    logic [ReadWidth-1:0] read;
    logic [WriteWidth-1:0] write;
  } tx_t;

  typedef struct packed {
    logic                  unlock;
    logic                  refused;
    logic [LocalsWidth-1:0] operation;
    logic [LineWidth-1:0]  line;
    logic [LocalWidth-1:0] place;
  } answer_t;

  operation_t [Reads-1:0]   read_d, read_q;
  logic       [Reads-1:0]   read_used_d, read_used_q;
  operation_t [Writes-1:0]  write_d, write_q;
  logic       [Writes-1:0]  write_used_d, write_used_q;
  local_t     [Locals-1:0]  local_d, local_q;
  logic       [Locals-1:0]  local_used_d, local_used_q;
  waiting_t   [MaxDeferred-1:0] waiting_d, waiting_q;
  logic       [MaxDeferred-1:0] waiting_used_d, waiting_used_q;
  logic                     immediate_d, immediate_q;          // a message sent without a memory operation is still queued
  logic                     unlocking_d, unlocking_q;          // the answer to an unlock is still queued
  logic [LockWidth-1:0]     locks_d, locks_q;                  // lines locked or about to be

  // Received events that were not yet picked.
  occasion_t [NumRx-1:0]    rx_q;
  logic      [NumRx-1:0]    rx_used_d, rx_used_q;
  logic                     request_used_d, request_used_q;
  logic [LocalsWidth-1:0]   request_operation_q;
  event_e                   request_event_q;
  logic                     request_locks_q;
  logic [LineWidth-1:0]     request_line_q;
  logic                     unlock_used_d, unlock_used_q;
  logic [LineWidth-1:0]     unlock_line_q;

  // A way that the directory is to free.
  logic                     evict_d, evict_q;
  logic [SetWidth-1:0]      evict_set_d, evict_set_q;
  logic [WayWidth-1:0]      evict_way_d, evict_way_q;
  logic [WayWidth-1:0]      evict_tries_d, evict_tries_q;
  // A remote cache with the directory's sets evicts a line when it requests another; the eviction message may arrive later.
  // So the directory delays the recall of a line that the remote may still use.
  logic [RecallDelayLog2:0] patience_q;

  // ------------------------------------------------------------------ choice of the next event

  localparam int unsigned FromWrite   = 0;
  localparam int unsigned FromRead    = FromWrite + Writes;
  localparam int unsigned FromRx      = FromRead + Reads;
  localparam int unsigned FromWaiting = FromRx + NumRx;
  localparam int unsigned FromUnlock  = FromWaiting + MaxDeferred;
  localparam int unsigned FromLocal   = FromUnlock + 1;
  localparam int unsigned FromEvict   = FromLocal + 1;
  localparam int unsigned Sources     = FromEvict + 1;
  // The sources that are messages.
  localparam logic [Sources-1:0] SourcesRx = Sources'((2 ** NumRx - 1) << FromRx);

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

  step_e                   step_d, step_q;
  logic [Sources-1:0]      ask, early, ask_early, ask_late, pick_early, pick_late, pick;
  logic [bits(Sources)-1:0] unused_early, unused_late;
  logic [Sources-1:0]      blocked_d, blocked_q;  // tried, and lacked a resource
  logic [Sources-1:0]      source_d, source_q;    // source of the current event
  occasion_t               picked_early, picked_late, picked, now_d, now_q;
  occasion_t [Sources-1:0] offered;

  always_comb begin
    for (int unsigned i = 0; i < Writes; i++) begin
      ask[FromWrite+i]     = write_used_q[i] && write_q[i].done;
      early[FromWrite+i]   = 1'b1;
      offered[FromWrite+i] = '{event_e'(Protocol.memory_done), write_q[i].line, 2'd0, '0, write_q[i].state, write_q[i].way};
    end
    for (int unsigned i = 0; i < Reads; i++) begin
      ask[FromRead+i]     = read_used_q[i] && read_q[i].done;
      early[FromRead+i]   = 1'b1;
      offered[FromRead+i] = '{event_e'(Protocol.memory_data), read_q[i].line, 2'd0, '0, read_q[i].state, read_q[i].way};
    end
    for (int unsigned i = 0; i < NumRx; i++) begin
      ask[FromRx+i]     = rx_used_q[i];
      early[FromRx+i]   = !Protocol.rx_waits[i];
      offered[FromRx+i] = rx_q[i];
    end
    for (int unsigned i = 0; i < MaxDeferred; i++) begin
      ask[FromWaiting+i]     = waiting_used_q[i] && waiting_q[i].ready;
      early[FromWaiting+i]   = 1'b0;
      offered[FromWaiting+i] = '{waiting_q[i].happened, waiting_q[i].line, waiting_q[i].circuit, waiting_q[i].slot, state_e'(0), '0};
    end
    ask[FromUnlock]     = unlock_used_q && !unlocking_q;
    early[FromUnlock]   = 1'b0;
    offered[FromUnlock] = '{event_e'(Protocol.unlock), unlock_line_q, 2'd0, '0, state_e'(0), '0};
    ask[FromLocal]      = request_used_q;
    early[FromLocal]    = 1'b0;
    offered[FromLocal]  = '{request_event_q, request_line_q, 2'd0, '0, state_e'(0), '0};
    ask[FromEvict]      = evict_q && patience_q[RecallDelayLog2];
    early[FromEvict]    = 1'b0;
    offered[FromEvict]  = '{event_e'(Protocol.evict), LineWidth'(evict_set_q), 2'd0, '0, state_e'(0), evict_way_q};
  end

  rr_pick #(
    .Size     (Sources),
    .GroupSize(Sources)
  ) u_pick_early (
    .clk_i,
    .rst_ni,
    .req_i   (ask_early),
    .accept_i(step_q == Idle),
    .pick_o  (pick_early),
    .index_o (unused_early)
  );

  rr_pick #(
    .Size     (Sources),
    .GroupSize(Sources)
  ) u_pick_late (
    .clk_i,
    .rst_ni,
    .req_i   (ask_late),
    .accept_i(step_q == Idle && ask_early == '0),
    .pick_o  (pick_late),
    .index_o (unused_late)
  );

  assign ask_early = ask & early & ~blocked_q;
  assign ask_late  = ask & ~early & ~blocked_q;
  assign pick      = ask_early != '0 ? pick_early : pick_late;

  // Both are precomputed; a later signal selects between them.
  always_comb begin
    picked_early = '0;
    picked_late  = '0;
    for (int unsigned i = 0; i < Sources; i++) begin
      if (pick_early[i]) picked_early |= offered[i];
      if (pick_late[i]) picked_late |= offered[i];
    end
    picked = ask_early != '0 ? picked_early : picked_late;
  end

  // Memory completions carry their way and state; all other events look them up in the directory.
  logic from_memory;
  assign from_memory = pick_early[FromWrite+:Writes] != '0 || pick_early[FromRead+:Reads] != '0;

  // ------------------------------------------------------------------ the directory

  row_t                  row_q;               // the ROM's row
  logic                  row_stays_q;         // its next state is not the initial one
  logic                  wr_en, rd_en;
  logic [AddrWidth-1:0]  wr_addr, rd_addr;
  logic [GroupWidth-1:0] group_d, group_q;    // the group that is compared
  logic [GroupWidth-1:0] next_group;
  logic [GroupWidth-1:0] judged_q;            // the group that is evaluated
  logic                  judges_d, judges_q;  // a group is evaluated
  logic                  hit_d, hit_q;
  logic                  room_d, room_q;      // a way is free; the event's own way if there was no hit
  logic                  last_judged, found, free;
  logic [PlaceWidth-1:0] found_place, free_place;
  state_e                found_state, evicted_state;
  logic [TagWidth-1:0]   evicted_tag;

  dcu_directory #(
    .state_e    (state_e),
    .TagWidth   (TagWidth),
    .WaysPerStep(WaysPerStep),
    .Words      (2 ** SetWidth * Groups)
  ) u_directory (
    .clk_i,
    .rd_en_i         (rd_en),
    .rd_addr_i       (rd_addr),
    .wr_en_i         (wr_en),
    .wr_clear_i      (step_q == Sweep),
    .wr_addr_i       (wr_addr),
    .position_i      (place_of(now_q.way)),
    .wr_allocated_i  (row_stays_q),
    .wr_state_i      (row_q.next),
    .tag_i           (now_q.line[SetWidth+:TagWidth]),
    .state_o         (evicted_state),
    .tag_o           (evicted_tag),
    .found_o         (found),
    .found_position_o(found_place),
    .found_state_o   (found_state),
    .free_o          (free),
    .free_position_o (free_place)
  );

  assign next_group  = GroupWidth'(incremented(8'(group_q)));
  assign last_judged = judged_q == GroupWidth'(Groups - 1);

  function automatic logic [AddrWidth-1:0] address(input logic [SetWidth-1:0] set, input logic [GroupWidth-1:0] group);
    return AddrWidth'(set) * AddrWidth'(Groups) + AddrWidth'(group);
  endfunction

  function automatic logic [GroupWidth-1:0] group_of(input logic [WayWidth-1:0] way);
    return GroupWidth'((WayWidth + 1)'(way) >> $clog2(WaysPerStep));
  endfunction

  function automatic logic [PlaceWidth-1:0] place_of(input logic [WayWidth-1:0] way);
    return PlaceWidth'(way & WayWidth'(WaysPerStep - 1));
  endfunction

  function automatic logic [WayWidth-1:0] way_of(input logic [GroupWidth-1:0] group, input logic [PlaceWidth-1:0] place);
    return WayWidth'(group) * WayWidth'(WaysPerStep) + WayWidth'(place);
  endfunction

  // ------------------------------------------------------------------ the row, and its resources

  logic                known_d, known_q;          // `row_q` is the row of the current state and event
  logic                asks_d, asks_q;            // the ROM is read
  logic                row_reads_q, row_takes_q;  // it begins a read; its effect is `Take`
  logic                of_waiting, of_message, of_local, of_device;
  logic                needs_room, has_places, takes;
  logic                refuses, drops;            // the refusal is reported to the device; or the event is dropped silently
  logic                returns;                   // a local operation returns to its queue to wait for a lock
  logic                reads_full_q, writes_full_q, locals_full_q, waiting_full_q;
  logic [ReadWidth-1:0]    read_place;
  logic [WriteWidth-1:0]   write_place;
  logic [LocalWidth-1:0]   local_place, answered_place;
  logic [WaitingWidth-1:0] waiting_place;
  logic                answered_evict;
  logic                immediate;                 // a message leaves without a memory operation before it
  logic                of_read, of_write;
  logic                wants_lock;
  logic                unblock, unblock_q;        // a resource that an event may lack has changed; effective a cycle later

  // True if the current event may never wait.
  logic source_early;
  assign source_early = (source_q & early) != '0;
  assign of_write   = source_q[FromWrite+:Writes] != '0;
  assign of_read    = source_q[FromRead+:Reads] != '0;
  assign of_message = source_q[FromRx+:NumRx] != '0;
  assign of_waiting = source_q[FromWaiting+:MaxDeferred] != '0;
  assign of_device  = source_q[FromLocal];
  assign of_local   = of_device || source_q[FromEvict];

  // Free resources are known a cycle late. This is safe: only this unit takes them, at most one in several cycles.
  // The owner of the current line is late too: the line is known for some cycles before its owner matters.
  // A line with an operation in progress is not in the initial state, so the directory holds it, and its way identifies it.
  // Events that wait for another line of the set are retried in vain, which costs less than to compare the whole line number.
  logic [Reads-1:0]   same_read_q;
  logic [Writes-1:0]  same_write_q;
  logic [Locals-1:0]  same_local_q;
  logic [MaxDeferred-1:0] same_waiting_q;
  logic               same_evict_q;  // its set is the one that needs a way
  logic               locks_full_q;
  logic               yields_q;  // a response is pending, and the current event is none

  // True if the current line is the one that the directory holds at that position.
  function automatic logic is_held(input logic [SetWidth-1:0] in_set, input logic [WayWidth-1:0] way);
    return hit_q && in_set == now_q.line[SetWidth-1:0] && way == now_q.way;
  endfunction

  always_ff @(posedge clk_i) begin
    reads_full_q   <= read_used_q == '1;
    writes_full_q  <= write_used_q == '1;
    locals_full_q  <= local_used_q == '1;
    waiting_full_q <= waiting_used_q == '1;
    locks_full_q   <= locks_q == LockWidth'(MaxDeferred);
    yields_q       <= (ask & early & SourcesRx) != '0 && !source_early;
    // The first free entry; any entry if none is free.
    read_place     <= ReadWidth'(Reads - 1);
    write_place    <= WriteWidth'(Writes - 1);
    local_place    <= LocalWidth'(Locals - 1);
    waiting_place  <= WaitingWidth'(MaxDeferred - 1);
    for (int i = int'(Reads) - 2; i >= 0; i--) if (!read_used_q[i]) read_place <= ReadWidth'(unsigned'(i));
    for (int i = int'(Writes) - 2; i >= 0; i--) if (!write_used_q[i]) write_place <= WriteWidth'(unsigned'(i));
    for (int i = int'(Locals) - 2; i >= 0; i--) if (!local_used_q[i]) local_place <= LocalWidth'(unsigned'(i));
    for (int i = int'(MaxDeferred) - 2; i >= 0; i--) if (!waiting_used_q[i]) waiting_place <= WaitingWidth'(unsigned'(i));
    for (int unsigned i = 0; i < Reads; i++) begin
      same_read_q[i] <= read_used_q[i] && is_held(read_q[i].line[SetWidth-1:0], read_q[i].way);
    end
    for (int unsigned i = 0; i < Writes; i++) begin
      same_write_q[i] <= write_used_q[i] && is_held(write_q[i].line[SetWidth-1:0], write_q[i].way);
    end
    for (int unsigned i = 0; i < Locals; i++) begin
      same_local_q[i] <= local_used_q[i] && !local_q[i].answered && is_held(local_q[i].in_set, local_q[i].way);
    end
    for (int unsigned i = 0; i < MaxDeferred; i++) begin
      same_waiting_q[i] <= waiting_q[i].line[SetWidth-1:0] == now_q.line[SetWidth-1:0];
    end
    same_evict_q <= evict_set_q == now_q.line[SetWidth-1:0];
  end

  always_comb begin
    // The operation in progress on the event's line.
    answered_place = '0;
    answered_evict = 1'b0;
    for (int unsigned i = 0; i < Locals; i++) begin
      if (same_local_q[i]) begin
        answered_place |= LocalWidth'(i);
        answered_evict |= local_q[i].evict;
      end
    end
  end

  assign wants_lock = of_device && request_locks_q;
  assign immediate  = row_q.grant_valid && !of_read && !of_write;
  assign needs_room = !hit_q && row_stays_q && !room_q;
  // A response may lack the entry of a write. No other event takes one while a response is pending: otherwise others could
  // take it before the response every time.
  assign has_places = (!row_reads_q || !reads_full_q)
                   && (row_q.memory != MemoryWrite || !writes_full_q && !yields_q)
                   && (!of_local || !locals_full_q)
                   && (!wants_lock || !locks_full_q)
                   && (!immediate || !immediate_q)
                   && !needs_room;
  assign takes      = step_q == Exec && row_takes_q && has_places;
  // The device gets an answer even to an illegal request. The directory itself asks again.
  assign refuses    = step_q == Exec && (row_q.effect == Refuse || row_q.effect == Never)
                   && (of_device ? !locals_full_q : source_q[FromUnlock]);
  assign returns    = step_q == Exec && row_takes_q && wants_lock && locks_full_q;
  assign drops      = step_q == Exec && row_q.effect == Never && !of_local && !source_q[FromUnlock];

  // ------------------------------------------------------------------ output queues

  typedef struct packed {
    logic [LineWidth-1:0] line;
    logic [ReadWidth-1:0] slot;
    event_e               happened;
  } read_t;

  typedef struct packed {
    logic [LineWidth-1:0]  line;
    logic [WriteWidth-1:0] slot;
    event_e                happened;
    permission_e           right;
    logic [1:0]            circuit;
    logic [SlotWidth-1:0]  bytes;
  } write_t;

  logic    queues_idle;
  logic    tx_wr, answer_wr, read_wr, write_wr, told_valid;
  logic    [NumTx-1:0] left_valid;
  tx_t     tx_wr_data;
  tx_t     [NumTx-1:0] tx_rd_data, left;
  answer_t answer_wr_data, answer_rd_data, told;
  read_t   read_wr_data, read_rd_data;
  write_t  write_wr_data, write_rd_data;

  dcu_queues #(
    .Protocol     (Protocol),
    .tx_t         (tx_t),
    .rsp_t        (answer_t),
    .read_t       (read_t),
    .write_t      (write_t),
    .TxGrants     (TxGrants),
    .TxForwards   (TxForwards),
    .LocalRspDepth(AnswerDepth),
    .ReadDepth    (ReadDepth),
    .WriteDepth   (WriteDepth)
  ) u_queues (
    .clk_i,
    .rst_ni,
    .tx_wr_i               (tx_wr),
    .tx_wr_data_i          (tx_wr_data),
    .tx_valid_o,
    .tx_ready_i,
    .tx_data_o             (tx_rd_data),
    .tx_sent_valid_o       (left_valid),
    .tx_sent_o             (left),
    .local_rsp_wr_i        (answer_wr),
    .local_rsp_wr_data_i   (answer_wr_data),
    .local_rsp_valid_o,
    .local_rsp_ready_i,
    .local_rsp_o           (answer_rd_data),
    .local_rsp_sent_valid_o(told_valid),
    .local_rsp_sent_o      (told),
    .read_wr_i             (read_wr),
    .read_wr_data_i        (read_wr_data),
    .read_valid_o,
    .read_ready_i,
    .read_o                (read_rd_data),
    .write_wr_i            (write_wr),
    .write_wr_data_i       (write_wr_data),
    .write_valid_o,
    .write_ready_i,
    .write_o               (write_rd_data),
    .idle_o                (queues_idle)
  );

  logic unused;
  assign unused = ^{left, told.refused, told.operation, told.line, tx_rd_data, answer_rd_data.place};

  for (genvar c = 0; c < NumTx; c++) begin : gen_tx
    assign tx_send_o[c] = tx_rd_data[c].send;
    assign tx_line_o[c] = tx_rd_data[c].line;
    assign tx_slot_o[c] = tx_rd_data[c].read;
  end

  assign local_rsp_unlock_o    = answer_rd_data.unlock;
  assign local_rsp_refused_o   = answer_rd_data.refused;
  assign local_rsp_operation_o = 3'(answer_rd_data.operation);
  assign local_rsp_line_o      = answer_rd_data.line;
  assign read_line_o           = read_rd_data.line;
  assign read_slot_o           = read_rd_data.slot;
  assign read_event_o          = read_rd_data.happened;
  assign write_line_o          = write_rd_data.line;
  assign write_slot_o          = write_rd_data.slot;
  assign write_event_o         = write_rd_data.happened;
  assign write_permission_o    = write_rd_data.right;
  assign write_circuit_o       = write_rd_data.circuit;
  assign write_payload_slot_o  = write_rd_data.bytes;

  // Messages to the remote: the grant first, then, in the step after, the forward.
  always_comb begin
    tx_wr_data       = '0;
    tx_wr_data.line  = now_q.line;
    for (int unsigned i = 0; i < Reads; i++) begin
      if (source_q[FromRead+i]) tx_wr_data.read |= ReadWidth'(i);
    end
    for (int unsigned i = 0; i < Writes; i++) begin
      if (source_q[FromWrite+i]) tx_wr_data.write |= WriteWidth'(i);
    end
    tx_wr = takes && (row_q.grant_valid || row_q.forward_valid) || step_q == Second;
    if (row_q.grant_valid && step_q != Second) begin
      tx_wr_data.send = row_q.grant;
      tx_wr_data.of   = of_read ? TxRead : of_write ? TxWrite : TxImmediate;
    end else begin
      tx_wr_data.send = row_q.forward;
      tx_wr_data.of   = TxForward;
    end
  end

  always_comb begin
    answer_wr      = 1'b0;
    answer_wr_data = '{
      unlock:    source_q[FromUnlock],
      refused:   row_q.effect == Refuse || row_q.effect == Never,
      operation: of_device ? request_operation_q : local_q[answered_place].operation,
      line:      now_q.line,
      place:     of_device ? local_place : answered_place
    };
    if (takes && row_q.acknowledge) begin
      answer_wr = source_q[FromUnlock] || of_device || (!of_local && !answered_evict);
    end else if (refuses) begin
      answer_wr = 1'b1;
    end
  end

  assign read_wr       = takes && row_q.memory == MemoryRead;
  assign read_wr_data  = '{now_q.line, read_place, now_q.happened};
  assign write_wr      = takes && row_q.memory == MemoryWrite;
  assign write_wr_data = '{now_q.line, write_place, now_q.happened, row_q.to, now_q.circuit, now_q.slot};

  always_ff @(posedge clk_i) begin
    drop_valid_o   <= rst_ni && (takes && row_q.memory != MemoryWrite || drops) && (of_message || of_waiting)
                   && Protocol.payload[6'(now_q.happened)];
    drop_circuit_o <= now_q.circuit;
    drop_slot_o    <= now_q.slot;
  end

  assign rom_valid_o = asks_q;
  assign rom_addr_o  = {now_q.state, now_q.happened};

  // ------------------------------------------------------------------ one step

  always_comb begin
    step_d   = step_q;
    source_d = source_q;
    now_d    = now_q;
    group_d  = group_q;
    hit_d    = hit_q;
    room_d   = room_q;
    judges_d = 1'b0;
    // A row that arrives while the ROM is read again belongs to a guess.
    known_d  = known_q || row_valid_i && !asks_q;
    asks_d   = asks_q && !rom_ready_i;
    rd_en    = 1'b0;
    rd_addr  = address(now_q.line[SetWidth-1:0], next_group);
    wr_en    = 1'b0;
    wr_addr  = step_q == Sweep ? sweep_addr_i : address(now_q.line[SetWidth-1:0], group_of(now_q.way));

    case (step_q)
      Sweep: begin
        if (!sweep_valid_i) step_d = Idle;
      end
      Idle: begin
        source_d = pick;
        now_d    = picked;
        group_d  = '0;
        // For all other events the look-up determines the way.
        now_d.way = from_memory ? picked_early.way : evict_way_q;
        hit_d    = from_memory;
        room_d   = 1'b0;
        known_d  = 1'b0;
        // For other events than memory completions this is a guess: most lines are not held, and then the row is there in time.
        asks_d   = ask_early != '0 || ask_late != '0;
        if (ask_early != '0 || ask_late != '0) step_d = from_memory ? Ask : Read;
      end
      Read: begin
        rd_en   = 1'b1;
        rd_addr = address(now_q.line[SetWidth-1:0], source_q[FromEvict] ? group_of(now_q.way) : '0);
        step_d  = Look;
      end
      Look: begin
        judges_d = 1'b1;
        group_d  = next_group;
        rd_en    = 1'b1;
        if (source_q[FromEvict]) begin
          hit_d = 1'b1;
          if (!judges_q) begin
            now_d.state                    = evicted_state;
            now_d.line[SetWidth+:TagWidth] = evicted_tag;
          end else begin
            // Another event may have freed a way meanwhile.
            step_d  = now_q.state == state_e'(0) ? Idle : Ask;
            asks_d  = now_q.state != state_e'(0);
            known_d = 1'b0;
          end
        end else if (judges_q) begin
          if (found) begin
            hit_d       = 1'b1;
            now_d.way   = way_of(judged_q, found_place);
            now_d.state = found_state;
            step_d      = Ask;
            asks_d      = 1'b1;
            known_d     = 1'b0;
          end else begin
            if (free && !room_q) begin
              room_d    = 1'b1;
              now_d.way = way_of(judged_q, free_place);
            end
            if (last_judged) step_d = known_d ? Exec : Ask;
          end
        end
      end
      Ask: begin
        if (known_d) step_d = Exec;
      end
      Exec: begin
        wr_en  = takes && (hit_q || row_stays_q);
        step_d = Idle;
        if (takes && row_q.grant_valid && row_q.forward_valid) step_d = Second;
        if (row_q.effect == Never && (!of_device || refuses)) step_d = Report;
      end
      Second: begin
        step_d = Idle;
      end
      Report: begin
        if (unexpected_ready_i) step_d = Idle;
      end
      default: step_d = Idle;
    endcase
  end

  // Updates of the entries.
  always_comb begin
    read_d         = read_q;
    read_used_d    = read_used_q;
    write_d        = write_q;
    write_used_d   = write_used_q;
    local_d        = local_q;
    local_used_d   = local_used_q;
    waiting_d      = waiting_q;
    waiting_used_d = waiting_used_q;
    immediate_d    = immediate_q;
    unlocking_d    = unlocking_q;
    locks_d        = locks_q;
    rx_used_d      = rx_used_q | rx_valid_i;
    request_used_d = request_used_q || local_valid_i;
    unlock_used_d  = unlock_used_q || unlock_valid_i;
    evict_d        = evict_q;
    evict_set_d    = evict_set_q;
    evict_way_d    = evict_way_q;
    evict_tries_d  = evict_tries_q;
    blocked_d      = blocked_q;
    unblock        = 1'b0;

    // Memory has completed.
    for (int unsigned i = 0; i < Reads; i++) read_d[i].done |= read_done_i[i];
    for (int unsigned i = 0; i < Writes; i++) write_d[i].done |= write_done_i[i];
    for (int unsigned i = 0; i < Reads; i++) begin
      if (read_lost_i[i]) begin
        read_used_d[i] = 1'b0;
        unblock        = 1'b1;
      end
    end

    // Messages and answers have left.
    for (int unsigned i = 0; i < Reads; i++) begin
      if (tx_done_i[i]) begin
        read_used_d[i] = 1'b0;
        unblock        = 1'b1;
      end
    end
    for (int unsigned c = 0; c < NumTx; c++) begin
      if (left_valid[c]) begin
        unblock = 1'b1;
        if (left[c].of == TxWrite) write_used_d[left[c].write] = 1'b0;
        if (left[c].of == TxImmediate) immediate_d = 1'b0;
        if (left[c].of == TxRead && !Protocol.send_payload[4'(left[c].send)]) read_used_d[left[c].read] = 1'b0;
      end
    end
    if (told_valid) begin
      unblock = 1'b1;
      if (told.unlock) unlocking_d = 1'b0;
      else local_used_d[told.place] = 1'b0;
    end

    // The event leaves its source.
    if (takes || drops) begin
      unblock = 1'b1;
      for (int unsigned i = 0; i < Writes; i++) begin
        if (source_q[FromWrite+i]) begin
          write_d[i].done = 1'b0;
          if (drops || !row_q.grant_valid) write_used_d[i] = 1'b0;
        end
      end
      for (int unsigned i = 0; i < Reads; i++) begin
        if (source_q[FromRead+i]) begin
          read_d[i].done = 1'b0;
          if (drops || !row_q.grant_valid) read_used_d[i] = 1'b0;
        end
      end
      rx_used_d &= ~source_q[FromRx+:NumRx];
      waiting_used_d &= ~source_q[FromWaiting+:MaxDeferred];
    end

    if (takes) begin
      if (source_q[FromUnlock]) begin
        unlock_used_d = 1'b0;
        unlocking_d   = 1'b1;
        locks_d       = locks_q - 1'b1;
      end
      if (of_device) begin
        request_used_d = 1'b0;
        if (wants_lock) locks_d = locks_q + 1'b1;
      end
      // A way is or will be free, or another event has freed one.
      if (source_q[FromEvict] || hit_q && !row_stays_q && same_evict_q) evict_d = 1'b0;

      // New operations take their entries.
      if (row_q.memory == MemoryRead) begin
        read_used_d[read_place] = 1'b1;
        read_d[read_place]      = '{1'b0, now_q.line, now_q.way, row_q.next};
      end
      if (row_q.memory == MemoryWrite) begin
        write_used_d[write_place] = 1'b1;
        write_d[write_place]      = '{1'b0, now_q.line, now_q.way, row_q.next};
      end
      if (immediate) immediate_d = 1'b1;
      if (of_local) begin
        // An operation of the directory that completes at once needs no entry.
        local_used_d[local_place] = of_device || !row_q.acknowledge;
        local_d[local_place]      = '{row_q.acknowledge, source_q[FromEvict], request_operation_q, now_q.line[SetWidth-1:0], now_q.way};
      end else if (row_q.acknowledge && !source_q[FromUnlock]) begin
        local_d[answered_place].answered = 1'b1;
        if (answered_evict) local_used_d[answered_place] = 1'b0;
      end

      // The state of a line with a memory operation is also kept in its entry.
      for (int unsigned i = 0; i < Reads; i++) begin
        if (same_read_q[i]) read_d[i].state = row_q.next;
      end
      for (int unsigned i = 0; i < Writes; i++) begin
        if (same_write_q[i]) write_d[i].state = row_q.next;
      end

      // Events that waited for a line of this set, or for a way that is now free, are retried.
      for (int unsigned i = 0; i < MaxDeferred; i++) begin
        if (same_waiting_q[i] || (waiting_q[i].room && !row_stays_q)) waiting_d[i].ready = 1'b1;
      end
    end else if (step_q == Exec && !drops) begin
      if (refuses) begin
        if (of_device) begin
          request_used_d            = 1'b0;
          local_used_d[local_place] = 1'b1;
          local_d[local_place]      = '{1'b1, 1'b0, request_operation_q, now_q.line[SetWidth-1:0], now_q.way};
        end else begin
          unlock_used_d = 1'b0;
          unlocking_d   = 1'b1;
        end
      end else if (source_q[FromEvict] && row_q.effect != Take) begin
        // This way cannot be freed now; the next one may.
        evict_way_d   = WayWidth'(incremented(8'(evict_way_q)));
        evict_tries_d = WayWidth'(incremented(8'(evict_tries_q)));
        if (evict_tries_q == WayWidth'(Ways - 1)) blocked_d |= source_q;
      end else if (of_message && (row_q.effect == Leave || needs_room) && !waiting_full_q) begin
        // A stalled request gives way to others.
        rx_used_d &= ~source_q[FromRx+:NumRx];
        waiting_used_d[waiting_place] = 1'b1;
        waiting_d[waiting_place]      = '{1'b0, needs_room, now_q.happened, now_q.line, now_q.circuit, now_q.slot};
      end else if (of_waiting && (row_q.effect == Leave || needs_room)) begin
        for (int unsigned i = 0; i < MaxDeferred; i++) begin
          if (source_q[FromWaiting+i]) begin
            waiting_d[i].ready = 1'b0;
            waiting_d[i].room  = needs_room;
          end
        end
      end else if (returns) begin
        request_used_d = 1'b0;
      end else begin
        blocked_d |= source_q;
      end
      if (row_q.effect == Take && needs_room && !evict_q) begin
        evict_d       = 1'b1;
        evict_set_d   = now_q.line[SetWidth-1:0];
        evict_tries_d = '0;
      end
    end

    // Another event freed a way before the directory could.
    if (step_q == Look && source_q[FromEvict] && judges_q && now_q.state == state_e'(0)) begin
      evict_d = 1'b0;
      unblock = 1'b1;
      for (int unsigned i = 0; i < MaxDeferred; i++) waiting_d[i].ready |= waiting_q[i].room;
    end

    if (unblock_q) blocked_d = '0;
  end

  // Each entry that is written from outside has a register for "free", which enables the write.
  assign rx_used_q      = ~rx_ready_o;
  assign request_used_q = !local_ready_o;
  assign locks_full_o   = locks_q == LockWidth'(MaxDeferred);
  assign unlock_used_q  = !unlock_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q         <= Sweep;
      source_q       <= '0;
      blocked_q      <= '0;
      asks_q         <= 1'b0;
      unblock_q      <= 1'b0;
      read_used_q    <= '0;
      write_used_q   <= '0;
      local_used_q   <= '0;
      waiting_used_q <= '0;
      immediate_q    <= 1'b0;
      unlocking_q    <= 1'b0;
      locks_q        <= '0;
      rx_ready_o     <= '1;
      local_ready_o  <= 1'b1;
      unlock_ready_o <= 1'b1;
      evict_q        <= 1'b0;
      evict_way_q    <= '0;
      evict_tries_q  <= '0;
    end else begin
      step_q         <= step_d;
      source_q       <= source_d;
      blocked_q      <= blocked_d;
      asks_q         <= asks_d;
      unblock_q      <= unblock;
      read_used_q    <= read_used_d;
      write_used_q   <= write_used_d;
      local_used_q   <= local_used_d;
      waiting_used_q <= waiting_used_d;
      immediate_q    <= immediate_d;
      unlocking_q    <= unlocking_d;
      locks_q        <= locks_d;
      rx_ready_o     <= ~rx_used_d;
      local_ready_o  <= !request_used_d;
      unlock_ready_o <= !unlock_used_d;
      evict_q        <= evict_d;
      evict_way_q    <= evict_way_d;
      evict_tries_q  <= evict_tries_d;
    end
  end

  always_ff @(posedge clk_i) begin
    now_q       <= now_d;
    group_q     <= group_d;
    hit_q       <= hit_d;
    room_q      <= room_d;
    read_q      <= read_d;
    write_q     <= write_d;
    local_q     <= local_d;
    waiting_q   <= waiting_d;
    evict_set_q <= evict_set_d;
    patience_q  <= !evict_q ? '0 : patience_q[RecallDelayLog2] ? patience_q : patience_q + 1'b1;
    judged_q    <= group_q;
    judges_q    <= judges_d;
    known_q     <= known_d;
    if (row_valid_i && !asks_q) begin
      row_q       <= row_i;
      row_stays_q <= row_i.next != state_e'(0);
      row_reads_q <= row_i.memory == MemoryRead;
      row_takes_q <= row_i.effect == Take;
    end
    for (int unsigned i = 0; i < NumRx; i++) begin
      if (rx_ready_o[i]) begin
        rx_q[i] <= '{event_e'(rx_event_i[i]), rx_line_i[i], 2'(i), rx_slot_i[i], state_e'(0), '0};
      end
    end
    if (local_ready_o) begin
      request_operation_q <= LocalsWidth'(local_operation_i);
      request_locks_q     <= Protocol.locking[local_operation_i];
      request_event_q     <= local_event_i;
      request_line_q      <= local_line_i;
    end
    if (unlock_ready_o) unlock_line_q <= unlock_line_i;
  end

  // ------------------------------------------------------------------ observers and assertions

  assign step_valid_o   = step_q == Exec;
  assign step_blocked_o = row_q.effect == Take && !takes
                      || row_q.effect == Refuse && !refuses
                      || row_q.effect == Never && of_device && !refuses;
  assign step_evict_o  = source_q[FromEvict];
  assign step_event_o  = now_q.happened;
  assign step_state_o  = now_q.state;
  assign step_effect_o = row_q.effect;
  assign step_next_o   = row_q.next;
  assign step_line_o   = now_q.line;

  assign unexpected_valid_o = step_q == Report;
  assign unexpected_event_o = now_q.happened;
  assign unexpected_state_o = now_q.state;
  assign unexpected_line_o  = now_q.line;

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
      change_line_o <= now_q.line;
    end
  end

  always_ff @(posedge clk_i) begin
    evicted_o <= rst_ni && takes && source_q[FromEvict];
    local_returned_o <= rst_ni && returns;
    if (!rst_ni || step_q != Exec || takes)           stall_o <= StallNone;
    else if (refuses || drops)                        stall_o <= StallNone;
    else if (of_device && (row_q.effect == Refuse || row_q.effect == Never)) stall_o <= StallLocal;
    else if (row_q.effect != Take)                    stall_o <= StallLine;
    else if (needs_room)                              stall_o <= StallRoom;
    else if (row_reads_q && reads_full_q)             stall_o <= StallRead;
    else if (of_local && (locals_full_q || wants_lock && locks_full_q)) stall_o <= StallLocal;
    else if (immediate && immediate_q)                stall_o <= StallSend;
    else                                              stall_o <= StallWrite;
  end

  always_ff @(posedge clk_i) begin
    idle_o <= step_q == Idle && read_used_q == '0 && write_used_q == '0 && local_used_q == '0 && waiting_used_q == '0
           && rx_used_q == '0 && !request_used_q && !unlock_used_q && !unlocking_q && !immediate_q && !evict_q
           && queues_idle;
  end

  `NOTICE_OR(event_expected, step_q != Exec || row_q.effect != Never,
    ("dcu: the ROM has no row for event %0d in state %0d", now_q.happened, now_q.state))
  `ASSERT(locks_conserved, !(takes && source_q[FromUnlock]) || locks_q != '0)
  `ASSERT(leaves_what_may_wait,
    step_q != Exec || row_q.effect != Leave || of_local || (of_message && !source_early) || of_waiting)
  `ASSERT(refuses_what_is_the_device_s, step_q != Exec || row_q.effect != Refuse || of_local || source_q[FromUnlock])
  `ASSERT(source_one, $onehot0(source_q))
  `ASSERT(hits_once, step_q != Exec || $countones(same_local_q) <= 1)
endmodule : dcu
