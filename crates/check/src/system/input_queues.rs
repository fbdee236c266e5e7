//! The variables of a network's input queues.

use cohkit_engine::model::VariableId;

/// The input queues of a network at the homes, or at the remotes.
pub(super) struct Input {
    /// Index of the network's channels into the protocol's orders.
    pub order: usize,
    /// True for the queues of homes, false for those of remotes.
    pub home: bool,
    /// The remote whose message is the first and has to wait: its index plus 1; 0 if there is none.
    pub remote: VariableId,
    /// The home whose message that is: its number plus 1; 0 if there is none. Homes send to remotes alone.
    pub sender: Option<VariableId>,
}
