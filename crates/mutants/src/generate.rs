//! Mutants of a protocol specification, each with one change and a description that does not depend on line numbers.
//!
//! Mutations change the source, so that a mutant can be read, stored and checked like any other specification. A row
//! with several states and events stands for all pairs of them, and each pair is mutated separately.

use crate::expressions::{alternatives, commute, Alternative};
use crate::words::{replaced, words};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Carries, Home, Message, MessageId, Protocol, Type};
use cohkit_protocol::text::parse;

/// A specification with one change.
pub struct Mutant {
    /// Description: the line (or the pair of a row), and its change.
    pub what: String,
    /// Mutation operator.
    pub kind: &'static str,
    /// True if the change concerns the home's policy or messages, so that the home must be constructed again.
    pub goals: bool,
    /// Source of the mutant.
    pub text: String,
}

/// Returns all mutants of a specification, in the order of its lines.
pub fn mutants(text: &str) -> Vec<Mutant> {
    let source = Source::read(text);
    let mut mutants = Vec::new();
    for place in 0..source.lines.len() {
        let mut change = |kind, what: String, line: String| {
            let mut lines = source.lines.clone();
            lines[place] = line;
            let text = lines.join("\n") + "\n";
            let goals = matches!(source.parts[place], Part::Policy | Part::Messages);
            mutants.push(Mutant {
                what,
                kind,
                goals,
                text,
            });
        };
        let line = &source.lines[place];
        match source.parts[place] {
            Part::Row(side) => source.row(line, side, &mut change),
            Part::State(side) => state(line, side, &mut change),
            Part::Messages => messages(line, &mut change),
            Part::Policy => source.policy(line, &mut change),
            Part::Other => {}
        }
    }
    mutants
}

type Change<'a> = &'a mut dyn FnMut(&'static str, String, String);

/// Part of the specification to which a line belongs. Side 0 is the remote, 1 the home.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Part {
    Row(usize),
    State(usize),
    Messages,
    Policy,
    Other,
}

/// A specification as logical lines: comments removed, continued lines joined.
struct Source {
    lines: Vec<String>,
    parts: Vec<Part>,
    /// States of the remote and of the home, in source order.
    sides: [Vec<String>; 2],
    /// Messages of each channel.
    channels: Vec<Vec<String>>,
    /// The resolved protocol, if the specification is accepted.
    protocol: Option<Protocol>,
}

impl Source {
    fn read(text: &str) -> Source {
        let mut source = Source {
            lines: Vec::new(),
            parts: Vec::new(),
            sides: [Vec::new(), Vec::new()],
            channels: Vec::new(),
            protocol: parse(text).ok(),
        };
        let mut blocks: Vec<String> = Vec::new();
        for line in logical_lines(text) {
            let words = words(&line);
            let first = words.first().map_or("", |word| word.text);
            let side = match blocks.first().map(String::as_str) {
                Some("remote") => Some(0),
                Some("home") => Some(1),
                _ => None,
            };
            let inner = blocks.last().map_or("", String::as_str);
            let part = match (side, inner) {
                (Some(side), "states") if !first.is_empty() => {
                    source.sides[side].push(first.to_string());
                    Part::State(side)
                }
                (None, "messages") if line.contains(':') => {
                    let names = message_items(&line).into_iter().map(|item| item.name);
                    source.channels.push(names.collect());
                    Part::Messages
                }
                (Some(side), "remote" | "home") if cells(&line).len() >= 3 => Part::Row(side),
                (Some(1), "home") | (Some(1), "on") if !first.is_empty() => Part::Policy,
                _ => Part::Other,
            };
            for character in line.chars() {
                match character {
                    '{' if part != Part::Row(0) && part != Part::Row(1) => {
                        blocks.push(first.to_string());
                    }
                    '}' if part != Part::Row(0) && part != Part::Row(1) => {
                        blocks.pop();
                    }
                    _ => {}
                }
            }
            source.lines.push(line);
            source.parts.push(part);
        }
        source
    }

