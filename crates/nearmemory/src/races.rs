//! What programs forget in far memory, which nothing keeps coherent: a load of a line that is stale, a write-back over what is
//! newer, a line that both sides write. Each is told with the two places in the programs.
//!
//! That a line is stale is wrong only if the program could know: if what it has received since tells of the write, by
//! registers, lines of a scratchpad, a FIFO, or the end of a program. So each core has a vector clock, and what passes between
//! cores carries it: words, lines, answers that a lock has held, notices and stamps, and copies to the host's own memory. Two
//! accesses of a line of far memory, one of which stores it, race unless the second core knows that the first access is over.
//!
//! The host's cores share their caches and know what any of them does: whoever is told something by one of them is told what all
//! know.

use crate::events::Who;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};

/// A place in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// Whose program.
    pub who: Who,
    /// The instruction.
    pub pc: u64,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// A load of a line in the host's cache that was written in far memory since, as the program could know.
    StaleLoad,
    /// A copy engine has read a line whose newest data was in the host's cache or on its way, as the program could know.
    StaleFetch,
    /// A write-back, or a line that a core stores out of its scratchpad, has overwritten what was newer than what it was
    /// read from.
    Overwritten,
    /// A line was written by both sides, of whom none had what the other wrote.
    BothWrite,
    /// The host has read a line that a copy engine was still to write, as the program could know.
    NotStored,
    /// A core has used or changed a line of its scratchpad that its copy engine was still to fetch, as the program could know.
    NotFetched,
    /// A core has changed a line of its scratchpad that its copy engine was still to store, as the program could know.
    Reused,
    /// Two programs have stored a line, neither of which could know that the other one was done.
    UnorderedStores,
    /// A program has read a line that another one stores, neither of which could know that the other one was done.
    UnorderedRead,
    /// A core has loaded words of a line of its scratchpad that the host may have written back by half, as a cache evicts it.
    HalfWritten,
}

/// Something wrong, at two places in programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Race {
    /// What it is.
    pub wrong: Wrong,
    /// The access that came second.
    pub second: Site,
    /// The write that it has to do with.
    pub first: Site,
    /// The line's address in far memory; of one of a scratchpad, that of the line it is copied from or to, or as the host has it if it
    /// is no copy.
    pub line: u64,
}

type Clock = Vec<u64>;

/// A write, and what its core knew by then.
#[derive(Clone, Debug)]
struct Write {
    site: Site,
    clock: Clock,
}

/// A read of a line in far memory since it was stored last.
#[derive(Clone, Copy, Debug)]
struct Read {
    site: Site,
    /// The core's own time by which it is over; nothing while a copy engine reads.
    over: Option<u64>,
}

/// A word of a line of a scratchpad, as the host has stored it.
#[derive(Clone, Debug)]
struct Word {
    write: Write,
    /// The number of stores of the host to scratchpads before.
    number: u64,
}

/// Words of a line of a scratchpad that are written back.
#[derive(Clone, Debug)]
struct FlyingWords {
    words: [Option<Word>; 16],
    /// The host's knowledge before the first of these stores: a cache may evict the line right behind it, so a write-back proves no
    /// more.
    tells: Clock,
}

/// The words of a line of a scratchpad that the host has written back.
#[derive(Clone, Debug, Default)]
struct Words {
    words: [Option<Word>; 16],
    /// The store of a word that was loaded before it was known that later ones are there, too.
    early: Option<u64>,
}

/// A line in far memory.
#[derive(Clone, Debug)]
struct Mark {
    version: u64,
    write: Write,
    /// What cores knew that had waited until the line was in far memory: whoever knows that may read it there.
    settled: Vec<Clock>,
}

impl Mark {
    /// Whether a program that knows this knows of the write, but not that it is in far memory.
    fn unsettled(&self, known: &Clock) -> bool {
        before(&self.write.clock, known) && !self.settled.iter().any(|clock| before(clock, known))
    }

    /// A core has waited until the line was there.
    fn settle(&mut self, clock: &Clock) {
        if !self.settled.iter().any(|settled| before(settled, clock)) {
            self.settled.push(clock.clone());
        }
    }
}

/// What a copy engine was told to copy, and has yet to ask for.
#[derive(Clone, Debug)]
struct Command {
    far: u64,
    scratchpad: u64,
    lines: u64,
    write: Write,
    stores: bool,
    /// How many there were before.
    number: u64,
}

/// A line of a scratchpad that is copied, until its core has seen by the stamp that it is.
#[derive(Clone, Debug)]
struct Part {
    command: u64,
    site: Site,
    stores: bool,
    far: u64,
    /// Of a line that is stored, which one it is in far memory, once that has it.
    version: u64,
    done: bool,
}

