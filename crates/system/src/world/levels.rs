//! Two levels of caches: homes whose memory is a copy that a cache of another protocol holds.
//!
//! Each cache of the outer world stands over an inner world of its own. Nothing is written to join them; what is between
//! them follows from rights:
//!
//! * a request is taken by the inner home only where the outer copy has the right that it needs; until then it waits, and
//!   the outer access that brings the right begins;
//! * the memory of the inner home is the outer copy; a write of it is a store in place of the outer cache;
//! * what lowers the outer right is held until the inner home has run a locking local operation that ensures as much;
//! * while one is wanted or held, no outer access begins.
//!
//! So an inner transaction that has begun needs nothing from outside, and what waits holds nothing.
//!
//! Each was left out in turn, with the rest as it is, for two L2s of `mesi.coh` with one L1 of `mesi-l1.coh` each: without
//! one of the first three inclusion, the data value or drain breaks. Without the last nothing does, in 88,936 states for
//! 65,463: it is caution, as a right that grows takes nothing from those below, and the lock still holds what lowers it.

use cohkit_protocol::controller::{Access, Event};
use cohkit_protocol::execute::{Occasion, Outcome};
use cohkit_protocol::protocol::Right;

use super::explore::Explored;
use super::{Ended, Lock, Step, System, World, Wrong};
use crate::agent::Violation;
use crate::data::{Data, Extent};
use crate::over;

/// The bit of [`crate::data::Current`], and whether a write was performed in the step at hand: in other worlds copies are old then.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Shared {
    wrote: bool,
}

impl Data for Shared {
    type Copy = bool;
    type Write = ();
    const KEEPS: bool = false;
    const AGES: bool = true;

    fn new(_lines: u8) -> Shared {
        Shared { wrote: false }
    }

    fn initial(&self, _line: u8) -> bool {
        true
    }

    fn current(&self, _line: u8, copy: &bool) -> bool {
        *copy
    }

    fn write(&mut self, _line: u8, on: &bool, extent: Extent, _what: &()) -> bool {
        self.wrote = true;
        *on || extent == Extent::Whole
    }

    fn aged(_copy: &bool) -> bool {
        false
    }

    fn told(&mut self) {
        self.wrote = false;
    }
}

/// What does not change in a system of two levels.
pub struct Levels<'p> {
    /// The protocol of the shared caches.
    pub outer: System<'p>,
    /// That of the caches below each of them; each has so many.
    pub inner: System<'p>,
    /// Of each message of the inner protocol, the right to the outer copy without which the home does not take it.
    needs: Vec<Right>,
}

impl<'p> Levels<'p> {
    /// Joins two systems of as many lines: each remote of the outer one stands over a whole of the inner one.
    pub fn new(outer: System<'p>, inner: System<'p>) -> Levels<'p> {
        let messages = inner.protocol.message_ids();
        let needs = messages
            .map(|message| over::needs(inner.protocol, message))
            .collect();
        Levels {
            outer,
            inner,
            needs,
        }
    }

    /// What an outer cache may do with a line.
    fn right<D: Data>(&self, clusters: &Clusters<D>, number: u8, line: u8) -> Right {
        let place = &clusters.outer.lines[usize::from(line)].remotes[usize::from(number)];
        self.outer.right(&place.configuration)
    }
}

/// Everything at some moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Clusters<D: Data = Shared> {
    /// The world of the outer caches.
    pub outer: World<D>,
    /// What is below each outer cache.
    pub inner: Vec<World<D>>,
}

/// Something that may happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LevelStep {
    /// In the outer world. An access to load or store is one that a request waits for.
    Outer(Step),
    /// In the world below this outer cache.
    Inner(u8, Step),
}

impl<D: Data> Clusters<D> {
    /// Where everything begins: the outer caches have nothing, and so the inner homes have no memory.
    pub fn new(levels: &Levels) -> Clusters<D> {
        let inner = (0..levels.outer.remotes).map(|_| World::new(&levels.inner));
        let mut clusters = Clusters {
            outer: World::new(&levels.outer),
            inner: inner.collect(),
        };
        clusters.join();
        clusters
    }

