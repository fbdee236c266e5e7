//! Memory models as axioms on candidate executions.
//!
//! All models demand coherence: one order per location, which agrees with program order. They also demand atomicity: no
//! write of another thread between the parts of an atomic access. The models differ in the part of program order that
//! they preserve, and demand that this part and the observed order have no cycle. Each model also has the guarantees of
//! the Linux kernel for read-side critical sections and grace periods of read-copy-update:
//!
//! * Sequential consistency preserves all of program order. All threads observe a write at the same time, its own
//!   thread included.
//! * Total store order preserves all but a write before a later read, with no full fence and no atomic access between
//!   them. A read that is forwarded from the thread's own store buffer does not order the write for other threads.
//! * Release consistency preserves only the requested order: by fences, acquires and releases; by data and control
//!   dependencies of writes on reads; and by a control dependency with a fence of instruction fetches for all later
//!   accesses. A write stays after earlier accesses of its location. All other threads observe a write at the same
//!   time.
//! * Armv8's model is that of its reference manual, without address translation and instruction fetches. Its external
//!   visibility requirement: *ordered before* (observed by others, or locally ordered) has no cycle.
//! * RISC-V's model is RVWMO: *preserved program order* and the observed order have no cycle.

pub use cohkit_protocol::orders::Model;
use std::collections::BTreeSet;

use crate::cores::CoreKind;
use crate::executions::{for_each_coherent, Event, Execution, Kind, Relation};
use crate::models;
use crate::program::{Acquire, Class, Outcome, Program};

/// Returns true if a model allows an execution.
pub fn allows(model: Model, execution: &Execution) -> bool {
    allows_by_thread(&|_| model, execution)
}

/// Returns true if the program order that each thread's own model preserves, and the order that threads observe of each
/// other, allow an execution. `model` returns the model of the thread with this number.
fn allows_by_thread(model: &dyn Fn(usize) -> Model, execution: &Execution) -> bool {
    // In the formulas of this file, `e` is the execution, and `a` and `b` are indices of events.
    let e = execution;
    let count = e.events.len();
    let conflict = |a, b| e.reads_from(a, b) || e.coherence(a, b) || e.reads_before(a, b);
    let location = |a, b| e.program_order(a, b) && e.same_location(a, b) || conflict(a, b);
    if !Relation::from_predicate(count, location).acyclic() || !is_atomic(e) {
        return false;
    }
    let outside = |a: usize, b: usize| e.events[a].thread != e.events[b].thread;
    // Conflicts of one thread follow its program order, as checked above. A model preserves those that it orders.
    let seen_by_others = |a, b| outside(a, b) && conflict(a, b);
    let preserved = |a: usize, b: usize| match model(e.events[a].thread) {
        Model::Sc => true,
        Model::Tso => preserved_by_tso(e, a, b),
        Model::Rc => preserved_by_rc(e, a, b),
        Model::Armv8 => locally_ordered(e, a, b),
        Model::RiscV => preserved_by_rvwmo(e, a, b),
    };
    let order = Relation::from_predicate(count, |a, b| {
        e.program_order(a, b) && preserved(a, b) || seen_by_others(a, b)
    });
    grace_periods_fit(order, &e.grace_periods())
}

/// Returns true if an acyclic order exists that puts every read-side critical section before or after every grace
/// period.
///
/// If a section comes first, all events up to its end precede all events after the grace period. Otherwise all events
/// before the grace period precede all events from the section's begin on.
fn grace_periods_fit(order: Relation, choices: &[[(u64, u64); 2]]) -> bool {
    let Some((choice, rest)) = choices.split_first() else {
        return order.acyclic();
    };
    let fits = |&(before, after): &(u64, u64)| {
        let mut next = order.clone();
        next.add_product(before, after);
        grace_periods_fit(next, rest)
    };
    order.acyclic() && choice.iter().any(fits)
}

