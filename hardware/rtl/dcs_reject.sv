// Rejected input of a directory controller slice (DCS): records the first rejection for software, and sends rejections
// to the device.
//
// An illegal message is dropped at ingress. An illegal local operation or unlock is rejected here; its response is
// merged with those of the units. An event without a ROM row is dropped by its unit.

`include "assertions.svh"

module dcs_reject #(
  // Parameters of dcs.sv. NumRx: number of circuits to the home.
  parameter int unsigned NumRx         = 1,
  parameter int unsigned Units         = 1,
  parameter int unsigned EventWidth    = 5,
  parameter int unsigned StateWidth    = 7,
  parameter int unsigned UnitLineWidth = 23,   // width of a line index within a unit
  parameter int unsigned Slice         = 0,
  parameter int unsigned AxiIdWidth    = 8,

  localparam int unsigned UnitWidth = home_pkg::bits(Units)
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,
  // Clears both registers of the first rejection.
  input  logic                              clear_i,

  // Rejections at the ports in the previous cycle: messages, memory responses, local operations and unlocks.
  input  home_pkg::reject_e [NumRx-1:0]     rx_reject_i,
  input  home_pkg::header_t [NumRx-1:0]     rx_header_i,
  input  home_pkg::reject_e                 read_reject_i,
  input  logic [AxiIdWidth-1:0]             read_id_i,
  input  home_pkg::reject_e                 write_reject_i,
  input  logic [AxiIdWidth-1:0]             write_id_i,
  input  home_pkg::reject_e                 arrived_reject_i,
  input  home_pkg::local_req_t              arrived_req_i,
  input  logic                              arrived_unlock_reject_i,
  input  logic [home_pkg::LineWidth-1:0]    arrived_unlock_line_i,

  // Device requests to be rejected, with the reason.
  input  logic                              local_valid_i,
  output logic                              local_ready_o,
  input  home_pkg::reject_e                 local_reject_i,
  input  home_pkg::local_req_t              local_req_i,
  input  logic                              unlock_valid_i,
  output logic                              unlock_ready_o,
  input  logic [home_pkg::LineWidth-1:0]    unlock_line_i,

  // Responses of the units to the device, and the merged responses.
  input  logic                              unit_rsp_valid_i,
  output logic                              unit_rsp_ready_o,
  input  home_pkg::local_rsp_t              unit_rsp_i,
  output logic                              local_rsp_valid_o,
  input  logic                              local_rsp_ready_i,
  output home_pkg::local_rsp_t              local_rsp_o,

  // Events without a ROM row, dropped by the units.
  input  logic [Units-1:0]                    unexpected_valid_i,
  output logic [Units-1:0]                    unexpected_ready_o,
  input  logic [Units-1:0][EventWidth-1:0]    unexpected_event_i,
  input  logic [Units-1:0][StateWidth-1:0]    unexpected_state_i,
  input  logic [Units-1:0][UnitLineWidth-1:0] unexpected_line_i,

  // Performance counters: reason of a rejection to the device, one cycle late; a dropped event was recorded.
  output home_pkg::reject_e                 device_reject_o,
  output logic                              unexpected_pulse_o,

  // Registers FirstWrong and FirstImpossible.
  output home_pkg::reject_t                 first_reject_o,
  output home_pkg::unexpected_t             first_unexpected_o,

  output logic                              idle_o   // no pending rejection
);
  import home_pkg::*;

  // ------------------------------------------------------------------ requests of the device

  logic       rejection_valid_q, rejection_at_port_q;   // a rejection is pending; it is at the port
  logic       rejected_prev_q;                          // the rejection was accepted in the previous cycle
  reject_e    reason_q;
  local_rsp_t rejection_q;
  logic       accept_local, accept_unlock, rejection_sent, last_was_unlock_q;

  // Local operations and unlocks alternate if both are valid.
  assign accept_local   = local_valid_i && !rejection_valid_q && (last_was_unlock_q || !unlock_valid_i);
  assign accept_unlock  = unlock_valid_i && !rejection_valid_q && !accept_local;
  assign local_ready_o  = accept_local;
  assign unlock_ready_o = accept_unlock;
  assign rejection_sent = rejection_at_port_q && local_rsp_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rejection_valid_q   <= 1'b0;
      rejection_at_port_q <= 1'b0;
      rejected_prev_q     <= 1'b0;
      last_was_unlock_q   <= 1'b0;
    end else begin
      rejected_prev_q <= accept_local || accept_unlock;
      if (accept_local || accept_unlock) last_was_unlock_q <= accept_unlock;
      rejection_valid_q <= rejection_valid_q ? !rejection_sent : accept_local || accept_unlock;
      // Enters the port only when no response of a unit is stalled there, so that no offered response is withdrawn.
      rejection_at_port_q <= rejection_at_port_q ? !rejection_sent : rejection_valid_q && (!unit_rsp_valid_i || local_rsp_ready_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rejection_valid_q) begin
      rejection_q <= accept_unlock ? {1'b1, 1'b1, 3'd0, unlock_line_i} : {1'b0, 1'b1, local_req_i};
      reason_q    <= accept_unlock ? RejectUnlockLine : local_reject_i;
    end
  end

  assign local_rsp_valid_o = rejection_at_port_q || unit_rsp_valid_i;
  assign local_rsp_o       = rejection_at_port_q ? rejection_q : unit_rsp_i;
  assign unit_rsp_ready_o  = local_rsp_ready_i && !rejection_at_port_q;
  assign device_reject_o   = rejected_prev_q ? reason_q : RejectNone;
  assign idle_o            = !rejection_valid_q;

  // ------------------------------------------------------------------ the first rejection

  reject_t reject;
  logic    unused;
  assign unused = ^rx_header_i;   // masks are not recorded

  // All ports report with the same latency of one cycle, so the first report is the first rejection. Priority within a
  // cycle: circuits by number, then reads, writes, local operations and unlocks.
  always_comb begin
    reject = '0;
    if (arrived_unlock_reject_i) reject = '{reason: RejectUnlockLine, line: arrived_unlock_line_i, default: '0};
    if (arrived_reject_i != RejectNone) begin
      reject = '{reason: arrived_reject_i, number: 8'(arrived_req_i.operation), line: arrived_req_i.line, default: '0};
    end
    if (write_reject_i != RejectNone) reject = '{reason: write_reject_i, line: home_pkg::LineWidth'(write_id_i), default: '0};
    if (read_reject_i != RejectNone) reject = '{reason: read_reject_i, line: home_pkg::LineWidth'(read_id_i), default: '0};
    for (int c = int'(NumRx) - 1; c >= 0; c--) begin
      if (rx_reject_i[c] != RejectNone) begin
        reject = '{
          reason:  rx_reject_i[c],
          circuit: 2'(unsigned'(c)),
          number:  rx_header_i[c].message,
          remote:  rx_header_i[c].remote,
          line:    rx_header_i[c].line,
          default: '0
        };
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i)                                            first_reject_o <= '0;
    else if (first_reject_o.reason == RejectNone && reject.reason != RejectNone) first_reject_o <= reject;
  end

  // ------------------------------------------------------------------ events without a ROM row

  typedef struct packed {
    logic [EventWidth-1:0]    event_id;
    logic [StateWidth-1:0]    state;
    logic [UnitLineWidth-1:0] line;
  } report_t;

  report_t [Units-1:0]  unit_reports;
  report_t              report;
  logic [UnitWidth-1:0] unit;
  // Units whose report is pending. All reports of one cycle are handled before later reports.
  logic [Units-1:0]     pending_d, pending_q;

  assign pending_d = pending_q & ~unexpected_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) pending_q <= '0;
    else         pending_q <= pending_d != '0 ? pending_d : unexpected_valid_i & ~unexpected_ready_o;
  end

  for (genvar u = 0; u < Units; u++) begin : gen_unit
    assign unit_reports[u] = '{unexpected_event_i[u], unexpected_state_i[u], unexpected_line_i[u]};
  end

  stream_arbiter #(
    .Size  (Units),
    .data_t(report_t)
  ) u_report_arbiter (
    .clk_i,
    .rst_ni,
    .wr_valid_i(pending_q),
    .wr_ready_o(unexpected_ready_o),
    .wr_data_i (unit_reports),
    .rd_valid_o(unexpected_pulse_o),
    .rd_ready_i(1'b1),
    .rd_data_o (report),
    .rd_index_o(unit)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) first_unexpected_o <= '0;
    else if (unexpected_pulse_o && !first_unexpected_o.valid) begin
      first_unexpected_o <= '{
        valid:    1'b1,
        zero:     '0,
        unit:     8'(unit),
        state:    8'(report.state),
        event_id: 8'(report.event_id),
        line:     line_number(home_pkg::LineWidth'(report.line), home_pkg::LineWidth'(unit), Units, Slice)
      };
    end
  end

  `ASSERT_STABLE(stable_rsp, local_rsp_valid_o, local_rsp_ready_i, local_rsp_o)
endmodule : dcs_reject
