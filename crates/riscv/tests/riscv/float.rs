//! Floating-point results compared with a library, with the host, and with each other.

use cohkit_base::random::SplitMix64;
use cohkit_riscv::float::{Format, Rounding, DOUBLE, INEXACT, OVERFLOW, SINGLE, UNDERFLOW};
use cohkit_riscv::table::row;
use cohkit_riscv::{Extensions, FlatMemory, Hart};
use rustc_apfloat::ieee::{Double, Single};
use rustc_apfloat::{Float, FloatConvert, Round, Status, StatusAnd};

/// Rounding modes of RISC-V with those of the library.
const MODES: [(Rounding, Round); 5] = [
    (Rounding::NearestEven, Round::NearestTiesToEven),
    (Rounding::Zero, Round::TowardZero),
    (Rounding::Down, Round::TowardNegative),
    (Rounding::Up, Round::TowardPositive),
    (Rounding::NearestAway, Round::NearestTiesToAway),
];

/// A random number of any class. Fractions are often mostly zeroes or ones; exponents are often near a bound or the
/// middle.
fn random_number(random: &mut SplitMix64, fraction: u32, exponent: u32) -> u64 {
    let (random_bits, kind) = (random.next_u64(), random.next_u64());
    let bits = match kind & 3 {
        0 => random_bits,
        1 => random_bits & (u64::MAX << (kind >> 8 & 63)),
        2 => random_bits | ((1 << (kind >> 8 & 63)) - 1),
        _ => kind >> 8 & 7,
    } & ((1 << fraction) - 1);
    let largest = (1_u64 << exponent) - 1;
    let offset = kind >> 16 & 31;
    let exponent = match kind >> 4 & 7 {
        0 => offset / 16,
        1 => largest - offset / 16,
        2 => offset + fraction as u64 / 2,
        3 | 4 => largest / 2 + offset - 16,
        5 => largest / 2 + offset + fraction as u64 - 16,
        _ => (kind >> 24) & largest,
    };
    bits | exponent << fraction | (kind >> 63) << (fraction + largest.count_ones())
}

/// Converts the library's flags to those of RISC-V.
fn flags(status: Status) -> u8 {
    // Pairs of the library's flag and RISC-V's: they number the bits of the flags in opposite orders.
    let bits = [
        (Status::INVALID_OP, 16),
        (Status::DIV_BY_ZERO, 8),
        (Status::OVERFLOW, 4),
        (Status::UNDERFLOW, 2),
        (Status::INEXACT, 1),
    ];
    bits.iter()
        .filter(|bit| status.contains(bit.0))
        .map(|bit| bit.1)
        .sum()
}

/// Flags that the library fails to report for a result. It misses underflow if the result is the smallest normal
/// number, and overflow if the result is the largest number. The tests against QEMU cover these cases.
fn unreported_flags(result: u64, fraction: u32, exponent: u32) -> u8 {
    match result & ((1 << (fraction + exponent)) - 1) {
        magnitude if magnitude == 1 << fraction => UNDERFLOW,
        magnitude if magnitude == (((1 << exponent) - 1) << fraction) - 1 => OVERFLOW,
        _ => 0,
    }
}

/// Compares results and flags of 100,000 random operations with the library. `fraction` and `exponent` are the widths
/// of the format's fields, in bits.
fn check_arithmetic<F: Float + std::fmt::Debug>(
    format: Format,
    fraction: u32,
    exponent: u32,
    seed: u64,
) {
    let mut random = SplitMix64::new(seed);
    for _ in 0..100_000 {
        let [a, b, c] = [(); 3].map(|()| random_number(&mut random, fraction, exponent));
        let [fa, fb, fc] = [a, b, c].map(|n| F::from_bits(n.into()));
        let (mode, round) = MODES[(random.next_u64() % 5) as usize];
        let check = |name: &str,
                     library_result: StatusAnd<F>,
                     crate_operation: &dyn Fn(&mut u8) -> u64| {
            let mut raised = 0;
            let crate_result = crate_operation(&mut raised);
            let result = if library_result.value.is_nan() {
                format.nan().into()
            } else {
                library_result.value.to_bits()
            };
            let ignored_flags = unreported_flags(crate_result, fraction, exponent);
            let is_same = result == crate_result.into()
                && flags(library_result.status) & !ignored_flags == raised & !ignored_flags;
            assert!(is_same, "{name} of {a:#x} {b:#x} {c:#x} {mode:?}: {library_result:x?} by the library, {crate_result:#x} and {raised:#x} by ours");
        };
        check("+", fa.add_r(fb, round), &|f| format.add(a, b, mode, f));
        check("-", fa.sub_r(fb, round), &|f| {
            format.subtract(a, b, mode, f)
        });
        check("*", fa.mul_r(fb, round), &|f| {
            format.multiply(a, b, mode, f)
        });
        check("/", fa.div_r(fb, round), &|f| format.divide(a, b, mode, f));
        let is_zero_times_infinity =
            (fa.is_zero() && fb.is_infinite()) || (fa.is_infinite() && fb.is_zero());
        if !is_zero_times_infinity {
            check("* +", fa.mul_add_r(fb, fc, round), &|f| {
                format.multiply_add(a, b, c, mode, f)
            });
        }
    }
}

/// Sums, differences, products, quotients and fused operations in single and double precision.
#[test]
fn arithmetic_matches_the_library_in_every_rounding_mode() {
    check_arithmetic::<Single>(SINGLE, 23, 8, 1);
    check_arithmetic::<Double>(DOUBLE, 52, 11, 2);
}

