//! Named quantities of DMA transfers: their values, ranges and sources.

use cohkit_base::words::did_you_mean;
use cohkit_units::{parse, show, Quantity, Unit};

/// Quantities of the engine, and of the host that it accesses. A one-way delay of the link is not among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantities {
    /// Outstanding transfers of a throughput.
    pub queue: Quantity,
    /// Time from a doorbell, or from the arrival of a descriptor, to the engine's next action, in picoseconds.
    pub start: Quantity,
    /// Time from the arrival of a read request at the host to its completions, in picoseconds.
    pub memory_latency: Quantity,
    /// Time from the arrival of the status word or the interrupt to its detection by a core, in picoseconds.
    pub detection: Quantity,
    /// Bytes of a descriptor.
    pub descriptor: Quantity,
    /// Maximum bytes of a read request.
    pub read_request: Quantity,
    /// Tags of the engine: maximum outstanding read requests.
    pub tags: Quantity,
}

/// Name, unit and limits of a quantity.
pub struct Row {
    /// Name, as users write it.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Lowest and highest value that can be set, in the base unit.
    limits: (u64, u64),
    /// True if the value is a power of two.
    is_power_of_two: bool,
    /// Field of the quantity.
    place: fn(&mut Quantities) -> &mut Quantity,
}

/// Nanosecond in picoseconds.
const NS: u64 = cohkit_units::NANOSECOND;
/// Limits of a time: 0 to 1 ms.
const TIME: (u64, u64) = (0, 1_000_000 * NS);

/// All quantities.
#[rustfmt::skip]
pub const TABLE: [Row; 7] = [
    row("dma.queue", Unit::Count, (1, 1024), |q| &mut q.queue),
    row("dma.start", Unit::Picoseconds, TIME, |q| &mut q.start),
    row("dma.memory_latency", Unit::Picoseconds, TIME, |q| &mut q.memory_latency),
    row("dma.detection", Unit::Picoseconds, TIME, |q| &mut q.detection),
    row("dma.descriptor", Unit::Bytes, (4, 4096), |q| &mut q.descriptor),
    row("dma.read_request", Unit::Bytes, (128, 4096), |q| &mut q.read_request).with_power_of_two(),
    row("dma.tags", Unit::Count, (1, 256), |q| &mut q.tags),
];

/// A row for any value between the limits.
const fn row(
    name: &'static str,
    unit: Unit,
    limits: (u64, u64),
    place: fn(&mut Quantities) -> &mut Quantity,
) -> Row {
    Row {
        name,
        unit,
        limits,
        is_power_of_two: false,
        place,
    }
}

impl Row {
    /// The same row, for powers of two.
    const fn with_power_of_two(mut self) -> Row {
        self.is_power_of_two = true;
        self
    }
}

impl Default for Quantities {
    fn default() -> Quantities {
        let assumed = Quantity::assumed;
        Quantities {
            queue: assumed(
                32,
                (8, 128),
                "assumed: a quarter, and four times as many",
            ),
            start: assumed(
                100 * NS,
                (50 * NS, 200 * NS),
                "assumed: 25 clocks of 250 MHz; half, and twice as many",
            ),
            memory_latency: assumed(
                232 * NS,
                (132 * NS, 332 * NS),
                "fitted to pcie-bench (SIGCOMM 2018): a read of 64 bytes over 8 lanes of PCIe Gen3 takes about 550 ns on \
                 a server, of which 300 ns are two delays of 150 ns; the ends follow from delays of 200 and 100 ns",
            ),
            detection: assumed(
                100 * NS,
                (50 * NS, 2000 * NS),
                "assumed: a core polls; up to an interrupt that an operating system handles",
            ),
            descriptor: assumed(
                32,
                (16, 64),
                "assumed: two addresses of 8 bytes, a length, flags and the address of the next descriptor; half, and \
                 twice as many",
            ),
            read_request: assumed(
                512,
                (128, 4096),
                "assumed: the most frequent setting of hosts; the least and the largest of PCIe",
            ),
            tags: assumed(
                256,
                (32, 256),
                "assumed: all tags of 8 bits; those of 5 bits, without extended tags of PCIe",
            ),
        }
    }
}

impl Quantities {
    /// Returns all quantities with their rows.
    pub fn rows(&self) -> impl Iterator<Item = (&'static Row, Quantity)> + '_ {
        let mut all = self.clone();
        TABLE
            .iter()
            .map(move |row| (row, (row.place)(&mut all).clone()))
    }

    /// Sets a quantity from a text `NAME=VALUE`.
    ///
    /// # Errors
    /// There is no such quantity, or the value is not allowed; the message names those that are.
    pub fn set(&mut self, setting: &str) -> Result<(), String> {
        let Some((name, text)) = setting.split_once('=') else {
            return Err(format!("`{setting}` is not NAME=VALUE"));
        };
        let Some(row) = TABLE.iter().find(|row| row.name == name) else {
            let names = TABLE.each_ref().map(|row| row.name);
            let suggestion = did_you_mean(name, names);
            let names = names.join(", ");
            return Err(format!(
                "there is no quantity `{name}` of DMA; {suggestion}there are {names}"
            ));
        };
        let value = parse(text, row.unit).map_err(|reason| format!("`{setting}` {reason}"))?;
        let (low, high) = row.limits;
        if !(low..=high).contains(&value) {
            let (low, high) = (show(low, row.unit), show(high, row.unit));
            return Err(format!("`{name}` is from {low} to {high}, not {text}"));
        }
        if row.is_power_of_two && !value.is_power_of_two() {
            return Err(format!("`{name}` is a power of two, not {text}"));
        }
        (row.place)(self).value = value;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends of each range can be set, and set the quantity of this name alone.
    #[test]
    fn ends_of_ranges_can_be_set() {
        for (row, quantity) in Quantities::default().rows() {
            let (low, high) = quantity.range;
            assert!(
                low <= quantity.value && quantity.value <= high,
                "{}",
                row.name
            );
            for end in [low, high] {
                let mut changed = Quantities::default();
                let setting = format!("{}={}", row.name, show(end, row.unit));
                changed.set(&setting).unwrap();
                for ((other, now), (_, before)) in changed.rows().zip(Quantities::default().rows())
                {
                    let expected = if other.name == row.name {
                        end
                    } else {
                        before.value
                    };
                    assert_eq!(now.value, expected, "{setting}: {}", other.name);
                }
            }
        }
    }

    #[test]
    fn settings_that_are_not_allowed_are_explained() {
        for (setting, expected) in [
            ("dma.start", "`dma.start` is not NAME=VALUE"),
            ("dma.strat=1ns", "did you mean `dma.start`"),
            ("dma.start=2ms", "`dma.start` is from 0ps to 1ms, not 2ms"),
            ("dma.start=100", "has no unit"),
            ("dma.tags=0", "`dma.tags` is from 1 to 256, not 0"),
            (
                "dma.read_request=300B",
                "`dma.read_request` is a power of two, not 300B",
            ),
        ] {
            let error = Quantities::default().set(setting).unwrap_err();
            assert!(error.contains(expected), "{setting}: {error}");
        }
    }
}
