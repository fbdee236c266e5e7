//! Reader of a machine file: a TOML document whose quantities are tables.

use crate::former_names::{former_name, former_name_warning};
use cohkit_base::words::{counted, nearest};
use cohkit_units::{self as units, Quantity, Unit};
use std::ops::{Range, RangeInclusive};
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// An error in a platform file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlatformError {
    /// Description, with the key concerned.
    pub message: String,
    /// Location in the file, in bytes. For a missing key, this is the table that lacks it, or the end of the file.
    pub span: Range<usize>,
}

/// A quantity to be read.
#[derive(Clone, Copy)]
pub struct QuantityKind<'a> {
    /// Full name.
    pub name: &'a str,
    /// Unit of the value.
    pub unit: Unit,
    /// Check of a value in the base unit. Its error is a sentence that begins with the name.
    pub check: &'a dyn Fn(u64) -> Result<(), String>,
}

/// Parses a file and applies `read_table` to it. `requirement` returns a clause for the error of an unknown key, if the
/// key is known but needs something that the machine lacks.
///
/// # Errors
/// All errors, in the order of the file.
pub fn read_document<T>(
    text: &str,
    requirement: fn(&str) -> Option<String>,
    read_table: impl FnOnce(&mut Reader, &DeTable) -> Option<T>,
) -> Result<T, Vec<PlatformError>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let end = text.len()..text.len();
    let mut reader = Reader {
        end: end.clone(),
        requirement,
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    // After a syntax error, the rest may be misread. Therefore, only syntax errors are reported.
    let result = if errors.is_empty() {
        read_table(&mut reader, document.get_ref())
    } else {
        let omitted = errors.len().saturating_sub(MAX_SYNTAX_ERRORS);
        for error in errors.into_iter().take(MAX_SYNTAX_ERRORS) {
            let message = error.message().to_string();
            reader.report(error.span().unwrap_or(end.clone()), message);
        }
        if omitted > 0 {
            let omitted = counted(omitted as u64, "more syntax error");
            reader.report(end, format!("{omitted} in the TOML file"));
        }
        None
    };
    match result {
        Some(result) if reader.errors.is_empty() => Ok(result),
        _ => {
            reader.errors.sort_by_key(|error| error.span.start);
            Err(reader.errors)
        }
    }
}

/// Returns the error of a file with the former and the current name of a quantity.
pub fn both_names_error(former: &str, name: &str) -> String {
    format!("`{former}` is the former name of `{name}`, which is given, too: remove one of them")
}

/// Maximum number of syntax errors reported one by one. A file that is not TOML has one in every line.
const MAX_SYNTAX_ERRORS: usize = 5;

/// State while a file is read. Reading continues after an error, so that all errors are reported at once.
pub struct Reader {
    /// End of the file, as an empty range.
    pub end: Range<usize>,
    /// Clause for the error of an unknown key; see [`read_document`].
    requirement: fn(&str) -> Option<String>,
    /// Errors found so far, in any order.
    errors: Vec<PlatformError>,
    /// Warnings about former names, one sentence each.
    pub warnings: Vec<String>,
}

impl Reader {
    /// Records an error at a range of the file, in bytes.
    pub fn report(&mut self, span: Range<usize>, message: impl Into<String>) {
        let message = message.into();
        self.errors.push(PlatformError { message, span });
    }

    /// Reads the text under a dotted name.
    pub fn read_choice(&mut self, table: &DeTable, name: &str) -> Option<String> {
        match find(table, name).map(|value| (value.get_ref(), value.span())) {
            Some((DeValue::String(text), _)) => Some(text.to_string()),
            Some((_, span)) => {
                self.report(span, format!("`{name}` must be a string"));
                None
            }
            None => {
                self.report_missing(table, name);
                None
            }
        }
    }

