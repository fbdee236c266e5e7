// A sequential prefetcher between a slice of the home and its memory: it reads ahead into blocks and answers from them.
//
// A read of a line in no block claims one: the line first, then the whole block in a burst. A read of the second half of a
// block claims the next one. The least recently used block without pending operations is replaced; if there is none, the
// line is read without a block. Writes of the home go to memory and, once complete, into their block.
//
// A block has lines of this slice only, contiguous in memory. With two slices it is one half of twice as many
// lines. The data of each read passes through a memory block.

`include "assertions.svh"

module prefetcher #(
  parameter int unsigned Slice        = 0,
  parameter int unsigned Blocks       = 8,
  parameter int unsigned BlockLines   = 32,   // lines of this slice per block; a power of two
  parameter int unsigned Pending      = 16,   // outstanding reads of the home; a power of two
  parameter int unsigned Writes       = 4,    // its outstanding writes
  parameter int unsigned Beats        = 2,    // per line, a power of two
  parameter int unsigned PayloadWidth = 512,
  parameter int unsigned AxiIdWidth   = 8,
  parameter int unsigned AxiAddrWidth = 36,

  localparam int unsigned LineWidth   = home_pkg::LineWidth,
  localparam int unsigned CountWidth  = $clog2(Blocks + 1)
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  input  logic [LineWidth-1:0]      lines_i,    // lines of the region in this slice; constant
  input  logic [CountWidth-1:0]     blocks_i,   // in use; constant

  // The home.
  input  logic                      aw_valid_i,
  output logic                      aw_ready_o,
  input  logic [AxiIdWidth-1:0]     aw_id_i,
  input  logic [AxiAddrWidth-1:0]   aw_addr_i,
  input  logic                      w_valid_i,
  output logic                      w_ready_o,
  input  logic [PayloadWidth-1:0]   w_data_i,
  input  logic [PayloadWidth/8-1:0] w_strb_i,
  input  logic                      w_last_i,
  output logic                      b_valid_o,
  input  logic                      b_ready_i,
  output logic [AxiIdWidth-1:0]     b_id_o,
  input  logic                      ar_valid_i,
  output logic                      ar_ready_o,
  input  logic [AxiIdWidth-1:0]     ar_id_i,
  input  logic [AxiAddrWidth-1:0]   ar_addr_i,
  output logic                      r_valid_o,
  input  logic                      r_ready_i,
  output logic [AxiIdWidth-1:0]     r_id_o,
  output logic [PayloadWidth-1:0]   r_data_o,
  output logic                      r_last_o,

  // Memory.
  output logic                      mem_aw_valid_o,
  input  logic                      mem_aw_ready_i,
  output logic [AxiIdWidth-1:0]     mem_aw_id_o,
  output logic [AxiAddrWidth-1:0]   mem_aw_addr_o,
  output logic                      mem_w_valid_o,
  input  logic                      mem_w_ready_i,
  output logic [PayloadWidth-1:0]   mem_w_data_o,
  output logic [PayloadWidth/8-1:0] mem_w_strb_o,
  output logic                      mem_w_last_o,
  input  logic                      mem_b_valid_i,
  output logic                      mem_b_ready_o,
  input  logic [AxiIdWidth-1:0]     mem_b_id_i,
  output logic                      mem_ar_valid_o,
  input  logic                      mem_ar_ready_i,
  output logic [AxiIdWidth-1:0]     mem_ar_id_o,
  output logic [AxiAddrWidth-1:0]   mem_ar_addr_o,
  output logic [7:0]                mem_ar_lines_o,   // lines of the slice that the burst reads, minus one
  input  logic                      mem_r_valid_i,
  output logic                      mem_r_ready_o,
  input  logic [AxiIdWidth-1:0]     mem_r_id_i,
  input  logic [PayloadWidth-1:0]   mem_r_data_i,
  input  logic                      mem_r_last_i
);
  localparam int unsigned Shift        = $clog2(Beats * PayloadWidth / 8);
  localparam int unsigned OffsetWidth  = $clog2(BlockLines);
  localparam int unsigned NumberWidth  = LineWidth - OffsetWidth;
  localparam int unsigned BlockWidth   = home_pkg::bits(Blocks);
  localparam int unsigned PendingWidth = home_pkg::bits(Pending);
  localparam int unsigned WriteWidth   = home_pkg::bits(Writes);
  localparam int unsigned BeatWidth    = home_pkg::bits(Beats);
  localparam int unsigned Places       = Blocks * BlockLines + Pending;   // lines in the memory block
  localparam int unsigned PlaceWidth   = home_pkg::bits(Places);
  localparam int unsigned WordWidth    = home_pkg::bits(Places * Beats);

  if (2 ** OffsetWidth != BlockLines || BlockLines < 2 || BlockLines > 256) begin : gen_wrong_lines
    $error("prefetcher: BlockLines must be a power of two from 2 to 256");
  end
  if (2 ** $clog2(Pending) != Pending || Pending > 32 || Blocks > 32) begin : gen_wrong_places
    $error("prefetcher: Pending must be a power of two up to 32, and Blocks up to 32");
  end

  // Purpose of a memory read, in the upper bits of its ID: the burst of a block, the line for which the block was claimed, or
  // a line read for the home without a block.
  typedef enum logic [1:0] {
    Burst,
    Hot,
    Alone
  } kind_e;

  // Fields of a line's address in the slice.
  typedef struct packed {
    logic [NumberWidth-1:0] number;   // number of its block in memory
    logic [OffsetWidth-1:0] offset;
  } line_t;

  function automatic line_t line_of(input logic [AxiAddrWidth-1:0] addr);
    return line_t'(LineWidth'(addr >> (Shift + 1)));
  endfunction

  function automatic logic [AxiAddrWidth-1:0] addr_of(input line_t line);
    return AxiAddrWidth'({line, 1'(Slice)}) << Shift;
  endfunction

  // Index in the memory block of a line of a block, and of a line read without one.
  function automatic logic [PlaceWidth-1:0] place_of(input logic [BlockWidth-1:0] block, input logic [OffsetWidth-1:0] offset);
    return PlaceWidth'(block) << OffsetWidth | PlaceWidth'(offset);
  endfunction

  function automatic logic [PlaceWidth-1:0] place_alone(input logic [PendingWidth-1:0] entry);
    return PlaceWidth'(Blocks * BlockLines) + PlaceWidth'(entry);
  endfunction

  function automatic logic [WordWidth-1:0] word_of(input logic [PlaceWidth-1:0] place, input logic [BeatWidth-1:0] beat);
    return WordWidth'((WordWidth + 1)'(place) << $clog2(Beats)) | WordWidth'(beat);
  endfunction

  // ------------------------------------------------------------------ state

  // Blocks: valid lines; and lines not to be taken from a burst, because it may read memory before a write reaches it.
  logic [Blocks-1:0]                 valid_q, claimed_q;
  logic [Blocks-1:0][1:0]            filling_q;   // outstanding memory reads for the block
  logic [NumberWidth-1:0]            number_q [Blocks];
  logic [Blocks-1:0][BlockLines-1:0] here_q, stale_q;
  logic [OffsetWidth-1:0]            hot_q [Blocks];
  logic [Blocks-1:0][BlockWidth-1:0] order_q;     // least recently used first

  // Reads of the home, from their address until their answer leaves.
  logic [Pending-1:0]      pending_q, ready_q, alone_q;
  logic [AxiIdWidth-1:0]   id_q     [Pending];
  logic [BlockWidth-1:0]   block_q  [Pending];
  logic [OffsetWidth-1:0]  offset_q [Pending];

  // Writes of the home, from their address until memory has answered.
  logic [Writes-1:0]       writing_q, into_q;     // also written into a block, until the last beat
  logic [AxiIdWidth-1:0]   written_id_q [Writes];
  line_t                   written_q    [Writes];
  logic [BlockWidth-1:0]   into_block_q [Writes];

  // ------------------------------------------------------------------ a read of the home

  line_t                    asked, next_line;
  logic                     asks, present, has_line, is_stale, next_present, second_half, claims, alone, can_claim, wants_next;
  logic                     free_valid, command_ready, aw_taken;
  logic [BlockWidth-1:0]    found, victim;
  logic [PendingWidth-1:0]  free_entry;
  line_t                    claimed_line;
  logic [Blocks-1:0]        in_use;

  // Commands to memory, in order: read a block (the requested line first), or a single line.
  typedef struct packed {
    logic                    alone;
    logic [BlockWidth-1:0]   block;
    logic [PendingWidth-1:0] entry;
    line_t                   line;
  } command_t;

  command_t command, issued;
  logic     command_valid, issued_valid, issued_taken;

  assign asked      = line_of(ar_addr_i);
  assign ar_ready_o = free_valid && command_ready && !(aw_valid_i && aw_ready_o);
  assign asks       = ar_valid_i && ar_ready_o;

  always_comb begin
    free_valid = 1'b0;
    free_entry = '0;
    for (int unsigned e = 0; e < Pending; e++) begin
      if (!pending_q[e] && !free_valid) begin
        free_valid = 1'b1;
        free_entry = PendingWidth'(e);
      end
    end
  end

  always_comb begin
    present      = 1'b0;
    found        = '0;
    next_present = 1'b0;
    next_line    = '{number: asked.number + 1'b1, offset: '0};
    for (int unsigned b = 0; b < Blocks; b++) begin
      if (valid_q[b] && number_q[b] == asked.number) begin
        present = 1'b1;
        found   = BlockWidth'(b);
      end
      if (valid_q[b] && number_q[b] == next_line.number) next_present = 1'b1;
    end
    has_line    = present && here_q[found][asked.offset];
    is_stale    = present && !has_line && stale_q[found][asked.offset];
    second_half = asked.offset[OffsetWidth-1];
    wants_next  = present && second_half && !claimed_q[found] && next_line < lines_i;
  end

  // Blocks with pending operations are not replaced.
  always_comb begin
    for (int unsigned b = 0; b < Blocks; b++) begin
      in_use[b] = CountWidth'(b) >= blocks_i || filling_q[b] != '0 || present && found == BlockWidth'(b);
      for (int unsigned e = 0; e < Pending; e++) begin
        if (pending_q[e] && !alone_q[e] && block_q[e] == BlockWidth'(b)) in_use[b] = 1'b1;
      end
      for (int unsigned w = 0; w < Writes; w++) begin
        if (into_q[w] && into_block_q[w] == BlockWidth'(b)) in_use[b] = 1'b1;
      end
    end
  end

  always_comb begin
    can_claim = 1'b0;
    victim    = '0;
    for (int unsigned i = 0; i < Blocks; i++) begin
      if (!can_claim && !in_use[order_q[i]]) begin
        can_claim = 1'b1;
        victim    = order_q[i];
      end
    end
  end

  assign claims       = asks && can_claim && (!present || wants_next && !next_present && !is_stale);
  assign claimed_line = present ? next_line : asked;
  assign alone        = present ? is_stale : !can_claim;

  assign command_valid = claims || asks && alone;
  assign command       = '{
    alone: alone,
    block: victim,
    entry: free_entry,
    line:  alone ? asked : claimed_line
  };

  fifo #(
    .Depth (32),
    .data_t(command_t)
  ) u_commands (
    .clk_i,
    .rst_ni,
    .wr_valid_i(command_valid),
    .wr_ready_o(command_ready),
    .wr_data_i (command),
    .rd_valid_o(issued_valid),
    .rd_ready_i(issued_taken),
    .rd_data_o (issued)
  );

  // ------------------------------------------------------------------ reads of memory

  // The second read of a command is the burst.
  logic  bursts_q;
  kind_e kind;
  line_t first_line;
  logic [LineWidth-1:0] left;

  assign kind           = issued.alone ? Alone : bursts_q ? Burst : Hot;
  assign first_line     = '{number: issued.line.number, offset: '0};
  assign left           = lines_i - first_line;
  assign mem_ar_valid_o = issued_valid;
  assign mem_ar_id_o    = AxiIdWidth'({kind, issued.alone ? 5'(issued.entry) : 5'(issued.block)});
  assign mem_ar_addr_o  = addr_of(bursts_q ? first_line : issued.line);
  assign mem_ar_lines_o = !bursts_q ? '0 : left < LineWidth'(BlockLines) ? 8'(left - 1'b1) : 8'(BlockLines - 1);
  assign issued_taken   = mem_ar_ready_i && (issued.alone || bursts_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni)                               bursts_q <= 1'b0;
    else if (issued_valid && mem_ar_ready_i)   bursts_q <= !issued.alone && !bursts_q;
  end

  // Destination of the beat from memory: its line and beat, for each outstanding read.
  kind_e                      comes_kind;
  logic [4:0]                 comes_number;
  logic [BlockWidth-1:0]      comes_block;
  logic [OffsetWidth-1:0]     comes_offset, burst_offset_q [Blocks];
  logic [BeatWidth-1:0]       comes_beat, burst_beat_q [Blocks], hot_beat_q [Blocks], alone_beat_q [Pending];
  logic                       comes, comes_line, fills, w_fills;

  assign comes_kind    = kind_e'(mem_r_id_i[6:5]);
  assign comes_number  = mem_r_id_i[4:0];
  assign comes_block   = BlockWidth'(comes_number);
  assign mem_r_ready_o = !w_fills;
  assign comes         = mem_r_valid_i && mem_r_ready_o;
  assign comes_line    = comes && comes_beat == BeatWidth'(Beats - 1);
  assign fills         = comes && (comes_kind == Alone || !here_q[comes_block][comes_offset] && !stale_q[comes_block][comes_offset]);

  always_comb begin
    comes_offset = comes_kind == Hot ? hot_q[comes_block] : burst_offset_q[comes_block];
    case (comes_kind)
      Burst:   comes_beat = burst_beat_q[comes_block];
      Hot:     comes_beat = hot_beat_q[comes_block];
      default: comes_beat = alone_beat_q[PendingWidth'(comes_number)];
    endcase
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned b = 0; b < Blocks; b++) begin
      if (claims && victim == BlockWidth'(b)) begin
        burst_offset_q[b] <= '0;
        burst_beat_q[b]   <= '0;
        hot_beat_q[b]     <= '0;
      end else if (comes && comes_block == BlockWidth'(b)) begin
        if (comes_kind == Burst) burst_beat_q[b] <= comes_line ? '0 : burst_beat_q[b] + 1'b1;
        if (comes_kind == Burst && comes_line) burst_offset_q[b] <= burst_offset_q[b] + 1'b1;
        if (comes_kind == Hot) hot_beat_q[b] <= hot_beat_q[b] + 1'b1;
      end
    end
    for (int unsigned e = 0; e < Pending; e++) begin
      if (asks && free_entry == PendingWidth'(e)) alone_beat_q[e] <= '0;
      else if (comes && comes_kind == Alone && comes_number == 5'(e)) alone_beat_q[e] <= alone_beat_q[e] + 1'b1;
    end
  end

  // ------------------------------------------------------------------ writes of the home

  // Writes pass to memory. Beats follow their address, so whether a block has their line is known.
  logic                  write_free, beats_valid, beats_ready, w_taken, w_present, w_whole_q, w_whole, into;
  logic [WriteWidth-1:0] free_write, w_write;
  logic [BlockWidth-1:0] w_block, w_found;
  logic [BeatWidth-1:0]  w_beat_q;
  line_t                 w_asked;
  logic [OffsetWidth-1:0] w_offset;
  logic                  w_first_in, w_had_line_q, w_had_line;

  always_comb begin
    write_free = 1'b0;
    free_write = '0;
    for (int unsigned w = 0; w < Writes; w++) begin
      if (!writing_q[w] && !write_free) begin
        write_free = 1'b1;
        free_write = WriteWidth'(w);
      end
    end
  end

  assign w_asked        = line_of(aw_addr_i);
  assign mem_aw_valid_o = aw_valid_i && write_free && beats_ready;
  assign aw_ready_o     = mem_aw_ready_i && write_free && beats_ready;
  assign mem_aw_id_o    = aw_id_i;
  assign mem_aw_addr_o  = aw_addr_i;
  assign aw_taken       = aw_valid_i && aw_ready_o;

  always_comb begin
    w_present = 1'b0;
    w_found   = '0;
    for (int unsigned b = 0; b < Blocks; b++) begin
      if (valid_q[b] && number_q[b] == w_asked.number) begin
        w_present = 1'b1;
        w_found   = BlockWidth'(b);
      end
    end
  end

  fifo #(
    .Depth (4),
    .data_t(logic [WriteWidth-1:0])
  ) u_beats (
    .clk_i,
    .rst_ni,
    .wr_valid_i(aw_taken),
    .wr_ready_o(beats_ready),
    .wr_data_i (free_write),
    .rd_valid_o(beats_valid),
    .rd_ready_i(w_taken && w_last_i),
    .rd_data_o (w_write)
  );

  assign mem_w_valid_o = w_valid_i && beats_valid;
  assign w_ready_o     = mem_w_ready_i && beats_valid;
  assign mem_w_data_o  = w_data_i;
  assign mem_w_strb_o  = w_strb_i;
  assign mem_w_last_o  = w_last_i;
  assign w_taken       = w_valid_i && w_ready_o;
  assign into          = into_q[w_write];
  assign w_fills       = mem_w_valid_o && into;
  assign w_block       = into_block_q[w_write];
  assign w_offset      = written_q[w_write].offset;
  assign w_first_in    = w_beat_q == '0;
  assign w_had_line    = w_first_in ? here_q[w_block][w_offset] : w_had_line_q;
  assign w_whole       = w_strb_i == '1 && (w_first_in || w_whole_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni)      w_beat_q <= '0;
    else if (w_taken) w_beat_q <= w_last_i ? '0 : w_beat_q + 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (w_taken) begin
      w_whole_q    <= w_whole;
      w_had_line_q <= w_had_line;
    end
  end

  assign b_valid_o     = mem_b_valid_i;
  assign b_id_o        = mem_b_id_i;
  assign mem_b_ready_o = b_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      writing_q <= '0;
      into_q    <= '0;
    end else begin
      for (int unsigned w = 0; w < Writes; w++) begin
        if (mem_b_valid_i && b_ready_i && written_id_q[w] == mem_b_id_i) writing_q[w] <= 1'b0;
      end
      if (aw_taken) begin
        writing_q[free_write] <= 1'b1;
        into_q[free_write]    <= w_present;
      end
      if (w_taken && w_last_i) into_q[w_write] <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (aw_taken) begin
      written_id_q[free_write] <= aw_id_i;
      written_q[free_write]    <= w_asked;
      into_block_q[free_write] <= w_found;
    end
  end

  // ------------------------------------------------------------------ blocks

  // Moves a block to the most recently used position.
  function automatic logic [Blocks-1:0][BlockWidth-1:0] used(
    input logic [Blocks-1:0][BlockWidth-1:0] order, input logic [BlockWidth-1:0] block);
    logic after;
    after = 1'b0;
    used  = order;
    for (int unsigned i = 0; i < Blocks - 1; i++) begin
      after = after || order[i] == block;
      if (after) used[i] = order[i+1];
    end
    used[Blocks-1] = block;
  endfunction

  logic [Blocks-1:0][BlockWidth-1:0] order_d;

  always_comb begin
    order_d = order_q;
    if (asks && present) order_d = used(order_d, found);
    if (claims)          order_d = used(order_d, victim);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q   <= '0;
      claimed_q <= '0;
      filling_q <= '0;
      for (int unsigned b = 0; b < Blocks; b++) order_q[b] <= BlockWidth'(b);
    end else begin
      order_q <= order_d;
      if (asks && wants_next && !is_stale && (next_present || can_claim)) claimed_q[found] <= 1'b1;
      for (int unsigned b = 0; b < Blocks; b++) begin
        if (comes && mem_r_last_i && comes_kind != Alone && comes_block == BlockWidth'(b)) filling_q[b] <= filling_q[b] - 1'b1;
      end
      if (claims) begin
        valid_q[victim]   <= 1'b1;
        claimed_q[victim] <= 1'b0;
        filling_q[victim] <= 2'd2;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (comes_line && comes_kind != Alone && !stale_q[comes_block][comes_offset]) here_q[comes_block][comes_offset] <= 1'b1;
    if (aw_taken && w_present && !here_q[w_found][w_asked.offset]) stale_q[w_found][w_asked.offset] <= 1'b1;
    if (w_taken && w_last_i && into && (w_whole || w_had_line)) begin
      here_q[w_block][w_offset]  <= 1'b1;
      stale_q[w_block][w_offset] <= 1'b0;
    end
    if (claims) begin
      number_q[victim] <= claimed_line.number;
      hot_q[victim]    <= claimed_line.offset;
      here_q[victim]   <= '0;
      stale_q[victim]  <= '0;
      // A burst may read memory before a pending write reaches it.
      for (int unsigned w = 0; w < Writes; w++) begin
        if (writing_q[w] && written_q[w].number == claimed_line.number) stale_q[victim][written_q[w].offset] <= 1'b1;
      end
    end
  end

  // ------------------------------------------------------------------ answers

  logic                    issues, free, picked, last_beat;
  logic [Pending-1:0]      pick;
  logic [PendingWidth-1:0] pick_entry, answered_q, entry;
  logic [BeatWidth-1:0]    r_beat_q;
  logic                    answers_q;

  rr_pick #(
    .Size(Pending)
  ) u_pick (
    .clk_i,
    .rst_ni,
    .ask_i  (ready_q),
    .taken_i(issues && !answers_q),
    .pick_o (pick),
    .index_o(pick_entry)
  );

  // The beats of one answer are contiguous.
  assign picked    = pick != '0;
  assign entry     = answers_q ? answered_q : pick_entry;
  assign free      = !r_valid_o || r_ready_i;
  assign issues    = free && (answers_q || picked);
  assign last_beat = r_beat_q == BeatWidth'(Beats - 1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      r_valid_o <= 1'b0;
      answers_q <= 1'b0;
      r_beat_q  <= '0;
    end else begin
      r_valid_o <= issues || r_valid_o && !r_ready_i;
      if (issues) begin
        answers_q <= !last_beat;
        r_beat_q  <= last_beat ? '0 : r_beat_q + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (issues) begin
      r_id_o     <= id_q[entry];
      r_last_o   <= last_beat;
      answered_q <= entry;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pending_q <= '0;
      ready_q   <= '0;
    end else begin
      for (int unsigned e = 0; e < Pending; e++) begin
        if (comes_line && pending_q[e] && (
            comes_kind == Alone ? comes_number == 5'(e)
            : !alone_q[e] && block_q[e] == comes_block && offset_q[e] == comes_offset)) ready_q[e] <= 1'b1;
        if (issues && entry == PendingWidth'(e)) begin
          ready_q[e] <= 1'b0;
          if (last_beat) pending_q[e] <= 1'b0;
        end
      end
      if (asks) begin
        pending_q[free_entry] <= 1'b1;
        ready_q[free_entry]   <= has_line
          || present && !is_stale && comes_line && comes_kind != Alone && comes_block == found && comes_offset == asked.offset;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (asks) begin
      id_q[free_entry]     <= ar_id_i;
      alone_q[free_entry]  <= alone;
      block_q[free_entry]  <= present ? found : victim;
      offset_q[free_entry] <= asked.offset;
    end
  end

  logic [PayloadWidth/8-1:0] strobes;

  always_comb begin
    strobes = '0;
    if (fills)              strobes = '1;
    if (w_fills && w_taken) strobes = w_strb_i;
  end

  ram_block #(
    .Depth(Places * Beats),
    .Width(PayloadWidth),
    .Lanes(PayloadWidth / 8)
  ) u_words (
    .clk_i,
    .wr_en_i  (strobes),
    .wr_addr_i(w_fills ? word_of(place_of(w_block, w_offset), w_beat_q)
               : word_of(comes_kind == Alone ? place_alone(PendingWidth'(comes_number)) : place_of(comes_block, comes_offset), comes_beat)),
    .wr_data_i(w_fills ? w_data_i : mem_r_data_i),
    .rd_en_i  (issues),
    .rd_addr_i(word_of(alone_q[entry] ? place_alone(entry) : place_of(block_q[entry], offset_q[entry]), r_beat_q)),
    .rd_data_o(r_data_o)
  );

  logic unused;
  assign unused = ^mem_r_id_i;

  `ASSERT_STABLE(stable_r, r_valid_o, r_ready_i, {r_id_o, r_data_o, r_last_o})
  `ASSERT_STABLE(stable_b, b_valid_o, b_ready_i, b_id_o)
  `ASSERT_STABLE(stable_ar, mem_ar_valid_o, mem_ar_ready_i, {mem_ar_id_o, mem_ar_addr_o, mem_ar_lines_o})
  `ASSERT_STABLE(stable_aw, mem_aw_valid_o, mem_aw_ready_i, {mem_aw_id_o, mem_aw_addr_o})
  `ASSERT_STABLE(stable_w, mem_w_valid_o, mem_w_ready_i, {mem_w_data_o, mem_w_strb_o, mem_w_last_o})
  `ASSUME_OR(in_region, !ar_valid_i || asked < lines_i, ("prefetcher: a line behind the region"))
  `ASSUME_OR(blocks_fit, blocks_i <= CountWidth'(Blocks), ("prefetcher: more blocks than there are"))
endmodule : prefetcher
