//! Tests of `cohkit language-server` through its input and output, with positions in UTF-16 code units.

mod diagnostics;
mod editing;
mod hover;
mod lifecycle;
mod navigation;

use crate::cohkit;
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
