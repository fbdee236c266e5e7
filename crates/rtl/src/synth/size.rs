//! What a design takes of an FPGA.

use std::ops::AddAssign;

/// What a design takes of an FPGA.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Size {
    /// Look-up tables, those of distributed memories included. Each LUT counts for itself:
    /// two small ones that placement would put into one site are two.
    pub lut: u64,
    /// Flip-flops.
    pub ff: u64,
    /// Halves of memory blocks of 36 Kbit.
    pub bram18: u64,
    /// Memory blocks of 288 Kbit.
    pub uram: u64,
}

impl Size {
    /// Memory blocks of 36 Kbit; a half counts as a half.
    pub fn bram36(self) -> f64 {
        self.bram18 as f64 / 2.0
    }

    /// The same several times.
    #[must_use]
    pub fn times(self, count: u64) -> Size {
        Size {
            lut: self.lut * count,
            ff: self.ff * count,
            bram18: self.bram18 * count,
            uram: self.uram * count,
        }
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Size) {
        self.lut += other.lut;
        self.ff += other.ff;
        self.bram18 += other.bram18;
        self.uram += other.uram;
    }
}
