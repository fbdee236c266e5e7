//! Mutations of one action or guard: counts off by one, other comparisons, sets with other members, data from another
//! source. Test for actions that commute.

use crate::words::{replace_word, words, Word};

/// A replacement for an action or guard.
pub struct Alternative {
    /// Mutation operator, in words: `count off by one`.
    pub kind: &'static str,
    /// Source text of the new action or guard.
    pub text: String,
}

impl Alternative {
    /// Creates an alternative from its mutation operator and source text.
    pub fn new(kind: &'static str, text: String) -> Alternative {
        Alternative { kind, text }
    }
}

/// Comparison operators with their replacements. The first match counts, so longer operators precede their prefixes.
const COMPARISONS: [(&str, &[&str]); 6] = [
    ("!=", &[]),
    ("==", &[">=", "<="]),
    ("<=", &["<"]),
    (">=", &[">"]),
    ("<", &["<="]),
    (">", &[">="]),
];

/// Assignment operators, whose `=` is not a comparison.
const ASSIGNMENTS: [&str; 3] = [":=", "+=", "-="];

/// Actions that write data of the current message or of a deferred store, or defer a store, with their replacements.
const DATA_ACTIONS: [(&str, &[&str]); 3] = [
    ("write", &["write deferred", "defer"]),
    ("write deferred", &["write"]),
    ("defer", &["write"]),
];

/// Returns the alternatives to the text of an action or a guard, operator by operator, each from left to right.
pub fn alternatives(text: &str) -> Vec<Alternative> {
    let mut collected = Vec::new();
    let mut add = |kind, texts: Vec<String>| {
        collected.extend(texts.into_iter().map(|text| Alternative::new(kind, text)));
    };
    add("count off by one", off_by_one(text));
    add("another comparison", changed_comparisons(text));
    add("set not cleared", kept_members(text));
    add("member not added", without_terms(text, " + {"));
    let bytes = DATA_ACTIONS.iter().filter(|(action, _)| *action == text);
    let bytes = bytes.flat_map(|(_, replacements)| replacements.iter());
    add(
        "bytes from elsewhere",
        bytes.map(|replacement| replacement.to_string()).collect(),
    );
    collected
}

/// Returns variants with one number or one count of a set increased or decreased by 1.
fn off_by_one(text: &str) -> Vec<String> {
    let mut variants = Vec::new();
    for word in words(text) {
        if let Ok(number) = word.text.parse::<u64>() {
            let neighbours = [number.checked_add(1), number.checked_sub(1)];
            let neighbours = neighbours.into_iter().flatten();
            variants.extend(
                neighbours.map(|neighbour| replace_word(text, &word, &neighbour.to_string())),
            );
        } else if let Some(end) = end_of_count(text, &word) {
            for step in [" + 1", " - 1"] {
                variants.push(format!("{}{step}{}", &text[..end], &text[end..]));
            }
        }
    }
    variants
}

