//! Interface between a core and its memory. Memory may answer every request with "wait".

use std::fmt;

/// Width of an access, in bytes.
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

/// Response of memory to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<T> {
    /// Completed, with the value read.
    Done(T),
    /// Accepted; [`crate::Hart::deliver`] supplies the value later. Only for loads and atomic accesses. The core
    /// continues until an instruction needs the value.
    Later,
    /// Not accepted, without any effect. The core retries at its next step.
    Wait,
    /// Refused: the access is misaligned, and its alignment is not supported at this address.
    Misaligned,
    /// Refused: no memory at this address, or the access is not permitted there.
    Fault,
    /// Refused: no page maps the address, or its page does not permit the access.
    PageFault,
}

impl<T> Reply<T> {
    /// Applies `change` to the value read, if the access completed.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reply<U> {
        match self {
            Reply::Done(value) => Reply::Done(change(value)),
            Reply::Later => Reply::Later,
            Reply::Wait => Reply::Wait,
            Reply::Misaligned => Reply::Misaligned,
            Reply::Fault => Reply::Fault,
            Reply::PageFault => Reply::PageFault,
        }
    }
}

/// Operation of an atomic access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // They have the names of the standard.
pub enum AmoOp {
    /// Load-reserved: reads the location and reserves it.
    LoadReserved,
    /// Store-conditional: stores only if the reservation still holds. Returns 0 on success and 1 on failure.
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
    /// Value to store, given the `old` value. Comparisons of words use only the low 32 bits. Memory handles
    /// reservations.
    pub fn result(self, old: u64, operand: u64, size: Size) -> u64 {
        // A word is compared as a word.
        let signed = |value: u64| {
            if size == Size::Word {
                i64::from(value as i32)
            } else {
                value as i64
            }
        };
        let unsigned = |value: u64| {
            if size == Size::Word {
                value & 0xffff_ffff
            } else {
                value
            }
        };
        let choose = |keeps_old: bool| if keeps_old { old } else { operand };
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
    /// Operation.
    pub op: AmoOp,
    /// [`Size::Word`] or [`Size::Double`].
    pub size: Size,
    /// Operand. The upper half of a word's operand is unspecified.
    pub operand: u64,
    /// Acquire (`.aq`): later accesses of this core are ordered after this one.
    pub acquire: bool,
    /// Release (`.rl`): earlier accesses of this core are ordered before this one.
    pub release: bool,
}

/// Cache-block management operation (Zicbom).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cbo {
    /// Drops the block without a write-back.
    Invalidate,
    /// Writes the block back if dirty, and keeps it.
    Clean,
    /// Writes the block back if dirty, and drops it.
    Flush,
}

/// Kind of access that a prefetch anticipates (Zicbop).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// Instruction fetch.
    Execute,
    /// Load.
    Read,
    /// Store.
    Write,
}

impl Prefetch {
    /// Target cache level of a prefetch at this address: 1 is the cache nearest to the core.
    ///
    /// Zicbop names no level. Blocks have at least 64 bytes and prefetch offsets are multiples of 32, so bit 5 of the
    /// address is free. `prefetch.r 0(a0)`, at the start of a block, targets level 1; `prefetch.r 32(a0)` targets level
    /// 2.
    pub fn level(address: u64) -> u8 {
        if address & 32 == 0 {
            1
        } else {
            2
        }
    }
}

/// Access kinds that a `fence` orders, as bit sets: bit 0 writes, bit 1 reads, bit 2 device output, bit 3 device input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Predecessor set: earlier accesses, which become visible before the accesses of the successor set.
    pub predecessors: u8,
    /// Successor set: later accesses.
    pub successors: u8,
    /// True for `fence.tso`: orders reads before reads and writes, and writes before writes, but not writes before
    /// reads.
    pub total_store_order: bool,
}

/// Memory as seen by one core.
///
/// Values are in the low bytes of words; memory is little-endian. `destination` is the register that receives
/// the value. A memory that answers [`Reply::Later`] must deliver the value to this register.
pub trait Memory {
    /// True if the memory ever answers [`Reply::Later`]. If false, cores do not check for outstanding loads.
    const SPLIT: bool = false;

