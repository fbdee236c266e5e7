//! Litmus tests: programs of a few threads, their conditions, and their outcomes.

use std::collections::BTreeMap;
use std::fmt;

/// A register of a thread: index into [`Thread::registers`].
pub type Register = usize;

/// A location: index into [`Program::locations`].
pub type Location = u8;

/// Address of the first location. Registers and locations that hold addresses hold these numbers.
const ADDRESSES: i64 = 0x5a5a_0000_0000_0000;
/// Distance between the addresses of adjacent locations, in bytes.
const STRIDE: i64 = 1 << 16;

/// Returns the address of a location, as a value.
pub(crate) fn address_of(location: Location) -> i64 {
    ADDRESSES + i64::from(location) * STRIDE
}

/// Returns the location at an address, or `None` for a value that is not an address. The program may have fewer
/// locations.
pub(crate) fn location_at(address: i64) -> Option<Location> {
    let offset = address.wrapping_sub(ADDRESSES);
    let location = Location::try_from(offset / STRIDE).ok()?;
    (offset % STRIDE == 0).then_some(location)
}

/// The location of an access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Address {
    /// A location that is known before the program runs.
    Direct(Location),
    /// The location whose address a register holds.
    Indirect(Register),
}

impl Address {
    /// Returns the location, if it is known before the program runs.
    pub fn direct(self) -> Option<Location> {
        match self {
            Address::Direct(location) => Some(location),
            Address::Indirect(_) => None,
        }
    }
}

impl From<Location> for Address {
    fn from(location: Location) -> Address {
        Address::Direct(location)
    }
}

/// Source operand of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operand {
    /// A constant.
    Number(i64),
    /// The value of a register.
    Register(Register),
}

/// Arithmetic, logical or comparison operation on two 64-bit values. Arithmetic wraps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum Operation {
    /// The sum.
    Add,
    /// The first minus the second.
    Subtract,
    /// Bitwise conjunction.
    And,
    /// Bitwise disjunction.
    Or,
    /// Bitwise exclusive disjunction.
    Xor,
    /// 1 if both are equal, otherwise 0.
    Equal,
    /// 1 if the first is less in a signed comparison, otherwise 0.
    Less,
    /// The first, shifted left by the second modulo 64.
    ShiftLeft,
    /// The first, arithmetically shifted right by the second modulo 64.
    ShiftRight,
}

impl Operation {
    /// Returns the result of the operation on `a` and `b`.
    pub fn apply(self, a: i64, b: i64) -> i64 {
        match self {
            Operation::Add => a.wrapping_add(b),
            Operation::Subtract => a.wrapping_sub(b),
            Operation::And => a & b,
            Operation::Or => a | b,
            Operation::Xor => a ^ b,
            Operation::Equal => i64::from(a == b),
            Operation::Less => i64::from(a < b),
            Operation::ShiftLeft => a.wrapping_shl(b as u32 & 63),
            Operation::ShiftRight => a.wrapping_shr(b as u32 & 63),
        }
    }
}

/// New value that an atomic access computes from the old one, with known operands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Update {
    /// Exchange: this value.
    Exchange(i64),
    /// The old value plus this one, wrapping.
    FetchAdd(i64),
    /// Compare-and-swap: the second value if the old value equals the first, else the old value.
    CompareAndSwap(i64, i64),
    /// The result of an operation on the old value and this one.
    FetchOp(Operation, i64),
}

impl Update {
    /// Returns the new value, given the old one.
    pub fn apply(self, old_value: i64) -> i64 {
        match self {
            Update::Exchange(value) => value,
            Update::FetchAdd(value) => old_value.wrapping_add(value),
            Update::CompareAndSwap(expected, value) if old_value == expected => value,
            Update::CompareAndSwap(..) => old_value,
            Update::FetchOp(operation, value) => operation.apply(old_value, value),
        }
    }
}

