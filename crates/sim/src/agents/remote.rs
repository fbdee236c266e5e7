//! Caches: they execute the protocol's remote controller for every line that they hold or wait for.

mod perform;
mod rights;

use cohkit_base::sequence::Action;
use cohkit_protocol::controller::{Access, Event};
use cohkit_protocol::pending_access::CompletionKind;
use cohkit_protocol::protocol::{Right, StateId};
use cohkit_system::plan::CompletionEffect;
use std::ops::{Index, IndexMut};

use super::program::{number_of, Act, Answer, ConfigurationId, Transition};
use crate::attribution::Step;
use crate::components::tags::{Shape, Slot, TagEntry, Tags};
use crate::data::Copy;
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::message::{Agent, Agents, Line, Message};
use crate::oracle::{are_compatible, Level};
use crate::simulation::groups::{Groups, KindQuantities};
use crate::simulation::observer::Fact;
use crate::simulation::order_tracker::is_earlier;
use crate::simulation::{Event as KernelEvent, Pending, Purpose, Simulation};
use crate::statistics::Stall;

const NONE: u32 = u32::MAX;

/// Maximum number of consecutive attempts of one access without any other event.
const MAX_CONSECUTIVE_ATTEMPTS: usize = 64;

/// State of one line in a cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub configuration: ConfigurationId,
    /// The line's bytes, in configurations that hold the line.
    pub copy: Copy,
    /// Queue of accesses to the line, in order of arrival. The first may have started a transaction.
    first_access: u32,
    last_access: u32,
}

impl Entry {
    /// Creates an entry without accesses, in an agent's initial configuration.
    fn empty(configuration: ConfigurationId) -> Entry {
        Entry {
            configuration,
            copy: Copy::UNTOUCHED,
            first_access: NONE,
            last_access: NONE,
        }
    }
}

/// Encodes an entry for the tag array. The empty entry of the first kind encodes to zeros, so that the unused part of a
/// large cache occupies no memory.
#[inline(always)]
fn encode_entry(entry: Entry) -> TagEntry {
    [
        entry.configuration,
        entry.copy.number(),
        !entry.first_access,
        !entry.last_access,
    ]
}

/// Location of a line's entry.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In a way of the cache.
    Way(Slot),
    /// Outside the ways: lines being evicted, and non-caching accesses.
    OutsideWays,
    /// No entry: the line is in the initial configuration.
    Absent,
}

/// State of a cache outside its ways.
#[derive(Default)]
pub struct Cache {
    transient_lines: Vec<(Line, Entry)>,
    /// Messages that the controller stalled, in order of arrival.
    stalled: Vec<u32>,
    /// Accesses that found their set full, in order of arrival.
    waiting_for_way: Vec<u32>,
    /// Accesses that wait for a change of registers or for room in an input queue.
    held_accesses: Vec<u32>,
    /// Time since when `held_accesses` contains a write.
    writes_held_since: Option<Time>,
}

/// Result of attempting an access.
enum Attempt {
    /// The access has been performed.
    Performed,
    /// The access has started a transaction.
    Began,
    /// The access waits for the transaction in progress.
    Waits,
    /// The protocol has no row for the access in this state, and the state will not change by itself.
    Skipped,
    /// The access waits for a change of registers or of a line's variables, or for room in an input queue.
    Held,
}

/// Result of attempting to evict a line.
#[derive(PartialEq, Eq)]
enum Eviction {
    Begun,
    /// An input queue has no room for the row's messages.
    LacksRoom,
    /// The controller has no row that evicts the line now.
    Impossible,
}

/// All caches of a machine.
pub struct Caches {
    /// Tags and entries of all caches.
    pub(crate) ways: Tags,
    caches: Vec<Cache>,
    /// First cache and initial configuration of each kind, in descending order.
    initial_configurations: Vec<(Agent, ConfigurationId)>,
    /// Bulk transitions, from one state to another, still to be applied to all lines of the current cache.
    bulk_transitions: Vec<(StateId, StateId)>,
}

impl Caches {
    /// Creates the empty caches of each kind.
    pub(crate) fn new(groups: &Groups, kind_quantities: &[KindQuantities]) -> Caches {
        let shapes = groups
            .groups
            .iter()
            .zip(kind_quantities)
            .map(|(group, quantities)| Shape {
                caches: group.caches.count(),
                sets: quantities.cache.sets.value as u32,
                ways: quantities.cache.ways.value as u32,
                hashed: quantities.cache.hashed.value != 0,
            });
        let groups_descending = groups.groups.iter().rev();
        Caches {
            ways: Tags::new(shapes),
            caches: (0..groups.caches()).map(|_| Cache::default()).collect(),
            initial_configurations: groups_descending
                .map(|group| (group.caches.first(), group.initial_configuration))
                .collect(),
            bulk_transitions: Vec::new(),
        }
    }

