//! What a core asks of its memory. Every question may be answered with "wait".

use std::fmt;

/// How much of memory is accessed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Size {
    /// One byte.
    Byte = 1,
    /// Two bytes.
    Half = 2,
    /// Four bytes.
    Word = 4,
    /// Eight bytes.
    Double = 8,
}

/// The answer to an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<T> {
    /// It is done, and this was read.
    Done(T),
    /// It has begun, and [`crate::Hart::deliver`] will be called with what is read. The core goes on until it needs that.
    Later,
    /// It could not begin. Nothing has happened; the core asks again at its next step.
    Wait,
    /// No access of this size is possible there because of its alignment.
    Misaligned,
    /// There is nothing, or it may not be accessed in this way.
    Fault,
    /// The address is mapped to nothing.
    Unmapped,
}

impl<T> Reply<T> {
    /// This answer, with what was read changed.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reply<U> {
        match self {
            Reply::Done(value) => Reply::Done(change(value)),
            Reply::Later => Reply::Later,
            Reply::Wait => Reply::Wait,
            Reply::Misaligned => Reply::Misaligned,
            Reply::Fault => Reply::Fault,
            Reply::Unmapped => Reply::Unmapped,
        }
    }
}

/// What an atomic access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // They have the names of the standard.
pub enum AmoOp {
    /// A load that reserves its place.
    LoadReserved,
    /// A store if the place is reserved still. What it reads is 0 if it stored, otherwise 1.
    StoreConditional,
    Swap,
    Add,
    Xor,
    And,
    Or,
    Min,
    Max,
    Minu,
    Maxu,
}

impl AmoOp {
    /// What is stored where this has been read. (Reservations are the memory's matter.)
    pub fn result(self, old: u64, operand: u64, size: Size) -> u64 {
        // A word is compared as a word.
        let signed = |v: u64| {
            if size == Size::Word {
                i64::from(v as i32)
            } else {
                v as i64
            }
        };
        let unsigned = |v: u64| {
            if size == Size::Word {
                v & 0xffff_ffff
            } else {
                v
            }
        };
        let choose = |first: bool| if first { old } else { operand };
        match self {
            AmoOp::LoadReserved => old,
            AmoOp::StoreConditional | AmoOp::Swap => operand,
            AmoOp::Add => old.wrapping_add(operand),
            AmoOp::Xor => old ^ operand,
            AmoOp::And => old & operand,
            AmoOp::Or => old | operand,
            AmoOp::Min => choose(signed(old) <= signed(operand)),
            AmoOp::Max => choose(signed(old) >= signed(operand)),
            AmoOp::Minu => choose(unsigned(old) <= unsigned(operand)),
            AmoOp::Maxu => choose(unsigned(old) >= unsigned(operand)),
        }
    }
}

/// An atomic access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amo {
    /// What it does.
    pub op: AmoOp,
    /// A word or a double word.
    pub size: Size,
    /// Its operand; the upper half of a word's is nothing to go by.
    pub operand: u64,
    /// Later accesses of this core come behind it.
    pub acquire: bool,
    /// Earlier accesses of this core come before it.
    pub release: bool,
}

/// What a cache is to do with the block of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cbo {
    /// Drop it, whatever is in it.
    Invalidate,
    /// Write it back if it is dirty, and keep it.
    Clean,
    /// Write it back if it is dirty, and drop it.
    Flush,
}

/// What a block will soon be needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// To be executed.
    Execute,
    /// To be read.
    Read,
    /// To be written.
    Write,
}

impl Prefetch {
    /// The cache that a hint at this address is for, the one nearest to the core being 1.
    ///
    /// Zicbop names no level. Blocks have 64 bytes or more and offsets of hints are multiples of 32, so that one bit of the
    /// address is free: `prefetch.r 0(a0)`, where a block begins, is for the first cache, and `prefetch.r 32(a0)` for the
    /// second.
    pub fn level(at: u64) -> u8 {
        if at & 32 == 0 {
            1
        } else {
            2
        }
    }
}

/// Kinds of accesses, as a `fence` names them: the bits of writes, reads, output and input, the first being 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// These earlier accesses
    pub before: u8,
    /// are seen before these later ones.
    pub after: u8,
    /// Whether only order among reads, among writes and of writes behind reads is asked for (`fence.tso`).
    pub total_store_order: bool,
}

/// Memory as a core sees it.
///
/// Values are the low bytes of words, and memory is little-endian. `to` names the register that waits for a value: who
/// answers [`Reply::Later`] delivers to it.
pub trait Memory {
    /// Whether an answer may ever be [`Reply::Later`]. Cores of memories that never give it do not look for it.
    const SPLIT: bool = false;

