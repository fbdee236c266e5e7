//! Registers of a slice: the single list from which the RTL's package, the software documentation and lockstep are
//! derived.
//!
//! A register has 64 bits. Counters count from reset, or from the last time they were cleared.

use crate::rom::{Rom, MAX_CIRCUITS, MAX_EVENTS, MAX_SENDS};
use std::fmt::Write;

/// Size of a slice's register block in bytes: one AXI page.
pub const BYTES: u64 = 4096;
/// Address of the first counter.
pub const COUNTERS: u64 = 0x400;
/// Number of counter positions.
pub const COUNTER_POSITIONS: usize = 128;

/// A register, or an array of registers of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Register {
    /// Name in the package.
    pub name: &'static str,
    /// Address of the first register, in bytes.
    pub address: u64,
    /// Number of registers.
    pub count: usize,
    /// True if software may write the register.
    pub writable: bool,
    /// Meaning of its value, for the documentation.
    pub meaning: &'static str,
}

/// Returns a single register.
const fn plain(
    name: &'static str,
    address: u64,
    writable: bool,
    meaning: &'static str,
) -> Register {
    Register {
        name,
        address,
        count: 1,
        writable,
        meaning,
    }
}

/// Returns an array of `count` counters, from position `position` on.
const fn counters(
    name: &'static str,
    position: u64,
    count: usize,
    meaning: &'static str,
) -> Register {
    Register {
        name,
        address: COUNTERS + 8 * position,
        count,
        writable: false,
        meaning,
    }
}

/// Version of this list. Software compares it with the lower half of `Identity`.
pub const VERSION: u64 = 3;
/// Value of `Identity`: `COHK` in ASCII, and the version of this list.
pub const IDENTITY: u64 = 0x434f_484b << 32 | VERSION;

/// Reasons of a rejection in `FirstWrong`, with their values; `home_pkg::reject_e` has the same.
const REJECTION_REASONS: &[(u64, &str)] = &[
    (1, "message number of another virtual circuit"),
    (2, "message of a non-existent remote"),
    (3, "message for a line of another slice"),
    (4, "undefined local operation"),
    (5, "local operation on a line of another slice"),
    (6, "unlock of a line of another slice"),
    (7, "message whose number of beats is not that of its type"),
    (8, "memory read beat without a read in flight"),
    (9, "memory read response with more or fewer beats than a line"),
    (
        10,
        "memory write response without a write in flight, or before memory has accepted the write's address and data",
    ),
];

