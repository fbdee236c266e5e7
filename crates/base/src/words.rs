//! Wording of reports: counts with nouns, and suggestions for misspelt names.

use std::cmp::Reverse;

/// A count with its noun, whose plural ends in `s`: `1 state`, `2 states`.
pub fn counted(count: impl Into<u128>, noun: &str) -> String {
    match count.into() {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// A noun with its article, chosen by the first letter: `a load`, `an evict`.
pub fn with_article(noun: &str) -> String {
    match noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
        true => format!("an {noun}"),
        false => format!("a {noun}"),
    }
}

/// Returns ``did you mean `X`? `` if one of `names` is similar to the unknown name `misspelt`, otherwise an empty
/// string.
pub fn did_you_mean<'a>(misspelt: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(misspelt, names) {
        Some(name) => format!("did you mean `{name}`? "),
        None => String::new(),
    }
}

/// Returns the name most similar to an unknown one, if any is similar enough. Ties are decided by the longest common
/// prefix, because the first letters are seldom wrong.
pub fn nearest<'a>(misspelt: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let names = names.into_iter();
    // Typing errors are few, so names of a very different length are excluded; long names would be slow to compare.
    let candidates =
        names.filter(|name| name.len() <= 64 && name.len().abs_diff(misspelt.len()) <= 3);
    let (best_distance, _, name) = candidates
        .map(|name| {
            (
                distance(misspelt, name),
                Reverse(common_prefix_length(misspelt, name)),
                name,
            )
        })
        .min()?;
    let is_near =
        best_distance < misspelt.len() && best_distance <= 1 + misspelt.len().max(name.len()) / 4;
    is_near.then_some(name)
}

/// Length of the common prefix of two names in bytes, ignoring case.
fn common_prefix_length(left: &str, right: &str) -> usize {
    let pairs = left.bytes().zip(right.bytes());
    pairs.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count()
}

/// Edit distance, ignoring case: insert, delete, replace.
fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in right.iter().enumerate() {
            let change = diagonal + usize::from(!a.eq_ignore_ascii_case(b));
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::{counted, did_you_mean, with_article};

    #[test]
    fn only_a_count_of_one_is_singular() {
        let texts = [0u8, 1, 2].map(|count| counted(count, "state"));
        assert_eq!(texts, ["0 states", "1 state", "2 states"]);
    }

    #[test]
    fn only_similar_names_are_suggested() {
        let names = ["link.latency", "link.lanes", "home.latency"];
        for (misspelt, meant) in [
            ("link.latncy", "did you mean `link.latency`? "),
            ("Link.Latency", "did you mean `link.latency`? "),
            ("link.lane", "did you mean `link.lanes`? "),
            ("dram.banks", ""),
            ("x", ""),
            ("", ""),
        ] {
            assert_eq!(did_you_mean(misspelt, names), meant, "{misspelt}");
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
