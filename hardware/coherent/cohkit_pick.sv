// Choice of one of several waiting messages. Every input is offered in turn, also if others are not taken.

module cohkit_pick #(
  parameter int unsigned Inputs = 2,

  localparam int unsigned IndexWidth = Inputs > 1 ? $clog2(Inputs) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic [Inputs-1:0]     valid_i,
  input  logic                  hold_i,    // keep the choice
  output logic                  valid_o,
  output logic [IndexWidth-1:0] index_o
);
  logic [IndexWidth-1:0] after_q;
  logic [Inputs-1:0]     later, candidates;

  always_comb begin
    for (int unsigned i = 0; i < Inputs; i++) later[i] = valid_i[i] && IndexWidth'(i) >= after_q;
    candidates = later != '0 ? later : valid_i;
    index_o    = '0;
    for (int unsigned i = 0; i < Inputs; i++) begin
      if (candidates[Inputs-1-i]) index_o = IndexWidth'(Inputs - 1 - i);
    end
  end

  assign valid_o = valid_i != '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) after_q <= '0;
    else if (!hold_i && valid_o) after_q <= index_o == IndexWidth'(Inputs - 1) ? '0 : IndexWidth'(index_o + 1'b1);
    else if (hold_i) after_q <= index_o;
  end
endmodule : cohkit_pick
