//! Translation of statements: each assignment defines a new value of its variable.
//!
//! A body becomes a list of definitions, which are evaluated when they are used. A choice or a loop defines the values
//! that it changes together, as a tuple; after a violation these are the values before it. So no operation without a
//! value is evaluated.

use crate::sets::quote;
use crate::translator::{both, indent, let_in, Binding, BoundPlace, Cell, Scope, Term, Translator};
use cohkit_engine::model::{
    Argument, Expr, FunctionId, Place, Role, Steps, Stmt, Type, TypeId, VariableId, Violation,
};

/// Property that an operation without a value violates.
const ILL_DEFINED: &str = "values in range";

/// Value of a function that has not returned.
const NO_RESULT: &str = "\"no result\"";

/// One text, or several as a tuple.
pub(crate) fn one_or_tuple(texts: &[String]) -> String {
    match texts {
        [text] => text.clone(),
        _ => format!("<<{}>>", texts.join(", ")),
    }
}

/// A loop: the text of its variable, of the end, and of the next iteration.
struct Loop {
    /// Parameter that counts the iterations.
    counter: String,
    first: String,
    next: String,
    /// Condition that ends the loop.
    ends: String,
    /// Definition of the bound variable by the counter, if they differ.
    variable: Option<String>,
}

impl Translator<'_> {
    /// Translates statements in order. Their definitions are added to `definitions`.
    ///
    /// # Errors
    /// A construct that has no counterpart, in words.
    pub(crate) fn block(
        &mut self,
        block: &[Stmt],
        definitions: &mut Vec<String>,
    ) -> Result<(), String> {
        let returned = self.current(Cell::Returned);
        for (place, stmt) in block.iter().enumerate() {
            self.statement(stmt, definitions)?;
            let now = self.current(Cell::Returned);
            let rest = &block[place + 1..];
            if now == "TRUE" || rest.is_empty() {
                return Ok(());
            }
            if now != returned {
                let stay = Term::new(now, Binding::Atom);
                return self.choose(stay, &[], rest, definitions);
            }
        }
        Ok(())
    }

    /// Translates one statement.
    fn statement(&mut self, stmt: &Stmt, definitions: &mut Vec<String>) -> Result<(), String> {
        match stmt {
            Stmt::Assign(place, value) => self.assign(place, value, definitions),
            Stmt::Let(id, Some(value)) => self.assign(&(*id).into(), value, definitions),
            Stmt::Let(id, None) => {
                let value = self.sets.initial_value(self.model.variable(*id).ty);
                self.define(Cell::Variable(*id), &value, definitions);
                Ok(())
            }
            Stmt::Clear(place) => {
                let value = self.sets.first_value(self.model.type_of_place(place));
                self.store_constant(place, &value, definitions)
            }
            Stmt::Undefine(place) => {
                let ty = self.model.type_of_place(place);
                let value = self.sets.undefined_value(ty);
                self.store_constant(place, &value, definitions)
            }
            Stmt::Alias(id, place, body) => {
                let place = self.bind_once(place, definitions)?;
                self.scope.aliases.insert(*id, place);
                self.inner_block(body, definitions)?;
                self.scope.aliases.remove(id);
                Ok(())
            }
            Stmt::If(condition, then, otherwise) => {
                let condition = self.term(condition)?;
                self.choose(condition, then, otherwise, definitions)
            }
            Stmt::Switch(subject, cases, otherwise) => {
                let subject = self.term(subject)?;
                self.require(&subject, definitions);
                let name = self.fresh("case");
                definitions.push(format!("{name} == {}", subject.text));
                self.switch(&name, cases, otherwise, definitions)
            }
            Stmt::For(id, body) => self.for_values(*id, body, definitions),
            Stmt::ForSteps(id, steps, body) => self.for_steps(*id, steps, body, definitions),
            Stmt::While(condition, body, limit) => {
                self.while_holds(condition, body, *limit, definitions)
            }
            Stmt::Return(value) => self.leave(value.as_ref(), definitions),
            Stmt::Call(id, arguments) => self.call(*id, arguments, definitions).map(drop),
            Stmt::Assume(condition) => self.assume(condition, definitions),
            Stmt::Error(violation) => {
                self.violate("TRUE", &violation.property, definitions);
                Ok(())
            }
            Stmt::Assert(violation, claim) => self.assert(violation, claim, definitions),
            Stmt::Insert(place, _) | Stmt::Remove(place, _) | Stmt::RemoveWhere(_, place, _) => {
                Err(self.multiset_refusal(place))
            }
            Stmt::Cover(_) | Stmt::Line(_) | Stmt::Note(_) => Ok(()),
        }
    }

    /// Leaves the function, rule or start.
    fn leave(&mut self, value: Option<&Expr>, definitions: &mut Vec<String>) -> Result<(), String> {
        if let Some(value) = value {
            let mut term = self.term(value)?;
            let function = self.inlined.last();
            let result = function.and_then(|id| self.model.functions[id.index()].result);
            if let Some(ty) = result {
                term = self.within_type(term, value, ty);
            }
            self.require(&term, definitions);
            self.scope
                .cells
                .insert(Cell::Result, term.within(Binding::Atom));
        }
        self.scope.cells.insert(Cell::Returned, "TRUE".into());
        Ok(())
    }

    /// Lets the step happen only if a condition holds.
    fn assume(&mut self, condition: &Expr, definitions: &mut Vec<String>) -> Result<(), String> {
        let condition = self.term(condition)?;
        self.require(&condition, definitions);
        let violation = self.current(Cell::Violation);
        let holds = condition.within(Binding::Compare);
        let enabled = match violation == "\"\"" {
            true => holds,
            false => format!("IF {violation} # \"\" THEN TRUE ELSE {holds}"),
        };
        let before = self.current(Cell::Enabled);
        let enabled = match before == "TRUE" {
            true => enabled,
            false => format!("IF {before} THEN {enabled} ELSE FALSE"),
        };
        self.define(Cell::Enabled, &enabled, definitions);
        Ok(())
    }

    /// Notes the violation of a property if a condition holds, unless one has been noted already.
    fn violate(&mut self, condition: &str, property: &str, definitions: &mut Vec<String>) {
        let before = self.current(Cell::Violation);
        let property = quote(property);
        let value = match (before == "\"\"", condition == "TRUE") {
            (true, true) => property,
            (true, false) => format!("IF {condition} THEN {property} ELSE \"\""),
            (false, true) => format!("IF {before} = \"\" THEN {property} ELSE {before}"),
            (false, false) => {
                format!("IF {before} = \"\" /\\ {condition} THEN {property} ELSE {before}")
            }
        };
        self.define(Cell::Violation, &value, definitions);
    }

    /// Notes a violation if an expression has no value.
    pub(crate) fn require(&mut self, term: &Term, definitions: &mut Vec<String>) {
        if let Some(defined) = &term.defined {
            self.violate(&format!("~({defined})"), ILL_DEFINED, definitions);
        }
    }

    /// Notes a violation if a claim does not hold.
    fn assert(
        &mut self,
        violation: &Violation,
        claim: &Expr,
        definitions: &mut Vec<String>,
    ) -> Result<(), String> {
        let claim = self.term(claim)?;
        self.require(&claim, definitions);
        let fails = format!("~{}", claim.within(Binding::Atom));
        self.violate(&fails, &violation.property, definitions);
        Ok(())
    }

    /// Evaluates the indices of a place. Their texts refer to the values at this point.
    fn bind_once(
        &mut self,
        place: &Place,
        definitions: &mut Vec<String>,
    ) -> Result<BoundPlace, String> {
        let (bound, defined) = self.bind(place)?;
        if let Some(defined) = defined {
            self.violate(&format!("~({defined})"), ILL_DEFINED, definitions);
        }
        Ok(bound)
    }

    /// Stores a value into a place.
    fn assign(
        &mut self,
        place: &Place,
        value: &Expr,
        definitions: &mut Vec<String>,
    ) -> Result<(), String> {
        // A call comes before the indices of the place, which it may change.
        let result = match value.without_line() {
            Expr::Call(id, arguments) => Some(self.call(*id, arguments, definitions)?),
            _ => None,
        };
        let (target, place_defined) = self.bind(place)?;
        if let Some(defined) = place_defined {
            self.violate(&format!("~({defined})"), ILL_DEFINED, definitions);
        }
        let term = match result {
            Some(text) => Term::new(text, Binding::Open),
            None => self.term(value)?,
        };
        let term = match self.model.bounds(target.ty) {
            Some(_) => self.within_type(term, value, target.ty),
            None => {
                let from = self.model.type_of(value);
                if from.is_some_and(|from| !self.is_stored_without_check(from, target.ty)) {
                    return Err(format!(
                        "`{}` is assigned from a type with other ranges, which is not exported to TLA+",
                        self.model.spell(place)
                    ));
                }
                term
            }
        };
        self.require(&term, definitions);
        self.store(&target, &term.text, definitions);
        Ok(())
    }

    /// True if every value of an aggregate type belongs to another one.
    fn is_stored_without_check(&self, from: TypeId, to: TypeId) -> bool {
        match (self.model.ty(from), self.model.ty(to)) {
            (
                Type::Array {
                    index: a,
                    element: from,
                },
                Type::Array {
                    index: b,
                    element: to,
                },
            ) => {
                self.model.bounds(*a) == self.model.bounds(*b)
                    && self.is_stored_without_check(*from, *to)
            }
            (Type::Record(a), Type::Record(b)) => {
                a.len() == b.len()
                    && a.iter()
                        .zip(b)
                        .all(|(a, b)| a.0 == b.0 && self.is_stored_without_check(a.1, b.1))
            }
            (
                Type::Range { lo, hi },
                Type::Range {
                    lo: least,
                    hi: greatest,
                },
            ) => least <= lo && hi <= greatest,
            _ => from == to,
        }
    }

    /// Stores a value without reads into a place.
    fn store_constant(
        &mut self,
        place: &Place,
        value: &str,
        definitions: &mut Vec<String>,
    ) -> Result<(), String> {
        let (target, defined) = self.bind(place)?;
        if let Some(defined) = defined {
            self.violate(&format!("~({defined})"), ILL_DEFINED, definitions);
        }
        self.store(&target, value, definitions);
        Ok(())
    }

    /// Defines the value of a variable after a store.
    fn store(&mut self, target: &BoundPlace, value: &str, definitions: &mut Vec<String>) {
        let cell = Cell::Variable(target.variable);
        let value = match target.path.is_empty() {
            true => value.to_string(),
            false => format!(
                "[{} EXCEPT !{} = {value}]",
                self.current_of(target.variable),
                target.path
            ),
        };
        self.define(cell, &value, definitions);
    }

    /// Translates statements whose local variables end with them.
    fn inner_block(&mut self, block: &[Stmt], definitions: &mut Vec<String>) -> Result<(), String> {
        let before = self.scope.clone();
        self.block(block, definitions)?;
        self.scope
            .cells
            .retain(|cell, _| before.cells.contains_key(cell) || *cell == Cell::Result);
        Ok(())
    }

    /// Cells of a scope whose value differs in another.
    fn changed(before: &Scope, after: &Scope) -> Vec<Cell> {
        let differs = |cell: &Cell| after.cells.get(cell) != before.cells.get(cell);
        let mut cells: Vec<Cell> = before.cells.keys().copied().filter(differs).collect();
        if after.cells.contains_key(&Cell::Result) && !before.cells.contains_key(&Cell::Result) {
            cells.push(Cell::Result);
        }
        cells
    }

    /// Text of the current values of cells: one value, or a tuple.
    fn tuple(&self, cells: &[Cell]) -> String {
        let texts: Vec<String> = cells
            .iter()
            .map(|cell| match self.scope.cells.get(cell) {
                Some(text) => text.clone(),
                // A function that has not returned.
                None => NO_RESULT.into(),
            })
            .collect();
        one_or_tuple(&texts)
    }

    /// Defines cells by an expression that gives their values.
    fn define_all(
        &mut self,
        cells: &[Cell],
        base: &str,
        value: &str,
        definitions: &mut Vec<String>,
    ) {
        if let [cell] = cells {
            return self.define(*cell, value, definitions);
        }
        let name = self.fresh(base);
        definitions.push(format!("{name} ==\n  {}", indent(value, 2)));
        for (place, cell) in cells.iter().enumerate() {
            self.define(*cell, &format!("{name}[{}]", place + 1), definitions);
        }
    }

    /// Translates a choice between two blocks.
    fn choose(
        &mut self,
        condition: Term,
        then: &[Stmt],
        otherwise: &[Stmt],
        definitions: &mut Vec<String>,
    ) -> Result<(), String> {
        self.require(&condition, definitions);
        let before = self.scope.clone();
        let mut branches = Vec::new();
        for block in [then, otherwise] {
            self.scope = before.clone();
            let mut inner = Vec::new();
            self.inner_block(block, &mut inner)?;
            branches.push((inner, self.scope.clone()));
        }
        self.scope = before;
        self.join(&condition.text, branches, definitions);
        Ok(())
    }

    /// Defines the cells that at least one of two branches changes.
    fn join(
        &mut self,
        condition: &str,
        branches: Vec<(Vec<String>, Scope)>,
        definitions: &mut Vec<String>,
    ) {
        let changes = branches
            .iter()
            .flat_map(|(_, after)| Self::changed(&self.scope, after));
        let mut cells: Vec<Cell> = changes.collect();
        cells.sort_unstable();
        cells.dedup();
        if cells.is_empty() {
            return;
        }
        let mut texts = Vec::new();
        for (inner, after) in branches {
            let result = self.tuple_after(&cells, &after);
            texts.push(let_in(&inner, &result));
        }
        let unless = self.unless_violated(&cells);
        let value = format!(
            "{unless}IF {condition}\nTHEN {}\nELSE {}",
            indent(&texts[0], 5),
            indent(&texts[1], 5)
        );
        self.define_all(&cells, "branch", &value, definitions);
    }

    /// Text of the values of cells after a part; those before it if a violation has been noted in it.
    pub(crate) fn tuple_after(&mut self, cells: &[Cell], after: &Scope) -> String {
        let stay = self.after_violation(cells, after);
        let before = std::mem::replace(&mut self.scope, after.clone());
        let changed = self.tuple(cells);
        self.scope = before;
        match stay {
            Some((violation, stay)) if stay != changed => {
                format!("IF {violation} # \"\" THEN {stay} ELSE {changed}")
            }
            _ => changed,
        }
    }

    /// Text of a violation that a part may have noted, and of the values before the part with this violation.
    fn after_violation(&self, cells: &[Cell], after: &Scope) -> Option<(String, String)> {
        let violation = after.cells.get(&Cell::Violation)?;
        if self.scope.cells.get(&Cell::Violation) == Some(violation) {
            return None;
        }
        let texts: Vec<String> = (cells.iter())
            .map(|cell| match cell {
                Cell::Violation => violation.clone(),
                cell => self.current_or_none(*cell),
            })
            .collect();
        Some((violation.clone(), one_or_tuple(&texts)))
    }

    /// Begins an expression that leaves all cells as they are if a violation has been noted.
    fn unless_violated(&self, cells: &[Cell]) -> String {
        let violation = self.current(Cell::Violation);
        match violation == "\"\"" {
            true => String::new(),
            false => format!("IF {violation} # \"\"\nTHEN {}\nELSE ", self.tuple(cells)),
        }
    }

    /// Translates the cases of a choice by value, from the first on.
    fn switch(
        &mut self,
        subject: &str,
        cases: &[(Vec<Expr>, Vec<Stmt>)],
        otherwise: &[Stmt],
        definitions: &mut Vec<String>,
    ) -> Result<(), String> {
        let Some(((values, body), rest)) = cases.split_first() else {
            return self.inner_block(otherwise, definitions);
        };
        let mut condition: Option<Term> = None;
        for value in values {
            let value = self.term(value)?;
            let equal = format!("{subject} = {}", value.within(Binding::Arithmetic));
            condition = Some(match condition {
                None => Term {
                    text: equal,
                    binding: Binding::Compare,
                    defined: value.defined,
                },
                Some(before) => Term {
                    defined: both(
                        before.defined.clone(),
                        value.defined.map(|defined| {
                            format!("({} \\/ ({defined}))", before.within(Binding::Compare))
                        }),
                    ),
                    text: format!("{} \\/ {equal}", before.text),
                    binding: Binding::Logic,
                },
            });
        }
        let condition = condition.unwrap_or_else(|| Term::new("FALSE", Binding::Atom));
        self.require(&condition, definitions);
        let before = self.scope.clone();
        let mut then = Vec::new();
        self.inner_block(body, &mut then)?;
        let after_then = std::mem::replace(&mut self.scope, before.clone());
        let mut other = Vec::new();
        self.switch(subject, rest, otherwise, &mut other)?;
        let after_other = std::mem::replace(&mut self.scope, before);
        self.join(
            &condition.text,
            vec![(then, after_then), (other, after_other)],
            definitions,
        );
        Ok(())
    }

    /// Translates a loop over the values of a bound variable.
    fn for_values(
        &mut self,
        id: VariableId,
        body: &[Stmt],
        definitions: &mut Vec<String>,
    ) -> Result<(), String> {
        let ty = self.model.variable(id).ty;
        let values = self.sets.values(ty);
        if let [value] = &values[..] {
            self.scope.cells.insert(Cell::Variable(id), value.clone());
            self.inner_block(body, definitions)?;
            self.scope.cells.remove(&Cell::Variable(id));
            return Ok(());
        }
        // A name of its own for each use: an index of the body may have a loop over the same variable.
        let name = self.fresh(&self.base(Cell::Variable(id)));
        self.scope.cells.insert(Cell::Variable(id), name.clone());
        let iteration = match self.model.ty(ty) {
            Type::Range { lo, hi } => Loop {
                first: crate::sets::number(*lo),
                next: format!("{name} + 1"),
                ends: format!("{name} > {hi}"),
                counter: name,
                variable: None,
            },
            _ => {
                self.sets.simple(ty);
                let (counter, order) = (self.fresh("place"), self.sets.order(ty));
                Loop {
                    first: "1".into(),
                    next: format!("{counter} + 1"),
                    ends: format!("{counter} > {}", values.len()),
                    variable: Some(format!("{name} == {order}[{counter}]")),
                    counter,
                }
            }
        };
        self.iterate(iteration, None, body, definitions)?;
        self.scope.cells.remove(&Cell::Variable(id));
        Ok(())
    }

    /// Translates a loop over the numbers of an arithmetic sequence.
    fn for_steps(
        &mut self,
        id: VariableId,
        steps: &Steps,
        body: &[Stmt],
        definitions: &mut Vec<String>,
    ) -> Result<(), String> {
        let mut names = Vec::new();
        for (base, e) in [("from", &steps.from), ("to", &steps.to), ("by", &steps.by)] {
            let term = self.term(e)?;
            self.require(&term, definitions);
            names.push(match e.without_line() {
                Expr::Int(_) => term.text,
                _ => {
                    let name = self.fresh(base);
                    definitions.push(format!("{name} == {}", term.text));
                    name
                }
            });
        }
        let counter = self.fresh(&self.base(Cell::Variable(id)));
        self.scope.cells.insert(Cell::Variable(id), counter.clone());
        let (to, by) = (&names[1], &names[2]);
        let ends = match steps.by.without_line() {
            Expr::Int(by) if *by > 0 => format!("{counter} > {to}"),
            Expr::Int(by) if *by < 0 => format!("{counter} < {to}"),
            _ => {
                self.violate(&format!("{by} = 0"), ILL_DEFINED, definitions);
                format!("(IF {by} > 0 THEN {counter} > {to} ELSE {counter} < {to})")
            }
        };
        let iteration = Loop {
            first: names[0].clone(),
            next: format!("{counter} + {by}"),
            ends,
            counter,
            variable: None,
        };
        self.iterate(iteration, None, body, definitions)?;
        self.scope.cells.remove(&Cell::Variable(id));
        Ok(())
    }

    /// Translates a loop that runs while a condition holds, at most `limit` times.
    fn while_holds(
        &mut self,
        condition: &Expr,
        body: &[Stmt],
        limit: u32,
        definitions: &mut Vec<String>,
    ) -> Result<(), String> {
        let counter = self.fresh("round");
        let iteration = Loop {
            first: "0".into(),
            next: format!("{counter} + 1"),
            ends: "FALSE".into(),
            counter,
            variable: None,
        };
        self.iterate(iteration, Some((condition, limit)), body, definitions)
    }

    /// Translates a loop as a recursive operator whose parameters are the cells that an iteration changes.
    fn iterate(
        &mut self,
        iteration: Loop,
        condition: Option<(&Expr, u32)>,
        body: &[Stmt],
        definitions: &mut Vec<String>,
    ) -> Result<(), String> {
        let before = self.scope.clone();
        // A first translation tells which cells the loop changes.
        let number = self.last_number;
        self.iteration(condition, &iteration, body, &mut Vec::new())?;
        let mut cells = Self::changed(&before, &self.scope);
        cells.sort_unstable();
        self.last_number = number;
        self.scope = before.clone();
        if cells.is_empty() {
            return Ok(());
        }
        let operator = self.fresh("loop");
        let mut parameters = Vec::new();
        for cell in &cells {
            let name = self.fresh(&self.base(*cell));
            parameters.push(name.clone());
            self.scope.cells.insert(*cell, name);
        }
        let entry = self.scope.clone();
        let mut ends = vec![iteration.ends.clone()];
        if cells.contains(&Cell::Violation) {
            ends.push(format!("{} # \"\"", self.current(Cell::Violation)));
        }
        if cells.contains(&Cell::Returned) {
            ends.push(self.current(Cell::Returned));
        }
        ends.retain(|text| text != "FALSE");
        let mut inner: Vec<String> = iteration.variable.iter().cloned().collect();
        let holds = self.iteration(condition, &iteration, body, &mut inner)?;
        let arguments: Vec<String> = cells
            .iter()
            .map(|cell| self.current_or_none(*cell))
            .collect();
        let again = format!("{operator}({}, {})", iteration.next, arguments.join(", "));
        let after = std::mem::replace(&mut self.scope, entry);
        let again = match self.after_violation(&cells, &after) {
            Some((violation, stay)) => format!("IF {violation} # \"\" THEN {stay} ELSE {again}"),
            None => again,
        };
        let stay = self.tuple(&cells);
        let again = match holds {
            None => let_in(&inner, &again),
            // The values of the condition and of the body are among the inner definitions.
            Some(holds) => let_in(&inner, &format!("IF {holds}\nTHEN {again}\nELSE {stay}")),
        };
        self.scope = before;
        let blanks = vec!["_"; cells.len() + 1].join(", ");
        definitions.push(format!("RECURSIVE {operator}({blanks})"));
        let head = format!(
            "{operator}({}, {})",
            iteration.counter,
            parameters.join(", ")
        );
        definitions.push(format!(
            "{head} ==\n  IF {}\n  THEN {}\n  ELSE {}",
            ends.join(" \\/ "),
            stay,
            indent(&again, 7)
        ));
        let unless = self.unless_violated(&cells);
        let arguments: Vec<String> = cells
            .iter()
            .map(|cell| self.current_or_none(*cell))
            .collect();
        let value = format!(
            "{unless}{operator}({}, {})",
            iteration.first,
            arguments.join(", ")
        );
        self.define_all(&cells, "result", &value, definitions);
        Ok(())
    }

    /// Text of the current value of a cell, or a placeholder for a result that is not set.
    fn current_or_none(&self, cell: Cell) -> String {
        self.tuple(&[cell])
    }

    /// Translates one iteration of a loop. Returns the condition under which it happened, if there is one.
    fn iteration(
        &mut self,
        condition: Option<(&Expr, u32)>,
        iteration: &Loop,
        body: &[Stmt],
        definitions: &mut Vec<String>,
    ) -> Result<Option<String>, String> {
        let Some((condition, limit)) = condition else {
            self.inner_block(body, definitions)?;
            return Ok(None);
        };
        let condition = self.term(condition)?;
        self.require(&condition, definitions);
        let violation = self.current(Cell::Violation);
        let holds = self.fresh("holds");
        definitions.push(match violation == "\"\"" {
            true => format!("{holds} == {}", condition.text),
            // A condition without a value is a violation, which the next round reports.
            false => format!(
                "{holds} == {violation} # \"\" \\/ {}",
                condition.within(Binding::Compare)
            ),
        });
        let is_over = format!("{holds} /\\ {} = {limit}", iteration.counter);
        self.violate(&is_over, ILL_DEFINED, definitions);
        self.inner_block(body, definitions)?;
        Ok(Some(holds))
    }

    /// Translates a call. Returns the text of its result.
    pub(crate) fn call(
        &mut self,
        id: FunctionId,
        arguments: &[Argument],
        definitions: &mut Vec<String>,
    ) -> Result<String, String> {
        let function = &self.model.functions[id.index()];
        if self.inlined.contains(&id) {
            return Err(format!(
                "`{}` calls itself, which is not exported to TLA+",
                function.name
            ));
        }
        let mut values = Vec::new();
        let mut places = Vec::new();
        for (&parameter, argument) in function.parameters.iter().zip(arguments) {
            match argument {
                Argument::Value(e) => {
                    let ty = self.model.variable(parameter).ty;
                    let term = self.term(e)?;
                    let term = match self.model.bounds(ty) {
                        Some(_) => self.within_type(term, e, ty),
                        None => term,
                    };
                    self.require(&term, definitions);
                    values.push((parameter, term.text));
                }
                Argument::Place(place) => {
                    places.push((parameter, self.bind_once(place, definitions)?));
                }
            }
        }
        let outer =
            [Cell::Returned, Cell::Result].map(|cell| (cell, self.scope.cells.remove(&cell)));
        self.scope.cells.insert(Cell::Returned, "FALSE".into());
        for (parameter, value) in values {
            self.define(Cell::Variable(parameter), &value, definitions);
        }
        for (parameter, place) in &places {
            self.scope.aliases.insert(*parameter, place.clone());
        }
        self.inlined.push(id);
        self.inner_block(&function.body, definitions)?;
        self.inlined.pop();
        let returned = self.current(Cell::Returned);
        if function.result.is_some() && returned != "TRUE" {
            self.violate(&format!("~{returned}"), ILL_DEFINED, definitions);
        }
        let result = self.scope.cells.remove(&Cell::Result);
        let result = result.unwrap_or_else(|| NO_RESULT.into());
        for (cell, text) in outer {
            self.scope.cells.remove(&cell);
            if let Some(text) = text {
                self.scope.cells.insert(cell, text);
            }
        }
        for &parameter in &function.parameters {
            match self.model.variable(parameter).role {
                Role::State | Role::Bound => {}
                Role::Local | Role::Alias => {
                    self.scope.aliases.remove(&parameter);
                    self.scope.cells.remove(&Cell::Variable(parameter));
                }
            }
        }
        Ok(result)
    }
}
