// A queue. What is written in one cycle can be read in the next.
//
// `wr_ready_o` does not depend on `rd_ready_i`, so the queue cuts the path of ready.

module fifo #(
  parameter int unsigned Depth  = 2,     // a power of two, at least 2
  parameter type         data_t = logic
) (
  input  logic  clk_i,
  input  logic  rst_ni,

  input  logic  wr_valid_i,
  output logic  wr_ready_o,
  input  data_t wr_data_i,

  output logic  rd_valid_o,
  input  logic  rd_ready_i,
  output data_t rd_data_o
);
  localparam int unsigned IndexWidth = $clog2(Depth);

  if (Depth < 2 || 2 ** IndexWidth != Depth) begin : gen_wrong_depth
    $error("fifo: Depth must be a power of two and at least 2");
  end

  data_t                 places_q [Depth];
  // One bit more than an index: equal indices mean full if these bits differ, and empty if not.
  logic [IndexWidth:0]   wr_index_q, rd_index_q;
  logic                  full, wr, rd;

  assign full       = wr_index_q == {~rd_index_q[IndexWidth], rd_index_q[IndexWidth-1:0]};
  assign wr_ready_o = !full;
  assign rd_valid_o = wr_index_q != rd_index_q;
  assign rd_data_o  = places_q[rd_index_q[IndexWidth-1:0]];
  assign wr         = wr_valid_i && wr_ready_o;
  assign rd         = rd_valid_o && rd_ready_i;

  always_ff @(posedge clk_i) begin
    if (wr) places_q[wr_index_q[IndexWidth-1:0]] <= wr_data_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_index_q <= '0;
      rd_index_q <= '0;
    end else begin
      if (wr) wr_index_q <= wr_index_q + 1'b1;
      if (rd) rd_index_q <= rd_index_q + 1'b1;
    end
  end

  stable_read: assert property (@(posedge clk_i) disable iff (!rst_ni)
    rd_valid_o && !rd_ready_i |=> rd_valid_o && $stable(rd_data_o));
endmodule : fifo
