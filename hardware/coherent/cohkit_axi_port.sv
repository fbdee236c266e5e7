// Memory port of a home as AXI4: each access is a single beat of the line's width.
//
// One access is outstanding at a time, so that all have the ID 0. Address and data of a write leave independently.
// Signals of AXI4 that never change are left out: a system connects them to constants (LEN 0, SIZE of the line,
// BURST INCR, LAST 1).

module cohkit_axi_port #(
  parameter int unsigned LineWidth = 4,
  parameter int unsigned DataWidth = 64,

  localparam int unsigned StrobeWidth = DataWidth / 8,
  localparam int unsigned AddrWidth   = LineWidth + $clog2(StrobeWidth)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Request of the home, held until it is done.
  input  logic                   mem_valid_i,
  input  logic                   mem_write_i,
  input  logic [LineWidth-1:0]   mem_line_i,
  input  logic [DataWidth-1:0]   mem_data_i,
  input  logic [StrobeWidth-1:0] mem_strobe_i,
  output logic                   mem_done_o,
  output logic [DataWidth-1:0]   mem_data_o,

  // AXI4 manager.
  output logic                   aw_valid_o,
  input  logic                   aw_ready_i,
  output logic [AddrWidth-1:0]   aw_addr_o,
  output logic                   w_valid_o,
  input  logic                   w_ready_i,
  output logic [DataWidth-1:0]   w_data_o,
  output logic [StrobeWidth-1:0] w_strb_o,
  input  logic                   b_valid_i,
  output logic                   b_ready_o,
  input  logic [1:0]             b_resp_i,
  output logic                   ar_valid_o,
  input  logic                   ar_ready_i,
  output logic [AddrWidth-1:0]   ar_addr_o,
  input  logic                   r_valid_i,
  output logic                   r_ready_o,
  input  logic [DataWidth-1:0]   r_data_i,
  input  logic [1:0]             r_resp_i,

  output logic                   error_o   // memory has answered with an error
);
  logic address_sent_q, data_sent_q, reads, writes, unused;

  if (DataWidth < 8 || DataWidth != 8 << $clog2(StrobeWidth)) begin : gen_invalid_width
    $error("cohkit_axi_port: DataWidth must be 8 times a power of two");
  end

  assign unused = ^{b_resp_i[0], r_resp_i[0]};
  // The state of the home is undefined until the first clock edge of the reset.
  assign reads  = rst_ni && mem_valid_i && !mem_write_i;
  assign writes = rst_ni && mem_valid_i && mem_write_i;

  assign aw_valid_o = writes && !address_sent_q;
  assign w_valid_o  = writes && !data_sent_q;
  assign ar_valid_o = reads && !address_sent_q;
  assign aw_addr_o  = AddrWidth'(mem_line_i) << $clog2(StrobeWidth);
  assign ar_addr_o  = aw_addr_o;
  assign w_data_o   = mem_data_i;
  assign w_strb_o   = mem_strobe_i;
  assign b_ready_o  = writes && address_sent_q && data_sent_q;
  assign r_ready_o  = reads && address_sent_q;
  assign mem_done_o = b_valid_i && b_ready_o || r_valid_i && r_ready_o;
  assign mem_data_o = r_data_i;
  assign error_o    = b_valid_i && b_ready_o && b_resp_i[1] || r_valid_i && r_ready_o && r_resp_i[1];

  always_ff @(posedge clk_i) begin
    if (!rst_ni || mem_done_o) begin
      address_sent_q <= 1'b0;
      data_sent_q    <= 1'b0;
    end else begin
      if (aw_valid_o && aw_ready_i || ar_valid_o && ar_ready_i) address_sent_q <= 1'b1;
      if (w_valid_o && w_ready_i) data_sent_q <= 1'b1;
    end
  end
endmodule : cohkit_axi_port
