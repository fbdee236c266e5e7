//! Link layers as state machines: lanes and rates, blocks, credits, and replay after bit errors.
//!
//! This crate contains no protocol and no clock. All endpoints implement [`Layer`] and send a sequence of
//! [`layer::Carried`] units: ECI blocks ([`End`]), PCIe packets ([`pcie::End`]), packets of CCIX over PCIe
//! ([`ccix::End`]), and CXL flits ([`cxl::End`]).
//!
//! The driver of two ends decides when a unit leaves and arrives. It calls [`Layer::transmit`] whenever the lanes are
//! free; a unit occupies the [`Lanes`] for the time of its bits. It delays and possibly damages the unit, passes it to
//! [`Layer::receive`] of the partner, and takes messages with [`Layer::take`]. ECI messages can also be taken at the
//! pace of the receiver's clock, with [`End::clock`]. [`Testbench`] does all of this at the rate of the lanes. ECI blocks
//! cause no allocation once the buffers have grown to the maximum number of units in flight.
//!
//! Parameters of ECI's link that no public source states are chosen here and named: [`replay::BLOCKS_PER_ACK`],
//! [`replay::WINDOW`], the polynomial in [`crc`], and the arbitration order of circuits. The modules of the other links
//! name theirs.

pub mod bit_errors;
pub mod block;
pub mod ccix;
pub mod crc;
pub mod cxl;
pub mod end;
mod lanes;
pub mod layer;
pub mod pair;
pub mod pcie;
pub mod rates;
pub mod replay;
pub mod ring;
pub mod testbench;
mod words;

pub use block::{Block, Control};
pub use end::{End, Parameters};
pub use lanes::{Lanes, Ratio};
pub use layer::{Layer, Message, Refused, Shortage};
pub use pair::Balance;
pub use testbench::Testbench;
