//! A port into a space: accesses of threads and of an application in another space to the lines of this one, word by
//! word.
//!
//! A thread's accesses use the cache of its core's own memory, an application's accesses that of the device. Each
//! access takes the normal path through its cache. When it is performed, the port supplies the words to write and
//! receives the words that were read.

use cohkit_application::interface::{Refused, Update, Words};
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
    pub whose: Requester,
    pub first: u32,
    pub what: AccessOp,
}

/// Completion of a request, at a time that is not in the past.
#[derive(Debug)]
pub(crate) struct Completion {
    pub whose: Requester,
    pub at: Time,
    /// The words that were read; `None` for a write.
    pub words: Option<Words>,
    /// The first word whose access was refused, and the reason, if any.
    pub refused: Option<(u32, Refused)>,
}

/// A request in progress, for one line or several.
struct Request {
    whose: Requester,
    what: AccessOp,
    /// The words read so far.
    read: Vec<u64>,
    /// The first word whose access was refused, and the reason, if any.
    refused: Option<(u32, Refused)>,
    /// Number of incomplete lines, and the latest completion so far.
    left: u32,
    at: Time,
}

/// The part of a request that concerns one line.
#[derive(Clone, Copy)]
struct Part {
    request: u64,
    line: Line,
    /// First word and number of words in the line, and the place of the first in the request.
    word: u16,
    count: u16,
    place: u32,
}

/// All outstanding requests.
pub(crate) struct Port {
    /// Core through which bus transfers enter, in front of a cache of the host.
    bridge: u16,
    /// Core through which the device's accesses leave.
    engine: u16,
    /// Maximum number of the device's accesses in flight.
    most: u64,
    in_flight: u64,
    waiting: VecDeque<u64>,
    requests: FxHashMap<u64, Request>,
    parts: FxHashMap<u64, Part>,
    numbers: u64,
    pub told: Vec<Completion>,
}

