//! Invariants and quiescence of a system.

use cohkit_protocol::protocol::{Amount, Claim, Comparison};

use super::layout::{lock, slot, Storage, System};
use super::SystemError;
use cohkit_engine::model::{Expr, Place, Violation};

impl<'p> System<'p> {
    /// Adds invariants and quiescence.
    pub fn properties(&mut self) -> Result<(), SystemError> {
        if self.remotes > 1 && self.facts.coherent {
            let single_writer = self.for_all_lines(Self::single_writer);
            let violation = Violation::new(
                "single writer",
                "another agent still has read or write permission",
            );
            self.build.invariant(violation, single_writer);
        }
        if self.facts.coherent {
            let current = self.for_all_lines(Self::copies_are_current);
            let violation = Violation::new("data value", "a readable copy is stale");
            self.build.invariant(violation, current);
        }
        if self.device.is_some() {
            let excludes = self.for_all_lines(Self::locks_exclude);
            let violation = Violation::new(
                "single writer",
                "a remote has a permission that the lock excludes",
            );
            self.build.invariant(violation, excludes);
            let current = self.for_all_lines(Self::locked_memory_is_current);
            let violation = Violation::new(
                "data value",
                "memory is stale while the device holds the lock",
            );
            self.build.invariant(violation, current);
        }
        self.add_inclusion_invariant();
        for invariant in &self.protocol.invariants {
            let holds = self.for_all_lines(|system, line| system.claim(&invariant.claim, line));
            self.build.invariant(&invariant.name, holds);
        }
        if let Some(bound) = self.protocol.bounds.in_flight {
            let limit = i32::from(bound.limit);
            let holds = self.for_all_lines(|system, line| {
                let counts = (0..system.remotes).map(|r| system.in_flight_of(line, r).le(limit));
                Expr::conjunction(counts.collect::<Vec<_>>())
            });
            self.build.invariant(bound.violation_name(), holds);
        }
        let idle = self.for_all_lines(Self::idle);
        let is_nonempty = |_: &mut Self, place: Place| place.field("length").gt(0);
        let mut empty = Vec::new();
        for queue in 0..self.queues.len() {
            let several = self.queues[queue].per_line || self.protocol.homes > 1;
            empty.push(match several {
                true => {
                    self.for_all_lines(|s, line| !s.any_queue(queue, line, &mut { is_nonempty }))
                }
                // All lines share the queue.
                false => !self.any_queue(queue, &Expr::Int(0), &mut { is_nonempty }),
            });
        }
        self.build
            .quiescent(empty.into_iter().fold(idle, Expr::and));
        Ok(())
    }

    pub fn for_all_lines(&mut self, claim: impl FnOnce(&mut Self, &Expr) -> Expr) -> Expr {
        self.with_bound(self.line_type, |system, l| {
            l.all(claim(system, &Expr::from(l)))
        })
    }

    fn single_writer(&mut self, line: &Expr) -> Expr {
        let right = self.remote.right;
        let state = self.remote.state.at(line);
        let right_of = |r: cohkit_engine::model::VariableId| right.of(state.clone().at(r));
        let ty = self.remote_type;
        self.with_bound(ty, |system, r| {
            system.with_bound(ty, |_, other| {
                let others_have_none = other.all(other.is_not(r).implies(right_of(other).is(0)));
                r.all(right_of(r).is(2).implies(others_have_none))
            })
        })
    }

    fn copies_are_current(&mut self, line: &Expr) -> Expr {
        let readable = self.remote.right;
        let (state, current) = (self.remote.state.at(line), self.current.at(line));
        self.with_bound(self.remote_type, |_, r| {
            let reads = readable.of(state.at(r)).gt(0);
            r.all(reads.implies(current.at(r)))
        })
    }

