//! Interface of a CPU thread: the steps that it issues.

use super::{Line, PageFault, Time, Update};

/// A thread of the CPU: a state machine that issues one step at a time.
pub trait Thread {
    /// Returns the next step. `result` is the outcome of the previous step: a word after loads and updates, otherwise
    /// 0.
    fn step(&mut self, result: u64) -> Step;

    /// Returns the next step after a page fault, on a machine that translates the thread's addresses. `None` if the
    /// thread cannot continue without the access; the run then ends.
    fn handle_page_fault(&mut self, _fault: PageFault) -> Option<Step> {
        None
    }
}

/// Next step of a CPU thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Loads a word and returns its value.
    Load {
        /// The line.
        line: Line,
        /// Index of the word within the line.
        word: u16,
    },
    /// Loads a word with write permission for its line, and returns its value.
    LoadExclusive {
        /// The line.
        line: Line,
        /// Index of the word within the line.
        word: u16,
    },
    /// Stores a word.
    Store {
        /// The line.
        line: Line,
        /// Index of the word within the line.
        word: u16,
        /// New value.
        value: u64,
    },
    /// Stores the same value in several words of a line, in one access.
    StoreWords {
        /// The line.
        line: Line,
        /// Index of the first word within the line.
        word: u16,
        /// Number of words.
        words: u16,
        /// New value of each word.
        value: u64,
    },
    /// Loads a word with acquire ordering, and returns its value: all later accesses of the thread wait for it. It
    /// waits for the thread's earlier releases.
    Acquire {
        /// The line.
        line: Line,
        /// Index of the word within the line.
        word: u16,
    },
    /// Stores a word with release ordering: after all earlier accesses of the thread.
    Release {
        /// The line.
        line: Line,
        /// Index of the word within the line.
        word: u16,
        /// New value.
        value: u64,
    },
    /// Updates a word atomically and returns its previous value.
    Update {
        /// The line.
        line: Line,
        /// Index of the word within the line.
        word: u16,
        /// The change to make.
        update: Update,
    },
    /// Prefetches a line for reading; completes immediately. A thread has at most `cores.max_outstanding` +
    /// `cores.prefetch_distance` - 1 prefetches outstanding; further ones are dropped, and counted by the statistic
    /// `prefetches_dropped`.
    Prefetch {
        /// The line.
        line: Line,
    },
    /// Prefetches a line with write permission; completes immediately. Bounded like [`Step::Prefetch`], which has the
    /// same effect in simulations if the protocol sends stores to the home, where there is no write permission to
    /// request. Explorations reject such protocols.
    PrefetchExclusive {
        /// The line.
        line: Line,
    },
    /// Reads a register of the application over the device bus and returns its value.
    ReadRegister {
        /// Index of the register.
        register: u32,
    },
    /// Writes a register of the application over the device bus; posted, so the thread does not wait for its arrival.
    WriteRegister {
        /// Index of the register.
        register: u32,
        /// New value.
        value: u64,
    },
    /// Loads a word of the CPU's own memory and returns its value. That memory is not behind the home and starts as
    /// zeros.
    /// If it is a line space of its own, the CPU and the device cache it coherently.
    LoadHost {
        /// Index of the word.
        word: u32,
    },
    /// Stores a word of the CPU's own memory.
    StoreHost {
        /// Index of the word.
        word: u32,
        /// New value.
        value: u64,
    },
    /// Waits for an interrupt from the application. Completes immediately if one has arrived since the last wait.
    AwaitInterrupt,
    /// Computes for the given time, in picoseconds.
    Work(Time),
    /// Waits until the thread's earlier stores have been performed, or are ordered before all later accesses.
    Fence,
    /// Adds to a counter of the statistics; completes immediately.
    Count {
        /// Name of the counter.
        name: &'static str,
        /// Amount to add.
        by: u64,
    },
    /// Starts a timed interval; completes immediately.
    Begin,
    /// Ends the timed interval; completes immediately.
    End {
        /// Label of the interval since the last [`Step::Begin`].
        name: &'static str,
    },
    /// Ends the thread.
    Stop,
}
