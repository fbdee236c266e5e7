//! Former spellings of keywords. They stay valid for one release.
//!
//! Only the parser and the check of declared names know them. Completion, diagnostics and printed rows have the
//! keywords alone.

/// Part of a file in which a keyword has its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Actions of a row.
    Action,
    /// Statements of a home that is given as goals.
    Policy,
    /// Contents of a system.
    System,
}

/// A keyword and its former spelling.
pub(super) struct Alias {
    pub place: Place,
    pub keyword: &'static str,
    pub former: &'static str,
}

const fn alias(place: Place, keyword: &'static str, former: &'static str) -> Alias {
    Alias {
        place,
        keyword,
        former,
    }
}

/// All aliases, in the order of the table in `docs/language.md`.
pub(super) const ALIASES: [Alias; 7] = [
    alias(Place::Action, "stall", "leave"),
    alias(Place::Action, "defer", "aside"),
    alias(Place::Action, "write deferred", "write aside"),
    alias(Place::Action, "unreachable", "never"),
    alias(Place::Policy, "assert", "expect"),
    alias(Place::Policy, "implies", "tells"),
    alias(Place::System, "parent any", "memory lent"),
];

/// Former spelling of a keyword in this place, if it has one.
pub(super) fn former(place: Place, keyword: &str) -> Option<&'static str> {
    let is_alias = |alias: &&Alias| alias.place == place && alias.keyword == keyword;
    ALIASES.iter().find(is_alias).map(|alias| alias.former)
}

/// Returns the keyword for a former spelling in this place, and every other word unchanged.
pub(super) fn current(place: Place, word: &str) -> &str {
    let is_alias = |alias: &&Alias| alias.place == place && alias.former == word;
    ALIASES
        .iter()
        .find(is_alias)
        .map_or(word, |alias| alias.keyword)
}
