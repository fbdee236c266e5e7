//! Remote writes: a thread writes to the memory of other hosts and releases a flag after a fixed number of stores. A
//! thread that acquires the flag checks the data.
//!
//! Lines are interleaved among homes: line L belongs to home L modulo the number of homes. Each target host has a flag.
//! It also has, per release, separate lines for its stores, so that no line is written twice. The writer's releases go
//! to the first target, whose thread acquires the flag and checks the lines of its host. It then notifies each further
//! target, by a release to its flag, that the target may check. Stores that are late at one host are therefore
//! detected, although their flag was released at another.

use crate::interface::{Contents, Line, Scenario, Step, Thread, Time};
use crate::kernel::NoApplication;

/// Parameters of the writer and of the threads that check.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RemoteWrites {
    /// Number of homes.
    pub homes: Line,
    /// Number of target homes, from home 0. Target T is checked by thread T; the writer is the thread after the last
    /// target's.
    pub fanout: u32,
    /// Words per store; all receive the same value.
    pub words: u16,
    /// Stores between two releases, distributed over the targets in turn.
    pub stores: u32,
    /// Number of releases.
    pub releases: u32,
    /// Releases between two checks; 0 to check only after the last release.
    pub releases_per_check: u32,
}

/// Polling interval of a flag, in picoseconds.
const POLL_INTERVAL: Time = 5_000;

impl RemoteWrites {
    /// Maximum number of stores to one target between two releases.
    fn slots(&self) -> u32 {
        self.stores.div_ceil(self.fanout)
    }

    /// Returns the line of a target's flag.
    fn flag_line(&self, target: u32) -> Line {
        target
    }

    /// Returns the line of a store.
    fn store_line(&self, StoreId { released, store }: StoreId) -> Line {
        let slot = 1 + released * self.slots() + store / self.fanout;
        self.homes * slot + store % self.fanout
    }

    /// Returns the value of a store.
    fn store_value(&self, StoreId { released, store }: StoreId) -> u64 {
        let number = u64::from(released) * u64::from(self.stores) + u64::from(store);
        // A mixing function (SplitMix64), so that no two stores have the same value.
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    /// Returns the value of a flag after the given number of releases. Initial memory contents are unlikely to match
    /// one.
    fn flag_value(&self, releases: u32) -> u64 {
        0xf1a6_0000_0000_0000 | u64::from(releases)
    }

    /// Returns the number of releases that a flag value indicates; 0 for an invalid value.
    fn releases_of_flag(&self, flag: u64) -> u32 {
        let releases = (flag & 0xffff_ffff) as u32;
        match flag == self.flag_value(releases) && releases <= self.releases {
            true => releases,
            false => 0,
        }
    }

    /// Returns the release count of the next check after `checked` releases have been checked.
    fn next_check(&self, checked: u32) -> u32 {
        match self.releases_per_check {
            0 => self.releases,
            interval => (checked + interval).min(self.releases),
        }
    }
}

/// A store of the writer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct StoreId {
    /// Number of releases before the store.
    released: u32,
    /// Index of the store among those since the last release.
    store: u32,
}

/// A word that a reader has found to be wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Mismatch {
    /// Store that should have written the word.
    id: StoreId,
    /// Value found.
    value: u64,
}

/// State of a thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum ThreadState {
    /// Performing this store, or the release or fence that replaces it after the last one.
    Storing(StoreId),
    /// Waiting for its stores to be performed.
    Fencing,
    /// Acquiring its flag.
    Acquiring,
    /// Waiting before the flag is polled again.
    Waiting,
    /// Checking the word with this index of a store to its host.
    Checking(StoreId, u16),
    /// Notifying this and the further targets that they may check.
    Notifying(u32),
    /// Finished.
    Stopped,
}

