//! How far memory is lent.

use cohkit_engine::build::Builder;
use cohkit_engine::model::{TypeId, VariableId};
use cohkit_protocol::protocol::{Protocol, Right};
use cohkit_system::over;

/// How far the memory of each line is lent.
pub(super) struct Lent {
    pub right: VariableId,
    /// Of each message, the right without which the home does not take it.
    pub needs: Vec<Right>,
}

impl Lent {
    pub fn new(build: &mut Builder, protocol: &Protocol, line: TypeId) -> Lent {
        let right = build.range("right", 0, 2);
        let per_line = build.array("lent", line, right);
        let messages = protocol.message_ids();
        Lent {
            right: build.state("memory_lent", per_line),
            needs: messages.map(|m| over::needs(protocol, m)).collect(),
        }
    }
}
