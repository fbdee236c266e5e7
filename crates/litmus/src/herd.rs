//! Tests in the format of the herd tools, in AArch64 assembly; those in C are read by [`crate::c`].
//!
//! Read are: `MOV`, `ADD`, `SUB`, `AND`, `ORR`, `EOR`; `LDR`, `LDAR`, `LDAPR`, `STR`, `STLR` with a register that holds
//! an address; `SWP`, `LDADD` and `CAS` with their orders; `DMB`, `DSB`, `ISB` and `NOP`; `CBZ` and `CBNZ` to a later label.
//! `exists`, `~exists` and `forall` with `/\`, `\/` and `not`. Everything else is refused by name.

use cohkit_base::words::counted;
use cohkit_protocol::text::suggestion;

use crate::c;
use crate::condition::{self, location, thread_number, MOST_INSTRUCTIONS, MOST_THREADS};
use crate::piece::{helped, number, without_comments, wrong, Piece, Result};
use crate::program::{
    Acquire, Change, Claim, Fence, Instruction, Location, Operand, Operation, Program, Quantifier,
    Register, Thread, Via,
};

pub use crate::piece::Diagnostic;

/// Reads a test.
///
/// # Errors
/// What is wrong with it, and where.
pub fn read(text: &str) -> Result<Program> {
    // Offsets are 32 bits wide.
    if text.len() > 1 << 20 {
        let all = Piece { text: "", start: 0 };
        return wrong(all, "the test is longer than a mebibyte");
    }
    let bare = without_comments(text)?;
    let whole = Piece {
        text: &bare,
        start: 0,
    };
    let line = whole.text.find('\n').unwrap_or(whole.text.len());
    let title = whole.until(line).trim();
    let Some((architecture, name)) = title.once(" ") else {
        let message = "a test begins with its architecture and its name";
        return helped(title, message, "`AArch64 SB`, for example");
    };
    let in_c = match architecture.text {
        "AArch64" => false,
        "C" => true,
        other => {
            let message = format!("`{other}` is not an architecture that is read here");
            return helped(architecture, message, "AArch64 and C are");
        }
    };
    let mut test = Test {
        program: Program {
            name: name.text.to_string(),
            locations: Vec::new(),
            initial: Vec::new(),
            threads: Vec::new(),
            quantifier: Quantifier::Exists,
            claim: Claim::True,
        },
        addresses: Vec::new(),
        given: Vec::new(),
    };
    let rest = whole.from(line);
    let Some(open) = rest.text.find('{') else {
        return helped(
            rest.trim().until(0),
            "the block of first values is missing",
            "`{ 0:X1=x; }`",
        );
    };
    let after = rest.from(open + 1);
    let Some(close) = after.text.find('}') else {
        return wrong(rest.from(open).until(1), "this block has no end");
    };
    let first = after.until(close);
    if let Some(list) = first.text.find('{') {
        return wrong(
            first.from(list).until(1),
            "a list of values is not read here",
        );
    }
    let rest = after.from(close + 1);
    // The condition begins a line.
    let begins = |word: &str| {
        let mut places = rest.text.match_indices(word).map(|(place, _)| place);
        places.find(|&place| {
            rest.text[..place]
                .trim_end_matches([' ', '\t'])
                .ends_with('\n')
        })
    };
    let keywords = ["exists", "~exists", "forall", "locations", "filter"];
    let end = keywords.into_iter().filter_map(begins).min();
    let code = rest.until(end.unwrap_or(rest.text.len()));
    if in_c {
        c::threads(&mut test.program, code, first)?;
        if let Some(end) = end {
            let mut variable = |program: &mut Program, thread: usize, piece: Piece| {
                c::variable(&mut program.threads[thread], piece)
            };
            condition::read(&mut test.program, rest.from(end), &mut variable)?;
        }
        return Ok(test.program);
    }
    test.threads(code, first)?;
    if let Some(end) = end {
        let addresses = &test.addresses;
        let mut register = |program: &mut Program, thread: usize, piece: Piece| {
            value(&mut program.threads[thread], &addresses[thread], piece)
        };
        condition::read(&mut test.program, rest.from(end), &mut register)?;
    }
    Ok(test.program)
}

struct Test {
    program: Program,
    /// Of each thread, the registers that hold the address of a location.
    addresses: Vec<Vec<(Register, Location)>>,
    /// What has a first value: a register of a thread, or a location.
    given: Vec<(Option<usize>, usize)>,
}

