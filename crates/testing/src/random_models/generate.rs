//! Small random Murphi models, as texts.
//!
//! Each line is one declaration, statement or bracket of a block, and blocks are indented, so that a failing text can
//! be shrunk by lines. The variables together have at most some thousands of values, so every search ends. Every third
//! model has numbers of up to 64 bits. Ranges with many values store only few of them.
//!
//! Constructs on which the checkers are documented to disagree are not generated:
//! - shifts that leave 64 bits and numbers near -2^63, loops that count down without `by`, numbers with a leading zero,
//!   endless loops;
//! - calls in expressions of functions that write to variables other than their locals;
//! - claims for each value of a scalarset that can fail: the order of the values decides whether a failure occurs
//!   before the answer is known, so symmetry may change the verdict;
//! - loops and quantifiers that bind the name of another, and results out of the range of their function; constant
//!   steps and comparisons that Rumur does not read.
//!
//! The text's first lines state its dialect, by which undefined values are read.

mod declare;

use cohkit_base::random::SplitMix64;
use std::fmt::Write;

/// Pseudo-random numbers of a seed.
pub struct Random(SplitMix64);

impl Random {
    /// Creates a generator whose sequence depends on the seed alone.
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed.wrapping_mul(0xd134_2543_de82_ef95)))
    }

    /// Returns a number below `n`; 0 counts as 1.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0.modulo(n.max(1) as u64) as usize
    }

    /// Returns true once in `n` calls on average.
    pub(super) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns one of these options.
    pub(super) fn pick<T: Clone>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())].clone()
    }
}

/// A type. Other types are referred to by their index in [`Generator::types`].
#[derive(Clone, PartialEq)]
enum Kind {
    /// The Boolean type, whose index is 0.
    Boolean,
    /// An enumeration with this number of members.
    Enum(usize),
    /// Least and greatest number.
    Range(i64, i64),
    /// A range of many numbers, of which only the ends and the middle are stored.
    Wide(i64, i64),
    /// A scalarset with this number of values.
    Scalarset(usize),
    /// A scalarset, and an enumeration or another scalarset; only in CMurphi's dialect.
    Union(usize, usize),
    /// Types of the fields.
    Record(Vec<usize>),
    /// Types of index and elements.
    Array(usize, usize),
    /// A multiset with this capacity and type; only in CMurphi's dialect.
    Multiset(usize, usize),
}

/// A variable, parameter, alias or bound name that an expression may use.
#[derive(Clone)]
struct TypedName {
    /// Text of the expression that denotes it.
    text: String,
    /// Index of its type.
    ty: usize,
    /// True if statements may assign to it.
    writable: bool,
    /// True if it is bound by a loop, a quantifier or a ruleset, so that it is never undefined.
    bound: bool,
    /// True if it may be undefined on purpose.
    may_be_undefined: bool,
}

/// A function or procedure that later statements may call.
struct Function {
    /// Name that calls use.
    name: String,
    /// Per parameter, true for `var`, and its type.
    parameters: Vec<(bool, usize)>,
    /// Result type; `None` for a procedure.
    result: Option<usize>,
}

/// Maximum number of bits of a model's variables, which keeps the number of states to some thousands.
const BITS: f64 = 12.0;

/// State of the generation of one model.
struct Generator {
    /// Source of all choices.
    random: Random,
    /// True for Rumur's dialect, which lacks unions, multisets and rule priorities.
    rumur: bool,
    /// True if numbers have up to 64 bits.
    large: bool,
    /// All types; the first is the Boolean type.
    types: Vec<Kind>,
    /// Number of named types; the types of loops over numbers follow them.
    declared: usize,
    /// Names that are visible at the current place of the text.
    scope: Vec<TypedName>,
    /// Functions and procedures declared so far.
    functions: Vec<Function>,
    /// Text generated so far.
    text: String,
    /// Depth of indentation, in steps of two spaces.
    indent: usize,
    /// Number of names created so far, which makes the next one unique.
    name_count: usize,
    /// True if the construct being generated must not fail.
    safe: bool,
    /// True while an index is generated, which must have no indices of its own.
    in_index: bool,
    /// True if only locals may be written.
    pure: bool,
}

