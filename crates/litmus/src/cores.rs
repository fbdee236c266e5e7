//! Threads as they run on cores.

use std::collections::VecDeque;

use crate::program::{Acquire, Change, Fence, Instruction, Location, Operand, Program, Update};

/// What stands between a thread and memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cores {
    /// Nothing: an access begins when the one before it has ended.
    InOrder,
    /// A buffer of stores, first in and first out, out of which its own thread reads.
    StoreBuffer,
}

/// A store in a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Buffered {
    to: Location,
    value: i64,
    release: bool,
}

/// What memory is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// To be read.
    Read(Location),
    /// To be written, from the buffer or not.
    Write(Location, i64),
    /// Both at once.
    Update(Location, Update),
}

impl Wish {
    /// The location.
    pub fn location(self) -> Location {
        match self {
            Wish::Read(at) | Wish::Write(at, _) | Wish::Update(at, _) => at,
        }
    }
}

/// A thread as it runs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Core {
    next: usize,
    /// What the registers hold.
    pub registers: Vec<i64>,
    buffer: VecDeque<Buffered>,
}

impl Core {
    /// The threads of a program, before their first instructions.
    pub fn all(program: &Program) -> Vec<Core> {
        let threads = program.threads.iter();
        let core = |registers: &Vec<i64>| Core {
            next: 0,
            registers: registers.clone(),
            buffer: VecDeque::new(),
        };
        threads.map(|thread| core(&thread.registers)).collect()
    }

    fn value(&self, operand: Operand) -> i64 {
        match operand {
            Operand::Number(value) => value,
            Operand::Register(register) => self.registers[register],
        }
    }

    /// Does everything that nobody else can see, up to the next load, atomic access or fence that waits.
    pub fn settle(&mut self, code: &[Instruction], cores: Cores) {
        while let Some(&instruction) = code.get(self.next) {
            match instruction {
                Instruction::Compute {
                    to,
                    operation,
                    a,
                    b,
                } => self.registers[to] = operation.of(self.value(a), self.value(b)),
                Instruction::Branch { on, zero, to } => {
                    if (self.registers[on] == 0) == zero {
                        self.next = to;
                        continue;
                    }
                }
                // Loads are in order, and stores leave in order.
                Instruction::Fence(Fence::Loads | Fence::Stores) => {}
                Instruction::Fence(Fence::Full) if self.buffer.is_empty() => {}
                Instruction::Store { to, value, release } if cores == Cores::StoreBuffer => {
                    let value = self.value(value);
                    self.buffer.push_back(Buffered { to, value, release });
                }
                _ => return,
            }
            self.next += 1;
        }
    }

    /// Whether a load waits for releases in the buffer.
    fn holds(&self, acquire: Acquire) -> bool {
        acquire == Acquire::Full && self.buffer.iter().any(|store| store.release)
    }

    /// Reads a location out of the thread's own buffer; false if its next instruction is none that could. It may as well
    /// wait until the store is in memory, and find there what another thread has written since.
    pub fn forward(&mut self, code: &[Instruction]) -> bool {
        let Some(&Instruction::Load { to, from, acquire }) = code.get(self.next) else {
            return false;
        };
        let held = self.holds(acquire);
        let mut own = self.buffer.iter().rev();
        match own.find(|store| store.to == from) {
            Some(store) if !held => {
                self.registers[to] = store.value;
                self.next += 1;
                true
            }
            _ => false,
        }
    }

    /// What the thread asks of memory now, if its next instruction may.
    pub fn access(&self, code: &[Instruction]) -> Option<Wish> {
        let empty = self.buffer.is_empty();
        match *code.get(self.next)? {
            Instruction::Load { from, acquire, .. } => {
                let held = self.holds(acquire);
                let own = self.buffer.iter().any(|store| store.to == from);
                (!held && !own).then_some(Wish::Read(from))
            }
            Instruction::Store { to, value, .. } => {
                empty.then(|| Wish::Write(to, self.value(value)))
            }
            Instruction::Atomic {
                at, change, value, ..
            } => empty.then(|| {
                let value = self.value(value);
                let update = match change {
                    Change::Set => Update::Set(value),
                    Change::Add => Update::Add(value),
                    Change::SetIf(expected) => Update::SetIf(self.value(expected), value),
                };
                Wish::Update(at, update)
            }),
            _ => None,
        }
    }

    /// What its buffer asks of memory now.
    pub fn drain(&self) -> Option<Wish> {
        let store = self.buffer.front()?;
        Some(Wish::Write(store.to, store.value))
    }

    /// The thread's access has ended with this value.
    pub fn ended(&mut self, code: &[Instruction], value: i64) {
        if let Some(Instruction::Load { to, .. } | Instruction::Atomic { to, .. }) =
            code.get(self.next)
        {
            self.registers[*to] = value;
        }
        self.next += 1;
    }

    /// The first store of its buffer has ended.
    pub fn drained(&mut self) {
        self.buffer.pop_front();
    }

    /// Whether all its instructions are behind it.
    pub fn through(&self, code: &[Instruction]) -> bool {
        self.next >= code.len()
    }

    /// Whether it has nothing left to do.
    pub fn stopped(&self, code: &[Instruction]) -> bool {
        self.through(code) && self.buffer.is_empty()
    }
}
