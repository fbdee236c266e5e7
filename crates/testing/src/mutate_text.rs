//! Inputs of the fuzzer of protocol files, and the properties that must hold for each. An input is a valid or almost
//! valid file with some random edits.

use cohkit_base::random::SplitMix64;
use cohkit_diagnostics::Span;
use cohkit_protocol::text::{parse, Diagnostic};

/// Shipped files, from which one in a hundred inputs starts, as they take longer.
const SHIPPED_PROTOCOLS: [&str; 3] = [
    include_str!("../../../protocols/eci.coh"),
    include_str!("../../../protocols/msi.coh"),
    include_str!("../../../protocols/msi-policy.coh"),
];
/// Small files, from which six in ten inputs start. The last one is invalid.
const SMALL_PROTOCOLS: [&str; 3] = [
    "protocol a
line 64 bytes
channels { request remote -> home; grant home -> remote; ordered grant }
messages { request: G, P (line, dirty); grant: D (line, n: 0..3), A }
remote r {
  states { I; V reads writes dirty; W waits D; X holds waits A }
  variables { c: 0..7 }
  I | load store | send G | W
  W | D if n == 0 and not c > 2 | c += n | V
  W | D | c := 0 | V
  V | evict | send P | X
  X | A | | I
}
home {
  states { I; V }
  variables { o: remote; s: set of remote }
  I | G | send D (n = 1), o := sender, s := { sender } | V
  V | G | stall
  V | P if sender == o or sender in s | write, send A, s -= { sender } | I
}
system x { remotes 2; lines 1 }
",
    "protocol b
line 64 bytes
channels { request remote -> home; victim remote -> home; answer remote -> home; forward home -> remote; grant home -> remote }
messages { request: G, O (store); victim: P (line, dirty); answer: N; forward: F; grant: D (line), K }
remote r {
  states { I; M reads writes dirty; W waits D; X waits K }
  I | store | send G | W
  I | write_line | send O | X
  W | D | | M
  X | K | done | I
  M | evict | send P | I
  M I | F | send N | I
  W X | F | send N | stay
}
home {
  on G(r) { ensure others(r) == I; grant r M with D if others(r) == I; grant r M with D }
  on O(r) { ensure others(r) == I; write; answer r with K }
  reach I with F
  local clean [lock] { ensure all == I }
  local unlock
  stall possible
}
invariant one: count(M) <= 1 and (locked implies in_flight(D) < 3)
",
    "protocol c
remote r { states { I; S reads }
  I | load | | I
  S | D | done, x := y + 1 | stay
}
",
];
/// Words to insert, including names that the files use.
const WORDS: [&str; 69] = [
    "I",
    "M",
    "W",
    "G",
    "D",
    "P",
    "r",
    "x",
    "0",
    "1",
    "8",
    "65536",
    "99999999999999999999",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    "|",
    ":",
    ";",
    ":=",
    "+=",
    "-=",
    "==",
    "!=",
    "<=",
    "->",
    "..",
    "\"",
    "#",
    "\n",
    " ",
    "\u{e9}",
    "\u{0}",
    "stay",
    "leave",
    "stall",
    "aside",
    "defer",
    "deferred",
    "never",
    "unreachable",
    "refuse",
    "send",
    "done",
    "write",
    "if",
    "and",
    "not",
    "or",
    "in",
    "count",
    "sender",
    "self",
    "none",
    "waits",
    "holds",
    "reads",
    "lock",
    "unlock",
    "home",
    "remote",
    "states",
    "protocol",
    "channels",
    "load",
];

/// Pseudo-random numbers of a seed.
pub struct Random(SplitMix64);

impl Random {
    /// Returns a number below `limit`; 0 counts as 1.
    fn below(&mut self, limit: usize) -> usize {
        self.0.modulo(limit.max(1) as u64) as usize
    }
}

/// Files from which mutations start.
pub struct Corpus {
    /// Lines to insert: every line of every file.
    lines: Vec<&'static str>,
}

impl Corpus {
    /// Creates the corpus; one is enough for all inputs.
    pub fn load() -> Self {
        Corpus {
            lines: SHIPPED_PROTOCOLS
                .iter()
                .chain(&SMALL_PROTOCOLS)
                .flat_map(|text| text.lines())
                .collect(),
        }
    }

    /// Returns the input with this number; equal numbers give equal inputs.
    pub fn input(&self, number: u64) -> String {
        let mut random = Random(SplitMix64::new(number));
        let mut text = match random.below(100) {
            0 => SHIPPED_PROTOCOLS[random.below(SHIPPED_PROTOCOLS.len())].to_string(),
            1..=30 => SMALL_PROTOCOLS[random.below(2)].to_string(),
            31..=60 => SMALL_PROTOCOLS[2].to_string(),
            _ => (0..1 + random.below(4))
                .map(|_| format!("{}\n", self.lines[random.below(self.lines.len())]))
                .collect(),
        };
        for _ in 0..random.below(6) {
            self.change(&mut text, &mut random);
        }
        text
    }

