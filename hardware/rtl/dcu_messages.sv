// Messages to a unit: one received per circuit, and the waiting set of deferred requests.
//
// A deferred request gives way to others of its circuit. It is retried after a change of a line of its set, or, if it waits
// for a way of the directory, after one was freed. Requests that wait for another line of the set are retried in vain, which
// costs less than to compare the whole line number.

module dcu_messages #(
  parameter home_pkg::protocol_t Protocol = '0,
  parameter type         trigger_t = logic,  // an event with its context
  parameter type         event_e   = logic,
  parameter type         state_e   = logic,
  parameter int unsigned MaxDeferred   = 2,      // deferred requests
  parameter int unsigned LineWidth = 23,
  parameter int unsigned SetWidth  = 7,
  parameter int unsigned SlotWidth = 1,

  localparam int unsigned NumRx      = int'(Protocol.rx_circuits),
  localparam int unsigned EventWidth = $bits(event_e),
  localparam int unsigned Messages   = NumRx + MaxDeferred
) (
  input  logic                                 clk_i,
  input  logic                                 rst_ni,

  // Received messages, one per circuit. The payload is in the slot of its circuit.
  input  logic     [NumRx-1:0]                 rx_valid_i,
  output logic     [NumRx-1:0]                 rx_ready_o,
  input  logic     [NumRx-1:0][EventWidth-1:0] rx_event_i,
  input  logic     [NumRx-1:0][LineWidth-1:0]  rx_line_i,
  input  logic     [NumRx-1:0][SlotWidth-1:0]  rx_slot_i,

  // By circuit, then by waiting request.
  output logic     [Messages-1:0]              ask_o,
  output trigger_t [Messages-1:0]              offered_o,
  input  logic     [Messages-1:0]              source_i,      // the current event, if it is a message

  // The current event.
  input  event_e                               event_i,
  input  logic     [LineWidth-1:0]             line_i,
  input  logic     [1:0]                       circuit_i,
  input  logic     [SlotWidth-1:0]             slot_i,
  input  logic                                 ends_i,        // it leaves its source
  input  logic                                 takes_i,       // its row is executed: its line gets a state
  input  logic                                 initial_i,     // the state is the initial one, which needs no way
  input  logic                                 writes_i,      // the row writes the payload to memory
  input  logic                                 vacated_i,     // a way was free already
  input  logic                                 defers_i,      // it is a message, and is deferred
  input  logic                                 needs_room_i,  // for lack of a way

  output logic                                 full_o,        // no request can be deferred; a cycle late

  // Slot of a circuit whose payload is not needed.
  output logic                                 drop_valid_o,
  output logic     [1:0]                       drop_circuit_o,
  output logic     [SlotWidth-1:0]             drop_slot_o,

  output logic                                 idle_o
);
  typedef struct packed {
    logic                 ready;  // a line of its set has changed state
    logic                 room;   // it waits for a way of the directory
    event_e               event_id;
    logic [LineWidth-1:0] line;
    logic [1:0]           circuit;
    logic [SlotWidth-1:0] slot;
  } deferred_t;

  localparam int unsigned EntryWidth = home_pkg::bits(MaxDeferred);

  trigger_t  [NumRx-1:0]       rx_q;
  logic      [NumRx-1:0]       rx_used_d, rx_used_q;
  deferred_t [MaxDeferred-1:0] deferred_d, deferred_q;
  logic      [MaxDeferred-1:0] deferred_used_d, deferred_used_q, same_q;  // in use; of the set of the current line
  logic      [NumRx-1:0]       of_rx;
  logic      [MaxDeferred-1:0] of_deferred;
  logic      [EntryWidth-1:0]  entry;

  first_free #(
    .Size(MaxDeferred)
  ) u_free (
    .clk_i,
    .used_i (deferred_used_q),
    .full_o,
    .entry_o(entry)
  );

  assign {of_deferred, of_rx} = source_i;
  assign idle_o               = rx_used_q == '0 && deferred_used_q == '0;

  always_comb begin
    for (int unsigned i = 0; i < NumRx; i++) begin
      ask_o[i]     = rx_used_q[i];
      offered_o[i] = rx_q[i];
    end
    for (int unsigned i = 0; i < MaxDeferred; i++) begin
      ask_o[NumRx+i]     = deferred_used_q[i] && deferred_q[i].ready;
      offered_o[NumRx+i] = '{deferred_q[i].event_id, deferred_q[i].line, deferred_q[i].circuit, deferred_q[i].slot, state_e'(0), '0};
    end
  end

  always_comb begin
    rx_used_d       = rx_used_q | rx_valid_i;
    deferred_d      = deferred_q;
    deferred_used_d = deferred_used_q;
    if (ends_i) deferred_used_d &= ~of_deferred;
    if (ends_i || defers_i) rx_used_d &= ~of_rx;
    for (int unsigned i = 0; i < MaxDeferred; i++) begin
      if (takes_i && (same_q[i] || (deferred_q[i].room && initial_i))) deferred_d[i].ready = 1'b1;
      if (defers_i && of_deferred[i]) begin
        deferred_d[i].ready = 1'b0;
        deferred_d[i].room  = needs_room_i;
      end
      if (vacated_i) deferred_d[i].ready |= deferred_q[i].room;
    end
    if (defers_i && of_rx != '0) begin
      deferred_used_d[entry] = 1'b1;
      deferred_d[entry]      = '{1'b0, needs_room_i, event_i, line_i, circuit_i, slot_i};
    end
  end

  // Each entry that is written from outside has a register for "free", which enables the write.
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
    for (int unsigned i = 0; i < MaxDeferred; i++) same_q[i] <= deferred_q[i].line[SetWidth-1:0] == line_i[SetWidth-1:0];
    for (int unsigned i = 0; i < NumRx; i++) begin
      if (rx_ready_o[i]) begin
        rx_q[i] <= '{event_e'(rx_event_i[i]), rx_line_i[i], 2'(i), rx_slot_i[i], state_e'(0), '0};
      end
    end
  end

  always_ff @(posedge clk_i) begin
    drop_valid_o   <= rst_ni && ends_i && !writes_i && source_i != '0 && Protocol.payload[6'(event_i)];
    drop_circuit_o <= circuit_i;
    drop_slot_o    <= slot_i;
  end
endmodule : dcu_messages
