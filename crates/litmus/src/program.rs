//! Programs of a few threads.

use std::collections::BTreeMap;
use std::fmt;

/// A register of a thread, by number.
pub type Register = usize;

/// A location, by number.
pub type Location = u8;

/// Address of the first location. Registers and locations that hold addresses hold these numbers.
const ADDRESSES: i64 = 0x5a5a_0000_0000_0000;
/// Distance of two addresses, in bytes.
const STRIDE: i64 = 1 << 16;

/// Returns the address of a location, as a value.
pub fn address_of(location: Location) -> i64 {
    ADDRESSES + i64::from(location) * STRIDE
}

/// Returns the location at an address, if there may be one.
pub fn location_at(address: i64) -> Option<Location> {
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

/// Something that an instruction takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operand {
    /// A number.
    Number(i64),
    /// What a register holds.
    Register(Register),
}

/// How a value becomes another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum Operation {
    Add,
    Subtract,
    And,
    Or,
    Xor,
    /// 1 if both are the same, and otherwise 0.
    Equal,
    /// 1 if the first is less, both with a sign, and otherwise 0.
    Less,
    /// The first, shifted to the left by the second modulo 64.
    ShiftLeft,
    /// The first with its sign, shifted to the right by the second modulo 64.
    ShiftRight,
}

impl Operation {
    /// The result.
    pub fn of(self, a: i64, b: i64) -> i64 {
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

/// What an atomic access makes of the word that it finds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Update {
    /// This value.
    Set(i64),
    /// So much more.
    Add(i64),
    /// The second value, if it is the first.
    SetIf(i64, i64),
    /// The result of an operation on what was found and this value.
    Apply(Operation, i64),
}

impl Update {
    /// The word afterwards.
    pub fn of(self, before: i64) -> i64 {
        match self {
            Update::Set(value) => value,
            Update::Add(value) => before.wrapping_add(value),
            Update::SetIf(expected, value) if before == expected => value,
            Update::SetIf(..) => before,
            Update::Apply(operation, value) => operation.of(before, value),
        }
    }
}

/// How an atomic access changes a word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Change {
    /// It is replaced by the operand.
    Set,
    /// The operand is added.
    Add,
    /// It is replaced by the operand if it is this; otherwise it is not written.
    SetIf(Operand),
    /// It is replaced by the result of an operation on it and the operand.
    Apply(Operation),
}

/// What a load comes before, and after.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Acquire {
    /// Nothing, for its own sake.
    No,
    /// It comes before all later accesses.
    Later,
    /// The same, and after all earlier releases of its thread.
    Full,
}

/// A class of accesses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Those that read.
    Reads,
    /// Those that write.
    Writes,
    /// All.
    All,
}

impl Class {
    /// Returns whether an access that reads, writes or does both is in the class.
    pub fn has(self, reads: bool, writes: bool) -> bool {
        match self {
            Class::Reads => reads,
            Class::Writes => writes,
            Class::All => reads || writes,
        }
    }
}

/// Which accesses a fence keeps apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fence {
    /// All earlier ones come before all later ones.
    Full,
    /// Earlier loads come before all later ones.
    Loads,
    /// Earlier stores come before later stores.
    Stores,
    /// What follows is fetched anew, when it is known where earlier branches lead: behind a branch on what was read, reads
    /// come after that.
    Fetch,
    /// Earlier accesses of the first class come before later ones of the second. [`Fence::between`] makes it.
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

    /// Returns the classes of the earlier and of the later accesses, unless it fetches instructions anew.
    pub fn sides(self) -> Option<(Class, Class)> {
        match self {
            Fence::Full => Some((Class::All, Class::All)),
            Fence::Loads => Some((Class::Reads, Class::All)),
            Fence::Stores => Some((Class::Writes, Class::Writes)),
            Fence::Other(before, after) => Some((before, after)),
            Fence::Fetch => None,
        }
    }
}

/// An operation of read-copy-update, as the Linux kernel has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rcu {
    /// Begins a critical section of a reader.
    ReadLock,
    /// Ends it.
    ReadUnlock,
    /// Waits for a grace period: the end of all critical sections that have begun. It is a full fence, too.
    Synchronize,
}

/// By which of a text's accesses a write is made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Via {
    /// As the text's cores store, and read and write at once.
    #[default]
    Text,
    /// In the core's own copy: `write_back`.
    Back,
    /// At the home, which acknowledges it: `write_partial`.
    Acknowledged,
}

