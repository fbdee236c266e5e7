//! Parser for conditions, and for the names and values that all kinds of tests share.

use cohkit_diagnostics::suggestion;

use crate::piece::{error_at, error_with_help, number, Piece, Result};
use crate::program::{address_of, Claim, Location, Observable, Program, Quantifier, Register};

/// Maximum number of threads of a test.
pub const MAX_THREADS: usize = 8;
/// Maximum number of instructions of a thread.
pub const MAX_INSTRUCTIONS: usize = 64;
/// Maximum number of locations of a test.
pub const MAX_LOCATIONS: usize = 8;
/// Maximum nesting depth of a condition.
const MAX_DEPTH: usize = 64;
/// Maximum number of parts of a condition.
const MAX_PARTS: usize = 1024;

/// Resolves the name of a thread's register.
pub(crate) type RegisterResolver<'n> =
    &'n mut dyn FnMut(&mut Program, usize, Piece) -> Result<Register>;

/// Parses the condition of a test, with its `locations` and `filter`.
pub(crate) fn read(program: &mut Program, piece: Piece, register: RegisterResolver) -> Result<()> {
    let parts = 0;
    let mut reader = Reader {
        program,
        register,
        parts,
    };
    reader.read_condition(piece)
}

/// Parses the number of a thread, `0` or `P0`.
pub(crate) fn thread_number(program: &Program, piece: Piece) -> Result<usize> {
    let count = program.threads.len();
    // Some tests write `P0`.
    let number = piece.text.strip_prefix('P').unwrap_or(piece.text);
    match number.parse() {
        Ok(thread) if thread < count => Ok(thread),
        _ => error_at(
            piece,
            format!("there is no thread `{}`; there are {count}", piece.text),
        ),
    }
}

/// Parses the name of a location. Adds the location to the program if it is new.
pub(crate) fn location(program: &mut Program, piece: Piece) -> Result<Location> {
    let name = piece.text;
    let is_name_character = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty()
        || !name.chars().all(is_name_character)
        || name.starts_with(|c: char| c.is_ascii_digit())
    {
        return error_at(piece, format!("`{name}` is no name of a location"));
    }
    let locations = &mut program.locations;
    if let Some(index) = locations.iter().position(|existing| existing == name) {
        return Ok(index as Location);
    }
    if locations.len() >= MAX_LOCATIONS {
        return error_at(
            piece,
            format!("there are more than {MAX_LOCATIONS} locations"),
        );
    }
    locations.push(name.to_string());
    program.initial.push(0);
    Ok((locations.len() - 1) as Location)
}

/// Parses a number or the address of a location: `1`, `x`, `&x`.
pub(crate) fn value(program: &mut Program, piece: Piece) -> Result<i64> {
    // Initial value of the Linux kernel's atomic counters.
    let initial = piece.text.strip_prefix("ATOMIC_INIT(");
    if let Some(inner) = initial.and_then(|rest| rest.strip_suffix(')')) {
        return number(piece.from("ATOMIC_INIT(".len()).until(inner.len()).trim());
    }
    let name = match piece.text.strip_prefix('&') {
        Some(_) => piece.from(1).trim(),
        None => piece,
    };
    let is_name_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    match name.text.starts_with(is_name_start) {
        true => location(program, name).map(address_of),
        false => number(piece),
    }
}

/// Recursive-descent parser of a condition. Its methods consume the parsed text at the start of `rest`.
struct Reader<'r> {
    /// Program that receives the condition.
    program: &'r mut Program,
    /// Resolver of register names.
    register: RegisterResolver<'r>,
    /// Number of parts of the condition so far, at most [`MAX_PARTS`].
    parts: usize,
}

