//! What a run is done with, and why one has no report.

use super::shapes::Shape;
use super::ways::Ways;
use crate::rom::Rom;
use cohkit_base::sequence::Sequence;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A home that was built, and what it is compared with.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The protocol.
    pub protocol: &'a Protocol,
    /// Its home.
    pub home: &'a Controller,
    /// The same as a ROM.
    pub rom: &'a Rom,
    /// The library of [`super::build::build`].
    pub library: &'a Path,
    /// The size it was built in.
    pub shape: Shape,
    /// The ways to its rows, by which runs are guided to rare ones; without them chance rules alone.
    pub ways: Option<&'a Ways>,
    /// What the RTL is told at its start besides the image, as Verilog's `$value$plusargs` reads it without the `+`.
    pub argument: &'a str,
    /// A folder for images of ROMs.
    pub folder: &'a Path,
    /// Runs end soon after this is set.
    pub stop: &'a AtomicBool,
}

/// Why a run has no report.
#[derive(Debug)]
pub enum Failed {
    /// The RTL did something else than the controllers.
    Mismatch(Box<Mismatch>),
    /// The library or a file could not be used; why.
    Tool(String),
    /// It was told to stop.
    Stopped,
}

/// Where the waveform of a run goes, and the cycle from which on it is kept.
#[derive(Clone, Copy, Debug)]
pub struct Waveform<'a> {
    /// The file, of the kind that GTKWave reads (FST).
    pub file: &'a Path,
    /// The first cycle.
    pub from: u64,
}

/// What notices that something is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// The comparison of steps, messages and bytes with the controllers.
    Comparison,
    /// An assertion of the RTL.
    Assertion,
    /// The watch over progress: nothing moves any more.
    Progress,
    /// The look at what is left over when everything has come to rest.
    Rest,
}

/// The RTL did something else than the controllers.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// What has noticed it.
    pub check: Check,
    /// What, in words.
    pub what: String,
    /// The cycle.
    pub cycle: u64,
    /// What happened before on the line, if it is about one.
    pub sequence: Option<Sequence>,
}
