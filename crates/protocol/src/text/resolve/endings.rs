//! Data of accesses: the bytes that a row sends, and those with which an access completes.
//!
//! A remote's rows do not name the access they are about; it follows from the paths that lead there
//! ([`crate::pending_access`]). If it is ambiguous, or if there are no bytes, the file is wrong.

use super::*;
use crate::controller::{Access, Controller, Effect, Event, Rule, Statement};
use crate::pending_access::{Accesses, Ending, PendingAccess};
use crate::protocol::{Carries, Message};

/// Reports rows that complete an access without bytes, or send the bytes of a write where none is pending.
pub(super) fn check(controller: &Controller, messages: &[Message], sink: &mut Sink) {
    let endings = Endings {
        controller,
        messages,
        accesses: Accesses::new(controller, messages),
    };
    for row in &controller.rules {
        let Effect::Take { body, .. } = &row.effect else {
            continue;
        };
        if body.contains(&Statement::Done) {
            if let Some(wrong) = endings.done(row) {
                sink.push(wrong);
            }
        }
        for statement in body {
            if let Statement::Send { message, .. } = statement {
                let message = &messages[message.index()];
                if message.carries.store() {
                    if let Some(wrong) = endings.sent(row, message) {
                        sink.push(wrong);
                    }
                }
            }
        }
    }
}

struct Endings<'c> {
    controller: &'c Controller,
    messages: &'c [Message],
    accesses: Accesses,
}

impl Endings<'_> {
    /// Returns the error of a row with `done`, if any.
    fn done(&self, row: &Rule) -> Option<Diagnostic> {
        let Event::Message(taken) = row.event else {
            return None;
        };
        let state = &self.controller.states[row.state.index()];
        let taken = &self.messages[taken.index()];
        let wrong = |text: String| Some(Diagnostic::new(Code::NeverPerformed, row.span, text));
        let mut endings = self.accesses.endings(row);
        let Some((first, ending)) = endings.next() else {
            let text = format!("`done` in `{}`, where no access is outstanding", state.name);
            let label = "it completes an access, but no access leads here";
            return wrong(text).map(|diagnostic| diagnostic.label(label));
        };
        if let Some((other, _)) = endings.find(|(_, other)| *other != ending) {
            let text = format!(
                "`done` in `{}` may end {} or {}",
                state.name,
                words(first),
                words(other)
            );
            return wrong(text).map(|diagnostic| {
                diagnostic
                    .label("the accesses that lead here differ")
                    .see(state.span, "give each a state of its own")
            });
        }
        if taken.carries.line() || state.holds_line || ending == Ending::Sent {
            return None;
        }
        let name = first.access.name();
        let diagnostic = match ending {
            Ending::Read => wrong(format!("a {name} completes here without bytes"))?
                .label(format!("`{}` holds none", state.name))
                .see(taken.span, "add `(line)` if it brings them"),
            _ => wrong(format!("a {name} completes here, but its bytes are lost"))?
                .label(format!("`{}` holds no line to write them to", state.name))
                .see(taken.span, "add `(line)` if it brings the line")
                .note("a message declared with `(store)` or `(partial store)` carries them to the home, in an earlier row"),
        };
        Some(diagnostic)
    }

    /// Returns the error of a row that sends the bytes of a write, if any.
    fn sent(&self, row: &Rule, message: &Message) -> Option<Diagnostic> {
        let about: Vec<PendingAccess> = match row.event {
            Event::Access(access) => vec![PendingAccess {
                access,
                sent: false,
            }],
            _ => self.accesses.within(row.state).iter().copied().collect(),
        };
        let fits = |u: &PendingAccess| u.access.writes();
        if !about.is_empty() && about.iter().all(fits) {
            return self.partly(row, message, &about);
        }
        let name = &message.name;
        let state = &self.controller.states[row.state.index()].name;
        let text = match about.iter().find(|u| !fits(u)) {
            None => {
                format!(
                    "`{name}` carries the bytes of a write, but none is outstanding in `{state}`"
                )
            }
            Some(u) => format!(
                "`{name}` carries the bytes of a write, but a {} has none",
                u.access.name()
            ),
        };
        let diagnostic = Diagnostic::new(Code::Carries, row.span, text).label("no such bytes");
        Some(diagnostic.see(message.span, "it is declared with the bytes of a write"))
    }

    /// Returns the error of a row that sends a whole line for a write of part of it. The remaining bytes, from a copy,
    /// may be stale when the home writes them, and would undo another cache's store.
    fn partly(&self, row: &Rule, message: &Message, about: &[PendingAccess]) -> Option<Diagnostic> {
        let whole = |u: &&PendingAccess| u.access == Access::WriteLine;
        let part = about.iter().find(|u| !whole(u))?;
        if message.carries != Carries::Store {
            return None;
        }
        let text = format!(
            "`{}` carries the bytes of a whole line, but a {} has those of a part",
            message.name,
            part.access.name()
        );
        let diagnostic = Diagnostic::new(Code::Carries, row.span, text)
            .label("the rest of the line is undefined")
            .see(message.span, "`(partial store)` takes a part");
        Some(diagnostic)
    }
}

/// Description of the completion of an access.
fn words(under_way: PendingAccess) -> String {
    let name = under_way.access.name();
    match under_way {
        PendingAccess { sent: true, .. } => format!("a {name} whose bytes were sent"),
        PendingAccess { access, .. } if access.writes() => format!("a {name} in the copy"),
        _ => format!("a {name}"),
    }
}
