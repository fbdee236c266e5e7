//! Homes that are constructed from a policy.
//!
//! Such a home keeps one knowledge index for each remote in an array, and reads it through constant tables. In a view
//! the cell has its index, and the other remotes are summarised by *blocks* of indices: one bit for each block that
//! contains the index of some other remote. Indices of one block are equivalent as long as their remote neither sends a
//! message nor is part of the view: rows read the same facts of them, and the same message of the home leads to the
//! same block.

use cohkit_diagnostics::Span;
use cohkit_protocol::construct::table::refine;
use cohkit_protocol::controller::{
    Controller, Effect, Event, Expression, Operator, Statement, Target,
};
use cohkit_protocol::terms::{Element, IndexDomain, Type, VariableId};
use std::collections::BTreeSet;

use crate::blocks::{Blocks, MAX_BLOCKS};
use crate::lift::LiftedHome;
use crate::obstacle::Obstacle;

/// The array with the knowledge of each remote: the first variable of a constructed home.
const KNOWLEDGE: VariableId = VariableId(0);

/// Prepares a constructed home for the search.
///
/// # Errors
/// The home has a construct that blocks do not model, or too many blocks.
pub(crate) fn lift_constructed(home: &Controller) -> Result<LiftedHome, Obstacle> {
    let mut uses = TableUses {
        home,
        facts: BTreeSet::new(),
        transitions: BTreeSet::new(),
        rule: home.span,
    };
    uses.check_variables()?;
    for rule in &home.rules {
        uses.rule = rule.span;
        match rule.event {
            Event::Access(_) => return Err(uses.unsupported("an access")),
            Event::Message(_)
            | Event::Local(_)
            | Event::Unlock
            | Event::MemoryData(_)
            | Event::MemoryDone => {}
        }
        if let Some(guard) = &rule.guard {
            uses.expression(guard, Scope::Row)?;
        }
        match &rule.effect {
            Effect::Take { body, next: _ } => uses.statements(body)?,
            Effect::Stall | Effect::Refuse | Effect::Never => {}
        }
    }
    Ok(LiftedHome {
        controller: home.clone(),
        saturation: 1,
        uses_all: false,
        obligations: Vec::new(),
        requester: None,
        blocks: Some(uses.blocks()?),
    })
}

/// Place of an expression.
#[derive(Clone, Copy, PartialEq)]
enum Scope {
    /// Outside loops and quantifiers.
    Row,
    /// In a quantifier over remotes: `each` is bound.
    Quantifier,
    /// In a loop over remotes: `each` is bound, and iterations change the knowledge of their remote.
    Loop,
}

/// Tables that rows apply to the knowledge of remotes that may be outside a view.
struct TableUses<'h> {
    /// Constructed home.
    home: &'h Controller,
    /// Tables whose values matter.
    facts: BTreeSet<u16>,
    /// Tables whose values are the next index plus 1, or 0 for none.
    transitions: BTreeSet<u16>,
    /// Span of the current row.
    rule: Span,
}

