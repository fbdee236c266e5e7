// Illegal input of a slice: the first error is recorded for software, and refusals are answered to the device.
//
// An illegal message is dropped at ingress. An illegal local operation or unlock is refused
// here, and its answer is merged with those of the units. An event without a ROM row is dropped by its unit.

`include "assertions.svh"

module dcs_wrong #(
  parameter int unsigned NumRx      = 1,
  parameter int unsigned Units      = 1,
  parameter int unsigned EventWidth = 5,
  parameter int unsigned StateWidth = 7,
  parameter int unsigned UnitLine   = 23,   // bits of a line's number within its unit
  parameter int unsigned Slice      = 0,
  parameter int unsigned AxiIdWidth = 8,

  localparam int unsigned UnitWidth = home_pkg::bits(Units)
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,
  input  logic                              clear_i,

  // Errors at the ports in the cycle before: of messages, answers of memory, local operations and unlocks.
  input  home_pkg::wrong_e  [NumRx-1:0]     rx_wrong_i,
  input  home_pkg::header_t [NumRx-1:0]     rx_header_i,
  input  home_pkg::wrong_e                  read_wrong_i,
  input  logic [AxiIdWidth-1:0]             read_id_i,
  input  home_pkg::wrong_e                  write_wrong_i,
  input  logic [AxiIdWidth-1:0]             write_id_i,
  input  home_pkg::wrong_e                  asked_wrong_i,
  input  home_pkg::local_req_t              asked_i,
  input  logic                              unlocked_wrong_i,
  input  logic [home_pkg::LineWidth-1:0]    unlocked_line_i,

  // Rejected requests of the device, with the reason; none if legal.
  input  logic                              local_valid_i,
  output logic                              local_ready_o,
  input  home_pkg::wrong_e                  local_wrong_i,
  input  home_pkg::local_req_t              local_req_i,
  input  logic                              unlock_valid_i,
  output logic                              unlock_ready_o,
  input  logic [home_pkg::LineWidth-1:0]    unlock_line_i,

  // The units' answers to the device, and all answers.
  input  logic                              answer_valid_i,
  output logic                              answer_ready_o,
  input  home_pkg::local_rsp_t              answer_i,
  output logic                              local_rsp_valid_o,
  input  logic                              local_rsp_ready_i,
  output home_pkg::local_rsp_t              local_rsp_o,

  // Events that units have dropped.
  input  logic [Units-1:0]                  impossible_valid_i,
  output logic [Units-1:0]                  impossible_ready_o,
  input  logic [Units-1:0][EventWidth-1:0]  impossible_event_i,
  input  logic [Units-1:0][StateWidth-1:0]  impossible_state_i,
  input  logic [Units-1:0][UnitLine-1:0]    impossible_line_i,

  // For counters: the reason of a refusal to the device in the cycle before, and a dropped event.
  output home_pkg::wrong_e                  device_wrong_o,
  output logic                              impossible_o,

  output home_pkg::wrong_t                  first_wrong_o,
  output home_pkg::impossible_t             first_impossible_o,

  output logic                              idle_o   // no answer waits here
);
  import home_pkg::*;

  // ------------------------------------------------------------------ requests of the device

  logic       refused_valid_q, shows_q;   // an answer waits; it is at the port
  logic       fresh_q;                    // it was refused in the cycle before
  wrong_e     why_q;
  local_rsp_t refused_q;
  logic       takes_local, takes_unlock, told, last_unlock_q;

  // Alternates, if both are valid.
  assign takes_local    = local_valid_i && !refused_valid_q && (last_unlock_q || !unlock_valid_i);
  assign takes_unlock   = unlock_valid_i && !refused_valid_q && !takes_local;
  assign local_ready_o  = takes_local;
  assign unlock_ready_o = takes_unlock;
  assign told           = shows_q && local_rsp_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      refused_valid_q <= 1'b0;
      shows_q         <= 1'b0;
      fresh_q         <= 1'b0;
      last_unlock_q   <= 1'b0;
    end else begin
      fresh_q         <= takes_local || takes_unlock;
      if (takes_local || takes_unlock) last_unlock_q <= takes_unlock;
      refused_valid_q <= refused_valid_q ? !told : takes_local || takes_unlock;
      // Takes the port when no answer of a unit waits there, so that none is withdrawn.
      shows_q         <= shows_q ? !told : refused_valid_q && (!answer_valid_i || local_rsp_ready_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!refused_valid_q) begin
      refused_q <= takes_unlock ? {1'b1, 1'b1, 3'd0, unlock_line_i} : {1'b0, 1'b1, local_req_i};
      why_q     <= takes_unlock ? WrongUnlock : local_wrong_i;
    end
  end

  assign local_rsp_valid_o = shows_q || answer_valid_i;
  assign local_rsp_o       = shows_q ? refused_q : answer_i;
  assign answer_ready_o    = local_rsp_ready_i && !shows_q;
  assign device_wrong_o    = fresh_q ? why_q : WrongNone;
  assign idle_o            = !refused_valid_q;

  // ------------------------------------------------------------------ the first error

  wrong_t wrong;
  logic   unused;
  assign unused = ^rx_header_i;   // masks are not recorded

  // Every error is reported in the cycle after it came, so the first report is the first error. Within one cycle the
  // priority is: circuits by number, then reads, writes, local operations and unlocks.
  always_comb begin
    wrong = '0;
    if (unlocked_wrong_i) wrong = '{why: WrongUnlock, line: unlocked_line_i, default: '0};
    if (asked_wrong_i != WrongNone) begin
      wrong = '{why: asked_wrong_i, number: 8'(asked_i.operation), line: asked_i.line, default: '0};
    end
    if (write_wrong_i != WrongNone) wrong = '{why: write_wrong_i, line: home_pkg::LineWidth'(write_id_i), default: '0};
    if (read_wrong_i != WrongNone) wrong = '{why: read_wrong_i, line: home_pkg::LineWidth'(read_id_i), default: '0};
    for (int c = int'(NumRx) - 1; c >= 0; c--) begin
      if (rx_wrong_i[c] != WrongNone) begin
        wrong = '{
          why:     rx_wrong_i[c],
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
    if (!rst_ni || clear_i)                                            first_wrong_o <= '0;
    else if (first_wrong_o.why == WrongNone && wrong.why != WrongNone) first_wrong_o <= wrong;
  end

  // ------------------------------------------------------------------ events without a ROM row

  typedef struct packed {
    logic [EventWidth-1:0] happened;
    logic [StateWidth-1:0] state;
    logic [UnitLine-1:0]   line;
  } dropped_t;

  dropped_t [Units-1:0] offered;
  dropped_t             dropped;
  logic [UnitWidth-1:0] unit;
  // Recorded units: all that reported in one cycle, before any that report later.
  logic [Units-1:0]     heard_d, heard_q;

  assign heard_d = heard_q & ~impossible_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) heard_q <= '0;
    else         heard_q <= heard_d != '0 ? heard_d : impossible_valid_i & ~impossible_ready_o;
  end

  for (genvar u = 0; u < Units; u++) begin : gen_unit
    assign offered[u] = '{impossible_event_i[u], impossible_state_i[u], impossible_line_i[u]};
  end

  stream_arbiter #(
    .Size  (Units),
    .data_t(dropped_t)
  ) u_dropped (
    .clk_i,
    .rst_ni,
    .wr_valid_i(heard_q),
    .wr_ready_o(impossible_ready_o),
    .wr_data_i (offered),
    .rd_valid_o(impossible_o),
    .rd_ready_i(1'b1),
    .rd_data_o (dropped),
    .rd_index_o(unit)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) first_impossible_o <= '0;
    else if (impossible_o && !first_impossible_o.valid) begin
      first_impossible_o <= '{
        valid:    1'b1,
        zero:     '0,
        unit:     8'(unit),
        state:    8'(dropped.state),
        happened: 8'(dropped.happened),
        line:     line_number(home_pkg::LineWidth'(dropped.line), home_pkg::LineWidth'(unit), Units, Slice)
      };
    end
  end

  `ASSERT_STABLE(stable_rsp, local_rsp_valid_o, local_rsp_ready_i, local_rsp_o)
endmodule : dcs_wrong
