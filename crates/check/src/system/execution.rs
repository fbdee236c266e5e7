//! The row being lowered, as all kinds of statements need it.

use cohkit_protocol::protocol::MessageId;
use cohkit_system::plan::CompletionEffect;
use cohkit_system::stores::StoreSend;

use super::context::Context;
use super::tickets::ConsumedStore;
use cohkit_engine::model::Expr;

/// The row being lowered.
pub(super) struct Execution<'c> {
    /// Context of the body, after the event has been consumed.
    pub context: &'c Context,
    /// Message being consumed; `None` if the event is no message.
    pub message: Option<MessageId>,
    /// Current bit of the copy that the message or memory carries; `None` if the event carries no copy.
    pub incoming_copy: Option<Expr>,
    /// Current bit of the copy that an outgoing message gets, and that `done` uses. Writes of the row
    /// change it.
    pub copy: Expr,
    /// Access that `done` completes in this row.
    pub done: CompletionEffect,
    /// True if the write that `done` completes covers a part of the line.
    pub is_partial_write: bool,
    /// Relation of the next message with the store's bytes to the store. Each such send advances it.
    pub send: StoreSend,
    /// Store of the message being consumed, if stores are tracked. The row may perform or defer it.
    pub consumed_store: Option<ConsumedStore>,
}
