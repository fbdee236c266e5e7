//! Recorded accesses: memory traces in text or binary form, optionally compressed by gzip.
//!
//! `docs/workloads.md` describes both forms, and the formats of other tools.

mod formats;

pub use formats::Format;

use cohkit_base::words::did_you_mean;
use cohkit_units::{self as units, Unit};
use std::fmt::{self, Display, Formatter};
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::ops::Range;

use cohkit_protocol::controller::Access;
use flate2::bufread::MultiGzDecoder;
use rustc_hash::FxHashMap;

use formats::{Accesses, INSTRUCTION_BYTES};

use crate::message::Line;
use crate::platform::Platform;

/// First bytes of a binary trace.
pub const MAGIC: [u8; 8] = *b"COHKTRC1";

/// Bytes of a record of a binary trace.
pub const RECORD: usize = 16;

/// Bytes of a page, the unit in which addresses are packed.
const PAGE_BYTES: u64 = 4096;

/// Maximum length of a text line, in bytes. Bounds the memory for a file that is not text.
const MAX_LINE_BYTES: u64 = 4096;

/// Maximum number of cores of a trace.
const MAX_CORES: u64 = Platform::MAX_AGENTS as u64;

/// Accesses that a trace may contain, in the order of their codes in binary traces.
pub const ACCESSES: [Access; 8] = [
    Access::Load,
    Access::Store,
    Access::ReadOnce,
    Access::WriteLine,
    Access::WritePartial,
    Access::Clean,
    Access::Evict,
    Access::Demote,
];

/// An access of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Line number: the address, after packing, divided by the bytes of a line.
    pub line: Line,
    /// Minimum time between the issue of the same core's previous access and of this one, in picoseconds.
    pub gap: u32,
    /// Index of the accessed 8-byte word in the line.
    pub word: u16,
    /// Kind of access.
    pub access: Access,
}

/// Accesses of each core, in its order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Recorded {
    /// Accesses by core number; empty for a number that the trace skips.
    cores: Vec<Vec<Entry>>,
    /// Largest line number plus 1.
    lines: Line,
    /// Number of accesses of each kind, in the order of [`ACCESSES`].
    counts: [u64; ACCESSES.len()],
}

impl Recorded {
    /// Returns the accesses of a core, numbered from 0; empty if it has none.
    #[inline]
    pub fn of_core(&self, core: u32) -> &[Entry] {
        self.cores.get(core as usize).map_or(&[], Vec::as_slice)
    }

    /// Number of cores: one more than the largest core number in the trace.
    pub fn cores(&self) -> u32 {
        self.cores.len() as u32
    }

    /// Number of lines of the smallest region from line 0 on that contains all accesses.
    pub fn lines(&self) -> Line {
        self.lines
    }

    /// Number of accesses of each kind that occurs, in the order of [`ACCESSES`].
    pub fn of_each(&self) -> impl Iterator<Item = (Access, u64)> + '_ {
        let counts = ACCESSES.iter().copied().zip(self.counts);
        counts.filter(|&(_, count)| count > 0)
    }

    /// Total number of accesses.
    pub fn accesses(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Appends an access of a core. `kind` is the index of its kind in [`ACCESSES`].
    fn push(&mut self, core: usize, kind: usize, entry: Entry) {
        if self.cores.len() <= core {
            self.cores.resize_with(core + 1, Vec::new);
        }
        self.cores[core].push(entry);
        self.counts[kind] += 1;
        self.lines = self.lines.max(entry.line + 1);
    }
}

/// Parameters for reading a trace.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// Format of the file.
    pub format: Format,
    /// Bytes of a line in the simulated memory, a multiple of 8.
    pub line: u32,
    /// Number of lines of memory. An address beyond is an error.
    pub lines: Line,
    /// True if pages of 4 KiB are placed consecutively in the order of their first access, whatever their
    /// addresses.
    pub packed: bool,
    /// Maximum number of accesses to read; the rest of the trace is ignored.
    pub max_accesses: u64,
}

