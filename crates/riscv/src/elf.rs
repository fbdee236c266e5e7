//! Reader for statically linked programs in ELF files: segments, symbols, sections and line tables.

use object::elf::{
    FileHeader64, ProgramHeader64, EM_RISCV, ET_EXEC, PF_W, PF_X, PT_INTERP, PT_LOAD, SHT_SYMTAB,
    STT_FUNC, STT_NOTYPE, STT_OBJECT,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::LittleEndian;

/// A loadable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Virtual address (`p_vaddr`).
    pub address: u64,
    /// Load address on a machine without an operating system (`p_paddr`). If it differs, the program copies the segment
    /// itself.
    pub load_address: u64,
    /// Length in memory, in bytes. Neither start address plus length exceeds the last address.
    pub length: u64,
    /// Initial contents. The remaining bytes of the segment are zero.
    pub bytes: &'a [u8],
    /// True if the program may write the segment.
    pub writable: bool,
    /// True if the segment contains instructions.
    pub executable: bool,
}

/// A symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol<'a> {
    /// Start address.
    pub address: u64,
    /// Length in bytes; 0 if unknown.
    pub length: u64,
    /// Name.
    pub name: &'a str,
}

/// A statically linked program for RV64.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    /// Address of the first instruction.
    pub entry: u64,
    /// Loadable segments, in file order.
    pub segments: Vec<Segment<'a>>,
    /// Symbols sorted by address; empty if the file has none.
    pub symbols: Vec<Symbol<'a>>,
}

impl<'a> Image<'a> {
    /// Reads a file. Unreadable symbols are omitted.
    ///
    /// # Errors
    /// The file is not a statically linked RV64 executable, or a segment is invalid.
    pub fn read(file: &'a [u8]) -> Result<Image<'a>, String> {
        let parse_error =
            |error: object::read::Error| format!("cannot read this as a 64-bit ELF file: {error}");
        if file.starts_with(b"\x7fELF\x01") {
            return Err("this program is 32-bit, but the core is 64-bit".into());
        }
        let header = FileHeader64::<LittleEndian>::parse(file).map_err(parse_error)?;
        let endian = header.endian().map_err(parse_error)?;
        let machine = header.e_machine(endian);
        if machine != EM_RISCV {
            return Err(format!("this program is for another machine: its number is {machine}, that of RISC-V is {EM_RISCV}"));
        }
        if header.e_type(endian) != ET_EXEC {
            return Err("this program is not linked at fixed addresses\n  help: link it with -static and without -pie".into());
        }
        let mut segments = Vec::new();
        for program_header in header.program_headers(endian, file).map_err(parse_error)? {
            match program_header.p_type(endian) {
                PT_INTERP => {
                    return Err(
                        "this program needs a dynamic linker\n  help: link it with -static".into(),
                    )
                }
                PT_LOAD if program_header.p_memsz(endian) > 0 => {
                    segments.push(segment(program_header, endian, file)?);
                }
                _ => {}
            }
        }
        if segments.is_empty() {
            return Err("this program has no loadable segments".into());
        }
        let symbols = symbols(header, endian, file).unwrap_or_default();
        Ok(Image {
            entry: header.e_entry(endian),
            segments,
            symbols,
        })
    }

    /// Returns the name of the symbol that contains an address, and the offset from its start in bytes; `None` if no
    /// symbol does.
    pub fn symbol_at(&self, address: u64) -> Option<(&'a str, u64)> {
        let end_index = self
            .symbols
            .partition_point(|symbol| symbol.address <= address);
        let preceding = self.symbols[..end_index].iter().rev();
        // A symbol without a length extends to the end of its segment.
        let is_same_segment = |start: u64| {
            let mut segments = self.segments.iter();
            segments.any(|segment| {
                start >= segment.address && address - segment.address < segment.length
            })
        };
        let mut candidates = preceding.take_while(|symbol| match symbol.length {
            0 => is_same_segment(symbol.address),
            length => address - symbol.address < length,
        });
        candidates
            .next()
            .map(|symbol| (symbol.name, address - symbol.address))
    }

    /// Returns the address of the symbol with this name, if any.
    pub fn symbol_address(&self, name: &str) -> Option<u64> {
        let symbol = self.symbols.iter().find(|symbol| symbol.name == name);
        symbol.map(|symbol| symbol.address)
    }
}

/// Reads a loadable segment.
///
/// # Errors
/// The contents are missing or longer than the segment, or the segment ends beyond the last address.
fn segment<'a>(
    header: &ProgramHeader64<LittleEndian>,
    endian: LittleEndian,
    file: &'a [u8],
) -> Result<Segment<'a>, String> {
    let (address, length) = (header.p_vaddr(endian), header.p_memsz(endian));
    let load_address = header.p_paddr(endian);
    let bytes = header.data(endian, file);
    let bytes = bytes.map_err(|()| format!("the segment at {address:#x} is cut off"))?;
    let is_in_range = |start: u64| start.checked_add(length).is_some();
    if bytes.len() as u64 > length || !is_in_range(address) || !is_in_range(load_address) {
        return Err(format!(
            "the segment at {address:#x} does not fit in its {length} bytes"
        ));
    }
    let flags = header.p_flags(endian);
    Ok(Segment {
        address,
        load_address,
        length,
        bytes,
        writable: flags.contains(PF_W),
        executable: flags.contains(PF_X),
    })
}

