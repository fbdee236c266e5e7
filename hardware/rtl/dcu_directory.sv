// Directory of a directory controller unit (DCU): tags and states of the lines that are not in the initial state, in
// sets of several ways.
//
// A word holds the ways that are compared in one cycle. Cycle 0 has the address; in cycle 1 the word is read and
// compared; in cycle 2 the result is valid. The word is stable until the next read.

module dcu_directory #(
  // Words: number of words, that is, sets times the groups of ways of a set.
  parameter type         state_e     = logic,
  parameter int unsigned TagWidth    = 16,
  parameter int unsigned WaysPerStep = 4,
  parameter int unsigned Words       = 512,

  localparam int unsigned AddrWidth     = home_pkg::bits(Words),
  localparam int unsigned PositionWidth = home_pkg::bits(WaysPerStep)
) (
  input  logic                  clk_i,

  input  logic                  rd_en_i,
  input  logic [AddrWidth-1:0]  rd_addr_i,

  // Write port: one way of a word. `wr_clear_i` empties all ways of the word.
  input  logic                     wr_en_i,
  input  logic                     wr_clear_i,
  input  logic [AddrWidth-1:0]     wr_addr_i,
  input  logic [PositionWidth-1:0] position_i,
  input  logic                     wr_allocated_i,  // the state is not the initial one
  input  state_e                   wr_state_i,
  input  logic [TagWidth-1:0]      tag_i,

  // State and tag at `position_i` of the last word read.
  output state_e                state_o,
  output logic [TagWidth-1:0]   tag_o,

  // Results for the word of the previous cycle: the tag is present; a way is free.
  output logic                     found_o,
  output logic [PositionWidth-1:0] found_position_o,
  output state_e                   found_state_o,
  output logic                     free_o,
  output logic [PositionWidth-1:0] free_position_o
);
  // `allocated` follows from the state; it saves a comparison per way.
  typedef struct packed {
    logic                allocated;
    state_e              state;
    logic [TagWidth-1:0] tag;
  } entry_t;

  logic   [WaysPerStep*$bits(entry_t)-1:0] rd_bits;
  entry_t [WaysPerStep-1:0]                rd_word;
  entry_t                                  wr_entry;
  logic   [WaysPerStep-1:0]                wr_lanes, match_q, allocated_q;
  state_e [WaysPerStep-1:0]                states_q;

  ram_block #(
    .Depth(Words),
    .Width($bits(entry_t) * WaysPerStep),
    .Lanes(WaysPerStep)
  ) u_words (
    .clk_i,
    .wr_en_i  (wr_lanes),
    .wr_addr_i(wr_addr_i),
    .wr_data_i({WaysPerStep{wr_entry}}),
    .rd_en_i  (rd_en_i),
    .rd_addr_i(rd_addr_i),
    .rd_data_o(rd_bits)
  );

  always_comb begin
    for (int unsigned i = 0; i < WaysPerStep; i++) rd_word[i] = entry_t'(rd_bits[i*$bits(entry_t)+:$bits(entry_t)]);
    wr_entry = wr_clear_i ? '0 : entry_t'{wr_allocated_i, wr_state_i, tag_i};
    for (int unsigned i = 0; i < WaysPerStep; i++) begin
      wr_lanes[i] = wr_clear_i || wr_en_i && position_i == PositionWidth'(i);
    end
  end

  assign state_o = rd_word[position_i].state;
  assign tag_o   = rd_word[position_i].tag;

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < WaysPerStep; i++) begin
      allocated_q[i] <= rd_word[i].allocated;
      match_q[i]     <= rd_word[i].allocated && rd_word[i].tag == tag_i;
      states_q[i]    <= rd_word[i].state;
    end
  end

  always_comb begin
    free_position_o  = '0;
    found_position_o = '0;
    found_state_o    = state_e'(0);
    for (int unsigned i = 0; i < WaysPerStep; i++) begin
      if (!allocated_q[i]) free_position_o = PositionWidth'(i);
      if (match_q[i]) begin
        found_position_o |= PositionWidth'(i);
        found_state_o = state_e'(found_state_o | states_q[i]);
      end
    end
  end

  assign found_o = match_q != '0;
  assign free_o  = allocated_q != '1;
endmodule : dcu_directory
