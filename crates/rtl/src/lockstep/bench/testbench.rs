//! The RTL in its environment: drives the pins, observes the outputs, and checks them.

use super::context::Context;
use super::counts::Counts;
use super::device::check_answer;
use super::directed::Director;
use super::endpoint::EndpointModel;
use super::environment::Environment;
use super::error::{check_failed, line_failure, BenchError, Checked};
use super::home::Home;
use super::illegal_traffic::IllegalTraffic;
use super::line::{Direction, Line, Memory};
use super::port_events::Ports;
use super::run::Run;
use super::stalls::Stalls;
use crate::lockstep::changes::Changes;
use crate::lockstep::model::{Inputs, Model, Outputs, CIRCUITS, SLICES};
use crate::lockstep::setup::{Check, Mismatch, RunError, Setup};
use crate::lockstep::words::{line_of, ReportedStep};
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Permission;
use std::path::PathBuf;

/// Number of cycles without activity after which a measurement is considered deadlocked.
const TIMEOUT_CYCLES: u64 = 20_000;

/// A home and its environment.
pub(in crate::lockstep) struct Bench<'a> {
    /// Agents around the home, and the reference state of all lines.
    pub(super) environment: Environment<'a>,
    /// The Verilated home.
    pub(super) model: Model,
    /// Input pins of the current cycle.
    pub(super) inputs: Inputs,
    /// Output pins of the last cycle.
    pub(super) outputs: Outputs,
    /// Long stalls of single ports.
    stalls: Stalls,
    /// Illegal inputs at the ports, and their expected effects.
    pub(super) illegal_traffic: IllegalTraffic,
    /// Expected counter values of each slice.
    pub(super) counts: [Counts; SLICES],
    /// Permission changes that each unit must report, including those that may be lost.
    pub(super) changes: Changes,
    /// True if the listener accepts permission changes in every cycle.
    pub(super) is_listening: bool,
    /// Reference model of the endpoint.
    pub(super) endpoint: EndpointModel,
    /// Directed lines of the run.
    pub(super) director: Director<'a>,
    /// Number of transfers at the ports.
    pub(super) ports: Ports,
    /// File of a waveform that could not be opened.
    pub(super) unopened_waveform: Option<PathBuf>,
}

impl<'a> Bench<'a> {
    /// Creates a home before reset, with random contents of the lines.
    pub(in crate::lockstep) fn new(setup: &Setup<'a>, model: Model, run: Run) -> Self {
        let environment = Environment::new(setup, run);
        let (shape, units) = (setup.shape, environment.context.reference.units());
        // A listener that is always ready receives all reports.
        let max_delay = (run.ready_rate == 16).then(|| Changes::max_report_delay(shape.units));
        Bench {
            environment,
            model,
            inputs: Inputs::default(),
            outputs: Outputs::default(),
            stalls: Stalls::new(&run),
            illegal_traffic: IllegalTraffic::new(&run),
            counts: Default::default(),
            changes: Changes::new(units, max_delay),
            is_listening: false,
            endpoint: EndpointModel::new(shape.endpoint, run.lines),
            director: Director::new(
                setup.graph.filter(|_| !run.has_fixed_latency),
                run.first_target,
            ),
            ports: Ports::default(),
            unopened_waveform: None,
        }
    }