impl Port {
    /// Creates an idle port. `engine` is the device's only core; bus transfers enter through the core before it. The
    /// device has at most `most` accesses in flight.
    pub fn new(engine: u16, most: u64) -> Port {
        Port {
            bridge: engine - 1,
            engine,
            most,
            in_flight: 0,
            waiting: VecDeque::new(),
            requests: FxHashMap::default(),
            parts: FxHashMap::default(),
            numbers: 0,
            told: Vec::new(),
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Returns the request that an access belongs to, and its part of the request.
    fn of(&self, access: &Pending) -> Option<(&Request, Part)> {
        let part = *self.parts.get(&access.value)?;
        Some((self.requests.get(&part.request)?, part))
    }

    /// Records the words read by a part.
    fn read(&mut self, part: Part, words: impl Iterator<Item = u64>) {
        if let Some(request) = self.requests.get_mut(&part.request) {
            let place = &mut request.read[part.place as usize..];
            place
                .iter_mut()
                .zip(words)
                .for_each(|(to, word)| *to = word);
        }
    }
}

/// The space into which the port leads.
impl Simulation {
    /// Starts a request.
    pub(crate) fn asked(&mut self, ask: PortRequest) {
        let of_line = u32::from(self.data.words());
        let (first, words) = (ask.first, ask.what.words());
        let all = u64::from(self.platform.lines) * u64::from(of_line);
        let end = u64::from(first) + u64::from(words);
        if words == 0 || end > all {
            let who = self.requester_name(ask.whose);
            let text = format!(
                "{who} accesses {words} words from {first} on of the host's memory, which has {all}"
            );
            return self.fail(FailureKind::Contract, 0, text);
        }
        let Some(port) = &mut self.port else {
            return;
        };
        let (whose, lines) = (ask.whose, first / of_line..(end as u32 - 1) / of_line + 1);
        let number = port.number();
        let request = Request {
            whose,
            read: match ask.what {
                AccessOp::Store { .. } => Vec::new(),
                _ => vec![0; words as usize],
            },
            what: ask.what,
            refused: None,
            left: lines.len() as u32,
            at: 0,
        };
        port.requests.insert(number, request);
        let of_device = matches!(whose, Requester::Application(_));
        let mut begin = Vec::new();
        for line in lines {
            let from = first.max(line * of_line);
            let part = Part {
                request: number,
                line,
                word: (from % of_line) as u16,
                count: (end.min((u64::from(line) + 1) * u64::from(of_line)) - u64::from(from))
                    as u16,
                place: from - first,
            };
            let number = port.number();
            port.parts.insert(number, part);
            if of_device && port.in_flight == port.most {
                port.waiting.push_back(number);
            } else {
                port.in_flight += u64::from(of_device);
                begin.push(number);
            }
        }
        begin.into_iter().for_each(|number| self.begin_part(number));
    }

    /// Issues the access for a part of a request.
    fn begin_part(&mut self, number: u64) {
        let Some(port) = &self.port else {
            return;
        };
        let Some((request, part)) =
            (port.parts.get(&number)).and_then(|p| Some((port.requests.get(&p.request)?, *p)))
        else {
            return;
        };
        if matches!(request.what, AccessOp::Update(_)) && self.remote.sends_stores {
            let name = &self.remote.controller().name;
            let text =
                format!("an atomic access needs the line, and {name} sends its stores to the home");
            return self.fail(FailureKind::Incompatible, part.line, text);
        }
        let core = match request.whose {
            Requester::Thread(core) => core,
            Requester::Application(_) => port.engine,
            Requester::Transfer(_) => port.bridge,
        };
        // Bus transfers use physical addresses.
        let virtual_address = !matches!(request.whose, Requester::Transfer(_));
        let whole = part.count == self.data.words();
        let kind = match request.what {
            AccessOp::Load { cached: true, .. } => Access::Load,
            AccessOp::Load { .. } => Access::ReadOnce,
            AccessOp::Update(_) | AccessOp::Store { cached: true, .. } => Access::Store,
            AccessOp::Store { .. } if whole => Access::WriteLine,
            AccessOp::Store { .. } => Access::WritePartial,
        };
        let access = self.accesses.insert(Pending {
            line: part.line,
            next: u32::MAX,
            value: number,
            issued: self.now,
            since: 0,
            word: part.word,
            words: part.count,
            core,
            cache: self.cache_of(core),
            kind,
            purpose: Purpose::Port,
            sent: false,
            flight: 0,
            performed: false,
            found: None,
        });
        self.in_flight += 1;
        let leaves = self.groups.leaves(core, self.now);
        let cache = self.cache_of(core);
        if (self.translations.as_ref()).is_some_and(|translations| translations.has(cache)) {
            if virtual_address {
                return self.translate(access, leaves);
            }
            self.is_physical(access);
        }
        let reaches = leaves + self.groups.of_core(core).request;
        self.queue.push(reaches, KernelEvent::Access(access));
    }

    /// Names the requester, for messages.
    fn requester_name(&self, whose: Requester) -> String {
        match whose {
            Requester::Thread(core) => format!("thread {core}"),
            Requester::Application(_) => "the application".into(),
            Requester::Transfer(_) => "a transfer".into(),
        }
    }

    /// Completes a read of the port with these bytes. In a copy of its cache, every word must be the last one written.
    #[cold]
    pub(crate) fn read_by_port(&mut self, access: &Pending, copy: Copy, in_place: bool) {
        let Some((_, part)) = self.port.as_ref().and_then(|port| port.of(access)) else {
            return;
        };
        let words = part.word..part.word + part.count;
        if in_place {
            for word in words.clone() {
                self.check_load(&Pending { word, ..*access }, copy);
            }
        }
        let (data, line) = (&self.data, access.line);
        if let Some(port) = &mut self.port {
            port.read(part, words.map(|word| data.word(line, copy, word)));
        }
    }

    /// Returns the words that a write of the port stores, given the line's contents when the write is performed.
    fn words_of_port(&mut self, access: &Pending, copy: Copy) -> Vec<(u16, u64)> {
        let Some((request, part)) = self.port.as_ref().and_then(|port| port.of(access)) else {
            return Vec::new();
        };
        match &request.what {
            AccessOp::Load { .. } => Vec::new(),
            AccessOp::Store { words, .. } => {
                let its = words[part.place as usize..].iter().copied();
                (part.word..part.word + part.count).zip(its).collect()
            }
            AccessOp::Update(update) => {
                let update = *update;
                let word = part.word;
                self.check_load(&Pending { word, ..*access }, copy);
                let old = self.data.word(access.line, copy, part.word);
                if let Some(port) = &mut self.port {
                    port.read(part, [old].into_iter());
                }
                match update {
                    Update::CompareSwap { old: wanted, .. } if wanted != old => Vec::new(),
                    update => vec![(part.word, update.of(old))],
                }
            }
        }
    }

    /// Performs a write of the port in a copy of the line.
    #[cold]
    pub(crate) fn write_by_port(&mut self, access: &Pending, mut copy: Copy) -> Copy {
        let line = access.line;
        for (word, value) in self.words_of_port(access, copy) {
            let version = self.oracle.write(line, word..word + 1, value);
            copy = self.data.write_word(line, copy, word, value, version);
        }
        copy
    }

    /// Returns the bytes of a write of the port that is sent to the home, which performs it.
    #[cold]
    pub(crate) fn bytes_of_port(&mut self, access: &Pending) -> Copy {
        let mut copy = self.data.filled(0);
        for (word, value) in self.words_of_port(access, copy) {
            copy = self.data.write_word(access.line, copy, word, value, 0);
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
        done: Time,
    ) {
        self.in_flight -= 1;
        if !performed {
            let (name, what) = (self.agent_name(access.cache), access.kind.name());
            let text =
                format!("{name} has no row for `{what}`, which an access from another space needs");
            return self.fail(FailureKind::Incompatible, access.line, text);
        }
        self.performed(1, done);
        self.counters.hits += u64::from(hit);
        if access.is_store() {
            self.store_ended(access, &[access.issued]);
        }
        self.took(access, done);
        self.complete_part(access, done);
    }

    /// Ends an access of the port that the page table does not permit. The requester is notified when all parts of its
    /// request have ended.
    #[cold]
    pub(crate) fn refuse_port_access(&mut self, access: &Pending, why: Refused, done: Time) {
        self.in_flight -= 1;
        let word = access.line * u32::from(self.data.words()) + u32::from(access.word);
        if let Some(port) = &mut self.port {
            let part = port.parts.get(&access.value);
            if let Some(request) = part.and_then(|of| port.requests.get_mut(&of.request)) {
                let first = request.refused.take_if(|(first, _)| *first < word);
                request.refused = first.or(Some((word, why)));
            }
        }
        self.complete_part(access, done);
    }

    /// Ends the part of a request that an access was for.
    fn complete_part(&mut self, access: &Pending, done: Time) {
        let Some(port) = &mut self.port else {
            return;
        };
        let Some(part) = port.parts.remove(&access.value) else {
            return;
        };
        let Some(request) = port.requests.get_mut(&part.request) else {
            return;
        };
        request.left -= 1;
        request.at = request.at.max(done);
        let of_device = matches!(request.whose, Requester::Application(_));
        let of_bus = matches!(request.whose, Requester::Transfer(_));
        if request.left == 0 {
            if let Some(request) = port.requests.remove(&part.request) {
                port.told.push(Completion {
                    whose: request.whose,
                    at: request.at,
                    refused: request.refused,
                    words: match request.what {
                        AccessOp::Store { .. } => None,
                        _ => Some(request.read.into()),
                    },
                });
            }
        }
        if of_device {
            let next = port.waiting.pop_front();
            port.in_flight -= u64::from(next.is_none());
            self.expect(self.now);
            next.into_iter().for_each(|next| self.begin_part(next));
        } else if of_bus {
            self.expect(self.now);
        }
    }
}
