//! Mutants of a protocol specification, each with one change and a description that does not depend on line numbers.
//!
//! Mutations change the source, so that a mutant can be read, stored and checked like any other specification. A row
//! with several states and events stands for all pairs of them, and each pair is mutated separately.

use crate::declaration_mutants::{add_message_mutants, add_state_mutants};
use crate::policy_mutants::add_policy_mutants;
use crate::row_mutants::add_row_mutants;
use crate::source::{LineKind, Source};

/// A specification with one change. The change may make it invalid.
pub struct Mutant {
    /// Description: the line (or the pair of a row), and its change. It is the same in every version of the
    /// specification that contains the line.
    pub description: String,
    /// Mutation operator, in words: `row dropped`.
    pub kind: &'static str,
    /// True if the change concerns the home's policy or messages. A home that is constructed from a policy must then
    /// be constructed again.
    pub changes_home: bool,
    /// Source of the mutant, without comments.
    pub text: String,
}

/// Returns all mutants of a specification, in the order of its lines. If the specification is invalid, mutants that
/// need the resolved protocol are missing.
pub fn mutants(text: &str) -> Vec<Mutant> {
    let source = Source::read(text);
    let mut mutants = Vec::new();
    for (index, (line, line_kind)) in source.lines.iter().zip(&source.line_kinds).enumerate() {
        let mut mutations = Vec::new();
        match *line_kind {
            LineKind::Row(role) => add_row_mutants(&source, line, role, &mut mutations),
            LineKind::State(role) => add_state_mutants(line, role, &mut mutations),
            LineKind::Messages => add_message_mutants(line, &mut mutations),
            LineKind::Policy => add_policy_mutants(&source, line, &mut mutations),
            LineKind::Other => {}
        }
        mutants.extend(mutations.into_iter().map(|mutation| {
            let mut lines = source.lines.clone();
            lines[index] = mutation.line;
            Mutant {
                description: mutation.description,
                kind: mutation.kind,
                changes_home: matches!(line_kind, LineKind::Policy | LineKind::Messages),
                text: lines.join("\n") + "\n",
            }
        }));
    }
    mutants
}
