//! Execution of threads on cores.
//!
//! A core has a window of instructions that have begun and not completed, in program order. An access may be performed
//! when the window holds no earlier instruction that it must wait for; kinds of cores differ in these waits. Cores do
//! not speculate: an instruction after a branch begins once the branch is resolved.

use cohkit_protocol::orders::{Issue, Orders};
use cohkit_protocol::threads::Accesses;

use crate::program::{
    location_at, Acquire, Address, Change, Class, Fence, Instruction, Location, Operand, Program,
    StoreVariant, Update,
};

/// Order in which a core performs the accesses of its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CoreKind {
    /// Program order: an access begins when the access before it has completed.
    InOrder,
    /// FIFO store buffer with forwarding to loads of the same thread.
    StoreBuffer,
    /// Out of order: accesses to different locations wait for each other only where these orders require it.
    Relaxed(Orders),
}

impl CoreKind {
    /// Returns true if `later` must wait until `earlier` has completed, whatever their locations.
    fn waits(self, earlier: &Instruction, later: &Instruction) -> bool {
        let fence = |i: &Instruction| matches!(i, Instruction::Fence(_));
        let in_class = |class: Class, i: &Instruction| class.has(i.reads(), i.writes());
        match (earlier, later) {
            // No instruction begins after an unresolved branch, so a fence of instruction fetches completes at once.
            (Instruction::Fence(Fence::InstructionSync), _)
            | (_, Instruction::Fence(Fence::InstructionSync)) => return false,
            // Full fences follow the rules of the kind of core, below.
            (Instruction::Fence(kind), _) if *kind != Fence::Full => {
                let orders_later = kind
                    .sides()
                    .is_some_and(|(_, orders_later)| in_class(orders_later, later));
                return fence(later) || orders_later;
            }
            (_, Instruction::Fence(kind)) if *kind != Fence::Full => {
                let orders_earlier = kind
                    .sides()
                    .is_some_and(|(orders_earlier, _)| in_class(orders_earlier, earlier));
                return fence(earlier) || orders_earlier;
            }
            (
                Instruction::Store { release: true, .. },
                Instruction::Load {
                    acquire: Acquire::Rcsc,
                    ..
                }
                | Instruction::Atomic { acquire: true, .. },
            ) => return true,
            _ => {}
        }
        match self {
            CoreKind::InOrder => true,
            CoreKind::StoreBuffer => !matches!(
                (earlier, later),
                (Instruction::Store { .. }, Instruction::Load { .. })
            ),
            CoreKind::Relaxed(orders) => {
                let waits = |a: &Issue| issues(later).iter().any(|&b| orders.waits(*a, b));
                issues(earlier).iter().any(waits)
            }
        }
    }
}

/// Operations of an instruction that [`Orders`] orders. An atomic access has two; computations and branches have none.
fn issues(instruction: &Instruction) -> &'static [Issue] {
    match *instruction {
        Instruction::Load {
            acquire: Acquire::None,
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
        // Only the axiomatic models execute these.
        | Instruction::LoadReserved { .. }
        | Instruction::StoreConditional { .. }
        | Instruction::Rcu(_) => &[],
    }
}

/// An instruction in the window: begun and not completed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct ActiveAccess {
    /// Index of the instruction in the thread's code.
    code_index: usize,
    /// Location accessed, or `None` for a fence.
    location: Option<Location>,
    /// Operand of a write: a register as long as its value is pending, then a number.
    value: Operand,
    /// Expected value of a compare-and-swap, in the same form.
    expected: Operand,
    /// True if the access has its value and only the acquire that follows an acquiring read is still outstanding.
    has_value: bool,
}

/// Request of a thread to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryRequest {
    /// Read of a location; true if the read acquires.
    Read(Location, bool),
    /// Write of a value to a location; true if the write releases. The last field selects the cache's access.
    Write(Location, i64, bool, StoreVariant),
    /// Atomic read and write of a location. The last field selects the cache's access.
    Update(Location, Update, StoreVariant),
}

