//! A specification as logical lines, each with its kind.

use crate::words::words;
use cohkit_protocol::protocol::{Message, MessageId, Protocol};
use cohkit_protocol::text::parse;

/// Agent that a line of the specification is about.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Role {
    /// The remotes, of all kinds.
    Remote,
    /// The home.
    Home,
}

/// Kind of a line of the specification.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LineKind {
    /// Row of the table of this agent.
    Row(Role),
    /// Declaration of a state of this agent.
    State(Role),
    /// Declaration of the messages of a channel.
    Messages,
    /// Line of the policy of a home that is to be constructed.
    Policy,
    /// Line without mutants.
    Other,
}

/// A specification as logical lines: comments removed, continued lines joined.
pub struct Source {
    /// Logical lines. Descriptions refer to them by their text, not their number.
    pub lines: Vec<String>,
    /// Kind of each logical line.
    pub line_kinds: Vec<LineKind>,
    /// States of the remote, in source order.
    remote_states: Vec<String>,
    /// States of the home, in source order.
    home_states: Vec<String>,
    /// Names of the messages of each channel, in source order.
    channels: Vec<Vec<String>>,
    /// The resolved protocol; `None` if the specification is invalid.
    pub protocol: Option<Protocol>,
}

impl Source {
    /// Reads a specification into logical lines and classifies each by the blocks around it.
    pub fn read(text: &str) -> Source {
        let mut source = Source {
            lines: Vec::new(),
            line_kinds: Vec::new(),
            remote_states: Vec::new(),
            home_states: Vec::new(),
            channels: Vec::new(),
            protocol: parse(text).ok(),
        };
        let mut blocks: Vec<String> = Vec::new();
        for line in logical_lines(text) {
            let words = words(&line);
            let first = words.first().map_or("", |word| word.text);
            let role = match blocks.first().map(String::as_str) {
                Some("remote") => Some(Role::Remote),
                Some("home") => Some(Role::Home),
                _ => None,
            };
            let inner = blocks.last().map_or("", String::as_str);
            let line_kind = match (role, inner) {
                (Some(role), "states") if !first.is_empty() => {
                    source.states_mut(role).push(first.to_string());
                    LineKind::State(role)
                }
                (None, "messages") if line.contains(':') => {
                    let names = message_items(&line).into_iter().map(|item| item.name);
                    source.channels.push(names.collect());
                    LineKind::Messages
                }
                (Some(role), "remote" | "home") if split_cells(&line).len() >= 3 => {
                    LineKind::Row(role)
                }
                (Some(Role::Home), "home" | "on") if !first.is_empty() => LineKind::Policy,
                _ => LineKind::Other,
            };
            // Braces in rows are those of sets.
            if !matches!(line_kind, LineKind::Row(_)) {
                for character in line.chars() {
                    match character {
                        '{' => blocks.push(first.to_string()),
                        '}' => drop(blocks.pop()),
                        _ => {}
                    }
                }
            }
            source.lines.push(line);
            source.line_kinds.push(line_kind);
        }
        source
    }

    /// Names of the states of an agent, in source order.
    pub fn states(&self, role: Role) -> &[String] {
        match role {
            Role::Remote => &self.remote_states,
            Role::Home => &self.home_states,
        }
    }

    fn states_mut(&mut self, role: Role) -> &mut Vec<String> {
        match role {
            Role::Remote => &mut self.remote_states,
            Role::Home => &mut self.home_states,
        }
    }

    /// Returns the message with this name, if the specification is valid and declares it.
    pub fn find_message(&self, name: &str) -> Option<(MessageId, &Message)> {
        let protocol = self.protocol.as_ref()?;
        let mut messages = protocol.message_ids().map(|id| (id, protocol.message(id)));
        messages.find(|(_, message)| message.name == name)
    }

    /// Returns the other messages of a message's channel.
    pub fn other_messages_of_channel(&self, message: &str) -> Vec<String> {
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

    /// Returns one stable state of the remote for each permission. States that wait for messages are not stable.
    pub fn states_by_permission(&self) -> Vec<String> {
        let mut known_permissions = Vec::new();
        let mut names = Vec::new();
        for (line, line_kind) in self.lines.iter().zip(&self.line_kinds) {
            let words = words(line);
            let has_word = |word: &str| words.iter().any(|other| other.text == word);
            if *line_kind != LineKind::State(Role::Remote) || has_word("waits") {
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

/// A message of a group: `NAME` or `NAME (contents)`.
pub struct MessageItem {
    /// Name of the message.
    pub name: String,
    /// Payload: `line`, `line, dirty`, `store`, `partial store` or empty.
    pub carries: String,
    /// Declarations of the fields: `NAME: TYPE`.
    pub fields: Vec<String>,
    /// Byte offset of the item in its line.
    pub start: usize,
    /// Byte offset after the item, without trailing spaces.
    pub end: usize,
}

/// Returns the messages that a line declares, in order. Empty if the line contains no colon.
pub fn message_items(line: &str) -> Vec<MessageItem> {
    let Some((channel, _)) = line.split_once(':') else {
        return Vec::new();
    };
    let items_start = channel.len() + 1;
    let mut items = Vec::new();
    for (start, end) in split_outside_brackets(&line[items_start..], ',') {
        let (start, end) = (items_start + start, items_start + end);
        let start = end - line[start..end].trim_start().len();
        let item = line[start..end].trim_end();
        let (name, content) = match item.split_once('(') {
            Some((name, content)) => (name.trim(), content.trim_end_matches(')')),
            None => (item, ""),
        };
        let contents = content
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let (fields, carries): (Vec<&str>, Vec<&str>) =
            contents.partition(|part| part.contains(':'));
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

/// Returns the byte ranges between separators outside parentheses and braces.
pub fn split_outside_brackets(text: &str, separator: char) -> Vec<(usize, usize)> {
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

/// Splits a row of a table into its cells.
pub fn split_cells(line: &str) -> Vec<&str> {
    line.split('|').map(str::trim).collect()
}

/// Returns the line with single spaces between its words.
pub fn collapse_spaces(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the logical lines of a source, without comments. A line continues after a comma, before a `|`, and inside
/// parentheses.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open_parentheses = 0i32;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or("").trim_end();
        let continues = open_parentheses > 0
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
        open_parentheses += count('(') - count(')');
    }
    lines
}
