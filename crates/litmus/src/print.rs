//! Printer of programs for the herd tools, in AArch64 assembly and in C.

use std::fmt::Write;

use crate::program::{
    Acquire, Address, Change, Claim, Fence, Instruction, Location, Operand, Operation, Program,
    Register, Thread,
};

/// Number of general-purpose registers of AArch64, `X0` to `X30`.
const REGISTERS: usize = 31;

/// Prints a test in AArch64 assembly, which [`crate::herd::read`] reads. A test from C or from another architecture is
/// printed in its mapping to AArch64.
///
/// # Errors
/// A thread needs more registers than there are, or AArch64 has no such instruction.
pub fn print(program: &Program) -> Result<String, String> {
    let program = &with_register_names(program);
    let columns = program
        .threads
        .iter()
        .map(|thread| Column::new(thread, &program.name));
    let columns: Vec<Column> = columns.collect::<Result<_, _>>()?;
    let mut text = format!("AArch64 {}\n{{\n", program.name);
    for (name, value) in program.locations.iter().zip(&program.initial) {
        let _ = writeln!(text, "{name}={};", program.value_name(*value));
    }
    for (number, (thread, column)) in program.threads.iter().zip(&columns).enumerate() {
        for (name, value) in thread.names.iter().zip(&thread.registers) {
            if *value != 0 {
                let value = program.value_name(*value);
                let _ = writeln!(text, "{number}:{name}={value};");
            }
        }
        let addresses = column.addresses.iter();
        let addresses = addresses.map(|(at, register)| {
            let location = &program.locations[usize::from(*at)];
            format!("{number}:X{register}={location};")
        });
        let addresses: Vec<String> = addresses.collect();
        if !addresses.is_empty() {
            let _ = writeln!(text, "{}", addresses.join(" "));
        }
    }
    text.push_str("}\n");
    // Row 0 has the names of the threads.
    let row_count = columns.iter().map(|column| column.rows.len()).max();
    for row in 0..=row_count.unwrap_or(0) {
        let mut cells = Vec::new();
        for (number, column) in columns.iter().enumerate() {
            let cell = match row {
                0 => format!("P{number}"),
                _ => column.rows.get(row - 1).cloned().unwrap_or_default(),
            };
            let width = column
                .rows
                .iter()
                .map(String::len)
                .max()
                .unwrap_or(0)
                .max(2);
            cells.push(format!(" {cell:width$} "));
        }
        let _ = writeln!(text, "{};", cells.join("|"));
    }
    text.push_str(&format_condition(program));
    let max_used = columns.iter().map(|column| column.used.len()).max();
    match max_used.unwrap_or(0) <= REGISTERS {
        true => Ok(text),
        false => Err(format!(
            "a thread of {} needs more than {REGISTERS} registers",
            program.name
        )),
    }
}

/// Prints a test in C, which [`crate::herd::read`] reads. Supports loads, stores of constants, and fences.
///
/// # Errors
/// The test has a fence of stores alone or of instruction fetches, an atomic access, a branch, or a computed address.
pub(crate) fn print_c(program: &Program) -> Result<String, String> {
    let program = &with_c_names(program);
    let mut text = format!("C {}\n{{ ", program.name);
    for (name, value) in program.locations.iter().zip(&program.initial) {
        let _ = write!(text, "{name} = {value}; ");
    }
    text.push_str("}\n");
    for (number, thread) in program.threads.iter().enumerate() {
        let accessed = thread.code.iter().filter_map(Instruction::location);
        let accessed: std::collections::BTreeSet<Location> = accessed.collect();
        let parameters = accessed.iter().map(|&at| {
            let name = &program.locations[usize::from(at)];
            format!("atomic_int* {name}")
        });
        let parameters: Vec<String> = parameters.collect();
        let _ = writeln!(text, "\nP{number} ({}) {{", parameters.join(", "));
        for instruction in &thread.code {
            let _ = writeln!(
                text,
                "  {};",
                format_statement(program, thread, instruction)?
            );
        }
        text.push_str("}\n");
    }
    let _ = write!(text, "\n{}", format_condition(program));
    Ok(text)
}