/// Returns all outcomes of a program that a model allows, from the axioms.
///
/// # Errors
/// The program has too many candidate executions.
pub fn outcomes(program: &Program, model: Model) -> Result<BTreeSet<Outcome>, String> {
    let mut outcomes = BTreeSet::new();
    for_each_coherent(program, &mut |execution| {
        if allows(model, execution) {
            outcomes.extend(execution.outcome(program));
        }
    })?;
    Ok(outcomes)
}

/// Returns all outcomes of a program whose threads have a memory model each, from the axioms: each thread keeps the
/// program order that its model preserves, and all threads observe each other's writes at the same time.
///
/// # Errors
/// The program has too many candidate executions, or states if all models are equal.
pub fn allowed_by_thread(program: &Program, models: &[Model]) -> Result<BTreeSet<Outcome>, String> {
    if let Some((&model, others)) = models.split_first() {
        if others.iter().all(|other| *other == model) {
            return allowed(program, model);
        }
    }
    let mut outcomes = BTreeSet::new();
    for_each_coherent(program, &mut |execution| {
        if allows_by_thread(&|thread| models[thread], execution) {
            outcomes.extend(execution.outcome(program));
        }
    })?;
    Ok(outcomes)
}

/// Maximum number of states of a program that is run. A state of eight threads takes about 1 kB.
const MAX_STATES: usize = 1 << 20;

/// Returns all outcomes of a program that a model allows. Runs the program under SC and TSO, which is faster, and
/// applies the axioms otherwise.
///
/// # Errors
/// The program has too many states, or too many candidate executions.
pub fn allowed(program: &Program, model: Model) -> Result<BTreeSet<Outcome>, String> {
    let run = |cores| {
        let too_large = || {
            let name = &program.name;
            format!("{name} has more than {MAX_STATES} states under {model}, which are too many to examine each")
        };
        models::outcomes_within(program, cores, MAX_STATES).ok_or_else(too_large)
    };
    match model {
        _ if program.requires_axiomatic_model() => outcomes(program, model),
        Model::Sc => run(CoreKind::InOrder),
        Model::Tso => run(CoreKind::StoreBuffer),
        Model::Rc | Model::Armv8 | Model::RiscV => outcomes(program, model),
    }
}

/// Returns true if no write of another thread comes between the read and the write of any atomic access.
fn is_atomic(e: &Execution) -> bool {
    let events = 0..e.events.len();
    events.clone().all(|read| {
        let parts = events.clone().filter(|&write| e.atomic(read, write));
        parts.into_iter().all(|write| {
            let is_other_thread = |w: usize| e.events[w].thread != e.events[read].thread;
            let between =
                |w: usize| is_other_thread(w) && e.reads_before(read, w) && e.coherence(w, write);
            !events.clone().any(between)
        })
    })
}

/// Returns true if total store order preserves the order of two events of a thread.
fn preserved_by_tso(e: &Execution, a: usize, b: usize) -> bool {
    let (earlier, later) = (&e.events[a], &e.events[b]);
    if (earlier.kind, later.kind) != (Kind::Write, Kind::Read) {
        return true;
    }
    let between = (a + 1..b).any(|event| e.events[event].atomic);
    let releases = earlier.release && later.acquire == Acquire::Rcsc;
    earlier.atomic || later.atomic || between || releases || e.fenced(a, b)
}

/// Returns true if release consistency preserves the order of two events of a thread.
fn preserved_by_rc(e: &Execution, a: usize, b: usize) -> bool {
    let (earlier, later) = (&e.events[a], &e.events[b]);
    let (reads, writes) = (earlier.kind == Kind::Read, later.kind == Kind::Write);
    e.fenced(a, b)
        || earlier.acquire != Acquire::None
        || later.release
        || earlier.release && later.acquire == Acquire::Rcsc
        || e.atomic(a, b)
        || writes && e.same_location(a, b)
        || reads && (e.data(a, b) || e.address(a, b) || writes && e.pick(a, b))
        || reads && (e.control(a, b) && writes || e.synchronised(a, b))
}

