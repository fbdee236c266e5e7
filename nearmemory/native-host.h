// A host as a native program: implements host.h over ordinary memory and threads.

#ifndef NEARMEMORY_NATIVE_HOST_H
#define NEARMEMORY_NATIVE_HOST_H

#include "nearmemory/native.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

// The cores, and the current thread's core: shared by all source files of a program.
__attribute__((weak)) struct nm_native_core *nm_native_cores;
__attribute__((weak)) _Thread_local struct nm_native_core *nm_native_current;

// Returns the array of all cores; allocates it at the first call. The first call must not be concurrent.
static inline struct nm_native_core *nm_native_all(void) {
  struct nm_native_core *all = nm_native_cores;
  if (all) return all;
  nm_native_cores = all = aligned_alloc(128, NM_NATIVE_CORES * sizeof *all);
  if (!all) abort();
  memset(all, 0, NM_NATIVE_CORES * sizeof *all);
  for (uint64_t i = 0; i < NM_NATIVE_CORES; i++) {
    all[i].all = all, all[i].number = i;
    pthread_mutex_init(&all[i].mutex, NULL);
  }
  return all;
}

// Returns a core. An invalid number is reported and ends the process, like an access to unmapped memory.
static inline struct nm_native_core *nm_native_core(uint64_t core) {
  if (core < NM_NATIVE_CORES) return &nm_native_all()[core];
  fprintf(stderr, "there is no core %lu; there are %d, from 0 on\n", (unsigned long)core, NM_NATIVE_CORES);
  exit(1);
}

// The functions of host.h, which describes them. Caches are coherent, so cleaning, flushing and giving memory do
// nothing.
static inline uint64_t nm_open(void) { return NM_NATIVE_CORES; }
// The process is the only host.
static inline uint64_t nm_host(void) { return 0; }
static inline uint64_t nm_hosts(void) { return 1; }
// A typical size if the system does not report one.
static inline uint64_t nm_last_cache(void) {
  long bytes = -1;
#ifdef _SC_LEVEL3_CACHE_SIZE
  bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  return bytes > 0 ? bytes : 16 << 20;
}
// A typical number of lines in flight.
static inline uint64_t nm_last_cache_misses(void) { return 64; }
static inline enum nm_state nm_state(uint64_t core) {
  return (enum nm_state)__atomic_load_n(&nm_native_core(core)->state, __ATOMIC_ACQUIRE);
}
static inline int nm_runs(uint64_t core) { return nm_state(core) == NM_RUNNING; }
static inline int nm_status(uint64_t core) { return nm_native_core(core)->status; }
static inline uint64_t nm_counter(enum nm_counter which) { return (void)which, 0; }
static inline struct nm_registers *nm_registers_of(uint64_t core, uint64_t number) {
  return (struct nm_registers *)&nm_native_core(core)->registers[number * 2];
}
static inline volatile uint64_t *nm_line_of(uint64_t core, uint64_t line) { return nm_native_core(core)->lines[line]; }
static inline void nm_read_line(uint64_t core, uint64_t line, uint64_t words[16]) {
  nm_native_access(nm_native_core(core), line, 0, words);
}
static inline void nm_write_line(uint64_t core, uint64_t line, const uint64_t words[16]) {
  nm_native_access(nm_native_core(core), line, 1, (uint64_t *)words);
}
static inline volatile void *nm_uncached(volatile void *far) { return far; }
static inline void *nm_far_alloc(uint64_t bytes) {
  uint64_t rounded = (bytes + NM_LINE - 1) / NM_LINE * NM_LINE;
  void *far = rounded < bytes ? NULL : aligned_alloc(NM_LINE, rounded);
  if (far) memset(far, 0, rounded);
  return far;
}
static inline void nm_prefetch(const volatile void *line) { __builtin_prefetch((const void *)line); }
static inline void nm_clean_now(volatile void *line) { (void)line; }
static inline void nm_prefetch_far(const volatile void *line) { __builtin_prefetch((const void *)line); }
static inline void nm_give(uint64_t core, volatile void *far, uint64_t bytes) { (void)core, (void)far, (void)bytes; }

// The file of a binary according to NEARMEMORY_CP: NAME=FILE, separated by commas. Errors in it are reported on
// standard error, as the command does.
static inline FILE *nm_binary_file(const char *name) {
  const char *list = getenv("NEARMEMORY_CP");
  size_t length = strlen(name);
  for (; list && *list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL) {
    if (strncmp(list, name, length) != 0 || list[length] != '=') continue;
    char path[4096];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(list + length + 1, ","), list + length + 1);
    FILE *file = fopen(path, "r");
    if (!file) fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return file;
  }
  fprintf(stderr, "no channel program is named `%s`\n  help: NEARMEMORY_CP=%s=FILE names one\n", name, name);
  return NULL;
}