/// Returns the program with variable names for its registers.
fn with_c_names(program: &Program) -> Program {
    let mut program = program.clone();
    for thread in &mut program.threads {
        let names = 0..thread.names.len();
        thread.names = names.map(|number| format!("r{number}")).collect();
    }
    program
}

/// Prints an instruction as a statement in C, without the semicolon.
///
/// # Errors
/// C has no such statement; the reason in words.
fn format_statement(
    program: &Program,
    thread: &Thread,
    instruction: &Instruction,
) -> Result<String, String> {
    let operand = |operand: Operand| match operand {
        Operand::Number(value) => value.to_string(),
        Operand::Register(register) => thread.names[register].clone(),
    };
    let location = |address: Address| match address.direct() {
        Some(address) => Ok(&program.locations[usize::from(address)]),
        None => Err(format!(
            "{} has an address that is computed, which is not printed in C",
            program.name
        )),
    };
    let unsupported = |feature: &str| {
        Err(format!(
            "{} has {feature}, which is not printed in C",
            program.name
        ))
    };
    Ok(match *instruction {
        Instruction::Load { to, from, acquire } => {
            let order = match acquire {
                Acquire::None => "relaxed",
                Acquire::Rcpc => "acquire",
                Acquire::Rcsc => "seq_cst",
            };
            let (to, from) = (&thread.names[to], location(from)?);
            format!("int {to} = atomic_load_explicit({from}, memory_order_{order})")
        }
        Instruction::Store {
            to, value, release, ..
        } => {
            let order = if release { "release" } else { "relaxed" };
            let (to, value) = (location(to)?, operand(value));
            format!("atomic_store_explicit({to}, {value}, memory_order_{order})")
        }
        Instruction::Fence(Fence::Full) => "atomic_thread_fence(memory_order_seq_cst)".into(),
        Instruction::Fence(Fence::Loads) => "atomic_thread_fence(memory_order_acquire)".into(),
        Instruction::Fence(Fence::Stores) => return unsupported("a fence of stores alone"),
        Instruction::Fence(Fence::InstructionSync) => return unsupported("an instruction barrier"),
        Instruction::Fence(Fence::Other(..)) => return unsupported("a fence of some accesses"),
        Instruction::LoadReserved { .. } | Instruction::StoreConditional { .. } => {
            return unsupported("a location that is reserved")
        }
        Instruction::Compute {
            to,
            operation: Operation::Add,
            a,
            b: Operand::Number(0),
        } => format!("int {} = {}", thread.names[to], operand(a)),
        Instruction::Compute { .. } | Instruction::Select { .. } => {
            return unsupported("arithmetic")
        }
        Instruction::Atomic { .. } => return unsupported("an atomic access"),
        Instruction::Branch { .. } => return unsupported("a branch"),
        Instruction::Rcu(_) => return unsupported("read-copy-update"),
    })
}

/// Returns the program with AArch64 register names. Registers of odd number remain free for addresses if a thread needs
/// at most 15 others.
fn with_register_names(program: &Program) -> Program {
    let mut program = program.clone();
    for thread in &mut program.threads {
        let register = |name: &str| name.starts_with('X') && name[1..].parse::<u8>().is_ok();
        let is_valid_name = |name: &String| register(name) || name.starts_with('.');
        if thread.names.iter().all(is_valid_name) {
            for index in 0..thread.names.len() {
                if register(&thread.names[index]) {
                    continue;
                }
                let names = &thread.names;
                let unused_names = (0..).map(|number| format!("X{number}"));
                let mut unused_names = unused_names.filter(|name| !names.contains(name));
                let name = unused_names.next().expect("unlimited register numbers");
                thread.names[index] = name;
            }
        } else {
            let stride = if thread.names.len() <= 15 { 2 } else { 1 };
            let numbers = 0..thread.names.len();
            thread.names = numbers
                .map(|number| format!("X{}", number * stride))
                .collect();
        }
    }
    program
}