impl MemoryRequest {
    /// Returns the location accessed.
    pub fn location(self) -> Location {
        match self {
            MemoryRequest::Read(at, _)
            | MemoryRequest::Write(at, ..)
            | MemoryRequest::Update(at, ..) => at,
        }
    }
}

/// State of a thread in execution. Its methods take the thread's code and the kind of core, which do not change.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Core {
    /// Index of the next instruction to begin; at least the length of the code at the end.
    next: usize,
    /// Register values. That of a pending register is the value before.
    pub registers: Vec<i64>,
    /// Instructions that have begun and not completed, in program order.
    window: Vec<ActiveAccess>,
    /// Fences and acquires that the thread requests from its cache; the core alone enforces the others.
    pub fence_support: FenceSupport,
}

/// Fences and acquires that need the cache. They have no location.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FenceSupport {
    /// True if the cache executes fences that order earlier stores.
    pub fences: bool,
    /// True if the cache executes fences that order only earlier loads, and fences of instruction fetches.
    pub loads: bool,
    /// True if the cache executes an acquire after each acquiring read.
    pub acquired: bool,
}

impl FenceSupport {
    /// Returns the fences and acquires that a protocol's caches execute, for cores that request an acquiring read and
    /// its acquire separately.
    pub fn of(accesses: &Accesses) -> FenceSupport {
        let acquired = accesses.acquire_fence.is_some();
        FenceSupport {
            fences: accesses.fence.is_some(),
            loads: acquired,
            acquired,
        }
    }
}

/// Kind of request in [`FenceSupport`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FenceKind {
    /// A fence that orders earlier stores.
    Fence,
    /// The acquire after an acquiring read, or that of a fence of loads.
    Acquire,
}

impl Core {
    /// Returns the threads of a program, before their first instructions. They request no fences from caches.
    pub fn all(program: &Program) -> Vec<Core> {
        let threads = program.threads.iter();
        let core = |registers: &Vec<i64>| Core {
            next: 0,
            registers: registers.clone(),
            window: Vec::new(),
            fence_support: FenceSupport::default(),
        };
        threads.map(|thread| core(&thread.registers)).collect()
    }

    /// Returns the value of an operand, or `None` while its register is pending.
    fn value(&self, code: &[Instruction], operand: Operand) -> Option<i64> {
        match operand {
            Operand::Number(value) => Some(value),
            Operand::Register(register) => {
                (!self.is_pending(code, register)).then(|| self.registers[register])
            }
        }
    }

    /// Returns true if an instruction in the window is still to write `register`.
    fn is_pending(&self, code: &[Instruction], register: usize) -> bool {
        let mut window = self.window.iter();
        window.any(|access| {
            !access.has_value && code[access.code_index].destination() == Some(register)
        })
    }

    /// Performs all steps that no other thread can observe: completes fences that need no cache, and begins
    /// instructions.
    pub fn settle(&mut self, code: &[Instruction], cores: CoreKind) {
        loop {
            let completed = (0..self.window.len()).find(|&at| {
                let is_fence = matches!(code[self.window[at].code_index], Instruction::Fence(_));
                is_fence
                    && self.requested_fence(code, at).is_none()
                    && self.is_ready(code, cores, at)
            });
            if let Some(at) = completed {
                self.window.remove(at);
            } else if !self.begin(code) {
                return;
            }
        }
    }

