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
use crate::message::Line;
use crate::simulation::{Event as KernelEvent, Pending, Purpose, Simulation};

/// Requester of an access to another space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Requester {
    /// A thread, which waits for the completion.
    Thread(u16),
    /// The application, with its tag for the request.
    Application(u32),
    /// A transfer of the bus, with the application's tag for it.
    Transfer(u32),
}

/// Operation on words.
#[derive(Clone, Debug)]
pub(crate) enum AccessOp {
    Load { words: u32, cached: bool },
    Store { words: Words, cached: bool },
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
    pub requester: Requester,
    pub first: u32,
    pub op: AccessOp,
}

/// Completion of a request, at a time that is not in the past.
#[derive(Debug)]
pub(crate) struct Completion {
    pub requester: Requester,
    pub time: Time,
    /// The words that were read; `None` for a write.
    pub words: Option<Words>,
    /// The first word whose access was refused, and the reason, if any.
    pub refused: Option<(u32, PageFault)>,
}

/// A request in progress, for one line or several.
struct Request {
    requester: Requester,
    op: AccessOp,
    /// The words read so far.
    words_read: Vec<u64>,
    /// The first word whose access was refused, and the reason, if any.
    refused: Option<(u32, PageFault)>,
    /// Number of incomplete lines, and the latest completion so far.
    lines_left: u32,
    time: Time,
}

/// The part of a request that concerns one line.
#[derive(Clone, Copy)]
struct Part {
    request: u64,
    line: Line,
    /// First word and number of words in the line, and the place of the first in the request.
    word: u16,
    word_count: u16,
    offset: u32,
}

/// All outstanding requests.
pub(crate) struct Port {
    /// Core through which bus transfers enter, in front of a cache of the host.
    bridge: u16,
    /// Core through which the device's accesses leave.
    engine: u16,
    /// Maximum number of the device's accesses in flight.
    max_in_flight: u64,
    in_flight: u64,
    waiting: VecDeque<u64>,
    requests: FxHashMap<u64, Request>,
    parts: FxHashMap<u64, Part>,
    next_number: u64,
    pub completions: Vec<Completion>,
}

