//! Cache of decoded instructions, in straight-line blocks, and the engine [`Fast`] that executes them.

use crate::decode::Inst;
use crate::hart::{Hart, Stop};
use crate::memory::Memory;
use crate::table::Op;

/// Number of block slots. A block whose slot is taken by another is decoded again when needed.
const PLACES: usize = 1 << 14;
/// Maximum instructions per block.
const LONGEST: usize = 64;
/// Maximum decoded instructions. The cache is emptied when it exceeds this.
const MAX_CACHED_INSTRUCTIONS: usize = 1 << 18;

/// A straight-line sequence of instructions.
#[derive(Clone, Copy, Debug)]
struct Block {
    pc: u64,
    start: u32,
    length: u32,
}

/// An empty slot: no instruction has an odd address.
const NOWHERE: Block = Block {
    pc: 1,
    start: 0,
    length: 0,
};

/// Decoded blocks of a core.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    places: Vec<Block>,
    insts: Vec<Inst>,
}

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks {
            places: vec![NOWHERE; PLACES],
            insts: Vec::new(),
        }
    }
}

impl Blocks {
    pub(crate) fn invalidate_blocks(&mut self) {
        self.places.fill(NOWHERE);
        self.insts.clear();
    }

    /// Returns the block that starts at `pc`. The block ends before the first later instruction that cannot be fetched.
    #[inline(always)]
    pub(crate) fn next<M: Memory>(
        &mut self,
        hart: &mut Hart,
        memory: &mut M,
    ) -> Result<&[Inst], Stop> {
        let place = (hart.pc >> 1) as usize % PLACES;
        let mut block = self.places[place];
        if block.pc != hart.pc {
            block = self.read(hart, memory)?;
            self.places[place] = block;
        }
        Ok(&self.insts[block.start as usize..][..block.length as usize])
    }

    #[cold]
    fn read<M: Memory>(&mut self, hart: &mut Hart, memory: &mut M) -> Result<Block, Stop> {
        if self.insts.len() > MAX_CACHED_INSTRUCTIONS {
            self.invalidate_blocks();
        }
        let (start, mut at) = (self.insts.len(), hart.pc);
        let mut inst = hart.fetch(at, memory)?;
        loop {
            self.insts.push(inst);
            at = at.wrapping_add(inst.length.into());
            if inst.ends_block() || self.insts.len() - start == LONGEST {
                break;
            }
            match hart.fetch(at, memory) {
                // A CSR access is a block of its own, so that it reads counters that include all earlier instructions.
                Ok(next) if !next.is_csr() => inst = next,
                _ => break,
            }
        }
        Ok(Block {
            pc: hart.pc,
            start: start as u32,
            length: (self.insts.len() - start) as u32,
        })
    }
}

/// Functional engine: executes as fast as possible, without time.
///
/// Decoded instructions are kept until the core executes `fence.i`. If code changes in another way, the caller must
/// call [`Fast::invalidate_blocks`].
#[derive(Clone, Debug, Default)]
pub struct Fast {
    blocks: Blocks,
}

impl Fast {
    /// Drops all decoded instructions.
    pub fn invalidate_blocks(&mut self) {
        self.blocks.invalidate_blocks();
    }

    /// Executes at most `most` instructions, or those before a stop. Returns their number and the reason of the stop.
    pub fn run<M: Memory>(
        &mut self,
        hart: &mut Hart,
        memory: &mut M,
        most: u64,
    ) -> (u64, Result<(), Stop>) {
        let mut done = 0;
        while done < most {
            let block = match self.blocks.next(hart, memory) {
                Ok(block) => block,
                Err(stop) => return (done, Err(stop)),
            };
            let left = usize::try_from(most - done).unwrap_or(usize::MAX);
            let block = &block[..block.len().min(left)];
            let mut carried = 0;
            let mut end = Ok(());
            for inst in block {
                end = hart.execute(inst, memory);
                if end.is_err() {
                    break;
                }
                carried += 1;
            }
            hart.count(carried);
            done += carried;
            if end.is_err() {
                return (done, end);
            }
            if block.last().is_some_and(|last| last.op == Op::FenceI) {
                self.blocks.invalidate_blocks();
            }
        }
        (done, Ok(()))
    }
}
