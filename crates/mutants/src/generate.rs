//! Mutants of a protocol specification, each with one change and a description that does not depend on line numbers.
//!
//! Mutations change the source, so that a mutant can be read, stored and checked like any other specification. A row
//! with several states and events stands for all pairs of them, and each pair is mutated separately.

use crate::expressions::{actions_commute, alternatives, Alternative};
use crate::words::{replace_word, words};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Carries, Home, Message, MessageId, Protocol, Type};
use cohkit_protocol::text::parse;

/// A specification with one change. The change may make it invalid.
pub struct Mutant {
    /// Description: the line (or the pair of a row), and its change. It is the same in every version of the
    /// specification that contains the line.
    pub description: String,
    /// Mutation operator, in words: `row dropped`.
    pub kind: &'static str,
    /// True if the change concerns the home's policy or messages. A home that is constructed from a policy must then
    /// be constructed again.
    pub changes_home: bool,
    /// Source of the mutant, without comments.
    pub text: String,
}

/// Returns all mutants of a specification, in the order of its lines. If the specification is invalid, mutants that
/// need the resolved protocol are missing.
pub fn mutants(text: &str) -> Vec<Mutant> {
    let source = Source::read(text);
    let mut mutants = Vec::new();
    for line_index in 0..source.lines.len() {
        let mut change = |kind, description: String, line: String| {
            let mut lines = source.lines.clone();
            lines[line_index] = line;
            let text = lines.join("\n") + "\n";
            let changes_home = matches!(
                source.line_kinds[line_index],
                LineKind::Policy | LineKind::Messages
            );
            mutants.push(Mutant {
                description,
                kind,
                changes_home,
                text,
            });
        };
        let line = &source.lines[line_index];
        match source.line_kinds[line_index] {
            LineKind::Row(side) => source.add_row_mutants(line, side, &mut change),
            LineKind::State(side) => add_state_mutants(line, side, &mut change),
            LineKind::Messages => add_message_mutants(line, &mut change),
            LineKind::Policy => source.add_policy_mutants(line, &mut change),
            LineKind::Other => {}
        }
    }
    mutants
}

/// Receiver of a mutant: its mutation operator, its description, and the changed line, which may contain line breaks
/// or be empty.
type Change<'a> = &'a mut dyn FnMut(&'static str, String, String);

/// A pair of a state and an event in a row, with the remainder of the row. All parts are source text.
struct RowPair<'a> {
    /// Name of the state.
    state: &'a str,
    /// Name of the event.
    event: &'a str,
    /// Condition after `if`; `None` without a guard.
    guard: Option<&'a str>,
    /// Actions in order; a row without effect has the single action `stall`, `unreachable` or `refuse`.
    actions: &'a [String],
    /// Next state, or `stay`; empty if the row names none.
    next: &'a str,
    /// Rows of the other pairs of the line, which mutants keep.
    unchanged_rows: Vec<String>,
}

impl RowPair<'_> {
    /// True if the pair has actions that change the state or send messages.
    fn has_effect(&self) -> bool {
        !self.actions.is_empty()
            && !matches!(self.actions[0].as_str(), "stall" | "unreachable" | "refuse")
    }

    /// The row of this pair, with another guard, actions or next state.
    fn changed_row(&self, guard: Option<&str>, actions: &[String], next: &str) -> Vec<String> {
        vec![format_row(
            &[self.state],
            &[self.event],
            guard,
            actions,
            next,
        )]
    }

    /// Adds a mutant with `rows` in place of the pair. `kind` is the mutation operator and `difference` the change in
    /// words.
    fn add_mutant(
        &self,
        change: Change,
        kind: &'static str,
        difference: String,
        rows: Vec<String>,
    ) {
        let guard = self
            .guard
            .map_or(String::new(), |guard| format!(" if {guard}"));
        let pair = format!(
            "{} | {}{guard} | {} | {}",
            self.state,
            self.event,
            self.actions.join(", "),
            self.next
        );
        let pair = pair.trim_end();
        let lines: Vec<String> = rows
            .into_iter()
            .chain(self.unchanged_rows.iter().cloned())
            .collect();
        change(kind, format!("{pair}: {difference}"), lines.join("\n"));
    }

    /// Adds the mutant that repeats the actions or, without an effect, the row.
    fn add_repetition_mutant(&self, change: Change) {
        if self.has_effect() {
            let doubled_actions: Vec<String> =
                self.actions.iter().chain(self.actions).cloned().collect();
            self.add_mutant(
                change,
                "actions doubled",
                "its actions twice".into(),
                self.changed_row(self.guard, &doubled_actions, self.next),
            );
        } else {
            let row = self.changed_row(self.guard, self.actions, self.next);
            self.add_mutant(
                change,
                "row doubled",
                "the row twice".into(),
                [row.clone(), row].concat(),
            );
        }
    }

    /// Adds the mutants of the guard: negated, removed, and with replaced operators or operands.
    fn add_guard_mutants(&self, change: Change) {
        let Some(guard) = self.guard else { return };
        let negated = format!("not ({guard})");
        self.add_mutant(
            change,
            "guard negated",
            "its guard negated".into(),
            self.changed_row(Some(&negated), self.actions, self.next),
        );
        self.add_mutant(
            change,
            "guard weakened",
            "without its guard".into(),
            self.changed_row(None, self.actions, self.next),
        );
        for replacement in alternatives(guard) {
            self.add_mutant(
                change,
                replacement.kind,
                format!("if {}", replacement.text),
                self.changed_row(Some(&replacement.text), self.actions, self.next),
            );
        }
    }
}

