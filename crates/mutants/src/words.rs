//! Words of a line of a protocol specification, with their positions, for textual
//! replacements.

/// A word and its position in the line.
pub struct Word<'a> {
    /// The word: letters, digits and underscores.
    pub text: &'a str,
    /// Byte offset of the word in the line.
    pub start: usize,
}

/// Returns the names, keywords and numbers of a line, from left to right.
pub fn words(line: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut word_start: Option<usize> = None;
    for (position, character) in line.char_indices().chain([(line.len(), ' ')]) {
        let is_word_character = character.is_ascii_alphanumeric() || character == '_';
        match (word_start, is_word_character) {
            (None, true) => word_start = Some(position),
            (Some(start), false) => {
                let text = &line[start..position];
                words.push(Word { text, start });
                word_start = None;
            }
            _ => {}
        }
    }
    words
}

/// Returns the line with `new` in place of a word of this line.
pub fn replace_word(line: &str, word: &Word, new: &str) -> String {
    let end = word.start + word.text.len();
    format!("{}{new}{}", &line[..word.start], &line[end..])
}
