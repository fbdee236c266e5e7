//! From protocol text to [`Protocol`](crate::protocol::Protocol), with diagnostics for every error of a file.

/// A range of bytes in the text, `start .. end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}
