//! `cohkit run --channel-program`: runs a compiled program on the host of a machine with near-memory cores, and the
//! channel programs that it starts on these cores.

use crate::guest_io::{self, GuestIo};
use crate::streaming_file::StreamingFile;
use crate::{observers, options};
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::start_error::StartError;
use cohkit_api::{files, simulation};
use cohkit_base::words::counted;
use cohkit_nearmemory::device::{State, FIFOS, FIFO_PIPES, FIFO_STRIDE};
use cohkit_nearmemory::{
    controller, host, Binaries, Evictions, Machine, Platform, RunOutcome, LINE,
};
use cohkit_nearmemory::{CoreId, Poll, Race, RaceKind, Site, Transfer, TransferError};
use cohkit_riscv::channel::{self, Grant};
use cohkit_riscv::elf::{Image, Segment};
use cohkit_riscv::system::System;
use cohkit_riscv::{Exception, Extensions, FlatMemory};
use std::path::Path;

/// Events between two checks for an interrupt by the user.
const STEPS_PER_POLL: u64 = 1 << 12;

/// Default limit on the instructions of all cores together; a run of this length takes some minutes.
const MAX_INSTRUCTIONS: u64 = 1_000_000_000;

/// Help line for errors of channel programs that bring no help of their own.
const CHANNEL_PROGRAM_HELP: &str = "\n  help: docs/nearmemory.md shows how to compile a channel program and declare its needs with `NM_CHANNEL`";

/// A channel program: its name, and the contents of its file.
struct Channel {
    /// Name by which the host program starts the channel program.
    name: String,
    /// Contents of the ELF file.
    file: Vec<u8>,
}

/// Runs the program of the host and the channel programs that it starts. `file` is the host's ELF file, `image` its
/// parsed form, and `main` its memory with the address where that begins. The outcome is [`ExitStatus::Violated`]
/// after an exit code other than 0, an exception, a deadlock, a livelock or a race.
pub(crate) fn run(
    options: &options::Run,
    file: &[u8],
    image: &Image,
    (main, system): ((FlatMemory, u64), System),
    mut guest_io: GuestIo,
) -> Result<ExitStatus, Failure> {
    let colour = guest_io.console.terminal.colour;
    if let Some(file) = &options.timeline_options.timeline {
        files::try_file(file)?;
    }
    let platform = read_platform(options, colour)?;
    let channels = read_channels(options, &platform)?;
    let mut machine = create_machine(options, &platform, &channels, (main, system), image.entry)?;
    let filter = options.timeline_options.filter();
    let mut filter = filter.map_err(|error| crate::sim::failure(error, colour))?;
    let timeline_file = options.timeline_options.create_file(&mut filter)?;
    if let Some(filter) = &filter {
        let program = options.program.file_stem().unwrap_or_default();
        let result = machine.record_timeline(filter, &program.to_string_lossy());
        result.map_err(|reason| input_error(&reason))?;
    }
    let program_name = options.program.display();
    let max_instructions = options.max_instructions.unwrap_or(MAX_INSTRUCTIONS);
    let mut races: u64 = 0;
    let mut outcome = ExitStatus::Success;
    loop {
        let run_outcome = machine.run(STEPS_PER_POLL, &mut guest_io);
        if let Some(failure) = guest_io.failure.take() {
            return Err(failure);
        }
        match run_outcome {
            Some(RunOutcome::Exit(0)) => break,
            Some(RunOutcome::Exit(code)) => {
                guest_io.say(&format!("the program ends with code {code}"));
                outcome = ExitStatus::Violated;
                break;
            }
            Some(RunOutcome::Exception {
                exception,
                pc,
                instruction,
                jumped_from,
            }) => {
                let place = guest_io::describe_place(file, image, pc, &instruction);
                let origin = guest_io::jump_origin(file, image, &exception, jumped_from);
                let explanation = explain_access_fault(&exception, &platform)
                    + &guest_io::stack_size(&exception, options.memory);
                guest_io.say(&format!(
                    "error: {program_name}: {exception}{explanation}, at {place}{origin}"
                ));
                outcome = ExitStatus::Violated;
                break;
            }
            Some(RunOutcome::Deadlock(reason)) => {
                guest_io.say(&format!(
                    "error: {program_name}: deadlock: the host waits for {reason}\n{}",
                    program_positions((file, image), &machine, &channels)
                ));
                outcome = ExitStatus::Violated;
                break;
            }
            Some(RunOutcome::Livelock(polls)) => {
                let polls = polls.iter();
                let polls: Vec<String> = polls
                    .map(|poll| describe_poll(poll, (file, image), &machine, &channels))
                    .chain(ended_programs((file, image), &machine, &channels))
                    .collect();
                guest_io.say(&format!(
                    "error: {program_name}: livelock: no running program can write the polled addresses\n{}",
                    polls.join("\n")
                ));
                outcome = ExitStatus::Violated;
                break;
            }
            Some(RunOutcome::Race(race)) => {
                races += 1;
                guest_io.say(&describe_race(&race, (file, image), &machine, &channels));
            }
            Some(rejection) => report_rejection(&rejection, &platform, &channels, &mut guest_io),
            None => {}
        }
        if guest_io.console.is_interrupted() {
            machine.flush(&mut guest_io);
            guest_io.flush();
            let places = program_positions((file, image), &machine, &channels);
            let message = format!("interrupted\n{places}");
            return Err(Failure::new(ExitStatus::Interrupted, message));
        }
        if machine.instructions() >= max_instructions {
            machine.flush(&mut guest_io);
            guest_io.say(&format!(
                "undecided: the programs have not ended after {}\n  help: `--max-instructions N` gives them more\n{}",
                counted(max_instructions, "instruction"),
                program_positions((file, image), &machine, &channels)
            ));
            outcome = ExitStatus::Undecided;
            break;
        }
    }
    if races > 0 {
        guest_io.say(&counted(races, "race"));
        if outcome == ExitStatus::Success {
            outcome = ExitStatus::Violated;
        }
    }
    if outcome == ExitStatus::Violated {
        let names: Vec<&str> = channels
            .iter()
            .map(|channel| channel.name.as_str())
            .collect();
        guest_io.report_unknown_program(&names);
    }
    finish(options, &mut machine, (guest_io, timeline_file), outcome)
}