    /// Reads half a word of an instruction; the address is even.
    fn fetch(&mut self, at: u64) -> Reply<u16>;
    /// Reads. Unread upper bytes are zero.
    fn load(&mut self, at: u64, size: Size, to: u8) -> Reply<u64>;
    /// Writes the low bytes.
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()>;
    /// Reads and writes at once. A misaligned one does not come here.
    fn amo(&mut self, at: u64, amo: Amo, to: u8) -> Reply<u64>;
    /// Orders accesses.
    fn fence(&mut self, fence: Fence) -> Reply<()>;
    /// What was stored is to be seen by fetches from now on.
    fn fence_i(&mut self) -> Reply<()>;
    /// Manages the block that the address lies in.
    fn cbo(&mut self, at: u64, what: Cbo) -> Reply<()>;
    /// Hints at later accesses. It never fails.
    fn prefetch(&mut self, at: u64, what: Prefetch);
}

/// Bytes from an address on, for one core: nothing waits, and misaligned accesses are fine. Block management does nothing.
#[derive(Clone)]
pub struct Flat {
    start: u64,
    bytes: Vec<u8>,
    /// The place that is reserved.
    reserved: Option<u64>,
}

impl fmt::Debug for Flat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes from {:#x}", self.bytes.len(), self.start)
    }
}

impl Flat {
    /// So many zeroes from there on.
    pub fn new(start: u64, length: usize) -> Flat {
        Flat {
            start,
            bytes: vec![0; length],
            reserved: None,
        }
    }

    /// The address behind the last one.
    pub fn end(&self) -> u64 {
        self.start.wrapping_add(self.bytes.len() as u64)
    }

    /// Where these bytes are kept, if all of them are.
    fn place(&self, at: u64, length: usize) -> Option<usize> {
        let place = usize::try_from(at.wrapping_sub(self.start)).ok()?;
        (place <= self.bytes.len().checked_sub(length)?).then_some(place)
    }

    /// These bytes, if all are there.
    pub fn bytes(&self, at: u64, length: usize) -> Option<&[u8]> {
        self.place(at, length)
            .map(|place| &self.bytes[place..place + length])
    }

    /// These bytes to be changed, if all are there.
    pub fn bytes_mut(&mut self, at: u64, length: usize) -> Option<&mut [u8]> {
        self.place(at, length)
            .map(|place| &mut self.bytes[place..place + length])
    }

    #[inline(always)]
    fn read<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let place = self.place(at, N)?;
        self.bytes[place..place + N].try_into().ok()
    }

    #[inline(always)]
    fn get(&self, at: u64, size: Size) -> Option<u64> {
        Some(match size {
            Size::Byte => u8::from_le_bytes(self.read(at)?).into(),
            Size::Half => u16::from_le_bytes(self.read(at)?).into(),
            Size::Word => u32::from_le_bytes(self.read(at)?).into(),
            Size::Double => u64::from_le_bytes(self.read(at)?),
        })
    }

    #[inline(always)]
    fn put(&mut self, at: u64, size: Size, value: u64) -> Option<()> {
        let length = size as usize;
        let bytes = self.bytes_mut(at, length)?;
        bytes.copy_from_slice(&value.to_le_bytes()[..length]);
        Some(())
    }
}

impl<T> From<Option<T>> for Reply<T> {
    fn from(found: Option<T>) -> Reply<T> {
        found.map_or(Reply::Fault, Reply::Done)
    }
}

impl Memory for Flat {
    #[inline(always)]
    fn fetch(&mut self, at: u64) -> Reply<u16> {
        self.read(at).map(u16::from_le_bytes).into()
    }

    #[inline(always)]
    fn load(&mut self, at: u64, size: Size, _to: u8) -> Reply<u64> {
        self.get(at, size).into()
    }

    #[inline(always)]
    fn store(&mut self, at: u64, size: Size, value: u64) -> Reply<()> {
        self.put(at, size, value).into()
    }

    fn amo(&mut self, at: u64, amo: Amo, _to: u8) -> Reply<u64> {
        let Some(old) = self.get(at, amo.size) else {
            return Reply::Fault;
        };
        match amo.op {
            AmoOp::LoadReserved => self.reserved = Some(at),
            AmoOp::StoreConditional if self.reserved.take() != Some(at) => return Reply::Done(1),
            _ => {
                self.put(at, amo.size, amo.op.result(old, amo.operand, amo.size));
            }
        }
        Reply::Done(if amo.op == AmoOp::StoreConditional {
            0
        } else {
            old
        })
    }

    fn fence(&mut self, _fence: Fence) -> Reply<()> {
        Reply::Done(())
    }

    fn fence_i(&mut self) -> Reply<()> {
        Reply::Done(())
    }

    fn cbo(&mut self, at: u64, _what: Cbo) -> Reply<()> {
        self.bytes(at, 1).map(|_| ()).into()
    }

    fn prefetch(&mut self, _at: u64, _what: Prefetch) {}
}
