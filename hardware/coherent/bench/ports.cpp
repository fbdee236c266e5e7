// Accesses at the processor ports of a system, by commands on the standard input, one a line; numbers are hexadecimal:
//
//   R SEED WORD...                             new system; the seed of all random choices, and the word of each line
//   A PORT TAG DELAY OP WRITE UNCACHED LINE DATA COMPARE  an access that the port presents after a delay in cycles
//   W                                          wait for a completion
//   E                                          end of the accesses: wait until no message is in flight
//
// Answers: `D PORT TAG DATA CYCLES TIME` for the next completion, with the cycles since the port presented the access and
// since the start, and `E` at the end. Failures: `T PORT` for an access without progress,
// `X PORT` for an answer without an access, `O PORT` for an operation that the cache does not have, `F AGENT` for an agent that signals `unexpected_o`, and `L` for messages
// that stay in flight. The program ends after a failure, and at the end of its input.
#include "Vports.h"
#include "verilated.h"
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <iostream>
#include <list>
#include <memory>
#include <sstream>
#include <string>

namespace {
// Cycles without progress of an access.
constexpr std::uint64_t kTimeout = 20'000;
// Cycles without a message in flight, after which the system is at rest.
constexpr std::uint64_t kQuiet = 200;
// Cycles of a reset.
constexpr int kReset = 4;

constexpr int kPorts = sizeof(Vports::req_valid_i) / sizeof(Vports{}.req_valid_i[0]);
constexpr int kLines = sizeof(Vports::initial_i) / sizeof(Vports{}.initial_i[0]);

struct Access {
  std::uint64_t tag, delay, op, write, uncached, line, data, compare;  // the delay is in cycles
  std::uint64_t age = 0;                                  // cycles since the port presented it
  bool accepted = false;
};

struct Completion {
  int port;
  std::uint64_t tag;
  std::uint64_t data;
  std::uint64_t cycles;
  std::uint64_t time;
};

// A system from its reset on. Nothing of an earlier system remains: all state before the reset, and all random choices,
// follow from the seed.
class Bench {
 public:
  Bench(int argc, char** argv, std::istream& arguments) : ports_(&prepare(argc, argv, arguments)) {
    for (int line = 0; line < kLines; line++) arguments >> ports_.initial_i[line];
    for (int port = 0; port < kPorts; port++) {
      ports_.req_valid_i[port] = 0;
      presented_[port] = accesses_[port].end();
    }
    ports_.rst_ni = 0;
    for (int i = 0; i < kReset; i++) cycle();
    ports_.rst_ni = 1;
    context_.assertOn(true);
  }

  void begin(std::istream& arguments) {
    int port = 0;
    Access access{};
    arguments >> port >> access.tag >> access.delay >> access.op >> access.write >> access.uncached >> access.line >>
        access.data >> access.compare;
    accesses_[port].push_back(access);
  }

  // Runs to the next completion. Returns false after a failure.
  bool wait() {
    while (completions_.empty()) {
      if (!cycle()) return false;
    }
    const Completion& next = completions_.front();
    std::printf("D %x %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 "\n", next.port, next.tag, next.data, next.cycles,
                next.time);
    completions_.pop_front();
    return true;
  }

  // Runs until the system is at rest. Returns false after a failure.
  bool end() {
    std::uint64_t quiet = 0;
    for (std::uint64_t cycles = 0; quiet < kQuiet; cycles++) {
      if (cycles > kTimeout) return fail('L');
      if (!cycle()) return false;
      quiet = ports_.in_flight_o == 0 ? quiet + 1 : 0;
    }
    std::printf("E\n");
    return true;
  }

