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

mod calls;
mod expressions;
mod functions;
mod order;
mod reader;
mod tokens;

pub(crate) use reader::variable;

use crate::condition::location;
use crate::piece::{error_at, error_with_help, Piece, Result};
use crate::program::{Location, Program, Thread};
use reader::Reader;
use tokens::{tokens, without_comments};

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

/// Parses `x = 1`, `[x] = 1`, `int x = 1` or `int x`. Returns the location if the item gives it a value.
fn parse_initial_value(program: &mut Program, item: Piece) -> Result<Option<Location>> {
    if item.text.is_empty() {
        return Ok(None);
    }
    let (declaration, value) = match item.split_once("=") {
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
