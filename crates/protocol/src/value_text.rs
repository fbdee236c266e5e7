//! Text of values, messages and states, the same in every chart, trace, timeline and message.
//!
//! `M owner=cache 1 sharers={cache 0, cache 2} stores[cache 1]=3`: the name of the state, then each variable that is
//! not zero, `none`, false or the empty set. An array has one assignment for each such element.

use std::borrow::Cow;
use std::fmt::Write;

use crate::controller::{Controller, Variable};
use crate::execute::Machine;
use crate::protocol::{Field, Message};
use crate::terms::{IndexDomain, Type};

/// Names of the agents of a system, as on its lifelines.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AgentNames {
    /// Remotes, in the order of their numbers.
    pub remotes: Vec<String>,
    /// Homes, in the order of their numbers.
    pub homes: Vec<String>,
}

/// Contents of a variable or of a message's field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Contents {
    /// A single value, encoded as in a slot: `none` is 0, and a remote its number plus 1.
    Value(u16),
    /// Numbers of the members of a set, in order.
    Members(Vec<u16>),
    /// Elements of an array, those with the same first index together.
    Elements(Vec<u16>),
}

impl Contents {
    /// Decodes the slots of a variable or field.
    pub fn of(ty: Type, slots: &[u16]) -> Contents {
        match ty {
            Type::RemoteSet => Contents::Members(members(slots)),
            _ if ty.is_home_set() => Contents::Members(members(slots)),
            Type::Array { .. } => Contents::Elements(slots.to_vec()),
            _ => Contents::Value(slots.first().copied().unwrap_or(0)),
        }
    }

    /// Returns true if the value is omitted from the text of a state.
    fn is_zero(&self) -> bool {
        match self {
            Contents::Value(value) => *value == 0,
            Contents::Members(members) => members.is_empty(),
            Contents::Elements(elements) => elements.iter().all(|&element| element == 0),
        }
    }
}

/// Numbers of the bits that are set.
fn members(words: &[u16]) -> Vec<u16> {
    let bits = (0u16..).zip(words).flat_map(|(word, bits)| {
        let set_bits = (0..u16::BITS as u16).filter(move |bit| bits >> bit & 1 == 1);
        set_bits.map(move |bit| word * u16::BITS as u16 + bit)
    });
    bits.collect()
}

