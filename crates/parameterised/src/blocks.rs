//! Blocks of knowledge indices that no row of a constructed home distinguishes.

/// Maximum number of blocks.
pub(crate) const MAX_BLOCKS: usize = 48;

/// A set of blocks, as one bit for each.
pub(crate) type BlockSet = u64;

/// Blocks of knowledge indices.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// Block of each index.
    pub(crate) block_of: Vec<u16>,
    /// First index of each block.
    pub(crate) first: Vec<u16>,
}
