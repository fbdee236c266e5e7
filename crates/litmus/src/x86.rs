//! Instructions of x86, in Intel syntax (destination first) and AT&T syntax (destination last).

use crate::assembly::{Cell, Code, Dialect, Name};
use crate::piece::{error_with_help, number, wrong, Piece, Result};
use crate::program::{
    Acquire, Address, Change, Class, Fence, Instruction, Operand, Operation, StoreVariant,
};

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
        return Some(Name::Is(format!("E{letters}")));
    }
    let number = name.strip_prefix('R')?;
    let number: u8 = number.strip_suffix('D').unwrap_or(number).parse().ok()?;
    (8..=15)
        .contains(&number)
        .then(|| Name::Is(format!("R{number}")))
}

const KNOWN: [&str; 24] = [
    "MOV", "MFENCE", "LFENCE", "SFENCE", "XCHG", "LOCK", "XADD", "CMPXCHG", "INC", "DEC", "ADD",
    "SUB", "AND", "OR", "XOR", "CMP", "JE", "JNE", "JZ", "JNZ", "JMP", "NOP", "ENDBR64", "RET",
];

/// Operand of an instruction.
#[derive(Clone, Copy)]
enum Place {
    Value(Operand),
    Memory(Address),
}

fn instruction<'t>(code: &mut Code<'_, 't>, cell: Cell<'t>) -> Result<()> {
    let whole = cell.whole;
    // `LOCK` precedes its instruction, separated by blanks. A semicolon after it would end the row.
    let Some(rest) = cell.name.strip_prefix("LOCK") else {
        return unlocked(code, &cell, false);
    };
    if !rest.is_empty() {
        return cell.unknown(&KNOWN);
    }
    let rest = whole.from(cell.word.text.len()).trim();
    let end = rest
        .text
        .find(char::is_whitespace)
        .unwrap_or(rest.text.len());
    let word = rest.until(end);
    let operands = rest.from(end).trim();
    let cell = Cell {
        whole,
        word,
        name: word.text.to_ascii_uppercase(),
        operands: crate::assembly::operands(operands),
    };
    unlocked(code, &cell, true)
}

