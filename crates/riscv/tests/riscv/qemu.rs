//! Every user-mode instruction agrees with QEMU, on directed operands and in random programs.

use cohkit_testing::require;
use cohkit_testing::riscv_oracle;

use cohkit_riscv::table::{Extension, Form, Op, Row, ROWS};
use cohkit_riscv::{Decoder, Extensions, Inst};
use riscv_oracle::{
    b_type, encode, i_type, r_type, s_type, Program, DOUBLES, INTEGERS, SINGLES, START,
};

/// Registers of the test loop: start and end of the operands, results, and memory.
const FROM: u32 = 5;
const TO: u32 = 6;
const RESULTS: u32 = 7;
const CELL: u32 = 14;
/// Registers of the operands and the result.
const A: u32 = 10;
const B: u32 = 11;
const C: u32 = 12;
const RESULT: u32 = 13;
/// Bytes of three operands, and of one result: a register, the flags, and memory.
const OPERAND_BYTES: usize = 24;
const RESULT_BYTES: usize = 32;

/// Operand set of a test.
#[derive(Clone, Copy, PartialEq)]
enum OperandSet {
    /// Pairs of integers.
    Integers,
    /// Pairs of numbers in single or double precision.
    Floats,
    /// Triples of numbers, for fused operations.
    Triples,
}

/// One instruction under test, in one rounding mode.
struct TestCase {
    /// Name of the instruction's row in the table.
    name: &'static str,
    /// Encoded instruction, with its operands in the registers above.
    word: u32,
    /// Decoded instruction.
    inst: Inst,
    /// Dynamic rounding mode.
    frm: u32,
    /// Operands with which the instruction is executed.
    operand_set: OperandSet,
}

/// All combinations of operands, as a program stores them.
fn operands(operand_set: OperandSet) -> Vec<[u64; 3]> {
    let boxed_singles = SINGLES.map(|single| single | 0xffff_ffff_0000_0000);
    let floats: Vec<u64> = boxed_singles.into_iter().chain(DOUBLES).collect();
    let pairs = |list: &[u64]| -> Vec<[u64; 3]> {
        let combinations = list
            .iter()
            .flat_map(|&a| list.iter().map(move |&b| [a, b, 0]));
        combinations.collect()
    };
    match operand_set {
        OperandSet::Integers => pairs(&INTEGERS),
        OperandSet::Floats => {
            // Mixing precisions is useless, apart from the cases that test NaN boxing.
            let mut combinations = pairs(&boxed_singles);
            combinations.extend(pairs(&DOUBLES));
            combinations.extend(floats.iter().map(|&a| [a, 0x3f80_0000, 0]));
            combinations
        }
        OperandSet::Triples => {
            let every_second = |list: &[u64]| -> Vec<u64> {
                list.iter()
                    .copied()
                    .step_by(2)
                    .chain([list[list.len() - 1]])
                    .collect()
            };
            let mut combinations = Vec::new();
            for list in [every_second(&boxed_singles), every_second(&DOUBLES)] {
                for &a in &list {
                    for &b in &list {
                        combinations.extend(list.iter().map(|&c| [a, b, c]));
                    }
                }
            }
            // The third operand cancels all but the last bits of the product.
            for (a, b) in [
                (0x3ff0_0000_0000_0001, 0x3ff0_0000_0000_0001_u64),
                (0x3fff_ffff_ffff_ffff, 0x3ff0_0000_0000_0003),
            ] {
                let product = (f64::from_bits(a) * f64::from_bits(b)).to_bits();
                combinations.extend([
                    [a, b, product ^ 1 << 63],
                    [a, b, product],
                    [a, b, (product + 1) | 1 << 63],
                ]);
            }
            combinations
        }
    }
}

