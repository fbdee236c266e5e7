//! Floating-point instructions: NaN boxing of single precision, and host arithmetic where its result is identical.

use crate::csr::Csrs;
use crate::decode::Inst;
use crate::float::{Format, Rounding, DOUBLE, INEXACT, SINGLE};
use crate::table::Op;
use std::cmp::Ordering;

/// Unboxes a register: a single-precision number must be boxed by ones in the upper half, otherwise it reads as NaN.
fn unbox(format: Format, register: u64) -> u64 {
    match format {
        SINGLE if register >> 32 != 0xffff_ffff => SINGLE.nan(),
        SINGLE => register & 0xffff_ffff,
        _ => register,
    }
}

/// Boxes a number for a register.
pub(crate) fn box_number(format: Format, number: u64) -> u64 {
    if format == SINGLE {
        number | 0xffff_ffff << 32
    } else {
        number
    }
}

/// Executes one instruction. Returns `None` if its rounding mode is reserved.
pub(crate) fn execute(inst: &Inst, registers: &mut [u64; 64], csrs: &mut Csrs) -> Option<()> {
    let format = if inst.wide { DOUBLE } else { SINGLE };
    let register = |number: u8| registers[usize::from(number & 63)];
    let raw = register(inst.rs1);
    let (a, b) = (unbox(format, raw), unbox(format, register(inst.rs2)));
    let sign = if inst.wide { 1 << 63 } else { 1 << 31 };
    let flags = &mut csrs.fflags;
    let number = match inst.op {
        Op::Fsgnj => a & !sign | b & sign,
        Op::Fsgnjn => a & !sign | !b & sign,
        Op::Fsgnjx => a ^ b & sign,
        Op::Fmin => format.minimum(a, b, flags),
        Op::Fmax => format.maximum(a, b, flags),
        Op::FmvToF => {
            if inst.wide {
                raw
            } else {
                raw & 0xffff_ffff
            }
        }
        Op::Feq | Op::Flt | Op::Fle | Op::Fclass | Op::FmvToX => {
            let integer = match inst.op {
                Op::Feq => u64::from(format.compare_quiet(a, b, flags) == Some(Ordering::Equal)),
                Op::Flt => {
                    u64::from(format.compare_signalling(a, b, flags) == Some(Ordering::Less))
                }
                Op::Fle => u64::from(
                    format
                        .compare_signalling(a, b, flags)
                        .is_some_and(Ordering::is_le),
                ),
                Op::Fclass => format.class(a),
                _ => {
                    if inst.wide {
                        raw
                    } else {
                        raw as i32 as u64
                    }
                }
            };
            registers[usize::from(inst.rd & 63)] = integer;
            return Some(());
        }
        _ => return execute_rounding(inst, registers, csrs, format),
    };
    registers[usize::from(inst.rd & 63)] = box_number(format, number);
    Some(())
}

/// Executes an instruction that rounds.
fn execute_rounding(
    inst: &Inst,
    registers: &mut [u64; 64],
    csrs: &mut Csrs,
    format: Format,
) -> Option<()> {
    let mode = csrs.rounding(inst.rm)?;
    let flags = &mut csrs.fflags;
    let register = |number: u8| registers[usize::from(number & 63)];
    let x = register(inst.rs1);
    let [a, b, c] = [inst.rs1, inst.rs2, inst.rs3].map(|number| unbox(format, register(number)));
    let sign = if inst.wide { 1 << 63 } else { 1 << 31 };
    if let Some(number) = compute_on_host(inst, [a, b, c], mode, *flags) {
        registers[usize::from(inst.rd & 63)] = box_number(format, number);
        return Some(());
    }
    let number = match inst.op {
        Op::Fadd => format.add(a, b, mode, flags),
        Op::Fsub => format.subtract(a, b, mode, flags),
        Op::Fmul => format.multiply(a, b, mode, flags),
        Op::Fdiv => format.divide(a, b, mode, flags),
        Op::Fsqrt => format.square_root(a, mode, flags),
        Op::Fmadd => format.multiply_add(a, b, c, mode, flags),
        Op::Fmsub => format.multiply_add(a, b, c ^ sign, mode, flags),
        Op::Fnmsub => format.multiply_add(a ^ sign, b, c, mode, flags),
        Op::Fnmadd => format.multiply_add(a ^ sign, b, c ^ sign, mode, flags),
        Op::FcvtSD => DOUBLE.convert(x, SINGLE, mode, flags),
        Op::FcvtDS => SINGLE.convert(unbox(SINGLE, x), DOUBLE, mode, flags),
        Op::FcvtFromW => format.from_integer((x as i32).into(), mode, flags),
        Op::FcvtFromWu => format.from_integer((x as u32).into(), mode, flags),
        Op::FcvtFromL => format.from_integer((x as i64).into(), mode, flags),
        Op::FcvtFromLu => format.from_integer(x.into(), mode, flags),
        _ => {
            let (minimum, maximum) = match inst.op {
                Op::FcvtW => (i32::MIN.into(), i32::MAX.into()),
                Op::FcvtWu => (0, u32::MAX.into()),
                Op::FcvtL => (i64::MIN.into(), i64::MAX.into()),
                _ => (0, u64::MAX.into()),
            };
            let integer = format.to_integer(a, minimum, maximum, mode, flags);
            let is_word = matches!(inst.op, Op::FcvtW | Op::FcvtWu);
            registers[usize::from(inst.rd & 63)] = if is_word {
                integer as i32 as u64
            } else {
                integer as u64
            };
            return Some(());
        }
    };
    registers[usize::from(inst.rd & 63)] = box_number(format, number);
    Some(())
}

/// Computes an operation on the host, which rounds to nearest, ties to even, and reports no flags. The result is used
/// only if it is finite and larger than the smallest normal number. Then no operand was infinite or NaN, nothing was
/// divided by zero, and the result neither overflowed nor was tiny. Only the inexact flag may be missing, so it must
/// already be raised.
#[inline]
fn compute_on_host(inst: &Inst, operands: [u64; 3], mode: Rounding, flags: u8) -> Option<u64> {
    if mode != Rounding::NearestEven || flags & INEXACT == 0 {
        return None;
    }
    macro_rules! compute {
        ($float:ty, $bits:ty) => {{
            let [a, b, c] = operands.map(|operand| <$float>::from_bits(operand as $bits));
            let result = match inst.op {
                Op::Fadd => a + b,
                Op::Fsub => a - b,
                Op::Fmul => a * b,
                Op::Fdiv => a / b,
                Op::Fsqrt => a.sqrt(),
                Op::Fmadd => a.mul_add(b, c),
                Op::Fmsub => a.mul_add(b, -c),
                Op::Fnmsub => (-a).mul_add(b, c),
                Op::Fnmadd => (-a).mul_add(b, -c),
                _ => return None,
            };
            let is_usable = result.is_finite() && result.abs() > <$float>::MIN_POSITIVE;
            is_usable.then(|| result.to_bits() as u64)
        }};
    }
    if inst.wide {
        compute!(f64, u64)
    } else {
        compute!(f32, u32)
    }
}