    /// Adds the mutants of a row, pair by pair.
    fn row(&self, line: &str, side: usize, change: Change) {
        let states = &self.sides[side];
        let cells = cells(line);
        let all_states: Vec<&str> = cells[0].split_whitespace().collect();
        let (events, guard) = match cells[1].split_once(" if ") {
            Some((events, guard)) => (events, Some(guard.trim())),
            None => (cells[1], None),
        };
        let events: Vec<&str> = events.split_whitespace().collect();
        let actions = actions(cells[2]);
        let next = cells.get(3).copied().unwrap_or("");
        let row = |states: &[&str],
                   events: &[&str],
                   guard: Option<&str>,
                   actions: &[String],
                   next: &str| {
            let guard = guard.map_or(String::new(), |guard| format!(" if {guard}"));
            let (states, events) = (states.join(" "), events.join(" "));
            format!(
                "  {states} | {events}{guard} | {} | {next}",
                actions.join(", ")
            )
        };
        for &state in &all_states {
            for &event in &events {
                // Keep the other pairs of the row unchanged.
                let others: Vec<&str> =
                    all_states.iter().copied().filter(|&s| s != state).collect();
                let rest: Vec<&str> = events.iter().copied().filter(|&e| e != event).collect();
                let mut kept = Vec::new();
                if !others.is_empty() {
                    kept.push(row(&others, &events, guard, &actions, next));
                }
                if !rest.is_empty() {
                    kept.push(row(&[state], &rest, guard, &actions, next));
                }
                let guarded = guard.map_or(String::new(), |guard| format!(" if {guard}"));
                let pair = format!(
                    "{state} | {event}{guarded} | {} | {next}",
                    actions.join(", ")
                );
                let pair = pair.trim_end().to_string();
                let mut with = |kind, how: String, new: Vec<String>| {
                    let lines: Vec<String> = new.into_iter().chain(kept.iter().cloned()).collect();
                    change(kind, format!("{pair}: {how}"), lines.join("\n"));
                };
                let one = |guard: Option<&str>, actions: &[String], next: &str| {
                    vec![row(&[state], &[event], guard, actions, next)]
                };
                with("row dropped", "dropped".into(), Vec::new());
                let twice: Vec<String> = actions.iter().chain(&actions).cloned().collect();
                let does = !actions.is_empty()
                    && !matches!(actions[0].as_str(), "stall" | "unreachable" | "refuse");
                if does {
                    with(
                        "actions doubled",
                        "its actions twice".into(),
                        one(guard, &twice, next),
                    );
                } else {
                    let same = row(&[state], &[event], guard, &actions, next);
                    with(
                        "row doubled",
                        "the row twice".into(),
                        vec![same.clone(), same],
                    );
                }
                if !next.is_empty() {
                    let here = if next == "stay" { state } else { next };
                    for other in adjacent_states(states, here) {
                        let how = format!("to {other}");
                        with("another next state", how, one(guard, &actions, &other));
                    }
                }
                for place in 0..actions.len() {
                    let mut fewer = actions.clone();
                    let dropped = fewer.remove(place);
                    if does {
                        let how = format!("without `{dropped}`");
                        with("action dropped", how, one(guard, &fewer, next));
                    }
                    for other in every(&dropped, states) {
                        let how = format!("`{other}` instead");
                        let mut changed = actions.clone();
                        changed[place] = other;
                        with(
                            "another state of every line",
                            how,
                            one(guard, &changed, next),
                        );
                    }
                    for other in self.others(&dropped) {
                        // If two sends can become the same one, name the send that changes.
                        let elsewhere = |action: &String| self.others(action).contains(&other);
                        let how = match fewer.iter().any(elsewhere) {
                            true => format!("`{other}` instead of `{dropped}`"),
                            false => format!("`{other}` instead"),
                        };
                        let mut changed = actions.clone();
                        changed[place] = other;
                        with("another message", how, one(guard, &changed, next));
                    }
                    let receivers = self.receivers(side, event, &dropped).into_iter();
                    let receivers =
                        receivers.map(|text| Alternative::new("another receiver", text));
                    for other in receivers.chain(alternatives(&dropped)) {
                        let how = format!("`{}` instead of `{dropped}`", other.text);
                        let mut changed = actions.clone();
                        changed[place] = other.text;
                        with(other.kind, how, one(guard, &changed, next));
                    }
                }
                for place in 1..actions.len() {
                    let (first, second) = (&actions[place - 1], &actions[place]);
                    let ordered = |a: &str, b: &str| self.ordered(a, b);
                    let carries = |message: &str| self.carries(message);
                    if !commute(first, second, &ordered, &carries) {
                        let how = format!("`{second}` before `{first}`");
                        let mut changed = actions.clone();
                        changed.swap(place - 1, place);
                        with("actions swapped", how, one(guard, &changed, next));
                    }
                }
                if let Some(guard) = guard {
                    let negated = format!("not ({guard})");
                    with(
                        "guard negated",
                        "its guard negated".into(),
                        one(Some(&negated), &actions, next),
                    );
                    with(
                        "guard weakened",
                        "without its guard".into(),
                        one(None, &actions, next),
                    );
                    for other in alternatives(guard) {
                        let how = format!("if {}", other.text);
                        with(other.kind, how, one(Some(&other.text), &actions, next));
                    }
                }
            }
        }
    }

