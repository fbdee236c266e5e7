//! A port into a space: accesses of threads and of an application in another space to the lines of this one, word by
//! word.
//!
//! A thread's accesses use the cache of its core's own memory, an application's accesses that of the device. Each
//! access takes the normal path through its cache. When it is performed, the port supplies the words to write and
//! receives the words that were read.

use cohkit_application::interface::{PageFault, Update, Words};
use cohkit_protocol::controller::Access;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

use crate::data::Copy;
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{CoreId, Line};
use crate::simulation::{Context, Pending, Purpose};

/// Requester of an access to another space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Requester {
    /// A thread, which waits for the completion.
    Thread(CoreId),
    /// The application, with its tag for the request.
    Application(u32),
    /// A transfer of the bus, with the application's tag for it.
    Transfer(u32),
}

impl Requester {
    /// Returns the name of the requester in messages.
    fn name(self) -> String {
        match self {
            Requester::Thread(core) => format!("thread {core}"),
            Requester::Application(_) => "the application".into(),
            Requester::Transfer(_) => "a transfer".into(),
        }
    }
}

/// Operation on words.
#[derive(Clone, Debug)]
pub(crate) enum AccessOp {
    /// Read of consecutive words. `cached` lets the cache keep the line; otherwise it is a non-caching read.
    Load { words: u32, cached: bool },
    /// Write of consecutive words. `cached` brings the line into the cache; otherwise it is a non-caching write.
    Store { words: Words, cached: bool },
    /// Atomic update of one word in a copy of the cache. Its old value is returned.
    Update(Update),
}

impl AccessOp {
    /// Number of words of the operation.
    fn words(&self) -> u32 {
        match self {
            AccessOp::Load { words, .. } => *words,
            AccessOp::Store { words, .. } => words.len() as u32,
            AccessOp::Update(_) => 1,
        }
    }
}

/// Request to another space, from the word `first` on.
#[derive(Debug)]
pub(crate) struct PortRequest {
    /// Component to be notified of the completion.
    pub requester: Requester,
    /// Index of the first 8-byte word in the memory of the space.
    pub first: u32,
    /// Operation on the words.
    pub op: AccessOp,
}

/// Completion of a request, at a time that is not in the past.
#[derive(Debug)]
pub(crate) struct Completion {
    /// Component that issued the request.
    pub requester: Requester,
    /// Time at which the requester receives the completion, in picoseconds.
    pub time: Time,
    /// The words that were read; `None` for a write.
    pub words: Option<Words>,
    /// The first word whose access was refused, and the reason, if any.
    pub refused: Option<(u32, PageFault)>,
}

/// A request in progress, for one line or several.
struct Request {
    /// Component that issued the request.
    requester: Requester,
    /// Operation on the words.
    op: AccessOp,
    /// The words read so far.
    words_read: Vec<u64>,
    /// The first word whose access was refused, and the reason, if any.
    refused: Option<(u32, PageFault)>,
    /// Number of lines whose parts have not ended.
    lines_left: u32,
    /// Latest completion of a part so far, in picoseconds.
    time: Time,
}

/// The part of a request that concerns one line.
#[derive(Clone, Copy)]
struct Part {
    /// Number of the request.
    request: u64,
    /// Line that the part concerns.
    line: Line,
    /// First word of the part in the line.
    word: u16,
    /// Number of words of the part.
    word_count: u16,
    /// Index of the part's first word in the request.
    offset: u32,
}

/// All outstanding requests.
pub(crate) struct Port {
    /// Core through which bus transfers enter, in front of a cache of the host.
    bridge: CoreId,
    /// Core through which the device's accesses leave.
    engine: CoreId,
    /// Maximum number of the device's outstanding accesses.
    max_in_flight: u64,
    /// Number of the device's outstanding accesses; those of threads and transfers are not counted.
    in_flight: u64,
    /// Parts of the device's requests that wait because the maximum is outstanding, in order.
    waiting: VecDeque<u64>,
    /// Requests in progress, by number.
    requests: FxHashMap<u64, Request>,
    /// Parts in progress or waiting, by number. `Pending::value` of an access is the number of its part.
    parts: FxHashMap<u64, Part>,
    /// Last number given to a request or a part.
    next_number: u64,
    /// Completions since the last hand-over to the other space.
    pub completions: Vec<Completion>,
}

