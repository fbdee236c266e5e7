//! Declarations of a model: types, variables, functions, start states, rules and properties.

use super::{Function, Generator, Kind, TypedName, BITS};

impl Generator {
    /// Appends the whole model.
    pub(super) fn file(&mut self) {
        let deadlock = ["", "", "stuck", "off", "off", "off"][self.below(6)];
        if !deadlock.is_empty() {
            self.line(&format!("-- deadlock: {deadlock}"));
        }
        if self.rumur {
            self.line("-- dialect: rumur");
        }
        if self.large {
            self.line("-- numbers: large");
            // This constant makes Rumur compute in 64 bits.
            self.line(&format!("const least: -{};", (1u64 << 62) + 99));
        }
        self.declare_types();
        self.declare_variables();
        for _ in 0..self.below(3) {
            self.declare_function();
        }
        if self.random.once_in(6) {
            self.declare_recursive();
        }
        let globals = self.scope.len();
        self.starts();
        if self.below(4) > 0 {
            // This rule is always enabled. Without it, most searches would find only a deadlock.
            if let Some((place, _)) = self
                .place(|_, t| t == 0, true)
                .filter(|p| !p.1.may_be_undefined && !p.0.contains('['))
            {
                self.open("rule \"tick\"");
                self.line("begin");
                self.line(&format!("{place} := !{place};"));
                self.close("end;");
            }
        }
        for _ in 0..2 + self.below(4) {
            self.rules();
            self.scope.truncate(globals);
        }
        self.properties();
    }

    /// Declares three to six types. A type whose variables would take too many bits becomes a small
    /// range.
    fn declare_types(&mut self) {
        self.line("type");
        self.indent += 1;
        let count = 3 + self.below(4);
        for _ in 0..count {
            let random_type = |g: &mut Self| g.below(g.types.len());
            let kind = match if self.large && self.random.once_in(3) {
                1
            } else {
                self.below(9)
            } {
                8 if !self.rumur => Kind::Multiset(1 + self.below(3), random_type(self)),
                0 => Kind::Enum(1 + self.below(3)),
                1 => {
                    let low = match self.large && self.below(4) > 0 {
                        true => self.far_number(),
                        false => self.below(3) as i64 - 1,
                    };
                    let high = low + 1 + self.below(3) as i64;
                    match self.large && self.random.once_in(2) {
                        true => {
                            let other_end = self.far_number();
                            Kind::Wide(low.min(other_end), high.max(other_end))
                        }
                        false => Kind::Range(low, high),
                    }
                }
                2 | 3 => Kind::Scalarset(1 + self.below(3)),
                4 => Kind::Record((0..1 + self.below(3)).map(|_| random_type(self)).collect()),
                5 if !self.rumur => {
                    let find = |k: fn(&Kind) -> bool| self.types.iter().position(k);
                    let set = find(|k| matches!(k, Kind::Scalarset(n) if *n > 1));
                    let last_set = |k: &Kind| matches!(k, Kind::Scalarset(_));
                    let last_set = self.types.iter().rposition(last_set);
                    let other_set = last_set.filter(|&other| set != Some(other));
                    let constants = find(|k| matches!(k, Kind::Enum(_)));
                    let other = match self.random.once_in(2) {
                        true => other_set.or(constants),
                        false => constants.or(other_set),
                    };
                    match (set, other) {
                        (Some(a), Some(b)) => Kind::Union(a, b),
                        _ => Kind::Scalarset(2),
                    }
                }
                _ => Kind::Array(self.simple_type(), random_type(self)),
            };
            self.types.push(kind);
            let ty = self.types.len() - 1;
            if self.bits(ty) > BITS - 2.0 {
                self.types[ty] = Kind::Range(0, 2);
            }
            let text = match &self.types[ty] {
                Kind::Boolean => unreachable!("it is not declared"),
                Kind::Enum(n) => {
                    let members: Vec<_> = (0..*n).map(|i| format!("e{ty}_{i}")).collect();
                    format!("enum {{ {} }}", members.join(", "))
                }
                Kind::Range(low, high) | Kind::Wide(low, high) => format!("{low} .. {high}"),
                Kind::Scalarset(n) => format!("scalarset({n})"),
                Kind::Union(a, b) => format!("union {{ t{a}, t{b} }}"),
                Kind::Array(index, element) => {
                    let (index, element) = (self.type_name(*index), self.type_name(*element));
                    format!("array [{index}] of {element}")
                }
                Kind::Multiset(capacity, element) => {
                    format!("multiset [{capacity}] of {}", self.type_name(*element))
                }
                Kind::Record(fields) => {
                    let field = |(i, &f): (usize, &usize)| format!("f{i}: {}; ", self.type_name(f));
                    let fields: String = fields.iter().enumerate().map(field).collect();
                    format!("record {fields}end")
                }
            };
            self.line(&format!("t{ty}: {text};"));
            self.declared += 1;
        }
        self.indent -= 1;
    }

