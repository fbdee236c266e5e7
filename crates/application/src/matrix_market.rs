//! Graphs from files in Matrix Market's coordinate format: the entries of a square matrix are the edges.
//!
//! Entries are undirected: the two vertices of an entry are neighbours, and an entry on the diagonal adds no edge. The
//! value of an entry is ignored, but must be valid. The format is that of Boisvert, Pozo and Remington, "The Matrix
//! Market Exchange Formats" (NISTIR 5935, 1996).

use std::fmt;

/// Maximum number of vertices of a graph.
const MAX_VERTICES: u32 = 1 << 22;
/// Maximum number of entries of a file.
const MAX_ENTRIES: usize = 1 << 26;

/// A graph as a list of edges.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Edges {
    /// Number of vertices, numbered from 0.
    pub vertices: u32,
    /// The two ends of each edge; duplicate entries are kept.
    pub ends: Vec<(u32, u32)>,
}

impl fmt::Debug for Edges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} vertices, {} edges", self.vertices, self.ends.len())
    }
}

/// A syntax error, with its line number, from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the error, as a sentence.
    pub message: String,
}

/// Returns a syntax error.
fn syntax_error<T>(line: usize, message: impl Into<String>) -> Result<T, SyntaxError> {
    let message = message.into();
    Err(SyntaxError { line, message })
}

/// Numbers that follow row and column of an entry, by the field keyword of the banner.
const FIELDS: [(&str, usize); 4] = [("pattern", 0), ("integer", 1), ("real", 1), ("complex", 2)];
/// Symmetry keywords of the banner.
const SYMMETRIES: [&str; 4] = ["general", "symmetric", "skew-symmetric", "hermitian"];

/// Reads a graph from the text of a Matrix Market file.
///
/// # Errors
/// The first syntax error. The first line is not a banner of a matrix in coordinate format, the matrix is not square,
/// or it exceeds the limits. Or an entry lies outside the matrix or lacks the value that the banner declares, or the
/// number of entries is wrong.
pub fn read(text: &str) -> Result<Edges, SyntaxError> {
    let values = parse_banner(text.lines().next().unwrap_or_default())?;
    let mut lines = (1..).zip(text.lines()).skip(1).filter(|(_, line)| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('%')
    });
    let last_line = text.lines().count().max(1);
    let Some((line_number, sizes)) = lines.next() else {
        return syntax_error(last_line, "the file ends before its size line");
    };
    let sizes: Vec<Option<usize>> = (sizes.split_whitespace())
        .map(|size| size.parse().ok())
        .collect();
    let [Some(rows), Some(columns), Some(entries)] = sizes[..] else {
        return syntax_error(
            line_number,
            "expected rows, columns and entries, as three numbers",
        );
    };
    if rows != columns {
        let message = format!("a graph needs a square matrix, but this one is {rows} by {columns}");
        return syntax_error(line_number, message);
    }
    if rows == 0 || rows > MAX_VERTICES as usize {
        return syntax_error(
            line_number,
            format!("a graph has 1 to {MAX_VERTICES} vertices, not {rows}"),
        );
    }
    if entries > MAX_ENTRIES {
        return syntax_error(
            line_number,
            format!("a graph has at most {MAX_ENTRIES} entries, not {entries}"),
        );
    }
    let mut ends = Vec::new();
    for (line_number, line) in lines {
        if ends.len() == entries {
            return syntax_error(
                line_number,
                format!("the header declares {entries} entries, but the file has more"),
            );
        }
        ends.push(parse_entry(line_number, line, rows, values)?);
    }
    if ends.len() < entries {
        let message = format!(
            "the header declares {entries} entries, but the file has {}",
            ends.len()
        );
        return syntax_error(last_line, message);
    }
    let vertices = rows as u32;
    Ok(Edges { vertices, ends })
}

