// Wrappers of the RTL's modules with plain ports, for the block tests. Ports and parameters are those of the wrapped
// module.

module fifo_block #(
  parameter int unsigned Depth         = 4,
  parameter bit          RegisterValid = 1'b1
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        wr_valid_i,
  output logic        wr_ready_o,
  input  logic [15:0] wr_data_i,
  output logic        rd_valid_o,
  input  logic        rd_ready_i,
  output logic [15:0] rd_data_o
);
  fifo #(
    .Depth        (Depth),
    .RegisterValid(RegisterValid),
    .data_t       (logic [15:0])
  ) u_fifo (.*);
endmodule : fifo_block

module spill_register_block (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        wr_valid_i,
  output logic        wr_ready_o,
  input  logic [15:0] wr_data_i,
  output logic        rd_valid_o,
  input  logic        rd_ready_i,
  output logic [15:0] rd_data_o
);
  spill_register #(
    .data_t(logic [15:0])
  ) u_spill_register (.*);
endmodule : spill_register_block

module stream_arbiter_block #(
  parameter int unsigned Size = 12
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,
  input  logic [Size-1:0]                 wr_valid_i,
  output logic [Size-1:0]                 wr_ready_o,
  input  logic [Size-1:0][15:0]           wr_data_i,
  output logic                            rd_valid_o,
  input  logic                            rd_ready_i,
  output logic [15:0]                     rd_data_o,
  output logic [home_pkg::bits(Size)-1:0] rd_index_o
);
  stream_arbiter #(
    .Size  (Size),
    .data_t(logic [15:0])
  ) u_arbiter (.*);
endmodule : stream_arbiter_block

// Protocol parameters for the reader and the writer: lines of two beats, two circuits with payload, and one request per
// permission.
package block_pkg;
  localparam int unsigned PayloadWidth = 128;
  localparam int unsigned Units        = 4;
  localparam int unsigned LineWidth    = 8;
  localparam int unsigned Slice        = 1;

  localparam home_pkg::protocol_t Protocol = '{
    line_bytes:  16'd32,
    rx_circuits: 8'd2,
    reads:       64'b0110,
    writes:      64'b0100,
    default:     '0
  };
endpackage : block_pkg

module dcs_reader_block (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic [3:0]      unit_valid_i,
  output logic [3:0]      unit_ready_o,
  input  logic [3:0][7:0] unit_line_i,
  input  logic [3:0]      unit_slot_i,
  input  logic [3:0][5:0] unit_event_i,
  output logic [3:0][1:0] unit_done_o,
  output logic [3:0][1:0] unit_lost_o,
  input  logic            rd_en_i,
  input  logic [1:0]      rd_unit_i,
  input  logic            rd_slot_i,
  input  logic            rd_beat_i,
  output logic [127:0]    rd_data_o,
  output logic            ar_valid_o,
  input  logic            ar_ready_i,
  output logic [7:0]      ar_id_o,
  output logic [35:0]     ar_addr_o,
  output logic [7:0]      ar_user_o,
  input  logic            r_valid_i,
  output logic            r_ready_o,
  input  logic [7:0]      r_id_i,
  input  logic [127:0]    r_data_i,
  input  logic            r_last_i,
  output logic            done_o,
  output logic [3:0]      reject_o,
  output logic [7:0]      reject_id_o
);
  home_pkg::reject_e reject;
  assign reject_o = reject;

  dcs_reader #(
    .Protocol    (block_pkg::Protocol),
    .event_e     (logic [5:0]),
    .Units       (block_pkg::Units),
    .Slice       (block_pkg::Slice),
    .Reads       (2),
    .LineWidth   (block_pkg::LineWidth),
    .PayloadWidth(block_pkg::PayloadWidth)
  ) u_reader (
    .reject_o(reject),
    .*
  );
endmodule : dcs_reader_block

// The payload buffers are a memory that the test writes through `load_*`.
module dcs_writer_block (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            load_i,
  input  logic [5:0]      load_addr_i,  // circuit, unit, slot, beat
  input  logic [127:0]    load_data_i,
  input  logic [7:0]      load_mask_i,
  input  logic [3:0]      unit_valid_i,
  output logic [3:0]      unit_ready_o,
  input  logic [3:0][7:0] unit_line_i,
  input  logic [3:0]      unit_slot_i,
  input  logic [3:0][5:0] unit_event_i,
  input  logic [3:0][1:0] unit_permission_i,
  input  logic [3:0][1:0] unit_circuit_i,
  input  logic [3:0][1:0] unit_payload_slot_i,
  output logic [3:0][1:0] unit_done_o,
  output logic [1:0]      free_valid_o,
  output logic [1:0]      free_unit_o,
  output logic [1:0]      free_slot_o,
  output logic            aw_valid_o,
  input  logic            aw_ready_i,
  output logic [7:0]      aw_id_o,
  output logic [35:0]     aw_addr_o,
  output logic [7:0]      aw_user_o,
  output logic            w_valid_o,
  input  logic            w_ready_i,
  output logic [127:0]    w_data_o,
  output logic [15:0]     w_strb_o,
  output logic            w_last_o,
  input  logic            b_valid_i,
  output logic            b_ready_o,
  input  logic [7:0]      b_id_i,
  output logic            done_o,
  output logic [3:0]      reject_o,
  output logic [7:0]      reject_id_o
);
  home_pkg::reject_e reject;
  assign reject_o = reject;

  logic [1:0]        rd_unit, rd_slot;
  logic              rd_beat;
  logic [1:0][127:0] rd_data;
  logic [1:0][7:0]   rd_mask;
  logic [135:0]      words_q [64];

  always_ff @(posedge clk_i) if (load_i) words_q[load_addr_i] <= {load_mask_i, load_data_i};

  for (genvar c = 0; c < 2; c++) begin : gen_circuit
    assign {rd_mask[c], rd_data[c]} = words_q[{1'(c), rd_unit, rd_slot, rd_beat}];
  end

  home_pkg::permission_e [3:0] permission;
  for (genvar u = 0; u < 4; u++) begin : gen_permission
    assign permission[u] = home_pkg::permission_e'(unit_permission_i[u]);
  end

  dcs_writer #(
    .Protocol    (block_pkg::Protocol),
    .event_e     (logic [5:0]),
    .Units       (block_pkg::Units),
    .Slice       (block_pkg::Slice),
    .Writes      (2),
    .SlotWidth   (2),
    .LineWidth   (block_pkg::LineWidth),
    .PayloadWidth(block_pkg::PayloadWidth)
  ) u_writer (
    .reject_o         (reject),
    .unit_permission_i(permission),
    .rd_unit_o        (rd_unit),
    .rd_slot_o        (rd_slot),
    .rd_beat_o        (rd_beat),
    .rd_data_i        (rd_data),
    .rd_mask_i        (rd_mask),
    .*
  );
endmodule : dcs_writer_block
