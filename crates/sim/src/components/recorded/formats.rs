//! Trace formats of other tools, read line by line or instruction by instruction.

use std::ops::Range;

/// Bytes of an instruction in a ChampSim trace.
pub(super) const INSTRUCTION_BYTES: usize = 64;

/// Maximum number of bytes of one access of a foreign trace. An access has one entry for each line that it touches.
const MAX_ACCESS_BYTES: u64 = 1 << 16;

/// A format of traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Cohkit's own text or records, described in `docs/workloads.md`.
    Cohkit,
    /// Text of gem5's `util/decode_packet_trace.py`.
    Gem5,
    /// Ramulator's traces of DRAM requests and of CPUs, and the loads and stores of Ramulator 2.
    Ramulator,
    /// DRAMsim3's traces of requests.
    Dramsim3,
    /// Instructions of ChampSim.
    Champsim,
    /// Output of Valgrind's `lackey --trace-mem=yes`.
    Lackey,
    /// Dinero's `din` format, and the extended one of Dinero IV.
    Dinero,
    /// Output of Pin's example `pinatrace`.
    Pin,
}

impl Format {
    /// The formats of other tools.
    pub const FOREIGN: [Format; 7] = [
        Format::Gem5,
        Format::Ramulator,
        Format::Dramsim3,
        Format::Champsim,
        Format::Lackey,
        Format::Dinero,
        Format::Pin,
    ];

    /// Name of the tool, for messages.
    pub fn title(self) -> &'static str {
        match self {
            Format::Cohkit => "cohkit",
            Format::Gem5 => "gem5",
            Format::Ramulator => "Ramulator",
            Format::Dramsim3 => "DRAMsim3",
            Format::Champsim => "ChampSim",
            Format::Lackey => "Valgrind's lackey",
            Format::Dinero => "Dinero",
            Format::Pin => "Pin's pinatrace",
        }
    }

    /// Name of workloads in this format, before the colon.
    pub fn workload(self) -> &'static str {
        match self {
            Format::Cohkit => "trace",
            Format::Gem5 => "gem5-trace",
            Format::Ramulator => "ramulator-trace",
            Format::Dramsim3 => "dramsim3-trace",
            Format::Champsim => "champsim-trace",
            Format::Lackey => "lackey-trace",
            Format::Dinero => "dinero-trace",
            Format::Pin => "pin-trace",
        }
    }

    /// Example of a line, or a description of a record.
    pub fn example(self) -> &'static str {
        match self {
            Format::Cohkit => "0 load 0x1f80",
            Format::Gem5 => "r,8064,64,0,1500",
            Format::Ramulator => "0x1f80 R",
            Format::Dramsim3 => "0x1f80 READ 12",
            Format::Champsim => "instructions of 64 bytes",
            Format::Lackey => " L 1f80,8",
            Format::Dinero => "0 1f80",
            Format::Pin => "0x401000: R 0x1f80",
        }
    }

    /// Returns the foreign formats in which this line of text has an access.
    pub(super) fn of_line(line: &str) -> impl Iterator<Item = Format> + '_ {
        let formats = Format::FOREIGN.into_iter();
        formats.filter(|format| {
            format
                .parse_line(line)
                .is_ok_and(|accesses| accesses.count > 0)
        })
    }
}

/// One access of a foreign trace.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct ForeignAccess {
    /// True for a store.
    pub stores: bool,
    /// Address in bytes, as in the trace.
    pub address: u64,
    /// Size in bytes; 1 if the format does not give one. Formats may give 0, which counts as 1.
    pub size: u64,
}

/// The accesses of a line or an instruction, in their order.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct Accesses {
    /// Accesses; only the first `count` are meaningful. An instruction of ChampSim has up to four loads and two
    /// stores.
    pub list: [ForeignAccess; 6],
    /// Number of accesses in `list`.
    pub count: usize,
    /// Start time in picoseconds, from an origin of the trace's own.
    pub time: Option<u64>,
}

impl Accesses {
    /// Appends an access of `size` bytes. There must be room for it.
    fn push(&mut self, stores: bool, address: u64, size: u64) {
        let access = ForeignAccess {
            stores,
            address,
            size,
        };
        self.list[self.count] = access;
        self.count += 1;
    }