/// Returns the machine with its programs; the options select evictions, race detection and functional simulation.
fn create_machine(
    options: &options::Run,
    platform: &Platform,
    channels: &[Channel],
    (main, system): ((FlatMemory, u64), System),
    entry: u64,
) -> Result<Machine, Failure> {
    let mut binaries = Binaries::default();
    for Channel { name, file } in channels {
        let result = binaries.add(name, file);
        result.map_err(|reason| input_error(&format!("the channel program `{name}`: {reason}")))?;
    }
    let evictions = options.random_eviction_interval.map(|interval| Evictions {
        mean_interval: interval,
        seed: options.seed,
    });
    let mut machine = Machine::new(platform, main, system, entry, binaries, evictions);
    if options.races {
        machine.enable_race_detection();
    }
    if options.fast {
        machine.run_functionally();
    }
    Ok(machine)
}

/// Prints the time, counters and timeline that the options ask for. Returns `outcome`, or the failure of host I/O.
fn finish(
    options: &options::Run,
    machine: &mut Machine,
    (mut guest_io, timeline_file): (GuestIo, Option<StreamingFile>),
    outcome: ExitStatus,
) -> Result<ExitStatus, Failure> {
    guest_io.flush();
    if options.timed {
        let instructions = counted(machine.instructions(), "instruction");
        guest_io.say(&format!("{instructions} in {} ns", machine.now() / 1000));
    }
    if options.counters {
        for (name, value) in machine.counters() {
            guest_io.say(&format!("{name}: {value}"));
        }
    }
    if let Some(mut timeline) = machine.timeline() {
        options
            .timeline_options
            .finish_file(timeline_file, Some(&mut timeline))?;
        let summary =
            observers::timeline_summary(&timeline, ["request of the host", "requests of the host"]);
        guest_io.say(summary.trim());
    }
    match guest_io.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(outcome),
    }
}

