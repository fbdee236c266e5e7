// Sequential prefetcher between a slice of the home and its memory: reads ahead into block buffers, and serves reads of
// the home from them.
//
// - A read that misses all blocks claims a block: it fetches the requested line first, then the whole block as a burst.
// - A read in the second half of a block claims a buffer for the next block.
// - The replaced block is the least recently used one without pending operations. Without such a block, the read
//   bypasses the blocks.
// - Writes of the home go to memory, and also into their block.
//
// A block holds only lines of this slice, contiguous in memory. With two slices, each has one half of a range of twice
// the size. The data of every read passes through the block RAM.

`include "assertions.svh"

module prefetcher #(
  parameter int unsigned Slice        = 0,
  parameter int unsigned Blocks       = 8,
  parameter int unsigned BlockLines   = 32,   // lines of this slice per block; a power of two
  parameter int unsigned MaxReads     = 16,   // outstanding reads of the home; a power of two
  parameter int unsigned MaxWrites    = 4,    // outstanding writes of the home
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
  input  logic [CountWidth-1:0]     blocks_i,   // number of blocks in use; constant

  // Memory port of the home: AXI4 subordinate. Each burst is one line.
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

  // Memory: AXI4 manager. A read burst may have several lines.
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
  localparam int unsigned LineShift    = $clog2(Beats * PayloadWidth / 8);
  localparam int unsigned OffsetWidth  = $clog2(BlockLines);
  localparam int unsigned NumberWidth  = LineWidth - OffsetWidth;
  localparam int unsigned BlockWidth   = home_pkg::bits(Blocks);
  localparam int unsigned ReadWidth    = home_pkg::bits(MaxReads);
  localparam int unsigned WriteWidth   = home_pkg::bits(MaxWrites);
  localparam int unsigned BeatWidth    = home_pkg::bits(Beats);
  localparam int unsigned RamLines     = Blocks * BlockLines + MaxReads;   // lines in the memory block
  localparam int unsigned RamLineWidth = home_pkg::bits(RamLines);
  localparam int unsigned WordWidth    = home_pkg::bits(RamLines * Beats);

  if (2 ** OffsetWidth != BlockLines || BlockLines < 2 || BlockLines > 256) begin : gen_invalid_lines
    $error("prefetcher: BlockLines must be a power of two from 2 to 256");
  end
  if (2 ** $clog2(MaxReads) != MaxReads || MaxReads > 32 || Blocks > 32) begin : gen_invalid_entries
    $error("prefetcher: MaxReads must be a power of two up to 32, and Blocks up to 32");
  end

  // Kind of a memory read, in the upper bits of its AXI ID: burst of a block; the demanded line of a claimed block; a
  // line that bypasses the blocks.
  typedef enum logic [1:0] {
    Burst,
    Demand,
    Bypass
  } kind_e;

  // Fields of a line index within the slice.
  typedef struct packed {
    logic [NumberWidth-1:0] number;   // block number in memory
    logic [OffsetWidth-1:0] offset;
  } line_t;

  function automatic line_t line_of(input logic [AxiAddrWidth-1:0] addr);
    return line_t'(LineWidth'(addr >> (LineShift + 1)));
  endfunction

  function automatic logic [AxiAddrWidth-1:0] addr_of(input line_t line);
    return AxiAddrWidth'({line, 1'(Slice)}) << LineShift;
  endfunction

  // Line of the RAM for a line of a block, and for a bypassing read.
  function automatic logic [RamLineWidth-1:0] ram_line_of_block(
    input logic [BlockWidth-1:0] block, input logic [OffsetWidth-1:0] offset);
    return RamLineWidth'(block) << OffsetWidth | RamLineWidth'(offset);
  endfunction

  function automatic logic [RamLineWidth-1:0] ram_line_of_bypass(input logic [ReadWidth-1:0] entry);
    return RamLineWidth'(Blocks * BlockLines) + RamLineWidth'(entry);
  endfunction

  function automatic logic [WordWidth-1:0] word_of(input logic [RamLineWidth-1:0] ram_line, input logic [BeatWidth-1:0] beat);
    return WordWidth'((WordWidth + 1)'(ram_line) << $clog2(Beats)) | WordWidth'(beat);
  endfunction

  // ------------------------------------------------------------------ state

  // Blocks. A stale line must not be filled from the burst, which may read memory before a pending write reaches it.
  logic [Blocks-1:0]                 valid_q, claimed_q;
  logic [Blocks-1:0][1:0]            filling_q;   // number of outstanding memory reads for the block
  logic [NumberWidth-1:0]            number_q [Blocks];
  logic [Blocks-1:0][BlockLines-1:0] line_valid_q, line_stale_q;
  logic [OffsetWidth-1:0]            demand_offset_q [Blocks];
  logic [Blocks-1:0][BlockWidth-1:0] order_q;     // blocks, least recently used first

  // Outstanding reads of the home.
  logic [MaxReads-1:0]     pending_q, ready_q, bypass_q;
  logic [AxiIdWidth-1:0]   id_q     [MaxReads];
  logic [BlockWidth-1:0]   block_q  [MaxReads];
  logic [OffsetWidth-1:0]  offset_q [MaxReads];

  // Outstanding writes of the home.
  logic [MaxWrites-1:0]    write_valid_q, merge_q;     // outstanding; data is also written into a block
  logic [AxiIdWidth-1:0]   write_id_q [MaxWrites];
  line_t                   write_line_q [MaxWrites];
  logic [BlockWidth-1:0]   merge_block_q [MaxWrites];

  // ------------------------------------------------------------------ reads of the home: look-up

  line_t                    req_line, next_line;
  logic                     req_fire, block_hit, line_hit, line_stale, next_block_hit;
  logic                     second_half, claim, bypass, can_claim, wants_next;
  logic                     free_valid, command_ready, aw_fire;
  logic [BlockWidth-1:0]    hit_block, victim;
  logic [ReadWidth-1:0]     free_entry;
  line_t                    claimed_line;
  logic [Blocks-1:0]        in_use;

  // Command queue to memory: read a block (the demanded line first), or a single line.
  typedef struct packed {
    logic                  bypass;
    logic [BlockWidth-1:0] block;
    logic [ReadWidth-1:0]  entry;
    line_t                 line;
  } command_t;

  command_t command, issued;
  logic     command_valid, issued_valid, issued_accept;

  assign req_line   = line_of(ar_addr_i);
  assign ar_ready_o = free_valid && command_ready && !(aw_valid_i && aw_ready_o);
  assign req_fire   = ar_valid_i && ar_ready_o;

  always_comb begin
    free_valid = 1'b0;
    free_entry = '0;
    for (int unsigned e = 0; e < MaxReads; e++) begin
      if (!pending_q[e] && !free_valid) begin
        free_valid = 1'b1;
        free_entry = ReadWidth'(e);
      end
    end
  end

  always_comb begin
    block_hit      = 1'b0;
    hit_block      = '0;
    next_block_hit = 1'b0;
    next_line      = '{number: req_line.number + 1'b1, offset: '0};
    for (int unsigned b = 0; b < Blocks; b++) begin
      if (valid_q[b] && number_q[b] == req_line.number) begin
        block_hit = 1'b1;
        hit_block = BlockWidth'(b);
      end
      if (valid_q[b] && number_q[b] == next_line.number) next_block_hit = 1'b1;
    end
    line_hit    = block_hit && line_valid_q[hit_block][req_line.offset];
    line_stale  = block_hit && !line_hit && line_stale_q[hit_block][req_line.offset];
    second_half = req_line.offset[OffsetWidth-1];
    wants_next  = block_hit && second_half && !claimed_q[hit_block] && next_line < lines_i;
  end

  // Blocks with pending operations are not replaced.
  always_comb begin
    for (int unsigned b = 0; b < Blocks; b++) begin
      in_use[b] = CountWidth'(b) >= blocks_i || filling_q[b] != '0 || block_hit && hit_block == BlockWidth'(b);
      for (int unsigned e = 0; e < MaxReads; e++) begin
        if (pending_q[e] && !bypass_q[e] && block_q[e] == BlockWidth'(b)) in_use[b] = 1'b1;
      end
      for (int unsigned w = 0; w < MaxWrites; w++) begin
        if (merge_q[w] && merge_block_q[w] == BlockWidth'(b)) in_use[b] = 1'b1;
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

  assign claim        = req_fire && can_claim && (!block_hit || wants_next && !next_block_hit && !line_stale);
  assign claimed_line = block_hit ? next_line : req_line;
  assign bypass       = block_hit ? line_stale : !can_claim;

  assign command_valid = claim || req_fire && bypass;
  assign command       = '{
    bypass: bypass,
    block:  victim,
    entry:  free_entry,
    line:   bypass ? req_line : claimed_line
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
    .rd_ready_i(issued_accept),
    .rd_data_o (issued)
  );

  // ------------------------------------------------------------------ reads of memory

  // A block command issues two reads: the demanded line, then the burst.
  logic                 burst_phase_q;
  kind_e                kind;
  line_t                first_line;
  logic [LineWidth-1:0] lines_left;

  assign kind           = issued.bypass ? Bypass : burst_phase_q ? Burst : Demand;
  assign first_line     = '{number: issued.line.number, offset: '0};
  assign lines_left     = lines_i - first_line;
  assign mem_ar_valid_o = issued_valid;
  assign mem_ar_id_o    = AxiIdWidth'({kind, issued.bypass ? 5'(issued.entry) : 5'(issued.block)});
  assign mem_ar_addr_o  = addr_of(burst_phase_q ? first_line : issued.line);
  assign mem_ar_lines_o = !burst_phase_q ? '0 : lines_left < LineWidth'(BlockLines) ? 8'(lines_left - 1'b1) : 8'(BlockLines - 1);
  assign issued_accept  = mem_ar_ready_i && (issued.bypass || burst_phase_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni)                               burst_phase_q <= 1'b0;
    else if (issued_valid && mem_ar_ready_i)   burst_phase_q <= !issued.bypass && !burst_phase_q;
  end

  // Destination of the current beat from memory: line and beat index per outstanding read.
  kind_e                      mem_r_kind;
  logic [4:0]                 mem_r_index;
  logic [BlockWidth-1:0]      mem_r_block;
  logic [OffsetWidth-1:0]     mem_r_offset, burst_offset_q [Blocks];
  logic [BeatWidth-1:0]       mem_r_beat, burst_beat_q [Blocks], demand_beat_q [Blocks], bypass_beat_q [MaxReads];
  logic                       mem_r_fire, mem_r_line_done, fill, w_merge_valid;

  assign mem_r_kind      = kind_e'(mem_r_id_i[6:5]);
  assign mem_r_index     = mem_r_id_i[4:0];
  assign mem_r_block     = BlockWidth'(mem_r_index);
  assign mem_r_ready_o   = !w_merge_valid;
  assign mem_r_fire      = mem_r_valid_i && mem_r_ready_o;
  assign mem_r_line_done = mem_r_fire && mem_r_beat == BeatWidth'(Beats - 1);
  assign fill            = mem_r_fire && (mem_r_kind == Bypass
                         || !line_valid_q[mem_r_block][mem_r_offset] && !line_stale_q[mem_r_block][mem_r_offset]);

  always_comb begin
    mem_r_offset = mem_r_kind == Demand ? demand_offset_q[mem_r_block] : burst_offset_q[mem_r_block];
    case (mem_r_kind)
      Burst:   mem_r_beat = burst_beat_q[mem_r_block];
      Demand:  mem_r_beat = demand_beat_q[mem_r_block];
      default: mem_r_beat = bypass_beat_q[ReadWidth'(mem_r_index)];
    endcase
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned b = 0; b < Blocks; b++) begin
      if (claim && victim == BlockWidth'(b)) begin
        burst_offset_q[b] <= '0;
        burst_beat_q[b]   <= '0;
        demand_beat_q[b]  <= '0;
      end else if (mem_r_fire && mem_r_block == BlockWidth'(b)) begin
        if (mem_r_kind == Burst) burst_beat_q[b] <= mem_r_line_done ? '0 : burst_beat_q[b] + 1'b1;
        if (mem_r_kind == Burst && mem_r_line_done) burst_offset_q[b] <= burst_offset_q[b] + 1'b1;
        if (mem_r_kind == Demand) demand_beat_q[b] <= demand_beat_q[b] + 1'b1;
      end
    end
    for (int unsigned e = 0; e < MaxReads; e++) begin
      if (req_fire && free_entry == ReadWidth'(e)) bypass_beat_q[e] <= '0;
      else if (mem_r_fire && mem_r_kind == Bypass && mem_r_index == 5'(e)) bypass_beat_q[e] <= bypass_beat_q[e] + 1'b1;
    end
  end

  // ------------------------------------------------------------------ writes of the home

  // Writes pass to memory. Data beats follow their address, so the block look-up is complete when they arrive.
  logic                   write_free, beats_valid, beats_ready, w_fire, w_present, w_full_line_q, w_full_line, w_merge;
  logic [WriteWidth-1:0]  free_write, w_write;
  logic [BlockWidth-1:0]  w_block, w_found;
  logic [BeatWidth-1:0]   w_beat_q;
  line_t                  w_line;
  logic [OffsetWidth-1:0] w_offset;
  logic                   w_first_beat, w_line_was_valid_q, w_line_was_valid;

  always_comb begin
    write_free = 1'b0;
    free_write = '0;
    for (int unsigned w = 0; w < MaxWrites; w++) begin
      if (!write_valid_q[w] && !write_free) begin
        write_free = 1'b1;
        free_write = WriteWidth'(w);
      end
    end
  end

  assign w_line         = line_of(aw_addr_i);
  assign mem_aw_valid_o = aw_valid_i && write_free && beats_ready;
  assign aw_ready_o     = mem_aw_ready_i && write_free && beats_ready;
  assign mem_aw_id_o    = aw_id_i;
  assign mem_aw_addr_o  = aw_addr_i;
  assign aw_fire        = aw_valid_i && aw_ready_o;

  always_comb begin
    w_present = 1'b0;
    w_found   = '0;
    for (int unsigned b = 0; b < Blocks; b++) begin
      if (valid_q[b] && number_q[b] == w_line.number) begin
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
    .wr_valid_i(aw_fire),
    .wr_ready_o(beats_ready),
    .wr_data_i (free_write),
    .rd_valid_o(beats_valid),
    .rd_ready_i(w_fire && w_last_i),
    .rd_data_o (w_write)
  );

  assign mem_w_valid_o    = w_valid_i && beats_valid;
  assign w_ready_o        = mem_w_ready_i && beats_valid;
  assign mem_w_data_o     = w_data_i;
  assign mem_w_strb_o     = w_strb_i;
  assign mem_w_last_o     = w_last_i;
  assign w_fire           = w_valid_i && w_ready_o;
  assign w_merge          = merge_q[w_write];
  assign w_merge_valid    = mem_w_valid_o && w_merge;
  assign w_block          = merge_block_q[w_write];
  assign w_offset         = write_line_q[w_write].offset;
  assign w_first_beat     = w_beat_q == '0;
  assign w_line_was_valid = w_first_beat ? line_valid_q[w_block][w_offset] : w_line_was_valid_q;
  assign w_full_line      = w_strb_i == '1 && (w_first_beat || w_full_line_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni)      w_beat_q <= '0;
    else if (w_fire) w_beat_q <= w_last_i ? '0 : w_beat_q + 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (w_fire) begin
      w_full_line_q      <= w_full_line;
      w_line_was_valid_q <= w_line_was_valid;
    end
  end

  assign b_valid_o     = mem_b_valid_i;
  assign b_id_o        = mem_b_id_i;
  assign mem_b_ready_o = b_ready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      write_valid_q <= '0;
      merge_q       <= '0;
    end else begin
      for (int unsigned w = 0; w < MaxWrites; w++) begin
        if (mem_b_valid_i && b_ready_i && write_id_q[w] == mem_b_id_i) write_valid_q[w] <= 1'b0;
      end
      if (aw_fire) begin
        write_valid_q[free_write] <= 1'b1;
        merge_q[free_write]       <= w_present;
      end
      if (w_fire && w_last_i) merge_q[w_write] <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (aw_fire) begin
      write_id_q[free_write]    <= aw_id_i;
      write_line_q[free_write]  <= w_line;
      merge_block_q[free_write] <= w_found;
    end
  end

  // ------------------------------------------------------------------ blocks

  // Returns `order` with `block` moved to the most recently used position.
  function automatic logic [Blocks-1:0][BlockWidth-1:0] moved_to_mru(
    input logic [Blocks-1:0][BlockWidth-1:0] order, input logic [BlockWidth-1:0] block);
    logic after;
    after        = 1'b0;
    moved_to_mru = order;
    for (int unsigned i = 0; i < Blocks - 1; i++) begin
      after = after || order[i] == block;
      if (after) moved_to_mru[i] = order[i+1];
    end
    moved_to_mru[Blocks-1] = block;
  endfunction

  logic [Blocks-1:0][BlockWidth-1:0] order_d;

  always_comb begin
    order_d = order_q;
    if (req_fire && block_hit) order_d = moved_to_mru(order_d, hit_block);
    if (claim)           order_d = moved_to_mru(order_d, victim);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q   <= '0;
      claimed_q <= '0;
      filling_q <= '0;
      for (int unsigned b = 0; b < Blocks; b++) order_q[b] <= BlockWidth'(b);
    end else begin
      order_q <= order_d;
      if (req_fire && wants_next && !line_stale && (next_block_hit || can_claim)) claimed_q[hit_block] <= 1'b1;
      for (int unsigned b = 0; b < Blocks; b++) begin
        if (mem_r_fire && mem_r_last_i && mem_r_kind != Bypass && mem_r_block == BlockWidth'(b)) begin
          filling_q[b] <= filling_q[b] - 1'b1;
        end
      end
      if (claim) begin
        valid_q[victim]   <= 1'b1;
        claimed_q[victim] <= 1'b0;
        filling_q[victim] <= 2'd2;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (mem_r_line_done && mem_r_kind != Bypass && !line_stale_q[mem_r_block][mem_r_offset]) begin
      line_valid_q[mem_r_block][mem_r_offset] <= 1'b1;
    end
    if (aw_fire && w_present && !line_valid_q[w_found][w_line.offset]) line_stale_q[w_found][w_line.offset] <= 1'b1;
    if (w_fire && w_last_i && w_merge && (w_full_line || w_line_was_valid)) begin
      line_valid_q[w_block][w_offset] <= 1'b1;
      line_stale_q[w_block][w_offset] <= 1'b0;
    end
    if (claim) begin
      number_q[victim]        <= claimed_line.number;
      demand_offset_q[victim] <= claimed_line.offset;
      line_valid_q[victim]    <= '0;
      line_stale_q[victim]    <= '0;
      // A burst may read memory before a pending write reaches it.
      for (int unsigned w = 0; w < MaxWrites; w++) begin
        if (write_valid_q[w] && write_line_q[w].number == claimed_line.number) line_stale_q[victim][write_line_q[w].offset] <= 1'b1;
      end
    end
  end

  // ------------------------------------------------------------------ read responses

  logic                 rd_issue, r_free, pick_valid, last_beat;
  logic [MaxReads-1:0]  pick;
  logic [ReadWidth-1:0] pick_entry, rsp_entry_q, entry;
  logic [BeatWidth-1:0] r_beat_q;
  logic                 rsp_busy_q;

  rr_pick #(
    .Size(MaxReads)
  ) u_pick (
    .clk_i,
    .rst_ni,
    .req_i   (ready_q),
    .accept_i(rd_issue && !rsp_busy_q),
    .pick_o  (pick),
    .index_o (pick_entry)
  );

  // The beats of a response are contiguous.
  assign pick_valid = pick != '0;
  assign entry      = rsp_busy_q ? rsp_entry_q : pick_entry;
  assign r_free     = !r_valid_o || r_ready_i;
  assign rd_issue   = r_free && (rsp_busy_q || pick_valid);
  assign last_beat  = r_beat_q == BeatWidth'(Beats - 1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      r_valid_o  <= 1'b0;
      rsp_busy_q <= 1'b0;
      r_beat_q   <= '0;
    end else begin
      r_valid_o <= rd_issue || r_valid_o && !r_ready_i;
      if (rd_issue) begin
        rsp_busy_q <= !last_beat;
        r_beat_q   <= last_beat ? '0 : r_beat_q + 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_issue) begin
      r_id_o      <= id_q[entry];
      r_last_o    <= last_beat;
      rsp_entry_q <= entry;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      pending_q <= '0;
      ready_q   <= '0;
    end else begin
      for (int unsigned e = 0; e < MaxReads; e++) begin
        if (mem_r_line_done && pending_q[e] && (
            mem_r_kind == Bypass ? mem_r_index == 5'(e)
            : !bypass_q[e] && block_q[e] == mem_r_block && offset_q[e] == mem_r_offset)) ready_q[e] <= 1'b1;
        if (rd_issue && entry == ReadWidth'(e)) begin
          ready_q[e] <= 1'b0;
          if (last_beat) pending_q[e] <= 1'b0;
        end
      end
      if (req_fire) begin
        pending_q[free_entry] <= 1'b1;
        ready_q[free_entry]   <= line_hit
          || block_hit && !line_stale && mem_r_line_done && mem_r_kind != Bypass
             && mem_r_block == hit_block && mem_r_offset == req_line.offset;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (req_fire) begin
      id_q[free_entry]     <= ar_id_i;
      bypass_q[free_entry] <= bypass;
      block_q[free_entry]  <= block_hit ? hit_block : victim;
      offset_q[free_entry] <= req_line.offset;
    end
  end

  logic [PayloadWidth/8-1:0] strobes;

  always_comb begin
    strobes = '0;
    if (fill)               strobes = '1;
    if (w_merge_valid && w_fire) strobes = w_strb_i;
  end

  ram_block #(
    .Depth(RamLines * Beats),
    .Width(PayloadWidth),
    .Lanes(PayloadWidth / 8)
  ) u_words (
    .clk_i,
    .wr_en_i  (strobes),
    .wr_addr_i(w_merge_valid ? word_of(ram_line_of_block(w_block, w_offset), w_beat_q)
               : word_of(mem_r_kind == Bypass ? ram_line_of_bypass(ReadWidth'(mem_r_index))
                         : ram_line_of_block(mem_r_block, mem_r_offset), mem_r_beat)),
    .wr_data_i(w_merge_valid ? w_data_i : mem_r_data_i),
    .rd_en_i  (rd_issue),
    .rd_addr_i(word_of(bypass_q[entry] ? ram_line_of_bypass(entry) : ram_line_of_block(block_q[entry], offset_q[entry]), r_beat_q)),
    .rd_data_o(r_data_o)
  );

  logic unused;
  assign unused = ^mem_r_id_i;

  `ASSERT_STABLE(stable_r, r_valid_o, r_ready_i, {r_id_o, r_data_o, r_last_o})
  `ASSERT_STABLE(stable_b, b_valid_o, b_ready_i, b_id_o)
  `ASSERT_STABLE(stable_ar, mem_ar_valid_o, mem_ar_ready_i, {mem_ar_id_o, mem_ar_addr_o, mem_ar_lines_o})
  `ASSERT_STABLE(stable_aw, mem_aw_valid_o, mem_aw_ready_i, {mem_aw_id_o, mem_aw_addr_o})
  `ASSERT_STABLE(stable_w, mem_w_valid_o, mem_w_ready_i, {mem_w_data_o, mem_w_strb_o, mem_w_last_o})
  `ASSUME_OR(in_region, !ar_valid_i || req_line < lines_i, ("prefetcher: a line outside the region"))
  `ASSUME_OR(blocks_fit, blocks_i <= CountWidth'(Blocks), ("prefetcher: more than `Blocks` blocks"))
endmodule : prefetcher
