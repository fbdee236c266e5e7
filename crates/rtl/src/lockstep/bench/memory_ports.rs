//! The memory of a slice and its AXI ports: reads and writes with random latency, in any order.

use super::context::Context;
use super::error::{check_failed, line_failure, Checked};
use super::line::{covered_bits, Bytes, Memory, WORDS};
use super::port_events::PortEvent;
use super::stalls::{Stalls, MEMORY};
use crate::lockstep::model::{Inputs, Outputs};
use crate::lockstep::setup::Check;
use std::collections::VecDeque;

/// A read or write of a slice's memory.
struct Burst {
    /// Index of the line.
    line: usize,
    /// AXI ID.
    id: u64,
    /// First cycle in which memory may answer; `u64::MAX` while the answer is withheld.
    completion_cycle: u64,
    /// Number of beats that have been transmitted; unused for writes.
    beat: usize,
}

/// Data of a write.
#[derive(Clone, Copy)]
struct WriteData {
    /// Words of the line.
    words: Bytes,
    /// Mask of the written bits of each word.
    masks: Bytes,
    /// Number of beats that have arrived.
    beats: usize,
}

impl WriteData {
    /// A write of which no beat has arrived.
    const EMPTY: WriteData = WriteData {
        words: [0; WORDS],
        masks: [0; WORDS],
        beats: 0,
    };
}

/// The memory of a slice.
pub(super) struct MemoryPorts {
    /// Number of the slice.
    slice: usize,
    /// Outstanding reads, in the order in which they were requested.
    reads: Vec<Burst>,
    /// Read whose beat is on the pins, as an index into `reads`.
    current_read: Option<usize>,
    /// Addresses of writes whose data have not arrived, each as line and AXI ID.
    write_addresses: VecDeque<(usize, u64)>,
    /// Data of writes whose address has not arrived.
    write_data: VecDeque<WriteData>,
    /// Write whose beats are arriving.
    incoming_write: WriteData,
    /// Outstanding writes that have been performed, in that order.
    writes: Vec<Burst>,
    /// Write whose response is on the pins, as an index into `writes`.
    current_write: Option<usize>,
}

impl MemoryPorts {
    /// Creates the idle memory of a slice.
    pub fn new(slice: usize) -> MemoryPorts {
        MemoryPorts {
            slice,
            reads: Vec::new(),
            current_read: None,
            write_addresses: VecDeque::new(),
            write_data: VecDeque::new(),
            incoming_write: WriteData::EMPTY,
            writes: Vec::new(),
            current_write: None,
        }
    }

    /// True if no read or write is outstanding.
    pub fn is_idle(&self) -> bool {
        self.reads.is_empty()
            && self.writes.is_empty()
            && self.write_addresses.is_empty()
            && self.write_data.is_empty()
    }

    /// True if a read with this AXI ID is outstanding.
    pub fn has_read_with(&self, id: u64) -> bool {
        self.reads.iter().any(|burst| burst.id == id)
    }

    /// True if a write with this AXI ID is outstanding.
    pub fn has_write_with(&self, id: u64) -> bool {
        self.writes.iter().any(|burst| burst.id == id)
    }

    /// Lets memory answer the requests for a line again. `completion` maps the completion cycle of each to a new
    /// one.
    pub fn resume(
        &mut self,
        context: &mut Context,
        line_index: usize,
        completion: impl Fn(u64) -> u64,
    ) {
        context.lines[line_index].steering.is_memory_resumed = true;
        for burst in self.reads.iter_mut().chain(&mut self.writes) {
            if burst.line == line_index {
                burst.completion_cycle = completion(burst.completion_cycle);
            }
        }
    }

