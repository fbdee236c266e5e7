//! Diagnostics: every error of a document is published at its position, after every change.

use super::{protocols, text_in, two_levels, Editor};
use serde_json::json;

#[test]
fn diagnostics_are_complete() {
    let mut editor = Editor::start_initialised();
    let source = std::fs::read_to_string(crate::tiny()).expect("the file can be read");
    let uri = "file:///tiny.coh";
    editor.open(uri, &source);
    let duplicated = source.replace("grant:   Data", "grant:   Data, Get");
    let diagnostics = editor.change(uri, &duplicated.replace("send Put", "send Pit"));
    let diagnostics = serde_json::to_string_pretty(&diagnostics).expect("JSON");
    expect_test::expect![[r#"
        [
          {
            "code": "duplicate-name",
            "message": "a second message `Get`: declared again",
            "range": {
              "end": {
                "character": 20,
                "line": 20
              },
              "start": {
                "character": 17,
                "line": 20
              }
            },
            "relatedInformation": [
              {
                "location": {
                  "range": {
                    "end": {
                      "character": 14,
                      "line": 16
                    },
                    "start": {
                      "character": 11,
                      "line": 16
                    }
                  },
                  "uri": "file:///tiny.coh"
                },
                "message": "declared here"
              }
            ],
            "severity": 1,
            "source": "cohkit"
          },
          {
            "code": "carries",
            "message": "`S` holds the line, but nothing brings it there from `IS`: `Data` carries no line\nhelp: a message brings the line if it is declared with `(line)`",
            "range": {
              "end": {
                "character": 31,
                "line": 30
              },
              "start": {
                "character": 2,
                "line": 30
              }
            },
            "relatedInformation": [
              {
                "location": {
                  "range": {
                    "end": {
                      "character": 6,
                      "line": 27
                    },
                    "start": {
                      "character": 4,
                      "line": 27
                    }
                  },
                  "uri": "file:///tiny.coh"
                },
                "message": "add `holds` if it keeps the line"
              }
            ],
            "severity": 1,
            "source": "cohkit"
          },
          {
            "code": "unknown-name",
            "message": "unknown message `Pit`: nothing has this name\nhelp: did you mean `Put`? the messages are `Get`, `Put`, `Gone`, `None`, `Drop`, `Data`",
            "range": {
              "end": {
                "character": 26,
                "line": 31
              },
              "start": {
                "character": 23,
                "line": 31
              }
            },
            "relatedInformation": [],
            "severity": 1,
            "source": "cohkit"
          }
        ]"#]].assert_eq(&diagnostics);
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn diagnostics_carry_the_latest_document_version() {
    let (_folder, uri, text) = two_levels();
    let mut editor = Editor::start_initialised();
    let version = |editor: &mut Editor, uri: &str| {
        let notification = editor.receive();
        assert_eq!(notification["params"]["uri"], uri, "{notification}");
        let diagnostic_count = notification["params"]["diagnostics"]
            .as_array()
            .map(Vec::len);
        (notification["params"]["version"].clone(), diagnostic_count)
    };
    let open = |editor: &mut Editor, uri: &str, version: i32, text: &str| {
        let document =
            json!({ "uri": uri, "languageId": "cohkit", "version": version, "text": text });
        editor.notify("textDocument/didOpen", json!({ "textDocument": document }));
    };
    open(&mut editor, &uri, 3, &text);
    assert_eq!(version(&mut editor, &uri), (json!(3), Some(0)));
    let used_uri = uri.replace("two-level", "mesi");
    open(&mut editor, &used_uri, 40, "protocol");
    let (document_version, diagnostic_count) = version(&mut editor, &used_uri);
    assert!(document_version == 40 && diagnostic_count > Some(0));
    let (document_version, diagnostic_count) = version(&mut editor, &uri);
    assert!(
        document_version == 3 && diagnostic_count > Some(0),
        "{document_version}"
    );
    let document = json!({ "uri": uri, "version": 7 });
    let changes = json!([{ "text": text.replace("mesi.coh", "nowhere.coh") }, { "text": text.replace("\"mesi.coh\"", "\"mesi-l1.coh\"") }, { "text": "protocol x @" }]);
    let params = json!({ "textDocument": document, "contentChanges": changes });
    editor.notify("textDocument/didChange", params);
    let notification = editor.receive();
    assert_eq!(notification["params"]["version"], 7);
    let message = notification["params"]["diagnostics"][0]["message"].as_str();
    assert!(
        message.is_some_and(|message| message.starts_with("`@`")),
        "{notification}"
    );
    assert_eq!(editor.shut_down(), Some(0));
}

/// Pseudo-random numbers of a seed.
struct Random(u64);

impl Random {
    /// Returns a number below `bound`; 0 counts as 1.
    fn next_below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    /// Removes, moves, or inserts parts of a text, so that it becomes invalid.
    fn corrupt(&mut self, text: &str) -> String {
        const INSERTED_PARTS: [&str; 12] = [
            "𝄞",
            "\"é𝄞\" ",
            "\r",
            "\r\n",
            "\u{1}",
            "{",
            "}",
            "|",
            " if ",
            "\"",
            "protocol",
            "é",
        ];
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..=self.next_below(4) {
            let start = self.next_below(characters.len());
            let end = (start + self.next_below(40)).min(characters.len());
            match self.next_below(3) {
                0 => drop(characters.drain(start..end)),
                1 => {
                    let part: Vec<char> = characters[start..end].to_vec();
                    let target = self.next_below(characters.len());
                    characters.splice(target..target, part);
                }
                _ => drop(characters.splice(
                    start..start,
                    INSERTED_PARTS[self.next_below(INSERTED_PARTS.len())].chars(),
                )),
            }
        }
        characters.into_iter().collect()
    }
}

#[test]
fn broken_documents_get_positioned_diagnostics() {
    let mut editor = Editor::start_initialised();
    let texts = protocols();
    let single_protocols = texts
        .iter()
        .filter(|(_, text)| !cohkit_protocol::text::composes(text));
    let single_protocols: Vec<_> = single_protocols.collect();
    let uri = "file:///broken%20%F0%9D%84%9E.coh";
    editor.open(uri, "");
    let (mut diagnostic_count, mut surrogate_count, mut definition_count) = (0, 0, 0);
    for seed in 0..720 {
        let mut chance = Random(seed);
        let text = chance.corrupt(&single_protocols[seed as usize % single_protocols.len()].1);
        if cohkit_protocol::text::composes(&text) {
            continue;
        }
        let expected = cohkit_protocol::text::parse(&text)
            .err()
            .unwrap_or_default();
        let diagnostics = editor.change(uri, &text);
        assert_eq!(diagnostics.len(), expected.len(), "seed {seed}");
        for (diagnostic, expected) in diagnostics.iter().zip(&expected) {
            diagnostic_count += 1;
            let position = |end: u32| {
                // A line terminator belongs to its line, and adds no code units.
                let preceding_text = &text[..end as usize];
                let ends_outside_terminator =
                    !preceding_text.ends_with('\r') || !text[end as usize..].starts_with('\n');
                let preceding_text = if ends_outside_terminator {
                    preceding_text
                } else {
                    &preceding_text[..preceding_text.len() - 1]
                };
                let preceding_text = preceding_text.replace("\r\n", "\n").replace('\r', "\n");
                let line = preceding_text
                    .rsplit('\n')
                    .next()
                    .expect("the text has a line");
                json!({ "line": preceding_text.matches('\n').count(), "character": line.encode_utf16().count() })
            };
            let range = json!({ "start": position(expected.span.start), "end": position(expected.span.end) });
            assert_eq!(diagnostic["range"], range, "seed {seed}: {diagnostic}");
            assert_eq!(diagnostic["code"], expected.code.name(), "seed {seed}");
            let message = diagnostic["message"].as_str().expect("a JSON string");
            assert!(
                message.starts_with(&expected.message),
                "seed {seed}: {message}"
            );
            text_in(&text, &diagnostic["range"]);
            for related in diagnostic["relatedInformation"]
                .as_array()
                .expect("a JSON list")
            {
                text_in(&text, &related["location"]["range"]);
            }
            let preceding_text = &text[..expected.span.start as usize];
            let line = preceding_text
                .rsplit('\n')
                .next()
                .expect("the text has a line");
            surrogate_count += usize::from(line.chars().any(|character| character.len_utf16() > 1));
        }
        for block in editor.symbols(uri) {
            text_in(&text, &block["range"]);
            text_in(&text, &block["selectionRange"]);
        }
        for _ in 0..8 {
            let lines = text.split('\n').count();
            let position = (chance.next_below(lines + 2), chance.next_below(90));
            let definition = editor.request_at("definition", uri, position);
            if !definition.is_null() {
                definition_count += 1;
                text_in(&text, &definition["range"]);
            }
            editor.request_at("hover", uri, position);
        }
        editor.request_at("completion", uri, (0, 0));
    }
    assert!(
        diagnostic_count > 300 && surrogate_count > 5 && definition_count > 100,
        "{diagnostic_count} {surrogate_count} {definition_count}"
    );
    assert_eq!(editor.shut_down(), Some(0));
}
