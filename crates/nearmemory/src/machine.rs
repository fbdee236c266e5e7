//! Simulation of the whole machine in time: a host with its program, the device, and the link between them.

use crate::binaries::Binaries;
use crate::controller::{FETCH, PRIVATE, STORE};
use crate::copy::{Transfer, TransferError};
use crate::device::{CallMemory, Device, MccPort, PendingStart, State};
use crate::events::{CoreId, Event, StallReason};
use crate::host::{Evictions, Host, HostPort, FAR};
use crate::lines::LineBuffer;
use crate::platform::Platform;
use crate::polling::{Poll, Window};
use crate::queue::Queue;
use crate::races::{Race, RaceDetector, Site};
use crate::timeline::Timeline;
use cohkit_riscv::elf::Image;
use cohkit_riscv::system::{Errno, FilePosition, OpenMode, ServiceOutcome, System, World};
use cohkit_riscv::{
    Exception, Extensions, FastInterpreter, FlatMemory, Hart, Latencies, Memory, Mode, Op,
    PagedMemory, Pages, Reply, Stop, TimedInterpreter,
};
use cohkit_timeline::{Filter, Recorded};
use cohkit_units::Time;

/// Maximum number of cycles that a core runs ahead of the others without an access to shared state. The event loop then
/// regains control, even if the core never accesses shared state.
const QUANTUM: u64 = 1 << 16;
/// Minimum number of instructions per turn of a core in functional simulation, to amortise the event of a turn.
const SLICE: u64 = 64;

/// Calls by which cores of the host start each other, with their return codes. They are those of the "hart state
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

/// A core with its pipeline models and its schedule.
struct Runner {
    /// Registers and program counter.
    hart: Hart,
    /// Interpreter with a pipeline model. Its time, in the core's cycles, is also that of functional simulation.
    timed: TimedInterpreter,
    /// Interpreter of functional simulation.
    fast: FastInterpreter,
    /// Address translation of a host core.
    pages: Pages,
    /// True while a host core is started.
    started: bool,
    /// Time of the next turn, in picoseconds; `None` if the core waits for an event or has no program.
    next_turn: Option<Time>,
    /// True while the core waits for an event.
    is_waiting: bool,
}

impl Runner {
    fn new(number: usize, extensions: Extensions, latencies: Latencies) -> Runner {
        Runner {
            hart: Hart::new(number as u64, extensions),
            timed: TimedInterpreter::new(latencies),
            fast: FastInterpreter::default(),
            pages: Pages::default(),
            started: false,
            next_turn: None,
            is_waiting: false,
        }
    }

    /// Runs functionally, for about as many instructions as there are cycles until the next event, within [`SLICE`]
    /// and `QUANTUM`.
    fn run_fast<M: Memory>(
        &mut self,
        memory: &mut M,
        next_event_time: Time,
        cycle: Time,
    ) -> Result<(), Stop> {
        let cycles_to_event = (next_event_time / cycle).saturating_sub(self.timed.now);
        let (executed, end) = self.fast.run(
            &mut self.hart,
            memory,
            cycles_to_event.clamp(SLICE, QUANTUM),
        );
        self.timed.now += executed;
        end
    }

    /// Schedules the core's next turn at `now`, or at the core's own time if that is later. `cycle` is the core's
    /// clock period in picoseconds.
    fn schedule(&mut self, queue: &mut Queue, core_id: CoreId, now: Time, cycle: Time) {
        let begin = self.timed.now.saturating_mul(cycle);
        let next_turn = now.max(begin);
        if let (true, Some(timeline)) = (self.is_waiting, &mut queue.timeline) {
            timeline.record_wait(core_id, begin..next_turn, cycle);
        }
        self.next_turn = Some(next_turn);
        self.is_waiting = false;
        queue.add(next_turn, Event::CoreTurn(core_id));
    }
}

/// Event that a run reports to its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// The host's program has exited with this status.
    Exit(i32),
    /// An unhandled exception of the host's program.
    Exception {
        /// The exception.
        exception: Exception,
        /// Address of the instruction.
        pc: u64,
        /// The instruction in assembly, if readable.
        instruction: String,
        /// Address of the jump that led there, if it was a jump to a register.
        jumped_from: Option<u64>,
    },
    /// The loader of a near-memory core has rejected a channel program.
    Rejected {
        /// Index of the core.
        mcc: usize,
        /// Name of the binary, if its bytes are those of a known one.
        name: Option<String>,
        /// Reason of the rejection.
        reason: String,
    },
    /// A channel program was stopped by an exception. The machine continues.
    Stopped {
        /// Index of the core.
        mcc: usize,
        /// Name of the binary, if its bytes are those of a known one.
        name: Option<String>,
        /// The exception.
        exception: Exception,
        /// Address of the instruction.
        pc: u64,
        /// The instruction in assembly, if readable.
        instruction: String,
        /// The invalid transfer, if the instruction tried to start one.
        copy: Option<(Transfer, TransferError)>,
        /// Address of the jump that led there, if it was a jump to a register.
        jumped_from: Option<u64>,
    },
    /// A race on far memory or a scratchpad. The machine continues.
    Race(Race),
    /// Deadlock: no event is scheduled. The text lists the responses that the host waits for.
    Deadlock(String),
    /// Livelock: every core waits, or repeats a loop whose loads return values that no core will ever change.
    Livelock(Vec<Poll>),
}

