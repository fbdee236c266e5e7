//! What an application hears and what it may do; what a thread of the CPU does.
//!
//! Both are state machines without time of their own: an event comes, the state changes, actions leave.
//! Whoever drives them (the simulator, the checker, a test) brings time, data and the protocol.

use cohkit_protocol::protocol::Right;
use std::ops::Range;

/// Index of a line homed at the device: its address divided by the bytes of a line.
pub type Line = u32;

/// A duration in picoseconds.
pub type Time = u64;

/// The 64-bit words of a line, in address order.
pub type Words = Box<[u64]>;

/// Where an application sits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Placement {
    /// Between the home and memory: it answers the home's reads of these lines and takes its writes.
    /// The home reads and writes all other lines in memory.
    Between(Range<Line>),
    /// The same of several ranges.
    Among(Box<[Range<Line>]>),
    /// Beside the home's way to memory: it only hears what becomes of lines.
    Beside,
}

impl Placement {
    /// Whether the home's reads and writes of a line come to the application.
    pub fn serves(&self, line: Line) -> bool {
        match self {
            Placement::Between(lines) => lines.contains(&line),
            Placement::Among(ranges) => ranges.iter().any(|lines| lines.contains(&line)),
            Placement::Beside => false,
        }
    }
}

/// What an application makes the home do with the CPU's copies of a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operation {
    /// Memory gets what the CPU has written; the CPU may keep a copy to read.
    Clean,
    /// The same, and the CPU keeps no copy.
    CleanInvalidate,
}

impl Operation {
    /// The most that the CPU may do with the line when it is complete.
    pub fn leaves(self) -> Right {
        match self {
            Operation::Clean => Right::Read,
            Operation::CleanInvalidate => Right::None,
        }
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Clean => "clean",
            Operation::CleanInvalidate => "clean-invalidate",
        }
    }
}

/// An access that the page table does not permit: it has not been made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Refused {
    /// Whether it would have written.
    pub write: bool,
    /// The most that may be done with the page: nothing where it is not there.
    pub permits: Right,
}

impl std::fmt::Display for Refused {
    /// The rest of a sentence that begins with who has made the access.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match (self.write, self.permits) {
            (true, Right::None) => "may not write: the page is not there",
            (true, _) => "may not write: the page may only be read",
            (false, _) => "may not read: the page is not there",
        })
    }
}

/// What an application hears.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Everything begins; comes once, before all else.
    Start {
        /// Words of a line.
        words: u16,
    },
    /// The home reads a line for the CPU, which now `has` a right at most and gets the right `wants`
    /// (none for a read that is not cached). Only with [`Placement::Between`]; wants [`Action::Answer`], now or later.
    /// An upgrade is a read of a line that the CPU `has` the right to read already.
    Read {
        /// The line.
        line: Line,
        /// The right that the CPU gets with the answer.
        wants: Right,
        /// The most that the CPU may do with it until then.
        has: Right,
    },
    /// The home writes a line of which the CPU `keeps` a right at most.
    /// Only with [`Placement::Between`]; wants [`Action::Accept`], now or later.
    Write {
        /// The line.
        line: Line,
        /// Its words.
        words: Words,
        /// The most that the CPU may do with it from now on.
        keeps: Right,
    },
    /// The home has learnt that what the CPU may do with a line has changed.
    Changed {
        /// The line.
        line: Line,
        /// The most that it could do.
        from: Right,
        /// The most that it can do from now on.
        to: Right,
    },
    /// A local operation is complete. If it was asked for with a lock, the lock is held.
    Done {
        /// The line.
        line: Line,
        /// Which operation.
        operation: Operation,
        /// Whether the CPU had written the line, so that memory has changed.
        dirty: bool,
    },
    /// A line that the application has asked its memory for; those of one burst come in order.
    Fetched {
        /// As it was asked for.
        tag: u32,
        /// The line.
        line: Line,
        /// What it holds.
        words: Words,
    },
    /// Words of its memory that the application has read, as they were at one moment; of an [`Action::UpdateWord`] what the word
    /// held before.
    WordsRead {
        /// As it was asked for.
        tag: u32,
        /// What they hold.
        words: Words,
    },
    /// Memory has what the application has written, a line or words of one.
    Stored {
        /// As it was asked for.
        tag: u32,
    },
    /// The time that the application has asked for has passed.
    Timer {
        /// As it was asked for.
        tag: u32,
    },
    /// A thread reads a register of the application over the bus of devices. Wants [`Action::Reply`], now or later.
    RegisterRead {
        /// The register.
        register: u32,
        /// The thread, which reads one at a time.
        thread: u32,
    },
    /// A thread has written a register of the application over the bus of devices.
    RegisterWritten {
        /// The register.
        register: u32,
        /// What it has written.
        value: u64,
    },
    /// Words of the CPU's own memory that the application has asked for.
    HostFetched {
        /// As it was asked for.
        tag: u32,
        /// What they hold.
        words: Words,
    },
    /// Words of the host's memory that the application has read coherently, as they were at one moment for each line; of a
    /// [`Action::CoherentUpdate`] what the word held before.
    CoherentLoaded {
        /// As it was asked for.
        tag: u32,
        /// What they hold.
        words: Words,
    },
    /// What the application has written to the host's memory coherently has been performed: whoever reads it from now on
    /// sees it.
    CoherentStored {
        /// As it was asked for.
        tag: u32,
    },
    /// A coherent access of the application to the host's memory that the page table does not permit, on a machine that
    /// translates the device's addresses. It comes in the place of [`Event::CoherentLoaded`] or [`Event::CoherentStored`], when
    /// the access has ended in all of its lines: nothing has been read or written in those that were refused, and what was to
    /// be written to others has been. Wants [`Action::Forgo`] at once: who does not say that it goes on without the access
    /// ends the run.
    Refused {
        /// As it was asked for.
        tag: u32,
        /// The first word that was refused.
        word: u32,
        /// Why.
        why: Refused,
    },
    /// The run is to end: the application ends what it has begun, gives its locks back, and begins nothing more by itself.
    Stop,
}

