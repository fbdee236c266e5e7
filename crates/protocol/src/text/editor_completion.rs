//! Completion: names and words that fit a position of a protocol file, for editors.
//!
//! The result is derived from the tokens before the position, by the block and the cell of the row around it. The
//! parser's tree is not used, because a file is hardly ever correct while it is being written.

use super::diagnostic::Sink;
use super::lexer::{lex, Token};
use super::parser::{BLOCKS, CLASSES};
use crate::controller::Access;

/// Completions that fit a position.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EditorCompletion {
    /// Kinds of names, as in [`super::Mention::kind`]; `None` for all of them.
    pub names: Option<Vec<&'static str>>,
    /// Words of the language.
    pub words: Vec<&'static str>,
    /// Start of the agent block around the position, in bytes; states and variables of other agents do not fit.
    pub agent: Option<u32>,
}

/// Returns the completions for a position, given in bytes from the start of the file. A name that ends there is being
/// written.
///
/// `None` in comments and titles, where nothing is completed.
pub fn complete_at(text: &str, position: u32) -> Option<EditorCompletion> {
    let preceding = text.get(..position as usize)?;
    let mut sink = Sink::default();
    let mut tokens = lex(preceding, &mut sink);
    tokens.pop();
    let end = tokens.last().map_or(0, |(_, span)| span.end as usize);
    let line = preceding[end..].rsplit('\n').next().unwrap_or_default();
    if line.contains(['#', '"']) {
        return None;
    }
    if tokens
        .last()
        .is_some_and(|(token, span)| *token == Token::Word && span.end == position)
    {
        tokens.pop();
    }
    let words = tokens.iter().map(|(token, span)| {
        (
            *token,
            &text[span.start as usize..span.end as usize],
            span.start,
        )
    });
    Some(Context::from_words(words).completion())
}

/// A token, its word and its start in bytes.
type Word<'t> = (Token, &'t str, u32);

/// Kinds of names and words of the language that fit.
type Completions = (Option<Vec<&'static str>>, Vec<&'static str>);

/// Completions with names of these kinds and these words of the language.
fn completions(names: &[&'static str], words: &[&'static str]) -> Completions {
    (Some(names.to_vec()), words.to_vec())
}

/// Statements of a home that is written as a policy. States in them are those of remotes.
const GOALS: [&str; 9] = [
    "on", "local", "reach", "stall", "accept", "under", "serve", "await", "assert",
];

/// Context of a position: the enclosing blocks, outermost first, and the statement up to the position.
#[derive(Default)]
struct Context<'t> {
    /// First word of the statement that opened each enclosing block, outermost first.
    blocks: Vec<Word<'t>>,
    /// Tokens of the statement that contains the position.
    statement: Vec<Word<'t>>,
}

impl<'t> Context<'t> {
    /// Finds the context at the end of a file's tokens, which need not form a correct file.
    fn from_words(words: impl Iterator<Item = Word<'t>>) -> Context<'t> {
        let mut context = Context::default();
        // Open braces of sets and loops in a row; they do not end the statement.
        let mut row_braces = 0_usize;
        for word in words {
            let in_row = context
                .statement
                .iter()
                .any(|(token, ..)| *token == Token::Bar);
            match word.0 {
                Token::OpenBrace if !in_row => {
                    context.blocks.extend(context.statement.first());
                    context.statement.clear();
                }
                Token::CloseBrace if row_braces == 0 => {
                    context.blocks.pop();
                    context.statement.clear();
                }
                Token::Newline | Token::Semicolon if row_braces == 0 => context.statement.clear(),
                token => {
                    match token {
                        Token::OpenBrace => row_braces += 1,
                        Token::CloseBrace => row_braces -= 1,
                        _ => {}
                    }
                    context.statement.push(word);
                }
            }
        }
        context
    }

    /// Last token of the statement.
    fn last(&self) -> Option<Word<'t>> {
        self.statement.last().copied()
    }

    /// True if the statement contains a token of this kind.
    fn has(&self, kind: Token) -> bool {
        self.statement.iter().any(|(token, ..)| *token == kind)
    }