/// A simulated machine with a program on its host.
pub struct Machine {
    platform: Platform,
    host: Host,
    device: Device,
    queue: Queue,
    /// Host cores, by index. Core 0 runs the main program.
    hosts: Vec<Runner>,
    /// Near-memory cores, by index.
    mccs: Vec<Runner>,
    /// State of the host program's system calls.
    system: System,
    /// Channel programs that the host program can open.
    binaries: Binaries,
    /// Unfinished line of the host program's output.
    host_output: LineBuffer,
    /// Unfinished line of output of each near-memory core.
    mcc_output: Vec<LineBuffer>,
    /// True for functional simulation: instructions are executed without a timing model.
    functional: bool,
    /// Name of the binary that each near-memory core loaded last, if known.
    binary_names: Vec<Option<String>>,
    /// Time of the current event, in picoseconds.
    now: Time,
    /// Outcomes that have not been reported to the caller.
    outcomes: Vec<RunOutcome>,
    /// Earliest start of the next window of the livelock detection, in picoseconds.
    next_window: Time,
    /// Instructions executed by channel programs that have been replaced.
    replaced_instructions: u64,
}

impl Machine {
    /// Creates a machine from the host's memory with its first address, its system-call state, the program's entry and
    /// the binaries that it may start. [`load_program`] returns the memory and the system-call state. `evictions`
    /// enables random evictions.
    pub fn new(
        platform: &Platform,
        (main, start): (FlatMemory, u64),
        system: System,
        entry: u64,
        binaries: Binaries,
        evictions: Option<Evictions>,
    ) -> Machine {
        let host = |number| Runner {
            pages: platform.pages(),
            ..Runner::new(number, Extensions::HOST, Latencies::small())
        };
        let mcc = |number| Runner::new(number, Extensions::NEAR_MEMORY, mcc_latencies());
        let stack = main.end() - 64;
        let mut machine = Machine {
            device: Device::new(platform, start..main.end()),
            host: Host::new(platform, main, start, evictions),
            queue: Queue::default(),
            hosts: (0..platform.cores.value as usize).map(host).collect(),
            mccs: (0..platform.mccs.value as usize).map(mcc).collect(),
            system,
            binaries,
            host_output: LineBuffer::default(),
            mcc_output: vec![LineBuffer::default(); platform.mccs.value as usize],
            functional: false,
            binary_names: vec![None; platform.mccs.value as usize],
            now: 0,
            outcomes: Vec::new(),
            next_window: window_length(platform),
            replaced_instructions: 0,
            platform: platform.clone(),
        };
        let main_core = &mut machine.hosts[0];
        main_core.hart.pc = entry;
        main_core.started = true;
        // Programs with a C library set their own stack pointer.
        main_core.hart.set_x(2, stack);
        main_core.hart.stack_limits = machine.system.stack_limits();
        let cycle = platform.host_cycle.value;
        main_core.schedule(&mut machine.queue, CoreId::Host(0), 0, cycle);
        machine
    }

    /// Enables the race detector from now on. Call it before the first event: accesses before are unknown to the
    /// detector.
    pub fn enable_race_detection(&mut self) {
        let races = RaceDetector::new(self.hosts.len(), self.mccs.len());
        self.queue.races = Some(Box::new(races));
    }

    /// Switches to functional simulation, which is faster. Each core executes several instructions per turn, of one
    /// cycle each, and address translation takes no time. Races are then reported without program counters.
    pub fn run_functionally(&mut self) {
        self.functional = true;
    }

    /// Records a timeline of the filtered events from now on. `program` names the program of the host.
    ///
    /// # Errors
    /// The filter names a core that does not exist.
    pub fn record_timeline(&mut self, filter: &Filter, program: &str) -> Result<(), String> {
        let mut timeline = Timeline::new(filter, (self.hosts.len(), self.mccs.len()), FAR)?;
        timeline.begin_program(CoreId::Host(0), program, self.now);
        self.queue.timeline = Some(Box::new(timeline));
        Ok(())
    }

