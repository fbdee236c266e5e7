//! Wording of reports: counts with nouns, and suggestions for misspelt names.

use std::cmp::Reverse;

/// A count with its noun, whose plural ends in `s`: `1 state`, `2 states`.
pub fn counted(count: impl Into<u128>, noun: &str) -> String {
    match count.into() {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// A noun with its article: `a load`, `an evict`.
pub fn with_article(noun: &str) -> String {
    match noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
        true => format!("an {noun}"),
        false => format!("a {noun}"),
    }
}

/// Returns ``did you mean `X`? `` if one of `names` is similar to the unknown name `wrong`, otherwise an empty string.
pub fn did_you_mean<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(wrong, names) {
        Some(name) => format!("did you mean `{name}`? "),
        None => String::new(),
    }
}

/// Returns the name most similar to an unknown one, if any is similar enough. Ties are decided by the longest common
/// prefix, because the first letters are seldom wrong.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let names = names.into_iter();
    // Typing errors are few, so names of a very different length are excluded; long names would be slow to compare.
    let alike = names.filter(|name| name.len() <= 64 && name.len().abs_diff(wrong.len()) <= 3);
    let (far, _, name) = alike
        .map(|name| {
            (
                distance(wrong, name),
                Reverse(common_prefix_length(wrong, name)),
                name,
            )
        })
        .min()?;
    let near = far < wrong.len() && far <= 1 + wrong.len().max(name.len()) / 4;
    near.then_some(name)
}

/// Length of the common prefix of two names in bytes, ignoring case.
fn common_prefix_length(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    pairs.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count()
}

/// Edit distance, ignoring case: insert, delete, replace.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.iter().enumerate() {
            let change = diagonal + usize::from(!a.eq_ignore_ascii_case(b));
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::{counted, did_you_mean, with_article};

    #[test]
    fn only_a_count_of_one_is_singular() {
        let said = [0u8, 1, 2].map(|count| counted(count, "state"));
        assert_eq!(said, ["0 states", "1 state", "2 states"]);
    }

    #[test]
    fn only_similar_names_are_suggested() {
        let names = ["link.latency", "link.links", "home.latency"];
        for (wrong, meant) in [
            ("link.latncy", "did you mean `link.latency`? "),
            ("Link.Latency", "did you mean `link.latency`? "),
            ("link.link", "did you mean `link.links`? "),
            ("dram.banks", ""),
            ("x", ""),
            ("", ""),
        ] {
            assert_eq!(did_you_mean(wrong, names), meant, "{wrong}");
        }
        assert_eq!(did_you_mean("ab", []), "");
        // Two are as near, and one begins alike.
        assert_eq!(
            did_you_mean("LDRR", ["LDAR", "LDR"]),
            "did you mean `LDR`? "
        );
        // A single letter is near to everything, and means nothing.
        assert_eq!(did_you_mean("S", ["M"]), "");
    }

    #[test]
    fn article_matches_the_initial_sound() {
        assert_eq!(["evict", "load"].map(with_article), ["an evict", "a load"]);
    }
}
