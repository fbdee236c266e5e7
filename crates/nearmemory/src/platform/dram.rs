//! Quantities of far memory's DRAM: the names, units and limits of the simulator's platforms.

use super::row::{Form, Row};
use cohkit_dram::{Dram, JedecDram, Memory, Standard};
use cohkit_platform::{find, DeTable, Reader, Spanned};
use cohkit_units::{Quantity, Unit, NANOSECOND};
use Unit::{Bytes, BytesPerSecond, Count, Picoseconds};

/// Names of the choices: the standard, and the scheduler of DRAM with a standard.
const STANDARD: &str = "dram.standard";
const SCHEDULER: &str = "dram.scheduler";

/// A quantity of DRAM.
struct DramRow {
    row: Row,
    /// Meaning of the quantity, a sentence.
    meaning: &'static str,
    place: Place,
}

/// Kinds of DRAM that have a quantity, with its place in each.
enum Place {
    /// DRAM without a standard only.
    Simple(fn(&mut Dram) -> &mut Quantity),
    /// DRAM with a standard only.
    Jedec(fn(&mut JedecDram) -> &mut Quantity),
    /// DRAM with a standard, which gives the value unless the file does.
    Standard(fn(&mut JedecDram) -> &mut Quantity),
    /// Both; a standard gives the value unless the file does.
    Timing(
        fn(&mut Dram) -> &mut Quantity,
        fn(&mut JedecDram) -> &mut Quantity,
    ),
    /// Both, and no standard gives the value.
    Both(
        fn(&mut Dram) -> &mut Quantity,
        fn(&mut JedecDram) -> &mut Quantity,
    ),
}

/// Limits of a time, in picoseconds: at most a millisecond.
const TIME: (u64, u64) = (0, 1_000_000 * NANOSECOND);
/// Limits of a flag.
const FLAG: (u64, u64) = (0, 1);
/// Limits of a bandwidth, in bytes per second: 1 MB/s to 1 PB/s.
const RATE: (u64, u64) = (1_000_000, 1_000_000_000_000_000);

