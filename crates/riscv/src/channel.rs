//! Programs for near-memory cores, verified before they run.
//!
//! A channel program is an ELF file with a manifest in section `.channel`. The manifest is `CHANNEL1` (8 bytes), the
//! stack size in bytes, and one entry per resource. Numbers are little-endian double words. An entry is three double
//! words, of which the first is the kind:
//!
//! - 1, a pipe: its number and 0,
//! - 2, a range of far memory: its start and its length in bytes,
//! - 3, the ranges granted when the program is spawned: 0 and 0.
//!
//! [`verify`] checks everything that is static in the file. Pointers and targets of indirect jumps are not known before
//! the program runs: [`crate::Sandbox`] faults on illegal ones.

use crate::decode::{Decoder, Inst};
use crate::elf::{self, Image, Segment};
use crate::table::{Extension, Extensions, Op};
use std::fmt;
use std::ops::Range;

/// Name of the manifest section.
const SECTION: &str = ".channel";
/// First bytes of a manifest.
const MAGIC: &[u8; 8] = b"CHANNEL1";
/// Maximum total size of the segments sent to a core, in bytes.
const MAX_SEGMENT_BYTES: usize = 1 << 20;
/// Register number of the stack pointer.
const STACK_POINTER: u8 = 2;

/// Resources that a program requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Stack size in bytes. The stack lies at the end of private memory.
    pub stack: u64,
    /// Numbers of the requested pipes, in the order of the manifest. Their meaning is that of the machine.
    pub pipes: Vec<u64>,
    /// Requested ranges of far memory.
    pub far: Vec<Range<u64>>,
    /// True if the program also requests the ranges that are granted when it is spawned.
    pub requests_granted: bool,
}

/// Resources granted to a program.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Extensions of its core.
    pub extensions: Extensions,
    /// Address range of its core's private memory.
    pub private: Range<u64>,
    /// Numbers of the granted pipes.
    pub pipes: Vec<u64>,
    /// Granted ranges of far memory.
    pub far: Vec<Range<u64>>,
}

/// Reason why a program is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Address of the defect; `None` for a defect of the file or its manifest.
    pub address: Option<u64>,
    /// Symbol that contains the address, and the offset from its start in bytes.
    pub name: Option<(String, u64)>,
    /// Description of the defect.
    pub reason: String,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address, &self.name) {
            (Some(address), Some((name, offset))) => {
                write!(f, "{address:#x} ({name} + {offset}): ")?
            }
            (Some(address), None) => write!(f, "{address:#x}: ")?,
            (None, _) => {}
        }
        write!(f, "{}", self.reason)
    }
}

impl std::error::Error for Rejection {}

/// Returns a rejection of the file or its manifest.
fn file_rejection(reason: impl Into<String>) -> Rejection {
    Rejection {
        address: None,
        name: None,
        reason: reason.into(),
    }
}

/// Returns a rejection of the contents at an address, without the symbol.
fn rejection_at(address: u64, reason: impl Into<String>) -> Rejection {
    Rejection {
        address: Some(address),
        ..file_rejection(reason)
    }
}

/// True if `inner` lies within `outer`. False for an empty `inner`.
fn is_within(inner: &Range<u64>, outer: &Range<u64>) -> bool {
    outer.start <= inner.start && inner.start < inner.end && inner.end <= outer.end
}

impl Manifest {
    /// Reads the manifest of a file.
    ///
    /// # Errors
    /// Section `.channel` is missing, has another version, or is malformed.
    fn read(file: &[u8]) -> Result<Manifest, String> {
        let bytes = elf::section(file, SECTION)
            .ok_or("the file has no section `.channel`, the manifest of a channel program")?;
        let words = bytes
            .strip_prefix(MAGIC)
            .filter(|words| words.len() % 8 == 0);
        let words = words.ok_or("the section `.channel` is no manifest of this version")?;
        let words = words.chunks_exact(8);
        let mut words =
            words.map(|word| u64::from_le_bytes(word.try_into().expect("a chunk of eight bytes")));
        let mut manifest = Manifest {
            stack: words.next().ok_or("the manifest has no stack size")?,
            ..Manifest::default()
        };
        while let Some(kind) = words.next() {
            let (Some(first), Some(second)) = (words.next(), words.next()) else {
                return Err("the manifest is truncated".into());
            };
            match (kind, first.checked_add(second)) {
                (1, _) => manifest.pipes.push(first),
                (2, Some(end)) => manifest.far.push(first..end),
                (3, Some(0)) => manifest.requests_granted = true,
                (2, None) => {
                    return Err(format!(
                        "the manifest requests far memory from {first:#x} on that is {second:#x} bytes long, which ends beyond the last address"
                    ))
                }
                _ => {
                    return Err(format!(
                        "the manifest requests something of the unknown kind {kind}; kinds are pipes (1), far memory (2) and, followed by two zeroes, far memory granted by the host (3)"
                    ))
                }
            }
        }
        Ok(manifest)
    }

