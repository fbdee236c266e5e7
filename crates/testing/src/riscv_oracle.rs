//! Reference for the RISC-V simulator: machine-code programs that run under `qemu-riscv64` and under `cohkit-riscv`,
//! whose outputs must be equal.

pub mod random;

use cohkit_base::random::SplitMix64;
use cohkit_riscv::table::row;
use cohkit_riscv::{Exception, Extensions, FlatMemory, Hart, Mode, Stop};
use std::process::Command;

/// Load address of programs.
pub const START: u64 = 0x1_0000;
/// Bytes of ELF headers before the first instruction: the file header, and one program header.
const HEADERS: usize = 64 + 56;

/// Register of the first argument of a system call, and of its result.
const A0: u32 = 10;
/// Register of the second argument.
const A1: u32 = 11;
/// Register of the third argument.
const A2: u32 = 12;
/// Register of the number of the system call.
const A7: u32 = 17;
/// Number of Linux's system call `write`.
const SYSCALL_WRITE: u64 = 64;
/// Number of Linux's system call `exit`.
const SYSCALL_EXIT: u64 = 93;

/// A program: instructions, followed by data.
#[derive(Default)]
pub struct Program {
    /// Instructions in little-endian order, from [`START`] plus the ELF headers.
    pub code: Vec<u8>,
    /// Contents of the data.
    pub data: Vec<u8>,
    /// Address of the data. Must be set before emitting instructions that refer to addresses.
    pub data_at: u64,
}

/// Encodes an instruction by mnemonic. `operand_bits` are the bits of its operands at their positions in the word.
pub fn encode(name: &str, operand_bits: u32) -> u32 {
    row(name)
        .unwrap_or_else(|| panic!("no row {name}"))
        .encode(operand_bits)
}

/// Encodes an instruction with three registers.
pub fn r_type(name: &str, rd: u32, rs1: u32, rs2: u32) -> u32 {
    encode(name, rd << 7 | rs1 << 15 | rs2 << 20)
}

/// Encodes an instruction with a destination, a source and a 12-bit immediate operand.
pub fn i_type(name: &str, rd: u32, rs1: u32, imm: i32) -> u32 {
    encode(name, rd << 7 | rs1 << 15 | (imm as u32) << 20)
}

/// Encodes a store of `rs2` to the address in `rs1` plus a 12-bit immediate operand.
pub fn s_type(name: &str, rs2: u32, rs1: u32, imm: i32) -> u32 {
    encode(
        name,
        (imm as u32 & 31) << 7 | rs1 << 15 | rs2 << 20 | (imm as u32 >> 5) << 25,
    )
}

/// Encodes a branch; `imm` is the distance in bytes from the instruction, and even.
pub fn b_type(name: &str, rs1: u32, rs2: u32, imm: i32) -> u32 {
    let imm = imm as u32;
    let low = (imm & 0x1e) << 7 | (imm >> 11 & 1) << 7;
    encode(
        name,
        low | rs1 << 15 | rs2 << 20 | (imm >> 5 & 63) << 25 | (imm >> 12 & 1) << 31,
    )
}

impl Program {
    /// Appends an instruction, of 2 bytes if it is compressed.
    pub fn push(&mut self, word: u32) {
        let length = if word & 3 == 3 { 4 } else { 2 };
        self.code.extend(&word.to_le_bytes()[..length]);
    }

    /// Loads `value`, of at most 31 bits, into the register `rd` by two instructions.
    pub fn li(&mut self, rd: u32, value: u64) {
        let value = u32::try_from(value).expect("a value of at most 31 bits");
        self.push(encode(
            "lui",
            rd << 7 | (value.wrapping_add(0x800) & !0xfff),
        ));
        self.push(i_type("addi", rd, rd, value as i32));
    }

    /// Emits the end of the program: writes `length` bytes from address `start` to standard output, and exits.
    pub fn finish(&mut self, start: u64, length: usize) {
        // The file descriptor 1 is standard output.
        self.li(A0, 1);
        self.li(A1, start);
        self.li(A2, length as u64);
        self.li(A7, SYSCALL_WRITE);
        self.push(encode("ecall", 0));
        self.li(A0, 0);
        self.li(A7, SYSCALL_EXIT);
        self.push(encode("ecall", 0));
    }

    /// Number of bytes from [`START`] to the end of the data.
    fn length(&self) -> usize {
        (self.data_at - START) as usize + self.data.len()
    }

    /// Returns an ELF file with one segment.
    pub fn elf(&self) -> Vec<u8> {
        assert!(
            START + (HEADERS + self.code.len()) as u64 <= self.data_at,
            "the code reaches into the data"
        );
        // Identification: 64 bits, little-endian, version 1.
        let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut append = |bytes: &[u8]| elf.extend(bytes);
        // Type: executable; machine: RISC-V; version 1. Then entry point, and offsets of program and section headers.
        append(&[2, 0, 243, 0, 1, 0, 0, 0]);
        append(&(START + HEADERS as u64).to_le_bytes());
        append(&64_u64.to_le_bytes());
        append(&0_u64.to_le_bytes());
        // Flags: compressed instructions, double-precision ABI. Then the header sizes.
        append(&5_u32.to_le_bytes());
        for half in [64_u16, 56, 1, 0, 0, 0] {
            append(&half.to_le_bytes());
        }
        // Program header: loadable; readable, writable and executable; offset, addresses, sizes and alignment.
        append(&1_u32.to_le_bytes());
        append(&7_u32.to_le_bytes());
        for double in [
            0,
            START,
            START,
            self.length() as u64,
            self.length() as u64,
            0x1000,
        ] {
            append(&double.to_le_bytes());
        }
        assert_eq!(elf.len(), HEADERS);
        elf.extend(&self.code);
        elf.resize((self.data_at - START) as usize, 0);
        elf.extend(&self.data);
        elf
    }

