//! The bus of devices, such as PCIe: packets in order each way, without coherence.

use crate::kernel::Time;
use crate::platform;

/// Which way a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the CPU to the device.
    Down,
    /// From the device to the CPU.
    Up,
}

/// A bus between the CPU and one device.
pub struct Bus {
    quantities: platform::Bus,
    /// When each way can begin the next packet.
    free: [Time; 2],
}

impl Bus {
    /// An idle bus.
    pub fn new(quantities: &platform::Bus) -> Bus {
        Bus {
            quantities: quantities.clone(),
            free: [0; 2],
        }
    }

    /// Sends so many bytes now, in as many packets as that takes; at least one. The result is when the last arrives.
    pub fn carry(&mut self, way: Way, now: Time, bytes: u64) -> Time {
        let of = &self.quantities;
        let packets = bytes.div_ceil(of.payload_bytes.value.max(1)).max(1);
        let bytes = bytes + packets * of.header_bytes.value;
        let free = &mut self.free[usize::from(way == Way::Up)];
        let time = of
            .bandwidth
            .time_of(u32::try_from(bytes).unwrap_or(u32::MAX));
        *free = now.max(*free) + time;
        *free + of.latency.value
    }

    /// From an interrupt's arrival until a thread that waits for it goes on.
    pub fn interrupt(&self) -> Time {
        self.quantities.interrupt.value
    }

    /// From the arrival of a read at the CPU's own memory until its words leave.
    pub fn memory(&self) -> Time {
        self.quantities.memory.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;

    /// Two transfers one after the other: the second waits for the first, and pays a header for each packet.
    #[test]
    fn packets_follow_each_other() {
        let platform = Platform::shipped("enzian-dc-bram").unwrap();
        let quantities = platform.bus.expect("it has a bus");
        let mut bus = Bus::new(&quantities);
        let most = quantities.payload_bytes.value;
        let header = quantities.header_bytes.value;
        let latency = quantities.latency.value;
        let time = |bytes: u64| quantities.bandwidth.time_of(bytes as u32);
        assert_eq!(bus.carry(Way::Down, 0, 0), time(header) + latency);
        let first = time(header) + time(3 * most + 8 + 4 * header);
        assert_eq!(bus.carry(Way::Down, 0, 3 * most + 8), first + latency);
        // The other way is free.
        assert_eq!(bus.carry(Way::Up, 0, 8), time(8 + header) + latency);
    }
}
