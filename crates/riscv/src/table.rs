//! Instruction encodings. Decoder, disassembler and random programs all read [`ROWS`].

/// RISC-V extension that an encoding belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // They have the names of the standard.
pub enum Extension {
    I,
    M,
    A,
    F,
    D,
    C,
    Zicsr,
    Zifencei,
    Zba,
    Zbb,
    Zbs,
    Zicbom,
    Zicbop,
    /// The privileged instructions of machine mode.
    Machine,
}

/// A set of extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extensions(u32);

impl Extensions {
    /// RV64IMAFDC with all other extensions of the table.
    pub const HOST: Extensions = Extensions(u32::MAX);
    /// RV64IMFC with bit manipulation: extensions of near-memory cores, which lack A and D.
    pub const NEAR_MEMORY: Extensions =
        Extensions::HOST.without(Extension::A).without(Extension::D);

    /// Removes an extension. Removing F also removes D.
    pub const fn without(self, extension: Extension) -> Extensions {
        let implied = match extension {
            Extension::F => 1 << Extension::D as u32,
            _ => 0,
        };
        Extensions(self.0 & !(1 << extension as u32) & !implied)
    }

    /// True if the set contains the extension.
    pub const fn has(self, extension: Extension) -> bool {
        self.0 & 1 << extension as u32 != 0
    }
}

/// Operation of an instruction, independent of its form: `addi`, `lui` and `c.mv` all are [`Op::Add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // They have the names of the standard.
#[rustfmt::skip]
pub enum Op {
    Add, Sub, Sll, Slt, Sltu, Xor, Srl, Sra, Or, And, Addw, Subw, Sllw, Srlw, Sraw,
    Mul, Mulh, Mulhsu, Mulhu, Div, Divu, Rem, Remu, Mulw, Divw, Divuw, Remw, Remuw,
    AddUw, Sh1add, Sh2add, Sh3add, Sh1addUw, Sh2addUw, Sh3addUw, SllUw,
    Andn, Orn, Xnor, Clz, Clzw, Ctz, Ctzw, Cpop, Cpopw, Max, Maxu, Min, Minu, SextB, SextH, ZextH,
    Rol, Rolw, Ror, Rorw, OrcB, Rev8, Bclr, Bext, Binv, Bset,
    Auipc, Jal, Jalr, Beq, Bne, Blt, Bge, Bltu, Bgeu,
    Lb, Lh, Lw, Ld, Lbu, Lhu, Lwu, Sb, Sh, Sw, Sd, Flw, Fld, Fsw, Fsd,
    Lr, Sc, AmoSwap, AmoAdd, AmoXor, AmoAnd, AmoOr, AmoMin, AmoMax, AmoMinu, AmoMaxu,
    Fence, FenceI, Ecall, Ebreak, Mret, Wfi, Csrrw, Csrrs, Csrrc,
    CboInval, CboClean, CboFlush, PrefetchI, PrefetchR, PrefetchW,
    Fadd, Fsub, Fmul, Fdiv, Fsqrt, Fmin, Fmax, Fsgnj, Fsgnjn, Fsgnjx, Feq, Flt, Fle, Fclass,
    Fmadd, Fmsub, Fnmsub, Fnmadd, FcvtSD, FcvtDS, FmvToX, FmvToF,
    FcvtW, FcvtWu, FcvtL, FcvtLu, FcvtFromW, FcvtFromWu, FcvtFromL, FcvtFromLu,
}

impl Op {
    /// True for loads, stores and atomic accesses.
    #[inline(always)]
    pub fn accesses(self) -> bool {
        (Op::Lb as u8..=Op::AmoMaxu as u8).contains(&(self as u8))
    }

    /// True if the operation calls the memory: accesses, fences, block management and prefetches.
    #[inline(always)]
    pub(crate) fn is_memory_operation(self) -> bool {
        let block_operations = Op::CboInval as u8..=Op::PrefetchW as u8;
        self.accesses()
            || matches!(self, Op::Fence | Op::FenceI)
            || block_operations.contains(&(self as u8))
    }
}

