//! The home's registers at the end of a run: the counters have the expected values, and the other registers describe
//! the home.

use super::counts::{Counts, GROUPS};
use super::error::{check_failed, Checked};
use super::illegal_traffic::FirstErrors;
use super::testbench::Bench;
use crate::lockstep::model::SLICES;
use crate::lockstep::setup::Check;
use crate::lockstep::shapes::Endpoint;
use crate::registers::{
    counter_position, is_present, register, Register, COUNTERS, COUNTER_POSITIONS, IDENTITY,
    REGISTERS,
};
use crate::rom::Rom;

/// Maximum number of cycles until a register access is answered.
const TIMEOUT_CYCLES: u64 = 2_000;
/// AXI response code of a successful access.
const OKAY: u64 = 0;
/// AXI response code of an access to an address without a register (`SLVERR`).
const ERROR: u64 = 2;
/// Addresses without a register.
const UNUSED_ADDRESSES: [u64; 5] = [0x38, 0x3f8, 0x800, 0xc00, 0xff8];
/// Number of cycles after which all events have been reported and counted.
const COUNTING_CYCLES: u64 = 200;
/// Maximum number of cycles of a reset or of clearing the counters, which are not counted.
const RESET_CYCLES: u64 = 8;

/// Response to the read of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RegisterRead {
    /// Value of the register.
    value: u64,
    /// AXI response code.
    response: u64,
}

/// Values of all counters, by position and slice.
type Counters = Vec<[u64; SLICES]>;

/// Reads all registers of the quiescent home, and writes the writable ones.
pub(super) fn check_registers(bench: &mut Bench) -> Checked {
    bench.is_listening = true;
    for _ in 0..COUNTING_CYCLES {
        bench.run_quiet_cycle()?;
    }
    // Changes that have not been reported by now are lost.
    for unit in 0..bench.context().reference.units() {
        let lost = bench.changes.finish(unit).or_else(register_mismatch)?;
        bench.counts[unit % SLICES].record_lost_changes(lost);
    }
    let expected = bench.counts.clone();
    let counted = read_counters(bench)?;
    let reference = bench.context().reference.clone();
    for (slice, expected) in expected.iter().enumerate() {
        let counted: Vec<u64> = counted.iter().map(|slices| slices[slice]).collect();
        let endpoint = reference.shape.endpoint;
        check_counters(reference.rom, endpoint, slice, expected, &counted)?;
        check_groups(reference.rom, slice, expected, &counted)?;
    }
    check_first_errors(bench, false)?;
    bench.context().report.counters = counted.iter().map(|slices| slices.iter().sum()).collect();
    check_identity(bench)?;
    check_unused_addresses(bench)?;
    check_control(bench)
}

/// Reads all counters, and checks that positions without a counter return errors.
fn read_counters(bench: &mut Bench) -> Checked<Counters> {
    let mut counters = vec![[0; SLICES]; COUNTER_POSITIONS];
    let rom = bench.context().reference.rom;
    // The home updates its counters in turn, one per cycle, and answers a read at the counter's turn. With a stride of
    // 21, the next position comes soon after the few cycles of a register access.
    for position in (0..COUNTER_POSITIONS).map(|step| step * 21 % COUNTER_POSITIONS) {
        let address = COUNTERS + 8 * position as u64;
        let start_cycle = bench.context().cycle;
        let reads = read_register(bench, address)?;
        let end_cycle = bench.context().cycle;
        let counter = counter(rom, position);
        for (slice, RegisterRead { value, response }) in reads.into_iter().enumerate() {
            let expected_response = if counter.is_some() { OKAY } else { ERROR };
            if response != expected_response {
                return register_mismatch(format!(
                    "address {address:#x} of slice {slice} answers {response}; it should be {expected_response}"
                ));
            }
            // All cycles except a few of the reset, up to some moment of the read.
            if counter.is_some_and(|(counter, _)| counter.name == "Cycles")
                && !(start_cycle.saturating_sub(RESET_CYCLES)..=end_cycle).contains(&value)
            {
                return register_mismatch(format!(
                    "slice {slice} counts {value} cycles; there were {start_cycle}"
                ));
            }
            counters[position][slice] = value;
        }
    }
    Ok(counters)
}

/// Compares the counters of a slice with the expected ones.
fn check_counters(
    rom: &Rom,
    endpoint: Endpoint,
    slice: usize,
    expected: &Counts,
    counted: &[u64],
) -> Checked {
    for (position, &counted) in counted.iter().enumerate() {
        let Some((counter, number)) = counter(rom, position) else {
            continue;
        };
        if !is_unobservable(endpoint, counter.name) && !expected.is_possible(position, counted) {
            let (certain, excess) = (
                expected.certain[position],
                expected.possible_excess[position],
            );
            return register_mismatch(format!(
                "slice {slice} counts {counted} of {}[{number}]; there were {certain}, and perhaps {excess} more",
                counter.name
            ));
        }
    }
    Ok(())
}

