//! A core (hart): its registers and the effect of each instruction.

use crate::csr::{Csrs, Exception, Mode};
use crate::decode::{Decoder, Inst};
use crate::float::SINGLE;
use crate::memory::{Amo, AmoOp, Cbo, Fence as Orders, Memory, Prefetch, Reply, Size};
use crate::table::{Extension, Extensions, Op};
use crate::{alu, fp};

/// Reason why a step did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The memory or a register with an outstanding load is not ready. Nothing has changed; retry the same step.
    Wait,
    /// The instruction raised an exception. `pc` still points to it; [`Hart::trap`] enters the handler.
    Exception(Exception),
}

impl From<Exception> for Stop {
    fn from(exception: Exception) -> Stop {
        Stop::Exception(exception)
    }
}

/// Extension of a loaded value to the register width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadExtension {
    /// Zero-extends, or fills the register.
    Unsigned,
    /// Sign-extends a value of this size.
    Signed(Size),
    /// Boxes a single-precision number: the upper half is all ones.
    Single,
}

impl LoadExtension {
    /// Extends a value whose unused upper bytes are zero.
    #[inline(always)]
    fn extend(self, value: u64) -> u64 {
        match self {
            LoadExtension::Unsigned => value,
            LoadExtension::Signed(Size::Byte) => value as i8 as u64,
            LoadExtension::Signed(Size::Half) => value as i16 as u64,
            LoadExtension::Signed(Size::Word) => value as i32 as u64,
            LoadExtension::Signed(Size::Double) => value,
            LoadExtension::Single => fp::box_number(SINGLE, value & 0xffff_ffff),
        }
    }
}

/// Instruction, or first half of one, fetched by a stalled step. It is kept so that the retry does not fetch it again.
#[derive(Clone, Copy, Debug)]
enum StalledFetch {
    /// No stalled step.
    None,
    /// Address and first 16 bits of an instruction whose second half waits.
    Half(u64, u16),
    /// Address and instruction whose execution waits.
    Decoded(u64, Inst),
}

/// Register number of the stack pointer (`sp`), by ABI convention.
const STACK_POINTER: u8 = 2;

/// A core (hart).
#[derive(Clone, Debug)]
pub struct Hart {
    /// The address of the next instruction.
    pub pc: u64,
    /// Control and status registers.
    pub csrs: Csrs,
    /// Stack limits: an addition to the stack pointer that moves it below one of them raises a stack overflow. Set by
    /// the loader, which knows the stack layout.
    pub stack_limits: [u64; 2],
    /// Last indirect jump: (source, target) addresses.
    last_indirect_jump: Option<(u64, u64)>,
    /// Number of counter reads so far. Counter values depend on time.
    counter_reads: u64,
    /// `x` registers (0 to 31) and `f` registers (32 to 63).
    registers: [u64; 64],
    /// Bit set of registers with an outstanding load or atomic access, by index in `registers`.
    pending_loads: u64,
    /// Extension of the outstanding value of each register.
    fills: [LoadExtension; 64],
    /// Instruction of a step that has to be retried.
    stalled_fetch: StalledFetch,
    decoder: Decoder,
    /// Bits of a jump target that must be zero.
    alignment_mask: u64,
}

/// State of a core that runs a program in one mode: its registers, outstanding loads, and the number of counter reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HartState {
    /// Address of the next instruction.
    pc: u64,
    /// Registers, indexed as in [`Hart`].
    registers: [u64; 64],
    /// Bit set of registers with an outstanding load, as in [`Hart`].
    pending_loads: u64,
    /// Floating-point flags, and rounding mode.
    floating: (u8, u8),
    /// Number of counter reads so far: a core that reads counters never returns to a state.
    counter_reads: u64,
}

impl Hart {
    /// Creates core `number` with these extensions, in machine mode, with `pc` = 0.
    pub fn new(number: u64, extensions: Extensions) -> Hart {
        use Extension::*;
        let letters = [(I, 8), (M, 12), (A, 0), (F, 5), (D, 3), (C, 2)];
        let supported = letters.iter().filter(|entry| extensions.has(entry.0));
        // `misa` reports user mode (U) and 64 bits (MXL = 2).
        let misa = supported.fold(2 << 62 | 1 << 20, |misa, entry| misa | 1 << entry.1);
        Hart {
            pc: 0,
            csrs: Csrs::new(number, misa),
            stack_limits: [0; 2],
            last_indirect_jump: None,
            counter_reads: 0,
            registers: [0; 64],
            pending_loads: 0,
            fills: [LoadExtension::Unsigned; 64],
            stalled_fetch: StalledFetch::None,
            decoder: Decoder::new(extensions),
            alignment_mask: if extensions.has(C) { 0 } else { 2 },
        }
    }

