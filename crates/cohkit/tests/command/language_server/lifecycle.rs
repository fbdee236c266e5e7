//! Messages and their order: invalid ones are rejected, and `shutdown` and `exit` end the server.

use super::Editor;
use crate::{cohkit, text};
use serde_json::{json, Value};
use std::io::Write;
use std::process::Stdio;

#[test]
fn invalid_requests_are_rejected_and_the_server_continues() {
    let mut editor = Editor::start_initialised();
    let position = json!({ "line": 0, "character": 0 });
    let closed = json!({ "textDocument": { "uri": "file:///closed.coh" }, "position": position });
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