    /// Returns the initial configuration of every line in a cache.
    #[inline(always)]
    fn initial_configuration(&self, cache: Agent) -> ConfigurationId {
        match self.initial_configurations[..] {
            [(_, configuration)] => configuration,
            ref kinds => {
                let kind = kinds.iter().find(|(first, _)| *first <= cache);
                kind.map_or(0, |(_, configuration)| *configuration)
            }
        }
    }

    /// Number of caches.
    pub fn count(&self) -> u16 {
        self.caches.len() as u16
    }

    /// Iterates over the caches.
    pub fn agents(&self) -> impl DoubleEndedIterator<Item = Agent> + Clone + use<> {
        Agents::new(0..self.count()).iter()
    }

    /// Iterates over the configurations of all lines in all caches.
    pub(crate) fn configurations(&self) -> impl Iterator<Item = ConfigurationId> + '_ {
        let transient_lines = self.caches.iter().flat_map(|cache| &cache.transient_lines);
        let ways = self
            .ways
            .occupied_slots()
            .map(|slot| self.entry(slot).configuration);
        ways.chain(transient_lines.map(|(_, entry)| entry.configuration))
    }

    /// Returns the configuration of a line in a cache, and its bytes; the bytes are valid if the configuration holds
    /// the line.
    pub(crate) fn configuration_and_copy(
        &self,
        cache: Agent,
        line: Line,
    ) -> (ConfigurationId, Copy) {
        let (_, entry) = self.find(cache, line);
        (entry.configuration, entry.copy)
    }

    /// Returns the lines for which a cache has an entry, in ascending order.
    fn lines_of(&self, cache: Agent) -> Vec<Line> {
        let transient_lines = self[cache].transient_lines.iter().map(|&(line, _)| line);
        let mut lines: Vec<Line> = self
            .ways
            .lines_of(cache.index())
            .chain(transient_lines)
            .collect();
        lines.sort_unstable();
        lines
    }

    /// Returns the configuration of a line in a cache.
    pub fn configuration(&self, cache: Agent, line: Line) -> ConfigurationId {
        self.find(cache, line).1.configuration
    }

    #[inline(always)]
    fn entry(&self, slot: Slot) -> Entry {
        let [configuration, copy, first, last] = self.ways.entry(slot);
        Entry {
            configuration,
            copy: Copy::from_number(copy),
            first_access: !first,
            last_access: !last,
        }
    }

    #[inline(always)]
    fn find(&self, cache: Agent, line: Line) -> (Place, Entry) {
        if let Some(slot) = self.ways.find(cache.index(), line) {
            return (Place::Way(slot), self.entry(slot));
        }
        let transient_lines = &self[cache].transient_lines;
        match transient_lines
            .iter()
            .position(|&(transient_line, _)| transient_line == line)
        {
            Some(index) => (Place::OutsideWays, transient_lines[index].1),
            None => (
                Place::Absent,
                Entry::empty(self.initial_configuration(cache)),
            ),
        }
    }
}

impl Index<Agent> for Caches {
    type Output = Cache;
    #[inline(always)]
    fn index(&self, cache: Agent) -> &Cache {
        &self.caches[cache.index()]
    }
}

impl IndexMut<Agent> for Caches {
    #[inline(always)]
    fn index_mut(&mut self, cache: Agent) -> &mut Cache {
        &mut self.caches[cache.index()]
    }
}

