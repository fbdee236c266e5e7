//! Descriptions of steps.

use super::levels::{Clusters, LevelStep, Levels};
use super::{Arrival, Step, System, SystemState};
use crate::data::Data;
use cohkit_protocol::protocol::Permission;

/// Purpose of a permission.
fn permission_purpose(permission: Permission) -> &'static str {
    match permission {
        Permission::Write => "write permission",
        _ => "read permission",
    }
}

impl<D: Data> SystemState<D> {
    /// Describes a step that can be taken in this state: `cache 1: store`, `GetM of cache 1 reaches the home`.
    pub fn words(&self, system: &System, step: Step) -> String {
        match (self.describe_step(system, step), system.lines) {
            ((_, description), 1) | ((None, description), _) => description,
            ((Some(line), description), _) => format!("line {line}: {description}"),
        }
    }

    /// The line of a step, if it has one, and a description of the step.
    pub fn describe_step(&self, system: &System, step: Step) -> (Option<u8>, String) {
        let agent = |end: Option<u8>| match end {
            None => "the home".to_string(),
            Some(number) => {
                let (kind, number) = system.of_each.kind(number.into());
                format!("{} {number}", system.protocol.kinds[kind.index()].name)
            }
        };
        let local = |number: u8| &system.home.locals[usize::from(number)].name;
        let (line, description) = match step {
            Step::Access(line, remote, access) => {
                (line, format!("{}: {}", agent(Some(remote)), access.name()))
            }
            Step::Hit(line, remote) => {
                (line, format!("{}: store in its copy", agent(Some(remote))))
            }
            Step::Deliver(arrival) => match self.network.at(arrival) {
                None => return (None, "a message arrives".to_string()),
                Some(flight) => {
                    let message = &system.protocol.message(flight.message).name;
                    let (from, to) = (agent(flight.from), agent(flight.to));
                    (flight.line, format!("{message} of {from} reaches {to}"))
                }
            },
            Step::DeliverChoosing(arrival, choice) => {
                let (line, description) = self.describe_step(system, Step::Deliver(arrival));
                return (line, format!("{description}, and choice {choice} is taken"));
            }
            Step::StallAtHead(order) => {
                let head = self.network.at(Arrival::Ordered(order));
                let line = head.map_or(0, |flight| flight.line);
                let description = match (head, system.protocol.network_of(order.0)) {
                    (Some(flight), Some(network)) => {
                        let message = &system.protocol.message(flight.message).name;
                        let (from, to) = (agent(flight.from), agent(flight.to));
                        let network = &network.name;
                        format!("{message} of {from} waits first in network {network} at {to}")
                    }
                    _ => "a message waits".to_string(),
                };
                (line, description)
            }
            Step::MemoryOperation(line) => {
                (line, "memory performs the requested operation".to_string())
            }
            Step::MemoryData(line, _) => {
                (line, "the home receives the data from memory".to_string())
            }
            Step::MemoryDone(line) => (
                line,
                "the home receives the completion of the memory write".to_string(),
            ),
            Step::RequestLocal(line, number) => (line, format!("{} is requested", local(number))),
            Step::Local(line) => {
                let requested = self.lines[usize::from(line)].requested;
                let description = requested.map_or("a local operation", |number| local(number));
                (line, format!("the home takes {description}"))
            }
            Step::Unlock(line) => (line, "the home takes an unlock".to_string()),
            Step::DeviceWrite(line) => (line, "the device writes".to_string()),
            Step::RaiseBacking(line, permission) => (
                line,
                format!("the outer level grants {}", permission_purpose(permission)),
            ),
            Step::LowerBacking(line, Permission::None) => {
                (line, "the permission is revoked".to_string())
            }
            Step::LowerBacking(line, permission) => (
                line,
                format!(
                    "the permission is downgraded to {}",
                    permission_purpose(permission)
                ),
            ),
            Step::ExternalWrite(line) => (line, "another agent writes".to_string()),
        };
        (Some(line), description)
    }
}

impl Clusters {
    /// Descriptions of the steps of a path that begins here.
    pub fn follow(&self, levels: &Levels, path: &[LevelStep]) -> Vec<String> {
        let mut state = self.clone();
        let step = |&step: &LevelStep| {
            let words = state.words(levels, step);
            // The caller knows the violation of the last step.
            let _ = state.take(levels, step);
            words
        };
        path.iter().map(step).collect()
    }

    /// Describes a step that can be taken in this state, with its level.
    pub fn words(&self, levels: &Levels, step: LevelStep) -> String {
        match step {
            LevelStep::Outer(step) => self.outer.words(&levels.outer, step),
            LevelStep::Inner(number, step) => {
                let upper_name = &levels.outer.protocol.kinds[0].name;
                let description = self.inner[usize::from(number)].words(levels.inner(number), step);
                format!("below {upper_name} {number}: {description}")
            }
        }
    }
}