    /// Returns the time, random numbers, the lines, and the report.
    pub(super) fn context(&mut self) -> &mut Context<'a> {
        &mut self.environment.context
    }

    /// Converts a failure to the error, with the history of the line; returns `Stopped` after a cancellation.
    pub(in crate::lockstep) fn to_failure(&self, error: BenchError) -> RunError {
        let context = &self.environment.context;
        if context.is_stopped() {
            return RunError::Stopped;
        }
        if let Some(file) = &self.unopened_waveform {
            return RunError::Tool(format!("{}: no waveform can be written", file.display()));
        }
        RunError::Mismatch(Box::new(Mismatch {
            check: error.check,
            description: error.description,
            cycle: context.cycle,
            sequence: error.line.map(|line| context.lines[line].sequence()),
        }))
    }

    /// Resets the home for four cycles.
    pub(super) fn reset(&mut self) -> Checked {
        self.inputs.reset = 1;
        for _ in 0..4 {
            self.step_model()?;
        }
        self.inputs.reset = 0;
        Ok(())
    }

    /// Executes a cycle of the RTL. Failed assertions that illegal traffic causes are ignored.
    fn step_model(&mut self) -> Checked {
        let context = &mut self.environment.context;
        if context.is_stopped() {
            return check_failed(Check::Progress, None, "the run was cancelled".into());
        }
        context.cycle += 1;
        let result = self.model.step(&self.inputs, &mut self.outputs);
        result.or_else(
            |assertions| match self.illegal_traffic.is_cause_of(&assertions) {
                true => Ok(()),
                false => check_failed(Check::Assertion, None, assertions),
            },
        )
    }

    /// Executes a cycle in which only earlier operations proceed: the remote and the device start none.
    pub(super) fn run_quiet_cycle(&mut self) -> Checked {
        self.environment.deliver()?;
        self.execute_cycle()
    }

    /// Executes a cycle of a measurement, and checks that there is activity.
    pub(super) fn run_cycle(&mut self) -> Checked {
        self.run_quiet_cycle()?;
        let context = self.context();
        if context.cycle - context.last_activity > TIMEOUT_CYCLES {
            return self.report_deadlock();
        }
        Ok(())
    }

    /// Drives the pins, executes a cycle of the RTL, and observes its outputs.
    pub(super) fn execute_cycle(&mut self) -> Checked {
        self.drive_inputs();
        self.step_model()?;
        self.observe()
    }

    /// Sets the input pins of a cycle.
    fn drive_inputs(&mut self) {
        let Environment {
            context,
            link_ports,
            device,
            memory,
            ..
        } = &mut self.environment;
        let (illegal, inputs) = (&mut self.illegal_traffic, &mut self.inputs);
        illegal.inject(context, link_ports, device);
        let (ready, cycle) = (context.run.ready_rate, context.cycle);
        for slice in 0..SLICES {
            let stalled = self.stalls.stalled(slice, cycle);
            let entering = illegal.entering_messages(slice);
            link_ports[slice].drive(context, inputs, entering, stalled);
            let (has_illegal, command) =
                (illegal.device_inputs(slice), self.endpoint.commands[slice]);
            device.drive(context, inputs, slice, has_illegal, command);
            // The listener pauses for a part of every 512 cycles, unless ports are always ready (`ready_rate` 16), and
            // misses some changes meanwhile.
            let accepts_changes = self.is_listening || cycle % 512 < 32 * ready;
            inputs.change_ready[slice] = context.random_ready() & u64::from(accepts_changes);
            memory[slice].drive(context, inputs, stalled);
            illegal.drive(context, inputs, slice, &memory[slice]);
        }
    }

    /// Observes the home's outputs of this cycle: first its steps, then the transfers at its ports.
    fn observe(&mut self) -> Checked {
        let outputs = std::mem::take(&mut self.outputs);
        for slice in 0..SLICES {
            self.ports.count(&self.inputs, &outputs, slice);
            let environment = &self.environment;
            self.counts[slice].record_pins(
                &environment.context.reference,
                slice,
                (&self.inputs, &outputs),
                &environment.link_ports[slice],
                self.illegal_traffic.entering_messages(slice),
            );
            self.record_inputs(slice, &outputs);
            let mut units = outputs.step_valid[slice];
            while units != 0 {
                let unit = units.trailing_zeros() as usize;
                units &= units - 1;
                self.check_home_step(outputs.step[slice][unit])?;
            }
            self.check_departures(slice, &outputs)?;
            self.check_device_answer(slice, &outputs)?;
            let Environment {
                context, memory, ..
            } = &mut self.environment;
            (self.illegal_traffic).count_unsolicited_answers(
                context,
                &mut self.counts[slice],
                slice,
            );
            memory[slice].check(context, &mut self.stalls, (&self.inputs, &outputs))?;
            self.check_permission_change(slice, &outputs)?;
        }
        self.outputs = outputs;
        Ok(())
    }

    /// Records the transfers into the home.
    fn record_inputs(&mut self, slice: usize, outputs: &Outputs) {
        let Environment {
            context,
            units,
            link_ports,
            device,
            ..
        } = &mut self.environment;
        let (illegal, inputs) = (&mut self.illegal_traffic, &self.inputs);
        let counts = &mut self.counts[slice];
        let ports = &mut link_ports[slice];
        for circuit in 0..CIRCUITS {
            if inputs.rx_valid[slice] & outputs.rx_ready[slice] & 1 << circuit == 0 {
                continue;
            }
            context.record_activity();
            match illegal.accept_beat(context, units, counts, slice, circuit) {
                Some(beat) => ports.queues[circuit].previous_beat = beat,
                None => ports.accept_beat(context, units, circuit),
            }
        }
        if inputs.local_req_valid[slice] & outputs.local_req_ready[slice] != 0 {
            context.record_activity();
            if !illegal.accept_operation(context, counts, slice) {
                device.accept_request(context, slice);
                self.endpoint.commands[slice] = None;
            }
        }
        if inputs.unlock_valid[slice] & outputs.unlock_ready[slice] != 0 {
            context.record_activity();
            if !illegal.accept_unlock(context, counts, slice) {
                device.accept_unlock(slice);
            }
        }
    }

    /// Checks a step that a unit reports.
    fn check_home_step(&mut self, word: u64) -> Checked {
        let step = ReportedStep::decode(word);
        let Environment { context, units, .. } = &mut self.environment;
        if (self.illegal_traffic).accept_drop(context, units, &mut self.counts, &step) {
            return Ok(());
        }
        let mut home = Home {
            context,
            units,
            counts: &mut self.counts,
            changes: &mut self.changes,
            endpoint: &mut self.endpoint,
        };
        home.check_step(&step)
    }

    /// Checks the messages that leave the home towards the remote, and sends them on the link.
    fn check_departures(&mut self, slice: usize, outputs: &Outputs) -> Checked {
        let Environment {
            context,
            link,
            units,
            link_ports,
            ..
        } = &mut self.environment;
        let ports = &mut link_ports[slice];
        for circuit in 0..CIRCUITS {
            if outputs.tx_valid[slice] & self.inputs.tx_ready[slice] & 1 << circuit == 0 {
                continue;
            }
            context.record_activity();
            let departed = ports.check_departure(context, &mut self.stalls, outputs, circuit)?;
            if let Some((line_index, message)) = departed {
                units.free_departed(context, line_index, message.flight);
                link.send(context, line_index, Direction::ToRemote, message);
            }
        }
        Ok(())
    }

    /// Checks the answer to the device.
    fn check_device_answer(&mut self, slice: usize, outputs: &Outputs) -> Checked {
        if outputs.local_rsp_valid[slice] & self.inputs.local_rsp_ready[slice] == 0 {
            return Ok(());
        }
        let Environment { context, units, .. } = &mut self.environment;
        let answer = outputs.local_rsp[slice];
        context.record_activity();
        if context.reference.shape.endpoint.drives_local_ports() {
            return self.endpoint.complete_invalidation(slice, answer);
        }
        match self.illegal_traffic.accept_refusal(slice, answer) {
            true => Ok(()),
            false => check_answer(context, units, answer),
        }
    }

    /// Checks a reported permission change against the controllers' changes, in order per unit, except for lost ones.
    fn check_permission_change(&mut self, slice: usize, outputs: &Outputs) -> Checked {
        if outputs.change_valid[slice] & self.inputs.change_ready[slice] == 0 {
            return Ok(());
        }
        let context = &mut self.environment.context;
        context.record_activity();
        let change = outputs.change[slice];
        let line_index = context.line_of(line_of(change), "a permission change")?;
        let lost = self.changes.check_report(change);
        let lost = lost.or_else(|message| line_failure(line_index, message))?;
        self.counts[slice].record_lost_changes(lost);
        Ok(())
    }

    /// True if nothing is outstanding, and nothing has happened for some time.
    pub(super) fn is_quiescent(&self) -> bool {
        let Environment { context, link, .. } = &self.environment;
        let is_idle =
            |slice| self.environment.is_slice_idle(slice) && self.illegal_traffic.is_empty(slice);
        // A request may still wait for the recall delay of a full set. The other cycles are those of the longest path
        // of an event through the home, with a margin.
        let idle_cycles = 300 + (1 << context.reference.shape.recall_delay_log2);
        (0..SLICES).all(is_idle)
            && link.is_empty()
            && context.cycle > context.last_activity + idle_cycles
    }

    /// Checks that no operation or message is left and that memory or the remote holds the last write.
    pub(super) fn check_final_state(&self) -> Checked {
        if self.outputs.idle.contains(&0) {
            let message = "at the end, the home has an outstanding operation without a requester";
            return check_failed(Check::Rest, None, message.into());
        }
        let context = &self.environment.context;
        for (line_index, line) in context.lines.iter().enumerate() {
            if let Some(item) = pending_item(context, line) {
                let message = format!("at the end, {item} of line {} is left", line.number);
                return check_failed(Check::Rest, Some(line_index), message);
            }
        }
        Ok(())
    }

    /// Fails because nothing happens any more; the message describes the first line with pending work.
    pub(super) fn report_deadlock(&self) -> Checked {
        let context = &self.environment.context;
        let message = "no agent can make progress";
        let Some(line_index) = self.environment.busy_line() else {
            return check_failed(Check::Progress, None, message.into());
        };
        let line = &context.lines[line_index];
        let arrived: Vec<&str> = line
            .messages
            .arrived
            .iter()
            .map(|message| {
                context
                    .reference
                    .protocol
                    .message(message.kind)
                    .name
                    .as_str()
            })
            .collect();
        let state = &context.reference.rom.states[usize::from(line.home.state)];
        let (number, locals) = (line.number, &line.queued_locals);
        let memory = std::mem::discriminant(&line.operation);
        let message = format!(
            "{message}: line {number} is in {state}, waiting: {arrived:?}, locals {locals:?}, memory {memory:?}"
        );
        check_failed(Check::Progress, Some(line_index), message)
    }

    /// Starts an access of the remote, if it is possible now.
    pub(super) fn start_access(&mut self, line_index: usize, access: Access) -> Checked {
        self.environment.start_access(line_index, access)
    }

    /// Requests a local operation of the device, given by its index in the controller's `locals`.
    pub(super) fn request_local(&mut self, line_index: usize, operation: u8) {
        let Environment {
            context, device, ..
        } = &mut self.environment;
        device.request(context, line_index, operation);
    }

    /// Lets the device release a line's lock.
    pub(super) fn unlock(&mut self, line_index: usize) {
        let Environment {
            context, device, ..
        } = &mut self.environment;
        device.unlock(context, line_index);
    }

    /// Lets memory answer the withheld reads of these lines in this cycle.
    pub(super) fn answer_reads(&mut self, line_indices: &[usize]) {
        let Environment {
            context, memory, ..
        } = &mut self.environment;
        for &line_index in line_indices {
            context.lines[line_index].steering.is_memory_withheld = false;
            let (slice, cycle) = (context.slice(line_index), context.cycle);
            memory[slice].resume(context, line_index, |_| cycle);
        }
    }

    /// Returns the remote's permission for a line.
    pub(super) fn permission(&self, line_index: usize) -> Permission {
        self.environment.context.permission(line_index)
    }

    /// Resets the home and runs `cycles` cycles, in which its directory is cleared.
    pub(in crate::lockstep) fn reset_and_settle(&mut self, cycles: u64) -> Checked {
        self.reset()?;
        for _ in 0..cycles {
            self.run_cycle()?;
        }
        self.context().record_activity();
        Ok(())
    }

    /// Runs until quiescence; fails if no agent makes progress.
    pub(super) fn settle(&mut self) -> Checked {
        while !self.is_quiescent() {
            self.run_cycle()?;
        }
        self.context().record_activity();
        Ok(())
    }

    /// Runs until a condition holds; fails if no agent makes progress.
    pub(super) fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) -> Checked {
        self.context().record_activity();
        while !is_done(self) {
            self.run_cycle()?;
        }
        Ok(())
    }

    /// Runs for a number of cycles; fails if no agent makes progress.
    pub(super) fn run_cycles(&mut self, cycles: u64) -> Checked {
        self.context().record_activity();
        (0..cycles).try_for_each(|_| self.run_cycle())
    }
}

/// Returns an item that is still pending on a line of a quiescent home.
fn pending_item(context: &Context, line: &Line) -> Option<&'static str> {
    let holder =
        match context.reference.protocol.remote.states[usize::from(line.remote.state)].dirty {
            true => &line.copy,
            false => &line.memory,
        };
    let mut expected = line.messages.expected.iter();
    let items = [
        (!line.messages.arrived.is_empty(), "a message to the home"),
        (
            expected.any(|expected| !expected.is_empty()),
            "a message to the remote",
        ),
        (
            !line.queued_locals.is_empty() || line.pending_local.is_some(),
            "a local operation",
        ),
        (
            !line.answers.is_empty() || line.unlocks != 0,
            "an answer to the device",
        ),
        (line.operation != Memory::Idle, "a memory operation"),
        (
            !line.is_current(holder, context.reference.words),
            "a stale copy",
        ),
    ];
    items
        .into_iter()
        .find_map(|(is_left, item)| is_left.then_some(item))
}
