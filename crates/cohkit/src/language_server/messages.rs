//! Messages between editor and server: a header with the length, then JSON.

use serde_json::{json, Value};
use std::io::{BufRead, Read};

/// Maximum length of a message in bytes; protocol files are far shorter.
const MAX_MESSAGE_BYTES: u64 = 64 << 20;

/// Maximum length of a header line in bytes.
const MAX_HEADER_LINE_BYTES: u64 = 200;

/// Error code of JSON-RPC: the message is not JSON.
pub(super) const PARSE_ERROR: i32 = -32700;
/// Error code of JSON-RPC: the message is no valid request, or not allowed now.
pub(super) const INVALID_REQUEST: i32 = -32600;
/// Error code of JSON-RPC: the server does not support the method.
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
/// Error code of JSON-RPC: the parameters do not fit the method.
pub(super) const INVALID_PARAMS: i32 = -32602;
/// Error code of the language server protocol: a request came before `initialize`.
pub(super) const SERVER_NOT_INITIALIZED: i32 = -32002;
/// Error code of the language server protocol: a valid request failed.
pub(super) const REQUEST_FAILED: i32 = -32803;

/// Message from an editor.
pub(super) enum Message {
    /// A request, which expects the response with this identifier.
    Request {
        /// Identifier that the response repeats: a number or a string.
        id: Value,
        /// Method name, such as `textDocument/hover`.
        method: String,
        /// Parameters of the method; null if there are none.
        params: Value,
    },
    /// A notification, which has no response.
    Notification { method: String, params: Value },
    /// Response to a request of the server.
    Response,
}

/// Reads the next message; `None` at the end of the input.
///
/// # Errors
///
/// The input ends within a message, cannot be read, or has no valid header.
pub(super) fn read(input: &mut impl BufRead) -> Result<Option<Vec<u8>>, String> {
    let (mut in_header, mut length) = (false, None);
    loop {
        let mut line = Vec::new();
        let result = input
            .by_ref()
            .take(MAX_HEADER_LINE_BYTES)
            .read_until(b'\n', &mut line);
        result.map_err(|error| error.to_string())?;
        match (line.is_empty(), in_header) {
            (true, false) => return Ok(None),
            (true, true) => return Err("it ends inside a header".to_string()),
            _ => in_header = true,
        }
        let line_text = String::from_utf8_lossy(&line);
        let Some(line) = line_text.strip_suffix("\r\n") else {
            let line_text = line_text.trim_end();
            return Err(format!(
                "a line of a header ends with CR and LF, not `{line_text}`"
            ));
        };
        if line.is_empty() {
            break;
        }
        let header = line.split_once(':');
        let (name, value) = header.ok_or_else(|| format!("`{line}` is not a header line"))?;
        if name.trim().eq_ignore_ascii_case("content-length") {
            let number = value.trim().parse::<u64>();
            length = Some(number.map_err(|_| format!("`{line}` is not a number of bytes"))?);
        }
    }
    let length = length.ok_or("a header lacks `Content-Length`")?;
    if length > MAX_MESSAGE_BYTES {
        return Err(format!(
            "a message of {length} bytes, and {MAX_MESSAGE_BYTES} are at most"
        ));
    }
    let mut body = Vec::new();
    let result = input.by_ref().take(length).read_to_end(&mut body);
    match result.map_err(|error| error.to_string())? as u64 == length {
        true => Ok(Some(body)),
        false => Err("it ends inside a message".to_string()),
    }
}

/// Parses a message.
///
/// # Errors
///
/// The error response to an invalid message.
pub(super) fn parse(body: &[u8]) -> Result<Message, Value> {
    let reject = |code, message: &str| Err(error_response(&Value::Null, code, message));
    let mut value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(error) => return reject(PARSE_ERROR, &error.to_string()),
    };
    let is_valid_id = |id: &&Value| id.is_string() || id.is_number();
    let (has_id, id) = (value.get("id").is_some(), value.get("id"));
    let id = id.filter(is_valid_id).cloned();
    let method = value["method"].as_str().map(str::to_string);
    match (method, id) {
        (Some(method), Some(id)) => Ok(Message::Request {
            id,
            method,
            params: value["params"].take(),
        }),
        (Some(method), None) if !has_id => Ok(Message::Notification {
            method,
            params: value["params"].take(),
        }),
        (None, Some(_)) if value.get("method").is_none() => Ok(Message::Response),
        _ => reject(INVALID_REQUEST, "neither a request nor a notification"),
    }
}

/// Response with the result of a request.
pub(super) fn response(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Response that rejects a request.
pub(super) fn error_response(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// Notification to the editor, which expects no response.
pub(super) fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Prefixes a message with its header.
pub(super) fn with_header(message: &Value) -> String {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}
