//! Reader for tests in C, with the atomic accesses of C11 and those of the Linux kernel.
//!
//! Accesses are mapped to AArch64, as compilers do:
//!
//! | C | AArch64 |
//! |---|---|
//! | acquire load | `LDAPR` |
//! | sequentially consistent load | `LDAR` |
//! | release or sequentially consistent store | `STLR` |
//! | acquire fence, `smp_rmb` | `DMB LD` |
//! | other fences of C11 | `DMB SY` |
//! | `smp_wmb` | `DMB ST` |
//! | plain access of a shared location | as a relaxed access |
//!
//! A waiting loop is read as one iteration that succeeds: [`Program::filter`] excludes executions in which the thread
//! would wait longer. All other constructs are rejected by name.

use cohkit_diagnostics::suggestion;

use crate::condition::{location, MAX_INSTRUCTIONS, MAX_THREADS};
use crate::piece::{error_at, error_with_help, number, Piece, Result};
use crate::program::{
    address_of, location_at, Acquire, Address, Change, Claim, Fence, Instruction, Location,
    Observed, Operand, Operation, Program, Rcu, Register, StoreVariant, Thread,
};

/// Maximum nesting depth of expressions and statements.
const MAX_DEPTH: usize = 64;

/// Effect of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Function {
    /// Loads from an address.
    Load(Order),
    /// Stores to an address.
    Store(Order),
    /// Stores, followed by a full fence.
    StoreFence,
    /// Atomic read and write. Returns the old value, the new value, or nothing.
    Update(Change, Order, ReturnedValue),
    /// Atomic addition of a constant that the function implies.
    AddConstant(i64, Order, ReturnedValue),
    /// C11 compare-and-exchange: the variable of the expected value receives the old value. Returns 1 on success,
    /// otherwise 0.
    C11CompareExchange(Order),
    /// Compare-and-exchange of the kernel. Returns the old value.
    CompareExchange(Order),
    /// Adds a number unless the old value equals another. Returns 1 if it added, otherwise 0.
    AddUnless,
    /// Adds 1 unless the old value is 0. Returns 1 if it added, otherwise 0.
    IncrementNotZero,
    /// Acquires a lock. Executions in which the lock is not free are excluded.
    Lock,
    /// Acquires a lock if it is free. Returns 1 on success, otherwise 0.
    TryLock,
    /// Releases a lock.
    Unlock,
    /// Operation of read-copy-update.
    Rcu(Rcu),
    /// Fence with its order as argument.
    FenceWithOrder,
    /// Fence with a fixed order.
    Fence(Fence),
    /// No effect in this model.
    NoEffect,
}

/// Return value of an atomic read and write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReturnedValue {
    Before,
    After,
    Nothing,
}

