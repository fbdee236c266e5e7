// Invalidation engine: recalls a range of lines of a slice from the remote, with one local operation per line and as
// many outstanding operations as the home accepts.
//
// Dirty lines are written back. Afterwards memory has the current data of the range, and the remote has no copy of it.

`include "assertions.svh"

module invalidation_engine #(
  parameter home_pkg::protocol_t Protocol = '0,

  localparam int unsigned LineWidth = home_pkg::LineWidth
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  // Range: first line, which belongs to this slice, and number of lines of this slice.
  input  logic                 start_valid_i,
  output logic                 start_ready_o,
  input  logic [LineWidth-1:0] start_line_i,
  input  logic [LineWidth-1:0] start_count_i,

  // Completion of the range, with the number of refused operations.
  output logic                 done_valid_o,
  input  logic                 done_ready_i,
  output logic [LineWidth-1:0] done_refused_o,

  // Local operations at the home.
  output logic                 local_req_valid_o,
  input  logic                 local_req_ready_i,
  output home_pkg::local_req_t local_req_o,
  input  logic                 local_rsp_valid_i,
  output logic                 local_rsp_ready_o,
  input  home_pkg::local_rsp_t local_rsp_i
);
  logic                 busy_q, req_fire, rsp_fire;
  logic [LineWidth-1:0] line_q, lines_left_q;       // next line, and number of lines not yet requested
  logic [LineWidth-1:0] outstanding_q, refused_q;   // numbers of operations

  assign start_ready_o     = !busy_q;
  assign local_req_valid_o = busy_q && lines_left_q != '0;
  assign local_req_o       = '{operation: 3'(Protocol.evict - Protocol.messages), line: line_q};
  assign local_rsp_ready_o = 1'b1;
  assign req_fire          = local_req_valid_o && local_req_ready_i;
  assign rsp_fire          = local_rsp_valid_i && !local_rsp_i.unlock;
  assign done_valid_o      = busy_q && lines_left_q == '0 && outstanding_q == '0;
  assign done_refused_o    = refused_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)             busy_q <= 1'b0;
    else if (start_ready_o)  busy_q <= start_valid_i;
    else if (done_valid_o)   busy_q <= !done_ready_i;
  end

  always_ff @(posedge clk_i) begin
    if (start_ready_o) begin
      line_q        <= start_line_i;
      lines_left_q  <= start_count_i;
      outstanding_q <= '0;
      refused_q     <= '0;
    end else begin
      if (req_fire) begin
        line_q       <= line_q + LineWidth'(2);
        lines_left_q <= lines_left_q - 1'b1;
      end
      outstanding_q <= outstanding_q + LineWidth'(req_fire) - LineWidth'(rsp_fire);
      refused_q     <= refused_q + LineWidth'(rsp_fire && local_rsp_i.refused);
    end
  end

  logic unused;
  assign unused = ^{local_rsp_i.operation, local_rsp_i.line};

  `ASSERT_STABLE(stable_local, local_req_valid_o, local_req_ready_i, local_req_o)
  `ASSERT_STABLE(stable_done, done_valid_o, done_ready_i, done_refused_o)
  `ASSUME_OR(completion_expected, !rsp_fire || busy_q && outstanding_q != '0,
    ("invalidation_engine: an unexpected response"))
endmodule : invalidation_engine
