//! Tests of aliases: former spellings of keywords mean the same as the keywords, are documented, and are unused in
//! shipped files.

use super::{reference, MSI};
use crate::text::aliases::{Alias, KeywordContext, ALIASES};
use crate::text::diagnostic::{Code, Sink};
use crate::text::lexer::{lex, Token};
use crate::text::parse;
use cohkit_diagnostics::Span;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Root folder of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Appends the paths of all protocol files in a folder and its subfolders.
fn collect_files(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("a folder can be listed").path();
        if path.is_dir() {
            collect_files(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "coh") {
            paths.push(path);
        }
    }
}

/// Returns the alias whose keyword begins at the token with this index; the longest keyword if there are several.
fn alias_at(text: &str, tokens: &[(Token, Span)], index: usize) -> Option<&'static Alias> {
    let word = |index: usize| {
        let span = tokens.get(index).map_or(Span::default(), |token| token.1);
        &text[span.start as usize..span.end as usize]
    };
    let preceding = index.checked_sub(1).map(|preceding| tokens[preceding].0);
    let matches_alias = |alias: &&Alias| {
        let is_start = match alias.context {
            KeywordContext::Action => {
                matches!(
                    preceding,
                    Some(Token::Bar | Token::Comma | Token::OpenBrace)
                )
            }
            KeywordContext::Policy if alias.keyword == "implies" => {
                index > 1 && word(index - 2) == "assert"
            }
            KeywordContext::Policy | KeywordContext::System => {
                let openers = [Token::Newline, Token::Semicolon, Token::OpenBrace];
                preceding.is_some_and(|preceding| openers.contains(&preceding))
            }
        };
        let mut words = alias.keyword.split(' ').enumerate();
        is_start && words.all(|(offset, keyword)| word(index + offset) == keyword)
    };
    let aliases = ALIASES.iter().filter(matches_alias);
    aliases.max_by_key(|alias| alias.keyword.len())
}

/// Returns a protocol with the former spelling of every keyword that has one. Adds these keywords to `used`.
fn with_former_spellings(text: &str, used: &mut BTreeSet<&'static str>) -> String {
    let tokens = lex(text, &mut Sink::default());
    let mut rewritten = String::new();
    // Byte offset up to which `text` is in `rewritten`.
    let mut copied_end = 0;
    for (index, (_, span)) in tokens.iter().enumerate() {
        if let Some(alias) = alias_at(text, &tokens, index) {
            let last_span = tokens[index + alias.keyword.split(' ').count() - 1].1;
            rewritten += &text[copied_end..span.start as usize];
            rewritten += alias.former;
            copied_end = last_span.end as usize;
            used.insert(alias.keyword);
        }
    }
    rewritten + &text[copied_end..]
}

/// Returns the debug output of the parsed protocol, or of its diagnostics, without source positions.
fn debug_without_spans(text: &str) -> String {
    let mut lines = Vec::new();
    let mut skipped = 0;
    let debug = format!("{:#?}", parse(text));
    for line in debug.lines() {
        if skipped > 0 {
            skipped -= 1;
        } else {
            skipped = if line.ends_with("Span {") { 2 } else { 0 };
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// Rewrites every protocol file of the repository with former spellings, and compares the results of the parser.
#[test]
fn former_spellings_give_the_same_protocol() {
    let mut paths = Vec::new();
    for folder in ["protocols", "ordering", "tests", "crates", "docs"] {
        collect_files(&Path::new(ROOT).join(folder), &mut paths);
    }
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).expect("a protocol file");
        (file.display().to_string(), text)
    };
    let examples = reference::fenced_blocks("coh").into_iter();
    let examples = examples.map(|text| ("language.md".to_string(), text.to_string()));
    let mut used = BTreeSet::new();
    for (file, text) in paths.into_iter().map(read).chain(examples) {
        let former_text = with_former_spellings(&text, &mut used);
        if former_text != text {
            let is_equal = debug_without_spans(&text) == debug_without_spans(&former_text);
            assert!(is_equal, "{file} with former spellings");
        }
        // The file itself uses no former spelling of an action.
        let tokens = lex(&text, &mut Sink::default());
        let is_used = |alias: &&Alias| {
            tokens.iter().any(|(_, span)| {
                alias.context == KeywordContext::Action
                    && &text[span.start as usize..span.end as usize] == alias.former
            })
        };
        let former_spelling = ALIASES.iter().find(is_used).map(|alias| alias.former);
        assert_eq!(former_spelling, None, "{file}");
    }
    let keywords: BTreeSet<&str> = ALIASES.iter().map(|alias| alias.keyword).collect();
    assert_eq!(used, keywords, "keywords with aliases that the files use");
}

/// A name must not change its meaning when an alias is removed.
#[test]
fn former_spellings_of_actions_cannot_be_names() {
    let actions = ALIASES
        .iter()
        .filter(|alias| alias.context == KeywordContext::Action);
    for word in actions.flat_map(|alias| [alias.keyword, alias.former]) {
        if !word.contains(' ') {
            let text = MSI.replacen("states {", &format!("states {{ {word};"), 1);
            assert_ne!(text, MSI);
            let errors = parse(&text).expect_err(word);
            assert_eq!(errors[0].code, Code::ReservedName, "{word}");
        }
    }
}

/// The language reference lists exactly the aliases, in order.
#[test]
fn reference_lists_the_aliases() {
    let reference = include_str!("../../../../../docs/language.md");
    let heading = "### Former spellings\n";
    let (_, section) = reference.split_once(heading).expect("a section of its own");
    let rows = section
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    let rows: Vec<&str> = rows.skip(2).collect();
    let expected = ALIASES.map(|alias| {
        let context = match alias.context {
            KeywordContext::Action => "action of a row",
            KeywordContext::Policy => "policy of a home",
            KeywordContext::System => "system",
        };
        format!("| `{}` | `{}` | {context} |", alias.keyword, alias.former)
    });
    assert_eq!(rows, expected);
}