/// Operand format. The letters F and X in a name select floating-point and integer registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
#[allow(missing_docs)] // The letters are those of the standard.
pub enum Form {
    R, Imm, Shift, ShiftW, Unary, U, J, Indirect, B, Load, Store, LoadF, StoreF, Amo, Reserve, Order, Plain, Csr, CsrI, Cbo,
    /// Prefetches, whose address offset is a multiple of 32.
    Hint,
    /// Floating-point formats, by number of source registers, rounding mode field (none in `Plain`) and register files.
    F4, F2, F2Plain, FCompare, F1, FToX, FToXPlain, XToF, XToFPlain,
    CAddi4spn, CLw, CLd, CFld, CSw, CSd, CFsd, CAddi, CAddiw, CLi, CAddi16sp, CLui, CShift, CAndi, CArith, CJ, CBranch,
    CSlli, CFldsp, CLwsp, CLdsp, CJr, CJalr, CMv, CAdd, CFsdsp, CSwsp, CSdsp, CPlain,
}

/// One encoding.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Assembler mnemonic.
    pub name: &'static str,
    /// Extension that provides it.
    pub extension: Extension,
    /// Operation.
    pub op: Op,
    /// Operand format.
    pub form: Form,
    /// Mask of the fixed bits.
    pub mask: u32,
    /// Values of the fixed bits; 0 outside of `mask`.
    pub bits: u32,
    /// True for 16-bit encodings.
    pub short: bool,
}

impl Row {
    /// Combines the fixed bits of this row with `operand_bits` in its other bits. The result may be a reserved
    /// encoding.
    pub fn encode(&self, operand_bits: u32) -> u32 {
        let length_mask = if self.short { 0xffff } else { u32::MAX };
        self.bits | operand_bits & !self.mask & length_mask
    }
}

/// Returns the row with this mnemonic, if any.
pub fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

/// Creates a row from its bit pattern, highest bit first; `.` is an operand bit. The pattern's length is the
/// encoding's.
const fn r(name: &'static str, extension: Extension, op: Op, form: Form, pattern: &str) -> Row {
    let text = pattern.as_bytes();
    let (mut mask, mut bits, mut length, mut index) = (0, 0, 0, 0);
    while index < text.len() {
        if text[index] != b' ' {
            mask = mask << 1 | (text[index] != b'.') as u32;
            bits = bits << 1 | (text[index] == b'1') as u32;
            length += 1;
        }
        index += 1;
    }
    assert!(length == 16 || length == 32);
    Row {
        name,
        extension,
        op,
        form,
        mask,
        bits,
        short: length == 16,
    }
}

use Extension::*;
use Form::*;
use Op::*;

