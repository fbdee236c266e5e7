//! Writer of Perfetto traces: tracks, slices, instants, flows and counters.
//!
//! A trace is the encoding of `perfetto.protos.Trace`; only these few of its fields are written.

use super::{Filter, Recorded};
use cohkit_units::Time;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

/// Kind of an event on a track.
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

/// Field numbers of Perfetto's protobuf messages.
mod field {
    /// `Trace.packet`.
    pub const PACKET: u32 = 1;
    /// `TracePacket.timestamp`.
    pub const TIMESTAMP: u32 = 8;
    /// `TracePacket.trusted_packet_sequence_id`.
    pub const SEQUENCE: u32 = 10;
    /// `TracePacket.track_event`.
    pub const EVENT: u32 = 11;
    /// `TracePacket.interned_data`.
    pub const INTERNED: u32 = 12;
    /// `TracePacket.sequence_flags`.
    pub const SEQUENCE_FLAGS: u32 = 13;
    /// `TracePacket.track_descriptor`.
    pub const TRACK: u32 = 60;

    /// `TrackDescriptor.uuid`.
    pub const TRACK_UUID: u32 = 1;
    /// `TrackDescriptor.name`.
    pub const TRACK_NAME: u32 = 2;
    /// `TrackDescriptor.parent_uuid`.
    pub const TRACK_PARENT: u32 = 5;
    /// `TrackDescriptor.counter`.
    pub const TRACK_COUNTER: u32 = 8;
    /// `CounterDescriptor.unit_name`.
    pub const COUNTER_UNIT: u32 = 6;

    /// `TrackEvent.debug_annotations`.
    pub const EVENT_NOTE: u32 = 4;
    /// `TrackEvent.type`.
    pub const EVENT_KIND: u32 = 9;
    /// `TrackEvent.name_iid`.
    pub const EVENT_NAME: u32 = 10;
    /// `TrackEvent.track_uuid`.
    pub const EVENT_TRACK: u32 = 11;
    /// `TrackEvent.double_counter_value`.
    pub const EVENT_VALUE: u32 = 44;
    /// `TrackEvent.flow_ids`, as fixed 64-bit numbers.
    pub const EVENT_FLOW: u32 = 47;
    /// `TrackEvent.terminating_flow_ids`, as fixed 64-bit numbers.
    pub const EVENT_LAST_FLOW: u32 = 48;

    /// `DebugAnnotation.name_iid`.
    pub const NOTE_NAME: u32 = 1;
    /// `DebugAnnotation.uint_value`.
    pub const NOTE_NUMBER: u32 = 3;

    /// `InternedData.event_names`.
    pub const INTERNED_EVENTS: u32 = 2;
    /// `InternedData.debug_annotation_names`.
    pub const INTERNED_NOTES: u32 = 3;
    /// `iid` of `EventName` and `DebugAnnotationName`.
    pub const INTERNED_NUMBER: u32 = 1;
    /// `name` of `EventName` and `DebugAnnotationName`.
    pub const INTERNED_NAME: u32 = 2;
}

/// Maximum initial capacity of a buffer that is not streamed, in bytes.
const MAX_INITIAL_CAPACITY: usize = 128 << 20;

/// Size of a streamed piece, in bytes.
const PIECE: usize = 256 << 10;

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
        next.reserve(PIECE + MAX_EVENT_BYTES);
        next
    }
}

/// Bytes of one message.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    /// Appends a number with seven bits per byte, the lowest first.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Appends a field with a variable-length number.
    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    /// Appends a field with bytes or a text.
    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    /// Appends a nested message. Its length, which comes first, mostly takes one byte.
    #[inline]
    fn message(&mut self, field: u32, fill: impl FnOnce(&mut Bytes)) {
        self.varint(u64::from(field) << 3 | 2);
        let place = self.0.len();
        self.0.push(0);
        fill(self);
        let length = self.0.len() - place - 1;
        if length < 0x80 {
            self.0[place] = length as u8;
            return;
        }
        let mut encoded_length = Bytes::default();
        encoded_length.varint(length as u64);
        self.0.splice(place..=place, encoded_length.0);
    }
}

/// Maximum bytes of a packet with one event.
const MAX_EVENT_BYTES: usize = 96;

/// Bytes of a packet with one event, written in their final place. Copying bytes just written one by one would stall
/// the host's store buffer.
pub struct EventBytes<'w> {
    /// Place of the packet at the end of the buffer.
    bytes: &'w mut [u8; MAX_EVENT_BYTES],
    /// Number of bytes written so far.
    length: usize,
}

