//! Decoder and disassembler.

use crate::table::{Extension, Extensions, Form, Op, Row, ROWS};
use std::fmt::Write;

/// A decoded instruction. Register numbers 0 to 31 are `x`, 32 to 63 are `f`. An absent register operand is `x0`, and
/// an absent immediate is 0, so the second operand is always `r[rs2] + imm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inst {
    /// Operation.
    pub op: Op,
    /// Destination register.
    pub rd: u8,
    /// First source register, or base of the address.
    pub rs1: u8,
    /// Second source register.
    pub rs2: u8,
    /// Third source register.
    pub rs3: u8,
    /// Rounding mode; 7 selects `frm`.
    pub rm: u8,
    /// True for double precision, and for atomic accesses to double words.
    pub wide: bool,
    /// Length in bytes, 2 or 4.
    pub length: u8,
    /// Immediate operand, also of a CSR instruction (see [`Inst::csr`]).
    pub imm: i32,
    /// Encoding.
    pub word: u32,
}

impl Inst {
    /// Number of the control and status register that a CSR instruction names.
    pub fn csr(&self) -> u16 {
        (self.word >> 20) as u16
    }

    /// True if the instruction accesses a control and status register.
    pub(crate) fn is_csr(&self) -> bool {
        matches!(self.op, Op::Csrrw | Op::Csrrs | Op::Csrrc)
    }

    /// True if the instruction may change the control flow, the code, or state that later instructions must observe.
    pub(crate) fn ends_block(&self) -> bool {
        use Op::*;
        matches!(
            self.op,
            Jal | Jalr
                | Beq
                | Bne
                | Blt
                | Bge
                | Bltu
                | Bgeu
                | FenceI
                | Ecall
                | Ebreak
                | Mret
                | Wfi
                | Csrrw
                | Csrrs
                | Csrrc
        )
    }
}

/// Decoder for a set of extensions.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// Candidate rows, by the most selective bits of the encoding.
    buckets: Vec<Vec<&'static Row>>,
}

/// Bucket of an encoding: major opcode and `funct3`, which all rows but the compressed ones have.
fn bucket(word: u32) -> usize {
    let key = match word & 3 {
        3 => word >> 2 & 31 | (word >> 12 & 7) << 5,
        quadrant => 256 | quadrant | (word >> 13 & 7) << 2,
    };
    key as usize
}

impl Decoder {
    /// Creates a decoder for these extensions.
    pub fn new(extensions: Extensions) -> Decoder {
        let mut buckets = vec![Vec::new(); 256 + 32];
        for row in ROWS {
            let is_supported =
                extensions.has(row.extension) && (!row.short || extensions.has(Extension::C));
            for function in 0..8 {
                let word = row.encode(function << if row.short { 13 } else { 12 });
                let bucket_rows: &mut Vec<&Row> = &mut buckets[bucket(word)];
                if is_supported && !bucket_rows.iter().any(|listed| std::ptr::eq(*listed, row)) {
                    bucket_rows.push(row);
                }
            }
        }
        Decoder { buckets }
    }

    /// Row that matches an encoding. Ignores the upper half of 16-bit instructions.
    pub fn row(&self, word: u32) -> Option<&'static Row> {
        let word = if word & 3 == 3 { word } else { word & 0xffff };
        let rows = self.buckets[bucket(word)].iter();
        rows.copied().find(|row| word & row.mask == row.bits)
    }

    /// Decodes an instruction; `None` if the encoding is illegal or reserved.
    pub fn decode(&self, word: u32) -> Option<Inst> {
        let row = self.row(word)?;
        if row.short {
            decode_compressed(row, word & 0xffff)
        } else {
            decode_full(row, word)
        }
    }

    /// Disassembles an instruction; illegal encodings become `.2byte` or `.4byte`.
    pub fn disassemble(&self, word: u32) -> String {
        match (self.row(word), self.decode(word)) {
            (Some(row), Some(inst)) => format_instruction(row, &inst),
            _ if word & 3 == 3 => format!(".4byte {word:#010x}"),
            _ => format!(".2byte {:#06x}", word & 0xffff),
        }
    }
}

/// Returns bits `high` to `low`.
fn bits(word: u32, high: u32, low: u32) -> u32 {
    word >> low & ((1 << (high - low + 1)) - 1)
}

