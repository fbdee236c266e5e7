//! Link layers as state machines: lanes and rates, blocks, credits, and replay after bit errors.
//!
//! All endpoints implement [`Layer`] and send a sequence of units that implement [`layer::WireUnit`]: ECI blocks
//! ([`End`]), PCIe packets ([`pcie::End`]), packets of CCIX over PCIe ([`ccix::End`]), and CXL flits ([`cxl::End`]).
//!
//! The driver of two ends decides when a unit leaves and arrives. It calls [`Layer::transmit`] whenever the lanes are
//! free; a unit occupies the [`Lanes`] for the time of its bits. It delays and possibly damages the unit, passes it to
//! [`Layer::receive`] of the partner, and takes messages with [`Layer::take`]. ECI messages can also be taken at the
//! pace of the receiver's clock, with [`End::clock`]. [`Testbench`] does all of this at the rate of the lanes. ECI
//! blocks cause no allocation once the buffers have grown to the maximum number of units in flight.
//!
//! Parameters of ECI's link that no public source states are chosen here and named: `replay::BLOCKS_PER_ACK`,
//! `replay::WINDOW`, the polynomial in `crc`, and the arbitration order of circuits. The modules of the other links
//! name theirs.
//!
//! The crate does not know coherence protocols (`protocol`) or the simulator (`sim`): a message is a circuit, a number of
//! bytes and a label. Time is a number of ticks. Only the quantities of DMA transfers have units.
//!
//! ```
//! use cohkit_link::testbench::{Testbench, LANE_BYTE};
//! use cohkit_link::{pcie, Message};
//!
//! // Two ends of a PCIe link of 16 lanes, with a one-way delay of 1,000 ticks and no bit errors.
//! let end = || pcie::End::<Message>::new(pcie::Parameters::new(256, 168));
//! let mut link = Testbench::new([end(), end()], 16, 1000, 0.0, 0);
//! assert!(link.send(0, pcie::POSTED, 256));
//! while link.peek(1, pcie::POSTED).is_none() {
//!     assert!(link.step());
//! }
//! // A byte takes LANE_BYTE ticks on one lane. Before the message, an end announces its credits for three classes in
//! // 8 bytes each. The message has 24 bytes of framing and header, and 256 bytes of data.
//! assert_eq!(link.now, (3 * 8 + 24 + 256) * LANE_BYTE / 16 + 1000);
//! assert!(link.settle(1000)); // taken by the receiver and acknowledged, with its credits returned
//! ```

pub mod bit_errors;
mod block;
pub mod ccix;
mod crc;
pub mod cxl;
pub mod end;
mod lanes;
pub mod layer;
mod pair;
pub mod pcie;
pub mod rates;
mod replay;
mod ring;
pub mod testbench;
mod words;

pub use block::{Block, Control};
pub use end::{End, Parameters};
pub use lanes::{Lanes, Ratio};
pub use layer::{Layer, Message, Rejection, Shortage};
pub use pair::Balance;
pub use testbench::Testbench;
