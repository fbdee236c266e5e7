// Remote procedure calls over lines of a slice. Client and device pass ownership of the lines to each other.
//
// Each context has two sides of `payload_i` lines. The remote owns one side, writes arguments into it and reads the
// other: that read is the call. The device withholds the answer until local operations have taken the arguments from the
// remote and the results are computed; then the roles of the sides are swapped. The procedure is that of
// crates/application/src/rpc.rs: each word times 3, plus 1.
//
// Sides begin at multiples of MaxPayload lines of the slice: context c has sides 2c and 2c+1.

`include "assertions.svh"

module rpc_echo #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter int unsigned Slice        = 0,
  parameter int unsigned Contexts     = 1,    // a power of two
  parameter int unsigned MaxPayload   = 1,    // maximum lines per side, a power of two
  parameter int unsigned Beats        = 2,    // per line, a power of two
  parameter int unsigned PayloadWidth = 512,
  parameter int unsigned AxiIdWidth   = 8,
  parameter int unsigned AxiAddrWidth = 36,

  localparam int unsigned CountWidth  = $clog2(MaxPayload) + 1
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  input  logic [CountWidth-1:0]     payload_i,   // used lines per side; constant

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

  output logic                      local_req_valid_o,
  input  logic                      local_req_ready_i,
  output home_pkg::local_req_t      local_req_o,
  input  logic                      local_rsp_valid_i,
  output logic                      local_rsp_ready_o,
  input  home_pkg::local_rsp_t      local_rsp_i
);
  localparam int unsigned BeatWidth    = home_pkg::bits(Beats);
  localparam int unsigned BeatBits     = $clog2(Beats);
  localparam int unsigned Shift        = $clog2(Beats * PayloadWidth / 8) + 1;
  localparam int unsigned Words        = PayloadWidth / 64;
  localparam int unsigned ContextWidth = home_pkg::bits(Contexts);
  localparam int unsigned OffsetWidth  = home_pkg::bits(MaxPayload);
  localparam int unsigned Depth        = Contexts * MaxPayload * Beats;   // words in a side's memory
  localparam int unsigned DepthWidth   = home_pkg::bits(Depth);

  if (2 ** $clog2(Contexts) != Contexts || 2 ** $clog2(MaxPayload) != MaxPayload) begin : gen_wrong_sizes
    $error("rpc_echo: Contexts and MaxPayload must be powers of two");
  end

  // Bits of the number of a pair of sides, and of a line within a side.
  localparam logic [home_pkg::LineWidth-1:0] NUMBERS = home_pkg::LineWidth'(Contexts) - 1'b1;
  localparam logic [home_pkg::LineWidth-1:0] OFFSETS = home_pkg::LineWidth'(MaxPayload) - 1'b1;

  typedef struct packed {
    logic [ContextWidth-1:0] number;   // number of the context
    logic                    side;
    logic [OffsetWidth-1:0]  offset;
  } place_t;

  // Position of a line of the slice.
  function automatic place_t place(input logic [home_pkg::LineWidth-1:0] line);
    logic [home_pkg::LineWidth-1:0] pair;
    pair         = line >> $clog2(MaxPayload);
    place.number = ContextWidth'((pair >> 1) & NUMBERS);
    place.side   = pair[0];
    place.offset = OffsetWidth'(line & OFFSETS);
  endfunction

  function automatic logic [home_pkg::LineWidth-1:0] line_of(input place_t of);
    return home_pkg::LineWidth'(of.number) << ($clog2(MaxPayload) + 1)
         | home_pkg::LineWidth'(of.side) << $clog2(MaxPayload)
         | home_pkg::LineWidth'(of.offset);
  endfunction

  // Address of a line's beat in the memory of its side.
  function automatic logic [DepthWidth-1:0] word_of(
    input logic [ContextWidth-1:0] number, input logic [OffsetWidth-1:0] offset, input logic [BeatWidth-1:0] beat);
    return DepthWidth'((DepthWidth + 1)'(number) << ($clog2(MaxPayload) + BeatBits))
         | DepthWidth'((DepthWidth + 1)'(offset) << BeatBits)
         | DepthWidth'(beat);
  endfunction

  // Per context: the side that the remote owns; a call is in progress; argument lines still to be requested; argument
  // lines not yet taken; reads withheld until the call completes.
  logic [Contexts-1:0]                  remote_q, call_q, ask_q;
  logic [Contexts-1:0][CountWidth-1:0]  left_q;
  logic [Contexts-1:0][MaxPayload-1:0]  withheld_q;
  logic                                 begins, ends;

  // One bit wider than an address; the top bit is set when the whole memory is zero.
  logic [DepthWidth:0] zeros_q;
  logic                filled;

  assign filled = zeros_q[DepthWidth];

  always_ff @(posedge clk_i) begin
    if (!rst_ni)      zeros_q <= '0;
    else if (!filled) zeros_q <= zeros_q + 1'b1;
  end

  // ------------------------------------------------------------------ reads

  // The home has at most one outstanding read per line.
  logic [AxiIdWidth-1:0] id_q [Contexts][2][MaxPayload];
  place_t                asked, released, ready, read;
  logic                  answerable, releases, ready_valid, ready_ready, read_valid, read_taken, ar_taken;

  assign asked      = place(home_pkg::LineWidth'(ar_addr_i >> Shift));
  assign answerable = asked.side == remote_q[asked.number];
  assign ar_ready_o = filled && !releases && ready_ready;
  assign ar_taken   = ar_valid_i && ar_ready_o;
  assign begins     = ar_taken && !answerable && !call_q[asked.number];

  // Withheld reads that may now be answered.
  always_comb begin
    releases = 1'b0;
    released = '0;
    for (int unsigned c = 0; c < Contexts; c++) begin
      for (int unsigned o = 0; o < MaxPayload; o++) begin
        if (!releases && withheld_q[c][o] && !call_q[c]) begin
          releases = 1'b1;
          released = '{number: ContextWidth'(c), side: remote_q[c], offset: OffsetWidth'(o)};
        end
      end
    end
  end

  assign ready_valid = releases || ar_taken && answerable;
  assign ready       = releases ? released : asked;

  fifo #(
    .Depth (4),
    .data_t(place_t)
  ) u_ready (
    .clk_i,
    .rst_ni,
    .wr_valid_i(ready_valid),
    .wr_ready_o(ready_ready),
    .wr_data_i (ready),
    .rd_valid_o(read_valid),
    .rd_ready_i(read_taken),
    .rd_data_o (read)
  );

  always_ff @(posedge clk_i) begin
    if (ar_taken) id_q[asked.number][asked.side][asked.offset] <= ar_id_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      withheld_q <= '0;
    end else begin
      if (ar_taken && !answerable) withheld_q[asked.number][asked.offset] <= 1'b1;
      if (releases && ready_ready) withheld_q[released.number][released.offset] <= 1'b0;
    end
  end

  // A line's beats are contiguous. Read data stays at the memory's output until it is taken.
  logic                              issues, free, r_side_q;
  logic [BeatWidth-1:0]              r_beat_q;
  logic [1:0][PayloadWidth-1:0]      words;

  assign free       = !r_valid_o || r_ready_i;
  assign r_data_o   = words[r_side_q];
  assign read_taken = issues && r_beat_q == BeatWidth'(Beats - 1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      r_valid_o <= 1'b0;
      r_beat_q  <= '0;
    end else begin
      r_valid_o <= issues || r_valid_o && !r_ready_i;
      if (issues) r_beat_q <= read_taken ? '0 : r_beat_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (issues) begin
      r_id_o   <= id_q[read.number][read.side][read.offset];
      r_last_o <= r_beat_q == BeatWidth'(Beats - 1);
      r_side_q <= read.side;
    end
  end

  // ------------------------------------------------------------------ writes

  logic                  writes_q, w_taken, results_q;
  place_t                aw_place_q;
  logic [AxiIdWidth-1:0] aw_id_q;
  logic [BeatWidth-1:0]  w_beat_q;

  assign w_ready_o  = writes_q && !results_q && (!b_valid_o || b_ready_i);
  assign w_taken    = w_valid_i && w_ready_o;
  assign aw_ready_o = filled && !writes_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      writes_q  <= 1'b0;
      b_valid_o <= 1'b0;
      w_beat_q  <= '0;
    end else begin
      writes_q  <= writes_q ? !(w_taken && w_last_i) : aw_valid_i && filled;
      if (w_taken) w_beat_q <= w_last_i ? '0 : w_beat_q + 1'b1;
      b_valid_o <= w_taken && w_last_i || b_valid_o && !b_ready_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!writes_q) begin
      aw_id_q    <= aw_id_i;
      aw_place_q <= place(home_pkg::LineWidth'(aw_addr_i >> Shift));
    end
    if (w_taken) b_id_o <= aw_id_q;
  end

  // ------------------------------------------------------------------ calls

  // Requests the arguments of one context at a time.
  logic   asking_q, last_asked;
  place_t asking_at_q;

  assign local_req_valid_o = asking_q;
  assign local_req_o       = '{
    operation: 3'(Protocol.evict - Protocol.messages),
    line:      line_of(asking_at_q) << 1 | home_pkg::LineWidth'(Slice)
  };
  assign last_asked        = CountWidth'(asking_at_q.offset) + 1'b1 == payload_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)        asking_q <= 1'b0;
    else if (!asking_q) asking_q <= ask_q != '0;
    else                asking_q <= !(local_req_ready_i && last_asked);
  end

  always_ff @(posedge clk_i) begin
    if (asking_q) begin
      if (local_req_ready_i) asking_at_q.offset <= asking_at_q.offset + 1'b1;
    end else begin
      for (int unsigned c = 0; c < Contexts; c++) begin
        if (ask_q[c]) asking_at_q <= '{number: ContextWidth'(c), side: remote_q[c], offset: '0};
      end
    end
  end

  // Taken arguments become results: a beat is read, and its result is written in the next cycle.
  logic                 taken_q, computes;
  place_t               told, taken_at_q, results_at_q;
  logic [BeatWidth-1:0] taken_beat_q, results_beat_q;
  logic [PayloadWidth-1:0] results;

  assign told              = place(local_rsp_i.line >> 1);
  assign local_rsp_ready_o = !taken_q;
  assign computes          = taken_q && free;
  assign issues            = read_valid && free && !taken_q;
  assign ends              = results_q && results_beat_q == BeatWidth'(Beats - 1);

  always_comb begin
    for (int unsigned i = 0; i < Words; i++) begin
      results[i*64+:64] = (words[results_at_q.side][i*64+:64] << 1) + words[results_at_q.side][i*64+:64] + 64'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      taken_q   <= 1'b0;
      results_q <= 1'b0;
    end else begin
      taken_q   <= taken_q ? !(computes && taken_beat_q == BeatWidth'(Beats - 1)) : local_rsp_valid_i;
      results_q <= computes;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!taken_q) begin
      taken_at_q   <= told;
      taken_beat_q <= '0;
    end else if (computes) begin
      taken_beat_q <= taken_beat_q + 1'b1;
    end
    results_at_q   <= taken_at_q;
    results_beat_q <= taken_beat_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      remote_q <= '0;
      call_q   <= '0;
      ask_q    <= '0;
    end else begin
      if (begins) begin
        call_q[asked.number] <= 1'b1;
        ask_q[asked.number]  <= 1'b1;
      end
      if (asking_q) ask_q[asking_at_q.number] <= 1'b0;
      if (ends && left_q[results_at_q.number] == CountWidth'(1)) begin
        call_q[results_at_q.number]   <= 1'b0;
        remote_q[results_at_q.number] <= !remote_q[results_at_q.number];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (begins) left_q[asked.number] <= payload_i;
    if (ends)   left_q[results_at_q.number]   <= left_q[results_at_q.number] - 1'b1;
  end

  // ------------------------------------------------------------------ the sides' memories

  for (genvar side = 0; side < 2; side++) begin : gen_side
    logic                      takes_write, takes_results;
    logic [PayloadWidth/8-1:0] strobes;
    logic [DepthWidth-1:0]     wr_word;
    logic [PayloadWidth-1:0]   wr_data;

    assign takes_write   = w_taken && aw_place_q.side == 1'(side);
    assign takes_results = results_q && results_at_q.side != 1'(side);

    always_comb begin
      strobes = takes_write ? w_strb_i : '0;
      wr_word = word_of(aw_place_q.number, aw_place_q.offset, w_beat_q);
      wr_data = w_data_i;
      if (takes_results) begin
        strobes = '1;
        wr_word = word_of(results_at_q.number, results_at_q.offset, results_beat_q);
        wr_data = results;
      end
      if (!filled) begin
        strobes = '1;
        wr_word = zeros_q[DepthWidth-1:0];
        wr_data = '0;
      end
    end

    ram_block #(
      .Depth(Depth),
      .Width(PayloadWidth),
      .Lanes(PayloadWidth / 8)
    ) u_words (
      .clk_i,
      .wr_en_i  (strobes),
      .wr_addr_i(wr_word),
      .wr_data_i(wr_data),
      .rd_en_i  (computes && taken_at_q.side == 1'(side) || issues && read.side == 1'(side)),
      .rd_addr_i(computes ? word_of(taken_at_q.number, taken_at_q.offset, taken_beat_q) : word_of(read.number, read.offset, r_beat_q)),
      .rd_data_o(words[side])
    );
  end

  logic unused;
  assign unused = ^{local_rsp_i, ar_addr_i, aw_addr_i, told};

  `ASSERT_STABLE(stable_r, r_valid_o, r_ready_i, {r_id_o, r_data_o, r_last_o})
  `ASSERT_STABLE(stable_b, b_valid_o, b_ready_i, b_id_o)
  `ASSERT_STABLE(stable_local, local_req_valid_o, local_req_ready_i, local_req_o)
  `ASSUME_OR(own_lines, (!ar_valid_i || ar_addr_i >> Shift < AxiAddrWidth'(2 * Contexts * MaxPayload))
    && (!aw_valid_i || aw_addr_i >> Shift < AxiAddrWidth'(2 * Contexts * MaxPayload)),
    ("rpc_echo: a line that is none of a context"))
  `ASSUME_OR(payload_fits, payload_i - 1'b1 <= CountWidth'(OFFSETS), ("rpc_echo: a side has 1 to MaxPayload lines"))
  `ASSUME_OR(answers_what_was_asked, !local_rsp_valid_i || call_q[told.number] && !local_rsp_i.refused,
    ("rpc_echo: an answer that nobody waits for"))
endmodule : rpc_echo
