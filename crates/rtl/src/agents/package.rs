//! The package of a protocol's agents: types, constants and properties of states and messages.

use super::layout::{bits, Agent, Agents};
use crate::print::{identifier, push_enumeration, Origin};
use cohkit_protocol::controller::{Event, Initial, Table};
use cohkit_protocol::protocol::{MessageId, Permission};
use cohkit_protocol::terms::{StateId, Type, VariableId};
use std::fmt::Write;

/// Names that the package declares once, without the protocol's name.
pub(super) const RESERVED_NAMES: &[&str] = &[
    "event_e",
    "remote_t",
    "set_t",
    "fields_t",
    "effect_e",
    "data_e",
    "done_e",
    "memory_t",
    "no_row",
    "take",
    "stall",
    "refuse",
    "no_data",
    "own",
    "received",
    "store",
    "not_done",
    "read_done",
    "write_done",
    "sent_done",
    "one",
    "index",
    "count",
    "lowest",
    "carries_line",
    "carries_store",
    "channel",
    "ordered",
];

/// Names that the package declares for each agent, without the names of protocol and agent.
pub(super) const RESERVED_AGENT_NAMES: &[&str] = &[
    "state_e",
    "variables_t",
    "send_t",
    "bulk_t",
    "initial",
    "reads",
    "writes",
    "dirty",
    "holds",
    "waits",
    "step",
];

/// Prints the package `PROTOCOL_agents_pkg`.
pub fn package(agents: &Agents, origin: &Origin) -> String {
    let printer = PackagePrinter { agents };
    let name = &agents.protocol.name;
    let option = format!("--agent home --remotes {}", agents.remotes_option());
    let title = format!(
        "Types and constants of the agents of {name}, for {} remotes.",
        agents.total()
    );
    let mut text = origin.header(&title, &option);
    let _ = writeln!(text, "package {name}_agents_pkg;");
    text += &printer.common_types();
    text += &printer.functions();
    text += &printer.message_properties();
    for agent in &agents.agents {
        text += &printer.agent(agent);
    }
    let _ = writeln!(text, "endpackage : {name}_agents_pkg");
    text
}

/// A package being printed.
struct PackagePrinter<'a> {
    /// Agents of the protocol.
    agents: &'a Agents<'a>,
}