/// Change of a word by an atomic access, with operands from its instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Change {
    /// Exchange: the operand replaces the old value.
    Exchange,
    /// Fetch-and-add of the operand.
    FetchAdd,
    /// Compare-and-swap: the operand is written if the old value equals this one; otherwise nothing is written.
    CompareAndSwap(Operand),
    /// The result of an operation on the old value and the operand replaces the old value.
    FetchOp(Operation),
}

/// Acquire ordering of a load.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Acquire {
    /// None: a plain load.
    None,
    /// Ordered before all later accesses of the thread; AArch64's `LDAPR`.
    Rcpc,
    /// Also ordered after all earlier releases of the thread; AArch64's `LDAR`.
    Rcsc,
}

/// A class of accesses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Accesses that read, atomic accesses included.
    Reads,
    /// Accesses that write, atomic accesses included.
    Writes,
    /// All accesses.
    All,
}

impl Class {
    /// Returns true if the class contains an access that reads, writes or does both.
    pub fn has(self, reads: bool, writes: bool) -> bool {
        match self {
            Class::Reads => reads,
            Class::Writes => writes,
            Class::All => reads || writes,
        }
    }
}

/// Kind of fence, by the accesses that it orders.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fence {
    /// Earlier accesses before later accesses.
    Full,
    /// Earlier loads before later accesses.
    Loads,
    /// Earlier stores before later stores.
    Stores,
    /// Instruction synchronisation (AArch64's `ISB`, Power's `isync`): later instructions are fetched again once
    /// earlier branches are resolved. Reads after a branch on a loaded value and this fence come after that load.
    InstructionSync,
    /// Earlier accesses of the first class before later accesses of the second. Created by [`Fence::between`] for
    /// classes that no other variant has.
    Other(Class, Class),
}

impl Fence {
    /// Returns the fence between earlier accesses of one class and later ones of another.
    pub fn between(before: Class, after: Class) -> Fence {
        match (before, after) {
            (Class::All, Class::All) => Fence::Full,
            (Class::Reads, Class::All) => Fence::Loads,
            (Class::Writes, Class::Writes) => Fence::Stores,
            _ => Fence::Other(before, after),
        }
    }

    /// Returns the classes of the earlier and of the later accesses, or `None` for [`Fence::InstructionSync`].
    pub fn sides(self) -> Option<(Class, Class)> {
        match self {
            Fence::Full => Some((Class::All, Class::All)),
            Fence::Loads => Some((Class::Reads, Class::All)),
            Fence::Stores => Some((Class::Writes, Class::Writes)),
            Fence::Other(before, after) => Some((before, after)),
            Fence::InstructionSync => None,
        }
    }
}

/// An operation of the Linux kernel's read-copy-update (RCU).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rcu {
    /// Begin of a read-side critical section.
    ReadLock,
    /// End of a read-side critical section.
    ReadUnlock,
    /// Wait for a grace period: the end of all critical sections that have begun. Also a full fence.
    Synchronize,
}

/// Access of the protocol that performs a write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum StoreVariant {
    /// The default store or atomic access of the protocol.
    #[default]
    ProtocolDefault,
    /// `write_back`: performed in the core's own copy.
    WriteBack,
    /// `write_partial`: performed and acknowledged by the home.
    Acknowledged,
}

