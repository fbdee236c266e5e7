// Number of bits that are 1, two cycles later: first of each group of eight, then of all.

module ones_count #(
  parameter int unsigned Size = 32,

  localparam int unsigned CountWidth = home_pkg::bits(Size + 1)
) (
  input  logic                  clk_i,
  input  logic                  clear_i,  // discards the counts in the pipeline

  input  logic [Size-1:0]       bits_i,
  output logic [CountWidth-1:0] count_o
);
  localparam int unsigned OfGroup = 8;
  localparam int unsigned Groups  = (Size + OfGroup - 1) / OfGroup;

  logic [Groups*OfGroup-1:0]  padded;
  logic [Groups-1:0][3:0]     part_d, part_q;
  logic [CountWidth-1:0]      count;

  assign padded = (Groups * OfGroup)'(bits_i);

  always_comb begin
    part_d = '0;
    for (int unsigned i = 0; i < Groups * OfGroup; i++) part_d[i/OfGroup] += 4'(padded[i]);
    count = '0;
    for (int unsigned g = 0; g < Groups; g++) count += CountWidth'(part_q[g]);
  end

  always_ff @(posedge clk_i) begin
    if (clear_i) begin
      part_q  <= '0;
      count_o <= '0;
    end else begin
      part_q  <= part_d;
      count_o <= count;
    end
  end
endmodule : ones_count