/// Reports that a core rejected or stopped a channel program; the machine itself notifies the host program.
fn report_rejection(
    outcome: &RunOutcome,
    platform: &Platform,
    channels: &[Channel],
    guest_io: &mut GuestIo,
) {
    let named_program = |name: &Option<String>| match name {
        Some(name) => format!("the channel program `{name}`"),
        None => "a channel program".to_string(),
    };
    match outcome {
        RunOutcome::Rejected { mcc, name, reason } => {
            guest_io.say(&format!(
                "core {mcc} refuses {}: {reason}",
                named_program(name)
            ));
        }
        RunOutcome::Stopped {
            mcc,
            name,
            exception,
            pc,
            instruction,
            copy,
            jumped_from,
        } => {
            let channel = channels.iter().find(|c| Some(&c.name) == name.as_ref());
            let image =
                channel.and_then(|channel| Some((channel, Image::read(&channel.file).ok()?)));
            let mut place = match &image {
                Some((channel, image)) => {
                    guest_io::describe_place(&channel.file, image, *pc, instruction)
                }
                None => format!("{pc:#x}: {instruction}"),
            };
            if let Some((channel, image)) = &image {
                place += &guest_io::jump_origin(&channel.file, image, exception, *jumped_from);
            }
            let name = named_program(name);
            let manifest =
                channel.and_then(|channel| Some(channel::read_unverified(&channel.file).ok()?.1));
            let stack = manifest.as_ref().map_or(0, |manifest| manifest.stack);
            let own_fifo = FIFO_PIPES + *mcc as u64;
            let has_own_fifo = manifest.is_some_and(|manifest| manifest.pipes.contains(&own_fifo));
            let explanation = match exception {
                Exception::StoreFault(at) | Exception::LoadFault(at) => {
                    let copy = copy.map(|copy| invalid_copy_reason(copy, platform));
                    let stores = matches!(exception, Exception::StoreFault(_));
                    let image = image.as_ref().filter(|_| stores);
                    let segments = image.map_or(&[][..], |(_, image)| &image.segments);
                    let explanation = copy
                        .or_else(|| segment_at(*at, segments))
                        .or_else(|| {
                            has_own_fifo
                                .then(|| own_fifo_at(*at, *mcc, stores))
                                .flatten()
                        })
                        .or_else(|| explain_core_fault(*at, platform, stack));
                    explanation.map_or_else(String::new, |explanation| format!(" ({explanation})"))
                }
                _ => String::new(),
            };
            guest_io.say(&format!(
                "core {mcc} stops {name}: {exception}{explanation}, at {place}"
            ));
        }
        _ => {}
    }
}

/// Help line for a program on a plain core that accesses far memory or the cores beside it; empty for other exceptions.
pub(crate) fn needs_cores(exception: &Exception) -> &'static str {
    use host::{FAR, REGISTERS, REGISTERS_STRIDE};
    match exception {
        Exception::LoadFault(address) | Exception::StoreFault(address)
            if (FAR..REGISTERS + 256 * REGISTERS_STRIDE).contains(address) =>
        {
            "\n  help: `--channel-program NAME=PROGRAM` runs it on a machine with far memory and cores beside it, as docs/nearmemory.md shows"
        }
        _ => "",
    }
}

/// Explanation of a host's access fault, in parentheses; empty if there is nothing to add to the address.
fn explain_access_fault(exception: &Exception, platform: &Platform) -> String {
    use host::{FAR, REGISTERS, REGISTERS_STRIDE, SCRATCHPADS, SCRATCHPAD_STRIDE};
    let (Exception::LoadFault(address) | Exception::StoreFault(address)) = *exception else {
        return String::new();
    };
    let core = match (SCRATCHPADS..REGISTERS).contains(&address) {
        true => (address - SCRATCHPADS) / SCRATCHPAD_STRIDE,
        false => address.saturating_sub(REGISTERS) / REGISTERS_STRIDE,
    };
    let cores = platform.mccs.value;
    if (cores..256).contains(&core) {
        return format!(" (of core {core} beside far memory, and there are {cores}, from 0 on)");
    }
    let lines = platform.scratchpad.value;
    let line = address.wrapping_sub(SCRATCHPADS) % SCRATCHPAD_STRIDE / LINE as u64;
    match address {
        SCRATCHPADS..REGISTERS if line >= lines => {
            format!(" (line {line} of the scratchpad of core {core}, which has {lines})")
        }
        // Existing lines of scratchpads fault only on atomic accesses.
        SCRATCHPADS..REGISTERS => " (atomic access; scratchpads do not support it)".into(),
        FAR.. if address - FAR < platform.far_bytes.value => {
            " (atomic access; far memory is not coherent and does not support it)".into()
        }
        _ => String::new(),
    }
}