/// A row of a table as text.
fn format_row(
    states: &[&str],
    events: &[&str],
    guard: Option<&str>,
    actions: &[String],
    next: &str,
) -> String {
    let guard = guard.map_or(String::new(), |guard| format!(" if {guard}"));
    let (states, events) = (states.join(" "), events.join(" "));
    format!(
        "  {states} | {events}{guard} | {} | {next}",
        actions.join(", ")
    )
}

/// Kind of a line of the specification. Side 0 is the remote, 1 the home.
#[derive(Clone, Copy, PartialEq, Debug)]
enum LineKind {
    /// Row of the table of this side.
    Row(usize),
    /// Declaration of a state of this side.
    State(usize),
    /// Declaration of the messages of a channel.
    Messages,
    /// Line of the policy of a home that is to be constructed.
    Policy,
    /// Line without mutants.
    Other,
}

/// A specification as logical lines: comments removed, continued lines joined.
struct Source {
    /// Logical lines. Descriptions refer to them by their text, not their number.
    lines: Vec<String>,
    /// Kind of each logical line.
    line_kinds: Vec<LineKind>,
    /// States of the remote and of the home, in source order.
    sides: [Vec<String>; 2],
    /// Names of the messages of each channel, in source order.
    channels: Vec<Vec<String>>,
    /// The resolved protocol; `None` if the specification is invalid.
    protocol: Option<Protocol>,
}

impl Source {
    /// Reads a specification into logical lines and classifies each by the blocks around it.
    fn read(text: &str) -> Source {
        let mut source = Source {
            lines: Vec::new(),
            line_kinds: Vec::new(),
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
            let line_kind = match (side, inner) {
                (Some(side), "states") if !first.is_empty() => {
                    source.sides[side].push(first.to_string());
                    LineKind::State(side)
                }
                (None, "messages") if line.contains(':') => {
                    let names = message_items(&line).into_iter().map(|item| item.name);
                    source.channels.push(names.collect());
                    LineKind::Messages
                }
                (Some(side), "remote" | "home") if split_cells(&line).len() >= 3 => {
                    LineKind::Row(side)
                }
                (Some(1), "home") | (Some(1), "on") if !first.is_empty() => LineKind::Policy,
                _ => LineKind::Other,
            };
            for character in line.chars() {
                match character {
                    '{' if line_kind != LineKind::Row(0) && line_kind != LineKind::Row(1) => {
                        blocks.push(first.to_string());
                    }
                    '}' if line_kind != LineKind::Row(0) && line_kind != LineKind::Row(1) => {
                        blocks.pop();
                    }
                    _ => {}
                }
            }
            source.lines.push(line);
            source.line_kinds.push(line_kind);
        }
        source
    }

