//! Tests of `cohkit language-server` through its input and output, with positions in UTF-16 code units.

use crate::{cohkit, text};
use serde_json::{json, Value};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::time::Duration;

/// Time limit for a message from the server.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// An editor with its own server.
struct Editor {
    /// Process of the server.
    server: Child,
    /// Standard input of the server; `None` once it is closed.
    input: Option<ChildStdin>,
    /// Messages of the server, which another thread reads.
    messages: Receiver<Value>,
    /// Number of requests so far, and identifier of the last one.
    request_count: u64,
}

/// Reads the next message; `None` if the server has ended.
fn read_message(output: &mut BufReader<ChildStdout>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).expect("the output can be read") == 0 {
            return None;
        }
        match line.trim().strip_prefix("Content-Length: ") {
            Some(number) => length = number.parse().expect("a number"),
            None if line.trim().is_empty() => break,
            None => {}
        }
    }
    let mut message = vec![0; length];
    output
        .read_exact(&mut message)
        .expect("the server writes a message");
    Some(serde_json::from_slice(&message).expect("the output is JSON"))
}

impl Editor {
    /// Starts a server without any message.
    fn start() -> Editor {
        let mut command = cohkit(["language-server"]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().expect("the server starts");
        let mut output = BufReader::new(server.stdout.take().expect("standard output is piped"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read_message(&mut output) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let input = server.stdin.take();
        let request_count = 0;
        Editor {
            server,
            input,
            messages,
            request_count,
        }
    }

    /// Starts a server and performs the initialisation.
    fn start_initialised() -> Editor {
        let mut editor = Editor::start();
        let response = editor.request(
            "initialize",
            json!({ "capabilities": {}, "processId": null }),
        );
        assert_eq!(response["result"]["capabilities"]["textDocumentSync"], 1);
        editor.notify("initialized", json!({}));
        editor
    }

    /// Sends a message.
    fn send(&mut self, message: &Value) {
        self.send_bytes(message.to_string().as_bytes());
    }

    /// Sends a body, which need not be valid JSON.
    fn send_bytes(&mut self, body: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        write!(input, "Content-Length: {}\r\n\r\n", body.len())
            .expect("the server reads its input");
        input.write_all(body).expect("the bytes can be written");
        input.flush().expect("the output can be flushed");
    }

    /// Receives the next message of the server.
    fn receive(&mut self) -> Value {
        let message = self.messages.recv_timeout(RESPONSE_TIMEOUT);
        message.expect("the server says something")
    }

    /// Sends a notification.
    fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request, and returns its response.
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.request_count += 1;
        let id = self.request_count;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let response = self.receive();
        assert_eq!(response["id"], id, "{response}");
        response
    }

    /// Opens a document, and returns its diagnostics.
    fn open(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({ "uri": uri, "languageId": "cohkit", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
        self.published_diagnostics(uri)
    }

    /// Replaces the contents of a document, and returns its diagnostics.
    fn change(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({ "uri": uri, "version": 2 });
        let changes = json!([{ "text": text }]);
        let params = json!({ "textDocument": document, "contentChanges": changes });
        self.notify("textDocument/didChange", params);
        self.published_diagnostics(uri)
    }

    fn close(&mut self, uri: &str) {
        let params = json!({ "textDocument": { "uri": uri } });
        self.notify("textDocument/didClose", params);
    }

    /// Receives the diagnostics of a document, which must be the next message.
    fn published_diagnostics(&mut self, uri: &str) -> Vec<Value> {
        let notification = self.receive();
        assert_eq!(
            notification["method"], "textDocument/publishDiagnostics",
            "{notification}"
        );
        assert_eq!(notification["params"]["uri"], uri);
        notification["params"]["diagnostics"]
            .as_array()
            .expect("a JSON list")
            .clone()
    }

    /// Sends a request about a position, counted from 0, and returns its result.
    fn request_at(&mut self, method: &str, uri: &str, (line, character): (usize, usize)) -> Value {
        let position = json!({ "line": line, "character": character });
        let params = json!({ "textDocument": { "uri": uri }, "position": position });
        let response = self.request(&format!("textDocument/{method}"), params);
        assert!(response.get("error").is_none(), "{response}");
        response["result"].clone()
    }

    /// Returns the outline of a document.
    fn symbols(&mut self, uri: &str) -> Vec<Value> {
        let params = json!({ "textDocument": { "uri": uri } });
        let response = self.request("textDocument/documentSymbol", params);
        response["result"].as_array().expect("a JSON list").clone()
    }

    /// Ends the server, and returns its exit code.
    fn shut_down(mut self) -> Option<i32> {
        assert_eq!(self.request("shutdown", Value::Null)["result"], Value::Null);
        self.notify("exit", Value::Null);
        self.server.wait().expect("the command ends").code()
    }
}

/// Returns path and contents of all shipped protocols, sorted by path.
fn protocols() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
    let folder = folder.canonicalize().expect("the path exists");
    let files = std::fs::read_dir(folder).expect("the folder exists");
    let files = files.map(|file| file.expect("the file can be read").path());
    let mut files: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|extension| extension == "coh"))
        .collect();
    files.sort();
    let text = |file: &PathBuf| std::fs::read_to_string(file).expect("the file can be read");
    files
        .into_iter()
        .map(|file| (file.clone(), text(&file)))
        .collect()
}

/// URI of a file.
fn uri(file: &Path) -> String {
    format!("file://{}", file.display())
}

/// Words of a text, each with its line and its position there in UTF-16 code units.
fn words(text: &str) -> Vec<(&str, (usize, usize))> {
    let mut words = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        let mut end = 0;
        let parts =
            line.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
        for word in parts.filter(|word| !word.is_empty()) {
            let start = end + line[end..].find(word).expect("the word is in the line");
            end = start + word.len();
            words.push((word, (number, line[..start].encode_utf16().count())));
        }
    }
    words
}

