//! `cohkit link`: latencies and rates of a link, as text and JSON.

use crate::console::Console;
use crate::outcome::{ExitStatus, Failure};
use crate::{deliver, options};
use cohkit_base::words::{counted, did_you_mean};
use cohkit_link::pcie::dma::Direction;
use cohkit_link::rates::{Kind, LinkConfig, LinkRates, Transfers, DMA_QUEUE, MAX_DMA_BYTES};
use cohkit_link::Lanes;
use serde_json::json;
use std::fmt::Write;

/// Configuration of a link; `None` selects the link's usual value.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkOptions {
    /// Name of the link.
    pub link: String,
    /// Number of working lanes.
    pub lanes: Option<u64>,
    /// Maximum data of a message or packet, in bytes.
    pub payload: Option<u64>,
    /// One-way delay, in nanoseconds.
    pub delay_ns: u64,
    /// Bit error rate, in errors per bit.
    pub bit_errors: f64,
    /// Seed of the bit errors.
    pub seed: u64,
    /// Size of DMA transfers in bytes, if these are to be measured.
    pub dma: Option<u64>,
}

/// Returns the JSON of `cohkit link --json`.
///
/// # Errors
/// The link cannot be configured in this way; the message lists the valid values.
pub fn answer(asked: &LinkOptions) -> Result<serde_json::Value, String> {
    let question = question(asked)?;
    let transfers = transfers(asked, &question)?;
    Ok(value(
        &asked.link,
        &question,
        &question.answer(),
        &transfers,
    ))
}

pub(crate) fn run(options: &options::Link, console: &mut Console) -> Result<ExitStatus, Failure> {
    let asked = LinkOptions {
        link: options.link.clone(),
        lanes: options.lanes,
        payload: options.payload,
        delay_ns: options.delay,
        bit_errors: options.bit_errors,
        seed: options.seed,
        dma: options.dma,
    };
    let wrong = |why: String| Failure::new(ExitStatus::BadInput, format!("error: {why}"));
    let question = question(&asked).map_err(wrong)?;
    let transfers = transfers(&asked, &question).map_err(wrong)?;
    let answer = question.answer();
    let result = if options.output.form.json {
        let value = value(&options.link, &question, &answer, &transfers);
        options.output.form.told(value, console)
    } else {
        text(&options.link, &question, &answer) + &of_dma(options.dma, &transfers)
    };
    deliver(&result, &options.output, console)?;
    Ok(ExitStatus::Success)
}

/// Maximum one-way delay, in nanoseconds; longer delays do not occur in a machine, and take more memory.
const LONGEST_NS: u64 = 10_000;
/// Maximum bit error rate; beyond it hardly any message arrives.
const MOST_ERRORS: f64 = 1e-4;

fn question(asked: &LinkOptions) -> Result<LinkConfig, String> {
    let name = &asked.link;
    let named = Kind::ALL.into_iter().find(|(known, _)| known == name);
    let Some((_, kind)) = named else {
        let names = Kind::ALL.map(|(name, _)| name);
        let near = did_you_mean(name, names);
        let names = names.join(", ");
        return Err(format!(
            "there is no link `{name}`; {near}there are {names}"
        ));
    };
    let usual = LinkConfig::new(kind);
    let lanes = asked.lanes.unwrap_or(usual.lanes.into());
    let lanes = Lanes::work(lanes, kind != Kind::Eci)
        .map_err(|there| format!("{name} has {there}, not {lanes}"))?;
    let payload = asked.payload.unwrap_or(usual.payload.into());
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
    let delay = match u32::try_from(asked.delay_ns) {
        Ok(delay) if asked.delay_ns <= LONGEST_NS => delay,
        _ => {
            return Err(format!(
                "the one-way latency is at most {LONGEST_NS} ns, not {}",
                asked.delay_ns
            ))
        }
    };
    if !(0.0..=MOST_ERRORS).contains(&asked.bit_errors) {
        return Err(format!(
            "bit errors are from 0 to {MOST_ERRORS} per bit, not {}",
            asked.bit_errors
        ));
    }
    Ok(LinkConfig {
        lanes,
        payload,
        delay,
        errors: asked.bit_errors,
        seed: asked.seed,
        ..usual
    })
}

