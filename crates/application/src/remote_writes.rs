//! Remote writes: a thread writes to the memory of other hosts and releases a flag after a fixed number of stores. A
//! thread that acquires the flag checks the data.
//!
//! Lines are interleaved among homes: line L belongs to home L modulo the number of homes. Each target host has a flag.
//! It also has, per release, separate lines for its stores, so that no line is written twice. The writer's releases go
//! to the first target, whose thread acquires the flag and checks the lines of its host. It then notifies each further
//! target, by a release to its flag, that the target may check. Stores that are late at one host are therefore
//! detected, although their flag was released at another.

use crate::interface::{Contents, Line, Scenario, Step, Thread, Time};
use crate::kernel::Nobody;

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
    pub every: u32,
}

/// Polling interval of a flag, in picoseconds.
const PAUSE: Time = 5_000;

impl RemoteWrites {
    /// Maximum number of stores to one target between two releases.
    fn slots(&self) -> u32 {
        self.stores.div_ceil(self.fanout)
    }

    /// Returns the line of a target's flag.
    fn flag(&self, target: u32) -> Line {
        target
    }

    /// Returns the line of a store that follows `released` releases.
    fn line(&self, released: u32, store: u32) -> Line {
        let slot = 1 + released * self.slots() + store / self.fanout;
        self.homes * slot + store % self.fanout
    }

    /// Returns the value of a store that follows `released` releases.
    fn value(&self, released: u32, store: u32) -> u64 {
        let number = u64::from(released) * u64::from(self.stores) + u64::from(store);
        // A mixing function (SplitMix64), so that no two stores have the same value.
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    /// Value of a flag after the given number of releases. Initial memory contents are unlikely to match one.
    fn told(&self, releases: u32) -> u64 {
        0xf1a6_0000_0000_0000 | u64::from(releases)
    }

    /// Returns the number of releases that a flag value indicates; 0 for an invalid value.
    fn tells(&self, flag: u64) -> u32 {
        let releases = (flag & 0xffff_ffff) as u32;
        match flag == self.told(releases) && releases <= self.releases {
            true => releases,
            false => 0,
        }
    }

    /// Returns the release count of the next check after `checked` releases have been checked.
    fn next_check(&self, checked: u32) -> u32 {
        match self.every {
            0 => self.releases,
            every => (checked + every).min(self.releases),
        }
    }
}

/// State of a thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum ThreadState {
    /// Storing: (releases, stores since the last release).
    Writes(u32, u32),
    /// Waiting for its stores to be performed.
    Fences,
    /// Acquiring its flag.
    Acquires,
    /// Waiting before the flag is polled again.
    Pauses,
    /// Checking a word of a store to its host: (releases before the store, store, word).
    Checks(u32, u32, u16),
    /// Notifying this and the further targets that they may check.
    Passes(u32),
    /// All done.
    Ends,
}

/// The writer, or a thread that checks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Worker {
    of: RemoteWrites,
    number: u32,
    doing: ThreadState,
    begun: bool,
    /// True if the previous step loaded a word to check.
    loaded_word: bool,
    /// Releases whose stores have been checked, and the release count that the current check extends to.
    checked: u32,
    until: u32,
    /// Number of wrong words, and the first of them: its release, its store and the value found.
    wrong: u64,
    first: Option<(u32, u32, u64)>,
    /// Number of correct words.
    right: u64,
}

impl Worker {
    fn writes(&self) -> bool {
        self.number == self.of.fanout
    }

    /// Returns the next word to check, if any. Of a large store, the first word, the last and one between are checked.
    fn next_word(&self, (released, store, word): (u32, u32, u16)) -> Option<(u32, u32, u16)> {
        let last = self.of.words - 1;
        let between = ((released + store) % u32::from(self.of.words)) as u16;
        let next = [between, last]
            .into_iter()
            .filter(|&next| next > word)
            .min();
        if let Some(next) = next {
            return Some((released, store, next));
        }
        if store + self.of.fanout < self.of.stores {
            return Some((released, store + self.of.fanout, 0));
        }
        let (released, store) = (released + 1, self.number);
        (released < self.until && store < self.of.stores).then_some((released, store, 0))
    }

    /// Performs the writer's next step.
    fn write(&mut self, released: u32, store: u32) -> Step {
        let of = &self.of;
        if released == of.releases {
            self.doing = ThreadState::Fences;
            return Step::Fence;
        }
        if store == of.stores {
            self.doing = ThreadState::Writes(released + 1, 0);
            let (line, value) = (of.flag(0), of.told(released + 1));
            let word = 0;
            return Step::Release { line, word, value };
        }
        self.doing = ThreadState::Writes(released, store + 1);
        Step::StoreWords {
            line: of.line(released, store),
            word: 0,
            words: of.words,
            value: of.value(released, store),
        }
    }

