//! Tests in C, with the atomic accesses of C11.
//!
//! Each is read as compilers make it for AArch64: a load that acquires is `LDAPR`, one that is sequentially consistent
//! `LDAR`; a store that releases or is sequentially consistent is `STLR`; a fence that acquires is `DMB LD`, and all other
//! fences `DMB SY`. What is shared is accessed by atomic functions only. Everything else is refused by name.

use cohkit_protocol::text::suggestion;

use crate::condition::{location, MOST_INSTRUCTIONS, MOST_THREADS};
use crate::piece::{helped, number, wrong, Piece, Result};
use crate::program::{
    Acquire, Change, Fence, Instruction, Location, Operand, Operation, Program, Register, Thread,
    Via,
};

/// Expressions and statements within each other, at most.
const MOST_DEPTH: usize = 64;

/// The functions that are read.
const FUNCTIONS: [&str; 7] = [
    "atomic_load",
    "atomic_store",
    "atomic_exchange",
    "atomic_fetch_add",
    "atomic_fetch_sub",
    "atomic_compare_exchange_strong",
    "atomic_thread_fence",
];

/// Words that begin a declaration.
const TYPES: [&str; 10] = [
    "int",
    "unsigned",
    "long",
    "short",
    "char",
    "int32_t",
    "uint32_t",
    "int64_t",
    "uint64_t",
    "atomic_int",
];

/// What an access is said to be ordered with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Relaxed,
    Acquire,
    Release,
    Both,
    Sequential,
}

impl Order {
    const ALL: [(&'static str, Order); 5] = [
        ("memory_order_relaxed", Order::Relaxed),
        ("memory_order_acquire", Order::Acquire),
        ("memory_order_release", Order::Release),
        ("memory_order_acq_rel", Order::Both),
        ("memory_order_seq_cst", Order::Sequential),
    ];

    fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::Both | Order::Sequential)
    }

    fn releases(self) -> bool {
        matches!(self, Order::Release | Order::Both | Order::Sequential)
    }

    /// The order of an exchange that may fail and is then ordered so: one instruction has both, as it acquires before it is
    /// known whether it fails.
    fn or_failed(self, failed: Order) -> Order {
        match (self, failed) {
            (_, Order::Sequential) => Order::Sequential,
            (Order::Relaxed, Order::Acquire) => Order::Acquire,
            (Order::Release, Order::Acquire) => Order::Both,
            _ => self,
        }
    }
}

/// First values, then the threads: functions `P0`, `P1` and so on.
pub(crate) fn threads(program: &mut Program, code: Piece, first: Piece) -> Result<()> {
    let mut given = Vec::new();
    for item in first.split(';') {
        let known = first_value(program, item)?;
        if known.is_some_and(|at| given.contains(&at)) {
            return wrong(item, "this location has a first value already");
        }
        given.extend(known);
    }
    let bare = without_comments(code);
    let code = Piece {
        text: &bare,
        start: code.start,
    };
    let mut reader = Reader {
        tokens: tokens(code)?,
        at: 0,
        end: code.from(code.text.trim_end().len()).until(0),
        program,
        shared: Vec::new(),
        thread: Thread::default(),
    };
    while reader.at < reader.tokens.len() {
        reader.function()?;
    }
    match program.threads.is_empty() {
        true => helped(
            code.trim().until(0),
            "there are no threads",
            "`P0 (atomic_int* x) { }` begins one",
        ),
        false => Ok(()),
    }
}

/// The register of a variable.
pub(crate) fn variable(thread: &mut Thread, piece: Piece) -> Result<Register> {
    let mut names = thread.names.iter();
    if let Some(register) = names.position(|name| name == piece.text) {
        return Ok(register);
    }
    let message = format!("there is no variable `{}` in this thread", piece.text);
    let names = thread.names.iter().map(String::as_str);
    let names = names.filter(|name| !name.starts_with('.'));
    helped(piece, message, suggestion(piece.text, "variable", names))
}