    /// Begins the next instruction. Returns false if there is none, or if it must wait for a register.
    fn begin(&mut self, code: &[Instruction]) -> bool {
        let Some(&instruction) = code.get(self.next) else {
            return false;
        };
        // Registers are not renamed: a pending register blocks its next writer.
        if instruction
            .destination()
            .is_some_and(|to| self.is_pending(code, to))
        {
            return false;
        }
        let resolved = |operand| match self.value(code, operand) {
            Some(value) => Operand::Number(value),
            None => operand,
        };
        let unused = Operand::Number(0);
        let location = match instruction.address() {
            None => None,
            Some(Address::Direct(location)) => Some(location),
            Some(Address::Indirect(register)) => {
                let address = self.value(code, Operand::Register(register));
                match address.and_then(location_at) {
                    Some(location) => Some(location),
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
                self.registers[to] = operation.apply(a, b);
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
            Instruction::Store { value, .. } => (resolved(value), unused),
            Instruction::Atomic { value, change, .. } => match change {
                Change::CompareAndSwap(expected) => (resolved(value), resolved(expected)),
                Change::Exchange | Change::FetchAdd | Change::FetchOp(_) => {
                    (resolved(value), unused)
                }
            },
            Instruction::Load { .. } | Instruction::Fence(_) => (unused, unused),
        };
        self.window.push(ActiveAccess {
            code_index: self.next,
            location,
            value,
            expected,
            has_value: false,
        });
        self.next += 1;
        true
    }

    /// Returns true if no earlier instruction in the window must complete before the instruction at `at`, whatever
    /// their locations.
    fn is_ready(&self, code: &[Instruction], cores: CoreKind, at: usize) -> bool {
        let effective_instruction = |access: &ActiveAccess| match code[access.code_index] {
            // Where copies may be stale until an acquire, reads after the fetch fence are current only if the fence
            // acquires.
            Instruction::Fence(Fence::InstructionSync) if self.fence_support.loads => {
                Instruction::Fence(Fence::Loads)
            }
            instruction => instruction,
        };
        let later = effective_instruction(&self.window[at]);
        let mut earlier_accesses = self.window[..at].iter();
        !earlier_accesses.any(|earlier| cores.waits(&effective_instruction(earlier), &later))
    }

    /// Returns the fence or acquire that the instruction at `at` in the window requests from its cache, if any.
    fn requested_fence(&self, code: &[Instruction], at: usize) -> Option<FenceKind> {
        let access = &self.window[at];
        match code[access.code_index] {
            Instruction::Fence(fence) => match fence.sides() {
                None | Some((Class::Reads, _)) => {
                    self.fence_support.loads.then_some(FenceKind::Acquire)
                }
                Some(_) => self.fence_support.fences.then_some(FenceKind::Fence),
            },
            _ => access.has_value.then_some(FenceKind::Acquire),
        }
    }

    /// Returns the last earlier instruction in the window that accesses the same location.
    fn same_location(&self, at: usize) -> Option<&ActiveAccess> {
        let location = self.window[at].location?;
        let mut earlier_accesses = self.window[..at].iter().rev();
        earlier_accesses.find(|earlier| earlier.location == Some(location))
    }

    /// Returns the memory request of the access at `at` in the window, if it may be issued now.
    fn request(&self, code: &[Instruction], cores: CoreKind, at: usize) -> Option<MemoryRequest> {
        let access = self.window[at];
        let location = access.location?;
        if access.has_value || !self.is_ready(code, cores, at) || self.same_location(at).is_some() {
            return None;
        }
        let (Operand::Number(value), Operand::Number(expected)) = (access.value, access.expected)
        else {
            return None;
        };
        Some(match code[access.code_index] {
            Instruction::Store { release, via, .. } => {
                MemoryRequest::Write(location, value, release, via)
            }
            Instruction::Atomic { change, via, .. } => MemoryRequest::Update(
                location,
                match change {
                    Change::Exchange => Update::Exchange(value),
                    Change::FetchAdd => Update::FetchAdd(value),
                    Change::CompareAndSwap(_) => Update::CompareAndSwap(expected, value),
                    Change::FetchOp(operation) => Update::FetchOp(operation, value),
                },
                via,
            ),
            Instruction::Load { acquire, .. } => {
                MemoryRequest::Read(location, acquire != Acquire::None)
            }
            _ => return None,
        })
    }

    /// Returns the memory requests that the thread may issue now, in program order, at most one per location.
    pub fn ready_requests<'c>(
        &'c self,
        code: &'c [Instruction],
        cores: CoreKind,
    ) -> impl Iterator<Item = MemoryRequest> + 'c {
        (0..self.window.len()).filter_map(move |at| self.request(code, cores, at))
    }

