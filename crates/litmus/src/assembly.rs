//! Reader for tests in assembly: initial values, columns of instructions, labels and branches, and addresses.
//!
//! Registers and instructions of each architecture are in [`crate::aarch64`], [`crate::riscv`], [`crate::x86`] and
//! [`crate::power`].

use cohkit_base::words::counted;
use cohkit_diagnostics::suggestion;
use rustc_hash::FxHashMap;

use crate::condition::{location, thread_number, value, MAX_INSTRUCTIONS, MAX_THREADS};
use crate::executions::computes_only_location_addresses;
use crate::piece::{error_at, error_with_help, number, Piece, Result};
use crate::program::{
    location_at, Address, Change, Claim, Instruction, Observable, Operand, Operation, Program,
    Register, Thread,
};

/// Name of a register in an architecture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    /// The zero register: writes have no effect.
    Zero,
    /// Register with this canonical name.
    Register(String),
}

/// Syntax and semantics of an architecture.
pub(crate) struct Dialect {
    /// Resolves the name of a register.
    pub register: fn(&str) -> Option<Name>,
    /// Description of the register names, for messages.
    pub registers: &'static str,
    /// Reads an instruction, whose name is in upper case, and adds its effect to a thread.
    pub instruction: for<'c, 't> fn(&mut Code<'c, 't>, Cell<'t>) -> Result<()>,
}

/// A cell of the table of instructions.
pub(crate) struct Cell<'t> {
    /// Whole cell.
    pub piece: Piece<'t>,
    /// Name of the instruction as written.
    pub word: Piece<'t>,
    /// Name of the instruction in upper case.
    pub name: String,
    /// Operands.
    pub operands: Vec<Piece<'t>>,
}

impl Cell<'_> {
    /// Checks the number of operands.
    pub fn check_operand_count(&self, count: usize) -> Result<()> {
        let found = self.operands.len();
        match found == count {
            true => Ok(()),
            false => error_at(
                self.piece,
                format!(
                    "`{}` takes {}, and here are {found}",
                    self.name,
                    counted(count as u64, "operand")
                ),
            ),
        }
    }

    /// Rejects an unknown instruction, and suggests a known one.
    pub fn reject_unknown<T>(&self, known: &[&'static str]) -> Result<T> {
        let message = format!("`{}` is not a supported instruction", self.word.text);
        let help = suggestion(self.word.text, "instruction", known.iter().copied());
        error_with_help(self.word, message, help)
    }
}

/// Parses initial values and threads. Returns the first access whose location is known only at run time, if any.
pub(crate) fn threads<'t>(
    dialect: &Dialect,
    program: &mut Program,
    code: Piece<'t>,
    initial_values: Piece<'t>,
) -> Result<Option<Piece<'t>>> {
    let rows: Vec<Piece> = code.split(';');
    let Some((head, rows)) = rows.split_first().filter(|(head, _)| !head.text.is_empty()) else {
        return error_with_help(
            code.trim().until(0),
            "there are no threads",
            "`P0 | P1 ;` begins them",
        );
    };
    let columns = head.split('|');
    for (number, column) in columns.iter().enumerate() {
        if column.text != format!("P{number}") {
            return error_at(*column, format!("`P{number}` is expected here"));
        }
    }
    let count = columns.len();
    if count > MAX_THREADS {
        return error_at(
            *head,
            format!("{count} threads are more than {MAX_THREADS}"),
        );
    }
    program.threads = vec![Thread::default(); count];
    let symbols = parse_initial_values(dialect, program, initial_values)?;
    let mut columns: Vec<Vec<Piece<'t>>> = vec![Vec::new(); count];
    for row in rows.iter().filter(|row| !row.text.is_empty()) {
        let cells = row.split('|');
        if cells.len() != count {
            let found = cells.len();
            let counts = [
                counted(found as u64, "column"),
                counted(count as u64, "thread"),
            ];
            return error_at(*row, counts.join(", and "));
        }
        for (column, cell) in columns.iter_mut().zip(cells) {
            if !cell.text.is_empty() {
                column.push(cell);
            }
        }
    }
    let mut indirect = None;
    for (thread, column) in columns.into_iter().enumerate() {
        let mut code = Code {
            dialect,
            known_values: program.threads[thread]
                .registers
                .iter()
                .copied()
                .map(Some)
                .collect(),
            reached: true,
            program,
            thread,
            symbols: &symbols,
            labels: Vec::new(),
            branches: Vec::new(),
            indirect: None,
        };
        code.read_column(&column)?;
        indirect = indirect.or(code.indirect);
    }
    Ok(indirect)
}