    /// Value of an integer register. Only the low 5 bits of the number are used, here and in the next three functions.
    pub fn x(&self, number: u8) -> u64 {
        self.registers[usize::from(number & 31)]
    }

    /// Sets an integer register. A write to `x0` has no effect.
    pub fn set_x(&mut self, number: u8, value: u64) {
        self.registers[usize::from(number & 31)] = value;
        self.registers[0] = 0;
    }

    /// Bits of a floating-point register. A single-precision number is in the low half, below all ones.
    pub fn f(&self, number: u8) -> u64 {
        self.registers[usize::from(number & 31) + 32]
    }

    /// Sets a floating-point register.
    pub fn set_f(&mut self, number: u8, value: u64) {
        self.registers[usize::from(number & 31) + 32] = value;
    }

    /// Decoder of this core's extensions.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Delivers the value of a load or atomic access that memory answered with [`Reply::Later`]. `register` is the
    /// `destination` of the request: 0 to 31 for `x`, 32 to 63 for `f`.
    pub fn deliver(&mut self, register: u8, value: u64) {
        let register = usize::from(register & 63);
        self.registers[register] = self.fills[register].extend(value);
        self.registers[0] = 0;
        self.pending_loads &= !(1 << register);
    }

    /// Bit set of registers with an outstanding load or atomic access: bits 0 to 31 for `x`, 32 to 63 for `f`.
    pub fn pending_loads(&self) -> u64 {
        self.pending_loads
    }

    /// Snapshot of the state that, together with memory, determines the program's further execution.
    pub fn state(&self) -> HartState {
        HartState {
            pc: self.pc,
            registers: self.registers,
            pending_loads: self.pending_loads,
            floating: (self.csrs.fflags, self.csrs.frm),
            counter_reads: self.counter_reads,
        }
    }

    /// Address of the indirect jump that led to `pc`, if the last indirect jump targeted `pc`.
    pub fn jumped_from(&self) -> Option<u64> {
        let (from, to) = self.last_indirect_jump?;
        (to == self.pc).then_some(from)
    }

    /// Enters the machine-mode handler of an exception that a step has returned.
    pub fn trap(&mut self, exception: Exception) {
        self.stalled_fetch = StalledFetch::None;
        self.pc = self.csrs.enter_trap(exception.cause(), false, self.pc);
    }

    /// Enters the handler of the pending interrupt with the highest priority, if one is enabled. Returns true if it
    /// did. The caller sets the pending interrupts in `csrs.interrupts`.
    pub fn interrupt(&mut self) -> bool {
        let number = self.csrs.pending_interrupt();
        if let Some(number) = number {
            self.stalled_fetch = StalledFetch::None;
            self.pc = self.csrs.enter_trap((number, 0), true, self.pc);
        }
        number.is_some()
    }

    /// Fetches and decodes the instruction at an address.
    pub(crate) fn fetch<M: Memory>(&mut self, address: u64, memory: &mut M) -> Result<Inst, Stop> {
        let mut fetch_half = |address: u64| match memory.fetch(address) {
            Reply::Done(half) => Ok(half),
            Reply::Wait | Reply::Later => Err(Stop::Wait),
            Reply::PageFault => Err(Exception::FetchPageFault(address).into()),
            Reply::Misaligned | Reply::Fault => Err(Exception::FetchFault(address).into()),
        };
        if address & (1 | self.alignment_mask) != 0 {
            return Err(Exception::MisalignedFetch(address).into());
        }
        let low = match self.stalled_fetch {
            StalledFetch::Half(half_address, low) if half_address == address => low,
            _ => fetch_half(address)?,
        };
        let mut word = u32::from(low);
        if word & 3 == 3 {
            let high = fetch_half(address.wrapping_add(2));
            // Keep the first half only while the second half waits: after an exception, memory may have changed.
            self.stalled_fetch = match high {
                Err(Stop::Wait) => StalledFetch::Half(address, low),
                _ => StalledFetch::None,
            };
            word |= u32::from(high?) << 16;
        }
        let inst = self.decoder.decode(word);
        inst.ok_or(Exception::IllegalInstruction(word).into())
    }

