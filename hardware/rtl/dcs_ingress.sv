// A circuit to the home, at its slice: headers go to the units, payload stays here until memory takes it.
//
// The first beat of a message has its header and, with payload, the line's first bytes. More payload beats
// follow, and the last is marked. The header is dispatched with the last beat. A message with payload needs a free slot
// of its unit; without one, the circuit stalls.
//
// A message of another circuit, about a line of another slice, or with a number of beats that differs from its message
// number's, is dropped: its beats are taken up to the one marked last, and no unit sees it. So no payload beat is ever
// decoded as a header, even if the header before it is illegal.

`include "assertions.svh"

module dcs_ingress #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter int unsigned Circuit      = 0,
  parameter int unsigned Slice        = 0,
  parameter int unsigned Units        = 1,
  parameter int unsigned Slots        = 1,    // payload slots per unit
  parameter int unsigned SlotWidth    = 1,
  parameter int unsigned PayloadWidth = 512,
  parameter int unsigned Beats        = 2,    // payload beats per line
  parameter int unsigned EventWidth   = 5,
  parameter int unsigned LineWidth    = 23,   // width of a line's number within its unit

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
  input  logic                                rx_last_i,     // last beat of the message

  output logic [Units-1:0]                    unit_valid_o,
  input  logic [Units-1:0]                    unit_ready_i,
  output logic [EventWidth-1:0]               unit_event_o,
  output logic [LineWidth-1:0]                unit_line_o,
  output logic [SlotWidth-1:0]                unit_slot_o,

  // Payload of a slot, in the same cycle.
  input  logic [UnitWidth-1:0]                rd_unit_i,
  input  logic [SlotWidth-1:0]                rd_slot_i,
  input  logic [home_pkg::bits(Beats)-1:0]    rd_beat_i,
  output logic [PayloadWidth-1:0]             rd_data_o,
  output logic [MaskWidth-1:0]                rd_mask_o,

  // Release of a slot: its payload was taken, or is not needed.
  input  logic                                free_valid_i,
  input  logic [UnitWidth-1:0]                free_unit_i,
  input  logic [SlotWidth-1:0]                free_slot_i,
  input  logic [Units-1:0]                    drop_valid_i,
  input  logic [Units-1:0][SlotWidth-1:0]     drop_slot_i,

  // Reason for which the current message is dropped; one cycle per message.
  output home_pkg::wrong_e                    wrong_o,
  output home_pkg::header_t                   wrong_header_o,

  // For counters: a message was dispatched in the cycle before; a beat stalled because the unit still holds a message of
  // this circuit, or because no payload slot was free.
  output logic                                seen_o,
  output logic [7:0]                          seen_message_o,
  output logic                                waits_unit_o,
  output logic                                waits_slot_o,

  output logic                                idle_o   // no message is held
);
  import home_pkg::*;

  localparam int unsigned BeatWidth = bits(Beats);
  localparam bit          HasBytes  = Protocol.rx_payload[Circuit];
  // A line's number has, from bit 0, the slice's number, the unit's number, and the line within the unit.
  localparam int unsigned Shift     = 1 + UnitBits;

  logic                 valid_q, take, first_q, last_q;   // the current beat is a message's first; its last
  logic                 fits;                // it is marked last exactly if its message number says so
  logic                 hands_on;            // its message is dispatched
  header_t              header_q;
  wrong_e               why_q;               // reason for dropping it, if any
  logic                 known_q, carries_q;  // it is legal; and has payload by its message number
  logic                 keeps;               // its payload is stored
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

  // A beat at an illegal position reports the error; the rest of its message is dropped.
  assign wrong_o        = !valid_q ? WrongNone : known_q ? (fits ? WrongNone : WrongLength) : first_q ? why_q : WrongNone;
  assign wrong_header_o = header_q;

  function automatic logic carries(input logic [7:0] message);
    return message < 8'(MaxEvents) && Protocol.payload[message[5:0]];
  endfunction

  // Error of the beat at the port.
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

  logic starts;   // the beat at the port is the first of a message
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
    // Slot numbers are rounded up to a power of two, so that no address is calculated.
    localparam int unsigned SlotBits  = $clog2(Slots);
    localparam int unsigned BeatBits  = $clog2(Beats);
    localparam int unsigned Depth     = Units * 2 ** SlotBits * Beats;
    localparam int unsigned AddrWidth = bits(Depth);

    logic [Units-1:0][Slots-1:0]         busy_d, busy_q;
    logic [PayloadWidth-1:0]             data_q;
    logic [PayloadWidth+MaskWidth-1:0]   wr_data, rd_data;
    logic                                gives_up;   // the slot of a message with a wrong length is released

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

  // Stability of a waiting beat is required only for used fields: the header of a first beat, and payload if any.
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
    ("dcs: message %0d on circuit %0d has a wrong number of beats", header_q.message, Circuit))
  `NOTICE_OR(remote_known, wrong_o != WrongRemote, ("dcs: there is no remote %0d", header_q.remote))
  `NOTICE_OR(line_of_slice, wrong_o != WrongLine || header_q.line[0] == 1'(Slice),
    ("dcs: line %0d belongs to the other slice", header_q.line))
  `NOTICE_OR(line_in_range, wrong_o != WrongLine || header_q.line[0] != 1'(Slice),
    ("dcs: line %0d lies outside the home's range", header_q.line))
endmodule : dcs_ingress
