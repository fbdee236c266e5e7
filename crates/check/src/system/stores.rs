//! Pending stores: their tickets, and their performance by the home.
//!
//! [`cohkit_system::stores`] defines tickets, and shows that they are sufficient.

use cohkit_engine::build::{assert, choose, when};
use cohkit_engine::model::{Expr, Place, Stmt, TypeId, VariableId, Violation};
use cohkit_system::agent;
use cohkit_system::stores::{self, AtomicRead, Senders, StoreSend, Ticket};
use std::rc::Rc;

use super::channels::Channels;
use super::context::Context;
use super::execution::Execution;
use super::flows::{Direction, Endpoints, Flow};
use super::frame::Frame;
use super::memory::DeferredStore;
use super::tickets::{StoreVariables, Tickets};

/// The pending stores of all remotes.
pub(super) struct PendingStores<'p> {
    /// Fixed parts of the system.
    pub(super) frame: Rc<Frame<'p>>,
    /// Messages in flight, which hold the tickets.
    pub(super) channels: Rc<Channels<'p>>,
    /// State variables of pending stores.
    pub(super) variables: StoreVariables,
    /// The deferred store, if the home ever defers one.
    pub deferred_store: Option<DeferredStore>,
    /// State of each remote, per line and remote.
    pub(super) remote_state: VariableId,
}

/// Returns the number that stands for a ticket in the model.
fn ticket_code(ticket: Ticket) -> i32 {
    i32::from(ticket.0)
}

/// Returns a violation of the program order of one line.
pub(super) fn program_order_violation(message: &str) -> Violation {
    Violation::new(stores::PROGRAM_ORDER, message)
}

/// Returns a violation of atomicity by an atomic access.
pub(super) fn atomicity_violation(message: &str) -> Violation {
    Violation::new(stores::ATOMICITY, message)
}

