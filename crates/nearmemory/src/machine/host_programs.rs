//! Programs on hosts: turns of their cores, their system calls, and their end.

use super::{disassemble, ClockedWorld, Machine, RunOutcome, Runner, QUANTUM};
use crate::events::{CoreId, StallReason};
use crate::host::{Evictions, Host, HostPort};
use crate::lines::LineBuffer;
use crate::platform::Platform;
use cohkit_riscv::system::{ServiceOutcome, System, World};
use cohkit_riscv::{Exception, Extensions, FlatMemory, Latencies, Memory, PagedMemory, Stop};

/// Calls by which cores of a host start each other, with their return codes. They are those of the "hart state
/// management" extension of RISC-V's supervisor binary interface (chapter 9), with the states started and stopped only.
mod hsm {
    /// Identifier of the extension, in register a7.
    pub const EXTENSION: u64 = 0x48_534d;
    /// Function, in register a6: starts the core in a0 at the address in a1, with the argument in a2.
    pub const START: u64 = 0;
    /// Function: stops the calling core.
    pub const STOP: u64 = 1;
    /// Function: returns the state of the core in a0, 0 if it is started and 1 if it is stopped.
    pub const STATUS: u64 = 2;
    /// Error in a0: the function is unknown.
    pub const NOT_SUPPORTED: u64 = -2_i64 as u64;
    /// Error in a0: there is no such core.
    pub const INVALID: u64 = -3_i64 as u64;
    /// Error in a0: the core is already started.
    pub const ALREADY: u64 = -6_i64 as u64;
}

/// A host with the pipelines of its cores, and its program.
pub(super) struct HostSystem {
    /// Caches, memory and outstanding requests.
    pub(super) host: Host,
    /// Cores, by index. Core 0 runs the main program.
    pub(super) cores: Vec<Runner>,
    /// State of the program's system calls.
    pub(super) system: System,
    /// Unfinished line of the program's output.
    pub(super) output: LineBuffer,
    /// Status with which the program has exited; `None` before its end.
    pub(super) exit_code: Option<i32>,
}

impl HostSystem {
    /// Creates the host of index `number` with a program in its memory, whose first address is `start`, and its entry.
    pub(super) fn new(
        platform: &Platform,
        number: usize,
        (main, start): (FlatMemory, u64),
        system: System,
        entry: u64,
        evictions: Option<Evictions>,
    ) -> HostSystem {
        let core = |number| Runner {
            pages: platform.pages(),
            ..Runner::new(number, Extensions::HOST, Latencies::small())
        };
        let stack = main.end() - 64;
        let mut host_system = HostSystem {
            host: Host::new(platform, number, main, start, evictions),
            cores: (0..platform.cores.value as usize).map(core).collect(),
            system,
            output: LineBuffer::default(),
            exit_code: None,
        };
        let main_core = &mut host_system.cores[0];
        main_core.hart.pc = entry;
        main_core.started = true;
        // Programs with a C library set their own stack pointer.
        main_core.hart.set_x(2, stack);
        main_core.hart.stack_limits = host_system.system.stack_limits();
        host_system
    }
}

impl Machine {
    /// Runs a core of a host until it waits, must let other events happen, or has used up its quantum.
    pub(super) fn run_host_turn(&mut self, host: usize, core: usize, world: &mut impl World) {
        let cycle = self.platform.host_cycle.value;
        let core_id = CoreId::Host { host, core };
        let host_system = &mut self.hosts[host];
        let runner = &mut host_system.cores[core];
        runner.timed.now = runner.timed.now.max(self.now.div_ceil(cycle));
        let (start_cycle, next_event_time) = (runner.timed.now, self.queue.next_event_time());
        let until = match host_system.host.is_shared() {
            true => (next_event_time / cycle).clamp(start_cycle, start_cycle + QUANTUM) + 1,
            false => start_cycle + QUANTUM,
        };
        let mut port = HostPort::new(&mut host_system.host, &mut self.queue, core);
        let (stall_reason, end);
        if self.functional {
            port.now = self.now;
            end = runner.run_fast(&mut port, next_event_time, cycle);
            stall_reason = port.stall_reason;
        } else {
            let mut port = PagedMemory::new(port, std::mem::take(&mut runner.pages));
            end = runner.timed.run(&mut runner.hart, &mut port, until).1;
            stall_reason = port.memory.stall_reason;
            runner.pages = port.pages;
        }
        if let Err(Stop::Exception(_)) = end {
            self.queue.change();
        }
        match end {
            Ok(()) => {}
            // Waits for a register, or for state that the exception's handler may read.
            Err(Stop::Wait) => {
                runner.is_waiting = stall_reason != StallReason::Early;
                if let StallReason::Until(time) = stall_reason {
                    runner.schedule(&mut self.queue, core_id, time, cycle);
                    return;
                }
            }
            Err(Stop::Exception(_)) if runner.hart.pending_loads() != 0 => runner.is_waiting = true,
            Err(Stop::Exception(Exception::MachineCall)) if runner.hart.x(17) == hsm::EXTENSION => {
                runner.timed.now += 1;
                if !self.execute_hart_call(host, core) {
                    return;
                }
            }
            Err(Stop::Exception(exception)) => {
                if !self.serve_host_exception(host, core, exception, world) {
                    return;
                }
            }
        }
        let runner = &mut self.hosts[host].cores[core];
        if !runner.is_waiting {
            runner.schedule(&mut self.queue, core_id, self.now, cycle);
        }
    }