    /// Completions for the context, by the keyword of the innermost block and the first word of the statement.
    fn completion(&self) -> EditorCompletion {
        let block = self.blocks.last().map(|(_, word, _)| *word);
        let first = self.statement.first().map(|(_, word, _)| *word);
        let has_word = |wanted: &str| self.statement.iter().any(|(_, word, _)| *word == wanted);
        let contents = ["line", "dirty", "store", "partial", "of", "remote", "home"];
        let (names, words) = match (block, first) {
            (None, None) => completions(&[], &BLOCKS),
            (None, Some("guarantee")) => completions(&[], &["sc", "tso", "rc", "none"]),
            (None, Some("invariant")) if self.has(Token::Colon) => completions(
                &["state", "message"],
                &[
                    "count",
                    "in_flight",
                    "locked",
                    "and",
                    "or",
                    "not",
                    "implies",
                ],
            ),
            (None, Some("size" | "line" | "protocol" | "invariant")) => completions(&[], &[]),
            (Some("channels"), None) => completions(&[], &["ordered"]),
            (Some("channels"), Some("ordered")) => {
                completions(&["channel", "message"], &["per", "behind"])
            }
            (Some("channels"), _) if self.last().is_some_and(|(_, word, _)| word == "as") => {
                completions(&[], &CLASSES.map(|(class, _)| class))
            }
            (Some("channels"), _) => {
                completions(&["kind of remotes"], &["remote", "home", "any", "as"])
            }
            (Some("messages"), None) => completions(&["channel"], &[]),
            (Some("messages"), _) if self.has_open_parenthesis() => match self.last() {
                Some((Token::Colon, ..)) => types(),
                _ => completions(&["size"], &contents),
            },
            (Some("messages"), _) => completions(&[], &[]),
            (Some("bounds"), _) => completions(&["message", "size"], &["in_flight"]),
            (Some("states"), None) => completions(&[], &[]),
            (Some("states"), _) if has_word("waits") => completions(&["message"], &[]),
            (Some("states"), _) if has_word("if") => values(),
            (Some("states"), _) => {
                completions(&[], &["reads", "writes", "dirty", "holds", "waits"])
            }
            (Some("variables" | "registers"), _) if self.has(Token::Colon) => types(),
            (Some("variables" | "registers"), _) => completions(&[], &[]),
            (Some("accesses"), _) => completions(
                &[],
                &[
                    "load", "store", "acquire", "release", "fence", "after", "before", "all",
                ],
            ),
            (Some("remote" | "home"), _) => self.agent_completions(first),
            (Some("on"), _) => completions(
                &["state", "message"],
                &[
                    "ensure", "others", "write", "grant", "answer", "with", "if", "chosen", "held",
                ],
            ),
            (Some("local"), _) => completions(&["state"], &["ensure", "all"]),
            (Some("system"), _) => (None, vec!["remotes", "lines", "parent", "any"]),
            _ => (None, vec![]),
        };
        let mut blocks = self.blocks.iter();
        let agent = blocks.find(|(_, word, _)| ["remote", "home"].contains(word));
        let in_goals = |word: Option<&str>| word.is_some_and(|word| GOALS.contains(&word));
        let agent = agent.filter(|_| !in_goals(block) && !in_goals(first));
        EditorCompletion {
            names,
            words,
            agent: agent.map(|(.., start)| *start),
        }
    }

    /// Returns true if a parenthesis is open at the position.
    fn has_open_parenthesis(&self) -> bool {
        let count = |kind| {
            self.statement
                .iter()
                .filter(|(token, ..)| *token == kind)
                .count()
        };
        count(Token::Open) > count(Token::Close)
    }

    /// Completions in a `remote` or `home` block; `first` is the first word of the statement. In a row they depend on
    /// the number of bars before the position.
    fn agent_completions(&self, first: Option<&str>) -> Completions {
        let bars = self
            .statement
            .iter()
            .filter(|(token, ..)| *token == Token::Bar)
            .count();
        let last_bar = self
            .statement
            .iter()
            .rposition(|(token, ..)| *token == Token::Bar);
        let cell = &self.statement[last_bar.map_or(0, |bar| bar + 1)..];
        match (bars, first) {
            (0, None) => {
                let blocks = ["states", "variables", "registers"];
                (
                    Some(vec!["state"]),
                    blocks.into_iter().chain(GOALS).collect(),
                )
            }
            (0, Some(goal)) if GOALS.contains(&goal) => completions(
                &["state", "message"],
                &["with", "after", "implies", "past", "under"],
            ),
            (0, _) => completions(&["state"], &[]),
            (1, _) if cell.iter().any(|(_, word, _)| *word == "if") => values(),
            (1, _) => {
                let accesses = Access::ALL.iter().map(|(_, access)| *access);
                (
                    Some(vec!["message"]),
                    accesses.chain(["unlock", "if"]).collect(),
                )
            }
            (2, _) => self.action_completions(cell.last()),
            _ => completions(&["state"], &["stay"]),
        }
    }

