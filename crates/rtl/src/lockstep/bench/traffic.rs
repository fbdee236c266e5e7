//! Traffic for measurements: the actions of remote and device are prescribed, and port events are recorded.

use super::error::{check_failed, Checked};
use super::port_events::{mean_in_progress, Crossing, Ports};
use super::testbench::Bench;
use crate::lockstep::setup::Check;
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Permission;

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
    /// The invalidation engine behind the home recalls all lines from the remote, at its maximum rate.
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

/// A single operation on a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineOperation {
    /// Access of the remote.
    Access(Access),
    /// Local operation of the device, as an index into the controller's `locals`.
    Local(u8),
}

/// Performs one operation on a line. Returns the port events until quiescence.
pub(in crate::lockstep) fn run_single_operation(
    bench: &mut Bench,
    line_index: usize,
    operation: LineOperation,
) -> Checked<Vec<Crossing>> {
    bench.context().port_events = Some(Vec::new());
    match operation {
        LineOperation::Access(access) => bench.start_access(line_index, access)?,
        LineOperation::Local(operation) => bench.request_local(line_index, operation),
    }
    bench.settle()?;
    Ok(bench.context().port_events.take().unwrap_or_default())
}

/// Lets the remote read all lines at once and returns the port events until quiescence.
pub(in crate::lockstep) fn run_read_burst(bench: &mut Bench) -> Checked<Vec<Crossing>> {
    bench.context().port_events = Some(Vec::new());
    for line_index in 0..bench.context().lines.len() {
        bench.start_access(line_index, Access::Load)?;
    }
    bench.settle()?;
    Ok(bench.context().port_events.take().unwrap_or_default())
}

/// State of prescribed traffic on all lines.
struct Progress {
    /// Operation on each line.
    traffic: Traffic,
    /// Index of the next line on which the operation starts.
    next: usize,
    /// Number of lines on which the operation is complete.
    completed: usize,
    /// Lines in progress.
    active: Vec<usize>,
}

/// Progress and transfers at one moment of a measurement.
#[derive(Clone, Copy)]
struct Sample {
    /// Cycle of the sample.
    cycle: u64,
    /// Number of completed lines.
    completed: usize,
    /// Transfers at the ports so far.
    ports: Ports,
}

/// Performs an operation on all lines, with at most `max_active` lines in progress at a time.
pub(in crate::lockstep) fn run_traffic(
    bench: &mut Bench,
    traffic: Traffic,
    max_active: usize,
) -> Checked<Rate> {
    let lines = bench.context().lines.len();
    // The rate is measured over the middle half of the lines, without the start-up and the end of the traffic.
    let (first, last) = (lines / 4, lines * 3 / 4);
    let mut progress = Progress {
        traffic,
        next: 0,
        completed: 0,
        active: Vec::new(),
    };
    let (mut start, mut end): (Option<Sample>, Option<Sample>) = (None, None);
    bench.context().port_events = Some(Vec::new());
    let answers_before = bench.context().report.answers as usize;
    while progress.completed < lines {
        progress.complete(bench, answers_before)?;
        let completed = progress.completed;
        for (sample, count) in [(&mut start, first), (&mut end, last)] {
            if sample.is_none() && completed >= count {
                *sample = Some(Sample {
                    cycle: bench.context().cycle,
                    completed,
                    ports: bench.ports,
                });
            }
        }
        progress.start(bench, max_active)?;
        bench.run_cycle()?;
    }
    bench.settle()?;
    let port_events = bench.context().port_events.take().unwrap_or_default();
    let (Some(start), Some(end)) = (start, end) else {
        return check_failed(Check::Rest, None, "too few lines to measure".into());
    };
    Ok(Rate {
        lines: (end.completed - start.completed) as u64,
        cycles: end.cycle - start.cycle,
        mean_in_progress: mean_in_progress(&port_events, start.cycle, end.cycle),
        ports: end.ports.since(&start.ports),
    })
}

impl Progress {
    /// Counts the lines on which the operation is complete. A line that the remote may write is written now.
    fn complete(&mut self, bench: &mut Bench, answers_before: usize) -> Checked {
        for line_index in std::mem::take(&mut self.active) {
            let permission = bench.permission(line_index);
            let finished = match self.traffic {
                Traffic::Reads => permission >= Permission::Read,
                Traffic::Writes | Traffic::Dirties => permission == Permission::Write,
                Traffic::Local(_) | Traffic::Engine => false,
            };
            if !finished {
                self.active.push(line_index);
                continue;
            }
            if self.traffic != Traffic::Reads {
                bench.start_access(line_index, Access::Store)?;
            }
            if self.traffic == Traffic::Writes {
                bench.start_access(line_index, Access::Evict)?;
            }
            self.completed += 1;
        }
        match self.traffic {
            Traffic::Local(_) => {
                self.completed = bench.context().report.answers as usize - answers_before
            }
            Traffic::Engine => self.completed = bench.endpoint.recalled_lines as usize,
            _ => {}
        }
        Ok(())
    }

    /// Starts the operation on further lines.
    fn start(&mut self, bench: &mut Bench, max_active: usize) -> Checked {
        let lines = bench.context().lines.len();
        match self.traffic {
            Traffic::Local(operation) => {
                while self.next < lines && self.next - self.completed < max_active {
                    bench.request_local(self.next, operation);
                    self.next += 1;
                }
            }
            Traffic::Engine => {
                if self.next == 0 {
                    bench.endpoint.command_engines();
                    self.next = lines;
                }
            }
            _ => {
                while self.next < lines && self.active.len() < max_active {
                    let access = match self.traffic {
                        Traffic::Reads => Access::Load,
                        _ => Access::Store,
                    };
                    bench.start_access(self.next, access)?;
                    self.active.push(self.next);
                    self.next += 1;
                }
            }
        }
        Ok(())
    }
}
