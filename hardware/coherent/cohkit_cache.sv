// Set-associative cache of any table of a caching agent: tags with the state of each line, data, and a processor port
// with several outstanding accesses. Tags, states, variables and data are in distributed RAM; one bit for each entry
// records that it exists.
//
// Each outstanding access occupies a register (MSHR) until it is answered. Accesses to one line are performed in the
// order in which the port took them; others are answered in any order, so that hits pass misses. One access is looked up
// in each cycle. An access that can be neither performed nor started sleeps until a row is executed in its set.
//
// The entry of a line exists while its state or a variable differs from the initial one. An access that a message has
// given its permission is performed before any other message, so that it cannot lose the permission again. Otherwise
// messages and accesses take turns. An access without an entry evicts another line of its set, by the
// rows of the protocol. An access that can neither be performed nor started in a stable state evicts its own line.

module cohkit_cache #(
  parameter type         message_t   = logic,   // message, sender, line, fields, data, strobe
  parameter type         event_e     = logic,
  parameter type         remote_t    = logic,
  parameter type         fields_t    = logic,
  parameter type         state_e     = logic,
  parameter type         variables_t = logic,
  parameter type         send_t      = logic,
  parameter int unsigned LineWidth   = 4,
  parameter int unsigned DataWidth   = 64,
  parameter int unsigned SetWidth    = 1,
  parameter int unsigned Ways        = 2,
  parameter int unsigned Agents      = 3,
  parameter int unsigned Queues      = 3,
  parameter int unsigned Sends       = 1,
  parameter int unsigned Mshrs       = 4,       // outstanding accesses
  parameter int unsigned TagWidth    = 4,       // bits of the tag of an access
  parameter bit          Atomics     = 1'b1,    // the rows perform stores in the cache, so that it can perform atomics
  parameter int unsigned Replacement = 0,       // victims: 0 round robin, 1 tree pseudo-LRU, 2 random

  localparam int unsigned Inputs      = Agents * Queues,
  localparam int unsigned QueueWidth  = Queues > 1 ? $clog2(Queues) : 1,
  localparam int unsigned StrobeWidth = DataWidth / 8,
  localparam int unsigned WordWidth   = DataWidth < 64 ? DataWidth : 64  // of atomic operations
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  // Queues to the cache, and room in the queues from it.
  input  logic [Inputs-1:0]                in_valid_i,
  input  message_t [Inputs-1:0]            in_message_i,
  output logic [Inputs-1:0]                in_take_o,
  output logic [Inputs-1:0]                in_stall_o,
  output message_t                         out_message_o,
  output logic [Agents-1:0][Queues-1:0]    out_push_o,
  input  logic [Agents-1:0][Queues-1:0]    room_i,

  // Step function, and properties of its message and next state.
  input  remote_t                          self_i,
  input  event_e                           evict_i,
  input  state_e                           initial_state_i,
  input  variables_t                       initial_variables_i,
  output state_e                           step_state_o,
  output variables_t                       step_variables_o,
  output event_e                           step_event_o,
  output remote_t                          step_sender_o,
  output fields_t                          step_fields_o,
  input  logic                             step_carries_line_i,
  input  logic                             step_reads_i,
  input  logic [1:0]                       step_effect_i,
  input  state_e                           step_state_i,
  input  variables_t                       step_variables_i,
  input  send_t [Sends-1:0]                step_sends_i,
  input  logic [Sends-1:0][QueueWidth-1:0] step_queues_i,
  input  logic [1:0]                       step_copy_i,
  input  logic [1:0]                       step_done_i,
  input  logic                             step_perform_i,

  // Event of the access that is looked up, and properties of the state of the entry that it uses.
  output logic                             access_write_o,
  output logic                             access_uncached_o,
  output logic                             access_whole_o,     // a write of all bytes
  input  event_e                           access_event_i,
  input  logic                             access_in_place_i,  // the access needs no row where the state permits it
  output state_e                           access_state_o,
  input  logic                             access_reads_i,
  input  logic                             access_writes_i,
  input  logic                             access_waits_i,

  // Processor port. The tag of an access returns with its answer.
  input  logic                             req_valid_i,
  output logic                             req_ready_o,
  input  logic [TagWidth-1:0]              req_tag_i,
  input  logic [2:0]                       req_op_i,         // numbers of cohkit_coherent_pkg
  input  logic                             req_write_i,      // of a load or a store
  input  logic                             req_uncached_i,   // do not keep the line, if the protocol has such an access
  input  logic [LineWidth-1:0]             req_line_i,
  input  logic [DataWidth-1:0]             req_data_i,
  input  logic [StrobeWidth-1:0]           req_strobe_i,
  input  logic [WordWidth-1:0]             req_compare_i,    // expected word of a compare-and-swap
  output logic                             rsp_valid_o,
  output logic [TagWidth-1:0]              rsp_tag_o,
  output logic [DataWidth-1:0]             rsp_data_o,       // of a read, or before an atomic operation
  output logic                             rsp_error_o,      // the cache has no such operation, and has done nothing

  output logic                             step_o,           // a row is executed
  output logic                             unexpected_o      // a message or an eviction has no row, or a message needs
                                                             // an entry that it has not
);
  import cohkit_coherent_pkg::*;

  localparam int unsigned Sets     = 1 << SetWidth;
  localparam int unsigned SetBits  = SetWidth > 0 ? SetWidth : 1;
  localparam int unsigned WayWidth = Ways > 1 ? $clog2(Ways) : 1;
  localparam int unsigned WayBits  = $clog2(Ways);
  // Words of data: a set has a power of two, so that the way is a bit field of the number.
  localparam int unsigned Words    = Sets << WayBits;
  localparam int unsigned WordBits = Words > 1 ? $clog2(Words) : 1;
  localparam int unsigned MshrBits = Mshrs > 1 ? $clog2(Mshrs) : 1;

  typedef logic [LineWidth-1:0] line_t;
  typedef logic [SetBits-1:0]   set_t;
  typedef logic [WayWidth-1:0]  way_t;
  typedef logic [MshrBits-1:0]  mshr_t;
  typedef enum logic [1:0] {Nothing, Message, Access, Eviction} source_e;

  typedef struct packed {
    line_t      line;
    state_e     state;
    variables_t variables;
  } entry_t;

  typedef struct packed {
    line_t      line;
    logic [2:0] op;
    logic       error;
    logic       write;
    logic       uncached;
    logic       whole;
  } access_t;

  logic [Sets-1:0][Ways-1:0]    used_q;
  entry_t [Ways-1:0]            access_entries, message_entries;  // of the set of each
  entry_t                       entry, next_entry;
  logic                         write_entry, write_data;
  logic [WordBits-1:0]          word;                             // of the line in `set` and `way`
  logic [DataWidth-1:0]         own_data, next_data;

  logic [Mshrs-1:0]             valid_q, asleep_q, evict_own_q;
  logic [Mshrs-1:0]             has_victim_q;                     // the access has evicted a line to free its way
  way_t [Mshrs-1:0]             victims_q;                        // this way
  access_t [Mshrs-1:0]          accesses_q;
  logic [Mshrs-1:0][TagWidth-1:0] tags_q;
  logic [Mshrs-1:0][Mshrs-1:0]  after_q;                          // earlier accesses to the same line, and fences
  logic [Mshrs-1:0]             heads, awake, addressed, earlier;
  mshr_t                        next_q, candidate, answered, served, free;
  logic                         pending, attempted, accept, is_flush, is_bare, ready, finish, atomic, equal;
  logic [2:0]                   op;                               // of the access that the step serves
  logic [WordWidth-1:0]         compare;
  access_t                      access;                           // the candidate
  logic [DataWidth-1:0]         store;                            // bytes of the access that the step serves
  logic [StrobeWidth-1:0]       strobe;
  logic                         turn_q, yield_q;

  source_e                      source;
  logic                         valid, permitted, startable, occupied;
  logic [$clog2(Inputs)-1:0]    index;
  message_t                     current;
  set_t                         access_set, message_set, set;
  logic [Ways-1:0]              access_hits, access_free, message_hits;
  way_t                         access_way, message_way, way, victim;
  logic                         present, room, outbox_empty, take, done, perform, evict, touched;
  line_t                        line;
  message_t [Sends-1:0]         messages;
  logic [Sends-1:0][Agents-1:0] receivers;
  logic [DataWidth-1:0]         copy, result, stored;
  logic                         unused;

  if (Ways < 1 || LineWidth < 1 || LineWidth < SetWidth || Mshrs < 1 || TagWidth < 1) begin : gen_invalid_size
    $error("cohkit_cache: Ways, LineWidth, Mshrs and TagWidth must be at least 1, and SetWidth at most LineWidth");
  end

  // Writes in messages go to the home.
  assign unused = ^current.strobe;

  // Number of the lowest way of a set of ways.
  function automatic way_t lowest(input logic [Ways-1:0] ways);
    lowest = '0;
    for (int unsigned i = 0; i < Ways; i++) begin
      if (ways[Ways-1-i]) lowest = way_t'(Ways - 1 - i);
    end
  endfunction

  // Number of the lowest MSHR of a set of MSHRs.
  function automatic mshr_t lowest_mshr(input logic [Mshrs-1:0] mshrs);
    lowest_mshr = '0;
    for (int unsigned i = 0; i < Mshrs; i++) begin
      if (mshrs[Mshrs-1-i]) lowest_mshr = mshr_t'(Mshrs - 1 - i);
    end
  endfunction

  // The access that is looked up, from `next_q` on, and the first access to the message's line.
  always_comb begin
    for (int unsigned i = 0; i < Mshrs; i++) begin
      heads[i]     = valid_q[i] && after_q[i] == '0;
      awake[i]     = heads[i] && !asleep_q[i];
      addressed[i] = heads[i] && accesses_q[i].op != Fence && accesses_q[i].line == current.line;
      earlier[i]   = valid_q[i]
                     && (accesses_q[i].line == req_line_i || accesses_q[i].op == Fence || req_op_i == Fence);
    end
    candidate = lowest_mshr(awake);
    for (int unsigned i = 0; i < Mshrs; i++) begin
      if (awake[Mshrs-1-i] && mshr_t'(Mshrs - 1 - i) >= next_q) candidate = mshr_t'(Mshrs - 1 - i);
    end
  end
  assign pending  = awake != '0;
  assign access   = accesses_q[candidate];
  assign answered = lowest_mshr(addressed);
  assign served   = source == Message ? answered : candidate;
  assign free     = lowest_mshr(~valid_q);

  cohkit_pick #(.Inputs(Inputs)) u_pick (
    .clk_i, .rst_ni,
    .valid_i(in_valid_i),
    .busy_i (1'b0),
    .hold_i (source != Message || step_effect_i == Take && !outbox_empty),
    .valid_o(valid),
    .index_o(index)
  );

  // Entries of the message and of the access. Without an entry, an access uses a free one, or that of a
  // victim. It evicts one line, and waits until that one has left.
  assign current     = in_message_i[index];
  assign message_set = SetWidth > 0 ? set_t'(current.line) : '0;
  assign access_set  = SetWidth > 0 ? set_t'(access.line) : '0;
  always_comb begin
    for (int unsigned i = 0; i < Ways; i++) begin
      access_hits[i]  = used_q[access_set][i] && access_entries[i].line == access.line;
      message_hits[i] = used_q[message_set][i] && message_entries[i].line == current.line;
    end
  end
  assign access_free = ~used_q[access_set];
  assign message_way = lowest(message_hits);
  assign access_way  = access_hits != '0 ? lowest(access_hits)
                       : access_free != '0 ? lowest(access_free)
                       : has_victim_q[candidate] ? victims_q[candidate] : victim;
  assign occupied    = access_hits == '0 && access_free == '0;

  // A fence and a refused access need no line. A flush evicts the line, and ends when it has left.
  assign is_bare  = access.op == Fence || access.error;
  assign is_flush = access.op == Flush;
  assign ready    = pending && (is_bare || is_flush && access_hits == '0);

  assign access_write_o    = access.write;
  assign access_uncached_o = access.uncached;
  assign access_whole_o    = access.whole;
  assign access_state_o    = access_free[access_way] ? initial_state_i : access_entries[access_way].state;
  assign permitted = pending && !is_bare && !is_flush && !evict_own_q[candidate] && access_hits != '0
                     && (access.write ? access_writes_i : access_reads_i);
  assign startable = pending && !ready && (access_hits == '0 && !occupied || !access_waits_i);

  always_comb begin
    if (permitted && !(yield_q && valid)) source = Access;
    else if (valid && !(turn_q && (startable || ready))) source = Message;
    else if (startable && (is_flush || occupied || evict_own_q[candidate] && access_hits != '0)) source = Eviction;
    else if (startable) source = Access;
    else source = Nothing;
  end

  always_comb begin
    set              = source == Message ? message_set : access_set;
    way              = source == Message ? message_way : access_way;
    present          = source == Message ? message_hits != '0 : access_hits != '0 || source == Eviction;
    entry            = source == Message ? message_entries[way] : access_entries[way];
    line             = source == Message ? current.line : source == Eviction ? entry.line : access.line;
    step_state_o     = present ? entry.state : initial_state_i;
    step_variables_o = present ? entry.variables : initial_variables_i;
    step_sender_o    = source == Message ? current.sender : '0;
    step_fields_o    = source == Message ? current.fields : '0;
    unique case (source)
      Message:  step_event_o = current.message;
      Eviction: step_event_o = evict_i;
      Access, Nothing: step_event_o = access_event_i;
    endcase
  end

  // The current copy of the line, and the same with the bytes of the access.
  assign copy = source == Message && step_carries_line_i ? current.data : own_data;
  assign op   = accesses_q[served].op;
  always_comb begin
    result = store;
    equal  = 1'b1;
    for (int unsigned i = 0; i < DataWidth / WordWidth; i++) begin
      if (Atomics && op == Add) begin
        result[WordWidth*i +: WordWidth] = copy[WordWidth*i +: WordWidth] + store[WordWidth*i +: WordWidth];
      end
      if (strobe[WordWidth/8*i +: WordWidth/8] != '0 && copy[WordWidth*i +: WordWidth] != compare) equal = 1'b0;
    end
    stored = copy;
    for (int unsigned i = 0; i < StrobeWidth; i++) begin
      if (strobe[i] && !(Atomics && op == CompareAndSwap && !equal)) stored[8*i +: 8] = result[8*i +: 8];
    end
  end

  always_comb begin
    room = 1'b1;
    for (int unsigned slot = 0; slot < Sends; slot++) begin
      receivers[slot] = {step_sends_i[slot].to_home, step_sends_i[slot].to_remotes};
      messages[slot]  = '{
        message: step_sends_i[slot].message,
        sender:  self_i,
        line:    line,
        fields:  step_sends_i[slot].fields,
        data:    step_sends_i[slot].after_write ? stored : copy,
        strobe:  '1
      };
      if (step_sends_i[slot].data == Store) begin
        messages[slot].data   = store;
        messages[slot].strobe = strobe;
      end
      for (int unsigned agent = 0; agent < Agents; agent++) begin
        if (receivers[slot][agent] && !room_i[agent][step_queues_i[slot]]) room = 1'b0;
      end
    end
  end

  assign take    = source != Nothing && step_effect_i == Take && room && outbox_empty;
  assign done    = take && source == Message && step_done_i != NotDone;
  assign perform = source == Access && permitted
                   && (step_effect_i == NoRow && access_in_place_i
                       || take && (access.write ? step_perform_i : step_reads_i));
  assign finish  = source == Nothing && ready;
  assign step_o       = take;
  assign unexpected_o = source == Eviction && step_effect_i == NoRow
                        || source == Message
                           && (step_effect_i == NoRow
                               || take && !present
                                  && (step_state_i != initial_state_i || step_variables_i != initial_variables_i));

  always_comb begin
    in_take_o  = '0;
    in_stall_o = '0;
    in_take_o[index]  = take && source == Message;
    in_stall_o[index] = source == Message && (step_effect_i == Stall || step_effect_i == Take && !room);
  end

  // A permitted or startable access keeps its turn until it was tried.
  assign attempted = (source == Access || source == Eviction) && (take || outbox_empty) || perform || finish;

  assign req_ready_o = valid_q != '1;
  assign accept      = req_valid_i && req_ready_o;
  assign rsp_valid_o = perform || done || finish;
  assign rsp_tag_o   = tags_q[served];
  assign rsp_data_o  = copy;
  assign rsp_error_o = finish && access.error;
  assign atomic      = req_op_i inside {Swap, Add, CompareAndSwap};

  cohkit_ram #(.Words(Mshrs), .Width(DataWidth + StrobeWidth + WordWidth)) u_stores (
    .clk_i,
    .write_i        (accept),
    .write_address_i(free),
    .write_data_i   ({req_data_i, req_strobe_i, req_compare_i}),
    .read_address_i (served),
    .read_data_o    ({store, strobe, compare})
  );

  cohkit_outbox #(.message_t(message_t), .Sends(Sends), .Agents(Agents), .Queues(Queues)) u_outbox (
    .clk_i, .rst_ni,
    .load_i     (take),
    .messages_i (messages),
    .receivers_i(receivers),
    .queues_i   (step_queues_i),
    .empty_o    (outbox_empty),
    .message_o  (out_message_o),
    .push_o     (out_push_o)
  );

  assign evict   = take && source == Eviction && occupied && !has_victim_q[candidate];
  assign touched = evict || (perform || done || take && source == Access) && (present || source == Access);

  cohkit_replacement #(.Policy(Replacement), .SetBits(SetBits), .Sets(Sets), .Ways(Ways)) u_replacement (
    .clk_i, .rst_ni,
    .set_i    (access_set),
    .victim_o (victim),
    .evict_i  (evict),
    .use_i    (touched),
    .use_set_i(set),
    .use_way_i(way)
  );

  assign write_entry = take && (present || source == Access);
  assign word        = WordBits'(set) << WayBits | WordBits'(way);
  assign next_entry  = '{line: line, state: step_state_i, variables: step_variables_i};
  // Data: the copy with the bytes of a performed store, or the line of a message.
  assign write_data  = perform && access.write || done && step_done_i == WriteDone
                       || write_entry && step_copy_i == Received;
  assign next_data   = perform && access.write || done && step_done_i == WriteDone ? stored : current.data;

  for (genvar i = 0; i < Ways; i++) begin : gen_entries
    cohkit_ram #(.Words(Sets), .Width($bits(entry_t)), .ReadPorts(2)) u_entries (
      .clk_i,
      .write_i        (write_entry && way == way_t'(i)),
      .write_address_i(set),
      .write_data_i   (next_entry),
      .read_address_i ({access_set, message_set}),
      .read_data_o    ({access_entries[i], message_entries[i]})
    );
  end
  cohkit_ram #(.Words(Words), .Width(DataWidth)) u_data (
    .clk_i,
    .write_i        (write_data),
    .write_address_i(word),
    .write_data_i   (next_data),
    .read_address_i (word),
    .read_data_o    (own_data)
  );

  always_ff @(posedge clk_i) begin
    turn_q  <= !turn_q;
    // Messages go on between two accesses, also while an access waits for room, which may need messages to be received.
    // The outbox drains by itself.
    yield_q <= permitted && attempted;
    // The access that the message may have given its permission comes next.
    if (take && source == Message && addressed != '0) next_q <= answered;
    else if ((permitted || startable || ready) && !attempted) next_q <= candidate;
    else next_q <= candidate == mshr_t'(Mshrs - 1) ? '0 : mshr_t'(candidate + 1'b1);
    if (pending) begin
      // A message may have taken the line meanwhile.
      if (source == Eviction || access_hits == '0) evict_own_q[candidate] <= 1'b0;
      else if (source == Access && step_effect_i == NoRow && !perform && !access_waits_i) evict_own_q[candidate] <= 1'b1;
      if (!permitted && !startable && !ready) asleep_q[candidate] <= 1'b1;
    end
    for (int unsigned i = 0; i < Mshrs; i++) begin
      if (take && (SetWidth == 0 || set_t'(accesses_q[i].line) == set)) asleep_q[i] <= 1'b0;
      if (rsp_valid_o) after_q[i][served] <= 1'b0;
    end
    if (write_entry) used_q[set][way] <= step_state_i != initial_state_i || step_variables_i != initial_variables_i;
    if (evict) begin
      has_victim_q[candidate] <= 1'b1;
      victims_q[candidate]    <= victim;
    end else if (pending && !occupied) begin
      has_victim_q[candidate] <= 1'b0;
    end
    if (rsp_valid_o) valid_q[served] <= 1'b0;
    if (accept) begin
      valid_q[free]     <= 1'b1;
      asleep_q[free]    <= 1'b0;
      evict_own_q[free] <= 1'b0;
      has_victim_q[free] <= 1'b0;
      after_q[free]     <= rsp_valid_o ? earlier & ~(Mshrs'(1) << served) : earlier;
      tags_q[free]      <= req_tag_i;
      accesses_q[free]  <= '{line: req_line_i, op: req_op_i,
                             error: atomic && !Atomics || req_op_i > Flush,
                             write: atomic || req_write_i, uncached: req_uncached_i && !atomic,
                             whole: req_strobe_i == '1};
    end
    if (!rst_ni) begin
      valid_q     <= '0;
      next_q      <= '0;
      turn_q      <= 1'b0;
      yield_q     <= 1'b0;
      used_q      <= '0;
    end
  end
endmodule : cohkit_cache
