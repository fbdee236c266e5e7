// AXI4 memory with random delays and back-pressure. Accesses are single beats. With the macro UNDELAYED, it is ready when
// it is idle, and answers in the second cycle after a request.

module random_memory #(
  parameter int unsigned LineWidth = 3,
  parameter int unsigned DataWidth = 64,

  localparam int unsigned StrobeWidth = DataWidth / 8,
  localparam int unsigned AddrWidth   = LineWidth + $clog2(StrobeWidth)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic [DataWidth-1:0]   initial_i [1 << LineWidth],  // contents after the reset

  input  logic                   aw_valid_i,
  output logic                   aw_ready_o,
  input  logic [AddrWidth-1:0]   aw_addr_i,
  input  logic                   w_valid_i,
  output logic                   w_ready_o,
  input  logic [DataWidth-1:0]   w_data_i,
  input  logic [StrobeWidth-1:0] w_strb_i,
  output logic                   b_valid_o,
  input  logic                   b_ready_i,
  input  logic                   ar_valid_i,
  output logic                   ar_ready_o,
  input  logic [AddrWidth-1:0]   ar_addr_i,
  output logic                   r_valid_o,
  input  logic                   r_ready_i,
  output logic [DataWidth-1:0]   r_data_o
);
`ifdef UNDELAYED
  localparam int unsigned MaxDelay = 0;
  localparam int unsigned MaxBusy  = 0;
`else
  localparam int unsigned MaxDelay = 12;
  localparam int unsigned MaxBusy  = 1;
`endif

  logic [DataWidth-1:0]   memory [1 << LineWidth];
  logic [AddrWidth-1:0]   address;
  logic [DataWidth-1:0]   data;
  logic [StrobeWidth-1:0] strobe;
  logic                   has_address, has_data, reads;
  logic [3:0]             delay;
  logic [LineWidth-1:0]   line;

  assign line = LineWidth'(address >> $clog2(StrobeWidth));

  always @(posedge clk_i) begin
    aw_ready_o <= $urandom_range(MaxBusy) == 0 && !has_address && !(aw_valid_i && aw_ready_o);
    w_ready_o  <= $urandom_range(MaxBusy) == 0 && !has_data && !(w_valid_i && w_ready_o);
    ar_ready_o <= $urandom_range(MaxBusy) == 0 && !has_address && !(ar_valid_i && ar_ready_o);
    if (aw_valid_i && aw_ready_o) begin
      has_address <= 1'b1;
      reads       <= 1'b0;
      address     <= aw_addr_i;
    end
    if (ar_valid_i && ar_ready_o) begin
      has_address <= 1'b1;
      reads       <= 1'b1;
      address     <= ar_addr_i;
    end
    if (w_valid_i && w_ready_o) begin
      has_data <= 1'b1;
      data     <= w_data_i;
      strobe   <= w_strb_i;
    end
    if (delay != '0) begin
      delay <= delay - 1'b1;
    end else if (has_address && (reads || has_data) && !b_valid_o && !r_valid_o) begin
      delay     <= 4'($urandom_range(MaxDelay));
      b_valid_o <= !reads;
      r_valid_o <= reads;
      r_data_o  <= memory[line];
      for (int unsigned i = 0; i < StrobeWidth; i++) begin
        if (!reads && strobe[i]) memory[line][8*i +: 8] <= data[8*i +: 8];
      end
    end
    if (b_valid_o && b_ready_i || r_valid_o && r_ready_i) begin
      b_valid_o   <= 1'b0;
      r_valid_o   <= 1'b0;
      has_address <= 1'b0;
      has_data    <= 1'b0;
    end
    if (!rst_ni) begin
      {aw_ready_o, w_ready_o, ar_ready_o, b_valid_o, r_valid_o, has_address, has_data, reads} <= '0;
      delay <= '0;
      memory <= initial_i;
    end
  end
endmodule : random_memory