    /// The same with other numbers for the outer caches, and for those below each of them.
    pub fn renamed(&self, levels: &Levels, above: &[u8], below: &[&[u8]]) -> Clusters<D> {
        let mut after = Clusters {
            outer: self.outer.renamed(&levels.outer, above),
            inner: self.inner.clone(),
        };
        for ((inner, &number), below) in self.inner.iter().zip(above).zip(below) {
            after.inner[usize::from(number)] = inner.renamed(&levels.inner, below);
        }
        after
    }

    /// The memory of the inner homes is what the outer caches hold.
    fn join(&mut self) {
        for (number, inner) in self.inner.iter_mut().enumerate() {
            for (line, place) in inner.lines.iter_mut().enumerate() {
                place.memory = self.outer.lines[line].remotes[number].copy.clone();
            }
        }
    }

    /// Whether a request of a cluster waits for more than the outer copy's right, and for which.
    fn wanted(&self, levels: &Levels, number: u8, line: u8) -> Right {
        let inner = &self.inner[usize::from(number)];
        let has = levels.right(self, number, line);
        let arrivals = inner.network.arrivals(levels.inner.protocol);
        let flights = arrivals.filter_map(|arrival| inner.network.at(arrival));
        let waiting = flights.filter(|flight| flight.line == line && flight.to.is_none());
        let needs = waiting.map(|flight| levels.needs[flight.message.index()]);
        needs
            .filter(|&right| right > has)
            .max()
            .unwrap_or(Right::None)
    }

    /// What a step of the outer world would leave of the right of an outer cache, whose row it runs: less if it sends the
    /// line on. `None` if it does not lower the right.
    fn lowers(&self, levels: &Levels, number: u8, line: u8, after: &Clusters<D>) -> Option<Right> {
        let (before, left) = (
            levels.right(self, number, line),
            levels.right(after, number, line),
        );
        let sent = after.outer.network.flights().filter(|flight| {
            flight.from == Some(number)
                && flight.line == line
                && matches!(flight.carried, super::Carried::Line(_))
        });
        let had = self.outer.network.flights().filter(|flight| {
            flight.from == Some(number)
                && flight.line == line
                && matches!(flight.carried, super::Carried::Line(_))
        });
        over::lowers(before, left, sent.count() > had.count())
    }

    /// Whether no lock of the outer level is wanted or held.
    fn free(&self, number: u8, line: u8) -> bool {
        let place = &self.inner[usize::from(number)].lines[usize::from(line)];
        place.asked.is_none() && place.accepted.is_none() && place.lock == Lock::Open
    }

    /// Whether the lock that an inner home holds lets the outer right go down to this.
    fn locked_for(&self, number: u8, line: u8, right: Right) -> bool {
        match self.inner[usize::from(number)].lines[usize::from(line)].lock {
            Lock::Held(Right::Write) => over::lets(Right::None, right),
            Lock::Held(_) => over::lets(Right::Read, right),
            Lock::Open | Lock::GivenBack => false,
        }
    }

    /// The outer cache and line whose row an outer step runs.
    pub(super) fn at(&self, step: Step) -> Option<(u8, u8)> {
        match step {
            Step::Access(line, remote, _) | Step::Hit(line, remote) => Some((remote, line)),
            Step::Arrives(arrival) | Step::Chooses(arrival, _) => {
                let flight = self.outer.network.at(arrival)?;
                Some((flight.to?, flight.line))
            }
            _ => None,
        }
    }

    /// The outer step, without regard to the levels below. False if it has to wait.
    fn outer_step(&mut self, levels: &Levels, step: Step) -> Result<bool, Wrong> {
        let taken = self.outer.take(&levels.outer, step)?;
        self.join();
        Ok(taken)
    }

    pub(super) fn take_outer(&mut self, levels: &Levels, step: Step) -> Result<bool, Wrong> {
        let Some((number, line)) = self.at(step) else {
            return self.outer_step(levels, step);
        };
        match step {
            Step::Hit(..) => return Ok(false),
            Step::Access(_, _, access) => {
                let free = self.free(number, line);
                let wanted = self.wanted(levels, number, line);
                let begins = match access {
                    Access::Load => free && wanted == Right::Read,
                    Access::Store => free && wanted == Right::Write,
                    // These lower the right, and need the lock.
                    Access::Evict | Access::Demote | Access::Clean => true,
                    _ => false,
                };
                if !begins {
                    return Ok(false);
                }
            }
            _ => {}
        }
        let mut after = self.clone();
        if !after.outer_step(levels, step)? {
            return Ok(false);
        }
        match self.lowers(levels, number, line, &after) {
            Some(right) if !self.locked_for(number, line, right) => return Ok(false),
            _ => {}
        }
        *self = after;
        Ok(true)
    }

