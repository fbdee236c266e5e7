//! Instructions of RISC-V: words and double words, fences, and the atomic extension.

use crate::assembly::{Cell, Code, Dialect, Name};
use crate::piece::{error_at, error_with_help, Piece, Result};
use crate::program::{
    Acquire, Address, Change, Class, Fence, Instruction, Operand, Operation, Register, StoreVariant,
};

/// Registers and instructions of RISC-V.
pub(crate) const RISCV: Dialect = Dialect {
    register,
    registers: "x0 to x31, or their names of the calling convention",
    instruction,
};

/// Register names of the calling convention, by register number.
const NAMES: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",
    "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
    "t5", "t6",
];

/// Resolves a register name: `x0` to `x31`, a name of the calling convention, or `fp` for the frame pointer `s0`.
fn register(name: &str) -> Option<Name> {
    let name = name.to_ascii_lowercase();
    let named = NAMES.iter().position(|known| *known == name);
    let numbered = || name.strip_prefix('x')?.parse().ok();
    let frame_pointer = || (name == "fp").then_some(8);
    let number: usize = named.or_else(numbered).or_else(frame_pointer)?;
    match number {
        0 => Some(Name::Zero),
        1..=31 => Some(Name::Register(format!("x{number}"))),
        _ => None,
    }
}

/// Supported instructions, for suggestions.
const KNOWN_INSTRUCTIONS: [&str; 45] = [
    "li",
    "mv",
    "add",
    "addi",
    "sub",
    "and",
    "andi",
    "or",
    "ori",
    "xor",
    "xori",
    "sll",
    "slli",
    "slt",
    "slti",
    "sra",
    "srai",
    "addw",
    "addiw",
    "subw",
    "slliw",
    "sext.w",
    "lui",
    "ret",
    "lw",
    "ld",
    "sw",
    "sd",
    "fence",
    "fence.tso",
    "fence.i",
    "lr.w",
    "sc.w",
    "amoswap.w",
    "amoadd.w",
    "amoand.w",
    "amoor.w",
    "amoxor.w",
    "beq",
    "bne",
    "blt",
    "bge",
    "beqz",
    "bnez",
    "j",
];

/// Reads an instruction, and adds its effect to the thread.
fn instruction<'t>(code: &mut Code<'_, 't>, cell: Cell<'t>) -> Result<()> {
    let (piece, parts) = (cell.piece, &cell.operands);
    let (name, Ordering { acquires, releases }) = split_annotation(&cell.name);
    if let Some(operation) = operation(name) {
        cell.check_operand_count(3)?;
        let (a, b) = (code.operand(parts[1], "")?, code.operand(parts[2], "")?);
        let to = code.result(parts[0])?;
        return code.compute(piece, Some(to), operation, a, b).map(|_| ());
    }
    if let Some(operation) = word_operation(name) {
        cell.check_operand_count(3)?;
        let (a, b) = (code.operand(parts[1], "")?, code.operand(parts[2], "")?);
        let to = code.result(parts[0])?;
        return emit_word_operation(code, piece, to, (operation, a, b));
    }
    if let Some(change) = atomic(name) {
        return emit_atomic(code, &cell, change, Ordering { acquires, releases });
    }
    match name {
        "NOP" => Ok(()),
        "RET" => code.end(piece),
        "SEXT.W" => {
            cell.check_operand_count(2)?;
            let from = code.operand(parts[1], "")?;
            let to = code.result(parts[0])?;
            emit_word_operation(code, piece, to, (Operation::Add, from, Operand::Number(0)))
        }
        "LUI" => {
            cell.check_operand_count(2)?;
            let upper = crate::piece::number(parts[1])?.wrapping_shl(12) as i32;
            let to = code.result(parts[0])?;
            code.copy(piece, to, Operand::Number(i64::from(upper)))
        }
        "LI" | "MV" => {
            cell.check_operand_count(2)?;
            let from = code.operand(parts[1], "")?;
            let to = code.result(parts[0])?;
            code.copy(piece, to, from)
        }
        "LW" | "LD" | "LWU" => {
            cell.check_operand_count(2)?;
            let from = address(code, parts[1])?;
            let to = code.result(parts[0])?;
            let acquire = load_ordering(acquires);
            code.emit(piece, Instruction::Load { to, from, acquire })
        }
        "SW" | "SD" => {
            cell.check_operand_count(2)?;
            let value = code.operand(parts[0], "")?;
            let store = Instruction::Store {
                to: address(code, parts[1])?,
                value,
                release: releases,
                via: StoreVariant::ProtocolDefault,
            };
            code.emit(piece, store)
        }
        "LR.W" | "LR.D" => emit_load_reserved(code, &cell, Ordering { acquires, releases }),
        "SC.W" | "SC.D" => emit_store_conditional(code, &cell, Ordering { acquires, releases }),
        "FENCE" | "FENCE.TSO" | "FENCE.I" => emit_fence(code, &cell, name),
        "BEQ" | "BNE" | "BLT" | "BGE" | "BGT" | "BLE" => {
            cell.check_operand_count(3)?;
            let (a, b) = (code.operand(parts[0], "")?, code.operand(parts[1], "")?);
            emit_branch(code, piece, name, (a, b), parts[2])
        }
        "BEQZ" | "BNEZ" | "BLTZ" | "BGEZ" | "BGTZ" | "BLEZ" => {
            cell.check_operand_count(2)?;
            let a = code.operand(parts[0], "")?;
            let compared = (a, Operand::Number(0));
            emit_branch(code, piece, &name[..3], compared, parts[1])
        }
        "J" => {
            cell.check_operand_count(1)?;
            code.jump(piece, parts[0])
        }
        "LB" | "LBU" | "LH" | "LHU" | "SB" | "SH" => error_with_help(
            cell.word,
            format!("`{}` is not a supported instruction", cell.word.text),
            "an access is of one word, and a location has one",
        ),
        _ => cell.reject_unknown(&KNOWN_INSTRUCTIONS),
    }
}

