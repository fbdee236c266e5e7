//! Consistency of the language reference and the parser: the examples are parsed, and the grammar has exactly the
//! productions and words of the parser.

use super::load_shipped;
use crate::controller::Access;
use crate::text::diagnostic::{Diagnostic, Sink};
use crate::text::{compose, composes, lexer, parse, parser};
use std::collections::BTreeSet;

/// Language reference, from which examples and grammar are taken.
const REFERENCE: &str = include_str!("../../../../../docs/language.md");

/// Contents of the fenced blocks of a kind.
pub(super) fn fenced_blocks(kind: &str) -> Vec<&'static str> {
    let fence = format!("```{kind}\n");
    let block_content = |rest: &'static str| {
        rest.split("```")
            .next()
            .expect("split gives one part at least")
    };
    REFERENCE
        .match_indices(&fence)
        .map(|(start, _)| block_content(&REFERENCE[start + fence.len()..]))
        .collect()
}

/// Errors of an example: all of a whole file, or those of syntax of a part.
fn example_errors(example: &str) -> Vec<Diagnostic> {
    if composes(example) {
        return compose(example, &mut load_shipped)
            .err()
            .unwrap_or_default();
    }
    if example.starts_with("protocol") {
        return parse(example).err().unwrap_or_default();
    }
    let mut sink = Sink::default();
    parser::Parser::new(example, &lexer::lex(example, &mut sink), &mut sink).file();
    sink.finish()
}

/// Quoted words of the grammar.
fn grammar_words() -> BTreeSet<&'static str> {
    let [grammar] = fenced_blocks("ebnf")[..] else {
        panic!("one grammar")
    };
    grammar
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|word| word.starts_with(|first: char| first.is_ascii_alphabetic()))
        .collect()
}

/// Fails if `docs/language.md` shows an example that the parser rejects.
#[test]
fn reference_examples_have_no_errors() {
    assert!(fenced_blocks("coh").len() >= 6);
    for example in fenced_blocks("coh") {
        let rendered: Vec<String> = example_errors(example)
            .iter()
            .map(|diagnostic| diagnostic.render("language.md", example, false))
            .collect();
        assert!(rendered.is_empty(), "{}", rendered.join("\n"));
    }
}

/// The productions that the parser enters in the examples are those that the grammar declares.
#[test]
fn grammar_productions_match_the_parser() {
    let mut used = BTreeSet::new();
    for example in fenced_blocks("coh") {
        let mut sink = Sink::default();
        let tokens = lexer::lex(example, &mut sink);
        let mut parser = parser::Parser::new(example, &tokens, &mut sink);
        parser.file();
        used.append(&mut parser.productions);
    }
    // These are inlined in other productions and have no function of their own.
    let inlined = [
        "statement",
        "class",
        "end",
        "event",
        "access",
        "actions",
        "policy",
    ];
    let [grammar] = fenced_blocks("ebnf")[..] else {
        panic!("one grammar")
    };
    let declared: BTreeSet<&str> = grammar
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .map(|line| line.split_whitespace().next().expect("a name"))
        .filter(|name| !inlined.contains(name))
        .collect();
    assert_eq!(declared, used);
}

/// Each word of the grammar is needed by an example: replacing the word gives errors.
#[test]
fn grammar_words_are_known_to_the_parser() {
    for word in grammar_words() {
        let is_needed = fenced_blocks("coh").into_iter().any(|example| {
            let mut sink = Sink::default();
            let mut changed_text = String::new();
            let mut copied = 0;
            for (token, span) in lexer::lex(example, &mut sink) {
                let (start, end) = (span.start as usize, span.end as usize);
                if token == lexer::Token::Word && &example[start..end] == word {
                    changed_text.push_str(&example[copied..start]);
                    changed_text.push_str("xyzzy");
                    copied = end;
                }
            }
            changed_text.push_str(&example[copied..]);
            copied > 0 && !example_errors(&changed_text).is_empty()
        });
        assert!(is_needed, "no example needs the word `{word}`");
    }
}

/// Every word that the parser compares with is in the grammar.
#[test]
fn parser_words_are_in_the_grammar() {
    let words = grammar_words();
    let sources = [
        include_str!("../parser.rs"),
        include_str!("../parser/agent.rs"),
        include_str!("../parser/composition.rs"),
        include_str!("../parser/expression.rs"),
        include_str!("../parser/messages.rs"),
        include_str!("../parser/types.rs"),
    ];
    let compared = sources
        .iter()
        .flat_map(|source| source.split("_word(\"").skip(1));
    let compared = compared.map(|rest| rest.split('"').next().expect("the rest of a word"));
    let accesses = Access::ALL.iter().map(|(_, access)| *access);
    let classes = parser::CLASSES.iter().map(|(class, _)| *class);
    for word in compared
        .chain(accesses)
        .chain(classes)
        .chain(parser::RESERVED)
    {
        assert!(words.contains(word), "the grammar lacks `{word}`");
    }
}