    /// Creates a list of one access, without a time.
    fn single(stores: bool, address: u64, size: u64) -> Accesses {
        let mut accesses = Accesses::default();
        accesses.push(stores, address, size);
        accesses
    }
}

/// Error in a line: range of the invalid part in bytes, and the expected input.
type TextError = (Range<usize>, String);

/// A line of text that is parsed field by field.
struct Fields<'a> {
    /// The whole line.
    line: &'a str,
    /// Part of the line that is still to be parsed.
    rest: &'a str,
    /// Characters that end a field.
    separators: &'static [char],
}

impl<'a> Fields<'a> {
    /// Starts before the first field of a line.
    fn new(line: &'a str, separators: &'static [char]) -> Fields<'a> {
        let rest = line.trim();
        Fields {
            line,
            rest,
            separators,
        }
    }

    /// Returns the next field without surrounding blanks; `None` at the end of the line.
    fn next(&mut self) -> Option<&'a str> {
        let trimmed = self.rest.trim_start();
        if trimmed.is_empty() {
            self.rest = trimmed;
            return None;
        }
        let end = trimmed.find(self.separators).unwrap_or(trimmed.len());
        let (field, rest) = trimmed.split_at(end);
        self.rest = rest.strip_prefix(self.separators).unwrap_or(rest);
        Some(field.trim_end())
    }

    /// Returns the position of a field in the line, in bytes.
    fn range_of(&self, field: &str) -> Range<usize> {
        let begin = field.as_ptr() as usize - self.line.as_ptr() as usize;
        begin..begin + field.len()
    }

    /// Returns an error about an invalid field. `expected` is a noun without an article.
    fn invalid<T>(&self, field: &str, expected: &str) -> Result<T, TextError> {
        Err((self.range_of(field), format!("`{field}` is no {expected}")))
    }

    /// Returns an error about a missing field, at the end of the line. `name` has an article.
    fn missing_field<T>(&self, name: &str) -> Result<T, TextError> {
        let end = self.line.trim_end().len();
        Err((end..end, format!("{name} is missing")))
    }

    /// Parses the next field as a number; `name` is its name with an article.
    fn number(&mut self, name: &str, radix: u32) -> Result<u64, TextError> {
        let Some(field) = self.next() else {
            return self.missing_field(name);
        };
        self.parse_field(field, name, radix)
    }

    /// Parses a field as a number; `name` is its name with an article.
    fn parse_field(&self, field: &str, name: &str, radix: u32) -> Result<u64, TextError> {
        let noun = name.split_once(' ').map_or(name, |(_, noun)| noun);
        match parse(field, radix) {
            Some(number) => Ok(number),
            None => self.invalid(field, noun),
        }
    }

    /// Rejects further fields.
    fn expect_end(&mut self) -> Result<(), TextError> {
        match self.next() {
            None => Ok(()),
            Some(extra) => Err((self.range_of(extra), "expected the end of the line".into())),
        }
    }
}

/// Parses an unsigned number. With the prefix `0x` it is hexadecimal in any case.
fn parse(field: &str, radix: u32) -> Option<u64> {
    let prefixed = field.strip_prefix("0x").or(field.strip_prefix("0X"));
    let (digits, radix) = prefixed.map_or((field, radix), |digits| (digits, 16));
    match digits.starts_with(|first: char| first.is_digit(radix)) {
        true => u64::from_str_radix(digits, radix).ok(),
        false => None,
    }
}

impl Format {
    /// Reads a line of text. Returns its accesses, possibly none.
    pub(super) fn parse_line(self, line: &str) -> Result<Accesses, TextError> {
        let accesses = match self {
            Format::Gem5 => parse_gem5(line),
            Format::Ramulator => parse_ramulator(line),
            Format::Dramsim3 => parse_dramsim3(line),
            Format::Lackey => parse_lackey(line),
            Format::Dinero => parse_dinero(line),
            Format::Pin => parse_pin(line),
            Format::Cohkit | Format::Champsim => Ok(Accesses::default()),
        }?;
        let list = &accesses.list[..accesses.count];
        match list.iter().find(|access| access.size > MAX_ACCESS_BYTES) {
            None => Ok(accesses),
            Some(access) => {
                let what = format!(
                    "an access has at most {MAX_ACCESS_BYTES} bytes, not {}",
                    access.size
                );
                Err((0..line.len(), what))
            }
        }
    }
}