/// One instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Instruction {
    /// Reads a location.
    Load {
        /// Where the value goes.
        to: Register,
        /// The location.
        from: Address,
        /// What it comes before.
        acquire: Acquire,
    },
    /// Writes a location.
    Store {
        /// The location.
        to: Address,
        /// The value.
        value: Operand,
        /// Whether it comes after earlier accesses.
        release: bool,
        /// By which access it is made.
        via: Via,
    },
    /// Reads and writes a location at once.
    Atomic {
        /// Where the value found goes.
        to: Register,
        /// The location.
        at: Address,
        /// What is done with it.
        change: Change,
        /// The operand.
        value: Operand,
        /// Whether it comes before all later accesses.
        acquire: bool,
        /// Whether it comes after all earlier ones.
        release: bool,
        /// Whether the value found is of use. AArch64's fences of loads do not wait for it otherwise.
        returns: bool,
        /// By which access it is made.
        via: Via,
    },
    /// Reads a location and reserves it for the next [`Instruction::StoreConditional`] of the thread.
    LoadReserved {
        /// Where the value goes.
        to: Register,
        /// The location.
        from: Address,
        /// What it comes before.
        acquire: Acquire,
        /// Whether it comes after earlier accesses.
        release: bool,
    },
    /// Writes a location if the thread has reserved it and no other thread has written it since. It may fail without a reason.
    StoreConditional {
        /// Becomes 0 if the write is made, and 1 if not.
        status: Register,
        /// The location.
        to: Address,
        /// The value.
        value: Operand,
        /// Whether it comes before later accesses.
        acquire: bool,
        /// Whether it comes after earlier accesses.
        release: bool,
    },
    /// Keeps accesses apart.
    Fence(Fence),
    /// Takes part in read-copy-update; for models only.
    Rcu(Rcu),
    /// Chooses one of two values.
    Select {
        /// Where the chosen value goes.
        to: Register,
        /// The register that decides.
        on: Register,
        /// The value, if that holds anything but zero.
        then: Operand,
        /// The value, if it holds zero.
        otherwise: Operand,
    },
    /// Computes.
    Compute {
        /// Where the result goes.
        to: Register,
        /// How.
        operation: Operation,
        /// From what.
        a: Operand,
        /// And what.
        b: Operand,
    },
    /// Goes on at a later instruction if a register holds zero, or if it does not.
    Branch {
        /// The register.
        on: Register,
        /// Whether zero branches.
        zero: bool,
        /// The instruction's place in the thread.
        to: usize,
    },
}

impl Instruction {
    /// The address that it accesses.
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

    /// The location that it accesses, if that is known before the program runs.
    pub fn location(&self) -> Option<Location> {
        self.address()?.direct()
    }

    /// Whether it reads a location.
    pub fn reads(&self) -> bool {
        matches!(
            self,
            Instruction::Load { .. }
                | Instruction::Atomic { .. }
                | Instruction::LoadReserved { .. }
        )
    }

    /// Whether it writes a location.
    pub fn writes(&self) -> bool {
        matches!(
            self,
            Instruction::Store { .. }
                | Instruction::Atomic { .. }
                | Instruction::StoreConditional { .. }
        )
    }

    /// Whether it is one of a pair that reserves a location and writes it.
    pub fn reserves(&self) -> bool {
        matches!(
            self,
            Instruction::LoadReserved { .. } | Instruction::StoreConditional { .. }
        )
    }

    /// Whether it reads, and others come after that.
    pub fn acquires(&self) -> bool {
        match self {
            Instruction::Load { acquire, .. } | Instruction::LoadReserved { acquire, .. } => {
                *acquire != Acquire::No
            }
            Instruction::Atomic { acquire, .. } => *acquire,
            _ => false,
        }
    }

    /// The register that it fills.
    pub fn fills(&self) -> Option<Register> {
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

/// A thread.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Thread {
    /// Its instructions.
    pub code: Vec<Instruction>,
    /// What its registers hold at first.
    pub registers: Vec<i64>,
    /// Their names. One that begins with a dot is none of the test's own, and is not observed.
    pub names: Vec<String>,
}

/// What a condition speaks of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Observed {
    /// A register of a thread at its end.
    Register(usize, Register),
    /// A location at the end.
    Location(Location),
}

/// A statement about one end of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claim {
    /// Something has a value.
    Is(Observed, i64),
    /// Both hold.
    And(Box<Claim>, Box<Claim>),
    /// One holds.
    Or(Box<Claim>, Box<Claim>),
    /// It does not hold.
    Not(Box<Claim>),
    /// It holds always.
    True,
}

/// What is asked of all ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantifier {
    /// Some end fulfils the claim.
    Exists,
    /// No end fulfils it.
    NotExists,
    /// All ends fulfil it.
    Forall,
}

/// A litmus test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Names of the locations.
    pub locations: Vec<String>,
    /// What they hold at first.
    pub initial: Vec<i64>,
    /// The threads.
    pub threads: Vec<Thread>,
    /// What is asked.
    pub quantifier: Quantifier,
    /// About what.
    pub claim: Claim,
    /// What outcomes show beside what the claim speaks of.
    pub listed: Vec<Observed>,
    /// Holds of every outcome: an execution whose end does not fulfil it is none of the test.
    pub filter: Claim,
}

/// An outcome of a program: the values of what is observed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct End(pub BTreeMap<Observed, i64>);

