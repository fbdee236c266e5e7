// The directory of a unit: tags and states of the lines that are not in the first state, in sets of several ways.
//
// A word holds the ways that are compared in one cycle. It is there in the cycle after its address and stays until
// the next is read; it is compared in that cycle, and what was found is told in the one after.

module dcu_directory #(
  parameter type         state_e     = logic,
  parameter int unsigned TagWidth    = 16,
  parameter int unsigned WaysPerStep = 4,
  parameter int unsigned Words       = 512,

  localparam int unsigned AddrWidth  = home_pkg::bits(Words),
  localparam int unsigned PlaceWidth = home_pkg::bits(WaysPerStep)
) (
  input  logic                  clk_i,

  input  logic                  rd_en_i,
  input  logic [AddrWidth-1:0]  rd_addr_i,

  // One way of the word that was read last, or all of a word with `wr_clear_i`.
  input  logic                  wr_en_i,
  input  logic                  wr_clear_i,
  input  logic [AddrWidth-1:0]  wr_addr_i,
  input  logic [PlaceWidth-1:0] place_i,
  input  state_e                wr_state_i,
  input  logic [TagWidth-1:0]   tag_i,

  // What stands in the place of the word that was read last.
  output state_e                state_o,
  output logic [TagWidth-1:0]   tag_o,

  // Whether the tag is in the word that was there a cycle before, and whether that has a free place.
  output logic                  found_o,
  output logic [PlaceWidth-1:0] found_place_o,
  output state_e                found_state_o,
  output logic                  free_o,
  output logic [PlaceWidth-1:0] free_place_o
);
  typedef struct packed {
    state_e              state;
    logic [TagWidth-1:0] tag;
  } entry_t;

  entry_t [WaysPerStep-1:0] wr_word, rd_word;
  logic   [WaysPerStep-1:0] match_q, free_q;
  state_e [WaysPerStep-1:0] states_q;

  ram_block #(
    .Depth(Words),
    .Width($bits(entry_t) * WaysPerStep)
  ) u_words (
    .clk_i,
    .wr_en_i  (wr_en_i),
    .wr_addr_i(wr_addr_i),
    .wr_data_i(wr_word),
    .rd_en_i  (rd_en_i),
    .rd_addr_i(rd_addr_i),
    .rd_data_o(rd_word)
  );

  always_comb begin
    wr_word          = rd_word;
    wr_word[place_i] = '{wr_state_i, tag_i};
    if (wr_clear_i) wr_word = '0;
  end

  assign {state_o, tag_o} = rd_word[place_i];

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < WaysPerStep; i++) begin
      free_q[i]   <= rd_word[i].state == state_e'(0);
      match_q[i]  <= rd_word[i].state != state_e'(0) && rd_word[i].tag == tag_i;
      states_q[i] <= rd_word[i].state;
    end
  end

  always_comb begin
    free_place_o  = '0;
    found_place_o = '0;
    found_state_o = state_e'(0);
    for (int unsigned i = 0; i < WaysPerStep; i++) begin
      if (free_q[i]) free_place_o = PlaceWidth'(i);
      if (match_q[i]) begin
        found_place_o |= PlaceWidth'(i);
        found_state_o = state_e'(found_state_o | states_q[i]);
      end
    end
  end

  assign found_o = match_q != '0;
  assign free_o  = free_q != '0;
endmodule : dcu_directory
