// Proof of rr_pick: a requester is picked if there is a request, and each other requester is picked at most once before
// a persistent one.

`include "assertions.svh"

module rr_pick_proof #(
  parameter int unsigned Size      = 5,
  parameter int unsigned GroupSize = 8
) (
  input  logic            clk_i,
  input  logic [Size-1:0] req_i,
  input  logic            accept_i,
  input  logic [7:0]      watched_i     // the watched requester: arbitrary and constant
);
  localparam int unsigned Groups  = Size <= GroupSize ? 1 : (Size + GroupSize - 1) / GroupSize;
  localparam int unsigned Members = Size <= GroupSize ? Size : GroupSize;

  // Reset in the first cycle only.
  logic rst_ni = 1'b0;
  always_ff @(posedge clk_i) rst_ni <= 1'b1;

  logic [Size-1:0]                   pick;
  logic [home_pkg::bits(Size)-1:0]   index;

  rr_pick #(
    .Size     (Size),
    .GroupSize(GroupSize)
  ) u_pick (
    .clk_i,
    .rst_ni,
    .req_i,
    .accept_i,
    .pick_o (pick),
    .index_o(index)
  );

  `ASSERT(one_pick, $onehot0(pick) && (pick != '0) == (req_i != '0))
  `ASSERT(pick_requests, (pick & ~req_i) == '0)
  `ASSERT(index_matches, req_i == '0 || pick[index])

  // Number of other requesters served while the watched one requests.
  logic [7:0] watched_q, passes_q;
  logic       requests, picked;

  `ASSUME_OR(watched_constant, watched_i == watched_q, ("the watched requester changes"))

  always_comb begin
    requests = 1'b0;
    picked   = 1'b0;
    for (int unsigned i = 0; i < Size; i++) begin
      if (watched_i == 8'(i)) begin
        requests = req_i[i];
        picked   = pick[i];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    watched_q <= watched_i;
    if (!rst_ni || !requests || accept_i && picked) passes_q <= '0;
    else if (accept_i)                         passes_q <= passes_q + 8'd1;
  end

  `ASSERT(fair, 32'(passes_q) < Groups * Members)

  // Invariant that makes `fair` inductive (claim `bound_decreases`): the services of others while the watched one
  // requests (`passes_q`), and those that may still precede its own (`bound`), are together fewer than all requesters.
  // Each service of another requester adds 1 to `passes_q` and takes at least 1 from `bound`.

  // Returns the number of positions with priority over `position`, if `after` masks the positions after the last one
  // served: positions in the mask come first, and within each half the lower position.
  function automatic logic [7:0] preceding(input logic [31:0] after, input logic [7:0] position,
                                           input int unsigned size);
    logic position_after;
    position_after = after[position[4:0]];
    preceding      = '0;
    for (int unsigned i = 0; i < 32; i++) begin
      if (i < size && (after[i] && !position_after || after[i] == position_after && 8'(i) < position)) preceding++;
    end
  endfunction

  // Returns true for a mask of the form ...1110000 without bit 0, possibly empty: the positions after some position.
  function automatic logic is_mask(input logic [31:0] after, input int unsigned size);
    is_mask = !after[0];
    for (int unsigned i = 1; i < size; i++) if (after[i-1] && !after[i]) is_mask = 1'b0;
  endfunction

  // Maximum number of services before the next one of the watched requester.
  logic [7:0] bound;
  if (Size == 1) begin : gen_single
    assign bound = '0;
  end else if (Groups == 1) begin : gen_flat
    `ASSERT(mask_legal, is_mask(32'(u_pick.gen_flat.after_last_q), Size))
    assign bound = preceding(32'(u_pick.gen_flat.after_last_q), watched_i, Size);
  end else begin : gen_groups
    logic [Groups-1:0][7:0] group_bound;
    `ASSERT(mask_legal, is_mask(32'(u_pick.gen_groups.u_groups.gen_flat.after_last_q), Groups))
    for (genvar g = 0; g < Groups; g++) begin : gen_group
      localparam int unsigned GroupMembers = Size - g * GroupSize < GroupSize ? Size - g * GroupSize : GroupSize;
      logic [31:0] members_after;
      assign members_after = 32'(u_pick.gen_groups.gen_group[g].u_members.gen_flat.after_last_q);
      `ASSERT(mask_legal, is_mask(members_after, GroupMembers))
      // Between two services of the watched one's group, each other group is served at most once. So each member of the
      // group that precedes the watched one costs at most `Groups` services; the groups that precede its own cost one.
      assign group_bound[g] = watched_i / 8'(GroupSize) != 8'(g) ? '0
        : preceding(members_after, watched_i % 8'(GroupSize), GroupMembers) * 8'(Groups)
        + preceding(32'(u_pick.gen_groups.u_groups.gen_flat.after_last_q), 8'(g), Groups);
    end
    always_comb begin
      bound = '0;
      for (int unsigned g = 0; g < Groups; g++) bound |= group_bound[g];
    end
  end
  `ASSERT(bound_decreases, 32'(watched_i) >= Size || 32'(passes_q) + 32'(bound) < Groups * Members)
endmodule : rr_pick_proof
