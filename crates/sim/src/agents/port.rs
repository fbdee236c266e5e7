//! A port into a space: accesses that threads and an application of another space make to its lines, word by word.
//!
//! A thread's go to the cache before its core's own memory, an application's to that of the device. Each access takes the
//! way of all others through its cache; the port says what it writes, and takes what it reads, when it is performed.

use cohkit_application::interface::{Refused, Update, Words};
use cohkit_protocol::controller::Access;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

use crate::data::Copy;
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::Line;
use crate::simulation::{Event as KernelEvent, Pending, Purpose, Simulation};

/// Who asks for something in another space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    /// A thread, which waits for it.
    Thread(u16),
    /// The application, which gave it this tag.
    Application(u32),
    /// A transfer of the bus, to which the application gave this tag.
    Transfer(u32),
}

/// What is done with words.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Load { words: u32, cached: bool },
    Store { words: Words, cached: bool },
    Update(Update),
}

impl What {
    /// How many words it is about.
    fn words(&self) -> u32 {
        match self {
            What::Load { words, .. } => *words,
            What::Store { words, .. } => words.len() as u32,
            What::Update(_) => 1,
        }
    }
}

/// What is asked for in another space, from a word on.
#[derive(Debug)]
pub(crate) struct Ask {
    pub whose: Whose,
    pub first: u32,
    pub what: What,
}

/// What has been asked for is done, at a time not before now.
#[derive(Debug)]
pub(crate) struct Told {
    pub whose: Whose,
    pub at: Time,
    /// What was read; nothing of what was written.
    pub words: Option<Words>,
    /// The first word that was refused, if any, and why.
    pub refused: Option<(u32, Refused)>,
}

/// Something that has been asked for, of one line or several.
struct Request {
    whose: Whose,
    what: What,
    /// What has been read so far.
    read: Vec<u64>,
    /// The first word that was refused, and why.
    refused: Option<(u32, Refused)>,
    /// Lines that are not done, and when the last of all others was.
    left: u32,
    at: Time,
}

/// The part of a request that is about one line.
#[derive(Clone, Copy)]
struct Part {
    request: u64,
    line: Line,
    /// The words of the line, and where they are in the request.
    word: u16,
    count: u16,
    place: u32,
}

/// All that is under way.
pub(crate) struct Port {
    /// Where transfers of the bus enter: as a core does, before a cache of the host.
    bridge: u16,
    /// The core by which the device's accesses leave.
    engine: u16,
    /// How many accesses of the device may be in flight.
    most: u64,
    in_flight: u64,
    waiting: VecDeque<u64>,
    requests: FxHashMap<u64, Request>,
    parts: FxHashMap<u64, Part>,
    numbers: u64,
    pub told: Vec<Told>,
}

impl Port {
    /// Nothing is under way. The device has one core, behind that at which transfers enter, and so many accesses in flight
    /// at most.
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

    /// A request and the part of it that an access makes.
    fn of(&self, access: &Pending) -> Option<(&Request, Part)> {
        let part = *self.parts.get(&access.value)?;
        Some((self.requests.get(&part.request)?, part))
    }

    /// Words of a line have been read.
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
    /// Something is asked for now.
    pub(crate) fn asked(&mut self, ask: Ask) {
        let of_line = u32::from(self.data.words());
        let (first, words) = (ask.first, ask.what.words());
        let all = u64::from(self.platform.lines) * u64::from(of_line);
        let end = u64::from(first) + u64::from(words);
        if words == 0 || end > all {
            let who = self.asker(ask.whose);
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
                What::Store { .. } => Vec::new(),
                _ => vec![0; words as usize],
            },
            what: ask.what,
            refused: None,
            left: lines.len() as u32,
            at: 0,
        };
        port.requests.insert(number, request);
        let of_device = matches!(whose, Whose::Application(_));
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

