//! Random straight-line programs with short forward jumps, over all user-mode instructions of the table.

use super::{b_type, bits, i_type, r_type, s_type, Program, Random, START};
use cohkit_riscv::table::{Form, Op, Row, ROWS};
use cohkit_riscv::{register, Decoder, Extensions, Inst};

/// Bytes of memory per program: registers before and after, and data.
const AREA: usize = 4096 + 64;
/// Offset of the base register in this memory.
const MIDDLE: u64 = 2048;

/// Writer for one of several programs in a file.
struct Writer<'a> {
    random: &'a mut Random,
    decoder: &'a Decoder,
    rows: &'a [&'static Row],
    /// Base register for memory accesses.
    base: u8,
    program: &'a mut Program,
}

/// Rows for random programs.
fn rows() -> Vec<&'static Row> {
    // QEMU 7.2 computes `ctzw` wrongly if the low word is zero.
    let one = |row: &&Row| {
        row.op != Op::Ctzw
            && !matches!(
                row.op,
                Op::Ecall
                    | Op::Ebreak
                    | Op::Mret
                    | Op::Wfi
                    | Op::CboInval
                    | Op::CboClean
                    | Op::CboFlush
            )
    };
    let mut rows: Vec<&Row> = ROWS.iter().filter(one).collect();
    // Favour instructions that load new values, because floating-point results soon are all NaN.
    let loads: Vec<&Row> = rows
        .iter()
        .filter(|row| row.form == Form::LoadF)
        .copied()
        .collect();
    rows.extend(loads.iter().cycle().take(12));
    rows
}

/// Creates `count` programs, with consecutive seeds, in one file. Each starts by loading all registers and ends by
/// storing them.
pub fn programs(seed: u64, count: usize, length: usize) -> Program {
    let mut program = Program {
        data_at: START + 0x1000 + (count * (length * 16 + 1000)) as u64,
        ..Program::default()
    };
    let (rows, decoder) = (rows(), Decoder::new(Extensions::HOST));
    for number in 0..count {
        let mut random = Random(seed + number as u64);
        for _ in 0..AREA / 8 {
            program.data.extend(random.value().to_le_bytes());
        }
        let base = random.one_of(&[2, 8, 9, 10, 11, 12, 13, 14, 15, 2, 1, 3, 7, 16, 31]);
        let middle = program.data_at + (number * AREA) as u64 + MIDDLE;
        let mut writer = Writer {
            random: &mut random,
            decoder: &decoder,
            rows: &rows,
            base,
            program: &mut program,
        };
        writer.begin(middle);
        for _ in 0..length {
            writer.any();
        }
        writer.end();
    }
    program.finish(program.data_at, program.data.len());
    program
}

/// Offset of a register's save slot from the base register.
fn kept(number: u32) -> i32 {
    number as i32 * 8 - MIDDLE as i32
}

