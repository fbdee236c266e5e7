//! Instructions of AArch64, and those of 32-bit Arm with the same form.

use crate::assembly::{Cell, Code, Dialect, Name};
use crate::piece::{error_at, error_with_help, Piece, Result};
use crate::program::{
    Acquire, Address, Change, Class, Fence, Instruction, Operand, Operation, StoreVariant,
};

/// Registers and instructions of AArch64.
pub(crate) const AARCH64: Dialect = Dialect {
    register,
    registers: "W0 to W30, or X0 to X30",
    instruction,
};

/// Registers and instructions of 32-bit Arm.
pub(crate) const ARM: Dialect = Dialect {
    register: arm_register,
    registers: "R0 to R14",
    instruction,
};

/// Resolves a register. `W3` and `X3` are the same register.
fn register(name: &str) -> Option<Name> {
    let name = name.to_ascii_uppercase();
    if matches!(name.as_str(), "WZR" | "XZR") {
        return Some(Name::Zero);
    }
    if name == "SP" {
        return Some(Name::Register(name));
    }
    let number: u8 = name.strip_prefix(['W', 'X'])?.parse().ok()?;
    (number <= 30).then(|| Name::Register(format!("X{number}")))
}

/// Resolves a register of 32-bit Arm.
fn arm_register(name: &str) -> Option<Name> {
    let number: u8 = name.strip_prefix(['R', 'r'])?.parse().ok()?;
    (number <= 14).then(|| Name::Register(format!("R{number}")))
}

/// Supported instructions, for suggestions; atomic accesses without their orders.
const KNOWN_INSTRUCTIONS: [&str; 40] = [
    "MOV", "ADD", "SUB", "SUBS", "AND", "ORR", "EOR", "LSL", "ASR", "RET", "CMP", "CSEL", "CSET",
    "LDR", "LDUR", "LDAR", "LDAPR", "STR", "STUR", "STLR", "LDXR", "LDAXR", "STXR", "STLXR", "SWP",
    "LDADD", "LDSET", "LDCLR", "LDEOR", "STADD", "STSET", "STCLR", "STEOR", "CAS", "DMB", "DSB",
    "ISB", "CBZ", "CBNZ", "B",
];

/// Supported conditions of branches.
const CONDITIONS: [&str; 6] = ["EQ", "NE", "LT", "GE", "GT", "LE"];

/// Reads an instruction, and adds its effect to the thread.
fn instruction<'t>(code: &mut Code<'_, 't>, cell: Cell<'t>) -> Result<()> {
    let (piece, parts) = (cell.piece, &cell.operands);
    let name = cell.name.as_str();
    if let Some(operation) = operation(name) {
        return emit_arithmetic(code, &cell, operation);
    }
    if let Some(condition) = branch(name) {
        cell.check_operand_count(1)?;
        let (on, zero) = condition_register(code, piece, condition)?;
        return code.branch(piece, on, zero, parts[0]);
    }
    if let Some((word, order)) = atomic(name) {
        return emit_atomic(code, &cell, word, order);
    }
    match name {
        "NOP" => Ok(()),
        "RET" => code.end(piece),
        "MOV" | "SXTW" | "UXTW" => {
            cell.check_operand_count(2)?;
            let from = code.operand(parts[1], "#")?;
            let to = code.result(parts[0])?;
            code.copy(piece, to, from)
        }
        "CMP" => {
            cell.check_operand_count(2)?;
            let (a, b) = (code.operand(parts[0], "#")?, code.operand(parts[1], "#")?);
            emit_comparison(code, piece, a, b)
        }
        "CSEL" | "CSET" => emit_select(code, &cell),
        "LDR" | "LDUR" | "LDAR" | "LDAPR" | "LDAPUR" | "LDXR" | "LDAXR" | "LDREX" | "LDA"
        | "LDAEX" => emit_load(code, &cell),
        "STR" | "STUR" | "STLR" | "STLUR" | "STL" => emit_store(code, &cell),
        "STXR" | "STLXR" | "STREX" | "STLEX" => emit_store_conditional(code, &cell),
        "DMB" | "DSB" => emit_barrier(code, &cell),
        "ISB" => code.emit(piece, Instruction::Fence(Fence::InstructionSync)),
        "CBZ" | "CBNZ" => {
            cell.check_operand_count(2)?;
            let on = match code.operand(parts[0], "#")? {
                Operand::Register(register) => register,
                Operand::Number(_) => code.temporary(),
            };
            code.branch(piece, on, name == "CBZ", parts[1])
        }
        "B" => {
            cell.check_operand_count(1)?;
            code.jump(piece, parts[0])
        }
        "LDP" | "STP" | "LDRB" | "LDRH" | "STRB" | "STRH" | "LDARB" | "LDARH" | "STLRB"
        | "STLRH" => error_with_help(
            cell.word,
            format!("`{}` is not a supported instruction", cell.word.text),
            "an access is of one word, and a location has one",
        ),
        _ => cell.reject_unknown(&KNOWN_INSTRUCTIONS),
    }
}

