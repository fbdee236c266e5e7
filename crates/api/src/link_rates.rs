//! Latencies and rates of a link, as text and JSON.

use cohkit_base::words::{counted, did_you_mean};
use cohkit_link::pcie::dma::quantities::{Quantities, Row};
use cohkit_link::pcie::dma::{Control, Direction};
use cohkit_link::rates::{Kind, LinkConfig, LinkRates, Transfers, MAX_DMA_BYTES};
use cohkit_link::Lanes;
use cohkit_units::{show, Unit};
use serde_json::json;
use std::fmt::Write;

/// Configuration of a link; `None` selects the link's usual value.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkOptions {
    /// Name of the link, one of `Kind::ALL` in `cohkit-link`.
    pub link: String,
    /// Number of lanes in use.
    pub lanes: Option<u64>,
    /// Maximum data of a message or packet, in bytes; one of the sizes that the link supports.
    pub payload: Option<u64>,
    /// One-way delay, in nanoseconds, at most 10,000.
    pub delay_ns: u64,
    /// Bit error rate, in errors per bit, from 0 to 0.0001.
    pub bit_errors: f64,
    /// Seed of the bit errors.
    pub seed: u64,
    /// Size of DMA transfers in bytes, 1 to 1,048,576; `None` measures none. Only PCIe supports them.
    pub dma: Option<u64>,
    /// Name of their engine, of [`Control::ALL`]; `None` for the first one.
    pub dma_engine: Option<String>,
    /// Quantities of DMA transfers that are set, each as `NAME=VALUE`.
    pub dma_settings: Vec<String>,
}

/// Configuration of a link with its latencies and rates.
pub struct LinkReport {
    /// Name of the link.
    name: String,
    /// Validated configuration.
    config: LinkConfig,
    /// Rates in bytes per second: after the overhead of each layer, and per kind of traffic.
    rates: LinkRates,
    /// Size of DMA transfers in bytes, if these were measured.
    dma: Option<u64>,
    /// Name of their engine.
    engine: &'static str,
    /// Quantities of DMA transfers.
    quantities: Quantities,
    /// Settings of quantities, each as `NAME=VALUE`.
    settings: Vec<String>,
    /// Measured DMA transfers, to the device and to the host; empty if none were requested.
    transfers: Vec<Transfers>,
}

/// Measures a link.
///
/// # Errors
/// The link cannot be configured in this way; the message lists the valid values.
pub fn measure(options: &LinkOptions) -> Result<LinkReport, String> {
    let config = link_config(options)?;
    let (engine, control) = engine(options)?;
    let quantities = quantities(options)?;
    let transfers = transfers(options, &config, control, &quantities)?;
    Ok(LinkReport {
        name: options.link.clone(),
        rates: config.rates(),
        config,
        dma: options.dma,
        engine,
        quantities,
        settings: options.dma_settings.clone(),
        transfers,
    })
}

impl LinkReport {
    /// JSON value, described in `docs/output.md`.
    pub fn json(&self) -> serde_json::Value {
        report_json(self)
    }

    /// Report as text.
    pub fn text(&self) -> String {
        report_text(&self.name, &self.config, &self.rates) + &dma_text(self)
    }
}

/// Maximum one-way delay, in nanoseconds; longer links do not occur in a machine, and take more memory.
const MAX_DELAY_NS: u64 = 10_000;
/// Maximum bit error rate; above it, hardly any message arrives.
const MAX_BIT_ERROR_RATE: f64 = 1e-4;

