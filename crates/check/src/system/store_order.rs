//! Program order of one line and atomic accesses: checks of accesses against the remote's own pending stores.

use cohkit_engine::build::{assert, when};
use cohkit_engine::model::{Expr, Stmt};
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::MessageId;
use cohkit_system::stores::{self, AtomicRead};

use super::context::Context;
use super::stores::{atomicity_violation, program_order_violation, PendingStores};

impl PendingStores<'_> {
    /// True if remotes post stores whose order is checked.
    pub fn are_posted(&self) -> bool {
        self.variables.posted.is_some()
    }

    /// Asserts that a remote's earlier stores are performed when it performs an access in its own copy.
    pub fn assert_store_order(&self, context: &Context, writes: bool) -> Option<Stmt> {
        let no_posted = Expr::from(context.part(self.variables.posted?)).is(0);
        Some(assert(
            program_order_violation(order_violation(writes)),
            no_posted,
        ))
    }

    /// True if a remote has pending posted stores.
    pub fn has_posted_stores(&self, context: &Context) -> Expr {
        match self.variables.posted {
            Some(posted) => Expr::from(context.part(posted)).gt(0),
            None => Expr::Bool(false),
        }
    }

    /// Checks and records the begin of an access that is outstanding after the row.
    pub fn record_access_begin(&self, context: &Context, access: Access) -> Vec<Stmt> {
        let mut out = Vec::new();
        let responses = self.frame.facts.answers(access).to_vec();
        if self.variables.posted.is_some() && !access.writes() {
            let response_in_flight = self.channels.any_in_flight(&responses, context);
            let no_missed_store = !(self.has_posted_stores(context).and(response_in_flight));
            out.push(assert(
                program_order_violation(stores::OWN_STORE_MISSED),
                no_missed_store,
            ));
        }
        if let (Some(read), Access::Atomic) = (self.variables.read, access) {
            let ids = self.frame.protocol.message_ids();
            let responses: Vec<MessageId> = ids
                .filter(|message| self.frame.facts.answers_atomic[message.index()])
                .collect();
            let response_in_flight = self.channels.any_in_flight(&responses, context);
            let last = context.part(read).set(AtomicRead::Last as i32);
            out.push(when(response_in_flight, vec![last]));
        }
        out
    }

    /// Checks and records that a copy of the line is sent to a remote that may complete an access with it.
    pub fn check_response(
        &self,
        line: &Expr,
        to: &Expr,
        message: MessageId,
        copy: &Expr,
    ) -> Vec<Stmt> {
        let mut out = Vec::new();
        let used_once = self.frame.facts.is_single_use[message.index()];
        if let (true, Some(posted)) = (used_once, self.variables.posted) {
            let no_posted = posted.at(line).at(to).is(0);
            out.push(assert(
                program_order_violation(stores::OWN_STORE_MISSED),
                no_posted,
            ));
        }
        let (Some(read), Some(atomic_in)) = (self.variables.read, self.variables.atomic_in) else {
            return out;
        };
        if self.frame.facts.answers_atomic[message.index()] {
            let state = self.remote_state.at(line).at(to);
            let mut checks = Vec::new();
            if let Some(performed) = self.variables.performed {
                let performed = Expr::from(performed.at(line).at(to));
                checks.push(assert(
                    atomicity_violation(stores::ATOMIC_READS_OWN_STORE),
                    !performed,
                ));
            }
            if self.frame.facts.coherent {
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
    pub fn outdate_atomic_reads(&self, line: &Expr) -> Option<Stmt> {
        let read = self.variables.read?.at(line);
        let updates = self
            .frame
            .scope
            .with_bound(self.frame.remote_type, |remote| {
                let read = read.at(remote);
                let is_last = read.clone().is(AtomicRead::Last as i32);
                let update = read.set(AtomicRead::Outdated as i32);
                remote.each(vec![when(is_last, vec![update])])
            });
        Some(updates)
    }

    /// True if some atomic access has read the last value of a line.
    pub fn has_last_value_read(&self, line: &Expr) -> Expr {
        let Some(read) = self.variables.read else {
            return Expr::Bool(false);
        };
        let read = read.at(line);
        self.frame.scope.with_bound(self.frame.remote_type, |r| {
            r.any(read.at(r).is(AtomicRead::Last as i32))
        })
    }

    /// Resets the read of an atomic access after a row that leaves none outstanding at the home.
    pub fn reset_atomic_read(&self, context: &Context) -> Option<Stmt> {
        let read = context.part(self.variables.read?);
        Some(read.set(AtomicRead::None as i32))
    }
}

/// The violation of program order by an access that is performed before an earlier store.
fn order_violation(writes: bool) -> &'static str {
    match writes {
        true => stores::STORE_REORDERED,
        false => stores::OWN_STORE_MISSED,
    }
}