    /// Rejects a manifest that requests resources that are not granted.
    fn check_grant(&self, grant: &Grant) -> Result<(), Rejection> {
        if let Some(pipe) = self.pipes.iter().find(|pipe| !grant.pipes.contains(pipe)) {
            return Err(file_rejection(format!(
                "the manifest requests pipe {pipe}, which is not granted"
            )));
        }
        let is_granted =
            |range: &Range<u64>| grant.far.iter().any(|granted| is_within(range, granted));
        if let Some(range) = self.far.iter().find(|range| !is_granted(range)) {
            let reason = "the manifest requests far memory here that is not granted";
            return Err(rejection_at(range.start, reason));
        }
        Ok(())
    }
}

/// Reads and verifies a program and its manifest:
///
/// - all segments and the stack are disjoint and lie in private memory,
/// - no segment is both writable and executable,
/// - executable segments contain only instructions of the core's extensions that are legal in user mode,
/// - the entry point and all targets of direct jumps and branches are the start of such an instruction,
/// - no frame allocated by a single `addi` is larger than the stack,
/// - all requested pipes and ranges of far memory are granted.
///
/// # Errors
/// The first violated rule, with its address.
pub fn verify<'a>(file: &'a [u8], grant: &Grant) -> Result<(Image<'a>, Manifest), Rejection> {
    let image = Image::read(file).map_err(file_rejection)?;
    let manifest = Manifest::read(file).map_err(file_rejection)?;
    manifest.check_grant(grant)?;
    let with_symbol = |rejection: Rejection| Rejection {
        name: rejection
            .address
            .and_then(|address| image.symbol_at(address))
            .map(|(name, offset)| (name.to_string(), offset)),
        ..rejection
    };
    check_layout(&image, &manifest, grant).map_err(with_symbol)?;
    check_instructions(&image, &manifest, grant).map_err(with_symbol)?;
    Ok((image, manifest))
}

/// Reads a program and its manifest without verifying them.
///
/// # Errors
/// The file is no RV64 program, or its manifest is missing or malformed.
pub fn read_unverified(file: &[u8]) -> Result<(Image<'_>, Manifest), Rejection> {
    let image = Image::read(file).map_err(file_rejection)?;
    Ok((image, Manifest::read(file).map_err(file_rejection)?))
}

/// Returns the program without symbols and line tables, as it is sent to a core: an ELF file with the segments and the
/// manifest.
///
/// # Errors
/// The file cannot be read, or its segments are larger than 1 MiB.
pub fn strip(file: &[u8]) -> Result<Vec<u8>, String> {
    let image = Image::read(file)?;
    let manifest = elf::section(file, SECTION).ok_or("the file has no section `.channel`")?;
    let segments = &image.segments;
    let bytes: usize = segments.iter().map(|segment| segment.bytes.len()).sum();
    if bytes > MAX_SEGMENT_BYTES || segments.len() > usize::from(u16::MAX) {
        return Err(format!(
            "its segments have {bytes} bytes, but cores beside far memory have at most {MAX_SEGMENT_BYTES}"
        ));
    }
    // The file: its header, program headers, contents, section headers.
    let contents_start = ELF_HEADER_BYTES + PROGRAM_HEADER_BYTES * segments.len();
    let mut contents: Vec<u8> = Vec::new();
    let mut append = |bytes: &[u8]| {
        let offset = (contents_start + contents.len()) as u64;
        contents.extend(bytes);
        let length = bytes.len() as u64;
        FileRange { offset, length }
    };
    let mut program_headers: Vec<u8> = Vec::new();
    for segment in segments {
        program_headers.extend(program_header(segment, append(segment.bytes)));
    }
    // Section names: the empty one, that of the manifest at 1, and that of this table at 10.
    let names = [b"\0", SECTION.as_bytes(), b"\0.names\0"].concat();
    let (manifest, names) = (append(manifest), append(&names));
    let section_headers = [
        vec![0; SECTION_HEADER_BYTES],
        section_header(1, SHT_PROGBITS, manifest),
        section_header(10, SHT_STRTAB, names),
    ];
    let sections_start = (contents_start + contents.len()) as u64;
    let mut elf = elf_header(image.entry, sections_start, segments.len() as u16);
    elf.extend(program_headers);
    elf.extend(contents);
    elf.extend(section_headers.concat());
    Ok(elf)
}