    /// Returns true if the thread may request this fence or acquire now.
    pub fn requests_fence(&self, code: &[Instruction], cores: CoreKind, kind: FenceKind) -> bool {
        self.requesting_position(code, cores, kind).is_some()
    }

    /// Returns the position in the window of the first instruction that may request it now.
    fn requesting_position(
        &self,
        code: &[Instruction],
        cores: CoreKind,
        kind: FenceKind,
    ) -> Option<usize> {
        let mut positions = 0..self.window.len();
        positions.find(|&at| {
            self.requested_fence(code, at) == Some(kind) && self.is_ready(code, cores, at)
        })
    }

    /// Returns the window positions of the loads that may be forwarded from outstanding stores of the same thread.
    /// Such a load may also wait until the store is in memory, and then find a newer value of another thread.
    pub fn forwards<'c>(
        &'c self,
        code: &'c [Instruction],
        cores: CoreKind,
    ) -> impl Iterator<Item = usize> + 'c {
        (0..self.window.len()).filter(move |&at| {
            let is_load = matches!(code[self.window[at].code_index], Instruction::Load { .. });
            is_load && self.forwardable_value(code, at).is_some() && self.is_ready(code, cores, at)
        })
    }

    /// Returns the value to forward to a load in the window. It is that of the thread's last outstanding store to the
    /// same location, if known.
    fn forwardable_value(&self, code: &[Instruction], at: usize) -> Option<i64> {
        let store = self.same_location(at)?;
        match (&code[store.code_index], store.value) {
            (Instruction::Store { .. }, Operand::Number(value)) => Some(value),
            _ => None,
        }
    }

    /// Completes the load at window position `at`, one of [`Core::forwards`], by store forwarding. Panics for other
    /// positions.
    pub fn forward(&mut self, code: &[Instruction], at: usize) {
        let value = self
            .forwardable_value(code, at)
            .expect("an earlier store with a known value");
        self.complete(code, at, value);
    }

    /// Completes the first fence or acquire of this kind that the thread has requested. Panics if there is none.
    pub fn complete_fence(&mut self, code: &[Instruction], cores: CoreKind, kind: FenceKind) {
        let position = self.requesting_position(code, cores, kind);
        self.window.remove(position.expect("a requested fence"));
    }

    /// Completes the thread's issued access to `location`. `value` is the value read, or the old value of an atomic
    /// access. Panics if there is no such access.
    pub fn complete_access(&mut self, code: &[Instruction], location: Location, value: i64) {
        // Only the first access to a location can have been issued.
        let mut window = self.window.iter();
        let position = window.position(|access| access.location == Some(location));
        self.complete(code, position.expect("an issued access"), value);
    }

    /// Completes the access at window position `at`: writes its destination register, and passes the value on to later
    /// accesses in the window. An acquiring read stays in the window if the cache is still to execute its acquire.
    fn complete(&mut self, code: &[Instruction], at: usize, value: i64) {
        let instruction = code[self.window[at].code_index];
        match self.fence_support.acquired && instruction.acquires() {
            true => self.window[at].has_value = true,
            false => _ = self.window.remove(at),
        }
        let Some(to) = instruction.destination() else {
            return;
        };
        self.registers[to] = value;
        for access in &mut self.window {
            for operand in [&mut access.value, &mut access.expected] {
                if *operand == Operand::Register(to) {
                    *operand = Operand::Number(value);
                }
            }
        }
    }

    /// Returns true if the thread has only stores left to perform.
    pub fn only_stores_left(&self, code: &[Instruction]) -> bool {
        let is_store =
            |access: &ActiveAccess| matches!(code[access.code_index], Instruction::Store { .. });
        self.next >= code.len() && self.window.iter().all(is_store)
    }

    /// Returns the code indices of the instructions in the window, with the locations that they access.
    pub fn active_instructions(&self) -> impl Iterator<Item = (usize, Option<Location>)> + '_ {
        self.window
            .iter()
            .map(|access| (access.code_index, access.location))
    }

    /// Returns true if all instructions have completed.
    pub fn stopped(&self, code: &[Instruction]) -> bool {
        self.next >= code.len() && self.window.is_empty()
    }
}
