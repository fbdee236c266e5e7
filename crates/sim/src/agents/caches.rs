//! Caches: they execute the protocol's remote controller for every line that they hold or wait for.
//!
//! Accesses come from the frontend, messages from the interconnect; an agent also retries its waiting messages and
//! accesses when its registers have changed or an input queue has room. A cache sends messages, and ends accesses at
//! the frontend.

mod access;
mod row;
mod transition;

use cohkit_protocol::protocol::{Permission, StateId};
use std::ops::{Index, IndexMut};

use access::Attempt;
pub(crate) use transition::check_inclusion;

use super::frontend::Frontend;
use super::program::{Answer, ConfigurationId, Input, Transition};
use super::registers::Executor;
use crate::attribution::Step;
use crate::components::tags::{Shape, Slot, TagEntry, Tags};
use crate::data::{Copy, Paged};
use crate::explain::FailureKind;
use crate::kernel::Time;
use crate::levels::LowerLevel;
use crate::message::{Agent, Agents, Line, Message};
use crate::oracle::are_compatible;
use crate::simulation::event_prefetch::prefetch_receiver;
use crate::simulation::groups::{Groups, KindQuantities};
use crate::simulation::observer::Fact;
use crate::simulation::order_tracker::is_earlier;
use crate::simulation::{Context, Event as KernelEvent, Interconnect, MainMemory, Purpose, Tables};
use crate::statistics::Stall;

/// Index that stands for no access.
const NONE: u32 = u32::MAX;

/// State of one line in a cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// State of the line, and values of its variables.
    pub configuration: ConfigurationId,
    /// The line's bytes, in configurations that hold the line.
    pub copy: Copy,
    /// Index of the first access in the line's queue, or [`NONE`]. It may have started a transaction. Accesses are
    /// linked by `Pending::next` in order of arrival.
    first_access: u32,
    /// Index of the last access in the queue; stale if the queue is empty.
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
    /// Entries of lines outside the ways: lines being evicted, and non-caching accesses.
    transient_lines: Vec<(Line, Entry)>,
    /// Indices of the messages that the controller stalled, in order of arrival.
    stalled: Vec<u32>,
    /// Indices of the accesses that found their set full, in order of arrival.
    waiting_for_way: Vec<u32>,
    /// Indices of the accesses that wait for a change of registers or for room in an input queue.
    held_accesses: Vec<u32>,
    /// Time since when `held_accesses` contains a write, in picoseconds; `None` if it contains none.
    writes_held_since: Option<Time>,
}

/// Parts of the machine that a cache uses in one event.
pub(crate) struct CacheEnvironment<'c> {
    /// State of the run that all components use.
    pub context: Context<'c>,
    /// Paths of the messages that the cache sends and takes.
    pub interconnect: &'c mut Interconnect,
    /// Cores, which issue accesses and are notified of their completion.
    pub frontend: &'c mut Frontend,
    /// Configurations of lines at the home: only prefetched, for messages that are sent.
    pub directory: &'c Paged<ConfigurationId>,
    /// Memory: only prefetched, for messages that are sent.
    pub memory: &'c MainMemory,
    /// Permissions of the cache above, if this is the lower of two levels.
    pub permissions_above: Option<&'c Paged<Permission>>,
}

/// All caches of a machine.
pub struct Caches {
    /// Controller and registers of the caches.
    pub(crate) executor: Executor,
    /// View of the level below, if this is the upper of two levels.
    pub(crate) lower_level: Option<Box<LowerLevel>>,
    /// Tags and entries of all caches.
    pub(crate) ways: Tags,
    /// Rest of the state of each cache, by agent number.
    caches: Vec<Cache>,
    /// First cache and initial configuration of each kind, in descending order.
    initial_configurations: Vec<(Agent, ConfigurationId)>,
    /// Bulk transitions, from one state to another, still to be applied to all lines of the current cache.
    bulk_transitions: Vec<(StateId, StateId)>,
}