    /// Executes the next instruction, and counts it.
    ///
    /// # Errors
    /// The reason for which the instruction did not complete. Registers and `pc` are unchanged.
    pub fn step<M: Memory>(&mut self, memory: &mut M) -> Result<(), Stop> {
        let inst = match self.stalled_fetch {
            StalledFetch::Decoded(address, inst) if address == self.pc => inst,
            _ => self.fetch(self.pc, memory)?,
        };
        self.stalled_fetch = StalledFetch::None;
        let result = self.execute(&inst, memory);
        match result {
            Ok(()) => self.count(1),
            Err(Stop::Wait) => self.stalled_fetch = StalledFetch::Decoded(self.pc, inst),
            Err(Stop::Exception(_)) => {}
        }
        result
    }

    /// Adds completed instructions to the counters `cycle` and `instret`.
    pub(crate) fn count(&mut self, instructions: u64) {
        self.csrs.cycle = self.csrs.cycle.wrapping_add(instructions);
        self.csrs.instret = self.csrs.instret.wrapping_add(instructions);
    }

    /// Value of a register, 0 to 63.
    #[inline(always)]
    fn read_register(&self, number: u8) -> u64 {
        self.registers[usize::from(number & 63)]
    }

    /// Sets a register, 0 to 63. A write to `x0` has no effect.
    #[inline(always)]
    fn write_register(&mut self, number: u8, value: u64) {
        self.registers[usize::from(number & 63)] = value;
        self.registers[0] = 0;
    }

    /// Executes `inst`, located at `pc`, without counting it. Advances `pc` unless the result is an error.
    #[inline(always)]
    pub(crate) fn execute<M: Memory>(&mut self, inst: &Inst, memory: &mut M) -> Result<(), Stop> {
        use Op::*;
        if M::SPLIT && self.pending_loads != 0 {
            let used_bits =
                [inst.rd, inst.rs1, inst.rs2, inst.rs3].map(|number| 1 << (number & 63));
            if self.pending_loads & used_bits.iter().fold(0, |mask, bit| mask | bit) & !1 != 0 {
                return Err(Stop::Wait);
            }
        }
        let next = self.pc.wrapping_add(inst.length.into());
        let (a, b) = (self.read_register(inst.rs1), self.read_register(inst.rs2));
        let imm = i64::from(inst.imm) as u64;
        let address = a.wrapping_add(imm);
        match inst.op {
            Beq | Bne | Blt | Bge | Bltu | Bgeu => {
                let target = if alu::is_taken(inst.op, a, b) {
                    self.pc.wrapping_add(imm)
                } else {
                    next
                };
                return self.jump(target);
            }
            Jal | Jalr => {
                let target = if inst.op == Jal {
                    self.pc.wrapping_add(imm)
                } else {
                    self.last_indirect_jump = Some((self.pc, address & !1));
                    address & !1
                };
                self.jump(target)?;
                self.write_register(inst.rd, next);
                return Ok(());
            }
            Auipc => self.write_register(inst.rd, self.pc.wrapping_add(imm)),
            Lb => self.load(
                inst,
                address,
                Size::Byte,
                LoadExtension::Signed(Size::Byte),
                memory,
            )?,
            Lh => self.load(
                inst,
                address,
                Size::Half,
                LoadExtension::Signed(Size::Half),
                memory,
            )?,
            Lw => self.load(
                inst,
                address,
                Size::Word,
                LoadExtension::Signed(Size::Word),
                memory,
            )?,
            Ld | Fld => self.load(inst, address, Size::Double, LoadExtension::Unsigned, memory)?,
            Lbu => self.load(inst, address, Size::Byte, LoadExtension::Unsigned, memory)?,
            Lhu => self.load(inst, address, Size::Half, LoadExtension::Unsigned, memory)?,
            Lwu => self.load(inst, address, Size::Word, LoadExtension::Unsigned, memory)?,
            Flw => self.load(inst, address, Size::Word, LoadExtension::Single, memory)?,
            Sb => store_result(address, memory.store(address, Size::Byte, b & 0xff))?,
            Sh => store_result(address, memory.store(address, Size::Half, b & 0xffff))?,
            Sw | Fsw => store_result(address, memory.store(address, Size::Word, b & 0xffff_ffff))?,
            Sd | Fsd => store_result(address, memory.store(address, Size::Double, b))?,
            op if op as u8 >= Fadd as u8 => self.execute_float(inst)?,
            op if op as u8 >= Lr as u8 => return self.execute_special(inst, memory),
            op => {
                let result = alu::compute(op, a, b.wrapping_add(imm));
                if inst.rd == STACK_POINTER && inst.rs1 == STACK_POINTER {
                    self.check_stack(a, result)?;
                }
                self.write_register(inst.rd, result);
            }
        }
        self.pc = next;
        Ok(())
    }

