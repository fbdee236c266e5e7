//! Words of a protocol text.

/// A word and its place in the line.
pub struct Word<'a> {
    pub text: &'a str,
    /// The place of its first byte.
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

/// Returns the line with another word in the place of this one.
pub fn replaced(line: &str, word: &Word, new: &str) -> String {
    let end = word.start + word.text.len();
    format!("{}{new}{}", &line[..word.start], &line[end..])
}
