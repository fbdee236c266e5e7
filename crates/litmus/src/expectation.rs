//! Observations of conditions, in the words of the herd tools, and those that a file expects.

use std::fmt;

/// Share of a test's outcomes that satisfies its condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Observation {
    /// No outcome.
    Never,
    /// Some outcomes, but not all.
    Sometimes,
    /// All outcomes, at least one.
    Always,
}

impl Observation {
    /// Returns the observation for the number of satisfying outcomes and the number of all outcomes.
    pub fn of(satisfying: usize, outcomes: usize) -> Observation {
        match satisfying {
            0 => Observation::Never,
            _ if satisfying == outcomes => Observation::Always,
            _ => Observation::Sometimes,
        }
    }

    /// Parses an expectation in the words of herd and of its users; ignores all further words.
    fn parse(word: &str) -> Option<Observation> {
        let end = word.find(|c: char| !c.is_ascii_alphabetic());
        let word = &word[..end.unwrap_or(word.len())];
        Some(match word.to_ascii_lowercase().as_str() {
            "never" | "forbid" | "forbidden" => Observation::Never,
            "sometimes" | "allow" | "allowed" => Observation::Sometimes,
            "always" | "require" | "required" => Observation::Always,
            _ => return None,
        })
    }

    /// Parses the expectation of a file: a line such as `Result: Never`, `Expected=Sometimes` or `Observation SB Always
    /// 3 0`, in a comment or in the header before the initial values.
    pub fn expected(text: &str) -> Option<Observation> {
        let decoration = |c: char| c.is_whitespace() || matches!(c, '*' | '(' | '/' | '"' | '#');
        let line = |line: &str| {
            let line = line.trim_start_matches(decoration);
            if let Some(rest) = line.strip_prefix("Observation ") {
                return Observation::parse(rest.split_whitespace().nth(1)?);
            }
            let (key, value) = line.split_once([':', '='])?;
            match key.trim().to_ascii_lowercase().as_str() {
                "result" | "expect" | "expected" => {
                    Observation::parse(value.trim_start_matches(decoration))
                }
                _ => None,
            }
        };
        text.lines().find_map(line)
    }
}

impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Observation::Never => "Never",
            Observation::Sometimes => "Sometimes",
            Observation::Always => "Always",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Observation::{self, Always, Never, Sometimes};

    /// Suites write their expectations in several forms; each must be found.
    #[test]
    fn expectations_are_read_from_comments_and_fields() {
        for (text, expected) in [
            ("C MP\n\n(*\n * Result: Never\n *)\n{}\n", Some(Never)),
            (
                "AArch64 SB\n\"PodWR Fre\"\nExpected=Sometimes\n{ }",
                Some(Sometimes),
            ),
            ("AArch64 SB\n(* Expect: Forbidden *)\n{ }", Some(Never)),
            ("// Observation SB Always 3 0\n", Some(Always)),
            ("C MP\n(* Result: DEADLOCK *)\n{}", None),
            ("AArch64 MP\n{ 0:X1=x; }\n P0 ;\nexists (0:X0=1)\n", None),
        ] {
            assert_eq!(Observation::expected(text), expected, "{text}");
        }
    }
}
