// AXI writes of a directory controller slice (DCS): sends the writes of all units round-robin, with the payload of a
// slot.
//
// A response is dropped and reported if its write is not in flight, or if memory lacks its address or a part of its
// data. So a line is never read before memory has the written data.

`include "assertions.svh"

module dcs_writer #(
  // Parameters of dcs.sv. SlotWidth: width of a payload slot's number; LineWidth: width of a line index within a unit;
  // Beats: per line.
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type                 event_e  = logic,
  parameter int unsigned Units        = 1,
  parameter int unsigned Slice        = 0,
  parameter int unsigned Writes       = 1,
  parameter int unsigned SlotWidth    = 1,
  parameter int unsigned LineWidth    = 23,
  parameter int unsigned PayloadWidth = 512,
  parameter int unsigned Beats        = 2,
  parameter int unsigned AxiIdWidth   = 8,
  parameter int unsigned AxiAddrWidth = 36,

  localparam int unsigned NumRx       = int'(Protocol.rx_circuits),
  localparam int unsigned MaskWidth   = 16 / Beats,
  localparam int unsigned UnitWidth   = home_pkg::bits(Units),
  localparam int unsigned WriteWidth  = home_pkg::bits(Writes)
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  // Write requests of the units: line, write entry, event, permission that the remote keeps, and location of the
  // payload. `unit_done_o` has one bit per write entry, for one cycle.
  input  logic   [Units-1:0]                  unit_valid_i,
  output logic   [Units-1:0]                  unit_ready_o,
  input  logic   [Units-1:0][LineWidth-1:0]   unit_line_i,
  input  logic   [Units-1:0][WriteWidth-1:0]  unit_slot_i,
  input  event_e [Units-1:0]                  unit_event_i,
  input  home_pkg::permission_e [Units-1:0]   unit_permission_i,
  input  logic   [Units-1:0][1:0]             unit_circuit_i,
  input  logic   [Units-1:0][SlotWidth-1:0]   unit_payload_slot_i,
  output logic   [Units-1:0][Writes-1:0]      unit_done_o,

  // Read port of the payload buffers of all circuits, combinational.
  output logic [UnitWidth-1:0]                rd_unit_o,
  output logic [SlotWidth-1:0]                rd_slot_o,
  output logic [home_pkg::bits(Beats)-1:0]    rd_beat_o,
  input  logic [NumRx-1:0][PayloadWidth-1:0]  rd_data_i,
  input  logic [NumRx-1:0][MaskWidth-1:0]     rd_mask_i,

  // Slot release after the last beat was read, by circuit.
  output logic [NumRx-1:0]                    free_valid_o,
  output logic [UnitWidth-1:0]                free_unit_o,
  output logic [SlotWidth-1:0]                free_slot_o,

  // Memory: AXI4 manager, write channels. Each burst is one line; the ID is {unit, write entry}.
  output logic                                aw_valid_o,
  input  logic                                aw_ready_i,
  output logic [AxiIdWidth-1:0]               aw_id_o,
  output logic [AxiAddrWidth-1:0]             aw_addr_o,
  output logic [7:0]                          aw_user_o,   // {permission that the remote keeps, event of the message}
  output logic                                w_valid_o,
  input  logic                                w_ready_i,
  output logic [PayloadWidth-1:0]             w_data_o,
  output logic [PayloadWidth/8-1:0]           w_strb_o,
  output logic                                w_last_o,
  input  logic                                b_valid_i,
  output logic                                b_ready_o,
  input  logic [AxiIdWidth-1:0]               b_id_i,

  // One cycle late: write completed; response rejected, with its AXI ID.
  output logic                                done_o,
  output home_pkg::reject_e                   reject_o,
  output logic [AxiIdWidth-1:0]               reject_id_o
);
  import home_pkg::*;

  localparam int unsigned BeatWidth  = bits(Beats);
  localparam int unsigned LineBits   = $clog2(32'(Protocol.line_bytes));
  localparam int unsigned MaskBytes  = PayloadWidth / 8 / MaskWidth;

  typedef struct packed {
    logic [LineWidth-1:0]  line;
    logic [WriteWidth-1:0] slot;
    event_e                event_id;
    permission_e           permission;
    logic [1:0]            circuit;
    logic [SlotWidth-1:0]  payload_slot;
  } job_t;

  job_t [Units-1:0]     requests;
  job_t                 next_job, job;
  logic                 next_valid, next_accept, job_valid, job_done;
  logic [UnitWidth-1:0] next_unit, unit;
  logic [BeatWidth-1:0] beat_q;
  logic                 data_done_q, address_done_q;
  logic                 load_address, load_data, last;
  logic [NumRx-1:0]     source_circuit;

  for (genvar u = 0; u < Units; u++) begin : gen_request
    assign requests[u] = '{unit_line_i[u], unit_slot_i[u], unit_event_i[u], unit_permission_i[u], unit_circuit_i[u],
                           unit_payload_slot_i[u]};
  end

  stream_arbiter #(
    .Size  (Units),
    .data_t(job_t)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .wr_valid_i(unit_valid_i),
    .wr_ready_o(unit_ready_o),
    .wr_data_i (requests),
    .rd_valid_o(next_valid),
    .rd_ready_i(next_accept),
    .rd_data_o (next_job),
    .rd_index_o(next_unit)
  );

  // The current write is registered, because the look-up of its payload takes most of a cycle.
  assign next_accept = !job_valid || job_done;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)         job_valid <= 1'b0;
    else if (next_accept) job_valid <= next_valid;
  end

  always_ff @(posedge clk_i) begin
    if (next_accept) begin
      job  <= next_job;
      unit <= next_unit;
    end
  end

  // Address and data proceed independently; the next write starts when both have been sent.
  assign last         = beat_q == BeatWidth'(Beats - 1);
  assign load_address = job_valid && !address_done_q && (!aw_valid_o || aw_ready_i);
  assign load_data    = job_valid && !data_done_q && (!w_valid_o || w_ready_i);
  assign job_done     = (address_done_q || load_address) && (data_done_q || load_data && last);

  assign rd_unit_o = unit;
  assign rd_slot_o = job.payload_slot;
  assign rd_beat_o = beat_q;

  for (genvar c = 0; c < NumRx; c++) begin : gen_source
    assign source_circuit[c] = job.circuit == 2'(c);
  end
  always_ff @(posedge clk_i) begin
    free_valid_o <= rst_ni && load_data && last ? source_circuit : '0;
    free_unit_o  <= unit;
    free_slot_o  <= job.payload_slot;
  end

  logic [PayloadWidth-1:0] data;
  logic [MaskWidth-1:0]    mask;
  always_comb begin
    data = '0;
    mask = '0;
    for (int unsigned c = 0; c < NumRx; c++) begin
      if (source_circuit[c]) begin
        data |= rd_data_i[c];
        mask |= rd_mask_i[c];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_q         <= '0;
      data_done_q    <= 1'b0;
      address_done_q <= 1'b0;
      aw_valid_o     <= 1'b0;
      w_valid_o      <= 1'b0;
    end else begin
      if (load_data) beat_q <= last ? '0 : beat_q + 1'b1;
      data_done_q    <= !job_done && (data_done_q || load_data && last);
      address_done_q <= !job_done && (address_done_q || load_address);
      if (!aw_valid_o || aw_ready_i) aw_valid_o <= load_address;
      if (!w_valid_o || w_ready_i) w_valid_o <= load_data;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load_address) begin
      aw_id_o   <= AxiIdWidth'({unit, job.slot});
      aw_addr_o <= AxiAddrWidth'(line_number(home_pkg::LineWidth'(job.line), home_pkg::LineWidth'(unit), Units, Slice)) << LineBits;
      aw_user_o <= {job.permission, 6'(job.event_id)};
    end
    if (load_data) begin
      w_data_o <= data;
      w_last_o <= last;
      for (int unsigned i = 0; i < MaskWidth; i++) w_strb_o[i*MaskBytes+:MaskBytes] <= {MaskBytes{mask[i]}};
    end
  end

  // Outstanding writes whose address, and whose complete data, memory has accepted.
  logic [2**(UnitWidth+WriteWidth)-1:0] has_address_q, has_data_q;
  logic [UnitWidth+WriteWidth-1:0]      w_index_q, b_index;
  logic                                 write_complete;

  assign b_ready_o      = 1'b1;
  assign b_index        = (UnitWidth + WriteWidth)'(b_id_i);
  assign write_complete = b_valid_i && b_id_i >> (UnitWidth + WriteWidth) == '0 && has_address_q[b_index] && has_data_q[b_index];

  always_comb begin
    unit_done_o = '0;
    for (int unsigned u = 0; u < Units; u++) begin
      for (int unsigned i = 0; i < Writes; i++) begin
        unit_done_o[u][i] = write_complete && b_index == {UnitWidth'(u), WriteWidth'(i)};
      end
    end
  end

  always_ff @(posedge clk_i) begin
    done_o   <= rst_ni && write_complete;
    reject_o <= rst_ni && b_valid_i && !write_complete ? RejectWrite : RejectNone;
  end
  always_ff @(posedge clk_i) reject_id_o <= b_id_i;

  always_ff @(posedge clk_i) begin
    if (load_data) w_index_q <= {unit, job.slot};
    if (!rst_ni) begin
      has_address_q <= '0;
      has_data_q    <= '0;
    end else begin
      if (write_complete) begin
        has_address_q[b_index] <= 1'b0;
        has_data_q[b_index]    <= 1'b0;
      end
      if (aw_valid_o && aw_ready_i) has_address_q[(UnitWidth + WriteWidth)'(aw_id_o)] <= 1'b1;
      if (w_valid_o && w_ready_i && w_last_o) has_data_q[w_index_q] <= 1'b1;
    end
  end

  `REPORT_OR(write_id_legal, reject_o != RejectWrite, ("dcs: memory answered a write that is not in flight"))
  `ASSERT_STABLE(stable_aw, aw_valid_o, aw_ready_i, {aw_id_o, aw_addr_o, aw_user_o})
  `ASSERT_STABLE(stable_w, w_valid_o, w_ready_i, {w_data_o, w_strb_o, w_last_o})
endmodule : dcs_writer