/// Reason why a copy is invalid.
fn invalid_copy_reason(
    (transfer, error): (Transfer, TransferError),
    platform: &Platform,
) -> String {
    let Transfer { line, far, .. } = transfer;
    let lines = counted(transfer.lines as u64, "line");
    match error {
        TransferError::NoLine => "a copy of zero lines".to_string(),
        TransferError::WithinLine => {
            format!("a copy with far memory at {far:#x}, which is not aligned to lines of {LINE} bytes")
        }
        TransferError::Scratchpad => format!(
            "a copy of {lines} from line {line} of the scratchpad on, which has {}",
            platform.scratchpad.value
        ),
        TransferError::Far => format!(
            "a copy of {lines} from {far:#x} on, which is partly outside the far memory that the host granted it"
        ),
    }
}

/// Description of the read-only segment that contains the address, if any.
fn segment_at(address: u64, segments: &[Segment]) -> Option<String> {
    let contains = |segment: &&Segment| address.wrapping_sub(segment.address) < segment.length;
    let segment = segments.iter().find(contains)?;
    let contents = match (segment.writable, segment.executable) {
        (true, _) => return None,
        (false, true) => "instructions",
        (false, false) => "constants",
    };
    Some(format!("of its {contents}, which are read-only"))
}

/// Reason why a core would wait for its own FIFO forever; none if the address is not in this FIFO.
fn own_fifo_at(address: u64, core: usize, stores: bool) -> Option<String> {
    let begin = FIFOS + core as u64 * FIFO_STRIDE;
    let state = match stores {
        true => "full, and only this core can remove a word from it",
        false => "empty, and only this core can add a word to it",
    };
    (begin..begin + FIFO_STRIDE)
        .contains(&address)
        .then(|| format!("the FIFO from core {core} to itself is {state}"))
}

/// Explanation of an access fault of a near-memory core; none if there is nothing to add to the address.
fn explain_core_fault(address: u64, platform: &Platform, stack: u64) -> Option<String> {
    use controller::{FETCH, PRIVATE, SCRATCHPAD, SHARED, SHARES, STORE};
    let scratchpad = platform.scratchpad.value;
    let stack_begins = (PRIVATE + platform.private.value).saturating_sub(stack);
    let description = match address {
        FETCH | STORE => "a register that starts a copy; it accepts only whole words".to_string(),
        _ if (stack_begins.saturating_sub(stack.min(4096))..stack_begins).contains(&address) => {
            format!("below its stack; its `NM_CHANNEL` requests {stack} bytes")
        }
        _ if (SCRATCHPAD..SCRATCHPAD + scratchpad * LINE as u64).contains(&address) => {
            "an access to two lines of the scratchpad, or an atomic access".to_string()
        }
        _ if (SCRATCHPAD..controller::REGISTERS).contains(&address) => format!(
            "line {} of the scratchpad, which has {scratchpad}",
            (address - SCRATCHPAD) / LINE as u64,
        ),
        controller::LOCK | controller::RELEASE | controller::UNLOCK => {
            format!("a lock of a line outside the scratchpad, which has {scratchpad}")
        }
        _ if (SHARED..SHARED + SHARES as u64 * 8).contains(&address) => {
            let pipe = (address - SHARED) / 16;
            format!("of the register pipe that `NM_REGISTER_PIPE({pipe})` asks for")
        }
        _ if (FIFOS..FIFOS + platform.mccs.value * FIFO_STRIDE).contains(&address) => {
            let core = (address - FIFOS) / FIFO_STRIDE;
            format!("of the FIFO that `NM_FIFO({core})` asks for")
        }
        _ if (host::FAR..host::FAR + platform.far_bytes.value).contains(&address) => {
            "far memory; a core accesses it only through its copy engine".to_string()
        }
        _ => return None,
    };
    Some(description)
}

