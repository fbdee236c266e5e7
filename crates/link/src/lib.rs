//! Link layers as state machines: lanes and rates, blocks, credits, and replay of what bit errors damaged.
//!
//! Nothing here knows a protocol or keeps time. Whoever drives two [`End`]s decides when a block leaves and when it arrives:
//! it takes a block from [`End::transmit`] for each slot of the lanes ([`Lanes::block_seconds`]), delays and perhaps
//! damages it, gives it to [`End::receive`] of the partner, and empties the partner's buffers at the pace of its clock with
//! [`End::drain`]. Nothing is allocated while blocks flow.
//!
//! What no public source says of ECI's link is chosen here and named: [`replay::BLOCKS_PER_ACK`], [`replay::WINDOW`], the
//! polynomial in [`crc`], and the order in which circuits take turns.

pub mod block;
pub mod chance;
pub mod crc;
pub mod end;
mod lanes;
pub mod pair;
pub mod pcie;
pub mod replay;

pub use block::{Block, Control};
pub use end::{End, Parameters};
pub use lanes::{Lanes, Ratio};
pub use pair::{Balance, Pair};
