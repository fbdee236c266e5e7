//! A model printed as Murphi, for an independent checker to confirm.
//!
//! The text is in the dialect of Rumur. Where every variable always has a value, start states clear all
//! variables first. Without symmetry reduction Rumur reaches exactly the states of the model.
//! Unions and what they are made of become ranges; multisets and priorities are refused.
//! [`Model::quiescent`] becomes a `liveness` property, which is weaker than drain because it may use
//! spontaneous rules; [`Style::Drain`] asks for the whole property instead.
//! Limits of loops, notes, and the difference between [`Deadlock::ExceptQuiescent`] and no deadlock detection have no counterpart.

use crate::model::*;
use crate::visit::{self, Node};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

/// What the text should decide.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// The model as it is: same states, and `liveness` where the model can be quiescent.
    #[default]
    Plain,
    /// A further boolean becomes true at any moment and then keeps spontaneous rules from firing, so that `liveness`
    /// says what drain says. There are more states, and deadlock must not be looked for.
    Drain,
}

/// The options that Rumur needs to decide what [`crate::check`] decides.
pub fn rumur_options(model: &Model, style: Style) -> Vec<&'static str> {
    let mut options = vec!["--symmetry-reduction", "off"];
    match model.deadlock {
        _ if style == Style::Drain => options.extend(["--deadlock-detection", "off"]),
        Deadlock::Stuttering => {}
        Deadlock::Stuck => options.extend(["--deadlock-detection", "stuck"]),
        Deadlock::ExceptQuiescent | Deadlock::Off => {
            options.extend(["--deadlock-detection", "off"])
        }
    }
    options
}

/// Prints a valid model.
///
/// # Errors
/// What of the model Rumur has no words for.
pub fn print(model: &Model, style: Style) -> Result<String, String> {
    for named in &model.types {
        if let Type::Multiset { .. } = named.ty {
            return Err(format!(
                "Rumur has no multisets, as `{}` is one",
                named.name
            ));
        }
    }
    if let Some(rule) = model
        .rules
        .iter()
        .find(|rule| rule.priority != model.rules[0].priority)
    {
        return Err(format!(
            "Rumur has no priorities, as `{}` has one",
            rule.name
        ));
    }
    let mut numeric = vec![false; model.types.len()];
    for (t, named) in model.types.iter().enumerate() {
        if let Type::Union(members) = &named.ty {
            numeric[t] = true;
            members.iter().for_each(|m| numeric[m.index()] = true);
        }
    }
    let mut p = Printer {
        model,
        text: String::new(),
        indent: 0,
        for_people: false,
        names: Names::new(model),
        numeric,
        meaning: vec![None; model.variables.len()],
    };
    p.model(style);
    Ok(p.text)
}

/// Prints an expression of a valid model for people, with the names that its text has.
pub(crate) fn expression(model: &Model, e: &Expr) -> String {
    let names = Names {
        types: model.types.iter().map(|t| t.name.clone()).collect(),
        variables: model.variables.iter().map(|v| v.name.clone()).collect(),
        tables: model.tables.iter().map(|t| t.name.clone()).collect(),
        functions: model.functions.iter().map(|f| f.name.clone()).collect(),
        labels: FxHashMap::default(),
        draining: String::new(),
    };
    let printer = Printer {
        model,
        text: String::new(),
        indent: 0,
        for_people: true,
        names,
        numeric: vec![false; model.types.len()],
        meaning: vec![None; model.variables.len()],
    };
    printer.expr(e, 0)
}

/// Words that one Murphi checker or the other keeps for itself.
const KEYWORDS: &str = "alias array assert assume begin boolean by case choose clear const cover do else elsif end \
    endalias endchoose endexists endfor endforall endfunction endif endprocedure endrecord endrule endruleset \
    endstartstate endswitch endwhile enum error exists false for forall from function if in interleaved invariant \
    ismember isundefined liveness multiset multisetadd multisetcount multisetremove multisetremovepred of pctl \
    procedure process program put real record return rule ruleset scalarset startstate switch then to traceuntil \
    true type undefine undefined union until var while externfun externproc log log10 exp sin cos tan fabs floor \
    ceil sqrt fmod pow asin acos atan sinh cosh tanh";

