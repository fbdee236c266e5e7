//! Two levels of caches: homes whose memory is the copy of a cache of another protocol.
//!
//! Each cache of the outer system has an inner system of its own below it, a *cluster*. Clusters may have different
//! protocols. No rows join the protocols; the rules between them follow from permissions:
//!
//! * the inner home consumes a request only if the outer copy has the permission that the request needs; until then the
//!   request waits, and the outer access that acquires the permission begins;
//! * the memory of the inner home is the outer copy; a write of this memory is a store in place of the outer cache;
//! * a step that lowers the outer permission waits until the inner home has run a locking local operation that ensures
//!   the lower one;
//! * while a local operation is requested or in progress, or a lock is held, no outer access begins.
//!
//! An inner transaction that has begun therefore needs nothing from outside, and a waiting request holds no resource.
//!
//! A cluster without hardware coherence (`guarantee none`) is *untracked*: its copies may be stale, so they need no
//! outer permission, and its home needs one only during a transaction. Its caches send all stores to the home, and
//! write back no lines: a composition with any other protocol is rejected. A step that lowers the outer permission
//! waits until the home of an untracked cluster is in a stable state and has deferred no store; no local operation is
//! requested. Single writer, data value and inclusion are not checked for its copies. What its home reads from memory
//! must be current. Such a home is written as rows, so its memory acts at once.
//!
//! Each rule was left out in turn, for two L2s of `mesi.coh` with one L1 of `mesi-l1.coh` each. Without any one of the
//! first three, inclusion, the data value or quiescence is violated. Without the last, no property is violated, in
//! 88,936 states instead of 65,463. The last rule is a precaution: a rising permission takes nothing from the inner
//! caches, and the lock still delays the steps that lower it.

use cohkit_protocol::controller::{Access, Event};
use cohkit_protocol::execute::{Outcome, Trigger};
use cohkit_protocol::protocol::Permission;

use super::{Arrival, CompletedAccess, Lock, Payload, Step, StepError, System, SystemState};
use crate::agent::Violation;
use crate::data::{Data, Extent};
use crate::hierarchy;

/// The bit of [`crate::data::Current`], and whether the current step has performed a write: copies in the other systems
/// are stale then.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Shared {
    /// True if a write has been performed since the last [`Data::clear_last_write`].
    wrote: bool,
}

impl Data for Shared {
    type Copy = bool;
    type Write = ();
    const KEEPS_VALUES: bool = false;
    const TRACKS_STALENESS: bool = true;

    fn new(_lines: u8) -> Shared {
        Shared { wrote: false }
    }

    fn initial(&self, _line: u8) -> bool {
        true
    }

    fn is_current(&self, _line: u8, copy: &bool) -> bool {
        *copy
    }

    fn write(&mut self, _line: u8, copy: &bool, extent: Extent, _what: &()) -> bool {
        self.wrote = true;
        *copy || extent == Extent::Whole
    }

    fn mark_stale(_copy: &bool) -> bool {
        false
    }

    fn clear_last_write(&mut self) {
        self.wrote = false;
    }
}

/// The fixed part of the clusters of one kind.
pub struct ClusterKind<'p> {
    /// The system below an outer cache.
    pub system: System<'p>,
    /// Per message of the inner protocol, the permission to the outer copy that the home needs before it consumes it.
    needs: Vec<Permission>,
}

impl<'p> ClusterKind<'p> {
    fn new(system: System<'p>) -> ClusterKind<'p> {
        let messages = system.protocol.message_ids();
        let needs = messages
            .map(|message| hierarchy::required_permission(system.protocol, message))
            .collect();
        ClusterKind { system, needs }
    }

    /// True if copies in the cluster never have more permission than the outer copy.
    fn is_tracked(&self) -> bool {
        self.system.protocol.guarantee.coherent
    }
}

/// The fixed part of a system of two levels.
pub struct Levels<'p> {
    /// The outer system, of the shared caches.
    pub outer: System<'p>,
    /// Kinds of clusters.
    pub kinds: Vec<ClusterKind<'p>>,
    /// Kind of the cluster below each outer cache, an index into `kinds`.
    pub kind_of_cluster: Vec<usize>,
}