    /// Adds the mutants of a row, pair by pair. `side` is that of [`LineKind::Row`].
    fn add_row_mutants(&self, line: &str, side: usize, change: Change) {
        let states = &self.sides[side];
        let cells = split_cells(line);
        let all_states: Vec<&str> = cells[0].split_whitespace().collect();
        let (events, guard) = match cells[1].split_once(" if ") {
            Some((events, guard)) => (events, Some(guard.trim())),
            None => (cells[1], None),
        };
        let events: Vec<&str> = events.split_whitespace().collect();
        let actions = split_actions(cells[2]);
        let next = cells.get(3).copied().unwrap_or("");
        for &state in &all_states {
            for &event in &events {
                // Keep the other pairs of the row unchanged.
                let other_states: Vec<&str> =
                    all_states.iter().copied().filter(|&s| s != state).collect();
                let other_events: Vec<&str> =
                    events.iter().copied().filter(|&e| e != event).collect();
                let mut unchanged_rows = Vec::new();
                if !other_states.is_empty() {
                    unchanged_rows.push(format_row(&other_states, &events, guard, &actions, next));
                }
                if !other_events.is_empty() {
                    unchanged_rows.push(format_row(&[state], &other_events, guard, &actions, next));
                }
                let pair = RowPair {
                    state,
                    event,
                    guard,
                    actions: &actions,
                    next,
                    unchanged_rows,
                };
                pair.add_mutant(change, "row dropped", "dropped".into(), Vec::new());
                pair.add_repetition_mutant(change);
                if !next.is_empty() {
                    let current_state = if next == "stay" { state } else { next };
                    for replacement in adjacent_states(states, current_state) {
                        pair.add_mutant(
                            change,
                            "another next state",
                            format!("to {replacement}"),
                            pair.changed_row(guard, &actions, &replacement),
                        );
                    }
                }
                for index in 0..actions.len() {
                    self.add_action_mutants(&pair, side, index, change);
                }
                self.add_swap_mutants(&pair, change);
                pair.add_guard_mutants(change);
            }
        }
    }

    /// Adds the mutants of one action of a pair, by its index: without it, and with replacements.
    fn add_action_mutants(&self, pair: &RowPair, side: usize, index: usize, change: Change) {
        let mut remaining = pair.actions.to_vec();
        let dropped = remaining.remove(index);
        let row_with = |replacement: String| {
            let mut changed_actions = pair.actions.to_vec();
            changed_actions[index] = replacement;
            pair.changed_row(pair.guard, &changed_actions, pair.next)
        };
        if pair.has_effect() {
            pair.add_mutant(
                change,
                "action dropped",
                format!("without `{dropped}`"),
                pair.changed_row(pair.guard, &remaining, pair.next),
            );
        }
        for replacement in bulk_transition_variants(&dropped, &self.sides[side]) {
            pair.add_mutant(
                change,
                "another state of every line",
                format!("`{replacement}` instead"),
                row_with(replacement),
            );
        }
        for replacement in self.sends_of_other_messages(&dropped) {
            // If two sends can become the same one, name the send that changes.
            let has_same_replacement =
                |action: &String| self.sends_of_other_messages(action).contains(&replacement);
            let difference = match remaining.iter().any(has_same_replacement) {
                true => format!("`{replacement}` instead of `{dropped}`"),
                false => format!("`{replacement}` instead"),
            };
            pair.add_mutant(change, "another message", difference, row_with(replacement));
        }
        let receivers = self
            .sends_to_other_receivers(side, pair.event, &dropped)
            .into_iter();
        let receivers = receivers.map(|text| Alternative::new("another receiver", text));
        for replacement in receivers.chain(alternatives(&dropped)) {
            pair.add_mutant(
                change,
                replacement.kind,
                format!("`{}` instead of `{dropped}`", replacement.text),
                row_with(replacement.text),
            );
        }
    }

    /// Adds the mutants that swap two successive actions of a pair, unless the actions commute.
    fn add_swap_mutants(&self, pair: &RowPair, change: Change) {
        for index in 1..pair.actions.len() {
            let (first, second) = (&pair.actions[index - 1], &pair.actions[index]);
            let ordered = |a: &str, b: &str| self.are_ordered(a, b);
            let carries = |message: &str| self.carries_data(message);
            if !actions_commute(first, second, &ordered, &carries) {
                let mut changed_actions = pair.actions.to_vec();
                changed_actions.swap(index - 1, index);
                pair.add_mutant(
                    change,
                    "actions swapped",
                    format!("`{second}` before `{first}`"),
                    pair.changed_row(pair.guard, &changed_actions, pair.next),
                );
            }
        }
    }