/// The writer, or a thread that checks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Worker {
    parameters: RemoteWrites,
    /// Index of the thread; the writer's is `fanout`.
    number: u32,
    state: ThreadState,
    /// True once the time measurement has started.
    started: bool,
    /// True if the previous step loaded a word to check.
    loaded_word: bool,
    /// Releases whose stores have been checked.
    checked: u32,
    /// Release count that the current check extends to.
    check_limit: u32,
    /// Number of wrong words.
    mismatches: u64,
    /// First wrong word.
    first_mismatch: Option<Mismatch>,
    /// Number of correct words.
    matches: u64,
}

impl Worker {
    /// True for the writer.
    fn is_writer(&self) -> bool {
        self.number == self.parameters.fanout
    }

    /// Returns the next word to check after a word of a store, if any, and its store. Of a large store, the first word, the
    /// last and one between are checked.
    fn next_word(&self, id: StoreId, word: u16) -> Option<(StoreId, u16)> {
        let StoreId { released, store } = id;
        let last = self.parameters.words - 1;
        let between = ((released + store) % u32::from(self.parameters.words)) as u16;
        let next = [between, last]
            .into_iter()
            .filter(|&next| next > word)
            .min();
        if let Some(next) = next {
            return Some((id, next));
        }
        if store + self.parameters.fanout < self.parameters.stores {
            let store = store + self.parameters.fanout;
            return Some((StoreId { released, store }, 0));
        }
        let next_store = StoreId {
            released: released + 1,
            store: self.number,
        };
        (next_store.released < self.check_limit && next_store.store < self.parameters.stores)
            .then_some((next_store, 0))
    }

    /// Performs the writer's next step: a store, or the release after the last one, or the fence after the last release.
    fn write(&mut self, id: StoreId) -> Step {
        let StoreId { released, store } = id;
        let parameters = &self.parameters;
        if released == parameters.releases {
            self.state = ThreadState::Fencing;
            return Step::Fence;
        }
        if store == parameters.stores {
            self.state = ThreadState::Storing(StoreId {
                released: released + 1,
                store: 0,
            });
            let (line, value) = (parameters.flag_line(0), parameters.flag_value(released + 1));
            let word = 0;
            return Step::Release { line, word, value };
        }
        self.state = ThreadState::Storing(StoreId {
            released,
            store: store + 1,
        });
        Step::StoreWords {
            line: parameters.store_line(id),
            word: 0,
            words: parameters.words,
            value: parameters.store_value(id),
        }
    }

    /// Handles the value of the acquired flag.
    fn handle_acquired_flag(&mut self, flag: u64) -> Step {
        let releases = self.parameters.releases_of_flag(flag);
        let check_limit = self.parameters.next_check(self.checked);
        if releases < check_limit {
            self.state = ThreadState::Waiting;
            return Step::Work(POLL_INTERVAL);
        }
        self.check_limit = check_limit;
        self.state = match self.number < self.parameters.stores {
            true => {
                let (released, store) = (self.checked, self.number);
                ThreadState::Checking(StoreId { released, store }, 0)
            }
            false => ThreadState::Notifying(1),
        };
        match self.number == 0 && check_limit == self.parameters.releases {
            true => Step::End { name: "delivered" },
            false => Step::Count {
                name: "acquired",
                by: 1,
            },
        }
    }

    /// Completes a check.
    fn complete_check(&mut self) -> Step {
        self.checked = self.check_limit;
        self.state = match self.checked == self.parameters.releases {
            true => ThreadState::Stopped,
            false => ThreadState::Acquiring,
        };
        Step::Count {
            name: "checks",
            by: 1,
        }
    }

    /// Compares a word with the value of its store.
    fn check_word(&mut self, id: StoreId, value: u64) {
        if value == self.parameters.store_value(id) {
            self.matches += 1;
            return;
        }
        self.mismatches += 1;
        self.first_mismatch.get_or_insert(Mismatch { id, value });
    }
}

