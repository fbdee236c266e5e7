//! `cohkit run --channel-program`: runs a compiled program on the hosts of a machine with near-memory cores, and the
//! channel programs that it starts on these cores.

mod channel_programs;
mod faults;
mod positions;

use crate::guest_io::GuestIo;
use crate::guest_program::{self, GuestProgram};
use crate::streaming_file::StreamingFile;
use crate::{observers, options};
use channel_programs::{input_error, ChannelProgram};
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::start_error::StartError;
use cohkit_api::{files, simulation};
use cohkit_base::words::counted;
use cohkit_nearmemory::{Binaries, Evictions, Machine, Platform, RunOutcome};
use cohkit_riscv::system::System;
use cohkit_riscv::FlatMemory;
use positions::RunningPrograms;
use std::path::Path;

pub(crate) use faults::near_memory_help;

/// Events between two checks for an interrupt by the user.
const STEPS_PER_POLL: u64 = 1 << 12;

/// Default limit on the instructions of all cores together; a run of this length takes some minutes.
const MAX_INSTRUCTIONS: u64 = 1_000_000_000;

/// Runs the program of the host and the channel programs that it starts. `main` is the host's memory with its first
/// address, `system` the state of the host program's system calls. The outcome is [`ExitStatus::Violated`] after an
/// exit code other than 0, an exception, a deadlock, a livelock or a race.
pub(crate) fn run(
    options: &options::Run,
    program: GuestProgram,
    main: (FlatMemory, u64),
    system: System,
    guest_io: GuestIo,
) -> Result<ExitStatus, Failure> {
    let colour = guest_io.console.terminal.colour;
    if let Some(file) = &options.timeline_options.timeline {
        files::try_file(file)?;
    }
    let platform = read_platform(options, colour)?;
    let channels = channel_programs::read(options, &platform)?;
    let binaries = binaries(&channels)?;
    let evictions = options.random_eviction_interval.map(|interval| Evictions {
        mean_interval: interval,
        seed: options.seed,
    });
    let mut machine = Machine::new(&platform, main, system, program.image, binaries, evictions);
    if options.races {
        machine.enable_race_detection();
    }
    if options.fast {
        machine.run_functionally();
    }
    let filter = options.timeline_options.filter();
    let mut filter = filter.map_err(|error| crate::sim::failure(error, colour))?;
    let timeline_file = options.timeline_options.create_file(&mut filter)?;
    if let Some(filter) = &filter {
        let program = options.program.file_stem().unwrap_or_default();
        let result = machine.record_timeline(filter, &program.to_string_lossy());
        result.map_err(|reason| input_error(&reason))?;
    }
    let mut run = NearMemoryRun {
        options,
        platform: &platform,
        program,
        channels: &channels,
        machine,
        guest_io,
        races: 0,
    };
    let mut outcome = run.run_to_end()?;
    if run.races > 0 {
        run.guest_io.say(&counted(run.races, "race"));
        if outcome == ExitStatus::Success {
            outcome = ExitStatus::Violated;
        }
    }
    if outcome == ExitStatus::Violated {
        let names = channels.iter().map(|channel| channel.name.as_str());
        let names: Vec<&str> = names.collect();
        run.guest_io.report_unknown_program(&names);
    }
    run.finish(timeline_file)?;
    Ok(outcome)
}

/// Channel programs in the form in which the host program opens them.
fn binaries(channels: &[ChannelProgram]) -> Result<Binaries, Failure> {
    let mut binaries = Binaries::default();
    for ChannelProgram { name, file } in channels {
        let result = binaries.add(name, file);
        result.map_err(|reason| input_error(&format!("the channel program `{name}`: {reason}")))?;
    }
    Ok(binaries)
}

/// Run of a machine, with the reports on it.
struct NearMemoryRun<'a, 'b, 'c> {
    options: &'a options::Run,
    platform: &'a Platform,
    /// Program of the hosts.
    program: GuestProgram<'a>,
    /// Channel programs that the host program can start.
    channels: &'a [ChannelProgram],
    machine: Machine,
    guest_io: GuestIo<'b, 'c>,
    /// Number of races so far.
    races: u64,
}

