//! State of memory and of the copies of a line outside of messages.

use cohkit_engine::model::{TypeId, VariableId};
use cohkit_system::stores::Ticket;

use super::frame::Frame;

/// States of a memory operation, as indices into `LABELS`. The home starts an operation in
/// READ, WRITE, STORE or PARTIAL. Memory takes it to SAMPLED or DONE, and the home back to
/// IDLE.
pub(super) mod slot {
    /// No operation.
    pub const IDLE: u32 = 0;
    /// A read that memory has not executed yet.
    pub const READ: u32 = 1;
    /// A read that memory has executed; its data waits for the home.
    pub const SAMPLED: u32 = 2;
    /// A write of the line that memory has not executed yet.
    pub const WRITE: u32 = 3;
    /// A store of the whole line that memory has not executed yet.
    pub const STORE: u32 = 4;
    /// A store of a part of the line that memory has not executed yet.
    pub const PARTIAL: u32 = 5;
    /// A write or store that memory has executed; its completion waits for the home.
    pub const DONE: u32 = 6;
    /// Labels of the enumeration, in the order of the constants.
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

/// State variables of the memory operation, at most one per line. Only a home with split
/// memory has them.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// Enumeration of the states in [`slot`].
    pub states: TypeId,
    /// State of the operation, per line.
    pub state: VariableId,
    /// Current bit of the copy that the operation reads or writes, per line. False if the
    /// operation has none.
    pub current: VariableId,
}

/// State variables of the deferred store, per line. Only a home that defers stores has them.
#[derive(Clone, Copy)]
pub(super) struct DeferredStore {
    /// Sender of the bytes: 0 for none, or a remote's index plus 1.
    pub from: VariableId,
    /// True if the bytes cover the whole line.
    pub whole: VariableId,
    /// Ticket of the store; 0 if none is deferred.
    pub ticket: VariableId,
}

/// State variables of memory and of the copies of a line.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    /// Current bit of each remote's copy, per line and remote. False if the remote has no
    /// copy.
    pub copies: VariableId,
    /// Current bit of memory, per line.
    pub current: VariableId,
    /// Memory operation; `None` without split memory.
    pub slot: Option<Slot>,
    /// Deferred store; `None` if the home never defers one.
    pub deferred_store: Option<DeferredStore>,
}

impl Memory {
    /// Declares the variables that the home needs. Posted stores have tickets of `ranks`
    /// ranks, at least 1.
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
            let sender_type = scope.range("deferred", 0, frame.remotes);
            scope.add_optional(sender_type);
            let per_line = scope.array("deferred", frame.line_type, sender_type);
            let tickets = scope.range("ticket", 0, i32::from(Ticket::posted(ranks - 1).0));
            let tickets = scope.array("ticket", frame.line_type, tickets);
            DeferredStore {
                from: scope.state("deferred_from", per_line),
                whole: scope.state("deferred_whole_line", bits),
                ticket: scope.state("deferred_ticket", tickets),
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