impl Thread for Worker {
    /// The writer stores and releases; a reader acquires its flag, checks all stores up to the release, and the first
    /// one notifies the others. `result` is the word that the last step loaded.
    fn step(&mut self, result: u64) -> Step {
        if !std::mem::replace(&mut self.started, true) {
            return Step::Begin;
        }
        match self.state {
            ThreadState::Storing(id) => self.write(id),
            ThreadState::Fencing => {
                self.state = ThreadState::Stopped;
                Step::End { name: "written" }
            }
            ThreadState::Acquiring if self.loaded_word => {
                self.loaded_word = false;
                self.handle_acquired_flag(result)
            }
            ThreadState::Acquiring => {
                self.loaded_word = true;
                let (line, word) = (self.parameters.flag_line(self.number), 0);
                Step::Acquire { line, word }
            }
            ThreadState::Waiting => {
                self.state = ThreadState::Acquiring;
                self.step(0)
            }
            ThreadState::Checking(id, word) => {
                if std::mem::take(&mut self.loaded_word) {
                    self.check_word(id, result);
                    self.state = match self.next_word(id, word) {
                        Some((id, word)) => ThreadState::Checking(id, word),
                        None => ThreadState::Notifying(1),
                    };
                    return self.step(0);
                }
                self.loaded_word = true;
                let line = self.parameters.store_line(id);
                Step::Load { line, word }
            }
            ThreadState::Notifying(target)
                if self.number == 0 && target < self.parameters.fanout =>
            {
                self.state = ThreadState::Notifying(target + 1);
                let (line, value) = (
                    self.parameters.flag_line(target),
                    self.parameters.flag_value(self.check_limit),
                );
                let word = 0;
                Step::Release { line, word, value }
            }
            ThreadState::Notifying(_) => self.complete_check(),
            ThreadState::Stopped => Step::Stop,
        }
    }
}

impl Scenario for RemoteWrites {
    type Application = NoApplication;
    type Thread = Worker;

    fn lines(&self) -> Line {
        self.homes * (1 + self.releases * self.slots())
    }

    fn words(&self) -> u64 {
        self.words.into()
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

    fn threads(&self) -> Vec<Worker> {
        let worker = |number| Worker {
            parameters: self.clone(),
            number,
            state: match number == self.fanout {
                true => ThreadState::Storing(StoreId {
                    released: 0,
                    store: 0,
                }),
                false => ThreadState::Acquiring,
            },
            started: false,
            loaded_word: false,
            checked: 0,
            check_limit: 0,
            mismatches: 0,
            first_mismatch: None,
            matches: 0,
        };
        (0..=self.fanout).map(worker).collect()
    }

    /// Compares the words that readers have found, their numbers of releases, and the final contents of all lines.
    fn verify(
        &self,
        _application: &NoApplication,
        threads: &[Worker],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        for worker in threads {
            if let Some(Mismatch { id, value }) = worker.first_mismatch {
                let Worker {
                    number, mismatches, ..
                } = worker;
                let (line, expected) = (self.store_line(id), self.store_value(id));
                let (released, store) = (id.released + 1, id.store);
                return Err(format!(
                    "release violated: thread {number} acquired the flag of release {released}, but line {line} of its store {store} holds {value:#x} instead of {expected:#x}; {mismatches} words are wrong"
                ));
            }
            if !worker.is_writer() && worker.checked != self.releases {
                let Worker {
                    number, checked, ..
                } = worker;
                return Err(format!(
                    "thread {number} has checked the stores of {checked} of {} releases",
                    self.releases
                ));
            }
        }
        for released in 0..self.releases {
            for store in 0..self.stores {
                let id = StoreId { released, store };
                let (line, expected) = (self.store_line(id), self.store_value(id));
                let mut words = (0..self.words).map(|word| contents.word(line, word));
                if let Some(actual) = words.find(|&word| word != expected) {
                    return Err(format!(
                        "line {line} holds {actual:#x} at the end instead of {expected:#x}"
                    ));
                }
            }
        }
        Ok(())
    }
}
