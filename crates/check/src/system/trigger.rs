//! An event of an agent, and the effects of one of its cases.

use cohkit_engine::model::{Expr, Stmt, VariableId};
use cohkit_protocol::controller::Event;
use cohkit_protocol::protocol::MessageId;

use super::context::Context;
use super::tickets::ConsumedStore;

/// An event of an agent, with its effects outside of the agent's rows.
#[derive(Clone)]
pub(super) struct Trigger {
    /// Event, as rows name it.
    pub event: Event,
    /// Name of the rules, such as `cache takes Data`: the agent and its action. A violation repeats it.
    pub name: String,
    /// Parameters of the rules.
    pub parameters: Vec<VariableId>,
    /// Condition for the event.
    pub present: Expr,
    /// Context of guards, before the event is consumed.
    pub before: Context,
    /// Context of bodies, after `consume` has run.
    pub after: Context,
    /// Effects independent of the agent's row, such as the removal of the message from its channel.
    pub consume: Vec<Stmt>,
    /// Additional effects if a row takes the event.
    pub accept_effects: Vec<Stmt>,
    /// Additional effects if a row refuses the event; `None` if refusing is no valid reaction.
    pub refuse_effects: Option<Vec<Stmt>>,
    /// Message that the event delivers, that of `event`; `None` for other events.
    pub message: Option<MessageId>,
    /// The store of the message, if stores are tracked.
    pub store: Option<ConsumedStore>,
    /// Current bit of the copy that comes with the event, as bodies read it; `None` if none comes.
    pub incoming_copy: Option<Expr>,
    /// True if the agent must have a row for the event.
    pub is_required: bool,
    /// True if the environment starts the event, as in [`cohkit_engine::model::Rule::spontaneous`].
    pub spontaneous: bool,
}

impl Trigger {
    /// Creates a trigger of an event without a message, which an agent may ignore. The event has no effect outside of
    /// the agent's rows.
    pub fn new(
        event: Event,
        name: String,
        parameters: Vec<VariableId>,
        context: Context,
    ) -> Trigger {
        Trigger {
            event,
            name,
            parameters,
            present: Expr::Bool(true),
            before: context.clone(),
            after: context,
            consume: Vec::new(),
            accept_effects: Vec::new(),
            refuse_effects: None,
            message: None,
            store: None,
            incoming_copy: None,
            is_required: false,
            spontaneous: false,
        }
    }
}

/// Effects of one case.
pub(super) struct CaseEffects {
    /// Additional condition of the case.
    pub extra_condition: Expr,
    /// True if networks have capacity for the messages of the case. Otherwise the event waits.
    pub has_capacity: Expr,
    /// Effects, without those of [`Trigger::consume`].
    pub body: Vec<Stmt>,
}

impl CaseEffects {
    /// Creates effects without a condition.
    pub fn of(body: Vec<Stmt>) -> CaseEffects {
        CaseEffects {
            extra_condition: Expr::Bool(true),
            has_capacity: Expr::Bool(true),
            body,
        }
    }
}
