//! Unions of the scalarset with another one or with an enumeration.

use super::super::generate::Random;
use super::{Element, Generator};

/// Members of the union beside the scalarset `S`.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Union {
    /// True if a second scalarset, `T`, is a member.
    set: bool,
    /// True if an enumeration with one value, `nobody`, is a member.
    constant: bool,
}

impl Union {
    /// Chooses at least one further member.
    pub(super) fn choose(random: &mut Random) -> Union {
        let choice = random.below(3);
        Union {
            set: choice != 0,
            constant: choice != 1,
        }
    }
}

impl Generator {
    /// Declares the types of the union.
    pub(super) fn declare_union(&mut self) {
        let Some(union) = self.union else { return };
        let mut members = vec!["S"];
        if union.set {
            self.line("T: scalarset(2);");
            members.push("T");
        }
        if union.constant {
            self.line("N: enum { nobody };");
            members.push("N");
        }
        self.line(&format!("U: union {{ {} }};", members.join(", ")));
    }

    /// Declares the variables of the union.
    pub(super) fn declare_union_variables(&mut self) {
        if self.union.is_some() {
            self.line("who, from: U;");
            self.line("heard: array [U] of boolean;");
        }
    }

    /// Adds the statements of a start state that concern the union.
    pub(super) fn start_union(&mut self) {
        if self.union.is_none() {
            return;
        }
        self.line("for u: U do heard[u] := false; end;");
        if self.random.once_in(2) {
            self.line("who := o;");
        }
        if self.random.once_in(2) {
            self.line("heard[o] := true;");
        }
    }

    /// Returns an expression of the union, or one of the scalarset, which is converted.
    pub(super) fn member(&mut self) -> String {
        if let (Element::Member, Some(slot)) = (self.element, self.slots.last().copied()) {
            if self.random.once_in(3) {
                return format!("{}[{slot}]", self.net);
            }
        }
        let has_constant = self.union.is_some_and(|union| union.constant);
        match self.below(5) {
            0 if has_constant => "nobody".into(),
            1 | 2 if !self.members.is_empty() => {
                let members = self.members.clone();
                self.random.pick(&members)
            }
            3 => self.random.pick(&["who", "from"]).into(),
            _ => self.value(),
        }
    }

    /// Returns a condition on the variables of the union, if the model has one.
    pub(super) fn union_condition(&mut self) -> Option<String> {
        let union = self.union?;
        let a = self.member();
        let set = match union.set && self.random.once_in(2) {
            true => "T",
            false => "S",
        };
        let name = self.new_name();
        let quantifier = self.random.pick(&["exists", "forall"]);
        Some(match self.below(7) {
            0 => format!("who = {a}"),
            1 => format!("from != {a}"),
            2 => format!("(!isundefined(who) & ismember(who, {set}))"),
            3 => "isundefined(from)".into(),
            4 => format!("{quantifier} {name}: U do heard[{name}] | {name} = {a} end"),
            5 => format!("{quantifier} {name}: {set} do heard[{name}] end"),
            _ => "(!isundefined(who) & heard[who])".into(),
        })
    }

    /// Adds a statement on the variables of the union. Returns false if the model has none.
    pub(super) fn union_statement(&mut self, depth: usize) -> bool {
        let Some(union) = self.union else {
            return false;
        };
        let member = self.member();
        match self.below(if depth > 0 { 10 } else { 7 }) {
            0 => self.line(&format!("who := {member};")),
            1 => self.line(&format!("from := {member};")),
            2 => {
                let place = self.random.pick(&["who", "from"]);
                self.line(&format!("undefine {place};"));
            }
            3 => {
                let condition = self.condition(0);
                self.line(&format!(
                    "if !isundefined(who) then heard[who] := {condition}; end;"
                ));
            }
            4 => {
                let (value, condition) = (self.value(), self.condition(0));
                self.line(&format!("heard[{value}] := {condition};"));
            }
            // A value of another member is an error.
            5 if self.random.once_in(3) => self.line("last := who;"),
            5 => self.line("if !isundefined(who) & ismember(who, S) then last := who; end;"),
            6 if self.element == Element::Member => {
                let net = self.net.clone();
                self.line(&format!("multisetadd({member}, {net});"));
            }
            6 => self.line("from := who;"),
            7 if union.set => self.member_loop("T", depth),
            7 | 8 => self.member_loop("U", depth),
            _ => {
                let name = self.new_name();
                self.line(&format!("alias {name}: heard[{member}] do"));
                let condition = self.condition(0);
                self.line(&format!("{name} := {condition};"));
                self.statements(1, depth - 1);
                self.line(&format!("{name} := !{name};"));
                self.line("end;");
            }
        }
        true
    }

    /// Begins a ruleset over the union or a member in most models with a union. Returns the number of blocks.
    pub(super) fn open_member_ruleset(&mut self) -> usize {
        let Some(union) = self.union.filter(|_| self.random.below(4) > 0) else {
            return 0;
        };
        let ty = match union.set && self.random.below(3) > 0 {
            true => "T",
            false => "U",
        };
        self.line(&format!("ruleset m: {ty} do"));
        self.members.push("m".into());
        1
    }

    /// Adds a loop over the union, or over a member that is not the scalarset.
    fn member_loop(&mut self, ty: &str, depth: usize) {
        let name = self.new_name();
        self.line(&format!("for {name}: {ty} do"));
        self.members.push(name.clone());
        match self.random.once_in(2) {
            true => {
                let condition = self.condition(0);
                self.line(&format!("heard[{name}] := {condition};"));
            }
            false => self.statements(2, depth - 1),
        }
        self.members.pop();
        self.line("end;");
    }
}
