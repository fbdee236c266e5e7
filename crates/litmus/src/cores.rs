//! Threads as they run on cores.
//!
//! A core has a window of instructions that have begun and not ended, in the order of the program. An access may be
//! performed when none that it waits for is before it there; cores differ in what waits for what. Cores foresee nothing:
//! behind a branch they begin when it is known where it leads.

use cohkit_protocol::orders::{Issue, Orders};
use cohkit_protocol::threads::Accesses;

use crate::program::{
    location_at, Acquire, Address, Change, Class, Fence, Instruction, Location, Operand, Program,
    Update, Via,
};

/// What stands between a thread and memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cores {
    /// Nothing: an access begins when the one before it has ended.
    InOrder,
    /// A buffer of stores, first in and first out, out of which its own thread reads.
    StoreBuffer,
    /// A window in which accesses of different lines wait for each other only where these orders say so.
    Relaxed(Orders),
}

impl Cores {
    /// Whether the later of two instructions of a thread waits until the earlier one has ended, whatever their locations.
    fn waits(self, earlier: &Instruction, later: &Instruction) -> bool {
        let fence = |i: &Instruction| matches!(i, Instruction::Fence(_));
        let in_class = |class: Class, i: &Instruction| class.has(i.reads(), i.writes());
        match (earlier, later) {
            // As nothing begins behind a branch before it is known where that leads, it is through at once.
            (Instruction::Fence(Fence::Fetch), _) | (_, Instruction::Fence(Fence::Fetch)) => {
                return false
            }
            // What a full fence keeps is in the orders of the cores.
            (Instruction::Fence(kind), _) if *kind != Fence::Full => {
                let after = kind
                    .sides()
                    .is_some_and(|(_, after)| in_class(after, later));
                return fence(later) || after;
            }
            (_, Instruction::Fence(kind)) if *kind != Fence::Full => {
                let before = kind
                    .sides()
                    .is_some_and(|(before, _)| in_class(before, earlier));
                return fence(earlier) || before;
            }
            (
                Instruction::Store { release: true, .. },
                Instruction::Load {
                    acquire: Acquire::Full,
                    ..
                }
                | Instruction::Atomic { acquire: true, .. },
            ) => return true,
            _ => {}
        }
        match self {
            Cores::InOrder => true,
            Cores::StoreBuffer => !matches!(
                (earlier, later),
                (Instruction::Store { .. }, Instruction::Load { .. })
            ),
            Cores::Relaxed(orders) => {
                let waits = |a: &Issue| issues(later).iter().any(|&b| orders.waits(*a, b));
                issues(earlier).iter().any(waits)
            }
        }
    }
}

/// What orders speak of, in an instruction that accesses or fences.
fn issues(instruction: &Instruction) -> &'static [Issue] {
    match *instruction {
        Instruction::Load {
            acquire: Acquire::No,
            ..
        } => &[Issue::Load],
        Instruction::Load { .. } => &[Issue::Acquire],
        Instruction::Store { release: false, .. } => &[Issue::Store],
        Instruction::Store { release: true, .. } => &[Issue::Release],
        Instruction::Atomic {
            acquire, release, ..
        } => match (acquire, release) {
            (false, false) => &[Issue::Load, Issue::Store],
            (true, false) => &[Issue::Acquire, Issue::Store],
            (false, true) => &[Issue::Load, Issue::Release],
            (true, true) => &[Issue::Acquire, Issue::Release],
        },
        Instruction::Fence(_) => &[Issue::Fence],
        Instruction::Compute { .. }
        | Instruction::Select { .. }
        | Instruction::Branch { .. }
        // No core runs these.
        | Instruction::LoadReserved { .. }
        | Instruction::StoreConditional { .. }
        | Instruction::Rcu(_) => &[],
    }
}

