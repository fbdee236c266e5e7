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

/// Value of `Identity`: `COHK`, and the version of this list.
pub const IDENTITY: u64 = 0x434f_484b << 32 | 3;

/// All registers, in order of address.
#[rustfmt::skip]
pub const REGISTERS: &[Register] = &[
    plain("Identity", 0x00, false, "`COHK` in the upper half; the version of this list, 3, in the lower"),
    plain("About", 0x08, false, "messages to the home [7:0], local operations [15:8], circuits to the home [23:16] and to the remote [31:24], bytes of a line [47:32]"),
    plain("Shape", 0x10, false, "units [15:0], ways [23:16], bits of a set's number [31:24] and of a tag [39:32], reads [47:40] and waiting requests [55:48] of a unit, the slice's number [63:56]"),
    plain("Control", 0x18, true, "bit 0: count, 1 after reset; bit 1: all counters, `FirstWrong` and `FirstImpossible` become 0, read as 0"),
    plain("Status", 0x20, false, "bit 0: nothing is outstanding; bit 1: the directory was emptied after reset, and units work"),
    plain("FirstWrong", 0x28, false, "the first input refused at a port, 0 if none; reason [59:56]: 1 a message on the wrong virtual circuit, 2 a message of a non-existent remote, 3 one about a line that is not the slice's, 4 a non-existent local operation, 5 one on a line that is not the slice's, 6 an unlock of such a line, 7 a message with more or fewer beats than its number says, 8 a beat of memory for a read that is not in flight, 9 a read that memory answered with more or fewer beats than a line has, 10 an answer of memory to a write that is not in flight or has not all left; circuit [49:48], number of the message or the operation [47:40], remote [39:36], line [35:0], or of an answer of memory its AXI ID. Of things that came in one cycle the circuits go first, by their number, then reads, writes, local operations and unlocks"),
    plain("FirstImpossible", 0x30, false, "the first event for which the ROM had no row, 0 if there was none: 1 [63], unit [59:52], the line's state [51:44] and the event [43:36] by their numbers in the printed package, line [35:0]"),
    counters("Events", 0, MAX_EVENTS, "by the event's number in the printed package: messages handed to units, local operations and unlocks taken from their ports for units, answers of memory to reads (`memory_data`) and to writes (`memory_done`)"),
    counters("Sent", 64, MAX_SENDS, "messages to the remote, by their number"),
    counters("RxWaitsUnit", 80, MAX_CIRCUITS, "by circuit to the home: cycles in which a beat was valid but not ready, because its unit has an outstanding message of this virtual circuit"),
    counters("RxWaitsSlot", 84, MAX_CIRCUITS, "the same, because there was no room for the bytes"),
    counters("TxWaits", 88, MAX_CIRCUITS, "by circuit to the remote: cycles in which a beat was offered and not taken"),
    counters("ArWaits", 92, 1, "cycles in which the address of a read of memory was offered and not taken"),
    counters("AwWaits", 93, 1, "the same of the address of a write"),
    counters("WWaits", 94, 1, "the same of the bytes of a write"),
    counters("LocalWaits", 95, 1, "cycles in which a local operation was offered and not taken"),
    counters("UnlockWaits", 96, 1, "the same of an unlock"),
    counters("AnswerWaits", 97, 1, "cycles in which an answer to the device was offered and not taken"),
    counters("StallsLine", 98, 1, "events that a unit looked up and stalled, because their line has an outstanding transaction; each attempt counts"),
    counters("StallsRoom", 99, 1, "the same, because the set of the directory is full"),
    counters("StallsRead", 100, 1, "because all reads of the unit are in flight"),
    counters("StallsWrite", 101, 1, "because all writes of the unit are in flight, or a response goes first"),
    counters("StallsLocal", 102, 1, "because the unit is at its limit of outstanding local operations or locks"),
    counters("StallsSend", 103, 1, "because a message that left at once has not yet left the unit"),
    counters("Evictions", 104, 1, "lines that the directory took from the remote to make room"),
    counters("ChangesLost", 105, 1, "changes of the remote's permissions that were not reported, because earlier ones were still waiting at their port"),
    counters("Busy", 106, 1, "occupancy: units with an outstanding transaction, summed over all cycles"),
    counters("Refused", 107, 1, "local operations and unlocks that were refused"),
    counters("Changes", 108, 1, "changes of the remote's permissions that were taken from their port"),
    counters("Cycles", 109, 1, "cycles"),
    counters("WrongMessages", 110, MAX_CIRCUITS, "by circuit to the home: messages that were dropped, because they do not belong to it, or come from a non-existent remote"),
    counters("WrongLines", 114, MAX_CIRCUITS, "the same, because their line is not the slice's"),
    counters("WrongOperations", 118, 1, "local operations that were refused, because there are none of their number"),
    counters("WrongDeviceLines", 119, 1, "local operations and unlocks that were refused, because their line is not the slice's"),
    counters("Impossible", 120, 1, "events that were dropped, or refused, because the ROM has no row for them"),
    counters("WrongLengths", 121, MAX_CIRCUITS, "by circuit to the home: messages that were dropped, because they have more or fewer beats than their number says"),
    counters("WrongReads", 125, 1, "beats of memory that were dropped, because they are of no read in flight"),
    counters("WrongBursts", 126, 1, "reads that memory answered with more or fewer beats than a line has: the line is lost, and its requester waits forever"),
    counters("WrongWrites", 127, 1, "answers of memory that were dropped, because they are to no write in flight, or to one that has not all left; such a write is not done before it is answered again"),
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
        "// The registers of a slice, and the places of its counters.
//
// Printed from crates/rtl/src/registers.rs by its tests; hardware/registers.md describes them. Do not edit.

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
        "  // Counters: the address of the first, and the places of all.
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
    let mut text = String::from(
        "# Registers of a slice

Each slice has an AXI-Lite port with 64 bits of data and a page of 4 KiB; the slices' pages may be anywhere in an address map.
A register is read as a whole, so that no counter tears; the three lowest bits of an address do not matter.
Every other address than those below, a counter that the protocol has no use for, and a write to what is only read are answered with `SLVERR`, and change nothing.
A counter's value is that of a moment between the address and the answer, which comes within 140 cycles.
To see all counters at one moment, stop counting and then read them.
What happens within a few cycles of clearing or stopping may be counted or not.

Printed from `crates/rtl/src/registers.rs` by its tests.

| Address | Register | | Meaning |
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
    text
}