    /// Returns the variants of a send with other receivers: the default receiver, and each remote named by a variable
    /// or by a field of the event's message. Empty if the action is no send.
    fn sends_to_other_receivers(&self, side: usize, event: &str, action: &str) -> Vec<String> {
        let (Some(send), Some(protocol)) = (action.strip_prefix("send "), &self.protocol) else {
            return Vec::new();
        };
        let (message, named_receiver) = match send.rsplit_once(" to ") {
            Some((message, named_receiver)) => (message, Some(named_receiver.trim())),
            None => (send, None),
        };
        let default = ["home", "sender"][side];
        let receiver = named_receiver.unwrap_or(default);
        let mut sends = Vec::new();
        if receiver != default {
            sends.push(format!("send {message}"));
        }
        let controller: Option<&Controller> = match (side, &protocol.home) {
            (0, _) => Some(&protocol.remote),
            (_, Home::Controller(home)) => Some(home),
            (_, Home::Policy(_)) => None,
        };
        let fields = self.find_message(event).map(|(_, message)| &message.fields);
        let fields = fields.into_iter().flatten();
        let variables = controller
            .into_iter()
            .flat_map(|controller| &controller.variables);
        let typed_names = fields.map(|field| (&field.name, field.ty));
        let typed_names =
            typed_names.chain(variables.map(|variable| (&variable.name, variable.ty)));
        let remotes = typed_names.filter(|(name, ty)| *ty == Type::Remote && *name != receiver);
        sends.extend(remotes.map(|(name, _)| format!("send {message} to {name}")));
        sends
    }

    fn find_message(&self, name: &str) -> Option<(MessageId, &Message)> {
        let protocol = self.protocol.as_ref()?;
        let mut messages = protocol.message_ids().map(|id| (id, protocol.message(id)));
        messages.find(|(_, message)| message.name == name)
    }

    /// Returns true if two messages between the same agents are delivered in send order. Unknown messages count as
    /// ordered.
    fn are_ordered(&self, first: &str, second: &str) -> bool {
        let (Some(protocol), Some((first_id, first_message)), Some((second_id, second_message))) = (
            &self.protocol,
            self.find_message(first),
            self.find_message(second),
        ) else {
            return true;
        };
        let order = protocol.order_of(first_message.channel);
        order.is_some() && order == protocol.order_of(second_message.channel)
            || protocol.earlier_messages(first_id).contains(&second_id)
            || protocol.earlier_messages(second_id).contains(&first_id)
    }

    /// Returns true if a message carries data, or is unknown.
    fn carries_data(&self, message: &str) -> bool {
        let resolved = self.find_message(message);
        resolved.is_none_or(|(_, message)| message.carries != Carries::Nothing)
    }

    /// Returns the variants of a send with every other message of the same channel, with unchanged fields. Empty if
    /// the action is no send.
    fn sends_of_other_messages(&self, action: &str) -> Vec<String> {
        let words = words(action);
        let (Some(send), Some(message)) = (words.first(), words.get(1)) else {
            return Vec::new();
        };
        if send.text != "send" {
            return Vec::new();
        }
        let other_names = self.other_messages_of_channel(message.text).into_iter();
        other_names
            .map(|name| replace_word(action, message, &name))
            .collect()
    }

    /// Returns the other messages of a message's channel.
    fn other_messages_of_channel(&self, message: &str) -> Vec<String> {
        let channel = self
            .channels
            .iter()
            .find(|names| names.iter().any(|m| m == message));
        let other_messages = channel
            .into_iter()
            .flatten()
            .filter(|other| *other != message);
        other_messages.cloned().collect()
    }

