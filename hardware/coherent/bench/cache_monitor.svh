  // Monitor of the test bench.
  cache_monitor #(
    .remote_t(remote_t), .line_t(line_t), .message_t(message_t), .event_e(event_e),
    .fields_t(fields_t), .state_e(state_e), .variables_t(variables_t), .send_t(send_t),
    .DataWidth(DataWidth), .TagWidth(TagWidth), .SetBits(SetBits), .WayWidth(WayWidth), .Sends(Sends)
  ) u_monitor (.from_message(source == Message), .*);
