//! Table `[home]` of a platform, measured on the RTL.

use cohkit_base::words::counted;
use cohkit_rtl::lockstep::measure::Parts;
use cohkit_rtl::lockstep::setup::Setup;
use cohkit_rtl::verilated::PERIOD;
use cohkit_rtl::CLOCK;
use cohkit_units::{self as units, Unit};
use std::fmt::Write;

/// Quantities of a simulated home with the timing of this RTL, as TOML. `file` is the name of the protocol file, and
/// `parts` are the measured times.
pub(super) fn table(setup: &Setup, file: &str, parts: &Parts) -> String {
    let shape = &setup.shape;
    let mut text =
        format!("# Measured by `cohkit rtl measure protocols/{file} --print-platform`.\n[home]\n");
    let mut quantity = |name: &str, value: String, origin: &str| {
        let _ = writeln!(
            text,
            "{name} = {{ value = {value}, origin = \"{origin}\" }}"
        );
    };
    let count = |value: usize| value.to_string();
    let picoseconds = |time| format!("\"{}\"", units::show(time, Unit::Picoseconds));
    let rtl = "parameter of the RTL";
    quantity("slices", count(2), rtl);
    quantity("units", count(shape.units), rtl);
    quantity("max_reads", count(shape.reads), rtl);
    quantity("max_writes", count(shape.writes), rtl);
    quantity("stall_entries", count(shape.max_deferred), rtl);
    quantity(
        "queue_entries",
        count(1),
        "the RTL: a request without a free slot stalls its virtual circuit",
    );
    quantity(
        "memory_round_trip",
        "\"0ns\"".into(),
        "the RTL: memory is connected to its ports",
    );
    for (name, cycles, description) in [
        (
            "latency",
            parts.latency,
            "from the request for a line that no cache holds to the read of memory",
        ),
        (
            "occupancy",
            parts.occupancy,
            "of its unit by a request for a line that no cache holds",
        ),
        (
            "completion_latency",
            parts.completion_latency,
            "from memory's read data to the last beat of the message with them",
        ),
        (
            "completion_occupancy",
            parts.completion_occupancy,
            "of its unit by read data of memory",
        ),
        (
            "device_round_trip",
            parts.local,
            "latency of a clean-invalidate of a clean line without the remote and `latency`, which is counted once to the remote and once from it",
        ),
    ] {
        let value = picoseconds(cycles * PERIOD);
        let cycles = counted(cycles, "cycle");
        quantity(name, value, &format!("measured: {cycles} of {CLOCK} MHz, {description}"));
    }
    quantity(
        "local_issue_interval",
        picoseconds(PERIOD),
        "the RTL: one in each cycle",
    );
    text
}
