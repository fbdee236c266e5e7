//! Lowering of pending stores: tickets, the program order of one line, and atomic accesses.
//!
//! [`cohkit_system::stores`] defines tickets, and shows that they are sufficient.

use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::MessageId;
use cohkit_system::agent;
use cohkit_system::plan::ProtocolFacts;
use cohkit_system::stores::{self, AtomicRead, StoreSend, Ticket};

use super::execution::Execution;
use super::expressions::Context;
use super::layout::{ends, Direction, SetAside, Sizes, Storage, System};
use super::tickets::{Stores, Tickets};
use cohkit_engine::build::{assert, choose, when, Builder};
use cohkit_engine::model::{Expr, Place, Stmt, TypeId, Violation};

impl Sizes {
    /// The variables of pending stores that a protocol needs.
    pub fn stores(
        &self,
        build: &mut Builder,
        (remote, states): (&str, TypeId),
        facts: &ProtocolFacts,
        ranks: u8,
    ) -> Stores {
        let mut variable = |needed: bool, name: &str, ty: TypeId| {
            let ty = needed.then(|| self.per_remote(build, name, ty))?;
            Some(build.state(format!("{remote}_{name}"), ty))
        };
        let performed = variable(facts.awaits_stores(), "store_performed", TypeId::BOOL);
        let mut counted = |needed: bool, name: &str, most: u8| {
            let ty = needed.then(|| build.range(name, 0, i32::from(most)))?;
            let ty = self.per_remote(build, name, ty);
            Some(build.state(format!("{remote}_{name}"), ty))
        };
        let posted = counted(facts.line_order, "posted_stores", ranks);
        let read = counted(facts.atomics(), "atomic_read", AtomicRead::Outdated as u8);
        let atomic_in = facts.atomics().then(|| {
            let values = facts.atomic_in.iter().map(|&atomic| i32::from(atomic));
            build.table("atomic_in", states, TypeId::BOOL, values)
        });
        Stores {
            ranks,
            performed,
            posted,
            read,
            atomic_in,
        }
    }
}

fn ticket(ticket: Ticket) -> i32 {
    i32::from(ticket.0)
}

fn order(what: &str) -> Violation {
    Violation::new(stores::PROGRAM_ORDER, what)
}

fn atomicity(what: &str) -> Violation {
    Violation::new(stores::ATOMICITY, what)
}

