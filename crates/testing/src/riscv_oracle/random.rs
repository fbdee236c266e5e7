//! Random straight-line programs with short forward jumps, over all user-mode instructions of the table.

use super::{b_type, encode, i_type, r_type, s_type, Program, Random, START};
use cohkit_riscv::table::{Form, Op, Row, ROWS};
use cohkit_riscv::{register, Decoder, Extensions, Inst};

/// Bytes of memory per program: registers before and after, and data.
const AREA_BYTES: usize = 4096 + 64;
/// Offset of the base register in this memory.
const BASE_OFFSET: u64 = 2048;

/// Writer for one of several programs in a file.
struct Writer<'a> {
    /// Source of all choices.
    random: &'a mut Random,
    /// Decoder that checks instructions before they are emitted.
    decoder: &'a Decoder,
    /// Rows of the instruction table to draw from.
    rows: &'a [&'static Row],
    /// Base register for memory accesses.
    base: u8,
    /// Program that instructions are appended to.
    program: &'a mut Program,
}

/// Rows for random programs.
fn rows() -> Vec<&'static Row> {
    // QEMU 7.2 computes `ctzw` wrongly if the low word is zero.
    let is_usable = |row: &&Row| {
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
    let mut rows: Vec<&Row> = ROWS.iter().filter(is_usable).collect();
    // Favour instructions that load new values, because floating-point results soon are all NaN.
    let loads: Vec<&Row> = rows
        .iter()
        .filter(|row| row.form == Form::LoadF)
        .copied()
        .collect();
    rows.extend(loads.iter().cycle().take(12));
    rows
}

/// Creates `count` programs of `length` random instructions each, with consecutive seeds, in one file. Each starts by
/// loading all registers and ends by storing them.
pub fn programs(seed: u64, count: usize, length: usize) -> Program {
    let mut program = Program {
        data_at: START + 0x1000 + (count * (length * 16 + 1000)) as u64,
        ..Program::default()
    };
    let (rows, decoder) = (rows(), Decoder::new(Extensions::HOST));
    for number in 0..count {
        let mut random = Random::new(seed + number as u64);
        for _ in 0..AREA_BYTES / 8 {
            program.data.extend(random.value().to_le_bytes());
        }
        let base = random.one_of(&[2, 8, 9, 10, 11, 12, 13, 14, 15, 2, 1, 3, 7, 16, 31]);
        let base_address = program.data_at + (number * AREA_BYTES) as u64 + BASE_OFFSET;
        let mut writer = Writer {
            random: &mut random,
            decoder: &decoder,
            rows: &rows,
            base,
            program: &mut program,
        };
        writer.load_registers(base_address);
        for _ in 0..length {
            writer.random_instruction();
        }
        writer.store_registers();
    }
    program.finish(program.data_at, program.data.len());
    program
}

/// Offset of a register's save slot from the base register.
fn save_offset(number: u32) -> i32 {
    number as i32 * 8 - BASE_OFFSET as i32
}

