//! Tests in the format of the herd tools, in AArch64 assembly.
//!
//! Read are: `MOV`, `ADD`, `SUB`, `AND`, `ORR`, `EOR`; `LDR`, `LDAR`, `LDAPR`, `STR`, `STLR` with a register that holds
//! an address; `SWP`, `LDADD` and `CAS` with their orders; `DMB`, `DSB` and `ISB`; `CBZ` and `CBNZ` to a later label.
//! `exists`, `~exists` and `forall` with `/\`, `\/` and `not`. Everything else is refused by name.

use cohkit_protocol::text::{report, suggestion, Level, Span};

use crate::program::{
    Acquire, Change, Claim, Fence, Instruction, Location, Observed, Operand, Operation, Program,
    Quantifier, Register, Thread,
};

/// Threads of a test, at most.
pub const MOST_THREADS: usize = 8;
/// Locations of a test, at most.
pub const MOST_LOCATIONS: usize = 8;
/// Instructions of a thread, at most.
const MOST_INSTRUCTIONS: usize = 64;
/// Parts of a condition within each other, at most.
const MOST_DEPTH: usize = 64;

/// What is wrong with a test, and where.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where.
    pub span: Span,
    /// Written beside the caret; may be empty.
    pub label: String,
    /// What helps.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// The diagnostic for a terminal: message, `file:line:column`, the line with a caret, and help.
    pub fn render(&self, file: &str, text: &str, colour: bool) -> String {
        let notes: Vec<(Option<Span>, String)> =
            self.help.iter().map(|help| (None, help.clone())).collect();
        report(
            (Level::ERROR, ""),
            &self.message,
            (self.span, &self.label),
            &notes,
            (file, text),
            colour,
        )
    }
}

type Result<T> = std::result::Result<T, Diagnostic>;

fn wrong<T>(piece: Piece, message: impl Into<String>) -> Result<T> {
    Err(Diagnostic {
        message: message.into(),
        span: piece.span(),
        label: String::new(),
        help: Vec::new(),
    })
}

fn helped<T>(piece: Piece, message: impl Into<String>, help: impl Into<String>) -> Result<T> {
    wrong(piece, message).map_err(|mut error: Diagnostic| {
        error.help.push(help.into());
        error
    })
}

/// A part of the text, and where it begins.
#[derive(Clone, Copy, Debug)]
struct Piece<'t> {
    text: &'t str,
    start: usize,
}

impl<'t> Piece<'t> {
    fn span(&self) -> Span {
        Span {
            start: self.start as u32,
            end: (self.start + self.text.len()) as u32,
        }
    }

    fn trim(self) -> Piece<'t> {
        let text = self.text.trim_start();
        let start = self.start + (self.text.len() - text.len());
        Piece {
            text: text.trim_end(),
            start,
        }
    }

    fn from(self, place: usize) -> Piece<'t> {
        Piece {
            text: &self.text[place..],
            start: self.start + place,
        }
    }

    fn until(self, place: usize) -> Piece<'t> {
        Piece {
            text: &self.text[..place],
            start: self.start,
        }
    }

    /// The parts between separators.
    fn split(self, separator: char) -> Vec<Piece<'t>> {
        let mut parts = Vec::new();
        let mut rest = self;
        while let Some(place) = rest.text.find(separator) {
            parts.push(rest.until(place).trim());
            rest = rest.from(place + separator.len_utf8());
        }
        parts.push(rest.trim());
        parts
    }

    /// What stands before a separator, and after it.
    fn once(self, separator: &str) -> Option<(Piece<'t>, Piece<'t>)> {
        let place = self.text.find(separator)?;
        let after = self.from(place + separator.len());
        Some((self.until(place).trim(), after.trim()))
    }
}

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
    if architecture.text != "AArch64" {
        let message = format!(
            "`{}` is not an architecture that is read here",
            architecture.text
        );
        return helped(architecture, message, "AArch64 is");
    }
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
    test.threads(code, first)?;
    if let Some(end) = end {
        test.condition(rest.from(end))?;
    }
    Ok(test.program)
}

