// The RTL's parts as block tests drive them: with plain ports, and with all signals of AXI4 where there is AXI.

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

// What the two below need to know of a protocol: lines of 128 bytes, two circuits toward the home.
package block_pkg;
  localparam home_pkg::protocol_t Protocol = '{line_bytes: 16'd128, rx_circuits: 8'd2, default: '0};
  localparam int unsigned Units      = 4;
  localparam int unsigned LineWidth  = 6;
  localparam int unsigned AddrWidth  = 16;
  typedef logic [4:0] event_e;
endpackage : block_pkg

module dcs_reader_block
  import block_pkg::*;
(
  input  logic                            clk_i,
  input  logic                            rst_ni,
  input  logic [Units-1:0]                unit_valid_i,
  output logic [Units-1:0]                unit_ready_o,
  input  logic [Units-1:0][LineWidth-1:0] unit_line_i,
  input  logic [Units-1:0]                unit_slot_i,
  output logic [Units-1:0][1:0]           unit_done_o,
  input  logic                            rd_en_i,
  input  logic [1:0]                      rd_unit_i,
  input  logic                            rd_slot_i,
  input  logic                            rd_beat_i,
  output logic [511:0]                    rd_data_o,
  output logic [7:0]                      axi_arid,
  output logic [AddrWidth-1:0]            axi_araddr,
  output logic [7:0]                      axi_arlen,
  output logic [2:0]                      axi_arsize,
  output logic [1:0]                      axi_arburst,
  output logic                            axi_arvalid,
  input  logic                            axi_arready,
  input  logic [7:0]                      axi_rid,
  input  logic [511:0]                    axi_rdata,
  input  logic [1:0]                      axi_rresp,
  input  logic                            axi_rlast,
  input  logic                            axi_rvalid,
  output logic                            axi_rready
);
  logic [7:0] unused_user;
  logic       unused;
  assign unused      = ^{axi_rresp, unused_user};
  assign axi_arlen   = 8'd1;
  assign axi_arsize  = 3'd6;
  assign axi_arburst = 2'b01;

  dcs_reader #(
    .Protocol    (Protocol),
    .event_e     (event_e),
    .Units       (Units),
    .Slice       (1),
    .Reads       (2),
    .LineWidth   (LineWidth),
    .AxiAddrWidth(AddrWidth)
  ) u_reader (
    .clk_i,
    .rst_ni,
    .unit_valid_i,
    .unit_ready_o,
    .unit_line_i,
    .unit_slot_i,
    .unit_event_i({Units{5'd0}}),
    .unit_done_o,
    .rd_en_i,
    .rd_unit_i,
    .rd_slot_i,
    .rd_beat_i,
    .rd_data_o,
    .ar_valid_o  (axi_arvalid),
    .ar_ready_i  (axi_arready),
    .ar_id_o     (axi_arid),
    .ar_addr_o   (axi_araddr),
    .ar_user_o   (unused_user),
    .r_valid_i   (axi_rvalid),
    .r_ready_o   (axi_rready),
    .r_id_i      (axi_rid),
    .r_data_i    (axi_rdata),
    .r_last_i    (axi_rlast)
  );
endmodule : dcs_reader_block

module dcs_writer_block
  import block_pkg::*;
(
  input  logic                            clk_i,
  input  logic                            rst_ni,
  input  logic [Units-1:0]                unit_valid_i,
  output logic [Units-1:0]                unit_ready_o,
  input  logic [Units-1:0][LineWidth-1:0] unit_line_i,
  input  logic [Units-1:0][1:0]           unit_circuit_i,
  input  logic [Units-1:0]                unit_bytes_i,
  output logic [Units-1:0]                unit_done_o,
  // Bytes and mask of a slot, which are asked for and come in the same cycle.
  output logic [1:0]                      rd_unit_o,
  output logic                            rd_slot_o,
  output logic                            rd_beat_o,
  input  logic [1:0][511:0]               rd_data_i,
  input  logic [1:0][7:0]                 rd_mask_i,
  output logic [1:0]                      free_valid_o,
  output logic [1:0]                      free_unit_o,
  output logic                            free_slot_o,
  output logic [7:0]                      axi_awid,
  output logic [AddrWidth-1:0]            axi_awaddr,
  output logic [7:0]                      axi_awlen,
  output logic [2:0]                      axi_awsize,
  output logic [1:0]                      axi_awburst,
  output logic                            axi_awvalid,
  input  logic                            axi_awready,
  output logic [511:0]                    axi_wdata,
  output logic [63:0]                     axi_wstrb,
  output logic                            axi_wlast,
  output logic                            axi_wvalid,
  input  logic                            axi_wready,
  input  logic [7:0]                      axi_bid,
  input  logic [1:0]                      axi_bresp,
  input  logic                            axi_bvalid,
  output logic                            axi_bready
);
  logic [7:0] unused_user;
  logic       unused;
  assign unused      = ^{axi_bresp, unused_user};
  assign axi_awlen   = 8'd1;
  assign axi_awsize  = 3'd6;
  assign axi_awburst = 2'b01;

  dcs_writer #(
    .Protocol    (Protocol),
    .event_e     (event_e),
    .Units       (Units),
    .Slice       (1),
    .LineWidth   (LineWidth),
    .AxiAddrWidth(AddrWidth)
  ) u_writer (
    .clk_i,
    .rst_ni,
    .unit_valid_i,
    .unit_ready_o,
    .unit_line_i,
    .unit_slot_i ({Units{1'b0}}),
    .unit_event_i({Units{5'd0}}),
    .unit_circuit_i,
    .unit_bytes_i,
    .unit_done_o,
    .rd_unit_o,
    .rd_slot_o,
    .rd_beat_o,
    .rd_data_i,
    .rd_mask_i,
    .free_valid_o,
    .free_unit_o,
    .free_slot_o,
    .aw_valid_o  (axi_awvalid),
    .aw_ready_i  (axi_awready),
    .aw_id_o     (axi_awid),
    .aw_addr_o   (axi_awaddr),
    .aw_user_o   (unused_user),
    .w_valid_o   (axi_wvalid),
    .w_ready_i   (axi_wready),
    .w_data_o    (axi_wdata),
    .w_strb_o    (axi_wstrb),
    .w_last_o    (axi_wlast),
    .b_valid_i   (axi_bvalid),
    .b_ready_o   (axi_bready),
    .b_id_i      (axi_bid)
  );
endmodule : dcs_writer_block
