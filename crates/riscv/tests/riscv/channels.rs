//! Tests of the verifier of channel programs: valid programs pass, invalid ones are rejected with address and reason,
//! and no input causes a panic.

use cohkit_testing::require;
use cohkit_testing::riscv_oracle;

use cohkit_riscv::channel::{strip, verify, Grant};
use cohkit_riscv::elf::{line as line_of, Image};
use cohkit_riscv::{Exception, Extensions, FastInterpreter, FlatMemory, Hart, Sandbox, Stop};
use riscv_oracle::{b_type, encode, i_type, Random};
use std::path::Path;
use std::process::Command;

/// A segment of a program under test.
#[derive(Clone)]
struct SegmentSpec {
    address: u64,
    /// Permissions: 4 read, 2 write, 1 execute.
    flags: u32,
    /// Contents in the file.
    bytes: Vec<u8>,
    /// Number of zero bytes in memory after the contents.
    zeroes: u64,
}

impl SegmentSpec {
    /// Creates a segment without zero bytes after its contents.
    fn new(address: u64, flags: u32, bytes: Vec<u8>) -> SegmentSpec {
        SegmentSpec {
            address,
            flags,
            bytes,
            zeroes: 0,
        }
    }
}

/// Permissions of segments: read only, read and write, read and execute.
const READ: u32 = 4;
const WRITABLE: u32 = 6;
const EXECUTABLE: u32 = 5;

/// A channel program in the form that a linker writes.
#[derive(Clone)]
struct Channel {
    /// Address of the first instruction.
    entry: u64,
    /// Loadable segments in address order.
    segments: Vec<SegmentSpec>,
    /// Words of the section `.channel` behind its magic number: size of the stack in bytes, and three words for each
    /// demand: (1, pipe, 0) or (2, start in far memory, length).
    manifest: Vec<u64>,
}

/// Bytes of a program that has 16-bit and 32-bit instructions.
fn code(words: &[u32]) -> Vec<u8> {
    let lengths = words.iter().map(|word| if word & 3 == 3 { 4 } else { 2 });
    let bytes = words.iter().zip(lengths);
    bytes
        .flat_map(|(word, length)| word.to_le_bytes()[..length].to_vec())
        .collect()
}

/// A valid program that sums pipe 3 into far memory; its code is symbol `main`.
fn valid_channel() -> Channel {
    let words = [
        i_type("addi", 2, 2, -64),
        i_type("addi", 12, 0, 8),
        i_type("ld", 10, 11, 0),
        encode("c.add", 13 << 7 | 10 << 2),
        i_type("addi", 12, 12, -1),
        b_type("bne", 12, 0, -10),
        encode("jal", 0),
    ];
    Channel {
        entry: 0x1000,
        segments: vec![
            SegmentSpec::new(0x1000, EXECUTABLE, code(&words)),
            SegmentSpec::new(0x2000, READ, b"some text".to_vec()),
            SegmentSpec {
                zeroes: 100,
                ..SegmentSpec::new(0x3000, WRITABLE, vec![7; 16])
            },
        ],
        manifest: vec![0x400, 1, 3, 0, 2, 0x10_0000, 0x1000],
    }
}

/// Resources that the programs may demand: private memory, pipes 2 and 3, and two ranges of far memory.
fn grant() -> Grant {
    Grant {
        extensions: Extensions::NEAR_MEMORY,
        private: 0x1000..0x8000,
        pipes: vec![2, 3],
        far: Vec::from([0x10_0000..0x20_0000, 0x80_0000..0x90_0000]),
    }
}

impl Channel {
    /// ELF file of the program, with the sections `.channel`, `.symtab` and `.strtab`.
    fn elf(&self) -> Vec<u8> {
        let to_bytes =
            |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|d| d.to_le_bytes()).collect() };
        let mut contents = Vec::new();
        let contents_start = 64 + 56 * self.segments.len();
        let mut append = |bytes: &[u8]| {
            let offset = (contents_start + contents.len()) as u64;
            contents.extend(bytes);
            (offset, bytes.len() as u64)
        };
        let mut headers = Vec::new();
        for segment in &self.segments {
            let (offset, length) = append(&segment.bytes);
            // Type 1 (loadable) and flags, offset, virtual and physical address, lengths, alignment.
            headers.extend(to_bytes(&[
                1 | u64::from(segment.flags) << 32,
                offset,
                segment.address,
                segment.address,
                length,
                length + segment.zeroes,
                2,
            ]));
        }
        let manifest = [b"CHANNEL1".to_vec(), to_bytes(&self.manifest)].concat();
        // One symbol: offset of its name, type function in section 1, address and length.
        let names = to_bytes(&[0, 0, 0, 1 | 0x12 << 32 | 1 << 48, 0x1000, 0x100]);
        // Per section: type, offset of its name, bytes, and linked section.
        let strings = b"\0main\0.channel\0.symtab\0.strtab\0";
        let sections = [
            (0, 0, (0, 0), [0, 0]),
            (1, 6, append(&manifest), [0, 0]),
            (2, 15, append(&names), [3, 24]),
            (3, 23, append(strings), [0, 0]),
        ];
        let table = (contents_start + contents.len()) as u64;
        for (kind, name, (offset, length), [link, size]) in sections {
            contents.extend(to_bytes(&[
                name | kind << 32,
                0,
                0,
                offset,
                length,
                link,
                8,
                size,
            ]));
        }
        let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        elf.extend([2, 0, 243, 0, 1, 0, 0, 0]);
        elf.extend(to_bytes(&[self.entry, 64, table]));
        elf.extend([1, 0, 0, 0]);
        for half in [64, 56, self.segments.len() as u16, 64, 4, 3] {
            elf.extend(half.to_le_bytes());
        }
        [elf, headers, contents].concat()
    }
}

