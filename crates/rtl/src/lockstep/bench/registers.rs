//! The home's registers: expected counter values are derived from its pins and compared at the end of a run.

use super::unit_resources::{MissingResource, Use};
use super::*;
use crate::registers::place as first;
use crate::registers::{present, register, Register, COUNTERS, COUNTER_POSITIONS, REGISTERS};

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
        first("StallsRoom"),
        first("StallsRead"),
        first("StallsLocal"),
        first("StallsSend"),
        first("StallsWrite"),
    ],
    &[first("RxWaitsUnit"), first("RxWaitsSlot")],
    &[first("RxWaitsUnit") + 1, first("RxWaitsSlot") + 1],
    &[first("RxWaitsUnit") + 2, first("RxWaitsSlot") + 2],
    &[first("RxWaitsUnit") + 3, first("RxWaitsSlot") + 3],
];

/// Expected counter values of a slice, by position: a certain minimum, and a possible excess.
#[derive(Clone)]
pub(super) struct Counts {
    sure: [u64; COUNTER_POSITIONS],
    perhaps: [u64; COUNTER_POSITIONS],
    /// For each group, the number of events whose counter is ambiguous.
    either: [u64; GROUPS.len()],
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            sure: [0; COUNTER_POSITIONS],
            perhaps: [0; COUNTER_POSITIONS],
            either: [0; GROUPS.len()],
        }
    }
}

impl Counts {
    pub(super) fn add(&mut self, place: usize, number: usize, by: u64) {
        self.sure[place + number] += by;
    }

    /// Records an event that increments one of these positions, all of one group.
    fn one_of(&mut self, places: &[usize]) {
        if let [place] = *places {
            return self.add(place, 0, 1);
        }
        for &place in places {
            self.perhaps[place] += 1;
        }
        let of = |group: &&[usize]| places.first().is_some_and(|place| group.contains(place));
        if let Some(group) = GROUPS.iter().position(of) {
            self.either[group] += 1;
        }
    }

    /// True if a counter may have this value.
    fn allow(&self, place: usize, counted: u64) -> bool {
        let sure = self.sure[place];
        (sure..=sure + self.perhaps[place]).contains(&counted)
    }
}

