//! Caches: they execute the protocol's remote controller for every line they hold or wait for.

mod perform;
mod rights;

use cohkit_base::sequence::Action;
use cohkit_protocol::controller::{Access, Event};
use cohkit_protocol::protocol::Right;
use cohkit_protocol::under_way::Ending;
use cohkit_system::plan::Done;
use std::ops::{Index, IndexMut};

use super::program::{number_of, Act, Answer, ConfigurationId, Transition};
use crate::attribution::Step;
use crate::components::tags::{Kept, Shape, Slot, Tags};
use crate::data::Copy;
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{Agent, Agents, Line, Message};
use crate::oracle::{compatible, Level};
use crate::simulation::earlier::is_earlier;
use crate::simulation::groups::{Described, Groups};
use crate::simulation::{Event as KernelEvent, Pending, Purpose, Simulation};
use crate::statistics::Stall;

const NONE: u32 = u32::MAX;

/// How often an access is tried again before anything else happens, at most.
const MOST_TRIES: usize = 64;

/// What a cache keeps of one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub configuration: ConfigurationId,
    /// The bytes, in configurations that hold the line.
    pub copy: Copy,
    /// Accesses that wait for the line, in order of arrival; the first may have begun a transaction.
    first: u32,
    last: u32,
}

impl Entry {
    /// Nothing but the configuration in which an agent begins.
    fn empty(configuration: ConfigurationId) -> Entry {
        Entry {
            configuration,
            copy: Copy::UNTOUCHED,
            first: NONE,
            last: NONE,
        }
    }
}

/// An entry as it is kept: the empty one of the first kind is all zeros, so that of a large cache that is little used most takes no memory.
#[inline(always)]
fn kept(entry: Entry) -> Kept {
    [
        entry.configuration,
        entry.copy.number(),
        !entry.first,
        !entry.last,
    ]
}

/// Where a line's entry is kept.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In a way of the cache.
    Way(Slot),
    /// Beside the ways: lines on their way out, and non-caching accesses.
    Aside,
    /// Nowhere: the initial configuration.
    Absent,
}

/// What a cache has beside its ways.
#[derive(Default)]
pub struct Cache {
    aside: Vec<(Line, Entry)>,
    /// Messages that the controller left in their channels, in order of arrival.
    left: Vec<u32>,
    /// Accesses that found their set full, in order of arrival.
    parked: Vec<u32>,
    /// Accesses that wait until registers change or an input queue has room.
    held: Vec<u32>,
    /// Since when there has been a write among them.
    writes_held: Option<Time>,
}

/// What came of trying an access.
enum Attempt {
    /// It has been performed.
    Performed,
    /// It has begun a transaction.
    Began,
    /// It waits for the transaction in progress.
    Waits,
    /// The protocol has no row for it here, and never will have by itself.
    Skipped,
    /// The access waits until registers of the agent or variables of a line change, or until an input queue has room.
    Held,
}

/// Result of trying to evict a line.
#[derive(PartialEq, Eq)]
enum Eviction {
    Begun,
    /// An input queue has no room for what the row sends.
    LacksRoom,
    /// The controller has no row that evicts it now.
    Impossible,
}

/// All caches of a machine.
pub struct Caches {
    /// Their ways.
    pub(crate) ways: Tags,
    each: Vec<Cache>,
    /// From which cache on they begin in which configuration, the last ones first.
    begins: Vec<(Agent, ConfigurationId)>,
}

impl Caches {
    /// The empty caches of each kind.
    pub(crate) fn new(groups: &Groups, described: &[Described]) -> Caches {
        let shapes = groups
            .groups
            .iter()
            .zip(described)
            .map(|(group, of)| Shape {
                caches: group.caches.count(),
                sets: of.cache.sets.value as u32,
                ways: of.cache.ways.value as u32,
                hashed: of.cache.hashed.value != 0,
            });
        let begins = groups.groups.iter().rev();
        Caches {
            ways: Tags::new(shapes),
            each: (0..groups.caches()).map(|_| Cache::default()).collect(),
            begins: begins
                .map(|group| (group.caches.first(), group.begins))
                .collect(),
        }
    }

