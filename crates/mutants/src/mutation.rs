//! Change of one line of a specification.

/// A change of one line of a specification.
pub struct Mutation {
    /// Mutation operator, in words: `row dropped`.
    pub kind: &'static str,
    /// Description: the line or the pair of a row, and the change.
    pub description: String,
    /// Source text in place of the line, which may contain line breaks or be empty.
    pub line: String,
}
