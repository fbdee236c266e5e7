// A requester is picked if any exists, and each other one is picked at most once before a persistent requester.

`include "assertions.svh"

module rr_pick_proof #(
  parameter int unsigned Size    = 5,
  parameter int unsigned OfGroup = 8
) (
  input  logic            clk_i,
  input  logic [Size-1:0] ask_i,
  input  logic            taken_i,
  input  logic [7:0]      who_i     // an arbitrary requester, constant
);
  localparam int unsigned Groups = Size <= OfGroup ? 1 : (Size + OfGroup - 1) / OfGroup;
  localparam int unsigned Own    = Size <= OfGroup ? Size : OfGroup;

  // Reset in the first cycle only.
  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic [Size-1:0]                   pick;
  logic [home_pkg::bits(Size)-1:0]   index;

  rr_pick #(
    .Size   (Size),
    .OfGroup(OfGroup)
  ) u_pick (
    .clk_i,
    .rst_ni,
    .ask_i,
    .taken_i,
    .pick_o (pick),
    .index_o(index)
  );

  `ASSERT(one, $onehot0(pick) && (pick != '0) == (ask_i != '0))
  `ASSERT(one_that_asks, (pick & ~ask_i) == '0)
  `ASSERT(its_number, ask_i == '0 || pick[index])

  // Number of other requesters served while it asked.
  logic [7:0] who_q, waited_q;
  logic       asks, picked;

  `ASSUME_OR(same, who_i == who_q, ("who changes"))

  always_comb begin
    asks   = 1'b0;
    picked = 1'b0;
    for (int unsigned i = 0; i < Size; i++) begin
      if (who_i == 8'(i)) begin
        asks   = ask_i[i];
        picked = pick[i];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    who_q <= who_i;
    if (!rst_ni || !asks || taken_i && picked) waited_q <= '0;
    else if (taken_i)                          waited_q <= waited_q + 8'd1;
  end

  `ASSERT(fair, 32'(waited_q) < Groups * Own)

  // Inductive strengthening: the number of requesters that precede it.
  function automatic logic [7:0] ahead(input logic [31:0] after, input logic [7:0] place, input int unsigned size);
    ahead = '0;
    for (int unsigned i = 0; i < 32; i++) begin
      if (i < size && (after[i] && !after[place[4:0]] || after[i] == after[place[4:0]] && 8'(i) < place)) ahead++;
    end
  endfunction

  // Requesters after the last one served: ...1110000.
  function automatic logic is_mask(input logic [31:0] after, input int unsigned size);
    is_mask = !after[0];
    for (int unsigned i = 1; i < size; i++) if (after[i-1] && !after[i]) is_mask = i == 1;
  endfunction

  logic [7:0] bound;
  if (Size == 1) begin : gen_one
    assign bound = '0;
  end else if (Groups == 1) begin : gen_several
    `ASSERT(mask, is_mask(32'(u_pick.gen_several.after_q), Size))
    assign bound = ahead(32'(u_pick.gen_several.after_q), who_i, Size);
  end else begin : gen_groups
    logic [Groups-1:0][7:0] of_group;
    `ASSERT(mask, is_mask(32'(u_pick.gen_groups.u_groups.gen_several.after_q), Groups))
    for (genvar g = 0; g < Groups; g++) begin : gen_group
      localparam int unsigned Here = Size - g * OfGroup < OfGroup ? Size - g * OfGroup : OfGroup;
      `ASSERT(mask, is_mask(32'(u_pick.gen_groups.gen_group[g].u_own.gen_several.after_q), Here))
      assign of_group[g] = who_i / 8'(OfGroup) != 8'(g) ? '0
        : ahead(32'(u_pick.gen_groups.gen_group[g].u_own.gen_several.after_q), who_i % 8'(OfGroup), Here) * 8'(Groups)
        + ahead(32'(u_pick.gen_groups.u_groups.gen_several.after_q), 8'(g), Groups);
    end
    always_comb begin
      bound = '0;
      for (int unsigned g = 0; g < Groups; g++) bound |= of_group[g];
    end
  end
  `ASSERT(nearer, 32'(who_i) >= Size || 32'(waited_q) + 32'(bound) < Groups * Own)
endmodule : rr_pick_proof