impl Caches {
    /// Creates the empty caches of each kind.
    pub(crate) fn new(
        groups: &Groups,
        kind_quantities: &[KindQuantities],
        executor: Executor,
    ) -> Caches {
        let shapes = groups
            .groups
            .iter()
            .zip(kind_quantities)
            .map(|(group, quantities)| Shape {
                caches: group.caches.count(),
                sets: quantities.cache.sets.value as u32,
                ways: quantities.cache.ways.value as u32,
                hashed: quantities.cache.index_hash.value != 0,
            });
        let groups_descending = groups.groups.iter().rev();
        Caches {
            executor,
            lower_level: None,
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

    /// Returns the entry of the line in a way.
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

    /// Returns the place and the entry of a line in a cache; an empty entry if the line has none.
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

    /// Returns the permission of a cache for a line.
    pub(crate) fn permission(&self, cache: Agent, line: Line) -> Permission {
        let configuration = self.configuration(cache, line);
        self.executor.program.properties(configuration).permission
    }

    /// Iterates over the copies of a line in caches with a permission for it.
    pub(crate) fn readable_copies(&self, line: Line) -> impl Iterator<Item = Copy> + '_ {
        self.agents().filter_map(move |cache| {
            let (configuration, copy) = self.configuration_and_copy(cache, line);
            let properties = self.executor.program.properties(configuration);
            (properties.permission > Permission::None).then_some(copy)
        })
    }

    /// Frees configurations that no line has.
    pub(crate) fn sweep(&mut self) {
        let used = configurations(&self.ways, &self.caches);
        self.executor.program.sweep(used);
    }

    /// Formats a configuration of a cache.
    pub(crate) fn state_text(
        &self,
        tables: &Tables,
        cache: Agent,
        configuration: ConfigurationId,
    ) -> String {
        self.executor
            .state_text(tables, cache.index(), configuration)
    }

    /// Returns the transition of a cache on an input.
    #[inline(always)]
    fn step(
        &mut self,
        env: &CacheEnvironment,
        cache: Agent,
        line: Line,
        configuration: ConfigurationId,
        input: &Input,
    ) -> Transition {
        let home = env.context.tables.home_of(line);
        self.executor
            .step(cache.index(), home, configuration, input)
    }
}

/// Iterates over the configurations of all lines in all caches.
fn configurations<'c>(
    ways: &'c Tags,
    caches: &'c [Cache],
) -> impl Iterator<Item = ConfigurationId> + 'c {
    let transient_lines = caches.iter().flat_map(|cache| &cache.transient_lines);
    let in_ways = ways.occupied_slots().map(|slot| {
        let [configuration, ..] = ways.entry(slot);
        configuration
    });
    in_ways.chain(transient_lines.map(|(_, entry)| entry.configuration))
}

/// Messages.
impl Caches {
    /// Presents a message to its cache.
    #[inline(always)]
    pub(crate) fn handle_message(
        &mut self,
        env: &mut CacheEnvironment,
        index: u32,
        message: &Message,
    ) {
        let cache = message.to;
        if self.is_blocked(env, cache, message, usize::MAX)
            || !self.deliver(env, cache, index, message)
        {
            env.context.tally.counters.stall(Stall::Controller);
            // The message waits in the cache and frees its place in the circuit.
            env.interconnect
                .dequeue_from_circuit(&mut env.context, index);
            env.context.observe(Fact::Deferred {
                index,
                step: Step::LineAtCache,
            });
            self[cache].stalled.push(index);
            return;
        }
        self.retry_stalled_messages(env, cache, message.line);
    }

    /// Retries the stalled messages of a line.
    fn retry_stalled_messages(&mut self, env: &mut CacheEnvironment, cache: Agent, line: Line) {
        let mut position = 0;
        while let Some(&index) = self[cache].stalled.get(position) {
            let message = env.context.local.messages[index];
            let may_be_next = message.line == line
                || env.context.tables.kinds[message.kind.index()]
                    .order_span
                    .is_some();
            let is_consumed = may_be_next
                && !self.is_blocked(env, cache, &message, position)
                && self.deliver(env, cache, index, &message);
            if is_consumed {
                self[cache].stalled.remove(position);
                position = 0;
            } else {
                position += 1;
            }
        }
    }

    /// Retries the stalled messages of all lines.
    fn retry_all_stalled_messages(&mut self, env: &mut CacheEnvironment, cache: Agent) {
        let stalled = self[cache].stalled.iter();
        let mut lines: Vec<Line> = stalled
            .map(|&index| env.context.local.messages[index].line)
            .collect();
        lines.dedup();
        for line in lines {
            self.retry_stalled_messages(env, cache, line);
        }
    }

    /// True if a message must wait because an earlier message of the same order is among the first `limit` stalled
    /// ones. Also true if a message that the declared order puts before it has not been consumed.
    #[inline(always)]
    fn is_blocked(
        &self,
        env: &CacheEnvironment,
        cache: Agent,
        message: &Message,
        limit: usize,
    ) -> bool {
        let stalled = &self[cache].stalled;
        let kind = env.context.tables.kind_of(message);
        let group = kind.order_group;
        group.is_some()
            && (env.interconnect.order_tracker.holds_back(kind, message)
                || stalled.iter().take(limit).any(|&index| {
                    let earlier_message = &env.context.local.messages[index];
                    (earlier_message.line, earlier_message.from) == (message.line, message.from)
                        && env.context.tables.kinds[earlier_message.kind.index()].order_group
                            == group
                        && is_earlier(earlier_message.flight, message.flight)
                }))
    }

