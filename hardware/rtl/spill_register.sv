// Two-entry register stage that cuts the valid, data and ready paths of a stream.
//
// The second entry accepts the element that arrives in the cycle in which the receiver is no longer ready.

`include "assertions.svh"

module spill_register #(
  parameter type data_t = logic
) (
  input  logic  clk_i,
  input  logic  rst_ni,

  input  logic  wr_valid_i,
  output logic  wr_ready_o,
  input  data_t wr_data_i,

  output logic  rd_valid_o,
  input  logic  rd_ready_i,
  output data_t rd_data_o
);
  data_t first_q, spilt_q;
  logic  first_valid_q, spilt_valid_q;

  assign wr_ready_o = !spilt_valid_q;
  assign rd_valid_o = first_valid_q;
  assign rd_data_o  = first_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_valid_q <= 1'b0;
      spilt_valid_q <= 1'b0;
    end else if (rd_ready_i || !first_valid_q) begin
      first_valid_q <= spilt_valid_q || wr_valid_i;
      spilt_valid_q <= 1'b0;
    end else begin
      spilt_valid_q <= spilt_valid_q || wr_valid_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_ready_i || !first_valid_q) first_q <= spilt_valid_q ? spilt_q : wr_data_i;
    if (wr_ready_o) spilt_q <= wr_data_i;
  end

  `ASSERT_STABLE(stable_read, rd_valid_o, rd_ready_i, rd_data_o)
endmodule : spill_register
