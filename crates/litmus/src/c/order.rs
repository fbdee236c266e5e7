//! Memory orders of accesses in C.

/// Memory order of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// No order; also that of plain accesses.
    Relaxed,
    /// Before all later accesses.
    Acquire,
    /// After all earlier accesses.
    Release,
    /// Acquire and release.
    AcquireRelease,
    /// Sequentially consistent: acquire and release, and releases stay before later sequentially consistent loads.
    Sequential,
}

impl Order {
    /// Names in C11, each with its order.
    pub(super) const ALL: [(&'static str, Order); 5] = [
        ("memory_order_relaxed", Order::Relaxed),
        ("memory_order_acquire", Order::Acquire),
        ("memory_order_release", Order::Release),
        ("memory_order_acq_rel", Order::AcquireRelease),
        ("memory_order_seq_cst", Order::Sequential),
    ];

    /// Returns true if an access of this order acquires.
    pub(super) fn acquires(self) -> bool {
        matches!(
            self,
            Order::Acquire | Order::AcquireRelease | Order::Sequential
        )
    }

    /// Returns true if an access of this order releases.
    pub(super) fn releases(self) -> bool {
        matches!(
            self,
            Order::Release | Order::AcquireRelease | Order::Sequential
        )
    }

    /// Returns the order of a compare-and-exchange with the failure order `failed`. One instruction has both, because
    /// it acquires before its success is known.
    pub(super) fn with_failure_order(self, failed: Order) -> Order {
        match (self, failed) {
            (_, Order::Sequential) => Order::Sequential,
            (Order::Relaxed, Order::Acquire) => Order::Acquire,
            (Order::Release, Order::Acquire) => Order::AcquireRelease,
            _ => self,
        }
    }
}
