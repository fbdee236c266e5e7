//! Crossings of the home's ports, for measurements.

use crate::lockstep::model::{Inputs, Outputs, CIRCUITS};
use cohkit_protocol::controller::Event;
use rustc_hash::FxHashMap;

/// A port crossing; the index is that of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortEvent {
    /// Header of a message to the home.
    Enters(usize),
    /// Header of a message to the remote.
    Leaves(usize),
    /// Last beat of a message to the remote.
    HasLeft(usize),
    /// A unit has handled an event.
    Handles(usize, Event),
    /// Request of a local operation.
    Asks(usize),
    /// Answer to a local operation.
    Answers(usize),
    /// Address of a read of memory.
    Reads(usize),
    /// First beat of the read data.
    IsRead(usize),
    /// Address and all beats of a write to memory.
    Writes(usize),
}

/// Number of cycles with a transfer at each port, summed over both slices.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
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

/// Returns the mean number of messages and operations in progress at the home between two cycles.
/// Each ends with the next output for its line.
pub(super) fn mean_in_progress(port_events: &[(u64, PortEvent)], from: u64, to: u64) -> f64 {
    let mut arrivals: FxHashMap<usize, Vec<u64>> = FxHashMap::default();
    let mut total = 0;
    for &(cycle, event) in port_events {
        match event {
            PortEvent::Enters(line_index) | PortEvent::Asks(line_index) => {
                arrivals.entry(line_index).or_default().push(cycle)
            }
            PortEvent::Leaves(line_index)
            | PortEvent::Answers(line_index)
            | PortEvent::Writes(line_index) => {
                if let Some(entered) = arrivals.get_mut(&line_index).and_then(Vec::pop) {
                    total += cycle.min(to).saturating_sub(entered.max(from));
                }
            }
            PortEvent::HasLeft(_)
            | PortEvent::Handles(..)
            | PortEvent::Reads(_)
            | PortEvent::IsRead(_) => {}
        }
    }
    total as f64 / (to - from).max(1) as f64
}
