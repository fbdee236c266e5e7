//! Broadcast in rounds: each thread sends one word to all other hosts. It stores the word in the memory of each other
//! host and releases a flag there. It continues once it has acquired the flags of all threads of other hosts and
//! checked their words.
//!
//! Lines are interleaved among homes: line L belongs to home L modulo the number of homes, and thread T to host T
//! modulo that number. A thread has one flag in each host, and two words there, for even and odd rounds. A word is
//! overwritten two rounds later, when the flags of the round between show that every thread has checked it.

use crate::interface::{Contents, Line, Scenario, Step, Thread, Time};
use crate::kernel::NoApplication;

/// Parameters of the broadcast.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Broadcast {
    /// Number of homes, one per host.
    pub homes: Line,
    /// Number of threads, at least one per host.
    pub threads: u32,
    /// Number of rounds.
    pub rounds: u32,
}

/// Polling interval of a flag, in picoseconds.
const POLL_INTERVAL: Time = 5_000;

impl Broadcast {
    /// Returns the line of a thread in a host: its flag (`slot` 0), or its word of even (1) or odd (2) rounds.
    fn slot_line(&self, thread: u32, host: Line, slot: Line) -> Line {
        self.homes * (3 * thread + slot) + host
    }

    /// Returns the line of a thread's flag in a host.
    fn flag_line(&self, thread: u32, host: Line) -> Line {
        self.slot_line(thread, host, 0)
    }

    /// Returns the line of a thread's word of a round in a host.
    fn word_line(&self, thread: u32, host: Line, round: u32) -> Line {
        self.slot_line(thread, host, 1 + round % 2)
    }

    /// Returns the word that a thread sends in a round.
    fn value(&self, thread: u32, round: u32) -> u64 {
        let mixed = (u64::from(thread) << 32 | u64::from(round)).wrapping_add(1);
        mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns the value of a flag after the given number of rounds. Its upper half is a tag that initial memory contents
    /// are unlikely to have.
    fn flag_value(&self, rounds: u32) -> u64 {
        0xf1a6_0000_0000_0000 | u64::from(rounds)
    }

    /// Returns the number of rounds that a flag value indicates; 0 for an invalid value.
    fn rounds_of_flag(&self, flag: u64) -> u32 {
        let rounds = (flag & 0xffff_ffff) as u32;
        match flag == self.flag_value(rounds) && rounds <= self.rounds {
            true => rounds,
            false => 0,
        }
    }
}

/// State of a thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum ThreadState {
    /// Storing its word, in this host and those after it.
    Storing(Line),
    /// Releasing its flag, in this host and those after it.
    Releasing(Line),
    /// About to acquire the flag of a thread.
    Acquiring(u32),
    /// Waiting for the value of the acquired flag of a thread.
    CheckingFlag(u32),
    /// Waiting before the flag of a thread is polled again.
    Waiting(u32),
    /// Waiting for the loaded word of a thread, which is then checked.
    CheckingWord(u32),
    /// Finished.
    Stopped,
}

/// One thread of the broadcast.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BroadcastThread {
    parameters: Broadcast,
    /// Index of the thread.
    number: u32,
    /// Current round, from 0; the number of completed rounds.
    round: u32,
    state: ThreadState,
    /// True once the time measurement has started.
    started: bool,
    /// Number of wrong words.
    mismatches: u64,
    /// First wrong word: its thread, its round and the value found.
    first_mismatch: Option<(u32, u32, u64)>,
}

impl BroadcastThread {
    /// Returns the thread's own host.
    fn host(&self) -> Line {
        self.number % self.parameters.homes
    }

    /// Returns the first host from `host` on that is not the thread's own.
    fn next_other_host(&self, host: Line) -> Option<Line> {
        let host = host + Line::from(host == self.host());
        (host < self.parameters.homes).then_some(host)
    }

    /// Returns the first thread from `thread` on that belongs to another host.
    fn next_remote_thread(&self, thread: u32) -> Option<u32> {
        let mut threads = thread..self.parameters.threads;
        threads.find(|candidate| candidate % self.parameters.homes != self.host())
    }

    /// Stores the word of this round in the next host from `host` on; after the last host, releases the flags.
    fn store_word(&mut self, host: Line) -> Step {
        let Some(host) = self.next_other_host(host) else {
            self.state = ThreadState::Releasing(0);
            return self.step(0);
        };
        self.state = ThreadState::Storing(host + 1);
        Step::Store {
            line: self.parameters.word_line(self.number, host, self.round),
            word: 0,
            value: self.parameters.value(self.number, self.round),
        }
    }