/// Parses the banner and returns the number of values per entry.
fn parse_banner(line: &str) -> Result<usize, SyntaxError> {
    let words: Vec<String> = line.split_whitespace().map(str::to_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["%%matrixmarket", "matrix", format, field, symmetry] = words[..] else {
        return syntax_error(
            1,
            "expected `%%MatrixMarket matrix coordinate`, followed by field and symmetry",
        );
    };
    if format != "coordinate" {
        return syntax_error(
            1,
            format!("the format is `{format}`; graphs are read from `coordinate`"),
        );
    }
    let Some((_, values)) = FIELDS.iter().find(|(name, _)| *name == field) else {
        let names = FIELDS.map(|(name, _)| name).join(", ");
        return syntax_error(1, format!("values are `{field}`; they may be {names}"));
    };
    if !SYMMETRIES.contains(&symmetry) {
        let names = SYMMETRIES.join(", ");
        return syntax_error(
            1,
            format!("the symmetry is `{symmetry}`; it may be {names}"),
        );
    }
    Ok(*values)
}

/// Parses an entry and returns its two vertices, from 0.
fn parse_entry(
    line_number: usize,
    line: &str,
    vertices: usize,
    values: usize,
) -> Result<(u32, u32), SyntaxError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [from, to, value @ ..] = &words[..] else {
        return syntax_error(line_number, "expected a row and a column");
    };
    let end = |word: &str| match word.parse::<usize>() {
        Ok(number) if (1..=vertices).contains(&number) => Ok(number as u32 - 1),
        _ => syntax_error(
            line_number,
            format!("`{word}` is not a row or column from 1 to {vertices}"),
        ),
    };
    let ends = (end(from)?, end(to)?);
    if value.len() != values {
        let message = format!(
            "expected {values} numbers after row and column, found {}",
            value.len()
        );
        return syntax_error(line_number, message);
    }
    match value.iter().find(|word| word.parse::<f64>().is_err()) {
        Some(word) => syntax_error(line_number, format!("`{word}` is no number")),
        None => Ok(ends),
    }
}

#[cfg(test)]
mod tests {
    use super::{read, SyntaxError};

    /// Comments, empty lines and spaces are skipped; each entry is an edge, with vertices from 0.
    #[test]
    fn matrix_entries_become_edges() {
        let text = "%%MatrixMarket matrix coordinate real symmetric\n% a comment\n\n3 3 3\n2 1 0.5\n 3 3 1e3\n3 2 -1\n";
        let read = read(text).unwrap();
        assert_eq!(
            (read.vertices, read.ends),
            (3, vec![(1, 0), (2, 2), (2, 1)])
        );
    }

    /// Each case has a file and the number of the wrong line with the message.
    #[test]
    fn matrix_market_errors_name_their_line() {
        const PATTERN: &str = "%%MatrixMarket matrix coordinate pattern general";
        let error_text = |text: &str| {
            let SyntaxError { line, message } = read(text).unwrap_err();
            format!("{line}: {message}")
        };
        for (text, expected) in [
            (
                "",
                "1: expected `%%MatrixMarket matrix coordinate`, followed by field and symmetry",
            ),
            (
                "%%MatrixMarket matrix array real general\n",
                "1: the format is `array`; graphs are read from `coordinate`",
            ),
            (
                "%%MatrixMarket matrix coordinate text general\n",
                "1: values are `text`; they may be pattern, integer, real, complex",
            ),
            (
                "%%MatrixMarket matrix coordinate real odd\n",
                "1: the symmetry is `odd`; it may be general, symmetric, skew-symmetric, hermitian",
            ),
            (
                &format!("{PATTERN}\n% nothing\n"),
                "2: the file ends before its size line",
            ),
            (
                &format!("{PATTERN}\n3 3\n"),
                "2: expected rows, columns and entries, as three numbers",
            ),
            (
                &format!("{PATTERN}\n3 4 0\n"),
                "2: a graph needs a square matrix, but this one is 3 by 4",
            ),
            (
                &format!("{PATTERN}\n0 0 0\n"),
                "2: a graph has 1 to 4194304 vertices, not 0",
            ),
            (
                &format!("{PATTERN}\n3 3 67108865\n"),
                "2: a graph has at most 67108864 entries, not 67108865",
            ),
            (
                &format!("{PATTERN}\n3 3 2\n1\n"),
                "3: expected a row and a column",
            ),
            (
                &format!("{PATTERN}\n3 3 2\n1 2\n\n4 1\n"),
                "5: `4` is not a row or column from 1 to 3",
            ),
            (
                &format!("{PATTERN}\n3 3 2\n1 0\n"),
                "3: `0` is not a row or column from 1 to 3",
            ),
            (
                &format!("{PATTERN}\n3 3 2\n1 2 7\n"),
                "3: expected 0 numbers after row and column, found 1",
            ),
            (
                &format!("{PATTERN}\n3 3 2\n1 2\n"),
                "3: the header declares 2 entries, but the file has 1",
            ),
            (
                &format!("{PATTERN}\n3 3 1\n1 2\n2 3\n"),
                "4: the header declares 1 entries, but the file has more",
            ),
            (
                "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 x\n",
                "3: `x` is no number",
            ),
        ] {
            assert_eq!(error_text(text), expected, "{text}");
        }
    }
}
