//! Models printed as Murphi, for confirmation by an independent checker.
//!
//! The text is in Rumur's dialect. If every variable always has a value, start states first clear all variables.
//! Without symmetry reduction Rumur reaches exactly the states of the model. Unions and their members become ranges;
//! multisets, priorities, and functions that take or return converted values of a union, which may be undefined, are
//! rejected. [`Model::quiescent`] becomes a `liveness` property, which is weaker than drain because it may use
//! spontaneous rules; [`Style::Drain`] exports the full property instead. The progress of a protocol
//! (`cohkit_check::progress`) is checked on models of its own and is not exported. Limits of loops, notes, and the
//! difference between [`Deadlock::ExceptQuiescent`] and no deadlock detection have no counterpart.

mod expressions;
mod names;
mod numbers;
mod statements;

use cohkit_engine::model::{
    Argument, Deadlock, Expr, Function, Model, Number, Operator, Place, Role, Rule, Start, Step,
    Stmt, Table, Type, TypeId, VariableId, Violation,
};
use cohkit_engine::visit::{self, Node};
use expressions::{alternatives, precedence};
use names::{identifier, Names};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

/// Properties that the exported text checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// The unchanged model: same states, and `liveness` if the model can be quiescent.
    #[default]
    Plain,
    /// The model with a further boolean, which becomes true at any time and then disables spontaneous rules, so that
    /// `liveness` is equivalent to drain. There are more states, and deadlocks must not be checked.
    Drain,
}

/// Returns the command-line options with which Rumur decides the same properties of the printed model as
/// [`cohkit_engine::check`].
pub fn rumur_options(model: &Model, style: Style) -> Vec<&'static str> {
    model.with_enough_stack(|| find_rumur_options(model, style))
}

/// Returns the options of [`rumur_options`]. Recurses over expressions.
fn find_rumur_options(model: &Model, style: Style) -> Vec<&'static str> {
    let mut options = vec!["--symmetry-reduction", "off"];
    // Rumur computes in the smallest type that holds the values of variables and the literals, and reports an amount
    // below zero as an error there. No option selects 64 bits, but a constant of that size does.
    if has_lower_intermediate(model)
        && numbers::number_width(model) == numbers::NumberWidth::AtMost32
    {
        options.extend(["--value-type", "int32_t"]);
    }
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

/// True if an intermediate result may be below every value that is stored. A difference that is stored directly, or is
/// an index, does not count: it is an error in any type.
fn has_lower_intermediate(model: &Model) -> bool {
    let (mut difference_count, mut direct_count) = (0, 0);
    let difference = |e: &Expr| {
        usize::from(matches!(
            e,
            Expr::Binary(Operator::Subtract, ..) | Expr::Negate(_)
        ))
    };
    let indices = |place: &Place| -> usize {
        let steps = place.path.iter().map(|step| match step {
            Step::Index(e) => difference(e),
            _ => 0,
        });
        steps.sum()
    };
    let mut count_node = |node: Node| match node {
        Node::Expr(e) => {
            difference_count += difference(e);
            direct_count += match e {
                Expr::Read(place) | Expr::Peek(place) => indices(place),
                Expr::Table(_, index) => difference(index),
                _ => 0,
            };
        }
        Node::Stmt(Stmt::Assign(_, e)) => direct_count += difference(e),
        Node::Target(place) => direct_count += indices(place),
        Node::Stmt(_) => {}
    };
    for rule in &model.rules {
        visit::expr(&rule.guard, &mut count_node);
        visit::block(&rule.body, &mut count_node);
    }
    for invariant in &model.invariants {
        visit::expr(&invariant.holds, &mut count_node);
    }
    difference_count > direct_count
}