/// What a line of a scratchpad was fetched from, or stored to since.
#[derive(Clone, Debug)]
struct Held {
    far: u64,
    version: u64,
    /// The bytes that its core has stored since, a bit for each.
    mask: u128,
    /// Whether the core has loaded one of the others, and whether it knew then of what is newer in far memory.
    loaded: bool,
    stale: bool,
}

impl Held {
    fn of(far: u64, version: u64) -> Held {
        Held {
            far,
            version,
            mask: 0,
            loaded: false,
            stale: false,
        }
    }
}

/// A line in the host's last cache.
#[derive(Clone, Debug, Default)]
struct Copy {
    /// The version that it is of; nothing before it is there.
    base: Option<u64>,
    /// The first store since it was clean, and the last one.
    dirtied: Option<Write>,
    stored: Clock,
    /// The bytes that were stored since it was clean, a bit for each.
    mask: u128,
    /// Of a line of a scratchpad, what whoever reads it learns.
    tells: Clock,
    /// Words of a line of a scratchpad that were stored since it was clean.
    words: [Option<Word>; 16],
}

/// What passes what a core knows on to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Way {
    /// A register that host and core share.
    Register(usize, u64),
    /// The registers by which programs are started.
    Control(usize),
    /// The register that tells how a program was loaded, and nothing of what it has done since.
    Load(usize),
    /// A line of a scratchpad.
    Line(usize, usize),
    /// The requests of the host for a line of a scratchpad, of which notices and stamps tell.
    Request(usize, usize),
    /// The words that have arrived by a FIFO.
    Fifo(usize, usize),
    /// The words that were taken out of a FIFO.
    Room(usize, usize),
    /// A line of the host's own memory that is copied.
    Main(u64),
}

/// A FIFO from one core to another.
#[derive(Clone, Debug, Default)]
struct Fifo {
    /// The sender's knowledge for each word in flight.
    flying: VecDeque<Clock>,
    /// Words that were sent.
    sent: u64,
    /// The receiver's knowledge when it took each word whose room is still free.
    taken: VecDeque<Clock>,
}

/// Watches a machine. It changes nothing of it.
#[derive(Clone, Debug)]
pub(crate) struct Races {
    hosts: usize,
    clocks: Vec<Clock>,
    ways: FxHashMap<Way, Clock>,
    marks: FxHashMap<u64, Mark>,
    /// The reads of lines of far memory by core, since they were stored last.
    reads: FxHashMap<u64, Vec<(usize, Read)>>,
    fifos: FxHashMap<(usize, usize), Fifo>,
    /// Words of lines of scratchpads, by engine and line, and those on their way, by the number of the write-back.
    words: FxHashMap<(usize, u64), Words>,
    flying_words: FxHashMap<u64, FlyingWords>,
    /// True once a copy engine has copied from or to the host's own memory.
    copies_main: bool,
    /// Stores of the host to scratchpads so far.
    words_stored: u64,
    /// Knowledge that cores of the host gain by their next fence, from acknowledgements.
    acknowledged: Vec<Clock>,
    /// By line; a store to one that is on its way is kept here, too.
    copies: FxHashMap<u64, Copy>,
    /// Write-backs on their way, by number: the line, the version they are of, the first store, and whether all of
    /// the line was stored.
    flying: FxHashMap<u64, (u64, u64, Write, bool)>,
    /// What requests carry there, and answers back.
    carried: FxHashMap<u64, Clock>,
    /// Lines of scratchpads that have been asked for, by the numbers of requests.
    asked: FxHashMap<u64, Way>,
    commands: Vec<VecDeque<Command>>,
    commanded: u64,
    /// What copy engines have asked far memory, by engine and number of the access: the line of the scratchpad, and the command.
    accesses: FxHashMap<(usize, u64), (u64, u64)>,
    /// By engine and line of the scratchpad.
    parts: FxHashMap<(usize, u64), Vec<Part>>,
    /// The same, of lines that were fetched.
    held: FxHashMap<(usize, u64), Held>,
    /// Lines that each core of the host has cleaned or flushed since its last fence.
    cleaned: Vec<Vec<u64>>,
    told: BTreeSet<(Wrong, Site, Site)>,
    pub(crate) new: Vec<Race>,
}

fn join(clock: &mut Clock, other: &Clock) {
    clock.resize(clock.len().max(other.len()), 0);
    for (own, other) in clock.iter_mut().zip(other) {
        *own = (*own).max(*other);
    }
}