    /// Ends recording and returns the timeline, if recording was enabled.
    pub fn timeline(&mut self) -> Option<Recorded> {
        let mut timeline = self.queue.timeline.take()?;
        let cycles = [&self.platform.host_cycle, &self.platform.mcc_cycle].map(|cycle| cycle.value);
        let hosts = self.hosts.iter().enumerate();
        let hosts = hosts.map(|(core, runner)| (CoreId::Host(core), runner, cycles[0]));
        let mccs = self.mccs.iter().enumerate();
        let mccs = mccs.map(|(core, runner)| (CoreId::Mcc(core), runner, cycles[1]));
        for (core_id, runner, cycle) in hosts.chain(mccs).filter(|(_, runner, _)| runner.is_waiting)
        {
            let begin = runner.timed.now.saturating_mul(cycle);
            timeline.record_wait(core_id, begin..self.now.max(begin), cycle);
        }
        Some(timeline.finish(self.now))
    }

    /// Returns the simulation time in picoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Returns the number of instructions that all cores have executed.
    pub fn instructions(&self) -> u64 {
        let runners = self.hosts.iter().chain(&self.mccs);
        self.replaced_instructions + runners.map(|runner| runner.hart.csrs.instret).sum::<u64>()
    }

    /// Returns the host core that runs the main program.
    pub fn hart(&self) -> &Hart {
        &self.hosts[0].hart
    }

    /// Returns the cores that run a program.
    fn running_cores(&self) -> impl Iterator<Item = (CoreId, &Runner)> {
        let hosts = self.hosts.iter().enumerate();
        let hosts = hosts.filter(|(_, runner)| runner.started);
        let mccs = self.mccs.iter().zip(&self.device.mccs).enumerate();
        let mccs = mccs.filter(|(_, (_, mcc))| mcc.permissions.is_some());
        let hosts = hosts.map(|(core, runner)| (CoreId::Host(core), runner));
        let mccs = mccs.map(|(core, (runner, _))| (CoreId::Mcc(core), runner));
        hosts.chain(mccs)
    }

    /// Returns the current program counter of each core that runs a program.
    pub fn sites(&self) -> Vec<Site> {
        let site = |(core_id, runner): (CoreId, &Runner)| Site {
            core_id,
            pc: runner.hart.pc,
        };
        self.running_cores().map(site).collect()
    }

    /// Returns the name of the binary that a near-memory core loaded last, if known.
    pub fn binary_name(&self, mcc: usize) -> Option<&str> {
        self.binary_names.get(mcc)?.as_deref()
    }

    /// Runs for at most `events` events, or until an outcome is reported to the caller; `None` if there is none. A run
    /// may continue after [`RunOutcome::Rejected`], [`RunOutcome::Stopped`] and [`RunOutcome::Race`].
    pub fn run(&mut self, events: u64, world: &mut impl World) -> Option<RunOutcome> {
        let outcome = self.run_events(events, world);
        use RunOutcome::*;
        if let Some(Exit(_) | Exception { .. } | Deadlock(_) | Livelock(_)) = outcome {
            self.flush(world);
        }
        outcome
    }

    /// Writes out unfinished lines of output. Errors are ignored here: the failing stream reports them itself.
    pub fn flush(&mut self, world: &mut impl World) {
        let outputs = std::iter::once(&mut self.host_output).chain(&mut self.mcc_output);
        for output in outputs {
            let _ = output.flush(world);
        }
    }

    /// Handles at most `events` events, and returns the first outcome to report.
    fn run_events(&mut self, events: u64, world: &mut impl World) -> Option<RunOutcome> {
        for _ in 0..events {
            if let Some(outcome) = self.outcomes.pop() {
                return Some(outcome);
            }
            let Some((time, event)) = self.queue.next() else {
                return Some(RunOutcome::Deadlock(self.host.describe_outstanding()));
            };
            self.now = time;
            self.open_window(&event);
            match event {
                Event::CoreTurn(core_id) => self.run_turn(core_id, world),
                event => self.handle_device_event(event),
            }
            if let Some(polls) = self.livelock_polls() {
                return Some(RunOutcome::Livelock(polls));
            }
            while let Some(mcc) = self.device.ended_mccs.pop() {
                let _ = self.mcc_output[mcc].flush(world);
            }
            if let Some(races) = &mut self.queue.races {
                self.outcomes
                    .extend(races.log.new_races.drain(..).map(RunOutcome::Race));
            }
        }
        None
    }

    /// Opens the next window of the livelock detection, or closes the open one if this event changes state.
    fn open_window(&mut self, event: &Event) {
        let length = window_length(&self.platform);
        match &self.queue.polling {
            Some(window) if window.is_closed() || !event.is_read_only() => {
                self.queue.polling = None;
                self.next_window = self.now + length;
            }
            None if self.now >= self.next_window => {
                let (hosts, mccs) = (self.hosts.len(), self.mccs.len());
                let window = Window::new(self.now, length, hosts, mccs);
                self.queue.polling = Some(Box::new(window));
            }
            _ => {}
        }
    }