/// Returns the register of a name in a condition or in the initial values.
pub(crate) fn register(dialect: &Dialect, thread: &mut Thread, piece: Piece) -> Result<Register> {
    // `%x0` is a symbolic register of the test, unless the architecture has a register of that name.
    let symbol = piece.text.len() > 1 && piece.text.starts_with('%');
    let symbol = symbol.then(|| Name::Register(piece.text.to_string()));
    match (dialect.register)(piece.text).or(symbol) {
        Some(Name::Register(name)) => Ok(register_of_name(thread, &name)),
        Some(Name::Zero) => {
            let message = format!("`{}` is always zero", piece.text);
            error_with_help(piece, message, dialect.registers)
        }
        None => {
            let message = format!("`{}` is no register", piece.text);
            error_with_help(piece, message, dialect.registers)
        }
    }
}

/// Returns the register with this canonical name. Adds it to the thread, with the value 0, if it is new.
fn register_of_name(thread: &mut Thread, name: &str) -> Register {
    let position = thread.names.iter().position(|candidate| candidate == name);
    position.unwrap_or_else(|| {
        thread.names.push(name.to_string());
        thread.registers.push(0);
        thread.names.len() - 1
    })
}

/// Parses initial values: `0:X1=x`, `x=1`, `int x=1`, `int x`, or `%x0=x` for a symbolic register. Returns those of
/// symbolic registers.
fn parse_initial_values<'t>(
    dialect: &Dialect,
    program: &mut Program,
    initial_values: Piece<'t>,
) -> Result<Vec<(&'t str, i64)>> {
    let mut initialised: Vec<(Option<usize>, usize)> = Vec::new();
    let mut symbols = Vec::new();
    let items = initial_values.split(';').into_iter();
    for item in items.filter(|item| !item.text.is_empty()) {
        let (left, right) = match item.split_once("=") {
            Some((left, right)) => (left, Some(right)),
            None => (item, None),
        };
        if left.text.starts_with('%') {
            let Some(right) = right else {
                return error_at(item, "a register has a first value");
            };
            symbols.push((left.text, value(program, right)?));
            continue;
        }
        // Skip a type before the name.
        let name_offset = |piece: Piece| piece.text.rfind([' ', '\t', '*']).map(|index| index + 1);
        if let Some((thread, name)) = left.split_once(":") {
            let name_start = name_offset(thread);
            let thread = thread.from(name_start.unwrap_or(0));
            let thread = thread_number(program, thread)?;
            let register = register(dialect, &mut program.threads[thread], name)?;
            let Some(right) = right else {
                match name_start {
                    Some(_) => continue,
                    None => return error_at(item, "a register has a first value"),
                }
            };
            if initialised.contains(&(Some(thread), register)) {
                return error_at(item, "this register has a first value already");
            }
            initialised.push((Some(thread), register));
            program.threads[thread].registers[register] = value(program, right)?;
            continue;
        }
        let location = location(
            program,
            location_name(left.from(name_offset(left).unwrap_or(0))),
        )?;
        if let Some(right) = right {
            let location = usize::from(location);
            if initialised.contains(&(None, location)) {
                return error_at(item, "this location has a first value already");
            }
            initialised.push((None, location));
            program.initial[location] = value(program, right)?;
        }
    }
    Ok(symbols)
}

/// Returns the name of a location without its optional brackets.
fn location_name(piece: Piece) -> Piece {
    let inner = piece
        .text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    match inner.filter(|inner| !inner.contains('(')) {
        Some(inner) => piece.from(1).until(inner.len()).trim(),
        None => piece,
    }
}

/// Clears initial addresses in registers that neither the thread nor the condition uses.
///
/// # Errors
/// `indirect`, an access whose location is known only at run time, may be to the address of no location.
pub(crate) fn finish(program: &mut Program, indirect: Option<Piece>) -> Result<()> {
    for (number, thread) in program.threads.iter_mut().enumerate() {
        let mut used = source_registers(thread);
        used.extend(observed_registers(&program.claim, number));
        used.extend(observed_registers(&program.filter, number));
        for (register, value) in thread.registers.iter_mut().enumerate() {
            if location_at(*value).is_some() && !used.contains(&register) {
                *value = 0;
            }
        }
    }
    let Some(indirect) = indirect else {
        return Ok(());
    };
    match computes_only_location_addresses(program) {
        Ok(true) => Ok(()),
        Ok(false) => error_at(indirect, "this may be the address of no location"),
        Err(reason) => error_at(indirect, reason),
    }
}

