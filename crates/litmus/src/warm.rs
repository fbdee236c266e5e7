//! Programs before caches that have had the lines.
//!
//! Where copies may be old (`guarantee none`), what a thread finds depends on what it has read before: a shape in which each
//! location is read once finds nothing in a cache.

use crate::cycles::classic;
use crate::program::{Acquire, Instruction, Location, Program};
use cohkit_protocol::protocol::Protocol;
use std::collections::BTreeSet;

/// How the names of such programs end.
const WARM: &str = "+warm";

/// The classic programs that say whether a text keeps what it promises; each before warm caches, too, if copies may be old.
pub fn judging(protocol: &Protocol) -> Vec<Program> {
    let mut programs = classic();
    if !protocol.guarantee.coherent {
        let warm: Vec<Program> = programs.iter().filter_map(warmed).collect();
        programs.extend(warm);
    }
    programs
}

/// A program whose threads first read, in no order and unobserved, each location that they read afterwards. Nothing if none
/// reads.
pub fn warmed(program: &Program) -> Option<Program> {
    let mut warm = program.clone();
    warm.name.push_str(WARM);
    let mut any = false;
    for thread in &mut warm.threads {
        let loads = thread
            .code
            .iter()
            .filter_map(|instruction| match *instruction {
                Instruction::Load { from, .. } => from.direct(),
                _ => None,
            });
        let loads: BTreeSet<Location> = loads.collect();
        let mut code = Vec::new();
        for from in loads {
            let to = thread.registers.len();
            thread.registers.push(0);
            thread.names.push(format!(".{to}"));
            let acquire = Acquire::No;
            let from = from.into();
            code.push(Instruction::Load { to, from, acquire });
        }
        let count = code.len();
        any |= count > 0;
        code.extend(thread.code.iter().map(|instruction| match *instruction {
            Instruction::Branch { on, zero, to } => Instruction::Branch {
                on,
                zero,
                to: to + count,
            },
            other => other,
        }));
        thread.code = code;
    }
    any.then_some(warm)
}

/// The classic program of a name, before caches that have had the lines if it ends so; or the burst of stores whose code the
/// name is.
pub fn named(name: &str) -> Option<Program> {
    match name.strip_suffix(WARM) {
        Some(cold) => warmed(&crate::cycles::named(cold)?),
        None => crate::cycles::named(name).or_else(|| crate::bursts::named(name)),
    }
}
