//! A slice of ECI's home for tests of illegal traffic, with memory, link and device around it.

use super::{BYTES, GRANTS, READ_SHARED, SLICE};
use cohkit_rtl::lockstep::model::{Inputs, Model, Outputs, CIRCUITS};
use cohkit_rtl::lockstep::words::{line_of, Header};
use cohkit_rtl::registers::register;
use std::collections::VecDeque;

/// A beat of a read response of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MemoryBeat {
    /// Index of the line's word in the beat.
    pub(super) word: u64,
    /// Mark of the last beat.
    pub(super) is_last: bool,
}

/// Returns a beat of a read response.
pub(super) const fn beat(word: u64, is_last: bool) -> MemoryBeat {
    MemoryBeat { word, is_last }
}

/// The correct beats of a line: each word once.
pub(super) const LINE_BEATS: [MemoryBeat; 2] = [beat(0, false), beat(1, true)];

/// An outstanding read of memory.
#[derive(Clone, Copy)]
pub(super) struct MemoryRead {
    /// AXI ID.
    id: u64,
    /// Byte address.
    address: u64,
}

/// A beat that was sent to the remote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SentBeat {
    /// Line of the message.
    pub(super) line: u64,
    /// First word of the beat.
    pub(super) word: u64,
}

/// A home after reset with its environment: memory in which every word equals its address, a link that accepts
/// everything, and a device that accepts answers. Their inputs are recorded.
pub(super) struct Home {
    pub(super) model: Model,
    pub(super) inputs: Inputs,
    pub(super) outputs: Outputs,
    /// Outstanding reads of memory, in order.
    pub(super) reads: VecDeque<MemoryRead>,
    /// Index of the next beat of the first read's response.
    pub(super) beat: usize,
    /// Beats of every read response. Other beats than [`LINE_BEATS`] are errors of memory.
    pub(super) beats: Vec<MemoryBeat>,
    /// IDs of writes whose address has arrived; complete writes are answered.
    pub(super) writes: VecDeque<u64>,
    /// Number of data beats of unanswered writes so far; a write has two.
    pub(super) written_beats: u64,
    /// True if memory accepts no read addresses and no write data.
    pub(super) memory_refuses: bool,
    /// Unsolicited read beat in the next cycle, with all bits set: its AXI ID, and the mark of the last beat.
    pub(super) unsolicited_read: Option<(u64, bool)>,
    /// AXI ID of an unsolicited write response in the next cycle.
    pub(super) unsolicited_write: Option<u64>,
    /// True if memory does not answer.
    pub(super) memory_withholds: bool,
    /// Bit mask of circuits to the remote that accept nothing.
    pub(super) blocked_circuits: u64,
    /// Beats sent to the remote, by circuit.
    pub(super) sent: [Vec<SentBeat>; CIRCUITS],
    /// Answers to the device, as 41-bit words of `local_rsp_t`.
    pub(super) device_answers: Vec<u64>,
    /// Addresses of all reads of memory so far.
    pub(super) addresses: Vec<u64>,
}

impl Home {
    /// Creates a home after its reset.
    pub(super) fn new(model: Model) -> Home {
        let mut home = Home {
            model,
            inputs: Inputs::default(),
            outputs: Outputs::default(),
            reads: VecDeque::new(),
            beat: 0,
            beats: LINE_BEATS.to_vec(),
            writes: VecDeque::new(),
            written_beats: 0,
            memory_refuses: false,
            unsolicited_read: None,
            unsolicited_write: None,
            memory_withholds: false,
            blocked_circuits: 0,
            sent: Default::default(),
            device_answers: Vec::new(),
            addresses: Vec::new(),
        };
        home.inputs.reset = 1;
        home.cycle();
        home.inputs.reset = 0;
        home.cycles(50);
        home
    }

