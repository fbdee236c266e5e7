//! Formatting of protocol files: indentation, spacing and aligned tables.
//!
//! The formatter keeps every line break, token and comment, and changes only blanks. It leaves the line structure to
//! the author, because rows, groups of messages and comments are arranged by meaning.
//!
//! - Two blanks per open brace. A continuation line keeps its indentation relative to the line that it continues.
//! - One blank between tokens; none inside parentheses and before `,`, `;` and `:`.
//! - Columns are aligned: cells of the rows of one agent, the second column of channels, messages, states and
//!   variables, and comments at the ends of adjacent lines. An entry longer than its column's limit does not widen the
//!   column.

use super::diagnostic::{check_is_text, Sink};
use super::lexer::{lex_lines, Token};
use super::Diagnostic;
use cohkit_diagnostics::Span;

/// For each column of a table, the maximum width of a cell that widens the column, in characters. The last cell of a
/// row has no column.
const MAX_CELL_WIDTHS: [usize; 3] = [24, 40, 72];
/// Maximum width of the first entry of a declaration that widens its column, in characters.
const MAX_NAME_WIDTH: usize = 24;
/// Maximum length of a line that affects the comment column of adjacent lines, in characters.
const MAX_ALIGNED_LINE: usize = 88;

/// Formats a protocol file. The result is a fixed point: formatting it again changes nothing.
///
/// # Errors
///
/// Characters and titles that are not tokens of the language, because they could not be preserved. A file with other
/// errors is formatted as far as its tokens go.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let mut sink = Sink::default();
    if !check_is_text(text, &mut sink) {
        return Err(sink.finish());
    }
    let mut lines = read_lines(text, &mut sink);
    let diagnostics = sink.finish();
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    indent(&mut lines);
    align_tables(&mut lines);
    align_declarations(&mut lines);
    Ok(print(&lines))
}

/// One line of a file, split into tokens.
struct Line<'t> {
    /// Blanks before the first token, in characters: first those of the source, later those of the result.
    indent: usize,
    /// Minimum indentation in the result, in characters.
    min_indent: usize,
    /// Tokens with their words.
    tokens: Vec<(Token, &'t str)>,
    /// Offsets of the tokens in the source, in characters from the first token.
    columns: Vec<usize>,
    /// Comment at the end of the line, with the `#`.
    comment: Option<&'t str>,
    /// Innermost block at the start of the line.
    block: Block,
    /// True if the line continues the one before.
    continues: bool,
    /// Formatted code, without indentation and comment.
    code: String,
}

/// Kind of a block, by the columns of its lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Block {
    /// The file itself, and blocks without columns.
    Other,
    /// Rows and other entries of an agent.
    Agent,
    /// `channels`, `states`: a name, then the rest.
    Names,
    /// `messages`, `variables`, `registers`: a name with a colon, then the rest.
    Typed,
}

impl Line<'_> {
    /// True if the line has no tokens; it may have a comment.
    fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// True if the line contains a token of this kind.
    fn has(&self, token: Token) -> bool {
        self.tokens.iter().any(|(kind, _)| *kind == token)
    }
}

/// Splits a file into lines of tokens, and finds the innermost block at the start of each.
fn read_lines<'t>(text: &'t str, sink: &mut Sink) -> Vec<Line<'t>> {
    let tokens = lex_lines(text, sink);
    let mut tokens = tokens.iter().peekable();
    let mut lines = Vec::new();
    let mut open_blocks: Vec<Block> = Vec::new();
    let mut start = 0;
    for line_text in text.split_inclusive('\n') {
        let end = start + line_text.len() as u32;
        let (mut line_tokens, mut columns) = (Vec::new(), Vec::new());
        let mut last_end = start;
        let mut first_start = None;
        while let Some((token, span)) = tokens.next_if(|(_, span)| span.start < end) {
            last_end = span.end;
            first_start.get_or_insert(span.start);
            line_tokens.push((*token, slice(text, *span)));
            let from = first_start.unwrap_or(span.start) as usize;
            columns.push(text[from..span.start as usize].chars().count());
        }
        let rest = text[last_end as usize..end as usize]
            .trim_matches([' ', '\t', '\r', '\n', '\u{c}', '\u{feff}']);
        let leading = first_start.map_or("", |first_start| {
            &text[start as usize..first_start as usize]
        });
        let block = open_blocks.last().copied().unwrap_or(Block::Other);
        for index in 0..line_tokens.len() {
            match line_tokens[index].0 {
                Token::OpenBrace => open_blocks.push(opened_block(&line_tokens[..index], block)),
                Token::CloseBrace => drop(open_blocks.pop()),
                _ => {}
            }
        }
        lines.push(Line {
            indent: leading
                .chars()
                .map(|blank| if blank == '\t' { 4 } else { 1 })
                .sum(),
            min_indent: 0,
            tokens: line_tokens,
            columns,
            comment: (!rest.is_empty()).then_some(rest),
            block,
            continues: false,
            code: String::new(),
        });
        start = end;
    }
    lines
}