fn unlocked<'t>(code: &mut Code<'_, 't>, cell: &Cell<'t>, locked: bool) -> Result<()> {
    let whole = cell.whole;
    let mut parts = cell.operands.clone();
    if parts.iter().any(|part| is_att(*part)) {
        parts.reverse();
    }
    // AT&T names end in the operand width: `MOVL`, `MOVQ`.
    let of_width = |widths: [char; 2]| {
        let name = cell.name.strip_suffix(widths);
        name.filter(|name| KNOWN.contains(name))
    };
    if !KNOWN.contains(&cell.name.as_str()) && of_width(['B', 'W']).is_some() {
        return narrow(cell);
    }
    let name = of_width(['L', 'Q']).unwrap_or(&cell.name);
    let fence = |code: &mut Code, before, after| {
        cell.takes(0)?;
        code.emit(whole, Instruction::Fence(Fence::between(before, after)))
    };
    match name {
        "NOP" | "ENDBR64" => Ok(()),
        "RET" => code.end(whole),
        "MFENCE" => fence(code, Class::All, Class::All),
        "LFENCE" => fence(code, Class::Reads, Class::All),
        "SFENCE" => fence(code, Class::Writes, Class::Writes),
        "MOV" => {
            cell.takes(2)?;
            match (place(code, parts[0])?, place(code, parts[1])?) {
                (Place::Memory(to), Place::Value(value)) => stores(code, whole, to, value),
                (Place::Value(Operand::Register(to)), Place::Memory(from)) => {
                    loads(code, whole, to, from)
                }
                (Place::Value(Operand::Register(to)), Place::Value(from)) => {
                    code.copy(whole, to, from)
                }
                _ => wrong(parts[0], "a register or a location is expected here"),
            }
        }
        "XCHG" | "XADD" => {
            cell.takes(2)?;
            let both = (place(code, parts[0])?, place(code, parts[1])?);
            let ((Place::Memory(at), Place::Value(Operand::Register(to)))
            | (Place::Value(Operand::Register(to)), Place::Memory(at))) = both
            else {
                return wrong(whole, "a location and a register is expected here");
            };
            let change = match name {
                "XCHG" => Change::Set,
                _ if locked => Change::Add,
                _ => return wrong(cell.word, "`XADD` is supported only after `LOCK`"),
            };
            atomic(code, whole, (to, at), change, Operand::Register(to))
        }
        "CMPXCHG" => {
            cell.takes(2)?;
            if !locked {
                return wrong(cell.word, "`CMPXCHG` is supported only after `LOCK`");
            }
            let both = (place(code, parts[0])?, place(code, parts[1])?);
            let (Place::Memory(at), Place::Value(value)) = both else {
                return wrong(whole, "a location and a register is expected here");
            };
            let found = code.named_temporary("EAX");
            let expected = Operand::Register(found);
            let before = code.hidden();
            code.copy(whole, before, expected)?;
            let expected = Operand::Register(before);
            atomic(code, whole, (found, at), Change::SetIf(expected), value)?;
            compares(code, whole, Operand::Register(found), expected)
        }
        "INC" | "DEC" => {
            cell.takes(1)?;
            let by = Operand::Number(if name == "INC" { 1 } else { -1 });
            changes(code, whole, parts[0], Operation::Add, by, locked)
        }
        "ADD" | "SUB" | "AND" | "OR" | "XOR" => {
            cell.takes(2)?;
            let operation = match name {
                "ADD" => Operation::Add,
                "SUB" => Operation::Subtract,
                "AND" => Operation::And,
                "OR" => Operation::Or,
                _ => Operation::Xor,
            };
            let by = value(code, whole, parts[1])?;
            changes(code, whole, parts[0], operation, by, locked)
        }
        "CMP" => {
            cell.takes(2)?;
            let (a, b) = (value(code, whole, parts[0])?, value(code, whole, parts[1])?);
            compares(code, whole, a, b)
        }
        "JE" | "JZ" | "JNE" | "JNZ" => {
            cell.takes(1)?;
            let differ = code.named_temporary(".differ");
            let equal = matches!(name, "JE" | "JZ");
            code.branch(whole, differ, equal, parts[0])
        }
        "JMP" => {
            cell.takes(1)?;
            code.jump(whole, parts[0])
        }
        _ => cell.unknown(&KNOWN),
    }
}

/// Returns the value of an operand. Adds a load for a memory operand.
fn value<'t>(code: &mut Code<'_, 't>, cell: Piece<'t>, piece: Piece<'t>) -> Result<Operand> {
    match place(code, piece)? {
        Place::Value(value) => Ok(value),
        Place::Memory(from) => {
            let to = code.hidden();
            loads(code, cell, to, from)?;
            Ok(Operand::Register(to))
        }
    }
}

/// Adds a read-modify-write of a register or a location. With `locked` it is atomic, otherwise a load and a store.
fn changes<'t>(
    code: &mut Code<'_, 't>,
    cell: Piece<'t>,
    piece: Piece<'t>,
    operation: Operation,
    by: Operand,
    locked: bool,
) -> Result<()> {
    match place(code, piece)? {
        Place::Value(Operand::Register(to)) => {
            let (before, zero) = (Operand::Register(to), Operand::Number(0));
            code.compute(cell, Some(to), operation, before, by)?;
            compares(code, cell, Operand::Register(to), zero)
        }
        Place::Value(_) => wrong(piece, "a register or a location is expected here"),
        Place::Memory(at) if locked => {
            let to = code.hidden();
            atomic(code, cell, (to, at), Change::Apply(operation), by)?;
            let after = code.compute(cell, None, operation, Operand::Register(to), by)?;
            compares(code, cell, Operand::Register(after), Operand::Number(0))
        }
        Place::Memory(at) => {
            let to = code.hidden();
            loads(code, cell, to, at)?;
            let before = Operand::Register(to);
            let after = code.compute(cell, None, operation, before, by)?;
            stores(code, cell, at, Operand::Register(after))?;
            compares(code, cell, Operand::Register(after), Operand::Number(0))
        }
    }
}

