//! Application as hardware in a clocked home: conversion of its inputs and outputs.

use super::*;
use crate::agents::clocked::{ApplicationEvent, Bytes, CycleOutput, WORDS};

/// Converts an event to an input of an application in hardware. Returns `None` for events of the home, which drives the
/// application's pins itself.
pub(super) fn hardware_event(event: &Event) -> Option<ApplicationEvent> {
    match event {
        Event::Start { .. } => Some(ApplicationEvent::Start),
        Event::Stop => Some(ApplicationEvent::Stop),
        Event::Fetched { tag, words, .. } => Some(ApplicationEvent::Fetched {
            tag: *tag,
            bytes: bytes(words),
        }),
        Event::Stored { tag } => Some(ApplicationEvent::Stored { tag: *tag }),
        _ => None,
    }
}

/// Converts the words of a line to the width of the hardware's pins.
fn bytes(words: &Words) -> Bytes {
    let mut bytes = [0; WORDS];
    for (byte, &word) in bytes.iter_mut().zip(words.iter()) {
        *byte = word;
    }
    bytes
}

impl Simulation {
    /// Carries out an action of an application in hardware. The RTL has modelled its latency: the action reaches the
    /// home at once.
    pub(crate) fn apply_hardware_action(&mut self, mut output: CycleOutput) {
        let now = self.local.now;
        let word_count = usize::from(self.contents.data.words());
        let line = *output.line_mut();
        self.postpone_watchdog(now);
        let Some(application) = &mut self.application else {
            return self.fail(
                FailureKind::Hardware,
                line,
                "no application is known".into(),
            );
        };
        let locals = &self.home.program.controller().locals;
        let action = match &output {
            CycleOutput::Answers { line, bytes } => Action::Answer {
                line: *line,
                words: bytes[..word_count].into(),
            },
            CycleOutput::Accepts { line } => Action::Accept { line: *line },
            CycleOutput::Asks { line, operation } => {
                let local = locals.get(usize::from(*operation));
                let Some(local) = local.filter(|_| *line < self.tables.platform.lines) else {
                    let text = format!(
                        "{} asks for local operation {operation}, which does not exist for this line",
                        application.name
                    );
                    return self.fail(FailureKind::Contract, *line, text);
                };
                Action::Local {
                    line: *line,
                    operation: match local.ensures {
                        Right::None => Operation::CleanInvalidate,
                        _ => Operation::Clean,
                    },
                    lock: local.locks,
                }
            }
            CycleOutput::Unlocks { line } => Action::Unlock { line: *line },
            CycleOutput::Fetches {
                tag, line, lines, ..
            } => Action::Fetch {
                tag: *tag,
                first: *line,
                lines: *lines,
            },
            CycleOutput::Stores { tag, line, .. } => Action::Store {
                tag: *tag,
                line: *line,
                words: Box::default(),
            },
            _ => return,
        };
        if let Err(breach) = application.contract.check_action(&action) {
            let text = format!("{} {}", application.name, breach.description);
            return self.fail(FailureKind::Contract, breach.line, text);
        }
        match output {
            CycleOutput::Answers { line, bytes } => {
                self.write_homed_line(line, &bytes[..word_count].into());
                self.queue_input(line, Work::Read(line));
            }
            CycleOutput::Accepts { line } => self.queue_input(line, Work::Written(line)),
            CycleOutput::Asks { line, operation } => {
                application.pending_operations.insert(line, (now, false));
                self.queue_input(line, Work::Local(line, operation));
            }
            CycleOutput::Unlocks { line } => {
                application.locks.remove(&line);
                self.queue_input(line, Work::Unlock(line));
            }
            CycleOutput::Fetches {
                tag,
                line,
                lines,
                step,
            } => self.read_burst(tag, line, lines, step),
            CycleOutput::Stores {
                tag,
                line,
                bytes,
                mask,
            } => {
                let mut words = self.memory_words(line);
                for (word, target) in words.iter_mut().enumerate() {
                    if mask >> word & 1 != 0 {
                        *target = bytes[word];
                    }
                }
                self.store_memory_line(tag, line, words);
            }
            _ => {}
        }
    }
}
