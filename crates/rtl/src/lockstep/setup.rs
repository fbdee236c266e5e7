//! Configuration of a run, and errors that prevent its report.

use super::reachability::ReachabilityGraph;
use super::shapes::Shape;
use crate::rom::Rom;
use cohkit_base::sequence::Sequence;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A built home and the reference for its comparison.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The protocol.
    pub protocol: &'a Protocol,
    /// The home's controller.
    pub home: &'a Controller,
    /// The home as a ROM.
    pub rom: &'a Rom,
    /// Library built by [`super::build::build`].
    pub library: &'a Path,
    /// Parameters of the built home.
    pub shape: Shape,
    /// Paths to the ROM's rows, which direct runs to rare rows; without them, runs are purely random.
    pub graph: Option<&'a ReachabilityGraph>,
    /// Further Verilog plusargs (`$value$plusargs`) besides the image, without the `+`.
    pub argument: &'a str,
    /// Folder for images of ROMs.
    pub folder: &'a Path,
    /// Cancels runs soon after it is set.
    pub stop: &'a AtomicBool,
}

/// Reason for which a run has no report.
#[derive(Debug)]
pub enum RunError {
    /// The RTL deviated from the controllers.
    Mismatch(Box<Mismatch>),
    /// The library or a file could not be used, with the reason.
    Tool(String),
    /// The run was cancelled.
    Stopped,
}

/// Destination of a run's waveform, and the first recorded cycle.
#[derive(Clone, Copy, Debug)]
pub struct Waveform<'a> {
    /// The file, in GTKWave's FST format.
    pub file: &'a Path,
    /// First recorded cycle.
    pub from: u64,
}

/// Kind of check that has detected a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// Comparison of steps, messages and bytes with the controllers.
    Comparison,
    /// An assertion of the RTL.
    Assertion,
    /// The progress watchdog: a deadlock or livelock.
    Progress,
    /// The check at quiescence for leftover state.
    Rest,
}

/// A deviation of the RTL from the controllers.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The check that detected it.
    pub check: Check,
    /// Description of the deviation.
    pub description: String,
    /// Cycle of the detection.
    pub cycle: u64,
    /// Preceding events on the line, if the deviation concerns one.
    pub sequence: Option<Sequence>,
}