/// Sign-extends the lowest `width` bits.
fn sign_extend(value: u32, width: u32) -> i32 {
    ((value << (32 - width)) as i32) >> (32 - width)
}

/// Decodes a 32-bit instruction.
fn decode_full(row: &Row, word: u32) -> Option<Inst> {
    let field = |low| bits(word, low + 4, low) as u8;
    let (rd, rs1, rs2) = (field(7), field(15), field(20));
    let mut inst = Inst {
        op: row.op,
        rd: 0,
        rs1: 0,
        rs2: 0,
        rs3: 0,
        rm: 0,
        wide: false,
        length: 4,
        imm: 0,
        word,
    };
    let i_imm = word as i32 >> 20;
    let s_imm = i_imm & !31 | rd as i32;
    match row.form {
        Form::R => (inst.rd, inst.rs1, inst.rs2) = (rd, rs1, rs2),
        Form::Imm | Form::Load | Form::Indirect => (inst.rd, inst.rs1, inst.imm) = (rd, rs1, i_imm),
        Form::Shift => (inst.rd, inst.rs1, inst.imm) = (rd, rs1, i_imm & 63),
        Form::ShiftW => (inst.rd, inst.rs1, inst.imm) = (rd, rs1, i_imm & 31),
        Form::Unary => (inst.rd, inst.rs1) = (rd, rs1),
        Form::U => (inst.rd, inst.imm) = (rd, (word & !0xfff) as i32),
        Form::J => {
            let imm = bits(word, 31, 31) << 20
                | bits(word, 19, 12) << 12
                | bits(word, 20, 20) << 11
                | bits(word, 30, 21) << 1;
            (inst.rd, inst.imm) = (rd, sign_extend(imm, 21));
        }
        Form::B => {
            let imm = bits(word, 31, 31) << 12
                | bits(word, 7, 7) << 11
                | bits(word, 30, 25) << 5
                | bits(word, 11, 8) << 1;
            (inst.rs1, inst.rs2, inst.imm) = (rs1, rs2, sign_extend(imm, 13));
        }
        Form::Store => (inst.rs1, inst.rs2, inst.imm) = (rs1, rs2, s_imm),
        Form::LoadF => (inst.rd, inst.rs1, inst.imm) = (rd + 32, rs1, i_imm),
        Form::StoreF => (inst.rs1, inst.rs2, inst.imm) = (rs1, rs2 + 32, s_imm),
        Form::Amo | Form::Reserve => {
            (inst.rd, inst.rs1, inst.rs2) =
                (rd, rs1, if row.form == Form::Reserve { 0 } else { rs2 });
            inst.wide = word >> 12 & 1 != 0;
        }
        Form::Csr => (inst.rd, inst.rs1) = (rd, rs1),
        Form::CsrI => (inst.rd, inst.imm) = (rd, i32::from(rs1)),
        Form::Cbo => inst.rs1 = rs1,
        Form::Hint => (inst.rs1, inst.imm) = (rs1, i_imm & !31),
        // The access sets of a fence are in `word`; its other fields are reserved and must be ignored.
        Form::Order | Form::Plain => {}
        _ => return decode_float(row, inst),
    }
    Some(inst)
}

/// Decodes a 32-bit instruction on floating-point registers.
fn decode_float(row: &Row, mut inst: Inst) -> Option<Inst> {
    let field = |low| bits(inst.word, low + 4, low) as u8;
    let (rd, rs1, rs2) = (field(7), field(15), field(20));
    inst.wide = inst.word >> 25 & 1 != 0;
    let has_rounding_mode = matches!(
        row.form,
        Form::F4 | Form::F2 | Form::F1 | Form::FToX | Form::XToF
    );
    if has_rounding_mode {
        inst.rm = bits(inst.word, 14, 12) as u8;
        if matches!(inst.rm, 5 | 6) {
            return None;
        }
    }
    match row.form {
        Form::F4 => {
            (inst.rd, inst.rs1, inst.rs2, inst.rs3) = (rd + 32, rs1 + 32, rs2 + 32, field(27) + 32)
        }
        Form::F2 | Form::F2Plain => (inst.rd, inst.rs1, inst.rs2) = (rd + 32, rs1 + 32, rs2 + 32),
        Form::FCompare => (inst.rd, inst.rs1, inst.rs2) = (rd, rs1 + 32, rs2 + 32),
        Form::F1 => (inst.rd, inst.rs1) = (rd + 32, rs1 + 32),
        Form::FToX | Form::FToXPlain => (inst.rd, inst.rs1) = (rd, rs1 + 32),
        _ => (inst.rd, inst.rs1) = (rd + 32, rs1),
    }
    Some(inst)
}