/// All tests of a row; none for rows that need more than a loop.
fn test_cases(row: &'static Row, decoder: &Decoder) -> Vec<TestCase> {
    let mut words = Vec::new();
    let regs = RESULT << 7 | A << 15 | B << 20;
    let mut operand_set = OperandSet::Integers;
    match row.form {
        Form::R => words.push(row.encode(regs)),
        Form::Unary => words.push(row.encode(regs)),
        Form::Imm => {
            words.extend([0, 1, -1, 2047, -2048, 0x555].map(|imm| i_type(row.name, RESULT, A, imm)))
        }
        Form::Shift => words
            .extend([0, 1, 31, 32, 45, 63].map(|shift| row.encode(shift << 20 | regs & 0xfffff))),
        Form::ShiftW => {
            words.extend([0, 1, 17, 31].map(|shift| row.encode(shift << 20 | regs & 0xfffff)))
        }
        Form::U => {
            words.extend([0, 1, 0x80000, 0xfffff].map(|imm| row.encode(imm << 12 | RESULT << 7)))
        }
        Form::B => words.push(b_type(row.name, A, B, 8)),
        Form::Load | Form::LoadF => {
            words.extend((0..9).map(|imm| i_type(row.name, RESULT, CELL, imm)))
        }
        Form::Store | Form::StoreF => {
            words.extend((0..9).map(|imm| s_type(row.name, B, CELL, imm)))
        }
        Form::Amo => {
            words.extend((0..4).map(|order| r_type(row.name, RESULT, CELL, B) | order << 25))
        }
        Form::Reserve => words.push(r_type(row.name, RESULT, CELL, 0)),
        Form::Order => {
            words.extend([0, 0x0ff0_0000, 0x8330_0000].map(|operand_bits| row.encode(operand_bits)))
        }
        Form::Hint => words.push(row.encode(CELL << 15)),
        Form::Csr => words.extend(
            (1..4)
                .flat_map(|csr| [A, 0].map(|rs1| row.encode(csr << 20 | rs1 << 15 | RESULT << 7))),
        ),
        Form::CsrI => words.extend((1..4).flat_map(|csr| {
            [0, 1, 18, 31].map(|imm| row.encode(csr << 20 | imm << 15 | RESULT << 7))
        })),
        Form::F4 | Form::F2 | Form::F1 | Form::FToX => {
            operand_set = if row.form == Form::F4 {
                OperandSet::Triples
            } else {
                OperandSet::Floats
            };
            words.extend([0, 1, 2, 3, 4, 7].map(|rm| row.encode(regs | C << 27 | rm << 12)));
        }
        Form::XToF => words.extend([0, 1, 2, 3, 4, 7].map(|rm| row.encode(regs | rm << 12))),
        Form::XToFPlain => words.push(row.encode(regs)),
        Form::F2Plain | Form::FCompare | Form::FToXPlain => {
            operand_set = OperandSet::Floats;
            words.push(row.encode(regs));
        }
        _ => words.extend(compressed_words(row, decoder)),
    }
    let mut test_cases = Vec::new();
    for word in words {
        let inst = decoder
            .decode(word)
            .unwrap_or_else(|| panic!("{} {word:#x}", row.name));
        let modes = if inst.rm == 7 { 0..5 } else { 1..2 };
        let name = row.name;
        test_cases.extend(modes.map(|frm| TestCase {
            name,
            word,
            inst,
            frm,
            operand_set,
        }));
    }
    test_cases
}

/// 16-bit instructions of a row that use the registers of the loop.
fn compressed_words(row: &'static Row, decoder: &Decoder) -> Vec<u32> {
    if !row.short || matches!(row.op, Op::Jal | Op::Jalr | Op::Ebreak | Op::Beq | Op::Bne) {
        return Vec::new();
    }
    let is_usable = |inst: &Inst| {
        let (rd, rs1, rs2) = (u32::from(inst.rd), u32::from(inst.rs1), u32::from(inst.rs2));
        let memory = inst.op as u8 >= Op::Lb as u8 && inst.op as u8 <= Op::Fsd as u8;
        if memory {
            let registers = [0, B, B + 32];
            return [2, CELL].contains(&rs1)
                && registers.contains(&rd)
                && registers.contains(&rs2)
                && inst.imm <= 8;
        }
        let writes_a = rd == A || rd == 2 && row.form == Form::CAddi16sp;
        writes_a && [0, A, 2].contains(&rs1) && [0, B].contains(&rs2)
    };
    let encodings = (0..=0xffff_u32).filter(|word| word & row.mask == row.bits);
    let row_encodings = encodings
        .filter(|&word| std::ptr::eq(decoder.row(word).expect("a row of this encoding"), row));
    row_encodings
        .filter(|&word| decoder.decode(word).is_some_and(|inst| is_usable(&inst)))
        .collect()
}

