//! Traffic for measurements: the actions of remote and device are prescribed, and port crossings are recorded.

use super::*;

/// Number of cycles without activity after which the run is considered deadlocked.
const TIMEOUT_CYCLES: u64 = 20_000;

/// A port crossing; the index is that of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortEvent {
    /// Header of a message to the home.
    Enters(usize),
    /// Header of a message to the remote.
    Leaves(usize),
    /// Last beat of a message to the remote.
    HasLeft(usize),
    /// A unit has handled an event.
    Handles(usize, Event),
    /// Request of a local operation.
    Asks(usize),
    /// Answer to a local operation.
    Answers(usize),
    /// Address of a read of memory.
    Reads(usize),
    /// First beat of the read data.
    IsRead(usize),
    /// Address and all beats of a write to memory.
    Writes(usize),
}

/// Number of cycles with a transfer at each port, summed over both slices.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Ports {
    pub rx: [u64; CIRCUITS],
    pub tx: [u64; CIRCUITS],
    pub axi_ar: u64,
    pub axi_r: u64,
    pub axi_w: u64,
    pub local_req: u64,
    pub local_rsp: u64,
}

impl Ports {
    pub(super) fn count(&mut self, inputs: &Inputs, outputs: &Outputs, s: usize) {
        for c in 0..CIRCUITS {
            self.rx[c] += (inputs.rx_valid[s] & outputs.rx_ready[s]) >> c & 1;
            self.tx[c] += (outputs.tx_valid[s] & inputs.tx_ready[s]) >> c & 1;
        }
        self.axi_ar += outputs.ar_valid[s] & inputs.ar_ready[s];
        self.axi_r += inputs.r_valid[s] & outputs.r_ready[s];
        self.axi_w += outputs.w_valid[s] & inputs.w_ready[s];
        self.local_req += inputs.local_req_valid[s] & outputs.local_req_ready[s];
        self.local_rsp += outputs.local_rsp_valid[s] & inputs.local_rsp_ready[s];
    }

    fn since(&self, before: &Ports) -> Ports {
        let circuits = |now: [u64; CIRCUITS], before: [u64; CIRCUITS]| {
            std::array::from_fn(|circuit| now[circuit] - before[circuit])
        };
        Ports {
            rx: circuits(self.rx, before.rx),
            tx: circuits(self.tx, before.tx),
            axi_ar: self.axi_ar - before.axi_ar,
            axi_r: self.axi_r - before.axi_r,
            axi_w: self.axi_w - before.axi_w,
            local_req: self.local_req - before.local_req,
            local_rsp: self.local_rsp - before.local_rsp,
        }
    }
}

/// Operation of the remote or the device on every line, in the order of the lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// The remote obtains read permission.
    Reads,
    /// The remote obtains write permission and writes the line back dirty.
    Writes,
    /// The remote obtains write permission and keeps the line dirty.
    Dirties,
    /// The device requests this local operation.
    Local(u8),
    /// The invalidation engine behind the home takes all lines from the remote, at its maximum rate.
    Engine,
}

/// Throughput over the middle half of the lines.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rate {
    /// Number of lines in that half.
    pub lines: u64,
    /// Their duration in cycles.
    pub cycles: u64,
    /// Mean number of the remote's messages and of local operations in progress. Each counts from its arrival to the
    /// departure of its answer, or, for writes, to the transfer of the bytes to memory.
    pub in_hand: f64,
    /// Transfers at the ports in these cycles.
    pub ports: Ports,
}

