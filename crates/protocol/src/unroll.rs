//! Unrolls operations on sets of homes and on whole arrays, home by home and element by element.
//!
//! Executors evaluate such sets by members. Models have a value for each home, and represent a set of homes as an array
//! of truth values. This module defines the meaning of rows in models, once for all of them.

use crate::controller::{
    Expression, HomeSet, HomeSetQuery, Operator, Set, Statement, Target, Value, Variable,
};
use crate::terms::{IndexDomain, Type, VariableId};

/// Number of homes of a system.
#[derive(Clone, Copy)]
pub struct Homes(pub u16);

impl Homes {
    /// Unrolls a query on sets of homes into an expression over single homes.
    pub fn expression(self, query: &HomeSetQuery) -> Expression {
        match query {
            HomeSetQuery::Count(set) => fold(Operator::Add, self.members(set)),
            HomeSetQuery::In(home, set) => {
                let members = (0..).zip(self.members(set));
                let memberships = members.map(|(number, member)| {
                    let is_same_home = is_home(home, number);
                    Expression::Binary(Operator::And, Box::new(is_same_home), Box::new(member))
                });
                fold(Operator::Or, memberships.collect())
            }
            HomeSetQuery::Equal(a, b) => {
                let pairs = self.members(a).into_iter().zip(self.members(b));
                let equalities = pairs
                    .map(|(a, b)| Expression::Binary(Operator::Equal, Box::new(a), Box::new(b)));
                fold(Operator::And, equalities.collect())
            }
        }
    }

    /// Unrolls a statement about several homes or elements; returns `None` for other statements. `variables` are those
    /// of the statement's controller.
    pub fn statement(self, statement: &Statement, variables: &[Variable]) -> Option<Statement> {
        Some(match statement {
            Statement::AssignHomes(variable, set) => {
                let members = (0..).zip(self.members(set));
                let assign = |(home, member)| {
                    Statement::AssignElement(*variable, vec![Expression::Constant(home)], member)
                };
                combine(members.map(assign).collect())
            }
            Statement::AssignAll(variable, value) => {
                assign_all_elements(*variable, variables[variable.index()].ty, value)
            }
            Statement::ForHomes { set, body } => {
                let iteration = |(home, condition)| Statement::If {
                    condition,
                    then: (body.iter())
                        .map(|inner| self.at_home(inner, variables, home))
                        .collect(),
                    otherwise: Vec::new(),
                };
                combine((0..).zip(self.members(set)).map(iteration).collect())
            }
            _ => return None,
        })
    }

    /// For each home, an expression that is true if the home is in a set.
    fn members(self, set: &HomeSet) -> Vec<Expression> {
        let combine_members =
            |a: &HomeSet, b: &HomeSet, join: fn(Expression, Expression) -> Expression| {
                let pairs = self.members(a).into_iter().zip(self.members(b));
                pairs.map(|(a, b)| join(a, b)).collect()
            };
        let numbers = 0..self.0;
        match set {
            HomeSet::Empty => vec![Expression::Constant(0); self.0.into()],
            HomeSet::Singleton(home) => numbers.map(|number| is_home(home, number)).collect(),
            HomeSet::Variable(variable) => {
                let member =
                    |home| Expression::Element(*variable, vec![Expression::Constant(home)]);
                numbers.map(member).collect()
            }
            HomeSet::Union(a, b) => combine_members(a, b, |a, b| {
                Expression::Binary(Operator::Or, Box::new(a), Box::new(b))
            }),
            HomeSet::Difference(a, b) => combine_members(a, b, |a, b| {
                let is_outside = Expression::Not(Box::new(b));
                Expression::Binary(Operator::And, Box::new(a), Box::new(is_outside))
            }),
        }
    }

    /// A statement of a loop over homes, in the iteration of this home.
    fn at_home(self, statement: &Statement, variables: &[Variable], home: u16) -> Statement {
        if let Some(unrolled) = self.statement(statement, variables) {
            return self.at_home(&unrolled, variables, home);
        }
        let substitute = |e: &Expression| self.substitute_home(e, home);
        let substitute_all = |list: &[Expression]| list.iter().map(substitute).collect();
        let unroll_body = |list: &[Statement]| {
            let statements = list
                .iter()
                .map(|inner| self.at_home(inner, variables, home));
            statements.collect()
        };
        match statement {
            Statement::Send {
                message,
                to,
                fields,
            } => Statement::Send {
                message: *message,
                to: match to {
                    Target::HomeAt(to) => Target::HomeAt(substitute(to)),
                    other => other.clone(),
                },
                fields: (fields.iter())
                    .map(|field| match field {
                        Value::Single(value, ty) => Value::Single(substitute(value), *ty),
                        Value::Set(set) => Value::Set(self.unroll_set(set, home)),
                    })
                    .collect(),
            },
            Statement::Assign(variable, value) => Statement::Assign(*variable, substitute(value)),
            Statement::AssignSet(variable, set) => {
                Statement::AssignSet(*variable, self.unroll_set(set, home))
            }
            Statement::Choose(variable, set) => {
                Statement::Choose(*variable, self.unroll_set(set, home))
            }
            Statement::AssignElement(variable, indices, value) => {
                Statement::AssignElement(*variable, substitute_all(indices), substitute(value))
            }
            Statement::If {
                condition,
                then,
                otherwise,
            } => Statement::If {
                condition: substitute(condition),
                then: unroll_body(then),
                otherwise: unroll_body(otherwise),
            },
            other => other.clone(),
        }
    }