impl Simulation {
    /// Presents an access to its cache.
    #[inline(always)]
    pub(crate) fn present_access(&mut self, index: u32) {
        self.observe(Fact::Reached { access: index });
        let access = self.local.accesses[index];
        let caches = &mut self.caches;
        let (mut place, mut entry) = caches.find(access.cache, access.line);
        if entry.first_access != NONE {
            self.enqueue_access(&mut entry, index);
            return self.write_back_entry(access.cache, access.line, place, entry);
        }
        match (place, access.kind) {
            (Place::Way(slot), _) => caches.ways.touch(slot),
            (Place::Absent, Access::Evict | Access::Demote | Access::Clean)
                if !self.can_begin_absent(&access) =>
            {
                return self.complete_access(index, true, true);
            }
            (Place::Absent, kind)
                if matches!(kind, Access::Load | Access::Store)
                    || kind == Access::Atomic && self.remote.atomics_fetch =>
            {
                let Some(slot) = self.make_room(access.cache, access.line) else {
                    self.tally.counters.stall(Stall::NoWay);
                    self.observe(Fact::WaitsForWay { access: index });
                    self.caches[access.cache].waiting_for_way.push(index);
                    return;
                };
                self.caches.ways.insert(slot, access.line);
                place = Place::Way(slot);
            }
            _ => {}
        }
        match self.attempt(access.cache, access.line, &mut entry, index) {
            Attempt::Performed => self.complete_access(index, true, true),
            Attempt::Skipped => self.complete_access(index, true, false),
            Attempt::Held => self.hold_access(access.cache, index),
            Attempt::Began | Attempt::Waits => self.enqueue_access(&mut entry, index),
        }
        self.write_back_entry(access.cache, access.line, place, entry);
        self.apply_bulk_transitions(access.cache);
    }

    /// True if the protocol has a row for an access to an absent line, and its bounds permit the transaction.
    fn can_begin_absent(&mut self, access: &Pending) -> bool {
        let Pending {
            cache, line, kind, ..
        } = *access;
        let input = Self::local_input(&self.remote, Event::Access(kind), cache);
        let transition = self.remote_step(
            cache,
            line,
            self.caches.initial_configuration(cache),
            &input,
        );
        match transition.answer {
            Answer::Take => self.within_bounds(cache, line, &transition),
            // Attempting the access reports the fault.
            Answer::Fault => true,
            _ => false,
        }
    }

    #[inline(always)]
    fn enqueue_access(&mut self, entry: &mut Entry, index: u32) {
        if entry.first_access == NONE {
            entry.first_access = index;
        } else {
            self.local.accesses[entry.last_access].next = index;
        }
        entry.last_access = index;
    }

    /// Returns a free way for a line. Evicts the least recently used line that can be evicted if there is none.
    #[inline(always)]
    fn make_room(&mut self, cache: Agent, line: Line) -> Option<Slot> {
        let ways = &self.caches.ways;
        if let Some(slot) = ways.vacancy(cache.index(), line) {
            return Some(slot);
        }
        for slot in ways.candidates(cache.index(), line) {
            let mut entry = self.caches.entry(slot);
            let Some(victim) = self.caches.ways.line(slot) else {
                continue;
            };
            if entry.first_access != NONE
                || self.evict(cache, victim, &mut entry) != Eviction::Begun
            {
                // The level below returns its copy first. Until then no other line needs to be evicted.
                if self
                    .neighbours
                    .lower_level
                    .as_ref()
                    .is_some_and(|lower| lower.is_evicting(cache, victim))
                {
                    return None;
                }
                continue;
            }
            self.free_way(cache, slot, victim, entry);
            return Some(slot);
        }
        None
    }

    /// Removes an evicted line from its way.
    fn free_way(&mut self, cache: Agent, slot: Slot, line: Line, entry: Entry) {
        self.caches.ways.clear(slot);
        if entry.configuration != self.caches.initial_configuration(cache) {
            self.caches[cache].transient_lines.push((line, entry));
        }
    }

    /// Evicts a line of which the level below has returned its copy, unless the line's state has changed meanwhile.
    pub(crate) fn evict_recalled(&mut self, cache: Agent, line: Line) {
        if let (Place::Way(slot), mut entry) = self.caches.find(cache, line) {
            if entry.first_access == NONE && self.evict(cache, line, &mut entry) == Eviction::Begun
            {
                self.free_way(cache, slot, line, entry);
            }
        }
        self.retry_waiting_for_way(cache);
    }

    /// Retries accesses that found their set full.
    pub(crate) fn retry_waiting_for_way(&mut self, cache: Agent) {
        for index in std::mem::take(&mut self.caches[cache].waiting_for_way) {
            self.local
                .queue
                .push(self.local.now, KernelEvent::Access(index));
        }
    }

    /// Holds an access until the registers or variables in its guards change, or until an input queue has room.
    fn hold_access(&mut self, cache: Agent, index: u32) {
        let is_write = self.local.accesses[index].kind.writes();
        let cache_state = &mut self.caches[cache];
        cache_state.held_accesses.push(index);
        if is_write {
            cache_state.writes_held_since.get_or_insert(self.local.now);
        }
    }

    /// Retries the accesses that waited for a change of registers or for room in an input queue.
    pub(crate) fn retry_held(&mut self, cache: Agent) {
        if let Some(since) = self.caches[cache].writes_held_since.take() {
            self.tally.counters.registers_waited += self.local.now - since;
        }
        for index in std::mem::take(&mut self.caches[cache].held_accesses) {
            self.local
                .queue
                .push(self.local.now, KernelEvent::Access(index));
        }
    }

