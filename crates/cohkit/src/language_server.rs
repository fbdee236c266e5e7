//! `cohkit language-server`: editor support for protocol files, over standard input and output.

mod document;
mod highlight;
mod messages;
mod names;
mod positions;

use crate::console::Console;
use cohkit_api::outcome::{ExitStatus, Failure};
use document::Document;
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Exit, Notification as _,
    PublishDiagnostics,
};
use lsp_types::request::{
    Completion, DocumentSymbolRequest, Formatting, GotoDefinition, HoverRequest, Initialize,
    PrepareRenameRequest, References, Rename, Request as _, SemanticTokensFullRequest, Shutdown,
};
use lsp_types::{
    CompletionOptions, CompletionParams, DidChangeTextDocumentParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, DocumentFormattingParams, DocumentSymbolParams,
    HoverProviderCapability, OneOf, PublishDiagnosticsParams, ReferenceParams, RenameOptions,
    RenameParams, SemanticTokensFullOptions, SemanticTokensOptions, SemanticTokensParams,
    ServerCapabilities, TextDocumentPositionParams, TextDocumentSyncCapability,
    TextDocumentSyncKind, Uri, WorkDoneProgressOptions,
};
use messages::Message;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Serves one editor until it sends `exit` or closes the connection.
///
/// # Errors
/// The input violates the protocol, or `exit` arrives without a preceding `shutdown`.
pub(crate) fn run(console: &mut Console) -> Result<ExitStatus, Failure> {
    let protocol_error = |message: String| {
        let message = format!("error: invalid language server protocol on standard input: {message}\n  help: editors start this command");
        Failure::new(ExitStatus::BadInput, message)
    };
    let mut input = std::io::stdin().lock();
    let mut stage = Stage::Uninitialized;
    let mut documents = Documents::default();
    while let Some(body) = messages::read(&mut input).map_err(protocol_error)? {
        let responses = match messages::parse(&body) {
            Ok(Message::Request { id, method, params }) => {
                let result = stage
                    .handle_lifecycle(&method)
                    .and_then(|handled| match handled {
                        Some(result) => Ok(result),
                        None => documents.handle_request(&method, params, console.interrupted),
                    });
                vec![match result {
                    Ok(result) => messages::response(&id, result),
                    Err((code, message)) => messages::error_response(&id, code, &message),
                }]
            }
            Ok(Message::Notification { method, .. }) if method == Exit::METHOD => {
                return stage.exit_status();
            }
            Ok(Message::Notification { method, params }) if stage == Stage::Running => {
                documents.handle_notification(&method, params)
            }
            // The server sends no requests, so responses are ignored; so are notifications before `initialize` or after
            // `shutdown`.
            Ok(Message::Notification { .. } | Message::Response) => Vec::new(),
            Err(refusal) => vec![refusal],
        };
        for response in responses {
            console.print(&messages::with_header(&response))?;
        }
    }
    Ok(ExitStatus::Success)
}

/// Rejection of a request: error code of the protocol, and a sentence.
type RequestError = (i32, String);

/// Stage of a connection: documents are handled between the requests `initialize` and `shutdown`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Before `initialize`.
    Uninitialized,
    /// Between `initialize` and `shutdown`.
    Running,
    /// After `shutdown`; only `exit` may follow.
    ShutDown,
}

impl Stage {
    /// Handles `initialize` and `shutdown`. Returns `None` for other requests that this stage allows.
    fn handle_lifecycle(&mut self, method: &str) -> Result<Option<Value>, RequestError> {
        let invalid = |message: &str| Err((messages::INVALID_REQUEST, message.to_string()));
        match (*self, method) {
            (Stage::Uninitialized, Initialize::METHOD) => {
                *self = Stage::Running;
                Ok(Some(json!({
                    "capabilities": capabilities(),
                    "serverInfo": { "name": "cohkit", "version": env!("CARGO_PKG_VERSION") },
                })))
            }
            (Stage::Uninitialized, _) => {
                let message = "the first request must be `initialize`".to_string();
                Err((messages::SERVER_NOT_INITIALIZED, message))
            }
            (Stage::Running, Initialize::METHOD) => invalid("`initialize` was already received"),
            (Stage::Running, Shutdown::METHOD) => {
                *self = Stage::ShutDown;
                Ok(Some(Value::Null))
            }
            (Stage::Running, _) => Ok(None),
            (Stage::ShutDown, _) => invalid("`shutdown` was already received"),
        }
    }

