//! Copies by a DMA engine of the device: descriptors in host memory, a doorbell, and completion by polling or by
//! interrupt.
//!
//! A thread writes the data to copy and the descriptors (source, destination, length), and rings the doorbell. For each
//! descriptor in turn, the engine fetches the descriptor and its source words and writes these words to the
//! destination. It then writes the number of the ring into the descriptor's completion word. Buffers of different
//! threads share lines.

use crate::interface::{
    Actions, Application, Contents, Event, Line, Placement, Scenario, Step, Thread,
};

/// Parameters of the copies.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Copies {
    /// Number of threads, each with descriptors and buffers of its own.
    pub threads: u32,
    /// Words per copy.
    pub words: u32,
    /// Descriptors per ring of the doorbell.
    pub descriptors: u32,
    /// Rings per thread; unlimited if `None`.
    pub rings: Option<u64>,
    /// True if the engine interrupts the thread after its last copy; the thread then does not poll.
    pub interrupts: bool,
}

/// Words of a descriptor: source, destination, length in words, and the number of the completed ring (the
/// completion word).
const DESCRIPTOR_WORDS: u32 = 4;
/// Index of the completion word; the engine fetches the words before it.
const COMPLETION_WORD: u32 = 3;

impl Copies {
    /// Returns the first word of a thread's descriptor. The thread's buffers follow all of its descriptors.
    fn descriptor(&self, thread: u32, number: u32) -> u32 {
        let words_per_thread = self.descriptors * (DESCRIPTOR_WORDS + 2 * self.words);
        thread * words_per_thread + number * DESCRIPTOR_WORDS
    }

    /// Returns the first word of a descriptor's source buffer, or of its destination buffer if `is_destination`.
    fn buffer(&self, thread: u32, number: u32, is_destination: bool) -> u32 {
        let first = self.descriptor(thread, self.descriptors);
        first + (2 * number + u32::from(is_destination)) * self.words
    }

    /// Returns the value of a source word in a ring.
    fn source_value(&self, thread: u32, ring: u64, number: u32, word: u32) -> u64 {
        let position = u64::from(number) << 32 | u64::from(word);
        (ring << 48 | u64::from(thread) << 40) ^ position
    }
}

/// The DMA engine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Engine {
    /// Parameters.
    copies: Copies,
    /// Current ring and descriptor of each thread.
    progress: Vec<(u64, u32)>,
    /// Destination word of the copy in progress, by thread.
    destinations: Vec<u32>,
}

impl Engine {
    /// Fetches the current descriptor of a thread.
    fn fetch_descriptor(&self, thread: u32, actions: &mut Actions) {
        let (_, number) = self.progress[thread as usize];
        let first = self.copies.descriptor(thread, number);
        actions.host_fetch(2 * thread, first, COMPLETION_WORD);
    }

    /// Handles a fetched descriptor (even tag) or its fetched source words (odd tag).
    fn handle_fetched_words(&mut self, tag: u32, words: Box<[u64]>, actions: &mut Actions) {
        let thread = tag / 2;
        let (ring, number) = self.progress[thread as usize];
        if tag.is_multiple_of(2) {
            self.destinations[thread as usize] = words[1] as u32;
            return actions.host_fetch(tag + 1, words[0] as u32, words[2] as u32);
        }
        let descriptor = self.copies.descriptor(thread, number);
        actions.count("words copied", words.len() as u64);
        actions.host_store(self.destinations[thread as usize], words);
        actions.host_store(descriptor + COMPLETION_WORD, [ring].into());
        self.progress[thread as usize].1 += 1;
        if number + 1 < self.copies.descriptors {
            self.fetch_descriptor(thread, actions);
        } else if self.copies.interrupts {
            actions.interrupt(thread);
        }
    }
}

impl Application for Engine {
    fn name(&self) -> &str {
        "DMA engine"
    }

    fn placement(&self) -> Placement {
        Placement::Observer
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            Event::RegisterWrite { register, value } if register < self.copies.threads => {
                self.progress[register as usize] = (value, 0);
                self.fetch_descriptor(register, actions);
            }
            Event::HostFetchCompletion { tag, words } => {
                self.handle_fetched_words(tag, words, actions)
            }
            _ => {}
        }
    }
}

/// Next step of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Starts a ring.
    StartRing,
    /// Writes this word (descriptor, word) of the source buffer, then of the destination buffer.
    WriteSource(u32, u32),
    /// Overwrites this word of the destination buffer, so that a missing copy is detected.
    WriteDestination(u32, u32),
    /// Writes this word of a descriptor (descriptor, word).
    WriteDescriptor(u32, u32),
    /// Writes the number of the ring to the thread's register.
    RingDoorbell,
    /// Waits for the engine's interrupt.
    AwaitInterrupt,
    /// Loads the completion word of the last descriptor.
    Poll,
    /// Checks the polled word.
    CheckPoll,
    /// Reads the completion word of a descriptor.
    LoadCompletion(u32),
    /// Reads this word of a copy (descriptor, word), and checks the value read before.
    LoadCopy(u32, u32),
}

/// A thread that requests copies repeatedly.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CopyThread {
    copies: Copies,
    /// Index of the thread, which is also that of its doorbell register.
    thread: u32,
    phase: Phase,
    /// Number of the current ring, from 1.
    ring: u64,
    /// Number of wrong completion words and copied words.
    mismatches: u64,
}

impl CopyThread {
    /// Returns the position (descriptor, word) after the given one, or `None` after the last word of the last
    /// descriptor.
    fn next_position(&self, number: u32, word: u32, words: u32) -> Option<(u32, u32)> {
        match (word + 1 < words, number + 1 < self.copies.descriptors) {
            (true, _) => Some((number, word + 1)),
            (false, true) => Some((number + 1, 0)),
            (false, false) => None,
        }
    }