/// Returns the name of a called function with a value parameter that is passed by reference, as in CMurphi: the value
/// may change while the function runs. `None` if there is no such call.
fn passes_by_reference(model: &Model) -> Option<&str> {
    let mut function_id = None;
    let mut check_node = |node: Node| {
        if let Node::Stmt(Stmt::Call(id, arguments)) | Node::Expr(Expr::Call(id, arguments)) = node
        {
            let function = &model.functions[id.index()];
            let by_reference = function
                .parameters
                .iter()
                .zip(arguments)
                .any(|(&p, argument)| {
                    matches!(argument, Argument::Place(_)) && model.variable(p).role == Role::Local
                });
            if by_reference {
                function_id = Some(*id);
            }
        }
    };
    let bodies = model.functions.iter().map(|f| &f.body);
    let bodies = bodies.chain(model.starts.iter().map(|start| &start.body));
    for body in bodies.chain(model.rules.iter().map(|rule| &rule.body)) {
        visit::block(body, &mut check_node);
    }
    function_id.map(|id| model.functions[id.index()].name.as_str())
}

/// Returns true if a place of a model can be undefined.
fn may_be_undefined(model: &Model, place: &Place) -> bool {
    model.undefined && model.variable(place.variable).role != Role::Bound
}

/// True for the value of a place that may be undefined, converted between a union and a member that have different
/// numbers, and for a choice with such a value.
fn converts_undefined(model: &Model, e: &Expr) -> bool {
    if let Some((_, a, b)) = alternatives(e) {
        return converts_undefined(model, &a) || converts_undefined(model, &b);
    }
    let (mut inner, mut is_converted) = (e.without_line(), false);
    while let Expr::Convert(to, e) = inner {
        let from = model.type_of(e).unwrap_or(*to);
        let offset = model.offset_in_union(*to, from);
        is_converted |= offset.or(model.offset_in_union(from, *to)) != Some(0);
        inner = e.without_line();
    }
    is_converted && matches!(inner, Expr::Peek(place) if may_be_undefined(model, place))
}

/// Returns true if a function takes or returns the value of a place, converted between a union and a member that have
/// different numbers. The value may be undefined, and cannot be computed with.
fn passes_converted_places(model: &Model) -> bool {
    let is_converted_place = |e: &Expr| converts_undefined(model, e);
    let mut found = false;
    let mut check_node = |node: Node| match node {
        Node::Stmt(Stmt::Call(_, arguments)) | Node::Expr(Expr::Call(_, arguments)) => {
            found |= arguments
                .iter()
                .any(|argument| matches!(argument, Argument::Value(e) if is_converted_place(e)));
        }
        Node::Stmt(Stmt::Return(Some(e))) => found |= is_converted_place(e),
        _ => {}
    };
    let bodies = model.functions.iter().map(|f| &f.body);
    let bodies = bodies.chain(model.starts.iter().map(|start| &start.body));
    for body in bodies.chain(model.rules.iter().map(|rule| &rule.body)) {
        visit::block(body, &mut check_node);
    }
    let claims = model.rules.iter().map(|rule| &rule.guard);
    let invariants = model.invariants.iter().chain(&model.liveness);
    let claims = claims.chain(invariants.map(|invariant| &invariant.holds));
    claims.for_each(|claim| visit::expr(claim, &mut check_node));
    found
}

/// Prints a valid model in Rumur's dialect. `style` selects the properties.
///
/// # Errors
/// A construct of the model that Rumur does not support, in words.
pub fn print(model: &Model, style: Style) -> Result<String, String> {
    model.with_enough_stack(|| print_recursively(model, style))
}

