// Increment engine of the device for a table in coherent memory, for one slice. CPU and device increment the rows of
// the table; each row is one line.
//
// The engine repeatedly increments a configured share of the rows, in order. For each row it locks and recalls the line
// from the remote, reads the first word from memory, writes back the incremented word, and unlocks the line. Row
// numbers are line numbers, so a slice has every second row. The engine has its own port to the memory of the home.

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
  output logic                      busy_o,         // searching for the next row
  input  logic [2:0]                operation_i,    // local operation that recalls and locks a line
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

  // Local operations and unlocks at the home.
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
  localparam int unsigned LineShift   = $clog2(Beats * PayloadWidth / 8);

  typedef enum logic [2:0] {
    Idle,        // no row in progress
    SendLock,    // send the lock request
    AwaitLock,   // wait for the lock
    SendRead,    // send the read of the word
    AwaitRead,   // wait for the word, and increment it
    SendWrite,   // send the write
    AwaitWrite,  // wait for the write response
    SendUnlock   // send the unlock
  } step_e;

  // Selected worker, if any.
  typedef struct packed {
    logic                   valid;
    logic [WorkerWidth-1:0] worker;
  } worker_sel_t;

  step_e                step_q [Workers], step_d [Workers];
  logic [LineWidth-1:0] row_q  [Workers];
  logic [63:0]          word_q [Workers];
  // Previous row of each worker, until the home acknowledges its unlock. The row must not be locked again before that.
  logic [Workers-1:0]   unlock_pending_q;
  logic [LineWidth-1:0] unlock_row_q [Workers];

  function automatic worker_sel_t first_worker(input logic [Workers-1:0] candidates);
    first_worker = '0;
    for (int unsigned w = 0; w < Workers; w++) begin
      if (candidates[w] && !first_worker.valid) first_worker = '{valid: 1'b1, worker: WorkerWidth'(w)};
    end
  endfunction

  logic [Workers-1:0]   idle, unlock_sent, claim_row, lock_granted, busy_with_next;
  logic [Workers-1:0]   wants_lock, wants_read, wants_write, wants_unlock;
  worker_sel_t          next_idle, next_lock, next_read, next_write, next_unlock, granted;
  logic [BeatWidth-1:0] r_beat_q, w_beat_q;
  logic                 lock_fire, read_fire, write_fire, unlock_fire, unlock_acked;

  // ------------------------------------------------------------------ the next row

  // `share_q` is the row number times `contended_i`, modulo 1000. A row is incremented if adding `contended_i` reaches
  // 1000.
  logic                 started_q, advance, has_rows, row_wanted, row_found;
  logic [LineWidth-1:0] next_q;
  logic [31:0]          increments_left_q;
  logic [10:0]          share_q, first_share, next_share, share_after_next;

  function automatic logic [10:0] thousandths(input logic [10:0] share);
    return share >= 11'd1000 ? share - 11'd1000 : share;
  endfunction

  assign first_share      = Slice == 0 ? '0 : thousandths({1'b0, contended_i});
  assign next_share       = share_q + {1'b0, contended_i};
  assign share_after_next = thousandths(next_share) + {1'b0, contended_i};
  assign has_rows         = rows_i > LineWidth'(Slice);
  assign row_wanted       = started_q && !stop_i && has_rows && contended_i != '0 && increments_left_q != '0 && next_idle.valid;
  assign row_found        = next_share >= 11'd1000 && busy_with_next == '0;
  assign busy_o           = row_wanted || start_i && !started_q;
  assign advance          = row_wanted || !row_found && started_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      started_q <= 1'b0;
    end else begin
      started_q <= started_q || start_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      next_q            <= LineWidth'(Slice);
      share_q           <= first_share;
      increments_left_q <= increments_i;
    end else begin
      if (advance) begin
        next_q  <= next_q + LineWidth'(2) < rows_i ? next_q + LineWidth'(2) : LineWidth'(Slice);
        share_q <= next_q + LineWidth'(2) < rows_i ? thousandths(share_after_next) : first_share;
      end
      if (row_wanted && row_found && increments_left_q != '1) increments_left_q <= increments_left_q - 1'b1;
    end
  end

  // ------------------------------------------------------------------ workers

  always_comb begin
    for (int unsigned w = 0; w < Workers; w++) begin
      // A worker may claim its next row in the cycle in which it sends the unlock of the previous one.
      unlock_sent[w]    = unlock_fire && next_unlock.worker == WorkerWidth'(w);
      idle[w]           = (step_q[w] == Idle || unlock_sent[w]) && CountWidth'(w) < outstanding_i;
      lock_granted[w]   = step_q[w] == AwaitLock && row_q[w] == local_rsp_i.line;
      busy_with_next[w] = step_q[w] != Idle && row_q[w] == next_q || unlock_pending_q[w] && unlock_row_q[w] == next_q;
    end
    next_idle = first_worker(idle);
    granted   = first_worker(lock_granted);
  end

  // An offered request is stable; the next one is selected at the transfer.
  assign lock_fire    = local_req_valid_o && local_req_ready_i;
  assign read_fire    = ar_valid_o && ar_ready_i;
  assign unlock_fire  = unlock_valid_o && unlock_ready_i;
  assign unlock_acked = local_rsp_valid_i && local_rsp_i.unlock;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      next_lock   <= '0;
      next_read   <= '0;
      next_write  <= '0;
      next_unlock <= '0;
    end else begin
      if (!next_lock.valid || lock_fire)     next_lock   <= first_worker(wants_lock);
      if (!next_read.valid || read_fire)     next_read   <= first_worker(wants_read);
      if (!next_write.valid || write_fire)   next_write  <= first_worker(wants_write);
      if (!next_unlock.valid || unlock_fire) next_unlock <= first_worker(wants_unlock);
    end
  end

  always_comb begin
    for (int unsigned w = 0; w < Workers; w++) begin
      step_d[w]    = step_q[w];
      claim_row[w] = row_wanted && row_found && next_idle.worker == WorkerWidth'(w);
      case (step_q[w])
        Idle:       if (claim_row[w]) step_d[w] = SendLock;
        SendLock:   if (lock_fire && next_lock.worker == WorkerWidth'(w)) step_d[w] = AwaitLock;
        AwaitLock:  if (local_rsp_valid_i && !local_rsp_i.unlock && granted.worker == WorkerWidth'(w)) step_d[w] = SendRead;
        SendRead:   if (read_fire && next_read.worker == WorkerWidth'(w)) step_d[w] = AwaitRead;
        AwaitRead:  if (r_valid_i && r_beat_q == '0 && r_id_i == AxiIdWidth'(w)) step_d[w] = SendWrite;
        SendWrite:  if (write_fire && next_write.worker == WorkerWidth'(w)) step_d[w] = AwaitWrite;
        AwaitWrite: if (b_valid_i && b_id_i == AxiIdWidth'(w)) step_d[w] = SendUnlock;
        default:    if (unlock_sent[w]) step_d[w] = claim_row[w] ? SendLock : Idle;
      endcase
      wants_lock[w]   = step_d[w] == SendLock;
      wants_read[w]   = step_d[w] == SendRead;
      wants_write[w]  = step_d[w] == SendWrite;
      wants_unlock[w] = step_d[w] == SendUnlock && !unlock_pending_q[w];
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned w = 0; w < Workers; w++) step_q[w] <= rst_ni ? step_d[w] : Idle;
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned w = 0; w < Workers; w++) begin
      if (!rst_ni)                                                  unlock_pending_q[w] <= 1'b0;
      else if (unlock_sent[w])                                      unlock_pending_q[w] <= 1'b1;
      else if (unlock_acked && unlock_row_q[w] == local_rsp_i.line) unlock_pending_q[w] <= 1'b0;
      if (unlock_sent[w]) unlock_row_q[w] <= row_q[w];
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned w = 0; w < Workers; w++) begin
      if (claim_row[w]) row_q[w] <= next_q;
      if (r_valid_i && r_beat_q == '0 && r_id_i == AxiIdWidth'(w)) word_q[w] <= r_data_i[63:0] + 64'd1;
    end
  end

  // ------------------------------------------------------------------ ports

  assign local_req_valid_o = next_lock.valid;
  assign local_req_o       = '{operation: operation_i, line: row_q[next_lock.worker]};
  assign local_rsp_ready_o = 1'b1;
  assign unlock_valid_o    = next_unlock.valid;
  assign unlock_line_o     = row_q[next_unlock.worker];
  assign ar_valid_o        = next_read.valid;
  assign ar_id_o           = AxiIdWidth'(next_read.worker);
  assign ar_addr_o         = AxiAddrWidth'(row_q[next_read.worker]) << LineShift;
  assign r_ready_o         = 1'b1;
  assign b_ready_o         = 1'b1;

  // Address and data of a write proceed independently; only the first word of the line is written.
  logic aw_done_q, w_done_q, w_done;

  assign aw_valid_o = next_write.valid && !aw_done_q;
  assign aw_id_o    = AxiIdWidth'(next_write.worker);
  assign aw_addr_o  = AxiAddrWidth'(row_q[next_write.worker]) << LineShift;
  assign w_valid_o  = next_write.valid && !w_done_q;
  assign w_data_o   = PayloadWidth'(word_q[next_write.worker]);
  assign w_strb_o   = w_beat_q == '0 ? (PayloadWidth / 8)'(8'hff) : '0;
  assign w_last_o   = w_beat_q == BeatWidth'(Beats - 1);
  assign w_done     = w_valid_o && w_ready_i && w_last_o;
  assign write_fire = next_write.valid && (aw_done_q || aw_ready_i) && (w_done_q || w_done);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_done_q <= 1'b0;
      w_done_q  <= 1'b0;
      w_beat_q  <= '0;
      r_beat_q  <= '0;
    end else begin
      aw_done_q <= !write_fire && (aw_done_q || aw_valid_o && aw_ready_i);
      w_done_q  <= !write_fire && (w_done_q || w_done);
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
  `ASSUME_OR(parameters_legal, contended_i <= 10'd1000 && outstanding_i <= CountWidth'(Workers),
    ("shared_table: at most 1000 of a thousand rows, and Workers of them at a time"))
  `ASSUME_OR(completion_expected, !local_rsp_valid_i || !local_rsp_i.refused && (local_rsp_i.unlock || granted.valid),
    ("shared_table: an unexpected response"))
endmodule : shared_table
