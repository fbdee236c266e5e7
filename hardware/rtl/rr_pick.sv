// Round-robin arbiter: picks the first requester after the last one served.
//
// More than `GroupSize` requesters are arbitrated in two parallel levels: among groups of that size, and within each
// group. A persistent requester is picked after at most `Size - 1` others (`Size` rounded up to full groups).

module rr_pick #(
  parameter int unsigned Size      = 2,
  parameter int unsigned GroupSize = 8,

  localparam int unsigned IndexWidth = home_pkg::bits(Size)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic [Size-1:0]       req_i,
  input  logic                  accept_i,  // the picked requester is served in this cycle; the priority rotates
  output logic [Size-1:0]       pick_o,    // one-hot; 0 without a request
  output logic [IndexWidth-1:0] index_o    // index of the picked requester; 0 without a request
);
  if (Size == 1) begin : gen_single
    logic unused;
    assign unused  = ^{clk_i, rst_ni, accept_i};
    assign pick_o  = req_i;
    assign index_o = '0;
  end else if (Size <= GroupSize) begin : gen_flat
    // Mask of the positions after the last requester served: ...1110000.
    logic [Size-1:0] after_last_d, after_last_q, reqs_after;

    assign reqs_after      = req_i & after_last_q;
    assign pick_o[0]       = reqs_after == '0 ? req_i[0] : reqs_after[0];
    assign after_last_d[0] = 1'b0;
    for (genvar i = 1; i < Size; i++) begin : gen_pick
      assign pick_o[i]  = reqs_after == '0 ? req_i[i] && req_i[i-1:0] == '0 : reqs_after[i] && reqs_after[i-1:0] == '0;
      // All positions above the picked one.
      assign after_last_d[i] = reqs_after == '0 ? req_i[i-1:0] != '0 : reqs_after[i-1:0] != '0;
    end

    always_comb begin
      index_o = '0;
      for (int unsigned i = 0; i < Size; i++) begin
        if (pick_o[i]) index_o |= IndexWidth'(i);
      end
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni)                     after_last_q <= '0;
      else if (accept_i && req_i != '0) after_last_q <= after_last_d;
    end
  end else begin : gen_groups
    localparam int unsigned Groups      = (Size + GroupSize - 1) / GroupSize;
    localparam int unsigned MemberWidth = home_pkg::bits(GroupSize);

    logic [Groups-1:0]                  group_req, group_pick;
    logic [home_pkg::bits(Groups)-1:0]  group_index;
    logic [Groups-1:0][MemberWidth-1:0] member_index;
    logic [MemberWidth-1:0]             index;

    rr_pick #(
      .Size     (Groups),
      .GroupSize(GroupSize)
    ) u_groups (
      .clk_i,
      .rst_ni,
      .req_i  (group_req),
      .accept_i,
      .pick_o (group_pick),
      .index_o(group_index)
    );

    always_comb begin
      index = '0;
      for (int unsigned i = 0; i < Groups; i++) begin
        if (group_pick[i]) index |= member_index[i];
      end
    end
    assign index_o = IndexWidth'({group_index, index});

    for (genvar g = 0; g < Groups; g++) begin : gen_group
      localparam int unsigned First   = g * GroupSize;
      localparam int unsigned Members = Size - First < GroupSize ? Size - First : GroupSize;

      logic [Members-1:0]                 member_pick;
      logic [home_pkg::bits(Members)-1:0] own_member_index;

      assign member_index[g] = MemberWidth'(own_member_index);

      assign group_req[g]           = req_i[First+:Members] != '0;
      assign pick_o[First+:Members] = group_pick[g] ? member_pick : '0;

      rr_pick #(
        .Size     (Members),
        .GroupSize(GroupSize)
      ) u_members (
        .clk_i,
        .rst_ni,
        .req_i   (req_i[First+:Members]),
        .accept_i(accept_i && group_pick[g]),
        .pick_o  (member_pick),
        .index_o (own_member_index)
      );
    end
  end
endmodule : rr_pick
