// Invariants that hold in every cycle outside reset, and assumptions about the environment, in a form that
// simulators check, provers prove, and linters read. `clk_i` and `rst_ni` are those of the module.

`ifndef ASSERTIONS_SVH
`define ASSERTIONS_SVH

`define ASSERT(label, condition) \
  always_ff @(posedge clk_i) if (rst_ni) label: assert (condition);

// As above, with the arguments of `$error` in parentheses as message.
`define ASSERT_OR(label, condition, message) \
  always_ff @(posedge clk_i) if (rst_ni) label: assert (condition) else $error message;

// Obligations of the environment. A simulator checks them; a prover that has this module alone assumes them.
`ifdef FORMAL
`define ASSUME_OR(label, condition, message) \
  always_ff @(posedge clk_i) if (rst_ni) label: assume (condition);
`else
`define ASSUME_OR(label, condition, message) `ASSERT_OR(label, condition, message)
`endif

// Illegal input that the module rejects: a simulator reports it; a prover makes no assumption about it.
`ifdef FORMAL
`define NOTICE_OR(label, condition, message)
`else
`define NOTICE_OR(label, condition, message) `ASSERT_OR(label, condition, message)
`endif

// A stream's valid and data stay stable until they are taken.
`define WAITS(label, valid, ready, data) \
  logic label``_waits_q; \
  logic [$bits(data)-1:0] label``_data_q; \
  always_ff @(posedge clk_i) label``_waits_q <= rst_ni && valid && !ready; \
  always_ff @(posedge clk_i) label``_data_q <= data;

`define ASSERT_STABLE(label, valid, ready, data) \
  `WAITS(label, valid, ready, data) \
  `ASSERT(label, !label``_waits_q || valid && label``_data_q == data)

`define ASSUME_STABLE(label, valid, ready, data, message) \
  `WAITS(label, valid, ready, data) \
  `ASSUME_OR(label, !label``_waits_q || valid && label``_data_q == data, message)

`endif
