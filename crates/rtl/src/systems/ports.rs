//! Processor ports of a system in Verilator, which a program drives access by access.

use cohkit_system::ports::{PortCompletion, PortError, PortRequest, Ports};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of lines of the test bench.
const LINES: usize = 8;

/// A running program of [`super::build::Bench::Ports`]. It serves any number of runs.
pub struct SystemPorts<'s> {
    /// The process.
    child: Child,
    /// Its commands.
    input: ChildStdin,
    /// Its answers.
    output: BufReader<ChildStdout>,
    /// Number of caches.
    caches: u64,
    /// Cancels the run.
    stop: &'s AtomicBool,
}

impl<'s> SystemPorts<'s> {
    /// Starts the program of a system with this number of caches. `fault` selects a fault of a program with seeded
    /// faults; 0 is none.
    ///
    /// # Errors
    /// The program does not start.
    pub fn start(
        program: &Path,
        caches: u64,
        fault: u32,
        stop: &'s AtomicBool,
    ) -> Result<SystemPorts<'s>, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", program.display());
        let mut child = Command::new(program)
            .arg(format!("+fault+{fault}"))
            .arg("+verilator+rand+reset+2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{}: no pipes", program.display()));
        };
        Ok(SystemPorts {
            child,
            input,
            output: BufReader::new(output),
            caches,
            stop,
        })
    }

    /// Sends a command to the program.
    fn send(&mut self, command: &str) -> Result<(), PortError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(PortError::Interrupted);
        }
        let sent = self.input.write_all(command.as_bytes());
        sent.map_err(|error| PortError::Failed(error.to_string()))
    }

    /// Name of an agent.
    fn name(&self, agent: u64) -> String {
        match agent < self.caches {
            true => format!("cache {agent}"),
            false => "the home".to_string(),
        }
    }
}

impl Drop for SystemPorts<'_> {
    fn drop(&mut self) {
        // A program that has ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ports for SystemPorts<'_> {
    fn lines(&self) -> usize {
        LINES
    }

    fn reset(&mut self, seed: u64, memory: &[u64]) -> Result<(), PortError> {
        let words: Vec<String> = memory.iter().map(|word| format!(" {word:x}")).collect();
        self.send(&format!("R {seed:x}{}\n", words.concat()))
    }

    fn begin(&mut self, request: PortRequest) -> Result<(), PortError> {
        let PortRequest {
            port,
            delay,
            write,
            uncached,
            line,
            data,
        } = request;
        let (write, uncached) = (u8::from(write), u8::from(uncached));
        self.send(&format!(
            "A {port:x} {delay:x} {write} {uncached} {line:x} {data:x}\n"
        ))
    }

    fn next_completion(&mut self) -> Result<PortCompletion, PortError> {
        self.send("W\n")?;
        loop {
            let mut text = String::new();
            let read = self.output.read_line(&mut text);
            match read {
                // An interrupt also ends the program.
                Ok(0) if self.stop.load(Ordering::Relaxed) => return Err(PortError::Interrupted),
                Ok(0) => return Err(PortError::Failed("the program of the system ended".into())),
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
            let (first, second) = (number(), number());
            match (kind, first, second) {
                (Some("D"), Some(port), Some(data)) => {
                    let port = port as usize;
                    return Ok(PortCompletion { port, data });
                }
                (Some("F"), Some(agent), _) => {
                    let name = self.name(agent);
                    return Err(PortError::Violated(format!(
                        "{name} signals `unexpected_o`"
                    )));
                }
                (Some("T"), Some(port), _) => {
                    let name = self.name(port);
                    let reason = format!("{name}: an access makes no progress");
                    return Err(PortError::Violated(reason));
                }
                _ => {}
            }
        }
    }
}
