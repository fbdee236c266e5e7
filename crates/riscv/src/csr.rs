//! Control and status registers, traps, and the way back from them.

use crate::float::Rounding;
use std::fmt;

/// Why an instruction was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// A jump to this address, where no instruction of this core can stand.
    MisalignedFetch(u64),
    /// No instruction can be read there.
    FetchFault(u64),
    /// These bits are no instruction, or none that may be executed here.
    Illegal(u32),
    /// `ebreak`, there.
    Breakpoint(u64),
    /// A load that its alignment forbids.
    MisalignedLoad(u64),
    /// A load from where nothing is.
    LoadFault(u64),
    /// A store or atomic access that its alignment forbids.
    MisalignedStore(u64),
    /// A store or atomic access where nothing is.
    StoreFault(u64),
    /// A stack pointer that was to be moved down to this address, beyond the end of its stack.
    StackOverflow(u64),
    /// `ecall`, in user mode.
    UserCall,
    /// `ecall`, in machine mode.
    MachineCall,
    /// An instruction on a page that is not mapped.
    FetchUnmapped(u64),
    /// A load from a page that is not mapped.
    LoadUnmapped(u64),
    /// A store or atomic access to a page that is not mapped.
    StoreUnmapped(u64),
}

impl Exception {
    /// Its number and what `mtval` is to hold.
    pub fn cause(self) -> (u64, u64) {
        use Exception::*;
        match self {
            MisalignedFetch(at) => (0, at),
            FetchFault(at) => (1, at),
            Illegal(word) => (2, word.into()),
            Breakpoint(at) => (3, at),
            MisalignedLoad(at) => (4, at),
            LoadFault(at) => (5, at),
            MisalignedStore(at) => (6, at),
            // As a guard page below the stack would have it.
            StoreFault(at) | StackOverflow(at) => (7, at),
            UserCall => (8, 0),
            MachineCall => (11, 0),
            FetchUnmapped(at) => (12, at),
            LoadUnmapped(at) => (13, at),
            StoreUnmapped(at) => (15, at),
        }
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Exception::*;
        match *self {
            MisalignedFetch(at) => write!(f, "a jump to the misaligned address {at:#x}"),
            FetchFault(at) => write!(f, "no instruction can be read at {at:#x}"),
            Illegal(word) => write!(f, "an illegal instruction, {word:#x}"),
            Breakpoint(at) => write!(f, "a breakpoint at {at:#x}"),
            MisalignedLoad(at) => write!(f, "a misaligned load at {at:#x}"),
            LoadFault(at) => write!(f, "nothing can be loaded at {at:#x}"),
            MisalignedStore(at) => write!(f, "a misaligned store or atomic access at {at:#x}"),
            StoreFault(at) => write!(f, "nothing can be stored at {at:#x}"),
            StackOverflow(at) => write!(f, "stack overflow, down to {at:#x}"),
            UserCall | MachineCall => write!(f, "a call of the environment"),
            FetchUnmapped(at) => write!(f, "an instruction on no page, at {at:#x}"),
            LoadUnmapped(at) => write!(f, "a load from no page, at {at:#x}"),
            StoreUnmapped(at) => write!(f, "a store to no page, at {at:#x}"),
        }
    }
}

/// How much may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Programs.
    User = 0,
    /// Everything.
    Machine = 3,
}

const MIE: u64 = 1 << 3;
const MPIE: u64 = 1 << 7;
const MPP: u64 = 3 << 11;
/// What of `mstatus` never changes: floating point is on and its state taken for changed (`FS` and `SD`), and programs have
/// 64 bits (`UXL`).
const MSTATUS_FIXED: u64 = 3 << 13 | 1 << 63 | 2 << 32;
/// Interrupts of software, timer and outside.
const INTERRUPTS: u64 = 1 << 3 | 1 << 7 | 1 << 11;
/// The fields of `menvcfg` that let programs manage cache blocks: `CBIE` and `CBCFE`.
const MENVCFG: u64 = 7 << 4;

/// The registers. Those that are not listed hold nothing but what [`Csrs::read`] says.
#[derive(Clone, Debug)]
pub struct Csrs {
    /// How much may be done now.
    pub mode: Mode,
    /// The flags that floating-point instructions have raised.
    pub fflags: u8,
    /// The rounding mode, which need not be one.
    pub frm: u8,
    /// What `time` is. Whoever has a clock sets it.
    pub time: u64,
    /// Cycles so far. It is one more for each instruction, if no engine that knows better sets it.
    pub cycle: u64,
    /// Instructions carried out so far.
    pub instret: u64,
    /// Interrupts that are there, as the bits of `mip`. Whoever has devices sets it.
    pub interrupts: u64,
    /// The number of this core.
    pub hart: u64,
    /// The letters of the extensions there are, as `misa` has them.
    pub(crate) misa: u64,
    mstatus: u64,
    mie: u64,
    mtvec: u64,
    mscratch: u64,
    mepc: u64,
    mcause: u64,
    mtval: u64,
    mcounteren: u64,
    menvcfg: u64,
}

