// Messages of a unit to the remote: one queue per circuit, and the entries that a message frees when it has left.
//
// The queues have room for everything that the unit's entries can produce, so a write never stalls.

`include "assertions.svh"

module dcu_tx #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type         send_e    = logic,
  parameter int unsigned Reads     = 2,    // reads and writes of memory, each with a grant
  parameter int unsigned Writes    = 2,
  parameter int unsigned Forwards  = 2,
  parameter int unsigned LineWidth = 23,

  localparam int unsigned NumTx     = int'(Protocol.tx_circuits),
  localparam int unsigned ReadWidth = home_pkg::bits(Reads)
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  // The messages of an executed row: the grant first, then, in the step after, the forward.
  input  logic                             takes_i,
  input  logic                             second_i,
  input  logic                             grant_valid_i,
  input  send_e                            grant_i,
  input  logic                             forward_valid_i,
  input  send_e                            forward_i,
  input  logic  [LineWidth-1:0]            line_i,
  input  logic  [Reads-1:0]                of_reads_i,      // the event is the completion of this read
  input  logic  [Writes-1:0]               of_writes_i,
  output logic                             lacks_room_o,    // the grant has no entry, and another such grant is queued

  // By circuit.
  output logic  [NumTx-1:0]                tx_valid_o,
  input  logic  [NumTx-1:0]                tx_ready_i,
  output send_e [NumTx-1:0]                tx_send_o,
  output logic  [NumTx-1:0][LineWidth-1:0] tx_line_o,
  output logic  [NumTx-1:0][ReadWidth-1:0] tx_slot_o,

  // In the cycle before, a message has left; and the read and write entries that are free thereby.
  output logic                             left_o,
  output logic  [Reads-1:0]                left_reads_o,
  output logic  [Writes-1:0]               left_writes_o,
  output logic                             idle_o           // all queues are empty
);
  localparam int unsigned WriteWidth = home_pkg::bits(Writes);
  // One grant per read and write, and one for a request that is answered at once.
  localparam int unsigned Grants     = Reads + Writes + 1;

  // Entry to notify once a message has left.
  typedef enum logic [1:0] {
    TxForward,    // none: the response to it completes the operation
    TxRead,       // the read whose bytes it carries
    TxWrite,      // the write whose completion it reports
    TxImmediate   // none: it is sent without a memory operation
  } tx_of_e;

  // The fields after `line` are 0 for a forward.
  typedef struct packed {
    send_e                 send;
    logic [LineWidth-1:0]  line;
    tx_of_e                of;
    logic [ReadWidth-1:0]  read;
    logic [WriteWidth-1:0] write;
  } tx_t;

  tx_t              wr_data;
  tx_t  [NumTx-1:0] rd_data, left_q;
  logic [NumTx-1:0] wr, wr_ready, left_valid_q;
  logic             of_read, of_write, immediate;
  logic             immediate_d, immediate_q;  // a message without a memory operation is queued

  assign of_read      = of_reads_i != '0;
  assign of_write     = of_writes_i != '0;
  assign immediate    = grant_valid_i && !of_read && !of_write;
  assign lacks_room_o = immediate && immediate_q;
  assign idle_o       = tx_valid_o == '0 && !immediate_q;

  always_comb begin
    wr_data      = '0;
    wr_data.line = line_i;
    for (int unsigned i = 0; i < Reads; i++) begin
      if (of_reads_i[i]) wr_data.read |= ReadWidth'(i);
    end
    for (int unsigned i = 0; i < Writes; i++) begin
      if (of_writes_i[i]) wr_data.write |= WriteWidth'(i);
    end
    if (grant_valid_i && !second_i) begin
      wr_data.send = grant_i;
      wr_data.of   = of_read ? TxRead : of_write ? TxWrite : TxImmediate;
    end else begin
      wr_data.send = forward_i;
      wr_data.of   = TxForward;
    end
  end

  // A stalled circuit stalls no other. Messages that the protocol orders use one circuit, so they stay in order.
  for (genvar c = 0; c < NumTx; c++) begin : gen_tx
    localparam bit          HasGrants   = (Protocol.grants & Protocol.send_circuit[c]) != '0;
    localparam bit          HasForwards = (Protocol.forwards & Protocol.send_circuit[c]) != '0;
    localparam int unsigned Most        = (HasGrants ? Grants : 0) + (HasForwards ? Forwards : 0);
    localparam int unsigned Depth       = Most > 1 ? 2 ** $clog2(Most) : 1;

    assign wr[c] = (takes_i && (grant_valid_i || forward_valid_i) || second_i) && Protocol.send_circuit[c][4'(wr_data.send)];

    assign tx_send_o[c] = rd_data[c].send;
    assign tx_line_o[c] = rd_data[c].line;
    assign tx_slot_o[c] = rd_data[c].read;

    if (HasGrants) begin : gen_grants
      fifo #(
        .Depth (Depth),
        .NeverFull  (1'b1),
        .data_t(tx_t)
      ) u_queue (
        .clk_i,
        .rst_ni,
        .wr_valid_i(wr[c]),
        .wr_ready_o(wr_ready[c]),
        .wr_data_i (wr_data),
        .rd_valid_o(tx_valid_o[c]),
        .rd_ready_i(tx_ready_i[c]),
        .rd_data_o (rd_data[c])
      );
    end else begin : gen_forwards
      // A forward consists of its line only.
      localparam int unsigned SendWidth = $bits(send_e);
      logic [SendWidth+LineWidth-1:0] forward;

      fifo #(
        .Depth (Depth),
        .NeverFull  (1'b1),
        .data_t(logic [SendWidth+LineWidth-1:0])
      ) u_queue (
        .clk_i,
        .rst_ni,
        .wr_valid_i(wr[c]),
        .wr_ready_o(wr_ready[c]),
        .wr_data_i ({wr_data.send, wr_data.line}),
        .rd_valid_o(tx_valid_o[c]),
        .rd_ready_i(tx_ready_i[c]),
        .rd_data_o (forward)
      );
      assign rd_data[c] = tx_t'({forward, ($bits(tx_t) - SendWidth - LineWidth)'(0)});
    end
  end

  logic unused;
  assign unused = ^{left_q, rd_data};

  assign left_o = left_valid_q != '0;

  always_comb begin
    left_reads_o  = '0;
    left_writes_o = '0;
    immediate_d   = immediate_q;
    for (int unsigned c = 0; c < NumTx; c++) begin
      if (left_valid_q[c]) begin
        if (left_q[c].of == TxWrite) left_writes_o[left_q[c].write] = 1'b1;
        if (left_q[c].of == TxImmediate) immediate_d = 1'b0;
        // The entry of a read whose bytes the message carries is free once they have left.
        if (left_q[c].of == TxRead && !Protocol.send_payload[4'(left_q[c].send)]) left_reads_o[left_q[c].read] = 1'b1;
      end
    end
    if (takes_i && immediate) immediate_d = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    left_q <= rd_data;
    if (!rst_ni) begin
      left_valid_q <= '0;
      immediate_q  <= 1'b0;
    end else begin
      left_valid_q <= tx_valid_o & tx_ready_i;
      immediate_q  <= immediate_d;
    end
  end

  `ASSERT(queue_has_room, (wr & ~wr_ready) == '0)
  `ASSERT(queue_of_a_circuit, !(takes_i && (grant_valid_i || forward_valid_i) || second_i) || $onehot(wr))
endmodule : dcu_tx
