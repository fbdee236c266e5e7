//! Definitions: a name leads to its declaration, in the same document or in a file that it uses.

use super::{protocols, start_of, text_in, two_levels, uri, words, Editor};
use serde_json::{json, Value};
use std::path::Path;

#[test]
fn shipped_protocols_resolve_every_name_to_its_declaration() {
    let mut editor = Editor::start_initialised();
    let mut files = 0;
    for (file, text) in protocols() {
        let uri = uri(&file);
        assert_eq!(editor.open(&uri, &text), Vec::<Value>::new(), "{uri}");
        let (mut resolved, mut resolved_elsewhere) = (0, 0);
        for (word, position) in words(&text) {
            let definition = editor.request_at("definition", &uri, position);
            let word_end = (position.0, position.1 + word.len());
            assert_eq!(
                editor.request_at("definition", &uri, word_end),
                definition,
                "{uri}"
            );
            if definition.is_null() {
                continue;
            }
            if definition["uri"] != uri.as_str() {
                // The name of a used file.
                let used_file = definition["uri"].as_str().unwrap_or_default();
                let used_file = Path::new(used_file.strip_prefix("file://").expect("a file"));
                let name = used_file.file_name().and_then(|name| name.to_str());
                assert!(used_file.is_file() && name.is_some_and(|name| name.contains(word)));
                files += 1;
                continue;
            }
            resolved += 1;
            let declaration = text_in(&text, &definition["range"]);
            assert_eq!(declaration, word, "{uri}:{position:?}");
            resolved_elsewhere += usize::from(start_of(&definition["range"]) != position);
            let definition_of_definition =
                editor.request_at("definition", &uri, start_of(&definition["range"]));
            assert_eq!(definition_of_definition, definition, "{uri}:{position:?}");
            if start_of(&definition["range"]) != position {
                let completions = editor.request_at("completion", &uri, position);
                let mut completions = completions.as_array().expect("a JSON list").iter();
                assert!(
                    completions.any(|name| name["label"] == word),
                    "{uri}:{position:?}: {word} is not completed"
                );
            }
        }
        // A composition is short; in another protocol file, two words of five are names, comments apart.
        let is_composition = cohkit_protocol::text::composes(&text);
        let code_lines = text.lines().filter_map(|line| line.split('#').next());
        let word_count: usize = code_lines.map(|line| words(line).len()).sum();
        let min_resolved = match (is_composition, word_count) {
            (true, _) => 10,
            (false, 0..200) => word_count * 2 / 5,
            (false, _) => 100,
        };
        assert!(
            resolved >= min_resolved,
            "{uri}: only {resolved} names are known"
        );
        assert!(
            resolved_elsewhere * 2 > resolved,
            "{uri}: {resolved_elsewhere} of {resolved}"
        );
        let symbols = editor.symbols(&uri);
        assert!(symbols.len() > 2, "{uri}: {symbols:?}");
        for block in &symbols {
            let block_text = text_in(&text, &block["range"]);
            let name = block["name"].as_str().expect("a JSON string");
            assert!(block_text.starts_with(name), "{block}");
            assert_eq!(text_in(&text, &block["selectionRange"]), name);
            for name in block["children"].as_array().expect("a JSON list") {
                assert_eq!(
                    text_in(&text, &name["range"]),
                    name["name"].as_str().expect("a JSON string")
                );
                assert_eq!(name["selectionRange"], name["range"]);
                let end_order = |end: &str| {
                    let position = |item: &Value| start_of(&json!({ "start": item["range"][end] }));
                    position(name).cmp(&position(block))
                };
                assert!(
                    end_order("start").is_ge() && end_order("end").is_le(),
                    "{block}"
                );
            }
        }
    }
    assert!(files > 4, "only {files}");
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn missing_files_have_no_definitions() {
    let (folder, _, text) = two_levels();
    let folder = folder
        .path()
        .canonicalize()
        .expect("the path exists")
        .join("zwei Stufen é#");
    std::fs::create_dir(&folder).expect("the folder can be created");
    let outer = protocols()
        .into_iter()
        .find(|(path, _)| path.ends_with("mesi.coh"));
    let (_, outer) = outer.expect("the protocol is shipped");
    std::fs::write(folder.join("äußere %.coh"), outer).expect("the file can be written");
    let folder = folder
        .to_str()
        .expect("UTF-8")
        .replace(' ', "%20")
        .replace('é', "%C3%A9")
        .replace('#', "%23");
    let uri = format!("file://{folder}/two-level.coh");
    let mut editor = Editor::start_initialised();
    let text = text.replace("\"mesi.coh\"", "\"äußere %.coh\"");
    assert_eq!(editor.open(&uri, &text), Vec::<Value>::new());
    let mut position = |name: &str| {
        let line = text
            .lines()
            .position(|line| line.contains(name))
            .expect("the text is found");
        editor.request_at("definition", &uri, (line, 6))
    };
    let definition = position("use \"äußere");
    assert_eq!(
        definition["uri"],
        format!("file://{folder}/%C3%A4u%C3%9Fere%20%25.coh")
    );
    // This file only ships with the command, and has no path here.
    assert!(position("use \"mesi-l1").is_null());
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn composition_reads_the_protocols_it_uses() {
    let (_folder, uri, text) = two_levels();
    let mut editor = Editor::start_initialised();
    assert!(editor.open(&uri, &text).is_empty());
    let diagnostics = editor.change(&uri, &text.replace("mesi.coh", "nowhere.coh"));
    assert_eq!(diagnostics[0]["code"], "use", "{diagnostics:?}");
    // Contents in the editor take precedence over those on disk: here a cache has another name.
    assert!(editor.change(&uri, &text).is_empty());
    let outer_uri = uri.replace("two-level", "mesi");
    let outer_text = std::fs::read_to_string(outer_uri.strip_prefix("file://").expect("a file"));
    let outer_text = outer_text.expect("the file can be read");
    let open = |editor: &mut Editor, text: &str| {
        assert!(editor.open(&outer_uri, text).is_empty());
        editor.published_diagnostics(&uri)
    };
    let diagnostics = open(&mut editor, &outer_text.replace("cache", "store2"));
    assert!(!diagnostics.is_empty(), "it has no `cache` any more");
    editor.close(&outer_uri);
    assert!(editor.published_diagnostics(&outer_uri).is_empty());
    assert!(
        editor.published_diagnostics(&uri).is_empty(),
        "the file still has it"
    );
    // A document that uses nothing affects no other document.
    assert_eq!(editor.open("file:///else.coh", "x").len(), 1);
    assert_eq!(editor.shut_down(), Some(0));
}
