// Merges streams into one, round-robin. A stream is chosen in one cycle, and its data passes in the next.
//
// The choice is the only state; it is stable until the transfer. A stream can be chosen again one cycle after its
// transfer, so a single active stream has half of the maximum rate.

`include "assertions.svh"

module stream_arbiter #(
  parameter int unsigned Size   = 2,
  parameter type         data_t = logic
) (
  input  logic                                  clk_i,
  input  logic                                  rst_ni,

  input  logic  [Size-1:0]                      wr_valid_i,
  output logic  [Size-1:0]                      wr_ready_o,
  input  data_t [Size-1:0]                      wr_data_i,

  output logic                                  rd_valid_o,
  input  logic                                  rd_ready_i,
  output data_t                                 rd_data_o,
  output logic  [home_pkg::bits(Size)-1:0]      rd_index_o   // index of the stream
);
  localparam int unsigned IndexWidth = home_pkg::bits(Size);

  logic [Size-1:0]       req, pick, chosen_q;
  logic [IndexWidth-1:0] index_d, index_q;
  logic                  choose;

  // The chosen stream is excluded: it may transfer in this cycle, and its next `valid` is not known yet.
  assign req    = wr_valid_i & ~chosen_q;
  assign choose = !rd_valid_o || rd_ready_i;

  rr_pick #(
    .Size(Size)
  ) u_pick (
    .clk_i,
    .rst_ni,
    .req_i   (req),
    .accept_i(choose),
    .pick_o  (pick),
    .index_o (index_d)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      chosen_q   <= '0;
      rd_valid_o <= 1'b0;
    end else if (choose) begin
      chosen_q   <= pick;
      rd_valid_o <= req != '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (choose) index_q <= index_d;
  end

  assign rd_data_o  = wr_data_i[index_q];
  assign rd_index_o = index_q;
  assign wr_ready_o = rd_ready_i ? chosen_q : '0;

  `ASSERT_STABLE(stable_read, rd_valid_o, rd_ready_i, {rd_data_o, rd_index_o})
endmodule : stream_arbiter
