//! Expressions of rows as SystemVerilog.
//!
//! Each operand of a sum or comparison is printed in one width, which holds every intermediate value: bounds of values
//! follow from the types of variables and fields. An expression that may be negative is signed.

use super::layout::{bits, Agent, Agents};
use cohkit_protocol::controller::{Controller, Event, Expression, Operator, Rule, Set};
use cohkit_protocol::terms::{IndexDomain, Type, VariableId};
use cohkit_protocol::unroll::Homes;

/// Smallest and largest value of an expression.
type Bounds = (i64, i64);

/// Type in which the operands of a sum or comparison are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    /// Width in bits.
    pub width: u32,
    /// True if some value is negative.
    pub signed: bool,
}

impl Form {
    /// Returns the smallest type that holds these values.
    pub fn of((low, high): Bounds) -> Form {
        let magnitude = bits(high.max(0) as u64).max(bits((-(low + 1)).max(0) as u64));
        match low < 0 {
            true => Form {
                width: magnitude + 1,
                signed: true,
            },
            false => Form {
                width: bits(high as u64),
                signed: false,
            },
        }
    }

    /// Prints a constant.
    pub fn constant(self, value: u16) -> String {
        let sign = if self.signed { "s" } else { "" };
        format!("{}'{sign}d{value}", self.width)
    }

    /// Prints a value of another width, which is unsigned.
    fn cast(self, text: &str, width: u32) -> String {
        match (self.signed, width == self.width) {
            (false, true) => text.to_string(),
            (false, false) => format!("{}'({text})", self.width),
            (true, _) => format!("$signed({}'({text}))", self.width),
        }
    }
}

/// A row whose expressions are printed.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    /// Agents of the protocol.
    pub agents: &'a Agents<'a>,
    /// Agent that has the row.
    pub agent: &'a Agent,
    /// The row.
    pub rule: &'a Rule,
    /// Index of the remote of the current iteration of a loop or quantifier.
    pub each: Option<u16>,
}

/// Joins conditions, of which one suffices; `None` if there are none.
fn any_of(conditions: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let conditions: Vec<String> = conditions.into_iter().flatten().collect();
    match &conditions[..] {
        [] => None,
        [one] => Some(one.clone()),
        _ => Some(format!("({})", conditions.join(" || "))),
    }
}

/// Removes the parentheses around a whole expression.
pub(super) fn bare(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) else {
        return text;
    };
    let mut depth = 0i32;
    let closes_early = inner.chars().any(|character| {
        depth += i32::from(character == '(') - i32::from(character == ')');
        depth < 0
    });
    if closes_early {
        text
    } else {
        inner
    }
}