    /// Adds the mutants of a policy statement: another permission ensured or reached, another message sent, or the
    /// statement dropped.
    fn add_policy_mutants(&self, line: &str, change: Change) {
        let statement = collapse_spaces(line);
        let words = words(line);
        let word_at = |word_index: usize| words.get(word_index).map_or("", |word| word.text);
        let permissions = self.states_by_permission();
        for word_index in 0..words.len() {
            let other_permissions = |index: usize| {
                permissions
                    .iter()
                    .filter(move |&permission| permission != word_at(index))
            };
            match word_at(word_index) {
                // `ensure others(r) <= S` or `ensure all <= S`: the permission is the last word.
                "ensure" => {
                    let permission_index = if word_at(word_index + 1) == "others" {
                        word_index + 3
                    } else {
                        word_index + 2
                    };
                    for replacement in other_permissions(permission_index) {
                        let difference = format!("{statement}: ensures {replacement}");
                        change(
                            "ensure",
                            difference,
                            replace_word(line, &words[permission_index], replacement),
                        );
                    }
                }
                "grant" | "answer" => {
                    let with_index =
                        word_index + if word_at(word_index) == "grant" { 3 } else { 2 };
                    for replacement in self.other_messages_of_channel(word_at(with_index + 1)) {
                        let difference =
                            format!("{statement}: {} with {replacement}", word_at(word_index));
                        change(
                            "grant",
                            difference,
                            replace_word(line, &words[with_index + 1], &replacement),
                        );
                    }
                    if word_at(word_index) == "grant" {
                        for replacement in other_permissions(word_index + 2) {
                            let difference = format!("{statement}: grants {replacement}");
                            change(
                                "grant",
                                difference,
                                replace_word(line, &words[word_index + 2], replacement),
                            );
                        }
                    }
                }
                "write" => {
                    let difference = format!("{statement}: without `write`");
                    change(
                        "write dropped",
                        difference,
                        replace_word(line, &words[word_index], ""),
                    );
                }
                "reach" => {
                    change("reach", format!("{statement}: dropped"), String::new());
                    for replacement in other_permissions(word_index + 1) {
                        let difference = format!("{statement}: reaches {replacement}");
                        change(
                            "reach",
                            difference,
                            replace_word(line, &words[word_index + 1], replacement),
                        );
                    }
                    for replacement in self.other_messages_of_channel(word_at(word_index + 3)) {
                        let difference = format!("{statement}: with {replacement}");
                        change(
                            "reach",
                            difference,
                            replace_word(line, &words[word_index + 3], &replacement),
                        );
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns one stable state of the remote for each permission. States that wait for messages are not stable.
    fn states_by_permission(&self) -> Vec<String> {
        let mut known_permissions = Vec::new();
        let mut names = Vec::new();
        for (line, line_kind) in self.lines.iter().zip(&self.line_kinds) {
            let words = words(line);
            let has_word = |word: &str| words.iter().any(|w| w.text == word);
            if *line_kind != LineKind::State(0) || has_word("waits") {
                continue;
            }
            let permission = (has_word("reads"), has_word("writes"));
            let name = words[0].text.to_string();
            if !known_permissions.contains(&permission) {
                known_permissions.push(permission);
                names.push(name);
            }
        }
        names
    }
}

/// Returns the variants of an `every` action with another source state, or with another target state.
fn bulk_transition_variants(action: &str, states: &[String]) -> Vec<String> {
    let action_words = words(action);
    let [keyword, from, _, to] = &action_words[..] else {
        return Vec::new();
    };
    if keyword.text != "every" {
        return Vec::new();
    }
    let variants = [from, to].into_iter().flat_map(|word| {
        let neighbours = adjacent_states(states, word.text).into_iter();
        neighbours.map(|state| replace_word(action, word, &state))
    });
    variants.collect()
}

/// Returns the states after and before `current` in cyclic order. Empty if `current` is not among `states`, or alone.
fn adjacent_states(states: &[String], current: &str) -> Vec<String> {
    let Some(index) = states.iter().position(|state| state == current) else {
        return Vec::new();
    };
    let count = states.len();
    let mut adjacent: Vec<String> = Vec::new();
    for neighbour in [index + 1, index + count - 1] {
        let neighbour = &states[neighbour % count];
        if neighbour != current && !adjacent.contains(neighbour) {
            adjacent.push(neighbour.clone());
        }
    }
    adjacent
}

/// Adds the mutants of a state: each permission removed or added, and each condition dropped or negated.
fn add_state_mutants(line: &str, side: usize, change: Change) {
    const PERMISSION_KEYWORDS: [&str; 4] = ["reads", "writes", "dirty", "holds"];
    let agent = ["remote", "home"][side];
    let (permissions_text, waits) = match line.find(" waits ") {
        Some(index) => line.split_at(index),
        None => (line, ""),
    };
    let words = words(permissions_text);
    let name = words[0].text;
    // Each permission with its condition.
    let mut starts: Vec<usize> = (words.iter())
        .filter(|word| PERMISSION_KEYWORDS.contains(&word.text))
        .map(|word| word.start)
        .collect();
    starts.push(permissions_text.len());
    let permissions: Vec<&str> = (starts.windows(2))
        .map(|window| {
            permissions_text[window[0]..window[1]]
                .trim()
                .trim_end_matches(',')
        })
        .collect();
    let original = format!("{name} {}{waits}", permissions.join(" "));
    let mut add_mutant = |changed: Vec<String>, difference: String| {
        let line = format!("    {name} {}{waits}", changed.join(" "));
        let description = format!("{agent} state {}: {difference}", collapse_spaces(&original));
        change("permission of a state", description, line);
    };
    let permissions: Vec<String> = permissions.into_iter().map(String::from).collect();
    for keyword in PERMISSION_KEYWORDS {
        let mut changed = permissions.clone();
        let has_keyword = |permission: &String| permission.split(' ').next() == Some(keyword);
        match permissions.iter().position(has_keyword) {
            Some(index) => {
                changed.remove(index);
                add_mutant(changed, format!("without `{keyword}`"));
            }
            None => {
                changed.push(keyword.to_string());
                add_mutant(changed, format!("with `{keyword}`"));
            }
        }
    }
    for index in 0..permissions.len() {
        let Some((keyword, condition)) = permissions[index].split_once(" if ") else {
            continue;
        };
        for (replacement, difference) in [
            (keyword.to_string(), "always"),
            (
                format!("{keyword} if not ({condition})"),
                "its condition negated",
            ),
        ] {
            let mut changed = permissions.clone();
            changed[index] = replacement;
            add_mutant(changed, format!("`{keyword}` {difference}"));
        }
    }
}

/// Adds mutants with another payload for each message: none, a line or a dirty line; or none, a store or a partial
/// store.
fn add_message_mutants(line: &str, change: Change) {
    for item in message_items(line) {
        let store_payload = ["store", "partial store"]
            .iter()
            .find(|store| item.carries == **store);
        let payloads: &[&str] = match store_payload {
            Some(_) => &["", "store", "partial store"],
            None => &["", "line", "line, dirty"],
        };
        for &payload in payloads.iter().filter(|&&payload| payload != item.carries) {
            let mut content: Vec<&str> = Vec::new();
            content.extend(Some(payload).filter(|payload| !payload.is_empty()));
            content.extend(item.fields.iter().map(String::as_str));
            let content = match content.is_empty() {
                true => String::new(),
                false => format!(" ({})", content.join(", ")),
            };
            let difference = match payload {
                "" => "carries nothing".to_string(),
                payload => format!("carries `{payload}`"),
            };
            let changed_line = format!(
                "{}{}{content}{}",
                &line[..item.start],
                item.name,
                &line[item.end..]
            );
            change(
                "bytes of a message",
                format!(
                    "message {}: {difference}",
                    collapse_spaces(&line[item.start..item.end])
                ),
                changed_line,
            );
        }
    }
}

/// A message of a group: `NAME` or `NAME (contents)`.
struct MessageItem {
    /// Name of the message.
    name: String,
    /// Payload: `line`, `line, dirty`, `store`, `partial store` or empty.
    carries: String,
    /// Declarations of the fields: `NAME: TYPE`.
    fields: Vec<String>,
    /// Byte offset of the item in its line.
    start: usize,
    /// Byte offset after the item, without trailing spaces.
    end: usize,
}

/// Returns the messages that a line declares, in order. Empty if the line contains no colon.
fn message_items(line: &str) -> Vec<MessageItem> {
    let Some((channel, _)) = line.split_once(':') else {
        return Vec::new();
    };
    let items_start = channel.len() + 1;
    let mut items = Vec::new();
    for (start, end) in split_outside_brackets(&line[items_start..], ',') {
        let item = line[items_start + start..items_start + end].trim_end();
        let start = items_start + end
            - line[items_start + start..items_start + end]
                .trim_start()
                .len();
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
fn split_actions(cell: &str) -> Vec<String> {
    let parts = split_outside_brackets(cell, ',').into_iter();
    let parts = parts.map(|(start, end)| cell[start..end].trim().to_string());
    parts.filter(|part| !part.is_empty()).collect()
}

/// Returns the byte ranges between separators outside parentheses and braces.
fn split_outside_brackets(text: &str, separator: char) -> Vec<(usize, usize)> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (position, character) in text.char_indices() {
        match character {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            _ if character == separator && depth == 0 => {
                parts.push((start, position));
                start = position + 1;
            }
            _ => {}
        }
    }
    parts.push((start, text.len()));
    parts
}

fn split_cells(line: &str) -> Vec<&str> {
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
        let continues = open > 0
            || line.trim_start().starts_with('|')
            || lines.last().is_some_and(|last| last.ends_with(','));
        match lines.last_mut() {
            Some(last) if continues => {
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