    /// Completions in the actions of a row, after this token.
    fn action_completions(&self, last: Option<&Word>) -> Completions {
        let actions = [
            "send",
            "write",
            "defer",
            "done",
            "retry",
            "stall",
            "unreachable",
            "refuse",
            "every",
            "for",
            "acknowledge",
            "unlocked",
        ];
        match last.map(|(token, word, _)| (*token, *word)) {
            None => completions(&["variable"], &actions),
            Some((Token::Comma, _)) if !self.has_open_parenthesis() => {
                completions(&["variable"], &actions)
            }
            Some((Token::OpenBrace, _)) => {
                let (names, words) = values();
                (names, words.into_iter().chain(actions).collect())
            }
            Some((_, "send")) => completions(&["message"], &[]),
            Some((_, "every" | "becomes")) => completions(&["state"], &[]),
            Some((_, "acknowledge")) => (None, vec![]),
            Some(_) => {
                let (names, mut words) = values();
                words.extend(["to", "becomes", "deferred"]);
                (names, words)
            }
        }
    }
}

/// Completions of a type.
fn types() -> Completions {
    completions(
        &["size", "kind of remotes"],
        &[
            "remote", "home", "set", "of", "count", "bool", "cycle", "per",
        ],
    )
}

/// Completions of an expression.
fn values() -> Completions {
    completions(
        &[
            "variable",
            "field",
            "size",
            "kind of remotes",
            "agent of a loop",
        ],
        &[
            "self", "sender", "none", "true", "false", "count", "and", "or", "not", "in", "home",
            "memory",
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::{complete_at, EditorCompletion};

    /// Completions at the `^`.
    fn completions_at(text: &str) -> Option<EditorCompletion> {
        let position = text.find('^').expect("position marked by `^`");
        complete_at(&text.replacen('^', "", 1), position as u32)
    }

    fn names(text: &str) -> Vec<&'static str> {
        completions_at(text)
            .and_then(|completion| completion.names)
            .expect("expected names")
    }

    /// Completions follow the cell of the cursor.
    #[test]
    fn each_cell_of_a_row_expects_its_own_names() {
        let row =
            |row: &str| format!("protocol p\nremote cache {{\n  states {{ I }}\n  {row}\n}}\n");
        assert_eq!(names(&row("^")), ["state"]);
        assert_eq!(names(&row("# state | event\n  ^")), ["state"]);
        assert_eq!(names(&row("I S^ | load | send GetS | I")), ["state"]);
        assert_eq!(names(&row("I | ^")), ["message"]);
        assert!(names(&row("I | Data if ac^")).contains(&"field"));
        assert_eq!(names(&row("I | load | send ^")), ["message"]);
        assert_eq!(names(&row("I | load | send GetS, n += 1, ^")), ["variable"]);
        assert!(names(&row("I | load | send GetS (n = ^")).contains(&"variable"));
        assert_eq!(
            names(&row("I | load\n | send GetS, sharers := { sender }\n | I^")),
            ["state"]
        );
        let next = completions_at(&row("I | load | send GetS | ^")).expect("completions");
        assert_eq!(
            (next.names, next.words),
            (Some(vec!["state"]), vec!["stay"])
        );
    }

    /// Completions follow the innermost block of the cursor.
    #[test]
    fn blocks_expect_their_own_words() {
        assert!(completions_at("^")
            .expect("completions at the start of a file")
            .words
            .contains(&"protocol"));
        assert_eq!(
            names("channels { a remote -> home }\nmessages {\n  ^\n}"),
            ["channel"]
        );
        assert_eq!(names("remote c { states { W waits Da^ } }"), ["message"]);
        assert!(completions_at("remote c { variables { n: ^ } }")
            .expect("completions of a type")
            .words
            .contains(&"bool"));
        assert_eq!(
            names("invariant one: count(M) <= 1 and count(^)"),
            ["state", "message"]
        );
    }

    #[test]
    fn comments_and_titles_have_no_completions() {
        assert_eq!(completions_at("protocol p \"MS^"), None);
        assert_eq!(completions_at("line 64 bytes # of sto^"), None);
    }

    #[test]
    fn expected_agent_is_the_enclosing_block() {
        let text = "remote a { states { I } }\nhome h {\n  ^\n}";
        let home = text.find("home").expect("home block") as u32;
        assert_eq!(completions_at(text).expect("completions").agent, Some(home));
    }
}
