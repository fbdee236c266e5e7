//! Paths of accesses through the rows of a protocol: which begin, which are performed, and which may be abandoned.

use cohkit_protocol::controller::{
    Access, Controller, Effect, Event, Expression, Initial, Operator, Rule as Row, State,
    Statement, Variable, MEMORY_WRITES,
};
use cohkit_protocol::pending_access::bulk_transitions;
use cohkit_protocol::protocol::{Permission, Protocol, StateId};

/// A kind of access, or a local operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An access of a remote.
    Access(Access),
    /// A local operation of the device: index into [`Controller::locals`].
    Local(u8),
}

impl Kind {
    /// Returns the name in the protocol file. `home` declares the local operations.
    pub fn name(self, home: &Controller) -> &str {
        match self {
            Kind::Access(access) => access.name(),
            Kind::Local(index) => (home.locals.get(usize::from(index)))
                .map_or("local operation", |local| local.name.as_str()),
        }
    }
}

/// Returns all accesses that some row or permission begins, and the local operations of the home.
pub fn kinds(protocol: &Protocol, home: &Controller) -> Vec<Kind> {
    let remote = &protocol.remote;
    let locals = (0..home.locals.len()).map(|local| Kind::Local(local as u8));
    accesses(remote).map(Kind::Access).chain(locals).collect()
}

/// Returns the accesses and operations whose progress does not follow from quiescence: those that a row may abandon,
/// and those that a home may refuse at rest.
pub fn unproven_kinds(protocol: &Protocol, home: &Controller) -> Vec<Kind> {
    let mut kinds = kinds(protocol, home);
    kinds.retain(|&kind| match kind {
        Kind::Access(access) => AccessFlow::new(protocol, access).can_abandon(),
        Kind::Local(local) => refuses_when_quiescent(home, local),
    });
    kinds
}

/// Returns the accesses that no row or permission of the initial state begins unconditionally. A search has to show
/// that they begin at all.
pub fn conditional_accesses(protocol: &Protocol) -> Vec<Access> {
    let remote = &protocol.remote;
    let begins_unconditionally = |access: Access| {
        let row = rows(remote, access, 0).next();
        hits(access, &remote.states[0]) || row.is_some_and(|row| row.guard.is_none())
    };
    accesses(remote)
        .filter(|&access| !begins_unconditionally(access))
        .collect()
}

/// Returns the accesses that every cache supports, and that no row or permission of this one begins. All other
/// accesses are optional in a protocol: write-backs that keep the copy, and accesses that bypass the cache.
pub fn missing_accesses(protocol: &Protocol) -> Vec<Access> {
    let mut required = vec![Access::Load, Access::Store, Access::Evict];
    required.retain(|&access| accesses(&protocol.remote).all(|supported| supported != access));
    required
}

/// The accesses that some row or permission begins.
fn accesses(remote: &Controller) -> impl Iterator<Item = Access> + '_ {
    let accesses = Access::ALL.into_iter().map(|(access, _)| access);
    // An access about no line performs nothing by itself.
    accesses
        .filter(|access| access.about_line())
        .filter(|&access| {
            (0..remote.states.len()).any(|state| {
                // Atomics without a row are performed as stores.
                access != Access::Atomic && hits(access, &remote.states[state])
                    || rows(remote, access, state).next().is_some()
            })
        })
}

/// Returns the number of lines on which progress has to be checked: one for each home, or two if lines are coupled.
pub fn lines(protocol: &Protocol) -> u8 {
    let lines_per_home = match protocol.joins_lines() {
        Some(_) => 2,
        None => 1,
    };
    protocol.homes as u8 * lines_per_home
}

/// Returns the number of lines on which the progress of a system of `lines` lines is checked: [`lines`], or one for
/// each home if the system has fewer lines.
pub fn lines_of(protocol: &Protocol, lines: u8) -> u8 {
    match self::lines(protocol) {
        needed if needed <= lines => needed,
        _ => protocol.homes as u8,
    }
}

/// Returns the accesses of a core that some row or permission begins: loads, stores and their like.
pub fn core_accesses(remote: &Controller) -> impl Iterator<Item = Access> + '_ {
    accesses(remote).filter(|access| access.needs() != Permission::None)
}