    /// Presents a message to the controller. Returns false if the controller stalls it.
    #[inline(always)]
    fn deliver(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        index: u32,
        message: &Message,
    ) -> bool {
        let line = message.line;
        let (place, mut entry) = self.find(cache, line);
        let input = Input::from_message(message);
        let transition = self.step(env, cache, line, entry.configuration, &input);
        match transition.answer {
            Answer::Take if self.must_wait_for_recall(env, cache, line, &transition, false) => {
                return false
            }
            Answer::Take | Answer::Fault
                if self.waits_for_room(env, cache, line, &transition, Some(message)) =>
            {
                return false
            }
            Answer::Take => {}
            Answer::Leave => return false,
            Answer::Fault => {
                env.context.note_receive(message);
                self.report_impossible_row(env, cache, line, &transition);
                return true;
            }
            _ => {
                let name = &env.context.tables.protocol_messages[message.kind.index()].name;
                let state_text = self.state_text(env.context.tables, cache, entry.configuration);
                let text = format!(
                    "{} has no rule for {name} in {state_text}",
                    env.context.agent_name(cache)
                );
                env.context.note_receive(message);
                env.context.fail(FailureKind::UnexpectedMessage, line, text);
                return true;
            }
        }
        env.interconnect
            .take_message(&mut env.context, index, message);
        env.context.observe(Fact::TakenByCache { message });
        self.apply_transition(
            env,
            (cache, line),
            &mut entry,
            &transition,
            Some(message),
            None,
        );
        while entry.first_access != NONE {
            let index = entry.first_access;
            let next = env.context.local.accesses[index].next;
            let performed = match self.attempt(env, cache, line, &mut entry, index) {
                Attempt::Performed => true,
                Attempt::Skipped => false,
                Attempt::Held => {
                    // No message about the line is guaranteed to arrive.
                    entry.first_access = next;
                    env.context.local.accesses[index].next = NONE;
                    self.hold_access(env, cache, index);
                    continue;
                }
                Attempt::Began | Attempt::Waits => break,
            };
            entry.first_access = next;
            self.complete_access(env, index, false, performed);
        }
        self.write_back_entry(env, cache, line, place, entry);
        self.apply_bulk_transitions(env, cache);
        true
    }

    /// Sends a message now, and prefetches the state that its receiver accesses first.
    #[inline]
    fn send(&mut self, env: &mut CacheEnvironment, message: Message) {
        let ways = &self.ways;
        prefetch_receiver(&env.context, &message, ways, env.directory, env.memory);
        let now = env.context.now();
        env.interconnect.send(&mut env.context, message, now);
    }

    /// True if the row of a transition must wait for room in an input queue.
    #[inline(always)]
    fn waits_for_room(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
        transition: &Transition,
        consumed: Option<&Message>,
    ) -> bool {
        let queues = &mut env.interconnect.input_queues;
        let program = &self.executor.program;
        queues.waits_for_room(
            &mut env.context,
            program,
            (cache, line),
            transition,
            consumed,
        )
    }

    /// Retries the accesses that waited for a change of registers or for room in an input queue, and all messages.
    pub(crate) fn retry_waiting(&mut self, env: &mut CacheEnvironment, cache: Agent) {
        self.retry_all_stalled_messages(env, cache);
        self.retry_held(env, cache);
        self.retry_waiting_for_way(env, cache);
    }

    /// Handles a change of registers of a cache.
    pub(crate) fn handle_register_change(&mut self, env: &mut CacheEnvironment, cache: Agent) {
        self.executor.begin_retry(cache.index());
        self.retry_waiting(env, cache);
    }
}

/// Coupling with the level below.
impl Caches {
    /// Returns true if the machine below must give up permissions before a cache's row may run, and requests that.
    #[inline(always)]
    fn must_wait_for_recall(
        &mut self,
        env: &CacheEnvironment,
        cache: Agent,
        line: Line,
        transition: &Transition,
        evicts: bool,
    ) -> bool {
        let Some(lower_level) = &mut self.lower_level else {
            return false;
        };
        let program = &self.executor.program;
        let kinds = &env.context.tables.kinds;
        let mut sent = program.sent_messages(transition);
        let sends_line = sent.any(|message| kinds[message.index()].line);
        lower_level.must_recall((cache, line), transition, sends_line, evicts)
    }

    /// Handles a lock held by the home below: retries the line's stalled messages and its eviction, then requests its
    /// release.
    pub(crate) fn handle_lock_below(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
    ) {
        let lower_level = self.lower_level.as_mut();
        if !lower_level.is_some_and(|lower| lower.hold_lock(cache, line)) {
            return;
        }
        self.retry_stalled_messages(env, cache, line);
        let is_evicting = |lower: &LowerLevel| lower.is_evicting(cache, line);
        if self.lower_level.as_deref().is_some_and(is_evicting) {
            self.evict_recalled(env, cache, line);
        }
        if let Some(lower_level) = &mut self.lower_level {
            lower_level.give_lock_back(cache, line);
        }
    }

    /// Handles the release of a lock by the home below.
    pub(crate) fn handle_release_below(
        &mut self,
        env: &mut CacheEnvironment,
        cache: Agent,
        line: Line,
    ) {
        if let Some(lower_level) = &mut self.lower_level {
            lower_level.remove_lock(cache, line);
        }
        self.retry_stalled_messages(env, cache, line);
        self.retry_waiting_for_way(env, cache);
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