/// Prints `locations` and `filter`, if the test has them, and the condition.
fn format_condition(program: &Program) -> String {
    let mut text = String::new();
    if !program.listed.is_empty() {
        let names = program.listed.iter().map(|listed| program.name_of(listed));
        let names: String = names.map(|name| format!("{name};")).collect();
        let _ = writeln!(text, "locations [{names}]");
    }
    if program.filter != Claim::True {
        let _ = writeln!(text, "filter ({})", format_claim(program, &program.filter));
    }
    let claim = format_claim(program, &program.claim);
    let _ = writeln!(text, "{} ({claim})", program.quantifier);
    text
}

/// Prints a claim in herd's notation.
fn format_claim(program: &Program, formula: &Claim) -> String {
    match formula {
        Claim::Equals(observed, value) => {
            format!(
                "{}={}",
                program.name_of(observed),
                program.value_name(*value)
            )
        }
        Claim::And(a, b) => format!(
            "{} /\\ {}",
            format_claim_operand(program, a),
            format_claim_operand(program, b)
        ),
        Claim::Or(a, b) => format!(
            "{} \\/ {}",
            format_claim_operand(program, a),
            format_claim_operand(program, b)
        ),
        Claim::Not(a) => format!("not ({})", format_claim(program, a)),
        Claim::True => "true".into(),
    }
}

/// Prints an operand of a connective, with parentheses around conjunctions and disjunctions.
fn format_claim_operand(program: &Program, formula: &Claim) -> String {
    let text = format_claim(program, formula);
    match formula {
        Claim::Or(..) | Claim::And(..) => format!("({text})"),
        _ => text,
    }
}

/// Column of a thread in the table of instructions.
struct Column {
    /// Instructions and labels, from top to bottom.
    rows: Vec<String>,
    /// Locations with the numbers of the registers that hold their addresses.
    addresses: Vec<(Location, u8)>,
    /// Names of all registers in use, in their 64-bit form.
    used: Vec<String>,
}

impl Column {
    /// Prints the instructions of a thread. `name` is that of the test, for the error message.
    fn new(thread: &Thread, name: &str) -> Result<Column, String> {
        let mut column = Column {
            rows: Vec::new(),
            addresses: Vec::new(),
            used: thread.names.clone(),
        };
        for (index, &instruction) in thread.code.iter().enumerate() {
            column.add_label_if_target(thread, index);
            let result = column.push_instruction(thread, instruction);
            result.map_err(|description| {
                format!("{name} has {description}, which AArch64 does not have")
            })?;
        }
        column.add_label_if_target(thread, thread.code.len());
        Ok(column)
    }

    /// Adds a label if a branch has this target.
    fn add_label_if_target(&mut self, thread: &Thread, index: usize) {
        let is_branch_here =
            |i: &Instruction| matches!(i, Instruction::Branch { to, .. } if *to == index);
        if thread.code.iter().any(is_branch_here) {
            self.rows.push(format!("L{index}:"));
        }
    }

    /// Returns the lowest unused register and marks it as used. If all are in use, returns the last one;
    /// the caller then rejects the test for its number of registers.
    fn allocate_register(&mut self) -> u8 {
        let free = (0..REGISTERS as u8).find(|number| !self.used.contains(&format!("X{number}")));
        let number = free.unwrap_or(REGISTERS as u8 - 1);
        self.used.push(format!("X{number}"));
        number
    }

    /// Returns the operand for an address. A known location gets a register for its address.
    fn address(&mut self, thread: &Thread, at: Address) -> String {
        let location = match at {
            Address::Direct(location) => location,
            Address::Indirect(register) => return format!("[{}]", thread.names[register]),
        };
        let existing = self
            .addresses
            .iter()
            .find(|(addressed, _)| *addressed == location);
        let register = match existing {
            Some(&(_, register)) => register,
            None => {
                let register = self.allocate_register();
                self.addresses.push((location, register));
                register
            }
        };
        format!("[X{register}]")
    }