/// Returns true if a stable state begins none of these accesses without a guard, though its kind of remotes has some of
/// them.
pub fn may_stop(protocol: &Protocol, accesses: &[Access]) -> bool {
    let remote = &protocol.remote;
    let begins = |state: usize| {
        accesses.iter().any(|&access| {
            hits(access, &remote.states[state])
                || rows(remote, access, state).any(|row| row.guard.is_none())
        })
    };
    let mut stable_states =
        (0..remote.states.len()).filter(|&state| remote.states[state].is_stable());
    stable_states.any(|state| !begins(state) && can_begin_any(protocol, accesses, state))
}

/// Returns true if the kind of remotes that a state belongs to has some of these accesses. `state` is an index into
/// the remote's states.
pub(super) fn can_begin_any(protocol: &Protocol, accesses: &[Access], state: usize) -> bool {
    let remote = &protocol.remote;
    let kind = protocol.kind_of(StateId(state as u16));
    let is_same_kind = |candidate: usize| protocol.kind_of(StateId(candidate as u16)) == kind;
    accesses.iter().any(|&access| {
        let mut states = (0..remote.states.len()).filter(|&candidate| is_same_kind(candidate));
        states.any(|candidate| {
            hits(access, &remote.states[candidate])
                || rows(remote, access, candidate).next().is_some()
        })
    })
}

/// The rows that take an access in a state.
fn rows(remote: &Controller, access: Access, state: usize) -> impl Iterator<Item = &Row> {
    remote.rules.iter().filter(move |row| {
        row.event == Event::Access(access)
            && row.state.index() == state
            && matches!(row.effect, Effect::Take { .. })
    })
}

/// True if an access needs no row in a state, because it is performed in place.
pub(super) fn hits(access: Access, state: &State) -> bool {
    access.is_performed_in_place() && access.is_permitted_by(state.permission)
}

/// Returns true if statements contain `done`, also inside loops and conditions.
pub(super) fn has_done(body: &[Statement]) -> bool {
    let mut found = false;
    Statement::visit(body, &mut |statement| {
        found |= *statement == Statement::Done
    });
    found
}

/// True if a home may refuse an operation that the device requests at quiescence. It may if, in a stable state, a row
/// refuses the operation under a guard that does not imply the lock.
fn refuses_when_quiescent(home: &Controller, local: u8) -> bool {
    let mut stable_states = (0..home.states.len()).filter(|&state| home.states[state].is_stable());
    stable_states.any(|state| {
        let rows_of = |event: Event| {
            let rows = home.rules.iter();
            rows.filter(move |row| row.event == event && row.state.index() == state)
        };
        let unlock = rows_of(Event::Unlock).next();
        let implies_lock = |row: &Row| {
            unlock.is_some_and(|unlock| {
                let is_taken = matches!(unlock.effect, Effect::Take { .. });
                is_taken && (unlock.guard.is_none() || unlock.guard == row.guard)
            })
        };
        // Rows after one without a guard never apply.
        let mut is_last = false;
        let mut rows = rows_of(Event::Local(local)).take_while(|row| {
            let was_last = is_last;
            is_last = row.guard.is_none();
            !was_last
        });
        rows.any(|row| {
            row.effect == Effect::Refuse && !implies_lock(row) && !never_applies(home, row)
        })
    })
}

/// True if a row never applies: its guard requires a value of a variable that neither begins with it nor is ever
/// assigned.
fn never_applies(home: &Controller, row: &Row) -> bool {
    let Some(Expression::Binary(Operator::Equal, variable, value)) = &row.guard else {
        return false;
    };
    let (Expression::Variable(variable), Expression::Constant(value)) = (&**variable, &**value)
    else {
        return false;
    };
    let assigns = |statement: &Statement| matches!(statement, Statement::Assign(assigned, _) if assigned == variable);
    let Variable { name, initial, .. } = &home.variables[variable.index()];
    // The outer level changes this variable.
    let is_external = name == MEMORY_WRITES;
    let begins = match initial {
        Initial::Number(number) => i64::from(*number) == i64::from(*value),
        Initial::All(_) => true,
    };
    !is_external && !begins && !home.rules.iter().any(|row| row.has_statement(&assigns))
}

/// Effect of reaching a state on an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goal {
    /// Reaching the state does not perform the access.
    Never,
    /// Reaching the state performs an outstanding access, but not one that has been rejected and is to be retried.
    Outstanding,
    /// Reaching the state performs the access, even one that has been rejected: a retry would find nothing to do.
    Always,
}

/// Result of a row for an outstanding access.
enum RowOutcome {
    /// The row performs the access.
    Performed,
    /// The access is still outstanding in the next state: index into the remote's states.
    Outstanding(usize),
    /// The row ends in a stable state without performing the access, for instance after a Nack.
    Abandoned,
}

