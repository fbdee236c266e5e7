//! Quantities of machines with their units, as people write them: `70ns`, `19.6GiB/s`, `128KiB`, `5 cycles at 322MHz`.
//!
//! [`parse`] and [`show`] convert between text and whole numbers in base units. A [`Quantity`] is a value with its
//! plausible range and its source. [`Time`] is simulated time, in picoseconds.
//!
//! The crate does not know any other crate of the workspace: neither machines nor the files that describe them.
//!
//! ```
//! use cohkit_units::{parse, show, Quantity, Unit};
//!
//! assert_eq!(parse("5 cycles at 322MHz", Unit::Picoseconds), Ok(15_528));
//! assert_eq!(show(15_528, Unit::Picoseconds), "15.528ns");
//! let error = parse("70", Unit::Picoseconds).unwrap_err();
//! assert_eq!(error, "has no unit: write it like `70ns` (units: ps, ns, us, ms, s)");
//!
//! // 64 bytes take 4 ns at 16 GB/s.
//! let bandwidth = Quantity::given(parse("16GB/s", Unit::BytesPerSecond).unwrap(), "measured");
//! assert_eq!(bandwidth.time_of(64), 4_000);
//! ```

/// A point in time or a duration, in picoseconds.
pub type Time = u64;

/// Picoseconds in a nanosecond.
pub const NANOSECOND: Time = 1_000;
/// Picoseconds in a second.
pub const SECOND: Time = 1_000_000_000_000;

/// Unit of a quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Duration; the base unit is the picosecond.
    Picoseconds,
    /// Bandwidth; the base unit is the byte per second.
    BytesPerSecond,
    /// Size; the base unit is the byte.
    Bytes,
    /// Number without a unit.
    Count,
}

/// One quantity of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quantity {
    /// Value in use, in the base unit of the quantity.
    pub value: u64,
    /// Lowest and highest plausible value, in the base unit. Both equal the value if a source gives it.
    pub range: (u64, u64),
    /// Source of the value, in words.
    pub origin: String,
}

impl Quantity {
    /// Creates a value that a source gives.
    pub fn given(value: u64, origin: &str) -> Quantity {
        Quantity {
            value,
            range: (value, value),
            origin: origin.into(),
        }
    }

    /// Creates a value that no source gives, with its lowest and highest plausible value. The value is not checked.
    pub fn assumed(value: u64, range: (u64, u64), origin: &str) -> Quantity {
        Quantity {
            value,
            range,
            origin: origin.into(),
        }
    }

    /// Time that `bytes` take at this rate, in picoseconds, rounded up. The quantity is in bytes per second; 0 stands
    /// for an unlimited bandwidth and takes no time.
    pub fn time_of(&self, bytes: u32) -> Time {
        match self.value {
            0 => 0,
            rate => (u128::from(bytes) * u128::from(SECOND)).div_ceil(u128::from(rate)) as Time,
        }
    }
}

/// A unit as people write it. Its size in the base unit is `numerator / denominator`.
struct NamedUnit {
    /// Name: `ns`.
    name: &'static str,
    /// Numerator of the size.
    numerator: u128,
    /// Denominator of the size; 8 for units of bits, whose base unit is in bytes.
    denominator: u128,
}

/// A multiple of the base unit.
const fn multiple(name: &'static str, numerator: u128) -> NamedUnit {
    fraction(name, numerator, 1)
}

/// A unit whose size in the base unit is a fraction.
const fn fraction(name: &'static str, numerator: u128, denominator: u128) -> NamedUnit {
    NamedUnit {
        name,
        numerator,
        denominator,
    }
}

/// Units of time; the base unit is the picosecond.
const TIMES: [NamedUnit; 5] = [
    multiple("ps", 1),
    multiple("ns", 1_000),
    multiple("us", 1_000_000),
    multiple("ms", 1_000_000_000),
    multiple("s", 1_000_000_000_000),
];
/// Units of sizes; the base unit is the byte.
const SIZES: [NamedUnit; 8] = [
    multiple("B", 1),
    multiple("kB", 1_000),
    multiple("MB", 1_000_000),
    multiple("GB", 1_000_000_000),
    multiple("KiB", 1 << 10),
    multiple("MiB", 1 << 20),
    multiple("GiB", 1 << 30),
    multiple("TiB", 1 << 40),
];
/// Units of bandwidths; the base unit is the byte per second.
const RATES: [NamedUnit; 10] = [
    multiple("B/s", 1),
    multiple("kB/s", 1_000),
    multiple("MB/s", 1_000_000),
    multiple("GB/s", 1_000_000_000),
    multiple("KiB/s", 1 << 10),
    multiple("MiB/s", 1 << 20),
    multiple("GiB/s", 1 << 30),
    fraction("kb/s", 1_000, 8),
    fraction("Mb/s", 1_000_000, 8),
    fraction("Gb/s", 1_000_000_000, 8),
];
/// Units of frequencies; the base unit is the hertz.
const FREQUENCIES: [NamedUnit; 4] = [
    multiple("Hz", 1),
    multiple("kHz", 1_000),
    multiple("MHz", 1_000_000),
    multiple("GHz", 1_000_000_000),
];

