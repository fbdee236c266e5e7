//! State of memory and of the copies of a line outside of messages.

use cohkit_engine::model::{TypeId, VariableId};
use cohkit_system::stores::Ticket;

use super::frame::Frame;

/// Labels of the states of a memory operation.
pub(super) mod slot {
    pub const IDLE: u32 = 0;
    pub const READ: u32 = 1;
    pub const SAMPLED: u32 = 2;
    pub const WRITE: u32 = 3;
    pub const STORE: u32 = 4;
    pub const PARTIAL: u32 = 5;
    pub const DONE: u32 = 6;
    pub const LABELS: [&str; 7] = [
        "idle",
        "read",
        "sampled",
        "write",
        "store",
        "partial_store",
        "done",
    ];
}

/// The memory operation, if the home has split memory.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub states: TypeId,
    pub state: VariableId,
    pub current: VariableId,
}

/// The deferred store, if the home ever defers one.
#[derive(Clone, Copy)]
pub(super) struct DeferredStore {
    /// Sender of the bytes: 0 for none, or a remote's index plus 1.
    pub from: VariableId,
    /// True if the bytes cover the whole line.
    pub whole: VariableId,
    /// Ticket of the store.
    pub ticket: VariableId,
}

/// State variables of memory and of the copies of a line.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    /// Current bit of each remote's copy.
    pub copies: VariableId,
    /// Current bit of memory.
    pub current: VariableId,
    pub slot: Option<Slot>,
    pub deferred_store: Option<DeferredStore>,
}

impl Memory {
    /// Declares the variables that the home needs. Posted stores have tickets of these ranks.
    pub fn new(frame: &Frame, ranks: u8) -> Memory {
        let (scope, remote_name) = (&frame.scope, &frame.protocol.remote.name);
        let bits = frame.per_remote("current", TypeId::BOOL);
        let copies = scope.state(format!("{remote_name}_current"), bits);
        let bits = scope.array("current", frame.line_type, TypeId::BOOL);
        let current = scope.state("memory_current", bits);
        let slot = frame.facts.slot.then(|| {
            let states = scope.enumeration("memory_operation", slot::LABELS);
            let per_line = scope.array("memory_operation", frame.line_type, states);
            Slot {
                states,
                state: scope.state("memory_operation", per_line),
                current: scope.state("memory_operation_current", bits),
            }
        });
        let deferred_store = frame.facts.defers_stores.then(|| {
            let sender_type = scope.range("aside", 0, frame.remotes);
            scope.add_optional(sender_type);
            let per_line = scope.array("aside", frame.line_type, sender_type);
            let tickets = scope.range("ticket", 0, i32::from(Ticket::posted(ranks - 1).0));
            let tickets = scope.array("ticket", frame.line_type, tickets);
            DeferredStore {
                from: scope.state("aside_from", per_line),
                whole: scope.state("aside_whole", bits),
                ticket: scope.state("aside_ticket", tickets),
            }
        });
        Memory {
            copies,
            current,
            slot,
            deferred_store,
        }
    }
}
