//! Why nothing leads on from the end of a counterexample, for people.

use cohkit_check::explain::{Blocked, Explanation, Still};
use cohkit_protocol::words::counted;
use std::fmt::Write;

/// Lists longer than this are cut short; JSON has them whole.
const MOST_LINES: usize = 40;

/// The explanation, indented, with a heading for each part of it; empty if there is nothing to say.
pub(crate) fn text(explanation: &Explanation) -> String {
    let Explanation {
        waits,
        blocked,
        still,
    } = explanation;
    let mut text = list("who waits there", waits.clone());
    let why = |blocked: &Blocked| match blocked.fails.is_empty() {
        true => format!("{}: may fire, but does not lead on", blocked.rule),
        false => format!("{}: {}", blocked.rule, blocked.fails.join("; ")),
    };
    let heading = "what does not hold there, of each rule's guard";
    text += &list(heading, blocked.iter().map(why).collect());
    if let Some(Still {
        states,
        more,
        rules,
    }) = still
    {
        let more = if *more { "more than " } else { "" };
        let states = counted(*states, "state");
        text += &match rules.is_empty() {
            true => "  no rule that counts can fire there\n".to_string(),
            false => list(
                &format!("{more}{states} can be reached from there, by"),
                rules.clone(),
            ),
        };
    }
    text
}

fn list(heading: &str, lines: Vec<String>) -> String {
    let mut text = String::new();
    if lines.is_empty() {
        return text;
    }
    let _ = writeln!(text, "  {heading}:");
    for line in lines.iter().take(MOST_LINES) {
        let _ = writeln!(text, "    {line}");
    }
    if lines.len() > MOST_LINES {
        let _ = writeln!(text, "    and {} more", lines.len() - MOST_LINES);
    }
    text
}
