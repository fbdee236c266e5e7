//! What programs forget in far memory, which nothing keeps coherent: a load of a line that is stale, a write-back over what is
//! newer, a line that both sides write. Each is told with the two places in the programs.
//!
//! That a line is stale is wrong only if the program could know: if what it has received since tells of the write, by
//! registers, lines of a scratchpad, a FIFO, or the end of a program. So each core has a vector clock, and what passes between
//! cores carries it.

use crate::events::Queue as Events;
use crate::events::{Event, Time, Who};
use crate::timeline::Timeline;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};

/// What happens when, and who watches and draws it.
#[derive(Default)]
pub(crate) struct Queue {
    events: Events,
    pub(crate) watch: Option<Box<Races>>,
    pub(crate) timeline: Option<Box<Timeline>>,
}

impl Queue {
    pub(crate) fn add(&mut self, time: Time, event: Event) {
        self.events.add(time, event);
    }

    pub(crate) fn next(&mut self) -> Option<(Time, Event)> {
        self.events.next()
    }

    /// When the next event is; the end of time if there is none.
    #[inline(always)]
    pub(crate) fn soonest(&self) -> Time {
        self.events.soonest()
    }
}

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
    /// The line's address in far memory; of one of a scratchpad, that of the line it is copied from or to.
    pub line: u64,
}

type Clock = Vec<u64>;

/// A write, and what its core knew by then.
#[derive(Clone, Debug)]
struct Write {
    site: Site,
    clock: Clock,
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
}

/// What passes what a core knows on to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Way {
    /// A register that host and core share.
    Register(usize, u64),
    /// The registers by which programs are started.
    Control(usize),
    /// A line of a scratchpad.
    Line(usize, usize),
    /// A FIFO.
    Fifo(usize, usize),
}

/// Watches a machine. It changes nothing of it.
#[derive(Clone, Debug)]
pub(crate) struct Races {
    hosts: usize,
    clocks: Vec<Clock>,
    ways: FxHashMap<Way, Clock>,
    marks: FxHashMap<u64, Mark>,
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