impl Port {
    /// Creates an idle port. `engine` is the device's only core; bus transfers enter through the core before it. The
    /// device has at most `max_in_flight` accesses in flight.
    pub fn new(engine: u16, max_in_flight: u64) -> Port {
        Port {
            bridge: engine - 1,
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

    fn new_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
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
}

/// The space into which the port leads.
impl Simulation {
    /// Starts a request.
    pub(crate) fn begin_port_request(&mut self, port_request: PortRequest) {
        let words_per_line = u32::from(self.contents.data.words());
        let (first, words) = (port_request.first, port_request.op.words());
        let memory_words = u64::from(self.tables.platform.lines) * u64::from(words_per_line);
        let end = u64::from(first) + u64::from(words);
        if words == 0 || end > memory_words {
            let requester_name = self.requester_name(port_request.requester);
            let text = format!(
                "{requester_name} accesses {words} words from {first} on of the host's memory, which has {memory_words}"
            );
            return self.fail(FailureKind::Contract, 0, text);
        }
        let Some(port) = &mut self.neighbours.port else {
            return;
        };
        let (requester, lines) = (
            port_request.requester,
            first / words_per_line..(end as u32 - 1) / words_per_line + 1,
        );
        let number = port.new_number();
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
        port.requests.insert(number, request);
        let from_device = matches!(requester, Requester::Application(_));
        let mut parts_to_begin = Vec::new();
        for line in lines {
            let start_word = first.max(line * words_per_line);
            let part = Part {
                request: number,
                line,
                word: (start_word % words_per_line) as u16,
                word_count: (end.min((u64::from(line) + 1) * u64::from(words_per_line))
                    - u64::from(start_word)) as u16,
                offset: start_word - first,
            };
            let number = port.new_number();
            port.parts.insert(number, part);
            if from_device && port.in_flight == port.max_in_flight {
                port.waiting.push_back(number);
            } else {
                port.in_flight += u64::from(from_device);
                parts_to_begin.push(number);
            }
        }
        parts_to_begin
            .into_iter()
            .for_each(|number| self.begin_part(number));
    }

    /// Issues the access for a part of a request.
    fn begin_part(&mut self, number: u64) {
        let Some(port) = &self.neighbours.port else {
            return;
        };
        let Some((request, part)) =
            (port.parts.get(&number)).and_then(|p| Some((port.requests.get(&p.request)?, *p)))
        else {
            return;
        };
        if matches!(request.op, AccessOp::Update(_)) && self.remote.sends_stores {
            let name = &self.remote.controller().name;
            let text =
                format!("an atomic access needs the line, and {name} sends its stores to the home");
            return self.fail(FailureKind::Incompatible, part.line, text);
        }
        let core = match request.requester {
            Requester::Thread(core) => core,
            Requester::Application(_) => port.engine,
            Requester::Transfer(_) => port.bridge,
        };
        // Bus transfers use physical addresses.
        let virtual_address = !matches!(request.requester, Requester::Transfer(_));
        let is_whole_line = part.word_count == self.contents.data.words();
        let kind = match request.op {
            AccessOp::Load { cached: true, .. } => Access::Load,
            AccessOp::Load { .. } => Access::ReadOnce,
            AccessOp::Update(_) | AccessOp::Store { cached: true, .. } => Access::Store,
            AccessOp::Store { .. } if is_whole_line => Access::WriteLine,
            AccessOp::Store { .. } => Access::WritePartial,
        };
        let access = self.local.accesses.insert(Pending {
            line: part.line,
            next: u32::MAX,
            value: number,
            issued: self.local.now,
            since: 0,
            word: part.word,
            words: part.word_count,
            core,
            cache: self.cache_of(core),
            kind,
            purpose: Purpose::Port,
            sent: false,
            flight: 0,
            performed: false,
            found: None,
        });
        self.tally.in_flight += 1;
        let departure = self.groups.departure_time(core, self.local.now);
        let cache = self.cache_of(core);
        if (self.translations.as_ref()).is_some_and(|translations| translations.has(cache)) {
            if virtual_address {
                return self.translate(access, departure);
            }
            self.mark_physical(access);
        }
        let arrival = departure + self.groups.of_core(core).request;
        self.local.queue.push(arrival, KernelEvent::Access(access));
    }

    /// Names the requester, for messages.
    fn requester_name(&self, requester: Requester) -> String {
        match requester {
            Requester::Thread(core) => format!("thread {core}"),
            Requester::Application(_) => "the application".into(),
            Requester::Transfer(_) => "a transfer".into(),
        }
    }

    /// Completes a read of the port with these bytes. In a copy of its cache, every word must be the last one written.
    #[cold]
    pub(crate) fn read_by_port(&mut self, access: &Pending, copy: Copy, in_place: bool) {
        let Some((_, part)) = self
            .neighbours
            .port
            .as_ref()
            .and_then(|port| port.request_of(access))
        else {
            return;
        };
        let words = part.word..part.word + part.word_count;
        if in_place {
            for word in words.clone() {
                self.check_load(&Pending { word, ..*access }, copy);
            }
        }
        let (data, line) = (&self.contents.data, access.line);
        if let Some(port) = &mut self.neighbours.port {
            port.record_read(part, words.map(|word| data.word(line, copy, word)));
        }
    }

    /// Returns the words that a write of the port stores, given the line's contents when the write is performed.
    fn port_store_words(&mut self, access: &Pending, copy: Copy) -> Vec<(u16, u64)> {
        let Some((request, part)) = self
            .neighbours
            .port
            .as_ref()
            .and_then(|port| port.request_of(access))
        else {
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
                let update = *update;
                let word = part.word;
                self.check_load(&Pending { word, ..*access }, copy);
                let old = self.contents.data.word(access.line, copy, part.word);
                if let Some(port) = &mut self.neighbours.port {
                    port.record_read(part, [old].into_iter());
                }
                match update {
                    Update::CompareSwap { old: expected, .. } if expected != old => Vec::new(),
                    update => vec![(part.word, update.apply(old))],
                }
            }
        }
    }

    /// Performs a write of the port in a copy of the line.
    #[cold]
    pub(crate) fn write_by_port(&mut self, access: &Pending, mut copy: Copy) -> Copy {
        let line = access.line;
        for (word, value) in self.port_store_words(access, copy) {
            let version = self.contents.oracle.write(line, word..word + 1, value);
            copy = self
                .contents
                .data
                .write_word(line, copy, word, value, version);
        }
        copy
    }

    /// Returns the bytes of a write of the port that is sent to the home, which performs it.
    #[cold]
    pub(crate) fn port_bytes_to_send(&mut self, access: &Pending) -> Copy {
        let mut copy = self.contents.data.filled(0);
        for (word, value) in self.port_store_words(access, copy) {
            copy = self
                .contents
                .data
                .write_word(access.line, copy, word, value, 0);
        }
        copy
    }

    /// Completes an access of the port. The requester is notified at a time that is not in the past.
    #[cold]
    pub(crate) fn complete_port_access(
        &mut self,
        access: &Pending,
        hit: bool,
        performed: bool,
        completion: Time,
    ) {
        self.tally.in_flight -= 1;
        if !performed {
            let (name, access_name) = (self.agent_name(access.cache), access.kind.name());
            let text = format!(
                "{name} has no row for `{access_name}`, which an access from another space needs"
            );
            return self.fail(FailureKind::Incompatible, access.line, text);
        }
        self.count_performed(1, completion);
        self.tally.counters.hits += u64::from(hit);
        if access.is_store() {
            self.complete_store(access, &[access.issued]);
        }
        self.record_latency(access, completion);
        self.complete_part(access, completion);
    }

    /// Ends an access of the port that the page table does not permit. The requester is notified when all parts of its
    /// request have ended.
    #[cold]
    pub(crate) fn refuse_port_access(
        &mut self,
        access: &Pending,
        refusal: PageFault,
        completion: Time,
    ) {
        self.tally.in_flight -= 1;
        let word = access.line * u32::from(self.contents.data.words()) + u32::from(access.word);
        if let Some(port) = &mut self.neighbours.port {
            let part = port.parts.get(&access.value);
            if let Some(request) = part.and_then(|part| port.requests.get_mut(&part.request)) {
                let first = request.refused.take_if(|(first, _)| *first < word);
                request.refused = first.or(Some((word, refusal)));
            }
        }
        self.complete_part(access, completion);
    }

    /// Ends the part of a request that an access was for.
    fn complete_part(&mut self, access: &Pending, completion: Time) {
        let Some(port) = &mut self.neighbours.port else {
            return;
        };
        let Some(part) = port.parts.remove(&access.value) else {
            return;
        };
        let Some(request) = port.requests.get_mut(&part.request) else {
            return;
        };
        request.lines_left -= 1;
        request.time = request.time.max(completion);
        let from_device = matches!(request.requester, Requester::Application(_));
        let from_bus = matches!(request.requester, Requester::Transfer(_));
        if request.lines_left == 0 {
            if let Some(request) = port.requests.remove(&part.request) {
                port.completions.push(Completion {
                    requester: request.requester,
                    time: request.time,
                    refused: request.refused,
                    words: match request.op {
                        AccessOp::Store { .. } => None,
                        _ => Some(request.words_read.into()),
                    },
                });
            }
        }
        if from_device {
            let next = port.waiting.pop_front();
            port.in_flight -= u64::from(next.is_none());
            self.postpone_watchdog(self.local.now);
            next.into_iter().for_each(|next| self.begin_part(next));
        } else if from_bus {
            self.postpone_watchdog(self.local.now);
        }
    }
}