/// Prints a model as [`print()`] does. Recurses over expressions.
fn print_recursively(model: &Model, style: Style) -> Result<String, String> {
    for named in &model.types {
        if let Type::Multiset { .. } = named.ty {
            return Err(format!(
                "`{}` is a multiset, which Rumur does not have",
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
            "`{}` has a priority, which Rumur does not have",
            rule.name
        ));
    }
    if let Some(function) = passes_by_reference(model) {
        return Err(format!(
            "Rumur copies values that it passes, and `{function}` changes one while it runs"
        ));
    }
    if model.undefined && passes_converted_places(model) {
        return Err(
            "a function takes or returns a converted value of a union, which may be undefined"
                .into(),
        );
    }
    let mut numeric = vec![false; model.types.len()];
    for (t, named) in model.types.iter().enumerate() {
        if let Type::Union(members) = &named.ty {
            numeric[t] = true;
            members.iter().for_each(|m| numeric[m.index()] = true);
        }
    }
    let mut printer = Printer {
        model,
        text: String::new(),
        indent: 0,
        for_readers: false,
        names: Names::new(model),
        numeric,
        meanings: vec![None; model.variables.len()],
    };
    printer.print_model(style);
    Ok(printer.text)
}

/// Prints an expression of a valid model for readers, with the names of its own text.
pub fn expression(model: &Model, e: &Expr) -> String {
    let names = Names {
        types: model.types.iter().map(|t| t.name.clone()).collect(),
        variables: model.variables.iter().map(|v| v.name.clone()).collect(),
        tables: model.tables.iter().map(|t| t.name.clone()).collect(),
        functions: model.functions.iter().map(|f| f.name.clone()).collect(),
        labels: FxHashMap::default(),
        drain_flag: String::new(),
        wide_constant: String::new(),
    };
    let printer = Printer {
        model,
        text: String::new(),
        indent: 0,
        for_readers: true,
        names,
        numeric: vec![false; model.types.len()],
        meanings: vec![None; model.variables.len()],
    };
    printer.expr(e, 0)
}

/// A violation's property and reason, as a string.
fn violation_text(violation: &Violation) -> String {
    match violation.reason.is_empty() {
        true => violation.property.clone(),
        false => format!("{}: {}", violation.property, violation.reason),
    }
}

/// Returns a quoted string, with `'` in place of characters that need an escape.
fn quote(text: &str) -> String {
    let replace_unsafe = |c: char| {
        if c == '"' || c == '\\' || c.is_control() {
            '\''
        } else {
            c
        }
    };
    format!(
        "\"{}\"",
        text.chars().map(replace_unsafe).collect::<String>()
    )
}

/// Printer of a model, or of single expressions.
struct Printer<'a> {
    /// The model to print.
    model: &'a Model,
    /// Text printed so far.
    text: String,
    /// Indentation of the next line, in levels of two spaces.
    indent: usize,
    /// True to print the names of the model's own text, for readers instead of Rumur.
    for_readers: bool,
    /// Names of the printed text.
    names: Names,
    /// Per type, true if its values are printed as numbers: unions and their members.
    numeric: Vec<bool>,
    /// Per variable, the text of the expression that it denotes, if Rumur cannot name it.
    meanings: Vec<Option<String>>,
}

