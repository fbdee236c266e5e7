//! Checkpoints: stored results of a search, from which another search can continue to the same report.
//!
//! States are only added, and so are the bits of the parent map. Each checkpoint therefore holds the additions since the
//! previous one, and the sequence of all checkpoints is the search. The cost of a checkpoint depends only on these
//! additions. The hash table is rebuilt from the states.
//!
//! Input is not trusted. Sizes are compared before memory is allocated, and checksums of all parts are compared. Every
//! value is also checked against its range, as if the checksums were forged, since machine code relies on ranges.

use super::Search;
use crate::program::{LoopOrders, Program, Properties};
use crate::store::{
    block_checksum, hash, states_per_block, ReadAt, ReadError, Segment, Store, MAX_STATES,
};
use crate::threads::Team;
use crate::view::View;
use std::fmt::Write;
use std::io::{self, Read};

/// Storage of checkpoints. The caller provides files and clocks.
pub trait CheckpointSink: Sync {
    /// True if a checkpoint is due. Called after each stretch of states, so it should be fast.
    fn is_due(&self) -> bool;

    /// Stores a checkpoint atomically: the concatenation of its parts, or nothing. Checkpoints of a component are
    /// numbered from 0.
    ///
    /// # Errors
    /// The checkpoint cannot be stored. This ends the search.
    fn store(&self, component: usize, number: u64, parts: &[&[u8]]) -> io::Result<()>;

    /// Opens a stored checkpoint; returns a reader and the length in bytes. `None` if there is none; the search then
    /// continues from the previous ones.
    ///
    /// # Errors
    /// The checkpoint cannot be read. This ends the search.
    fn load(&self, component: usize, number: u64) -> io::Result<Option<(Box<dyn Read>, u64)>>;

    /// Opens a stored checkpoint to read any part of it at any time.
    ///
    /// # Errors
    /// There is none, or it cannot be read. This ends the search.
    fn open(&self, component: usize, number: u64) -> io::Result<Box<dyn ReadAt>>;
}

/// Checkpoints of one attempt of a check. A check that gives up a symmetry starts its search again; a resumed check
/// repeats the end of the first attempt, and continues with the checkpoints of the second.
pub(crate) struct AttemptSink<'a> {
    /// Storage of the caller.
    pub sink: &'a dyn CheckpointSink,
    /// Number of the attempt, from 0.
    pub attempt: usize,
}

/// Bound on the number of components of a search, above any model's.
const MAX_COMPONENTS: usize = 1 << 32;

/// Number of a component for the caller, who sees the components of all attempts.
pub(crate) fn component_of_attempt(attempt: usize, component: usize) -> usize {
    MAX_COMPONENTS * attempt + component
}

impl CheckpointSink for AttemptSink<'_> {
    fn is_due(&self) -> bool {
        self.sink.is_due()
    }

    fn store(&self, component: usize, number: u64, parts: &[&[u8]]) -> io::Result<()> {
        let component = component_of_attempt(self.attempt, component);
        self.sink.store(component, number, parts)
    }

    fn load(&self, component: usize, number: u64) -> io::Result<Option<(Box<dyn Read>, u64)>> {
        let component = component_of_attempt(self.attempt, component);
        self.sink.load(component, number)
    }

    fn open(&self, component: usize, number: u64) -> io::Result<Box<dyn ReadAt>> {
        let component = component_of_attempt(self.attempt, component);
        self.sink.open(component, number)
    }
}

/// Error of a checkpoint.
#[derive(Debug)]
pub struct CheckpointError {
    /// Component of the checkpoint; see [`crate::components`].
    pub component: usize,
    /// Number of the checkpoint in its component.
    pub number: u64,
    /// Reason of the error.
    pub kind: CheckpointErrorKind,
}

/// Reason why a checkpoint cannot be stored or resumed.
#[derive(Debug)]
pub enum CheckpointErrorKind {
    /// Not a checkpoint, or one in the format of another version.
    Format,
    /// Checkpoint of another model, or of a search with options that change the stored states.
    OtherModel,
    /// Contents differ from the stored ones.
    Damaged,
    /// The stored checkpoint cannot be read.
    Unreadable(io::Error),
    /// The new checkpoint cannot be stored.
    CannotStore(io::Error),
}