/// Text of a span.
fn slice(text: &str, span: Span) -> &str {
    &text[span.start as usize..span.end as usize]
}

/// Block that a brace opens, given the tokens before it on its line.
fn opened_block(preceding: &[(Token, &str)], outer: Block) -> Block {
    // First word of the statement: after the last `;` or brace.
    let ends_statement = |token: &Token| {
        matches!(
            token,
            Token::Semicolon | Token::OpenBrace | Token::CloseBrace
        )
    };
    let start = preceding
        .iter()
        .rposition(|(token, _)| ends_statement(token))
        .map_or(0, |at| at + 1);
    let statement = &preceding[start..];
    if statement.iter().any(|(token, _)| *token == Token::Bar) {
        return Block::Other;
    }
    match (statement.first().map(|(_, word)| *word), outer) {
        (Some("remote" | "home"), Block::Other) => Block::Agent,
        (Some("channels"), Block::Other) | (Some("states"), Block::Agent) => Block::Names,
        (Some("messages"), Block::Other) | (Some("variables" | "registers"), Block::Agent) => {
            Block::Typed
        }
        _ => Block::Other,
    }
}

/// Sets the indentation of every line, and formats its tokens.
fn indent(lines: &mut [Line]) {
    let mut depth = 0_usize;
    // Parentheses left open by earlier lines, and the shift of the line that is continued.
    let mut parentheses = 0_usize;
    let mut shift = 0_isize;
    let mut base = 0;
    let mut line_continues = false;
    for line in lines.iter_mut() {
        let first = line.tokens.first().map(|(token, _)| *token);
        let Some(first) = first else {
            line.indent = if line.comment.is_some() { 2 * depth } else { 0 };
            continue;
        };
        let closing_braces = line
            .tokens
            .iter()
            .take_while(|(token, _)| *token == Token::CloseBrace)
            .count();
        line.continues = line_continues || parentheses > 0 || first == Token::Bar;
        if line.continues {
            line.indent = line.indent.saturating_add_signed(shift);
            line.min_indent = base + 2;
        } else {
            base = 2 * depth.saturating_sub(closing_braces);
            shift = base as isize - line.indent as isize;
            line.indent = base;
        }
        for (token, _) in &line.tokens {
            match token {
                Token::OpenBrace => depth += 1,
                Token::CloseBrace => depth = depth.saturating_sub(1),
                Token::Open | Token::OpenBracket => parentheses += 1,
                Token::Close | Token::CloseBracket => parentheses = parentheses.saturating_sub(1),
                _ => {}
            }
        }
        let bars = line
            .tokens
            .iter()
            .filter(|(token, _)| *token == Token::Bar)
            .count();
        line_continues = match line.tokens.last() {
            Some((Token::Comma, _)) => true,
            // The event of the row follows on the next line.
            Some((Token::Bar, _)) => bars == 1 && !line.continues,
            _ => false,
        };
        line.code = join_tokens(&line.tokens);
    }
}

/// Joins the tokens of a line with one blank or none between them.
fn join_tokens(tokens: &[(Token, &str)]) -> String {
    let mut code = String::new();
    for (at, (token, word)) in tokens.iter().enumerate() {
        if at > 0 && needs_blank(&tokens[..at], *token) {
            code.push(' ');
        }
        code.push_str(word);
    }
    code
}