impl PackagePrinter<'_> {
    /// Returns a name of the package.
    fn name(&self, word: &str) -> String {
        self.agents.name(&[word])
    }

    /// Prints the types that all agents share.
    fn common_types(&self) -> String {
        let agents = self.agents;
        let mut text = String::from(
            "  // Events: messages, accesses of the cores, local operations of the device, completions of memory.\n",
        );
        let events = agents.events.iter().map(|&event| agents.event_name(event));
        push_enumeration(
            &mut text,
            &self.name("event_e"),
            agents.event_bits(),
            events,
        );
        let _ = write!(
            text,
            "\n  // A remote is its index plus 1; 0 is the home as a sender, and `none` elsewhere.\n  \
             typedef logic [{}:0] {};\n  typedef logic [{}:0] {};  // bit i: the remote with index i\n\n  \
             // Fields of messages; a message uses those that it declares.\n",
            agents.remote_bits() - 1,
            self.name("remote_t"),
            agents.total() - 1,
            self.name("set_t"),
        );
        let fields = agents.fields.iter();
        let members = fields.map(|(name, width)| format!("logic [{}:0] {name}", width - 1));
        text += &structure(&self.name("fields_t"), members.collect());
        self.push_values(
            &mut text,
            "Effect on the event.",
            "effect_e",
            &[
                (
                    "no_row",
                    "no row: a message must not arrive, and an access does not start",
                ),
                ("take", "the event is taken"),
                (
                    "stall",
                    "the event waits until the line's state has changed",
                ),
                ("refuse", "the operation of the device is rejected"),
            ],
        );
        self.push_values(
            &mut text,
            "Source of data.",
            "data_e",
            &[
                ("no_data", ""),
                ("own", "the remote's copy, or memory"),
                (
                    "received",
                    "the data of the message, or the data read from memory",
                ),
                ("store", "the bytes of the write"),
            ],
        );
        self.push_values(
            &mut text,
            "Completion of the outstanding access.",
            "done_e",
            &[
                ("not_done", ""),
                (
                    "read_done",
                    "with the received line, or with the remote's copy if none is received",
                ),
                ("write_done", "performed in the same copy"),
                ("sent_done", "performed by the home"),
            ],
        );
        text += &self.memory_type();
        text
    }

    /// Prints the type of operations on memory.
    fn memory_type(&self) -> String {
        let members = [
            "logic write;        // the data of the message",
            "logic defer;        // keep the bytes of the message",
            "logic commit;       // write the deferred bytes",
            "logic start_read;   // an event reports the data",
            "logic start_write;  // the line of the message; an event reports the end",
            "logic start_store;  // the bytes of the request; an event reports the end",
            "logic whole;        // the bytes cover the line",
        ];
        format!(
            "\n  // Operations on memory.\n  typedef struct packed {{\n    {}\n  }} {};\n",
            members.join("\n    "),
            self.name("memory_t")
        )
    }

    /// Prints an enumeration, with a comment for each value.
    fn push_values(&self, text: &mut String, title: &str, name: &str, values: &[(&str, &str)]) {
        let _ = writeln!(text, "\n  // {title}\n  typedef enum logic [1:0] {{");
        for (number, (value, comment)) in values.iter().enumerate() {
            let comma = if number + 1 < values.len() { "," } else { "" };
            let comment = match *comment {
                "" => String::new(),
                _ => format!("  // {comment}"),
            };
            let _ = writeln!(
                text,
                "    {} = 2'd{number}{comma}{comment}",
                self.name(value)
            );
        }
        let _ = writeln!(text, "  }} {};", self.name(name));
    }

    /// Prints the functions on remotes and sets.
    fn functions(&self) -> String {
        let total = self.agents.total();
        let remote_bits = self.agents.remote_bits();
        let (remote, set) = (self.name("remote_t"), self.name("set_t"));
        let index_bits = bits(u64::from(total) - 1);
        let each = |line: &dyn Fn(u16) -> String| {
            let lines = (0..total).map(|index| format!("    {}\n", line(index)));
            lines.collect::<String>()
        };
        let [one, index, count, lowest] =
            ["one", "index", "count", "lowest"].map(|word| self.name(word));
        let bit = |index: u16| format!("{one}[{index}] = remote == {remote_bits}'d{};", index + 1);
        let sum = |index: u16| format!("{count} = {count} + {remote_bits}'(members[{index}]);");
        let lower = |index: u16| {
            let index = total - 1 - index;
            format!(
                "if (members[{index}]) {lowest} = {remote_bits}'d{};",
                index + 1
            )
        };
        format!(
            "\n  // Set of one remote; empty for `none`.\n  function automatic {set} {one}(input {remote} remote);\n\
             {}  endfunction\n\n  // Index of a remote other than `none`.\n  \
             function automatic logic [{}:0] {index}(input {remote} remote);\n    \
             {index} = {index_bits}'(remote - {remote_bits}'d1);\n  endfunction\n\n  \
             // Number of members.\n  function automatic {remote} {count}(input {set} members);\n    {count} = '0;\n\
             {}  endfunction\n\n  // Member with the lowest index; `none` of the empty set.\n  \
             function automatic {remote} {lowest}(input {set} members);\n    {lowest} = '0;\n{}  endfunction\n",
            each(&bit),
            index_bits - 1,
            each(&sum),
            each(&lower),
        )
    }

    /// Prints the properties of messages: their data and their channels.
    fn message_properties(&self) -> String {
        let agents = self.agents;
        let with = |predicate: &dyn Fn(MessageId) -> bool| -> Vec<String> {
            let messages = agents.protocol.message_ids();
            let messages = messages.filter(|&message| predicate(message));
            messages
                .map(|message| agents.event_name(Event::Message(message)))
                .collect()
        };
        let carries = |message: MessageId| agents.protocol.message(message).carries;
        let event = self.name("event_e");
        let mut text = String::from(
            "\n  // Messages with a copy of the line, and messages with the bytes of a write.\n",
        );
        for (word, names) in [
            ("carries_line", with(&|message| carries(message).line())),
            ("carries_store", with(&|message| carries(message).store())),
        ] {
            text += &predicate(&self.name(word), &event, "message", &names);
        }
        let channels = &agents.protocol.channels;
        let width = bits(channels.len() as u64 - 1);
        text += "\n  // Virtual channel of a message:";
        for (number, channel) in channels.iter().enumerate() {
            let _ = write!(
                text,
                "{} {number} {}",
                if number > 0 { "," } else { "" },
                channel.name
            );
        }
        let function = self.name("channel");
        let _ = write!(
            text,
            ".\n  function automatic logic [{}:0] {function}(input {event} message);\n    case (message)\n",
            width - 1
        );
        for message in agents.protocol.message_ids() {
            let name = agents.event_name(Event::Message(message));
            let channel = agents.protocol.message(message).channel.0;
            let _ = writeln!(text, "      {name}: {function} = {width}'d{channel};");
        }
        let _ = write!(
            text,
            "      default: {function} = '0;\n    endcase\n  endfunction\n"
        );
        text
    }

    /// Prints the types and constants of one agent.
    fn agent(&self, agent: &Agent) -> String {
        let agents = self.agents;
        let own = |word: &str| agents.name(&[&agent.name, word]);
        let mut text = format!(
            "\n  // States of {}; the first is the initial one.\n",
            agent.name
        );
        let states = agent.states.clone().map(|state| StateId(state as u16));
        let names = states.map(|state| agents.state_name(agent, state));
        let width = bits(agent.states.len() as u64 - 1);
        push_enumeration(&mut text, &own("state_e"), width, names);
        let variables = &agents.controller(agent).variables;
        let members = agent.variables.iter().map(|&variable| {
            let ty = variables[variable.index()].ty;
            format!(
                "{} {}",
                self.packed(ty),
                agents.variable_name(agent, variable)
            )
        });
        text += "\n";
        text += &structure(&own("variables_t"), members.collect());
        let variables = agent.variables.iter();
        let mut initial: Vec<String> = variables.map(|&v| self.initial(agent, v)).collect();
        if initial.is_empty() {
            initial.push("1'b0".to_string());
        }
        let _ = write!(
            text,
            "\n  function automatic {0} {1}();\n    {1} = {{{2}}};\n  endfunction\n",
            own("variables_t"),
            own("initial"),
            initial.join(", ")
        );
        let sent = [
            format!("{} message", self.name("event_e")),
            "logic to_home".to_string(),
            format!("{} to_remotes", self.name("set_t")),
            format!("{} fields", self.name("fields_t")),
            format!("{} data", self.name("data_e")),
            "logic after_write".to_string(),
        ];
        text += "\n  // A message to all these receivers; it is not sent if there are none.\n";
        text += "  // Its data include the write that the row performs if `after_write` is high.\n";
        text += &structure(&own("send_t"), sent.to_vec());
        if agent.bulk_transitions > 0 {
            let members = [
                "logic valid".to_string(),
                format!("{} from", own("state_e")),
                format!("{} to", own("state_e")),
            ];
            text += "\n  // All lines of the agent in state `from` change to state `to`.\n";
            text += &structure(&own("bulk_t"), members.to_vec());
        }
        text += &self.state_properties(agent);
        for table in &agents.controller(agent).tables {
            text += &self.table(agent, table);
        }
        text
    }

    /// Prints the properties of an agent's states.
    fn state_properties(&self, agent: &Agent) -> String {
        let agents = self.agents;
        let states = &agents.controller(agent).states;
        let own = |word: &str| agents.name(&[&agent.name, word]);
        let with = |predicate: &dyn Fn(usize) -> bool| -> Vec<String> {
            let states = agent.states.clone().filter(|&state| predicate(state));
            states
                .map(|s| agents.state_name(agent, StateId(s as u16)))
                .collect()
        };
        let mut text = String::new();
        let mut push = |comment: &str, word: &str, names: Vec<String>| {
            let _ = writeln!(text, "\n  // {comment}");
            text += &predicate(&own(word), &own("state_e"), "state", &names);
        };
        if !agent.is_home {
            push(
                "The state permits reads.",
                "reads",
                with(&|state| states[state].permission >= Permission::Read),
            );
            push(
                "The state permits writes.",
                "writes",
                with(&|state| states[state].permission == Permission::Write),
            );
            push(
                "The agent keeps the bytes of the line.",
                "holds",
                with(&|state| states[state].holds_line),
            );
            push(
                "The copy may differ from memory.",
                "dirty",
                with(&|state| states[state].dirty),
            );
        }
        push(
            "The state waits for a message.",
            "waits",
            with(&|state| !states[state].is_stable()),
        );
        text
    }

    /// Type of a variable.
    fn packed(&self, ty: Type) -> String {
        let agents = self.agents;
        let width = agents.width(ty);
        let dimensions = match ty {
            Type::Array { second_domain, .. } => {
                let [first, second] = ty.extent(agents.total());
                let first = format!("[{}:0]", first - 1);
                match second_domain {
                    Some(_) => format!("{first}[{}:0]", second - 1),
                    None => first,
                }
            }
            _ => String::new(),
        };
        format!("logic {dimensions}[{}:0]", width - 1)
    }

    /// Initial value of a variable.
    fn initial(&self, agent: &Agent, variable: VariableId) -> String {
        let agents = self.agents;
        let variable = &agents.controller(agent).variables[variable.index()];
        let width = agents.width(variable.ty);
        let value = match (variable.initial, variable.ty) {
            (Initial::Number(number), _) => u32::from(number),
            (Initial::All(kind), Type::RemoteSet) => {
                let members = agents.remotes.numbers(kind);
                members.fold(0, |mask, remote| mask | 1 << remote)
            }
            (Initial::All(kind), _) => agents.remotes.count(kind).into(),
        };
        match variable.ty.is_array() {
            true => format!("{{{}{{{width}'d{value}}}}}", agents.elements(variable.ty)),
            false => format!("{width}'d{value}"),
        }
    }

    /// Prints a table of a constructed home as a function.
    fn table(&self, agent: &Agent, table: &Table) -> String {
        let name = self.agents.name(&[&agent.name, &table.name]);
        let width = bits(table.values.iter().copied().max().unwrap_or(0).into());
        let index_width = bits((table.values.len() as u64).saturating_sub(1));
        let mut text = format!(
            "\n  function automatic logic [{}:0] {name}(input logic [{}:0] index);\n    case (index)\n",
            width - 1,
            index_width - 1
        );
        for (index, value) in table.values.iter().enumerate() {
            let _ = writeln!(
                text,
                "      {index_width}'d{index}: {name} = {width}'d{value};"
            );
        }
        if table.values.len() < 1 << index_width {
            let _ = writeln!(text, "      default: {name} = '0;");
        }
        text + "    endcase\n  endfunction\n"
    }
}

/// Prints a packed structure; one without members gets an unused bit, because SystemVerilog has no empty one.
fn structure(name: &str, members: Vec<String>) -> String {
    let mut text = String::from("  typedef struct packed {\n");
    for member in &members {
        let _ = writeln!(text, "    {member};");
    }
    if members.is_empty() {
        let _ = writeln!(text, "    logic {};", identifier("unused"));
    }
    let _ = writeln!(text, "  }} {name};");
    text
}

/// Prints a function that is true for these values of an enumeration.
fn predicate(name: &str, ty: &str, argument: &str, values: &[String]) -> String {
    let equalities: Vec<String> = values
        .iter()
        .map(|value| format!("{argument} == {value}"))
        .collect();
    let (argument, value) = match values {
        [] => ("unused", "1'b0".to_string()),
        _ => (argument, equalities.join(" || ")),
    };
    format!(
        "  function automatic logic {name}(input {ty} {argument});\n    {name} = {value};\n  endfunction\n"
    )
}