impl<'p> Levels<'p> {
    /// Joins two systems with the same number of lines: below each remote of the outer system is one inner system.
    pub fn new(outer: System<'p>, inner: System<'p>) -> Levels<'p> {
        let count = outer.remotes;
        Levels::of_clusters(outer, vec![(inner, count)])
    }

    /// Joins an outer system with clusters of several kinds, all with the same number of lines. Each kind has the
    /// system below an outer cache, and the number of these caches; the caches of the first kind have the lowest
    /// numbers.
    ///
    /// # Panics
    /// Unless each remote of the outer system has a cluster.
    pub fn of_clusters(outer: System<'p>, clusters: Vec<(System<'p>, u8)>) -> Levels<'p> {
        let counts = clusters.iter().map(|&(_, count)| count).enumerate();
        let kind_of_cluster: Vec<usize> = counts
            .flat_map(|(kind, count)| (0..count).map(move |_| kind))
            .collect();
        assert_eq!(
            kind_of_cluster.len(),
            usize::from(outer.remotes),
            "each outer cache has a cluster"
        );
        Levels {
            outer,
            kinds: clusters
                .into_iter()
                .map(|(system, _)| ClusterKind::new(system))
                .collect(),
            kind_of_cluster,
        }
    }

    /// Kind of the cluster below an outer cache.
    pub(super) fn cluster(&self, number: u8) -> &ClusterKind<'p> {
        &self.kinds[self.kind_of_cluster[usize::from(number)]]
    }

    /// Systems below the outer caches, by the caches' numbers.
    pub fn inner_systems(&self) -> impl Iterator<Item = &System<'p>> {
        let kinds = self.kind_of_cluster.iter();
        kinds.map(|&kind| &self.kinds[kind].system)
    }

    /// True if an order of the outer caches keeps the kind of the cluster below each of them.
    pub(super) fn keeps_kinds(&self, order: &[u8]) -> bool {
        let kinds = order
            .iter()
            .map(|&number| self.kind_of_cluster[usize::from(number)]);
        kinds.eq(self.kind_of_cluster.iter().copied())
    }

    /// System below an outer cache.
    pub fn inner(&self, number: u8) -> &System<'p> {
        &self.cluster(number).system
    }

    /// Permission of the outer cache `number` to a line.
    fn permission<D: Data>(&self, clusters: &Clusters<D>, number: u8, line: u8) -> Permission {
        let remote_state = &clusters.outer.lines[usize::from(line)].remotes[usize::from(number)];
        self.outer.permission(&remote_state.configuration)
    }
}

/// A state of both levels.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Clusters<D: Data = Shared> {
    /// State of the outer system.
    pub outer: SystemState<D>,
    /// State of the system below each outer cache.
    pub inner: Vec<SystemState<D>>,
}

/// A step of either level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LevelStep {
    /// A step of the outer system. A load or store begins only if an inner request waits for it.
    Outer(Step),
    /// A step of the system below this outer cache.
    Inner(u8, Step),
}

impl<D: Data> Clusters<D> {
    /// Returns the initial state: the outer caches hold nothing, so the inner homes have no permission to memory.
    pub fn new(levels: &Levels) -> Clusters<D> {
        let inner = (0..levels.outer.remotes).map(|number| SystemState::new(levels.inner(number)));
        let mut clusters = Clusters {
            outer: SystemState::new(&levels.outer),
            inner: inner.collect(),
        };
        clusters.copy_outer_lines();
        clusters
    }