/// Description of a core's endless loop: the address that it polls, if any, and its place in the program.
fn describe_poll(
    poll: &Poll,
    host: (&[u8], &Image),
    machine: &Machine,
    channels: &[Channel],
) -> String {
    let action = match poll.address {
        Some(address) => format!("polls {}, at", polled_place(poll.core_id, address)),
        None => "is at".to_string(),
    };
    let Poll { core_id, pc, .. } = *poll;
    describe_place(Site { core_id, pc }, &action, host, machine, channels)
}

/// Name of the memory or register that a core polls at an address.
fn polled_place(core_id: CoreId, address: u64) -> String {
    use controller::{REGISTERS, SCRATCHPAD, SHARED, STAMPS};
    let line = LINE as u64;
    let (control, strides) = (0x800, (host::SCRATCHPAD_STRIDE, host::REGISTERS_STRIDE));
    match core_id {
        CoreId::Host(_) if address >= host::REGISTERS => {
            let (core, offset) = ((address - host::REGISTERS) / strides.1, address % strides.1);
            match offset < control {
                true => format!("register {} shared with core {core}", offset / 8),
                false => format!("a control register of core {core}"),
            }
        }
        CoreId::Host(_) if address >= host::SCRATCHPADS => {
            let (core, offset) = (
                (address - host::SCRATCHPADS) / strides.0,
                address % strides.0,
            );
            format!("line {} of the scratchpad of core {core}", offset / line)
        }
        CoreId::Mcc(_) if address >= STAMPS => {
            format!(
                "the stamps of line {} of its scratchpad",
                (address - STAMPS) / 16
            )
        }
        CoreId::Mcc(_) if address >= FIFOS => {
            format!("the FIFO from core {}", (address - FIFOS) / FIFO_STRIDE)
        }
        CoreId::Mcc(_) if address >= SHARED => {
            format!("register {} shared with the host", (address - SHARED) / 8)
        }
        CoreId::Mcc(_) if address >= REGISTERS => "its notices".to_string(),
        CoreId::Mcc(_) if address >= SCRATCHPAD => {
            format!("line {} of its scratchpad", (address - SCRATCHPAD) / line)
        }
        _ => format!("{address:#x}"),
    }
}

/// Programs that have ended on near-memory cores, with the reason and the place.
fn ended_programs(host: (&[u8], &Image), machine: &Machine, channels: &[Channel]) -> Vec<String> {
    let programs = machine.ended_programs().into_iter();
    let places = programs.map(|(site, state, code)| {
        let action = match state {
            State::Stopped => "was stopped by a fault, at".to_string(),
            _ if code == u64::MAX => "was stopped by the host, at".to_string(),
            _ => format!("has ended with {code}, at"),
        };
        describe_place(site, &action, host, machine, channels)
    });
    places.collect()
}

/// Positions of all running programs, one per line.
fn program_positions(host: (&[u8], &Image), machine: &Machine, channels: &[Channel]) -> String {
    let sites = machine.sites().into_iter();
    let places = sites.map(|site| describe_place(site, "is at", host, machine, channels));
    places.collect::<Vec<_>>().join("\n")
}

/// Description of a core's action and its place in the program.
fn describe_place(
    site: Site,
    action: &str,
    (file, image): (&[u8], &Image),
    machine: &Machine,
    channels: &[Channel],
) -> String {
    match site.core_id {
        CoreId::Host(core) => {
            let place = guest_io::describe_place(file, image, site.pc, "");
            format!("the host's core {core} {action} {place}")
        }
        CoreId::Mcc(mcc) => {
            let name = machine.binary_name(mcc);
            let channel = channels
                .iter()
                .find(|channel| Some(channel.name.as_str()) == name);
            let image =
                channel.and_then(|channel| Some((channel, Image::read(&channel.file).ok()?)));
            let place = image.map_or_else(
                || format!("{:#x}", site.pc),
                |(channel, image)| guest_io::describe_place(&channel.file, &image, site.pc, ""),
            );
            let name = name.map_or_else(String::new, |name| format!(" of `{name}`"));
            format!("core {mcc}{name} {action} {place}")
        }
    }
}