    /// Fetches 16 bits of an instruction from an even address.
    fn fetch(&mut self, address: u64) -> Reply<u16>;
    /// Loads a value. Its unused upper bytes are zero.
    fn load(&mut self, address: u64, size: Size, destination: u8) -> Reply<u64>;
    /// Stores the low `size` bytes of `value`.
    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()>;
    /// Performs an atomic access. Cores reject misaligned ones before this call.
    fn amo(&mut self, address: u64, amo: Amo, destination: u8) -> Reply<u64>;
    /// Orders accesses.
    fn fence(&mut self, fence: Fence) -> Reply<()>;
    /// Makes all previous stores visible to later fetches (`fence.i`).
    fn fence_i(&mut self) -> Reply<()>;
    /// Manages the cache block that contains the address. The memory determines the size of a block.
    fn cbo(&mut self, address: u64, op: Cbo) -> Reply<()>;
    /// Prefetches the block that contains the address. Never fails.
    fn prefetch(&mut self, address: u64, op: Prefetch);
}

/// A range of bytes for one core. Accesses complete at once, misaligned accesses are allowed, accesses out of range
/// fault, and block management has no effect.
#[derive(Clone)]
pub struct FlatMemory {
    /// First address.
    start: u64,
    /// Contents, from `start` on.
    bytes: Vec<u8>,
    /// Reserved address, if any.
    reserved: Option<u64>,
}

impl fmt::Debug for FlatMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes from {:#x}", self.bytes.len(), self.start)
    }
}

impl FlatMemory {
    /// Creates `length` zero bytes from address `start` on.
    pub fn new(start: u64, length: usize) -> FlatMemory {
        FlatMemory {
            start,
            bytes: vec![0; length],
            reserved: None,
        }
    }

    /// First address after the range.
    pub fn end(&self) -> u64 {
        self.start.wrapping_add(self.bytes.len() as u64)
    }

    /// Index of `address` in `bytes`, if the whole access is in range.
    fn index_of(&self, address: u64, length: usize) -> Option<usize> {
        let index = usize::try_from(address.wrapping_sub(self.start)).ok()?;
        (index <= self.bytes.len().checked_sub(length)?).then_some(index)
    }

    /// Returns `length` bytes from `address` on, or `None` if any of them is out of range.
    pub fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.index_of(address, length)
            .map(|index| &self.bytes[index..index + length])
    }

    /// Returns `length` bytes for modification, or `None` if any of them is out of range.
    pub fn bytes_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        self.index_of(address, length)
            .map(|index| &mut self.bytes[index..index + length])
    }

    /// Reads `N` bytes; `None` if any of them is out of range.
    #[inline(always)]
    fn read<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let index = self.index_of(address, N)?;
        self.bytes[index..index + N].try_into().ok()
    }

    /// Reads a value, zero-extended; `None` if any byte of it is out of range.
    #[inline(always)]
    fn get(&self, address: u64, size: Size) -> Option<u64> {
        Some(match size {
            Size::Byte => u8::from_le_bytes(self.read(address)?).into(),
            Size::Half => u16::from_le_bytes(self.read(address)?).into(),
            Size::Word => u32::from_le_bytes(self.read(address)?).into(),
            Size::Double => u64::from_le_bytes(self.read(address)?),
        })
    }

    /// Writes the low bytes of a value; `None` if any byte of it is out of range.
    #[inline(always)]
    fn put(&mut self, address: u64, size: Size, value: u64) -> Option<()> {
        let length = size as usize;
        let bytes = self.bytes_mut(address, length)?;
        bytes.copy_from_slice(&value.to_le_bytes()[..length]);
        Some(())
    }
}

impl<T> From<Option<T>> for Reply<T> {
    fn from(value: Option<T>) -> Reply<T> {
        value.map_or(Reply::Fault, Reply::Done)
    }
}

impl Memory for FlatMemory {
    #[inline(always)]
    fn fetch(&mut self, address: u64) -> Reply<u16> {
        self.read(address).map(u16::from_le_bytes).into()
    }

    #[inline(always)]
    fn load(&mut self, address: u64, size: Size, _destination: u8) -> Reply<u64> {
        self.get(address, size).into()
    }

    #[inline(always)]
    fn store(&mut self, address: u64, size: Size, value: u64) -> Reply<()> {
        self.put(address, size, value).into()
    }

    fn amo(&mut self, address: u64, amo: Amo, _destination: u8) -> Reply<u64> {
        let Some(old) = self.get(address, amo.size) else {
            return Reply::Fault;
        };
        match amo.op {
            AmoOp::LoadReserved => self.reserved = Some(address),
            AmoOp::StoreConditional if self.reserved.take() != Some(address) => {
                return Reply::Done(1)
            }
            _ => {
                self.put(address, amo.size, amo.op.result(old, amo.operand, amo.size));
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

    fn cbo(&mut self, address: u64, _op: Cbo) -> Reply<()> {
        self.bytes(address, 1).map(|_| ()).into()
    }

    fn prefetch(&mut self, _address: u64, _op: Prefetch) {}
}
