//! Home controllers as hardware: rows of the protocol ROM, and the SystemVerilog package that names them.
//!
//! The hardware itself is independent of protocols. The protocol-specific part is compiled here from the home's
//! controller ([`rom`]): the reaction to each event in each state, and some properties of messages.
//! Both are printed as readable SystemVerilog ([`print`]).
//! A controller that the hardware does not support is rejected with the reason ([`rom::Refusal`]).
//! For other protocols, [`agents`] prints the rows of each agent, and [`systems`] whole coherent memory systems.
//!
//! The Verilated home can replace the simulated one in a machine ([`verilated`]).
//!
//! The crate does not know `check`, `engine` or terminals: the properties of a protocol are verified before it becomes
//! hardware.
//!
//! ```
//! use cohkit_protocol::{construct::construct, text};
//! use cohkit_rtl::rom::{Effect, Memory, Rom};
//!
//! let text = "
//! protocol vi
//! line 64 bytes
//! channels { request remote -> home; victim remote -> home; answer remote -> home
//!            forward home -> remote; grant home -> remote; ordered forward, grant }
//! messages { request: Get; victim: Put (line, dirty); answer: Gone (line, dirty), Nothing
//!            forward: Fetch; grant: Data (line) }
//! remote cache {
//!   states { I; V reads writes dirty; IV waits Data }
//!   I    | load store | send Get     | IV
//!   V    | evict      | send Put     | I
//!   IV   | Data       |              | V
//!   V    | Fetch      | send Gone    | I
//!   I IV | Fetch      | send Nothing | stay
//! }
//! home { on Get(r) { ensure others(r) == I; grant r V with Data }
//!        local clean_invalidate { ensure all == I }
//!        reach I with Fetch }
//! system one { remotes 1; lines 1 }
//! ";
//! let protocol = text::parse(text).expect("the text is right");
//! let home = construct(&protocol).expect("there is a home").flat(true);
//! let rom = Rom::new(&protocol, &home).expect("the hardware can hold it");
//! let row = rom.row(0, rom.event("Get").expect("it is a message to the home"));
//! assert_eq!((row.effect, row.memory), (Effect::Take, Memory::Read));
//! ```

pub mod agents;
pub mod keywords;
pub mod lockstep;
pub mod print;
pub mod proof;
pub mod registers;
pub mod rom;
pub mod sources;
pub mod synth;
pub mod systems;
pub mod tool;
pub mod tools;
pub mod verilated;

/// Clock frequency of the home in MHz, which converts cycles to time.
pub const CLOCK: u64 = 322;
