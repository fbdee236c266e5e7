// What leaves a unit: messages to the remote, answers to the device, reads and writes of memory, each in a queue.
//
// There is room for all that the places of the unit can owe, so what is written is always taken.

`include "assertions.svh"

module dcu_queues #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type         tx_t        = logic,   // with the fields `send`, `of`, `read` and `write`
  parameter type         answer_t    = logic,   // with the fields `unlock` and `place`
  parameter type         read_t      = logic,
  parameter type         write_t     = logic,
  parameter int unsigned TxDepth     = 8,       // depths are powers of two
  parameter int unsigned AnswerDepth = 4,
  parameter int unsigned ReadDepth   = 2,
  parameter int unsigned WriteDepth  = 1,

  localparam int unsigned NumTx      = int'(Protocol.tx_circuits)
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             tx_wr_i,
  input  tx_t              tx_wr_data_i,
  output logic [NumTx-1:0] tx_valid_o,      // by circuit
  input  logic             tx_ready_i,
  output tx_t              tx_data_o,
  output logic             left_valid_o,    // a message has left in the cycle before
  output tx_t              left_o,

  input  logic             answer_wr_i,
  input  answer_t          answer_wr_data_i,
  output logic             answer_valid_o,
  input  logic             answer_ready_i,
  output answer_t          answer_o,
  output logic             told_valid_o,    // an answer has
  output answer_t          told_o,

  input  logic             read_wr_i,
  input  read_t            read_wr_data_i,
  output logic             read_valid_o,
  input  logic             read_ready_i,
  output read_t            read_o,

  input  logic             write_wr_i,
  input  write_t           write_wr_data_i,
  output logic             write_valid_o,
  input  logic             write_ready_i,
  output write_t           write_o,

  output logic             idle_o           // all queues are empty
);
  logic tx_wr_ready, tx_rd_valid, answer_wr_ready, read_wr_ready, write_wr_ready;

  fifo #(
    .Depth (TxDepth),
    .Fast  (1'b0),
    .data_t(tx_t)
  ) u_tx (
    .clk_i,
    .rst_ni,
    .wr_valid_i(tx_wr_i),
    .wr_ready_o(tx_wr_ready),
    .wr_data_i (tx_wr_data_i),
    .rd_valid_o(tx_rd_valid),
    .rd_ready_i(tx_ready_i),
    .rd_data_o (tx_data_o)
  );

  fifo #(
    .Depth (AnswerDepth),
    .data_t(answer_t)
  ) u_answer (
    .clk_i,
    .rst_ni,
    .wr_valid_i(answer_wr_i),
    .wr_ready_o(answer_wr_ready),
    .wr_data_i (answer_wr_data_i),
    .rd_valid_o(answer_valid_o),
    .rd_ready_i(answer_ready_i),
    .rd_data_o (answer_o)
  );

  fifo #(
    .Depth (ReadDepth),
    .data_t(read_t)
  ) u_read (
    .clk_i,
    .rst_ni,
    .wr_valid_i(read_wr_i),
    .wr_ready_o(read_wr_ready),
    .wr_data_i (read_wr_data_i),
    .rd_valid_o(read_valid_o),
    .rd_ready_i(read_ready_i),
    .rd_data_o (read_o)
  );

  fifo #(
    .Depth (WriteDepth),
    .data_t(write_t)
  ) u_write (
    .clk_i,
    .rst_ni,
    .wr_valid_i(write_wr_i),
    .wr_ready_o(write_wr_ready),
    .wr_data_i (write_wr_data_i),
    .rd_valid_o(write_valid_o),
    .rd_ready_i(write_ready_i),
    .rd_data_o (write_o)
  );

  assign idle_o = !tx_rd_valid && !answer_valid_o && !read_valid_o && !write_valid_o;

  // The circuit of the first message in the queue is decoded beforehand. After a message has left,
  // the one behind it, if there is one, is seen a cycle late.
  always_ff @(posedge clk_i) begin
    for (int unsigned c = 0; c < NumTx; c++) begin
      if (!rst_ni)           tx_valid_o[c] <= 1'b0;
      else if (!tx_rd_valid) tx_valid_o[c] <= tx_wr_i && Protocol.send_circuit[c][4'(tx_wr_data_i.send)];
      else                   tx_valid_o[c] <= !tx_ready_i && Protocol.send_circuit[c][4'(tx_data_o.send)];
    end
  end

  always_ff @(posedge clk_i) begin
    left_o <= tx_data_o;
    told_o <= answer_o;
    if (!rst_ni) begin
      left_valid_o <= 1'b0;
      told_valid_o <= 1'b0;
    end else begin
      left_valid_o <= tx_rd_valid && tx_ready_i;
      told_valid_o <= answer_valid_o && answer_ready_i;
    end
  end

  `ASSERT(tx_has_room, !tx_wr_i || tx_wr_ready)
  `ASSERT(answer_has_room, !answer_wr_i || answer_wr_ready)
  `ASSERT(read_has_room, !read_wr_i || read_wr_ready)
  `ASSERT(write_has_room, !write_wr_i || write_wr_ready)
  `ASSERT_STABLE(stable_tx, |tx_valid_o, tx_ready_i, {tx_valid_o, tx_data_o})
  `ASSERT(tx_of_its_head, tx_valid_o == '0 || tx_rd_valid)
  `ASSERT(one_head, $onehot0(tx_valid_o))
endmodule : dcu_queues
