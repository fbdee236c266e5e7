// Output queues of a directory controller unit (DCU): one per circuit to the remote, and one each for responses to the
// device, memory reads and memory writes.
//
// Each queue can hold everything that the unit's entries produce, so a write never stalls.

`include "assertions.svh"

module dcu_queues #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type         tx_t             = logic,   // first fields `send` and `line`; the other fields of a forward are 0
  parameter type         rsp_t            = logic,   // response to the device
  parameter type         read_t           = logic,
  parameter type         write_t          = logic,
  parameter int unsigned TxGrants      = 5,       // maximum number of queued grants
  parameter int unsigned TxForwards    = 2,
  parameter int unsigned LocalRspDepth = 4,       // depths are powers of two
  parameter int unsigned ReadDepth     = 2,
  parameter int unsigned WriteDepth    = 1,

  localparam int unsigned NumTx      = int'(Protocol.tx_circuits)
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic             tx_wr_i,
  input  tx_t              tx_wr_data_i,
  output logic [NumTx-1:0] tx_valid_o,      // by circuit, like the next four ports
  input  logic [NumTx-1:0] tx_ready_i,
  output tx_t  [NumTx-1:0] tx_data_o,
  output logic [NumTx-1:0] tx_sent_valid_o,    // a message was sent in the previous cycle
  output tx_t  [NumTx-1:0] tx_sent_o,

  input  logic             local_rsp_wr_i,
  input  rsp_t             local_rsp_wr_data_i,
  output logic             local_rsp_valid_o,
  input  logic             local_rsp_ready_i,
  output rsp_t             local_rsp_o,
  output logic             local_rsp_sent_valid_o,    // a response was sent in the previous cycle
  output rsp_t             local_rsp_sent_o,

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
  logic local_rsp_wr_ready, read_wr_ready, write_wr_ready;

  // One queue per circuit: a stalled circuit does not stall the others. Ordered messages share a circuit.
  logic [NumTx-1:0] tx_wr, tx_wr_ready;

  for (genvar c = 0; c < NumTx; c++) begin : gen_tx
    localparam bit          Grants    = (Protocol.grants & Protocol.send_circuit[c]) != '0;
    localparam bit          Forwards  = (Protocol.forwards & Protocol.send_circuit[c]) != '0;
    localparam int unsigned MaxQueued = (Grants ? TxGrants : 0) + (Forwards ? TxForwards : 0);
    localparam int unsigned Depth     = MaxQueued > 1 ? 2 ** $clog2(MaxQueued) : 1;

    assign tx_wr[c] = tx_wr_i && Protocol.send_circuit[c][4'(tx_wr_data_i.send)];

    if (Grants) begin : gen_grants
      fifo #(
        .Depth    (Depth),
        .NeverFull(1'b1),
        .data_t   (tx_t)
      ) u_tx (
        .clk_i,
        .rst_ni,
        .wr_valid_i(tx_wr[c]),
        .wr_ready_o(tx_wr_ready[c]),
        .wr_data_i (tx_wr_data_i),
        .rd_valid_o(tx_valid_o[c]),
        .rd_ready_i(tx_ready_i[c]),
        .rd_data_o (tx_data_o[c])
      );
    end else begin : gen_forwards
      // A forward needs only its message and its line.
      localparam int unsigned SendWidth = $bits(tx_wr_data_i.send);
      localparam int unsigned LineWidth = $bits(tx_wr_data_i.line);
      logic [SendWidth+LineWidth-1:0] forward;

      fifo #(
        .Depth    (Depth),
        .NeverFull(1'b1),
        .data_t   (logic [SendWidth+LineWidth-1:0])
      ) u_tx (
        .clk_i,
        .rst_ni,
        .wr_valid_i(tx_wr[c]),
        .wr_ready_o(tx_wr_ready[c]),
        .wr_data_i ({tx_wr_data_i.send, tx_wr_data_i.line}),
        .rd_valid_o(tx_valid_o[c]),
        .rd_ready_i(tx_ready_i[c]),
        .rd_data_o (forward)
      );
      // `send` and `line` are the first fields of `tx_t`; the others are 0.
      assign tx_data_o[c] = tx_t'({forward, ($bits(tx_t) - SendWidth - LineWidth)'(0)});
    end
  end

  fifo #(
    .Depth    (LocalRspDepth),
    .NeverFull(1'b1),
    .data_t   (rsp_t)
  ) u_local_rsp (
    .clk_i,
    .rst_ni,
    .wr_valid_i(local_rsp_wr_i),
    .wr_ready_o(local_rsp_wr_ready),
    .wr_data_i (local_rsp_wr_data_i),
    .rd_valid_o(local_rsp_valid_o),
    .rd_ready_i(local_rsp_ready_i),
    .rd_data_o (local_rsp_o)
  );

  fifo #(
    .Depth    (ReadDepth),
    .NeverFull(1'b1),
    .data_t   (read_t)
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
    .Depth    (WriteDepth),
    .NeverFull(1'b1),
    .data_t   (write_t)
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

  assign idle_o = tx_valid_o == '0 && !local_rsp_valid_o && !read_valid_o && !write_valid_o;

  always_ff @(posedge clk_i) begin
    tx_sent_o        <= tx_data_o;
    local_rsp_sent_o <= local_rsp_o;
    if (!rst_ni) begin
      tx_sent_valid_o        <= '0;
      local_rsp_sent_valid_o <= 1'b0;
    end else begin
      tx_sent_valid_o        <= tx_valid_o & tx_ready_i;
      local_rsp_sent_valid_o <= local_rsp_valid_o && local_rsp_ready_i;
    end
  end

  `ASSERT(tx_has_room, (tx_wr & ~tx_wr_ready) == '0)
  `ASSERT(tx_has_a_circuit, !tx_wr_i || $onehot(tx_wr))
  `ASSERT(local_rsp_has_room, !local_rsp_wr_i || local_rsp_wr_ready)
  `ASSERT(read_has_room, !read_wr_i || read_wr_ready)
  `ASSERT(write_has_room, !write_wr_i || write_wr_ready)
endmodule : dcu_queues