    /// Writes the buffers, the descriptors and the doorbell.
    fn prepare_copies(&self) -> (Phase, Step) {
        let (copies, thread, ring) = (&self.copies, self.thread, self.ring);
        match self.phase {
            Phase::WriteSource(number, word) => {
                let value = copies.source_value(thread, ring, number, word);
                let next = Phase::WriteDestination(number, word);
                let word = copies.buffer(thread, number, false) + word;
                (next, Step::StoreHost { word, value })
            }
            Phase::WriteDestination(number, word) => {
                let next = self.next_position(number, word, copies.words);
                let next = next.map_or(Phase::WriteDescriptor(0, 0), |(n, w)| {
                    Phase::WriteSource(n, w)
                });
                let word = copies.buffer(thread, number, true) + word;
                let value = ring;
                (next, Step::StoreHost { word, value })
            }
            Phase::WriteDescriptor(number, word) => {
                let descriptor = [
                    copies.buffer(thread, number, false),
                    copies.buffer(thread, number, true),
                    copies.words,
                ];
                let value = descriptor[word as usize].into();
                let next = self.next_position(number, word, COMPLETION_WORD);
                let next = next.map_or(Phase::RingDoorbell, |(n, w)| Phase::WriteDescriptor(n, w));
                let word = copies.descriptor(thread, number) + word;
                (next, Step::StoreHost { word, value })
            }
            _ => {
                let next = if copies.interrupts {
                    Phase::AwaitInterrupt
                } else {
                    Phase::Poll
                };
                let (register, value) = (thread, ring);
                (next, Step::WriteRegister { register, value })
            }
        }
    }

    /// Reads and checks the completion words and the copies.
    fn check_copies(&mut self, result: u64) -> (Phase, Step) {
        let (copies, thread, ring) = (&self.copies, self.thread, self.ring);
        let load_completion_word = |number| Step::LoadHost {
            word: copies.descriptor(thread, number) + COMPLETION_WORD,
        };
        let (number, word) = match self.phase {
            Phase::LoadCopy(number, word) => {
                let expected = match word.checked_sub(1) {
                    None => ring,
                    Some(previous) => copies.source_value(thread, ring, number, previous),
                };
                self.mismatches += u64::from(result != expected);
                (number, word)
            }
            Phase::LoadCompletion(number) => {
                return (Phase::LoadCopy(number, 0), load_completion_word(number))
            }
            _ => return (Phase::StartRing, Step::Stop),
        };
        if word < copies.words {
            let destination_word = copies.buffer(thread, number, true) + word;
            let load = Step::LoadHost {
                word: destination_word,
            };
            return (Phase::LoadCopy(number, word + 1), load);
        }
        let (name, by) = ("rings", 1);
        match number + 1 < copies.descriptors {
            true => (
                Phase::LoadCopy(number + 1, 0),
                load_completion_word(number + 1),
            ),
            false => (Phase::StartRing, Step::Count { name, by }),
        }
    }
}

impl Thread for CopyThread {
    /// For each ring: writes sources and descriptors, starts the engine, waits for the completion by polling or an
    /// interrupt, and checks the copies. `result` is the word that the last step loaded.
    fn step(&mut self, result: u64) -> Step {
        let last = self.copies.descriptors - 1;
        let (phase, step) = match self.phase {
            Phase::StartRing if self.copies.rings == Some(self.ring) => return Step::Stop,
            Phase::StartRing => {
                self.ring += 1;
                (Phase::WriteSource(0, 0), Step::Begin)
            }
            Phase::AwaitInterrupt => (Phase::CheckPoll, Step::AwaitInterrupt),
            Phase::Poll => {
                let word = self.copies.descriptor(self.thread, last) + COMPLETION_WORD;
                (Phase::CheckPoll, Step::LoadHost { word })
            }
            Phase::CheckPoll => match self.copies.interrupts || result == self.ring {
                true => (Phase::LoadCompletion(0), Step::End { name: "ring" }),
                false => {
                    self.phase = Phase::Poll;
                    return self.step(0);
                }
            },
            Phase::LoadCompletion(_) | Phase::LoadCopy(..) => self.check_copies(result),
            _ => self.prepare_copies(),
        };
        self.phase = phase;
        step
    }
}

impl Scenario for Copies {
    type Application = Engine;
    type Thread = CopyThread;

    fn lines(&self) -> Line {
        0
    }

    fn terminates(&self) -> bool {
        self.rings.is_some()
    }

    fn application(&self) -> Engine {
        Engine {
            copies: self.clone(),
            progress: vec![(0, 0); self.threads as usize],
            destinations: vec![0; self.threads as usize],
        }
    }

    fn threads(&self) -> Vec<CopyThread> {
        let threads = (0..self.threads).map(|thread| CopyThread {
            copies: self.clone(),
            thread,
            phase: Phase::StartRing,
            ring: 0,
            mismatches: 0,
        });
        threads.collect()
    }

    /// Checks that every copy was visible when its completion was.
    fn verify(
        &self,
        _application: &Engine,
        threads: &[CopyThread],
        _contents: &dyn Contents,
    ) -> Result<(), String> {
        match threads.iter().find(|thread| thread.mismatches > 0) {
            None => Ok(()),
            Some(CopyThread {
                mismatches, thread, ..
            }) => Err(format!(
                "{mismatches} words of thread {thread} differ from their source"
            )),
        }
    }
}
