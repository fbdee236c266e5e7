// The RTL's parts as block tests drive them: with plain ports.

module fifo_block #(
  parameter int unsigned Depth = 4,
  parameter bit          Fast  = 1'b1
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        wr_valid_i,
  output logic        wr_ready_o,
  input  logic [15:0] wr_data_i,
  output logic        rd_valid_o,
  input  logic        rd_ready_i,
  output logic [15:0] rd_data_o
);
  fifo #(
    .Depth (Depth),
    .Fast  (Fast),
    .data_t(logic [15:0])
  ) u_fifo (.*);
endmodule : fifo_block

module spill_register_block (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        wr_valid_i,
  output logic        wr_ready_o,
  input  logic [15:0] wr_data_i,
  output logic        rd_valid_o,
  input  logic        rd_ready_i,
  output logic [15:0] rd_data_o
);
  spill_register #(
    .data_t(logic [15:0])
  ) u_spill_register (.*);
endmodule : spill_register_block

module stream_arbiter_block #(
  parameter int unsigned Size = 12
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,
  input  logic [Size-1:0]                 wr_valid_i,
  output logic [Size-1:0]                 wr_ready_o,
  input  logic [Size-1:0][15:0]           wr_data_i,
  output logic                            rd_valid_o,
  input  logic                            rd_ready_i,
  output logic [15:0]                     rd_data_o,
  output logic [home_pkg::bits(Size)-1:0] rd_index_o
);
  stream_arbiter #(
    .Size  (Size),
    .data_t(logic [15:0])
  ) u_arbiter (.*);
endmodule : stream_arbiter_block
