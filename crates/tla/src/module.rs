//! The printed module and its configuration.

use crate::sets::quote;
use crate::translator::{indent, let_in, Binding, Cell, Scope, Translator};
use crate::Export;
use cohkit_engine::model::{
    Cover, Deadlock, Invariant, Model, Role, Rule, Start, Type, VariableId,
};
use std::fmt::Write;

/// Operators on numbers that TLA+ does not have, each with its definition. `\div` rounds down, and `%` is its
/// remainder. Bound names end with `_`, since no name of a model does; TLA+ does not let a name have two meanings.
const OPERATORS: &[(&str, &str)] = &[
    (
        "Quotient",
        "\\* Quotient of two numbers, rounded toward zero.\nQuotient(a_, b_) ==\n  \
         LET magnitude_ == (IF a_ < 0 THEN -a_ ELSE a_) \\div (IF b_ < 0 THEN -b_ ELSE b_)\n  \
         IN  IF (a_ < 0) = (b_ < 0) THEN magnitude_ ELSE -magnitude_\n",
    ),
    (
        "Remainder",
        "\\* Remainder of that division; has the sign of the dividend.\n\
         Remainder(a_, b_) == a_ - b_ * Quotient(a_, b_)\n",
    ),
    (
        "BitAnd",
        "\\* Bits that are set in both numbers; negative numbers are in two's complement.\nRECURSIVE BitAnd(_, _)\n\
         BitAnd(a_, b_) ==\n  IF a_ = 0 \\/ b_ = 0 THEN 0 ELSE IF a_ = -1 THEN b_ ELSE IF b_ = -1 THEN a_\n  \
         ELSE 2 * BitAnd(a_ \\div 2, b_ \\div 2) + (a_ % 2) * (b_ % 2)\n",
    ),
    (
        "BitOr",
        "\\* Bits that are set in at least one of the numbers.\nBitOr(a_, b_) == a_ + b_ - BitAnd(a_, b_)\n",
    ),
    (
        "BitXor",
        "\\* Bits that are set in exactly one of the numbers.\nBitXor(a_, b_) == a_ + b_ - 2 * BitAnd(a_, b_)\n",
    ),
    (
        "Shift",
        "\\* A number times two to the power of a distance, rounded down; 0 for distances from 64 on in either \
         direction.\nShift(a_, distance_) ==\n  IF distance_ >= 64 \\/ distance_ <= -64 THEN 0\n  \
         ELSE IF distance_ >= 0 THEN a_ * 2 ^ distance_ ELSE a_ \\div (2 ^ (-distance_))\n",
    ),
    (
        "Steps",
        "\\* Numbers from the first to the last in steps of `by_`.\nSteps(first_, last_, by_) ==\n  \
         IF by_ > 0 THEN {n_ \\in first_ .. last_ : (n_ - first_) % by_ = 0}\n  \
         ELSE {n_ \\in last_ .. first_ : (first_ - n_) % (-by_) = 0}\n",
    ),
];

/// Name of the values after a step, or of a first state.
const AFTER: &str = "after_";

/// Printer of a module.
pub(crate) struct ModulePrinter<'a> {
    pub translator: Translator<'a>,
}