/// Returns the registers of a thread that a claim names.
fn observed_registers(claim: &Claim, thread: usize) -> Vec<Register> {
    match claim {
        Claim::Equals(Observable::Register(observed_thread, register), _)
            if *observed_thread == thread =>
        {
            vec![*register]
        }
        Claim::Equals(..) | Claim::True => Vec::new(),
        Claim::And(a, b) | Claim::Or(a, b) => {
            let mut registers = observed_registers(a, thread);
            registers.extend(observed_registers(b, thread));
            registers
        }
        Claim::Not(a) => observed_registers(a, thread),
    }
}

/// Returns the source registers of all instructions of a thread.
fn source_registers(thread: &Thread) -> Vec<Register> {
    thread.code.iter().flat_map(instruction_sources).collect()
}

/// Returns the source registers of an instruction.
fn instruction_sources(instruction: &Instruction) -> Vec<Register> {
    let address = match instruction.address() {
        Some(Address::Indirect(register)) => Some(Operand::Register(register)),
        _ => None,
    };
    let operands = match *instruction {
        Instruction::Store { value, .. } | Instruction::StoreConditional { value, .. } => {
            vec![value]
        }
        Instruction::Atomic {
            value,
            change: Change::CompareAndSwap(expected),
            ..
        } => vec![value, expected],
        Instruction::Atomic { value, .. } => vec![value],
        Instruction::Compute { a, b, .. } => vec![a, b],
        Instruction::Select {
            on,
            then,
            otherwise,
            ..
        } => vec![Operand::Register(on), then, otherwise],
        Instruction::Branch { on, .. } => vec![Operand::Register(on)],
        Instruction::Load { .. }
        | Instruction::LoadReserved { .. }
        | Instruction::Fence(_)
        | Instruction::Rcu(_) => Vec::new(),
    };
    let operands = operands.into_iter().chain(address);
    operands
        .filter_map(|operand| match operand {
            Operand::Register(register) => Some(register),
            Operand::Number(_) => None,
        })
        .collect()
}

/// An unresolved branch.
struct Jump<'t> {
    /// Index of the branch in the thread's code.
    from: usize,
    /// Target; `None` for the end of the thread.
    label: Option<Piece<'t>>,
    /// Values known at the branch, by register.
    known_values: Vec<Option<i64>>,
}

/// Reader of one thread.
pub(crate) struct Code<'c, 't> {
    /// Architecture of the test.
    dialect: &'c Dialect,
    /// Program that receives the instructions.
    program: &'c mut Program,
    /// Number of the thread.
    thread: usize,
    /// Initial values of symbolic registers.
    symbols: &'c [(&'t str, i64)],
    /// Values known statically, that is, independent of any read, by register. `None` if the value is not known.
    known_values: Vec<Option<i64>>,
    /// True if control can reach this point from the previous instruction.
    reached: bool,
    /// Labels read so far, each with the index of the instruction that follows.
    labels: Vec<(Piece<'t>, usize)>,
    /// Branches whose labels have not been resolved yet.
    branches: Vec<Jump<'t>>,
    /// First access whose location is known only at run time.
    indirect: Option<Piece<'t>>,
}