/// Functions of C11 and of the Linux kernel, without the suffixes that state an order.
const FUNCTIONS: [(&str, Function); 60] = {
    use self::Function as F;
    use self::Order::{Acquire, AcquireRelease, Relaxed, Release, Sequential};
    const AND: Change = Change::FetchOp(Operation::And);
    const OR: Change = Change::FetchOp(Operation::Or);
    const XOR: Change = Change::FetchOp(Operation::Xor);
    [
        ("atomic_load", F::Load(Sequential)),
        ("atomic_store", F::Store(Sequential)),
        (
            "atomic_exchange",
            F::Update(Change::Exchange, Sequential, ReturnedValue::Before),
        ),
        (
            "atomic_fetch_add",
            F::Update(Change::FetchAdd, AcquireRelease, ReturnedValue::Before),
        ),
        (
            "atomic_fetch_sub",
            F::Update(SUBTRACT, AcquireRelease, ReturnedValue::Before),
        ),
        (
            "atomic_fetch_and",
            F::Update(AND, AcquireRelease, ReturnedValue::Before),
        ),
        (
            "atomic_fetch_or",
            F::Update(OR, AcquireRelease, ReturnedValue::Before),
        ),
        (
            "atomic_fetch_xor",
            F::Update(XOR, AcquireRelease, ReturnedValue::Before),
        ),
        (
            "atomic_compare_exchange_strong",
            F::C11CompareExchange(Sequential),
        ),
        ("atomic_thread_fence", F::FenceWithOrder),
        ("READ_ONCE", F::Load(Relaxed)),
        ("WRITE_ONCE", F::Store(Relaxed)),
        ("smp_load_acquire", F::Load(Acquire)),
        ("smp_store_release", F::Store(Release)),
        ("smp_store_mb", F::StoreFence),
        ("smp_mb", F::Fence(Fence::Full)),
        ("smp_rmb", F::Fence(Fence::Loads)),
        ("smp_wmb", F::Fence(Fence::Stores)),
        ("smp_mb__before_atomic", F::Fence(Fence::Full)),
        ("smp_mb__after_atomic", F::Fence(Fence::Full)),
        ("barrier", F::NoEffect),
        ("rcu_read_lock", F::Rcu(Rcu::ReadLock)),
        ("rcu_read_unlock", F::Rcu(Rcu::ReadUnlock)),
        ("synchronize_rcu", F::Rcu(Rcu::Synchronize)),
        ("synchronize_rcu_expedited", F::Rcu(Rcu::Synchronize)),
        ("rcu_dereference", F::Load(Relaxed)),
        ("rcu_assign_pointer", F::Store(Release)),
        (
            "xchg",
            F::Update(Change::Exchange, AcquireRelease, ReturnedValue::Before),
        ),
        ("cmpxchg", F::CompareExchange(AcquireRelease)),
        (
            "atomic_xchg",
            F::Update(Change::Exchange, AcquireRelease, ReturnedValue::Before),
        ),
        ("atomic_cmpxchg", F::CompareExchange(AcquireRelease)),
        ("atomic_read", F::Load(Relaxed)),
        ("atomic_read_acquire", F::Load(Acquire)),
        ("atomic_set", F::Store(Relaxed)),
        ("atomic_set_release", F::Store(Release)),
        (
            "atomic_add",
            F::Update(Change::FetchAdd, Relaxed, ReturnedValue::Nothing),
        ),
        (
            "atomic_sub",
            F::Update(SUBTRACT, Relaxed, ReturnedValue::Nothing),
        ),
        (
            "atomic_and",
            F::Update(AND, Relaxed, ReturnedValue::Nothing),
        ),
        ("atomic_or", F::Update(OR, Relaxed, ReturnedValue::Nothing)),
        (
            "atomic_xor",
            F::Update(XOR, Relaxed, ReturnedValue::Nothing),
        ),
        (
            "atomic_add_return",
            F::Update(Change::FetchAdd, AcquireRelease, ReturnedValue::After),
        ),
        (
            "atomic_sub_return",
            F::Update(SUBTRACT, AcquireRelease, ReturnedValue::After),
        ),
        (
            "atomic_inc",
            F::AddConstant(1, Relaxed, ReturnedValue::Nothing),
        ),
        (
            "atomic_dec",
            F::AddConstant(-1, Relaxed, ReturnedValue::Nothing),
        ),
        (
            "atomic_inc_return",
            F::AddConstant(1, AcquireRelease, ReturnedValue::After),
        ),
        (
            "atomic_dec_return",
            F::AddConstant(-1, AcquireRelease, ReturnedValue::After),
        ),
        (
            "atomic_fetch_inc",
            F::AddConstant(1, AcquireRelease, ReturnedValue::Before),
        ),
        (
            "atomic_fetch_dec",
            F::AddConstant(-1, AcquireRelease, ReturnedValue::Before),
        ),
        ("smp_read_barrier_depends", F::NoEffect),
        ("smp_acquire__after_ctrl_dep", F::Fence(Fence::Loads)),
        ("lockless_dereference", F::Load(Relaxed)),
        ("atomic_add_unless", F::AddUnless),
        ("atomic_inc_not_zero", F::IncrementNotZero),
        ("spin_lock", F::Lock),
        ("spin_trylock", F::TryLock),
        ("spin_unlock", F::Unlock),
        ("spin_is_locked", F::Load(Relaxed)),
        ("smp_mb__after_spinlock", F::Fence(Fence::Full)),
        ("smp_mb__after_unlock_lock", F::Fence(Fence::Full)),
        ("cpu_relax", F::NoEffect),
    ]
};

/// Change of `atomic_fetch_sub`.
const SUBTRACT: Change = Change::FetchOp(Operation::Subtract);

/// Returns the function of a name, which may end in a memory order. The flag is true if the last arguments are the
/// orders.
fn function(name: &str) -> Option<(Function, bool)> {
    let find = |name: &str| {
        let mut functions = FUNCTIONS.iter();
        functions
            .find(|(candidate, _)| *candidate == name)
            .map(|(_, function)| *function)
    };
    if let Some(short) = name.strip_suffix("_explicit") {
        let ordered = |function: &Function| {
            !matches!(function, Function::Fence(_) | Function::NoEffect)
                && short.starts_with("atomic_")
        };
        return find(short).filter(ordered).map(|function| (function, true));
    }
    if let Some(function) = find(name) {
        return Some((function, function == Function::FenceWithOrder));
    }
    let (short, order) = [
        ("_relaxed", Order::Relaxed),
        ("_acquire", Order::Acquire),
        ("_release", Order::Release),
    ]
    .into_iter()
    .find_map(|(suffix, order)| Some((name.strip_suffix(suffix)?, order)))?;
    match find(short)? {
        Function::Update(change, Order::AcquireRelease, returned_value) => {
            Some((Function::Update(change, order, returned_value), false))
        }
        Function::AddConstant(amount, Order::AcquireRelease, returned_value) => {
            Some((Function::AddConstant(amount, order, returned_value), false))
        }
        Function::CompareExchange(_) => Some((Function::CompareExchange(order), false)),
        _ => None,
    }
}

