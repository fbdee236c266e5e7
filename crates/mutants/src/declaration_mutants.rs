//! Mutants of declarations: permissions of states, and payloads of messages.

use crate::mutation::Mutation;
use crate::source::{collapse_spaces, message_items, Role};
use crate::words::words;

/// Adds the mutants of a state: each permission removed or added, and each condition dropped or negated.
pub fn add_state_mutants(line: &str, role: Role, mutations: &mut Vec<Mutation>) {
    const PERMISSION_KEYWORDS: [&str; 4] = ["reads", "writes", "dirty", "holds"];
    let agent = match role {
        Role::Remote => "remote",
        Role::Home => "home",
    };
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
        mutations.push(Mutation {
            kind: "permission of a state",
            description,
            line,
        });
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
pub fn add_message_mutants(line: &str, mutations: &mut Vec<Mutation>) {
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
            let item_text = collapse_spaces(&line[item.start..item.end]);
            mutations.push(Mutation {
                kind: "bytes of a message",
                description: format!("message {item_text}: {difference}"),
                line: changed_line,
            });
        }
    }
}
