//! An application in RTL behind the Verilated home: its parameters, its traffic with the home, and its own memory.

use super::{handshakes, IncomingWrites, PartialLine, Verilated, Write};
use crate::lockstep::model::{Inputs, Outputs, BEAT_WORDS, SLICES};
use crate::lockstep::words::{line_of, LocalRequest};
use cohkit_application::rpc::Calls;
use cohkit_application::shared_table::SharedTable;
use cohkit_protocol::controller::{Controller, Local};
use cohkit_protocol::protocol::Permission;
use cohkit_sim::agents::clocked::{ApplicationEvent, Bytes, CycleOutput};
use cohkit_sim::data::Random;
use cohkit_sim::message::Line;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The applications of `hardware/lockstep/applications.sv`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Application {
    /// Remote procedure calls. The layout of lines is that of [`Application::calls`].
    Rpc {
        /// Lines per side of a call.
        payload: u32,
    },
    /// Engines of a shared table, one per slice. The parameters are those of [`SharedTable`].
    SharedTable {
        /// Number of the local operation that recalls and locks a line.
        operation: u8,
        /// Number of rows.
        rows: u32,
        /// Rows incremented by the engines, per thousand.
        contended: u32,
        /// Rows in progress per engine.
        outstanding: u32,
        /// Increments per engine; unlimited if `None`.
        increments: Option<u32>,
    },
    /// Prefetchers of a region, one per slice. A block has 8 KiB, over both slices together.
    Prefetcher {
        /// Lines of the region, an even number.
        lines: u32,
        /// Number of blocks.
        blocks: u32,
    },
}

impl Application {
    /// Maximum number of lines per side of a call.
    pub const MAX_PAYLOAD: u32 = 8;

    /// Returns the parameters of calls that [`Application::Rpc`] serves: contexts are distributed over the slices.
    pub fn calls(contexts: u32, payload: u32, calls: Option<u64>) -> Calls {
        Calls {
            slices: SLICES as u32,
            side_stride: Application::MAX_PAYLOAD,
            ..Calls::new(contexts, payload, calls)
        }
    }

    /// Returns the application for a table with one engine per slice.
    pub fn for_table(table: &SharedTable, home: &Controller) -> Application {
        let recalls_and_locks = |local: &Local| local.ensures == Permission::None && local.locks;
        let operation = home.locals.iter().position(recalls_and_locks);
        Application::SharedTable {
            operation: operation.unwrap_or_default() as u8,
            rows: table.rows,
            contended: table.contended,
            outstanding: table.outstanding,
            increments: table.device.map(|device| device as u32),
        }
    }

    /// True if the home's reads and writes go to the application.
    pub(super) fn is_memory_proxy(self) -> bool {
        match self {
            Application::Rpc { .. } | Application::Prefetcher { .. } => true,
            Application::SharedTable { .. } => false,
        }
    }

    /// Returns the kind and the parameters as Verilog arguments.
    pub(super) fn arguments(self) -> String {
        match self {
            Application::Rpc { payload } => format!("application=1 payload={payload}"),
            Application::Prefetcher { lines, blocks } => {
                format!("application=3 lines={lines} blocks={blocks}")
            }
            Application::SharedTable {
                operation,
                rows,
                contended,
                outstanding,
                increments,
            } => {
                let increments = increments.unwrap_or(u32::MAX);
                format!(
                    "application=2 operation={operation} rows={rows} contended={contended} \
                     outstanding={outstanding} increments={increments}"
                )
            }
        }
    }
}

/// State of an application in RTL and of the traffic with its memory.
pub(super) struct RtlApplication {
    /// Application and its parameters.
    kind: Application,
    /// Random generator for the delays of its memory; `None` for minimal delays.
    random: Option<Random>,
    /// Memory of the application, by slice.
    memories: [ApplicationMemory; SLICES],
}

/// Memory of an application at the pins of a slice.
#[derive(Default)]
struct ApplicationMemory {
    /// Read bursts that are not complete, in the order in which they were requested.
    bursts: Vec<Burst>,
    /// Burst being transmitted.
    outgoing_burst: Option<OutgoingBurst>,
    /// Writes whose address or data are incomplete.
    incoming_writes: IncomingWrites,
    /// AXI identifiers of completed writes, in the order of their responses.
    write_responses: VecDeque<u64>,
}

/// The burst whose beats are being transmitted.
#[derive(Clone, Copy)]
struct OutgoingBurst {
    /// AXI identifier.
    id: u64,
    /// Index of the next beat within the current line.
    beat: usize,
}

/// A read burst of the application.
struct Burst {
    /// AXI identifier, unique among the bursts of the slice.
    id: u64,
    /// Lines of which the last beat has not been transmitted.
    remaining_lines: u32,
    /// Lines that have arrived from memory.
    lines: VecDeque<Bytes>,
}

