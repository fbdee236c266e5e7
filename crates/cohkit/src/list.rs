//! `cohkit list` and `cohkit platform`: shipped items with a line of explanation each, and a platform's quantities with
//! their origins.

use crate::console::Console;
use crate::deliver;
use crate::options::{List, ShowPlatform, WorkParser};
use crate::sim::platform;
use clap::builder::TypedValueParser;
use cohkit_api::outcome::{ExitStatus, Failure};
use cohkit_api::shipped::{self, EXPERIMENTS, PROTOCOLS};
use cohkit_application::shipped::SCENARIOS;
use cohkit_base::words::did_you_mean;
use cohkit_protocol::text::title;
use cohkit_sim::platform::Platform;
use cohkit_units as units;
use serde_json::{json, Value};
use std::fmt::Write;
use std::path::Path;

/// A kind of shipped items: its key, the command that uses one, and the items with their descriptions.
struct Category {
    /// Key in the JSON output, and the name that selects the category on the command line.
    key: &'static str,
    /// Command that uses an item of the category.
    usage: &'static str,
    /// Names with their descriptions, in the order of the list.
    items: Vec<(String, String)>,
}

/// Returns all shipped items by kind.
fn categories() -> Vec<Category> {
    let owned_pair = |(name, text): (&str, &str)| (name.to_string(), text.to_string());
    let protocols = PROTOCOLS
        .iter()
        .map(|&(file, text)| (file.to_string(), title(text)));
    let workloads = WorkParser.possible_values().into_iter().flatten();
    let workloads = workloads.map(|value| {
        let help = value.get_help().map(ToString::to_string);
        (value.get_name().to_string(), help.unwrap_or_default())
    });
    let category = |key, usage, items| Category { key, usage, items };
    vec![
        category("protocols", "cohkit check FILE", protocols.collect()),
        category(
            "platforms",
            "cohkit platform NAME",
            Platform::shipped_names()
                .map(|name| owned_pair((name, Platform::description(name).unwrap_or_default())))
                .collect(),
        ),
        category("workloads", "cohkit sim PLATFORM NAME", workloads.collect()),
        category(
            "applications",
            "cohkit play PLATFORM NAME; its numbers: --param help",
            SCENARIOS
                .iter()
                .map(|shipped| owned_pair((shipped.name, shipped.text)))
                .collect(),
        ),
        category(
            "experiments",
            "cohkit reproduce NAME; by the Python package",
            EXPERIMENTS.iter().copied().map(owned_pair).collect(),
        ),
    ]
}

/// Contents of the shipped protocol or platform of this name.
fn shipped_file(name: &Path) -> Result<&'static str, Failure> {
    let name_text = name.display().to_string();
    let platform = || Platform::shipped_text(&name_text);
    if let Some(text) = shipped::protocol(name).or_else(platform) {
        return Ok(text);
    }
    let categories = categories();
    let names = || categories.iter().flat_map(|category| &category.items);
    let message = match names().any(|(known_name, _)| *known_name == name_text) {
        true => format!("`{name_text}` has no file to print; protocols and platforms have"),
        false => {
            let known_names: Vec<&str> =
                names().map(|(known_name, _)| known_name.as_str()).collect();
            let kinds = categories.iter().map(|category| category.key);
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

/// Lists all shipped items, those of one category, or the file of one protocol or platform.
pub(crate) fn run(options: &List, console: &mut Console) -> Result<ExitStatus, Failure> {
    let mut categories = categories();
    if let Some(name) = &options.name {
        let has_key = |category: &Category| Path::new(category.key) == name;
        if !categories.iter().any(has_key) {
            deliver(shipped_file(name)?, &options.output, console)?;
            return Ok(ExitStatus::Success);
        }
        categories.retain(has_key);
    }
    let text = if options.output.form.json {
        let items = |category: &Category| -> Value {
            let items = category.items.iter();
            items
                .map(|(name, text)| json!({ "name": name, "text": text }))
                .collect()
        };
        let values = categories
            .iter()
            .map(|category| (category.key.into(), items(category)));
        options
            .output
            .form
            .format_output(Value::Object(values.collect()), console)
    } else {
        let names = categories.iter().flat_map(|category| &category.items);
        let width = names.map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for category in &categories {
            let gap = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}{} ({})", category.key, category.usage);
            for (name, description) in &category.items {
                let _ = writeln!(text, "  {name:width$}  {description}");
            }
        }
        text
    };
    deliver(&text, &options.output, console)?;
    Ok(ExitStatus::Success)
}

/// Prints the quantities of a platform with their values, ranges and origins.
pub(crate) fn show_platform(
    options: &ShowPlatform,
    console: &mut Console,
) -> Result<ExitStatus, Failure> {
    let platform = platform(&options.platform, console.terminal.colour)?;
    let text = if options.output.form.json {
        let value = platform_json(&platform);
        options.output.form.format_output(value, console)
    } else {
        platform_text(&platform)
    };
    deliver(&text, &options.output, console)?;
    Ok(ExitStatus::Success)
}

/// Platform as JSON, described in `docs/output.md`.
fn platform_json(platform: &Platform) -> Value {
    let quantities = platform.all_quantities();
    let quantities = quantities.iter().map(|(name, unit, quantity)| {
        let quantity_text = |value| units::show(value, *unit);
        json!({
            "name": name,
            "value": quantity_text(quantity.value),
            "range": [quantity_text(quantity.range.0), quantity_text(quantity.range.1)],
            "origin": quantity.origin,
        })
    });
    let quantities: Vec<Value> = quantities.collect();
    let mut value = json!({
        "name": platform.name,
        "remotes": platform.remotes,
        "lines": platform.lines,
        "quantities": quantities,
        "run": { "version": env!("CARGO_PKG_VERSION") },
    });
    if !platform.agents.is_empty() {
        let remotes_by_kind = platform.agents.iter();
        let remotes_by_kind =
            remotes_by_kind.map(|agents| (agents.kind.clone(), agents.remotes.into()));
        value["agents"] = remotes_by_kind.collect::<serde_json::Map<_, _>>().into();
    }
    if let Some(lower) = &platform.below {
        value["lower_level_caches"] = lower.remotes.into();
    }
    value
}

/// Platform as text: its size, then a row for each quantity.
fn platform_text(platform: &Platform) -> String {
    let quantities = platform.all_quantities();
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
    let lower_remotes = platform.below.as_ref().map_or(String::new(), |lower| {
        format!(" with {} below each", lower.remotes)
    });
    let agents = platform.agents.iter();
    let agents = agents.map(|group| format!(", {} {}", group.kind, group.remotes));
    let agents: String = agents.collect();
    let mut text = format!(
        "{}: remotes {}{lower_remotes}{agents}, lines {}\n\n",
        platform.name, platform.remotes, platform.lines
    );
    for [name, value, range, origin] in &rows {
        let _ = writeln!(
            text,
            "{name:name_width$}  {value:>value_width$}  {range:range_width$}  {origin}"
        );
    }
    text
}
