//! Timed core: in-order and single-issue. It stalls on registers that are not ready, but not on loads.

use crate::blocks::Blocks;
use crate::decode::Inst;
use crate::hart::{Hart, Stop};
use crate::memory::{FlatMemory, Memory};
use crate::table::Op;

/// Memory with latency.
pub trait TimedMemory: Memory {
    /// Announces the cycle in which the next access, fence, block management or prefetch begins.
    fn set_cycle(&mut self, _cycle: u64) {}

    /// Announces the address of the instruction that makes the next access.
    fn set_pc(&mut self, _pc: u64) {}

    /// Delay of the last access, block management or prefetch after the cycle in which the core issued it, in cycles.
    /// The core starts nothing else in the meantime. If the request stalls, the core retries it after the delay.
    fn access_delay(&mut self) -> u64 {
        0
    }

    /// Extra cycles of the last access beyond its [`Latencies`]. Applies to accesses that were completed at once.
    fn extra_latency(&mut self) -> u64 {
        0
    }

    /// True if the core must stop after the last request, because other components must observe an event first.
    fn must_stop(&self) -> bool {
        false
    }
}

impl TimedMemory for FlatMemory {}

/// Cost of one kind of instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Cycles until the result is available.
    pub latency: u16,
    /// Cycles until the next instruction can start.
    pub busy: u16,
}

/// Instruction costs in cycles, by operation. The instruction set does not specify them, so each core model does.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// Costs by operation; for those with two widths, in single precision or of atomic accesses to words.
    costs: [Cost; 256],
    /// Costs in double precision, or of atomic accesses to double words.
    wide_costs: [Cost; 256],
    /// Penalty of a jump or taken branch, in cycles.
    pub taken_penalty: u16,
}

impl Default for Latencies {
    /// An ideal core: each instruction takes one cycle, and jumps have no penalty.
    fn default() -> Latencies {
        let ideal = Cost {
            latency: 1,
            busy: 1,
        };
        Latencies {
            costs: [ideal; 256],
            wide_costs: [ideal; 256],
            taken_penalty: 0,
        }
    }
}

impl Latencies {
    /// A small core. Its cycles are assumptions of the right order of magnitude, and do not describe a real core.
    pub fn small() -> Latencies {
        use Op::*;
        let mut latencies = Latencies::default()
            .with(&[Lb, Lh, Lw, Ld, Lbu, Lhu, Lwu, Flw, Fld], 3, 1)
            .with(&[Mul, Mulh, Mulhsu, Mulhu, Mulw], 4, 1)
            .with(&[Div, Divu, Rem, Remu, Divw, Divuw, Remw, Remuw], 20, 20);
        let add_ops = [Fadd, Fsub, Fmul, Fmadd, Fmsub, Fnmsub, Fnmadd];
        let slow_ops = [Fdiv, Fsqrt];
        latencies = latencies.with(&add_ops, 4, 1).with(&slow_ops, 15, 15);
        latencies = latencies
            .with_wide(&add_ops, 5, 1)
            .with_wide(&slow_ops, 25, 25);
        latencies.taken_penalty = 2;
        latencies
    }

    /// Sets the cost of some operations. For floating-point operations it applies to single precision, for atomic
    /// accesses to words; [`Latencies::with_wide`] sets the others.
    pub fn with(mut self, ops: &[Op], latency: u16, busy: u16) -> Latencies {
        for &op in ops {
            // An instruction without a cycle would never advance time.
            self.costs[op as usize] = Cost {
                latency,
                busy: busy.max(1),
            };
        }
        self
    }

    /// Sets the cost of some operations in double precision, or of atomic accesses to double words.
    pub fn with_wide(mut self, ops: &[Op], latency: u16, busy: u16) -> Latencies {
        for &op in ops {
            self.wide_costs[op as usize] = Cost {
                latency,
                busy: busy.max(1),
            };
        }
        self
    }

    /// Cost of an instruction.
    #[inline(always)]
    fn cost_of(&self, inst: &Inst) -> Cost {
        let costs = if inst.wide {
            &self.wide_costs
        } else {
            &self.costs
        };
        costs[inst.op as usize]
    }
}

