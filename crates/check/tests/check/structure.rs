//! Limits on the structure of the crate's source.

use cohkit_testing::structure::{sources, violations, Source};
use std::collections::BTreeSet;

#[test]
fn types_and_functions_are_small() {
    let sources = sources(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(violations(&sources, &[]), BTreeSet::new());
}

/// A struct of 21 fields with methods in 4 files, and a function of 81 lines.
fn large_sources() -> Vec<Source> {
    let fields: String = (0..21).map(|n| format!("    f{n}: u8,\n")).collect();
    let body = "    run();\n".repeat(79);
    let text = format!("pub struct Large {{\n{fields}}}\npub(super) fn long() {{\n{body}}}\n");
    let methods = "impl<'a> Large<'a> {\n    fn short(&self) {}\n}\n";
    let files = (0..4).map(|n| (format!("{n}.rs"), methods.to_string()));
    files.chain([("large.rs".to_string(), text)]).collect()
}

/// The limits are effective: each violation in [`large_sources`] is reported, and permitted
/// exceptions are not.
#[test]
fn large_types_and_functions_are_found() {
    let found = violations(&large_sources(), &[("unknown", 99)]);
    let expected = [
        "`Large` has 21 fields; at most 20",
        "`Large` has 4 files with methods; at most 3",
        "`long` has 81 lines; at most 80",
        "`unknown` needs no limit of its own",
    ];
    assert_eq!(found, expected.map(String::from).into());
    let larger = [("Large", 21), ("long", 81)];
    assert!(violations(&large_sources(), &larger).is_empty());
}
