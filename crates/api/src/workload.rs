//! Workloads of cores: shipped ones, or memory traces.

use crate::files;
use crate::named_value::{named_values, NamedValue};
use crate::start_error::StartError;
use cohkit_base::words::did_you_mean;
use cohkit_protocol::controller::Access;
use cohkit_sim::components::recorded::{self, Format, ReadOptions, Recorded};
use cohkit_sim::components::traffic::Pattern;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Kinds of traces: the prefix before the colon, the format, and true if pages are packed. Other tools record addresses
/// of a whole machine, so their pages are packed.
fn trace_kinds() -> impl Iterator<Item = (&'static str, Format, bool)> {
    let own_kinds = [("trace", false), ("packed-trace", true)];
    let own_kinds = own_kinds.map(|(name, packed)| (name, Format::Cohkit, packed));
    let foreign = Format::FOREIGN.map(|format| (format.workload(), format, true));
    own_kinds.into_iter().chain(foreign)
}

/// Returns the kind of traces with this prefix, as prefix, format, and true if pages are packed.
fn trace_kind(kind: &str) -> Option<(&'static str, Format, bool)> {
    trace_kinds().find(|(name, ..)| *name == kind)
}

/// Workload of the cores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Work {
    /// A shipped workload.
    Kind(Kind),
    /// A recorded trace.
    Trace(Trace),
}

/// Trace of accesses, in a file or in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// Name as given in the request, with its prefix.
    pub name: String,
    /// Format of the file.
    format: Format,
    /// True to place pages contiguously, independent of their addresses.
    packed: bool,
    /// File or bytes that the trace is read from, when a machine is known.
    source: TraceSource,
}

/// Source of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
enum TraceSource {
    /// Path of a trace file.
    File(PathBuf),
    /// Contents of a trace.
    Bytes(Arc<[u8]>),
}

impl Work {
    /// Returns the workload of this name, or the trace of `trace:FILE`.
    ///
    /// # Errors
    /// There is no such workload; the message lists all names.
    pub fn named(name: &str) -> Result<Work, StartError> {
        let result = name.split_once(':').filter(|(_, file)| !file.is_empty());
        let result = result.and_then(|(kind, file)| Some((trace_kind(kind)?, file)));
        if let Some(((_, format, packed), file)) = result {
            return Ok(Work::Trace(Trace {
                name: name.to_string(),
                format,
                packed,
                source: TraceSource::File(file.into()),
            }));
        }
        Kind::from_name(name).map(Work::Kind).ok_or_else(|| {
            let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            let message = format!("no workload is named `{name}`");
            let suggestion = did_you_mean(name, names.iter().copied());
            let traces: Vec<&str> = trace_kinds().map(|(name, ..)| name).collect();
            let help = format!(
                "{suggestion}the workloads are {}, and files of traces: {}:FILE",
                names.join(", "),
                traces.join(":FILE, ")
            );
            StartError::input(message, help)
        })
    }

    /// Returns a trace in memory, under a name to show. `kind` is the prefix that a file's name would have.
    ///
    /// # Errors
    /// There is no such kind.
    pub fn bytes(name: &str, kind: &str, bytes: &[u8]) -> Result<Work, StartError> {
        let (_, format, packed) = trace_kind(kind)
            .ok_or_else(|| StartError::plain(format!("no kind of traces is named `{kind}`")))?;
        Ok(Work::Trace(Trace {
            name: name.to_string(),
            format,
            packed,
            source: TraceSource::Bytes(bytes.into()),
        }))
    }

    /// Name in options and outputs.
    pub fn name(&self) -> &str {
        match self {
            Work::Kind(kind) => kind.name(),
            Work::Trace(trace) => &trace.name,
        }
    }

    /// Returns true if the workload may contain accesses of this kind.
    pub(crate) fn may_contain(&self, access: Access) -> bool {
        match self {
            Work::Kind(Kind::RandomMixed) if access == Access::Load => true,
            Work::Kind(kind) => kind.pattern_and_access().1 == access,
            Work::Trace(_) => true,
        }
    }
}

impl Trace {
    /// Reads the trace for a machine with `lines` lines of `line` bytes each; at most `max_accesses` accesses.
    ///
    /// # Errors
    /// The trace is invalid, or cannot be read; the error names the file and, if known, its line.
    pub(crate) fn read(
        &self,
        line: u32,
        lines: u32,
        max_accesses: u64,
    ) -> Result<Arc<Recorded>, StartError> {
        let options = ReadOptions {
            line,
            lines,
            format: self.format,
            packed: self.packed,
            max_accesses,
        };
        let result = match &self.source {
            TraceSource::File(path) => recorded::read(open(path)?, &options),
            TraceSource::Bytes(bytes) => recorded::read(&bytes[..], &options),
        };
        result.map(Arc::new).map_err(|error| StartError::Trace {
            file: match &self.source {
                TraceSource::File(path) => path.display().to_string(),
                TraceSource::Bytes(_) => self.name.clone(),
            },
            error,
        })
    }
}

/// Opens a trace file. The error of a missing file refers to the description of the format.
fn open(path: &Path) -> Result<File, StartError> {
    // Opening a folder succeeds, but reading it fails.
    let result = match path.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => File::open(path),
    };
    result.map_err(|error| {
        let missing = "a trace has one access per line; docs/workloads.md describes the format";
        let folder = "name one of the traces in it";
        StartError::Failure(files::cannot_read(path, &error, missing, folder))
    })
}

named_values! {
    /// A workload that ships.
    pub enum Kind {
        SequentialRead = "sequential-read":
            "Each core reads the lines of a part of the region of its own in address order",
        RandomRead = "random-read": "Lines of the region are read, drawn uniformly",
        SequentialWrite = "sequential-write":
            "Each core writes the lines of a part of the region of its own in address order",
        RandomWrite = "random-write": "Lines of the region are written, drawn uniformly",
        RandomMixed = "random-mixed":
            "Lines of the region are read and written in equal parts, drawn uniformly",
        SequentialReadOnce = "sequential-read-once":
            "As sequential-read, without caching what is read (`read_once`)",
        RandomReadOnce = "random-read-once":
            "As random-read, without caching what is read (`read_once`)",
        SequentialWriteLine = "sequential-write-line":
            "As sequential-write, whole lines without caching them (`write_line`)",
        RandomWriteLine = "random-write-line":
            "As random-write, whole lines without caching them (`write_line`)",
    }
}

impl Kind {
    /// Pattern of the accessed lines, and the access; the mixed workload reads too.
    pub(crate) fn pattern_and_access(self) -> (Pattern, Access) {
        match self {
            Kind::SequentialRead => (Pattern::Chunked, Access::Load),
            Kind::RandomRead => (Pattern::Random, Access::Load),
            Kind::SequentialWrite => (Pattern::Chunked, Access::Store),
            Kind::RandomWrite | Kind::RandomMixed => (Pattern::Random, Access::Store),
            Kind::SequentialReadOnce => (Pattern::Chunked, Access::ReadOnce),
            Kind::RandomReadOnce => (Pattern::Random, Access::ReadOnce),
            Kind::SequentialWriteLine => (Pattern::Chunked, Access::WriteLine),
            Kind::RandomWriteLine => (Pattern::Random, Access::WriteLine),
        }
    }
}
