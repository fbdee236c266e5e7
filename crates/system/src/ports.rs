//! Processor ports of a memory system: the interface between threads and an implementation, such as hardware.

/// Operation of an access at a processor port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortOperation {
    /// Load or store.
    LoadStore,
    /// Store that returns the former word.
    Swap,
    /// Addition that returns the former word.
    Add,
    /// Store if the word is this one. Returns the former word.
    CompareAndSwap(u64),
}

/// An access at a processor port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRequest {
    /// Number of the port; ports are numbered like the caching agents.
    pub port: usize,
    /// Tag, which no other outstanding access of the port has; less than [`MAX_OUTSTANDING`].
    pub tag: usize,
    /// Time until the port presents the access, in cycles.
    pub delay: u64,
    /// Operation.
    pub operation: PortOperation,
    /// True for a store.
    pub write: bool,
    /// True if the access does not keep the line.
    pub uncached: bool,
    /// Number of the line.
    pub line: usize,
    /// Written or added word; without meaning for a load.
    pub data: u64,
}

/// A completed access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortCompletion {
    /// Number of the port.
    pub port: usize,
    /// Tag of the access.
    pub tag: usize,
    /// Word that a load or an atomic operation returns; without meaning for a store.
    pub data: u64,
}

/// Reason for which a run has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PortError {
    /// The memory system violates its interface, for example by an access that makes no progress.
    Violated(String),
    /// The memory system cannot be run.
    Failed(String),
    /// Cancelled by the caller.
    Interrupted,
}

/// Limit of [`Ports::outstanding`].
pub const MAX_OUTSTANDING: usize = 256;

/// Processor ports of a memory system with words in lines of their own. A port performs accesses to one line in the order
/// in which it presents them, and others in any order.
pub trait Ports {
    /// Number of lines.
    fn lines(&self) -> usize;

    /// Maximum number of outstanding accesses of a port, from 1 to [`MAX_OUTSTANDING`].
    fn outstanding(&self) -> usize;

    /// Begins a run on a system in its reset state, also after a failure. `seed` determines all random choices, and
    /// `memory` is the word of each line; nothing depends on earlier runs.
    ///
    /// # Errors
    /// [`PortError`].
    fn reset(&mut self, seed: u64, memory: &[u64]) -> Result<(), PortError>;

    /// Begins an access at a port that has fewer than [`Ports::outstanding`] of them.
    ///
    /// # Errors
    /// [`PortError`].
    fn begin(&mut self, request: PortRequest) -> Result<(), PortError>;

    /// Waits for the next completion. Some access is outstanding.
    ///
    /// # Errors
    /// [`PortError`].
    fn next_completion(&mut self) -> Result<PortCompletion, PortError>;

    /// Waits until the system is at rest: it delivers the messages that the last accesses have left in flight. No access
    /// is outstanding.
    ///
    /// # Errors
    /// [`PortError`].
    fn end(&mut self) -> Result<(), PortError>;
}
