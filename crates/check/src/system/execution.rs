//! A row being carried out, as all kinds of statements need it.

use cohkit_protocol::protocol::MessageId;
use cohkit_system::plan::Done;
use cohkit_system::stores::StoreSend;

use super::expressions::Context;
use super::tickets::Taking;
use cohkit_engine::model::Expr;

/// A row being carried out.
pub(super) struct Execution<'c> {
    pub context: &'c Context,
    /// The message being taken, and whether the copy of the line that it or the memory brings is current.
    pub taken: Option<MessageId>,
    pub brought: Option<Expr>,
    /// True if the copy that an outgoing message gets is current.
    pub copy: Expr,
    pub done: Done,
    /// True if the write that `done` ends writes a part of the line.
    pub keeps_a_part: bool,
    /// Relation of the next message with the store's bytes to the store.
    pub send: StoreSend,
    /// The store that comes with the message being taken, if that is followed.
    pub taking: Option<Taking>,
}