/// Conversions of random numbers between both precisions, and to integers.
#[test]
fn conversions_match_the_library() {
    let mut random = SplitMix64::new(3);
    for _ in 0..100_000 {
        let a = random_number(&mut random, 52, 11);
        let (mode, round) = MODES[(random.next_u64() % 5) as usize];
        let (mut raised, mut loses_info) = (0, false);
        let library_result: StatusAnd<Single> =
            Double::from_bits(a.into()).convert_r(round, &mut loses_info);
        let crate_result = DOUBLE.convert(a, SINGLE, mode, &mut raised);
        if !library_result.value.is_nan() {
            let mask = !unreported_flags(crate_result, 23, 8);
            assert_eq!(
                (
                    library_result.value.to_bits(),
                    flags(library_result.status) & mask
                ),
                (crate_result.into(), raised & mask),
                "{a:#x} {mode:?}"
            );
        }
        let integer = random.next_u64() as i64 >> (random.next_u64() & 63);
        let library_result = Single::from_i128_r(integer.into(), round);
        let mut raised = 0;
        let crate_result = SINGLE.from_integer(integer.into(), mode, &mut raised);
        assert_eq!(
            (library_result.value.to_bits(), flags(library_result.status)),
            (crate_result.into(), raised),
            "{integer} {mode:?}"
        );
        let mut is_exact = false;
        let library_result = Double::from_bits(a.into()).to_i128_r(64, round, &mut is_exact);
        let mut raised = 0;
        let crate_result =
            DOUBLE.to_integer(a, i64::MIN.into(), i64::MAX.into(), mode, &mut raised);
        if !Double::from_bits(a.into()).is_nan() {
            assert_eq!(
                (library_result.value, flags(library_result.status)),
                (crate_result, raised),
                "{a:#x} {mode:?}"
            );
        }
    }
}

/// A correctly rounded root is the number whose square is nearest, which exact squares decide.
#[test]
fn square_roots_match_the_host_in_every_rounding_mode() {
    let mut random = SplitMix64::new(4);
    for _ in 0..100_000 {
        let a = random_number(&mut random, 52, 11) & !(1 << 63);
        let mut raised = 0;
        let root = DOUBLE.square_root(a, Rounding::NearestEven, &mut raised);
        let host = f64::from_bits(a).sqrt();
        if host.is_nan() {
            continue;
        }
        assert_eq!(root, host.to_bits(), "{a:#x}");
        let [down, up, zero] = [Rounding::Down, Rounding::Up, Rounding::Zero]
            .map(|mode| DOUBLE.square_root(a, mode, &mut 0));
        let is_exact = raised & INEXACT == 0;
        assert_eq!((up - down, zero), (u64::from(!is_exact), down), "{a:#x}");
        assert!(down == root || up == root, "{a:#x}");
        if a != 0 && host.is_finite() {
            // The remainder of the lower neighbour is not negative, that of the upper one not positive.
            let remainder = |root: u64| {
                // Scaled to avoid subnormal numbers.
                let scale = f64::from_bits(if a < 1 << 60 { 1529 << 52 } else { 1023 << 52 });
                let (r, a) = (
                    f64::from_bits(root) * scale,
                    f64::from_bits(a) * scale * scale,
                );
                let negated = (-r).to_bits();
                f64::from_bits(DOUBLE.multiply_add(
                    negated,
                    r.to_bits(),
                    a.to_bits(),
                    Rounding::NearestEven,
                    &mut 0,
                ))
            };
            assert!(remainder(down) >= 0.0 && remainder(up) <= 0.0, "{a:#x}");
        }
    }
}

/// The engine uses host arithmetic once the inexact flag is set, so results and flags must not depend on earlier flags.
#[test]
fn results_do_not_depend_on_earlier_flags() {
    let names = [
        "fadd", "fsub", "fmul", "fdiv", "fsqrt", "fmadd", "fmsub", "fnmsub", "fnmadd",
    ];
    let (mut random, mut hart, mut memory) = (
        SplitMix64::new(5),
        Hart::new(0, Extensions::HOST),
        FlatMemory::new(0, 4),
    );
    for (wide, fraction, exponent) in [("s", 23, 8), ("d", 52, 11)] {
        for name in names {
            let row = row(&format!("{name}.{wide}")).expect("a known instruction");
            let word = row.encode(13 << 7 | 10 << 15 | 11 << 20 | 12 << 27);
            memory
                .bytes_mut(0, 4)
                .expect("the word is in memory")
                .copy_from_slice(&word.to_le_bytes());
            for _ in 0..20_000 {
                let operands = [(); 3].map(|()| random_number(&mut random, fraction, exponent));
                for (register, operand) in (10..).zip(operands) {
                    let nan_boxing = if wide == "s" { 0xffff_ffff << 32 } else { 0 };
                    hart.set_f(register, operand | nan_boxing);
                }
                let mut result_with_flags = |flags: u8| {
                    (hart.pc, hart.csrs.fflags) = (0, flags);
                    hart.step(&mut memory).expect("the instruction executes");
                    (hart.f(13), hart.csrs.fflags | INEXACT)
                };
                assert_eq!(
                    result_with_flags(0),
                    result_with_flags(INEXACT),
                    "{name}.{wide} of {operands:x?}"
                );
            }
        }
    }
}
