//! Wording of reports: counts with nouns, and suggestions for misspelt names.

use std::cmp::Reverse;

/// Length in bytes of the longest names that are suggested.
const MAX_COMPARED_LENGTH: usize = 64;

/// Largest difference in length between an unknown name and a suggested one, in bytes.
const MAX_LENGTH_DIFFERENCE: usize = 3;

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
    let candidates = names.filter(|name| {
        let difference = name.len().abs_diff(misspelt.len());
        name.len() <= MAX_COMPARED_LENGTH && difference <= MAX_LENGTH_DIFFERENCE
    });
    let (best_distance, _, name) = candidates
        .map(|name| {
            (
                distance(misspelt, name),
                Reverse(common_prefix_length(misspelt, name)),
                name,
            )
        })
        .min()?;
    // One error, and another one for every four bytes. If every byte differs, the names have nothing in common.
    let max_distance = 1 + misspelt.len().max(name.len()) / 4;
    let is_near = best_distance < misspelt.len() && best_distance <= max_distance;
    is_near.then_some(name)
}

/// Length of the common prefix of two names in bytes, ignoring case.
fn common_prefix_length(left: &str, right: &str) -> usize {
    let pairs = left.bytes().zip(right.bytes());
    pairs.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count()
}

/// Edit distance in bytes, ignoring case: insert, delete, replace (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    // Distances of the first bytes of `left` to each prefix of `right`, by its length.
    let mut distances: Vec<usize> = (0..=right.len()).collect();
    for (left_index, left_byte) in left.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut distances[0], left_index + 1);
        for (right_index, right_byte) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(!left_byte.eq_ignore_ascii_case(right_byte));
            diagonal = distances[right_index + 1];
            let inserted = distances[right_index] + 1;
            let deleted = diagonal + 1;
            distances[right_index + 1] = replaced.min(inserted).min(deleted);
        }
    }
    distances[right.len()]
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
        // Both have the same distance, and `LDR` the longer common prefix.
        assert_eq!(
            did_you_mean("LDRR", ["LDAR", "LDR"]),
            "did you mean `LDR`? "
        );
        // Every single letter has distance 1, which shows no similarity.
        assert_eq!(did_you_mean("S", ["M"]), "");
    }

    #[test]
    fn article_matches_the_initial_sound() {
        assert_eq!(["evict", "load"].map(with_article), ["an evict", "a load"]);
    }
}
