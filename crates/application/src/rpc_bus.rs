//! Remote procedure calls over a device bus: through registers, or through descriptors and DMA transfers.
//!
//! Registers: a thread writes its arguments into registers and reads the results from them.
//! Descriptors: a thread writes the arguments and a descriptor with their location into its own memory, then writes a
//! register. The device fetches the descriptor and the arguments. It writes the results and the number of the call into
//! the thread's memory, where the thread polls for that number.

use crate::interface::{
    Actions, Application, Contents, Event, Line, Placement, Scenario, Step, Thread,
};
use crate::rpc::procedure;
use std::collections::BTreeMap;

/// Parameters of the calls. Each context has one thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BusCalls {
    /// Number of threads, each with its own registers or memory.
    pub contexts: u32,
    /// Words of arguments per call, and words of results.
    pub words: u32,
    /// Calls per thread; unlimited if `None`.
    pub calls: Option<u64>,
    /// True to call through descriptors, false to call through registers.
    pub descriptors: bool,
}

/// Words of a descriptor: location and number of the argument words.
const DESCRIPTOR_WORDS: u32 = 2;

impl BusCalls {
    /// Returns the first word of a context's memory: descriptor, number of the completed call, arguments, results.
    fn memory(&self, context: u32) -> u32 {
        context * (DESCRIPTOR_WORDS + 1 + 2 * self.words)
    }

    /// Returns the word with the number of the completed call.
    fn completed_call(&self, context: u32) -> u32 {
        self.memory(context) + DESCRIPTOR_WORDS
    }

    /// Returns the first argument word.
    fn arguments(&self, context: u32) -> u32 {
        self.completed_call(context) + 1
    }

    /// Returns the first result word.
    fn results(&self, context: u32) -> u32 {
        self.arguments(context) + self.words
    }
}

/// The device, which applies the [procedure] to every argument word.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BusEcho {
    calls: BusCalls,
    /// Last value written to each register.
    registers: BTreeMap<u32, u64>,
    /// Numbers of the calls in progress, by context.
    active_calls: BTreeMap<u32, u64>,
}

impl BusEcho {
    /// Handles fetched words of a context: its descriptor (even tag), then its arguments (odd tag).
    fn handle_fetched_words(&mut self, tag: u32, words: &[u64], actions: &mut Actions) {
        let context = tag / 2;
        if tag.is_multiple_of(2) {
            return actions.host_fetch(tag + 1, words[0] as u32, words[1] as u32);
        }
        let results = words.iter().map(|&word| procedure(word)).collect();
        let number = self.active_calls.remove(&context).unwrap_or(0);
        actions.count("calls", 1);
        actions.host_store(self.calls.results(context), results);
        actions.host_store(self.calls.completed_call(context), [number].into());
    }
}

impl Application for BusEcho {
    fn name(&self) -> &str {
        match self.calls.descriptors {
            true => "RPC by descriptors",
            false => "RPC by registers",
        }
    }

    fn placement(&self) -> Placement {
        Placement::Observer
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        let last = self.calls.words - 1;
        match event {
            Event::RegisterWrite { register, value } if self.calls.descriptors => {
                self.active_calls.insert(register, value);
                actions.host_fetch(2 * register, self.calls.memory(register), DESCRIPTOR_WORDS);
            }
            Event::RegisterWrite { register, value } => {
                self.registers.insert(register, value);
                actions.count("calls", u64::from(register % self.calls.words == last));
            }
            Event::RegisterRead { register, thread } => {
                let argument = self.registers.get(&register).copied().unwrap_or(0);
                actions.reply(thread, procedure(argument));
            }
            Event::HostFetchCompletion { tag, words } => {
                self.handle_fetched_words(tag, &words, actions)
            }
            _ => {}
        }
    }
}

/// Next step of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Starts a call.
    StartCall,
    /// Writes this word of the arguments.
    WriteArgument(u32),
    /// Writes this word of the descriptor.
    WriteDescriptor(u32),
    /// Writes the register that notifies the device.
    RingDoorbell,
    /// Polls for the completion of the call.
    Poll,
    /// Checks the polled word.
    CheckPoll,
    /// Reads this word of the results and checks the preceding one.
    ReadResult(u32),
}

/// A thread that calls repeatedly.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BusCaller {
    calls: BusCalls,
    /// Index of the thread, which is that of its context.
    context: u32,
    phase: Phase,
    /// Calls started.
    number: u64,
    /// Number of wrong results.
    mismatches: u64,
}

impl BusCaller {
    /// Returns an argument word of the current call.
    fn argument(&self, word: u32) -> u64 {
        self.number.wrapping_mul(0x1_0001) ^ u64::from(word)
    }

