//! Operations at processor ports that caches of a protocol can perform.

use crate::agents::layout::{Agent, Agents};
use cohkit_protocol::controller::{Access, Event, Rule, Statement};

/// Operation of an access at a processor port, as the units number it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Operation {
    /// Load or store.
    #[default]
    LoadStore,
    /// Store that answers with the former bytes.
    Swap,
    /// Addition to the enabled words, which answers with the former ones.
    Add,
    /// Store if the enabled words are the expected one, which answers with the former words.
    CompareAndSwap,
    /// Answer after all earlier accesses of the port, and before all later ones.
    Fence,
    /// Eviction of the line.
    Flush,
}

impl Operation {
    /// All operations, by their numbers.
    pub const ALL: [Operation; 6] = [
        Operation::LoadStore,
        Operation::Swap,
        Operation::Add,
        Operation::CompareAndSwap,
        Operation::Fence,
        Operation::Flush,
    ];

    /// Returns true if the operation reads and writes a line.
    pub fn is_atomic(self) -> bool {
        matches!(
            self,
            Operation::Swap | Operation::Add | Operation::CompareAndSwap
        )
    }
}

/// Returns the first row by which the caches of a kind send a store to another agent. Such caches cannot perform atomic
/// operations. Rows of non-caching writes do not count.
pub fn row_without_atomics<'a>(agents: &Agents<'a>, agent: &Agent) -> Option<&'a Rule> {
    let sends_store = |statement: &Statement| match statement {
        Statement::Send { message, .. } => agents.protocol.message(*message).carries.store(),
        _ => false,
    };
    let is_store = |event: Event| match event {
        Event::Access(access) => access == Access::Store,
        _ => true,
    };
    agents.protocol.remote.rules.iter().find(|row| {
        agent.states.contains(&row.state.index())
            && is_store(row.event)
            && row.has_statement(&sends_store)
    })
}
