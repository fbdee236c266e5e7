// Permission changes of a directory controller slice (DCS): merges the changes of all units round-robin into a queue
// for an optional observer.
//
// Units never stall on this path: a change that occurs while the unit's previous change is pending is lost and counted.

`include "assertions.svh"

module dcs_changes #(
  // Parameters of dcs.sv. Depth: elements of the queue; LineWidth: width of a line index within a unit.
  parameter int unsigned Units     = 1,
  parameter int unsigned Slice     = 0,
  parameter int unsigned Depth     = 16,
  parameter int unsigned LineWidth = 23,

  localparam int unsigned UnitWidth = home_pkg::bits(Units)
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  // Changes of the units; a change waits until it is accepted.
  input  logic [Units-1:0]                    unit_valid_i,
  output logic [Units-1:0]                    unit_ready_o,
  input  home_pkg::permission_e [Units-1:0]   unit_from_i,
  input  home_pkg::permission_e [Units-1:0]   unit_to_i,
  input  logic [Units-1:0][LineWidth-1:0]     unit_line_i,

  // Changes for the observer.
  output logic                                change_valid_o,
  input  logic                                change_ready_i,
  output home_pkg::change_t                   change_o
);
  import home_pkg::*;

  typedef struct packed {
    permission_e          from;
    permission_e          to;
    logic [LineWidth-1:0] line;
  } unit_change_t;

  typedef struct packed {
    unit_change_t         unit_change;
    logic [UnitWidth-1:0] unit;
  } queued_t;

  unit_change_t [Units-1:0] unit_changes;
  unit_change_t             unit_change;
  queued_t                  queued;
  logic                     valid, ready;
  logic [UnitWidth-1:0]     unit;

  for (genvar u = 0; u < Units; u++) begin : gen_unit_change
    assign unit_changes[u] = '{unit_from_i[u], unit_to_i[u], unit_line_i[u]};
  end

  stream_arbiter #(
    .Size  (Units),
    .data_t(unit_change_t)
  ) u_arbiter (
    .clk_i,
    .rst_ni,
    .wr_valid_i(unit_valid_i),
    .wr_ready_o(unit_ready_o),
    .wr_data_i (unit_changes),
    .rd_valid_o(valid),
    .rd_ready_i(ready),
    .rd_data_o (unit_change),
    .rd_index_o(unit)
  );

  fifo #(
    .Depth (Depth),
    .data_t(queued_t)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .wr_valid_i(valid),
    .wr_ready_o(ready),
    .wr_data_i ('{unit_change, unit}),
    .rd_valid_o(change_valid_o),
    .rd_ready_i(change_ready_i),
    .rd_data_o (queued)
  );

  assign change_o = '{
    from: queued.unit_change.from,
    to:   queued.unit_change.to,
    line: line_number(home_pkg::LineWidth'(queued.unit_change.line), home_pkg::LineWidth'(queued.unit), Units, Slice)
  };

  `ASSERT_STABLE(stable_change, change_valid_o, change_ready_i, change_o)
  `ASSERT(permission_differs, !change_valid_o || change_o.from != change_o.to)
endmodule : dcs_changes
