//! Writer of Perfetto traces: tracks, slices, instants, flows and counters.
//!
//! A trace is the encoding of `perfetto.protos.Trace`; only these few of its fields are written.

pub use crate::encoding::EventBytes;
pub use crate::intervals::IntervalTotals;

use crate::encoding::{field, MessageBytes, MAX_EVENT_BYTES};
use crate::{Filter, Recorded};
use cohkit_units::Time;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

/// Kind of an event on a track, by its number in `TrackEvent.Type`.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A slice begins.
    Begin = 1,
    /// The innermost open slice of the track ends.
    End = 2,
    /// An event without duration.
    Instant = 3,
    /// A counter has a new value.
    Counter = 4,
}

/// Maximum initial capacity of a buffer that is not streamed, in bytes.
const MAX_INITIAL_CAPACITY: usize = 128 << 20;

/// Size of a streamed piece, in bytes.
const PIECE_BYTES: usize = 256 << 10;

/// Destination of a growing trace, which another thread writes.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// Channel of the filled pieces, in order. It blocks a run that is faster than the writer.
    pub full: SyncSender<Vec<u8>>,
    /// Channel on which the pieces' buffers return to be reused.
    pub empty: Arc<Mutex<Receiver<Vec<u8>>>>,
}

impl Pieces {
    /// Sends a piece and returns a buffer for the next.
    fn exchange(&self, piece: Vec<u8>) -> Vec<u8> {
        // A closed channel means that the writer failed; its thread returns the reason at the end.
        let _ = self.full.send(piece);
        let empty = self.empty.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next: Vec<u8> = empty.try_recv().unwrap_or_default();
        next.clear();
        next.reserve(PIECE_BYTES + MAX_EVENT_BYTES);
        next
    }
}

/// A trace in progress.
pub struct Writer {
    /// Encoded packets that have not been sent.
    buffer: MessageBytes,
    /// Number of bytes sent so far.
    sent_bytes: usize,
    /// Destination of the pieces; `None` if the trace is kept.
    pieces: Option<Pieces>,
    /// Length of the buffer at which it is sent, in bytes.
    piece_bytes: usize,
    /// Numbers of interned names.
    names: FxHashMap<String, u64>,
    /// Number of tracks created so far.
    tracks: u64,
    /// Index of the part of a trace that this writer writes. Each part has its own range of numbers.
    part: u64,
}

/// Picoseconds per timestamp unit, which is a nanosecond.
pub const UNIT: Time = 1000;

/// Number of low bits for numbers within a part. The index of the part is above them.
const NUMBER_BITS: u32 = 32;

/// Values of `TracePacket.sequence_flags`.
mod sequence_flags {
    /// `SEQ_INCREMENTAL_STATE_CLEARED`: the names interned so far are no longer valid.
    pub const RESET_NAMES: u64 = 1;
    /// `SEQ_NEEDS_INCREMENTAL_STATE`: the packet uses or extends the interned names.
    pub const NEEDS_NAMES: u64 = 2;
}

impl Writer {
    /// Creates an empty trace with the capacity of the filter. `notes` are the names of numbers on events, numbered
    /// from 1. The writer writes the part `part`, from 0 on, of a trace in which pieces of several parts may alternate.
    pub fn new(filter: &Filter, notes: &[&str], part: u64) -> Writer {
        // Unused capacity takes no memory, and a buffer that never moves is never copied.
        let (piece_bytes, capacity) = match filter.pieces {
            Some(_) => (PIECE_BYTES, PIECE_BYTES + MAX_EVENT_BYTES),
            None => (usize::MAX, filter.bytes.min(MAX_INITIAL_CAPACITY)),
        };
        let mut writer = Writer {
            buffer: MessageBytes(Vec::with_capacity(capacity)),
            sent_bytes: 0,
            pieces: filter.pieces.clone(),
            piece_bytes,
            names: FxHashMap::default(),
            tracks: 0,
            part,
        };
        writer.packet(|packet| {
            packet.number(field::SEQUENCE_FLAGS, sequence_flags::RESET_NAMES);
            packet.message(field::INTERNED, |interned| {
                for (name, number) in notes.iter().zip(1..) {
                    interned.message(field::INTERNED_NOTES, |note| {
                        note.number(field::INTERNED_NUMBER, number);
                        note.bytes(field::INTERNED_NAME, name.as_bytes());
                    });
                }
            });
        });
        writer
    }

    /// Number of bytes so far.
    #[inline]
    pub fn length(&self) -> usize {
        self.sent_bytes + self.buffer.0.len()
    }

    /// Returns the recorded trace with its number of accesses. `full` is the time from which on the size limit was
    /// reached, if it was.
    pub fn recorded(self, accesses: u64, full: Option<Time>) -> Recorded {
        Recorded {
            length: self.length(),
            rest: self.buffer.0,
            accesses,
            full,
        }
    }