/// Parses a number with a unit, or a whole number for [`Unit::Count`]. Returns it in the base unit, rounded to the
/// nearest integer. A time may also be given in cycles at a frequency.
///
/// # Errors
/// A clause that follows a key, with the problem and the known units: "has no unit: write ...".
pub fn parse(text: &str, unit: Unit) -> Result<u64, String> {
    let text = text.trim();
    if unit == Unit::Picoseconds {
        if let Some((cycles, frequency)) = text.split_once("at") {
            return parse_cycles(cycles.trim(), frequency.trim());
        }
    }
    match unit {
        Unit::Count => parse_count(text),
        Unit::Picoseconds => parse_scaled(text, &TIMES, "70ns"),
        Unit::Bytes => parse_scaled(text, &SIZES, "128KiB"),
        Unit::BytesPerSecond => parse_scaled(text, &RATES, "19.6GiB/s"),
    }
}

/// Parses a whole number without a unit.
fn parse_count(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("is a count: `{text}` is not a whole number without a unit"))
}

/// Parses a time of `cycles`, such as `5 cycles`, at a frequency, such as `322MHz`. Returns picoseconds.
fn parse_cycles(cycles: &str, frequency: &str) -> Result<u64, String> {
    let number = cycles
        .strip_suffix("cycles")
        .or(cycles.strip_suffix("cycle"))
        .ok_or_else(|| format!("counts `{cycles}`: write it like `5 cycles at 322MHz`"))?;
    let number = parse_decimal(number.trim())?;
    let hertz = parse_scaled(frequency, &FREQUENCIES, "322MHz")?;
    if hertz == 0 {
        return Err("has a clock of 0 Hz".into());
    }
    let picoseconds = number.digits.checked_mul(SECOND.into());
    let divisor = number.divisor.checked_mul(hertz.into());
    divide_rounded(
        picoseconds.ok_or("is too large")?,
        divisor.ok_or("is too large")?,
    )
}

/// Parses a decimal number with one of `units`. Returns it in the base unit. Errors contain `example`.
fn parse_scaled(text: &str, units: &[NamedUnit], example: &str) -> Result<u64, String> {
    let end = text
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(text.len());
    let (number, word) = (&text[..end], text[end..].trim());
    let names = || {
        let names: Vec<&str> = units.iter().map(|unit| unit.name).collect();
        names.join(", ")
    };
    if number.is_empty() {
        return Err(format!(
            "is not a number with a unit: write it like `{example}`"
        ));
    }
    if word.is_empty() {
        return Err(format!(
            "has no unit: write it like `{example}` (units: {})",
            names()
        ));
    }
    let Some(unit) = units.iter().find(|unit| unit.name == word) else {
        return Err(format!(
            "has the unknown unit `{word}` (units: {})",
            names()
        ));
    };
    let number = parse_decimal(number)?;
    let value = (number.digits.checked_mul(unit.numerator)).ok_or("is too large")?;
    divide_rounded(value, number.divisor * unit.denominator)
}

/// A decimal number, `digits / divisor`.
struct Decimal {
    /// All digits, without the decimal point.
    digits: u128,
    /// Power of ten.
    divisor: u128,
}

/// Parses a decimal number with at most 12 decimals.
fn parse_decimal(text: &str) -> Result<Decimal, String> {
    let (integer_part, fraction) = text.split_once('.').unwrap_or((text, ""));
    let not_a_number = || format!("starts with `{text}`, which is not a number");
    if integer_part.is_empty() || fraction.contains('.') || fraction.len() > 12 {
        return Err(not_a_number());
    }
    let digits = format!("{integer_part}{fraction}")
        .parse()
        .map_err(|_| not_a_number())?;
    Ok(Decimal {
        digits,
        divisor: 10u128.pow(fraction.len() as u32),
    })
}

/// Divides with rounding to the nearest integer.
fn divide_rounded(value: u128, divisor: u128) -> Result<u64, String> {
    let raised = value.checked_add(divisor / 2).ok_or("is too large")?;
    u64::try_from(raised / divisor).map_err(|_| "is too large".to_string())
}

/// Formats a number that is given in the base unit, in the largest unit in which three decimals are exact.
/// [`parse`] returns the same number for the result.
pub fn show(value: u64, unit: Unit) -> String {
    match unit {
        Unit::Count => value.to_string(),
        Unit::Picoseconds => show_in_largest_unit(value, unit, &TIMES),
        Unit::Bytes => show_in_largest_unit(value, unit, &SIZES),
        Unit::BytesPerSecond => show_in_largest_unit(value, unit, &RATES),
    }
}

