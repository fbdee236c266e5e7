// Transmit side of one circuit at a directory controller slice (DCS): merges the messages of all units round-robin, and
// appends the line data to messages with payload.

`include "assertions.svh"

module dcs_egress #(
  // Parameters of dcs.sv. Circuit: number of the circuit; LineWidth: width of a line index within a unit; Beats: per
  // line.
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type                 send_e   = logic,
  parameter int unsigned Circuit      = 0,
  parameter int unsigned Units        = 1,
  parameter int unsigned Slice        = 0,
  parameter int unsigned Reads        = 2,
  parameter int unsigned LineWidth    = 23,
  parameter int unsigned PayloadWidth = 512,
  parameter int unsigned Beats        = 2,

  localparam int unsigned UnitWidth   = home_pkg::bits(Units),
  localparam int unsigned ReadWidth   = home_pkg::bits(Reads)
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,

  // Messages of the units. `unit_slot_i` is the read entry whose line a message with payload carries.
  input  logic [Units-1:0]                  unit_valid_i,
  output logic [Units-1:0]                  unit_ready_o,
  input  send_e [Units-1:0]                 unit_send_i,
  input  logic [Units-1:0][LineWidth-1:0]   unit_line_i,
  input  logic [Units-1:0][ReadWidth-1:0]   unit_slot_i,
  output logic [Units-1:0][Reads-1:0]       unit_done_o,  // the payload of this read has been sent

  // Read port of the line buffer; data is valid in the next cycle and stable until the next read.
  output logic                              rd_en_o,
  output logic [UnitWidth-1:0]              rd_unit_o,
  output logic [ReadWidth-1:0]              rd_slot_o,
  output logic [home_pkg::bits(Beats)-1:0]  rd_beat_o,
  input  logic [PayloadWidth-1:0]           rd_data_i,

  // Circuit toward the remote.
  output logic                              tx_valid_o,
  input  logic                              tx_ready_i,
  output home_pkg::header_t                 tx_header_o,
  output logic [PayloadWidth-1:0]           tx_data_o,
  output logic                              tx_last_o,    // last beat of the message

  // Performance counters, one cycle late: header placed at the port; port stalled.
  output logic                              sent_o,
  output logic                              stall_o
);
  import home_pkg::*;

  localparam int unsigned BeatWidth  = bits(Beats);
  localparam bit          HasPayload = Protocol.tx_payload[Circuit];

  typedef struct packed {
    send_e                send;
    logic [LineWidth-1:0] line;
    logic [ReadWidth-1:0] slot;
  } job_t;

  job_t [Units-1:0]     requests;
  job_t                 job;
  logic                 job_valid, first, load, port_free, beats_remain_q, has_payload;
  logic [UnitWidth-1:0] unit;
  logic [UnitWidth-1:0] unit_q;
  logic [ReadWidth-1:0] slot_q;
  logic [BeatWidth-1:0] beat_q, beats_left_q;   // index of the next beat, and number of beats left

  for (genvar u = 0; u < Units; u++) begin : gen_request
    assign requests[u] = '{unit_send_i[u], unit_line_i[u], unit_slot_i[u]};
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
    .rd_valid_o(job_valid),
    .rd_ready_i(port_free && !beats_remain_q),
    .rd_data_o (job),
    .rd_index_o(unit)
  );

  // The unit's message is accepted with the first beat; `beats_remain_q` is needed only one cycle later.
  assign has_payload = HasPayload && Protocol.send_payload[4'(job.send)];
  assign port_free   = !tx_valid_o || tx_ready_i;
  assign first       = job_valid && port_free && !beats_remain_q;
  assign load        = first || port_free && beats_remain_q;
  assign rd_en_o     = HasPayload && load;
  assign rd_unit_o   = beats_remain_q ? unit_q : unit;
  assign rd_slot_o   = beats_remain_q ? slot_q : job.slot;
  assign rd_beat_o   = beats_remain_q ? beat_q : '0;

  always_comb begin
    unit_done_o = '0;
    if (Beats == 1) unit_done_o[unit][job.slot] = first && has_payload;
    else            unit_done_o[unit_q][slot_q] = port_free && beats_left_q == BeatWidth'(1);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beats_remain_q <= 1'b0;
      beats_left_q   <= '0;
      tx_valid_o     <= 1'b0;
    end else begin
      if (first) begin
        beats_remain_q <= has_payload && Beats > 1;
        beats_left_q   <= has_payload ? BeatWidth'(Beats - 1) : '0;
      end else if (load) begin
        beats_remain_q <= beats_left_q != BeatWidth'(1);
        beats_left_q   <= beats_left_q - 1'b1;
      end
      if (port_free) tx_valid_o <= load;
    end
  end

  always_ff @(posedge clk_i) begin
    sent_o  <= rst_ni && first;
    stall_o <= rst_ni && tx_valid_o && !tx_ready_i;
  end

  always_ff @(posedge clk_i) begin
    if (load) beat_q <= rd_beat_o + 1'b1;
    if (load) tx_last_o <= beats_remain_q ? beats_left_q == BeatWidth'(1) : !has_payload || Beats == 1;
    if (first) begin
      unit_q      <= unit;
      slot_q      <= job.slot;
      tx_header_o <= '{
        mask:    '1,
        message: 8'(job.send),
        remote:  4'd0,
        line:    line_number(home_pkg::LineWidth'(job.line), home_pkg::LineWidth'(unit), Units, Slice)
      };
    end
  end

  if (HasPayload) begin : gen_payload
    assign tx_data_o = rd_data_i;
  end else begin : gen_no_payload
    logic unused;
    assign tx_data_o = '0;
    assign unused    = ^rd_data_i;
  end

  `ASSERT_STABLE(stable_tx, tx_valid_o, tx_ready_i, {tx_header_o, tx_data_o, tx_last_o})
endmodule : dcs_egress