impl ModulePrinter<'_> {
    /// Prints the module of a model and its configuration.
    ///
    /// # Errors
    /// A construct that has no counterpart, in words.
    pub(crate) fn print(&mut self, name: &str) -> Result<Export, String> {
        let model = self.translator.model;
        let mut behaviour = self.assumptions()?;
        self.print_start(&mut behaviour)?;
        for (index, rule) in model.rules.iter().enumerate() {
            self.print_rule(index, rule, &mut behaviour)?;
        }
        self.print_next(&mut behaviour);
        let invariants = self.print_properties(&mut behaviour)?;
        // The sets and operators that the behaviour has used are defined before it.
        let tables = self.tables();
        let types = self.type_invariant();
        let mut module = self.header(name);
        module.push_str(&self.definitions());
        module.push_str(&tables);
        module.push_str(&types);
        module.push_str(&behaviour);
        let _ = writeln!(module, "{}", "=".repeat(77));
        Ok(Export {
            module,
            configuration: configuration(model, &invariants),
        })
    }

    /// Module header, comments, constants and variables.
    fn header(&self, name: &str) -> String {
        let model = self.translator.model;
        let dashes = "-".repeat((66 - name.len().min(58)) / 2);
        let mut text = format!("{dashes} MODULE {name} {dashes}\n");
        let title: String = model
            .name
            .chars()
            .map(|c| if c.is_ascii_graphic() { c } else { ' ' })
            .collect();
        let mut comments = vec![
            format!("{title}, printed by Cohkit. Check with TLC and `{name}.cfg`."),
            "`violation` names the property that a step violates; it is empty in all other states."
                .into(),
        ];
        if model.interchangeable.is_some()
            || model
                .types
                .iter()
                .any(|named| matches!(named.ty, Type::Scalarset(_)))
        {
            comments.push("States are counted without symmetry reduction.".into());
        }
        if model.quiescent.is_some() {
            comments.push(
                "Not in this module: completion of requests and progress, which quantify over paths of a branching \
                 future."
                    .into(),
            );
        } else if !model.liveness.is_empty() {
            comments.push(
                "Not in this module: liveness, which quantifies over paths of a branching future."
                    .into(),
            );
        }
        for comment in comments {
            let _ = writeln!(text, "\\* {comment}");
        }
        text.push_str("EXTENDS Integers, Sequences\n\n");
        if model.undefined {
            text.push_str("\\* The value of a variable that has none.\nCONSTANT undefined\n\n");
        }
        let mut names = self.state_names();
        names.push("violation".into());
        let _ = writeln!(text, "VARIABLES\n  {}\n", names.join(",\n  "));
        let _ = writeln!(text, "vars == <<{}>>\n", names.join(", "));
        text
    }

    /// Names of the state variables.
    fn state_names(&self) -> Vec<String> {
        let variables = self
            .translator
            .model
            .variables
            .iter()
            .zip(&self.translator.names.variables);
        let states = variables.filter(|(variable, _)| variable.role == Role::State);
        states.map(|(_, name)| name.clone()).collect()
    }

    /// State variables, in order.
    fn state_variables(&self) -> Vec<VariableId> {
        let ids = (0..self.translator.model.variables.len() as u32).map(VariableId);
        ids.filter(|id| self.translator.model.variable(*id).role == Role::State)
            .collect()
    }

    /// Definitions of sets, orders of values, and operators on numbers.
    fn definitions(&mut self) -> String {
        let mut text = String::new();
        // A union's members need no sets of their own: it lists their values.
        let used: Vec<usize> = self.translator.sets.used.iter().copied().collect();
        let mut printed: Vec<String> = vec!["BOOLEAN".into()];
        for index in used {
            let ty = cohkit_engine::model::TypeId(index as u32);
            let name = self.translator.names.set(ty).to_string();
            if printed.contains(&name) {
                continue;
            }
            let _ = writeln!(text, "{name} == {}", self.translator.sets.members(ty));
            printed.push(name);
        }
        let orders: Vec<usize> = self.translator.sets.used_orders.iter().copied().collect();
        let mut printed: Vec<String> = Vec::new();
        for index in orders {
            let ty = cohkit_engine::model::TypeId(index as u32);
            let name = self.translator.sets.order(ty);
            if !printed.contains(&name) {
                let _ = writeln!(
                    text,
                    "{name} == <<{}>>",
                    self.translator.sets.values(ty).join(", ")
                );
                printed.push(name);
            }
        }
        if !text.is_empty() {
            text.push('\n');
        }
        if self.translator.used_operators.contains("Remainder") {
            self.translator.used_operators.insert("Quotient");
        }
        if ["BitOr", "BitXor"]
            .iter()
            .any(|operator| self.translator.used_operators.contains(operator))
        {
            self.translator.used_operators.insert("BitAnd");
        }
        for (operator, definition) in OPERATORS {
            if self.translator.used_operators.contains(operator) {
                let _ = writeln!(text, "{definition}");
            }
        }
        text
    }

    /// Definitions of the constant tables: one case for each result.
    fn tables(&mut self) -> String {
        let mut text = String::new();
        for (table, name) in self
            .translator
            .model
            .tables
            .iter()
            .zip(&self.translator.names.tables)
        {
            let mut cases: Vec<(String, Vec<String>)> = Vec::new();
            for (index, &result) in self
                .translator
                .sets
                .values(table.index)
                .into_iter()
                .zip(&table.values)
            {
                let result = self.translator.sets.value(table.result, result.into());
                match cases.iter_mut().find(|case| case.0 == result) {
                    Some(case) => case.1.push(index),
                    None => cases.push((result, vec![index])),
                }
            }
            if let [(result, _)] = &cases[..] {
                let _ = writeln!(text, "{name}(value_) == {result}\n");
                continue;
            }
            let cases = cases.iter().map(|(result, indices)| {
                format!("value_ \\in {{{}}} -> {result}", indices.join(", "))
            });
            let cases: Vec<String> = cases.collect();
            let _ = writeln!(
                text,
                "{name}(value_) ==\n  CASE {}\n",
                cases.join("\n    [] ")
            );
        }
        text
    }

    /// Definition of the invariant that each variable has a value of its type.
    fn type_invariant(&mut self) -> String {
        let mut text = "TypeOK ==\n".to_string();
        for id in self.state_variables() {
            let set = self
                .translator
                .sets
                .set(self.translator.model.variable(id).ty, true);
            let _ = writeln!(
                text,
                "  /\\ {} \\in {set}",
                self.translator.names.variables[id.index()]
            );
        }
        text.push_str("  /\\ violation \\in STRING\n\n");
        text
    }

    /// Prints the initial predicate.
    fn print_start(&mut self, text: &mut String) -> Result<(), String> {
        let mut starts = Vec::new();
        for start in &self.translator.model.starts {
            starts.push(self.start(start)?);
        }
        match &starts[..] {
            [start] => {
                let _ = writeln!(text, "Init ==\n  {}\n", indent(start, 2));
            }
            _ => {
                text.push_str("Init ==\n");
                for start in starts {
                    let _ = writeln!(text, "  \\/ {}", indent(&start, 5));
                }
                text.push('\n');
            }
        }
        Ok(())
    }

    /// Returns the predicate of one start. A state in which a violation has been found is a first state too.
    fn start(&mut self, start: &Start) -> Result<String, String> {
        self.translator.begin();
        for id in self.state_variables() {
            let value = (self.translator.sets).initial_value(self.translator.model.variable(id).ty);
            self.translator
                .scope
                .cells
                .insert(Cell::Variable(id), value);
        }
        let before = self.translator.scope.clone();
        let mut definitions = Vec::new();
        self.translator.block(&start.body, &mut definitions)?;
        let mut cells: Vec<Cell> = self
            .state_variables()
            .into_iter()
            .map(Cell::Variable)
            .collect();
        cells.push(Cell::Violation);
        let set = self.states_after(&before, &cells, &definitions);
        let mut conjuncts = self.equations(&cells, "");
        for name in &self.translator.names.assumptions {
            // A violation is found before the assumptions are.
            conjuncts.push(format!("IF violation = \"\" THEN {name} ELSE TRUE"));
        }
        let body = format!(
            "\\E {AFTER} \\in\n    {} :\n  {}",
            indent(&set, 4),
            indent(&list(&conjuncts), 2)
        );
        Ok(self.for_parameters("\\E", &start.parameters, &body))
    }

    /// Returns a set with the values of cells after a body, which is empty if the step does not happen.
    fn states_after(&mut self, before: &Scope, cells: &[Cell], definitions: &[String]) -> String {
        let enabled = self.translator.current(Cell::Enabled);
        let after = std::mem::replace(&mut self.translator.scope, before.clone());
        let values = self.translator.tuple_after(cells, &after);
        self.translator.scope = after;
        let set = match enabled == "TRUE" {
            true => format!("{{{values}}}"),
            false => format!("IF {enabled} THEN {{{values}}} ELSE {{}}"),
        };
        let_in(definitions, &set)
    }

    /// Equations of variables with their values among those of [`AFTER`]. `prime` follows each variable.
    fn equations(&self, cells: &[Cell], prime: &str) -> Vec<String> {
        let name = |cell: Cell| match cell {
            Cell::Variable(id) => self.translator.names.variables[id.index()].clone(),
            _ => "violation".into(),
        };
        match cells {
            [cell] => vec![format!("{}{prime} = {AFTER}", name(*cell))],
            _ => (cells.iter().zip(1..))
                .map(|(cell, place)| format!("{}{prime} = {AFTER}[{place}]", name(*cell)))
                .collect(),
        }
    }

    /// Puts quantifiers over parameters before a text, each on a line of its own.
    fn for_parameters(&mut self, sign: &str, parameters: &[VariableId], text: &str) -> String {
        let mut prefix = String::new();
        for id in parameters {
            let set = self
                .translator
                .sets
                .simple(self.translator.model.variable(*id).ty);
            let _ = write!(
                prefix,
                "{sign} {} \\in {set} : ",
                self.translator.names.variables[id.index()]
            );
        }
        match text.contains('\n') && !prefix.is_empty() {
            true => format!("{}\n  {}", prefix.trim_end(), indent(text, 2)),
            false => format!("{prefix}{text}"),
        }
    }

    /// Name of an action or claim with its parameters.
    fn head(&self, name: &str, parameters: &[VariableId]) -> String {
        let parameters: Vec<&str> = parameters
            .iter()
            .map(|id| self.translator.names.variables[id.index()].as_str())
            .collect();
        match parameters.is_empty() {
            true => name.into(),
            false => format!("{name}({})", parameters.join(", ")),
        }
    }

    /// Prints the action of a rule. It takes its values from an expression: a model checker evaluates each definition of
    /// an expression once, and only the operands that decide it.
    fn print_rule(&mut self, index: usize, rule: &Rule, text: &mut String) -> Result<(), String> {
        self.translator.begin();
        let before = self.translator.scope.clone();
        let guard = self.translator.term(&rule.guard)?;
        let mut definitions = Vec::new();
        self.translator.require(&guard, &mut definitions);
        self.translator.block(&rule.body, &mut definitions)?;
        let mut cells: Vec<Cell> = self
            .state_variables()
            .into_iter()
            .map(Cell::Variable)
            .collect();
        cells.push(Cell::Violation);
        let after = &self.translator.scope.cells;
        let (changed, kept): (Vec<Cell>, Vec<Cell>) = cells
            .into_iter()
            .partition(|cell| after.get(cell) != before.cells.get(cell));
        let may_not_happen = self.translator.current(Cell::Enabled) != "TRUE";
        let effects = match changed.is_empty() && !may_not_happen {
            true => "{TRUE}".into(),
            false => self.states_after(&before, &changed, &definitions),
        };
        let guard = match guard.defined {
            // A guard without a value is a violation.
            Some(defined) => format!("IF {defined} THEN {} ELSE TRUE", guard.text),
            None => guard.text,
        };
        let mut conjuncts = self.equations(&changed, "'");
        let kept: Vec<String> = kept
            .iter()
            .map(|cell| self.translator.base(*cell))
            .collect();
        match &kept[..] {
            [] => {}
            [name] => conjuncts.push(format!("UNCHANGED {name}")),
            _ => conjuncts.push(format!("UNCHANGED <<{}>>", kept.join(", "))),
        }
        let name = self.head(&self.translator.names.rules[index], &rule.parameters);
        let kind = if rule.spontaneous {
            " (spontaneous)"
        } else {
            ""
        };
        let _ = writeln!(text, "\\* {}{kind}", comment(&rule.name));
        let set = format!("IF {guard}\nTHEN {}\nELSE {{}}", indent(&effects, 5));
        let _ = writeln!(
            text,
            "{name} ==\n  \\E {AFTER} \\in\n    {} :\n    {}\n",
            indent(&set, 4),
            indent(&list(&conjuncts), 4)
        );
        Ok(())
    }

    /// Prints the next-state relation and the specification. A step to a state that an assumption excludes is not in
    /// `Next`, but counts as progress.
    fn print_next(&mut self, text: &mut String) {
        let _ = writeln!(text, "{} ==", self.step());
        for (index, rule) in self.translator.model.rules.iter().enumerate() {
            let action = self.head(&self.translator.names.rules[index], &rule.parameters);
            let action = self.for_parameters("\\E", &rule.parameters, &action);
            let _ = writeln!(text, "  \\/ {action}");
        }
        if self.translator.model.rules.is_empty() {
            text.push_str("  FALSE\n");
        }
        if !self.translator.names.assumptions.is_empty() {
            text.push_str("\nNext ==\n  /\\ Step\n");
            for assumption in &self.translator.names.assumptions {
                let _ = writeln!(text, "  /\\ {assumption}'");
            }
        }
        text.push_str("\nSpec == Init /\\ [][Next]_vars\n\n");
    }

    /// Name of the disjunction of all actions.
    fn step(&self) -> &'static str {
        match self.translator.names.assumptions.is_empty() {
            true => "Next",
            false => "Step",
        }
    }

    /// Prints the claims. Returns the names of the invariants.
    fn print_properties(&mut self, text: &mut String) -> Result<Vec<String>, String> {
        let model = self.translator.model;
        let mut names = vec!["NoViolation".to_string(), "TypeOK".to_string()];
        text.push_str("NoViolation == violation = \"\"\n\n");
        for (invariant, name) in model
            .invariants
            .iter()
            .zip(&self.translator.names.invariants)
        {
            let claim = self.claim(invariant)?;
            let reason = match invariant.reason.is_empty() {
                true => String::new(),
                false => format!(": {}", comment(&invariant.reason)),
            };
            let _ = writeln!(text, "\\* {}{reason}", comment(&invariant.name));
            let _ = writeln!(text, "{name} ==\n  {claim}\n");
            names.push(name.clone());
        }
        if let Some(quiescent) = &model.quiescent {
            self.translator.begin();
            let claim = self.translator.term(quiescent)?;
            let _ = writeln!(text, "Quiescent ==\n  {}\n", claim.text);
        }
        let unless_quiescent = match model.deadlock {
            Deadlock::Stuttering => Some(""),
            Deadlock::ExceptQuiescent if model.quiescent.is_some() => Some("Quiescent \\/ "),
            Deadlock::ExceptQuiescent => Some(""),
            Deadlock::Stuck | Deadlock::Off => None,
        };
        if let Some(unless_quiescent) = unless_quiescent {
            let _ = writeln!(text, "\\* Some step leads to a different state.");
            let step = self.step();
            let _ = writeln!(
                text,
                "NoDeadlock == {unless_quiescent}ENABLED <<{step}>>_vars\n"
            );
            names.push("NoDeadlock".into());
        }
        for (cover, name) in model.covers.iter().zip(&self.translator.names.covers) {
            self.print_cover(cover, name, text)?;
        }
        Ok(names)
    }

    /// Returns the text of a claim about all values of its parameters. Without a value it does not hold.
    fn claim(&mut self, claim: &Invariant) -> Result<String, String> {
        self.translator.begin();
        let term = self.translator.term(&claim.holds)?;
        let text = match &term.defined {
            Some(defined) => format!("{defined} /\\ {}", term.within(Binding::Compare)),
            None => term.text,
        };
        Ok(self.for_parameters("\\A", &claim.parameters, &text))
    }

    /// Prints a condition that some state satisfies. Its negation as an invariant shows such a state.
    fn print_cover(&mut self, cover: &Cover, name: &str, text: &mut String) -> Result<(), String> {
        let Some(condition) = &cover.holds else {
            return Ok(());
        };
        self.translator.begin();
        let condition = self.translator.term(condition)?;
        let _ = writeln!(
            text,
            "\\* Some reachable state satisfies this: {}",
            comment(&cover.name)
        );
        let _ = writeln!(text, "{name} ==\n  {}\n", condition.text);
        Ok(())
    }

    /// Prints the assumptions of a model.
    fn assumptions(&mut self) -> Result<String, String> {
        let mut text = String::new();
        for (assumption, name) in self
            .translator
            .model
            .assumptions
            .iter()
            .zip(&self.translator.names.assumptions)
        {
            let claim = self.claim(assumption)?;
            let _ = writeln!(
                text,
                "\\* Only states that satisfy this are reachable: {}",
                comment(&assumption.name)
            );
            let _ = writeln!(text, "{name} ==\n  {claim}\n");
        }
        Ok(text)
    }
}

/// A list of conjuncts, each on a line of its own.
fn list(conjuncts: &[String]) -> String {
    match conjuncts {
        [] => "TRUE".into(),
        [one] => one.clone(),
        _ => {
            let lines = conjuncts
                .iter()
                .map(|conjunct| format!("/\\ {}", indent(conjunct, 3)));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Text for a comment on one line.
fn comment(text: &str) -> String {
    let quoted = quote(text);
    quoted[1..quoted.len() - 1].to_string()
}

/// Configuration for TLC.
fn configuration(model: &Model, invariants: &[String]) -> String {
    let mut text = "SPECIFICATION Spec\n".to_string();
    if model.undefined {
        text.push_str("CONSTANT undefined = undefined\n");
    }
    let _ = writeln!(text, "INVARIANTS\n  {}", invariants.join("\n  "));
    let checks = match model.deadlock {
        Deadlock::Stuck => "TRUE",
        Deadlock::Stuttering | Deadlock::ExceptQuiescent | Deadlock::Off => "FALSE",
    };
    let _ = writeln!(text, "CHECK_DEADLOCK {checks}");
    text
}