    /// An expression of a loop over homes, in the iteration of this home. It contains no loop over remotes.
    fn substitute_home(self, expression: &Expression, home: u16) -> Expression {
        let boxed = |e: &Expression| Box::new(self.substitute_home(e, home));
        match expression {
            Expression::Each => Expression::Constant(home),
            Expression::Element(variable, indices) => {
                let indices = indices.iter().map(|e| self.substitute_home(e, home));
                Expression::Element(*variable, indices.collect())
            }
            Expression::Homes(query) => self.substitute_home(&self.expression(query), home),
            Expression::Table(table, index) => Expression::Table(*table, boxed(index)),
            Expression::Count(set) => Expression::Count(Box::new(self.unroll_set(set, home))),
            Expression::In(remote, set) => {
                Expression::In(boxed(remote), Box::new(self.unroll_set(set, home)))
            }
            Expression::Not(inner) => Expression::Not(boxed(inner)),
            Expression::Modulo(number, size) => Expression::Modulo(boxed(number), *size),
            Expression::Binary(operator, a, b) => Expression::Binary(*operator, boxed(a), boxed(b)),
            other => other.clone(),
        }
    }

    /// A set of remotes, in the iteration of this home.
    fn unroll_set(self, set: &Set, home: u16) -> Set {
        let boxed = |set: &Set| Box::new(self.unroll_set(set, home));
        match set {
            Set::Singleton(remote) => Set::Singleton(Box::new(self.substitute_home(remote, home))),
            Set::Union(a, b) => Set::Union(boxed(a), boxed(b)),
            Set::Difference(a, b) => Set::Difference(boxed(a), boxed(b)),
            other => other.clone(),
        }
    }
}

/// Assigns one value to all elements of an array.
fn assign_all_elements(variable: VariableId, ty: Type, value: &Expression) -> Statement {
    let Type::Array {
        first_domain,
        second_domain,
        ..
    } = ty
    else {
        return combine(Vec::new());
    };
    let dimensions = [Some(first_domain), second_domain];
    let numbers = dimensions.map(|domain| match domain {
        Some(IndexDomain::Numbers(count) | IndexDomain::Homes(count)) => (0..count)
            .map(|index| vec![Expression::Constant(index)])
            .collect(),
        Some(IndexDomain::Remotes) => vec![vec![Expression::Each]],
        None => vec![vec![]],
    });
    let [first, second] = &numbers;
    let set = first.iter().flat_map(|first_index| {
        second.iter().map(|second_index| {
            let indices = [&first_index[..], &second_index[..]].concat();
            Statement::AssignElement(variable, indices, value.clone())
        })
    });
    let body: Vec<Statement> = set.collect();
    if !dimensions.contains(&Some(IndexDomain::Remotes)) {
        return combine(body);
    }
    let condition = Expression::Constant(1);
    Statement::ForEach { condition, body }
}

/// Combines several statements into one.
fn combine(statements: Vec<Statement>) -> Statement {
    Statement::If {
        condition: Expression::Constant(1),
        then: statements,
        otherwise: Vec::new(),
    }
}

/// An expression that is true if a home is the one with this number.
fn is_home(home: &Expression, number: u16) -> Expression {
    match home {
        Expression::Constant(constant) => Expression::Constant((*constant == number).into()),
        home => Expression::Binary(
            Operator::Equal,
            Box::new(home.clone()),
            Box::new(Expression::Constant(number)),
        ),
    }
}

/// Joins all expressions by one operator; 0 if there are none.
fn fold(operator: Operator, expressions: Vec<Expression>) -> Expression {
    let join = |a, b| Expression::Binary(operator, Box::new(a), Box::new(b));
    expressions
        .into_iter()
        .reduce(join)
        .unwrap_or(Expression::Constant(0))
}
