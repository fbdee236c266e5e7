// Home: two directory controller slices, for the even and the odd lines. Each port has one element per slice; element
// 0 is the even slice. Streams transfer when valid and ready are high; valid and data stay until then.
//
// Protocol, state_e, event_e, send_e and row_t are those of one package printed by `cohkit rtl emit`, and RomFile is
// the image printed with it. hardware/README.md describes the ports, docs/integration.md how to choose the parameters.

module home #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type                 state_e  = logic,
  parameter type                 event_e  = logic,
  parameter type                 send_e   = logic,
  parameter type                 row_t    = logic,
  parameter                      RomFile  = "",
  parameter int unsigned         NumRemotes      = 1,
  parameter int unsigned         Units           = 32,   // per slice
  parameter int unsigned         SetWidth        = 7,    // of a unit's directory: 2**SetWidth sets
  parameter int unsigned         TagWidth        = 16,   // a line number has 1 + log2(Units) + SetWidth + TagWidth bits
  parameter int unsigned         Ways            = 16,   // at least the ways of the remote's cache
  parameter int unsigned         WaysPerStep     = 4,    // ways compared per cycle
  parameter int unsigned         Reads           = 2,    // in flight per unit
  parameter int unsigned         Writes          = 2,
  parameter int unsigned         Locals          = 2,    // local operations in progress per unit
  parameter int unsigned         MaxDeferred     = 2,    // deferred requests per unit; also the maximum number of its locked lines
  parameter int unsigned         StoreSlots      = 2,    // payload slots of requests per unit
  parameter int unsigned         ChangeDepth     = 16,   // changes of permissions that each slice buffers for the receiver
  parameter int unsigned         RecallDelayLog2 = 8,    // recall delay: log2 of the cycles in which a full set may free a way
  parameter int unsigned         LocalQueueDepth = 8,    // local operations that each slice can defer while their unit is busy
  parameter int unsigned         UnitsPerPort    = 8,    // units that share a port of the protocol ROM
  parameter int unsigned         PayloadWidth    = 512,
  parameter int unsigned         AxiIdWidth      = 8,
  parameter int unsigned         AxiAddrWidth    = 36,

  localparam int unsigned NumRx = int'(Protocol.rx_circuits),
  localparam int unsigned NumTx = int'(Protocol.tx_circuits)
) (
  input  logic                                                clk_i,
  input  logic                                                rst_ni,

  // Link: one stream per circuit. A message with payload has one beat per PayloadWidth bits of the line; the header is
  // valid with the first.
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

  // Device: local operations on the remote's copies, unlocks, and the responses to both.
  input  logic                 [1:0]                          local_req_valid_i,
  output logic                 [1:0]                          local_req_ready_o,
  input  home_pkg::local_req_t [1:0]                          local_req_i,
  input  logic                 [1:0]                          unlock_valid_i,
  output logic                 [1:0]                          unlock_ready_o,
  input  logic [1:0][home_pkg::LineWidth-1:0]                 unlock_line_i,
  output logic                 [1:0]                          local_rsp_valid_o,
  input  logic                 [1:0]                          local_rsp_ready_i,
  output home_pkg::local_rsp_t [1:0]                          local_rsp_o,

  // Changes of the remote's permissions, for an optional observer. It cannot stall the home.
  output logic              [1:0]                             change_valid_o,
  input  logic              [1:0]                             change_ready_i,
  output home_pkg::change_t [1:0]                             change_o,

  // Memory: AXI4 manager. Each burst is one line; addresses are in bytes.
  output logic [1:0]                                          axi_aw_valid_o,
  input  logic [1:0]                                          axi_aw_ready_i,
  output logic [1:0][AxiIdWidth-1:0]                          axi_aw_id_o,
  output logic [1:0][AxiAddrWidth-1:0]                        axi_aw_addr_o,
  output logic [1:0][7:0]                                     axi_aw_user_o,
  output logic [1:0]                                          axi_w_valid_o,
  input  logic [1:0]                                          axi_w_ready_i,
  output logic [1:0][PayloadWidth-1:0]                        axi_w_data_o,
  output logic [1:0][PayloadWidth/8-1:0]                      axi_w_strb_o,
  output logic [1:0]                                          axi_w_last_o,
  input  logic [1:0]                                          axi_b_valid_i,
  output logic [1:0]                                          axi_b_ready_o,
  input  logic [1:0][AxiIdWidth-1:0]                          axi_b_id_i,
  output logic [1:0]                                          axi_ar_valid_o,
  input  logic [1:0]                                          axi_ar_ready_i,
  output logic [1:0][AxiIdWidth-1:0]                          axi_ar_id_o,
  output logic [1:0][AxiAddrWidth-1:0]                        axi_ar_addr_o,
  output logic [1:0][7:0]                                     axi_ar_user_o,
  input  logic [1:0]                                          axi_r_valid_i,
  output logic [1:0]                                          axi_r_ready_o,
  input  logic [1:0][AxiIdWidth-1:0]                          axi_r_id_i,
  input  logic [1:0][PayloadWidth-1:0]                        axi_r_data_i,
  input  logic [1:0]                                          axi_r_last_i,

  // Registers: AXI-Lite subordinate, see hardware/registers.md.
  input  logic [1:0]                                          cfg_aw_valid_i,
  output logic [1:0]                                          cfg_aw_ready_o,
  input  logic [1:0][registers_pkg::AddrWidth-1:0]            cfg_aw_addr_i,
  input  logic [1:0]                                          cfg_w_valid_i,
  output logic [1:0]                                          cfg_w_ready_o,
  input  logic [1:0][63:0]                                    cfg_w_data_i,
  input  logic [1:0][7:0]                                     cfg_w_strb_i,
  output logic [1:0]                                          cfg_b_valid_o,
  input  logic [1:0]                                          cfg_b_ready_i,
  output logic [1:0][1:0]                                     cfg_b_resp_o,
  input  logic [1:0]                                          cfg_ar_valid_i,
  output logic [1:0]                                          cfg_ar_ready_o,
  input  logic [1:0][registers_pkg::AddrWidth-1:0]            cfg_ar_addr_i,
  output logic [1:0]                                          cfg_r_valid_o,
  input  logic [1:0]                                          cfg_r_ready_i,
  output logic [1:0][63:0]                                    cfg_r_data_o,
  output logic [1:0][1:0]                                     cfg_r_resp_o,

  // Observation of each unit, for lockstep tests: the row executed in this cycle, and whether an operation was in
  // progress in the previous cycle. Then: nothing is outstanding in the slice.
  output logic            [1:0][Units-1:0]                    step_valid_o,
  output home_pkg::step_t [1:0][Units-1:0]                    step_o,
  output logic            [1:0][Units-1:0]                    busy_o,
  output logic            [1:0]                               idle_o
);
  localparam int unsigned LineBits = 32'(Protocol.line_bytes) * 8;

  if (NumRemotes != 1) begin : gen_invalid_remotes
    $error("home: NumRemotes must be 1: the protocol ROM is that of a home which knows one remote");
  end

  // With illegal parameters, tools would first report errors inside the slices, or would not terminate, so no slices
  // are generated then.
  localparam int unsigned RowBits = 11 + 2 * $bits(send_e) + $bits(state_e);

  localparam bit InvalidProtocol = LineBits == 0 || $bits(row_t) != RowBits || 2 ** $bits(event_e) <= 32'(Protocol.memory_done);
  localparam bit InvalidPayload  = PayloadWidth > LineBits || 16 * PayloadWidth < LineBits;
  localparam bit InvalidUnits    = Units > 256;
  localparam bit InvalidWays     = UnitsPerPort < 1 || WaysPerStep < 1 || Ways < WaysPerStep;
  localparam bit InvalidSets     = SetWidth > 24;
  localparam bit InvalidEntries  = Reads > 127 || Writes > 127 || Locals > 127 || Reads + Writes + Locals > 127;
  localparam bit Invalid         = InvalidProtocol || InvalidPayload || InvalidUnits || InvalidWays || InvalidSets || InvalidEntries;

  if (InvalidProtocol) begin : gen_invalid_protocol
    $error("home: Protocol, state_e, event_e, send_e and row_t must be those of one printed package");
  end else if (InvalidPayload) begin : gen_invalid_payload
    $error("home: PayloadWidth must be a line's bits, or a half, a quarter, an eighth or a sixteenth of them");
  end
  if (InvalidUnits) begin : gen_invalid_units
    $error("home: Units must be a power of two up to 256");
  end
  if (InvalidSets) begin : gen_invalid_sets
    $error("home: SetWidth must be at most 24");
  end
  if (InvalidEntries) begin : gen_invalid_entries
    $error("home: Reads, Writes and Locals must be at most 127 together");
  end
  if (InvalidWays) begin : gen_invalid_groups
    $error("home: UnitsPerPort and WaysPerStep must be at least 1, and WaysPerStep at most Ways");
  end

  for (genvar s = 0; s < (Invalid ? 0 : 2); s++) begin : gen_slice
    dcs #(
      .Protocol       (Protocol),
      .state_e        (state_e),
      .event_e        (event_e),
      .send_e         (send_e),
      .row_t          (row_t),
      .RomFile        (RomFile),
      .Slice          (s),
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
      .RecallDelayLog2(RecallDelayLog2),
      .LocalQueueDepth(LocalQueueDepth),
      .UnitsPerPort   (UnitsPerPort),
      .PayloadWidth   (PayloadWidth),
      .AxiIdWidth     (AxiIdWidth),
      .AxiAddrWidth   (AxiAddrWidth)
    ) u_dcs (
      .clk_i,
      .rst_ni,
      .rx_valid_i       (rx_valid_i[s]),
      .rx_ready_o       (rx_ready_o[s]),
      .rx_header_i      (rx_header_i[s]),
      .rx_data_i        (rx_data_i[s]),
      .rx_last_i        (rx_last_i[s]),
      .tx_valid_o       (tx_valid_o[s]),
      .tx_ready_i       (tx_ready_i[s]),
      .tx_header_o      (tx_header_o[s]),
      .tx_data_o        (tx_data_o[s]),
      .tx_last_o        (tx_last_o[s]),
      .local_req_valid_i(local_req_valid_i[s]),
      .local_req_ready_o(local_req_ready_o[s]),
      .local_req_i      (local_req_i[s]),
      .unlock_valid_i   (unlock_valid_i[s]),
      .unlock_ready_o   (unlock_ready_o[s]),
      .unlock_line_i    (unlock_line_i[s]),
      .local_rsp_valid_o(local_rsp_valid_o[s]),
      .local_rsp_ready_i(local_rsp_ready_i[s]),
      .local_rsp_o      (local_rsp_o[s]),
      .change_valid_o   (change_valid_o[s]),
      .change_ready_i   (change_ready_i[s]),
      .change_o         (change_o[s]),
      .axi_aw_valid_o   (axi_aw_valid_o[s]),
      .axi_aw_ready_i   (axi_aw_ready_i[s]),
      .axi_aw_id_o      (axi_aw_id_o[s]),
      .axi_aw_addr_o    (axi_aw_addr_o[s]),
      .axi_aw_user_o    (axi_aw_user_o[s]),
      .axi_w_valid_o    (axi_w_valid_o[s]),
      .axi_w_ready_i    (axi_w_ready_i[s]),
      .axi_w_data_o     (axi_w_data_o[s]),
      .axi_w_strb_o     (axi_w_strb_o[s]),
      .axi_w_last_o     (axi_w_last_o[s]),
      .axi_b_valid_i    (axi_b_valid_i[s]),
      .axi_b_ready_o    (axi_b_ready_o[s]),
      .axi_b_id_i       (axi_b_id_i[s]),
      .axi_ar_valid_o   (axi_ar_valid_o[s]),
      .axi_ar_ready_i   (axi_ar_ready_i[s]),
      .axi_ar_id_o      (axi_ar_id_o[s]),
      .axi_ar_addr_o    (axi_ar_addr_o[s]),
      .axi_ar_user_o    (axi_ar_user_o[s]),
      .axi_r_valid_i    (axi_r_valid_i[s]),
      .axi_r_ready_o    (axi_r_ready_o[s]),
      .axi_r_id_i       (axi_r_id_i[s]),
      .axi_r_data_i     (axi_r_data_i[s]),
      .axi_r_last_i     (axi_r_last_i[s]),
      .cfg_aw_valid_i   (cfg_aw_valid_i[s]),
      .cfg_aw_ready_o   (cfg_aw_ready_o[s]),
      .cfg_aw_addr_i    (cfg_aw_addr_i[s]),
      .cfg_w_valid_i    (cfg_w_valid_i[s]),
      .cfg_w_ready_o    (cfg_w_ready_o[s]),
      .cfg_w_data_i     (cfg_w_data_i[s]),
      .cfg_w_strb_i     (cfg_w_strb_i[s]),
      .cfg_b_valid_o    (cfg_b_valid_o[s]),
      .cfg_b_ready_i    (cfg_b_ready_i[s]),
      .cfg_b_resp_o     (cfg_b_resp_o[s]),
      .cfg_ar_valid_i   (cfg_ar_valid_i[s]),
      .cfg_ar_ready_o   (cfg_ar_ready_o[s]),
      .cfg_ar_addr_i    (cfg_ar_addr_i[s]),
      .cfg_r_valid_o    (cfg_r_valid_o[s]),
      .cfg_r_ready_i    (cfg_r_ready_i[s]),
      .cfg_r_data_o     (cfg_r_data_o[s]),
      .cfg_r_resp_o     (cfg_r_resp_o[s]),
      .step_valid_o     (step_valid_o[s]),
      .step_o           (step_o[s]),
      .busy_o           (busy_o[s]),
      .idle_o           (idle_o[s])
    );
  end
endmodule : home