/// All registers, in order of address.
#[rustfmt::skip]
pub const REGISTERS: &[Register] = &[
    plain("Identity", 0x00, false, "`COHK` in the upper half, the version of this list in the lower half"),
    plain("About", 0x08, false, "number of messages to the home [7:0], local operations [15:8], circuits to the home [23:16] and circuits to the remote [31:24]; line size in bytes [47:32]"),
    plain("Shape", 0x10, false, "number of units [15:0]; ways of the directory [23:16]; width of its set index [31:24] and tag [39:32] in bits; memory reads [47:40] and waiting requests [55:48] per unit; slice number [63:56]"),
    plain("Control", 0x18, true, "bit 0: counters are enabled, 1 after reset; bit 1: writing 1 clears all counters, `FirstWrong` and `FirstImpossible`, reads as 0"),
    plain("Status", 0x20, false, "bit 0: no transaction is outstanding; bit 1: the directory has been initialised after reset, and the units accept events"),
    plain("FirstWrong", 0x28, false, "first input rejected at a port, 0 if none: reason [59:56], see [below](#rejection-reasons); circuit [49:48]; number of the message or local operation [47:40]; remote [39:36]; line, or AXI ID of a memory response [35:0]"),
    plain("FirstImpossible", 0x30, false, "first event without a ROM row, 0 if none: valid [63]; unit [59:52]; state of the line [51:44] and event [43:36], both by their numbers in the generated package; line [35:0]"),
    counters("Events", 0, MAX_EVENTS, "events by their number in the generated package: messages passed to units, local operations and unlocks accepted from their ports, memory read responses (`memory_data`) and memory write responses (`memory_done`)"),
    counters("Sent", 64, MAX_SENDS, "messages to the remote, by message number"),
    counters("RxWaitsUnit", 80, MAX_CIRCUITS, "by circuit to the home: cycles in which a beat was valid but not ready, because its unit has an outstanding message of this virtual circuit"),
    counters("RxWaitsSlot", 84, MAX_CIRCUITS, "by circuit to the home: cycles in which a beat was valid but not ready, because no data buffer was free"),
    counters("TxWaits", 88, MAX_CIRCUITS, "by circuit to the remote: cycles in which a beat was valid but not accepted"),
    counters("ArWaits", 92, 1, "cycles in which a memory read address (`AR`) was valid but not accepted"),
    counters("AwWaits", 93, 1, "cycles in which a memory write address (`AW`) was valid but not accepted"),
    counters("WWaits", 94, 1, "cycles in which a memory write data beat (`W`) was valid but not accepted"),
    counters("LocalWaits", 95, 1, "cycles in which a local operation was valid but not accepted"),
    counters("UnlockWaits", 96, 1, "cycles in which an unlock was valid but not accepted"),
    counters("AnswerWaits", 97, 1, "cycles in which a response to the device was valid but not accepted"),
    counters("StallsLine", 98, 1, "events stalled because their line has an outstanding transaction; each attempt counts"),
    counters("StallsRoom", 99, 1, "events stalled because the directory set of their line is full; each attempt counts"),
    counters("StallsRead", 100, 1, "events stalled because all memory reads of the unit are in flight; each attempt counts"),
    counters("StallsWrite", 101, 1, "events stalled because all memory writes of the unit are in flight, or reserved for a response; each attempt counts"),
    counters("StallsLocal", 102, 1, "events stalled because the unit is at its limit of outstanding local operations or locks; each attempt counts"),
    counters("StallsSend", 103, 1, "events stalled because an earlier message that needs no memory operation is still queued in the unit; each attempt counts"),
    counters("Evictions", 104, 1, "lines that the directory recalled from the remote to free an entry"),
    counters("ChangesLost", 105, 1, "changes of the remote's permissions that were not reported, because earlier reports were still waiting at the port `change`"),
    counters("Busy", 106, 1, "occupancy: units with an outstanding transaction, summed over all cycles"),
    counters("Refused", 107, 1, "local operations and unlocks that were refused"),
    counters("Changes", 108, 1, "reported changes of the remote's permissions that were accepted at the port `change`"),
    counters("Cycles", 109, 1, "cycles in which counters were enabled"),
    counters("WrongMessages", 110, MAX_CIRCUITS, "by circuit to the home: messages dropped because they belong to another circuit, or come from a non-existent remote"),
    counters("WrongLines", 114, MAX_CIRCUITS, "by circuit to the home: messages dropped because their line belongs to another slice"),
    counters("WrongOperations", 118, 1, "local operations refused because their number is undefined"),
    counters("WrongDeviceLines", 119, 1, "local operations and unlocks refused because their line belongs to another slice"),
    counters("Impossible", 120, 1, "events dropped or refused because the ROM has no row for them"),
    counters("WrongLengths", 121, MAX_CIRCUITS, "by circuit to the home: messages dropped because their number of beats is not that of their type"),
    counters("WrongReads", 125, 1, "memory read beats dropped because no such read is in flight"),
    counters("WrongBursts", 126, 1, "memory reads whose response had more or fewer beats than a line; the data are lost, and the requester waits until the next reset"),
    counters("WrongWrites", 127, 1, "memory write responses dropped because no such write is in flight, or memory had not accepted the write's address and all of its data; in the second case, the write completes with the next response"),
];

/// Returns the register with this name. In a constant, an unknown name is a compile-time error.
///
/// # Panics
/// The name is unknown.
pub const fn register(name: &str) -> Register {
    let mut index = 0;
    while index < REGISTERS.len() {
        if equal_bytes(REGISTERS[index].name.as_bytes(), name.as_bytes()) {
            return REGISTERS[index];
        }
        index += 1;
    }
    panic!("the name is not one of the list")
}

/// Compares two strings in a constant; `==` is not available there.
const fn equal_bytes(left: &[u8], right: &[u8]) -> bool {
    let mut index = 0;
    while index < left.len() && index < right.len() && left[index] == right[index] {
        index += 1;
    }
    index == left.len() && index == right.len()
}