    /// Handles the value of the acquired flag.
    fn acquired(&mut self, flag: u64) -> Step {
        let told = self.of.tells(flag);
        let until = self.of.next_check(self.checked);
        if told < until {
            self.doing = ThreadState::Pauses;
            return Step::Work(PAUSE);
        }
        self.until = until;
        self.doing = match self.number < self.of.stores {
            true => ThreadState::Checks(self.checked, self.number, 0),
            false => ThreadState::Passes(1),
        };
        match self.number == 0 && until == self.of.releases {
            true => Step::End { what: "delivered" },
            false => Step::Count {
                what: "acquired",
                by: 1,
            },
        }
    }

    /// Completes a check.
    fn passed(&mut self) -> Step {
        self.checked = self.until;
        self.doing = match self.checked == self.of.releases {
            true => ThreadState::Ends,
            false => ThreadState::Acquires,
        };
        Step::Count {
            what: "checks",
            by: 1,
        }
    }

    fn check_word(&mut self, (released, store): (u32, u32), value: u64) {
        if value == self.of.value(released, store) {
            self.right += 1;
            return;
        }
        self.wrong += 1;
        self.first.get_or_insert((released, store, value));
    }
}

impl Thread for Worker {
    fn step(&mut self, result: u64) -> Step {
        if !std::mem::replace(&mut self.begun, true) {
            return Step::Begin;
        }
        match self.doing {
            ThreadState::Writes(released, store) => self.write(released, store),
            ThreadState::Fences => {
                self.doing = ThreadState::Ends;
                Step::End { what: "written" }
            }
            ThreadState::Acquires if self.loaded_word => {
                self.loaded_word = false;
                self.acquired(result)
            }
            ThreadState::Acquires => {
                self.loaded_word = true;
                let (line, word) = (self.of.flag(self.number), 0);
                Step::Acquire { line, word }
            }
            ThreadState::Pauses => {
                self.doing = ThreadState::Acquires;
                self.step(0)
            }
            ThreadState::Checks(released, store, word) => {
                if std::mem::take(&mut self.loaded_word) {
                    self.check_word((released, store), result);
                    match self.next_word((released, store, word)) {
                        Some((released, store, word)) => {
                            self.doing = ThreadState::Checks(released, store, word);
                        }
                        None => self.doing = ThreadState::Passes(1),
                    }
                    return self.step(0);
                }
                self.loaded_word = true;
                let line = self.of.line(released, store);
                Step::Load { line, word }
            }
            ThreadState::Passes(target) if self.number == 0 && target < self.of.fanout => {
                self.doing = ThreadState::Passes(target + 1);
                let (line, value) = (self.of.flag(target), self.of.told(self.until));
                let word = 0;
                Step::Release { line, word, value }
            }
            ThreadState::Passes(_) => self.passed(),
            ThreadState::Ends => Step::Stop,
        }
    }
}

impl Scenario for RemoteWrites {
    type Application = Nobody;
    type Thread = Worker;

    fn lines(&self) -> Line {
        self.homes * (1 + self.releases * self.slots())
    }

    fn words(&self) -> u64 {
        self.words.into()
    }

    fn ends(&self) -> bool {
        true
    }

    fn alone(&self) -> bool {
        true
    }

    fn application(&self) -> Nobody {
        Nobody
    }

    fn threads(&self) -> Vec<Worker> {
        let worker = |number| Worker {
            of: self.clone(),
            number,
            doing: match number == self.fanout {
                true => ThreadState::Writes(0, 0),
                false => ThreadState::Acquires,
            },
            begun: false,
            loaded_word: false,
            checked: 0,
            until: 0,
            wrong: 0,
            first: None,
            right: 0,
        };
        (0..=self.fanout).map(worker).collect()
    }

    fn verify(
        &self,
        _application: &Nobody,
        threads: &[Worker],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        for worker in threads {
            if let Some((released, store, value)) = worker.first {
                let Worker { number, wrong, .. } = worker;
                let (line, right) = (self.line(released, store), self.value(released, store));
                let released = released + 1;
                return Err(format!(
                    "thread {number} has acquired a flag that was released after store {store} before release {released}, and finds {value:#x} in line {line} instead of {right:#x}; {wrong} words are wrong"
                ));
            }
            if !worker.writes() && worker.checked != self.releases {
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
                let line = self.line(released, store);
                let right = self.value(released, store);
                let mut words = (0..self.words).map(|word| contents.word(line, word));
                if let Some(wrong) = words.find(|&word| word != right) {
                    return Err(format!(
                        "line {line} holds {wrong:#x} at the end instead of {right:#x}"
                    ));
                }
            }
        }
        Ok(())
    }
}