    /// Serves an exception of a core of a host. Returns false if the core does not continue.
    fn serve_host_exception(
        &mut self,
        host: usize,
        core: usize,
        exception: Exception,
        world: &mut impl World,
    ) -> bool {
        let cycle = self.platform.host_cycle.value;
        let HostSystem {
            host: memory,
            cores,
            system,
            output,
            ..
        } = &mut self.hosts[host];
        let runner = &mut cores[core];
        let pc = runner.hart.pc;
        let mut clocked_world = ClockedWorld {
            world: &mut *world,
            now: runner.timed.now.saturating_mul(cycle) / 1000,
            binaries: Some(&mut self.binaries),
            output,
        };
        let hart = &mut runner.hart;
        let served = system.serve(exception, hart, memory, &mut clocked_world);
        runner.timed.now += 1;
        match served {
            ServiceOutcome::Done => true,
            ServiceOutcome::Exit(code) => {
                self.end_host_program(host, code, world);
                false
            }
            ServiceOutcome::Exception(exception) => {
                let instruction = disassemble(hart, |address| memory.main.memory.fetch(address));
                self.outcomes.push(RunOutcome::Exception {
                    host,
                    exception,
                    pc,
                    instruction,
                    jumped_from: hart.jumped_from(),
                });
                false
            }
        }
    }

    /// Ends the program of a host. The run ends with the last one: with the first status other than 0, in the order of
    /// the hosts.
    fn end_host_program(&mut self, host: usize, code: i32, world: &mut impl World) {
        self.hosts[host].exit_code = Some(code);
        let exit_codes = self.hosts.iter().map(|host_system| host_system.exit_code);
        if let Some(exit_codes) = exit_codes.collect::<Option<Vec<i32>>>() {
            let failure = exit_codes.into_iter().find(|code| *code != 0);
            self.outcomes.push(RunOutcome::Exit(failure.unwrap_or(0)));
            return;
        }
        let host_system = &mut self.hosts[host];
        for (core, runner) in host_system.cores.iter_mut().enumerate() {
            runner.started = false;
            runner.next_turn = None;
            runner.is_waiting = false;
            if let Some(timeline) = &mut self.queue.timeline {
                timeline.end_program(CoreId::Host { host, core }, self.now);
            }
        }
        // Errors are ignored here: the failing stream reports them itself.
        let _ = host_system.output.flush(world);
    }

    /// Executes a hart-state-management call of a core of a host. Returns false if the calling core stops.
    fn execute_hart_call(&mut self, host: usize, core: usize) -> bool {
        let cycle = self.platform.host_cycle.value;
        let cores = &mut self.hosts[host].cores;
        let now = cores[core].timed.now.saturating_mul(cycle);
        let hart = &cores[core].hart;
        let [function, hart_id, entry, argument] =
            [16, 10, 11, 12].map(|register| hart.x(register));
        let target = usize::try_from(hart_id).ok();
        let target = target.filter(|target| *target < cores.len());
        let result = match (function, target) {
            (hsm::STOP, _) => {
                cores[core].started = false;
                if let Some(timeline) = &mut self.queue.timeline {
                    timeline.end_program(CoreId::Host { host, core }, now);
                }
                // A later start overwrites the program counter; otherwise execution would continue after the call.
                let hart = &mut cores[core].hart;
                hart.pc = hart.pc.wrapping_add(4);
                return false;
            }
            (hsm::START | hsm::STATUS, None) => [hsm::INVALID, 0],
            (hsm::START, Some(target)) if cores[target].started => [hsm::ALREADY, 0],
            (hsm::START, Some(target)) => {
                let runner = &mut cores[target];
                runner.started = true;
                runner.hart.pc = entry;
                runner.hart.set_x(10, hart_id);
                runner.hart.set_x(11, argument);
                runner.timed.now = runner.timed.now.max(now.div_ceil(cycle));
                if let Some(timeline) = &mut self.queue.timeline {
                    timeline.begin_program(CoreId::Host { host, core: target }, "thread", now);
                }
                runner.schedule(
                    &mut self.queue,
                    CoreId::Host { host, core: target },
                    now,
                    cycle,
                );
                [0, 0]
            }
            (hsm::STATUS, Some(target)) => [0, u64::from(!cores[target].started)],
            _ => [hsm::NOT_SUPPORTED, 0],
        };
        let hart = &mut cores[core].hart;
        hart.set_x(10, result[0]);
        hart.set_x(11, result[1]);
        hart.pc = hart.pc.wrapping_add(4);
        true
    }
}
