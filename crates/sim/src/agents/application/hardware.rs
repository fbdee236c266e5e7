//! Application as hardware in a clocked home: conversion of its inputs and outputs.

use super::*;
use crate::agents::clocked::{ApplicationEvent, Bytes, CycleOutput, WORDS};
use crate::message::Work;

/// Converts an event to an input of an application in hardware. Returns `None` for events of the home, which drives the
/// application's pins itself.
pub(super) fn hardware_event(event: &Event) -> Option<ApplicationEvent> {
    match event {
        Event::Start { .. } => Some(ApplicationEvent::Start),
        Event::Stop => Some(ApplicationEvent::Stop),
        Event::FetchCompletion { tag, words, .. } => Some(ApplicationEvent::Fetched {
            tag: *tag,
            bytes: bytes(words),
        }),
        Event::StoreCompletion { tag } => Some(ApplicationEvent::Stored { tag: *tag }),
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

impl Application {
    /// Carries out an action of an application in hardware. Returns the input for the home, if the action is one.
    pub fn apply_hardware_action(
        &mut self,
        env: &mut ApplicationEnvironment,
        output: CycleOutput,
    ) -> Option<Work> {
        let scenario = &mut env.frontend.threads.as_mut()?.scenario;
        let (context, name) = (&mut env.context, &scenario.name);
        let word_count = usize::from(context.contents.data.words());
        let action = match contract_action(context, &output, word_count) {
            Ok(action) => action?,
            Err((line, operation)) => {
                let text = format!(
                    "{name} asks for local operation {operation}, which does not exist for this line"
                );
                context.fail(FailureKind::Contract, line, text);
                return None;
            }
        };
        if let Err(breach) = scenario.contract.check_action(&action) {
            let text = format!("{} {}", scenario.name, breach.description);
            context.fail(FailureKind::Contract, breach.line, text);
            return None;
        }
        match output {
            CycleOutput::Answers { line, bytes } => {
                self.write_homed_line(env, line, &bytes[..word_count].into());
                return Some(Work::Read(line));
            }
            CycleOutput::Accepts { line } => return Some(Work::Written(line)),
            CycleOutput::Asks { line, operation } => {
                (self.pending_operations).insert(line, (context.now(), false));
                return Some(Work::Local(line, operation));
            }
            CycleOutput::Unlocks { line } => {
                context.local.locks.unlock(line);
                return Some(Work::Unlock(line));
            }
            CycleOutput::Fetches {
                tag,
                line,
                lines,
                step,
            } => self.read_burst(env, tag, line, (lines, step)),
            CycleOutput::Stores {
                tag,
                line,
                bytes,
                mask,
            } => {
                let mut words = self.memory_words(env, line);
                for (word, target) in words.iter_mut().enumerate() {
                    if mask >> word & 1 != 0 {
                        *target = bytes[word];
                    }
                }
                self.store_memory_line(env, tag, line, words);
            }
            _ => {}
        }
        None
    }
}

/// Returns an output of the hardware as an action for the contract; `None` for outputs of the home.
///
/// # Errors
/// The line and the number of a local operation that does not exist.
fn contract_action(
    context: &Context,
    output: &CycleOutput,
    word_count: usize,
) -> Result<Option<Action>, (Line, u8)> {
    Ok(Some(match output {
        CycleOutput::Answers { line, bytes } => Action::Answer {
            line: *line,
            words: bytes[..word_count].into(),
        },
        CycleOutput::Accepts { line } => Action::Accept { line: *line },
        CycleOutput::Asks { line, operation } => {
            let local = context.tables.locals.get(usize::from(*operation));
            let local = local.filter(|_| *line < context.tables.platform.lines);
            let local = local.ok_or((*line, *operation))?;
            Action::Local {
                line: *line,
                operation: match local.ensures {
                    Permission::None => Operation::CleanInvalidate,
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
        _ => return Ok(None),
    }))
}
