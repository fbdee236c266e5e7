//! Programs at the processor ports of a memory system: each thread drives the port of its cache, and has the accesses
//! outstanding that its core issues, as far as the port takes them.
//!
//! The program is data for the memory system. A run places each location in a line of its own, loads some copies, starts
//! the threads with random delays, and reads the final values of the locations.

use cohkit_base::random::SplitMix64;
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::threads::Accesses;
use cohkit_system::ports::{PortError, PortOperation, PortRequest, Ports};

use crate::cores::{Core, CoreKind, FenceSupport, MemoryRequest};
use crate::kinds::{write_access, Kinds};
use crate::models::final_outcome;
use crate::program::{Acquire, Change, Instruction, Outcome, Program, StoreVariant, Update};
use crate::timed::SeedOutcomes;

/// Reason for which a program has no outcomes at the ports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PortRunError {
    /// The ports have no access that the program needs.
    Unsupported(String),
    /// The memory system cannot be run.
    Failed(String),
    /// Cancelled by the caller.
    Interrupted,
}

/// Accesses of one run at most, after which its threads count as threads that never end.
const MAX_ACCESSES: u64 = 10_000;

/// Delays before an access, in cycles: a choice of equally likely upper limits.
const MAX_DELAYS: [u64; 5] = [0, 3, 20, 120, 400];

/// Delay before the first access of a late thread at most, in cycles for each thread of the program. Half of the threads
/// are late, so that some run after the end of others.
const MAX_START: u64 = 200;

/// Runs a program with these cores `runs` times, with consecutive seeds from `first_seed` on. A failure of the memory
/// system ends the runs. Polls `should_continue` before each run, and stops when it returns false.
///
/// A core issues an access when no earlier access must be complete. Loads are not forwarded from outstanding stores of
/// their thread, but wait for them.
///
/// # Errors
/// The ports do not support the program, the memory system cannot be run, or the caller cancelled.
pub fn observe(
    ports: &mut dyn Ports,
    protocol: &Protocol,
    kinds: &Kinds,
    (program, cores): (&Program, CoreKind),
    (first_seed, runs): (u64, u64),
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<SeedOutcomes, PortRunError> {
    if let Some(reason) = unsupported(protocol, kinds, program) {
        return Err(PortRunError::Unsupported(reason));
    }
    let (locations, lines) = (program.locations.len(), ports.lines());
    if locations > lines {
        let reason =
            format!("it has {locations} locations, and the memory system has {lines} lines");
        return Err(PortRunError::Unsupported(reason));
    }
    let accesses = kinds.accesses(protocol);
    let mut outcomes = SeedOutcomes::default();
    for seed in (0..runs).map(|run| first_seed.wrapping_add(run)) {
        if !should_continue() {
            return Err(PortRunError::Interrupted);
        }
        let mut run = PortRun::new(ports, (program, cores), kinds, &accesses, seed);
        match run.outcome() {
            Ok(outcome) => {
                outcomes.runs += 1;
                if let Some(outcome) = outcome {
                    outcomes.counts.entry(outcome).or_insert((0, seed)).0 += 1;
                }
            }
            Err(PortError::Violated(failure)) => {
                outcomes.failure = Some((failure, seed));
                break;
            }
            Err(PortError::Failed(reason)) => return Err(PortRunError::Failed(reason)),
            Err(PortError::Interrupted) => return Err(PortRunError::Interrupted),
        }
    }
    Ok(outcomes)
}

/// Describes the first access of a program that processor ports lack, if any.
pub fn unsupported(protocol: &Protocol, kinds: &Kinds, program: &Program) -> Option<String> {
    if let Some(reason) = kinds.unsupported_access(protocol, program) {
        return Some(reason);
    }
    let threads = program.threads.iter().zip(kinds.accesses(protocol));
    for (number, (thread, accesses)) in threads.enumerate() {
        if FenceSupport::of(&accesses) != FenceSupport::default() {
            let name = &protocol.name;
            return Some(format!(
                "the caches of {name} take part in fences, which processor ports do not request"
            ));
        }
        let lacks = |instruction: &Instruction| match *instruction {
            Instruction::Atomic { change, via, .. } => {
                let access = match via {
                    StoreVariant::ProtocolDefault => accesses.atomic,
                    via => write_access(&accesses, via, false),
                };
                match (change, access) {
                    (Change::FetchOp(_), _) => Some("atomic access of this kind"),
                    (_, Some(Access::Store)) => None,
                    _ => Some("atomic access"),
                }
            }
            Instruction::LoadReserved { .. } | Instruction::StoreConditional { .. } => {
                Some("reservation")
            }
            Instruction::Rcu(_) => Some("operation of read-copy-update"),
            Instruction::Load { acquire, .. }
                if acquire != Acquire::None && accesses.acquire != accesses.read =>
            {
                Some("acquiring read")
            }
            Instruction::Store { release, via, .. } => {
                match write_access(&accesses, via, release) {
                    Some(Access::Store | Access::WritePartial) => None,
                    _ => Some("write of this kind"),
                }
            }
            _ => None,
        };
        if let Some(access) = thread.code.iter().find_map(lacks) {
            return Some(format!(
                "P{number} needs an access that processor ports lack: {access}"
            ));
        }
    }
    None
}

/// Operation of a load, and no written value.
const LOAD: (PortOperation, Option<(Access, i64)>) = (PortOperation::LoadStore, None);

/// Operation and operand of an atomic access.
fn atomic(update: Update) -> Result<(PortOperation, Option<(Access, i64)>), PortError> {
    let (operation, value) = match update {
        Update::Exchange(value) => (PortOperation::Swap, value),
        Update::FetchAdd(value) => (PortOperation::Add, value),
        Update::CompareAndSwap(expected, value) => {
            (PortOperation::CompareAndSwap(expected as u64), value)
        }
        Update::FetchOp(..) => {
            let reason = "processor ports lack this atomic access";
            return Err(PortError::Failed(reason.to_string()));
        }
    };
    Ok((operation, Some((Access::Store, value))))
}

/// One run of a program.
struct PortRun<'r> {
    /// The memory system.
    ports: &'r mut dyn Ports,
    /// The program.
    program: &'r Program,
    /// Cores of its threads.
    cores: CoreKind,
    /// Accesses of each thread's cache, by thread.
    accesses: &'r [Accesses],
    /// Port of each thread.
    port: Vec<usize>,
    /// Line of each location.
    lines: Vec<usize>,
    /// Generator of lines and delays.
    random: SplitMix64,
    /// Seed of the run.
    seed: u64,
    /// Number of accesses so far.
    count: u64,
}

