//! Backing permission covers every outer level: every behaviour below an L2 is among those below an abstract lender.

use cohkit_protocol::construct;
use cohkit_protocol::protocol::{Permission, Protocol};
use cohkit_protocol::text;
use cohkit_system::data::{Current, Data};
use cohkit_system::state::{explore, Clusters, Found, Levels, Lock, Payload, System, SystemState};
use std::collections::HashSet;

const INNER: &str = include_str!("../../../../protocols/mesi-l1.coh");
const OUTERS: [&str; 2] = [
    include_str!("../../../../protocols/mesi.coh"),
    include_str!("../../../../protocols/msi.coh"),
];

/// Reads a protocol file without errors.
fn read(text: &str) -> Protocol {
    text::parse(text).unwrap_or_else(|errors| panic!("{}", errors[0].render("text", text, false)))
}

/// Projection of an inner state: slots of the home, then its state; state, slots and currency of each remote; messages,
/// sorted; and (permission to memory, currency of memory, requested and accepted local operation, lock). It leaves out
/// the value of `memory writes` when the home's guards last read it, and bytes that no agent may use.
type Below = (
    Vec<u16>,
    Vec<(u16, Vec<u16>, bool)>,
    Vec<Message>,
    (Permission, bool, Option<u8>, Option<u8>, u8),
);
/// Sender, receiver, message type, and whether its copy is current, if it carries one.
type Message = (Option<u8>, Option<u8>, u16, Option<bool>);

/// Projects the first line of an inner state whose home has `permission` to its memory.
fn below<D: Data<Copy = bool>>(
    system_state: &SystemState<D>,
    system: &System,
    permission: Permission,
) -> Below {
    let line = &system_state.lines[0];
    let mut home = line.home.clone();
    let variables = &system.home.variables;
    let writes = variables.iter().position(|v| v.name == "memory writes");
    let writes = system
        .slots_of_home(writes.expect("home that reads `memory writes`") as u16)
        .start;
    home.slots[writes] = u16::from(permission == Permission::Write);
    home.slots.push(home.state);
    let remotes = line.remotes.iter().map(|remote| {
        let configuration = &remote.configuration;
        (
            configuration.state,
            configuration.slots.clone(),
            remote.copy,
        )
    });
    let messages = system_state.network.flights().map(|flight| {
        let carried = match flight.carried {
            Payload::Line(copy) => Some(copy),
            _ => None,
        };
        (flight.from, flight.to, flight.message.0, carried)
    });
    let mut messages: Vec<Message> = messages.collect();
    messages.sort_unstable();
    let lock = match line.lock {
        Lock::Unlocked => 0,
        Lock::Held(Permission::Write) => 1,
        Lock::Held(_) => 2,
        Lock::Unlocking => 3,
    };
    let memory = permission > Permission::None && line.memory;
    let rest = (permission, memory, line.requested, line.accepted, lock);
    (home.slots, remotes.collect(), messages, rest)
}

/// Explores one or two inner caches below an abstract lender, and below real outer caches, and compares the
/// projections.
#[test]
fn backing_permission_covers_every_l2_behaviour() {
    let inner = read(INNER);
    let home = construct::home(&inner, 2).unwrap();
    for outer in OUTERS {
        let outer = read(outer);
        let above = construct::home(&outer, 2).unwrap();
        for (l2s, l1s) in [(2, 1), (1, 2)] {
            let lender = System::new(&inner, &home, l1s, 1, 7).with_backing_permission();
            let Found::Safe { states, .. } =
                explore(&lender, SystemState::<Current>::new(&lender), 100_000)
            else {
                panic!("it holds")
            };
            let lender_states: HashSet<Below> = states
                .iter()
                .map(|w| below(w, &lender, w.lines[0].backing_permission))
                .collect();
            let levels = Levels::new(
                System::new(&outer, &above, l2s, 1, 7),
                System::new(&inner, &home, l1s, 1, 7),
            );
            let begin: Clusters = Clusters::new(&levels);
            let joint = explore(&levels, begin, 200_000);
            let Found::Safe { states, .. } = joint else {
                panic!("both hold")
            };
            let mut shown_states = HashSet::new();
            for clusters in &states {
                for (number, system_state) in clusters.inner.iter().enumerate() {
                    let state = clusters.outer.lines[0].remotes[number].configuration.state;
                    let permission = outer.remote.states[usize::from(state)].permission;
                    let cluster_state = below(system_state, levels.inner(0), permission);
                    assert!(
                        lender_states.contains(&cluster_state),
                        "{} over {l1s}: {cluster_state:?}",
                        outer.name
                    );
                    shown_states.insert(cluster_state);
                }
            }
            // With one L1, a single outer level shows every behaviour of the lender.
            let (shown_states, lender_states) = (shown_states.len(), lender_states.len());
            assert!(
                shown_states > 200 && (shown_states == lender_states) == (l1s == 1),
                "{}: {shown_states} of {lender_states}",
                outer.name
            );
        }
    }
}