impl<'t> Code<'_, 't> {
    /// Reads the instructions and labels of a thread.
    fn read_column(&mut self, column: &[Piece<'t>]) -> Result<()> {
        for &cell in column {
            let mut cell = cell;
            while let Some((label, rest)) = cell.split_once(":") {
                self.add_label(label)?;
                cell = rest;
            }
            if cell.text.is_empty() {
                continue;
            }
            let end = cell.text.find(char::is_whitespace);
            let (word, rest) = match end {
                Some(end) => (cell.until(end), cell.from(end).trim()),
                None => (cell, cell.from(cell.text.len())),
            };
            let cell = Cell {
                piece: cell,
                word,
                name: word.text.to_ascii_uppercase(),
                operands: operands(rest),
            };
            (self.dialect.instruction)(self, cell)?;
        }
        self.resolve_jumps()
    }

    /// Adds a label at the next instruction.
    fn add_label(&mut self, label: Piece<'t>) -> Result<()> {
        if self
            .labels
            .iter()
            .any(|(existing, _)| existing.text == label.text)
        {
            return error_at(label, format!("`{}` is a label already", label.text));
        }
        self.labels.push((label, self.code().len()));
        // A value is known here only if it is the same on all paths to the label.
        for jump in &self.branches {
            if jump
                .label
                .is_none_or(|existing| existing.text != label.text)
            {
                continue;
            }
            if !self.reached {
                self.known_values.clone_from(&jump.known_values);
                self.reached = true;
                continue;
            }
            for (register, known_value) in self.known_values.iter_mut().enumerate() {
                let initial = self.program.threads[self.thread].registers[register];
                let jump_value = jump.known_values.get(register).copied();
                if jump_value.unwrap_or(Some(initial)) != *known_value {
                    *known_value = None;
                }
            }
        }
        Ok(())
    }

    /// Sets the targets of all branches.
    fn resolve_jumps(&mut self) -> Result<()> {
        for jump in std::mem::take(&mut self.branches) {
            let target = match jump.label {
                Some(label) => self.label_index(label)?,
                None => self.code().len(),
            };
            if let Some(label) = jump.label.filter(|_| target <= jump.from) {
                return error_at(label, "a branch goes forward here: programs must terminate");
            }
            let code = &mut self.program.threads[self.thread].code;
            if let Instruction::Branch { to, .. } = &mut code[jump.from] {
                *to = target;
            }
        }
        Ok(())
    }

    /// Returns the instruction index of a label.
    fn label_index(&self, label: Piece) -> Result<usize> {
        let mut labels = self.labels.iter();
        if let Some((_, index)) = labels.find(|(existing, _)| existing.text == label.text) {
            return Ok(*index);
        }
        let message = format!("there is no label `{}` in this thread", label.text);
        let names = self.labels.iter().map(|(label, _)| label.text);
        error_with_help(label, message, suggestion(label.text, "label", names))
    }

    /// Returns the instructions of the thread so far.
    fn code(&self) -> &[Instruction] {
        &self.program.threads[self.thread].code
    }

    /// Adds an instruction. `cell` is its source, for messages. Fails if the thread has the maximum number of
    /// instructions.
    pub fn emit(&mut self, cell: Piece, instruction: Instruction) -> Result<()> {
        if self.code().len() >= MAX_INSTRUCTIONS {
            let message = format!("a thread has at most {MAX_INSTRUCTIONS} instructions");
            return error_at(cell, message);
        }
        self.program.threads[self.thread].code.push(instruction);
        let result = match instruction {
            Instruction::Compute {
                operation, a, b, ..
            } => match (self.value(a), self.value(b)) {
                (Some(a), Some(b)) => Some(operation.apply(a, b)),
                _ => None,
            },
            _ => None,
        };
        if let Some(to) = instruction.destination() {
            self.known_values[to] = result;
        }
        Ok(())
    }

    /// Adds a computation into `to`, or into a new temporary. Returns the register.
    pub fn compute(
        &mut self,
        cell: Piece,
        to: Option<Register>,
        operation: Operation,
        a: Operand,
        b: Operand,
    ) -> Result<Register> {
        let to = to.unwrap_or_else(|| self.temporary());
        let compute = Instruction::Compute {
            to,
            operation,
            a,
            b,
        };
        self.emit(cell, compute)?;
        Ok(to)
    }

    /// Copies a value into a register.
    pub fn copy(&mut self, cell: Piece, to: Register, from: Operand) -> Result<()> {
        let zero = Operand::Number(0);
        self.compute(cell, Some(to), Operation::Add, from, zero)
            .map(|_| ())
    }

    /// Adds a branch to a label on a register that is zero, or that is not.
    pub fn branch(
        &mut self,
        cell: Piece,
        on: Register,
        zero: bool,
        label: Piece<'t>,
    ) -> Result<()> {
        self.branch_to(cell, on, zero, Some(label))
    }

    /// Adds a branch to a label, or (`None`) to the end of the thread. A branch to an earlier label is a wait loop.
    fn branch_to(
        &mut self,
        cell: Piece,
        on: Register,
        zero: bool,
        label: Option<Piece<'t>>,
    ) -> Result<()> {
        if let Some(label) = label {
            if let Ok(begin) = self.label_index(label) {
                return self.emit_wait_loop(cell, on, zero, (label, begin));
            }
        }
        self.branches.push(Jump {
            from: self.code().len(),
            label,
            known_values: self.known_values.clone(),
        });
        self.emit(cell, Instruction::Branch { on, zero, to: 0 })
    }

    /// Adds a backward branch on a register that is zero, or that is not. [`Program::filter`] excludes executions that
    /// take the branch. This preserves the outcomes, because an iteration of a waiting loop writes nothing and passes
    /// no values to the next one.
    fn emit_wait_loop(
        &mut self,
        cell: Piece,
        on: Register,
        zero: bool,
        (label, begin): (Piece, usize),
    ) -> Result<()> {
        // An iteration extends from the label to the branch.
        let jumps_inside = |jump: &Jump| {
            let index = jump.label.map(|label| self.label_index(label));
            matches!(index, Some(Ok(index)) if index > begin)
        };
        if self.branches.iter().any(jumps_inside) || !is_wait(&self.code()[begin..], on, zero) {
            let message =
                "a loop that does more than wait is not supported: programs must terminate";
            return error_at(label, message);
        }
        let (a, b) = (Operand::Register(on), Operand::Number(0));
        let mut is_repeated = self.compute(cell, None, Operation::Equal, a, b)?;
        if !zero {
            let (a, b) = (Operand::Register(is_repeated), Operand::Number(1));
            is_repeated = self.compute(cell, None, Operation::Xor, a, b)?;
        }
        let observed = Observable::Register(self.thread, is_repeated);
        self.program.require(Claim::Equals(observed, 0));
        Ok(())
    }

    /// Adds an unconditional branch to a label.
    pub fn jump(&mut self, cell: Piece, label: Piece<'t>) -> Result<()> {
        self.jump_to(cell, Some(label))
    }

    /// Adds an unconditional branch to the end of the thread.
    pub fn end(&mut self, cell: Piece) -> Result<()> {
        self.jump_to(cell, None)
    }

    /// Adds an unconditional branch to a label, or (`None`) to the end of the thread: a branch on a register that is
    /// zero.
    fn jump_to(&mut self, cell: Piece, label: Option<Piece<'t>>) -> Result<()> {
        let zero = self.temporary();
        self.branch_to(cell, zero, true, label)?;
        self.reached = false;
        Ok(())
    }

    /// Adds a temporary register.
    pub fn temporary(&mut self) -> Register {
        let thread = &mut self.program.threads[self.thread];
        let name = format!(".{}", thread.names.len());
        let register = register_of_name(thread, &name);
        self.known_values.resize(register + 1, Some(0));
        register
    }

    /// Returns a hidden register with a fixed name, such as that of a flag.
    pub fn named_temporary(&mut self, name: &str) -> Register {
        let register = register_of_name(&mut self.program.threads[self.thread], name);
        self.known_values
            .resize(self.known_values.len().max(register + 1), Some(0));
        register
    }

    /// Returns the value of an operand if it is known statically.
    pub fn value(&self, operand: Operand) -> Option<i64> {
        match operand {
            Operand::Number(value) => Some(value),
            Operand::Register(register) => self.known_values[register],
        }
    }

    /// Returns the register of a name.
    pub fn register(&mut self, piece: Piece) -> Result<Register> {
        let thread = &mut self.program.threads[self.thread];
        let register = register(self.dialect, thread, piece)?;
        if register >= self.known_values.len() {
            let mut symbols = self.symbols.iter();
            if let Some((_, initial)) = symbols.find(|(symbol, _)| *symbol == piece.text) {
                thread.registers[register] = *initial;
            }
            let initial = thread.registers[register];
            self.known_values.resize(register, Some(0));
            self.known_values.push(Some(initial));
        }
        Ok(register)
    }

    /// Returns true if the name is that of the zero register.
    pub fn is_zero(&self, piece: Piece) -> bool {
        (self.dialect.register)(piece.text) == Some(Name::Zero)
    }

    /// Returns true if the name is that of a register.
    pub fn is_register(&self, piece: Piece) -> bool {
        piece.text.starts_with('%') || (self.dialect.register)(piece.text).is_some()
    }

    /// Returns the destination register, or a temporary for the zero register.
    pub fn result(&mut self, piece: Piece) -> Result<Register> {
        match self.is_zero(piece) {
            true => Ok(self.temporary()),
            false => self.register(piece),
        }
    }

    /// Parses a register, or a number after `prefix`.
    pub fn operand(&mut self, piece: Piece, prefix: &str) -> Result<Operand> {
        if self.is_zero(piece) {
            return Ok(Operand::Number(0));
        }
        if self.is_register(piece) {
            return Ok(Operand::Register(self.register(piece)?));
        }
        match piece.text.strip_prefix(prefix) {
            Some(digits) => {
                let digits = piece.from(piece.text.len() - digits.len());
                Ok(Operand::Number(number(digits)?))
            }
            None => Ok(Operand::Register(self.register(piece)?)),
        }
    }

    /// Returns the location that an instruction names directly.
    pub fn named_location(&mut self, piece: Piece) -> Result<Address> {
        location(self.program, piece).map(Address::Direct)
    }

    /// Returns the location at the sum of two operands.
    pub fn address(&mut self, piece: Piece<'t>, base: Operand, index: Operand) -> Result<Address> {
        if let (Some(base), Some(index)) = (self.value(base), self.value(index)) {
            let address = base.wrapping_add(index);
            let location_count = self.program.locations.len();
            return match location_at(address)
                .filter(|&location| usize::from(location) < location_count)
            {
                Some(location) => Ok(Address::Direct(location)),
                None if location_at(base).is_some() => {
                    let message = "this is the address of no location: each has one word";
                    error_at(piece, message)
                }
                None => {
                    let inner = piece.text.trim_matches(['[', ']', '(', ')', ' ']);
                    let name = inner.split([',', '(']).next_back().unwrap_or(inner);
                    let name = match inner.split_once(',') {
                        Some((name, _)) => name,
                        None => name,
                    };
                    let message = format!("`{name}` holds the address of no location here");
                    let help = format!(
                        "`{}:{name}=x` among the first values gives it one",
                        self.thread
                    );
                    error_with_help(piece, message, help)
                }
            };
        }
        self.indirect = self.indirect.or(Some(piece));
        if let (Operand::Register(register), Operand::Number(0)) = (base, index) {
            return Ok(Address::Indirect(register));
        }
        let sum = self.compute(piece, None, Operation::Add, base, index)?;
        Ok(Address::Indirect(sum))
    }
}

