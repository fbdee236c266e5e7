// Directory controller unit (DCU): executes the protocol for its lines, one event at a time.
//
// Steps of an event: the scheduler picks it (dcu_scheduler), its line is looked up in the directory (dcu_lookup), the
// protocol ROM returns the row for the line's state and the event, and the row is executed. This module sequences the
// steps and decides the outcome.
//
// Operations of several cycles have entries, so that the unit continues with other events: memory reads and writes
// (dcu_accesses), local operations (dcu_locals), deferred requests (dcu_messages), and the recall that frees a
// directory way (dcu_recall). Messages to the remote leave through queues (dcu_tx).
//
// The unit never blocks a response for ever. A response can lack only a write entry, and writes complete by themselves.
// An entry produces at most one message to the remote and one response to the device, and the queues are deep enough
// for all entries. The ROM sends a forward only for a local operation in progress (verified by crates/rtl/src/rom).
//
// An event that lacks a resource is retried when a resource changes. An event without a ROM row is dropped and
// reported: its resources are freed, and the state of its line is unchanged.

`include "assertions.svh"

module dcu #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type                 state_e  = logic,
  parameter type                 event_e  = logic,
  parameter type                 send_e   = logic,
  parameter type                 row_t    = logic,
  parameter int unsigned         TagWidth        = 16,  // bits of a directory tag
  parameter int unsigned         SetWidth        = 7,   // log2 of the directory sets
  parameter int unsigned         Ways            = 16,  // ways of a directory set
  parameter int unsigned         WaysPerStep     = 4,   // ways compared per cycle of a look-up
  parameter int unsigned         Reads           = 2,   // memory reads in flight
  parameter int unsigned         Writes          = 2,   // memory writes in flight
  parameter int unsigned         Locals          = 2,   // local operations in progress
  parameter int unsigned         MaxDeferred     = 2,   // deferred requests, and maximum number of locked lines
  parameter int unsigned         StoreSlots      = 2,   // payload slots of a circuit whose messages may be deferred
  parameter int unsigned         RecallDelayLog2 = 8,   // log2 of the cycles before a full set recalls a line

  localparam int unsigned NumRx      = int'(Protocol.rx_circuits),
  localparam int unsigned NumTx      = int'(Protocol.tx_circuits),
  localparam int unsigned EventWidth = $bits(event_e),
  localparam int unsigned StateWidth = $bits(state_e),
  localparam int unsigned LineWidth  = TagWidth + SetWidth,
  localparam int unsigned SlotWidth  = home_pkg::bits(StoreSlots),
  localparam int unsigned ReadWidth  = home_pkg::bits(Reads),
  localparam int unsigned WriteWidth = home_pkg::bits(Writes),
  localparam int unsigned Groups     = Ways / WaysPerStep,   // groups of ways per set, each one word of the directory
  localparam int unsigned AddrWidth  = $clog2(2 ** SetWidth * Groups)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // Initialisation after reset: the directory is cleared, one word per cycle.
  input  logic                             init_busy_i,
  input  logic [AddrWidth-1:0]             init_addr_i,

  // Headers of messages to the home, one stream per circuit. The payload stays in a slot of dcs_ingress.
  input  logic [NumRx-1:0]                 rx_valid_i,
  output logic [NumRx-1:0]                 rx_ready_o,
  input  logic [NumRx-1:0][EventWidth-1:0] rx_event_i,
  input  logic [NumRx-1:0][LineWidth-1:0]  rx_line_i,
  input  logic [NumRx-1:0][SlotWidth-1:0]  rx_slot_i,

  // Local operations and unlocks of the device, and the responses to both.
  input  logic                             local_valid_i,
  output logic                             local_ready_o,
  input  logic [2:0]                       local_operation_i,
  input  event_e                           local_event_i,   // event number of the operation
  input  logic [LineWidth-1:0]             local_line_i,
  output logic                             locks_full_o,       // all locks are in use
  output logic                             local_returned_o,   // an operation was returned for lack of a lock; one cycle late
  input  logic                             unlock_valid_i,
  output logic                             unlock_ready_o,
  input  logic [LineWidth-1:0]             unlock_line_i,
  output logic                             local_rsp_valid_o,
  input  logic                             local_rsp_ready_i,
  output logic                             local_rsp_unlock_o,
  output logic                             local_rsp_refused_o,
  output logic [2:0]                       local_rsp_operation_o,
  output logic [LineWidth-1:0]             local_rsp_line_o,

  // Protocol ROM: request, and the row in a later cycle.
  output logic                             rom_valid_o,
  input  logic                             rom_ready_i,
  output logic [StateWidth+EventWidth-1:0] rom_addr_o,
  input  logic                             row_valid_i,
  input  row_t                             row_i,

  // Memory reads: request, and completion by entry. The data stays in the line buffer of dcs_reader.
  output logic                             read_valid_o,
  input  logic                             read_ready_i,
  output logic [LineWidth-1:0]             read_line_o,
  output logic [ReadWidth-1:0]             read_slot_o,
  output event_e                           read_event_o,
  input  logic [Reads-1:0]                 read_done_i,
  input  logic [Reads-1:0]                 read_lost_i,   // the response was illegal: the entry is freed, the line is stuck

  // Memory writes: request with the location of the payload, and completion by entry.
  output logic                             write_valid_o,
  input  logic                             write_ready_i,
  output logic [LineWidth-1:0]             write_line_o,
  output logic [WriteWidth-1:0]            write_slot_o,
  output event_e                           write_event_o,
  output home_pkg::permission_e            write_permission_o,   // permission that the remote keeps
  output logic [1:0]                       write_circuit_o,
  output logic [SlotWidth-1:0]             write_payload_slot_o,
  input  logic [Writes-1:0]                write_done_i,

  // Payload slot of a message that ends without a write; the slot is freed.
  output logic                             drop_valid_o,
  output logic [1:0]                       drop_circuit_o,
  output logic [SlotWidth-1:0]             drop_slot_o,

  // Messages to the remote, one stream per circuit. If a message carries the line, `tx_slot_o` is the read entry of its
  // data, which `tx_done_i` frees when the data has been sent.
  output logic  [NumTx-1:0]                tx_valid_o,
  input  logic  [NumTx-1:0]                tx_ready_i,
  output send_e [NumTx-1:0]                tx_send_o,
  output logic  [NumTx-1:0][LineWidth-1:0] tx_line_o,
  output logic  [NumTx-1:0][ReadWidth-1:0] tx_slot_o,
  input  logic [Reads-1:0]                 tx_done_i,

  // Report of an event without a ROM row, which was dropped.
  output logic                             unexpected_valid_o,
  input  logic                             unexpected_ready_i,
  output event_e                           unexpected_event_o,
  output state_e                           unexpected_state_o,
  output logic [LineWidth-1:0]             unexpected_line_o,

  // Row executed or stalled in this cycle, for lockstep tests and proofs.
  output logic                             step_valid_o,
  output logic                             step_blocked_o,
  output logic                             step_evict_o,
  output event_e                           step_event_o,
  output state_e                           step_state_o,
  output home_pkg::effect_e                step_effect_o,
  output state_e                           step_next_o,
  output logic [LineWidth-1:0]             step_line_o,

  // Performance counters, one cycle late: reason of a stall; a line was recalled to free a way.
  output home_pkg::stall_e                 stall_o,
  output logic                             evicted_o,

  // Change of the remote's permission for a line. A change is lost if the previous one is still stalled.
  output logic                             change_valid_o,
  input  logic                             change_ready_i,
  output home_pkg::permission_e            change_from_o,
  output home_pkg::permission_e            change_to_o,
  output logic [LineWidth-1:0]             change_line_o,
  output logic                             change_lost_o,   // one cycle late

  // No event is in progress, queued or deferred; one cycle late.
  output logic                             idle_o
);
  import home_pkg::*;

  localparam int unsigned WayWidth = bits(Ways);

  // `incremented` of home_pkg counts ways in eight bits.
  if (Ways % WaysPerStep != 0 || 2 ** $clog2(Ways) != Ways || 2 ** $clog2(WaysPerStep) != WaysPerStep
      || Ways > 128) begin : gen_invalid_ways
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
    logic [1:0]           circuit;  // of a message
    logic [SlotWidth-1:0] slot;     // of the payload of a message, in its circuit
    state_e               state;    // of the line; before the look-up, valid for memory completions only
    logic [WayWidth-1:0]  way;      // of the line; before the look-up, valid for memory completions and recalls only
  } trigger_t;

  typedef enum logic [2:0] {
    Init,          // clear the directory after reset
    Idle,          // pick the next event
    ReadWays,      // read the first group of ways; read the ROM speculatively, with the initial state
    CompareWays,   // compare a group of ways, and evaluate the comparison of the previous group
    AwaitRow,      // wait for the row from the ROM
    ExecuteRow,    // execute the row
    QueueForward,  // put the second message of the row, the forward, into its queue
    Report         // report a dropped event
  } step_e;

  // Sources of events: the position of the first of each kind.
  localparam int unsigned FromWrite    = 0;
  localparam int unsigned FromRead     = FromWrite + Writes;
  localparam int unsigned FromRx       = FromRead + Reads;
  localparam int unsigned FromDeferred = FromRx + NumRx;
  localparam int unsigned FromUnlock   = FromDeferred + MaxDeferred;
  localparam int unsigned FromLocal    = FromUnlock + 1;
  localparam int unsigned FromRecall   = FromLocal + 1;
  localparam int unsigned Sources      = FromRecall + 1;
  // Sources whose events must not stall: memory completions and responses. The scheduler picks them first.
  localparam logic [NumRx-1:0]   Responses    = ~Protocol.rx_waits[NumRx-1:0];
  localparam logic [Sources-1:0] HighPriority = Sources'({Responses, {(Reads + Writes){1'b1}}});

  // Request of a memory write, besides line and entry.
  typedef struct packed {
    event_e               event_id;
    permission_e          permission;  // permission that the remote keeps
    logic [1:0]           circuit;     // circuit and slot of the payload
    logic [SlotWidth-1:0] slot;
  } write_t;

  step_e    step_d, step_q;
  trigger_t current;                                // the current event
  logic     hit, has_free_way;                      // the directory holds its line; without a hit, its set has a free way
  logic     lookup_hit, lookup_miss, lookup_empty;  // result of the look-up; `lookup_empty`: the way to be recalled is empty
  logic     pick_valid, pick_is_completion;
  trigger_t picked;

  // Row from the ROM.
  row_t     row_q;
  logic     row_keeps_entry_q;              // the next state is not the initial one, so the line needs a directory entry
  logic     row_starts_read_q;              // the row starts a memory read
  logic     row_is_take_q;                  // the effect of the row is `Take`
  logic     is_refused;                     // the effect of the row is `Refuse` or `Never`
  logic     row_current_d, row_current_q;   // `row_q` belongs to the current event and its state
  logic     rom_valid_d, rom_valid_q;       // a ROM request is pending

  // Outcome of the event.
  logic     execute;       // the row is executed
  logic     start_read;    // the executed row starts a memory read
  logic     start_write;   // the executed row starts a memory write
  logic     send_grant;    // the executed row sends a grant
  logic     drop;          // the event is dropped without a response to the device
  logic     retire;        // `execute` or `drop`: the event leaves its source
  logic     refuse;        // the device's request is refused
  logic     return_op;     // a local operation returns to dcs_locals for lack of a lock
  logic     defer;         // a request is deferred
  logic     skip_way;      // the recall tries the next way
  logic     block;         // the event lacks a resource

  // Resources that the event may lack.
  logic     lacks_way, has_resources, lacks_lock, immediate_full;
  logic     reads_full, writes_full, locals_full, deferred_full;
  logic     unblock;               // a resource has changed
  logic     yield_to_response_q;   // a response is pending, and the current event may stall

  // Events offered by the sources, and the source of the current event, one-hot.
  logic     [Sources-1:0]  trigger_valid;
  trigger_t [Sources-1:0]  triggers;
  logic     [Sources-1:0]  source;
  logic                    is_message, is_deferred, is_unlock, is_device_op, is_recall, is_local_op, may_stall;
  logic                    recall_active, recall_last_way;
  logic     [WayWidth-1:0] recall_way;
  logic                    reads_idle, writes_idle, messages_idle, locals_idle, tx_idle;
  write_t                  write_request;
  // One cycle late: a response or a message has been sent, and the memory accesses whose entries it frees.
  logic                    rsp_sent, tx_sent;
  logic     [Reads-1:0]    freed_reads;
  logic     [Writes-1:0]   freed_writes;

  // ------------------------------------------------------------------ the current event

  assign is_message   = source[FromRx+:NumRx] != '0;
  assign is_deferred  = source[FromDeferred+:MaxDeferred] != '0;
  assign is_unlock    = source[FromUnlock];
  assign is_device_op = source[FromLocal];
  assign is_recall    = source[FromRecall];
  assign is_local_op  = is_device_op || is_recall;
  assign may_stall    = (source & HighPriority) == '0;

  dcu_scheduler #(
    .trigger_t   (trigger_t),
    .Sources     (Sources),
    .Completions (Writes + Reads),
    .HighPriority(HighPriority),
    .WayWidth    (WayWidth)
  ) u_scheduler (
    .clk_i,
    .rst_ni,
    .trigger_valid_i(trigger_valid),
    .trigger_i      (triggers),
    .recall_way_i   (recall_way),
    .load_i         (step_q == Idle),
    .valid_o        (pick_valid),
    .is_completion_o(pick_is_completion),
    .picked_o       (picked),
    .source_o       (source),
    .block_i        (block),
    .unblock_i      (unblock)
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
    .clear_i        (step_q == Init),
    .clear_addr_i   (init_addr_i),
    .load_i         (step_q == Idle),
    .read_i         (step_q == ReadWays),
    .compare_i      (step_q == CompareWays),
    .picked_i       (picked),
    .is_completion_i(pick_is_completion),
    .is_recall_i    (is_recall),
    .lookup_hit_o   (lookup_hit),
    .lookup_miss_o  (lookup_miss),
    .lookup_empty_o (lookup_empty),
    .wr_en_i        (execute && (hit || row_keeps_entry_q)),
    .wr_allocated_i (row_keeps_entry_q),
    .wr_state_i     (row_q.next),
    .current_o      (current),
    .hit_o          (hit),
    .has_free_way_o (has_free_way)
  );

  assign rom_valid_o = rom_valid_q;
  assign rom_addr_o  = {current.state, current.event_id};

  always_comb begin
    step_d = step_q;
    // A row that arrives while another request is pending belongs to the speculative read.
    row_current_d = row_current_q || row_valid_i && !rom_valid_q;
    rom_valid_d   = rom_valid_q && !rom_ready_i;
    case (step_q)
      Init: if (!init_busy_i) step_d = Idle;
      Idle: begin
        row_current_d = 1'b0;
        // Speculative read with the initial state, unless the event is a memory completion, whose state is known. Most
        // events concern lines that the directory does not hold; their row is then available when the look-up ends.
        rom_valid_d = pick_valid;
        if (pick_valid) step_d = pick_is_completion ? AwaitRow : ReadWays;
      end
      ReadWays: step_d = CompareWays;
      CompareWays: begin
        if (lookup_hit) begin
          step_d        = AwaitRow;
          rom_valid_d   = 1'b1;
          row_current_d = 1'b0;
        end else if (lookup_empty) begin
          step_d        = Idle;
          rom_valid_d   = 1'b0;
          row_current_d = 1'b0;
        end else if (lookup_miss) begin
          step_d  = row_current_d ? ExecuteRow : AwaitRow;
        end
      end
      AwaitRow: if (row_current_d) step_d = ExecuteRow;
      ExecuteRow: begin
        step_d = Idle;
        if (execute && row_q.grant_valid && row_q.forward_valid) step_d = QueueForward;
        if (row_q.effect == Never && (!is_device_op || refuse)) step_d = Report;
      end
      QueueForward: step_d = Idle;
      Report: if (unexpected_ready_i) step_d = Idle;
      default: step_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q      <= Init;
      rom_valid_q <= 1'b0;
    end else begin
      step_q      <= step_d;
      rom_valid_q <= rom_valid_d;
    end
  end

  always_ff @(posedge clk_i) begin
    row_current_q <= row_current_d;
    if (row_valid_i && !rom_valid_q) begin
      row_q             <= row_i;
      row_keeps_entry_q <= row_i.next != state_e'(0);
      row_starts_read_q <= row_i.memory == MemoryRead;
      row_is_take_q     <= row_i.effect == Take;
    end
  end

  // ------------------------------------------------------------------ outcome of the event

  assign lacks_way  = !hit && row_keeps_entry_q && !has_free_way;
  assign is_refused = row_q.effect == Refuse || row_q.effect == Never;
  // A response may lack a write entry. While a response is pending, no event that may stall gets one; otherwise such
  // events could get every free entry before the response.
  assign has_resources = (!row_starts_read_q || !reads_full)
                      && (row_q.memory != MemoryWrite || !writes_full && !yield_to_response_q)
                      && (!is_local_op || !locals_full)
                      && !lacks_lock
                      && !immediate_full
                      && !lacks_way;
  assign execute = step_q == ExecuteRow && row_is_take_q && has_resources;
  // The device gets a response even to a request without a ROM row. The directory retries its own recall instead.
  assign refuse      = step_q == ExecuteRow && is_refused && (is_device_op ? !locals_full : is_unlock);
  assign return_op   = step_q == ExecuteRow && row_is_take_q && lacks_lock;
  assign drop        = step_q == ExecuteRow && row_q.effect == Never && !is_local_op && !is_unlock;
  assign retire      = execute || drop;
  assign start_read  = execute && row_q.memory == MemoryRead;
  assign start_write = execute && row_q.memory == MemoryWrite;
  assign send_grant  = execute && row_q.grant_valid;

  always_comb begin
    {skip_way, defer, block} = '0;
    if (step_q == ExecuteRow && !retire && !refuse && !return_op) begin
      if (is_recall && row_q.effect != Take) begin
        skip_way = 1'b1;
        block    = recall_last_way;
      end else if ((row_q.effect == Stall || lacks_way) && (is_message && !deferred_full || is_deferred)) begin
        defer = 1'b1;
      end else begin
        block = 1'b1;
      end
    end
  end

  assign unblock = retire || lookup_empty || read_lost_i != '0 || tx_done_i != '0 || tx_sent || rsp_sent;

  always_ff @(posedge clk_i) yield_to_response_q <= (trigger_valid[FromRx+:NumRx] & Responses) != '0 && may_stall;

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
    .trigger_valid_o(trigger_valid[FromRead+:Reads]),
    .trigger_o      (triggers[FromRead+:Reads]),
    .source_i       (source[FromRead+:Reads]),
    .retire_i       (retire),
    .grant_sent_i   (send_grant),
    .free_i         (read_lost_i | tx_done_i | freed_reads),
    .line_i         (current.line),
    .way_i          (current.way),
    .hit_i          (hit),
    .execute_i      (execute),
    .next_i         (row_q.next),
    .start_i        (start_read),
    .request_i      (current.event_id),
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
    .trigger_valid_o(trigger_valid[FromWrite+:Writes]),
    .trigger_o      (triggers[FromWrite+:Writes]),
    .source_i       (source[FromWrite+:Writes]),
    .retire_i       (retire),
    .grant_sent_i   (send_grant),
    .free_i         (freed_writes),
    .line_i         (current.line),
    .way_i          (current.way),
    .hit_i          (hit),
    .execute_i      (execute),
    .next_i         (row_q.next),
    .start_i        (start_write),
    .request_i      ('{current.event_id, row_q.to, current.circuit, current.slot}),
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
    .Protocol   (Protocol),
    .trigger_t  (trigger_t),
    .event_e    (event_e),
    .state_e    (state_e),
    .MaxDeferred(MaxDeferred),
    .LineWidth  (LineWidth),
    .SetWidth   (SetWidth),
    .SlotWidth  (SlotWidth)
  ) u_messages (
    .clk_i,
    .rst_ni,
    .rx_valid_i,
    .rx_ready_o,
    .rx_event_i,
    .rx_line_i,
    .rx_slot_i,
    .trigger_valid_o(trigger_valid[FromRx+:NumRx+MaxDeferred]),
    .trigger_o      (triggers[FromRx+:NumRx+MaxDeferred]),
    .source_i       (source[FromRx+:NumRx+MaxDeferred]),
    .event_id_i     (current.event_id),
    .line_i         (current.line),
    .circuit_i      (current.circuit),
    .slot_i         (current.slot),
    .retire_i       (retire),
    .execute_i      (execute),
    .to_initial_i   (!row_keeps_entry_q),
    .start_write_i  (start_write),
    .lookup_empty_i (lookup_empty),
    .defer_i        (defer),
    .lacks_way_i    (lacks_way),
    .full_o         (deferred_full),
    .drop_valid_o,
    .drop_circuit_o,
    .drop_slot_o,
    .idle_o         (messages_idle)
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
    .trigger_valid_o(trigger_valid[FromUnlock+:2]),
    .trigger_o      (triggers[FromUnlock+:2]),
    .is_unlock_i    (is_unlock),
    .is_device_op_i (is_device_op),
    .is_recall_i    (is_recall),
    .line_i         (current.line),
    .way_i          (current.way),
    .hit_i          (hit),
    .execute_i      (execute),
    .acknowledge_i  (row_q.acknowledge),
    .is_refused_i   (is_refused),
    .refuse_i       (refuse),
    .return_i       (return_op),
    .full_o         (locals_full),
    .locks_full_o,
    .lacks_lock_o   (lacks_lock),
    .local_rsp_valid_o,
    .local_rsp_ready_i,
    .local_rsp_unlock_o,
    .local_rsp_refused_o,
    .local_rsp_operation_o,
    .local_rsp_line_o,
    .rsp_sent_o     (rsp_sent),
    .idle_o         (locals_idle)
  );

  dcu_recall #(
    .trigger_t      (trigger_t),
    .event_e        (event_e),
    .state_e        (state_e),
    .Event          (int'(Protocol.evict)),
    .LineWidth      (LineWidth),
    .SetWidth       (SetWidth),
    .Ways           (Ways),
    .RecallDelayLog2(RecallDelayLog2)
  ) u_recall (
    .clk_i,
    .rst_ni,
    .trigger_valid_o  (trigger_valid[FromRecall]),
    .trigger_o        (triggers[FromRecall]),
    .way_o            (recall_way),
    .active_o         (recall_active),
    .last_way_o       (recall_last_way),
    .set_i            (current.line[SetWidth-1:0]),
    .way_needed_i     (step_q == ExecuteRow && row_q.effect == Take && lacks_way),
    .recall_executed_i(execute && is_recall),
    .way_freed_i      (execute && hit && !row_keeps_entry_q),
    .lookup_empty_i   (lookup_empty),
    .skip_i           (skip_way)
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
    .execute_i        (execute),
    .send_forward_i   (step_q == QueueForward),
    .grant_valid_i    (row_q.grant_valid),
    .grant_i          (row_q.grant),
    .forward_valid_i  (row_q.forward_valid),
    .forward_i        (row_q.forward),
    .line_i           (current.line),
    .completed_read_i (source[FromRead+:Reads]),
    .completed_write_i(source[FromWrite+:Writes]),
    .immediate_full_o (immediate_full),
    .tx_valid_o,
    .tx_ready_i,
    .tx_send_o,
    .tx_line_o,
    .tx_slot_o,
    .sent_o           (tx_sent),
    .freed_reads_o    (freed_reads),
    .freed_writes_o   (freed_writes),
    .idle_o           (tx_idle)
  );

  // ------------------------------------------------------------------ observation and assertions

  assign step_valid_o   = step_q == ExecuteRow;
  assign step_blocked_o = row_q.effect == Take && !execute
                      || row_q.effect == Refuse && !refuse
                      || row_q.effect == Never && is_device_op && !refuse;
  assign step_evict_o  = is_recall;
  assign step_event_o  = current.event_id;
  assign step_state_o  = current.state;
  assign step_effect_o = row_q.effect;
  assign step_next_o   = row_q.next;
  assign step_line_o   = current.line;

  assign unexpected_valid_o = step_q == Report;
  assign unexpected_event_o = current.event_id;
  assign unexpected_state_o = current.state;
  assign unexpected_line_o  = current.line;

  logic permission_changes, change_stalled;
  assign permission_changes = execute && row_q.from != row_q.to;
  assign change_stalled     = change_valid_o && !change_ready_i;

  always_ff @(posedge clk_i) begin
    change_valid_o <= rst_ni && (permission_changes || change_stalled);
    change_lost_o  <= rst_ni && permission_changes && change_stalled;
  end
  always_ff @(posedge clk_i) begin
    if (!change_stalled) begin
      change_from_o <= row_q.from;
      change_to_o   <= row_q.to;
      change_line_o <= current.line;
    end
  end

  always_ff @(posedge clk_i) begin
    evicted_o        <= rst_ni && execute && is_recall;
    local_returned_o <= rst_ni && return_op;
    if (!rst_ni || step_q != ExecuteRow || execute)      stall_o <= StallNone;
    else if (refuse || drop)                             stall_o <= StallNone;
    else if (is_device_op && is_refused)                 stall_o <= StallLocal;
    else if (row_q.effect != Take)                       stall_o <= StallLine;
    else if (lacks_way)                                  stall_o <= StallRoom;
    else if (row_starts_read_q && reads_full)            stall_o <= StallRead;
    else if (is_local_op && (locals_full || lacks_lock)) stall_o <= StallLocal;
    else if (immediate_full)                             stall_o <= StallSend;
    else                                                 stall_o <= StallWrite;
  end

  always_ff @(posedge clk_i) begin
    idle_o <= step_q == Idle && reads_idle && writes_idle && messages_idle && locals_idle && tx_idle && !recall_active;
  end

  `REPORT_OR(event_expected, step_q != ExecuteRow || row_q.effect != Never,
    ("dcu: the ROM has no row for event %0d in state %0d", current.event_id, current.state))
  `ASSERT(stalls_only_if_allowed,
    step_q != ExecuteRow || row_q.effect != Stall || is_local_op || (is_message && may_stall) || is_deferred)
  `ASSERT(refuses_only_device_events, step_q != ExecuteRow || row_q.effect != Refuse || is_local_op || is_unlock)
endmodule : dcu
