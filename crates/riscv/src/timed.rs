//! A core in time: one instruction at a time and in order, which waits for the registers it needs and not for loads.

use crate::blocks::Blocks;
use crate::decode::Inst;
use crate::hart::{Hart, Stop};
use crate::memory::{Flat, Memory};
use crate::table::Op;

/// A memory that takes time.
pub trait TimedMemory: Memory {
    /// The next access, fence, hint or block to manage begins in this cycle.
    fn at(&mut self, _cycle: u64) {}

    /// The next one is of the instruction that stands there.
    fn by(&mut self, _pc: u64) {}

    /// By how many cycles the last access, block to manage or hint begins later than the core came to it: the core begins
    /// nothing else before, and asks again by then if it waits.
    fn later(&mut self) -> u64 {
        0
    }

    /// How many cycles more than its [`Latencies`] say the last access takes that was answered at once.
    fn longer(&mut self) -> u64 {
        0
    }

    /// Whether the core is to stop behind what it has just asked, as something has begun that others are to know of first.
    fn stops(&self) -> bool {
        false
    }
}

impl TimedMemory for Flat {}

/// What one kind of instruction takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Cycles until its result may be used.
    pub latency: u16,
    /// Cycles until the next instruction may begin.
    pub busy: u16,
}

/// What instructions take, in cycles, by their kind. The standard says nothing of it: whoever describes a core does.
#[derive(Clone, Debug)]
pub struct Latencies {
    costs: [Cost; 256],
    wide: [Cost; 256],
    /// Cycles that are lost behind a jump or a branch that is taken.
    pub taken: u16,
}

impl Default for Latencies {
    /// An ideal core: everything takes a cycle, and jumps cost nothing.
    fn default() -> Latencies {
        let ideal = Cost {
            latency: 1,
            busy: 1,
        };
        Latencies {
            costs: [ideal; 256],
            wide: [ideal; 256],
            taken: 0,
        }
    }
}

impl Latencies {
    /// A small core. Its cycles are assumed: they are what such cores take by order of magnitude, and of no core that is known.
    pub fn small() -> Latencies {
        use Op::*;
        let mut latencies = Latencies::default()
            .with(&[Lb, Lh, Lw, Ld, Lbu, Lhu, Lwu, Flw, Fld], 3, 1)
            .with(&[Mul, Mulh, Mulhsu, Mulhu, Mulw], 4, 1)
            .with(&[Div, Divu, Rem, Remu, Divw, Divuw, Remw, Remuw], 20, 20);
        let adds = [Fadd, Fsub, Fmul, Fmadd, Fmsub, Fnmsub, Fnmadd];
        let slow = [Fdiv, Fsqrt];
        latencies = latencies.with(&adds, 4, 1).with(&slow, 15, 15);
        latencies = latencies.with_wide(&adds, 5, 1).with_wide(&slow, 25, 25);
        latencies.taken = 2;
        latencies
    }

    /// These with another cost of some operations. Of floating-point and atomic ones this is the cost in single precision or
    /// of words; of all others it is the cost.
    pub fn with(mut self, ops: &[Op], latency: u16, busy: u16) -> Latencies {
        for &op in ops {
            // What takes no time would never end.
            self.costs[op as usize] = Cost {
                latency,
                busy: busy.max(1),
            };
        }
        self
    }

    /// These with another cost in double precision, or of double words in atomic accesses.
    pub fn with_wide(mut self, ops: &[Op], latency: u16, busy: u16) -> Latencies {
        for &op in ops {
            self.wide[op as usize] = Cost {
                latency,
                busy: busy.max(1),
            };
        }
        self
    }

    /// The cost of an instruction.
    #[inline(always)]
    pub fn of(&self, inst: &Inst) -> Cost {
        let costs = if inst.wide { &self.wide } else { &self.costs };
        costs[inst.op as usize]
    }
}

