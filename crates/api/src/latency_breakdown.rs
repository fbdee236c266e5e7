//! Latency breakdown of a simulation's accesses as JSON.

use cohkit_protocol::protocol::Protocol;
use cohkit_sim::attribution::{Explanation, Part, Step, Transaction};
use cohkit_sim::statistics::Statistics;
use serde_json::{json, Value};

/// Adds the latency breakdown and the size of the timeline to a result if they were recorded, as `docs/output.md`
/// describes.
pub(crate) fn add(value: &mut Value, statistics: &Statistics, protocol: &Protocol) {
    if let Some(explanation) = &statistics.explanation {
        value["explanation"] = json(explanation, protocol);
    }
    if let Some(timeline) = &statistics.timeline {
        value["timeline"] = json!({
            "accesses": timeline.accesses,
            "bytes": timeline.length,
            "full_ns": timeline.full.map(nanoseconds),
        });
    }
}

/// Latency breakdown as JSON: total (ps), mean (ns) and slowest access (ns), by part and by step of the machine.
fn json(explanation: &Explanation, protocol: &Protocol) -> Value {
    let slowest = explanation.slowest.as_ref();
    let time_json = |total: u128, is_included: &dyn Fn(Step) -> bool| {
        json!({
            "total_ps": u64::try_from(total).unwrap_or(u64::MAX),
            "mean_ns": mean(explanation, total),
            "slowest_ns": slowest.map(|slowest| nanoseconds(slowest.spent(is_included))),
        })
    };
    let parts = Part::ALL.iter().map(|&part| {
        let mut value = time_json(explanation.of_part(part), &|step| step.part() == part);
        value["name"] = part.name().into();
        value
    });
    let steps = Step::ALL.iter().map(|&step| {
        let mut value = time_json(explanation.total(step), &|candidate| candidate == step);
        value["name"] = step.name().into();
        value["part"] = step.part().name().into();
        value
    });
    json!({
        "accesses": explanation.accesses,
        "latency": time_json(explanation.latency, &|_| true),
        "parts": parts.collect::<Vec<Value>>(),
        "steps": steps.collect::<Vec<Value>>(),
        "slowest": slowest.map(|slowest| segments_json(slowest, protocol)),
        "resources": explanation.resources,
        "limit": explanation.limit,
    })
}

/// Segments of an access from issue to completion, in their order.
fn segments_json(slowest: &Transaction, protocol: &Protocol) -> Value {
    let segments = slowest.segments.iter().map(|segment| {
        let message = segment.message.map(usize::from);
        let message = message.and_then(|number| protocol.messages.get(number));
        json!({
            "step": segment.step.name(),
            "message": message.map(|message| message.name.as_str()),
            "begin_ns": nanoseconds(segment.begin),
            "ns": nanoseconds(segment.end - segment.begin),
        })
    });
    json!({
        "access": slowest.access.name(),
        "core": slowest.core.0,
        "line": slowest.line,
        "issued_ns": nanoseconds(slowest.issued),
        "latency_ns": nanoseconds(slowest.latency()),
        "steps": segments.collect::<Vec<Value>>(),
    })
}

/// Mean time per access in nanoseconds, for a total of all accesses in picoseconds; 0 without accesses.
pub fn mean(explanation: &Explanation, total: u128) -> f64 {
    match explanation.accesses {
        0 => 0.0,
        accesses => total as f64 / accesses as f64 / 1000.0,
    }
}

/// Converts picoseconds to nanoseconds.
pub fn nanoseconds(time: u64) -> f64 {
    time as f64 / 1000.0
}