impl System<'_> {
    fn store_violation(&self, what: &str) -> Violation {
        Violation::new(agent::stores(&self.facts), what)
    }

    /// The ticket of a store that is sent, if the flow stores tickets. Adds the checks before the send to `before`, and
    /// the updates after it to `after`.
    pub fn store_is_sent(
        &mut self,
        moment: &mut Execution,
        flow: usize,
        (before, after): (&mut Vec<Stmt>, &mut Vec<Stmt>),
    ) -> Option<Expr> {
        let tickets = self.flows[flow].tickets?;
        let own = match (
            moment.send.take(),
            self.stores.posted,
            self.stores.performed,
        ) {
            (StoreSend::Repeated, ..) => ticket(Ticket::VOID).into(),
            (StoreSend::Posted, Some(posted), _) => {
                let posted = moment.context.part(posted);
                let ranks = i32::from(self.stores.ranks);
                let over = format!("more than {ranks} posted stores are pending");
                before.push(assert(Violation::limit(over), posted.clone().lt(ranks)));
                after.push(posted.clone().set(posted.clone() + 1));
                Expr::from(posted) + ticket(Ticket::POSTED)
            }
            (StoreSend::Posted, None, _) => ticket(Ticket::POSTED).into(),
            (StoreSend::Awaited, _, Some(performed)) => {
                let performed = Expr::from(moment.context.part(performed));
                performed.then(ticket(Ticket::VOID), ticket(Ticket::AWAITED))
            }
            (StoreSend::Awaited, _, None) => ticket(Ticket::VOID).into(),
        };
        tickets.ty.map(|_| own)
    }

    /// The home performs the store of the message that it consumes, or the deferred store.
    pub fn store_is_performed(
        &mut self,
        moment: &mut Execution,
        remote: &Option<Expr>,
        deferred: Option<SetAside>,
    ) -> Vec<Stmt> {
        let line = moment.context.line.clone();
        let Some(remote) = remote.as_ref().filter(|_| self.facts.stores_pending) else {
            return Vec::new();
        };
        // If this row has deferred the store, the deferred store is that of the current message.
        let own = moment.taking.as_ref().filter(|taking| match deferred {
            Some(_) => taking.deferred,
            None => true,
        });
        let (its, low, high) = match (own, deferred) {
            (Some(taking), _) => (taking.ticket.clone(), taking.low, taking.high),
            (None, Some(aside)) => {
                let highest = ticket(Ticket::posted(self.stores.ranks - 1));
                (aside.ticket.at(&line).into(), 0, highest)
            }
            (None, None) => (Expr::Int(0), 0, 0),
        };
        let mut out = Vec::new();
        let (posted, awaited) = (ticket(Ticket::POSTED), ticket(Ticket::AWAITED));
        let any =
            |of: fn(&cohkit_system::stores::Senders) -> bool| self.facts.senders.iter().any(of);
        let may_be_posted = high >= posted && any(|senders| senders.post);
        let may_be_awaited = low <= awaited && any(|senders| senders.wait);
        // Clear the place of the deferred ticket before other stores move up.
        let clears = deferred.map(|aside| aside.ticket.at(&line).set(0));
        let its = match (&clears, own) {
            (Some(_), None) => {
                let ty = self.tickets_type();
                let local = self.local("deferred ticket", ty);
                out.push(local.begin(its));
                Expr::from(local)
            }
            _ => its,
        };
        out.extend(clears);
        let of_posted = match may_be_posted {
            true => self.posted_is_performed(&line, remote, &its),
            false => Vec::new(),
        };
        let of_awaited = match may_be_awaited || !may_be_posted {
            true => self.awaited_is_performed(&line, remote, &its),
            false => Vec::new(),
        };
        match (may_be_posted, low >= posted) {
            (true, true) => out.extend(of_posted),
            (true, false) if of_awaited.is_empty() => {
                let twice = self.store_violation(stores::PERFORMED_TWICE);
                out.push(assert(twice, its.ge(posted)));
                out.extend(of_posted);
            }
            (true, false) => out.push(choose(its.ge(posted), of_posted, of_awaited)),
            (false, _) => out.extend(of_awaited),
        }
        if let Some(taking) = &mut moment.taking {
            if taking.deferred || deferred.is_none() {
                taking.performed();
            }
            // A store that this row has deferred is recorded at two places until the row ends.
            if let (true, None, Some(aside)) = (taking.deferred, deferred, self.aside) {
                out.push(aside.ticket.at(&line).set(0));
            }
        }
        out
    }

    fn posted_is_performed(&mut self, line: &Expr, remote: &Expr, its: &Expr) -> Vec<Stmt> {
        let Some(posted) = self.stores.posted else {
            return Vec::new();
        };
        let first = its.clone().is(ticket(Ticket::POSTED));
        let mut out = vec![assert(order(stores::STORE_REORDERED), first)];
        let posted = posted.at(line).at(remote);
        out.push(posted.clone().set(posted - 1));
        out.extend(self.shift_posted_ranks(line, remote));
        out
    }

    fn awaited_is_performed(&mut self, line: &Expr, remote: &Expr, its: &Expr) -> Vec<Stmt> {
        let twice = self.store_violation(stores::PERFORMED_TWICE);
        let valid = its.clone().is(ticket(Ticket::AWAITED));
        let mut out = vec![assert(twice, valid)];
        if let Some(posted) = self.stores.posted {
            let none = posted.at(line).at(remote).is(0);
            out.push(assert(order(stores::STORE_REORDERED), none));
        }
        if let Some(read) = self.stores.read {
            let read = read.at(line).at(remote);
            let outdated = read.clone().is(AtomicRead::Outdated as i32);
            out.push(assert(atomicity(stores::ATOMIC_INTERRUPTED), !outdated));
            out.push(read.set(AtomicRead::None as i32));
        }
        if let Some(performed) = self.stores.performed {
            out.push(performed.at(line).at(remote).set(true));
        }
        out.extend(self.awaited_are_void(line, remote));
        out
    }

    /// The type of all tickets.
    fn tickets_type(&mut self) -> TypeId {
        let highest = ticket(Ticket::posted(self.stores.ranks - 1));
        self.build.range("ticket", 0, highest)
    }

    /// The posted store of rank 0 has been performed: all others of the remote have one rank less.
    fn shift_posted_ranks(&mut self, line: &Expr, remote: &Expr) -> Vec<Stmt> {
        let first = ticket(Ticket::POSTED);
        if self.stores.ranks < 2 {
            return Vec::new();
        }
        self.change_tickets(
            line,
            remote,
            &|cells, tickets| {
                let shifted = (first + 1..=tickets.high)
                    .map(|at| cells.at(at - 1).set(cells.at(at)))
                    .collect::<Vec<_>>();
                let last = cells.at(tickets.high).set(0);
                match tickets.high > first {
                    true => shifted.into_iter().chain([last]).collect(),
                    false => Vec::new(),
                }
            },
            &|place| {
                let less = place.clone().set(place.clone() - 1);
                when(place.gt(first), vec![less])
            },
        )
    }

    /// Voids all messages of the store in progress.
    pub fn awaited_are_void(&mut self, line: &Expr, remote: &Expr) -> Vec<Stmt> {
        let (void, awaited) = (ticket(Ticket::VOID), ticket(Ticket::AWAITED));
        if !self.facts.awaits_stores() {
            return Vec::new();
        }
        self.change_tickets(
            line,
            remote,
            &|cells, tickets| {
                if tickets.low > void || tickets.ty.is_none() {
                    return Vec::new();
                }
                let (to, from) = (cells.at(void), cells.at(awaited));
                let moved = vec![to.clone().set(to + from.clone()), from.clone().set(0)];
                vec![when(from.gt(0), moved)]
            },
            &|place| when(place.clone().is(awaited), vec![place.set(void)]),
        )
    }

    /// Changes the tickets of all stores of a remote to a line, in counted flows, queues, and the deferred store.
    fn change_tickets(
        &mut self,
        line: &Expr,
        remote: &Expr,
        counted: &dyn Fn(&Cells, Tickets) -> Vec<Stmt>,
        single: &dyn Fn(Place) -> Stmt,
    ) -> Vec<Stmt> {
        let mut out = Vec::new();
        for flow in 0..self.flows.len() {
            let flight = &self.flows[flow];
            let (Some(tickets), Storage::Counted(variable)) = (flight.tickets, flight.storage)
            else {
                continue;
            };
            if tickets.ty.is_none() {
                continue;
            }
            let mut types = flight.stored.clone();
            let has_ordered_followers = flight.has_ordered_followers;
            if has_ordered_followers {
                types.pop();
            }
            types.pop();
            if flight.direction == Direction::Between {
                types.insert(0, self.remote_type);
            }
            let place = ends(variable.at(line), Some(remote), None);
            out.extend(self.nest_statements(&types, place, &mut |_, place| {
                let behind = match has_ordered_followers {
                    true => vec![Some(false), Some(true)],
                    false => vec![None],
                };
                let all = behind.into_iter().flat_map(|behind| {
                    let place = place.clone();
                    counted(&Cells { place, behind }, tickets)
                });
                all.collect()
            }));
        }
        for index in 0..self.queues.len() {
            let queue = &self.queues[index];
            if !queue.tickets {
                continue;
            }
            let (positions, between) = (queue.positions, queue.direction == Direction::Between);
            let types = match between {
                true => vec![self.remote_type],
                false => Vec::new(),
            };
            let place = ends(self.queues_of(index, line), Some(remote), None);
            out.extend(self.nest_statements(&types, place, &mut |system, queue| {
                let each = system.with_bound(positions, |system, i| {
                    let entry = queue.clone().field("slot").at(i);
                    let about = system.queues[index].about(&entry, line);
                    i.each(vec![when(about, vec![single(entry.field("ticket"))])])
                });
                vec![each]
            }));
        }
        if let Some(aside) = self.aside {
            let its = aside.from.at(line).is(remote.clone() + 1);
            out.push(when(its, vec![single(aside.ticket.at(line))]));
        }
        out
    }

    /// Asserts at the end of a home's row that it has not lost the store of its message.
    pub fn assert_store_kept(&self, moment: &Execution) -> Option<Stmt> {
        let taking = moment.taking.as_ref()?;
        let posted = ticket(Ticket::POSTED);
        if taking.deferred || taking.high < posted {
            return None;
        }
        let lost = self.store_violation(stores::POSTED_STORE_DROPPED);
        Some(assert(lost, taking.ticket.clone().lt(posted)))
    }

    /// Asserts that the home has performed a write, whose bytes were sent, when the write completes.
    pub fn assert_store_performed(&self, context: &Context) -> Vec<Stmt> {
        let Some(performed) = self.stores.performed else {
            return Vec::new();
        };
        let performed = context.part(performed);
        let lost = self.store_violation("a write completes although the home has not performed it");
        vec![assert(lost, performed.clone()), performed.set(false)]
    }

    /// Asserts that the home has not performed a write, whose bytes were sent, when the write is abandoned. Voids its
    /// messages.
    pub fn assert_store_abandoned(&mut self, context: &Context) -> Vec<Stmt> {
        let (Some(performed), Some(own)) = (self.stores.performed, &context.own) else {
            return Vec::new();
        };
        let late = self.store_violation(stores::ABANDONED_AFTER_PERFORMED);
        let mut out = vec![assert(late, !Expr::from(context.part(performed)))];
        out.extend(self.awaited_are_void(&context.line, own));
        out
    }

    /// Asserts that a remote's earlier stores are performed when it performs an access in its own copy.
    pub fn in_order(&self, context: &Context, writes: bool) -> Option<Stmt> {
        let none = Expr::from(context.part(self.stores.posted?)).is(0);
        Some(assert(order(order_violation(writes)), none))
    }

    /// True if a remote has pending posted stores.
    pub fn has_posted_stores(&self, context: &Context) -> Expr {
        match self.stores.posted {
            Some(posted) => Expr::from(context.part(posted)).gt(0),
            None => Expr::Bool(false),
        }
    }

    /// Checks and records the begin of an access that is outstanding after the row.
    pub fn access_opens(&mut self, context: &Context, begun: Access) -> Vec<Stmt> {
        let mut out = Vec::new();
        let answers = self.facts.answers(begun).to_vec();
        if self.stores.posted.is_some() && !begun.writes() {
            let answered = self.some_in_flight(&answers, context);
            let misses = !(self.has_posted_stores(context).and(answered));
            out.push(assert(order(stores::OWN_STORE_MISSED), misses));
        }
        if let (Some(read), Access::Atomic) = (self.stores.read, begun) {
            let ids = self.protocol.message_ids();
            let answers: Vec<MessageId> = ids
                .filter(|message| self.facts.answers_atomic[message.index()])
                .collect();
            let answered = self.some_in_flight(&answers, context);
            let last = context.part(read).set(AtomicRead::Last as i32);
            out.push(when(answered, vec![last]));
        }
        out
    }

    /// Checks and records that a copy of the line is sent to a remote that may complete an access with it.
    pub fn answers(
        &mut self,
        line: &Expr,
        to: &Expr,
        message: MessageId,
        copy: &Expr,
    ) -> Vec<Stmt> {
        let mut out = Vec::new();
        let used_once = self.facts.used_once[message.index()];
        if let (true, Some(posted)) = (used_once, self.stores.posted) {
            let none = posted.at(line).at(to).is(0);
            out.push(assert(order(stores::OWN_STORE_MISSED), none));
        }
        let (Some(read), Some(atomic_in)) = (self.stores.read, self.stores.atomic_in) else {
            return out;
        };
        if self.facts.answers_atomic[message.index()] {
            let state = self.remote.state.at(line).at(to);
            let mut does = Vec::new();
            if let Some(performed) = self.stores.performed {
                let performed = Expr::from(performed.at(line).at(to));
                does.push(assert(
                    atomicity(stores::ATOMIC_READS_OWN_STORE),
                    !performed,
                ));
            }
            if self.facts.coherent {
                does.push(assert(
                    atomicity(stores::ATOMIC_READS_STALE_COPY),
                    copy.clone(),
                ));
            }
            does.push(read.at(line).at(to).set(AtomicRead::Last as i32));
            out.push(when(atomic_in.of(state), does));
        }
        out
    }

    /// Records that a store to the line is performed: the copies that atomic accesses have read before are outdated.
    pub fn reads_are_outdated(&mut self, line: &Expr) -> Option<Stmt> {
        let read = self.stores.read?.at(line);
        let each = self.with_bound(self.remote_type, |_, r| {
            let read = read.at(r);
            let last = read.clone().is(AtomicRead::Last as i32);
            let outdated = read.set(AtomicRead::Outdated as i32);
            r.each(vec![when(last, vec![outdated])])
        });
        Some(each)
    }

    /// True if some atomic access has read the last value of a line.
    pub fn has_last_value_read(&mut self, line: &Expr) -> Expr {
        let Some(read) = self.stores.read else {
            return Expr::Bool(false);
        };
        let read = read.at(line);
        self.with_bound(self.remote_type, |_, r| {
            r.any(read.at(r).is(AtomicRead::Last as i32))
        })
    }

    /// Resets the read of an atomic access after a row that leaves none outstanding at the home.
    pub fn reset_atomic_read(&self, context: &Context) -> Option<Stmt> {
        let read = context.part(self.stores.read?);
        Some(read.set(AtomicRead::None as i32))
    }

    /// Adds a rule for loads that hit without a row: they must find the remote's own stores.
    pub fn check_load_hit_order(&mut self) {
        let controller = self.remote.controller;
        let hit = |state: usize| cohkit_system::plan::hits(controller, state, Access::Load);
        let states: Vec<usize> = (0..controller.states.len()).filter(|&s| hit(s)).collect();
        if states.is_empty() || self.stores.posted.is_none() {
            return;
        }
        let (l, line) = self.line_index();
        let r = self.parameter("r", self.remote_type);
        let context = Self::context(false, &line, Some(r.into()));
        let state = self.remote.state.at(l).at(r);
        let here = Expr::disjunction(
            states
                .iter()
                .map(|&s| state.clone().is(self.remote.states.nth(s as u32))),
        );
        let guard = here.and(self.has_posted_stores(&context));
        let load = self.does(
            r,
            &line,
            &super::message_rules::performs(Access::Load),
            false,
        );
        let body = [Some(load), self.in_order(&context, false)];
        self.build.rule(cohkit_engine::model::Rule {
            name: format!("{} load hits", controller.name),
            parameters: vec![l, r],
            guard,
            body: body.into_iter().flatten().collect(),
            spontaneous: true,
            priority: 0,
        });
    }
}

/// Cells of a counted flow that differ in their tickets.
struct Cells {
    place: Place,
    /// True if a message stays behind the counted ones; `None` if the flow has no such bit.
    behind: Option<bool>,
}

impl Cells {
    fn at(&self, ticket: i32) -> Place {
        let place = self.place.clone().at(ticket);
        match self.behind {
            Some(behind) => place.at(behind),
            None => place,
        }
    }
}

/// The violation of program order by an access that is performed before an earlier store.
fn order_violation(writes: bool) -> &'static str {
    match writes {
        true => stores::STORE_REORDERED,
        false => stores::OWN_STORE_MISSED,
    }
}
