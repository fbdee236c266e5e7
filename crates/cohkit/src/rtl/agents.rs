//! Step functions of a protocol's agents.

use super::{file_name, origin, write_outputs};
use crate::console::{Console, Terminal};
use crate::options;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::source::Source;
use cohkit_base::words::counted;
use cohkit_chart::Text;
use cohkit_diagnostics::suggestion;
use cohkit_protocol::construct;
use cohkit_protocol::controller::{Controller, Effect};
use cohkit_protocol::remotes::{KindId, Remotes};
use cohkit_rtl::agents::layout::{Agent, Agents};
use cohkit_rtl::agents::package::package;
use cohkit_rtl::agents::step::step;
use cohkit_rtl::agents::{check_count, supported_agents};
use cohkit_rtl::rom::Refusal;
use serde_json::{json, Map, Value};

/// Writes the package of the agents, the step function of each requested agent, and the file list into a folder.
pub(super) fn emit(options: &options::Emit, console: &mut Console) -> Result<ExitStatus, Failure> {
    let source = Source::read(&options.file, console.terminal.colour)?;
    let protocol = &source.protocol;
    let remotes = remotes(&source, "--remotes", &options.remotes)?;
    let home = home(&source, remotes, &console.terminal)?;
    let agents = supported_agents(protocol, &home, remotes)
        .map_err(|refusal| rejected(&source, "step function", &refusal, &console.terminal))?;
    let mut requested: Vec<&Agent> = Vec::new();
    for name in &options.agents {
        let agent = find(&agents, name)?;
        if !requested.iter().any(|other| other.name == agent.name) {
            requested.push(agent);
        }
    }
    let file = file_name(&options.file);
    let origin = origin(&source, &file);
    let name = &protocol.name;
    let mut outputs = vec![(format!("{name}_agents_pkg.sv"), package(&agents, &origin))];
    for agent in &requested {
        let file = format!("{name}_{}_step.sv", agent.name);
        outputs.push((file, step(&agents, agent, &origin)));
    }
    let list: String = outputs
        .iter()
        .map(|(file, _)| format!("{file}\n"))
        .collect();
    let list_name = format!("{name}_agents.f");
    outputs.push((list_name.clone(), list));
    write_outputs(&options.out, &outputs)?;
    let result = match options.json {
        true => json(options, &agents, &requested),
        false => text(&agents, &requested, &list_name),
    };
    console.print(&result)?;
    Ok(ExitStatus::Success)
}

/// Failure for a construct without hardware.
pub(super) fn rejected(
    source: &Source,
    wanted: &str,
    refusal: &Refusal,
    terminal: &Terminal,
) -> Failure {
    let title = format!("no {wanted}: {}", refusal.feature);
    let help = refusal.help.as_deref();
    let message = source.error(&title, refusal.span, help, terminal.colour);
    Failure::new(ExitStatus::BadInput, message)
}

/// Returns the table of the home for a number of remotes.
pub(super) fn home(
    source: &Source,
    remotes: Remotes,
    terminal: &Terminal,
) -> Result<Controller, Failure> {
    let protocol = &source.protocol;
    // Homes of many agents take long to construct.
    check_count(protocol, remotes.total())
        .map_err(|refusal| rejected(source, "step function", &refusal, terminal))?;
    let charts = Text {
        width: terminal.width,
        ascii: false,
    };
    construct::home(protocol, remotes.total())
        .map_err(|error| source.no_home(&error, &charts, terminal.colour))
}

/// Returns the number of remotes of each kind: those of the options, or of the file's first system, or 1.
pub(super) fn remotes(source: &Source, option: &str, counts: &[u16]) -> Result<Remotes, Failure> {
    let protocol = &source.protocol;
    let kinds = protocol.kinds.len();
    let counts = match (counts, protocol.systems.first()) {
        ([], Some(system)) => return Ok(system.remotes),
        ([], None) => vec![1; kinds],
        (counts, _) => counts.to_vec(),
    };
    let remotes = Remotes::new(&counts).filter(|remotes| remotes.kinds() == kinds);
    remotes.ok_or_else(|| {
        let names: Vec<&str> = protocol.kinds.iter().map(|kind| kind.name.as_str()).collect();
        let example = vec!["1"; kinds].join(",");
        let message = format!(
            "error: `{option}` has {}, but the file has {}\n  help: give one number for each of {}: `{option} {example}`",
            counted(counts.len() as u64, "number"),
            counted(kinds as u64, "kind"),
            names.join(", "),
        );
        Failure::new(ExitStatus::BadInput, message)
    })
}

/// Returns the agent with this name.
fn find<'a>(agents: &'a Agents, name: &str) -> Result<&'a Agent, Failure> {
    agents.find(name).ok_or_else(|| {
        let kinds = agents.protocol.kinds.iter().map(|kind| kind.name.as_str());
        let help = suggestion(name, "agent", std::iter::once("home").chain(kinds));
        let message = format!("error: no agent is named `{name}`\n  help: {help}");
        Failure::new(ExitStatus::BadInput, message)
    })
}

/// Number of rows of an agent, without those that declare an event impossible.
fn row_count(agents: &Agents, agent: &Agent) -> usize {
    let rules = agents.controller(agent).rules.iter();
    let own = rules.filter(|rule| agent.states.contains(&rule.state.index()));
    own.filter(|rule| rule.effect != Effect::Never).count()
}

/// Describes the written files in one line per agent.
fn text(agents: &Agents, requested: &[&Agent], list: &str) -> String {
    let protocol = &agents.protocol.name;
    let mut text = String::new();
    for agent in requested {
        text += &format!(
            "{}: {}, {}, {}: {protocol}_{}_step.sv\n",
            agent.name,
            counted(agent.states.len() as u64, "state"),
            counted(agent.events.len() as u64, "event"),
            counted(row_count(agents, agent) as u64, "row"),
            agent.name
        );
    }
    format!("{text}types and constants: {protocol}_agents_pkg.sv; all files: {list}\n")
}

/// Describes the written files as JSON.
fn json(options: &options::Emit, agents: &Agents, requested: &[&Agent]) -> String {
    let protocol = agents.protocol;
    let kinds = protocol.kinds.iter().enumerate();
    let remotes: Map<String, Value> = kinds
        .map(|(number, kind)| {
            let count = agents.remotes.count(KindId(number as u8));
            (kind.name.clone(), json!(count))
        })
        .collect();
    let path = |file: String| options.out.join(file).display().to_string();
    let name = &protocol.name;
    let described = requested.iter().map(|agent| {
        json!({
            "name": agent.name,
            "states": agent.states.len(),
            "events": agent.events.len(),
            "rows": row_count(agents, agent),
            "sends": agent.sends,
            "module": format!("{name}_{}_step", agent.name),
        })
    });
    let value = json!({
        "protocol": name,
        "remotes": remotes,
        "agents": described.collect::<Vec<_>>(),
        "run": {
            "file": options.file.display().to_string(),
            "package": path(format!("{name}_agents_pkg.sv")),
            "file_list": path(format!("{name}_agents.f")),
            "version": env!("CARGO_PKG_VERSION"),
        },
    });
    format!("{value:#}\n")
}