/// So many bytes of a line, a bit for each.
fn bits(at: u64, bytes: u32) -> u128 {
    ((1 << bytes) - 1) << (at & 127)
}

/// Whether one is known where the other one is the clock.
fn before(clock: &Clock, other: &Clock) -> bool {
    let others = other.iter().copied().chain(std::iter::repeat(0));
    clock.iter().zip(others).all(|(own, other)| *own <= other)
}

impl Races {
    pub(crate) fn new(hosts: usize, mccs: usize) -> Races {
        let count = hosts + mccs;
        let clock = |own| (0..count).map(|at| u64::from(at == own)).collect();
        Races {
            hosts,
            clocks: (0..count).map(clock).collect(),
            ways: FxHashMap::default(),
            marks: FxHashMap::default(),
            reads: FxHashMap::default(),
            fifos: FxHashMap::default(),
            words: FxHashMap::default(),
            flying_words: FxHashMap::default(),
            copies_main: false,
            words_stored: 0,
            acknowledged: vec![Clock::new(); hosts],
            copies: FxHashMap::default(),
            flying: FxHashMap::default(),
            carried: FxHashMap::default(),
            asked: FxHashMap::default(),
            commands: vec![VecDeque::new(); mccs],
            commanded: 0,
            accesses: FxHashMap::default(),
            parts: FxHashMap::default(),
            held: FxHashMap::default(),
            cleaned: vec![Vec::new(); hosts],
            told: BTreeSet::new(),
            new: Vec::new(),
        }
    }

    fn number(&self, who: Who) -> usize {
        match who {
            Who::Host(core) => core,
            Who::Mcc(mcc) => self.hosts + mcc,
        }
    }

    /// Returns the knowledge that a core passes on, which has nothing of later accesses; all cores of the host share theirs.
    fn leaves(&mut self, who: Who) -> Clock {
        let clock = self.known(who);
        let number = self.number(who);
        let own = match who {
            Who::Host(_) => 0..self.hosts,
            Who::Mcc(_) => number..number + 1,
        };
        own.for_each(|number| self.clocks[number][number] += 1);
        clock
    }

    /// Returns the knowledge of a core; all cores of the host share theirs.
    fn known(&self, who: Who) -> Clock {
        match who {
            Who::Mcc(_) => self.clocks[self.number(who)].clone(),
            Who::Host(_) => {
                let mut known = self.clocks[0].clone();
                (1..self.hosts).for_each(|core| join(&mut known, &self.clocks[core]));
                known
            }
        }
    }

    /// True if two cores are the same, or both of the host.
    fn are_one(&self, a: Who, b: Who) -> bool {
        a == b || matches!((a, b), (Who::Host(_), Who::Host(_)))
    }

    fn tell(&mut self, wrong: Wrong, second: Site, first: Site, line: u64) {
        if self.told.insert((wrong, second, first)) {
            self.new.push(Race {
                wrong,
                second,
                first,
                line,
            });
        }
    }

    /// A core beside far memory gives away what it knows.
    pub(crate) fn gives(&mut self, who: Who, way: Way) {
        let clock = self.leaves(who);
        join(self.ways.entry(way).or_default(), &clock);
    }

    /// It learns what is known there.
    pub(crate) fn learns(&mut self, who: Who, way: Way) {
        let number = self.number(who);
        if let Some(clock) = self.ways.get(&way) {
            join(&mut self.clocks[number], clock);
        }
    }

    /// A core sends a word by a FIFO that holds so many.
    pub(crate) fn sends_word(&mut self, from: usize, to: usize, capacity: u64) {
        let fifo = self.fifos.entry((from, to)).or_default();
        fifo.sent += 1;
        // Its room is that of a word that was taken.
        let room = (fifo.sent > capacity).then(|| fifo.taken.pop_front());
        if let Some(room) = room.flatten() {
            join(&mut self.clocks[self.hosts + from], &room);
        }
        let clock = self.leaves(Who::Mcc(from));
        let fifo = self.fifos.entry((from, to)).or_default();
        fifo.flying.push_back(clock);
    }

    /// A word is at the end of a FIFO.
    pub(crate) fn passes_word(&mut self, from: usize, to: usize) {
        let fifo = self.fifos.entry((from, to)).or_default();
        if let Some(clock) = fifo.flying.pop_front() {
            join(self.ways.entry(Way::Fifo(from, to)).or_default(), &clock);
        }
    }

    /// A core has taken a word out of a FIFO.
    pub(crate) fn takes_word(&mut self, from: usize, to: usize) {
        self.gives(Who::Mcc(to), Way::Room(from, to));
        let clock = self.ways.get(&Way::Room(from, to)).cloned();
        let fifo = self.fifos.entry((from, to)).or_default();
        fifo.taken.extend(clock);
    }

