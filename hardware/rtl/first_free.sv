// Index of the first free entry, one cycle late; the last entry if no other one is free.
//
// The delay is safe in a directory controller unit, because the unit allocates at most one entry in several cycles.

module first_free #(
  parameter int unsigned Size = 2,

  localparam int unsigned EntryWidth = home_pkg::bits(Size)
) (
  input  logic                  clk_i,
  input  logic [Size-1:0]       used_i,
  output logic                  full_o,   // all entries are in use
  output logic [EntryWidth-1:0] entry_o
);
  always_ff @(posedge clk_i) begin
    full_o  <= used_i == '1;
    entry_o <= EntryWidth'(Size - 1);
    for (int i = int'(Size) - 2; i >= 0; i--) if (!used_i[i]) entry_o <= EntryWidth'(unsigned'(i));
  end
endmodule : first_free
