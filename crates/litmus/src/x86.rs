//! Instructions of x86, in Intel syntax (destination first) and AT&T syntax (destination last).

use crate::assembly::{Cell, Code, Dialect, Name};
use crate::piece::{error_at, error_with_help, number, Piece, Result};
use crate::program::{
    Acquire, Address, Change, Class, Fence, Instruction, Operand, Operation, StoreVariant,
};

/// Registers and instructions of x86.
pub(crate) const X86: Dialect = Dialect {
    register,
    registers: "EAX, EBX, ECX, EDX, ESI, EDI, or R8 to R15, or their names with 64 bits",
    instruction,
};

/// Resolves a register. `EAX` and `RAX` are the same register.
fn register(name: &str) -> Option<Name> {
    let name = name.to_ascii_uppercase();
    let name = name.strip_prefix('%').unwrap_or(&name);
    let letters = name.strip_prefix(['E', 'R'])?;
    if ["AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP"].contains(&letters) {
        return Some(Name::Register(format!("E{letters}")));
    }
    let number = name.strip_prefix('R')?;
    let number: u8 = number.strip_suffix('D').unwrap_or(number).parse().ok()?;
    (8..=15)
        .contains(&number)
        .then(|| Name::Register(format!("R{number}")))
}

/// Supported instructions, for suggestions.
const KNOWN_INSTRUCTIONS: [&str; 24] = [
    "MOV", "MFENCE", "LFENCE", "SFENCE", "XCHG", "LOCK", "XADD", "CMPXCHG", "INC", "DEC", "ADD",
    "SUB", "AND", "OR", "XOR", "CMP", "JE", "JNE", "JZ", "JNZ", "JMP", "NOP", "ENDBR64", "RET",
];

/// Operand of an instruction.
#[derive(Clone, Copy)]
enum ParsedOperand {
    /// A register or a constant.
    Value(Operand),
    /// A location in memory.
    Memory(Address),
}

/// Reads an instruction, also with the prefix `LOCK`, and adds its effect to the thread.
fn instruction<'t>(code: &mut Code<'_, 't>, cell: Cell<'t>) -> Result<()> {
    let piece = cell.piece;
    // `LOCK` precedes its instruction, separated by blanks. A semicolon after it would end the row.
    let Some(rest) = cell.name.strip_prefix("LOCK") else {
        return emit_instruction(code, &cell, false);
    };
    if !rest.is_empty() {
        return cell.reject_unknown(&KNOWN_INSTRUCTIONS);
    }
    let rest = piece.from(cell.word.text.len()).trim();
    let end = rest
        .text
        .find(char::is_whitespace)
        .unwrap_or(rest.text.len());
    let word = rest.until(end);
    let operands = rest.from(end).trim();
    let cell = Cell {
        piece,
        word,
        name: word.text.to_ascii_uppercase(),
        operands: crate::assembly::operands(operands),
    };
    emit_instruction(code, &cell, true)
}

