//! Records and arrays as values, aliases of elements and fields, and `var` parameters that are bound to them.

use super::{Element, Generator};

/// Aliases in scope, by type.
#[derive(Default)]
pub(super) struct Aliases {
    /// Boolean places.
    booleans: Vec<String>,
    /// Places of the scalarset.
    references: Vec<String>,
    /// Places of the record type `R`.
    records: Vec<String>,
}

/// Types of places.
#[derive(Clone, Copy, PartialEq)]
enum PlaceType {
    /// Boolean.
    Boolean,
    /// The scalarset.
    Reference,
    /// The record type `R`.
    Record,
}

impl Generator {
    /// Declares the record type.
    pub(super) fn declare_record(&mut self) {
        if self.aliases.is_some() {
            let rest = self.random.pick(&["", " f: F;", " g: array [0..1] of S;"]);
            self.line(&format!("R: record s: S; b: boolean;{rest} end;"));
        }
    }

    /// Declares variables of the record type, and a second array of flags.
    pub(super) fn declare_record_variables(&mut self) {
        if self.aliases.is_some() {
            self.line("saved: R;");
            self.line("cards: array [S] of R;");
            self.line("kept: F;");
        }
    }

    /// Adds the statements of a start state that concern the records.
    pub(super) fn start_records(&mut self) {
        if self.aliases.is_none() {
            return;
        }
        let statement = self.random.pick(&["saved.s := o;", "undefine saved.s;"]);
        self.line(statement);
        self.line("saved.b := false;");
        self.line("for v: S do");
        let flag = self.random.pick(&["false", "v = o"]);
        self.line(&format!("kept[v] := {flag};"));
        self.line("cards[v].b := false;");
        let place = self
            .random
            .pick(&["cards[v].s := v;", "cards[v].s := o;", ""]);
        if !place.is_empty() {
            self.line(place);
        }
        self.line("end;");
    }

    /// Declares procedures and a function with `var` parameters.
    pub(super) fn declare_place_procedures(&mut self) {
        if self.aliases.is_none() {
            return;
        }
        let set = self
            .random
            .pick(&["b := c;", "b := !b | c;", "done := !b;\nb := c;"]);
        self.line(&format!(
            "procedure set_flag(var b: boolean; c: boolean);\nbegin\n{set}\nend;"
        ));
        self.line("procedure swap(var x: S; var y: S);\nvar z: S;\nbegin");
        self.line("z := x;\nx := y;\ny := z;\nend;");
        let note = self.random.pick(&[
            "r.s := v;\nr.b := !r.b;",
            "saved := r;\nr.s := v;",
            "swap(r.s, saved.s);\nr.b := r.s = v;",
        ]);
        self.line(&format!(
            "procedure note(var r: R; v: S);\nbegin\n{note}\nend;"
        ));
        let copy = self.random.pick(&[
            "t := f;\nt[v] := !t[v];",
            "t[v] := !f[v];\nf := t;",
            "for w: S do if w != v then t[w] := f[v]; end; end;",
        ]);
        self.line(&format!(
            "procedure copy(var t: F; var f: F; v: S);\nbegin\n{copy}\nend;"
        ));
        self.line("function taken(var b: boolean): boolean;\nbegin");
        self.line("if b then\nreturn false;\nend;\nb := true;\nreturn true;\nend;");
    }

    /// Returns a place of a type: an alias, a variable, an element or a field.
    fn place(&mut self, ty: PlaceType) -> String {
        let aliases = self.aliases.as_ref().map(|aliases| match ty {
            PlaceType::Boolean => aliases.booleans.clone(),
            PlaceType::Reference => aliases.references.clone(),
            PlaceType::Record => aliases.records.clone(),
        });
        let aliases = aliases.unwrap_or_default();
        if !aliases.is_empty() && self.random.once_in(2) {
            return self.random.pick(&aliases);
        }
        let value = self.value();
        match ty {
            PlaceType::Record => match self.random.once_in(3) {
                true => "saved".into(),
                false => format!("cards[{value}]"),
            },
            _ if self.random.once_in(2) => {
                let record = self.place(PlaceType::Record);
                let field = if ty == PlaceType::Boolean { "b" } else { "s" };
                format!("{record}.{field}")
            }
            PlaceType::Boolean => match self.below(5) {
                0 => "done".into(),
                1 => format!("kept[{value}]"),
                _ => format!("flag[{value}]"),
            },
            PlaceType::Reference => match (self.element, self.slots.last()) {
                (Element::Message, Some(slot)) if value == "owner" => {
                    format!("{}[{slot}].s", self.net)
                }
                _ => self.random.pick(&["last", "last", "last", "owner"]).into(),
            },
        }
    }