/// Control flow of one kind of access through the rows.
pub(super) struct AccessFlow<'p> {
    /// Protocol whose remotes have the access.
    protocol: &'p Protocol,
    /// Access that is followed through the rows.
    access: Access,
    /// True if a write-back is complete wherever it comes to rest, because no row leads it to a clean state.
    never_clean: bool,
}

impl<'p> AccessFlow<'p> {
    /// Creates the flow of an access.
    pub fn new(protocol: &'p Protocol, access: Access) -> AccessFlow<'p> {
        let mut flow = AccessFlow {
            protocol,
            access,
            never_clean: false,
        };
        let is_performed = |outcome: &RowOutcome| matches!(outcome, RowOutcome::Performed);
        flow.never_clean = access == Access::Clean && !flow.outcomes().iter().any(is_performed);
        flow
    }

    /// Returns the condition under which reaching a state performs the access. `state` is an index into the remote's
    /// states.
    pub fn goal(&self, state: usize) -> Goal {
        let remote = &self.protocol.remote;
        let definition = &remote.states[state];
        let is_performable = self.access.is_permitted_by(definition.permission);
        match self.access {
            Access::Load | Access::Store | Access::Atomic if is_performable => Goal::Always,
            Access::Evict
                if definition.is_stable() && definition.permission == Permission::None =>
            {
                Goal::Always
            }
            Access::Demote
                if definition.is_stable() && definition.permission <= Permission::Read =>
            {
                Goal::Always
            }
            Access::Clean if definition.is_stable() && !definition.dirty => Goal::Always,
            Access::Clean if definition.is_stable() && self.never_clean => Goal::Outstanding,
            _ if is_performable && rows(remote, self.access, state).next().is_some() => {
                Goal::Always
            }
            _ if is_performable => Goal::Outstanding,
            _ => Goal::Never,
        }
    }

    /// True if a row sends the bytes of a write to the home. This completes the access if the row waits for nothing and
    /// does not retry.
    pub fn posts(&self, body: &[Statement]) -> bool {
        let mut found = false;
        Statement::visit(body, &mut |statement| {
            found |= matches!(statement, Statement::Send { message, .. } if self.protocol.message(*message).carries.store());
        });
        found && !body.contains(&Statement::Retry)
    }

    /// Returns the result of a row for the access; `None` if the row stalls, refuses or never occurs.
    fn outcome(&self, row: &Row) -> Option<RowOutcome> {
        let Effect::Take { body, next } = &row.effect else {
            return None;
        };
        let to = next.unwrap_or(row.state).index();
        let posted = row.event == Event::Access(self.access) && self.posts(body);
        Some(if has_done(body) || self.goal(to) != Goal::Never {
            RowOutcome::Performed
        } else if !self.protocol.remote.states[to].is_stable() {
            RowOutcome::Outstanding(to)
        } else if posted {
            RowOutcome::Performed
        } else {
            RowOutcome::Abandoned
        })
    }

    /// Results of all rows that may begin the access or find it outstanding.
    fn outcomes(&self) -> Vec<RowOutcome> {
        let remote = &self.protocol.remote;
        let mut visited = vec![false; remote.states.len()];
        let mut outcomes: Vec<RowOutcome> = (0..remote.states.len())
            .flat_map(|state| rows(remote, self.access, state))
            .filter_map(|row| self.outcome(row))
            .collect();
        // `outcomes` is also the queue of a breadth-first search over the states in which the access is outstanding.
        let mut next = 0;
        while let Some(outcome) = outcomes.get(next) {
            next += 1;
            let RowOutcome::Outstanding(state) = *outcome else {
                continue;
            };
            if !std::mem::replace(&mut visited[state], true) {
                let successors = bulk_transitions(remote).into_iter();
                let successors = successors.filter(|(from, _)| from.index() == state);
                outcomes.extend(successors.map(|(_, to)| RowOutcome::Outstanding(to.index())));
                let rows = remote.rules.iter();
                let rows = rows.filter(|row| row.state.index() == state);
                outcomes.extend(rows.filter_map(|row| self.outcome(row)));
            }
        }
        outcomes
    }

    /// True if some row ends the access without performing it.
    fn can_abandon(&self) -> bool {
        self.outcomes()
            .iter()
            .any(|outcome| matches!(outcome, RowOutcome::Abandoned))
    }
}
