//! Shipped protocols with hand-written homes, with changes, and the results of their search.

use crate::support::{home_of, parse_valid, property_name, replace_once, shipped};
use cohkit_check::system::{model, Options};
use cohkit_engine::{check, Options as Search, Outcome};

/// A replacement in a protocol file: the old text, which occurs once, and the new one.
pub type Change<'t> = (&'t str, &'t str);

/// Returns a shipped protocol file with changes.
pub fn with_changes(name: &str, changes: &[Change]) -> String {
    let change = |text: String, (from, to): &Change| replace_once(&text, from, to);
    changes.iter().fold(shipped(name), change)
}

/// Number of states and number of transitions of a system.
pub type Size = (u128, u128);

/// Returns the size of a system without violation, in states up to symmetry, or the name of the violated property.
pub fn search(text: &str, remotes: u16, lines: u8) -> Result<Size, String> {
    search_with(text, remotes, lines, Search::default())
}

/// As [`search`], without symmetry reduction.
pub fn search_every_state(text: &str, remotes: u16, lines: u8) -> Result<Size, String> {
    let search = Search {
        symmetry: false,
        ..Search::default()
    };
    search_with(text, remotes, lines, search)
}

fn search_with(text: &str, remotes: u16, lines: u8, search: Search) -> Result<Size, String> {
    let protocol = parse_valid(text);
    let home = home_of(&protocol, remotes);
    let model = model(&protocol, &home, remotes, lines, &Options::default()).unwrap();
    let report = check(&model, &search).unwrap();
    match report.outcome {
        Outcome::Verified => Ok((report.states, report.transitions)),
        Outcome::Violated { property, .. } => Err(property_name(property)),
        other => panic!("neither verified nor violated: {other:?}"),
    }
}
