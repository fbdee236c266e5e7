//! Violated properties, as rows report them.

use std::borrow::Cow;

/// A violated property, before the executor formats it for its report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Name of the property, as reports show it.
    pub property: Cow<'static, str>,
    /// Description of the violation, as a clause without a full stop.
    pub description: String,
}

impl Violation {
    /// Creates a violation of `property`.
    pub fn new(
        property: impl Into<Cow<'static, str>>,
        description: impl Into<String>,
    ) -> Violation {
        Violation {
            property: property.into(),
            description: description.into(),
        }
    }

    /// Creates a violation of *data value*: bytes are not those of the last write.
    pub fn data_value(description: impl Into<String>) -> Violation {
        Violation::new("data value", description)
    }
}