/// Format: `[ID,]COMMAND,ADDRESS,SIZE,[FLAGS,]TICK[,PC]`, in decimal. A tick is a picosecond. Commands other than reads
/// and writes are `u`.
fn parse_gem5(line: &str) -> Result<Accesses, TextError> {
    let mut fields = Fields::new(line, &[',']);
    let Some(mut command) = fields.next() else {
        return Ok(Accesses::default());
    };
    if parse(command, 10).is_some() {
        let Some(next) = fields.next() else {
            return fields.missing_field("a command (r, w or u)");
        };
        command = next;
    }
    let stores = match command {
        "r" => Some(false),
        "w" => Some(true),
        "u" => None,
        _ => return fields.invalid(command, "command; there are r, w and u"),
    };
    let address = fields.number("an address", 10)?;
    let size = fields.number("a size", 10)?;
    let first = fields.number("a tick", 10)?;
    // A single number is the tick. Of several, the first is for flags.
    let tick = match fields.next() {
        None => first,
        Some(field) => fields.parse_field(field, "a tick", 10)?,
    };
    if let Some(pc) = fields.next() {
        fields.parse_field(pc, "a program counter", 10)?;
    }
    fields.expect_end()?;
    let mut accesses = Accesses::default();
    if let Some(stores) = stores {
        accesses = Accesses::single(stores, address, size);
        accesses.time = Some(tick);
    }
    Ok(accesses)
}

/// `ADDRESS R|W` in hexadecimal, `INSTRUCTIONS ADDRESS [WRITEBACK]` in decimal, or `LD|ST ADDRESS`.
fn parse_ramulator(line: &str) -> Result<Accesses, TextError> {
    let mut fields = Fields::new(line, &[' ', '\t']);
    let Some(first) = fields.next() else {
        return Ok(Accesses::default());
    };
    if let "LD" | "ST" = first {
        let address = fields.number("an address", 10)?;
        fields.expect_end()?;
        return Ok(Accesses::single(first == "ST", address, 1));
    }
    let Some(second) = fields.next() else {
        return fields.missing_field("R, W, or an address");
    };
    if let "R" | "W" = second {
        let address = fields.parse_field(first, "an address", 16)?;
        fields.expect_end()?;
        return Ok(Accesses::single(second == "W", address, 1));
    }
    fields.parse_field(first, "a number of instructions", 10)?;
    let address = fields.parse_field(second, "an address", 10)?;
    let mut accesses = Accesses::single(false, address, 1);
    if let Some(third) = fields.next() {
        accesses.push(true, fields.parse_field(third, "an address", 10)?, 1);
    }
    fields.expect_end()?;
    Ok(accesses)
}

/// Format: `ADDRESS READ|WRITE CYCLE`, the address in hexadecimal. The trace does not contain the length of a cycle.
fn parse_dramsim3(line: &str) -> Result<Accesses, TextError> {
    let mut fields = Fields::new(line, &[' ', '\t']);
    let Some(first) = fields.next() else {
        return Ok(Accesses::default());
    };
    let address = fields.parse_field(first, "an address", 16)?;
    let stores = match fields.next() {
        Some("READ" | "read" | "P_MEM_RD" | "P_FETCH") => false,
        Some("WRITE" | "write" | "P_MEM_WR" | "BOFF") => true,
        Some(word) => return fields.invalid(word, "request; there are READ and WRITE"),
        None => return fields.missing_field("READ or WRITE"),
    };
    fields.number("a cycle", 10)?;
    fields.expect_end()?;
    Ok(Accesses::single(stores, address, 1))
}

