//! Symbolic places and values, as far as they are known statically.

use super::*;

impl Walk<'_> {
    /// True if no statement can change the value.
    pub(super) fn is_unmodifiable(&self, key: &Key) -> bool {
        let is_bound = |&name: &VariableId| self.model.variable(name).role == Role::Bound;
        key.names.iter().all(is_bound)
    }

    /// A place that is resolved here and used later: indices that may change are unknown.
    pub(super) fn fixed(&self, place: &Place) -> Spot {
        let mut spot = self.spot(place);
        for step in &mut spot.path {
            if let PathStep::Index(Some(key)) = step {
                if !self.is_unmodifiable(key) {
                    *step = PathStep::Index(None);
                }
            }
        }
        spot
    }

    /// Symbolic value of an expression; `None` if unknown.
    pub(super) fn key(&self, e: &Expr) -> Option<Key> {
        match e.without_line() {
            Expr::Int(n) => Some(constant(&format!("#{n}"))),
            Expr::Bool(b) => Some(constant(&format!("#{b}"))),
            // A union may contain labels of several enumerations, so the type is part of the key.
            Expr::Label(ty, n) => Some(constant(&format!("#{}.{n}", ty.0))),
            Expr::Undefined(_) => Some(constant(UNDEFINE)),
            Expr::Read(place) | Expr::Peek(place) => {
                let known = &self.values[place.variable.index()];
                if let (Some(known), true) = (known, place.path.is_empty()) {
                    return Some(known.clone());
                }
                let spot = self.spot(place);
                let mut key = Key::of(spot.root);
                for step in spot.path {
                    match step {
                        PathStep::Field(name) => key.text += &format!(".{name}"),
                        PathStep::Index(index) => {
                            let index = index?;
                            key.text += &format!("[{}]", index.text);
                            key.names.extend(index.names);
                        }
                    }
                }
                Some(key)
            }
            // The conversion to a union is injective on a scalarset, so the key stays the same.
            Expr::Convert(_, e) => match self.key(e)? {
                key if key.names.is_empty() => Some(constant(&format!("as {}", key.text))),
                key => Some(key),
            },
            Expr::Not(a) | Expr::Negate(a) => {
                let key = self.key(a)?;
                let text = format!("-({})", key.text);
                Some(Key { text, ..key })
            }
            Expr::Binary(op, a, b) => {
                let (mut a, b) = (self.key(a)?, self.key(b)?);
                a.text = format!("{op:?}({}, {})", a.text, b.text);
                a.names.extend(b.names);
                Some(a)
            }
            _ => None,
        }
    }

    pub(super) fn spot(&self, place: &Place) -> Spot {
        let mut spot = match &self.places[place.variable.index()] {
            Some(spot) => spot.clone(),
            None => Spot {
                root: place.variable,
                path: Vec::new(),
            },
        };
        spot.path.extend(place.path.iter().map(|step| match step {
            Step::Field(name) => PathStep::Field(name.clone()),
            Step::Index(e) => PathStep::Index(self.key(e)),
        }));
        spot
    }
}

/// Symbolic value: its computation as text, and the variables that it reads.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Key {
    pub text: String,
    pub names: Vec<VariableId>,
}

/// A step of a path, as far as it is known.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum PathStep {
    Field(String),
    /// An index; `None` if unknown.
    Index(Option<Key>),
}

/// A place with all aliases resolved.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Spot {
    pub root: VariableId,
    pub path: Vec<PathStep>,
}

pub(super) const UNDEFINE: &str = "undefine";

/// A value that reads no variables.
pub(super) fn constant(text: &str) -> Key {
    Key {
        text: text.into(),
        names: Vec::new(),
    }
}

impl Key {
    /// The value of a variable.
    pub(super) fn of(variable: VariableId) -> Key {
        Key {
            text: format!("v{}", variable.0),
            names: vec![variable],
        }
    }
}
