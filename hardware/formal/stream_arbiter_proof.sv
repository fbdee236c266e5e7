// Proof of stream_arbiter: the output is the data of one stream, which is consumed there; no stream starves.

`include "assertions.svh"

module stream_arbiter_proof #(
  parameter int unsigned Size = 4
) (
  input  logic                            clk_i,
  input  logic [Size-1:0]                 wr_valid_i,
  input  logic [Size-1:0][1:0]            wr_data_i,
  input  logic                            rd_ready_i,
  input  logic [home_pkg::bits(Size)-1:0] watched_i   // the watched stream: arbitrary and constant
);
  // Reset in the first cycle only.
  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic [Size-1:0]                 wr_ready;
  logic                            rd_valid;
  logic [1:0]                      rd_data;
  logic [home_pkg::bits(Size)-1:0] rd_index;

  stream_arbiter #(
    .Size  (Size),
    .data_t(logic [1:0])
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .wr_valid_i,
    .wr_ready_o(wr_ready),
    .wr_data_i,
    .rd_valid_o(rd_valid),
    .rd_ready_i,
    .rd_data_o (rd_data),
    .rd_index_o(rd_index)
  );

  for (genvar i = 0; i < Size; i++) begin : gen_stream
    `ASSUME_STABLE(stable_wr, wr_valid_i[i], wr_ready[i], wr_data_i[i], ("not stable"))
  end

  `ASSERT(accepts_the_output_stream, wr_ready == (rd_valid && rd_ready_i ? Size'(1) << rd_index : '0))
  `ASSERT(output_is_an_input, !rd_valid || wr_valid_i[rd_index] && rd_data == wr_data_i[rd_index])
  // The register that accepts the chosen stream is the one-hot form of the output's index.
  `ASSERT(chosen_matches, u_arbiter.chosen_q == (rd_valid ? Size'(1) << u_arbiter.index_q : '0))

  // Number of other streams served while the watched one offers data.
  logic [home_pkg::bits(Size)-1:0] watched_q;
  logic [7:0]                      passes_q, preceding;
  logic [Size-1:0]                 after;

  `ASSUME_OR(watched_constant, watched_i == watched_q && 32'(watched_i) < Size, ("the watched stream changes"))

  always_ff @(posedge clk_i) begin
    watched_q <= watched_i;
    if (!rst_ni || !wr_valid_i[watched_i] || wr_ready[watched_i]) passes_q <= '0;
    else if (rd_valid && rd_ready_i)                      passes_q <= passes_q + 8'd1;
  end

  `ASSERT(fair, 32'(passes_q) <= Size)

  // Invariant that makes `fair` inductive (claim `bound_decreases`): the services of others since the watched stream
  // offers data (`passes_q`), and those that still precede its own (`preceding`), are together at most `Size`. Each
  // service of another stream adds 1 to `passes_q` and takes at least 1 from `preceding`.
  // `after` masks the streams after the last one chosen. They come first; within each half, lower indices come first.
  assign after = u_arbiter.u_pick.gen_flat.after_last_q;
  always_comb begin
    preceding = '0;
    for (int unsigned i = 0; i < Size; i++) begin
      if (after[i] && !after[watched_i] || after[i] == after[watched_i] && i < 32'(watched_i)) preceding++;
    end
    // The stream at the output is served first.
    if (rd_valid) preceding = rd_index == watched_i ? '0 : preceding + 8'd1;
  end
  // The mask has the form ...1110000 without bit 0.
  for (genvar i = 1; i < Size; i++) begin : gen_mask
    `ASSERT(mask_legal, !after[0] && (i == 1 || !after[i-1] || after[i]))
  end
  `ASSERT(bound_decreases, 32'(passes_q) + 32'(preceding) <= Size)
endmodule : stream_arbiter_proof