impl Printer<'_> {
    /// Prints a line with the current indentation.
    fn add_line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if line.is_empty() {
            self.text.push('\n');
        } else {
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "{:1$}{line}", "", 2 * self.indent);
        }
    }

    /// Prints the lines that `f` prints one level deeper.
    fn with_indent(&mut self, f: impl FnOnce(&mut Self)) {
        self.indent += 1;
        f(self);
        self.indent -= 1;
    }

    /// Prints the whole model: declarations, tables, functions, start states, rules and properties.
    fn print_model(&mut self, style: Style) {
        let model = self.model;
        self.print_header(style);
        self.print_declarations(style);
        for (index, table) in model.tables.iter().enumerate() {
            self.print_table(index, table);
        }
        for (index, function) in model.functions.iter().enumerate() {
            self.print_function(index, function);
        }
        for start in &model.starts {
            self.print_start(start, style);
        }
        if style == Style::Drain {
            let drain_flag = &self.names.drain_flag;
            let rule = format!("  !{drain_flag} ==>\nbegin\n  {drain_flag} := true;\nend;");
            self.add_line("rule \"nothing new from now on\"");
            self.add_line(rule);
            self.add_line("");
        }
        for rule in &model.rules {
            self.print_rule(rule, style);
        }
        self.print_properties();
    }

    /// Prints comments on the model and how to check it.
    fn print_header(&mut self, style: Style) {
        let model = self.model;
        let name: String = model
            .name
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        self.add_line(format!("-- {name}"));
        self.add_line(match model.undefined {
            true => "-- Printed by Cohkit for Rumur.",
            false => "-- Printed by Cohkit for Rumur; every variable always has a value.",
        });
        self.add_line(format!(
            "-- Check with: rumur {}",
            rumur_options(model, style).join(" ")
        ));
        // Only protocol systems have quiescent states, and accesses that make progress.
        if model.quiescent.is_some() {
            self.add_line("-- Not in this model: progress (every access that begins can be performed), which is checked on other models.");
            if style == Style::Plain {
                self.add_line("-- `liveness` below may use all rules; Cohkit checks the completion of requests without the spontaneous ones.");
            }
        }
        self.add_line("");
    }

    /// Prints a start state. Without undefined values, it first clears all variables.
    fn print_start(&mut self, start: &Start, style: Style) {
        let drain_flag = self.names.drain_flag.clone();
        self.print_ruleset(&start.parameters, |p| {
            p.add_line(format!("startstate {}", quote(&start.name)));
            p.begin_body(&start.body, &[]);
            p.with_indent(|p| {
                for (variable, name) in p.model.variables.iter().zip(p.names.variables.clone()) {
                    if variable.role == Role::State && !p.model.undefined {
                        p.add_line(format!("clear {name};"));
                    }
                }
                if style == Style::Drain {
                    p.add_line(format!("{drain_flag} := false;"));
                }
                p.print_block(&start.body);
            });
            p.add_line("end;");
        });
    }

    /// Prints a rule. With [`Style::Drain`], a spontaneous rule fires only before the flag is set.
    fn print_rule(&mut self, rule: &Rule, style: Style) {
        let drain_flag = self.names.drain_flag.clone();
        self.print_ruleset(&rule.parameters, |p| {
            let kind = if rule.spontaneous {
                "  -- spontaneous"
            } else {
                ""
            };
            p.add_line(format!("rule {}{kind}", quote(&rule.name)));
            let guard = match style == Style::Drain && rule.spontaneous {
                true => format!("!{drain_flag} & {}", p.expr(&rule.guard, precedence::NOT)),
                false => p.expr(&rule.guard, 0),
            };
            p.add_line(format!("  {guard} ==>"));
            p.begin_body(&rule.body, &[]);
            p.with_indent(|p| p.print_block(&rule.body));
            p.add_line("end;");
        });
    }

    /// Prints invariants, liveness properties, assumptions, covers and the quiescent condition.
    fn print_properties(&mut self) {
        let model = self.model;
        let invariants = model.invariants.iter().map(|i| ("invariant", i));
        let liveness = model.liveness.iter().map(|i| ("liveness", i));
        let assumptions = model.assumptions.iter().map(|i| ("assume", i));
        for (keyword, claim) in invariants.chain(liveness).chain(assumptions) {
            self.print_ruleset(&claim.parameters, |p| {
                let (name, holds) = (quote(&claim.name), p.expr(&claim.holds, 0));
                p.add_line(format!("{keyword} {name}\n  {holds};"));
            });
        }
        for cover in &model.covers {
            if let Some(e) = &cover.holds {
                let claim = self.expr(e, 0);
                self.add_line(format!("cover {}\n  {claim};\n", quote(&cover.name)));
            }
        }
        if let Some(quiescent) = &model.quiescent {
            let claim = self.expr(quiescent, 0);
            self.add_line(format!("liveness \"quiescent\"\n  {claim};"));
        }
    }

    /// Prints the declarations of constants, types and variables of the state.
    fn print_declarations(&mut self, style: Style) {
        let model = self.model;
        if numbers::number_width(model) == numbers::NumberWidth::Over32 {
            self.add_line("const");
            self.add_line(
                "  -- Rumur counts in the smallest type that holds all constants and ranges.",
            );
            self.add_line(format!("  {}: -{};", self.names.wide_constant, 1u64 << 62));
            self.add_line("");
        }
        if model.types.len() > 1 {
            self.add_line("type");
        }
        for (t, named) in model.types.iter().enumerate().skip(1) {
            let name = self.names.types[t].clone();
            match &named.ty {
                Type::Record(fields) => {
                    self.add_line(format!("  {name}: record"));
                    for (field, ty) in fields {
                        let field = self.field(fields, field);
                        self.add_line(format!("    {field}: {};", self.names.types[ty.index()]));
                    }
                    self.add_line("  end;");
                }
                ty => {
                    let text = self.simple_type(t, ty);
                    self.add_line(format!("  {name}: {text};"));
                }
            }
        }
        self.add_line("");
        self.add_line("var");
        for (variable, name) in model.variables.iter().zip(self.names.variables.clone()) {
            if variable.role == Role::State {
                self.add_line(format!(
                    "  {name}: {};",
                    self.names.types[variable.ty.index()]
                ));
            }
        }
        if style == Style::Drain {
            self.add_line(format!("  {}: boolean;", self.names.drain_flag));
        }
        self.add_line("");
    }

    /// Returns the text of a type's definition. `t` is its index.
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
            // Unions are numeric, and multisets are rejected.
            Type::Bool | Type::Record(_) | Type::Union(_) | Type::Multiset { .. } => {
                "boolean".into()
            }
        }
    }

    /// The identifier of a record's field.
    fn field(&self, fields: &[(String, TypeId)], field_name: &str) -> String {
        if self.for_readers {
            return field_name.to_string();
        }
        let mut used_names = FxHashSet::default();
        for (field, _) in fields {
            let name = identifier(field, &mut used_names);
            if field == field_name {
                return name;
            }
        }
        field_name.to_string()
    }

    /// A value of a simple type.
    fn constant(&self, ty: TypeId, value: Number) -> String {
        if self.numeric[ty.index()] {
            return value.to_string();
        }
        match self.names.labels.get(&(ty.0, value as u32)) {
            Some(label) => label.clone(),
            None => self.model.show(ty, value),
        }
    }

    /// Prints a constant table as a function of its index. `table_index` is the position of the table in the model.
    fn print_table(&mut self, table_index: usize, table: &Table) {
        let name = self.names.tables[table_index].clone();
        let (index, result) = (table.index.index(), table.result.index());
        self.add_line(format!(
            "function {name}(i_: {}): {};",
            self.names.types[index], self.names.types[result]
        ));
        self.add_line("begin");
        self.add_line("  switch i_");
        let lo = self.model.bounds(table.index).map_or(0, |b| b.0);
        for (i, &value) in table.values.iter().enumerate() {
            let (i, value) = (
                self.constant(table.index, lo + i as Number),
                self.constant(table.result, value.into()),
            );
            self.add_line(format!("    case {i}: return {value};"));
        }
        self.add_line("  end;");
        self.add_line("end;");
        self.add_line("");
    }

    /// Prints a function or procedure. `function_index` is its position in the model.
    fn print_function(&mut self, function_index: usize, function: &Function) {
        let parameters = function.parameters.iter().map(|&p| {
            let variable = self.model.variable(p);
            let keyword = if variable.role == Role::Alias {
                "var "
            } else {
                ""
            };
            let ty = &self.names.types[variable.ty.index()];
            format!("{keyword}{}: {ty}", self.names.variables[p.index()])
        });
        let parameters = parameters.collect::<Vec<_>>().join("; ");
        let name = self.names.functions[function_index].clone();
        match function.result {
            Some(ty) => {
                let ty = &self.names.types[ty.index()];
                self.add_line(format!("function {name}({parameters}): {ty};"));
            }
            None => self.add_line(format!("procedure {name}({parameters});")),
        }
        self.begin_body(&function.body, &function.parameters);
        self.with_indent(|p| p.print_block(&function.body));
        self.add_line("end;");
        self.add_line("");
    }

    /// Prints the text that `f` prints, in a ruleset of these parameters if there are any.
    fn print_ruleset(&mut self, parameters: &[VariableId], f: impl FnOnce(&mut Self)) {
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
            self.add_line(format!("ruleset {} do", quantifiers.join("; ")));
            self.with_indent(f);
            self.add_line("end;");
        }
        self.add_line("");
    }

    /// Prints the local variables of a body, and `begin`.
    fn begin_body(&mut self, body: &[Stmt], parameters: &[VariableId]) {
        let mut locals = Vec::new();
        visit::block(body, &mut |node| {
            if let Node::Stmt(Stmt::Let(id, _)) = node {
                if !locals.contains(id) && !parameters.contains(id) {
                    locals.push(*id);
                }
            }
        });
        if !locals.is_empty() {
            self.add_line("var");
        }
        for id in locals {
            let ty = self.model.variable(id).ty.index();
            self.add_line(format!(
                "  {}: {};",
                self.names.variables[id.index()],
                self.names.types[ty]
            ));
        }
        self.add_line("begin");
    }
}