/// Returns the model of a seed, in Rumur's dialect if `rumur`. The text begins with comments that state its dialect
/// and its definition of a deadlock.
pub fn model(seed: u64, rumur: bool) -> String {
    let mut generator = Generator {
        random: Random::new(seed),
        rumur,
        large: seed % 3 == 2,
        types: vec![Kind::Boolean],
        declared: 1,
        scope: Vec::new(),
        functions: Vec::new(),
        text: String::new(),
        indent: 0,
        name_count: 0,
        safe: false,
        in_index: false,
        pure: false,
    };
    generator.file();
    generator.text
}

impl Generator {
    /// Returns a number below `n`; 0 counts as 1.
    fn below(&mut self, n: usize) -> usize {
        self.random.below(n)
    }

    /// Appends an indented line.
    fn line(&mut self, line: &str) {
        for _ in 0..self.indent {
            self.text.push_str("  ");
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Appends the first line of a block.
    fn open(&mut self, line: &str) {
        self.line(line);
        self.indent += 1;
    }

    /// Appends the last line of a block.
    fn close(&mut self, line: &str) {
        self.indent -= 1;
        self.line(line);
    }

    /// Appends a line between the parts of a block.
    fn separator_line(&mut self, line: &str) {
        self.close(line);
        self.indent += 1;
    }

    /// Returns a new name with this prefix.
    fn name(&mut self, prefix: &str) -> String {
        self.name_count += 1;
        format!("{prefix}{}", self.name_count)
    }

    /// Returns the name of a type in the text.
    fn type_name(&self, ty: usize) -> String {
        match ty {
            0 => "boolean".into(),
            _ => format!("t{ty}"),
        }
    }

    /// Number of values of a simple type, as far as they are stored; 0 for other types.
    fn values(&self, ty: usize) -> usize {
        match self.types[ty] {
            Kind::Boolean => 2,
            Kind::Range(low, high) => (high - low + 1) as usize,
            Kind::Wide(..) => 3,
            Kind::Enum(n) | Kind::Scalarset(n) => n,
            Kind::Union(a, b) => self.values(a) + self.values(b),
            Kind::Record(_) | Kind::Array(..) | Kind::Multiset(..) => 0,
        }
    }

    /// Upper bound of the bits that a variable of this type stores, undefined values included.
    fn bits(&self, ty: usize) -> f64 {
        match &self.types[ty] {
            Kind::Record(fields) => fields.iter().map(|&f| self.bits(f)).sum(),
            &Kind::Array(index, element) => self.values(index) as f64 * self.bits(element),
            &Kind::Multiset(capacity, element) => capacity as f64 * (1.0 + self.bits(element)),
            _ => (self.values(ty) as f64 + 1.0).log2(),
        }
    }

    /// Returns true if the type has no parts.
    fn is_simple(&self, ty: usize) -> bool {
        !matches!(
            self.types[ty],
            Kind::Record(_) | Kind::Array(..) | Kind::Multiset(..)
        )
    }

    /// Returns true if the type's values are interchangeable.
    fn is_symmetric(&self, ty: usize) -> bool {
        matches!(self.types[ty], Kind::Scalarset(_) | Kind::Union(..))
    }

    /// True if its values contain values of a scalarset.
    fn has_symmetric(&self, ty: usize) -> bool {
        match &self.types[ty] {
            Kind::Record(fields) => fields.iter().any(|&f| self.has_symmetric(f)),
            &Kind::Array(_, element) | &Kind::Multiset(_, element) => self.has_symmetric(element),
            _ => self.is_symmetric(ty),
        }
    }

    /// Returns a simple type whose values can be enumerated.
    fn simple_type(&mut self) -> usize {
        loop {
            let ty = self.below(self.declared);
            if self.is_simple(ty) && !matches!(self.types[ty], Kind::Wide(..)) {
                return ty;
            }
        }
    }

    /// Returns a literal of a type; scalarsets have none.
    fn literal(&mut self, ty: usize) -> Option<String> {
        match self.types[ty] {
            Kind::Boolean => Some(["true", "false"][self.below(2)].into()),
            Kind::Enum(n) => Some(format!("e{ty}_{}", self.below(n))),
            Kind::Range(low, high) => {
                let value = low + self.below((high - low + 1) as usize) as i64;
                Some(format!("{value}").replace('-', "0 - "))
            }
            Kind::Wide(low, high) => {
                let value = [low, low / 2 + high / 2, high][self.below(3)];
                Some(format!("{value}").replace('-', "0 - "))
            }
            Kind::Union(_, b) => self.literal(b),
            _ => None,
        }
    }

    /// Returns a number near or beyond 32 bits. No two of them compute -2^63, which only Rumur supports.
    fn far_number(&mut self) -> i64 {
        let offset = self.below(3) as i64;
        let bases = [1 << 31, 1 << 32, 1 << 40, (1 << 53) + 1, (1 << 62) + 17];
        let sign = [1, -1][self.below(2)];
        sign * bases[self.below(bases.len())] - offset
    }

    /// True if each value of a simple type is one of another: the types are equal, or a union and its member.
    fn contains(&self, ty: usize, other: usize) -> bool {
        ty == other || matches!(self.types[ty], Kind::Union(a, b) if a == other || b == other)
    }

    /// Returns a bound name of this type or of its members, if one is visible.
    fn bound_of(&mut self, ty: usize) -> Option<String> {
        let names: Vec<_> = self
            .scope
            .iter()
            .filter(|n| n.bound && self.contains(ty, n.ty))
            .collect();
        let texts: Vec<String> = names.iter().map(|n| n.text.clone()).collect();
        (!texts.is_empty()).then(|| texts[self.random.below(texts.len())].clone())
    }

    /// Returns an index of this type: a literal, a bound name, or sometimes another place. `None` if there is none.
    fn index(&mut self, ty: usize) -> Option<String> {
        if !self.safe && !self.in_index && self.random.once_in(3) {
            self.in_index = true;
            let place = self.place(|_, t| t == ty, false);
            self.in_index = false;
            if let Some((place, _)) = place {
                return Some(place);
            }
        }
        match self.below(3) {
            0 => self.literal(ty).or_else(|| self.bound_of(ty)),
            _ => self.bound_of(ty).or_else(|| self.literal(ty)),
        }
    }

    /// Returns a place whose type is accepted, with its properties: a visible name, or a part of its value. With
    /// `write`, only writable places are chosen. `None` after some failed attempts.
    fn place(
        &mut self,
        accepts: impl Fn(&Self, usize) -> bool,
        write: bool,
    ) -> Option<(String, TypedName)> {
        for _ in 0..8 {
            if self.scope.is_empty() {
                return None;
            }
            let root = self.scope[self.random.below(self.scope.len())].clone();
            if write && !root.writable {
                continue;
            }
            let (mut text, mut place_name) = (root.text.clone(), root);
            loop {
                if accepts(self, place_name.ty) {
                    return Some((text, place_name));
                }
                match self.types[place_name.ty].clone() {
                    Kind::Record(fields) => {
                        let field = self.below(fields.len());
                        write!(text, ".f{field}").unwrap();
                        place_name.ty = fields[field];
                    }
                    Kind::Array(index, element) => {
                        let Some(index) = self.index(index) else {
                            break;
                        };
                        write!(text, "[{index}]").unwrap();
                        place_name.ty = element;
                    }
                    _ => break,
                }
            }
        }
        None
    }

    /// Returns a place of any type: a visible name, or one of its elements or fields.
    fn part(&mut self, write: bool) -> Option<(String, TypedName)> {
        match self.below(3) {
            0 => self.place(|_, _| true, write),
            1 => {
                let ty = self.below(self.declared);
                self.place(|_, t| t == ty, write)
            }
            _ => self.place(|g, t| g.is_simple(t), write),
        }
    }

    /// Returns an expression for the value of a place of a simple type, with its type. A place that may be undefined
    /// is checked first where the construct must not fail.
    fn read(&mut self, accepts: impl Fn(&Self, usize) -> bool) -> Option<(String, usize)> {
        let (text, place_name) = self.place(accepts, false)?;
        let checks_defined = place_name.may_be_undefined && self.below(8) > 0;
        if place_name.bound || !(self.safe || checks_defined) {
            return Some((text, place_name.ty));
        }
        let fallback = self
            .literal(place_name.ty)
            .or_else(|| self.bound_of(place_name.ty))?;
        Some((
            format!("(isundefined({text}) ? {fallback} : {text})"),
            place_name.ty,
        ))
    }

    /// Returns an expression for a number, with at most `depth` nested operators.
    fn number(&mut self, depth: usize) -> String {
        let leaf = |g: &mut Self| {
            let read = g.read(|g, t| matches!(g.types[t], Kind::Range(..) | Kind::Wide(..)));
            match read {
                // Sums of small numbers do not overflow.
                Some((text, _)) if g.large && g.safe && g.below(4) > 0 => {
                    format!("({text} % 1009)")
                }
                Some((text, _)) if g.below(4) > 0 => text,
                _ if g.large && !g.safe && g.random.once_in(3) => {
                    format!("({})", g.far_number().to_string().replace('-', "0 - "))
                }
                _ => g.below(5).to_string(),
            }
        };
        if depth == 0 {
            return leaf(self);
        }
        let kinds = if self.large { 13 } else { 10 };
        match self.below(kinds) {
            10 => format!("({} * {})", leaf(self), leaf(self)),
            11 => {
                let by = self.below(40);
                format!("(({} % 1000) << {by})", self.number(depth - 1))
            }
            12 => {
                let by = self.below(70);
                format!("({} >> {by})", self.number(depth - 1))
            }
            9 => match self.multiset(false) {
                Some((place, element)) => {
                    let name = self.slot(&place, element);
                    let claim = self.claim(depth - 1);
                    self.scope.pop();
                    format!("multisetcount({name}: {place}, {claim})")
                }
                None => leaf(self),
            },
            0 => format!("({} + {})", self.number(depth - 1), self.number(depth - 1)),
            1 => format!("({} - {})", self.number(depth - 1), self.number(depth - 1)),
            2 => format!("({} * {})", self.number(depth - 1), self.below(4)),
            3 => {
                let sign = ["/", "%"][self.below(2)];
                if !self.safe && self.random.once_in(12) {
                    format!(
                        "({} {sign} {})",
                        self.number(depth - 1),
                        self.number(depth - 1)
                    )
                } else {
                    format!("({} {sign} {})", self.number(depth - 1), 1 + self.below(3))
                }
            }
            4 => format!(
                "({} ? {} : {})",
                self.claim(depth - 1),
                self.number(depth - 1),
                self.number(depth - 1)
            ),
            5 => format!("(-{})", self.number(depth - 1)),
            6 => {
                let call = self.call(|g, t| matches!(g.types[t], Kind::Range(..)));
                call.unwrap_or_else(|| leaf(self))
            }
            _ => leaf(self),
        }
    }

    /// Returns a multiset with the type of its elements.
    fn multiset(&mut self, write: bool) -> Option<(String, usize)> {
        let (place, place_name) =
            self.place(|g, t| matches!(g.types[t], Kind::Multiset(..)), write)?;
        match self.types[place_name.ty] {
            Kind::Multiset(_, element) => Some((place, element)),
            _ => None,
        }
    }

    /// Names a slot of a multiset, whose element then has a name.
    fn slot(&mut self, place: &str, element: usize) -> String {
        let name = self.name("s");
        self.scope.push(TypedName {
            text: format!("{place}[{name}]"),
            ty: element,
            writable: false,
            bound: false,
            may_be_undefined: true,
        });
        name
    }

    /// Returns a call of a function with an accepted result type.
    fn call(&mut self, accepts: impl Fn(&Self, usize) -> bool) -> Option<String> {
        if self.safe || self.functions.is_empty() {
            return None;
        }
        let function = self.below(self.functions.len());
        let result = self.functions[function].result?;
        if !accepts(self, result) {
            return None;
        }
        self.arguments(function)
    }

    /// Returns a call of the function with this index; `None` if there is no value for a parameter.
    fn arguments(&mut self, function: usize) -> Option<String> {
        let parameters = self.functions[function].parameters.clone();
        let mut arguments: Vec<String> = Vec::new();
        for (var, ty) in parameters {
            if var {
                let (place, _) = self.place(|_, t| t == ty, true)?;
                // All checkers treat the same place twice alike only if the parameters are places.
                arguments.push(place);
            } else {
                arguments.push(self.value(ty, 1)?);
            }
        }
        Some(format!(
            "{}({})",
            self.functions[function].name,
            arguments.join(", ")
        ))
    }

    /// Returns a Boolean expression, with at most `depth` nested operators.
    fn claim(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.below(4) {
                0 => ["true", "false"][self.below(2)].into(),
                1 => self.equality(0),
                _ => match self.read(|_, t| t == 0) {
                    Some((text, _)) => text,
                    None => self.equality(0),
                },
            };
        }
        let inner_depth = depth - 1;
        match self.below(14) {
            13 => self.membership().unwrap_or_else(|| self.claim(0)),
            0 => format!(
                "({} & {})",
                self.claim(inner_depth),
                self.claim(inner_depth)
            ),
            1 => format!(
                "({} | {})",
                self.claim(inner_depth),
                self.claim(inner_depth)
            ),
            2 => format!(
                "({} -> {})",
                self.claim(inner_depth),
                self.claim(inner_depth)
            ),
            3 => format!("(!{})", self.claim(inner_depth)),
            4 => format!(
                "({} ? {} : {})",
                self.claim(inner_depth),
                self.claim(inner_depth),
                self.claim(inner_depth)
            ),
            5 | 6 => {
                let sign = ["<", "<=", ">", ">=", "=", "!="][self.below(6)];
                format!("({} {sign} {})", self.number(1), self.number(1))
            }
            7 | 8 => self.quantified(inner_depth),
            9 => match self.place(|g, t| g.is_simple(t), false) {
                Some((text, place_name)) if !place_name.bound => format!("isundefined({text})"),
                _ => self.claim(0),
            },
            10 => self.call(|_, t| t == 0).unwrap_or_else(|| self.claim(0)),
            _ => self.equality(1),
        }
    }

    /// Returns a test to which member of a union a value belongs.
    fn membership(&mut self) -> Option<String> {
        let (place, place_name) =
            self.place(|g, t| matches!(g.types[t], Kind::Union(..)), false)?;
        let Kind::Union(a, b) = self.types[place_name.ty] else {
            return None;
        };
        let member = self.random.pick(&[a, b]);
        let test = format!("ismember({place}, {})", self.type_name(member));
        Some(match place_name.bound {
            true => test,
            false => format!("(!isundefined({place}) & {test})"),
        })
    }

    /// Returns a comparison of two values of a type, or of two numbers.
    fn equality(&mut self, depth: usize) -> String {
        let sign = ["=", "!="][self.below(2)];
        for _ in 0..4 {
            let ty = self.simple_type();
            if ty == 0 && depth == 0 {
                continue;
            }
            if let Kind::Range(..) | Kind::Wide(..) = self.types[ty] {
                return format!("({} {sign} {})", self.number(depth), self.number(depth));
            }
            // Values of two members of a union cannot be compared.
            let first = match self.types[ty] {
                Kind::Union(..) => self.read(|_, t| t == ty).map(|(text, _)| text),
                _ => self.value(ty, depth),
            };
            if let (Some(a), Some(b)) = (first, self.value(ty, 0)) {
                return format!("({a} {sign} {b})");
            }
        }
        format!("({} {sign} {})", self.number(depth), self.number(depth))
    }

    /// Returns a quantified Boolean expression. Over symmetric values, its operand must not fail.
    fn quantified(&mut self, depth: usize) -> String {
        let word = ["forall", "exists"][self.below(2)];
        let name = self.name("q");
        let ty = self.simple_type();
        let safe = self.safe;
        self.safe |= self.is_symmetric(ty);
        self.bind(&name, ty);
        let claim = self.claim(depth);
        self.scope.pop();
        self.safe = safe;
        format!("({word} {name}: {} do {claim} end)", self.type_name(ty))
    }

    /// Adds a bound name to the scope.
    fn bind(&mut self, name: &str, ty: usize) {
        self.scope.push(TypedName {
            text: name.into(),
            ty,
            writable: false,
            bound: true,
            may_be_undefined: false,
        });
    }

    /// Returns an expression for a value of a simple type; `None` if no value of a scalarset is in scope.
    fn value(&mut self, ty: usize, depth: usize) -> Option<String> {
        match self.types[ty].clone() {
            Kind::Boolean => Some(self.claim(depth)),
            Kind::Wide(..) => {
                let (a, b) = (self.literal(ty)?, self.literal(ty)?);
                Some(format!("({} ? {a} : {b})", self.claim(depth)))
            }
            Kind::Range(low, high) => {
                if !self.safe && self.random.once_in(20) {
                    return Some(self.number(depth));
                }
                let n = high - low + 1;
                Some(match self.below(3) {
                    0 => self.literal(ty)?,
                    _ => format!("((({} % {n}) + {n}) % {n} + ({low}))", self.number(depth)),
                })
            }
            _ => match self.below(3) {
                0 => self.literal(ty).or_else(|| self.bound_of(ty)),
                1 => self.bound_of(ty).or_else(|| self.literal(ty)),
                _ => {
                    // A value of a union outside the type is an error.
                    let any = !self.safe && self.random.once_in(8);
                    let read = self.read(|g, t| g.contains(ty, t) || any && g.contains(t, ty));
                    let read = read.map(|(text, _)| text);
                    read.or_else(|| self.literal(ty))
                        .or_else(|| self.bound_of(ty))
                }
            },
        }
    }

    /// Appends 1 to `max_count` statements; `depth` limits nested blocks.
    fn statements(&mut self, max_count: usize, depth: usize) {
        for _ in 0..1 + self.below(max_count) {
            self.statement(depth);
        }
    }

    /// Appends an assignment to a place of a simple type, or nothing if none is found.
    fn assignment(&mut self) {
        for _ in 0..4 {
            if let Some((place, place_name)) = self.place(|g, t| g.is_simple(t), true) {
                if let Some(value) = self.value(place_name.ty, 2) {
                    return self.line(&format!("{place} := {value};"));
                }
            }
        }
    }

    /// Appends a random statement; `depth` limits nested blocks. A kind for which nothing suitable is visible becomes
    /// an assignment.
    fn statement(&mut self, depth: usize) {
        let kinds = if depth == 0 { 14 } else { 20 };
        match self.below(kinds) {
            0..=6 => self.assignment(),
            7 => {
                let Some((place, place_name)) = self.place(|g, t| !g.is_simple(t), true) else {
                    return self.assignment();
                };
                match self.place(|_, t| t == place_name.ty, false) {
                    Some((from, _)) => self.line(&format!("{place} := {from};")),
                    None => self.assignment(),
                }
            }
            8 => {
                // The first value of a scalarset would differ from the others.
                let allows_symmetric = self.random.once_in(8);
                match self.place(|g, t| allows_symmetric || !g.has_symmetric(t), true) {
                    Some((place, _)) => self.line(&format!("clear {place};")),
                    None => self.assignment(),
                }
            }
            9 => match self.place(|_, _| true, true) {
                Some((place, place_name)) if place_name.may_be_undefined => {
                    self.line(&format!("undefine {place};"))
                }
                _ => self.assignment(),
            },
            10 => self.counting_loop(),
            11 => self.procedure_call(),
            12 => self.element_loop(),
            13 => self.rare_statement(),
            14 | 15 => self.if_statement(depth - 1),
            16 => self.switch(depth - 1),
            17 => self.type_loop(depth - 1),
            18 => self.number_loop(depth - 1),
            _ => self.alias(depth - 1),
        }
    }

    /// Appends an `if` statement, sometimes with `elsif` and `else`.
    fn if_statement(&mut self, depth: usize) {
        let claim = self.claim(2);
        self.open(&format!("if {claim} then"));
        self.statements(2, depth);
        if self.random.once_in(4) {
            let claim = self.claim(1);
            self.separator_line(&format!("elsif {claim} then"));
            self.statements(2, depth);
        }
        if self.random.once_in(2) {
            self.separator_line("else");
            self.statements(2, depth);
        }
        self.close("end;");
    }

    /// Appends a loop over the values of a type.
    fn type_loop(&mut self, depth: usize) {
        // Iterations that see each other's effects distinguish values of scalarsets.
        let ty = self.simple_type();
        if self.is_symmetric(ty) && self.below(3) > 0 {
            return self.element_loop();
        }
        let name = self.name("l");
        self.open(&format!("for {name}: {} do", self.type_name(ty)));
        self.bind(&name, ty);
        self.statements(2, depth);
        self.scope.pop();
        self.close("end;");
    }

    /// Appends a loop over a range of numbers, up or down.
    fn number_loop(&mut self, depth: usize) {
        let (low, span) = (self.below(3) as i64, self.below(3) as i64);
        let low = match self.large && self.random.once_in(2) {
            true => self.far_number() + low,
            false => low,
        };
        let by = [" by 1", " by 2", ""][self.below(3)];
        let name = self.name("l");
        let high = low + span;
        match self.below(3) {
            0 => self.open(&format!("for {name} := {high} to {low} by -1 do")),
            _ => self.open(&format!("for {name} := {low} to {high}{by} do")),
        }
        self.types.push(Kind::Range(low, high));
        let ty = self.types.len() - 1;
        self.bind(&name, ty);
        self.statements(2, depth);
        self.scope.pop();
        // The type has no name, so no other declaration may use it.
        self.types.pop();
        self.close("end;");
    }

    /// Appends a block with a second name for a place.
    fn alias(&mut self, depth: usize) {
        let Some((place, place_name)) = self.part(!self.pure) else {
            return;
        };
        if place_name.bound {
            return self.assignment();
        }
        let name = self.name("a");
        self.open(&format!("alias {name}: {place} do"));
        self.scope.push(TypedName {
            text: name,
            ..place_name
        });
        self.statements(2, depth);
        self.scope.pop();
        self.close("end;");
    }

    /// Appends a `switch` over an ordered value, with distinct labels.
    fn switch(&mut self, depth: usize) {
        let is_ordered = |g: &Self, t: usize| g.is_simple(t) && !g.is_symmetric(t);
        let Some((value, ty)) = self.read(is_ordered) else {
            return self.assignment();
        };
        self.open(&format!("switch {value}"));
        let mut seen: Vec<String> = Vec::new();
        for _ in 0..1 + self.below(2) {
            let Some(label) = self.literal(ty).filter(|l| !seen.contains(l)) else {
                continue;
            };
            self.open(&format!("case {label}:"));
            seen.push(label);
            self.statements(2, depth);
            self.indent -= 1;
        }
        if self.random.once_in(2) {
            self.open("else");
            self.statements(1, depth);
            self.indent -= 1;
        }
        self.close("end;");
    }

    /// Appends a loop that ends because it counts a place up.
    fn counting_loop(&mut self) {
        // The place must not change while it is counted.
        let safe = std::mem::replace(&mut self.safe, true);
        let place = self.place(|g, t| matches!(g.types[t], Kind::Range(..)), true);
        self.safe = safe;
        match place {
            Some((place, place_name)) => {
                let Kind::Range(_, high) = self.types[place_name.ty] else {
                    return;
                };
                self.open(&format!("while {place} < {high} do"));
                self.line(&format!("{place} := {place} + 1;"));
                self.close("end;");
            }
            None => self.assignment(),
        }
    }

    /// Appends a loop over a type with independent iterations: each writes its own element and reads other variables.
    fn element_loop(&mut self) {
        let arrays: Vec<TypedName> = self.scope.iter().filter(|n| n.writable).cloned().collect();
        let mut arrays: Vec<(TypedName, usize, usize)> = arrays
            .into_iter()
            .filter_map(|n| match self.types[n.ty] {
                Kind::Array(index, element) => Some((n, index, element)),
                _ => None,
            })
            .collect();
        if arrays.is_empty() {
            return self.assignment();
        }
        let array_number = self.below(arrays.len());
        let (array, index, element) = arrays.swap_remove(array_number);
        let name = self.name("l");
        self.open(&format!("for {name}: {} do", self.type_name(index)));
        let place = format!("{}[{name}]", array.text);
        // Aliases and `var` parameters may be parts of the same variable, so only bound names are read.
        let scope = self.scope.clone();
        self.scope.retain(|n| n.bound);
        self.bind(&name, index);
        let safe = std::mem::replace(&mut self.safe, true);
        let value = match self.is_simple(element) {
            true => self.value(element, 1),
            false => None,
        };
        self.safe = safe;
        self.scope = scope;
        match value {
            Some(value) => self.line(&format!("{place} := {value};")),
            None if array.may_be_undefined => self.line(&format!("undefine {place};")),
            None if !self.has_symmetric(element) => self.line(&format!("clear {place};")),
            None => self.line(&format!("{place} := {place};")),
        }
        self.close("end;");
    }

    /// Appends a statement that adds an element to a multiset, or removes elements by a predicate.
    fn change_multiset(&mut self) {
        let Some((place, element)) = self.multiset(true) else {
            return self.assignment();
        };
        if self.random.once_in(3) {
            let name = self.slot(&place, element);
            let claim = self.claim(1);
            self.scope.pop();
            return self.line(&format!("multisetremovepred({name}: {place}, {claim});"));
        }
        let value = match self.is_simple(element) {
            true => self.value(element, 1),
            false => self.place(|_, t| t == element, false).map(|p| p.0),
        };
        match value {
            Some(value) => self.line(&format!("multisetadd({value}, {place});")),
            None => self.assignment(),
        }
    }

    /// Appends a call of a procedure, which writes through its `var` parameters.
    fn procedure_call(&mut self) {
        if self.pure || self.functions.is_empty() {
            return self.assignment();
        }
        let function = self.below(self.functions.len());
        let call = match self.functions[function].result {
            None => self.arguments(function),
            Some(_) => None,
        };
        match call {
            Some(call) => self.line(&format!("{call};")),
            None => self.assignment(),
        }
    }

    /// Appends a statement that would end most searches at once if every rule had one.
    fn rare_statement(&mut self) {
        match self.below(12) {
            8..=10 if !self.pure => self.change_multiset(),
            0 => {
                let (a, b, c) = (self.claim(2), self.claim(1), self.claim(1));
                self.line(&format!("assert ({a} | {b} | {c}) \"asserted\";"));
            }
            1 => {
                let (a, b) = (self.claim(2), self.claim(1));
                self.open(&format!("if ({a} & {b}) then"));
                self.line("error \"reached\";");
                self.close("end;");
            }
            2 if !self.pure => {
                let claim = self.claim(1);
                self.line(&format!("assume {claim};"));
            }
            3 if !self.pure => {
                let claim = self.claim(1);
                self.line(&format!("cover \"met\" {claim};"));
            }
            4 => self.line("put \"here\";"),
            _ => self.assignment(),
        }
    }
}
