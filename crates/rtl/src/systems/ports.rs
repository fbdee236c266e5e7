//! Processor ports of a system in Verilator, which a program drives access by access.

use super::build::{MSHRS, TIMING_LINE_WIDTH};
use super::operations::Operation;
use cohkit_system::ports::{PortCompletion, PortError, PortOperation, PortRequest, Ports};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of lines of the test bench.
const LINES: usize = 8;

/// A program of [`super::build::Bench::Ports`]. It serves any number of runs, and is started again after a failure.
pub struct SystemPorts<'s> {
    /// Path of the program.
    path: PathBuf,
    /// Fault that is active, in a program with seeded faults; 0 for none.
    fault: u32,
    /// The running program; `None` before the first run, and after a failure.
    program: Option<Program>,
    /// Number of caches.
    caches: u64,
    /// Number of lines.
    lines: usize,
    /// Number of outstanding accesses of each cache.
    mshrs: usize,
    /// Cycles of the last completion.
    timing: Timing,
    /// Cancels the run.
    stop: &'s AtomicBool,
}

/// Time of a completion.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Timing {
    /// Cycles since the port presented the access; 1 for an answer in the next cycle.
    pub cycles: u64,
    /// Cycles since the system was created.
    pub time: u64,
}

/// A running program.
struct Program {
    /// The process.
    child: Child,
    /// Its commands.
    input: ChildStdin,
    /// Its answers.
    output: BufReader<ChildStdout>,
    /// Standard error of the process.
    errors: ChildStderr,
}

/// Answer of a program.
enum Answer {
    /// A completed access.
    Completion(PortCompletion, Timing),
    /// No message is in flight.
    End,
}