impl Port {
    /// Creates an idle port. `engine` is the device's only core; bus transfers enter through the core before it. The
    /// device has at most `max_in_flight` accesses in flight.
    pub fn new(engine: CoreId, max_in_flight: u64) -> Port {
        Port {
            bridge: CoreId(engine.0 - 1),
            engine,
            max_in_flight,
            in_flight: 0,
            waiting: VecDeque::new(),
            requests: FxHashMap::default(),
            parts: FxHashMap::default(),
            next_number: 0,
            completions: Vec::new(),
        }
    }

    /// Returns a number that no request or part has.
    fn new_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Starts a request. Returns the numbers of the parts that may begin now; the others follow from
    /// [`Port::complete_part`]. Fails the run if the words are not in memory.
    pub fn begin_request(&mut self, context: &mut Context, port_request: PortRequest) -> Vec<u64> {
        let words_per_line = u32::from(context.contents.data.words());
        let (first, words) = (port_request.first, port_request.op.words());
        let memory_words = u64::from(context.tables.platform.lines) * u64::from(words_per_line);
        let end = u64::from(first) + u64::from(words);
        if words == 0 || end > memory_words {
            let requester_name = port_request.requester.name();
            let text = format!(
                "{requester_name} accesses {words} words from {first} on of the host's memory, which has {memory_words}"
            );
            context.fail(FailureKind::Contract, 0, text);
            return Vec::new();
        }
        let (requester, lines) = (
            port_request.requester,
            first / words_per_line..(end as u32 - 1) / words_per_line + 1,
        );
        let request_number = self.new_number();
        let request = Request {
            requester,
            words_read: match port_request.op {
                AccessOp::Store { .. } => Vec::new(),
                _ => vec![0; words as usize],
            },
            op: port_request.op,
            refused: None,
            lines_left: lines.len() as u32,
            time: 0,
        };
        self.requests.insert(request_number, request);
        let from_device = matches!(requester, Requester::Application(_));
        let mut parts_to_begin = Vec::new();
        for line in lines {
            let start_word = first.max(line * words_per_line);
            let line_end = (u64::from(line) + 1) * u64::from(words_per_line);
            let part = Part {
                request: request_number,
                line,
                word: (start_word % words_per_line) as u16,
                word_count: (end.min(line_end) - u64::from(start_word)) as u16,
                offset: start_word - first,
            };
            let number = self.new_number();
            self.parts.insert(number, part);
            if from_device && self.in_flight == self.max_in_flight {
                self.waiting.push_back(number);
            } else {
                self.in_flight += u64::from(from_device);
                parts_to_begin.push(number);
            }
        }
        parts_to_begin
    }

    /// Returns the access for a part of a request, issued now, and true if its address is virtual. Returns `None`
    /// if the protocol does not support it, which fails the run.
    pub fn access_of(&self, context: &mut Context, number: u64) -> Option<(Pending, bool)> {
        let part = *self.parts.get(&number)?;
        let request = self.requests.get(&part.request)?;
        if matches!(request.op, AccessOp::Update(_)) && context.tables.caches_send_stores {
            let name = &context.tables.names.remote_controller;
            let text =
                format!("an atomic access needs the line, and {name} sends its stores to the home");
            context.fail(FailureKind::Incompatible, part.line, text);
            return None;
        }
        let core = match request.requester {
            Requester::Thread(core) => core,
            Requester::Application(_) => self.engine,
            Requester::Transfer(_) => self.bridge,
        };
        // Bus transfers use physical addresses.
        let has_virtual_address = !matches!(request.requester, Requester::Transfer(_));
        let is_whole_line = part.word_count == context.contents.data.words();
        let kind = match request.op {
            AccessOp::Load { cached: true, .. } => Access::Load,
            AccessOp::Load { .. } => Access::ReadOnce,
            AccessOp::Update(_) | AccessOp::Store { cached: true, .. } => Access::Store,
            AccessOp::Store { .. } if is_whole_line => Access::WriteLine,
            AccessOp::Store { .. } => Access::WritePartial,
        };
        let (cache, now) = (context.tables.groups.cache_of(core), context.now());
        let access = Pending {
            value: number,
            word: part.word,
            words: part.word_count,
            ..Pending::new(part.line, kind, core, cache, Purpose::Port, now)
        };
        Some((access, has_virtual_address))
    }

    /// Returns the request that an access belongs to, and its part of the request.
    fn request_of(&self, access: &Pending) -> Option<(&Request, Part)> {
        let part = *self.parts.get(&access.value)?;
        Some((self.requests.get(&part.request)?, part))
    }