impl<'a> Scope<'a> {
    /// Table that has the row.
    fn controller(&self) -> &'a Controller {
        self.agents.controller(self.agent)
    }

    /// Type of a variable.
    pub fn ty(&self, variable: VariableId) -> Type {
        self.controller().variables[variable.index()].ty
    }

    /// Name of a variable's current value.
    pub fn variable(&self, variable: VariableId) -> String {
        format!("v.{}", self.agents.variable_name(self.agent, variable))
    }

    /// Type of a field of the row's message.
    fn field_type(&self, field: u8) -> Type {
        match self.rule.event {
            Event::Message(message) => {
                self.agents.protocol.message(message).fields[usize::from(field)].ty
            }
            _ => Type::Bool,
        }
    }

    /// Name of a field of the row's message.
    fn field(&self, field: u8) -> String {
        let name = match self.rule.event {
            Event::Message(message) => {
                let message = self.agents.protocol.message(message);
                crate::print::identifier(&message.fields[usize::from(field)].name)
            }
            _ => String::new(),
        };
        format!("fields_i.{name}")
    }

    /// Width of a field in the structure of all fields.
    fn field_width(&self, field: u8) -> u32 {
        let name = self.field(field);
        let mut fields = self.agents.fields.iter();
        let found = fields.find(|(other, _)| name == format!("fields_i.{other}"));
        found.map_or(1, |(_, width)| *width)
    }

    /// Returns bounds of an expression's value.
    pub fn bounds(&self, expression: &Expression) -> Bounds {
        let total = i64::from(self.agents.total());
        let constant = |value: i64| (value, value);
        match expression {
            Expression::Constant(value) => constant((*value).into()),
            Expression::None | Expression::Home => constant(0),
            Expression::Own => (1, total),
            Expression::Sender => {
                let (low, high) = self.agents.senders(self.agent, self.rule.event);
                (low.into(), high.into())
            }
            Expression::Each => self
                .each
                .map_or((1, total), |each| constant(i64::from(each) + 1)),
            Expression::State => constant(self.rule.state.0.into()),
            Expression::Variable(variable) | Expression::Element(variable, _) => {
                (0, self.agents.max(self.ty(*variable)).into())
            }
            Expression::Field(field) => (0, self.agents.max(self.field_type(*field)).into()),
            Expression::Table(table, _) => {
                let values = &self.controller().tables[usize::from(*table)].values;
                (0, values.iter().copied().max().unwrap_or(0).into())
            }
            Expression::Count(_) => (0, total),
            Expression::Modulo(_, size) => (0, i64::from(*size) - 1),
            Expression::Binary(Operator::Add, a, b) => {
                let (a, b) = (self.bounds(a), self.bounds(b));
                (a.0 + b.0, a.1 + b.1)
            }
            Expression::Binary(Operator::Subtract, a, b) => {
                let (a, b) = (self.bounds(a), self.bounds(b));
                (a.0 - b.1, a.1 - b.0)
            }
            _ => (0, 1),
        }
    }

    /// Returns bounds of all intermediate values of a sum.
    fn intermediate_bounds(&self, expression: &Expression) -> Bounds {
        let own = self.bounds(expression);
        match expression {
            Expression::Binary(Operator::Add | Operator::Subtract, a, b) => {
                let (a, b) = (self.intermediate_bounds(a), self.intermediate_bounds(b));
                (own.0.min(a.0).min(b.0), own.1.max(a.1).max(b.1))
            }
            _ => own,
        }
    }

    /// Returns the type in which all these expressions and numbers up to `max` are printed.
    pub fn form(&self, expressions: &[&Expression], max: u16) -> Form {
        let bounds = expressions.iter().map(|e| self.intermediate_bounds(e));
        Form::of(bounds.fold((0, max.into()), |a, b| (a.0.min(b.0), a.1.max(b.1))))
    }

    /// Prints a number, a remote or a truth value in a type that holds its intermediate values.
    pub fn number(&self, expression: &Expression, form: Form) -> String {
        let (text, width) = match expression {
            Expression::Constant(value) => return form.constant(*value),
            Expression::None | Expression::Home => return form.constant(0),
            Expression::State => return form.constant(self.rule.state.0),
            Expression::Binary(operator @ (Operator::Add | Operator::Subtract), a, b) => {
                let sign = match operator {
                    Operator::Add => "+",
                    _ => "-",
                };
                return format!("({} {sign} {})", self.number(a, form), self.number(b, form));
            }
            Expression::Each => return form.constant(self.each.map_or(0, |each| each + 1)),
            Expression::Own => ("self_i".to_string(), self.agents.remote_bits()),
            Expression::Sender => ("sender_i".to_string(), self.agents.remote_bits()),
            Expression::Variable(variable) => {
                let width = self.agents.width(self.ty(*variable));
                (self.variable(*variable), width)
            }
            Expression::Element(variable, indices) => {
                let width = self.agents.width(self.ty(*variable));
                (self.element(*variable, indices), width)
            }
            Expression::Field(field) => (self.field(*field), self.field_width(*field)),
            Expression::Table(table, index) => {
                let name = &self.controller().tables[usize::from(*table)].name;
                let function = self.agents.name(&[&self.agent.name, name]);
                let max = self.table_max(*table);
                let index_form = self.form(&[index], max);
                let index = self.unsigned(index, index_form, bits(max.into()));
                (
                    format!("{function}({index})"),
                    bits(self.bounds(expression).1 as u64),
                )
            }
            Expression::Count(set) => {
                let count = self.agents.name(&["count"]);
                (
                    format!("{count}({})", bare(&self.set(set))),
                    self.agents.remote_bits(),
                )
            }
            Expression::Modulo(number, size) => {
                let inner = self.form(&[number], *size);
                let text = self.number(number, inner);
                let remainder = format!("({text} % {})", inner.constant(*size));
                let width = bits(u64::from(*size) - 1);
                (self.resized(remainder, inner, width), width)
            }
            Expression::Homes(query) => return self.number(&Homes(1).expression(query), form),
            condition => (self.condition(condition), 1),
        };
        form.cast(&text, width)
    }

    /// Largest index of a table.
    fn table_max(&self, table: u16) -> u16 {
        let length = self.controller().tables[usize::from(table)].values.len();
        (length as u16).saturating_sub(1)
    }

    /// Prints a number in this form, as an unsigned number of this width.
    pub fn unsigned(&self, expression: &Expression, form: Form, width: u32) -> String {
        self.resized(self.number(expression, form), form, width)
    }

    /// Converts the text of a number from its form to an unsigned number of this width.
    fn resized(&self, text: String, form: Form, width: u32) -> String {
        match (form.signed, form.width == width) {
            (false, true) => text,
            (false, false) => format!("{width}'({})", bare(&text)),
            (true, _) => format!("{width}'(unsigned'({}))", bare(&text)),
        }
    }

    /// Prints a remote.
    pub fn remote(&self, expression: &Expression) -> String {
        let width = self.agents.remote_bits();
        let form = self.form(&[expression], self.agents.total());
        self.unsigned(expression, form, width)
    }

    /// Prints an element of an array.
    pub fn element(&self, variable: VariableId, indices: &[Expression]) -> String {
        let mut text = self.variable(variable);
        for (domain, index) in self.domains(variable).into_iter().zip(indices) {
            let count = domain.count(self.agents.total());
            let width = bits(u64::from(count).saturating_sub(1));
            let index = match domain {
                IndexDomain::Remotes => match self.each {
                    Some(each) if *index == Expression::Each => format!("{width}'d{each}"),
                    _ => {
                        let function = self.agents.name(&["index"]);
                        format!("{function}({})", self.remote(index))
                    }
                },
                _ => self.unsigned(index, self.form(&[index], 0), width),
            };
            text += &format!("[{index}]");
        }
        text
    }

    /// Index types of an array.
    fn domains(&self, variable: VariableId) -> Vec<IndexDomain> {
        match self.ty(variable) {
            Type::Array {
                first_domain,
                second_domain,
                ..
            } => std::iter::once(first_domain).chain(second_domain).collect(),
            _ => Vec::new(),
        }
    }

    /// Prints a condition of one bit.
    pub fn condition(&self, expression: &Expression) -> String {
        match expression {
            Expression::Constant(value) => format!("1'b{}", u8::from(*value != 0)),
            Expression::Not(operand) => format!("!{}", self.condition(operand)),
            Expression::In(remote, set) => match (self.each, &**remote) {
                (Some(each), Expression::Each) => {
                    let one = self.agents.name(&["one"]);
                    let each = Form::of((0, self.agents.total().into())).constant(each + 1);
                    format!("(({} & {one}({each})) != '0)", self.set(set))
                }
                _ => {
                    let one = self.agents.name(&["one"]);
                    format!(
                        "(({} & {one}({})) != '0)",
                        self.set(set),
                        self.remote(remote)
                    )
                }
            },
            Expression::SetsEqual(a, b) => format!("({} == {})", self.set(a), self.set(b)),
            Expression::SetsDiffer(a, b) => format!("({} != {})", self.set(a), self.set(b)),
            Expression::All(condition) => self.quantified(condition, " && "),
            Expression::Any(condition) => self.quantified(condition, " || "),
            Expression::Binary(operator, a, b) => {
                let sign = match operator {
                    Operator::And | Operator::Or => {
                        let sign = if *operator == Operator::And {
                            "&&"
                        } else {
                            "||"
                        };
                        return format!("({} {sign} {})", self.condition(a), self.condition(b));
                    }
                    Operator::Equal => "==",
                    Operator::NotEqual => "!=",
                    Operator::Less => "<",
                    Operator::LessOrEqual => "<=",
                    Operator::Greater => ">",
                    Operator::GreaterOrEqual => ">=",
                    Operator::Add | Operator::Subtract => return self.is_nonzero(expression),
                };
                let form = self.form(&[a, b], 0);
                format!("({} {sign} {})", self.number(a, form), self.number(b, form))
            }
            _ => self.is_nonzero(expression),
        }
    }

    /// Prints the condition that a number is not 0.
    fn is_nonzero(&self, expression: &Expression) -> String {
        let form = self.form(&[expression], 0);
        let text = self.number(expression, form);
        match form.width {
            1 => text,
            _ => format!("({text} != {})", form.constant(0)),
        }
    }

    /// Prints a condition for every remote, joined by an operator.
    fn quantified(&self, condition: &Expression, operator: &str) -> String {
        let conditions = self.iterations().map(|scope| scope.condition(condition));
        format!("({})", conditions.collect::<Vec<_>>().join(operator))
    }

    /// Returns the row in each iteration of a loop over remotes.
    pub fn iterations(self) -> impl Iterator<Item = Scope<'a>> {
        (0..self.agents.total()).map(move |each| Scope {
            each: Some(each),
            ..self
        })
    }

    /// Prints a set of remotes.
    pub fn set(&self, set: &Set) -> String {
        let total = self.agents.total();
        match set {
            Set::Empty => format!("{total}'d0"),
            Set::All(kind) => {
                let members = self.agents.remotes.numbers(*kind);
                let mask = members.fold(0u32, |mask, remote| mask | 1 << remote);
                format!("{total}'d{mask}")
            }
            Set::Singleton(remote) => {
                format!("{}({})", self.agents.name(&["one"]), self.remote(remote))
            }
            Set::Variable(variable) => self.variable(*variable),
            Set::Field(field) => match self.field_width(*field) == u32::from(total) {
                true => self.field(*field),
                false => format!("{total}'({})", self.field(*field)),
            },
            Set::Union(a, b) => format!("({} | {})", self.set(a), self.set(b)),
            Set::Difference(a, b) => format!("({} & ~{})", self.set(a), self.set(b)),
        }
    }

    /// Returns the condition under which an expression cannot be evaluated; `None` if it always can.
    pub fn fault(&self, expression: &Expression) -> Option<String> {
        match expression {
            Expression::Element(variable, indices) => self.element_fault(*variable, indices),
            Expression::Table(table, index) => {
                let range = self.range_fault(index, self.table_max(*table));
                any_of([self.fault(index), range])
            }
            Expression::Count(set) => self.set_fault(set),
            Expression::In(remote, set) => any_of([self.fault(remote), self.set_fault(set)]),
            Expression::SetsEqual(a, b) | Expression::SetsDiffer(a, b) => {
                any_of([self.set_fault(a), self.set_fault(b)])
            }
            Expression::Not(operand) | Expression::Modulo(operand, _) => self.fault(operand),
            Expression::Binary(Operator::And, a, b) => {
                let later = self.fault(b);
                let later = later.map(|fault| format!("({} && {fault})", self.condition(a)));
                any_of([self.fault(a), later])
            }
            Expression::Binary(Operator::Or, a, b) => {
                let later = self.fault(b);
                let later = later.map(|fault| format!("(!{} && {fault})", self.condition(a)));
                any_of([self.fault(a), later])
            }
            Expression::Binary(_, a, b) => any_of([self.fault(a), self.fault(b)]),
            Expression::All(condition) => self.quantifier_fault(condition, ""),
            Expression::Any(condition) => self.quantifier_fault(condition, "!"),
            _ => None,
        }
    }

    /// Returns the condition under which a quantifier reaches a remote for which its condition cannot be evaluated. It
    /// goes on while the condition, or its negation `!`, holds.
    fn quantifier_fault(&self, condition: &Expression, sign: &str) -> Option<String> {
        let mut earlier = String::new();
        let mut faults = Vec::new();
        for scope in self.iterations() {
            let fault = scope.fault(condition);
            faults.push(fault.map(|fault| format!("({earlier}{fault})")));
            earlier += &format!("{sign}{} && ", scope.condition(condition));
        }
        any_of(faults)
    }

    /// Returns the condition under which an element of an array does not exist.
    pub fn element_fault(&self, variable: VariableId, indices: &[Expression]) -> Option<String> {
        let domains = self.domains(variable).into_iter();
        any_of(domains.zip(indices).flat_map(|(domain, index)| {
            let range = match domain {
                IndexDomain::Remotes => self.none_fault(index),
                _ => self.range_fault(index, domain.count(self.agents.total()) - 1),
            };
            [self.fault(index), range]
        }))
    }

    /// Returns the condition under which a remote is `none`.
    pub fn none_fault(&self, remote: &Expression) -> Option<String> {
        let is_possible = self.bounds(remote).0 == 0;
        let text = || format!("({} == '0)", self.remote(remote));
        is_possible.then(text)
    }

    /// Returns the condition under which a number is negative or exceeds a maximum.
    pub fn range_fault(&self, expression: &Expression, max: u16) -> Option<String> {
        let (low, high) = self.bounds(expression);
        let form = self.form(&[expression], max);
        let text = self.number(expression, form);
        let below = (low < 0).then(|| format!("({text} < {})", form.constant(0)));
        let above = (high > max.into()).then(|| format!("({text} > {})", form.constant(max)));
        any_of([below, above])
    }

    /// Returns the condition under which a set cannot be evaluated.
    pub fn set_fault(&self, set: &Set) -> Option<String> {
        match set {
            Set::Singleton(remote) => self.fault(remote),
            Set::Union(a, b) | Set::Difference(a, b) => {
                any_of([self.set_fault(a), self.set_fault(b)])
            }
            Set::Empty | Set::All(_) | Set::Variable(_) | Set::Field(_) => None,
        }
    }
}