/// What an application does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Answers a read of the home.
    Answer {
        /// The line that was read.
        line: Line,
        /// What it holds.
        words: Words,
    },
    /// Takes a write of the home: it may go on.
    Accept {
        /// The line that was written.
        line: Line,
    },
    /// Asks for a local operation, one at a time for each line.
    Local {
        /// The line.
        line: Line,
        /// What is to become of the CPU's copies.
        operation: Operation,
        /// Whether the CPU gets no right to the line afterwards until it is unlocked.
        lock: bool,
    },
    /// Gives a lock back.
    Unlock {
        /// The line.
        line: Line,
    },
    /// Reads lines from the application's memory, in one burst.
    Fetch {
        /// Comes back with each line.
        tag: u32,
        /// The first line.
        first: Line,
        /// How many.
        lines: u32,
    },
    /// Writes a line to the application's memory.
    Store {
        /// Comes back when it is done.
        tag: u32,
        /// The line.
        line: Line,
        /// What it is to hold.
        words: Words,
    },
    /// Reads words of a line of the application's memory, which come back as [`Event::WordsRead`]. Memory moves its smallest
    /// bursts that have them.
    ReadWords {
        /// Comes back with the words.
        tag: u32,
        /// The line.
        line: Line,
        /// The first word in it.
        word: u16,
        /// How many, at least one.
        words: u16,
    },
    /// Writes words of a line of the application's memory; the others stay. Comes back as [`Event::Stored`].
    WriteWords {
        /// Comes back when it is done.
        tag: u32,
        /// The line.
        line: Line,
        /// The first word in it.
        word: u16,
        /// What they are to hold, at least one.
        words: Words,
    },
    /// Changes a word of a line of the application's memory in one step: nothing happens to the line between its being read and
    /// its being written. What it held before comes back as [`Event::WordsRead`].
    UpdateWord {
        /// Comes back with the word.
        tag: u32,
        /// The line.
        line: Line,
        /// The word in it.
        word: u16,
        /// How.
        update: Update,
    },
    /// Asks to be woken.
    Wake {
        /// Comes back then.
        tag: u32,
        /// In so many picoseconds.
        after: Time,
    },
    /// Answers a thread's read of a register.
    Reply {
        /// The thread.
        thread: u32,
        /// What the register holds.
        value: u64,
    },
    /// Reads words of the CPU's own memory over the bus of devices, in one transfer, behind all that has been written over
    /// it before. Where that memory is a space of lines of its own it is read coherently.
    HostFetch {
        /// Comes back with the words.
        tag: u32,
        /// The first word.
        first: u32,
        /// How many.
        words: u32,
    },
    /// Writes words of the CPU's own memory over the bus of devices. What is written first is seen first;
    /// nothing comes back. Where that memory is a space of lines of its own no cache has an old copy afterwards.
    HostStore {
        /// The first word.
        first: u32,
        /// What they are to hold.
        words: Words,
    },
    /// Reads words of the host's memory coherently, by the caching agent that the device is there. Those of one line are
    /// read at one moment, those of different lines in any order. Comes back as [`Event::CoherentLoaded`].
    CoherentLoad {
        /// Comes back with the words.
        tag: u32,
        /// The first word.
        first: u32,
        /// How many, at least one.
        words: u32,
        /// Whether the device's cache keeps the lines; otherwise it asks for their bytes alone.
        cached: bool,
    },
    /// Writes words of the host's memory coherently, by the caching agent that the device is there: those of one line at one
    /// moment, those of different lines in any order. It is ordered with nothing: whoever wants an order waits for
    /// [`Event::CoherentStored`].
    CoherentStore {
        /// Comes back when all has been performed.
        tag: u32,
        /// The first word.
        first: u32,
        /// What they are to hold, at least one.
        words: Words,
        /// Whether the device's cache gets the lines to write them; otherwise it sends their bytes to the home.
        cached: bool,
    },
    /// Changes a word of the host's memory in one atomic step, in the device's cache. What it held before comes back as
    /// [`Event::CoherentLoaded`].
    CoherentUpdate {
        /// Comes back with the word.
        tag: u32,
        /// The word.
        word: u32,
        /// How.
        update: Update,
    },
    /// Goes on without a coherent access that was [refused](Event::Refused).
    Forgo {
        /// As the access was asked for.
        tag: u32,
    },
    /// Interrupts a thread over the bus of devices, behind all that has been written over it before.
    Interrupt {
        /// The thread.
        thread: u32,
    },
    /// What is to be timed under this tag begins now; it changes nothing else.
    Begin {
        /// The tag.
        tag: u32,
    },
    /// What is timed under this tag ends now; it changes nothing else.
    End {
        /// The tag.
        tag: u32,
        /// What has taken the time since the last [`Action::Begin`] with this tag.
        what: &'static str,
    },
    /// Counts something for the statistics; it changes nothing else.
    Count {
        /// What.
        what: &'static str,
        /// How many.
        by: u64,
    },
}