/// Returns the position of the first counter with this name. In a constant, an unknown name is a compile-time error.
///
/// # Panics
/// The name is unknown, or is not that of a counter.
pub const fn counter_position(name: &str) -> usize {
    (register(name).address - COUNTERS) as usize / 8
}

/// True if a home with this ROM has the register, or element `number` of the array. Accesses to absent registers return
/// an error.
pub fn is_present(rom: &Rom, register: &Register, number: usize) -> bool {
    number
        < match register.name {
            "Events" => rom.events.len(),
            "Sent" => rom.sends.len(),
            "RxWaitsUnit" | "RxWaitsSlot" | "WrongMessages" | "WrongLines" | "WrongLengths" => {
                rom.rx.len()
            }
            "TxWaits" => rom.tx.len(),
            _ => 1,
        }
}

/// Returns the text of `hardware/rtl/registers_pkg.sv`.
pub fn package() -> String {
    let mut text = String::from(
        "// Registers of a slice, and positions of its counters.
//
// Generated from crates/rtl/src/registers.rs by its tests; hardware/registers.md describes them. Do not edit.

package registers_pkg;
",
    );
    let _ = writeln!(
        text,
        "  localparam int unsigned AddrWidth = {};  // of AXI-Lite, in bytes; a register has 64 bits\n",
        BYTES.ilog2()
    );
    text += "  // Registers other than counters.\n";
    for register in REGISTERS
        .iter()
        .filter(|register| register.address < COUNTERS)
    {
        let name = register.name;
        let _ = writeln!(
            text,
            "  localparam logic [AddrWidth-1:0] {name:15} = 12'h{:03x};",
            register.address
        );
    }
    let _ = writeln!(
        text,
        "  localparam logic [63:0]          IdentityValue   = 64'h{IDENTITY:016x};\n"
    );
    let _ = writeln!(
        text,
        "  // Counters: address of the first, number of positions, and position of each.
  localparam logic [AddrWidth-1:0] Counters = 12'h{COUNTERS:03x};
  localparam int unsigned          Places   = {COUNTER_POSITIONS};
"
    );
    for register in REGISTERS
        .iter()
        .filter(|register| register.address >= COUNTERS)
    {
        let position = (register.address - COUNTERS) / 8;
        let comment = match register.count {
            1 => String::new(),
            count => format!("  // and {} more", count - 1),
        };
        let _ = writeln!(
            text,
            "  localparam int unsigned {:16} = {position};{comment}",
            register.name
        );
    }
    text += "endpackage : registers_pkg\n";
    text
}

/// Returns the text of `hardware/registers.md`.
pub fn document() -> String {
    let mut text = format!(
        "# Registers of a slice

This page describes version {VERSION} of the registers with which software identifies a slice, reads its counters and diagnoses errors.
Each slice has an AXI-Lite port with 64 bits of data and a page of 4 KiB; the pages of the slices may be anywhere in an address map.
A read returns all 64 bits of a register at once; the three lowest bits of an address are ignored.

A read of an unlisted address or of a counter that the protocol does not use, and a write to a read-only register, return `SLVERR` and have no effect.

A read of a counter returns a value that it had between the address and the response; the response arrives within 140 cycles.
To read all counters at the same time, disable counting first (`Control`).
Events within a few cycles of clearing or disabling the counters may or may not be counted.

Generated from `crates/rtl/src/registers.rs` by its tests.

| Address | Register | Access | Meaning |
|---|---|---|---|
",
    );
    for register in REGISTERS {
        let name = match register.count {
            1 => format!("`{}`", register.name),
            count => format!("`{}[0]` to `[{}]`", register.name, count - 1),
        };
        let access = if register.writable {
            "read, write"
        } else {
            "read"
        };
        let _ = writeln!(
            text,
            "| `0x{:03x}` | {name} | {access} | {} |",
            register.address, register.meaning
        );
    }
    text += "
## Rejection reasons

Field `reason` of `FirstWrong`.
If several inputs are rejected in one cycle, the register keeps one of them, in this order of priority: messages by circuit number, memory reads, memory writes, local operations, unlocks.

| Value | Rejected input |
|---|---|
";
    for (value, reason) in REJECTION_REASONS {
        let _ = writeln!(text, "| {value} | {reason} |");
    }
    text
}
