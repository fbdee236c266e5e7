//! Identifiers of a printed module.

use cohkit_engine::model::{Model, Role, Type, TypeId};
use rustc_hash::FxHashSet;

/// Words that TLA+ and configurations of TLC reserve, operators of the modules that a printed module extends, and its own
/// names.
const RESERVED: &str = "ACTION_CONSTRAINT ACTION_CONSTRAINTS ALIAS CHECK_DEADLOCK CONSTRAINT CONSTRAINTS INIT INVARIANT \
    INVARIANTS NEXT POSTCONDITION PROPERTIES PROPERTY SPECIFICATION SYMMETRY TYPE TYPE_CONSTRAINT VIEW ACTION ASSUME ASSUMPTION AXIOM BOOLEAN BY CASE CHOOSE CONSTANT CONSTANTS COROLLARY DEF DEFINE \
    DEFS DOMAIN ELSE ENABLED EXCEPT EXTENDS FALSE HAVE HIDE IF IN INSTANCE LAMBDA LEMMA LET LOCAL MODULE NEW OBVIOUS \
    OMITTED ONLY OTHER PICK PROOF PROPOSITION PROVE QED RECURSIVE SF_ STATE STRING SUBSET SUFFICES TAKE TEMPORAL THEN \
    THEOREM TRUE UNCHANGED UNION USE VARIABLE VARIABLES WF_ WITH WITNESS Append Head Int Len Nat Seq SelectSeq SubSeq \
    Tail BitAnd BitOr BitXor Init Next NoDeadlock NoViolation Quiescent Quotient Remainder Shift Spec Step Steps TypeOK \
    undefined vars violation";

/// A unique identifier for everything that a printed module names. Indices are those of the model.
pub(crate) struct Names {
    /// Names of the sets of values of simple types. Types with equal names and values share a set.
    pub sets: Vec<String>,
    /// Names of the sequences of these values, in order.
    pub orders: Vec<String>,
    /// Names of variables. State variables keep their own names if possible.
    pub variables: Vec<String>,
    /// Names of the operators that print tables.
    pub tables: Vec<String>,
    /// Names of the actions that print rules.
    pub rules: Vec<String>,
    /// Names of the predicates that print invariants, assumptions and covers with a condition.
    pub invariants: Vec<String>,
    pub assumptions: Vec<String>,
    pub covers: Vec<String>,
    /// All identifiers so far; names of definitions inside actions avoid these.
    pub used: FxHashSet<String>,
}

/// Returns an identifier that resembles a text. It is not reserved, and does not end with `_`.
pub(crate) fn identifier(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        match c.is_ascii_alphanumeric() {
            true => name.push(c),
            false if name.is_empty() || name.ends_with('_') => {}
            false => name.push('_'),
        }
    }
    let name = name.trim_end_matches('_');
    let is_reserved = |name: &str| RESERVED.split_whitespace().any(|word| word == name);
    match name {
        "" => "x".into(),
        name if !name.starts_with(|c: char| c.is_ascii_alphabetic()) => format!("x{name}"),
        name if is_reserved(name) || name.starts_with("WF_") || name.starts_with("SF_") => {
            format!("x{name}")
        }
        name => name.into(),
    }
}

/// Returns an identifier that resembles a text and is not in `used`, and adds it there.
fn unique(text: &str, used: &mut FxHashSet<String>) -> String {
    let base = identifier(text);
    let mut name = base.clone();
    let mut number = 1;
    while !used.insert(name.clone()) {
        number += 1;
        name = format!("{base}_{number}");
    }
    name
}

impl Names {
    /// Chooses the names of a model's printed module.
    pub fn new(model: &Model) -> Names {
        let mut used = FxHashSet::default();
        let mut variables = vec![String::new(); model.variables.len()];
        // Readers look for the names of state variables, so these are the last to be changed.
        for (variable, name) in model.variables.iter().zip(&mut variables) {
            if variable.role == Role::State {
                *name = unique(&variable.name, &mut used);
            }
        }
        let mut sets: Vec<String> = Vec::new();
        for (index, named) in model.types.iter().enumerate() {
            let equal = model.types[..index].iter().position(|other| other == named);
            sets.push(match (&named.ty, equal) {
                (Type::Bool, _) => "BOOLEAN".into(),
                (_, Some(equal)) => sets[equal].clone(),
                // A range without a name is named by its bounds.
                (Type::Range { lo, hi }, None) if !named.name.starts_with(char::is_alphabetic) => {
                    let text = format!("range {lo} {hi}").replace('-', "minus_");
                    unique(&text, &mut used)
                }
                (_, None) => unique(&named.name, &mut used),
            });
        }
        let orders = sets
            .iter()
            .map(|name| unique(&format!("{name} in order"), &mut used));
        let orders = orders.collect();
        let mut all = |texts: Vec<&str>| -> Vec<String> {
            texts.iter().map(|text| unique(text, &mut used)).collect()
        };
        let tables = all(model.tables.iter().map(|t| t.name.as_str()).collect());
        let rules = all(model.rules.iter().map(|r| r.name.as_str()).collect());
        let invariants = all(model.invariants.iter().map(|i| i.name.as_str()).collect());
        let assumptions = all(model.assumptions.iter().map(|a| a.name.as_str()).collect());
        let covers = all(model.covers.iter().map(|c| c.name.as_str()).collect());
        for (variable, name) in model.variables.iter().zip(&mut variables) {
            if variable.role != Role::State {
                *name = unique(&variable.name, &mut used);
            }
        }
        Names {
            sets,
            orders,
            variables,
            tables,
            rules,
            invariants,
            assumptions,
            covers,
            used,
        }
    }

    /// Name of the set of a simple type's values.
    pub fn set(&self, ty: TypeId) -> &str {
        &self.sets[ty.index()]
    }
}

/// Names of a record's fields, in order.
pub(crate) fn field_names(fields: &[(String, TypeId)]) -> Vec<String> {
    let mut used = FxHashSet::default();
    let names = fields.iter().map(|(name, _)| unique(name, &mut used));
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_resemble_their_texts_and_are_not_reserved() {
        let texts = [
            "cache store (hits)",
            "{p} enters",
            "IN",
            "3rd",
            "",
            "WF_x",
            "a__b",
        ];
        let names = texts.map(identifier);
        let expected = [
            "cache_store_hits",
            "p_enters",
            "xIN",
            "x3rd",
            "x",
            "xWF_x",
            "a_b",
        ];
        assert_eq!(names, expected);
        let mut used = FxHashSet::default();
        assert_eq!(
            ["a b", "a.b"].map(|text| unique(text, &mut used)),
            ["a_b", "a_b_2"]
        );
    }
}