/// Returns the contents of the section with this name; `None` if it does not exist or cannot be read.
pub fn section<'a>(file: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let header = FileHeader64::<LittleEndian>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, file).ok()?;
    let (_, section) = sections.section_by_name(endian, name.as_bytes())?;
    section.data(endian, file).ok()
}

/// Returns the source file (without its directory) and line (from 1) of an instruction, if the program was compiled
/// with `-g`. Of an inlined function, the location is that in the function.
pub fn line(file: &[u8], address: u64) -> Option<(String, u64)> {
    lines(file, address).into_iter().next()
}

/// Returns source file (without its directory) and line (from 1) of an instruction; empty if the program has no line
/// tables. If its function is inlined, the locations of the calls follow, innermost first.
pub fn lines(file: &[u8], address: u64) -> Vec<(String, u64)> {
    let load_section = |id: gimli::SectionId| {
        let bytes = section(file, id.name()).unwrap_or_default();
        Ok::<_, gimli::Error>(gimli::EndianSlice::new(bytes, gimli::LittleEndian))
    };
    let context = gimli::Dwarf::load(load_section).and_then(addr2line::Context::from_dwarf);
    let mut lines = Vec::new();
    let Ok(context) = context else { return lines };
    let Ok(mut frames) = context.find_frames(address).skip_all_loads() else {
        return lines;
    };
    while let Ok(Some(frame)) = frames.next() {
        let location = frame.location.and_then(|location| {
            let name = location.file?.rsplit('/').next()?;
            Some((name.to_string(), location.line?.into()))
        });
        lines.extend(location);
    }
    lines
}

/// Returns the symbols of functions, data and hand-written assembly, sorted by address.
fn symbols<'a>(
    header: &FileHeader64<LittleEndian>,
    endian: LittleEndian,
    file: &'a [u8],
) -> Option<Vec<Symbol<'a>>> {
    let sections = header.sections(endian, file).ok()?;
    let table = sections.symbols(endian, file, SHT_SYMTAB).ok()?;
    let mut symbols = Vec::new();
    for symbol in table.iter() {
        let kind = symbol.st_type();
        let name = symbol.name(endian, table.strings()).ok();
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        // Symbols that start with `$` mark code and data for disassemblers.
        let name = name.filter(|name| !name.is_empty() && !name.starts_with('$'));
        if let (STT_FUNC | STT_OBJECT | STT_NOTYPE, Some(name)) = (kind, name) {
            symbols.push(Symbol {
                address: symbol.st_value(endian),
                length: symbol.st_size(endian),
                name,
            });
        }
    }
    symbols.sort();
    Some(symbols)
}