/// Decodes a 16-bit instruction.
fn decode_compressed(row: &Row, word: u32) -> Option<Inst> {
    let b = |high, low| bits(word, high, low);
    let (rd, rs2) = (b(11, 7) as u8, b(6, 2) as u8);
    // Three-bit register fields name x8 to x15.
    let (near1, near2) = (b(9, 7) as u8 + 8, b(4, 2) as u8 + 8);
    let six = b(12, 12) << 5 | b(6, 2);
    let imm6 = sign_extend(six, 6);
    let word_offset = (b(12, 10) << 3 | b(6, 6) << 2 | b(5, 5) << 6) as i32;
    let double_offset = (b(12, 10) << 3 | b(6, 5) << 6) as i32;
    let word_sp = (b(12, 12) << 5 | b(6, 4) << 2 | b(3, 2) << 6) as i32;
    let double_sp = (b(12, 12) << 5 | b(6, 5) << 3 | b(4, 2) << 6) as i32;
    let to_word_sp = (b(12, 9) << 2 | b(8, 7) << 6) as i32;
    let to_double_sp = (b(12, 10) << 3 | b(9, 7) << 6) as i32;
    let (rd, rs1, rs2, imm) = match row.form {
        Form::CAddi4spn => {
            let imm = b(12, 11) << 4 | b(10, 7) << 6 | b(6, 6) << 2 | b(5, 5) << 3;
            (imm != 0).then_some((near2, 2, 0, imm as i32))?
        }
        Form::CLw => (near2, near1, 0, word_offset),
        Form::CLd => (near2, near1, 0, double_offset),
        Form::CFld => (near2 + 32, near1, 0, double_offset),
        Form::CSw => (0, near1, near2, word_offset),
        Form::CSd => (0, near1, near2, double_offset),
        Form::CFsd => (0, near1, near2 + 32, double_offset),
        Form::CAddi => (rd, rd, 0, imm6),
        Form::CAddiw => (rd != 0).then_some((rd, rd, 0, imm6))?,
        Form::CLi => (rd, 0, 0, imm6),
        Form::CAddi16sp => {
            let imm = b(12, 12) << 9 | b(6, 6) << 4 | b(5, 5) << 6 | b(4, 3) << 7 | b(2, 2) << 5;
            (imm != 0).then_some((2, 2, 0, sign_extend(imm, 10)))?
        }
        Form::CLui => (six != 0).then_some((rd, 0, 0, imm6 << 12))?,
        Form::CShift => (near1, near1, 0, six as i32),
        Form::CAndi => (near1, near1, 0, imm6),
        Form::CArith => (near1, near1, near2, 0),
        Form::CJ => {
            let imm = b(12, 12) << 11
                | b(11, 11) << 4
                | b(10, 9) << 8
                | b(8, 8) << 10
                | b(7, 7) << 6
                | b(6, 6) << 7;
            (0, 0, 0, sign_extend(imm | b(5, 3) << 1 | b(2, 2) << 5, 12))
        }
        Form::CBranch => {
            let imm = b(12, 12) << 8 | b(11, 10) << 3 | b(6, 5) << 6 | b(4, 3) << 1 | b(2, 2) << 5;
            (0, near1, 0, sign_extend(imm, 9))
        }
        Form::CSlli => (rd, rd, 0, six as i32),
        Form::CLwsp => (rd != 0).then_some((rd, 2, 0, word_sp))?,
        Form::CLdsp => (rd != 0).then_some((rd, 2, 0, double_sp))?,
        Form::CFldsp => (rd + 32, 2, 0, double_sp),
        Form::CSwsp => (0, 2, rs2, to_word_sp),
        Form::CSdsp => (0, 2, rs2, to_double_sp),
        Form::CFsdsp => (0, 2, rs2 + 32, to_double_sp),
        Form::CJr => (rd != 0).then_some((0, rd, 0, 0))?,
        Form::CJalr => (1, rd, 0, 0),
        Form::CMv => (rd, 0, rs2, 0),
        Form::CAdd => (rd, rd, rs2, 0),
        _ => (0, 0, 0, 0),
    };
    Some(Inst {
        op: row.op,
        rd,
        rs1,
        rs2,
        rs3: 0,
        rm: 0,
        wide: false,
        length: 2,
        imm,
        word,
    })
}

