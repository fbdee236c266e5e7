//! Directory of the home: an entry for every line, or sets of entries with recalls.

use super::queues::Queues;
use super::recall::check_recall;
use crate::agents::layout::Agents;
use crate::rom::{evicting_operation, refuse, Refusal};
use cohkit_protocol::controller::{Effect, Event, Rule, Statement};
use cohkit_protocol::protocol::{Class, Home, MessageId};

/// Size of a set-associative directory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entries {
    /// Bits of the number of a set.
    pub set_width: u32,
    /// Entries of a set.
    pub ways: u32,
}

/// Smaller than the lines that the test bench accesses, so that lines are recalled.
impl Default for Entries {
    fn default() -> Entries {
        Entries {
            set_width: 0,
            ways: 2,
        }
    }
}

impl Entries {
    /// Set of a line.
    pub fn set_of(self, line: usize) -> usize {
        line & ((1 << self.set_width) - 1)
    }
}

/// Directory of a home.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Directory {
    /// An entry for every line of the memory.
    #[default]
    Full,
    /// Sets of entries. If a set is full, the home recalls a line of the set from all caches.
    SetAssociative,
}

impl Directory {
    /// All values.
    pub const ALL: [Directory; 2] = [Directory::Full, Directory::SetAssociative];

    /// Name in options.
    pub fn name(self) -> &'static str {
        match self {
            Directory::Full => "full",
            Directory::SetAssociative => "set-associative",
        }
    }

    /// Returns the event with which the home recalls a line, if the directory needs one.
    ///
    /// # Errors
    /// The table cannot recall lines, or a message that waits for an entry could hold up one that frees it.
    pub fn recall(self, agents: &Agents) -> Result<Option<Event>, Refusal> {
        match self {
            Directory::Full => Ok(None),
            Directory::SetAssociative => recall(agents).map(Some),
        }
    }
}

/// Returns the local operation by which the home recalls a line.
fn recall(agents: &Agents) -> Result<Event, Refusal> {
    let event = Event::Local(evicting_operation(agents.home)?);
    let carries = |s: &Statement| match s {
        Statement::Send { message, .. } => agents.protocol.message(*message).carries.line(),
        _ => false,
    };
    let mut rules = agents.home.rules.iter();
    let reads = rules.find(|row| row.event == event && row.has_statement(&carries));
    if let Some(row) = reads {
        return refuse(row.span, "a recall that reads memory");
    }
    let queues = Queues::new(agents.protocol);
    let is_ordered =
        |message: MessageId| queues.queues[queues.of(agents.protocol, message)].ordered;
    let ordered = agents.home.rules.iter().find(|row| match row.event {
        Event::Message(message) => is_ordered(message) && needs_entry(agents, row, message),
        _ => false,
    });
    if let Some(row) = ordered {
        let feature = "a message in an order may wait for a directory entry";
        return refuse(row.span, feature);
    }
    check_recall(agents, event).map(|()| event)
}

/// True if a line may get its directory entry by this row. The states of a constructed home depend on the number of
/// caches, but only requests find a line without an entry.
fn needs_entry(agents: &Agents, row: &Rule, message: MessageId) -> bool {
    match agents.protocol.home {
        Home::Policy(_) => agents.protocol.channel_of(message).class == Some(Class::Request),
        _ => row.state.index() == 0 && matches!(row.effect, Effect::Take { .. }),
    }
}
