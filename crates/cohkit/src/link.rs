//! `cohkit link`: what one gets of a link.

use crate::console::Console;
use crate::outcome::{Failure, Outcome};
use crate::{deliver, options};
use cohkit_base::words::counted;
use cohkit_link::rates::{Answer, Kind, Question};
use serde_json::json;
use std::fmt::Write;

pub(crate) fn run(options: &options::Link, console: &mut Console) -> Result<Outcome, Failure> {
    let question = question(options).map_err(|why| Failure::new(Outcome::BadInput, why))?;
    let answer = question.answer();
    let result = if options.output.json {
        format!("{:#}\n", value(&options.link, &question, &answer))
    } else {
        text(&options.link, &question, &answer)
    };
    deliver(&result, &options.output, console)?;
    Ok(Outcome::Yes)
}

fn question(options: &options::Link) -> Result<Question, String> {
    let named = Kind::ALL
        .into_iter()
        .find(|(name, _)| *name == options.link);
    let (name, kind) = named.ok_or("no such link")?;
    let usual = Question::new(kind);
    let lanes = options.lanes.unwrap_or(usual.lanes);
    if !(1..=usual.lanes).contains(&lanes) {
        return Err(format!(
            "--lanes {lanes}: {name} has 1 to {} lanes",
            usual.lanes
        ));
    }
    let payload = options.payload.unwrap_or(usual.payload);
    if !kind.payloads().contains(&payload) {
        let mut sizes = kind.payloads().to_vec();
        sizes.sort_unstable();
        let sizes: Vec<String> = sizes.iter().map(u16::to_string).collect();
        return Err(format!(
            "--payload {payload}: {name} has data of {} bytes",
            sizes.join(", ")
        ));
    }
    Ok(Question {
        lanes,
        payload,
        delay: options.delay,
        errors: options.bit_errors,
        seed: options.seed,
        ..usual
    })
}

fn value(name: &str, question: &Question, answer: &Answer) -> serde_json::Value {
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
    })
}

const GIB: f64 = 1_073_741_824.0;

fn text(name: &str, question: &Question, answer: &Answer) -> String {
    let Question {
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