    /// Standard output of the program under QEMU.
    pub fn output_of_qemu(&self) -> Vec<u8> {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("program");
        std::fs::write(&file, self.elf()).expect("the file can be written");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755))
            .expect("the file belongs to this user");
        let output = Command::new("qemu-riscv64")
            .args(["-cpu", "rv64"])
            .arg(&file)
            .output()
            .expect("the command starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {stderr}", output.status);
        output.stdout
    }

    /// Standard output of the program under `cohkit-riscv`, in single steps.
    pub fn output_in_single_steps(&self) -> Vec<u8> {
        self.output_by(|hart, memory| hart.step(memory))
    }

    /// Standard output of the program with `engine`, which executes one or more instructions per call.
    pub fn output_by(
        &self,
        mut engine: impl FnMut(&mut Hart, &mut FlatMemory) -> Result<(), Stop>,
    ) -> Vec<u8> {
        let elf = self.elf();
        let mut memory = FlatMemory::new(START, elf.len());
        let image = memory
            .bytes_mut(START, elf.len())
            .expect("the whole memory");
        image.copy_from_slice(&elf);
        let mut hart = Hart::new(0, Extensions::HOST);
        hart.csrs.mode = Mode::User;
        hart.pc = START + HEADERS as u64;
        let mut output = Vec::new();
        while hart.csrs.instret < 1_000_000_000 {
            match engine(&mut hart, &mut memory) {
                Ok(()) => {}
                Err(Stop::Exception(Exception::UserCall)) if hart.x(17) == 64 => {
                    let bytes = memory.bytes(hart.x(11), hart.x(12) as usize);
                    output.extend(bytes.expect("the range is in memory"));
                    hart.set_x(10, hart.x(12));
                    hart.pc += 4;
                }
                Err(Stop::Exception(Exception::UserCall)) => return output,
                Err(stop) => panic!("at {:#x}: {stop:?}", hart.pc),
            }
        }
        panic!("the program does not end");
    }
}

/// Pseudo-random numbers of a seed.
pub struct Random(SplitMix64);

impl Random {
    /// Creates the generator of a seed.
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    /// Returns the next 64 bits of the sequence.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.modulo(limit)
    }

    /// Returns a random item of the list, which must not be empty.
    pub fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    /// A register value: small, a boundary value, single or double precision, or random.
    pub fn value(&mut self) -> u64 {
        let random_bits = self.next_u64();
        match self.below(8) {
            0 => random_bits,
            1 => self.one_of(&INTEGERS),
            2 => self.one_of(&DOUBLES),
            3 => 0xffff_ffff_0000_0000 | self.one_of(&SINGLES),
            4 => random_bits % 64,
            5 => (random_bits as i32 as f64 / 64.0).to_bits(),
            // Double- and single-precision numbers with random signs and fractions, and exponents near that of one.
            6 => random_bits & 0x801f_ffff_ffff_ffff | (1023 - 40 + self.below(80)) << 52,
            _ => {
                0xffff_ffff_0000_0000
                    | random_bits & 0x807f_ffff
                    | (127 - 20 + self.below(40)) << 23
            }
        }
    }
}

/// Boundary values of integer operands.
pub const INTEGERS: [u64; 16] = [
    0,
    1,
    2,
    31,
    63,
    0x7f,
    0x8000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x0123_4567_89ab_cdef,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_8000_0000,
    u64::MAX,
];

/// Boundary values of single precision: zeroes, subnormal numbers, neighbours of the smallest normal ones, one and its
/// neighbours, integers at word boundaries, the largest number, infinities, and both kinds of NaN.
pub const SINGLES: [u64; 28] = [
    0x0000_0000,
    0x8000_0000,
    0x0000_0001,
    0x8000_0001,
    0x0040_0000,
    0x007f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x0080_0001,
    0x3400_0000,
    0x3eff_ffff,
    0x3f00_0000,
    0x3f7f_ffff,
    0x3f80_0000,
    0xbf80_0001,
    0x3fc0_0000,
    0x4020_0000,
    0xc060_0000,
    0x4b80_0001,
    0x4f00_0000,
    0xcf00_0000,
    0x4f7f_ffff,
    0x5f80_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7f80_0001,
    0x7fc0_0123,
];

/// Boundary values of double precision, and a single-precision number without NaN boxing.
pub const DOUBLES: [u64; 30] = [
    0x0000_0000_0000_0000,
    0x8000_0000_0000_0000,
    0x0000_0000_0000_0001,
    0x8000_0000_0000_0001,
    0x0008_0000_0000_0000,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x8010_0000_0000_0000,
    0x0010_0000_0000_0001,
    0x3ca0_0000_0000_0000,
    0x3fdf_ffff_ffff_ffff,
    0x3fe0_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0001,
    0x3ff8_0000_0000_0000,
    0x4004_0000_0000_0000,
    0xc00c_0000_0000_0000,
    0x4340_0000_0000_0001,
    0x41df_ffff_ffff_ffff,
    0x41e0_0000_0020_0000,
    0x43e0_0000_0000_0000,
    0x43f0_0000_0000_0000,
    0x380f_ffff_ffff_ffff,
    0x36a0_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0x7ff8_0000_0000_0123,
];
