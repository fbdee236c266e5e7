// Random accesses to the processor ports of a system, and its memory, with random delays.
//
// Lines printed: those of `monitors.sv`; `T AGENT` for an access without progress, `F AGENT` for an agent that signals
// `unexpected_o`, and `E CYCLES` when everything is quiescent after the requested number of messages, with the duration
// of the longest access.

module bench #(
  parameter int unsigned Caches     = 2,
  parameter int unsigned LineWidth  = 3,
  parameter int unsigned Lines      = 6,
  parameter int unsigned DataWidth  = 64,
  parameter int unsigned SetWidth   = 1,
  parameter int unsigned Ways       = 2,
  parameter int unsigned Mshrs      = 4,
  parameter int unsigned Replacement = 0
) (
  input logic    clk_i,
  input logic    rst_ni,
  input longint  messages_i
);
  localparam int unsigned StrobeWidth = DataWidth / 8;
  localparam int unsigned AddrWidth   = LineWidth + $clog2(StrobeWidth);
  // Cycles without progress of an access, and without a step at the end.
  localparam int unsigned Timeout = 20_000;
  localparam int unsigned Quiet   = 200;
  // Tags of accesses; a port has so many accesses at most.
  localparam int unsigned TagWidth = 4;
  localparam int unsigned Tags     = 1 << TagWidth;

  typedef logic [DataWidth-1:0] data_t;

  logic [Caches-1:0]                  req_valid, req_ready, req_write, req_uncached, rsp_valid, rsp_error;
  logic [Caches-1:0][TagWidth-1:0]    req_tag, rsp_tag;
  logic [Caches-1:0][LineWidth-1:0]   req_line;
  logic [Caches-1:0][2:0]             req_op;
  logic [Caches-1:0][63:0]            req_compare;
  logic [Caches-1:0][DataWidth-1:0]   req_data, rsp_data;
  logic [Caches-1:0][StrobeWidth-1:0] req_strobe;
  logic                               aw_valid, aw_ready, w_valid, w_ready, b_valid, b_ready;
  logic                               ar_valid, ar_ready, r_valid, r_ready, memory_error;
  logic [AddrWidth-1:0]               aw_addr, ar_addr;
  data_t                              w_data, r_data;
  logic [StrobeWidth-1:0]             w_strb;
  logic [Caches:0]                    unexpected;
  data_t                              initial_memory [1 << LineWidth];

  // The first value of each byte is the number of its line.
  for (genvar i = 0; i < 1 << LineWidth; i++) begin : gen_line
    assign initial_memory[i] = {StrobeWidth{8'(i)}};
  end

  `SYSTEM #(.LineWidth(LineWidth), .DataWidth(DataWidth), .SetWidth(SetWidth), .Ways(Ways), .Mshrs(Mshrs),
            .TagWidth(TagWidth), .Replacement(Replacement)
`ifdef DEPTH
    , .Depth(`DEPTH)
`endif
`ifdef DIRECTORY_WAYS
    , .DirectorySetWidth(`DIRECTORY_SET_WIDTH), .DirectoryWays(`DIRECTORY_WAYS)
`endif
  ) u_system (
    .clk_i, .rst_ni,
    .req_valid_i(req_valid), .req_ready_o(req_ready), .req_tag_i(req_tag), .req_op_i(req_op),
    .req_write_i(req_write), .req_uncached_i(req_uncached),
    .req_line_i(req_line), .req_data_i(req_data), .req_strobe_i(req_strobe), .req_compare_i(req_compare),
    .rsp_valid_o(rsp_valid), .rsp_tag_o(rsp_tag), .rsp_data_o(rsp_data), .rsp_error_o(rsp_error),
    .axi_aw_valid_o(aw_valid),
    .axi_aw_ready_i(aw_ready),
    .axi_aw_addr_o(aw_addr),
    .axi_w_valid_o(w_valid),
    .axi_w_ready_i(w_ready),
    .axi_w_data_o(w_data),
    .axi_w_strb_o(w_strb),
    .axi_b_valid_i(b_valid),
    .axi_b_ready_o(b_ready),
    .axi_ar_valid_o(ar_valid),
    .axi_ar_ready_i(ar_ready),
    .axi_ar_addr_o(ar_addr),
    .axi_r_valid_i(r_valid),
    .axi_r_ready_o(r_ready),
    .axi_r_data_i(r_data),
    .axi_b_resp_i(2'b00), .axi_r_resp_i(2'b00), .error_o(memory_error), .unexpected_o(unexpected)
  );

  initial if (!$value$plusargs("fault+%d", monitor_pkg::fault)) monitor_pkg::fault = 0;

  random_memory #(.LineWidth(LineWidth), .DataWidth(DataWidth)) u_memory (
    .clk_i, .rst_ni,
    .initial_i(initial_memory),
    .aw_valid_i(aw_valid),
    .aw_ready_o(aw_ready),
    .aw_addr_i(aw_addr),
    .w_valid_i(w_valid),
    .w_ready_o(w_ready),
    .w_data_i(w_data),
    .w_strb_i(w_strb),
    .b_valid_o(b_valid),
    .b_ready_i(b_ready),
    .ar_valid_i(ar_valid),
    .ar_ready_o(ar_ready),
    .ar_addr_i(ar_addr),
    .r_valid_o(r_valid),
    .r_ready_i(r_ready),
    .r_data_o(r_data)
  );

  // Accesses of each processor port, by their tags: a random number at most, which changes from time to time.
  logic [Caches-1:0][Tags-1:0]       outstanding;  // presented, and not answered
  logic [Caches-1:0][Tags-1:0][31:0] since;        // cycle in which the port has presented the access
  logic [Caches-1:0][TagWidth:0]     limit;
  logic [TagWidth-1:0]               tag;
  logic [LineWidth-1:0]              line;
  logic [Caches-1:0][Tags-1:0][LineWidth-1:0] line_of;   // of the access with a tag
  data_t [(1 << LineWidth)-1:0]               last_data;  // last answer about a line
  logic [31:0]                       now;
  int unsigned                       quiet, longest;
  longint                  messages_before;
  always @(posedge clk_i) begin
    for (int unsigned i = 0; i <= Caches; i++) if (rst_ni && unexpected[i]) $display("F %h", i);
    messages_before <= monitor_pkg::messages;
    now             <= now + 1;
    quiet           <= monitor_pkg::messages != messages_before || outstanding != '0 ? 0 : quiet + 1;
    for (int unsigned i = 0; i < Caches; i++) begin
      tag = TagWidth'($urandom);
      if ($urandom_range(127) == 0) limit[i] <= (TagWidth + 1)'($urandom_range(Mshrs + 1) + 1);
      if (req_valid[i] && req_ready[i]) req_valid[i] <= 1'b0;
      if (rsp_valid[i]) begin
        outstanding[i][rsp_tag[i]]               <= 1'b0;
        last_data[line_of[i][rsp_tag[i]]] <= rsp_data[i];
        if (rst_ni && now - since[i][rsp_tag[i]] > longest) longest = now - since[i][rsp_tag[i]];
      end
      for (int unsigned k = 0; k < Tags; k++) begin
        if (rst_ni && outstanding[i][k] && now - since[i][k] == Timeout) begin
          $display("T %h", i);
          $finish;
        end
      end
      if ((!req_valid[i] || req_ready[i]) && !outstanding[i][tag] && $countones(outstanding[i]) < limit[i]
          && monitor_pkg::messages < messages_i && $urandom_range(2) == 0) begin
        req_valid[i]        <= 1'b1;
        outstanding[i][tag] <= 1'b1;
        since[i][tag]       <= now + 1;
        req_tag[i]          <= tag;
        line = LineWidth'($urandom_range(Lines - 1));
        // More than half of the accesses are loads and stores; the numbers of operations end with the flush, 5.
        req_op[i]       <= $urandom_range(1) == 0 ? 3'd0 : 3'($urandom_range(5));
        req_write[i]    <= $urandom_range(1) == 1;
        req_uncached[i] <= $urandom_range(3) == 0;
        req_line[i]     <= line;
        line_of[i][tag] <= line;
        // Often the current word of the line.
        req_compare[i]  <= last_data[line];
        req_data[i]     <= {$urandom, $urandom};
        req_strobe[i]   <= $urandom_range(2) == 0 ? '1 : StrobeWidth'($urandom);
      end
    end
    if (!rst_ni) begin
      req_valid   <= '0;
      outstanding <= '0;
      now         <= '0;
      for (int unsigned i = 0; i < Caches; i++) limit[i] <= (TagWidth + 1)'(Mshrs);
      quiet       <= 0;
      longest      = '0;
    end else if (monitor_pkg::messages >= messages_i && quiet == Quiet) begin
      $display("E %h", longest);
      $finish;
    end
  end
endmodule : bench