/// Bytes of an ELF header.
const ELF_HEADER_BYTES: usize = 64;
/// Bytes of an ELF program header.
const PROGRAM_HEADER_BYTES: usize = 56;
/// Bytes of an ELF section header.
const SECTION_HEADER_BYTES: usize = 64;

/// A range of an ELF file, in bytes.
#[derive(Clone, Copy)]
struct FileRange {
    offset: u64,
    length: u64,
}

/// Concatenates numbers as little-endian double words.
fn double_words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// Type of an executable file (`ET_EXEC`).
const EXECUTABLE: u16 = 2;
/// Machine number of RISC-V (`EM_RISCV`).
const RISC_V: u16 = 243;
/// Type of a section with the program's own contents (`SHT_PROGBITS`).
const SHT_PROGBITS: u32 = 1;
/// Type of a section with strings (`SHT_STRTAB`).
const SHT_STRTAB: u32 = 3;

/// ELF header of a program with three sections, of which the last has the section names.
fn elf_header(entry: u64, sections_start: u64, segments: u16) -> Vec<u8> {
    // Class 2 (64 bits), encoding 1 (little-endian), version 1; the other bytes of the identification are zero.
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.resize(16, 0);
    header.extend([EXECUTABLE.to_le_bytes(), RISC_V.to_le_bytes()].as_flattened());
    let (version, flags) = (1_u32, 0_u32);
    header.extend(version.to_le_bytes());
    header.extend(double_words(&[
        entry,
        ELF_HEADER_BYTES as u64,
        sections_start,
    ]));
    header.extend(flags.to_le_bytes());
    let (section_count, names_index) = (3, 2);
    let halves = [
        ELF_HEADER_BYTES as u16,
        PROGRAM_HEADER_BYTES as u16,
        segments,
        SECTION_HEADER_BYTES as u16,
        section_count,
        names_index,
    ];
    header.extend(halves.map(u16::to_le_bytes).as_flattened());
    header
}

/// Program header of a loadable segment, whose contents are in this range of the file.
fn program_header(segment: &Segment, contents: FileRange) -> Vec<u8> {
    /// Type of a loadable segment (`PT_LOAD`).
    const LOAD: u32 = 1;
    // Flags: 1 executable, 2 writable, 4 readable.
    let flags = 4 | u32::from(segment.writable) << 1 | u32::from(segment.executable);
    let alignment = 1;
    let mut header = [LOAD.to_le_bytes(), flags.to_le_bytes()].concat();
    header.extend(double_words(&[
        contents.offset,
        segment.address,
        segment.load_address,
        contents.length,
        segment.length,
        alignment,
    ]));
    header
}

/// Section header without flags or address. `name` is an offset into the section names.
fn section_header(name: u32, kind: u32, contents: FileRange) -> Vec<u8> {
    let (flags, address, links, alignment, entry_size) = (0, 0, 0, 1, 0);
    let mut header = [name.to_le_bytes(), kind.to_le_bytes()].concat();
    header.extend(double_words(&[
        flags,
        address,
        contents.offset,
        contents.length,
        links,
        alignment,
        entry_size,
    ]));
    header
}

