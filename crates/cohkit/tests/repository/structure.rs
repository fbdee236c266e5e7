//! Structure of all crates: few fields of types with methods, few files with methods of a type, and short functions.

use super::root;
use cohkit_testing::structure::{sources, violations, LargerLimit, Measure, Source};
use std::collections::BTreeSet;
use Measure::{Fields, FunctionLines, ImplFiles};

/// Limits of types and functions that are larger than others, by crate. They only shrink.
const LARGER_LIMITS: &[(&str, &[LargerLimit])] = &[
    (
        "engine",
        &[
            (FunctionLines, "emit_op", 86),
            (FunctionLines, "execute", 124),
            (FunctionLines, "kind_of_expr", 86),
            (ImplFiles, "AsymmetryAnalysis", 4),
            (ImplFiles, "Compiler", 9),
            (ImplFiles, "Search", 7),
            (ImplFiles, "Validator", 4),
        ],
    ),
    (
        "litmus",
        &[
            (FunctionLines, "add_access", 94),
            (FunctionLines, "atom", 93),
            (FunctionLines, "begin", 92),
            (FunctionLines, "emit_instruction", 124),
            (FunctionLines, "instruction", 92),
            (FunctionLines, "push_instruction", 86),
            (FunctionLines, "read", 92),
        ],
    ),
    ("murphi", &[(ImplFiles, "Lowering", 5)]),
    ("play", &[(ImplFiles, "Transition", 4)]),
    (
        "protocol",
        &[
            (FunctionLines, "check_quiescence", 94),
            (FunctionLines, "expression_in", 122),
            (FunctionLines, "is_request_complete", 85),
            (FunctionLines, "item", 93),
            (FunctionLines, "point_orders", 84),
            (FunctionLines, "resolve", 109),
            (FunctionLines, "resolve_action", 87),
            (FunctionLines, "resolve_locals", 83),
            (FunctionLines, "resolve_policy_item", 84),
            (FunctionLines, "resolve_request", 82),
            (FunctionLines, "resolve_send", 81),
            (FunctionLines, "resolve_system", 92),
            (FunctionLines, "resolve_word", 85),
            (FunctionLines, "statement", 100),
            (ImplFiles, "Parser", 6),
            (ImplFiles, "Resolver", 13),
        ],
    ),
    // Records of statistics.
    (
        "sim",
        &[(Fields, "Attribution", 21), (Fields, "Counters", 24)],
    ),
    ("system", &[(ImplFiles, "SystemState", 12)]),
    (
        "testing",
        &[
            (FunctionLines, "every_construct", 89),
            (FunctionLines, "owner", 109),
            (FunctionLines, "sharers", 105),
        ],
    ),
    ("trace", &[(ImplFiles, "TraceChecker", 8)]),
];

/// Folders of all crates.
fn crates() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("crates")).expect("the folder of the crates");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn types_and_functions_are_small() {
    let mut found = BTreeSet::new();
    let crates = crates();
    for name in &crates {
        let sources = sources(&root().join("crates").join(name));
        let larger = LARGER_LIMITS
            .iter()
            .find(|(crate_name, _)| crate_name == name);
        let violations = violations(&sources, larger.map_or(&[], |(_, limits)| limits));
        found.extend(
            violations
                .into_iter()
                .map(|violation| format!("{name}: {violation}")),
        );
    }
    assert_eq!(found, BTreeSet::new());
    for (name, _) in LARGER_LIMITS {
        assert!(crates.iter().any(|crate_name| crate_name == name), "{name}");
    }
}

/// A struct of 21 fields with methods in 4 files, and a function of 81 lines. Another struct of the same name has its own
/// file.
fn large_sources() -> Vec<Source> {
    let fields: String = (0..21).map(|n| format!("    f{n}: u8,\n")).collect();
    let body = "    run();\n".repeat(79);
    let text = format!("pub struct Large {{\n{fields}}}\npub(super) fn long() {{\n{body}}}\n");
    let methods = "impl<'a> Large<'a> {\n    fn short(&self) {}\n}\n";
    let files = (0..4).map(|n| (format!("large/{n}.rs"), methods.to_string()));
    let small = format!("struct Large {{\n    f: u8,\n}}\n{methods}");
    files
        .chain([
            ("large/mod.rs".to_string(), text),
            ("small.rs".to_string(), small),
        ])
        .collect()
}

/// The limits are effective: each violation in [`large_sources`] is reported, permitted exceptions are not, and a limit
/// that could be lower is.
#[test]
fn large_types_and_functions_are_found() {
    let found = violations(&large_sources(), &[(FunctionLines, "short", 99)]);
    let expected = [
        "`Large` has 21 fields; at most 20",
        "`Large` has 4 files with methods; at most 3",
        "`long` has 81 lines; at most 80",
        "`short` has 1 lines: lower its limit of 99",
    ];
    assert_eq!(found, expected.map(String::from).into());
    let larger = [
        (Fields, "Large", 21),
        (ImplFiles, "Large", 4),
        (FunctionLines, "long", 81),
    ];
    assert_eq!(violations(&large_sources(), &larger), BTreeSet::new());
}