    /// The words in the FIFOs to a core are discarded, as its program has ended; words in flight still arrive.
    pub(crate) fn clears_fifos(&mut self, to: usize) {
        for ((from, _), fifo) in self.fifos.iter_mut().filter(|((_, own), _)| *own == to) {
            fifo.sent = fifo.flying.len() as u64;
            fifo.taken.clear();
            self.ways.remove(&Way::Fifo(*from, to));
        }
    }

    /// A word of a host leaves with what it knows; when it is there, [`Races::arrives`] is called.
    pub(crate) fn sends(&mut self, who: Who, request: u64) {
        let clock = self.leaves(who);
        self.carried.insert(request, clock);
    }

    /// What a request carries is there.
    pub(crate) fn arrives(&mut self, request: u64, way: Way) {
        let clock = self.carried.remove(&request);
        if let Way::Line(mcc, line) = way {
            let place = (mcc, line as u64);
            self.held.remove(&place);
            let words = self.words.entry(place).or_default();
            words.early = None;
            if let Some(flying) = self.flying_words.remove(&request) {
                for (word, stored) in words.words.iter_mut().zip(flying.words) {
                    *word = stored.or(word.take());
                }
                let way = Way::Request(mcc, line);
                join(self.ways.entry(way).or_default(), &flying.tells);
            }
        }
        if let Some(clock) = clock {
            join(self.ways.entry(way).or_default(), &clock);
        }
    }

    /// The answer to a request carries what is known there.
    pub(crate) fn answers(&mut self, request: u64, way: Way) {
        let clock = self.ways.get(&way).cloned().unwrap_or_default();
        self.carried.insert(request, clock);
    }

    /// A line of a scratchpad is asked for.
    pub(crate) fn asks(&mut self, request: u64, way: Way) {
        let clock = self.carried.remove(&request);
        if let (Way::Line(mcc, line), Some(clock)) = (way, clock) {
            join(
                self.ways.entry(Way::Request(mcc, line)).or_default(),
                &clock,
            );
        }
        self.asked.insert(request, way);
    }

    /// Answers it; a core may have released it from a lock.
    pub(crate) fn gets(&mut self, request: u64, releaser: Option<Who>) {
        if let Some(way) = self.asked.remove(&request) {
            self.answers(request, way);
            self.releases(request, releaser);
        }
    }

    /// An answer tells what the core knows that has released it.
    pub(crate) fn releases(&mut self, request: u64, releaser: Option<Who>) {
        if let Some(who) = releaser {
            let clock = self.leaves(who);
            join(self.carried.entry(request).or_default(), &clock);
        }
    }

    /// Cores of the host, a bit for each, get the acknowledgement of a write-back, which their next fence waits for.
    pub(crate) fn acknowledges(&mut self, cores: u64, request: u64) {
        let Some(clock) = self.carried.remove(&request) else {
            return;
        };
        for (core, acknowledged) in self.acknowledged.iter_mut().enumerate() {
            if cores >> core & 1 != 0 {
                join(acknowledged, &clock);
            }
        }
    }

    /// A core of a host gets an answer.
    pub(crate) fn answered(&mut self, who: Who, request: u64) {
        let number = self.number(who);
        if let Some(clock) = self.carried.remove(&request) {
            join(&mut self.clocks[number], &clock);
        }
    }

    /// A line of far memory is read for the host's cache.
    pub(crate) fn fetched(&mut self, line: u64) {
        let base = self.marks.get(&line).map_or(0, |mark| mark.version);
        self.copies.entry(line).or_default().base = Some(base);
    }

    /// A line of a scratchpad is in the host's cache.
    pub(crate) fn filled(&mut self, line: u64, request: u64) {
        let clock = self.carried.remove(&request).unwrap_or_default();
        self.copies.entry(line).or_default().tells = clock;
    }

