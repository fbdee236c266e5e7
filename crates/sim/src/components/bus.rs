//! Device bus, such as PCIe: packets in order in each direction, without coherence. A direction is busy
//! for the bytes of each packet; arrivals are later by the latency.

use crate::kernel::Time;
use crate::platform;

/// Direction of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferDirection {
    /// From the CPU to the device.
    Down,
    /// From the device to the CPU.
    Up,
}

/// A bus between the CPU and one device.
pub struct Bus {
    /// Bandwidth, latencies and packet sizes of the platform.
    quantities: platform::Bus,
    /// Time from which each direction can start the next packet, in picoseconds: down, up.
    free_at: [Time; 2],
}

impl Bus {
    /// Creates an idle bus.
    pub fn new(quantities: &platform::Bus) -> Bus {
        Bus {
            quantities: quantities.clone(),
            free_at: [0; 2],
        }
    }

    /// Sends `bytes` of payload now, in as many packets as necessary and at least one, after the packets
    /// already sent in this direction. Returns the arrival time of the last packet, in picoseconds.
    pub fn carry(&mut self, direction: TransferDirection, now: Time, bytes: u64) -> Time {
        let quantities = &self.quantities;
        let packets = bytes.div_ceil(quantities.payload_bytes.value.max(1)).max(1);
        let bytes = bytes + packets * quantities.header_bytes.value;
        let free_at = &mut self.free_at[usize::from(direction == TransferDirection::Up)];
        let duration = quantities
            .bandwidth
            .time_of(u32::try_from(bytes).unwrap_or(u32::MAX));
        *free_at = now.max(*free_at) + duration;
        *free_at + quantities.latency.value
    }

    /// Latency from the arrival of an interrupt until a thread that waits for it continues, in
    /// picoseconds.
    pub fn interrupt_latency(&self) -> Time {
        self.quantities.interrupt_latency.value
    }

    /// Latency from the arrival of a read at the CPU's own memory until its words leave, in picoseconds.
    pub fn memory_latency(&self) -> Time {
        self.quantities.memory_latency.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;

    /// The second of two consecutive transfers waits for the first, and adds a header to each packet.
    #[test]
    fn packets_follow_each_other() {
        let platform = Platform::shipped("enzian-dc-bram").unwrap();
        let quantities = platform.bus.expect("it has a bus");
        let mut bus = Bus::new(&quantities);
        let payload = quantities.payload_bytes.value;
        let header_bytes = quantities.header_bytes.value;
        let latency = quantities.latency.value;
        let time = |bytes: u64| quantities.bandwidth.time_of(bytes as u32);
        assert_eq!(
            bus.carry(TransferDirection::Down, 0, 0),
            time(header_bytes) + latency
        );
        let first_arrival = time(header_bytes) + time(3 * payload + 8 + 4 * header_bytes);
        assert_eq!(
            bus.carry(TransferDirection::Down, 0, 3 * payload + 8),
            first_arrival + latency
        );
        // The opposite direction is free.
        assert_eq!(
            bus.carry(TransferDirection::Up, 0, 8),
            time(8 + header_bytes) + latency
        );
    }
}