    /// What a core knows now. What it does later is known to nobody by that.
    fn leaves(&mut self, who: Who) -> Clock {
        let number = self.number(who);
        let clock = self.clocks[number].clone();
        self.clocks[number][number] += 1;
        clock
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

    /// A word of a host leaves with what it knows; when it is there, [`Races::arrives`] is called.
    pub(crate) fn sends(&mut self, who: Who, request: u64) {
        let clock = self.leaves(who);
        self.carried.insert(request, clock);
    }

    /// What a request carries is there.
    pub(crate) fn arrives(&mut self, request: u64, way: Way) {
        if let Way::Line(mcc, line) = way {
            self.held.remove(&(mcc, line as u64));
        }
        if let Some(clock) = self.carried.remove(&request) {
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
        self.asked.insert(request, way);
    }

    /// It is answered.
    pub(crate) fn gets(&mut self, request: u64) {
        if let Some(way) = self.asked.remove(&request) {
            self.answers(request, way);
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
        let found = match stale {
            Some((mark, _)) => Some((Wrong::StaleLoad, mark.write.site)),
            None => late.map(|first| (Wrong::NotStored, first)),
        };
        if let Some((wrong, first)) = found {
            self.tell(wrong, site, first, line);
        }
    }

    /// A host's core stores so many bytes in a line, which it has or gets.
    pub(crate) fn stores(&mut self, site: Site, at: u64, bytes: u32, is_far: bool) {
        let (line, number) = (at & !127, self.number(site.who));
        let clock = self.clocks[number].clone();
        let copy = self.copies.entry(line).or_default();
        copy.stored.clone_from(&clock);
        copy.mask |= bits(at, bytes);
        let base = copy.base;
        let known = clock.clone();
        if copy.dirtied.is_none() {
            copy.dirtied = Some(Write { site, clock });
        }
        // One that the program knows of it may mean to overwrite as a whole.
        let mark = self.marks.get(&line).filter(|mark| {
            base.is_some_and(|base| mark.version > base) && !before(&mark.write.clock, &known)
        });
        if let Some(first) = mark.map(|mark| mark.write.site).filter(|_| is_far) {
            self.tell(Wrong::BothWrite, site, first, line);
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
        if let Some(Who::Host(core)) = dirtied.map(|write| write.site.who) {
            self.clocks[core][core] = self.clocks[core][core].max(stored[core] + 1);
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
        for line in std::mem::take(&mut self.cleaned[core]) {
            let mark = self.marks.get_mut(&line);
            if let Some(mark) = mark.filter(|mark| matches!(mark.write.site.who, Who::Host(_))) {
                mark.settle(&self.clocks[core]);
            }
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
        let Some(parts) = self.parts.get_mut(&(mcc, scratchpad)) else {
            return;
        };
        let clock = &self.clocks[self.hosts + mcc];
        let marks = &mut self.marks;
        parts.retain(|part| {
            let seen = part.done && part.stores == stores;
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
    pub(crate) fn copies(&mut self, mcc: usize, line: u64, access: u64) {
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
        let here = self.copies.get(&line).and_then(|copy| copy.dirtied.clone());
        if stores {
            if let Some(first) = here {
                self.tell(Wrong::BothWrite, write.site, first.site, line);
            }
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
            if let Some(first) = newer {
                self.tell(Wrong::Overwritten, write.site, first, line);
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
        let newest = newest.filter(|first| before(&first.clock, &write.clock));
        // By chance it may be there already.
        let by_chance = self.marks.get(&line).filter(|mark| {
            matches!(mark.write.site.who, Who::Host(_)) && mark.unsettled(&write.clock)
        });
        if let Some(first) = newest.or(by_chance.map(|mark| mark.write.clone())) {
            self.tell(Wrong::StaleFetch, write.site, first.site, line);
        }
    }

    /// A program has ended, and so have all its copies: who learns of it knows what it has stored to be in far memory.
    pub(crate) fn ends(&mut self, mcc: usize) {
        let clock = &self.clocks[self.hosts + mcc];
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
        self.learns(Who::Mcc(mcc), Way::Control(mcc));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: u64 = 0x1000;

    /// A core of two orders its copy engine to fetch or store the line, which does it at once, and sees that it has.
    fn copy(races: &mut Races, mcc: usize, pc: u64, stores: bool) {
        let who = Who::Mcc(mcc);
        races.commands(Site { who, pc }, (0, LINE, 1), stores);
        races.copies(mcc, LINE, 0);
        races.copied(mcc, 0);
        races.looks(mcc, 0, stores);
    }

    fn changes(races: &mut Races, mcc: usize, bytes: std::ops::Range<u64>) {
        let who = Who::Mcc(mcc);
        for at in bytes.step_by(8) {
            races.changes(Site { who, pc: 7 }, 0, at, 8);
        }
    }

    #[test]
    fn what_a_core_stores_is_compared_with_what_it_fetched() {
        // Of two cores the second one fetches before the first one stores, or after; it may be told of that, and then load
        // what it has, and it changes so many bytes.
        for (early, told, loads, bytes, wrong) in [
            (true, false, false, 8, true),
            (true, true, false, 120, true),
            (true, false, false, 128, false),
            (true, false, true, 128, true),
            (true, true, true, 128, true),
            (true, true, false, 128, false),
            (false, false, true, 8, false),
        ] {
            let mut races = Races::new(0, 2);
            copy(&mut races, 0, 1, false);
            if early {
                copy(&mut races, 1, 2, false);
            }
            changes(&mut races, 0, 0..8);
            copy(&mut races, 0, 3, true);
            // What it stores again is what is there.
            changes(&mut races, 0, 8..16);
            copy(&mut races, 0, 4, true);
            if !early {
                copy(&mut races, 1, 2, false);
            }
            let who = Who::Mcc(1);
            if told {
                races.gives(Who::Mcc(0), Way::Fifo(0, 1));
                races.learns(who, Way::Fifo(0, 1));
            }
            if loads {
                races.reads(Site { who, pc: 6 }, 0, 120, 8);
            }
            changes(&mut races, 1, 0..bytes);
            copy(&mut races, 1, 5, true);
            let [first, second] = [(0, 4), (1, 5)].map(|(mcc, pc)| Site {
                who: Who::Mcc(mcc),
                pc,
            });
            let race = Race {
                wrong: Wrong::Overwritten,
                second,
                first,
                line: LINE,
            };
            let expected = if wrong { vec![race] } else { vec![] };
            assert_eq!(races.new, expected, "{early} {told} {loads} {bytes}");
        }
    }

    #[test]
    fn a_line_of_a_scratchpad_that_the_host_writes_is_no_copy() {
        let mut races = Races::new(1, 2);
        copy(&mut races, 1, 1, false);
        copy(&mut races, 0, 2, true);
        races.arrives(9, Way::Line(1, 0));
        copy(&mut races, 1, 3, true);
        assert_eq!(races.new, []);
    }
}