/// All quantities, in the order of reports. Each row keeps to its line, so that the table can be read by columns.
#[rustfmt::skip]
const ROWS: &[DramRow] = &[
    row("dram.channels", Count, (1, 64), Form::Any, Place::Both(|d| &mut d.channels, |d| &mut d.channels), "Channels of far memory; lines are interleaved over them."),
    row("dram.channel_hash", Count, FLAG, Form::Any, Place::Jedec(|d| &mut d.channel_hash), "1 if higher bits of a line's number take part in the choice of its channel."),
    row("dram.bank_hash", Count, FLAG, Form::Any, Place::Jedec(|d| &mut d.bank_hash), "1 if the lowest bits of the row take part in the choice of the bank."),
    row("dram.closed_page", Count, FLAG, Form::Any, Place::Jedec(|d| &mut d.closed_page), "1 if a row is closed unless a waiting burst hits it."),
    row("dram.queue_entries", Count, (1, 1024), Form::Any, Place::Jedec(|d| &mut d.queue_entries), "Bursts that the scheduler considers: of a channel, or of each group machine."),
    row("dram.max_wait", Picoseconds, TIME, Form::Any, Place::Jedec(|d| &mut d.max_wait), "Time in the queue after which FR-FCFS lets no other burst delay the oldest one."),
    row("dram.controller_clocks", Count, (1, 16), Form::Any, Place::Jedec(|d| &mut d.controller_clocks), "Clocks of the DRAM in a clock of a controller with group machines."),
    row("dram.clock_period", Picoseconds, (100, 10_000), Form::Any, Place::Standard(|d| &mut d.clock_period), "A clock of the command bus."),
    row("dram.burst_clocks", Count, (1, 64), Form::Any, Place::Standard(|d| &mut d.burst_clocks), "Clocks of a burst on the data bus."),
    row("dram.burst_bytes", Bytes, (16, 256), Form::PowersOfTwo, Place::Standard(|d| &mut d.burst_bytes), "A burst."),
    row("dram.bank_groups", Count, (1, 8), Form::PowersOfTwo, Place::Standard(|d| &mut d.bank_groups), "Bank groups of a channel."),
    row("dram.banks_per_group", Count, (1, 8), Form::PowersOfTwo, Place::Standard(|d| &mut d.banks_per_group), "Banks of a bank group."),
    row("dram.banks", Count, (1, 1024), Form::PowersOfTwo, Place::Simple(|d| &mut d.banks), "Banks of a channel."),
    row("dram.row_bytes", Bytes, (64, 1 << 24), Form::PowersOfTwo, Place::Timing(|d| &mut d.row_bytes, |d| &mut d.row_bytes), "A row of a bank."),
    row("dram.bandwidth", BytesPerSecond, RATE, Form::Any, Place::Simple(|d| &mut d.bandwidth), "A channel."),
    row("dram.t_cl", Picoseconds, TIME, Form::Any, Place::Timing(|d| &mut d.t_cl, |d| &mut d.timing.t_cl), "Access to a column."),
    row("dram.t_cwl", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_cwl), "From a write to its first data."),
    row("dram.t_rcd", Picoseconds, TIME, Form::Any, Place::Timing(|d| &mut d.t_rcd, |d| &mut d.timing.t_rcd), "Opening a row."),
    row("dram.t_rp", Picoseconds, TIME, Form::Any, Place::Timing(|d| &mut d.t_rp, |d| &mut d.timing.t_rp), "Closing a row."),
    row("dram.t_ras", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_ras), "From an activate to a precharge of its bank."),
    row("dram.t_rtp", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_rtp), "From a read to a precharge of its bank."),
    row("dram.t_wr", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_wr), "From the last data of a write to a precharge of its bank."),
    row("dram.t_ccd_s", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_ccd_s), "Between column commands of different bank groups."),
    row("dram.t_ccd_l", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_ccd_l), "Between column commands of one bank group."),
    row("dram.t_ccd_l_wr", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_ccd_l_wr), "Between two writes of one bank group."),
    row("dram.t_rrd_s", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_rrd_s), "Between activates in different bank groups."),
    row("dram.t_rrd_l", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_rrd_l), "Between activates in one bank group."),
    row("dram.t_faw", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_faw), "Window with at most four activates."),
    row("dram.t_wtr_s", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_wtr_s), "From the last data of a write to a read in another bank group."),
    row("dram.t_wtr_l", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_wtr_l), "From the last data of a write to a read in its bank group."),
    row("dram.t_rtw", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_rtw), "From a read to a write."),
    row("dram.t_refi", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_refi), "Interval of refreshes; 0 for none."),
    row("dram.t_rfc", Picoseconds, TIME, Form::Any, Place::Standard(|d| &mut d.timing.t_rfc), "From a refresh to an activate."),
    row("dram.row_idle_timeout", Picoseconds, TIME, Form::Any, Place::Simple(|d| &mut d.row_idle_timeout), "Time after which an idle row is closed."),
    row("dram.controller_latency", Picoseconds, TIME, Form::Any, Place::Both(|d| &mut d.controller_latency, |d| &mut d.controller_latency), "Controller and wires, both ways together."),
];

const fn row(
    name: &'static str,
    unit: Unit,
    limits: (u64, u64),
    form: Form,
    place: Place,
    meaning: &'static str,
) -> DramRow {
    let row = Row {
        name,
        unit,
        limits,
        form,
    };
    DramRow {
        row,
        meaning,
        place,
    }
}

impl DramRow {
    /// Returns the quantity in a memory, if it has the quantity.
    fn quantity<'m>(&self, memory: &'m mut Memory) -> Option<&'m mut Quantity> {
        match (&self.place, memory) {
            (
                Place::Simple(place) | Place::Timing(place, _) | Place::Both(place, _),
                Memory::Dram(dram),
            ) => Some(place(dram)),
            (
                Place::Jedec(place)
                | Place::Standard(place)
                | Place::Timing(_, place)
                | Place::Both(_, place),
                Memory::Jedec(dram),
            ) => Some(place(dram)),
            _ => None,
        }
    }

    /// True if a standard gives the value, unless the file does.
    fn is_optional(&self, memory: &Memory) -> bool {
        matches!(memory, Memory::Jedec(_))
            && matches!(self.place, Place::Standard(_) | Place::Timing(..))
    }
}

/// Returns DRAM without a standard, whose quantities are still to be read.
fn unset() -> Memory {
    let unset = || Quantity::given(0, "");
    Memory::Dram(Box::new(Dram {
        channels: unset(),
        banks: unset(),
        row_bytes: unset(),
        bandwidth: unset(),
        t_cl: unset(),
        t_rcd: unset(),
        t_rp: unset(),
        row_idle_timeout: unset(),
        controller_latency: unset(),
    }))
}