    /// Raises a stack overflow if an addition moves the stack pointer below a stack limit. Programs switch to other
    /// stacks by moves and loads, which this check does not cover.
    #[inline(always)]
    fn check_stack(&self, old_pointer: u64, new_pointer: u64) -> Result<(), Stop> {
        match self
            .stack_limits
            .iter()
            .any(|limit| new_pointer < *limit && *limit <= old_pointer)
        {
            true => Err(Exception::StackOverflow(new_pointer).into()),
            false => Ok(()),
        }
    }

    /// Sets `pc` to a target, which must be aligned.
    #[inline(always)]
    fn jump(&mut self, target: u64) -> Result<(), Stop> {
        if target & self.alignment_mask != 0 {
            return Err(Exception::MisalignedFetch(target).into());
        }
        self.pc = target;
        Ok(())
    }

    /// Loads a value into the instruction's destination, now or later.
    #[inline(always)]
    fn load<M: Memory>(
        &mut self,
        inst: &Inst,
        address: u64,
        size: Size,
        fill: LoadExtension,
        memory: &mut M,
    ) -> Result<(), Stop> {
        match memory.load(address, size, inst.rd) {
            Reply::Done(value) => self.write_register(inst.rd, fill.extend(value)),
            Reply::Later => self.mark_pending(inst.rd, fill),
            Reply::Wait => return Err(Stop::Wait),
            Reply::Misaligned => return Err(Exception::MisalignedLoad(address).into()),
            Reply::Fault => return Err(Exception::LoadFault(address).into()),
            Reply::PageFault => return Err(Exception::LoadPageFault(address).into()),
        }
        Ok(())
    }

    /// Records that a register waits for an outstanding load or atomic access.
    fn mark_pending(&mut self, register: u8, fill: LoadExtension) {
        self.pending_loads |= 1 << (register & 63);
        self.fills[usize::from(register & 63)] = fill;
    }

    /// Executes a floating-point operation; illegal if its rounding mode is reserved.
    #[inline(never)]
    fn execute_float(&mut self, inst: &Inst) -> Result<(), Stop> {
        let completed = fp::execute(inst, &mut self.registers, &mut self.csrs);
        self.registers[0] = 0;
        completed.ok_or(Exception::IllegalInstruction(inst.word).into())
    }

    /// Executes atomic accesses, fences, block management, and system instructions.
    #[inline(never)]
    fn execute_special<M: Memory>(&mut self, inst: &Inst, memory: &mut M) -> Result<(), Stop> {
        use Op::*;
        let illegal = Err(Exception::IllegalInstruction(inst.word).into());
        let address = self
            .read_register(inst.rs1)
            .wrapping_add(i64::from(inst.imm) as u64);
        match inst.op {
            Op::Fence => {
                let fence = Orders {
                    predecessors: (inst.word >> 24 & 15) as u8,
                    successors: (inst.word >> 20 & 15) as u8,
                    total_store_order: inst.word >> 28 == 8,
                };
                store_result(self.pc, memory.fence(fence))?;
            }
            FenceI => {
                // Discard a first half that waits for its second half.
                self.stalled_fetch = StalledFetch::None;
                store_result(self.pc, memory.fence_i())?
            }
            Ecall if self.csrs.mode == Mode::User => return Err(Exception::UserCall.into()),
            Ecall => return Err(Exception::MachineCall.into()),
            Ebreak => return Err(Exception::Breakpoint(self.pc).into()),
            Mret => {
                self.pc = match self.csrs.return_from_trap() {
                    Some(target) => target,
                    None => return illegal,
                };
                return Ok(());
            }
            // No effect: the run loop checks for interrupts, and may advance time until one is pending.
            Wfi => {}
            Csrrw | Csrrs | Csrrc => self.access_csr(inst)?,
            CboInval | CboClean | CboFlush => {
                let (may_invalidate, flushes_instead) = self.csrs.may_invalidate();
                let op = match inst.op {
                    CboInval if may_invalidate => Cbo::Invalidate,
                    CboInval if flushes_instead => Cbo::Flush,
                    CboClean if self.csrs.may_clean() => Cbo::Clean,
                    CboFlush if self.csrs.may_clean() => Cbo::Flush,
                    _ => return illegal,
                };
                store_result(address, memory.cbo(address, op))?;
            }
            PrefetchI => memory.prefetch(address, Prefetch::Execute),
            PrefetchR => memory.prefetch(address, Prefetch::Read),
            PrefetchW => memory.prefetch(address, Prefetch::Write),
            _ => self.access_atomically(inst, memory)?,
        }
        self.pc = self.pc.wrapping_add(inst.length.into());
        Ok(())
    }

