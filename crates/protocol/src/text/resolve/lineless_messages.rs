//! Messages about no line: those taken by rows about no line.

use super::Resolver;
use crate::controller::{Controller, Statement};
use crate::protocol as p;
use crate::protocol::{ChannelId, End};
use crate::text::diagnostic::{Code, Diagnostic};
use cohkit_diagnostics::Span;

impl Resolver<'_, '_> {
    /// Decides for each message whether it is about a line, and reports contradictions.
    pub(super) fn classify_lineless_messages(&mut self, controllers: [Option<&Controller>; 2]) {
        let lineless_rows: Vec<Option<Span>> = (self.taking_rows.iter())
            .map(|rows| rows.filter(|(lineless, _)| *lineless).map(|(_, span)| span))
            .collect();
        for (message, lineless_row) in self.messages.iter_mut().zip(&lineless_rows) {
            message.about_line = lineless_row.is_none();
            if let (Some(lineless_row), true) =
                (lineless_row, message.carries != p::Carries::Nothing)
            {
                let text = format!("`{}` carries bytes of no line", message.name);
                let diagnostic = Diagnostic::new(Code::Carries, message.span, text)
                    .label("leave the bytes out")
                    .note_at(*lineless_row, "taken by a row about no line");
                self.sink.push(diagnostic);
            }
        }
        for &(message, span) in &self.lineless_sends {
            if lineless_rows[message.index()].is_none()
                && self.taking_rows[message.index()].is_some()
            {
                let name = &self.messages[message.index()].name;
                let text = format!("`{name}` is about a line, but this row is about none");
                self.sink.push(
                    Diagnostic::new(Code::Misplaced, span, text)
                        .label("a message to an explicit home, or from a row about no line, is about no line")
                        .note(format!("rows about no line take such a message: `- | {name} | ...`")),
                );
            }
        }
        for state in controllers.into_iter().flatten().flat_map(|c| &c.states) {
            for message in &state.waits {
                if let Some(lineless_row) = lineless_rows[message.index()] {
                    let name = &self.messages[message.index()].name;
                    let text = format!(
                        "`{}` waits for `{name}`, which is about no line",
                        state.name
                    );
                    self.sink.push(
                        Diagnostic::new(Code::Misplaced, state.span, text)
                            .label("a state of a line waits for messages about it")
                            .note_at(lineless_row, "taken by a row about no line"),
                    );
                }
            }
        }
    }

    /// Reports features that a policy cannot handle, because its home is constructed for a single line.
    pub(super) fn reject_several_lines(&mut self, remote: &Controller) {
        let register = remote.variables.iter().find(|variable| variable.register);
        let register = register.map(|register| (&register.name, register.span));
        let lineless = self.messages.iter().find(|message| !message.about_line);
        let lineless = lineless.map(|message| (&message.name, message.span));
        let is_bulk_transition = |s: &Statement| matches!(s, Statement::BulkTransition { .. });
        let row = remote
            .rules
            .iter()
            .find(|row| row.has_statement(&is_bulk_transition));
        let keyword = "every".to_string();
        let row = row.map(|row| (&keyword, row.span));
        if let Some((name, span)) = register.or(lineless).or(row) {
            let text =
                format!("`{name}` is about several lines, and the home is written as a policy");
            let diagnostic = Diagnostic::new(Code::Misplaced, span, text)
                .label("a policy refers to one line")
                .note("write the home as rows");
            self.sink.push(diagnostic);
        }
    }

    /// Reports messages between homes that are to go before others (`behind`). Messages that go first are identified by
    /// the channel of a remote. (A whole channel between homes may be in an order.)
    pub(super) fn reject_order_between_homes(&mut self, channel: ChannelId, span: Span) {
        let channel = &self.channels[channel.index()];
        if (channel.from, channel.to) == (End::Home, End::Home) {
            let text = format!("`{}` leads from home to home", channel.name);
            let diagnostic = Diagnostic::new(Code::Direction, span, text)
                .label("no message stays behind one of these; `ordered` keeps a channel of them")
                .note_at(channel.span, "this channel");
            self.sink.push(diagnostic);
        }
    }
}