/// Compares the sums of counters whose events are ambiguous with the expected ones.
fn check_groups(rom: &Rom, slice: usize, expected: &Counts, counted: &[u64]) -> Checked {
    for (group, ambiguous) in GROUPS.iter().zip(expected.ambiguous) {
        let sum = |values: &[u64]| group.iter().map(|&position| values[position]).sum::<u64>();
        let (counted, certain) = (sum(counted), sum(&expected.certain));
        if counted != certain + ambiguous {
            let (counter, number) = counter(rom, group[0]).unzip();
            return register_mismatch(format!(
                "slice {slice} counts {counted} of {}[{}] and equivalent events; there were {}",
                counter.map_or("", |counter| counter.name),
                number.unwrap_or(0),
                certain + ambiguous
            ));
        }
    }
    Ok(())
}

/// Checks the registers of the first refusal and of the first dropped event: their values in this run, or 0 if they
/// have been cleared.
fn check_first_errors(bench: &mut Bench, cleared: bool) -> Checked {
    for (name, is_of_refusal) in [("FirstWrong", true), ("FirstImpossible", false)] {
        let reads = read_register(bench, register(name).address)?;
        for (slice, RegisterRead { value, response }) in reads.into_iter().enumerate() {
            let FirstErrors { refusals, drops } =
                bench.illegal_traffic.expected_first_errors(slice);
            let expected = match (cleared, is_of_refusal) {
                (true, _) => vec![0],
                (false, true) => refusals,
                (false, false) => drops,
            };
            if response != OKAY || !expected.contains(&value) {
                return register_mismatch(format!(
                    "{name} of slice {slice} reads {value:x}; it should be of {expected:x?}"
                ));
            }
        }
    }
    Ok(())
}

/// True for counters that are observable neither at the pins nor in the steps of units: all cycles, and ports between
/// home and endpoint.
fn is_unobservable(endpoint: Endpoint, name: &str) -> bool {
    match name {
        "Cycles" => true,
        "ArWaits" | "AwWaits" | "WWaits" => endpoint.has_memory(),
        "LocalWaits" | "AnswerWaits" => endpoint.drives_local_ports(),
        _ => false,
    }
}

/// Returns the register at a counter position and the index within its array, if this home implements it.
fn counter(rom: &Rom, position: usize) -> Option<(&'static Register, usize)> {
    let mut counters = REGISTERS
        .iter()
        .filter(|register| register.address >= COUNTERS);
    let register = counters.find(|register| {
        let first = counter_position(register.name);
        (first..first + register.count).contains(&position)
    })?;
    let number = position - counter_position(register.name);
    is_present(rom, register, number).then_some((register, number))
}

/// Checks the registers that describe protocol and home.
fn check_identity(bench: &mut Bench) -> Checked {
    let reference = bench.context().reference.clone();
    let (rom, shape) = (reference.rom, reference.shape);
    let sizes = rom.messages as u64
        | (rom.locking.len() as u64) << 8
        | (rom.rx.len() as u64) << 16
        | (rom.tx.len() as u64) << 24
        | u64::from(reference.protocol.line_bytes) << 32;
    let values = [("Identity", IDENTITY), ("About", sizes), ("Status", 3)];
    for (name, value) in values {
        let reads = read_register(bench, register(name).address)?;
        if reads != [okay(value); SLICES] {
            return register_mismatch(format!("{name} reads {reads:x?}; it should be {value:x}"));
        }
    }
    let reads = read_register(bench, register("Shape").address)?;
    for (slice, RegisterRead { value, .. }) in reads.into_iter().enumerate() {
        let (set_bits, tag_bits) = (u64::from(shape.set_bits), u64::from(shape.tag_bits));
        let [units, ways, reads, max_deferred] =
            [shape.units, shape.ways, shape.reads, shape.max_deferred].map(|number| number as u64);
        let fields = units | ways << 16 | set_bits << 24 | tag_bits << 32 | reads << 40;
        if value != fields | max_deferred << 48 | (slice as u64) << 56 {
            return register_mismatch(format!("Shape of slice {slice} reads {value:x}"));
        }
    }
    Ok(())
}

/// Checks that unused addresses return errors.
fn check_unused_addresses(bench: &mut Bench) -> Checked {
    for address in UNUSED_ADDRESSES {
        let reads = read_register(bench, address)?;
        if reads.iter().any(|read| read.response != ERROR) {
            return register_mismatch(format!(
                "no register exists at {address:#x}, but it answers {reads:x?}"
            ));
        }
    }
    Ok(())
}