/// Validates the options, and fills in the link's defaults. The error lists the valid values.
fn link_config(options: &LinkOptions) -> Result<LinkConfig, String> {
    let name = &options.link;
    let named_kind = Kind::ALL
        .into_iter()
        .find(|(kind_name, _)| kind_name == name);
    let Some((_, kind)) = named_kind else {
        let names = Kind::ALL.map(|(name, _)| name);
        let suggestion = did_you_mean(name, names);
        let names = names.join(", ");
        return Err(format!(
            "there is no link `{name}`; {suggestion}there are {names}"
        ));
    };
    let default_config = LinkConfig::new(kind);
    let lanes = options.lanes.unwrap_or(default_config.lanes.into());
    let lanes = Lanes::validate_count(lanes, kind != Kind::Eci)
        .map_err(|valid_lanes| format!("{name} has {valid_lanes}, not {lanes}"))?;
    let payload = options.payload.unwrap_or(default_config.payload.into());
    let Some(&payload) = kind
        .payloads()
        .iter()
        .find(|&&size| u64::from(size) == payload)
    else {
        let mut sizes = kind.payloads().to_vec();
        sizes.sort_unstable();
        let sizes: Vec<String> = sizes.iter().map(u16::to_string).collect();
        let sizes = sizes.join(", ");
        return Err(format!(
            "{name} supports payloads of {sizes} bytes, not {payload}"
        ));
    };
    let delay = match u32::try_from(options.delay_ns) {
        Ok(delay) if options.delay_ns <= MAX_DELAY_NS => delay,
        _ => {
            return Err(format!(
                "the one-way latency is at most {MAX_DELAY_NS} ns, not {}",
                options.delay_ns
            ))
        }
    };
    if !(0.0..=MAX_BIT_ERROR_RATE).contains(&options.bit_errors) {
        return Err(format!(
            "bit errors are from 0 to {MAX_BIT_ERROR_RATE} per bit, not {}",
            options.bit_errors
        ));
    }
    Ok(LinkConfig {
        lanes,
        payload,
        delay,
        errors: options.bit_errors,
        seed: options.seed,
        ..default_config
    })
}

/// Name and kind of the DMA engine.
fn engine(options: &LinkOptions) -> Result<(&'static str, Control), String> {
    let Some(name) = &options.dma_engine else {
        return Ok(Control::ALL[0]);
    };
    if options.dma.is_none() {
        return Err("a DMA engine is used only with a size of DMA transfers".into());
    }
    let engine = Control::ALL
        .into_iter()
        .find(|(engine_name, _)| engine_name == name);
    engine.ok_or_else(|| {
        let names = Control::ALL.map(|(name, _)| name);
        let suggestion = did_you_mean(name, names);
        let names = names.join(", ");
        format!("there is no DMA engine `{name}`; {suggestion}there are {names}")
    })
}

/// Quantities of DMA transfers, with those that the options set.
fn quantities(options: &LinkOptions) -> Result<Quantities, String> {
    if options.dma.is_none() && !options.dma_settings.is_empty() {
        return Err("quantities of DMA are used only with a size of DMA transfers".into());
    }
    let mut quantities = Quantities::default();
    for setting in &options.dma_settings {
        quantities.set(setting)?;
    }
    Ok(quantities)
}

/// DMA transfers in both directions, if they are requested.
fn transfers(
    options: &LinkOptions,
    config: &LinkConfig,
    control: Control,
    quantities: &Quantities,
) -> Result<Vec<Transfers>, String> {
    let Some(bytes) = options.dma else {
        return Ok(Vec::new());
    };
    if !(1..=MAX_DMA_BYTES).contains(&bytes) {
        return Err(format!(
            "a transfer has 1 to {MAX_DMA_BYTES} bytes, not {bytes}"
        ));
    }
    let name = &options.link;
    let both_directions = config.transfers(bytes, control, quantities);
    let both_directions = both_directions.ok_or_else(|| {
        format!("transfers by DMA are supported by pcie3, pcie4 and pcie5, not by {name}")
    })?;
    Ok(both_directions.into())
}

/// DMA transfers as text.
fn dma_text(report: &LinkReport) -> String {
    let mut text = String::new();
    let engine = match report.engine {
        name if name == Control::ALL[0].0 => String::new(),
        name => format!(", engine `{name}`"),
    };
    let settings: String = (report.settings.iter())
        .map(|setting| format!(", {setting}"))
        .collect();
    let queue = report.quantities.queue.value;
    for transfer in &report.transfers {
        let direction = match transfer.direction {
            Direction::ToDevice => "to the device",
            Direction::ToHost => "to the host",
        };
        let bytes = counted(report.dma.unwrap_or(0), "byte");
        let name = format!("DMA of {bytes} {direction}{engine}{settings}");
        let (latency, rate) = (transfer.latency, transfer.rate / GIB);
        let _ = writeln!(
            text,
            "\n{name}: {latency:.0} ns alone, {rate:.3} GiB/s of {queue} at a time"
        );
    }
    text.replace("\n\n", "\n")
}