    /// Whether the outer level wants a line back so far: a message that takes it is there, or the cache may evict it.
    fn recalled(&self, levels: &Levels, number: u8, line: u8, to: Right) -> bool {
        let evicts = [Access::Evict, Access::Demote, Access::Clean];
        let evicts = evicts.map(|access| Step::Access(line, number, access));
        let mut steps = evicts.into_iter();
        steps.any(|step| self.takes_to(levels, number, line, to, step))
            || self.called_back(levels, number, line, to)
    }

    /// The same by a message.
    fn called_back(&self, levels: &Levels, number: u8, line: u8, to: Right) -> bool {
        let arrivals = self.outer.network.arrivals(levels.outer.protocol);
        let mut steps = arrivals.map(Step::Arrives);
        steps.any(|step| self.takes_to(levels, number, line, to, step))
    }

    /// Whether an outer step lowers the right of an outer cache so far.
    fn takes_to(&self, levels: &Levels, number: u8, line: u8, to: Right, step: Step) -> bool {
        let mut after = self.clone();
        self.at(step) == Some((number, line))
            && after.outer_step(levels, step) == Ok(true)
            && self.lowers(levels, number, line, &after) == Some(to)
    }

    /// Whether a cache of either level gives up what it was not asked for. An outer one does once caches below it are kept
    /// off a line, and what it does under that lock is the same thing.
    pub fn gives_up(&self, levels: &Levels, step: LevelStep) -> bool {
        match step {
            LevelStep::Inner(number, Step::Asks(line, local)) => {
                let to = levels.inner.home.locals[usize::from(local)].ensures;
                !self.called_back(levels, number, line, to)
            }
            LevelStep::Outer(Step::Access(_, _, Access::Load | Access::Store)) => false,
            LevelStep::Outer(Step::Access(line, number, _)) => self.free(number, line),
            LevelStep::Outer(step) | LevelStep::Inner(_, step) => step.spontaneous(),
        }
    }

    /// Steps of the world below an outer cache, without what they mean for those below others: whether it is taken, and the
    /// line that a cache has written by it.
    pub(super) fn take_inner(
        &mut self,
        levels: &Levels,
        number: u8,
        step: Step,
        ended: &mut Vec<Ended<D>>,
    ) -> Result<(bool, Option<u8>), Wrong> {
        const WAITS: (bool, Option<u8>) = (false, None);
        let inner = &self.inner[usize::from(number)];
        match step {
            // The outer level is the device: it takes back what it wants back, and writes nothing itself.
            Step::Writes(_) => return Ok(WAITS),
            Step::Asks(line, local) => {
                let about = &levels.inner.home.locals[usize::from(local)];
                let to = about.ensures;
                if !about.locks
                    || !self.free(number, line)
                    || !self.recalled(levels, number, line, to)
                {
                    return Ok(WAITS);
                }
            }
            Step::Arrives(arrival) | Step::Chooses(arrival, _) => {
                let flight = inner.network.at(arrival);
                let waits = flight.is_some_and(|flight| {
                    let needs = levels.needs[flight.message.index()];
                    flight.to.is_none() && needs > levels.right(self, number, flight.line)
                });
                if waits {
                    return Ok(WAITS);
                }
            }
            _ => {}
        }
        let line = match step {
            Step::Access(line, ..) | Step::Hit(line, _) => line,
            Step::Arrives(arrival) | Step::Chooses(arrival, _) => {
                inner.network.at(arrival).map_or(0, |f| f.line)
            }
            _ => 0,
        };
        let take = |world: &mut World<D>| world.take_and_tell(&levels.inner, step, ended);
        self.below(levels, number, line, take)
    }

