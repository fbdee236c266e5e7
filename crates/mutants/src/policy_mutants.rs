//! Mutants of the policy of a home that is to be constructed.

use crate::mutation::Mutation;
use crate::source::{collapse_spaces, Source};
use crate::words::{replace_word, words, Word};

/// Adds the mutants of a policy statement: another permission ensured, granted or reached, another message sent, or the
/// statement dropped.
pub fn add_policy_mutants(source: &Source, line: &str, mutations: &mut Vec<Mutation>) {
    let line = PolicyLine {
        source,
        line,
        statement: collapse_spaces(line),
        words: words(line),
        permissions: source.states_by_permission(),
    };
    for index in 0..line.words.len() {
        match line.word_at(index) {
            "ensure" => mutations.extend(line.ensure_mutants(index)),
            // `grant REMOTE PERMISSION with MESSAGE`.
            "grant" => {
                mutations.extend(line.response_mutants(index, index + 4));
                mutations.extend(line.granted_permission_mutants(index));
            }
            // `answer REMOTE with MESSAGE`.
            "answer" => mutations.extend(line.response_mutants(index, index + 3)),
            "write" => {
                let difference = "without `write`".into();
                mutations.push(line.mutation("write dropped", difference, index, ""));
            }
            "reach" => mutations.extend(line.reach_mutants(index)),
            _ => {}
        }
    }
}

/// A line of a policy. Words are numbered from the left.
struct PolicyLine<'a> {
    /// Specification that contains the line.
    source: &'a Source,
    /// The line.
    line: &'a str,
    /// The line with single spaces, which begins the description of its mutants.
    statement: String,
    /// Words of the line.
    words: Vec<Word<'a>>,
    /// Permissions, each by the name of a stable state with it.
    permissions: Vec<String>,
}

impl PolicyLine<'_> {
    /// Word at an index; empty beyond the end of the line.
    fn word_at(&self, index: usize) -> &str {
        self.words.get(index).map_or("", |word| word.text)
    }

    /// Permissions other than the one that the word at an index names.
    fn other_permissions(&self, index: usize) -> impl Iterator<Item = &String> {
        let current = self.word_at(index);
        (self.permissions.iter()).filter(move |&permission| permission != current)
    }

    /// The line with another word at an index.
    fn mutation(
        &self,
        kind: &'static str,
        difference: String,
        index: usize,
        replacement: &str,
    ) -> Mutation {
        Mutation {
            kind,
            description: format!("{}: {difference}", self.statement),
            line: replace_word(self.line, &self.words[index], replacement),
        }
    }

    /// Mutants of `ensure others(r) <= S` or `ensure all <= S`, which begins at an index.
    fn ensure_mutants(&self, index: usize) -> impl Iterator<Item = Mutation> + '_ {
        let permission_index = match self.word_at(index + 1) {
            "others" => index + 3,
            _ => index + 2,
        };
        self.other_permissions(permission_index).map(move |other| {
            let difference = format!("ensures {other}");
            self.mutation("ensure", difference, permission_index, other)
        })
    }

    /// Mutants with another response, by the indices of the keyword and of the message.
    fn response_mutants(&self, index: usize, message_index: usize) -> Vec<Mutation> {
        let keyword = self.word_at(index);
        let other_messages = (self.source).other_messages_of_channel(self.word_at(message_index));
        let mutations = other_messages.iter().map(|other| {
            let difference = format!("{keyword} with {other}");
            self.mutation("grant", difference, message_index, other)
        });
        mutations.collect()
    }

    /// Mutants with another granted permission, by the index of `grant`.
    fn granted_permission_mutants(&self, index: usize) -> impl Iterator<Item = Mutation> + '_ {
        let permission_index = index + 2;
        self.other_permissions(permission_index).map(move |other| {
            let difference = format!("grants {other}");
            self.mutation("grant", difference, permission_index, other)
        })
    }

    /// Mutants of `reach PERMISSION with MESSAGE`, which begins at an index: dropped, to another permission, or with
    /// another message.
    fn reach_mutants(&self, index: usize) -> Vec<Mutation> {
        let mut mutations = vec![Mutation {
            kind: "reach",
            description: format!("{}: dropped", self.statement),
            line: String::new(),
        }];
        let (permission_index, message_index) = (index + 1, index + 3);
        for other in self.other_permissions(permission_index) {
            let difference = format!("reaches {other}");
            mutations.push(self.mutation("reach", difference, permission_index, other));
        }
        for other in (self.source).other_messages_of_channel(self.word_at(message_index)) {
            let difference = format!("with {other}");
            mutations.push(self.mutation("reach", difference, message_index, &other));
        }
        mutations
    }
}
