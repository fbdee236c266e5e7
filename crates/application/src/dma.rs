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

/// Progress of the engine for one thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Progress {
    /// Number of the current ring.
    ring: u64,
    /// Index of the current descriptor.
    descriptor: u32,
}

/// The DMA engine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Engine {
    copies: Copies,
    /// Progress of each thread's ring.
    progress: Vec<Progress>,
    /// Destination word of the copy in progress, by thread.
    destinations: Vec<u32>,
}

impl Engine {
    /// Fetches the current descriptor of a thread.
    fn fetch_descriptor(&self, thread: u32, actions: &mut Actions) {
        let number = self.progress[thread as usize].descriptor;
        let first = self.copies.descriptor(thread, number);
        actions.host_fetch(2 * thread, first, COMPLETION_WORD);
    }

    /// Handles a fetched descriptor (even tag) or its fetched source words (odd tag).
    fn handle_fetched_words(&mut self, tag: u32, words: Box<[u64]>, actions: &mut Actions) {
        let thread = tag / 2;
        let Progress {
            ring,
            descriptor: number,
        } = self.progress[thread as usize];
        if tag.is_multiple_of(2) {
            self.destinations[thread as usize] = words[1] as u32;
            return actions.host_fetch(tag + 1, words[0] as u32, words[2] as u32);
        }
        let descriptor = self.copies.descriptor(thread, number);
        actions.count("words copied", words.len() as u64);
        actions.host_store(self.destinations[thread as usize], words);
        actions.host_store(descriptor + COMPLETION_WORD, [ring].into());
        self.progress[thread as usize].descriptor += 1;
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
                self.progress[register as usize] = Progress {
                    ring: value,
                    descriptor: 0,
                };
                self.fetch_descriptor(register, actions);
            }
            Event::HostFetchCompletion { tag, words } => {
                self.handle_fetched_words(tag, words, actions)
            }
            _ => {}
        }
    }
}

/// Position of a word in a list of descriptors, or of their buffers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Position {
    /// Index of the descriptor.
    descriptor: u32,
    /// Index of the word within the descriptor or the buffer.
    word: u32,
}

/// Next step of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Starts a ring.
    StartRing,
    /// Writes this word of the source buffer, then of the destination buffer.
    WriteSource(Position),
    /// Overwrites this word of the destination buffer, so that a missing copy is detected.
    WriteDestination(Position),
    /// Writes this word of a descriptor.
    WriteDescriptor(Position),
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
    /// Reads this word of a copy, and checks the value read before.
    LoadCopy(Position),
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
    /// Returns the position after the given one, if each descriptor has `words` words; `None` after the last word of the
    /// last descriptor.
    fn next_position(&self, position: Position, words: u32) -> Option<Position> {
        let Position { descriptor, word } = position;
        match (word + 1 < words, descriptor + 1 < self.copies.descriptors) {
            (true, _) => Some(Position {
                descriptor,
                word: word + 1,
            }),
            (false, true) => Some(Position {
                descriptor: descriptor + 1,
                word: 0,
            }),
            (false, false) => None,
        }
    }

    /// Writes the buffers, the descriptors and the doorbell.
    fn prepare_copies(&self) -> (Phase, Step) {
        let (copies, thread, ring) = (&self.copies, self.thread, self.ring);
        match self.phase {
            Phase::WriteSource(position) => {
                let Position { descriptor, word } = position;
                let value = copies.source_value(thread, ring, descriptor, word);
                let next = Phase::WriteDestination(position);
                let word = copies.buffer(thread, descriptor, false) + word;
                (next, Step::StoreHost { word, value })
            }
            Phase::WriteDestination(position) => {
                let next = self.next_position(position, copies.words);
                let next = next.map_or(
                    Phase::WriteDescriptor(Position::default()),
                    Phase::WriteSource,
                );
                let word = copies.buffer(thread, position.descriptor, true) + position.word;
                let value = ring;
                (next, Step::StoreHost { word, value })
            }
            Phase::WriteDescriptor(position) => {
                let number = position.descriptor;
                let descriptor = [
                    copies.buffer(thread, number, false),
                    copies.buffer(thread, number, true),
                    copies.words,
                ];
                let value = descriptor[position.word as usize].into();
                let next = self.next_position(position, COMPLETION_WORD);
                let next = next.map_or(Phase::RingDoorbell, Phase::WriteDescriptor);
                let word = copies.descriptor(thread, number) + position.word;
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
        let Position { descriptor, word } = match self.phase {
            Phase::LoadCopy(position) => {
                let expected = match position.word.checked_sub(1) {
                    None => ring,
                    Some(previous) => {
                        copies.source_value(thread, ring, position.descriptor, previous)
                    }
                };
                self.mismatches += u64::from(result != expected);
                position
            }
            Phase::LoadCompletion(descriptor) => {
                let first = Position {
                    descriptor,
                    word: 0,
                };
                return (Phase::LoadCopy(first), load_completion_word(descriptor));
            }
            _ => return (Phase::StartRing, Step::Stop),
        };
        if word < copies.words {
            let load = Step::LoadHost {
                word: copies.buffer(thread, descriptor, true) + word,
            };
            let next = Position {
                descriptor,
                word: word + 1,
            };
            return (Phase::LoadCopy(next), load);
        }
        let next = Position {
            descriptor: descriptor + 1,
            word: 0,
        };
        match next.descriptor < copies.descriptors {
            true => (Phase::LoadCopy(next), load_completion_word(next.descriptor)),
            false => {
                let (name, by) = ("rings", 1);
                (Phase::StartRing, Step::Count { name, by })
            }
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
                (Phase::WriteSource(Position::default()), Step::Begin)
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
            progress: vec![Progress::default(); self.threads as usize],
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