    /// Returns the loads that the cores repeat, if the run is in a livelock.
    fn livelock_polls(&self) -> Option<Vec<Poll>> {
        let window = self.queue.polling.as_ref()?;
        let has_recurred = |(core_id, runner): (CoreId, &Runner)| {
            window.has_recurred(core_id, runner.is_waiting, self.now)
        };
        let ends = !window.is_closed()
            && self.running_cores().all(has_recurred)
            && self.queue.is_read_only()
            && self.device.far.is_read_only()
            && (self.host).evictions_are_invisible(|line| self.device.line_at(line));
        let poll = |(core_id, runner): (CoreId, &Runner)| window.poll(core_id, &runner.hart);
        ends.then(|| self.running_cores().map(poll).collect())
    }

    /// Returns the last channel program of each core if it has ended: the core and its program counter, its state, and
    /// the exit code (`u64::MAX` if it was stopped).
    pub fn ended_programs(&self) -> Vec<(Site, State, u64)> {
        let mccs = self.mccs.iter().zip(&self.device.mccs).enumerate();
        let ended_mccs =
            mccs.filter(|(_, (_, mcc))| matches!(mcc.state, State::Ended | State::Stopped));
        let ended = ended_mccs.map(|(core, (runner, mcc))| {
            let core_id = CoreId::Mcc(core);
            let pc = runner.hart.pc;
            (Site { core_id, pc }, mcc.state, mcc.exit_code())
        });
        ended.collect()
    }

    /// Handles an event in the device or on the link.
    fn handle_device_event(&mut self, event: Event) {
        let (now, queue, device) = (self.now, &mut self.queue, &mut self.device);
        match event {
            Event::CoreTurn(_) => {}
            Event::RequestArrival(number, request) => {
                if let Some(timeline) = &mut queue.timeline {
                    timeline.mark_request(number, now);
                }
                device.execute_request(queue, now, number, request);
            }
            Event::FarReadCompletion(slice) => device.complete_far_read(queue, now, slice),
            Event::DramTurn => device.advance_far_memory(queue, now),
            Event::ResponseDeparture(number, response) => {
                let arrival = device.downlink.carry(now, response.bytes());
                let arrival = arrival + self.platform.fill.value;
                if let Some(timeline) = &mut queue.timeline {
                    timeline.mark_response(number, now);
                    timeline.record_transmission(false, &device.downlink.last);
                }
                queue.add(arrival, Event::ResponseArrival(number, response));
            }
            Event::ResponseArrival(number, response) => {
                if let Some(timeline) = &mut queue.timeline {
                    timeline.complete_request(number, now);
                }
                let deliveries = self.host.handle_response(queue, now, number, response);
                let cycle = self.platform.host_cycle.value;
                for delivery in deliveries {
                    let Runner { hart, timed, .. } = &mut self.hosts[delivery.core];
                    timed.deliver(
                        hart,
                        delivery.destination,
                        delivery.value,
                        now.div_ceil(cycle),
                    );
                }
                for (number, runner) in self.hosts.iter_mut().enumerate() {
                    if runner.is_waiting {
                        runner.schedule(queue, CoreId::Host(number), now, cycle);
                    }
                }
            }
            Event::CopyTurn(mcc, channel) => device.issue_copy_line(queue, now, mcc, channel),
            Event::CopyCompletion(mcc, access, data) => {
                device.complete_copy_line(queue, now, mcc, access, &data)
            }
            Event::HostAccessDeparture(request) => {
                let arrival = device.downlink.carry(now, request.bytes().0);
                if let Some(timeline) = &mut queue.timeline {
                    timeline.record_transmission(false, &device.downlink.last);
                }
                queue.add(arrival, Event::HostAccessArrival(request));
            }
            Event::HostAccessArrival(request) => {
                self.host.access_for_copy_engine(queue, now, request)
            }
            Event::HostAccessResponse(request) => {
                let arrival = self.host.uplink.carry(now, request.bytes().1);
                if let Some(timeline) = &mut queue.timeline {
                    timeline.record_transmission(true, &self.host.uplink.last);
                }
                device.complete_host_access(queue, arrival, request);
            }
            Event::LoadCompletion(mcc, load) => {
                if !device.complete_load(queue, mcc, load) {
                    return;
                }
                let file = std::mem::take(&mut device.mccs[mcc].file);
                let name = self.binaries.name_of(&file).map(str::to_string);
                self.binary_names[mcc].clone_from(&name);
                let rejection = device.mccs[mcc].rejection.take();
                let outcome = rejection.map(|reason| RunOutcome::Rejected { mcc, name, reason });
                self.outcomes.extend(outcome);
            }
            Event::WordArrival(from, mcc) => device.deliver_word(queue, from, mcc),
        }
        self.start_and_wake_mccs();
    }