    /// Executes a cycle. Ignores assertion messages, because synthesised hardware has no assertions.
    pub(super) fn cycle(&mut self) {
        let inputs = &mut self.inputs;
        // ECI has two circuits to the remote.
        inputs.tx_ready[SLICE] = !self.blocked_circuits & 3;
        inputs.local_rsp_ready[SLICE] = 1;
        inputs.change_ready[SLICE] = 1;
        inputs.ar_ready[SLICE] = u64::from(!self.memory_refuses);
        inputs.aw_ready[SLICE] = 1;
        inputs.w_ready[SLICE] = u64::from(!self.memory_refuses);
        let unsolicited = self.unsolicited_read.take();
        let read = self
            .reads
            .front()
            .copied()
            .filter(|_| !self.memory_withholds);
        inputs.r_valid[SLICE] = u64::from(read.is_some() || unsolicited.is_some());
        if let Some((id, last)) = unsolicited {
            inputs.r_id[SLICE] = id;
            inputs.r_data[SLICE] = [u64::MAX; 8];
            inputs.r_last[SLICE] = u64::from(last);
        } else if let Some(MemoryRead { id, address }) = read {
            let MemoryBeat { word, is_last } = self.beats[self.beat];
            inputs.r_id[SLICE] = id;
            inputs.r_data[SLICE][0] = address + word;
            inputs.r_last[SLICE] = u64::from(is_last);
            self.beat += 1;
            if self.beat == self.beats.len() {
                self.beat = 0;
                self.reads.pop_front();
            }
        }
        let unsolicited = self.unsolicited_write.take();
        let completes_write =
            self.written_beats >= 2 && !self.writes.is_empty() && unsolicited.is_none();
        inputs.b_valid[SLICE] = u64::from(completes_write || unsolicited.is_some());
        inputs.b_id[SLICE] = unsolicited.or(self.writes.front().copied()).unwrap_or(0);
        if completes_write {
            self.written_beats -= 2;
            self.writes.pop_front();
        }
        let _ = self.model.step(&self.inputs, &mut self.outputs);
        let (inputs, outputs) = (&self.inputs, &self.outputs);
        if inputs.reset != 0 {
            return;
        }
        if outputs.aw_valid[SLICE] != 0 {
            self.writes.push_back(outputs.aw_id[SLICE]);
        }
        self.written_beats += outputs.w_valid[SLICE] & inputs.w_ready[SLICE];
        if outputs.ar_valid[SLICE] & inputs.ar_ready[SLICE] != 0 {
            let (id, address) = (outputs.ar_id[SLICE], outputs.ar_addr[SLICE]);
            self.reads.push_back(MemoryRead { id, address });
            self.addresses.push(address);
        }
        for (circuit, sent) in self.sent.iter_mut().enumerate() {
            if (outputs.tx_valid[SLICE] & inputs.tx_ready[SLICE]) >> circuit & 1 != 0 {
                sent.push(SentBeat {
                    line: line_of(outputs.tx_header[SLICE][circuit]),
                    word: outputs.tx_data[SLICE][circuit][0],
                });
            }
        }
        if outputs.local_rsp_valid[SLICE] != 0 {
            self.device_answers
                .push(outputs.local_rsp[SLICE] & ((1 << 41) - 1));
        }
    }

    /// Executes this number of cycles.
    pub(super) fn cycles(&mut self, count: usize) {
        for _ in 0..count {
            self.cycle();
        }
    }

    /// Offers an input until it is accepted.
    pub(super) fn offer(&mut self, valid: fn(&mut Inputs) -> &mut u64, ready: fn(&Outputs) -> u64) {
        *valid(&mut self.inputs) = 1;
        for _ in 0..200 {
            self.cycle();
            if ready(&self.outputs) & 1 != 0 {
                *valid(&mut self.inputs) = 0;
                return;
            }
        }
        panic!("the home does not accept the input within 200 cycles");
    }

    /// Sends a message on the request circuit, with this number of beats, of which the last is marked.
    pub(super) fn request(&mut self, message: u64, line: u64, beats: u64) {
        for beat in 1..=beats {
            // The header of further beats is ignored: here it is a request for another line.
            let [message, line] = if beat == 1 {
                [message, line]
            } else {
                [READ_SHARED, 8]
            };
            self.inputs.rx_header[SLICE][0] = Header {
                mask: u16::MAX,
                message: message as u8,
                remote: 0,
                line,
            }
            .encode();
            self.inputs.rx_last[SLICE] = u64::from(beat == beats);
            self.offer(
                |inputs| &mut inputs.rx_valid[SLICE],
                |outputs| outputs.rx_ready[SLICE],
            );
        }
    }

    /// Requests a local operation of the device.
    pub(super) fn request_local(&mut self, operation: u64, line: u64) {
        self.inputs.local_req[SLICE] = operation << 36 | line;
        self.offer(
            |inputs| &mut inputs.local_req_valid[SLICE],
            |outputs| outputs.local_req_ready[SLICE],
        );
    }

    /// Requests an unlock by the device.
    pub(super) fn unlock(&mut self, line: u64) {
        self.inputs.unlock_line[SLICE] = line;
        self.offer(
            |inputs| &mut inputs.unlock_valid[SLICE],
            |outputs| outputs.unlock_ready[SLICE],
        );
    }

    /// Reads a register of the slice: element `number` of the array with this name.
    pub(super) fn register(&mut self, name: &str, number: u64) -> u64 {
        self.inputs.cfg_ar_addr[SLICE] = register(name).address + 8 * number;
        self.inputs.cfg_r_ready[SLICE] = 1;
        self.offer(
            |inputs| &mut inputs.cfg_ar_valid[SLICE],
            |outputs| outputs.cfg_ar_ready[SLICE],
        );
        for _ in 0..400 {
            self.cycle();
            if self.outputs.cfg_r_valid[SLICE] != 0 {
                return self.outputs.cfg_r_data[SLICE];
            }
        }
        panic!("the read of {name} is not answered within 400 cycles");
    }

    /// True if a line was granted exactly once, with its own bytes.
    pub(super) fn is_granted(&self, line: u64) -> bool {
        let grants = self.sent[GRANTS].iter();
        let granted_words: Vec<u64> = grants
            .filter(|beat| beat.line == line)
            .map(|beat| beat.word)
            .collect();
        granted_words == [line * BYTES, line * BYTES + 1]
    }
}
