//! Lowering of the syntax tree to a [`Model`]: names, declarations and functions.
//!
//! A name must be declared before it is used, so one pass is enough.

mod expression;
mod rules;
mod statement;
mod types;

use super::diagnostic::{Diagnostic, Sink};
use super::messages::Messages;
use super::{Dialect, ReadOptions};
use crate::ast::{Decl, Function, Item, Name};
use cohkit_diagnostics::{suggestion, Span};
use cohkit_engine::model::{
    self, Expr as ModelExpr, FunctionId, Model, Place, Role, Start, Type, TypeId, Variable,
    VariableId,
};
use cohkit_engine::symmetry_check::{self, AsymmetryLocation};
use cohkit_engine::validate::Kind;
use rustc_hash::FxHashMap;

/// Meaning of a name.
#[derive(Clone, Debug)]
enum Meaning {
    /// A constant with its kind.
    Constant(ModelExpr, Kind),
    /// An alias of a constant, which is a constant too.
    ConstantAlias(ModelExpr, Kind),
    /// A declared type.
    Type(TypeId),
    /// A variable of any role, with the permitted use.
    Variable(VariableId, Access),
    /// A function or procedure.
    Function(FunctionId),
    /// A name whose declaration has a reported error.
    Invalid,
}

/// Permitted use of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    /// A variable of the state, a local variable or a `var` parameter.
    Writable,
    /// A parameter that was not declared `var`.
    Parameter,
    /// The name of a loop, a quantifier or a ruleset.
    Loop,
    /// An alias of a value that is no variable.
    Value,
    /// A slot of a multiset.
    Slot,
}

impl Access {
    /// Description of the variable, for a message that it cannot be changed.
    fn reason(self) -> &'static str {
        match self {
            Access::Writable => "a variable",
            Access::Parameter => "a parameter that is not declared `var`",
            Access::Loop => "the name of a loop or a ruleset",
            Access::Value => "an alias of a value",
            Access::Slot => "a slot of a multiset",
        }
    }
}

/// A declared name.
#[derive(Clone, Debug)]
struct Symbol {
    /// Meaning of the name.
    meaning: Meaning,
    /// Position of the declaration.
    span: Span,
}

/// A lowered expression with its type and properties.
#[derive(Clone, Debug)]
struct Typed {
    /// The expression.
    expr: ModelExpr,
    /// Kind of its value; meaningless for the word `undefined`.
    kind: Kind,
    /// Its exact type; `None` for constants and results of operators.
    ty: Option<TypeId>,
    /// Access to its place, if `expr` reads a variable, a field or an element.
    access: Option<Access>,
    /// True for the word `undefined`.
    is_undefined: bool,
    /// Position of the expression.
    span: Span,
}

impl Typed {
    /// Returns its place and the permitted use, if it is a variable, a field or an element.
    fn into_place(self) -> Option<(Place, Access)> {
        match (self.expr, self.access) {
            (ModelExpr::Read(place) | ModelExpr::Peek(place), Some(access)) => {
                Some((place, access))
            }
            _ => None,
        }
    }
}

/// Changes of a function, except those of its own variables.
#[derive(Clone, Debug, Default)]
struct Effects {
    /// Position of its first change of the state; `None` if it does not change the state.
    state: Option<Span>,
    /// Variables of the state that it changes.
    variables: Vec<VariableId>,
    /// Parameters that it changes.
    parameters: Vec<VariableId>,
}