    /// Returns a send with other receivers: the default receiver, and each remote named by a variable or by a field of
    /// the event's message.
    fn receivers(&self, side: usize, event: &str, action: &str) -> Vec<String> {
        let (Some(send), Some(protocol)) = (action.strip_prefix("send "), &self.protocol) else {
            return Vec::new();
        };
        let (message, to) = match send.rsplit_once(" to ") {
            Some((message, to)) => (message, Some(to.trim())),
            None => (send, None),
        };
        let default = ["home", "sender"][side];
        let here = to.unwrap_or(default);
        let mut others = Vec::new();
        if here != default {
            others.push(format!("send {message}"));
        }
        let controller: Option<&Controller> = match (side, &protocol.home) {
            (0, _) => Some(&protocol.remote),
            (_, Home::Controller(home)) => Some(home),
            (_, Home::Policy(_)) => None,
        };
        let fields = self.message(event).map(|(_, message)| &message.fields);
        let fields = fields.into_iter().flatten();
        let variables = controller.into_iter().flat_map(|of| &of.variables);
        let named = fields.map(|field| (&field.name, field.ty));
        let named = named.chain(variables.map(|variable| (&variable.name, variable.ty)));
        let remotes = named.filter(|(name, ty)| *ty == Type::Remote && *name != here);
        others.extend(remotes.map(|(name, _)| format!("send {message} to {name}")));
        others
    }

    fn message(&self, name: &str) -> Option<(MessageId, &Message)> {
        let protocol = self.protocol.as_ref()?;
        let mut all = protocol.message_ids().map(|id| (id, protocol.message(id)));
        all.find(|(_, message)| message.name == name)
    }

    /// Returns true if two messages between the same agents are delivered in send order.
    fn ordered(&self, first: &str, second: &str) -> bool {
        let (Some(protocol), Some((a, one)), Some((b, other))) =
            (&self.protocol, self.message(first), self.message(second))
        else {
            return true;
        };
        let order = protocol.order_of(one.channel);
        order.is_some() && order == protocol.order_of(other.channel)
            || protocol.stays_behind(a).contains(&b)
            || protocol.stays_behind(b).contains(&a)
    }

    /// Returns true if a message carries data.
    fn carries(&self, message: &str) -> bool {
        let found = self.message(message);
        found.is_none_or(|(_, message)| message.carries != Carries::Nothing)
    }

    /// Returns a send with every other message of the same channel, with unchanged fields.
    fn others(&self, action: &str) -> Vec<String> {
        let words = words(action);
        let (Some(send), Some(message)) = (words.first(), words.get(1)) else {
            return Vec::new();
        };
        if send.text != "send" {
            return Vec::new();
        }
        let others = self.same_channel(message.text).into_iter();
        others
            .map(|other| replaced(action, message, &other))
            .collect()
    }

    fn same_channel(&self, message: &str) -> Vec<String> {
        let channel = self
            .channels
            .iter()
            .find(|all| all.iter().any(|m| m == message));
        let others = channel
            .into_iter()
            .flatten()
            .filter(|other| *other != message);
        others.cloned().collect()
    }

