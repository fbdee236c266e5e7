// A circuit to the remote, at its slice: the messages of all units round-robin, with the payload of the line if any.

`include "assertions.svh"

module dcs_egress #(
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

  input  logic [Units-1:0]                  unit_valid_i,
  output logic [Units-1:0]                  unit_ready_o,
  input  send_e [Units-1:0]                 unit_send_i,
  input  logic [Units-1:0][LineWidth-1:0]   unit_line_i,
  input  logic [Units-1:0][ReadWidth-1:0]   unit_slot_i,
  output logic [Units-1:0][Reads-1:0]       unit_done_o,  // the payload has left

  // Payload of a line, valid a cycle later and then stable.
  output logic                              rd_en_o,
  output logic [UnitWidth-1:0]              rd_unit_o,
  output logic [ReadWidth-1:0]              rd_slot_o,
  output logic [home_pkg::bits(Beats)-1:0]  rd_beat_o,
  input  logic [PayloadWidth-1:0]           rd_data_i,

  output logic                              tx_valid_o,
  input  logic                              tx_ready_i,
  output home_pkg::header_t                 tx_header_o,
  output logic [PayloadWidth-1:0]           tx_data_o,
  output logic                              tx_last_o,    // last beat of the message

  // For counters: the header at the port arrived there in the cycle before; the port is stalled.
  output logic                              seen_o,
  output logic                              waits_o
);
  import home_pkg::*;

  localparam int unsigned BeatWidth = bits(Beats);
  localparam bit          HasBytes  = Protocol.tx_payload[Circuit];

  typedef struct packed {
    send_e                send;
    logic [LineWidth-1:0] line;
    logic [ReadWidth-1:0] slot;
  } job_t;

  job_t [Units-1:0]     asked;
  job_t                 job;
  logic                 job_valid, first, load, room, rests_q, carries;
  logic [UnitWidth-1:0] unit;
  logic [UnitWidth-1:0] unit_q;
  logic [ReadWidth-1:0] slot_q;
  logic [BeatWidth-1:0] beat_q, rest_q;   // next beat of the current line, and number of remaining beats

  for (genvar u = 0; u < Units; u++) begin : gen_asked
    assign asked[u] = '{unit_send_i[u], unit_line_i[u], unit_slot_i[u]};
  end

  stream_arbiter #(
    .Size  (Units),
    .data_t(job_t)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .wr_valid_i(unit_valid_i),
    .wr_ready_o(unit_ready_o),
    .wr_data_i (asked),
    .rd_valid_o(job_valid),
    .rd_ready_i(room && !rests_q),
    .rd_data_o (job),
    .rd_index_o(unit)
  );

  // A message is taken from its unit with the first beat, so whether more beats follow is needed only a cycle later.
  assign carries   = HasBytes && Protocol.send_payload[4'(job.send)];
  assign room      = !tx_valid_o || tx_ready_i;
  assign first     = job_valid && room && !rests_q;
  assign load      = first || room && rests_q;
  assign rd_en_o   = HasBytes && load;
  assign rd_unit_o = rests_q ? unit_q : unit;
  assign rd_slot_o = rests_q ? slot_q : job.slot;
  assign rd_beat_o = rests_q ? beat_q : '0;

  always_comb begin
    unit_done_o = '0;
    if (Beats == 1) unit_done_o[unit][job.slot] = first && carries;
    else            unit_done_o[unit_q][slot_q] = room && rest_q == BeatWidth'(1);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rests_q    <= 1'b0;
      rest_q     <= '0;
      tx_valid_o <= 1'b0;
    end else begin
      if (first) begin
        rests_q <= carries && Beats > 1;
        rest_q  <= carries ? BeatWidth'(Beats - 1) : '0;
      end else if (load) begin
        rests_q <= rest_q != BeatWidth'(1);
        rest_q  <= rest_q - 1'b1;
      end
      if (room) tx_valid_o <= load;
    end
  end

  always_ff @(posedge clk_i) begin
    seen_o  <= rst_ni && first;
    waits_o <= rst_ni && tx_valid_o && !tx_ready_i;
  end

  always_ff @(posedge clk_i) begin
    if (load) beat_q <= rd_beat_o + 1'b1;
    if (load) tx_last_o <= rests_q ? rest_q == BeatWidth'(1) : !carries || Beats == 1;
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

  if (HasBytes) begin : gen_bytes
    assign tx_data_o = rd_data_i;
  end else begin : gen_no_bytes
    logic unused;
    assign tx_data_o = '0;
    assign unused    = ^rd_data_i;
  end

  `ASSERT_STABLE(stable_tx, tx_valid_o, tx_ready_i, {tx_header_o, tx_data_o, tx_last_o})
endmodule : dcs_egress
