//! Analysis of protocol files for editors: mentions of names, and blocks, also in files with errors.

use super::{ECI, MSI};
use crate::text::{analyse, analyse_composing, parse, Mention};
use cohkit_diagnostics::Span;

/// Returns the name of each mention, with the name at its declaration.
fn mention_names(text: &str, mentions: &[Mention]) -> Vec<(String, String)> {
    let text_of = |span: Span| span.text(text).to_string();
    let mentions = mentions.iter();
    mentions
        .map(|mention| (text_of(mention.span), text_of(mention.declaration)))
        .collect()
}

/// An editor jumps from each mention of a name to its declaration.
#[test]
fn mention_refers_to_its_declaration() {
    for text in [ECI, MSI] {
        let analysis = analyse(text);
        assert!(analysis.protocol.is_some() && analysis.diagnostics.is_empty());
        for (used, declared) in mention_names(text, &analysis.mentions) {
            assert_eq!(used, declared);
        }
        // A declaration mentions its own name, so each declaration is among the mentions.
        let declared: Vec<Span> = analysis
            .mentions
            .iter()
            .map(|mention| mention.declaration)
            .collect();
        let mentioned: Vec<Span> = analysis
            .mentions
            .iter()
            .map(|mention| mention.span)
            .collect();
        assert!(declared.iter().all(|span| mentioned.contains(span)));
        let blocks: Vec<&str> = analysis.blocks.iter().map(|span| span.text(text)).collect();
        assert!(blocks[0].starts_with("protocol") && !blocks[0].contains('\n'));
        let remote = blocks.iter().find(|block| block.starts_with("remote"));
        assert!(remote.is_some_and(|block| block.ends_with('}')));
    }
    let analysis = analyse(MSI);
    let kinds = analysis.mentions.iter().map(|mention| mention.kind);
    let kinds: std::collections::BTreeSet<&str> = kinds.collect();
    let expected = ["channel", "field", "message", "state", "variable"];
    assert!(
        expected.iter().all(|kind| kinds.contains(kind)),
        "{kinds:?}"
    );
}

/// `memory writes` reads a variable that no line of the file declares.
#[test]
fn keywords_have_no_mentions() {
    let text = MSI.replace("PutM if sender", "PutM if memory writes and sender");
    let analysis = analyse(&text);
    assert!(
        text.contains("memory writes") && analysis.diagnostics.is_empty(),
        "{:?}",
        analysis.diagnostics
    );
    for (used, declared) in mention_names(&text, &analysis.mentions) {
        assert_eq!(used, declared);
        assert!(!used.contains("memory"));
    }
}

/// A composition with two errors, a file that cannot be loaded and an unclosed block, keeps the names that were
/// understood.
#[test]
fn composition_has_mentions() {
    let text = "protocol both \"Both\"\nuse \"a.coh\" as a\nuse \"b.coh\" as b\n\
                node cpu { a.cache; b.home }\nsystem small { cpu 1; a.home 1 ";
    let load = |file: &str| match file {
        "a.coh" => Ok(parse(MSI).expect("msi is valid")),
        other => Err(format!("no {other}")),
    };
    let (composition, analysis) = analyse_composing(text, &mut { load });
    assert!(composition.is_none() && analysis.diagnostics.len() >= 2);
    let uses: Vec<&str> = analysis.uses.iter().map(|used| used.0.text(text)).collect();
    assert_eq!(uses, ["\"a.coh\"", "\"b.coh\""]);
    let names = mention_names(text, &analysis.mentions);
    let used: Vec<&str> = names.iter().map(|(used, _)| used.as_str()).collect();
    assert_eq!(used, ["a", "b", "cpu", "a", "b", "small", "cpu", "a"]);
    assert!(names.iter().all(|(used, declared)| used == declared));
}

/// Breaks each row of a file in turn.
#[test]
fn row_error_loses_only_the_names_of_its_row() {
    for text in [ECI, MSI] {
        let intact = analyse(text);
        let mut broken_rows = 0;
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let (begin, end) = (start, start + line.len());
            start = end;
            // Only rows on a single line, without braces.
            let continues = line.trim_end().ends_with([',', '|']);
            let is_row = line.matches('|').count() >= 3;
            if !is_row || line.contains(['{', '}', '#']) || continues {
                continue;
            }
            let bar = begin + line.find('|').expect("a row has bars");
            let mut broken_text = text.to_string();
            broken_text.replace_range(bar..bar + 1, "?");
            let analysis = analyse(&broken_text);
            assert!(analysis.protocol.is_none() && !analysis.diagnostics.is_empty());
            assert_eq!(analysis.blocks, intact.blocks);
            let elsewhere = |mention: &&Mention| {
                (mention.span.end as usize) <= begin || mention.span.start as usize >= end
            };
            let remaining: Vec<&Mention> = analysis.mentions.iter().filter(elsewhere).collect();
            let expected: Vec<&Mention> = intact.mentions.iter().filter(elsewhere).collect();
            assert!(remaining == expected, "{line}");
            broken_rows += 1;
        }
        // The loop must have found rows.
        assert!(broken_rows >= 10, "{broken_rows}");
    }
}

/// Cuts the file at every seventh byte.
#[test]
fn truncated_text_keeps_its_earlier_names() {
    for end in (0..ECI.len())
        .filter(|&end| ECI.is_char_boundary(end))
        .step_by(7)
    {
        let analysis = analyse(&ECI[..end]);
        for span in analysis.blocks.iter().copied() {
            assert!(span.end as usize <= end);
        }
        // The declarations of channels and messages precede the remote, so they are complete.
        if ECI[..end].contains("remote cpu") || ECI[..end].contains("\nremote") {
            assert!(analysis
                .mentions
                .iter()
                .any(|mention| mention.kind == "message"));
        }
    }
}

/// Removes each opening brace in turn. The parser goes on as if it were there.
#[test]
fn missing_brace_is_one_error() {
    for text in [ECI, MSI] {
        let intact = analyse(text);
        let mut missing_braces = 0;
        for (position, _) in text.match_indices(" {\n") {
            let mut broken_text = text.to_string();
            broken_text.replace_range(position..position + 2, "  ");
            let analysis = analyse(&broken_text);
            let messages = analysis.diagnostics.iter();
            let messages: Vec<&str> = messages
                .map(|diagnostic| diagnostic.message.as_str())
                .collect();
            assert_eq!(
                messages,
                ["expected `{`, found the end of the line"],
                "{position}"
            );
            assert!(analysis.mentions == intact.mentions);
            missing_braces += 1;
        }
        // The loop must have found braces.
        assert!(missing_braces >= 4, "{missing_braces}");
    }
}