/// Checks the control register: stops counting, clears the counters, and restarts counting.
fn check_control(bench: &mut Bench) -> Checked {
    let control = register("Control").address;
    let cycles = register("Cycles").address;
    let refused_addresses = [register("Identity").address, cycles, UNUSED_ADDRESSES[0]];
    // The last write stops counting.
    for (address, expected) in refused_addresses
        .map(|address| (address, ERROR))
        .into_iter()
        .chain([(control, OKAY)])
    {
        let responses = write_register(bench, address, 0)?;
        if responses != [expected; SLICES] {
            return register_mismatch(format!(
                "a write to {address:#x} is answered with {responses:?}"
            ));
        }
    }
    let stopped = read_register(bench, cycles)?;
    if read_register(bench, cycles)? != stopped || stopped.contains(&okay(0)) {
        return register_mismatch("cycles are counted although counting was stopped".into());
    }
    // Clear the counters, and restart counting.
    write_register(bench, control, 0b11)?;
    let start_cycle = bench.context().cycle;
    for name in ["Cycles", "Busy", "Events", "Sent"] {
        let reads = read_register(bench, register(name).address)?;
        let max_value = match name {
            "Cycles" => bench.context().cycle - start_cycle + RESET_CYCLES,
            _ => 0,
        };
        if reads.iter().any(|read| read.value > max_value) {
            return register_mismatch(format!("{name} reads {reads:?} after it was cleared"));
        }
    }
    check_first_errors(bench, true)?;
    let reads = read_register(bench, control)?;
    match reads == [okay(1); SLICES] {
        true => Ok(()),
        false => register_mismatch(format!("Control reads {reads:?} while counting goes on")),
    }
}

/// Returns the successful read of a value.
fn okay(value: u64) -> RegisterRead {
    RegisterRead {
        value,
        response: OKAY,
    }
}

/// Reads a register of both slices.
fn read_register(bench: &mut Bench, address: u64) -> Checked<[RegisterRead; SLICES]> {
    let mut accepted = [false; SLICES];
    let mut reads = [None; SLICES];
    for _ in 0..TIMEOUT_CYCLES {
        for (slice_index, accepted) in accepted.iter().enumerate() {
            bench.inputs.cfg_ar_valid[slice_index] = u64::from(!accepted);
            bench.inputs.cfg_ar_addr[slice_index] = address;
            bench.inputs.cfg_r_ready[slice_index] = u64::from(bench.context().random.below(4) > 0);
        }
        bench.run_quiet_cycle()?;
        for slice_index in 0..SLICES {
            let (inputs, outputs) = (&bench.inputs, &bench.outputs);
            accepted[slice_index] |=
                inputs.cfg_ar_valid[slice_index] & outputs.cfg_ar_ready[slice_index] != 0;
            if outputs.cfg_r_valid[slice_index] & inputs.cfg_r_ready[slice_index] != 0 {
                reads[slice_index] = Some(RegisterRead {
                    value: outputs.cfg_r_data[slice_index],
                    response: outputs.cfg_r_resp[slice_index],
                });
            }
        }
        if let [Some(first), Some(second)] = reads {
            return Ok([first, second]);
        }
    }
    register_mismatch(format!("the register at {address:#x} does not answer"))
}

/// Writes a register of both slices. Address and data are offered at independent times, in either order.
fn write_register(bench: &mut Bench, address: u64, value: u64) -> Checked<[u64; SLICES]> {
    // By slice: flags of the address and of the data.
    let mut accepted = [[false; 2]; SLICES];
    let mut offered = [[false; 2]; SLICES];
    let mut responses = [None; SLICES];
    for _ in 0..TIMEOUT_CYCLES {
        for slice_index in 0..SLICES {
            for offered in &mut offered[slice_index] {
                *offered |= bench.context().random.below(4) == 0;
            }
            let valid =
                |part: usize| u64::from(offered[slice_index][part] && !accepted[slice_index][part]);
            bench.inputs.cfg_aw_valid[slice_index] = valid(0);
            bench.inputs.cfg_aw_addr[slice_index] = address;
            bench.inputs.cfg_w_valid[slice_index] = valid(1);
            bench.inputs.cfg_w_data[slice_index] = value;
            bench.inputs.cfg_w_strb[slice_index] = 0xff;
            bench.inputs.cfg_b_ready[slice_index] = bench.context().random.below(2);
        }
        bench.run_quiet_cycle()?;
        for slice_index in 0..SLICES {
            let (inputs, outputs) = (&bench.inputs, &bench.outputs);
            accepted[slice_index][0] |=
                inputs.cfg_aw_valid[slice_index] & outputs.cfg_aw_ready[slice_index] != 0;
            accepted[slice_index][1] |=
                inputs.cfg_w_valid[slice_index] & outputs.cfg_w_ready[slice_index] != 0;
            if outputs.cfg_b_valid[slice_index] & inputs.cfg_b_ready[slice_index] != 0 {
                responses[slice_index] = Some(outputs.cfg_b_resp[slice_index]);
            }
        }
        if let [Some(first), Some(second)] = responses {
            return Ok([first, second]);
        }
    }
    register_mismatch(format!(
        "a write to the register at {address:#x} is not answered"
    ))
}

/// Failure: a register does not read as expected.
fn register_mismatch<T>(message: String) -> Checked<T> {
    check_failed(Check::Comparison, None, message)
}