    /// Starts the channel programs that are ready, and wakes near-memory cores that may have waited for this event.
    fn start_and_wake_mccs(&mut self) {
        let cycle = self.platform.mcc_cycle.value;
        for start in std::mem::take(&mut self.device.pending_starts) {
            self.start_program(&start);
        }
        if std::mem::take(&mut self.device.has_pending_event) {
            for (number, runner) in self.mccs.iter_mut().enumerate() {
                if runner.is_waiting {
                    runner.schedule(&mut self.queue, CoreId::Mcc(number), self.now, cycle);
                }
            }
        }
    }

    /// Starts a channel program.
    fn start_program(&mut self, start: &PendingStart) {
        let number = start.mcc;
        let mut runner = Runner::new(number, Extensions::NEAR_MEMORY, mcc_latencies());
        runner.hart.csrs.mode = Mode::User;
        runner.hart.pc = start.entry;
        runner.hart.set_x(2, PRIVATE + self.platform.private.value);
        for (register, value) in (10..).zip(start.arguments) {
            runner.hart.set_x(register, value);
        }
        let cycle = self.platform.mcc_cycle.value;
        runner.timed.now = self.now.div_ceil(cycle);
        runner.schedule(&mut self.queue, CoreId::Mcc(number), self.now, cycle);
        if let Some(timeline) = &mut self.queue.timeline {
            let name = self.binary_names[number].as_deref().unwrap_or("program");
            timeline.begin_program(CoreId::Mcc(number), name, self.now);
        }
        let replaced = std::mem::replace(&mut self.mccs[number], runner);
        self.replaced_instructions += replaced.hart.csrs.instret;
    }

    /// Runs a core if its turn is now.
    fn run_turn(&mut self, core_id: CoreId, world: &mut impl World) {
        let runner = match core_id {
            CoreId::Host(number) => &mut self.hosts[number],
            CoreId::Mcc(number) => &mut self.mccs[number],
        };
        if runner.next_turn != Some(self.now) {
            return;
        }
        runner.next_turn = None;
        match core_id {
            CoreId::Host(number) => self.run_host_turn(number, world),
            CoreId::Mcc(number) => self.run_mcc_turn(number, world),
        }
        if let Some(polling) = &mut self.queue.polling {
            let runner = match core_id {
                CoreId::Host(number) => &self.hosts[number],
                CoreId::Mcc(number) => &self.mccs[number],
            };
            polling.sample(core_id, &runner.hart, self.now);
        }
        self.start_and_wake_mccs();
    }

    /// Runs a host core until it waits, must let other events happen, or has used up its quantum.
    fn run_host_turn(&mut self, number: usize, world: &mut impl World) {
        let cycle = self.platform.host_cycle.value;
        let runner = &mut self.hosts[number];
        runner.timed.now = runner.timed.now.max(self.now.div_ceil(cycle));
        let (start_cycle, next_event_time) = (runner.timed.now, self.queue.next_event_time());
        let until = match self.host.is_shared() {
            true => (next_event_time / cycle).clamp(start_cycle, start_cycle + QUANTUM) + 1,
            false => start_cycle + QUANTUM,
        };
        let mut port = HostPort::new(&mut self.host, &mut self.queue, number);
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
        let timed = &mut runner.timed;
        match end {
            Ok(()) => {}
            // Waits for a register, or for state that the exception's handler may read.
            Err(Stop::Wait) => {
                runner.is_waiting = stall_reason != StallReason::Early;
                if let StallReason::Until(time) = stall_reason {
                    runner.schedule(&mut self.queue, CoreId::Host(number), time, cycle);
                    return;
                }
            }
            Err(Stop::Exception(_)) if runner.hart.pending_loads() != 0 => runner.is_waiting = true,
            Err(Stop::Exception(Exception::MachineCall)) if runner.hart.x(17) == hsm::EXTENSION => {
                timed.now += 1;
                if !self.execute_hart_call(number) {
                    return;
                }
            }
            Err(Stop::Exception(exception)) => {
                let pc = runner.hart.pc;
                let mut world = ClockedWorld {
                    world,
                    now: timed.now.saturating_mul(cycle) / 1000,
                    binaries: Some(&mut self.binaries),
                    output: &mut self.host_output,
                };
                let hart = &mut runner.hart;
                let served = self
                    .system
                    .serve(exception, hart, &mut self.host, &mut world);
                timed.now += 1;
                match served {
                    ServiceOutcome::Done => {}
                    ServiceOutcome::Exit(code) => {
                        self.outcomes.push(RunOutcome::Exit(code));
                        return;
                    }
                    ServiceOutcome::Exception(exception) => {
                        let instruction =
                            disassemble(hart, |address| self.host.main.memory.fetch(address));
                        self.outcomes.push(RunOutcome::Exception {
                            exception,
                            pc,
                            instruction,
                            jumped_from: hart.jumped_from(),
                        });
                        return;
                    }
                }
            }
        }
        let runner = &mut self.hosts[number];
        if !runner.is_waiting {
            runner.schedule(&mut self.queue, CoreId::Host(number), self.now, cycle);
        }
    }

