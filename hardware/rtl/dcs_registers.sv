// Registers of a directory controller slice (DCS) behind AXI-Lite: one read and one write at a time.
// hardware/registers.md lists the addresses.

`include "assertions.svh"

module dcs_registers #(
  // Parameters of dcs.sv, which software can read.
  parameter home_pkg::protocol_t Protocol    = '0,
  parameter int unsigned         Slice       = 0,
  parameter int unsigned         Units       = 1,
  parameter int unsigned         SetWidth    = 7,
  parameter int unsigned         TagWidth    = 16,
  parameter int unsigned         Ways        = 16,
  parameter int unsigned         Reads       = 2,
  parameter int unsigned         MaxDeferred = 2,

  localparam int unsigned AddrWidth  = registers_pkg::AddrWidth,
  localparam int unsigned IndexWidth = $clog2(registers_pkg::Places)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // AXI-Lite subordinate.
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

  // Values of the registers FirstWrong, FirstImpossible and Status.
  input  home_pkg::reject_t     first_reject_i,
  input  home_pkg::unexpected_t first_unexpected_i,
  input  logic                  idle_i,
  input  logic                  init_done_i,

  // Counters: enable, clear, and read port.
  output logic                  count_enable_o,
  output logic                  clear_o,
  output logic                  rd_req_o,
  output logic [IndexWidth-1:0] rd_index_o,
  input  logic                  rd_valid_i,
  input  logic [63:0]           rd_data_i
);
  import home_pkg::*;
  import registers_pkg::*;

  typedef enum logic [1:0] {
    Okay  = 2'd0,
    Error = 2'd2   // SLVERR
  } resp_e;

  // Returns the set of counters that the protocol uses.
  function automatic logic [Places-1:0] used_counters();
    used_counters = '0;
    for (int unsigned i = 0; i <= 32'(Protocol.memory_done); i++) used_counters[Events+i] = 1'b1;
    for (int unsigned i = 0; i < MaxSends; i++) begin
      for (int unsigned c = 0; c < 32'(Protocol.tx_circuits); c++) used_counters[Sent+i] |= Protocol.send_circuit[c][i];
    end
    for (int unsigned c = 0; c < 32'(Protocol.rx_circuits); c++) begin
      used_counters[RxWaitsUnit+c]   = 1'b1;
      used_counters[RxWaitsSlot+c]   = 1'b1;
      used_counters[WrongMessages+c] = 1'b1;
      used_counters[WrongLines+c]    = 1'b1;
      used_counters[WrongLengths+c]  = 1'b1;
    end
    for (int unsigned c = 0; c < 32'(Protocol.tx_circuits); c++) used_counters[TxWaits+c] = 1'b1;
    for (int unsigned i = ArWaits; i <= Cycles; i++) used_counters[i] = 1'b1;
    for (int unsigned i = WrongOperations; i <= Impossible; i++) used_counters[i] = 1'b1;
    for (int unsigned i = WrongReads; i <= WrongWrites; i++) used_counters[i] = 1'b1;
  endfunction

  localparam logic [Places-1:0] UsedCounters = used_counters();

  // ------------------------------------------------------------------ writes

  logic                 aw_held_q, w_held_q, write_fire, is_control;
  logic [AddrWidth-1:0] aw_addr_q;
  logic [1:0]           w_data_q;  // the two writable bits
  logic                 w_strb_q;

  assign aw_ready_o = !aw_held_q;
  assign w_ready_o  = !w_held_q;
  assign write_fire = aw_held_q && w_held_q && !b_valid_o;
  assign is_control = aw_addr_q[AddrWidth-1:3] == Control[AddrWidth-1:3];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      aw_held_q      <= 1'b0;
      w_held_q       <= 1'b0;
      b_valid_o      <= 1'b0;
      count_enable_o <= 1'b1;
      clear_o        <= 1'b0;
    end else begin
      aw_held_q <= !write_fire && (aw_held_q || aw_valid_i);
      w_held_q  <= !write_fire && (w_held_q || w_valid_i);
      b_valid_o <= write_fire || b_valid_o && !b_ready_i;
      clear_o   <= write_fire && is_control && w_strb_q && w_data_q[1];
      if (write_fire && is_control && w_strb_q) count_enable_o <= w_data_q[0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (aw_ready_o) aw_addr_q <= aw_addr_i;
    if (w_ready_o) {w_data_q, w_strb_q} <= {w_data_i[1:0], w_strb_i[0]};
    if (write_fire) b_resp_o <= is_control ? Okay : Error;
  end

  // ------------------------------------------------------------------ reads

  localparam int unsigned FirstWidth = $clog2(Places) + 3;  // address bits within the counters

  logic                 read_pending_q;  // a read address awaits its response
  logic [AddrWidth-1:0] ar_addr_q;
  logic                 is_counter, is_register;
  logic [63:0]          value;

  assign ar_ready_o = !read_pending_q && !r_valid_o;
  assign is_counter = ar_addr_q[AddrWidth-1:FirstWidth] == Counters[AddrWidth-1:FirstWidth]
                    && UsedCounters[ar_addr_q[FirstWidth-1:3]];
  assign rd_req_o   = read_pending_q && is_counter;
  assign rd_index_o = ar_addr_q[FirstWidth-1:3];

  always_comb begin
    is_register = 1'b1;
    case ({ar_addr_q[AddrWidth-1:3], 3'd0})
      Identity:        value = IdentityValue;
      About:           value = {16'd0, Protocol.line_bytes, Protocol.tx_circuits, Protocol.rx_circuits, Protocol.locals, Protocol.messages};
      Shape:           value = {8'(Slice), 8'(MaxDeferred), 8'(Reads), 8'(TagWidth), 8'(SetWidth), 8'(Ways), 16'(Units)};
      Control:         value = {63'd0, count_enable_o};
      Status:          value = {62'd0, init_done_i, idle_i};
      FirstWrong:      value = first_reject_i;
      FirstImpossible: value = first_unexpected_i;
      default:         begin
        value       = '0;
        is_register = 1'b0;
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      read_pending_q <= 1'b0;
      r_valid_o      <= 1'b0;
    end else begin
      read_pending_q <= read_pending_q ? is_counter && !rd_valid_i : ar_valid_i && ar_ready_o;
      r_valid_o      <= read_pending_q && (!is_counter || rd_valid_i) || r_valid_o && !r_ready_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (ar_ready_o) ar_addr_q <= ar_addr_i;
    if (read_pending_q) begin
      r_data_o <= is_counter ? rd_data_i : value;
      r_resp_o <= is_counter || is_register ? Okay : Error;
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