impl<'r> PortRun<'r> {
    /// Chooses the lines of a run.
    fn new(
        ports: &'r mut dyn Ports,
        (program, cores): (&'r Program, CoreKind),
        kinds: &Kinds,
        accesses: &'r [Accesses],
        seed: u64,
    ) -> PortRun<'r> {
        let mut random = SplitMix64::new(seed);
        let mut free: Vec<usize> = (0..ports.lines()).collect();
        let mut lines = Vec::new();
        for _ in &program.locations {
            lines.push(free.swap_remove(random.below(free.len() as u64) as usize));
        }
        PortRun {
            ports,
            program,
            cores,
            accesses,
            port: kinds.numbers().into_iter().map(usize::from).collect(),
            lines,
            random,
            seed,
            count: 0,
        }
    }

    /// Executes the run. Returns its outcome, or `None` if the test's filter excludes it.
    fn outcome(&mut self) -> Result<Option<Outcome>, PortError> {
        let mut memory = vec![0; self.ports.lines()];
        for (line, value) in self.lines.iter().zip(&self.program.initial) {
            memory[*line] = *value as u64;
        }
        self.ports.reset(self.seed, &memory)?;
        // Loads before the start add no outcomes: those of a coherent protocol do not depend on the places of copies.
        if self.random.below(2) == 0 {
            self.load_copies()?;
        }
        let cores = self.run_threads()?;
        let memory = self.final_values()?;
        self.ports.end()?;
        Ok(final_outcome(self.program, &cores, &memory))
    }

    /// Returns a random delay in cycles.
    fn delay(&mut self) -> u64 {
        let limit = MAX_DELAYS[self.random.below(MAX_DELAYS.len() as u64) as usize];
        self.random.below(limit + 1)
    }

    /// Returns a random delay of a thread's first access in cycles.
    fn start_delay(&mut self) -> u64 {
        match self.random.below(2) {
            0 => self.delay(),
            _ => self.random.below(MAX_START * self.port.len() as u64),
        }
    }

    /// Begins an access of a thread with this tag, after a delay in cycles.
    fn begin(
        &mut self,
        (thread, tag): (usize, usize),
        location: usize,
        (operation, write): (PortOperation, Option<(Access, i64)>),
        delay: u64,
    ) -> Result<(), PortError> {
        self.count += 1;
        if self.count > MAX_ACCESSES {
            let reason = format!("the threads do not end within {MAX_ACCESSES} accesses");
            return Err(PortError::Violated(reason));
        }
        let read = self.accesses[thread].read;
        let uncached = match write {
            Some((access, _)) => access == Access::WritePartial,
            None => read == Some(Access::ReadOnce),
        };
        let request = PortRequest {
            port: self.port[thread],
            tag,
            delay,
            operation,
            write: write.is_some(),
            uncached,
            line: self.lines[location],
            data: write.map_or(0, |(_, value)| value as u64),
        };
        self.ports.begin(request)
    }

