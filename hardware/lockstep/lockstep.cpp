// C interface of the Verilated home, for crates/rtl/src/lockstep/model.rs, which has the same structs.

#include "Vlockstep.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_fst_c.h"
#endif

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

// Sizes of the arrays below: maxima over all shapes. `kBeatWords` is in 64-bit words, `kAddrBits` the width of a
// register address, and `kAppBits` the width of a beat at the application's memory port.
constexpr unsigned kSlices = 2, kCircuits = 4, kBeatWords = 8, kUnits = 32, kAddrBits = 12, kAppBits = 512;

// Values of all input and output pins, by slice. crates/rtl/src/lockstep/model.rs documents the fields; their order
// must be the same in both files.
struct Inputs {
  uint64_t reset;
  uint64_t rx_valid[kSlices], rx_header[kSlices][kCircuits], rx_data[kSlices][kCircuits][kBeatWords];
  uint64_t rx_last[kSlices];
  uint64_t tx_ready[kSlices];
  uint64_t local_req_valid[kSlices], local_req[kSlices], unlock_valid[kSlices], unlock_line[kSlices], local_rsp_ready[kSlices];
  uint64_t aw_ready[kSlices], w_ready[kSlices], b_valid[kSlices], b_id[kSlices];
  uint64_t ar_ready[kSlices], r_valid[kSlices], r_id[kSlices], r_data[kSlices][kBeatWords], r_last[kSlices];
  uint64_t cfg_aw_valid[kSlices], cfg_aw_addr[kSlices], cfg_w_valid[kSlices], cfg_w_data[kSlices], cfg_w_strb[kSlices];
  uint64_t cfg_b_ready[kSlices], cfg_ar_valid[kSlices], cfg_ar_addr[kSlices], cfg_r_ready[kSlices], change_ready[kSlices];
  uint64_t start, stop;
  uint64_t app_aw_ready[kSlices], app_w_ready[kSlices], app_b_valid[kSlices], app_b_id[kSlices];
  uint64_t app_ar_ready[kSlices], app_r_valid[kSlices], app_r_id[kSlices], app_r_data[kSlices][kBeatWords];
  uint64_t app_r_last[kSlices];
};

struct Outputs {
  uint64_t rx_ready[kSlices];
  uint64_t tx_valid[kSlices], tx_header[kSlices][kCircuits], tx_data[kSlices][kCircuits][kBeatWords];
  uint64_t tx_last[kSlices];
  uint64_t local_req_ready[kSlices], unlock_ready[kSlices], local_rsp_valid[kSlices], local_rsp[kSlices];
  uint64_t aw_valid[kSlices], aw_id[kSlices], aw_addr[kSlices], aw_user[kSlices];
  uint64_t w_valid[kSlices], w_data[kSlices][kBeatWords], w_strb[kSlices], w_last[kSlices], b_ready[kSlices];
  uint64_t ar_valid[kSlices], ar_id[kSlices], ar_addr[kSlices], ar_user[kSlices], r_ready[kSlices];
  uint64_t step_valid[kSlices], step[kSlices][kUnits], busy[kSlices], idle[kSlices];
  uint64_t cfg_aw_ready[kSlices], cfg_w_ready[kSlices], cfg_b_valid[kSlices], cfg_b_resp[kSlices];
  uint64_t cfg_ar_ready[kSlices], cfg_r_valid[kSlices], cfg_r_data[kSlices], cfg_r_resp[kSlices];
  uint64_t change_valid[kSlices], change[kSlices];
  uint64_t app_aw_valid[kSlices], app_aw_id[kSlices], app_aw_addr[kSlices];
  uint64_t app_w_valid[kSlices], app_w_data[kSlices][kBeatWords], app_w_strb[kSlices], app_w_last[kSlices];
  uint64_t app_b_ready[kSlices], app_ar_valid[kSlices], app_ar_id[kSlices], app_ar_addr[kSlices];
  uint64_t app_ar_lines[kSlices], app_r_ready[kSlices];
  uint64_t handshakes[kSlices], handshake_r[kSlices], handshake_r_id[kSlices], handshake_r_data[kSlices][kBeatWords];
  uint64_t handshake_b_id[kSlices], handshake_local[kSlices], handshake_unlock[kSlices];
};

// Assertion messages of the current step; the first failure ends the run. One buffer per thread.
std::string& messages() {
  static thread_local std::string text;
  return text;
}

