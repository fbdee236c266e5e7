//! Registers by which hosts load and controls programs, as offsets from the core's first register.

/// State of the core, one of [`crate::device::State`].
pub const STATE: u64 = 0x800;
/// Exit code of the program.
pub const CODE: u64 = 0x808;
/// Exception that stopped the program: cause ([`CAUSE`], as in `mcause`), value ([`VALUE`], as in `mtval`) and address
/// ([`PC`]).
pub const CAUSE: u64 = 0x810;
/// See [`CAUSE`].
pub const VALUE: u64 = 0x818;
/// See [`CAUSE`].
pub const PC: u64 = 0x820;
/// Gives the next program a range of far memory or of host memory: [`GIVE_AT`] sets its start, and a write of its
/// length to [`GIVE`] adds it. Each host has a start of its own. A range that is not wholly within one of the two is ignored, and so is one of
/// host memory if another host starts the program.
pub const GIVE_AT: u64 = 0x828;
/// See [`GIVE_AT`].
pub const GIVE: u64 = 0x830;
/// Loads and verifies a binary; the value is its length in bytes, starting at the scratchpad's first line.
pub const LOAD: u64 = 0x838;
/// Loads a binary without verification.
pub const LOAD_UNVERIFIED: u64 = 0x840;
/// Stops the program.
pub const STOP: u64 = 0x848;
/// Number of near-memory cores.
pub const MCCS: u64 = 0x850;
/// Size of far memory, in bytes.
pub const FAR_BYTES: u64 = 0x858;
/// Size of the host's last-level cache, in bytes.
pub const LAST_CACHE: u64 = 0x860;
/// State of the last load, one of [`crate::device::State`]: loading, running once the program has started, or refused.
/// It never changes after the start, so a poll of it gives a host no knowledge of the program's later actions, for the
/// race detector.
pub const LOAD_STATE: u64 = 0x868;
/// Number of lines that the host's last-level cache may have in flight.
pub const LAST_CACHE_MISSES: u64 = 0x870;
/// Number of the host that reads this register, from 0 on.
pub const HOST: u64 = 0x878;
/// Four argument words of the program.
pub const ARGUMENTS: u64 = 0x880;
/// Number of hosts.
pub const HOSTS: u64 = 0x8a0;
/// Four counters since the start of the machine, one word each: bytes sent over the link of the reading host to the
/// device and to the host, and lines of far memory that all hosts and copy engines have read and written.
pub const COUNTERS: u64 = 0x8c0;