impl EventBytes<'_> {
    /// Adds a number to the event, under the interned name `name` (from 1 on).
    #[inline(always)]
    pub fn note(&mut self, name: u64, value: u64) {
        self.message(field::EVENT_NOTE, |note| {
            note.number(field::NOTE_NAME, name);
            note.number(field::NOTE_NUMBER, value);
        });
    }

    /// Adds an arrow from the previous event with the same number `flow`. It continues from this event unless
    /// `is_last`.
    #[inline(always)]
    pub fn flow(&mut self, flow: u64, is_last: bool) {
        match is_last {
            false => self.fixed(field::EVENT_FLOW, flow),
            true => self.fixed(field::EVENT_LAST_FLOW, flow),
        }
    }

    /// Appends a byte. The packet must not exceed [`MAX_EVENT_BYTES`].
    #[inline(always)]
    fn push(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    /// Appends a number with seven bits per byte, the lowest first.
    #[inline(always)]
    fn varint(&mut self, value: u64) {
        if value < 0x80 {
            return self.push(value as u8);
        }
        // Each byte has seven bits of the number. Timestamps take six bytes and more, and a loop would be mispredicted.
        let low = value & ((1 << 56) - 1);
        let low = low & 0x0fff_ffff | (low & 0x00ff_ffff_f000_0000) << 4;
        let low = low & 0x0000_3fff_0000_3fff | (low & 0x0fff_c000_0fff_c000) << 2;
        let low = low & 0x007f_007f_007f_007f | (low & 0x3f80_3f80_3f80_3f80) << 1;
        let length = (u64::BITS - value.leading_zeros()).div_ceil(7) as usize;
        let continuation_bits = match length {
            ..=8 => 0x0080_8080_8080_8080 >> (8 * (8 - length)),
            _ => 0x8080_8080_8080_8080,
        };
        let end = self.length + 8;
        self.bytes[self.length..end].copy_from_slice(&(low | continuation_bits).to_le_bytes());
        if length > 8 {
            self.bytes[end] = (value >> 56) as u8 | u8::from(length > 9) << 7;
            self.bytes[end + 1] = (value >> 63) as u8;
        }
        self.length += length;
    }

    /// Appends a field with a variable-length number.
    #[inline(always)]
    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    /// Appends a field with a number of eight bytes.
    #[inline(always)]
    fn fixed(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3 | 1);
        let end = self.length + 8;
        self.bytes[self.length..end].copy_from_slice(&value.to_le_bytes());
        self.length = end;
    }

    /// Appends a nested message of fewer than 128 bytes.
    #[inline(always)]
    fn message(&mut self, field: u32, fill: impl FnOnce(&mut EventBytes)) {
        self.varint(u64::from(field) << 3 | 2);
        let place = self.length;
        self.push(0);
        fill(self);
        // The message always has fewer than 128 bytes.
        self.bytes[place] = (self.length - place - 1) as u8;
    }
}

/// Time spent in intervals of equal width. The width is doubled as the run continues, so that memory stays bounded.
pub struct IntervalTotals {
    /// Width of an interval, in picoseconds.
    width: Time,
    /// Time spent in each interval, in picoseconds. It exceeds the width if several things happen at once.
    spent: Vec<Time>,
}

/// Maximum number of intervals.
const MAX_INTERVALS: usize = 1 << 10;

impl Default for IntervalTotals {
    fn default() -> IntervalTotals {
        IntervalTotals {
            width: 1 << 14,
            spent: Vec::new(),
        }
    }
}

impl IntervalTotals {
    /// Adds the time from `begin` to `end`, in picoseconds.
    pub fn add(&mut self, begin: Time, end: Time) {
        while end / self.width >= MAX_INTERVALS as u64 {
            let pairs = self.spent.chunks(2);
            self.spent = pairs.map(|pair| pair.iter().sum()).collect();
            self.width *= 2;
        }
        let last_interval = (end / self.width) as usize;
        if last_interval >= self.spent.len() {
            self.spent.resize(last_interval + 1, 0);
        }
        let mut time = begin;
        while time < end {
            let number = time / self.width;
            let interval_end = end.min((number + 1) * self.width);
            self.spent[number as usize] += interval_end - time;
            time = interval_end;
        }
    }
}

