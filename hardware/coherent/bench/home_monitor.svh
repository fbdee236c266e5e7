  // Monitor of the test bench.
  home_monitor #(
    .message_t(message_t), .state_e(state_e), .variables_t(variables_t), .send_t(send_t), .Agents(Agents),
    .LineWidth(LineWidth), .DataWidth(DataWidth), .Sends(Sends)
  ) u_monitor (.victim(tags[victim_q]), .*);
