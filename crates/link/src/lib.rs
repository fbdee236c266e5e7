//! Link layers as state machines: lanes and rates, blocks, credits, and replay of what bit errors damaged.
//!
//! Nothing here knows a protocol or keeps time. All ends have one interface, [`Layer`], and what they send is one
//! [`layer::Carried`] after the other: ECI's blocks ([`End`]), packets of PCIe ([`pcie::End`]) and of CCIX over it
//! ([`ccix::End`]), flits of CXL ([`cxl::End`]). Whoever drives two ends decides when something leaves and when it arrives:
//! it takes a unit from [`Layer::transmit`] whenever the lanes are free (for as long as its bits take on [`Lanes`]), delays
//! and perhaps damages it, gives it to [`Layer::receive`] of the partner, and takes messages out with [`Layer::take`] or, of
//! ECI, at the pace of the receiver's clock with [`End::clock`]. [`Drive`] does this as fast as the lanes go. Nothing is
//! allocated while blocks of ECI flow, once there is room for the most that are under way at a time.
//!
//! What no public source says of ECI's link is chosen here and named: [`replay::BLOCKS_PER_ACK`], [`replay::WINDOW`], the
//! polynomial in [`crc`], and the order in which circuits take turns. The modules of the others name theirs.

pub mod block;
pub mod ccix;
pub mod chance;
pub mod crc;
pub mod cxl;
pub mod drive;
pub mod end;
mod lanes;
pub mod layer;
pub mod pair;
pub mod pcie;
pub mod rates;
pub mod replay;
pub mod ring;
mod words;

pub use block::{Block, Control};
pub use drive::Drive;
pub use end::{End, Parameters};
pub use lanes::{Lanes, Ratio};
pub use layer::{Layer, Message, Refused, Shortage};
pub use pair::Balance;