/// `x = 1`, `[x] = 1`, `int x = 1` or `int x`: the location that is given a value, if one is.
fn first_value(program: &mut Program, item: Piece) -> Result<Option<Location>> {
    if item.text.is_empty() {
        return Ok(None);
    }
    let (left, value) = match item.once("=") {
        Some((left, value)) => (left, Some(value)),
        None => (item, None),
    };
    let name = match left.text.rfind([' ', '\t', '*', '[']) {
        Some(place) => left.from(place + 1),
        None => left,
    };
    let name = name.until(name.text.trim_end_matches([']', ' ']).len());
    let at = location(program, name)?;
    if let Some(value) = value {
        program.initial[usize::from(at)] = number(value)?;
    }
    Ok(value.map(|_| at))
}

/// The text with blanks for comments, so that places stay. One without end goes on to the end.
fn without_comments(code: Piece) -> String {
    let mut bare = String::with_capacity(code.text.len());
    let mut rest = code.text;
    while let Some(place) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        let end = match rest[place..].starts_with("//") {
            true => rest[place..].find('\n'),
            false => rest[place + 2..].find("*/").map(|end| end + 4),
        };
        let end = end.map_or(rest.len(), |end| place + end);
        bare.push_str(&rest[..place]);
        let comment = rest[place..end].bytes();
        bare.extend(comment.map(|b| if b == b'\n' { '\n' } else { ' ' }));
        rest = &rest[end..];
    }
    bare.push_str(rest);
    bare
}

/// Names, numbers, `==`, `!=`, and single characters.
fn tokens(code: Piece) -> Result<Vec<Piece>> {
    let mut tokens = Vec::new();
    let mut rest = code.trim();
    while let Some(first) = rest.text.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match first {
            _ if word(first) => rest.text.find(|c| !word(c)).unwrap_or(rest.text.len()),
            '=' | '!' if rest.text[1..].starts_with('=') => 2,
            '&' | '|' if rest.text[1..].starts_with(first) => {
                let word = rest.until(2);
                let message = format!("`{}` is not read here", word.text);
                return helped(
                    word,
                    message,
                    "an `if` within another, or `&` and `|` of comparisons",
                );
            }
            '(' | ')' | '{' | '}' | ';' | ',' | '*' | '&' | '|' | '^' | '+' | '-' | '=' | '!' => 1,
            _ => {
                let character = rest.until(first.len_utf8());
                return wrong(character, format!("`{first}` is not read here"));
            }
        };
        tokens.push(rest.until(length));
        rest = rest.from(length).trim();
    }
    Ok(tokens)
}