impl std::fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CheckpointError {
            component, number, ..
        } = self;
        write!(f, "checkpoint {number} of component {component} ")?;
        match &self.kind {
            CheckpointErrorKind::Format => write!(f, "is not a checkpoint of this version"),
            CheckpointErrorKind::OtherModel => write!(f, "is of another model or other options"),
            CheckpointErrorKind::Damaged => write!(f, "is damaged"),
            CheckpointErrorKind::Unreadable(error) => write!(f, "cannot be read: {error}"),
            CheckpointErrorKind::CannotStore(error) => write!(f, "cannot be written: {error}"),
        }
    }
}

impl std::error::Error for CheckpointError {}

/// First bytes of every checkpoint; the last byte is the version of the format.
const MAGIC: [u8; 8] = *b"cohkit\x00\x01";

/// Numbers at the start of a checkpoint, after [`MAGIC`].
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Header {
    /// Identity of the search; see [`identity`].
    model: u64,
    /// Number of the checkpoint in its component, from 0.
    number: u64,
    /// Number of states in earlier checkpoints.
    states_before: u64,
    /// Number of bits of the parent map in earlier checkpoints.
    bits_before: u64,
    /// Number of states, including those in earlier checkpoints.
    states: u64,
    /// Number of bits of the parent map, including those in earlier checkpoints.
    bits: u64,
    /// Rules fired.
    transitions: u64,
    /// Steps to the deepest states found.
    depth: u64,
    /// Number of the next state to expand.
    next: u64,
    /// End of the current stretch of states.
    stretch_end: u64,
    /// End of the level of the next state.
    level_end: u64,
    /// Recorded deadlocks: state number plus one; 0 for none.
    deadlocks: [u64; 2],
    /// Checksum of everything after the header.
    contents: u64,
}

/// Number of 64-bit numbers in a header, without [`MAGIC`] and the header's own checksum.
const NUMBER_COUNT: usize = 14;
/// Length of a header in bytes, including [`MAGIC`] and its own checksum.
const HEADER_BYTES: usize = 8 * (NUMBER_COUNT + 2);

impl Header {
    /// Numbers of the header in the order in which they are stored.
    fn numbers(&self) -> [u64; NUMBER_COUNT] {
        [
            self.model,
            self.number,
            self.states_before,
            self.bits_before,
            self.states,
            self.bits,
            self.transitions,
            self.depth,
            self.next,
            self.stretch_end,
            self.level_end,
            self.deadlocks[0],
            self.deadlocks[1],
            self.contents,
        ]
    }

    /// Bytes of the header, with its own checksum at the end.
    fn write(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(
            self.numbers()
                .iter()
                .flat_map(|number| number.to_le_bytes()),
        );
        bytes.extend(checksum(0, &bytes).to_le_bytes());
        bytes
    }

    /// Reads a header.
    /// Fails with [`CheckpointErrorKind::Format`] or [`CheckpointErrorKind::Damaged`]; the numbers are not checked
    /// against each other.
    fn read(bytes: &[u8; HEADER_BYTES]) -> Result<Header, CheckpointErrorKind> {
        if bytes[..8] != MAGIC {
            return Err(CheckpointErrorKind::Format);
        }
        let (header_bytes, stored_checksum) = bytes.split_at(HEADER_BYTES - 8);
        if checksum(0, header_bytes).to_le_bytes() != *stored_checksum {
            return Err(CheckpointErrorKind::Damaged);
        }
        let mut numbers = words(&header_bytes[8..]);
        let mut next = || numbers.next().unwrap_or(0);
        Ok(Header {
            model: next(),
            number: next(),
            states_before: next(),
            bits_before: next(),
            states: next(),
            bits: next(),
            transitions: next(),
            depth: next(),
            next: next(),
            stretch_end: next(),
            level_end: next(),
            deadlocks: [next(), next()],
            contents: next(),
        })
    }

    /// True if the header is consistent and can follow `previous`.
    fn follows(&self, previous: &Header) -> bool {
        let deadlock = |&state: &u64| state <= self.next;
        self.states_before == previous.states
            && self.bits_before == previous.bits
            && (previous.states..=MAX_STATES).contains(&self.states)
            && self.bits >= previous.bits
            // One bit per state and one per completed parent; at most one parent after these has begun.
            && self.bits >= self.states
            && self.bits - self.states <= self.next + 1
            && self.next >= previous.next
            && self.next <= self.level_end
            && self.level_end <= self.states
            && self.stretch_end <= self.states
            && self.deadlocks.iter().all(deadlock)
    }
}