impl<'p> PendingStores<'p> {
    /// Creates the pending stores from the components that hold their state.
    pub fn new(
        channels: &Rc<Channels<'p>>,
        variables: StoreVariables,
        deferred_store: Option<DeferredStore>,
        remote_state: VariableId,
    ) -> PendingStores<'p> {
        PendingStores {
            frame: channels.frame.clone(),
            channels: channels.clone(),
            variables,
            deferred_store,
            remote_state,
        }
    }

    /// Returns the violation that a store is not performed exactly once.
    pub(super) fn store_violation(&self, message: &str) -> Violation {
        Violation::new(agent::stores(&self.frame.facts), message)
    }

    /// Returns the ticket of a store that is sent, or `None` if the flow (an index into the channels' flows) stores no
    /// tickets. Adds the checks before the send to `before`, and the updates after it to `after`. Advances the
    /// execution to the row's next message with the store.
    pub fn send_store(
        &self,
        execution: &mut Execution,
        flow: usize,
        before: &mut Vec<Stmt>,
        after: &mut Vec<Stmt>,
    ) -> Option<Expr> {
        let tickets = self.channels.flows[flow].tickets?;
        let ticket_value = match (
            execution.send.take(),
            self.variables.posted,
            self.variables.performed,
        ) {
            (StoreSend::Repeated, ..) => ticket_code(Ticket::VOID).into(),
            (StoreSend::Posted, Some(posted), _) => {
                let posted = execution.context.part(posted);
                let ranks = i32::from(self.variables.ranks);
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

    /// Returns the effects of performing, at the home, the store of the message that it consumes, or `deferred`.
    /// `remote` is the index of the store's sender. Empty if the system tracks no stores.
    pub fn perform_store(
        &self,
        execution: &mut Execution,
        remote: &Option<Expr>,
        deferred: Option<DeferredStore>,
    ) -> Vec<Stmt> {
        let line = execution.context.line.clone();
        let stores_pending = self.frame.facts.stores_pending;
        let Some(remote) = remote.as_ref().filter(|_| stores_pending) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        let performed = self.performed_ticket(execution, deferred, &mut out);
        out.extend(self.perform_ticket(&line, remote, performed));
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

    /// Returns the ticket of the store that is performed. Adds the statements that clear a deferred ticket to `out`.
    fn performed_ticket(
        &self,
        execution: &Execution,
        deferred: Option<DeferredStore>,
        out: &mut Vec<Stmt>,
    ) -> PerformedTicket {
        let line = &execution.context.line;
        // If this row has deferred the store, the deferred store is that of the current message.
        let consumed_store = execution.consumed_store.as_ref();
        let consumed_store = consumed_store.filter(|store| deferred.is_none() || store.deferred);
        let ticket = match (consumed_store, deferred) {
            (Some(store), _) => PerformedTicket {
                ticket: store.ticket.clone(),
                low: store.low,
                high: store.high,
            },
            (None, Some(deferred_store)) => {
                let highest = ticket_code(Ticket::posted(self.variables.ranks - 1));
                let ty = self.frame.scope.range("ticket", 0, highest);
                let local = self.frame.scope.local("deferred ticket", ty);
                out.push(local.begin(deferred_store.ticket.at(line)));
                PerformedTicket {
                    ticket: local.into(),
                    low: 0,
                    high: highest,
                }
            }
            (None, None) => PerformedTicket {
                ticket: Expr::Int(0),
                low: 0,
                high: 0,
            },
        };
        // Clear the place of the deferred ticket before other stores move up.
        out.extend(deferred.map(|deferred_store| deferred_store.ticket.at(line).set(0)));
        ticket
    }

    /// Returns the effects of performing a remote's store with this ticket.
    fn perform_ticket(
        &self,
        line: &Expr,
        remote: &Expr,
        PerformedTicket { ticket, low, high }: PerformedTicket,
    ) -> Vec<Stmt> {
        let (posted, awaited) = (ticket_code(Ticket::POSTED), ticket_code(Ticket::AWAITED));
        let any_sender =
            |predicate: fn(&Senders) -> bool| self.frame.facts.senders.iter().any(predicate);
        let may_be_posted = high >= posted && any_sender(|senders| senders.post);
        let may_be_awaited = low <= awaited && any_sender(|senders| senders.wait);
        let posted_effects = match may_be_posted {
            true => self.perform_posted_store(line, remote, &ticket),
            false => Vec::new(),
        };
        let awaited_effects = match may_be_awaited || !may_be_posted {
            true => self.perform_awaited_store(line, remote, &ticket),
            false => Vec::new(),
        };
        match (may_be_posted, low >= posted) {
            (true, true) => posted_effects,
            (true, false) if awaited_effects.is_empty() => {
                let violation = self.store_violation(stores::PERFORMED_TWICE);
                let is_posted = assert(violation, ticket.ge(posted));
                [vec![is_posted], posted_effects].concat()
            }
            (true, false) => vec![choose(ticket.ge(posted), posted_effects, awaited_effects)],
            (false, _) => awaited_effects,
        }
    }

    /// Returns the effects of performing a posted store: it must be the oldest pending one of the remote and line.
    fn perform_posted_store(&self, line: &Expr, remote: &Expr, store_ticket: &Expr) -> Vec<Stmt> {
        let Some(posted) = self.variables.posted else {
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

    /// Returns the effects of performing the store of the access in progress: it must be the only valid one, no
    /// earlier posted store may be pending, and an atomic access must not have been interrupted.
    fn perform_awaited_store(&self, line: &Expr, remote: &Expr, store_ticket: &Expr) -> Vec<Stmt> {
        let violation = self.store_violation(stores::PERFORMED_TWICE);
        let valid = store_ticket.clone().is(ticket_code(Ticket::AWAITED));
        let mut out = vec![assert(violation, valid)];
        if let Some(posted) = self.variables.posted {
            let no_posted = posted.at(line).at(remote).is(0);
            out.push(assert(
                program_order_violation(stores::STORE_REORDERED),
                no_posted,
            ));
        }
        if let Some(read) = self.variables.read {
            let read = read.at(line).at(remote);
            let outdated = read.clone().is(AtomicRead::Outdated as i32);
            out.push(assert(
                atomicity_violation(stores::ATOMIC_INTERRUPTED),
                !outdated,
            ));
            out.push(read.set(AtomicRead::None as i32));
        }
        if let Some(performed) = self.variables.performed {
            out.push(performed.at(line).at(remote).set(true));
        }
        out.extend(self.void_awaited_stores(line, remote));
        out
    }

    /// Returns the effects after the posted store of rank 0 has been performed: all others of the remote have one rank
    /// less.
    fn shift_posted_ranks(&self, line: &Expr, remote: &Expr) -> Vec<Stmt> {
        let posted = ticket_code(Ticket::POSTED);
        if self.variables.ranks < 2 {
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

    /// Returns the statements that void all messages of a remote's store in progress, so that no further one performs
    /// it.
    pub fn void_awaited_stores(&self, line: &Expr, remote: &Expr) -> Vec<Stmt> {
        let (void, awaited) = (ticket_code(Ticket::VOID), ticket_code(Ticket::AWAITED));
        if !self.frame.facts.awaits_stores() {
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

    /// Returns the statements that change the tickets of all stores of a remote to a line. `counted` changes the cells
    /// of a counted flow, `single` changes one ticket in a queue or the deferred store.
    fn change_tickets(
        &self,
        line: &Expr,
        remote: &Expr,
        counted: &dyn Fn(&Cells, Tickets) -> Vec<Stmt>,
        single: &dyn Fn(Place) -> Stmt,
    ) -> Vec<Stmt> {
        let mut out = Vec::new();
        let endpoints = Endpoints {
            from: Some(remote),
            to: None,
        };
        for flow in &self.channels.flows {
            let tickets = flow.tickets.filter(|tickets| tickets.ty.is_some());
            let (Some(tickets), Some(variable)) = (tickets, flow.storage.counter()) else {
                continue;
            };
            let place = endpoints.index(variable.at(line));
            let types = self.types_of_others(flow);
            out.extend(self.frame.for_each_cell(&types, place, &|place| {
                let follower_bits = match flow.has_ordered_followers {
                    true => vec![Some(false), Some(true)],
                    false => vec![None],
                };
                let statements = follower_bits.into_iter().flat_map(|has_follower| {
                    let place = place.clone();
                    let cells = Cells {
                        place,
                        has_follower,
                    };
                    counted(&cells, tickets)
                });
                statements.collect()
            }));
        }
        for (index, queue) in self.channels.queues.iter().enumerate() {
            if !queue.tickets {
                continue;
            }
            let types = match queue.direction == Direction::Between {
                true => vec![self.frame.remote_type],
                false => Vec::new(),
            };
            let place = endpoints.index(self.channels.queues_of(index, line));
            out.extend(self.frame.for_each_cell(&types, place, &|place| {
                let per_entry = self.frame.scope.with_bound(queue.positions, |position| {
                    let entry = place.field("slot").at(position);
                    let is_about_line = queue.is_about(&entry, line);
                    position.each(vec![when(
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

    /// Returns the types that index a flow's counters between the sender and the ticket.
    fn types_of_others(&self, flow: &Flow) -> Vec<TypeId> {
        let receivers = match flow.direction == Direction::Between {
            true => vec![self.frame.remote_type],
            false => Vec::new(),
        };
        let after = 1 + usize::from(flow.has_ordered_followers);
        let fields = &flow.stored[..flow.stored.len() - after];
        [&receivers, fields].concat()
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
        let Some(performed) = self.variables.performed else {
            return Vec::new();
        };
        let performed = context.part(performed);
        let violation =
            self.store_violation("a write completes although the home has not performed it");
        vec![assert(violation, performed.clone()), performed.set(false)]
    }

    /// Asserts that the home has not performed a write, whose bytes were sent, when the write is abandoned. Voids its
    /// messages.
    pub fn assert_store_abandoned(&self, context: &Context) -> Vec<Stmt> {
        let (Some(performed), Some(remote)) = (self.variables.performed, &context.remote) else {
            return Vec::new();
        };
        let violation = self.store_violation(stores::ABANDONED_AFTER_PERFORMED);
        let mut out = vec![assert(violation, !Expr::from(context.part(performed)))];
        out.extend(self.void_awaited_stores(&context.line, remote));
        out
    }
}

/// Ticket of a store that is performed.
struct PerformedTicket {
    /// The ticket, as a number of the model.
    ticket: Expr,
    /// Lowest value that it may have.
    low: i32,
    /// Highest value that it may have.
    high: i32,
}

/// Cells of a counted flow that differ in their tickets.
struct Cells {
    /// Counter, indexed up to the ticket.
    place: Place,
    /// Bit of the counted messages that other messages stay behind: true if such a message has been sent later. `None`
    /// if the flow has no such bit.
    has_follower: Option<bool>,
}

impl Cells {
    /// The counter of the messages with this ticket.
    fn at(&self, ticket: i32) -> Place {
        let place = self.place.clone().at(ticket);
        match self.has_follower {
            Some(has_follower) => place.at(has_follower),
            None => place,
        }
    }
}