/// Timed engine for a core. Instruction fetch takes no cycles.
#[derive(Clone, Debug)]
pub struct TimedInterpreter {
    blocks: Blocks,
    /// Cost of each operation.
    latencies: Latencies,
    /// Cycle in which the next instruction can start. A caller that stalls the core sets it to the cycle of resumption.
    pub now: u64,
    /// Cycle in which each register is ready: `x` at 0 to 31, `f` at 32 to 63.
    ready: [u64; 64],
}

impl TimedInterpreter {
    /// Creates an engine at cycle 0.
    pub fn new(latencies: Latencies) -> TimedInterpreter {
        TimedInterpreter {
            blocks: Blocks::default(),
            latencies,
            now: 0,
            ready: [0; 64],
        }
    }

    /// Drops all decoded instructions.
    pub fn invalidate_blocks(&mut self) {
        self.blocks.invalidate_blocks();
    }

    /// Delivers the value of a load that memory answered with [`crate::Reply::Later`], in this cycle.
    pub fn deliver(&mut self, hart: &mut Hart, register: u8, value: u64, cycle: u64) {
        hart.deliver(register, value);
        self.ready[usize::from(register & 63)] = cycle;
        self.ready[0] = 0;
    }

    /// Runs the core for instructions that start before cycle `until`, or until [`TimedMemory::must_stop`] is true.
    /// Returns the number of completed instructions, and the reason for any other stop.
    ///
    /// After [`Stop::Wait`], `now` is the earliest cycle in which the instruction could have started.
    /// [`TimedInterpreter::deliver`] ends the wait for a register. If memory stalled, the next run retries the same
    /// access in cycle `now`.
    pub fn run<M: TimedMemory>(
        &mut self,
        hart: &mut Hart,
        memory: &mut M,
        until: u64,
    ) -> (u64, Result<(), Stop>) {
        let mut completed = 0;
        while self.now < until {
            let block = match self.blocks.block_at_pc(hart, memory) {
                Ok(block) => block,
                Err(stop) => return (completed, Err(stop)),
            };
            let (mut completed_in_block, mut result, mut is_fence_i, mut must_stop) =
                (0, Ok(()), false, false);
            for inst in block {
                let ready_cycle = |number: u8| self.ready[usize::from(number & 63)];
                let mut issue = ready_cycle(inst.rs1)
                    .max(ready_cycle(inst.rs2))
                    .max(ready_cycle(inst.rd))
                    .max(ready_cycle(inst.rs3))
                    .max(self.now);
                if is_register_barrier(inst.op) {
                    issue = self.ready.iter().copied().fold(issue, u64::max);
                    hart.csrs.cycle = issue;
                }
                if issue >= until {
                    self.now = until;
                    break;
                }
                let is_access = inst.op.accesses();
                let is_memory_operation = inst.op.is_memory_operation();
                if is_memory_operation {
                    memory.set_cycle(issue);
                    memory.set_pc(hart.pc);
                }
                let pc = hart.pc;
                result = hart.execute(inst, memory);
                let start = issue
                    + if is_memory_operation {
                        memory.access_delay()
                    } else {
                        0
                    };
                if result.is_err() {
                    self.now = start;
                    break;
                }
                completed_in_block += 1;
                let cost = self.latencies.cost_of(inst);
                let extra_latency = if is_access { memory.extra_latency() } else { 0 };
                self.ready[usize::from(inst.rd & 63)] =
                    start + u64::from(cost.latency) + extra_latency;
                self.ready[0] = 0;
                self.now = start + u64::from(cost.busy);
                if hart.pc != pc.wrapping_add(inst.length.into()) {
                    self.now += u64::from(self.latencies.taken_penalty);
                }
                is_fence_i = inst.op == Op::FenceI;
                must_stop = is_memory_operation && memory.must_stop();
                if self.now >= until || must_stop {
                    break;
                }
            }
            hart.csrs.instret = hart.csrs.instret.wrapping_add(completed_in_block);
            completed += completed_in_block;
            if is_fence_i {
                self.blocks.invalidate_blocks();
            }
            if result.is_err() {
                return (completed, result);
            }
            if must_stop {
                break;
            }
        }
        hart.csrs.cycle = self.now;
        (completed, Ok(()))
    }
}

/// True if an instruction waits for all registers, because it depends on more than the registers it names.
fn is_register_barrier(op: Op) -> bool {
    matches!(
        op,
        Op::Fence | Op::FenceI | Op::Csrrw | Op::Csrrs | Op::Csrrc | Op::Ecall | Op::Mret | Op::Wfi
    )
}
