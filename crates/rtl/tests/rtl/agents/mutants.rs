//! Printed step functions with one change each, which the comparison must find.

use super::build::{Module, Steps};
use super::Printed;

/// A change of the printed text of a module.
struct Change {
    /// Name of the shipped protocol.
    protocol: &'static str,
    /// Name of the agent.
    agent: &'static str,
    /// Words before the changed text, to select the row.
    row: &'static str,
    /// Original text: its first occurrence after the row's words is replaced.
    original: &'static str,
    /// Replacement.
    changed: &'static str,
}

/// A module with a change.
pub struct Mutant {
    /// Position of the protocol among the printed ones.
    pub protocol: usize,
    /// Name of the agent.
    pub agent: &'static str,
    /// Number of the module.
    pub module: usize,
    /// The change, as text.
    pub description: String,
}

/// Describes a change.
const fn change(
    protocol: &'static str,
    agent: &'static str,
    row: &'static str,
    original: &'static str,
    changed: &'static str,
) -> Change {
    Change {
        protocol,
        agent,
        row,
        original,
        changed,
    }
}

/// Changes of different kinds.
const CHANGES: &[Change] = &[
    // Another next state.
    change(
        "msi",
        "home",
        "msi_msg_GetM",
        "state_o = msi_home_M;",
        "state_o = msi_home_S;",
    ),
    // The event is stalled instead of taken, and taken instead of stalled.
    change(
        "msi",
        "cache",
        "msi_msg_Inv",
        "effect_o = msi_take;",
        "effect_o = msi_stall;",
    ),
    change(
        "msi",
        "home",
        "msi_home_S_D:",
        "effect_o = msi_stall;",
        "effect_o = msi_take;",
    ),
    // Another message.
    change(
        "mesi",
        "cache",
        "mesi_cache_I:",
        "message = mesi_msg_GetS;",
        "message = mesi_msg_GetM;",
    ),
    // Another receiver.
    change(
        "msi",
        "home",
        "msi_msg_GetM",
        "to_remotes = msi_one(sender_i);",
        "to_remotes = msi_one(v.owner);",
    ),
    // The requester is not excluded from the receivers.
    change(
        "msi",
        "home",
        "msi_msg_GetM",
        " & ~msi_one(sender_i));",
        " | msi_one(sender_i));",
    ),
    // Another value of a field.
    change(
        "token",
        "cache",
        "token_cache_M:",
        "fields.tokens = v.held;",
        "fields.tokens = 2'd1;",
    ),
    // A guard with another comparison.
    change(
        "msi",
        "cache",
        "msi_msg_Data",
        "fields_i.acks == v.early",
        "fields_i.acks != v.early",
    ),
    // An assignment is lost, or has another value.
    change("moesi", "home", "moesi_msg_GetM", "v.owner = sender_i;", ""),
    change(
        "token",
        "cache",
        "token_msg_Tokens",
        "v.acks = 2'(3'(v.acks) + 3'd1)",
        "v.acks = 2'(3'(v.acks) + 3'd2)",
    ),
    // Rows in another order.
    change(
        "token",
        "cache",
        "token_cache_IS_D:",
        "end else if (fields_i.owner) begin",
        "end else if (1'b0) begin",
    ),
    // Memory is not written; other data are sent.
    change("msi", "home", "msi_home_S_D:", "memory_o.write = 1'b1;", ""),
    change(
        "msi",
        "home",
        "msi_msg_GetS",
        "data = msi_own;",
        "data = msi_received;",
    ),
    // An access is not completed; the copy is not kept.
    change(
        "ccix",
        "host",
        "ccix_msg_CompDataI",
        "done_o = ccix_read_done;",
        "",
    ),
    change(
        "ccix",
        "host",
        "ccix_msg_CompDataSC",
        "copy_o = ccix_received;",
        "copy_o = ccix_own;",
    ),
    // A write is not performed in place.
    change(
        "ccix",
        "host",
        "ccix_access_write_line",
        "perform_o = 1'b1;",
        "",
    ),
    // A value that does not fit goes unnoticed.
    change(
        "msi",
        "cache",
        "msi_msg_InvAck",
        "fault_o = 1'b1;",
        "fault_o = 1'b0;",
    ),
    // An operation of the device is not acknowledged.
    change(
        "cxl_bias",
        "home",
        "cxl_bias_unlock",
        "acknowledge_o = 1'b1;",
        "",
    ),
    // A bulk transition starts from another state.
    change(
        "self_invalidate",
        "cache",
        "access_acquired",
        "from = self_invalidate_cache_V;",
        "from = self_invalidate_cache_I;",
    ),
];

/// Adds the mutants to the modules of a build.
pub fn add(steps: &mut Steps, printed: &[Printed]) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for (number, change) in CHANGES.iter().enumerate() {
        let mut protocols = printed.iter();
        let protocol = protocols.position(|printed| printed.protocol.name == change.protocol);
        let protocol = protocol.expect("printed protocol");
        let agents = printed[protocol].agents().expect("every row has hardware");
        let agent = agents.find(change.agent).expect("agent of the protocol");
        let original = format!("{}_{}_step", change.protocol, change.agent);
        let text = steps.text(steps.number(&original));
        let description = format!("{original}: `{}` -> `{}`", change.original, change.changed);
        let row = text.find("always_comb").expect("printed module");
        let row = row
            + text[row..]
                .find(change.row)
                .unwrap_or_else(|| panic!("{description}: no row\n{text}"));
        let place = text[row..].find(change.original);
        let place =
            row + place.unwrap_or_else(|| panic!("{description}: no such text\n{}", &text[row..]));
        let mut text = text.to_string();
        text.replace_range(place..place + change.original.len(), change.changed);
        let name = format!("{original}_{number}");
        let module = Module {
            text: text.replace(&original, &name),
            name,
        };
        mutants.push(Mutant {
            protocol,
            agent: change.agent,
            module: steps.add_module(&agents, agent, module),
            description,
        });
    }
    mutants
}
