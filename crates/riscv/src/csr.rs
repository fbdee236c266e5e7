//! Control and status registers (CSRs), trap entry and trap return.

use crate::float::Rounding;
use std::fmt;

/// Exception raised by an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// Jump to a misaligned address.
    MisalignedFetch(u64),
    /// Instruction access fault at this address.
    FetchFault(u64),
    /// Illegal instruction: these bits encode none, or none that is permitted in this mode. A 16-bit instruction is in
    /// the low half.
    IllegalInstruction(u32),
    /// `ebreak` at this address.
    Breakpoint(u64),
    /// Misaligned load, at this address.
    MisalignedLoad(u64),
    /// Load access fault, at this address.
    LoadFault(u64),
    /// Misaligned store or atomic access, at this address.
    MisalignedStore(u64),
    /// Store or atomic access fault, at this address.
    StoreFault(u64),
    /// Stack overflow: the stack pointer would move to this address, below a stack limit.
    StackOverflow(u64),
    /// `ecall` in user mode.
    UserCall,
    /// `ecall` in machine mode.
    MachineCall,
    /// Instruction page fault, at this address.
    FetchPageFault(u64),
    /// Load page fault, at this address.
    LoadPageFault(u64),
    /// Store or atomic page fault, at this address.
    StorePageFault(u64),
}

impl Exception {
    /// Values for `mcause` and `mtval`.
    pub fn cause(self) -> (u64, u64) {
        use Exception::*;
        match self {
            MisalignedFetch(address) => (0, address),
            FetchFault(address) => (1, address),
            IllegalInstruction(word) => (2, word.into()),
            Breakpoint(address) => (3, address),
            MisalignedLoad(address) => (4, address),
            LoadFault(address) => (5, address),
            MisalignedStore(address) => (6, address),
            // A stack overflow has the cause of a store to a guard page below the stack.
            StoreFault(address) | StackOverflow(address) => (7, address),
            UserCall => (8, 0),
            MachineCall => (11, 0),
            FetchPageFault(address) => (12, address),
            LoadPageFault(address) => (13, address),
            StorePageFault(address) => (15, address),
        }
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Exception::*;
        match *self {
            MisalignedFetch(address) => write!(f, "a jump to the misaligned address {address:#x}"),
            FetchFault(address) => write!(f, "instruction access fault at {address:#x}"),
            IllegalInstruction(word) => write!(f, "an illegal instruction, {word:#x}"),
            Breakpoint(address) => write!(f, "a breakpoint at {address:#x}"),
            MisalignedLoad(address) => write!(f, "a misaligned load at {address:#x}"),
            LoadFault(address) => write!(f, "load access fault at {address:#x}"),
            MisalignedStore(address) => {
                write!(f, "a misaligned store or atomic access at {address:#x}")
            }
            StoreFault(address) => write!(f, "store/AMO access fault at {address:#x}"),
            StackOverflow(address) => write!(f, "stack overflow, down to {address:#x}"),
            UserCall | MachineCall => write!(f, "an environment call"),
            FetchPageFault(address) => write!(f, "instruction page fault at {address:#x}"),
            LoadPageFault(address) => write!(f, "load page fault at {address:#x}"),
            StorePageFault(address) => write!(f, "store/AMO page fault at {address:#x}"),
        }
    }
}

/// Privilege level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// User mode.
    User = 0,
    /// Machine mode.
    Machine = 3,
}

/// Bit of `mstatus`: interrupt enable.
const MIE: u64 = 1 << 3;
/// Bit of `mstatus`: interrupt enable before the last trap.
const MPIE: u64 = 1 << 7;
/// Field of `mstatus`: privilege level before the last trap.
const MPP: u64 = 3 << 11;
/// Constant bits of `mstatus`: floating point enabled and dirty (`FS` = 3, `SD` = 1), and 64-bit user mode (`UXL` = 2).
const MSTATUS_FIXED: u64 = 3 << 13 | 1 << 63 | 2 << 32;
/// Interrupt bits of `mip` and `mie`: software, timer and external.
const INTERRUPTS: u64 = 1 << 3 | 1 << 7 | 1 << 11;
/// Fields of `menvcfg` that permit block management in user mode: `CBIE` and `CBCFE`.
const MENVCFG: u64 = 7 << 4;

