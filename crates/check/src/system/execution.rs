//! The row being lowered, as all kinds of statements need it.

use cohkit_protocol::protocol::MessageId;
use cohkit_system::plan::CompletionEffect;
use cohkit_system::stores::StoreSend;

use super::context::Context;
use super::tickets::ConsumedStore;
use cohkit_engine::model::Expr;

/// The row being lowered.
pub(super) struct Execution<'c> {
    pub context: &'c Context,
    /// The message being consumed, and the current bit of the copy that this message or memory carries.
    pub message: Option<MessageId>,
    pub incoming_copy: Option<Expr>,
    /// True if the copy that an outgoing message gets is current.
    pub copy: Expr,
    pub done: CompletionEffect,
    /// True if the write that `done` completes covers a part of the line.
    pub is_partial_write: bool,
    /// Relation of the next message with the store's bytes to the store.
    pub send: StoreSend,
    /// The store of the message being consumed, if stores are tracked.
    pub consumed_store: Option<ConsumedStore>,
}