/// Error of reading a trace.
#[derive(Debug)]
pub enum ReadError {
    /// The file cannot be read, or begins like a gzip file without being one.
    Io(io::Error),
    /// A line of text is invalid.
    Text {
        /// Line number, from 1 on.
        number: u64,
        /// The line.
        text: String,
        /// Range of the invalid part, in bytes of `text`.
        place: Range<usize>,
        /// Description of the error, with the expected input.
        what: String,
    },
    /// A record of a binary trace is invalid.
    Record {
        /// Number of the record, from 1 on.
        number: u64,
        /// Description of the error, with the expected input.
        what: String,
    },
    /// The trace contains no access.
    Empty,
    /// The file is compressed by another program than gzip: its name, and the command that decompresses it.
    Packed(&'static str, &'static str),
}

impl Display for ReadError {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(formatter, "{error}"),
            ReadError::Text {
                number,
                place,
                what,
                ..
            } => write!(
                formatter,
                "line {number}, column {}: {what}",
                place.start + 1
            ),
            ReadError::Record { number, what } => write!(formatter, "record {number}: {what}"),
            ReadError::Empty => write!(formatter, "it contains no access"),
            ReadError::Packed(packer, command) => {
                write!(
                    formatter,
                    "it is compressed by {packer}; decompress it with `{command}`, or compress it with gzip"
                )
            }
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Io(error)
    }
}

/// Reads a trace. Its first bytes show if it is compressed by gzip, and if it is text.
///
/// # Errors
/// The first error in the trace.
pub fn read(input: impl Read, options: &ReadOptions) -> Result<Recorded, ReadError> {
    let (prefix, input) = read_prefix::<6, _>(input)?;
    match prefix[..] {
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Err(ReadError::Packed("xz", "unxz")),
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41] => Err(ReadError::Packed("bzip2", "bunzip2")),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Err(ReadError::Packed("zstd", "unzstd")),
        [0x1f, 0x8b, ..] => read_uncompressed(MultiGzDecoder::new(BufReader::new(input)), options)
            .map_err(describe_gzip_error),
        _ => read_uncompressed(input, options),
    }
}

/// Rephrases an error of the gzip decoder, which speaks of a stream, as one of the file.
fn describe_gzip_error(error: ReadError) -> ReadError {
    match error {
        ReadError::Io(error) => ReadError::Io(io::Error::new(
            error.kind(),
            format!("the gzip data are truncated or damaged, or followed by other data: {error}"),
        )),
        error => error,
    }
}

/// Reads a trace that is not compressed, as records or text according to its format and first bytes.
fn read_uncompressed(input: impl Read, options: &ReadOptions) -> Result<Recorded, ReadError> {
    let (prefix, input) = read_prefix::<{ MAGIC.len() }, _>(input)?;
    let input = BufReader::with_capacity(1 << 16, input);
    let mut reader = Reader {
        options: *options,
        pages: FxHashMap::default(),
        recorded: Recorded::default(),
        time: None,
    };
    match options.format {
        Format::Champsim => reader.read_instructions(input)?,
        Format::Cohkit if prefix == MAGIC => reader.read_records(input)?,
        _ => reader.read_text(input)?,
    }
    match reader.recorded.accesses() {
        0 => Err(ReadError::Empty),
        _ => Ok(reader.recorded),
    }
}

/// An input of which the first bytes have been read.
type PrefixedInput<R> = Chain<Cursor<Vec<u8>>, R>;

/// Returns the first `N` bytes of an input (fewer if it is shorter), and the complete input again.
fn read_prefix<const N: usize, R: Read>(mut input: R) -> io::Result<(Vec<u8>, PrefixedInput<R>)> {
    let mut prefix = Vec::new();
    input.by_ref().take(N as u64).read_to_end(&mut prefix)?;
    Ok((prefix.clone(), Cursor::new(prefix).chain(input)))
}

/// State while a trace is read.
struct Reader {
    /// Parameters of the caller.
    options: ReadOptions,
    /// Packed number of each page, by its number in the trace, if pages are packed.
    pages: FxHashMap<u64, u64>,
    /// Accesses read so far.
    recorded: Recorded,
    /// Start time of the previous access, in picoseconds, if a foreign trace has times.
    time: Option<u64>,
}

/// Error in a text line: range of the invalid part in bytes, and the expected input.
type TextError = (Range<usize>, String);

impl Reader {
    /// True if `read` accesses are the maximum number to read.
    fn is_at_limit(&self, read: u64) -> bool {
        read >= self.options.max_accesses
    }

