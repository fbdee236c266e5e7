//! The fixed parts of a system: its protocol and sizes, the types of remotes and lines, and the names of its agents.

use cohkit_base::sequence::{homes, lifeline};
use cohkit_engine::model::{Expr, Place, Stmt, TypeId, VariableId};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::value_text::AgentNames;
use cohkit_system::plan::ProtocolFacts;

use super::charts::Charts;
use super::options::Options;
use super::scope::Scope;

/// The fixed parts of a system, and the model to which all other parts add.
pub(super) struct Frame<'p> {
    /// Protocol of the system.
    pub protocol: &'p Protocol,
    /// Options of the model.
    pub options: &'p Options,
    /// Static analysis of the rows.
    pub facts: ProtocolFacts,
    /// The model under construction.
    pub scope: Scope,
    /// Number of remotes.
    pub remotes: i32,
    /// Number of remotes of each kind.
    pub remotes_by_kind: Remotes,
    /// Number of lines. They are distributed over the homes in turn.
    pub lines: i32,
    /// Type of remotes' indices, from 0 to `remotes` - 1.
    pub remote_type: TypeId,
    /// Type of lines' numbers, from 0 to `lines` - 1.
    pub line_type: TypeId,
    /// Name of the home in the names of variables; differs from that of the remotes.
    pub home_name: String,
    /// Names of the agents, in the order of their lifelines.
    pub names: AgentNames,
    /// Lifeline of the home, or of the first of several; remotes come before it.
    pub first_home: i32,
    /// Lifeline of memory, after those of the homes.
    pub memory_agent: i32,
}

impl<'p> Frame<'p> {
    /// Creates a model with the types of lines and remotes.
    pub fn new(
        protocol: &'p Protocol,
        home: &Controller,
        remotes_by_kind: Remotes,
        lines: u8,
        options: &'p Options,
    ) -> Frame<'p> {
        let remotes = remotes_by_kind.total();
        let scope = Scope::new(format!("{} {remotes}x{lines}", protocol.name));
        let home_name = if home.name == protocol.remote.name {
            format!("{}_home", home.name)
        } else {
            home.name.clone()
        };
        let names = AgentNames {
            remotes: (0..remotes)
                .map(|remote| lifeline(&protocol.remote_name(&remotes_by_kind, remote), "remote"))
                .collect(),
            homes: homes(&home_name, protocol.homes),
        };
        let (remotes, lines) = (i32::from(remotes), i32::from(lines));
        let line_type = scope.range("line", 0, lines - 1);
        let remote_type = scope.range("remote", 0, remotes - 1);
        for name in names.remotes.iter().chain(&names.homes) {
            scope.agent(name);
        }
        let memory_agent = scope.agent("memory");
        scope.with_builder(|build| build.trace_renderer(&Charts));
        Frame {
            protocol,
            options,
            facts: ProtocolFacts::new(protocol, home),
            scope,
            remotes,
            remotes_by_kind,
            lines,
            remote_type,
            line_type,
            home_name,
            first_home: memory_agent - i32::from(protocol.homes),
            names,
            memory_agent,
        }
    }

    /// Returns the type of arrays with an element for each line and remote.
    pub fn per_remote(&self, name: &str, element: TypeId) -> TypeId {
        let inner = self.scope.array(name, self.remote_type, element);
        self.scope.array(name, self.line_type, inner)
    }

    /// Returns the type of arrays with an element for each home; with one home, that of its element.
    pub fn per_home(&self, name: &str, element: TypeId) -> TypeId {
        match i32::from(self.protocol.homes) {
            1 => element,
            homes => {
                let home = self.scope.range("home", 0, homes - 1);
                self.scope.array(name, home, element)
            }
        }
    }

    /// Returns the rule parameter for the line of an event, also as an expression.
    pub fn line_parameter(&self) -> (VariableId, Expr) {
        let line = self.scope.parameter("l", self.line_type);
        (line, line.into())
    }

    /// Returns the rule parameter for the remote that executes a row.
    pub fn remote_parameter(&self) -> VariableId {
        self.scope.parameter("r", self.remote_type)
    }

    /// Returns the condition that a claim holds for some remote.
    pub fn any_remote(&self, claim: impl FnOnce(VariableId) -> Expr) -> Expr {
        (self.scope).with_bound(self.remote_type, |remote| remote.any(claim(remote)))
    }

    /// Returns the condition that a claim holds for all remotes.
    pub fn all_remotes(&self, claim: impl FnOnce(VariableId) -> Expr) -> Expr {
        (self.scope).with_bound(self.remote_type, |remote| remote.all(claim(remote)))
    }

    /// Returns the condition that a claim holds for all lines.
    pub fn all_lines(&self, claim: impl FnOnce(&Expr) -> Expr) -> Expr {
        (self.scope).with_bound(self.line_type, |line| line.all(claim(&line.into())))
    }

    /// Returns a loop that executes statements for each remote.
    pub fn for_each_remote(&self, body: impl FnOnce(VariableId) -> Vec<Stmt>) -> Stmt {
        (self.scope).with_bound(self.remote_type, |remote| remote.each(body(remote)))
    }

    /// Returns statements for each element of a nested array: `types` are the index types below `place`, outermost
    /// first.
    pub fn for_each_cell(
        &self,
        types: &[TypeId],
        place: Place,
        body: &dyn Fn(Place) -> Vec<Stmt>,
    ) -> Vec<Stmt> {
        match types {
            [] => body(place),
            [first, rest @ ..] => vec![(self.scope).with_bound(*first, |index| {
                index.each(self.for_each_cell(rest, place.at(index), body))
            })],
        }
    }

    /// Returns the condition that a claim holds for some element of a nested array: `types` are the index types
    /// below `place`, outermost first.
    pub fn any_cell(&self, types: &[TypeId], place: Place, claim: &dyn Fn(Place) -> Expr) -> Expr {
        match types {
            [] => claim(place),
            [first, rest @ ..] => (self.scope).with_bound(*first, |index| {
                index.any(self.any_cell(rest, place.at(index), claim))
            }),
        }
    }

    /// Returns the number of a line's home. A message about no line has the home's number in place of the line.
    pub fn home_of(&self, line: &Expr) -> Expr {
        match i32::from(self.protocol.homes) {
            1 => Expr::Int(0),
            homes if homes == self.lines => line.clone(),
            homes => line.clone() % homes,
        }
    }

    /// Returns a home's part of a variable that has no lines. `line` is one of the home's lines.
    pub fn part_of_home(&self, variable: VariableId, line: &Expr) -> Place {
        match self.protocol.homes {
            1 => variable.into(),
            _ => variable.at(self.home_of(line)),
        }
    }
}
