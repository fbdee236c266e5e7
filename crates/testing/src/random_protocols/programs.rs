//! Outcomes of programs on a safe protocol: exploration of all orders of events, against the simulator.

use cohkit_litmus::bursts::named;
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::models;
use cohkit_litmus::program::{Change, Instruction, Program, StoreVariant};
use cohkit_litmus::run::{run, Options, Placement, RunResult};
use cohkit_litmus::timed;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_system::state::StepError;

/// Maximum number of states of a program to visit.
const MAX_STATES: usize = 20_000;

/// Number of runs of a program in the simulator.
const RUNS: u64 = 4;

/// Programs with one thread per remote of the system. They access one location, whose order covers all accesses, or
/// two if the system has two lines. Each comes with true if sequentially consistent outcomes are required.
fn programs(threads: u16, lines: u8) -> Vec<(Program, bool)> {
    let (one_location, two_locations): (&[&str], &[&str]) = match threads {
        1 => (&["WxRx", "WxWxRx", "RxWxRx"], &["WxWyRxRy"]),
        2 => (
            &["Wx+RxRx", "WxRx+Wx", "RxWx+Wx", "WxWx+RxRx"],
            &["WxWy+RyRx", "WxRy+WyRx"],
        ),
        _ => (&["Wx+Wx+RxRx"], &[]),
    };
    let program_named = |name: &&str| named(name).expect("a program");
    let mut programs: Vec<(Program, bool)> = one_location
        .iter()
        .map(|name| (program_named(name), true))
        .collect();
    let atomics: Vec<Program> = programs
        .iter()
        .map(|(program, _)| atomic(program))
        .collect();
    programs.extend(atomics.into_iter().map(|program| (program, true)));
    if lines > 1 {
        // Each location has its own order; a single thread finds all of its own stores.
        programs.extend(
            two_locations
                .iter()
                .map(|name| (program_named(name), threads == 1)),
        );
    }
    programs
}

/// The same program with atomic additions in place of stores.
fn atomic(program: &Program) -> Program {
    let mut program = program.clone();
    for thread in &mut program.threads {
        for instruction in &mut thread.code {
            let &mut Instruction::Store { to: at, value, .. } = instruction else {
                continue;
            };
            *instruction = Instruction::Atomic {
                to: thread.registers.len(),
                at,
                change: Change::FetchAdd,
                value,
                acquire: false,
                release: false,
                returns: true,
                via: StoreVariant::ProtocolDefault,
            };
            thread
                .names
                .push(format!("X{}", 10 + thread.registers.len()));
            thread.registers.push(0);
        }
    }
    program.name = format!("{} with atomics", program.name);
    program
}

/// Runs programs on a protocol that has no violation by execution. `stops` is true if accesses may be rejected, or kept
/// from beginning, for ever. Returns the number of programs that came to an end.
///
/// # Errors
/// Two engines disagree; the error is a sentence.
pub fn compare(
    protocol: &Protocol,
    home: &Controller,
    seed: u64,
    stops: bool,
) -> Result<u64, String> {
    let system = &protocol.systems[0];
    let threads = system.remotes.total();
    let options = Options {
        max_states: MAX_STATES,
        // The system has the same number of lines at each home.
        placement: Placement::RoundRobin,
        ..Options::default()
    };
    let mut completed = 0;
    for (number, (program, ordered)) in programs(threads, system.lines).iter().enumerate() {
        let name = &program.name;
        let outcomes = match run(protocol, home, program, &options, &mut || true) {
            RunResult::Outcomes { outcomes, .. } => outcomes,
            RunResult::Error(error @ StepError::Violated(_)) => {
                return Err(format!("executed: no violation; {name}: {error:?}"));
            }
            _ => continue,
        };
        completed += 1;
        if *ordered {
            let allowed = models::outcomes(program, CoreKind::InOrder);
            if let Some(end) = outcomes.iter().find(|outcome| !allowed.contains(outcome)) {
                let words = program.format_outcome(end);
                return Err(format!(
                    "executed: no violation; {name} shows {words}, in no order of its accesses"
                ));
            }
        }
        // The simulator places lines at homes in every way, and one program per protocol is enough. Protocols with
        // networks are not simulated here.
        let is_placed_freely = program.locations.len() > 1 && protocol.homes > 1;
        let is_sampled = number as u64 == seed % 4 || !ordered;
        if !protocol.networks.is_empty() || is_placed_freely || !is_sampled {
            continue;
        }
        let level = timed::Level {
            protocol,
            home: home.clone(),
            caches: threads,
        };
        let machines = [timed::Machine {
            upper: level,
            lower: None,
        }];
        let options = timed::Options {
            cores: CoreKind::InOrder,
            runs: RUNS,
            seed,
        };
        let Ok(observed) = timed::observe(&machines, program, &options, &mut || true) else {
            continue;
        };
        if let Some((failure, seed)) = observed.failure.filter(|_| !stops) {
            return Err(format!(
                "executed: no violation; {name} in the simulator, seed {seed}: {failure}"
            ));
        }
        if let Some((end, (_, seed))) = observed
            .counts
            .iter()
            .find(|(end, _)| !outcomes.contains(*end))
        {
            let words = program.format_outcome(end);
            return Err(format!(
                "{name} ends with {words} in the simulator, seed {seed}, and in no order of events"
            ));
        }
    }
    Ok(completed)
}
