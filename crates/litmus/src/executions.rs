//! Candidate executions of a program: the write that each read reads from, and the coherence order of each location.
//!
//! The axiomatic models accept or reject candidates. Candidates have no cores and no memory, so their outcomes are
//! independent of those that [`crate::models`] finds by running programs.

mod event;
mod execution;
mod histories;
mod limits;
mod relation;
mod thread_paths;

pub use event::{Event, Kind};
pub use execution::Execution;
pub use relation::Relation;

use crate::program::{Claim, Location, Observable, Program};
use histories::{History, HistorySearch};
use limits::{MAX_CANDIDATES, MAX_EVENTS};
use thread_paths::{find_thread_paths, thread_paths, ThreadPath};

/// Returns true if every address that the program computes is that of a location.
///
/// # Errors
/// The program has too many executions to decide this.
pub(crate) fn computes_only_location_addresses(program: &Program) -> Result<bool, String> {
    if !program.has_addresses() {
        return Ok(true);
    }
    let mut has_invalid_address = false;
    match find_thread_paths(program, &mut has_invalid_address) {
        Some(_) => Ok(true),
        None if has_invalid_address => Ok(false),
        None => Err(format!(
            "{} has too many executions to determine its addresses",
            program.name
        )),
    }
}

/// Calls `visit` with every candidate execution of a program.
///
/// # Errors
/// The program has too many candidates or too many events.
pub fn for_each(program: &Program, visit: &mut dyn FnMut(&Execution)) -> Result<(), String> {
    candidates(program, false, visit)
}

/// Calls `visit` with the candidates that are coherent at each location and in which no write comes between the parts
/// of an atomic access. Every model demands both.
///
/// # Errors
/// The program has too many candidates or too many events.
pub(crate) fn for_each_coherent(
    program: &Program,
    visit: &mut dyn FnMut(&Execution),
) -> Result<(), String> {
    candidates(program, true, visit)
}

/// Calls `visit` for each candidate execution of a program; with `coherent`, for each coherent one.
///
/// # Errors
/// There are more candidates, paths or events than the limits allow.
fn candidates(
    program: &Program,
    coherent: bool,
    visit: &mut dyn FnMut(&Execution),
) -> Result<(), String> {
    let too_large = || format!("{} has too many executions to examine each", program.name);
    let mut paths = thread_paths(program).ok_or_else(too_large)?;
    for (thread, paths) in paths.iter_mut().enumerate() {
        paths.retain(|path| passes_thread_filter(&program.filter, thread, &path.registers));
    }
    let path_counts = paths.iter().map(|paths| paths.len() as u64);
    if path_counts.fold(1u64, u64::saturating_mul) > MAX_CANDIDATES as u64 {
        return Err(too_large());
    }
    if paths.iter().any(Vec::is_empty) {
        return Ok(());
    }
    let mut chosen = vec![0; paths.len()];
    let (mut count, mut candidate_count) = (0, 0);
    loop {
        let chosen_paths: Vec<&ThreadPath> = paths
            .iter()
            .zip(&chosen)
            .map(|(paths, &index)| &paths[index])
            .collect();
        let events: Vec<Event> = chosen_paths
            .iter()
            .flat_map(|path| path.events.clone())
            .collect();
        if events.len() > MAX_EVENTS {
            return Err(too_large());
        }
        let mut execution = Execution {
            from: vec![None; events.len()],
            rank: vec![0; events.len()],
            events: &events,
            paths: chosen_paths,
        };
        let mut histories_by_location = Vec::new();
        for location in 0..program.locations.len() {
            let initial_value = program.initial[location];
            let mut search =
                HistorySearch::new(&events, location as Location, initial_value, coherent);
            search.extend_order(&mut count);
            histories_by_location.push(search.histories);
            if count > MAX_CANDIDATES {
                return Err(too_large());
            }
            if histories_by_location[location].is_empty() {
                break;
            }
        }
        let history_counts = histories_by_location
            .iter()
            .map(|histories| histories.len() as u64);
        candidate_count += history_counts.fold(1, u64::saturating_mul);
        if candidate_count > MAX_CANDIDATES as u64 {
            return Err(too_large());
        }
        for_each_combination(&mut execution, &histories_by_location, visit);
        if !next_choice(&mut chosen, &paths) {
            return Ok(());
        }
    }
}

/// Returns true if the final registers of a thread satisfy the parts of a filter that name only this thread.
fn passes_thread_filter(filter: &Claim, thread: usize, registers: &[i64]) -> bool {
    match filter {
        Claim::Equals(Observable::Register(observed_thread, register), value)
            if *observed_thread == thread =>
        {
            registers[*register] == *value
        }
        Claim::And(a, b) => {
            passes_thread_filter(a, thread, registers) && passes_thread_filter(b, thread, registers)
        }
        _ => true,
    }
}

/// Advances to the next choice of a path per thread. Returns false after the last.
fn next_choice(chosen: &mut [usize], paths: &[Vec<ThreadPath>]) -> bool {
    for (choice, paths) in chosen.iter_mut().zip(paths) {
        *choice += 1;
        if *choice < paths.len() {
            return true;
        }
        *choice = 0;
    }
    false
}

/// Calls `visit` with every combination of one history per location.
fn for_each_combination(
    execution: &mut Execution,
    histories_by_location: &[Vec<History>],
    visit: &mut dyn FnMut(&Execution),
) {
    let Some((histories, rest)) = histories_by_location.split_first() else {
        return visit(execution);
    };
    for history in histories {
        for &(read, from) in &history.from {
            execution.from[read] = from;
        }
        for (rank, &write) in history.order.iter().enumerate() {
            execution.rank[write] = rank;
        }
        for_each_combination(execution, rest, visit);
    }
}