    /// The same state with permuted outer caches, and with permuted caches below each of them. Only outer caches with
    /// clusters of one kind may change places.
    pub fn permuted(
        &self,
        levels: &Levels,
        outer_order: &[u8],
        inner_orders: &[&[u8]],
    ) -> Clusters<D> {
        let mut result = Clusters {
            outer: self.outer.permuted(&levels.outer, outer_order),
            inner: self.inner.clone(),
        };
        for ((inner, &number), inner_orders) in self.inner.iter().zip(outer_order).zip(inner_orders)
        {
            let system = levels.inner(number);
            result.inner[usize::from(number)] = inner.permuted(system, inner_orders);
        }
        result
    }

    /// Copies the lines of the outer caches to the memory of the inner homes.
    fn copy_outer_lines(&mut self) {
        for (number, inner) in self.inner.iter_mut().enumerate() {
            for (line, inner_line) in inner.lines.iter_mut().enumerate() {
                inner_line.memory = self.outer.lines[line].remotes[number].copy.clone();
            }
        }
    }

    /// The permission that requests of a cluster wait for, if it exceeds that of the outer copy; otherwise none.
    fn needed_permission(&self, levels: &Levels, number: u8, line: u8) -> Permission {
        let inner = &self.inner[usize::from(number)];
        let cluster = levels.cluster(number);
        let held = levels.permission(self, number, line);
        let arrivals = inner.network.arrivals(cluster.system.protocol);
        let flights = arrivals.filter_map(|arrival| inner.network.at(arrival));
        let waiting = flights.filter(|flight| flight.line == line && flight.to.is_none());
        let needed = waiting.map(|flight| cluster.needs[flight.message.index()]);
        needed
            .filter(|&permission| permission > held)
            .max()
            .unwrap_or(Permission::None)
    }

    /// Permission that an outer step from `self` to `next` leaves to the outer cache whose row it runs, if it lowers
    /// it. A row that sends the line on leaves at most read permission.
    fn lowered_permission(
        &self,
        levels: &Levels,
        number: u8,
        line: u8,
        next: &Clusters<D>,
    ) -> Option<Permission> {
        let (permission_before, permission_after) = (
            levels.permission(self, number, line),
            levels.permission(next, number, line),
        );
        let sent_lines = |clusters: &Clusters<D>| {
            let flights = clusters.outer.network.flights();
            let sent_lines = flights.filter(|flight| {
                (flight.from, flight.line) == (Some(number), line)
                    && matches!(flight.carried, Payload::Line(_))
            });
            sent_lines.count()
        };
        let sends_line = sent_lines(next) > sent_lines(self);
        hierarchy::lowered_permission(permission_before, permission_after, sends_line)
    }

    /// True if the outer level has requested no local operation of the line, and holds no lock on it.
    fn is_unreserved(&self, number: u8, line: u8) -> bool {
        let line_state = &self.inner[usize::from(number)].lines[usize::from(line)];
        line_state.requested.is_none()
            && line_state.accepted.is_none()
            && line_state.lock == Lock::Unlocked
    }

    /// True if a cluster allows the outer permission to fall to `permission`: an untracked one if its home is in a stable
    /// state and has deferred no store, any other if its home holds a lock.
    fn may_lower(&self, levels: &Levels, number: u8, line: u8, permission: Permission) -> bool {
        let cluster = levels.cluster(number);
        let line_state = &self.inner[usize::from(number)].lines[usize::from(line)];
        if !cluster.is_tracked() {
            let home_state = usize::from(line_state.home.state);
            return cluster.system.home.states[home_state].is_stable()
                && line_state.deferred_store.is_none();
        }
        match line_state.lock {
            Lock::Held(Permission::Write) => hierarchy::lock_permits(Permission::None, permission),
            Lock::Held(_) => hierarchy::lock_permits(Permission::Read, permission),
            Lock::Unlocked | Lock::Unlocking => false,
        }
    }

