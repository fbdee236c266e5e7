//! Small random Murphi models with multisets and scalarsets, as texts. They contain the constructs by which the numbers
//! of slots, or the order of a loop over a scalarset, can become observable: removals before insertions, insertions by
//! loops, elements that contain multisets or arrays over a scalarset, recursive procedures, and early returns. Some models
//! also have records, arrays as values, aliases and `var` parameters of parts ([`places`]), and unions of scalarsets
//! ([`unions`]).
//!
//! Each line is one declaration, statement or bracket of a block, so that a failing text can be shrunk by lines.

mod places;
mod unions;

use super::generate::Random;
use places::Aliases;
use std::fmt::Write;
use unions::Union;

/// Type of the elements of the multiset `net`.
#[derive(Clone, Copy, PartialEq)]
enum Element {
    /// A value of the scalarset.
    Value,
    /// A record of a value and a number.
    Message,
    /// Truth values indexed by the scalarset.
    Bits,
    /// A number.
    Number,
    /// A record with a multiset of values.
    Bag,
    /// A value of the union.
    Member,
}

/// State of the generation of one model.
struct Generator {
    /// Source of all choices.
    random: Random,
    /// Type of the elements of `net`.
    element: Element,
    /// True if `net` is an array of multisets, indexed by the scalarset.
    is_array: bool,
    /// Name of the multiset of the current rule.
    net: String,
    /// Slot numbers in scope.
    slots: Vec<&'static str>,
    /// Values of the scalarset in scope: loop variables and parameters.
    values: Vec<String>,
    /// Values of the union in scope that are no values of the scalarset.
    members: Vec<String>,
    /// Aliases in scope if the model has records; `None` without records.
    aliases: Option<Aliases>,
    /// The union of the model, if any.
    union: Option<Union>,
    /// Text generated so far.
    text: String,
    /// Number of names created so far.
    name_count: usize,
}

/// Returns the model of a seed.
pub fn model(seed: u64) -> String {
    let mut random = Random::new(seed);
    let union = (random.once_in(3)).then(|| Union::choose(&mut random));
    let aliases = (random.once_in(2)).then(Aliases::default);
    let element = match union.is_some() && random.once_in(3) {
        true => Element::Member,
        false => random.pick(&[
            Element::Value,
            Element::Value,
            Element::Message,
            Element::Message,
            Element::Bits,
            Element::Number,
            Element::Bag,
        ]),
    };
    let mut generator = Generator {
        is_array: random.once_in(4),
        random,
        element,
        net: "net".into(),
        slots: Vec::new(),
        values: Vec::new(),
        members: Vec::new(),
        aliases,
        union,
        text: "-- dialect: any\n-- deadlock: off\n".into(),
        name_count: 0,
    };
    generator.declarations();
    generator.procedures();
    generator.start();
    for number in 0..1 + generator.random.below(3) {
        generator.rule(number);
    }
    if generator.random.once_in(2) {
        let claim = generator.condition(2);
        generator.line(&format!("invariant \"claim\" {claim};"));
    }
    generator.text
}

impl Generator {
    /// Returns a number below `n`; 0 counts as 1.
    fn below(&mut self, n: usize) -> usize {
        self.random.below(n)
    }

