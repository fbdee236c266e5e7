//! Explanation, as text, of the last state of a counterexample: waits, false guards, and rules that can still fire.

use cohkit_base::words::counted;
use cohkit_engine::explain::{Blocked, Explanation, ReachableStates};
use std::fmt::Write;

/// Maximum number of lines of a list; JSON has all of them.
const MAX_LINES: usize = 40;

/// Explanation as indented text, with a heading for each part; empty if there is nothing to explain.
pub fn text(explanation: &Explanation) -> String {
    let Explanation {
        wait_for,
        blocked,
        omitted,
        reachable,
    } = explanation;
    let mut text = list("agents waiting in this state", wait_for.clone(), 0);
    let blocked_text = |blocked: &Blocked| match &blocked.reason {
        Some(reason) => format!("{}: {reason}", blocked.rule),
        None => format!("{}: {}", blocked.rule, blocked.failed_conditions.join("; ")),
    };
    let heading = "failed guard conditions, by rule";
    text += &list(
        heading,
        blocked.iter().map(blocked_text).collect(),
        *omitted,
    );
    if let Some(ReachableStates {
        states,
        is_partial,
        rules,
    }) = reachable
    {
        let qualifier = if *is_partial { "more than " } else { "" };
        let states = counted(*states, "state");
        text += &match rules.is_empty() {
            true => "  no rule that counts for this property is enabled there\n".to_string(),
            false => list(
                &format!("rules that still fire, in {qualifier}{states} reachable from there"),
                rules.clone(),
                0,
            ),
        };
    }
    text
}

/// Formats a heading and its lines. `omitted` counts further items that `lines` lacks.
fn list(heading: &str, lines: Vec<String>, omitted: u64) -> String {
    let mut text = String::new();
    if lines.is_empty() {
        return text;
    }
    let _ = writeln!(text, "  {heading}:");
    for line in lines.iter().take(MAX_LINES) {
        let _ = writeln!(text, "    {line}");
    }
    let omitted = lines.len().saturating_sub(MAX_LINES) as u64 + omitted;
    if omitted > 0 {
        let _ = writeln!(text, "    and {omitted} more");
    }
    text
}