    /// The outer cache and line whose row an outer step runs.
    pub(super) fn cache_and_line(&self, step: Step) -> Option<(u8, u8)> {
        match step {
            Step::Access(line, remote, _) | Step::Hit(line, remote) => Some((remote, line)),
            Step::Deliver(arrival) | Step::DeliverChoosing(arrival, _) => {
                let flight = self.outer.network.at(arrival)?;
                Some((flight.to?, flight.line))
            }
            _ => None,
        }
    }

    /// Applies an outer step without regard to the inner systems. Returns false if it is blocked.
    fn outer_step(&mut self, levels: &Levels, step: Step) -> Result<bool, StepError> {
        let is_taken = self.outer.take(&levels.outer, step)?;
        self.copy_outer_lines();
        Ok(is_taken)
    }

    /// Applies a step of the outer system. Returns false if it is blocked, for example because it lowers a permission
    /// and the inner home holds no lock that allows this.
    pub(super) fn take_outer(&mut self, levels: &Levels, step: Step) -> Result<bool, StepError> {
        let Some((number, line)) = self.cache_and_line(step) else {
            return self.outer_step(levels, step);
        };
        match step {
            Step::Hit(..) => return Ok(false),
            Step::Access(_, _, access) => {
                let is_unreserved = self.is_unreserved(number, line);
                let needed = self.needed_permission(levels, number, line);
                let can_begin = match access {
                    Access::Load => is_unreserved && needed == Permission::Read,
                    Access::Store => is_unreserved && needed == Permission::Write,
                    // These accesses lower the permission, and need the lock.
                    Access::Evict | Access::Demote | Access::Clean => true,
                    _ => false,
                };
                if !can_begin {
                    return Ok(false);
                }
            }
            _ => {}
        }
        let mut next = self.clone();
        if !next.outer_step(levels, step)? {
            return Ok(false);
        }
        match self.lowered_permission(levels, number, line, &next) {
            Some(permission) if !self.may_lower(levels, number, line, permission) => {
                return Ok(false)
            }
            _ => {}
        }
        *self = next;
        Ok(true)
    }

    /// True if the outer level revokes permission to a line down to `to`: a message that does so has arrived, or the
    /// cache may evict the line.
    fn is_recalled(&self, levels: &Levels, number: u8, line: u8, to: Permission) -> bool {
        let evicts = [Access::Evict, Access::Demote, Access::Clean];
        let evicts = evicts.map(|access| Step::Access(line, number, access));
        let mut steps = evicts.into_iter();
        steps.any(|step| self.lowers_outer_to(levels, number, line, to, step))
            || self.is_recalled_by_message(levels, number, line, to)
    }

    /// Like [`Self::is_recalled`], for messages only.
    fn is_recalled_by_message(
        &self,
        levels: &Levels,
        number: u8,
        line: u8,
        to: Permission,
    ) -> bool {
        let arrivals = self.outer.network.arrivals(levels.outer.protocol);
        let mut steps = arrivals.map(Step::Deliver);
        steps.any(|step| self.lowers_outer_to(levels, number, line, to, step))
    }

    /// True if an outer step lowers the permission of an outer cache to `to`.
    fn lowers_outer_to(
        &self,
        levels: &Levels,
        number: u8,
        line: u8,
        to: Permission,
        step: Step,
    ) -> bool {
        let mut next = self.clone();
        self.cache_and_line(step) == Some((number, line))
            && next.outer_step(levels, step) == Ok(true)
            && self.lowered_permission(levels, number, line, &next) == Some(to)
    }