/// Returns true if Armv8's model orders two events of a thread locally. The parts have these names in the reference
/// manual: `local_write` is local write successor, `dependence` dependency-ordered-before, `atomic`
/// atomic-ordered-before, and `barrier` barrier-ordered-before.
fn locally_ordered(e: &Execution, a: usize, b: usize) -> bool {
    let (earlier, later) = (&e.events[a], &e.events[b]);
    let (reads, writes) = (earlier.kind == Kind::Read, later.kind == Kind::Write);
    let between = |holds: &dyn Fn(usize) -> bool| (a + 1..b).any(holds);
    // `b` is a read that may be forwarded from `write`, the thread's last write to its location before it.
    let read_next = |write: usize| {
        e.events[write].kind == Kind::Write
            && !writes
            && e.same_location(write, b)
            && !e.written_between(write, b)
    };
    let local_write = writes && e.same_location(a, b);
    // A pick dependency reaches a later write through a value that the thread itself has written and read.
    let is_picked = |write: usize| {
        let reads = |read: usize| {
            e.events[read].kind == Kind::Read
                && e.same_location(write, read)
                && !e.written_between(write, read)
                && leads_locally(e, read, b)
        };
        e.events[write].kind == Kind::Write && e.pick(a, write) && (write + 1..b).any(reads)
    };
    let dependence = reads
        && (e.address(a, b)
            || e.data(a, b)
            || writes && (e.control(a, b) || e.pick(a, b))
            || writes && between(&|c| e.address(a, c))
            || e.synchronised(a, b)
            || writes && between(&is_picked)
            || between(&|c| (e.address(a, c) || e.data(a, c)) && read_next(c)));
    let atomic = e.atomic(a, b)
        || later.acquire != Acquire::None && between(&|c| e.atomic(a, c) && read_next(c));
    // A fence of loads does not wait for atomic accesses that return no value.
    let barrier = e.fenced_by(a, b, &|before| before != Class::Reads || earlier.returns)
        || earlier.release && later.acquire == Acquire::Rcsc
        || earlier.acquire != Acquire::None
        || later.release
        || earlier.atomic && earlier.acquire_release && earlier.kind == Kind::Write;
    local_write || dependence || atomic || barrier
}

/// Returns true if a chain of locally ordered events leads from `a` to `b`.
fn leads_locally(e: &Execution, a: usize, b: usize) -> bool {
    locally_ordered(e, a, b)
        || (a + 1..b).any(|c| locally_ordered(e, a, c) && leads_locally(e, c, b))
}

/// Returns true if RVWMO preserves the order of two events of a thread. The parts are those of the specification's list
/// of preserved program order: overlapping addresses, explicit synchronisation, syntactic dependencies, and pipeline
/// dependencies.
fn preserved_by_rvwmo(e: &Execution, a: usize, b: usize) -> bool {
    let (earlier, later) = (&e.events[a], &e.events[b]);
    let (reads, writes) = (earlier.kind == Kind::Read, later.kind == Kind::Write);
    let between = |holds: &dyn Fn(usize) -> bool| (a + 1..b).any(holds);
    let special = |event: &Event| event.atomic || event.exclusive;
    // Both parts of an atomic access that acquires and releases do so.
    let acquires = |event: &Event| event.acquire != Acquire::None || event.acquire_release;
    let releases = |event: &Event| event.release || event.acquire_release;
    let annotated = |event: &Event| special(event) && (acquires(event) || releases(event));
    let overlapping = e.same_location(a, b)
        && (writes
            || reads && !e.written_between(a, b) && e.from[a] != e.from[b]
            || !reads && special(earlier) && e.reads_from(a, b));
    let explicit = e.fenced(a, b)
        || acquires(earlier)
        || releases(later)
        || annotated(earlier) && annotated(later)
        || e.atomic(a, b);
    let syntactic = e.address(a, b) || writes && (e.data(a, b) || e.control(a, b));
    let pipeline = between(&|c| {
        (e.address(a, c) || e.data(a, c)) && e.reads_from(c, b) || writes && e.address(a, c)
    });
    overlapping || explicit || syntactic || pipeline
}