/// Description of a race with both places.
fn describe_race(
    race: &Race,
    host: (&[u8], &Image),
    machine: &Machine,
    channels: &[Channel],
) -> String {
    let (description, second_action, first_action) = match race.kind {
        RaceKind::StaleLoad => ("is stale when it is loaded", "loads it", "wrote it"),
        RaceKind::StaleFetch => (
            "is fetched before a store to it is guaranteed to have reached far memory",
            "fetches it",
            "stored in it",
        ),
        RaceKind::Overwritten => (
            "is written back and overwrites newer data",
            "stored in a line that was stale",
            "wrote the newer data",
        ),
        RaceKind::BothWrite => ("is written by both sides", "writes it", "has written it"),
        RaceKind::NotStored => (
            "is loaded before its store is guaranteed to have reached far memory",
            "loads it",
            "stores it",
        ),
        RaceKind::NotFetched => (
            "is the destination of a fetch and is used before the fetch is guaranteed to be complete",
            "uses it",
            "fetches it",
        ),
        RaceKind::Reused => (
            "is the source of a store and is changed before the store is guaranteed to have reached far memory",
            "changes it",
            "stores it",
        ),
        RaceKind::UnorderedStores => (
            "is stored by two programs without synchronisation",
            "stores it",
            "stored it",
        ),
        RaceKind::UnorderedRead => (
            "is read by one program and stored by another without synchronisation",
            "accesses it",
            "accessed it",
        ),
        RaceKind::HalfWritten => (
            "may be loaded half-written: a cache may evict it between two stores",
            "loads it",
            "stores this word after others of the line",
        ),
    };
    let place =
        |site, action| describe_place(site, &format!("{action}, at"), host, machine, channels);
    let (second, first) = (
        place(race.second, second_action),
        place(race.first, first_action),
    );
    format!(
        "race: the line at {:#x} {description}\n{second}\n{first}",
        race.line
    )
}

/// Failure for an invalid machine or channel program.
fn input_error(reason: &str) -> Failure {
    Failure::new(ExitStatus::BadInput, format!("error: {reason}"))
}

/// Returns the machine: the shipped one or that of a file, with the quantities that the options set.
fn read_platform(options: &options::Run, colour: bool) -> Result<Platform, Failure> {
    let mut platform = match &options.platform {
        None => Platform::enzian(),
        Some(path) => read_platform_file(path, colour)?,
    };
    let result = simulation::set_each(&options.set, |name, value| platform.set(name, value));
    result.map_err(|error| crate::sim::failure(error, colour))?;
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

/// Reads the channel programs. Verifies each, unless the options leave verification to the cores.
fn read_channels(options: &options::Run, platform: &Platform) -> Result<Vec<Channel>, Failure> {
    let private = controller::PRIVATE..controller::PRIVATE + platform.private.value;
    let grant = Grant {
        extensions: Extensions::NEAR_MEMORY,
        private,
        pipes: (0..FIFO_PIPES + platform.mccs.value).collect(),
        far: std::iter::once(host::FAR..host::FAR + platform.far_bytes.value).collect(),
    };
    let mut channels: Vec<Channel> = Vec::new();
    for option in &options.channel_programs {
        let (name, path) = option.split_once('=').ok_or_else(|| {
            input_error(&format!(
                "`--channel-program {option}` has no `=`\n  help: write it like `sum=sum.elf`"
            ))
        })?;
        if name.is_empty() {
            return Err(input_error(&format!(
                "`--channel-program {option}` has no name\n  help: write it like `sum=sum.elf`"
            )));
        }
        if channels.iter().any(|channel| channel.name == name) {
            return Err(input_error(&format!(
                "there are two channel programs `{name}`"
            )));
        }
        let file = files::read_bytes(
            Path::new(path),
            "a channel program is an RV64 ELF file; docs/nearmemory.md shows how to compile one",
            "name a program in it",
        )?;
        if !options.skip_verification {
            let result = channel::verify(&file, &grant);
            result.map_err(|rejection| {
                let mut message = rejection.to_string();
                if !message.contains("\n  help: ") {
                    message += CHANNEL_PROGRAM_HELP;
                }
                input_error(&format!("{path}: {message}"))
            })?;
        }
        let name = name.to_string();
        channels.push(Channel { name, file });
    }
    Ok(channels)
}