    /// An access leaves for its cache.
    fn begin_part(&mut self, number: u64) {
        let Some(port) = &self.port else {
            return;
        };
        let Some((request, part)) =
            (port.parts.get(&number)).and_then(|p| Some((port.requests.get(&p.request)?, *p)))
        else {
            return;
        };
        if matches!(request.what, What::Update(_)) && self.remote.sends_stores {
            let name = &self.remote.controller().name;
            let text = format!("an atomic access needs the line, and {name} sends its stores away");
            return self.fail(FailureKind::Incompatible, part.line, text);
        }
        let core = match request.whose {
            Whose::Thread(core) => core,
            Whose::Application(_) => port.engine,
            Whose::Transfer(_) => port.bridge,
        };
        // Transfers of the bus have physical addresses.
        let virtual_address = !matches!(request.whose, Whose::Transfer(_));
        let whole = part.count == self.data.words();
        let kind = match request.what {
            What::Load { cached: true, .. } => Access::Load,
            What::Load { .. } => Access::ReadOnce,
            What::Update(_) | What::Store { cached: true, .. } => Access::Store,
            What::Store { .. } if whole => Access::WriteLine,
            What::Store { .. } => Access::WritePartial,
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

    /// Who asks, in messages.
    fn asker(&self, whose: Whose) -> String {
        match whose {
            Whose::Thread(core) => format!("thread {core}"),
            Whose::Application(_) => "the application".into(),
            Whose::Transfer(_) => "a transfer".into(),
        }
    }

    /// A read of the port is performed with these bytes; in a copy of its cache every word has to be the last.
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

    /// The words that a write of the port gives its line, as the line is when it is performed.
    fn words_of_port(&mut self, access: &Pending, copy: Copy) -> Vec<(u16, u64)> {
        let Some((request, part)) = self.port.as_ref().and_then(|port| port.of(access)) else {
            return Vec::new();
        };
        match &request.what {
            What::Load { .. } => Vec::new(),
            What::Store { words, .. } => {
                let its = words[part.place as usize..].iter().copied();
                (part.word..part.word + part.count).zip(its).collect()
            }
            What::Update(update) => {
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

    /// A write of the port is performed in a copy of the line.
    #[cold]
    pub(crate) fn write_by_port(&mut self, access: &Pending, mut copy: Copy) -> Copy {
        let line = access.line;
        for (word, value) in self.words_of_port(access, copy) {
            let version = self.oracle.write(line, word..word + 1, value);
            copy = self.data.write_word(line, copy, word, value, version);
        }
        copy
    }

    /// The bytes of a write of the port on their way to the home, which performs it.
    #[cold]
    pub(crate) fn bytes_of_port(&mut self, access: &Pending) -> Copy {
        let mut copy = self.data.filled(0);
        for (word, value) in self.words_of_port(access, copy) {
            copy = self.data.write_word(access.line, copy, word, value, 0);
        }
        copy
    }

    /// An access of the port has ended; whoever asked for it sees it at a time not before now.
    #[cold]
    pub(crate) fn ends_at_port(
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
        self.part_is_done(access, done);
    }

    /// An access of the port is not made, as the page table does not permit it. Whoever asked for it is told when the others
    /// of its request have ended.
    #[cold]
    pub(crate) fn refused_at_port(&mut self, access: &Pending, why: Refused, done: Time) {
        self.in_flight -= 1;
        let word = access.line * u32::from(self.data.words()) + u32::from(access.word);
        if let Some(port) = &mut self.port {
            let part = port.parts.get(&access.value);
            if let Some(request) = part.and_then(|of| port.requests.get_mut(&of.request)) {
                let first = request.refused.take_if(|(first, _)| *first < word);
                request.refused = first.or(Some((word, why)));
            }
        }
        self.part_is_done(access, done);
    }

    /// The part of a request that an access was for has ended.
    fn part_is_done(&mut self, access: &Pending, done: Time) {
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
        let of_device = matches!(request.whose, Whose::Application(_));
        let of_bus = matches!(request.whose, Whose::Transfer(_));
        if request.left == 0 {
            if let Some(request) = port.requests.remove(&part.request) {
                port.told.push(Told {
                    whose: request.whose,
                    at: request.at,
                    refused: request.refused,
                    words: match request.what {
                        What::Store { .. } => None,
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