/// Type names, which begin a declaration.
const TYPES: [&str; 40] = [
    "void",
    "__int128",
    "__int128_t",
    "__uint128_t",
    "int8_t",
    "uint8_t",
    "int16_t",
    "uint16_t",
    "atomic_uint",
    "atomic_bool",
    "atomic_long_t",
    "atomic64_t",
    "s8",
    "u8",
    "s16",
    "u16",
    "s32",
    "u32",
    "s64",
    "u64",
    "volatile",
    "const",
    "signed",
    "size_t",
    "intptr_t",
    "uintptr_t",
    "bool",
    "_Bool",
    "atomic_t",
    "atomic_long",
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

/// Memory order of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Relaxed,
    Acquire,
    Release,
    AcquireRelease,
    Sequential,
}

impl Order {
    const ALL: [(&'static str, Order); 5] = [
        ("memory_order_relaxed", Order::Relaxed),
        ("memory_order_acquire", Order::Acquire),
        ("memory_order_release", Order::Release),
        ("memory_order_acq_rel", Order::AcquireRelease),
        ("memory_order_seq_cst", Order::Sequential),
    ];

    fn acquires(self) -> bool {
        matches!(
            self,
            Order::Acquire | Order::AcquireRelease | Order::Sequential
        )
    }

    fn releases(self) -> bool {
        matches!(
            self,
            Order::Release | Order::AcquireRelease | Order::Sequential
        )
    }

    /// Returns the order of a compare-and-exchange with the failure order `failed`. One instruction has both, because
    /// it acquires before its success is known.
    fn with_failure_order(self, failed: Order) -> Order {
        match (self, failed) {
            (_, Order::Sequential) => Order::Sequential,
            (Order::Relaxed, Order::Acquire) => Order::Acquire,
            (Order::Release, Order::Acquire) => Order::AcquireRelease,
            _ => self,
        }
    }
}

/// Parses the initial values, then the threads: functions `P0`, `P1` and so on.
///
/// Returns the first access whose location is known only at run time, if any.
pub(crate) fn threads<'t>(
    program: &mut Program,
    code: Piece<'t>,
    initial_values: Piece<'t>,
) -> Result<Option<Piece<'t>>> {
    let mut initialised = Vec::new();
    for item in initial_values.split(';') {
        let location = parse_initial_value(program, item)?;
        if location.is_some_and(|location| initialised.contains(&location)) {
            return error_at(item, "this location has a first value already");
        }
        initialised.extend(location);
    }
    let blanked = without_comments(code);
    let text = code;
    let code = Piece {
        text: &blanked,
        start: code.start,
    };
    let tokens = tokens(code)?;
    let mut reader = Reader {
        has_grace_period: tokens
            .iter()
            .any(|token| token.text.starts_with("synchronize_rcu")),
        tokens,
        position: 0,
        end: code.from(code.text.trim_end().len()).until(0),
        program,
        shared: Vec::new(),
        thread: Thread::default(),
        indirect: None,
    };
    while reader.position < reader.tokens.len() {
        reader.function()?;
    }
    // The same slice of the original source, with comments.
    let indirect = reader.indirect.map(|piece| {
        let offset = piece.start - text.start;
        text.from(offset).until(piece.text.len())
    });
    match program.threads.is_empty() {
        true => error_with_help(
            code.trim().until(0),
            "there are no threads",
            "`P0 (atomic_int* x) { }` begins one",
        ),
        false => Ok(indirect),
    }
}

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

/// Parses `x = 1`, `[x] = 1`, `int x = 1` or `int x`. Returns the location if the item gives it a value.
fn parse_initial_value(program: &mut Program, item: Piece) -> Result<Option<Location>> {
    if item.text.is_empty() {
        return Ok(None);
    }
    let (declaration, value) = match item.once("=") {
        Some((declaration, value)) => (declaration, Some(value)),
        None => (item, None),
    };
    let name = match declaration.text.rfind([' ', '\t', '*', '[']) {
        Some(index) => declaration.from(index + 1),
        None => declaration,
    };
    let name = name.until(name.text.trim_end_matches([']', ' ']).len());
    let location = location(program, name)?;
    if let Some(value) = value {
        program.initial[usize::from(location)] = crate::condition::value(program, value)?;
    }
    Ok(value.map(|_| location))
}

/// Replaces comments by blanks, which keeps byte offsets. An unterminated comment extends to the end.
fn without_comments(code: Piece) -> String {
    let mut blanked = String::with_capacity(code.text.len());
    let mut rest = code.text;
    while let Some(comment_start) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        let end = match rest[comment_start..].starts_with("//") {
            true => rest[comment_start..].find('\n'),
            false => rest[comment_start + 2..].find("*/").map(|end| end + 4),
        };
        let end = end.map_or(rest.len(), |end| comment_start + end);
        blanked.push_str(&rest[..comment_start]);
        let comment = rest[comment_start..end].bytes();
        blanked.extend(comment.map(|b| if b == b'\n' { '\n' } else { ' ' }));
        rest = &rest[end..];
    }
    blanked.push_str(rest);
    blanked
}

