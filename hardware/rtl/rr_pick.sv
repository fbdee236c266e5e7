// Picks one of several in turn: the first that asks at or after the one that follows the last taken.
//
// Each that goes on asking is picked after at most `Size - 1` others.

module rr_pick #(
  parameter int unsigned Size = 2
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic [Size-1:0] ask_i,
  input  logic            taken_i,  // what is picked is taken in this cycle
  output logic [Size-1:0] pick_o    // one-hot; 0 if nobody asks
);
  if (Size == 1) begin : gen_one
    logic unused;
    assign unused = ^{clk_i, rst_ni, taken_i};
    assign pick_o = ask_i;
  end else begin : gen_several
    // Those after the last one that was taken, as a mask: ...1110000.
    logic [Size-1:0] after_q, late, lowest_late, lowest;

    assign late        = ask_i & after_q;
    assign lowest_late = late & (~late + 1'b1);
    assign lowest      = ask_i & (~ask_i + 1'b1);
    assign pick_o      = late != '0 ? lowest_late : lowest;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        after_q <= '0;
      end else if (taken_i && ask_i != '0) begin
        // All places above the one picked.
        after_q <= ~(pick_o | (pick_o - 1'b1));
      end
    end
  end
endmodule : rr_pick
