//! Functions of C11 and of the Linux kernel, and their effects.

use super::order::Order;
use crate::program::{Change, Fence, Operation, Rcu};

/// Effect of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Function {
    /// Loads from an address.
    Load(Order),
    /// Stores to an address.
    Store(Order),
    /// Stores, followed by a full fence.
    StoreFence,
    /// Atomic read and write. Returns the old value, the new value, or nothing.
    Update(Change, Order, ReturnedValue),
    /// Atomic addition of a constant that the function implies.
    AddConstant(i64, Order, ReturnedValue),
    /// C11 compare-and-exchange: the variable of the expected value receives the old value. Returns 1 on success,
    /// otherwise 0.
    C11CompareExchange(Order),
    /// Compare-and-exchange of the kernel. Returns the old value.
    CompareExchange(Order),
    /// Adds a number unless the old value equals another. Returns 1 if it added, otherwise 0.
    AddUnless,
    /// Adds 1 unless the old value is 0. Returns 1 if it added, otherwise 0.
    IncrementNotZero,
    /// Acquires a lock. Executions in which the lock is not free are excluded.
    Lock,
    /// Acquires a lock if it is free. Returns 1 on success, otherwise 0.
    TryLock,
    /// Releases a lock.
    Unlock,
    /// Operation of read-copy-update.
    Rcu(Rcu),
    /// Fence with its order as argument.
    FenceWithOrder,
    /// Fence with a fixed order.
    Fence(Fence),
    /// No effect in this model.
    NoEffect,
}

/// Return value of an atomic read and write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReturnedValue {
    /// The old value.
    Before,
    /// The new value.
    After,
    /// No value.
    Nothing,
}

/// Functions of C11 and of the Linux kernel, without the suffixes that state an order. The order in the effect is
/// that of a function without suffix.
pub(super) const FUNCTIONS: [(&str, Function); 60] = {
    use self::Function as F;
    use self::Order::{Acquire, AcquireRelease, Relaxed, Release, Sequential};
    const AND: Change = Change::FetchOp(Operation::And);
    const OR: Change = Change::FetchOp(Operation::Or);
    const XOR: Change = Change::FetchOp(Operation::Xor);
    [
        ("atomic_load", F::Load(Sequential)),
        ("atomic_store", F::Store(Sequential)),
        (
            "atomic_exchange",
            F::Update(Change::Exchange, Sequential, ReturnedValue::Before),
        ),
        (
            "atomic_fetch_add",
            F::Update(Change::FetchAdd, AcquireRelease, ReturnedValue::Before),
        ),
        (
            "atomic_fetch_sub",
            F::Update(SUBTRACT, AcquireRelease, ReturnedValue::Before),
        ),
        (
            "atomic_fetch_and",
            F::Update(AND, AcquireRelease, ReturnedValue::Before),
        ),
        (
            "atomic_fetch_or",
            F::Update(OR, AcquireRelease, ReturnedValue::Before),
        ),
        (
            "atomic_fetch_xor",
            F::Update(XOR, AcquireRelease, ReturnedValue::Before),
        ),
        (
            "atomic_compare_exchange_strong",
            F::C11CompareExchange(Sequential),
        ),
        ("atomic_thread_fence", F::FenceWithOrder),
        ("READ_ONCE", F::Load(Relaxed)),
        ("WRITE_ONCE", F::Store(Relaxed)),
        ("smp_load_acquire", F::Load(Acquire)),
        ("smp_store_release", F::Store(Release)),
        ("smp_store_mb", F::StoreFence),
        ("smp_mb", F::Fence(Fence::Full)),
        ("smp_rmb", F::Fence(Fence::Loads)),
        ("smp_wmb", F::Fence(Fence::Stores)),
        ("smp_mb__before_atomic", F::Fence(Fence::Full)),
        ("smp_mb__after_atomic", F::Fence(Fence::Full)),
        ("barrier", F::NoEffect),
        ("rcu_read_lock", F::Rcu(Rcu::ReadLock)),
        ("rcu_read_unlock", F::Rcu(Rcu::ReadUnlock)),
        ("synchronize_rcu", F::Rcu(Rcu::Synchronize)),
        ("synchronize_rcu_expedited", F::Rcu(Rcu::Synchronize)),
        ("rcu_dereference", F::Load(Relaxed)),
        ("rcu_assign_pointer", F::Store(Release)),
        (
            "xchg",
            F::Update(Change::Exchange, AcquireRelease, ReturnedValue::Before),
        ),
        ("cmpxchg", F::CompareExchange(AcquireRelease)),
        (
            "atomic_xchg",
            F::Update(Change::Exchange, AcquireRelease, ReturnedValue::Before),
        ),
        ("atomic_cmpxchg", F::CompareExchange(AcquireRelease)),
        ("atomic_read", F::Load(Relaxed)),
        ("atomic_read_acquire", F::Load(Acquire)),
        ("atomic_set", F::Store(Relaxed)),
        ("atomic_set_release", F::Store(Release)),
        (
            "atomic_add",
            F::Update(Change::FetchAdd, Relaxed, ReturnedValue::Nothing),
        ),
        (
            "atomic_sub",
            F::Update(SUBTRACT, Relaxed, ReturnedValue::Nothing),
        ),
        (
            "atomic_and",
            F::Update(AND, Relaxed, ReturnedValue::Nothing),
        ),
        ("atomic_or", F::Update(OR, Relaxed, ReturnedValue::Nothing)),
        (
            "atomic_xor",
            F::Update(XOR, Relaxed, ReturnedValue::Nothing),
        ),
        (
            "atomic_add_return",
            F::Update(Change::FetchAdd, AcquireRelease, ReturnedValue::After),
        ),
        (
            "atomic_sub_return",
            F::Update(SUBTRACT, AcquireRelease, ReturnedValue::After),
        ),
        (
            "atomic_inc",
            F::AddConstant(1, Relaxed, ReturnedValue::Nothing),
        ),
        (
            "atomic_dec",
            F::AddConstant(-1, Relaxed, ReturnedValue::Nothing),
        ),
        (
            "atomic_inc_return",
            F::AddConstant(1, AcquireRelease, ReturnedValue::After),
        ),
        (
            "atomic_dec_return",
            F::AddConstant(-1, AcquireRelease, ReturnedValue::After),
        ),
        (
            "atomic_fetch_inc",
            F::AddConstant(1, AcquireRelease, ReturnedValue::Before),
        ),
        (
            "atomic_fetch_dec",
            F::AddConstant(-1, AcquireRelease, ReturnedValue::Before),
        ),
        ("smp_read_barrier_depends", F::NoEffect),
        ("smp_acquire__after_ctrl_dep", F::Fence(Fence::Loads)),
        ("lockless_dereference", F::Load(Relaxed)),
        ("atomic_add_unless", F::AddUnless),
        ("atomic_inc_not_zero", F::IncrementNotZero),
        ("spin_lock", F::Lock),
        ("spin_trylock", F::TryLock),
        ("spin_unlock", F::Unlock),
        ("spin_is_locked", F::Load(Relaxed)),
        ("smp_mb__after_spinlock", F::Fence(Fence::Full)),
        ("smp_mb__after_unlock_lock", F::Fence(Fence::Full)),
        ("cpu_relax", F::NoEffect),
    ]
};