    /// Returns the register of a word of arguments; reading it returns the result for that word.
    fn register(&self, word: u32) -> u32 {
        self.context * self.calls.words + word
    }

    /// Writes an argument word. Returns the following phase and the step.
    fn write_argument(&self, word: u32) -> (Phase, Step) {
        let value = self.argument(word);
        let is_last = word + 1 == self.calls.words;
        if self.calls.descriptors {
            let next = match is_last {
                true => Phase::WriteDescriptor(0),
                false => Phase::WriteArgument(word + 1),
            };
            let word = self.calls.arguments(self.context) + word;
            (next, Step::StoreHost { word, value })
        } else {
            let next = match is_last {
                true => Phase::ReadResult(0),
                false => Phase::WriteArgument(word + 1),
            };
            let register = self.register(word);
            (next, Step::WriteRegister { register, value })
        }
    }

    /// Writes a word of the descriptor. Returns the following phase and the step.
    fn write_descriptor(&self, word: u32) -> (Phase, Step) {
        let descriptor = [self.calls.arguments(self.context), self.calls.words];
        let next = match word + 1 < DESCRIPTOR_WORDS {
            true => Phase::WriteDescriptor(word + 1),
            false => Phase::RingDoorbell,
        };
        let step = Step::StoreHost {
            word: self.calls.memory(self.context) + word,
            value: descriptor[word as usize].into(),
        };
        (next, step)
    }

    /// Checks the preceding word of the results, which is `result`, and reads this one. Returns the following phase and
    /// the step; after the last word, the call ends.
    fn read_result(&mut self, word: u32, result: u64) -> (Phase, Step) {
        if let Some(previous) = word.checked_sub(1) {
            self.mismatches += u64::from(result != procedure(self.argument(previous)));
        }
        if word == self.calls.words {
            return (Phase::StartCall, Step::End { name: "call" });
        }
        let step = match self.calls.descriptors {
            true => Step::LoadHost {
                word: self.calls.results(self.context) + word,
            },
            false => Step::ReadRegister {
                register: self.register(word),
            },
        };
        (Phase::ReadResult(word + 1), step)
    }
}

impl Thread for BusCaller {
    /// For each call: passes the arguments by registers, or by memory with a descriptor and a doorbell; awaits the
    /// completion and checks the results.
    fn step(&mut self, result: u64) -> Step {
        let (next, step) = match self.phase {
            Phase::StartCall if self.calls.calls == Some(self.number) => return Step::Stop,
            Phase::StartCall => {
                self.number += 1;
                (Phase::WriteArgument(0), Step::Begin)
            }
            Phase::WriteArgument(word) => self.write_argument(word),
            Phase::WriteDescriptor(word) => self.write_descriptor(word),
            Phase::RingDoorbell => {
                let (register, value) = (self.context, self.number);
                (Phase::Poll, Step::WriteRegister { register, value })
            }
            Phase::Poll => {
                let word = self.calls.completed_call(self.context);
                (Phase::CheckPoll, Step::LoadHost { word })
            }
            Phase::CheckPoll => {
                let is_complete = result == self.number;
                self.phase = if is_complete {
                    Phase::ReadResult(0)
                } else {
                    Phase::Poll
                };
                return self.step(0);
            }
            Phase::ReadResult(word) => self.read_result(word, result),
        };
        self.phase = next;
        step
    }
}

impl Scenario for BusCalls {
    type Application = BusEcho;
    type Thread = BusCaller;

    fn lines(&self) -> Line {
        0
    }

    fn terminates(&self) -> bool {
        self.calls.is_some()
    }

    fn application(&self) -> BusEcho {
        BusEcho {
            calls: self.clone(),
            registers: BTreeMap::new(),
            active_calls: BTreeMap::new(),
        }
    }

    fn threads(&self) -> Vec<BusCaller> {
        let threads = (0..self.contexts).map(|context| BusCaller {
            calls: self.clone(),
            context,
            phase: Phase::StartCall,
            number: 0,
            mismatches: 0,
        });
        threads.collect()
    }

    /// Checks that every call returned the result of its own arguments.
    fn verify(
        &self,
        _application: &BusEcho,
        threads: &[BusCaller],
        _contents: &dyn Contents,
    ) -> Result<(), String> {
        match threads.iter().find(|thread| thread.mismatches > 0) {
            None => Ok(()),
            Some(BusCaller {
                mismatches,
                context,
                ..
            }) => Err(format!(
                "{mismatches} results of context {context} are wrong"
            )),
        }
    }
}
