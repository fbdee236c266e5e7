//! The variables of a network's input queues.

use cohkit_engine::model::VariableId;

/// The input queues of a network at the homes, or at the remotes.
pub(super) struct Input {
    /// Index of the network's order in the protocol.
    pub order: usize,
    /// True for the queues of homes, false for those of remotes.
    pub home: bool,
    /// The remote whose message is at the head and stalls: its index plus 1; 0 if there is none.
    pub remote: VariableId,
    /// The home whose message is at the head and stalls: its number plus 1; 0 if there is none. Only remotes receive
    /// from homes.
    pub sender: Option<VariableId>,
}
