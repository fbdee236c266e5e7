//! Variables of the backing permission.

use cohkit_engine::build::Builder;
use cohkit_engine::model::{TypeId, VariableId};
use cohkit_protocol::protocol::{Protocol, Right};
use cohkit_system::over;

/// The backing permission of each line.
pub(super) struct Lent {
    pub right: VariableId,
    /// Per message, the permission that the home needs before it consumes it.
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
