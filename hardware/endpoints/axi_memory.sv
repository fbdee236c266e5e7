// Coherent memory: a block RAM at the AXI port of a slice of the home. After reset it clears itself; then it responds
// in order.
//
// The RAM address is the line number without the slice bit. A simulation stops at an address beyond the last line;
// hardware ignores the upper bits.

`include "assertions.svh"

module axi_memory #(
  parameter int unsigned Lines        = 256,  // a power of two
  parameter int unsigned Beats        = 2,    // per line
  parameter int unsigned PayloadWidth = 512,
  parameter int unsigned AxiIdWidth   = 8,
  parameter int unsigned AxiAddrWidth = 36
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  // AXI4 subordinate. Each burst is one line of `Beats` beats; addresses are in bytes.
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
  output logic                      r_last_o
);
  localparam int unsigned BeatWidth = home_pkg::bits(Beats);
  localparam int unsigned BeatBits  = $clog2(Beats);
  // The slice bit lies above the bits within a line.
  localparam int unsigned LineShift = $clog2(Beats * PayloadWidth / 8) + 1;
  localparam int unsigned AddrWidth = $clog2(Lines * Beats);

  if (2 ** $clog2(Lines) != Lines || Lines < 2) begin : gen_invalid_lines
    $error("axi_memory: Lines must be a power of two, at least 2");
  end

  function automatic logic [AddrWidth-1:0] ram_addr(input logic [AxiAddrWidth-1:0] addr, input logic [BeatWidth-1:0] beat);
    return AddrWidth'(addr >> LineShift << BeatBits) | AddrWidth'(beat);
  endfunction

  // Address of the next word to be cleared after reset. The extra top bit is set when the whole memory is zero.
  logic [AddrWidth:0] init_addr_q;
  logic               init_done;

  assign init_done = init_addr_q[AddrWidth];

  always_ff @(posedge clk_i) begin
    if (!rst_ni)      init_addr_q <= '0;
    else if (!init_done) init_addr_q <= init_addr_q + 1'b1;
  end

  // ------------------------------------------------------------------ reads

  logic                    ar_pending_q, rd_issue;
  logic [AxiIdWidth-1:0]   ar_id_q;
  logic [AxiAddrWidth-1:0] ar_addr_q;
  logic [BeatWidth-1:0]    r_beat_q;
  logic                    r_last;

  assign rd_issue   = ar_pending_q && (!r_valid_o || r_ready_i);
  assign r_last     = r_beat_q == BeatWidth'(Beats - 1);
  assign ar_ready_o = init_done && (!ar_pending_q || rd_issue && r_last);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_pending_q <= 1'b0;
      r_valid_o    <= 1'b0;
      r_beat_q     <= '0;
    end else begin
      if (ar_ready_o) ar_pending_q <= ar_valid_i;
      if (rd_issue) r_beat_q <= r_last ? '0 : r_beat_q + 1'b1;
      r_valid_o <= rd_issue || r_valid_o && !r_ready_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (ar_ready_o) begin
      ar_id_q   <= ar_id_i;
      ar_addr_q <= ar_addr_i;
    end
    if (rd_issue) begin
      r_id_o   <= ar_id_q;
      r_last_o <= r_last;
    end
  end

  // ------------------------------------------------------------------ writes

  logic                    aw_pending_q, w_fire;
  logic [AxiIdWidth-1:0]   aw_id_q;
  logic [AxiAddrWidth-1:0] aw_addr_q;
  logic [BeatWidth-1:0]    w_beat_q;

  assign w_ready_o  = aw_pending_q && (!b_valid_o || b_ready_i);
  assign w_fire     = w_valid_i && w_ready_o;
  assign aw_ready_o = init_done && (!aw_pending_q || w_fire && w_last_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_pending_q <= 1'b0;
      b_valid_o    <= 1'b0;
      w_beat_q     <= '0;
    end else begin
      if (aw_ready_o) aw_pending_q <= aw_valid_i;
      if (w_fire) w_beat_q <= w_last_i ? '0 : w_beat_q + 1'b1;
      b_valid_o <= w_fire && w_last_i || b_valid_o && !b_ready_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (aw_ready_o) begin
      aw_id_q   <= aw_id_i;
      aw_addr_q <= aw_addr_i;
    end
    if (w_fire) b_id_o <= aw_id_q;
  end

  ram_block #(
    .Depth(Lines * Beats),
    .Width(PayloadWidth),
    .Lanes(PayloadWidth / 8)
  ) u_words (
    .clk_i,
    .wr_en_i  (!init_done ? '1 : w_fire ? w_strb_i : '0),
    .wr_addr_i(init_done ? ram_addr(aw_addr_q, w_beat_q) : init_addr_q[AddrWidth-1:0]),
    .wr_data_i(init_done ? w_data_i : '0),
    .rd_en_i  (rd_issue),
    .rd_addr_i(ram_addr(ar_addr_q, r_beat_q)),
    .rd_data_o(r_data_o)
  );

  `ASSERT_STABLE(stable_r, r_valid_o, r_ready_i, {r_id_o, r_data_o, r_last_o})
  `ASSERT_STABLE(stable_b, b_valid_o, b_ready_i, b_id_o)
  `ASSUME_OR(read_in_range, !ar_pending_q || ar_addr_q >> (LineShift + $clog2(Lines)) == '0,
    ("axi_memory: address %0h lies behind the memory", ar_addr_q))
  `ASSUME_OR(write_in_range, !aw_pending_q || aw_addr_q >> (LineShift + $clog2(Lines)) == '0,
    ("axi_memory: address %0h lies behind the memory", aw_addr_q))
  `ASSUME_OR(burst_length_legal, !w_fire || w_last_i == (w_beat_q == BeatWidth'(Beats - 1)),
    ("axi_memory: a write has another number of beats than %0d", Beats))
endmodule : axi_memory
