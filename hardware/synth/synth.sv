// Top module of `cohkit rtl synth`: a directory controller slice (DCS) with the parameters that the command
// sets. All other parameters have the defaults of dcs.sv. PROTOCOL_PKG is the protocol's package.

module synth #(
  // Parameters and ports of dcs.sv.
  parameter              RomFile  = "",
  parameter int unsigned Units    = 1,
  parameter int unsigned SetWidth = 7,
  parameter int unsigned TagWidth = 16,
  parameter int unsigned Ways     = 16,

  localparam int unsigned NumRx = int'(`PROTOCOL_PKG::Protocol.rx_circuits),
  localparam int unsigned NumTx = int'(`PROTOCOL_PKG::Protocol.tx_circuits)
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,
  input  logic [NumRx-1:0]            rx_valid_i,
  output logic [NumRx-1:0]            rx_ready_o,
  input  home_pkg::header_t [NumRx-1:0] rx_header_i,
  input  logic [NumRx-1:0][511:0]     rx_data_i,
  input  logic [NumRx-1:0]            rx_last_i,
  output logic [NumTx-1:0]            tx_valid_o,
  input  logic [NumTx-1:0]            tx_ready_i,
  output home_pkg::header_t [NumTx-1:0] tx_header_o,
  output logic [NumTx-1:0][511:0]     tx_data_o,
  output logic [NumTx-1:0]            tx_last_o,
  input  logic                        local_req_valid_i,
  output logic                        local_req_ready_o,
  input  home_pkg::local_req_t        local_req_i,
  input  logic                        unlock_valid_i,
  output logic                        unlock_ready_o,
  input  logic [home_pkg::LineWidth-1:0] unlock_line_i,
  output logic                        local_rsp_valid_o,
  input  logic                        local_rsp_ready_i,
  output home_pkg::local_rsp_t        local_rsp_o,
  output logic                        axi_aw_valid_o,
  input  logic                        axi_aw_ready_i,
  output logic [7:0]                  axi_aw_id_o,
  output logic [35:0]                 axi_aw_addr_o,
  output logic [7:0]                  axi_aw_user_o,
  output logic                        axi_w_valid_o,
  input  logic                        axi_w_ready_i,
  output logic [511:0]                axi_w_data_o,
  output logic [63:0]                 axi_w_strb_o,
  output logic                        axi_w_last_o,
  input  logic                        axi_b_valid_i,
  output logic                        axi_b_ready_o,
  input  logic [7:0]                  axi_b_id_i,
  output logic                        axi_ar_valid_o,
  input  logic                        axi_ar_ready_i,
  output logic [7:0]                  axi_ar_id_o,
  output logic [35:0]                 axi_ar_addr_o,
  output logic [7:0]                  axi_ar_user_o,
  input  logic                        axi_r_valid_i,
  output logic                        axi_r_ready_o,
  input  logic [7:0]                  axi_r_id_i,
  input  logic [511:0]                axi_r_data_i,
  input  logic                        axi_r_last_i,
  input  logic                        cfg_aw_valid_i,
  output logic                        cfg_aw_ready_o,
  input  logic [registers_pkg::AddrWidth-1:0] cfg_aw_addr_i,
  input  logic                        cfg_w_valid_i,
  output logic                        cfg_w_ready_o,
  input  logic [63:0]                 cfg_w_data_i,
  input  logic [7:0]                  cfg_w_strb_i,
  output logic                        cfg_b_valid_o,
  input  logic                        cfg_b_ready_i,
  output logic [1:0]                  cfg_b_resp_o,
  input  logic                        cfg_ar_valid_i,
  output logic                        cfg_ar_ready_o,
  input  logic [registers_pkg::AddrWidth-1:0] cfg_ar_addr_i,
  output logic                        cfg_r_valid_o,
  input  logic                        cfg_r_ready_i,
  output logic [63:0]                 cfg_r_data_o,
  output logic [1:0]                  cfg_r_resp_o,
  output logic                        change_valid_o,
  input  logic                        change_ready_i,
  output home_pkg::change_t           change_o,
  output logic                        idle_o
);
  // Observation ports are unconnected, so that their logic is not counted.
  logic            [Units-1:0] unused_step_valid;
  home_pkg::step_t [Units-1:0] unused_step;
  logic            [Units-1:0] unused_busy;

  dcs #(
    .Protocol    (`PROTOCOL_PKG::Protocol),
    .state_e     (`PROTOCOL_PKG::state_e),
    .event_e     (`PROTOCOL_PKG::event_e),
    .send_e      (`PROTOCOL_PKG::send_e),
    .row_t       (`PROTOCOL_PKG::row_t),
    .RomFile     (RomFile),
    .Units       (Units),
    .SetWidth    (SetWidth),
    .TagWidth    (TagWidth),
    .Ways        (Ways)
  ) u_dcs (
    .step_valid_o(unused_step_valid),
    .step_o      (unused_step),
    .busy_o      (unused_busy),
    .*
  );
endmodule : synth
