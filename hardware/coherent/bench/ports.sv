// Processor ports of a system for a program that runs threads, with a memory of small random delays.
//
// Words of the ports are the low half of a line, so that writes change a part of it. Caches have one way, so that lines
// of a set evict each other.

module ports #(
  parameter int unsigned Caches    = 2,
  parameter int unsigned LineWidth = 3,
  parameter int unsigned SetWidth  = 1,
  parameter int unsigned Ways      = 1,
  parameter int unsigned Mshrs     = 4,

  localparam int unsigned TagWidth = 8
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic [63:0]          initial_i      [1 << LineWidth],  // words of memory during the reset
  input  logic                 req_valid_i    [Caches],
  output logic                 req_ready_o    [Caches],
  input  logic [TagWidth-1:0]  req_tag_i      [Caches],
  input  logic [2:0]           req_op_i       [Caches],
  input  logic [63:0]          req_compare_i  [Caches],
  input  logic                 req_write_i    [Caches],
  input  logic                 req_uncached_i [Caches],
  input  logic [LineWidth-1:0] req_line_i     [Caches],
  input  logic [63:0]          req_data_i     [Caches],
  output logic                 rsp_valid_o    [Caches],
  output logic                 rsp_error_o    [Caches],
  output logic [TagWidth-1:0]  rsp_tag_o      [Caches],
  output logic [63:0]          rsp_data_o     [Caches],
  output logic                 unexpected_o   [Caches + 1],
  output int                   in_flight_o    // messages in queues
);
  localparam int unsigned WordWidth   = 64;
  localparam int unsigned DataWidth   = 2 * WordWidth;
  localparam int unsigned StrobeWidth = DataWidth / 8;
  localparam int unsigned AddrWidth   = LineWidth + $clog2(StrobeWidth);

  logic [Caches-1:0]                  req_valid, req_ready, req_write, req_uncached, rsp_valid;
  logic [Caches-1:0][TagWidth-1:0]    req_tag, rsp_tag;
  logic [Caches-1:0][LineWidth-1:0]   req_line;
  logic [Caches-1:0][2:0]             req_op;
  logic [Caches-1:0][63:0]            req_compare;
  logic [Caches-1:0]                  rsp_error;
  logic [Caches-1:0][DataWidth-1:0]   req_data, rsp_data;
  logic [Caches-1:0][StrobeWidth-1:0] req_strobe;
  logic [Caches:0]                    unexpected;
  logic                               aw_valid, aw_ready, w_valid, w_ready, b_valid, b_ready;
  logic                               ar_valid, ar_ready, r_valid, r_ready, memory_error;
  logic [AddrWidth-1:0]               aw_addr, ar_addr;
  logic [DataWidth-1:0]               w_data, r_data;
  logic [StrobeWidth-1:0]             w_strb;
  logic [DataWidth-1:0]               memory [1 << LineWidth];

  for (genvar i = 0; i < Caches; i++) begin : gen_port
    assign req_valid[i]    = req_valid_i[i];
    assign req_tag[i]      = req_tag_i[i];
    assign req_op[i]       = req_op_i[i];
    assign req_compare[i]  = req_compare_i[i];
    assign req_write[i]    = req_write_i[i];
    assign req_uncached[i] = req_uncached_i[i];
    assign req_line[i]     = req_line_i[i];
    assign req_data[i]     = DataWidth'(req_data_i[i]);
    assign req_strobe[i]   = StrobeWidth'((1 << WordWidth / 8) - 1);
    assign req_ready_o[i]  = req_ready[i];
    assign rsp_valid_o[i]  = rsp_valid[i];
    assign rsp_tag_o[i]    = rsp_tag[i];
    assign rsp_error_o[i]  = rsp_error[i];
    assign rsp_data_o[i]   = rsp_data[i][WordWidth-1:0];
  end
  for (genvar i = 0; i <= Caches; i++) begin : gen_unexpected
    assign unexpected_o[i] = unexpected[i];
  end
  for (genvar i = 0; i < 1 << LineWidth; i++) begin : gen_line
    assign memory[i] = DataWidth'(initial_i[i]);
  end

  assign in_flight_o = monitor_pkg::in_flight;

  initial if (!$value$plusargs("fault+%d", monitor_pkg::fault)) monitor_pkg::fault = 0;

  `SYSTEM #(.LineWidth(LineWidth), .DataWidth(DataWidth), .SetWidth(SetWidth), .Ways(Ways), .Mshrs(Mshrs),
            .TagWidth(TagWidth)) u_system (
    .clk_i, .rst_ni,
    .req_valid_i(req_valid), .req_ready_o(req_ready), .req_tag_i(req_tag), .req_op_i(req_op),
    .req_write_i(req_write), .req_uncached_i(req_uncached),
    .req_line_i(req_line), .req_data_i(req_data), .req_strobe_i(req_strobe), .req_compare_i(req_compare),
    .rsp_valid_o(rsp_valid), .rsp_tag_o(rsp_tag), .rsp_data_o(rsp_data), .rsp_error_o(rsp_error),
    .axi_aw_valid_o(aw_valid),
    .axi_aw_ready_i(aw_ready),
    .axi_aw_addr_o(aw_addr),
    .axi_w_valid_o(w_valid),
    .axi_w_ready_i(w_ready),
    .axi_w_data_o(w_data),
    .axi_w_strb_o(w_strb),
    .axi_b_valid_i(b_valid),
    .axi_b_ready_o(b_ready),
    .axi_ar_valid_o(ar_valid),
    .axi_ar_ready_i(ar_ready),
    .axi_ar_addr_o(ar_addr),
    .axi_r_valid_i(r_valid),
    .axi_r_ready_o(r_ready),
    .axi_r_data_i(r_data),
    .axi_b_resp_i(2'b00), .axi_r_resp_i(2'b00), .error_o(memory_error), .unexpected_o(unexpected)
  );

  random_memory #(.LineWidth(LineWidth), .DataWidth(DataWidth)) u_memory (
    .clk_i, .rst_ni,
    .initial_i(memory),
    .aw_valid_i(aw_valid),
    .aw_ready_o(aw_ready),
    .aw_addr_i(aw_addr),
    .w_valid_i(w_valid),
    .w_ready_o(w_ready),
    .w_data_i(w_data),
    .w_strb_i(w_strb),
    .b_valid_o(b_valid),
    .b_ready_i(b_ready),
    .ar_valid_i(ar_valid),
    .ar_ready_o(ar_ready),
    .ar_addr_i(ar_addr),
    .r_valid_o(r_valid),
    .r_ready_i(r_ready),
    .r_data_o(r_data)
  );
endmodule : ports
