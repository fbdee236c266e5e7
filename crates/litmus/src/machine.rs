//! Machines that run programs: one level of caches, or two levels with a protocol each.

use cohkit_protocol::controller::{Access, Event};
use cohkit_protocol::protocol::Protocol;
use cohkit_system::data::Data;
use cohkit_system::state::{
    Arrival, Clusters, CompletedAccess, LevelStep, Levels, Order, Step, StepError, System,
    SystemState,
};

/// Fixed part of a machine. Threads have their numbers in the program.
pub enum Machine<'p> {
    /// One level. The vector gives the remote of each thread; remotes are numbered kind by kind.
    OneLevel(Box<System<'p>>, Vec<u8>),
    /// Two levels. The vector gives each thread's cluster and its lower-level cache within it.
    TwoLevels(Box<Levels<'p>>, Vec<(u8, u8)>),
}

/// State of a machine, for one line or for all lines together: one system state per system.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum MachineState<D: Data> {
    /// State of one level.
    OneLevel(SystemState<D>),
    /// State of two levels.
    TwoLevels(Clusters<D>),
}

/// An order across lines: index of the system (0 for the upper or only level), and the order within it.
pub type Queue = (u8, Order);

impl<'p> Machine<'p> {
    /// Returns the protocol of the first thread's own cache.
    pub fn protocol(&self) -> &'p Protocol {
        match self {
            Machine::OneLevel(system, _) => system.protocol,
            Machine::TwoLevels(levels, placements) => {
                let cluster = placements.first().map_or(0, |&(cluster, _)| cluster);
                levels.inner(cluster).protocol
            }
        }
    }

    /// Returns the protocol of each thread's own cache.
    pub fn thread_protocols(&self) -> Vec<&'p Protocol> {
        match self {
            Machine::OneLevel(system, remotes) => vec![system.protocol; remotes.len()],
            Machine::TwoLevels(levels, placements) => {
                let protocol = |&(cluster, _): &(u8, u8)| levels.inner(cluster).protocol;
                placements.iter().map(protocol).collect()
            }
        }
    }

    /// Returns the initial state.
    pub fn initial_state<D: Data>(&self) -> MachineState<D> {
        match self {
            Machine::OneLevel(system, _) => MachineState::OneLevel(SystemState::new(system)),
            Machine::TwoLevels(levels, _) => MachineState::TwoLevels(Clusters::new(levels)),
        }
    }

    /// Systems of the machine, the upper level first: one per system state of a [`MachineState`].
    pub fn systems(&self) -> impl Iterator<Item = &System<'p>> {
        let (upper, levels) = match self {
            Machine::OneLevel(system, _) => (&**system, None),
            Machine::TwoLevels(levels, _) => (&levels.outer, Some(&**levels)),
        };
        let inner = levels.into_iter().flat_map(|levels| levels.inner_systems());
        std::iter::once(upper).chain(inner)
    }

    /// Creates a state from its system states, one per system.
    pub fn state<D: Data>(
        &self,
        mut system_states: impl Iterator<Item = SystemState<D>>,
    ) -> MachineState<D> {
        let system_state = system_states
            .next()
            .expect("a state has at least one system state");
        match self {
            Machine::OneLevel(..) => MachineState::OneLevel(system_state),
            Machine::TwoLevels(..) => MachineState::TwoLevels(Clusters {
                outer: system_state,
                inner: system_states.collect(),
            }),
        }
    }

    /// Returns the steps of caches and homes that may be possible, without those of threads and devices. `giving_up`
    /// includes the spontaneous evictions and downgrades.
    pub fn steps<D: Data>(&self, state: &MachineState<D>, giving_up: bool) -> Vec<LevelStep> {
        let is_begin = |step: &Step| match step {
            Step::Access(_, _, access) => {
                !access.about_line() || access.needs() > cohkit_protocol::protocol::Permission::None
            }
            Step::Hit(..) => true,
            _ => false,
        };
        let is_device = |step: &Step| {
            matches!(
                step,
                Step::RequestLocal(..) | Step::DeviceWrite(_) | Step::Unlock(_)
            )
        };
        match (self, state) {
            (Machine::OneLevel(system, _), MachineState::OneLevel(system_state)) => {
                let steps = match giving_up {
                    true => system_state.steps(system),
                    false => system_state.steps_without_remotes(system),
                };
                let steps = steps.into_iter();
                let candidates = steps.filter(|step| !is_begin(step) && !is_device(step));
                // Most accesses have no row in the current state. Find that out without a copy of the system state.
                let has_row = |step: &Step| match *step {
                    Step::Access(line, remote, access) => {
                        let remote =
                            &system_state.lines[usize::from(line)].remotes[usize::from(remote)];
                        let event_and_state = (Event::Access(access), remote.configuration.state);
                        let mut rules = system.protocol.remote.rules.iter();
                        rules.any(|rule| (rule.event, rule.state.0) == event_and_state)
                    }
                    _ => true,
                };
                candidates.filter(has_row).map(LevelStep::Outer).collect()
            }
            (Machine::TwoLevels(levels, _), MachineState::TwoLevels(clusters)) => {
                let mut steps = clusters.steps(levels);
                steps.retain(|step| match step {
                    LevelStep::Outer(step) => !is_device(step),
                    LevelStep::Inner(_, step) => !is_begin(step),
                });
                steps.retain(|&step| giving_up || !clusters.is_spontaneous_eviction(levels, step));
                steps
            }
            _ => unreachable!("states are those of their machine"),
        }
    }

    /// Applies a step. Adds the completed accesses to `completed`, with the thread in place of the remote. Returns
    /// false if the step is blocked or changes nothing.
    ///
    /// # Errors
    /// The first violation, or an exceeded limit.
    pub fn take<D: Data>(
        &self,
        state: &mut MachineState<D>,
        step: LevelStep,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        match (self, state, step) {
            (
                Machine::OneLevel(system, placements),
                MachineState::OneLevel(system_state),
                LevelStep::Outer(step),
            ) => {
                let is_taken = system_state.take_recording(system, step, completed)?;
                map_remotes_to_threads(placements, |&remote| remote, completed);
                Ok(is_taken)
            }
            (Machine::TwoLevels(levels, placements), MachineState::TwoLevels(clusters), step) => {
                let is_taken = clusters.take_recording(levels, step, completed)?;
                if let LevelStep::Inner(cluster, _) = step {
                    map_remotes_to_threads(placements, cache_in_cluster(cluster), completed);
                }
                Ok(is_taken)
            }
            _ => unreachable!("states are those of their machine"),
        }
    }

    /// Begins an access of a thread, or performs it if it hits. Returns false if the cache cannot accept it now.
    ///
    /// # Errors
    /// The first violation, or an exceeded limit.
    pub fn begin<D: Data>(
        &self,
        state: &mut MachineState<D>,
        (line, thread): (u8, u8),
        (access, value): (Access, D::Write),
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        match (self, state) {
            (Machine::OneLevel(system, placements), MachineState::OneLevel(system_state)) => {
                let line_and_remote = (line, placements[usize::from(thread)]);
                let begun =
                    system_state.begin(system, line_and_remote, access, value, completed)?;
                map_remotes_to_threads(placements, |&remote| remote, completed);
                Ok(begun)
            }
            (Machine::TwoLevels(levels, placements), MachineState::TwoLevels(clusters)) => {
                let (cluster, cache) = placements[usize::from(thread)];
                let begun =
                    clusters.begin(levels, cluster, (line, cache), (access, value), completed)?;
                map_remotes_to_threads(placements, cache_in_cluster(cluster), completed);
                Ok(begun)
            }
            _ => unreachable!("states are those of their machine"),
        }
    }

    /// Checks the properties that must hold in every state.
    ///
    /// # Errors
    /// The first violated property.
    pub fn claims<D: Data>(&self, state: &MachineState<D>) -> Result<(), StepError> {
        match (self, state) {
            (Machine::OneLevel(system, _), MachineState::OneLevel(system_state)) => {
                system_state.claims(system)?
            }
            (Machine::TwoLevels(levels, _), MachineState::TwoLevels(clusters)) => {
                clusters.claims(levels)?
            }
            _ => unreachable!("states are those of their machine"),
        }
        Ok(())
    }

    /// Returns true for spontaneous steps, such as evictions and downgrades.
    pub fn is_spontaneous<D: Data>(&self, state: &MachineState<D>, step: LevelStep) -> bool {
        match (self, state, step) {
            (Machine::TwoLevels(levels, _), MachineState::TwoLevels(clusters), step) => {
                clusters.is_spontaneous_eviction(levels, step)
            }
            (_, _, LevelStep::Outer(step) | LevelStep::Inner(_, step)) => step.spontaneous(),
        }
    }

    /// Returns the order across lines from which a step consumes the first message, if any.
    pub fn consumed_order(&self, step: LevelStep) -> Option<Queue> {
        let (system_index, step) = match step {
            LevelStep::Outer(step) => (0, step),
            LevelStep::Inner(cluster, step) => (cluster + 1, step),
        };
        match step {
            Step::Deliver(Arrival::Ordered(order @ (.., None)))
            | Step::DeliverChoosing(Arrival::Ordered(order @ (.., None)), _) => {
                Some((system_index, order))
            }
            _ => None,
        }
    }

    /// Returns the orders across lines with messages in flight, and the number of messages of each.
    pub fn queued<D: Data>(&self, state: &MachineState<D>) -> Vec<(Queue, usize)> {
        let mut queued = Vec::new();
        for ((system_index, system_state), system) in
            (0..).zip(state.system_states()).zip(self.systems())
        {
            for arrival in system_state.network.arrivals(system.protocol) {
                if let Arrival::Ordered(order @ (.., None)) = arrival {
                    queued.push(((system_index, order), system_state.network.queued(order)));
                }
            }
        }
        queued
    }
}

