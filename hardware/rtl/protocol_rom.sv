// Protocol ROM, shared by several units: each memory block has two ports, and each port serves a group of units
// round-robin.
//
// The row is valid in the cycle after `rom_valid_i` and `rom_ready_o`. The initial contents are those of `RomFile`; in
// simulation, `+rom=FILE` overrides it.

module protocol_rom #(
  // UnitsPerPort: units that share a read port. RowWidth: bits of a row.
  parameter int unsigned Units        = 1,
  parameter int unsigned UnitsPerPort = 8,
  parameter int unsigned AddrWidth    = 12,
  parameter int unsigned RowWidth     = 20,
  parameter              RomFile      = ""
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,

  // Requests of the units, and the rows, one cycle after the request was accepted.
  input  logic [Units-1:0]                rom_valid_i,
  output logic [Units-1:0]                rom_ready_o,
  input  logic [Units-1:0][AddrWidth-1:0] rom_addr_i,

  output logic [Units-1:0]                row_valid_o,
  output logic [Units-1:0][RowWidth-1:0]  row_o
);
  localparam int unsigned Ports = (Units + UnitsPerPort - 1) / UnitsPerPort;
  localparam int unsigned Roms  = (Ports + 1) / 2;

  logic [2*Roms-1:0]                enable;
  logic [2*Roms-1:0][AddrWidth-1:0] addr;
  logic [2*Roms-1:0][RowWidth-1:0]  row;

  for (genvar p = 0; p < 2 * Roms; p++) begin : gen_port
    localparam int unsigned First     = p * UnitsPerPort;
    localparam int unsigned UnitsLeft = First < Units ? Units - First : 0;
    localparam int unsigned PortUnits = UnitsLeft < UnitsPerPort ? UnitsLeft : UnitsPerPort;

    if (PortUnits == 0) begin : gen_unused
      logic unused;
      assign enable[p] = 1'b0;
      assign addr[p]   = '0;
      assign unused    = ^row[p];
    end else begin : gen_used
      logic [PortUnits-1:0]                 pick, served_q;
      logic [home_pkg::bits(PortUnits)-1:0] unused_index;

      rr_pick #(
        .Size(PortUnits)
      ) u_pick (
        .clk_i,
        .rst_ni,
        .req_i   (rom_valid_i[First+:PortUnits]),
        .accept_i(1'b1),
        .pick_o  (pick),
        .index_o (unused_index)
      );

      assign enable[p]                     = pick != '0;
      assign rom_ready_o[First+:PortUnits] = pick;
      assign row_valid_o[First+:PortUnits] = served_q;

      for (genvar i = 0; i < PortUnits; i++) begin : gen_row
        assign row_o[First+i] = row[p];
      end

      always_comb begin
        addr[p] = '0;
        for (int unsigned i = 0; i < PortUnits; i++) begin
          if (pick[i]) addr[p] |= rom_addr_i[First+i];
        end
      end

      always_ff @(posedge clk_i) begin
        if (!rst_ni) served_q <= '0;
        else         served_q <= pick;
      end
    end
  end

  for (genvar r = 0; r < Roms; r++) begin : gen_rom
    rom_block #(
      .AddrWidth(AddrWidth),
      .RowWidth (RowWidth),
      .RomFile  (RomFile)
    ) u_rom (
      .clk_i,
      .enable_i(enable[2*r+:2]),
      .addr_i  (addr[2*r+:2]),
      .row_o   (row[2*r+:2])
    );
  end
endmodule : protocol_rom