impl Csrs {
    /// As they are in the beginning: in machine mode, with counters and block management open to programs.
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

    /// The rounding mode of an instruction with this field; nothing if it is none.
    pub fn rounding(&self, rm: u8) -> Option<Rounding> {
        Rounding::new(if rm == 7 { self.frm } else { rm })
    }

    /// What a register holds; nothing if there is none of this number, or not in this mode.
    pub fn read(&self, number: u16) -> Option<u64> {
        if u16::from(self.mode as u8) < number >> 8 & 3 {
            return None;
        }
        let floats = self.misa & 1 << 5 != 0;
        let counter = |bit: u32| self.mode == Mode::Machine || self.mcounteren >> bit & 1 != 0;
        Some(match number {
            0x001 if floats => self.fflags.into(),
            0x002 if floats => self.frm.into(),
            0x003 if floats => (self.frm << 5 | self.fflags).into(),
            0xc00 if counter(0) => self.cycle,
            0xc01 if counter(1) => self.time,
            0xc02 if counter(2) => self.instret,
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
            // Vendor, architecture, implementation and configuration are not told.
            0xf11..=0xf13 | 0xf15 => 0,
            _ => return None,
        })
    }

    /// Writes a register, which keeps what it can hold. Nothing if there is none, or it may not be written.
    pub fn write(&mut self, number: u16, value: u64) -> Option<()> {
        self.read(number)?;
        if number >> 10 == 3 {
            return None;
        }
        // An address of an instruction of this core: even, and a multiple of four without short instructions.
        let place = !if self.misa & 4 != 0 { 1 } else { 3 };
        match number {
            0x001 => self.fflags = value as u8 & 31,
            0x002 => self.frm = value as u8 & 7,
            0x003 => (self.frm, self.fflags) = (value as u8 >> 5, value as u8 & 31),
            0x300 => {
                // A mode that there is not is not taken.
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
            // Two in `CBIE` is reserved.
            0x30a if value >> 4 & 3 != 2 => self.menvcfg = value & MENVCFG,
            0x340 => self.mscratch = value,
            0x341 => self.mepc = value & place,
            0x342 => self.mcause = value,
            0x343 => self.mtval = value,
            // The instruction that writes a counter does not count.
            0xb00 => self.cycle = value.wrapping_sub(1),
            0xb02 => self.instret = value.wrapping_sub(1),
            _ => {}
        }
        Some(())
    }

    /// Whether blocks may be invalidated; and if not, flushed instead.
    pub(crate) fn may_invalidate(&self) -> (bool, bool) {
        let field = self.menvcfg >> 4 & 3;
        let machine = self.mode == Mode::Machine;
        (machine || field == 3, field == 1)
    }

    /// Whether blocks may be cleaned and flushed.
    pub(crate) fn may_clean(&self) -> bool {
        self.mode == Mode::Machine || self.menvcfg >> 6 & 1 != 0
    }

    /// The number of the interrupt that is to be taken before the next instruction.
    pub fn interrupt(&self) -> Option<u64> {
        let open = self.mode == Mode::User || self.mstatus & MIE != 0;
        let there = self.interrupts & self.mie & INTERRUPTS;
        // The order is the standard's: from outside, of software, of the timer.
        let first = [11, 3, 7]
            .into_iter()
            .find(|number| there >> number & 1 != 0);
        first.filter(|_| open)
    }

    /// Enters machine mode because of an exception, or of an interrupt of this number, at this instruction. Gives where to
    /// go on.
    pub(crate) fn enter(&mut self, (cause, value): (u64, u64), interrupt: bool, pc: u64) -> u64 {
        let enabled = if self.mstatus & MIE != 0 { MPIE } else { 0 };
        self.mstatus = (self.mode as u64) << 11 | enabled;
        self.mode = Mode::Machine;
        (self.mepc, self.mtval) = (pc, value);
        self.mcause = cause | u64::from(interrupt) << 63;
        let vectored = interrupt && self.mtvec & 1 != 0;
        (self.mtvec & !3).wrapping_add(if vectored { 4 * cause } else { 0 })
    }

    /// Leaves machine mode; nothing if this is not in it. Gives where to go on.
    pub(crate) fn leave(&mut self) -> Option<u64> {
        if self.mode != Mode::Machine {
            return None;
        }
        self.mode = if self.mstatus & MPP == MPP {
            Mode::Machine
        } else {
            Mode::User
        };
        let enabled = if self.mstatus & MPIE != 0 { MIE } else { 0 };
        self.mstatus = MPIE | enabled;
        Some(self.mepc)
    }
}