    /// Returns a number in the range of this part.
    #[inline]
    pub fn number_in_part(&self, number: u64) -> u64 {
        self.part << NUMBER_BITS | number
    }

    /// Sends the buffer to its destination, if there is one.
    #[cold]
    fn send_piece(&mut self) {
        if let Some(pieces) = &self.pieces {
            self.sent_bytes += self.buffer.0.len();
            self.buffer.0 = pieces.exchange(std::mem::take(&mut self.buffer.0));
        }
    }

    /// Appends a packet with the sequence number of this part.
    #[inline]
    fn packet(&mut self, fill: impl FnOnce(&mut MessageBytes)) {
        let sequence = self.part + 1;
        self.buffer.message(field::PACKET, |packet| {
            packet.number(field::SEQUENCE, sequence);
            fill(packet);
        });
    }

    /// Returns the number of a name, after writing the name if it is new.
    pub fn name(&mut self, name: &str) -> u64 {
        if let Some(&number) = self.names.get(name) {
            return number;
        }
        let number = self.number_in_part(self.names.len() as u64 + 1);
        self.names.insert(name.into(), number);
        self.packet(|packet| {
            packet.number(field::SEQUENCE_FLAGS, sequence_flags::NEEDS_NAMES);
            packet.message(field::INTERNED, |interned| {
                interned.message(field::INTERNED_EVENTS, |event| {
                    event.number(field::INTERNED_NUMBER, number);
                    event.bytes(field::INTERNED_NAME, name.as_bytes());
                });
            });
        });
        number
    }

    /// Creates a track within another one, or at the top without a parent; a counter track has a unit. Returns its
    /// number.
    pub fn track(&mut self, name: &str, parent: Option<u64>, unit: Option<&str>) -> u64 {
        self.tracks += 1;
        let number = self.number_in_part(self.tracks);
        self.packet(|packet| {
            packet.message(field::TRACK, |track| {
                track.number(field::TRACK_UUID, number);
                track.bytes(field::TRACK_NAME, name.as_bytes());
                if let Some(parent) = parent {
                    track.number(field::TRACK_PARENT, parent);
                }
                if let Some(unit) = unit {
                    track.message(field::TRACK_COUNTER, |counter| {
                        counter.bytes(field::COUNTER_UNIT, unit.as_bytes());
                    });
                }
            });
        });
        number
    }

    /// Writes an event on a track at a time in picoseconds, with an interned name from [`Writer::name`]. `fill`
    /// adds notes and flows, within the 96 bytes of an event.
    #[inline]
    pub fn event(
        &mut self,
        time: Time,
        kind: Kind,
        track: u64,
        name: Option<u64>,
        fill: impl FnOnce(&mut EventBytes),
    ) {
        let start = self.buffer.0.len();
        self.buffer.0.resize(start + MAX_EVENT_BYTES, 0);
        let Some(bytes) = self.buffer.0[start..].first_chunk_mut() else {
            return;
        };
        let mut event_bytes = EventBytes::new(bytes);
        let sequence = self.part + 1;
        event_bytes.message(field::PACKET, |packet| {
            packet.number(field::SEQUENCE, sequence);
            packet.number(field::TIMESTAMP, time / UNIT);
            if name.is_some() {
                packet.number(field::SEQUENCE_FLAGS, sequence_flags::NEEDS_NAMES);
            }
            packet.message(field::EVENT, |event| {
                event.number(field::EVENT_KIND, kind as u64);
                event.number(field::EVENT_TRACK, track);
                if let Some(name) = name {
                    event.number(field::EVENT_NAME, name);
                }
                fill(event);
            });
        });
        let length = start + event_bytes.length;
        self.buffer.0.truncate(length);
        if length >= self.piece_bytes {
            self.send_piece();
        }
    }

    /// Writes a counter track, given its name, unit and factor: the share of each interval that was spent, times
    /// the factor. Only intervals that begin in `window` (picoseconds) are written.
    pub fn counter(
        &mut self,
        (name, unit, factor): (&str, &str, f64),
        intervals: &IntervalTotals,
        window: &Range<Time>,
        parent: u64,
    ) {
        let track = self.track(name, Some(parent), Some(unit));
        for (spent, number) in intervals.spent.iter().zip(0..) {
            let begin: Time = number * intervals.width;
            if !window.contains(&begin) {
                continue;
            }
            let value = factor * *spent as f64 / intervals.width as f64;
            self.event(begin, Kind::Counter, track, None, |event| {
                event.fixed(field::EVENT_VALUE, value.to_bits());
            });
        }
    }
}