/// Control and status registers. A register without a field here has the value that [`Csrs::read`] returns.
#[derive(Clone, Debug)]
pub struct Csrs {
    /// Current privilege level.
    pub mode: Mode,
    /// Accrued floating-point exception flags, of which the low 5 bits are used.
    pub fflags: u8,
    /// Dynamic rounding mode, 0 to 7. Its value may be reserved.
    pub frm: u8,
    /// Value of `time`, in a unit that the owner of the clock chooses when setting it.
    pub time: u64,
    /// Cycles so far. Incremented by one per instruction, unless a timed engine sets it to its own time.
    pub cycle: u64,
    /// Instructions completed so far.
    pub instret: u64,
    /// Pending interrupts, as bits of `mip`. Set by the owner of the devices.
    pub interrupts: u64,
    /// Number of this core (`mhartid`).
    pub hart: u64,
    /// Value of `misa`: width, and one bit per extension letter.
    pub(crate) misa: u64,
    /// Written bits of `mstatus`; [`MSTATUS_FIXED`] is added when it is read.
    mstatus: u64,
    /// Enabled interrupts, as bits of `mip`.
    mie: u64,
    /// Address of the trap handler; bit 0 selects one entry per interrupt.
    mtvec: u64,
    /// Free for the handler.
    mscratch: u64,
    /// `pc` at the last trap.
    mepc: u64,
    /// Cause of the last trap; the highest bit is set for an interrupt.
    mcause: u64,
    /// Address or instruction of the last exception.
    mtval: u64,
    /// Counters visible in user mode: bits 0 to 2 are `cycle`, `time` and `instret`.
    mcounteren: u64,
    /// Block management permitted in user mode; see [`MENVCFG`].
    menvcfg: u64,
}

impl Csrs {
    /// Reset state: machine mode, with counters and block management enabled for user mode.
    pub(crate) fn new(hart: u64, misa: u64) -> Csrs {
        Csrs {
            mode: Mode::Machine,
            fflags: 0,
            frm: 0,
            time: 0,
            cycle: 0,
            instret: 0,
            interrupts: 0,
            hart,
            misa,
            mstatus: 0,
            mie: 0,
            mtvec: 0,
            mscratch: 0,
            mepc: 0,
            mcause: 0,
            mtval: 0,
            mcounteren: 7,
            menvcfg: MENVCFG,
        }
    }

    /// Rounding mode for this value of field `rm` (7 selects `frm`); `None` if it is reserved.
    pub fn rounding(&self, rm: u8) -> Option<Rounding> {
        Rounding::new(if rm == 7 { self.frm } else { rm })
    }

    /// Value of the register with this 12-bit number; `None` if it does not exist or is not accessible in the current
    /// mode.
    pub fn read(&self, number: u16) -> Option<u64> {
        if u16::from(self.mode as u8) < number >> 8 & 3 {
            return None;
        }
        let has_floats = self.misa & 1 << 5 != 0;
        let is_counter_visible =
            |bit: u32| self.mode == Mode::Machine || self.mcounteren >> bit & 1 != 0;
        Some(match number {
            0x001 if has_floats => self.fflags.into(),
            0x002 if has_floats => self.frm.into(),
            0x003 if has_floats => (self.frm << 5 | self.fflags).into(),
            0xc00 if is_counter_visible(0) => self.cycle,
            0xc01 if is_counter_visible(1) => self.time,
            0xc02 if is_counter_visible(2) => self.instret,
            0x300 => self.mstatus | MSTATUS_FIXED,
            0x301 => self.misa,
            0x304 => self.mie,
            0x305 => self.mtvec,
            0x306 => self.mcounteren,
            0x30a => self.menvcfg,
            0x340 => self.mscratch,
            0x341 => self.mepc,
            0x342 => self.mcause,
            0x343 => self.mtval,
            0x344 => self.interrupts & INTERRUPTS,
            0xb00 => self.cycle,
            0xb02 => self.instret,
            0xf14 => self.hart,
            // Vendor, architecture, implementation and configuration are not provided and read as zero.
            0xf11..=0xf13 | 0xf15 => 0,
            _ => return None,
        })
    }

