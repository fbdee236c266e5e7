// A slice's registers behind AXI-Lite: one read and one write at a time. Addresses: hardware/registers.md.

`include "assertions.svh"

module dcs_registers #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter int unsigned         Slice    = 0,
  parameter int unsigned         Units    = 1,
  parameter int unsigned         SetWidth = 7,
  parameter int unsigned         TagWidth = 16,
  parameter int unsigned         Ways     = 16,
  parameter int unsigned         Reads    = 2,
  parameter int unsigned         Waiting  = 2,

  localparam int unsigned AddrWidth  = registers_pkg::AddrWidth,
  localparam int unsigned PlaceWidth = $clog2(registers_pkg::Places)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  aw_valid_i,
  output logic                  aw_ready_o,
  input  logic [AddrWidth-1:0]  aw_addr_i,
  input  logic                  w_valid_i,
  output logic                  w_ready_o,
  input  logic [63:0]           w_data_i,
  input  logic [7:0]            w_strb_i,
  output logic                  b_valid_o,
  input  logic                  b_ready_i,
  output logic [1:0]            b_resp_o,
  input  logic                  ar_valid_i,
  output logic                  ar_ready_o,
  input  logic [AddrWidth-1:0]  ar_addr_i,
  output logic                  r_valid_o,
  input  logic                  r_ready_i,
  output logic [63:0]           r_data_o,
  output logic [1:0]            r_resp_o,

  input  home_pkg::wrong_t      first_wrong_i,
  input  home_pkg::impossible_t first_impossible_i,
  input  logic                  idle_i,
  input  logic                  swept_i,

  // Counters: enable, clear, and the read of one.
  output logic                  count_o,
  output logic                  clear_o,
  output logic                  ask_o,
  output logic [PlaceWidth-1:0] ask_place_o,
  input  logic                  told_valid_i,
  input  logic [63:0]           told_i
);
  import home_pkg::*;
  import registers_pkg::*;

  typedef enum logic [1:0] {
    Okay  = 2'd0,
    Error = 2'd2   // SLVERR
  } resp_e;

  // Counters that the protocol uses.
  function automatic logic [Places-1:0] present();
    present = '0;
    for (int unsigned i = 0; i <= 32'(Protocol.memory_done); i++) present[Events+i] = 1'b1;
    for (int unsigned i = 0; i < MaxSends; i++) begin
      for (int unsigned c = 0; c < 32'(Protocol.tx_circuits); c++) present[Sent+i] |= Protocol.send_circuit[c][i];
    end
    for (int unsigned c = 0; c < 32'(Protocol.rx_circuits); c++) begin
      present[RxWaitsUnit+c] = 1'b1;
      present[RxWaitsSlot+c] = 1'b1;
      present[WrongMessages+c] = 1'b1;
      present[WrongLines+c] = 1'b1;
      present[WrongLengths+c] = 1'b1;
    end
    for (int unsigned c = 0; c < 32'(Protocol.tx_circuits); c++) present[TxWaits+c] = 1'b1;
    for (int unsigned i = ArWaits; i <= Cycles; i++) present[i] = 1'b1;
    for (int unsigned i = WrongOperations; i <= Impossible; i++) present[i] = 1'b1;
    for (int unsigned i = WrongReads; i <= WrongWrites; i++) present[i] = 1'b1;
  endfunction

  localparam logic [Places-1:0] Present = present();

  // ------------------------------------------------------------------ writes

  logic                 aw_held_q, w_held_q, writes, controls;
  logic [AddrWidth-1:0] aw_addr_q;
  logic [1:0]           w_data_q;  // bits that writes use
  logic                 w_strb_q;

  assign aw_ready_o = !aw_held_q;
  assign w_ready_o  = !w_held_q;
  assign writes     = aw_held_q && w_held_q && !b_valid_o;
  assign controls   = aw_addr_q[AddrWidth-1:3] == Control[AddrWidth-1:3];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_held_q <= 1'b0;
      w_held_q  <= 1'b0;
      b_valid_o <= 1'b0;
      count_o   <= 1'b1;
      clear_o   <= 1'b0;
    end else begin
      aw_held_q <= !writes && (aw_held_q || aw_valid_i);
      w_held_q  <= !writes && (w_held_q || w_valid_i);
      b_valid_o <= writes || b_valid_o && !b_ready_i;
      clear_o   <= writes && controls && w_strb_q && w_data_q[1];
      if (writes && controls && w_strb_q) count_o <= w_data_q[0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (aw_ready_o) aw_addr_q <= aw_addr_i;
    if (w_ready_o) {w_data_q, w_strb_q} <= {w_data_i[1:0], w_strb_i[0]};
    if (writes) b_resp_o <= controls ? Okay : Error;
  end

  // ------------------------------------------------------------------ reads

  localparam int unsigned FirstWidth = $clog2(Places) + 3;  // address bits within the counters

  logic                 read_q;  // an address is held and not yet answered
  logic [AddrWidth-1:0] ar_addr_q;
  logic                 counter, known;
  logic [63:0]          value;

  assign ar_ready_o  = !read_q && !r_valid_o;
  assign counter     = ar_addr_q[AddrWidth-1:FirstWidth] == Counters[AddrWidth-1:FirstWidth]
                    && Present[ar_addr_q[FirstWidth-1:3]];
  assign ask_o       = read_q && counter;
  assign ask_place_o = ar_addr_q[FirstWidth-1:3];

  always_comb begin
    known = 1'b1;
    case ({ar_addr_q[AddrWidth-1:3], 3'd0})
      Identity: value = IdentityValue;
      About:    value = {16'd0, Protocol.line_bytes, Protocol.tx_circuits, Protocol.rx_circuits, Protocol.locals, Protocol.messages};
      Shape:    value = {8'(Slice), 8'(Waiting), 8'(Reads), 8'(TagWidth), 8'(SetWidth), 8'(Ways), 16'(Units)};
      Control:  value = {63'd0, count_o};
      Status:   value = {62'd0, swept_i, idle_i};
      FirstWrong:      value = first_wrong_i;
      FirstImpossible: value = first_impossible_i;
      default: begin
        value = '0;
        known = 1'b0;
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      read_q    <= 1'b0;
      r_valid_o <= 1'b0;
    end else begin
      read_q    <= read_q ? counter && !told_valid_i : ar_valid_i && ar_ready_o;
      r_valid_o <= read_q && (!counter || told_valid_i) || r_valid_o && !r_ready_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (ar_ready_o) ar_addr_q <= ar_addr_i;
    if (read_q) begin
      r_data_o <= counter ? told_i : value;
      r_resp_o <= counter || known ? Okay : Error;
    end
  end

  // Unused: the other written bits, and the byte offset within a register.
  logic unused;
  assign unused = ^{w_data_i[63:2], w_strb_i[7:1], aw_addr_q[2:0], ar_addr_q[2:0]};

  `ASSERT_STABLE(stable_b, b_valid_o, b_ready_i, b_resp_o)
  `ASSERT_STABLE(stable_r, r_valid_o, r_ready_i, {r_data_o, r_resp_o})
  `ASSUME_STABLE(stable_aw, aw_valid_i, aw_ready_o, aw_addr_i, ("dcs: the registers' write address was not stable until it was taken"))
  `ASSUME_STABLE(stable_w, w_valid_i, w_ready_o, {w_data_i, w_strb_i}, ("dcs: the registers' write data was not stable until it was taken"))
  `ASSUME_STABLE(stable_ar, ar_valid_i, ar_ready_o, ar_addr_i, ("dcs: the registers' read address was not stable until it was taken"))
endmodule : dcs_registers