/// ABI name of a register.
pub fn register(number: u8) -> &'static str {
    const NAMES: [&str; 64] = [
        "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",
        "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
        "t5", "t6", "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0",
        "fa1", "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7",
        "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11",
    ];
    NAMES[usize::from(number & 63)]
}

/// Formats a decoded instruction. Jump targets are written as offsets.
fn format_instruction(row: &Row, inst: &Inst) -> String {
    let [rd, rs1, rs2, rs3] = [inst.rd, inst.rs1, inst.rs2, inst.rs3].map(register);
    let imm = inst.imm;
    let upper = (imm as u32) >> 12;
    let mut operands = match row.form {
        Form::R | Form::F2 | Form::F2Plain | Form::FCompare => format!("{rd}, {rs1}, {rs2}"),
        Form::Imm | Form::Shift | Form::ShiftW => format!("{rd}, {rs1}, {imm}"),
        Form::CAddi4spn | Form::CAddi16sp => format!("{rd}, sp, {imm}"),
        Form::U => format!("{rd}, {upper:#x}"),
        Form::CLui => format!("{rd}, {:#x}", upper & 0xfffff),
        Form::J => format!("{rd}, . {imm:+}"),
        Form::B => format!("{rs1}, {rs2}, . {imm:+}"),
        Form::Indirect | Form::Load | Form::LoadF => format!("{rd}, {imm}({rs1})"),
        Form::CLw | Form::CLd | Form::CFld | Form::CLwsp | Form::CLdsp | Form::CFldsp => {
            format!("{rd}, {imm}({rs1})")
        }
        Form::Store | Form::StoreF => format!("{rs2}, {imm}({rs1})"),
        Form::CSw | Form::CSd | Form::CFsd | Form::CSwsp | Form::CSdsp | Form::CFsdsp => {
            format!("{rs2}, {imm}({rs1})")
        }
        Form::Amo => format!("{rd}, {rs2}, ({rs1})"),
        Form::Reserve => format!("{rd}, ({rs1})"),
        Form::Csr => format!("{rd}, {:#x}, {rs1}", inst.csr()),
        Form::CsrI => format!("{rd}, {:#x}, {imm}", inst.csr()),
        Form::Cbo => format!("({rs1})"),
        Form::Hint => format!("{imm}({rs1})"),
        Form::F4 => format!("{rd}, {rs1}, {rs2}, {rs3}"),
        Form::Unary | Form::F1 | Form::FToX | Form::FToXPlain | Form::XToF | Form::XToFPlain => {
            format!("{rd}, {rs1}")
        }
        Form::CAddi | Form::CAddiw | Form::CLi | Form::CShift | Form::CAndi | Form::CSlli => {
            format!("{rd}, {imm}")
        }
        Form::CArith | Form::CMv | Form::CAdd => format!("{rd}, {rs2}"),
        Form::CJ => format!(". {imm:+}"),
        Form::CBranch => format!("{rs1}, . {imm:+}"),
        Form::CJr | Form::CJalr => rs1.to_string(),
        Form::Order | Form::Plain | Form::CPlain => String::new(),
    };
    if matches!(
        row.form,
        Form::F4 | Form::F2 | Form::F1 | Form::FToX | Form::XToF
    ) && inst.rm != 7
    {
        let modes = ["rne", "rtz", "rdn", "rup", "rmm"];
        let _ = write!(operands, ", {}", modes[usize::from(inst.rm)]);
    }
    let name = match row.form {
        Form::Amo | Form::Reserve => format!(
            "{}{}",
            row.name,
            ["", ".rl", ".aq", ".aqrl"][bits(inst.word, 26, 25) as usize]
        ),
        _ => row.name.to_string(),
    };
    format!("{name} {operands}").trim_end().to_string()
}
