//! States and variables of agents in words, for charts and reports.

use cohkit_engine::model::{Expr, Phrase, Piece, Place};
use cohkit_protocol::controller::Variable;
use cohkit_protocol::protocol::Type as ValueType;
use cohkit_protocol::terms::{IndexDomain, VariableId};

use super::agents::Agents;
use super::context::Context;

impl Agents<'_> {
    /// An agent's state and its variables other than zero: `IM_A{owed=1}`.
    pub fn state_words(&self, context: &Context) -> Phrase {
        let variables = &self.side_of(context).controller.variables;
        let mut words = vec![Piece::Value(self.state(context).into())];
        for (id, variable) in (0..).map(VariableId).zip(variables) {
            if !variable.internal {
                let place = self.variable(context, id);
                words.extend(self.assignment_words(variable, &place));
            }
        }
        words
    }

    /// Assignments of a variable, each shown only if it is not zero: [`cohkit_protocol::value_text`] in expressions.
    fn assignment_words(&self, variable: &Variable, place: &Place) -> Phrase {
        let (name, ty) = (&variable.name, variable.ty);
        // `index` follows the name of the variable: `[1]` for an element of an array, otherwise empty.
        let unless_zero = |index: &str, is_nonzero: Expr, value: Phrase| {
            let mut phrase = vec![Piece::Text(format!(" {name}{index}="))];
            phrase.extend(value);
            Piece::Choice(is_nonzero, phrase, Vec::new())
        };
        let set = |inside: Vec<Expr>| {
            let is_nonempty = Expr::disjunction(inside.iter().cloned());
            unless_zero(
                "",
                is_nonempty,
                self.frame.set_words(ty, inside.into_iter()),
            )
        };
        let ValueType::Array {
            first_domain,
            second_domain,
            ..
        } = ty
        else {
            return vec![match ty {
                ValueType::RemoteSet => {
                    let inside =
                        (0..self.frame.remotes).map(|remote| place.clone().at(remote).into());
                    set(inside.collect())
                }
                _ => {
                    let value = Expr::from(place.clone());
                    let words = match variable.labels.is_empty() {
                        true => self.frame.value_words(ty, &value),
                        false => label_words(&variable.labels, &value),
                    };
                    unless_zero("", value.is_not(0), words)
                }
            }];
        };
        let indices = |domain: IndexDomain| 0..i32::from(domain.count(self.frame.remotes as u16));
        let elements = indices(first_domain).flat_map(|first| match second_domain {
            None => vec![Expr::from(place.clone().at(first))],
            Some(second_domain) => {
                let row =
                    indices(second_domain).map(|second| place.clone().at(first).at(second).into());
                row.collect()
            }
        });
        if ty.is_home_set() {
            return vec![set(elements.map(|member| member.is_not(0)).collect())];
        }
        let elements = self.frame.names.indices(ty).into_iter().zip(elements);
        let words = elements.map(|(index, value)| {
            let words = self.frame.value_words(ty.single(), &value);
            unless_zero(&index, value.is_not(0), words)
        });
        words.collect()
    }
}

/// The label of a value, which is its index in `labels`. Other values have the last label.
fn label_words(labels: &[String], value: &Expr) -> Phrase {
    let mut words = Vec::new();
    for (index, label) in labels.iter().enumerate().rev() {
        let text = vec![Piece::Text(label.clone())];
        words = match words.is_empty() {
            true => text,
            false => vec![Piece::Choice(value.clone().is(index as i32), text, words)],
        };
    }
    words
}