    /// Makes one random edit: removes, repeats, truncates, inserts or replaces a piece of the text.
    fn change(&self, text: &mut String, random: &mut Random) {
        let mut pick_position = |text: &str| {
            let mut position = random.below(text.len() + 1);
            while !text.is_char_boundary(position) {
                position -= 1;
            }
            position
        };
        let (first, second) = (pick_position(text), pick_position(text));
        let (start, end) = (first.min(second), first.max(second));
        // Most changes are local, because long ones leave little of the file.
        let near = text[start..end]
            .char_indices()
            .nth(12)
            .map_or(end, |(length, _)| start + length);
        match random.below(8) {
            0 => text.replace_range(start..near, ""),
            1 => {
                let copy = text[start..near].to_string();
                text.insert_str(start, &copy);
            }
            2 => text.truncate(start),
            3 => text.insert_str(first, self.lines[random.below(self.lines.len())]),
            4 => {
                // Replace one word by another of the same file.
                let words: Vec<&str> = text
                    .split(|letter: char| !letter.is_ascii_alphanumeric())
                    .filter(|word| !word.is_empty())
                    .collect();
                if let (Some(&new), Some(&old)) = (
                    words.get(random.below(words.len())),
                    words.get(random.below(words.len())),
                ) {
                    let position = old.as_ptr() as usize - text.as_ptr() as usize;
                    *text = format!(
                        "{}{new}{}",
                        &text[..position],
                        &text[position + old.len()..]
                    );
                }
            }
            _ => text.insert_str(first, &format!(" {} ", WORDS[random.below(WORDS.len())])),
        }
    }
}

/// Parses an input and checks the properties; returns true if the input has no errors. If `thorough`, diagnostics are
/// also rendered, and the meaning of a valid file is compared with that of the same file in another layout.
///
/// # Errors
///
/// The property that does not hold.
pub fn check(text: &str, thorough: bool) -> Result<bool, String> {
    let is_valid = |span: Span| {
        let (start, end) = (span.start as usize, span.end as usize);
        start <= end && text.is_char_boundary(start) && text.is_char_boundary(end)
    };
    match parse(text) {
        Err(diagnostics) => {
            if diagnostics.is_empty() || diagnostics.len() > Diagnostic::MAX_COUNT {
                return Err(format!("{} diagnostics", diagnostics.len()));
            }
            if !diagnostics.is_sorted_by_key(|diagnostic| diagnostic.span) {
                return Err("diagnostics not in the order of the text".into());
            }
            for diagnostic in &diagnostics {
                let spans = diagnostic.notes.iter().filter_map(|(span, _)| *span);
                if diagnostic.message.is_empty() || !spans.chain([diagnostic.span]).all(is_valid) {
                    return Err(format!("{diagnostic:?}"));
                }
                if thorough
                    && !diagnostic
                        .render("fuzz.coh", text, false)
                        .contains("fuzz.coh")
                {
                    return Err("the place is not shown".into());
                }
            }
            Ok(false)
        }
        Ok(_) if !thorough => Ok(true),
        Ok(protocol) => {
            // Comments, blank lines and tabs have no meaning.
            let reformatted = text.replace('\n', "\t# comment | ( {\n\n \t");
            let reformatted = parse(&reformatted)
                .map_err(|diagnostics| format!("not with comments: {}", diagnostics[0].message))?;
            let (protocol, reformatted) = (format!("{protocol:?}"), format!("{reformatted:?}"));
            let (protocol, spans) = split_spans(&protocol);
            if protocol != split_spans(&reformatted).0 {
                return Err("another meaning with comments".into());
            }
            if !spans.into_iter().all(is_valid) {
                return Err("a span outside the text".into());
            }
            Ok(true)
        }
    }
}

/// Splits the debug output of a protocol into its meaning and its spans.
fn split_spans(printed: &str) -> (String, Vec<Span>) {
    let mut parts = printed.split("Span { start: ");
    let mut meaning = parts.next().unwrap_or("").to_string();
    let mut spans = Vec::new();
    for part in parts {
        let (numbers, rest) = part.split_once(" }").unwrap_or((part, ""));
        let mut numbers = numbers
            .split(", end: ")
            .map(|number| number.parse().unwrap_or(u32::MAX));
        spans.push(Span {
            start: numbers.next().unwrap_or(u32::MAX),
            end: numbers.next().unwrap_or(u32::MAX),
        });
        meaning.push_str(rest);
    }
    (meaning, spans)
}
