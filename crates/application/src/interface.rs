//! Interface of device applications and of CPU threads: the events they receive and the actions they take.
//!
//! Both are state machines without a clock: an event arrives, the state changes, actions leave.
//! The driver (the simulator, the checker, a test) supplies time, data and the protocol.

use cohkit_protocol::protocol::Permission;
use std::ops::Range;

/// Index of a line homed at the device: its address divided by the bytes of a line.
pub type Line = u32;

/// A duration in picoseconds.
pub type Time = u64;

/// The 64-bit words of a line, in address order.
pub type Words = Box<[u64]>;

/// Position of an application relative to the home.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Placement {
    /// Between the home and memory: the application answers the home's reads of these lines and accepts its writes.
    /// The home reads and writes all other lines in memory.
    MemoryPath(Range<Line>),
    /// Between the home and memory, for several ranges of lines.
    MemoryPathRanges(Box<[Range<Line>]>),
    /// Beside the path from the home to memory: the application only observes changes of permissions.
    Observer,
}

impl Placement {
    /// True if the home's reads and writes of `line` go to the application.
    pub fn serves(&self, line: Line) -> bool {
        match self {
            Placement::MemoryPath(lines) => lines.contains(&line),
            Placement::MemoryPathRanges(ranges) => ranges.iter().any(|lines| lines.contains(&line)),
            Placement::Observer => false,
        }
    }
}

/// Cache maintenance operation that an application requests from the home for the CPU's copies of a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operation {
    /// Writes the CPU's modifications back to memory. The CPU may keep a read-only copy.
    Clean,
    /// Writes the CPU's modifications back to memory and invalidates the CPU's copy.
    CleanInvalidate,
}

impl Operation {
    /// Returns the highest permission that the CPU retains once the operation is complete.
    pub fn leaves(self) -> Permission {
        match self {
            Operation::Clean => Permission::Read,
            Operation::CleanInvalidate => Permission::None,
        }
    }

    /// Returns the operation's name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Clean => "clean",
            Operation::CleanInvalidate => "clean-invalidate",
        }
    }
}

/// A page fault: an access that the page table does not permit and that was not performed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PageFault {
    /// True for a write access.
    pub write: bool,
    /// Permission that the page table grants: `Permission::None` if the page is not mapped.
    pub permits: Permission,
}

impl std::fmt::Display for PageFault {
    /// Formats the predicate of a sentence; the caller prepends the initiator of the access as the subject.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match (self.write, self.permits) {
            (true, Permission::None) => "cannot write: the page is not mapped",
            (true, _) => "cannot write: the page is read-only",
            (false, _) => "cannot read: the page is not mapped",
        })
    }
}