/// Emits the loop that runs an instruction on all operands.
fn emit(program: &mut Program, case: &TestCase, operands: (u64, u64), results: u64, cell: u64) {
    program.li(FROM, operands.0);
    program.li(TO, operands.1);
    program.li(RESULTS, results);
    if case.inst.op == Op::Sc {
        // A failing store-conditional elsewhere clears an earlier reservation.
        program.li(CELL, cell + 64);
        program.push(r_type("sc.d", RESULT, CELL, 0));
    }
    let start = program.code.len();
    program.push(encode("csrrwi", case.frm << 15 | 2 << 20));
    program.push(encode("csrrwi", 1 << 20));
    program.li(2, cell);
    program.li(CELL, cell);
    for (register, offset) in [(A, 0), (B, 8), (C, 16)] {
        program.push(i_type("ld", register, FROM, offset));
        program.push(i_type("fld", register, FROM, offset));
    }
    program.push(s_type("sd", A, CELL, 0));
    program.push(s_type("sd", A, CELL, 8));
    program.push(i_type("addi", RESULT, 0, 0));
    if case.inst.op == Op::Sc && case.inst.word >> 25 & 3 != 0 {
        // Without ordering bits, test without a reservation.
        let load = if case.inst.wide { "lr.d" } else { "lr.w" };
        program.push(r_type(load, RESULT, CELL, 0));
    }
    program.push(case.word);
    if case.inst.op as u8 >= Op::Beq as u8 && case.inst.op as u8 <= Op::Bgeu as u8 {
        program.push(i_type("addi", RESULT, 0, 1));
    }
    let rd = if case.inst.rd == 0 {
        RESULT
    } else {
        case.inst.rd.into()
    };
    program.push(s_type(
        if rd >= 32 { "fsd" } else { "sd" },
        rd & 31,
        RESULTS,
        0,
    ));
    program.li(CELL, cell);
    program.push(encode("csrrs", C << 7 | 3 << 20));
    program.push(s_type("sd", C, RESULTS, 8));
    for offset in [0, 8] {
        program.push(i_type("ld", C, CELL, offset));
        program.push(s_type("sd", C, RESULTS, 16 + offset));
    }
    program.push(i_type("addi", FROM, FROM, OPERAND_BYTES as i32));
    program.push(i_type("addi", RESULTS, RESULTS, RESULT_BYTES as i32));
    let distance = start as i32 - program.code.len() as i32;
    program.push(b_type("bltu", FROM, TO, distance));
}