/// One instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Instruction {
    /// Reads a location.
    Load {
        /// Destination register.
        to: Register,
        /// The location.
        from: Address,
        /// Acquire ordering.
        acquire: Acquire,
    },
    /// Writes a location.
    Store {
        /// The location.
        to: Address,
        /// The value.
        value: Operand,
        /// True if the store is ordered after all earlier accesses of the thread.
        release: bool,
        /// Access of the protocol that performs the store.
        via: StoreVariant,
    },
    /// Reads and writes a location atomically.
    Atomic {
        /// Destination register of the old value.
        to: Register,
        /// The location.
        at: Address,
        /// Change of the value.
        change: Change,
        /// The operand.
        value: Operand,
        /// True if ordered before all later accesses of the thread.
        acquire: bool,
        /// True if ordered after all earlier accesses of the thread.
        release: bool,
        /// True if the old value is returned. AArch64's fences of loads wait only for atomic accesses that return it.
        returns: bool,
        /// Access of the protocol that performs the write.
        via: StoreVariant,
    },
    /// Reads a location and reserves it for the next [`Instruction::StoreConditional`] of the thread.
    LoadReserved {
        /// Destination register.
        to: Register,
        /// The location.
        from: Address,
        /// Acquire ordering.
        acquire: Acquire,
        /// True if ordered after all earlier accesses of the thread.
        release: bool,
    },
    /// Writes a location if the thread has reserved it and no other thread has written it since. May fail spuriously.
    StoreConditional {
        /// Destination register of the status: 0 if the write was performed, 1 if it failed.
        status: Register,
        /// The location.
        to: Address,
        /// The value.
        value: Operand,
        /// True if ordered before all later accesses of the thread.
        acquire: bool,
        /// True if ordered after all earlier accesses of the thread.
        release: bool,
    },
    /// Orders earlier accesses of the thread before later ones.
    Fence(Fence),
    /// Operation of read-copy-update. Only the axiomatic models execute it.
    Rcu(Rcu),
    /// Selects one of two values (conditional move).
    Select {
        /// Destination register.
        to: Register,
        /// Register that selects.
        on: Register,
        /// Result if the register is not zero.
        then: Operand,
        /// Result if the register is zero.
        otherwise: Operand,
    },
    /// Computes a register from two operands.
    Compute {
        /// Destination register.
        to: Register,
        /// Operation.
        operation: Operation,
        /// First operand.
        a: Operand,
        /// Second operand.
        b: Operand,
    },
    /// Branches forward if a register is zero, or if it is not.
    Branch {
        /// Register tested.
        on: Register,
        /// True to branch on zero, false to branch on any other value.
        zero: bool,
        /// Index of the target instruction in the thread.
        to: usize,
    },
}

impl Instruction {
    /// Returns the address accessed, if any.
    pub fn address(&self) -> Option<Address> {
        match *self {
            Instruction::Load { from: at, .. }
            | Instruction::Store { to: at, .. }
            | Instruction::Atomic { at, .. }
            | Instruction::LoadReserved { from: at, .. }
            | Instruction::StoreConditional { to: at, .. } => Some(at),
            _ => None,
        }
    }

    /// Returns the location accessed, if it is known before the program runs.
    pub fn location(&self) -> Option<Location> {
        self.address()?.direct()
    }

    /// Returns true for instructions that read a location.
    pub fn reads(&self) -> bool {
        matches!(
            self,
            Instruction::Load { .. }
                | Instruction::Atomic { .. }
                | Instruction::LoadReserved { .. }
        )
    }

    /// Returns true for instructions that write a location, or may.
    pub fn writes(&self) -> bool {
        matches!(
            self,
            Instruction::Store { .. }
                | Instruction::Atomic { .. }
                | Instruction::StoreConditional { .. }
        )
    }

    /// Returns true for load-reserved and store-conditional instructions.
    pub(crate) fn is_reservation(&self) -> bool {
        matches!(
            self,
            Instruction::LoadReserved { .. } | Instruction::StoreConditional { .. }
        )
    }

    /// Returns true for reads that are ordered before later accesses. A store-conditional returns false.
    pub fn acquires(&self) -> bool {
        match self {
            Instruction::Load { acquire, .. } | Instruction::LoadReserved { acquire, .. } => {
                *acquire != Acquire::None
            }
            Instruction::Atomic { acquire, .. } => *acquire,
            _ => false,
        }
    }