impl Test {
    /// First values, then the code: columns of instructions, a thread each.
    fn threads(&mut self, code: Piece, first: Piece) -> Result<()> {
        let rows: Vec<Piece> = code.split(';');
        let Some((head, rows)) = rows.split_first().filter(|(head, _)| !head.text.is_empty())
        else {
            return helped(
                code.trim().until(0),
                "there are no threads",
                "`P0 | P1 ;` begins them",
            );
        };
        for (number, column) in head.split('|').into_iter().enumerate() {
            if column.text != format!("P{number}") {
                return wrong(column, format!("`P{number}` should stand here"));
            }
        }
        let count = head.split('|').len();
        if count > MOST_THREADS {
            return wrong(
                *head,
                format!("{count} threads are more than {MOST_THREADS}"),
            );
        }
        self.program.threads = vec![Thread::default(); count];
        self.addresses = vec![Vec::new(); count];
        for item in first
            .split(';')
            .into_iter()
            .filter(|item| !item.text.is_empty())
        {
            self.first(item)?;
        }
        let mut columns: Vec<Vec<Piece>> = vec![Vec::new(); count];
        for row in rows.iter().filter(|row| !row.text.is_empty()) {
            let cells = row.split('|');
            if cells.len() != count {
                let has = cells.len();
                let what = [
                    counted(has as u64, "column"),
                    counted(count as u64, "thread"),
                ];
                return wrong(*row, what.join(", and "));
            }
            for (column, cell) in columns.iter_mut().zip(cells) {
                if !cell.text.is_empty() {
                    column.push(cell);
                }
            }
        }
        for (thread, column) in columns.into_iter().enumerate() {
            self.thread(thread, &column)?;
        }
        Ok(())
    }

    /// `0:X1=x`, `x=1`, `int x=1` or `int x`.
    fn first(&mut self, item: Piece) -> Result<()> {
        let (left, value) = match item.once("=") {
            Some((left, value)) => (left, Some(value)),
            None => (item, None),
        };
        // A type may stand before the name.
        let begins = left.text.rfind([' ', '\t', '*']).map(|place| place + 1);
        if let Some((thread, name)) = left.once(":") {
            let begins = begins.filter(|&begins| begins <= thread.text.len());
            let thread = thread.from(begins.unwrap_or(0));
            let thread = thread_number(&self.program, thread)?;
            let own = register(&mut self.program.threads[thread], name)?;
            let Some(value) = value else {
                return match begins {
                    Some(_) => Ok(()),
                    None => wrong(item, "a register has a first value"),
                };
            };
            if self.given.contains(&(Some(thread), own)) {
                return wrong(item, "this register has a first value already");
            }
            self.given.push((Some(thread), own));
            match number(value) {
                Ok(number) => self.program.threads[thread].registers[own] = number,
                Err(_) => {
                    let location = location(&mut self.program, value)?;
                    self.addresses[thread].push((own, location));
                }
            }
            return Ok(());
        }
        let name = left.from(begins.unwrap_or(0));
        let location = location(&mut self.program, name)?;
        if let Some(value) = value {
            let location = usize::from(location);
            if self.given.contains(&(None, location)) {
                return wrong(item, "this location has a first value already");
            }
            self.given.push((None, location));
            self.program.initial[location] = number(value)?;
        }
        Ok(())
    }

    fn operand(&mut self, thread: usize, piece: Piece) -> Result<Operand> {
        if let Some(digits) = piece.text.strip_prefix('#') {
            let digits = piece.from(piece.text.len() - digits.len());
            return Ok(Operand::Number(number(digits)?));
        }
        match piece.text.to_ascii_uppercase().as_str() {
            "WZR" | "XZR" => Ok(Operand::Number(0)),
            _ => Ok(Operand::Register(self.value(thread, piece)?)),
        }
    }

    fn value(&mut self, thread: usize, piece: Piece) -> Result<Register> {
        let addresses = &self.addresses[thread];
        value(&mut self.program.threads[thread], addresses, piece)
    }

    /// The location whose address stands in brackets.
    fn address(&mut self, thread: usize, piece: Piece) -> Result<Location> {
        let inner = piece
            .text
            .strip_prefix('[')
            .and_then(|t| t.strip_suffix(']'));
        let Some(inner) = inner else {
            return helped(piece, "an address stands in brackets", "`[X1]`");
        };
        let inner = Piece {
            text: inner,
            start: piece.start + 1,
        };
        let parts = inner.split(',');
        if parts.len() > 1 && !(parts.len() == 2 && parts[1].text == "#0") {
            let message = "an address with an index or an offset is not read here";
            return helped(piece, message, "`[X1]`");
        }
        let register = register(&mut self.program.threads[thread], parts[0])?;
        let mut known = self.addresses[thread].iter();
        match known.find(|(other, _)| *other == register) {
            Some((_, location)) => Ok(*location),
            None => {
                let name = parts[0].text;
                let message = format!("`{name}` holds the address of no location here");
                helped(
                    piece,
                    message,
                    format!("`{thread}:{name}=x` among the first values gives it one"),
                )
            }
        }
    }