/// Returns the byte offset after a `count(SET)` that begins with this word; `None` if none begins with it.
fn end_of_count(text: &str, word: &Word) -> Option<usize> {
    let argument_start = word.start + word.text.len();
    if word.text != "count" || !text[argument_start..].starts_with('(') {
        return None;
    }
    let mut depth = 0;
    for (position, character) in text[argument_start..].char_indices() {
        match character {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(argument_start + position + 1),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns variants with one comparison operator replaced, from left to right.
fn changed_comparisons(text: &str) -> Vec<String> {
    let mut variants = Vec::new();
    let mut position = 0;
    while let Some(next) = text[position..].chars().next() {
        let remaining_text = &text[position..];
        if let Some(assignment) = ASSIGNMENTS
            .iter()
            .find(|assignment| remaining_text.starts_with(**assignment))
        {
            position += assignment.len();
            continue;
        }
        let Some((operator, replacements)) = COMPARISONS
            .iter()
            .find(|(operator, _)| remaining_text.starts_with(operator))
        else {
            position += next.len_utf8();
            continue;
        };
        let end = position + operator.len();
        let right_side = words(&text[end..]);
        let is_zero = right_side.first().is_some_and(|word| word.text == "0");
        for replacement in *replacements {
            // Skip `<= 0`: counts are not negative, so it equals `== 0`.
            if !(is_zero && *replacement == "<=") {
                variants.push(format!(
                    "{}{replacement}{}",
                    &text[..position],
                    &text[end..]
                ));
            }
        }
        position = end;
    }
    variants
}

/// Returns variants in which a set keeps a removed member, or keeps its members on assignment.
fn kept_members(text: &str) -> Vec<String> {
    let mut changed = without_terms(text, " - {");
    if let Some((set, member)) = text.split_once(" := {") {
        if member.trim() != "}" && member.ends_with('}') {
            changed.push(format!("{set} += {{{member}"));
        }
    }
    changed
}

/// Returns variants without one of the terms that begin with `prefix` and end with a brace.
fn without_terms(text: &str, prefix: &str) -> Vec<String> {
    let matches = text.match_indices(prefix);
    let terms = matches.filter_map(|(position, _)| {
        let length = text[position..].find('}')? + 1;
        Some(format!(
            "{}{}",
            &text[..position],
            &text[position + length..]
        ))
    });
    terms.collect()
}

/// Returns true if two actions of a row have the same effect in either order. Neither may set a variable that the
/// other names, at most one may access data, and their messages must be unordered. `ordered` compares two messages by
/// name; `carries` returns true for a message with data.
pub fn actions_commute(
    first: &str,
    second: &str,
    ordered: &dyn Fn(&str, &str) -> bool,
    carries: &dyn Fn(&str) -> bool,
) -> bool {
    let mentions = |text: &str, name: &str| words(text).iter().any(|word| word.text == name);
    let sets = |action: &str, other: &str| {
        assigned_variable(action).is_some_and(|name| mentions(other, name))
    };
    let has_loop = [first, second]
        .iter()
        .any(|action| action.starts_with("for "));
    if first == second {
        return true;
    }
    if has_loop || sets(first, second) || sets(second, first) {
        return false;
    }
    match (sent_message(first), sent_message(second)) {
        (Some(first_message), Some(second_message)) => !ordered(first_message, second_message),
        (Some(message), None) | (None, Some(message)) if !carries(message) => true,
        _ => assigned_variable(first).is_some() || assigned_variable(second).is_some(),
    }
}

/// Returns the variable that an action sets, if any.
fn assigned_variable(action: &str) -> Option<&str> {
    let name = words(action).first()?.text;
    let sets = ASSIGNMENTS
        .iter()
        .any(|assignment| action.contains(assignment));
    sets.then_some(name)
}

/// Returns the message that an action sends, if any.
fn sent_message(action: &str) -> Option<&str> {
    let rest = action.strip_prefix("send ")?;
    words(rest).first().map(|word| word.text)
}

#[cfg(test)]
mod tests {
    use super::{actions_commute, alternatives};

    fn texts(text: &str) -> Vec<String> {
        let alternatives = alternatives(text).into_iter();
        alternatives.map(|alternative| alternative.text).collect()
    }

    #[test]
    fn counts_and_comparisons_are_changed_one_at_a_time() {
        assert_eq!(
            texts("count(sharers - { sender }) == acks and left > 1"),
            [
                "count(sharers - { sender }) + 1 == acks and left > 1",
                "count(sharers - { sender }) - 1 == acks and left > 1",
                "count(sharers - { sender }) == acks and left > 2",
                "count(sharers - { sender }) == acks and left > 0",
                "count(sharers - { sender }) >= acks and left > 1",
                "count(sharers - { sender }) <= acks and left > 1",
                "count(sharers - { sender }) == acks and left >= 1",
                "count(sharers) == acks and left > 1",
            ]
        );
        assert_eq!(texts("owner != none"), [""; 0]);
    }

    #[test]
    fn counts_are_not_compared_with_less_than_zero() {
        assert_eq!(texts("left == 0"), ["left == 1", "left >= 0"]);
    }

    #[test]
    fn set_and_data_assignments_are_mutated() {
        assert_eq!(texts("sharers := { sender }"), ["sharers += { sender }"]);
        assert_eq!(texts("sharers := {}"), [""; 0]);
        assert_eq!(texts("s := s + { sender }"), ["s := s"]);
        assert_eq!(texts("write"), ["write deferred", "defer"]);
    }

    #[test]
    fn independent_actions_commute() {
        let ordered = |a: &str, b: &str| (a, b) == ("Data", "Ack");
        let carries = |message: &str| message == "Data";
        let commute = |first, second| actions_commute(first, second, &ordered, &carries);
        assert!(commute("send Data", "left := 1"));
        assert!(!commute("send Data (n = left)", "left := 1"));
        assert!(!commute("write", "send Data"));
        assert!(commute("write", "send Ack"));
        assert!(!commute("send Data", "send Ack"));
        assert!(commute("send Data", "send Inv"));
        assert!(!commute("left := n", "n := 0"));
        assert!(!commute("for h in homes { all += sent[h] }", "left := all"));
    }
}
