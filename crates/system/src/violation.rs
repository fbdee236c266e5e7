//! Violations of properties, as rows find them.

use std::borrow::Cow;

/// A property that a row violates, as executors report it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The property that does not hold.
    pub property: Cow<'static, str>,
    /// A sentence.
    pub what: String,
}

impl Violation {
    /// Returns the violation of a property.
    pub fn new(property: impl Into<Cow<'static, str>>, what: impl Into<String>) -> Violation {
        Violation {
            property: property.into(),
            what: what.into(),
        }
    }

    /// Returns the violation of *data value*: bytes are not those of the last write.
    pub fn data_value(what: impl Into<String>) -> Violation {
        Violation::new("data value", what)
    }
}
