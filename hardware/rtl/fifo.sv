// First-in first-out queue with a latency of one cycle. A queue of depth 1 accepts data only when it is empty.
//
// `wr_ready_o` does not depend on `rd_ready_i`, so the queue cuts the ready path.

`include "assertions.svh"

module fifo #(
  parameter int unsigned Depth         = 2,     // a power of two
  parameter bit          RegisterValid = 1'b1,  // `rd_valid_o` is a register, at the cost of a longer path from `rd_ready_i`
  parameter bit          NeverFull     = 1'b0,  // the environment never writes to a full queue, so `wr_ready_o` is ignored
  parameter type         data_t        = logic
) (
  input  logic  clk_i,
  input  logic  rst_ni,

  // Write side, then read side.
  input  logic  wr_valid_i,
  output logic  wr_ready_o,
  input  data_t wr_data_i,

  output logic  rd_valid_o,
  input  logic  rd_ready_i,
  output data_t rd_data_o
);
  if (2 ** $clog2(Depth) != Depth || Depth > 128) begin : gen_invalid_depth
    $error("fifo: Depth must be a power of two up to 128");
  end

  if (Depth == 1) begin : gen_single
    assign wr_ready_o = !rd_valid_o;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) rd_valid_o <= 1'b0;
      else         rd_valid_o <= rd_valid_o ? !rd_ready_i : wr_valid_i;
    end

    always_ff @(posedge clk_i) begin
      if (wr_ready_o) rd_data_o <= wr_data_i;
    end
  end else begin : gen_ring
    localparam int unsigned IndexWidth = $clog2(Depth);

    data_t                 entries_q [Depth];
    // Equal indices mean empty or full. The register `rd_valid_o` distinguishes the two; without it, an extra index bit
    // does.
    localparam int unsigned CountWidth = IndexWidth + (RegisterValid ? 0 : 1);
    logic [CountWidth-1:0] wr_index_q, rd_index_q, rd_index_next;
    logic                  full, wr, rd;

    assign rd_index_next = CountWidth'(home_pkg::incremented(8'(rd_index_q)));

    assign full       = wr_index_q[IndexWidth-1:0] == rd_index_q[IndexWidth-1:0] && rd_valid_o;
    assign wr_ready_o = !full;
    assign rd_data_o  = entries_q[rd_index_q[IndexWidth-1:0]];
    assign wr         = wr_valid_i && (NeverFull || wr_ready_o);
    assign rd         = rd_valid_o && rd_ready_i;

    always_ff @(posedge clk_i) begin
      if (wr) entries_q[wr_index_q[IndexWidth-1:0]] <= wr_data_i;
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        wr_index_q <= '0;
        rd_index_q <= '0;
      end else begin
        if (wr) wr_index_q <= CountWidth'(home_pkg::incremented(8'(wr_index_q)));
        if (rd) rd_index_q <= rd_index_next;
      end
    end

    if (RegisterValid) begin : gen_registered_valid
      logic last;   // the queue has a single element
      assign last = wr_index_q == rd_index_next;

      always_ff @(posedge clk_i) begin
        if (!rst_ni) rd_valid_o <= 1'b0;
        else         rd_valid_o <= wr || rd_valid_o && !(rd && last);
      end
    end else begin : gen_compared_valid
      assign rd_valid_o = wr_index_q != rd_index_q;
    end
  end

  `ASSERT(never_overflows, !NeverFull || !wr_valid_i || wr_ready_o)
  `ASSERT_STABLE(stable_read, rd_valid_o, rd_ready_i, rd_data_o)
endmodule : fifo