/// Rejects segments and a stack outside private memory, or overlapping.
fn check_layout(image: &Image, manifest: &Manifest, grant: &Grant) -> Result<(), Rejection> {
    let private = &grant.private;
    let stack = private.end.checked_sub(manifest.stack);
    let stack = stack.filter(|stack| *stack >= private.start && manifest.stack > 0);
    let Some(stack) = stack else {
        return Err(file_rejection(format!(
            "the manifest requests a stack of {:#x} bytes, and private memory is {:#x} to {:#x}",
            manifest.stack, private.start, private.end
        )));
    };
    let mut previous: Option<Range<u64>> = None;
    let mut segments: Vec<&Segment> = image.segments.iter().collect();
    segments.sort_by_key(|segment| segment.address);
    for segment in segments {
        let range = segment.address..segment.address + segment.length;
        if !is_within(&range, private) {
            let outside_address = if range.start < private.start {
                range.start
            } else {
                range.start.max(private.end)
            };
            return Err(rejection_at(
                outside_address,
                format!(
                    "the segment from {:#x} to {:#x} is not in private memory, which is {:#x} to {:#x}",
                    range.start, range.end, private.start, private.end
                ),
            ));
        }
        if segment.writable && segment.executable {
            return Err(rejection_at(
                segment.address,
                "this segment is both written and executed",
            ));
        }
        if let Some(previous) = previous.filter(|previous| previous.end > range.start) {
            return Err(rejection_at(
                range.start,
                format!("this segment and the one at {:#x} overlap", previous.start),
            ));
        }
        if range.end > stack {
            return Err(rejection_at(
                range.start.max(stack),
                format!("a segment reaches into the stack, which begins at {stack:#x}"),
            ));
        }
        previous = Some(range);
    }
    Ok(())
}

/// Rejects executable segments with anything but legal instructions, and direct jumps to other targets.
fn check_instructions(image: &Image, manifest: &Manifest, grant: &Grant) -> Result<(), Rejection> {
    let decoder = Decoder::new(grant.extensions.without(Extension::Machine));
    let mut boundaries = Vec::new();
    let mut targets = Vec::new();
    let mut segments: Vec<&Segment> = image.segments.iter().filter(|s| s.executable).collect();
    segments.sort_by_key(|segment| segment.address);
    for segment in segments {
        let mut offset = 0;
        while let Some(bytes) = segment.bytes.get(offset..).filter(|rest| rest.len() > 1) {
            let mut word = [0; 4];
            let length = if bytes[0] & 3 == 3 { 4 } else { 2 };
            let available = length.min(bytes.len());
            word[..available].copy_from_slice(&bytes[..available]);
            let word = u32::from_le_bytes(word);
            let address = segment.address + offset as u64;
            let inst = decoder.decode(word).filter(|_| available == length);
            let Some(inst) = inst else {
                // Disassemble an instruction of an extension that this core lacks.
                let text = Decoder::new(Extensions::HOST).disassemble(word);
                return Err(rejection_at(
                    address,
                    format!("{text} is not an instruction of this core"),
                ));
            };
            check_instruction(&inst, manifest).map_err(|reason| {
                rejection_at(address, format!("{} {reason}", decoder.disassemble(word)))
            })?;
            if matches!(
                inst.op,
                Op::Jal | Op::Beq | Op::Bne | Op::Blt | Op::Bge | Op::Bltu | Op::Bgeu
            ) {
                targets.push((address, address.wrapping_add_signed(inst.imm.into())));
            }
            boundaries.push(address);
            offset += length;
        }
        if segment.length > offset as u64 {
            let reason = "the instructions executed here are not in the file";
            return Err(rejection_at(segment.address + offset as u64, reason));
        }
    }
    if boundaries.binary_search(&image.entry).is_err() {
        let reason = "the program's entry point is not an instruction boundary";
        return Err(rejection_at(image.entry, reason));
    }
    for (from, to) in targets {
        if boundaries.binary_search(&to).is_err() {
            let reason = format!("its target {to:#x} is not an instruction boundary");
            return Err(rejection_at(from, reason));
        }
    }
    Ok(())
}

/// Rejects instructions that a program must not contain.
///
/// # Errors
/// The reason, as the end of a sentence that begins with the instruction.
fn check_instruction(inst: &Inst, manifest: &Manifest) -> Result<(), String> {
    // Bits 9:8 of a CSR number are the lowest privilege level that may access it.
    if inst.is_csr() && inst.csr() >> 8 & 3 != 0 {
        return Err("uses a register that is reserved for the system".into());
    }
    let frame = match inst.op {
        Op::Add if (inst.rd, inst.rs1, inst.rs2) == (STACK_POINTER, STACK_POINTER, 0) => {
            inst.imm.min(0).unsigned_abs()
        }
        _ => 0,
    };
    if u64::from(frame) > manifest.stack {
        return Err(format!(
            "makes a frame of {frame:#x} bytes, and the stack has {:#x}",
            manifest.stack
        ));
    }
    Ok(())
}
