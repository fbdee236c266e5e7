// Assertion macros: invariants of a module, and assumptions about its environment. They hold in every cycle outside reset.
// Simulators check them, and provers prove or assume them. They use `clk_i` and `rst_ni` of the module.

`ifndef ASSERTIONS_SVH
`define ASSERTIONS_SVH

`define ASSERT(label, condition) \
  always_ff @(posedge clk_i) if (rst_ni) label: assert (condition);

// ASSERT with a message: the arguments of `$error` in parentheses.
`define ASSERT_OR(label, condition, message) \
  always_ff @(posedge clk_i) if (rst_ni) label: assert (condition) else $error message;

// Assumption about the environment. A simulator checks it; a prover of a single module assumes it.
`ifdef FORMAL
`define ASSUME_OR(label, condition, message) \
  always_ff @(posedge clk_i) if (rst_ni) label: assume (condition);
`else
`define ASSUME_OR(label, condition, message) `ASSERT_OR(label, condition, message)
`endif

// Illegal input that the module tolerates: a simulator reports it; a prover assumes nothing about it.
`ifdef FORMAL
`define REPORT_OR(label, condition, message)
`else
`define REPORT_OR(label, condition, message) `ASSERT_OR(label, condition, message)
`endif

// Stability of a stream: valid and data are stable until the transfer.
`define RECORD_STALL(label, valid, ready, data) \
  logic label``_stall_q; \
  logic [$bits(data)-1:0] label``_data_q; \
  always_ff @(posedge clk_i) label``_stall_q <= rst_ni && valid && !ready; \
  always_ff @(posedge clk_i) label``_data_q <= data;

`define ASSERT_STABLE(label, valid, ready, data) \
  `RECORD_STALL(label, valid, ready, data) \
  `ASSERT(label, !label``_stall_q || valid && label``_data_q == data)

`define ASSUME_STABLE(label, valid, ready, data, message) \
  `RECORD_STALL(label, valid, ready, data) \
  `ASSUME_OR(label, !label``_stall_q || valid && label``_data_q == data, message)

`endif
