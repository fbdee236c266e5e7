//! Simulation of the whole machine in time: hosts with their programs, the device, and the links between them.

mod counters;
mod host_programs;

use crate::binaries::Binaries;
use crate::controller::{FETCH, PRIVATE, STORE};
use crate::copy::{Transfer, TransferError};
use crate::device::{CallMemory, Device, MccPort, PendingStart, State};
use crate::events::{CoreCounts, CoreId, Event, Request, Response, StallReason};
use crate::host::{self, Evictions, FAR};
use crate::lines::LineBuffer;
use crate::platform::Platform;
use crate::polling::{Poll, Window};
use crate::queue::Queue;
use crate::races::{Race, RaceDetector, Site};
use crate::timeline::Timeline;
use cohkit_riscv::elf::Image;
use cohkit_riscv::system::{Errno, FilePosition, OpenMode, ServiceOutcome, System, World};
use cohkit_riscv::{
    Exception, Extensions, FastInterpreter, FlatMemory, Hart, Latencies, Memory, Mode, Op, Pages,
    Reply, Stop, TimedInterpreter,
};
use cohkit_timeline::{Filter, Recorded};
use cohkit_units::Time;
use host_programs::HostSystem;

/// Maximum number of cycles that a core runs ahead of the others without an access to shared state. The event loop then
/// regains control, even if the core never accesses shared state.
const QUANTUM: u64 = 1 << 16;
/// Minimum number of instructions per turn of a core in functional simulation, to amortise the event of a turn.
const SLICE: u64 = 64;

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
    /// The programs of all hosts have exited. The status is the first one other than 0, in the order of the hosts.
    Exit(i32),
    /// An unhandled exception of the program of a host.
    Exception {
        /// Index of the host.
        host: usize,
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
    /// Deadlock: no event is scheduled. The text lists the responses that the hosts wait for.
    Deadlock(String),
    /// Livelock: every core waits, or repeats a loop whose loads return values that no core will ever change.
    Livelock(Vec<Poll>),
}

/// A simulated machine with a program on its hosts.
pub struct Machine {
    platform: Platform,
    /// Hosts, by index.
    hosts: Vec<HostSystem>,
    device: Device,
    queue: Queue,
    /// Near-memory cores, by index.
    mccs: Vec<Runner>,
    /// Channel programs that host programs can open.
    binaries: Binaries,
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
    /// Creates a machine from a host's memory with its first address, its system-call state, the program's image and
    /// the binaries that it may start. [`load_program`] returns the memory and the system-call state. Each further host
    /// of the platform begins with the same state, and with the image in a memory of its own. `evictions` enables random
    /// evictions.
    pub fn new(
        platform: &Platform,
        (main, start): (FlatMemory, u64),
        system: System,
        image: &Image,
        binaries: Binaries,
        evictions: Option<Evictions>,
    ) -> Machine {
        let mcc = |number| Runner::new(number, Extensions::NEAR_MEMORY, mcc_latencies());
        let main_range = start..main.end();
        let length = (main.end() - start) as usize;
        // A copy of the first host's memory would allocate its unused pages too.
        let further = (1..platform.hosts.value).map(|_| {
            load_image(image, start, length).expect("the first host's memory has the same size")
        });
        let memories = std::iter::once(main).chain(further);
        let hosts = memories.enumerate().map(|(number, main)| {
            let (main, system) = ((main, start), system.clone());
            HostSystem::new(platform, number, main, system, image.entry, evictions)
        });
        let mut machine = Machine {
            device: Device::new(platform, main_range),
            queue: Queue::default(),
            hosts: hosts.collect(),
            mccs: (0..platform.mccs.value as usize).map(mcc).collect(),
            binaries,
            mcc_output: vec![LineBuffer::default(); platform.mccs.value as usize],
            functional: false,
            binary_names: vec![None; platform.mccs.value as usize],
            now: 0,
            outcomes: Vec::new(),
            next_window: window_length(platform),
            replaced_instructions: 0,
            platform: platform.clone(),
        };
        let cycle = platform.host_cycle.value;
        for (host, host_system) in machine.hosts.iter_mut().enumerate() {
            let core_id = CoreId::Host { host, core: 0 };
            host_system.cores[0].schedule(&mut machine.queue, core_id, 0, cycle);
        }
        machine
    }

    /// Returns the number of hosts.
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// Returns the first host whose program has ended with a status other than 0.
    pub fn failed_host(&self) -> Option<usize> {
        let mut exit_codes = self.hosts.iter().map(|host_system| host_system.exit_code);
        exit_codes.position(|code| code.is_some_and(|code| code != 0))
    }