    /// True if a cache of either level evicts on its own initiative. An outer cache does so when it requests the lock
    /// on the caches below it; its access under that lock is a part of the same eviction.
    pub fn is_spontaneous_eviction(&self, levels: &Levels, step: LevelStep) -> bool {
        match step {
            LevelStep::Inner(number, Step::RequestLocal(line, local)) => {
                let to = levels.inner(number).home.locals[usize::from(local)].ensures;
                !self.is_recalled_by_message(levels, number, line, to)
            }
            LevelStep::Outer(Step::Access(_, _, Access::Load | Access::Store)) => false,
            LevelStep::Outer(Step::Access(line, number, _)) => self.is_unreserved(number, line),
            LevelStep::Outer(step) | LevelStep::Inner(_, step) => step.spontaneous(),
        }
    }

    /// Applies a step of the system below an outer cache, without its effect on the other systems. Returns whether the
    /// step was taken, and the line that a cache has written in it.
    pub(super) fn take_inner(
        &mut self,
        levels: &Levels,
        number: u8,
        step: Step,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<(bool, Option<u8>), StepError> {
        /// Result for a step that is blocked and writes nothing.
        const BLOCKED: (bool, Option<u8>) = (false, None);
        let inner = &self.inner[usize::from(number)];
        let cluster = levels.cluster(number);
        match step {
            // The outer level acts as the device: it revokes permission, and writes nothing itself.
            Step::DeviceWrite(_) => return Ok(BLOCKED),
            Step::RequestLocal(line, local) => {
                let operation = &cluster.system.home.locals[usize::from(local)];
                let to = operation.ensures;
                if !cluster.is_tracked()
                    || !operation.locks
                    || !self.is_unreserved(number, line)
                    || !self.is_recalled(levels, number, line, to)
                {
                    return Ok(BLOCKED);
                }
            }
            Step::Deliver(arrival) | Step::DeliverChoosing(arrival, _) => {
                let flight = inner.network.at(arrival);
                let must_wait = flight.is_some_and(|flight| {
                    let needs = cluster.needs[flight.message.index()];
                    flight.to.is_none() && needs > levels.permission(self, number, flight.line)
                });
                if must_wait {
                    return Ok(BLOCKED);
                }
            }
            _ => {}
        }
        let line_at = |arrival| inner.network.at(arrival).map_or(0, |flight| flight.line);
        let line = match step {
            Step::Access(line, ..)
            | Step::Hit(line, _)
            | Step::MemoryOperation(line)
            | Step::MemoryData(line, _)
            | Step::MemoryDone(line)
            | Step::RequestLocal(line, _)
            | Step::Local(line)
            | Step::Unlock(line)
            | Step::DeviceWrite(line)
            | Step::RaiseBacking(line, _)
            | Step::LowerBacking(line, _)
            | Step::ExternalWrite(line) => line,
            Step::Deliver(arrival) | Step::DeliverChoosing(arrival, _) => line_at(arrival),
            Step::StallAtHead(order) => line_at(Arrival::Ordered(order)),
        };
        let take = |system_state: &mut SystemState<D>| {
            system_state.take_recording(&cluster.system, step, completed)
        };
        self.apply_inner(levels, number, line, take)
    }

    /// Applies `apply` to the system below an outer cache, and updates the outer copy. Returns whether the step was
    /// taken, and the line that a cache has written in it.
    fn apply_inner(
        &mut self,
        levels: &Levels,
        number: u8,
        line: u8,
        apply: impl FnOnce(&mut SystemState<D>) -> Result<bool, StepError>,
    ) -> Result<(bool, Option<u8>), StepError> {
        let index = usize::from(number);
        let lines = levels.inner(number).lines;
        let memories = |system_state: &SystemState<D>| -> Vec<D::Copy> {
            system_state
                .lines
                .iter()
                .map(|line| line.memory.clone())
                .collect()
        };
        let (memories_before, data) =
            (memories(&self.inner[index]), self.inner[index].data.clone());
        for line in 0..lines {
            let writes = levels.permission(self, number, line) == Permission::Write;
            self.set_memory_writes(levels, number, line, writes);
        }
        let is_taken = apply(&mut self.inner[index])?;
        for line in 0..lines {
            // Two states are equal whatever the outer permission was when the home's guards last read it.
            self.set_memory_writes(levels, number, line, true);
        }
        if !is_taken {
            return Ok((false, None));
        }
        let memories_after = memories(&self.inner[index]);
        if self.inner[index].data != data {
            self.inner[index].data.clear_last_write();
            self.outer.mark_copies_stale(&levels.outer, line, true);
            let is_in_memory = {
                let memory = &memories_after[usize::from(line)];
                self.inner[index].data.is_current(line, memory)
            };
            for (line, memory) in memories_after.iter().enumerate() {
                self.outer.lines[line].remotes[index].copy = memory.clone();
            }
            // A store that the home has performed is one of the outer cache, too. Caches of an untracked cluster store
            // nothing themselves.
            if is_in_memory || !levels.cluster(number).is_tracked() {
                let memory = memories_after[usize::from(line)].clone();
                self.store_in_place(levels, number, line, memory)?;
            }
            return Ok((true, Some(line)));
        }
        for (line, (memory, old_memory)) in
            (0..).zip(memories_after.into_iter().zip(memories_before))
        {
            if memory != old_memory {
                self.store_in_place(levels, number, line, memory)?;
            }
        }
        Ok((true, None))
    }

    /// Propagates a write below an outer cache: copies elsewhere become stale, and all systems record the written data.
    fn propagate_write(&mut self, levels: &Levels, number: u8, line: u8) {
        let data = self.inner[usize::from(number)].data.clone();
        for (other, inner) in (0..).zip(&mut self.inner).filter(|(n, _)| *n != number) {
            inner.mark_copies_stale(levels.inner(other), line, true);
            inner.data.clone_from(&data);
        }
        if D::KEEPS_VALUES {
            self.outer.data = data;
        }
        // The memory of an untracked cluster's home is not marked with its copies.
        self.copy_outer_lines();
    }

    /// Begins an access of an inner cache, or performs it at once. Returns false if the access must be tried again;
    /// `self` is then unspecified.
    ///
    /// # Errors
    /// The access violates a property or exceeds a capacity.
    pub fn begin(
        &mut self,
        levels: &Levels,
        number: u8,
        (line, remote): (u8, u8),
        (access, value): (Access, D::Write),
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        let begin = |system_state: &mut SystemState<D>| {
            let system = levels.inner(number);
            system_state.begin(system, (line, remote), access, value, completed)
        };
        let (is_taken, wrote) = self.apply_inner(levels, number, line, begin)?;
        if let Some(line) = wrote {
            self.propagate_write(levels, number, line);
        }
        Ok(is_taken)
    }

    /// Applies a step, and appends the inner accesses that it completes to `completed`. Returns false if the step is
    /// blocked or a no-op; `self` is then unspecified.
    ///
    /// # Errors
    /// The step violates a property or exceeds a capacity.
    pub fn take_recording(
        &mut self,
        levels: &Levels,
        step: LevelStep,
        completed: &mut Vec<CompletedAccess<D>>,
    ) -> Result<bool, StepError> {
        match step {
            LevelStep::Outer(step) => self.take_outer(levels, step),
            LevelStep::Inner(number, step) => {
                let (is_taken, wrote) = self.take_inner(levels, number, step, completed)?;
                if let Some(line) = wrote {
                    self.propagate_write(levels, number, line);
                }
                Ok(is_taken)
            }
        }
    }

    /// Sets the variable `memory writes`, which the guards of an inner home read.
    fn set_memory_writes(&mut self, levels: &Levels, number: u8, line: u8, writes: bool) {
        if let Some(slot) = levels.inner(number).home_machine().memory_writes() {
            let home = &mut self.inner[usize::from(number)].lines[usize::from(line)].home;
            home.slots[slot] = u16::from(writes);
        }
    }

    /// Writes the memory of an inner home: the outer cache stores in place.
    fn store_in_place(
        &mut self,
        levels: &Levels,
        number: u8,
        line: u8,
        copy: D::Copy,
    ) -> Result<(), StepError> {
        if levels.permission(self, number, line) < Permission::Write {
            let description =
                "an inner home writes its memory, but its outer cache has no write permission";
            return Err(Violation::new("inclusion", description).into());
        }
        let remote_state = &mut self.outer.lines[usize::from(line)].remotes[usize::from(number)];
        remote_state.copy = copy;
        let trigger = Trigger {
            home: 0,
            event: Event::Access(Access::Store),
            sender: None,
            executing_remote: Some(number.into()),
            fields: &[],
        };
        let mut tables = &levels.outer.protocol.remote;
        let machine = levels.outer.remote_machine();
        match machine.step(&mut remote_state.configuration, trigger, &mut tables) {
            Ok(Outcome::Taken { acts, .. }) if acts.is_empty() => Ok(()),
            // Without a row, a store in a state with write permission is performed in place.
            Ok(Outcome::Unexpected) => Ok(()),
            _ => {
                let description =
                    "an outer cache with write permission does not perform a store in place";
                Err(Violation::new("inclusion", description).into())
            }
        }
    }
}

impl LevelStep {
    /// True if progress must not depend on the step.
    pub fn spontaneous(self) -> bool {
        match self {
            LevelStep::Outer(Step::Access(_, _, Access::Load | Access::Store)) => false,
            LevelStep::Outer(step) => step.spontaneous(),
            // The outer level requests permission back. If it does so to evict, progress must not depend on it.
            LevelStep::Inner(_, Step::RequestLocal(..)) => false,
            LevelStep::Inner(_, step) => step.spontaneous(),
        }
    }
}

impl<D: Data> Clusters<D> {
    /// Candidate steps. Some of them may turn out to be blocked.
    pub fn steps(&self, levels: &Levels) -> Vec<LevelStep> {
        let outer = self.outer.steps(&levels.outer);
        let mut steps: Vec<LevelStep> = outer.into_iter().map(LevelStep::Outer).collect();
        for (number, inner) in (0..).zip(&self.inner) {
            let inner = inner.steps(levels.inner(number)).into_iter();
            steps.extend(inner.map(|step| LevelStep::Inner(number, step)));
        }
        steps
    }

