// Queue of the device's local operations in front of the units of a directory controller slice (DCS). An operation that
// its unit cannot accept is deferred here, and later operations may overtake it.
//
// - An operation is offered to its unit at once if the unit is free, unless it takes a lock and all locks of the unit
//   are in use. Only the device frees a lock, and it may need other operations before that.
// - A deferred locking operation is tried once without a free lock, because the unit may refuse it for another reason.
//   The unit returns it if only a lock is missing.
// - Deferred operations are retried round-robin. An operation for a unit with deferred operations is deferred too.
// - Operations on one line keep their order.

`include "assertions.svh"

module dcs_locals #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter int unsigned Units           = 1,
  parameter int unsigned LocalQueueDepth = 8    // maximum deferred operations
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Local operations that the port has accepted and checked.
  input  logic                  wr_valid_i,
  output logic                  wr_ready_o,
  input  home_pkg::local_req_t  wr_req_i,

  // A unit accepts the offered operation if it is ready. Otherwise, the next cycle may offer another operation.
  output logic [Units-1:0]      unit_valid_o,
  input  logic [Units-1:0]      unit_ready_i,
  input  logic [Units-1:0]      unit_locks_full_i,   // all locks of the unit are in use
  input  logic [Units-1:0]      unit_returned_i,     // the unit returns the operation on trial; valid when it is ready again
  output home_pkg::local_req_t  unit_req_o,

  output logic                  idle_o   // no deferred operation
);
  import home_pkg::*;

  localparam int unsigned UnitBits  = $clog2(Units);
  localparam int unsigned UnitWidth = bits(Units);

  local_req_t [LocalQueueDepth-1:0]                      req_q;
  logic       [LocalQueueDepth-1:0]                      used_q, free_entry;     // valid entries; first free entry, one-hot
  logic       [LocalQueueDepth-1:0][LocalQueueDepth-1:0] older_q;                // by entry: older operations on its line
  logic       [LocalQueueDepth-1:0]                      same_unit, same_line;   // entries with the port's unit, or the port's line

  // While operations are deferred, every other cycle retries one of them (`retry_q`); the other cycles serve the port.
  logic                             retry_q, retry_tried_q;
  logic [LocalQueueDepth-1:0]       eligible, picked_entry, retry_entry_q;
  logic [bits(LocalQueueDepth)-1:0] unused_index;
  local_req_t                       picked_req, retry_req_q;
  logic [UnitWidth-1:0]             unit;
  logic                             offer, defer, accepted, has_free_entry, lacks_lock;

  // An operation on trial keeps its entry until the unit accepts or returns it.
  logic                       trial_q, trial_end;
  logic [LocalQueueDepth-1:0] trial_entry_q, tried_q, remove_entry;
  logic [UnitWidth-1:0]       trial_unit_q;

  for (genvar i = 0; i < LocalQueueDepth; i++) begin : gen_entry
    assign same_line[i] = used_q[i] && req_q[i].line == wr_req_i.line;
    assign same_unit[i] = used_q[i] && (UnitBits == 0 || UnitWidth'(req_q[i].line >> 1) == UnitWidth'(wr_req_i.line >> 1));
    assign eligible[i]  = used_q[i] && older_q[i] == '0 && !(trial_q && trial_entry_q[i]);
    if (i == 0) begin : gen_first
      assign free_entry[i] = !used_q[i];
    end else begin : gen_other
      assign free_entry[i] = !used_q[i] && used_q[i-1:0] == '1;
    end
  end

  rr_pick #(
    .Size(LocalQueueDepth)
  ) u_pick (
    .clk_i,
    .rst_ni,
    .req_i   (eligible),
    .accept_i(!retry_q),
    .pick_o  (picked_entry),
    .index_o (unused_index)
  );

  always_comb begin
    picked_req = '0;
    for (int unsigned i = 0; i < LocalQueueDepth; i++) begin
      if (picked_entry[i]) picked_req |= req_q[i];
    end
  end

  assign unit_req_o     = retry_q ? retry_req_q : wr_req_i;
  assign unit           = UnitBits == 0 ? '0 : UnitWidth'(unit_req_o.line >> 1);
  assign lacks_lock     = unit_locks_full_i[unit] && Protocol.locking[unit_req_o.operation];
  assign offer          = retry_q ? !lacks_lock || !retry_tried_q && !trial_q : wr_valid_i && same_unit == '0 && !lacks_lock;
  assign accepted       = offer && unit_ready_i[unit];
  assign has_free_entry = used_q != '1;
  assign defer          = !retry_q && wr_valid_i && !accepted && has_free_entry;
  assign wr_ready_o     = !retry_q && (accepted || has_free_entry);
  assign idle_o         = used_q == '0;
  assign trial_end      = trial_q && unit_ready_i[trial_unit_q];
  assign remove_entry   = (retry_q && accepted && !lacks_lock ? retry_entry_q : '0)
                    | (trial_end && !unit_returned_i[trial_unit_q] ? trial_entry_q : '0);

  always_comb begin
    unit_valid_o       = '0;
    unit_valid_o[unit] = offer;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      retry_q <= 1'b0;
      trial_q <= 1'b0;
      used_q  <= '0;
    end else begin
      retry_q <= !retry_q && eligible != '0;
      trial_q <= trial_q ? !trial_end : retry_q && accepted && lacks_lock;
      used_q  <= used_q & ~remove_entry | (defer ? free_entry : '0);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!retry_q) begin
      retry_entry_q <= picked_entry;
      retry_req_q   <= picked_req;
      retry_tried_q <= (picked_entry & tried_q) != '0;
    end
    if (!trial_q) begin
      trial_entry_q <= retry_entry_q;
      trial_unit_q  <= unit;
    end
    if (trial_end) tried_q <= tried_q | trial_entry_q;
    for (int unsigned i = 0; i < LocalQueueDepth; i++) begin
      if (defer && free_entry[i]) begin
        req_q[i]   <= wr_req_i;
        older_q[i] <= same_line & ~remove_entry;
        tried_q[i] <= 1'b0;
      end else begin
        older_q[i] <= older_q[i] & ~remove_entry;
      end
    end
  end
endmodule : dcs_locals