/// Words that a parenthesis follows without a blank: functions.
const FUNCTION_WORDS: [&str; 5] = ["count", "in_flight", "others", "held", "all"];

/// Returns true if a blank separates `token` from the tokens before it.
fn needs_blank(preceding: &[(Token, &str)], token: Token) -> bool {
    let (last, word) = preceding[preceding.len() - 1];
    let before_last = preceding.len().checked_sub(2).map(|at| preceding[at].1);
    match (last, token) {
        (Token::OpenBrace, Token::CloseBrace) => false,
        (Token::Open | Token::OpenBracket | Token::To | Token::Dot, _) => false,
        (
            _,
            Token::Comma | Token::Semicolon | Token::Colon | Token::Close | Token::CloseBracket,
        ) => false,
        (_, Token::To | Token::Dot) => false,
        // A request in a policy: `on GetS(r)`.
        (Token::Word, Token::Open) => !FUNCTION_WORDS.contains(&word) && before_last != Some("on"),
        // An index, `sent[home]`, but not the option of a local operation, `clean [lock]`.
        (Token::Word, Token::OpenBracket) => before_last == Some("local"),
        (Token::CloseBracket, Token::OpenBracket) => false,
        _ => true,
    }
}

/// Aligns the cells of all rows of each agent.
fn align_tables(lines: &mut [Line]) {
    let mut start = 0;
    while start < lines.len() {
        let is_agent = lines[start].block == Block::Agent;
        let row_count = lines[start..]
            .iter()
            .take_while(|line| line.block != Block::Other)
            .count();
        if is_agent && row_count > 0 {
            align_table(&mut lines[start..start + row_count]);
            start += row_count;
        } else {
            start += 1;
        }
    }
}

/// Aligns the cells of the rows of one agent.
fn align_table(lines: &mut [Line]) {
    let cells: Vec<Option<Vec<String>>> = (0..lines.len()).map(|at| cells(lines, at)).collect();
    let mut widths = [0; MAX_CELL_WIDTHS.len()];
    for row in cells.iter().flatten() {
        for (column, cell) in row[..row.len() - 1].iter().enumerate().take(widths.len()) {
            let width = cell.chars().count();
            if width <= MAX_CELL_WIDTHS[column] {
                widths[column] = widths[column].max(width);
            }
        }
    }
    for (line, row) in lines.iter_mut().zip(cells) {
        let Some(row) = row else { continue };
        let mut code = String::new();
        let mut bar_column = 0;
        for (column, cell) in row.iter().enumerate() {
            if column > 0 {
                let width = code.chars().count();
                code.extend(std::iter::repeat_n(' ', blanks_before(bar_column, width)));
                code.push_str("| ");
                bar_column += 2;
            }
            code.push_str(cell);
            bar_column += widths.get(column).map_or(0, |width| width + 1);
        }
        line.code = code.trim_end().to_string();
        if line.is_empty() {
            // The cells replace the comment, a heading of the table.
            line.comment = None;
        }
    }
}

/// Returns the number of blanks before a bar that belongs in this column, after `width` characters.
fn blanks_before(bar_column: usize, width: usize) -> usize {
    match width {
        0 => bar_column,
        _ => bar_column.saturating_sub(width).max(1),
    }
}

/// Cells of the line, if it is a single row or the heading of a table in a comment.
fn cells(lines: &[Line], index: usize) -> Option<Vec<String>> {
    let line = &lines[index];
    if line.block != Block::Agent || line.continues {
        return None;
    }
    if line.is_empty() {
        return heading(line.comment?).filter(|_| {
            lines
                .get(index + 1)
                .is_some_and(|next| next.has(Token::Bar))
        });
    }
    // Braces of a loop in the actions are balanced. Unbalanced braces open or close a block, so the line is not a row.
    let is_bar = |(token, _): &(Token, &str)| *token == Token::Bar;
    if !line.has(Token::Bar)
        || line.has(Token::Semicolon)
        || !line.tokens.last().is_some_and(|_| is_balanced(line))
    {
        return None;
    }
    Some(line.tokens.split(is_bar).map(join_tokens).collect())
}

