//! Cost and timing behaviour of the FPGA's primitives.

use super::size::Size;

/// Properties of a primitive for size and paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Primitive {
    /// FPGA resources of one instance.
    pub size: Size,
    /// Timing behaviour.
    pub kind: Kind,
}

/// Timing behaviour of a primitive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Combinational from every input to every output, with this number of levels.
    Logic(u32),
    /// Ends paths at its inputs and starts paths at its outputs.
    Register,
    /// A memory block: ends and starts paths as a register does, but its outputs have a higher delay.
    Memory,
    /// A memory made of LUTs: writes end paths; reads are combinational with one level.
    Distributed,
}

impl Primitive {
    /// Returns the primitive with this name; `None` if it is unknown.
    pub fn named(name: &str) -> Option<Primitive> {
        let (lut, kind) = match name {
            // The muxes of a slice combine its own LUTs and add no level.
            "MUXF7" | "MUXF8" | "MUXF9" | "BUFG" | "GND" | "VCC" => (0, Kind::Logic(0)),
            "LUT1" | "LUT2" | "LUT3" | "LUT4" | "LUT5" | "LUT6" | "LUT6_2" | "INV" => {
                (1, Kind::Logic(1))
            }
            // Each cell of a carry chain is one level. The LUTs before it are counted separately.
            "CARRY4" | "CARRY8" => (0, Kind::Logic(1)),
            "FDRE" | "FDSE" | "FDCE" | "FDPE" => {
                let size = Size {
                    ff: 1,
                    ..Size::default()
                };
                return Some(Primitive {
                    size,
                    kind: Kind::Register,
                });
            }
            "RAMB18E2" | "RAMB36E2" | "URAM288" => {
                let size = Size {
                    bram18: match name {
                        "RAMB18E2" => 1,
                        "RAMB36E2" => 2,
                        _ => 0,
                    },
                    uram: u64::from(name == "URAM288"),
                    ..Size::default()
                };
                return Some(Primitive {
                    size,
                    kind: Kind::Memory,
                });
            }
            "SRL16E" | "SRLC32E" | "RAM32X1S" | "RAM64X1S" => (1, Kind::Distributed),
            "RAM32X1D" | "RAM64X1D" | "RAM128X1S" => (2, Kind::Distributed),
            "RAM32M" | "RAM64M" | "RAM128X1D" | "RAM256X1S" => (4, Kind::Distributed),
            "RAM32M16" | "RAM64M8" | "RAM256X1D" | "RAM512X1S" => (8, Kind::Distributed),
            _ => return None,
        };
        let size = Size {
            lut,
            ..Size::default()
        };
        Some(Primitive { size, kind })
    }
}

/// True if a pin is a clock, at which no data path ends.
pub(super) fn is_clock(pin: &str) -> bool {
    matches!(
        pin,
        "C" | "CLK" | "WCLK" | "CLKARDCLK" | "CLKBWRCLK" | "CLKA" | "CLKB"
    )
}

/// True if a pin of a memory made of LUTs addresses the read port of an output.
/// In a memory with several ports, one port is shared with writes; its address also addresses all writes.
pub(super) fn addresses(pin: &str, output: &str) -> bool {
    if let Some(port) = pin.strip_prefix("ADDR") {
        return output.strip_prefix("DO") == Some(port);
    }
    match output {
        "DPO" => pin.starts_with("DPRA"),
        _ => pin.starts_with('A'),
    }
}