/// Checksum. A change of the bytes leaves it unchanged with probability 2^-64.
fn checksum(initial: u64, bytes: &[u8]) -> u64 {
    let mut checksum = hash(&[initial, bytes.len() as u64]);
    for word in words(bytes) {
        checksum = hash(&[checksum, word]);
    }
    checksum
}

/// Bytes as little-endian numbers; the last one is padded with zeros.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    })
}

/// Identity of a search: a hash of everything that determines the states, their numbers and their order.
fn identity(program: &Program, view: &View) -> u64 {
    let Program {
        slots,
        frame,
        code,
        pieces,
        bounds,
        shapes,
        tables,
        starts,
        rules,
        properties,
        multisets,
        saved_cells,
        loop_orders,
        violations,
        sites: _,
        notes: _,
        number_bits: _,
    } = program;
    let Properties {
        invariants,
        quiescent,
        covers,
        liveness,
        assumptions,
    } = properties;
    let LoopOrders {
        orders,
        reorder_flag: _,
        postpones_returns: _,
        orbits: _,
        provisional,
    } = loop_orders;
    let mut text = env!("CARGO_PKG_VERSION").to_string();
    let program_parts = (slots, frame, code, pieces, shapes, tables, starts, rules);
    let _ = write!(
        text,
        "{program_parts:?}{:?}",
        (invariants, quiescent, covers, liveness)
    );
    let _ = write!(
        text,
        "{:?}",
        (
            assumptions,
            multisets,
            saved_cells,
            orders,
            provisional,
            violations,
            bounds
        )
    );
    let view_parts = (
        &view.packing,
        &view.rules,
        &view.invariants,
        &view.quiescent,
    );
    let symmetric = view.symmetry.is_some();
    let _ = write!(
        text,
        "{view_parts:?}{:?}",
        (view.stop_at_deadlock, view.deadlock, symmetric)
    );
    checksum(0, text.as_bytes())
}

/// Position of the current search in its sequence of checkpoints.
pub(super) struct Checkpoints<'a> {
    /// Storage of the caller.
    checkpoint_sink: &'a dyn CheckpointSink,
    /// Index of the component in the model.
    component: usize,
    /// Number of the next checkpoint.
    number: u64,
    /// Header of the last checkpoint; without one, only `model` is set.
    last: Header,
}

impl<'a> Checkpoints<'a> {
    /// Prepares the checkpoints of a component; none has been stored or loaded yet.
    pub fn new(
        checkpoint_sink: &'a dyn CheckpointSink,
        component: usize,
        program: &Program,
        view: &View,
    ) -> Self {
        let last = Header {
            model: identity(program, view),
            ..Header::default()
        };
        Checkpoints {
            checkpoint_sink,
            component,
            number: 0,
            last,
        }
    }

    /// True if a checkpoint is due.
    pub fn is_due(&self) -> bool {
        self.checkpoint_sink.is_due()
    }

    /// Forgets what has been stored and loaded, so that the search can be resumed again. Returns the number of the next
    /// checkpoint.
    pub fn rewind(&mut self) -> u64 {
        self.last = Header {
            model: self.last.model,
            ..Header::default()
        };
        std::mem::take(&mut self.number)
    }

    /// Fails unless all checkpoints up to this number have been loaded.
    pub fn require(&self, number: Option<u64>) -> Result<(), CheckpointError> {
        match number == Some(self.number) {
            true => Ok(()),
            false => Err(self.checkpoint_error(CheckpointErrorKind::Unreadable(
                io::ErrorKind::NotFound.into(),
            ))),
        }
    }

    /// Error of a checkpoint that states are read from.
    pub fn read_error(&self, error: ReadError) -> CheckpointError {
        CheckpointError {
            component: self.component,
            number: error.checkpoint,
            kind: match error.error {
                Some(error) => CheckpointErrorKind::Unreadable(error),
                None => CheckpointErrorKind::Damaged,
            },
        }
    }