    /// Waits for a completion. Returns the thread and the tag of the access, and the value that a read returns.
    fn complete(&mut self) -> Result<((usize, usize), i64), PortError> {
        let completion = self.ports.next_completion()?;
        let mut ports = self.port.iter();
        let thread = ports.position(|port| *port == completion.port);
        let port = completion.port;
        let unknown =
            || PortError::Violated(format!("port {port} completes an access without a thread"));
        let access = (thread.ok_or_else(unknown)?, completion.tag);
        Ok((access, completion.data as i64))
    }

    /// Loads random locations into the caches of random threads, all before the threads start.
    fn load_copies(&mut self) -> Result<(), PortError> {
        for location in 0..self.lines.len() {
            let threads: Vec<usize> = (0..self.port.len())
                .filter(|_| self.random.below(2) == 0)
                .collect();
            for &thread in &threads {
                let delay = self.delay();
                self.begin((thread, 0), location, LOAD, delay)?;
            }
            for _ in threads {
                let ((thread, _), value) = self.complete()?;
                let initial = self.program.initial[location];
                if value != initial {
                    let name = &self.program.locations[location];
                    return Err(PortError::Violated(format!(
                        "before the first write, P{thread} reads {value} in {name}; its initial value is {initial}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Runs all threads to their ends. Returns their final states.
    fn run_threads(&mut self) -> Result<Vec<Core>, PortError> {
        let program = self.program;
        let mut cores = Core::all(program);
        // Requests of each thread, by tag.
        let mut outstanding = vec![vec![None; self.ports.outstanding()]; cores.len()];
        let mut changed: Vec<usize> = (0..cores.len()).collect();
        let mut is_start = true;
        loop {
            for thread in changed.drain(..) {
                let code = &program.threads[thread].code;
                cores[thread].settle(code, self.cores);
                self.issue(thread, &cores[thread], &mut outstanding[thread], is_start)?;
            }
            is_start = false;
            if outstanding.iter().flatten().all(Option::is_none) {
                break;
            }
            let ((thread, tag), value) = self.complete()?;
            let request = outstanding[thread].get_mut(tag).and_then(Option::take);
            let Some(request) = request else {
                let reason = format!(
                    "an access of P{thread} with the tag {tag} ends, and none is outstanding"
                );
                return Err(PortError::Violated(reason));
            };
            let code = &program.threads[thread].code;
            cores[thread].complete_access(code, request.location(), value);
            changed.push(thread);
        }
        let mut threads = cores.iter().zip(&program.threads);
        match threads.position(|(core, thread)| !core.stopped(&thread.code)) {
            None => Ok(cores),
            Some(thread) => Err(PortError::Violated(format!("P{thread} does not end"))),
        }
    }

    /// Begins the accesses that a core issues, as far as its port has free tags.
    fn issue(
        &mut self,
        thread: usize,
        core: &Core,
        outstanding: &mut [Option<MemoryRequest>],
        is_start: bool,
    ) -> Result<(), PortError> {
        let code = &self.program.threads[thread].code;
        for request in core.ready_requests(code, self.cores) {
            let location = request.location();
            let mut issued = outstanding.iter().flatten();
            if issued.any(|other| other.location() == location) {
                continue;
            }
            let Some(tag) = outstanding.iter().position(Option::is_none) else {
                break;
            };
            outstanding[tag] = Some(request);
            let access = match request {
                MemoryRequest::Write(_, value, release, via) => {
                    let access = write_access(&self.accesses[thread], via, release);
                    (LOAD.0, access.map(|access| (access, value)))
                }
                MemoryRequest::Read(..) => LOAD,
                MemoryRequest::Update(_, update, _) => atomic(update)?,
            };
            let delay = match is_start {
                true => self.start_delay(),
                false => self.delay(),
            };
            self.begin((thread, tag), location.into(), access, delay)?;
        }
        Ok(())
    }

    /// Reads the final values of all locations, each by a random thread.
    fn final_values(&mut self) -> Result<Vec<i64>, PortError> {
        let mut values = Vec::new();
        for location in 0..self.lines.len() {
            let thread = self.random.below(self.port.len() as u64) as usize;
            self.begin((thread, 0), location, LOAD, 0)?;
            values.push(self.complete()?.1);
        }
        Ok(values)
    }
}