impl RtlApplication {
    /// Creates an application; with seed 0, its memory has minimal delays.
    pub fn new(kind: Application, seed: u16) -> RtlApplication {
        RtlApplication {
            kind,
            random: (seed != 0).then(|| Random::new(seed.into())),
            memories: Default::default(),
        }
    }

    /// True if its memory has nothing to transmit.
    pub fn is_idle(&self) -> bool {
        self.memories.iter().all(|memory| {
            memory.outgoing_burst.is_none()
                && memory.write_responses.is_empty()
                && memory.bursts.iter().all(|burst| burst.lines.is_empty())
        })
    }

    /// Handles an event that does not come from the home.
    pub fn handle_event(&mut self, event: ApplicationEvent, inputs: &mut Inputs) {
        match event {
            ApplicationEvent::Start => inputs.start = 1,
            ApplicationEvent::Stop => inputs.stop = 1,
            ApplicationEvent::Fetched { tag, bytes } => {
                let (slice, id) = from_tag(tag);
                let mut bursts = self.memories[slice].bursts.iter_mut();
                if let Some(burst) = bursts.find(|burst| burst.id == id) {
                    burst.lines.push_back(bytes);
                }
            }
            ApplicationEvent::Stored { tag } => {
                let (slice, id) = from_tag(tag);
                self.memories[slice].write_responses.push_back(id);
            }
        }
    }

    /// Drives the pins of its memory: the next beat of a read, a write response, and, with a seed, random readiness
    /// for requests. `beats` is the number of beats per line.
    pub fn drive_inputs(&mut self, inputs: &mut Inputs, beats: usize) {
        for (slice_index, memory) in self.memories.iter_mut().enumerate() {
            // Valid beats that were not accepted must remain on the pins.
            let mut may_send = true;
            if let Some(random) = &mut self.random {
                let bits = random.below(64);
                inputs.app_ar_ready[slice_index] = bits & 1;
                inputs.app_aw_ready[slice_index] = bits >> 1 & 1;
                inputs.app_w_ready[slice_index] = bits >> 2 & 1;
                may_send = bits >> 3 != 0;
            }
            if memory.outgoing_burst.is_none() && may_send {
                let mut ready_bursts = memory.bursts.iter().filter(|burst| !burst.lines.is_empty());
                let chosen = match &mut self.random {
                    Some(random) => match ready_bursts.clone().count() {
                        0 => 0,
                        count => random.below(count as u64) as usize,
                    },
                    None => 0,
                };
                memory.outgoing_burst = ready_bursts.nth(chosen).map(|burst| OutgoingBurst {
                    id: burst.id,
                    beat: 0,
                });
            }
            inputs.app_r_valid[slice_index] = u64::from(memory.outgoing_burst.is_some());
            if let Some(OutgoingBurst { id, beat }) = memory.outgoing_burst {
                if let Some(burst) = memory.bursts.iter().find(|burst| burst.id == id) {
                    inputs.app_r_id[slice_index] = id;
                    inputs.app_r_last[slice_index] =
                        u64::from(burst.remaining_lines == 1 && beat + 1 == beats);
                    inputs.app_r_data[slice_index]
                        .copy_from_slice(&burst.lines[0][beat * BEAT_WORDS..][..BEAT_WORDS]);
                }
            }
            inputs.app_b_valid[slice_index] = u64::from(!memory.write_responses.is_empty());
            inputs.app_b_id[slice_index] = memory.write_responses.front().copied().unwrap_or(0);
        }
    }
}

impl ApplicationMemory {
    /// Handles the transfers at the pins of a slice in this cycle.
    fn record_transfers(
        &mut self,
        slice_index: usize,
        (inputs, outputs): (&Inputs, &Outputs),
        beats: usize,
        cycle_outputs: &mut Vec<CycleOutput>,
    ) -> Result<(), String> {
        let line_of = |address: u64| (address / (beats * BEAT_WORDS * 8) as u64) as Line;
        if inputs.app_r_valid[slice_index] & outputs.app_r_ready[slice_index] != 0 {
            self.complete_beat(beats);
        }
        if inputs.app_b_valid[slice_index] & outputs.app_b_ready[slice_index] != 0 {
            self.write_responses.pop_front();
        }
        if inputs.app_ar_ready[slice_index] & outputs.app_ar_valid[slice_index] != 0 {
            let (id, lines) = (
                outputs.app_ar_id[slice_index],
                outputs.app_ar_lines[slice_index] as u32 + 1,
            );
            if self.bursts.iter().any(|burst| burst.id == id) {
                return Err(format!(
                    "the application reads under the number {id} of an outstanding burst"
                ));
            }
            self.bursts.push(Burst {
                id,
                remaining_lines: lines,
                lines: VecDeque::new(),
            });
            cycle_outputs.push(CycleOutput::Fetches {
                tag: tag(slice_index, id),
                line: line_of(outputs.app_ar_addr[slice_index]),
                lines,
                step: SLICES as Line,
            });
        }
        if inputs.app_aw_ready[slice_index] & outputs.app_aw_valid[slice_index] != 0 {
            let line = line_of(outputs.app_aw_addr[slice_index]);
            (self.incoming_writes).add_address(line, outputs.app_aw_id[slice_index]);
        }
        if inputs.app_w_ready[slice_index] & outputs.app_w_valid[slice_index] != 0 {
            let (data, strobes) = (
                &outputs.app_w_data[slice_index],
                outputs.app_w_strb[slice_index],
            );
            let is_last = outputs.app_w_last[slice_index] != 0;
            self.incoming_writes.add_beat(data, strobes, is_last)?;
        }
        if let Some(Write { line, id, data }) = self.incoming_writes.next_complete() {
            cycle_outputs.push(CycleOutput::Stores {
                tag: tag(slice_index, id),
                line,
                bytes: data.bytes,
                mask: data.mask,
            });
        }
        Ok(())
    }

