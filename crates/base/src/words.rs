//! How reports say what they count.

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

#[cfg(test)]
mod tests {
    use super::{counted, with_article};

    #[test]
    fn only_one_is_singular() {
        let said = [0u8, 1, 2].map(|count| counted(count, "state"));
        assert_eq!(said, ["0 states", "1 state", "2 states"]);
    }

    #[test]
    fn nouns_have_their_article() {
        assert_eq!(["evict", "load"].map(with_article), ["an evict", "a load"]);
    }
}