/// Adds `CSEL` (destination, two values, condition) or `CSET` (destination, condition), which selects 1 or 0.
fn emit_select(code: &mut Code, cell: &Cell) -> Result<()> {
    let (piece, parts) = (cell.piece, &cell.operands);
    let is_csel = cell.name == "CSEL";
    let count = if is_csel { 4 } else { 2 };
    cell.check_operand_count(count)?;
    let (then, otherwise) = match is_csel {
        true => (code.operand(parts[1], "#")?, code.operand(parts[2], "#")?),
        false => (Operand::Number(1), Operand::Number(0)),
    };
    let operand = parts[count - 1];
    let condition_name = operand.text.to_ascii_uppercase();
    let Some(condition) = CONDITIONS
        .into_iter()
        .find(|known| *known == condition_name)
    else {
        return reject_condition(operand);
    };
    let (on, zero) = condition_register(code, piece, condition)?;
    let to = code.result(parts[0])?;
    let (then, otherwise) = match zero {
        true => (otherwise, then),
        false => (then, otherwise),
    };
    let select = Instruction::Select {
        to,
        on,
        then,
        otherwise,
    };
    code.emit(piece, select)
}

/// Adds a load, or a load that reserves its location: destination, address.
fn emit_load<'t>(code: &mut Code<'_, 't>, cell: &Cell<'t>) -> Result<()> {
    let (from, post_increment) = accessed_address(code, cell, 1)?;
    let to = code.result(cell.operands[0])?;
    let acquire = match cell.name.as_str() {
        "LDAR" | "LDAXR" | "LDA" | "LDAEX" => Acquire::Rcsc,
        "LDAPR" | "LDAPUR" => Acquire::Rcpc,
        _ => Acquire::None,
    };
    let load = match cell.name.as_str() {
        "LDXR" | "LDAXR" | "LDREX" | "LDAEX" => Instruction::LoadReserved {
            to,
            from,
            acquire,
            release: false,
        },
        _ => Instruction::Load { to, from, acquire },
    };
    code.emit(cell.piece, load)?;
    emit_post_increment(code, cell.piece, post_increment)
}

/// Adds a store: value, address.
fn emit_store<'t>(code: &mut Code<'_, 't>, cell: &Cell<'t>) -> Result<()> {
    let value = match cell.operands.first() {
        Some(first) => code.operand(*first, "#")?,
        None => return cell.check_operand_count(2),
    };
    let (to, post_increment) = accessed_address(code, cell, 1)?;
    let store = Instruction::Store {
        to,
        value,
        release: matches!(cell.name.as_str(), "STLR" | "STLUR" | "STL"),
        via: StoreVariant::ProtocolDefault,
    };
    code.emit(cell.piece, store)?;
    emit_post_increment(code, cell.piece, post_increment)
}

/// Adds a store-conditional: destination of the status, value, address.
fn emit_store_conditional<'t>(code: &mut Code<'_, 't>, cell: &Cell<'t>) -> Result<()> {
    cell.check_operand_count(3)?;
    let value = code.operand(cell.operands[1], "#")?;
    let to = address(code, cell.operands[2])?;
    let status = code.result(cell.operands[0])?;
    let store = Instruction::StoreConditional {
        status,
        to,
        value,
        acquire: false,
        release: matches!(cell.name.as_str(), "STLXR" | "STLEX"),
    };
    code.emit(cell.piece, store)
}

/// Adds a barrier. The shareability domain is ignored, because all threads share one.
fn emit_barrier(code: &mut Code, cell: &Cell) -> Result<()> {
    let parts = &cell.operands;
    let kind = match parts.first() {
        Some(kind) => kind.text.to_ascii_uppercase(),
        None => "SY".into(),
    };
    let fence = match kind.as_str() {
        "SY" | "ISH" | "OSH" | "NSH" => Fence::Full,
        "LD" | "ISHLD" | "OSHLD" | "NSHLD" => Fence::between(Class::Reads, Class::All),
        "ST" | "ISHST" | "OSHST" | "NSHST" => Fence::between(Class::Writes, Class::Writes),
        other => return error_at(parts[0], format!("`{other}` is no kind of barrier")),
    };
    cell.check_operand_count(parts.len().min(1))?;
    code.emit(cell.piece, Instruction::Fence(fence))
}