/// Ordering annotations of an atomic instruction, `.aq` and `.rl`.
#[derive(Clone, Copy)]
struct Ordering {
    /// True if ordered before all later accesses of the thread.
    acquires: bool,
    /// True if ordered after all earlier accesses of the thread.
    releases: bool,
}

/// Splits the name of an instruction, in upper case, into the name without annotations and its ordering.
fn split_annotation(name: &str) -> (&str, Ordering) {
    for (annotation, acquires, releases) in [
        (".AQ.RL", true, true),
        (".AQRL", true, true),
        (".AQ", true, false),
        (".RL", false, true),
    ] {
        if let Some(name) = name.strip_suffix(annotation) {
            return (name, Ordering { acquires, releases });
        }
    }
    let plain = Ordering {
        acquires: false,
        releases: false,
    };
    (name, plain)
}

/// Returns the acquire ordering of a load.
fn load_ordering(acquires: bool) -> Acquire {
    match acquires {
        true => Acquire::Rcpc,
        false => Acquire::None,
    }
}

/// Adds an atomic memory operation (`AMO*`): destination, value, address. With one annotation or none, a swap without a
/// destination is a store, and an addition or OR of zero is a load.
fn emit_atomic<'t>(
    code: &mut Code<'_, 't>,
    cell: &Cell<'t>,
    change: Change,
    Ordering { acquires, releases }: Ordering,
) -> Result<()> {
    cell.check_operand_count(3)?;
    let (piece, parts) = (cell.piece, &cell.operands);
    let value = code.operand(parts[1], "")?;
    let address = address(code, parts[2])?;
    let orders_both = acquires && releases;
    if !orders_both && change == Change::Exchange && code.is_zero(parts[0]) {
        let store = Instruction::Store {
            to: address,
            value,
            release: releases,
            via: StoreVariant::ProtocolDefault,
        };
        return code.emit(piece, store);
    }
    let to = code.result(parts[0])?;
    let zero_is_identity = matches!(change, Change::FetchAdd | Change::FetchOp(Operation::Or));
    if !orders_both && zero_is_identity && code.is_zero(parts[1]) {
        let load = Instruction::Load {
            to,
            from: address,
            acquire: load_ordering(acquires),
        };
        return code.emit(piece, load);
    }
    let atomic = Instruction::Atomic {
        to,
        at: address,
        change,
        value,
        acquire: acquires,
        release: releases,
        returns: true,
        via: StoreVariant::ProtocolDefault,
    };
    code.emit(piece, atomic)
}

/// Adds `lr`: destination, address.
fn emit_load_reserved<'t>(
    code: &mut Code<'_, 't>,
    cell: &Cell<'t>,
    Ordering { acquires, releases }: Ordering,
) -> Result<()> {
    cell.check_operand_count(2)?;
    let from = address(code, cell.operands[1])?;
    let to = code.result(cell.operands[0])?;
    let acquire = match acquires {
        true => Acquire::Rcsc,
        false => Acquire::None,
    };
    let load = Instruction::LoadReserved {
        to,
        from,
        acquire,
        release: releases,
    };
    code.emit(cell.piece, load)
}

/// Adds `sc`: destination of the status, value, address.
fn emit_store_conditional<'t>(
    code: &mut Code<'_, 't>,
    cell: &Cell<'t>,
    Ordering { acquires, releases }: Ordering,
) -> Result<()> {
    cell.check_operand_count(3)?;
    let value = code.operand(cell.operands[1], "")?;
    let to = address(code, cell.operands[2])?;
    let status = code.result(cell.operands[0])?;
    let store = Instruction::StoreConditional {
        status,
        to,
        value,
        acquire: acquires,
        release: releases,
    };
    code.emit(cell.piece, store)
}

