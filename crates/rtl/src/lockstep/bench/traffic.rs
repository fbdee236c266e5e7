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
    pub(super) fn count(&mut self, inputs: &Inputs, outputs: &Outputs, slice_index: usize) {
        for circuit in 0..CIRCUITS {
            self.rx[circuit] +=
                (inputs.rx_valid[slice_index] & outputs.rx_ready[slice_index]) >> circuit & 1;
            self.tx[circuit] +=
                (outputs.tx_valid[slice_index] & inputs.tx_ready[slice_index]) >> circuit & 1;
        }
        self.axi_ar += outputs.ar_valid[slice_index] & inputs.ar_ready[slice_index];
        self.axi_r += inputs.r_valid[slice_index] & outputs.r_ready[slice_index];
        self.axi_w += outputs.w_valid[slice_index] & inputs.w_ready[slice_index];
        self.local_req +=
            inputs.local_req_valid[slice_index] & outputs.local_req_ready[slice_index];
        self.local_rsp +=
            outputs.local_rsp_valid[slice_index] & inputs.local_rsp_ready[slice_index];
    }

    fn since(&self, earlier: &Ports) -> Ports {
        let circuits = |new: [u64; CIRCUITS], old: [u64; CIRCUITS]| {
            std::array::from_fn(|circuit| new[circuit] - old[circuit])
        };
        Ports {
            rx: circuits(self.rx, earlier.rx),
            tx: circuits(self.tx, earlier.tx),
            axi_ar: self.axi_ar - earlier.axi_ar,
            axi_r: self.axi_r - earlier.axi_r,
            axi_w: self.axi_w - earlier.axi_w,
            local_req: self.local_req - earlier.local_req,
            local_rsp: self.local_rsp - earlier.local_rsp,
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
    pub mean_in_progress: f64,
    /// Transfers at the ports in these cycles.
    pub ports: Ports,
}

impl Bench<'_> {
    pub(super) fn record_port_event(&mut self, event: PortEvent) {
        if let Some(port_events) = &mut self.port_events {
            port_events.push((self.cycle, event));
        }
    }

    pub(super) fn run_cycle(&mut self) -> Checked {
        self.deliver()?;
        self.drive_inputs();
        self.step_model()?;
        self.observe()?;
        if self.cycle - self.last_activity > TIMEOUT_CYCLES {
            return self.report_deadlock();
        }
        Ok(())
    }

    /// Resets the home and waits until its directory is cleared.
    pub(in crate::lockstep) fn reset_and_settle(&mut self, settle: u64) -> Checked {
        self.reset()?;
        for _ in 0..settle {
            self.run_cycle()?;
        }
        self.last_activity = self.cycle;
        Ok(())
    }

    /// Runs until quiescence.
    pub(in crate::lockstep) fn settle(&mut self) -> Checked {
        while !self.is_quiescent() {
            self.run_cycle()?;
        }
        self.last_activity = self.cycle;
        Ok(())
    }

    /// Performs one operation of the remote or the device on a line and returns the port crossings until quiescence.
    pub(in crate::lockstep) fn run_single_operation(
        &mut self,
        line_index: usize,
        operation: Result<Access, u8>,
    ) -> Checked<Vec<(u64, PortEvent)>> {
        self.port_events = Some(Vec::new());
        match operation {
            Ok(access) => self.start_access(line_index, access)?,
            Err(operation) => self.request_local(line_index, operation),
        }
        self.settle()?;
        Ok(self.port_events.take().unwrap_or_default())
    }

    /// Lets the remote read all lines at once and returns the port crossings until quiescence.
    pub(in crate::lockstep) fn run_read_burst(&mut self) -> Checked<Vec<(u64, PortEvent)>> {
        self.port_events = Some(Vec::new());
        for line_index in 0..self.lines.len() {
            self.start_access(line_index, Access::Load)?;
        }
        self.settle()?;
        Ok(self.port_events.take().unwrap_or_default())
    }

    pub(super) fn request_local(&mut self, line_index: usize, operation: u8) {
        let slice = self.lines[line_index].number as usize % SLICES;
        self.lines[line_index].queued_locals.push_back(operation);
        self.slices[slice]
            .local_requests
            .push_back((line_index, operation));
    }

    pub(super) fn permission(&self, line_index: usize) -> Right {
        self.protocol.remote.states[usize::from(self.lines[line_index].remote.state)].right
    }

    /// Performs an operation on all lines, with at most `max_active` lines in progress at a time.
    pub(in crate::lockstep) fn traffic(
        &mut self,
        traffic: Traffic,
        max_active: usize,
    ) -> Checked<Rate> {
        let lines = self.lines.len();
        let (first, last) = (lines / 4, lines * 3 / 4);
        let (mut next, mut completed) = (0, 0);
        let mut active: Vec<usize> = Vec::new();
        let mut start = None;
        let mut end = None;
        self.port_events = Some(Vec::new());
        let answers_before = self.report.answers as usize;
        while completed < lines {
            let mut unfinished = Vec::with_capacity(active.len());
            for line_index in std::mem::take(&mut active) {
                let finished = match traffic {
                    Traffic::Reads => self.permission(line_index) >= Right::Read,
                    Traffic::Writes | Traffic::Dirties => {
                        self.permission(line_index) == Right::Write && {
                            // Permission has been granted; write the line now.
                            self.start_access(line_index, Access::Store)?;
                            true
                        }
                    }
                    Traffic::Local(_) | Traffic::Engine => false,
                };
                if finished && traffic == Traffic::Writes {
                    self.start_access(line_index, Access::Evict)?;
                }
                match finished {
                    true => completed += 1,
                    false => unfinished.push(line_index),
                }
            }
            active = unfinished;
            match traffic {
                Traffic::Local(_) => completed = self.report.answers as usize - answers_before,
                Traffic::Engine => completed = self.endpoint.lines_taken as usize,
                _ => {}
            }
            if start.is_none() && completed >= first {
                start = Some((self.cycle, completed, self.ports));
            }
            if end.is_none() && completed >= last {
                end = Some((self.cycle, completed, self.ports));
            }
            match traffic {
                Traffic::Local(operation) => {
                    while next < lines && next - completed < max_active {
                        self.request_local(next, operation);
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
                    while next < lines && active.len() < max_active {
                        let access = match traffic {
                            Traffic::Reads => Access::Load,
                            _ => Access::Store,
                        };
                        self.start_access(next, access)?;
                        active.push(next);
                        next += 1;
                    }
                }
            }
            self.run_cycle()?;
        }
        self.settle()?;
        let port_events = self.port_events.take().unwrap_or_default();
        let (Some(start), Some(end)) = (start, end) else {
            return check_failed(Check::Rest, None, "too few lines to measure".into());
        };
        Ok(Rate {
            lines: (end.1 - start.1) as u64,
            cycles: end.0 - start.0,
            mean_in_progress: mean_in_progress(&port_events, start.0, end.0),
            ports: end.2.since(&start.2),
        })
    }
}

/// Returns the mean number of messages and operations in progress at the home between two cycles.
/// Each ends with the next output for its line.
fn mean_in_progress(port_events: &[(u64, PortEvent)], from: u64, to: u64) -> f64 {
    let mut arrivals: FxHashMap<usize, Vec<u64>> = FxHashMap::default();
    let mut total = 0;
    for &(cycle, event) in port_events {
        match event {
            PortEvent::Enters(line_index) | PortEvent::Asks(line_index) => {
                arrivals.entry(line_index).or_default().push(cycle)
            }
            PortEvent::Leaves(line_index)
            | PortEvent::Answers(line_index)
            | PortEvent::Writes(line_index) => {
                if let Some(entered) = arrivals.get_mut(&line_index).and_then(Vec::pop) {
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
