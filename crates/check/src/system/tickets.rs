//! The data of pending stores: tickets, the variables that hold them, and the store of the message being consumed.

use cohkit_engine::model::{Expr, TableId, TypeId, VariableId};
use cohkit_system::stores::AtomicRead;

use super::frame::Frame;

/// Range of the tickets that messages of one flow may carry.
#[derive(Clone, Copy)]
pub(super) struct Tickets {
    /// Lowest ticket, as a number of the model.
    pub low: i32,
    /// Highest ticket, as a number of the model.
    pub high: i32,
    /// Type of the tickets; `None` if there is only one, which is not stored.
    pub ty: Option<TypeId>,
}

/// The variables of pending stores, each per line and remote. `None` for a variable that the protocol does not need.
#[derive(Clone, Copy)]
pub(super) struct StoreVariables {
    /// Number of ranks of posted stores, at least 1.
    pub ranks: u8,
    /// True if the home has performed the store of the access in progress.
    pub performed: Option<VariableId>,
    /// Number of posted stores that are pending.
    pub posted: Option<VariableId>,
    /// State of the copy that the atomic access in progress reads.
    pub read: Option<VariableId>,
    /// Per state, true if an atomic access that the home performs may be outstanding there.
    pub atomic_in: Option<TableId>,
}

impl StoreVariables {
    /// Declares the variables that a protocol needs. `states` are the states of the remotes.
    pub fn new(frame: &Frame, states: TypeId, ranks: u8) -> StoreVariables {
        let (facts, scope) = (&frame.facts, &frame.scope);
        let declare = |name: &str, element: TypeId| {
            let ty = frame.per_remote(name, element);
            scope.state(format!("{}_{name}", frame.protocol.remote.name), ty)
        };
        let counted = |name: &str, max: u8| declare(name, scope.range(name, 0, i32::from(max)));
        StoreVariables {
            ranks,
            performed: (facts.awaits_stores()).then(|| declare("store_performed", TypeId::BOOL)),
            posted: (facts.line_order).then(|| counted("posted_stores", ranks)),
            read: (facts.atomics()).then(|| counted("atomic_read", AtomicRead::Outdated as u8)),
            atomic_in: facts.atomics().then(|| {
                let values = facts.atomic_in.iter().map(|&atomic| i32::from(atomic));
                scope.table("atomic_in", states, TypeId::BOOL, values)
            }),
        }
    }
}

/// A store whose message the home consumes.
#[derive(Clone)]
pub(super) struct ConsumedStore {
    /// Its ticket as bodies read it; 0 once it has been performed.
    pub ticket: Expr,
    /// Lowest value that the ticket may have.
    pub low: i32,
    /// Highest value that the ticket may have.
    pub high: i32,
    /// True if its bytes have been deferred.
    pub deferred: bool,
}

impl ConsumedStore {
    /// Creates the store of a message whose ticket is in the range `tickets`.
    pub fn new(ticket: Expr, tickets: Tickets) -> ConsumedStore {
        ConsumedStore {
            ticket,
            low: tickets.low,
            high: tickets.high,
            deferred: false,
        }
    }

    /// Records that its bytes are deferred. Returns their ticket.
    pub fn defer(&mut self) -> Expr {
        self.deferred = true;
        self.ticket.clone()
    }

    /// Records that it has been performed.
    pub fn mark_performed(&mut self) {
        self.ticket = Expr::Int(0);
        (self.low, self.high) = (0, 0);
    }
}
