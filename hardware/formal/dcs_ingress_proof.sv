// Payload of a message stays in its slot until the slot is freed, and no slot is allocated twice.
// For any input, no unit sees a message that is not addressed to it or has a wrong length, a dropped message does not stall
// the circuit, and the beat after a beat marked last, and only that one, is decoded as a header.

`include "assertions.svh"

module dcs_ingress_proof #(
  parameter int unsigned Units = 2,
  parameter int unsigned Slots = 2,

  localparam int unsigned Beats        = 2,
  localparam int unsigned PayloadWidth = 2,
  localparam int unsigned MaskWidth    = 16 / Beats,
  localparam int unsigned UnitWidth    = home_pkg::bits(Units),
  localparam int unsigned SlotWidth    = home_pkg::bits(Slots)
) (
  input  logic                            clk_i,
  input  logic                            rx_valid_i,
  input  home_pkg::header_t               rx_header_i,
  input  logic [PayloadWidth-1:0]         rx_data_i,
  input  logic                            rx_last_i,
  input  logic [Units-1:0]                unit_ready_i,
  input  logic                            rd_beat_i,
  input  logic                            free_valid_i,
  input  logic [UnitWidth-1:0]            free_unit_i,
  input  logic [SlotWidth-1:0]            free_slot_i,
  input  logic [Units-1:0]                drop_valid_i,
  input  logic [Units-1:0][SlotWidth-1:0] drop_slot_i,
  input  logic [UnitWidth-1:0]            unit_i,   // an arbitrary slot, constant
  input  logic [SlotWidth-1:0]            slot_i
);
  // Two messages, one with payload.
  localparam home_pkg::protocol_t Protocol = '{
    messages:   8'd2,
    rx_payload: 4'b0001,
    payload:    64'b10,
    circuit:    {64'd0, 64'd0, 64'd0, 64'b11},
    default:    '0
  };

  // Reset in the first cycle only.
  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic                           rx_ready, unit_event, idle;
  logic [Units-1:0]               unit_valid;
  logic [1:0]                     unit_line;
  logic [SlotWidth-1:0]           unit_slot;
  logic [PayloadWidth-1:0]        rd_data;
  logic [MaskWidth-1:0]           rd_mask;

  home_pkg::wrong_e               wrong;
  home_pkg::header_t              wrong_header;
  logic                           unused_seen;
  logic [7:0]                     unused_message;
  logic [1:0]                     unused_waits;

  dcs_ingress #(
    .Protocol    (Protocol),
    .Circuit     (0),
    .Units       (Units),
    .Slots       (Slots),
    .SlotWidth   (SlotWidth),
    .PayloadWidth(PayloadWidth),
    .Beats       (Beats),
    .EventWidth  (1),
    .LineWidth   (2)
  ) u_ingress (
    .clk_i,
    .rst_ni,
    .rx_valid_i,
    .rx_ready_o  (rx_ready),
    .rx_header_i,
    .rx_data_i,
    .rx_last_i,
    .unit_valid_o(unit_valid),
    .unit_ready_i,
    .unit_event_o(unit_event),
    .unit_line_o (unit_line),
    .unit_slot_o (unit_slot),
    .rd_unit_i   (unit_i),
    .rd_slot_i   (slot_i),
    .rd_beat_i,
    .rd_data_o   (rd_data),
    .rd_mask_o   (rd_mask),
    .free_valid_i,
    .free_unit_i,
    .free_slot_i,
    .drop_valid_i,
    .drop_slot_i,
    .wrong_o       (wrong),
    .wrong_header_o(wrong_header),
    .seen_o        (unused_seen),
    .seen_message_o(unused_message),
    .waits_unit_o  (unused_waits[0]),
    .waits_slot_o  (unused_waits[1]),
    .idle_o      (idle)
  );

  logic [UnitWidth-1:0] unit_q;
  logic [SlotWidth-1:0] slot_q;
  always_ff @(posedge clk_i) begin
    unit_q <= unit_i;
    slot_q <= slot_i;
  end
  `ASSUME_OR(same, unit_i == unit_q && slot_i == slot_q && 32'(unit_i) < Units && 32'(slot_i) < Slots, ("the slot changes"))

  // Input seen at the ports: the current beat, its position in its message, and the previous beat.
  logic                    valid_q, last_q, take, carries, known, fits;
  logic [1:0]              beat_q;      // 3: the fourth or a later one
  logic                    fitted_q;    // all earlier beats of the message had a legal position
  home_pkg::header_t       header_q;
  logic [PayloadWidth-1:0] data_q, first_q;
  logic [UnitWidth-1:0]    unit;

  assign take    = valid_q && rx_ready;
  assign carries = header_q.message == 8'd1;
  assign unit    = UnitWidth'(header_q.line >> 1);
  // The slice is that of the even lines, which has four of each unit.
  assign known   = header_q.message <= 8'd1 && header_q.remote == '0 && !header_q.line[0]
                && header_q.line >> (3 + $clog2(Units)) == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q  <= 1'b0;
      beat_q   <= '0;
      fitted_q <= 1'b1;
    end else begin
      if (rx_ready) valid_q <= rx_valid_i;
      if (take) begin
        beat_q   <= last_q ? '0 : beat_q + 2'(beat_q != 2'd3);
        fitted_q <= last_q || fitted_q && fits;
      end
    end
    if (rx_ready && rx_valid_i) begin
      data_q <= rx_data_i;
      last_q <= rx_last_i;
      if (valid_q ? last_q : beat_q == '0) header_q <= rx_header_i;
    end
    if (take && beat_q == '0) first_q <= data_q;
  end
  assign fits = last_q == (beat_q == 2'(carries));

  // Allocated slots of each unit, and the payload stored in the watched slot.
  logic [Units-1:0][Slots-1:0]        has_q;
  logic [1:0][PayloadWidth-1:0]       kept_q;
  logic [15:0]                        mask_q;
  logic                               given, watched;

  logic good;    // the message is legal so far
  assign good    = known && fitted_q && fits;
  assign given   = unit_valid != '0 && (unit_valid & unit_ready_i) == unit_valid && carries;
  assign watched = given && unit == unit_i && unit_slot == slot_i;

  always_ff @(posedge clk_i) begin
    for (int unsigned u = 0; u < Units; u++) begin
      for (int unsigned i = 0; i < Slots; i++) begin
        if (!rst_ni || free_valid_i && free_unit_i == UnitWidth'(u) && free_slot_i == SlotWidth'(i)
                    || drop_valid_i[u] && drop_slot_i[u] == SlotWidth'(i)) has_q[u][i] <= 1'b0;
        if (rst_ni && given && unit == UnitWidth'(u) && unit_slot == SlotWidth'(i)) has_q[u][i] <= 1'b1;
      end
    end
    if (watched) begin
      kept_q <= {data_q, first_q};
      mask_q <= header_q.mask;
    end
  end

  // A unit frees only slots that it holds.
  `ASSUME_OR(frees_its_own, !free_valid_i || has_q[free_unit_i][free_slot_i], ("not its own"))
  for (genvar u = 0; u < Units; u++) begin : gen_unit
    `ASSUME_OR(drops_its_own, !drop_valid_i[u] || has_q[u][drop_slot_i[u]], ("not its own"))
  end

  `ASSERT(one_unit, unit_valid == '0 || unit_valid == Units'(1) << unit && good && last_q)
  // A dropped message is reported once, with its header, and takes one cycle per beat.
  `ASSERT(tells_what_is_dropped, (wrong != home_pkg::WrongNone) == (valid_q && (known ? fitted_q && !fits : beat_q == '0))
    && (wrong == home_pkg::WrongNone || wrong_header == header_q))
  `ASSERT(drops_at_once, !valid_q || good || rx_ready)
  `ASSERT(given_once, !given || !has_q[unit][unit_slot])
  `ASSERT(stays, !has_q[unit_i][slot_i] || rd_data == kept_q[rd_beat_i] && rd_mask == (rd_beat_i ? mask_q[15:8] : mask_q[7:0]))
  `ASSERT(nothing_left, !idle || has_q == '0 && !valid_q)
  // Only a busy unit, or the lack of a slot of that unit, stalls a message.
  `ASSERT(goes_on, !valid_q || rx_ready || good && (!unit_ready_i[unit] || carries && beat_q == '0 && has_q[unit] == '1))

  // Inductive strengthening.
  logic middle;  // within a message: at least one beat was taken, and more follow
  assign middle = beat_q != '0;
  `ASSERT(valid, u_ingress.valid_q == valid_q && u_ingress.first_q == !middle && (middle || u_ingress.beat_q == '0)
    && (!known || !fitted_q || u_ingress.beat_q == beat_q[0]))
  `ASSERT(data, !valid_q || u_ingress.gen_bytes.data_q == data_q && u_ingress.last_q == last_q)
  `ASSERT(header, !valid_q && !middle || u_ingress.header_q == header_q && u_ingress.carries_q == carries
    && u_ingress.known_q == (known && fitted_q) && (u_ingress.why_q == home_pkg::WrongNone) == known)
  // A message whose beats were all legal so far has no surplus beat.
  `ASSERT(fitted, !fitted_q || !(valid_q || middle) || beat_q <= 2'(carries))
  `ASSERT(first_has_fitted, fitted_q || middle)
  for (genvar u = 0; u < Units; u++) begin : gen_busy
    for (genvar i = 0; i < Slots; i++) begin : gen_slot
      logic coming;
      assign coming = middle && known && fitted_q && unit == UnitWidth'(u) && u_ingress.slot_q == SlotWidth'(i);
      `ASSERT(busy, u_ingress.gen_bytes.busy_q[u][i] == (has_q[u][i] || coming))
      `ASSERT(not_both, !has_q[u][i] || !coming)
    end
  end
  localparam int unsigned SlotBits = unsigned'($clog2(Slots));
  logic [home_pkg::bits(Units * 2 ** SlotBits * Beats)-1:0] place;
  logic [PayloadWidth+MaskWidth-1:0] low, high;
  assign place = $bits(place)'((32'(unit_i) << (SlotBits + 1)) | ((Slots == 1 ? 0 : 32'(slot_i)) << 1));
  assign low   = u_ingress.gen_bytes.u_bytes.words_q[place];
  assign high  = u_ingress.gen_bytes.u_bytes.words_q[place | 1'b1];
  `ASSERT(in_place, !has_q[unit_i][slot_i] || low == {mask_q[7:0], kept_q[0]} && high == {mask_q[15:8], kept_q[1]})
  `ASSERT(half_in_place, !(middle && known && fitted_q && unit == unit_i && u_ingress.slot_q == slot_i) || low == {header_q.mask[7:0], first_q})
endmodule : dcs_ingress_proof