    /// Reads a trace of text line by line, in Cohkit's format or another.
    fn read_text(&mut self, mut input: impl BufRead) -> Result<(), ReadError> {
        let mut bytes = Vec::new();
        let mut read = 0;
        for number in 1.. {
            bytes.clear();
            input
                .by_ref()
                .take(MAX_LINE_BYTES + 1)
                .read_until(b'\n', &mut bytes)?;
            if bytes.is_empty() || self.is_at_limit(read) {
                break;
            }
            let text_error = |text: &str, (place, what): TextError| ReadError::Text {
                number,
                text: text.to_string(),
                place,
                what,
            };
            if bytes.len() as u64 > MAX_LINE_BYTES {
                let excerpt: String = String::from_utf8_lossy(&bytes).chars().take(40).collect();
                let what =
                    format!("this line is longer than {MAX_LINE_BYTES} bytes; each has one access");
                return Err(text_error(&excerpt, (0..0, what)));
            }
            let Ok(line) = std::str::from_utf8(&bytes) else {
                let excerpt: String = String::from_utf8_lossy(&bytes).chars().take(40).collect();
                let what = match self.options.format {
                    Format::Cohkit => {
                        "this is not text; a binary trace begins with `COHKTRC1`".into()
                    }
                    format => name_foreign_format(format, "this is not text"),
                };
                return Err(text_error(&excerpt, (0..0, what)));
            };
            let line = line.trim_end_matches(['\n', '\r']);
            let accesses_read = match self.options.format {
                Format::Cohkit => self.read_line(line).map_err(|error| suggest(error, line)),
                format => self.read_foreign_line(format, line),
            };
            match accesses_read {
                Ok(accesses) => read += accesses,
                Err(error) => return Err(text_error(line, error)),
            }
        }
        Ok(())
    }

    /// Reads a line of text. Returns its number of accesses, 0 or 1.
    fn read_line(&mut self, line: &str) -> Result<u64, TextError> {
        let code = line.find('#').map_or(line, |comment| &line[..comment]);
        let range_of = |field: &str| {
            let begin = field.as_ptr() as usize - line.as_ptr() as usize;
            begin..begin + field.len()
        };
        let end = code.trim_end().len();
        let mut fields = code.split_ascii_whitespace().peekable();
        let core = match fields.peek() {
            None => return Ok(0),
            Some(field) if field.starts_with(|letter: char| letter.is_ascii_digit()) => {
                let field = fields.next().unwrap_or_default();
                parse_core(field).map_err(|what| (range_of(field), what))?
            }
            Some(_) => 0,
        };
        let Some(name) = fields.next() else {
            return Err((
                end..end,
                format!("an access is missing: {}", access_names()),
            ));
        };
        let kind = parse_kind(name).map_err(|what| (range_of(name), what))?;
        let Some(field) = fields.next() else {
            return Err((
                end..end,
                "an address is missing, such as 0x1f80 or 8064".into(),
            ));
        };
        let address = parse_number(field).ok_or_else(|| {
            let what = format!("`{field}` is no address; write it like 0x1f80 or 8064");
            (range_of(field), what)
        })?;
        let (line, word) = self
            .locate(address)
            .map_err(|what| (range_of(field), what))?;
        let gap = match fields.next() {
            None => 0,
            Some(field) => parse_gap(field).map_err(|what| (range_of(field), what))?,
        };
        if let Some(extra) = fields.next() {
            let what = "expected the end of the line after core, access, address and time since the previous access";
            return Err((range_of(extra), what.into()));
        }
        let access = ACCESSES[kind];
        let entry = Entry {
            line,
            gap,
            word,
            access,
        };
        self.recorded.push(core, kind, entry);
        Ok(1)
    }

    /// Reads a line of text of another tool. Returns its number of accesses.
    fn read_foreign_line(&mut self, format: Format, line: &str) -> Result<u64, TextError> {
        let add_format_name =
            |(place, what): TextError| (place, name_foreign_format(format, &what));
        let accesses = format.parse_line(line).map_err(add_format_name)?;
        let added = self.add_accesses(&accesses);
        added.map_err(|what| add_format_name((0..line.trim_end().len(), what)))
    }

