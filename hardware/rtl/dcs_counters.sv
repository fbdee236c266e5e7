// Performance counters of a directory controller slice (DCS), in one memory block. The counters are updated in turn:
// each visit adds the counter's recent events to its word.
//
// Between two visits, a few flip-flops count the recent events; counters that the protocol does not use have none. A
// read is served at the counter's next visit: it needs no memory port, and the value includes all events until that
// visit.

`include "assertions.svh"

module dcs_counters #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter int unsigned         Units = 1,

  localparam int unsigned NumRx      = int'(Protocol.rx_circuits),
  localparam int unsigned NumTx      = int'(Protocol.tx_circuits),
  localparam int unsigned IndexWidth = $clog2(registers_pkg::Places)
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  // Enables counting; resets all counters to 0.
  input  logic                                count_enable_i,
  input  logic                                clear_i,

  // Counted events of this cycle.
  input  logic [NumRx-1:0]                    rx_dispatched_i,
  input  logic [NumRx-1:0][7:0]               rx_message_i,
  input  logic [NumRx-1:0]                    rx_stall_unit_i,
  input  logic [NumRx-1:0]                    rx_stall_slot_i,
  input  home_pkg::reject_e [NumRx-1:0]       rx_reject_i,
  input  home_pkg::reject_e                   device_reject_i,
  input  logic                                unexpected_i,
  input  home_pkg::reject_e                   read_reject_i,
  input  home_pkg::reject_e                   write_reject_i,
  input  logic [NumTx-1:0]                    tx_sent_i,
  input  logic [NumTx-1:0][7:0]               tx_message_i,
  input  logic [NumTx-1:0]                    tx_stall_i,
  input  logic                                local_accepted_i,
  input  logic [2:0]                          local_operation_i,
  input  logic                                unlock_accepted_i,
  input  logic                                read_done_i,
  input  logic                                write_done_i,
  input  logic                                refused_i,
  input  logic                                ar_stall_i,
  input  logic                                aw_stall_i,
  input  logic                                w_stall_i,
  input  logic                                local_stall_i,
  input  logic                                unlock_stall_i,
  input  logic                                local_rsp_stall_i,
  input  home_pkg::stall_e [Units-1:0]        stall_i,
  input  logic [Units-1:0]                    evicted_i,
  input  logic                                change_sent_i,
  input  logic [Units-1:0]                    change_lost_i,
  input  logic [Units-1:0]                    busy_i,

  // Read port; `rd_req_i` and `rd_index_i` stay until the value is returned.
  input  logic                                rd_req_i,
  input  logic [IndexWidth-1:0]               rd_index_i,
  output logic                                rd_valid_o,
  output logic [63:0]                         rd_data_o
);
  import home_pkg::*;
  import registers_pkg::*;

  // Widths of the count of one cycle, and of the counts between two visits.
  localparam int unsigned SumWidth    = bits(Units + 1);
  localparam int unsigned SingleWidth = IndexWidth + 1;
  localparam int unsigned MultiWidth  = IndexWidth + SumWidth;
  localparam int unsigned Chunk       = 16;  // bits that are added in one cycle

  function automatic logic [Units-1:0] stalled_for(input stall_e [Units-1:0] stalls, input stall_e reason);
    for (int unsigned u = 0; u < Units; u++) stalled_for[u] = stalls[u] == reason;
  endfunction

  // ------------------------------------------------------------------ events of one cycle

  logic [Places-1:0] events;
  // For `StallsLine` to `Busy`, each unit contributes one event per cycle. All other events occur at most once per
  // cycle.
  logic [Busy:StallsLine][Units-1:0] unit_events;

  always_comb begin
    events      = '0;
    unit_events = '0;
    for (int unsigned e = 0; e < MaxEvents; e++) begin
      for (int unsigned c = 0; c < NumRx; c++) begin
        if (Protocol.circuit[c][e]) events[Events+e] |= rx_dispatched_i[c] && rx_message_i[c] == 8'(e);
      end
    end
    for (int unsigned l = 0; l < 32'(Protocol.locals); l++) begin
      events[Events+32'(Protocol.messages)+l] = local_accepted_i && local_operation_i == 3'(l);
    end
    events[Events+32'(Protocol.unlock)]      = unlock_accepted_i;
    events[Events+32'(Protocol.memory_data)] = read_done_i;
    events[Events+32'(Protocol.memory_done)] = write_done_i;
    for (int unsigned m = 0; m < MaxSends; m++) begin
      for (int unsigned c = 0; c < NumTx; c++) begin
        if (Protocol.send_circuit[c][m]) events[Sent+m] |= tx_sent_i[c] && tx_message_i[c] == 8'(m);
      end
    end
    for (int unsigned c = 0; c < NumRx; c++) begin
      events[RxWaitsUnit+c]   = rx_stall_unit_i[c];
      events[RxWaitsSlot+c]   = rx_stall_slot_i[c];
      events[WrongMessages+c] = rx_reject_i[c] == RejectMessage || rx_reject_i[c] == RejectRemote;
      events[WrongLines+c]    = rx_reject_i[c] == RejectLine;
      events[WrongLengths+c]  = rx_reject_i[c] == RejectLength;
    end
    for (int unsigned c = 0; c < NumTx; c++) events[TxWaits+c] = tx_stall_i[c];
    events[ArWaits]          = ar_stall_i;
    events[AwWaits]          = aw_stall_i;
    events[WWaits]           = w_stall_i;
    events[LocalWaits]       = local_stall_i;
    events[UnlockWaits]      = unlock_stall_i;
    events[AnswerWaits]      = local_rsp_stall_i;
    events[Refused]          = refused_i;
    events[Changes]          = change_sent_i;
    events[Cycles]           = 1'b1;
    events[WrongOperations]  = device_reject_i == RejectOperation;
    events[WrongDeviceLines] = device_reject_i == RejectLocalLine || device_reject_i == RejectUnlockLine;
    events[Impossible]       = unexpected_i;
    events[WrongReads]       = read_reject_i == RejectRead;
    events[WrongBursts]      = read_reject_i == RejectBurst;
    events[WrongWrites]      = write_reject_i == RejectWrite;
    unit_events[StallsLine]  = stalled_for(stall_i, StallLine);
    unit_events[StallsRoom]  = stalled_for(stall_i, StallRoom);
    unit_events[StallsRead]  = stalled_for(stall_i, StallRead);
    unit_events[StallsWrite] = stalled_for(stall_i, StallWrite);
    unit_events[StallsLocal] = stalled_for(stall_i, StallLocal);
    unit_events[StallsSend]  = stalled_for(stall_i, StallSend);
    unit_events[Evictions]   = evicted_i;
    unit_events[ChangesLost] = change_lost_i;
    unit_events[Busy]        = busy_i;
  end

  // ------------------------------------------------------------------ visits

  logic [IndexWidth-1:0] index_d, index_q;
  logic                  stale_q;  // the memory word predates the last clear
  logic                  clear;

  assign clear   = !rst_ni || clear_i;
  assign index_d = clear ? '0 : index_q + 1'b1;

  always_ff @(posedge clk_i) begin
    index_q <= index_d;
    stale_q <= clear || stale_q && index_q != '1;
  end

  // Events since the last visit.
  logic [Places-1:0][MultiWidth-1:0] recent;

  for (genvar p = 0; p < Places; p++) begin : gen_counter
    logic visited_q;
    always_ff @(posedge clk_i) visited_q <= index_d == IndexWidth'(p);
    if (p >= StallsLine && p <= Busy) begin : gen_multi
      logic [SumWidth-1:0]   unit_count, increment_q;
      logic [MultiWidth-1:0] recent_q;
      ones_count #(
        .Size(Units)
      ) u_ones (
        .clk_i,
        .clear_i(clear),
        .bits_i (unit_events[p]),
        .count_o(unit_count)
      );
      always_ff @(posedge clk_i) begin
        increment_q <= clear || !count_enable_i ? '0 : unit_count;
        recent_q    <= clear ? '0 : (visited_q ? '0 : recent_q) + MultiWidth'(increment_q);
      end
      assign recent[p] = recent_q;
    end else begin : gen_single
      logic                   increment_q;
      logic [SingleWidth-1:0] recent_q;
      always_ff @(posedge clk_i) begin
        increment_q <= !clear && count_enable_i && events[p];
        if (clear)           recent_q <= '0;
        else if (visited_q)    recent_q <= SingleWidth'(increment_q);
        else if (increment_q) recent_q <= SingleWidth'(incremented(8'(recent_q)));
      end
      assign recent[p] = MultiWidth'(recent_q);
    end
  end

  // A visit: read the memory (0 if the content predates the last clear), add in chunks, and write back.
  localparam int unsigned Stages = 2 + 64 / Chunk;

  typedef struct packed {
    logic                  requested;
    logic [IndexWidth-1:0] index;
  } visit_t;

  visit_t [Stages-1:0]             visit_q;
  logic                            read_stale_q;
  logic [MultiWidth-1:0]           read_recent_q;
  logic [63:0]                     read_word;
  logic [64/Chunk:0][63:0]         word_q;   // by number of chunks added
  logic [64/Chunk:0]               carry_q;
  logic [MultiWidth-1:0]           addend_q;
  logic                            rd_pending_q;  // the requested counter is in the pipeline

  if (MultiWidth > Chunk) begin : gen_invalid_units
    $error("dcs_counters: Units is more than counters have room for");
  end

  always_ff @(posedge clk_i) begin
    visit_q[0]    <= '{rd_req_i && !rd_pending_q && index_q == rd_index_i, index_q};
    read_recent_q <= recent[index_q];
    read_stale_q  <= stale_q;
    visit_q[1]    <= visit_q[0];
    word_q[0]     <= read_stale_q ? '0 : read_word;
    addend_q      <= read_recent_q;
    carry_q[0]    <= 1'b0;
    for (int unsigned i = 0; i < 64 / Chunk; i++) begin
      visit_q[i+2] <= visit_q[i+1];
      word_q[i+1]  <= word_q[i];
      {carry_q[i+1], word_q[i+1][i*Chunk+:Chunk]} <= (Chunk + 1)'(word_q[i][i*Chunk+:Chunk])
        + (i == 0 ? (Chunk + 1)'(addend_q) : (Chunk + 1)'(carry_q[i]));
    end
    if (!rst_ni) for (int unsigned i = 0; i < Stages; i++) visit_q[i].requested <= 1'b0;
  end

  ram_block #(
    .Depth(Places),
    .Width(64)
  ) u_words (
    .clk_i,
    .wr_en_i  (1'b1),
    .wr_addr_i(visit_q[Stages-1].index),
    .wr_data_i(word_q[64/Chunk]),
    .rd_en_i  (1'b1),
    .rd_addr_i(index_q),
    .rd_data_o(read_word)
  );

  always_ff @(posedge clk_i) begin
    rd_pending_q <= rst_ni && rd_req_i && (rd_pending_q || index_q == rd_index_i);
  end

  assign rd_valid_o = visit_q[Stages-1].requested;
  assign rd_data_o  = word_q[64/Chunk];

  logic unused;
  assign unused = ^carry_q;

  `ASSERT(read_matches_request, !rd_valid_o || rd_req_i && visit_q[Stages-1].index == rd_index_i)
endmodule : dcs_counters
