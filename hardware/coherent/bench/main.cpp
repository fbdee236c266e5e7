// Clock and reset of the test bench: PROGRAM MESSAGES [WAVEFORM] [+verilator+seed+N]
#include "Vbench.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_fst_c.h"
#endif
#include <csignal>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  // The reader closes the pipe after a difference. The loop then ends, and the waveform is complete up to there.
  std::signal(SIGPIPE, SIG_IGN);
  VerilatedContext context;
  context.commandArgs(argc, argv);
  Vbench bench{&context};
#if VM_TRACE
  context.traceEverOn(true);
  VerilatedFstC waveform;
  bench.trace(&waveform, 99);
  waveform.open(argv[2]);
#endif
  bench.messages_i = std::atoll(argv[1]);
  bench.rst_ni = 0;
  // State is random before the reset, so that assertions begin after it.
  context.assertOn(false);
  for (long cycle = 0; !context.gotFinish() && !std::ferror(stdout); cycle++) {
    if (cycle == 4) {
      bench.rst_ni = 1;
      context.assertOn(true);
    }
    for (const int clock : {0, 1}) {
      bench.clk_i = clock;
      bench.eval();
#if VM_TRACE
      waveform.dump(context.time());
#endif
      context.timeInc(1);
    }
  }
#if VM_TRACE
  waveform.close();
#endif
  return 0;
}
