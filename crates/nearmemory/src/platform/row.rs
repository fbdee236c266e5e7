//! Properties of a quantity that hold for all machines.

use cohkit_platform::{DeValue, QuantityKind, Reader, Spanned};
use cohkit_units::{self as units, Quantity, Unit};

/// A quantity's name, unit and permitted values.
pub(super) struct Row {
    /// Table and key, separated by a dot.
    pub(super) name: &'static str,
    /// Unit of the value.
    pub(super) unit: Unit,
    /// Minimum and maximum supported by the model, in `unit`.
    pub(super) limits: (u64, u64),
    /// Further restriction on the value.
    pub(super) form: Form,
}

/// Restriction on the values between the limits.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Any,
    PowersOfTwo,
    ZeroOrPowersOfTwo,
}

impl Row {
    /// Reads the quantity from its place in a file. Returns `None` after an error, which is reported.
    pub(super) fn read(&self, reader: &mut Reader, value: &Spanned<DeValue>) -> Option<Quantity> {
        let kind = QuantityKind {
            name: self.name,
            unit: self.unit,
            check: &|value| self.check(value),
        };
        reader.read_quantity(kind, value)
    }

    /// Parses a value with its unit. The error names the quantity.
    pub(super) fn parse(&self, text: &str) -> Result<u64, String> {
        let name = self.name;
        let value = units::parse(text, self.unit).map_err(|error| format!("`{name}` {error}"))?;
        self.check(value).map(|()| value)
    }

    /// Rejects values outside the limits or of the wrong form.
    fn check(&self, value: u64) -> Result<(), String> {
        let (name, (low, high)) = (self.name, self.limits);
        let format_value = |value| units::show(value, self.unit);
        if !(low..=high).contains(&value) {
            let [low, high, value] = [low, high, value].map(format_value);
            return Err(format!("`{name}` must be {low} to {high}, not {value}"));
        }
        let (is_valid, requirement) = match self.form {
            Form::Any => (true, ""),
            Form::PowersOfTwo => (value.is_power_of_two(), "a power of two"),
            Form::ZeroOrPowersOfTwo => {
                let is_valid = value == 0 || value.is_power_of_two();
                (is_valid, "0 or a power of two")
            }
        };
        match is_valid {
            true => Ok(()),
            false => Err(format!(
                "`{name}` must be {requirement}, not {}",
                format_value(value)
            )),
        }
    }
}
