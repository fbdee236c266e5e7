// The current event of a unit, and the look-up of its line in the directory.
//
// Groups of ways are read, compared and evaluated in three successive cycles. A completion of memory needs no look-up.
// A recall looks up the line in a given way.

module dcu_lookup #(
  parameter type         trigger_t   = logic,  // an event with its context
  parameter type         state_e     = logic,
  parameter int unsigned TagWidth    = 16,
  parameter int unsigned SetWidth    = 7,
  parameter int unsigned Ways        = 16,
  parameter int unsigned WaysPerStep = 4,

  localparam int unsigned Groups     = Ways / WaysPerStep,
  localparam int unsigned AddrWidth  = $clog2(2 ** SetWidth * Groups)
) (
  input  logic                 clk_i,

  // Clears one word of the directory.
  input  logic                 clear_i,
  input  logic [AddrWidth-1:0] clear_addr_i,

  // The step of the unit in this cycle; at most one of them.
  input  logic                 idle_i,       // the picked event becomes the current one
  input  logic                 read_i,       // the first group of ways is read
  input  logic                 look_i,       // a group of ways is compared, while the previous one is evaluated
  input  trigger_t             picked_i,
  input  logic                 of_memory_i,  // the picked event carries its way and state
  input  logic                 of_recall_i,  // the current event recalls the line in its way

  // Results of the look-up, at most one, in a cycle with `look_i`.
  output logic                 found_o,
  output logic                 missed_o,     // no way holds the line
  output logic                 vacated_o,    // the way of the recall is free already

  // The state of the current line in the directory.
  input  logic                 wr_en_i,
  input  logic                 wr_held_i,    // the state is not the initial one
  input  state_e               wr_state_i,

  output trigger_t             now_o,
  output logic                 hit_o,        // the directory holds the line, in the way of `now_o`
  output logic                 room_o        // a way is free; the event's own way if there was no hit
);
  localparam int unsigned WayWidth   = home_pkg::bits(Ways);
  localparam int unsigned PositionWidth = home_pkg::bits(WaysPerStep);
  localparam int unsigned GroupWidth = home_pkg::bits(Groups);

  trigger_t              now_d;
  logic                  rd_en;
  logic [AddrWidth-1:0]  rd_addr, wr_addr;
  logic [SetWidth-1:0]   set;
  logic [GroupWidth-1:0] group_d, group_q;    // the group that is compared
  logic [GroupWidth-1:0] next_group;
  logic [GroupWidth-1:0] judged_q;            // the group that is evaluated
  logic                  judges_d, judges_q;  // a group is evaluated
  logic                  hit_d, room_d;
  logic                  last_judged, found, free;
  logic [PositionWidth-1:0] found_position, free_position;
  state_e                found_state, recalled_state;
  logic [TagWidth-1:0]   recalled_tag;

  dcu_directory #(
    .state_e    (state_e),
    .TagWidth   (TagWidth),
    .WaysPerStep(WaysPerStep),
    .Words      (2 ** SetWidth * Groups)
  ) u_directory (
    .clk_i,
    .rd_en_i         (rd_en),
    .rd_addr_i       (rd_addr),
    .wr_en_i         (wr_en_i),
    .wr_clear_i      (clear_i),
    .wr_addr_i       (wr_addr),
    .position_i      (position_of(now_o.way)),
    .wr_allocated_i  (wr_held_i),
    .wr_state_i      (wr_state_i),
    .tag_i           (now_o.line[SetWidth+:TagWidth]),
    .state_o         (recalled_state),
    .tag_o           (recalled_tag),
    .found_o         (found),
    .found_position_o(found_position),
    .found_state_o   (found_state),
    .free_o          (free),
    .free_position_o (free_position)
  );

  function automatic logic [AddrWidth-1:0] address(input logic [SetWidth-1:0] in_set, input logic [GroupWidth-1:0] group);
    return AddrWidth'(in_set) * AddrWidth'(Groups) + AddrWidth'(group);
  endfunction

  function automatic logic [GroupWidth-1:0] group_of(input logic [WayWidth-1:0] way);
    return GroupWidth'((WayWidth + 1)'(way) >> $clog2(WaysPerStep));
  endfunction

  function automatic logic [PositionWidth-1:0] position_of(input logic [WayWidth-1:0] way);
    return PositionWidth'(way & WayWidth'(WaysPerStep - 1));
  endfunction

  function automatic logic [WayWidth-1:0] way_of(input logic [GroupWidth-1:0] group, input logic [PositionWidth-1:0] position);
    return WayWidth'(group) * WayWidth'(WaysPerStep) + WayWidth'(position);
  endfunction

  assign set         = now_o.line[SetWidth-1:0];
  assign next_group  = GroupWidth'(home_pkg::incremented(8'(group_q)));
  assign last_judged = judged_q == GroupWidth'(Groups - 1);

  assign rd_en   = read_i || look_i;
  assign rd_addr = address(set, !read_i ? next_group : of_recall_i ? group_of(now_o.way) : '0);
  assign wr_addr = clear_i ? clear_addr_i : address(set, group_of(now_o.way));

  always_comb begin
    now_d     = now_o;
    group_d   = group_q;
    hit_d     = hit_o;
    room_d    = room_o;
    judges_d  = look_i;
    found_o   = 1'b0;
    missed_o  = 1'b0;
    vacated_o = 1'b0;
    if (idle_i) begin
      now_d   = picked_i;
      group_d = '0;
      hit_d   = of_memory_i;
      room_d  = 1'b0;
    end else if (look_i) begin
      group_d = next_group;
      if (of_recall_i) begin
        hit_d = 1'b1;
        if (!judges_q) begin
          now_d.state                    = recalled_state;
          now_d.line[SetWidth+:TagWidth] = recalled_tag;
        end else begin
          // Another event may have freed the way meanwhile.
          found_o   = now_o.state != state_e'(0);
          vacated_o = !found_o;
        end
      end else if (judges_q && found) begin
        found_o     = 1'b1;
        hit_d       = 1'b1;
        now_d.way   = way_of(judged_q, found_position);
        now_d.state = found_state;
      end else if (judges_q) begin
        missed_o = last_judged;
        if (free && !room_o) begin
          room_d    = 1'b1;
          now_d.way = way_of(judged_q, free_position);
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    now_o    <= now_d;
    group_q  <= group_d;
    hit_o    <= hit_d;
    room_o   <= room_d;
    judged_q <= group_q;
    judges_q <= judges_d;
  end
endmodule : dcu_lookup