    fn thread(&mut self, thread: usize, column: &[Piece]) -> Result<()> {
        let mut labels: Vec<(&str, usize)> = Vec::new();
        let mut branches: Vec<(usize, Piece)> = Vec::new();
        for &cell in column {
            let mut cell = cell;
            while let Some((label, rest)) = cell.once(":") {
                if labels.iter().any(|(other, _)| *other == label.text) {
                    return wrong(label, format!("`{}` is a label already", label.text));
                }
                labels.push((label.text, self.program.threads[thread].code.len()));
                cell = rest;
            }
            if cell.text.is_empty() {
                continue;
            }
            if self.program.threads[thread].code.len() >= MOST_INSTRUCTIONS {
                return wrong(
                    cell,
                    format!("a thread has at most {MOST_INSTRUCTIONS} instructions"),
                );
            }
            let (instruction, target) = self.instruction(thread, cell)?;
            let Some(instruction) = instruction else {
                continue;
            };
            let code = &mut self.program.threads[thread].code;
            branches.extend(target.map(|target| (code.len(), target)));
            code.push(instruction);
            // What is written there is no address any more.
            if let Instruction::Load { to, .. }
            | Instruction::Atomic { to, .. }
            | Instruction::Compute { to, .. } = instruction
            {
                // After a branch it may be written there or not.
                if !branches.is_empty() && holds_address(&self.addresses[thread], to) {
                    let message = "an address is overwritten here after a branch, so it is not known who holds it";
                    return wrong(cell, message);
                }
                self.addresses[thread].retain(|(register, _)| *register != to);
            }
        }
        for (from, target) in branches {
            let names = labels.iter().map(|(name, _)| *name);
            let Some((_, place)) = labels.iter().find(|(name, _)| *name == target.text) else {
                let message = format!("there is no label `{}` in this thread", target.text);
                return helped(target, message, suggestion(target.text, "label", names));
            };
            if *place <= from {
                return wrong(target, "a branch goes forward here: programs end");
            }
            if let Instruction::Branch { to, .. } = &mut self.program.threads[thread].code[from] {
                *to = *place;
            }
        }
        Ok(())
    }

    /// An instruction, if it does anything here, and the label that it branches to.
    fn instruction<'t>(
        &mut self,
        thread: usize,
        cell: Piece<'t>,
    ) -> Result<(Option<Instruction>, Option<Piece<'t>>)> {
        let end = cell
            .text
            .find(char::is_whitespace)
            .unwrap_or(cell.text.len());
        let (word, rest) = (cell.until(end), cell.from(end).trim());
        let name = word.text.to_ascii_uppercase();
        let parts = operands(rest);
        let takes = |count: usize| match parts.len() == count {
            true => Ok(()),
            false => {
                let has = parts.len();
                wrong(
                    cell,
                    format!("`{name}` takes {count} operands, and here are {has}"),
                )
            }
        };
        if let Some(operation) = operation(&name) {
            takes(3)?;
            let to = register(&mut self.program.threads[thread], parts[0])?;
            let (a, b) = (
                self.operand(thread, parts[1])?,
                self.operand(thread, parts[2])?,
            );
            let compute = Instruction::Compute {
                to,
                operation,
                a,
                b,
            };
            return Ok((Some(compute), None));
        }
        if let Some((word, order)) = atomic(&name) {
            takes(3)?;
            let instruction = self.atomic(thread, word, order, &parts)?;
            return Ok((Some(instruction), None));
        }
        let instruction = match name.as_str() {
            "MOV" => {
                takes(2)?;
                let to = register(&mut self.program.threads[thread], parts[0])?;
                let a = self.operand(thread, parts[1])?;
                let (operation, b) = (Operation::Add, Operand::Number(0));
                Instruction::Compute {
                    to,
                    operation,
                    a,
                    b,
                }
            }
            "LDR" | "LDAR" | "LDAPR" => {
                takes(2)?;
                let from = self.address(thread, parts[1])?;
                let to = register(&mut self.program.threads[thread], parts[0])?;
                let acquire = match name.as_str() {
                    "LDAR" => Acquire::Full,
                    "LDAPR" => Acquire::Later,
                    _ => Acquire::No,
                };
                Instruction::Load { to, from, acquire }
            }
            "STR" | "STLR" => {
                takes(2)?;
                let value = self.operand(thread, parts[0])?;
                let to = self.address(thread, parts[1])?;
                let release = name == "STLR";
                Instruction::Store {
                    to,
                    value,
                    release,
                    via: Via::Text,
                }
            }
            "DMB" | "DSB" => {
                takes(1)?;
                match parts[0].text.to_ascii_uppercase().as_str() {
                    "SY" | "ISH" => Instruction::Fence(Fence::Full),
                    "LD" | "ISHLD" => Instruction::Fence(Fence::Loads),
                    "ST" | "ISHST" => Instruction::Fence(Fence::Stores),
                    other => return wrong(parts[0], format!("`{other}` is no kind of barrier")),
                }
            }
            "ISB" => Instruction::Fence(Fence::Fetch),
            "NOP" => return Ok((None, None)),
            "CBZ" | "CBNZ" => {
                takes(2)?;
                let on = self.value(thread, parts[0])?;
                let zero = name == "CBZ";
                let branch = Instruction::Branch { on, zero, to: 0 };
                return Ok((Some(branch), Some(parts[1])));
            }
            _ => {
                let known = [
                    "MOV", "ADD", "SUB", "AND", "ORR", "EOR", "LDR", "LDAR", "LDAPR", "STR",
                    "STLR", "SWP", "LDADD", "CAS", "DMB", "DSB", "ISB", "CBZ", "CBNZ",
                ];
                let message = format!("`{}` is no instruction that is read here", word.text);
                let help = suggestion(word.text, "instruction", known.into_iter());
                return helped(word, message, help);
            }
        };
        Ok((Some(instruction), None))
    }

    /// An atomic access of three operands, its name being one of [`ATOMIC`] with an order behind it.
    fn atomic(
        &mut self,
        thread: usize,
        word: &str,
        order: &str,
        parts: &[Piece],
    ) -> Result<Instruction> {
        let first = self.operand(thread, parts[0])?;
        let at = self.address(thread, parts[2])?;
        // What a comparison expects stands where what is found goes.
        let place = usize::from(word != "CAS");
        let to = register(&mut self.program.threads[thread], parts[place])?;
        let (change, value) = match word {
            "CAS" => (Change::SetIf(first), self.operand(thread, parts[1])?),
            "SWP" => (Change::Set, first),
            _ => (Change::Add, first),
        };
        Ok(Instruction::Atomic {
            to,
            at,
            change,
            value,
            acquire: order.contains('A'),
            release: order.contains('L'),
            via: Via::Text,
        })
    }
}

