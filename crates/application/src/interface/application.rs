//! Interface of a device application: its position, the events that it receives, and the actions that it requests.

use super::{Line, Operation, PageFault, Time, Update, Words};
use cohkit_protocol::protocol::Permission;
use std::ops::Range;

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
