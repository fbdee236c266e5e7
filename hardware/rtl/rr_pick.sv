// Round-robin choice: the first requester at or after the position that follows the last one served.
//
// More than `OfGroup` requesters are served in two parallel steps: round-robin among groups of that size, and within each group.
// A persistent requester is picked after at most `Size - 1` others (`Size` rounded up to groups).

module rr_pick #(
  parameter int unsigned Size    = 2,
  parameter int unsigned OfGroup = 8,

  localparam int unsigned IndexWidth = home_pkg::bits(Size)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic [Size-1:0]       ask_i,
  input  logic                  taken_i,  // the picked requester is served in this cycle
  output logic [Size-1:0]       pick_o,   // one-hot; 0 if none asks
  output logic [IndexWidth-1:0] index_o   // its number; 0 if none asks
);
  if (Size == 1) begin : gen_one
    logic unused;
    assign unused  = ^{clk_i, rst_ni, taken_i};
    assign pick_o  = ask_i;
    assign index_o = '0;
  end else if (Size <= OfGroup) begin : gen_several
    // Mask of the requesters after the last one served: ...1110000.
    logic [Size-1:0] after_d, after_q, late;

    assign late       = ask_i & after_q;
    assign pick_o[0]  = late == '0 ? ask_i[0] : late[0];
    assign after_d[0] = 1'b0;
    for (genvar i = 1; i < Size; i++) begin : gen_pick
      assign pick_o[i]  = late == '0 ? ask_i[i] && ask_i[i-1:0] == '0 : late[i] && late[i-1:0] == '0;
      // All positions above the picked one.
      assign after_d[i] = late == '0 ? ask_i[i-1:0] != '0 : late[i-1:0] != '0;
    end

    always_comb begin
      index_o = '0;
      for (int unsigned i = 0; i < Size; i++) begin
        if (pick_o[i]) index_o |= IndexWidth'(i);
      end
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni)                     after_q <= '0;
      else if (taken_i && ask_i != '0) after_q <= after_d;
    end
  end else begin : gen_groups
    localparam int unsigned Groups   = (Size + OfGroup - 1) / OfGroup;
    localparam int unsigned OwnWidth = home_pkg::bits(OfGroup);

    logic [Groups-1:0]                 group_asks, group;
    logic [home_pkg::bits(Groups)-1:0] group_index;
    logic [Groups-1:0][OwnWidth-1:0]   own_index;
    logic [OwnWidth-1:0]               index;

    rr_pick #(
      .Size   (Groups),
      .OfGroup(OfGroup)
    ) u_groups (
      .clk_i,
      .rst_ni,
      .ask_i  (group_asks),
      .taken_i,
      .pick_o (group),
      .index_o(group_index)
    );

    always_comb begin
      index = '0;
      for (int unsigned i = 0; i < Groups; i++) begin
        if (group[i]) index |= own_index[i];
      end
    end
    assign index_o = IndexWidth'({group_index, index});

    for (genvar g = 0; g < Groups; g++) begin : gen_group
      localparam int unsigned First = g * OfGroup;
      localparam int unsigned Own   = Size - First < OfGroup ? Size - First : OfGroup;

      logic [Own-1:0]                 own;
      logic [home_pkg::bits(Own)-1:0] number;

      assign own_index[g] = OwnWidth'(number);

      assign group_asks[g]      = ask_i[First+:Own] != '0;
      assign pick_o[First+:Own]  = group[g] ? own : '0;

      rr_pick #(
        .Size   (Own),
        .OfGroup(OfGroup)
      ) u_own (
        .clk_i,
        .rst_ni,
        .ask_i  (ask_i[First+:Own]),
        .taken_i(taken_i && group[g]),
        .pick_o (own),
        .index_o(number)
      );
    end
  end
endmodule : rr_pick