// Access to bit ranges of signals. Verilator has integers up to 64 bits and arrays of 32-bit words beyond.
template <typename Signal>
void set_bits(Signal& signal, unsigned offset, unsigned bits, uint64_t value) {
  const uint64_t mask = (bits == 64 ? ~uint64_t{0} : ((uint64_t{1} << bits) - 1)) << offset;
  signal = static_cast<Signal>((signal & ~mask) | ((value << offset) & mask));
}

template <typename Signal>
uint64_t get_bits(const Signal& signal, unsigned offset, unsigned bits) {
  const uint64_t value = static_cast<uint64_t>(signal) >> offset;
  return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

template <std::size_t Words>
void set_bits(VlWide<Words>& signal, unsigned offset, unsigned bits, uint64_t value) {
  for (unsigned bit = 0; bit < bits;) {
    const unsigned word = (offset + bit) / 32, bit_in_word = (offset + bit) % 32;
    const unsigned count = bits - bit < 32 - bit_in_word ? bits - bit : 32 - bit_in_word;
    const uint32_t mask = (count == 32 ? ~uint32_t{0} : ((uint32_t{1} << count) - 1)) << bit_in_word;
    signal[word] = (signal[word] & ~mask) | ((static_cast<uint32_t>(value >> bit) << bit_in_word) & mask);
    bit += count;
  }
}

template <std::size_t Words>
uint64_t get_bits(const VlWide<Words>& signal, unsigned offset, unsigned bits) {
  uint64_t value = 0;
  for (unsigned bit = 0; bit < bits;) {
    const unsigned word = (offset + bit) / 32, bit_in_word = (offset + bit) % 32;
    const unsigned count = bits - bit < 32 - bit_in_word ? bits - bit : 32 - bit_in_word;
    const uint32_t mask = count == 32 ? ~uint32_t{0} : (uint32_t{1} << count) - 1;
    value |= static_cast<uint64_t>((signal[word] >> bit_in_word) & mask) << bit;
    bit += count;
  }
  return value;
}

// Access to a beat of `Bits` bits; further words of the buffer are unchanged.
template <unsigned Bits, typename Signal>
void set_beat(Signal& signal, unsigned index, const uint64_t* words) {
  for (unsigned word = 0; word < Bits / 64; word++) set_bits(signal, index * Bits + word * 64, 64, words[word]);
}

template <unsigned Bits, typename Signal>
void get_beat(const Signal& signal, unsigned index, uint64_t* words) {
  for (unsigned word = 0; word < Bits / 64; word++) words[word] = get_bits(signal, index * Bits + word * 64, 64);
}

// A home, its simulated time, and its waveform if one is recorded.
struct Model {
  VerilatedContext context;
  std::unique_ptr<Vlockstep> top;
#if VM_TRACE
  std::unique_ptr<VerilatedFstC> trace;
#endif
};

// The following functions copy one group of a slice's pins each: `set_` to the model, `get_` from the model.

// Link to the remote.
void set_link(Vlockstep& top, unsigned s, const Inputs* in) {
  constexpr unsigned rx = NUM_RX, tx = NUM_TX;
  set_bits(top.rx_valid_i, s * rx, rx, in->rx_valid[s]);
  set_bits(top.rx_last_i, s * rx, rx, in->rx_last[s]);
  set_bits(top.tx_ready_i, s * tx, tx, in->tx_ready[s]);
  for (unsigned c = 0; c < rx; c++) {
    if (!(in->rx_valid[s] >> c & 1)) continue;
    set_bits(top.rx_header_i, (s * rx + c) * 64, 64, in->rx_header[s][c]);
    set_beat<PAYLOAD>(top.rx_data_i, s * rx + c, in->rx_data[s][c]);
  }
}

// Ports of the device, with the permission changes.
void set_device_ports(Vlockstep& top, unsigned s, const Inputs* in) {
  set_bits(top.local_req_valid_i, s, 1, in->local_req_valid[s]);
  set_bits(top.local_req_i, s * 64, 64, in->local_req[s]);
  set_bits(top.unlock_valid_i, s, 1, in->unlock_valid[s]);
  set_bits(top.unlock_line_i, s * 64, 64, in->unlock_line[s]);
  set_bits(top.local_rsp_ready_i, s, 1, in->local_rsp_ready[s]);
  set_bits(top.change_ready_i, s, 1, in->change_ready[s]);
}

// Port to memory.
void set_memory_port(Vlockstep& top, unsigned s, const Inputs* in) {
  set_bits(top.axi_aw_ready_i, s, 1, in->aw_ready[s]);
  set_bits(top.axi_w_ready_i, s, 1, in->w_ready[s]);
  set_bits(top.axi_b_valid_i, s, 1, in->b_valid[s]);
  set_bits(top.axi_b_id_i, s * 8, 8, in->b_id[s]);
  set_bits(top.axi_ar_ready_i, s, 1, in->ar_ready[s]);
  set_bits(top.axi_r_valid_i, s, 1, in->r_valid[s]);
  set_bits(top.axi_r_id_i, s * 8, 8, in->r_id[s]);
  set_bits(top.axi_r_last_i, s, 1, in->r_last[s]);
  if (in->r_valid[s]) set_beat<PAYLOAD>(top.axi_r_data_i, s, in->r_data[s]);
}

// Register port.
void set_register_port(Vlockstep& top, unsigned s, const Inputs* in) {
  set_bits(top.cfg_aw_valid_i, s, 1, in->cfg_aw_valid[s]);
  set_bits(top.cfg_aw_addr_i, s * kAddrBits, kAddrBits, in->cfg_aw_addr[s]);
  set_bits(top.cfg_w_valid_i, s, 1, in->cfg_w_valid[s]);
  set_bits(top.cfg_w_data_i, s * 64, 64, in->cfg_w_data[s]);
  set_bits(top.cfg_w_strb_i, s * 8, 8, in->cfg_w_strb[s]);
  set_bits(top.cfg_b_ready_i, s, 1, in->cfg_b_ready[s]);
  set_bits(top.cfg_ar_valid_i, s, 1, in->cfg_ar_valid[s]);
  set_bits(top.cfg_ar_addr_i, s * kAddrBits, kAddrBits, in->cfg_ar_addr[s]);
  set_bits(top.cfg_r_ready_i, s, 1, in->cfg_r_ready[s]);
}

// Application's memory port.
void set_application_memory(Vlockstep& top, unsigned s, const Inputs* in) {
  set_bits(top.app_aw_ready_i, s, 1, in->app_aw_ready[s]);
  set_bits(top.app_w_ready_i, s, 1, in->app_w_ready[s]);
  set_bits(top.app_b_valid_i, s, 1, in->app_b_valid[s]);
  set_bits(top.app_b_id_i, s * 8, 8, in->app_b_id[s]);
  set_bits(top.app_ar_ready_i, s, 1, in->app_ar_ready[s]);
  set_bits(top.app_r_valid_i, s, 1, in->app_r_valid[s]);
  set_bits(top.app_r_id_i, s * 8, 8, in->app_r_id[s]);
  set_bits(top.app_r_last_i, s, 1, in->app_r_last[s]);
  if (in->app_r_valid[s]) set_beat<kAppBits>(top.app_r_data_i, s, in->app_r_data[s]);
}

// Link to the remote.
void get_link(const Vlockstep& top, unsigned s, Outputs* out) {
  constexpr unsigned rx = NUM_RX, tx = NUM_TX;
  out->rx_ready[s] = get_bits(top.rx_ready_o, s * rx, rx);
  out->tx_valid[s] = get_bits(top.tx_valid_o, s * tx, tx);
  out->tx_last[s] = get_bits(top.tx_last_o, s * tx, tx);
  for (unsigned c = 0; c < tx; c++) {
    if (!(out->tx_valid[s] >> c & 1)) continue;
    out->tx_header[s][c] = get_bits(top.tx_header_o, (s * tx + c) * 64, 64);
    get_beat<PAYLOAD>(top.tx_data_o, s * tx + c, out->tx_data[s][c]);
  }
}

// Ports of the device, with the permission changes.
void get_device_ports(const Vlockstep& top, unsigned s, Outputs* out) {
  out->local_req_ready[s] = get_bits(top.local_req_ready_o, s, 1);
  out->unlock_ready[s] = get_bits(top.unlock_ready_o, s, 1);
  out->local_rsp_valid[s] = get_bits(top.local_rsp_valid_o, s, 1);
  out->local_rsp[s] = get_bits(top.local_rsp_o, s * 64, 64);
  out->change_valid[s] = get_bits(top.change_valid_o, s, 1);
  out->change[s] = get_bits(top.change_o, s * 64, 64);
}

// Transfers between home and application.
void get_handshakes(const Vlockstep& top, unsigned s, Outputs* out) {
  out->handshakes[s] = get_bits(top.handshakes_o, s * 8, 8);
  out->handshake_r[s] = get_bits(top.handshake_r_o, s, 1);
  out->handshake_r_id[s] = get_bits(top.handshake_r_id_o, s * 8, 8);
  if (out->handshake_r[s]) get_beat<PAYLOAD>(top.handshake_r_data_o, s, out->handshake_r_data[s]);
  out->handshake_b_id[s] = get_bits(top.handshake_b_id_o, s * 8, 8);
  out->handshake_local[s] = get_bits(top.handshake_local_o, s * 64, 64);
  out->handshake_unlock[s] = get_bits(top.handshake_unlock_o, s * 64, 64);
}

// Port to memory. `get_handshakes` runs first: `w_data` is also valid in its transfers.
void get_memory_port(const Vlockstep& top, unsigned s, Outputs* out) {
  out->aw_valid[s] = get_bits(top.axi_aw_valid_o, s, 1);
  out->aw_id[s] = get_bits(top.axi_aw_id_o, s * 8, 8);
  out->aw_addr[s] = get_bits(top.axi_aw_addr_o, s * 64, 64);
  out->aw_user[s] = get_bits(top.axi_aw_user_o, s * 8, 8);
  out->w_valid[s] = get_bits(top.axi_w_valid_o, s, 1);
  out->w_strb[s] = get_bits(top.axi_w_strb_o, s * (PAYLOAD / 8), PAYLOAD / 8);
  out->w_last[s] = get_bits(top.axi_w_last_o, s, 1);
  if (out->w_valid[s] || (out->handshakes[s] >> 7)) get_beat<PAYLOAD>(top.axi_w_data_o, s, out->w_data[s]);
  out->b_ready[s] = get_bits(top.axi_b_ready_o, s, 1);
  out->ar_valid[s] = get_bits(top.axi_ar_valid_o, s, 1);
  out->ar_id[s] = get_bits(top.axi_ar_id_o, s * 8, 8);
  out->ar_addr[s] = get_bits(top.axi_ar_addr_o, s * 64, 64);
  out->ar_user[s] = get_bits(top.axi_ar_user_o, s * 8, 8);
  out->r_ready[s] = get_bits(top.axi_r_ready_o, s, 1);
}

// Register port.
void get_register_port(const Vlockstep& top, unsigned s, Outputs* out) {
  out->cfg_aw_ready[s] = get_bits(top.cfg_aw_ready_o, s, 1);
  out->cfg_w_ready[s] = get_bits(top.cfg_w_ready_o, s, 1);
  out->cfg_b_valid[s] = get_bits(top.cfg_b_valid_o, s, 1);
  out->cfg_b_resp[s] = get_bits(top.cfg_b_resp_o, s * 2, 2);
  out->cfg_ar_ready[s] = get_bits(top.cfg_ar_ready_o, s, 1);
  out->cfg_r_valid[s] = get_bits(top.cfg_r_valid_o, s, 1);
  out->cfg_r_data[s] = get_bits(top.cfg_r_data_o, s * 64, 64);
  out->cfg_r_resp[s] = get_bits(top.cfg_r_resp_o, s * 2, 2);
}

// Application's memory port.
void get_application_memory(const Vlockstep& top, unsigned s, Outputs* out) {
  out->app_aw_valid[s] = get_bits(top.app_aw_valid_o, s, 1);
  out->app_aw_id[s] = get_bits(top.app_aw_id_o, s * 8, 8);
  out->app_aw_addr[s] = get_bits(top.app_aw_addr_o, s * 64, 64);
  out->app_w_valid[s] = get_bits(top.app_w_valid_o, s, 1);
  out->app_w_strb[s] = get_bits(top.app_w_strb_o, s * 64, 64);
  out->app_w_last[s] = get_bits(top.app_w_last_o, s, 1);
  if (out->app_w_valid[s]) get_beat<kAppBits>(top.app_w_data_o, s, out->app_w_data[s]);
  out->app_b_ready[s] = get_bits(top.app_b_ready_o, s, 1);
  out->app_ar_valid[s] = get_bits(top.app_ar_valid_o, s, 1);
  out->app_ar_id[s] = get_bits(top.app_ar_id_o, s * 8, 8);
  out->app_ar_addr[s] = get_bits(top.app_ar_addr_o, s * 64, 64);
  out->app_ar_lines[s] = get_bits(top.app_ar_lines_o, s * 8, 8);
  out->app_r_ready[s] = get_bits(top.app_r_ready_o, s, 1);
}

// Units and their steps.
void get_units(const Vlockstep& top, unsigned s, Outputs* out) {
  constexpr unsigned units = NUM_UNITS;
  out->idle[s] = get_bits(top.idle_o, s, 1);
  out->busy[s] = get_bits(top.busy_o, s * units, units);
  out->step_valid[s] = get_bits(top.step_valid_o, s * units, units);
  for (unsigned u = 0; u < units; u++) {
    if (out->step_valid[s] >> u & 1) out->step[s][u] = get_bits(top.step_o, (s * units + u) * 64, 64);
  }
}

// Evaluates the model with the given clock, and advances time.
void eval_phase(Model& model, bool clock) {
  model.top->clk_i = clock;
  model.top->eval();
#if VM_TRACE
  if (model.trace) model.trace->dump(model.context.time());
#endif
  model.context.timeInc(1);
}

}  // namespace