/// Adds the fence with this name, in upper case.
fn emit_fence(code: &mut Code, cell: &Cell, name: &str) -> Result<()> {
    let (piece, parts) = (cell.piece, &cell.operands);
    match name {
        "FENCE.I" => code.emit(piece, Instruction::Fence(Fence::InstructionSync)),
        // `FENCE.TSO` orders reads before all accesses, and writes before writes.
        "FENCE.TSO" => {
            code.emit(piece, Instruction::Fence(Fence::Loads))?;
            code.emit(piece, Instruction::Fence(Fence::Stores))
        }
        _ => {
            let (before, after) = match parts.len() {
                0 => (Class::All, Class::All),
                _ => {
                    cell.check_operand_count(2)?;
                    (class(parts[0])?, class(parts[1])?)
                }
            };
            code.emit(piece, Instruction::Fence(Fence::between(before, after)))
        }
    }
}

/// Adds a 32-bit computation with a sign-extended result.
fn emit_word_operation(
    code: &mut Code,
    cell: Piece,
    to: Register,
    (operation, a, b): (Operation, Operand, Operand),
) -> Result<()> {
    let (upper, result) = (Operand::Number(32), Operand::Register(to));
    code.compute(cell, Some(to), operation, a, b)?;
    code.compute(cell, Some(to), Operation::ShiftLeft, result, upper)?;
    code.compute(cell, Some(to), Operation::ShiftRight, result, upper)
        .map(|_| ())
}

/// Returns the operation of a 32-bit instruction with two source operands.
fn word_operation(name: &str) -> Option<Operation> {
    Some(match name {
        "ADDW" | "ADDIW" => Operation::Add,
        "SUBW" => Operation::Subtract,
        "SLLIW" => Operation::ShiftLeft,
        _ => return None,
    })
}

/// Returns the operation of a 64-bit instruction with two source operands.
fn operation(name: &str) -> Option<Operation> {
    Some(match name {
        "ADD" | "ADDI" => Operation::Add,
        "SUB" => Operation::Subtract,
        "AND" | "ANDI" => Operation::And,
        "OR" | "ORI" => Operation::Or,
        "XOR" | "XORI" => Operation::Xor,
        "SLL" | "SLLI" => Operation::ShiftLeft,
        "SRA" | "SRAI" => Operation::ShiftRight,
        "SLT" | "SLTI" => Operation::Less,
        _ => return None,
    })
}

/// Returns the change of an atomic memory operation, whose name ends with its width.
fn atomic(name: &str) -> Option<Change> {
    let name = name.strip_suffix(".W").or(name.strip_suffix(".D"))?;
    Some(match name {
        "AMOSWAP" => Change::Exchange,
        "AMOADD" => Change::FetchAdd,
        "AMOAND" => Change::FetchOp(Operation::And),
        "AMOOR" => Change::FetchOp(Operation::Or),
        "AMOXOR" => Change::FetchOp(Operation::Xor),
        _ => return None,
    })
}

/// Parses the predecessor or successor set of a fence: `r`, `w` or `rw`. Device accesses (`i`, `o`) are ignored beside
/// these.
fn class(piece: Piece) -> Result<Class> {
    let has = |letter: char| piece.text.contains(letter);
    if piece.text.is_empty() || !piece.text.chars().all(|c| "iorw".contains(c)) {
        let message = format!("`{}` is no part of a fence", piece.text);
        return error_with_help(piece, message, "`r`, `w` or `rw`");
    }
    match (has('r'), has('w')) {
        (true, true) => Ok(Class::All),
        (true, false) => Ok(Class::Reads),
        (false, true) => Ok(Class::Writes),
        (false, false) => error_at(piece, "device accesses are not supported"),
    }
}

/// Adds a conditional branch. `name` is that of the instruction in upper case.
fn emit_branch<'t>(
    code: &mut Code<'_, 't>,
    cell: Piece<'t>,
    name: &str,
    (a, b): (Operand, Operand),
    label: Piece<'t>,
) -> Result<()> {
    // The branch is taken if the comparison is false (`zero`), or if it is true.
    let (operation, a, b, zero) = match name {
        "BEQ" => (Operation::Equal, a, b, false),
        "BNE" => (Operation::Equal, a, b, true),
        "BLT" => (Operation::Less, a, b, false),
        "BGE" => (Operation::Less, a, b, true),
        "BGT" => (Operation::Less, b, a, false),
        // `BLE`.
        _ => (Operation::Less, b, a, true),
    };
    let on = code.compute(cell, None, operation, a, b)?;
    code.branch(cell, on, zero, label)
}

/// Parses an address: `0(x6)` or `(x6)`.
fn address<'t>(code: &mut Code<'_, 't>, piece: Piece<'t>) -> Result<Address> {
    let parts = piece
        .split_once("(")
        .filter(|(_, base)| base.text.ends_with(')'));
    let Some((offset, base)) = parts else {
        return error_with_help(piece, "an address must be in parentheses", "`0(x6)`");
    };
    let base = base.until(base.text.len() - 1).trim();
    let base = code.operand(base, "")?;
    let offset = match offset.text {
        "" => Operand::Number(0),
        _ => Operand::Number(crate::piece::number(offset)?),
    };
    code.address(piece, base, offset)
}