    /// Returns the value of a quantity, under its name or its former name, and adds a former name to the known ones.
    /// A file with both names has an error.
    pub fn find_quantity<'t, 'd>(
        &mut self,
        table: &'t DeTable<'d>,
        name: &str,
        known: &mut Vec<String>,
    ) -> Option<&'t Spanned<DeValue<'d>>> {
        let value = find(table, name);
        let former = former_name(name).and_then(|former| Some((find(table, &former)?, former)));
        let Some((former_value, former)) = former else {
            return value;
        };
        if value.is_some() {
            self.report(former_value.span(), both_names_error(&former, name));
        }
        self.warnings.push(former_name_warning(&former, name));
        known.push(former);
        value.or(Some(former_value))
    }

    /// Reports a missing key, at its table, or at the end of the file if the table is missing, too.
    pub fn report_missing(&mut self, table: &DeTable, name: &str) {
        let parent = name
            .rsplit_once('.')
            .and_then(|(parent, _)| find(table, parent));
        let place = parent.map_or(self.end.clone(), Spanned::span);
        self.report(place, format!("`{name}` is missing"));
    }

    /// Reports all keys of a table, and of the tables in it, that are not in `known`. `known` has full names;
    /// `prefix` is that of the table's keys.
    pub fn report_unknown_keys(&mut self, table: &DeTable, prefix: &str, known: &[&str]) {
        for (key, value) in table.iter() {
            let name = format!("{prefix}{}", key.get_ref());
            if known.contains(&name.as_str()) {
                continue;
            }
            let child_prefix = format!("{name}.");
            match value.get_ref() {
                DeValue::Table(table)
                    if known.iter().any(|known| known.starts_with(&child_prefix)) =>
                {
                    self.report_unknown_keys(table, &child_prefix, known);
                }
                _ => {
                    let siblings = known.iter().filter(|known| known.starts_with(prefix));
                    let siblings: Vec<&str> = siblings.copied().collect();
                    // Compare without the prefix: all names share it, so it says nothing about the intended one.
                    let own_names = siblings
                        .iter()
                        .filter_map(|known| known.strip_prefix(prefix));
                    let suggestion = nearest(key.get_ref(), own_names);
                    let suggestion = suggestion
                        .map(|suggestion| format!("did you mean `{prefix}{suggestion}`? "));
                    let suggestion = suggestion.unwrap_or_default();
                    let siblings = siblings.join(", ");
                    let message = match (self.requirement)(&name) {
                        Some(requirement) => format!("unknown key `{name}`: it {requirement}"),
                        None => format!("unknown key `{name}`; {suggestion}there are {siblings}"),
                    };
                    self.report(key.span(), message);
                }
            }
        }
    }

    /// Reads a quantity from its table: value, origin and optional range. Returns `None` after an error, which is
    /// reported.
    pub fn read_quantity(
        &mut self,
        kind: QuantityKind,
        value: &Spanned<DeValue>,
    ) -> Option<Quantity> {
        let QuantityKind { name, unit, .. } = kind;
        let DeValue::Table(table) = value.get_ref() else {
            let message = format!("`{name}` is a table: {{ value = ..., origin = \"...\" }}");
            self.report(value.span(), message);
            return None;
        };
        self.report_unknown_keys(
            table,
            &format!("{name}."),
            &quantity_keys(name).each_ref().map(String::as_str),
        );
        let origin = match table.get("origin").map(|o| (o.get_ref(), o.span())) {
            Some((DeValue::String(origin), _)) if !origin.trim().is_empty() => {
                Some(origin.to_string())
            }
            Some((_, span)) => {
                let message =
                    format!("`{name}.origin` must be a string that names the source of the value");
                self.report(span, message);
                None
            }
            None => {
                self.report(value.span(), format!("`{name}` has no origin"));
                None
            }
        };
        let number = match table.get("value") {
            Some(number) => self.read_amount(kind, number),
            None => {
                self.report(value.span(), format!("`{name}` has no value"));
                None
            }
        };
        let Some(range) = table.get("range") else {
            return Some(Quantity::given(number?, &origin?));
        };
        let ends = match range.get_ref() {
            DeValue::Array(ends) if ends.len() == 2 => ends,
            _ => {
                self.report(
                    range.span(),
                    format!("`{name}.range` is `[lowest, highest]`"),
                );
                return None;
            }
        };
        let lowest = self.read_amount(kind, &ends[0]);
        let highest = self.read_amount(kind, &ends[1]);
        let (number, lowest, highest) = (number?, lowest?, highest?);
        if !(lowest..=highest).contains(&number) {
            let [number, lowest, highest] = [number, lowest, highest].map(|n| units::show(n, unit));
            let message = format!(
                "`{name}` is {number}, outside its range {lowest} to {highest}; widen the range of plausible values if the value is correct"
            );
            self.report(range.span(), message);
            return None;
        }
        Some(Quantity::assumed(number, (lowest, highest), &origin?))
    }