/// An instruction that has begun and not ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Begun {
    /// Its place in the thread.
    place: usize,
    /// The location that it accesses.
    at: Option<Location>,
    /// What it takes, a register for as long as that is not known.
    value: Operand,
    /// The same for what is compared.
    expected: Operand,
    /// Whether it has read, and only what follows a read that acquires is still to be asked for.
    read: bool,
}

/// What memory is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// To be read, and whether later accesses wait for it.
    Read(Location, bool),
    /// To be written, from the buffer or not, whether that waits for earlier accesses, and by which access.
    Write(Location, i64, bool, Via),
    /// Both at once, and by which access.
    Update(Location, Update, Via),
}

impl Wish {
    /// The location.
    pub fn location(self) -> Location {
        match self {
            Wish::Read(at, _) | Wish::Write(at, ..) | Wish::Update(at, ..) => at,
        }
    }
}

/// A thread as it runs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Core {
    next: usize,
    /// What the registers hold.
    pub registers: Vec<i64>,
    window: Vec<Begun>,
    /// What it asks memory for, and does not keep by itself.
    pub asks: Asks,
}

/// What is about no location, and memory takes part in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Asks {
    /// Fences that keep stores.
    pub fences: bool,
    /// Fences that keep loads alone.
    pub loads: bool,
    /// What follows a read that acquires.
    pub acquired: bool,
}

impl Asks {
    /// What the caches of a text take part in, if each read that acquires is asked for without what follows it.
    pub fn of(accesses: &Accesses) -> Asks {
        let acquired = accesses.acquired.is_some();
        Asks {
            fences: accesses.fence.is_some(),
            loads: acquired,
            acquired,
        }
    }
}

/// One of these.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Asked {
    /// A fence.
    Fence,
    /// What follows a read that acquires.
    Acquired,
}

impl Core {
    /// The threads of a program, before their first instructions.
    pub fn all(program: &Program) -> Vec<Core> {
        let threads = program.threads.iter();
        let core = |registers: &Vec<i64>| Core {
            next: 0,
            registers: registers.clone(),
            window: Vec::new(),
            asks: Asks::default(),
        };
        threads.map(|thread| core(&thread.registers)).collect()
    }

    /// The number that an operand is, if it is known.
    fn value(&self, code: &[Instruction], operand: Operand) -> Option<i64> {
        match operand {
            Operand::Number(value) => Some(value),
            Operand::Register(register) => {
                (!self.filled(code, register)).then(|| self.registers[register])
            }
        }
    }

    /// Whether an instruction that has begun is to fill a register.
    fn filled(&self, code: &[Instruction], register: usize) -> bool {
        let mut window = self.window.iter();
        window.any(|begun| !begun.read && code[begun.place].fills() == Some(register))
    }

    /// Does everything that nobody else can see.
    pub fn settle(&mut self, code: &[Instruction], cores: Cores) {
        loop {
            let through = (0..self.window.len()).find(|&at| {
                let fence = matches!(code[self.window[at].place], Instruction::Fence(_));
                fence && self.asked(code, at).is_none() && self.free(code, cores, at)
            });
            if let Some(at) = through {
                self.window.remove(at);
            } else if !self.begin(code) {
                return;
            }
        }
    }