    /// Returns the destination register, if any.
    pub fn destination(&self) -> Option<Register> {
        match *self {
            Instruction::Load { to, .. }
            | Instruction::Atomic { to, .. }
            | Instruction::LoadReserved { to, .. }
            | Instruction::StoreConditional { status: to, .. }
            | Instruction::Select { to, .. }
            | Instruction::Compute { to, .. } => Some(to),
            _ => None,
        }
    }
}

/// A thread of a test.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Thread {
    /// Instructions in program order.
    pub code: Vec<Instruction>,
    /// Initial values, by register.
    pub registers: Vec<i64>,
    /// Names, by register. A name that begins with a dot denotes a temporary of the reader, which is not observed.
    pub names: Vec<String>,
}

/// A register or location whose final value a condition names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Observable {
    /// Final value of a register, by thread and register.
    Register(usize, Register),
    /// Final value of a location.
    Location(Location),
}

/// Proposition about one outcome of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claim {
    /// The observed register or location has this value.
    Equals(Observable, i64),
    /// Conjunction.
    And(Box<Claim>, Box<Claim>),
    /// Disjunction.
    Or(Box<Claim>, Box<Claim>),
    /// Negation.
    Not(Box<Claim>),
    /// Always true.
    True,
}

/// Quantifier of the claim over all outcomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantifier {
    /// At least one outcome satisfies the claim.
    Exists,
    /// No outcome satisfies the claim.
    NotExists,
    /// All outcomes satisfy the claim.
    Forall,
}

/// A litmus test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Name of the test.
    pub name: String,
    /// Names, by location.
    pub locations: Vec<String>,
    /// Initial values, by location.
    pub initial: Vec<i64>,
    /// Threads, by number.
    pub threads: Vec<Thread>,
    /// Quantifier of the condition.
    pub quantifier: Quantifier,
    /// Claim that the quantifier ranges over. [`Claim::True`] if all outcomes are of interest.
    pub claim: Claim,
    /// Registers and locations that outcomes show in addition to those of the claim.
    pub listed: Vec<Observable>,
    /// Filter: executions whose final state does not satisfy it are not executions of the test. [`Claim::True`]
    /// excludes none.
    pub filter: Claim,
}

/// An outcome of a program: final values of the observed registers and locations.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Outcome(pub BTreeMap<Observable, i64>);

impl Program {
    /// Returns the registers and locations that an outcome shows: those of the claim and those listed. If both are
    /// empty, an outcome shows all locations, and all registers of the test that a memory access writes.
    pub fn observed(&self) -> Vec<Observable> {
        let mut observed = self.listed.clone();
        collect(&self.claim, &mut observed);
        if observed.is_empty() {
            observed = self.all_observables();
        }
        observed.sort();
        observed.dedup();
        observed
    }

    /// Returns all locations, and the registers that memory accesses write, without temporaries.
    fn all_observables(&self) -> Vec<Observable> {
        let locations = 0..self.locations.len() as Location;
        let mut observed: Vec<Observable> = locations.map(Observable::Location).collect();
        for (number, thread) in self.threads.iter().enumerate() {
            let accesses = thread
                .code
                .iter()
                .filter(|instruction| instruction.address().is_some());
            for to in accesses.filter_map(Instruction::destination) {
                if !thread.names[to].starts_with('.') {
                    observed.push(Observable::Register(number, to));
                }
            }
        }
        observed
    }

    /// Returns true if an outcome satisfies the claim. The outcome must show all registers and locations of the
    /// claim.
    pub fn holds(&self, outcome: &Outcome) -> bool {
        holds(&self.claim, &|observed| outcome.0.get(observed).copied())
    }

    /// Returns the outcome of an execution that ends with these values, or `None` if the filter excludes it.
    pub fn outcome(&self, value: impl Fn(&Observable) -> i64) -> Option<Outcome> {
        let passes_filter = holds(&self.filter, &|observed| Some(value(observed)));
        let observed = self.observed().into_iter();
        passes_filter.then(|| Outcome(observed.map(|o| (o.clone(), value(&o))).collect()))
    }