    /// Releases the flag in the next host from `host` on; after the last host, acquires the flags of others.
    fn release_flag(&mut self, host: Line) -> Step {
        let Some(host) = self.next_other_host(host) else {
            return self.acquire_next_flag(0);
        };
        self.state = ThreadState::Releasing(host + 1);
        Step::Release {
            line: self.parameters.flag_line(self.number, host),
            word: 0,
            value: self.parameters.flag_value(self.round + 1),
        }
    }

    /// Starts to acquire the flag of the next thread from `thread` on, or starts the next round.
    fn acquire_next_flag(&mut self, thread: u32) -> Step {
        if let Some(thread) = self.next_remote_thread(thread) {
            self.state = ThreadState::Acquiring(thread);
            return self.step(0);
        }
        self.round += 1;
        self.state = match self.round == self.parameters.rounds {
            true => ThreadState::Stopped,
            false => ThreadState::Storing(0),
        };
        match self.state {
            ThreadState::Stopped => Step::End { name: "broadcasts" },
            _ => Step::Count {
                name: "rounds",
                by: 1,
            },
        }
    }
}

impl Thread for BroadcastThread {
    /// In each round: stores a word to each other host, releases a flag at each, and then acquires the flag of every
    /// other thread and checks its word. `result` is the word that the last step loaded.
    fn step(&mut self, result: u64) -> Step {
        if !std::mem::replace(&mut self.started, true) {
            return Step::Begin;
        }
        match self.state {
            ThreadState::Storing(host) => self.store_word(host),
            ThreadState::Releasing(host) => self.release_flag(host),
            ThreadState::Acquiring(thread) => {
                self.state = ThreadState::CheckingFlag(thread);
                let line = self.parameters.flag_line(thread, self.host());
                Step::Acquire { line, word: 0 }
            }
            ThreadState::CheckingFlag(thread)
                if self.parameters.rounds_of_flag(result) <= self.round =>
            {
                self.state = ThreadState::Waiting(thread);
                Step::Work(POLL_INTERVAL)
            }
            ThreadState::CheckingFlag(thread) => {
                self.state = ThreadState::CheckingWord(thread);
                let line = self.parameters.word_line(thread, self.host(), self.round);
                Step::Load { line, word: 0 }
            }
            ThreadState::Waiting(thread) => {
                self.state = ThreadState::Acquiring(thread);
                self.step(0)
            }
            ThreadState::CheckingWord(thread) => {
                if result != self.parameters.value(thread, self.round) {
                    self.mismatches += 1;
                    self.first_mismatch
                        .get_or_insert((thread, self.round, result));
                }
                self.acquire_next_flag(thread + 1)
            }
            ThreadState::Stopped => Step::Stop,
        }
    }
}

impl Scenario for Broadcast {
    type Application = NoApplication;
    type Thread = BroadcastThread;

    fn lines(&self) -> Line {
        self.slot_line(self.threads, 0, 0)
    }

    fn terminates(&self) -> bool {
        true
    }

    fn is_threads_only(&self) -> bool {
        true
    }

    fn application(&self) -> NoApplication {
        NoApplication
    }

    fn threads(&self) -> Vec<BroadcastThread> {
        let thread = |number| BroadcastThread {
            parameters: self.clone(),
            number,
            round: 0,
            state: ThreadState::Storing(0),
            started: false,
            mismatches: 0,
            first_mismatch: None,
        };
        (0..self.threads).map(thread).collect()
    }

    /// Compares the words that threads have found, the numbers of their rounds, and the last word of each thread.
    fn verify(
        &self,
        _application: &NoApplication,
        threads: &[BroadcastThread],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        for broadcast_thread in threads {
            let BroadcastThread {
                number, mismatches, ..
            } = broadcast_thread;
            if let Some((thread, round, value)) = broadcast_thread.first_mismatch {
                let expected = self.value(thread, round);
                return Err(format!(
                    "thread {number} has acquired the flag of thread {thread} in round {round}, and finds {value:#x} instead of {expected:#x}; {mismatches} words are wrong"
                ));
            }
            if broadcast_thread.round != self.rounds {
                let round = broadcast_thread.round;
                return Err(format!(
                    "thread {number} has completed {round} of {} rounds",
                    self.rounds
                ));
            }
            let (last, host) = (self.rounds - 1, broadcast_thread.next_other_host(0));
            if let Some(host) = host {
                let actual = contents.word(self.word_line(*number, host, last), 0);
                let expected = self.value(*number, last);
                if actual != expected {
                    return Err(format!(
                        "host {host} holds {actual:#x} at the end instead of {expected:#x}, the last word of thread {number}"
                    ));
                }
            }
        }
        Ok(())
    }
}