/// All encodings. If two rows match, the earlier one takes precedence.
#[rustfmt::skip]
pub static ROWS: &[Row] = &[
    // Cores without Zicbop execute prefetches as `ori x0`, a no-op.
    r("prefetch.i", Zicbop, PrefetchI, Hint, "....... 00000 ..... 110 00000 0010011"),
    r("prefetch.r", Zicbop, PrefetchR, Hint, "....... 00001 ..... 110 00000 0010011"),
    r("prefetch.w", Zicbop, PrefetchW, Hint, "....... 00011 ..... 110 00000 0010011"),
    r("lui",    I, Add,   U,      ".................... ..... 0110111"),
    r("auipc",  I, Auipc, U,      ".................... ..... 0010111"),
    r("jal",    I, Jal,   J,      ".................... ..... 1101111"),
    r("jalr",   I, Jalr,  Indirect, "............ ..... 000 ..... 1100111"),
    r("beq",    I, Beq,   B,      "....... ..... ..... 000 ..... 1100011"),
    r("bne",    I, Bne,   B,      "....... ..... ..... 001 ..... 1100011"),
    r("blt",    I, Blt,   B,      "....... ..... ..... 100 ..... 1100011"),
    r("bge",    I, Bge,   B,      "....... ..... ..... 101 ..... 1100011"),
    r("bltu",   I, Bltu,  B,      "....... ..... ..... 110 ..... 1100011"),
    r("bgeu",   I, Bgeu,  B,      "....... ..... ..... 111 ..... 1100011"),
    r("lb",     I, Lb,    Load,   "............ ..... 000 ..... 0000011"),
    r("lh",     I, Lh,    Load,   "............ ..... 001 ..... 0000011"),
    r("lw",     I, Lw,    Load,   "............ ..... 010 ..... 0000011"),
    r("ld",     I, Ld,    Load,   "............ ..... 011 ..... 0000011"),
    r("lbu",    I, Lbu,   Load,   "............ ..... 100 ..... 0000011"),
    r("lhu",    I, Lhu,   Load,   "............ ..... 101 ..... 0000011"),
    r("lwu",    I, Lwu,   Load,   "............ ..... 110 ..... 0000011"),
    r("sb",     I, Sb,    Store,  "....... ..... ..... 000 ..... 0100011"),
    r("sh",     I, Sh,    Store,  "....... ..... ..... 001 ..... 0100011"),
    r("sw",     I, Sw,    Store,  "....... ..... ..... 010 ..... 0100011"),
    r("sd",     I, Sd,    Store,  "....... ..... ..... 011 ..... 0100011"),
    r("addi",   I, Add,   Imm, "............ ..... 000 ..... 0010011"),
    r("slti",   I, Slt,   Imm, "............ ..... 010 ..... 0010011"),
    r("sltiu",  I, Sltu,  Imm, "............ ..... 011 ..... 0010011"),
    r("xori",   I, Xor,   Imm, "............ ..... 100 ..... 0010011"),
    r("ori",    I, Or,    Imm, "............ ..... 110 ..... 0010011"),
    r("andi",   I, And,   Imm, "............ ..... 111 ..... 0010011"),
    r("slli",   I, Sll,   Shift,  "000000 ...... ..... 001 ..... 0010011"),
    r("srli",   I, Srl,   Shift,  "000000 ...... ..... 101 ..... 0010011"),
    r("srai",   I, Sra,   Shift,  "010000 ...... ..... 101 ..... 0010011"),
    r("add",    I, Add,   R,      "0000000 ..... ..... 000 ..... 0110011"),
    r("sub",    I, Sub,   R,      "0100000 ..... ..... 000 ..... 0110011"),
    r("sll",    I, Sll,   R,      "0000000 ..... ..... 001 ..... 0110011"),
    r("slt",    I, Slt,   R,      "0000000 ..... ..... 010 ..... 0110011"),
    r("sltu",   I, Sltu,  R,      "0000000 ..... ..... 011 ..... 0110011"),
    r("xor",    I, Xor,   R,      "0000000 ..... ..... 100 ..... 0110011"),
    r("srl",    I, Srl,   R,      "0000000 ..... ..... 101 ..... 0110011"),
    r("sra",    I, Sra,   R,      "0100000 ..... ..... 101 ..... 0110011"),
    r("or",     I, Or,    R,      "0000000 ..... ..... 110 ..... 0110011"),
    r("and",    I, And,   R,      "0000000 ..... ..... 111 ..... 0110011"),
    r("addiw",  I, Addw,  Imm, "............ ..... 000 ..... 0011011"),
    r("slliw",  I, Sllw,  ShiftW, "0000000 ..... ..... 001 ..... 0011011"),
    r("srliw",  I, Srlw,  ShiftW, "0000000 ..... ..... 101 ..... 0011011"),
    r("sraiw",  I, Sraw,  ShiftW, "0100000 ..... ..... 101 ..... 0011011"),
    r("addw",   I, Addw,  R,      "0000000 ..... ..... 000 ..... 0111011"),
    r("subw",   I, Subw,  R,      "0100000 ..... ..... 000 ..... 0111011"),
    r("sllw",   I, Sllw,  R,      "0000000 ..... ..... 001 ..... 0111011"),
    r("srlw",   I, Srlw,  R,      "0000000 ..... ..... 101 ..... 0111011"),
    r("sraw",   I, Sraw,  R,      "0100000 ..... ..... 101 ..... 0111011"),
    r("fence",  I, Fence, Order, "............ ..... 000 ..... 0001111"),
    r("ecall",  I, Ecall, Plain,  "000000000000 00000 000 00000 1110011"),
    r("ebreak", I, Ebreak, Plain, "000000000001 00000 000 00000 1110011"),
    r("mret",   Machine, Mret, Plain, "001100000010 00000 000 00000 1110011"),
    r("wfi",    Machine, Wfi, Plain,  "000100000101 00000 000 00000 1110011"),
    r("fence.i", Zifencei, FenceI, Order, "............ ..... 001 ..... 0001111"),
    r("csrrw",  Zicsr, Csrrw, Csr,  "............ ..... 001 ..... 1110011"),
    r("csrrs",  Zicsr, Csrrs, Csr,  "............ ..... 010 ..... 1110011"),
    r("csrrc",  Zicsr, Csrrc, Csr,  "............ ..... 011 ..... 1110011"),
    r("csrrwi", Zicsr, Csrrw, CsrI, "............ ..... 101 ..... 1110011"),
    r("csrrsi", Zicsr, Csrrs, CsrI, "............ ..... 110 ..... 1110011"),
    r("csrrci", Zicsr, Csrrc, CsrI, "............ ..... 111 ..... 1110011"),
    r("cbo.inval", Zicbom, CboInval, Cbo, "000000000000 ..... 010 00000 0001111"),
    r("cbo.clean", Zicbom, CboClean, Cbo, "000000000001 ..... 010 00000 0001111"),
    r("cbo.flush", Zicbom, CboFlush, Cbo, "000000000010 ..... 010 00000 0001111"),

    r("mul",    M, Mul,    R, "0000001 ..... ..... 000 ..... 0110011"),
    r("mulh",   M, Mulh,   R, "0000001 ..... ..... 001 ..... 0110011"),
    r("mulhsu", M, Mulhsu, R, "0000001 ..... ..... 010 ..... 0110011"),
    r("mulhu",  M, Mulhu,  R, "0000001 ..... ..... 011 ..... 0110011"),
    r("div",    M, Div,    R, "0000001 ..... ..... 100 ..... 0110011"),
    r("divu",   M, Divu,   R, "0000001 ..... ..... 101 ..... 0110011"),
    r("rem",    M, Rem,    R, "0000001 ..... ..... 110 ..... 0110011"),
    r("remu",   M, Remu,   R, "0000001 ..... ..... 111 ..... 0110011"),
    r("mulw",   M, Mulw,   R, "0000001 ..... ..... 000 ..... 0111011"),
    r("divw",   M, Divw,   R, "0000001 ..... ..... 100 ..... 0111011"),
    r("divuw",  M, Divuw,  R, "0000001 ..... ..... 101 ..... 0111011"),
    r("remw",   M, Remw,   R, "0000001 ..... ..... 110 ..... 0111011"),
    r("remuw",  M, Remuw,  R, "0000001 ..... ..... 111 ..... 0111011"),

    r("lr.w",      A, Lr, Reserve, "00010 .. 00000 ..... 010 ..... 0101111"),
    r("sc.w",      A, Sc,       Amo, "00011 .. ..... ..... 010 ..... 0101111"),
    r("amoswap.w", A, AmoSwap,  Amo, "00001 .. ..... ..... 010 ..... 0101111"),
    r("amoadd.w",  A, AmoAdd,   Amo, "00000 .. ..... ..... 010 ..... 0101111"),
    r("amoxor.w",  A, AmoXor,   Amo, "00100 .. ..... ..... 010 ..... 0101111"),
    r("amoand.w",  A, AmoAnd,   Amo, "01100 .. ..... ..... 010 ..... 0101111"),
    r("amoor.w",   A, AmoOr,    Amo, "01000 .. ..... ..... 010 ..... 0101111"),
    r("amomin.w",  A, AmoMin,   Amo, "10000 .. ..... ..... 010 ..... 0101111"),
    r("amomax.w",  A, AmoMax,   Amo, "10100 .. ..... ..... 010 ..... 0101111"),
    r("amominu.w", A, AmoMinu,  Amo, "11000 .. ..... ..... 010 ..... 0101111"),
    r("amomaxu.w", A, AmoMaxu,  Amo, "11100 .. ..... ..... 010 ..... 0101111"),
    r("lr.d",      A, Lr, Reserve, "00010 .. 00000 ..... 011 ..... 0101111"),
    r("sc.d",      A, Sc,       Amo, "00011 .. ..... ..... 011 ..... 0101111"),
    r("amoswap.d", A, AmoSwap,  Amo, "00001 .. ..... ..... 011 ..... 0101111"),
    r("amoadd.d",  A, AmoAdd,   Amo, "00000 .. ..... ..... 011 ..... 0101111"),
    r("amoxor.d",  A, AmoXor,   Amo, "00100 .. ..... ..... 011 ..... 0101111"),
    r("amoand.d",  A, AmoAnd,   Amo, "01100 .. ..... ..... 011 ..... 0101111"),
    r("amoor.d",   A, AmoOr,    Amo, "01000 .. ..... ..... 011 ..... 0101111"),
    r("amomin.d",  A, AmoMin,   Amo, "10000 .. ..... ..... 011 ..... 0101111"),
    r("amomax.d",  A, AmoMax,   Amo, "10100 .. ..... ..... 011 ..... 0101111"),
    r("amominu.d", A, AmoMinu,  Amo, "11000 .. ..... ..... 011 ..... 0101111"),
    r("amomaxu.d", A, AmoMaxu,  Amo, "11100 .. ..... ..... 011 ..... 0101111"),

    r("add.uw",    Zba, AddUw,    R, "0000100 ..... ..... 000 ..... 0111011"),
    r("sh1add",    Zba, Sh1add,   R, "0010000 ..... ..... 010 ..... 0110011"),
    r("sh2add",    Zba, Sh2add,   R, "0010000 ..... ..... 100 ..... 0110011"),
    r("sh3add",    Zba, Sh3add,   R, "0010000 ..... ..... 110 ..... 0110011"),
    r("sh1add.uw", Zba, Sh1addUw, R, "0010000 ..... ..... 010 ..... 0111011"),
    r("sh2add.uw", Zba, Sh2addUw, R, "0010000 ..... ..... 100 ..... 0111011"),
    r("sh3add.uw", Zba, Sh3addUw, R, "0010000 ..... ..... 110 ..... 0111011"),
    r("slli.uw",   Zba, SllUw, Shift, "000010 ...... ..... 001 ..... 0011011"),

    r("andn",   Zbb, Andn,  R, "0100000 ..... ..... 111 ..... 0110011"),
    r("orn",    Zbb, Orn,   R, "0100000 ..... ..... 110 ..... 0110011"),
    r("xnor",   Zbb, Xnor,  R, "0100000 ..... ..... 100 ..... 0110011"),
    r("clz",    Zbb, Clz,   Unary, "0110000 00000 ..... 001 ..... 0010011"),
    r("ctz",    Zbb, Ctz,   Unary, "0110000 00001 ..... 001 ..... 0010011"),
    r("cpop",   Zbb, Cpop,  Unary, "0110000 00010 ..... 001 ..... 0010011"),
    r("sext.b", Zbb, SextB, Unary, "0110000 00100 ..... 001 ..... 0010011"),
    r("sext.h", Zbb, SextH, Unary, "0110000 00101 ..... 001 ..... 0010011"),
    r("clzw",   Zbb, Clzw,  Unary, "0110000 00000 ..... 001 ..... 0011011"),
    r("ctzw",   Zbb, Ctzw,  Unary, "0110000 00001 ..... 001 ..... 0011011"),
    r("cpopw",  Zbb, Cpopw, Unary, "0110000 00010 ..... 001 ..... 0011011"),
    r("zext.h", Zbb, ZextH, Unary, "0000100 00000 ..... 100 ..... 0111011"),
    r("min",    Zbb, Min,   R, "0000101 ..... ..... 100 ..... 0110011"),
    r("minu",   Zbb, Minu,  R, "0000101 ..... ..... 101 ..... 0110011"),
    r("max",    Zbb, Max,   R, "0000101 ..... ..... 110 ..... 0110011"),
    r("maxu",   Zbb, Maxu,  R, "0000101 ..... ..... 111 ..... 0110011"),
    r("rol",    Zbb, Rol,   R, "0110000 ..... ..... 001 ..... 0110011"),
    r("rolw",   Zbb, Rolw,  R, "0110000 ..... ..... 001 ..... 0111011"),
    r("ror",    Zbb, Ror,   R, "0110000 ..... ..... 101 ..... 0110011"),
    r("rorw",   Zbb, Rorw,  R, "0110000 ..... ..... 101 ..... 0111011"),
    r("rori",   Zbb, Ror,   Shift, "011000 ...... ..... 101 ..... 0010011"),
    r("roriw",  Zbb, Rorw,  ShiftW, "0110000 ..... ..... 101 ..... 0011011"),
    r("orc.b",  Zbb, OrcB,  Unary, "0010100 00111 ..... 101 ..... 0010011"),
    r("rev8",   Zbb, Rev8,  Unary, "0110101 11000 ..... 101 ..... 0010011"),

    r("bclr",  Zbs, Bclr, R, "0100100 ..... ..... 001 ..... 0110011"),
    r("bext",  Zbs, Bext, R, "0100100 ..... ..... 101 ..... 0110011"),
    r("binv",  Zbs, Binv, R, "0110100 ..... ..... 001 ..... 0110011"),
    r("bset",  Zbs, Bset, R, "0010100 ..... ..... 001 ..... 0110011"),
    r("bclri", Zbs, Bclr, Shift, "010010 ...... ..... 001 ..... 0010011"),
    r("bexti", Zbs, Bext, Shift, "010010 ...... ..... 101 ..... 0010011"),
    r("binvi", Zbs, Binv, Shift, "011010 ...... ..... 001 ..... 0010011"),
    r("bseti", Zbs, Bset, Shift, "001010 ...... ..... 001 ..... 0010011"),

    r("flw",       F, Flw, LoadF,  "............ ..... 010 ..... 0000111"),
    r("fsw",       F, Fsw, StoreF, "....... ..... ..... 010 ..... 0100111"),
    r("fmadd.s",   F, Fmadd,  F4, "..... 00 ..... ..... ... ..... 1000011"),
    r("fmsub.s",   F, Fmsub,  F4, "..... 00 ..... ..... ... ..... 1000111"),
    r("fnmsub.s",  F, Fnmsub, F4, "..... 00 ..... ..... ... ..... 1001011"),
    r("fnmadd.s",  F, Fnmadd, F4, "..... 00 ..... ..... ... ..... 1001111"),
    r("fadd.s",    F, Fadd,   F2, "0000000 ..... ..... ... ..... 1010011"),
    r("fsub.s",    F, Fsub,   F2, "0000100 ..... ..... ... ..... 1010011"),
    r("fmul.s",    F, Fmul,   F2, "0001000 ..... ..... ... ..... 1010011"),
    r("fdiv.s",    F, Fdiv,   F2, "0001100 ..... ..... ... ..... 1010011"),
    r("fsqrt.s",   F, Fsqrt,  F1, "0101100 00000 ..... ... ..... 1010011"),
    r("fsgnj.s",   F, Fsgnj,  F2Plain, "0010000 ..... ..... 000 ..... 1010011"),
    r("fsgnjn.s",  F, Fsgnjn, F2Plain, "0010000 ..... ..... 001 ..... 1010011"),
    r("fsgnjx.s",  F, Fsgnjx, F2Plain, "0010000 ..... ..... 010 ..... 1010011"),
    r("fmin.s",    F, Fmin,   F2Plain, "0010100 ..... ..... 000 ..... 1010011"),
    r("fmax.s",    F, Fmax,   F2Plain, "0010100 ..... ..... 001 ..... 1010011"),
    r("fle.s",     F, Fle,    FCompare, "1010000 ..... ..... 000 ..... 1010011"),
    r("flt.s",     F, Flt,    FCompare, "1010000 ..... ..... 001 ..... 1010011"),
    r("feq.s",     F, Feq,    FCompare, "1010000 ..... ..... 010 ..... 1010011"),
    r("fcvt.w.s",  F, FcvtW,  FToX, "1100000 00000 ..... ... ..... 1010011"),
    r("fcvt.wu.s", F, FcvtWu, FToX, "1100000 00001 ..... ... ..... 1010011"),
    r("fcvt.l.s",  F, FcvtL,  FToX, "1100000 00010 ..... ... ..... 1010011"),
    r("fcvt.lu.s", F, FcvtLu, FToX, "1100000 00011 ..... ... ..... 1010011"),
    r("fcvt.s.w",  F, FcvtFromW,  XToF, "1101000 00000 ..... ... ..... 1010011"),
    r("fcvt.s.wu", F, FcvtFromWu, XToF, "1101000 00001 ..... ... ..... 1010011"),
    r("fcvt.s.l",  F, FcvtFromL,  XToF, "1101000 00010 ..... ... ..... 1010011"),
    r("fcvt.s.lu", F, FcvtFromLu, XToF, "1101000 00011 ..... ... ..... 1010011"),
    r("fmv.x.w",   F, FmvToX, FToXPlain, "1110000 00000 ..... 000 ..... 1010011"),
    r("fclass.s",  F, Fclass, FToXPlain, "1110000 00000 ..... 001 ..... 1010011"),
    r("fmv.w.x",   F, FmvToF, XToFPlain, "1111000 00000 ..... 000 ..... 1010011"),

    r("fld",       D, Fld, LoadF,  "............ ..... 011 ..... 0000111"),
    r("fsd",       D, Fsd, StoreF, "....... ..... ..... 011 ..... 0100111"),
    r("fmadd.d",   D, Fmadd,  F4, "..... 01 ..... ..... ... ..... 1000011"),
    r("fmsub.d",   D, Fmsub,  F4, "..... 01 ..... ..... ... ..... 1000111"),
    r("fnmsub.d",  D, Fnmsub, F4, "..... 01 ..... ..... ... ..... 1001011"),
    r("fnmadd.d",  D, Fnmadd, F4, "..... 01 ..... ..... ... ..... 1001111"),
    r("fadd.d",    D, Fadd,   F2, "0000001 ..... ..... ... ..... 1010011"),
    r("fsub.d",    D, Fsub,   F2, "0000101 ..... ..... ... ..... 1010011"),
    r("fmul.d",    D, Fmul,   F2, "0001001 ..... ..... ... ..... 1010011"),
    r("fdiv.d",    D, Fdiv,   F2, "0001101 ..... ..... ... ..... 1010011"),
    r("fsqrt.d",   D, Fsqrt,  F1, "0101101 00000 ..... ... ..... 1010011"),
    r("fsgnj.d",   D, Fsgnj,  F2Plain, "0010001 ..... ..... 000 ..... 1010011"),
    r("fsgnjn.d",  D, Fsgnjn, F2Plain, "0010001 ..... ..... 001 ..... 1010011"),
    r("fsgnjx.d",  D, Fsgnjx, F2Plain, "0010001 ..... ..... 010 ..... 1010011"),
    r("fmin.d",    D, Fmin,   F2Plain, "0010101 ..... ..... 000 ..... 1010011"),
    r("fmax.d",    D, Fmax,   F2Plain, "0010101 ..... ..... 001 ..... 1010011"),
    r("fcvt.s.d",  D, FcvtSD, F1, "0100000 00001 ..... ... ..... 1010011"),
    r("fcvt.d.s",  D, FcvtDS, F1, "0100001 00000 ..... ... ..... 1010011"),
    r("fle.d",     D, Fle,    FCompare, "1010001 ..... ..... 000 ..... 1010011"),
    r("flt.d",     D, Flt,    FCompare, "1010001 ..... ..... 001 ..... 1010011"),
    r("feq.d",     D, Feq,    FCompare, "1010001 ..... ..... 010 ..... 1010011"),
    r("fcvt.w.d",  D, FcvtW,  FToX, "1100001 00000 ..... ... ..... 1010011"),
    r("fcvt.wu.d", D, FcvtWu, FToX, "1100001 00001 ..... ... ..... 1010011"),
    r("fcvt.l.d",  D, FcvtL,  FToX, "1100001 00010 ..... ... ..... 1010011"),
    r("fcvt.lu.d", D, FcvtLu, FToX, "1100001 00011 ..... ... ..... 1010011"),
    r("fcvt.d.w",  D, FcvtFromW,  XToF, "1101001 00000 ..... ... ..... 1010011"),
    r("fcvt.d.wu", D, FcvtFromWu, XToF, "1101001 00001 ..... ... ..... 1010011"),
    r("fcvt.d.l",  D, FcvtFromL,  XToF, "1101001 00010 ..... ... ..... 1010011"),
    r("fcvt.d.lu", D, FcvtFromLu, XToF, "1101001 00011 ..... ... ..... 1010011"),
    r("fmv.x.d",   D, FmvToX, FToXPlain, "1110001 00000 ..... 000 ..... 1010011"),
    r("fclass.d",  D, Fclass, FToXPlain, "1110001 00000 ..... 001 ..... 1010011"),
    r("fmv.d.x",   D, FmvToF, XToFPlain, "1111001 00000 ..... 000 ..... 1010011"),

    r("c.addi4spn", C, Add, CAddi4spn, "000 ........ ... 00"),
    r("c.fld",      D, Fld, CFld,      "001 ... ... .. ... 00"),
    r("c.lw",       C, Lw,  CLw,       "010 ... ... .. ... 00"),
    r("c.ld",       C, Ld,  CLd,       "011 ... ... .. ... 00"),
    r("c.fsd",      D, Fsd, CFsd,      "101 ... ... .. ... 00"),
    r("c.sw",       C, Sw,  CSw,       "110 ... ... .. ... 00"),
    r("c.sd",       C, Sd,  CSd,       "111 ... ... .. ... 00"),
    r("c.addi",     C, Add, CAddi,     "000 . ..... ..... 01"),
    r("c.addiw",    C, Addw, CAddiw,   "001 . ..... ..... 01"),
    r("c.li",       C, Add, CLi,       "010 . ..... ..... 01"),
    r("c.addi16sp", C, Add, CAddi16sp, "011 . 00010 ..... 01"),
    r("c.lui",      C, Add, CLui,      "011 . ..... ..... 01"),
    r("c.srli",     C, Srl, CShift,    "100 . 00 ... ..... 01"),
    r("c.srai",     C, Sra, CShift,    "100 . 01 ... ..... 01"),
    r("c.andi",     C, And, CAndi,     "100 . 10 ... ..... 01"),
    r("c.sub",      C, Sub, CArith,    "100 0 11 ... 00 ... 01"),
    r("c.xor",      C, Xor, CArith,    "100 0 11 ... 01 ... 01"),
    r("c.or",       C, Or,  CArith,    "100 0 11 ... 10 ... 01"),
    r("c.and",      C, And, CArith,    "100 0 11 ... 11 ... 01"),
    r("c.subw",     C, Subw, CArith,   "100 1 11 ... 00 ... 01"),
    r("c.addw",     C, Addw, CArith,   "100 1 11 ... 01 ... 01"),
    r("c.j",        C, Jal, CJ,        "101 ........... 01"),
    r("c.beqz",     C, Beq, CBranch,   "110 ... ... ..... 01"),
    r("c.bnez",     C, Bne, CBranch,   "111 ... ... ..... 01"),
    r("c.slli",     C, Sll, CSlli,     "000 . ..... ..... 10"),
    r("c.fldsp",    D, Fld, CFldsp,    "001 . ..... ..... 10"),
    r("c.lwsp",     C, Lw,  CLwsp,     "010 . ..... ..... 10"),
    r("c.ldsp",     C, Ld,  CLdsp,     "011 . ..... ..... 10"),
    r("c.jr",       C, Jalr, CJr,  "100 0 ..... 00000 10"),
    r("c.mv",       C, Add, CMv,       "100 0 ..... ..... 10"),
    r("c.ebreak",   C, Ebreak, CPlain, "100 1 00000 00000 10"),
    r("c.jalr",     C, Jalr, CJalr, "100 1 ..... 00000 10"),
    r("c.add",      C, Add, CAdd,      "100 1 ..... ..... 10"),
    r("c.fsdsp",    D, Fsd, CFsdsp,    "101 ...... ..... 10"),
    r("c.swsp",     C, Sw,  CSwsp,     "110 ...... ..... 10"),
    r("c.sdsp",     C, Sd,  CSdsp,     "111 ...... ..... 10"),
];
