//! `cohkit run`: runs a compiled program on a plain RV64 core, with the streams and files of the command. Exit code 1
//! means that the program failed.

use crate::console::Console;
use crate::guest_io::{self, GuestIo};
use crate::guest_program::{self, GuestProgram};
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
    let ((memory, base), system) = load_program(&image, options.memory << 20, &command)
        .map_err(|reason| input_error(&reason))?;
    let program = GuestProgram {
        file: &file,
        image: &image,
    };
    let guest_io = GuestIo::new(console, folder);
    match options.uses_near_memory() {
        true => run_near_memory::run(options, program, (memory, base), system, guest_io),
        false => PlainRun::new(options, program, memory, system, guest_io).run(),
    }
}

/// Run of a program on a plain core with flat memory.
struct PlainRun<'a, 'b, 'c> {
    options: &'a options::Run,
    program: GuestProgram<'a>,
    memory: FlatMemory,
    /// State of the program's system calls.
    system: System,
    hart: Hart,
    /// Core of runs without timing.
    fast: FastInterpreter,
    /// Core of timed runs, with the current cycle.
    timed: TimedInterpreter,
    /// Maximum number of instructions.
    max_instructions: u64,
    guest_io: GuestIo<'b, 'c>,
}

impl<'a, 'b, 'c> PlainRun<'a, 'b, 'c> {
    /// Prepares the core to start at the program's entry.
    fn new(
        options: &'a options::Run,
        program: GuestProgram<'a>,
        memory: FlatMemory,
        system: System,
        guest_io: GuestIo<'b, 'c>,
    ) -> PlainRun<'a, 'b, 'c> {
        let mut hart = Hart::new(0, Extensions::HOST);
        hart.pc = program.image.entry;
        // Initial stack pointer; programs with a C library set their own.
        hart.set_x(2, memory.end() - 64);
        hart.stack_limits = system.stack_limits();
        PlainRun {
            options,
            program,
            memory,
            system,
            hart,
            fast: FastInterpreter::default(),
            timed: TimedInterpreter::new(Latencies::small()),
            max_instructions: options.max_instructions.unwrap_or(MAX_INSTRUCTIONS),
            guest_io,
        }
    }

    /// Runs the program to its end. The outcome is [`ExitStatus::Violated`] if the program ends with another code than
    /// 0 or with an exception, and [`ExitStatus::Undecided`] at the limit on instructions.
    fn run(mut self) -> Result<ExitStatus, Failure> {
        let outcome = loop {
            let service_outcome = self.run_to_next_poll();
            if let Some(failure) = self.guest_io.failure.take() {
                return Err(failure);
            }
            if let Some(outcome) = service_outcome.and_then(|outcome| self.report_end(outcome)) {
                break outcome;
            }
            if self.guest_io.console.is_interrupted() {
                self.guest_io.flush();
                let message = format!("interrupted\n{}", self.describe_position());
                return Err(Failure::new(ExitStatus::Interrupted, message));
            }
            if self.hart.csrs.instret >= self.max_instructions {
                self.guest_io.say(&format!(
                    "undecided: the program has not ended after {}\n  help: `--max-instructions N` gives it more\n{}",
                    counted(self.max_instructions, "instruction"),
                    self.describe_position()
                ));
                break ExitStatus::Undecided;
            }
        };
        self.guest_io.flush();
        if outcome == ExitStatus::Violated {
            self.guest_io.report_unknown_program(&[]);
        }
        if self.options.timed {
            self.guest_io.say(&format!(
                "{} in {}",
                counted(self.hart.csrs.instret, "instruction"),
                counted(self.timed.now, "cycle")
            ));
        }
        match self.guest_io.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(outcome),
        }
    }

    /// Runs the core until an exception, or for at most [`STEPS_PER_POLL`]. Serves the exception, if there is one, as
    /// a system call.
    fn run_to_next_poll(&mut self) -> Option<ServiceOutcome> {
        let PlainRun { hart, memory, .. } = self;
        let remaining = self.max_instructions - hart.csrs.instret.min(self.max_instructions);
        let steps = STEPS_PER_POLL.min(remaining);
        let (_, stop) = if self.options.timed {
            // Every instruction takes at least one cycle, so the limit on cycles also limits instructions.
            let limit = self.timed.now.saturating_add(steps);
            self.timed.run(hart, memory, limit)
        } else {
            self.fast.run(hart, memory, steps)
        };
        self.guest_io.now = if self.options.timed {
            self.timed.now
        } else {
            hart.csrs.instret
        };
        match stop {
            Err(Stop::Exception(exception)) => {
                Some(
                    self.system
                        .serve(exception, hart, memory, &mut self.guest_io),
                )
            }
            Err(Stop::Wait) => unreachable!("flat memory completes every access at once"),
            Ok(()) => None,
        }
    }

    /// Reports the end of the program, and returns the outcome of the run; `None` if the program continues.
    fn report_end(&mut self, service_outcome: ServiceOutcome) -> Option<ExitStatus> {
        match service_outcome {
            ServiceOutcome::Done => None,
            ServiceOutcome::Exit(0) => Some(ExitStatus::Success),
            ServiceOutcome::Exit(code) => {
                self.guest_io
                    .say(&format!("the program ends with code {code}"));
                Some(ExitStatus::Violated)
            }
            ServiceOutcome::Exception(exception) => {
                let (program, hart) = (self.program, &self.hart);
                let position = program.describe_position(hart.pc, &self.disassemble_current());
                let jump = program.describe_jump(&exception, hart.jumped_from());
                let program_name = self.options.program.display();
                let help = run_near_memory::near_memory_help(&exception);
                let explanation =
                    guest_program::explain_stack_overflow(&exception, self.options.memory);
                self.guest_io.say(&format!(
                    "error: {program_name}: {exception}{explanation}, at {position}{jump}{help}"
                ));
                Some(ExitStatus::Violated)
            }
        }
    }

    /// Sentence with the current position of the program.
    fn describe_position(&self) -> String {
        let instruction = self.disassemble_current();
        let position = self.program.describe_position(self.hart.pc, &instruction);
        format!("the program is at {position}")
    }

    /// Instruction at the program counter in assembly; empty if it is not readable.
    fn disassemble_current(&self) -> String {
        let bytes_at_pc = |length| self.memory.bytes(self.hart.pc, length);
        // A compressed instruction may be the last 2 bytes of memory.
        let Some(bytes) = bytes_at_pc(4).or(bytes_at_pc(2)) else {
            return String::new();
        };
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        self.hart.decoder().disassemble(u32::from_le_bytes(word))
    }
}