/// The actions that leave with one event, in order.
#[derive(Default, Debug)]
pub struct Actions(Vec<Action>);

impl Actions {
    /// No action yet.
    pub fn new() -> Actions {
        Actions::default()
    }

    /// Takes them all out, in order.
    pub fn take(&mut self) -> std::vec::Drain<'_, Action> {
        self.0.drain(..)
    }

    /// Any action.
    pub fn push(&mut self, action: Action) {
        self.0.push(action);
    }

    /// [`Action::Answer`].
    pub fn answer(&mut self, line: Line, words: Words) {
        self.push(Action::Answer { line, words });
    }

    /// [`Action::Accept`].
    pub fn accept(&mut self, line: Line) {
        self.push(Action::Accept { line });
    }

    /// [`Action::Local`].
    pub fn local(&mut self, line: Line, operation: Operation, lock: bool) {
        self.push(Action::Local {
            line,
            operation,
            lock,
        });
    }

    /// [`Action::Unlock`].
    pub fn unlock(&mut self, line: Line) {
        self.push(Action::Unlock { line });
    }

    /// [`Action::Fetch`].
    pub fn fetch(&mut self, tag: u32, first: Line, lines: u32) {
        self.push(Action::Fetch { tag, first, lines });
    }

    /// [`Action::Store`].
    pub fn store(&mut self, tag: u32, line: Line, words: Words) {
        self.push(Action::Store { tag, line, words });
    }

    /// [`Action::ReadWords`].
    pub fn read_words(&mut self, tag: u32, line: Line, word: u16, words: u16) {
        self.push(Action::ReadWords {
            tag,
            line,
            word,
            words,
        });
    }

    /// [`Action::WriteWords`].
    pub fn write_words(&mut self, tag: u32, line: Line, word: u16, words: Words) {
        self.push(Action::WriteWords {
            tag,
            line,
            word,
            words,
        });
    }

    /// [`Action::UpdateWord`].
    pub fn update_word(&mut self, tag: u32, line: Line, word: u16, update: Update) {
        self.push(Action::UpdateWord {
            tag,
            line,
            word,
            update,
        });
    }

    /// [`Action::Wake`].
    pub fn wake(&mut self, tag: u32, after: Time) {
        self.push(Action::Wake { tag, after });
    }

    /// [`Action::Reply`].
    pub fn reply(&mut self, thread: u32, value: u64) {
        self.push(Action::Reply { thread, value });
    }

    /// [`Action::HostFetch`].
    pub fn host_fetch(&mut self, tag: u32, first: u32, words: u32) {
        self.push(Action::HostFetch { tag, first, words });
    }

    /// [`Action::HostStore`].
    pub fn host_store(&mut self, first: u32, words: Words) {
        self.push(Action::HostStore { first, words });
    }

    /// [`Action::CoherentLoad`].
    pub fn coherent_load(&mut self, tag: u32, first: u32, words: u32, cached: bool) {
        self.push(Action::CoherentLoad {
            tag,
            first,
            words,
            cached,
        });
    }

    /// [`Action::CoherentStore`].
    pub fn coherent_store(&mut self, tag: u32, first: u32, words: Words, cached: bool) {
        self.push(Action::CoherentStore {
            tag,
            first,
            words,
            cached,
        });
    }

    /// [`Action::CoherentUpdate`].
    pub fn coherent_update(&mut self, tag: u32, word: u32, update: Update) {
        self.push(Action::CoherentUpdate { tag, word, update });
    }

    /// [`Action::Forgo`].
    pub fn forgo(&mut self, tag: u32) {
        self.push(Action::Forgo { tag });
    }

    /// [`Action::Interrupt`].
    pub fn interrupt(&mut self, thread: u32) {
        self.push(Action::Interrupt { thread });
    }

    /// [`Action::Begin`].
    pub fn begin(&mut self, tag: u32) {
        self.push(Action::Begin { tag });
    }

    /// [`Action::End`].
    pub fn end(&mut self, tag: u32, what: &'static str) {
        self.push(Action::End { tag, what });
    }

    /// [`Action::Count`].
    pub fn count(&mut self, what: &'static str, by: u64) {
        self.push(Action::Count { what, by });
    }
}

