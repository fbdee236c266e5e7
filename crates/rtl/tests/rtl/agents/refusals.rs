//! Constructs without a step function are refused, and the feature list names those that a whole file has.

use super::{root, Printed};
use std::fs;

/// A construct that is refused: a protocol file of the repository, changes of its text, and the reason.
struct Refused {
    /// File in the repository.
    file: &'static str,
    /// Original texts, which occur in the file, with their replacements.
    changes: &'static [(&'static str, &'static str)],
    /// Number of caching agents.
    remotes: u16,
    /// Reason of the refusal.
    reason: &'static str,
    /// Construct in the feature list.
    listed: &'static str,
}

/// Event of a row of the home of `msi.coh`, before its actions.
const DATA_ROW: &str = "| Data                                          | write   ";

/// Refused constructs.
const REFUSED: &[Refused] = &[
    Refused {
        file: "protocols/msi.coh",
        changes: &[],
        remotes: 17,
        reason: "a system has 1 to 16 caching agents",
        listed: "more than 16 caching agents",
    },
    Refused {
        file: "ordering/seq.coh",
        changes: &[("size homes 1", "size homes 2"), ("lines 1", "lines 2")],
        remotes: 2,
        reason: "`homes` is more than 1",
        listed: "several homes",
    },
    Refused {
        file: "ordering/seq.coh",
        changes: &[],
        remotes: 2,
        reason: "`Flush` is a message about no line",
        listed: "messages about no line",
    },
    Refused {
        file: "protocols/msi.coh",
        changes: &[("  variables {\n    early", "  registers {\n    early")],
        remotes: 2,
        reason: "`early` is a register",
        listed: "registers",
    },
    Refused {
        file: "protocols/msi.coh",
        changes: &[("II_A", "initial")],
        remotes: 2,
        reason: "`initial` and `initial` have the same name in SystemVerilog",
        listed: "states and events with equal names in the package",
    },
    Refused {
        file: "protocols/msi.coh",
        changes: &[(DATA_ROW, "| Data | write, write, write ")],
        remotes: 2,
        reason: "a row that writes memory several times",
        listed: "several writes to memory in one row",
    },
];

/// Each construct is refused with its reason, and `docs/features.md` lists it.
#[test]
fn constructs_without_step_functions_are_refused_and_listed() {
    let page = fs::read_to_string(root().join("docs/features.md")).expect("readable page");
    for refused in REFUSED {
        let text = fs::read_to_string(root().join(refused.file)).expect("readable file");
        let text = refused
            .changes
            .iter()
            .fold(text, |text, (original, changed)| {
                assert!(text.contains(original), "{}: {original}", refused.file);
                text.replace(original, changed)
            });
        let printed = Printed::new(refused.file, &text, &[refused.remotes]);
        let refusal = printed.agents().err().expect(refused.reason);
        assert_eq!(refusal.feature, refused.reason);
        let row = format!("| {} |", refused.listed);
        assert!(page.contains(&row), "`docs/features.md` lacks {row}");
    }
}