/// Event that an application receives.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// First event of a run, delivered once and before all others.
    Start {
        /// Number of 64-bit words per line.
        words: u16,
    },
    /// The home reads a line for the CPU, which has at most the permission `has` and receives the permission `wants`
    /// (`None` for an uncached read). Only with [`Placement::MemoryPath`] or [`Placement::MemoryPathRanges`]. The
    /// application replies with [`Action::Answer`], immediately or later. An upgrade is a read of a line for which the
    /// CPU already `has` read permission.
    Read {
        /// The line.
        line: Line,
        /// Permission that the CPU receives with the answer.
        wants: Permission,
        /// Highest permission that the CPU may have until then.
        has: Permission,
    },
    /// The home writes a line for which the CPU `keeps` at most the given permission.
    /// Only with [`Placement::MemoryPath`] or [`Placement::MemoryPathRanges`]. The application replies with
    /// [`Action::Accept`], immediately or later.
    Write {
        /// The line.
        line: Line,
        /// New contents of the line.
        words: Words,
        /// Highest permission that the CPU retains.
        keeps: Permission,
    },
    /// The home has learnt that the CPU's permission for a line has changed.
    PermissionChange {
        /// The line.
        line: Line,
        /// Highest permission before the change.
        from: Permission,
        /// Highest permission after the change.
        to: Permission,
    },
    /// A local operation is complete. If it was requested with a lock, the home now holds that lock for the
    /// application.
    LocalCompletion {
        /// The line.
        line: Line,
        /// The operation that was requested.
        operation: Operation,
        /// True if the CPU had modified the line, so that memory has changed.
        dirty: bool,
    },
    /// A line that the application requested by [`Action::Fetch`]. Lines of one burst arrive in order.
    FetchCompletion {
        /// Tag of the request.
        tag: u32,
        /// The line.
        line: Line,
        /// Contents of the line.
        words: Words,
    },
    /// Words of the application's memory requested by [`Action::ReadWords`], read atomically. After an
    /// [`Action::UpdateWord`], the value of the word before the update.
    ReadCompletion {
        /// Tag of the request.
        tag: u32,
        /// Their values.
        words: Words,
    },
    /// A write of the application to its memory is complete: a line, or words of one.
    StoreCompletion {
        /// Tag of the request.
        tag: u32,
    },
    /// The interval requested by [`Action::Wake`] has elapsed.
    Timer {
        /// Tag of the request.
        tag: u32,
    },
    /// A thread reads a register of the application over the device bus. The application replies with
    /// [`Action::Reply`], immediately or later.
    RegisterRead {
        /// Index of the register.
        register: u32,
        /// The reading thread, which has at most one outstanding register read.
        thread: u32,
    },
    /// A thread has written a register of the application over the device bus.
    RegisterWrite {
        /// Index of the register.
        register: u32,
        /// The value written.
        value: u64,
    },
    /// Words of the CPU's own memory, requested by [`Action::HostFetch`].
    HostFetchCompletion {
        /// Tag of the request.
        tag: u32,
        /// Their values.
        words: Words,
    },
    /// Words of the host's memory from a coherent load; the words of each line are read atomically. After an
    /// [`Action::CoherentUpdate`], the value of the word before the update.
    CoherentLoadCompletion {
        /// Tag of the request.
        tag: u32,
        /// Their values.
        words: Words,
    },
    /// A coherent store of the application to the host's memory has been performed: every later read observes it.
    CoherentStoreCompletion {
        /// Tag of the request.
        tag: u32,
    },
    /// Page fault of a coherent access to the host's memory, on a machine that translates the device's addresses. It
    /// replaces [`Event::CoherentLoadCompletion`] or [`Event::CoherentStoreCompletion`] and arrives once all lines of
    /// the access have finished. Refused lines were neither read nor written; a store's other lines have been written.
    /// The application must reply with [`Action::Abandon`] at once; otherwise the run ends.
    PageFault {
        /// Tag of the request.
        tag: u32,
        /// First refused word.
        word: u32,
        /// Kind of access, and the permission that the page table grants.
        fault: PageFault,
    },
    /// The run is about to end. The application completes its outstanding operations, releases its locks and starts
    /// nothing new.
    Stop,
}

