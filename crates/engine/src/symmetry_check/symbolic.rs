//! Symbolic places and values: the static knowledge that [`super`] has of indices and stored values.
//!
//! Two expressions with equal symbolic values have equal values, as long as their variables are unmodified. Different
//! symbolic values prove nothing.

use super::AsymmetryAnalysis;
use crate::model::{Expr, Place, Role, Step, VariableId};

impl AsymmetryAnalysis<'_> {
    /// True if no statement can change the value: all of its variables are bound by loops or quantifiers, or it is the
    /// index in an alias.
    pub(super) fn is_unmodifiable(&self, symbolic: &SymbolicValue) -> bool {
        let is_bound = |&id: &VariableId| self.model.variable(id).role == Role::Bound;
        symbolic.text.starts_with(ALIAS_INDEX) || symbolic.variables.iter().all(is_bound)
    }

    /// Resolves a place now for later use. An index that may change in between becomes a value of its own, which lives
    /// as long as the alias `alias`; it becomes unknown without an alias. `binding` distinguishes bindings of one alias.
    pub(super) fn resolve_alias(
        &self,
        place: &Place,
        alias: Option<VariableId>,
        binding: usize,
    ) -> ResolvedPlace {
        let mut resolved = self.resolve(place);
        for (depth, step) in resolved.path.iter_mut().enumerate() {
            let PathStep::Index(index) = step else {
                continue;
            };
            if !(index.as_ref()).is_some_and(|symbolic| self.is_unmodifiable(symbolic)) {
                *index = alias.map(|alias| SymbolicValue {
                    text: format!("{ALIAS_INDEX}{}.{binding}.{depth}", alias.0),
                    variables: vec![alias],
                });
            }
        }
        resolved
    }

    /// Symbolic value of an expression; `None` if unknown.
    pub(super) fn symbolic_value(&self, e: &Expr) -> Option<SymbolicValue> {
        match e.without_line() {
            Expr::Int(n) => Some(constant(&format!("#{n}"))),
            Expr::Bool(b) => Some(constant(&format!("#{b}"))),
            // A union may contain labels of several enumerations, so the type is part of the symbolic value.
            Expr::Label(ty, n) => Some(constant(&format!("#{}.{n}", ty.0))),
            Expr::Undefined(_) => Some(constant(UNDEFINE)),
            Expr::Read(place) | Expr::Peek(place) => {
                let known = &self.values[place.variable.index()];
                if let (Some(known), true) = (known, place.path.is_empty()) {
                    return Some(known.clone());
                }
                let resolved = self.resolve(place);
                let mut symbolic = SymbolicValue::of(resolved.root);
                for step in resolved.path {
                    match step {
                        PathStep::Field(name) => symbolic.text += &format!(".{name}"),
                        PathStep::Index(index) => {
                            let index = index?;
                            symbolic.text += &format!("[{}]", index.text);
                            symbolic.variables.extend(index.variables);
                        }
                    }
                }
                Some(symbolic)
            }
            // The conversion to a union is injective on a scalarset, so the symbolic value stays the same.
            Expr::Convert(_, e) => match self.symbolic_value(e)? {
                symbolic if symbolic.variables.is_empty() => {
                    Some(constant(&format!("as {}", symbolic.text)))
                }
                symbolic => Some(symbolic),
            },
            Expr::Not(a) | Expr::Negate(a) => {
                let symbolic = self.symbolic_value(a)?;
                let text = format!("-({})", symbolic.text);
                Some(SymbolicValue { text, ..symbolic })
            }
            Expr::Binary(op, a, b) => {
                let (mut a, b) = (self.symbolic_value(a)?, self.symbolic_value(b)?);
                a.text = format!("{op:?}({}, {})", a.text, b.text);
                a.variables.extend(b.variables);
                Some(a)
            }
            _ => None,
        }
    }

    /// Resolves the aliases of a place.
    pub(super) fn resolve(&self, place: &Place) -> ResolvedPlace {
        let mut resolved = match &self.places[place.variable.index()] {
            Some(resolved) => resolved.clone(),
            None => ResolvedPlace {
                root: place.variable,
                path: Vec::new(),
            },
        };
        resolved
            .path
            .extend(place.path.iter().map(|step| match step {
                Step::Field(name) => PathStep::Field(name.clone()),
                Step::Index(e) => PathStep::Index(self.symbolic_value(e)),
            }));
        resolved
    }
}

/// Symbolic value, with the variables that it reads. `text` is a canonical form of the expression: equal texts denote
/// equal values.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SymbolicValue {
    /// Canonical form of the expression.
    pub text: String,
    /// Variables that the expression reads.
    pub variables: Vec<VariableId>,
}

/// A step of a path, as far as it is known.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum PathStep {
    /// Name of a field of a record.
    Field(String),
    /// An index; `None` if unknown.
    Index(Option<SymbolicValue>),
}

/// A place with all aliases resolved.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ResolvedPlace {
    /// Variable that is not an alias.
    pub root: VariableId,
    /// Steps from the variable to the place.
    pub path: Vec<PathStep>,
}

/// First character of the text of an index in an alias, which is evaluated once.
const ALIAS_INDEX: char = '@';

/// Text of the undefined value.
pub(super) const UNDEFINE: &str = "undefine";

/// A value that reads no variables.
pub(super) fn constant(text: &str) -> SymbolicValue {
    SymbolicValue {
        text: text.into(),
        variables: Vec::new(),
    }
}

impl SymbolicValue {
    /// The value of a variable.
    pub(super) fn of(variable: VariableId) -> SymbolicValue {
        SymbolicValue {
            text: format!("v{}", variable.0),
            variables: vec![variable],
        }
    }
}
