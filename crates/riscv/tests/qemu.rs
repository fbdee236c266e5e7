//! Every user-mode instruction agrees with QEMU, on directed operands and in random programs.

mod oracle;
#[path = "../../../tests/require.rs"]
mod require;

use cohkit_riscv::table::{Extension, Form, Op, Row, ROWS};
use cohkit_riscv::{Decoder, Extensions, Inst};
use oracle::{b_type, bits, i_type, r_type, s_type, Program, DOUBLES, INTEGERS, SINGLES, START};

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
const OPERANDS: usize = 24;
const SEEN: usize = 32;

/// Operand set of a test.
#[derive(Clone, Copy, PartialEq)]
enum On {
    Integers,
    Floats,
    Triples,
}

/// One instruction under test, in one rounding mode.
struct Try {
    name: &'static str,
    word: u32,
    inst: Inst,
    frm: u32,
    on: On,
}

/// All combinations of operands, as a program stores them.
fn operands(on: On) -> Vec<[u64; 3]> {
    let boxed = SINGLES.map(|single| single | 0xffff_ffff_0000_0000);
    let floats: Vec<u64> = boxed.into_iter().chain(DOUBLES).collect();
    let pairs = |list: &[u64]| -> Vec<[u64; 3]> {
        let all = list
            .iter()
            .flat_map(|&a| list.iter().map(move |&b| [a, b, 0]));
        all.collect()
    };
    match on {
        On::Integers => pairs(&INTEGERS),
        On::Floats => {
            // Mixing precisions is useless, apart from the cases that test NaN boxing.
            let mut all = pairs(&boxed);
            all.extend(pairs(&DOUBLES));
            all.extend(floats.iter().map(|&a| [a, 0x3f80_0000, 0]));
            all
        }
        On::Triples => {
            let few = |list: &[u64]| -> Vec<u64> {
                list.iter()
                    .copied()
                    .step_by(2)
                    .chain([list[list.len() - 1]])
                    .collect()
            };
            let mut all = Vec::new();
            for list in [few(&boxed), few(&DOUBLES)] {
                for &a in &list {
                    for &b in &list {
                        all.extend(list.iter().map(|&c| [a, b, c]));
                    }
                }
            }
            // The third operand cancels all but the last bits of the product.
            for (a, b) in [
                (0x3ff0_0000_0000_0001, 0x3ff0_0000_0000_0001_u64),
                (0x3fff_ffff_ffff_ffff, 0x3ff0_0000_0000_0003),
            ] {
                let product = (f64::from_bits(a) * f64::from_bits(b)).to_bits();
                all.extend([
                    [a, b, product ^ 1 << 63],
                    [a, b, product],
                    [a, b, (product + 1) | 1 << 63],
                ]);
            }
            all
        }
    }
}