    /// Executes a hart-state-management call of a host core. Returns false if the calling core stops.
    fn execute_hart_call(&mut self, number: usize) -> bool {
        let cycle = self.platform.host_cycle.value;
        let now = self.hosts[number].timed.now.saturating_mul(cycle);
        let hart = &self.hosts[number].hart;
        let [function, hart_id, entry, argument] =
            [16, 10, 11, 12].map(|register| hart.x(register));
        let target = usize::try_from(hart_id).ok();
        let target = target.filter(|target| *target < self.hosts.len());
        let result = match (function, target) {
            (hsm::STOP, _) => {
                self.hosts[number].started = false;
                if let Some(timeline) = &mut self.queue.timeline {
                    timeline.end_program(CoreId::Host(number), now);
                }
                // A later start overwrites the program counter; otherwise execution would continue after the call.
                let hart = &mut self.hosts[number].hart;
                hart.pc = hart.pc.wrapping_add(4);
                return false;
            }
            (hsm::START | hsm::STATUS, None) => [hsm::INVALID, 0],
            (hsm::START, Some(target)) if self.hosts[target].started => [hsm::ALREADY, 0],
            (hsm::START, Some(target)) => {
                let runner = &mut self.hosts[target];
                runner.started = true;
                runner.hart.pc = entry;
                runner.hart.set_x(10, hart_id);
                runner.hart.set_x(11, argument);
                runner.timed.now = runner.timed.now.max(now.div_ceil(cycle));
                if let Some(timeline) = &mut self.queue.timeline {
                    timeline.begin_program(CoreId::Host(target), "thread", now);
                }
                runner.schedule(&mut self.queue, CoreId::Host(target), now, cycle);
                [0, 0]
            }
            (hsm::STATUS, Some(target)) => [0, u64::from(!self.hosts[target].started)],
            _ => [hsm::NOT_SUPPORTED, 0],
        };
        let hart = &mut self.hosts[number].hart;
        hart.set_x(10, result[0]);
        hart.set_x(11, result[1]);
        hart.pc = hart.pc.wrapping_add(4);
        true
    }

    /// Runs a near-memory core until it waits or has used up its quantum.
    fn run_mcc_turn(&mut self, number: usize, world: &mut impl World) {
        let cycle = self.platform.mcc_cycle.value;
        let runner = &mut self.mccs[number];
        let mcc = &self.device.mccs[number];
        let Some(permissions) = mcc
            .permissions
            .clone()
            .filter(|_| mcc.state == State::Running)
        else {
            return;
        };
        runner.timed.now = runner.timed.now.max(self.now.div_ceil(cycle));
        let (until, next_event_time) = (runner.timed.now + QUANTUM, self.queue.next_event_time());
        let mut port =
            permissions.with_memory(MccPort::new(&mut self.device, &mut self.queue, number));
        let end = if self.functional {
            port.memory.now = self.now;
            runner.run_fast(&mut port, next_event_time, cycle)
        } else {
            runner.timed.run(&mut runner.hart, &mut port, until).1
        };
        let timed = &mut runner.timed;
        match end {
            Ok(()) => {}
            Err(Stop::Wait) => runner.is_waiting = port.memory.stall_reason == StallReason::Blocked,
            Err(Stop::Exception(exception)) => {
                port.memory.queue.change();
                let pc = runner.hart.pc;
                let now = timed.now.saturating_mul(cycle);
                let mut world = ClockedWorld {
                    world,
                    now: now / 1000,
                    binaries: None,
                    output: &mut self.mcc_output[number],
                };
                let mut system = System::new(0..0, 0..0, "");
                port.memory.now = now;
                let hart = &mut runner.hart;
                let served = system.serve(exception, hart, &mut CallMemory(port), &mut world);
                timed.now += 1;
                let (queue, device) = (&mut self.queue, &mut self.device);
                match served {
                    ServiceOutcome::Done => {}
                    ServiceOutcome::Exit(code) => {
                        let code = code as u32;
                        device.end_program(queue, self.now, number, State::Ended, code.into());
                        return;
                    }
                    ServiceOutcome::Exception(exception) => {
                        device.stop_program(queue, self.now, number, exception, pc);
                        let controller = &mut device.mccs[number].controller;
                        let instruction = disassemble(hart, |address| controller.fetch(address));
                        let transfer_faults = [FETCH, STORE].map(Exception::StoreFault);
                        let copy = controller
                            .invalid_transfer()
                            .filter(|_| transfer_faults.contains(&exception));
                        self.outcomes.push(RunOutcome::Stopped {
                            mcc: number,
                            name: self.binary_names[number].clone(),
                            exception,
                            pc,
                            instruction,
                            copy,
                            jumped_from: hart.jumped_from(),
                        });
                        return;
                    }
                }
            }
        }
        if !runner.is_waiting {
            runner.schedule(&mut self.queue, CoreId::Mcc(number), self.now, cycle);
        }
    }

