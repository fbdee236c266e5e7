// Messages to a directory controller unit (DCU): one received message per circuit, and the deferred requests.
//
// A request that stalls is deferred, so that later messages of its circuit can proceed. It is retried after a state
// change of any line in its directory set, or, if the set was full, after any way was freed. Comparing sets instead of
// whole line numbers costs some useless retries, but less logic.

module dcu_messages #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type         trigger_t = logic,  // an event with its context
  parameter type         event_e   = logic,
  parameter type         state_e   = logic,
  parameter int unsigned MaxDeferred   = 2,   // maximum number of deferred requests
  parameter int unsigned LineWidth = 23,
  parameter int unsigned SetWidth  = 7,
  parameter int unsigned SlotWidth = 1,

  localparam int unsigned NumRx      = int'(Protocol.rx_circuits),
  localparam int unsigned EventWidth = $bits(event_e),
  localparam int unsigned Messages   = NumRx + MaxDeferred
) (
  input  logic                                 clk_i,
  input  logic                                 rst_ni,

  // Headers of received messages, one stream per circuit, with the slot of the payload in dcs_ingress.
  input  logic     [NumRx-1:0]                 rx_valid_i,
  output logic     [NumRx-1:0]                 rx_ready_o,
  input  logic     [NumRx-1:0][EventWidth-1:0] rx_event_i,
  input  logic     [NumRx-1:0][LineWidth-1:0]  rx_line_i,
  input  logic     [NumRx-1:0][SlotWidth-1:0]  rx_slot_i,

  // Events offered: by circuit, then by deferred request.
  output logic     [Messages-1:0]              trigger_valid_o,
  output trigger_t [Messages-1:0]              trigger_o,
  input  logic     [Messages-1:0]              source_i,   // source of the current event, if it is a message

  // Current event, and its outcome.
  input  event_e                               event_id_i,
  input  logic     [LineWidth-1:0]             line_i,
  input  logic     [1:0]                       circuit_i,
  input  logic     [SlotWidth-1:0]             slot_i,
  input  logic                                 retire_i,        // the event ends
  input  logic                                 execute_i,       // its row is executed: its line changes state
  input  logic                                 to_initial_i,    // the next state is the initial one, which frees the way
  input  logic                                 start_write_i,   // the row writes the payload to memory
  input  logic                                 lookup_empty_i,  // the recall has found its way empty
  input  logic                                 defer_i,         // the event is a request and is deferred
  input  logic                                 lacks_way_i,     // the reason is a full directory set

  output logic                                 full_o,   // no further request can be deferred; one cycle late

  // Payload slot of a message that ends without a write; one cycle late.
  output logic                                 drop_valid_o,
  output logic     [1:0]                       drop_circuit_o,
  output logic     [SlotWidth-1:0]             drop_slot_o,

  output logic                                 idle_o
);
  // A deferred request.
  typedef struct packed {
    logic                 retry;       // a line of its set has changed state since the last attempt
    logic                 awaits_way;  // its set was full
    event_e               event_id;
    logic [LineWidth-1:0] line;
    logic [1:0]           circuit;
    logic [SlotWidth-1:0] slot;
  } deferred_t;

  localparam int unsigned EntryWidth = home_pkg::bits(MaxDeferred);

  trigger_t  [NumRx-1:0]       rx_q;
  logic      [NumRx-1:0]       rx_used_d, rx_used_q;
  deferred_t [MaxDeferred-1:0] deferred_d, deferred_q;
  logic      [MaxDeferred-1:0] deferred_used_d, deferred_used_q, same_set_q;  // in use; in the set of the current event
  logic      [NumRx-1:0]       from_rx;
  logic      [MaxDeferred-1:0] from_deferred;
  logic      [EntryWidth-1:0]  entry;

  first_free #(
    .Size(MaxDeferred)
  ) u_free (
    .clk_i,
    .used_i (deferred_used_q),
    .full_o,
    .entry_o(entry)
  );

  assign {from_deferred, from_rx} = source_i;
  assign idle_o                   = rx_used_q == '0 && deferred_used_q == '0;

  always_comb begin
    for (int unsigned i = 0; i < NumRx; i++) begin
      trigger_valid_o[i] = rx_used_q[i];
      trigger_o[i]       = rx_q[i];
    end
    for (int unsigned i = 0; i < MaxDeferred; i++) begin
      trigger_valid_o[NumRx+i] = deferred_used_q[i] && deferred_q[i].retry;
      trigger_o[NumRx+i]       = '{deferred_q[i].event_id, deferred_q[i].line, deferred_q[i].circuit, deferred_q[i].slot, state_e'(0), '0};
    end
  end

  always_comb begin
    rx_used_d       = rx_used_q | rx_valid_i;
    deferred_d      = deferred_q;
    deferred_used_d = deferred_used_q;
    if (retire_i) deferred_used_d &= ~from_deferred;
    if (retire_i || defer_i) rx_used_d &= ~from_rx;
    for (int unsigned i = 0; i < MaxDeferred; i++) begin
      if (execute_i && (same_set_q[i] || (deferred_q[i].awaits_way && to_initial_i))) deferred_d[i].retry = 1'b1;
      if (defer_i && from_deferred[i]) begin
        deferred_d[i].retry      = 1'b0;
        deferred_d[i].awaits_way = lacks_way_i;
      end
      if (lookup_empty_i) deferred_d[i].retry |= deferred_q[i].awaits_way;
    end
    if (defer_i && from_rx != '0) begin
      deferred_used_d[entry] = 1'b1;
      deferred_d[entry]      = '{1'b0, lacks_way_i, event_id_i, line_i, circuit_i, slot_i};
    end
  end

  // The free flags of the received messages are registers, because they enable the writes of the entries.
  assign rx_used_q = ~rx_ready_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rx_ready_o      <= '1;
      deferred_used_q <= '0;
    end else begin
      rx_ready_o      <= ~rx_used_d;
      deferred_used_q <= deferred_used_d;
    end
  end

  always_ff @(posedge clk_i) begin
    deferred_q <= deferred_d;
    for (int unsigned i = 0; i < MaxDeferred; i++) same_set_q[i] <= deferred_q[i].line[SetWidth-1:0] == line_i[SetWidth-1:0];
    for (int unsigned i = 0; i < NumRx; i++) begin
      if (rx_ready_o[i]) begin
        rx_q[i] <= '{event_e'(rx_event_i[i]), rx_line_i[i], 2'(i), rx_slot_i[i], state_e'(0), '0};
      end
    end
  end

  always_ff @(posedge clk_i) begin
    drop_valid_o   <= rst_ni && retire_i && !start_write_i && source_i != '0 && Protocol.payload[6'(event_id_i)];
    drop_circuit_o <= circuit_i;
    drop_slot_o    <= slot_i;
  end
endmodule : dcu_messages
