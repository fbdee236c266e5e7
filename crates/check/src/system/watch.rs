//! The watched access or operation of a model that checks progress.

use cohkit_engine::build::when;
use cohkit_engine::model::{Expr, Stmt, TableId, TypeId, VariableId};
use cohkit_protocol::controller::{Event, Statement};
use std::rc::Rc;

use super::access_flow::{has_done, AccessFlow, Goal, Kind};
use super::agents::Agents;
use super::context::Context;

/// State variables for one kind of access or operation.
pub(super) struct Watch<'p> {
    /// States of the agents, which show that an access is performed.
    agents: Rc<Agents<'p>>,
    /// Access or operation that is watched.
    kind: Kind,
    /// True while the access or operation is wanted: set when it begins or is requested, cleared when it is performed.
    pub wanted: VariableId,
    /// The watched remote, if an access is watched.
    remote: Option<WatchedRemote<'p>>,
}

/// State variables of the watched remote.
struct WatchedRemote<'p> {
    /// Paths of the access through the rows.
    flow: AccessFlow<'p>,
    /// Index of the watched remote, chosen at the start.
    remote: VariableId,
    /// True if the outstanding access of the watched remote on the watched line is the watched one.
    outstanding: VariableId,
    /// Per state, its [`Goal`] as a number: `Never` 0, `Outstanding` 1, `Always` 2.
    goal: TableId,
}

impl<'p> Watch<'p> {
    /// Declares the variables that watch a kind of access or operation.
    pub fn new(agents: &Rc<Agents<'p>>, kind: Kind) -> Watch<'p> {
        let frame = &agents.frame;
        let scope = &frame.scope;
        let name = kind.name(agents.home.controller);
        let wanted = scope.state(format!("{name}_is_wanted"), TypeId::BOOL);
        let remote = match kind {
            Kind::Local(_) => None,
            Kind::Access(access) => {
                let flow = AccessFlow::new(frame.protocol, access);
                let states = 0..frame.protocol.remote.states.len();
                let goals = states.map(|state| match flow.goal(state) {
                    Goal::Never => 0,
                    Goal::Outstanding => 1,
                    Goal::Always => 2,
                });
                let goals: Vec<i32> = goals.collect();
                let degree = scope.range("goal", 0, 2);
                let outstanding = format!("{name}_is_in_flight");
                Some(WatchedRemote {
                    flow,
                    remote: scope.state("watched", frame.remote_type),
                    outstanding: scope.state(outstanding, TypeId::BOOL),
                    goal: scope.table("goal", agents.remote.states, degree, goals),
                })
            }
        };
        Watch {
            agents: agents.clone(),
            kind,
            wanted,
            remote,
        }
    }

    /// True if rows for this event begin the watched access.
    pub fn begins(&self, event: Event) -> bool {
        matches!(self.kind, Kind::Access(access) if event == Event::Access(access))
    }

    /// Returns the variable that holds the watched remote; `None` if an operation of the device is watched.
    pub fn watched_remote(&self) -> Option<VariableId> {
        self.remote.as_ref().map(|remote| remote.remote)
    }

    /// Returns the statements for the watched access at the end of a remote's row. `body` is the row's body. Empty for
    /// a row of the home.
    pub fn row_effects(&self, event: Event, context: &Context, body: &[Statement]) -> Vec<Stmt> {
        let (Some(executing_remote), Some(remote), false) =
            (&context.remote, &self.remote, context.home)
        else {
            return Vec::new();
        };
        let performed = || vec![self.wanted.set(false), remote.outstanding.set(false)];
        let mut changes_every_line = false;
        Statement::visit(body, &mut |statement| {
            changes_every_line |= matches!(statement, Statement::BulkTransition { .. })
        });
        // A row that changes every line changes the watched line.
        let line = match changes_every_line {
            true => Expr::Int(0),
            false => context.line.clone(),
        };
        let side = &self.agents.remote;
        let state = side.state.at(&line).at(executing_remote);
        let is_stable = side.stable.of(state.clone());
        let mut effects = Vec::new();
        if self.begins(event) {
            effects.extend([self.wanted.set(true), remote.outstanding.set(true)]);
            if remote.flow.posts(body) {
                effects.push(when(is_stable.clone(), performed()));
            }
        }
        if has_done(body) {
            effects.push(when(remote.outstanding, performed()));
        }
        let goal = remote.goal.of(state);
        let reaches_goal = goal.clone().is(2).or(goal.is(1).and(remote.outstanding));
        effects.push(when(reaches_goal, performed()));
        effects.push(when(is_stable, vec![remote.outstanding.set(false)]));
        let is_watched_remote = remote
            .remote
            .is(executing_remote)
            .and(self.is_watched(&line));
        vec![when(is_watched_remote, effects)]
    }

    /// True on the watched line: the first one, as the lines of all homes behave alike.
    fn is_watched(&self, line: &Expr) -> Expr {
        match self.agents.frame.lines {
            1 => Expr::Bool(true),
            _ => line.clone().is(0),
        }
    }

    /// Returns the statement for the watched operation when the device requests a local operation (`wanted` is true),
    /// or when the home has performed one. `None` if another operation or an access is watched.
    pub fn operation_effect(&self, local: u8, line: &Expr, wanted: bool) -> Option<Stmt> {
        let is_same = self.kind == Kind::Local(local);
        is_same.then(|| when(self.is_watched(line), vec![self.wanted.set(wanted)]))
    }
}