/// Adds the effect of an instruction without prefix. `locked` is true if the prefix `LOCK` preceded it.
fn emit_instruction<'t>(code: &mut Code<'_, 't>, cell: &Cell<'t>, locked: bool) -> Result<()> {
    let piece = cell.piece;
    let mut parts = cell.operands.clone();
    if parts.iter().any(|part| is_att(*part)) {
        parts.reverse();
    }
    // AT&T names end in the operand width: `MOVL`, `MOVQ`.
    let of_width = |widths: [char; 2]| {
        let name = cell.name.strip_suffix(widths);
        name.filter(|name| KNOWN_INSTRUCTIONS.contains(name))
    };
    if !KNOWN_INSTRUCTIONS.contains(&cell.name.as_str()) && of_width(['B', 'W']).is_some() {
        return reject_narrow(cell);
    }
    let name = of_width(['L', 'Q']).unwrap_or(&cell.name);
    let fence = |code: &mut Code, before, after| {
        cell.check_operand_count(0)?;
        code.emit(piece, Instruction::Fence(Fence::between(before, after)))
    };
    match name {
        "NOP" | "ENDBR64" => Ok(()),
        "RET" => code.end(piece),
        "MFENCE" => fence(code, Class::All, Class::All),
        "LFENCE" => fence(code, Class::Reads, Class::All),
        "SFENCE" => fence(code, Class::Writes, Class::Writes),
        "MOV" => {
            cell.check_operand_count(2)?;
            match (
                parse_operand(code, parts[0])?,
                parse_operand(code, parts[1])?,
            ) {
                (ParsedOperand::Memory(to), ParsedOperand::Value(value)) => {
                    emit_store(code, piece, to, value)
                }
                (ParsedOperand::Value(Operand::Register(to)), ParsedOperand::Memory(from)) => {
                    emit_load(code, piece, to, from)
                }
                (ParsedOperand::Value(Operand::Register(to)), ParsedOperand::Value(from)) => {
                    code.copy(piece, to, from)
                }
                _ => error_at(parts[0], "a register or a location is expected here"),
            }
        }
        "XCHG" | "XADD" => {
            cell.check_operand_count(2)?;
            let location_and_register = (
                parse_operand(code, parts[0])?,
                parse_operand(code, parts[1])?,
            );
            let ((ParsedOperand::Memory(address), ParsedOperand::Value(Operand::Register(to)))
            | (ParsedOperand::Value(Operand::Register(to)), ParsedOperand::Memory(address))) =
                location_and_register
            else {
                return error_at(piece, "a location and a register is expected here");
            };
            let change = match name {
                "XCHG" => Change::Exchange,
                _ if locked => Change::FetchAdd,
                _ => return error_at(cell.word, "`XADD` is supported only after `LOCK`"),
            };
            emit_atomic(code, piece, (to, address), change, Operand::Register(to))
        }
        "CMPXCHG" => {
            cell.check_operand_count(2)?;
            if !locked {
                return error_at(cell.word, "`CMPXCHG` is supported only after `LOCK`");
            }
            let location_and_value = (
                parse_operand(code, parts[0])?,
                parse_operand(code, parts[1])?,
            );
            let (ParsedOperand::Memory(address), ParsedOperand::Value(value)) = location_and_value
            else {
                return error_at(piece, "a location and a register is expected here");
            };
            let accumulator = code.named_temporary("EAX");
            let expected = Operand::Register(accumulator);
            let expected_register = code.temporary();
            code.copy(piece, expected_register, expected)?;
            let expected = Operand::Register(expected_register);
            emit_atomic(
                code,
                piece,
                (accumulator, address),
                Change::CompareAndSwap(expected),
                value,
            )?;
            emit_comparison(code, piece, Operand::Register(accumulator), expected)
        }
        "INC" | "DEC" => {
            cell.check_operand_count(1)?;
            let operand = Operand::Number(if name == "INC" { 1 } else { -1 });
            emit_update(code, piece, parts[0], Operation::Add, operand, locked)
        }
        "ADD" | "SUB" | "AND" | "OR" | "XOR" => {
            cell.check_operand_count(2)?;
            let operation = match name {
                "ADD" => Operation::Add,
                "SUB" => Operation::Subtract,
                "AND" => Operation::And,
                "OR" => Operation::Or,
                _ => Operation::Xor,
            };
            let operand = value(code, piece, parts[1])?;
            emit_update(code, piece, parts[0], operation, operand, locked)
        }
        "CMP" => {
            cell.check_operand_count(2)?;
            let (a, b) = (value(code, piece, parts[0])?, value(code, piece, parts[1])?);
            emit_comparison(code, piece, a, b)
        }
        "JE" | "JZ" | "JNE" | "JNZ" => {
            cell.check_operand_count(1)?;
            let differ = code.named_temporary(".differ");
            let equal = matches!(name, "JE" | "JZ");
            code.branch(piece, differ, equal, parts[0])
        }
        "JMP" => {
            cell.check_operand_count(1)?;
            code.jump(piece, parts[0])
        }
        _ => cell.reject_unknown(&KNOWN_INSTRUCTIONS),
    }
}

/// Returns the value of an operand. Adds a load for a memory operand.
fn value<'t>(code: &mut Code<'_, 't>, cell: Piece<'t>, piece: Piece<'t>) -> Result<Operand> {
    match parse_operand(code, piece)? {
        ParsedOperand::Value(value) => Ok(value),
        ParsedOperand::Memory(from) => {
            let to = code.temporary();
            emit_load(code, cell, to, from)?;
            Ok(Operand::Register(to))
        }
    }
}

/// Adds a read-modify-write of a register or a location. With `locked` it is atomic, otherwise a load and a store.
fn emit_update<'t>(
    code: &mut Code<'_, 't>,
    cell: Piece<'t>,
    piece: Piece<'t>,
    operation: Operation,
    operand: Operand,
    locked: bool,
) -> Result<()> {
    match parse_operand(code, piece)? {
        ParsedOperand::Value(Operand::Register(to)) => {
            let (old_value, zero) = (Operand::Register(to), Operand::Number(0));
            code.compute(cell, Some(to), operation, old_value, operand)?;
            emit_comparison(code, cell, Operand::Register(to), zero)
        }
        ParsedOperand::Value(_) => error_at(piece, "a register or a location is expected here"),
        ParsedOperand::Memory(address) if locked => {
            let to = code.temporary();
            emit_atomic(
                code,
                cell,
                (to, address),
                Change::FetchOp(operation),
                operand,
            )?;
            let result = code.compute(cell, None, operation, Operand::Register(to), operand)?;
            emit_comparison(code, cell, Operand::Register(result), Operand::Number(0))
        }
        ParsedOperand::Memory(address) => {
            let to = code.temporary();
            emit_load(code, cell, to, address)?;
            let old_value = Operand::Register(to);
            let result = code.compute(cell, None, operation, old_value, operand)?;
            emit_store(code, cell, address, Operand::Register(result))?;
            emit_comparison(code, cell, Operand::Register(result), Operand::Number(0))
        }
    }
}