/// Names of atomic accesses, without their order.
const ATOMIC: [&str; 3] = ["SWP", "LDADD", "CAS"];

/// The name of an atomic access and its order apart.
fn atomic(name: &str) -> Option<(&'static str, &str)> {
    let mut both = ATOMIC
        .into_iter()
        .filter_map(|word| Some((word, name.strip_prefix(word)?)));
    both.find(|(_, order)| matches!(*order, "" | "A" | "L" | "AL"))
}

/// What an instruction that computes calculates.
fn operation(name: &str) -> Option<Operation> {
    match name {
        "ADD" => Some(Operation::Add),
        "SUB" => Some(Operation::Subtract),
        "AND" => Some(Operation::And),
        "ORR" => Some(Operation::Or),
        "EOR" => Some(Operation::Xor),
        _ => None,
    }
}

/// The number of a register, `W3` or `X3`.
fn register(thread: &mut Thread, piece: Piece) -> Result<Register> {
    let name = piece.text.to_ascii_uppercase();
    let number = name
        .strip_prefix(['W', 'X'])
        .and_then(|n| n.parse::<u8>().ok());
    let Some(number) = number.filter(|&number| number <= 30) else {
        let message = format!("`{}` is no register", piece.text);
        return helped(piece, message, "W0 to W30, or X0 to X30");
    };
    let name = format!("X{number}");
    let Thread {
        registers, names, ..
    } = thread;
    Ok(match names.iter().position(|other| *other == name) {
        Some(known) => known,
        None => {
            names.push(name);
            registers.push(0);
            names.len() - 1
        }
    })
}

/// A register whose value is asked for. Addresses have no numbers here: what is done with one is not known.
fn value(
    thread: &mut Thread,
    addresses: &[(Register, Location)],
    piece: Piece,
) -> Result<Register> {
    let register = register(thread, piece)?;
    if holds_address(addresses, register) {
        let name = piece.text;
        let message = format!("`{name}` holds an address here, which is read in brackets only");
        return wrong(piece, message);
    }
    Ok(register)
}

fn holds_address(addresses: &[(Register, Location)], register: Register) -> bool {
    addresses.iter().any(|(other, _)| *other == register)
}

/// The operands of an instruction; commas within brackets separate nothing.
fn operands(rest: Piece) -> Vec<Piece> {
    let mut parts = Vec::new();
    let (mut begin, mut depth) = (0, 0);
    for (place, character) in rest.text.char_indices() {
        match character {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(rest.from(begin).until(place - begin).trim());
                begin = place + 1;
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
