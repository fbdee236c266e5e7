//! Timing of memories: DRAM with channels, banks and open rows, and BRAM with ports.
//!
//! [`Memory`] holds the parameters of a memory. [`InOrderMemory`] serves operations in the order of their arrival. A
//! [`Controller`] schedules the bursts of operations by the timing rules of JEDEC; [`JedecDram`] has the parameters of
//! its [`Standard`]. Lines have no bytes here: an operation only takes time.
//!
//! The crate does not know the simulator (`sim`), caches, homes or files: the driver supplies the time of each operation.
//!
//! ```
//! use cohkit_dram::{Controller, InOrderMemory, JedecDram, Bram, Memory, Standard};
//! use cohkit_units::Quantity;
//!
//! let given = |value| Quantity::given(value, "an example");
//! // A port transfers a line of 128 bytes in 8 ns, and two lines one after the other.
//! let bram = Bram { ports: given(1), bandwidth: given(16_000_000_000), latency: given(3_000) };
//! let mut memory = InOrderMemory::new(&Memory::Bram(bram), 128);
//! assert_eq!((memory.operate(0, 0), memory.operate(0, 1)), (8_000, 16_000));
//!
//! // Activate (17 clocks), read (17 clocks) and two bursts of 4 clocks, of 833 ps each.
//! let mut dram = Controller::new(&JedecDram::new(Standard::Ddr4_2400), 128);
//! dram.submit(0, (0, 0..128), false, 7);
//! let mut finished = Vec::new();
//! while let Some(now) = dram.next() {
//!     dram.advance(now, &mut finished);
//! }
//! assert_eq!((finished[0].number, finished[0].end), (7, (17 + 17 + 2 * 4) * 833));
//! ```

mod controller;
mod in_order;
mod jedec;
mod parameters;

pub use controller::{Controller, Finished};
pub use in_order::{InOrderMemory, UncontendedOp};
pub use jedec::{JedecDram, JedecTiming, Scheduler, Standard};
pub use parameters::{Bram, Dram, Memory};

/// Number of a line in a memory.
pub type Line = u32;
