//! Recursive-descent reader of the threads: their statements, and the instructions that these emit.

use cohkit_diagnostics::suggestion;

use super::order::Order;
use super::tokens::TYPES;
use crate::condition::{location, MAX_INSTRUCTIONS, MAX_THREADS};
use crate::piece::{error_at, error_with_help, Piece, Result};
use crate::program::{
    Acquire, Address, Claim, Instruction, Location, Observable, Operand, Operation, Program,
    Register, StoreVariant, Thread,
};

/// Maximum nesting depth of expressions and statements.
pub(super) const MAX_DEPTH: usize = 64;

/// Returns the register of a variable.
pub(crate) fn variable(thread: &mut Thread, piece: Piece) -> Result<Register> {
    let mut names = thread.names.iter();
    if let Some(register) = names.position(|name| name == piece.text) {
        return Ok(register);
    }
    let message = format!("there is no variable `{}` in this thread", piece.text);
    let names = thread.names.iter().map(String::as_str);
    let names = names.filter(|name| !name.starts_with('.'));
    error_with_help(piece, message, suggestion(piece.text, "variable", names))
}

/// Recursive-descent reader of the threads. Methods consume tokens from `position` on.
pub(super) struct Reader<'r, 't> {
    /// All tokens of the threads, without comments.
    pub(super) tokens: Vec<Piece<'t>>,
    /// True if some thread waits for a grace period. Otherwise read-side critical sections have no effect and are
    /// dropped.
    pub(super) has_grace_period: bool,
    /// Index of the next token.
    pub(super) position: usize,
    /// End of the code, empty.
    pub(super) end: Piece<'t>,
    /// Program that receives the threads.
    pub(super) program: &'r mut Program,
    /// Parameters of the thread: shared locations by name.
    pub(super) shared: Vec<(&'t str, Location)>,
    /// The current thread so far; its number is the number of threads in `program`.
    pub(super) thread: Thread,
    /// First access whose location is known only at run time.
    pub(super) indirect: Option<Piece<'t>>,
}

impl<'t> Reader<'_, 't> {
    /// Returns the next token, or an empty one at the end.
    pub(super) fn peek(&self) -> Piece<'t> {
        self.tokens.get(self.position).copied().unwrap_or(self.end)
    }

    /// Consumes and returns the next token, or an empty one at the end.
    pub(super) fn next(&mut self) -> Piece<'t> {
        let token = self.peek();
        self.position += 1;
        token
    }

    /// Consumes the next token if it is `text`. Returns true if it was.
    pub(super) fn consume_if(&mut self, text: &str) -> bool {
        let matches = self.peek().text == text;
        self.position += usize::from(matches);
        matches
    }

    /// Consumes the next token, which must be `text`.
    pub(super) fn expect(&mut self, text: &str) -> Result<Piece<'t>> {
        let token = self.next();
        match token.text == text {
            true => Ok(token),
            false => error_at(token, format!("`{text}` is expected here")),
        }
    }

    /// Consumes a name. `expected` describes the expected name in the error message.
    pub(super) fn name(&mut self, expected: &str) -> Result<Piece<'t>> {
        let token = self.next();
        let is_name_start = |c: char| c.is_ascii_alphabetic() || c == '_';
        match token.text.starts_with(is_name_start) {
            true => Ok(token),
            false => error_at(token, format!("{expected} is expected here")),
        }
    }

    /// Parses a thread: `P0 (atomic_int* x, atomic_int* y) { }`.
    pub(super) fn function(&mut self) -> Result<()> {
        let number = self.program.threads.len();
        while self.consume_if("void") || self.consume_if("static") {}
        let head = self.expect(&format!("P{number}"))?;
        if number == MAX_THREADS {
            return error_at(head, format!("there are more than {MAX_THREADS} threads"));
        }
        self.expect("(")?;
        self.shared.clear();
        while !self.consume_if(")") {
            let mut parameter = self.name("a parameter")?;
            while !matches!(self.peek().text, "," | ")" | "") {
                match self.consume_if("*") {
                    true => {}
                    false => parameter = self.name("a parameter")?,
                }
            }
            if parameter.text != "void" {
                let location = location(self.program, parameter)?;
                self.shared.push((parameter.text, location));
            }
            if !self.consume_if(",") && self.peek().text != ")" {
                return error_at(self.peek(), "`)` is expected here");
            }
        }
        self.expect("{")?;
        while !self.consume_if("}") {
            self.statement(0)?;
        }
        let thread = std::mem::take(&mut self.thread);
        self.program.threads.push(thread);
        Ok(())
    }

    /// Adds an instruction.
    pub(super) fn emit(&mut self, token: Piece, instruction: Instruction) -> Result<()> {
        if self.thread.code.len() >= MAX_INSTRUCTIONS {
            let message = format!("a thread has at most {MAX_INSTRUCTIONS} instructions");
            return error_at(token, message);
        }
        self.thread.code.push(instruction);
        Ok(())
    }

    /// Adds a register for a variable, or a temporary.
    pub(super) fn register(&mut self, name: Option<&str>) -> Register {
        let count = self.thread.names.len();
        self.thread.registers.push(0);
        self.thread.names.push(match name {
            Some(name) => name.to_string(),
            None => format!(".{count}"),
        });
        count
    }

    /// Parses a statement.
    fn statement(&mut self, depth: usize) -> Result<()> {
        let token = self.peek();
        if depth > MAX_DEPTH {
            return error_at(token, "there are too many statements within each other");
        }
        match token.text {
            ";" => self.expect(";").map(|_| ()),
            "{" => {
                self.expect("{")?;
                while !self.consume_if("}") {
                    self.statement(depth + 1)?;
                }
                Ok(())
            }
            "if" => self.if_statement(depth),
            "while" => self.wait_loop(depth),
            "for" | "do" | "goto" | "return" | "switch" | "break" | "continue" => error_at(
                token,
                format!("`{}` is not supported: programs must terminate", token.text),
            ),
            "*" => {
                self.next();
                let to = self.dereference(depth)?;
                self.expect("=")?;
                let value = self.expression(0, depth, None)?;
                self.expect(";")?;
                self.store(token, to, value, Order::Relaxed)
            }
            _ if TYPES.contains(&token.text) => {
                while TYPES.contains(&self.peek().text) {
                    self.next();
                }
                loop {
                    while self.consume_if("*") {}
                    let name = self.name("a variable")?;
                    let mut names = self.thread.names.iter();
                    let shared = self
                        .shared
                        .iter()
                        .any(|(declared, _)| *declared == name.text);
                    if shared || names.any(|declared| declared == name.text) {
                        return error_at(name, format!("`{}` is declared already", name.text));
                    }
                    let to = self.register(Some(name.text));
                    if self.consume_if("=") {
                        self.assignment(name, to)?;
                    }
                    if !self.consume_if(",") {
                        return self.expect(";").map(|_| ());
                    }
                }
            }
            _ if self
                .tokens
                .get(self.position + 1)
                .is_some_and(|t| t.text == "=") =>
            {
                let name = self.name("a variable")?;
                if self
                    .shared
                    .iter()
                    .any(|(declared, _)| *declared == name.text)
                {
                    return reject_location_assignment(name);
                }
                let to = variable(&mut self.thread, name)?;
                self.expect("=")?;
                self.assignment(name, to)?;
                self.expect(";").map(|_| ())
            }
            _ => {
                self.expression(0, depth, None)?;
                self.expect(";").map(|_| ())
            }
        }
    }

    /// Parses the right-hand side of an assignment to a register.
    fn assignment(&mut self, name: Piece, to: Register) -> Result<()> {
        let a = self.expression(0, 0, Some(to))?;
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

    /// Parses an `if` with an optional `else`.
    fn if_statement(&mut self, depth: usize) -> Result<()> {
        let word = self.expect("if")?;
        self.expect("(")?;
        let value = self.expression(0, depth, None)?;
        self.expect(")")?;
        let condition = match value {
            Operand::Register(register) => register,
            Operand::Number(_) => {
                let message = "this depends on nothing";
                return error_with_help(word, message, "`if (r0 == 1)` asks for a variable");
            }
        };
        let branch = |on, to| Instruction::Branch { on, zero: true, to };
        let branch_index = self.thread.code.len();
        self.emit(word, branch(condition, 0))?;
        self.statement(depth + 1)?;
        let mut target = self.thread.code.len();
        if self.consume_if("else") {
            // Skip the other part: branch on a register that is always zero.
            let zero_register = self.register(None);
            self.emit(word, branch(zero_register, 0))?;
            target = self.thread.code.len();
            self.statement(depth + 1)?;
            let end = self.thread.code.len();
            self.thread.code[target - 1] = branch(zero_register, end);
        }
        self.thread.code[branch_index] = branch(condition, target);
        Ok(())
    }

    /// Parses a waiting loop, `while (*x == 0) { }`, as one successful iteration. This preserves the outcomes, because
    /// the values read in other iterations are not used.
    fn wait_loop(&mut self, depth: usize) -> Result<()> {
        let word = self.expect("while")?;
        self.expect("(")?;
        let begin = self.thread.code.len();
        let value = self.expression(0, depth, None)?;
        self.expect(")")?;
        let condition = self.thread.code[begin..].iter();
        let writes = condition.filter(|instruction| instruction.writes()).count() > 0;
        let (end, length) = (self.position, self.thread.code.len());
        self.statement(depth + 1)?;
        if writes || self.thread.code.len() > length {
            self.position = end;
            let message =
                "a loop that does more than wait is not supported: programs must terminate";
            return error_with_help(word, message, "`while (!atomic_load(x)) { }` waits");
        }
        match value {
            Operand::Register(register) => {
                self.require(register, 0);
                Ok(())
            }
            Operand::Number(_) => error_with_help(
                word,
                "this depends on nothing",
                "`while (r0 == 1)` asks for a variable",
            ),
        }
    }

    /// Restricts the test's executions to those in which a register of this thread has this final value.
    pub(super) fn require(&mut self, register: Register, value: i64) {
        let thread = self.program.threads.len();
        let observed = Observable::Register(thread, register);
        self.program.require(Claim::Equals(observed, value));
    }

    /// Emits a computation into a new temporary and returns its operand. Constants are computed at once.
    pub(super) fn compute(
        &mut self,
        token: Piece,
        operation: Operation,
        a: Operand,
        b: Operand,
    ) -> Result<Operand> {
        if let (Operand::Number(a), Operand::Number(b)) = (a, b) {
            return Ok(Operand::Number(operation.apply(a, b)));
        }
        let to = self.register(None);
        let compute = Instruction::Compute {
            to,
            operation,
            a,
            b,
        };
        self.emit(token, compute)?;
        Ok(Operand::Register(to))
    }

    /// Emits a load. Returns its register.
    pub(super) fn load(
        &mut self,
        token: Piece,
        from: Address,
        order: Order,
        target: Option<Register>,
    ) -> Result<Operand> {
        let to = self.target(target);
        let acquire = match order {
            Order::Sequential => Acquire::Rcsc,
            order if order.acquires() => Acquire::Rcpc,
            _ => Acquire::None,
        };
        self.emit(token, Instruction::Load { to, from, acquire })?;
        Ok(Operand::Register(to))
    }

    /// Emits a store.
    pub(super) fn store(
        &mut self,
        token: Piece,
        to: Address,
        value: Operand,
        order: Order,
    ) -> Result<()> {
        let store = Instruction::Store {
            to,
            value,
            release: order.releases(),
            via: StoreVariant::ProtocolDefault,
        };
        self.emit(token, store)
    }

    /// Returns the register for a result: `target` if the expression ends here, otherwise a new temporary.
    pub(super) fn target(&mut self, target: Option<Register>) -> Register {
        let is_last = matches!(self.peek().text, ";" | ",");
        match target.filter(|_| is_last) {
            Some(to) => to,
            None => self.register(None),
        }
    }
}

/// Rejects an assignment to the name of a location, which is an address.
fn reject_location_assignment<T>(piece: Piece) -> Result<T> {
    let message = format!("`{}` is the address of a location here", piece.text);
    error_with_help(
        piece,
        message,
        format!("`*{0} = 1`, or `WRITE_ONCE(*{0}, 1)`", piece.text),
    )
}
