// Choice of one of several waiting messages. Every input is offered in turn, also if others are not taken. While the
// receiver cannot take all messages, other inputs are offered, and the turn is kept: otherwise an input could have its
// turn at these times only.

module cohkit_pick #(
  parameter int unsigned Inputs = 2,

  localparam int unsigned IndexWidth = Inputs > 1 ? $clog2(Inputs) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic [Inputs-1:0]     valid_i,
  input  logic                  hold_i,    // keep the choice
  input  logic                  busy_i,    // keep the turn, and offer other inputs meanwhile
  output logic                  valid_o,
  output logic [IndexWidth-1:0] index_o
);
  logic [IndexWidth-1:0] turn_q, other_q, first, next;
  logic [Inputs-1:0]     later, candidates;

  always_comb begin
    for (int unsigned i = 0; i < Inputs; i++) later[i] = valid_i[i] && IndexWidth'(i) >= first;
    candidates = later != '0 ? later : valid_i;
    index_o    = '0;
    for (int unsigned i = 0; i < Inputs; i++) begin
      if (candidates[Inputs-1-i]) index_o = IndexWidth'(Inputs - 1 - i);
    end
  end

  assign first   = busy_i ? other_q : turn_q;
  assign next    = hold_i ? index_o : !valid_o ? first
                   : index_o == IndexWidth'(Inputs - 1) ? '0 : IndexWidth'(index_o + 1'b1);
  assign valid_o = valid_i != '0;

  always_ff @(posedge clk_i) begin
    if (busy_i) other_q <= next;
    else turn_q <= next;
    if (!rst_ni) begin
      turn_q  <= '0;
      other_q <= '0;
    end
  end
endmodule : cohkit_pick