    /// Declares variables of together at most [`BITS`] bits. The first has the last declared type.
    fn declare_variables(&mut self) {
        self.line("var");
        self.indent += 1;
        let mut bits = 0.0;
        for i in 0..2 + self.below(5) {
            let ty = match i {
                0 => self.declared - 1,
                _ => self.below(self.declared),
            };
            if bits + self.bits(ty) > BITS {
                continue;
            }
            bits += self.bits(ty);
            let text = format!("v{i}");
            self.line(&format!("{text}: {};", self.type_name(ty)));
            let may_be_undefined = self.has_symmetric(ty) || self.random.once_in(5);
            self.scope.push(TypedName {
                text,
                ty,
                writable: true,
                bound: false,
                may_be_undefined,
            });
        }
        self.indent -= 1;
    }

    /// Declares up to two parameters of the function `name`. Returns them, and their text. Those of a procedure may be
    /// `var` parameters.
    fn declare_parameters(&mut self, name: &str, procedure: bool) -> (Vec<(bool, usize)>, String) {
        let mut parameters = Vec::new();
        let mut header = Vec::new();
        for i in 0..self.below(3) {
            let var = procedure && self.random.once_in(2);
            let ty = match var {
                true => 1 + self.below(self.declared - 1),
                false => self.simple_type(),
            };
            let text = format!("{name}_{i}");
            header.push(format!(
                "{}{text}: {}",
                if var { "var " } else { "" },
                self.type_name(ty)
            ));
            parameters.push((var, ty));
            self.scope.push(TypedName {
                text,
                ty,
                writable: var,
                bound: false,
                may_be_undefined: true,
            });
        }
        (parameters, header.join("; "))
    }

    /// Declares a function without side effects, or a procedure.
    fn declare_function(&mut self) {
        let globals = self.scope.clone();
        let name = self.name("f");
        let result = match self.below(2) {
            0 => None,
            _ => Some(self.simple_type()).filter(|&t| !self.is_symmetric(t)),
        };
        let (parameters, header) = self.declare_parameters(&name, result.is_none());
        match result {
            Some(ty) => self.open(&format!(
                "function {name}({header}): {};",
                self.type_name(ty)
            )),
            None => self.open(&format!("procedure {name}({header});")),
        }
        self.pure = result.is_some();
        if self.pure {
            for named in &mut self.scope {
                named.writable = false;
            }
        }
        let local = self.random.once_in(2).then(|| self.simple_type());
        let local = local.filter(|&ty| !self.is_symmetric(ty));
        if let Some(ty) = local {
            let text = self.name("x");
            self.line(&format!("var {text}: {};", self.type_name(ty)));
            self.separator_line("begin");
            if let Some(value) = self.value(ty, 1) {
                self.line(&format!("{text} := {value};"));
            }
            self.scope.push(TypedName {
                text,
                ty,
                writable: true,
                bound: false,
                may_be_undefined: false,
            });
        } else {
            self.separator_line("begin");
        }
        if local.is_some() || !self.pure {
            self.statements(2, 1);
        }
        if let Some(ty) = result {
            if self.random.once_in(3) {
                let claim = self.claim(1);
                self.open(&format!("if {claim} then"));
                self.return_of(ty);
                self.close("end;");
            }
            self.return_of(ty);
        }
        self.close("end;");
        self.pure = false;
        self.scope = globals;
        self.functions.push(Function {
            name,
            parameters,
            result,
        });
    }