/// Returns true if every brace of the line is closed in it.
fn is_balanced(line: &Line) -> bool {
    let count = |kind| {
        line.tokens
            .iter()
            .filter(|(token, _)| *token == kind)
            .count()
    };
    count(Token::OpenBrace) == count(Token::CloseBrace)
}

/// Returns the cells of a table heading in a comment, such as `# state | event | actions | next`.
fn heading(comment: &str) -> Option<Vec<String>> {
    let cells: Vec<&str> = comment.split('|').map(str::trim).collect();
    let is_short = |cell: &&str| cell.split(' ').count() <= 2;
    let is_heading = cells.len() >= 3 && cells.iter().all(is_short);
    is_heading.then(|| cells.iter().map(ToString::to_string).collect())
}

/// Aligns what follows the names of channels, messages, states and variables.
fn align_declarations(lines: &mut [Line]) {
    let mut start = 0;
    while start < lines.len() {
        let block = lines[start].block;
        let line_count = lines[start..]
            .iter()
            .take_while(|line| line.block == block)
            .count();
        if matches!(block, Block::Names | Block::Typed) {
            align_entries(&mut lines[start..start + line_count], block);
        }
        start += line_count;
    }
}

/// Aligns the entries of one block.
fn align_entries(lines: &mut [Line], block: Block) {
    let names: Vec<Option<usize>> = lines.iter().map(|line| name_length(line, block)).collect();
    let name_of = |line: &Line, length: usize| join_tokens(&line.tokens[..length]);
    let width = lines
        .iter()
        .zip(&names)
        .filter_map(|(line, name)| Some(name_of(line, (*name)?).chars().count()))
        .filter(|width| *width <= MAX_NAME_WIDTH)
        .max()
        .unwrap_or(0);
    let mut shift = 0;
    for (line, name) in lines.iter_mut().zip(names) {
        if let Some(length) = name {
            let (name, rest) = (name_of(line, length), join_tokens(&line.tokens[length..]));
            line.code = format!("{name:width$} {rest}");
            // The continuation of a list stays aligned with its start.
            let rest_column = name.chars().count().max(width) + 1;
            shift = rest_column as isize - line.columns[length] as isize;
        } else if line.continues {
            line.indent = line.indent.saturating_add_signed(shift);
        } else {
            shift = 0;
        }
    }
}

/// Number of tokens of a declaration's name, if the line holds exactly one declaration with more than its name.
fn name_length(line: &Line, block: Block) -> Option<usize> {
    if line.continues || line.has(Token::Semicolon) || !is_balanced(line) {
        return None;
    }
    let words = &line.tokens;
    let name = match block {
        Block::Typed => 1 + words.iter().position(|(token, _)| *token == Token::Colon)?,
        _ if matches!(words.first(), Some((_, "ordered"))) => return None,
        // A channel with its class: `ack as acknowledgement`.
        _ if matches!(words.get(1), Some((_, "as"))) => 3,
        _ => 1,
    };
    let next_token = words.get(name).map(|(token, _)| *token);
    next_token
        .filter(|token| *token != Token::Comma)
        .map(|_| name)
}

/// Joins the lines of the file, with comments at the ends of adjacent lines aligned.
fn print(lines: &[Line]) -> String {
    let mut text = String::new();
    let mut blank = 0;
    for (at, line) in lines.iter().enumerate() {
        if line.code.is_empty() && line.comment.is_none() {
            blank += 1;
            continue;
        }
        if !text.is_empty() {
            text.extend(std::iter::repeat_n('\n', blank.min(1)));
        }
        blank = 0;
        text.extend(std::iter::repeat_n(' ', line.indent.max(line.min_indent)));
        text.push_str(&line.code);
        if let Some(comment) = line.comment.filter(|_| line.code.is_empty()) {
            text.push_str(comment);
        } else if let Some(comment) = line.comment {
            let column = comment_column(lines, at).max(length(line) + 2);
            text.extend(std::iter::repeat_n(' ', column - length(line)));
            text.push_str(comment);
        }
        text.push('\n');
    }
    text
}

/// Length of a line's code, in characters.
fn length(line: &Line) -> usize {
    line.indent.max(line.min_indent) + line.code.chars().count()
}