impl Writer<'_> {
    /// Emits loads of all registers but the base, sets a random valid rounding mode, and clears the floating-point
    /// flags.
    fn load_registers(&mut self, base_address: u64) {
        let base = u32::from(self.base);
        self.program.li(base, base_address);
        for number in 0..32 {
            self.program
                .push(i_type("fld", number, base, save_offset(32 + number)));
        }
        let mode = self.random.below(5) as u32;
        self.program.push(encode("csrrwi", mode << 15 | 2 << 20));
        self.program.push(encode("csrrwi", 1 << 20));
        for number in (1..32).filter(|&number| number != base) {
            self.program
                .push(i_type("ld", number, base, save_offset(number)));
        }
    }

    /// Emits stores of all registers, and of the floating-point control and status register.
    fn store_registers(&mut self) {
        let base = u32::from(self.base);
        for number in 0..32 {
            self.program
                .push(s_type("sd", number, base, save_offset(number)));
            self.program
                .push(s_type("fsd", number, base, save_offset(32 + number)));
        }
        let scratch = if base == 5 { 6 } else { 5 };
        self.program.push(encode("csrrs", scratch << 7 | 3 << 20));
        self.program
            .push(s_type("sd", scratch, base, save_offset(64)));
    }

    /// A random writable register other than `x0`.
    fn random_register(&mut self) -> u32 {
        loop {
            let number = self.random.below(31) as u8 + 1;
            if number != self.base {
                return number.into();
            }
        }
    }

    /// Emits an instruction of a random row, with any instructions that must precede or follow it.
    fn random_instruction(&mut self) {
        let row = self.random.one_of(self.rows);
        match row.op {
            Op::Beq | Op::Bne | Op::Blt | Op::Bge | Op::Bltu | Op::Bgeu | Op::Jal | Op::Jalr => {
                self.jump(row)
            }
            Op::Lr | Op::Sc => self.reservation(row),
            op if op as u8 >= Op::AmoSwap as u8 && op as u8 <= Op::AmoMaxu as u8 => {
                let address = self.random_address();
                let (rd, rs2) = (self.random_register(), self.random.below(32) as u32);
                self.program
                    .push(r_type(row.name, rd, address, rs2) | (self.random.below(4) as u32) << 25);
            }
            _ => self.plain_instruction(row),
        }
    }

    /// Emits the computation of a valid, aligned address. Returns its register.
    fn random_address(&mut self) -> u32 {
        let address = self.random_register();
        let offset = (self.random.below(512) * 8) as i32 - BASE_OFFSET as i32;
        self.program
            .push(i_type("addi", address, self.base.into(), offset));
        address
    }

    /// Emits a load-reserved and two store-conditionals: the first succeeds, the second fails.
    fn reservation(&mut self, row: &Row) {
        let address = self.random_address();
        let (load, store) = if row.name.ends_with('w') {
            ("lr.w", "sc.w")
        } else {
            ("lr.d", "sc.d")
        };
        let order = (self.random.below(4) as u32) << 25;
        let mut loaded = self.random_register();
        while loaded == address {
            loaded = self.random_register();
        }
        self.program.push(r_type(load, loaded, address, 0) | order);
        let (first, second) = (self.random_register(), self.random_register());
        let values = (self.random.below(32) as u32, self.random.below(32) as u32);
        let other_address = self.random_address();
        self.program.push(
            r_type(
                store,
                first,
                if other_address == address {
                    other_address
                } else {
                    address
                },
                values.0,
            ) | order,
        );
        let second_address = self.random_address();
        self.program
            .push(r_type(store, second, second_address, values.1));
    }

    /// Emits an instruction that neither jumps nor needs an address in a register.
    fn plain_instruction(&mut self, row: &'static Row) {
        for _ in 0..200 {
            let mut word = row.encode(self.random.next_u64() as u32);
            if matches!(
                row.form,
                Form::Load | Form::Store | Form::LoadF | Form::StoreF
            ) {
                word = word & !(31 << 15) | u32::from(self.base) << 15;
            }
            let accesses_status = matches!(row.form, Form::Csr | Form::CsrI);
            if accesses_status {
                word = word & 0xfffff | (self.random.below(3) as u32 + 1) << 20;
            }
            // Random bits may match an earlier row, such as `c.jr` for a draw of `c.mv`.
            let matches_row = self
                .decoder
                .row(word)
                .is_some_and(|found| std::ptr::eq(found, row));
            let Some(inst) = self.decoder.decode(word).filter(|_| matches_row) else {
                continue;
            };
            if inst.rd != self.base && (!accesses_memory(&inst) || inst.rs1 == self.base) {
                self.program.push(word);
                if accesses_status {
                    self.reset_rounding_mode();
                }
                return;
            }
        }
    }

    /// Emits a read of the floating-point status, since an access to it may have set a reserved rounding mode, and then
    /// sets a valid rounding mode.
    fn reset_rounding_mode(&mut self) {
        let (status, mode) = (self.random_register(), self.random.below(5) as u32);
        self.program.push(encode("csrrs", status << 7 | 3 << 20));
        self.program.push(encode("csrrwi", mode << 15 | 2 << 20));
    }

    /// Emits a jump over at most three instructions.
    fn jump(&mut self, row: &'static Row) {
        let start = self.program.code.len();
        // The two preceding instructions load the target of an indirect jump.
        let by_register = row.op == Op::Jalr;
        let target = self.random_register();
        let mut word = row.encode(self.random.next_u64() as u32);
        let link = match row.name {
            "jal" | "jalr" => self.random_register(),
            _ => 1,
        };
        if matches!(row.name, "c.jalr") && self.base == 1 {
            return;
        }
        if by_register {
            self.program.push(encode("auipc", target << 7));
            self.program.push(i_type("addi", target, target, 0));
        }
        let jump_offset = self.program.code.len();
        self.program.push(word);
        for _ in 0..self.random.below(4) {
            let skipped_row = self.random.one_of(self.rows);
            let is_jump = matches!(skipped_row.op, Op::Jal | Op::Jalr)
                || skipped_row.op as u8 >= Op::Beq as u8 && skipped_row.op as u8 <= Op::Bgeu as u8;
            let is_atomic =
                skipped_row.op as u8 >= Op::Lr as u8 && skipped_row.op as u8 <= Op::AmoMaxu as u8;
            if !is_jump && !is_atomic {
                self.plain_instruction(skipped_row);
            }
        }
        let distance = (self.program.code.len() - jump_offset) as u32;
        word = match row.form {
            Form::B => b_type(row.name, word >> 15 & 31, word >> 20 & 31, distance as i32),
            Form::J => encode(row.name, link << 7 | (distance & 0x7fe) << 20),
            Form::Indirect => i_type(row.name, link, target, 0),
            Form::CBranch => {
                let (d, free) = (distance, word & 7 << 7);
                encode(
                    row.name,
                    free | (d >> 3 & 3) << 10
                        | (d >> 1 & 3) << 3
                        | (d >> 5 & 1) << 2
                        | (d >> 6 & 3) << 5,
                )
            }
            Form::CJ => {
                let d = distance;
                encode(
                    row.name,
                    (d >> 1 & 7) << 3
                        | (d >> 4 & 1) << 11
                        | (d >> 5 & 1) << 2
                        | (d >> 6 & 1) << 7
                        | (d >> 7 & 1) << 6,
                )
            }
            _ => encode(row.name, target << 7),
        };
        let length = if row.short { 2 } else { 4 };
        self.program.code[jump_offset..jump_offset + length]
            .copy_from_slice(&word.to_le_bytes()[..length]);
        if by_register {
            let addi = i_type(
                "addi",
                target,
                target,
                (jump_offset - start) as i32 + distance as i32,
            );
            self.program.code[jump_offset - 4..jump_offset].copy_from_slice(&addi.to_le_bytes());
        }
    }
}