    /// A function or procedure that calls itself until a number has reached its minimum.
    fn declare_recursive(&mut self) {
        let range = |k: &Kind| matches!(k, Kind::Range(..));
        let Some(ty) = self.types.iter().position(range) else {
            return;
        };
        let Kind::Range(low, _) = self.types[ty] else {
            return;
        };
        let (range, globals) = (self.type_name(ty), self.scope.clone());
        let name = self.name("f");
        let (remaining, var) = (format!("{name}_0"), format!("{name}_1"));
        self.bind(&remaining, ty);
        let function = self.random.once_in(2);
        let mut parameters = vec![(false, ty)];
        if function {
            self.open(&format!("function {name}({remaining}: {range}): boolean;"));
            self.separator_line("begin");
            let (a, b) = (self.claim(1), self.claim(1));
            self.line(&format!("if {remaining} <= {low} then return {a}; end;"));
            let sign = ["&", "|", "="][self.below(3)];
            self.line(&format!("return ({b} {sign} {name}({remaining} - 1));"));
        } else {
            let other = 1 + self.below(self.declared - 1);
            let other_name = self.type_name(other);
            self.open(&format!(
                "procedure {name}({remaining}: {range}; var {var}: {other_name});"
            ));
            self.separator_line("begin");
            self.scope.push(TypedName {
                text: var.clone(),
                ty: other,
                writable: true,
                bound: false,
                may_be_undefined: true,
            });
            parameters.push((true, other));
            self.statements(2, 1);
            self.open(&format!("if {remaining} > {low} then"));
            self.line(&format!("{name}({remaining} - 1, {var});"));
            self.close("end;");
            self.statements(1, 1);
        }
        self.close("end;");
        self.scope = globals;
        self.functions.push(Function {
            name,
            parameters,
            result: function.then_some(0),
        });
    }

    /// Appends a `return` of a defined value in the range of the type.
    fn return_of(&mut self, ty: usize) {
        // The result is in its range, for any use by the caller.
        let safe = std::mem::replace(&mut self.safe, true);
        if let Some(value) = self.value(ty, 1) {
            self.line(&format!("return {value};"));
        }
        self.safe = safe;
    }

    /// Declares one or two start states, possibly one per value of a scalarset. Fragile variables
    /// may stay undefined.
    fn starts(&mut self) {
        let sets: Vec<usize> = (0..self.types.len())
            .filter(|&t| self.is_symmetric(t))
            .collect();
        let in_ruleset = !sets.is_empty() && self.random.once_in(2);
        let globals = self.scope.len();
        if in_ruleset {
            let ty = sets[self.below(sets.len())];
            let name = self.name("p");
            self.open(&format!("ruleset {name}: {} do", self.type_name(ty)));
            self.bind(&name, ty);
        }
        for _ in 0..1 + usize::from(self.random.once_in(4)) {
            self.open("startstate");
            self.separator_line("begin");
            for variable in 0..globals {
                let variable = self.scope[variable].clone();
                let leaves_undefined = variable.may_be_undefined && self.random.once_in(3);
                if !leaves_undefined {
                    self.initialise(&variable.text, variable.ty);
                }
            }
            if self.random.once_in(4) {
                self.statement(1);
            }
            self.close("end;");
        }
        if in_ruleset {
            self.close("end;");
        }
        self.scope.truncate(globals);
    }