/// Returns the operation of an arithmetic instruction; the flag is true if it also sets the condition flags.
fn operation(name: &str) -> Option<(Operation, bool)> {
    Some(match name {
        "ADD" => (Operation::Add, false),
        "SUB" => (Operation::Subtract, false),
        "SUBS" => (Operation::Subtract, true),
        "AND" => (Operation::And, false),
        "ORR" => (Operation::Or, false),
        "EOR" => (Operation::Xor, false),
        "LSL" => (Operation::ShiftLeft, false),
        "ASR" => (Operation::ShiftRight, false),
        _ => return None,
    })
}

/// Adds an arithmetic or logical instruction with three operands; with `sets_flags`, also the comparison of its
/// sources.
fn emit_arithmetic(
    code: &mut Code,
    cell: &Cell,
    (operation, sets_flags): (Operation, bool),
) -> Result<()> {
    let parts = &cell.operands;
    // The last operand may be extended: `ADD X3,X1,W2,SXTW`.
    if parts.len() == 4 {
        check_extension(parts[3])?;
    } else {
        cell.check_operand_count(3)?;
    }
    let (a, b) = (code.operand(parts[1], "#")?, code.operand(parts[2], "#")?);
    if sets_flags {
        emit_comparison(code, cell.piece, a, b)?;
    }
    let to = code.result(parts[0])?;
    code.compute(cell.piece, Some(to), operation, a, b)
        .map(|_| ())
}

/// Checks an extension: `SXTW`, `UXTW`, `SXTX`, `UXTX` or `LSL`, without a shift or with a shift by 0. It has no
/// effect, because all registers hold signed 64-bit values here.
fn check_extension(piece: Piece) -> Result<()> {
    let mut words = piece.text.split_whitespace();
    let kind = words.next().unwrap_or_default().to_ascii_uppercase();
    let shift = words.next().unwrap_or("#0");
    match kind.as_str() {
        "SXTW" | "UXTW" | "SXTX" | "UXTX" | "LSL" if shift == "#0" => Ok(()),
        _ => error_at(piece, format!("`{}` is not supported", piece.text)),
    }
}

/// Adds a comparison. Two hidden registers hold the condition flags.
fn emit_comparison(code: &mut Code, cell: Piece, a: Operand, b: Operand) -> Result<()> {
    let (differ, less) = (
        code.named_temporary(".differ"),
        code.named_temporary(".less"),
    );
    code.compute(cell, Some(less), Operation::Less, a, b)?;
    code.compute(cell, Some(differ), Operation::Subtract, a, b)?;
    Ok(())
}

/// Returns the register that decides a condition; the flag is true if the condition holds when the register is zero.
fn condition_register(code: &mut Code, cell: Piece, condition: &str) -> Result<(usize, bool)> {
    let (differ, less) = (
        code.named_temporary(".differ"),
        code.named_temporary(".less"),
    );
    let or_equal = |code: &mut Code| {
        let (less, zero) = (Operand::Register(less), Operand::Number(0));
        let equal = code.compute(
            cell,
            None,
            Operation::Equal,
            Operand::Register(differ),
            zero,
        )?;
        code.compute(cell, None, Operation::Or, less, Operand::Register(equal))
    };
    Ok(match condition {
        "EQ" => (differ, true),
        "NE" => (differ, false),
        "LT" => (less, false),
        "GE" => (less, true),
        "LE" => (or_equal(code)?, false),
        _ => (or_equal(code)?, true),
    })
}

/// Rejects an unknown condition, and lists the supported ones.
fn reject_condition<T>(piece: Piece) -> Result<T> {
    let message = format!("`{}` is no condition that is supported here", piece.text);
    error_with_help(piece, message, CONDITIONS.join(", "))
}

/// Returns the condition of a branch, `B.NE` or `BNE`.
fn branch(name: &str) -> Option<&'static str> {
    let condition = name.strip_prefix('B')?;
    let condition = condition.strip_prefix('.').unwrap_or(condition);
    CONDITIONS.into_iter().find(|known| *known == condition)
}

/// Parses the address after the first `operand_count` operands. Returns the location, and for a post-indexed address
/// the base register with its increment.
fn accessed_address<'t>(
    code: &mut Code<'_, 't>,
    cell: &Cell<'t>,
    operand_count: usize,
) -> Result<(Address, Option<(usize, Operand)>)> {
    let parts = &cell.operands;
    if parts.len() == operand_count + 2 {
        let address = address(code, parts[operand_count])?;
        let base = code.register(base(parts[operand_count]))?;
        let increment = code.operand(parts[operand_count + 1], "#")?;
        return Ok((address, Some((base, increment))));
    }
    cell.check_operand_count(operand_count + 1)?;
    Ok((address(code, parts[operand_count])?, None))
}

