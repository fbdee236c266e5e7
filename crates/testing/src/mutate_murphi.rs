//! Mutated Murphi models, and the properties of the reader that hold for every input, valid or not. A mutant is a
//! small model of this repository with a few tokens removed, inserted, replaced or repeated.

use cohkit_base::random::SplitMix64;
use cohkit_murphi::{print, read, Diagnostic, Dialect, Style};
use std::path::Path;

/// Tokens that mutations insert.
const INSERTED_TOKENS: [&str; 56] = [
    "n",
    "x",
    "i",
    "0",
    "1",
    "3",
    "0x1F",
    "010",
    "99999999999",
    "begin",
    "end",
    "if",
    "then",
    "else",
    "do",
    "for",
    "forall",
    "exists",
    "rule",
    "ruleset",
    "startstate",
    "invariant",
    "cover",
    "liveness",
    "assume",
    "undefine",
    "undefined",
    "clear",
    "union",
    "scalarset",
    "multiset",
    "choose",
    "record",
    "array",
    "of",
    "function",
    "return",
    "==>",
    ":=",
    ":",
    ";",
    ",",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "..",
    "->",
    "!",
    "&",
    "|",
    "?",
    "\"",
    "/*",
];

/// Valid models that mutations start from.
pub struct Corpus(Vec<String>);

/// Pseudo-random numbers of a seed.
struct Random(SplitMix64);

impl Random {
    /// Returns a number below `n`; 0 counts as 1.
    fn below(&mut self, n: usize) -> usize {
        self.0.modulo(n.max(1) as u64) as usize
    }
}

/// Splits a text into tokens: words, runs of white space, and single punctuation characters.
fn tokens(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        _ if c.is_alphanumeric() || c == '_' => 0,
        _ if c.is_whitespace() => 1,
        _ => 2,
    };
    let mut result = Vec::new();
    let mut start = 0;
    let mut last_kind = None;
    for (offset, c) in text.char_indices() {
        if last_kind.is_some_and(|last_kind| last_kind != kind(c) || kind(c) == 2) {
            result.push(&text[start..offset]);
            start = offset;
        }
        last_kind = Some(kind(c));
    }
    result.push(&text[start..]);
    result
}

impl Corpus {
    /// Reads the small models of the repository.
    pub fn load() -> Corpus {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut files: Vec<_> = ["tests/murphi", "models"]
            .iter()
            .flat_map(|folder| std::fs::read_dir(root.join(folder)).into_iter().flatten())
            .filter_map(|file| Some(file.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "m"))
            .collect();
        files.sort();
        let texts = files
            .iter()
            .filter_map(|file| std::fs::read_to_string(file).ok());
        Corpus(texts.filter(|text| text.len() < 4000).collect())
    }

    /// Returns the mutant of a seed: a model with one to four changes.
    pub fn mutant(&self, seed: u64) -> String {
        let mut random = Random(SplitMix64::new(seed));
        let base = random.below(self.0.len());
        let mut tokens: Vec<String> = tokens(&self.0[base])
            .iter()
            .map(|token| token.to_string())
            .collect();
        for _ in 0..1 + random.below(4) {
            let position = random.below(tokens.len());
            match random.below(5) {
                0 => tokens[position].clear(),
                1 => tokens[position] = INSERTED_TOKENS[random.below(INSERTED_TOKENS.len())].into(),
                2 => tokens.insert(
                    position,
                    format!(" {} ", INSERTED_TOKENS[random.below(INSERTED_TOKENS.len())]),
                ),
                3 => tokens[position] = tokens[random.below(tokens.len())].clone(),
                _ => {
                    let to = (position + random.below(20)).min(tokens.len());
                    let part = tokens[position..to].to_vec();
                    let target = random.below(tokens.len());
                    tokens.splice(target..target, part);
                }
            }
        }
        tokens.concat()
    }
}

/// Checks that the span of each diagnostic is within the text, and that diagnostics can be rendered.
fn check_positions(text: &str, diagnostics: &[Diagnostic]) -> Result<(), String> {
    for d in diagnostics {
        let (start, end) = (d.span.start as usize, d.span.end as usize);
        if start > end || text.get(start..end).is_none() {
            return Err(format!("`{}` points outside the text", d.message));
        }
    }
    // Rendering takes longer than reading, so only the first and the last are rendered.
    for d in diagnostics.first().iter().chain(&diagnostics.last()) {
        d.render("fuzzed.m", text, false);
    }
    Ok(())
}

/// Reads a text. Returns true if the reader accepts it.
///
/// # Errors
/// The reader violates a property: a rejection without a diagnostic, a span outside the text, or a printed model that
/// cannot be read again.
pub fn check(text: &str, dialect: Dialect) -> Result<bool, String> {
    match read("fuzzed", text, dialect) {
        Err(errors) if errors.is_empty() => Err("rejected without a diagnostic".into()),
        Err(errors) => check_positions(text, &errors).map(|()| false),
        Ok(accepted) => {
            check_positions(text, &accepted.warnings)?;
            if let Ok(printed) = print(&accepted.model, Style::Plain) {
                if let Err(errors) = read("printed", &printed, Dialect::Any) {
                    let error = errors[0].render("printed.m", &printed, false);
                    return Err(format!("the printed model is rejected: {error}"));
                }
            }
            Ok(true)
        }
    }
}
