// Device side of a slice in lockstep: either an endpoint, or none, so that the slice's ports are the pins of the test
// bench.
//
// With an endpoint, the AXI pins are idle. With the invalidation engine, a local operation at the pins requests a
// range: it has the first line, and the number of lines in bits 63 to 40. Its response is sent when the range is
// complete.
//
// Applications have separate memory pins. The pins of the home's memory are used only by an application that does not
// serve the home's memory accesses.

module device_side #(
  parameter home_pkg::protocol_t Protocol = '0,
  // 1: coherent memory; 2: the same, with the invalidation engine; 3: RPC; 4: applications.sv
  parameter int unsigned Endpoint     = 0,
  // Slice: 0 for the even lines, 1 for the odd ones. MemoryLines: lines of axi_memory.
  parameter int unsigned Slice        = 0,
  parameter int unsigned MemoryLines  = 64,
  parameter int unsigned PayloadWidth = 512,   // of the pins without an endpoint; with an endpoint, 512
  parameter int unsigned AxiAddrWidth = 36
) (
  input  logic clk_i,
  input  logic rst_ni,

  // Ports of the home.
  input  logic                          home_aw_valid_i,
  output logic                          home_aw_ready_o,
  input  logic [7:0]                    home_aw_id_i,
  input  logic [AxiAddrWidth-1:0]       home_aw_addr_i,
  input  logic                          home_w_valid_i,
  output logic                          home_w_ready_o,
  input  logic [PayloadWidth-1:0]       home_w_data_i,
  input  logic [PayloadWidth/8-1:0]     home_w_strb_i,
  input  logic                          home_w_last_i,
  output logic                          home_b_valid_o,
  input  logic                          home_b_ready_i,
  output logic [7:0]                    home_b_id_o,
  input  logic                          home_ar_valid_i,
  output logic                          home_ar_ready_o,
  input  logic [7:0]                    home_ar_id_i,
  input  logic [AxiAddrWidth-1:0]       home_ar_addr_i,
  output logic                          home_r_valid_o,
  input  logic                          home_r_ready_i,
  output logic [7:0]                    home_r_id_o,
  output logic [PayloadWidth-1:0]       home_r_data_o,
  output logic                          home_r_last_o,
  output logic                          home_local_req_valid_o,
  input  logic                          home_local_req_ready_i,
  output home_pkg::local_req_t          home_local_req_o,
  input  logic                          home_local_rsp_valid_i,
  output logic                          home_local_rsp_ready_o,
  input  home_pkg::local_rsp_t          home_local_rsp_i,
  output logic                          home_unlock_valid_o,
  input  logic                          home_unlock_ready_i,
  output logic [home_pkg::LineWidth-1:0] home_unlock_line_o,

  // Pins of the test bench.
  output logic                          pin_aw_valid_o,
  input  logic                          pin_aw_ready_i,
  output logic [7:0]                    pin_aw_id_o,
  output logic [AxiAddrWidth-1:0]       pin_aw_addr_o,
  output logic                          pin_w_valid_o,
  input  logic                          pin_w_ready_i,
  output logic [PayloadWidth-1:0]       pin_w_data_o,
  output logic [PayloadWidth/8-1:0]     pin_w_strb_o,
  output logic                          pin_w_last_o,
  input  logic                          pin_b_valid_i,
  output logic                          pin_b_ready_o,
  input  logic [7:0]                    pin_b_id_i,
  output logic                          pin_ar_valid_o,
  input  logic                          pin_ar_ready_i,
  output logic [7:0]                    pin_ar_id_o,
  output logic [AxiAddrWidth-1:0]       pin_ar_addr_o,
  input  logic                          pin_r_valid_i,
  output logic                          pin_r_ready_o,
  input  logic [7:0]                    pin_r_id_i,
  input  logic [PayloadWidth-1:0]       pin_r_data_i,
  input  logic                          pin_r_last_i,
  input  logic                          pin_local_req_valid_i,
  output logic                          pin_local_req_ready_o,
  input  logic [63:0]                   pin_local_req_i,
  output logic                          pin_local_rsp_valid_o,
  input  logic                          pin_local_rsp_ready_i,
  output home_pkg::local_rsp_t          pin_local_rsp_o,
  input  logic                          pin_unlock_valid_i,
  output logic                          pin_unlock_ready_o,
  input  logic [home_pkg::LineWidth-1:0] pin_unlock_line_i,

  // Control of the applications.
  input  logic                          start_i,
  input  logic                          stop_i,
  output logic                          busy_o,
  input  device_side_pkg::axi_subordinate_t   memory_i,
  output device_side_pkg::axi_manager_t  memory_o
);
  if (Endpoint != 4) begin : gen_no_application
    assign home_unlock_valid_o = pin_unlock_valid_i;
    assign pin_unlock_ready_o  = home_unlock_ready_i;
    assign home_unlock_line_o  = pin_unlock_line_i;
    assign busy_o              = 1'b0;
    assign memory_o            = '0;
    logic unused_memory;
    assign unused_memory = ^{memory_i, start_i, stop_i};
  end

  if (Endpoint == 0) begin : gen_pins
    assign pin_aw_valid_o  = home_aw_valid_i;
    assign home_aw_ready_o = pin_aw_ready_i;
    assign pin_aw_id_o     = home_aw_id_i;
    assign pin_aw_addr_o   = home_aw_addr_i;
    assign pin_w_valid_o   = home_w_valid_i;
    assign home_w_ready_o  = pin_w_ready_i;
    assign pin_w_data_o    = home_w_data_i;
    assign pin_w_strb_o    = home_w_strb_i;
    assign pin_w_last_o    = home_w_last_i;
    assign home_b_valid_o  = pin_b_valid_i;
    assign pin_b_ready_o   = home_b_ready_i;
    assign home_b_id_o     = pin_b_id_i;
    assign pin_ar_valid_o  = home_ar_valid_i;
    assign home_ar_ready_o = pin_ar_ready_i;
    assign pin_ar_id_o     = home_ar_id_i;
    assign pin_ar_addr_o   = home_ar_addr_i;
    assign home_r_valid_o  = pin_r_valid_i;
    assign pin_r_ready_o   = home_r_ready_i;
    assign home_r_id_o     = pin_r_id_i;
    assign home_r_data_o   = pin_r_data_i;
    assign home_r_last_o   = pin_r_last_i;
    logic unused;
    assign unused = ^{clk_i, rst_ni};
  end else if (Endpoint == 4) begin : gen_applications
    device_side_pkg::from_home_t from_home;
    device_side_pkg::to_home_t   to_home;
    device_side_pkg::axi_subordinate_t pins;

    assign from_home = '{
      axi: '{
        aw_valid: home_aw_valid_i,
        aw_id:    home_aw_id_i,
        aw_addr:  36'(home_aw_addr_i),
        w_valid:  home_w_valid_i,
        w_data:   home_w_data_i,
        w_strb:   home_w_strb_i,
        w_last:   home_w_last_i,
        b_ready:  home_b_ready_i,
        ar_valid: home_ar_valid_i,
        ar_id:    home_ar_id_i,
        ar_addr:  36'(home_ar_addr_i),
        ar_lines: '0,
        r_ready:  home_r_ready_i
      },
      local_req_ready: home_local_req_ready_i,
      unlock_ready:    home_unlock_ready_i,
      local_rsp_valid: home_local_rsp_valid_i,
      local_rsp:       home_local_rsp_i
    };

    // The pins only observe the home's memory requests; the test bench counts a request at its handshake with the home.
    assign pins = '{
      aw_ready: 1'b1,
      w_ready:  1'b1,
      b_valid:  pin_b_valid_i,
      b_id:     pin_b_id_i,
      ar_ready: 1'b1,
      r_valid:  pin_r_valid_i,
      r_id:     pin_r_id_i,
      r_data:   pin_r_data_i,
      r_last:   pin_r_last_i
    };

    applications #(
      .Protocol    (Protocol),
      .Slice       (Slice),
      .AxiAddrWidth(AxiAddrWidth)
    ) u_applications (
      .clk_i,
      .rst_ni,
      .start_i,
      .stop_i,
      .busy_o,
      .home_i        (from_home),
      .home_o        (to_home),
      .pins_i        (pins),
      .pins_b_ready_o(pin_b_ready_o),
      .pins_r_ready_o(pin_r_ready_o),
      .memory_i,
      .memory_o
    );

    assign home_aw_ready_o        = to_home.axi.aw_ready;
    assign home_w_ready_o         = to_home.axi.w_ready;
    assign home_b_valid_o         = to_home.axi.b_valid;
    assign home_b_id_o            = to_home.axi.b_id;
    assign home_ar_ready_o        = to_home.axi.ar_ready;
    assign home_r_valid_o         = to_home.axi.r_valid;
    assign home_r_id_o            = to_home.axi.r_id;
    assign home_r_data_o          = to_home.axi.r_data;
    assign home_r_last_o          = to_home.axi.r_last;
    assign home_local_req_valid_o = to_home.local_req_valid;
    assign home_local_req_o       = to_home.local_req;
    assign home_unlock_valid_o    = to_home.unlock_valid;
    assign home_unlock_line_o     = to_home.unlock_line;
    assign home_local_rsp_ready_o = to_home.local_rsp_ready;

    assign pin_aw_valid_o        = 1'b0;
    assign pin_aw_id_o           = home_aw_id_i;
    assign pin_aw_addr_o         = home_aw_addr_i;
    assign pin_w_valid_o         = 1'b0;
    assign pin_w_data_o          = home_w_data_i;
    assign pin_w_strb_o          = home_w_strb_i;
    assign pin_w_last_o          = home_w_last_i;
    assign pin_ar_valid_o        = 1'b0;
    assign pin_ar_id_o           = home_ar_id_i;
    assign pin_ar_addr_o         = home_ar_addr_i;
    assign pin_local_req_ready_o = 1'b0;
    assign pin_local_rsp_valid_o = 1'b0;
    assign pin_local_rsp_o       = home_local_rsp_i;
    assign pin_unlock_ready_o    = 1'b0;
    logic unused;
    assign unused = ^{pin_aw_ready_i, pin_w_ready_i, pin_ar_ready_i, pin_local_req_valid_i, pin_local_req_i, pin_local_rsp_ready_i,
                      pin_unlock_valid_i, pin_unlock_line_i};
  end else begin : gen_endpoint
    assign pin_aw_valid_o = '0;
    assign pin_aw_id_o    = '0;
    assign pin_aw_addr_o  = '0;
    assign pin_w_valid_o  = '0;
    assign pin_w_data_o   = '0;
    assign pin_w_strb_o   = '0;
    assign pin_w_last_o   = '0;
    assign pin_b_ready_o  = '0;
    assign pin_ar_valid_o = '0;
    assign pin_ar_id_o    = '0;
    assign pin_ar_addr_o  = '0;
    assign pin_r_ready_o  = '0;
    logic unused;
    assign unused = ^{pin_aw_ready_i, pin_w_ready_i, pin_b_valid_i, pin_b_id_i, pin_ar_ready_i, pin_r_valid_i, pin_r_id_i, pin_r_data_i, pin_r_last_i};

    if (Endpoint <= 2) begin : gen_memory
      axi_memory #(
        .Lines       (MemoryLines),
        .Beats       (32'(Protocol.line_bytes) / 64),
        .AxiAddrWidth(AxiAddrWidth)
      ) u_memory (
        .clk_i,
        .rst_ni,
        .aw_valid_i(home_aw_valid_i),
        .aw_ready_o(home_aw_ready_o),
        .aw_id_i   (home_aw_id_i),
        .aw_addr_i (home_aw_addr_i),
        .w_valid_i (home_w_valid_i),
        .w_ready_o (home_w_ready_o),
        .w_data_i  (home_w_data_i),
        .w_strb_i  (home_w_strb_i),
        .w_last_i  (home_w_last_i),
        .b_valid_o (home_b_valid_o),
        .b_ready_i (home_b_ready_i),
        .b_id_o    (home_b_id_o),
        .ar_valid_i(home_ar_valid_i),
        .ar_ready_o(home_ar_ready_o),
        .ar_id_i   (home_ar_id_i),
        .ar_addr_i (home_ar_addr_i),
        .r_valid_o (home_r_valid_o),
        .r_ready_i (home_r_ready_i),
        .r_id_o    (home_r_id_o),
        .r_data_o  (home_r_data_o),
        .r_last_o  (home_r_last_o)
      );
    end

    if (Endpoint == 2) begin : gen_engine
      logic [home_pkg::LineWidth-1:0] refused;
      logic                           unused_local;

      invalidation_engine #(
        .Protocol(Protocol)
      ) u_engine (
        .clk_i,
        .rst_ni,
        .start_valid_i    (pin_local_req_valid_i),
        .start_ready_o    (pin_local_req_ready_o),
        .start_line_i     (pin_local_req_i[home_pkg::LineWidth-1:0]),
        .start_count_i    (home_pkg::LineWidth'(pin_local_req_i[63:40])),
        .done_valid_o     (pin_local_rsp_valid_o),
        .done_ready_i     (pin_local_rsp_ready_i),
        .done_refused_o   (refused),
        .local_req_valid_o(home_local_req_valid_o),
        .local_req_ready_i(home_local_req_ready_i),
        .local_req_o      (home_local_req_o),
        .local_rsp_valid_i(home_local_rsp_valid_i),
        .local_rsp_ready_o(home_local_rsp_ready_o),
        .local_rsp_i      (home_local_rsp_i)
      );

      // The line field holds the number of refused operations.
      assign pin_local_rsp_o = '{unlock: 1'b0, refused: refused != '0, operation: 3'd0, line: refused};
      assign unused_local    = ^pin_local_req_i[39:home_pkg::LineWidth];
    end else if (Endpoint == 3) begin : gen_rpc
      logic unused_local;
      assign pin_local_req_ready_o = 1'b0;
      assign pin_local_rsp_valid_o = 1'b0;
      assign pin_local_rsp_o       = '0;
      assign unused_local          = ^{pin_local_req_valid_i, pin_local_req_i, pin_local_rsp_ready_i};

      rpc_echo #(
        .Protocol    (Protocol),
        .Slice       (Slice),
        .Beats       (32'(Protocol.line_bytes) / 64),
        .AxiAddrWidth(AxiAddrWidth)
      ) u_rpc (
        .clk_i,
        .rst_ni,
        .payload_i        (1'b1),
        .aw_valid_i       (home_aw_valid_i),
        .aw_ready_o       (home_aw_ready_o),
        .aw_id_i          (home_aw_id_i),
        .aw_addr_i        (home_aw_addr_i),
        .w_valid_i        (home_w_valid_i),
        .w_ready_o        (home_w_ready_o),
        .w_data_i         (home_w_data_i),
        .w_strb_i         (home_w_strb_i),
        .w_last_i         (home_w_last_i),
        .b_valid_o        (home_b_valid_o),
        .b_ready_i        (home_b_ready_i),
        .b_id_o           (home_b_id_o),
        .ar_valid_i       (home_ar_valid_i),
        .ar_ready_o       (home_ar_ready_o),
        .ar_id_i          (home_ar_id_i),
        .ar_addr_i        (home_ar_addr_i),
        .r_valid_o        (home_r_valid_o),
        .r_ready_i        (home_r_ready_i),
        .r_id_o           (home_r_id_o),
        .r_data_o         (home_r_data_o),
        .r_last_o         (home_r_last_o),
        .local_req_valid_o(home_local_req_valid_o),
        .local_req_ready_i(home_local_req_ready_i),
        .local_req_o      (home_local_req_o),
        .local_rsp_valid_i(home_local_rsp_valid_i),
        .local_rsp_ready_o(home_local_rsp_ready_o),
        .local_rsp_i      (home_local_rsp_i)
      );
    end
  end

  // Without an endpoint that uses them, the device's ports are the pins.
  if (Endpoint <= 1) begin : gen_device
    assign home_local_req_valid_o = pin_local_req_valid_i;
    assign pin_local_req_ready_o  = home_local_req_ready_i;
    assign home_local_req_o       = $bits(home_pkg::local_req_t)'(pin_local_req_i);
    assign pin_local_rsp_valid_o  = home_local_rsp_valid_i;
    assign home_local_rsp_ready_o = pin_local_rsp_ready_i;
    assign pin_local_rsp_o        = home_local_rsp_i;
    logic unused_local;
    assign unused_local = ^pin_local_req_i;
  end
endmodule : device_side
