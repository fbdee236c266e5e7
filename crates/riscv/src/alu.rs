//! Integer arithmetic and branch conditions, as functions of operand values without access to the core.

use crate::table::Op;

/// Sign-extends the low 32 bits.
fn word(value: u64) -> u64 {
    value as i32 as u64
}

/// Upper 64 bits of a product.
fn high(a: i128, b: i128) -> u64 {
    (a.wrapping_mul(b) >> 64) as u64
}

/// Result of an integer operation on two operands; zero for all other operations. Operations on words use the low 32
/// bits and return a sign-extended result. Shift amounts are taken modulo the width, and unary operations ignore `b`.
#[inline(always)]
#[rustfmt::skip]
pub fn compute(op: Op, a: u64, b: u64) -> u64 {
    use Op::*;
    let (sa, sb) = (a as i64, b as i64);
    let (wa, wb) = (a as u32, b as u32);
    let low = wa as u64;
    match op {
        Add => a.wrapping_add(b),
        Sub => a.wrapping_sub(b),
        Sll => a << (b & 63),
        Slt => u64::from(sa < sb),
        Sltu => u64::from(a < b),
        Xor => a ^ b,
        Srl => a >> (b & 63),
        Sra => (sa >> (b & 63)) as u64,
        Or => a | b,
        And => a & b,
        Addw => word(a.wrapping_add(b)),
        Subw => word(a.wrapping_sub(b)),
        Sllw => word((wa << (b & 31)).into()),
        Srlw => word((wa >> (b & 31)).into()),
        Sraw => (wa as i32 >> (b & 31)) as u64,

        Mul => a.wrapping_mul(b),
        Mulh => high(sa.into(), sb.into()),
        Mulhsu => high(sa.into(), b.into()),
        Mulhu => ((u128::from(a) * u128::from(b)) >> 64) as u64,
        // Division by zero returns all ones and remainder `a`; a signed overflow returns quotient `a` and remainder
        // zero.
        Div => if b == 0 { u64::MAX } else { sa.wrapping_div(sb) as u64 },
        Divu => a.checked_div(b).unwrap_or(u64::MAX),
        Rem => if b == 0 { a } else { sa.wrapping_rem(sb) as u64 },
        Remu => a.checked_rem(b).unwrap_or(a),
        Mulw => word(a.wrapping_mul(b)),
        Divw => if wb == 0 { u64::MAX } else { (wa as i32).wrapping_div(wb as i32) as u64 },
        Divuw => word(wa.checked_div(wb).unwrap_or(u32::MAX).into()),
        Remw => if wb == 0 { word(a) } else { (wa as i32).wrapping_rem(wb as i32) as u64 },
        Remuw => word(wa.checked_rem(wb).unwrap_or(wa).into()),

        AddUw => low.wrapping_add(b),
        Sh1add => (a << 1).wrapping_add(b),
        Sh2add => (a << 2).wrapping_add(b),
        Sh3add => (a << 3).wrapping_add(b),
        Sh1addUw => (low << 1).wrapping_add(b),
        Sh2addUw => (low << 2).wrapping_add(b),
        Sh3addUw => (low << 3).wrapping_add(b),
        SllUw => low << (b & 63),

        Andn => a & !b,
        Orn => a | !b,
        Xnor => !(a ^ b),
        Clz => a.leading_zeros().into(),
        Clzw => wa.leading_zeros().into(),
        Ctz => a.trailing_zeros().into(),
        Ctzw => wa.trailing_zeros().into(),
        Cpop => a.count_ones().into(),
        Cpopw => wa.count_ones().into(),
        Max => sa.max(sb) as u64,
        Maxu => a.max(b),
        Min => sa.min(sb) as u64,
        Minu => a.min(b),
        SextB => a as i8 as u64,
        SextH => a as i16 as u64,
        ZextH => a & 0xffff,
        Rol => a.rotate_left(b as u32 & 63),
        Rolw => word(wa.rotate_left(wb & 31).into()),
        Ror => a.rotate_right(b as u32 & 63),
        Rorw => word(wa.rotate_right(wb & 31).into()),
        OrcB => or_combine_bytes(a),
        Rev8 => a.swap_bytes(),

        Bclr => a & !(1 << (b & 63)),
        Bext => a >> (b & 63) & 1,
        Binv => a ^ 1 << (b & 63),
        Bset => a | 1 << (b & 63),
        _ => 0,
    }
}

/// Sets all bits of each byte that is not zero.
#[inline(always)]
fn or_combine_bytes(a: u64) -> u64 {
    // The lowest bit of each byte collects whether the byte is non-zero, and then fills the byte.
    let collected = a | a >> 4 & 0x0f0f_0f0f_0f0f_0f0f;
    let collected = collected | collected >> 2 & 0x3f3f_3f3f_3f3f_3f3f;
    let collected = collected | collected >> 1 & 0x7f7f_7f7f_7f7f_7f7f;
    (collected & 0x0101_0101_0101_0101) * 0xff
}

/// True if a branch with these operands is taken. `op` is one of the six branches.
#[inline(always)]
pub fn is_taken(op: Op, a: u64, b: u64) -> bool {
    match op {
        Op::Beq => a == b,
        Op::Bne => a != b,
        Op::Blt => (a as i64) < b as i64,
        Op::Bge => a as i64 >= b as i64,
        Op::Bltu => a < b,
        _ => a >= b,
    }
}
