// Memory with one write port and combinational reads, which FPGA tools map to distributed RAM. Its contents are
// undefined until they are written.

module cohkit_ram #(
  parameter int unsigned Words     = 32,
  parameter int unsigned Width     = 8,
  parameter int unsigned ReadPorts = 1,

  localparam int unsigned AddressWidth = Words > 1 ? $clog2(Words) : 1
) (
  input  logic                                    clk_i,
  input  logic                                    write_i,
  input  logic [AddressWidth-1:0]                 write_address_i,
  input  logic [Width-1:0]                        write_data_i,
  input  logic [ReadPorts-1:0][AddressWidth-1:0]  read_address_i,
  output logic [ReadPorts-1:0][Width-1:0]         read_data_o
);
  (* ram_style = "distributed" *) logic [Width-1:0] words_q [Words];

  always_ff @(posedge clk_i) begin
    if (write_i) words_q[write_address_i] <= write_data_i;
  end

  for (genvar i = 0; i < ReadPorts; i++) begin : gen_read
    assign read_data_o[i] = words_q[read_address_i[i]];
  end
endmodule : cohkit_ram
