// Receive side of one circuit at a directory controller slice (DCS): dispatches headers to the units and buffers
// payload for memory.
//
// The first beat of a message carries the header and, for a message with payload, the first payload beat. The other
// payload beats follow, and the last beat is marked. The header is dispatched with the last beat. A message with
// payload needs a free slot of its unit; without one, the circuit stalls at the first beat.
//
// An illegal message (wrong circuit, remote, line or number of beats) is dropped: all its beats up to the marked one
// are accepted, and no unit sees it. So no payload beat is ever decoded as a header, even after an illegal header.

`include "assertions.svh"

module dcs_ingress #(
  parameter home_pkg::protocol_t Protocol = '0,
  // Parameters of dcs.sv, unless noted. Circuit: number of the circuit.
  parameter int unsigned Circuit      = 0,
  parameter int unsigned Slice        = 0,
  parameter int unsigned Units        = 1,
  parameter int unsigned Slots        = 1,    // payload slots per unit
  parameter int unsigned SlotWidth    = 1,
  parameter int unsigned PayloadWidth = 512,
  parameter int unsigned Beats        = 2,    // payload beats per line
  parameter int unsigned EventWidth   = 5,
  parameter int unsigned LineWidth    = 23,   // width of a line index within a unit

  localparam int unsigned MaskWidth   = 16 / Beats,
  localparam int unsigned UnitWidth   = home_pkg::bits(Units),
  localparam int unsigned UnitBits    = $clog2(Units)
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  // Circuit toward the home.
  input  logic                                rx_valid_i,
  output logic                                rx_ready_o,
  input  home_pkg::header_t                   rx_header_i,
  input  logic [PayloadWidth-1:0]             rx_data_i,
  input  logic                                rx_last_i,     // last beat of the message

  // Header for a unit, valid with the last beat of its message, and the slot of the payload.
  output logic [Units-1:0]                    unit_valid_o,
  input  logic [Units-1:0]                    unit_ready_i,
  output logic [EventWidth-1:0]               unit_event_o,
  output logic [LineWidth-1:0]                unit_line_o,
  output logic [SlotWidth-1:0]                unit_slot_o,

  // Payload read port, combinational.
  input  logic [UnitWidth-1:0]                rd_unit_i,
  input  logic [SlotWidth-1:0]                rd_slot_i,
  input  logic [home_pkg::bits(Beats)-1:0]    rd_beat_i,
  output logic [PayloadWidth-1:0]             rd_data_o,
  output logic [MaskWidth-1:0]                rd_mask_o,

  // Slot release: payload written to memory (free), or message discarded by its unit (drop).
  input  logic                                free_valid_i,
  input  logic [UnitWidth-1:0]                free_unit_i,
  input  logic [SlotWidth-1:0]                free_slot_i,
  input  logic [Units-1:0]                    drop_valid_i,
  input  logic [Units-1:0][SlotWidth-1:0]     drop_slot_i,

  // Reason for which the current message is dropped. Valid for one cycle per message.
  output home_pkg::reject_e                   reject_o,
  output home_pkg::header_t                   reject_header_o,

  // Performance counters, one cycle late: message dispatched; beat stalled by a busy unit; beat stalled for lack of a
  // free payload slot.
  output logic                                dispatched_o,
  output logic [7:0]                          dispatched_message_o,
  output logic                                stall_unit_o,
  output logic                                stall_slot_o,

  output logic                                idle_o   // no message and no buffered payload
);
  import home_pkg::*;

  localparam int unsigned BeatWidth  = bits(Beats);
  localparam bit          HasPayload = Protocol.rx_payload[Circuit];
  // Line number, from bit 0: slice (1 bit), unit (UnitBits), line index within the unit.
  localparam int unsigned LineShift = 1 + UnitBits;

  logic                 valid_q, accept, first_q, last_q; // position of the current beat in its message
  logic                 last_legal;          // the mark of the last beat matches the message number
  logic                 dispatch;            // the message is dispatched with this beat
  header_t              header_q;
  reject_e              reject_q;                // reason to drop the message, or RejectNone
  logic                 legal_q, has_payload_q;  // message is legal; message number has a payload
  logic                 buffers_payload;         // payload goes into the buffer
  logic [BeatWidth-1:0] beat_q, beat_next;
  logic [UnitWidth-1:0] unit;
  logic                 unit_ready, slot_free;
  logic [SlotWidth-1:0] slot, slot_q, slot_now;

  assign unit            = UnitBits == 0 ? '0 : UnitWidth'(header_q.line >> 1);
  assign last_legal      = last_q == (!has_payload_q || beat_q == BeatWidth'(Beats - 1));
  assign buffers_payload = HasPayload && legal_q && has_payload_q && last_legal;
  assign beat_next       = last_q ? '0 : beat_q + 1'b1;
  assign slot_now        = first_q ? slot : slot_q;

  assign unit_ready = unit_ready_i[unit];
  assign accept     = valid_q && (!legal_q || !last_legal
                     || (!last_q || unit_ready) && (!buffers_payload || !first_q || slot_free));
  assign rx_ready_o = !valid_q || accept;
  assign dispatch   = legal_q && last_legal && last_q;

  always_comb begin
    unit_valid_o       = '0;
    unit_valid_o[unit] = valid_q && dispatch && (!buffers_payload || !first_q || slot_free);
  end
  assign unit_event_o = EventWidth'(header_q.message);
  assign unit_line_o  = LineWidth'(header_q.line >> LineShift);
  assign unit_slot_o  = slot_now;

  // A beat at an illegal position is reported; the remaining beats of its message are dropped.
  assign reject_o        = !valid_q ? RejectNone : legal_q ? (last_legal ? RejectNone : RejectLength)
                         : first_q ? reject_q : RejectNone;
  assign reject_header_o = header_q;

  function automatic logic has_payload(input logic [7:0] message);
    return message < 8'(MaxEvents) && Protocol.payload[message[5:0]];
  endfunction

  // Legality of the header at the port. The last match has priority.
  reject_e reject;
  always_comb begin
    reject = RejectNone;
    if (rx_header_i.line[0] != 1'(Slice) || rx_header_i.line >> (LineShift + LineWidth) != '0) reject = RejectLine;
    if (rx_header_i.remote != '0) reject = RejectRemote;
    if (rx_header_i.message >= 8'(MaxEvents) || !Protocol.circuit[Circuit][rx_header_i.message[5:0]]) reject = RejectMessage;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      first_q <= 1'b1;
      beat_q  <= '0;
    end else begin
      if (rx_ready_o) valid_q <= rx_valid_i;
      if (accept) first_q <= last_q;
      if (accept) beat_q <= beat_next;
    end
  end

  logic stall_q, slot_full_q;
  always_ff @(posedge clk_i) begin
    dispatched_o <= rst_ni && accept && dispatch;
    stall_q      <= rst_ni && rx_valid_i && !rx_ready_o;
    slot_full_q  <= buffers_payload && first_q && !slot_free;
  end
  always_ff @(posedge clk_i) dispatched_message_o <= header_q.message;
  assign stall_unit_o = stall_q && !slot_full_q;
  assign stall_slot_o = stall_q && slot_full_q;

  logic is_first_beat;   // of the beat at the port
  assign is_first_beat = valid_q ? last_q : first_q;

  always_ff @(posedge clk_i) begin
    if (rx_ready_o) last_q <= rx_last_i;
    if (rx_ready_o && rx_valid_i && is_first_beat) begin
      header_q      <= rx_header_i;
      reject_q      <= reject;
      legal_q       <= reject == RejectNone;
      has_payload_q <= has_payload(rx_header_i.message);
    end else if (accept && !last_legal) begin
      legal_q   <= 1'b0;
    end
    if (accept && first_q) slot_q <= slot;
  end

  if (HasPayload) begin : gen_payload
    // Slots per unit are rounded up to a power of two, so that the address is a concatenation.
    localparam int unsigned SlotBits  = $clog2(Slots);
    localparam int unsigned BeatBits  = $clog2(Beats);
    localparam int unsigned Depth     = Units * 2 ** SlotBits * Beats;
    localparam int unsigned AddrWidth = bits(Depth);

    logic [Units-1:0][Slots-1:0]         busy_d, busy_q;
    logic [PayloadWidth-1:0]             data_q;
    logic [PayloadWidth+MaskWidth-1:0]   wr_data, rd_data;
    logic                                abort_slot;   // releases the slot of a message with an illegal number of beats

    assign abort_slot = valid_q && legal_q && has_payload_q && !last_legal && !first_q;

    function automatic logic [AddrWidth-1:0] address(
      input logic [UnitWidth-1:0] for_unit, input logic [SlotWidth-1:0] for_slot, input logic [BeatWidth-1:0] beat);
      // 32-bit arithmetic: with one slot or one beat, the address is narrower than the slot and beat indices.
      logic [31:0] slot_index;
      slot_index = Slots == 1 ? '0 : 32'(for_slot);
      return AddrWidth'(32'(for_unit) << (SlotBits + BeatBits) | slot_index << BeatBits | 32'(beat));
    endfunction

    always_comb begin
      slot_free = 1'b0;
      slot      = '0;
      for (int unsigned i = 0; i < Slots; i++) begin
        if (!busy_q[unit][i]) begin
          slot_free = 1'b1;
          slot      = SlotWidth'(i);
        end
      end
      busy_d = busy_q;
      for (int unsigned u = 0; u < Units; u++) begin
        for (int unsigned i = 0; i < Slots; i++) begin
          if ((free_valid_i && free_unit_i == UnitWidth'(u) && free_slot_i == SlotWidth'(i))
            || (drop_valid_i[u] && drop_slot_i[u] == SlotWidth'(i))
            || (abort_slot && unit == UnitWidth'(u) && slot_q == SlotWidth'(i))) busy_d[u][i] = 1'b0;
          if (accept && buffers_payload && first_q && unit == UnitWidth'(u) && slot == SlotWidth'(i)) busy_d[u][i] = 1'b1;
        end
      end
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) busy_q <= '0;
      else         busy_q <= busy_d;
    end

    always_ff @(posedge clk_i) begin
      if (rx_ready_o) data_q <= rx_data_i;
    end

    assign idle_o  = !valid_q && busy_q == '0;
    assign wr_data = {MaskWidth'(header_q.mask >> (MaskWidth * 32'(beat_q))), data_q};

    ram_distributed #(
      .Depth(Depth),
      .Width(PayloadWidth + MaskWidth)
    ) u_payload (
      .clk_i,
      .wr_en_i  (accept && buffers_payload),
      .wr_addr_i(address(unit, slot_now, beat_q)),
      .wr_data_i(wr_data),
      .rd_addr_i(address(rd_unit_i, rd_slot_i, rd_beat_i)),
      .rd_data_o(rd_data)
    );
    assign {rd_mask_o, rd_data_o} = rd_data;

    `ASSERT(slots_conserved, !free_valid_i || busy_q[free_unit_i][bits(Slots)'(free_slot_i)])
  end else begin : gen_no_payload
    logic unused;
    assign idle_o    = !valid_q;
    assign slot_free = 1'b1;
    assign slot      = '0;
    assign rd_data_o = '0;
    assign rd_mask_o = '0;
    assign unused    = ^{header_q.mask, rx_data_i, rd_unit_i, rd_slot_i, rd_beat_i, free_valid_i, free_unit_i, free_slot_i,
                         drop_valid_i, drop_slot_i};
  end

  // Stability of a stalled beat is required only where it matters: the header of a first beat, and used payload.
  header_t                 stable_header_bits;
  logic [PayloadWidth-1:0] stable_data_bits;

  assign stable_header_bits = is_first_beat ? rx_header_i : '0;
  assign stable_data_bits   = HasPayload && (!is_first_beat || has_payload(rx_header_i.message)) ? rx_data_i : '0;

  `ASSUME_STABLE(stable_header, rx_valid_i, rx_ready_o, stable_header_bits,
    ("dcs: the header on circuit %0d was not stable until it was taken", Circuit))
  `ASSUME_STABLE(stable_data, rx_valid_i, rx_ready_o, stable_data_bits,
    ("dcs: the bytes on circuit %0d were not stable until they were taken", Circuit))
  `ASSUME_STABLE(stable_last, rx_valid_i, rx_ready_o, rx_last_i,
    ("dcs: the mark of the last beat on circuit %0d was not stable until it was taken", Circuit))
  `REPORT_OR(message_legal, reject_o != RejectMessage,
    ("dcs: message %0d does not come by circuit %0d", header_q.message, Circuit))
  `REPORT_OR(length_legal, reject_o != RejectLength,
    ("dcs: message %0d on circuit %0d has a wrong number of beats", header_q.message, Circuit))
  `REPORT_OR(remote_legal, reject_o != RejectRemote, ("dcs: there is no remote %0d", header_q.remote))
  `REPORT_OR(line_of_slice, reject_o != RejectLine || header_q.line[0] == 1'(Slice),
    ("dcs: line %0d belongs to the other slice", header_q.line))
  `REPORT_OR(line_in_range, reject_o != RejectLine || header_q.line[0] != 1'(Slice),
    ("dcs: line %0d lies outside the home's range", header_q.line))
endmodule : dcs_ingress
