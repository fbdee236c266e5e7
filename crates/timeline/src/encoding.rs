//! Encoding of Perfetto's protobuf messages.
//!
//! A field is a key, which contains the field number and a wire type, and a value. Numbers are varints: seven bits per
//! byte, the lowest first, and the highest bit of each byte but the last is set. A nested message is its length and its
//! fields.

/// Encoding of a field's value.
#[derive(Clone, Copy)]
enum WireType {
    /// A varint.
    Varint = 0,
    /// Eight bytes, the lowest first.
    Fixed64 = 1,
    /// The length in bytes as a varint, then the bytes: a text or a nested message.
    LengthDelimited = 2,
}

/// Key of a field.
#[inline(always)]
fn key(field: u32, wire_type: WireType) -> u64 {
    u64::from(field) << 3 | wire_type as u64
}

/// Field numbers of Perfetto's protobuf messages.
pub(crate) mod field {
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

/// Encoded messages, one after the other.
#[derive(Default)]
pub(crate) struct MessageBytes(pub(crate) Vec<u8>);

impl MessageBytes {
    /// Appends a number with seven bits per byte, the lowest first.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Appends a field with a variable-length number.
    pub(crate) fn number(&mut self, field: u32, value: u64) {
        self.varint(key(field, WireType::Varint));
        self.varint(value);
    }

    /// Appends a field with bytes or a text.
    pub(crate) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(key(field, WireType::LengthDelimited));
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    /// Appends a nested message. Its length, which comes first, mostly takes one byte.
    #[inline]
    pub(crate) fn message(&mut self, field: u32, fill: impl FnOnce(&mut MessageBytes)) {
        self.varint(key(field, WireType::LengthDelimited));
        let length_position = self.0.len();
        self.0.push(0);
        fill(self);
        let length = self.0.len() - length_position - 1;
        if length < 0x80 {
            self.0[length_position] = length as u8;
            return;
        }
        let mut encoded_length = MessageBytes::default();
        encoded_length.varint(length as u64);
        self.0
            .splice(length_position..=length_position, encoded_length.0);
    }
}

/// Maximum bytes of a packet with one event.
pub(crate) const MAX_EVENT_BYTES: usize = 96;

/// Bytes of a packet with one event, written in their final place. Copying bytes just written one by one would stall
/// the host's store buffer.
pub struct EventBytes<'w> {
    /// Place of the packet at the end of the buffer.
    bytes: &'w mut [u8; MAX_EVENT_BYTES],
    /// Number of bytes written so far.
    pub(crate) length: usize,
}

impl EventBytes<'_> {
    /// Begins a packet in its final place.
    pub(crate) fn new(bytes: &mut [u8; MAX_EVENT_BYTES]) -> EventBytes<'_> {
        EventBytes { bytes, length: 0 }
    }

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
        // Each of the first eight bytes gets seven bits of the number, in its lower bits: three steps move groups of
        // 28, 14 and 7 bits apart. Timestamps take six bytes and more, and a loop would be mispredicted.
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
    pub(crate) fn number(&mut self, field: u32, value: u64) {
        self.varint(key(field, WireType::Varint));
        self.varint(value);
    }

    /// Appends a field with a number of eight bytes.
    #[inline(always)]
    pub(crate) fn fixed(&mut self, field: u32, value: u64) {
        self.varint(key(field, WireType::Fixed64));
        let end = self.length + 8;
        self.bytes[self.length..end].copy_from_slice(&value.to_le_bytes());
        self.length = end;
    }

    /// Appends a nested message of fewer than 128 bytes.
    #[inline(always)]
    pub(crate) fn message(&mut self, field: u32, fill: impl FnOnce(&mut EventBytes)) {
        self.varint(key(field, WireType::LengthDelimited));
        let length_position = self.length;
        self.push(0);
        fill(self);
        // The message always has fewer than 128 bytes.
        self.bytes[length_position] = (self.length - length_position - 1) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::{EventBytes, MessageBytes, MAX_EVENT_BYTES};

    #[test]
    fn varints_have_minimal_length() {
        let mut bytes = MessageBytes::default();
        bytes.number(1, 300);
        bytes.bytes(3, b"ab");
        assert_eq!(bytes.0, [0x08, 0xac, 2, 0x1a, 2, b'a', b'b']);
        let mut bytes = [0; MAX_EVENT_BYTES];
        let mut event_bytes = EventBytes::new(&mut bytes);
        event_bytes.message(1, |inner| {
            inner.number(1, 300);
            inner.fixed(2, 1);
        });
        let expected = [0x0a, 12, 0x08, 0xac, 2, 0x11, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(event_bytes.bytes[..event_bytes.length], expected);
        // A message longer than 127 bytes.
        let mut bytes = MessageBytes::default();
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
            let mut packet_bytes = MessageBytes::default();
            packet_bytes.varint(value);
            let mut bytes = [0; MAX_EVENT_BYTES];
            let mut event_bytes = EventBytes::new(&mut bytes);
            event_bytes.varint(value);
            assert_eq!(
                event_bytes.bytes[..event_bytes.length],
                packet_bytes.0,
                "{value:#x}"
            );
        }
    }
}
