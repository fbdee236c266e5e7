//! Cache of decoded instructions, in straight-line blocks, and the engine [`FastInterpreter`] that executes them.

use crate::decode::Inst;
use crate::hart::{Hart, Stop};
use crate::memory::Memory;
use crate::table::Op;

/// Number of block slots. A block whose slot is taken by another is decoded again when needed.
const SLOTS: usize = 1 << 14;
/// Maximum instructions per block.
const MAX_BLOCK_INSTRUCTIONS: usize = 64;
/// Maximum decoded instructions. The cache is emptied when it exceeds this.
const MAX_CACHED_INSTRUCTIONS: usize = 1 << 18;

/// A straight-line sequence of instructions.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Address of the first instruction; 1 in an empty slot.
    pc: u64,
    /// Index of the first instruction in [`Blocks::insts`].
    start: u32,
    /// Number of instructions, at least 1 except in an empty slot.
    length: u32,
}

/// An empty slot: no instruction has an odd address.
const EMPTY_BLOCK: Block = Block {
    pc: 1,
    start: 0,
    length: 0,
};

/// Decoded blocks of a core.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// Blocks by the low bits of their address.
    slots: Vec<Block>,
    /// Instructions of all blocks. Those of replaced blocks remain until the cache is emptied.
    insts: Vec<Inst>,
}

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks {
            slots: vec![EMPTY_BLOCK; SLOTS],
            insts: Vec::new(),
        }
    }
}

impl Blocks {
    /// Drops all decoded instructions.
    pub(crate) fn invalidate_blocks(&mut self) {
        self.slots.fill(EMPTY_BLOCK);
        self.insts.clear();
    }

    /// Returns the block that starts at the core's `pc`. The block ends before the first later instruction that cannot
    /// be fetched. An error is that of fetching the first instruction.
    #[inline(always)]
    pub(crate) fn block_at_pc<M: Memory>(
        &mut self,
        hart: &mut Hart,
        memory: &mut M,
    ) -> Result<&[Inst], Stop> {
        let slot = (hart.pc >> 1) as usize % SLOTS;
        let mut block = self.slots[slot];
        if block.pc != hart.pc {
            block = self.decode_block(hart, memory)?;
            self.slots[slot] = block;
        }
        Ok(&self.insts[block.start as usize..][..block.length as usize])
    }

    /// Decodes the block that starts at the core's `pc`.
    #[cold]
    fn decode_block<M: Memory>(&mut self, hart: &mut Hart, memory: &mut M) -> Result<Block, Stop> {
        if self.insts.len() > MAX_CACHED_INSTRUCTIONS {
            self.invalidate_blocks();
        }
        let (start, mut address) = (self.insts.len(), hart.pc);
        let mut inst = hart.fetch(address, memory)?;
        loop {
            self.insts.push(inst);
            address = address.wrapping_add(inst.length.into());
            if inst.ends_block() || self.insts.len() - start == MAX_BLOCK_INSTRUCTIONS {
                break;
            }
            match hart.fetch(address, memory) {
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
/// call [`FastInterpreter::invalidate_blocks`].
#[derive(Clone, Debug, Default)]
pub struct FastInterpreter {
    blocks: Blocks,
}

impl FastInterpreter {
    /// Drops all decoded instructions.
    pub fn invalidate_blocks(&mut self) {
        self.blocks.invalidate_blocks();
    }

    /// Executes at most `max_instructions` instructions, or those before a stop. Returns the number of completed
    /// instructions and the reason of the stop.
    pub fn run<M: Memory>(
        &mut self,
        hart: &mut Hart,
        memory: &mut M,
        max_instructions: u64,
    ) -> (u64, Result<(), Stop>) {
        let mut executed = 0;
        while executed < max_instructions {
            let block = match self.blocks.block_at_pc(hart, memory) {
                Ok(block) => block,
                Err(stop) => return (executed, Err(stop)),
            };
            let remaining = usize::try_from(max_instructions - executed).unwrap_or(usize::MAX);
            let block = &block[..block.len().min(remaining)];
            let mut executed_in_block = 0;
            let mut result = Ok(());
            for inst in block {
                result = hart.execute(inst, memory);
                if result.is_err() {
                    break;
                }
                executed_in_block += 1;
            }
            hart.count(executed_in_block);
            executed += executed_in_block;
            if result.is_err() {
                return (executed, result);
            }
            if block.last().is_some_and(|last| last.op == Op::FenceI) {
                self.blocks.invalidate_blocks();
            }
        }
        (executed, Ok(()))
    }
}