    /// Reads a number with its unit, and checks it. Whole numbers need no quotes.
    fn read_amount(&mut self, kind: QuantityKind, value: &Spanned<DeValue>) -> Option<u64> {
        let number = self.parse_number(kind.name, kind.unit, value)?;
        match (kind.check)(number) {
            Ok(()) => Some(number),
            Err(error) => {
                self.report(value.span(), error);
                None
            }
        }
    }

    /// Parses a number with the unit of the quantity, without a check of its limits. Reports an error.
    fn parse_number(&mut self, name: &str, unit: Unit, value: &Spanned<DeValue>) -> Option<u64> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', ""),
            DeValue::Float(number) => number.as_str().to_string(),
            _ => {
                self.report(
                    value.span(),
                    format!("`{name}` must be a number, or a string with a unit"),
                );
                return None;
            }
        };
        match units::parse(&text, unit) {
            Ok(number) => Some(number),
            Err(error) => {
                self.report(value.span(), format!("`{name}` {error}"));
                None
            }
        }
    }

    /// Reads a string that is not empty. Reports an error.
    pub fn read_string(&mut self, table: &DeTable, key: &str) -> Option<String> {
        match table.get(key).map(|value| (value.get_ref(), value.span())) {
            Some((DeValue::String(text), _)) if !text.is_empty() => Some(text.to_string()),
            Some((_, span)) => {
                self.report(span, format!("`{key}` must be a string"));
                None
            }
            None => {
                self.report_missing(table, key);
                None
            }
        }
    }

    /// Reads a whole number within `range`. Reports an error.
    pub fn read_count(
        &mut self,
        table: &DeTable,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let Some(value) = find(table, key) else {
            self.report_missing(table, key);
            return None;
        };
        let number = self.parse_number(key, Unit::Count, value)?;
        if range.contains(&number) {
            return Some(number);
        }
        let (low, high) = range.into_inner();
        self.report(
            value.span(),
            format!("{key} must be {low} to {high}, not {number}"),
        );
        None
    }
}

/// Keys of a quantity's table.
fn quantity_keys(name: &str) -> [String; 3] {
    ["value", "range", "origin"].map(|part| format!("{name}.{part}"))
}

/// Returns the value under a dotted name.
pub fn find<'t, 'd>(table: &'t DeTable<'d>, name: &str) -> Option<&'t Spanned<DeValue<'d>>> {
    match name.split_once('.') {
        None => table.get(name),
        Some((first, rest)) => match table.get(first)?.get_ref() {
            DeValue::Table(inner) => find(inner, rest),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is not TOML has an error in every line, of which only the first are reported.
    #[test]
    fn syntax_errors_are_reported_up_to_a_limit() {
        let errors_of = |lines: usize| {
            let text = "no toml\n".repeat(lines);
            read_document(&text, |_| None, |_, _| Some(())).expect_err("not TOML")
        };
        for (lines, reported) in [
            (1, 1),
            (MAX_SYNTAX_ERRORS, MAX_SYNTAX_ERRORS),
            (90, MAX_SYNTAX_ERRORS + 1),
        ] {
            let errors = errors_of(lines);
            assert_eq!(errors.len(), reported, "{lines}");
            assert_eq!(errors[0].message, "key with no value, expected `=`");
        }
        let errors = errors_of(90);
        let last = errors.last().expect("there are some");
        assert_eq!(last.message, "85 more syntax errors in the TOML file");
    }
}
