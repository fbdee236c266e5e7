//! Parser of options that select a named value.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cohkit_api::named_value::NamedValue;

/// Returns a parser that accepts the names of all values of a type.
pub(crate) fn named_value<T>() -> impl TypedValueParser<Value = T>
where
    T: NamedValue + Send + Sync,
{
    let names = T::ALL.iter().copied().map(possible_value);
    PossibleValuesParser::new(names)
        .map(|name| T::from_name(&name).expect("the parser accepts only names of values"))
}

/// Name and description of a value, as help texts and completions show them.
pub(super) fn possible_value<T: NamedValue>(value: T) -> PossibleValue {
    PossibleValue::new(value.name()).help(value.description())
}
