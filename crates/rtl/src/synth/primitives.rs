//! What the primitives of the FPGA cost, and which of their pins lie on a path.

use super::size::Size;

/// A primitive, as far as size and paths are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Primitive {
    pub size: Size,
    pub kind: Kind,
}

/// How signals go through a primitive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// From every input to every output, through so many levels.
    Logic(u32),
    /// It keeps what its inputs say, and its outputs begin new paths.
    Register,
    /// The same for a memory block, whose outputs are late.
    Memory,
    /// A memory made of LUTs: what is written is kept; an address is looked up through one level.
    Distributed,
}

impl Primitive {
    /// The primitive of this name; `None` if it is not known.
    pub fn named(name: &str) -> Option<Primitive> {
        let (lut, kind) = match name {
            // The muxes of a slice join its own LUTs and are no levels.
            "MUXF7" | "MUXF8" | "MUXF9" | "BUFG" | "GND" | "VCC" => (0, Kind::Logic(0)),
            "LUT1" | "LUT2" | "LUT3" | "LUT4" | "LUT5" | "LUT6" | "LUT6_2" | "INV" => {
                (1, Kind::Logic(1))
            }
            // A carry chain costs a level in each of its cells. The LUTs before it are counted by themselves.
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

/// Whether a pin is a clock's: no path of data ends there.
pub(super) fn is_clock(pin: &str) -> bool {
    matches!(
        pin,
        "C" | "CLK" | "WCLK" | "CLKARDCLK" | "CLKBWRCLK" | "CLKA" | "CLKB"
    )
}

/// Whether a pin of a memory made of LUTs addresses what is read at an output.
/// Of several ports one is also written by, so that its address is that of every write.
pub(super) fn addresses(pin: &str, output: &str) -> bool {
    if let Some(port) = pin.strip_prefix("ADDR") {
        return output.strip_prefix("DO") == Some(port);
    }
    match output {
        "DPO" => pin.starts_with("DPRA"),
        _ => pin.starts_with('A'),
    }
}