impl NearMemoryRun<'_, '_, '_> {
    /// Runs the machine until its host program ends or cannot continue, or the limit on instructions is reached.
    fn run_to_end(&mut self) -> Result<ExitStatus, Failure> {
        let max_instructions = self.options.max_instructions.unwrap_or(MAX_INSTRUCTIONS);
        loop {
            let run_outcome = self.machine.run(STEPS_PER_POLL, &mut self.guest_io);
            if let Some(failure) = self.guest_io.failure.take() {
                return Err(failure);
            }
            if let Some(outcome) = run_outcome.and_then(|outcome| self.report(outcome)) {
                return Ok(outcome);
            }
            if self.guest_io.console.is_interrupted() {
                self.machine.flush(&mut self.guest_io);
                self.guest_io.flush();
                let positions = self.programs().describe_positions();
                let message = format!("interrupted\n{positions}");
                return Err(Failure::new(ExitStatus::Interrupted, message));
            }
            if self.machine.instructions() >= max_instructions {
                self.machine.flush(&mut self.guest_io);
                let message = format!(
                    "undecided: the programs have not ended after {}\n  help: `--max-instructions N` gives them more\n{}",
                    counted(max_instructions, "instruction"),
                    self.programs().describe_positions()
                );
                self.guest_io.say(&message);
                return Ok(ExitStatus::Undecided);
            }
        }
    }

    /// Reports an event of the machine. Returns the outcome of the run if it has ended.
    fn report(&mut self, run_outcome: RunOutcome) -> Option<ExitStatus> {
        let message = match run_outcome {
            RunOutcome::Exit(0) => return Some(ExitStatus::Success),
            RunOutcome::Exit(code) => {
                let host = self
                    .machine
                    .failed_host()
                    .map(|host| self.host_prefix(host));
                let host = host.unwrap_or_default();
                format!("{host}the program ends with code {code}")
            }
            RunOutcome::Exception {
                host,
                exception,
                pc,
                instruction,
                jumped_from,
            } => {
                let position = self.program.describe_position(pc, &instruction);
                let jump = self.program.describe_jump(&exception, jumped_from);
                let explanation = faults::explain_host_fault(&exception, self.platform)
                    + &guest_program::explain_stack_overflow(&exception, self.options.memory);
                let host = self.host_prefix(host);
                self.error(&format!(
                    "{host}{exception}{explanation}, at {position}{jump}"
                ))
            }
            RunOutcome::Deadlock(reason) => {
                let hosts = match self.machine.host_count() {
                    1 => "the host waits",
                    _ => "the hosts wait",
                };
                self.error(&format!(
                    "deadlock: {hosts} for {reason}\n{}",
                    self.programs().describe_positions()
                ))
            }
            RunOutcome::Livelock(polls) => self.error(&format!(
                "livelock: no running program can write the polled addresses\n{}",
                self.programs().describe_livelock(&polls)
            )),
            RunOutcome::Race(race) => {
                self.races += 1;
                let message = self.programs().describe_race(&race);
                self.guest_io.say(&message);
                return None;
            }
            rejection @ (RunOutcome::Rejected { .. } | RunOutcome::Stopped { .. }) => {
                let (platform, channels) = (self.platform, self.channels);
                faults::report_rejection(&rejection, platform, channels, &mut self.guest_io);
                return None;
            }
        };
        self.guest_io.say(&message);
        Some(ExitStatus::Violated)
    }

    /// Begin of a message about a host's program: the host, if there are several.
    fn host_prefix(&self, host: usize) -> String {
        match self.machine.host_count() {
            1 => String::new(),
            _ => format!("host {host}: "),
        }
    }

    /// Error message about the host's program.
    fn error(&self, message: &str) -> String {
        format!("error: {}: {message}", self.options.program.display())
    }

    /// Programs at their current positions.
    fn programs(&self) -> RunningPrograms<'_> {
        RunningPrograms {
            machine: &self.machine,
            host: self.program,
            channels: self.channels,
        }
    }

    /// Prints the time, counters and timeline that the options ask for.
    ///
    /// # Errors
    /// The timeline cannot be written, or host I/O has failed.
    fn finish(mut self, timeline_file: Option<StreamingFile>) -> Result<(), Failure> {
        let (options, machine) = (self.options, &mut self.machine);
        self.guest_io.flush();
        if options.timed {
            let instructions = counted(machine.instructions(), "instruction");
            let nanoseconds = machine.now() / 1000;
            self.guest_io
                .say(&format!("{instructions} in {nanoseconds} ns"));
        }
        if options.counters {
            for (name, value) in machine.counters() {
                self.guest_io.say(&format!("{name}: {value}"));
            }
        }
        if let Some(mut timeline) = machine.timeline() {
            options
                .timeline_options
                .finish_file(timeline_file, Some(&mut timeline))?;
            let nouns = ["request of the host", "requests of the host"];
            let summary = observers::timeline_summary(&timeline, nouns);
            self.guest_io.say(summary.trim());
        }
        match self.guest_io.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

/// Returns the machine: the shipped one or that of a file, with the quantities that the options set.
fn read_platform(options: &options::Run, colour: bool) -> Result<Platform, Failure> {
    let mut platform = match &options.platform {
        None => Platform::enzian(),
        Some(path) => read_platform_file(path, colour)?,
    };
    let result = simulation::set_each(&options.set, |name, value| platform.set(name, value));
    result.map_err(|error| crate::sim::failure(error, colour))?;
    platform.check().map_err(|error| input_error(&error))?;
    Ok(platform)
}

/// Reads the machine of a file.
fn read_platform_file(path: &Path, colour: bool) -> Result<Platform, Failure> {
    let name = path.display().to_string();
    let bytes = files::read_bytes(
        path,
        "name a file like nearmemory/enzian.toml, a machine with cores beside far memory",
        "name a file in it",
    )?;
    let text = String::from_utf8(bytes)
        .map_err(|_| input_error(&format!("{name}: is not text in UTF-8")))?;
    Platform::read(&text).map_err(|errors| {
        let error = match cohkit_sim::platform::text::read(&text) {
            Ok(_) => StartError::input(
                format!("{name}: this is a machine without cores beside far memory"),
                "use `cohkit sim` for it; this command needs a machine like nearmemory/enzian.toml",
            ),
            Err(_) => StartError::Platform {
                file: name,
                text,
                errors,
            },
        };
        crate::sim::failure(error, colour)
    })
}