impl Bench<'_> {
    pub(super) fn record_port_event(&mut self, crossing: PortEvent) {
        if let Some(port_events) = &mut self.port_events {
            port_events.push((self.cycle, crossing));
        }
    }

    pub(super) fn one_cycle(&mut self) -> Checked {
        self.deliver()?;
        self.drive();
        self.step_model()?;
        self.observe()?;
        if self.cycle - self.progress > TIMEOUT_CYCLES {
            return self.stuck();
        }
        Ok(())
    }

    /// Resets the home and waits until its directory is cleared.
    pub(in crate::lockstep) fn begin(&mut self, settle: u64) -> Checked {
        self.reset()?;
        for _ in 0..settle {
            self.one_cycle()?;
        }
        self.progress = self.cycle;
        Ok(())
    }

    /// Runs until quiescence.
    pub(in crate::lockstep) fn settle(&mut self) -> Checked {
        while !self.at_rest() {
            self.one_cycle()?;
        }
        self.progress = self.cycle;
        Ok(())
    }

    /// Performs one operation of the remote or the device on a line and returns the port crossings until quiescence.
    pub(in crate::lockstep) fn single(
        &mut self,
        at: usize,
        what: Result<Access, u8>,
    ) -> Checked<Vec<(u64, PortEvent)>> {
        self.port_events = Some(Vec::new());
        match what {
            Ok(access) => self.access(at, access)?,
            Err(operation) => self.ask(at, operation),
        }
        self.settle()?;
        Ok(self.port_events.take().unwrap_or_default())
    }

    /// Lets the remote read all lines at once and returns the port crossings until quiescence.
    pub(in crate::lockstep) fn burst(&mut self) -> Checked<Vec<(u64, PortEvent)>> {
        self.port_events = Some(Vec::new());
        for at in 0..self.lines.len() {
            self.access(at, Access::Load)?;
        }
        self.settle()?;
        Ok(self.port_events.take().unwrap_or_default())
    }

    pub(super) fn ask(&mut self, at: usize, operation: u8) {
        let slice = self.lines[at].number as usize % SLICES;
        self.lines[at].asked.push_back(operation);
        self.slices[slice].asks.push_back((at, operation));
    }

    pub(super) fn right(&self, at: usize) -> Right {
        self.protocol.remote.states[usize::from(self.lines[at].remote.state)].right
    }

    /// Performs an operation on all lines, with at most `most` lines in progress at a time.
    pub(in crate::lockstep) fn traffic(&mut self, traffic: Traffic, most: usize) -> Checked<Rate> {
        let lines = self.lines.len();
        let (first, last) = (lines / 4, lines * 3 / 4);
        let (mut next, mut done) = (0, 0);
        let mut active: Vec<usize> = Vec::new();
        let mut begun = None;
        let mut ended = None;
        self.port_events = Some(Vec::new());
        let answers = self.report.answers as usize;
        while done < lines {
            let mut still = Vec::with_capacity(active.len());
            for at in std::mem::take(&mut active) {
                let finished = match traffic {
                    Traffic::Reads => self.right(at) >= Right::Read,
                    Traffic::Writes | Traffic::Dirties => {
                        self.right(at) == Right::Write && {
                            // Permission has been granted; write the line now.
                            self.access(at, Access::Store)?;
                            true
                        }
                    }
                    Traffic::Local(_) | Traffic::Engine => false,
                };
                if finished && traffic == Traffic::Writes {
                    self.access(at, Access::Evict)?;
                }
                match finished {
                    true => done += 1,
                    false => still.push(at),
                }
            }
            active = still;
            match traffic {
                Traffic::Local(_) => done = self.report.answers as usize - answers,
                Traffic::Engine => done = self.behind.took as usize,
                _ => {}
            }
            if begun.is_none() && done >= first {
                begun = Some((self.cycle, done, self.ports));
            }
            if ended.is_none() && done >= last {
                ended = Some((self.cycle, done, self.ports));
            }
            match traffic {
                Traffic::Local(operation) => {
                    while next < lines && next - done < most {
                        self.ask(next, operation);
                        next += 1;
                    }
                }
                Traffic::Engine => {
                    if next == 0 {
                        self.command_engines();
                        next = lines;
                    }
                }
                _ => {
                    while next < lines && active.len() < most {
                        let access = match traffic {
                            Traffic::Reads => Access::Load,
                            _ => Access::Store,
                        };
                        self.access(next, access)?;
                        active.push(next);
                        next += 1;
                    }
                }
            }
            self.one_cycle()?;
        }
        self.settle()?;
        let port_events = self.port_events.take().unwrap_or_default();
        let (Some(begun), Some(ended)) = (begun, ended) else {
            return noticed(Check::Rest, None, "too few lines to measure".into());
        };
        Ok(Rate {
            lines: (ended.1 - begun.1) as u64,
            cycles: ended.0 - begun.0,
            in_hand: in_hand(&port_events, begun.0, ended.0),
            ports: ended.2.since(&begun.2),
        })
    }
}

/// Returns the mean number of messages and operations in progress at the home between two cycles.
/// Each ends with the next output for its line.
fn in_hand(port_events: &[(u64, PortEvent)], from: u64, to: u64) -> f64 {
    let mut since: FxHashMap<usize, Vec<u64>> = FxHashMap::default();
    let mut total = 0;
    for &(cycle, crossing) in port_events {
        match crossing {
            PortEvent::Enters(at) | PortEvent::Asks(at) => since.entry(at).or_default().push(cycle),
            PortEvent::Leaves(at) | PortEvent::Answers(at) | PortEvent::Writes(at) => {
                if let Some(entered) = since.get_mut(&at).and_then(Vec::pop) {
                    total += cycle.min(to).saturating_sub(entered.max(from));
                }
            }
            PortEvent::HasLeft(_)
            | PortEvent::Handles(..)
            | PortEvent::Reads(_)
            | PortEvent::IsRead(_) => {}
        }
    }
    total as f64 / (to - from).max(1) as f64
}
