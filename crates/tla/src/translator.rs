//! State of a translation: names of the current values, and helpers to build texts.

use crate::names::Names;
use crate::sets::Sets;
use cohkit_engine::model::{FunctionId, Model, Place, TypeId, VariableId};
use std::collections::{BTreeMap, BTreeSet};

/// A value that statements change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cell {
    /// A state variable, a local variable, or a function's parameter.
    Variable(VariableId),
    /// Name of the violated property, or `""`.
    Violation,
    /// False if the step has not happened.
    Enabled,
    /// True if the function, rule or start has been left.
    Returned,
    /// Returned value of the function.
    Result,
}

/// A place whose indices have been evaluated: a variable and the text of the path into it.
#[derive(Clone)]
pub(crate) struct BoundPlace {
    pub variable: VariableId,
    pub path: String,
    pub ty: TypeId,
}

/// Names of the current values at a point of a translated body.
#[derive(Clone, Default)]
pub(crate) struct Scope {
    /// Text of the current value of each cell.
    pub cells: BTreeMap<Cell, String>,
    /// Places that aliases denote.
    pub aliases: BTreeMap<VariableId, BoundPlace>,
}

/// Translator of a model's expressions and statements.
pub(crate) struct Translator<'a> {
    pub model: &'a Model,
    pub names: &'a Names,
    pub scope: Scope,
    pub sets: Sets<'a>,
    /// Operators of [`crate::module`] that have been used.
    pub used_operators: BTreeSet<&'static str>,
    /// Functions whose body is being translated.
    pub inlined: Vec<FunctionId>,
    /// Number of the last definition inside the current action.
    pub last_number: u32,
}

/// An expression's text, and the condition under which it has a value; `None` if it always has one.
#[derive(Clone)]
pub(crate) struct Term {
    pub text: String,
    pub binding: Binding,
    pub defined: Option<String>,
}

/// Strength with which an expression binds its operands. An operand that binds less than its position requires gets
/// parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Binding {
    /// Quantifiers, `IF`, `LET`, implications.
    Open,
    /// Conjunctions and disjunctions.
    Logic,
    /// Comparisons.
    Compare,
    /// Sums and products.
    Arithmetic,
    /// Names, literals, calls, and expressions with their own delimiters.
    Atom,
}

impl Term {
    /// A term that always has a value.
    pub fn new(text: impl Into<String>, binding: Binding) -> Term {
        Term {
            text: text.into(),
            binding,
            defined: None,
        }
    }

    /// The term with another text, which has a value under the same condition.
    pub fn with(self, text: String, binding: Binding) -> Term {
        Term {
            text,
            binding,
            defined: self.defined,
        }
    }

    /// Text for a position that requires this binding.
    pub fn within(&self, binding: Binding) -> String {
        match self.binding < binding {
            true => format!("({})", self.text),
            false => self.text.clone(),
        }
    }
}

/// Conjunction of two conditions.
pub(crate) fn both(a: Option<String>, b: Option<String>) -> Option<String> {
    match (a, b) {
        (Some(a), Some(b)) => Some(format!("{a} /\\ {b}")),
        (a, b) => a.or(b),
    }
}

/// Indents all lines but the first.
pub(crate) fn indent(text: &str, columns: usize) -> String {
    text.replace('\n', &format!("\n{:columns$}", ""))
}

/// Returns `result` after definitions.
pub(crate) fn let_in(definitions: &[String], result: &str) -> String {
    if definitions.is_empty() {
        return result.into();
    }
    let definitions: Vec<String> = definitions.iter().map(|text| indent(text, 4)).collect();
    format!(
        "LET {}\nIN  {}",
        definitions.join("\n    "),
        indent(result, 4)
    )
}

impl<'a> Translator<'a> {
    /// Creates a translator that has not begun an action.
    pub fn new(model: &'a Model, names: &'a Names) -> Translator<'a> {
        Translator {
            model,
            names,
            scope: Scope::default(),
            sets: Sets::new(model, names),
            used_operators: BTreeSet::new(),
            inlined: Vec::new(),
            last_number: 0,
        }
    }

    /// Begins an action, an initial predicate, or a claim: state variables have their own names.
    pub fn begin(&mut self) {
        self.last_number = 0;
        self.scope = Scope::default();
        for (index, name) in self.names.variables.iter().enumerate() {
            let id = VariableId(index as u32);
            if self.model.variable(id).role == cohkit_engine::model::Role::State {
                self.scope.cells.insert(Cell::Variable(id), name.clone());
            }
        }
        let constants = [
            (Cell::Violation, "\"\""),
            (Cell::Enabled, "TRUE"),
            (Cell::Returned, "FALSE"),
        ];
        for (cell, text) in constants {
            self.scope.cells.insert(cell, text.into());
        }
    }

    /// Returns a new name for a definition inside an action.
    pub fn fresh(&mut self, base: &str) -> String {
        loop {
            self.last_number += 1;
            let name = format!("{base}_{}", self.last_number);
            if !self.names.used.contains(&name) {
                return name;
            }
        }
    }

    /// Text of the current value of a cell.
    pub fn current(&self, cell: Cell) -> String {
        self.scope.cells.get(&cell).cloned().unwrap_or_default()
    }

    /// Name on which the names of a cell's values are based.
    pub fn base(&self, cell: Cell) -> String {
        match cell {
            Cell::Variable(id) => self.names.variables[id.index()].clone(),
            Cell::Violation => "violation".into(),
            Cell::Enabled => "enabled".into(),
            Cell::Returned => "returned".into(),
            Cell::Result => "result".into(),
        }
    }

    /// Gives a cell a new value, by a definition.
    pub fn define(&mut self, cell: Cell, value: &str, definitions: &mut Vec<String>) {
        let name = self.fresh(&self.base(cell));
        let separator = if value.contains('\n') { "\n  " } else { " " };
        definitions.push(format!("{name} =={separator}{}", indent(value, 2)));
        self.scope.cells.insert(cell, name);
    }

    /// Evaluates a place whose variable may be an alias, without the steps of its path.
    pub fn root(&self, place: &Place) -> BoundPlace {
        self.scope
            .aliases
            .get(&place.variable)
            .cloned()
            .unwrap_or(BoundPlace {
                variable: place.variable,
                path: String::new(),
                ty: self.model.variable(place.variable).ty,
            })
    }
}