    /// A host's core loads from a line, which it has or gets.
    pub(crate) fn loads(&mut self, site: Site, line: u64, is_far: bool) {
        let number = self.number(site.who);
        let copy = self.copies.get(&line);
        if !is_far {
            if let Some(copy) = copy {
                join(&mut self.clocks[number], &copy.tells);
            }
            return;
        }
        let known = &self.clocks[number];
        let mark = self.marks.get(&line);
        let stale = mark.zip(copy).filter(|(mark, copy)| {
            copy.base.is_some_and(|base| mark.version > base) && before(&mark.write.clock, known)
        });
        let mut commands = self.commands.iter().flatten();
        let late = commands.find(|command| {
            let within = line >= command.far && line < command.far + command.lines * 128;
            command.stores && within && before(&command.write.clock, known)
        });
        // By chance it may be there already.
        let by_chance =
            mark.filter(|mark| matches!(mark.write.site.who, Who::Mcc(_)) && mark.unsettled(known));
        let late = late.map(|command| command.write.site);
        let late = late.or(by_chance.map(|mark| mark.write.site));
        let unordered = mark.filter(|mark| {
            matches!(mark.write.site.who, Who::Mcc(_))
                && !before(&mark.write.clock, &self.known(site.who))
        });
        let found = match stale {
            Some((mark, _)) => Some((Wrong::StaleLoad, mark.write.site)),
            None => late.map(|first| (Wrong::NotStored, first)),
        };
        let unordered = unordered.map(|mark| (Wrong::UnorderedRead, mark.write.site));
        if let Some((wrong, first)) = found.or(unordered) {
            self.tell(wrong, site, first, line);
        }
        self.read(site, line, true);
    }

    /// Keeps a read of a line of far memory, which is over unless a copy engine has begun it.
    fn read(&mut self, site: Site, line: u64, over: bool) {
        let number = self.number(site.who);
        let over = over.then(|| self.clocks[number][number]);
        let reads = self.reads.entry(line).or_default();
        let read = Read { site, over };
        match reads.iter_mut().find(|(core, _)| *core == number) {
            Some((_, last)) => *last = read,
            None => reads.push((number, read)),
        }
    }

    /// A read of a line of which a store cannot know that it is over, by others.
    fn read_before(&self, who: Who, line: u64, known: &Clock) -> Option<Site> {
        let reads = self.reads.get(&line)?;
        let unordered = reads.iter().find(|(core, read)| {
            let over = read.over.zip(known.get(*core));
            !self.are_one(who, read.site.who) && over.is_none_or(|(over, known)| over > *known)
        });
        unordered.map(|(_, read)| read.site)
    }

    /// A host's core stores so many bytes in a line, which it has or gets.
    pub(crate) fn stores(&mut self, site: Site, at: u64, bytes: u32, is_far: bool) {
        let (line, number) = (at & !127, self.number(site.who));
        let clock = self.clocks[number].clone();
        if !is_far {
            self.stores_word(site, at);
        }
        let copy = self.copies.entry(line).or_default();
        copy.stored.clone_from(&clock);
        copy.mask |= bits(at, bytes);
        let base = copy.base;
        let known = clock.clone();
        if copy.dirtied.is_none() {
            copy.dirtied = Some(Write { site, clock });
        }
        if !is_far {
            return;
        }
        // One that the program knows of it may mean to overwrite as a whole.
        let mark = self.marks.get(&line);
        let newer = mark.filter(|mark| {
            base.is_some_and(|base| mark.version > base) && !before(&mark.write.clock, &known)
        });
        let known = self.known(site.who);
        let unordered = mark.filter(|mark| {
            matches!(mark.write.site.who, Who::Mcc(_)) && !before(&mark.write.clock, &known)
        });
        let unordered = unordered.map(|mark| (Wrong::UnorderedStores, mark.write.site));
        let read = self.read_before(site.who, line, &known);
        let read = read.map(|read| (Wrong::UnorderedRead, read));
        let newer = newer.map(|mark| (Wrong::BothWrite, mark.write.site));
        if let Some((wrong, first)) = newer.or(unordered).or(read) {
            self.tell(wrong, site, first, line);
        }
    }

    /// A core of the host stores in a word of a line of a scratchpad, which may be evicted right behind.
    fn stores_word(&mut self, site: Site, at: u64) {
        let clock = self.leaves(site.who);
        let number = self.words_stored;
        self.words_stored += 1;
        let copy = self.copies.entry(at & !127).or_default();
        let write = Write { site, clock };
        copy.words[(at % 128 / 8) as usize] = Some(Word { write, number });
    }

    /// A core loads a word of a line of its scratchpad, and learns what the host knew that has stored it. What was stored before in the
    /// same line is there then, and what was stored behind may be, or not. The host has the line at `line`.
    pub(crate) fn loads_word(&mut self, site: Site, scratchpad: u64, at: u64, line: u64) {
        let Who::Mcc(mcc) = site.who else { return };
        let known = &mut self.clocks[self.hosts + mcc];
        let Some(words) = self.words.get_mut(&(mcc, scratchpad)) else {
            return;
        };
        let Some(word) = &words.words[(at % 128 / 8) as usize] else {
            return;
        };
        if before(&word.write.clock, known) {
            return;
        }
        let later = words.early.is_some_and(|early| early < word.number);
        let first = word.write.site;
        join(known, &word.write.clock);
        let number = word.number;
        let mut all = words.words.iter().flatten();
        words.early = all.any(|other| other.number > number).then_some(number);
        if later {
            self.tell(Wrong::HalfWritten, site, first, line);
        }
    }

