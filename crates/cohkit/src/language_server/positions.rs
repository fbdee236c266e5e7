//! Positions in a text as the language server protocol counts them: lines from 0, and UTF-16 code units in a line.

use cohkit_diagnostics::Span;
use lsp_types::{Position, Range};

/// Positions of the lines of a text.
#[derive(Debug)]
pub(super) struct LineIndex {
    /// Offsets of each line in bytes: its start, and its end without the line terminator. Never empty, as an empty text
    /// has one line.
    lines: Vec<(usize, usize)>,
}

impl LineIndex {
    /// Finds the lines, which end as in editors: with a line feed, a carriage return, or both.
    pub(super) fn of(text: &str) -> LineIndex {
        let mut lines = Vec::new();
        let mut start = 0;
        let bytes = text.as_bytes();
        for (index, byte) in bytes.iter().enumerate() {
            let ends = match byte {
                b'\n' => true,
                b'\r' => bytes.get(index + 1) != Some(&b'\n'),
                _ => false,
            };
            if ends {
                let is_crlf = *byte == b'\n' && index > start && bytes[index - 1] == b'\r';
                lines.push((start, index - usize::from(is_crlf)));
                start = index + 1;
            }
        }
        lines.push((start, text.len()));
        LineIndex { lines }
    }

    /// Position of a byte. A line terminator is at the end of its line, and a byte within a character at its start.
    pub(super) fn position(&self, text: &str, byte: u32) -> Position {
        let byte = text.len().min(byte as usize);
        let line = self.lines.partition_point(|line| line.0 <= byte) - 1;
        let (start, end) = self.lines[line];
        let preceding = text[start..end].char_indices();
        let preceding = preceding
            .take_while(|(offset, character)| start + offset + character.len_utf8() <= byte);
        let units: usize = preceding.map(|(_, character)| character.len_utf16()).sum();
        Position::new(line as u32, units as u32)
    }

    /// Range of a span of bytes; its end is not before its start.
    pub(super) fn range(&self, text: &str, span: Span) -> Range {
        let start = self.position(text, span.start);
        Range::new(start, self.position(text, span.end).max(start))
    }

    /// Byte at a position; beyond a line, the line's end; beyond all lines, the end of the file.
    pub(super) fn byte(&self, text: &str, position: Position) -> u32 {
        let Some(&(start, end)) = self.lines.get(position.line as usize) else {
            return text.len() as u32;
        };
        let mut units = 0;
        let mut following = text[start..end]
            .char_indices()
            .skip_while(|(_, character)| {
                let is_before = units + character.len_utf16() <= position.character as usize;
                units += character.len_utf16();
                is_before
            });
        following.next().map_or(end, |(offset, _)| start + offset) as u32
    }

    /// Contents of a line, without its terminator. `line` counts from 0, and must exist.
    pub(super) fn line<'t>(&self, text: &'t str, line: u32) -> &'t str {
        let (start, end) = self.lines[line as usize];
        &text[start..end]
    }
}

#[cfg(test)]
mod tests {
    use super::{LineIndex, Position};

    #[test]
    fn positions_in_utf16_round_trip() {
        let text = "a𝄞b\r\né\rc\n";
        let line_index = LineIndex::of(text);
        let position_at = |byte| {
            let position = line_index.position(text, byte);
            (position.line, position.character)
        };
        // A character of four bytes is two code units; a byte within it is at its start.
        assert_eq!(
            (
                position_at(0),
                position_at(1),
                position_at(3),
                position_at(5)
            ),
            ((0, 0), (0, 1), (0, 1), (0, 3))
        );
        assert_eq!(
            (
                position_at(6),
                position_at(7),
                position_at(8),
                position_at(10)
            ),
            ((0, 4), (0, 4), (1, 0), (1, 1))
        );
        assert_eq!(
            (
                position_at(11),
                position_at(12),
                position_at(13),
                position_at(99)
            ),
            ((2, 0), (2, 1), (3, 0), (3, 0))
        );
        for (byte, _) in text
            .char_indices()
            .filter(|(_, character)| *character != '\n')
        {
            let byte = byte as u32;
            assert_eq!(line_index.byte(text, line_index.position(text, byte)), byte);
        }
        assert_eq!(
            line_index.byte(text, Position::new(0, 2)),
            1,
            "within a pair"
        );
        assert_eq!(line_index.byte(text, Position::new(1, u32::MAX)), 10);
        assert_eq!(line_index.byte(text, Position::new(u32::MAX, 0)), 13);
    }
}