/// A trace in progress.
pub struct Writer {
    /// Encoded packets that have not been sent.
    buffer: Bytes,
    /// Number of bytes sent so far.
    sent_bytes: usize,
    /// Destination of the pieces; `None` if the trace is kept.
    pieces: Option<Pieces>,
    /// Length of the buffer at which it is sent, in bytes.
    piece: usize,
    /// Numbers of interned names.
    names: FxHashMap<String, u64>,
    /// Number of tracks created so far.
    tracks: u64,
    /// Index of the part of a trace that this writer writes. Each part has its own range of numbers.
    part: u64,
}

/// Picoseconds per timestamp unit, which is a nanosecond.
pub const UNIT: Time = 1000;

/// Number of bits for numbers within a part.
const PART: u32 = 32;

impl Writer {
    /// Creates an empty trace with the capacity of the filter. `notes` are the names of numbers on events, numbered
    /// from 1. The writer writes the part `part`, from 0 on, of a trace in which pieces of several parts may alternate.
    pub fn new(filter: &Filter, notes: &[&str], part: u64) -> Writer {
        // Unused capacity takes no memory, and a buffer that never moves is never copied.
        let (piece, capacity) = match filter.pieces {
            Some(_) => (PIECE, PIECE + MAX_EVENT_BYTES),
            None => (usize::MAX, filter.bytes.min(MAX_INITIAL_CAPACITY)),
        };
        let mut writer = Writer {
            buffer: Bytes(Vec::with_capacity(capacity)),
            sent_bytes: 0,
            pieces: filter.pieces.clone(),
            piece,
            names: FxHashMap::default(),
            tracks: 0,
            part,
        };
        writer.packet(|packet| {
            // Resets the interned names.
            packet.number(field::SEQUENCE_FLAGS, 1);
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

    /// Returns the recorded trace with its number of accesses. `full` is the time from which on it had no room, if any.
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
        self.part << PART | number
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
    fn packet(&mut self, fill: impl FnOnce(&mut Bytes)) {
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
            packet.number(field::SEQUENCE_FLAGS, 2);
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
        let mut event_bytes = EventBytes { bytes, length: 0 };
        let sequence = self.part + 1;
        event_bytes.message(field::PACKET, |packet| {
            packet.number(field::SEQUENCE, sequence);
            packet.number(field::TIMESTAMP, time / UNIT);
            if name.is_some() {
                packet.number(field::SEQUENCE_FLAGS, 2);
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
        if length >= self.piece {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_have_minimal_length() {
        let mut bytes = Bytes::default();
        bytes.number(1, 300);
        bytes.bytes(3, b"ab");
        assert_eq!(bytes.0, [0x08, 0xac, 2, 0x1a, 2, b'a', b'b']);
        let mut bytes = [0; MAX_EVENT_BYTES];
        let mut event_bytes = EventBytes {
            bytes: &mut bytes,
            length: 0,
        };
        event_bytes.message(1, |inner| {
            inner.number(1, 300);
            inner.fixed(2, 1);
        });
        let expected = [0x0a, 12, 0x08, 0xac, 2, 0x11, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(event_bytes.bytes[..event_bytes.length], expected);
        // A message longer than 127 bytes.
        let mut bytes = Bytes::default();
        bytes.message(1, |inner| inner.0.extend([7; 200]));
        assert_eq!(bytes.0[..4], [0x0a, 200, 1, 7]);
        assert_eq!(bytes.0.len(), 203);
    }

    /// Both encoders of numbers give the same bytes, and no more than necessary.
    #[test]
    fn event_varints_match_packet_varints() {
        let values = (0..64).flat_map(|bit| {
            let power = 1u64 << bit;
            [power - 1, power, power + 1, power | 0x5a5a]
        });
        for value in values.chain([u64::MAX, u64::MAX - 1]) {
            let mut packet_bytes = Bytes::default();
            packet_bytes.varint(value);
            let mut bytes = [0; MAX_EVENT_BYTES];
            let mut event_bytes = EventBytes {
                bytes: &mut bytes,
                length: 0,
            };
            event_bytes.varint(value);
            assert_eq!(
                event_bytes.bytes[..event_bytes.length],
                packet_bytes.0,
                "{value:#x}"
            );
        }
    }

    /// In runs of any length, each time is in exactly one interval.
    #[test]
    fn each_time_is_in_exactly_one_interval() {
        let mut intervals = IntervalTotals::default();
        let mut sum = 0;
        for number in 0..3_000 {
            let (begin, duration) = (number * 70_000, 1 + number * 37);
            intervals.add(begin, begin + duration);
            sum += duration;
        }
        assert_eq!(intervals.spent.iter().sum::<Time>(), sum);
        assert!(intervals.spent.len() <= MAX_INTERVALS);
        assert!(intervals.width > 1 << 14);
    }
}