    /// Returns the hosts whose programs have not ended, with their indices. A host whose program has ended makes no
    /// access, and evicts no line.
    fn running_hosts(&self) -> impl Iterator<Item = (usize, &HostSystem)> {
        let hosts = self.hosts.iter().enumerate();
        hosts.filter(|(_, host_system)| host_system.exit_code.is_none())
    }

    /// Returns the numbers of cores.
    fn core_counts(&self) -> CoreCounts {
        CoreCounts {
            hosts: self.hosts.len(),
            host_cores: self.platform.cores.value as usize,
            mccs: self.mccs.len(),
        }
    }

    /// Returns all cores.
    fn runners(&self) -> impl Iterator<Item = (CoreId, &Runner)> {
        let host_cores = self.hosts.iter().flat_map(|host_system| &host_system.cores);
        self.core_counts().ids().zip(host_cores.chain(&self.mccs))
    }

    /// Returns a core.
    fn runner_mut(&mut self, core_id: CoreId) -> &mut Runner {
        match core_id {
            CoreId::Host { host, core } => &mut self.hosts[host].cores[core],
            CoreId::Mcc(mcc) => &mut self.mccs[mcc],
        }
    }

    /// Lists the responses that the hosts wait for, as a phrase.
    fn describe_outstanding(&self) -> String {
        let descriptions = self.running_hosts().map(|(number, host_system)| {
            let description = host_system.host.describe_outstanding();
            match self.hosts.len() {
                1 => description,
                _ if description.is_empty() => description,
                _ => format!("{description} (host {number})"),
            }
        });
        let descriptions = descriptions.filter(|description| !description.is_empty());
        descriptions.collect::<Vec<_>>().join(", ")
    }

    /// Enables the race detector from now on. Call it before the first event: accesses before are unknown to the
    /// detector.
    pub fn enable_race_detection(&mut self) {
        let races = RaceDetector::new(self.core_counts());
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
        let mut timeline = Timeline::new(filter, self.core_counts(), FAR)?;
        for host in 0..self.hosts.len() {
            timeline.begin_program(CoreId::Host { host, core: 0 }, program, self.now);
        }
        self.queue.timeline = Some(Box::new(timeline));
        Ok(())
    }

