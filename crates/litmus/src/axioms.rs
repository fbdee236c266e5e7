//! Memory models as axioms on candidate executions.
//!
//! All have in common that the accesses of one location are in one order that agrees with the program, and that nothing
//! comes between the parts of an atomic access. They differ in what they keep of the order of a thread, and then demand
//! that nothing comes before itself. Critical sections of readers and grace periods of read-copy-update add to each what
//! the Linux kernel promises of them:
//!
//! * sequential consistency keeps all of it, and everybody sees a write at once, its own thread too;
//! * total store order keeps it but for a write and a later read, with no full fence and no atomic access between them;
//!   what a thread reads out of its own buffer says nothing about when others see the write;
//! * release consistency keeps only what is asked for: by fences, by reads that acquire and writes that release, by
//!   dependences of what is written, or whether, on what was read, and of all that follows a branch on it where
//!   instructions are fetched anew; and the order of a write behind accesses of its location. A write is seen by all other
//!   threads at once;
//! * Armv8's model is that of its reference manual without address translation and instruction fetches: external visibility
//!   demands that *ordered before* (observed by others, or locally ordered) has no cycle;
//! * RISC-V's is RVWMO: *preserved program order* and what is observed have no cycle.

pub use cohkit_protocol::orders::Model;
use std::collections::BTreeSet;

use crate::cores::Cores;
use crate::executions::{each_coherent, Event, Execution, Kind, Relation};
use crate::models;
use crate::program::{Acquire, Class, End, Program};

/// Whether a model allows an execution.
pub fn allows(model: Model, execution: &Execution) -> bool {
    let e = execution;
    let count = e.events.len();
    let conflict = |a, b| e.reads_from(a, b) || e.coherence(a, b) || e.from_read(a, b);
    let location = |a, b| e.program_order(a, b) && e.same_place(a, b) || conflict(a, b);
    if !Relation::of(count, location).acyclic() || !atomic(e) {
        return false;
    }
    let outside = |a: usize, b: usize| e.events[a].thread != e.events[b].thread;
    let seen_by_others = |a, b| outside(a, b) && conflict(a, b);
    let order = Relation::of(count, |a, b| match model {
        Model::Sc => e.program_order(a, b) || conflict(a, b),
        Model::Tso => {
            e.program_order(a, b) && stays(e, a, b)
                || e.reads_from(a, b) && outside(a, b)
                || e.coherence(a, b)
                || e.from_read(a, b)
        }
        Model::Rc => e.program_order(a, b) && asked(e, a, b) || seen_by_others(a, b),
        Model::Armv8 => e.program_order(a, b) && locally_ordered(e, a, b) || seen_by_others(a, b),
        Model::RiscV => {
            e.program_order(a, b) && preserved(e, a, b)
                || e.reads_from(a, b) && outside(a, b)
                || e.coherence(a, b)
                || e.from_read(a, b)
        }
    });
    grace_periods_fit(order, &e.grace_periods())
}

/// Returns true if an order without cycles puts every critical section of a reader before or behind every grace period.
///
/// A section that ends before a grace period does is seen as a whole behind the grace period; otherwise the section begins
/// after the grace period did, and sees all that came before.
fn grace_periods_fit(order: Relation, choices: &[[(u64, u64); 2]]) -> bool {
    let Some((choice, others)) = choices.split_first() else {
        return order.acyclic();
    };
    let fits = |&(before, after): &(u64, u64)| {
        let mut next = order.clone();
        next.join(before, after);
        grace_periods_fit(next, others)
    };
    order.acyclic() && choice.iter().any(fits)
}

/// All ends of a program that a model allows.
///
/// # Errors
/// The program is too large for that.
pub fn ends(program: &Program, model: Model) -> Result<BTreeSet<End>, String> {
    let mut ends = BTreeSet::new();
    each_coherent(program, &mut |execution| {
        if allows(model, execution) {
            ends.extend(execution.end(program));
        }
    })?;
    Ok(ends)
}

/// States of a program that is run, at most: eight threads take about a kilobyte for each.
const MOST_STATES: usize = 1 << 20;

/// The same, by running the program where there is a way to, which is faster.
///
/// # Errors
/// The program is too large for that, or for the axioms.
pub fn allowed(program: &Program, model: Model) -> Result<BTreeSet<End>, String> {
    let run = |cores| {
        let too_large = || {
            let name = &program.name;
            format!("{name} has more than {MOST_STATES} states under {model}, which are too many to look at each")
        };
        models::ends_within(program, cores, MOST_STATES).ok_or_else(too_large)
    };
    match model {
        _ if program.needs_axioms() => ends(program, model),
        Model::Sc => run(Cores::InOrder),
        Model::Tso => run(Cores::StoreBuffer),
        Model::Rc | Model::Armv8 | Model::RiscV => ends(program, model),
    }
}