/// Runs all tests of some rows at once.
fn compare(cases: &[TestCase]) {
    let lists = [
        OperandSet::Integers,
        OperandSet::Floats,
        OperandSet::Triples,
    ]
    .map(|operand_set| (operand_set, operands(operand_set)));
    let mut program = Program {
        data_at: START + 0x1000 + cases.len() as u64 * 200,
        ..Program::default()
    };
    // Memory layout: scratch cell, operand lists, results.
    program.data.resize(256, 0);
    let operand_ranges = lists.each_ref().map(|(_, list)| {
        let start = program.data_at + program.data.len() as u64;
        program.data.extend(
            list.iter()
                .flatten()
                .flat_map(|operand| operand.to_le_bytes()),
        );
        (start, program.data_at + program.data.len() as u64)
    });
    let results = program.data_at + program.data.len() as u64;
    let cell = program.data_at + 64;
    let operand_list_of = |case: &TestCase| {
        lists
            .iter()
            .position(|list| list.0 == case.operand_set)
            .expect("each operand set has a list")
    };
    let mut result_end = results;
    for case in cases {
        emit(
            &mut program,
            case,
            operand_ranges[operand_list_of(case)],
            result_end,
            cell,
        );
        result_end += (lists[operand_list_of(case)].1.len() * RESULT_BYTES) as u64;
    }
    program
        .data
        .resize((result_end - program.data_at) as usize, 0);
    program.finish(results, (result_end - results) as usize);
    let (qemu_output, crate_output) = (program.output_of_qemu(), program.output_in_single_steps());
    assert_eq!(
        (qemu_output.len(), crate_output.len()),
        (
            (result_end - results) as usize,
            (result_end - results) as usize
        )
    );
    let (mut offset, mut differences, decoder) = (0, Vec::new(), Decoder::new(Extensions::HOST));
    for case in cases {
        for operands in &lists[operand_list_of(case)].1 {
            let result_of = |output: &[u8]| -> [u64; 4] {
                std::array::from_fn(|n| {
                    u64::from_le_bytes(
                        output[offset + 8 * n..][..8]
                            .try_into()
                            .expect("eight bytes"),
                    )
                })
            };
            let (qemu_output, crate_output) = (result_of(&qemu_output), result_of(&crate_output));
            // QEMU 7.2 also counts bits of the upper half; the specification limits the result to 32.
            let is_known_bug =
                case.name == "ctzw" && operands[0] as u32 == 0 && crate_output[0] == 32;
            if qemu_output != crate_output && !is_known_bug {
                differences.push(format!(
                    "{} of {operands:x?}, frm {}: {qemu_output:x?} by QEMU, {crate_output:x?} by ours",
                    decoder.disassemble(case.word),
                    case.frm
                ));
            }
            offset += RESULT_BYTES;
        }
    }
    let shown_count = differences.len().min(20);
    assert!(
        differences.is_empty(),
        "{} differ\n{}",
        differences.len(),
        differences[..shown_count].join("\n")
    );
}

/// Runs each instruction with all combinations of its operands under QEMU and on our core.
#[test]
fn instructions_match_qemu_on_corner_values() {
    if !require::require("qemu") {
        return;
    }
    let decoder = Decoder::new(Extensions::HOST);
    let cases: Vec<TestCase> = ROWS
        .iter()
        .flat_map(|row| test_cases(row, &decoder))
        .collect();
    // The remaining rows are jumps, which random programs cover, privileged instructions, and those that QEMU lacks.
    let untested = |row: &&Row| !cases.iter().any(|case| case.name == row.name);
    let untested: Vec<&str> = ROWS.iter().filter(untested).map(|row| row.name).collect();
    let expected = [
        "jal",
        "jalr",
        "ecall",
        "ebreak",
        "mret",
        "wfi",
        "cbo.inval",
        "cbo.clean",
        "cbo.flush",
        "c.j",
        "c.beqz",
        "c.bnez",
        "c.jr",
        "c.ebreak",
        "c.jalr",
    ];
    assert_eq!(untested, expected);
    for chunk in cases.chunks(500) {
        compare(chunk);
    }
}

/// Random programs of about 300 instructions end with the registers and memory that they have under QEMU.
#[test]
fn random_programs_end_alike() {
    if !require::require("qemu") {
        return;
    }
    for seed in [0, 1000] {
        if let Err(difference) = riscv_oracle::random::compare(seed, 100, 300) {
            panic!("{difference}");
        }
    }
}

/// Random programs and directed tests rely on this: without an extension, its rows are illegal.
#[test]
fn cores_without_an_extension_do_not_decode_it() {
    let decoder = Decoder::new(Extensions::NEAR_MEMORY);
    for row in ROWS {
        let is_supported = !matches!(row.extension, Extension::A | Extension::D);
        let is_decoded = (0..0x800).any(|operand_bits| {
            decoder
                .row(row.encode(operand_bits << 2 | operand_bits << 15))
                .is_some_and(|decoded_row| std::ptr::eq(decoded_row, row))
        });
        assert_eq!(is_decoded, is_supported, "{}", row.name);
    }
}

