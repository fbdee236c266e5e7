// Home of all lines of a memory, with a directory entry for every line.
//
// One event is handled at a time. A row that sends the line from memory waits for the data first, and no other row is
// executed meanwhile. A row that uses memory waits until the previous write is acknowledged, and rows that do not use
// memory are executed meanwhile. Memory waits for no message, so neither wait leads to a deadlock. A message that
// stalls, or whose answers have no room, lets the messages of other queues pass.
//
// A constructed home starts memory operations, and handles their end as an event.

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

  // Memory: one request at a time, held until it is done.
  output logic                             mem_valid_o,
  output logic                             mem_write_o,
  output logic [LineWidth-1:0]             mem_line_o,
  output logic [DataWidth-1:0]             mem_data_o,
  output logic [StrobeWidth-1:0]           mem_strobe_o,
  input  logic                             mem_done_i,
  input  logic [DataWidth-1:0]             mem_data_i,

  output logic                             step_o,        // a row is executed
  output logic                             unexpected_o   // a message has no row
);
  import cohkit_coherent_pkg::*;

  localparam int unsigned Lines = 1 << LineWidth;

  typedef struct packed {
    logic [DataWidth-1:0]   data;
    logic [StrobeWidth-1:0] strobe;
  } bytes_t;

  // Use of memory: a row waits for data, a row has written, a started operation runs, or its end is an event.
  typedef enum logic [2:0] {Idle, Read, Write, Started, Completed} phase_e;

  phase_e                       phase_q;
  logic [LineWidth-1:0]         line_q;       // of the write or the started operation
  bytes_t                       bytes_q;      // written bytes, or the data that a started operation has read
  logic                         started_read_q, skip_q;
  state_e [Lines-1:0]           states_q;
  variables_t [Lines-1:0]       variables_q;

  logic                         message_valid, completion, valid, room, outbox_empty;
  logic                         reads, writes, starts, memory_free, ready, execute;
  logic [$clog2(Inputs)-1:0]    index;
  message_t                     current;
  bytes_t                       store, written, deferred;
  message_t [Sends-1:0]         messages;
  logic [Sends-1:0][Agents-1:0] receivers;
  logic                         unused;

  // The strobes tell whether a write covers the line, and a write that no row uses is kept.
  assign unused = ^{step_memory_i.defer, step_memory_i.whole};

  // Replaces the bytes of `base` that `bytes` has.
  function automatic logic [DataWidth-1:0] merged(input logic [DataWidth-1:0] base, input bytes_t bytes);
    for (int unsigned i = 0; i < StrobeWidth; i++) begin
      merged[8*i +: 8] = bytes.strobe[i] ? bytes.data[8*i +: 8] : base[8*i +: 8];
    end
  endfunction

  cohkit_pick #(.Inputs(Inputs)) u_pick (
    .clk_i, .rst_ni,
    .valid_i(in_valid_i),
    .hold_i (phase_q == Read && !execute || completion || ready && reads),
    .valid_o(message_valid),
    .index_o(index)
  );

  // The end of a started operation comes first; if it waits, messages have every second cycle.
  assign completion = phase_q == Completed && !skip_q;
  assign valid      = completion || message_valid;

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
  end

  assign step_state_o     = states_q[current.line];
  assign step_variables_o = variables_q[current.line];
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

  // The row can be executed, or begin to read memory. Room for its messages was found before the read.
  assign ready   = valid && step_effect_i == Take && room && outbox_empty && phase_q != Read
                   && (memory_free || !(reads || writes || starts));
  assign execute = phase_q == Read ? mem_done_i : ready && !reads;
  assign step_o       = execute;
  assign unexpected_o = valid && step_effect_i == NoRow;

  always_comb begin
    in_take_o  = '0;
    in_stall_o = '0;
    in_take_o[index]  = execute && !completion;
    in_stall_o[index] = message_valid && !completion && step_effect_i == Stall;
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

  always_ff @(posedge clk_i) begin
    if (execute) begin
      states_q[current.line]    <= step_state_i;
      variables_q[current.line] <= step_variables_i;
    end
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
      for (int unsigned line = 0; line < Lines; line++) begin
        states_q[line]    <= initial_state_i;
        variables_q[line] <= initial_variables_i;
      end
    end
  end

  if (Defers) begin : gen_deferred
    bytes_t [Lines-1:0] deferred_q;
    assign deferred = deferred_q[current.line];
    always_ff @(posedge clk_i) begin
      if (execute && step_carries_store_i && (step_memory_i.defer || Starts && !step_memory_i.start_store)) begin
        deferred_q[current.line] <= '{data: current.data, strobe: current.strobe};
      end
    end
  end else begin : gen_no_deferred
    assign deferred = '0;
  end
endmodule : cohkit_home
