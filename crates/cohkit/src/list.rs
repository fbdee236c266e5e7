//! `cohkit list` and `cohkit platform`: shipped items with a line of explanation each, and a platform's quantities with
//! their origins.

use crate::console::Console;
use crate::deliver;
use crate::options::{List, ShowPlatform, WorkParser};
use crate::sim::platform;
use clap::builder::TypedValueParser;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::shipped::{self, PROTOCOLS};
use cohkit_application::shipped::SCENARIOS;
use cohkit_base::words::did_you_mean;
use cohkit_protocol::text::title;
use cohkit_sim::platform::{units, Platform};
use serde_json::{json, Value};
use std::fmt::Write;
use std::path::Path;

/// Experiments of the Python package; a test compares them with this list.
const EXPERIMENTS: [(&str, &str); 38] = [
    ("eci-home", "the home of ECI, constructed from its policy"),
    (
        "cckit-table2",
        "latency of a read, one at a time, each line of 1 GiB once or as many drawn at random",
    ),
    (
        "cckit-fig6",
        "throughput of reads and writes, each line of 1 GiB once or as many drawn at random",
    ),
    (
        "cckit-table3",
        "clean-invalidates by the device: latency of one, and rate of many",
    ),
    (
        "cckit-fig7",
        "increments of a shared table by a CPU thread, by the share of rows that the other side increments too",
    ),
    (
        "cckit-fig8",
        "sequential reads of memory behind the home, with a prefetcher and without",
    ),
    (
        "cckit-fig9",
        "response time of a materialised view, against rows that a transaction appends",
    ),
    (
        "cckit-fig10",
        "latency of calls through pairs of lines, and over a bus",
    ),
    (
        "rpc-payload",
        "calls through pairs of lines, and over a bus, by the size of arguments and results",
    ),
    (
        "locktable",
        "record locks of both sides, by parallelism",
    ),
    (
        "eci-link",
        "uncached coherent transfers of an FPGA over ECI, by their size, and two sockets beside them",
    ),
    (
        "ccix-exp1",
        "uncached transfers of a card over CCIX and by DMA, by their size",
    ),
    (
        "ccix-exp2",
        "cost of address translation for a card over CCIX",
    ),
    (
        "ccix-exp3",
        "a hit in the system cache of a card on CCIX, and a miss",
    ),
    (
        "ccix-exp4",
        "host and card access and modify the same lines at the same time over CCIX",
    ),
    (
        "ccix-locktable",
        "record locks of a host and a card in the host's memory over CCIX, by parallelism",
    ),
    (
        "cord-fig8",
        "stores to other hosts' memory, ordered in three ways, relative to stores ordered at directories",
    ),
    (
        "cord-fig9",
        "time of stores ordered at their source, relative to ordering at directories, by latency between hosts",
    ),
    (
        "cord-fig10",
        "stores ordered by epochs and counters, by their bits, relative to sequence numbers of 40 and 8 bits",
    ),
    (
        "cord-fig2",
        "cost of waiting for store acknowledgements in programs whose stores are ordered at their source",
    ),
    (
        "cord-fig7",
        "programs whose stores are ordered in three ways, relative to stores ordered at directories",
    ),
    (
        "cord-fig13",
        "the same programs under total store order",
    ),
    (
        "cord-fig11",
        "the smallest tables of cores and directories that cost programs no time, by the number of hosts",
    ),
    (
        "cord-fig12",
        "the same for a broadcast from all to all, by table, with buffers for releases that wait",
    ),
    (
        "cord-table3",
        "area and power of the published tables, estimated from their bits",
    ),
    (
        "cord-scale",
        "stores by all cores to the memory of other hosts, by the number of hosts behind switches in two levels",
    ),
    (
        "symmetric-vs-asymmetric",
        "a shared table and an invalidation engine over ECI, CXL.mem, its bias and CXL.cache, with their lines and framing",
    ),
    (
        "symmetric-vs-asymmetric-64",
        "the same with lines of 64 bytes over a pipe",
    ),
    (
        "proxics-table1",
        "latency and bandwidth of far memory, to the host and to a core beside it",
    ),
    (
        "proxics-bulk",
        "memory set, cleared and copied by the host and by a core beside far memory, by size",
    ),
    (
        "proxics-gups",
        "random updates of a table in local and in far memory, by its size",
    ),
    (
        "proxics-pipes",
        "words to a core beside far memory by pipes of lines and of registers, by their number",
    ),
    (
        "proxics-spawn",
        "starting a program on a core beside far memory, by its length, verified or trusted",
    ),
    (
        "proxics-sum",
        "the sum of a column of a table in local and in far memory, by the bytes of a row",
    ),
    (
        "proxics-filter",
        "rows below a balance of a table in far memory, copied there or streamed, by how many there are",
    ),
    (
        "proxics-compute",
        "a mixture of instructions like that of Dhrystone, by a core of the host and by one beside far memory",
    ),
    (
        "proxics-uts",
        "search of unbalanced trees in far memory, by the host and by one and four cores beside it",
    ),
    (
        "proxics-pagerank",
        "PageRank that pulls, on five shapes of graphs, with scores added up by the host or beside far memory",
    ),
];

