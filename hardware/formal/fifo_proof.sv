// Proof of fifo: each written element is delivered once and in order; the empty and full signals are exact.

`include "assertions.svh"

module fifo_proof #(
  parameter int unsigned Depth         = 4,
  parameter bit          RegisterValid = 1'b1
) (
  input  logic       clk_i,
  input  logic       wr_valid_i,
  input  logic [1:0] wr_data_i,
  input  logic       rd_ready_i
);
  // Reset in the first cycle only.
  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic       wr_ready, rd_valid;
  logic [1:0] rd_data;

  fifo #(
    .Depth        (Depth),
    .RegisterValid(RegisterValid),
    .data_t       (logic [1:0])
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .wr_valid_i,
    .wr_ready_o(wr_ready),
    .wr_data_i,
    .rd_valid_o(rd_valid),
    .rd_ready_i,
    .rd_data_o (rd_data)
  );

  // Reference model: a shift register, with the oldest element at index 0 and `count_q` elements.
  logic [Depth-1:0][1:0]    list_q;
  logic [$clog2(Depth+1)-1:0] count_q;
  logic                     wr, rd;

  assign wr = wr_valid_i && wr_ready;
  assign rd = rd_valid && rd_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q <= '0;
    end else begin
      count_q <= count_q + wr - rd;
      for (int unsigned i = 0; i < Depth; i++) begin
        if (wr && 32'(count_q) - 32'(rd) == i) list_q[i] <= wr_data_i;
        else if (rd && i + 1 < Depth) list_q[i] <= list_q[i+1];
      end
    end
  end

  `ASSERT(valid_if_any, rd_valid == (count_q != '0))
  `ASSERT(ready_if_room, wr_ready == (Depth == 1 ? count_q == '0 : 32'(count_q) < Depth))
  `ASSERT(in_order, !rd_valid || rd_data == list_q[0])

  // Invariant for the induction: the queue stores exactly the elements of the model. Element `i` is at the read index
  // plus `i`, modulo the size of the ring; the distance from read to write index is the number of elements.
  if (Depth > 1) begin : gen_entries
    localparam int unsigned IndexWidth = $clog2(Depth);
    localparam int unsigned CountWidth = IndexWidth + (RegisterValid ? 0 : 1);
    logic [CountWidth-1:0] stored_count;
    assign stored_count = u_fifo.gen_ring.wr_index_q - u_fifo.gen_ring.rd_index_q;
    `ASSERT(count_matches, stored_count == CountWidth'(count_q) && 32'(count_q) <= Depth)
    for (genvar i = 0; i < Depth; i++) begin : gen_entry
      logic [IndexWidth-1:0] index;
      assign index = IndexWidth'(u_fifo.gen_ring.rd_index_q + CountWidth'(i));
      `ASSERT(entry_matches, i >= 32'(count_q) || u_fifo.gen_ring.entries_q[index] == list_q[i])
    end
  end
endmodule : fifo_proof
