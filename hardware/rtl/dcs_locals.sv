// The device's local operations on their way to the units of a slice. Deferred here if the unit cannot take them;
// later operations may overtake them.
//
// An operation goes to its unit at once if the unit is free, unless it takes a lock and the unit has all its locks in use.
// Only the device frees a lock, and it may need other operations before it does. The unit may still refuse the operation,
// so a deferred lock is tried once, and the unit returns it if only a lock is missing. Deferred operations are offered
// again in turn; operations that come for a unit with deferred ones are deferred too. Operations on one line keep their
// order.

`include "assertions.svh"

module dcs_locals #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter int unsigned Units   = 1,
  parameter int unsigned Pending = 8    // maximum deferred operations
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  wr_valid_i,
  output logic                  wr_ready_o,
  input  home_pkg::local_req_t  wr_req_i,

  // A unit takes the offered operation if it is ready; if not, the next cycle may offer another one.
  output logic [Units-1:0]      unit_valid_o,
  input  logic [Units-1:0]      unit_ready_i,
  input  logic [Units-1:0]      unit_locks_full_i,   // the unit has all its locks in use
  input  logic [Units-1:0]      unit_back_i,         // the unit returns its operation, in the cycle in which it is ready again
  output home_pkg::local_req_t  unit_req_o,

  output logic                  idle_o   // nothing is deferred
);
  import home_pkg::*;

  localparam int unsigned UnitBits  = $clog2(Units);
  localparam int unsigned UnitWidth = bits(Units);

  local_req_t [Pending-1:0]              req_q;
  logic       [Pending-1:0]              used_q, room;   // and the first free entry, one-hot
  logic       [Pending-1:0][Pending-1:0] before_q;       // earlier operations on the same line
  logic       [Pending-1:0]              rivals, same;   // deferred, of the same unit; on the same line as the incoming one

  // While operations are deferred, every other cycle offers one of them (`again_q`); the other cycles are the port's.
  logic                 again_q, again_tried_q;
  logic [Pending-1:0]   ask, pick, again_place_q;
  logic [bits(Pending)-1:0] unused_index;
  local_req_t           picked, again_req_q;
  logic [UnitWidth-1:0] unit;
  logic                 goes, aside, gone, has_room, lacks_lock;

  // An operation on trial keeps its entry until the unit has decided.
  logic                 trial_q, trial_ends;
  logic [Pending-1:0]   trial_place_q, tried_q, leaves;
  logic [UnitWidth-1:0] trial_unit_q;

  for (genvar i = 0; i < Pending; i++) begin : gen_place
    assign same[i]   = used_q[i] && req_q[i].line == wr_req_i.line;
    assign rivals[i] = used_q[i] && (UnitBits == 0 || UnitWidth'(req_q[i].line >> 1) == UnitWidth'(wr_req_i.line >> 1));
    assign ask[i]    = used_q[i] && before_q[i] == '0 && !(trial_q && trial_place_q[i]);
    if (i == 0) begin : gen_first
      assign room[i] = !used_q[i];
    end else begin : gen_other
      assign room[i] = !used_q[i] && used_q[i-1:0] == '1;
    end
  end

  rr_pick #(
    .Size(Pending)
  ) u_pick (
    .clk_i,
    .rst_ni,
    .ask_i  (ask),
    .taken_i(!again_q),
    .pick_o (pick),
    .index_o(unused_index)
  );

  always_comb begin
    picked = '0;
    for (int unsigned i = 0; i < Pending; i++) begin
      if (pick[i]) picked |= req_q[i];
    end
  end

  assign unit_req_o = again_q ? again_req_q : wr_req_i;
  assign unit       = UnitBits == 0 ? '0 : UnitWidth'(unit_req_o.line >> 1);
  assign lacks_lock = unit_locks_full_i[unit] && Protocol.locking[unit_req_o.operation];
  assign goes       = again_q ? !lacks_lock || !again_tried_q && !trial_q : wr_valid_i && rivals == '0 && !lacks_lock;
  assign gone       = goes && unit_ready_i[unit];
  assign has_room   = used_q != '1;
  assign aside      = !again_q && wr_valid_i && !gone && has_room;
  assign wr_ready_o = !again_q && (gone || has_room);
  assign idle_o     = used_q == '0;
  assign trial_ends = trial_q && unit_ready_i[trial_unit_q];
  assign leaves     = (again_q && gone && !lacks_lock ? again_place_q : '0)
                    | (trial_ends && !unit_back_i[trial_unit_q] ? trial_place_q : '0);

  always_comb begin
    unit_valid_o       = '0;
    unit_valid_o[unit] = goes;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      again_q <= 1'b0;
      trial_q <= 1'b0;
      used_q  <= '0;
    end else begin
      again_q <= !again_q && ask != '0;
      trial_q <= trial_q ? !trial_ends : again_q && gone && lacks_lock;
      used_q  <= used_q & ~leaves | (aside ? room : '0);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!again_q) begin
      again_place_q <= pick;
      again_req_q   <= picked;
      again_tried_q <= (pick & tried_q) != '0;
    end
    if (!trial_q) begin
      trial_place_q <= again_place_q;
      trial_unit_q  <= unit;
    end
    if (trial_ends) tried_q <= tried_q | trial_place_q;
    for (int unsigned i = 0; i < Pending; i++) begin
      if (aside && room[i]) begin
        req_q[i]    <= wr_req_i;
        before_q[i] <= same & ~leaves;
        tried_q[i]  <= 1'b0;
      end else begin
        before_q[i] <= before_q[i] & ~leaves;
      end
    end
  end
endmodule : dcs_locals