/// A kind of shipped items: its key, the command that uses one, and the items with their descriptions.
struct Shelf {
    key: &'static str,
    used: &'static str,
    items: Vec<(String, String)>,
}

/// Returns all shipped items by kind.
fn shelves() -> Vec<Shelf> {
    let owned_pair = |(name, text): (&str, &str)| (name.to_string(), text.to_string());
    let protocols = PROTOCOLS
        .iter()
        .map(|&(file, text)| (file.to_string(), title(text)));
    let workloads = WorkParser.possible_values().into_iter().flatten();
    let workloads = workloads.map(|value| {
        let help = value.get_help().map(ToString::to_string);
        (value.get_name().to_string(), help.unwrap_or_default())
    });
    let shelf = |key, used, items| Shelf { key, used, items };
    vec![
        shelf("protocols", "cohkit check FILE", protocols.collect()),
        shelf(
            "platforms",
            "cohkit platform NAME",
            Platform::shipped_names()
                .map(|name| owned_pair((name, Platform::description(name).unwrap_or_default())))
                .collect(),
        ),
        shelf("workloads", "cohkit sim PLATFORM NAME", workloads.collect()),
        shelf(
            "applications",
            "cohkit play PLATFORM NAME; its numbers: --with help",
            SCENARIOS
                .iter()
                .map(|shipped| owned_pair((shipped.name, shipped.text)))
                .collect(),
        ),
        shelf(
            "experiments",
            "cohkit reproduce NAME; by the Python package",
            EXPERIMENTS.iter().copied().map(owned_pair).collect(),
        ),
    ]
}

/// Contents of the shipped protocol or platform of this name.
fn text_of(name: &Path) -> Result<&'static str, Failure> {
    let name_text = name.display().to_string();
    let platform = || Platform::shipped_text(&name_text);
    if let Some(text) = shipped::protocol(name).or_else(platform) {
        return Ok(text);
    }
    let shelves = shelves();
    let names = || shelves.iter().flat_map(|shelf| &shelf.items);
    let message = match names().any(|(known_name, _)| *known_name == name_text) {
        true => format!("`{name_text}` has no file to print; protocols and platforms have"),
        false => {
            let known_names: Vec<&str> =
                names().map(|(known_name, _)| known_name.as_str()).collect();
            let kinds = shelves.iter().map(|shelf| shelf.key);
            let known_names = known_names
                .into_iter()
                .chain(kinds)
                .chain(shipped::names().map(|name| name as &str));
            let suggestion = did_you_mean(&name_text, known_names);
            format!("nothing shipped is named `{name_text}`\n  help: {suggestion}`cohkit list` has all names")
        }
    };
    Err(Failure::new(
        ExitStatus::BadInput,
        format!("error: {message}"),
    ))
}