/// An identifier for everything that Murphi names, each different from all others.
#[derive(Clone)]
struct Names {
    types: Vec<String>,
    variables: Vec<String>,
    tables: Vec<String>,
    functions: Vec<String>,
    labels: FxHashMap<(u32, u32), String>,
    draining: String,
}

/// Turns any text into an identifier that is not in `taken` yet.
fn identifier(text: &str, taken: &mut FxHashSet<String>) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = text.chars().map(safe).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert(0, 'x');
    }
    let base = name.clone();
    let mut number = 1;
    while !taken.insert(name.clone()) {
        number += 1;
        name = format!("{base}_{number}");
    }
    name
}

/// The keywords, which are keywords in any case.
fn keywords() -> FxHashSet<String> {
    let spellings = |k: &str| {
        [
            k.to_string(),
            k.to_uppercase(),
            k[..1].to_uppercase() + &k[1..],
        ]
    };
    KEYWORDS.split_whitespace().flat_map(spellings).collect()
}

impl Names {
    fn new(model: &Model) -> Names {
        let mut taken = keywords();
        let mut labels = FxHashMap::default();
        let mut variables = vec![String::new(); model.variables.len()];
        // The state's names are what people look for, so they are the last to be changed.
        for (variable, name) in model.variables.iter().zip(&mut variables) {
            if variable.role == Role::State {
                *name = identifier(&variable.name, &mut taken);
            }
        }
        for (t, named) in model.types.iter().enumerate() {
            if let Type::Enum(all) = &named.ty {
                for (i, label) in all.iter().enumerate() {
                    labels.insert((t as u32, i as u32), identifier(label, &mut taken));
                }
            }
        }
        let types = model.types.iter().map(|named| match named.ty {
            Type::Bool => "boolean".to_string(),
            _ => identifier(&named.name, &mut taken),
        });
        let types = types.collect();
        let tables = model
            .tables
            .iter()
            .map(|t| identifier(&t.name, &mut taken))
            .collect();
        let functions = model
            .functions
            .iter()
            .map(|f| identifier(&f.name, &mut taken))
            .collect();
        for (variable, name) in model.variables.iter().zip(&mut variables) {
            if variable.role != Role::State {
                *name = identifier(&variable.name, &mut taken);
            }
        }
        let draining = identifier("draining", &mut taken);
        Names {
            types,
            variables,
            tables,
            functions,
            labels,
            draining,
        }
    }
}

/// A violation as one text.
fn said(violation: &Violation) -> String {
    match violation.why.is_empty() {
        true => violation.property.clone(),
        false => format!("{}: {}", violation.property, violation.why),
    }
}

/// Text in quotes.
fn quoted(text: &str) -> String {
    let plain = |c: char| {
        if c == '"' || c == '\\' || c.is_control() {
            '\''
        } else {
            c
        }
    };
    format!("\"{}\"", text.chars().map(plain).collect::<String>())
}

/// How tightly an expression binds; a part that binds less than its place asks for gets parentheses.
mod binds {
    pub const CONDITIONAL: u8 = 1;
    pub const IMPLIES: u8 = 2;
    pub const OR: u8 = 3;
    pub const AND: u8 = 4;
    pub const NOT: u8 = 5;
    pub const COMPARE: u8 = 6;
    pub const BITS: u8 = 7;
    pub const SUM: u8 = 8;
    pub const PRODUCT: u8 = 9;
    pub const ATOM: u8 = 10;
}

struct Printer<'a> {
    model: &'a Model,
    text: String,
    indent: usize,
    /// Whether it is to be read in the terms of the model's own text, and not by Rumur.
    for_people: bool,
    names: Names,
    /// Whether a type's values are written as numbers.
    numeric: Vec<bool>,
    /// What a name stands for, where Rumur cannot give it one: in expressions.
    meaning: Vec<Option<String>>,
}

