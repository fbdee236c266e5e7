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
    pub fn expression(self, of: &HomeSetQuery) -> Expression {
        match of {
            HomeSetQuery::Count(set) => fold(Operator::Add, self.members(set)),
            HomeSetQuery::In(home, set) => {
                let members = (0..).zip(self.members(set));
                let both = members.map(|(number, member)| {
                    let same = is_home(home, number);
                    Expression::Binary(Operator::And, Box::new(same), Box::new(member))
                });
                fold(Operator::Or, both.collect())
            }
            HomeSetQuery::Equal(a, b) => {
                let pairs = self.members(a).into_iter().zip(self.members(b));
                let same = pairs
                    .map(|(a, b)| Expression::Binary(Operator::Equal, Box::new(a), Box::new(b)));
                fold(Operator::And, same.collect())
            }
        }
    }

    /// Unrolls a statement about several homes or elements; returns `None` for other statements. `variables` are those
    /// of the statement's controller.
    pub fn statement(self, statement: &Statement, variables: &[Variable]) -> Option<Statement> {
        Some(match statement {
            Statement::AssignHomes(variable, set) => {
                let members = (0..).zip(self.members(set));
                let put = |(home, member)| {
                    Statement::AssignElement(*variable, vec![Expression::Constant(home)], member)
                };
                together(members.map(put).collect())
            }
            Statement::AssignAll(variable, value) => {
                all_elements(*variable, variables[variable.index()].ty, value)
            }
            Statement::ForHomes { set, body } => {
                let turn = |(home, condition)| Statement::If {
                    condition,
                    then: (body.iter())
                        .map(|one| self.at_home(one, variables, home))
                        .collect(),
                    otherwise: Vec::new(),
                };
                together((0..).zip(self.members(set)).map(turn).collect())
            }
            _ => return None,
        })
    }

    /// For each home, an expression that is true if the home is in a set.
    fn members(self, set: &HomeSet) -> Vec<Expression> {
        let both = |a: &HomeSet, b: &HomeSet, join: fn(Expression, Expression) -> Expression| {
            let pairs = self.members(a).into_iter().zip(self.members(b));
            pairs.map(|(a, b)| join(a, b)).collect()
        };
        let all = 0..self.0;
        match set {
            HomeSet::Empty => vec![Expression::Constant(0); self.0.into()],
            HomeSet::Singleton(home) => all.map(|number| is_home(home, number)).collect(),
            HomeSet::Variable(variable) => {
                let member =
                    |home| Expression::Element(*variable, vec![Expression::Constant(home)]);
                all.map(member).collect()
            }
            HomeSet::Union(a, b) => both(a, b, |a, b| {
                Expression::Binary(Operator::Or, Box::new(a), Box::new(b))
            }),
            HomeSet::Difference(a, b) => both(a, b, |a, b| {
                let outside = Expression::Not(Box::new(b));
                Expression::Binary(Operator::And, Box::new(a), Box::new(outside))
            }),
        }
    }

    /// A statement of a loop over homes, in the iteration of this home.
    fn at_home(self, statement: &Statement, variables: &[Variable], home: u16) -> Statement {
        if let Some(several) = self.statement(statement, variables) {
            return self.at_home(&several, variables, home);
        }
        let here = |e: &Expression| self.put(e, home);
        let all = |list: &[Expression]| list.iter().map(here).collect();
        let body = |list: &[Statement]| {
            let turns = list.iter().map(|one| self.at_home(one, variables, home));
            turns.collect()
        };
        match statement {
            Statement::Send {
                message,
                to,
                fields,
            } => Statement::Send {
                message: *message,
                to: match to {
                    Target::HomeAt(to) => Target::HomeAt(here(to)),
                    other => other.clone(),
                },
                fields: (fields.iter())
                    .map(|field| match field {
                        Value::Single(value, ty) => Value::Single(here(value), *ty),
                        Value::Set(set) => Value::Set(self.unroll_set(set, home)),
                    })
                    .collect(),
            },
            Statement::Assign(variable, value) => Statement::Assign(*variable, here(value)),
            Statement::AssignSet(variable, set) => {
                Statement::AssignSet(*variable, self.unroll_set(set, home))
            }
            Statement::Choose(variable, set) => {
                Statement::Choose(*variable, self.unroll_set(set, home))
            }
            Statement::AssignElement(variable, at, value) => {
                Statement::AssignElement(*variable, all(at), here(value))
            }
            Statement::If {
                condition,
                then,
                otherwise,
            } => Statement::If {
                condition: here(condition),
                then: body(then),
                otherwise: body(otherwise),
            },
            other => other.clone(),
        }
    }

    /// An expression of a loop over homes, in the iteration of this home. It contains no loop over remotes.
    fn put(self, expression: &Expression, home: u16) -> Expression {
        let one = |e: &Expression| Box::new(self.put(e, home));
        match expression {
            Expression::Each => Expression::Constant(home),
            Expression::Element(variable, at) => {
                let at = at.iter().map(|e| self.put(e, home));
                Expression::Element(*variable, at.collect())
            }
            Expression::Homes(of) => self.put(&self.expression(of), home),
            Expression::Table(table, index) => Expression::Table(*table, one(index)),
            Expression::Count(set) => Expression::Count(Box::new(self.unroll_set(set, home))),
            Expression::In(remote, set) => {
                Expression::In(one(remote), Box::new(self.unroll_set(set, home)))
            }
            Expression::Not(inner) => Expression::Not(one(inner)),
            Expression::Round(number, size) => Expression::Round(one(number), *size),
            Expression::Binary(operator, a, b) => Expression::Binary(*operator, one(a), one(b)),
            other => other.clone(),
        }
    }

    fn unroll_set(self, set: &Set, home: u16) -> Set {
        let one = |set: &Set| Box::new(self.unroll_set(set, home));
        match set {
            Set::Singleton(remote) => Set::Singleton(Box::new(self.put(remote, home))),
            Set::Union(a, b) => Set::Union(one(a), one(b)),
            Set::Difference(a, b) => Set::Difference(one(a), one(b)),
            other => other.clone(),
        }
    }
}

/// Assigns one value to all elements of an array.
fn all_elements(variable: VariableId, ty: Type, value: &Expression) -> Statement {
    let Type::Array { over, then, .. } = ty else {
        return together(Vec::new());
    };
    let overs = [Some(over), then];
    let numbers = overs.map(|over| match over {
        Some(IndexDomain::Numbers(count) | IndexDomain::Homes(count)) => (0..count)
            .map(|at| vec![Expression::Constant(at)])
            .collect(),
        Some(IndexDomain::Remotes) => vec![vec![Expression::Each]],
        None => vec![vec![]],
    });
    let [first, second] = &numbers;
    let set = first.iter().flat_map(|one| {
        second.iter().map(|two| {
            let at = [&one[..], &two[..]].concat();
            Statement::AssignElement(variable, at, value.clone())
        })
    });
    let body: Vec<Statement> = set.collect();
    if !overs.contains(&Some(IndexDomain::Remotes)) {
        return together(body);
    }
    let condition = Expression::Constant(1);
    Statement::ForEach { condition, body }
}

/// Combines several statements into one.
fn together(statements: Vec<Statement>) -> Statement {
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
fn fold(operator: Operator, all: Vec<Expression>) -> Expression {
    let join = |a, b| Expression::Binary(operator, Box::new(a), Box::new(b));
    all.into_iter()
        .reduce(join)
        .unwrap_or(Expression::Constant(0))
}
