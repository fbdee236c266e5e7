//! Why nothing leads on from the end of a counterexample, for people.

use cohkit_base::words::counted;
use cohkit_engine::explain::{Blocked, Explanation, Still};
use std::fmt::Write;

/// Lists longer than this are cut short; JSON has them whole.
const MOST_LINES: usize = 40;

/// The explanation, indented, with a heading for each part of it; empty if there is nothing to say.
pub(crate) fn text(explanation: &Explanation) -> String {
    let Explanation {
        waits,
        blocked,
        unlisted,
        still,
    } = explanation;
    let mut text = list("who waits there", waits.clone(), 0);
    let why = |blocked: &Blocked| match &blocked.why {
        Some(why) => format!("{}: {why}", blocked.rule),
        None => format!("{}: {}", blocked.rule, blocked.fails.join("; ")),
    };
    let heading = "what does not hold there, of each rule's guard";
    text += &list(heading, blocked.iter().map(why).collect(), *unlisted);
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
                0,
            ),
        };
    }
    text
}

/// So many more are not in the lines.
fn list(heading: &str, lines: Vec<String>, unlisted: u64) -> String {
    let mut text = String::new();
    if lines.is_empty() {
        return text;
    }
    let _ = writeln!(text, "  {heading}:");
    for line in lines.iter().take(MOST_LINES) {
        let _ = writeln!(text, "    {line}");
    }
    let more = lines.len().saturating_sub(MOST_LINES) as u64 + unlisted;
    if more > 0 {
        let _ = writeln!(text, "    and {more} more");
    }
    text
}