/// All tests of a row; none for rows that need more than a loop.
fn tries(row: &'static Row, decoder: &Decoder) -> Vec<Try> {
    let mut words = Vec::new();
    let regs = RESULT << 7 | A << 15 | B << 20;
    let mut on = On::Integers;
    match row.form {
        Form::R => words.push(row.filled(regs)),
        Form::Unary => words.push(row.filled(regs)),
        Form::Imm => {
            words.extend([0, 1, -1, 2047, -2048, 0x555].map(|imm| i_type(row.name, RESULT, A, imm)))
        }
        Form::Shift => {
            words.extend([0, 1, 31, 32, 45, 63].map(|by| row.filled(by << 20 | regs & 0xfffff)))
        }
        Form::ShiftW => {
            words.extend([0, 1, 17, 31].map(|by| row.filled(by << 20 | regs & 0xfffff)))
        }
        Form::U => {
            words.extend([0, 1, 0x80000, 0xfffff].map(|imm| row.filled(imm << 12 | RESULT << 7)))
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
        Form::Order => words.extend([0, 0x0ff0_0000, 0x8330_0000].map(|free| row.filled(free))),
        Form::Hint => words.push(row.filled(CELL << 15)),
        Form::Csr => words.extend(
            (1..4)
                .flat_map(|csr| [A, 0].map(|rs1| row.filled(csr << 20 | rs1 << 15 | RESULT << 7))),
        ),
        Form::CsrI => words.extend((1..4).flat_map(|csr| {
            [0, 1, 18, 31].map(|imm| row.filled(csr << 20 | imm << 15 | RESULT << 7))
        })),
        Form::F4 | Form::F2 | Form::F1 | Form::FToX => {
            on = if row.form == Form::F4 {
                On::Triples
            } else {
                On::Floats
            };
            words.extend([0, 1, 2, 3, 4, 7].map(|rm| row.filled(regs | C << 27 | rm << 12)));
        }
        Form::XToF => words.extend([0, 1, 2, 3, 4, 7].map(|rm| row.filled(regs | rm << 12))),
        Form::XToFPlain => words.push(row.filled(regs)),
        Form::F2Plain | Form::FCompare | Form::FToXPlain => {
            on = On::Floats;
            words.push(row.filled(regs));
        }
        _ => words.extend(short(row, decoder)),
    }
    let mut tries = Vec::new();
    for word in words {
        let inst = decoder
            .decode(word)
            .unwrap_or_else(|| panic!("{} {word:#x}", row.name));
        let modes = if inst.rm == 7 { 0..5 } else { 1..2 };
        let name = row.name;
        tries.extend(modes.map(|frm| Try {
            name,
            word,
            inst,
            frm,
            on,
        }));
    }
    tries
}

/// 16-bit instructions of a row that use the registers of the loop.
fn short(row: &'static Row, decoder: &Decoder) -> Vec<u32> {
    if !row.short || matches!(row.op, Op::Jal | Op::Jalr | Op::Ebreak | Op::Beq | Op::Bne) {
        return Vec::new();
    }
    let fits = |inst: &Inst| {
        let (rd, rs1, rs2) = (u32::from(inst.rd), u32::from(inst.rs1), u32::from(inst.rs2));
        let memory = inst.op as u8 >= Op::Lb as u8 && inst.op as u8 <= Op::Fsd as u8;
        if memory {
            let registers = [0, B, B + 32];
            return [2, CELL].contains(&rs1)
                && registers.contains(&rd)
                && registers.contains(&rs2)
                && inst.imm <= 8;
        }
        let own = rd == A || rd == 2 && row.form == Form::CAddi16sp;
        own && [0, A, 2].contains(&rs1) && [0, B].contains(&rs2)
    };
    let all = (0..=0xffff_u32).filter(|word| word & row.mask == row.bits);
    let of_row = all.filter(|&word| std::ptr::eq(decoder.row(word).expect("this one"), row));
    of_row
        .filter(|&word| decoder.decode(word).is_some_and(|inst| fits(&inst)))
        .collect()
}

/// Emits the loop that runs an instruction on all operands.
fn emit(program: &mut Program, one: &Try, operands: (u64, u64), results: u64, cell: u64) {
    program.li(FROM, operands.0);
    program.li(TO, operands.1);
    program.li(RESULTS, results);
    if one.inst.op == Op::Sc {
        // A failing store-conditional elsewhere clears an earlier reservation.
        program.li(CELL, cell + 64);
        program.push(r_type("sc.d", RESULT, CELL, 0));
    }
    let start = program.code.len();
    program.push(bits("csrrwi", one.frm << 15 | 2 << 20));
    program.push(bits("csrrwi", 1 << 20));
    program.li(2, cell);
    program.li(CELL, cell);
    for (register, at) in [(A, 0), (B, 8), (C, 16)] {
        program.push(i_type("ld", register, FROM, at));
        program.push(i_type("fld", register, FROM, at));
    }
    program.push(s_type("sd", A, CELL, 0));
    program.push(s_type("sd", A, CELL, 8));
    program.push(i_type("addi", RESULT, 0, 0));
    if one.inst.op == Op::Sc && one.inst.word >> 25 & 3 != 0 {
        // Without ordering bits, test without a reservation.
        let load = if one.inst.wide { "lr.d" } else { "lr.w" };
        program.push(r_type(load, RESULT, CELL, 0));
    }
    program.push(one.word);
    if one.inst.op as u8 >= Op::Beq as u8 && one.inst.op as u8 <= Op::Bgeu as u8 {
        program.push(i_type("addi", RESULT, 0, 1));
    }
    let rd = if one.inst.rd == 0 {
        RESULT
    } else {
        one.inst.rd.into()
    };
    program.push(s_type(
        if rd >= 32 { "fsd" } else { "sd" },
        rd & 31,
        RESULTS,
        0,
    ));
    program.li(CELL, cell);
    program.push(bits("csrrs", C << 7 | 3 << 20));
    program.push(s_type("sd", C, RESULTS, 8));
    for at in [0, 8] {
        program.push(i_type("ld", C, CELL, at));
        program.push(s_type("sd", C, RESULTS, 16 + at));
    }
    program.push(i_type("addi", FROM, FROM, OPERANDS as i32));
    program.push(i_type("addi", RESULTS, RESULTS, SEEN as i32));
    let back = start as i32 - program.code.len() as i32;
    program.push(b_type("bltu", FROM, TO, back));
}

/// Runs all tests of some rows at once.
fn compare(tries: &[Try]) {
    let lists = [On::Integers, On::Floats, On::Triples].map(|on| (on, operands(on)));
    let mut program = Program {
        data_at: START + 0x1000 + tries.len() as u64 * 200,
        ..Program::default()
    };
    // Memory layout: scratch cell, operand lists, results.
    program.data.resize(256, 0);
    let places = lists.each_ref().map(|(_, list)| {
        let from = program.data_at + program.data.len() as u64;
        program.data.extend(
            list.iter()
                .flatten()
                .flat_map(|operand| operand.to_le_bytes()),
        );
        (from, program.data_at + program.data.len() as u64)
    });
    let results = program.data_at + program.data.len() as u64;
    let cell = program.data_at + 64;
    let list_of = |one: &Try| {
        lists
            .iter()
            .position(|list| list.0 == one.on)
            .expect("one of them")
    };
    let mut at = results;
    for one in tries {
        emit(&mut program, one, places[list_of(one)], at, cell);
        at += (lists[list_of(one)].1.len() * SEEN) as u64;
    }
    program.data.resize((at - program.data_at) as usize, 0);
    program.finish(results, (at - results) as usize);
    let (theirs, ours) = (program.output_of_qemu(), program.output_in_single_steps());
    assert_eq!(
        (theirs.len(), ours.len()),
        ((at - results) as usize, (at - results) as usize)
    );
    let (mut at, mut wrong, decoder) = (0, Vec::new(), Decoder::new(Extensions::HOST));
    for one in tries {
        for operands in &lists[list_of(one)].1 {
            let seen = |all: &[u8]| -> [u64; 4] {
                std::array::from_fn(|n| {
                    u64::from_le_bytes(all[at + 8 * n..][..8].try_into().expect("eight"))
                })
            };
            let (theirs, ours) = (seen(&theirs), seen(&ours));
            // QEMU 7.2 also counts bits of the upper half; the specification limits the result to 32.
            let known = one.name == "ctzw" && operands[0] as u32 == 0 && ours[0] == 32;
            if theirs != ours && !known {
                wrong.push(format!(
                    "{} of {operands:x?}, frm {}: {theirs:x?} by QEMU, {ours:x?} by ours",
                    decoder.text(one.word),
                    one.frm
                ));
            }
            at += SEEN;
        }
    }
    let few = wrong.len().min(20);
    assert!(
        wrong.is_empty(),
        "{} differ\n{}",
        wrong.len(),
        wrong[..few].join("\n")
    );
}

#[test]
fn instructions_match_qemu_on_corner_values() {
    if !require::require("qemu") {
        return;
    }
    let decoder = Decoder::new(Extensions::HOST);
    let all: Vec<Try> = ROWS.iter().flat_map(|row| tries(row, &decoder)).collect();
    // The remaining rows are jumps, which random programs cover, privileged instructions, and those that QEMU lacks.
    let left = |row: &&Row| !all.iter().any(|one| one.name == row.name);
    let left: Vec<&str> = ROWS.iter().filter(left).map(|row| row.name).collect();
    let known = [
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
    assert_eq!(left, known);
    for some in all.chunks(500) {
        compare(some);
    }
}

#[test]
fn random_programs_end_alike() {
    if !require::require("qemu") {
        return;
    }
    for seed in [0, 1000] {
        if let Err(what) = oracle::random::compare(seed, 100, 300) {
            panic!("{what}");
        }
    }
}

/// Random programs and directed tests rely on this: without an extension, its rows are illegal.
#[test]
fn cores_without_an_extension_do_not_decode_it() {
    let near = Decoder::new(Extensions::NEAR_MEMORY);
    for row in ROWS {
        let there = !matches!(row.extension, Extension::A | Extension::D);
        let found = (0..0x800).any(|fill| {
            near.row(row.filled(fill << 2 | fill << 15))
                .is_some_and(|found| std::ptr::eq(found, row))
        });
        assert_eq!(found, there, "{}", row.name);
    }
}

/// Encodings that are illegal here are illegal in QEMU. A signal handler counts them. Legal encodings are tested above.
#[test]
fn illegal_encodings_match_qemu() {
    if !require::require("qemu") {
        return;
    }
    let decoder = Decoder::new(Extensions::HOST);
    let mut random = oracle::Random(7);
    // Extension that only QEMU has: carry-less multiplication.
    let more = |word: u32| word & 0xfe00_707f == 0x0a00_1033 || word & 0xfe00_607f == 0x0a00_2033;
    let mut words: Vec<u32> = (0..=0xffff).filter(|word| word & 3 != 3).collect();
    for row in ROWS.iter().filter(|row| !row.short) {
        // Random encodings of the row with one bit flipped, and random words with its opcode.
        let near = (0..32)
            .map(|bit| row.filled(random.next() as u32) ^ 1 << bit)
            .collect::<Vec<_>>();
        words.extend(near);
        words.extend((0..50).map(|_| random.next() as u32 & !127 | row.bits & 127));
    }
    words.retain(|&word| {
        decoder.decode(word).is_none() && !more(word) && (word & 3 == 3 || word <= 0xffff)
    });
    assert!(words.len() > 8000, "{}", words.len());
    let mut program = Program {
        data_at: START + 0x1000 + words.len() as u64 * 4,
        ..Program::default()
    };
    program.data.resize(64 + words.len(), 0);
    let (action, seen) = (program.data_at, program.data_at + 64);
    // sigaction(SIGILL); the handler is 14 instructions after the instruction that takes its address.
    program.li(11, action);
    program.push(bits("auipc", 10 << 7));
    program.push(i_type("addi", 10, 10, 4 * 14));
    program.push(s_type("sd", 10, 11, 0));
    program.push(i_type("addi", 10, 0, 4));
    program.push(s_type("sd", 10, 11, 8));
    program.push(i_type("addi", 12, 0, 0));
    program.push(i_type("addi", 13, 0, 8));
    program.push(i_type("addi", 17, 0, 134));
    program.push(bits("ecall", 0));
    // Start of the tested instructions, for the handler: at the same distance.
    program.push(bits("auipc", 8 << 7));
    program.push(i_type("addi", 8, 8, 4 * 14));
    program.li(9, seen);
    // Jump over the handler.
    program.push(bits("jal", 40 << 20));
    let handler = [
        i_type("ld", 5, 12, 176),
        r_type("sub", 6, 5, 8),
        bits("srli", 6 << 7 | 6 << 15 | 2 << 20),
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
    for &word in &words {
        program.code.extend(word.to_le_bytes());
    }
    program.finish(seen, words.len());
    let seen = program.output_of_qemu();
    let taken = words.iter().zip(&seen).filter(|(_, &seen)| seen == 0);
    let taken: Vec<String> = taken.map(|(word, _)| format!("{word:#x}")).collect();
    assert!(
        taken.is_empty(),
        "{} of {}: {}",
        taken.len(),
        words.len(),
        taken[..taken.len().min(40)].join(" ")
    );
}