impl<D: Data> MachineState<D> {
    /// The only system state, or the system state of the upper level and those below it.
    pub fn system_states(&self) -> impl Iterator<Item = &SystemState<D>> {
        let (upper, lower): (_, &[SystemState<D>]) = match self {
            MachineState::OneLevel(system_state) => (system_state, &[]),
            MachineState::TwoLevels(clusters) => (&clusters.outer, &clusters.inner),
        };
        std::iter::once(upper).chain(lower)
    }

    /// As [`MachineState::system_states`], mutable.
    pub fn system_states_mut(&mut self) -> impl Iterator<Item = &mut SystemState<D>> {
        let (upper, lower): (_, &mut [SystemState<D>]) = match self {
            MachineState::OneLevel(system_state) => (system_state, &mut []),
            MachineState::TwoLevels(clusters) => (&mut clusters.outer, &mut clusters.inner),
        };
        std::iter::once(upper).chain(lower)
    }
}

/// Replaces the remote of each completed access by its thread. `cache` gives the remote of a placement in the current
/// system state.
fn map_remotes_to_threads<D: Data, S>(
    placements: &[S],
    cache: impl Fn(&S) -> u8,
    completed: &mut [CompletedAccess<D>],
) {
    for access in completed {
        let placement = placements
            .iter()
            .position(|placement| cache(placement) == access.remote);
        access.remote = placement.map_or(u8::MAX, |thread| thread as u8);
    }
}