    /// Records the words read by a part.
    fn record_read(&mut self, part: Part, words: impl Iterator<Item = u64>) {
        if let Some(request) = self.requests.get_mut(&part.request) {
            let target = &mut request.words_read[part.offset as usize..];
            target
                .iter_mut()
                .zip(words)
                .for_each(|(target, word)| *target = word);
        }
    }

    /// Completes a read with these bytes. If they are in a copy of its cache (`in_place`), every word must be the
    /// last one written.
    #[cold]
    pub fn read(&mut self, context: &mut Context, access: &Pending, copy: Copy, in_place: bool) {
        let Some((_, part)) = self.request_of(access) else {
            return;
        };
        let words = part.word..part.word + part.word_count;
        if in_place {
            for word in words.clone() {
                context.check_load(&Pending { word, ..*access }, copy, None);
            }
        }
        let (data, line) = (&context.contents.data, access.line);
        self.record_read(part, words.map(|word| data.word(line, copy, word)));
    }

    /// Returns the words that a write stores, given the line's contents when the write is performed.
    fn stored_words(
        &mut self,
        context: &mut Context,
        access: &Pending,
        copy: Copy,
    ) -> Vec<(u16, u64)> {
        let Some((request, part)) = self.request_of(access) else {
            return Vec::new();
        };
        match &request.op {
            AccessOp::Load { .. } => Vec::new(),
            AccessOp::Store { words, .. } => {
                let part_words = words[part.offset as usize..].iter().copied();
                (part.word..part.word + part.word_count)
                    .zip(part_words)
                    .collect()
            }
            AccessOp::Update(update) => {
                let (update, word) = (*update, part.word);
                context.check_load(&Pending { word, ..*access }, copy, None);
                let old = context.contents.data.word(access.line, copy, word);
                self.record_read(part, [old].into_iter());
                match update {
                    Update::CompareSwap { old: expected, .. } if expected != old => Vec::new(),
                    update => vec![(word, update.apply(old))],
                }
            }
        }
    }

    /// Performs a write in a copy of the line.
    #[cold]
    pub fn write(&mut self, context: &mut Context, access: &Pending, mut copy: Copy) -> Copy {
        for (word, value) in self.stored_words(context, access, copy) {
            (copy, _) = context.write_words(access.line, copy, word..word + 1, value);
        }
        copy
    }

    /// Returns the bytes of a write that is sent to the home, which performs it.
    #[cold]
    pub fn bytes_to_send(&mut self, context: &mut Context, access: &Pending) -> Copy {
        let mut copy = context.contents.data.filled(0);
        for (word, value) in self.stored_words(context, access, copy) {
            copy = (context.contents.data).write_word(access.line, copy, word, value, 0);
        }
        copy
    }

    /// Records that the page table does not permit an access. The requester is notified when all parts of its request
    /// have ended.
    pub fn record_refusal(&mut self, context: &Context, access: &Pending, refusal: PageFault) {
        let words_per_line = u32::from(context.contents.data.words());
        let word = access.line * words_per_line + u32::from(access.word);
        let part = self.parts.get(&access.value);
        if let Some(request) = part.and_then(|part| self.requests.get_mut(&part.request)) {
            let first = request.refused.take_if(|(first, _)| *first < word);
            request.refused = first.or(Some((word, refusal)));
        }
    }

    /// Ends the part of a request that an access was for, at `completion` (picoseconds). Returns the number of the
    /// next part to begin, if one waits.
    pub fn complete_part(
        &mut self,
        context: &mut Context,
        access: &Pending,
        completion: Time,
    ) -> Option<u64> {
        let part = self.parts.remove(&access.value)?;
        let request = self.requests.get_mut(&part.request)?;
        request.lines_left -= 1;
        request.time = request.time.max(completion);
        let requester = request.requester;
        if request.lines_left == 0 {
            if let Some(request) = self.requests.remove(&part.request) {
                self.completions.push(Completion {
                    requester,
                    time: request.time,
                    refused: request.refused,
                    words: match request.op {
                        AccessOp::Store { .. } => None,
                        _ => Some(request.words_read.into()),
                    },
                });
            }
        }
        if matches!(requester, Requester::Thread(_)) {
            return None;
        }
        context.tally.postpone_watchdog(context.local.now);
        if matches!(requester, Requester::Transfer(_)) {
            return None;
        }
        let next = self.waiting.pop_front();
        self.in_flight -= u64::from(next.is_none());
        next
    }
}