impl Bench<'_> {
    /// Updates the expected counts with a slice's pin activity of this cycle.
    pub(super) fn tally(&mut self, s: usize, outputs: &Outputs) {
        let (inputs, slice, rom) = (&self.inputs, &self.slices[s], self.rom);
        let counts = &mut self.counts[s];
        let taken = inputs.rx_valid[s] & outputs.rx_ready[s];
        for (c, entrance) in slice.port_queues.iter().enumerate() {
            if (inputs.rx_valid[s] & !outputs.rx_ready[s]) >> c & 1 != 0 {
                let [unit, slot] = const { [first("RxWaitsUnit"), first("RxWaitsSlot")] };
                // After a first beat of data, the stream waits for a slot; after a last beat, for the unit.
                match entrance.before {
                    Some((true, true)) => counts.one_of(&[unit + c, slot + c]),
                    Some((true, false)) => counts.one_of(&[slot + c]),
                    _ => counts.one_of(&[unit + c]),
                }
            }
            let own = taken >> c & 1 != 0 && !slice.illegal_inputs.enters(c);
            let Some((_, message)) = entrance.queue.front().filter(|_| own) else {
                continue;
            };
            if message.bytes.is_none() || entrance.beat + 1 == self.beats {
                let event = Event::Message(message.kind);
                let number = rom.events.iter().position(|about| about.event == event);
                counts.add(
                    const { first("Events") },
                    number.expect("it goes to the home"),
                    1,
                );
            }
        }
        for (c, departing) in slice.departing.iter().enumerate() {
            let waits = (outputs.tx_valid[s] & !inputs.tx_ready[s]) >> c & 1;
            counts.add(const { first("TxWaits") }, c, waits);
            // Count headers; an unknown message number is reported elsewhere.
            let number = (outputs.tx_header[s][c] >> 40 & 0xff) as usize;
            if (outputs.tx_valid[s] & inputs.tx_ready[s]) >> c & 1 != 0
                && departing.is_none()
                && number < rom.sends.len()
            {
                counts.add(const { first("Sent") }, number, 1);
            }
        }
        let mut port = |place: usize, valid: u64, ready: u64| {
            counts.add(place, 0, valid & !ready & 1);
            valid & ready & 1
        };
        port(
            const { first("ArWaits") },
            outputs.ar_valid[s],
            inputs.ar_ready[s],
        );
        port(
            const { first("AwWaits") },
            outputs.aw_valid[s],
            inputs.aw_ready[s],
        );
        port(
            const { first("WWaits") },
            outputs.w_valid[s],
            inputs.w_ready[s],
        );
        let (valid, ready) = (inputs.local_req_valid[s], outputs.local_req_ready[s]);
        port(const { first("LocalWaits") }, valid, ready);
        port(
            const { first("UnlockWaits") },
            inputs.unlock_valid[s],
            outputs.unlock_ready[s],
        );
        let (valid, ready) = (outputs.local_rsp_valid[s], inputs.local_rsp_ready[s]);
        port(const { first("AnswerWaits") }, valid, ready);
        let told = outputs.change_valid[s] & inputs.change_ready[s];
        counts.add(const { first("Changes") }, 0, told);
        counts.add(
            const { first("Busy") },
            0,
            u64::from(outputs.busy[s].count_ones()),
        );
    }

    /// Records a stalled event, whose line has a pending operation or which lacks one of the given resources.
    pub(super) fn stalls(&mut self, s: usize, missing_resources: &[MissingResource]) {
        let place = |lack: &MissingResource| match lack {
            MissingResource::Room => const { first("StallsRoom") },
            MissingResource::Read => const { first("StallsRead") },
            MissingResource::Local => const { first("StallsLocal") },
            MissingResource::Send => const { first("StallsSend") },
            MissingResource::Write => const { first("StallsWrite") },
        };
        let places: Vec<usize> = missing_resources.iter().map(place).collect();
        match places.is_empty() {
            true => self.counts[s].one_of(&[const { first("StallsLine") }]),
            false => self.counts[s].one_of(&places),
        }
        self.report.stalls[usize::from(places.len() > 1)] += 1;
    }

    /// Records a handled event other than a message. Messages are counted on arrival; all of them are handled at
    /// quiescence.
    pub(super) fn counts_event(&mut self, s: usize, number: usize, used: &Use, effect: usize) {
        let counts = &mut self.counts[s];
        if used.evict {
            counts.add(const { first("Evictions") }, 0, u64::from(effect == 3));
        } else if effect >= 2 && !matches!(used.event, Event::Message(_)) {
            counts.add(const { first("Events") }, number, 1);
            counts.add(const { first("Refused") }, 0, u64::from(effect == 2));
        }
    }

    /// Records lost permission changes.
    pub(super) fn lost(&mut self, s: usize, count: u64) {
        self.counts[s].add(const { first("ChangesLost") }, 0, count);
    }

    /// Reads all registers of the quiescent home, and writes the writable ones.
    pub(super) fn registers(&mut self) -> Checked {
        self.listens = true;
        for _ in 0..COUNTING_CYCLES {
            self.quiet_cycle()?;
        }
        // Changes that have not been reported by now are lost.
        for unit in 0..self.requests.len() {
            let lost = self.changes.rest(unit).or_else(said)?;
            self.lost(unit % SLICES, lost);
        }
        let expected = self.counts.clone();
        let mut read = vec![[0; SLICES]; COUNTER_POSITIONS];
        // Use an order in which the home's counter scan reaches the next position soon.
        for place in (0..COUNTER_POSITIONS).map(|step| step * 21 % COUNTER_POSITIONS) {
            let address = COUNTERS + 8 * place as u64;
            let before = self.cycle;
            let answers = self.read(address)?;
            let about = self.counter(place);
            for (s, (value, answer)) in answers.into_iter().enumerate() {
                let right = if about.is_some() { OKAY } else { ERROR };
                if answer != right {
                    return said(format!(
                        "address {address:#x} of slice {s} answers {answer}; it should be {right}"
                    ));
                }
                // All cycles except a few of the reset, up to some moment of the read.
                if about.is_some_and(|(about, _)| about.name == "Cycles")
                    && !(before.saturating_sub(8)..=self.cycle).contains(&value)
                {
                    return said(format!(
                        "slice {s} counts {value} cycles; there were {before}"
                    ));
                }
                read[place][s] = value;
            }
        }
        for (s, expected) in expected.iter().enumerate() {
            for (place, read) in read.iter().enumerate() {
                let Some((about, number)) = self.counter(place) else {
                    continue;
                };
                let counted = read[s];
                if !self.is_unobservable(about.name) && !expected.allow(place, counted) {
                    let (sure, most) = (expected.sure[place], expected.perhaps[place]);
                    return said(format!(
                        "slice {s} counts {counted} of {}[{number}]; there were {sure}, and perhaps {most} more",
                        about.name
                    ));
                }
            }
            for (group, either) in GROUPS.iter().zip(expected.either) {
                let counted: u64 = group.iter().map(|&place| read[place][s]).sum();
                let sure: u64 = group.iter().map(|&place| expected.sure[place]).sum();
                if counted != sure + either {
                    let (about, number) = self.counter(group[0]).unzip();
                    return said(format!(
                        "slice {s} counts {counted} of {}[{}] and equivalent events; there were {}",
                        about.map_or("", |about| about.name),
                        number.unwrap_or(0),
                        sure + either
                    ));
                }
            }
        }
        self.check_first_refusal(false)?;
        self.report.counters = read.iter().map(|slices| slices.iter().sum()).collect();
        self.about()?;
        self.control()
    }

    /// Checks the registers of the first refusal and of the first dropped event, which keep their values until cleared.
    fn check_first_refusal(&mut self, cleared: bool) -> Checked {
        for (kind, name) in ["FirstWrong", "FirstImpossible"].into_iter().enumerate() {
            let answers = self.read(register(name).address)?;
            for (s, (value, answer)) in answers.into_iter().enumerate() {
                let expected = match cleared {
                    true => vec![0],
                    false => self.firsts(s)[kind].clone(),
                };
                if answer != OKAY || !expected.contains(&value) {
                    return said(format!(
                        "{name} of slice {s} reads {value:x}; it should be of {expected:x?}"
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
            "ArWaits" | "AwWaits" | "WWaits" => self.behind.has_memory(),
            "LocalWaits" | "AnswerWaits" => self.behind.asks(),
            _ => false,
        }
    }

    /// Returns the register of a counter position and the index within its array, if this home implements it.
    fn counter(&self, at: usize) -> Option<(&'static Register, usize)> {
        let mut counters = REGISTERS
            .iter()
            .filter(|register| register.address >= COUNTERS);
        let register = counters.find(|register| {
            let first = first(register.name);
            (first..first + register.count).contains(&at)
        })?;
        let number = at - first(register.name);
        present(self.rom, register, number).then_some((register, number))
    }

    /// Checks the registers that describe protocol and home, and that unused addresses return errors.
    fn about(&mut self) -> Checked {
        let rom = self.rom;
        let about = rom.messages as u64
            | (rom.locking.len() as u64) << 8
            | (rom.rx.len() as u64) << 16
            | (rom.tx.len() as u64) << 24
            | u64::from(self.protocol.line_bytes) << 32;
        let values = [
            ("Identity", crate::registers::IDENTITY),
            ("About", about),
            ("Status", 3),
        ];
        for (name, value) in values {
            let answers = self.read(register(name).address)?;
            if answers != [(value, OKAY); SLICES] {
                return said(format!("{name} reads {answers:x?}; it should be {value:x}"));
            }
        }
        let shape = self.read(register("Shape").address)?;
        for (s, (value, _)) in shape.into_iter().enumerate() {
            let built = self.shape;
            let (set_bits, tag_bits) = (u64::from(built.set_bits), u64::from(built.tag_bits));
            let [units, ways, reads, waiting] =
                [built.units, built.ways, built.reads, built.waiting].map(|number| number as u64);
            let fields = units | ways << 16 | set_bits << 24 | tag_bits << 32 | reads << 40;
            if value != fields | waiting << 48 | (s as u64) << 56 {
                return said(format!("Shape of slice {s} reads {value:x}"));
            }
        }
        for address in UNUSED_ADDRESSES {
            let answers = self.read(address)?;
            if answers.iter().any(|&(_, answer)| answer != ERROR) {
                return said(format!(
                    "no register exists at {address:#x}, but it answers {answers:x?}"
                ));
            }
        }
        Ok(())
    }

    /// Checks the control register: stops counting, clears the counters, and restarts counting.
    fn control(&mut self) -> Checked {
        let control = register("Control").address;
        let cycles = register("Cycles").address;
        let refuses = [register("Identity").address, cycles, UNUSED_ADDRESSES[0]];
        for (address, answer) in refuses
            .map(|address| (address, ERROR))
            .into_iter()
            .chain([(control, OKAY)])
        {
            let answers = self.write(address, 0)?;
            if answers != [answer; SLICES] {
                return said(format!(
                    "a write to {address:#x} is answered with {answers:?}"
                ));
            }
        }
        let stopped = self.read(cycles)?;
        if self.read(cycles)? != stopped || stopped.contains(&(0, OKAY)) {
            return said("cycles are counted although counting was stopped".into());
        }
        self.write(control, 0b11)?;
        let since = self.cycle;
        for name in ["Cycles", "Busy", "Events", "Sent"] {
            let answers = self.read(register(name).address)?;
            let most = if name == "Cycles" {
                self.cycle - since + 8
            } else {
                0
            };
            if answers.iter().any(|&(value, _)| value > most) {
                return said(format!("{name} reads {answers:?} after it was cleared"));
            }
        }
        self.check_first_refusal(true)?;
        match self.read(control)? {
            [(1, OKAY), (1, OKAY)] => Ok(()),
            answers => said(format!("Control reads {answers:?} while counting goes on")),
        }
    }

    /// Executes a cycle without new operations.
    fn quiet_cycle(&mut self) -> Checked {
        self.deliver()?;
        self.drive();
        self.step_model()?;
        self.observe()
    }

    /// Reads a register of both slices.
    fn read(&mut self, address: u64) -> Checked<Answers> {
        let mut asked = [false; SLICES];
        let mut answers = [None; SLICES];
        for _ in 0..TIMEOUT_CYCLES {
            for (s, asked) in asked.iter().enumerate() {
                self.inputs.cfg_ar_valid[s] = u64::from(!asked);
                self.inputs.cfg_ar_addr[s] = address;
                self.inputs.cfg_r_ready[s] = u64::from(self.chance.below(4) > 0);
            }
            self.quiet_cycle()?;
            for s in 0..SLICES {
                let (inputs, outputs) = (&self.inputs, &self.outputs);
                asked[s] |= inputs.cfg_ar_valid[s] & outputs.cfg_ar_ready[s] != 0;
                if outputs.cfg_r_valid[s] & inputs.cfg_r_ready[s] != 0 {
                    answers[s] = Some((outputs.cfg_r_data[s], outputs.cfg_r_resp[s]));
                }
            }
            if let [Some(first), Some(second)] = answers {
                return Ok([first, second]);
            }
        }
        said(format!("the register at {address:#x} does not answer"))
    }

    /// Writes a register of both slices. Address and data are offered at independent times, in either order.
    fn write(&mut self, address: u64, value: u64) -> Checked<[u64; SLICES]> {
        let mut given = [[false; 2]; SLICES];
        let mut offered = [[false; 2]; SLICES];
        let mut answers = [None; SLICES];
        for _ in 0..TIMEOUT_CYCLES {
            for s in 0..SLICES {
                for offered in &mut offered[s] {
                    *offered |= self.chance.below(4) == 0;
                }
                let valid = |part: usize| u64::from(offered[s][part] && !given[s][part]);
                self.inputs.cfg_aw_valid[s] = valid(0);
                self.inputs.cfg_aw_addr[s] = address;
                self.inputs.cfg_w_valid[s] = valid(1);
                self.inputs.cfg_w_data[s] = value;
                self.inputs.cfg_w_strb[s] = 0xff;
                self.inputs.cfg_b_ready[s] = self.chance.below(2);
            }
            self.quiet_cycle()?;
            for s in 0..SLICES {
                let (inputs, outputs) = (&self.inputs, &self.outputs);
                given[s][0] |= inputs.cfg_aw_valid[s] & outputs.cfg_aw_ready[s] != 0;
                given[s][1] |= inputs.cfg_w_valid[s] & outputs.cfg_w_ready[s] != 0;
                if outputs.cfg_b_valid[s] & inputs.cfg_b_ready[s] != 0 {
                    answers[s] = Some(outputs.cfg_b_resp[s]);
                }
            }
            if let [Some(first), Some(second)] = answers {
                return Ok([first, second]);
            }
        }
        said(format!(
            "a write to the register at {address:#x} is not answered"
        ))
    }
}

fn said<T>(what: String) -> Checked<T> {
    noticed(Check::Comparison, None, what)
}