    /// Writes a register; unsupported bits are ignored. Returns `None` if the register does not exist or is read-only.
    pub fn write(&mut self, number: u16, value: u64) -> Option<()> {
        self.read(number)?;
        if number >> 10 == 3 {
            return None;
        }
        // Instruction addresses: even, and multiples of four without extension C.
        let address_mask = !if self.misa & 4 != 0 { 1 } else { 3 };
        match number {
            0x001 => self.fflags = value as u8 & 31,
            0x002 => self.frm = value as u8 & 7,
            0x003 => (self.frm, self.fflags) = (value as u8 >> 5, value as u8 & 31),
            0x300 => {
                // An unsupported mode in `MPP` is ignored.
                let mpp = if matches!(value & MPP, 0 | MPP) {
                    value & MPP
                } else {
                    self.mstatus & MPP
                };
                self.mstatus = value & (MIE | MPIE) | mpp;
            }
            0x304 => self.mie = value & INTERRUPTS,
            0x305 => self.mtvec = value & !2,
            0x306 => self.mcounteren = value & 7,
            // Value 2 of `CBIE` is reserved.
            0x30a if value >> 4 & 3 != 2 => self.menvcfg = value & MENVCFG,
            0x340 => self.mscratch = value,
            0x341 => self.mepc = value & address_mask,
            0x342 => self.mcause = value,
            0x343 => self.mtval = value,
            // The writing instruction is not counted: the increment that follows it restores `value`.
            0xb00 => self.cycle = value.wrapping_sub(1),
            0xb02 => self.instret = value.wrapping_sub(1),
            _ => {}
        }
        Some(())
    }

    /// Permission for `cbo.inval` in the current mode: true if it may invalidate, and true if it flushes instead. If
    /// neither is true, the instruction is illegal.
    pub(crate) fn may_invalidate(&self) -> (bool, bool) {
        let field = self.menvcfg >> 4 & 3;
        let is_machine = self.mode == Mode::Machine;
        (is_machine || field == 3, field == 1)
    }

    /// True if `cbo.clean` and `cbo.flush` are permitted in the current mode.
    pub(crate) fn may_clean(&self) -> bool {
        self.mode == Mode::Machine || self.menvcfg >> 6 & 1 != 0
    }

    /// Number of the enabled pending interrupt with the highest priority, if any.
    pub fn pending_interrupt(&self) -> Option<u64> {
        let is_enabled = self.mode == Mode::User || self.mstatus & MIE != 0;
        let pending = self.interrupts & self.mie & INTERRUPTS;
        // Priority of the privileged specification: external, software, timer.
        let highest = [11, 3, 7]
            .into_iter()
            .find(|number| pending >> number & 1 != 0);
        highest.filter(|_| is_enabled)
    }

    /// Enters machine mode for the trap (`mcause`, `mtval`) at `pc`. Returns the address of the handler.
    pub(crate) fn enter_trap(
        &mut self,
        (cause, value): (u64, u64),
        is_interrupt: bool,
        pc: u64,
    ) -> u64 {
        let saved_enable = if self.mstatus & MIE != 0 { MPIE } else { 0 };
        self.mstatus = (self.mode as u64) << 11 | saved_enable;
        self.mode = Mode::Machine;
        (self.mepc, self.mtval) = (pc, value);
        self.mcause = cause | u64::from(is_interrupt) << 63;
        let is_vectored = is_interrupt && self.mtvec & 1 != 0;
        (self.mtvec & !3).wrapping_add(if is_vectored { 4 * cause } else { 0 })
    }

    /// Executes `mret`: leaves machine mode and returns the target address; `None` outside machine mode.
    pub(crate) fn return_from_trap(&mut self) -> Option<u64> {
        if self.mode != Mode::Machine {
            return None;
        }
        self.mode = if self.mstatus & MPP == MPP {
            Mode::Machine
        } else {
            Mode::User
        };
        let restored_enable = if self.mstatus & MPIE != 0 { MIE } else { 0 };
        self.mstatus = MPIE | restored_enable;
        Some(self.mepc)
    }
}