/// Whether no write of another thread comes between what an atomic access reads and what it writes.
fn atomic(e: &Execution) -> bool {
    let events = 0..e.events.len();
    events.clone().all(|read| {
        let parts = events.clone().filter(|&write| e.atomic(read, write));
        parts.into_iter().all(|write| {
            let other = |w: usize| e.events[w].thread != e.events[read].thread;
            let between = |w: usize| other(w) && e.from_read(read, w) && e.coherence(w, write);
            !events.clone().any(between)
        })
    })
}

/// Whether total store order keeps two events of a thread in order.
fn stays(e: &Execution, a: usize, b: usize) -> bool {
    let (first, then) = (&e.events[a], &e.events[b]);
    if (first.kind, then.kind) != (Kind::Write, Kind::Read) {
        return true;
    }
    let between = (a + 1..b).any(|event| e.events[event].atomic);
    let releases = first.release && then.acquire == Acquire::Full;
    first.atomic || then.atomic || between || releases || e.fenced(a, b)
}

/// Whether something asks for the order of two events of a thread.
fn asked(e: &Execution, a: usize, b: usize) -> bool {
    let (first, then) = (&e.events[a], &e.events[b]);
    let (reads, writes) = (first.kind == Kind::Read, then.kind == Kind::Write);
    e.fenced(a, b)
        || first.acquire != Acquire::No
        || then.release
        || first.release && then.acquire == Acquire::Full
        || e.atomic(a, b)
        || writes && e.same_place(a, b)
        || reads && (e.data(a, b) || e.address(a, b) || writes && e.pick(a, b))
        || reads && (e.control(a, b) && writes || e.synchronised(a, b))
}

/// Whether two events of a thread are locally ordered by Armv8's model.
fn locally_ordered(e: &Execution, a: usize, b: usize) -> bool {
    let (first, then) = (&e.events[a], &e.events[b]);
    let (reads, writes) = (first.kind == Kind::Read, then.kind == Kind::Write);
    let between = |holds: &dyn Fn(usize) -> bool| (a + 1..b).any(holds);
    // The reads that the last write of their location before them in the thread may be read by.
    let read_next = |write: usize| {
        e.events[write].kind == Kind::Write
            && !writes
            && e.same_place(write, b)
            && !e.written_between(write, b)
    };
    let local_write = writes && e.same_place(a, b);
    // A choice reaches a later write through what the thread itself has written and read.
    let chosen = |write: usize| {
        let reads = |read: usize| {
            e.events[read].kind == Kind::Read
                && e.same_place(write, read)
                && !e.written_between(write, read)
                && leads(e, read, b)
        };
        e.events[write].kind == Kind::Write && e.pick(a, write) && (write + 1..b).any(reads)
    };
    let dependence = reads
        && (e.address(a, b)
            || e.data(a, b)
            || writes && (e.control(a, b) || e.pick(a, b))
            || writes && between(&|c| e.address(a, c))
            || e.synchronised(a, b)
            || writes && between(&chosen)
            || between(&|c| (e.address(a, c) || e.data(a, c)) && read_next(c)));
    let atomic = e.atomic(a, b)
        || then.acquire != Acquire::No && between(&|c| e.atomic(a, c) && read_next(c));
    // A fence of loads waits for no atomic access that returns nothing.
    let barrier = e.fenced_by(a, b, &|before| before != Class::Reads || first.returns)
        || first.release && then.acquire == Acquire::Full
        || first.acquire != Acquire::No
        || then.release
        || first.atomic && first.both && first.kind == Kind::Write;
    local_write || dependence || atomic || barrier
}

/// Whether an event of a thread leads to another by what is locally ordered.
fn leads(e: &Execution, a: usize, b: usize) -> bool {
    locally_ordered(e, a, b) || (a + 1..b).any(|c| locally_ordered(e, a, c) && leads(e, c, b))
}

/// Whether the order of two events of a thread is preserved by RVWMO.
fn preserved(e: &Execution, a: usize, b: usize) -> bool {
    let (first, then) = (&e.events[a], &e.events[b]);
    let (reads, writes) = (first.kind == Kind::Read, then.kind == Kind::Write);
    let between = |holds: &dyn Fn(usize) -> bool| (a + 1..b).any(holds);
    let special = |event: &Event| event.atomic || event.exclusive;
    // An atomic access that acquires and releases does so with both its parts.
    let acquires = |event: &Event| event.acquire != Acquire::No || event.both;
    let releases = |event: &Event| event.release || event.both;
    let annotated = |event: &Event| special(event) && (acquires(event) || releases(event));
    let overlapping = e.same_place(a, b)
        && (writes
            || reads && !e.written_between(a, b) && e.from[a] != e.from[b]
            || !reads && special(first) && e.reads_from(a, b));
    let explicit = e.fenced(a, b)
        || acquires(first)
        || releases(then)
        || annotated(first) && annotated(then)
        || e.atomic(a, b);
    let syntactic = e.address(a, b) || writes && (e.data(a, b) || e.control(a, b));
    let pipeline = between(&|c| {
        (e.address(a, c) || e.data(a, c)) && e.reads_from(c, b) || writes && e.address(a, c)
    });
    overlapping || explicit || syntactic || pipeline
}
