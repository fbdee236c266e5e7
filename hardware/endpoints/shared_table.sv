// A table in coherent memory. Both sides increment its rows, of one line each; this is the device's engine for one slice.
//
// The engine repeatedly increments a chosen share of the rows, in order: it takes a row from the remote with a locking operation,
// reads its first word from memory, writes back the incremented word, and unlocks. Rows are the lines from 0, so a slice
// has every second row. The engine has its own port to the memory that the home uses.

`include "assertions.svh"

module shared_table #(
  parameter int unsigned Slice        = 0,
  parameter int unsigned Workers      = 4,    // maximum rows in progress, up to 2**AxiIdWidth
  parameter int unsigned Beats        = 2,    // per line
  parameter int unsigned PayloadWidth = 512,
  parameter int unsigned AxiIdWidth   = 8,
  parameter int unsigned AxiAddrWidth = 36,

  localparam int unsigned LineWidth   = home_pkg::LineWidth,
  localparam int unsigned CountWidth  = $clog2(Workers + 1)
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  // Control inputs; constant while busy.
  input  logic                      start_i,
  input  logic                      stop_i,         // begin no further row
  output logic                      busy_o,         // looking for a row
  input  logic [2:0]                operation_i,    // number of the protocol's local operation that takes a line and locks it
  input  logic [LineWidth-1:0]      rows_i,         // rows of the table
  input  logic [9:0]                contended_i,    // rows that the engine increments, per 1,000 rows, 0 to 1000
  input  logic [CountWidth-1:0]     outstanding_i,  // maximum rows in progress
  input  logic [31:0]               increments_i,   // number of rows to begin; all ones: unlimited

  // Memory: reads of one line, and writes of its first word.
  output logic                      aw_valid_o,
  input  logic                      aw_ready_i,
  output logic [AxiIdWidth-1:0]     aw_id_o,
  output logic [AxiAddrWidth-1:0]   aw_addr_o,
  output logic                      w_valid_o,
  input  logic                      w_ready_i,
  output logic [PayloadWidth-1:0]   w_data_o,
  output logic [PayloadWidth/8-1:0] w_strb_o,
  output logic                      w_last_o,
  input  logic                      b_valid_i,
  output logic                      b_ready_o,
  input  logic [AxiIdWidth-1:0]     b_id_i,
  output logic                      ar_valid_o,
  input  logic                      ar_ready_i,
  output logic [AxiIdWidth-1:0]     ar_id_o,
  output logic [AxiAddrWidth-1:0]   ar_addr_o,
  input  logic                      r_valid_i,
  output logic                      r_ready_o,
  input  logic [AxiIdWidth-1:0]     r_id_i,
  input  logic [PayloadWidth-1:0]   r_data_i,
  input  logic                      r_last_i,

  // The home.
  output logic                      local_req_valid_o,
  input  logic                      local_req_ready_i,
  output home_pkg::local_req_t      local_req_o,
  input  logic                      local_rsp_valid_i,
  output logic                      local_rsp_ready_o,
  input  home_pkg::local_rsp_t      local_rsp_i,
  output logic                      unlock_valid_o,
  input  logic                      unlock_ready_i,
  output logic [LineWidth-1:0]      unlock_line_o
);
  localparam int unsigned WorkerWidth = home_pkg::bits(Workers);
  localparam int unsigned BeatWidth   = home_pkg::bits(Beats);
  localparam int unsigned Shift       = $clog2(Beats * PayloadWidth / 8);

  typedef enum logic [2:0] {
    Rest,    // no row
    Lock,    // lock request to be sent
    Locked,  // lock requested
    Fetch,   // read of the word to be sent
    Add,     // read outstanding
    Store,   // write to be sent
    Stored,  // write outstanding
    Unlock   // unlock to be sent
  } step_e;

  // First worker in a given step.
  typedef struct packed {
    logic                   valid;
    logic [WorkerWidth-1:0] worker;
  } which_t;

  step_e                step_q [Workers], step_d [Workers];
  logic [LineWidth-1:0] row_q  [Workers];
  logic [63:0]          word_q [Workers];
  // A worker's previous row, until the home acknowledges its unlock: the row must not be locked again before that.
  logic [Workers-1:0]   unlocks_q;
  logic [LineWidth-1:0] unlocks_row_q [Workers];

  function automatic which_t first(input logic [Workers-1:0] which);
    first = '0;
    for (int unsigned w = 0; w < Workers; w++) begin
      if (which[w] && !first.valid) first = '{valid: 1'b1, worker: WorkerWidth'(w)};
    end
  endfunction

  logic [Workers-1:0] rest, gives, takes, lock, fetch, store, unlock, locked, busy_with_next;
  which_t             next_rest, next_lock, next_fetch, next_store, next_unlock, taken;
  logic [BeatWidth-1:0] r_beat_q, w_beat_q;
  logic                 lock_taken, fetch_taken, store_taken, unlock_taken, unlocked;

  // ------------------------------------------------------------------ the next row

  // `share_q` is the row's number times `contended_i`, modulo 1000.
  logic                 started_q, moves, has_rows, wanted, found;
  logic [LineWidth-1:0] next_q;
  logic [31:0]          left_q;
  logic [10:0]          share_q, first_share, one_on, two_on;

  function automatic logic [10:0] thousandths(input logic [10:0] share);
    return share >= 11'd1000 ? share - 11'd1000 : share;
  endfunction

  assign first_share = Slice == 0 ? '0 : thousandths({1'b0, contended_i});
  assign one_on      = share_q + {1'b0, contended_i};
  assign two_on      = thousandths(one_on) + {1'b0, contended_i};
  assign has_rows    = rows_i > LineWidth'(Slice);
  assign wanted      = started_q && !stop_i && has_rows && contended_i != '0 && left_q != '0 && next_rest.valid;
  assign found       = one_on >= 11'd1000 && busy_with_next == '0;
  assign busy_o      = wanted || start_i && !started_q;
  assign moves       = wanted || !found && started_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      started_q <= 1'b0;
    end else begin
      started_q <= started_q || start_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      next_q  <= LineWidth'(Slice);
      share_q <= first_share;
      left_q  <= increments_i;
    end else begin
      if (moves) begin
        next_q  <= next_q + LineWidth'(2) < rows_i ? next_q + LineWidth'(2) : LineWidth'(Slice);
        share_q <= next_q + LineWidth'(2) < rows_i ? thousandths(two_on) : first_share;
      end
      if (wanted && found && left_q != '1) left_q <= left_q - 1'b1;
    end
  end

  // ------------------------------------------------------------------ workers

  always_comb begin
    for (int unsigned w = 0; w < Workers; w++) begin
      // A worker may take its next row in the cycle in which it unlocks the previous one.
      gives[w]          = unlock_taken && next_unlock.worker == WorkerWidth'(w);
      rest[w]           = (step_q[w] == Rest || gives[w]) && CountWidth'(w) < outstanding_i;
      locked[w]         = step_q[w] == Locked && row_q[w] == local_rsp_i.line;
      busy_with_next[w] = step_q[w] != Rest && row_q[w] == next_q || unlocks_q[w] && unlocks_row_q[w] == next_q;
    end
    next_rest   = first(rest);
    taken       = first(locked);
  end

  // An offered request stays; the next one is chosen when it is taken.
  assign lock_taken   = local_req_valid_o && local_req_ready_i;
  assign fetch_taken  = ar_valid_o && ar_ready_i;
  assign unlock_taken = unlock_valid_o && unlock_ready_i;
  assign unlocked     = local_rsp_valid_i && local_rsp_i.unlock;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      next_lock   <= '0;
      next_fetch  <= '0;
      next_store  <= '0;
      next_unlock <= '0;
    end else begin
      if (!next_lock.valid || lock_taken)     next_lock   <= first(lock);
      if (!next_fetch.valid || fetch_taken)   next_fetch  <= first(fetch);
      if (!next_store.valid || store_taken)   next_store  <= first(store);
      if (!next_unlock.valid || unlock_taken) next_unlock <= first(unlock);
    end
  end

  always_comb begin
    for (int unsigned w = 0; w < Workers; w++) begin
      step_d[w] = step_q[w];
      takes[w]  = wanted && found && next_rest.worker == WorkerWidth'(w);
      case (step_q[w])
        Rest:    if (takes[w]) step_d[w] = Lock;
        Lock:    if (lock_taken && next_lock.worker == WorkerWidth'(w)) step_d[w] = Locked;
        Locked:  if (local_rsp_valid_i && !local_rsp_i.unlock && taken.worker == WorkerWidth'(w)) step_d[w] = Fetch;
        Fetch:   if (fetch_taken && next_fetch.worker == WorkerWidth'(w)) step_d[w] = Add;
        Add:     if (r_valid_i && r_beat_q == '0 && r_id_i == AxiIdWidth'(w)) step_d[w] = Store;
        Store:   if (store_taken && next_store.worker == WorkerWidth'(w)) step_d[w] = Stored;
        Stored:  if (b_valid_i && b_id_i == AxiIdWidth'(w)) step_d[w] = Unlock;
        default: if (gives[w]) step_d[w] = takes[w] ? Lock : Rest;
      endcase
      lock[w]   = step_d[w] == Lock;
      fetch[w]  = step_d[w] == Fetch;
      store[w]  = step_d[w] == Store;
      unlock[w] = step_d[w] == Unlock && !unlocks_q[w];
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned w = 0; w < Workers; w++) step_q[w] <= rst_ni ? step_d[w] : Rest;
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned w = 0; w < Workers; w++) begin
      if (!rst_ni)                                               unlocks_q[w] <= 1'b0;
      else if (gives[w])                                         unlocks_q[w] <= 1'b1;
      else if (unlocked && unlocks_row_q[w] == local_rsp_i.line) unlocks_q[w] <= 1'b0;
      if (gives[w]) unlocks_row_q[w] <= row_q[w];
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned w = 0; w < Workers; w++) begin
      if (takes[w]) row_q[w] <= next_q;
      if (r_valid_i && r_beat_q == '0 && r_id_i == AxiIdWidth'(w)) word_q[w] <= r_data_i[63:0] + 64'd1;
    end
  end

  // ------------------------------------------------------------------ ports

  assign local_req_valid_o = next_lock.valid;
  assign local_req_o       = '{operation: operation_i, line: row_q[next_lock.worker]};
  assign local_rsp_ready_o = 1'b1;
  assign unlock_valid_o    = next_unlock.valid;
  assign unlock_line_o     = row_q[next_unlock.worker];
  assign ar_valid_o        = next_fetch.valid;
  assign ar_id_o           = AxiIdWidth'(next_fetch.worker);
  assign ar_addr_o         = AxiAddrWidth'(row_q[next_fetch.worker]) << Shift;
  assign r_ready_o         = 1'b1;
  assign b_ready_o         = 1'b1;

  // The address and the data of a write are independent; only the first word of the data is written.
  logic aw_done_q, w_done_q, w_ends;

  assign aw_valid_o  = next_store.valid && !aw_done_q;
  assign aw_id_o     = AxiIdWidth'(next_store.worker);
  assign aw_addr_o   = AxiAddrWidth'(row_q[next_store.worker]) << Shift;
  assign w_valid_o   = next_store.valid && !w_done_q;
  assign w_data_o    = PayloadWidth'(word_q[next_store.worker]);
  assign w_strb_o    = w_beat_q == '0 ? (PayloadWidth / 8)'(8'hff) : '0;
  assign w_last_o    = w_beat_q == BeatWidth'(Beats - 1);
  assign w_ends      = w_valid_o && w_ready_i && w_last_o;
  assign store_taken = next_store.valid && (aw_done_q || aw_ready_i) && (w_done_q || w_ends);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_done_q <= 1'b0;
      w_done_q  <= 1'b0;
      w_beat_q  <= '0;
      r_beat_q  <= '0;
    end else begin
      aw_done_q <= !store_taken && (aw_done_q || aw_valid_o && aw_ready_i);
      w_done_q  <= !store_taken && (w_done_q || w_ends);
      if (w_valid_o && w_ready_i) w_beat_q <= w_last_o ? '0 : w_beat_q + 1'b1;
      if (r_valid_i) r_beat_q <= r_last_i ? '0 : r_beat_q + 1'b1;
    end
  end

  logic unused;
  assign unused = ^{r_data_i[PayloadWidth-1:64], local_rsp_i.operation};

  `ASSERT_STABLE(stable_local, local_req_valid_o, local_req_ready_i, local_req_o)
  `ASSERT_STABLE(stable_unlock, unlock_valid_o, unlock_ready_i, unlock_line_o)
  `ASSERT_STABLE(stable_ar, ar_valid_o, ar_ready_i, {ar_id_o, ar_addr_o})
  `ASSERT_STABLE(stable_aw, aw_valid_o, aw_ready_i, {aw_id_o, aw_addr_o})
  `ASSERT_STABLE(stable_w, w_valid_o, w_ready_i, {w_data_o, w_strb_o, w_last_o})
  `ASSUME_OR(numbers_fit, contended_i <= 10'd1000 && outstanding_i <= CountWidth'(Workers),
    ("shared_table: at most 1000 of a thousand rows, and Workers of them at a time"))
  `ASSUME_OR(answers_what_was_asked, !local_rsp_valid_i || !local_rsp_i.refused && (local_rsp_i.unlock || taken.valid),
    ("shared_table: an answer that nobody waits for"))
endmodule : shared_table
