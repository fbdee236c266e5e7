//! The 24-bit checksum of a block.
//!
//! The polynomial of ECI's blocks is not published; this is the one that Interlaken uses for its bursts.

/// x^24 + x^21 + x^20 + x^17 + x^15 + x^11 + x^9 + x^8 + x^6 + x^5 + x + 1, without its highest power.
const POLYNOMIAL: u32 = 0x0032_8b63;
/// The register at the beginning, so that leading zeros count too.
const START: u32 = 0x00ff_ffff;

/// `TABLES[k][b]` is what the byte `b` followed by `k` bytes of zeros leaves.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = (byte as u32) << 16;
        let mut bit = 0;
        while bit < 8 {
            rest <<= 1;
            if rest & 0x0100_0000 != 0 {
                rest ^= 0x0100_0000 | POLYNOMIAL;
            }
            bit += 1;
        }
        tables[0][byte] = rest;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] =
                ((before << 8) & 0x00ff_ffff) ^ tables[0][(before >> 16) as usize & 0xff];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

/// The checksum of words, most significant bit first.
pub fn crc24(words: &[u64]) -> u32 {
    let mut register = START;
    for word in words {
        let bytes = (word ^ (u64::from(register) << 40)).to_be_bytes();
        register = 0;
        for (place, byte) in bytes.iter().enumerate() {
            register ^= TABLES[7 - place][usize::from(*byte)];
        }
    }
    register
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, as the definition says.
    fn slowly(words: &[u64]) -> u32 {
        let mut register = START;
        for word in words {
            for bit in (0..64).rev() {
                let out = (register >> 23) ^ ((word >> bit) as u32 & 1);
                register = (register << 1) & 0x00ff_ffff;
                if out & 1 != 0 {
                    register ^= POLYNOMIAL;
                }
            }
        }
        register
    }

    #[test]
    fn the_tables_give_what_the_definition_gives() {
        let mut chance = crate::chance::Chance::new(7);
        for _ in 0..100 {
            let words: [u64; 8] = std::array::from_fn(|_| chance.next_u64());
            assert_eq!(crc24(&words), slowly(&words));
        }
    }
}