    /// Begins the next instruction, if there is one that can.
    fn begin(&mut self, code: &[Instruction]) -> bool {
        let Some(&instruction) = code.get(self.next) else {
            return false;
        };
        // Registers have one name.
        if instruction.fills().is_some_and(|to| self.filled(code, to)) {
            return false;
        }
        let given = |operand| match self.value(code, operand) {
            Some(value) => Operand::Number(value),
            None => operand,
        };
        let none = Operand::Number(0);
        let at = match instruction.address() {
            None => None,
            Some(Address::Direct(at)) => Some(at),
            Some(Address::Indirect(register)) => {
                let address = self.value(code, Operand::Register(register));
                match address.and_then(location_at) {
                    Some(at) => Some(at),
                    None => return false,
                }
            }
        };
        let (value, expected) = match instruction {
            Instruction::Compute {
                to,
                operation,
                a,
                b,
            } => {
                let (Some(a), Some(b)) = (self.value(code, a), self.value(code, b)) else {
                    return false;
                };
                self.registers[to] = operation.of(a, b);
                self.next += 1;
                return true;
            }
            Instruction::Select {
                to,
                on,
                then,
                otherwise,
            } => {
                let chosen = match self.value(code, Operand::Register(on)) {
                    None => None,
                    Some(0) => self.value(code, otherwise),
                    Some(_) => self.value(code, then),
                };
                let Some(chosen) = chosen else {
                    return false;
                };
                self.registers[to] = chosen;
                self.next += 1;
                return true;
            }
            Instruction::LoadReserved { .. }
            | Instruction::StoreConditional { .. }
            | Instruction::Rcu(_) => return false,
            Instruction::Branch { on, zero, to } => {
                let Some(value) = self.value(code, Operand::Register(on)) else {
                    return false;
                };
                self.next = if (value == 0) == zero {
                    to
                } else {
                    self.next + 1
                };
                return true;
            }
            Instruction::Store { value, .. } => (given(value), none),
            Instruction::Atomic { value, change, .. } => match change {
                Change::SetIf(expected) => (given(value), given(expected)),
                Change::Set | Change::Add | Change::Apply(_) => (given(value), none),
            },
            Instruction::Load { .. } | Instruction::Fence(_) => (none, none),
        };
        self.window.push(Begun {
            place: self.next,
            at,
            value,
            expected,
            read: false,
        });
        self.next += 1;
        true
    }

    /// Whether nothing in the window has to end before an instruction there, whatever their locations.
    fn free(&self, code: &[Instruction], cores: Cores, at: usize) -> bool {
        let runs = |begun: &Begun| match code[begun.place] {
            // Where copies may be old until caches are asked, what is read behind it is new only if they are.
            Instruction::Fence(Fence::Fetch) if self.asks.loads => Instruction::Fence(Fence::Loads),
            instruction => instruction,
        };
        let later = runs(&self.window[at]);
        let mut before = self.window[..at].iter();
        !before.any(|earlier| cores.waits(&runs(earlier), &later))
    }

    /// What memory is asked for by what stands in the window, if it is about no location.
    fn asked(&self, code: &[Instruction], at: usize) -> Option<Asked> {
        let begun = &self.window[at];
        match code[begun.place] {
            Instruction::Fence(fence) => match fence.sides() {
                None | Some((Class::Reads, _)) => self.asks.loads.then_some(Asked::Acquired),
                Some(_) => self.asks.fences.then_some(Asked::Fence),
            },
            _ => begun.read.then_some(Asked::Acquired),
        }
    }

    /// The last instruction before one in the window that accesses the same location.
    fn same_place(&self, at: usize) -> Option<&Begun> {
        let location = self.window[at].at?;
        let mut before = self.window[..at].iter().rev();
        before.find(|earlier| earlier.at == Some(location))
    }

    /// What the access at a place of the window asks of memory now, if it may.
    fn wish(&self, code: &[Instruction], cores: Cores, at: usize) -> Option<Wish> {
        let begun = self.window[at];
        let location = begun.at?;
        if begun.read || !self.free(code, cores, at) || self.same_place(at).is_some() {
            return None;
        }
        let (Operand::Number(value), Operand::Number(expected)) = (begun.value, begun.expected)
        else {
            return None;
        };
        Some(match code[begun.place] {
            Instruction::Store { release, via, .. } => Wish::Write(location, value, release, via),
            Instruction::Atomic { change, via, .. } => Wish::Update(
                location,
                match change {
                    Change::Set => Update::Set(value),
                    Change::Add => Update::Add(value),
                    Change::SetIf(_) => Update::SetIf(expected, value),
                    Change::Apply(operation) => Update::Apply(operation, value),
                },
                via,
            ),
            Instruction::Load { acquire, .. } => Wish::Read(location, acquire != Acquire::No),
            _ => return None,
        })
    }

