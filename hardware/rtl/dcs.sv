// Directory controller slice (DCS): the directory controller units (DCU) of the even or of the odd lines, with their
// shared ROM, payload buffers, memory ports and registers.
//
// Ingress separates headers from payload: headers go to the units, payload is buffered until a write reads it.
// Streams to and from the units are merged round-robin. See hardware/README.md for the ports.

`include "assertions.svh"

module dcs #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type                 state_e  = logic,
  parameter type                 event_e  = logic,
  parameter type                 send_e   = logic,
  parameter type                 row_t    = logic,
  parameter                      RomFile  = "",          // image of the protocol ROM
  parameter int unsigned         Slice           = 0,    // 0: even lines, 1: odd lines
  parameter int unsigned         Units           = 1,    // units, a power of two
  parameter int unsigned         SetWidth        = 7,    // log2 of the directory sets of a unit
  parameter int unsigned         TagWidth        = 16,   // bits of a directory tag
  parameter int unsigned         Ways            = 16,   // ways of a directory set
  parameter int unsigned         WaysPerStep     = 4,    // ways compared per cycle of a look-up
  parameter int unsigned         Reads           = 2,    // memory reads in flight, per unit
  parameter int unsigned         Writes          = 2,    // memory writes in flight, per unit
  parameter int unsigned         Locals          = 2,    // local operations in progress, per unit
  parameter int unsigned         MaxDeferred     = 2,    // deferred requests, and maximum locked lines, per unit
  parameter int unsigned         StoreSlots      = 2,    // payload slots per unit, for circuits that may wait
  parameter int unsigned         ChangeDepth     = 16,   // buffered permission changes
  parameter int unsigned         RecallDelayLog2 = 8,    // log2 of the cycles before a full set recalls a line
  parameter int unsigned         LocalQueueDepth = 8,    // local operations queued without stalling others
  parameter int unsigned         UnitsPerPort    = 8,    // units that share a port of the protocol ROM
  parameter int unsigned         PayloadWidth    = 512,  // bits of a beat of payload
  parameter int unsigned         AxiIdWidth      = 8,
  parameter int unsigned         AxiAddrWidth    = 36,

  localparam int unsigned NumRx = int'(Protocol.rx_circuits),
  localparam int unsigned NumTx = int'(Protocol.tx_circuits)
) (
  input  logic                                   clk_i,
  input  logic                                   rst_ni,

  // Link: one stream per circuit.
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

  // Device: local operations on the remote's copies, unlocks, and the responses to both.
  input  logic                                   local_req_valid_i,
  output logic                                   local_req_ready_o,
  input  home_pkg::local_req_t                   local_req_i,
  input  logic                                   unlock_valid_i,
  output logic                                   unlock_ready_o,
  input  logic [home_pkg::LineWidth-1:0]         unlock_line_i,
  output logic                                   local_rsp_valid_o,
  input  logic                                   local_rsp_ready_i,
  output home_pkg::local_rsp_t                   local_rsp_o,

  // Changes of the remote's permissions, for an optional observer. It cannot stall the home.
  output logic                                   change_valid_o,
  input  logic                                   change_ready_i,
  output home_pkg::change_t                      change_o,

  // Memory: AXI4 manager. Each burst is one line.
  output logic                                   axi_aw_valid_o,
  input  logic                                   axi_aw_ready_i,
  output logic [AxiIdWidth-1:0]                  axi_aw_id_o,
  output logic [AxiAddrWidth-1:0]                axi_aw_addr_o,
  output logic [7:0]                             axi_aw_user_o,   // {permission kept by the remote, event}
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
  output logic [7:0]                             axi_ar_user_o,   // {permission granted to the remote, event}
  input  logic                                   axi_r_valid_i,
  output logic                                   axi_r_ready_o,
  input  logic [AxiIdWidth-1:0]                  axi_r_id_i,
  input  logic [PayloadWidth-1:0]                axi_r_data_i,
  input  logic                                   axi_r_last_i,

  // Registers: AXI-Lite subordinate.
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

  // Observation of each unit for lockstep tests and proofs: the row executed in this cycle (step), and whether an
  // operation was in progress in the previous cycle (busy).
  output logic            [Units-1:0]            step_valid_o,
  output home_pkg::step_t [Units-1:0]            step_o,
  output logic            [Units-1:0]            busy_o,

  // Quiescent, delayed by two cycles: no operation in progress, no buffered payload, no stalled stream.
  output logic                                   idle_o
);
  import home_pkg::*;

  localparam int unsigned EventWidth    = $bits(event_e);
  localparam int unsigned StateWidth    = $bits(state_e);
  localparam int unsigned UnitBits      = $clog2(Units);         // bits of a line number that select the unit
  localparam int unsigned UnitWidth     = bits(Units);           // width of a unit's number, at least 1
  localparam int unsigned UnitLineWidth = TagWidth + SetWidth;   // width of a line index within a unit
  localparam int unsigned LineShift     = 1 + UnitBits;          // a line number is {line of the unit, unit, slice}
  localparam int unsigned SlotWidth     = bits(StoreSlots);
  localparam int unsigned ReadWidth     = bits(Reads);
  localparam int unsigned WriteWidth    = bits(Writes);
  localparam int unsigned LineBits      = 32'(Protocol.line_bytes) * 8;
  localparam int unsigned Beats         = LineBits / PayloadWidth;  // payload beats per line
  localparam int unsigned BeatWidth     = bits(Beats);
  localparam int unsigned MaskWidth     = 16 / Beats;   // bits of the store mask per beat

  if (2 ** UnitBits != Units || Units > 256) begin : gen_invalid_units
    $error("dcs: Units must be a power of two up to 256");
  end
  if (Beats * PayloadWidth != LineBits || Beats > 16 || 2 ** $clog2(Beats) != Beats) begin : gen_invalid_payload
    $error("dcs: PayloadWidth must be a line's bits, or a half, a quarter, an eighth or a sixteenth of them");
  end
  if (LocalQueueDepth < 1 || LocalQueueDepth > 64) begin : gen_invalid_queue
    $error("dcs: LocalQueueDepth must be from 1 to 64");
  end
  if (2 ** $clog2(ChangeDepth) != ChangeDepth || ChangeDepth < 2 || ChangeDepth > 128) begin : gen_invalid_changes
    $error("dcs: ChangeDepth must be a power of two from 2 to 128");
  end
  if (AxiIdWidth < UnitWidth + ReadWidth || AxiIdWidth < UnitWidth + WriteWidth) begin : gen_invalid_id
    $error("dcs: AxiIdWidth must have room for the number of a unit and that of its read or write");
  end
  if (LineShift + UnitLineWidth > LineWidth
      || LineShift + UnitLineWidth + $clog2(LineBits / 8) > AxiAddrWidth) begin : gen_invalid_range
    $error("dcs: TagWidth and SetWidth make a range of lines beyond the header's or AxiAddrWidth's");
  end

  // ------------------------------------------------------------------ units

  logic [Units-1:0][NumRx-1:0]                    rx_unit_valid, rx_unit_ready;
  logic [NumRx-1:0][EventWidth-1:0]               rx_event;
  logic [NumRx-1:0][UnitLineWidth-1:0]            rx_line;
  logic [NumRx-1:0][SlotWidth-1:0]                rx_slot;
  logic [Units-1:0]                               local_valid, local_ready, locks_full, local_returned, unlock_valid, unlock_ready;
  local_req_t                                     local_req, unit_req;   // from the port; offered to a unit
  logic                                           local_req_valid, unlock_req_valid, locals_idle;
  event_e                                         local_event;
  logic [home_pkg::LineWidth-1:0]                 unlock_line;
  logic [Units-1:0]                               unit_rsp_valid, unit_rsp_ready, unit_rsp_unlock, unit_rsp_refused;
  logic [Units-1:0][2:0]                          unit_rsp_operation;
  logic [Units-1:0][UnitLineWidth-1:0]            unit_rsp_line;
  logic [Units-1:0]                               rom_valid, rom_ready, row_valid;
  logic [Units-1:0][StateWidth+EventWidth-1:0]    rom_addr;
  logic [Units-1:0][$bits(row_t)-1:0]             row;
  logic [Units-1:0]                               read_valid, read_ready, write_valid, write_ready;
  logic [Units-1:0][UnitLineWidth-1:0]            read_line, write_line;
  logic [Units-1:0][ReadWidth-1:0]                read_slot;
  logic [Units-1:0][WriteWidth-1:0]               write_slot;
  event_e [Units-1:0]                             read_event, write_event;
  logic [Units-1:0][1:0]                          write_circuit, drop_circuit;
  logic [Units-1:0][SlotWidth-1:0]                write_payload_slot, drop_slot;
  logic [Units-1:0]                               drop_valid;
  logic [Units-1:0][Reads-1:0]                    read_done, read_lost;
  logic [Units-1:0][Writes-1:0]                   write_done;
  logic [Units-1:0][NumTx-1:0]                    tx_valid;
  logic [Units-1:0][NumTx-1:0]                    tx_ready;
  send_e [Units-1:0][NumTx-1:0]                   tx_send;
  logic [Units-1:0][NumTx-1:0][UnitLineWidth-1:0] tx_line;
  logic [Units-1:0][NumTx-1:0][ReadWidth-1:0]     tx_slot;
  logic [Units-1:0][Reads-1:0]                    tx_done;

  // After reset, all units clear their directories at the same time, one word per cycle. The extra top bit of the
  // counter is set when all words are clear.
  localparam int unsigned InitAddrWidth = $clog2(2 ** SetWidth * Ways / WaysPerStep);
  logic [InitAddrWidth:0] init_addr_q;
  logic               init_busy;

  assign init_busy = !init_addr_q[InitAddrWidth];

  always_ff @(posedge clk_i) begin
    if (!rst_ni)          init_addr_q <= '0;
    else if (init_busy) init_addr_q <= init_addr_q + 1'b1;
  end

  logic   [Units-1:0]                    unit_idle, evicted, change_valid, change_ready, change_lost;
  permission_e [Units-1:0]               change_from, change_to, write_permission;
  logic   [Units-1:0][UnitLineWidth-1:0] change_line;
  stall_e [Units-1:0]                    stall;
  logic   [Units-1:0]                    unexpected_valid, unexpected_ready;
  logic   [Units-1:0][EventWidth-1:0]    unexpected_event;
  logic   [Units-1:0][StateWidth-1:0]    unexpected_state;
  logic   [Units-1:0][UnitLineWidth-1:0] unexpected_line;
  logic                                  reject_idle;
  logic [NumRx-1:0]                      rx_idle, rx_idle_q;

  always_ff @(posedge clk_i) begin
    rx_idle_q <= rx_idle;
    idle_o    <= rst_ni && unit_idle == '1 && rx_idle_q == '1 && tx_valid_o == '0 && !axi_aw_valid_o && !axi_w_valid_o
           && !axi_ar_valid_o && !local_req_valid && locals_idle && !unlock_req_valid && !local_rsp_valid_o && reject_idle;
  end

  for (genvar u = 0; u < Units; u++) begin : gen_unit
    event_e                   step_event;
    state_e                   step_state, step_next;
    logic [UnitLineWidth-1:0] step_line;
    logic                     step_blocked, step_evict;
    effect_e                  step_effect;
    event_e                   dropped_event;
    state_e                   dropped_state;

    dcu #(
      .Protocol       (Protocol),
      .state_e        (state_e),
      .event_e        (event_e),
      .send_e         (send_e),
      .row_t          (row_t),
      .TagWidth       (TagWidth),
      .SetWidth       (SetWidth),
      .Ways           (Ways),
      .WaysPerStep    (WaysPerStep),
      .Reads          (Reads),
      .Writes         (Writes),
      .Locals         (Locals),
      .MaxDeferred    (MaxDeferred),
      .StoreSlots     (StoreSlots),
      .RecallDelayLog2(RecallDelayLog2)
    ) u_dcu (
      .clk_i,
      .rst_ni,
      .init_busy_i          (init_busy),
      .init_addr_i          (InitAddrWidth'(init_addr_q)),
      .rx_valid_i           (rx_unit_valid[u]),
      .rx_ready_o           (rx_unit_ready[u]),
      .rx_event_i           (rx_event),
      .rx_line_i            (rx_line),
      .rx_slot_i            (rx_slot),
      .local_valid_i        (local_valid[u]),
      .local_ready_o        (local_ready[u]),
      .local_operation_i    (unit_req.operation),
      .local_event_i        (local_event),
      .local_line_i         (UnitLineWidth'(unit_req.line >> LineShift)),
      .locks_full_o         (locks_full[u]),
      .local_returned_o     (local_returned[u]),
      .unlock_valid_i       (unlock_valid[u]),
      .unlock_ready_o       (unlock_ready[u]),
      .unlock_line_i        (UnitLineWidth'(unlock_line >> LineShift)),
      .local_rsp_valid_o    (unit_rsp_valid[u]),
      .local_rsp_ready_i    (unit_rsp_ready[u]),
      .local_rsp_unlock_o   (unit_rsp_unlock[u]),
      .local_rsp_refused_o  (unit_rsp_refused[u]),
      .local_rsp_operation_o(unit_rsp_operation[u]),
      .local_rsp_line_o     (unit_rsp_line[u]),
      .rom_valid_o          (rom_valid[u]),
      .rom_ready_i          (rom_ready[u]),
      .rom_addr_o           (rom_addr[u]),
      .row_valid_i          (row_valid[u]),
      .row_i                (row_t'(row[u])),
      .read_valid_o         (read_valid[u]),
      .read_ready_i         (read_ready[u]),
      .read_line_o          (read_line[u]),
      .read_slot_o          (read_slot[u]),
      .read_event_o         (read_event[u]),
      .read_done_i          (read_done[u]),
      .read_lost_i          (read_lost[u]),
      .write_valid_o        (write_valid[u]),
      .write_ready_i        (write_ready[u]),
      .write_line_o         (write_line[u]),
      .write_slot_o         (write_slot[u]),
      .write_event_o        (write_event[u]),
      .write_permission_o   (write_permission[u]),
      .write_circuit_o      (write_circuit[u]),
      .write_payload_slot_o (write_payload_slot[u]),
      .write_done_i         (write_done[u]),
      .drop_valid_o         (drop_valid[u]),
      .drop_circuit_o       (drop_circuit[u]),
      .drop_slot_o          (drop_slot[u]),
      .tx_valid_o           (tx_valid[u]),
      .tx_ready_i           (tx_ready[u]),
      .tx_send_o            (tx_send[u]),
      .tx_line_o            (tx_line[u]),
      .tx_slot_o            (tx_slot[u]),
      .tx_done_i            (tx_done[u]),
      .unexpected_valid_o   (unexpected_valid[u]),
      .unexpected_ready_i   (unexpected_ready[u]),
      .unexpected_event_o   (dropped_event),
      .unexpected_state_o   (dropped_state),
      .unexpected_line_o    (unexpected_line[u]),
      .step_valid_o         (step_valid_o[u]),
      .step_blocked_o       (step_blocked),
      .step_evict_o         (step_evict),
      .step_event_o         (step_event),
      .step_state_o         (step_state),
      .step_effect_o        (step_effect),
      .step_next_o          (step_next),
      .step_line_o          (step_line),
      .stall_o              (stall[u]),
      .evicted_o            (evicted[u]),
      .change_valid_o       (change_valid[u]),
      .change_ready_i       (change_ready[u]),
      .change_from_o        (change_from[u]),
      .change_to_o          (change_to[u]),
      .change_line_o        (change_line[u]),
      .change_lost_o        (change_lost[u]),
      .idle_o               (unit_idle[u])
    );

    assign unexpected_event[u] = dropped_event;
    assign unexpected_state[u] = dropped_state;

    assign step_o[u] = '{
      blocked:  step_blocked,
      evict:    step_evict,
      event_id: 6'(step_event),
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
    .rom_valid_i(rom_valid),
    .rom_ready_o(rom_ready),
    .rom_addr_i (rom_addr),
    .row_valid_o(row_valid),
    .row_o      (row)
  );

  // ------------------------------------------------------------------ circuits toward the home

  logic [UnitWidth-1:0]               rx_rd_unit;
  logic [SlotWidth-1:0]               rx_rd_slot;
  logic [BeatWidth-1:0]               rx_rd_beat;
  logic [NumRx-1:0][PayloadWidth-1:0] rx_rd_data;
  logic [NumRx-1:0][MaskWidth-1:0]    rx_rd_mask;
  logic [NumRx-1:0]                   rx_slot_free;
  logic [UnitWidth-1:0]               free_unit;
  logic [SlotWidth-1:0]               free_slot;
  logic [NumRx-1:0]                   rx_dispatched, rx_stall_unit, rx_stall_slot;
  logic [NumRx-1:0][7:0]              rx_message;
  reject_e [NumRx-1:0]                rx_reject;
  header_t [NumRx-1:0]                rx_reject_header;

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
      .LineWidth   (UnitLineWidth)
    ) u_ingress (
      .clk_i,
      .rst_ni,
      .rx_valid_i          (rx_valid_i[c]),
      .rx_ready_o          (rx_ready_o[c]),
      .rx_header_i         (rx_header_i[c]),
      .rx_data_i           (rx_data_i[c]),
      .rx_last_i           (rx_last_i[c]),
      .unit_valid_o        (valid),
      .unit_ready_i        (ready),
      .unit_event_o        (rx_event[c]),
      .unit_line_o         (rx_line[c]),
      .unit_slot_o         (rx_slot[c]),
      .rd_unit_i           (rx_rd_unit),
      .rd_slot_i           (rx_rd_slot),
      .rd_beat_i           (rx_rd_beat),
      .rd_data_o           (rx_rd_data[c]),
      .rd_mask_o           (rx_rd_mask[c]),
      .free_valid_i        (rx_slot_free[c]),
      .free_unit_i         (free_unit),
      .free_slot_i         (free_slot),
      .drop_valid_i        (dropped),
      .drop_slot_i         (drop_slot),
      .reject_o            (rx_reject[c]),
      .reject_header_o     (rx_reject_header[c]),
      .dispatched_o        (rx_dispatched[c]),
      .dispatched_message_o(rx_message[c]),
      .stall_unit_o        (rx_stall_unit[c]),
      .stall_slot_o        (rx_stall_slot[c]),
      .idle_o              (rx_idle[c])
    );
  end

  // ------------------------------------------------------------------ memory

  logic                  read_done_any, write_done_any;
  reject_e               read_reject, write_reject;
  logic [AxiIdWidth-1:0] read_reject_id, write_reject_id;

  dcs_writer #(
    .Protocol    (Protocol),
    .event_e     (event_e),
    .Units       (Units),
    .Slice       (Slice),
    .Writes      (Writes),
    .SlotWidth   (SlotWidth),
    .LineWidth   (UnitLineWidth),
    .PayloadWidth(PayloadWidth),
    .Beats       (Beats),
    .AxiIdWidth  (AxiIdWidth),
    .AxiAddrWidth(AxiAddrWidth)
  ) u_writer (
    .clk_i,
    .rst_ni,
    .unit_valid_i       (write_valid),
    .unit_ready_o       (write_ready),
    .unit_line_i        (write_line),
    .unit_slot_i        (write_slot),
    .unit_event_i       (write_event),
    .unit_permission_i  (write_permission),
    .unit_circuit_i     (write_circuit),
    .unit_payload_slot_i(write_payload_slot),
    .unit_done_o        (write_done),
    .rd_unit_o          (rx_rd_unit),
    .rd_slot_o          (rx_rd_slot),
    .rd_beat_o          (rx_rd_beat),
    .rd_data_i          (rx_rd_data),
    .rd_mask_i          (rx_rd_mask),
    .free_valid_o       (rx_slot_free),
    .free_unit_o        (free_unit),
    .free_slot_o        (free_slot),
    .aw_valid_o         (axi_aw_valid_o),
    .aw_ready_i         (axi_aw_ready_i),
    .aw_id_o            (axi_aw_id_o),
    .aw_addr_o          (axi_aw_addr_o),
    .aw_user_o          (axi_aw_user_o),
    .w_valid_o          (axi_w_valid_o),
    .w_ready_i          (axi_w_ready_i),
    .w_data_o           (axi_w_data_o),
    .w_strb_o           (axi_w_strb_o),
    .w_last_o           (axi_w_last_o),
    .b_valid_i          (axi_b_valid_i),
    .b_ready_o          (axi_b_ready_o),
    .b_id_i             (axi_b_id_i),
    .done_o             (write_done_any),
    .reject_o           (write_reject),
    .reject_id_o        (write_reject_id)
  );

  logic                    line_rd_en;
  logic [UnitWidth-1:0]    line_rd_unit;
  logic [ReadWidth-1:0]    line_rd_slot;
  logic [BeatWidth-1:0]    line_rd_beat;
  logic [PayloadWidth-1:0] line_rd_data;

  dcs_reader #(
    .Protocol    (Protocol),
    .event_e     (event_e),
    .Units       (Units),
    .Slice       (Slice),
    .Reads       (Reads),
    .LineWidth   (UnitLineWidth),
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
    .rd_en_i     (line_rd_en),
    .rd_unit_i   (line_rd_unit),
    .rd_slot_i   (line_rd_slot),
    .rd_beat_i   (line_rd_beat),
    .rd_data_o   (line_rd_data),
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
    .done_o      (read_done_any),
    .reject_o    (read_reject),
    .reject_id_o (read_reject_id)
  );

  // ------------------------------------------------------------------ circuits toward the remote

  logic [NumTx-1:0][Units-1:0][Reads-1:0] tx_unit_done;
  logic [NumTx-1:0]                       tx_read_en;
  logic [NumTx-1:0][UnitWidth-1:0]        tx_unit;
  logic [NumTx-1:0][ReadWidth-1:0]        tx_read_slot;
  logic [NumTx-1:0][BeatWidth-1:0]        tx_beat;
  logic [NumTx-1:0]                       tx_sent, tx_stall;

  for (genvar c = 0; c < NumTx; c++) begin : gen_egress
    logic [Units-1:0]                    valid, ready;
    send_e [Units-1:0]                   send;
    logic [Units-1:0][UnitLineWidth-1:0] line;
    logic [Units-1:0][ReadWidth-1:0]     slot;

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
      .LineWidth   (UnitLineWidth),
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
      .rd_slot_o   (tx_read_slot[c]),
      .rd_beat_o   (tx_beat[c]),
      .rd_data_i   (line_rd_data),
      .tx_valid_o  (tx_valid_o[c]),
      .tx_ready_i  (tx_ready_i[c]),
      .tx_header_o (tx_header_o[c]),
      .tx_data_o   (tx_data_o[c]),
      .tx_last_o   (tx_last_o[c]),
      .sent_o      (tx_sent[c]),
      .stall_o     (tx_stall[c])
    );
  end

  // The reader's line buffer has one read port, which suffices: the ROM compiler allows only one circuit with payload
  // to the remote.
  always_comb begin
    tx_done      = '0;
    line_rd_en   = 1'b0;
    line_rd_unit = '0;
    line_rd_slot = '0;
    line_rd_beat = '0;
    for (int unsigned c = 0; c < NumTx; c++) begin
      tx_done |= tx_unit_done[c];
      if (Protocol.tx_payload[c]) begin
        line_rd_en   = tx_read_en[c];
        line_rd_unit = tx_unit[c];
        line_rd_slot = tx_read_slot[c];
        line_rd_beat = tx_beat[c];
      end
    end
  end

  // ------------------------------------------------------------------ local operations of the device

  logic [UnitWidth-1:0] unlock_unit;
  logic                 merged_rsp_valid, merged_rsp_ready;
  logic                 local_accept;                      // dispatched to its unit, or queued for it
  logic                 local_rejected, unlock_rejected;   // rejected without reaching a unit, response sent
  reject_e              local_reject, device_reject;       // reasons for rejection
  logic                 unlock_reject, unexpected_pulse;

  // Requests are checked before the spill registers, to keep the paths to the units short.
  typedef struct packed {
    reject_e    reason;
    local_req_t req;
  } checked_req_t;

  typedef struct packed {
    logic                           reject;
    logic [home_pkg::LineWidth-1:0] line;
  } checked_unlock_t;

  function automatic logic is_in_slice(input logic [home_pkg::LineWidth-1:0] line);
    return line[0] == 1'(Slice) && line >> (LineShift + UnitLineWidth) == '0;
  endfunction

  checked_req_t    checked_req, held_req;
  checked_unlock_t held_unlock;
  assign checked_req.req    = local_req_i;
  assign checked_req.reason = 8'(local_req_i.operation) >= Protocol.locals ? RejectOperation
                   : is_in_slice(local_req_i.line) ? RejectNone : RejectLocalLine;
  assign {local_reject, local_req}    = held_req;
  assign {unlock_reject, unlock_line} = held_unlock;

  spill_register #(
    .data_t(checked_req_t)
  ) u_local (
    .clk_i,
    .rst_ni,
    .wr_valid_i(local_req_valid_i),
    .wr_ready_o(local_req_ready_o),
    .wr_data_i (checked_req),
    .rd_valid_o(local_req_valid),
    .rd_ready_i(local_reject == RejectNone ? local_accept : local_rejected),
    .rd_data_o (held_req)
  );

  spill_register #(
    .data_t(checked_unlock_t)
  ) u_unlock (
    .clk_i,
    .rst_ni,
    .wr_valid_i(unlock_valid_i),
    .wr_ready_o(unlock_ready_o),
    .wr_data_i ({!is_in_slice(unlock_line_i), unlock_line_i}),
    .rd_valid_o(unlock_req_valid),
    .rd_ready_i(unlock_reject ? unlock_rejected : unlock_ready[unlock_unit]),
    .rd_data_o (held_unlock)
  );

  dcs_locals #(
    .Protocol       (Protocol),
    .Units          (Units),
    .LocalQueueDepth(LocalQueueDepth)
  ) u_locals (
    .clk_i,
    .rst_ni,
    .wr_valid_i       (local_req_valid && local_reject == RejectNone),
    .wr_ready_o       (local_accept),
    .wr_req_i         (local_req),
    .unit_valid_o     (local_valid),
    .unit_ready_i     (local_ready),
    .unit_locks_full_i(locks_full),
    .unit_returned_i  (local_returned),
    .unit_req_o       (unit_req),
    .idle_o           (locals_idle)
  );

  assign local_event = event_e'(Protocol.messages + 8'(unit_req.operation));
  assign unlock_unit = UnitBits == 0 ? '0 : UnitWidth'(unlock_line >> 1);

  always_comb begin
    unlock_valid              = '0;
    unlock_valid[unlock_unit] = unlock_req_valid && !unlock_reject;
  end

  typedef struct packed {
    logic                     unlock;
    logic                     refused;
    logic [2:0]               operation;
    logic [UnitLineWidth-1:0] line;
  } unit_rsp_t;

  unit_rsp_t [Units-1:0] unit_rsps;
  unit_rsp_t             picked_rsp;
  logic [UnitWidth-1:0]  picked_rsp_unit;

  for (genvar u = 0; u < Units; u++) begin : gen_unit_rsp
    assign unit_rsps[u] = '{unit_rsp_unlock[u], unit_rsp_refused[u], unit_rsp_operation[u], unit_rsp_line[u]};
  end

  stream_arbiter #(
    .Size  (Units),
    .data_t(unit_rsp_t)
  ) u_rsp_arbiter (
    .clk_i,
    .rst_ni,
    .wr_valid_i(unit_rsp_valid),
    .wr_ready_o(unit_rsp_ready),
    .wr_data_i (unit_rsps),
    .rd_valid_o(merged_rsp_valid),
    .rd_ready_i(merged_rsp_ready),
    .rd_data_o (picked_rsp),
    .rd_index_o(picked_rsp_unit)
  );

  local_rsp_t merged_rsp;
  assign merged_rsp = '{
    unlock:    picked_rsp.unlock,
    refused:   picked_rsp.refused,
    operation: picked_rsp.operation,
    line:      line_number(home_pkg::LineWidth'(picked_rsp.line), home_pkg::LineWidth'(picked_rsp_unit), Units, Slice)
  };

  // ------------------------------------------------------------------ illegal input

  logic        counters_clear;
  reject_t     first_reject;
  unexpected_t first_unexpected;

  // Record illegal device requests on arrival, like all other illegal input, not when their rejection is sent.
  reject_e                        arrived_reject_q;
  local_req_t                     arrived_req_q;
  logic                           arrived_unlock_reject_q;
  logic [home_pkg::LineWidth-1:0] arrived_unlock_line_q;

  always_ff @(posedge clk_i) begin
    arrived_reject_q        <= rst_ni && local_req_valid_i && local_req_ready_o ? checked_req.reason : RejectNone;
    arrived_unlock_reject_q <= rst_ni && unlock_valid_i && unlock_ready_o && !is_in_slice(unlock_line_i);
  end
  always_ff @(posedge clk_i) begin
    arrived_req_q         <= local_req_i;
    arrived_unlock_line_q <= unlock_line_i;
  end

  dcs_reject #(
    .NumRx        (NumRx),
    .Units        (Units),
    .EventWidth   (EventWidth),
    .StateWidth   (StateWidth),
    .UnitLineWidth(UnitLineWidth),
    .Slice        (Slice),
    .AxiIdWidth   (AxiIdWidth)
  ) u_rejects (
    .clk_i,
    .rst_ni,
    .clear_i                (counters_clear),
    .rx_reject_i            (rx_reject),
    .rx_header_i            (rx_reject_header),
    .read_reject_i          (read_reject),
    .read_id_i              (read_reject_id),
    .write_reject_i         (write_reject),
    .write_id_i             (write_reject_id),
    .arrived_reject_i       (arrived_reject_q),
    .arrived_req_i          (arrived_req_q),
    .arrived_unlock_reject_i(arrived_unlock_reject_q),
    .arrived_unlock_line_i  (arrived_unlock_line_q),
    .local_valid_i          (local_req_valid && local_reject != RejectNone),
    .local_ready_o          (local_rejected),
    .local_reject_i         (local_reject),
    .local_req_i            (local_req),
    .unlock_valid_i         (unlock_req_valid && unlock_reject),
    .unlock_ready_o         (unlock_rejected),
    .unlock_line_i          (unlock_line),
    .unit_rsp_valid_i       (merged_rsp_valid),
    .unit_rsp_ready_o       (merged_rsp_ready),
    .unit_rsp_i             (merged_rsp),
    .local_rsp_valid_o,
    .local_rsp_ready_i,
    .local_rsp_o,
    .unexpected_valid_i     (unexpected_valid),
    .unexpected_ready_o     (unexpected_ready),
    .unexpected_event_i     (unexpected_event),
    .unexpected_state_i     (unexpected_state),
    .unexpected_line_i      (unexpected_line),
    .device_reject_o        (device_reject),
    .unexpected_pulse_o     (unexpected_pulse),
    .first_reject_o         (first_reject),
    .first_unexpected_o     (first_unexpected),
    .idle_o                 (reject_idle)
  );

  // ------------------------------------------------------------------ permission changes

  dcs_changes #(
    .Units    (Units),
    .Slice    (Slice),
    .Depth    (ChangeDepth),
    .LineWidth(UnitLineWidth)
  ) u_changes (
    .clk_i,
    .rst_ni,
    .unit_valid_i(change_valid),
    .unit_ready_o(change_ready),
    .unit_from_i (change_from),
    .unit_to_i   (change_to),
    .unit_line_i (change_line),
    .change_valid_o,
    .change_ready_i,
    .change_o
  );

  // ------------------------------------------------------------------ registers and counters

  localparam int unsigned CounterIndexWidth = $clog2(registers_pkg::Places);

  logic                         counters_enable, counter_rd_req, counter_rd_valid;
  logic [CounterIndexWidth-1:0] counter_rd_index;
  logic [63:0]                  counter_rd_data;

  // Registers between the port events and the counters keep the paths short.
  logic       local_accepted_q, unlock_accepted_q, refused_q, change_sent_q;
  logic       ar_stall_q, aw_stall_q, w_stall_q, local_stall_q, unlock_stall_q, local_rsp_stall_q;

  always_ff @(posedge clk_i) begin
    local_accepted_q  <= rst_ni && local_req_valid_i && local_req_ready_o && checked_req.reason == RejectNone;
    unlock_accepted_q <= rst_ni && unlock_valid_i && unlock_ready_o && is_in_slice(unlock_line_i);
    refused_q         <= rst_ni && local_rsp_valid_o && local_rsp_ready_i && local_rsp_o.refused;
    change_sent_q     <= rst_ni && change_valid_o && change_ready_i;
    ar_stall_q        <= rst_ni && axi_ar_valid_o && !axi_ar_ready_i;
    aw_stall_q        <= rst_ni && axi_aw_valid_o && !axi_aw_ready_i;
    w_stall_q         <= rst_ni && axi_w_valid_o && !axi_w_ready_i;
    local_stall_q     <= rst_ni && local_req_valid_i && !local_req_ready_o;
    unlock_stall_q    <= rst_ni && unlock_valid_i && !unlock_ready_o;
    local_rsp_stall_q <= rst_ni && local_rsp_valid_o && !local_rsp_ready_i;
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
    .count_enable_i   (counters_enable),
    .clear_i          (counters_clear),
    .rx_dispatched_i  (rx_dispatched),
    .rx_message_i     (rx_message),
    .rx_stall_unit_i  (rx_stall_unit),
    .rx_stall_slot_i  (rx_stall_slot),
    .rx_reject_i      (rx_reject),
    .device_reject_i  (device_reject),
    .unexpected_i     (unexpected_pulse),
    .read_reject_i    (read_reject),
    .write_reject_i   (write_reject),
    .tx_sent_i        (tx_sent),
    .tx_message_i     (tx_message),
    .tx_stall_i       (tx_stall),
    .local_accepted_i (local_accepted_q),
    .local_operation_i(arrived_req_q.operation),
    .unlock_accepted_i(unlock_accepted_q),
    .read_done_i      (read_done_any),
    .write_done_i     (write_done_any),
    .refused_i        (refused_q),
    .ar_stall_i       (ar_stall_q),
    .aw_stall_i       (aw_stall_q),
    .w_stall_i        (w_stall_q),
    .local_stall_i    (local_stall_q),
    .unlock_stall_i   (unlock_stall_q),
    .local_rsp_stall_i(local_rsp_stall_q),
    .stall_i          (stall),
    .evicted_i        (evicted),
    .change_sent_i    (change_sent_q),
    .change_lost_i    (change_lost),
    .busy_i           (busy_o),
    .rd_req_i         (counter_rd_req),
    .rd_index_i       (counter_rd_index),
    .rd_valid_o       (counter_rd_valid),
    .rd_data_o        (counter_rd_data)
  );

  dcs_registers #(
    .Protocol   (Protocol),
    .Slice      (Slice),
    .Units      (Units),
    .SetWidth   (SetWidth),
    .TagWidth   (TagWidth),
    .Ways       (Ways),
    .Reads      (Reads),
    .MaxDeferred(MaxDeferred)
  ) u_registers (
    .clk_i,
    .rst_ni,
    .aw_valid_i        (cfg_aw_valid_i),
    .aw_ready_o        (cfg_aw_ready_o),
    .aw_addr_i         (cfg_aw_addr_i),
    .w_valid_i         (cfg_w_valid_i),
    .w_ready_o         (cfg_w_ready_o),
    .w_data_i          (cfg_w_data_i),
    .w_strb_i          (cfg_w_strb_i),
    .b_valid_o         (cfg_b_valid_o),
    .b_ready_i         (cfg_b_ready_i),
    .b_resp_o          (cfg_b_resp_o),
    .ar_valid_i        (cfg_ar_valid_i),
    .ar_ready_o        (cfg_ar_ready_o),
    .ar_addr_i         (cfg_ar_addr_i),
    .r_valid_o         (cfg_r_valid_o),
    .r_ready_i         (cfg_r_ready_i),
    .r_data_o          (cfg_r_data_o),
    .r_resp_o          (cfg_r_resp_o),
    .first_reject_i    (first_reject),
    .first_unexpected_i(first_unexpected),
    .idle_i            (idle_o),
    .init_done_i       (!init_busy),
    .count_enable_o    (counters_enable),
    .clear_o           (counters_clear),
    .rd_req_o          (counter_rd_req),
    .rd_index_o        (counter_rd_index),
    .rd_valid_i        (counter_rd_valid),
    .rd_data_i         (counter_rd_data)
  );

  // ------------------------------------------------------------------ checks of the device's requests

  `ASSUME_STABLE(stable_local, local_req_valid_i, local_req_ready_o, local_req_i,
    ("dcs: a local operation was not stable until it was taken"))
  `ASSUME_STABLE(stable_unlock, unlock_valid_i, unlock_ready_o, unlock_line_i,
    ("dcs: an unlock was not stable until it was taken"))
  `REPORT_OR(operation_known, !local_req_valid_i || 8'(local_req_i.operation) < Protocol.locals,
    ("dcs: there is no local operation %0d", local_req_i.operation))
  `REPORT_OR(line_of_local, !local_req_valid_i || is_in_slice(local_req_i.line),
    ("dcs: line %0d of a local operation lies outside the range of slice %0d", local_req_i.line, Slice))
  `REPORT_OR(line_of_unlock, !unlock_valid_i || is_in_slice(unlock_line_i),
    ("dcs: line %0d of an unlock lies outside the range of slice %0d", unlock_line_i, Slice))
endmodule : dcs