    /// Drives the pins. `stalled` has a bit for each port that must not be ready (see [`Stalls::stalled`]).
    pub fn drive(&mut self, context: &mut Context, inputs: &mut Inputs, stalled: u64) {
        let (slice, cycle) = (self.slice, context.cycle);
        let (words, beats) = (context.reference.words_per_beat, context.reference.beats);
        inputs.aw_ready[slice] = context.random_ready();
        inputs.w_ready[slice] = context.random_ready() & !(stalled >> MEMORY);
        inputs.ar_ready[slice] = context.random_ready();
        // Choose any completed read, also one whose beats were interleaved with others.
        if self.current_read.is_none() && context.random_ready() != 0 {
            let completed = completed_bursts(&self.reads, cycle);
            if !completed.is_empty() {
                self.current_read = Some(match context.run.has_fixed_latency {
                    true => completed[0],
                    false => completed[context.random.below(completed.len() as u64) as usize],
                });
            }
        }
        inputs.r_valid[slice] = u64::from(self.current_read.is_some());
        if let Some(read) = self.current_read {
            let read = &self.reads[read];
            inputs.r_id[slice] = read.id;
            inputs.r_last[slice] = u64::from(read.beat + 1 == beats);
            let bytes = &context.lines[read.line].memory;
            inputs.r_data[slice][..words].copy_from_slice(&bytes[read.beat * words..][..words]);
        }
        if self.current_write.is_none() {
            let completed = completed_bursts(&self.writes, cycle);
            if !completed.is_empty() {
                let choice = context.random.below(completed.len() as u64);
                self.current_write = Some(completed[choice as usize]);
            }
        }
        inputs.b_valid[slice] = u64::from(self.current_write.is_some());
        if let Some(write) = self.current_write {
            inputs.b_id[slice] = self.writes[write].id;
        }
    }

    /// Checks memory requests of this cycle against the controller's, and completes memory operations whose last
    /// transfer was accepted.
    pub fn check(
        &mut self,
        context: &mut Context,
        stalls: &mut Stalls,
        (inputs, outputs): (&Inputs, &Outputs),
    ) -> Checked {
        let slice = self.slice;
        if outputs.ar_valid[slice] & inputs.ar_ready[slice] != 0 {
            self.begin_read(context, outputs)?;
        }
        if inputs.r_valid[slice] & outputs.r_ready[slice] != 0 {
            self.end_read_beat(context);
        }
        if outputs.aw_valid[slice] & inputs.aw_ready[slice] != 0 {
            self.record_write_address(context, outputs)?;
        }
        if outputs.w_valid[slice] & inputs.w_ready[slice] != 0 {
            context.record_activity();
            stalls.record_beat(slice, MEMORY, context.cycle);
            self.record_write_beat(context, outputs)?;
        }
        self.perform_writes(context)?;
        if inputs.b_valid[slice] & outputs.b_ready[slice] != 0 {
            context.record_activity();
            if let Some(index) = self.current_write.take() {
                let write = self.writes.remove(index);
                context.lines[write.line].operation = Memory::Written;
            }
        }
        Ok(())
    }

    /// Returns the cycle in which memory answers a request that arrives now; `u64::MAX` if its answers are withheld.
    fn answer_cycle(context: &mut Context, line_index: usize) -> u64 {
        let cycle = context.random_completion_cycle(context.run.max_memory_latency);
        let line = &mut context.lines[line_index];
        line.steering.is_memory_resumed = !line.steering.is_memory_withheld;
        match line.steering.is_memory_withheld {
            true => u64::MAX,
            false => cycle,
        }
    }

    /// Checks the address of a read against the controller's request, and starts the read.
    fn begin_read(&mut self, context: &mut Context, outputs: &Outputs) -> Checked {
        let (slice, address) = (self.slice, outputs.ar_addr[self.slice]);
        let line_bytes = u64::from(context.reference.protocol.line_bytes);
        context.record_activity();
        let line = context.line_of(address / line_bytes, "a read of memory")?;
        if context.lines[line].operation != Memory::ReadWanted
            || !address.is_multiple_of(line_bytes)
        {
            let message = "memory is read without a request of the controller";
            return line_failure(line, message.into());
        }
        let request = outputs.ar_user[slice];
        let permission = context.lines[line].permission;
        // The user bits are the permission, followed by the event in the lowest six bits.
        if request >> 6 != permission as u64 {
            return line_failure(
                line,
                format!("a read of memory has the user bits {request:#x}; the remote gets {permission:?}"),
            );
        }
        context.lines[line].operation = Memory::Reading;
        let completion_cycle = MemoryPorts::answer_cycle(context, line);
        context.record_port_event(PortEvent::ReadAddress(line));
        self.reads.push(Burst {
            line,
            id: outputs.ar_id[slice],
            completion_cycle,
            beat: 0,
        });
        Ok(())
    }

