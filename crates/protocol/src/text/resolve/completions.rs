//! Checks of the data of accesses: the bytes that a row sends, and the bytes with which `done` completes an access.
//!
//! A remote's rows do not name their pending access. [`crate::pending_access`] derives it from the paths to the row. A
//! file is invalid if the pending access is ambiguous, or if its bytes are missing.

use crate::controller::{Access, Controller, Effect, Event, Rule, Statement};
use crate::pending_access::{Accesses, CompletionKind, PendingAccess};
use crate::protocol::{Carries, Message};
use crate::text::diagnostic::{Code, Diagnostic, Sink};

/// Reports rows that complete an access without bytes, or send the bytes of a write where none is pending.
pub(super) fn check(controller: &Controller, messages: &[Message], sink: &mut Sink) {
    let check = CompletionCheck {
        controller,
        messages,
        accesses: Accesses::new(controller, messages),
    };
    for row in &controller.rules {
        let Effect::Take { body, .. } = &row.effect else {
            continue;
        };
        if body.contains(&Statement::Done) {
            if let Some(error) = check.completion_error(row) {
                sink.push(error);
            }
        }
        for statement in body {
            if let Statement::Send { message, .. } = statement {
                let message = &messages[message.index()];
                if message.carries.store() {
                    if let Some(error) = check.store_error(row, message) {
                        sink.push(error);
                    }
                }
            }
        }
    }
}

/// Remote table whose rows are checked.
struct CompletionCheck<'c> {
    /// Controller of the remotes.
    controller: &'c Controller,
    /// Message types of the protocol.
    messages: &'c [Message],
    /// Analysis of the accesses that may be pending before each row.
    accesses: Accesses,
}

impl CompletionCheck<'_> {
    /// Returns the error of a row with `done`, if any.
    fn completion_error(&self, row: &Rule) -> Option<Diagnostic> {
        let Event::Message(message) = row.event else {
            return None;
        };
        let state = &self.controller.states[row.state.index()];
        let message = &self.messages[message.index()];
        let error = |text: String| Diagnostic::new(Code::NeverPerformed, row.span, text);
        let mut completions = self.accesses.completions(row);
        let Some((first, ending)) = completions.next() else {
            let text = format!("`done` in `{}`, where no access is outstanding", state.name);
            let label =
                "`done` completes an access, but no row that starts one leads to this state";
            return Some(error(text).label(label));
        };
        if let Some((other, _)) = completions.find(|(_, other)| *other != ending) {
            let text = format!(
                "`done` in `{}` may complete {} or {}",
                state.name,
                describe(first),
                describe(other)
            );
            let diagnostic = error(text)
                .label("the pending access is ambiguous")
                .note_at(state.span, "use a separate transient state for each access");
            return Some(diagnostic);
        }
        if message.carries.line() || state.holds_line || ending == CompletionKind::Sent {
            return None;
        }
        let name = first.access.name();
        let diagnostic = match ending {
            CompletionKind::Read => error(format!("a {name} completes here without bytes"))
                .label(format!("`{}` holds none", state.name))
                .note_at(message.span, "add `(line)` if this message carries them"),
            _ => error(format!("a {name} completes here, but its bytes are lost"))
                .label(format!("`{}` holds no line to write them to", state.name))
                .note_at(message.span, "add `(line)` if this message carries the line")
                .note("a message declared with `(store)` or `(partial store)` carries them to the home, in an earlier row"),
        };
        Some(diagnostic)
    }

    /// Returns the error of a row that sends the bytes of a write, if any.
    fn store_error(&self, row: &Rule, message: &Message) -> Option<Diagnostic> {
        let pending: Vec<PendingAccess> = match row.event {
            Event::Access(access) => vec![PendingAccess {
                access,
                sent: false,
            }],
            _ => self
                .accesses
                .pending_in(row.state)
                .iter()
                .copied()
                .collect(),
        };
        let is_write = |candidate: &PendingAccess| candidate.access.writes();
        if !pending.is_empty() && pending.iter().all(is_write) {
            return self.partial_line_error(row, message, &pending);
        }
        let name = &message.name;
        let state = &self.controller.states[row.state.index()].name;
        let text = match pending.iter().find(|candidate| !is_write(candidate)) {
            None => {
                format!(
                    "`{name}` carries the bytes of a write, but none is outstanding in `{state}`"
                )
            }
            Some(candidate) => format!(
                "`{name}` carries the bytes of a write, but a {} has none",
                candidate.access.name()
            ),
        };
        let diagnostic = Diagnostic::new(Code::Carries, row.span, text).label("no such bytes");
        Some(diagnostic.note_at(message.span, "declared with the bytes of a write here"))
    }

    /// Returns the error of a row that sends a whole line for a write of part of it. The remaining bytes, from a copy,
    /// may be stale when the home writes them, and would undo another cache's store.
    fn partial_line_error(
        &self,
        row: &Rule,
        message: &Message,
        pending: &[PendingAccess],
    ) -> Option<Diagnostic> {
        let writes_line = |candidate: &&PendingAccess| candidate.access == Access::WriteLine;
        let partial_write = pending.iter().find(|candidate| !writes_line(candidate))?;
        if message.carries != Carries::Store {
            return None;
        }
        let text = format!(
            "`{}` carries the bytes of a whole line, but a {} has those of a part",
            message.name,
            partial_write.access.name()
        );
        let diagnostic = Diagnostic::new(Code::Carries, row.span, text)
            .label("the rest of the line is undefined")
            .note_at(message.span, "`(partial store)` takes a part");
        Some(diagnostic)
    }
}

/// Description of the completion of an access.
fn describe(pending: PendingAccess) -> String {
    let name = pending.access.name();
    match pending {
        PendingAccess { sent: true, .. } => format!("a {name} whose bytes were sent"),
        PendingAccess { access, .. } if access.writes() => format!("a {name} in the copy"),
        _ => format!("a {name}"),
    }
}
