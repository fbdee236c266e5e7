// Proof of dcs_ingress, for any input:
// - The payload of a message is stable in its slot until the slot is freed, and no slot is allocated twice.
// - No unit sees a message that is addressed to another unit or has an illegal number of beats.
// - A dropped message does not stall the circuit.
// - A beat is decoded as a header if and only if the previous beat was marked last.

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
  input  logic [UnitWidth-1:0]            unit_i,   // the watched slot: arbitrary and constant
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

  home_pkg::reject_e              reject;
  home_pkg::header_t              reject_header;
  logic                           unused_dispatched;
  logic [7:0]                     unused_message;
  logic [1:0]                     unused_stall;

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
    .rx_ready_o          (rx_ready),
    .rx_header_i,
    .rx_data_i,
    .rx_last_i,
    .unit_valid_o        (unit_valid),
    .unit_ready_i,
    .unit_event_o        (unit_event),
    .unit_line_o         (unit_line),
    .unit_slot_o         (unit_slot),
    .rd_unit_i           (unit_i),
    .rd_slot_i           (slot_i),
    .rd_beat_i,
    .rd_data_o           (rd_data),
    .rd_mask_o           (rd_mask),
    .free_valid_i,
    .free_unit_i,
    .free_slot_i,
    .drop_valid_i,
    .drop_slot_i,
    .reject_o            (reject),
    .reject_header_o     (reject_header),
    .dispatched_o        (unused_dispatched),
    .dispatched_message_o(unused_message),
    .stall_unit_o        (unused_stall[0]),
    .stall_slot_o        (unused_stall[1]),
    .idle_o              (idle)
  );

  logic [UnitWidth-1:0] unit_q;
  logic [SlotWidth-1:0] slot_q;
  always_ff @(posedge clk_i) begin
    unit_q <= unit_i;
    slot_q <= slot_i;
  end
  `ASSUME_OR(slot_constant, unit_i == unit_q && slot_i == slot_q && 32'(unit_i) < Units && 32'(slot_i) < Slots,
    ("the slot changes"))

  // Reference model of the input: current beat, its position in the message, and first payload beat.
  logic                    valid_q, last_q, accept, has_payload, header_legal, last_legal;
  logic [1:0]              beat_q;             // saturates at 3
  logic                    lengths_legal_q;    // all earlier beats of the message had a legal position
  home_pkg::header_t       header_q;
  logic [PayloadWidth-1:0] data_q, first_data_q;
  logic [UnitWidth-1:0]    unit;

  assign accept      = valid_q && rx_ready;
  assign has_payload = header_q.message == 8'd1;
  assign unit        = UnitWidth'(header_q.line >> 1);
  // The slice has the even lines, four per unit.
  assign header_legal = header_q.message <= 8'd1 && header_q.remote == '0 && !header_q.line[0]
                && header_q.line >> (3 + $clog2(Units)) == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q         <= 1'b0;
      beat_q          <= '0;
      lengths_legal_q <= 1'b1;
    end else begin
      if (rx_ready) valid_q <= rx_valid_i;
      if (accept) begin
        beat_q          <= last_q ? '0 : beat_q + 2'(beat_q != 2'd3);
        lengths_legal_q <= last_q || lengths_legal_q && last_legal;
      end
    end
    if (rx_ready && rx_valid_i) begin
      data_q <= rx_data_i;
      last_q <= rx_last_i;
      if (valid_q ? last_q : beat_q == '0) header_q <= rx_header_i;
    end
    if (accept && beat_q == '0) first_data_q <= data_q;
  end
  assign last_legal = last_q == (beat_q == 2'(has_payload));

  // Allocated slots of each unit; payload and mask stored in the watched slot.
  logic [Units-1:0][Slots-1:0]        allocated_q;
  logic [1:0][PayloadWidth-1:0]       stored_data_q;
  logic [15:0]                        stored_mask_q;
  logic                               dispatched, stores_watched;

  logic legal;    // the message is legal up to this beat
  assign legal          = header_legal && lengths_legal_q && last_legal;
  assign dispatched     = unit_valid != '0 && (unit_valid & unit_ready_i) == unit_valid && has_payload;
  assign stores_watched = dispatched && unit == unit_i && unit_slot == slot_i;

  always_ff @(posedge clk_i) begin
    for (int unsigned u = 0; u < Units; u++) begin
      for (int unsigned i = 0; i < Slots; i++) begin
        if (!rst_ni || free_valid_i && free_unit_i == UnitWidth'(u) && free_slot_i == SlotWidth'(i)
                    || drop_valid_i[u] && drop_slot_i[u] == SlotWidth'(i)) allocated_q[u][i] <= 1'b0;
        if (rst_ni && dispatched && unit == UnitWidth'(u) && unit_slot == SlotWidth'(i)) allocated_q[u][i] <= 1'b1;
      end
    end
    if (stores_watched) begin
      stored_data_q <= {data_q, first_data_q};
      stored_mask_q <= header_q.mask;
    end
  end

  // A unit frees only allocated slots.
  `ASSUME_OR(free_is_allocated, !free_valid_i || allocated_q[free_unit_i][free_slot_i], ("not its own"))
  for (genvar u = 0; u < Units; u++) begin : gen_unit
    `ASSUME_OR(drop_is_allocated, !drop_valid_i[u] || allocated_q[u][drop_slot_i[u]], ("not its own"))
  end

  `ASSERT(dispatch_to_addressed_unit, unit_valid == '0 || unit_valid == Units'(1) << unit && legal && last_q)
  // A dropped message is reported once, with its header, and never stalls.
  `ASSERT(reject_reported_once,
    (reject != home_pkg::RejectNone) == (valid_q && (header_legal ? lengths_legal_q && !last_legal : beat_q == '0))
    && (reject == home_pkg::RejectNone || reject_header == header_q))
  `ASSERT(reject_never_stalls, !valid_q || legal || rx_ready)
  `ASSERT(slot_not_reused, !dispatched || !allocated_q[unit][unit_slot])
  `ASSERT(payload_stable, !allocated_q[unit_i][slot_i] || rd_data == stored_data_q[rd_beat_i]
    && rd_mask == (rd_beat_i ? stored_mask_q[15:8] : stored_mask_q[7:0]))
  `ASSERT(idle_means_empty, !idle || allocated_q == '0 && !valid_q)
  // A message stalls only if its unit is busy or has no free slot.
  `ASSERT(stall_has_reason, !valid_q || rx_ready
    || legal && (!unit_ready_i[unit] || has_payload && beat_q == '0 && allocated_q[unit] == '1))

  // Invariants for the induction. The registers of the module agree with the model: the position in the message while
  // all beats were legal, the current beat, and the decoded header from the message's first beat to its last.
  logic in_message;  // at least one beat of the message was accepted, and more follow
  assign in_message = beat_q != '0;
  `ASSERT(valid_matches,
    u_ingress.valid_q == valid_q && u_ingress.first_q == !in_message && (in_message || u_ingress.beat_q == '0)
    && (!header_legal || !lengths_legal_q || u_ingress.beat_q == beat_q[0]))
  `ASSERT(data_matches, !valid_q || u_ingress.gen_payload.data_q == data_q && u_ingress.last_q == last_q)
  `ASSERT(header_matches, !valid_q && !in_message
    || u_ingress.header_q == header_q && u_ingress.has_payload_q == has_payload
       && u_ingress.legal_q == (header_legal && lengths_legal_q)
       && (u_ingress.reject_q == home_pkg::RejectNone) == header_legal)
  // A message with only legal beats has no surplus beat.
  `ASSERT(no_surplus_beat, !lengths_legal_q || !(valid_q || in_message) || beat_q <= 2'(has_payload))
  // Between messages, no earlier beat is remembered as illegal.
  `ASSERT(first_beat_legal, lengths_legal_q || in_message)
  // The module's busy slots are the allocated ones and the one that a message of several beats is being written to.
  for (genvar u = 0; u < Units; u++) begin : gen_busy
    for (genvar i = 0; i < Slots; i++) begin : gen_slot
      logic allocating;
      assign allocating = in_message && header_legal && lengths_legal_q
                       && unit == UnitWidth'(u) && u_ingress.slot_q == SlotWidth'(i);
      `ASSERT(busy_matches, u_ingress.gen_payload.busy_q[u][i] == (allocated_q[u][i] || allocating))
      `ASSERT(not_allocated_twice, !allocated_q[u][i] || !allocating)
    end
  end
  // The RAM holds the payload and mask of the watched slot while it is allocated, and the first beat while the message
  // arrives. Its address has the fields unit, slot and beat.
  localparam int unsigned SlotBits = unsigned'($clog2(Slots));
  logic [home_pkg::bits(Units * 2 ** SlotBits * Beats)-1:0] ram_addr;
  logic [PayloadWidth+MaskWidth-1:0] low, high;
  assign ram_addr = $bits(ram_addr)'((32'(unit_i) << (SlotBits + 1)) | ((Slots == 1 ? 0 : 32'(slot_i)) << 1));
  assign low      = u_ingress.gen_payload.u_payload.words_q[ram_addr];
  assign high     = u_ingress.gen_payload.u_payload.words_q[ram_addr | 1'b1];
  `ASSERT(payload_in_ram, !allocated_q[unit_i][slot_i]
    || low == {stored_mask_q[7:0], stored_data_q[0]} && high == {stored_mask_q[15:8], stored_data_q[1]})
  `ASSERT(first_beat_in_ram,
    !(in_message && header_legal && lengths_legal_q && unit == unit_i && u_ingress.slot_q == slot_i)
    || low == {header_q.mask[7:0], first_data_q})
endmodule : dcs_ingress_proof
