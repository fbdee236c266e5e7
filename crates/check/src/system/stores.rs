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
use super::layout::{ends, DeferredStore, Direction, Sizes, Storage, System};
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
        let mut counted = |needed: bool, name: &str, max: u8| {
            let ty = needed.then(|| build.range(name, 0, i32::from(max)))?;
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

fn ticket_code(ticket: Ticket) -> i32 {
    i32::from(ticket.0)
}

fn program_order_violation(message: &str) -> Violation {
    Violation::new(stores::PROGRAM_ORDER, message)
}

fn atomicity_violation(message: &str) -> Violation {
    Violation::new(stores::ATOMICITY, message)
}

impl System<'_> {
    fn store_violation(&self, message: &str) -> Violation {
        Violation::new(agent::stores(&self.facts), message)
    }

    /// The ticket of a store that is sent, if the flow stores tickets. Adds the checks before the send to `before`, and
    /// the updates after it to `after`.
    pub fn send_store(
        &mut self,
        execution: &mut Execution,
        flow: usize,
        (before, after): (&mut Vec<Stmt>, &mut Vec<Stmt>),
    ) -> Option<Expr> {
        let tickets = self.flows[flow].tickets?;
        let ticket_value = match (
            execution.send.take(),
            self.stores.posted,
            self.stores.performed,
        ) {
            (StoreSend::Repeated, ..) => ticket_code(Ticket::VOID).into(),
            (StoreSend::Posted, Some(posted), _) => {
                let posted = execution.context.part(posted);
                let ranks = i32::from(self.stores.ranks);
                let message = format!("more than {ranks} posted stores are pending");
                before.push(assert(Violation::limit(message), posted.clone().lt(ranks)));
                after.push(posted.clone().set(posted.clone() + 1));
                Expr::from(posted) + ticket_code(Ticket::POSTED)
            }
            (StoreSend::Posted, None, _) => ticket_code(Ticket::POSTED).into(),
            (StoreSend::Awaited, _, Some(performed)) => {
                let performed = Expr::from(execution.context.part(performed));
                performed.then(ticket_code(Ticket::VOID), ticket_code(Ticket::AWAITED))
            }
            (StoreSend::Awaited, _, None) => ticket_code(Ticket::VOID).into(),
        };
        tickets.ty.map(|_| ticket_value)
    }

    /// The home performs the store of the message that it consumes, or the deferred store.
    pub fn perform_store(
        &mut self,
        execution: &mut Execution,
        remote: &Option<Expr>,
        deferred: Option<DeferredStore>,
    ) -> Vec<Stmt> {
        let line = execution.context.line.clone();
        let Some(remote) = remote.as_ref().filter(|_| self.facts.stores_pending) else {
            return Vec::new();
        };
        // If this row has deferred the store, the deferred store is that of the current message.
        let consumed = execution
            .consumed_store
            .as_ref()
            .filter(|consumed_store| match deferred {
                Some(_) => consumed_store.deferred,
                None => true,
            });
        let (store_ticket, low, high) = match (consumed, deferred) {
            (Some(consumed_store), _) => (
                consumed_store.ticket.clone(),
                consumed_store.low,
                consumed_store.high,
            ),
            (None, Some(deferred_store)) => {
                let highest = ticket_code(Ticket::posted(self.stores.ranks - 1));
                (deferred_store.ticket.at(&line).into(), 0, highest)
            }
            (None, None) => (Expr::Int(0), 0, 0),
        };
        let mut out = Vec::new();
        let (posted, awaited) = (ticket_code(Ticket::POSTED), ticket_code(Ticket::AWAITED));
        let any_sender = |predicate: fn(&cohkit_system::stores::Senders) -> bool| {
            self.facts.senders.iter().any(predicate)
        };
        let may_be_posted = high >= posted && any_sender(|senders| senders.post);
        let may_be_awaited = low <= awaited && any_sender(|senders| senders.wait);
        // Clear the place of the deferred ticket before other stores move up.
        let clear_ticket = deferred.map(|deferred_store| deferred_store.ticket.at(&line).set(0));
        let store_ticket = match (&clear_ticket, consumed) {
            (Some(_), None) => {
                let ty = self.tickets_type();
                let local = self.local("deferred ticket", ty);
                out.push(local.begin(store_ticket));
                Expr::from(local)
            }
            _ => store_ticket,
        };
        out.extend(clear_ticket);
        let posted_effects = match may_be_posted {
            true => self.perform_posted_store(&line, remote, &store_ticket),
            false => Vec::new(),
        };
        let awaited_effects = match may_be_awaited || !may_be_posted {
            true => self.perform_awaited_store(&line, remote, &store_ticket),
            false => Vec::new(),
        };
        match (may_be_posted, low >= posted) {
            (true, true) => out.extend(posted_effects),
            (true, false) if awaited_effects.is_empty() => {
                let violation = self.store_violation(stores::PERFORMED_TWICE);
                out.push(assert(violation, store_ticket.ge(posted)));
                out.extend(posted_effects);
            }
            (true, false) => out.push(choose(
                store_ticket.ge(posted),
                posted_effects,
                awaited_effects,
            )),
            (false, _) => out.extend(awaited_effects),
        }
        if let Some(consumed_store) = &mut execution.consumed_store {
            if consumed_store.deferred || deferred.is_none() {
                consumed_store.mark_performed();
            }
            // A store that this row has deferred is recorded at two places until the row ends.
            if let (true, None, Some(deferred_store)) =
                (consumed_store.deferred, deferred, self.deferred_store)
            {
                out.push(deferred_store.ticket.at(&line).set(0));
            }
        }
        out
    }

    fn perform_posted_store(
        &mut self,
        line: &Expr,
        remote: &Expr,
        store_ticket: &Expr,
    ) -> Vec<Stmt> {
        let Some(posted) = self.stores.posted else {
            return Vec::new();
        };
        let is_first = store_ticket.clone().is(ticket_code(Ticket::POSTED));
        let mut out = vec![assert(
            program_order_violation(stores::STORE_REORDERED),
            is_first,
        )];
        let posted = posted.at(line).at(remote);
        out.push(posted.clone().set(posted - 1));
        out.extend(self.shift_posted_ranks(line, remote));
        out
    }

    fn perform_awaited_store(
        &mut self,
        line: &Expr,
        remote: &Expr,
        store_ticket: &Expr,
    ) -> Vec<Stmt> {
        let violation = self.store_violation(stores::PERFORMED_TWICE);
        let valid = store_ticket.clone().is(ticket_code(Ticket::AWAITED));
        let mut out = vec![assert(violation, valid)];
        if let Some(posted) = self.stores.posted {
            let no_posted = posted.at(line).at(remote).is(0);
            out.push(assert(
                program_order_violation(stores::STORE_REORDERED),
                no_posted,
            ));
        }
        if let Some(read) = self.stores.read {
            let read = read.at(line).at(remote);
            let outdated = read.clone().is(AtomicRead::Outdated as i32);
            out.push(assert(
                atomicity_violation(stores::ATOMIC_INTERRUPTED),
                !outdated,
            ));
            out.push(read.set(AtomicRead::None as i32));
        }
        if let Some(performed) = self.stores.performed {
            out.push(performed.at(line).at(remote).set(true));
        }
        out.extend(self.void_awaited_stores(line, remote));
        out
    }

    /// The type of all tickets.
    fn tickets_type(&mut self) -> TypeId {
        let highest = ticket_code(Ticket::posted(self.stores.ranks - 1));
        self.build.range("ticket", 0, highest)
    }

    /// The posted store of rank 0 has been performed: all others of the remote have one rank less.
    fn shift_posted_ranks(&mut self, line: &Expr, remote: &Expr) -> Vec<Stmt> {
        let posted = ticket_code(Ticket::POSTED);
        if self.stores.ranks < 2 {
            return Vec::new();
        }
        self.change_tickets(
            line,
            remote,
            &|cells, tickets| {
                let shifted = (posted + 1..=tickets.high)
                    .map(|at| cells.at(at - 1).set(cells.at(at)))
                    .collect::<Vec<_>>();
                let last = cells.at(tickets.high).set(0);
                match tickets.high > posted {
                    true => shifted.into_iter().chain([last]).collect(),
                    false => Vec::new(),
                }
            },
            &|place| {
                let decrement = place.clone().set(place.clone() - 1);
                when(place.gt(posted), vec![decrement])
            },
        )
    }

    /// Voids all messages of the store in progress.
    pub fn void_awaited_stores(&mut self, line: &Expr, remote: &Expr) -> Vec<Stmt> {
        let (void, awaited) = (ticket_code(Ticket::VOID), ticket_code(Ticket::AWAITED));
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
                let follower_bits = match has_ordered_followers {
                    true => vec![Some(false), Some(true)],
                    false => vec![None],
                };
                let statements = follower_bits.into_iter().flat_map(|has_follower| {
                    let place = place.clone();
                    counted(
                        &Cells {
                            place,
                            has_follower,
                        },
                        tickets,
                    )
                });
                statements.collect()
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
                let per_entry = system.with_bound(positions, |system, i| {
                    let entry = queue.clone().field("slot").at(i);
                    let is_about_line = system.queues[index].about(&entry, line);
                    i.each(vec![when(
                        is_about_line,
                        vec![single(entry.field("ticket"))],
                    )])
                });
                vec![per_entry]
            }));
        }
        if let Some(deferred_store) = self.deferred_store {
            let is_same_remote = deferred_store.from.at(line).is(remote.clone() + 1);
            out.push(when(
                is_same_remote,
                vec![single(deferred_store.ticket.at(line))],
            ));
        }
        out
    }

    /// Asserts at the end of a home's row that it has not lost the store of its message.
    pub fn assert_store_kept(&self, execution: &Execution) -> Option<Stmt> {
        let consumed_store = execution.consumed_store.as_ref()?;
        let posted = ticket_code(Ticket::POSTED);
        if consumed_store.deferred || consumed_store.high < posted {
            return None;
        }
        let violation = self.store_violation(stores::POSTED_STORE_DROPPED);
        Some(assert(violation, consumed_store.ticket.clone().lt(posted)))
    }

    /// Asserts that the home has performed a write, whose bytes were sent, when the write completes.
    pub fn assert_store_performed(&self, context: &Context) -> Vec<Stmt> {
        let Some(performed) = self.stores.performed else {
            return Vec::new();
        };
        let performed = context.part(performed);
        let violation =
            self.store_violation("a write completes although the home has not performed it");
        vec![assert(violation, performed.clone()), performed.set(false)]
    }

    /// Asserts that the home has not performed a write, whose bytes were sent, when the write is abandoned. Voids its
    /// messages.
    pub fn assert_store_abandoned(&mut self, context: &Context) -> Vec<Stmt> {
        let (Some(performed), Some(remote)) = (self.stores.performed, &context.remote) else {
            return Vec::new();
        };
        let violation = self.store_violation(stores::ABANDONED_AFTER_PERFORMED);
        let mut out = vec![assert(violation, !Expr::from(context.part(performed)))];
        out.extend(self.void_awaited_stores(&context.line, remote));
        out
    }

    /// Asserts that a remote's earlier stores are performed when it performs an access in its own copy.
    pub fn assert_store_order(&self, context: &Context, writes: bool) -> Option<Stmt> {
        let no_posted = Expr::from(context.part(self.stores.posted?)).is(0);
        Some(assert(
            program_order_violation(order_violation(writes)),
            no_posted,
        ))
    }

    /// True if a remote has pending posted stores.
    pub fn has_posted_stores(&self, context: &Context) -> Expr {
        match self.stores.posted {
            Some(posted) => Expr::from(context.part(posted)).gt(0),
            None => Expr::Bool(false),
        }
    }

    /// Checks and records the begin of an access that is outstanding after the row.
    pub fn record_access_begin(&mut self, context: &Context, access: Access) -> Vec<Stmt> {
        let mut out = Vec::new();
        let responses = self.facts.answers(access).to_vec();
        if self.stores.posted.is_some() && !access.writes() {
            let response_in_flight = self.any_in_flight(&responses, context);
            let no_missed_store = !(self.has_posted_stores(context).and(response_in_flight));
            out.push(assert(
                program_order_violation(stores::OWN_STORE_MISSED),
                no_missed_store,
            ));
        }
        if let (Some(read), Access::Atomic) = (self.stores.read, access) {
            let ids = self.protocol.message_ids();
            let responses: Vec<MessageId> = ids
                .filter(|message| self.facts.answers_atomic[message.index()])
                .collect();
            let response_in_flight = self.any_in_flight(&responses, context);
            let last = context.part(read).set(AtomicRead::Last as i32);
            out.push(when(response_in_flight, vec![last]));
        }
        out
    }

    /// Checks and records that a copy of the line is sent to a remote that may complete an access with it.
    pub fn check_response(
        &mut self,
        line: &Expr,
        to: &Expr,
        message: MessageId,
        copy: &Expr,
    ) -> Vec<Stmt> {
        let mut out = Vec::new();
        let is_single_use = self.facts.is_single_use[message.index()];
        if let (true, Some(posted)) = (is_single_use, self.stores.posted) {
            let no_posted = posted.at(line).at(to).is(0);
            out.push(assert(
                program_order_violation(stores::OWN_STORE_MISSED),
                no_posted,
            ));
        }
        let (Some(read), Some(atomic_in)) = (self.stores.read, self.stores.atomic_in) else {
            return out;
        };
        if self.facts.answers_atomic[message.index()] {
            let state = self.remote.state.at(line).at(to);
            let mut checks = Vec::new();
            if let Some(performed) = self.stores.performed {
                let performed = Expr::from(performed.at(line).at(to));
                checks.push(assert(
                    atomicity_violation(stores::ATOMIC_READS_OWN_STORE),
                    !performed,
                ));
            }
            if self.facts.coherent {
                checks.push(assert(
                    atomicity_violation(stores::ATOMIC_READS_STALE_COPY),
                    copy.clone(),
                ));
            }
            checks.push(read.at(line).at(to).set(AtomicRead::Last as i32));
            out.push(when(atomic_in.of(state), checks));
        }
        out
    }

    /// Records that a store to the line is performed: the copies that atomic accesses have read before are outdated.
    pub fn outdate_atomic_reads(&mut self, line: &Expr) -> Option<Stmt> {
        let read = self.stores.read?.at(line);
        let updates = self.with_bound(self.remote_type, |_, remote| {
            let read = read.at(remote);
            let is_last = read.clone().is(AtomicRead::Last as i32);
            let update = read.set(AtomicRead::Outdated as i32);
            remote.each(vec![when(is_last, vec![update])])
        });
        Some(updates)
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
        let is_hit = |state: usize| cohkit_system::plan::hits(controller, state, Access::Load);
        let states: Vec<usize> = (0..controller.states.len())
            .filter(|&s| is_hit(s))
            .collect();
        if states.is_empty() || self.stores.posted.is_none() {
            return;
        }
        let (l, line) = self.line_index();
        let r = self.parameter("r", self.remote_type);
        let context = Self::context(false, &line, Some(r.into()));
        let state = self.remote.state.at(l).at(r);
        let in_hit_state = Expr::disjunction(
            states
                .iter()
                .map(|&s| state.clone().is(self.remote.states.nth(s as u32))),
        );
        let guard = in_hit_state.and(self.has_posted_stores(&context));
        let load = self.note_action(
            r,
            &line,
            &super::message_rules::performs(Access::Load),
            false,
        );
        let body = [Some(load), self.assert_store_order(&context, false)];
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
    has_follower: Option<bool>,
}

impl Cells {
    fn at(&self, ticket: i32) -> Place {
        let place = self.place.clone().at(ticket);
        match self.has_follower {
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
