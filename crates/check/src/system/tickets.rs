//! The data of pending stores: tickets, the variables that hold them, and the store of the message being taken.

use cohkit_engine::model::{Expr, TableId, TypeId, VariableId};

/// The tickets that messages of one flow may have.
#[derive(Clone, Copy)]
pub(super) struct Tickets {
    pub low: i32,
    pub high: i32,
    /// Their type; none if there is one ticket only, which needs no place.
    pub ty: Option<TypeId>,
}

/// The variables of pending stores, each per line and remote, as far as the protocol needs them.
pub(super) struct Stores {
    /// Number of ranks.
    pub ranks: u8,
    /// Whether the home has performed the store of the access in progress.
    pub performed: Option<VariableId>,
    /// Number of posted stores that are pending.
    pub posted: Option<VariableId>,
    /// What the atomic access in progress reads.
    pub read: Option<VariableId>,
    /// Of each state, whether an atomic access may be in progress whose store the home performs.
    pub atomic_in: Option<TableId>,
}

/// A store whose message a home takes.
#[derive(Clone)]
pub(super) struct Taking {
    /// Its ticket, and the range of that.
    pub ticket: Expr,
    pub low: i32,
    pub high: i32,
    /// Whether its bytes have been deferred.
    pub deferred: bool,
}

impl Taking {
    pub fn new(ticket: Expr, tickets: Tickets) -> Taking {
        Taking {
            ticket,
            low: tickets.low,
            high: tickets.high,
            deferred: false,
        }
    }

    /// Its bytes are deferred; gives the ticket that goes with them.
    pub fn is_deferred(&mut self) -> Expr {
        self.deferred = true;
        self.ticket.clone()
    }

    /// It has been performed.
    pub fn performed(&mut self) {
        self.ticket = Expr::Int(0);
        (self.low, self.high) = (0, 0);
    }
}
