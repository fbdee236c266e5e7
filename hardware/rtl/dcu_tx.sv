// Messages of a directory controller unit (DCU) to the remote: one queue per circuit. A message that has been sent may
// free a read or write entry.
//
// The queues have room for all messages that the unit's entries can produce, so queueing a message never stalls.

`include "assertions.svh"

module dcu_tx #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type         send_e    = logic,
  parameter int unsigned Reads     = 2,   // memory reads in flight, each with at most one grant
  parameter int unsigned Writes    = 2,   // memory writes in flight, each with at most one grant
  parameter int unsigned Forwards  = 2,   // local operations in progress, each with at most one queued forward
  parameter int unsigned LineWidth = 23,

  localparam int unsigned NumTx     = int'(Protocol.tx_circuits),
  localparam int unsigned ReadWidth = home_pkg::bits(Reads)
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  // Messages of an executed row: the grant with `execute_i`, then the forward with `send_forward_i`. A row without
  // grant sends its forward with `execute_i`.
  input  logic                             execute_i,
  input  logic                             send_forward_i,
  input  logic                             grant_valid_i,
  input  send_e                            grant_i,
  input  logic                             forward_valid_i,
  input  send_e                            forward_i,
  input  logic  [LineWidth-1:0]            line_i,
  input  logic  [Reads-1:0]                completed_read_i,    // by entry: the event is the completion of this read
  input  logic  [Writes-1:0]               completed_write_i,   // by entry: the event is the completion of this write
  output logic                             immediate_full_o,    // a grant without memory access must stall: another one is queued

  // Messages to the remote, one stream per circuit.
  output logic  [NumTx-1:0]                tx_valid_o,
  input  logic  [NumTx-1:0]                tx_ready_i,
  output send_e [NumTx-1:0]                tx_send_o,
  output logic  [NumTx-1:0][LineWidth-1:0] tx_line_o,
  output logic  [NumTx-1:0][ReadWidth-1:0] tx_slot_o,

  // One cycle late: a message was sent, and the read and write entries that it frees.
  output logic                             sent_o,
  output logic  [Reads-1:0]                freed_reads_o,
  output logic  [Writes-1:0]               freed_writes_o,
  output logic                             idle_o   // all queues are empty
);
  localparam int unsigned WriteWidth = home_pkg::bits(Writes);
  // One grant per read and write, and one for a request that is answered without a memory access.
  localparam int unsigned Grants     = Reads + Writes + 1;

  // Origin of a message, which determines the entry that it frees when it has been sent.
  typedef enum logic [1:0] {
    TxForward,    // local operation: its entry stays until the remote's response
    TxRead,       // completion of a read, whose data a message with payload carries
    TxWrite,      // completion of a write
    TxImmediate   // request answered without a memory access: no entry
  } tx_origin_e;

  // A queued message. The fields after `line` are 0 for a forward.
  typedef struct packed {
    send_e                 send;
    logic [LineWidth-1:0]  line;
    tx_origin_e                origin;
    logic [ReadWidth-1:0]  read;
    logic [WriteWidth-1:0] write;
  } tx_t;

  tx_t              wr_data;
  tx_t  [NumTx-1:0] rd_data, sent_q;
  logic [NumTx-1:0] wr, wr_ready, sent_valid_q;
  logic             is_read_completion, is_write_completion, is_immediate;
  logic             immediate_used_d, immediate_used_q;  // a grant without memory access is queued

  assign is_read_completion  = completed_read_i != '0;
  assign is_write_completion = completed_write_i != '0;
  assign is_immediate        = grant_valid_i && !is_read_completion && !is_write_completion;
  assign immediate_full_o    = is_immediate && immediate_used_q;
  assign idle_o              = tx_valid_o == '0 && !immediate_used_q;

  always_comb begin
    wr_data      = '0;
    wr_data.line = line_i;
    for (int unsigned i = 0; i < Reads; i++) begin
      if (completed_read_i[i]) wr_data.read |= ReadWidth'(i);
    end
    for (int unsigned i = 0; i < Writes; i++) begin
      if (completed_write_i[i]) wr_data.write |= WriteWidth'(i);
    end
    if (grant_valid_i && !send_forward_i) begin
      wr_data.send   = grant_i;
      wr_data.origin = is_read_completion ? TxRead : is_write_completion ? TxWrite : TxImmediate;
    end else begin
      wr_data.send   = forward_i;
      wr_data.origin = TxForward;
    end
  end

  // A stalled circuit stalls no other. Messages that the protocol orders use one circuit, so they stay in order.
  for (genvar c = 0; c < NumTx; c++) begin : gen_tx
    localparam bit          HasGrants   = (Protocol.grants & Protocol.send_circuit[c]) != '0;
    localparam bit          HasForwards = (Protocol.forwards & Protocol.send_circuit[c]) != '0;
    localparam int unsigned MaxEntries  = (HasGrants ? Grants : 0) + (HasForwards ? Forwards : 0);
    localparam int unsigned Depth       = MaxEntries > 1 ? 2 ** $clog2(MaxEntries) : 1;

    assign wr[c] = (execute_i && (grant_valid_i || forward_valid_i) || send_forward_i) && Protocol.send_circuit[c][4'(wr_data.send)];

    assign tx_send_o[c] = rd_data[c].send;
    assign tx_line_o[c] = rd_data[c].line;
    assign tx_slot_o[c] = rd_data[c].read;

    if (HasGrants) begin : gen_grants
      fifo #(
        .Depth    (Depth),
        .NeverFull(1'b1),
        .data_t   (tx_t)
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
      // This circuit has only forwards, which need no fields after `line`.
      localparam int unsigned SendWidth = $bits(send_e);
      logic [SendWidth+LineWidth-1:0] forward;

      fifo #(
        .Depth    (Depth),
        .NeverFull(1'b1),
        .data_t   (logic [SendWidth+LineWidth-1:0])
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
  assign unused = ^{sent_q, rd_data};

  assign sent_o = sent_valid_q != '0;

  always_comb begin
    freed_reads_o    = '0;
    freed_writes_o   = '0;
    immediate_used_d = immediate_used_q;
    for (int unsigned c = 0; c < NumTx; c++) begin
      if (sent_valid_q[c]) begin
        if (sent_q[c].origin == TxWrite) freed_writes_o[sent_q[c].write] = 1'b1;
        if (sent_q[c].origin == TxImmediate) immediate_used_d = 1'b0;
        // For a message with payload, dcs_egress frees the read entry after the last beat (`tx_done_i` of dcu.sv).
        if (sent_q[c].origin == TxRead && !Protocol.send_payload[4'(sent_q[c].send)]) freed_reads_o[sent_q[c].read] = 1'b1;
      end
    end
    if (execute_i && is_immediate) immediate_used_d = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    sent_q <= rd_data;
    if (!rst_ni) begin
      sent_valid_q     <= '0;
      immediate_used_q <= 1'b0;
    end else begin
      sent_valid_q     <= tx_valid_o & tx_ready_i;
      immediate_used_q <= immediate_used_d;
    end
  end

  `ASSERT(queue_has_room, (wr & ~wr_ready) == '0)
  `ASSERT(queue_of_a_circuit, !(execute_i && (grant_valid_i || forward_valid_i) || send_forward_i) || $onehot(wr))
endmodule : dcu_tx