    /// Performs a write by the level below, whose memory is this cache's copy, as a store in place.
    pub(crate) fn store_in_place(&mut self, cache: Agent, line: Line, copy: Copy) {
        let (place, mut entry) = self.caches.find(cache, line);
        let properties = self.remote.properties(entry.configuration);
        if properties.right < Right::Write {
            self.contents.data.release(copy);
            let name = self.agent_name(cache);
            let text = format!("the level below {name} writes its memory without write permission");
            return self.fail(FailureKind::Inclusion, line, text);
        }
        self.contents.data.release(entry.copy);
        entry.copy = copy;
        let input = Self::local_input(&self.remote, Event::Access(Access::Store), cache);
        let transition = self.remote_step(cache, line, entry.configuration, &input);
        match transition.answer {
            Answer::Take if transition.acts().is_empty() => {
                entry.configuration = transition.next;
            }
            // Without a row, a store in a state with write permission is performed in place.
            Answer::Unexpected => {}
            _ => {
                let reason =
                    "it has write permission, but its row for a store does more than perform it";
                self.report_unsupported(cache, line, entry.configuration, reason);
            }
        }
        self.write_back_entry(cache, line, place, entry);
    }

    /// Evicts a line if the controller has a row for that.
    #[inline(always)]
    fn evict(&mut self, cache: Agent, line: Line, entry: &mut Entry) -> Eviction {
        let input = Self::local_input(&self.remote, Event::Access(Access::Evict), cache);
        let transition = self.remote_step(cache, line, entry.configuration, &input);
        if transition.answer != Answer::Take
            || !self.within_bounds(cache, line, &transition)
            || self.must_wait_for_recall(cache, line, &transition, true)
        {
            return Eviction::Impossible;
        }
        if self.waits_for_room(cache, line, &transition, None) {
            return Eviction::LacksRoom;
        }
        self.note_access(cache, line, Access::Evict);
        self.apply_cache_transition(cache, line, entry, &transition, None, None);
        Eviction::Begun
    }

