//! Instructions of Power.

use crate::assembly::{Cell, Code, Dialect, Name};
use crate::piece::{error_with_help, Piece, Result};
use crate::program::{Acquire, Address, Fence, Instruction, Operand, Operation, StoreVariant};

/// Registers and instructions of Power.
pub(crate) const POWER: Dialect = Dialect {
    register,
    registers: "r0 to r31",
    instruction,
};

/// Resolves a register, `r0` to `r31`.
fn register(name: &str) -> Option<Name> {
    let number: u8 = name.strip_prefix(['r', 'R'])?.parse().ok()?;
    (number <= 31).then(|| Name::Register(format!("r{number}")))
}

/// Supported instructions, for suggestions.
const KNOWN_INSTRUCTIONS: [&str; 31] = [
    "li", "mr", "add", "addi", "sub", "subf", "and", "or", "ori", "xor", "xori", "lwz", "ld",
    "lwzx", "ldx", "stw", "std", "stwx", "stdx", "lwarx", "stwcx.", "sync", "lwsync", "eieio",
    "isync", "cmpw", "cmpwi", "beq", "bne", "b", "nop",
];

/// Reads an instruction, and adds its effect to the thread.
fn instruction<'t>(code: &mut Code<'_, 't>, cell: Cell<'t>) -> Result<()> {
    let (piece, parts) = (cell.piece, &cell.operands);
    let name = cell.name.as_str();
    let operation = match name {
        "ADD" | "ADDI" => Some(Operation::Add),
        "SUB" | "SUBF" => Some(Operation::Subtract),
        "AND" | "ANDI." => Some(Operation::And),
        "OR" | "ORI" => Some(Operation::Or),
        "XOR" | "XORI" => Some(Operation::Xor),
        _ => None,
    };
    if let Some(operation) = operation {
        cell.check_operand_count(3)?;
        let (mut a, mut b) = (code.operand(parts[1], "")?, code.operand(parts[2], "")?);
        if name == "SUBF" {
            (a, b) = (b, a);
        }
        let to = code.result(parts[0])?;
        return code.compute(piece, Some(to), operation, a, b).map(|_| ());
    }
    match name {
        "NOP" => Ok(()),
        "LI" | "MR" => {
            cell.check_operand_count(2)?;
            let from = code.operand(parts[1], "")?;
            let to = code.result(parts[0])?;
            code.copy(piece, to, from)
        }
        "LWZ" | "LD" | "LWZX" | "LDX" | "LWARX" | "LDARX" => {
            let from = address(code, &cell)?;
            let to = code.result(parts[0])?;
            let acquire = Acquire::None;
            let load = match name {
                "LWARX" | "LDARX" => Instruction::LoadReserved {
                    to,
                    from,
                    acquire,
                    release: false,
                },
                _ => Instruction::Load { to, from, acquire },
            };
            code.emit(piece, load)
        }
        "STW" | "STD" | "STWX" | "STDX" => {
            let to = address(code, &cell)?;
            let store = Instruction::Store {
                to,
                value: code.operand(parts[0], "")?,
                release: false,
                via: StoreVariant::ProtocolDefault,
            };
            code.emit(piece, store)
        }
        // Later branches test the status of the store-conditional.
        "STWCX." | "STDCX." => {
            let to = address(code, &cell)?;
            let store = Instruction::StoreConditional {
                status: code.named_temporary(".differ"),
                to,
                value: code.operand(parts[0], "")?,
                acquire: false,
                release: false,
            };
            code.emit(piece, store)
        }
        "SYNC" => code.emit(piece, Instruction::Fence(Fence::Full)),
        // `LWSYNC` orders all pairs but a write before a later read.
        "LWSYNC" => {
            code.emit(piece, Instruction::Fence(Fence::Loads))?;
            code.emit(piece, Instruction::Fence(Fence::Stores))
        }
        "EIEIO" => code.emit(piece, Instruction::Fence(Fence::Stores)),
        "ISYNC" => code.emit(piece, Instruction::Fence(Fence::InstructionSync)),
        "CMPW" | "CMPWI" | "CMPD" => {
            cell.check_operand_count(2)?;
            let (a, b) = (code.operand(parts[0], "")?, code.operand(parts[1], "")?);
            let differ = code.named_temporary(".differ");
            code.compute(piece, Some(differ), Operation::Subtract, a, b)
                .map(|_| ())
        }
        "BEQ" | "BNE" => {
            cell.check_operand_count(1)?;
            let differ = code.named_temporary(".differ");
            code.branch(piece, differ, name == "BEQ", parts[0])
        }
        "B" => {
            cell.check_operand_count(1)?;
            code.jump(piece, parts[0])
        }
        _ => cell.reject_unknown(&KNOWN_INSTRUCTIONS),
    }
}

/// Parses an address: `0(r2)`, or two registers for indexed instructions (with an `x` in the name).
fn address<'t>(code: &mut Code<'_, 't>, cell: &Cell<'t>) -> Result<Address> {
    let parts = &cell.operands;
    if cell.name.contains('X') {
        cell.check_operand_count(3)?;
        let base_operand = parts[1];
        // Register 0 as a base means the constant 0.
        let base = match base_operand.text {
            "r0" | "R0" | "0" => Operand::Number(0),
            _ => code.operand(base_operand, "")?,
        };
        let index = code.operand(parts[2], "")?;
        return code.address(parts[2], base, index);
    }
    cell.check_operand_count(2)?;
    let inner = parts[1]
        .split_once("(")
        .filter(|(_, base)| base.text.ends_with(')'));
    let Some((offset, base)) = inner else {
        return error_with_help(parts[1], "an address must be in parentheses", "`0(r2)`");
    };
    let base: Piece = base.until(base.text.len() - 1).trim();
    let base = code.operand(base, "")?;
    let offset = match offset.text {
        "" => Operand::Number(0),
        _ => Operand::Number(crate::piece::number(offset)?),
    };
    code.address(parts[1], base, offset)
}
