// Block RAM with one write port and one read port. Read data is valid in the next cycle and stable until the next read.
// Each lane of a word has a write enable.

module ram_block #(
  parameter int unsigned Depth = 512,
  parameter int unsigned Width = 72,  // per word
  parameter int unsigned Lanes = 1
) (
  input  logic                           clk_i,

  input  logic [Lanes-1:0]               wr_en_i,
  input  logic [home_pkg::bits(Depth)-1:0] wr_addr_i,
  input  logic [Width-1:0]               wr_data_i,

  input  logic                           rd_en_i,
  input  logic [home_pkg::bits(Depth)-1:0] rd_addr_i,
  output logic [Width-1:0]               rd_data_o
);
  localparam int unsigned LaneWidth = Width / Lanes;

  if (LaneWidth * Lanes != Width) begin : gen_invalid_lanes
    $error("ram_block: Width must be a multiple of Lanes");
  end

  (* ram_style = "block" *) logic [Width-1:0] words_q [Depth];

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Lanes; i++) begin
      if (wr_en_i[i]) words_q[wr_addr_i][i*LaneWidth+:LaneWidth] <= wr_data_i[i*LaneWidth+:LaneWidth];
    end
    if (rd_en_i) rd_data_o <= words_q[rd_addr_i];
  end
endmodule : ram_block