    /// Outcome of the command after the notification `exit`.
    fn exit_status(self) -> Result<ExitStatus, Failure> {
        match self {
            Stage::ShutDown => Ok(ExitStatus::Success),
            Stage::Uninitialized | Stage::Running => Err(Failure::new(
                // The protocol requires exit code 1.
                ExitStatus::Violated,
                "error: the editor exited without `shutdown`",
            )),
        }
    }
}

/// Capabilities of the server. Positions count UTF-16 code units, the default of the protocol.
fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
        definition_provider: Some(OneOf::Left(true)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        completion_provider: Some(CompletionOptions::default()),
        document_symbol_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        document_formatting_provider: Some(OneOf::Left(true)),
        semantic_tokens_provider: Some(
            SemanticTokensOptions {
                legend: highlight::legend(),
                full: Some(SemanticTokensFullOptions::Bool(true)),
                ..SemanticTokensOptions::default()
            }
            .into(),
        ),
        ..ServerCapabilities::default()
    }
}

/// Open documents by URI, each with its version.
#[derive(Default)]
struct Documents(BTreeMap<String, (Document, i32)>);

impl Documents {
    /// Applies a notification to the documents, and returns the diagnostics to publish. A malformed notification is
    /// ignored, as no client waits for a response.
    fn handle_notification(&mut self, method: &str, params: Value) -> Vec<Value> {
        let result = match method {
            DidOpenTextDocument::METHOD => {
                serde_json::from_value(params).map(|notification: DidOpenTextDocumentParams| {
                    let document = notification.text_document;
                    self.open(document.uri, document.text, document.version)
                })
            }
            DidChangeTextDocument::METHOD => {
                serde_json::from_value(params).map(
                    |mut notification: DidChangeTextDocumentParams| {
                        let document = notification.text_document;
                        // The last change contains the whole text.
                        match notification.content_changes.pop() {
                            Some(change) => self.open(document.uri, change.text, document.version),
                            None => Vec::new(),
                        }
                    },
                )
            }
            DidCloseTextDocument::METHOD => {
                serde_json::from_value(params).map(|notification: DidCloseTextDocumentParams| {
                    self.close(notification.text_document.uri)
                })
            }
            _ => return Vec::new(),
        };
        result.unwrap_or_default()
    }

    /// Opens or replaces a document. Returns its diagnostics, and those of the documents that use it.
    fn open(&mut self, uri: Uri, text: String, version: i32) -> Vec<Value> {
        let document = self.read(uri.clone(), text);
        let path = document.path().to_path_buf();
        let mut notifications = vec![diagnostics_notification(&document, version)];
        self.0.insert(uri.as_str().to_string(), (document, version));
        notifications.extend(self.reanalyse_dependents(&path));
        notifications
    }

    /// Closes a document, and clears its diagnostics. Documents that use it now read its file.
    fn close(&mut self, uri: Uri) -> Vec<Value> {
        let closed = self.0.remove(uri.as_str());
        let cleared = PublishDiagnosticsParams::new(uri, Vec::new(), None);
        let mut notifications = vec![messages::notification(
            PublishDiagnostics::METHOD,
            json!(cleared),
        )];
        if let Some((document, _)) = closed {
            notifications.extend(self.reanalyse_dependents(document.path()));
        }
        notifications
    }

    /// Analyses a document. Files that it uses are read from open documents first, then from disk.
    fn read(&self, uri: Uri, text: String) -> Document {
        Document::new(uri, text, &|path: &Path| {
            let mut open = self.0.values();
            let entry = open.find(|(document, _)| document::is_same_file(document.path(), path));
            entry.map(|(document, _)| document.text().to_string())
        })
    }

