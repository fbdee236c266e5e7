//! `cohkit run`: runs a compiled program on a plain RV64 core, with the streams and files of the command. Exit code 1
//! means that the program failed.

use crate::console::Console;
use crate::guest_io::{self, GuestIo};
use crate::{options, run_near_memory};
use cohkit_api::files;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_base::words::counted;
use cohkit_nearmemory::machine::load_program;
use cohkit_riscv::channel;
use cohkit_riscv::elf::Image;
use cohkit_riscv::system::{ServiceOutcome, System};
use cohkit_riscv::{
    Extensions, FastInterpreter, FlatMemory, Hart, Latencies, Stop, TimedInterpreter,
};

/// Instructions, or cycles in timed runs, between two checks for an interrupt by the user.
const STEPS_PER_POLL: u64 = 1 << 22;

/// Default limit on instructions; a run of this length takes a minute or two.
const MAX_INSTRUCTIONS: u64 = 10_000_000_000;

/// Runs a program: on the host of a machine with near-memory cores if an option needs one, or else on a plain core.
pub(crate) fn run(options: &options::Run, console: &mut Console) -> Result<ExitStatus, Failure> {
    let program_name = options.program.display();
    let input_error = |reason: &str| {
        let help = match reason.contains("\n  help: ") {
            true => "",
            false => "\n  help: docs/riscv.md shows how to compile a program, docs/nearmemory.md how to compile one for a host",
        };
        Failure::new(
            ExitStatus::BadInput,
            format!("error: {program_name}: {reason}{help}"),
        )
    };
    let file = files::read_bytes(
        &options.program,
        "a program is an RV64 ELF file; docs/riscv.md shows how to compile one",
        "name a program in it",
    )?;
    let image = Image::read(&file).map_err(|reason| input_error(&reason))?;
    if channel::read_unverified(&file).is_ok() {
        return Err(input_error(
            "this is a channel program, which a host starts\n  help: `--channel-program NAME=PROGRAM` names it; the host's program follows",
        ));
    }
    let folder = options
        .guest_folder
        .as_deref()
        .map(guest_io::canonical_path)
        .transpose()?;
    let command = options.arguments.join(" ");
    let loaded = load_program(&image, options.memory << 20, &command)
        .map_err(|reason| input_error(&reason))?;
    let guest_io = GuestIo::new(console, folder);
    match options.uses_near_memory() {
        true => run_near_memory::run(options, &file, &image, loaded, guest_io),
        false => run_plain(options, &file, &image, loaded, guest_io),
    }
}

/// Runs a program on a plain core with flat memory. `file` is the ELF file, `image` its parsed form, and `memory` the
/// loaded program. The outcome is [`ExitStatus::Violated`] if the program ends with another code than 0 or with an
/// exception, and [`ExitStatus::Undecided`] at the limit on instructions.
fn run_plain(
    options: &options::Run,
    file: &[u8],
    image: &Image,
    ((mut memory, _), mut system): ((FlatMemory, u64), System),
    mut guest_io: GuestIo,
) -> Result<ExitStatus, Failure> {
    let mut hart = Hart::new(0, Extensions::HOST);
    hart.pc = image.entry;
    // Initial stack pointer; programs with a C library set their own.
    hart.set_x(2, memory.end() - 64);
    hart.stack_limits = system.stack_limits();
    let max_instructions = options.max_instructions.unwrap_or(MAX_INSTRUCTIONS);
    let (mut fast, mut timed) = (
        FastInterpreter::default(),
        TimedInterpreter::new(Latencies::small()),
    );
    let outcome = loop {
        let remaining = max_instructions - hart.csrs.instret.min(max_instructions);
        let stop = if options.timed {
            // Every instruction takes at least one cycle, so the limit on cycles also limits instructions.
            let limit = timed.now.saturating_add(STEPS_PER_POLL.min(remaining));
            timed.run(&mut hart, &mut memory, limit).1
        } else {
            fast.run(&mut hart, &mut memory, STEPS_PER_POLL.min(remaining))
                .1
        };
        guest_io.now = if options.timed {
            timed.now
        } else {
            hart.csrs.instret
        };
        let outcome_of_service = match stop {
            Err(Stop::Exception(exception)) => {
                Some(system.serve(exception, &mut hart, &mut memory, &mut guest_io))
            }
            Err(Stop::Wait) => unreachable!("flat memory lets nobody wait"),
            Ok(()) => None,
        };
        if let Some(failure) = guest_io.failure.take() {
            return Err(failure);
        }
        match outcome_of_service {
            Some(ServiceOutcome::Exit(0)) => break ExitStatus::Success,
            Some(ServiceOutcome::Exit(code)) => {
                guest_io.say(&format!("the program ends with code {code}"));
                break ExitStatus::Violated;
            }
            Some(ServiceOutcome::Exception(exception)) => {
                let instruction = instruction(&hart, &memory);
                let place = guest_io::describe_place(file, image, hart.pc, &instruction);
                let origin = guest_io::jump_origin(file, image, &exception, hart.jumped_from());
                let program_name = options.program.display();
                let help = run_near_memory::needs_cores(&exception);
                let explanation = guest_io::stack_size(&exception, options.memory);
                guest_io.say(&format!(
                    "error: {program_name}: {exception}{explanation}, at {place}{origin}{help}"
                ));
                break ExitStatus::Violated;
            }
            Some(ServiceOutcome::Done) | None => {}
        }
        if guest_io.console.is_interrupted() {
            guest_io.flush();
            let message = format!(
                "interrupted\n{}",
                program_position(file, image, &hart, &memory)
            );
            return Err(Failure::new(ExitStatus::Interrupted, message));
        }
        if hart.csrs.instret >= max_instructions {
            guest_io.say(&format!(
                "undecided: the program has not ended after {}\n  help: `--max-instructions N` gives it more\n{}",
                counted(max_instructions, "instruction"),
                program_position(file, image, &hart, &memory)
            ));
            break ExitStatus::Undecided;
        }
    };
    guest_io.flush();
    if outcome == ExitStatus::Violated {
        guest_io.report_unknown_program(&[]);
    }
    if options.timed {
        guest_io.say(&format!(
            "{} in {}",
            counted(hart.csrs.instret, "instruction"),
            counted(timed.now, "cycle")
        ));
    }
    match guest_io.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(outcome),
    }
}

/// Current position of the program.
fn program_position(file: &[u8], image: &Image, hart: &Hart, memory: &FlatMemory) -> String {
    let place = guest_io::describe_place(file, image, hart.pc, &instruction(hart, memory));
    format!("the program is at {place}")
}

/// Instruction at the program counter, disassembled; empty if it is not readable.
fn instruction(hart: &Hart, memory: &FlatMemory) -> String {
    let word = |length| memory.bytes(hart.pc, length);
    let Some(bytes) = word(4).or(word(2)) else {
        return String::new();
    };
    let mut word = [0; 4];
    word[..bytes.len()].copy_from_slice(bytes);
    hart.decoder().disassemble(u32::from_le_bytes(word))
}