/// Report as JSON; rates are in bytes per second, delays in nanoseconds, and `replayed_percent` in percent.
fn report_json(report: &LinkReport) -> serde_json::Value {
    let LinkReport {
        name,
        config,
        rates,
        engine,
        quantities,
        transfers,
        ..
    } = report;
    let steps = rates
        .steps
        .iter()
        .map(|(name, rate)| json!({ "name": name, "bytes_per_second": rate }));
    let flows = rates.flows.iter().map(|flow| {
        json!({
            "name": flow.name,
            "both_directions": flow.is_bidirectional,
            "formula_bytes_per_second": flow.formula,
            "simulated_bytes_per_second": flow.run,
            "replayed_percent": flow.replayed,
        })
    });
    json!({
        "link": name,
        "lanes": config.lanes,
        "payload": config.payload,
        "delay_ns": config.delay,
        "bit_errors": config.errors,
        "seed": config.seed,
        "steps": steps.collect::<Vec<_>>(),
        "data": flows.collect::<Vec<_>>(),
        "dma": match transfers.as_slice() {
            [to_device, to_host] => json!({
                "engine": engine,
                "to_device": transfers_json(to_device),
                "to_host": transfers_json(to_host),
                "quantities": quantities_json(quantities),
            }),
            _ => serde_json::Value::Null,
        },
    })
}

/// Quantities of DMA transfers as JSON: value and range as text with units.
fn quantities_json(quantities: &Quantities) -> Vec<serde_json::Value> {
    let json_of = |(row, quantity): (&Row, cohkit_units::Quantity)| {
        let text = |value| show(value, row.unit);
        json!({
            "name": row.name,
            "value": text(quantity.value),
            "low": text(quantity.range.0),
            "high": text(quantity.range.1),
            "continuous": row.unit == Unit::Picoseconds,
            "origin": quantity.origin,
        })
    };
    quantities.rows().map(json_of).collect()
}

/// DMA transfers of one direction as JSON: latency in nanoseconds, throughput in bytes per second.
fn transfers_json(transfer: &Transfers) -> serde_json::Value {
    json!({ "latency_ns": transfer.latency, "bytes_per_second": transfer.rate })
}

/// Bytes of one GiB.
const GIB: f64 = 1_073_741_824.0;

/// Report as text: a table of rates in GB/s, in GiB/s, and in percent of the raw rate of the wires.
fn report_text(name: &str, config: &LinkConfig, rates: &LinkRates) -> String {
    let LinkConfig {
        lanes,
        payload,
        delay,
        errors,
        ..
    } = config;
    let has_errors = *errors > 0.0;
    let lanes = counted(u64::from(*lanes), "lane");
    let mut text = format!("{name}: {lanes}, data of {payload} bytes, {delay} ns one way");
    if has_errors {
        let _ = write!(text, ", bit errors at {errors:e}");
    }
    text.push_str("\n\n");
    let width = rates.flows.iter().map(|flow| flow.name.len() + 17);
    let width = width.max().unwrap_or(0).max(36);
    let _ = writeln!(
        text,
        "{:width$}  {:>8}  {:>8}  {:>6}",
        "one direction", "GB/s", "GiB/s", "share"
    );
    let raw_rate = rates.steps.first().map_or(1.0, |step| step.1);
    for (name, rate) in &rates.steps {
        let share = 100.0 * rate / raw_rate;
        let _ = writeln!(
            text,
            "{name:width$}  {:8.3}  {:8.3}  {share:5.1}%",
            rate / 1e9,
            rate / GIB
        );
    }
    let _ = writeln!(
        text,
        "\n{:width$}  {:>8}  {:>8}  {:>6}  {:>8}{}",
        "its data, GiB/s",
        "formula",
        "driven",
        "share",
        "GB/s",
        if has_errors { "  sent again" } else { "" }
    );
    for flow in &rates.flows {
        let directions = if flow.is_bidirectional {
            "both directions"
        } else {
            "one direction"
        };
        let name = format!("{}, {directions}", flow.name);
        let share = 100.0 * flow.run / raw_rate;
        let _ = write!(
            text,
            "{name:width$}  {:8.3}  {:8.3}  {share:5.1}%  {:8.3}",
            flow.formula / GIB,
            flow.run / GIB,
            flow.run / 1e9
        );
        if has_errors {
            let _ = write!(text, "  {:9.2}%", flow.replayed);
        }
        text.push('\n');
    }
    text
}