impl Reader<'_> {
    /// Parses the whole condition, such as `exists (0:X2=0 /\ 1:X2=0)`, after optional `locations` and `filter` parts.
    fn read_condition(&mut self, piece: Piece) -> Result<()> {
        let mut rest = piece.trim();
        let mut filter = false;
        self.program.quantifier = loop {
            let end = rest
                .text
                .find(|c: char| c.is_whitespace() || c == '(' || c == '[')
                .unwrap_or(rest.text.len());
            let word = rest.until(end);
            rest = rest.from(end).trim();
            match word.text {
                "exists" => break Quantifier::Exists,
                "~exists" => break Quantifier::NotExists,
                "forall" => break Quantifier::Forall,
                "locations" => {
                    let Some((items, after_list)) = parse_list(rest) else {
                        return error_at(word, "this list has no end");
                    };
                    for item in items {
                        let observed = self.observed(item)?;
                        self.program.listed.push(observed);
                    }
                    rest = after_list.trim();
                }
                "filter" if !filter => {
                    let claim = self.implies(&mut rest, 0)?;
                    self.program.require(claim);
                    filter = true;
                }
                "" if !filter => return Ok(()),
                "" => return error_at(piece.trim(), "a filter needs a condition"),
                other => return error_at(word, format!("`{other}` is not supported")),
            }
            let unseparated = rest.text.trim_start_matches(';');
            rest = rest.from(rest.text.len() - unseparated.len()).trim();
        };
        self.program.claim = self.implies(&mut rest, 0)?;
        if !rest
            .text
            .trim_matches([';', ' ', '\t', '\r', '\n'])
            .is_empty()
        {
            return error_at(rest, "nothing should follow the condition");
        }
        Ok(())
    }

    /// Parses `a => b`, which has the lowest precedence and associates to the right.
    fn implies(&mut self, rest: &mut Piece, depth: usize) -> Result<Claim> {
        let claim = self.or(rest, depth)?;
        let Some(after) = rest.text.strip_prefix("=>") else {
            return Ok(claim);
        };
        if depth > MAX_DEPTH {
            return error_at(*rest, "this condition has too many parts");
        }
        *rest = rest.from(rest.text.len() - after.len()).trim();
        let then = self.implies(rest, depth + 1)?;
        Ok(disjunction(negate(claim), then))
    }

    /// Parses a disjunction.
    fn or(&mut self, rest: &mut Piece, depth: usize) -> Result<Claim> {
        let mut claim = self.and(rest, depth)?;
        while let Some(after) = rest.text.strip_prefix("\\/") {
            *rest = rest.from(rest.text.len() - after.len()).trim();
            let right = self.and(rest, depth)?;
            claim = Claim::Or(Box::new(claim), Box::new(right));
        }
        Ok(claim)
    }

    /// Parses a conjunction.
    fn and(&mut self, rest: &mut Piece, depth: usize) -> Result<Claim> {
        let mut claim = self.atom(rest, depth)?;
        while let Some(after) = rest.text.strip_prefix("/\\") {
            *rest = rest.from(rest.text.len() - after.len()).trim();
            let right = self.atom(rest, depth)?;
            claim = Claim::And(Box::new(claim), Box::new(right));
        }
        Ok(claim)
    }

    /// Parses a comparison, a negation, a constant, or a claim in parentheses.
    fn atom(&mut self, rest: &mut Piece, depth: usize) -> Result<Claim> {
        self.parts += 1;
        if depth > MAX_DEPTH || self.parts > MAX_PARTS {
            return error_at(*rest, "this condition has too many parts");
        }
        let not = rest
            .text
            .strip_prefix("not")
            .filter(|after| after.starts_with(|c: char| c.is_whitespace() || c == '('));
        if let Some(after) = rest.text.strip_prefix('~').or(not) {
            *rest = rest.from(rest.text.len() - after.len()).trim();
            return Ok(Claim::Not(Box::new(self.atom(rest, depth + 1)?)));
        }
        if rest.text.starts_with('(') {
            let open = *rest;
            *rest = rest.from(1).trim();
            let claim = self.implies(rest, depth + 1)?;
            if !rest.text.starts_with(')') {
                return error_at(open.until(1), "this parenthesis is not closed");
            }
            *rest = rest.from(1).trim();
            return Ok(claim);
        }
        let atom = *rest;
        let is_name_character = |c: char| c.is_ascii_alphanumeric() || "_.%$#&-".contains(c);
        let word = |rest: &mut Piece<'_>| {
            let end = rest
                .text
                .find(|c| !is_name_character(c))
                .unwrap_or(rest.text.len());
            let word = (rest.start, end);
            *rest = rest.from(end).trim();
            word
        };
        let piece_of = |(start, length): (usize, usize)| Piece {
            text: &atom.text[start - atom.start..][..length],
            start,
        };
        let consume = |rest: &mut Piece<'_>, symbol: &str| {
            let is_match = rest.text.starts_with(symbol);
            if is_match {
                *rest = rest.from(symbol.len()).trim();
            }
            is_match
        };
        let bracket = consume(rest, "[");
        let left = piece_of(word(rest));
        if bracket && !consume(rest, "]") {
            return error_at(atom.until(1), "this bracket is not closed");
        }
        match left.text {
            "true" if !bracket => return Ok(Claim::True),
            "false" if !bracket => return Ok(negate(Claim::True)),
            _ => {}
        }
        let register = match !bracket && consume(rest, ":") {
            true => Some(piece_of(word(rest))),
            false => None,
        };
        let differs = consume(rest, "!=") || consume(rest, "<>");
        let equals = !differs && !rest.text.starts_with("=>") && consume(rest, "=");
        // Some tests write `==`.
        if equals {
            consume(rest, "=");
        }
        if !(differs || equals) {
            let stop = |c: char| c.is_whitespace() || matches!(c, ')' | '(' | '/' | '\\');
            let end = atom.text.find(stop).unwrap_or(atom.text.len());
            return error_with_help(
                atom.until(end),
                "a value is expected here",
                "`0:X2=1`, or `x=1`",
            );
        }
        let observed = match register {
            Some(register) => {
                let thread = thread_number(self.program, left)?;
                Observable::Register(thread, (self.register)(self.program, thread, register)?)
            }
            None => Observable::Location(known_location(self.program, left)?),
        };
        let right = piece_of(word(rest));
        let pointer = right.text.strip_prefix('&').unwrap_or(right.text);
        let value = match pointer.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            true => address_of(known_location(
                self.program,
                right.from(right.text.len() - pointer.len()),
            )?),
            false => number(right)?,
        };
        let claim = Claim::Equals(observed, value);
        Ok(if differs { negate(claim) } else { claim })
    }

    /// Reads `0:X2`, `x` or `[x]`.
    fn observed(&mut self, piece: Piece) -> Result<Observable> {
        if let Some((thread, register)) = piece.split_once(":") {
            let thread = thread_number(self.program, thread)?;
            let register = (self.register)(self.program, thread, register)?;
            return Ok(Observable::Register(thread, register));
        }
        let inner = piece.text.strip_prefix('[');
        let inner = inner.and_then(|inner| inner.strip_suffix(']'));
        let name = inner.map_or(piece, |inner| piece.from(1).until(inner.len()).trim());
        Ok(Observable::Location(known_location(self.program, name)?))
    }
}