/// The text with blanks for comments, so that places stay.
fn without_comments(text: &str) -> Result<String> {
    let mut bare = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find("(*") {
        let Some(length) = rest[place..].find("*)") else {
            let start = text.len() - rest.len() + place;
            let text = &text[start..start + 2];
            return wrong(Piece { text, start }, "this comment has no end");
        };
        bare.push_str(&rest[..place]);
        let comment = &rest[place..place + length + 2];
        bare.extend(comment.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }));
        rest = &rest[place + length + 2..];
    }
    bare.push_str(rest);
    Ok(bare)
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
                return wrong(*row, format!("{has} columns, and {count} threads"));
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
        if let Some((thread, register)) = left.once(":") {
            let thread = self.thread_number(thread)?;
            let register = self.register(thread, register)?;
            let Some(value) = value else {
                return wrong(item, "a register has a first value");
            };
            if self.given.contains(&(Some(thread), register)) {
                return wrong(item, "this register has a first value already");
            }
            self.given.push((Some(thread), register));
            match number(value) {
                Ok(number) => self.program.threads[thread].registers[register] = number,
                Err(_) => {
                    let location = self.location(value)?;
                    self.addresses[thread].push((register, location));
                }
            }
            return Ok(());
        }
        // A type may stand before the name.
        let name = match left.text.rfind([' ', '\t', '*']) {
            Some(place) => left.from(place + 1),
            None => left,
        };
        let location = self.location(name)?;
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

    fn thread_number(&self, piece: Piece) -> Result<usize> {
        let count = self.program.threads.len();
        match piece.text.parse() {
            Ok(thread) if thread < count => Ok(thread),
            _ => wrong(
                piece,
                format!("there is no thread `{}`; there are {count}", piece.text),
            ),
        }
    }

    /// A location, which is new if it was not named before.
    fn location(&mut self, piece: Piece) -> Result<Location> {
        let name = piece.text;
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty()
            || !name.chars().all(fits)
            || name.starts_with(|c: char| c.is_ascii_digit())
        {
            return wrong(piece, format!("`{name}` is no name of a location"));
        }
        let locations = &mut self.program.locations;
        if let Some(known) = locations.iter().position(|other| other == name) {
            return Ok(known as Location);
        }
        if locations.len() >= MOST_LOCATIONS {
            return wrong(
                piece,
                format!("there are more than {MOST_LOCATIONS} locations"),
            );
        }
        locations.push(name.to_string());
        self.program.initial.push(0);
        Ok((locations.len() - 1) as Location)
    }

    /// The number of a register, `W3` or `X3`.
    fn register(&mut self, thread: usize, piece: Piece) -> Result<Register> {
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
        } = &mut self.program.threads[thread];
        Ok(match names.iter().position(|other| *other == name) {
            Some(known) => known,
            None => {
                names.push(name);
                registers.push(0);
                names.len() - 1
            }
        })
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

    /// A register whose value is asked for. Addresses have no numbers here: what is done with one is not known.
    fn value(&mut self, thread: usize, piece: Piece) -> Result<Register> {
        let register = self.register(thread, piece)?;
        if self.holds_address(thread, register) {
            let name = piece.text;
            let message = format!("`{name}` holds an address here, which is read in brackets only");
            return wrong(piece, message);
        }
        Ok(register)
    }

    fn holds_address(&self, thread: usize, register: Register) -> bool {
        let mut known = self.addresses[thread].iter();
        known.any(|(other, _)| *other == register)
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
        let register = self.register(thread, parts[0])?;
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
                if !branches.is_empty() && self.holds_address(thread, to) {
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
        let operation = match name.as_str() {
            "ADD" => Some(Operation::Add),
            "SUB" => Some(Operation::Subtract),
            "AND" => Some(Operation::And),
            "ORR" => Some(Operation::Or),
            "EOR" => Some(Operation::Xor),
            _ => None,
        };
        if let Some(operation) = operation {
            takes(3)?;
            let to = self.register(thread, parts[0])?;
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
        let atomic = |word: &str| {
            let order = name.strip_prefix(word);
            matches!(order, Some("" | "A" | "L" | "AL"))
        };
        let instruction = match name.as_str() {
            "MOV" => {
                takes(2)?;
                let to = self.register(thread, parts[0])?;
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
                let to = self.register(thread, parts[0])?;
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
                Instruction::Store { to, value, release }
            }
            _ if ["SWP", "LDADD", "CAS"].iter().any(|word| atomic(word)) => {
                takes(3)?;
                let first = self.operand(thread, parts[0])?;
                let at = self.address(thread, parts[2])?;
                let order = ["SWP", "LDADD", "CAS"]
                    .iter()
                    .find_map(|w| name.strip_prefix(w));
                // What a comparison expects stands where what is found goes.
                let (to, change, value) = match &name[..3] {
                    "CAS" => {
                        let to = self.register(thread, parts[0])?;
                        let value = self.operand(thread, parts[1])?;
                        (to, Change::SetIf(first), value)
                    }
                    "SWP" => (self.register(thread, parts[1])?, Change::Set, first),
                    _ => (self.register(thread, parts[1])?, Change::Add, first),
                };
                Instruction::Atomic {
                    to,
                    at,
                    change,
                    value,
                    acquire: order.is_some_and(|order| order.contains('A')),
                    release: order.is_some_and(|order| order.contains('L')),
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
            "ISB" | "NOP" => return Ok((None, None)),
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

    /// `exists (0:X2=0 /\ 1:X2=0)`.
    fn condition(&mut self, piece: Piece) -> Result<()> {
        let piece = piece.trim();
        let end = piece
            .text
            .find([' ', '(', '\n', '\t'])
            .unwrap_or(piece.text.len());
        let word = piece.until(end);
        self.program.quantifier = match word.text {
            "exists" => Quantifier::Exists,
            "~exists" => Quantifier::NotExists,
            "forall" => Quantifier::Forall,
            "locations" => {
                // What is to be shown besides; all is shown here.
                let Some((_, rest)) = piece.once("]") else {
                    return wrong(word, "this list has no end");
                };
                return match rest.text.trim_start_matches(';').trim() {
                    "" => Ok(()),
                    _ => self.condition(rest),
                };
            }
            other => return wrong(word, format!("`{other}` is not read here")),
        };
        let mut rest = piece.from(end).trim();
        let claim = self.or(&mut rest, 0)?;
        if !rest.text.is_empty() {
            return wrong(rest, "nothing should follow the condition");
        }
        self.program.claim = claim;
        Ok(())
    }

    fn or(&mut self, rest: &mut Piece, depth: usize) -> Result<Claim> {
        let mut claim = self.and(rest, depth)?;
        while let Some(after) = rest.text.strip_prefix("\\/") {
            *rest = rest.from(rest.text.len() - after.len()).trim();
            let other = self.and(rest, depth)?;
            claim = Claim::Or(Box::new(claim), Box::new(other));
        }
        Ok(claim)
    }

    fn and(&mut self, rest: &mut Piece, depth: usize) -> Result<Claim> {
        let mut claim = self.atom(rest, depth)?;
        while let Some(after) = rest.text.strip_prefix("/\\") {
            *rest = rest.from(rest.text.len() - after.len()).trim();
            let other = self.atom(rest, depth)?;
            claim = Claim::And(Box::new(claim), Box::new(other));
        }
        Ok(claim)
    }

    fn atom(&mut self, rest: &mut Piece, depth: usize) -> Result<Claim> {
        if depth > MOST_DEPTH {
            return wrong(*rest, "this condition has too many parts within each other");
        }
        let not = rest
            .text
            .strip_prefix("not")
            .filter(|after| after.starts_with([' ', '(']));
        if let Some(after) = rest.text.strip_prefix('~').or(not) {
            *rest = rest.from(rest.text.len() - after.len()).trim();
            return Ok(Claim::Not(Box::new(self.atom(rest, depth + 1)?)));
        }
        if rest.text.starts_with('(') {
            let open = *rest;
            *rest = rest.from(1).trim();
            let claim = self.or(rest, depth + 1)?;
            if !rest.text.starts_with(')') {
                return wrong(open.until(1), "this parenthesis is not closed");
            }
            *rest = rest.from(1).trim();
            return Ok(claim);
        }
        let stop = |c: char| c.is_whitespace() || matches!(c, ')' | '(' | '/' | '\\');
        let end = rest.text.find(stop).unwrap_or(rest.text.len());
        let atom = rest.until(end);
        *rest = rest.from(end).trim();
        if atom.text == "true" {
            return Ok(Claim::True);
        }
        let Some((left, value)) = atom.once("=") else {
            return helped(atom, "a value is asked for here", "`0:X2=1`, or `x=1`");
        };
        let value = number(value)?;
        let observed = match left.once(":") {
            Some((thread, register)) => {
                let thread = self.thread_number(thread)?;
                Observed::Register(thread, self.value(thread, register)?)
            }
            None => {
                let name = left.text.trim_start_matches('[').trim_end_matches(']');
                let names = self.program.locations.iter().map(String::as_str);
                match names.clone().position(|other| other == name) {
                    Some(location) => Observed::Location(location as Location),
                    None => {
                        let message = format!("there is no location `{name}`");
                        return helped(left, message, suggestion(name, "location", names));
                    }
                }
            }
        };
        Ok(Claim::Is(observed, value))
    }
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

fn number(piece: Piece) -> Result<i64> {
    let text = piece.text;
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.or_else(|_| wrong(piece, format!("`{text}` is no number")))
}