/// Returns the mapping from placements to caches below `cluster`. Placements in other clusters map to no cache,
/// `u8::MAX`.
fn cache_in_cluster(cluster: u8) -> impl Fn(&(u8, u8)) -> u8 {
    move |&(placed_cluster, cache)| match placed_cluster == cluster {
        true => cache,
        false => u8::MAX,
    }
}

/// Threads on clusters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadPlacement {
    /// Cluster of each thread, and its cache there. Clusters are numbered kind by kind.
    pub caches: Vec<(u8, u8)>,
    /// Number of clusters of each kind with a thread, and the maximum number of threads of one of them.
    pub sizes: Vec<(u8, u8)>,
}

/// Returns all placements of threads on clusters, up to permutations of clusters of one kind and of the caches in a
/// cluster. `kind_of_thread` is the kind of each thread's cluster, and `limits` the maximum number of clusters of each
/// kind, if there is one.
pub fn thread_placements(kind_of_thread: &[usize], limits: &[Option<u8>]) -> Vec<ThreadPlacement> {
    // Cluster of each thread among those of its kind, and its cache there.
    let mut placements: Vec<Vec<(u8, u8)>> = vec![Vec::new()];
    for (thread, &kind) in kind_of_thread.iter().enumerate() {
        let extended = placements.iter().flat_map(|prefix| {
            let of_kind = |other: &usize| kind_of_thread[*other] == kind;
            let same_kind: Vec<u8> = (0..thread)
                .filter(of_kind)
                .map(|other| prefix[other].0)
                .collect();
            let clusters = same_kind.iter().map(|cluster| cluster + 1).max();
            let last = clusters.unwrap_or(0);
            let last = limits[kind].map_or(last, |limit| last.min(limit.saturating_sub(1)));
            (0..=last).map(move |cluster| {
                let occupied = same_kind.iter().filter(|other| **other == cluster).count();
                [&prefix[..], &[(cluster, occupied as u8)]].concat()
            })
        });
        placements = extended.collect();
    }
    let number_clusters = |caches: Vec<(u8, u8)>| {
        let size = |kind: usize| {
            let threads = caches.iter().zip(kind_of_thread);
            let of_kind = threads.filter(|(_, other)| **other == kind);
            let largest = |(clusters, caches): (u8, u8), (&(cluster, cache), _): (&(u8, u8), _)| {
                (clusters.max(cluster + 1), caches.max(cache + 1))
            };
            of_kind.fold((0, 0), largest)
        };
        let sizes: Vec<(u8, u8)> = (0..limits.len()).map(size).collect();
        let first = |kind: usize| {
            sizes[..kind]
                .iter()
                .map(|(clusters, _)| clusters)
                .sum::<u8>()
        };
        let threads = caches.iter().zip(kind_of_thread);
        ThreadPlacement {
            caches: threads
                .map(|(&(cluster, cache), &kind)| (first(kind) + cluster, cache))
                .collect(),
            sizes,
        }
    };
    placements.into_iter().map(number_clusters).collect()
}