    /// Returns a register with the value of an operand. Adds a `MOV` for a constant other than 0.
    fn register_with(&mut self, thread: &Thread, operand: Operand) -> String {
        match operand {
            Operand::Number(0) => "WZR".into(),
            Operand::Number(value) => {
                let register = self.allocate_register();
                self.rows.push(format!("MOV W{register},#{value}"));
                format!("W{register}")
            }
            Operand::Register(register) => name(thread, register),
        }
    }

    /// Prints an operand as an immediate (`#1`) or a register (`W0`).
    fn format_operand(thread: &Thread, operand: Operand) -> String {
        match operand {
            Operand::Number(value) => format!("#{value}"),
            Operand::Register(register) => name(thread, register),
        }
    }

    /// Adds the rows of an instruction.
    ///
    /// # Errors
    /// Description of the instruction, if AArch64 has no equivalent.
    fn push_instruction(
        &mut self,
        thread: &Thread,
        instruction: Instruction,
    ) -> Result<(), &'static str> {
        let row = match instruction {
            Instruction::Load { to, from, acquire } => {
                let mnemonic = match acquire {
                    Acquire::None => "LDR",
                    Acquire::Rcpc => "LDAPR",
                    Acquire::Rcsc => "LDAR",
                };
                format!(
                    "{mnemonic} {},{}",
                    name(thread, to),
                    self.address(thread, from)
                )
            }
            Instruction::Store {
                to, value, release, ..
            } => {
                let mnemonic = if release { "STLR" } else { "STR" };
                let value = self.register_with(thread, value);
                format!("{mnemonic} {value},{}", self.address(thread, to))
            }
            Instruction::Atomic { .. } => self.format_atomic(thread, instruction)?,
            Instruction::Fence(fence) => format_fence(fence)?.into(),
            Instruction::Rcu(_) => return Err("read-copy-update"),
            Instruction::LoadReserved { release: true, .. } => {
                return Err("a reserving load that releases")
            }
            Instruction::StoreConditional { acquire: true, .. } => {
                return Err("a conditional store that acquires")
            }
            Instruction::LoadReserved {
                to, from, acquire, ..
            } => {
                let mnemonic = match acquire {
                    Acquire::None => "LDXR",
                    Acquire::Rcpc | Acquire::Rcsc => "LDAXR",
                };
                format!(
                    "{mnemonic} {},{}",
                    name(thread, to),
                    self.address(thread, from)
                )
            }
            Instruction::StoreConditional {
                status,
                to,
                value,
                release,
                ..
            } => {
                let mnemonic = if release { "STLXR" } else { "STXR" };
                let value = self.register_with(thread, value);
                let address = self.address(thread, to);
                format!("{mnemonic} {},{value},{address}", name(thread, status))
            }
            Instruction::Select {
                to,
                on,
                then,
                otherwise,
            } => {
                let (then, otherwise) = (
                    self.register_with(thread, then),
                    self.register_with(thread, otherwise),
                );
                self.rows.push(format!("CMP {},#0", name(thread, on)));
                format!("CSEL {},{then},{otherwise},NE", name(thread, to))
            }
            Instruction::Compute {
                to,
                operation,
                a,
                b,
            } => self.format_computation(thread, to, operation, (a, b)),
            Instruction::Branch { on, zero, to } => {
                let mnemonic = if zero { "CBZ" } else { "CBNZ" };
                format!("{mnemonic} {},L{to}", name(thread, on))
            }
        };
        self.rows.push(row);
        Ok(())
    }

    /// Adds the rows that prepare the operands of an atomic access, and returns the row of the access itself. Panics
    /// for other instructions.
    ///
    /// # Errors
    /// Description of the access, if AArch64 has no equivalent.
    fn format_atomic(
        &mut self,
        thread: &Thread,
        instruction: Instruction,
    ) -> Result<String, &'static str> {
        let Instruction::Atomic {
            to,
            at,
            change,
            value,
            acquire,
            release,
            returns,
            ..
        } = instruction
        else {
            unreachable!("not an atomic access: {instruction:?}");
        };
        let mut value = self.register_with(thread, value);
        let address = self.address(thread, at);
        let to = match returns {
            true => name(thread, to),
            false => "WZR".to_string(),
        };
        // Suffixes of the mnemonics: `A` for acquire, `L` for release.
        let ordering = match (acquire, release) {
            (false, false) => "",
            (true, false) => "A",
            (false, true) => "L",
            (true, true) => "AL",
        };
        if change == Change::FetchOp(Operation::And) {
            // `LDCLR` clears the bits of its operand, so it gets the complement of the mask.
            let complement = format!("W{}", self.allocate_register());
            self.rows.push(format!("EOR {complement},{value},#-1"));
            value = complement;
        }
        let mnemonic = match change {
            Change::Exchange => "SWP",
            Change::FetchAdd => "LDADD",
            Change::FetchOp(Operation::And) => "LDCLR",
            Change::FetchOp(Operation::Or) => "LDSET",
            Change::FetchOp(Operation::Xor) => "LDEOR",
            Change::FetchOp(_) => return Err("an atomic access of its kind"),
            Change::CompareAndSwap(expected) => {
                // `CAS` expects the old value in the register that receives the result.
                let expected = Column::format_operand(thread, expected);
                if expected != to {
                    self.rows.push(format!("MOV {to},{expected}"));
                }
                return Ok(format!("CAS{ordering} {to},{value},{address}"));
            }
        };
        Ok(format!("{mnemonic}{ordering} {value},{to},{address}"))
    }

    /// Adds the rows that prepare the operands of a computation, and returns its last row.
    fn format_computation(
        &mut self,
        thread: &Thread,
        to: Register,
        operation: Operation,
        (a, b): (Operand, Operand),
    ) -> String {
        let mnemonic = match operation {
            Operation::Add => "ADD",
            Operation::Subtract => "SUB",
            Operation::And => "AND",
            Operation::Or => "ORR",
            Operation::Xor => "EOR",
            Operation::ShiftLeft => "LSL",
            Operation::ShiftRight => "ASR",
            Operation::Equal => return self.format_comparison(thread, to, (a, b), "EQ"),
            Operation::Less => return self.format_comparison(thread, to, (a, b), "LT"),
        };
        let to = name(thread, to);
        match (operation, b) {
            (Operation::Add, Operand::Number(0)) => {
                format!("MOV {to},{}", Column::format_operand(thread, a))
            }
            _ => {
                let a = self.register_with(thread, a);
                format!("{mnemonic} {to},{a},{}", Column::format_operand(thread, b))
            }
        }
    }

    /// Adds a comparison of `a` and `b`, and returns the row that sets `to` to 1 if `condition` holds, otherwise to 0.
    fn format_comparison(
        &mut self,
        thread: &Thread,
        to: Register,
        (a, b): (Operand, Operand),
        condition: &str,
    ) -> String {
        let (a, b) = (
            self.register_with(thread, a),
            Column::format_operand(thread, b),
        );
        self.rows.push(format!("CMP {a},{b}"));
        format!("CSET {},{condition}", name(thread, to))
    }
}

/// Returns the barrier instruction of a fence.
///
/// # Errors
/// Description of the fence, if AArch64 has no equivalent.
fn format_fence(fence: Fence) -> Result<&'static str, &'static str> {
    match fence {
        Fence::Full => Ok("DMB SY"),
        Fence::Loads => Ok("DMB LD"),
        Fence::Stores => Ok("DMB ST"),
        Fence::InstructionSync => Ok("ISB"),
        Fence::Other(..) => Err("a fence of its kind"),
    }
}

/// Returns the 32-bit name (`W0`) of a register, whose canonical name is the 64-bit one (`X0`).
fn name(thread: &Thread, register: Register) -> String {
    thread.names[register].replace('X', "W")
}
