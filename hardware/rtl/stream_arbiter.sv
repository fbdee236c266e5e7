// Joins streams into one, in turn, behind a register that cuts all paths.

module stream_arbiter #(
  parameter int unsigned Size   = 2,
  parameter type         data_t = logic
) (
  input  logic                                  clk_i,
  input  logic                                  rst_ni,

  input  logic  [Size-1:0]                      wr_valid_i,
  output logic  [Size-1:0]                      wr_ready_o,
  input  logic  [Size-1:0][$bits(data_t)-1:0]   wr_data_i,

  output logic                                  rd_valid_o,
  input  logic                                  rd_ready_i,
  output data_t                                 rd_data_o,
  output logic  [home_pkg::bits(Size)-1:0]      rd_index_o   // the stream that it came by
);
  localparam int unsigned IndexWidth = home_pkg::bits(Size);

  typedef struct packed {
    logic [IndexWidth-1:0] index;
    data_t                 data;
  } joined_t;

  logic [Size-1:0] pick;
  logic            ready;
  joined_t         joined, result;

  rr_pick #(
    .Size(Size)
  ) u_pick (
    .clk_i,
    .rst_ni,
    .ask_i  (wr_valid_i),
    .taken_i(ready),
    .pick_o (pick)
  );

  assign wr_ready_o = ready ? pick : '0;

  always_comb begin
    joined = '0;
    for (int unsigned i = 0; i < Size; i++) begin
      if (pick[i]) joined |= {IndexWidth'(i), wr_data_i[i]};
    end
  end

  spill_register #(
    .data_t(joined_t)
  ) u_register (
    .clk_i,
    .rst_ni,
    .wr_valid_i(wr_valid_i != '0),
    .wr_ready_o(ready),
    .wr_data_i (joined),
    .rd_valid_o,
    .rd_ready_i,
    .rd_data_o (result)
  );

  assign rd_data_o  = result.data;
  assign rd_index_o = result.index;
endmodule : stream_arbiter
