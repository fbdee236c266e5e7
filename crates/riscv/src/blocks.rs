//! Decoded instructions, kept as blocks that are carried out one after the other; and the engine that is nothing else.

use crate::decode::Inst;
use crate::hart::{Hart, Stop};
use crate::memory::Memory;
use crate::table::Op;

/// Places for blocks. A block whose place another one takes is read again when it is needed.
const PLACES: usize = 1 << 14;
/// The longest block.
const LONGEST: usize = 64;
/// Instructions that are kept; where there are more, all are dropped.
const KEPT: usize = 1 << 18;

/// Instructions that are carried out in a row, if none of them is refused.
#[derive(Clone, Copy, Debug)]
struct Block {
    pc: u64,
    start: u32,
    length: u32,
}

/// No instruction stands at an odd address.
const NOWHERE: Block = Block {
    pc: 1,
    start: 0,
    length: 0,
};

/// The blocks of a core.
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
    pub(crate) fn forget(&mut self) {
        self.places.fill(NOWHERE);
        self.insts.clear();
    }

    /// The block that begins where the core stands. What cannot be read behind its first instruction ends it.
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
        if self.insts.len() > KEPT {
            self.forget();
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
                // Counters are read by a block of one, so that they tell of what comes before.
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

/// Runs a core as fast as can be, without time.
///
/// Instructions are read once and kept until the core executes `fence.i`, or [`Fast::forget`] is called because code has
/// changed in another way.
#[derive(Clone, Debug, Default)]
pub struct Fast {
    blocks: Blocks,
}

impl Fast {
    /// Keeps no instruction that has been read before.
    pub fn forget(&mut self) {
        self.blocks.forget();
    }

    /// Carries out so many instructions, or those before one that stops. Says how many they were.
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
                self.blocks.forget();
            }
        }
        (done, Ok(()))
    }
}
