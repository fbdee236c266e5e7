//! From lanes to words per time, in exact arithmetic.

/// A ratio of whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Above the line.
    pub over: u128,
    /// Below it; not 0.
    pub under: u128,
}

impl Ratio {
    /// In lowest terms, so that equal ratios are equal values.
    pub fn new(over: u128, under: u128) -> Ratio {
        let (mut a, mut b) = (over, under);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Ratio {
            over: over / a,
            under: under / a,
        }
    }

    /// This many times `over / under`.
    pub fn times(self, over: u128, under: u128) -> Ratio {
        Ratio::new(self.over * over, self.under * under)
    }

    /// The nearest number of the machine.
    pub fn value(self) -> f64 {
        self.over as f64 / self.under as f64
    }

    /// Bytes per second as hundredths of a GiB/s, rounded to the nearest.
    pub fn hundredths_of_gib(self) -> u128 {
        let under = self.under << 30;
        (self.over * 200 + under) / (2 * under)
    }
}

/// The lanes of one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Lanes that work. After degradation these are fewer, and the words are spread over them.
    pub count: u32,
    /// Bits per second of a lane.
    pub rate: u64,
    /// Bits of data, and bits on the lane for them.
    pub code: (u32, u32),
    /// Words or bytes in a metaframe, and how many of them are the lane's own.
    pub metaframe: (u32, u32),
}

impl Lanes {
    /// One of ECI's two links: 12 lanes of 10.3125 Gb/s, 64 of 67 bits, and 4 words of each metaframe of 2048.
    pub const ECI: Lanes = Lanes {
        count: 12,
        rate: 10_312_500_000,
        code: (64, 67),
        metaframe: (2048, 4),
    };

    /// PCIe of generation 3 to 5 (8, 16 or 32 thousand million transfers a second): 128 of 130 bits, and 4 of 1538 bytes
    /// are skips. Flits of CXL travel on the same lanes.
    pub fn pcie(count: u32, giga_transfers: u32) -> Lanes {
        Lanes {
            count,
            rate: u64::from(giga_transfers) * 1_000_000_000,
            code: (128, 130),
            metaframe: (1538, 4),
        }
    }

    /// Most lanes of a link, whatever travels on them.
    pub const MOST: u32 = 16;

    /// So many lanes, if a link can work with them. Blocks of ECI are spread over any number, of which its own links have 12;
    /// what is left of a link of PCIe works with half of its lanes, or half of these, and so on.
    ///
    /// # Errors
    /// What there is instead.
    pub fn work(count: u64, of_pcie: bool) -> Result<u32, &'static str> {
        let found = u32::try_from(count).ok();
        let found = found.filter(|count| (1..=Lanes::MOST).contains(count));
        match (found, of_pcie) {
            (Some(count), false) => Ok(count),
            (Some(count), true) if count.is_power_of_two() => Ok(count),
            (_, true) => Err("1, 2, 4, 8 or 16 lanes"),
            (_, false) => Err("1 to 16 lanes"),
        }
    }

    /// The same link with other lanes.
    #[must_use]
    pub fn with(self, count: u32) -> Lanes {
        Lanes { count, ..self }
    }

    /// Bytes per second on the wires.
    pub fn raw(&self) -> Ratio {
        Ratio::new(u128::from(self.count) * u128::from(self.rate), 8)
    }

    /// Bytes per second of blocks, control words included.
    pub fn blocks(&self) -> Ratio {
        let (whole, own) = self.metaframe;
        self.raw()
            .times(self.code.0.into(), self.code.1.into())
            .times((whole - own).into(), whole.into())
    }

    /// Bytes per second of messages, headers included.
    pub fn messages(&self) -> Ratio {
        self.blocks().times(7, 8)
    }

    /// Bytes per second of what messages of `words` words carry beside their header.
    pub fn payload(&self, words: u32) -> Ratio {
        self.messages().times((words - 1).into(), words.into())
    }

    /// How long a block takes.
    pub fn block_seconds(&self) -> Ratio {
        let blocks = self.blocks();
        Ratio::new(blocks.under * 64, blocks.over)
    }
}