/// Change of `atomic_fetch_sub`.
pub(super) const SUBTRACT: Change = Change::FetchOp(Operation::Subtract);

/// Returns the function of a name, which may end in a memory order. The flag is true if the last arguments are the
/// orders.
pub(super) fn function(name: &str) -> Option<(Function, bool)> {
    let find = |name: &str| {
        let mut functions = FUNCTIONS.iter();
        functions
            .find(|(candidate, _)| *candidate == name)
            .map(|(_, function)| *function)
    };
    if let Some(short) = name.strip_suffix("_explicit") {
        let ordered = |function: &Function| {
            !matches!(function, Function::Fence(_) | Function::NoEffect)
                && short.starts_with("atomic_")
        };
        return find(short).filter(ordered).map(|function| (function, true));
    }
    if let Some(function) = find(name) {
        return Some((function, function == Function::FenceWithOrder));
    }
    let (short, order) = [
        ("_relaxed", Order::Relaxed),
        ("_acquire", Order::Acquire),
        ("_release", Order::Release),
    ]
    .into_iter()
    .find_map(|(suffix, order)| Some((name.strip_suffix(suffix)?, order)))?;
    match find(short)? {
        Function::Update(change, Order::AcquireRelease, returned_value) => {
            Some((Function::Update(change, order, returned_value), false))
        }
        Function::AddConstant(amount, Order::AcquireRelease, returned_value) => {
            Some((Function::AddConstant(amount, order, returned_value), false))
        }
        Function::CompareExchange(_) => Some((Function::CompareExchange(order), false)),
        _ => None,
    }
}

/// Returns true for kernel macros whose first argument is the accessed object itself, not its address.
pub(super) fn takes_object(name: &str) -> bool {
    matches!(
        name,
        "READ_ONCE"
            | "WRITE_ONCE"
            | "rcu_dereference"
            | "rcu_assign_pointer"
            | "lockless_dereference"
            | "smp_store_mb"
    )
}
