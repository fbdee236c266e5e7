//! Reader for tests in the format of the herd tools: the header, and the parts that assembly and C share.
//!
//! [`crate::assembly`] reads AArch64, 32-bit Arm, RISC-V, x86 and Power, and [`crate::c`] reads C. Unsupported
//! constructs are rejected with their location.

use crate::aarch64::{AARCH64, ARM};
use crate::assembly;
use crate::c;
use crate::condition;
use crate::piece::{error_with_help, without_comments, wrong, Piece, Result};
use crate::power::POWER;
use crate::program::{Claim, Program, Quantifier};
use crate::riscv::RISCV;
use crate::x86::X86;

pub use crate::piece::Diagnostic;

/// Parses a test.
///
/// # Errors
/// The first error, with its location.
pub fn read(text: &str) -> Result<Program> {
    // Offsets in diagnostics have 32 bits.
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
        return error_with_help(title, message, "`AArch64 SB`, for example");
    };
    let dialect = match architecture.text {
        "AArch64" => Some(&AARCH64),
        "ARM" => Some(&ARM),
        "RISCV" => Some(&RISCV),
        "X86" | "X86_64" => Some(&X86),
        "PPC" => Some(&POWER),
        "C" => None,
        other => {
            let message = format!("`{other}` is not an architecture that is supported here");
            return error_with_help(
                architecture,
                message,
                "AArch64, ARM, RISCV, X86, X86_64, PPC and C are supported",
            );
        }
    };
    let mut program = Program {
        name: name.text.to_string(),
        locations: Vec::new(),
        initial: Vec::new(),
        threads: Vec::new(),
        quantifier: Quantifier::Exists,
        claim: Claim::True,
        listed: Vec::new(),
        filter: Claim::True,
    };
    let rest = whole.from(line);
    let Some(open) = rest.text.find('{') else {
        return error_with_help(
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
            "a list of values is not supported",
        );
    }
    let rest = after.from(close + 1);
    // The condition starts at the beginning of a line.
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
    let indirect = match dialect {
        Some(dialect) => assembly::threads(dialect, &mut program, code, first)?,
        None => c::threads(&mut program, code, first)?,
    };
    if let Some(end) = end {
        let mut register = |program: &mut Program, thread: usize, piece: Piece| {
            let thread = &mut program.threads[thread];
            match dialect {
                Some(dialect) => assembly::register(dialect, thread, piece),
                None => c::variable(thread, piece),
            }
        };
        condition::read(&mut program, rest.from(end), &mut register)?;
    }
    assembly::finish(&mut program, indirect)?;
    Ok(program)
}
