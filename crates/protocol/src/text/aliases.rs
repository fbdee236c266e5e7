//! Former spellings of keywords. They stay valid for one release.
//!
//! Only the parser and the check of declared names know them. Completion, diagnostics and printed rows have the
//! keywords alone.

/// Part of a file in which a keyword has its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeywordContext {
    /// Actions of a row.
    Action,
    /// Statements of a home that is given as goals.
    Policy,
    /// Contents of a system.
    System,
}

/// A keyword and its former spelling.
pub(super) struct Alias {
    /// Part of the file in which both spellings are valid.
    pub context: KeywordContext,
    /// Current spelling; may be several words.
    pub keyword: &'static str,
    /// Former spelling.
    pub former: &'static str,
}

/// Creates an alias of a keyword.
const fn alias(context: KeywordContext, keyword: &'static str, former: &'static str) -> Alias {
    Alias {
        context,
        keyword,
        former,
    }
}

/// All aliases, in the order of the table in `docs/language.md`.
pub(super) const ALIASES: [Alias; 7] = [
    alias(KeywordContext::Action, "stall", "leave"),
    alias(KeywordContext::Action, "defer", "aside"),
    alias(KeywordContext::Action, "write deferred", "write aside"),
    alias(KeywordContext::Action, "unreachable", "never"),
    alias(KeywordContext::Policy, "assert", "expect"),
    alias(KeywordContext::Policy, "implies", "tells"),
    alias(KeywordContext::System, "parent any", "memory lent"),
];

/// Former spelling of a keyword in this context, if it has one.
pub(super) fn former_spelling(context: KeywordContext, keyword: &str) -> Option<&'static str> {
    let is_alias = |alias: &&Alias| alias.context == context && alias.keyword == keyword;
    ALIASES.iter().find(is_alias).map(|alias| alias.former)
}

/// Returns the keyword for a former spelling in this context, and every other word unchanged.
pub(super) fn current_spelling(context: KeywordContext, word: &str) -> &str {
    let is_alias = |alias: &&Alias| alias.context == context && alias.former == word;
    ALIASES
        .iter()
        .find(is_alias)
        .map_or(word, |alias| alias.keyword)
}