struct Reader<'r, 't> {
    tokens: Vec<Piece<'t>>,
    at: usize,
    /// Where the code ends.
    end: Piece<'t>,
    program: &'r mut Program,
    /// What the thread is given, by name.
    shared: Vec<(&'t str, Location)>,
    thread: Thread,
}

impl<'t> Reader<'_, 't> {
    /// The next token, which is empty at the end.
    fn peek(&self) -> Piece<'t> {
        self.tokens.get(self.at).copied().unwrap_or(self.end)
    }

    fn next(&mut self) -> Piece<'t> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn takes(&mut self, text: &str) -> bool {
        let takes = self.peek().text == text;
        self.at += usize::from(takes);
        takes
    }

    fn expect(&mut self, text: &str) -> Result<Piece<'t>> {
        let token = self.next();
        match token.text == text {
            true => Ok(token),
            false => wrong(token, format!("`{text}` should stand here")),
        }
    }

    /// A name, of whatever it is.
    fn name(&mut self, what: &str) -> Result<Piece<'t>> {
        let token = self.next();
        let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
        match token.text.starts_with(begins) {
            true => Ok(token),
            false => wrong(token, format!("{what} should stand here")),
        }
    }

    /// `P0 (atomic_int* x, atomic_int* y) { }`
    fn function(&mut self) -> Result<()> {
        let number = self.program.threads.len();
        while self.takes("void") || self.takes("static") {}
        let head = self.expect(&format!("P{number}"))?;
        if number == MOST_THREADS {
            return wrong(head, format!("there are more than {MOST_THREADS} threads"));
        }
        self.expect("(")?;
        self.shared.clear();
        while !self.takes(")") {
            let mut last = self.name("a parameter")?;
            while !matches!(self.peek().text, "," | ")" | "") {
                match self.takes("*") {
                    true => {}
                    false => last = self.name("a parameter")?,
                }
            }
            if last.text != "void" {
                let at = location(self.program, last)?;
                self.shared.push((last.text, at));
            }
            if !self.takes(",") && self.peek().text != ")" {
                return wrong(self.peek(), "`)` should stand here");
            }
        }
        self.expect("{")?;
        while !self.takes("}") {
            self.statement(0)?;
        }
        let thread = std::mem::take(&mut self.thread);
        self.program.threads.push(thread);
        Ok(())
    }

    fn emit(&mut self, at: Piece, instruction: Instruction) -> Result<()> {
        if self.thread.code.len() >= MOST_INSTRUCTIONS {
            let message = format!("a thread has at most {MOST_INSTRUCTIONS} instructions");
            return wrong(at, message);
        }
        self.thread.code.push(instruction);
        Ok(())
    }

    /// A register for a variable, or for what has no name.
    fn register(&mut self, name: Option<&str>) -> Register {
        let count = self.thread.names.len();
        self.thread.registers.push(0);
        self.thread.names.push(match name {
            Some(name) => name.to_string(),
            None => format!(".{count}"),
        });
        count
    }

    fn statement(&mut self, depth: usize) -> Result<()> {
        let token = self.peek();
        if depth > MOST_DEPTH {
            return wrong(token, "there are too many statements within each other");
        }
        match token.text {
            ";" => self.expect(";").map(|_| ()),
            "{" => {
                self.expect("{")?;
                while !self.takes("}") {
                    self.statement(depth + 1)?;
                }
                Ok(())
            }
            "if" => self.choice(depth),
            "while" | "for" | "do" | "goto" | "return" | "switch" | "break" | "continue" => wrong(
                token,
                format!("`{}` is not read here: programs end", token.text),
            ),
            "*" => wrong_plain(token),
            _ if TYPES.contains(&token.text) => {
                while TYPES.contains(&self.peek().text) {
                    self.next();
                }
                if self.peek().text == "*" {
                    return wrong(self.peek(), "pointers are not read here");
                }
                let name = self.name("a variable")?;
                let mut names = self.thread.names.iter();
                let shared = self.shared.iter().any(|(other, _)| *other == name.text);
                if shared || names.any(|other| other == name.text) {
                    return wrong(name, format!("`{}` is declared already", name.text));
                }
                let to = self.register(Some(name.text));
                match self.takes("=") {
                    true => self.assigned(name, to),
                    false => self.expect(";").map(|_| ()),
                }
            }
            _ if self.tokens.get(self.at + 1).is_some_and(|t| t.text == "=") => {
                let name = self.name("a variable")?;
                if self.shared.iter().any(|(other, _)| *other == name.text) {
                    return wrong_plain(name);
                }
                let to = variable(&mut self.thread, name)?;
                self.expect("=")?;
                self.assigned(name, to)
            }
            _ => {
                self.expression(0, depth, None)?;
                self.expect(";").map(|_| ())
            }
        }
    }

    /// What follows `=`, up to its semicolon.
    fn assigned(&mut self, name: Piece, to: Register) -> Result<()> {
        let a = self.expression(0, 0, Some(to))?;
        self.expect(";")?;
        if a == Operand::Register(to) {
            return Ok(());
        }
        let (operation, b) = (Operation::Add, Operand::Number(0));
        let compute = Instruction::Compute {
            to,
            operation,
            a,
            b,
        };
        self.emit(name, compute)
    }

    fn choice(&mut self, depth: usize) -> Result<()> {
        let word = self.expect("if")?;
        self.expect("(")?;
        let value = self.expression(0, depth, None)?;
        self.expect(")")?;
        let on = match value {
            Operand::Register(register) => register,
            Operand::Number(_) => {
                let message = "this depends on nothing";
                return helped(word, message, "`if (r0 == 1)` asks for a variable");
            }
        };
        let branch = |on, to| Instruction::Branch { on, zero: true, to };
        let from = self.thread.code.len();
        self.emit(word, branch(on, 0))?;
        self.statement(depth + 1)?;
        let mut behind = self.thread.code.len();
        if self.takes("else") {
            // A register that is always zero leads around the other part.
            let never = self.register(None);
            self.emit(word, branch(never, 0))?;
            behind = self.thread.code.len();
            self.statement(depth + 1)?;
            let end = self.thread.code.len();
            self.thread.code[behind - 1] = branch(never, end);
        }
        self.thread.code[from] = branch(on, behind);
        Ok(())
    }

    /// Operators of this level or of a higher one. What is found by a single access goes to `target`.
    fn expression(
        &mut self,
        level: usize,
        depth: usize,
        target: Option<Register>,
    ) -> Result<Operand> {
        const LEVELS: [&[(&str, Operation)]; 5] = [
            &[("|", Operation::Or)],
            &[("^", Operation::Xor)],
            &[("&", Operation::And)],
            &[("==", Operation::Equal), ("!=", Operation::Equal)],
            &[("+", Operation::Add), ("-", Operation::Subtract)],
        ];
        if depth > MOST_DEPTH {
            return wrong(self.peek(), "there are too many parts within each other");
        }
        let Some(operators) = LEVELS.get(level) else {
            return self.primary(depth, target);
        };
        let mut value = self.expression(level + 1, depth, target)?;
        loop {
            let token = self.peek();
            let Some((word, operation)) = operators.iter().find(|(word, _)| *word == token.text)
            else {
                return Ok(value);
            };
            self.next();
            let other = self.expression(level + 1, depth, None)?;
            value = self.compute(token, *operation, value, other)?;
            if *word == "!=" {
                value = self.compute(token, Operation::Xor, value, Operand::Number(1))?;
            }
        }
    }

    fn compute(
        &mut self,
        at: Piece,
        operation: Operation,
        a: Operand,
        b: Operand,
    ) -> Result<Operand> {
        if let (Operand::Number(a), Operand::Number(b)) = (a, b) {
            return Ok(Operand::Number(operation.of(a, b)));
        }
        let to = self.register(None);
        let compute = Instruction::Compute {
            to,
            operation,
            a,
            b,
        };
        self.emit(at, compute)?;
        Ok(Operand::Register(to))
    }

    fn primary(&mut self, depth: usize, target: Option<Register>) -> Result<Operand> {
        let token = self.next();
        if depth > MOST_DEPTH {
            return wrong(token, "there are too many parts within each other");
        }
        match token.text {
            "(" => {
                let value = self.expression(0, depth + 1, None)?;
                self.expect(")")?;
                Ok(value)
            }
            "-" => {
                let value = self.primary(depth + 1, None)?;
                self.compute(token, Operation::Subtract, Operand::Number(0), value)
            }
            "!" => {
                let value = self.primary(depth + 1, None)?;
                self.compute(token, Operation::Equal, value, Operand::Number(0))
            }
            "*" => wrong_plain(token),
            text if text.starts_with(|c: char| c.is_ascii_digit()) => {
                Ok(Operand::Number(number(token)?))
            }
            text if text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
                if self.peek().text == "(" {
                    return self.call(token, depth, target);
                }
                if self.shared.iter().any(|(name, _)| *name == text) {
                    return wrong_plain(token);
                }
                Ok(Operand::Register(variable(&mut self.thread, token)?))
            }
            _ => wrong(token, "a value should stand here"),
        }
    }

    /// The location that a function is given.
    fn shared(&mut self) -> Result<Location> {
        self.takes("&");
        let token = self.name("a location")?;
        let mut shared = self.shared.iter();
        match shared.find(|(name, _)| *name == token.text) {
            Some(&(_, at)) => Ok(at),
            None => {
                let message = format!("`{}` is no location that this thread is given", token.text);
                let names = self.shared.iter().map(|(name, _)| *name);
                helped(token, message, suggestion(token.text, "location", names))
            }
        }
    }

    /// The order of an access, behind a comma where it is said.
    fn order(&mut self, said: bool, first: bool) -> Result<(Piece<'t>, Order)> {
        if !said {
            return Ok((self.peek(), Order::Sequential));
        }
        if !first {
            self.expect(",")?;
        }
        let token = self.name("an order")?;
        let found = Order::ALL.iter().find(|(name, _)| *name == token.text);
        match found {
            Some((_, order)) => Ok((token, *order)),
            None => {
                let message = format!("`{}` is no order that is read here", token.text);
                let names = Order::ALL.iter().map(|(name, _)| *name);
                helped(token, message, suggestion(token.text, "order", names))
            }
        }
    }

    fn call(&mut self, name: Piece<'t>, depth: usize, target: Option<Register>) -> Result<Operand> {
        let short = name.text.strip_suffix("_explicit");
        let (function, mut said) = (short.unwrap_or(name.text), short.is_some());
        if !FUNCTIONS.contains(&function) {
            let message = format!("`{}` is no function that is read here", name.text);
            let help = match function {
                "atomic_compare_exchange_weak" => {
                    "it may fail for no reason; `atomic_compare_exchange_strong` is read".into()
                }
                _ => suggestion(function, "function", FUNCTIONS.into_iter()),
            };
            return helped(name, message, help);
        }
        self.expect("(")?;
        if function == "atomic_thread_fence" {
            let (_, order) = self.order(true, true)?;
            self.expect(")")?;
            let fence = match order {
                Order::Relaxed => return Ok(Operand::Number(0)),
                Order::Acquire => Fence::Loads,
                Order::Release | Order::Both | Order::Sequential => Fence::Full,
            };
            self.emit(name, Instruction::Fence(fence))?;
            return Ok(Operand::Number(0));
        }
        let at = self.shared()?;
        let mut expected = None;
        if function == "atomic_compare_exchange_strong" {
            self.expect(",")?;
            self.expect("&")?;
            let own = self.name("a variable")?;
            expected = Some(variable(&mut self.thread, own)?);
        }
        let mut value = Operand::Number(0);
        if function != "atomic_load" {
            self.expect(",")?;
            value = self.expression(0, depth + 1, None)?;
        }
        let (word, mut order) = self.order(said, false)?;
        said &= expected.is_some();
        if said {
            let (word, failed) = self.order(true, false)?;
            if failed.releases() && failed != Order::Sequential {
                return wrong(word, "what fails writes nothing that could release");
            }
            order = order.or_failed(failed);
        }
        self.expect(")")?;
        let wrong_order = match function {
            "atomic_load" => matches!(order, Order::Release | Order::Both),
            "atomic_store" => matches!(order, Order::Acquire | Order::Both),
            _ => false,
        };
        if wrong_order {
            let message = format!("`{}` is no order of `{}`", word.text, name.text);
            return wrong(word, message);
        }
        if function == "atomic_store" {
            let release = order.releases();
            let store = Instruction::Store {
                to: at,
                value,
                release,
                via: Via::Text,
            };
            self.emit(name, store)?;
            return Ok(Operand::Number(0));
        }
        if let Some(own) = expected {
            return self.exchanged_if(name, at, own, value, order);
        }
        // What nothing else is done with goes where it is to be.
        let target = target.filter(|_| self.peek().text == ";");
        let to = match target {
            Some(to) => to,
            None => self.register(None),
        };
        if function == "atomic_load" {
            let acquire = match order {
                Order::Sequential => Acquire::Full,
                order if order.acquires() => Acquire::Later,
                _ => Acquire::No,
            };
            let from = at;
            self.emit(name, Instruction::Load { to, from, acquire })?;
            return Ok(Operand::Register(to));
        }
        if function == "atomic_fetch_sub" {
            value = self.compute(name, Operation::Subtract, Operand::Number(0), value)?;
        }
        let change = match function {
            "atomic_exchange" => Change::Set,
            _ => Change::Add,
        };
        let atomic = Instruction::Atomic {
            to,
            at,
            change,
            value,
            acquire: order.acquires(),
            release: order.releases(),
            via: Via::Text,
        };
        self.emit(name, atomic)?;
        Ok(Operand::Register(to))
    }

    /// What is found goes where what was expected stood, which it is if the exchange was made.
    fn exchanged_if(
        &mut self,
        name: Piece,
        at: Location,
        own: Register,
        value: Operand,
        order: Order,
    ) -> Result<Operand> {
        let before = self.register(None);
        let copy = Instruction::Compute {
            to: before,
            operation: Operation::Add,
            a: Operand::Register(own),
            b: Operand::Number(0),
        };
        self.emit(name, copy)?;
        let (before, found) = (Operand::Register(before), Operand::Register(own));
        let atomic = Instruction::Atomic {
            to: own,
            at,
            change: Change::SetIf(before),
            value,
            acquire: order.acquires(),
            release: order.releases(),
            via: Via::Text,
        };
        self.emit(name, atomic)?;
        self.compute(name, Operation::Equal, found, before)
    }
}

/// What is shared is not accessed by name.
fn wrong_plain<T>(piece: Piece) -> Result<T> {
    let message = "what is shared is accessed by atomic functions only";
    helped(piece, message, "`atomic_load(x)`, `atomic_store(x, 1)`")
}