    /// True if the device holds a lock of this level, or of any level if none is given.
    fn locked(&self, line: &Expr, level: Option<u32>) -> Expr {
        let Some(device) = self.device else {
            return Expr::Bool(false);
        };
        let lock_state = device.lock.at(line);
        let is_level = |label: u32| lock_state.clone().is(device.locks.nth(label));
        match level {
            Some(level) => is_level(level),
            None => is_level(lock::READ).or(is_level(lock::WRITE)),
        }
    }

    fn locks_exclude(&mut self, line: &Expr) -> Expr {
        let right = self.remote.right;
        let state = self.remote.state.at(line);
        let right_of = |r: cohkit_engine::model::VariableId| right.of(state.clone().at(r));
        let ty = self.remote_type;
        let no_permission = self.with_bound(ty, |_, r| r.all(right_of(r).is(0)));
        let no_writer = self.with_bound(ty, |_, r| r.all(right_of(r).lt(2)));
        let write = self.locked(line, Some(lock::WRITE)).implies(no_permission);
        write.and(self.locked(line, Some(lock::READ)).implies(no_writer))
    }

    fn locked_memory_is_current(&mut self, line: &Expr) -> Expr {
        let locked = self
            .locked(line, None)
            .and(self.has_backing_permission(line));
        locked.implies(self.memory.at(line))
    }

    /// True if a line is quiescent, without regard to queues.
    fn idle(&mut self, line: &Expr) -> Expr {
        let stable = self.remote.stable;
        let state = self.remote.state.at(line);
        let mut idle = self
            .home
            .stable
            .of(self.home.state.at(line))
            .and(self.with_bound(self.remote_type, |_, r| r.all(stable.of(state.at(r)))));
        if let Some(deferred_store) = self.deferred_store {
            idle = idle.and(deferred_store.from.at(line).is(0));
        }
        if let Some(memory) = self.slot {
            idle = idle.and(memory.state.at(line).is(memory.states.nth(slot::IDLE)));
        }
        if let Some(device) = self.device {
            idle = idle
                .and(device.requested.at(line).is(0))
                .and(device.accepted.at(line).is(0))
                .and(device.lock.at(line).is(device.locks.nth(lock::NONE)));
        }
        for flow in 0..self.flows.len() {
            if let Storage::Counted(variable) = self.flows[flow].storage {
                let carries = self.carries_line(flow);
                let any_message = self.any_cell(flow, variable.at(line), &|place| {
                    if carries {
                        let current = place.clone().at(true).gt(0);
                        place.at(false).gt(0).or(current)
                    } else {
                        place.gt(0)
                    }
                });
                idle = idle.and(!any_message);
            }
        }
        idle
    }

    fn claim(&mut self, claim: &Claim, line: &Expr) -> Expr {
        match claim {
            Claim::Compare(a, comparison, b) => {
                let (a, b) = (self.amount(a, line), self.amount(b, line));
                match comparison {
                    Comparison::Equal => a.is(b),
                    Comparison::NotEqual => a.is_not(b),
                    Comparison::Less => a.lt(b),
                    Comparison::LessOrEqual => a.le(b),
                    Comparison::Greater => a.gt(b),
                    Comparison::GreaterOrEqual => a.ge(b),
                }
            }
            Claim::And(a, b) => self.claim(a, line).and(self.claim(b, line)),
            Claim::Or(a, b) => self.claim(a, line).or(self.claim(b, line)),
            Claim::Implies(a, b) => self.claim(a, line).implies(self.claim(b, line)),
            Claim::Not(a) => !self.claim(a, line),
            Claim::Locked => match self.device {
                Some(device) => device.lock.at(line).is_not(device.locks.nth(lock::NONE)),
                None => Expr::Bool(false),
            },
        }
    }

