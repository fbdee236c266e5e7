// Distributed RAM with one write port and one combinational read port.

module ram_distributed #(
  parameter int unsigned Depth = 64,
  parameter int unsigned Width = 8
) (
  input  logic                           clk_i,

  input  logic                           wr_en_i,
  input  logic [home_pkg::bits(Depth)-1:0] wr_addr_i,
  input  logic [Width-1:0]               wr_data_i,

  input  logic [home_pkg::bits(Depth)-1:0] rd_addr_i,
  output logic [Width-1:0]               rd_data_o
);
  (* ram_style = "distributed" *) logic [Width-1:0] words_q [Depth];

  always_ff @(posedge clk_i) begin
    if (wr_en_i) words_q[wr_addr_i] <= wr_data_i;
  end

  assign rd_data_o = words_q[rd_addr_i];
endmodule : ram_distributed