    /// What the thread asks of memory now, in the order of the program; each of another location.
    pub fn wishes<'c>(
        &'c self,
        code: &'c [Instruction],
        cores: Cores,
    ) -> impl Iterator<Item = Wish> + 'c {
        (0..self.window.len()).filter_map(move |at| self.wish(code, cores, at))
    }

    /// Whether the thread asks memory for this now.
    pub fn asks_for(&self, code: &[Instruction], cores: Cores, asked: Asked) -> bool {
        self.asking(code, cores, asked).is_some()
    }

    /// The first in the window that asks for it.
    fn asking(&self, code: &[Instruction], cores: Cores, asked: Asked) -> Option<usize> {
        let mut all = 0..self.window.len();
        all.find(|&at| self.asked(code, at) == Some(asked) && self.free(code, cores, at))
    }

    /// The loads that may be read out of stores of the thread itself that have not ended. They may as well wait until
    /// these are in memory, and find there what another thread has written since.
    pub fn forwards<'c>(
        &'c self,
        code: &'c [Instruction],
        cores: Cores,
    ) -> impl Iterator<Item = usize> + 'c {
        (0..self.window.len()).filter(move |&at| {
            let load = matches!(code[self.window[at].place], Instruction::Load { .. });
            load && self.stored(code, at).is_some() && self.free(code, cores, at)
        })
    }

    /// What the thread has stored last where a load in the window loads from, if that is known and has not ended.
    fn stored(&self, code: &[Instruction], at: usize) -> Option<i64> {
        let store = self.same_place(at)?;
        match (&code[store.place], store.value) {
            (Instruction::Store { .. }, Operand::Number(value)) => Some(value),
            _ => None,
        }
    }

    /// One of these loads is read so.
    pub fn forward(&mut self, code: &[Instruction], at: usize) {
        let value = self.stored(code, at).expect("there is such a store");
        self.end(code, at, value);
    }

    /// What memory was asked for has ended.
    pub fn answered(&mut self, code: &[Instruction], cores: Cores, asked: Asked) {
        let first = self.asking(code, cores, asked);
        self.window.remove(first.expect("it was asked for"));
    }

    /// An access of the thread has ended at a location, with this value.
    pub fn ended(&mut self, code: &[Instruction], at: Location, value: i64) {
        // Of one location, only the first can have begun.
        let mut window = self.window.iter();
        let first = window.position(|begun| begun.at == Some(at));
        self.end(code, first.expect("it was asked for"), value);
    }

    fn end(&mut self, code: &[Instruction], at: usize, value: i64) {
        let instruction = code[self.window[at].place];
        match self.asks.acquired && instruction.acquires() {
            true => self.window[at].read = true,
            false => _ = self.window.remove(at),
        }
        let Some(to) = instruction.fills() else {
            return;
        };
        self.registers[to] = value;
        for begun in &mut self.window {
            for operand in [&mut begun.value, &mut begun.expected] {
                if *operand == Operand::Register(to) {
                    *operand = Operand::Number(value);
                }
            }
        }
    }

    /// Whether all that is left are plain stores.
    pub fn through(&self, code: &[Instruction]) -> bool {
        let store = |begun: &Begun| matches!(code[begun.place], Instruction::Store { .. });
        self.next >= code.len() && self.window.iter().all(store)
    }

    /// The places of the instructions that have begun and not ended, with the locations that they access.
    pub fn open(&self) -> impl Iterator<Item = (usize, Option<Location>)> + '_ {
        self.window.iter().map(|begun| (begun.place, begun.at))
    }

    /// Whether it has nothing left to do.
    pub fn stopped(&self, code: &[Instruction]) -> bool {
        self.next >= code.len() && self.window.is_empty()
    }
}
