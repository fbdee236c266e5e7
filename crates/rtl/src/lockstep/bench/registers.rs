//! The home's registers: expected counter values are derived from its pins and compared at the end of a run.

use super::unit_resources::{MissingResource, Use};
use super::*;
use crate::registers::counter_position;
use crate::registers::{is_present, register, Register, COUNTERS, COUNTER_POSITIONS, REGISTERS};

/// Maximum number of cycles until a register access is answered.
const TIMEOUT_CYCLES: u64 = 2_000;
/// AXI response codes.
const OKAY: u64 = 0;
const ERROR: u64 = 2;
/// Addresses without a register.
const UNUSED_ADDRESSES: [u64; 5] = [0x38, 0x3f8, 0x800, 0xc00, 0xff8];
/// Number of cycles after which all events have been reported and counted.
const COUNTING_CYCLES: u64 = 200;

/// Value and AXI response of a register in each slice.
type Answers = [(u64, u64); SLICES];

/// Groups of counters: an event increments one counter of its group, but the pins do not always show which one.
const GROUPS: [&[usize]; 5] = [
    &[
        counter_position("StallsRoom"),
        counter_position("StallsRead"),
        counter_position("StallsLocal"),
        counter_position("StallsSend"),
        counter_position("StallsWrite"),
    ],
    &[
        counter_position("RxWaitsUnit"),
        counter_position("RxWaitsSlot"),
    ],
    &[
        counter_position("RxWaitsUnit") + 1,
        counter_position("RxWaitsSlot") + 1,
    ],
    &[
        counter_position("RxWaitsUnit") + 2,
        counter_position("RxWaitsSlot") + 2,
    ],
    &[
        counter_position("RxWaitsUnit") + 3,
        counter_position("RxWaitsSlot") + 3,
    ],
];

/// Expected counter values of a slice, by position: a certain minimum, and a possible excess.
#[derive(Clone)]
pub(super) struct Counts {
    certain: [u64; COUNTER_POSITIONS],
    possible_excess: [u64; COUNTER_POSITIONS],
    /// For each group, the number of events whose counter is ambiguous.
    either: [u64; GROUPS.len()],
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            certain: [0; COUNTER_POSITIONS],
            possible_excess: [0; COUNTER_POSITIONS],
            either: [0; GROUPS.len()],
        }
    }
}

impl Counts {
    pub(super) fn add(&mut self, position: usize, number: usize, count: u64) {
        self.certain[position + number] += count;
    }

    /// Records an event that increments one of these positions, all of one group.
    fn add_ambiguous(&mut self, positions: &[usize]) {
        if let [position] = *positions {
            return self.add(position, 0, 1);
        }
        for &position in positions {
            self.possible_excess[position] += 1;
        }
        let contains_position = |group: &&[usize]| {
            positions
                .first()
                .is_some_and(|position| group.contains(position))
        };
        if let Some(group) = GROUPS.iter().position(contains_position) {
            self.either[group] += 1;
        }
    }

    /// True if a counter may have this value.
    fn is_possible(&self, position: usize, counted: u64) -> bool {
        let certain = self.certain[position];
        (certain..=certain + self.possible_excess[position]).contains(&counted)
    }
}

