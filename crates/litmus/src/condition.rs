//! Conditions of tests, and the names that all tests have in common.

use cohkit_protocol::text::suggestion;

use crate::piece::{helped, number, wrong, Piece, Result};
use crate::program::{Claim, Location, Observed, Program, Quantifier, Register};

/// Threads of a test, at most.
pub const MOST_THREADS: usize = 8;
/// Instructions of a thread, at most.
pub const MOST_INSTRUCTIONS: usize = 64;
/// Locations of a test, at most.
pub const MOST_LOCATIONS: usize = 8;
/// Parts of a condition within each other, at most.
const MOST_DEPTH: usize = 64;

/// How a register of a thread is called.
pub(crate) type Named<'n> = &'n mut dyn FnMut(&mut Program, usize, Piece) -> Result<Register>;

/// Reads what is asked of a program's ends.
pub(crate) fn read(program: &mut Program, piece: Piece, register: Named) -> Result<()> {
    Reader { program, register }.whole(piece)
}

/// The number of a thread.
pub(crate) fn thread_number(program: &Program, piece: Piece) -> Result<usize> {
    let count = program.threads.len();
    match piece.text.parse() {
        Ok(thread) if thread < count => Ok(thread),
        _ => wrong(
            piece,
            format!("there is no thread `{}`; there are {count}", piece.text),
        ),
    }
}

/// A location, which is new if it was not named before.
pub(crate) fn location(program: &mut Program, piece: Piece) -> Result<Location> {
    let name = piece.text;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(fits) || name.starts_with(|c: char| c.is_ascii_digit())
    {
        return wrong(piece, format!("`{name}` is no name of a location"));
    }
    let locations = &mut program.locations;
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
    program.initial.push(0);
    Ok((locations.len() - 1) as Location)
}

struct Reader<'r> {
    program: &'r mut Program,
    register: Named<'r>,
}

impl Reader<'_> {
    /// `exists (0:X2=0 /\ 1:X2=0)`.
    fn whole(&mut self, piece: Piece) -> Result<()> {
        let piece = piece.trim();
        let end = piece
            .text
            .find(|c: char| c.is_whitespace() || c == '(')
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
                    _ => self.whole(rest),
                };
            }
            other => return wrong(word, format!("`{other}` is not read here")),
        };
        let mut rest = piece.from(end).trim();
        let claim = self.or(&mut rest, 0)?;
        implies(rest)?;
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
            .filter(|after| after.starts_with(|c: char| c.is_whitespace() || c == '('));
        if let Some(after) = rest.text.strip_prefix('~').or(not) {
            *rest = rest.from(rest.text.len() - after.len()).trim();
            return Ok(Claim::Not(Box::new(self.atom(rest, depth + 1)?)));
        }
        if rest.text.starts_with('(') {
            let open = *rest;
            *rest = rest.from(1).trim();
            let claim = self.or(rest, depth + 1)?;
            implies(*rest)?;
            if !rest.text.starts_with(')') {
                return wrong(open.until(1), "this parenthesis is not closed");
            }
            *rest = rest.from(1).trim();
            return Ok(claim);
        }
        let stop = |c: char| c.is_whitespace() || matches!(c, ')' | '(' | '/' | '\\');
        let first = *rest;
        let mut until = |stops: &dyn Fn(char) -> bool| {
            let end = rest.text.find(stops).unwrap_or(rest.text.len());
            let part = rest.until(end);
            *rest = rest.from(end).trim();
            part
        };
        let left = until(&|c| stop(c) || c == '=');
        if left.text == "true" {
            return Ok(Claim::True);
        }
        let after = rest.text.strip_prefix('=');
        let Some(after) = after.filter(|after| !after.starts_with('>')) else {
            let atom = first.until(first.text.find(stop).unwrap_or(first.text.len()));
            return helped(atom, "a value is asked for here", "`0:X2=1`, or `x=1`");
        };
        *rest = rest.from(rest.text.len() - after.len()).trim();
        let end = rest.text.find(stop).unwrap_or(rest.text.len());
        let value = number(rest.until(end))?;
        *rest = rest.from(end).trim();
        let observed = match left.once(":") {
            Some((thread, register)) => {
                let thread = thread_number(self.program, thread)?;
                Observed::Register(thread, (self.register)(self.program, thread, register)?)
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

/// What the herd tools read between two claims, and we do not.
fn implies(rest: Piece) -> Result<()> {
    match rest.text.starts_with("=>") {
        true => helped(
            rest.until(2),
            "`=>` is not read in a condition",
            "`not (a) \\/ b` says the same",
        ),
        false => Ok(()),
    }
}
