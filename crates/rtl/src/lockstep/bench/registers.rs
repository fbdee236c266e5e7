//! The home's registers: what its counters have to say is counted from its pins, and compared at the end.

use super::*;
use crate::registers::place as first;
use crate::registers::{present, register, Register, COUNTERS, PLACES, REGISTERS};

/// Most cycles until a register answers.
const PATIENCE: u64 = 2_000;
/// AXI's answers.
const OKAY: u64 = 0;
const ERROR: u64 = 2;
/// Addresses of nothing.
const NOWHERE: [u64; 5] = [0x28, 0x3f8, 0x800, 0xc00, 0xff8];
/// Cycles after which everything that happened has been told and counted.
const COUNTED: u64 = 200;

/// A register's value and AXI's answer, of each slice.
type Answers = [(u64, u64); SLICES];

/// What a slice's counters should say, by place. Why something was not done is left to the home, but not how often:
/// so the counters of one event stand together in the first of them.
#[derive(Clone)]
pub(super) struct Counts([u64; PLACES]);

impl Default for Counts {
    fn default() -> Counts {
        Counts([0; PLACES])
    }
}

impl Counts {
    fn add(&mut self, place: usize, number: usize, by: u64) {
        self.0[place + number] += by;
    }
}

impl Bench<'_> {
    /// Counts what has happened at the pins of a slice in this cycle.
    pub(super) fn tally(&mut self, s: usize, outputs: &Outputs) {
        let (inputs, slice, rom) = (&self.inputs, &self.slices[s], self.rom);
        let counts = &mut self.counts[s];
        let taken = inputs.rx_valid[s] & outputs.rx_ready[s];
        for (c, entrance) in slice.entrances.iter().enumerate() {
            let waits = (inputs.rx_valid[s] & !outputs.rx_ready[s]) >> c & 1;
            counts.add(const { first("RxWaitsUnit") }, c, waits);
            let Some((_, message)) = entrance.queue.front().filter(|_| taken >> c & 1 != 0) else {
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
        for (c, leaving) in slice.leaving.iter().enumerate() {
            let waits = (outputs.tx_valid[s] & !inputs.tx_ready[s]) >> c & 1;
            counts.add(const { first("TxWaits") }, c, waits);
            // A header; what is no message of the home is told elsewhere.
            let number = (outputs.tx_header[s][c] >> 40 & 0xff) as usize;
            if (outputs.tx_valid[s] & inputs.tx_ready[s]) >> c & 1 != 0
                && leaving.is_none()
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
        let asked = port(const { first("LocalWaits") }, valid, ready);
        let unlocked = port(
            const { first("UnlockWaits") },
            inputs.unlock_valid[s],
            outputs.unlock_ready[s],
        );
        let (valid, ready) = (outputs.local_rsp_valid[s], inputs.local_rsp_ready[s]);
        let answered = port(const { first("AnswerWaits") }, valid, ready);
        let operation = (inputs.local_req[s] >> 36 & 7) as u8;
        counts.add(const { first("Events") }, rom.local(operation), asked);
        counts.add(const { first("Events") }, rom.unlock(), unlocked);
        let read = inputs.r_valid[s] & outputs.r_ready[s] & inputs.r_last[s];
        counts.add(const { first("Events") }, rom.memory_data(), read);
        let written = inputs.b_valid[s] & outputs.b_ready[s];
        counts.add(const { first("Events") }, rom.memory_data() + 1, written);
        let refused = outputs.local_rsp[s] >> 39 & 1;
        let told = outputs.change_valid[s] & inputs.change_ready[s];
        counts.add(const { first("Changes") }, 0, told);
        counts.add(const { first("Refused") }, 0, answered & refused);
        counts.add(
            const { first("Busy") },
            0,
            u64::from(outputs.busy[s].count_ones()),
        );
        let units = (0..u64::BITS as usize).filter(|unit| outputs.step_valid[s] >> unit & 1 != 0);
        for unit in units {
            let step = outputs.step[s][unit];
            let (effect, evict, held) = (step >> 44 & 3, step >> 60 & 1, step >> 61 & 1);
            let line = effect == 1 || effect == 2 && evict != 0;
            counts.add(const { first("StallsLine") }, 0, u64::from(line));
            // For whichever reason.
            counts.add(
                const { first("StallsRoom") },
                0,
                u64::from(held != 0 && !line),
            );
            counts.add(
                const { first("Evictions") },
                0,
                u64::from(effect == 3 && held == 0) & evict,
            );
        }
    }

    /// Changes of rights were not told.
    pub(super) fn lost(&mut self, s: usize, count: u64) {
        self.counts[s].add(const { first("ChangesLost") }, 0, count);
    }

    /// Reads all registers of the home, which is at rest, and writes those that can be written.
    pub(super) fn registers(&mut self) -> Checked {
        self.listens = true;
        for _ in 0..COUNTED {
            self.quiet_cycle()?;
        }
        // What was not told by now never will be.
        for unit in 0..self.changes.len() {
            let left = std::mem::take(&mut self.changes[unit]).len() as u64;
            self.lost(unit % SLICES, left);
        }
        let expected = self.counts.clone();
        let mut read = vec![[0; SLICES]; PLACES];
        // In an order in which the home comes to the next one soon.
        for place in (0..PLACES).map(|step| step * 21 % PLACES) {
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
                // All cycles but the few of the reset, up to some moment of the reading.
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
            for place in 0..PLACES {
                let Some((about, number)) = self.counter(place) else {
                    continue;
                };
                let counted = read[place][s];
                let (counted, expected) = match about.name {
                    "Cycles" | "RxWaitsSlot" => continue,
                    "StallsRead" | "StallsWrite" | "StallsLocal" | "StallsSend" => continue,
                    // Either reason.
                    "RxWaitsUnit" => {
                        let slot = read[first("RxWaitsSlot") + number][s];
                        (counted + slot, expected.0[place])
                    }
                    "StallsRoom" => {
                        let others = ["StallsRead", "StallsWrite", "StallsLocal", "StallsSend"];
                        let others = others.map(|name| read[first(name)][s]);
                        let others: u64 = others.iter().sum();
                        (counted + others, expected.0[place])
                    }
                    _ => (counted, expected.0[place]),
                };
                if counted != expected {
                    return said(format!(
                        "slice {s} counts {counted} of {}[{number}]; there were {expected}",
                        about.name
                    ));
                }
            }
        }
        self.report.counters = read.iter().map(|slices| slices.iter().sum()).collect();
        self.about()?;
        self.control()
    }

    /// The register of a counter, and its number among those of one name, if this home has it.
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

    /// What the registers say of protocol and home, and that there is nothing elsewhere.
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
            if value >> 56 != s as u64 || value & 0xffff != self.requests.len() as u64 / 2 {
                return said(format!("Shape of slice {s} reads {value:x}"));
            }
        }
        for address in NOWHERE {
            let answers = self.read(address)?;
            if answers.iter().any(|&(_, answer)| answer != ERROR) {
                return said(format!(
                    "there is nothing at {address:#x}, but it answers {answers:x?}"
                ));
            }
        }
        Ok(())
    }

    /// Stops counting, clears, and lets count again.
    fn control(&mut self) -> Checked {
        let control = register("Control").address;
        let cycles = register("Cycles").address;
        let refuses = [register("Identity").address, cycles, NOWHERE[0]];
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
        match self.read(control)? {
            [(1, OKAY), (1, OKAY)] => Ok(()),
            answers => said(format!("Control reads {answers:?} while counting goes on")),
        }
    }

    /// A cycle in which nobody begins anything.
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
        for _ in 0..PATIENCE {
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

    /// Writes a register of both slices; address and data come one before the other, either way.
    fn write(&mut self, address: u64, value: u64) -> Checked<[u64; SLICES]> {
        let mut given = [[false; 2]; SLICES];
        let mut offered = [[false; 2]; SLICES];
        let mut answers = [None; SLICES];
        for _ in 0..PATIENCE {
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