/// The verifier returns the image and the demands of the manifest.
#[test]
fn program_within_its_grant_passes() {
    let elf = valid_channel().elf();
    let (image, manifest) = verify(&elf, &grant()).expect("a valid program passes");
    assert_eq!(
        (image.entry, image.symbol_at(0x1004)),
        (0x1000, Some(("main", 4)))
    );
    assert_eq!((manifest.stack, manifest.pipes), (0x400, vec![3]));
    assert_eq!(manifest.far.first(), Some(&(0x10_0000..0x10_1000)));
}

/// Each case makes one change to a valid program.
#[test]
fn invalid_programs_are_rejected_with_address_and_reason() {
    let check_rejection = |change: &dyn Fn(&mut Channel), reason: &str| {
        let mut channel = valid_channel();
        change(&mut channel);
        let rejection = verify(&channel.elf(), &grant()).expect_err(reason);
        assert_eq!(rejection.to_string(), reason);
    };
    let put_word = |offset: usize, word: u32| {
        move |channel: &mut Channel| {
            let bytes = code(&[word]);
            channel.segments[0].bytes[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
    };
    check_rejection(
        &put_word(4, encode("fadd.d", 7 << 12)),
        "0x1004 (main + 4): fadd.d ft0, ft0, ft0 is not an instruction of this core",
    );
    check_rejection(
        &put_word(4, encode("amoadd.d", 10 << 7)),
        "0x1004 (main + 4): amoadd.d a0, zero, (zero) is not an instruction of this core",
    );
    check_rejection(
        &put_word(8, encode("mret", 0)),
        "0x1008 (main + 8): mret is not an instruction of this core",
    );
    check_rejection(
        &put_word(8, encode("csrrw", 0x305 << 20)),
        "0x1008 (main + 8): csrrw zero, 0x305, zero uses a register that is reserved for the system",
    );
    check_rejection(
        &put_word(0, i_type("addi", 2, 2, -2048)),
        "0x1000 (main + 0): addi sp, sp, -2048 makes a frame of 0x800 bytes, and the stack has 0x400",
    );
    check_rejection(
        &|channel| channel.segments[0].flags = 7,
        "0x1000 (main + 0): this segment is both written and executed",
    );
    check_rejection(
        &|channel| channel.segments[2].address = 0x1_0000,
        "0x10000: the segment from 0x10000 to 0x10074 is not in private memory, which is 0x1000 to 0x8000",
    );
    check_rejection(
        &|channel| channel.segments[2].zeroes = 0x4bff,
        "0x7c00: a segment reaches into the stack, which begins at 0x7c00",
    );
    // Writable data overlap instructions.
    check_rejection(
        &|channel| channel.segments[2].address = 0x1004,
        "0x1004 (main + 4): this segment and the one at 0x1000 overlap",
    );
    check_rejection(
        &|channel| channel.entry = 0x2000,
        "0x2000: the program's entry point is not an instruction boundary",
    );
    // The upper half of an instruction may encode another instruction.
    check_rejection(
        &put_word(18, b_type("bne", 12, 0, -8)),
        "0x1012 (main + 18): its target 0x100a is not an instruction boundary",
    );
    check_rejection(
        &|channel| channel.segments[0].zeroes = 4,
        "0x101a (main + 26): the instructions executed here are not in the file",
    );
    check_rejection(
        &|channel| channel.manifest[2] = 4,
        "the manifest requests pipe 4, which is not granted",
    );
    check_rejection(
        &|channel| channel.manifest[6] = 0x10_0001,
        "0x100000: the manifest requests far memory here that is not granted",
    );
    check_rejection(
        &|channel| channel.manifest[0] = 0x7001,
        "the manifest requests a stack of 0x7001 bytes, and private memory is 0x1000 to 0x8000",
    );
    check_rejection(
        &|channel| channel.manifest[6] = u64::MAX,
        "the manifest requests far memory from 0x100000 on that is 0xffffffffffffffff bytes long, which ends beyond the last address",
    );
}

/// Compiles a program of the directory of this file for private memory from 0x1_0000 on.
fn compile(name: &str, machine_options: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("channel");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let output = Command::new("riscv64-unknown-elf-gcc")
        .args(["-O2", "-g", "-nostdlib", "-ffreestanding", "-static"])
        .args(["-mcmodel=medany", "-T"])
        .arg(programs.join("channel.ld"))
        .args(machine_options.split(' '))
        .arg(programs.join(name))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the command starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    std::fs::read(program).expect("the file can be read")
}

/// Indirect jumps and pointers are only known at run time. A violation stops the program, with the address and the
/// source line, and changes nothing outside its grants.
#[test]
fn stray_access_stops_the_program_at_its_position() {
    if !require::require("riscv-gcc") {
        return;
    }
    let elf = compile("stray.c", "-march=rv64imfc -mabi=lp64f");
    let grant = Grant {
        private: 0x1_0000..0x4_0000,
        ..grant()
    };
    let (image, manifest) = verify(&elf, &grant).unwrap_or_else(|rejection| panic!("{rejection}"));
    let address = |name| image.symbol_address(name).expect("the symbol exists");
    let store_fault = |address| Exception::StoreFault(address);
    let expected = [
        (1, store_fault(0x10_1000), "case 1:"),
        (2, Exception::LoadFault(0xf_fffc), "case 2:"),
        (3, store_fault(address("_start")), "case 3:"),
        (4, store_fault(0x20_0080), "case 4:"),
        (5, Exception::LoadFault(0x3_0000), "case 5:"),
        (6, Exception::FetchFault(address("data")), ""),
        (8, Exception::LoadFault(0x10_0ffe), "case 8:"),
    ];
    let run = |case: u64| {
        let mut memory = FlatMemory::new(0x1_0000, 0x20_0000);
        for segment in &image.segments {
            let destination = memory.bytes_mut(segment.address, segment.bytes.len());
            destination
                .expect("the segment is within memory")
                .copy_from_slice(segment.bytes);
        }
        let mut sandbox = Sandbox::new(
            memory,
            &image,
            &manifest,
            grant.private.end,
            std::iter::once(0x20_0000..0x20_0080),
        );
        let mut hart = Hart::new(0, grant.extensions);
        hart.pc = image.entry;
        hart.set_x(2, grant.private.end);
        hart.set_x(10, case);
        match FastInterpreter::default()
            .run(&mut hart, &mut sandbox, 1_000_000)
            .1
        {
            Err(Stop::Exception(exception)) => (exception, hart.pc, sandbox.memory),
            result => panic!("case {case}: {result:?}"),
        }
    };
    let (exception, _, memory) = run(0);
    assert_eq!(exception, Exception::MachineCall);
    assert_eq!(memory.bytes(0x10_0ffc, 4), Some(&[2, 0, 0, 0][..]));
    let source = include_str!("../programs/stray.c");
    for (case, fault, line) in expected {
        let (exception, pc, memory) = run(case);
        assert_eq!(exception, fault, "case {case}");
        if !line.is_empty() {
            let (_, number) = line_of(&elf, pc).expect("the address has line information");
            let source_line = source.lines().nth(number as usize - 1);
            assert!(
                source_line
                    .expect("the source has this line")
                    .contains(line),
                "case {case}: line {number}"
            );
        }
        let code = image.segments.iter().find(|segment| segment.executable);
        let code = code.expect("an executable segment");
        assert_eq!(
            memory.bytes(code.address, code.bytes.len()),
            Some(code.bytes)
        );
        for (from, to) in [
            (0x2_0000, 0x3_f000),
            (0x4_0000, 0x10_0000),
            (0x10_1000, 0x21_0000),
        ] {
            let bytes = memory
                .bytes(from, to - from as usize)
                .expect("the range is in memory");
            assert!(
                bytes.iter().all(|byte| *byte == 0),
                "case {case}: from {from:#x} on"
            );
        }
    }
    // Stack limit.
    let (exception, pc, _) = run(7);
    let end = grant.private.end - manifest.stack;
    assert!(
        matches!(exception, Exception::StoreFault(address) if address < end && address >= end - 0x200),
        "{exception:?}"
    );
    assert_eq!(
        image.symbol_at(pc).expect("the address has a symbol").0,
        "deep"
    );
}

/// Compilers link code and data into disjoint segments, which pass verification.
#[test]
fn compiled_program_passes_and_double_precision_is_rejected() {
    if !require::require("riscv-gcc") {
        return;
    }
    let grant = Grant {
        private: 0x1_0000..0x4_0000,
        ..grant()
    };
    let elf = compile("channel.c", "-march=rv64imfc_zba_zbb_zbs -mabi=lp64f");
    let (image, manifest) = verify(&elf, &grant).unwrap_or_else(|rejection| panic!("{rejection}"));
    assert_eq!(image.symbol_address("_start"), Some(image.entry));
    assert_eq!((manifest.stack, &manifest.pipes), (4096, &vec![2]));
    // A stripped file contains the same program without symbols.
    let stripped_elf = strip(&elf).expect("the file can be read");
    let (stripped_image, stripped_manifest) =
        verify(&stripped_elf, &grant).unwrap_or_else(|rejection| panic!("{rejection}"));
    assert_eq!(
        (stripped_image.entry, stripped_image.segments),
        (image.entry, image.segments)
    );
    assert_eq!(
        (stripped_manifest, stripped_image.symbols.len()),
        (manifest, 0)
    );
    assert!(stripped_elf.len() < elf.len() / 2);

    let rejection = verify(
        &compile("channel.c", "-march=rv64imafdc -mabi=lp64d"),
        &grant,
    )
    .expect_err("double precision is rejected");
    assert_eq!(rejection.name.expect("the address has a symbol").0, "mean");
    assert!(
        rejection.reason.contains("not an instruction"),
        "{}",
        rejection.reason
    );
}

/// Randomly mutated ELF files are read or rejected, and programs that pass stay within their grants. COHKIT_SEEDS is
/// the number of files in thousands; COHKIT_SEED runs the thousand files of one seed.
#[test]
fn mutated_programs_stay_within_their_grants() {
    let valid = valid_channel().elf();
    let grant = grant();
    let number = |name| std::env::var(name).map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match number("COHKIT_SEED") {
        Ok(seed) => seed..seed + 1,
        Err(_) => 0..number("COHKIT_SEEDS").unwrap_or(100),
    };
    let (mut read_count, mut passed_count) = (0, 0);
    for seed in seeds.clone() {
        let mut random = Random::new(seed);
        for _ in 0..1000 {
            let elf = mutate(&valid, &mut random);
            let Ok(image) = Image::read(&elf) else {
                continue;
            };
            read_count += 1;
            for segment in &image.segments {
                let end = segment.address.checked_add(segment.length);
                let is_in_bounds = segment.bytes.len() as u64 <= segment.length && end.is_some();
                assert!(is_in_bounds, "COHKIT_SEED={seed}: {segment:?}");
            }
            let _ = image.symbol_at(random.next_u64());
            if let Ok(stripped) = strip(&elf) {
                let stripped_image =
                    Image::read(&stripped).expect("a stripped program can be read");
                assert_eq!(
                    (stripped_image.entry, &stripped_image.segments),
                    (image.entry, &image.segments)
                );
            }
            let Ok((image, manifest)) = verify(&elf, &grant) else {
                continue;
            };
            passed_count += 1;
            let is_in_private = image.segments.iter().all(|segment| {
                let end = segment.address + segment.length;
                segment.address >= 0x1000
                    && end <= 0x8000 - manifest.stack
                    && !(segment.writable && segment.executable)
            });
            let has_valid_entry = image.segments.iter().any(|segment| {
                segment.executable && image.entry.wrapping_sub(segment.address) < segment.length
            });
            let has_granted_pipes = manifest.pipes.iter().all(|pipe| matches!(pipe, 2 | 3));
            assert!(
                is_in_private && has_valid_entry && has_granted_pipes,
                "COHKIT_SEED={seed}: {image:?}"
            );
        }
    }
    let file_count = 1000 * (seeds.end - seeds.start);
    assert!(
        passed_count > file_count / 100 && read_count > passed_count && read_count < file_count,
        "of {file_count}, {read_count} are read and {passed_count} passed"
    );
}

/// Mutates some bytes, mostly in headers and often to boundary values; truncates one file in eight.
fn mutate(valid: &[u8], random: &mut Random) -> Vec<u8> {
    let mut elf = valid.to_vec();
    let length = elf.len() as u64;
    for _ in 0..1 + random.below(6) {
        let offset = match random.below(4) {
            0 => random.below(length),
            1 => length - 1 - random.below(64 * 4),
            _ => random.below(64 + 3 * 56),
        };
        elf[offset as usize] = match random.below(2) {
            0 => random.next_u64() as u8,
            _ => random.one_of(&[0, 1, 64, 127, 128, 255]),
        };
    }
    if random.below(8) == 0 {
        elf.truncate(random.below(length) as usize);
    }
    elf
}