    /// Returns the counters with their names: those of the machine, and of each near-memory core that has had a
    /// program.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let (host, far) = (&self.host.counters, &self.device.far);
        let (uplink, downlink) = (&self.host.uplink, &self.device.downlink);
        let (row_hits, row_misses) = far.row_hits_and_misses();
        let pages = |count: fn(&Pages) -> u64| self.hosts.iter().map(|r| count(&r.pages)).sum();
        let mut all_counters: Vec<(String, u64)> = [
            ("time in picoseconds", self.now),
            (
                "host: instructions",
                self.hosts.iter().map(|r| r.hart.csrs.instret).sum(),
            ),
            ("host: pages found", pages(Pages::hits)),
            ("host: pages missed", pages(Pages::misses)),
            ("host: own cache hits", host.l1_hits),
            ("host: last cache hits", host.llc_hits),
            ("host: lines of its memory", host.main_misses),
            ("host: lines of far memory and scratchpads", host.far_misses),
            ("host: lines prefetched", host.prefetches),
            ("host: prefetches dropped", host.dropped),
            ("host: lines that copies read", host.copied_reads),
            ("host: lines that copies wrote", host.copied_writes),
            ("host: lines cleaned", host.cleaned),
            ("host: lines evicted at random", host.evicted),
            ("host: uncached accesses", host.uncached),
            ("host: register accesses", host.registers),
            ("link: messages to the device", uplink.messages),
            ("link: bytes to the device", uplink.bytes),
            ("link: messages to the host", downlink.messages),
            ("link: bytes to the host", downlink.bytes),
            ("far memory: lines read", far.reads),
            ("far memory: lines written", far.writes),
            ("far memory: rows found open", row_hits),
            ("far memory: rows opened", row_misses),
        ]
        .map(|(name, value)| (name.to_string(), value))
        .into();
        if self.platform.prefetch_streams.value > 0 {
            let counters = [
                (
                    "host: lines prefetched by hardware",
                    host.hardware_prefetches,
                ),
                (
                    "host: lines prefetched by hardware and used",
                    host.hardware_used,
                ),
                ("host: hardware prefetches dropped", host.hardware_dropped),
                (
                    "host: hardware prefetches dropped on their way",
                    host.hardware_discarded,
                ),
            ];
            all_counters.extend(counters.map(|(name, value)| (name.to_string(), value)));
        }
        if let Some(cache) = far.cache_counters() {
            let counters = [
                ("far memory: cache hits", cache.hits),
                ("far memory: cache misses", cache.misses),
                ("far memory: cache write-backs", cache.write_backs),
            ];
            all_counters.extend(counters.map(|(name, value)| (name.to_string(), value)));
        }
        self.add_core_counters(&mut all_counters);
        all_counters
    }

    /// Adds the counters of each near-memory core that has had a program.
    fn add_core_counters(&self, all_counters: &mut Vec<(String, u64)>) {
        for (number, mcc) in self.device.mccs.iter().enumerate() {
            let (counters, hart) = (&mcc.counters, &self.mccs[number].hart);
            let core_counters = [
                ("instructions", hart.csrs.instret),
                ("scratchpad accesses", counters.scratchpad),
                ("register accesses", counters.registers),
                ("lines read by the host", counters.host_reads),
                ("lines written by the host", counters.host_writes),
                ("requests of the host stalled", counters.held),
                ("lines fetched", counters.fetched),
                ("lines stored", counters.stored),
                ("words sent", counters.words),
            ];
            if mcc.state != State::Idle {
                all_counters.extend(
                    core_counters.map(|(name, value)| (format!("mcc {number}: {name}"), value)),
                );
            }
        }
    }
}

/// Length of a livelock-detection window and minimum interval between two, in picoseconds: longer than any access
/// takes.
fn window_length(platform: &Platform) -> Time {
    const MILLISECOND: Time = 1_000_000_000;
    MILLISECOND.max(platform.link_latency.value.saturating_mul(100))
}

/// Instruction latencies of a near-memory core: those of a small core, with a load latency of one cycle, as its private
/// memory is as close as the scratchpad.
fn mcc_latencies() -> Latencies {
    use Op::*;
    Latencies::small().with(&[Lb, Lh, Lw, Ld, Lbu, Lhu, Lwu, Flw], 1, 1)
}