    fn amount(&mut self, amount: &Amount, line: &Expr) -> Expr {
        match amount {
            Amount::Constant(c) => Expr::Int((*c).into()),
            Amount::RemotesIn(states) => {
                let side = &self.remote;
                sum((0..self.remotes).map(|r| {
                    let state = side.state.at(line).at(r);
                    let in_states = states
                        .iter()
                        .map(|s| state.clone().is(side.states.nth(s.0.into())));
                    Expr::disjunction(in_states).as_number()
                }))
            }
            Amount::InFlight(messages) => {
                let flows: Vec<usize> = (0..self.flows.len()).collect();
                sum(flows.into_iter().map(|flow| {
                    if messages.contains(&self.flows[flow].message) {
                        self.count_flow(flow, line, None)
                    } else {
                        Expr::Int(0)
                    }
                }))
            }
        }
    }

    /// Number of messages in flight from or to one remote.
    fn in_flight_of(&mut self, line: &Expr, remote: i32) -> Expr {
        sum((0..self.flows.len()).map(|flow| self.count_flow(flow, line, Some(remote))))
    }

    /// Number of messages of a flow in flight; with `only`, those from or to this remote.
    fn count_flow(&mut self, flow: usize, line: &Expr, only: Option<i32>) -> Expr {
        let direction = self.flows[flow].direction;
        let indices = |is_remote: bool| match is_remote {
            true => (0..self.remotes).map(Some).collect(),
            false => vec![None],
        };
        let mut counts = Vec::new();
        for from in indices(direction.is_from_remote()) {
            for to in indices(direction.is_to_remote()) {
                if only.is_some() && from != only && to != only {
                    continue;
                }
                let (from, to) = (from.map(Expr::from), to.map(Expr::from));
                counts.push(match self.flows[flow].storage {
                    Storage::Counted(variable) => {
                        let place =
                            super::layout::ends(variable.at(line), from.as_ref(), to.as_ref());
                        self.count_cells(flow, place)
                    }
                    Storage::Queued(queue, label) if self.queues[queue].senders.is_some() => {
                        let homes = 0..i32::from(self.protocol.homes);
                        let places =
                            homes.map(|from| self.queue_between(queue, line, &from.into()));
                        sum(places.map(|place| self.count_queued(queue, label, place, line)))
                    }
                    Storage::Queued(queue, label) => {
                        let place = self.queue_at(queue, line, from.as_ref(), to.as_ref());
                        self.count_queued(queue, label, place, line)
                    }
                });
            }
        }
        sum(counts)
    }

    /// Number of messages in the cells of a counted flow below a place indexed by sender and receiver.
    pub fn count_cells(&self, flow: usize, place: Place) -> Expr {
        let mut places = vec![place];
        for &ty in &self.flows[flow].stored {
            let (lo, hi) = self.build.model().bounds(ty).unwrap_or((0, 0));
            places = places
                .into_iter()
                .flat_map(|place| (lo..=hi).map(move |value| place.clone().at(value)))
                .collect();
        }
        if self.carries_line(flow) {
            places = places
                .into_iter()
                .flat_map(|place| [place.clone().at(false), place.at(true)])
                .collect();
        }
        sum(places.into_iter().map(Expr::from))
    }

    /// Number of messages of one type and line in a queue.
    pub fn count_queued(&self, queue: usize, label: u32, place: Place, line: &Expr) -> Expr {
        let queue = &self.queues[queue];
        sum((0..queue.capacity).map(|i| {
            let entry = place.clone().field("slot").at(i);
            let kind = entry.clone().field("kind").is(queue.kinds.nth(label));
            kind.and(queue.about(&entry, line)).as_number()
        }))
    }
}

/// Maximum number of terms in one chain of a sum. Longer sums are added up in halves, as deep expressions are costly to
/// evaluate.
const MAX_TERMS: usize = 64;

/// Sum of numbers; 0 if there are none.
fn sum(numbers: impl IntoIterator<Item = Expr>) -> Expr {
    let mut numbers: Vec<Expr> = numbers.into_iter().collect();
    if numbers.len() > MAX_TERMS {
        let rest = numbers.split_off(numbers.len() / 2);
        return sum(numbers) + sum(rest);
    }
    numbers
        .into_iter()
        .reduce(|a, b| a + b)
        .unwrap_or(Expr::Int(0))
}