    /// The host drops a line.
    pub(crate) fn drops(&mut self, line: u64) {
        self.copies.remove(&line);
    }

    /// The host writes a line of far memory or of a scratchpad back, which it may keep.
    pub(crate) fn writes_back(&mut self, line: u64, request: u64, keeps: bool, is_far: bool) {
        let Some(copy) = self.copies.get_mut(&line) else {
            return;
        };
        let dirtied = copy.dirtied.take();
        let whole = std::mem::take(&mut copy.mask) == u128::MAX;
        let (base, stored) = (copy.base.unwrap_or(0), copy.stored.clone());
        let words = std::mem::take(&mut copy.words);
        if !keeps {
            self.copies.remove(&line);
        }
        if is_far {
            if let Some(write) = dirtied {
                self.flying.insert(request, (line, base, write, whole));
            }
            return;
        }
        // What the line of a scratchpad tells is what its last store knew.
        if let Some(write) = dirtied {
            if let Who::Host(core) = write.site.who {
                self.clocks[core][core] = self.clocks[core][core].max(stored[core] + 1);
            }
            let tells = write.clock;
            self.flying_words
                .insert(request, FlyingWords { words, tells });
        }
        self.carried.insert(request, stored);
    }

    /// A write-back is in far memory.
    pub(crate) fn written_back(&mut self, request: u64) {
        let Some((line, base, write, whole)) = self.flying.remove(&request) else {
            return;
        };
        let newer = (self.marks.get(&line)).filter(|mark| mark.version > base && !whole);
        if let Some(first) = newer.map(|mark| mark.write.site) {
            self.tell(Wrong::Overwritten, write.site, first, line);
        }
        self.marked(line, write);
    }

    /// A line is in far memory, as this write has it.
    fn marked(&mut self, line: u64, write: Write) {
        let version = self.marks.get(&line).map_or(0, |mark| mark.version) + 1;
        let by_host = matches!(write.site.who, Who::Host(_));
        let settled = Vec::new();
        let mark = Mark {
            version,
            write,
            settled,
        };
        self.marks.insert(line, mark);
        self.reads.remove(&line);
        // What the host has kept is what it has written.
        if let Some(copy) = self.copies.get_mut(&line).filter(|_| by_host) {
            copy.base = Some(version);
        }
    }

    /// A core orders its copy engine to copy lines.
    pub(crate) fn commands(
        &mut self,
        site: Site,
        (scratchpad, far, lines): (u64, u64, u64),
        stores: bool,
    ) {
        let Who::Mcc(mcc) = site.who else { return };
        let number = self.commanded;
        self.commanded += 1;
        for i in 0..lines {
            self.uses(site, scratchpad + i, !stores, true);
            let part = Part {
                command: number,
                site,
                stores,
                far: far + i * 128,
                version: 0,
                done: false,
            };
            let parts = self.parts.entry((mcc, scratchpad + i)).or_default();
            parts.push(part);
        }
        let clock = self.leaves(site.who);
        self.commands[mcc].push_back(Command {
            far,
            scratchpad,
            lines,
            write: Write { site, clock },
            stores,
            number,
        });
    }

    /// A core stores so many bytes in a line of its scratchpad.
    pub(crate) fn changes(&mut self, site: Site, scratchpad: u64, at: u64, bytes: u32) {
        self.uses(site, scratchpad, true, false);
        let Who::Mcc(mcc) = site.who else { return };
        if let Some(held) = self.held.get_mut(&(mcc, scratchpad)) {
            held.mask |= bits(at, bytes);
        }
    }

    /// A core loads so many bytes from a line of its scratchpad.
    pub(crate) fn reads(&mut self, site: Site, scratchpad: u64, at: u64, bytes: u32) {
        self.uses(site, scratchpad, false, false);
        let Who::Mcc(mcc) = site.who else { return };
        let Some(held) = self.held.get_mut(&(mcc, scratchpad)) else {
            return;
        };
        if bits(at, bytes) & !held.mask == 0 {
            return;
        }
        held.loaded = true;
        let known = &self.clocks[self.hosts + mcc];
        let mark = self.marks.get(&held.far);
        held.stale |= mark
            .is_some_and(|mark| mark.version > held.version && before(&mark.write.clock, known));
    }