pub(crate) fn run(options: &List, console: &mut Console) -> Result<ExitStatus, Failure> {
    let mut shelves = shelves();
    if let Some(name) = &options.name {
        let has_key = |shelf: &Shelf| Path::new(shelf.key) == name;
        if !shelves.iter().any(has_key) {
            deliver(text_of(name)?, &options.output, console)?;
            return Ok(ExitStatus::Success);
        }
        shelves.retain(has_key);
    }
    let text = if options.output.form.json {
        let items = |shelf: &Shelf| -> Value {
            let items = shelf.items.iter();
            items
                .map(|(name, text)| json!({ "name": name, "text": text }))
                .collect()
        };
        let values = shelves.iter().map(|shelf| (shelf.key.into(), items(shelf)));
        options
            .output
            .form
            .format_output(Value::Object(values.collect()), console)
    } else {
        let names = shelves.iter().flat_map(|shelf| &shelf.items);
        let width = names.map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for shelf in &shelves {
            let gap = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}{} ({})", shelf.key, shelf.used);
            for (name, description) in &shelf.items {
                let _ = writeln!(text, "  {name:width$}  {description}");
            }
        }
        text
    };
    deliver(&text, &options.output, console)?;
    Ok(ExitStatus::Success)
}

pub(crate) fn show(options: &ShowPlatform, console: &mut Console) -> Result<ExitStatus, Failure> {
    let platform = platform(&options.platform, console.terminal.colour)?;
    let (name, remotes, lines) = (platform.name.clone(), platform.remotes, platform.lines);
    let lower_remotes = platform.below.as_ref().map(|lower| lower.remotes);
    let quantities = platform.all_quantities();
    let text = if options.output.form.json {
        let quantities = quantities.iter().map(|(name, unit, quantity)| {
            let quantity_text = |value| units::show(value, *unit);
            json!({
                "name": name,
                "value": quantity_text(quantity.value),
                "range": [quantity_text(quantity.range.0), quantity_text(quantity.range.1)],
                "origin": quantity.origin,
            })
        });
        let mut value = json!({
            "name": name,
            "remotes": remotes,
            "lines": lines,
            "quantities": quantities.collect::<Vec<_>>(),
            "run": { "version": env!("CARGO_PKG_VERSION") },
        });
        if !platform.agents.is_empty() {
            let remotes_by_kind = platform.agents.iter();
            let remotes_by_kind =
                remotes_by_kind.map(|agents| (agents.kind.clone(), agents.remotes.into()));
            value["agents"] = remotes_by_kind.collect::<serde_json::Map<_, _>>().into();
        }
        if let Some(lower_remotes) = lower_remotes {
            value["below"] = lower_remotes.into();
        }
        options.output.form.format_output(value, console)
    } else {
        let rows: Vec<[String; 4]> = quantities
            .iter()
            .map(|(name, unit, quantity)| {
                let quantity_text = |value| units::show(value, *unit);
                let (low, high) = quantity.range;
                let range = match low == high {
                    true => String::new(),
                    false => format!("{} to {}", quantity_text(low), quantity_text(high)),
                };
                let value = quantity_text(quantity.value);
                [name.to_string(), value, range, quantity.origin.clone()]
            })
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let (name_width, value_width, range_width) = (width(0), width(1), width(2));
        let lower_remotes = lower_remotes.map_or(String::new(), |lower_remotes| {
            format!(" with {lower_remotes} below each")
        });
        let agents = platform.agents.iter();
        let agents = agents.map(|group| format!(", {} {}", group.kind, group.remotes));
        let agents: String = agents.collect();
        let mut text =
            format!("{name}: remotes {remotes}{lower_remotes}{agents}, lines {lines}\n\n");
        for [name, value, range, origin] in &rows {
            let _ = writeln!(
                text,
                "{name:name_width$}  {value:>value_width$}  {range:range_width$}  {origin}"
            );
        }
        text
    };
    deliver(&text, &options.output, console)?;
    Ok(ExitStatus::Success)
}
