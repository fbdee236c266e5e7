//! Shipped protocols with hand-written homes, with changes, and the results of their search.

use cohkit_check::system::{model, Options};
use cohkit_engine::{check, Options as Search, Outcome, Property};
use cohkit_protocol::protocol::Home;
use cohkit_protocol::text::parse;

/// Returns a shipped protocol file by its name without folder and ending.
pub fn shipped(name: &str) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    std::fs::read_to_string(format!("{root}/../../protocols/{name}.coh")).unwrap()
}

/// Returns a shipped protocol file with changes. Each replaced string occurs once.
pub fn with_changes(name: &str, changes: &[(&str, &str)]) -> String {
    let mut text = shipped(name);
    for (from, to) in changes {
        assert_eq!(text.matches(from).count(), 1, "`{from}`");
        text = text.replace(from, to);
    }
    text
}

/// Returns the states and transitions of a system without violation, or the name of the violated
/// property. `symmetry` searches states up to symmetry.
pub fn search(text: &str, remotes: u16, lines: u8, symmetry: bool) -> Result<(u128, u128), String> {
    let protocol = parse(text).unwrap_or_else(|errors| {
        let messages = errors.iter().map(|e| e.render("text", text, false));
        panic!("{}", messages.collect::<String>())
    });
    let Home::Controller(home) = &protocol.home else {
        panic!("expected a home with rows");
    };
    let model = model(&protocol, home, remotes, lines, &Options::default()).unwrap();
    let options = Search {
        symmetry,
        ..Search::default()
    };
    let report = check(&model, &options).unwrap();
    match report.outcome {
        Outcome::Verified => Ok((report.states, report.transitions)),
        Outcome::Violated { property, .. } => Err(match property {
            Property::Invariant(name) | Property::Assertion(name) => name,
            other => other.to_string(),
        }),
        other => panic!("{other:?}"),
    }
}
