// Performance counters of a slice, in one memory block: each counter is visited in turn, and its recent events are added.
//
// Between two visits, events are counted in a few bits beside the memory. Counters that the protocol does not use have none.
// A read waits for the counter's next visit: it needs no port, and the value includes all events until that visit.

`include "assertions.svh"

module dcs_counters #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter int unsigned         Units = 1,

  localparam int unsigned NumRx      = int'(Protocol.rx_circuits),
  localparam int unsigned NumTx      = int'(Protocol.tx_circuits),
  localparam int unsigned PlaceWidth = $clog2(registers_pkg::Places)
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  input  logic                                count_i,
  input  logic                                clear_i,

  // Events of one cycle.
  input  logic [NumRx-1:0]                    rx_seen_i,
  input  logic [NumRx-1:0][7:0]               rx_message_i,
  input  logic [NumRx-1:0]                    rx_waits_unit_i,
  input  logic [NumRx-1:0]                    rx_waits_slot_i,
  input  home_pkg::wrong_e [NumRx-1:0]        rx_wrong_i,
  input  home_pkg::wrong_e                    device_wrong_i,
  input  logic                                impossible_i,
  input  home_pkg::wrong_e                    read_wrong_i,
  input  home_pkg::wrong_e                    write_wrong_i,
  input  logic [NumTx-1:0]                    tx_seen_i,
  input  logic [NumTx-1:0][7:0]               tx_message_i,
  input  logic [NumTx-1:0]                    tx_waits_i,
  input  logic                                local_seen_i,
  input  logic [2:0]                          local_operation_i,
  input  logic                                unlock_seen_i,
  input  logic                                read_seen_i,
  input  logic                                write_seen_i,
  input  logic                                refused_i,
  input  logic                                ar_waits_i,
  input  logic                                aw_waits_i,
  input  logic                                w_waits_i,
  input  logic                                local_waits_i,
  input  logic                                unlock_waits_i,
  input  logic                                answer_waits_i,
  input  home_pkg::stall_e [Units-1:0]        stall_i,
  input  logic [Units-1:0]                    evicted_i,
  input  logic                                change_seen_i,
  input  logic [Units-1:0]                    change_lost_i,
  input  logic [Units-1:0]                    busy_i,

  // Read request; `ask_i` and its number stay until the value is returned.
  input  logic                                ask_i,
  input  logic [PlaceWidth-1:0]               ask_place_i,
  output logic                                told_valid_o,
  output logic [63:0]                         told_o
);
  import home_pkg::*;
  import registers_pkg::*;

  // Maximum count in one cycle, and between two visits.
  localparam int unsigned SumWidth  = bits(Units + 1);
  localparam int unsigned OneWidth  = PlaceWidth + 1;
  localparam int unsigned ManyWidth = PlaceWidth + SumWidth;
  localparam int unsigned Chunk     = 16;  // bits that are added in one cycle

  function automatic logic [Units-1:0] stalled(input stall_e [Units-1:0] stalls, input stall_e why);
    for (int unsigned u = 0; u < Units; u++) stalled[u] = stalls[u] == why;
  endfunction

  // ------------------------------------------------------------------ events of one cycle

  logic [Places-1:0] happens;
  // From `StallsLine` to `Busy` each unit counts separately; all other events occur at most once in a cycle.
  logic [Busy:StallsLine][Units-1:0] units;

  always_comb begin
    happens = '0;
    units   = '0;
    for (int unsigned e = 0; e < MaxEvents; e++) begin
      for (int unsigned c = 0; c < NumRx; c++) begin
        if (Protocol.circuit[c][e]) happens[Events+e] |= rx_seen_i[c] && rx_message_i[c] == 8'(e);
      end
    end
    for (int unsigned l = 0; l < 32'(Protocol.locals); l++) begin
      happens[Events+32'(Protocol.messages)+l] = local_seen_i && local_operation_i == 3'(l);
    end
    happens[Events+32'(Protocol.unlock)]      = unlock_seen_i;
    happens[Events+32'(Protocol.memory_data)] = read_seen_i;
    happens[Events+32'(Protocol.memory_done)] = write_seen_i;
    for (int unsigned m = 0; m < MaxSends; m++) begin
      for (int unsigned c = 0; c < NumTx; c++) begin
        if (Protocol.send_circuit[c][m]) happens[Sent+m] |= tx_seen_i[c] && tx_message_i[c] == 8'(m);
      end
    end
    for (int unsigned c = 0; c < NumRx; c++) begin
      happens[RxWaitsUnit+c] = rx_waits_unit_i[c];
      happens[RxWaitsSlot+c] = rx_waits_slot_i[c];
      happens[WrongMessages+c] = rx_wrong_i[c] == WrongNumber || rx_wrong_i[c] == WrongRemote;
      happens[WrongLines+c]    = rx_wrong_i[c] == WrongLine;
      happens[WrongLengths+c]  = rx_wrong_i[c] == WrongLength;
    end
    for (int unsigned c = 0; c < NumTx; c++) happens[TxWaits+c] = tx_waits_i[c];
    happens[ArWaits]     = ar_waits_i;
    happens[AwWaits]     = aw_waits_i;
    happens[WWaits]      = w_waits_i;
    happens[LocalWaits]  = local_waits_i;
    happens[UnlockWaits] = unlock_waits_i;
    happens[AnswerWaits] = answer_waits_i;
    happens[Refused]     = refused_i;
    happens[Changes]     = change_seen_i;
    happens[Cycles]      = 1'b1;
    happens[WrongOperations]  = device_wrong_i == WrongOperation;
    happens[WrongDeviceLines] = device_wrong_i == WrongLocal || device_wrong_i == WrongUnlock;
    happens[Impossible]       = impossible_i;
    happens[WrongReads]       = read_wrong_i == WrongRead;
    happens[WrongBursts]       = read_wrong_i == WrongBurst;
    happens[WrongWrites]      = write_wrong_i == WrongWrite;
    units[StallsLine]     = stalled(stall_i, StallLine);
    units[StallsRoom]     = stalled(stall_i, StallRoom);
    units[StallsRead]     = stalled(stall_i, StallRead);
    units[StallsWrite]    = stalled(stall_i, StallWrite);
    units[StallsLocal]    = stalled(stall_i, StallLocal);
    units[StallsSend]     = stalled(stall_i, StallSend);
    units[Evictions]      = evicted_i;
    units[ChangesLost]    = change_lost_i;
    units[Busy]           = busy_i;
  end

  // ------------------------------------------------------------------ visits

  logic [PlaceWidth-1:0] place_d, place_q;
  logic                  fresh_q;  // the memory's content predates the last clear
  logic                  clears;

  assign clears  = !rst_ni || clear_i;
  assign place_d = clears ? '0 : place_q + 1'b1;

  always_ff @(posedge clk_i) begin
    place_q <= place_d;
    fresh_q <= clears || fresh_q && place_q != '1;
  end

  // Events since the last visit.
  logic [Places-1:0][ManyWidth-1:0] since;

  for (genvar p = 0; p < Places; p++) begin : gen_place
    logic visited_q;
    always_ff @(posedge clk_i) visited_q <= place_d == PlaceWidth'(p);
    if (p >= StallsLine && p <= Busy) begin : gen_many
      logic [SumWidth-1:0]  happens_here, happened_q;
      logic [ManyWidth-1:0] since_q;
      ones_count #(
        .Size(Units)
      ) u_ones (
        .clk_i,
        .clear_i(clears),
        .bits_i (units[p]),
        .count_o(happens_here)
      );
      always_ff @(posedge clk_i) begin
        happened_q <= clears || !count_i ? '0 : happens_here;
        since_q    <= clears ? '0 : (visited_q ? '0 : since_q) + ManyWidth'(happened_q);
      end
      assign since[p] = since_q;
    end else begin : gen_once
      logic                happened_q;
      logic [OneWidth-1:0] since_q;
      always_ff @(posedge clk_i) begin
        happened_q <= !clears && count_i && happens[p];
        if (clears)          since_q <= '0;
        else if (visited_q)    since_q <= OneWidth'(happened_q);
        else if (happened_q) since_q <= OneWidth'(incremented(8'(since_q)));
      end
      assign since[p] = ManyWidth'(since_q);
    end
  end

  // A visit: read the memory (0 if the content predates the last clear), add in chunks, and write back.
  localparam int unsigned Stages = 2 + 64 / Chunk;

  typedef struct packed {
    logic                  wanted;
    logic [PlaceWidth-1:0] place;
  } visit_t;

  visit_t [Stages-1:0]             visit_q;
  logic                            read_fresh_q;
  logic [ManyWidth-1:0]            read_since_q;
  logic [63:0]                     read_word;
  logic [64/Chunk:0][63:0]         word_q;   // after each number of chunks added
  logic [64/Chunk:0]               carry_q;
  logic [ManyWidth-1:0]            added_q;
  logic                            asked_q;  // the requested counter is in the pipeline

  if (ManyWidth > Chunk) begin : gen_wrong_units
    $error("dcs_counters: Units is more than counters have room for");
  end

  always_ff @(posedge clk_i) begin
    visit_q[0]   <= '{ask_i && !asked_q && place_q == ask_place_i, place_q};
    read_since_q <= since[place_q];
    read_fresh_q <= fresh_q;
    visit_q[1]   <= visit_q[0];
    word_q[0]    <= read_fresh_q ? '0 : read_word;
    added_q      <= read_since_q;
    carry_q[0]   <= 1'b0;
    for (int unsigned i = 0; i < 64 / Chunk; i++) begin
      visit_q[i+2] <= visit_q[i+1];
      word_q[i+1]  <= word_q[i];
      {carry_q[i+1], word_q[i+1][i*Chunk+:Chunk]} <= (Chunk + 1)'(word_q[i][i*Chunk+:Chunk])
        + (i == 0 ? (Chunk + 1)'(added_q) : (Chunk + 1)'(carry_q[i]));
    end
    if (!rst_ni) for (int unsigned i = 0; i < Stages; i++) visit_q[i].wanted <= 1'b0;
  end

  ram_block #(
    .Depth(Places),
    .Width(64)
  ) u_words (
    .clk_i,
    .wr_en_i  (1'b1),
    .wr_addr_i(visit_q[Stages-1].place),
    .wr_data_i(word_q[64/Chunk]),
    .rd_en_i  (1'b1),
    .rd_addr_i(place_q),
    .rd_data_o(read_word)
  );

  always_ff @(posedge clk_i) begin
    asked_q <= rst_ni && ask_i && (asked_q || place_q == ask_place_i);
  end

  assign told_valid_o = visit_q[Stages-1].wanted;
  assign told_o       = word_q[64/Chunk];

  logic unused;
  assign unused = ^carry_q;

  `ASSERT(tells_what_was_asked, !told_valid_o || ask_i && visit_q[Stages-1].place == ask_place_i)
endmodule : dcs_counters