/// Start of a range.
fn start_of(range: &Value) -> (usize, usize) {
    let number = |name: &str| range["start"][name].as_u64().expect("a JSON number") as usize;
    (number("line"), number("character"))
}

/// Text in a range, which must be a range of the text.
fn text_in(text: &str, range: &Value) -> String {
    let position = |end: &str| {
        let number = |name: &str| range[end][name].as_u64().expect("a JSON number") as usize;
        (number("line"), number("character"))
    };
    let ((first, start), (last, end)) = (position("start"), position("end"));
    assert!((first, start) <= (last, end), "{range}");
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<Vec<u16>> = text
        .split('\n')
        .map(|line| line.encode_utf16().collect())
        .collect();
    assert!(
        last < lines.len() && start <= lines[first].len() && end <= lines[last].len(),
        "{range}"
    );
    let mut units = Vec::new();
    for (number, line) in lines.iter().enumerate().take(last + 1).skip(first) {
        let start_unit = if number == first { start } else { 0 };
        let end_unit = if number == last { end } else { line.len() };
        units.extend(&line[start_unit..end_unit]);
        if number < last {
            units.push(u16::from(b'\n'));
        }
    }
    String::from_utf16(&units).expect("no character is cut")
}

#[test]
fn shipped_protocols_resolve_every_name_to_its_declaration() {
    let mut editor = Editor::start_initialised();
    let mut files = 0;
    for (file, text) in protocols() {
        let uri = uri(&file);
        assert_eq!(editor.open(&uri, &text), Vec::<Value>::new(), "{uri}");
        let (mut resolved, mut resolved_elsewhere) = (0, 0);
        for (word, place) in words(&text) {
            let definition = editor.request_at("definition", &uri, place);
            let word_end = (place.0, place.1 + word.len());
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
            assert_eq!(declaration, word, "{uri}:{place:?}");
            resolved_elsewhere += usize::from(start_of(&definition["range"]) != place);
            let definition_of_definition =
                editor.request_at("definition", &uri, start_of(&definition["range"]));
            assert_eq!(definition_of_definition, definition, "{uri}:{place:?}");
            if start_of(&definition["range"]) != place {
                let completions = editor.request_at("completion", &uri, place);
                let mut completions = completions.as_array().expect("a JSON list").iter();
                assert!(
                    completions.any(|name| name["label"] == word),
                    "{uri}:{place:?}: {word} is not completed"
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
fn hover_on_a_row_shows_its_table_entry() {
    let mut editor = Editor::start_initialised();
    let mut row_count = 0;
    for (file, text) in protocols() {
        let table = cohkit(["table", "--agent", "remote", "--json"])
            .arg(&file)
            .output();
        let table = table.expect("the command starts");
        // Compositions have no table.
        let Ok(table) = serde_json::from_slice::<Value>(&table.stdout) else {
            continue;
        };
        let uri = uri(&file);
        editor.open(&uri, &text);
        for row in table["rows"].as_array().expect("rows") {
            let line = row["line"].as_u64().expect("a line") as usize - 1;
            let line_text = text.lines().nth(line).expect("the text is found");
            let start = line_text.len() - line_text.trim_start().len();
            let hover = editor.request_at("hover", &uri, (line, start));
            let hover = hover["contents"]["value"].as_str().unwrap_or_default();
            let word = |name: &str| row[name].as_str().unwrap_or_default().replace('|', "\\|");
            let actions = row["actions"].as_array().expect("a JSON list").iter();
            let actions: Vec<&str> = actions.filter_map(Value::as_str).collect();
            let cells = [
                "remote".to_string(),
                word("state"),
                word("event"),
                word("guard"),
                actions.join(", ").replace('|', "\\|"),
                word("next"),
            ];
            let cells = format!("| {} |", cells.join(" | "));
            assert!(
                hover.contains(&cells) || hover.contains("\nand "),
                "{uri}:{}: {cells} is not in\n{hover}",
                line + 1
            );
            row_count += usize::from(hover.contains(&cells));
        }
    }
    assert!(row_count > 200, "only {row_count} rows");
    assert_eq!(editor.shut_down(), Some(0));
}

/// Cells of the rows of a Markdown table.
fn rows(table: &str) -> Vec<Vec<String>> {
    let lines = table.lines().filter(|line| line.starts_with("| "));
    let lines = lines.filter(|line| !line.starts_with("| of | "));
    let cells = lines.map(|line| {
        let line = line.replace("\\|", "\u{0}");
        let cells = line.trim_matches('|').split('|');
        let cells = cells.map(|cell| cell.trim().replace('\u{0}', "|"));
        cells.collect()
    });
    cells.collect()
}

#[test]
fn hover_lists_first_rows_and_counts_the_rest() {
    let mut editor = Editor::start_initialised();
    let (mut truncated_count, mut escaped_bars) = (0, 0);
    for (file, text) in protocols() {
        if !(file.ends_with("eci.coh") || file.ends_with("back-invalidate.coh")) {
            continue;
        }
        let table = cohkit(["table", "--json"]).arg(&file).output();
        let table: Value = serde_json::from_slice(&table.expect("the command starts").stdout)
            .expect("the output is JSON");
        let table = table["rows"].as_array().expect("rows");
        let uri = uri(&file);
        editor.open(&uri, &text);
        for (_, place) in words(&text) {
            let hover = editor.request_at("hover", &uri, place);
            let hover = hover["contents"]["value"].as_str().unwrap_or_default();
            for row in rows(hover) {
                assert_eq!(row.len(), 6, "{row:?}");
                escaped_bars += row.iter().filter(|cell| cell.contains('|')).count();
            }
        }
        for (number, line) in text.lines().enumerate() {
            let rows_of_line: Vec<&Value> = (table.iter())
                .filter(|row| row["line"] == number as u64 + 1)
                .collect();
            let start = line.len() - line.trim_start().len();
            if !["on ", "local "].contains(&line[start..].split_inclusive(' ').next().unwrap_or(""))
            {
                continue;
            }
            let hover = editor.request_at("hover", &uri, (number, start));
            let hover = hover["contents"]["value"].as_str().unwrap_or_default();
            let shown_rows = rows(hover);
            let hidden_count = hover.split("\nand ").nth(1);
            let hidden_count = hidden_count.map_or(0, |remainder| {
                remainder
                    .trim_end_matches(" more\n")
                    .parse()
                    .expect("a number")
            });
            assert_eq!(
                shown_rows.len() + hidden_count,
                rows_of_line.len(),
                "{uri}:{}: {hover}",
                number + 1
            );
            assert_eq!(shown_rows.len(), rows_of_line.len().min(12));
            truncated_count += usize::from(hidden_count > 0);
            for (shown, row) in shown_rows.iter().zip(rows_of_line) {
                let word = |name: &str| row[name].as_str().unwrap_or_default();
                assert_eq!(shown[1..4], ["state", "event", "guard"].map(word), "{uri}");
                assert_eq!(shown[5], word("next"));
            }
        }
    }
    assert!(
        truncated_count > 3 && escaped_bars > 0,
        "{truncated_count} {escaped_bars}"
    );
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn hover_describes_names_and_policies() {
    let mut editor = Editor::start_initialised();
    let source = std::fs::read_to_string(crate::tiny()).expect("the file can be read");
    let uri = "file:///tiny.coh";
    editor.open(uri, &source);
    let mut transcript = String::new();
    for (word, place) in words(&source) {
        if word == "Get" {
            let hover = editor.request_at("hover", uri, place);
            transcript += hover["contents"]["value"].as_str().unwrap_or("nothing");
            transcript += "\n---\n";
            assert_eq!(start_of(&hover["range"]), place);
            assert_eq!(text_in(&source, &hover["range"]), "Get");
        }
    }
    expect_test::expect![[r#"
        message `Get`, line 17
        ```cohkit
        request: Get
        ```
        ---
        message `Get`, line 17
        ```cohkit
        request: Get
        ```

        | of | state | event | if | actions | next |
        |---|---|---|---|---|---|
        | remote | I | load |  | send Get | IS |

        ---
        message `Get`, line 17
        ```cohkit
        request: Get
        ```

        | of | state | event | if | actions | next |
        |---|---|---|---|---|---|
        | home for one remote, constructed | I | Get |  | read memory | I:Get.rd |
        | home for one remote, constructed | I:Get.rd | memory data |  | send Data | I>S |
        | home for one remote, constructed | I:Get.rd.clean_invalidate | memory data |  | send Data, send Drop | I>S_fI.clean_invalidate |
        | home for one remote, constructed | I>S | Get |  | stall |  |
        | home for one remote, constructed | I>S_fI.clean_invalidate | Get |  | stall |  |
        | home for one remote, constructed | I_fI.clean_invalidate | Get |  | stall |  |

        ---
    "#]].assert_eq(&transcript);
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn completion_lists_names_with_their_kind() {
    let mut editor = Editor::start_initialised();
    let source = std::fs::read_to_string(crate::tiny()).expect("the file can be read");
    let uri = "file:///tiny.coh";
    editor.open(uri, &source);
    let mut transcript = String::new();
    // Positions in the actions of the remote's first row, and in its last cell.
    for cell_start in ["I     | load  | send ", "I     | load  | send Get  | "] {
        let preceding_text =
            &source[..source.find(cell_start).expect("the row is there") + cell_start.len()];
        let line = preceding_text.matches('\n').count();
        let column =
            preceding_text.len() - preceding_text.rfind('\n').map_or(0, |newline| newline + 1);
        transcript += &format!("{cell_start}^\n");
        let completion = editor.request_at("completion", uri, (line, column));
        for item in completion.as_array().expect("a JSON list") {
            let word = |name: &str| item[name].as_str().unwrap_or("?");
            transcript += &format!("{}: {}, {}\n", word("label"), word("detail"), item["kind"]);
        }
    }
    for block in editor.symbols(uri) {
        transcript += &format!("{} {}:", block["name"], block["kind"]);
        for name in block["children"].as_array().expect("a JSON list") {
            transcript += &format!(" {} {}", name["name"], name["kind"]);
        }
        transcript.push('\n');
    }
    expect_test::expect![[r#"
        I     | load  | send ^
        Data: message, 23
        Drop: message, 23
        Get: message, 23
        Gone: message, 23
        None: message, 23
        Put: message, 23
        I     | load  | send Get  | ^
        I: state, 20
        IS: state, 20
        S: state, 20
        stay: ?, 14
        "protocol tiny \"read-only sharing\"" 3:
        "line 64 bytes" 3:
        "channels" 3: "request" 13 "victim" 13 "answer" 13 "forward" 13 "grant" 13
        "messages" 3: "Get" 24 "Put" 24 "Gone" 24 "None" 24 "Drop" 24 "Data" 24
        "remote cache" 3: "cache" 13 "I" 22 "S" 22 "IS" 22
        "home" 3:
        "system alone" 3: "alone" 13
    "#]]
    .assert_eq(&transcript);
    assert_eq!(editor.shut_down(), Some(0));
}

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

impl Editor {
    /// Edits that rename the name at a position, or the reason for the rejection.
    fn rename(
        &mut self,
        uri: &str,
        (line, character): (usize, usize),
        new_name: &str,
    ) -> Result<Vec<Value>, String> {
        let position = json!({ "line": line, "character": character });
        let params =
            json!({ "textDocument": { "uri": uri }, "position": position, "newName": new_name });
        let response = self.request("textDocument/rename", params);
        match response.get("error") {
            Some(error) => Err(error["message"]
                .as_str()
                .expect("a JSON string")
                .to_string()),
            None => Ok(response["result"]["changes"][uri]
                .as_array()
                .expect("a JSON list")
                .clone()),
        }
    }
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
            let place = start_of(&name["selectionRange"]);
            let (line, character) = place;
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
                .rename(&uri, place, "renamed_name")
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
    let place = (preceding_text.matches('\n').count(), 4);
    for (new_name, reason) in [
        ("S", "a second state `S`"),
        ("1S", "expected"),
        ("send", "`send`"),
        ("", "`waits`"),
    ] {
        let error = editor
            .rename(uri, place, new_name)
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
    let mut place = |name: &str| {
        let line = text
            .lines()
            .position(|line| line.contains(name))
            .expect("the text is found");
        editor.request_at("definition", &uri, (line, 6))
    };
    let definition = place("use \"äußere");
    assert_eq!(
        definition["uri"],
        format!("file://{folder}/%C3%A4u%C3%9Fere%20%25.coh")
    );
    // This file only ships with the command, and has no path here.
    assert!(place("use \"mesi-l1").is_null());
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
            let place = |end: u32| {
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
            let range =
                json!({ "start": place(expected.span.start), "end": place(expected.span.end) });
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
            let place = (chance.next_below(lines + 2), chance.next_below(90));
            let definition = editor.request_at("definition", uri, place);
            if !definition.is_null() {
                definition_count += 1;
                text_in(&text, &definition["range"]);
            }
            editor.request_at("hover", uri, place);
        }
        editor.request_at("completion", uri, (0, 0));
    }
    assert!(
        diagnostic_count > 300 && surrogate_count > 5 && definition_count > 100,
        "{diagnostic_count} {surrogate_count} {definition_count}"
    );
    assert_eq!(editor.shut_down(), Some(0));
}

/// A composition in its own folder, with the two files that it uses.
fn two_levels() -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let canonical_path = folder.path().canonicalize().expect("the path exists");
    for name in ["two-level.coh", "mesi.coh", "mesi-l1.coh"] {
        let source = protocols()
            .into_iter()
            .find(|(path, _)| path.ends_with(name));
        let (_, text) = source.expect("the protocol is shipped");
        std::fs::write(canonical_path.join(name), text).expect("the file can be written");
    }
    let file = canonical_path.join("two-level.coh");
    let text = std::fs::read_to_string(&file).expect("the file can be read");
    (folder, uri(&file), text)
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

#[test]
fn invalid_requests_are_rejected_and_the_server_continues() {
    let mut editor = Editor::start_initialised();
    let place = json!({ "line": 0, "character": 0 });
    let closed = json!({ "textDocument": { "uri": "file:///closed.coh" }, "position": place });
    let response = editor.request("textDocument/hover", closed.clone());
    assert_eq!(
        response["error"]["message"],
        "`file:///closed.coh` is not open"
    );
    let response = editor.request("textDocument/hover", json!({ "position": -1 }));
    assert_eq!(response["error"]["code"], -32602, "{response}");
    let response = editor.request("textDocument/foldingRange", json!({}));
    assert_eq!(response["error"]["code"], -32601, "{response}");
    let response = editor.request("initialize", json!({ "capabilities": {} }));
    assert_eq!(response["error"]["code"], -32600, "{response}");
    editor.notify("textDocument/didChange", json!({ "textDocument": 3 }));
    editor.notify("$/cancelRequest", json!({ "id": 77 }));
    for (body, code) in [
        (&b"{\"jsonrpc\": \"2.0\", \"id\": 1"[..], -32700),
        (b"", -32700),
        (b"{\"id\": 1, \"method\": \"\xff\"}", -32700),
        ("[".repeat(100_000).as_bytes(), -32700),
        (b"[]", -32600),
        (b"{\"id\": {}, \"method\": \"shutdown\"}", -32600),
        (b"{\"method\": 3}", -32600),
    ] {
        editor.send_bytes(body);
        let response = editor.receive();
        assert_eq!(response["error"]["code"], code, "{response}");
        assert!(response["id"].is_null(), "{response}");
    }
    // A response is not answered, whatever it contains.
    editor.send_bytes(b"{\"id\": 5, \"result\": null}");
    // Header names are case-insensitive.
    let input = editor.input.as_mut().expect("the input is open");
    let body = r#"{"id": "a", "method": "x"}"#;
    write!(
        input,
        "content-LENGTH:{}\r\nContent-Type: x\r\n\r\n{body}",
        body.len()
    )
    .expect("the server reads its input");
    assert_eq!(editor.receive()["id"], "a");
    editor.open("file:///open.coh", "");
    let uri = "untitled:Untitled-1";
    for _ in 0..2 {
        assert_eq!(editor.open(uri, "home @ 3").len(), 1);
        editor.close(uri);
        assert!(
            editor.published_diagnostics(uri).is_empty(),
            "nothing is wrong with what is closed"
        );
    }
    let mut closed_document = closed;
    closed_document["textDocument"]["uri"] = uri.into();
    let response = editor.request("textDocument/definition", closed_document);
    assert_eq!(response["error"]["code"], -32602, "{response}");
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn server_enforces_the_lsp_lifecycle() {
    let mut editor = Editor::start();
    let response = editor.request("textDocument/hover", json!({}));
    assert_eq!(response["error"]["code"], -32002, "{response}");
    let response = editor.request("shutdown", Value::Null);
    assert_eq!(response["error"]["code"], -32002, "{response}");
    editor.notify("textDocument/didOpen", json!({}));
    editor.request("initialize", json!({ "capabilities": {} }));
    editor.notify("initialized", json!({}));
    assert!(editor.request("shutdown", Value::Null)["result"].is_null());
    let response = editor.request("textDocument/hover", json!({}));
    assert_eq!(response["error"]["code"], -32600, "{response}");
    editor.close("file:///closed.coh");
    editor.notify("exit", Value::Null);
    assert_eq!(
        editor.server.wait().expect("the command ends").code(),
        Some(0)
    );
    // The protocol requires this exit code for an `exit` without `shutdown`.
    for mut editor in [Editor::start(), Editor::start_initialised()] {
        editor.notify("exit", Value::Null);
        assert_eq!(
            editor.server.wait().expect("the command ends").code(),
            Some(1)
        );
    }
    for mut editor in [Editor::start(), Editor::start_initialised()] {
        editor.input = None;
        assert_eq!(
            editor.server.wait().expect("the command ends").code(),
            Some(0)
        );
    }
}

#[test]
fn invalid_lsp_input_ends_the_server_with_a_message() {
    let endless = "x".repeat(1 << 20);
    for (input, expected) in [
        (
            "check protocols/msi.coh\r\n\r\n",
            "`check protocols/msi.coh`",
        ),
        ("Content-Length: 3\n\n{}", "ends with CR and LF"),
        ("Content-Length: x\r\n\r\n", "`Content-Length: x`"),
        ("Content-Length: -1\r\n\r\n", "`Content-Length: -1`"),
        ("Content-Length: 18446744073709551615\r\n\r\n", "at most"),
        ("Content-Type: a\r\n\r\n{}", "`Content-Length`"),
        ("Content-Length: 30\r\n\r\n{}", "ends inside a message"),
        ("Content-Length: 30\r\n", "ends inside a header"),
        (&endless, "ends with CR and LF"),
    ] {
        let mut command = cohkit(["language-server"]);
        let command = command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut server = command.spawn().expect("the server starts");
        let mut server_input = server.stdin.take().expect("standard input is piped");
        // The server may end before it has read everything.
        let _ = server_input.write_all(input.as_bytes());
        drop(server_input);
        let output = server.wait_with_output().expect("the command ends");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        let message_start = "error: invalid language server protocol on standard input: ";
        assert!(
            stderr.starts_with(message_start) && stderr.contains(expected),
            "{expected}: {stderr}"
        );
        assert!(stderr.len() < 1000, "{stderr}");
    }
}