    /// Adds the mutants of a policy statement: another permission ensured or reached, another message sent, or the
    /// statement dropped.
    fn policy(&self, line: &str, change: Change) {
        let short = collapse_spaces(line);
        let words = words(line);
        let text = |place: usize| words.get(place).map_or("", |word| word.text);
        let rights = self.rights();
        for place in 0..words.len() {
            let others = |name: usize| rights.iter().filter(move |&right| right != text(name));
            match text(place) {
                // `ensure others(r) <= S` or `ensure all <= S`: the permission is the last word.
                "ensure" => {
                    let right = if text(place + 1) == "others" {
                        place + 3
                    } else {
                        place + 2
                    };
                    for other in others(right) {
                        let how = format!("{short}: ensures {other}");
                        change("ensure", how, replaced(line, &words[right], other));
                    }
                }
                "grant" | "answer" => {
                    let with = place + if text(place) == "grant" { 3 } else { 2 };
                    for other in self.same_channel(text(with + 1)) {
                        let how = format!("{short}: {} with {other}", text(place));
                        change("grant", how, replaced(line, &words[with + 1], &other));
                    }
                    if text(place) == "grant" {
                        for other in others(place + 2) {
                            let how = format!("{short}: grants {other}");
                            change("grant", how, replaced(line, &words[place + 2], other));
                        }
                    }
                }
                "write" => {
                    let how = format!("{short}: without `write`");
                    change("write dropped", how, replaced(line, &words[place], ""));
                }
                "reach" => {
                    change("reach", format!("{short}: dropped"), String::new());
                    for other in others(place + 1) {
                        let how = format!("{short}: reaches {other}");
                        change("reach", how, replaced(line, &words[place + 1], other));
                    }
                    for other in self.same_channel(text(place + 3)) {
                        let how = format!("{short}: with {other}");
                        change("reach", how, replaced(line, &words[place + 3], &other));
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns one stable state of the remote for each permission. States that wait for messages are not stable.
    fn rights(&self) -> Vec<String> {
        let mut seen = Vec::new();
        let mut names = Vec::new();
        for (line, part) in self.lines.iter().zip(&self.parts) {
            let words = words(line);
            let has = |word: &str| words.iter().any(|w| w.text == word);
            if *part != Part::State(0) || has("waits") {
                continue;
            }
            let right = (has("reads"), has("writes"));
            let name = words[0].text.to_string();
            if !seen.contains(&right) {
                seen.push(right);
                names.push(name);
            }
        }
        names
    }
}

/// Returns an `every` action with another source state, or with another target state.
fn every(action: &str, states: &[String]) -> Vec<String> {
    let all = words(action);
    let [every, from, _, to] = &all[..] else {
        return Vec::new();
    };
    if every.text != "every" {
        return Vec::new();
    }
    let changed = [from, to].into_iter().flat_map(|word| {
        let others = adjacent_states(states, word.text).into_iter();
        others.map(|other| replaced(action, word, &other))
    });
    changed.collect()
}

/// Returns the states after and before `here` in cyclic order.
fn adjacent_states(states: &[String], here: &str) -> Vec<String> {
    let Some(place) = states.iter().position(|state| state == here) else {
        return Vec::new();
    };
    let count = states.len();
    let mut found: Vec<String> = Vec::new();
    for other in [place + 1, place + count - 1] {
        let other = &states[other % count];
        if other != here && !found.contains(other) {
            found.push(other.clone());
        }
    }
    found
}

/// Adds the mutants of a state: each permission removed or added, and each condition dropped or negated.
fn state(line: &str, side: usize, change: Change) {
    const RIGHTS: [&str; 4] = ["reads", "writes", "dirty", "holds"];
    let agent = ["remote", "home"][side];
    let (rights, waits) = match line.find(" waits ") {
        Some(place) => line.split_at(place),
        None => (line, ""),
    };
    let words = words(rights);
    let name = words[0].text;
    // Each permission with its condition.
    let mut places: Vec<usize> = (words.iter())
        .filter(|word| RIGHTS.contains(&word.text))
        .map(|word| word.start)
        .collect();
    places.push(rights.len());
    let given: Vec<&str> = (places.windows(2))
        .map(|place| rights[place[0]..place[1]].trim().trim_end_matches(','))
        .collect();
    let said = format!("{name} {}{waits}", given.join(" "));
    let mut with = |changed: Vec<String>, how: String| {
        let line = format!("    {name} {}{waits}", changed.join(" "));
        let what = format!("{agent} state {}: {how}", collapse_spaces(&said));
        change("permission of a state", what, line);
    };
    let given: Vec<String> = given.into_iter().map(String::from).collect();
    for right in RIGHTS {
        let mut changed = given.clone();
        let begins = |given: &String| given.split(' ').next() == Some(right);
        match given.iter().position(begins) {
            Some(place) => {
                changed.remove(place);
                with(changed, format!("without `{right}`"));
            }
            None => {
                changed.push(right.to_string());
                with(changed, format!("with `{right}`"));
            }
        }
    }
    for place in 0..given.len() {
        let Some((right, condition)) = given[place].split_once(" if ") else {
            continue;
        };
        for (other, how) in [
            (right.to_string(), "always"),
            (
                format!("{right} if not ({condition})"),
                "its condition negated",
            ),
        ] {
            let mut changed = given.clone();
            changed[place] = other;
            with(changed, format!("`{right}` {how}"));
        }
    }
}

/// Adds mutants with another payload for each message: none, a line or a dirty line; or none, a store or a partial
/// store.
fn messages(line: &str, change: Change) {
    for item in message_items(line) {
        let carried = ["store", "partial store"]
            .iter()
            .find(|store| item.carries == **store);
        let others: &[&str] = match carried {
            Some(_) => &["", "store", "partial store"],
            None => &["", "line", "line, dirty"],
        };
        for &other in others.iter().filter(|&&other| other != item.carries) {
            let mut content: Vec<&str> = Vec::new();
            content.extend(Some(other).filter(|other| !other.is_empty()));
            content.extend(item.fields.iter().map(String::as_str));
            let content = match content.is_empty() {
                true => String::new(),
                false => format!(" ({})", content.join(", ")),
            };
            let how = match other {
                "" => "carries nothing".to_string(),
                other => format!("carries `{other}`"),
            };
            let new = format!(
                "{}{}{content}{}",
                &line[..item.start],
                item.name,
                &line[item.end..]
            );
            change(
                "bytes of a message",
                format!(
                    "message {}: {how}",
                    collapse_spaces(&line[item.start..item.end])
                ),
                new,
            );
        }
    }
}

/// A message of a group: `NAME` or `NAME (contents)`.
struct MessageItem {
    name: String,
    /// Payload: `line`, `line, dirty`, `store`, `partial store` or empty.
    carries: String,
    fields: Vec<String>,
    start: usize,
    end: usize,
}

fn message_items(line: &str) -> Vec<MessageItem> {
    let Some((channel, _)) = line.split_once(':') else {
        return Vec::new();
    };
    let begin = channel.len() + 1;
    let mut items = Vec::new();
    for (start, end) in split(&line[begin..], ',') {
        let item = line[begin + start..begin + end].trim_end();
        let start = begin + end - line[begin + start..begin + end].trim_start().len();
        let item = item.trim();
        let (name, content) = match item.split_once('(') {
            Some((name, content)) => (name.trim(), content.trim_end_matches(')')),
            None => (item, ""),
        };
        let contents = content.split(',').map(str::trim).filter(|c| !c.is_empty());
        let (fields, carries): (Vec<&str>, Vec<&str>) = contents.partition(|c| c.contains(':'));
        items.push(MessageItem {
            name: name.to_string(),
            carries: carries.join(", "),
            fields: fields.into_iter().map(String::from).collect(),
            start,
            end: start + item.len(),
        });
    }
    items
}

/// Splits the actions cell of a row.
fn actions(cell: &str) -> Vec<String> {
    let parts = split(cell, ',').into_iter();
    let parts = parts.map(|(start, end)| cell[start..end].trim().to_string());
    parts.filter(|part| !part.is_empty()).collect()
}

/// Returns the byte ranges between separators outside parentheses and braces.
fn split(text: &str, separator: char) -> Vec<(usize, usize)> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (place, character) in text.char_indices() {
        match character {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            _ if character == separator && depth == 0 => {
                parts.push((start, place));
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push((start, text.len()));
    parts
}

fn cells(line: &str) -> Vec<&str> {
    line.split('|').map(str::trim).collect()
}

fn collapse_spaces(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the logical lines of a source, without comments. A line continues after a comma, before a `|`, and inside
/// parentheses.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = 0i32;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or("").trim_end();
        let goes_on = open > 0
            || line.trim_start().starts_with('|')
            || lines.last().is_some_and(|last| last.ends_with(','));
        match lines.last_mut() {
            Some(last) if goes_on => {
                last.push(' ');
                last.push_str(line.trim_start());
            }
            _ => lines.push(line.to_string()),
        }
        let count = |character| line.matches(character).count() as i32;
        open += count('(') - count(')');
    }
    lines
}
