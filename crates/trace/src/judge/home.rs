//! Actions of the home, memory and the device.

use super::*;

/// Snapshot of the check: everything that a row can change.
#[derive(Clone)]
struct Snapshot {
    /// Index of the next step of the trace.
    position: usize,
    summary: Summary,
    line: Line,
    flights: Vec<InFlightMessage>,
    registers: Option<Vec<Vec<Value>>>,
}

impl TraceChecker<'_> {
    /// Processes a local action of the home: an event that it takes, or an eviction by the directory.
    pub(super) fn apply_home_action(&mut self, line: &mut Line, report: &str) -> CheckResult {
        let locals = &self.home.controller.locals;
        let local = |name: &str| locals.iter().position(|local| local.name == name);
        let local_event = |k: usize| Event::Local(k as u8);
        let events: Vec<Event> = match report {
            "takes the unlock" => vec![Event::Unlock],
            "takes the memory's data" => (0..MAX_CHOICES).map(Event::MemoryData).collect(),
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
            line.is_directory_eviction &= line.accepted.is_some();
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
        let locals = &self.home.controller.locals;
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
            ("is read", Operation::Read(None)) => Operation::Read(Some(line.bytes.memory)),
            ("is written", Operation::Write(copy)) => {
                line.bytes.memory = copy;
                Operation::Written
            }
            ("takes the store" | "takes the partial store", Operation::Store(write))
                if write.whole_line == (report == "takes the store") =>
            {
                line.bytes.store(write)?;
                Operation::Written
            }
            ("is read" | "is written" | "takes the store" | "takes the partial store", _) => {
                return Err(format!("memory {report}, but no operation requested it"));
            }
            ("unlocks" | "unlocks a line that it has not locked", _) => {
                return self.apply_best_row(line, vec![Event::Unlock]);
            }
            ("writes", operation) if line.lock == Some(Permission::None) => {
                line.bytes.memory = line.bytes.write(Some(line.bytes.memory), false)?;
                operation
            }
            ("writes", _) => return Err("the device writes without a lock".into()),
            (_, operation) if report.starts_with("asks for ") => operation,
            (_, operation) => {
                let answer = line.answers.iter().position(|answer| answer == report);
                let answer = answer.ok_or_else(|| format!("no agent can do this now: {report}"))?;
                line.answers.remove(answer);
                operation
            }
        };
        Ok(())
    }

    /// Applies one of several events to the home: the one that matches the most steps.
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
            let (actor, received) = (None, None);
            let result = self.apply_row(
                line,
                Cause {
                    event,
                    actor,
                    received,
                },
            );
            let rank = |result: &CheckResult, index| (result.is_ok(), index);
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
                return Ok(Some(copy.unwrap_or(line.bytes.memory)));
            }
            (Event::MemoryDone, operation) => {
                match operation {
                    Operation::Written => {}
                    Operation::Write(copy) => line.bytes.memory = copy,
                    Operation::Store(write) => line.bytes.store(write)?,
                    _ => return Err("memory completes a write that was not requested".into()),
                }
                line.operation = Operation::Idle;
            }
            (Event::MemoryData(_), _) => {
                return Err("memory completes a read that was not requested".into())
            }
            (Event::Local(local), _) => {
                let local = usize::from(local);
                if line.accepted.replace(local).is_some() {
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

    /// Applies a row of the home, whose `effects` are those of its table, in order.
    pub(super) fn apply_home_row(
        &mut self,
        line: &mut Line,
        event: Event,
        received: Option<InFlightMessage>,
        next_agent: Agent,
        effects: Vec<RowEffect>,
    ) -> CheckResult {
        let mut received_copy = match received.as_ref().map(|flight| flight.data) {
            Some(MessageData::Line(copy)) => Some(copy),
            _ => None,
        };
        let mut write = match received.as_ref().map(|flight| flight.data) {
            Some(MessageData::Write(write)) => Some(write),
            _ => None,
        };
        received_copy = self.apply_home_event(line, event)?.or(received_copy);
        let is_memory_data = matches!(event, Event::MemoryData(_));
        for effect in effects {
            match effect {
                RowEffect::Send(sent) => {
                    let copy = received_copy.filter(|_| is_memory_data);
                    let copy = copy.or(Some(line.bytes.memory));
                    self.check_send(line, None, sent, copy)?;
                }
                RowEffect::WriteMemory => match (write.take(), received_copy) {
                    (Some(write), _) => self.perform_home_write(line, write)?,
                    (None, Some(copy)) => line.bytes.memory = copy,
                    (None, None) => return Err("memory is written without data".into()),
                },
                RowEffect::DeferStore => {
                    let write = write.take().ok_or("there is no write to defer")?;
                    if line.deferred_write.replace(write).is_some() {
                        return Err("a write is deferred while another one is deferred".into());
                    }
                }
                RowEffect::CommitDeferred => {
                    let write = line
                        .deferred_write
                        .take()
                        .ok_or("no write has been deferred")?;
                    self.perform_home_write(line, write)?;
                }
                RowEffect::StartRead => self.start_memory_operation(line, Operation::Read(None))?,
                RowEffect::StartWrite => {
                    let copy = received_copy.ok_or("memory is written without data")?;
                    self.start_memory_operation(line, Operation::Write(copy))?;
                }
                RowEffect::StartStore { whole } => {
                    let stored_write = write.take().or(line.deferred_write.take());
                    let stored_write = stored_write.ok_or("memory is written without data")?;
                    self.start_memory_operation(
                        line,
                        Operation::Store(Write {
                            whole_line: whole,
                            ..stored_write
                        }),
                    )?;
                }
                RowEffect::Acknowledge(local) => self.acknowledge_local(line, local.into())?,
                RowEffect::Unlocked => {
                    if line.lock.take() == Some(Permission::None) {
                        line.bytes.forget_values();
                    }
                    line.answers.push("is unlocked".into());
                    self.check_report(None, "is unlocked")?;
                }
                RowEffect::Done => {
                    return Err("the home completes an access, which only a remote can".into())
                }
                RowEffect::BulkTransition { .. } => {
                    return Err("the home changes lines of caches".into())
                }
            }
        }
        // A home with split memory keeps the bytes of the current write.
        if let Some(write) = write {
            line.deferred_write.get_or_insert(write);
        }
        self.check_next_state(line, None, next_agent)
    }

    /// Starts a memory operation; fails if another one is in progress on the line.
    pub(super) fn start_memory_operation(
        &self,
        line: &mut Line,
        operation: Operation,
    ) -> CheckResult {
        match line.operation {
            Operation::Idle => {
                line.operation = operation;
                Ok(())
            }
            _ => Err("a memory operation starts while another one is in progress".into()),
        }
    }

    /// Performs a remote's write in memory, and consumes the report of it.
    pub(super) fn perform_home_write(&mut self, line: &mut Line, write: Write) -> CheckResult {
        self.check_report(None, WRITES)?;
        line.bytes.store(write)
    }

    /// Processes the acknowledgement of a local operation. The operation must be the accepted one, memory must be
    /// current, and no remote may have a permission that the operation excludes.
    pub(super) fn acknowledge_local(&mut self, line: &mut Line, local: usize) -> CheckResult {
        let operation = &self.home.controller.locals[local];
        let report = format!("acknowledges {}", operation.name);
        if !line.is_directory_eviction {
            line.answers.push(format!("is told of {}", operation.name));
        }
        if line.accepted.take() != Some(local) {
            return Err(format!("the home {report}, which it has not accepted"));
        }
        self.check_report(None, &report)?;
        if line.bytes.memory != line.bytes.last {
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