    /// Something happens in the world below an outer cache, at a line: whether it does, and whether a cache writes the line.
    fn below(
        &mut self,
        levels: &Levels,
        number: u8,
        line: u8,
        happens: impl FnOnce(&mut World<D>) -> Result<bool, Wrong>,
    ) -> Result<(bool, Option<u8>), Wrong> {
        let own = usize::from(number);
        let memories = |world: &World<D>| -> Vec<D::Copy> {
            world.lines.iter().map(|line| line.memory.clone()).collect()
        };
        let (before, data) = (memories(&self.inner[own]), self.inner[own].data.clone());
        for line in 0..levels.inner.lines {
            let writes = levels.right(self, number, line) == Right::Write;
            self.memory_writes(levels, own, line, writes);
        }
        let taken = happens(&mut self.inner[own])?;
        for line in 0..levels.inner.lines {
            // A state is the same whatever the outer right was when the home was last asked.
            self.memory_writes(levels, own, line, true);
        }
        if !taken {
            return Ok((false, None));
        }
        let after = memories(&self.inner[own]);
        if self.inner[own].data != data {
            self.inner[own].data.told();
            self.outer.age(&levels.outer, line, true);
            for (line, memory) in after.into_iter().enumerate() {
                self.outer.lines[line].remotes[own].copy = memory;
            }
            return Ok((true, Some(line)));
        }
        for (line, (memory, before)) in (0..).zip(after.into_iter().zip(before)) {
            if memory != before {
                self.store(levels, number, line, memory)?;
            }
        }
        Ok((true, None))
    }

    /// A line was written below an outer cache: copies elsewhere are old, and all worlds know what was written.
    fn spread(&mut self, levels: &Levels, number: u8, line: u8) {
        let data = self.inner[usize::from(number)].data.clone();
        for (_, inner) in (0..).zip(&mut self.inner).filter(|(n, _)| *n != number) {
            inner.age(&levels.inner, line, true);
            inner.data.clone_from(&data);
        }
        if D::KEEPS {
            self.outer.data = data;
        }
    }

    /// A cache below an outer one begins an access that somebody wants, or performs it at once. False, with this as it was
    /// or spoilt, if it has to be tried again.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn begin(
        &mut self,
        levels: &Levels,
        number: u8,
        (line, remote): (u8, u8),
        (access, what): (Access, D::Write),
        ended: &mut Vec<Ended<D>>,
    ) -> Result<bool, Wrong> {
        let begin =
            |world: &mut World<D>| world.begin(&levels.inner, (line, remote), access, what, ended);
        let (taken, wrote) = self.below(levels, number, line, begin)?;
        if let Some(line) = wrote {
            self.spread(levels, number, line);
        }
        Ok(taken)
    }

    /// Lets something happen, telling which accesses below have ended. False, with this as it was or spoilt, if it has to
    /// wait or would change nothing.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn take_and_tell(
        &mut self,
        levels: &Levels,
        step: LevelStep,
        ended: &mut Vec<Ended<D>>,
    ) -> Result<bool, Wrong> {
        match step {
            LevelStep::Outer(step) => self.take_outer(levels, step),
            LevelStep::Inner(number, step) => {
                let (taken, wrote) = self.take_inner(levels, number, step, ended)?;
                if let Some(line) = wrote {
                    self.spread(levels, number, line);
                }
                Ok(taken)
            }
        }
    }

    /// What `memory writes` is in the guards of an inner home.
    fn memory_writes(&mut self, levels: &Levels, own: usize, line: u8, writes: bool) {
        if let Some(slot) = levels.inner.home_machine().memory_writes() {
            let home = &mut self.inner[own].lines[usize::from(line)].home;
            home.slots[slot] = u16::from(writes);
        }
    }

    /// The memory of an inner home is written: the outer cache stores in place.
    fn store(&mut self, levels: &Levels, number: u8, line: u8, copy: D::Copy) -> Result<(), Wrong> {
        if levels.right(self, number, line) < Right::Write {
            let what = "an inner home writes its memory, which the outer cache may not";
            return Err(Violation::new("inclusion", what).into());
        }
        let place = &mut self.outer.lines[usize::from(line)].remotes[usize::from(number)];
        place.copy = copy;
        let occasion = Occasion {
            home: 0,
            event: Event::Access(Access::Store),
            sender: None,
            own: Some(number.into()),
            fields: &[],
        };
        let mut tables = &levels.outer.protocol.remote;
        let machine = levels.outer.remote_machine();
        match machine.step(&mut place.configuration, occasion, &mut tables) {
            Ok(Outcome::Taken { acts, .. }) if acts.is_empty() => Ok(()),
            // Without a row a store in a state with the right is performed in place.
            Ok(Outcome::Unexpected) => Ok(()),
            _ => {
                let what = "an outer cache that may write has a row for a store which does more";
                Err(Violation::new("inclusion", what).into())
            }
        }
    }
}

