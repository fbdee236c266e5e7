//! Actions of the home, memory and the device.

use super::messages::{InFlightMessage, MessageData};
use super::rows::Cause;
use super::wording::WRITES;
use super::{CheckResult, Line, Summary, TraceChecker};
use crate::line_data::{Operation, Version, Write};
use crate::table::{Agent, RowEffect, Value};
use cohkit_protocol::controller::Event;
use cohkit_protocol::protocol::Permission;

/// Upper bound on the number of alternatives `Event::MemoryData(0)`, `Event::MemoryData(1)`, ... of one memory read. A
/// trace that omits the number of the chosen one is compared with all of them.
const MAX_CHOICES: u8 = 16;

/// Completions of a memory read, with each alternative.
pub(super) fn memory_data_events() -> Vec<Event> {
    (0..MAX_CHOICES).map(Event::MemoryData).collect()
}

/// Snapshot of the check: everything that a row can change.
#[derive(Clone)]
struct Snapshot {
    /// Index of the next step of the trace.
    position: usize,
    /// Counts of the checked part.
    summary: Summary,
    /// Line of the row. A row of the home changes no other line.
    line: Line,
    /// Messages in flight.
    flights: Vec<InFlightMessage>,
    /// Values of registers.
    registers: Option<Vec<Vec<Value>>>,
}

/// Data that a row of the home processes.
struct HomeRowData {
    /// Version read from memory; `None` unless the completion of a read triggered the row.
    read_copy: Option<Version>,
    /// Version read from memory or received with the message.
    copy: Option<Version>,
    /// Write received with the message; `None` once it is performed or deferred.
    write: Option<Write>,
}

