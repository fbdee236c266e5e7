// Records of the steps of a system, one line of text each, for the comparison with the executable model.
//
//   S AGENT LINE EVENT SENDER FIELDS DATA STROBE STATE VARIABLES SENDS MESSAGES PERFORM DONE RESULT TAG   a row
//   H AGENT LINE RESULT TAG               an access that needs no row is performed
//   P AGENT SET WAY EVICT                 a way is used; EVICT: it is the victim of its set
//   N AGENT LINE TAG ERROR                a fence or a flush ends, or an operation is refused
//   Q AGENT TAG OP WRITE UNCACHED LINE DATA STROBE COMPARE   the processor port takes an access
//   M WRITE LINE DATA STROBE RESULT       memory has answered
//   U AGENT LINE EVENT                    a message without a row
//   W LINE                                a message about this line waits for an entry, and keeps the next free one
//   V LINE VICTIM                         the home chooses a line to recall, for a message about another line
//
// Numbers are hexadecimal. The home has the number after the last cache. The test build puts the instances
// `cache_monitor.svh` and `home_monitor.svh` into the units.

package monitor_pkg;
  longint messages  = 0;  // received messages
  int     in_flight = 0;  // messages in queues
  int     fault     = 0;  // fault that a test of the test bench has seeded and selects; 0 is none
endpackage : monitor_pkg

module cache_monitor #(
  parameter type         remote_t = logic,
  parameter type         line_t   = logic,
  parameter type         message_t = logic,
  parameter type         event_e  = logic,
  parameter type         fields_t = logic,
  parameter type         state_e  = logic,
  parameter type         variables_t = logic,
  parameter type         send_t   = logic,
  parameter int unsigned DataWidth = 64,
  parameter int unsigned TagWidth = 4,
  parameter int unsigned SetBits  = 1,
  parameter int unsigned WayWidth = 1,
  parameter int unsigned Sends    = 1
) (
  input logic                   clk_i,
  input logic                   rst_ni,
  input remote_t                self_i,
  input line_t                  line,
  input message_t               current,
  input event_e                 step_event_o,
  input remote_t                step_sender_o,
  input fields_t                step_fields_o,
  input state_e                 step_state_i,
  input variables_t             step_variables_i,
  input send_t [Sends-1:0]      step_sends_i,
  input message_t [Sends-1:0]   messages,
  input logic                   take,
  input logic                   touched,
  input logic                   evict,
  input logic [SetBits-1:0]     set,
  input logic [WayWidth-1:0]    way,
  input logic                   finish,
  input logic                   done,
  input logic                   perform,
  input logic                   unexpected_o,
  input logic                   from_message,
  input logic [DataWidth-1:0]   rsp_data_o,
  input logic [TagWidth-1:0]    rsp_tag_o,
  input logic                   req_valid_i,
  input logic                   req_ready_o,
  input logic [TagWidth-1:0]    req_tag_i,
  input logic                   rsp_error_o,
  input logic [2:0]             req_op_i,
  input logic                   req_write_i,
  input logic                   req_uncached_i,
  input line_t                  req_line_i,
  input logic [DataWidth-1:0]   req_data_i,
  input logic [DataWidth/8-1:0] req_strobe_i,
  input logic [63:0]            req_compare_i
);
  always @(posedge clk_i) if (rst_ni) begin
    if (touched || evict) $display("P %h %h %h %h", self_i - 1'b1, set, way, evict);
    if (unexpected_o) $display("U %h %h %h", self_i - 1'b1, line, step_event_o);
    if (take) begin
      $display("S %h %h %h %h %h %h %h %h %h %h %h %h %h %h %h", self_i - 1'b1, line, step_event_o, step_sender_o,
               step_fields_o, current.data, current.strobe, step_state_i, step_variables_i, step_sends_i, messages,
               perform, done, rsp_data_o, rsp_tag_o);
      if (from_message) monitor_pkg::messages = monitor_pkg::messages + 1;
    end else if (perform) begin
      $display("H %h %h %h %h", self_i - 1'b1, line, rsp_data_o, rsp_tag_o);
    end
    if (finish) $display("N %h %h %h %h", self_i - 1'b1, line, rsp_tag_o, rsp_error_o);
    if (req_valid_i && req_ready_o) begin
      $display("Q %h %h %h %h %h %h %h %h %h", self_i - 1'b1, req_tag_i, req_op_i, req_write_i, req_uncached_i, req_line_i,
               req_data_i, req_strobe_i, req_compare_i);
    end
  end
endmodule : cache_monitor

module home_monitor #(
  parameter type         message_t = logic,
  parameter type         state_e  = logic,
  parameter type         variables_t = logic,
  parameter type         send_t   = logic,
  parameter int unsigned Agents   = 2,
  parameter int unsigned LineWidth = 4,
  parameter int unsigned DataWidth = 64,
  parameter int unsigned Sends    = 1
) (
  input logic                   clk_i,
  input logic                   rst_ni,
  input message_t               current,
  input state_e                 step_state_i,
  input variables_t             step_variables_i,
  input send_t [Sends-1:0]      step_sends_i,
  input message_t [Sends-1:0]   messages,
  input logic                   execute,
  input logic                   from_message,
  input logic                   waits,
  input logic                   chooses,
  input logic [LineWidth-1:0]   victim,
  input logic                   unexpected_o,
  input logic                   mem_valid_o,
  input logic                   mem_write_o,
  input logic [LineWidth-1:0]   mem_line_o,
  input logic [DataWidth-1:0]   mem_data_o,
  input logic [DataWidth/8-1:0] mem_strobe_o,
  input logic                   mem_done_i,
  input logic [DataWidth-1:0]   mem_data_i
);
  localparam logic [7:0] Agent = 8'(Agents - 1);

  always @(posedge clk_i) if (rst_ni) begin
    if (unexpected_o) $display("U %h %h %h", Agent, current.line, current.message);
    if (waits) $display("W %h", current.line);
    if (chooses) $display("V %h %h", current.line, victim);
    if (mem_valid_o && mem_done_i) begin
      $display("M %h %h %h %h %h", mem_write_o, mem_line_o, mem_data_o, mem_strobe_o, mem_data_i);
    end
    if (execute) begin
      $display("S %h %h %h %h %h %h %h %h %h %h %h 0 0 0 0", Agent, current.line, current.message, current.sender,
               current.fields, current.data, current.strobe, step_state_i, step_variables_i, step_sends_i, messages);
      if (from_message) monitor_pkg::messages = monitor_pkg::messages + 1;
    end
  end
endmodule : home_monitor