impl TableUses<'_> {
    /// Obstacle: the current row has this construct.
    fn unsupported(&self, construct: &str) -> Obstacle {
        let reason =
            format!("a row of the constructed home has {construct}, which blocks do not model");
        Obstacle::at(self.rule, reason)
    }

    /// Type of a variable.
    fn ty(&self, variable: VariableId) -> Type {
        self.home.variables[variable.index()].ty
    }

    /// Checks that the first variable is the knowledge of each remote, and that at most one names a remote.
    fn check_variables(&self) -> Result<(), Obstacle> {
        let mut pointers = 0;
        for (index, variable) in self.home.variables.iter().enumerate() {
            let is_known = match variable.ty {
                Type::Array { .. } => index == KNOWLEDGE.index() && is_per_remote(variable.ty),
                Type::Range { .. } | Type::Cycle { .. } | Type::Bool => index > 0,
                Type::Remote => {
                    pointers += 1;
                    index > 0 && pointers == 1
                }
                Type::Count | Type::RemoteSet | Type::Home { .. } => false,
            };
            if !is_known || variable.register {
                return Err(self.unsupported(&format!("the variable `{}`", variable.name)));
            }
        }
        Ok(())
    }

    /// Checks statements outside loops.
    fn statements(&mut self, body: &[Statement]) -> Result<(), Obstacle> {
        for statement in body {
            match statement {
                Statement::Send {
                    message: _,
                    to,
                    fields,
                } => match to {
                    Target::Remote(Expression::Sender | Expression::Variable(_))
                        if fields.is_empty() => {}
                    Target::Remote(_) | Target::Each(_) | Target::Home | Target::HomeAt(_) => {
                        return Err(self.unsupported("a message to another receiver"))
                    }
                },
                Statement::Assign(_, Expression::Sender | Expression::None) => {}
                Statement::Assign(variable, value) => match self.ty(*variable) {
                    Type::Range { .. } | Type::Cycle { .. } | Type::Bool => {
                        self.expression(value, Scope::Row)?;
                    }
                    Type::Remote
                    | Type::Count
                    | Type::RemoteSet
                    | Type::Home { .. }
                    | Type::Array { .. } => {
                        return Err(self.unsupported("an assignment to a remote"))
                    }
                },
                Statement::AssignElement(variable, indices, value) => {
                    self.assign_knowledge(*variable, indices, value, Scope::Row)?;
                }
                Statement::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    self.expression(condition, Scope::Row)?;
                    self.statements(then)?;
                    self.statements(otherwise)?;
                }
                Statement::ForEach { condition, body } => {
                    self.expression(condition, Scope::Loop)?;
                    self.loop_statements(body)?;
                }
                Statement::StartRead
                | Statement::StartWrite
                | Statement::StartStore { .. }
                | Statement::Acknowledge(_)
                | Statement::AcknowledgeUnlock => {}
                Statement::AssignSet(..)
                | Statement::Choose(..)
                | Statement::AssignAll(..)
                | Statement::AssignHomes(..)
                | Statement::ForHomes { .. }
                | Statement::BulkTransition { .. }
                | Statement::WriteMemory
                | Statement::DeferStore
                | Statement::CommitDeferred
                | Statement::Done
                | Statement::Retry => return Err(self.unsupported("an act of another home")),
            }
        }
        Ok(())
    }

    /// Checks the statements of an iteration, which may change nothing but the knowledge of its remote.
    fn loop_statements(&mut self, body: &[Statement]) -> Result<(), Obstacle> {
        for statement in body {
            match statement {
                Statement::Send {
                    message: _,
                    to: Target::Remote(Expression::Each),
                    fields,
                } if fields.is_empty() => {}
                Statement::AssignElement(variable, indices, value) => {
                    self.assign_knowledge(*variable, indices, value, Scope::Loop)?;
                }
                Statement::Send { .. }
                | Statement::Assign(..)
                | Statement::AssignSet(..)
                | Statement::Choose(..)
                | Statement::AssignAll(..)
                | Statement::AssignHomes(..)
                | Statement::ForEach { .. }
                | Statement::ForHomes { .. }
                | Statement::If { .. }
                | Statement::WriteMemory
                | Statement::DeferStore
                | Statement::CommitDeferred
                | Statement::Done
                | Statement::Retry
                | Statement::BulkTransition { .. }
                | Statement::StartRead
                | Statement::StartWrite
                | Statement::StartStore { .. }
                | Statement::Acknowledge(_)
                | Statement::AcknowledgeUnlock => {
                    return Err(self.unsupported("another statement in a loop"))
                }
            }
        }
        Ok(())
    }

    /// Checks an assignment to the knowledge of a remote. That of a sender is an index of a cell. That of another
    /// remote must be the entry of a table for its previous index.
    fn assign_knowledge(
        &mut self,
        variable: VariableId,
        indices: &[Expression],
        value: &Expression,
        scope: Scope,
    ) -> Result<(), Obstacle> {
        if variable != KNOWLEDGE {
            return Err(self.unsupported("another array"));
        }
        if let [Expression::Sender] = indices {
            return match scope {
                Scope::Row => self.expression(value, scope),
                Scope::Quantifier | Scope::Loop => Err(self.unsupported("the sender in a loop")),
            };
        }
        if !self.may_be_outside(indices, scope) {
            return Err(self.unsupported("knowledge of an unknown remote"));
        }
        let Expression::Binary(Operator::Subtract, entry, one) = value else {
            return Err(self.unsupported("knowledge without a table"));
        };
        match (&**entry, &**one) {
            (Expression::Table(table, index), Expression::Constant(1)) if matches!(&**index, Expression::Element(KNOWLEDGE, of) if of == indices) =>
            {
                self.transitions.insert(*table);
                Ok(())
            }
            (_, _) => Err(self.unsupported("knowledge without a table")),
        }
    }

    /// True if the index of the array names a remote that may be outside a view, in a way that rows of the scope may
    /// use.
    fn may_be_outside(&self, indices: &[Expression], scope: Scope) -> bool {
        match (indices, scope) {
            ([Expression::Each], Scope::Quantifier | Scope::Loop) => true,
            ([Expression::Variable(variable)], Scope::Row | Scope::Quantifier) => {
                self.ty(*variable) == Type::Remote
            }
            (_, _) => false,
        }
    }

    /// Checks an expression, and records the tables that it applies to the knowledge of remotes outside.
    fn expression(&mut self, expression: &Expression, scope: Scope) -> Result<(), Obstacle> {
        match expression {
            Expression::Constant(_) | Expression::State => Ok(()),
            Expression::Variable(variable) => match self.ty(*variable) {
                Type::Range { .. } | Type::Cycle { .. } | Type::Bool => Ok(()),
                Type::Remote
                | Type::Count
                | Type::RemoteSet
                | Type::Home { .. }
                | Type::Array { .. } => Err(self.unsupported("a remote as a value")),
            },
            Expression::Table(table, index) => match &**index {
                Expression::Element(KNOWLEDGE, indices) if self.may_be_outside(indices, scope) => {
                    self.facts.insert(*table);
                    Ok(())
                }
                index => self.expression(index, scope),
            },
            Expression::Element(KNOWLEDGE, indices) => match (&indices[..], scope) {
                ([Expression::Sender], Scope::Row | Scope::Quantifier) => Ok(()),
                (_, _) => Err(self.unsupported("knowledge outside a table")),
            },
            Expression::All(condition) | Expression::Any(condition) => match scope {
                Scope::Row => self.expression(condition, Scope::Quantifier),
                Scope::Quantifier | Scope::Loop => Err(self.unsupported("nested quantifiers")),
            },
            Expression::Not(operand) => self.expression(operand, scope),
            Expression::Binary(Operator::Equal | Operator::NotEqual, left, right)
                if **left == Expression::Each && scope != Scope::Row =>
            {
                match **right {
                    Expression::Variable(variable) if self.ty(variable) == Type::Remote => Ok(()),
                    _ => Err(self.unsupported("a comparison of remotes")),
                }
            }
            Expression::Binary(_, left, right) => {
                self.expression(left, scope)?;
                self.expression(right, scope)
            }
            Expression::None
            | Expression::Own
            | Expression::Sender
            | Expression::Home
            | Expression::Each
            | Expression::Element(..)
            | Expression::Field(_)
            | Expression::Count(_)
            | Expression::In(..)
            | Expression::SetsEqual(..)
            | Expression::SetsDiffer(..)
            | Expression::Homes(_)
            | Expression::Modulo(..) => Err(self.unsupported("another expression")),
        }
    }

    /// Coarsest blocks whose indices have equal facts, and whose transitions lead to equal blocks.
    ///
    /// # Errors
    /// There are too many.
    fn blocks(&self) -> Result<Blocks, Obstacle> {
        let indices = self.home.tables.iter().map(|table| table.values.len());
        let indices = indices.max().unwrap_or(1);
        let entry = |table: u16, index: usize| self.home.tables[usize::from(table)].values[index];
        let block_of = refine(indices, |index, class| {
            let facts = self
                .facts
                .iter()
                .map(|&table| u32::from(entry(table, index)));
            let next = self.transitions.iter().map(|&table| {
                let next = usize::from(entry(table, index));
                next.checked_sub(1).map_or(0, |next| class[next] + 1)
            });
            facts.chain(next).collect::<Vec<u32>>()
        });
        let mut first = Vec::new();
        for (index, &block) in block_of.iter().enumerate() {
            if block as usize == first.len() {
                first.push(index as u16);
            }
        }
        if first.len() > MAX_BLOCKS {
            let reason = format!(
                "the home distinguishes {} kinds of knowledge of a remote, more than {MAX_BLOCKS}",
                first.len()
            );
            return Err(Obstacle::at(self.home.span, reason));
        }
        let block_of = block_of.iter().map(|&block| block as u16).collect();
        Ok(Blocks { block_of, first })
    }
}

/// True if the type is an array with one number for each remote.
fn is_per_remote(ty: Type) -> bool {
    matches!(
        ty,
        Type::Array {
            of: Element::Range { .. },
            first_domain: IndexDomain::Remotes,
            second_domain: None,
        }
    )
}
