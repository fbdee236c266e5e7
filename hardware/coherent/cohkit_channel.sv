// Queue of the messages from one sender to one receiver that share an order, or of one channel without an order. An
// order is one of all lines.
//
// `room_o` is high if `Room` further messages fit, so that a step of the sender never overflows the queue.
// Without an order, a first message that the receiver cannot take goes to the end of the queue, so that it holds up no
// message of another line.

module cohkit_channel #(
  parameter type         message_t = logic,
  parameter bit          Ordered   = 1'b0,
  parameter int unsigned Depth     = 16,
  parameter int unsigned Room      = 1   // free places that a step of the sender needs
) (
  input  logic     clk_i,
  input  logic     rst_ni,

  input  logic     push_i,
  input  message_t message_i,
  output logic     room_o,

  output logic     valid_o,
  output message_t message_o,
  input  logic     take_i,
  input  logic     stall_i    // the receiver cannot take the first message
);
  localparam int unsigned PointerWidth = $clog2(Depth);
  localparam int unsigned CountWidth   = $clog2(Depth + 1);

  logic [PointerWidth-1:0] read_q, write_q;
  logic [CountWidth-1:0]   count_q;
  logic                    rotate;

  if (Depth < 2 || Depth < Room) begin : gen_invalid_depth
    $error("cohkit_channel: Depth must be at least 2, and at least Room");
  end

  function automatic logic [PointerWidth-1:0] next(input logic [PointerWidth-1:0] pointer);
    next = pointer == PointerWidth'(Depth - 1) ? '0 : PointerWidth'(pointer + 1'b1);
  endfunction

  assign room_o    = count_q <= CountWidth'(Depth - Room);
  assign valid_o   = count_q != '0;
  cohkit_ram #(.Words(Depth), .Width($bits(message_t))) u_messages (
    .clk_i,
    .write_i        (push_i || rotate),
    .write_address_i(write_q),
    .write_data_i   (push_i ? message_i : message_o),
    .read_address_i (read_q),
    .read_data_o    (message_o)
  );
  assign rotate    = !Ordered && stall_i && valid_o && !push_i && !take_i;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && push_i) assert (count_q < CountWidth'(Depth)) else $error("cohkit_channel: a message has no room");
  end
`endif

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      read_q  <= '0;
      write_q <= '0;
      count_q <= '0;
    end else begin
      if (push_i || rotate) write_q <= next(write_q);
      if (take_i || rotate) read_q <= next(read_q);
      count_q <= CountWidth'(count_q + CountWidth'(push_i) - CountWidth'(take_i));
    end
  end
endmodule : cohkit_channel