impl Program {
    /// Starts a program.
    fn start(path: &Path, fault: u32) -> Result<Program, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut child = Command::new(path)
            .arg(format!("+fault+{fault}"))
            .arg("+verilator+rand+reset+2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(input), Some(output), Some(errors)) => Ok(Program {
                child,
                input,
                output: BufReader::new(output),
                errors,
            }),
            _ => Err(format!("{}: no pipes", path.display())),
        }
    }

    /// Error of a program that has ended without an answer, with its own message.
    fn ended(&mut self) -> PortError {
        let mut message = String::new();
        let _ = self.errors.read_to_string(&mut message);
        let reason = match message.trim_end() {
            "" => "the program of the system ended".to_string(),
            message => format!("the program of the system ended: {message}"),
        };
        PortError::Failed(reason)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A program that has ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl<'s> SystemPorts<'s> {
    /// Prepares the program of a system with this number of caches. `fault` selects a fault of a program with seeded
    /// faults; 0 is none. The first run starts the program.
    pub fn new(path: &Path, caches: u64, fault: u32, stop: &'s AtomicBool) -> SystemPorts<'s> {
        SystemPorts {
            path: path.to_path_buf(),
            fault,
            program: None,
            caches,
            lines: LINES,
            mshrs: MSHRS,
            timing: Timing::default(),
            stop,
        }
    }

    /// Prepares the program of [`super::build::Bench::Timing`] in the same way.
    pub fn timing(path: &Path, caches: u64, stop: &'s AtomicBool) -> SystemPorts<'s> {
        SystemPorts {
            lines: 1 << TIMING_LINE_WIDTH,
            ..SystemPorts::new(path, caches, 0, stop)
        }
    }

    /// Time of the last completion.
    pub fn last_timing(&self) -> Timing {
        self.timing
    }

    /// Sends a command to the program. Returns the reason for which a program that has ended did so.
    fn send(&mut self, command: &str) -> Result<(), PortError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(PortError::Interrupted);
        }
        let Some(program) = &mut self.program else {
            return Err(PortError::Failed("no run has begun".into()));
        };
        if program.input.write_all(command.as_bytes()).is_ok() {
            return Ok(());
        }
        // The pipe is broken, because the program has ended. Its standard error has the reason.
        Err(match self.answer() {
            Ok(_) => PortError::Failed("the program of the system reads no commands".into()),
            Err(error) => error,
        })
    }

    /// Reads the next answer of the program, which ends after a failure.
    fn answer(&mut self) -> Result<Answer, PortError> {
        let answer = self.read_answer();
        if answer.is_err() {
            self.program = None;
        }
        answer
    }

    /// Reads the next answer of the program.
    fn read_answer(&mut self) -> Result<Answer, PortError> {
        loop {
            let Some(program) = &mut self.program else {
                return Err(PortError::Failed("no run has begun".into()));
            };
            let mut text = String::new();
            match program.output.read_line(&mut text) {
                // An interrupt also ends the program.
                Ok(0) if self.stop.load(Ordering::Relaxed) => return Err(PortError::Interrupted),
                Ok(0) => return Err(program.ended()),
                Ok(_) => {}
                Err(error) => return Err(PortError::Failed(error.to_string())),
            }
            // An assertion of the hardware, for example that a case covers its values.
            if text.contains("%Error") {
                return Err(PortError::Violated(text.trim_end().to_string()));
            }
            let mut words = text.split_whitespace();
            let kind = words.next();
            let mut number = || {
                words
                    .next()
                    .and_then(|word| u64::from_str_radix(word, 16).ok())
            };
            let numbers = [number(), number(), number(), number(), number()];
            let violation = match (kind, numbers[0]) {
                (Some("D"), _) => {
                    let [Some(port), Some(tag), Some(data), Some(cycles), Some(time)] = numbers
                    else {
                        let reason = format!("five numbers are expected: `{}`", text.trim_end());
                        return Err(PortError::Failed(reason));
                    };
                    let (port, tag) = (port as usize, tag as usize);
                    let completion = PortCompletion { port, tag, data };
                    return Ok(Answer::Completion(completion, Timing { cycles, time }));
                }
                (Some("E"), _) => return Ok(Answer::End),
                (Some("F"), Some(agent)) => {
                    format!("{} signals `unexpected_o`", self.name(agent))
                }
                (Some("T"), Some(port)) => {
                    format!("{}: an access makes no progress", self.name(port))
                }
                (Some("X"), Some(port)) => {
                    let name = self.name(port);
                    format!("{name} answers twice, or without an access")
                }
                (Some("O"), Some(port)) => {
                    let name = self.name(port);
                    return Err(PortError::Failed(format!(
                        "{name} has no atomic operations: the rows of its stores send them to another agent"
                    )));
                }
                (Some("L"), _) => "messages stay in flight after the last access".to_string(),
                _ => continue,
            };
            return Err(PortError::Violated(violation));
        }
    }

    /// Name of an agent.
    fn name(&self, agent: u64) -> String {
        match agent < self.caches {
            true => format!("cache {agent}"),
            false => "the home".to_string(),
        }
    }
}

impl Ports for SystemPorts<'_> {
    fn lines(&self) -> usize {
        self.lines
    }

    fn outstanding(&self) -> usize {
        self.mshrs
    }

    fn reset(&mut self, seed: u64, memory: &[u64]) -> Result<(), PortError> {
        if self.program.is_none() {
            let program = Program::start(&self.path, self.fault).map_err(PortError::Failed)?;
            self.program = Some(program);
        }
        let words: Vec<String> = memory.iter().map(|word| format!(" {word:x}")).collect();
        self.send(&format!("R {seed:x}{}\n", words.concat()))
    }

    fn begin(&mut self, request: PortRequest) -> Result<(), PortError> {
        let PortRequest {
            port,
            tag,
            delay,
            operation,
            write,
            uncached,
            line,
            data,
        } = request;
        let (operation, compare) = match operation {
            PortOperation::LoadStore => (Operation::LoadStore, 0),
            PortOperation::Swap => (Operation::Swap, 0),
            PortOperation::Add => (Operation::Add, 0),
            PortOperation::CompareAndSwap(expected) => (Operation::CompareAndSwap, expected),
        };
        let operation = operation as u8;
        let (write, uncached) = (u8::from(write), u8::from(uncached));
        self.send(&format!(
            "A {port:x} {tag:x} {delay:x} {operation} {write} {uncached} {line:x} {data:x} {compare:x}\n"
        ))
    }

    fn next_completion(&mut self) -> Result<PortCompletion, PortError> {
        self.send("W\n")?;
        match self.answer()? {
            Answer::Completion(completion, timing) => {
                self.timing = timing;
                Ok(completion)
            }
            Answer::End => Err(PortError::Failed(
                "the program of the system has no completion".into(),
            )),
        }
    }

    fn end(&mut self) -> Result<(), PortError> {
        self.send("E\n")?;
        match self.answer()? {
            Answer::End => Ok(()),
            Answer::Completion(..) => Err(PortError::Failed(
                "the program of the system completes an access at its end".into(),
            )),
        }
    }
}
