//! Memory models as axioms on candidate executions.
//!
//! All have in common that the accesses of one location are in one order that agrees with the program, and that nothing
//! comes between the parts of an atomic access. They differ in what they keep of the order of a thread, and then demand
//! that nothing comes before itself:
//!
//! * sequential consistency keeps all of it, and everybody sees a write at once, its own thread too;
//! * total store order keeps it but for a write and a later read, with no full fence and no atomic access between them;
//!   what a thread reads out of its own buffer says nothing about when others see the write;
//! * release consistency keeps only what is asked for: by fences, by reads that acquire and writes that release, by
//!   dependences of what is written, or whether, on what was read, and of all that follows a branch on it where
//!   instructions are fetched anew. A write is seen by all other threads at once.

pub use cohkit_protocol::orders::Model;
use std::collections::BTreeSet;

use crate::cores::Cores;
use crate::executions::{each, Execution, Kind, Relation};
use crate::models;
use crate::program::{Acquire, End, Fence, Program};

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
    let order = Relation::of(count, |a, b| match model {
        Model::Sc => e.program_order(a, b) || conflict(a, b),
        Model::Tso => {
            e.program_order(a, b) && stays(e, a, b)
                || e.reads_from(a, b) && outside(a, b)
                || e.coherence(a, b)
                || e.from_read(a, b)
        }
        Model::Rc => e.program_order(a, b) && asked(e, a, b) || conflict(a, b) && outside(a, b),
    });
    order.acyclic()
}

/// All ends of a program that a model allows.
///
/// # Errors
/// The program is too large for that.
pub fn ends(program: &Program, model: Model) -> Result<BTreeSet<End>, String> {
    let mut ends = BTreeSet::new();
    each(program, &mut |execution| {
        if allows(model, execution) {
            ends.insert(execution.end(program));
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
        Model::Sc => run(Cores::InOrder),
        Model::Tso => run(Cores::StoreBuffer),
        Model::Rc => ends(program, model),
    }
}

/// Whether no write comes between what an atomic access reads and what it writes.
fn atomic(e: &Execution) -> bool {
    let events = 0..e.events.len();
    events.clone().all(|read| {
        let parts = events.clone().filter(|&write| e.atomic(read, write));
        parts.into_iter().all(|write| {
            let between = |w: usize| e.from_read(read, w) && e.coherence(w, write);
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
    first.atomic || then.atomic || between || releases || e.fenced(a, b, Fence::Full)
}

/// Whether something asks for the order of two events of a thread.
fn asked(e: &Execution, a: usize, b: usize) -> bool {
    let (first, then) = (&e.events[a], &e.events[b]);
    let (reads, writes) = (first.kind == Kind::Read, first.kind == Kind::Write);
    e.fenced(a, b, Fence::Full)
        || reads && e.fenced(a, b, Fence::Loads)
        || writes && then.kind == Kind::Write && e.fenced(a, b, Fence::Stores)
        || first.acquire != Acquire::No
        || then.release
        || first.release && then.acquire == Acquire::Full
        || e.atomic(a, b)
        || e.data(a, b)
        || e.control(a, b) && then.kind == Kind::Write
        || e.synchronised(a, b)
}