    /// Returns a condition on records, arrays or aliases, if the model has them.
    pub(super) fn place_condition(&mut self) -> Option<String> {
        self.aliases.as_ref()?;
        let value = self.value();
        Some(match self.below(4) {
            0 => self.place(PlaceType::Boolean),
            1 => format!("!{}", self.place(PlaceType::Boolean)),
            2 => format!("{} = {value}", self.place(PlaceType::Reference)),
            _ => format!("isundefined({})", self.place(PlaceType::Reference)),
        })
    }

    /// Adds a statement on whole records or arrays, a block with an alias, or a call with `var` parameters. Returns false
    /// if the model has no records.
    pub(super) fn place_statement(&mut self, depth: usize) -> bool {
        if self.aliases.is_none() {
            return false;
        }
        let value = self.value();
        match self.below(if depth > 0 { 14 } else { 9 }) {
            0 | 1 => {
                let (to, from) = (self.place(PlaceType::Record), self.place(PlaceType::Record));
                self.line(&format!("{to} := {from};"));
            }
            2 => {
                let copied = self
                    .random
                    .pick(&["kept := flag;", "flag := kept;", "kept := flag;"]);
                self.line(copied);
            }
            3 => {
                let (place, condition) = (self.place(PlaceType::Boolean), self.condition(0));
                self.line(&format!("{place} := {condition};"));
            }
            4 => {
                let (place, condition) = (self.place(PlaceType::Boolean), self.condition(0));
                self.line(&format!("set_flag({place}, {condition});"));
            }
            5 => {
                let (x, y) = (
                    self.place(PlaceType::Reference),
                    self.place(PlaceType::Reference),
                );
                self.line(&format!("swap({x}, {y});"));
            }
            6 => {
                let place = self.place(PlaceType::Record);
                self.line(&format!("note({place}, {value});"));
            }
            7 => {
                let arrays = self
                    .random
                    .pick(&["kept, flag", "flag, kept", "flag, flag"]);
                self.line(&format!("copy({arrays}, {value});"));
            }
            8 => {
                let place = self.place(PlaceType::Reference);
                match place == "owner" {
                    true => self.line(&format!("{place} := {value};")),
                    false => self.line(&format!("undefine {place};")),
                }
            }
            9 | 10 => {
                let place = self.place(PlaceType::Boolean);
                self.line(&format!("if taken({place}) then"));
                self.statements(2, depth - 1);
                self.line("end;");
            }
            _ => {
                let ty = [PlaceType::Boolean, PlaceType::Reference, PlaceType::Record];
                let ty = self.random.pick(&ty);
                self.alias(ty, depth);
            }
        }
        true
    }

    /// Adds a block with an alias of a place.
    fn alias(&mut self, ty: PlaceType, depth: usize) {
        let place = self.place(ty);
        let name = self.new_name();
        self.line(&format!("alias {name}: {place} do"));
        self.aliases_of(ty).push(name);
        self.statements(3, depth - 1);
        self.aliases_of(ty).pop();
        self.line("end;");
    }

    /// The aliases of a type.
    fn aliases_of(&mut self, ty: PlaceType) -> &mut Vec<String> {
        let aliases = self.aliases.get_or_insert_default();
        match ty {
            PlaceType::Boolean => &mut aliases.booleans,
            PlaceType::Reference => &mut aliases.references,
            PlaceType::Record => &mut aliases.records,
        }
    }
}