    /// A core uses or changes a line of its scratchpad, by itself or by its copy engine. Whoever fetches a line twice looks at
    /// neither.
    pub(crate) fn uses(&mut self, site: Site, scratchpad: u64, changes: bool, copies: bool) {
        let Who::Mcc(mcc) = site.who else { return };
        let Some(parts) = self.parts.get(&(mcc, scratchpad)) else {
            return;
        };
        let wrong = |part: &&Part| match part.stores {
            true => changes,
            false => !(changes && copies),
        };
        let found = parts.iter().find(wrong).map(|part| {
            let wrong = if part.stores {
                Wrong::Reused
            } else {
                Wrong::NotFetched
            };
            (wrong, part.site, part.far)
        });
        if let Some((wrong, first, far)) = found {
            self.tell(wrong, site, first, far);
        }
    }

    /// A core of the host has a line cleaned or flushed, which its next fence waits for.
    pub(crate) fn cleans(&mut self, core: usize, line: u64) {
        self.cleaned[core].push(line);
    }

    /// It has waited for all of that.
    pub(crate) fn fenced(&mut self, core: usize) {
        join(&mut self.clocks[core], &self.acknowledged[core]);
        for line in std::mem::take(&mut self.cleaned[core]) {
            let mark = self.marks.get_mut(&line);
            if let Some(mark) = mark.filter(|mark| matches!(mark.write.site.who, Who::Host(_))) {
                mark.settle(&self.clocks[core]);
            }
        }
    }

    /// A core of the host loads from its own memory, where a copy engine may have stored.
    #[inline(always)]
    pub(crate) fn loads_main(&mut self, core: usize, at: u64) {
        if self.copies_main {
            self.learns(Who::Host(core), Way::Main(at & !127));
        }
    }

    /// A copy engine is done with an access.
    pub(crate) fn copied(&mut self, mcc: usize, access: u64) {
        let Some((scratchpad, command)) = self.accesses.remove(&(mcc, access)) else {
            return;
        };
        if let Some(part) = self.part(mcc, scratchpad, command) {
            part.done = true;
        }
    }

    fn part(&mut self, mcc: usize, scratchpad: u64, command: u64) -> Option<&mut Part> {
        let mut parts = self.parts.get_mut(&(mcc, scratchpad))?.iter_mut();
        parts.find(|part| part.command == command)
    }

    /// A core looks when a line of its scratchpad was last written by its copy engine, or read, which is then stored.
    pub(crate) fn looks(&mut self, mcc: usize, scratchpad: u64, stores: bool) {
        self.learns(Who::Mcc(mcc), Way::Request(mcc, scratchpad as usize));
        let Some(parts) = self.parts.get_mut(&(mcc, scratchpad)) else {
            return;
        };
        let number = self.hosts + mcc;
        let clock = &mut self.clocks[number];
        let (marks, reads, ways) = (&mut self.marks, &mut self.reads, &self.ways);
        parts.retain(|part| {
            let seen = part.done && part.stores == stores;
            if seen && !stores {
                let reads = reads.get_mut(&part.far).into_iter().flatten();
                for (_, read) in reads.filter(|(core, read)| *core == number && read.over.is_none())
                {
                    read.over = Some(clock[number]);
                }
                // A line of the host's own memory tells what the host knew.
                if let Some(told) = ways.get(&Way::Main(part.far)) {
                    join(clock, told);
                }
            }
            let mark = marks.get_mut(&part.far).filter(|_| seen && stores);
            if let Some(mark) = mark.filter(|mark| mark.version == part.version) {
                mark.settle(clock);
            }
            !seen
        });
        if parts.is_empty() {
            self.parts.remove(&(mcc, scratchpad));
        }
    }