#[cfg(test)]
mod tests {
    use super::{thread_placements, ThreadPlacement};

    /// The number of placements is that of the partitions of the threads (Bell numbers).
    #[test]
    fn threads_share_clusters_in_every_way() {
        let counts =
            [1, 2, 3, 4].map(|threads| thread_placements(&vec![0; threads], &[None]).len());
        assert_eq!(counts, [1, 2, 5, 15]);
        let placements = thread_placements(&[0, 0], &[None]);
        let caches = placements.into_iter().map(|placement| placement.caches);
        assert!(caches.eq([vec![(0, 0), (0, 1)], vec![(0, 0), (1, 0)]]));
    }

    /// Threads of different kinds never share a cluster, and the number of clusters is limited. With at most two
    /// clusters, three threads have four partitions: S(3, 1) + S(3, 2), Stirling numbers of the second kind.
    #[test]
    fn threads_of_different_kinds_have_different_clusters() {
        assert_eq!(thread_placements(&[0; 3], &[Some(2)]).len(), 4);
        let placements = thread_placements(&[1, 0, 1], &[None, Some(1)]);
        let expected = ThreadPlacement {
            caches: vec![(1, 0), (0, 0), (1, 1)],
            sizes: vec![(1, 1), (1, 2)],
        };
        assert_eq!(placements, [expected]);
        assert_eq!(thread_placements(&[1, 0, 1], &[None, None]).len(), 2);
    }
}