// Replaces Verilator's handler of failed assertions, which ends the process.
void vl_stop(const char* file, int line, const char*) VL_MT_UNSAFE {
  if (messages().empty()) messages() = std::string("assertion at ") + file + ":" + std::to_string(line);
}

// Collects the text of assertion messages; see lockstep.h.
int lockstep_printf(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  messages() += text;
  return length;
}

extern "C" {

// Creates a home whose ROM image is the file `rom`. `extra_arguments` are further plusargs without `+`.
void* lockstep_new(const char* rom, const char* extra_arguments) {
  auto model = std::make_unique<Model>();
  // `extra_arguments` is separated by spaces.
  std::vector<std::string> command_line = {"lockstep", std::string("+rom=") + rom};
  std::istringstream words(extra_arguments);
  for (std::string word; words >> word;) command_line.push_back("+" + word);
  std::vector<const char*> arguments;
  for (const std::string& text : command_line) arguments.push_back(text.c_str());
  messages().clear();
  model->context.commandArgs(static_cast<int>(arguments.size()), arguments.data());
  // Registers without reset and unknown values are random; the seed makes them reproducible.
  model->context.randReset(2);
  model->context.randSeed(1);
#if VM_TRACE
  model->context.traceEverOn(true);
#endif
  model->top = std::make_unique<Vlockstep>(&model->context);
  return model.release();
}

// Destroys a home.
void lockstep_delete(void* pointer) {
  auto* model = static_cast<Model*>(pointer);
  // A model's resources are returned to the thread's context, which may be that of another model and already destroyed.
  Verilated::threadContextp(&model->context);
  delete model;
}

// Records a waveform of the following cycles into a file. Returns 0 on failure, or if this build has no waveforms.
int lockstep_trace(void* pointer, const char* file) {
#if VM_TRACE
  auto* model = static_cast<Model*>(pointer);
  model->trace = std::make_unique<VerilatedFstC>();
  model->top->trace(model->trace.get(), 99);
  model->trace->open(file);
  if (!model->trace->isOpen()) model->trace.reset();
  return model->trace != nullptr;
#else
  (void)pointer, (void)file;
  return 0;
#endif
}

// Simulates one cycle: evaluates the outputs for the inputs, then the clock edge. Returns assertion messages, or null.
const char* lockstep_step(void* pointer, const Inputs* in, Outputs* out) {
  auto* model = static_cast<Model*>(pointer);
  messages().clear();
  Vlockstep& top = *model->top;
  top.rst_ni = !in->reset;
  top.start_i = in->start != 0;
  top.stop_i = in->stop != 0;
  for (unsigned s = 0; s < kSlices; s++) {
    set_link(top, s, in);
    set_device_ports(top, s, in);
    set_memory_port(top, s, in);
    set_register_port(top, s, in);
    set_application_memory(top, s, in);
  }
  eval_phase(*model, false);
  for (unsigned s = 0; s < kSlices; s++) {
    get_link(top, s, out);
    get_device_ports(top, s, out);
    get_handshakes(top, s, out);
    get_memory_port(top, s, out);
    get_register_port(top, s, out);
    get_application_memory(top, s, out);
    get_units(top, s, out);
  }
  eval_phase(*model, true);
  return messages().empty() ? nullptr : messages().c_str();
}

}  // extern "C"