impl Program {
    /// Returns what an outcome shows: what the claim speaks of and what is listed. Where both are empty, an outcome shows all
    /// locations, and every register of the test that a load or an atomic access fills.
    pub fn observed(&self) -> Vec<Observed> {
        let mut all = self.listed.clone();
        collect(&self.claim, &mut all);
        if all.is_empty() {
            all = self.everything();
        }
        all.sort();
        all.dedup();
        all
    }

    fn everything(&self) -> Vec<Observed> {
        let locations = 0..self.locations.len() as Location;
        let mut all: Vec<Observed> = locations.map(Observed::Location).collect();
        for (number, thread) in self.threads.iter().enumerate() {
            let accesses = thread.code.iter().filter(|one| one.address().is_some());
            for to in accesses.filter_map(Instruction::fills) {
                if !thread.names[to].starts_with('.') {
                    all.push(Observed::Register(number, to));
                }
            }
        }
        all
    }

    /// Whether an end fulfils the claim.
    pub fn holds(&self, end: &End) -> bool {
        holds(&self.claim, &|observed| end.0.get(observed).copied())
    }

    /// Returns the outcome of an execution that ends with these values, or `None` if the filter excludes it.
    pub fn outcome(&self, value: impl Fn(&Observed) -> i64) -> Option<End> {
        let fits = holds(&self.filter, &|observed| Some(value(observed)));
        let observed = self.observed().into_iter();
        fits.then(|| End(observed.map(|o| (o.clone(), value(&o))).collect()))
    }

    /// Adds a claim to the filter.
    pub fn require(&mut self, claim: Claim) {
        let filter = std::mem::replace(&mut self.filter, Claim::True);
        self.filter = match filter {
            Claim::True => claim,
            filter => Claim::And(Box::new(filter), Box::new(claim)),
        };
    }

    /// How something observed is called: `0:X2` or `[x]`.
    pub fn name_of(&self, observed: &Observed) -> String {
        match observed {
            Observed::Register(thread, register) => {
                format!("{thread}:{}", self.threads[*thread].names[*register])
            }
            Observed::Location(location) => format!("[{}]", self.locations[usize::from(*location)]),
        }
    }

    /// Returns the location whose address a value is.
    pub fn pointee(&self, value: i64) -> Option<&str> {
        let location = usize::from(location_at(value)?);
        self.locations.get(location).map(String::as_str)
    }

    /// A value as the herd tools write it: a number, or the name of the location whose address it is.
    pub fn value_name(&self, value: i64) -> String {
        let pointee = self.pointee(value).map(str::to_string);
        pointee.unwrap_or_else(|| value.to_string())
    }

    /// Whether threads compute with addresses.
    pub fn has_addresses(&self) -> bool {
        let registers = self.threads.iter().flat_map(|thread| &thread.registers);
        let mut values = registers.chain(&self.initial);
        let mut code = self.threads.iter().flat_map(|thread| &thread.code);
        values.any(|&value| location_at(value).is_some())
            || code.any(|one| matches!(one.address(), Some(Address::Indirect(_))))
    }

    /// Returns true if only axioms decide what the program shows: no core here reserves locations or waits for a grace period.
    pub fn needs_axioms(&self) -> bool {
        let mut code = self.threads.iter().flat_map(|thread| &thread.code);
        code.any(|one| one.reserves() || matches!(one, Instruction::Rcu(_)))
    }

    /// An end in words: `0:X2=0; 1:X2=1`.
    pub fn words(&self, end: &End) -> String {
        let all = end.0.iter();
        let all = all.map(|(observed, value)| {
            format!("{}={}", self.name_of(observed), self.value_name(*value))
        });
        all.collect::<Vec<_>>().join("; ")
    }

    /// Whether all that is asked holds of all ends together.
    pub fn fulfilled<'e>(&self, ends: impl IntoIterator<Item = &'e End>) -> bool {
        let mut ends = ends.into_iter();
        match self.quantifier {
            Quantifier::Exists => ends.any(|end| self.holds(end)),
            Quantifier::NotExists => !ends.any(|end| self.holds(end)),
            Quantifier::Forall => ends.all(|end| self.holds(end)),
        }
    }
}

fn collect(claim: &Claim, all: &mut Vec<Observed>) {
    match claim {
        Claim::Is(observed, _) => all.push(observed.clone()),
        Claim::And(a, b) | Claim::Or(a, b) => {
            collect(a, all);
            collect(b, all);
        }
        Claim::Not(a) => collect(a, all),
        Claim::True => {}
    }
}

fn holds(claim: &Claim, found: &dyn Fn(&Observed) -> Option<i64>) -> bool {
    match claim {
        Claim::Is(observed, value) => found(observed) == Some(*value),
        Claim::And(a, b) => holds(a, found) && holds(b, found),
        Claim::Or(a, b) => holds(a, found) || holds(b, found),
        Claim::Not(a) => !holds(a, found),
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