/// Returns true if an iteration of a loop only waits: it writes nothing, and it reads no register that an earlier
/// iteration wrote. The loop's branch tests if `on` is zero, or if it is not. A store-conditional is permitted if the
/// branch cannot repeat the loop after its success.
fn is_wait(iteration: &[Instruction], on: Register, zero: bool) -> bool {
    let writes_register = |iteration: &[Instruction], register| {
        let mut destination = iteration.iter().filter_map(Instruction::destination);
        destination.any(|destination| destination == register)
    };
    iteration.iter().enumerate().all(|(index, instruction)| {
        let (earlier, later) = iteration.split_at(index);
        let is_carried =
            |register| !writes_register(earlier, register) && writes_register(later, register);
        let writes = match *instruction {
            Instruction::StoreConditional { status, .. } => {
                let known = FxHashMap::from_iter([(status, 0)]);
                repeats_after(&later[1..], known, on, zero)
            }
            _ => instruction.writes(),
        };
        !writes && !instruction_sources(instruction).into_iter().any(is_carried)
    })
}

/// Returns true if the branch after `code` may be taken. `known` are register values before `code`.
fn repeats_after(
    code: &[Instruction],
    mut known: FxHashMap<Register, i64>,
    on: Register,
    zero: bool,
) -> bool {
    for instruction in code {
        let value = |operand| match operand {
            Operand::Number(value) => Some(value),
            Operand::Register(register) => known.get(&register).copied(),
        };
        let result = match *instruction {
            Instruction::Compute {
                operation, a, b, ..
            } => value(a).zip(value(b)).map(|(a, b)| operation.apply(a, b)),
            _ => None,
        };
        if let Some(to) = instruction.destination() {
            known.remove(&to);
            known.extend(result.map(|result| (to, result)));
        }
    }
    known.get(&on).is_none_or(|&value| (value == 0) == zero)
}

/// Splits the operands of an instruction at commas outside brackets and parentheses.
pub(crate) fn operands(rest: Piece) -> Vec<Piece> {
    let mut parts = Vec::new();
    let (mut begin, mut depth) = (0, 0);
    for (index, character) in rest.text.char_indices() {
        match character {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(rest.from(begin).until(index - begin).trim());
                begin = index + 1;
            }
            _ => {}
        }
    }
    let last = rest.from(begin).trim();
    if !last.text.is_empty() || !parts.is_empty() {
        parts.push(last);
    }
    parts
}
