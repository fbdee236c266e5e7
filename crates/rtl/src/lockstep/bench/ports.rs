//! Ports of the home: driving the pins, and observing the transfers.

use super::*;

impl Bench<'_> {
    pub(super) fn drive(&mut self) {
        self.inject_illegal_traffic();
        let ready = self.run.ready;
        let cycle = self.cycle;
        let exact = self.run.exact;
        let (words, beats) = (self.beat, self.beats);
        for s in 0..SLICES {
            let (inputs, slice, chance) = (&mut self.inputs, &mut self.slices[s], &mut self.chance);
            let mut often = || u64::from(chance.below(16) < ready);
            (inputs.rx_valid[s], inputs.rx_last[s]) = (0, 0);
            for (c, entrance) in slice.port_queues.iter_mut().enumerate() {
                let Some((at, message)) = entrance.queue.front() else {
                    continue;
                };
                if slice.illegal_inputs.enters(c) {
                    continue;
                }
                entrance.valid = entrance.valid || often() != 0;
                if !entrance.valid {
                    continue;
                }
                inputs.rx_valid[s] |= 1 << c;
                let event = self
                    .rom
                    .events
                    .iter()
                    .position(|event| event.event == Event::Message(message.kind));
                let event = event.expect("it goes to the home") as u64;
                inputs.rx_header[s][c] =
                    u64::from(message.mask) << 48 | event << 40 | self.lines[*at].number;
                let last = message.bytes.is_none() || entrance.beat + 1 == beats;
                inputs.rx_last[s] |= u64::from(last) << c;
                if let Some(bytes) = &message.bytes {
                    let beat = &bytes[entrance.beat * words..][..words];
                    inputs.rx_data[s][c][..words].copy_from_slice(beat);
                }
            }
            let stalled = self.stalls.stalled(s, cycle);
            inputs.tx_ready[s] = (0..CIRCUITS).map(|c| often() << c).sum::<u64>() & !stalled;
            let strange = slice.illegal_inputs.asks();
            slice.ask_valid =
                !slice.asks.is_empty() && !strange && (slice.ask_valid || often() != 0);
            inputs.local_req_valid[s] = u64::from(slice.ask_valid);
            if let Some(&(at, operation)) = slice.asks.front() {
                inputs.local_req[s] = u64::from(operation) << 36 | self.lines[at].number;
            }
            if let Some(order) = self.behind.orders[s] {
                inputs.local_req_valid[s] = 1;
                inputs.local_req[s] = order;
            }
            let strange = slice.illegal_inputs.unlocks();
            slice.unlock_valid =
                !slice.unlocks.is_empty() && !strange && (slice.unlock_valid || often() != 0);
            inputs.unlock_valid[s] = u64::from(slice.unlock_valid);
            if let Some(&at) = slice.unlocks.front() {
                inputs.unlock_line[s] = self.lines[at].number;
            }
            inputs.local_rsp_ready[s] = often();
            // The listener may be slow and miss some changes.
            let listens = self.listens || cycle % 512 < 32 * ready;
            inputs.change_ready[s] = often() & u64::from(listens);
            inputs.aw_ready[s] = often();
            inputs.w_ready[s] = often() & !(stalled >> stalls::MEMORY);
            inputs.ar_ready[s] = often();
            // Choose any completed read, also one whose beats were interleaved with others.
            if slice.reading.is_none() && often() != 0 {
                let done: Vec<usize> = (0..slice.reads.len())
                    .filter(|&read| slice.reads[read].at <= cycle)
                    .collect();
                if !done.is_empty() {
                    slice.reading = Some(match exact {
                        true => done[0],
                        false => done[chance.below(done.len() as u64) as usize],
                    });
                }
            }
            inputs.r_valid[s] = u64::from(slice.reading.is_some());
            if let Some(read) = slice.reading {
                let read = &slice.reads[read];
                inputs.r_id[s] = read.id;
                inputs.r_last[s] = u64::from(read.beat + 1 == self.beats);
                let bytes = &self.lines[read.line].memory;
                inputs.r_data[s][..words].copy_from_slice(&bytes[read.beat * words..][..words]);
            }
            if slice.written.is_none() {
                let done: Vec<usize> = (0..slice.writes.len())
                    .filter(|&write| slice.writes[write].at <= cycle)
                    .collect();
                if !done.is_empty() {
                    slice.written = Some(done[chance.below(done.len() as u64) as usize]);
                }
            }
            inputs.b_valid[s] = u64::from(slice.written.is_some());
            if let Some(write) = slice.written {
                inputs.b_id[s] = slice.writes[write].id;
            }
            self.drive_illegal_traffic(s);
        }
    }

    /// Observes the home's outputs of this cycle: first its steps, then the transfers at its ports.
    pub(super) fn observe(&mut self) -> Checked {
        let outputs = std::mem::take(&mut self.outputs);
        for s in 0..SLICES {
            self.ports.count(&self.inputs, &outputs, s);
            self.tally(s, &outputs);
            self.enter(s, &outputs)?;
            let mut units = outputs.step_valid[s];
            while units != 0 {
                let unit = units.trailing_zeros() as usize;
                units &= units - 1;
                self.home_steps(outputs.step[s][unit])?;
            }
            self.leave(s, &outputs)?;
            self.answers(s, &outputs)?;
            self.memory(s, &outputs)?;
            self.check_permission_change(s, &outputs)?;
        }
        self.outputs = outputs;
        Ok(())
    }

    pub(super) fn line_of(&self, number: u64, what: &str) -> Checked<usize> {
        match self.by_number.get(&number) {
            Some(&at) => Ok(at),
            None => {
                let what = format!("{what} is about line {number}, which is not used");
                noticed(Check::Comparison, None, what)
            }
        }
    }

    /// Records the transfers into the home.
    pub(super) fn enter(&mut self, s: usize, outputs: &Outputs) -> Checked {
        for c in 0..CIRCUITS {
            if self.inputs.rx_valid[s] & outputs.rx_ready[s] & 1 << c == 0 {
                continue;
            }
            self.progress = self.cycle;
            if self.accept_illegal_beat(s, c) {
                continue;
            }
            let entrance = &self.slices[s].port_queues[c];
            if let (0, Some(&(at, _))) = (entrance.beat, entrance.queue.front()) {
                self.record_port_event(PortEvent::Enters(at));
            }
            let entrance = &mut self.slices[s].port_queues[c];
            entrance.valid = false;
            entrance.beat += 1;
            let whole = match entrance.queue.front() {
                Some((_, message)) => {
                    let carries = message.bytes.is_some();
                    let last = !carries || entrance.beat == self.beats;
                    entrance.before = Some((carries && entrance.beat == 1, last));
                    last
                }
                None => false,
            };
            if whole {
                entrance.beat = 0;
                if let Some((at, message)) = entrance.queue.pop_front() {
                    self.lines[at].entering -= 1;
                    if self.protocol.class(message.kind) != Some(Class::Request) {
                        let unit = self.unit(at);
                        self.responses[unit] += 1;
                    }
                    self.lines[at].arrived.push(message);
                    self.report.messages += 1;
                }
            }
        }
        if self.inputs.local_req_valid[s] & outputs.local_req_ready[s] != 0 {
            if !self.accept_illegal_operation(s) {
                if let Some((at, _)) = self.slices[s].asks.pop_front() {
                    self.record_port_event(PortEvent::Asks(at));
                }
                self.slices[s].ask_valid = false;
                self.behind.orders[s] = None;
            }
            self.progress = self.cycle;
        }
        if self.inputs.unlock_valid[s] & outputs.unlock_ready[s] != 0 {
            if !self.accept_illegal_unlock(s) {
                let slice = &mut self.slices[s];
                slice.unlocks.pop_front();
                slice.unlock_valid = false;
            }
            self.progress = self.cycle;
        }
        Ok(())
    }

    /// Checks the messages that leave the home towards the remote.
    pub(super) fn leave(&mut self, s: usize, outputs: &Outputs) -> Checked {
        for c in 0..CIRCUITS {
            if outputs.tx_valid[s] & self.inputs.tx_ready[s] & 1 << c == 0 {
                continue;
            }
            self.progress = self.cycle;
            let mut departing = match self.slices[s].departing[c].take() {
                Some(departing) => departing,
                None => {
                    let header = outputs.tx_header[s][c];
                    let line = self.line_of(header & ((1 << 36) - 1), "a message to the remote")?;
                    let number = (header >> 40 & 0xff) as usize;
                    if number >= self.rom.sends.len() || header >> 36 & 15 != 0 {
                        return wrong(
                            line,
                            format!("a message to the remote has the number {number}"),
                        );
                    }
                    self.record_port_event(PortEvent::Leaves(line));
                    DepartingMessage {
                        line,
                        number,
                        bytes: [0; WORDS],
                        beat: 0,
                    }
                }
            };
            self.stalls.taken(s, c, self.cycle);
            let beat = &outputs.tx_data[s][c][..self.beat];
            departing.bytes[departing.beat * self.beat..][..self.beat].copy_from_slice(beat);
            departing.beat += 1;
            let sent = &self.rom.sends[departing.number];
            let last = !sent.payload || departing.beat == self.beats;
            if last != (outputs.tx_last[s] >> c & 1 != 0) {
                let (name, beat) = (&sent.name, departing.beat);
                let not = if last { "not " } else { "" };
                let what = format!("beat {beat} of {name} is {not}marked as its last one");
                return wrong(departing.line, what);
            }
            if sent.payload && departing.beat < self.beats {
                self.slices[s].departing[c] = Some(departing);
                continue;
            }
            let at = departing.line;
            self.record_port_event(PortEvent::HasLeft(at));
            let Some(expected) = self.lines[at].expected[c].pop_front() else {
                return wrong(
                    at,
                    format!(
                        "{} leaves the home, but the controller did not send it",
                        sent.name
                    ),
                );
            };
            if expected.kind != sent.message {
                let name = &self.protocol.message(expected.kind).name;
                return wrong(
                    at,
                    format!("{} leaves the home; the controller sent {name}", sent.name),
                );
            }
            if expected
                .bytes
                .is_some_and(|bytes| bytes[..self.words] != departing.bytes[..self.words])
            {
                return wrong(
                    at,
                    format!(
                        "{} leaves the home with data that differ from those read for it",
                        sent.name
                    ),
                );
            }
            self.report.messages += 1;
            self.free_departed(at, expected.flight);
            self.send(at, false, expected);
        }
        Ok(())
    }

    /// Returns the cycle in which memory answers a request that arrives now; `u64::MAX` if its answers are withheld.
    fn answers_at(&mut self, at: usize) -> u64 {
        let time = self.after(self.run.memory);
        let line = &mut self.lines[at];
        line.is_memory_resumed = !line.withheld;
        match line.withheld {
            true => u64::MAX,
            false => time,
        }
    }

    /// Checks the answer to the device.
    pub(super) fn answers(&mut self, s: usize, outputs: &Outputs) -> Checked {
        if outputs.local_rsp_valid[s] & self.inputs.local_rsp_ready[s] == 0 {
            return Ok(());
        }
        if self.behind.asks() {
            return self.complete_invalidation(s, outputs);
        }
        self.progress = self.cycle;
        let answer = outputs.local_rsp[s];
        if self.is_refusal_of_illegal_input(s, answer) {
            return Ok(());
        }
        self.record_operation_end();
        let at = self.line_of(answer & ((1 << 36) - 1), "an answer to the device")?;
        let unlock = answer >> 40 & 1 != 0;
        let answer = Answer {
            unlock,
            refused: answer >> 39 & 1 != 0,
            operation: if unlock { 0 } else { (answer >> 36 & 7) as u8 },
        };
        let line = &mut self.lines[at];
        let Some(place) = line.answers.iter().position(|&expected| expected == answer) else {
            return wrong(
                at,
                format!(
                    "the device receives {answer:?} of line {}; the controller said {:?}",
                    line.number, line.answers
                ),
            );
        };
        line.answers.remove(place);
        if !answer.unlock {
            self.frees_local(at);
        }
        self.record_port_event(PortEvent::Answers(at));
        let line = &mut self.lines[at];
        self.report.answers += 1;
        if answer.unlock {
            line.unlocks -= 1;
        } else if !answer.refused && self.home.locals[usize::from(answer.operation)].locks {
            line.told = line.locked.is_some();
        }
        let what = match (answer.unlock, answer.refused) {
            (true, false) => "is unlocked".to_string(),
            (true, true) => "is refused its unlock".to_string(),
            (false, refused) => {
                let name = &self.home.locals[usize::from(answer.operation)].name;
                format!(
                    "{} {name}",
                    if refused { "is refused" } else { "is told of" }
                )
            }
        };
        self.note(at, DEVICE, Action::Does { what });
        Ok(())
    }

    /// Returns the permission that the remote receives with the line being read; `None` for an uncached read.
    pub(super) fn read_permission(&self, at: usize) -> Right {
        let mut home = self.lines[at].home.clone();
        let has = self.rom.rights[usize::from(home.state)];
        let occasion = Trigger {
            home: 0,
            event: Event::MemoryData(0),
            sender: Some(0),
            own: None,
            fields: &[],
        };
        let stepped = self
            .home_machine
            .step(&mut home, occasion, &mut { self.home });
        let granted = self.rom.rights[usize::from(home.state)];
        match stepped {
            Ok(Outcome::Taken { .. }) if granted > has => granted,
            _ => Right::None,
        }
    }

    /// Checks a reported permission change against the controllers' changes, in order per unit, except for lost ones.
    fn check_permission_change(&mut self, s: usize, outputs: &Outputs) -> Checked {
        if outputs.change_valid[s] & self.inputs.change_ready[s] == 0 {
            return Ok(());
        }
        self.progress = self.cycle;
        let change = outputs.change[s];
        let at = self.line_of(change & ((1 << 36) - 1), "a permission change")?;
        let lost = self.changes.told(change);
        let lost = lost.or_else(|what| wrong(at, what))?;
        self.lost(s, lost);
        Ok(())
    }

    /// Checks memory requests, and completes memory operations.
    pub(super) fn memory(&mut self, s: usize, outputs: &Outputs) -> Checked {
        self.count_unsolicited_answers(s);
        self.memory_reads(s, outputs)?;
        self.record_write_beats(s, outputs)?;
        self.memory_writes(s)?;
        if self.inputs.b_valid[s] & outputs.b_ready[s] != 0 {
            self.progress = self.cycle;
            if let Some(index) = self.slices[s].written.take() {
                let write = self.slices[s].writes.remove(index);
                self.lines[write.line].operation = Memory::Written;
            }
        }
        Ok(())
    }

    fn memory_reads(&mut self, s: usize, outputs: &Outputs) -> Checked {
        let line_bytes = u64::from(self.protocol.line_bytes);
        if outputs.ar_valid[s] & self.inputs.ar_ready[s] != 0 {
            self.progress = self.cycle;
            let line = self.line_of(outputs.ar_addr[s] / line_bytes, "a read of memory")?;
            if self.lines[line].operation != Memory::ReadWanted
                || !outputs.ar_addr[s].is_multiple_of(line_bytes)
            {
                return wrong(
                    line,
                    "memory is read without a request of the controller".into(),
                );
            }
            let request = outputs.ar_user[s];
            let right = self.lines[line].right;
            if request >> 6 != right as u64 {
                return wrong(
                    line,
                    format!("a read of memory has the user bits {request:#x}; the remote gets {right:?}"),
                );
            }
            self.lines[line].operation = Memory::Reading;
            let at = self.answers_at(line);
            self.record_port_event(PortEvent::Reads(line));
            self.slices[s].reads.push(Burst {
                line,
                id: outputs.ar_id[s],
                at,
                beat: 0,
            });
        }
        if self.inputs.r_valid[s] & outputs.r_ready[s] != 0 {
            self.progress = self.cycle;
            if let Some(index) = self.slices[s].reading.take() {
                let read = &self.slices[s].reads[index];
                if read.beat == 0 {
                    self.record_port_event(PortEvent::IsRead(read.line));
                }
                let read = &mut self.slices[s].reads[index];
                read.beat += 1;
                if read.beat == self.beats {
                    let line = &mut self.lines[read.line];
                    line.operation = Memory::Read(line.memory);
                    self.slices[s].reads.remove(index);
                }
            }
        }
        Ok(())
    }

    /// Records addresses and data beats of writes, which arrive independently.
    fn record_write_beats(&mut self, s: usize, outputs: &Outputs) -> Checked {
        let line_bytes = u64::from(self.protocol.line_bytes);
        if outputs.aw_valid[s] & self.inputs.aw_ready[s] != 0 {
            self.progress = self.cycle;
            let line = self.line_of(outputs.aw_addr[s] / line_bytes, "a write of memory")?;
            let right = self.lines[line].right;
            if outputs.aw_user[s] >> 6 != right as u64 {
                return wrong(
                    line,
                    format!(
                        "a write of memory has the user bits {:#x}; the remote keeps {right:?}",
                        outputs.aw_user[s]
                    ),
                );
            }
            self.slices[s].addresses.push_back((line, outputs.aw_id[s]));
        }
        if outputs.w_valid[s] & self.inputs.w_ready[s] != 0 {
            self.progress = self.cycle;
            self.stalls.taken(s, stalls::MEMORY, self.cycle);
            let slice = &mut self.slices[s];
            let (bytes, strobes, beat) = &mut slice.beat;
            let words = self.beat;
            bytes[*beat * words..][..words].copy_from_slice(&outputs.w_data[s][..words]);
            for word in 0..words {
                let strobe = |byte: usize| outputs.w_strb[s] >> (8 * word + byte) & 1;
                strobes[*beat * words + word] =
                    (0..8).fold(0, |bits, byte| bits | (strobe(byte) * 0xff) << (8 * byte));
            }
            *beat += 1;
            if (*beat == self.beats) != (outputs.w_last[s] != 0) {
                let what = format!("a write has its last beat after {beat}");
                return noticed(Check::Comparison, None, what);
            }
            if *beat == self.beats {
                slice.data.push_back((*bytes, *strobes));
                slice.beat = ([0; WORDS], [0; WORDS], 0);
            }
        }
        Ok(())
    }

    /// Checks and performs the writes whose address and data have both arrived.
    fn memory_writes(&mut self, s: usize) -> Checked {
        while !self.slices[s].addresses.is_empty() && !self.slices[s].data.is_empty() {
            let slice = &mut self.slices[s];
            let (Some((at, id)), Some((bytes, strobes))) =
                (slice.addresses.pop_front(), slice.data.pop_front())
            else {
                break;
            };
            let line = &mut self.lines[at];
            let Memory::WriteWanted(expected, mask) = &line.operation else {
                return wrong(
                    at,
                    "memory is written without a request of the controller".into(),
                );
            };
            for word in 0..self.words {
                let covered = covered(*mask, word, self.words);
                if covered != strobes[word] || (expected[word] ^ bytes[word]) & covered != 0 {
                    return wrong(
                        at,
                        format!(
                            "word {word} of line {} is written with another value than its sender sent",
                            line.number
                        ),
                    );
                }
                line.memory[word] = line.memory[word] & !covered | bytes[word] & covered;
            }
            line.operation = Memory::Writing;
            self.record_port_event(PortEvent::Writes(at));
            let time = self.answers_at(at);
            self.slices[s].writes.push(Burst {
                line: at,
                id,
                at: time,
                beat: 0,
            });
        }
        Ok(())
    }
}