/// A device application: a state, and what each event makes of it.
///
/// A handler is pure: the same state and event give the same state and actions.
/// What is to be model-checked is `Clone + Eq + Hash` besides.
pub trait Application {
    /// Its name in messages.
    fn name(&self) -> &str;

    /// Where it sits; the same at all times.
    fn placement(&self) -> Placement;

    /// Takes an event.
    fn handle(&mut self, event: Event, actions: &mut Actions);
}

/// What a thread of the CPU does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Loads a word, which comes back.
    Load {
        /// The line.
        line: Line,
        /// The word in it.
        word: u16,
    },
    /// Loads a word, which comes back, with the right to write the line.
    LoadExclusive {
        /// The line.
        line: Line,
        /// The word in it.
        word: u16,
    },
    /// Stores a word.
    Store {
        /// The line.
        line: Line,
        /// The word in it.
        word: u16,
        /// Its new value.
        value: u64,
    },
    /// Stores the same value in several words of a line, in one access.
    StoreWords {
        /// The line.
        line: Line,
        /// The first word in it.
        word: u16,
        /// How many.
        words: u16,
        /// The new value of each.
        value: u64,
    },
    /// Loads a word, which comes back, and all that the thread does later waits for it. It waits for earlier releases.
    Acquire {
        /// The line.
        line: Line,
        /// The word in it.
        word: u16,
    },
    /// Stores a word after all that the thread has done before.
    Release {
        /// The line.
        line: Line,
        /// The word in it.
        word: u16,
        /// Its new value.
        value: u64,
    },
    /// Changes a word in one atomic step; what it held before comes back.
    Update {
        /// The line.
        line: Line,
        /// The word in it.
        word: u16,
        /// How.
        update: Update,
    },
    /// A hint that a line will be read soon; it is over at once.
    Hint {
        /// The line.
        line: Line,
    },
    /// Reads a register of the application over the bus of devices; its value comes back.
    ReadRegister {
        /// The register.
        register: u32,
    },
    /// Writes a register of the application over the bus of devices, and does not wait for it to arrive.
    WriteRegister {
        /// The register.
        register: u32,
        /// Its new value.
        value: u64,
    },
    /// Loads a word of the CPU's own memory, which comes back. That memory is not behind the home; it begins with zeros.
    /// Where it is a space of lines of its own, the CPU and the device cache it coherently.
    LoadHost {
        /// The word.
        word: u32,
    },
    /// Stores a word of the CPU's own memory.
    StoreHost {
        /// The word.
        word: u32,
        /// Its new value.
        value: u64,
    },
    /// Waits for an interrupt by the application; over at once if one has come since it last waited.
    AwaitInterrupt,
    /// Works for so many picoseconds.
    Work(Time),
    /// Waits until its stores have been performed, or are in order with all that comes.
    Fence,
    /// Counts something for the statistics; over at once.
    Count {
        /// What.
        what: &'static str,
        /// How many.
        by: u64,
    },
    /// What is to be timed begins now; over at once.
    Begin,
    /// What is timed ends now; over at once.
    End {
        /// What has taken the time since the last [`Step::Begin`].
        what: &'static str,
    },
    /// Nothing more, ever.
    Stop,
}