impl Writer<'_> {
    fn begin(&mut self, middle: u64) {
        let base = u32::from(self.base);
        self.program.li(base, middle);
        for number in 0..32 {
            self.program
                .push(i_type("fld", number, base, kept(32 + number)));
        }
        let mode = self.random.below(5) as u32;
        self.program.push(bits("csrrwi", mode << 15 | 2 << 20));
        self.program.push(bits("csrrwi", 1 << 20));
        for number in (1..32).filter(|&number| number != base) {
            self.program.push(i_type("ld", number, base, kept(number)));
        }
    }

    fn end(&mut self) {
        let base = u32::from(self.base);
        for number in 0..32 {
            self.program.push(s_type("sd", number, base, kept(number)));
            self.program
                .push(s_type("fsd", number, base, kept(32 + number)));
        }
        let other = if base == 5 { 6 } else { 5 };
        self.program.push(bits("csrrs", other << 7 | 3 << 20));
        self.program.push(s_type("sd", other, base, kept(64)));
    }

    /// A random writable register other than `x0`.
    fn other(&mut self) -> u32 {
        loop {
            let number = self.random.below(31) as u8 + 1;
            if number != self.base {
                return number.into();
            }
        }
    }

    /// Emits an instruction of a random row, with any instructions that must precede or follow it.
    fn any(&mut self) {
        let row = self.random.one_of(self.rows);
        match row.op {
            Op::Beq | Op::Bne | Op::Blt | Op::Bge | Op::Bltu | Op::Bgeu | Op::Jal | Op::Jalr => {
                self.jump(row)
            }
            Op::Lr | Op::Sc => self.reserve(row),
            op if op as u8 >= Op::AmoSwap as u8 && op as u8 <= Op::AmoMaxu as u8 => {
                let at = self.place();
                let (rd, rs2) = (self.other(), self.random.below(32) as u32);
                self.program
                    .push(r_type(row.name, rd, at, rs2) | (self.random.below(4) as u32) << 25);
            }
            _ => self.simple(row),
        }
    }

    /// Emits the computation of a valid, aligned address. Returns its register.
    fn place(&mut self) -> u32 {
        let at = self.other();
        let offset = (self.random.below(512) * 8) as i32 - MIDDLE as i32;
        self.program
            .push(i_type("addi", at, self.base.into(), offset));
        at
    }

    /// Emits a load-reserved and two store-conditionals: the first succeeds, the second fails.
    fn reserve(&mut self, row: &Row) {
        let at = self.place();
        let (load, store) = if row.name.ends_with('w') {
            ("lr.w", "sc.w")
        } else {
            ("lr.d", "sc.d")
        };
        let order = (self.random.below(4) as u32) << 25;
        let mut read = self.other();
        while read == at {
            read = self.other();
        }
        self.program.push(r_type(load, read, at, 0) | order);
        let (first, second) = (self.other(), self.other());
        let values = (self.random.below(32) as u32, self.random.below(32) as u32);
        let other = self.place();
        self.program
            .push(r_type(store, first, if other == at { other } else { at }, values.0) | order);
        let again = self.place();
        self.program.push(r_type(store, second, again, values.1));
    }

    /// Emits an instruction that neither jumps nor needs an address in a register.
    fn simple(&mut self, row: &'static Row) {
        for _ in 0..200 {
            let mut word = row.filled(self.random.next() as u32);
            if matches!(
                row.form,
                Form::Load | Form::Store | Form::LoadF | Form::StoreF
            ) {
                word = word & !(31 << 15) | u32::from(self.base) << 15;
            }
            let status = matches!(row.form, Form::Csr | Form::CsrI);
            if status {
                word = word & 0xfffff | (self.random.below(3) as u32 + 1) << 20;
            }
            // Random bits may match an earlier row, such as `c.jr` for a draw of `c.mv`.
            let own = self
                .decoder
                .row(word)
                .is_some_and(|found| std::ptr::eq(found, row));
            let Some(inst) = self.decoder.decode(word).filter(|_| own) else {
                continue;
            };
            if inst.rd != self.base && (!accesses(&inst) || inst.rs1 == self.base) {
                self.program.push(word);
                if status {
                    self.rounds();
                }
                return;
            }
        }
    }

    /// Emits a read of the floating-point status, since an access to it may have set a reserved rounding mode, and then
    /// sets a valid rounding mode.
    fn rounds(&mut self) {
        let (seen, mode) = (self.other(), self.random.below(5) as u32);
        self.program.push(bits("csrrs", seen << 7 | 3 << 20));
        self.program.push(bits("csrrwi", mode << 15 | 2 << 20));
    }

    /// Emits a jump over at most three instructions.
    fn jump(&mut self, row: &'static Row) {
        let from = self.program.code.len();
        // The two preceding instructions load the target of an indirect jump.
        let by_register = row.op == Op::Jalr;
        let target = self.other();
        let mut word = row.filled(self.random.next() as u32);
        let link = match row.name {
            "jal" | "jalr" => self.other(),
            _ => 1,
        };
        if matches!(row.name, "c.jalr") && self.base == 1 {
            return;
        }
        if by_register {
            self.program.push(bits("auipc", target << 7));
            self.program.push(i_type("addi", target, target, 0));
        }
        let at = self.program.code.len();
        self.program.push(word);
        for _ in 0..self.random.below(4) {
            let over = self.random.one_of(self.rows);
            let jumps = matches!(over.op, Op::Jal | Op::Jalr)
                || over.op as u8 >= Op::Beq as u8 && over.op as u8 <= Op::Bgeu as u8;
            let atomic = over.op as u8 >= Op::Lr as u8 && over.op as u8 <= Op::AmoMaxu as u8;
            if !jumps && !atomic {
                self.simple(over);
            }
        }
        let distance = (self.program.code.len() - at) as u32;
        word = match row.form {
            Form::B => b_type(row.name, word >> 15 & 31, word >> 20 & 31, distance as i32),
            Form::J => bits(row.name, link << 7 | (distance & 0x7fe) << 20),
            Form::Indirect => i_type(row.name, link, target, 0),
            Form::CBranch => {
                let (d, free) = (distance, word & 7 << 7);
                bits(
                    row.name,
                    free | (d >> 3 & 3) << 10
                        | (d >> 1 & 3) << 3
                        | (d >> 5 & 1) << 2
                        | (d >> 6 & 3) << 5,
                )
            }
            Form::CJ => {
                let d = distance;
                bits(
                    row.name,
                    (d >> 1 & 7) << 3
                        | (d >> 4 & 1) << 11
                        | (d >> 5 & 1) << 2
                        | (d >> 6 & 1) << 7
                        | (d >> 7 & 1) << 6,
                )
            }
            _ => bits(row.name, target << 7),
        };
        let length = if row.short { 2 } else { 4 };
        self.program.code[at..at + length].copy_from_slice(&word.to_le_bytes()[..length]);
        if by_register {
            let addi = i_type("addi", target, target, (at - from) as i32 + distance as i32);
            self.program.code[at - 4..at].copy_from_slice(&addi.to_le_bytes());
        }
    }
}

/// True for loads and stores.
fn accesses(inst: &Inst) -> bool {
    inst.op as u8 >= Op::Lb as u8 && inst.op as u8 <= Op::Fsd as u8
}

/// Runs programs under QEMU and this crate. Reports the first program whose results differ.
pub fn compare(seed: u64, count: usize, length: usize) -> Result<(), String> {
    let program = programs(seed, count, length);
    let ours = program.output_in_single_steps();
    let theirs = program.output_of_qemu();
    if theirs == ours {
        return Ok(());
    }
    let Some(byte) = theirs.iter().zip(&ours).position(|(a, b)| a != b) else {
        return Err(format!(
            "{} bytes by QEMU, {} by ours",
            theirs.len(),
            ours.len()
        ));
    };
    let place = byte % AREA / 8;
    let what = match place as u8 {
        number if place < 64 => register(number).to_string(),
        _ if place == 64 => "fcsr".to_string(),
        _ => format!("byte {:#x} of memory", place * 8),
    };
    let double =
        |bytes: &[u8]| u64::from_le_bytes(bytes[byte / 8 * 8..][..8].try_into().expect("eight"));
    let seed = seed + (byte / AREA) as u64;
    Err(format!(
        "seed {seed}: {what} is {:#x} by QEMU, {:#x} by ours\n  cargo run -p cohkit-riscv --example agree_with_qemu -- --seed {seed} --count 1 --length {length} --show",
        double(&theirs),
        double(&ours)
    ))
}