/// Splits `locations [x; 0:X2;] exists ...` into the items of the list and the text after the list.
fn parse_list(piece: Piece) -> Option<(Vec<Piece>, Piece)> {
    let (mut depth, mut items) = (0, Vec::new());
    let mut item_start = 0;
    for (position, letter) in piece.text.char_indices() {
        let closes = letter == ']' && depth == 1;
        if depth == 1 && (letter == ';' || closes) {
            let item = piece.until(position).from(item_start).trim();
            items.extend((!item.text.is_empty()).then_some(item));
            item_start = position + 1;
        }
        match letter {
            '[' => {
                depth += 1;
                item_start = if depth == 1 { position + 1 } else { item_start };
            }
            ']' => depth -= 1,
            _ => {}
        }
        if closes {
            return Some((items, piece.from(position + 1)));
        }
    }
    None
}

/// Returns a location that the test has named already.
fn known_location(program: &Program, piece: Piece) -> Result<Location> {
    let names = program.locations.iter().map(String::as_str);
    match names.clone().position(|other| other == piece.text) {
        Some(location) => Ok(location as Location),
        None => {
            let message = format!("there is no location `{}`", piece.text);
            error_with_help(piece, message, suggestion(piece.text, "location", names))
        }
    }
}

/// Returns the negation of a claim.
fn negate(claim: Claim) -> Claim {
    Claim::Not(Box::new(claim))
}

/// Returns the disjunction of two claims.
fn disjunction(a: Claim, b: Claim) -> Claim {
    Claim::Or(Box::new(a), Box::new(b))
}
