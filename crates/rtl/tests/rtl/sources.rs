//! Checks the structure of the SystemVerilog sources.

use cohkit_rtl::sources::SOURCES;

/// Maximum number of lines of a procedural block or a function, from its first line to its `end`.
const BLOCK_LINES: usize = 80;

/// Returns the number of lines of the block that begins in the first of these lines, if a block begins there.
fn block_lines(lines: &[&str]) -> Option<usize> {
    let first = lines.first()?.trim_start();
    let indent = &lines[0][..lines[0].len() - first.len()];
    let end = match first.split([' ', '\t', '@']).next()? {
        "function" => "endfunction",
        "task" => "endtask",
        "always_comb" | "always_ff" | "always" | "initial" if first.ends_with("begin") => "end",
        _ => return None,
    };
    let end = format!("{indent}{end}");
    lines
        .iter()
        .position(|line| *line == end)
        .map(|last| last + 1)
}

/// Long blocks are hard to review; comments count too.
#[test]
fn blocks_have_at_most_80_lines() {
    for (name, text) in SOURCES {
        let lines: Vec<&str> = text.lines().collect();
        for first in 0..lines.len() {
            let length = block_lines(&lines[first..]).unwrap_or(0);
            assert!(
                length <= BLOCK_LINES,
                "{name}:{}: a block of {length} lines",
                first + 1
            );
        }
    }
}