/// Action that an application requests.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Answers a read by the home.
    Answer {
        /// The line that was read.
        line: Line,
        /// Contents of the line.
        words: Words,
    },
    /// Accepts a write by the home, which may then proceed.
    Accept {
        /// The line that was written.
        line: Line,
    },
    /// Requests a local operation. At most one per line may be outstanding.
    Local {
        /// The line.
        line: Line,
        /// The operation on the CPU's copies.
        operation: Operation,
        /// True to lock the line: the CPU receives no permission for it until [`Action::Unlock`].
        lock: bool,
    },
    /// Releases the lock of a line.
    Unlock {
        /// The line.
        line: Line,
    },
    /// Reads lines from the application's memory, in one burst.
    Fetch {
        /// Returned with each line, in [`Event::FetchCompletion`].
        tag: u32,
        /// First line.
        first: Line,
        /// Number of lines.
        lines: u32,
    },
    /// Writes a line to the application's memory.
    Store {
        /// Returned on completion, in [`Event::StoreCompletion`].
        tag: u32,
        /// The line.
        line: Line,
        /// New contents of the line.
        words: Words,
    },
    /// Reads words of a line of the application's memory; the reply is [`Event::ReadCompletion`]. Memory transfers the
    /// smallest bursts that contain them.
    ReadWords {
        /// Returned with the words.
        tag: u32,
        /// The line.
        line: Line,
        /// Index of the first word within the line.
        word: u16,
        /// Number of words, at least one.
        words: u16,
    },
    /// Writes words of a line of the application's memory and leaves the line's other words unchanged. The reply is
    /// [`Event::StoreCompletion`].
    WriteWords {
        /// Returned on completion.
        tag: u32,
        /// The line.
        line: Line,
        /// Index of the first word within the line.
        word: u16,
        /// New values, at least one word.
        words: Words,
    },
    /// Updates a word of the application's memory atomically: no other access to the line occurs between the read and
    /// the write. The reply is [`Event::ReadCompletion`] with the previous value.
    UpdateWord {
        /// Returned with the previous value.
        tag: u32,
        /// The line.
        line: Line,
        /// Index of the word within the line.
        word: u16,
        /// The change to make.
        update: Update,
    },
    /// Starts a timer; it ends with [`Event::Timer`].
    Wake {
        /// Returned when the timer expires.
        tag: u32,
        /// Delay in picoseconds.
        delay: Time,
    },
    /// Answers a thread's register read.
    Reply {
        /// Number of the thread.
        thread: u32,
        /// Value of the register.
        value: u64,
    },
    /// Reads words of the CPU's own memory over the device bus, in one transfer that is ordered behind all earlier
    /// writes on the bus. The read is coherent if that memory is a line space of its own.
    HostFetch {
        /// Returned with the words.
        tag: u32,
        /// Index of the first word.
        first: u32,
        /// Number of words.
        words: u32,
    },
    /// Writes words of the CPU's own memory over the device bus. Writes become visible in the order they were issued;
    /// there is no reply. If that memory is a line space of its own, no cache keeps a stale copy.
    HostStore {
        /// Index of the first word.
        first: u32,
        /// New values.
        words: Words,
    },
    /// Reads words of the host's memory coherently, through the device's caching agent there. The words of one line are
    /// read atomically; different lines are read in any order. The reply is [`Event::CoherentLoadCompletion`].
    CoherentLoad {
        /// Returned with the words.
        tag: u32,
        /// Index of the first word.
        first: u32,
        /// Number of words, at least one.
        words: u32,
        /// True if the device's cache allocates the lines; otherwise it requests only their bytes.
        cached: bool,
    },
    /// Writes words of the host's memory coherently, through the device's caching agent there. The words of one line
    /// are written atomically; different lines are written in any order. The store is unordered with all other
    /// accesses: to impose an order, wait for [`Event::CoherentStoreCompletion`].
    CoherentStore {
        /// Returned when every line has been performed.
        tag: u32,
        /// Index of the first word.
        first: u32,
        /// New values, at least one word.
        words: Words,
        /// True if the device's cache acquires the lines to write them; otherwise it sends the bytes to the home.
        cached: bool,
    },
    /// Updates a word of the host's memory atomically, in the device's cache. The reply is
    /// [`Event::CoherentLoadCompletion`] with the previous value.
    CoherentUpdate {
        /// Returned with the previous value.
        tag: u32,
        /// Index of the word.
        word: u32,
        /// The change to make.
        update: Update,
    },
    /// Abandons a coherent access that was [refused](Event::PageFault) and continues without it.
    Abandon {
        /// Tag of the refused access.
        tag: u32,
    },
    /// Interrupts a thread over the device bus, ordered behind all earlier writes on the bus.
    Interrupt {
        /// Number of the thread.
        thread: u32,
    },
    /// Starts the interval timed under `tag`. It has no other effect.
    Begin {
        /// Identifier of the interval.
        tag: u32,
    },
    /// Ends the interval timed under `tag`. It has no other effect.
    End {
        /// Identifier of the interval.
        tag: u32,
        /// Label of the interval since the last [`Action::Begin`] with this tag.
        name: &'static str,
    },
    /// Adds to a counter of the statistics. It has no other effect.
    Count {
        /// Name of the counter.
        name: &'static str,
        /// Amount to add.
        by: u64,
    },
}

/// Actions that one event causes, in order. The driver carries them out after the handler has returned. The methods
/// below append one action each; [`Action`] describes their parameters.
#[derive(Default, Debug)]
pub struct Actions(Vec<Action>);

impl Actions {
    /// Creates an empty list.
    pub fn new() -> Actions {
        Actions::default()
    }