/// Column of the comments of a line and its neighbours.
fn comment_column(lines: &[Line], index: usize) -> usize {
    let has_comment = |line: &&Line| line.comment.is_some() && !line.is_empty();
    let above = lines[..index].iter().rev().take_while(has_comment);
    let below = lines[index..].iter().take_while(has_comment);
    let lengths = above.chain(below).map(length);
    lengths
        .filter(|length| *length <= MAX_ALIGNED_LINE)
        .max()
        .unwrap_or(0)
        + 2
}

#[cfg(test)]
mod tests {
    use super::super::diagnostic::Sink;
    use super::{format, read_lines};
    use proptest::prelude::*;

    const SHIPPED: [(&str, &str); 5] = [
        ("msi", include_str!("../../../../protocols/msi.coh")),
        ("eci", include_str!("../../../../protocols/eci.coh")),
        (
            "eci-both",
            include_str!("../../../../protocols/eci-both.coh"),
        ),
        ("token", include_str!("../../../../protocols/token.coh")),
        ("cord", include_str!("../../../../ordering/cord.coh")),
    ];

    /// Words of all tokens and comments, in order; comments without their blanks.
    fn words(text: &str) -> Vec<String> {
        let mut result = Vec::new();
        for line in read_lines(text, &mut Sink::default()) {
            result.extend(line.tokens.iter().map(|(_, word)| word.to_string()));
            result.extend(
                line.comment
                    .map(|comment| comment.split_whitespace().collect()),
            );
        }
        result
    }

    fn formatted(text: &str) -> String {
        format(text).expect("file without unknown characters")
    }

    /// The layout of a small file with every kind of column.
    #[test]
    fn rows_and_declarations_are_aligned() {
        let text = "protocol p \"t\"\nremote cache{\nstates{\nI\nLong reads # a copy\nIM waits Data # none\n}\n\
                    # state|event|actions|next\nI|load store if n>0|send GetS( n=1 )|Long\n\n\n\
                    Long IM|\nData|sharers:={sender},x[ sender ]+=1|stay\n}\n";
        let expected = "protocol p \"t\"\nremote cache {\n  states {\n    I\n    Long reads       # a copy\n    IM   waits Data  # none\n  }\n  \
                        # state | event               | actions           | next\n  I       | load store if n > 0 | send GetS (n = 1) | Long\n\n  \
                        Long IM |\n    Data | sharers := { sender }, x[sender] += 1 | stay\n}\n";
        assert_eq!(formatted(text), expected);
    }

    /// Formatting changes no word, and formatting twice is formatting once.
    #[test]
    fn shipped_files_keep_their_words_and_are_stable() {
        for (name, text) in SHIPPED {
            let result = formatted(text);
            assert_eq!(words(text), words(&result), "{name}");
            assert_eq!(formatted(&result), result, "{name}");
        }
    }

    #[test]
    fn unknown_characters_are_reported() {
        let errors = format("protocol p\nremote c { I | load ? | I }")
            .expect_err("error for the character `?`");
        assert_eq!(errors[0].code, super::super::Code::Character);
    }

    proptest! {
        /// Any number of blanks, and line breaks anywhere: the words are preserved, and formatting is idempotent.
        #[test]
        fn formatting_any_layout_keeps_its_words(file_index in 0..SHIPPED.len(), start in 0..4000_usize, blanks in prop::collection::vec(0..9_usize, 1..40)) {
            let text = SHIPPED[file_index].1;
            let mut blanks = blanks.into_iter().cycle();
            let rest: String = text.chars().skip(start).collect();
            let mut relaid = String::new();
            for character in rest.chars() {
                match character {
                    ' ' => match blanks.next() {
                        Some(0) => relaid.push('\n'),
                        Some(7) => relaid.push('\t'),
                        Some(8) => relaid.push_str(" # noted\n"),
                        Some(count) => relaid.extend(std::iter::repeat_n(' ', count)),
                        None => relaid.push(' '),
                    },
                    other_character => relaid.push(other_character),
                }
            }
            // A title split by a line break is not a token.
            if let Ok(result) = format(&relaid) {
                prop_assert_eq!(words(&relaid), words(&result));
                prop_assert_eq!(format(&result).expect("formatted file with the same tokens"), result);
            }
        }
    }
}
