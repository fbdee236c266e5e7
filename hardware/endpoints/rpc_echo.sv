// Remote procedure calls over two lines of a slice, whose control the two sides hand to and fro: lines 0 and 1 of the slice.
//
// The remote has one of the lines, writes arguments into it, and asks for the other: that is the call. Its read stays
// without answer until the arguments have been taken from the remote by a local operation, and the results were calculated;
// then the roles of the lines are swapped. The procedure is that of crates/application/src/rpc.rs: each word times 3, plus 1.

`include "assertions.svh"

module rpc_echo #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter int unsigned Slice        = 0,
  parameter int unsigned Beats        = 2,    // of a line
  parameter int unsigned PayloadWidth = 512,
  parameter int unsigned AxiIdWidth   = 8,
  parameter int unsigned AxiAddrWidth = 36
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  input  logic                      aw_valid_i,
  output logic                      aw_ready_o,
  input  logic [AxiIdWidth-1:0]     aw_id_i,
  input  logic [AxiAddrWidth-1:0]   aw_addr_i,
  input  logic                      w_valid_i,
  output logic                      w_ready_o,
  input  logic [PayloadWidth-1:0]   w_data_i,
  input  logic [PayloadWidth/8-1:0] w_strb_i,
  input  logic                      w_last_i,
  output logic                      b_valid_o,
  input  logic                      b_ready_i,
  output logic [AxiIdWidth-1:0]     b_id_o,
  input  logic                      ar_valid_i,
  output logic                      ar_ready_o,
  input  logic [AxiIdWidth-1:0]     ar_id_i,
  input  logic [AxiAddrWidth-1:0]   ar_addr_i,
  output logic                      r_valid_o,
  input  logic                      r_ready_i,
  output logic [AxiIdWidth-1:0]     r_id_o,
  output logic [PayloadWidth-1:0]   r_data_o,
  output logic                      r_last_o,

  output logic                      local_req_valid_o,
  input  logic                      local_req_ready_i,
  output home_pkg::local_req_t      local_req_o,
  input  logic                      local_rsp_valid_i,
  output logic                      local_rsp_ready_o,
  input  home_pkg::local_rsp_t      local_rsp_i
);
  localparam int unsigned BeatWidth = home_pkg::bits(Beats);
  localparam int unsigned Shift     = $clog2(Beats * PayloadWidth / 8) + 1;
  localparam int unsigned Words     = PayloadWidth / 64;

  typedef enum logic [1:0] {
    Rest,     // nobody calls
    Take,     // the arguments are asked for
    Wait,     // they come
    Compute   // a beat of them becomes one of the results
  } step_e;

  step_e                                             step_q;
  logic [1:0][Beats-1:0][PayloadWidth-1:0]           lines_q;
  logic                                              remote_q;   // the line that is the remote's
  logic [BeatWidth-1:0]                              beat_q;     // of what is calculated

  // ------------------------------------------------------------------ reads

  // One of each line at most is in hand, as the home asks.
  logic [1:0]                   read_q;
  logic [1:0][AxiIdWidth-1:0]   read_id_q;
  logic                         ar_line, answers_q, r_line_q, r_taken;
  logic [BeatWidth-1:0]         r_beat_q;

  assign ar_line    = ar_addr_i[Shift];
  assign ar_ready_o = !read_q[ar_line];
  assign r_valid_o  = answers_q;
  assign r_id_o     = read_id_q[r_line_q];
  assign r_data_o   = lines_q[r_line_q][r_beat_q];
  assign r_last_o   = r_beat_q == BeatWidth'(Beats - 1);
  assign r_taken    = r_valid_o && r_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      read_q    <= '0;
      answers_q <= 1'b0;
      r_line_q  <= 1'b0;
      r_beat_q  <= '0;
    end else begin
      if (ar_valid_i && ar_ready_o) read_q[ar_line] <= 1'b1;
      if (!answers_q) begin
        // What the remote has asked for and is its own.
        answers_q <= read_q[remote_q] && step_q != Compute;
        r_line_q  <= remote_q;
        r_beat_q  <= '0;
      end else if (r_taken) begin
        r_beat_q <= r_last_o ? '0 : r_beat_q + 1'b1;
        if (r_last_o) begin
          answers_q        <= 1'b0;
          read_q[r_line_q] <= 1'b0;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (ar_valid_i && ar_ready_o) read_id_q[ar_line] <= ar_id_i;
  end

  // ------------------------------------------------------------------ writes

  logic                  writes_q, w_line_q, w_taken;
  logic [AxiIdWidth-1:0] aw_id_q;
  logic [BeatWidth-1:0]  w_beat_q;

  assign w_ready_o  = writes_q && (!b_valid_o || b_ready_i);
  assign w_taken    = w_valid_i && w_ready_o;
  assign aw_ready_o = !writes_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      writes_q  <= 1'b0;
      b_valid_o <= 1'b0;
      w_beat_q  <= '0;
    end else begin
      writes_q  <= writes_q ? !(w_taken && w_last_i) : aw_valid_i;
      if (w_taken) w_beat_q <= w_last_i ? '0 : w_beat_q + 1'b1;
      b_valid_o <= w_taken && w_last_i || b_valid_o && !b_ready_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (aw_ready_o) begin
      aw_id_q  <= aw_id_i;
      w_line_q <= aw_addr_i[Shift];
    end
    if (w_taken) b_id_o <= aw_id_q;
  end

  // ------------------------------------------------------------------ calls

  assign local_req_valid_o = step_q == Take;
  assign local_req_o       = '{
    operation: 3'(Protocol.evict - Protocol.messages),
    line:      home_pkg::LineWidth'({remote_q, 1'(Slice)})
  };
  assign local_rsp_ready_o = 1'b1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      step_q   <= Rest;
      remote_q <= 1'b0;
      beat_q   <= '0;
    end else begin
      case (step_q)
        Rest:    if (read_q[!remote_q]) step_q <= Take;
        Take:    if (local_req_ready_i) step_q <= Wait;
        Wait:    if (local_rsp_valid_i) step_q <= Compute;
        default: begin
          beat_q <= beat_q + 1'b1;
          if (beat_q == BeatWidth'(Beats - 1)) begin
            beat_q   <= '0;
            step_q   <= Rest;
            remote_q <= !remote_q;
          end
        end
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      lines_q <= '0;
    end else begin
      for (int unsigned i = 0; i < PayloadWidth / 8; i++) begin
        if (w_taken && w_strb_i[i]) lines_q[w_line_q][w_beat_q][i*8+:8] <= w_data_i[i*8+:8];
      end
      for (int unsigned i = 0; i < Words; i++) begin
        if (step_q == Compute) begin
          lines_q[!remote_q][beat_q][i*64+:64] <= (lines_q[remote_q][beat_q][i*64+:64] << 1) + lines_q[remote_q][beat_q][i*64+:64] + 64'd1;
        end
      end
    end
  end

  logic unused;
  assign unused = ^{local_rsp_i, ar_addr_i, aw_addr_i};

  `ASSERT_STABLE(stable_r, r_valid_o, r_ready_i, {r_id_o, r_data_o, r_last_o})
  `ASSERT_STABLE(stable_b, b_valid_o, b_ready_i, b_id_o)
  `ASSERT_STABLE(stable_local, local_req_valid_o, local_req_ready_i, local_req_o)
  `ASSUME_OR(two_lines, (!ar_valid_i || ar_addr_i >> (Shift + 1) == '0) && (!aw_valid_i || aw_addr_i >> (Shift + 1) == '0),
    ("rpc_echo: a line that is none of the two"))
  `ASSUME_OR(answers_what_was_asked, !local_rsp_valid_i || step_q == Wait, ("rpc_echo: an answer that nobody waits for"))
endmodule : rpc_echo