    /// Adds accesses of a foreign trace, all of core 0, one for each memory line touched. Returns their number.
    /// Only the first has a gap; those after it are issued at once.
    fn add_accesses(&mut self, accesses: &Accesses) -> Result<u64, String> {
        let mut gap = 0;
        if let Some(time) = accesses.time {
            let elapsed = time.checked_sub(self.time.unwrap_or(time));
            let elapsed = elapsed.ok_or("it begins before the previous access")?;
            // A gap beyond the simulator's maximum is shortened to the maximum.
            gap = u32::try_from(elapsed).unwrap_or(u32::MAX);
            self.time = Some(time);
        }
        let bytes = u64::from(self.options.line);
        let mut added = 0;
        for access in &accesses.list[..accesses.count] {
            let last = access.address.checked_add(access.size.max(1) - 1);
            let last = last.ok_or("it extends beyond the last address")?;
            let mut address = access.address;
            while address <= last {
                let (line, word) = self.locate(address)?;
                let kind = usize::from(access.stores);
                let entry = Entry {
                    line,
                    gap: std::mem::take(&mut gap),
                    word,
                    access: ACCESSES[kind],
                };
                self.recorded.push(0, kind, entry);
                added += 1;
                let Some(next) = (address / bytes + 1).checked_mul(bytes) else {
                    break;
                };
                address = next;
            }
        }
        Ok(added)
    }

    /// Reads the instructions of a ChampSim trace.
    fn read_instructions(&mut self, mut input: impl BufRead) -> Result<(), ReadError> {
        let mut bytes = Vec::with_capacity(INSTRUCTION_BYTES);
        let mut read = 0;
        for number in 1.. {
            bytes.clear();
            input
                .by_ref()
                .take(INSTRUCTION_BYTES as u64)
                .read_to_end(&mut bytes)?;
            if bytes.is_empty() || self.is_at_limit(read) {
                break;
            }
            let parsed = match <&[u8; INSTRUCTION_BYTES]>::try_from(bytes.as_slice()) {
                Ok(bytes) => formats::parse_instruction(bytes),
                Err(_) => Err(format!(
                    "it has {} of {INSTRUCTION_BYTES} bytes",
                    bytes.len()
                )),
            };
            let parsed = parsed.and_then(|accesses| self.add_accesses(&accesses));
            read += parsed.map_err(|what| ReadError::Record {
                number,
                what: name_foreign_format(Format::Champsim, &what),
            })?;
        }
        Ok(())
    }

    /// Reads a binary trace of Cohkit, with the magic number first.
    fn read_records(&mut self, mut input: impl BufRead) -> Result<(), ReadError> {
        let record_error = |number, what: String| ReadError::Record { number, what };
        input.read_exact(&mut [0; MAGIC.len()])?;
        let mut record = Vec::with_capacity(RECORD);
        for number in 1.. {
            record.clear();
            input
                .by_ref()
                .take(RECORD as u64)
                .read_to_end(&mut record)?;
            if record.is_empty() || self.is_at_limit(number - 1) {
                break;
            }
            let Ok(bytes) = <&[u8; RECORD]>::try_from(record.as_slice()) else {
                let what = format!("it has {} of {RECORD} bytes", record.len());
                return Err(record_error(number, what));
            };
            self.read_record(bytes)
                .map_err(|what| record_error(number, what))?;
        }
        Ok(())
    }

