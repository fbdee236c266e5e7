//! Reader for tests in the format of the herd tools: the header, and the parts that assembly and C share.
//!
//! [`crate::assembly`] reads AArch64, 32-bit Arm, RISC-V, x86 and Power, and [`crate::c`] reads C. Unsupported
//! constructs are rejected with their location.

use crate::aarch64::{AARCH64, ARM};
use crate::assembly;
use crate::c;
use crate::condition;
use crate::piece::{error_at, error_with_help, without_comments, Piece, Result};
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
        let start = Piece { text: "", start: 0 };
        return error_at(start, "the test is longer than a mebibyte");
    }
    let blanked = without_comments(text)?;
    let source = Piece {
        text: &blanked,
        start: 0,
    };
    let line = source.text.find('\n').unwrap_or(source.text.len());
    let title = source.until(line).trim();
    let Some((architecture, name)) = title.split_once(" ") else {
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
    let rest = source.from(line);
    let Some(open) = rest.text.find('{') else {
        return error_with_help(
            rest.trim().until(0),
            "the block of first values is missing",
            "`{ 0:X1=x; }`",
        );
    };
    let block = rest.from(open + 1);
    let Some(close) = block.text.find('}') else {
        return error_at(rest.from(open).until(1), "this block has no end");
    };
    let initial_values = block.until(close);
    if let Some(list) = initial_values.text.find('{') {
        return error_at(
            initial_values.from(list).until(1),
            "a list of values is not supported",
        );
    }
    let rest = block.from(close + 1);
    // The condition starts at the beginning of a line.
    let keyword_position = |word: &str| {
        let mut positions = rest.text.match_indices(word).map(|(index, _)| index);
        positions.find(|&index| {
            rest.text[..index]
                .trim_end_matches([' ', '\t'])
                .ends_with('\n')
        })
    };
    let keywords = ["exists", "~exists", "forall", "locations", "filter"];
    let end = keywords.into_iter().filter_map(keyword_position).min();
    let code = rest.until(end.unwrap_or(rest.text.len()));
    let indirect = match dialect {
        Some(dialect) => assembly::threads(dialect, &mut program, code, initial_values)?,
        None => c::threads(&mut program, code, initial_values)?,
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