    /// Lets a store read states from the next checkpoint, which follows the last one and is stored. Checksums of its blocks
    /// are added later.
    fn open_for(&self, store: &mut Store, header: &Header) -> Result<(), CheckpointErrorKind> {
        let contents = self.checkpoint_sink.open(self.component, self.number);
        store.states.add_segment(Segment {
            checkpoint: self.number,
            states: self.last.states as usize..header.states as usize,
            position: HEADER_BYTES as u64,
            contents: contents.map_err(CheckpointErrorKind::Unreadable)?,
            checksums: Vec::new(),
        });
        Ok(())
    }

    /// Error of the next checkpoint.
    fn checkpoint_error(&self, kind: CheckpointErrorKind) -> CheckpointError {
        CheckpointError {
            component: self.component,
            number: self.number,
            kind,
        }
    }
}

impl Search<'_> {
    /// Stores a checkpoint if one is due.
    pub(super) fn save_checkpoint_if_due(&mut self) -> Result<(), CheckpointError> {
        match &self.checkpoints {
            // With states on disk, assumptions must be confirmed first.
            Some(checkpoints) if checkpoints.is_due() && self.resident_limit().is_none() => {
                self.save_checkpoint()
            }
            _ => Ok(()),
        }
    }

    /// Stores a checkpoint. No effect without a sink, or without progress since the last one.
    pub(super) fn save_checkpoint(&mut self) -> Result<(), CheckpointError> {
        let Some(checkpoints) = &mut self.checkpoints else {
            return Ok(());
        };
        let last = checkpoints.last;
        let states = self.store.states.bytes_from(last.states as usize);
        let parents = &self.store.parents;
        let bits: Vec<u8> = (parents.words_from(last.bits as usize).iter())
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let header = Header {
            model: last.model,
            number: checkpoints.number,
            states_before: last.states,
            bits_before: last.bits,
            states: self.store.len() as u64,
            bits: parents.len() as u64,
            // The rules of a partly expanded state will fire again.
            transitions: self.transitions - self.unfinished_transitions,
            depth: self.frontier.depth,
            next: self.frontier.next as u64,
            stretch_end: self.frontier.stretch_end as u64,
            level_end: self.frontier.level_end as u64,
            deadlocks: self
                .deadlocks
                .map(|d| d.map_or(0, |state| state as u64 + 1)),
            contents: checksum(checksum(0, states), &bits),
        };
        if checkpoints.number > 0 && header.next == last.next && header.states == last.states {
            return Ok(());
        }
        let header_bytes = header.write();
        let parts = [&header_bytes[..], states, &bits];
        (checkpoints.checkpoint_sink)
            .store(checkpoints.component, checkpoints.number, &parts)
            .map_err(|error| {
                checkpoints.checkpoint_error(CheckpointErrorKind::CannotStore(error))
            })?;
        if self.options.max_resident.is_some() {
            checkpoints
                .open_for(&mut self.store, &header)
                .map_err(|kind| checkpoints.checkpoint_error(kind))?;
            let states = &mut self.store.states;
            let block_bytes = states_per_block(states.stride()) * states.stride();
            let blocks = states
                .bytes_from(last.states as usize)
                .chunks(block_bytes.max(1));
            let checksums: Vec<u64> = blocks.map(block_checksum).collect();
            for checksum in checksums {
                states.add_checksum(checksum);
            }
        }
        checkpoints.last = header;
        checkpoints.number += 1;
        Ok(())
    }

    /// Continues from the stored checkpoints. Returns false if there are none.
    pub(super) fn resume(&mut self) -> Result<bool, CheckpointError> {
        let Some(mut checkpoints) = self.checkpoints.take() else {
            return Ok(false);
        };
        loop {
            let unreadable = |error| CheckpointErrorKind::Unreadable(error);
            let stored =
                (checkpoints.checkpoint_sink).load(checkpoints.component, checkpoints.number);
            let Some((mut reader, length)) =
                stored.map_err(|error| checkpoints.checkpoint_error(unreadable(error)))?
            else {
                break;
            };
            // The states are all different, so each with an equal signature is read.
            self.store.states.read_every_state(true);
            checkpoints.last = self
                .restore(&mut *reader, length, &checkpoints)
                .map_err(|kind| checkpoints.checkpoint_error(kind))?;
            if let Some(error) = self.store.states.take_read_error() {
                return Err(checkpoints.read_error(error));
            }
            checkpoints.number += 1;
        }
        self.store.states.read_every_state(false);
        let (last_header, has_checkpoint) = (checkpoints.last, checkpoints.number > 0);
        self.transitions = last_header.transitions;
        self.frontier.depth = last_header.depth;
        self.frontier.next = last_header.next as usize;
        self.frontier.stretch_end = last_header.stretch_end as usize;
        self.frontier.level_end = last_header.level_end as usize;
        self.deadlocks =
            (last_header.deadlocks).map(|state| state.checked_sub(1).map(|s| s as usize));
        self.reporter.resumed_states = self.store.len();
        self.checkpoints = Some(checkpoints);
        Ok(has_checkpoint)
    }

    /// Adds the contents of a checkpoint to those of earlier ones.
    fn restore(
        &mut self,
        reader: &mut dyn Read,
        length: u64,
        checkpoints: &Checkpoints,
    ) -> Result<Header, CheckpointErrorKind> {
        use CheckpointErrorKind::{Damaged, Format, OtherModel, Unreadable};
        let (last, number) = (&checkpoints.last, checkpoints.number);
        let mut header_bytes = [0; HEADER_BYTES];
        if length < HEADER_BYTES as u64 {
            return Err(Format);
        }
        let read_error = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Damaged,
            _ => Unreadable(error),
        };
        reader.read_exact(&mut header_bytes).map_err(read_error)?;
        let header = Header::read(&header_bytes)?;
        if header.model != last.model {
            return Err(OtherModel);
        }
        if header.number != number || !header.follows(last) {
            return Err(Damaged);
        }
        let count = (header.states - last.states) as usize;
        let states = count * self.view.packing.bytes;
        let bits = 8 * (header.bits.div_ceil(64) - last.bits / 64);
        if length != HEADER_BYTES as u64 + states as u64 + bits {
            return Err(Damaged);
        }
        if self.options.max_resident.is_some() {
            checkpoints.open_for(&mut self.store, &header)?;
        }
        self.store.reserve(count, &Team::SINGLE_THREAD);
        let stride = self.view.packing.bytes;
        if stride == 0 && !self.enter_all(&[], count) {
            return Err(Damaged);
        }
        let block_bytes = states_per_block(stride) * stride;
        let mut contents = hash(&[0, states as u64]);
        let mut block = vec![0; block_bytes.min(states)];
        let mut remaining = states;
        while remaining > 0 {
            block.truncate(remaining);
            remaining -= block.len();
            reader.read_exact(&mut block).map_err(read_error)?;
            // A block has whole words, but for the last one.
            contents = words(&block).fold(contents, |sum, word| hash(&[sum, word]));
            if !self.enter_all(&block, block.len() / stride) {
                return Err(Damaged);
            }
            if self.options.max_resident.is_some() {
                self.store.states.add_checksum(block_checksum(&block));
                self.drop_excess_states(self.store.len());
            }
        }
        let mut parents = vec![0; bits as usize];
        reader.read_exact(&mut parents).map_err(read_error)?;
        if checksum(contents, &parents) != header.contents {
            return Err(Damaged);
        }
        let parents: Vec<u64> = words(&parents).collect();
        let (old_bits, new_bits) = (last.bits as usize, header.bits as usize);
        let is_valid = (self.store.parents).restore(old_bits, &parents, new_bits, header.states);
        match is_valid {
            true => Ok(header),
            false => Err(Damaged),
        }
    }

    /// Enters packed states. Returns false if one of them is invalid or occurs twice.
    fn enter_all(&mut self, packed: &[u8], count: usize) -> bool {
        let packing = &self.view.packing;
        let mut state = vec![0; packing.words];
        for i in 0..count {
            let bytes = &packed[i * packing.bytes..(i + 1) * packing.bytes];
            for (word, value) in state.iter_mut().zip(words(bytes)) {
                *word = value;
            }
            let fits = packing.fields().iter().all(|field| {
                let slot = &self.program.slots[field.slot as usize];
                let raw = (state[field.word as usize] >> field.shift) & field.mask;
                let max_raw = (slot.hi.wrapping_sub(slot.lo) as u64) + slot.undefined as u64;
                raw <= max_raw
            });
            if !fits || !self.store.restore(&state) {
                return false;
            }
        }
        true
    }
}
