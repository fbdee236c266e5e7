//! Variables of the backing permission.

use cohkit_engine::build::Builder;
use cohkit_engine::model::{TypeId, VariableId};
use cohkit_protocol::protocol::{Protocol, Right};
use cohkit_system::hierarchy;

/// The backing permission of each line.
pub(super) struct BackingPermission {
    pub right: VariableId,
    /// Per message, the permission that the home needs before it consumes it.
    pub needs: Vec<Right>,
}

impl BackingPermission {
    pub fn new(build: &mut Builder, protocol: &Protocol, line: TypeId) -> BackingPermission {
        let right = build.range("right", 0, 2);
        let per_line = build.array("lent", line, right);
        let messages = protocol.message_ids();
        BackingPermission {
            right: build.state("memory_lent", per_line),
            needs: messages.map(|m| hierarchy::needs(protocol, m)).collect(),
        }
    }
}
