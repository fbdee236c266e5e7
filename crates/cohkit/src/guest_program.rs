//! A guest program and its source: positions of cores, origins of wild jumps, and stack overflows, as text.

use cohkit_riscv::elf::{self, Image};
use cohkit_riscv::Exception;

/// A guest program: its ELF file and the file's parsed form.
#[derive(Clone, Copy)]
pub(crate) struct GuestProgram<'a> {
    /// Contents of the ELF file, whose debug information gives source lines.
    pub(crate) file: &'a [u8],
    /// Segments and symbols of the file.
    pub(crate) image: &'a Image<'a>,
}

impl GuestProgram<'_> {
    /// Position of a core: the address `pc`, the instruction in assembly if it is not empty, and the function and
    /// source line if they are known. For inlined code, the calling lines follow.
    pub(crate) fn describe_position(self, pc: u64, instruction: &str) -> String {
        let mut position = format!("{pc:#x}");
        if !instruction.is_empty() {
            position += &format!(": {instruction}");
        }
        if let Some(source) = self.source_location(pc) {
            position += &format!("\n  in {source}");
        }
        position
    }

    /// Description of the jump that led to an address without a valid instruction, with the jump's address `from`;
    /// empty for other exceptions, or if `from` is unknown.
    pub(crate) fn describe_jump(self, exception: &Exception, from: Option<u64>) -> String {
        use Exception::{FetchFault, FetchPageFault, IllegalInstruction};
        match (exception, from) {
            (FetchFault(_) | FetchPageFault(_) | IllegalInstruction(_), Some(from)) => {
                format!("\n  jumped to from {}", self.describe_position(from, ""))
            }
            _ => String::new(),
        }
    }

    /// Function at the address `pc` with the offset in bytes, and the lines of its source if they are known; `None`
    /// outside of all functions.
    fn source_location(self, pc: u64) -> Option<String> {
        let (name, offset) = self.image.symbol_at(pc)?;
        let mut location = format!("{name} + {offset}");
        for (number, (file, line)) in elf::lines(self.file, pc).iter().enumerate() {
            // The first line is that of the innermost inlined function.
            let call_text = if number > 0 { "called at " } else { "" };
            location += &format!(", {call_text}{file}:{line}");
        }
        Some(location)
    }
}

/// Relation of the stack that overflowed to the size of memory, `memory_mib` in MiB, with the remedy; empty for other
/// exceptions.
pub(crate) fn explain_stack_overflow(exception: &Exception, memory_mib: u64) -> String {
    match exception {
        Exception::StackOverflow(_) => {
            format!(" (the stack has one eighth of the {memory_mib} MiB of memory; `--memory MIB` gives more)")
        }
        _ => String::new(),
    }
}