/// Runs a core in time. Instructions are there when they are needed: reading them takes no cycle.
#[derive(Clone, Debug)]
pub struct Timed {
    blocks: Blocks,
    latencies: Latencies,
    /// The cycle in which the next instruction may begin. Who lets a core wait sets it to when it goes on.
    pub now: u64,
    /// The cycle in which each register may be used.
    ready: [u64; 64],
}

impl Timed {
    /// In the beginning of time.
    pub fn new(latencies: Latencies) -> Timed {
        Timed {
            blocks: Blocks::default(),
            latencies,
            now: 0,
            ready: [0; 64],
        }
    }

    /// Keeps no instruction that has been read before.
    pub fn forget(&mut self) {
        self.blocks.forget();
    }

    /// Hands a core what one of its loads has read that was answered with [`crate::Reply::Later`], in this cycle.
    pub fn deliver(&mut self, hart: &mut Hart, to: u8, value: u64, cycle: u64) {
        hart.deliver(to, value);
        self.ready[usize::from(to & 63)] = cycle;
        self.ready[0] = 0;
    }

    /// Carries out instructions that begin before this cycle, or until the memory wants it to stop. Says how many, and what
    /// stopped it otherwise.
    ///
    /// If that is [`Stop::Wait`], `now` is when the instruction could have begun. Waiting for a register ends by
    /// [`Timed::deliver`]; if it was the memory, the same access is made again in cycle `now` of the next run.
    pub fn run<M: TimedMemory>(
        &mut self,
        hart: &mut Hart,
        memory: &mut M,
        until: u64,
    ) -> (u64, Result<(), Stop>) {
        let mut done = 0;
        while self.now < until {
            let block = match self.blocks.next(hart, memory) {
                Ok(block) => block,
                Err(stop) => return (done, Err(stop)),
            };
            let (mut carried, mut end, mut fence, mut stops) = (0, Ok(()), false, false);
            for inst in block {
                let r = |number: u8| self.ready[usize::from(number & 63)];
                let mut issue = r(inst.rs1)
                    .max(r(inst.rs2))
                    .max(r(inst.rd))
                    .max(r(inst.rs3))
                    .max(self.now);
                if orders(inst.op) {
                    issue = self.ready.iter().copied().fold(issue, u64::max);
                    hart.csrs.cycle = issue;
                }
                if issue >= until {
                    self.now = until;
                    break;
                }
                let accesses = inst.op.accesses();
                let asks = inst.op.asks();
                if asks {
                    memory.at(issue);
                    memory.by(hart.pc);
                }
                let from = hart.pc;
                end = hart.execute(inst, memory);
                let begins = issue + if asks { memory.later() } else { 0 };
                if end.is_err() {
                    self.now = begins;
                    break;
                }
                carried += 1;
                let cost = self.latencies.of(inst);
                let longer = if accesses { memory.longer() } else { 0 };
                self.ready[usize::from(inst.rd & 63)] = begins + u64::from(cost.latency) + longer;
                self.ready[0] = 0;
                self.now = begins + u64::from(cost.busy);
                if hart.pc != from.wrapping_add(inst.length.into()) {
                    self.now += u64::from(self.latencies.taken);
                }
                fence = inst.op == Op::FenceI;
                stops = asks && memory.stops();
                if self.now >= until || stops {
                    break;
                }
            }
            hart.csrs.instret = hart.csrs.instret.wrapping_add(carried);
            done += carried;
            if fence {
                self.blocks.forget();
            }
            if end.is_err() {
                return (done, end);
            }
            if stops {
                break;
            }
        }
        hart.csrs.cycle = self.now;
        (done, Ok(()))
    }
}

/// Whether an instruction waits until all registers are there: what it does depends on more than those it names.
fn orders(op: Op) -> bool {
    matches!(
        op,
        Op::Fence | Op::FenceI | Op::Csrrw | Op::Csrrs | Op::Csrrc | Op::Ecall | Op::Mret | Op::Wfi
    )
}