    /// Reads a record: address (8 bytes), gap in picoseconds (4), core (2), code of the access (1), and zero (1).
    /// Numbers are little-endian.
    fn read_record(&mut self, bytes: &[u8; RECORD]) -> Result<(), String> {
        let [a0, a1, a2, a3, a4, a5, a6, a7, g0, g1, g2, g3, c0, c1, kind, zero] = *bytes;
        let address = u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]);
        let core = u16::from_le_bytes([c0, c1]);
        if u64::from(core) >= MAX_CORES {
            return Err(format!("core {core}; cores are 0 to {}", MAX_CORES - 1));
        }
        let access = *ACCESSES.get(usize::from(kind)).ok_or_else(|| {
            let last = ACCESSES.len() - 1;
            format!(
                "there is no access {kind}; they are 0 to {last}: {}",
                access_names()
            )
        })?;
        if zero != 0 {
            return Err(format!("its last byte is {zero}, but must be 0"));
        }
        let (line, word) = self.locate(address)?;
        let gap = u32::from_le_bytes([g0, g1, g2, g3]);
        let entry = Entry {
            line,
            gap,
            word,
            access,
        };
        self.recorded.push(usize::from(core), kind.into(), entry);
        Ok(())
    }

    /// Returns the line at an address, and the 8-byte word in it. Packs its page if the options ask for that.
    fn locate(&mut self, address: u64) -> Result<(Line, u16), String> {
        let memory_bytes = u64::from(self.options.lines) * u64::from(self.options.line);
        let memory_text = || units::show(memory_bytes, Unit::Bytes);
        let address = match self.options.packed {
            true => {
                let next = self.pages.len() as u64;
                let page = *self.pages.entry(address / PAGE_BYTES).or_insert(next);
                if (page + 1) * PAGE_BYTES > memory_bytes {
                    return Err(format!(
                        "{} pages of 4 KiB are already in use, but the memory has only {}",
                        page,
                        memory_text()
                    ));
                }
                page * PAGE_BYTES + address % PAGE_BYTES
            }
            false if address >= memory_bytes => {
                return Err(format!(
                    "address {address:#x} is beyond the memory of {}; the workload `packed-trace` packs pages one after another",
                    memory_text()
                ));
            }
            false => address,
        };
        let line = u64::from(self.options.line);
        Ok(((address / line) as Line, (address % line / 8) as u16))
    }
}

/// Adds the tool and its format to an error in a foreign trace.
fn name_foreign_format(format: Format, error: &str) -> String {
    format!(
        "{error}: read as a trace of {}, with accesses like `{}`",
        format.title(),
        format.example()
    )
}

/// Adds, to an error in a line, the foreign formats in which that line would be valid.
fn suggest((place, mut what): TextError, line: &str) -> TextError {
    for format in Format::of_line(line) {
        let (workload, title) = (format.workload(), format.title());
        what += &format!("; `{workload}:FILE` reads traces of {title}");
    }
    (place, what)
}

/// Returns the names of all accesses that a trace may contain, separated by commas.
fn access_names() -> String {
    let names: Vec<&str> = ACCESSES.iter().map(|access| access.name()).collect();
    names.join(", ")
}

/// Parses a core number below [`MAX_CORES`].
fn parse_core(field: &str) -> Result<usize, String> {
    let number = field.parse().ok().filter(|&core: &u64| core < MAX_CORES);
    let number = number.ok_or_else(|| {
        format!(
            "`{field}` is no core; cores are numbered 0 to {}",
            MAX_CORES - 1
        )
    })?;
    Ok(number as usize)
}

/// Returns the index of an access in [`ACCESSES`].
fn parse_kind(name: &str) -> Result<usize, String> {
    let index = ACCESSES.iter().position(|access| access.name() == name);
    index.ok_or_else(|| {
        if Access::ALL.iter().any(|&(_, known)| known == name) {
            return format!(
                "`{name}` is an access that only threads of programs make; a trace has {}",
                access_names()
            );
        }
        let suggestion = did_you_mean(name, ACCESSES.iter().map(|access| access.name()));
        format!(
            "`{name}` is no access; {suggestion}there are {}",
            access_names()
        )
    })
}

/// Parses a decimal number, or a hexadecimal one with the prefix `0x`.
fn parse_number(field: &str) -> Option<u64> {
    let digits = |text: &str| text.starts_with(|first: char| first.is_ascii_hexdigit());
    match field.strip_prefix("0x").or(field.strip_prefix("0X")) {
        Some(hex) if digits(hex) => u64::from_str_radix(hex, 16).ok(),
        None if digits(field) => field.parse().ok(),
        _ => None,
    }
}

/// Parses a time with a unit, of less than 2^32 picoseconds.
fn parse_gap(field: &str) -> Result<u32, String> {
    let time = units::parse(field, Unit::Picoseconds)
        .map_err(|error| format!("the time since the previous access, `{field}`, {error}"))?;
    u32::try_from(time).map_err(|_| {
        let longest = units::show(u32::MAX.into(), Unit::Picoseconds);
        format!("at most {longest} lie between two accesses, not {field}")
    })
}