fn loads(code: &mut Code, cell: Piece, to: usize, from: Address) -> Result<()> {
    let acquire = Acquire::No;
    code.emit(cell, Instruction::Load { to, from, acquire })
}

fn stores(code: &mut Code, cell: Piece, to: Address, value: Operand) -> Result<()> {
    let store = Instruction::Store {
        to,
        value,
        release: false,
        via: StoreVariant::Text,
    };
    code.emit(cell, store)
}

/// Adds an atomic access, which is a full fence.
fn atomic(
    code: &mut Code,
    cell: Piece,
    (to, at): (usize, Address),
    change: Change,
    value: Operand,
) -> Result<()> {
    let atomic = Instruction::Atomic {
        to,
        at,
        change,
        value,
        acquire: true,
        release: true,
        returns: true,
        via: StoreVariant::Text,
    };
    code.emit(cell, atomic)
}

/// Adds a comparison. A hidden register holds the flag for later branches.
fn compares(code: &mut Code, cell: Piece, a: Operand, b: Operand) -> Result<()> {
    let differ = code.named_temporary(".differ");
    code.compute(cell, Some(differ), Operation::Subtract, a, b)
        .map(|_| ())
}

/// Returns true if an operand has AT&T syntax: `%eax`, or an address in parentheses.
fn is_att(piece: Piece) -> bool {
    piece.text.starts_with('%') && register(piece.text).is_some() || piece.text.ends_with(')')
}

/// Rejects an access of one or two bytes.
fn narrow<T>(cell: &Cell) -> Result<T> {
    let message = format!("`{}` is not a supported instruction", cell.word.text);
    error_with_help(
        cell.word,
        message,
        "an access is of one word, and a location has one",
    )
}

/// Parses an operand: `[x]`, `[RAX]`, `EAX`, `$1` or `1`; in AT&T syntax `(x)`, `x(%rip)`, `(%rax)`, `0(%rax)`,
/// `(%rax,%rbx)` or `%eax`.
fn place<'t>(code: &mut Code<'_, 't>, piece: Piece<'t>) -> Result<Place> {
    let bracket = piece.text.strip_prefix('[');
    if let Some(inside) = bracket.and_then(|rest| rest.strip_suffix(']')) {
        let inside = piece.from(1).until(inside.len()).trim();
        return located(code, piece, (inside, Operand::Number(0)));
    }
    let Some((offset, inside)) = piece.once("(").filter(|_| piece.text.ends_with(')')) else {
        let digits = piece.from(usize::from(piece.text.starts_with('$')));
        return code.operand(digits, "").map(Place::Value);
    };
    let parts = inside.until(inside.text.len() - 1).split(',');
    let index = match (offset.text, parts[..].len()) {
        // Addresses relative to the instruction pointer name a location.
        (name, 1) if parts[0].text.eq_ignore_ascii_case("%rip") && !name.is_empty() => {
            return code.named_location(offset).map(Place::Memory);
        }
        ("" | "0", 1) => Operand::Number(0),
        ("" | "0", 2) => code.operand(parts[1], "")?,
        (_, 1) => Operand::Number(number(offset)?),
        _ => return error_with_help(piece, "this address has too many parts", "`(%rax,%rbx)`"),
    };
    located(code, piece, (parts[0], index))
}

/// Returns the location at a base register plus an index, or the location of a name.
fn located<'t>(
    code: &mut Code<'_, 't>,
    piece: Piece<'t>,
    (base, index): (Piece<'t>, Operand),
) -> Result<Place> {
    if !code.is_register(base) {
        return code.named_location(base).map(Place::Memory);
    }
    let base = code.operand(base, "")?;
    code.address(piece, base, index).map(Place::Memory)
}
