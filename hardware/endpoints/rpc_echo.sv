// Remote procedure calls over lines of a slice. Client and device pass ownership of the lines to each other.
//
// Each context has two sides of `payload_i` lines. The remote owns one side: it writes the arguments there, and then
// reads the other side. That read is the call. The device delays the read response until local operations have
// invalidated the argument lines at the remote and the results are computed. Then the two sides swap their roles. The
// procedure is that of crates/application/src/rpc.rs: each word times 3, plus 1.
//
// Sides start at multiples of MaxPayload lines of the slice: context c has sides 2c and 2c+1.

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

  // Local operations at the home.
  output logic                      local_req_valid_o,
  input  logic                      local_req_ready_i,
  output home_pkg::local_req_t      local_req_o,
  input  logic                      local_rsp_valid_i,
  output logic                      local_rsp_ready_o,
  input  home_pkg::local_rsp_t      local_rsp_i
);
  localparam int unsigned BeatWidth    = home_pkg::bits(Beats);
  localparam int unsigned BeatBits     = $clog2(Beats);
  localparam int unsigned LineShift    = $clog2(Beats * PayloadWidth / 8) + 1;
  localparam int unsigned Words        = PayloadWidth / 64;
  localparam int unsigned ContextWidth = home_pkg::bits(Contexts);
  localparam int unsigned OffsetWidth  = home_pkg::bits(MaxPayload);
  localparam int unsigned Depth        = Contexts * MaxPayload * Beats;   // words in a side's memory
  localparam int unsigned DepthWidth   = home_pkg::bits(Depth);

  if (2 ** $clog2(Contexts) != Contexts || 2 ** $clog2(MaxPayload) != MaxPayload) begin : gen_invalid_sizes
    $error("rpc_echo: Contexts and MaxPayload must be powers of two");
  end

  // Masks of a context number, and of a line offset within a side.
  localparam logic [home_pkg::LineWidth-1:0] ContextMask = home_pkg::LineWidth'(Contexts) - 1'b1;
  localparam logic [home_pkg::LineWidth-1:0] OffsetMask  = home_pkg::LineWidth'(MaxPayload) - 1'b1;

  typedef struct packed {
    logic [ContextWidth-1:0] context_index;
    logic                    side;
    logic [OffsetWidth-1:0]  offset;
  } slot_t;

  // Returns the context, side and offset of a line of the slice.
  function automatic slot_t slot_of(input logic [home_pkg::LineWidth-1:0] line);
    logic [home_pkg::LineWidth-1:0] pair;
    pair                  = line >> $clog2(MaxPayload);
    slot_of.context_index = ContextWidth'((pair >> 1) & ContextMask);
    slot_of.side          = pair[0];
    slot_of.offset        = OffsetWidth'(line & OffsetMask);
  endfunction

  function automatic logic [home_pkg::LineWidth-1:0] line_of(input slot_t slot);
    return home_pkg::LineWidth'(slot.context_index) << ($clog2(MaxPayload) + 1)
         | home_pkg::LineWidth'(slot.side) << $clog2(MaxPayload)
         | home_pkg::LineWidth'(slot.offset);
  endfunction

  // Returns the address of a beat of a line in the memory of its side.
  function automatic logic [DepthWidth-1:0] word_of(
    input logic [ContextWidth-1:0] context_index, input logic [OffsetWidth-1:0] offset, input logic [BeatWidth-1:0] beat);
    return DepthWidth'((DepthWidth + 1)'(context_index) << ($clog2(MaxPayload) + BeatBits))
         | DepthWidth'((DepthWidth + 1)'(offset) << BeatBits)
         | DepthWidth'(beat);
  endfunction

  // State per context: side owned by the remote; call in progress; arguments still to be requested; number of argument
  // lines not yet invalidated; reads delayed until the call completes.
  logic [Contexts-1:0]                  remote_side_q, call_busy_q, invalidate_pending_q;
  logic [Contexts-1:0][CountWidth-1:0]  lines_left_q;
  logic [Contexts-1:0][MaxPayload-1:0]  delayed_q;
  logic                                 call_start, call_line_done;

  // Address of the next word to be cleared after reset. The extra top bit is set when the whole memory is zero.
  logic [DepthWidth:0] init_addr_q;
  logic                init_done;

  assign init_done = init_addr_q[DepthWidth];

  always_ff @(posedge clk_i) begin
    if (!rst_ni)      init_addr_q <= '0;
    else if (!init_done) init_addr_q <= init_addr_q + 1'b1;
  end

  // ------------------------------------------------------------------ reads

  // AXI ID of the outstanding read of each line; the home has at most one per line.
  logic [AxiIdWidth-1:0] id_q [Contexts][2][MaxPayload];
  slot_t                 req_slot, released_slot, rd_queue_in, rd_slot;
  logic                  readable, release_valid, rd_queue_in_valid, rd_queue_in_ready, rd_queue_valid, rd_queue_pop, ar_fire;

  assign req_slot   = slot_of(home_pkg::LineWidth'(ar_addr_i >> LineShift));
  assign readable   = req_slot.side == remote_side_q[req_slot.context_index];
  assign ar_ready_o = init_done && !release_valid && rd_queue_in_ready;
  assign ar_fire    = ar_valid_i && ar_ready_o;
  assign call_start = ar_fire && !readable && !call_busy_q[req_slot.context_index];

  // Selects one delayed read whose call has completed.
  always_comb begin
    release_valid = 1'b0;
    released_slot = '0;
    for (int unsigned c = 0; c < Contexts; c++) begin
      for (int unsigned o = 0; o < MaxPayload; o++) begin
        if (!release_valid && delayed_q[c][o] && !call_busy_q[c]) begin
          release_valid = 1'b1;
          released_slot = '{context_index: ContextWidth'(c), side: remote_side_q[c], offset: OffsetWidth'(o)};
        end
      end
    end
  end

  assign rd_queue_in_valid = release_valid || ar_fire && readable;
  assign rd_queue_in       = release_valid ? released_slot : req_slot;

  fifo #(
    .Depth (4),
    .data_t(slot_t)
  ) u_rd_queue (
    .clk_i,
    .rst_ni,
    .wr_valid_i(rd_queue_in_valid),
    .wr_ready_o(rd_queue_in_ready),
    .wr_data_i (rd_queue_in),
    .rd_valid_o(rd_queue_valid),
    .rd_ready_i(rd_queue_pop),
    .rd_data_o (rd_slot)
  );

  always_ff @(posedge clk_i) begin
    if (ar_fire) id_q[req_slot.context_index][req_slot.side][req_slot.offset] <= ar_id_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      delayed_q <= '0;
    end else begin
      if (ar_fire && !readable) delayed_q[req_slot.context_index][req_slot.offset] <= 1'b1;
      if (release_valid && rd_queue_in_ready) delayed_q[released_slot.context_index][released_slot.offset] <= 1'b0;
    end
  end

  // The beats of a line are contiguous. Read data is stable at the memory's output until the transfer.
  logic                              rd_issue, r_free, r_side_q;
  logic [BeatWidth-1:0]              r_beat_q;
  logic [1:0][PayloadWidth-1:0]      words;

  assign r_free       = !r_valid_o || r_ready_i;
  assign r_data_o     = words[r_side_q];
  assign rd_queue_pop = rd_issue && r_beat_q == BeatWidth'(Beats - 1);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      r_valid_o <= 1'b0;
      r_beat_q  <= '0;
    end else begin
      r_valid_o <= rd_issue || r_valid_o && !r_ready_i;
      if (rd_issue) r_beat_q <= rd_queue_pop ? '0 : r_beat_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rd_issue) begin
      r_id_o   <= id_q[rd_slot.context_index][rd_slot.side][rd_slot.offset];
      r_last_o <= r_beat_q == BeatWidth'(Beats - 1);
      r_side_q <= rd_slot.side;
    end
  end

  // ------------------------------------------------------------------ writes

  logic                  aw_pending_q, w_fire, result_valid_q;
  slot_t                 aw_slot_q;
  logic [AxiIdWidth-1:0] aw_id_q;
  logic [BeatWidth-1:0]  w_beat_q;

  assign w_ready_o  = aw_pending_q && !result_valid_q && (!b_valid_o || b_ready_i);
  assign w_fire     = w_valid_i && w_ready_o;
  assign aw_ready_o = init_done && !aw_pending_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_pending_q <= 1'b0;
      b_valid_o    <= 1'b0;
      w_beat_q     <= '0;
    end else begin
      aw_pending_q <= aw_pending_q ? !(w_fire && w_last_i) : aw_valid_i && init_done;
      if (w_fire) w_beat_q <= w_last_i ? '0 : w_beat_q + 1'b1;
      b_valid_o <= w_fire && w_last_i || b_valid_o && !b_ready_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!aw_pending_q) begin
      aw_id_q   <= aw_id_i;
      aw_slot_q <= slot_of(home_pkg::LineWidth'(aw_addr_i >> LineShift));
    end
    if (w_fire) b_id_o <= aw_id_q;
  end

  // ------------------------------------------------------------------ calls

  // Local operations that invalidate the argument lines, one context at a time.
  logic  req_busy_q, req_last;
  slot_t current_req_slot_q;

  assign local_req_valid_o = req_busy_q;
  assign local_req_o       = '{
    operation: 3'(Protocol.evict - Protocol.messages),
    line:      line_of(current_req_slot_q) << 1 | home_pkg::LineWidth'(Slice)
  };
  assign req_last          = CountWidth'(current_req_slot_q.offset) + 1'b1 == payload_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)        req_busy_q <= 1'b0;
    else if (!req_busy_q) req_busy_q <= invalidate_pending_q != '0;
    else                req_busy_q <= !(local_req_ready_i && req_last);
  end

  always_ff @(posedge clk_i) begin
    if (req_busy_q) begin
      if (local_req_ready_i) current_req_slot_q.offset <= current_req_slot_q.offset + 1'b1;
    end else begin
      for (int unsigned c = 0; c < Contexts; c++) begin
        if (invalidate_pending_q[c]) current_req_slot_q <= '{context_index: ContextWidth'(c), side: remote_side_q[c], offset: '0};
      end
    end
  end

  // An argument beat is read in one cycle; its result is written to the other side in the next.
  logic                    arg_valid_q, compute_rd;
  slot_t                   rsp_slot, arg_slot_q, result_slot_q;
  logic [BeatWidth-1:0]    arg_beat_q, result_beat_q;
  logic [PayloadWidth-1:0] result_data;

  assign rsp_slot          = slot_of(local_rsp_i.line >> 1);
  assign local_rsp_ready_o = !arg_valid_q;
  assign compute_rd        = arg_valid_q && r_free;
  assign rd_issue          = rd_queue_valid && r_free && !arg_valid_q;
  assign call_line_done    = result_valid_q && result_beat_q == BeatWidth'(Beats - 1);

  always_comb begin
    for (int unsigned i = 0; i < Words; i++) begin
      result_data[i*64+:64] = (words[result_slot_q.side][i*64+:64] << 1) + words[result_slot_q.side][i*64+:64] + 64'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      arg_valid_q    <= 1'b0;
      result_valid_q <= 1'b0;
    end else begin
      arg_valid_q    <= arg_valid_q ? !(compute_rd && arg_beat_q == BeatWidth'(Beats - 1)) : local_rsp_valid_i;
      result_valid_q <= compute_rd;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!arg_valid_q) begin
      arg_slot_q <= rsp_slot;
      arg_beat_q <= '0;
    end else if (compute_rd) begin
      arg_beat_q <= arg_beat_q + 1'b1;
    end
    result_slot_q <= arg_slot_q;
    result_beat_q <= arg_beat_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      remote_side_q        <= '0;
      call_busy_q          <= '0;
      invalidate_pending_q <= '0;
    end else begin
      if (call_start) begin
        call_busy_q[req_slot.context_index]          <= 1'b1;
        invalidate_pending_q[req_slot.context_index] <= 1'b1;
      end
      if (req_busy_q) invalidate_pending_q[current_req_slot_q.context_index] <= 1'b0;
      if (call_line_done && lines_left_q[result_slot_q.context_index] == CountWidth'(1)) begin
        call_busy_q[result_slot_q.context_index]   <= 1'b0;
        remote_side_q[result_slot_q.context_index] <= !remote_side_q[result_slot_q.context_index];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (call_start) lines_left_q[req_slot.context_index] <= payload_i;
    if (call_line_done) lines_left_q[result_slot_q.context_index] <= lines_left_q[result_slot_q.context_index] - 1'b1;
  end

  // ------------------------------------------------------------------ the sides' memories

  for (genvar side = 0; side < 2; side++) begin : gen_side
    logic                      wr_from_axi, wr_from_result;
    logic [PayloadWidth/8-1:0] strobes;
    logic [DepthWidth-1:0]     wr_word;
    logic [PayloadWidth-1:0]   wr_data;

    assign wr_from_axi    = w_fire && aw_slot_q.side == 1'(side);
    assign wr_from_result = result_valid_q && result_slot_q.side != 1'(side);

    always_comb begin
      strobes = wr_from_axi ? w_strb_i : '0;
      wr_word = word_of(aw_slot_q.context_index, aw_slot_q.offset, w_beat_q);
      wr_data = w_data_i;
      if (wr_from_result) begin
        strobes = '1;
        wr_word = word_of(result_slot_q.context_index, result_slot_q.offset, result_beat_q);
        wr_data = result_data;
      end
      if (!init_done) begin
        strobes = '1;
        wr_word = init_addr_q[DepthWidth-1:0];
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
      .rd_en_i  (compute_rd && arg_slot_q.side == 1'(side) || rd_issue && rd_slot.side == 1'(side)),
      .rd_addr_i(compute_rd ? word_of(arg_slot_q.context_index, arg_slot_q.offset, arg_beat_q)
                 : word_of(rd_slot.context_index, rd_slot.offset, r_beat_q)),
      .rd_data_o(words[side])
    );
  end

  logic unused;
  assign unused = ^{local_rsp_i, ar_addr_i, aw_addr_i, rsp_slot};

  `ASSERT_STABLE(stable_r, r_valid_o, r_ready_i, {r_id_o, r_data_o, r_last_o})
  `ASSERT_STABLE(stable_b, b_valid_o, b_ready_i, b_id_o)
  `ASSERT_STABLE(stable_local, local_req_valid_o, local_req_ready_i, local_req_o)
  `ASSUME_OR(lines_in_contexts, (!ar_valid_i || ar_addr_i >> LineShift < AxiAddrWidth'(2 * Contexts * MaxPayload))
    && (!aw_valid_i || aw_addr_i >> LineShift < AxiAddrWidth'(2 * Contexts * MaxPayload)),
    ("rpc_echo: a line outside all contexts"))
  `ASSUME_OR(payload_legal, payload_i - 1'b1 <= CountWidth'(OffsetMask), ("rpc_echo: a side has 1 to MaxPayload lines"))
  `ASSUME_OR(completion_expected, !local_rsp_valid_i || call_busy_q[rsp_slot.context_index] && !local_rsp_i.refused,
    ("rpc_echo: an unexpected response"))
endmodule : rpc_echo
