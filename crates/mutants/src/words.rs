//! Words of a protocol specification.

/// A word and its position in the line.
pub struct Word<'a> {
    pub text: &'a str,
    /// Byte offset of the word.
    pub start: usize,
}

/// Returns the names, keywords and numbers of a line.
pub fn words(line: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut begun: Option<usize> = None;
    for (place, character) in line.char_indices().chain([(line.len(), ' ')]) {
        let inside = character.is_ascii_alphanumeric() || character == '_';
        match (begun, inside) {
            (None, true) => begun = Some(place),
            (Some(start), false) => {
                let text = &line[start..place];
                words.push(Word { text, start });
                begun = None;
            }
            _ => {}
        }
    }
    words
}

/// Returns the line with `new` in place of a word.
pub fn replaced(line: &str, word: &Word, new: &str) -> String {
    let end = word.start + word.text.len();
    format!("{}{new}{}", &line[..word.start], &line[end..])
}