/// Lowering of one text. Methods return `None` after they have reported an error, and go on with
/// other parts.
struct Lowering<'t, 's> {
    /// The whole text, to which spans refer.
    text: &'t str,
    /// Dialect whose rules apply.
    dialect: Dialect,
    /// True if a read of an undefined value of a scalarset or union is an error of the model.
    is_strict: bool,
    /// Receiver of diagnostics.
    sink: &'s mut Sink,
    /// The model so far.
    model: Model,
    /// Names of each scope, innermost last.
    scopes: Vec<FxHashMap<&'t str, Symbol>>,
    /// Effects of each lowered function, by its index in the model.
    effects: Vec<Effects>,
    /// Effects of the current function.
    current_effects: Effects,
    /// Value parameters of the current function; empty outside of functions.
    value_parameters: Vec<VariableId>,
    /// Result type of the current function: `None` outside of functions, `Some(None)` in a
    /// procedure.
    result: Option<Option<TypeId>>,
    /// The construct being lowered if it must not change the state: "a guard".
    pure_construct: Option<&'static str>,
    /// The variable that each alias refers to, which may be an alias too.
    roots: FxHashMap<VariableId, VariableId>,
    /// Byte offset of each line feed.
    newlines: Vec<u32>,
    /// Numbers of rules, start states and properties so far, for their default names, in this
    /// order.
    counts: [u32; 3],
    /// Position at which each name of a loop or slot is bound.
    binding_spans: FxHashMap<VariableId, Span>,
    /// Position of the place that the first `clear` statement of a line clears, by line number
    /// from 1.
    clears: FxHashMap<u32, Span>,
    /// Number of combinations of values of the current rulesets, loops and quantifiers; 1 outside
    /// of them.
    combinations: u64,
}

/// Lowers a file to a model, which is valid if the sink has no errors. `name` becomes the model's name.
pub(super) fn lower(
    name: &str,
    text: &str,
    items: &[Item],
    options: ReadOptions,
    sink: &mut Sink,
) -> Model {
    let ReadOptions { dialect, is_strict } = options;
    let newlines = text.char_indices().filter(|c| c.1 == '\n');
    let mut lowering = Lowering {
        text,
        dialect,
        is_strict,
        sink,
        model: empty_model(name, dialect),
        scopes: vec![FxHashMap::default()],
        effects: Vec::new(),
        current_effects: Effects::default(),
        value_parameters: Vec::new(),
        result: None,
        pure_construct: None,
        roots: FxHashMap::default(),
        newlines: newlines.map(|c| c.0 as u32).collect(),
        counts: [0; 3],
        binding_spans: FxHashMap::default(),
        clears: FxHashMap::default(),
        combinations: 1,
    };
    for item in items {
        match item {
            Item::Decl(decl) => lowering.lower_decl(decl, Role::State, &mut Vec::new()),
            Item::Function(function) => lowering.lower_function(function),
            Item::Rule(rule) => lowering.lower_rule(rule, &mut Vec::new()),
        }
    }
    lowering.finish(items)
}

/// A model without declarations, with the numbers of its dialect.
fn empty_model(name: &str, dialect: Dialect) -> Model {
    let mut model = cohkit_engine::build::Builder::new(name).into_model();
    model.undefined = true;
    model.numbers = match dialect {
        // The number range of CMurphi's C++.
        Dialect::CMurphi => (i32::MIN.into(), i32::MAX.into()),
        Dialect::Rumur | Dialect::Any => Model::NUMBERS,
    };
    model.trace_renderer = Some(&Messages);
    model
}

