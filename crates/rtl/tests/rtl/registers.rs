//! Consistency of the registers: the derived files match the list, and addresses do not overlap.

use cohkit_rtl::registers::{document, package, BYTES, COUNTERS, COUNTER_POSITIONS, REGISTERS};
use expect_test::expect_file;

/// Both derived files equal those that the list of registers generates.
#[test]
fn package_and_documentation_list_the_same_registers() {
    expect_file!["../../../../hardware/rtl/registers_pkg.sv"].assert_eq(&package());
    expect_file!["../../../../hardware/registers.md"].assert_eq(&document());
}

/// Registers are aligned and in the order of their addresses, counters apart from the others, all in the window.
#[test]
fn registers_do_not_overlap() {
    let mut next_address = 0;
    for register in REGISTERS {
        assert!(register.address >= next_address, "{}", register.name);
        assert!(register.address.is_multiple_of(8), "{}", register.name);
        next_address = register.address + 8 * register.count as u64;
        // Counters and other registers have separate address ranges.
        assert_eq!(register.address >= COUNTERS, next_address > COUNTERS);
    }
    assert!(next_address <= COUNTERS + 8 * COUNTER_POSITIONS as u64 && next_address <= BYTES);
}
