//! Edits: renaming, formatting, and semantic tokens for colours.

use super::{protocols, start_of, text_in, uri, Editor};
use serde_json::{json, Value};

/// Applies edits, which must not overlap, to a text.
fn apply_edits(text: &str, edits: &[Value]) -> String {
    let byte_offset = |position: &Value| {
        let number = |name: &str| position[name].as_u64().expect("a JSON number") as usize;
        let mut lines = text.split_inclusive('\n');
        let line_start: usize = lines.by_ref().take(number("line")).map(str::len).sum();
        let line = lines.next().unwrap_or_default();
        let mut units = 0;
        let preceding_characters = line.chars().take_while(|character| {
            units += character.len_utf16();
            units <= number("character")
        });
        line_start + preceding_characters.map(char::len_utf8).sum::<usize>()
    };
    let mut edits: Vec<(usize, usize, &str)> = edits
        .iter()
        .map(|edit| {
            let new_text = edit["newText"].as_str().expect("a JSON string");
            (
                byte_offset(&edit["range"]["start"]),
                byte_offset(&edit["range"]["end"]),
                new_text,
            )
        })
        .collect();
    edits.sort_unstable();
    let mut edited_text = String::new();
    let mut copied = 0;
    for (start, end, new_text) in edits {
        edited_text.push_str(&text[copied..start]);
        edited_text.push_str(new_text);
        copied = end;
    }
    edited_text + &text[copied..]
}

#[test]
fn every_name_of_a_shipped_protocol_is_renamed_everywhere() {
    let mut editor = Editor::start_initialised();
    for (file, text) in protocols() {
        if cohkit_protocol::text::composes(&text) {
            continue;
        }
        let uri = uri(&file);
        editor.open(&uri, &text);
        let symbols = editor.symbols(&uri);
        let names = symbols
            .iter()
            .flat_map(|block| block["children"].as_array().expect("a JSON list"));
        let names: Vec<Value> = names.cloned().collect();
        // A channel that is named after a class has this class because of its name.
        let classes = [
            "request",
            "victim",
            "answer",
            "forward",
            "grant",
            "acknowledgement",
        ];
        let is_renamable =
            |name: &&Value| !classes.contains(&name["name"].as_str().expect("a JSON string"));
        for name in names.iter().filter(is_renamable).step_by(3) {
            let position = start_of(&name["selectionRange"]);
            let (line, character) = position;
            let params = json!({
                "textDocument": { "uri": uri }, "position": { "line": line, "character": character },
                "context": { "includeDeclaration": true },
            });
            let references = editor.request("textDocument/references", params)["result"].clone();
            let references = references.as_array().expect("a JSON list");
            for reference in references {
                assert_eq!(
                    text_in(&text, &reference["range"]),
                    name["name"].as_str().expect("a JSON string")
                );
            }
            let edits = editor
                .rename(&uri, position, "renamed_name")
                .expect("no other has this name");
            assert_eq!(edits.len(), references.len(), "{uri}: {name}");
            let renamed = apply_edits(&text, &edits);
            assert_eq!(
                editor.change(&uri, &renamed),
                Vec::<Value>::new(),
                "{uri}: {name}"
            );
            editor.change(&uri, &text);
        }
    }
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn renaming_that_changes_the_meaning_is_rejected() {
    let mut editor = Editor::start_initialised();
    let source = std::fs::read_to_string(crate::tiny()).expect("the file can be read");
    let uri = "file:///tiny.coh";
    editor.open(uri, &source);
    let preceding_text = &source[..source.find("IS  waits").expect("the text is found")];
    let position = (preceding_text.matches('\n').count(), 4);
    for (new_name, reason) in [
        ("S", "a second state `S`"),
        ("1S", "expected"),
        ("send", "`send`"),
        ("", "`waits`"),
    ] {
        let error = editor
            .rename(uri, position, new_name)
            .expect_err("it is refused");
        assert!(error.contains(reason), "{new_name}: {error}");
    }
    let error_on_comment = editor.rename(uri, (0, 2), "other").expect_err("a comment");
    assert_eq!(
        error_on_comment,
        "no name that the file declares is at this position"
    );
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn server_formats_like_the_fmt_command() {
    let mut editor = Editor::start_initialised();
    let source = std::fs::read_to_string(crate::tiny()).expect("the file can be read");
    let formatted =
        cohkit_protocol::text::format(&source).expect("the text has only valid characters");
    let unformatted = formatted.replace("  ", " ");
    let uri = "file:///tiny.coh";
    editor.open(uri, &unformatted);
    let params = json!({ "textDocument": { "uri": uri }, "options": { "tabSize": 2, "insertSpaces": true } });
    let edits = editor.request("textDocument/formatting", params.clone())["result"].clone();
    assert_eq!(
        apply_edits(&unformatted, edits.as_array().expect("a JSON list")),
        formatted
    );
    editor.change(uri, &formatted);
    assert_eq!(
        editor.request("textDocument/formatting", params)["result"],
        json!([])
    );
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn each_name_has_a_semantic_token_of_its_kind() {
    let mut editor = Editor::start();
    let response = editor.request(
        "initialize",
        json!({ "capabilities": {}, "processId": null }),
    );
    let legend = response["result"]["capabilities"]["semanticTokensProvider"]["legend"]
        ["tokenTypes"]
        .clone();
    editor.notify("initialized", json!({}));
    let source = std::fs::read_to_string(crate::tiny()).expect("the file can be read");
    let uri = "file:///tiny.coh";
    editor.open(uri, &source);
    let params = json!({ "textDocument": { "uri": uri } });
    let tokens =
        editor.request("textDocument/semanticTokens/full", params)["result"]["data"].clone();
    let numbers = tokens.as_array().expect("a JSON list").iter();
    let numbers: Vec<usize> = numbers
        .map(|number| number.as_u64().expect("a JSON number") as usize)
        .collect();
    let lines: Vec<&str> = source.lines().collect();
    let (mut line, mut start) = (0, 0);
    let mut transcript = String::new();
    for token in numbers.chunks(5) {
        start = if token[0] == 0 {
            start + token[1]
        } else {
            token[1]
        };
        line += token[0];
        if lines[line].starts_with("  S     | evict") {
            let kind = legend[token[3]].as_str().expect("a JSON string");
            transcript += &format!(
                "{} {kind} {}\n",
                &lines[line][start..start + token[2]],
                token[4]
            );
        }
    }
    assert_eq!(transcript, "S enumMember 0\nPut event 0\nI enumMember 0\n");
    assert_eq!(editor.shut_down(), Some(0));
}
