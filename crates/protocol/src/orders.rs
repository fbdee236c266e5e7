//! Orders that threads keep among their accesses, and memory models.

use std::fmt;

/// What a thread asks for, as far as its order among other things of the thread goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Issue {
    /// A read.
    Load,
    /// A write.
    Store,
    /// A read that acquires.
    Acquire,
    /// A write that releases.
    Release,
    /// A full fence.
    Fence,
}

impl Issue {
    /// All of them with their names in protocol texts.
    pub const ALL: [(Issue, &'static str); 5] = [
        (Issue::Load, "load"),
        (Issue::Store, "store"),
        (Issue::Acquire, "acquire"),
        (Issue::Release, "release"),
        (Issue::Fence, "fence"),
    ];
}

/// Which of a thread's accesses wait until which earlier ones have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Orders {
    /// For each, a bit for each of those that it waits for.
    after: [u8; Issue::ALL.len()],
}

impl Orders {
    /// Nothing waits.
    pub const NONE: Orders = Orders {
        after: [0; Issue::ALL.len()],
    };

    /// The later one waits for the earlier one from now on.
    pub fn keep(&mut self, earlier: Issue, later: Issue) {
        self.after[later as usize] |= 1 << earlier as u8;
    }

    /// Whether the later one waits for the earlier one.
    pub fn waits(&self, earlier: Issue, later: Issue) -> bool {
        self.after[later as usize] >> earlier as u8 & 1 != 0
    }
}

/// Release consistency, kept before anything is sent: what follows an acquire waits for it, a release waits for all before
/// it, and a fence does both.
impl Default for Orders {
    fn default() -> Orders {
        let mut orders = Orders::NONE;
        for (other, _) in Issue::ALL {
            orders.keep(Issue::Acquire, other);
            orders.keep(other, Issue::Release);
            orders.keep(Issue::Fence, other);
            orders.keep(other, Issue::Fence);
        }
        orders
    }
}

/// A memory model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// Sequential consistency.
    Sc,
    /// Total store order.
    Tso,
    /// Release consistency.
    Rc,
    /// The model of Armv8.
    Armv8,
    /// The model of RISC-V, RVWMO.
    RiscV,
}

impl Model {
    /// The models that a text may guarantee with their names, from the strongest to the weakest.
    pub const ALL: [(Model, &'static str); 3] =
        [(Model::Sc, "sc"), (Model::Tso, "tso"), (Model::Rc, "rc")];

    /// Its short name.
    pub fn name(self) -> &'static str {
        match self {
            Model::Sc => "sc",
            Model::Tso => "tso",
            Model::Rc => "rc",
            Model::Armv8 => "armv8",
            Model::RiscV => "riscv",
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Model::Sc => "sequential consistency",
            Model::Tso => "total store order",
            Model::Rc => "release consistency",
            Model::Armv8 => "Armv8's memory model",
            Model::RiscV => "RISC-V's memory model",
        })
    }
}