    /// Adds a line.
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{line}");
    }

    /// Returns a name that no other construct has.
    fn new_name(&mut self) -> String {
        self.name_count += 1;
        format!("n{}", self.name_count)
    }

    /// Declares types and variables.
    fn declarations(&mut self) {
        let size = self.random.pick(&[2, 2, 3]);
        let capacity = self.random.pick(&[2, 3, 3]);
        let element = match self.element {
            Element::Value => "S",
            Element::Message => "record s: S; k: 0..1; end",
            Element::Bits => "array [S] of boolean",
            Element::Number => "0..2",
            Element::Bag => "record b: multiset [2] of S; end",
            Element::Member => "U",
        };
        self.line(&format!("type S: scalarset({size});"));
        self.declare_union();
        self.line("F: array [S] of boolean;");
        self.declare_record();
        self.line(&format!("E: {element};"));
        self.line(&format!("M: multiset [{capacity}] of E;"));
        match self.is_array {
            true => self.line("var nets: array [S] of M;"),
            false => self.line("var net: M;"),
        }
        self.line("owner, last: S;");
        self.line("flag: F;");
        self.line("pos: 0..3;");
        self.line("done: boolean;");
        self.declare_record_variables();
        self.declare_union_variables();
    }

    /// Declares functions and procedures with loops, and a recursive procedure.
    fn procedures(&mut self) {
        self.line("function first(): S;");
        self.line("begin");
        self.early_return("v");
        self.line("return last;");
        self.line("end;");
        self.line("function any(): boolean;");
        self.line("begin");
        self.early_return("true");
        self.line("return false;");
        self.line("end;");
        self.line("procedure send(v: S; var t: M);");
        self.line("var e: E;");
        self.line("begin");
        self.fill_element("v");
        self.line("multisetadd(e, t);");
        self.line("end;");
        self.line("procedure drop(d: 0..2; v: S; var t: M);");
        self.line("begin");
        for _ in 0..1 + self.random.below(3) {
            let line = self.random.pick(&[
                "multisetremovepred(x: t, true);",
                "send(v, t);",
                "if d > 0 then drop(d - 1, v, t); end;",
                "if isundefined(last) then last := v; end;",
            ]);
            self.line(line);
        }
        self.line("end;");
        self.declare_place_procedures();
    }

    /// Adds a loop that returns a value for the first `v` that satisfies a condition.
    fn early_return(&mut self, value: &str) {
        self.values.push("v".into());
        self.line("for v: S do");
        let condition = self
            .random
            .pick(&["flag[v]", "v = owner", "!flag[v]", "v != last"]);
        self.line(&format!("if {condition} then"));
        self.line(&format!("return {value};"));
        self.line("end;");
        if self.random.once_in(4) {
            self.line("assert flag[owner];");
        }
        self.line("end;");
        self.values.pop();
    }

    /// Assigns to the element `e` from a value.
    fn fill_element(&mut self, value: &str) {
        match self.element {
            Element::Value => self.line(&format!("e := {value};")),
            Element::Message => {
                self.line(&format!("e.s := {value};"));
                self.line("e.k := 0;");
            }
            Element::Bits => self.line(&format!("for b: S do e[b] := b = {value}; end;")),
            Element::Number => self.line(&format!(
                "if {value} = owner then e := 1; else e := 2; end;"
            )),
            Element::Bag => {
                self.line(&format!("multisetadd({value}, e.b);"));
                if self.random.once_in(2) {
                    self.line("multisetadd(owner, e.b);");
                }
            }
            Element::Member => self.line(&format!("e := {value};")),
        }
    }

    /// Adds the start states, one for each value of the scalarset.
    fn start(&mut self) {
        self.line("ruleset o: S do");
        self.line("startstate");
        self.line("begin");
        self.line("owner := o;");
        self.line("pos := 3;");
        self.line("done := false;");
        self.start_records();
        self.start_union();
        self.line("for v: S do");
        let flag = self.random.pick(&["true", "false", "v = o"]);
        self.line(&format!("flag[v] := {flag};"));
        let net = if self.is_array { "nets[v]" } else { "net" };
        match self.random.below(4) {
            0 => {}
            1 => self.line(&format!("if v = o then send(v, {net}); end;")),
            2 => self.line(&format!("if v != o then send(v, {net}); end;")),
            _ => self.line(&format!("send(v, {net});")),
        }
        self.line("end;");
        if self.random.once_in(3) {
            self.line("last := o;");
        }
        self.line("end;");
        self.line("end;");
    }

    /// Adds a rule, with parameters and slots.
    fn rule(&mut self, number: usize) {
        let mut blocks = 0;
        if self.is_array || self.random.once_in(3) {
            self.line("ruleset p: S do");
            self.values.push("p".into());
            blocks += 1;
        }
        blocks += self.open_member_ruleset();
        self.net = match self.is_array {
            true => "nets[p]".into(),
            false => "net".into(),
        };
        if self.is_array && self.random.once_in(3) {
            let index = self.random.pick(&["p", "owner"]);
            self.line(&format!("alias q: nets[{index}] do"));
            self.net = "q".into();
            blocks += 1;
        }
        for slot in ["i", "j"] {
            if self.random.below(3) > 0 {
                let net = self.net.clone();
                self.line(&format!("choose {slot}: {net} do"));
                self.slots.push(slot);
                blocks += 1;
            }
        }
        let guard = self.condition(2);
        self.line(&format!("rule \"{number}\""));
        self.line(&format!("{guard} ==>"));
        self.line("begin");
        self.statements(4, 2);
        self.line("end;");
        (0..blocks).for_each(|_| self.line("end;"));
        self.net = match self.is_array {
            true => "nets[owner]".into(),
            false => "net".into(),
        };
        self.slots.clear();
        self.values.clear();
        self.members.clear();
    }

    /// Returns an expression of the scalarset.
    fn value(&mut self) -> String {
        if !self.slots.is_empty() && self.random.once_in(2) {
            let slot = self.random.pick(&self.slots);
            match self.element {
                Element::Value => return format!("{}[{slot}]", self.net),
                Element::Message => return format!("{}[{slot}].s", self.net),
                _ => {}
            }
        }
        match self.values.is_empty() || self.random.once_in(3) {
            true => self
                .random
                .pick(&["owner", "owner", "owner", "last"])
                .into(),
            false => self.random.pick(&self.values),
        }
    }

    /// Returns a condition, nested at most this deeply.
    fn condition(&mut self, depth: usize) -> String {
        if self.random.once_in(4) {
            let special = match self.random.once_in(2) {
                true => self.union_condition(),
                false => self.place_condition(),
            };
            if let Some(condition) = special {
                return condition;
            }
        }
        let (a, b) = (self.value(), self.value());
        let net = self.net.clone();
        match self.random.below(if depth > 0 { 11 } else { 6 }) {
            0 => format!("{a} = {b}"),
            1 => format!("flag[{a}]"),
            2 => "!done".into(),
            3 => "isundefined(last)".into(),
            4 => match self.slots.last() {
                Some(slot) => self.element_condition(&net, slot, &a),
                None => "pos = 3".into(),
            },
            5 => match self.slots.len() {
                2 => "i != j".into(),
                _ => "pos < 2".into(),
            },
            6 => {
                let name = self.new_name();
                let claim = self.element_condition(&net, &name, &a);
                let bound = self.random.below(3);
                format!("multisetcount({name}: {net}, {claim}) <= {bound}")
            }
            7 => format!(
                "multisetcount(x: {net}, true) < {}",
                1 + self.random.below(3)
            ),
            8 => {
                let name = self.new_name();
                self.values.push(name.clone());
                let inner = self.condition(depth - 1);
                self.values.pop();
                let quantifier = self.random.pick(&["exists", "forall"]);
                format!("{quantifier} {name}: S do {inner} end")
            }
            9 => self
                .random
                .pick(&["any()", "!any()", "first() = owner"])
                .into(),
            _ => {
                let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
                let operator = self.random.pick(&["&", "|"]);
                format!("({a} {operator} {b})")
            }
        }
    }

    /// Returns a condition on an element of a multiset.
    fn element_condition(&mut self, net: &str, slot: &str, value: &str) -> String {
        match self.element {
            Element::Value => format!("{net}[{slot}] = {value}"),
            Element::Message => match self.random.below(3) {
                0 => format!("{net}[{slot}].k = 0"),
                _ => format!("{net}[{slot}].s = {value}"),
            },
            Element::Bits => format!("{net}[{slot}][{value}]"),
            Element::Number => match self.random.below(6) {
                0 => format!("{slot} = {}", self.random.below(2)),
                _ => format!("{net}[{slot}] = {}", self.random.below(3)),
            },
            Element::Bag => {
                let inner = self.new_name();
                format!("multisetcount({inner}: {net}[{slot}].b, {net}[{slot}].b[{inner}] = {value}) = 1")
            }
            Element::Member => match self.random.once_in(3) {
                true => format!("ismember({net}[{slot}], S)"),
                false => {
                    let member = self.member();
                    format!("{net}[{slot}] = {member}")
                }
            },
        }
    }

    /// Adds up to `count` statements, nested at most this deeply.
    fn statements(&mut self, count: usize, depth: usize) {
        for _ in 0..1 + self.random.below(count) {
            if self.random.once_in(3) {
                let added = match self.union.is_some() && self.random.once_in(2) {
                    true => self.union_statement(depth),
                    false => self.place_statement(depth),
                };
                if added {
                    continue;
                }
            }
            match self.random.below(if depth > 0 { 9 } else { 5 }) {
                0..=1 => self.multiset_statement(),
                2..=4 => self.assignment(),
                5 => {
                    let name = self.new_name();
                    self.line(&format!("for {name}: S do"));
                    self.values.push(name);
                    self.statements(2, depth - 1);
                    self.values.pop();
                    self.line("end;");
                }
                6 => {
                    let name = self.new_name();
                    let (last, chosen) = (1 + self.random.below(2), self.random.below(2));
                    self.line(&format!("for {name} := 0 to {last} do"));
                    self.line(&format!("if {name} = {chosen} then"));
                    self.statements(2, depth - 1);
                    self.line("else");
                    self.statements(2, depth - 1);
                    self.line("end;");
                    self.line("end;");
                }
                _ => {
                    let condition = self.condition(1);
                    self.line(&format!("if {condition} then"));
                    self.statements(2, depth - 1);
                    if self.random.once_in(3) {
                        self.line("else");
                        self.statements(2, depth - 1);
                    }
                    self.line("end;");
                }
            }
        }
    }

    /// Adds a statement that changes a multiset.
    fn multiset_statement(&mut self) {
        let (net, value) = (self.net.clone(), self.value());
        let name = self.new_name();
        match self.random.below(8) {
            0..=2 if !self.slots.is_empty() => {
                let slot = self.random.pick(&self.slots);
                self.line(&format!("multisetremove({slot}, {net});"));
            }
            3 => {
                let claim = match self.random.once_in(3) {
                    true => "true".into(),
                    false => self.element_condition(&net, &name, &value),
                };
                self.line(&format!("multisetremovepred({name}: {net}, {claim});"));
            }
            4 => {
                let calls = self.random.below(2);
                self.line(&format!("drop({calls}, {value}, {net});"));
            }
            5 if self.is_array => {
                let other = self.value();
                self.line(&format!("send({value}, nets[{other}]);"));
            }
            6 if self.element == Element::Bag && !self.slots.is_empty() => {
                let slot = self.random.pick(&self.slots);
                self.line(&format!("multisetadd({value}, {net}[{slot}].b);"));
            }
            // A full multiset ends the search, so most insertions ask for room.
            _ if self.random.once_in(3) => self.line(&format!("send({value}, {net});")),
            _ => {
                self.line(&format!("if multisetcount({name}: {net}, true) < 2 then"));
                self.line(&format!("send({value}, {net});"));
                self.line("end;");
            }
        }
    }

    /// Adds an assignment, or a statement that fails.
    fn assignment(&mut self) {
        let (value, condition) = (self.value(), self.condition(1));
        let slot = match self.slots.is_empty() {
            true => None,
            false => Some(self.random.pick(&self.slots)),
        };
        let net = self.net.clone();
        match self.random.below(12) {
            0..=2 => self.line(&format!("last := {value};")),
            3 => self.line("undefine last;"),
            4..=5 => self.line(&format!("flag[{value}] := {condition};")),
            6 => self.line("done := !done;"),
            7 => self.line("last := first();"),
            8 if self.random.once_in(3) => self.line(&format!("assert {condition};")),
            9 => {
                let name = self.new_name();
                let claim = self.element_condition(&net, &name, &value);
                self.line(&format!("pos := multisetcount({name}: {net}, {claim});"));
            }
            10 => match (slot, self.element) {
                (Some(slot), _) if self.random.once_in(4) => self.line(&format!("pos := {slot};")),
                (Some(slot), Element::Message) => self.line(&format!("{net}[{slot}].k := 1;")),
                (Some(slot), Element::Number) => self.line(&format!("pos := {net}[{slot}];")),
                (Some(slot), Element::Bits) => {
                    self.line(&format!("{net}[{slot}][{value}] := {condition};"))
                }
                _ => self.line("pos := 3;"),
            },
            _ => self.line(&format!("if {condition} then last := {value}; end;")),
        }
    }
}