/// Reads the DRAM of a machine, and adds its names to `known`. Errors are reported. Returns `None` if its kind is not
/// clear.
pub(super) fn read(
    reader: &mut Reader,
    table: &DeTable,
    known: &mut Vec<String>,
) -> Option<Memory> {
    let span = |name: &str| find(table, name).map(Spanned::span);
    known.push(STANDARD.to_string());
    let mut memory = unset();
    if let Some(span) = span(STANDARD) {
        let text = reader.read_choice(table, STANDARD)?;
        match Standard::named(STANDARD, &text) {
            Ok(standard) => memory = Memory::Jedec(Box::new(JedecDram::new(standard))),
            Err(error) => {
                reader.report(span, error);
                return None;
            }
        }
    }
    if let Memory::Jedec(dram) = &mut memory {
        known.push(SCHEDULER.to_string());
        if let Some(text) = reader.read_choice(table, SCHEDULER) {
            if let Err(error) = dram.set_choice(SCHEDULER, &text, "") {
                reader.report(span(SCHEDULER).unwrap_or(reader.end.clone()), error);
            }
        }
    }
    let mut former_names = Vec::new();
    for dram_row in ROWS {
        if dram_row.quantity(&mut memory).is_none() {
            continue;
        }
        let row = &dram_row.row;
        known.push(row.name.to_string());
        match reader.find_quantity(table, row.name, &mut former_names) {
            Some(value) => {
                let read = row.read(reader, value);
                if let Some((quantity, read)) = dram_row.quantity(&mut memory).zip(read) {
                    *quantity = read;
                }
            }
            None if dram_row.is_optional(&memory) => {}
            None => reader.report_missing(table, row.name),
        }
    }
    known.append(&mut former_names);
    Some(memory)
}

/// Returns the quantities of a memory with their names, units and meanings.
pub(super) fn quantities(memory: &Memory) -> Vec<(&'static str, Unit, Quantity, &'static str)> {
    let mut memory = memory.clone();
    let of_row = |dram_row: &DramRow| {
        let quantity = dram_row.quantity(&mut memory)?.clone();
        let Row { name, unit, .. } = dram_row.row;
        Some((name, unit, quantity, dram_row.meaning))
    };
    ROWS.iter().filter_map(of_row).collect()
}

/// Sets a quantity or the choice of a memory by its name. Returns `None` if no DRAM has the name.
pub(super) fn set(memory: &mut Memory, name: &str, value: &str) -> Option<Result<(), String>> {
    if let STANDARD | SCHEDULER = name {
        return Some(match memory {
            Memory::Jedec(dram) => dram.set_choice(name, value, "set for this run"),
            _ => Err(needs(name, true)),
        });
    }
    let dram_row = ROWS.iter().find(|dram_row| dram_row.row.name == name)?;
    let needs_standard = matches!(memory, Memory::Dram(_));
    let Some(quantity) = dram_row.quantity(memory) else {
        return Some(Err(needs(name, needs_standard)));
    };
    let parsed = dram_row.row.parse(value);
    Some(parsed.map(|value| quantity.value = value))
}

/// Returns the error for a name that the other kind of DRAM has.
fn needs(name: &str, needs_standard: bool) -> String {
    match needs_standard {
        true => format!(
            "`{name}` needs DRAM with a standard, which this machine has not: `standard` and `scheduler` belong in the \
             table `[dram]` of a machine file"
        ),
        false => format!("`{name}` needs DRAM without a `{STANDARD}`"),
    }
}

/// Returns the requirement of a name that only one kind of DRAM has, for the error of a file in which the name is
/// unknown.
pub(super) fn requirement(name: &str) -> Option<String> {
    let needs_standard = match ROWS.iter().find(|dram_row| dram_row.row.name == name) {
        None => (name == SCHEDULER).then_some(true),
        Some(DramRow { place, .. }) => match place {
            Place::Simple(_) => Some(false),
            Place::Jedec(_) | Place::Standard(_) => Some(true),
            Place::Timing(..) | Place::Both(..) => None,
        },
    }?;
    let with = if needs_standard { "with" } else { "without" };
    Some(format!("needs DRAM {with} a `{STANDARD}`"))
}

/// Returns the names of the quantities and choices of a memory.
pub(super) fn names(memory: &Memory) -> Vec<&'static str> {
    let choices: &[&str] = match memory {
        Memory::Jedec(_) => &[STANDARD, SCHEDULER],
        _ => &[],
    };
    let quantities = quantities(memory);
    let names = quantities.iter().map(|(name, ..)| *name);
    choices.iter().copied().chain(names).collect()
}