/// Encodings that are illegal for a decoder: all 16-bit ones, and a sample of 32-bit ones.
fn illegal_words(decoder: &Decoder) -> Vec<u32> {
    let mut random = riscv_oracle::Random::new(7);
    // Extension that only QEMU has: carry-less multiplication.
    let is_carryless_multiply =
        |word: u32| word & 0xfe00_707f == 0x0a00_1033 || word & 0xfe00_607f == 0x0a00_2033;
    let mut words: Vec<u32> = (0..=0xffff).filter(|word| word & 3 != 3).collect();
    for row in ROWS.iter().filter(|row| !row.short) {
        // Random encodings of the row with one bit flipped, and random words with its opcode.
        let neighbours = (0..32)
            .map(|bit| row.encode(random.next_u64() as u32) ^ 1 << bit)
            .collect::<Vec<_>>();
        words.extend(neighbours);
        words.extend((0..50).map(|_| random.next_u64() as u32 & !127 | row.bits & 127));
    }
    words.retain(|&word| {
        decoder.decode(word).is_none()
            && !is_carryless_multiply(word)
            && (word & 3 == 3 || word <= 0xffff)
    });
    words
}

/// Program that executes each encoding in a slot of four bytes, and writes one byte for each: 1 if it raised SIGILL.
fn trapping_program(words: &[u32]) -> Program {
    let mut program = Program {
        data_at: START + 0x1000 + words.len() as u64 * 4,
        ..Program::default()
    };
    program.data.resize(64 + words.len(), 0);
    let (action, trapped) = (program.data_at, program.data_at + 64);
    // sigaction(SIGILL); the handler is 14 instructions after the instruction that takes its address.
    program.li(11, action);
    program.push(encode("auipc", 10 << 7));
    program.push(i_type("addi", 10, 10, 4 * 14));
    program.push(s_type("sd", 10, 11, 0));
    program.push(i_type("addi", 10, 0, 4));
    program.push(s_type("sd", 10, 11, 8));
    program.push(i_type("addi", 12, 0, 0));
    program.push(i_type("addi", 13, 0, 8));
    program.push(i_type("addi", 17, 0, 134));
    program.push(encode("ecall", 0));
    // Start of the tested instructions, for the handler: at the same distance.
    program.push(encode("auipc", 8 << 7));
    program.push(i_type("addi", 8, 8, 4 * 14));
    program.li(9, trapped);
    // Jump over the handler.
    program.push(encode("jal", 40 << 20));
    // The handler marks the slot of the saved `pc`, which is at offset 176 of the context, and skips the slot.
    let handler = [
        i_type("ld", 5, 12, 176),
        r_type("sub", 6, 5, 8),
        encode("srli", 6 << 7 | 6 << 15 | 2 << 20),
        r_type("add", 6, 6, 9),
        i_type("addi", 7, 0, 1),
        s_type("sb", 7, 6, 0),
        i_type("addi", 5, 5, 4),
        s_type("sd", 5, 12, 176),
        i_type("jalr", 0, 1, 0),
    ];
    assert_eq!(program.code.len(), 4 * 16);
    for word in handler {
        program.push(word);
    }
    // Each encoding has a slot of four bytes; the remainder of a short one is skipped.
    for &word in words {
        program.code.extend(word.to_le_bytes());
    }
    program.finish(trapped, words.len());
    program
}

/// Encodings that are illegal here are illegal in QEMU. A signal handler counts them. Legal encodings are tested above.
#[test]
fn illegal_encodings_match_qemu() {
    if !require::require("qemu") {
        return;
    }
    let words = illegal_words(&Decoder::new(Extensions::HOST));
    assert!(words.len() > 8000, "only {} encodings", words.len());
    let trapped = trapping_program(&words).output_of_qemu();
    let accepted = words
        .iter()
        .zip(&trapped)
        .filter(|(_, &trapped)| trapped == 0);
    let accepted: Vec<String> = accepted.map(|(word, _)| format!("{word:#x}")).collect();
    assert!(
        accepted.is_empty(),
        "QEMU executes {} of {} encodings that are illegal here: {}",
        accepted.len(),
        words.len(),
        accepted[..accepted.len().min(40)].join(" ")
    );
}