/// Format: ` L ADDRESS,SIZE`, and the same with S and M. Instructions (`I`) and Valgrind's own output are skipped.
fn parse_lackey(line: &str) -> Result<Accesses, TextError> {
    let mut fields = Fields::new(line, &[' ', ',']);
    let has_prefix = |prefix: &str| line.starts_with(prefix);
    let Some(letter) = fields
        .next()
        .filter(|_| !has_prefix("==") && !has_prefix("--"))
    else {
        return Ok(Accesses::default());
    };
    if !matches!(letter, "I" | "L" | "S" | "M") {
        return fields.invalid(letter, "access; there are I, L, S and M");
    }
    let address = fields.number("an address", 16)?;
    let size = fields.number("a size", 10)?;
    fields.expect_end()?;
    let mut accesses = Accesses::default();
    if let "L" | "M" = letter {
        accesses.push(false, address, size);
    }
    if let "S" | "M" = letter {
        accesses.push(true, address, size);
    }
    Ok(accesses)
}

/// Format: `LABEL ADDRESS`, followed by a comment; or with a letter as the label and a size after the address.
/// Addresses are hexadecimal. Instructions, invalidations, write-backs and escapes are skipped.
fn parse_dinero(line: &str) -> Result<Accesses, TextError> {
    let mut fields = Fields::new(line, &[' ', '\t']);
    let Some(label) = fields.next() else {
        return Ok(Accesses::default());
    };
    let (stores, extended) = match label {
        "0" => (Some(false), false),
        "1" => (Some(true), false),
        "2" | "3" | "4" => (None, false),
        "r" => (Some(false), true),
        "w" => (Some(true), true),
        "i" | "m" | "v" | "c" => (None, true),
        _ => return fields.invalid(label, "label; there are 0 to 4, or r, w, i, m, v and c"),
    };
    let address = fields.number("an address", 16)?;
    let size = match extended {
        true => fields.number("a size", 10)?,
        // The format has no sizes; Dinero uses words of four bytes.
        false => 4,
    };
    let accesses = stores.map(|stores| Accesses::single(stores, address, size));
    Ok(accesses.unwrap_or_default())
}

/// Format: `INSTRUCTION: R|W ADDRESS`; later versions append a size and the value. Lines that begin with `#` are
/// comments.
fn parse_pin(line: &str) -> Result<Accesses, TextError> {
    let mut fields = Fields::new(line, &[' ', '\t']);
    let Some(first) = fields.next().filter(|first| !first.starts_with('#')) else {
        return Ok(Accesses::default());
    };
    let Some(instruction) = first.strip_suffix(':') else {
        return fields.invalid(first, "address of an instruction followed by a colon");
    };
    fields.parse_field(instruction, "an address", 16)?;
    let stores = match fields.next() {
        Some("R") => false,
        Some("W") => true,
        Some(word) => return fields.invalid(word, "access; there are R and W"),
        None => return fields.missing_field("R or W"),
    };
    let address = fields.number("an address", 16)?;
    let size = match fields.next() {
        Some(field) => fields.parse_field(field, "a size", 10)?,
        None => 1,
    };
    Ok(Accesses::single(stores, address, size))
}

/// Reads an instruction of a ChampSim trace. It has the program counter, flags for a branch and a taken branch, and two
/// written and four read registers. As many written and read addresses follow; an address of 0 means none.
pub(super) fn parse_instruction(bytes: &[u8; INSTRUCTION_BYTES]) -> Result<Accesses, String> {
    let is_branch = bytes[8..10].iter().all(|flag| *flag <= 1);
    if !is_branch {
        return Err(format!(
            "its bytes 8 and 9 (branch flags) must be 0 or 1, not {} and {}",
            bytes[8], bytes[9]
        ));
    }
    let address = |offset: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[offset..offset + 8]);
        u64::from_le_bytes(word)
    };
    let mut accesses = Accesses::default();
    let loads = (32..64).step_by(8).map(|offset| (false, offset));
    let stores = (16..32).step_by(8).map(|offset| (true, offset));
    for (stores, offset) in loads.chain(stores) {
        if address(offset) != 0 {
            accesses.push(stores, address(offset), 1);
        }
    }
    Ok(accesses)
}