    /// Completes a beat of a read, which the home has accepted.
    fn end_read_beat(&mut self, context: &mut Context) {
        context.record_activity();
        if let Some(index) = self.current_read.take() {
            let read = &mut self.reads[index];
            if read.beat == 0 {
                context.record_port_event(PortEvent::ReadFirstBeat(read.line));
            }
            read.beat += 1;
            if read.beat == context.reference.beats {
                let line = &mut context.lines[read.line];
                line.operation = Memory::Read(line.memory);
                self.reads.remove(index);
            }
        }
    }

    /// Records the address of a write. Addresses and data beats arrive independently.
    fn record_write_address(&mut self, context: &mut Context, outputs: &Outputs) -> Checked {
        let slice = self.slice;
        let line_bytes = u64::from(context.reference.protocol.line_bytes);
        context.record_activity();
        let line = context.line_of(outputs.aw_addr[slice] / line_bytes, "a write of memory")?;
        let permission = context.lines[line].permission;
        let request = outputs.aw_user[slice];
        if request >> 6 != permission as u64 {
            return line_failure(
                line,
                format!("a write of memory has the user bits {request:#x}; the remote keeps {permission:?}"),
            );
        }
        (self.write_addresses).push_back((line, outputs.aw_id[slice]));
        Ok(())
    }

    /// Adds a beat to the write that is arriving.
    fn record_write_beat(&mut self, context: &Context, outputs: &Outputs) -> Checked {
        let slice = self.slice;
        let write = &mut self.incoming_write;
        let words = context.reference.words_per_beat;
        let first_word = write.beats * words;
        write.words[first_word..][..words].copy_from_slice(&outputs.w_data[slice][..words]);
        for word in 0..words {
            let strobe = |byte: usize| outputs.w_strb[slice] >> (8 * word + byte) & 1;
            write.masks[first_word + word] =
                (0..8).fold(0, |bits, byte| bits | (strobe(byte) * 0xff) << (8 * byte));
        }
        write.beats += 1;
        let is_last = write.beats == context.reference.beats;
        if is_last != (outputs.w_last[slice] != 0) {
            let message = format!("a write has its last beat after {}", write.beats);
            return check_failed(Check::Comparison, None, message);
        }
        if is_last {
            self.write_data.push_back(*write);
            *write = WriteData::EMPTY;
        }
        Ok(())
    }

    /// Checks and performs the writes whose address and data have both arrived.
    fn perform_writes(&mut self, context: &mut Context) -> Checked {
        let words = context.reference.words;
        while let (Some(&(line_index, id)), Some(&write)) =
            (self.write_addresses.front(), self.write_data.front())
        {
            self.write_addresses.pop_front();
            self.write_data.pop_front();
            let line = &mut context.lines[line_index];
            let Memory::WriteWanted(expected, mask) = &line.operation else {
                let message = "memory is written without a request of the controller";
                return line_failure(line_index, message.into());
            };
            for (word, expected_word) in expected.iter().enumerate().take(words) {
                let covered = covered_bits(*mask, word, words);
                let is_wrong = (expected_word ^ write.words[word]) & covered != 0;
                if covered != write.masks[word] || is_wrong {
                    return line_failure(
                        line_index,
                        format!(
                            "word {word} of line {} is written with another value than its sender sent",
                            line.number
                        ),
                    );
                }
                line.memory[word] = line.memory[word] & !covered | write.words[word] & covered;
            }
            line.operation = Memory::Writing;
            context.record_port_event(PortEvent::WriteTransferred(line_index));
            let completion_cycle = MemoryPorts::answer_cycle(context, line_index);
            self.writes.push(Burst {
                line: line_index,
                id,
                completion_cycle,
                beat: 0,
            });
        }
        Ok(())
    }
}

/// Returns the indices of the bursts that memory may answer in this cycle.
fn completed_bursts(bursts: &[Burst], cycle: u64) -> Vec<usize> {
    (0..bursts.len())
        .filter(|&burst| bursts[burst].completion_cycle <= cycle)
        .collect()
}
