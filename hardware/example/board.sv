// Integration example: the home of ECI with 64 units, coherent memory at its AXI ports, and the invalidation engine at
// its ports for local operations. docs/integration.md explains each part.
//
// Board-specific logic connects to the ports: the link layer that frames messages, and the processor or bridge that
// reads registers and requests the invalidation of ranges.

module board #(
  parameter int unsigned Units       = 32,   // per slice
  // Lines per slice, from the start of the range. Map no more of it to the CPU: an access beyond it is an error in
  // simulation, and in hardware it reaches another line, because the upper address bits are dropped.
  parameter int unsigned MemoryLines = 4096,

  localparam home_pkg::protocol_t Protocol = eci_pkg::Protocol,
  localparam int unsigned NumRx        = int'(Protocol.rx_circuits),
  localparam int unsigned NumTx        = int'(Protocol.tx_circuits),
  localparam int unsigned PayloadWidth = 512,
  localparam int unsigned AxiIdWidth   = 8,
  localparam int unsigned AxiAddrWidth = 36,
  localparam int unsigned Beats        = 32'(Protocol.line_bytes) * 8 / PayloadWidth
) (
  input  logic clk_i,      // the home's clock; signals of other clock domains cross before these ports
  input  logic reset_ni,   // asynchronous

  // Link layer: one stream per circuit and slice. Even lines belong to slice 0.
  input  logic              [1:0][NumRx-1:0]                   rx_valid_i,
  output logic              [1:0][NumRx-1:0]                   rx_ready_o,
  input  home_pkg::header_t [1:0][NumRx-1:0]                   rx_header_i,
  input  logic              [1:0][NumRx-1:0][PayloadWidth-1:0] rx_data_i,
  input  logic              [1:0][NumRx-1:0]                   rx_last_i,
  output logic              [1:0][NumTx-1:0]                   tx_valid_o,
  input  logic              [1:0][NumTx-1:0]                   tx_ready_i,
  output home_pkg::header_t [1:0][NumTx-1:0]                   tx_header_o,
  output logic              [1:0][NumTx-1:0][PayloadWidth-1:0] tx_data_o,
  output logic              [1:0][NumTx-1:0]                   tx_last_o,

  // Ranges to be invalidated, by slice.
  input  logic [1:0]                                start_valid_i,
  output logic [1:0]                                start_ready_o,
  input  logic [1:0][home_pkg::LineWidth-1:0]       start_line_i,
  input  logic [1:0][home_pkg::LineWidth-1:0]       start_count_i,
  output logic [1:0]                                done_valid_o,
  input  logic [1:0]                                done_ready_i,
  output logic [1:0][home_pkg::LineWidth-1:0]       done_refused_o,

  // Registers: AXI-Lite, one subordinate per slice.
  input  logic [1:0]                                cfg_aw_valid_i,
  output logic [1:0]                                cfg_aw_ready_o,
  input  logic [1:0][registers_pkg::AddrWidth-1:0]  cfg_aw_addr_i,
  input  logic [1:0]                                cfg_w_valid_i,
  output logic [1:0]                                cfg_w_ready_o,
  input  logic [1:0][63:0]                          cfg_w_data_i,
  input  logic [1:0][7:0]                           cfg_w_strb_i,
  output logic [1:0]                                cfg_b_valid_o,
  input  logic [1:0]                                cfg_b_ready_i,
  output logic [1:0][1:0]                           cfg_b_resp_o,
  input  logic [1:0]                                cfg_ar_valid_i,
  output logic [1:0]                                cfg_ar_ready_o,
  input  logic [1:0][registers_pkg::AddrWidth-1:0]  cfg_ar_addr_i,
  output logic [1:0]                                cfg_r_valid_o,
  input  logic [1:0]                                cfg_r_ready_i,
  output logic [1:0][63:0]                          cfg_r_data_o,
  output logic [1:0][1:0]                           cfg_r_resp_o,

  output logic                                      idle_o
);
  // The home's reset is synchronous.
  logic [1:0] reset_q;
  logic       rst_n;
  always_ff @(posedge clk_i) reset_q <= {reset_q[0], reset_ni};
  assign rst_n = reset_q[1];

  logic                 [1:0]                       local_req_valid, local_req_ready, local_rsp_valid, local_rsp_ready;
  home_pkg::local_req_t [1:0]                       local_req;
  home_pkg::local_rsp_t [1:0]                       local_rsp;
  logic                 [1:0]                       aw_valid, aw_ready, w_valid, w_ready, w_last, b_valid, b_ready;
  logic                 [1:0]                       ar_valid, ar_ready, r_valid, r_ready, r_last;
  logic                 [1:0][AxiIdWidth-1:0]       aw_id, b_id, ar_id, r_id;
  logic                 [1:0][AxiAddrWidth-1:0]     aw_addr, ar_addr;
  logic                 [1:0][PayloadWidth-1:0]     w_data, r_data;
  logic                 [1:0][PayloadWidth/8-1:0]   w_strb;
  logic                 [1:0]                       idle;

  // Unused here: unlocks, permission changes, AXI user bits and the trace of steps.
  logic                 [1:0]                       unused_unlock_ready, unused_change_valid;
  home_pkg::change_t    [1:0]                       unused_change;
  logic                 [1:0][7:0]                  unused_aw_user, unused_ar_user;
  logic                 [1:0][Units-1:0]            unused_step_valid, unused_busy;
  home_pkg::step_t      [1:0][Units-1:0]            unused_step;

  home #(
    .Protocol    (Protocol),
    .state_e     (eci_pkg::state_e),
    .event_e     (eci_pkg::event_e),
    .send_e      (eci_pkg::send_e),
    .row_t       (eci_pkg::row_t),
    .RomFile     ("eci.mem"),
    .Units       (Units),
    .SetWidth    (7),
    .TagWidth    (16),
    .Ways        (16),
    .PayloadWidth(PayloadWidth),
    .AxiIdWidth  (AxiIdWidth),
    .AxiAddrWidth(AxiAddrWidth)
  ) u_home (
    .clk_i,
    .rst_ni           (rst_n),
    .rx_valid_i,
    .rx_ready_o,
    .rx_header_i,
    .rx_data_i,
    .rx_last_i,
    .tx_valid_o,
    .tx_ready_i,
    .tx_header_o,
    .tx_data_o,
    .tx_last_o,
    .local_req_valid_i(local_req_valid),
    .local_req_ready_o(local_req_ready),
    .local_req_i      (local_req),
    .unlock_valid_i   ('0),
    .unlock_ready_o   (unused_unlock_ready),
    .unlock_line_i    ('0),
    .local_rsp_valid_o(local_rsp_valid),
    .local_rsp_ready_i(local_rsp_ready),
    .local_rsp_o      (local_rsp),
    .change_valid_o   (unused_change_valid),
    .change_ready_i   ('1),
    .change_o         (unused_change),
    .axi_aw_valid_o   (aw_valid),
    .axi_aw_ready_i   (aw_ready),
    .axi_aw_id_o      (aw_id),
    .axi_aw_addr_o    (aw_addr),
    .axi_aw_user_o    (unused_aw_user),
    .axi_w_valid_o    (w_valid),
    .axi_w_ready_i    (w_ready),
    .axi_w_data_o     (w_data),
    .axi_w_strb_o     (w_strb),
    .axi_w_last_o     (w_last),
    .axi_b_valid_i    (b_valid),
    .axi_b_ready_o    (b_ready),
    .axi_b_id_i       (b_id),
    .axi_ar_valid_o   (ar_valid),
    .axi_ar_ready_i   (ar_ready),
    .axi_ar_id_o      (ar_id),
    .axi_ar_addr_o    (ar_addr),
    .axi_ar_user_o    (unused_ar_user),
    .axi_r_valid_i    (r_valid),
    .axi_r_ready_o    (r_ready),
    .axi_r_id_i       (r_id),
    .axi_r_data_i     (r_data),
    .axi_r_last_i     (r_last),
    .cfg_aw_valid_i,
    .cfg_aw_ready_o,
    .cfg_aw_addr_i,
    .cfg_w_valid_i,
    .cfg_w_ready_o,
    .cfg_w_data_i,
    .cfg_w_strb_i,
    .cfg_b_valid_o,
    .cfg_b_ready_i,
    .cfg_b_resp_o,
    .cfg_ar_valid_i,
    .cfg_ar_ready_o,
    .cfg_ar_addr_i,
    .cfg_r_valid_o,
    .cfg_r_ready_i,
    .cfg_r_data_o,
    .cfg_r_resp_o,
    .step_valid_o     (unused_step_valid),
    .step_o           (unused_step),
    .busy_o           (unused_busy),
    .idle_o           (idle)
  );

  assign idle_o = idle == '1;

  for (genvar s = 0; s < 2; s++) begin : gen_slice
    axi_memory #(
      .Lines       (MemoryLines),
      .Beats       (Beats),
      .PayloadWidth(PayloadWidth),
      .AxiIdWidth  (AxiIdWidth),
      .AxiAddrWidth(AxiAddrWidth)
    ) u_memory (
      .clk_i,
      .rst_ni    (rst_n),
      .aw_valid_i(aw_valid[s]),
      .aw_ready_o(aw_ready[s]),
      .aw_id_i   (aw_id[s]),
      .aw_addr_i (aw_addr[s]),
      .w_valid_i (w_valid[s]),
      .w_ready_o (w_ready[s]),
      .w_data_i  (w_data[s]),
      .w_strb_i  (w_strb[s]),
      .w_last_i  (w_last[s]),
      .b_valid_o (b_valid[s]),
      .b_ready_i (b_ready[s]),
      .b_id_o    (b_id[s]),
      .ar_valid_i(ar_valid[s]),
      .ar_ready_o(ar_ready[s]),
      .ar_id_i   (ar_id[s]),
      .ar_addr_i (ar_addr[s]),
      .r_valid_o (r_valid[s]),
      .r_ready_i (r_ready[s]),
      .r_id_o    (r_id[s]),
      .r_data_o  (r_data[s]),
      .r_last_o  (r_last[s])
    );

    invalidation_engine #(
      .Protocol(Protocol)
    ) u_engine (
      .clk_i,
      .rst_ni           (rst_n),
      .start_valid_i    (start_valid_i[s]),
      .start_ready_o    (start_ready_o[s]),
      .start_line_i     (start_line_i[s]),
      .start_count_i    (start_count_i[s]),
      .done_valid_o     (done_valid_o[s]),
      .done_ready_i     (done_ready_i[s]),
      .done_refused_o   (done_refused_o[s]),
      .local_req_valid_o(local_req_valid[s]),
      .local_req_ready_i(local_req_ready[s]),
      .local_req_o      (local_req[s]),
      .local_rsp_valid_i(local_rsp_valid[s]),
      .local_rsp_ready_o(local_rsp_ready[s]),
      .local_rsp_i      (local_rsp[s])
    );
  end
endmodule : board
