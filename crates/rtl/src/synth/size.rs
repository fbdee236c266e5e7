//! FPGA resources of a design.

use std::ops::AddAssign;

/// FPGA resources of a design.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Size {
    /// Number of look-up tables, including those of distributed memories. Each LUT counts separately, also where
    /// placement would combine two small ones in one site.
    pub lut: u64,
    /// Number of flip-flops.
    pub ff: u64,
    /// Number of 18 Kbit halves of 36 Kbit memory blocks.
    pub bram18: u64,
    /// Number of 288 Kbit memory blocks.
    pub uram: u64,
}

impl Size {
    /// Returns the number of 36 Kbit memory blocks; a half counts as 0.5.
    pub fn bram36(self) -> f64 {
        self.bram18 as f64 / 2.0
    }

    /// Returns the resources multiplied by `count`.
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