    /// Applies a step. Returns false if the step is blocked or a no-op; `self` is then unspecified.
    ///
    /// # Errors
    /// The step violates a property or exceeds a capacity.
    pub fn take(&mut self, levels: &Levels, step: LevelStep) -> Result<bool, StepError> {
        self.take_recording(levels, step, &mut Vec::new())
    }

    /// Checks the properties of the state.
    ///
    /// # Errors
    /// The first violated property.
    pub fn claims(&self, levels: &Levels) -> Result<(), Violation> {
        for line in 0..levels.outer.lines {
            let above = permissions(&self.outer, &levels.outer, line);
            let below = (0..)
                .zip(&self.inner)
                .map(|(number, inner)| LevelPermissions::of(inner, levels.inner(number), line));
            check_line(&above, below)?;
        }
        Ok(())
    }

    /// True if nothing is outstanding.
    pub fn quiescent(&self, levels: &Levels) -> bool {
        let mut inner = (0..).zip(&self.inner);
        self.outer.quiescent(&levels.outer)
            && inner.all(|(number, system_state)| system_state.quiescent(levels.inner(number)))
    }
}

/// Permission of each cache of a system to a line.
pub(super) fn permissions<D: Data>(
    system_state: &SystemState<D>,
    system: &System,
    line: u8,
) -> Vec<Permission> {
    let remotes = system_state.lines[usize::from(line)].remotes.iter();
    remotes
        .map(|remote| system.permission(&remote.configuration))
        .collect()
}

/// Combined permissions of a cluster's caches to a line, as far as the checks of two levels need them. An untracked
/// cluster has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LevelPermissions {
    /// Highest permission of any cache.
    highest: Permission,
    /// Number of caches with any permission.
    holders: usize,
    /// True if one of these holds a stale copy.
    has_stale_copy: bool,
    /// True if the home of an untracked cluster has read a stale line.
    has_stale_read: bool,
    /// True if the memory of an untracked cluster's home, the outer copy, is stale. In any other cluster, a cache may
    /// have written the line.
    has_stale_memory: bool,
}

