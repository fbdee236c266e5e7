// Home of all lines of a memory, with a directory entry for every line, or with a set-associative directory.
//
// The entry of a line exists while its state or a variable differs from the initial one. A message that needs an entry
// in a full set waits like a message that stalls. The home then recalls another line of the set: it starts the
// operation of the table after which no cache has a copy. One recall is in progress at a time. A line whose table does
// not take the operation in its state is not recalled, and another one of the set is tried. The row of the line's state
// decides whether the recall of a line with a transaction in progress begins, as for an operation of a device.
//
// The first message that waits keeps the next free entry of its set: no other line of the set gets an entry before its
// line has one. One entry is kept at a time. The message needs no other entry: it waits for memory and for room in queues,
// and other lines of the set wait with it (hardware/README.md, depth of queues).
//
// One event is handled at a time. A row that sends the line from memory waits for the data first, and no other row is
// executed meanwhile. A row that uses memory waits until the previous write is acknowledged, and rows that do not use
// memory are executed meanwhile. A message that stalls, or whose answers have no room, lets other messages pass.
//
// A constructed home starts memory operations, and handles their end as an event. The end of an operation that starts no
// other one does not wait for room: rows that send leave room for one further row, and the minimum depth of the queues
// bounds the messages in them (hardware/README.md, depth of queues).

