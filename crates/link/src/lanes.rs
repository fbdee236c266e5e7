//! Rates from lanes to words, in exact arithmetic.

/// A ratio of natural numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Numerator.
    pub numerator: u128,
    /// Denominator; not 0.
    pub denominator: u128,
}

impl Ratio {
    /// Creates a ratio in lowest terms, so that equal ratios compare equal.
    ///
    /// # Panics
    /// Both numbers are 0.
    pub fn new(numerator: u128, denominator: u128) -> Ratio {
        let (mut a, mut b) = (numerator, denominator);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Ratio {
            numerator: numerator / a,
            denominator: denominator / a,
        }
    }

    /// Multiplies by `numerator / denominator`.
    pub fn times(self, numerator: u128, denominator: u128) -> Ratio {
        Ratio::new(self.numerator * numerator, self.denominator * denominator)
    }

    /// Nearest floating-point value.
    pub fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Converts bytes per second to hundredths of a GiB/s, rounded to the nearest.
    pub fn hundredths_of_gib(self) -> u128 {
        let denominator = self.denominator << 30;
        (self.numerator * 200 + denominator) / (2 * denominator)
    }
}

/// Lanes of one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Number of active lanes. After degradation, the words are spread over the remaining lanes.
    pub count: u32,
    /// Bits per second and lane.
    pub rate: u64,
    /// Line code: data bits, and bits on the lane that carry them.
    pub code: (u32, u32),
    /// Metaframe: total words or bytes, and the overhead of the lane among them.
    pub metaframe: (u32, u32),
}

impl Lanes {
    /// One of ECI's two links: 12 lanes of 10.3125 Gb/s, 64b/67b coding, and 4 overhead words per metaframe of 2048.
    pub const ECI: Lanes = Lanes {
        count: 12,
        rate: 10_312_500_000,
        code: (64, 67),
        metaframe: (2048, 4),
    };

    /// PCIe of generation 3 to 5 (8, 16 or 32 GT/s): 128b/130b coding, and 4 of 1538 bytes are skips. CXL flits use the
    /// same lanes.
    pub fn pcie(count: u32, giga_transfers: u32) -> Lanes {
        Lanes {
            count,
            rate: u64::from(giga_transfers) * 1_000_000_000,
            code: (128, 130),
            metaframe: (1538, 4),
        }
    }

    /// Maximum number of lanes of any link.
    pub const MAX_LANES: u32 = 16;

    /// Validates a number of lanes. ECI's blocks are spread over any number, of which its own links have 12. A degraded
    /// PCIe link works with a power of two.
    ///
    /// # Errors
    /// The supported numbers.
    pub fn validate_count(count: u64, is_pcie: bool) -> Result<u32, &'static str> {
        let valid = u32::try_from(count).ok();
        let valid = valid.filter(|count| (1..=Lanes::MAX_LANES).contains(count));
        match (valid, is_pcie) {
            (Some(count), false) => Ok(count),
            (Some(count), true) if count.is_power_of_two() => Ok(count),
            (_, true) => Err("1, 2, 4, 8 or 16 lanes"),
            (_, false) => Err("1 to 16 lanes"),
        }
    }

    /// The same link with `count` active lanes.
    #[must_use]
    pub fn with(self, count: u32) -> Lanes {
        Lanes { count, ..self }
    }

    /// Bytes per second on the wires.
    pub fn raw(&self) -> Ratio {
        Ratio::new(u128::from(self.count) * u128::from(self.rate), 8)
    }

    /// Bytes per second of blocks, including control words.
    pub fn blocks(&self) -> Ratio {
        let (total, overhead) = self.metaframe;
        self.raw()
            .times(self.code.0.into(), self.code.1.into())
            .times((total - overhead).into(), total.into())
    }

    /// Bytes per second of messages, including headers.
    pub fn messages(&self) -> Ratio {
        self.blocks().times(7, 8)
    }

    /// Bytes per second of the words after the header, for messages of `words` words.
    pub fn payload(&self, words: u32) -> Ratio {
        self.messages().times((words - 1).into(), words.into())
    }

    /// Duration of a block in seconds.
    pub fn block_seconds(&self) -> Ratio {
        let blocks = self.blocks();
        Ratio::new(blocks.denominator * 64, blocks.numerator)
    }
}