impl LevelPermissions {
    /// Summary of the permissions and copies of all remotes of one system for a line.
    pub(super) fn of<D: Data>(
        system_state: &SystemState<D>,
        system: &System,
        line: u8,
    ) -> LevelPermissions {
        let line_state = &system_state.lines[usize::from(line)];
        let is_stale = |copy: &D::Copy| !system_state.data.is_current(line, copy);
        if !system.protocol.guarantee.coherent {
            let mut flights = system_state.network.flights();
            // Without staleness in the data, copies that were read earlier cannot be distinguished from stale ones.
            let has_stale_read = D::TRACKS_STALENESS
                && flights.any(|flight| {
                    flight.line == line
                        && flight.from.is_none()
                        && matches!(&flight.carried, Payload::Line(copy) if is_stale(copy))
                });
            return LevelPermissions {
                highest: Permission::None,
                holders: 0,
                has_stale_copy: false,
                has_stale_read,
                has_stale_memory: is_stale(&line_state.memory),
            };
        }
        let permissions = permissions(system_state, system, line);
        let remotes = system_state.lines[usize::from(line)]
            .remotes
            .iter()
            .zip(&permissions);
        let readable = permissions
            .iter()
            .filter(|permission| **permission > Permission::None);
        LevelPermissions {
            highest: permissions
                .iter()
                .copied()
                .max()
                .unwrap_or(Permission::None),
            holders: readable.count(),
            has_stale_copy: remotes.into_iter().any(|(remote, permission)| {
                *permission > Permission::None && is_stale(&remote.copy)
            }),
            has_stale_read: false,
            has_stale_memory: false,
        }
    }
}

