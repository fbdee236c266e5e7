//! Registers by which a host has programs started, by their distance from the first one.

/// What the core does, one of [`crate::device::State`].
pub const STATE: u64 = 0x800;
/// The code with which the program has ended.
pub const CODE: u64 = 0x808;
/// What the program has done that it must not, as `mcause` and `mtval` have it, and where.
pub const CAUSE: u64 = 0x810;
/// See [`CAUSE`].
pub const VALUE: u64 = 0x818;
/// See [`CAUSE`].
pub const PC: u64 = 0x820;
/// Gives the next program far memory, or memory of the host's own: first where it begins, then, which does it, its bytes. What is
/// not wholly within one of both is not given.
pub const GIVE_AT: u64 = 0x828;
/// See [`GIVE_AT`].
pub const GIVE: u64 = 0x830;
/// The bytes of a binary in the scratchpad from its first line on, which is loaded.
pub const LOAD: u64 = 0x838;
/// The same without verification.
pub const LOAD_UNVERIFIED: u64 = 0x840;
/// Stops the program.
pub const STOP: u64 = 0x848;
/// How many cores there are.
pub const MCCS: u64 = 0x850;
/// The bytes of far memory.
pub const FAR_BYTES: u64 = 0x858;
/// The bytes of the host's last cache.
pub const LAST_CACHE: u64 = 0x860;
/// The state of the last load, one of [`crate::device::State`]: loading, running once the program has started, or refused. It says
/// nothing of what the program does then, so that who starts one does not wait for it by chance.
pub const LOAD_STATE: u64 = 0x868;
/// Four words with which the program is called.
pub const ARGUMENTS: u64 = 0x880;
/// What has been counted since the beginning, a word for each: bytes over the link to the device and to the host, and lines of
/// far memory that were read and written.
pub const COUNTERS: u64 = 0x8c0;