    /// Ends recording and returns the timeline, if recording was enabled.
    pub fn timeline(&mut self) -> Option<Recorded> {
        let mut timeline = self.queue.timeline.take()?;
        for (core_id, runner) in self.runners().filter(|(_, runner)| runner.is_waiting) {
            let cycle = match core_id {
                CoreId::Host { .. } => self.platform.host_cycle.value,
                CoreId::Mcc(_) => self.platform.mcc_cycle.value,
            };
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
        let instructions = self.runners().map(|(_, runner)| runner.hart.csrs.instret);
        self.replaced_instructions + instructions.sum::<u64>()
    }

    /// Returns the core of the first host that runs the main program.
    pub fn hart(&self) -> &Hart {
        &self.hosts[0].cores[0].hart
    }

    /// Returns the cores that run a program.
    fn running_cores(&self) -> impl Iterator<Item = (CoreId, &Runner)> {
        self.runners().filter(|(core_id, runner)| match core_id {
            CoreId::Host { .. } => runner.started,
            CoreId::Mcc(core) => self.device.mccs[*core].permissions.is_some(),
        })
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
        let host_outputs = self
            .hosts
            .iter_mut()
            .map(|host_system| &mut host_system.output);
        for output in host_outputs.chain(&mut self.mcc_output) {
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
                return Some(RunOutcome::Deadlock(self.describe_outstanding()));
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
                let window = Window::new(self.now, length, self.core_counts());
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
            && self.running_hosts().all(|(_, host_system)| {
                (host_system.host).evictions_are_invisible(|line| self.device.line_at(line))
            });
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
                let begin = device.admit_request(now, &request);
                match begin > now {
                    true => queue.add(begin, Event::RegisterAccess(number, request)),
                    false => self.execute_request(number, request),
                }
            }
            Event::RegisterAccess(number, request) => self.execute_request(number, request),
            Event::FarReadCompletion(slice) => device.complete_far_read(queue, now, slice),
            Event::DramTurn => device.advance_far_memory(queue, now),
            Event::ResponseDeparture(number, response) => self.send_response(number, response),
            Event::ResponseArrival(number, response) => self.receive_response(number, response),
            Event::CopyTurn(mcc, channel) => device.issue_copy_line(queue, now, mcc, channel),
            Event::CopyCompletion(mcc, access, data) => {
                device.complete_copy_line(queue, now, mcc, access, &data)
            }
            Event::HostAccessDeparture(request) => {
                let downlink = &mut device.downlinks[request.host];
                let arrival = downlink.carry(now, request.bytes().0);
                if let Some(timeline) = &mut queue.timeline {
                    timeline.record_transmission(request.host, false, &downlink.last);
                }
                queue.add(arrival, Event::HostAccessArrival(request));
            }
            Event::HostAccessArrival(request) => {
                let host = &mut self.hosts[request.host].host;
                host.access_for_copy_engine(queue, now, request)
            }
            Event::HostAccessResponse(request) => {
                let uplink = &mut self.hosts[request.host].host.uplink;
                let arrival = uplink.carry(now, request.bytes().1);
                if let Some(timeline) = &mut queue.timeline {
                    timeline.record_transmission(request.host, true, &uplink.last);
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

    /// Lets the device execute a request.
    fn execute_request(&mut self, number: u64, request: Request) {
        if let Some(timeline) = &mut self.queue.timeline {
            timeline.mark_request(number, self.now);
        }
        self.device
            .execute_request(&mut self.queue, self.now, number, request);
    }

    /// Sends a response over the link of the host that waits for it.
    fn send_response(&mut self, number: u64, response: Response) {
        let host = host::host_of_request(&self.platform, number);
        let downlink = &mut self.device.downlinks[host];
        let arrival = downlink.carry(self.now, response.bytes());
        let arrival = arrival + self.platform.fill.value;
        if let Some(timeline) = &mut self.queue.timeline {
            timeline.mark_response(number, self.now);
            timeline.record_transmission(host, false, &downlink.last);
        }
        self.queue
            .add(arrival, Event::ResponseArrival(number, response));
    }

    /// Delivers a response to its host, and wakes the cores of the host that may have waited for it.
    fn receive_response(&mut self, number: u64, response: Response) {
        let (now, queue) = (self.now, &mut self.queue);
        if let Some(timeline) = &mut queue.timeline {
            timeline.complete_request(number, now);
        }
        let host = host::host_of_request(&self.platform, number);
        let host_system = &mut self.hosts[host];
        let deliveries = (host_system.host).handle_response(queue, now, number, response);
        let cycle = self.platform.host_cycle.value;
        for delivery in deliveries {
            let Runner { hart, timed, .. } = &mut host_system.cores[delivery.core];
            timed.deliver(
                hart,
                delivery.destination,
                delivery.value,
                now.div_ceil(cycle),
            );
        }
        for (core, runner) in host_system.cores.iter_mut().enumerate() {
            if runner.is_waiting {
                runner.schedule(queue, CoreId::Host { host, core }, now, cycle);
            }
        }
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
        let now = self.now;
        let runner = self.runner_mut(core_id);
        if runner.next_turn != Some(now) {
            return;
        }
        runner.next_turn = None;
        match core_id {
            CoreId::Host { host, core } => self.run_host_turn(host, core, world),
            CoreId::Mcc(number) => self.run_mcc_turn(number, world),
        }
        if let Some(polling) = &mut self.queue.polling {
            let runner = match core_id {
                CoreId::Host { host, core } => &self.hosts[host].cores[core],
                CoreId::Mcc(number) => &self.mccs[number],
            };
            polling.sample(core_id, &runner.hart, now);
        }
        self.start_and_wake_mccs();
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
}

/// Length of a livelock-detection window and minimum interval between two, in picoseconds: longer than any access
/// takes.
fn window_length(platform: &Platform) -> Time {
    const MILLISECOND: Time = 1_000_000_000;
    // Each core may wait for one access to a register, and the device takes one at a time.
    let cores = platform.hosts.value * platform.cores.value;
    let registers = platform.register_interval.value.saturating_mul(cores);
    // The second half of a window is longer than any access.
    let links = platform.link_latency.value.saturating_mul(100);
    MILLISECOND.max(links).max(registers.saturating_mul(4))
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
    let memory = load_image(image, start, length).ok_or("its segments are outside memory")?;
    let system = System::new(heap..stack, stack..top, command);
    Ok(((memory, start), system))
}

/// Returns a memory of `length` bytes from `start` on with the segments of an image; `None` if one is outside.
fn load_image(image: &Image, start: u64, length: usize) -> Option<FlatMemory> {
    let mut memory = FlatMemory::new(start, length);
    for segment in &image.segments {
        let place = memory.bytes_mut(segment.load_address, segment.bytes.len())?;
        place.copy_from_slice(segment.bytes);
    }
    Some(memory)
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