module cohkit_home #(
  parameter type         message_t   = logic,   // message, sender, line, fields, data, strobe
  parameter type         event_e     = logic,
  parameter type         remote_t    = logic,
  parameter type         fields_t    = logic,
  parameter type         state_e     = logic,
  parameter type         variables_t = logic,
  parameter type         send_t      = logic,
  parameter type         memory_t    = logic,
  parameter int unsigned LineWidth   = 4,
  parameter int unsigned DataWidth   = 64,
  parameter int unsigned SetWidth    = LineWidth,  // bits of a set's number in the directory
  parameter int unsigned Ways        = 1,          // entries of a set
  parameter bit          Recalls     = 1'b0,       // the table has an operation that takes a line from all caches
  parameter int unsigned Agents      = 3,
  parameter int unsigned Queues      = 3,
  parameter int unsigned Sends       = 1,
  parameter bit          Defers      = 1'b0,    // the table writes bytes of an earlier message, kept for each line
  parameter bit          Starts      = 1'b0,    // it starts stores of requests, whose bytes are kept without a `defer`

  localparam int unsigned Inputs      = Agents * Queues,
  localparam int unsigned QueueWidth  = Queues > 1 ? $clog2(Queues) : 1,
  localparam int unsigned StrobeWidth = DataWidth / 8
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  // Queues to the home, and room in the queues from it.
  input  logic [Inputs-1:0]                in_valid_i,
  input  message_t [Inputs-1:0]            in_message_i,
  output logic [Inputs-1:0]                in_take_o,
  output logic [Inputs-1:0]                in_stall_o,
  output message_t                         out_message_o,
  output logic [Agents-1:0][Queues-1:0]    out_push_o,
  input  logic [Agents-1:0][Queues-1:0]    room_i,

  // Step function, and the events of memory.
  input  event_e                           memory_data_i,
  input  event_e                           memory_done_i,
  input  event_e                           recall_i,              // operation that takes a line from all caches
  input  state_e                           initial_state_i,
  input  variables_t                       initial_variables_i,
  output state_e                           step_state_o,
  output variables_t                       step_variables_o,
  output event_e                           step_event_o,
  output remote_t                          step_sender_o,
  output fields_t                          step_fields_o,
  input  logic                             step_carries_store_i,  // the event is a message with the bytes of a write
  input  logic [1:0]                       step_effect_i,
  input  state_e                           step_state_i,
  input  variables_t                       step_variables_i,
  input  send_t [Sends-1:0]                step_sends_i,
  input  logic [Sends-1:0][QueueWidth-1:0] step_queues_i,
  input  memory_t                          step_memory_i,
  input  logic                             step_acknowledge_i,    // the operation is complete

  // Memory: one request at a time, held until it is done.
  output logic                             mem_valid_o,
  output logic                             mem_write_o,
  output logic [LineWidth-1:0]             mem_line_o,
  output logic [DataWidth-1:0]             mem_data_o,
  output logic [StrobeWidth-1:0]           mem_strobe_o,
  input  logic                             mem_done_i,
  input  logic [DataWidth-1:0]             mem_data_i,

  output logic                             step_o,        // a row is executed
  output logic                             unexpected_o   // a message or a recall has no row
);
  import cohkit_coherent_pkg::*;

  localparam int unsigned Sets     = 1 << SetWidth;
  localparam int unsigned SetBits  = SetWidth > 0 ? SetWidth : 1;
  localparam int unsigned WayWidth = Ways > 1 ? $clog2(Ways) : 1;
  localparam bit          IsFull   = SetWidth == LineWidth;  // an entry for every line

  typedef logic [LineWidth-1:0] line_t;
  typedef logic [SetBits-1:0]   set_t;
  typedef logic [WayWidth-1:0]  way_t;

  typedef struct packed {
    logic [DataWidth-1:0]   data;
    logic [StrobeWidth-1:0] strobe;
  } bytes_t;

  // Use of memory: a row waits for data, a row has written, a started operation runs, or its end is an event.
  typedef enum logic [2:0] {Idle, Read, Write, Started, Completed} phase_e;

  phase_e                       phase_q;
  line_t                        line_q;       // of the write or the started operation
  bytes_t                       bytes_q;      // written bytes, or the data that a started operation has read
  logic                         started_read_q, skip_q;

  // Directory: one bit for each entry records that it exists; the rest is in distributed RAM.
  typedef struct packed {
    state_e     state;
    variables_t variables;
  } entry_t;

  logic [Sets-1:0][Ways-1:0]    used_q;
  entry_t [Ways-1:0]            entries;      // of the set
  line_t [Ways-1:0]             tags;
  entry_t                       next_entry;
  logic                         write_entry;

  // Recall: wanted, and in progress.
  logic                         recall_q, recalling_q, recall_turn_q, waiting_q;
  line_t                        recall_line_q, waiting_line_q;
  way_t                         victim_q;

  logic                         message_valid, completion, recalls, from_message, valid, room, outbox_empty, chooses;
  logic [Ways-1:0]              used, hits;
  set_t                         set;
  way_t                         way;
  logic                         present, allocates, full, kept, waits, blocked, taken;
  logic                         reads, writes, starts, memory_free, ready, execute;
  logic [$clog2(Inputs)-1:0]    index;
  message_t                     current;
  bytes_t                       store, written, deferred;
  message_t [Sends-1:0]         messages;
  logic [Sends-1:0][Agents-1:0] receivers;
  logic                         unused;

  if (LineWidth < SetWidth || Ways < 1 || !Recalls && !IsFull) begin : gen_invalid_directory
    $error("cohkit_home: Ways must be at least 1, and SetWidth at most LineWidth, and LineWidth without recalls");
  end

  // The strobes tell whether a write covers the line, and a write that no row uses is kept.
  assign unused = ^{step_memory_i.defer, step_memory_i.whole};

  // Replaces the bytes of `base` that `bytes` has.
  function automatic logic [DataWidth-1:0] merged(input logic [DataWidth-1:0] base, input bytes_t bytes);
    for (int unsigned i = 0; i < StrobeWidth; i++) begin
      merged[8*i +: 8] = bytes.strobe[i] ? bytes.data[8*i +: 8] : base[8*i +: 8];
    end
  endfunction

  // Number of the lowest way of a set of ways.
  function automatic way_t lowest(input logic [Ways-1:0] ways);
    lowest = '0;
    for (int unsigned i = 0; i < Ways; i++) begin
      if (ways[Ways-1-i]) lowest = way_t'(Ways - 1 - i);
    end
  endfunction

  cohkit_pick #(.Inputs(Inputs)) u_pick (
    .clk_i, .rst_ni,
    .valid_i(in_valid_i),
    .busy_i (phase_q != Read && !(memory_free && outbox_empty)),
    .hold_i (phase_q == Read && !execute || completion || recalls || ready && reads),
    .valid_o(message_valid),
    .index_o(index)
  );

  // The end of a started operation comes first; if it waits, messages have every second cycle. So have they while a
  // recall waits. A recall does not wait beside the end of an operation, as both would leave messages no cycle.
  assign completion   = phase_q == Completed && !skip_q;
  assign recalls      = Recalls && recall_q && !recalling_q && recall_turn_q && phase_q != Completed && phase_q != Read;
  assign from_message = !completion && !recalls;
  assign valid        = completion || recalls && present || from_message && message_valid;

  always_comb begin
    current = in_message_i[index];
    // An event that exists, while there is no message.
    if (!message_valid) current.message = memory_data_i;
    if (completion) begin
      current         = '0;
      current.message = started_read_q ? memory_data_i : memory_done_i;
      current.line    = line_q;
      current.data    = bytes_q.data;
    end
    if (recalls) begin
      current         = '0;
      current.message = recall_i;
      current.line    = recall_line_q;
    end
  end

  // Entry of the line, or a free one.
  assign set = SetWidth > 0 ? set_t'(current.line) : '0;
  assign used = used_q[set];
  always_comb begin
    for (int unsigned i = 0; i < Ways; i++) hits[i] = used[i] && (IsFull || tags[i] == current.line);
  end
  assign present   = hits != '0;
  assign way       = present ? lowest(hits) : lowest(~used);
  assign allocates = !present && (step_state_i != initial_state_i || step_variables_i != initial_variables_i);
  assign full      = allocates && used == '1;
  assign kept      = allocates && waiting_q && current.line != waiting_line_q
                     && (SetWidth == 0 || set == set_t'(waiting_line_q));
  assign blocked   = full || kept;

  assign step_state_o     = present ? entries[way].state : initial_state_i;
  assign step_variables_o = present ? entries[way].variables : initial_variables_i;
  assign step_event_o     = current.message;
  assign step_sender_o    = current.sender;
  assign step_fields_o    = current.fields;

  // Bytes of the current write, and the bytes that the row writes to memory.
  assign store = step_carries_store_i ? '{data: current.data, strobe: current.strobe} : deferred;
  always_comb begin
    written = store;
    if (step_memory_i.write || step_memory_i.start_write) written = '{data: current.data, strobe: current.strobe};
    if (step_memory_i.write && step_memory_i.commit) begin
      written = '{data: merged(current.data, deferred), strobe: current.strobe | deferred.strobe};
    end
  end

  always_comb begin
    room  = 1'b1;
    reads = 1'b0;
    for (int unsigned slot = 0; slot < Sends; slot++) begin
      receivers[slot] = {step_sends_i[slot].to_home, step_sends_i[slot].to_remotes};
      messages[slot]  = '{
        message: step_sends_i[slot].message,
        sender:  '0,
        line:    current.line,
        fields:  step_sends_i[slot].fields,
        data:    current.data,
        strobe:  step_sends_i[slot].data == Store ? store.strobe : '1
      };
      if (step_sends_i[slot].data == Store) messages[slot].data = store.data;
      if (step_sends_i[slot].data == Own) begin
        messages[slot].data = step_sends_i[slot].after_write ? merged(mem_data_i, written) : mem_data_i;
      end
      for (int unsigned agent = 0; agent < Agents; agent++) begin
        if (receivers[slot][agent] && !room_i[agent][step_queues_i[slot]]) room = 1'b0;
      end
      if (receivers[slot] != '0 && step_sends_i[slot].data == Own) reads = 1'b1;
    end
  end

  assign writes      = step_memory_i.write || step_memory_i.commit;
  assign starts      = step_memory_i.start_read || step_memory_i.start_write || step_memory_i.start_store;
  assign memory_free = phase_q == Idle || completion;

  // The row can be executed, or begin to read memory. Room for its messages was found before the read. The end of an
  // operation does not wait for room, unless it starts another operation.
  assign taken   = valid && step_effect_i == Take;
  assign ready   = taken && !blocked && (room || completion && !starts) && outbox_empty && phase_q != Read
                   && (memory_free || !(reads || writes || starts));
  assign waits   = Recalls && from_message && taken && full && !waiting_q;                 // the first message that waits
  assign chooses = Recalls && from_message && taken && full && !recall_q && !recalling_q;  // the victim of a recall
  assign execute = phase_q == Read ? mem_done_i : ready && !reads;
  assign step_o       = execute;
  assign unexpected_o = valid && step_effect_i == NoRow;

  always_comb begin
    in_take_o  = '0;
    in_stall_o = '0;
    in_take_o[index]  = execute && from_message;
    in_stall_o[index] = message_valid && from_message && phase_q != Read
                        && (step_effect_i == Stall || taken && (blocked || !room));
  end

  cohkit_outbox #(.message_t(message_t), .Sends(Sends), .Agents(Agents), .Queues(Queues)) u_outbox (
    .clk_i, .rst_ni,
    .load_i     (execute),
    .messages_i (messages),
    .receivers_i(receivers),
    .queues_i   (step_queues_i),
    .empty_o    (outbox_empty),
    .message_o  (out_message_o),
    .push_o     (out_push_o)
  );

  assign mem_valid_o  = phase_q == Read || phase_q == Write || phase_q == Started;
  assign mem_write_o  = phase_q == Write || phase_q == Started && !started_read_q;
  assign mem_line_o   = phase_q == Read ? current.line : line_q;
  assign mem_data_o   = bytes_q.data;
  assign mem_strobe_o = bytes_q.strobe;

  assign write_entry = execute && (present || allocates);
  assign next_entry  = '{state: step_state_i, variables: step_variables_i};
  for (genvar i = 0; i < Ways; i++) begin : gen_entries
    logic write;
    assign write = write_entry && way == way_t'(i);
    cohkit_ram #(.Words(Sets), .Width($bits(entry_t))) u_entries (
      .clk_i,
      .write_i        (write),
      .write_address_i(set),
      .write_data_i   (next_entry),
      .read_address_i (set),
      .read_data_o    (entries[i])
    );
    if (IsFull) begin : gen_no_tags
      assign tags[i] = '0;
    end else begin : gen_tags
      cohkit_ram #(.Words(Sets), .Width(LineWidth)) u_tags (
        .clk_i,
        .write_i        (write),
        .write_address_i(set),
        .write_data_i   (current.line),
        .read_address_i (set),
        .read_data_o    (tags[i])
      );
    end
  end

  always_ff @(posedge clk_i) begin
    if (write_entry) used_q[set][way] <= step_state_i != initial_state_i || step_variables_i != initial_variables_i;
    if (execute && (writes || starts)) begin
      line_q         <= current.line;
      bytes_q        <= written;
      started_read_q <= step_memory_i.start_read;
    end else if (phase_q == Started && mem_done_i) begin
      bytes_q.data <= mem_data_i;
    end
    skip_q <= completion && !execute;
    if (execute && writes) phase_q <= Write;
    else if (execute && starts) phase_q <= Started;
    else if (execute && (phase_q == Read || completion)) phase_q <= Idle;
    else if (ready && reads) phase_q <= Read;
    else if (phase_q == Write && mem_done_i) phase_q <= Idle;
    else if (phase_q == Started && mem_done_i) phase_q <= Completed;
    if (!rst_ni) begin
      phase_q <= Idle;
      skip_q  <= 1'b0;
      used_q  <= '0;
    end
  end

  if (Recalls) begin : gen_recall
    always_ff @(posedge clk_i) begin
      recall_turn_q <= !recall_turn_q;
      if (chooses) begin
        recall_q      <= 1'b1;
        recall_line_q <= tags[victim_q];
        victim_q      <= victim_q == way_t'(Ways - 1) ? '0 : way_t'(victim_q + 1'b1);
      end
      if (waits) begin
        waiting_q      <= 1'b1;
        waiting_line_q <= current.line;
      end else if (execute && allocates && current.line == waiting_line_q) begin
        waiting_q <= 1'b0;
      end
      // The line may have been given up meanwhile.
      if (recalls && (execute || !present || step_effect_i != Take)) recall_q <= 1'b0;
      if (execute && recalls) recalling_q <= 1'b1;
      if (execute && step_acknowledge_i) recalling_q <= 1'b0;
      if (!rst_ni) begin
        recall_q      <= 1'b0;
        recalling_q   <= 1'b0;
        recall_turn_q <= 1'b0;
        waiting_q     <= 1'b0;
        victim_q      <= '0;
      end
    end
  end else begin : gen_no_recall
    logic unused_recall;
    assign unused_recall = ^{recall_i, step_acknowledge_i, victim_q, tags, waits, chooses};
    assign waiting_q     = 1'b0;
    assign waiting_line_q = '0;
    assign recall_q      = 1'b0;
    assign recalling_q   = 1'b0;
    assign recall_turn_q = 1'b0;
    assign recall_line_q = '0;
    assign victim_q      = '0;
  end

  if (Defers) begin : gen_deferred
    localparam int unsigned WayBits  = $clog2(Ways);
    localparam int unsigned Words    = Sets << WayBits;
    localparam int unsigned WordBits = Words > 1 ? $clog2(Words) : 1;
    logic [WordBits-1:0] word;
    assign word = WordBits'(set) << WayBits | WordBits'(way);
    cohkit_ram #(.Words(Words), .Width($bits(bytes_t))) u_deferred (
      .clk_i,
      .write_i        (execute && (IsFull || present || allocates) && step_carries_store_i
                       && (step_memory_i.defer || Starts && !step_memory_i.start_store)),
      .write_address_i(word),
      .write_data_i   ({current.data, current.strobe}),
      .read_address_i (word),
      .read_data_o    (deferred)
    );
  end else begin : gen_no_deferred
    assign deferred = '0;
  end
endmodule : cohkit_home
