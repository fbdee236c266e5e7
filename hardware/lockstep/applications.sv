// Applications behind a slice. The simulation argument `+application=` selects one: 1 RPC, 2 the shared table, 3 the
// prefetcher. Further arguments are their parameters. With `+seed=`, all streams between home and application stall at
// random.

module applications #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter int unsigned Slice        = 0,
  parameter int unsigned AxiAddrWidth = 36
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,

  input  logic                          start_i,   // start
  input  logic                          stop_i,    // start no further operation
  output logic                          busy_o,    // may be active without input

  input  device_side_pkg::from_home_t   home_i,
  output device_side_pkg::to_home_t     home_o,

  // Memory port of the home, for applications that do not serve the home's memory accesses.
  input  device_side_pkg::axi_subordinate_t   pins_i,
  output logic                          pins_b_ready_o,
  output logic                          pins_r_ready_o,

  // Memory port of the application.
  input  device_side_pkg::axi_subordinate_t   memory_i,
  output device_side_pkg::axi_manager_t  memory_o
);
  localparam int unsigned Beats   = 32'(Protocol.line_bytes) / 64;
  localparam int unsigned Payload = 8;   // maximum lines per side of a call

  // Plusargs: the selected application, the seed of the stalls (0 for none), and the parameters of rpc_echo (payload),
  // shared_table (operation to increments) and prefetcher (lines, blocks).
  logic [1:0]  application;
  logic [15:0] seed;
  logic [3:0]  payload;
  logic [2:0]  operation, outstanding;
  logic [9:0]  contended;
  logic [31:0] rows, increments, lines;
  logic [3:0]  blocks;

  initial begin
    if ($value$plusargs("application=%d", application) == 0) application = '0;
    if ($value$plusargs("seed=%d", seed) == 0) seed = '0;
    if ($value$plusargs("payload=%d", payload) == 0) payload = 4'd1;
    if ($value$plusargs("operation=%d", operation) == 0) operation = '0;
    if ($value$plusargs("rows=%d", rows) == 0) rows = '0;
    if ($value$plusargs("contended=%d", contended) == 0) contended = '0;
    if ($value$plusargs("outstanding=%d", outstanding) == 0) outstanding = '0;
    if ($value$plusargs("increments=%d", increments) == 0) increments = '0;
    if ($value$plusargs("lines=%d", lines) == 0) lines = '0;
    if ($value$plusargs("blocks=%d", blocks) == 0) blocks = '0;
  end

  // ------------------------------------------------------------------ random stalls

  device_side_pkg::from_home_t from_home;
  device_side_pkg::to_home_t   to_home;
  logic [7:0]                  stall_busy;

  random_stalls #(.Width($bits({home_i.axi.aw_id, home_i.axi.aw_addr})), .Salt(16'(Slice * 8))) u_aw (
    .clk_i, .rst_ni, .seed_i(seed), .busy_o(stall_busy[0]),
    .wr_valid_i(home_i.axi.aw_valid), .wr_ready_o(home_o.axi.aw_ready), .wr_data_i({home_i.axi.aw_id, home_i.axi.aw_addr}),
    .rd_valid_o(from_home.axi.aw_valid), .rd_ready_i(to_home.axi.aw_ready), .rd_data_o({from_home.axi.aw_id, from_home.axi.aw_addr})
  );

  random_stalls #(.Width($bits({home_i.axi.w_data, home_i.axi.w_strb, home_i.axi.w_last})), .Salt(16'(Slice * 8 + 1))) u_w (
    .clk_i, .rst_ni, .seed_i(seed), .busy_o(stall_busy[1]),
    .wr_valid_i(home_i.axi.w_valid), .wr_ready_o(home_o.axi.w_ready), .wr_data_i({home_i.axi.w_data, home_i.axi.w_strb, home_i.axi.w_last}),
    .rd_valid_o(from_home.axi.w_valid), .rd_ready_i(to_home.axi.w_ready), .rd_data_o({from_home.axi.w_data, from_home.axi.w_strb, from_home.axi.w_last})
  );

  random_stalls #(.Width($bits(to_home.axi.b_id)), .Salt(16'(Slice * 8 + 2))) u_b (
    .clk_i, .rst_ni, .seed_i(seed), .busy_o(stall_busy[2]),
    .wr_valid_i(to_home.axi.b_valid), .wr_ready_o(from_home.axi.b_ready), .wr_data_i(to_home.axi.b_id),
    .rd_valid_o(home_o.axi.b_valid), .rd_ready_i(home_i.axi.b_ready), .rd_data_o(home_o.axi.b_id)
  );

  random_stalls #(.Width($bits({home_i.axi.ar_id, home_i.axi.ar_addr})), .Salt(16'(Slice * 8 + 3))) u_ar (
    .clk_i, .rst_ni, .seed_i(seed), .busy_o(stall_busy[3]),
    .wr_valid_i(home_i.axi.ar_valid), .wr_ready_o(home_o.axi.ar_ready), .wr_data_i({home_i.axi.ar_id, home_i.axi.ar_addr}),
    .rd_valid_o(from_home.axi.ar_valid), .rd_ready_i(to_home.axi.ar_ready), .rd_data_o({from_home.axi.ar_id, from_home.axi.ar_addr})
  );

  random_stalls #(.Width($bits({to_home.axi.r_id, to_home.axi.r_data, to_home.axi.r_last})), .Salt(16'(Slice * 8 + 4))) u_r (
    .clk_i, .rst_ni, .seed_i(seed), .busy_o(stall_busy[4]),
    .wr_valid_i(to_home.axi.r_valid), .wr_ready_o(from_home.axi.r_ready), .wr_data_i({to_home.axi.r_id, to_home.axi.r_data, to_home.axi.r_last}),
    .rd_valid_o(home_o.axi.r_valid), .rd_ready_i(home_i.axi.r_ready), .rd_data_o({home_o.axi.r_id, home_o.axi.r_data, home_o.axi.r_last})
  );

  random_stalls #(.Width($bits(to_home.local_req)), .Salt(16'(Slice * 8 + 5))) u_local_req (
    .clk_i, .rst_ni, .seed_i(seed), .busy_o(stall_busy[5]),
    .wr_valid_i(to_home.local_req_valid), .wr_ready_o(from_home.local_req_ready), .wr_data_i(to_home.local_req),
    .rd_valid_o(home_o.local_req_valid), .rd_ready_i(home_i.local_req_ready), .rd_data_o(home_o.local_req)
  );

  random_stalls #(.Width($bits(to_home.unlock_line)), .Salt(16'(Slice * 8 + 6))) u_unlock (
    .clk_i, .rst_ni, .seed_i(seed), .busy_o(stall_busy[6]),
    .wr_valid_i(to_home.unlock_valid), .wr_ready_o(from_home.unlock_ready), .wr_data_i(to_home.unlock_line),
    .rd_valid_o(home_o.unlock_valid), .rd_ready_i(home_i.unlock_ready), .rd_data_o(home_o.unlock_line)
  );

  random_stalls #(.Width($bits(home_i.local_rsp)), .Salt(16'(Slice * 8 + 7))) u_local_rsp (
    .clk_i, .rst_ni, .seed_i(seed), .busy_o(stall_busy[7]),
    .wr_valid_i(home_i.local_rsp_valid), .wr_ready_o(home_o.local_rsp_ready), .wr_data_i(home_i.local_rsp),
    .rd_valid_o(from_home.local_rsp_valid), .rd_ready_i(to_home.local_rsp_ready), .rd_data_o(from_home.local_rsp)
  );

  // ------------------------------------------------------------------ selection

  device_side_pkg::to_home_t    to_rpc, to_table, to_prefetcher;
  device_side_pkg::axi_manager_t table_memory, prefetcher_memory;
  logic                    table_busy;

  assign busy_o         = stall_busy != '0 || table_busy;
  assign pins_b_ready_o = from_home.axi.b_ready && application == 2'd2;
  assign pins_r_ready_o = from_home.axi.r_ready && application == 2'd2;

  always_comb begin
    to_home  = '0;
    memory_o = '0;
    case (application)
      2'd1: to_home = to_rpc;
      2'd2: begin
        to_home  = to_table;
        memory_o = table_memory;
      end
      2'd3: begin
        to_home  = to_prefetcher;
        memory_o = prefetcher_memory;
      end
      default: ;
    endcase
  end

  // ------------------------------------------------------------------ RPC

  assign to_rpc.unlock_valid = 1'b0;
  assign to_rpc.unlock_line  = '0;

  rpc_echo #(
    .Protocol    (Protocol),
    .Slice       (Slice),
    .Contexts    (2),
    .MaxPayload  (Payload),
    .Beats       (Beats),
    .AxiAddrWidth(AxiAddrWidth)
  ) u_rpc (
    .clk_i,
    .rst_ni,
    .payload_i        (payload),
    .aw_valid_i       (from_home.axi.aw_valid && application == 2'd1),
    .aw_ready_o       (to_rpc.axi.aw_ready),
    .aw_id_i          (from_home.axi.aw_id),
    .aw_addr_i        (from_home.axi.aw_addr),
    .w_valid_i        (from_home.axi.w_valid && application == 2'd1),
    .w_ready_o        (to_rpc.axi.w_ready),
    .w_data_i         (from_home.axi.w_data),
    .w_strb_i         (from_home.axi.w_strb),
    .w_last_i         (from_home.axi.w_last),
    .b_valid_o        (to_rpc.axi.b_valid),
    .b_ready_i        (from_home.axi.b_ready),
    .b_id_o           (to_rpc.axi.b_id),
    .ar_valid_i       (from_home.axi.ar_valid && application == 2'd1),
    .ar_ready_o       (to_rpc.axi.ar_ready),
    .ar_id_i          (from_home.axi.ar_id),
    .ar_addr_i        (from_home.axi.ar_addr),
    .r_valid_o        (to_rpc.axi.r_valid),
    .r_ready_i        (from_home.axi.r_ready),
    .r_id_o           (to_rpc.axi.r_id),
    .r_data_o         (to_rpc.axi.r_data),
    .r_last_o         (to_rpc.axi.r_last),
    .local_req_valid_o(to_rpc.local_req_valid),
    .local_req_ready_i(from_home.local_req_ready),
    .local_req_o      (to_rpc.local_req),
    .local_rsp_valid_i(from_home.local_rsp_valid && application == 2'd1),
    .local_rsp_ready_o(to_rpc.local_rsp_ready),
    .local_rsp_i      (from_home.local_rsp)
  );

  // ------------------------------------------------------------------ the shared table

  assign to_table.axi = pins_i;

  assign table_memory.ar_lines = '0;

  shared_table #(
    .Slice       (Slice),
    .Workers     (4),
    .Beats       (Beats),
    .AxiAddrWidth(AxiAddrWidth)
  ) u_table (
    .clk_i,
    .rst_ni,
    .start_i          (start_i && application == 2'd2),
    .stop_i,
    .busy_o           (table_busy),
    .operation_i      (operation),
    .rows_i           (home_pkg::LineWidth'(rows)),
    .contended_i      (contended),
    .outstanding_i    (outstanding),
    .increments_i     (increments),
    .aw_valid_o       (table_memory.aw_valid),
    .aw_ready_i       (memory_i.aw_ready),
    .aw_id_o          (table_memory.aw_id),
    .aw_addr_o        (table_memory.aw_addr),
    .w_valid_o        (table_memory.w_valid),
    .w_ready_i        (memory_i.w_ready),
    .w_data_o         (table_memory.w_data),
    .w_strb_o         (table_memory.w_strb),
    .w_last_o         (table_memory.w_last),
    .b_valid_i        (memory_i.b_valid && application == 2'd2),
    .b_ready_o        (table_memory.b_ready),
    .b_id_i           (memory_i.b_id),
    .ar_valid_o       (table_memory.ar_valid),
    .ar_ready_i       (memory_i.ar_ready),
    .ar_id_o          (table_memory.ar_id),
    .ar_addr_o        (table_memory.ar_addr),
    .r_valid_i        (memory_i.r_valid && application == 2'd2),
    .r_ready_o        (table_memory.r_ready),
    .r_id_i           (memory_i.r_id),
    .r_data_i         (memory_i.r_data),
    .r_last_i         (memory_i.r_last),
    .local_req_valid_o(to_table.local_req_valid),
    .local_req_ready_i(from_home.local_req_ready),
    .local_req_o      (to_table.local_req),
    .local_rsp_valid_i(from_home.local_rsp_valid && application == 2'd2),
    .local_rsp_ready_o(to_table.local_rsp_ready),
    .local_rsp_i      (from_home.local_rsp),
    .unlock_valid_o   (to_table.unlock_valid),
    .unlock_ready_i   (from_home.unlock_ready),
    .unlock_line_o    (to_table.unlock_line)
  );

  // ------------------------------------------------------------------ the prefetcher

  assign to_prefetcher.local_req_valid = 1'b0;
  assign to_prefetcher.local_req       = '0;
  assign to_prefetcher.unlock_valid    = 1'b0;
  assign to_prefetcher.unlock_line     = '0;
  assign to_prefetcher.local_rsp_ready = 1'b1;

  // Blocks of 8 KiB, of both slices together, and bursts of 64 beats.
  prefetcher #(
    .Slice       (Slice),
    .Blocks      (8),
    .BlockLines  (64 / Beats),
    .Beats       (Beats),
    .AxiAddrWidth(AxiAddrWidth)
  ) u_prefetcher (
    .clk_i,
    .rst_ni,
    .lines_i       (home_pkg::LineWidth'(lines) >> 1),
    .blocks_i      (blocks),
    .aw_valid_i    (from_home.axi.aw_valid && application == 2'd3),
    .aw_ready_o    (to_prefetcher.axi.aw_ready),
    .aw_id_i       (from_home.axi.aw_id),
    .aw_addr_i     (from_home.axi.aw_addr),
    .w_valid_i     (from_home.axi.w_valid && application == 2'd3),
    .w_ready_o     (to_prefetcher.axi.w_ready),
    .w_data_i      (from_home.axi.w_data),
    .w_strb_i      (from_home.axi.w_strb),
    .w_last_i      (from_home.axi.w_last),
    .b_valid_o     (to_prefetcher.axi.b_valid),
    .b_ready_i     (from_home.axi.b_ready),
    .b_id_o        (to_prefetcher.axi.b_id),
    .ar_valid_i    (from_home.axi.ar_valid && application == 2'd3),
    .ar_ready_o    (to_prefetcher.axi.ar_ready),
    .ar_id_i       (from_home.axi.ar_id),
    .ar_addr_i     (from_home.axi.ar_addr),
    .r_valid_o     (to_prefetcher.axi.r_valid),
    .r_ready_i     (from_home.axi.r_ready),
    .r_id_o        (to_prefetcher.axi.r_id),
    .r_data_o      (to_prefetcher.axi.r_data),
    .r_last_o      (to_prefetcher.axi.r_last),
    .mem_aw_valid_o(prefetcher_memory.aw_valid),
    .mem_aw_ready_i(memory_i.aw_ready),
    .mem_aw_id_o   (prefetcher_memory.aw_id),
    .mem_aw_addr_o (prefetcher_memory.aw_addr),
    .mem_w_valid_o (prefetcher_memory.w_valid),
    .mem_w_ready_i (memory_i.w_ready),
    .mem_w_data_o  (prefetcher_memory.w_data),
    .mem_w_strb_o  (prefetcher_memory.w_strb),
    .mem_w_last_o  (prefetcher_memory.w_last),
    .mem_b_valid_i (memory_i.b_valid && application == 2'd3),
    .mem_b_ready_o (prefetcher_memory.b_ready),
    .mem_b_id_i    (memory_i.b_id),
    .mem_ar_valid_o(prefetcher_memory.ar_valid),
    .mem_ar_ready_i(memory_i.ar_ready),
    .mem_ar_id_o   (prefetcher_memory.ar_id),
    .mem_ar_addr_o (prefetcher_memory.ar_addr),
    .mem_ar_lines_o(prefetcher_memory.ar_lines),
    .mem_r_valid_i (memory_i.r_valid && application == 2'd3),
    .mem_r_ready_o (prefetcher_memory.r_ready),
    .mem_r_id_i    (memory_i.r_id),
    .mem_r_data_i  (memory_i.r_data),
    .mem_r_last_i  (memory_i.r_last)
  );
endmodule : applications
