//! Protocol files as inputs, and names in results, that the tests of this binary share.

use cohkit_engine::Property;
use cohkit_protocol::construct::construct;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_protocol::text::parse;

/// Returns a shipped protocol file, by its name without folder and ending.
pub fn shipped(name: &str) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/../../protocols/{name}.coh");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Parses a protocol file. Panics with the rendered errors if it has any.
pub fn parse_valid(text: &str) -> Protocol {
    parse(text).unwrap_or_else(|errors| {
        let messages = errors.iter().map(|error| error.render("text", text, false));
        panic!("{}", messages.collect::<String>())
    })
}

/// Returns the hand-written home, or the one constructed from the policy: plain rows for one remote, factored for more.
pub fn home_of(protocol: &Protocol, remotes: u16) -> Controller {
    match &protocol.home {
        Home::Controller(home) => home.clone(),
        Home::Policy(_) => {
            let construction = construct(protocol).unwrap_or_else(|error| panic!("{error:?}"));
            // States of the home with indistinguishable futures are merged.
            let merge = true;
            match remotes {
                1 => construction.flat(merge),
                _ => construction.factored(merge),
            }
        }
    }
}

/// Returns the text with one change. Panics unless it contains `from` exactly once.
pub fn replace_once(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "number of `{from}`");
    text.replace(from, to)
}

/// Returns the name of a property: the name that an invariant or assertion has in the model, otherwise the name in
/// reports.
pub fn property_name(property: Property) -> String {
    match property {
        Property::Invariant(name) | Property::Assertion(name) => name,
        other => other.to_string(),
    }
}
