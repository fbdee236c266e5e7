//! Mutants of rows: other guards, actions and next states of each pair of a state and an event.

use crate::expressions::{actions_commute, alternatives, Alternative};
use crate::mutation::Mutation;
use crate::source::{split_cells, split_outside_brackets, Role, Source};
use crate::words::{replace_word, words};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Carries, Home, Type};

/// Adds the mutants of a row, pair by pair. `role` is the agent whose row it is.
pub fn add_row_mutants(source: &Source, line: &str, role: Role, mutations: &mut Vec<Mutation>) {
    let states = source.states(role);
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
            let other_states: Vec<&str> = all_states
                .iter()
                .copied()
                .filter(|&other| other != state)
                .collect();
            let other_events: Vec<&str> = events
                .iter()
                .copied()
                .filter(|&other| other != event)
                .collect();
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
            pair.add_mutant(mutations, "row dropped", "dropped".into(), Vec::new());
            pair.add_repetition_mutant(mutations);
            if !next.is_empty() {
                let current_state = if next == "stay" { state } else { next };
                for replacement in adjacent_states(states, current_state) {
                    pair.add_mutant(
                        mutations,
                        "another next state",
                        format!("to {replacement}"),
                        pair.changed_row(guard, &actions, &replacement),
                    );
                }
            }
            for index in 0..actions.len() {
                add_action_mutants(source, &pair, role, index, mutations);
            }
            add_swap_mutants(source, &pair, mutations);
            pair.add_guard_mutants(mutations);
        }
    }
}

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
        mutations: &mut Vec<Mutation>,
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
        mutations.push(Mutation {
            kind,
            description: format!("{pair}: {difference}"),
            line: lines.join("\n"),
        });
    }

    /// Adds the mutant that repeats the actions or, without an effect, the row.
    fn add_repetition_mutant(&self, mutations: &mut Vec<Mutation>) {
        if self.has_effect() {
            let doubled_actions: Vec<String> =
                self.actions.iter().chain(self.actions).cloned().collect();
            self.add_mutant(
                mutations,
                "actions doubled",
                "its actions twice".into(),
                self.changed_row(self.guard, &doubled_actions, self.next),
            );
        } else {
            let row = self.changed_row(self.guard, self.actions, self.next);
            self.add_mutant(
                mutations,
                "row doubled",
                "the row twice".into(),
                [row.clone(), row].concat(),
            );
        }
    }

    /// Adds the mutants of the guard: negated, removed, and with replaced operators or operands.
    fn add_guard_mutants(&self, mutations: &mut Vec<Mutation>) {
        let Some(guard) = self.guard else { return };
        let negated = format!("not ({guard})");
        self.add_mutant(
            mutations,
            "guard negated",
            "its guard negated".into(),
            self.changed_row(Some(&negated), self.actions, self.next),
        );
        self.add_mutant(
            mutations,
            "guard weakened",
            "without its guard".into(),
            self.changed_row(None, self.actions, self.next),
        );
        for replacement in alternatives(guard) {
            self.add_mutant(
                mutations,
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

/// Adds the mutants of one action of a pair, by its index: without it, and with replacements.
fn add_action_mutants(
    source: &Source,
    pair: &RowPair,
    role: Role,
    index: usize,
    mutations: &mut Vec<Mutation>,
) {
    let mut remaining = pair.actions.to_vec();
    let dropped = remaining.remove(index);
    let row_with = |replacement: String| {
        let mut changed_actions = pair.actions.to_vec();
        changed_actions[index] = replacement;
        pair.changed_row(pair.guard, &changed_actions, pair.next)
    };
    if pair.has_effect() {
        pair.add_mutant(
            mutations,
            "action dropped",
            format!("without `{dropped}`"),
            pair.changed_row(pair.guard, &remaining, pair.next),
        );
    }
    for replacement in bulk_transition_variants(&dropped, source.states(role)) {
        pair.add_mutant(
            mutations,
            "another state of every line",
            format!("`{replacement}` instead"),
            row_with(replacement),
        );
    }
    for replacement in sends_of_other_messages(source, &dropped) {
        // If two sends can become the same one, name the send that changes.
        let has_same_replacement =
            |action: &String| sends_of_other_messages(source, action).contains(&replacement);
        let difference = match remaining.iter().any(has_same_replacement) {
            true => format!("`{replacement}` instead of `{dropped}`"),
            false => format!("`{replacement}` instead"),
        };
        pair.add_mutant(
            mutations,
            "another message",
            difference,
            row_with(replacement),
        );
    }
    let receivers = sends_to_other_receivers(source, role, pair.event, &dropped).into_iter();
    let receivers = receivers.map(|text| Alternative::new("another receiver", text));
    for replacement in receivers.chain(alternatives(&dropped)) {
        pair.add_mutant(
            mutations,
            replacement.kind,
            format!("`{}` instead of `{dropped}`", replacement.text),
            row_with(replacement.text),
        );
    }
}

/// Adds the mutants that swap two successive actions of a pair, unless the actions commute.
fn add_swap_mutants(source: &Source, pair: &RowPair, mutations: &mut Vec<Mutation>) {
    for index in 1..pair.actions.len() {
        let (first, second) = (&pair.actions[index - 1], &pair.actions[index]);
        let ordered = |first: &str, second: &str| are_ordered(source, first, second);
        let carries = |message: &str| carries_data(source, message);
        if !actions_commute(first, second, &ordered, &carries) {
            let mut changed_actions = pair.actions.to_vec();
            changed_actions.swap(index - 1, index);
            pair.add_mutant(
                mutations,
                "actions swapped",
                format!("`{second}` before `{first}`"),
                pair.changed_row(pair.guard, &changed_actions, pair.next),
            );
        }
    }
}

/// Returns the variants of a send with other receivers: the default receiver, and each remote named by a variable
/// or by a field of the event's message. Empty if the action is no send.
fn sends_to_other_receivers(source: &Source, role: Role, event: &str, action: &str) -> Vec<String> {
    let (Some(send), Some(protocol)) = (action.strip_prefix("send "), &source.protocol) else {
        return Vec::new();
    };
    let (message, named_receiver) = match send.rsplit_once(" to ") {
        Some((message, named_receiver)) => (message, Some(named_receiver.trim())),
        None => (send, None),
    };
    let default = match role {
        Role::Remote => "home",
        Role::Home => "sender",
    };
    let receiver = named_receiver.unwrap_or(default);
    let mut sends = Vec::new();
    if receiver != default {
        sends.push(format!("send {message}"));
    }
    let controller: Option<&Controller> = match (role, &protocol.home) {
        (Role::Remote, _) => Some(&protocol.remote),
        (Role::Home, Home::Controller(home)) => Some(home),
        (Role::Home, Home::Policy(_)) => None,
    };
    let fields = source
        .find_message(event)
        .map(|(_, message)| &message.fields);
    let fields = fields.into_iter().flatten();
    let variables = controller
        .into_iter()
        .flat_map(|controller| &controller.variables);
    let typed_names = fields.map(|field| (&field.name, field.ty));
    let typed_names = typed_names.chain(variables.map(|variable| (&variable.name, variable.ty)));
    let remotes = typed_names.filter(|(name, ty)| *ty == Type::Remote && *name != receiver);
    sends.extend(remotes.map(|(name, _)| format!("send {message} to {name}")));
    sends
}

/// Returns true if two messages between the same agents are delivered in send order. Unknown messages count as
/// ordered.
fn are_ordered(source: &Source, first: &str, second: &str) -> bool {
    let (Some(protocol), Some((first_id, first_message)), Some((second_id, second_message))) = (
        &source.protocol,
        source.find_message(first),
        source.find_message(second),
    ) else {
        return true;
    };
    let order = protocol.order_of(first_message.channel);
    order.is_some() && order == protocol.order_of(second_message.channel)
        || protocol.earlier_messages(first_id).contains(&second_id)
        || protocol.earlier_messages(second_id).contains(&first_id)
}

/// Returns true if a message carries data, or is unknown.
fn carries_data(source: &Source, message: &str) -> bool {
    let resolved = source.find_message(message);
    resolved.is_none_or(|(_, message)| message.carries != Carries::Nothing)
}

/// Returns the variants of a send with every other message of the same channel, with unchanged fields. Empty if
/// the action is no send.
fn sends_of_other_messages(source: &Source, action: &str) -> Vec<String> {
    let words = words(action);
    let (Some(send), Some(message)) = (words.first(), words.get(1)) else {
        return Vec::new();
    };
    if send.text != "send" {
        return Vec::new();
    }
    let other_names = source.other_messages_of_channel(message.text).into_iter();
    other_names
        .map(|name| replace_word(action, message, &name))
        .collect()
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

/// Splits the actions cell of a row.
fn split_actions(cell: &str) -> Vec<String> {
    let parts = split_outside_brackets(cell, ',').into_iter();
    let parts = parts.map(|(start, end)| cell[start..end].trim().to_string());
    parts.filter(|part| !part.is_empty()).collect()
}