/// Disassembles the instruction at the core's program counter.
fn disassemble(hart: &Hart, mut fetch: impl FnMut(u64) -> Reply<u16>) -> String {
    let mut half = |address| match fetch(address) {
        Reply::Done(half) => Some(u32::from(half)),
        _ => None,
    };
    let low = half(hart.pc);
    let word = low.map(|low| match low & 3 {
        3 => half(hart.pc.wrapping_add(2)).map_or(low, |high| high << 16 | low),
        _ => low,
    });
    word.map_or_else(String::new, |word| hart.decoder().disassemble(word))
}

/// Loads a program into a host's memory of `bytes` bytes, starting at the program's first page. Returns the memory
/// with its first address, and the system-call state; `command` is the program's command line. The last eighth of that
/// memory becomes the stack, the rest after the program the heap.
///
/// # Errors
/// The program does not fit, with the reason.
pub fn load_program(
    image: &Image,
    bytes: u64,
    command: &str,
) -> Result<((FlatMemory, u64), System), String> {
    const PAGE: u64 = 4096;
    let segments = image.segments.iter();
    let segment_ranges = segments.flat_map(|segment| {
        [
            (segment.address, segment.length),
            (segment.load_address, segment.length),
        ]
    });
    let start = segment_ranges
        .clone()
        .map(|(address, _)| address)
        .min()
        .unwrap_or(0)
        & !(PAGE - 1);
    let end = segment_ranges
        .map(|(address, length)| address + length)
        .max()
        .unwrap_or(0);
    let top = start
        .checked_add(bytes)
        .ok_or("its memory would extend beyond the last address")?;
    let heap = end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
    let stack = top - bytes / 8;
    if heap > stack {
        return Err(format!(
            "it lies from {start:#x} to {end:#x}, which leaves no space for heap and stack in {} MiB from there on\n  help: `--memory MIB` gives it more",
            bytes >> 20
        ));
    }
    let length = usize::try_from(bytes).map_err(|error| error.to_string())?;
    let mut memory = FlatMemory::new(start, length);
    for segment in &image.segments {
        let place = memory.bytes_mut(segment.load_address, segment.bytes.len());
        let place = place.ok_or("its segments are outside memory")?;
        place.copy_from_slice(segment.bytes);
    }
    let system = System::new(heap..stack, stack..top, command);
    Ok(((memory, start), system))
}

/// System-call environment of a program, with the machine's clock. Only the host's program has files, input and the
/// binaries of channel programs.
struct ClockedWorld<'a, W> {
    /// Files, input and output of the simulator's caller.
    world: &'a mut W,
    /// Time in nanoseconds.
    now: u64,
    /// Binaries that the program can open; `None` for a channel program, which has no files.
    binaries: Option<&'a mut Binaries>,
    /// Unfinished line of the program's output.
    output: &'a mut LineBuffer,
}

impl<W: World> World for ClockedWorld<'_, W> {
    fn open(&mut self, name: &str, mode: OpenMode) -> Result<u32, Errno> {
        let binaries = self.binaries.as_mut().ok_or(Errno::Denied)?;
        match binaries.open(name) {
            Some(_) if mode.write => Err(Errno::Denied),
            Some(opened) => opened,
            None => self.world.open(name, mode),
        }
    }

    fn close(&mut self, file: u32) -> Result<(), Errno> {
        let binaries = self.binaries.as_mut().ok_or(Errno::Denied)?;
        match binaries.close(file) {
            Some(()) => Ok(()),
            None => self.world.close(file),
        }
    }

    fn read(&mut self, file: u32, bytes: &mut [u8]) -> Result<usize, Errno> {
        // Shows a pending prompt before the input is read.
        self.output.flush(self.world)?;
        let binaries = self.binaries.as_mut().ok_or(Errno::Denied)?;
        match binaries.read(file, bytes) {
            Some(read) => Ok(read),
            None => self.world.read(file, bytes),
        }
    }

    fn write(&mut self, file: u32, bytes: &[u8]) -> Result<usize, Errno> {
        if self.binaries.is_none() && !matches!(file, 1 | 2) {
            return Err(Errno::Denied);
        }
        match file {
            1 => self.output.print(bytes, self.world),
            _ => self.world.write(file, bytes),
        }
    }

    fn seek(&mut self, file: u32, place: FilePosition) -> Result<u64, Errno> {
        let binaries = self.binaries.as_mut().ok_or(Errno::Denied)?;
        match binaries.seek(file, place) {
            Some(place) => Ok(place),
            None => self.world.seek(file, place),
        }
    }

    fn now(&mut self) -> u64 {
        self.now
    }
}