/// Splits code into tokens: names, numbers, operators of two characters, and single characters.
fn tokens(code: Piece) -> Result<Vec<Piece>> {
    let mut tokens = Vec::new();
    let mut rest = code.trim();
    while let Some(first) = rest.text.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match first {
            _ if is_word(first) => rest.text.find(|c| !is_word(c)).unwrap_or(rest.text.len()),
            '=' | '!' | '<' | '>' if rest.text[1..].starts_with('=') => 2,
            '&' | '|' | '<' if rest.text[1..].starts_with(first) => 2,
            '(' | ')' | '{' | '}' | ';' | ',' | '*' | '&' | '|' | '^' | '+' | '-' | '=' | '!'
            | '<' | '>' | '~' => 1,
            _ => {
                let character = rest.until(first.len_utf8());
                return error_at(character, format!("`{first}` is not supported"));
            }
        };
        tokens.push(rest.until(length));
        rest = rest.from(length).trim();
    }
    Ok(tokens)
}

/// Recursive-descent reader of the threads.
struct Reader<'r, 't> {
    tokens: Vec<Piece<'t>>,
    /// True if some thread waits for a grace period. Otherwise read-side critical sections have no effect and are
    /// dropped.
    has_grace_period: bool,
    position: usize,
    /// End of the code, empty.
    end: Piece<'t>,
    program: &'r mut Program,
    /// Parameters of the thread: shared locations by name.
    shared: Vec<(&'t str, Location)>,
    thread: Thread,
    /// First access whose location is known only at run time.
    indirect: Option<Piece<'t>>,
}

impl<'t> Reader<'_, 't> {
    /// Returns the next token, or an empty one at the end.
    fn peek(&self) -> Piece<'t> {
        self.tokens.get(self.position).copied().unwrap_or(self.end)
    }

    fn next(&mut self) -> Piece<'t> {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn consume_if(&mut self, text: &str) -> bool {
        let matches = self.peek().text == text;
        self.position += usize::from(matches);
        matches
    }

    fn expect(&mut self, text: &str) -> Result<Piece<'t>> {
        let token = self.next();
        match token.text == text {
            true => Ok(token),
            false => error_at(token, format!("`{text}` is expected here")),
        }
    }

    /// Consumes a name. `expected` describes the expected name in the error message.
    fn name(&mut self, expected: &str) -> Result<Piece<'t>> {
        let token = self.next();
        let is_name_start = |c: char| c.is_ascii_alphabetic() || c == '_';
        match token.text.starts_with(is_name_start) {
            true => Ok(token),
            false => error_at(token, format!("{expected} is expected here")),
        }
    }

    /// Parses a thread: `P0 (atomic_int* x, atomic_int* y) { }`.
    fn function(&mut self) -> Result<()> {
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
    fn emit(&mut self, token: Piece, instruction: Instruction) -> Result<()> {
        if self.thread.code.len() >= MAX_INSTRUCTIONS {
            let message = format!("a thread has at most {MAX_INSTRUCTIONS} instructions");
            return error_at(token, message);
        }
        self.thread.code.push(instruction);
        Ok(())
    }

    /// Adds a register for a variable, or a temporary.
    fn register(&mut self, name: Option<&str>) -> Register {
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
    fn require(&mut self, register: Register, value: i64) {
        let thread = self.program.threads.len();
        let observed = Observed::Register(thread, register);
        self.program.require(Claim::Equals(observed, value));
    }

    /// Parses operators of this precedence level or of a higher one. The result of a single access goes to `target`.
    fn expression(
        &mut self,
        level: usize,
        depth: usize,
        target: Option<Register>,
    ) -> Result<Operand> {
        const LEVELS: [&[(&str, Operation)]; 9] = [
            &[("||", Operation::Or)],
            &[("&&", Operation::And)],
            &[("|", Operation::Or)],
            &[("^", Operation::Xor)],
            &[("&", Operation::And)],
            &[("==", Operation::Equal), ("!=", Operation::Equal)],
            &[
                ("<", Operation::Less),
                (">", Operation::Less),
                ("<=", Operation::Less),
                (">=", Operation::Less),
            ],
            &[("<<", Operation::ShiftLeft)],
            &[("+", Operation::Add), ("-", Operation::Subtract)],
        ];
        if depth > MAX_DEPTH {
            return error_at(self.peek(), "there are too many parts within each other");
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
            let accesses = self.access_count();
            let mut right = self.expression(level + 1, depth, None)?;
            if matches!(*word, "&&" | "||") {
                if self.access_count() > accesses {
                    let message =
                        format!("the access after `{word}` depends on the operand before it");
                    return error_with_help(token, message, "an `if` within another says the same");
                }
                value = self.truth_value(token, value)?;
                right = self.truth_value(token, right)?;
            }
            // `a > b` is `b < a`, and `a <= b` is its negation.
            if matches!(*word, ">" | "<=") {
                std::mem::swap(&mut value, &mut right);
            }
            value = self.compute(token, *operation, value, right)?;
            if matches!(*word, "!=" | "<=" | ">=") {
                value = self.compute(token, Operation::Xor, value, Operand::Number(1))?;
            }
        }
    }

    /// Returns the number of accesses of the thread so far.
    fn access_count(&self) -> usize {
        let code = self.thread.code.iter();
        code.filter(|instruction| instruction.address().is_some())
            .count()
    }

    /// Converts a value to a truth value: 1 if it is not zero, otherwise 0.
    fn truth_value(&mut self, token: Piece, value: Operand) -> Result<Operand> {
        let zero = Operand::Number(0);
        let equal = self.compute(token, Operation::Equal, value, zero)?;
        self.compute(token, Operation::Equal, equal, zero)
    }

    fn compute(
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

    /// Parses an operand: a number, a name, a call, a cast, or a unary operator with its operand.
    fn primary(&mut self, depth: usize, target: Option<Register>) -> Result<Operand> {
        let token = self.next();
        if depth > MAX_DEPTH {
            return error_at(token, "there are too many parts within each other");
        }
        match token.text {
            // Cast to a type.
            "(" if TYPES.contains(&self.peek().text) => {
                while TYPES.contains(&self.peek().text) || self.peek().text == "*" {
                    self.next();
                }
                self.expect(")")?;
                self.primary(depth + 1, target)
            }
            "(" => {
                let value = self.expression(0, depth + 1, None)?;
                self.expect(")")?;
                Ok(value)
            }
            "-" => {
                let value = self.primary(depth + 1, None)?;
                self.compute(token, Operation::Subtract, Operand::Number(0), value)
            }
            "~" => {
                let value = self.primary(depth + 1, None)?;
                self.compute(token, Operation::Xor, value, Operand::Number(-1))
            }
            "!" => {
                let value = self.primary(depth + 1, None)?;
                self.compute(token, Operation::Equal, value, Operand::Number(0))
            }
            "*" => {
                let from = self.dereference(depth + 1)?;
                self.load(token, from, Order::Relaxed, target)
            }
            "&" if self.location().is_some() => {
                let token = self.next();
                self.named_value(token)
            }
            text if text.starts_with(|c: char| c.is_ascii_digit()) => {
                Ok(Operand::Number(number(token)?))
            }
            text if text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
                match self.peek().text == "(" {
                    true => self.call(token, depth, target),
                    false => self.named_value(token),
                }
            }
            _ => error_at(token, "a value is expected here"),
        }
    }

    /// Returns the location that the next token names, if any.
    fn location(&self) -> Option<Location> {
        let name = self.peek().text;
        let mut shared = self.shared.iter();
        shared
            .find(|(declared, _)| *declared == name)
            .map(|(_, location)| *location)
    }

    /// Returns the value of a name: the address of a location, or the variable's register.
    fn named_value(&mut self, token: Piece<'t>) -> Result<Operand> {
        let mut shared = self.shared.iter();
        match shared.find(|(name, _)| *name == token.text) {
            Some((_, location)) => Ok(Operand::Number(address_of(*location))),
            None => Ok(Operand::Register(variable(&mut self.thread, token)?)),
        }
    }

    /// Returns the location at an address.
    fn address_of_operand(&mut self, token: Piece<'t>, address: Operand) -> Result<Address> {
        match address {
            Operand::Number(address) => match location_at(address) {
                Some(location) => Ok(Address::Direct(location)),
                None => error_at(token, "this is the address of no location"),
            },
            Operand::Register(register) => {
                self.indirect = self.indirect.or(Some(token));
                Ok(Address::Indirect(register))
            }
        }
    }

    /// Parses the operand of `*`.
    fn dereference(&mut self, depth: usize) -> Result<Address> {
        let token = self.peek();
        let address = self.primary(depth + 1, None)?;
        self.address_of_operand(token, address)
    }

    /// Parses the location argument of a function: an address, or `*` and a name if the function is a macro.
    fn location_argument(&mut self, depth: usize, is_macro: bool) -> Result<Address> {
        let token = self.peek();
        if is_macro && self.consume_if("*") {
            return self.dereference(depth);
        }
        let address = self.argument(depth)?;
        self.address_of_operand(token, address)
    }

    /// Parses an argument of a function, which may be the address of a location.
    fn argument(&mut self, depth: usize) -> Result<Operand> {
        let token = self.peek();
        let is_name_start = |c: char| c.is_ascii_alphabetic() || c == '_';
        let next_token = self.tokens.get(self.position + 1);
        let is_whole_argument = next_token.is_none_or(|t| matches!(t.text, "," | ")"));
        let variable = self.thread.names.iter().any(|name| *name == token.text);
        if token.text.starts_with(is_name_start)
            && is_whole_argument
            && self.location().is_none()
            && !variable
        {
            let message = format!("`{}` is no location that this thread is given", token.text);
            let names = self.shared.iter().map(|(name, _)| *name);
            return error_with_help(token, message, suggestion(token.text, "location", names));
        }
        self.expression(0, depth + 1, None)
    }

    /// Emits a load. Returns its register.
    fn load(
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
    fn store(&mut self, token: Piece, to: Address, value: Operand, order: Order) -> Result<()> {
        let store = Instruction::Store {
            to,
            value,
            release: order.releases(),
            via: StoreVariant::ProtocolDefault,
        };
        self.emit(token, store)
    }

    /// Returns the register for a result: `target` if the expression ends here, otherwise a new temporary.
    fn target(&mut self, target: Option<Register>) -> Register {
        let is_last = matches!(self.peek().text, ";" | ",");
        match target.filter(|_| is_last) {
            Some(to) => to,
            None => self.register(None),
        }
    }

    /// Parses a memory order.
    fn order(&mut self) -> Result<(Piece<'t>, Order)> {
        let token = self.name("an order")?;
        let order = Order::ALL.iter().find(|(name, _)| *name == token.text);
        match order {
            Some((_, order)) => Ok((token, *order)),
            None => {
                let message = format!("`{}` is no order that is supported here", token.text);
                let names = Order::ALL.iter().map(|(name, _)| *name);
                error_with_help(token, message, suggestion(token.text, "order", names))
            }
        }
    }

    /// Parses the arguments of a function, and emits its instructions.
    fn call(&mut self, name: Piece<'t>, depth: usize, target: Option<Register>) -> Result<Operand> {
        let Some((function, has_order)) = function(name.text) else {
            return self.reject_function(name);
        };
        if depth > MAX_DEPTH {
            return error_at(name, "there are too many parts within each other");
        }
        let nothing = Ok(Operand::Number(0));
        // The first argument of these kernel macros is the accessed object itself, not its address.
        let is_macro = matches!(
            name.text,
            "READ_ONCE"
                | "WRITE_ONCE"
                | "rcu_dereference"
                | "rcu_assign_pointer"
                | "lockless_dereference"
                | "smp_store_mb"
        );
        self.expect("(")?;
        match function {
            Function::NoEffect => self.expect(")").and(nothing),
            Function::Rcu(operation) => {
                self.expect(")")?;
                match self.has_grace_period {
                    true => self.emit(name, Instruction::Rcu(operation)).and(nothing),
                    false => nothing,
                }
            }
            Function::Fence(fence) => {
                self.expect(")")?;
                self.emit(name, Instruction::Fence(fence)).and(nothing)
            }
            Function::FenceWithOrder => {
                let (_, order) = self.order()?;
                self.expect(")")?;
                let fence = match order {
                    Order::Relaxed => return nothing,
                    Order::Acquire => Fence::Loads,
                    Order::Release | Order::AcquireRelease | Order::Sequential => Fence::Full,
                };
                self.emit(name, Instruction::Fence(fence)).and(nothing)
            }
            Function::Load(order) => {
                let from = self.location_argument(depth, is_macro)?;
                let forbidden = [Order::Release, Order::AcquireRelease];
                let order = self.last_order(has_order, order, (name, &forbidden))?;
                self.load(name, from, order, target)
            }
            Function::Store(order) => {
                let to = self.location_argument(depth, is_macro)?;
                self.expect(",")?;
                let value = self.expression(0, depth + 1, None)?;
                let forbidden = [Order::Acquire, Order::AcquireRelease];
                let order = self.last_order(has_order, order, (name, &forbidden))?;
                self.store(name, to, value, order).and(nothing)
            }
            Function::StoreFence => {
                let to = self.location_argument(depth, is_macro)?;
                self.expect(",")?;
                let value = self.expression(0, depth + 1, None)?;
                self.expect(")")?;
                self.store(name, to, value, Order::Relaxed)?;
                self.emit(name, Instruction::Fence(Fence::Full))
                    .and(nothing)
            }
            Function::Update(change, order, returned_value) => {
                let (first, mut address) = (self.peek(), self.argument(depth)?);
                self.expect(",")?;
                let (second, mut value) = (self.peek(), self.argument(depth)?);
                let pointer = |operand| match operand {
                    Operand::Number(number) => location_at(number).is_some(),
                    Operand::Register(_) => false,
                };
                let mut token = first;
                // In functions of the kernel the operand comes first.
                if pointer(value) && !pointer(address) {
                    std::mem::swap(&mut address, &mut value);
                    token = second;
                }
                let address = self.address_of_operand(token, address)?;
                let order = self.last_order(has_order, order, (name, &[]))?;
                self.update(
                    name,
                    (address, change, value),
                    order,
                    returned_value,
                    target,
                )
            }
            Function::AddConstant(amount, order, returned_value) => {
                let address = self.location_argument(depth, false)?;
                self.expect(")")?;
                let change = (address, Change::FetchAdd, Operand::Number(amount));
                self.update(name, change, order, returned_value, target)
            }
            Function::CompareExchange(order) => {
                let address = self.location_argument(depth, is_macro)?;
                self.expect(",")?;
                let expected = self.expression(0, depth + 1, None)?;
                self.expect(",")?;
                let value = self.expression(0, depth + 1, None)?;
                self.expect(")")?;
                let change = (address, Change::CompareAndSwap(expected), value);
                self.update(name, change, order, ReturnedValue::Before, target)
            }
            Function::C11CompareExchange(order) => {
                let address = self.location_argument(depth, is_macro)?;
                self.expect(",")?;
                let expected = self.expected_storage(depth)?;
                self.expect(",")?;
                let value = self.expression(0, depth + 1, None)?;
                let mut order = order;
                if has_order {
                    self.expect(",")?;
                    order = self.order()?.1;
                    self.expect(",")?;
                    let (word, failed) = self.order()?;
                    if failed.releases() && failed != Order::Sequential {
                        return error_at(
                            word,
                            "a failed exchange writes nothing, so its order cannot release",
                        );
                    }
                    order = order.with_failure_order(failed);
                }
                self.expect(")")?;
                self.emit_compare_exchange(name, address, expected, value, order)
            }
            Function::AddUnless => {
                let address = self.location_argument(depth, is_macro)?;
                self.expect(",")?;
                let amount = self.expression(0, depth + 1, None)?;
                self.expect(",")?;
                let unless = self.expression(0, depth + 1, None)?;
                self.expect(")")?;
                self.add_unless(name, address, amount, unless)
            }
            Function::IncrementNotZero => {
                let address = self.location_argument(depth, is_macro)?;
                self.expect(")")?;
                self.add_unless(name, address, Operand::Number(1), Operand::Number(0))
            }
            Function::Lock | Function::TryLock => {
                let address = self.location_argument(depth, is_macro)?;
                self.expect(")")?;
                let free = Operand::Number(0);
                let change = (address, Change::CompareAndSwap(free), Operand::Number(1));
                let old_value =
                    self.update(name, change, Order::Acquire, ReturnedValue::Before, None)?;
                match (function, old_value) {
                    (Function::Lock, Operand::Register(old_value)) => {
                        self.require(old_value, 0);
                        nothing
                    }
                    _ => self.compute(name, Operation::Equal, old_value, free),
                }
            }
            Function::Unlock => {
                let address = self.location_argument(depth, is_macro)?;
                self.expect(")")?;
                let free = Operand::Number(0);
                self.store(name, address, free, Order::Release).and(nothing)
            }
        }
    }

    fn reject_function(&self, name: Piece) -> Result<Operand> {
        let message = format!("`{}` is no function that is supported here", name.text);
        let text = name.text;
        let help = match text {
            _ if text.starts_with("atomic_compare_exchange_weak") => {
                "it may fail for no reason; `atomic_compare_exchange_strong` is supported".into()
            }
            _ if text.contains("lock") => {
                "of locks, `spin_lock` and `spin_trylock` are supported".into()
            }
            _ if text.contains("rcu") => {
                "of read-copy-update, `rcu_read_lock`, `rcu_read_unlock` and `synchronize_rcu` are supported".into()
            }
            _ => {
                let names = FUNCTIONS.iter().map(|(name, _)| *name);
                suggestion(text, "function", names)
            }
        };
        error_with_help(name, message, help)
    }

    /// Parses the order after the arguments, if the function has one, and the end of the call. Rejects the orders in
    /// `forbidden`.
    fn last_order(
        &mut self,
        has_order: bool,
        default_order: Order,
        (name, forbidden): (Piece, &[Order]),
    ) -> Result<Order> {
        if !has_order {
            return self.expect(")").map(|_| default_order);
        }
        self.expect(",")?;
        let (token, order) = self.order()?;
        self.expect(")")?;
        if forbidden.contains(&order) {
            let message = format!("`{}` is no order of `{}`", token.text, name.text);
            return error_at(token, message);
        }
        Ok(order)
    }

    /// Emits an atomic read and write. Returns its value.
    fn update(
        &mut self,
        name: Piece,
        (address, change, operand): (Address, Change, Operand),
        order: Order,
        returned_value: ReturnedValue,
        target: Option<Register>,
    ) -> Result<Operand> {
        let (mut change, mut value) = (change, operand);
        if change == SUBTRACT {
            change = Change::FetchAdd;
            value = self.compute(name, Operation::Subtract, Operand::Number(0), value)?;
        }
        let to = match returned_value {
            ReturnedValue::Before => self.target(target),
            ReturnedValue::After | ReturnedValue::Nothing => self.register(None),
        };
        let atomic = Instruction::Atomic {
            to,
            at: address,
            change,
            value,
            acquire: order.acquires(),
            release: order.releases(),
            returns: returned_value != ReturnedValue::Nothing,
            via: StoreVariant::ProtocolDefault,
        };
        self.emit(name, atomic)?;
        match returned_value {
            ReturnedValue::Before => Ok(Operand::Register(to)),
            ReturnedValue::After => {
                self.compute(name, Operation::Add, Operand::Register(to), value)
            }
            ReturnedValue::Nothing => Ok(Operand::Number(0)),
        }
    }

    /// Parses the pointer to the expected value: `&r0` is a variable, and anything else the address of a location.
    fn expected_storage(&mut self, depth: usize) -> Result<ExpectedStorage> {
        let variables = &self.thread.names;
        let register = self.tokens.get(self.position + 1).and_then(|token| {
            let register = variables.iter().position(|name| *name == token.text);
            register.filter(|_| self.peek().text == "&")
        });
        match register {
            Some(register) => {
                self.position += 2;
                Ok(ExpectedStorage::Variable(register))
            }
            None => Ok(ExpectedStorage::Location(
                self.location_argument(depth, false)?,
            )),
        }
    }

    /// Emits a compare-and-exchange. On failure, the old value replaces the expected value. Returns 1 on success,
    /// otherwise 0.
    fn emit_compare_exchange(
        &mut self,
        name: Piece,
        address: Address,
        expected: ExpectedStorage,
        value: Operand,
        order: Order,
    ) -> Result<Operand> {
        let expected_value = match expected {
            ExpectedStorage::Location(from) => self.load(name, from, Order::Relaxed, None)?,
            ExpectedStorage::Variable(variable) => {
                let to = self.register(None);
                let (operation, a, b) = (
                    Operation::Add,
                    Operand::Register(variable),
                    Operand::Number(0),
                );
                self.emit(
                    name,
                    Instruction::Compute {
                        to,
                        operation,
                        a,
                        b,
                    },
                )?;
                Operand::Register(to)
            }
        };
        let to = match expected {
            ExpectedStorage::Location(_) => self.register(None),
            ExpectedStorage::Variable(variable) => variable,
        };
        let atomic = Instruction::Atomic {
            to,
            at: address,
            change: Change::CompareAndSwap(expected_value),
            value,
            acquire: order.acquires(),
            release: order.releases(),
            returns: true,
            via: StoreVariant::ProtocolDefault,
        };
        self.emit(name, atomic)?;
        let old_value = Operand::Register(to);
        let success = self.compute(name, Operation::Equal, old_value, expected_value)?;
        if let (ExpectedStorage::Location(to), Operand::Register(register)) = (expected, success) {
            let branch = self.begin_conditional_block(name, register)?;
            self.store(name, to, old_value, Order::Relaxed)?;
            self.end_conditional_block(branch);
        }
        Ok(success)
    }

    /// Emits `atomic_add_unless`. The kernel's loop of compare-and-exchange is read as one iteration that succeeds.
    fn add_unless(
        &mut self,
        name: Piece,
        address: Address,
        amount: Operand,
        unless: Operand,
    ) -> Result<Operand> {
        let old_value = self.load(name, address, Order::Relaxed, None)?;
        let is_excluded = self.compute(name, Operation::Equal, old_value, unless)?;
        let Operand::Register(register) = is_excluded else {
            return Ok(is_excluded);
        };
        let branch = self.begin_conditional_block(name, register)?;
        let value = self.compute(name, Operation::Add, old_value, amount)?;
        let change = (address, Change::CompareAndSwap(old_value), value);
        let exchanged = self.update(
            name,
            change,
            Order::AcquireRelease,
            ReturnedValue::Before,
            None,
        )?;
        let failed = self.compute(name, Operation::Subtract, exchanged, old_value)?;
        if let Operand::Register(failed) = failed {
            self.require(failed, 0);
        }
        self.end_conditional_block(branch);
        self.compute(name, Operation::Xor, is_excluded, Operand::Number(1))
    }

    /// Begins a block that is skipped if a register is not zero. Returns the branch, for
    /// [`Reader::end_conditional_block`].
    fn begin_conditional_block(&mut self, token: Piece, on: Register) -> Result<usize> {
        let branch = self.thread.code.len();
        let (zero, to) = (false, 0);
        self.emit(token, Instruction::Branch { on, zero, to })?;
        Ok(branch)
    }

    /// Ends the block that the branch at `branch` skips.
    fn end_conditional_block(&mut self, branch: usize) {
        let end = self.thread.code.len();
        if let Instruction::Branch { to, .. } = &mut self.thread.code[branch] {
            *to = end;
        }
    }
}

/// Storage of the expected value of a compare-and-exchange, which receives the old value on failure.
#[derive(Clone, Copy)]
enum ExpectedStorage {
    Variable(Register),
    Location(Address),
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
