// AXI reads of a directory controller slice (DCS): sends the reads of all units round-robin, and buffers the lines
// until they are sent to the remote.
//
// Each read that a unit may have in flight has an entry, so responses are always accepted, in any order and
// interleaved.
//
// A beat without an outstanding read is dropped. A read whose response has more or fewer beats than a line is lost: its
// data is unreliable, so it is not sent, and its entry is freed. Both errors are reported.

`include "assertions.svh"

module dcs_reader #(
  // Parameters of dcs.sv. LineWidth: width of a line index within a unit; Beats: per line.
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type                 event_e  = logic,
  parameter int unsigned Units        = 1,
  parameter int unsigned Slice        = 0,
  parameter int unsigned Reads        = 2,
  parameter int unsigned LineWidth    = 23,
  parameter int unsigned PayloadWidth = 512,
  parameter int unsigned Beats        = 2,
  parameter int unsigned AxiIdWidth   = 8,
  parameter int unsigned AxiAddrWidth = 36,

  localparam int unsigned UnitWidth   = home_pkg::bits(Units),
  localparam int unsigned ReadWidth   = home_pkg::bits(Reads)
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  // Read requests of the units: line, read entry and event. `unit_done_o` has one bit per read entry, in the cycle of
  // the last beat.
  input  logic   [Units-1:0]                  unit_valid_i,
  output logic   [Units-1:0]                  unit_ready_o,
  input  logic   [Units-1:0][LineWidth-1:0]   unit_line_i,
  input  logic   [Units-1:0][ReadWidth-1:0]   unit_slot_i,
  input  event_e [Units-1:0]                  unit_event_i,
  output logic   [Units-1:0][Reads-1:0]       unit_done_o,
  output logic   [Units-1:0][Reads-1:0]       unit_lost_o,   // the read is lost; one cycle after its last beat

  // Read port of the line buffer; data is valid in the next cycle and stable until the next read.
  input  logic                                rd_en_i,
  input  logic [UnitWidth-1:0]                rd_unit_i,
  input  logic [ReadWidth-1:0]                rd_slot_i,
  input  logic [home_pkg::bits(Beats)-1:0]    rd_beat_i,
  output logic [PayloadWidth-1:0]             rd_data_o,

  // Memory: AXI4 manager, read channels. Each burst is one line; the ID is {unit, read entry}.
  output logic                                ar_valid_o,
  input  logic                                ar_ready_i,
  output logic [AxiIdWidth-1:0]               ar_id_o,
  output logic [AxiAddrWidth-1:0]             ar_addr_o,
  output logic [7:0]                          ar_user_o,   // {permission that the remote gets, event of the request}
  input  logic                                r_valid_i,
  output logic                                r_ready_o,
  input  logic [AxiIdWidth-1:0]               r_id_i,
  input  logic [PayloadWidth-1:0]             r_data_i,
  input  logic                                r_last_i,

  // One cycle late: read completed; beat rejected, with its AXI ID.
  output logic                                done_o,
  output home_pkg::reject_e                   reject_o,
  output logic [AxiIdWidth-1:0]               reject_id_o
);
  import home_pkg::*;

  localparam int unsigned BeatWidth = bits(Beats);
  // Entries per unit are rounded up to a power of two, so that the address is a concatenation.
  localparam int unsigned Entries   = Units * 2 ** ReadWidth;
  localparam int unsigned EntryBits = bits(Entries);
  localparam int unsigned BeatBits  = $clog2(Beats);
  localparam int unsigned LineBits  = $clog2(32'(Protocol.line_bytes));

  typedef struct packed {
    logic [LineWidth-1:0] line;
    logic [ReadWidth-1:0] slot;
    event_e               event_id;
  } job_t;

  job_t [Units-1:0]     requests;
  job_t                 job;
  logic [UnitWidth-1:0] unit;

  for (genvar u = 0; u < Units; u++) begin : gen_request
    assign requests[u] = '{unit_line_i[u], unit_slot_i[u], unit_event_i[u]};
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
    .rd_valid_o(ar_valid_o),
    .rd_ready_i(ar_ready_i),
    .rd_data_o (job),
    .rd_index_o(unit)
  );

  assign ar_id_o   = AxiIdWidth'({unit, job.slot});
  assign ar_addr_o = AxiAddrWidth'(line_number(home_pkg::LineWidth'(job.line), home_pkg::LineWidth'(unit), Units, Slice)) << LineBits;
  assign ar_user_o = {Protocol.writes[6'(job.event_id)], Protocol.reads[6'(job.event_id)] && !Protocol.writes[6'(job.event_id)],
                      6'(job.event_id)};

  // Beat counter per entry, because responses may be interleaved: 0 until memory accepts the read address, then 1 +
  // beats received, up to the first surplus beat.
  localparam int unsigned CountWidth = bits(Beats + 2);

  logic [Entries-1:0][CountWidth-1:0] count_q;
  logic [CountWidth-1:0]              count;
  logic [EntryBits-1:0]               r_index;
  logic                               in_flight, is_complete, is_surplus, last_legal, burst_end;
  logic                               lost_q;
  logic [EntryBits-1:0]               lost_index_q;

  assign r_ready_o   = 1'b1;
  assign r_index     = EntryBits'(r_id_i);
  assign count       = count_q[r_index];
  assign in_flight   = r_id_i >> EntryBits == '0 && count != '0;
  assign is_complete = count == CountWidth'(Beats);
  assign is_surplus  = count == CountWidth'(Beats + 1);
  assign last_legal  = r_last_i == is_complete;
  // Separate signal: Verilator 5.006 folds the inlined condition to 0 for some entries below.
  assign burst_end = r_valid_i && r_last_i && in_flight;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q <= '0;
    end else begin
      if (r_valid_i && in_flight && (r_last_i || !is_surplus)) count_q[r_index] <= r_last_i ? '0 : count + 1'b1;
      if (ar_valid_o && ar_ready_i) count_q[EntryBits'(ar_id_o)] <= CountWidth'(1);
    end
  end

  always_ff @(posedge clk_i) begin
    done_o <= rst_ni && burst_end && last_legal;
    lost_q <= rst_ni && burst_end && !last_legal;
    // A response with too many beats is reported at its first surplus beat.
    reject_o <= !rst_ni || !r_valid_i ? RejectNone : !in_flight ? RejectRead : last_legal || is_surplus ? RejectNone : RejectBurst;
  end
  always_ff @(posedge clk_i) begin
    lost_index_q <= r_index;
    reject_id_o  <= r_id_i;
  end

  ram_block #(
    .Depth(Entries * Beats),
    .Width(PayloadWidth)
  ) u_lines (
    .clk_i,
    .wr_en_i  (r_valid_i && in_flight),
    .wr_addr_i((EntryBits + BeatBits)'({r_index, BeatWidth'(count - 1'b1)} >> (BeatWidth - BeatBits))),
    .wr_data_i(r_data_i),
    .rd_en_i,
    .rd_addr_i((EntryBits + BeatBits)'({EntryBits'({rd_unit_i, rd_slot_i}), rd_beat_i} >> (BeatWidth - BeatBits))),
    .rd_data_o
  );

  always_comb begin
    unit_done_o = '0;
    unit_lost_o = '0;
    for (int unsigned u = 0; u < Units; u++) begin
      for (int unsigned i = 0; i < Reads; i++) begin
        unit_done_o[u][i] = burst_end && last_legal && r_index == EntryBits'({UnitWidth'(u), ReadWidth'(i)});
        unit_lost_o[u][i] = lost_q && lost_index_q == EntryBits'({UnitWidth'(u), ReadWidth'(i)});
      end
    end
  end

  `REPORT_OR(read_id_legal, reject_o != RejectRead, ("dcs: memory answered a read that is not in flight"))
  `REPORT_OR(burst_length_legal, reject_o != RejectBurst,
    ("dcs: memory answered a read with another number of beats than %0d", Beats))
endmodule : dcs_reader