    /// Reads the open documents that use the file at a path again. Returns diagnostics for those where they changed.
    fn reanalyse_dependents(&mut self, path: &Path) -> Vec<Value> {
        let mut notifications = Vec::new();
        let dependents = self
            .0
            .values()
            .filter(|(dependent, _)| dependent.uses(path));
        let dependents: Vec<Uri> = dependents
            .map(|(dependent, _)| dependent.uri().clone())
            .collect();
        for uri in dependents {
            let Some((old_document, version)) = self.0.get(uri.as_str()) else {
                continue;
            };
            let version = *version;
            let document = self.read(uri.clone(), old_document.text().to_string());
            if document.diagnostics() != old_document.diagnostics() {
                notifications.push(diagnostics_notification(&document, version));
            }
            self.0.insert(uri.as_str().to_string(), (document, version));
        }
        notifications
    }

    /// Handles a request. Returns its result, which is `null` if there is nothing to return.
    fn handle_request(
        &self,
        method: &str,
        params: Value,
        cancel: &AtomicBool,
    ) -> Result<Value, RequestError> {
        let result = match method {
            GotoDefinition::METHOD => {
                let target: TextDocumentPositionParams = decode_parameters(params)?;
                json!(self
                    .find(&target.text_document.uri)?
                    .definition(target.position))
            }
            HoverRequest::METHOD => {
                let target: TextDocumentPositionParams = decode_parameters(params)?;
                json!(self
                    .find(&target.text_document.uri)?
                    .hover(target.position, cancel))
            }
            Completion::METHOD => {
                let target: CompletionParams = decode_parameters(params)?;
                let target = target.text_document_position;
                json!(self
                    .find(&target.text_document.uri)?
                    .completions(target.position))
            }
            References::METHOD => {
                let request: ReferenceParams = decode_parameters(params)?;
                let target = request.text_document_position;
                let document = self.find(&target.text_document.uri)?;
                json!(document.references(target.position, request.context.include_declaration))
            }
            PrepareRenameRequest::METHOD => {
                let target: TextDocumentPositionParams = decode_parameters(params)?;
                let document = self.find(&target.text_document.uri)?;
                let name = document.name_at(target.position);
                json!(name.map(
                    |(span, name)| json!({ "range": document.range(span), "placeholder": name })
                ))
            }
            Rename::METHOD => {
                let request: RenameParams = decode_parameters(params)?;
                let target = request.text_document_position;
                let uri = &target.text_document.uri;
                let edits = self.find(uri)?.rename(target.position, &request.new_name);
                let edits = edits.map_err(|reason| (messages::REQUEST_FAILED, reason))?;
                json!({ "changes": { uri.as_str(): edits } })
            }
            Formatting::METHOD => {
                let request: DocumentFormattingParams = decode_parameters(params)?;
                let edit = self.find(&request.text_document.uri)?.formatting();
                json!(edit.into_iter().collect::<Vec<_>>())
            }
            SemanticTokensFullRequest::METHOD => {
                let request: SemanticTokensParams = decode_parameters(params)?;
                json!(self.find(&request.text_document.uri)?.tokens())
            }
            DocumentSymbolRequest::METHOD => {
                let request: DocumentSymbolParams = decode_parameters(params)?;
                json!(self.find(&request.text_document.uri)?.symbols())
            }
            _ => {
                let message = format!("unsupported request `{method}` here");
                return Err((messages::METHOD_NOT_FOUND, message));
            }
        };
        Ok(result)
    }

    /// Returns the open document with this URI.
    fn find(&self, uri: &Uri) -> Result<&Document, RequestError> {
        let document = self.0.get(uri.as_str()).map(|(document, _)| document);
        document.ok_or_else(|| {
            let message = format!("`{}` is not open", uri.as_str());
            (messages::INVALID_PARAMS, message)
        })
    }
}

/// Notification with the diagnostics of a document.
fn diagnostics_notification(document: &Document, version: i32) -> Value {
    let uri = document.uri().clone();
    let params = PublishDiagnosticsParams::new(uri, document.diagnostics(), Some(version));
    messages::notification(PublishDiagnostics::METHOD, json!(params))
}

/// Decodes the parameters of a request.
fn decode_parameters<P: serde::de::DeserializeOwned>(params: Value) -> Result<P, RequestError> {
    let result = serde_json::from_value(params);
    result.map_err(|error| (messages::INVALID_PARAMS, error.to_string()))
}
