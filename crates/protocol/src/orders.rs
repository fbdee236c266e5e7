//! Program orders that threads preserve among their accesses, and memory models.

use std::fmt;

/// Operation of a thread, classified by its effect on program order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Issue {
    /// A read without ordering.
    Load,
    /// A write without ordering.
    Store,
    /// A read that acquires.
    Acquire,
    /// A write that releases.
    Release,
    /// A full fence.
    Fence,
}

impl Issue {
    /// All operations with their names in protocol files.
    pub const ALL: [(Issue, &'static str); 5] = [
        (Issue::Load, "load"),
        (Issue::Store, "store"),
        (Issue::Acquire, "acquire"),
        (Issue::Release, "release"),
        (Issue::Fence, "fence"),
    ];
}

/// Preserved program order: the earlier operations whose completion each operation waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Orders {
    /// For each operation, a bit mask of the earlier operations that it waits for.
    after: [u8; Issue::ALL.len()],
}

impl Orders {
    /// No operation waits for another.
    pub const NONE: Orders = Orders {
        after: [0; Issue::ALL.len()],
    };

    /// Makes the later operation wait for the earlier one.
    pub fn keep(&mut self, earlier: Issue, later: Issue) {
        self.after[later as usize] |= 1 << earlier as u8;
    }

    /// Returns true if the later operation waits for the earlier one.
    pub fn waits(&self, earlier: Issue, later: Issue) -> bool {
        self.after[later as usize] >> earlier as u8 & 1 != 0
    }
}

/// Release consistency, enforced before an operation is issued: operations after an acquire wait for it, a release
/// waits for all operations before it, and a fence does both.
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
    /// Models that a protocol may guarantee, with their names, from the strongest to the weakest.
    pub const ALL: [(Model, &'static str); 3] =
        [(Model::Sc, "sc"), (Model::Tso, "tso"), (Model::Rc, "rc")];

    /// Name in protocol files and options.
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
