//! Features that `guarantee none` excludes.

use super::{policy, Resolver};
use crate::text::ast::{Agent, AgentItem};
use crate::text::diagnostic::{Code, Diagnostic};

impl Resolver<'_, '_> {
    /// Reports parts of a home that depend on the permissions of other agents, in a protocol with `guarantee none`.
    pub(super) fn reject_permission_features(&mut self, home: &Agent) {
        if policy::is_policy(home) {
            let text = "a home written as a policy, and `guarantee none`";
            self.sink.push(
                Diagnostic::new(Code::Misplaced, home.body.keyword, text)
                    .label("a home is constructed so that it keeps single writer and data value")
                    .note("write the home as rows, or leave `none` out"),
            );
            return;
        }
        let spans = home.body.items.iter().filter_map(|item| match item {
            AgentItem::Local(local) => Some(local.span),
            AgentItem::Unlock(span) => Some(*span),
            _ => None,
        });
        for span in spans.take(1) {
            let text = "a local operation, and `guarantee none`";
            self.sink.push(
                Diagnostic::new(Code::Misplaced, span, text)
                    .label("it limits the permissions of other agents, and here permissions guarantee nothing")
                    .note("leave the local operations out, or `none`"),
            );
        }
    }
}