/// An atomic change of a word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Update {
    /// So much is added; it wraps.
    Add(u64),
    /// The word becomes `new` if it is `old`.
    CompareSwap {
        /// What it has to be.
        old: u64,
        /// What it becomes then.
        new: u64,
    },
    /// The word becomes this, whatever it was.
    Swap(u64),
}

impl Update {
    /// What becomes of a word.
    pub fn of(self, word: u64) -> u64 {
        match self {
            Update::Add(by) => word.wrapping_add(by),
            Update::CompareSwap { old, new } if word == old => new,
            Update::CompareSwap { .. } => word,
            Update::Swap(new) => new,
        }
    }
}

/// A thread of the CPU: a state machine that makes one step after the other.
pub trait Thread {
    /// The next step. `result` is what the last one gave: a word after loads and updates, 0 otherwise.
    fn step(&mut self, result: u64) -> Step;

    /// The next step, after one whose access the page table has refused, on a machine that translates the thread's addresses.
    /// Nothing if it cannot go on without the access, which ends the run.
    fn refused(&mut self, _why: Refused) -> Option<Step> {
        None
    }
}

/// The data of all lines once nothing is in flight, to judge a run by.
pub trait Contents {
    /// The word of a line: what a load would give.
    fn word(&self, line: Line, word: u16) -> u64;

    /// The word that it was at the start.
    fn initial(&self, line: Line, word: u16) -> u64;

    /// The word of the host's memory, what a load of the host would give; nothing where that is no space of its own.
    fn host(&self, _word: u32) -> Option<u64> {
        None
    }
}

/// Rows of numbers that a run leaves, for other programs to judge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its rows.
    pub rows: Vec<Vec<u64>>,
}

/// An application and the threads that use it.
pub trait Scenario {
    /// The application.
    type Application: Application;
    /// A thread.
    type Thread: Thread;

    /// Lines of the home that it uses, from 0.
    fn lines(&self) -> Line;

    /// Words of each line that it uses, from 0.
    fn words(&self) -> u64 {
        1
    }

    /// Whether it ends by itself.
    fn ends(&self) -> bool;

    /// The local operations that its application asks for, and whether with lock, so that a home that lacks one is told
    /// before anything runs. Of one that is not named here it is told when the application asks for it.
    fn asks(&self) -> Vec<(Operation, bool)> {
        Vec::new()
    }

    /// Whether its application has to hear of what becomes of the CPU's rights ([`Event::Changed`]), which only a home that is
    /// constructed from a policy can tell. One that does without stands beside any home.
    fn hears(&self) -> bool {
        true
    }

    /// How many of its threads, the last ones, are engines of a device that caches lines of the CPU's memory, as the CPU's
    /// cores do. If there are any, nothing is behind the home, and its application hears of nothing.
    fn engines(&self) -> u32 {
        0
    }

    /// Whether there are threads only: then nothing is behind the home, of which there may be several.
    fn alone(&self) -> bool {
        self.engines() > 0
    }

    /// Words of the host's memory that application and threads access where it is a space of its own, which the device
    /// caches, from 0; 0 if they need none.
    fn host_words(&self) -> u64 {
        0
    }

    /// The application at the start.
    fn application(&self) -> Self::Application;

    /// The threads at the start.
    fn threads(&self) -> Vec<Self::Thread>;

    /// Whether application, threads and data are as they have to be at the end.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn verify(
        &self,
        application: &Self::Application,
        threads: &[Self::Thread],
        contents: &dyn Contents,
    ) -> Result<(), String>;

    /// What threads have been given and have made of it, where other programs can judge it.
    fn tables(&self, _threads: &[Self::Thread]) -> Vec<Table> {
        Vec::new()
    }
}
