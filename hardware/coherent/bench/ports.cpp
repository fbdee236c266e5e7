// Accesses at the processor ports of a system, by commands on the standard input, one a line; numbers are hexadecimal:
//
//   R SEED WORD...                             reset; the seed of all random choices, and the word of each line
//   A PORT DELAY WRITE UNCACHED LINE DATA      an access that the port presents after a delay in cycles
//   W                                          wait for a completion
//
// Answers to `W`: `D PORT DATA` for the next completion, `T PORT` for an access without progress, `F AGENT` for an agent
// that signals `unexpected_o`. The program ends after `T` and `F`, and at the end of its input.
#include "Vports.h"
#include "verilated.h"
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <iostream>
#include <sstream>
#include <string>

namespace {
// Cycles without progress of an access.
constexpr std::uint64_t kTimeout = 20'000;
// Cycles of a reset.
constexpr int kReset = 4;

constexpr int kPorts = sizeof(Vports::req_valid_i) / sizeof(Vports{}.req_valid_i[0]);
constexpr int kLines = sizeof(Vports::initial_i) / sizeof(Vports{}.initial_i[0]);

struct Access {
  bool pending = false;      // not accepted yet
  bool outstanding = false;  // not completed yet
  std::uint64_t delay = 0;   // cycles
  std::uint64_t age = 0;     // cycles
};

struct Completion {
  int port;
  std::uint64_t data;
};

class Bench {
 public:
  explicit Bench(VerilatedContext& context) : context_(context), ports_(&context) {}

  void reset(std::istream& arguments) {
    std::uint64_t seed = 0;
    arguments >> seed;
    for (int line = 0; line < kLines; line++) arguments >> ports_.initial_i[line];
    // Verilator's seeds are positive numbers of 31 bits.
    context_.randSeed(static_cast<int>(seed % 0x7fff'fffe) + 1);
    completions_.clear();
    for (int port = 0; port < kPorts; port++) {
      accesses_[port] = Access{};
      ports_.req_valid_i[port] = 0;
    }
    // State is random before the first reset, so that assertions begin after it.
    context_.assertOn(false);
    ports_.rst_ni = 0;
    for (int i = 0; i < kReset; i++) cycle();
    ports_.rst_ni = 1;
    context_.assertOn(true);
  }

  void begin(std::istream& arguments) {
    int port = 0;
    std::uint64_t delay = 0, write = 0, uncached = 0, line = 0, data = 0;
    arguments >> port >> delay >> write >> uncached >> line >> data;
    accesses_[port] = Access{true, true, delay, 0};
    ports_.req_write_i[port] = write != 0;
    ports_.req_uncached_i[port] = uncached != 0;
    ports_.req_line_i[port] = line;
    ports_.req_data_i[port] = data;
  }

  // Runs to the next completion. Returns false if there is none.
  bool wait() {
    while (completions_.empty()) {
      const int failed = cycle();
      if (failed >= 0) {
        std::printf("F %x\n", failed);
        return false;
      }
      for (int port = 0; port < kPorts; port++) {
        if (accesses_[port].outstanding && accesses_[port].age > kTimeout) {
          std::printf("T %x\n", port);
          return false;
        }
      }
    }
    std::printf("D %x %" PRIx64 "\n", completions_.front().port, completions_.front().data);
    completions_.pop_front();
    return true;
  }

 private:
  // Runs one cycle. Returns the number of an agent that signals `unexpected_o`, or -1.
  int cycle() {
    bool accepted[kPorts] = {};
    for (int port = 0; port < kPorts; port++) {
      Access& access = accesses_[port];
      ports_.req_valid_i[port] = access.pending && access.delay == 0;
      if (access.delay > 0) access.delay--;
      else if (access.outstanding) access.age++;
    }
    ports_.clk_i = 0;
    ports_.eval();
    context_.timeInc(1);
    int failed = -1;
    for (int port = 0; port < kPorts && ports_.rst_ni; port++) {
      accepted[port] = ports_.req_valid_i[port] && ports_.req_ready_o[port];
      if (ports_.rsp_valid_o[port]) {
        completions_.push_back({port, ports_.rsp_data_o[port]});
        accesses_[port].outstanding = false;
      }
    }
    for (int agent = 0; agent <= kPorts && ports_.rst_ni; agent++) {
      if (ports_.unexpected_o[agent]) failed = agent;
    }
    ports_.clk_i = 1;
    ports_.eval();
    context_.timeInc(1);
    for (int port = 0; port < kPorts; port++) {
      if (accepted[port]) accesses_[port].pending = false;
    }
    return failed;
  }

  VerilatedContext& context_;
  Vports ports_;
  Access accesses_[kPorts];
  std::deque<Completion> completions_;
};
}  // namespace

int main(int argc, char** argv) {
  VerilatedContext context;
  context.commandArgs(argc, argv);
  Bench bench{context};
  std::string text;
  while (std::getline(std::cin, text)) {
    std::istringstream arguments{text};
    arguments >> std::hex;
    char command = 0;
    arguments >> command;
    if (command == 'R') {
      bench.reset(arguments);
    } else if (command == 'A') {
      bench.begin(arguments);
    } else if (command == 'W') {
      const bool has_completed = bench.wait();
      std::fflush(stdout);
      if (!has_completed) break;
    }
  }
  return 0;
}