impl Printer<'_> {
    fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if line.is_empty() {
            self.text.push('\n');
        } else {
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "{:1$}{line}", "", 2 * self.indent);
        }
    }

    fn nested(&mut self, f: impl FnOnce(&mut Self)) {
        self.indent += 1;
        f(self);
        self.indent -= 1;
    }

    fn model(&mut self, style: Style) {
        let model = self.model;
        let name: String = model
            .name
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        self.line(format!("-- {name}"));
        self.line(match model.undefined {
            true => "-- Printed by Cohkit for Rumur.",
            false => "-- Printed by Cohkit for Rumur; every variable always has a value.",
        });
        self.line(format!(
            "-- Check with: rumur {}",
            rumur_options(model, style).join(" ")
        ));
        self.line("");
        self.declarations(style);
        for (t, table) in model.tables.iter().enumerate() {
            self.table(t, table);
        }
        for (f, function) in model.functions.iter().enumerate() {
            self.function(f, function);
        }
        let draining = self.names.draining.clone();
        for start in &model.starts {
            self.ruleset(&start.parameters, |p| {
                p.line(format!("startstate {}", quoted(&start.name)));
                p.locals(&start.body, &[]);
                p.nested(|p| {
                    for (variable, name) in p.model.variables.iter().zip(p.names.variables.clone())
                    {
                        if variable.role == Role::State && !p.model.undefined {
                            p.line(format!("clear {name};"));
                        }
                    }
                    if style == Style::Drain {
                        p.line(format!("{draining} := false;"));
                    }
                    p.block(&start.body);
                });
                p.line("end;");
            });
        }
        if style == Style::Drain {
            self.line("rule \"nothing new from now on\"");
            self.line(format!(
                "  !{draining} ==>\nbegin\n  {draining} := true;\nend;"
            ));
            self.line("");
        }
        for rule in &model.rules {
            self.ruleset(&rule.parameters, |p| {
                let kind = if rule.spontaneous {
                    "  -- spontaneous"
                } else {
                    ""
                };
                p.line(format!("rule {}{kind}", quoted(&rule.name)));
                let guard = match style == Style::Drain && rule.spontaneous {
                    true => format!("!{draining} & {}", p.expr(&rule.guard, binds::NOT)),
                    false => p.expr(&rule.guard, 0),
                };
                p.line(format!("  {guard} ==>"));
                p.locals(&rule.body, &[]);
                p.nested(|p| p.block(&rule.body));
                p.line("end;");
            });
        }
        let invariants = model.invariants.iter().map(|i| ("invariant", i));
        let liveness = model.liveness.iter().map(|i| ("liveness", i));
        let assumptions = model.assumptions.iter().map(|i| ("assume", i));
        for (word, claim) in invariants.chain(liveness).chain(assumptions) {
            self.ruleset(&claim.parameters, |p| {
                let (name, holds) = (quoted(&claim.name), p.expr(&claim.holds, 0));
                p.line(format!("{word} {name}\n  {holds};"));
            });
        }
        for cover in &model.covers {
            if let Some(e) = &cover.holds {
                let claim = self.expr(e, 0);
                self.line(format!("cover {}\n  {claim};\n", quoted(&cover.name)));
            }
        }
        if let Some(quiescent) = &model.quiescent {
            let claim = self.expr(quiescent, 0);
            self.line(format!("liveness \"quiescent\"\n  {claim};"));
        }
    }

    fn declarations(&mut self, style: Style) {
        let model = self.model;
        if model.types.len() > 1 {
            self.line("type");
        }
        for (t, named) in model.types.iter().enumerate().skip(1) {
            let name = self.names.types[t].clone();
            match &named.ty {
                Type::Record(fields) => {
                    self.line(format!("  {name}: record"));
                    for (field, ty) in fields {
                        let field = self.field(fields, field);
                        self.line(format!("    {field}: {};", self.names.types[ty.index()]));
                    }
                    self.line("  end;");
                }
                ty => {
                    let text = self.simple_type(t, ty);
                    self.line(format!("  {name}: {text};"));
                }
            }
        }
        self.line("");
        self.line("var");
        for (variable, name) in model.variables.iter().zip(self.names.variables.clone()) {
            if variable.role == Role::State {
                self.line(format!(
                    "  {name}: {};",
                    self.names.types[variable.ty.index()]
                ));
            }
        }
        if style == Style::Drain {
            self.line(format!("  {}: boolean;", self.names.draining));
        }
        self.line("");
    }

    fn simple_type(&self, t: usize, ty: &Type) -> String {
        if self.numeric[t] {
            let (lo, hi) = self.model.bounds(TypeId(t as u32)).unwrap_or((0, 0));
            return format!("{lo} .. {hi}");
        }
        match ty {
            Type::Scalarset(size) => format!("scalarset({size})"),
            Type::Enum(labels) => {
                let label = |i: usize| self.names.labels[&(t as u32, i as u32)].as_str();
                format!(
                    "enum {{ {} }}",
                    (0..labels.len()).map(label).collect::<Vec<_>>().join(", ")
                )
            }
            Type::Range { lo, hi } => format!("{lo} .. {hi}"),
            Type::Array { index, element } => {
                let name = |id: &TypeId| &self.names.types[id.index()];
                format!("array [{}] of {}", name(index), name(element))
            }
            // Unions are numeric, and multisets refused.
            Type::Bool | Type::Record(_) | Type::Union(_) | Type::Multiset { .. } => {
                "boolean".into()
            }
        }
    }

    /// The identifier of a record's field.
    fn field(&self, fields: &[(String, TypeId)], wanted: &str) -> String {
        if self.for_people {
            return wanted.to_string();
        }
        let mut taken = keywords();
        for (field, _) in fields {
            let name = identifier(field, &mut taken);
            if field == wanted {
                return name;
            }
        }
        wanted.to_string()
    }

    /// A value of a simple type.
    fn constant(&self, ty: TypeId, value: i32) -> String {
        if self.numeric[ty.index()] {
            return value.to_string();
        }
        match self.names.labels.get(&(ty.0, value as u32)) {
            Some(label) => label.clone(),
            None => self.model.show(ty, value),
        }
    }

    fn table(&mut self, t: usize, table: &Table) {
        let name = self.names.tables[t].clone();
        let (index, result) = (table.index.index(), table.result.index());
        self.line(format!(
            "function {name}(i_: {}): {};",
            self.names.types[index], self.names.types[result]
        ));
        self.line("begin");
        self.line("  switch i_");
        let lo = self.model.bounds(table.index).map_or(0, |b| b.0);
        for (i, &value) in table.values.iter().enumerate() {
            let (i, value) = (
                self.constant(table.index, lo + i as i32),
                self.constant(table.result, value),
            );
            self.line(format!("    case {i}: return {value};"));
        }
        self.line("  end;");
        self.line("end;");
        self.line("");
    }

    fn function(&mut self, f: usize, function: &Function) {
        let parameters = function.parameters.iter().map(|&p| {
            let variable = self.model.variable(p);
            let word = if variable.role == Role::Alias {
                "var "
            } else {
                ""
            };
            let ty = &self.names.types[variable.ty.index()];
            format!("{word}{}: {ty}", self.names.variables[p.index()])
        });
        let parameters = parameters.collect::<Vec<_>>().join("; ");
        let name = self.names.functions[f].clone();
        match function.result {
            Some(ty) => {
                let ty = &self.names.types[ty.index()];
                self.line(format!("function {name}({parameters}): {ty};"));
            }
            None => self.line(format!("procedure {name}({parameters});")),
        }
        self.locals(&function.body, &function.parameters);
        self.nested(|p| p.block(&function.body));
        self.line("end;");
        self.line("");
    }

    fn ruleset(&mut self, parameters: &[VariableId], f: impl FnOnce(&mut Self)) {
        let quantifier = |p: &VariableId| {
            let ty = self.model.variable(*p).ty;
            format!(
                "{}: {}",
                self.names.variables[p.index()],
                self.names.types[ty.index()]
            )
        };
        let quantifiers: Vec<_> = parameters.iter().map(quantifier).collect();
        if quantifiers.is_empty() {
            f(self);
        } else {
            self.line(format!("ruleset {} do", quantifiers.join("; ")));
            self.nested(f);
            self.line("end;");
        }
        self.line("");
    }

    /// Declares the locals of a body, and begins it.
    fn locals(&mut self, body: &[Stmt], parameters: &[VariableId]) {
        let mut locals = Vec::new();
        visit::block(body, &mut |node| {
            if let Node::Stmt(Stmt::Let(id, _)) = node {
                if !locals.contains(id) && !parameters.contains(id) {
                    locals.push(*id);
                }
            }
        });
        if !locals.is_empty() {
            self.line("var");
        }
        for id in locals {
            let ty = self.model.variable(id).ty.index();
            self.line(format!(
                "  {}: {};",
                self.names.variables[id.index()],
                self.names.types[ty]
            ));
        }
        self.line("begin");
    }

    fn block(&mut self, block: &[Stmt]) {
        block.iter().for_each(|s| self.stmt(s));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(place, value) => self.assign(place, value),
            Stmt::Let(id, Some(value)) => self.assign(&(*id).into(), value),
            Stmt::Let(id, None) => {
                let word = if self.model.undefined {
                    "undefine"
                } else {
                    "clear"
                };
                self.line(format!("{word} {};", self.names.variables[id.index()]))
            }
            Stmt::Undefine(place) => {
                let place = self.place(place);
                self.line(format!("undefine {place};"));
            }
            Stmt::Line(_) => {}
            Stmt::Alias(id, place, body) => {
                let place = self.place(place);
                self.line(format!(
                    "alias {}: {place} do",
                    self.names.variables[id.index()]
                ));
                self.nested(|p| p.block(body));
                self.line("end;");
            }
            Stmt::ForSteps(id, steps, body) => self.for_steps(*id, steps, body),
            Stmt::While(condition, body, _) => {
                let condition = self.expr(condition, 0);
                self.line(format!("while {condition} do"));
                self.nested(|p| p.block(body));
                self.line("end;");
            }
            Stmt::Switch(subject, cases, otherwise) => {
                let subject = self.expr(subject, 0);
                self.line(format!("switch {subject}"));
                for (values, body) in cases {
                    let values: Vec<_> = values.iter().map(|v| self.expr(v, 0)).collect();
                    self.line(format!("case {}:", values.join(", ")));
                    self.nested(|p| p.block(body));
                }
                if !otherwise.is_empty() {
                    self.line("else");
                    self.nested(|p| p.block(otherwise));
                }
                self.line("end;");
            }
            Stmt::Return(None) => self.line("return;"),
            Stmt::Return(Some(e)) => {
                let e = self.expr(e, 0);
                self.line(format!("return {e};"));
            }
            Stmt::Call(id, arguments) => {
                let call = self.call(*id, arguments);
                self.line(format!("{call};"));
            }
            Stmt::Assume(e) => {
                let e = self.expr(e, 0);
                self.line(format!("assume {e};"));
            }
            Stmt::Cover(id) => {
                let name = quoted(&self.model.covers[id.index()].name);
                self.line(format!("cover {name} true;"));
            }
            // Multisets have been refused.
            Stmt::Insert(..) | Stmt::Remove(..) | Stmt::RemoveWhere(..) => {}
            Stmt::Clear(place) => {
                let place = self.place(place);
                self.line(format!("clear {place};"));
            }
            Stmt::If(condition, then, otherwise) => {
                let condition = self.expr(condition, 0);
                self.line(format!("if {condition} then"));
                self.nested(|p| p.block(then));
                if !otherwise.is_empty() {
                    self.line("else");
                    self.nested(|p| p.block(otherwise));
                }
                self.line("end;");
            }
            Stmt::For(id, body) => {
                let ty = self.model.variable(*id).ty.index();
                let head = format!(
                    "for {}: {} do",
                    self.names.variables[id.index()],
                    self.names.types[ty]
                );
                self.line(head);
                self.nested(|p| p.block(body));
                self.line("end;");
            }
            Stmt::Error(violation) => self.line(format!("error {};", quoted(&said(violation)))),
            Stmt::Assert(violation, claim) => {
                let claim = self.expr(claim, 0);
                self.line(format!("assert {claim} {};", quoted(&said(violation))));
            }
            Stmt::Note(_) => {}
        }
    }

    /// Stores a value that may be missing.
    fn assign(&mut self, place: &Place, value: &Expr) {
        let simple = self.model.bounds(self.model.type_of_place(place)).is_some();
        if let Expr::If(condition, a, b) = value.without_line() {
            if self.may_lack(a) || self.may_lack(b) {
                let condition = self.expr(condition, 0);
                self.line(format!("if {condition} then"));
                self.nested(|p| p.assign(place, a));
                self.line("else");
                self.nested(|p| p.assign(place, b));
                return self.line("end;");
            }
        }
        let to = self.place(place);
        let text = self.expr(value, 0);
        match value.without_line() {
            Expr::Undefined(_) => self.line(format!("undefine {to};")),
            Expr::Peek(from) if simple && self.can_lack(from) => {
                let from = self.place(from);
                self.line(format!(
                    "if isundefined({from}) then undefine {to}; else {to} := {text}; end;"
                ));
            }
            _ => self.line(format!("{to} := {text};")),
        }
    }

    fn can_lack(&self, place: &Place) -> bool {
        self.model.undefined && self.model.variable(place.variable).role != Role::Bound
    }

    fn for_steps(&mut self, id: VariableId, steps: &Steps, body: &[Stmt]) {
        let name = self.names.variables[id.index()].clone();
        let [from, to, by] = [&steps.from, &steps.to, &steps.by].map(|e| self.expr(e, 0));
        // Rumur counts the other way, or complains, where there is nothing to count.
        let sense = match by.starts_with('-') {
            true => format!(
                "{} >= {}",
                self.expr(&steps.from, binds::SUM),
                self.expr(&steps.to, binds::SUM)
            ),
            false => format!(
                "{} <= {}",
                self.expr(&steps.from, binds::SUM),
                self.expr(&steps.to, binds::SUM)
            ),
        };
        let constant = |e: &Expr| match e.without_line() {
            Expr::Int(n) => Some(*n as i64),
            _ => None,
        };
        let known = (
            constant(&steps.from),
            constant(&steps.to),
            constant(&steps.by),
        );
        if let (Some(from), Some(to), Some(by)) = known {
            if (to - from) * by.signum() < 0 {
                return;
            }
        } else {
            self.line(format!("if {sense} then"));
        }
        self.line(format!("for {name} := {from} to {to} by {by} do"));
        self.nested(|p| p.block(body));
        self.line("end;");
        if !matches!(known, (Some(_), Some(_), Some(_))) {
            self.line("end;");
        }
    }

    fn call(&self, id: FunctionId, arguments: &[Argument]) -> String {
        let argument = |a: &Argument| match a {
            Argument::Value(e) => self.expr(e, 0),
            Argument::Place(place) => self.place(place),
        };
        let arguments: Vec<_> = arguments.iter().map(argument).collect();
        let name = &self.names.functions[id.index()];
        format!("{name}({})", arguments.join(", "))
    }

    fn place(&self, place: &Place) -> String {
        let mut text = match &self.meaning[place.variable.index()] {
            Some(meaning) => meaning.clone(),
            None => self.names.variables[place.variable.index()].clone(),
        };
        let mut ty = self.model.variable(place.variable).ty;
        for step in &place.path {
            match (self.model.ty(ty), step) {
                (Type::Array { element, .. }, Step::Index(e)) => {
                    text = format!("{text}[{}]", self.expr(e, 0));
                    ty = *element;
                }
                (Type::Record(fields), Step::Field(name)) => {
                    text = format!("{text}.{}", self.field(fields, name));
                    ty = fields.iter().find(|f| f.0 == *name).map_or(ty, |f| f.1);
                }
                // Rumur has no multisets.
                (Type::Multiset { element, .. }, Step::Index(e)) => {
                    text = format!("{text}[{}]", self.expr(e, 0));
                    ty = *element;
                }
                // Excluded by validation.
                _ => {}
            }
        }
        text
    }

    /// An expression, in parentheses if it binds less tightly than `wanted`.
    fn expr(&self, e: &Expr, wanted: u8) -> String {
        let (text, own) = self.bare(e);
        if own < wanted {
            format!("({text})")
        } else {
            text
        }
    }

    fn bare(&self, e: &Expr) -> (String, u8) {
        use binds::*;
        match e {
            Expr::Int(n) => (n.to_string(), if *n < 0 { PRODUCT } else { ATOM }),
            Expr::Bool(b) => (b.to_string(), ATOM),
            Expr::Label(ty, n) => (self.constant(*ty, *n as i32), ATOM),
            Expr::Read(place) | Expr::Peek(place) => (self.place(place), ATOM),
            Expr::IsUndefined(place) => (format!("isundefined({})", self.place(place)), ATOM),
            Expr::Line(_, e) => self.bare(e),
            Expr::Call(id, arguments) => (self.call(*id, arguments), ATOM),
            Expr::Alias(id, place, e) => self.meaning(*id, self.place(place)).bare(e),
            Expr::Let(id, value, e) => self.meaning(*id, self.expr(value, ATOM)).bare(e),
            Expr::Convert(to, e) => self.convert(*to, e),
            Expr::IsMember(e, ty) => self.is_member(e, *ty),
            // Only stored and passed.
            Expr::Undefined(_) => ("undefined".into(), ATOM),
            // For Rumur, multisets have been refused.
            Expr::Present(place, slot) => {
                let (place, slot) = (self.place(place), self.expr(slot, 0));
                (format!("choose {slot}: {place}"), ATOM)
            }
            Expr::Count(id, place, claim) => {
                let name = &self.names.variables[id.index()];
                let (place, claim) = (self.place(place), self.expr(claim, 0));
                (format!("multisetcount({name}: {place}, {claim})"), ATOM)
            }
            Expr::ForallSteps(id, steps, body) => {
                (self.quantified_steps("forall", *id, steps, body), ATOM)
            }
            Expr::ExistsSteps(id, steps, body) => {
                (self.quantified_steps("exists", *id, steps, body), ATOM)
            }
            Expr::Binary(op @ (Operator::Equal | Operator::NotEqual), a, b)
                if !self.for_people && (self.may_lack(a) || self.may_lack(b)) =>
            {
                let equal = self.equal(a, b);
                match op {
                    Operator::Equal => (format!("({equal})"), ATOM),
                    _ => (format!("!({equal})"), NOT),
                }
            }
            Expr::Table(id, index) => (
                format!("{}({})", self.names.tables[id.index()], self.expr(index, 0)),
                ATOM,
            ),
            Expr::Not(a) => (format!("!{}", self.expr(a, ATOM)), NOT),
            Expr::Negate(a) => (format!("-{}", self.expr(a, ATOM)), PRODUCT),
            Expr::If(c, a, b) => {
                let next = CONDITIONAL + 1;
                let (c, a, b) = (self.expr(c, next), self.expr(a, next), self.expr(b, next));
                (format!("{c} ? {a} : {b}"), CONDITIONAL)
            }
            Expr::Forall(id, body) => (self.quantified("forall", *id, body), ATOM),
            Expr::Exists(id, body) => (self.quantified("exists", *id, body), ATOM),
            Expr::Binary(op, a, b) => {
                let (sign, own, left, right) = match op {
                    Operator::Implies => ("->", IMPLIES, OR, OR),
                    Operator::Or => ("|", OR, OR, AND),
                    Operator::And => ("&", AND, AND, NOT),
                    Operator::Equal => ("=", COMPARE, SUM, SUM),
                    Operator::NotEqual => ("!=", COMPARE, SUM, SUM),
                    Operator::Less => ("<", COMPARE, SUM, SUM),
                    Operator::LessOrEqual => ("<=", COMPARE, SUM, SUM),
                    Operator::Greater => (">", COMPARE, SUM, SUM),
                    Operator::GreaterOrEqual => (">=", COMPARE, SUM, SUM),
                    Operator::Add => ("+", SUM, SUM, PRODUCT),
                    Operator::Subtract => ("-", SUM, SUM, PRODUCT),
                    Operator::Multiply => ("*", PRODUCT, PRODUCT, ATOM),
                    Operator::Divide => ("/", PRODUCT, PRODUCT, ATOM),
                    Operator::Remainder => ("%", PRODUCT, PRODUCT, ATOM),
                    Operator::BitAnd => ("&", BITS, ATOM, ATOM),
                    Operator::BitOr => ("|", BITS, ATOM, ATOM),
                    Operator::BitXor => ("^", BITS, ATOM, ATOM),
                    Operator::ShiftLeft => ("<<", BITS, ATOM, ATOM),
                    Operator::ShiftRight => (">>", BITS, ATOM, ATOM),
                };
                let text = format!("{} {sign} {}", self.expr(a, left), self.expr(b, right));
                match own == BITS {
                    true => (format!("({text})"), ATOM),
                    false => (text, own),
                }
            }
        }
    }

    fn quantified(&self, word: &str, id: VariableId, body: &Expr) -> String {
        let ty = self.model.variable(id).ty.index();
        let (name, ty) = (&self.names.variables[id.index()], &self.names.types[ty]);
        format!("{word} {name}: {ty} do {} end", self.expr(body, 0))
    }

    fn quantified_steps(&self, word: &str, id: VariableId, steps: &Steps, body: &Expr) -> String {
        let [from, to, by] = [&steps.from, &steps.to, &steps.by].map(|e| self.expr(e, 0));
        let name = &self.names.variables[id.index()];
        let body = self.expr(body, 0);
        if self.for_people && by == "1" {
            return format!("{word} {name} := {from} to {to} do {body} end");
        }
        format!("{word} {name} := {from} to {to} by {by} do {body} end")
    }

    /// A printer for which a name stands for something.
    fn meaning(&self, id: VariableId, meaning: String) -> Printer<'_> {
        let mut all = self.meaning.clone();
        all[id.index()] = Some(meaning);
        Printer {
            model: self.model,
            text: String::new(),
            indent: 0,
            for_people: self.for_people,
            names: self.names.clone(),
            numeric: self.numeric.clone(),
            meaning: all,
        }
    }

    /// Whether two operands are equal, where at least one may have no value. What the other one would read wrongly is read
    /// whatever the first one is, as a comparison reads both.
    fn equal(&self, a: &Expr, b: &Expr) -> String {
        for (choice, other) in [(a, b), (b, a)] {
            if let Expr::If(condition, then, otherwise) = choice.without_line() {
                let condition = self.expr(condition, binds::OR);
                let [then, otherwise] = [then, otherwise].map(|e| self.equal(e, other));
                return format!("{condition} ? ({then}) : ({otherwise})");
            }
        }
        let (x, y) = (self.expr(a, binds::SUM), self.expr(b, binds::SUM));
        let (value, lacking, place) = match (self.lacking(a), self.lacking(b)) {
            (Some(a), Some(b)) => {
                return format!(
                    "isundefined({a}) ? isundefined({b}) : (!isundefined({b}) & {x} = {y})"
                )
            }
            (Some(place), None) => (b, &y, place),
            (None, Some(place)) => (a, &x, place),
            (None, None) => return format!("{x} = {y}"),
        };
        match self.is_given(value) {
            true => format!("!isundefined({place}) & {x} = {y}"),
            false => format!("isundefined({place}) ? {lacking} != {lacking} : {x} = {y}"),
        }
    }

    /// Is nothing of the state read for this value?
    fn is_given(&self, e: &Expr) -> bool {
        match e.without_line() {
            Expr::Label(..) | Expr::Int(_) | Expr::Bool(_) => true,
            Expr::Read(place) | Expr::Peek(place) => {
                place.path.is_empty() && self.model.variable(place.variable).role == Role::Bound
            }
            Expr::Convert(_, e) => self.is_given(e),
            _ => false,
        }
    }

    /// May the value be none, as one of its own?
    fn may_lack(&self, e: &Expr) -> bool {
        match e.without_line() {
            Expr::If(_, a, b) => self.may_lack(a) || self.may_lack(b),
            e => self.lacking(e).is_some(),
        }
    }

    /// The place that an operand of a comparison is, if it may have no value.
    fn lacking(&self, e: &Expr) -> Option<String> {
        match e.without_line() {
            Expr::Peek(place) if self.can_lack(place) => Some(self.place(place)),
            Expr::Convert(_, e) => self.lacking(e),
            _ => None,
        }
    }

    fn convert(&self, to: TypeId, e: &Expr) -> (String, u8) {
        if self.for_people {
            return self.bare(e);
        }
        let from = self.model.type_of(e).unwrap_or(to);
        let up = self.model.offset_in_union(to, from);
        let down = self.model.offset_in_union(from, to);
        let shift = up.or(down.map(|offset| -offset)).unwrap_or(0);
        match shift {
            0 => self.bare(e),
            1.. => (
                format!("{} + {shift}", self.expr(e, binds::SUM)),
                binds::SUM,
            ),
            _ => (
                format!("{} - {}", self.expr(e, binds::SUM), -shift),
                binds::SUM,
            ),
        }
    }

    fn is_member(&self, e: &Expr, ty: TypeId) -> (String, u8) {
        if self.for_people {
            let ty = &self.names.types[ty.index()];
            return (format!("ismember({}, {ty})", self.expr(e, 0)), binds::ATOM);
        }
        let from = self.model.type_of(e).unwrap_or(ty);
        let lo = self.model.offset_in_union(from, ty).unwrap_or(0);
        let hi = lo + self.model.bounds(ty).map_or(0, |b| b.1);
        let defined = match self.lacking(e) {
            Some(place) => format!("!isundefined({place})"),
            None => "true".into(),
        };
        if from == ty || !self.numeric[from.index()] {
            return (defined, binds::NOT);
        }
        let value = self.expr(e, binds::SUM);
        let inside = format!("{value} >= {lo} & {value} <= {hi}");
        (format!("({defined} & {inside})"), binds::ATOM)
    }
}