    /// Removes all actions and returns them in order.
    pub fn take(&mut self) -> std::vec::Drain<'_, Action> {
        self.0.drain(..)
    }

    /// Appends an action.
    pub fn push(&mut self, action: Action) {
        self.0.push(action);
    }

    /// Appends an [`Action::Answer`].
    pub fn answer(&mut self, line: Line, words: Words) {
        self.push(Action::Answer { line, words });
    }

    /// Appends an [`Action::Accept`].
    pub fn accept(&mut self, line: Line) {
        self.push(Action::Accept { line });
    }

    /// Appends an [`Action::Local`].
    pub fn local(&mut self, line: Line, operation: Operation, lock: bool) {
        self.push(Action::Local {
            line,
            operation,
            lock,
        });
    }

    /// Appends an [`Action::Unlock`].
    pub fn unlock(&mut self, line: Line) {
        self.push(Action::Unlock { line });
    }

    /// Appends an [`Action::Fetch`].
    pub fn fetch(&mut self, tag: u32, first: Line, lines: u32) {
        self.push(Action::Fetch { tag, first, lines });
    }

    /// Appends an [`Action::Store`].
    pub fn store(&mut self, tag: u32, line: Line, words: Words) {
        self.push(Action::Store { tag, line, words });
    }

    /// Appends an [`Action::ReadWords`].
    pub fn read_words(&mut self, tag: u32, line: Line, word: u16, words: u16) {
        self.push(Action::ReadWords {
            tag,
            line,
            word,
            words,
        });
    }

    /// Appends an [`Action::WriteWords`].
    pub fn write_words(&mut self, tag: u32, line: Line, word: u16, words: Words) {
        self.push(Action::WriteWords {
            tag,
            line,
            word,
            words,
        });
    }

    /// Appends an [`Action::UpdateWord`].
    pub fn update_word(&mut self, tag: u32, line: Line, word: u16, update: Update) {
        self.push(Action::UpdateWord {
            tag,
            line,
            word,
            update,
        });
    }

    /// Appends an [`Action::Wake`].
    pub fn wake(&mut self, tag: u32, delay: Time) {
        self.push(Action::Wake { tag, delay });
    }

    /// Appends an [`Action::Reply`].
    pub fn reply(&mut self, thread: u32, value: u64) {
        self.push(Action::Reply { thread, value });
    }

    /// Appends an [`Action::HostFetch`].
    pub fn host_fetch(&mut self, tag: u32, first: u32, words: u32) {
        self.push(Action::HostFetch { tag, first, words });
    }

    /// Appends an [`Action::HostStore`].
    pub fn host_store(&mut self, first: u32, words: Words) {
        self.push(Action::HostStore { first, words });
    }

    /// Appends an [`Action::CoherentLoad`].
    pub fn coherent_load(&mut self, tag: u32, first: u32, words: u32, cached: bool) {
        self.push(Action::CoherentLoad {
            tag,
            first,
            words,
            cached,
        });
    }

    /// Appends an [`Action::CoherentStore`].
    pub fn coherent_store(&mut self, tag: u32, first: u32, words: Words, cached: bool) {
        self.push(Action::CoherentStore {
            tag,
            first,
            words,
            cached,
        });
    }

    /// Appends an [`Action::CoherentUpdate`].
    pub fn coherent_update(&mut self, tag: u32, word: u32, update: Update) {
        self.push(Action::CoherentUpdate { tag, word, update });
    }

    /// Appends an [`Action::Abandon`].
    pub fn abandon(&mut self, tag: u32) {
        self.push(Action::Abandon { tag });
    }

    /// Appends an [`Action::Interrupt`].
    pub fn interrupt(&mut self, thread: u32) {
        self.push(Action::Interrupt { thread });
    }

    /// Appends an [`Action::Begin`].
    pub fn begin(&mut self, tag: u32) {
        self.push(Action::Begin { tag });
    }

    /// Appends an [`Action::End`].
    pub fn end(&mut self, tag: u32, name: &'static str) {
        self.push(Action::End { tag, name });
    }

    /// Appends an [`Action::Count`].
    pub fn count(&mut self, name: &'static str, by: u64) {
        self.push(Action::Count { name, by });
    }
}