/// DMA transfers in both directions, if they are requested.
fn transfers(asked: &LinkOptions, question: &LinkConfig) -> Result<Vec<Transfers>, String> {
    let Some(bytes) = asked.dma else {
        return Ok(Vec::new());
    };
    if !(1..=MAX_DMA_BYTES).contains(&bytes) {
        return Err(format!(
            "a transfer has 1 to {MAX_DMA_BYTES} bytes, not {bytes}"
        ));
    }
    let name = &asked.link;
    let both = question.transfers(bytes);
    let both = both.ok_or_else(|| {
        format!("transfers by DMA are supported by pcie3, pcie4 and pcie5, not by {name}")
    })?;
    Ok(both.into())
}

/// DMA transfers as text.
fn of_dma(bytes: Option<u64>, transfers: &[Transfers]) -> String {
    let mut text = String::new();
    for of in transfers {
        let way = match of.way {
            Direction::ToDevice => "to the device",
            Direction::ToHost => "to the host",
        };
        let name = format!("DMA of {} {way}", counted(bytes.unwrap_or(0), "byte"));
        let (latency, rate) = (of.latency, of.rate / GIB);
        let _ = writeln!(
            text,
            "\n{name}: {latency:.0} ns alone, {rate:.3} GiB/s of {DMA_QUEUE} at a time"
        );
    }
    text.replace("\n\n", "\n")
}

fn value(
    name: &str,
    question: &LinkConfig,
    answer: &LinkRates,
    transfers: &[Transfers],
) -> serde_json::Value {
    let steps = answer
        .steps
        .iter()
        .map(|(name, rate)| json!({ "name": name, "bytes_per_second": rate }));
    let flows = answer.flows.iter().map(|flow| {
        json!({
            "name": flow.name,
            "both_directions": flow.both,
            "formula_bytes_per_second": flow.formula,
            "driven_bytes_per_second": flow.run,
            "sent_again_percent": flow.replayed,
        })
    });
    json!({
        "link": name,
        "lanes": question.lanes,
        "payload": question.payload,
        "delay_ns": question.delay,
        "bit_errors": question.errors,
        "seed": question.seed,
        "steps": steps.collect::<Vec<_>>(),
        "data": flows.collect::<Vec<_>>(),
        "dma": match transfers {
            [to_device, to_host] => json!({ "to_device": told(to_device), "to_host": told(to_host) }),
            _ => serde_json::Value::Null,
        },
    })
}

fn told(of: &Transfers) -> serde_json::Value {
    json!({ "latency_ns": of.latency, "bytes_per_second": of.rate })
}

const GIB: f64 = 1_073_741_824.0;

fn text(name: &str, question: &LinkConfig, answer: &LinkRates) -> String {
    let LinkConfig {
        lanes,
        payload,
        delay,
        errors,
        ..
    } = question;
    let again = *errors > 0.0;
    let lanes = counted(u64::from(*lanes), "lane");
    let mut text = format!("{name}: {lanes}, data of {payload} bytes, {delay} ns one way");
    if again {
        let _ = write!(text, ", bit errors at {errors:e}");
    }
    text.push_str("\n\n");
    let width = answer.flows.iter().map(|flow| flow.name.len() + 17);
    let width = width.max().unwrap_or(0).max(36);
    let _ = writeln!(
        text,
        "{:width$}  {:>8}  {:>8}  {:>6}",
        "one direction", "GB/s", "GiB/s", "share"
    );
    let wires = answer.steps.first().map_or(1.0, |step| step.1);
    for (name, rate) in &answer.steps {
        let share = 100.0 * rate / wires;
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
        if again { "  sent again" } else { "" }
    );
    for flow in &answer.flows {
        let ways = if flow.both {
            "both directions"
        } else {
            "one direction"
        };
        let name = format!("{}, {ways}", flow.name);
        let share = 100.0 * flow.run / wires;
        let _ = write!(
            text,
            "{name:width$}  {:8.3}  {:8.3}  {share:5.1}%  {:8.3}",
            flow.formula / GIB,
            flow.run / GIB,
            flow.run / 1e9
        );
        if again {
            let _ = write!(text, "  {:9.2}%", flow.replayed);
        }
        text.push('\n');
    }
    text
}
