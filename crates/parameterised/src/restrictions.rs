//! Constructs that the abstraction does not model. Each is refused by name; none is ignored.
//!
//! The matches on statements, effects, targets, sets and events here and in [`crate::lift`] have no wildcard arms, so
//! that a new construct of the language does not compile before it is decided.

use cohkit_diagnostics::Span;
use cohkit_protocol::controller::{
    Controller, Effect, Event, Expression, Rule, Statement, Target, Value,
};
use cohkit_protocol::protocol::{Permission, Protocol, Type};

use crate::obstacle::Obstacle;
use crate::witnesses::violation_shown_by_pair;

/// Checks everything of a protocol except the home.
///
/// # Errors
/// The first construct that the abstraction does not model.
pub(crate) fn check_protocol(protocol: &Protocol) -> Result<(), Obstacle> {
    check_agents(protocol)?;
    for message in &protocol.messages {
        for field in &message.fields {
            check_local_type(field.ty, field.span, &field.name, "field")?;
        }
    }
    for invariant in &protocol.invariants {
        if !violation_shown_by_pair(&invariant.claim) {
            let name = &invariant.name;
            let reason =
                format!("a pair of remotes does not show each violation of the invariant `{name}`");
            return Err(Obstacle::at(invariant.span, reason));
        }
    }
    check_remote(&protocol.remote)
}

/// Checks the numbers and kinds of agents, and that lines are independent.
fn check_agents(protocol: &Protocol) -> Result<(), Obstacle> {
    if let [_, kind, ..] = &protocol.kinds[..] {
        let reason = format!("there are several kinds of remotes, as `{}`", kind.name);
        return Err(Obstacle::at(kind.span, reason));
    }
    if let Some(feature) = protocol.joins_lines() {
        let reason = format!("lines are not independent: {feature}");
        return Err(Obstacle::general(reason));
    }
    if !protocol.guarantee.coherent {
        return Err(Obstacle::general("the protocol guarantees no coherence"));
    }
    let initial = &protocol.remote.states[0];
    if initial.permission != Permission::None || initial.holds_line || !initial.is_stable() {
        let reason = format!(
            "remotes begin in `{}`, with a copy of the line or an outstanding access",
            initial.name
        );
        return Err(Obstacle::at(initial.span, reason));
    }
    Ok(())
}

/// Checks that a variable of a remote, or a field of a message, names no remote.
fn check_local_type(ty: Type, span: Span, name: &str, noun: &str) -> Result<(), Obstacle> {
    let type_words = match ty {
        Type::Range { .. } | Type::Cycle { .. } | Type::Bool => return Ok(()),
        Type::Count => "counts remotes",
        Type::Remote | Type::RemoteSet => "names remotes",
        Type::Home { .. } => "names a home",
        Type::Array { .. } => "is an array",
    };
    let reason =
        format!("the {noun} `{name}` {type_words}, which views of one remote do not determine");
    Err(Obstacle::at(span, reason))
}

/// Checks the variables and rows of the remotes.
fn check_remote(remote: &Controller) -> Result<(), Obstacle> {
    for variable in &remote.variables {
        check_local_type(variable.ty, variable.span, &variable.name, "variable")?;
    }
    for rule in &remote.rules {
        if let Some(guard) = &rule.guard {
            check_expression(guard, rule)?;
        }
        match &rule.effect {
            Effect::Take { body, next: _ } => check_statements(body, rule)?,
            Effect::Stall | Effect::Refuse | Effect::Never => {}
        }
        match rule.event {
            Event::Access(access) if !access.about_line() => {
                let reason = format!("`{}` is about no line", access.name());
                return Err(Obstacle::at(rule.span, reason));
            }
            Event::Access(_) | Event::Message(_) => {}
            Event::Local(_) | Event::Unlock | Event::MemoryData(_) | Event::MemoryDone => {
                return Err(unsupported(rule, "an event of a home"));
            }
        }
    }
    Ok(())
}

/// Obstacle: a row of a remote has this construct.
fn unsupported(rule: &Rule, construct: &str) -> Obstacle {
    let reason = format!("a row of a remote has {construct}, which views of one remote lack");
    Obstacle::at(rule.span, reason)
}

/// Checks statements of a remote's row.
fn check_statements(body: &[Statement], rule: &Rule) -> Result<(), Obstacle> {
    for statement in body {
        match statement {
            Statement::Send {
                message: _,
                to,
                fields,
            } => {
                match to {
                    Target::Home => {}
                    Target::HomeAt(_) => return Err(unsupported(rule, "a numbered home")),
                    Target::Remote(_) | Target::Each(_) => {
                        return Err(unsupported(rule, "a message to another remote"))
                    }
                }
                for field in fields {
                    match field {
                        Value::Single(value, _) => check_expression(value, rule)?,
                        Value::Set(_) => return Err(unsupported(rule, "a set of remotes")),
                    }
                }
            }
            Statement::Assign(_, value) => check_expression(value, rule)?,
            Statement::If {
                condition,
                then,
                otherwise,
            } => {
                check_expression(condition, rule)?;
                check_statements(then, rule)?;
                check_statements(otherwise, rule)?;
            }
            Statement::Done | Statement::Retry => {}
            Statement::AssignSet(..) | Statement::Choose(..) => {
                return Err(unsupported(rule, "a set of remotes"))
            }
            Statement::AssignElement(..) | Statement::AssignAll(..) => {
                return Err(unsupported(rule, "an array"))
            }
            Statement::AssignHomes(..) | Statement::ForHomes { .. } => {
                return Err(unsupported(rule, "a set of homes"))
            }
            Statement::ForEach { .. } => return Err(unsupported(rule, "a loop over remotes")),
            Statement::BulkTransition { .. } => {
                return Err(unsupported(rule, "a transition of all lines"))
            }
            Statement::WriteMemory
            | Statement::DeferStore
            | Statement::CommitDeferred
            | Statement::StartRead
            | Statement::StartWrite
            | Statement::StartStore { .. }
            | Statement::Acknowledge(_)
            | Statement::AcknowledgeUnlock => return Err(unsupported(rule, "an act of a home")),
        }
    }
    Ok(())
}

/// Checks an expression of a remote's row.
fn check_expression(expression: &Expression, rule: &Rule) -> Result<(), Obstacle> {
    match expression {
        Expression::Constant(_)
        | Expression::State
        | Expression::Home
        | Expression::Variable(_)
        | Expression::Field(_) => Ok(()),
        Expression::Not(operand) | Expression::Modulo(operand, _) => {
            check_expression(operand, rule)
        }
        Expression::Binary(_, left, right) => {
            check_expression(left, rule)?;
            check_expression(right, rule)
        }
        Expression::None | Expression::Own | Expression::Sender => {
            Err(unsupported(rule, "the name of a remote"))
        }
        Expression::Each | Expression::All(_) | Expression::Any(_) => {
            Err(unsupported(rule, "a quantifier over remotes"))
        }
        Expression::Element(..) => Err(unsupported(rule, "an array")),
        Expression::Table(..) => Err(unsupported(rule, "a table")),
        Expression::Count(_)
        | Expression::In(..)
        | Expression::SetsEqual(..)
        | Expression::SetsDiffer(..) => Err(unsupported(rule, "a set of remotes")),
        Expression::Homes(_) => Err(unsupported(rule, "a set of homes")),
    }
}