    /// True if the protocol's bounds permit a spontaneous transition to send its messages.
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
            self.local.messages.iter().filter(|(_, m)| same(m)).count()
        };
        self.tables.bounds.can_start_access(sends, in_flight)
    }

    /// Attempts to perform an access, or to start its transaction.
    fn attempt(&mut self, cache: Agent, line: Line, entry: &mut Entry, index: u32) -> Attempt {
        for _ in 0..MAX_CONSECUTIVE_ATTEMPTS {
            if let Some(attempt) = self.attempt_once(cache, line, entry, index) {
                return attempt;
            }
        }
        let configuration = entry.configuration;
        self.report_unsupported(cache, line, configuration, "an access is retried forever");
        Attempt::Skipped
    }

    /// Makes one attempt. Returns `None` if the access is to be attempted again in the state that a row has led to.
    fn attempt_once(
        &mut self,
        cache: Agent,
        line: Line,
        entry: &mut Entry,
        index: u32,
    ) -> Option<Attempt> {
        let access = self.local.accesses[index];
        let before = self.remote.properties(entry.configuration);
        let needed_right = access.kind.needs();
        if access.purpose == Purpose::Hint && before.right >= needed_right {
            return Some(Attempt::Performed);
        }
        // The level below requests the line again after it has returned its copy.
        if before.stable
            && self
                .neighbours
                .lower_level
                .as_ref()
                .is_some_and(|lower| !lower.is_free(cache, line))
        {
            return Some(Attempt::Skipped);
        }
        let event = Event::Access(access.kind);
        let input = Self::local_input(&self.remote, event, cache);
        let transition = self.remote_step(cache, line, entry.configuration, &input);
        // A row that only retries without changing anything is equivalent to no row.
        let has_no_effect = before.stable
            && before.right < needed_right
            && transition.next == entry.configuration
            && transition.acts().is_empty();
        Some(match transition.answer {
            Answer::Take if has_no_effect => {
                return self.evict_for_access(cache, line, entry, event)
            }
            Answer::Take | Answer::Fault if self.waits_for_room(cache, line, &transition, None) => {
                Attempt::Held
            }
            Answer::Take if self.within_bounds(cache, line, &transition) => {
                let after = transition.after;
                self.note_access(cache, line, access.kind);
                self.observe(Fact::Begun {
                    access: index,
                    from: entry.configuration,
                });
                let pending = &mut self.local.accesses[index];
                (pending.sent, pending.performed, pending.found) = (false, false, None);
                self.apply_cache_transition(cache, line, entry, &transition, None, Some(index));
                if !access.kind.about_line() && transition.retries {
                    return None;
                }
                if needed_right == Right::None {
                    return Some(Attempt::Performed);
                }
                let read_permitted = !access.kind.writes() && after.right >= needed_right;
                if transition.performs || read_permitted && before.right >= needed_right {
                    self.perform(line, entry, index);
                    return Some(Attempt::Performed);
                }
                match after.stable {
                    // No message will come that completes the access.
                    true if self.sends_store_bytes(&transition) => {
                        self.contents.oracle.record_store_posted((cache, line));
                        Attempt::Performed
                    }
                    true => return None,
                    false => {
                        self.local.accesses[index].since = self.contents.oracle.latest(line);
                        Attempt::Began
                    }
                }
            }
            Answer::Take => Attempt::Waits,
            Answer::Fault => {
                self.report_impossible_row(cache, line, &transition);
                Attempt::Skipped
            }
            _ if self.registers.has_registers_anywhere()
                && self.remote.has_guarded_row(entry.configuration, event) =>
            {
                Attempt::Held
            }
            _ if needed_right == Right::None => Attempt::Skipped,
            _ if before.right >= needed_right && access.kind.is_performed_in_place() => {
                self.perform(line, entry, index);
                Attempt::Performed
            }
            _ if !before.stable => Attempt::Waits,
            _ => return self.evict_for_access(cache, line, entry, event),
        })
    }

    /// Handles an access without a row for the line's state: evicts the copy, so that the access can be attempted
    /// again. If there is no copy to evict, an access whose row has a guard waits for the next message of its line.
    fn evict_for_access(
        &mut self,
        cache: Agent,
        line: Line,
        entry: &mut Entry,
        event: Event,
    ) -> Option<Attempt> {
        let initial = self.caches.initial_configuration(cache);
        let eviction = match entry.configuration == initial {
            true => Eviction::Impossible,
            false => self.evict(cache, line, entry),
        };
        match eviction {
            Eviction::Begun => {}
            Eviction::LacksRoom => return Some(Attempt::Held),
            Eviction::Impossible => {
                return Some(
                    match self.remote.has_guarded_row(entry.configuration, event) {
                        true => Attempt::Waits,
                        false => Attempt::Skipped,
                    },
                )
            }
        }
        let properties = self.remote.properties(entry.configuration);
        (entry.configuration != initial && !properties.stable).then_some(Attempt::Waits)
    }

    /// True if a transition sends the bytes of a non-caching write.
    fn sends_store_bytes(&self, transition: &Transition) -> bool {
        let is_store = |act| match self.remote.act(act) {
            Act::Send { message, .. } => self.tables.kinds[message.index()].store,
            _ => false,
        };
        transition.acts().any(is_store)
    }

    /// Presents a message to its cache.
    #[inline(always)]
    pub(crate) fn arrive_remote(&mut self, index: u32, message: &Message) {
        let cache = message.to;
        if self.is_blocked(cache, message, usize::MAX) || !self.deliver(cache, index, message) {
            self.tally.counters.stall(Stall::Left);
            // The message waits in the cache and frees its place in the circuit.
            self.dequeue_from_circuit(index);
            self.observe(Fact::Deferred {
                index,
                step: Step::LineAtCache,
            });
            self.caches[cache].stalled.push(index);
            return;
        }
        self.retry_stalled_messages(cache, message.line);
    }

    /// Retries the stalled messages of a line.
    pub(crate) fn retry_stalled_messages(&mut self, cache: Agent, line: Line) {
        let mut position = 0;
        while let Some(&index) = self.caches[cache].stalled.get(position) {
            let message = self.local.messages[index];
            let may_be_next = message.line == line
                || self.tables.kinds[message.kind.index()].order_span.is_some();
            let is_consumed = may_be_next
                && !self.is_blocked(cache, &message, position)
                && self.deliver(cache, index, &message);
            if is_consumed {
                self.caches[cache].stalled.remove(position);
                position = 0;
            } else {
                position += 1;
            }
        }
    }

    /// Retries the stalled messages of all lines.
    pub(crate) fn retry_all_stalled_messages(&mut self, cache: Agent) {
        let stalled = self.caches[cache].stalled.iter();
        let mut lines: Vec<Line> = stalled
            .map(|&index| self.local.messages[index].line)
            .collect();
        lines.dedup();
        for line in lines {
            self.retry_stalled_messages(cache, line);
        }
    }

    /// True if a message must wait because an earlier message of the same order is among the first `limit` stalled
    /// ones. Also true if a message that the declared order puts before it has not been consumed.
    #[inline(always)]
    fn is_blocked(&self, cache: Agent, message: &Message, limit: usize) -> bool {
        let stalled = &self.caches[cache].stalled;
        let kind = &self.tables.kinds[message.kind.index()];
        let group = kind.order_group;
        group.is_some()
            && (self.interconnect.order_tracker.holds_back(kind, message)
                || stalled.iter().take(limit).any(|&index| {
                    let earlier_message = &self.local.messages[index];
                    (earlier_message.line, earlier_message.from) == (message.line, message.from)
                        && self.tables.kinds[earlier_message.kind.index()].order_group == group
                        && is_earlier(earlier_message.flight, message.flight)
                }))
    }

    /// Presents a message to the controller. Returns false if the controller stalls it.
    #[inline(always)]
    fn deliver(&mut self, cache: Agent, index: u32, message: &Message) -> bool {
        let line = message.line;
        let (place, mut entry) = self.caches.find(cache, line);
        let input = Self::input(message);
        let transition = self.remote_step(cache, line, entry.configuration, &input);
        match transition.answer {
            Answer::Take if self.must_wait_for_recall(cache, line, &transition, false) => {
                return false
            }
            Answer::Take | Answer::Fault
                if self.waits_for_room(cache, line, &transition, Some(message)) =>
            {
                return false
            }
            Answer::Take => {}
            Answer::Leave => return false,
            Answer::Fault => {
                self.note_receive(message);
                self.report_impossible_row(cache, line, &transition);
                return true;
            }
            _ => {
                let name = &self.tables.protocol_messages[message.kind.index()].name;
                let state_text = self.state_text(cache, line, entry.configuration);
                let text = format!(
                    "{} has no rule for {name} in {state_text}",
                    self.agent_name(cache)
                );
                self.note_receive(message);
                self.fail(FailureKind::UnexpectedMessage, line, text);
                return true;
            }
        }
        self.take_message(index, message);
        self.observe(Fact::TakenByCache { message });
        self.apply_cache_transition(cache, line, &mut entry, &transition, Some(message), None);
        while entry.first_access != NONE {
            let index = entry.first_access;
            let next = self.local.accesses[index].next;
            let performed = match self.attempt(cache, line, &mut entry, index) {
                Attempt::Performed => true,
                Attempt::Skipped => false,
                Attempt::Held => {
                    // No message about the line is guaranteed to arrive.
                    entry.first_access = next;
                    self.local.accesses[index].next = NONE;
                    self.hold_access(cache, index);
                    continue;
                }
                Attempt::Began | Attempt::Waits => break,
            };
            entry.first_access = next;
            self.complete_access(index, false, performed);
        }
        self.write_back_entry(cache, line, place, entry);
        self.apply_bulk_transitions(cache);
        true
    }

    /// Moves all lines of a cache from one state to another, if rows just taken contain such bulk transitions.
    #[inline(always)]
    fn apply_bulk_transitions(&mut self, cache: Agent) {
        if !self.caches.bulk_transitions.is_empty() {
            self.move_all_lines(cache);
        }
    }

    #[cold]
    fn move_all_lines(&mut self, cache: Agent) {
        for (from, to) in std::mem::take(&mut self.caches.bulk_transitions) {
            for line in self.caches.lines_of(cache) {
                let (place, mut entry) = self.caches.find(cache, line);
                if self.remote.state(entry.configuration) != from.index() {
                    continue;
                }
                let before = self.remote.properties(entry.configuration);
                entry.configuration = self.remote.in_state(entry.configuration, to);
                let after = self.remote.properties(entry.configuration);
                if before.holds_line && !after.holds_line {
                    self.contents
                        .data
                        .release(std::mem::replace(&mut entry.copy, Copy::UNTOUCHED));
                }
                if after.right != before.right && self.caches.count() > 1 {
                    self.contents
                        .oracle
                        .record_permission_change(line, before.right, after.right);
                }
                self.observe(Fact::State {
                    agent: cache,
                    line,
                    configuration: entry.configuration,
                });
                self.write_back_entry(cache, line, place, entry);
            }
        }
    }

    fn note_access(&mut self, cache: Agent, line: Line, access: Access) {
        // An access about no line is recorded for every traced line, as it may affect each of them.
        if self.is_traced(line)
            || self.observer.is_enabled() && !access.about_line() && self.observer.trace.is_some()
        {
            let what = access.name().to_string();
            self.note(cache, line, Action::Does { what });
        }
    }

    /// Writes an entry back to its place, according to its new configuration.
    #[inline(always)]
    fn write_back_entry(&mut self, cache: Agent, line: Line, place: Place, mut entry: Entry) {
        let is_absent = entry.configuration == self.caches.initial_configuration(cache);
        let (ways, cache_state) = (
            &mut self.caches.ways,
            &mut self.caches.caches[cache.index()],
        );
        match place {
            Place::Way(slot) if is_absent => ways.clear(slot),
            Place::Way(slot) => ways.set_entry(slot, encode_entry(entry)),
            // The list may have changed since. Each line is in it at most once.
            Place::OutsideWays => {
                let index = cache_state
                    .transient_lines
                    .iter()
                    .position(|&(transient_line, _)| transient_line == line);
                match index {
                    Some(index) if is_absent => {
                        cache_state.transient_lines.swap_remove(index);
                    }
                    Some(index) => cache_state.transient_lines[index].1 = entry,
                    None => {}
                }
            }
            Place::Absent if is_absent => {}
            Place::Absent => cache_state.transient_lines.push((line, entry)),
        }
        // Accesses that still wait for a line that is now absent start again.
        while is_absent && entry.first_access != NONE {
            let index = entry.first_access;
            entry.first_access = self.local.accesses[index].next;
            self.local.accesses[index].next = NONE;
            self.local
                .queue
                .push(self.local.now, KernelEvent::Access(index));
        }
        let waiting_for_way = !self.caches[cache].waiting_for_way.is_empty();
        if waiting_for_way && self.remote.properties(entry.configuration).stable {
            self.retry_waiting_for_way(cache);
        }
    }

    /// Fails the run because a row of a cache cannot be executed.
    #[cold]
    fn report_impossible_row(&mut self, cache: Agent, line: Line, transition: &Transition) {
        let name = self.agent_name(cache);
        let text = self
            .remote
            .fault(&name, &self.tables.protocol_messages, transition);
        self.fail(FailureKind::UnexpectedMessage, line, text);
    }

    /// Applies a transition. `message` is the consumed message, `access` the access that starts.
    fn apply_cache_transition(
        &mut self,
        cache: Agent,
        line: Line,
        entry: &mut Entry,
        transition: &Transition,
        message: Option<&Message>,
        access: Option<u32>,
    ) {
        self.commit_registers(cache, line);
        let (before, after) = (transition.before, transition.after);
        let carries_line = message.is_some_and(|m| self.tables.kinds[m.kind.index()].line);
        let mut received_copy = message.filter(|_| carries_line).map(|message| message.copy);
        for act in transition.acts() {
            match self.remote.act(act) {
                Act::Send {
                    message: kind,
                    to,
                    fields,
                } => {
                    let message_kind = &self.tables.kinds[kind.index()];
                    let (sends_line, sends_store) = (message_kind.line, message_kind.store);
                    let (mut copy, mut word, mut words) = (Copy::UNTOUCHED, 0, 0);
                    if sends_line {
                        let source = received_copy.or(before.holds_line.then_some(entry.copy));
                        let Some(source) = source else {
                            let text =
                                format!("{} sends a line it does not have", self.agent_name(cache));
                            self.fail(FailureKind::Meaningless, line, text);
                            continue;
                        };
                        self.check_single_use(line, kind.index(), source);
                        copy = self.contents.data.share(source);
                    } else if sends_store {
                        let store_index =
                            access.or((entry.first_access != NONE).then_some(entry.first_access));
                        (copy, word, words) = self.bytes_to_send(cache, line, entry, store_index);
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
                    self.send(message, self.local.now);
                }
                Act::Done => {
                    self.complete_pending_access(cache, line, entry, &mut received_copy, transition)
                }
                Act::BulkTransition { from, to } => self.caches.bulk_transitions.push((from, to)),
                _ => {
                    self.report_unsupported(cache, line, entry.configuration, "an action of a home")
                }
            }
        }
        let is_performed =
            entry.first_access != NONE && self.local.accesses[entry.first_access].performed;
        if transition.abandons_store && is_performed && self.contents.oracle.level > Level::Off {
            let name = self.agent_name(cache);
            let text = format!("a store of {name} is cancelled although the home has performed it");
            self.fail(self.contents.oracle.store_property(), line, text);
        }
        if let (Some(copy), true) = (received_copy, entry.first_access != NONE) {
            let access = self.local.accesses[entry.first_access];
            if access.kind == Access::Atomic {
                let old_value = self.contents.data.word(line, copy, access.word);
                self.local.accesses[entry.first_access].found = Some(old_value);
            }
        }
        match (received_copy, after.holds_line) {
            (Some(copy), true) => {
                if before.holds_line {
                    self.contents.data.release(entry.copy);
                }
                entry.copy = copy;
            }
            (Some(copy), false) => {
                self.contents.data.release(copy);
                if before.holds_line {
                    self.contents.data.release(entry.copy);
                }
            }
            (None, false) if before.holds_line => self.contents.data.release(entry.copy),
            _ => {}
        }
        if !after.holds_line {
            entry.copy = Copy::UNTOUCHED;
        }
        if transition.next != entry.configuration && !self.caches[cache].held_accesses.is_empty() {
            self.schedule_retry(cache);
        }
        entry.configuration = transition.next;
        if let Some(below) = &mut self.neighbours.lower_level {
            below.notify_change(cache, line);
        }
        if after.right != before.right
            && (self.caches.count() > 1 || self.neighbours.upper_level.is_some())
        {
            self.contents
                .oracle
                .record_permission_change(line, before.right, after.right);
        }
        if after.right > before.right {
            self.check_rights(cache, line, after.right);
        }
        // An L1 may hold a line only while its cache has read permission, and not beyond the arrival of new bytes.
        if self.has_private_components() && (after.right == Right::None || carries_line) {
            self.invalidate_in_l1s(cache, line, None);
        }
        self.observe(Fact::State {
            agent: cache,
            line,
            configuration: entry.configuration,
        });
    }

    /// Completes the pending access as the row specifies.
    fn complete_pending_access(
        &mut self,
        cache: Agent,
        line: Line,
        entry: &mut Entry,
        received_copy: &mut Option<Copy>,
        transition: &Transition,
    ) {
        let index = entry.first_access;
        if index == NONE {
            return self.report_unsupported(
                cache,
                line,
                entry.configuration,
                "`done` without an access",
            );
        }
        let access = self.local.accesses[index];
        let source = received_copy.or(transition.before.holds_line.then_some(entry.copy));
        match (transition.done, source) {
            (CompletionEffect::Ends(CompletionKind::Sent), source) if access.performed => {
                let is_atomic_update =
                    access.purpose == Purpose::Atomic && access.kind == Access::Atomic;
                let old_value = source.map(|copy| self.contents.data.word(line, copy, access.word));
                match old_value.or(access.found) {
                    Some(old_value) if is_atomic_update => {
                        self.complete_home_atomic(&access, old_value)
                    }
                    None if is_atomic_update => self.report_unsupported(
                        cache,
                        line,
                        entry.configuration,
                        "`done` without the old value of an atomic access",
                    ),
                    _ => {}
                }
            }
            (CompletionEffect::Ends(CompletionKind::Sent), _) => {
                let text = format!(
                    "{} completes a write that the home has not performed",
                    self.agent_name(cache)
                );
                self.fail(self.contents.oracle.store_property(), line, text);
            }
            (CompletionEffect::Ends(CompletionKind::Read), Some(copy)) => {
                // The bytes of a message were checked when it was sent, which may have been before the read started.
                self.check_own_stores(&access, copy);
                if received_copy.is_none() || self.contents.oracle.may_be_stale() {
                    self.check_load(&access, copy);
                } else if self.contents.data.version(copy) < access.since {
                    let (name, since) = (self.agent_name(cache), access.since);
                    let text = format!("{name} completes a read with data that were stale before write {since}, although the read started later");
                    self.fail(FailureKind::DataValue, line, text);
                }
                if access.purpose == Purpose::Port {
                    self.read_by_port(&access, copy, received_copy.is_none());
                } else if self.application.is_some() {
                    let value = self.contents.data.word(line, copy, access.word);
                    self.set_thread_result(access.core, value);
                }
            }
            (CompletionEffect::Ends(CompletionKind::Write), Some(copy)) => {
                if transition.is_partial_write {
                    self.check_written(cache, line, copy);
                }
                let new_copy = match access.kind {
                    Access::WriteLine => self.write_full_line(&access, copy),
                    _ => self.write(&access, copy),
                };
                match received_copy {
                    Some(received_copy) => *received_copy = new_copy,
                    None => entry.copy = new_copy,
                }
            }
            _ => self.report_unsupported(cache, line, entry.configuration, "`done` without data"),
        }
        entry.first_access = access.next;
        self.complete_access(index, false, true);
    }
}
