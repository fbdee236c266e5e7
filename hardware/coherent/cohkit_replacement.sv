// Victims of a set-associative cache: the way of each set whose line is evicted next.
//
// Policy 0 is round robin: each eviction of a set advances its victim. Policy 1 is tree pseudo-LRU: each use of a way
// turns the nodes above it away from it, and the victim is the way to which they lead. Policy 2 is random: a shift
// register of the whole cache, which advances with each eviction.

module cohkit_replacement #(
  parameter int unsigned Policy  = 0,
  parameter int unsigned SetBits = 1,
  parameter int unsigned Sets    = 2,
  parameter int unsigned Ways    = 2,

  localparam int unsigned WayWidth = Ways > 1 ? $clog2(Ways) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic [SetBits-1:0]  set_i,       // set in which a victim is needed
  output logic [WayWidth-1:0] victim_o,
  input  logic                evict_i,     // it is evicted

  input  logic                use_i,       // an entry is used or evicted
  input  logic [SetBits-1:0]  use_set_i,
  input  logic [WayWidth-1:0] use_way_i
);
  if (Policy > 2) begin : gen_invalid_policy
    $error("cohkit_replacement: Policy must be at most 2");
  end

  if (Ways == 1) begin : gen_single
    logic unused;
    assign unused   = ^{clk_i, rst_ni, set_i, evict_i, use_i, use_set_i, use_way_i};
    assign victim_o = '0;
  end else if (Policy == 1) begin : gen_pseudo_lru
    localparam int unsigned Leaves   = 1 << WayWidth;
    localparam int unsigned NodeBits = WayWidth + 1;
    typedef logic [NodeBits-1:0] node_t;

    // Bit of each inner node, numbered from 1 at the root: the victim is in the upper half. The children of a node have
    // twice its number, and the leaves are the ways.
    logic [Sets-1:0][Leaves-1:1] upper_q;
    node_t                       victim;
    logic                        unused;
    assign unused = ^{evict_i, victim[NodeBits-1]};

    always_comb begin
      victim = node_t'(1);
      for (int unsigned level = 0; level < WayWidth; level++) begin
        // Ways that do not exist are never victims.
        if (upper_q[set_i][victim[WayWidth-1:0]]
            && ((32'(victim) << 1 | 32'd1) << (WayWidth - 1 - level)) - Leaves < Ways) begin
          victim = node_t'(victim << 1 | node_t'(1));
        end else begin
          victim = node_t'(victim << 1);
        end
      end
    end
    assign victim_o = victim[WayWidth-1:0];

    always_ff @(posedge clk_i) begin
      // The node of a level is the leaf's number without its lower bits.
      for (int unsigned level = 0; level < WayWidth; level++) begin
        if (use_i) upper_q[use_set_i][WayWidth'((Leaves | 32'(use_way_i)) >> (WayWidth - level))]
                     <= !use_way_i[WayWidth-1-level];
      end
      if (!rst_ni) upper_q <= '0;
    end
  end else if (Policy == 2) begin : gen_random
    logic [15:0] register_q;
    logic        unused;
    assign unused   = ^{set_i, use_i, use_set_i, use_way_i};
    assign victim_o = WayWidth'(32'(register_q) * Ways >> 16);

    always_ff @(posedge clk_i) begin
      // Maximum-length polynomial: x^16 + x^14 + x^13 + x^11 + 1.
      if (evict_i) register_q <= {register_q[14:0], register_q[15] ^ register_q[13] ^ register_q[12] ^ register_q[10]};
      if (!rst_ni) register_q <= 16'h5eed;
    end
  end else begin : gen_round_robin
    logic [Sets-1:0][WayWidth-1:0] victims_q;
    logic                          unused;
    assign unused   = ^{use_i, use_set_i, use_way_i};
    assign victim_o = victims_q[set_i];

    always_ff @(posedge clk_i) begin
      if (evict_i) victims_q[set_i] <= victim_o == WayWidth'(Ways - 1) ? '0 : WayWidth'(victim_o + 1'b1);
      if (!rst_ni) victims_q <= '0;
    end
  end
endmodule : cohkit_replacement
