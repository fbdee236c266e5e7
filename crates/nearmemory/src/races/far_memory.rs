//! Far memory: the versions of its lines, and the reads of them.

use super::knowledge::Clock;
use super::line_states::{FarLine, ReadRecord, WriteRecord};
use super::race::Site;
use crate::events::CoreId;
use rustc_hash::FxHashMap;

/// Far memory, as far as cores use it.
#[derive(Clone, Debug, Default)]
pub(super) struct FarMemory {
    /// Lines that were written, by address.
    lines: FxHashMap<u64, FarLine>,
    /// Reads of each line since the last store to it, by index of the core.
    reads: FxHashMap<u64, Vec<(usize, ReadRecord)>>,
}

impl FarMemory {
    /// Returns the line at an address, if it was written.
    pub(super) fn line(&self, line: u64) -> Option<&FarLine> {
        self.lines.get(&line)
    }

    /// Returns the line at an address, if it was written.
    pub(super) fn line_mut(&mut self, line: u64) -> Option<&mut FarLine> {
        self.lines.get_mut(&line)
    }

    /// Number of writes to a line so far.
    pub(super) fn version(&self, line: u64) -> u64 {
        self.line(line).map_or(0, |far_line| far_line.version)
    }

    /// Writes a line. Returns its new version.
    pub(super) fn write(&mut self, line: u64, write: WriteRecord) -> u64 {
        let version = self.version(line) + 1;
        let arrival_clocks = Vec::new();
        let far_line = FarLine {
            version,
            write,
            arrival_clocks,
        };
        self.lines.insert(line, far_line);
        self.reads.remove(&line);
        version
    }

    /// Records a read of a line by a core, given by its index.
    pub(super) fn record_read(&mut self, core: usize, line: u64, read: ReadRecord) {
        let reads = self.reads.entry(line).or_default();
        match reads.iter_mut().find(|(reader, _)| *reader == core) {
            Some((_, last)) => *last = read,
            None => reads.push((core, read)),
        }
    }

    /// Completes the read of a line by a core, given by its index, at its own time `time`.
    pub(super) fn complete_read(&mut self, core: usize, line: u64, time: u64) {
        let reads = self.reads.get_mut(&line).into_iter().flatten();
        complete_reads(reads, core, time);
    }

    /// Completes all reads by a core, given by its index, at its own time `time`.
    pub(super) fn complete_all_reads(&mut self, core: usize, time: u64) {
        complete_reads(self.reads.values_mut().flatten(), core, time);
    }

    /// Returns another agent's read of the line whose completion is unknown to a store with the knowledge `knowledge`.
    pub(super) fn conflicting_read(
        &self,
        core_id: CoreId,
        line: u64,
        knowledge: &Clock,
    ) -> Option<Site> {
        let reads = self.reads.get(&line)?;
        let unordered = reads.iter().find(|(core, read)| {
            let completion = read.completion.zip(knowledge.get(*core));
            !core_id.is_same_agent(read.site.core_id)
                && completion.is_none_or(|(completion, known_time)| completion > *known_time)
        });
        unordered.map(|(_, read)| read.site)
    }
}

/// Completes those of the reads that a core has started.
fn complete_reads<'r>(
    reads: impl Iterator<Item = &'r mut (usize, ReadRecord)>,
    core: usize,
    time: u64,
) {
    for (_, read) in reads.filter(|(reader, read)| *reader == core && read.completion.is_none()) {
        read.completion = Some(time);
    }
}