    /// Appends assignments of literals to all parts of a place; a multiset stays empty.
    fn initialise(&mut self, place: &str, ty: usize) {
        match self.types[ty].clone() {
            Kind::Record(fields) => {
                for (i, field) in fields.into_iter().enumerate() {
                    self.initialise(&format!("{place}.f{i}"), field);
                }
            }
            Kind::Array(index, element) => {
                let name = self.name("i");
                self.open(&format!("for {name}: {} do", self.type_name(index)));
                self.initialise(&format!("{place}[{name}]"), element);
                self.close("end;");
            }
            // A multiset is initially empty.
            Kind::Multiset(..) => {}
            _ => match self.literal(ty).or_else(|| self.bound_of(ty)) {
                Some(value) => self.line(&format!("{place} := {value};")),
                None => self.line(&format!("undefine {place};")),
            },
        }
    }

    /// Declares one or two rules, in up to two rulesets, with an alias of a place or a chosen
    /// element in some cases.
    fn rules(&mut self) {
        let mut open = 0;
        while open < 2 && self.below(2) == 0 {
            let ty = self.simple_type();
            let name = self.name("p");
            self.open(&format!("ruleset {name}: {} do", self.type_name(ty)));
            self.bind(&name, ty);
            open += 1;
        }
        let aliased = match self.random.once_in(10) {
            // The alias is evaluated in every state, so it must not fail.
            true => {
                let safe = std::mem::replace(&mut self.safe, true);
                let place = self.part(true);
                self.safe = safe;
                place
            }
            false => None,
        };
        if let Some((place, place_name)) = aliased {
            let name = self.name("a");
            self.open(&format!("alias {name}: {place} do"));
            self.scope.push(TypedName {
                text: name,
                ..place_name
            });
            open += 1;
        }
        let mut removal = None;
        if !self.rumur && self.random.once_in(2) {
            if let Some((place, element)) = self.multiset(true).filter(|m| !m.0.contains('[')) {
                let name = self.slot(&place, element);
                self.open(&format!("choose {name}: {place} do"));
                open += 1;
                removal = Some(format!("multisetremove({name}, {place});"));
            }
        }
        for _ in 0..1 + self.below(2) {
            let name = self.name("rule ");
            let priority = match self.rumur || self.below(12) > 0 {
                true => String::new(),
                false => format!("{} ", self.below(2)),
            };
            if self.below(4) > 0 {
                let claim = self.claim(2);
                self.open(&format!("rule {priority}\"{name}\" {claim} ==>"));
            } else {
                self.open(&format!("rule {priority}\"{name}\""));
            }
            self.separator_line("begin");
            let removal = removal.clone().filter(|_| self.below(4) > 0);
            // The slot may get another element after an early removal.
            let is_early = removal.is_some() && self.random.once_in(3);
            if let (Some(statement), true) = (&removal, is_early) {
                self.line(statement);
            }
            self.statements(3, 2);
            if let (Some(statement), false) = (&removal, is_early) {
                self.line(statement);
            }
            self.close("end;");
        }
        for _ in 0..open {
            self.close("end;");
        }
    }

    /// Declares an invariant, a cover, a liveness property and an assumption, each in some of the
    /// models only.
    fn properties(&mut self) {
        if self.random.once_in(4) {
            let (a, b, c) = (self.claim(2), self.claim(2), self.claim(1));
            self.line(&format!("invariant \"claimed\" ({a} | {b} | {c});"));
        }
        if self.random.once_in(8) {
            let claim = self.claim(2);
            self.line(&format!("cover \"covered\" {claim};"));
        }
        if self.random.once_in(8) {
            let ty = self.simple_type();
            let name = self.name("p");
            self.open(&format!("ruleset {name}: {} do", self.type_name(ty)));
            self.bind(&name, ty);
            let claim = self.claim(2);
            self.line(&format!("liveness \"in reach\" {claim};"));
            self.scope.pop();
            self.close("end;");
        }
        if self.random.once_in(12) {
            let (a, b) = (self.claim(2), self.claim(1));
            self.line(&format!("assume ({a} | {b});"));
        }
    }
}