    /// Executes a CSR instruction.
    fn access_csr(&mut self, inst: &Inst) -> Result<(), Stop> {
        // Register operand or immediate operand; the other one is zero.
        let operand = self.read_register(inst.rs1) | inst.imm as u64;
        let number = inst.csr();
        self.counter_reads += u64::from(matches!(number, 0xc00..=0xc02 | 0xb00 | 0xb02));
        let old = self
            .csrs
            .read(number)
            .ok_or(Exception::IllegalInstruction(inst.word))?;
        let new = match inst.op {
            Op::Csrrw => operand,
            Op::Csrrs => old | operand,
            _ => old & !operand,
        };
        // `csrrs` and `csrrc` with `x0` or immediate 0 do not write.
        if inst.op == Op::Csrrw || inst.word >> 15 & 31 != 0 {
            let result = self.csrs.write(number, new);
            result.ok_or(Exception::IllegalInstruction(inst.word))?;
        }
        self.write_register(inst.rd, old);
        Ok(())
    }

    /// Executes an atomic access.
    fn access_atomically<M: Memory>(&mut self, inst: &Inst, memory: &mut M) -> Result<(), Stop> {
        let address = self.read_register(inst.rs1);
        let size = if inst.wide { Size::Double } else { Size::Word };
        let op = match inst.op {
            Op::Lr => AmoOp::LoadReserved,
            Op::Sc => AmoOp::StoreConditional,
            Op::AmoSwap => AmoOp::Swap,
            Op::AmoAdd => AmoOp::Add,
            Op::AmoXor => AmoOp::Xor,
            Op::AmoAnd => AmoOp::And,
            Op::AmoOr => AmoOp::Or,
            Op::AmoMin => AmoOp::Min,
            Op::AmoMax => AmoOp::Max,
            Op::AmoMinu => AmoOp::Minu,
            _ => AmoOp::Maxu,
        };
        let is_load = op == AmoOp::LoadReserved;
        let (acquire, release) = (inst.word >> 26 & 1 != 0, inst.word >> 25 & 1 != 0);
        let amo = Amo {
            op,
            size,
            operand: self.read_register(inst.rs2),
            acquire,
            release,
        };
        let is_aligned = address.is_multiple_of(size as u64);
        let reply = if is_aligned {
            memory.amo(address, amo, inst.rd)
        } else {
            Reply::Misaligned
        };
        // The status of a store-conditional is not data from memory, so it is not sign-extended.
        let fill = if op == AmoOp::StoreConditional {
            LoadExtension::Unsigned
        } else {
            LoadExtension::Signed(size)
        };
        match reply {
            Reply::Done(value) => self.write_register(inst.rd, fill.extend(value)),
            Reply::Later => self.mark_pending(inst.rd, fill),
            Reply::Wait => return Err(Stop::Wait),
            Reply::Misaligned if is_load => return Err(Exception::MisalignedLoad(address).into()),
            Reply::Fault if is_load => return Err(Exception::LoadFault(address).into()),
            Reply::PageFault if is_load => return Err(Exception::LoadPageFault(address).into()),
            other_reply => {
                return store_result(
                    address,
                    match other_reply {
                        Reply::Misaligned => Reply::Misaligned,
                        Reply::PageFault => Reply::PageFault,
                        _ => Reply::Fault,
                    },
                )
            }
        }
        Ok(())
    }
}

/// Converts the reply to an access without a return value.
#[inline(always)]
fn store_result(address: u64, reply: Reply<()>) -> Result<(), Stop> {
    match reply {
        Reply::Done(()) => Ok(()),
        Reply::Wait | Reply::Later => Err(Stop::Wait),
        Reply::Misaligned => Err(Exception::MisalignedStore(address).into()),
        Reply::Fault => Err(Exception::StoreFault(address).into()),
        Reply::PageFault => Err(Exception::StorePageFault(address).into()),
    }
}