/// A device application: a state machine driven by events.
///
/// A handler is pure: the same state and event give the same state and actions.
/// For model checking, the type also implements `Clone + Eq + Hash`.
pub trait Application {
    /// Returns the application's name for messages.
    fn name(&self) -> &str;

    /// Returns the application's position. The result is the same in every state.
    fn placement(&self) -> Placement;

    /// Handles an event and appends the resulting actions. A violation of the obligations that [`Event`] describes is
    /// reported by [`Contract`](crate::contract::Contract).
    fn handle(&mut self, event: Event, actions: &mut Actions);
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
    /// Prefetches a line for reading; completes immediately.
    Prefetch {
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

/// An atomic read-modify-write of a word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Update {
    /// Adds the operand, wrapping on overflow.
    Add(u64),
    /// Replaces the word by `new` if it equals `old`.
    CompareSwap {
        /// Expected value.
        old: u64,
        /// Replacement value.
        new: u64,
    },
    /// Replaces the word unconditionally.
    Swap(u64),
}

impl Update {
    /// Returns the new value of a word that held `word`.
    pub fn apply(self, word: u64) -> u64 {
        match self {
            Update::Add(by) => word.wrapping_add(by),
            Update::CompareSwap { old, new } if word == old => new,
            Update::CompareSwap { .. } => word,
            Update::Swap(new) => new,
        }
    }
}

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

/// Final contents of memory, for verification when nothing is in flight.
pub trait Contents {
    /// Returns the value that a load of this word would return.
    fn word(&self, line: Line, word: u16) -> u64;

    /// Returns the initial value of the word.
    fn initial(&self, line: Line, word: u16) -> u64;

    /// Returns the value that a host's load of this word of host memory would return; `None` if host memory is not a
    /// line space of its own.
    fn host(&self, _word: u32) -> Option<u64> {
        None
    }
}

/// A table of numbers that a run produces, for verification by other programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Name of the table.
    pub name: &'static str,
    /// Rows, in order.
    pub rows: Vec<Vec<u64>>,
}

/// A device application with the threads that use it, and the verification of a run.
pub trait Scenario {
    /// Type of the application.
    type Application: Application;
    /// Type of the threads.
    type Thread: Thread;

    /// Number of home lines that the scenario uses, starting at line 0.
    fn lines(&self) -> Line;

    /// Number of words per line that the scenario uses, starting at word 0.
    fn words(&self) -> u64 {
        1
    }

    /// True if the scenario terminates by itself.
    fn terminates(&self) -> bool;

    /// Local operations that the application requests, each with a flag that is true if it locks. A home that lacks one
    /// is rejected before the run starts. An operation that is missing here is rejected only when the application
    /// requests it.
    fn requested_operations(&self) -> Vec<(Operation, bool)> {
        Vec::new()
    }

    /// True if the application depends on [`Event::PermissionChange`], which only a home that is constructed from a
    /// policy can report. Otherwise the scenario runs with any home.
    fn needs_change_events(&self) -> bool {
        true
    }

    /// Number of threads, at the end of the list, that are engines of a device that caches lines of the CPU's memory.
    /// If it is not zero, no application is behind the home, and the application receives no events.
    fn engines(&self) -> u32 {
        0
    }

    /// True if the scenario consists of threads only: nothing is behind the home, and there may be several homes.
    fn is_threads_only(&self) -> bool {
        self.engines() > 0
    }

    /// Number of words of host memory that application and threads access, starting at word 0, if host memory is a line
    /// space that the device caches. 0 if they need none.
    fn host_words(&self) -> u64 {
        0
    }

    /// Returns the application in its initial state.
    fn application(&self) -> Self::Application;

    /// Returns the threads in their initial states.
    fn threads(&self) -> Vec<Self::Thread>;

    /// Checks the final states of application and threads, and the final data.
    ///
    /// # Errors
    /// A sentence that describes the first failure.
    fn verify(
        &self,
        application: &Self::Application,
        threads: &[Self::Thread],
        contents: &dyn Contents,
    ) -> Result<(), String>;

    /// Returns the values that threads have observed and computed, for verification by other programs.
    fn tables(&self, _threads: &[Self::Thread]) -> Vec<Table> {
        Vec::new()
    }
}