/// True for loads and stores.
fn accesses_memory(inst: &Inst) -> bool {
    inst.op as u8 >= Op::Lb as u8 && inst.op as u8 <= Op::Fsd as u8
}

/// Runs `count` programs of `length` random instructions under QEMU and under `cohkit-riscv`.
///
/// # Errors
/// Describes the first program whose results differ.
pub fn compare(seed: u64, count: usize, length: usize) -> Result<(), String> {
    let program = programs(seed, count, length);
    let crate_output = program.output_in_single_steps();
    let qemu_output = program.output_of_qemu();
    if qemu_output == crate_output {
        return Ok(());
    }
    let Some(byte) = qemu_output
        .iter()
        .zip(&crate_output)
        .position(|(a, b)| a != b)
    else {
        return Err(format!(
            "{} bytes by QEMU, {} by ours",
            qemu_output.len(),
            crate_output.len()
        ));
    };
    let slot = byte % AREA_BYTES / 8;
    let location = match slot as u8 {
        number if slot < 64 => register(number).to_string(),
        _ if slot == 64 => "fcsr".to_string(),
        _ => format!("byte {:#x} of memory", slot * 8),
    };
    let double = |bytes: &[u8]| {
        u64::from_le_bytes(bytes[byte / 8 * 8..][..8].try_into().expect("eight bytes"))
    };
    let seed = seed + (byte / AREA_BYTES) as u64;
    Err(format!(
        "seed {seed}: {location} is {:#x} by QEMU, {:#x} by ours\n  cargo run -p cohkit-riscv --example agree_with_qemu -- --seed {seed} --count 1 --length {length} --show",
        double(&qemu_output),
        double(&crate_output)
    ))
}