    /// A copy engine reads or writes its next line.
    pub(crate) fn copies(&mut self, mcc: usize, line: u64, access: u64, is_far: bool) {
        let Some(command) = self.commands[mcc].front_mut() else {
            return;
        };
        let (write, stores) = (command.write.clone(), command.stores);
        let (scratchpad, number) = (command.scratchpad, command.number);
        command.far += 128;
        command.scratchpad += 1;
        command.lines -= 1;
        if command.lines == 0 {
            self.commands[mcc].pop_front();
        }
        self.accesses.insert((mcc, access), (scratchpad, number));
        if !stores {
            self.words.remove(&(mcc, scratchpad));
            self.held.remove(&(mcc, scratchpad));
        }
        if !is_far {
            // Nothing of the host's own memory is ever stale, and it tells by it what it knows by now, as do cores.
            let told = match stores {
                true => write.clock,
                false => self.leaves(Who::Host(0)),
            };
            join(self.ways.entry(Way::Main(line)).or_default(), &told);
            self.copies_main = true;
            return;
        }
        let here = self.copies.get(&line).and_then(|copy| copy.dirtied.clone());
        if stores {
            let both = here.map(|first| (Wrong::BothWrite, first.site));
            // What a core has written anew as a whole, without a look at what is old, may be meant to be overwritten.
            let held = self.held.get_mut(&(mcc, scratchpad));
            let mut held = held.filter(|held| held.far == line);
            let newer = held.as_ref().and_then(|held| {
                let mark = self.marks.get(&line)?;
                let known = before(&mark.write.clock, &write.clock);
                let old = held.mask != u128::MAX || held.stale || held.loaded && !known;
                (mark.version > held.version && old).then_some(mark)
            });
            let newer = newer.map(|mark| mark.write.site);
            let version = self.marks.get(&line).map_or(0, |mark| mark.version) + 1;
            if let Some(held) = &mut held {
                **held = Held::of(line, version);
            }
            let over = newer.map(|first| (Wrong::Overwritten, first));
            let who = write.site.who;
            let unordered = self
                .marks
                .get(&line)
                .filter(|mark| !mark.settled.iter().any(|clock| before(clock, &write.clock)));
            let unordered = unordered.map(|mark| (Wrong::UnorderedStores, mark.write.site));
            let read = self.read_before(who, line, &write.clock);
            let read = read.map(|read| (Wrong::UnorderedRead, read));
            let unordered = unordered.or(read).filter(|_| both.is_none());
            for (wrong, first) in both.into_iter().chain(over.or(unordered)) {
                self.tell(wrong, write.site, first, line);
            }
            self.marked(line, write);
            if let Some(part) = self.part(mcc, scratchpad, number) {
                part.version = version;
            }
            return;
        }
        let version = self.marks.get(&line).map_or(0, |mark| mark.version);
        let held = Held::of(line, version);
        self.held.insert((mcc, scratchpad), held);
        let flying = self.flying.values().find(|(own, ..)| *own == line);
        let newest = here.or(flying.map(|(_, _, write, _)| write.clone()));
        let hidden = newest.clone();
        let newest = newest.filter(|first| before(&first.clock, &write.clock));
        // By chance it may be there already.
        let by_chance = self.marks.get(&line).filter(|mark| {
            matches!(mark.write.site.who, Who::Host(_)) && mark.unsettled(&write.clock)
        });
        let stale = newest.or(by_chance.map(|mark| mark.write.clone()));
        // Stores that are not to be known of: of the host, in its caches still, and of others.
        let mark = self.marks.get(&line).map(|mark| mark.write.clone());
        let unordered = hidden.into_iter().chain(mark).find(|first| {
            !self.are_one(first.site.who, write.site.who) && !before(&first.clock, &write.clock)
        });
        let stale = stale.map(|first| (Wrong::StaleFetch, first.site));
        let unordered = unordered.map(|first| (Wrong::UnorderedRead, first.site));
        if let Some((wrong, first)) = stale.or(unordered) {
            self.tell(wrong, write.site, first, line);
            // The same race is not told again where the core stores the line.
            if let Some(mark) = self.marks.get_mut(&line) {
                mark.settle(&write.clock);
            }
        }
        self.read(write.site, line, false);
    }

    /// A program has ended, and so have all its copies: who learns of it knows what it has stored to be in far memory.
    pub(crate) fn ends(&mut self, mcc: usize) {
        let number = self.hosts + mcc;
        let clock = &self.clocks[number];
        for read in self.reads.values_mut().flatten() {
            if read.0 == number && read.1.over.is_none() {
                read.1.over = Some(clock[number]);
            }
        }
        let own = self.parts.iter().filter(|((own, _), _)| *own == mcc);
        let stored = own.flat_map(|(_, parts)| parts).filter(|part| part.stores);
        for part in stored {
            let mark = self.marks.get_mut(&part.far);
            if let Some(mark) = mark.filter(|mark| mark.version == part.version) {
                mark.settle(clock);
            }
        }
        self.gives(Who::Mcc(mcc), Way::Control(mcc));
    }

    /// A program starts on a core.
    pub(crate) fn starts(&mut self, mcc: usize) {
        self.commands[mcc].clear();
        self.parts.retain(|(own, _), _| *own != mcc);
        self.held.retain(|(own, _), _| *own != mcc);
        self.words.retain(|(own, _), _| *own != mcc);
        self.learns(Who::Mcc(mcc), Way::Control(mcc));
    }
}

#[cfg(test)]
mod tests;