impl<'t> Lowering<'t, '_> {
    /// Adds missing mandatory parts of the model, and validates it.
    fn finish(mut self, items: &[Item]) -> Model {
        let end = Span {
            start: self.text.len() as u32,
            end: self.text.len() as u32,
        };
        if !self.sink.has_errors() {
            if items.is_empty() {
                self.sink.error(end, "the file is empty");
            }
            let missing_construct =
                match (self.model.starts.is_empty(), self.model.rules.is_empty()) {
                    (true, _) => Some("start state"),
                    (_, true) => Some("rule"),
                    _ => None,
                };
            if let (Some(construct), Dialect::CMurphi) = (missing_construct, self.dialect) {
                self.sink.error(end, format!("CMurphi needs a {construct}"));
            }
        }
        if self.model.starts.is_empty() {
            // A model without start states gets one that is never satisfied.
            self.model.starts.push(Start {
                name: "none".into(),
                parameters: Vec::new(),
                body: vec![model::Stmt::Assume(ModelExpr::Bool(false))],
            });
        }
        if !self.sink.has_errors() {
            for error in self.model.validate() {
                self.sink.error(end, error.to_string());
            }
        }
        if !self.sink.has_errors() {
            self.warn_asymmetric_uses();
        }
        self.model
    }

    /// Warns of uses that distinguish the values of scalarsets.
    fn warn_asymmetric_uses(&mut self) {
        for asymmetric_use in symmetry_check::asymmetric_uses(&self.model).0 {
            let names = asymmetric_use
                .sets
                .iter()
                .map(|set| &self.model.types[set.index()].name);
            let names = names
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(" and ");
            let binding_span = |id| self.binding_spans.get(&id).copied();
            let with_reason = |what| format!("{what}: {}", asymmetric_use.reason);
            let (span, message) = match asymmetric_use.location {
                AsymmetryLocation::Loop(id) => (
                    binding_span(id),
                    with_reason("the order of this loop matters"),
                ),
                AsymmetryLocation::Claim(id) => (
                    binding_span(id),
                    with_reason("the order of evaluation matters here"),
                ),
                AsymmetryLocation::Slot(id) => (
                    binding_span(id),
                    with_reason("the number of this slot matters"),
                ),
                AsymmetryLocation::Clear(line) => (
                    self.clears.get(&line).copied(),
                    format!("`clear` chooses a first value of {names}"),
                ),
                AsymmetryLocation::Model => (None, with_reason("scalarsets may not be symmetric")),
            };
            self.sink
                .warning(span.unwrap_or_default(), message)
                .note(format!(
                    "values of a scalarset have no order; symmetry of {names} is not used"
                ));
        }
    }

    /// Reports an error.
    fn error(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.sink.error(span, message)
    }

    /// Reports an error if a construct exists only in one dialect and the text is in the other.
    fn require_dialect(&mut self, dialect: Dialect, span: Span, construct: &str) {
        let (other_dialect, name) = match dialect {
            Dialect::CMurphi => (Dialect::Rumur, "Rumur"),
            _ => (Dialect::CMurphi, "CMurphi"),
        };
        if self.dialect == other_dialect {
            self.error(span, format!("{name} has no {construct}"));
        }
    }

    /// Text at a position.
    fn text_of(&self, span: Span) -> &'t str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// Line of a position, counted from 1.
    fn line_of(&self, span: Span) -> u32 {
        self.newlines
            .partition_point(|&newline| newline < span.start) as u32
            + 1
    }

    /// Runs `f` in a new scope of names.
    fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(FxHashMap::default());
        let result = f(self);
        self.scopes.pop();
        result
    }

    /// Declares a name in the innermost scope, or reports that the name is declared there already.
    fn declare(&mut self, name: Name<'t>, meaning: Meaning) {
        let symbol = Symbol {
            meaning,
            span: name.span,
        };
        let Some(scope) = self.scopes.last_mut() else {
            return;
        };
        if let Some(first) = scope.get(name.text) {
            let first = first.span;
            self.error(name.span, format!("`{}` is declared twice", name.text))
                .label("declared again here")
                .note_at(first, "declared here first");
            return;
        }
        scope.insert(name.text, symbol);
    }

    /// The meaning of a name; `None` if it is not declared.
    fn find(&self, name: &str) -> Option<&Symbol> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// Reports an undeclared name, and suggests similar names whose meaning `is_candidate`
    /// accepts. `kind` is the expected kind of name as a noun.
    fn report_unknown(&mut self, name: Name, kind: &str, is_candidate: fn(&Meaning) -> bool) {
        let mut names: Vec<&str> = (self.scopes.iter().flatten())
            .filter(|(_, symbol)| is_candidate(&symbol.meaning))
            .map(|(&name, _)| name)
            .collect();
        names.sort_unstable();
        names.dedup();
        let help = suggestion(name.text, kind, names.into_iter());
        self.error(name.span, format!("no {kind} is named `{}`", name.text))
            .label("not declared before it is used here")
            .note(help);
    }

    /// Adds a variable to the model, without a declared name.
    fn add_variable(&mut self, name: &str, ty: TypeId, role: Role) -> VariableId {
        self.model.variables.push(Variable {
            name: name.into(),
            spoken_name: None,
            ty,
            role,
        });
        VariableId(self.model.variables.len() as u32 - 1)
    }

    /// Lowers a declaration. A local variable adds a statement to `body` that starts its lifetime.
    fn lower_decl(&mut self, decl: &Decl<'t>, role: Role, body: &mut Vec<model::Stmt>) {
        match decl {
            Decl::Const(names, e) => {
                let meaning = match self.lower_constant(e) {
                    Some((value, kind)) => Meaning::Constant(value, kind),
                    None => Meaning::Invalid,
                };
                for name in names {
                    self.declare(*name, meaning.clone());
                }
            }
            Decl::Type(names, ty) => {
                let first = names.first().map(|name| name.text);
                let meaning = match self.lower_type(ty, first) {
                    Some(ty) => Meaning::Type(ty),
                    None => Meaning::Invalid,
                };
                for name in names {
                    self.declare(*name, meaning.clone());
                }
            }
            Decl::Var(names, ty) => {
                let ty = self.lower_type_expr(ty);
                for name in names {
                    let meaning = match ty {
                        Some(ty) => {
                            let id = self.add_variable(name.text, ty, role);
                            if role == Role::Local {
                                body.push(model::Stmt::Let(id, None));
                            }
                            Meaning::Variable(id, Access::Writable)
                        }
                        None => Meaning::Invalid,
                    };
                    self.declare(*name, meaning);
                }
            }
        }
    }

    /// Lowers a function or procedure, and declares its name.
    fn lower_function(&mut self, function: &Function<'t>) {
        let name = function.name;
        let result = function.result.as_ref().map(|ty| self.lower_type_expr(ty));
        let has_invalid_result = matches!(result, Some(None));
        // Rumur does not check the range of results.
        let result = result.flatten().map(|ty| match self.model.ty(ty) {
            Type::Range { .. } if self.dialect == Dialect::Rumur => self.number_type(),
            _ => ty,
        });
        self.scopes.push(FxHashMap::default());
        let mut parameters = Vec::new();
        for parameter in &function.parameters {
            let Some(ty) = self.lower_type_expr(&parameter.ty) else {
                self.declare(parameter.name, Meaning::Invalid);
                continue;
            };
            let (role, access) = match parameter.is_variable {
                true => (Role::Alias, Access::Writable),
                false => (Role::Local, Access::Parameter),
            };
            let id = self.add_variable(parameter.name.text, ty, role);
            parameters.push(id);
            self.declare(parameter.name, Meaning::Variable(id, access));
        }
        // A function may call itself, so it is declared before its body is lowered.
        let id = FunctionId(self.model.functions.len() as u32);
        self.model.functions.push(model::Function {
            name: name.text.into(),
            parameters: parameters.clone(),
            result,
            body: Vec::new(),
        });
        let is_valid = parameters.len() == function.parameters.len() && !has_invalid_result;
        let function_scope = self.scopes.pop();
        let meaning = match is_valid {
            true => Meaning::Function(id),
            false => Meaning::Invalid,
        };
        self.declare(name, meaning);
        self.scopes.extend(function_scope);
        // A function that calls itself is assumed to change all its `var` parameters.
        let is_value = |&p: &VariableId| self.model.variable(p).role == Role::Local;
        self.value_parameters = parameters.iter().copied().filter(is_value).collect();
        self.current_effects = Effects::default();
        self.effects.push(Effects {
            parameters,
            ..Effects::default()
        });
        self.result = Some(result);
        let mut body = Vec::new();
        self.scoped(|l| {
            for decl in &function.locals {
                l.lower_decl(decl, Role::Local, &mut body);
            }
            body.extend(l.lower_block(&function.body));
        });
        self.scopes.pop();
        self.value_parameters.clear();
        self.result = None;
        self.effects[id.index()] = std::mem::take(&mut self.current_effects);
        self.model.functions[id.index()].body = body;
    }

    /// The variable that contains a place, through all aliases.
    fn root(&self, place: &Place) -> VariableId {
        let mut root = place.variable;
        while let Some(&next) = self.roots.get(&root) {
            root = next;
        }
        root
    }

    /// Records that a place is changed.
    fn record_write(&mut self, place: &Place, span: Span) {
        let root = self.root(place);
        match self.model.variable(root).role {
            Role::State => {
                self.current_effects.state.get_or_insert(span);
                if !self.current_effects.variables.contains(&root) {
                    self.current_effects.variables.push(root);
                }
            }
            Role::Alias if !self.current_effects.parameters.contains(&root) => {
                self.current_effects.parameters.push(root)
            }
            _ => {}
        }
    }
}
