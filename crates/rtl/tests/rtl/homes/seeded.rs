//! Homes with faults in a copy of their RTL, inactive by default. A plusarg enables one, so that all share a build.

use super::{build_home, Built, Compiled};
use cohkit_rtl::lockstep::shapes::Shape;
use cohkit_rtl::sources::SOURCES;

/// A fault of the RTL.
pub struct Fault {
    /// Name of the source file.
    pub file: &'static str,
    /// The original text, which occurs once.
    pub original: &'static str,
    /// The replacement; `@` means "this fault is enabled".
    pub faulty: &'static str,
}

/// Returns the plusarg that enables a fault by its number, from 1; 0 enables none.
pub fn fault_argument(number: usize) -> String {
    format!("fault={number}")
}

/// Builds the home of a protocol with these faults.
pub fn build_with_faults<'f>(
    compiled: Compiled,
    shape: Shape,
    faults: impl Iterator<Item = &'f Fault>,
) -> Option<Built> {
    let mut sources: Vec<(&str, String)> = SOURCES
        .iter()
        .map(|&(name, text)| (name, text.to_string()))
        .collect();
    let mut replace = |file: &str, original: &str, faulty: &str| {
        let source = sources.iter_mut().find(|(name, _)| *name == file);
        let (_, text) = source.unwrap_or_else(|| panic!("there is no source {file}"));
        assert_eq!(text.matches(original).count(), 1, "`{original}` in {file}");
        *text = text.replace(original, faulty);
    };
    for (index, fault) in faults.enumerate() {
        let enabled = format!("(home_pkg::seeded_fault == 32'd{})", index + 1);
        replace(
            fault.file,
            fault.original,
            &fault.faulty.replace('@', &enabled),
        );
    }
    let package = "package home_pkg;\n";
    let with_number = format!("{package}  int unsigned seeded_fault;\n");
    replace("home_pkg.sv", package, &with_number);
    let end = "endmodule : lockstep";
    let reads = format!(
        "  initial if ($value$plusargs(\"fault=%d\", home_pkg::seeded_fault) == 0) home_pkg::seeded_fault = 0;\n{end}"
    );
    replace("lockstep.sv", end, &reads);
    let sources: Vec<(&str, &str)> = sources
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    build_home(compiled, &sources, shape)
}
