// Directory look-up of a directory controller unit (DCU), which also holds the current event.
//
// The ways of a set are read in groups of `WaysPerStep`. Each group passes through three pipeline stages: read,
// compare, evaluate. A memory completion needs no look-up. A recall has no line but a way, and looks up the line in
// this way.

module dcu_lookup #(
  parameter type         trigger_t   = logic,  // an event with its context
  parameter type         state_e     = logic,
  parameter int unsigned TagWidth    = 16,
  parameter int unsigned SetWidth    = 7,
  parameter int unsigned Ways        = 16,
  parameter int unsigned WaysPerStep = 4,

  localparam int unsigned Groups    = Ways / WaysPerStep,
  localparam int unsigned AddrWidth = $clog2(2 ** SetWidth * Groups)
) (
  input  logic                 clk_i,

  // Clears one word of the directory, during initialisation.
  input  logic                 clear_i,
  input  logic [AddrWidth-1:0] clear_addr_i,

  // Step of the unit in this cycle; at most one bit is set.
  input  logic                 load_i,      // load the picked event as the current one
  input  logic                 read_i,      // read the first group of ways
  input  logic                 compare_i,   // compare a group of ways, and evaluate the previous one
  input  trigger_t             picked_i,
  input  logic                 is_completion_i,  // the picked event is a memory completion, which carries its way and state
  input  logic                 is_recall_i,      // the current event is the recall of the line in its way

  // Result of the look-up, in a cycle with `compare_i`; at most one bit is set.
  output logic                 lookup_hit_o,     // a way holds the line
  output logic                 lookup_miss_o,    // no way holds the line
  output logic                 lookup_empty_o,   // the way of the recall is empty

  // Write of the current line's state to the directory.
  input  logic                 wr_en_i,
  input  logic                 wr_allocated_i,   // the state is not the initial one
  input  state_e               wr_state_i,

  // Current event.
  output trigger_t             current_o,
  output logic                 hit_o,           // the directory holds its line, in way `current_o.way`
  output logic                 has_free_way_o   // without a hit: way `current_o.way` is free
);
  localparam int unsigned WayWidth      = home_pkg::bits(Ways);
  localparam int unsigned PositionWidth = home_pkg::bits(WaysPerStep);
  localparam int unsigned GroupWidth    = home_pkg::bits(Groups);

  trigger_t              current_d;
  logic                  rd_en;
  logic [AddrWidth-1:0]  rd_addr, wr_addr;
  logic [SetWidth-1:0]   set;
  logic [GroupWidth-1:0] compared_group_d, compared_group_q;   // group that is compared
  logic [GroupWidth-1:0] next_group;
  logic [GroupWidth-1:0] evaluated_group_q;       // group that is evaluated
  logic                  evaluate_d, evaluate_q;  // a group is evaluated
  logic                  hit_d, has_free_way_d;
  logic                  is_last_group, found, free;
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
    .position_i      (position_of(current_o.way)),
    .wr_allocated_i  (wr_allocated_i),
    .wr_state_i      (wr_state_i),
    .tag_i           (current_o.line[SetWidth+:TagWidth]),
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

  assign set           = current_o.line[SetWidth-1:0];
  assign next_group    = GroupWidth'(home_pkg::incremented(8'(compared_group_q)));
  assign is_last_group = evaluated_group_q == GroupWidth'(Groups - 1);

  assign rd_en   = read_i || compare_i;
  assign rd_addr = address(set, !read_i ? next_group : is_recall_i ? group_of(current_o.way) : '0);
  assign wr_addr = clear_i ? clear_addr_i : address(set, group_of(current_o.way));

  always_comb begin
    current_d        = current_o;
    compared_group_d = compared_group_q;
    hit_d            = hit_o;
    has_free_way_d   = has_free_way_o;
    evaluate_d       = compare_i;
    lookup_hit_o     = 1'b0;
    lookup_miss_o    = 1'b0;
    lookup_empty_o   = 1'b0;
    if (load_i) begin
      current_d        = picked_i;
      compared_group_d = '0;
      hit_d            = is_completion_i;
      has_free_way_d   = 1'b0;
    end else if (compare_i) begin
      compared_group_d = next_group;
      if (is_recall_i) begin
        hit_d = 1'b1;
        if (!evaluate_q) begin
          current_d.state                    = recalled_state;
          current_d.line[SetWidth+:TagWidth] = recalled_tag;
        end else begin
          // Another event may have freed the way since the recall was requested.
          lookup_hit_o   = current_o.state != state_e'(0);
          lookup_empty_o = !lookup_hit_o;
        end
      end else if (evaluate_q && found) begin
        lookup_hit_o    = 1'b1;
        hit_d           = 1'b1;
        current_d.way   = way_of(evaluated_group_q, found_position);
        current_d.state = found_state;
      end else if (evaluate_q) begin
        lookup_miss_o = is_last_group;
        if (free && !has_free_way_o) begin
          has_free_way_d = 1'b1;
          current_d.way  = way_of(evaluated_group_q, free_position);
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    current_o         <= current_d;
    compared_group_q  <= compared_group_d;
    hit_o             <= hit_d;
    has_free_way_o    <= has_free_way_d;
    evaluated_group_q <= compared_group_q;
    evaluate_q        <= evaluate_d;
  end
endmodule : dcu_lookup
