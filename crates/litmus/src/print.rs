//! Programs as the herd tools read them, in AArch64 assembly.

use std::fmt::Write;

use crate::program::{
    Acquire, Change, Claim, Fence, Instruction, Location, Operand, Operation, Program, Register,
    Thread,
};

/// The test as a text that [`crate::herd::read`] reads. One in C is printed as it is compiled.
///
/// # Errors
/// A thread needs more registers than there are.
pub fn print(program: &Program) -> Result<String, String> {
    let program = &with_registers(program);
    let columns: Vec<Column> = program.threads.iter().map(Column::of).collect();
    let mut text = format!("AArch64 {}\n{{\n", program.name);
    for (name, value) in program.locations.iter().zip(&program.initial) {
        let _ = writeln!(text, "{name}={value};");
    }
    for (number, (thread, column)) in program.threads.iter().zip(&columns).enumerate() {
        for (name, value) in thread.names.iter().zip(&thread.registers) {
            if *value != 0 {
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
    let rows = columns.iter().map(|column| column.rows.len()).max();
    for row in 0..=rows.unwrap_or(0) {
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
    let _ = writeln!(
        text,
        "{} ({})",
        program.quantifier,
        claim(program, &program.claim)
    );
    let most = columns.iter().map(|column| column.used.len()).max();
    match most.unwrap_or(0) <= 31 {
        true => Ok(text),
        false => Err(format!(
            "a thread of {} needs more than 31 registers",
            program.name
        )),
    }
}

/// The test in C, as [`crate::herd::read`] reads it: loads, stores, fences, and numbers to be stored.
///
/// # Errors
/// What C11 has no words for: a fence of stores alone, a barrier of what is fetched; an atomic access, a branch.
pub fn print_c(program: &Program) -> Result<String, String> {
    let program = &in_c(program);
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
            let _ = writeln!(text, "  {};", statement(program, thread, instruction)?);
        }
        text.push_str("}\n");
    }
    let claim = claim(program, &program.claim);
    let _ = writeln!(text, "\n{} ({claim})", program.quantifier);
    Ok(text)
}

/// The same program, whose registers have the names of variables.
fn in_c(program: &Program) -> Program {
    let mut program = program.clone();
    for thread in &mut program.threads {
        let names = 0..thread.names.len();
        thread.names = names.map(|number| format!("r{number}")).collect();
    }
    program
}

fn statement(
    program: &Program,
    thread: &Thread,
    instruction: &Instruction,
) -> Result<String, String> {
    let operand = |operand: Operand| match operand {
        Operand::Number(value) => value.to_string(),
        Operand::Register(register) => thread.names[register].clone(),
    };
    let location = |at: Location| &program.locations[usize::from(at)];
    let no = |what: &str| {
        Err(format!(
            "{} has {what}, which is not printed in C",
            program.name
        ))
    };
    Ok(match *instruction {
        Instruction::Load { to, from, acquire } => {
            let order = match acquire {
                Acquire::No => "relaxed",
                Acquire::Later => "acquire",
                Acquire::Full => "seq_cst",
            };
            let (to, from) = (&thread.names[to], location(from));
            format!("int {to} = atomic_load_explicit({from}, memory_order_{order})")
        }
        Instruction::Store {
            to, value, release, ..
        } => {
            let order = if release { "release" } else { "relaxed" };
            let (to, value) = (location(to), operand(value));
            format!("atomic_store_explicit({to}, {value}, memory_order_{order})")
        }
        Instruction::Fence(Fence::Full) => "atomic_thread_fence(memory_order_seq_cst)".into(),
        Instruction::Fence(Fence::Loads) => "atomic_thread_fence(memory_order_acquire)".into(),
        Instruction::Fence(Fence::Stores) => return no("a fence of stores alone"),
        Instruction::Fence(Fence::Fetch) => return no("a barrier of what is fetched"),
        Instruction::Compute {
            to,
            operation: Operation::Add,
            a,
            b: Operand::Number(0),
        } => format!("int {} = {}", thread.names[to], operand(a)),
        Instruction::Compute { .. } => return no("arithmetic"),
        Instruction::Atomic { .. } => return no("an atomic access"),
        Instruction::Branch { .. } => return no("a branch"),
    })
}

/// The same program, whose registers have the names of registers. Odd ones are left for addresses while there are enough.
fn with_registers(program: &Program) -> Program {
    let mut program = program.clone();
    for thread in &mut program.threads {
        let register = |name: &String| name.starts_with('X') && name[1..].parse::<u8>().is_ok();
        if !thread.names.iter().all(register) {
            let apart = if thread.names.len() <= 15 { 2 } else { 1 };
            let numbers = 0..thread.names.len();
            thread.names = numbers
                .map(|number| format!("X{}", number * apart))
                .collect();
        }
    }
    program
}

fn claim(program: &Program, what: &Claim) -> String {
    match what {
        Claim::Is(observed, value) => format!("{}={value}", program.name_of(observed)),
        Claim::And(a, b) => format!("{} /\\ {}", inner(program, a), inner(program, b)),
        Claim::Or(a, b) => format!("{} \\/ {}", inner(program, a), inner(program, b)),
        Claim::Not(a) => format!("not ({})", claim(program, a)),
        Claim::True => "true".into(),
    }
}

/// A part of a claim: only what is joined needs parentheses.
fn inner(program: &Program, what: &Claim) -> String {
    let text = claim(program, what);
    match what {
        Claim::Or(..) | Claim::And(..) => format!("({text})"),
        _ => text,
    }
}

/// The instructions of a thread, and the registers that hold addresses.
struct Column {
    rows: Vec<String>,
    addresses: Vec<(Location, u8)>,
    used: Vec<String>,
}

impl Column {
    fn of(thread: &Thread) -> Column {
        let mut column = Column {
            rows: Vec::new(),
            addresses: Vec::new(),
            used: thread.names.clone(),
        };
        for (place, &instruction) in thread.code.iter().enumerate() {
            column.label(thread, place);
            column.instruction(thread, instruction);
        }
        column.label(thread, thread.code.len());
        column
    }

    /// A label, if some branch leads here.
    fn label(&mut self, thread: &Thread, place: usize) {
        let here = |i: &Instruction| matches!(i, Instruction::Branch { to, .. } if *to == place);
        if thread.code.iter().any(here) {
            self.rows.push(format!("L{place}:"));
        }
    }

    /// The lowest register that nothing is in.
    fn free(&mut self) -> u8 {
        let free = (0..31).find(|number| !self.used.contains(&format!("X{number}")));
        let number = free.unwrap_or(30);
        self.used.push(format!("X{number}"));
        number
    }

    fn address(&mut self, at: Location) -> String {
        let known = self.addresses.iter().find(|(other, _)| *other == at);
        let register = match known {
            Some(&(_, register)) => register,
            None => {
                let register = self.free();
                self.addresses.push((at, register));
                register
            }
        };
        format!("[X{register}]")
    }

    /// A register that holds an operand.
    fn holds(&mut self, thread: &Thread, operand: Operand) -> String {
        match operand {
            Operand::Number(0) => "WZR".into(),
            Operand::Number(value) => {
                let register = self.free();
                self.rows.push(format!("MOV W{register},#{value}"));
                format!("W{register}")
            }
            Operand::Register(register) => name(thread, register),
        }
    }

    fn operand(thread: &Thread, operand: Operand) -> String {
        match operand {
            Operand::Number(value) => format!("#{value}"),
            Operand::Register(register) => name(thread, register),
        }
    }

    /// 1 if both are the same, and otherwise 0.
    fn equal(&mut self, thread: &Thread, to: Register, a: Operand, b: Operand) {
        let (a, b) = (self.holds(thread, a), Column::operand(thread, b));
        let difference = format!("W{}", self.free());
        let (to, label) = (name(thread, to), format!("E{}", self.rows.len()));
        self.rows.extend([
            format!("EOR {difference},{a},{b}"),
            format!("MOV {to},#1"),
            format!("CBZ {difference},{label}"),
            format!("MOV {to},#0"),
            format!("{label}:"),
        ]);
    }

    fn instruction(&mut self, thread: &Thread, instruction: Instruction) {
        let row = match instruction {
            Instruction::Load { to, from, acquire } => {
                let word = match acquire {
                    Acquire::No => "LDR",
                    Acquire::Later => "LDAPR",
                    Acquire::Full => "LDAR",
                };
                format!("{word} {},{}", name(thread, to), self.address(from))
            }
            Instruction::Store {
                to, value, release, ..
            } => {
                let word = if release { "STLR" } else { "STR" };
                let value = self.holds(thread, value);
                format!("{word} {value},{}", self.address(to))
            }
            Instruction::Atomic {
                to,
                at,
                change,
                value,
                acquire,
                release,
                ..
            } => {
                let value = self.holds(thread, value);
                let (address, to) = (self.address(at), name(thread, to));
                let (a, l) = (
                    if acquire { "A" } else { "" },
                    if release { "L" } else { "" },
                );
                match change {
                    Change::Set => format!("SWP{a}{l} {value},{to},{address}"),
                    Change::Add => format!("LDADD{a}{l} {value},{to},{address}"),
                    Change::SetIf(expected) => {
                        let expected = Column::operand(thread, expected);
                        if expected != to {
                            self.rows.push(format!("MOV {to},{expected}"));
                        }
                        format!("CAS{a}{l} {to},{value},{address}")
                    }
                }
            }
            Instruction::Fence(Fence::Full) => "DMB SY".into(),
            Instruction::Fence(Fence::Loads) => "DMB LD".into(),
            Instruction::Fence(Fence::Stores) => "DMB ST".into(),
            Instruction::Fence(Fence::Fetch) => "ISB".into(),
            Instruction::Compute {
                to,
                operation,
                a,
                b,
            } => {
                let word = match operation {
                    Operation::Add => "ADD",
                    Operation::Subtract => "SUB",
                    Operation::And => "AND",
                    Operation::Or => "ORR",
                    Operation::Xor => "EOR",
                    Operation::Equal => return self.equal(thread, to, a, b),
                };
                let to = name(thread, to);
                match (operation, a, b) {
                    (Operation::Add, a, Operand::Number(0)) => {
                        format!("MOV {to},{}", Column::operand(thread, a))
                    }
                    _ => {
                        let a = self.holds(thread, a);
                        format!("{word} {to},{a},{}", Column::operand(thread, b))
                    }
                }
            }
            Instruction::Branch { on, zero, to } => {
                let word = if zero { "CBZ" } else { "CBNZ" };
                format!("{word} {},L{to}", name(thread, on))
            }
        };
        self.rows.push(row);
    }
}

/// A register as 32 bits of it are called.
fn name(thread: &Thread, register: Register) -> String {
    thread.names[register].replace('X', "W")
}
