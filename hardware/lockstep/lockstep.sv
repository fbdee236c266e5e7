// Top module of the lockstep tests: the home with the device side of each slice. PROTOCOL_PKG is the protocol's
// package.
//
// Ports have the names and meanings that they have in home.sv. Structs are 64-bit words, with the first field of the
// struct at the highest bits in use, so that the C++ program needs no packed types.

module lockstep #(
  // Parameters of home.sv, unless noted. The test bench sets all of them, by the shape of the home.
  parameter int unsigned Units           = 2,
  parameter int unsigned SetWidth        = 2,
  parameter int unsigned TagWidth        = 16,
  parameter int unsigned Ways            = 4,
  parameter int unsigned WaysPerStep     = 4,
  parameter int unsigned Reads           = 2,
  parameter int unsigned Writes          = 1,
  parameter int unsigned Locals          = 2,
  parameter int unsigned MaxDeferred     = 2,
  parameter int unsigned StoreSlots      = 2,
  parameter int unsigned ChangeDepth     = 2,
  parameter int unsigned UnitsPerPort    = 8,
  parameter int unsigned PayloadWidth    = 512,   // with an endpoint behind the home, 512
  parameter int unsigned Endpoint        = 0,     // the device side of the home; see device_side.sv
  parameter int unsigned MemoryLines     = 64,
  parameter int unsigned RecallDelayLog2 = 8,

  localparam int unsigned NumRx = int'(`PROTOCOL_PKG::Protocol.rx_circuits),
  localparam int unsigned NumTx = int'(`PROTOCOL_PKG::Protocol.tx_circuits)
) (
  // Pins of the home, or of its device side.
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic [1:0][NumRx-1:0]            rx_valid_i,
  output logic [1:0][NumRx-1:0]            rx_ready_o,
  input  logic [1:0][NumRx-1:0][63:0]      rx_header_i,
  input  logic [1:0][NumRx-1:0][PayloadWidth-1:0] rx_data_i,
  input  logic [1:0][NumRx-1:0]                   rx_last_i,
  output logic [1:0][NumTx-1:0]            tx_valid_o,
  input  logic [1:0][NumTx-1:0]            tx_ready_i,
  output logic [1:0][NumTx-1:0][63:0]      tx_header_o,
  output logic [1:0][NumTx-1:0][PayloadWidth-1:0] tx_data_o,
  output logic [1:0][NumTx-1:0]                   tx_last_o,
  input  logic [1:0]                       local_req_valid_i,
  output logic [1:0]                       local_req_ready_o,
  input  logic [1:0][63:0]                 local_req_i,
  input  logic [1:0]                       unlock_valid_i,
  output logic [1:0]                       unlock_ready_o,
  input  logic [1:0][63:0]                 unlock_line_i,
  output logic [1:0]                       local_rsp_valid_o,
  input  logic [1:0]                       local_rsp_ready_i,
  output logic [1:0][63:0]                 local_rsp_o,
  output logic [1:0]                       change_valid_o,
  input  logic [1:0]                       change_ready_i,
  output logic [1:0][63:0]                 change_o,
  output logic [1:0]                       axi_aw_valid_o,
  input  logic [1:0]                       axi_aw_ready_i,
  output logic [1:0][7:0]                  axi_aw_id_o,
  output logic [1:0][63:0]                 axi_aw_addr_o,
  output logic [1:0][7:0]                  axi_aw_user_o,
  output logic [1:0]                       axi_w_valid_o,
  input  logic [1:0]                       axi_w_ready_i,
  output logic [1:0][PayloadWidth-1:0]     axi_w_data_o,
  output logic [1:0][PayloadWidth/8-1:0]   axi_w_strb_o,
  output logic [1:0]                       axi_w_last_o,
  input  logic [1:0]                       axi_b_valid_i,
  output logic [1:0]                       axi_b_ready_o,
  input  logic [1:0][7:0]                  axi_b_id_i,
  output logic [1:0]                       axi_ar_valid_o,
  input  logic [1:0]                       axi_ar_ready_i,
  output logic [1:0][7:0]                  axi_ar_id_o,
  output logic [1:0][63:0]                 axi_ar_addr_o,
  output logic [1:0][7:0]                  axi_ar_user_o,
  input  logic [1:0]                       axi_r_valid_i,
  output logic [1:0]                       axi_r_ready_o,
  input  logic [1:0][7:0]                  axi_r_id_i,
  input  logic [1:0][PayloadWidth-1:0]     axi_r_data_i,
  input  logic [1:0]                       axi_r_last_i,
  input  logic [1:0]                     cfg_aw_valid_i,
  output logic [1:0]                     cfg_aw_ready_o,
  input  logic [1:0][registers_pkg::AddrWidth-1:0] cfg_aw_addr_i,
  input  logic [1:0]                     cfg_w_valid_i,
  output logic [1:0]                     cfg_w_ready_o,
  input  logic [1:0][63:0]               cfg_w_data_i,
  input  logic [1:0][7:0]                cfg_w_strb_i,
  output logic [1:0]                     cfg_b_valid_o,
  input  logic [1:0]                     cfg_b_ready_i,
  output logic [1:0][1:0]                cfg_b_resp_o,
  input  logic [1:0]                     cfg_ar_valid_i,
  output logic [1:0]                     cfg_ar_ready_o,
  input  logic [1:0][registers_pkg::AddrWidth-1:0] cfg_ar_addr_i,
  output logic [1:0]                     cfg_r_valid_o,
  input  logic [1:0]                     cfg_r_ready_i,
  output logic [1:0][63:0]               cfg_r_data_o,
  output logic [1:0][1:0]                cfg_r_resp_o,
  output logic [1:0][Units-1:0]            step_valid_o,
  output logic [1:0][Units-1:0][63:0]      step_o,
  output logic [1:0][Units-1:0]            busy_o,
  output logic [1:0]                       idle_o,

  // Ports of the applications behind the home: see applications.sv.
  input  logic                             start_i,
  input  logic                             stop_i,
  output logic [1:0]                       app_aw_valid_o,
  input  logic [1:0]                       app_aw_ready_i,
  output logic [1:0][7:0]                  app_aw_id_o,
  output logic [1:0][63:0]                 app_aw_addr_o,
  output logic [1:0]                       app_w_valid_o,
  input  logic [1:0]                       app_w_ready_i,
  output logic [1:0][511:0]                app_w_data_o,
  output logic [1:0][63:0]                 app_w_strb_o,
  output logic [1:0]                       app_w_last_o,
  input  logic [1:0]                       app_b_valid_i,
  output logic [1:0]                       app_b_ready_o,
  input  logic [1:0][7:0]                  app_b_id_i,
  output logic [1:0]                       app_ar_valid_o,
  input  logic [1:0]                       app_ar_ready_i,
  output logic [1:0][7:0]                  app_ar_id_o,
  output logic [1:0][63:0]                 app_ar_addr_o,
  output logic [1:0][7:0]                  app_ar_lines_o,
  input  logic [1:0]                       app_r_valid_i,
  output logic [1:0]                       app_r_ready_o,
  input  logic [1:0][7:0]                  app_r_id_i,
  input  logic [1:0][511:0]                app_r_data_i,
  input  logic [1:0]                       app_r_last_i,

  // Handshakes between the home and its device side in this cycle, from bit 0: last beat read, write response,
  // local operation, unlock, response to the device, read address, write address, write beat.
  output logic [1:0][7:0]                  handshakes_o,
  // Details of these handshakes, each valid with its bit: AXI ID and data of a beat read, and the beat's own
  // handshake; AXI ID of the write response; local operation; line of the unlock.
  output logic [1:0][7:0]                  handshake_r_id_o,
  output logic [1:0][PayloadWidth-1:0]     handshake_r_data_o,
  output logic [1:0]                       handshake_r_o,
  output logic [1:0][7:0]                  handshake_b_id_o,
  output logic [1:0][63:0]                 handshake_local_o,
  output logic [1:0][63:0]                 handshake_unlock_o
);
  localparam int unsigned AxiAddrWidth = 36;

  home_pkg::header_t    [1:0][NumRx-1:0]               rx_header;
  home_pkg::header_t    [1:0][NumTx-1:0]               tx_header;
  home_pkg::local_req_t [1:0]                          local_req;
  home_pkg::local_rsp_t [1:0]                          local_rsp, local_rsp_pin;
  logic                 [1:0][home_pkg::LineWidth-1:0] unlock_line;
  home_pkg::change_t    [1:0]                          change;
  home_pkg::step_t      [1:0][Units-1:0]               step;
  logic                 [1:0][AxiAddrWidth-1:0]        aw_addr, ar_addr;

  // Ports of the home toward its device side.
  logic [1:0]                     home_aw_valid;
  logic [1:0]                     home_aw_ready;
  logic [1:0][7:0]                home_aw_id;
  logic [1:0][AxiAddrWidth-1:0]   home_aw_addr;
  logic [1:0]                     home_w_valid;
  logic [1:0]                     home_w_ready;
  logic [1:0][PayloadWidth-1:0]   home_w_data;
  logic [1:0][PayloadWidth/8-1:0] home_w_strb;
  logic [1:0]                     home_w_last;
  logic [1:0]                     home_b_valid;
  logic [1:0]                     home_b_ready;
  logic [1:0][7:0]                home_b_id;
  logic [1:0]                     home_ar_valid;
  logic [1:0]                     home_ar_ready;
  logic [1:0][7:0]                home_ar_id;
  logic [1:0][AxiAddrWidth-1:0]   home_ar_addr;
  logic [1:0]                     home_r_valid;
  logic [1:0]                     home_r_ready;
  logic [1:0][7:0]                home_r_id;
  logic [1:0][PayloadWidth-1:0]   home_r_data;
  logic [1:0]                     home_r_last;
  logic [1:0]                     home_local_req_valid;
  logic [1:0]                     home_local_req_ready;
  logic [1:0]                     home_local_rsp_valid;
  logic [1:0]                     home_local_rsp_ready;
  logic [1:0]                     home_unlock_valid;
  logic [1:0]                     home_unlock_ready;
  logic [1:0][home_pkg::LineWidth-1:0] home_unlock_line;
  logic [1:0]                     home_idle, app_busy;
  device_side_pkg::axi_subordinate_t   [1:0] from_memory;
  device_side_pkg::axi_manager_t  [1:0] to_memory;

  for (genvar s = 0; s < 2; s++) begin : gen_slice
    device_side #(
      .Protocol    (`PROTOCOL_PKG::Protocol),
      .Endpoint    (Endpoint),
      .Slice       (s),
      .MemoryLines (MemoryLines),
      .PayloadWidth(PayloadWidth),
      .AxiAddrWidth(AxiAddrWidth)
    ) u_device_side (
      .clk_i,
      .rst_ni,
      .home_aw_valid_i       (home_aw_valid[s]),
      .home_aw_ready_o       (home_aw_ready[s]),
      .home_aw_id_i          (home_aw_id[s]),
      .home_aw_addr_i        (home_aw_addr[s]),
      .home_w_valid_i        (home_w_valid[s]),
      .home_w_ready_o        (home_w_ready[s]),
      .home_w_data_i         (home_w_data[s]),
      .home_w_strb_i         (home_w_strb[s]),
      .home_w_last_i         (home_w_last[s]),
      .home_b_valid_o        (home_b_valid[s]),
      .home_b_ready_i        (home_b_ready[s]),
      .home_b_id_o           (home_b_id[s]),
      .home_ar_valid_i       (home_ar_valid[s]),
      .home_ar_ready_o       (home_ar_ready[s]),
      .home_ar_id_i          (home_ar_id[s]),
      .home_ar_addr_i        (home_ar_addr[s]),
      .home_r_valid_o        (home_r_valid[s]),
      .home_r_ready_i        (home_r_ready[s]),
      .home_r_id_o           (home_r_id[s]),
      .home_r_data_o         (home_r_data[s]),
      .home_r_last_o         (home_r_last[s]),
      .home_local_req_valid_o(home_local_req_valid[s]),
      .home_local_req_ready_i(home_local_req_ready[s]),
      .home_local_req_o      (local_req[s]),
      .home_local_rsp_valid_i(home_local_rsp_valid[s]),
      .home_local_rsp_ready_o(home_local_rsp_ready[s]),
      .home_local_rsp_i      (local_rsp[s]),
      .home_unlock_valid_o   (home_unlock_valid[s]),
      .home_unlock_ready_i   (home_unlock_ready[s]),
      .home_unlock_line_o    (home_unlock_line[s]),
      .pin_aw_valid_o        (axi_aw_valid_o[s]),
      .pin_aw_ready_i        (axi_aw_ready_i[s]),
      .pin_aw_id_o           (axi_aw_id_o[s]),
      .pin_aw_addr_o         (aw_addr[s]),
      .pin_w_valid_o         (axi_w_valid_o[s]),
      .pin_w_ready_i         (axi_w_ready_i[s]),
      .pin_w_data_o          (axi_w_data_o[s]),
      .pin_w_strb_o          (axi_w_strb_o[s]),
      .pin_w_last_o          (axi_w_last_o[s]),
      .pin_b_valid_i         (axi_b_valid_i[s]),
      .pin_b_ready_o         (axi_b_ready_o[s]),
      .pin_b_id_i            (axi_b_id_i[s]),
      .pin_ar_valid_o        (axi_ar_valid_o[s]),
      .pin_ar_ready_i        (axi_ar_ready_i[s]),
      .pin_ar_id_o           (axi_ar_id_o[s]),
      .pin_ar_addr_o         (ar_addr[s]),
      .pin_r_valid_i         (axi_r_valid_i[s]),
      .pin_r_ready_o         (axi_r_ready_o[s]),
      .pin_r_id_i            (axi_r_id_i[s]),
      .pin_r_data_i          (axi_r_data_i[s]),
      .pin_r_last_i          (axi_r_last_i[s]),
      .pin_local_req_valid_i (local_req_valid_i[s]),
      .pin_local_req_ready_o (local_req_ready_o[s]),
      .pin_local_req_i       (local_req_i[s]),
      .pin_local_rsp_valid_o (local_rsp_valid_o[s]),
      .pin_local_rsp_ready_i (local_rsp_ready_i[s]),
      .pin_local_rsp_o       (local_rsp_pin[s]),
      .pin_unlock_valid_i    (unlock_valid_i[s]),
      .pin_unlock_ready_o    (unlock_ready_o[s]),
      .pin_unlock_line_i     (unlock_line[s]),
      .start_i,
      .stop_i,
      .busy_o                (app_busy[s]),
      .memory_i              (from_memory[s]),
      .memory_o              (to_memory[s])
    );

    assign from_memory[s] = '{
      aw_ready: app_aw_ready_i[s],
      w_ready:  app_w_ready_i[s],
      b_valid:  app_b_valid_i[s],
      b_id:     app_b_id_i[s],
      ar_ready: app_ar_ready_i[s],
      r_valid:  app_r_valid_i[s],
      r_id:     app_r_id_i[s],
      r_data:   app_r_data_i[s],
      r_last:   app_r_last_i[s]
    };
    assign app_aw_valid_o[s] = to_memory[s].aw_valid;
    assign app_aw_id_o[s]    = to_memory[s].aw_id;
    assign app_aw_addr_o[s]  = 64'(to_memory[s].aw_addr);
    assign app_w_valid_o[s]  = to_memory[s].w_valid;
    assign app_w_data_o[s]   = to_memory[s].w_data;
    assign app_w_strb_o[s]   = to_memory[s].w_strb;
    assign app_w_last_o[s]   = to_memory[s].w_last;
    assign app_b_ready_o[s]  = to_memory[s].b_ready;
    assign app_ar_valid_o[s] = to_memory[s].ar_valid;
    assign app_ar_id_o[s]    = to_memory[s].ar_id;
    assign app_ar_addr_o[s]  = 64'(to_memory[s].ar_addr);
    assign app_ar_lines_o[s] = to_memory[s].ar_lines;
    assign app_r_ready_o[s]  = to_memory[s].r_ready;
    assign idle_o[s]         = home_idle[s] && !app_busy[s];

    assign handshake_r_o[s] = home_r_valid[s] && home_r_ready[s];
    assign handshakes_o[s]  = {
      home_w_valid[s] && home_w_ready[s],
      home_aw_valid[s] && home_aw_ready[s],
      home_ar_valid[s] && home_ar_ready[s],
      home_local_rsp_valid[s] && home_local_rsp_ready[s],
      home_unlock_valid[s] && home_unlock_ready[s],
      home_local_req_valid[s] && home_local_req_ready[s],
      home_b_valid[s] && home_b_ready[s],
      handshake_r_o[s] && home_r_last[s]
    };
    assign handshake_r_id_o[s]   = home_r_id[s];
    assign handshake_r_data_o[s] = home_r_data[s];
    assign handshake_b_id_o[s]   = home_b_id[s];
    assign handshake_local_o[s]  = 64'(local_req[s]);
    assign handshake_unlock_o[s] = 64'(home_unlock_line[s]);

    logic unused;
    for (genvar c = 0; c < NumRx; c++) begin : gen_rx
      assign rx_header[s][c] = home_pkg::header_t'(rx_header_i[s][c]);
    end
    for (genvar c = 0; c < NumTx; c++) begin : gen_tx
      assign tx_header_o[s][c] = tx_header[s][c];
    end
    assign unlock_line[s]   = home_pkg::LineWidth'(unlock_line_i[s]);
    assign local_rsp_o[s]   = 64'(local_rsp_pin[s]);
    assign change_o[s]      = 64'(change[s]);
    assign axi_aw_addr_o[s] = 64'(aw_addr[s]);
    assign axi_ar_addr_o[s] = 64'(ar_addr[s]);
    assign unused           = ^unlock_line_i[s];
    for (genvar u = 0; u < Units; u++) begin : gen_step
      assign step_o[s][u] = 64'(step[s][u]);
    end
  end

  home #(
    .Protocol       (`PROTOCOL_PKG::Protocol),
    .state_e        (`PROTOCOL_PKG::state_e),
    .event_e        (`PROTOCOL_PKG::event_e),
    .send_e         (`PROTOCOL_PKG::send_e),
    .row_t          (`PROTOCOL_PKG::row_t),
    .Units          (Units),
    .SetWidth       (SetWidth),
    .TagWidth       (TagWidth),
    .Ways           (Ways),
    .WaysPerStep    (WaysPerStep),
    .Reads          (Reads),
    .Writes         (Writes),
    .Locals         (Locals),
    .MaxDeferred    (MaxDeferred),
    .StoreSlots     (StoreSlots),
    .ChangeDepth    (ChangeDepth),
    .UnitsPerPort   (UnitsPerPort),
    .PayloadWidth   (PayloadWidth),
    .RecallDelayLog2(RecallDelayLog2),
    // Small, so that the queue is sometimes full.
    .LocalQueueDepth(4),
    .AxiAddrWidth   (AxiAddrWidth)
  ) u_home (
    .clk_i,
    .rst_ni,
    .rx_valid_i,
    .rx_ready_o,
    .rx_header_i      (rx_header),
    .rx_data_i,
    .rx_last_i,
    .tx_valid_o,
    .tx_ready_i,
    .tx_header_o      (tx_header),
    .tx_data_o,
    .tx_last_o,
    .local_req_valid_i(home_local_req_valid),
    .local_req_ready_o(home_local_req_ready),
    .local_req_i      (local_req),
    .unlock_valid_i   (home_unlock_valid),
    .unlock_ready_o   (home_unlock_ready),
    .unlock_line_i    (home_unlock_line),
    .local_rsp_valid_o(home_local_rsp_valid),
    .local_rsp_ready_i(home_local_rsp_ready),
    .local_rsp_o      (local_rsp),
    .change_valid_o,
    .change_ready_i,
    .change_o         (change),
    .axi_aw_valid_o   (home_aw_valid),
    .axi_aw_ready_i   (home_aw_ready),
    .axi_aw_id_o      (home_aw_id),
    .axi_aw_addr_o    (home_aw_addr),
    .axi_aw_user_o,
    .axi_w_valid_o    (home_w_valid),
    .axi_w_ready_i    (home_w_ready),
    .axi_w_data_o     (home_w_data),
    .axi_w_strb_o     (home_w_strb),
    .axi_w_last_o     (home_w_last),
    .axi_b_valid_i    (home_b_valid),
    .axi_b_ready_o    (home_b_ready),
    .axi_b_id_i       (home_b_id),
    .axi_ar_valid_o   (home_ar_valid),
    .axi_ar_ready_i   (home_ar_ready),
    .axi_ar_id_o      (home_ar_id),
    .axi_ar_addr_o    (home_ar_addr),
    .axi_ar_user_o,
    .axi_r_valid_i    (home_r_valid),
    .axi_r_ready_o    (home_r_ready),
    .axi_r_id_i       (home_r_id),
    .axi_r_data_i     (home_r_data),
    .axi_r_last_i     (home_r_last),
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
    .step_valid_o,
    .step_o           (step),
    .busy_o,
    .idle_o           (home_idle)
  );
endmodule : lockstep
