// A slice: the units of the even or of the odd lines, and their shared parts.
//
// Ingress separates headers from payload: headers go to the units, payload is buffered until it is needed.
// Streams to and from the units are merged round-robin. See hardware/README.md for the ports.

`include "assertions.svh"

module dcs #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type                 state_e  = logic,
  parameter type                 event_e  = logic,
  parameter type                 send_e   = logic,
  parameter type                 row_t    = logic,
  parameter                      RomFile  = "",
  parameter int unsigned         Slice        = 0,
  parameter int unsigned         Units        = 1,
  parameter int unsigned         SetWidth     = 7,
  parameter int unsigned         TagWidth     = 16,
  parameter int unsigned         Ways         = 16,
  parameter int unsigned         WaysPerStep  = 4,
  parameter int unsigned         Reads        = 2,
  parameter int unsigned         Writes       = 2,
  parameter int unsigned         Locals       = 2,
  parameter int unsigned         Waiting      = 2,
  parameter int unsigned         StoreSlots   = 2,
  parameter int unsigned         ChangeDepth  = 16,
  parameter int unsigned         Patience     = 8,
  parameter int unsigned         Pending      = 8,
  parameter int unsigned         UnitsPerPort = 8,
  parameter int unsigned         PayloadWidth = 512,
  parameter int unsigned         AxiIdWidth   = 8,
  parameter int unsigned         AxiAddrWidth = 36,

  localparam int unsigned NumRx = int'(Protocol.rx_circuits),
  localparam int unsigned NumTx = int'(Protocol.tx_circuits)
) (
  input  logic                                   clk_i,
  input  logic                                   rst_ni,

  // The link, one stream for each circuit.
  input  logic              [NumRx-1:0]                   rx_valid_i,
  output logic              [NumRx-1:0]                   rx_ready_o,
  input  home_pkg::header_t [NumRx-1:0]                   rx_header_i,
  input  logic              [NumRx-1:0][PayloadWidth-1:0] rx_data_i,
  input  logic              [NumRx-1:0]                   rx_last_i,
  output logic              [NumTx-1:0]                   tx_valid_o,
  input  logic              [NumTx-1:0]                   tx_ready_i,
  output home_pkg::header_t [NumTx-1:0]                   tx_header_o,
  output logic              [NumTx-1:0][PayloadWidth-1:0] tx_data_o,
  output logic              [NumTx-1:0]                   tx_last_o,

  // The device.
  input  logic                                   local_req_valid_i,
  output logic                                   local_req_ready_o,
  input  home_pkg::local_req_t                   local_req_i,
  input  logic                                   unlock_valid_i,
  output logic                                   unlock_ready_o,
  input  logic [home_pkg::LineWidth-1:0]         unlock_line_i,
  output logic                                   local_rsp_valid_o,
  input  logic                                   local_rsp_ready_i,
  output home_pkg::local_rsp_t                   local_rsp_o,

  // Changes of the remote's permissions. A receiver that is not ready does not stall the home.
  output logic                                   change_valid_o,
  input  logic                                   change_ready_i,
  output home_pkg::change_t                      change_o,

  // Memory: an AXI4 manager whose bursts are whole lines.
  output logic                                   axi_aw_valid_o,
  input  logic                                   axi_aw_ready_i,
  output logic [AxiIdWidth-1:0]                  axi_aw_id_o,
  output logic [AxiAddrWidth-1:0]                axi_aw_addr_o,
  output logic [7:0]                             axi_aw_user_o,
  output logic                                   axi_w_valid_o,
  input  logic                                   axi_w_ready_i,
  output logic [PayloadWidth-1:0]                axi_w_data_o,
  output logic [PayloadWidth/8-1:0]              axi_w_strb_o,
  output logic                                   axi_w_last_o,
  input  logic                                   axi_b_valid_i,
  output logic                                   axi_b_ready_o,
  input  logic [AxiIdWidth-1:0]                  axi_b_id_i,
  output logic                                   axi_ar_valid_o,
  input  logic                                   axi_ar_ready_i,
  output logic [AxiIdWidth-1:0]                  axi_ar_id_o,
  output logic [AxiAddrWidth-1:0]                axi_ar_addr_o,
  output logic [7:0]                             axi_ar_user_o,
  input  logic                                   axi_r_valid_i,
  output logic                                   axi_r_ready_o,
  input  logic [AxiIdWidth-1:0]                  axi_r_id_i,
  input  logic [PayloadWidth-1:0]                axi_r_data_i,
  input  logic                                   axi_r_last_i,

  // Registers: an AXI-Lite subordinate.
  input  logic                                   cfg_aw_valid_i,
  output logic                                   cfg_aw_ready_o,
  input  logic [registers_pkg::AddrWidth-1:0]    cfg_aw_addr_i,
  input  logic                                   cfg_w_valid_i,
  output logic                                   cfg_w_ready_o,
  input  logic [63:0]                            cfg_w_data_i,
  input  logic [7:0]                             cfg_w_strb_i,
  output logic                                   cfg_b_valid_o,
  input  logic                                   cfg_b_ready_i,
  output logic [1:0]                             cfg_b_resp_o,
  input  logic                                   cfg_ar_valid_i,
  output logic                                   cfg_ar_ready_o,
  input  logic [registers_pkg::AddrWidth-1:0]    cfg_ar_addr_i,
  output logic                                   cfg_r_valid_o,
  input  logic                                   cfg_r_ready_i,
  output logic [63:0]                            cfg_r_data_o,
  output logic [1:0]                             cfg_r_resp_o,

  // Step of each unit in this cycle, and the units that had an operation in progress in the cycle before.
  output logic            [Units-1:0]            step_valid_o,
  output home_pkg::step_t [Units-1:0]            step_o,
  output logic            [Units-1:0]            busy_o,

  // Two cycles before, no unit had an operation in progress, no payload was buffered and no stream was waiting.
  output logic                                   idle_o
);
  import home_pkg::*;

  localparam int unsigned EventWidth  = $bits(event_e);
  localparam int unsigned StateWidth  = $bits(state_e);
  localparam int unsigned UnitBits    = $clog2(Units);
  localparam int unsigned UnitWidth   = bits(Units);
  localparam int unsigned UnitLine    = TagWidth + SetWidth;   // width of a line's number within its unit
  localparam int unsigned Shift       = 1 + UnitBits;
  localparam int unsigned SlotWidth   = bits(StoreSlots);
  localparam int unsigned ReadWidth   = bits(Reads);
  localparam int unsigned WriteWidth  = bits(Writes);
  localparam int unsigned LineBits    = 32'(Protocol.line_bytes) * 8;
  localparam int unsigned Beats       = LineBits / PayloadWidth;
  localparam int unsigned BeatWidth   = bits(Beats);
  localparam int unsigned MaskWidth   = 16 / Beats;

  if (2 ** UnitBits != Units || Units > 256) begin : gen_wrong_units
    $error("dcs: Units must be a power of two up to 256");
  end
  if (Beats * PayloadWidth != LineBits || Beats > 16 || 2 ** $clog2(Beats) != Beats) begin : gen_wrong_payload
    $error("dcs: PayloadWidth must be a line's bits, or a half, a quarter, an eighth or a sixteenth of them");
  end
  if (Pending < 1 || Pending > 64) begin : gen_wrong_pending
    $error("dcs: Pending must be from 1 to 64");
  end
  if (2 ** $clog2(ChangeDepth) != ChangeDepth || ChangeDepth < 2 || ChangeDepth > 128) begin : gen_wrong_changes
    $error("dcs: ChangeDepth must be a power of two from 2 to 128");
  end
  if (AxiIdWidth < UnitWidth + ReadWidth || AxiIdWidth < UnitWidth + WriteWidth) begin : gen_wrong_id
    $error("dcs: AxiIdWidth must have room for the number of a unit and that of its read or write");
  end
  if (Shift + UnitLine > LineWidth || Shift + UnitLine + $clog2(LineBits / 8) > AxiAddrWidth) begin : gen_wrong_range
    $error("dcs: TagWidth and SetWidth make a range of lines beyond the header's or AxiAddrWidth's");
  end

  // ------------------------------------------------------------------ units

  logic [Units-1:0][NumRx-1:0]                  rx_unit_valid, rx_unit_ready;
  logic [NumRx-1:0][EventWidth-1:0]             rx_event;
  logic [NumRx-1:0][UnitLine-1:0]               rx_line;
  logic [NumRx-1:0][SlotWidth-1:0]              rx_slot;
  logic [Units-1:0]                             local_valid, local_ready, locks_full, local_back, unlock_valid, unlock_ready;
  local_req_t                                   local_req, unit_req;    // next operation, and the one offered to its unit
  logic                                         local_req_valid, unlock_req_valid, locals_idle;
  event_e                                       local_event;
  logic [home_pkg::LineWidth-1:0]               unlock_line;
  logic [Units-1:0]                             answer_valid, answer_ready, answer_unlock, answer_refused;
  logic [Units-1:0][2:0]                        answer_operation;
  logic [Units-1:0][UnitLine-1:0]               answer_line;
  logic [Units-1:0]                             ask_valid, ask_ready, row_valid;
  logic [Units-1:0][StateWidth+EventWidth-1:0]  ask_addr;
  logic [Units-1:0][$bits(row_t)-1:0]           row;
  logic [Units-1:0]                             read_valid, read_ready, write_valid, write_ready;
  logic [Units-1:0][UnitLine-1:0]               read_line, write_line;
  logic [Units-1:0][ReadWidth-1:0]              read_slot;
  logic [Units-1:0][WriteWidth-1:0]             write_slot;
  event_e [Units-1:0]                           read_event, write_event;
  logic [Units-1:0][1:0]                        write_circuit, drop_circuit;
  logic [Units-1:0][SlotWidth-1:0]              write_bytes, drop_slot;
  logic [Units-1:0]                             drop_valid;
  logic [Units-1:0][Reads-1:0]                  read_done, read_lost;
  logic [Units-1:0][Writes-1:0]                 write_done;
  logic [Units-1:0][NumTx-1:0]                  tx_valid;
  logic [Units-1:0][NumTx-1:0]                  tx_ready;
  send_e [Units-1:0][NumTx-1:0]                 tx_send;
  logic [Units-1:0][NumTx-1:0][UnitLine-1:0]    tx_line;
  logic [Units-1:0][NumTx-1:0][ReadWidth-1:0]   tx_slot;
  logic [Units-1:0][Reads-1:0]                  tx_done;

  // All units empty their directories together.
  localparam int unsigned SweepBits = $clog2(2 ** SetWidth * Ways / WaysPerStep);
  logic [SweepBits:0] sweep_q;
  logic               sweep_valid;

  assign sweep_valid = !sweep_q[SweepBits];

  always_ff @(posedge clk_i) begin
    if (!rst_ni)          sweep_q <= '0;
    else if (sweep_valid) sweep_q <= sweep_q + 1'b1;
  end

  logic   [Units-1:0] unit_idle, evicted, change_valid, change_ready, change_lost;
  right_e [Units-1:0] change_from, change_to, write_right;
  logic   [Units-1:0][UnitLine-1:0] change_line;
  stall_e [Units-1:0] stall;
  logic   [Units-1:0] impossible_valid, impossible_ready;
  logic   [Units-1:0][EventWidth-1:0] impossible_event;
  logic   [Units-1:0][StateWidth-1:0] impossible_state;
  logic   [Units-1:0][UnitLine-1:0]   impossible_line;
  logic   wrong_idle;
  logic [NumRx-1:0] rx_idle, rx_idle_q;
  always_ff @(posedge clk_i) begin
    rx_idle_q <= rx_idle;
    idle_o <= rst_ni && unit_idle == '1 && rx_idle_q == '1 && tx_valid_o == '0 && !axi_aw_valid_o && !axi_w_valid_o
           && !axi_ar_valid_o && !local_req_valid && locals_idle && !unlock_req_valid && !local_rsp_valid_o && wrong_idle;
  end

  for (genvar u = 0; u < Units; u++) begin : gen_unit
    event_e              step_event;
    state_e              step_state, step_next;
    logic [UnitLine-1:0] step_line;
    logic                step_held, step_evict;
    effect_e             step_effect;
    event_e              dropped_event;
    state_e              dropped_state;

    dcu #(
      .Protocol   (Protocol),
      .state_e    (state_e),
      .event_e    (event_e),
      .send_e     (send_e),
      .row_t      (row_t),
      .TagWidth   (TagWidth),
      .SetWidth   (SetWidth),
      .Ways       (Ways),
      .WaysPerStep(WaysPerStep),
      .Reads      (Reads),
      .Writes     (Writes),
      .Locals     (Locals),
      .Waiting    (Waiting),
      .StoreSlots (StoreSlots),
      .Patience   (Patience)
    ) u_dcu (
      .clk_i,
      .rst_ni,
      .sweep_valid_i     (sweep_valid),
      .sweep_addr_i      (SweepBits'(sweep_q)),
      .rx_valid_i        (rx_unit_valid[u]),
      .rx_ready_o        (rx_unit_ready[u]),
      .rx_event_i        (rx_event),
      .rx_line_i         (rx_line),
      .rx_slot_i         (rx_slot),
      .local_valid_i     (local_valid[u]),
      .local_ready_o     (local_ready[u]),
      .local_operation_i (unit_req.operation),
      .local_event_i     (local_event),
      .local_line_i      (UnitLine'(unit_req.line >> Shift)),
      .locks_full_o      (locks_full[u]),
      .local_back_o      (local_back[u]),
      .unlock_valid_i    (unlock_valid[u]),
      .unlock_ready_o    (unlock_ready[u]),
      .unlock_line_i     (UnitLine'(unlock_line >> Shift)),
      .answer_valid_o    (answer_valid[u]),
      .answer_ready_i    (answer_ready[u]),
      .answer_unlock_o   (answer_unlock[u]),
      .answer_refused_o  (answer_refused[u]),
      .answer_operation_o(answer_operation[u]),
      .answer_line_o     (answer_line[u]),
      .rom_valid_o       (ask_valid[u]),
      .rom_ready_i       (ask_ready[u]),
      .rom_addr_o        (ask_addr[u]),
      .row_valid_i       (row_valid[u]),
      .row_i             (row_t'(row[u])),
      .read_valid_o      (read_valid[u]),
      .read_ready_i      (read_ready[u]),
      .read_line_o       (read_line[u]),
      .read_slot_o       (read_slot[u]),
      .read_event_o      (read_event[u]),
      .read_done_i       (read_done[u]),
      .read_lost_i       (read_lost[u]),
      .write_valid_o     (write_valid[u]),
      .write_ready_i     (write_ready[u]),
      .write_line_o      (write_line[u]),
      .write_slot_o      (write_slot[u]),
      .write_event_o     (write_event[u]),
      .write_right_o     (write_right[u]),
      .write_circuit_o   (write_circuit[u]),
      .write_bytes_o     (write_bytes[u]),
      .write_done_i      (write_done[u]),
      .drop_valid_o      (drop_valid[u]),
      .drop_circuit_o    (drop_circuit[u]),
      .drop_slot_o       (drop_slot[u]),
      .tx_valid_o        (tx_valid[u]),
      .tx_ready_i        (tx_ready[u]),
      .tx_send_o         (tx_send[u]),
      .tx_line_o         (tx_line[u]),
      .tx_slot_o         (tx_slot[u]),
      .tx_done_i         (tx_done[u]),
      .impossible_valid_o(impossible_valid[u]),
      .impossible_ready_i(impossible_ready[u]),
      .impossible_event_o(dropped_event),
      .impossible_state_o(dropped_state),
      .impossible_line_o (impossible_line[u]),
      .step_valid_o      (step_valid_o[u]),
      .step_held_o       (step_held),
      .step_evict_o      (step_evict),
      .step_event_o      (step_event),
      .step_state_o      (step_state),
      .step_effect_o     (step_effect),
      .step_next_o       (step_next),
      .step_line_o       (step_line),
      .stall_o           (stall[u]),
      .evicted_o         (evicted[u]),
      .change_valid_o    (change_valid[u]),
      .change_ready_i    (change_ready[u]),
      .change_from_o   (change_from[u]),
      .change_to_o    (change_to[u]),
      .change_line_o     (change_line[u]),
      .change_lost_o     (change_lost[u]),
      .idle_o            (unit_idle[u])
    );

    assign impossible_event[u] = dropped_event;
    assign impossible_state[u] = dropped_state;

    assign step_o[u] = '{
      held:     step_held,
      evict:    step_evict,
      happened: 6'(step_event),
      state:    8'(step_state),
      effect:   step_effect,
      next:     8'(step_next),
      line:     line_number(home_pkg::LineWidth'(step_line), home_pkg::LineWidth'(u), Units, Slice)
    };
  end

  protocol_rom #(
    .Units       (Units),
    .UnitsPerPort(UnitsPerPort),
    .AddrWidth   (StateWidth + EventWidth),
    .RowWidth    ($bits(row_t)),
    .RomFile     (RomFile)
  ) u_rom (
    .clk_i,
    .rst_ni,
    .ask_valid_i(ask_valid),
    .ask_ready_o(ask_ready),
    .ask_addr_i (ask_addr),
    .row_valid_o(row_valid),
    .row_o      (row)
  );

  // ------------------------------------------------------------------ circuits toward the home

  logic [UnitWidth-1:0]               bytes_unit;
  logic [SlotWidth-1:0]               bytes_slot;
  logic [BeatWidth-1:0]               bytes_beat;
  logic [NumRx-1:0][PayloadWidth-1:0] bytes;
  logic [NumRx-1:0][MaskWidth-1:0]    mask;
  logic [NumRx-1:0]                   bytes_free;
  logic [UnitWidth-1:0]               free_unit;
  logic [SlotWidth-1:0]               free_slot;
  logic [NumRx-1:0]                   rx_seen, rx_waits_unit, rx_waits_slot;
  logic [NumRx-1:0][7:0]              rx_message;
  wrong_e  [NumRx-1:0]                rx_wrong;
  header_t [NumRx-1:0]                rx_wrong_header;

  for (genvar c = 0; c < NumRx; c++) begin : gen_ingress
    logic [Units-1:0] valid, ready, dropped;

    for (genvar u = 0; u < Units; u++) begin : gen_to_unit
      assign rx_unit_valid[u][c] = valid[u];
      assign ready[u]            = rx_unit_ready[u][c];
      assign dropped[u]          = drop_valid[u] && drop_circuit[u] == 2'(c);
    end

    dcs_ingress #(
      .Protocol    (Protocol),
      .Circuit     (c),
      .Slice       (Slice),
      .Units       (Units),
      .Slots       (Protocol.rx_waits[c] ? StoreSlots : 1),
      .SlotWidth   (SlotWidth),
      .PayloadWidth(PayloadWidth),
      .Beats       (Beats),
      .EventWidth  (EventWidth),
      .LineWidth   (UnitLine)
    ) u_ingress (
      .clk_i,
      .rst_ni,
      .rx_valid_i  (rx_valid_i[c]),
      .rx_ready_o  (rx_ready_o[c]),
      .rx_header_i (rx_header_i[c]),
      .rx_data_i   (rx_data_i[c]),
      .rx_last_i   (rx_last_i[c]),
      .unit_valid_o(valid),
      .unit_ready_i(ready),
      .unit_event_o(rx_event[c]),
      .unit_line_o (rx_line[c]),
      .unit_slot_o (rx_slot[c]),
      .rd_unit_i   (bytes_unit),
      .rd_slot_i   (bytes_slot),
      .rd_beat_i   (bytes_beat),
      .rd_data_o   (bytes[c]),
      .rd_mask_o   (mask[c]),
      .free_valid_i(bytes_free[c]),
      .free_unit_i (free_unit),
      .free_slot_i (free_slot),
      .drop_valid_i(dropped),
      .drop_slot_i (drop_slot),
      .wrong_o       (rx_wrong[c]),
      .wrong_header_o(rx_wrong_header[c]),
      .seen_o      (rx_seen[c]),
      .seen_message_o(rx_message[c]),
      .waits_unit_o(rx_waits_unit[c]),
      .waits_slot_o(rx_waits_slot[c]),
      .idle_o      (rx_idle[c])
    );
  end

  // ------------------------------------------------------------------ memory

  logic                  read_seen, write_seen;
  wrong_e                read_wrong, write_wrong;
  logic [AxiIdWidth-1:0] read_wrong_id, write_wrong_id;

  dcs_writer #(
    .Protocol    (Protocol),
    .event_e     (event_e),
    .Units       (Units),
    .Slice       (Slice),
    .Writes      (Writes),
    .SlotWidth   (SlotWidth),
    .LineWidth   (UnitLine),
    .PayloadWidth(PayloadWidth),
    .Beats       (Beats),
    .AxiIdWidth  (AxiIdWidth),
    .AxiAddrWidth(AxiAddrWidth)
  ) u_writer (
    .clk_i,
    .rst_ni,
    .unit_valid_i  (write_valid),
    .unit_ready_o  (write_ready),
    .unit_line_i   (write_line),
    .unit_slot_i   (write_slot),
    .unit_event_i  (write_event),
    .unit_right_i  (write_right),
    .unit_circuit_i(write_circuit),
    .unit_bytes_i  (write_bytes),
    .unit_done_o   (write_done),
    .rd_unit_o     (bytes_unit),
    .rd_slot_o     (bytes_slot),
    .rd_beat_o     (bytes_beat),
    .rd_data_i     (bytes),
    .rd_mask_i     (mask),
    .free_valid_o  (bytes_free),
    .free_unit_o   (free_unit),
    .free_slot_o   (free_slot),
    .aw_valid_o    (axi_aw_valid_o),
    .aw_ready_i    (axi_aw_ready_i),
    .aw_id_o       (axi_aw_id_o),
    .aw_addr_o     (axi_aw_addr_o),
    .aw_user_o     (axi_aw_user_o),
    .w_valid_o     (axi_w_valid_o),
    .w_ready_i     (axi_w_ready_i),
    .w_data_o      (axi_w_data_o),
    .w_strb_o      (axi_w_strb_o),
    .w_last_o      (axi_w_last_o),
    .b_valid_i     (axi_b_valid_i),
    .b_ready_o     (axi_b_ready_o),
    .b_id_i        (axi_b_id_i),
    .seen_o        (write_seen),
    .wrong_o       (write_wrong),
    .wrong_id_o    (write_wrong_id)
  );

  logic                    line_read;
  logic [UnitWidth-1:0]    line_unit;
  logic [ReadWidth-1:0]    line_slot;
  logic [BeatWidth-1:0]    line_beat;
  logic [PayloadWidth-1:0] line_bytes;

  dcs_reader #(
    .Protocol    (Protocol),
    .event_e     (event_e),
    .Units       (Units),
    .Slice       (Slice),
    .Reads       (Reads),
    .LineWidth   (UnitLine),
    .PayloadWidth(PayloadWidth),
    .Beats       (Beats),
    .AxiIdWidth  (AxiIdWidth),
    .AxiAddrWidth(AxiAddrWidth)
  ) u_reader (
    .clk_i,
    .rst_ni,
    .unit_valid_i(read_valid),
    .unit_ready_o(read_ready),
    .unit_line_i (read_line),
    .unit_slot_i (read_slot),
    .unit_event_i(read_event),
    .unit_done_o (read_done),
    .unit_lost_o (read_lost),
    .rd_en_i     (line_read),
    .rd_unit_i   (line_unit),
    .rd_slot_i   (line_slot),
    .rd_beat_i   (line_beat),
    .rd_data_o   (line_bytes),
    .ar_valid_o  (axi_ar_valid_o),
    .ar_ready_i  (axi_ar_ready_i),
    .ar_id_o     (axi_ar_id_o),
    .ar_addr_o   (axi_ar_addr_o),
    .ar_user_o   (axi_ar_user_o),
    .r_valid_i   (axi_r_valid_i),
    .r_ready_o   (axi_r_ready_o),
    .r_id_i      (axi_r_id_i),
    .r_data_i    (axi_r_data_i),
    .r_last_i    (axi_r_last_i),
    .seen_o      (read_seen),
    .wrong_o     (read_wrong),
    .wrong_id_o  (read_wrong_id)
  );

  // ------------------------------------------------------------------ circuits toward the remote

  logic [NumTx-1:0][Units-1:0][Reads-1:0] tx_unit_done;
  logic [NumTx-1:0]                       tx_read_en;
  logic [NumTx-1:0][UnitWidth-1:0]        tx_unit;
  logic [NumTx-1:0][ReadWidth-1:0]        tx_read;
  logic [NumTx-1:0][BeatWidth-1:0]        tx_beat;
  logic [NumTx-1:0]                       tx_seen, tx_waits;

  for (genvar c = 0; c < NumTx; c++) begin : gen_egress
    logic [Units-1:0]                valid, ready;
    send_e [Units-1:0]               send;
    logic [Units-1:0][UnitLine-1:0]  line;
    logic [Units-1:0][ReadWidth-1:0] slot;

    for (genvar u = 0; u < Units; u++) begin : gen_from_unit
      assign valid[u]       = tx_valid[u][c];
      assign send[u]        = tx_send[u][c];
      assign line[u]        = tx_line[u][c];
      assign slot[u]        = tx_slot[u][c];
      assign tx_ready[u][c] = ready[u];
    end

    dcs_egress #(
      .Protocol    (Protocol),
      .send_e      (send_e),
      .Circuit     (c),
      .Units       (Units),
      .Slice       (Slice),
      .Reads       (Reads),
      .LineWidth   (UnitLine),
      .PayloadWidth(PayloadWidth),
      .Beats       (Beats)
    ) u_egress (
      .clk_i,
      .rst_ni,
      .unit_valid_i(valid),
      .unit_ready_o(ready),
      .unit_send_i (send),
      .unit_line_i (line),
      .unit_slot_i (slot),
      .unit_done_o (tx_unit_done[c]),
      .rd_en_o     (tx_read_en[c]),
      .rd_unit_o   (tx_unit[c]),
      .rd_slot_o   (tx_read[c]),
      .rd_beat_o   (tx_beat[c]),
      .rd_data_i   (line_bytes),
      .tx_valid_o  (tx_valid_o[c]),
      .tx_ready_i  (tx_ready_i[c]),
      .tx_header_o (tx_header_o[c]),
      .tx_data_o   (tx_data_o[c]),
      .tx_last_o   (tx_last_o[c]),
      .seen_o      (tx_seen[c]),
      .waits_o     (tx_waits[c])
    );
  end

  // The circuit that carries lines uses the read port of their buffer; the ROM compiler allows only one such circuit.
  always_comb begin
    tx_done   = '0;
    line_read = 1'b0;
    line_unit = '0;
    line_slot = '0;
    line_beat = '0;
    for (int unsigned c = 0; c < NumTx; c++) begin
      tx_done |= tx_unit_done[c];
      if (Protocol.tx_payload[c]) begin
        line_read = tx_read_en[c];
        line_unit = tx_unit[c];
        line_slot = tx_read[c];
        line_beat = tx_beat[c];
      end
    end
  end

  // ------------------------------------------------------------------ the device

  logic [UnitWidth-1:0] unlock_unit;
  logic                 answer_joined_valid, answer_joined_ready;
  logic                 local_goes;                      // dispatched to its unit, or deferred
  logic                 local_refused, unlock_refused;   // taken without reaching a unit
  wrong_e               local_wrong, device_wrong;       // reasons for rejection
  logic                 unlock_wrong, impossible;

  // Rejection is decided before the operation is stored, to keep the paths to the units short.
  typedef struct packed {
    wrong_e     why;
    local_req_t req;
  } asked_t;

  typedef struct packed {
    logic                           wrong;
    logic [home_pkg::LineWidth-1:0] line;
  } unlocked_t;

  function automatic logic is_ours(input logic [home_pkg::LineWidth-1:0] line);
    return line[0] == 1'(Slice) && line >> (Shift + UnitLine) == '0;
  endfunction

  asked_t    asked, asked_held;
  unlocked_t unlocked_held;
  assign asked.req = local_req_i;
  assign asked.why = 8'(local_req_i.operation) >= Protocol.locals ? WrongOperation
                   : is_ours(local_req_i.line) ? WrongNone : WrongLocal;
  assign {local_wrong, local_req}     = asked_held;
  assign {unlock_wrong, unlock_line} = unlocked_held;

  spill_register #(
    .data_t(asked_t)
  ) u_local (
    .clk_i,
    .rst_ni,
    .wr_valid_i(local_req_valid_i),
    .wr_ready_o(local_req_ready_o),
    .wr_data_i (asked),
    .rd_valid_o(local_req_valid),
    .rd_ready_i(local_wrong == WrongNone ? local_goes : local_refused),
    .rd_data_o (asked_held)
  );

  spill_register #(
    .data_t(unlocked_t)
  ) u_unlock (
    .clk_i,
    .rst_ni,
    .wr_valid_i(unlock_valid_i),
    .wr_ready_o(unlock_ready_o),
    .wr_data_i ({!is_ours(unlock_line_i), unlock_line_i}),
    .rd_valid_o(unlock_req_valid),
    .rd_ready_i(unlock_wrong ? unlock_refused : unlock_ready[unlock_unit]),
    .rd_data_o (unlocked_held)
  );

  dcs_locals #(
    .Protocol(Protocol),
    .Units   (Units),
    .Pending (Pending)
  ) u_locals (
    .clk_i,
    .rst_ni,
    .wr_valid_i       (local_req_valid && local_wrong == WrongNone),
    .wr_ready_o       (local_goes),
    .wr_req_i         (local_req),
    .unit_valid_o     (local_valid),
    .unit_ready_i     (local_ready),
    .unit_locks_full_i(locks_full),
    .unit_back_i      (local_back),
    .unit_req_o       (unit_req),
    .idle_o           (locals_idle)
  );

  assign local_event = event_e'(Protocol.messages + 8'(unit_req.operation));
  assign unlock_unit = UnitBits == 0 ? '0 : UnitWidth'(unlock_line >> 1);

  always_comb begin
    unlock_valid              = '0;
    unlock_valid[unlock_unit] = unlock_req_valid && !unlock_wrong;
  end

  typedef struct packed {
    logic                unlock;
    logic                refused;
    logic [2:0]          operation;
    logic [UnitLine-1:0] line;
  } answer_t;

  answer_t [Units-1:0]  answers;
  answer_t              answer;
  logic [UnitWidth-1:0] answer_unit;

  for (genvar u = 0; u < Units; u++) begin : gen_answer
    assign answers[u] = '{answer_unlock[u], answer_refused[u], answer_operation[u], answer_line[u]};
  end

  stream_arbiter #(
    .Size  (Units),
    .data_t(answer_t)
  ) u_answers (
    .clk_i,
    .rst_ni,
    .wr_valid_i(answer_valid),
    .wr_ready_o(answer_ready),
    .wr_data_i (answers),
    .rd_valid_o(answer_joined_valid),
    .rd_ready_i(answer_joined_ready),
    .rd_data_o (answer),
    .rd_index_o(answer_unit)
  );

  local_rsp_t answer_joined;
  assign answer_joined = '{
    unlock:    answer.unlock,
    refused:   answer.refused,
    operation: answer.operation,
    line:      line_number(home_pkg::LineWidth'(answer.line), home_pkg::LineWidth'(answer_unit), Units, Slice)
  };

  // ------------------------------------------------------------------ illegal input

  logic        clears;
  wrong_t      first_wrong;
  impossible_t first_impossible;

  // Errors of the device are recorded on arrival, as all others are, not when they are refused.
  wrong_e                         asked_wrong_q;
  local_req_t                     asked_q;
  logic                           unlocked_wrong_q;
  logic [home_pkg::LineWidth-1:0] unlocked_line_q;

  always_ff @(posedge clk_i) begin
    asked_wrong_q    <= rst_ni && local_req_valid_i && local_req_ready_o ? asked.why : WrongNone;
    unlocked_wrong_q <= rst_ni && unlock_valid_i && unlock_ready_o && !is_ours(unlock_line_i);
  end
  always_ff @(posedge clk_i) begin
    asked_q         <= local_req_i;
    unlocked_line_q <= unlock_line_i;
  end

  dcs_wrong #(
    .NumRx     (NumRx),
    .Units     (Units),
    .EventWidth(EventWidth),
    .StateWidth(StateWidth),
    .UnitLine  (UnitLine),
    .Slice     (Slice),
    .AxiIdWidth(AxiIdWidth)
  ) u_wrong (
    .clk_i,
    .rst_ni,
    .clear_i           (clears),
    .rx_wrong_i        (rx_wrong),
    .rx_header_i       (rx_wrong_header),
    .read_wrong_i      (read_wrong),
    .read_id_i         (read_wrong_id),
    .write_wrong_i     (write_wrong),
    .write_id_i        (write_wrong_id),
    .asked_wrong_i     (asked_wrong_q),
    .asked_i           (asked_q),
    .unlocked_wrong_i  (unlocked_wrong_q),
    .unlocked_line_i   (unlocked_line_q),
    .local_valid_i     (local_req_valid && local_wrong != WrongNone),
    .local_ready_o     (local_refused),
    .local_wrong_i     (local_wrong),
    .local_req_i       (local_req),
    .unlock_valid_i    (unlock_req_valid && unlock_wrong),
    .unlock_ready_o    (unlock_refused),
    .unlock_line_i     (unlock_line),
    .answer_valid_i    (answer_joined_valid),
    .answer_ready_o    (answer_joined_ready),
    .answer_i          (answer_joined),
    .local_rsp_valid_o,
    .local_rsp_ready_i,
    .local_rsp_o,
    .impossible_valid_i(impossible_valid),
    .impossible_ready_o(impossible_ready),
    .impossible_event_i(impossible_event),
    .impossible_state_i(impossible_state),
    .impossible_line_i (impossible_line),
    .device_wrong_o    (device_wrong),
    .impossible_o      (impossible),
    .first_wrong_o     (first_wrong),
    .first_impossible_o(first_impossible),
    .idle_o            (wrong_idle)
  );

  // ------------------------------------------------------------------ permission changes

  dcs_changes #(
    .Units    (Units),
    .Slice    (Slice),
    .Depth    (ChangeDepth),
    .LineWidth(UnitLine)
  ) u_changes (
    .clk_i,
    .rst_ni,
    .unit_valid_i (change_valid),
    .unit_ready_o (change_ready),
    .unit_from_i(change_from),
    .unit_to_i (change_to),
    .unit_line_i  (change_line),
    .change_valid_o,
    .change_ready_i,
    .change_o
  );

  // ------------------------------------------------------------------ registers and counters

  localparam int unsigned PlaceWidth = $clog2(registers_pkg::Places);

  logic                  counts, ask_counter, told_valid;
  logic [PlaceWidth-1:0] ask_place;
  logic [63:0]           told;

  // Events at the ports are counted a cycle later, to keep the paths short.
  logic       local_seen_q, unlock_seen_q, refused_q, change_seen_q;
  logic       ar_waits_q, aw_waits_q, w_waits_q, local_waits_q, unlock_waits_q, answer_waits_q;

  always_ff @(posedge clk_i) begin
    local_seen_q   <= rst_ni && local_req_valid_i && local_req_ready_o && asked.why == WrongNone;
    unlock_seen_q  <= rst_ni && unlock_valid_i && unlock_ready_o && is_ours(unlock_line_i);
    refused_q      <= rst_ni && local_rsp_valid_o && local_rsp_ready_i && local_rsp_o.refused;
    change_seen_q  <= rst_ni && change_valid_o && change_ready_i;
    ar_waits_q     <= rst_ni && axi_ar_valid_o && !axi_ar_ready_i;
    aw_waits_q     <= rst_ni && axi_aw_valid_o && !axi_aw_ready_i;
    w_waits_q      <= rst_ni && axi_w_valid_o && !axi_w_ready_i;
    local_waits_q  <= rst_ni && local_req_valid_i && !local_req_ready_o;
    unlock_waits_q <= rst_ni && unlock_valid_i && !unlock_ready_o;
    answer_waits_q <= rst_ni && local_rsp_valid_o && !local_rsp_ready_i;
  end

  assign busy_o = ~unit_idle;

  logic [NumTx-1:0][7:0] tx_message;
  for (genvar c = 0; c < NumTx; c++) begin : gen_tx_message
    assign tx_message[c] = tx_header_o[c].message;
  end

  dcs_counters #(
    .Protocol(Protocol),
    .Units   (Units)
  ) u_counters (
    .clk_i,
    .rst_ni,
    .count_i          (counts),
    .clear_i          (clears),
    .rx_seen_i        (rx_seen),
    .rx_message_i     (rx_message),
    .rx_waits_unit_i  (rx_waits_unit),
    .rx_waits_slot_i  (rx_waits_slot),
    .rx_wrong_i       (rx_wrong),
    .device_wrong_i   (device_wrong),
    .impossible_i     (impossible),
    .read_wrong_i     (read_wrong),
    .write_wrong_i    (write_wrong),
    .tx_seen_i        (tx_seen),
    .tx_message_i     (tx_message),
    .tx_waits_i       (tx_waits),
    .local_seen_i     (local_seen_q),
    .local_operation_i(asked_q.operation),
    .unlock_seen_i    (unlock_seen_q),
    .read_seen_i      (read_seen),
    .write_seen_i     (write_seen),
    .refused_i        (refused_q),
    .ar_waits_i       (ar_waits_q),
    .aw_waits_i       (aw_waits_q),
    .w_waits_i        (w_waits_q),
    .local_waits_i    (local_waits_q),
    .unlock_waits_i   (unlock_waits_q),
    .answer_waits_i   (answer_waits_q),
    .stall_i          (stall),
    .evicted_i        (evicted),
    .change_seen_i    (change_seen_q),
    .change_lost_i    (change_lost),
    .busy_i           (busy_o),
    .ask_i            (ask_counter),
    .ask_place_i      (ask_place),
    .told_valid_o     (told_valid),
    .told_o           (told)
  );

  dcs_registers #(
    .Protocol(Protocol),
    .Slice   (Slice),
    .Units   (Units),
    .SetWidth(SetWidth),
    .TagWidth(TagWidth),
    .Ways    (Ways),
    .Reads   (Reads),
    .Waiting (Waiting)
  ) u_registers (
    .clk_i,
    .rst_ni,
    .aw_valid_i   (cfg_aw_valid_i),
    .aw_ready_o   (cfg_aw_ready_o),
    .aw_addr_i    (cfg_aw_addr_i),
    .w_valid_i    (cfg_w_valid_i),
    .w_ready_o    (cfg_w_ready_o),
    .w_data_i     (cfg_w_data_i),
    .w_strb_i     (cfg_w_strb_i),
    .b_valid_o    (cfg_b_valid_o),
    .b_ready_i    (cfg_b_ready_i),
    .b_resp_o     (cfg_b_resp_o),
    .ar_valid_i   (cfg_ar_valid_i),
    .ar_ready_o   (cfg_ar_ready_o),
    .ar_addr_i    (cfg_ar_addr_i),
    .r_valid_o    (cfg_r_valid_o),
    .r_ready_i    (cfg_r_ready_i),
    .r_data_o     (cfg_r_data_o),
    .r_resp_o     (cfg_r_resp_o),
    .first_wrong_i     (first_wrong),
    .first_impossible_i(first_impossible),
    .idle_i       (idle_o),
    .swept_i      (!sweep_valid),
    .count_o      (counts),
    .clear_o      (clears),
    .ask_o        (ask_counter),
    .ask_place_o  (ask_place),
    .told_valid_i (told_valid),
    .told_i       (told)
  );

  // ------------------------------------------------------------------ obligations of the device, checked

  `ASSUME_STABLE(stable_local, local_req_valid_i, local_req_ready_o, local_req_i,
    ("dcs: a local operation was not stable until it was taken"))
  `ASSUME_STABLE(stable_unlock, unlock_valid_i, unlock_ready_o, unlock_line_i,
    ("dcs: an unlock was not stable until it was taken"))
  `NOTICE_OR(operation_known, !local_req_valid_i || 8'(local_req_i.operation) < Protocol.locals,
    ("dcs: there is no local operation %0d", local_req_i.operation))
  `NOTICE_OR(line_of_local, !local_req_valid_i || is_ours(local_req_i.line),
    ("dcs: line %0d of a local operation lies outside the range of slice %0d", local_req_i.line, Slice))
  `NOTICE_OR(line_of_unlock, !unlock_valid_i || is_ours(unlock_line_i),
    ("dcs: line %0d of an unlock lies outside the range of slice %0d", unlock_line_i, Slice))
endmodule : dcs