    /// Completes a beat that the application has accepted.
    fn complete_beat(&mut self, beats: usize) {
        let Some(OutgoingBurst { id, beat }) = &mut self.outgoing_burst else {
            return;
        };
        *beat += 1;
        if *beat < beats {
            return;
        }
        if let Some(index) = self.bursts.iter().position(|burst| burst.id == *id) {
            let burst = &mut self.bursts[index];
            burst.remaining_lines -= 1;
            burst.lines.pop_front();
            if burst.remaining_lines == 0 {
                self.bursts.remove(index);
            }
        }
        self.outgoing_burst = None;
    }
}

/// Encodes a slice and the number of its application's access as the simulator's tag; [`from_tag`] decodes it.
fn tag(slice: usize, id: u64) -> u32 {
    id as u32 * SLICES as u32 + slice as u32
}

/// Returns the slice and the AXI identifier that [`tag`] has encoded.
fn from_tag(tag: u32) -> (usize, u64) {
    (tag as usize % SLICES, u64::from(tag) / SLICES as u64)
}

impl Verilated {
    /// Records the application's outputs: answers and operations to the home, and requests to its own memory.
    pub(super) fn record_application_outputs(
        &mut self,
        slice_index: usize,
        cycle_outputs: &mut Vec<CycleOutput>,
    ) -> Result<(), String> {
        let (outputs, slice) = (&self.outputs, &mut self.slices[slice_index]);
        let Some(application) = &mut self.application else {
            return Ok(());
        };
        let transfers = outputs.handshakes[slice_index];
        if application.kind.is_memory_proxy() {
            if outputs.handshake_r[slice_index] != 0 {
                let PartialLine { beats, bytes } = &mut slice.outgoing_response;
                if *beats == self.beats {
                    return Err("an answer of the application has too many beats".into());
                }
                bytes[*beats * BEAT_WORDS..][..BEAT_WORDS]
                    .copy_from_slice(&outputs.handshake_r_data[slice_index]);
                *beats += 1;
            }
            if transfers & handshakes::LAST_READ != 0 {
                let PartialLine { beats, bytes } = std::mem::take(&mut slice.outgoing_response);
                let line = remove_by_id(&mut slice.reads, outputs.handshake_r_id[slice_index]);
                let Some(line) = line.filter(|_| beats == self.beats) else {
                    return Err("the application answers a read that is not outstanding".into());
                };
                cycle_outputs.push(CycleOutput::Answers { line, bytes });
            }
            if transfers & handshakes::WRITTEN != 0 {
                let Some(line) =
                    remove_by_id(&mut slice.writes, outputs.handshake_b_id[slice_index])
                else {
                    return Err("the application accepts a write that is not outstanding".into());
                };
                cycle_outputs.push(CycleOutput::Accepts { line });
            }
        }
        if transfers & handshakes::LOCAL != 0 {
            let request = LocalRequest::decode(outputs.handshake_local[slice_index]);
            cycle_outputs.push(CycleOutput::Asks {
                line: request.line as Line,
                operation: request.operation,
            });
        }
        if transfers & handshakes::UNLOCK != 0 {
            let line = line_of(outputs.handshake_unlock[slice_index]) as Line;
            cycle_outputs.push(CycleOutput::Unlocks { line });
        }
        let pins = (&self.inputs, &**outputs);
        application.memories[slice_index].record_transfers(
            slice_index,
            pins,
            self.beats,
            cycle_outputs,
        )
    }
}

/// Removes the read or write with this AXI identifier, which is complete, and returns its line.
fn remove_by_id(outstanding: &mut FxHashMap<Line, u64>, completed_id: u64) -> Option<Line> {
    let line = outstanding
        .iter()
        .find(|(_, &id)| id == completed_id)
        .map(|(&line, _)| line)?;
    outstanding.remove(&line);
    Some(line)
}
