// Population count with a latency of two cycles: first the groups of eight bits, then their sum.

module ones_count #(
  parameter int unsigned Size = 32,

  localparam int unsigned CountWidth = home_pkg::bits(Size + 1)
) (
  input  logic                  clk_i,
  input  logic                  clear_i,  // discards the counts in the pipeline

  input  logic [Size-1:0]       bits_i,
  output logic [CountWidth-1:0] count_o
);
  localparam int unsigned GroupSize = 8;
  localparam int unsigned Groups    = (Size + GroupSize - 1) / GroupSize;

  logic [Groups*GroupSize-1:0] padded;
  logic [Groups-1:0][3:0]      group_count_d, group_count_q;
  logic [CountWidth-1:0]       count;

  assign padded = (Groups * GroupSize)'(bits_i);

  always_comb begin
    group_count_d = '0;
    for (int unsigned i = 0; i < Groups * GroupSize; i++) group_count_d[i/GroupSize] += 4'(padded[i]);
    count = '0;
    for (int unsigned g = 0; g < Groups; g++) count += CountWidth'(group_count_q[g]);
  end

  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      group_count_q <= '0;
      count_o       <= '0;
    end else begin
      group_count_q <= group_count_d;
      count_o       <= count;
    end
  end
endmodule : ones_count
