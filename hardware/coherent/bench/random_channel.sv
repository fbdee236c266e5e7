// Channel with random delays, random back-pressure and, without an order, random reordering, around the queue of the
// product. The test build renames the product's module. With the macro UNDELAYED, only the queue remains.

module cohkit_channel #(
  parameter type         message_t = logic,
  parameter bit          Ordered   = 1'b0,
  parameter int unsigned Depth     = 16,
  parameter int unsigned Room      = 1
) (
  input  logic     clk_i,
  input  logic     rst_ni,

  input  logic     push_i,
  input  message_t message_i,
  output logic     room_o,

  output logic     valid_o,
  output message_t message_o,
  input  logic     take_i,
  input  logic     stall_i
);
  // Delay of a message in cycles: mostly none, often short, and sometimes so long that accesses of others pass.
  localparam int unsigned ShortDelay = 12;
  localparam int unsigned LongDelay  = 120;

  logic       valid, room, stall, open_q, rotate_q;
  logic [6:0] wait_q;

`ifdef UNDELAYED
  localparam bit Delays = 1'b0;
`else
  localparam bit Delays = 1'b1;
`endif

  function automatic logic [6:0] delay();
    automatic int unsigned choice = $urandom_range(15);
    delay = choice == 0 ? 7'($urandom_range(LongDelay)) : choice < 5 ? 7'($urandom_range(ShortDelay)) : '0;
  endfunction

  // A message that waits moves to the end of the queue at random; a message that is offered stays until it is taken.
  assign stall   = stall_i || rotate_q && wait_q != '0;
  assign valid_o = valid && wait_q == '0;
  assign room_o  = room && open_q;

  cohkit_plain_channel #(.message_t(message_t), .Ordered(Ordered), .Depth(Depth), .Room(Room)) u_channel (
    .clk_i, .rst_ni, .push_i, .message_i, .message_o, .take_i,
    .room_o (room),
    .valid_o(valid),
    .stall_i(stall)
  );

  always @(posedge clk_i) begin
    if (rst_ni) monitor_pkg::in_flight = monitor_pkg::in_flight + int'(push_i) - int'(take_i);
  end

  always_ff @(posedge clk_i) begin
    open_q   <= !Delays || $urandom_range(7) != 0;
    rotate_q <= Delays && $urandom_range(3) == 0;
    if (!rst_ni || take_i || stall_i) wait_q <= Delays ? delay() : '0;
    else if (valid && wait_q != '0) wait_q <= wait_q - 1'b1;
  end
endmodule : cohkit_channel