impl TraceChecker<'_> {
    /// Processes a local action of the home: an event that it takes, or an eviction by the directory.
    pub(super) fn apply_home_action(&mut self, line: &mut Line, report: &str) -> CheckResult {
        let locals = &self.home_table.controller.locals;
        let local = |name: &str| locals.iter().position(|local| local.name == name);
        let local_event = |index: usize| Event::Local(index as u8);
        let events: Vec<Event> = match report {
            "takes the unlock" => vec![Event::Unlock],
            "takes the memory's data" => memory_data_events(),
            "hears that memory is done" => vec![Event::MemoryDone],
            // An eviction by the directory, by any operation that frees the entry.
            "makes room" => (0..locals.len()).map(local_event).collect(),
            _ => {
                let choice = report.strip_prefix("takes the memory's data, choice ");
                let choice = choice.and_then(|choice| choice.parse().ok());
                let local_index = report.strip_prefix("takes ").and_then(local);
                let event = choice
                    .map(Event::MemoryData)
                    .or(local_index.map(local_event));
                vec![event.ok_or_else(|| format!("no home does this: {report}"))?]
            }
        };
        self.position += 1;
        if report.starts_with("takes ") || report == "makes room" {
            line.is_directory_eviction &= line.accepted_operation.is_some();
            line.is_directory_eviction |= report == "makes room";
        }
        self.apply_best_row(line, events)
    }

    /// Processes an action of memory or the device: a request, a memory operation, a write under the lock, or the
    /// arrival of an answer.
    pub(super) fn apply_environment_action(
        &mut self,
        line: &mut Line,
        report: &str,
    ) -> CheckResult {
        let locals = &self.home_table.controller.locals;
        if let Some(operation_name) = report.strip_prefix("asks for ") {
            let local = locals.iter().position(|local| local.name == operation_name);
            let local = local.ok_or_else(|| format!("there is no {operation_name} to request"))?;
            if line.requested_operation.replace(local).is_some() {
                return Err(
                    "the device requests an operation while another one is outstanding".into(),
                );
            }
        }
        self.position += 1;
        let operation = line.operation;
        line.operation = match (report, operation) {
            ("is read", Operation::Read(None)) => Operation::Read(Some(line.data.memory)),
            ("is written", Operation::Write(copy)) => {
                line.data.memory = copy;
                Operation::Written
            }
            ("takes the store" | "takes the partial store", Operation::Store(write))
                if write.whole_line == (report == "takes the store") =>
            {
                line.data.perform_sent_write(write)?;
                Operation::Written
            }
            ("is read" | "is written" | "takes the store" | "takes the partial store", _) => {
                return Err(format!("memory {report}, but no operation requested it"));
            }
            ("unlocks" | "unlocks a line that it has not locked", _) => {
                return self.apply_best_row(line, vec![Event::Unlock]);
            }
            ("writes", operation) if line.lock == Some(Permission::None) => {
                line.data.memory = line.data.write(Some(line.data.memory), false)?;
                operation
            }
            ("writes", _) => return Err("the device writes without a lock".into()),
            (_, operation) if report.starts_with("asks for ") => operation,
            (_, operation) => {
                let answer = line
                    .unreported_answers
                    .iter()
                    .position(|answer| answer == report);
                let answer = answer.ok_or_else(|| format!("no agent can do this now: {report}"))?;
                line.unreported_answers.remove(answer);
                operation
            }
        };
        Ok(())
    }

    /// Applies one of several events to the home, each of which the trace may mean: one whose row the trace conforms
    /// to, otherwise the one that matches the most steps.
    pub(super) fn apply_best_row(&mut self, line: &mut Line, events: Vec<Event>) -> CheckResult {
        let snapshot = |checker: &Self, line: &Line| Snapshot {
            position: checker.position,
            summary: checker.summary,
            line: line.clone(),
            flights: checker.flights.clone(),
            registers: checker.registers.clone(),
        };
        let restore = |checker: &mut Self, line: &mut Line, target: Snapshot| {
            (checker.position, checker.summary, *line) =
                (target.position, target.summary, target.line);
            (checker.flights, checker.registers) = (target.flights, target.registers);
        };
        let start = snapshot(self, line);
        let mut best: Option<(CheckResult, Snapshot)> = None;
        for event in events {
            restore(self, line, start.clone());
            let cause = Cause {
                event,
                actor: None,
                received: None,
            };
            let result = self.apply_row(line, cause);
            let rank = |result: &CheckResult, position: usize| (result.is_ok(), position);
            let is_better = best.as_ref().is_none_or(|(best_result, best_snapshot)| {
                rank(&result, self.position) > rank(best_result, best_snapshot.position)
            });
            if is_better {
                best = Some((result, snapshot(self, line)));
            }
        }
        let (result, best_snapshot) = best.ok_or("no event of the home matches this step")?;
        restore(self, line, best_snapshot);
        result
    }

    /// Applies an event other than a message to memory and the device's operations. Returns the data read from memory,
    /// if any.
    fn apply_home_event(&self, line: &mut Line, event: Event) -> CheckResult<Option<Version>> {
        match (event, line.operation) {
            (Event::MemoryData(_), Operation::Read(copy)) => {
                line.operation = Operation::Idle;
                return Ok(Some(copy.unwrap_or(line.data.memory)));
            }
            (Event::MemoryDone, operation) => {
                match operation {
                    Operation::Written => {}
                    Operation::Write(copy) => line.data.memory = copy,
                    Operation::Store(write) => line.data.perform_sent_write(write)?,
                    _ => return Err("memory completes a write that was not requested".into()),
                }
                line.operation = Operation::Idle;
            }
            (Event::MemoryData(_), _) => {
                return Err("memory completes a read that was not requested".into())
            }
            (Event::Local(local), _) => {
                let local = usize::from(local);
                if line.accepted_operation.replace(local).is_some() {
                    return Err(
                        "the home takes a local operation while another one is in progress".into(),
                    );
                }
            }
            (Event::Unlock, _) if line.lock.is_none() => {
                return Err("the home takes an unlock of a line that is not locked".into());
            }
            _ => {}
        }
        Ok(None)
    }

    /// Applies a row of the home, whose `effects` are those of its table, in order. `received` is the message that
    /// triggered the row, if one did.
    pub(super) fn apply_home_row(
        &mut self,
        line: &mut Line,
        event: Event,
        received: Option<InFlightMessage>,
        next_agent: Agent,
        effects: Vec<RowEffect>,
    ) -> CheckResult {
        let (received_copy, write) = match received.map(|flight| flight.data) {
            Some(MessageData::Line(copy)) => (Some(copy), None),
            Some(MessageData::Write(write)) => (None, Some(write)),
            Some(MessageData::Nothing) | None => (None, None),
        };
        let read_copy = self.apply_home_event(line, event)?;
        let mut data = HomeRowData {
            read_copy,
            copy: read_copy.or(received_copy),
            write,
        };
        for effect in effects {
            self.apply_home_effect(line, effect, &mut data)?;
        }
        // A home with split memory keeps the bytes of the current write.
        if let Some(write) = data.write {
            line.deferred_write.get_or_insert(write);
        }
        self.check_next_state(line, None, next_agent)
    }

    /// Applies one effect of a row of the home. A write that the effect performs or defers is removed from `data`.
    fn apply_home_effect(
        &mut self,
        line: &mut Line,
        effect: RowEffect,
        data: &mut HomeRowData,
    ) -> CheckResult {
        match effect {
            RowEffect::Send(sent) => {
                let copy = data.read_copy.unwrap_or(line.data.memory);
                self.check_send(line, None, sent, Some(copy))
            }
            RowEffect::WriteMemory => match (data.write.take(), data.copy) {
                (Some(write), _) => self.perform_home_write(line, write),
                (None, Some(copy)) => {
                    line.data.memory = copy;
                    Ok(())
                }
                (None, None) => Err("memory is written without data".into()),
            },
            RowEffect::DeferStore => {
                let write = data.write.take().ok_or("there is no write to defer")?;
                match line.deferred_write.replace(write) {
                    Some(_) => Err("a write is deferred while another one is deferred".into()),
                    None => Ok(()),
                }
            }
            RowEffect::CommitDeferred => {
                let write = line.deferred_write.take();
                self.perform_home_write(line, write.ok_or("no write has been deferred")?)
            }
            RowEffect::StartRead => self.start_memory_operation(line, Operation::Read(None)),
            RowEffect::StartWrite => {
                let copy = data.copy.ok_or("memory is written without data")?;
                self.start_memory_operation(line, Operation::Write(copy))
            }
            RowEffect::StartStore { whole: whole_line } => {
                let write = data.write.take().or(line.deferred_write.take());
                let Write { serial, .. } = write.ok_or("memory is written without data")?;
                self.start_memory_operation(line, Operation::Store(Write { serial, whole_line }))
            }
            RowEffect::Acknowledge(local) => self.acknowledge_local(line, local.into()),
            RowEffect::Unlocked => {
                if line.lock.take() == Some(Permission::None) {
                    line.data.forget_values();
                }
                line.unreported_answers.push("is unlocked".into());
                self.check_report(None, "is unlocked")
            }
            RowEffect::Done => Err("the home completes an access, which only a remote can".into()),
            RowEffect::BulkTransition { .. } => Err("the home changes lines of caches".into()),
        }
    }

    /// Starts a memory operation; fails if another one is in progress on the line.
    fn start_memory_operation(&self, line: &mut Line, operation: Operation) -> CheckResult {
        match line.operation {
            Operation::Idle => {
                line.operation = operation;
                Ok(())
            }
            _ => Err("a memory operation starts while another one is in progress".into()),
        }
    }

    /// Performs a remote's write in memory, and consumes the report of it.
    fn perform_home_write(&mut self, line: &mut Line, write: Write) -> CheckResult {
        self.check_report(None, WRITES)?;
        line.data.perform_sent_write(write)
    }

    /// Processes the acknowledgement of a local operation. The operation must be the accepted one, memory must be
    /// current, and no remote may have a permission that the operation excludes.
    fn acknowledge_local(&mut self, line: &mut Line, local: usize) -> CheckResult {
        let operation = &self.home_table.controller.locals[local];
        let report = format!("acknowledges {}", operation.name);
        if !line.is_directory_eviction {
            line.unreported_answers
                .push(format!("is told of {}", operation.name));
        }
        if line.accepted_operation.take() != Some(local) {
            return Err(format!("the home {report}, which it has not accepted"));
        }
        self.check_report(None, &report)?;
        if line.data.memory != line.data.last {
            return Err(format!("memory is stale when the home {report}"));
        }
        let max_permission = self.max_permission(line);
        if max_permission > operation.ensures {
            return Err(format!(
                "a remote may {max_permission:?} when the home {report}"
            ));
        }
        if operation.locks && line.lock.replace(operation.ensures).is_some() {
            return Err("the home locks a line that is locked".into());
        }
        Ok(())
    }
}
