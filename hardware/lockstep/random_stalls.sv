// Random stalls of a stream: a buffer of one entry that accepts data with probability 1/2, or 1/16 in every fourth
// interval of 256 cycles. If disabled, the stream passes unchanged.

`include "assertions.svh"

module random_stalls #(
  parameter int unsigned Width = 1,
  parameter logic [15:0] Salt  = 16'd0   // different for each stream
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic [15:0]      seed_i,   // 0: off; constant
  output logic             busy_o,   // a transfer is in progress

  input  logic             wr_valid_i,
  output logic             wr_ready_o,
  input  logic [Width-1:0] wr_data_i,

  output logic             rd_valid_o,
  input  logic             rd_ready_i,
  output logic [Width-1:0] rd_data_o
);
  logic [15:0]      lfsr_q;
  logic [9:0]       cycle_q;
  logic             full_q, enabled, accept;
  logic [Width-1:0] data_q;

  assign enabled    = seed_i != '0;
  assign accept     = cycle_q[9:8] == Salt[1:0] ? lfsr_q[3:0] == '0 : lfsr_q[0];
  assign wr_ready_o = enabled ? !full_q && accept : rd_ready_i;
  assign rd_valid_o = enabled ? full_q : wr_valid_i;
  assign rd_data_o  = enabled ? data_q : wr_data_i;
  assign busy_o     = enabled && (full_q || wr_valid_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      full_q  <= 1'b0;
      cycle_q <= '0;
      lfsr_q  <= (seed_i ^ Salt) == '0 ? 16'd1 : seed_i ^ Salt;
    end else begin
      full_q  <= full_q ? !rd_ready_i : enabled && wr_valid_i && accept;
      cycle_q <= cycle_q + 1'b1;
      // Maximal-length 16-bit LFSR.
      lfsr_q <= {lfsr_q[14:0], lfsr_q[15] ^ lfsr_q[14] ^ lfsr_q[12] ^ lfsr_q[3]};
    end
  end

  always_ff @(posedge clk_i) begin
    if (!full_q) data_q <= wr_data_i;
  end

  `ASSERT_STABLE(stable_read, rd_valid_o, rd_ready_i, rd_data_o)
endmodule : random_stalls