    /// Adds a claim to the filter.
    pub fn require(&mut self, claim: Claim) {
        let filter = std::mem::replace(&mut self.filter, Claim::True);
        self.filter = match filter {
            Claim::True => claim,
            filter => Claim::And(Box::new(filter), Box::new(claim)),
        };
    }

    /// Returns the name of an observed register or location: `0:X2` or `[x]`.
    pub fn name_of(&self, observed: &Observable) -> String {
        match observed {
            Observable::Register(thread, register) => {
                format!("{thread}:{}", self.threads[*thread].names[*register])
            }
            Observable::Location(location) => {
                format!("[{}]", self.locations[usize::from(*location)])
            }
        }
    }

    /// Returns the name of the location whose address is `value`, if any.
    fn pointee(&self, value: i64) -> Option<&str> {
        let location = usize::from(location_at(value)?);
        self.locations.get(location).map(String::as_str)
    }

    /// Formats a value as the herd tools do: as a number, or as the name of the location with this address.
    pub fn value_name(&self, value: i64) -> String {
        let pointee = self.pointee(value).map(str::to_string);
        pointee.unwrap_or_else(|| value.to_string())
    }

    /// Returns true if registers, initial values or instructions use addresses as data.
    pub(crate) fn has_addresses(&self) -> bool {
        let registers = self.threads.iter().flat_map(|thread| &thread.registers);
        let mut values = registers.chain(&self.initial);
        let mut code = self.threads.iter().flat_map(|thread| &thread.code);
        values.any(|&value| location_at(value).is_some())
            || code.any(|instruction| matches!(instruction.address(), Some(Address::Indirect(_))))
    }

    /// Returns true if only the axiomatic models can give the outcomes: no core here executes reservations or RCU
    /// operations.
    pub fn requires_axiomatic_model(&self) -> bool {
        let mut code = self.threads.iter().flat_map(|thread| &thread.code);
        code.any(|instruction| {
            instruction.is_reservation() || matches!(instruction, Instruction::Rcu(_))
        })
    }

    /// Formats an outcome: `0:X2=0; 1:X2=1`.
    pub fn format_outcome(&self, outcome: &Outcome) -> String {
        let entries = outcome.0.iter();
        let entries = entries.map(|(observed, value)| {
            format!("{}={}", self.name_of(observed), self.value_name(*value))
        });
        entries.collect::<Vec<_>>().join("; ")
    }

    /// Returns true if the set of all outcomes satisfies the quantified claim. `outcomes` must contain all of them.
    pub fn is_satisfied<'e>(&self, outcomes: impl IntoIterator<Item = &'e Outcome>) -> bool {
        let mut outcomes = outcomes.into_iter();
        match self.quantifier {
            Quantifier::Exists => outcomes.any(|outcome| self.holds(outcome)),
            Quantifier::NotExists => !outcomes.any(|outcome| self.holds(outcome)),
            Quantifier::Forall => outcomes.all(|outcome| self.holds(outcome)),
        }
    }
}

fn collect(claim: &Claim, items: &mut Vec<Observable>) {
    match claim {
        Claim::Equals(observed, _) => items.push(observed.clone()),
        Claim::And(a, b) | Claim::Or(a, b) => {
            collect(a, items);
            collect(b, items);
        }
        Claim::Not(a) => collect(a, items),
        Claim::True => {}
    }
}

fn holds(claim: &Claim, value_of: &dyn Fn(&Observable) -> Option<i64>) -> bool {
    match claim {
        Claim::Equals(observed, value) => value_of(observed) == Some(*value),
        Claim::And(a, b) => holds(a, value_of) && holds(b, value_of),
        Claim::Or(a, b) => holds(a, value_of) || holds(b, value_of),
        Claim::Not(a) => !holds(a, value_of),
        Claim::True => true,
    }
}

impl fmt::Display for Quantifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::Forall => "forall",
        })
    }
}
