// Memory block of the protocol ROM, with two read ports of one cycle latency.

module rom_block #(
  parameter int unsigned AddrWidth = 12,
  parameter int unsigned RowWidth  = 20,
  parameter              RomFile   = ""
) (
  input  logic                      clk_i,

  input  logic [1:0]                enable_i,
  input  logic [1:0][AddrWidth-1:0] addr_i,
  output logic [1:0][RowWidth-1:0]  row_o
);
  (* rom_style = "block" *) logic [RowWidth-1:0] rows [2**AddrWidth];

`ifdef SYNTHESIS
  initial begin
    for (int unsigned i = 0; i < 2 ** AddrWidth; i++) rows[AddrWidth'(i)] = '0;
    $readmemh(RomFile, rows);
  end
`else
  initial begin
    string file;
    for (int unsigned i = 0; i < 2 ** AddrWidth; i++) rows[AddrWidth'(i)] = '0;
    if (!$value$plusargs("rom=%s", file)) file = RomFile;
    $readmemh(file, rows);
  end
`endif

  for (genvar p = 0; p < 2; p++) begin : gen_port
    always_ff @(posedge clk_i) begin
      if (enable_i[p]) row_o[p] <= rows[addr_i[p]];
    end
  end
endmodule : rom_block