// Thread of a core: runs its program, releases what waits for it, and publishes its end.
static void *nm_native_thread(void *argument) {
  struct nm_native_core *core = argument;
  int (*run)(struct nm_native_core *) = (int (*)(struct nm_native_core *))dlsym(core->library, "nm_native_run");
  nm_native_current = core;
  core->status = sigsetjmp(core->stop_target, 1) ? -1 : run(core);
  nm_native_current = NULL;
  // Releases held requests, which no program would release any more.
  pthread_mutex_lock(&core->mutex);
  memset(core->locks, 0, sizeof core->locks);
  while (core->held) nm_native_release(core, core->held->line, core->held->kind);
  pthread_mutex_unlock(&core->mutex);
  // Takes the words that other cores have sent or still send to this program, so that its successor does not receive
  // them.
  for (int i = 0; i < NM_NATIVE_CORES; i++) {
    struct nm_native_fifo *fifo = &core->from[i];
    uint64_t sent = __atomic_load_n(&fifo->sent, __ATOMIC_ACQUIRE), words = sent & ~NM_NATIVE_END;
    __atomic_store_n(&fifo->taken, words, __ATOMIC_RELEASE);
    if (sent != words) __atomic_store_n(&fifo->sent, words, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&core->state, NM_EXITED, __ATOMIC_RELEASE);
  return NULL;
}

// Program counter of the interrupted thread; 0 if the platform is unknown.
static inline uintptr_t nm_native_pc(void *context) {
#if defined(__x86_64__)
  return ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  return ((ucontext_t *)context)->uc_mcontext.pc;
#else
  return (void)context, 0;
#endif
}

// Signal that stops a program.
#define NM_NATIVE_SIGNAL (SIGRTMIN + 4)

// Stops this thread's program if it is in its own code: elsewhere it may hold a lock that others need. A program that
// is elsewhere ends where it leaves its section, or at a later signal.
static void nm_native_handle_stop(int signal, siginfo_t *info, void *context) {
  struct nm_native_core *core = nm_native_current;
  uintptr_t pc = nm_native_pc(context);
  (void)signal, (void)info;
  if (core && !core->busy && pc >= core->code && pc < core->code_end) siglongjmp(core->stop_target, 1);
}

// Stops the program on a core, if one runs. (On unknown processors, only where it leaves a section; otherwise waits
// until it ends.)
static inline void nm_stop(uint64_t number) {
  struct nm_native_core *core = nm_native_core(number);
  struct sigaction action = {.sa_sigaction = nm_native_handle_stop, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(NM_NATIVE_SIGNAL, &action, NULL);
  core->stopping = 1;
  while (nm_runs(number)) {
    pthread_kill(core->thread, NM_NATIVE_SIGNAL);
    // Without a pause, the thread could spend all its time in the handler.
    nm_native_sleep(50000);
  }
}

// Finds the address range of a library's code.
static inline void nm_native_code(struct nm_native_core *core) {
  Dl_info info;
  core->code = core->code_end = 0;
  if (!dladdr(dlsym(core->library, "nm_native_run"), &info)) return;
  const ElfW(Ehdr) *file = info.dli_fbase;
  const ElfW(Phdr) *segments = (const ElfW(Phdr) *)((const char *)file + file->e_phoff);
  for (int i = 0; i < file->e_phnum; i++)
    if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X) {
      core->code = (uintptr_t)file + segments[i].p_vaddr;
      core->code_end = core->code + segments[i].p_memsz;
    }
}

// Returns an error text if a binary is not a library of this machine; the loader would report a missing file instead.
static const char *nm_native_binary_error(const void *binary, uint64_t length) {
  ElfW(Ehdr) header;
  Dl_info own_info;
  if (length < sizeof header || memcmp(binary, ELFMAG, SELFMAG)) return "it is no ELF file";
  memcpy(&header, binary, sizeof header);
  if (!dladdr((const void *)nm_native_handle_stop, &own_info)) return NULL;
  if (header.e_machine == ((const ElfW(Ehdr) *)own_info.dli_fbase)->e_machine) return NULL;
  if (header.e_machine != EM_RISCV) return "it is for processors of another kind";
  return "it is for the simulator's cores (RISC-V); natively a library of this machine is loaded, see native.flags";
}

// Loads a library from a private file, so that each load has its own variables. Returns NULL after printing the reason
// to standard error.
static void *nm_native_load(const void *binary, uint64_t length) {
  const char *error_text = nm_native_binary_error(binary, length);
  if (error_text) return fprintf(stderr, "this is no channel program: %s\n", error_text), NULL;
  char path[40];
  int file = memfd_create("channel", MFD_CLOEXEC);
  if (file < 0) return NULL;
  void *library = NULL;
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  if (write(file, binary, length) == (ssize_t)length) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  // The loader returns an open library for a repeated name, so the number is not reused.
  if (library && !dlsym(library, "nm_native_run")) library = NULL;
  const char *error = library ? NULL : dlerror();
  if (!library) fprintf(stderr, "this is no channel program: %s\n", error ? error : "the library has no NM_CHANNEL");
  return library;
}

static inline int nm_start(uint64_t number, const void *binary, uint64_t length, const uint64_t words[4], int trusted) {
  struct nm_native_core *core = nm_native_core(number);
  (void)trusted;
  if (length > NM_BINARY) return NM_TOO_LONG;
  if (core->state == NM_RUNNING) return NM_BUSY;
  if (core->thread) pthread_join(core->thread, NULL);
  core->thread = 0;
  if (core->library) dlclose(core->library);
  core->library = nm_native_load(binary, length);
  if (!core->library) return core->state = NM_REFUSED, NM_REFUSED_BINARY;
  memset(core->lines, 0, sizeof core->lines);
  memset(core->registers, 0, sizeof core->registers);
  for (int i = 0; i < 4; i++) core->words[i] = words ? words[i] : 0;
  nm_native_code(core);
  core->streamed = core->fetches = core->stores = 0;
  core->busy = core->stopping = 0;
  core->state = NM_RUNNING;
  if (pthread_create(&core->thread, NULL, nm_native_thread, core)) {
    core->thread = 0;
    return core->state = NM_REFUSED, NM_REFUSED_BINARY;
  }
  return 0;
}

// Faults are not reported per program: they end the whole process.
static inline struct nm_fault nm_fault(uint64_t core) { return (void)core, (struct nm_fault){0, 0, 0}; }

#endif