impl<'p, D: Data> Explored<Levels<'p>> for Clusters<D> {
    type Step = LevelStep;

    fn steps(&self, levels: &Levels<'p>) -> Vec<LevelStep> {
        let outer = self.outer.steps(&levels.outer);
        let mut steps: Vec<LevelStep> = outer.into_iter().map(LevelStep::Outer).collect();
        for (number, inner) in (0..).zip(&self.inner) {
            let inner = inner.steps(&levels.inner).into_iter();
            steps.extend(inner.map(|step| LevelStep::Inner(number, step)));
        }
        steps
    }

    fn take(&mut self, levels: &Levels<'p>, step: LevelStep) -> Result<bool, Wrong> {
        self.take_and_tell(levels, step, &mut Vec::new())
    }

    fn spontaneous(step: LevelStep) -> bool {
        match step {
            LevelStep::Outer(Step::Access(_, _, Access::Load | Access::Store)) => false,
            LevelStep::Outer(step) => step.spontaneous(),
            // The outer level wants something back; that it does so to evict, nothing may rely on.
            LevelStep::Inner(_, Step::Asks(..)) => false,
            LevelStep::Inner(_, step) => step.spontaneous(),
        }
    }

    fn claims(&self, levels: &Levels<'p>) -> Result<(), Violation> {
        for line in 0..levels.outer.lines {
            let above = rights(&self.outer, &levels.outer, line);
            let below = self.inner.iter().map(|w| Held::of(w, &levels.inner, line));
            judge(&above, below)?;
        }
        Ok(())
    }

    fn quiescent(&self, levels: &Levels<'p>) -> bool {
        let mut inner = self.inner.iter();
        self.outer.quiescent(&levels.outer) && inner.all(|world| world.quiescent(&levels.inner))
    }
}

/// What the caches of a world may do with a line, one by one.
pub(super) fn rights<D: Data>(world: &World<D>, system: &System, line: u8) -> Vec<Right> {
    let remotes = world.lines[usize::from(line)].remotes.iter();
    remotes.map(|r| system.right(&r.configuration)).collect()
}

/// What the caches of a world may do with a line, together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Held {
    /// The most that one may.
    most: Right,
    /// How many may do something.
    holders: usize,
    /// Whether one of these has an old copy.
    old: bool,
}

impl Held {
    pub(super) fn of<D: Data>(world: &World<D>, system: &System, line: u8) -> Held {
        let rights = rights(world, system, line);
        let remotes = world.lines[usize::from(line)].remotes.iter().zip(&rights);
        let held = rights.iter().filter(|right| **right > Right::None);
        Held {
            most: rights.iter().copied().max().unwrap_or(Right::None),
            holders: held.count(),
            old: remotes
                .into_iter()
                .any(|(r, right)| *right > Right::None && !world.data.current(line, &r.copy)),
        }
    }
}

/// What must hold of a line: `above` are the rights of the outer caches, `below` what is below each of them.
pub(super) fn judge(
    above: &[Right],
    below: impl Iterator<Item = Held> + Clone,
) -> Result<(), Violation> {
    if below
        .clone()
        .zip(above)
        .any(|(held, outer)| held.most > *outer)
    {
        let what = "an inner cache has a right that the outer one has not";
        return Err(Violation::new("inclusion", what));
    }
    let most = |rights: &mut dyn Iterator<Item = Right>| rights.max().unwrap_or(Right::None);
    let holders = above.iter().filter(|right| **right > Right::None).count();
    let two_above = most(&mut above.iter().copied()) == Right::Write && holders > 1;
    let holders: usize = below.clone().map(|held| held.holders).sum();
    let two_below = most(&mut below.clone().map(|held| held.most)) == Right::Write && holders > 1;
    if two_above || two_below {
        let what = "a right to write is not alone";
        return Err(Violation::new("single writer", what));
    }
    if below.into_iter().any(|held| held.old) {
        return Err(Violation::data_value("a copy that may be read is old"));
    }
    Ok(())
}