/// Adds the increment of the base register after an access with a post-indexed address, if there is one.
fn emit_post_increment(
    code: &mut Code,
    cell: Piece,
    post_increment: Option<(usize, Operand)>,
) -> Result<()> {
    let Some((base, increment)) = post_increment else {
        return Ok(());
    };
    let from = Operand::Register(base);
    code.compute(cell, Some(base), Operation::Add, from, increment)
        .map(|_| ())
}

/// Returns the base register of an address in brackets.
fn base(piece: Piece) -> Piece {
    let inner = piece.from(usize::from(piece.text.starts_with('[')));
    let end = inner.text.find([',', ']']).unwrap_or(inner.text.len());
    inner.until(end).trim()
}

/// Parses an address: `[X1]`, `[X1,#0]`, `[X1,X2]` or `[X1,W2,SXTW]`.
fn address<'t>(code: &mut Code<'_, 't>, piece: Piece<'t>) -> Result<Address> {
    let inner = piece
        .text
        .strip_prefix('[')
        .and_then(|t| t.strip_suffix(']'));
    let Some(inner) = inner else {
        return error_with_help(piece, "an address must be in brackets", "`[X1]`");
    };
    let inner = Piece {
        text: inner,
        start: piece.start + 1,
    };
    let parts = inner.split(',');
    if parts.len() > 3 {
        return error_with_help(piece, "this address has too many parts", "`[X1,W2,SXTW]`");
    }
    if let Some(extension) = parts.get(2) {
        check_extension(*extension)?;
    }
    let base = code.operand(parts[0], "#")?;
    let index = match parts.get(1) {
        Some(index) => code.operand(*index, "#")?,
        None => Operand::Number(0),
    };
    code.address(piece, base, index)
}

/// Atomic instructions without their order. Those that begin with `ST` return no value.
const ATOMIC: [(&str, Change); 10] = [
    ("SWP", Change::Exchange),
    ("LDADD", Change::FetchAdd),
    ("LDSET", Change::FetchOp(Operation::Or)),
    ("LDCLR", Change::FetchOp(Operation::And)),
    ("LDEOR", Change::FetchOp(Operation::Xor)),
    ("STADD", Change::FetchAdd),
    ("STSET", Change::FetchOp(Operation::Or)),
    ("STCLR", Change::FetchOp(Operation::And)),
    ("STEOR", Change::FetchOp(Operation::Xor)),
    ("CAS", Change::CompareAndSwap(Operand::Number(0))),
];

/// Splits the name of an atomic instruction into its base and its order.
fn atomic(name: &str) -> Option<((&'static str, Change), &str)> {
    let mut candidates = ATOMIC
        .into_iter()
        .filter_map(|entry| Some((entry, name.strip_prefix(entry.0)?)));
    candidates.find(|(entry, order)| match entry.0.starts_with("ST") {
        true => matches!(*order, "" | "L"),
        false => matches!(*order, "" | "A" | "L" | "AL"),
    })
}

/// Adds an atomic instruction. `word` is its name without the suffix `order`: empty, `A`, `L` or `AL`.
fn emit_atomic<'t>(
    code: &mut Code<'_, 't>,
    cell: &Cell<'t>,
    (word, change): (&str, Change),
    order: &str,
) -> Result<()> {
    let (piece, parts) = (cell.piece, &cell.operands);
    let stores = word.starts_with("ST");
    cell.check_operand_count(if stores { 2 } else { 3 })?;
    let first_value = code.operand(parts[0], "#")?;
    let is_compare = word == "CAS";
    let mut value = match is_compare {
        true => code.operand(parts[1], "#")?,
        false => first_value,
    };
    let address = address(code, parts[parts.len() - 1])?;
    if word.ends_with("CLR") {
        let ones = Operand::Number(-1);
        value = Operand::Register(code.compute(piece, None, Operation::Xor, value, ones)?);
    }
    // In `CAS`, the register of the expected value receives the old value.
    let result = parts[usize::from(!is_compare)];
    let returns = !stores && !code.is_zero(result);
    let to = match returns {
        true => code.register(result)?,
        false => code.temporary(),
    };
    let atomic = Instruction::Atomic {
        to,
        at: address,
        change: match change {
            Change::CompareAndSwap(_) => Change::CompareAndSwap(first_value),
            change => change,
        },
        value,
        // Without a destination register, the instruction does not acquire.
        acquire: order.contains('A') && returns,
        release: order.contains('L'),
        returns,
        via: StoreVariant::ProtocolDefault,
    };
    code.emit(piece, atomic)
}