/// Adds a load without an annotation: x86 has no acquiring loads, and its model orders plain ones.
fn emit_load(code: &mut Code, cell: Piece, to: usize, from: Address) -> Result<()> {
    let acquire = Acquire::None;
    code.emit(cell, Instruction::Load { to, from, acquire })
}

/// Adds a store without an annotation: x86 has no releasing stores, and its model orders plain ones.
fn emit_store(code: &mut Code, cell: Piece, to: Address, value: Operand) -> Result<()> {
    let store = Instruction::Store {
        to,
        value,
        release: false,
        via: StoreVariant::ProtocolDefault,
    };
    code.emit(cell, store)
}

/// Adds an atomic access, which is a full fence.
fn emit_atomic(
    code: &mut Code,
    cell: Piece,
    (to, address): (usize, Address),
    change: Change,
    value: Operand,
) -> Result<()> {
    let atomic = Instruction::Atomic {
        to,
        at: address,
        change,
        value,
        acquire: true,
        release: true,
        returns: true,
        via: StoreVariant::ProtocolDefault,
    };
    code.emit(cell, atomic)
}

/// Adds a comparison. A hidden register holds the flag for later branches.
fn emit_comparison(code: &mut Code, cell: Piece, a: Operand, b: Operand) -> Result<()> {
    let differ = code.named_temporary(".differ");
    code.compute(cell, Some(differ), Operation::Subtract, a, b)
        .map(|_| ())
}

/// Returns true if an operand has AT&T syntax: `%eax`, or an address in parentheses.
fn is_att(piece: Piece) -> bool {
    piece.text.starts_with('%') && register(piece.text).is_some() || piece.text.ends_with(')')
}

/// Rejects an access of one or two bytes.
fn reject_narrow<T>(cell: &Cell) -> Result<T> {
    let message = format!("`{}` is not a supported instruction", cell.word.text);
    error_with_help(
        cell.word,
        message,
        "an access is of one word, and a location has one",
    )
}

/// Parses an operand: `[x]`, `[RAX]`, `EAX`, `$1` or `1`; in AT&T syntax `(x)`, `x(%rip)`, `(%rax)`, `0(%rax)`,
/// `(%rax,%rbx)` or `%eax`.
fn parse_operand<'t>(code: &mut Code<'_, 't>, piece: Piece<'t>) -> Result<ParsedOperand> {
    let bracket = piece.text.strip_prefix('[');
    if let Some(inner) = bracket.and_then(|rest| rest.strip_suffix(']')) {
        let inner = piece.from(1).until(inner.len()).trim();
        return memory_operand(code, piece, (inner, Operand::Number(0)));
    }
    let Some((offset, inner)) = piece.split_once("(").filter(|_| piece.text.ends_with(')')) else {
        let digits = piece.from(usize::from(piece.text.starts_with('$')));
        return code.operand(digits, "").map(ParsedOperand::Value);
    };
    let parts = inner.until(inner.text.len() - 1).split(',');
    let index = match (offset.text, parts[..].len()) {
        // Addresses relative to the instruction pointer name a location.
        (name, 1) if parts[0].text.eq_ignore_ascii_case("%rip") && !name.is_empty() => {
            return code.named_location(offset).map(ParsedOperand::Memory);
        }
        ("" | "0", 1) => Operand::Number(0),
        ("" | "0", 2) => code.operand(parts[1], "")?,
        (_, 1) => Operand::Number(number(offset)?),
        _ => return error_with_help(piece, "this address has too many parts", "`(%rax,%rbx)`"),
    };
    memory_operand(code, piece, (parts[0], index))
}

/// Returns the location at a base register plus an index, or the location of a name.
fn memory_operand<'t>(
    code: &mut Code<'_, 't>,
    piece: Piece<'t>,
    (base, index): (Piece<'t>, Operand),
) -> Result<ParsedOperand> {
    if !code.is_register(base) {
        return code.named_location(base).map(ParsedOperand::Memory);
    }
    let base = code.operand(base, "")?;
    code.address(piece, base, index).map(ParsedOperand::Memory)
}