impl AgentNames {
    /// Name of a member of a set of remotes or homes.
    pub fn member(&self, ty: Type, number: u16) -> Cow<'_, str> {
        let names = match ty {
            Type::RemoteSet | Type::Remote => &self.remotes,
            _ => &self.homes,
        };
        match names.get(usize::from(number)) {
            Some(name) => name.into(),
            None => number.to_string().into(),
        }
    }

    /// Text of a single value.
    pub fn value(&self, ty: Type, value: u16) -> Cow<'_, str> {
        match (ty, value) {
            (Type::Remote, 0) => "none".into(),
            (Type::Remote, remote) => self.member(ty, remote - 1),
            (Type::Home { .. }, home) => self.member(ty, home),
            (Type::Bool, 0) => "false".into(),
            (Type::Bool, _) => "true".into(),
            (_, value) => value.to_string().into(),
        }
    }

    /// Text of an index of an array: `[cache 1]`.
    pub fn index(&self, domain: IndexDomain, number: u16) -> String {
        match domain {
            IndexDomain::Remotes => format!("[{}]", self.member(Type::RemoteSet, number)),
            IndexDomain::Homes(homes) => format!("[{}]", self.member(Type::Home { homes }, number)),
            IndexDomain::Numbers(_) => format!("[{number}]"),
        }
    }

    /// Indices of the elements of an array as text, in the order of its slots.
    pub fn indices(&self, ty: Type) -> Vec<String> {
        let Type::Array {
            first_domain,
            second_domain,
            ..
        } = ty
        else {
            return Vec::new();
        };
        let numbers = |domain: IndexDomain| 0..domain.count(self.remotes.len() as u16);
        let first = numbers(first_domain).map(|number| self.index(first_domain, number));
        match second_domain {
            None => first.collect(),
            Some(second_domain) => first
                .flat_map(|first| {
                    numbers(second_domain)
                        .map(move |number| format!("{first}{}", self.index(second_domain, number)))
                })
                .collect(),
        }
    }

    /// Text of a set: `{cache 0, cache 2}`.
    fn set(&self, ty: Type, members: &[u16]) -> String {
        let names = members.iter().map(|&member| self.member(ty, member));
        format!("{{{}}}", names.collect::<Vec<_>>().join(", "))
    }

    /// Assignments of a message's fields: `acks=1`.
    pub fn fields<'s>(
        &'s self,
        fields: &'s [Field],
        values: &'s [u16],
    ) -> impl Iterator<Item = String> + 's {
        let pairs = fields.iter().zip(values);
        pairs.map(|(field, &value)| {
            let value = match Contents::of(field.ty, &[value]) {
                Contents::Members(members) => self.set(field.ty, &members).into(),
                _ => self.value(field.ty, value),
            };
            format!("{}={value}", field.name)
        })
    }

    /// Text of a message with its fields: `Data(acks=1)`.
    pub fn message(&self, message: &Message, values: &[u16]) -> String {
        let fields: Vec<String> = self.fields(&message.fields, values).collect();
        match fields.is_empty() {
            true => message.name.clone(),
            false => format!("{}({})", message.name, fields.join(", ")),
        }
    }

    /// Assignments of a variable that are shown with a state: none if it is zero, one for each non-zero element of an
    /// array.
    pub fn assignments(&self, variable: &Variable, contents: &Contents) -> Vec<String> {
        match contents {
            _ if variable.internal => Vec::new(),
            Contents::Elements(elements) => {
                self.elements(variable, elements, |index| elements[index] != 0)
            }
            _ if contents.is_zero() => Vec::new(),
            _ => vec![self.assignment(variable, contents)],
        }
    }

    /// Assignments of a variable that has changed, one for each changed element of an array.
    pub fn changes(&self, variable: &Variable, old: &Contents, new: &Contents) -> Vec<String> {
        match (old, new) {
            (Contents::Elements(old), Contents::Elements(new)) => {
                self.elements(variable, new, |index| old[index] != new[index])
            }
            _ if old == new => Vec::new(),
            _ => vec![self.assignment(variable, new)],
        }
    }

    /// Assignment of a variable that is not an array: `owner=cache 1`.
    fn assignment(&self, variable: &Variable, contents: &Contents) -> String {
        let value = match contents {
            Contents::Members(members) => self.set(variable.ty, members).into(),
            Contents::Value(value) => {
                let label = variable.labels.get(usize::from(*value));
                label.map_or_else(|| self.value(variable.ty, *value), |label| label.into())
            }
            Contents::Elements(_) => "".into(),
        };
        format!("{}={value}", variable.name)
    }

    /// Assignments of some elements of an array: `stores[cache 1]=3`.
    fn elements(
        &self,
        variable: &Variable,
        elements: &[u16],
        is_shown: impl Fn(usize) -> bool,
    ) -> Vec<String> {
        let indices = self.indices(variable.ty).into_iter().zip(elements);
        let selected = indices.enumerate().filter(|(index, _)| is_shown(*index));
        selected
            .map(|(_, (index, &value))| {
                let value = self.value(variable.ty.single(), value);
                format!("{}{index}={value}", variable.name)
            })
            .collect()
    }

    /// Text of a state with the contents of its controller's variables, in their order.
    pub fn state(
        &self,
        controller: &Controller,
        state: usize,
        contents: impl IntoIterator<Item = Contents>,
    ) -> String {
        let mut text = controller.states[state].name.clone();
        for (variable, contents) in controller.variables.iter().zip(contents) {
            for assignment in self.assignments(variable, &contents) {
                let _ = write!(text, " {assignment}");
            }
        }
        text
    }

    /// Text of a configuration. Registers without slots count as zero.
    pub fn configuration(&self, machine: &Machine, state: u16, slots: &[u16]) -> String {
        let controller = machine.controller();
        let contents = (0..).zip(&controller.variables).map(|(number, variable)| {
            let variable_slots = slots.get(machine.slots(number)).unwrap_or(&[]);
            Contents::of(variable.ty, variable_slots)
        });
        self.state(controller, state.into(), contents)
    }
}