/// Formats a number as [`show`] does, in one of `units`, of which the first is the base unit.
fn show_in_largest_unit(value: u64, unit: Unit, units: &[NamedUnit]) -> String {
    let is_fitting =
        |named: &&NamedUnit| named.denominator == 1 && u128::from(value) >= named.numerator;
    let mut fitting: Vec<&NamedUnit> = units.iter().filter(is_fitting).collect();
    fitting.sort_by_key(|named| std::cmp::Reverse(named.numerator));
    let mut texts = fitting.into_iter().map(|named| {
        let numerator = named.numerator;
        let thousandths = (u128::from(value) * 1000 + numerator / 2) / numerator;
        format!("{}{}", format_thousandths(thousandths), named.name)
    });
    let exact = texts.find(|text| parse(text, unit) == Ok(value));
    exact.unwrap_or_else(|| format!("{value}{}", units[0].name))
}

/// Formats a number of thousandths as a decimal number without trailing zeros.
fn format_thousandths(value: u128) -> String {
    let text = format!("{}.{:03}", value / 1000, value % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::{parse, show, Unit};

    #[test]
    fn numbers_with_units_are_parsed() {
        for (text, unit, value) in [
            ("70ns", Unit::Picoseconds, 70_000),
            ("3.1 ns", Unit::Picoseconds, 3_100),
            ("0.5us", Unit::Picoseconds, 500_000),
            ("5 cycles at 322MHz", Unit::Picoseconds, 15_528),
            ("1 cycle at 2.0GHz", Unit::Picoseconds, 500),
            ("10Gb/s", Unit::BytesPerSecond, 1_250_000_000),
            ("19.6GiB/s", Unit::BytesPerSecond, 21_045_339_750),
            ("128KiB", Unit::Bytes, 131_072),
            ("64", Unit::Count, 64),
        ] {
            assert_eq!(parse(text, unit), Ok(value), "{text}");
        }
    }

    #[test]
    fn number_errors_are_explained() {
        for (text, unit, expected) in [
            (
                "70",
                Unit::Picoseconds,
                "has no unit: write it like `70ns` (units: ps, ns, us, ms, s)",
            ),
            (
                "70GiB",
                Unit::Picoseconds,
                "has the unknown unit `GiB` (units: ps, ns, us, ms, s)",
            ),
            (
                "ns",
                Unit::Picoseconds,
                "is not a number with a unit: write it like `70ns`",
            ),
            (
                "1.2.3ns",
                Unit::Picoseconds,
                "starts with `1.2.3`, which is not a number",
            ),
            (
                "-5ns",
                Unit::Picoseconds,
                "is not a number with a unit: write it like `70ns`",
            ),
            (
                "34028236692093846346337460743176821145.5ps",
                Unit::Picoseconds,
                "is too large",
            ),
            ("99999999999999999999s", Unit::Picoseconds, "is too large"),
            (
                "64B",
                Unit::Count,
                "is a count: `64B` is not a whole number without a unit",
            ),
            (
                "5 at 322MHz",
                Unit::Picoseconds,
                "counts `5`: write it like `5 cycles at 322MHz`",
            ),
            ("5 cycles at 0Hz", Unit::Picoseconds, "has a clock of 0 Hz"),
        ] {
            assert_eq!(parse(text, unit), Err(expected.to_string()), "{text}");
        }
    }

    #[test]
    fn numbers_are_shown_in_the_largest_exact_unit() {
        for (text, unit) in [
            ("1.5ns", Unit::Picoseconds),
            ("18.636ns", Unit::Picoseconds),
            ("9.8GiB/s", Unit::BytesPerSecond),
            ("17.064GB/s", Unit::BytesPerSecond),
            ("0B", Unit::Bytes),
            ("512B", Unit::Bytes),
            ("3KiB", Unit::Bytes),
            ("32GiB", Unit::Bytes),
        ] {
            assert_eq!(
                parse(text, unit).map(|value| show(value, unit)),
                Ok(text.into())
            );
        }
    }

    #[test]
    fn printed_quantities_round_trip() {
        for value in [
            0,
            1,
            999,
            1_000,
            15_528,
            70_000,
            3_100,
            1 << 30,
            21_045_339_750,
            u64::MAX,
        ] {
            for unit in [
                Unit::Picoseconds,
                Unit::Bytes,
                Unit::BytesPerSecond,
                Unit::Count,
            ] {
                assert_eq!(
                    parse(&show(value, unit), unit),
                    Ok(value),
                    "{}",
                    show(value, unit)
                );
            }
        }
    }
}
