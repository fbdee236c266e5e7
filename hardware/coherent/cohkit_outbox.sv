// Messages of the last step of an agent, which leave in order, one slot per cycle.
//
// The agent executes a step only if the outbox is empty. Every queue has room for the step's messages, so that the outbox
// always drains: the agent has checked it, or the depth of the queues bounds their messages.

module cohkit_outbox #(
  parameter type         message_t = logic,
  parameter int unsigned Sends     = 1,
  parameter int unsigned Agents    = 2,
  parameter int unsigned Queues    = 1,

  localparam int unsigned QueueWidth = Queues > 1 ? $clog2(Queues) : 1
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  // Messages of a step, each with its receivers and its queue.
  input  logic                                load_i,
  input  message_t [Sends-1:0]                messages_i,
  input  logic [Sends-1:0][Agents-1:0]        receivers_i,
  input  logic [Sends-1:0][QueueWidth-1:0]  queues_i,
  output logic                                empty_o,

  // One message to all its receivers.
  output message_t                            message_o,
  output logic [Agents-1:0][Queues-1:0]     push_o
);
  message_t [Sends-1:0]               messages_q;
  logic [Sends-1:0][Agents-1:0]       receivers_q;
  logic [Sends-1:0][QueueWidth-1:0] queues_q;
  logic [Sends-1:0]                   pending, first;

  always_comb begin
    for (int unsigned slot = 0; slot < Sends; slot++) pending[slot] = receivers_q[slot] != '0;
    first = pending & ~(pending - Sends'(1));
  end

  assign empty_o = pending == '0;

  always_comb begin
    message_o = messages_q[0];
    push_o    = '0;
    for (int unsigned slot = 0; slot < Sends; slot++) begin
      if (first[slot]) begin
        message_o = messages_q[slot];
        for (int unsigned agent = 0; agent < Agents; agent++) begin
          push_o[agent][queues_q[slot]] = receivers_q[slot][agent];
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (load_i) begin
      messages_q <= messages_i;
      queues_q <= queues_i;
    end
    for (int unsigned slot = 0; slot < Sends; slot++) begin
      if (!rst_ni || first[slot]) receivers_q[slot] <= '0;
      if (rst_ni && load_i) receivers_q[slot] <= receivers_i[slot];
    end
  end
endmodule : cohkit_outbox
