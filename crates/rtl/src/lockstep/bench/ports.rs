//! Ports of the home: driving the pins, and observing the transfers.

use super::*;

impl Bench<'_> {
    pub(super) fn drive_inputs(&mut self) {
        self.inject_illegal_traffic();
        let ready = self.run.ready;
        let cycle = self.cycle;
        let exact = self.run.exact;
        let (words, beats) = (self.words_per_beat, self.beats);
        for slice_index in 0..SLICES {
            let (inputs, slice, random) = (
                &mut self.inputs,
                &mut self.slices[slice_index],
                &mut self.random,
            );
            let mut random_ready = || u64::from(random.below(16) < ready);
            (inputs.rx_valid[slice_index], inputs.rx_last[slice_index]) = (0, 0);
            for (circuit, port_queue) in slice.port_queues.iter_mut().enumerate() {
                let Some((line_index, message)) = port_queue.queue.front() else {
                    continue;
                };
                if slice.illegal_inputs.has_message(circuit) {
                    continue;
                }
                port_queue.valid = port_queue.valid || random_ready() != 0;
                if !port_queue.valid {
                    continue;
                }
                inputs.rx_valid[slice_index] |= 1 << circuit;
                let event = self
                    .rom
                    .events
                    .iter()
                    .position(|event| event.event == Event::Message(message.kind));
                let event = event.expect("it goes to the home") as u64;
                inputs.rx_header[slice_index][circuit] =
                    u64::from(message.mask) << 48 | event << 40 | self.lines[*line_index].number;
                let is_last = message.bytes.is_none() || port_queue.beat + 1 == beats;
                inputs.rx_last[slice_index] |= u64::from(is_last) << circuit;
                if let Some(bytes) = &message.bytes {
                    let beat = &bytes[port_queue.beat * words..][..words];
                    inputs.rx_data[slice_index][circuit][..words].copy_from_slice(beat);
                }
            }
            let stalled = self.stalls.stalled(slice_index, cycle);
            inputs.tx_ready[slice_index] = (0..CIRCUITS)
                .map(|circuit| random_ready() << circuit)
                .sum::<u64>()
                & !stalled;
            let has_illegal = slice.illegal_inputs.has_local_request();
            slice.local_request_valid = !slice.local_requests.is_empty()
                && !has_illegal
                && (slice.local_request_valid || random_ready() != 0);
            inputs.local_req_valid[slice_index] = u64::from(slice.local_request_valid);
            if let Some(&(line_index, operation)) = slice.local_requests.front() {
                inputs.local_req[slice_index] =
                    u64::from(operation) << 36 | self.lines[line_index].number;
            }
            if let Some(order) = self.endpoint.commands[slice_index] {
                inputs.local_req_valid[slice_index] = 1;
                inputs.local_req[slice_index] = order;
            }
            let has_illegal = slice.illegal_inputs.has_unlock();
            slice.unlock_valid = !slice.unlocks.is_empty()
                && !has_illegal
                && (slice.unlock_valid || random_ready() != 0);
            inputs.unlock_valid[slice_index] = u64::from(slice.unlock_valid);
            if let Some(&line_index) = slice.unlocks.front() {
                inputs.unlock_line[slice_index] = self.lines[line_index].number;
            }
            inputs.local_rsp_ready[slice_index] = random_ready();
            // The listener may be slow and miss some changes.
            let accepts_changes = self.is_listening || cycle % 512 < 32 * ready;
            inputs.change_ready[slice_index] = random_ready() & u64::from(accepts_changes);
            inputs.aw_ready[slice_index] = random_ready();
            inputs.w_ready[slice_index] = random_ready() & !(stalled >> stalls::MEMORY);
            inputs.ar_ready[slice_index] = random_ready();
            // Choose any completed read, also one whose beats were interleaved with others.
            if slice.current_read.is_none() && random_ready() != 0 {
                let completed: Vec<usize> = (0..slice.reads.len())
                    .filter(|&read| slice.reads[read].completion_cycle <= cycle)
                    .collect();
                if !completed.is_empty() {
                    slice.current_read = Some(match exact {
                        true => completed[0],
                        false => completed[random.below(completed.len() as u64) as usize],
                    });
                }
            }
            inputs.r_valid[slice_index] = u64::from(slice.current_read.is_some());
            if let Some(read) = slice.current_read {
                let read = &slice.reads[read];
                inputs.r_id[slice_index] = read.id;
                inputs.r_last[slice_index] = u64::from(read.beat + 1 == self.beats);
                let bytes = &self.lines[read.line].memory;
                inputs.r_data[slice_index][..words]
                    .copy_from_slice(&bytes[read.beat * words..][..words]);
            }
            if slice.current_write.is_none() {
                let completed: Vec<usize> = (0..slice.writes.len())
                    .filter(|&write| slice.writes[write].completion_cycle <= cycle)
                    .collect();
                if !completed.is_empty() {
                    slice.current_write =
                        Some(completed[random.below(completed.len() as u64) as usize]);
                }
            }
            inputs.b_valid[slice_index] = u64::from(slice.current_write.is_some());
            if let Some(write) = slice.current_write {
                inputs.b_id[slice_index] = slice.writes[write].id;
            }
            self.drive_illegal_traffic(slice_index);
        }
    }

    /// Observes the home's outputs of this cycle: first its steps, then the transfers at its ports.
    pub(super) fn observe(&mut self) -> Checked {
        let outputs = std::mem::take(&mut self.outputs);
        for slice_index in 0..SLICES {
            self.ports.count(&self.inputs, &outputs, slice_index);
            self.count_pin_activity(slice_index, &outputs);
            self.record_inputs(slice_index, &outputs)?;
            let mut units = outputs.step_valid[slice_index];
            while units != 0 {
                let unit = units.trailing_zeros() as usize;
                units &= units - 1;
                self.check_home_step(outputs.step[slice_index][unit])?;
            }
            self.check_departures(slice_index, &outputs)?;
            self.check_device_answer(slice_index, &outputs)?;
            self.check_memory_ports(slice_index, &outputs)?;
            self.check_permission_change(slice_index, &outputs)?;
        }
        self.outputs = outputs;
        Ok(())
    }

    pub(super) fn line_of(&self, number: u64, subject: &str) -> Checked<usize> {
        match self.by_number.get(&number) {
            Some(&line_index) => Ok(line_index),
            None => {
                let message = format!("{subject} is about line {number}, which is not used");
                check_failed(Check::Comparison, None, message)
            }
        }
    }

    /// Records the transfers into the home.
    pub(super) fn record_inputs(&mut self, slice_index: usize, outputs: &Outputs) -> Checked {
        for circuit in 0..CIRCUITS {
            if self.inputs.rx_valid[slice_index] & outputs.rx_ready[slice_index] & 1 << circuit == 0
            {
                continue;
            }
            self.last_activity = self.cycle;
            if self.accept_illegal_beat(slice_index, circuit) {
                continue;
            }
            let port_queue = &self.slices[slice_index].port_queues[circuit];
            if let (0, Some(&(line_index, _))) = (port_queue.beat, port_queue.queue.front()) {
                self.record_port_event(PortEvent::Enters(line_index));
            }
            let port_queue = &mut self.slices[slice_index].port_queues[circuit];
            port_queue.valid = false;
            port_queue.beat += 1;
            let is_complete = match port_queue.queue.front() {
                Some((_, message)) => {
                    let has_payload = message.bytes.is_some();
                    let is_last = !has_payload || port_queue.beat == self.beats;
                    port_queue.last_beat = Some((has_payload && port_queue.beat == 1, is_last));
                    is_last
                }
                None => false,
            };
            if is_complete {
                port_queue.beat = 0;
                if let Some((line_index, message)) = port_queue.queue.pop_front() {
                    self.lines[line_index].messages_at_ports -= 1;
                    if self.protocol.class(message.kind) != Some(Class::Request) {
                        let unit = self.unit(line_index);
                        self.responses[unit] += 1;
                    }
                    self.lines[line_index].arrived_messages.push(message);
                    self.report.messages += 1;
                }
            }
        }
        if self.inputs.local_req_valid[slice_index] & outputs.local_req_ready[slice_index] != 0 {
            if !self.accept_illegal_operation(slice_index) {
                if let Some((line_index, _)) = self.slices[slice_index].local_requests.pop_front() {
                    self.record_port_event(PortEvent::Asks(line_index));
                }
                self.slices[slice_index].local_request_valid = false;
                self.endpoint.commands[slice_index] = None;
            }
            self.last_activity = self.cycle;
        }
        if self.inputs.unlock_valid[slice_index] & outputs.unlock_ready[slice_index] != 0 {
            if !self.accept_illegal_unlock(slice_index) {
                let slice = &mut self.slices[slice_index];
                slice.unlocks.pop_front();
                slice.unlock_valid = false;
            }
            self.last_activity = self.cycle;
        }
        Ok(())
    }

    /// Checks the messages that leave the home towards the remote.
    pub(super) fn check_departures(&mut self, slice_index: usize, outputs: &Outputs) -> Checked {
        for circuit in 0..CIRCUITS {
            if outputs.tx_valid[slice_index] & self.inputs.tx_ready[slice_index] & 1 << circuit == 0
            {
                continue;
            }
            self.last_activity = self.cycle;
            let mut departing = match self.slices[slice_index].departing[circuit].take() {
                Some(departing) => departing,
                None => {
                    let header = outputs.tx_header[slice_index][circuit];
                    let line = self.line_of(header & ((1 << 36) - 1), "a message to the remote")?;
                    let number = (header >> 40 & 0xff) as usize;
                    if number >= self.rom.sends.len() || header >> 36 & 15 != 0 {
                        return line_failure(
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
            self.stalls.note_beat(slice_index, circuit, self.cycle);
            let beat = &outputs.tx_data[slice_index][circuit][..self.words_per_beat];
            departing.bytes[departing.beat * self.words_per_beat..][..self.words_per_beat]
                .copy_from_slice(beat);
            departing.beat += 1;
            let sent = &self.rom.sends[departing.number];
            let is_last = !sent.payload || departing.beat == self.beats;
            if is_last != (outputs.tx_last[slice_index] >> circuit & 1 != 0) {
                let (name, beat) = (&sent.name, departing.beat);
                let negation = if is_last { "not " } else { "" };
                let message = format!("beat {beat} of {name} is {negation}marked as its last one");
                return line_failure(departing.line, message);
            }
            if sent.payload && departing.beat < self.beats {
                self.slices[slice_index].departing[circuit] = Some(departing);
                continue;
            }
            let line_index = departing.line;
            self.record_port_event(PortEvent::HasLeft(line_index));
            let Some(expected) = self.lines[line_index].expected_departures[circuit].pop_front()
            else {
                return line_failure(
                    line_index,
                    format!(
                        "{} leaves the home, but the controller did not send it",
                        sent.name
                    ),
                );
            };
            if expected.kind != sent.message {
                let name = &self.protocol.message(expected.kind).name;
                return line_failure(
                    line_index,
                    format!("{} leaves the home; the controller sent {name}", sent.name),
                );
            }
            if expected
                .bytes
                .is_some_and(|bytes| bytes[..self.words] != departing.bytes[..self.words])
            {
                return line_failure(
                    line_index,
                    format!(
                        "{} leaves the home with data that differ from those read for it",
                        sent.name
                    ),
                );
            }
            self.report.messages += 1;
            self.free_departed(line_index, expected.flight);
            self.send(line_index, false, expected);
        }
        Ok(())
    }

    /// Returns the cycle in which memory answers a request that arrives now; `u64::MAX` if its answers are withheld.
    fn memory_answer_cycle(&mut self, line_index: usize) -> u64 {
        let cycle = self.random_completion_cycle(self.run.memory);
        let line = &mut self.lines[line_index];
        line.is_memory_resumed = !line.is_memory_withheld;
        match line.is_memory_withheld {
            true => u64::MAX,
            false => cycle,
        }
    }

    /// Checks the answer to the device.
    pub(super) fn check_device_answer(&mut self, slice_index: usize, outputs: &Outputs) -> Checked {
        if outputs.local_rsp_valid[slice_index] & self.inputs.local_rsp_ready[slice_index] == 0 {
            return Ok(());
        }
        if self.endpoint.drives_local_ports() {
            return self.complete_invalidation(slice_index, outputs);
        }
        self.last_activity = self.cycle;
        let answer = outputs.local_rsp[slice_index];
        if self.is_refusal_of_illegal_input(slice_index, answer) {
            return Ok(());
        }
        self.record_operation_end();
        let line_index = self.line_of(answer & ((1 << 36) - 1), "an answer to the device")?;
        let unlock = answer >> 40 & 1 != 0;
        let answer = Answer {
            unlock,
            refused: answer >> 39 & 1 != 0,
            operation: if unlock { 0 } else { (answer >> 36 & 7) as u8 },
        };
        let line = &mut self.lines[line_index];
        let Some(position) = line.answers.iter().position(|&expected| expected == answer) else {
            return line_failure(
                line_index,
                format!(
                    "the device receives {answer:?} of line {}; the controller said {:?}",
                    line.number, line.answers
                ),
            );
        };
        line.answers.remove(position);
        if !answer.unlock {
            self.free_local(line_index);
        }
        self.record_port_event(PortEvent::Answers(line_index));
        let line = &mut self.lines[line_index];
        self.report.answers += 1;
        if answer.unlock {
            line.unlocks -= 1;
        } else if !answer.refused && self.home.locals[usize::from(answer.operation)].locks {
            line.lock_reported = line.lock_permission.is_some();
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
        self.note(line_index, DEVICE, Action::Does { what });
        Ok(())
    }

    /// Returns the permission that the remote receives with the line being read; `None` for an uncached read.
    pub(super) fn read_permission(&self, line_index: usize) -> Right {
        let mut home = self.lines[line_index].home.clone();
        let permission_before = self.rom.rights[usize::from(home.state)];
        let trigger = Trigger {
            home: 0,
            event: Event::MemoryData(0),
            sender: Some(0),
            executing_remote: None,
            fields: &[],
        };
        let stepped = self
            .home_machine
            .step(&mut home, trigger, &mut { self.home });
        let granted = self.rom.rights[usize::from(home.state)];
        match stepped {
            Ok(Outcome::Taken { .. }) if granted > permission_before => granted,
            _ => Right::None,
        }
    }

    /// Checks a reported permission change against the controllers' changes, in order per unit, except for lost ones.
    fn check_permission_change(&mut self, slice_index: usize, outputs: &Outputs) -> Checked {
        if outputs.change_valid[slice_index] & self.inputs.change_ready[slice_index] == 0 {
            return Ok(());
        }
        self.last_activity = self.cycle;
        let change = outputs.change[slice_index];
        let line_index = self.line_of(change & ((1 << 36) - 1), "a permission change")?;
        let lost = self.changes.check_report(change);
        let lost = lost.or_else(|message| line_failure(line_index, message))?;
        self.count_lost_changes(slice_index, lost);
        Ok(())
    }

    /// Checks memory requests, and completes memory operations.
    pub(super) fn check_memory_ports(&mut self, slice_index: usize, outputs: &Outputs) -> Checked {
        self.count_unsolicited_answers(slice_index);
        self.check_memory_reads(slice_index, outputs)?;
        self.record_write_beats(slice_index, outputs)?;
        self.check_memory_writes(slice_index)?;
        if self.inputs.b_valid[slice_index] & outputs.b_ready[slice_index] != 0 {
            self.last_activity = self.cycle;
            if let Some(index) = self.slices[slice_index].current_write.take() {
                let write = self.slices[slice_index].writes.remove(index);
                self.lines[write.line].operation = Memory::Written;
            }
        }
        Ok(())
    }

    fn check_memory_reads(&mut self, slice_index: usize, outputs: &Outputs) -> Checked {
        let line_bytes = u64::from(self.protocol.line_bytes);
        if outputs.ar_valid[slice_index] & self.inputs.ar_ready[slice_index] != 0 {
            self.last_activity = self.cycle;
            let line = self.line_of(
                outputs.ar_addr[slice_index] / line_bytes,
                "a read of memory",
            )?;
            if self.lines[line].operation != Memory::ReadWanted
                || !outputs.ar_addr[slice_index].is_multiple_of(line_bytes)
            {
                return line_failure(
                    line,
                    "memory is read without a request of the controller".into(),
                );
            }
            let request = outputs.ar_user[slice_index];
            let permission = self.lines[line].permission;
            if request >> 6 != permission as u64 {
                return line_failure(
                    line,
                    format!("a read of memory has the user bits {request:#x}; the remote gets {permission:?}"),
                );
            }
            self.lines[line].operation = Memory::Reading;
            let completion_cycle = self.memory_answer_cycle(line);
            self.record_port_event(PortEvent::Reads(line));
            self.slices[slice_index].reads.push(Burst {
                line,
                id: outputs.ar_id[slice_index],
                completion_cycle,
                beat: 0,
            });
        }
        if self.inputs.r_valid[slice_index] & outputs.r_ready[slice_index] != 0 {
            self.last_activity = self.cycle;
            if let Some(index) = self.slices[slice_index].current_read.take() {
                let read = &self.slices[slice_index].reads[index];
                if read.beat == 0 {
                    self.record_port_event(PortEvent::IsRead(read.line));
                }
                let read = &mut self.slices[slice_index].reads[index];
                read.beat += 1;
                if read.beat == self.beats {
                    let line = &mut self.lines[read.line];
                    line.operation = Memory::Read(line.memory);
                    self.slices[slice_index].reads.remove(index);
                }
            }
        }
        Ok(())
    }

    /// Records addresses and data beats of writes, which arrive independently.
    fn record_write_beats(&mut self, slice_index: usize, outputs: &Outputs) -> Checked {
        let line_bytes = u64::from(self.protocol.line_bytes);
        if outputs.aw_valid[slice_index] & self.inputs.aw_ready[slice_index] != 0 {
            self.last_activity = self.cycle;
            let line = self.line_of(
                outputs.aw_addr[slice_index] / line_bytes,
                "a write of memory",
            )?;
            let permission = self.lines[line].permission;
            if outputs.aw_user[slice_index] >> 6 != permission as u64 {
                return line_failure(
                    line,
                    format!(
                        "a write of memory has the user bits {:#x}; the remote keeps {permission:?}",
                        outputs.aw_user[slice_index]
                    ),
                );
            }
            self.slices[slice_index]
                .write_addresses
                .push_back((line, outputs.aw_id[slice_index]));
        }
        if outputs.w_valid[slice_index] & self.inputs.w_ready[slice_index] != 0 {
            self.last_activity = self.cycle;
            self.stalls
                .note_beat(slice_index, stalls::MEMORY, self.cycle);
            let slice = &mut self.slices[slice_index];
            let (bytes, strobes, beat) = &mut slice.incoming_write;
            let words = self.words_per_beat;
            bytes[*beat * words..][..words].copy_from_slice(&outputs.w_data[slice_index][..words]);
            for word in 0..words {
                let strobe = |byte: usize| outputs.w_strb[slice_index] >> (8 * word + byte) & 1;
                strobes[*beat * words + word] =
                    (0..8).fold(0, |bits, byte| bits | (strobe(byte) * 0xff) << (8 * byte));
            }
            *beat += 1;
            if (*beat == self.beats) != (outputs.w_last[slice_index] != 0) {
                let message = format!("a write has its last beat after {beat}");
                return check_failed(Check::Comparison, None, message);
            }
            if *beat == self.beats {
                slice.write_data.push_back((*bytes, *strobes));
                slice.incoming_write = ([0; WORDS], [0; WORDS], 0);
            }
        }
        Ok(())
    }

    /// Checks and performs the writes whose address and data have both arrived.
    fn check_memory_writes(&mut self, slice_index: usize) -> Checked {
        while !self.slices[slice_index].write_addresses.is_empty()
            && !self.slices[slice_index].write_data.is_empty()
        {
            let slice = &mut self.slices[slice_index];
            let (Some((line_index, id)), Some((bytes, strobes))) = (
                slice.write_addresses.pop_front(),
                slice.write_data.pop_front(),
            ) else {
                break;
            };
            let line = &mut self.lines[line_index];
            let Memory::WriteWanted(expected, mask) = &line.operation else {
                return line_failure(
                    line_index,
                    "memory is written without a request of the controller".into(),
                );
            };
            for word in 0..self.words {
                let covered = covered(*mask, word, self.words);
                if covered != strobes[word] || (expected[word] ^ bytes[word]) & covered != 0 {
                    return line_failure(
                        line_index,
                        format!(
                            "word {word} of line {} is written with another value than its sender sent",
                            line.number
                        ),
                    );
                }
                line.memory[word] = line.memory[word] & !covered | bytes[word] & covered;
            }
            line.operation = Memory::Writing;
            self.record_port_event(PortEvent::Writes(line_index));
            let completion_cycle = self.memory_answer_cycle(line_index);
            self.slices[slice_index].writes.push(Burst {
                line: line_index,
                id,
                completion_cycle,
                beat: 0,
            });
        }
        Ok(())
    }
}