impl Bench<'_> {
    /// Updates the expected counts with a slice's pin activity of this cycle.
    pub(super) fn count_pin_activity(&mut self, slice_index: usize, outputs: &Outputs) {
        let (inputs, slice, rom) = (&self.inputs, &self.slices[slice_index], self.rom);
        let counts = &mut self.counts[slice_index];
        let accepted = inputs.rx_valid[slice_index] & outputs.rx_ready[slice_index];
        for (circuit, port_queue) in slice.port_queues.iter().enumerate() {
            if (inputs.rx_valid[slice_index] & !outputs.rx_ready[slice_index]) >> circuit & 1 != 0 {
                let [unit, slot] = const {
                    [
                        counter_position("RxWaitsUnit"),
                        counter_position("RxWaitsSlot"),
                    ]
                };
                // After a first beat of data, the stream waits for a slot; after a last beat, for the unit.
                match port_queue.last_beat {
                    Some((true, true)) => counts.add_ambiguous(&[unit + circuit, slot + circuit]),
                    Some((true, false)) => counts.add_ambiguous(&[slot + circuit]),
                    _ => counts.add_ambiguous(&[unit + circuit]),
                }
            }
            let is_regular =
                accepted >> circuit & 1 != 0 && !slice.illegal_inputs.has_message(circuit);
            let Some((_, message)) = port_queue.queue.front().filter(|_| is_regular) else {
                continue;
            };
            if message.bytes.is_none() || port_queue.beat + 1 == self.beats {
                let event = Event::Message(message.kind);
                let number = rom
                    .events
                    .iter()
                    .position(|occurrence| occurrence.event == event);
                counts.add(
                    const { counter_position("Events") },
                    number.expect("it goes to the home"),
                    1,
                );
            }
        }
        for (circuit, departing) in slice.departing.iter().enumerate() {
            let stalled =
                (outputs.tx_valid[slice_index] & !inputs.tx_ready[slice_index]) >> circuit & 1;
            counts.add(const { counter_position("TxWaits") }, circuit, stalled);
            // Count headers; an unknown message number is reported elsewhere.
            let number = (outputs.tx_header[slice_index][circuit] >> 40 & 0xff) as usize;
            if (outputs.tx_valid[slice_index] & inputs.tx_ready[slice_index]) >> circuit & 1 != 0
                && departing.is_none()
                && number < rom.sends.len()
            {
                counts.add(const { counter_position("Sent") }, number, 1);
            }
        }
        let mut port = |position: usize, valid: u64, ready: u64| {
            counts.add(position, 0, valid & !ready & 1);
            valid & ready & 1
        };
        port(
            const { counter_position("ArWaits") },
            outputs.ar_valid[slice_index],
            inputs.ar_ready[slice_index],
        );
        port(
            const { counter_position("AwWaits") },
            outputs.aw_valid[slice_index],
            inputs.aw_ready[slice_index],
        );
        port(
            const { counter_position("WWaits") },
            outputs.w_valid[slice_index],
            inputs.w_ready[slice_index],
        );
        let (valid, ready) = (
            inputs.local_req_valid[slice_index],
            outputs.local_req_ready[slice_index],
        );
        port(const { counter_position("LocalWaits") }, valid, ready);
        port(
            const { counter_position("UnlockWaits") },
            inputs.unlock_valid[slice_index],
            outputs.unlock_ready[slice_index],
        );
        let (valid, ready) = (
            outputs.local_rsp_valid[slice_index],
            inputs.local_rsp_ready[slice_index],
        );
        port(const { counter_position("AnswerWaits") }, valid, ready);
        let reported = outputs.change_valid[slice_index] & inputs.change_ready[slice_index];
        counts.add(const { counter_position("Changes") }, 0, reported);
        counts.add(
            const { counter_position("Busy") },
            0,
            u64::from(outputs.busy[slice_index].count_ones()),
        );
    }

    /// Records a stalled event, whose line has a pending operation or which lacks one of the given resources.
    pub(super) fn count_stall(
        &mut self,
        slice_index: usize,
        missing_resources: &[MissingResource],
    ) {
        let counter_of = |resource: &MissingResource| match resource {
            MissingResource::Room => const { counter_position("StallsRoom") },
            MissingResource::Read => const { counter_position("StallsRead") },
            MissingResource::Local => const { counter_position("StallsLocal") },
            MissingResource::Send => const { counter_position("StallsSend") },
            MissingResource::Write => const { counter_position("StallsWrite") },
        };
        let positions: Vec<usize> = missing_resources.iter().map(counter_of).collect();
        match positions.is_empty() {
            true => {
                self.counts[slice_index].add_ambiguous(&[const { counter_position("StallsLine") }])
            }
            false => self.counts[slice_index].add_ambiguous(&positions),
        }
        self.report.stalls[usize::from(positions.len() > 1)] += 1;
    }

    /// Records a handled event other than a message. Messages are counted on arrival; all of them are handled at
    /// quiescence.
    pub(super) fn count_event(
        &mut self,
        slice_index: usize,
        number: usize,
        used: &Use,
        effect: usize,
    ) {
        let counts = &mut self.counts[slice_index];
        if used.evict {
            counts.add(
                const { counter_position("Evictions") },
                0,
                u64::from(effect == 3),
            );
        } else if effect >= 2 && !matches!(used.event, Event::Message(_)) {
            counts.add(const { counter_position("Events") }, number, 1);
            counts.add(
                const { counter_position("Refused") },
                0,
                u64::from(effect == 2),
            );
        }
    }

    /// Records lost permission changes.
    pub(super) fn count_lost_changes(&mut self, slice_index: usize, count: u64) {
        self.counts[slice_index].add(const { counter_position("ChangesLost") }, 0, count);
    }

    /// Reads all registers of the quiescent home, and writes the writable ones.
    pub(super) fn check_registers(&mut self) -> Checked {
        self.is_listening = true;
        for _ in 0..COUNTING_CYCLES {
            self.run_quiet_cycle()?;
        }
        // Changes that have not been reported by now are lost.
        for unit in 0..self.requests.len() {
            let lost = self.changes.finish(unit).or_else(register_mismatch)?;
            self.count_lost_changes(unit % SLICES, lost);
        }
        let expected = self.counts.clone();
        let mut read = vec![[0; SLICES]; COUNTER_POSITIONS];
        // Use an order in which the home's counter scan reaches the next position soon.
        for position in (0..COUNTER_POSITIONS).map(|step| step * 21 % COUNTER_POSITIONS) {
            let address = COUNTERS + 8 * position as u64;
            let start_cycle = self.cycle;
            let answers = self.read(address)?;
            let counter = self.counter(position);
            for (slice_index, (value, answer)) in answers.into_iter().enumerate() {
                let expected_response = if counter.is_some() { OKAY } else { ERROR };
                if answer != expected_response {
                    return register_mismatch(format!(
                        "address {address:#x} of slice {slice_index} answers {answer}; it should be {expected_response}"
                    ));
                }
                // All cycles except a few of the reset, up to some moment of the read.
                if counter.is_some_and(|(counter, _)| counter.name == "Cycles")
                    && !(start_cycle.saturating_sub(8)..=self.cycle).contains(&value)
                {
                    return register_mismatch(format!(
                        "slice {slice_index} counts {value} cycles; there were {start_cycle}"
                    ));
                }
                read[position][slice_index] = value;
            }
        }
        for (slice_index, expected) in expected.iter().enumerate() {
            for (position, read) in read.iter().enumerate() {
                let Some((counter, number)) = self.counter(position) else {
                    continue;
                };
                let counted = read[slice_index];
                if !self.is_unobservable(counter.name) && !expected.is_possible(position, counted) {
                    let (certain, excess) = (
                        expected.certain[position],
                        expected.possible_excess[position],
                    );
                    return register_mismatch(format!(
                        "slice {slice_index} counts {counted} of {}[{number}]; there were {certain}, and perhaps {excess} more",
                        counter.name
                    ));
                }
            }
            for (group, either) in GROUPS.iter().zip(expected.either) {
                let counted: u64 = group
                    .iter()
                    .map(|&position| read[position][slice_index])
                    .sum();
                let certain: u64 = group
                    .iter()
                    .map(|&position| expected.certain[position])
                    .sum();
                if counted != certain + either {
                    let (counter, number) = self.counter(group[0]).unzip();
                    return register_mismatch(format!(
                        "slice {slice_index} counts {counted} of {}[{}] and equivalent events; there were {}",
                        counter.map_or("", |counter| counter.name),
                        number.unwrap_or(0),
                        certain + either
                    ));
                }
            }
        }
        self.check_first_refusal(false)?;
        self.report.counters = read.iter().map(|slices| slices.iter().sum()).collect();
        self.check_identity()?;
        self.check_control()
    }

    /// Checks the registers of the first refusal and of the first dropped event, which keep their values until cleared.
    fn check_first_refusal(&mut self, cleared: bool) -> Checked {
        for (kind, name) in ["FirstWrong", "FirstImpossible"].into_iter().enumerate() {
            let answers = self.read(register(name).address)?;
            for (slice_index, (value, answer)) in answers.into_iter().enumerate() {
                let expected = match cleared {
                    true => vec![0],
                    false => self.expected_first_errors(slice_index)[kind].clone(),
                };
                if answer != OKAY || !expected.contains(&value) {
                    return register_mismatch(format!(
                        "{name} of slice {slice_index} reads {value:x}; it should be of {expected:x?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// True for counters that are observable neither at the pins nor in the steps of units: all cycles, and ports
    /// between home and endpoint.
    fn is_unobservable(&self, name: &str) -> bool {
        match name {
            "Cycles" => true,
            "ArWaits" | "AwWaits" | "WWaits" => self.endpoint.has_memory(),
            "LocalWaits" | "AnswerWaits" => self.endpoint.drives_local_ports(),
            _ => false,
        }
    }

    /// Returns the register of a counter position and the index within its array, if this home implements it.
    fn counter(&self, index: usize) -> Option<(&'static Register, usize)> {
        let mut counters = REGISTERS
            .iter()
            .filter(|register| register.address >= COUNTERS);
        let register = counters.find(|register| {
            let first = counter_position(register.name);
            (first..first + register.count).contains(&index)
        })?;
        let number = index - counter_position(register.name);
        is_present(self.rom, register, number).then_some((register, number))
    }

    /// Checks the registers that describe protocol and home, and that unused addresses return errors.
    fn check_identity(&mut self) -> Checked {
        let rom = self.rom;
        let sizes = rom.messages as u64
            | (rom.locking.len() as u64) << 8
            | (rom.rx.len() as u64) << 16
            | (rom.tx.len() as u64) << 24
            | u64::from(self.protocol.line_bytes) << 32;
        let values = [
            ("Identity", crate::registers::IDENTITY),
            ("About", sizes),
            ("Status", 3),
        ];
        for (name, value) in values {
            let answers = self.read(register(name).address)?;
            if answers != [(value, OKAY); SLICES] {
                return register_mismatch(format!(
                    "{name} reads {answers:x?}; it should be {value:x}"
                ));
            }
        }
        let shape = self.read(register("Shape").address)?;
        for (slice_index, (value, _)) in shape.into_iter().enumerate() {
            let shape = self.shape;
            let (set_bits, tag_bits) = (u64::from(shape.set_bits), u64::from(shape.tag_bits));
            let [units, ways, reads, waiting] =
                [shape.units, shape.ways, shape.reads, shape.waiting].map(|number| number as u64);
            let fields = units | ways << 16 | set_bits << 24 | tag_bits << 32 | reads << 40;
            if value != fields | waiting << 48 | (slice_index as u64) << 56 {
                return register_mismatch(format!("Shape of slice {slice_index} reads {value:x}"));
            }
        }
        for address in UNUSED_ADDRESSES {
            let answers = self.read(address)?;
            if answers.iter().any(|&(_, answer)| answer != ERROR) {
                return register_mismatch(format!(
                    "no register exists at {address:#x}, but it answers {answers:x?}"
                ));
            }
        }
        Ok(())
    }

    /// Checks the control register: stops counting, clears the counters, and restarts counting.
    fn check_control(&mut self) -> Checked {
        let control = register("Control").address;
        let cycles = register("Cycles").address;
        let refused_addresses = [register("Identity").address, cycles, UNUSED_ADDRESSES[0]];
        for (address, answer) in refused_addresses
            .map(|address| (address, ERROR))
            .into_iter()
            .chain([(control, OKAY)])
        {
            let answers = self.write(address, 0)?;
            if answers != [answer; SLICES] {
                return register_mismatch(format!(
                    "a write to {address:#x} is answered with {answers:?}"
                ));
            }
        }
        let stopped = self.read(cycles)?;
        if self.read(cycles)? != stopped || stopped.contains(&(0, OKAY)) {
            return register_mismatch("cycles are counted although counting was stopped".into());
        }
        self.write(control, 0b11)?;
        let start_cycle = self.cycle;
        for name in ["Cycles", "Busy", "Events", "Sent"] {
            let answers = self.read(register(name).address)?;
            let max_value = if name == "Cycles" {
                self.cycle - start_cycle + 8
            } else {
                0
            };
            if answers.iter().any(|&(value, _)| value > max_value) {
                return register_mismatch(format!("{name} reads {answers:?} after it was cleared"));
            }
        }
        self.check_first_refusal(true)?;
        match self.read(control)? {
            [(1, OKAY), (1, OKAY)] => Ok(()),
            answers => {
                register_mismatch(format!("Control reads {answers:?} while counting goes on"))
            }
        }
    }

    /// Executes a cycle without new operations.
    fn run_quiet_cycle(&mut self) -> Checked {
        self.deliver()?;
        self.drive_inputs();
        self.step_model()?;
        self.observe()
    }

    /// Reads a register of both slices.
    fn read(&mut self, address: u64) -> Checked<Answers> {
        let mut accepted = [false; SLICES];
        let mut answers = [None; SLICES];
        for _ in 0..TIMEOUT_CYCLES {
            for (slice_index, accepted) in accepted.iter().enumerate() {
                self.inputs.cfg_ar_valid[slice_index] = u64::from(!accepted);
                self.inputs.cfg_ar_addr[slice_index] = address;
                self.inputs.cfg_r_ready[slice_index] = u64::from(self.random.below(4) > 0);
            }
            self.run_quiet_cycle()?;
            for slice_index in 0..SLICES {
                let (inputs, outputs) = (&self.inputs, &self.outputs);
                accepted[slice_index] |=
                    inputs.cfg_ar_valid[slice_index] & outputs.cfg_ar_ready[slice_index] != 0;
                if outputs.cfg_r_valid[slice_index] & inputs.cfg_r_ready[slice_index] != 0 {
                    answers[slice_index] = Some((
                        outputs.cfg_r_data[slice_index],
                        outputs.cfg_r_resp[slice_index],
                    ));
                }
            }
            if let [Some(first), Some(second)] = answers {
                return Ok([first, second]);
            }
        }
        register_mismatch(format!("the register at {address:#x} does not answer"))
    }

    /// Writes a register of both slices. Address and data are offered at independent times, in either order.
    fn write(&mut self, address: u64, value: u64) -> Checked<[u64; SLICES]> {
        let mut accepted = [[false; 2]; SLICES];
        let mut offered = [[false; 2]; SLICES];
        let mut answers = [None; SLICES];
        for _ in 0..TIMEOUT_CYCLES {
            for slice_index in 0..SLICES {
                for offered in &mut offered[slice_index] {
                    *offered |= self.random.below(4) == 0;
                }
                let valid = |part: usize| {
                    u64::from(offered[slice_index][part] && !accepted[slice_index][part])
                };
                self.inputs.cfg_aw_valid[slice_index] = valid(0);
                self.inputs.cfg_aw_addr[slice_index] = address;
                self.inputs.cfg_w_valid[slice_index] = valid(1);
                self.inputs.cfg_w_data[slice_index] = value;
                self.inputs.cfg_w_strb[slice_index] = 0xff;
                self.inputs.cfg_b_ready[slice_index] = self.random.below(2);
            }
            self.run_quiet_cycle()?;
            for slice_index in 0..SLICES {
                let (inputs, outputs) = (&self.inputs, &self.outputs);
                accepted[slice_index][0] |=
                    inputs.cfg_aw_valid[slice_index] & outputs.cfg_aw_ready[slice_index] != 0;
                accepted[slice_index][1] |=
                    inputs.cfg_w_valid[slice_index] & outputs.cfg_w_ready[slice_index] != 0;
                if outputs.cfg_b_valid[slice_index] & inputs.cfg_b_ready[slice_index] != 0 {
                    answers[slice_index] = Some(outputs.cfg_b_resp[slice_index]);
                }
            }
            if let [Some(first), Some(second)] = answers {
                return Ok([first, second]);
            }
        }
        register_mismatch(format!(
            "a write to the register at {address:#x} is not answered"
        ))
    }
}

fn register_mismatch<T>(message: String) -> Checked<T> {
    check_failed(Check::Comparison, None, message)
}
