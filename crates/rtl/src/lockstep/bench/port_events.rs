//! Events at the home's ports and in its units, for measurements.

use crate::lockstep::model::{Inputs, Outputs, CIRCUITS};
use cohkit_protocol::controller::Event;
use rustc_hash::FxHashMap;

/// A transfer at a port, or an event that a unit has handled; the index is that of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortEvent {
    /// Header of a message to the home.
    RxHeader(usize),
    /// Header of a message to the remote.
    TxHeader(usize),
    /// Last beat of a message to the remote.
    TxLastBeat(usize),
    /// A unit has handled an event.
    EventHandled(usize, Event),
    /// Request of a local operation.
    LocalRequest(usize),
    /// Response to a local operation.
    LocalResponse(usize),
    /// Address of a memory read.
    ReadAddress(usize),
    /// First beat of the read data.
    ReadFirstBeat(usize),
    /// Address and all beats of a memory write.
    WriteTransferred(usize),
}

/// A port event and its cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossing {
    /// Cycle of the event, counted from the start of the reset.
    pub cycle: u64,
    /// The event.
    pub event: PortEvent,
}

/// Number of cycles with a transfer at each port, summed over both slices.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Ports {
    /// Beats of messages to the home, by circuit.
    pub rx: [u64; CIRCUITS],
    /// Beats of messages to the remote, by circuit.
    pub tx: [u64; CIRCUITS],
    /// Addresses of reads of memory.
    pub axi_ar: u64,
    /// Beats of read data.
    pub axi_r: u64,
    /// Beats of write data.
    pub axi_w: u64,
    /// Local operations of the device.
    pub local_req: u64,
    /// Responses to local operations and unlocks.
    pub local_rsp: u64,
}

impl Ports {
    /// Counts the transfers of a slice in this cycle.
    pub(super) fn count(&mut self, inputs: &Inputs, outputs: &Outputs, slice_index: usize) {
        for circuit in 0..CIRCUITS {
            self.rx[circuit] +=
                (inputs.rx_valid[slice_index] & outputs.rx_ready[slice_index]) >> circuit & 1;
            self.tx[circuit] +=
                (outputs.tx_valid[slice_index] & inputs.tx_ready[slice_index]) >> circuit & 1;
        }
        self.axi_ar += outputs.ar_valid[slice_index] & inputs.ar_ready[slice_index];
        self.axi_r += inputs.r_valid[slice_index] & outputs.r_ready[slice_index];
        self.axi_w += outputs.w_valid[slice_index] & inputs.w_ready[slice_index];
        self.local_req +=
            inputs.local_req_valid[slice_index] & outputs.local_req_ready[slice_index];
        self.local_rsp +=
            outputs.local_rsp_valid[slice_index] & inputs.local_rsp_ready[slice_index];
    }

    /// Returns the transfers since an earlier count of the same run.
    pub(super) fn since(&self, earlier: &Ports) -> Ports {
        let circuits = |new: [u64; CIRCUITS], old: [u64; CIRCUITS]| {
            std::array::from_fn(|circuit| new[circuit] - old[circuit])
        };
        Ports {
            rx: circuits(self.rx, earlier.rx),
            tx: circuits(self.tx, earlier.tx),
            axi_ar: self.axi_ar - earlier.axi_ar,
            axi_r: self.axi_r - earlier.axi_r,
            axi_w: self.axi_w - earlier.axi_w,
            local_req: self.local_req - earlier.local_req,
            local_rsp: self.local_rsp - earlier.local_rsp,
        }
    }
}

/// Returns the mean number of messages and operations in progress at the home from cycle `from` to cycle `to`.
/// Each message or operation ends with the next output for its line.
pub(super) fn mean_in_progress(port_events: &[Crossing], from: u64, to: u64) -> f64 {
    // Arrival cycles of the messages and operations in progress, by line.
    let mut arrivals: FxHashMap<usize, Vec<u64>> = FxHashMap::default();
    let mut total_cycles = 0;
    for &Crossing { cycle, event } in port_events {
        match event {
            PortEvent::RxHeader(line_index) | PortEvent::LocalRequest(line_index) => {
                arrivals.entry(line_index).or_default().push(cycle)
            }
            PortEvent::TxHeader(line_index)
            | PortEvent::LocalResponse(line_index)
            | PortEvent::WriteTransferred(line_index) => {
                if let Some(entered) = arrivals.get_mut(&line_index).and_then(Vec::pop) {
                    total_cycles += cycle.min(to).saturating_sub(entered.max(from));
                }
            }
            PortEvent::TxLastBeat(_)
            | PortEvent::EventHandled(..)
            | PortEvent::ReadAddress(_)
            | PortEvent::ReadFirstBeat(_) => {}
        }
    }
    total_cycles as f64 / (to - from).max(1) as f64
}