    /// The configuration in which a cache begins with each line.
    #[inline(always)]
    fn begins(&self, cache: Agent) -> ConfigurationId {
        match self.begins[..] {
            [(_, begins)] => begins,
            ref kinds => {
                let kind = kinds.iter().find(|(first, _)| *first <= cache);
                kind.map_or(0, |(_, begins)| *begins)
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> u16 {
        self.each.len() as u16
    }

    /// Each of them.
    pub fn agents(&self) -> impl DoubleEndedIterator<Item = Agent> + Clone + use<> {
        Agents::new(0..self.count()).iter()
    }

    /// The configurations of all their lines.
    pub(crate) fn configurations(&self) -> impl Iterator<Item = ConfigurationId> + '_ {
        let aside = self.each.iter().flat_map(|cache| &cache.aside);
        let ways = self.ways.taken().map(|slot| self.entry(slot).configuration);
        ways.chain(aside.map(|(_, entry)| entry.configuration))
    }

    /// The configuration of a line in a cache, and its bytes where the configuration holds them.
    pub(crate) fn held(&self, cache: Agent, line: Line) -> (ConfigurationId, Copy) {
        let (_, entry) = self.find(cache, line);
        (entry.configuration, entry.copy)
    }

    /// The lines that a cache has something of, those in ways first.
    fn lines_of(&self, cache: Agent) -> Vec<Line> {
        let aside = self[cache].aside.iter().map(|&(line, _)| line);
        let mut lines: Vec<Line> = self.ways.lines_of(cache.index()).chain(aside).collect();
        lines.sort_unstable();
        lines
    }

    /// The configuration of a line in a cache.
    pub fn configuration(&self, cache: Agent, line: Line) -> ConfigurationId {
        self.find(cache, line).1.configuration
    }

    #[inline(always)]
    fn entry(&self, slot: Slot) -> Entry {
        let [configuration, copy, first, last] = self.ways.kept(slot);
        Entry {
            configuration,
            copy: Copy::numbered(copy),
            first: !first,
            last: !last,
        }
    }

    #[inline(always)]
    fn find(&self, cache: Agent, line: Line) -> (Place, Entry) {
        if let Some(slot) = self.ways.find(cache.index(), line) {
            return (Place::Way(slot), self.entry(slot));
        }
        let aside = &self[cache].aside;
        match aside.iter().position(|&(other, _)| other == line) {
            Some(index) => (Place::Aside, aside[index].1),
            None => (Place::Absent, Entry::empty(self.begins(cache))),
        }
    }
}

impl Index<Agent> for Caches {
    type Output = Cache;
    #[inline(always)]
    fn index(&self, cache: Agent) -> &Cache {
        &self.each[cache.index()]
    }
}

impl IndexMut<Agent> for Caches {
    #[inline(always)]
    fn index_mut(&mut self, cache: Agent) -> &mut Cache {
        &mut self.each[cache.index()]
    }
}

impl Simulation {
    /// An access reaches its cache.
    #[inline(always)]
    pub(crate) fn access(&mut self, index: u32) {
        if self.watched {
            self.note_reached(index);
        }
        let access = self.accesses[index];
        let caches = &mut self.caches;
        let (mut place, mut entry) = caches.find(access.cache, access.line);
        if entry.first != NONE {
            self.queue_up(&mut entry, index);
            return self.keep(access.cache, access.line, place, entry);
        }
        match (place, access.kind) {
            (Place::Way(slot), _) => caches.ways.touch(slot),
            (Place::Absent, Access::Evict | Access::Demote | Access::Clean)
                if !self.begins_absent(&access) =>
            {
                return self.finish(index, true, true);
            }
            (Place::Absent, kind)
                if matches!(kind, Access::Load | Access::Store)
                    || kind == Access::Atomic && self.remote.atomics_fetch =>
            {
                let Some(slot) = self.make_room(access.cache, access.line) else {
                    self.counters.stall(Stall::NoWay);
                    if self.watched {
                        self.note_parked(index);
                    }
                    self.caches[access.cache].parked.push(index);
                    return;
                };
                self.caches.ways.put(slot, access.line);
                place = Place::Way(slot);
            }
            _ => {}
        }
        match self.attempt(access.cache, access.line, &mut entry, index) {
            Attempt::Performed => self.finish(index, true, true),
            Attempt::Skipped => self.finish(index, true, false),
            Attempt::Held => self.hold(access.cache, index),
            Attempt::Began | Attempt::Waits => self.queue_up(&mut entry, index),
        }
        self.keep(access.cache, access.line, place, entry);
        self.every_line(access.cache);
    }

    /// Whether the text has a row for an access to a line that is not there, and its bounds let it begin.
    fn begins_absent(&mut self, access: &Pending) -> bool {
        let Pending {
            cache, line, kind, ..
        } = *access;
        let input = Self::local_input(&self.remote, Event::Access(kind), cache);
        let transition = self.remote_step(cache, line, self.caches.begins(cache), &input);
        match transition.answer {
            Answer::Take => self.within_bounds(cache, line, &transition),
            // Trying it says what is wrong.
            Answer::Fault => true,
            _ => false,
        }
    }

    #[inline(always)]
    fn queue_up(&mut self, entry: &mut Entry, index: u32) {
        if entry.first == NONE {
            entry.first = index;
        } else {
            self.accesses[entry.last].next = index;
        }
        entry.last = index;
    }

    /// A free way for a line; the least recently used line that can go makes room.
    #[inline(always)]
    fn make_room(&mut self, cache: Agent, line: Line) -> Option<Slot> {
        let ways = &self.caches.ways;
        if let Some(slot) = ways.vacancy(cache.index(), line) {
            return Some(slot);
        }
        for slot in ways.candidates(cache.index(), line) {
            let mut entry = self.caches.entry(slot);
            let Some(old) = self.caches.ways.line(slot) else {
                continue;
            };
            if entry.first != NONE || self.evict(cache, old, &mut entry) != Eviction::Begun {
                // What is below gives the line back first; until then no other has to go.
                if self.below.as_ref().is_some_and(|b| b.evicts(cache, old)) {
                    return None;
                }
                continue;
            }
            self.leaves_way(cache, slot, old, entry);
            return Some(slot);
        }
        None
    }

    /// A line that is given up leaves its way.
    fn leaves_way(&mut self, cache: Agent, slot: Slot, line: Line, entry: Entry) {
        self.caches.ways.clear(slot);
        if entry.configuration != self.caches.begins(cache) {
            self.caches[cache].aside.push((line, entry));
        }
    }

    /// What is below has given a line back, so that it can be evicted, unless something else has become of it.
    pub(crate) fn evict_recalled(&mut self, cache: Agent, line: Line) {
        if let (Place::Way(slot), mut entry) = self.caches.find(cache, line) {
            if entry.first == NONE && self.evict(cache, line, &mut entry) == Eviction::Begun {
                self.leaves_way(cache, slot, line, entry);
            }
        }
        self.unpark(cache);
    }

    /// Accesses that found their set full look again.
    pub(crate) fn unpark(&mut self, cache: Agent) {
        for index in std::mem::take(&mut self.caches[cache].parked) {
            self.queue.push(self.now, KernelEvent::Access(index));
        }
    }

    /// An access waits until what guards of its cache read changes, or until an input queue has room.
    fn hold(&mut self, cache: Agent, index: u32) {
        let writes = self.accesses[index].kind.writes();
        let of = &mut self.caches[cache];
        of.held.push(index);
        if writes {
            of.writes_held.get_or_insert(self.now);
        }
    }

    /// Registers have changed, or an input queue has room: the accesses that waited for it are tried again.
    pub(crate) fn try_held(&mut self, cache: Agent) {
        if let Some(since) = self.caches[cache].writes_held.take() {
            self.counters.registers_waited += self.now - since;
        }
        for index in std::mem::take(&mut self.caches[cache].held) {
            self.queue.push(self.now, KernelEvent::Access(index));
        }
    }

    /// What is below writes its memory, which is a cache's copy: a store in place there. The copy's holder is the cache.
    pub(crate) fn store_in_place(&mut self, cache: Agent, line: Line, copy: Copy) {
        let (place, mut entry) = self.caches.find(cache, line);
        let before = self.remote.about(entry.configuration);
        if before.right < Right::Write {
            self.data.release(copy);
            let name = self.agent_name(cache);
            let text = format!("what is below {name} writes its memory, and it may not be written");
            return self.fail(FailureKind::Inclusion, line, text);
        }
        self.data.release(entry.copy);
        entry.copy = copy;
        let input = Self::local_input(&self.remote, Event::Access(Access::Store), cache);
        let transition = self.remote_step(cache, line, entry.configuration, &input);
        match transition.answer {
            Answer::Take if transition.acts().is_empty() => {
                entry.configuration = transition.next;
            }
            // Without a row a store in a state with the right is performed in place.
            Answer::Unexpected => {}
            _ => {
                let what = "it may write, and has a row for a store which does more";
                self.meaningless(cache, line, entry.configuration, what);
            }
        }
        self.keep(cache, line, place, entry);
    }

    /// Gives a line up, if the controller has a row for that.
    #[inline(always)]
    fn evict(&mut self, cache: Agent, line: Line, entry: &mut Entry) -> Eviction {
        let input = Self::local_input(&self.remote, Event::Access(Access::Evict), cache);
        let transition = self.remote_step(cache, line, entry.configuration, &input);
        if transition.answer != Answer::Take
            || !self.within_bounds(cache, line, &transition)
            || self.holds_back(cache, line, &transition, true)
        {
            return Eviction::Impossible;
        }
        if self.waits_for_room(cache, line, &transition, None) {
            return Eviction::LacksRoom;
        }
        self.note_access(cache, line, Access::Evict);
        self.react(cache, line, entry, &transition, None, None);
        Eviction::Begun
    }

    /// Whether the bounds of the text let a spontaneous transition send what it sends.
    #[inline(always)]
    fn within_bounds(&self, cache: Agent, line: Line, transition: &Transition) -> bool {
        let sends = |kind| {
            transition.acts().any(
                |act| matches!(self.remote.act(act), Act::Send { message, .. } if message == kind),
            )
        };
        let in_flight = |kind| {
            let same = |message: &Message| {
                (message.kind, message.from, message.line) == (kind, cache, line)
            };
            self.messages.iter().filter(|(_, m)| same(m)).count()
        };
        self.bounds.let_begin(sends, in_flight)
    }

    /// Tries to perform an access, or to begin what it takes.
    fn attempt(&mut self, cache: Agent, line: Line, entry: &mut Entry, index: u32) -> Attempt {
        for _ in 0..MOST_TRIES {
            if let Some(attempt) = self.attempt_once(cache, line, entry, index) {
                return attempt;
            }
        }
        let configuration = entry.configuration;
        self.meaningless(
            cache,
            line,
            configuration,
            "an access is tried again for ever",
        );
        Attempt::Skipped
    }

    /// The same, without trying again: `None` if that is to be done where a row has led.
    fn attempt_once(
        &mut self,
        cache: Agent,
        line: Line,
        entry: &mut Entry,
        index: u32,
    ) -> Option<Attempt> {
        let access = self.accesses[index];
        let before = self.remote.about(entry.configuration);
        let enough = access.kind.needs();
        if access.purpose == Purpose::Hint && before.right >= enough {
            return Some(Attempt::Performed);
        }
        // What is below asks again when it has given the line back.
        if before.stable && self.below.as_ref().is_some_and(|b| !b.is_free(cache, line)) {
            return Some(Attempt::Skipped);
        }
        let event = Event::Access(access.kind);
        let input = Self::local_input(&self.remote, event, cache);
        let transition = self.remote_step(cache, line, entry.configuration, &input);
        // A row that only says to try again, where nothing would have changed, is no better than none.
        let in_vain = before.stable
            && before.right < enough
            && transition.next == entry.configuration
            && transition.acts().is_empty();
        Some(match transition.answer {
            Answer::Take if in_vain => return self.gives_way(cache, line, entry, event),
            Answer::Take | Answer::Fault if self.waits_for_room(cache, line, &transition, None) => {
                Attempt::Held
            }
            Answer::Take if self.within_bounds(cache, line, &transition) => {
                let after = transition.after;
                self.note_access(cache, line, access.kind);
                if self.watched {
                    self.note_begun(index, entry.configuration);
                }
                let begun = &mut self.accesses[index];
                (begun.sent, begun.performed, begun.found) = (false, false, None);
                self.react(cache, line, entry, &transition, None, Some(index));
                if !access.kind.about_line() && transition.retries {
                    return None;
                }
                if enough == Right::None {
                    return Some(Attempt::Performed);
                }
                let reads = !access.kind.writes() && after.right >= enough;
                if transition.performs || reads && before.right >= enough {
                    self.perform(line, entry, index);
                    return Some(Attempt::Performed);
                }
                match after.stable {
                    // Nothing comes back that would end it.
                    true if self.gives_bytes(&transition) => {
                        self.oracle.store_is_posted((cache, line));
                        Attempt::Performed
                    }
                    true => return None,
                    false => {
                        self.accesses[index].since = self.oracle.latest(line);
                        Attempt::Began
                    }
                }
            }
            Answer::Take => Attempt::Waits,
            Answer::Fault => {
                self.impossible(cache, line, &transition);
                Attempt::Skipped
            }
            _ if self.registers.are_there()
                && self.remote.may_later(entry.configuration, event) =>
            {
                Attempt::Held
            }
            _ if enough == Right::None => Attempt::Skipped,
            _ if before.right >= enough && access.kind.is_performed_in_place() => {
                self.perform(line, entry, index);
                Attempt::Performed
            }
            _ if !before.stable => Attempt::Waits,
            _ => return self.gives_way(cache, line, entry, event),
        })
    }

    /// An access without a row for what it finds: the copy goes first, and then it is tried again. Where there is none to
    /// go, an access whose row has a guard waits for the next message of its line.
    fn gives_way(
        &mut self,
        cache: Agent,
        line: Line,
        entry: &mut Entry,
        event: Event,
    ) -> Option<Attempt> {
        let begins = self.caches.begins(cache);
        let evicted = match entry.configuration == begins {
            true => Eviction::Impossible,
            false => self.evict(cache, line, entry),
        };
        match evicted {
            Eviction::Begun => {}
            Eviction::LacksRoom => return Some(Attempt::Held),
            Eviction::Impossible => {
                return Some(match self.remote.may_later(entry.configuration, event) {
                    true => Attempt::Waits,
                    false => Attempt::Skipped,
                })
            }
        }
        let about = self.remote.about(entry.configuration);
        (entry.configuration != begins && !about.stable).then_some(Attempt::Waits)
    }

    /// Whether a transition sends the bytes of a non-caching write away.
    fn gives_bytes(&self, transition: &Transition) -> bool {
        let store = |act| match self.remote.act(act) {
            Act::Send { message, .. } => self.kinds[message.index()].store,
            _ => false,
        };
        transition.acts().any(store)
    }

    /// A message reaches a cache.
    #[inline(always)]
    pub(crate) fn arrive_remote(&mut self, index: u32, message: &Message) {
        let cache = message.to;
        if self.blocked(cache, message, usize::MAX) || !self.deliver(cache, index, message) {
            self.counters.stall(Stall::Left);
            // It waits in the cache, and gives its place in the circuit to the next.
            self.leaves_circuit(index);
            if self.watched {
                self.note_aside(index, Step::LineAtCache);
            }
            self.caches[cache].left.push(index);
            return;
        }
        self.deliver_left(cache, message.line);
    }

    /// What was left of a line may be taken now.
    pub(crate) fn deliver_left(&mut self, cache: Agent, line: Line) {
        let mut place = 0;
        while let Some(&index) = self.caches[cache].left.get(place) {
            let waiting = self.messages[index];
            let next = waiting.line == line || self.kinds[waiting.kind.index()].together.is_some();
            let taken = next
                && !self.blocked(cache, &waiting, place)
                && self.deliver(cache, index, &waiting);
            if taken {
                self.caches[cache].left.remove(place);
                place = 0;
            } else {
                place += 1;
            }
        }
    }

    /// What was left of any line may be taken now.
    pub(crate) fn deliver_all_left(&mut self, cache: Agent) {
        let left = self.caches[cache].left.iter();
        let mut lines: Vec<Line> = left.map(|&index| self.messages[index].line).collect();
        lines.dedup();
        for line in lines {
            self.deliver_left(cache, line);
        }
    }

    /// Whether an earlier message of the same order waits, among the first `until` that were left, or one that this one
    /// stays behind has not come yet.
    #[inline(always)]
    fn blocked(&self, cache: Agent, message: &Message, until: usize) -> bool {
        let left = &self.caches[cache].left;
        let kind = &self.kinds[message.kind.index()];
        let group = kind.group;
        group.is_some()
            && (self.earlier.holds_back(kind, message)
                || left.iter().take(until).any(|&index| {
                    let other = &self.messages[index];
                    (other.line, other.from) == (message.line, message.from)
                        && self.kinds[other.kind.index()].group == group
                        && is_earlier(other.flight, message.flight)
                }))
    }

    /// Lets the controller take a message. False if it leaves it.
    #[inline(always)]
    fn deliver(&mut self, cache: Agent, index: u32, message: &Message) -> bool {
        let line = message.line;
        let (place, mut entry) = self.caches.find(cache, line);
        let input = Self::input(message);
        let transition = self.remote_step(cache, line, entry.configuration, &input);
        match transition.answer {
            Answer::Take if self.holds_back(cache, line, &transition, false) => return false,
            Answer::Take | Answer::Fault
                if self.waits_for_room(cache, line, &transition, Some(message)) =>
            {
                return false
            }
            Answer::Take => {}
            Answer::Leave => return false,
            Answer::Fault => {
                self.note_receive(message);
                self.impossible(cache, line, &transition);
                return true;
            }
            _ => {
                let name = &self.protocol_messages[message.kind.index()].name;
                let words = self.state_text(cache, line, entry.configuration);
                let text = format!(
                    "{} has no rule for {name} in {words}",
                    self.agent_name(cache)
                );
                self.note_receive(message);
                self.fail(FailureKind::UnexpectedMessage, line, text);
                return true;
            }
        }
        self.take_message(index, message);
        if self.watched {
            self.note_taken_by_cache(message);
        }
        self.react(cache, line, &mut entry, &transition, Some(message), None);
        while entry.first != NONE {
            let index = entry.first;
            let next = self.accesses[index].next;
            let performed = match self.attempt(cache, line, &mut entry, index) {
                Attempt::Performed => true,
                Attempt::Skipped => false,
                Attempt::Held => {
                    // No message about the line need come.
                    entry.first = next;
                    self.accesses[index].next = NONE;
                    self.hold(cache, index);
                    continue;
                }
                Attempt::Began | Attempt::Waits => break,
            };
            entry.first = next;
            self.finish(index, false, performed);
        }
        self.keep(cache, line, place, entry);
        self.every_line(cache);
        true
    }

    /// Rows that have just been taken may have had all lines of a cache that are in one state go to another.
    #[inline(always)]
    fn every_line(&mut self, cache: Agent) {
        if !self.every.is_empty() {
            self.move_every_line(cache);
        }
    }

    #[cold]
    fn move_every_line(&mut self, cache: Agent) {
        for (from, to) in std::mem::take(&mut self.every) {
            for line in self.caches.lines_of(cache) {
                let (place, mut entry) = self.caches.find(cache, line);
                if self.remote.state(entry.configuration) != from.index() {
                    continue;
                }
                let before = self.remote.about(entry.configuration);
                entry.configuration = self.remote.moved(entry.configuration, to);
                let after = self.remote.about(entry.configuration);
                if before.holds && !after.holds {
                    self.data
                        .release(std::mem::replace(&mut entry.copy, Copy::UNTOUCHED));
                }
                if after.right != before.right && self.caches.count() > 1 {
                    self.oracle.changes(line, before.right, after.right);
                }
                if self.watched {
                    self.note_state(cache, line, entry.configuration);
                }
                self.keep(cache, line, place, entry);
            }
        }
    }

    fn note_access(&mut self, cache: Agent, line: Line, access: Access) {
        // What is about no line is told of every line, as it may change it.
        if self.traced(line) || self.watched && !access.about_line() && self.trace.is_some() {
            let what = access.name().to_string();
            self.note(cache, line, Action::Does { what });
        }
    }

    /// Puts an entry back where it belongs now.
    #[inline(always)]
    fn keep(&mut self, cache: Agent, line: Line, place: Place, mut entry: Entry) {
        let gone = entry.configuration == self.caches.begins(cache);
        let (ways, this) = (&mut self.caches.ways, &mut self.caches.each[cache.index()]);
        match place {
            Place::Way(slot) if gone => ways.clear(slot),
            Place::Way(slot) => ways.keep(slot, kept(entry)),
            // The list may have moved since; lines are in it once.
            Place::Aside => {
                let index = this.aside.iter().position(|&(other, _)| other == line);
                match index {
                    Some(index) if gone => {
                        this.aside.swap_remove(index);
                    }
                    Some(index) => this.aside[index].1 = entry,
                    None => {}
                }
            }
            Place::Absent if gone => {}
            Place::Absent => this.aside.push((line, entry)),
        }
        // Whoever still waits for a line that has gone begins anew.
        while gone && entry.first != NONE {
            let index = entry.first;
            entry.first = self.accesses[index].next;
            self.accesses[index].next = NONE;
            self.queue.push(self.now, KernelEvent::Access(index));
        }
        let parked = !self.caches[cache].parked.is_empty();
        if parked && self.remote.about(entry.configuration).stable {
            self.unpark(cache);
        }
    }

    /// A row of a cache cannot be executed.
    #[cold]
    fn impossible(&mut self, cache: Agent, line: Line, transition: &Transition) {
        let name = self.agent_name(cache);
        let text = self
            .remote
            .fault(&name, &self.protocol_messages, transition);
        self.fail(FailureKind::UnexpectedMessage, line, text);
    }

    /// Carries a transition out. `message` is the one being taken, `access` the one that begins.
    fn react(
        &mut self,
        cache: Agent,
        line: Line,
        entry: &mut Entry,
        transition: &Transition,
        message: Option<&Message>,
        access: Option<u32>,
    ) {
        self.takes_registers(cache, line);
        let (before, after) = (transition.before, transition.after);
        let carries = message.is_some_and(|m| self.kinds[m.kind.index()].line);
        let mut brought = message.filter(|_| carries).map(|message| message.copy);
        for act in transition.acts() {
            match self.remote.act(act) {
                Act::Send {
                    message: kind,
                    to,
                    fields,
                } => {
                    let about = &self.kinds[kind.index()];
                    let (line_too, store) = (about.line, about.store);
                    let (mut copy, mut word, mut words) = (Copy::UNTOUCHED, 0, 0);
                    if line_too {
                        let source = brought.or(before.holds.then_some(entry.copy));
                        let Some(source) = source else {
                            let text =
                                format!("{} sends a line it does not have", self.agent_name(cache));
                            self.fail(FailureKind::Meaningless, line, text);
                            continue;
                        };
                        self.check_used_once(line, kind.index(), source);
                        copy = self.data.share(source);
                    } else if store {
                        let about = access.or((entry.first != NONE).then_some(entry.first));
                        (copy, word, words) = self.bytes_to_send(cache, line, entry, about);
                    }
                    let message = Message {
                        line: self.line_of(kind, line, to),
                        copy,
                        kind,
                        from: cache,
                        to: number_of(to),
                        word,
                        words,
                        fields,
                        credit: false,
                        flight: 0,
                    };
                    self.send(message, self.now);
                }
                Act::Done => self.done(cache, line, entry, &mut brought, transition),
                Act::Every { from, to } => self.every.push((from, to)),
                _ => self.meaningless(cache, line, entry.configuration, "an act of a home"),
            }
        }
        let written = entry.first != NONE && self.accesses[entry.first].performed;
        if transition.gives_up && written && self.oracle.level > Level::Off {
            let name = self.agent_name(cache);
            let text = format!("a store of {name} is given up that the home has performed");
            self.fail(self.oracle.of_stores(), line, text);
        }
        if let (Some(copy), true) = (brought, entry.first != NONE) {
            let access = self.accesses[entry.first];
            if access.kind == Access::Atomic {
                let found = self.data.word(line, copy, access.word);
                self.accesses[entry.first].found = Some(found);
            }
        }
        match (brought, after.holds) {
            (Some(copy), true) => {
                if before.holds {
                    self.data.release(entry.copy);
                }
                entry.copy = copy;
            }
            (Some(copy), false) => {
                self.data.release(copy);
                if before.holds {
                    self.data.release(entry.copy);
                }
            }
            (None, false) if before.holds => self.data.release(entry.copy),
            _ => {}
        }
        if !after.holds {
            entry.copy = Copy::UNTOUCHED;
        }
        if transition.next != entry.configuration && !self.caches[cache].held.is_empty() {
            self.look_again(cache);
        }
        entry.configuration = transition.next;
        if let Some(below) = &mut self.below {
            below.changed(cache, line);
        }
        if after.right != before.right && (self.caches.count() > 1 || self.above.is_some()) {
            self.oracle.changes(line, before.right, after.right);
        }
        if after.right > before.right {
            self.check_rights(cache, line, after.right);
        }
        // What an L1 has is what the cache may read: not beyond its right, nor across new bytes.
        if self.private() && (after.right == Right::None || carries) {
            self.leave_l1s(cache, line, None);
        }
        if self.watched {
            self.note_state(cache, line, entry.configuration);
        }
    }

    /// The pending access ends, as the row says.
    fn done(
        &mut self,
        cache: Agent,
        line: Line,
        entry: &mut Entry,
        brought: &mut Option<Copy>,
        row: &Transition,
    ) {
        let index = entry.first;
        if index == NONE {
            return self.meaningless(cache, line, entry.configuration, "`done` without an access");
        }
        let access = self.accesses[index];
        let source = brought.or(row.before.holds.then_some(entry.copy));
        match (row.done, source) {
            (Done::Ends(Ending::Sent), source) if access.performed => {
                let updates = access.purpose == Purpose::Atomic && access.kind == Access::Atomic;
                let found = source.map(|copy| self.data.word(line, copy, access.word));
                match found.or(access.found) {
                    Some(found) if updates => self.check_answered(&access, found),
                    None if updates => self.meaningless(
                        cache,
                        line,
                        entry.configuration,
                        "`done` without what an atomic access found",
                    ),
                    _ => {}
                }
            }
            (Done::Ends(Ending::Sent), _) => {
                let text = format!(
                    "{} ends a write that the home has not performed",
                    self.agent_name(cache)
                );
                self.fail(self.oracle.of_stores(), line, text);
            }
            (Done::Ends(Ending::Read), Some(copy)) => {
                // What a message brings was checked when it was sent, which may have been before the read began.
                self.check_own(&access, copy);
                if brought.is_none() || self.oracle.may_be_old() {
                    self.check_load(&access, copy);
                } else if self.data.version(copy) < access.since {
                    let (name, since) = (self.agent_name(cache), access.since);
                    let text = format!("{name} ends a read with what was old before write {since}, after which it began");
                    self.fail(FailureKind::DataValue, line, text);
                }
                if access.purpose == Purpose::Port {
                    self.read_by_port(&access, copy, brought.is_none());
                } else if self.behind.is_some() {
                    let value = self.data.word(line, copy, access.word);
                    self.give(access.core, value);
                }
            }
            (Done::Ends(Ending::Write), Some(copy)) => {
                if row.keeps_a_part {
                    self.check_written(cache, line, copy);
                }
                let written = match access.kind {
                    Access::WriteLine => self.write_whole(&access, copy),
                    _ => self.write(&access, copy),
                };
                match brought {
                    Some(brought) => *brought = written,
                    None => entry.copy = written,
                }
            }
            _ => self.meaningless(cache, line, entry.configuration, "`done` without bytes"),
        }
        entry.first = access.next;
        self.finish(index, false, true);
    }
}
