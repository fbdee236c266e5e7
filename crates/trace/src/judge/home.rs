//! Actions of the home, memory and the device.

use super::*;

/// Snapshot of the check: everything that a row can change.
#[derive(Clone)]
struct Snapshot {
    at: usize,
    summary: Summary,
    line: Line,
    flights: Vec<Flight>,
    registers: Option<Vec<Vec<Value>>>,
}

impl Judge<'_> {
    /// Processes a local action of the home.
    pub(super) fn apply_home_action(&mut self, line: &mut Line, what: &str) -> Checked {
        let locals = &self.home.controller.locals;
        let local = |name: &str| locals.iter().position(|local| local.name == name);
        let own = |k: usize| Event::Local(k as u8);
        let events: Vec<Event> = match what {
            "takes the unlock" => vec![Event::Unlock],
            "takes the memory's data" => (0..MAX_CHOICES).map(Event::MemoryData).collect(),
            "hears that memory is done" => vec![Event::MemoryDone],
            // An eviction by the directory, by any operation that frees the entry.
            "makes room" => (0..locals.len()).map(own).collect(),
            _ => {
                let choice = what.strip_prefix("takes the memory's data, choice ");
                let choice = choice.and_then(|choice| choice.parse().ok());
                let taken = what.strip_prefix("takes ").and_then(local);
                let event = choice.map(Event::MemoryData).or(taken.map(own));
                vec![event.ok_or_else(|| format!("no home does this: {what}"))?]
            }
        };
        self.at += 1;
        if what.starts_with("takes ") || what == "makes room" {
            line.own &= line.accepted.is_some();
            line.own |= what == "makes room";
        }
        self.apply_best_row(line, events)
    }

    /// Processes an action of memory or the device.
    pub(super) fn apply_environment_action(&mut self, line: &mut Line, what: &str) -> Checked {
        let locals = &self.home.controller.locals;
        if let Some(asks) = what.strip_prefix("asks for ") {
            let local = locals.iter().position(|local| local.name == asks);
            let local = local.ok_or_else(|| format!("there is no {asks} to request"))?;
            if line.requested_operation.replace(local).is_some() {
                return Err(
                    "the device requests an operation while another one is outstanding".into(),
                );
            }
        }
        self.at += 1;
        let operation = line.operation;
        line.operation = match (what, operation) {
            ("is read", Operation::Read(None)) => Operation::Read(Some(line.bytes.memory)),
            ("is written", Operation::Write(copy)) => {
                line.bytes.memory = copy;
                Operation::Written
            }
            ("takes the store" | "takes the partial store", Operation::Store(write))
                if write.whole == (what == "takes the store") =>
            {
                line.bytes.store(write)?;
                Operation::Written
            }
            ("is read" | "is written" | "takes the store" | "takes the partial store", _) => {
                return Err(format!("memory {what}, but no operation requested it"));
            }
            ("unlocks" | "unlocks a line that it has not locked", _) => {
                return self.apply_best_row(line, vec![Event::Unlock]);
            }
            ("writes", operation) if line.lock == Some(Right::None) => {
                line.bytes.memory = line.bytes.write(Some(line.bytes.memory), false)?;
                operation
            }
            ("writes", _) => return Err("the device writes without a lock".into()),
            (_, operation) if what.starts_with("asks for ") => operation,
            (_, operation) => {
                let answer = line.answers.iter().position(|answer| answer == what);
                let answer = answer.ok_or_else(|| format!("no agent can do this now: {what}"))?;
                line.answers.remove(answer);
                operation
            }
        };
        Ok(())
    }

    /// Applies one of several events to the home: the one that matches the most steps.
    pub(super) fn apply_best_row(&mut self, line: &mut Line, events: Vec<Event>) -> Checked {
        let here = |judge: &Self, line: &Line| Snapshot {
            at: judge.at,
            summary: judge.summary,
            line: line.clone(),
            flights: judge.flights.clone(),
            registers: judge.registers.clone(),
        };
        let go_to = |judge: &mut Self, line: &mut Line, here: Snapshot| {
            (judge.at, judge.summary, *line) = (here.at, here.summary, here.line);
            (judge.flights, judge.registers) = (here.flights, here.registers);
        };
        let before = here(self, line);
        let mut best: Option<(Checked, Snapshot)> = None;
        for event in events {
            go_to(self, line, before.clone());
            let (own, taken) = (None, None);
            let result = self.row(line, Cause { event, own, taken });
            let fits = |result: &Checked, at| (result.is_ok(), at);
            let better = best
                .as_ref()
                .is_none_or(|(other, there)| fits(&result, self.at) > fits(other, there.at));
            if better {
                best = Some((result, here(self, line)));
            }
        }
        let (result, after) = best.ok_or("no event of the home matches this step")?;
        go_to(self, line, after);
        result
    }

    /// Applies an event other than a message to memory and the device's operations. Returns the data read from memory,
    /// if any.
    fn home_hears(&self, line: &mut Line, event: Event) -> Checked<Option<Version>> {
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

    pub(super) fn home_row(
        &mut self,
        line: &mut Line,
        event: Event,
        taken: Option<Flight>,
        after: Agent,
        effects: Vec<RowEffect>,
    ) -> Checked {
        let mut brought = match taken.as_ref().map(|flight| flight.data) {
            Some(MessageData::Line(copy)) => Some(copy),
            _ => None,
        };
        let mut write = match taken.as_ref().map(|flight| flight.data) {
            Some(MessageData::Write(write)) => Some(write),
            _ => None,
        };
        brought = self.home_hears(line, event)?.or(brought);
        let memory_data = matches!(event, Event::MemoryData(_));
        for deed in effects {
            match deed {
                RowEffect::Send(sent) => {
                    let copy = brought.filter(|_| memory_data);
                    let copy = copy.or(Some(line.bytes.memory));
                    self.sends(line, None, sent, copy)?;
                }
                RowEffect::WriteMemory => match (write.take(), brought) {
                    (Some(write), _) => self.home_performs(line, write)?,
                    (None, Some(copy)) => line.bytes.memory = copy,
                    (None, None) => return Err("memory is written without data".into()),
                },
                RowEffect::SetAside => {
                    let write = write.take().ok_or("there is no write to defer")?;
                    if line.deferred_write.replace(write).is_some() {
                        return Err("a write is deferred while another one is deferred".into());
                    }
                }
                RowEffect::WriteAside => {
                    let write = line
                        .deferred_write
                        .take()
                        .ok_or("no write has been deferred")?;
                    self.home_performs(line, write)?;
                }
                RowEffect::StartRead => self.starts(line, Operation::Read(None))?,
                RowEffect::StartWrite => {
                    let copy = brought.ok_or("memory is written without data")?;
                    self.starts(line, Operation::Write(copy))?;
                }
                RowEffect::StartStore { whole } => {
                    let kept = write.take().or(line.deferred_write.take());
                    let kept = kept.ok_or("memory is written without data")?;
                    self.starts(line, Operation::Store(Write { whole, ..kept }))?;
                }
                RowEffect::Acknowledge(local) => self.acknowledges(line, local.into())?,
                RowEffect::Unlocked => {
                    if line.lock.take() == Some(Right::None) {
                        line.bytes.forget_values();
                    }
                    line.answers.push("is unlocked".into());
                    self.tells(None, "is unlocked")?;
                }
                RowEffect::Done => {
                    return Err("the home completes an access, which only a remote can".into())
                }
                RowEffect::Every { .. } => return Err("the home changes lines of caches".into()),
            }
        }
        // A home with split memory keeps the bytes of the current write.
        if let Some(write) = write {
            line.deferred_write.get_or_insert(write);
        }
        self.check_next_state(line, None, after)
    }

    pub(super) fn starts(&self, line: &mut Line, operation: Operation) -> Checked {
        match line.operation {
            Operation::Idle => {
                line.operation = operation;
                Ok(())
            }
            _ => Err("a memory operation starts while another one is in progress".into()),
        }
    }

    pub(super) fn home_performs(&mut self, line: &mut Line, write: Write) -> Checked {
        self.tells(None, WRITES)?;
        line.bytes.store(write)
    }

    pub(super) fn acknowledges(&mut self, line: &mut Line, local: usize) -> Checked {
        let about = &self.home.controller.locals[local];
        let what = format!("acknowledges {}", about.name);
        if !line.own {
            line.answers.push(format!("is told of {}", about.name));
        }
        if line.accepted.take() != Some(local) {
            return Err(format!("the home {what}, which it has not accepted"));
        }
        self.tells(None, &what)?;
        if line.bytes.memory != line.bytes.last {
            return Err(format!("memory is stale when the home {what}"));
        }
        let most = self.most(line);
        if most > about.ensures {
            return Err(format!("a remote may {most:?} when the home {what}"));
        }
        if about.locks && line.lock.replace(about.ensures).is_some() {
            return Err("the home locks a line that is locked".into());
        }
        Ok(())
    }
}
