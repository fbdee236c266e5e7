// A circuit toward the home, at its slice: headers go to the units, bytes stay here until memory takes them.
//
// The first beat of a message has its header and, if it carries the line, the line's first bytes; more beats of bytes
// follow, and the last is marked. The header is handed on with the last beat. A message with bytes is taken when its unit
// has a slot for them, and until then the circuit waits.
//
// A message that is not for this circuit, or about a line that is not the slice's, or that has more or fewer beats than its
// number says, is dropped: its beats are taken up to the one that is marked as the last, and no unit sees it. So no beat
// of bytes is ever taken for a header, whatever is wrong with the header before it.

`include "assertions.svh"

module dcs_ingress #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter int unsigned Circuit      = 0,
  parameter int unsigned Slice        = 0,
  parameter int unsigned Units        = 1,
  parameter int unsigned Slots        = 1,    // for bytes, of each unit
  parameter int unsigned SlotWidth    = 1,
  parameter int unsigned PayloadWidth = 512,
  parameter int unsigned Beats        = 2,    // of payload, to a line
  parameter int unsigned EventWidth   = 5,
  parameter int unsigned LineWidth    = 23,   // of a line's number within its unit

  localparam int unsigned MaskWidth   = 16 / Beats,
  localparam int unsigned UnitWidth   = home_pkg::bits(Units),
  localparam int unsigned UnitBits    = $clog2(Units)
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  input  logic                                rx_valid_i,
  output logic                                rx_ready_o,
  input  home_pkg::header_t                   rx_header_i,
  input  logic [PayloadWidth-1:0]             rx_data_i,
  input  logic                                rx_last_i,     // it is the message's last beat

  output logic [Units-1:0]                    unit_valid_o,
  input  logic [Units-1:0]                    unit_ready_i,
  output logic [EventWidth-1:0]               unit_event_o,
  output logic [LineWidth-1:0]                unit_line_o,
  output logic [SlotWidth-1:0]                unit_slot_o,

  // Bytes of a slot, in the same cycle.
  input  logic [UnitWidth-1:0]                rd_unit_i,
  input  logic [SlotWidth-1:0]                rd_slot_i,
  input  logic [home_pkg::bits(Beats)-1:0]    rd_beat_i,
  output logic [PayloadWidth-1:0]             rd_data_o,
  output logic [MaskWidth-1:0]                rd_mask_o,

  // Slots whose bytes were taken, or that nobody needs.
  input  logic                                free_valid_i,
  input  logic [UnitWidth-1:0]                free_unit_i,
  input  logic [SlotWidth-1:0]                free_slot_i,
  input  logic [Units-1:0]                    drop_valid_i,
  input  logic [Units-1:0][SlotWidth-1:0]     drop_slot_i,

  // The message in hand is dropped; in one cycle for each.
  output home_pkg::wrong_e                    wrong_o,
  output home_pkg::header_t                   wrong_header_o,

  // For counters: a message was handed on in the cycle before; a beat was not taken, because the unit has one of
  // this circuit in hand, or because there was no room for the bytes.
  output logic                                seen_o,
  output logic [7:0]                          seen_message_o,
  output logic                                waits_unit_o,
  output logic                                waits_slot_o,

  output logic                                idle_o   // nothing is here
);
  import home_pkg::*;

  localparam int unsigned BeatWidth = bits(Beats);
  localparam bit          HasBytes  = Protocol.rx_payload[Circuit];
  // The number of the slice, then that of the unit, then the line within it.
  localparam int unsigned Shift     = 1 + UnitBits;

  logic                 valid_q, take, first_q, last_q;   // the beat in hand is a message's first, and its last
  logic                 fits;                // by its number it is the last one if it is marked so, and only then
  logic                 hands_on;            // its message is
  header_t              header_q;
  wrong_e               why_q;               // it is dropped, if it is
  logic                 known_q, carries_q;  // it is not; and by its number it has bytes
  logic                 keeps;               // its bytes are kept
  logic [BeatWidth-1:0] beat_q, beat_next;
  logic [UnitWidth-1:0] unit;
  logic                 unit_ready, slot_free;
  logic [SlotWidth-1:0] slot, slot_q, slot_now;

  assign unit      = UnitBits == 0 ? '0 : UnitWidth'(header_q.line >> 1);
  assign fits      = last_q == (!carries_q || beat_q == BeatWidth'(Beats - 1));
  assign keeps     = HasBytes && known_q && carries_q && fits;
  assign beat_next = last_q ? '0 : beat_q + 1'b1;
  assign slot_now  = first_q ? slot : slot_q;

  assign unit_ready = unit_ready_i[unit];
  assign take       = valid_q && (!known_q || !fits || (!last_q || unit_ready) && (!keeps || !first_q || slot_free));
  assign rx_ready_o = !valid_q || take;
  assign hands_on   = known_q && fits && last_q;

  always_comb begin
    unit_valid_o       = '0;
    unit_valid_o[unit] = valid_q && hands_on && (!keeps || !first_q || slot_free);
  end
  assign unit_event_o = EventWidth'(header_q.message);
  assign unit_line_o  = LineWidth'(header_q.line >> Shift);
  assign unit_slot_o  = slot_now;

  // A beat that does not fit reports the error; the rest of its message is dropped.
  assign wrong_o        = !valid_q ? WrongNone : known_q ? (fits ? WrongNone : WrongLength) : first_q ? why_q : WrongNone;
  assign wrong_header_o = header_q;

  function automatic logic carries(input logic [7:0] message);
    return message < 8'(MaxEvents) && Protocol.payload[message[5:0]];
  endfunction

  // What is wrong with what stands at the port.
  wrong_e why;
  always_comb begin
    why = WrongNone;
    if (rx_header_i.line[0] != 1'(Slice) || rx_header_i.line >> (Shift + LineWidth) != '0) why = WrongLine;
    if (rx_header_i.remote != '0) why = WrongRemote;
    if (rx_header_i.message >= 8'(MaxEvents) || !Protocol.circuit[Circuit][rx_header_i.message[5:0]]) why = WrongNumber;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      first_q <= 1'b1;
      beat_q  <= '0;
    end else begin
      if (rx_ready_o) valid_q <= rx_valid_i;
      if (take) first_q <= last_q;
      if (take) beat_q <= beat_next;
    end
  end

  logic waits_q, full_q;
  always_ff @(posedge clk_i) begin
    seen_o  <= rst_ni && take && hands_on;
    waits_q <= rst_ni && rx_valid_i && !rx_ready_o;
    full_q  <= keeps && first_q && !slot_free;
  end
  always_ff @(posedge clk_i) seen_message_o <= header_q.message;
  assign waits_unit_o = waits_q && !full_q;
  assign waits_slot_o = waits_q && full_q;

  logic starts;   // what stands at the port is the first beat of a message
  assign starts = valid_q ? last_q : first_q;

  always_ff @(posedge clk_i) begin
    if (rx_ready_o) last_q <= rx_last_i;
    if (rx_ready_o && rx_valid_i && starts) begin
      header_q  <= rx_header_i;
      why_q     <= why;
      known_q   <= why == WrongNone;
      carries_q <= carries(rx_header_i.message);
    end else if (take && !fits) begin
      known_q   <= 1'b0;
    end
    if (take && first_q) slot_q <= slot;
  end

  if (HasBytes) begin : gen_bytes
    // Numbers of slots are rounded up to a power of two, so that no address is calculated.
    localparam int unsigned SlotBits  = $clog2(Slots);
    localparam int unsigned BeatBits  = $clog2(Beats);
    localparam int unsigned Depth     = Units * 2 ** SlotBits * Beats;
    localparam int unsigned AddrWidth = bits(Depth);

    logic [Units-1:0][Slots-1:0]         busy_d, busy_q;
    logic [PayloadWidth-1:0]             data_q;
    logic [PayloadWidth+MaskWidth-1:0]   wr_data, rd_data;
    logic                                gives_up;   // the slot of a message that turns out to be too short or too long

    assign gives_up = valid_q && known_q && carries_q && !fits && !first_q;

    function automatic logic [AddrWidth-1:0] address(
      input logic [UnitWidth-1:0] of_unit, input logic [SlotWidth-1:0] of_slot, input logic [BeatWidth-1:0] beat);
      // Calculated in 32 bits, because a single slot or beat leaves an address that is narrower than their numbers.
      logic [31:0] place;
      place = Slots == 1 ? '0 : 32'(of_slot);
      return AddrWidth'(32'(of_unit) << (SlotBits + BeatBits) | place << BeatBits | 32'(beat));
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
            || (gives_up && unit == UnitWidth'(u) && slot_q == SlotWidth'(i))) busy_d[u][i] = 1'b0;
          if (take && keeps && first_q && unit == UnitWidth'(u) && slot == SlotWidth'(i)) busy_d[u][i] = 1'b1;
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
    ) u_bytes (
      .clk_i,
      .wr_en_i  (take && keeps),
      .wr_addr_i(address(unit, slot_now, beat_q)),
      .wr_data_i(wr_data),
      .rd_addr_i(address(rd_unit_i, rd_slot_i, rd_beat_i)),
      .rd_data_o(rd_data)
    );
    assign {rd_mask_o, rd_data_o} = rd_data;

    `ASSERT(slots_conserved, !free_valid_i || busy_q[free_unit_i][bits(Slots)'(free_slot_i)])
  end else begin : gen_no_bytes
    logic unused;
    assign idle_o    = !valid_q;
    assign slot_free = 1'b1;
    assign slot      = '0;
    assign rd_data_o = '0;
    assign rd_mask_o = '0;
    assign unused    = ^{header_q.mask, rx_data_i, rd_unit_i, rd_slot_i, rd_beat_i, free_valid_i, free_unit_i, free_slot_i,
                         drop_valid_i, drop_slot_i};
  end

  // What matters of a beat that waits has to stay: the header of a first beat, and bytes of a message that carries some.
  header_t                 header_kept;
  logic [PayloadWidth-1:0] data_kept;

  assign header_kept = starts ? rx_header_i : '0;
  assign data_kept   = HasBytes && (!starts || carries(rx_header_i.message)) ? rx_data_i : '0;

  `ASSUME_STABLE(stable_header, rx_valid_i, rx_ready_o, header_kept,
    ("dcs: the header on circuit %0d was not stable until it was taken", Circuit))
  `ASSUME_STABLE(stable_data, rx_valid_i, rx_ready_o, data_kept,
    ("dcs: the bytes on circuit %0d were not stable until they were taken", Circuit))
  `ASSUME_STABLE(stable_last, rx_valid_i, rx_ready_o, rx_last_i,
    ("dcs: the mark of the last beat on circuit %0d was not stable until it was taken", Circuit))
  `NOTICE_OR(message_known, wrong_o != WrongNumber,
    ("dcs: message %0d does not come by circuit %0d", header_q.message, Circuit))
  `NOTICE_OR(length_right, wrong_o != WrongLength,
    ("dcs: message %0d on circuit %0d has another number of beats than it should", header_q.message, Circuit))
  `NOTICE_OR(remote_known, wrong_o != WrongRemote, ("dcs: there is no remote %0d", header_q.remote))
  `NOTICE_OR(line_of_slice, wrong_o != WrongLine || header_q.line[0] == 1'(Slice),
    ("dcs: line %0d belongs to the other slice", header_q.line))
  `NOTICE_OR(line_in_range, wrong_o != WrongLine || header_q.line[0] != 1'(Slice),
    ("dcs: line %0d lies outside the home's range", header_q.line))
endmodule : dcs_ingress