/// Checks the properties of a line. `above` holds the permissions of the outer caches, `below` the summary of the
/// inner system below each of them.
pub(super) fn check_line(
    above: &[Permission],
    below: impl Iterator<Item = LevelPermissions> + Clone,
) -> Result<(), Violation> {
    if below
        .clone()
        .zip(above)
        .any(|(held, outer)| held.highest > *outer)
    {
        let description = "an inner cache has more permission than its outer cache";
        return Err(Violation::new("inclusion", description));
    }
    let highest = |permissions: &mut dyn Iterator<Item = Permission>| {
        permissions.max().unwrap_or(Permission::None)
    };
    let holders = above
        .iter()
        .filter(|permission| **permission > Permission::None)
        .count();
    let two_above = highest(&mut above.iter().copied()) == Permission::Write && holders > 1;
    let holders: usize = below.clone().map(|held| held.holders).sum();
    let two_below =
        highest(&mut below.clone().map(|held| held.highest)) == Permission::Write && holders > 1;
    if two_above || two_below {
        let description = "another agent still has read or write permission";
        return Err(Violation::new("single writer", description));
    }
    if below.clone().any(|held| held.has_stale_copy) {
        return Err(Violation::data_value("a readable copy is stale"));
    }
    let mut readable = above
        .iter()
        .map(|permission| *permission > Permission::None);
    let mut untracked = below.clone();
    if untracked.any(|held| readable.next() == Some(true) && held.has_stale_memory) {
        let description = "an outer copy that caches without coherence may read is stale";
        return Err(Violation::data_value(description));
    }
    if below.into_iter().any(|held| held.has_stale_read) {
        let description = "the home of caches without coherence has read a stale line";
        return Err(Violation::data_value(description));
    }
    Ok(())
}