 private:
  VerilatedContext& prepare(int argc, char** argv, std::istream& arguments) {
    std::uint64_t seed = 0;
    arguments >> seed;
    context_.commandArgs(argc, argv);
    // Verilator's seeds are positive numbers of 31 bits.
    context_.randSeed(static_cast<int>(seed % 0x7fff'fffe) + 1);
    // State is random before the reset, so that assertions begin after it.
    context_.assertOn(false);
    return context_;
  }

  static bool fail(char kind) {
    std::printf("%c\n", kind);
    return false;
  }

  static bool fail(char kind, int number) {
    std::printf("%c %x\n", kind, number);
    return false;
  }

  // Presents the first access whose delay has passed, until the port accepts it.
  void present(int port) {
    auto& accesses = accesses_[port];
    if (presented_[port] == accesses.end()) {
      presented_[port] = std::find_if(accesses.begin(), accesses.end(),
                                      [](const Access& access) { return !access.accepted && access.delay == 0; });
    }
    const auto presented = presented_[port];
    ports_.req_valid_i[port] = presented != accesses.end();
    if (presented != accesses.end()) {
      ports_.req_tag_i[port] = presented->tag;
      ports_.req_op_i[port] = presented->op;
      ports_.req_compare_i[port] = presented->compare;
      ports_.req_write_i[port] = presented->write != 0;
      ports_.req_uncached_i[port] = presented->uncached != 0;
      ports_.req_line_i[port] = presented->line;
      ports_.req_data_i[port] = presented->data;
    }
    for (Access& access : accesses) {
      if (access.delay > 0) access.delay--;
      else if (access.accepted || (presented != accesses.end() && &access == &*presented)) access.age++;
    }
  }

  // Records the answer of a port. Returns false if it has no such access.
  bool answer(int port) {
    auto& accesses = accesses_[port];
    const std::uint64_t tag = ports_.rsp_tag_o[port];
    const auto found = std::find_if(accesses.begin(), accesses.end(),
                                    [tag](const Access& access) { return access.accepted && access.tag == tag; });
    if (found == accesses.end()) return false;
    completions_.push_back({port, tag, ports_.rsp_data_o[port], found->age - 1, context_.time() / 2});
    accesses.erase(found);
    return true;
  }

  // Runs one cycle. Returns false after a failure.
  bool cycle() {
    bool accepted[kPorts] = {};
    for (int port = 0; port < kPorts; port++) present(port);
    ports_.clk_i = 0;
    ports_.eval();
    context_.timeInc(1);
    for (int port = 0; port < kPorts && ports_.rst_ni; port++) {
      accepted[port] = ports_.req_valid_i[port] && ports_.req_ready_o[port];
      if (!ports_.rsp_valid_o[port]) continue;
      if (ports_.rsp_error_o[port]) return fail('O', port);
      if (!answer(port)) return fail('X', port);
    }
    for (int agent = 0; agent <= kPorts && ports_.rst_ni; agent++) {
      if (ports_.unexpected_o[agent]) return fail('F', agent);
    }
    ports_.clk_i = 1;
    ports_.eval();
    context_.timeInc(1);
    for (int port = 0; port < kPorts; port++) {
      if (accepted[port]) {
        presented_[port]->accepted = true;
        presented_[port] = accesses_[port].end();
      }
      for (const Access& access : accesses_[port]) {
        if (access.age > kTimeout) return fail('T', port);
      }
    }
    return true;
  }

  VerilatedContext context_;
  Vports ports_;
  std::list<Access> accesses_[kPorts];             // of each port, in the order of the commands
  std::list<Access>::iterator presented_[kPorts];  // access that the port presents; the end for none
  std::deque<Completion> completions_;
};
}  // namespace

int main(int argc, char** argv) {
  std::unique_ptr<Bench> bench;
  std::string text;
  bool works = true;
  while (works && std::getline(std::cin, text)) {
    std::istringstream arguments{text};
    arguments >> std::hex;
    char command = 0;
    arguments >> command;
    if (command == 'R') {
      bench.reset();
      bench = std::make_unique<Bench>(argc, argv, arguments);
    } else if (command == 'A') {
      bench->begin(arguments);
    } else if (command == 'W') {
      works = bench->wait();
    } else if (command == 'E') {
      works = bench->end();
    }
    std::fflush(stdout);
  }
  return 0;
}
