//! Latencies and throughput of the Verilated home, with the agents and checks of lockstep but without random delays.
//!
//! Latencies are those of an idle home, from header to header. Memory and remote answer in the next cycle.

use super::bench::{
    run_read_burst, run_single_operation, run_traffic, Crossing, LineOperation, Pattern, PortEvent,
    Rate, Run, Traffic,
};
use super::setup::{RunError, Setup};
use cohkit_protocol::controller::{Access, Event};

/// Latency of one operation of the home, in cycles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Latency {
    /// Description of the operation, with the state of the line.
    pub operation: String,
    /// Cycles from the arrival of the operation to the departure of its answer. Without an answer: to the transfer of
    /// the bytes to memory.
    pub cycles: u64,
}

/// Traffic to be measured, and the environment of the home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// Operation on each line.
    pub traffic: Traffic,
    /// Earlier operation of the remote on each line, if any.
    pub preparation: Option<Traffic>,
    /// Selection of the lines.
    pub pattern: Pattern,
    /// Number of lines.
    pub lines: usize,
    /// Memory latency in cycles: from the address of a read to its first beat, and from the bytes of a write to its
    /// response.
    pub memory: u64,
    /// Message latency from port to port, in cycles.
    pub delay: u64,
    /// Maximum number of lines in progress, for the remote or the device.
    pub max_active: usize,
}

/// Returns the parameters of a run without random delays, illegal traffic or operations that the device starts by
/// itself. Latencies are in cycles.
pub(super) fn deterministic_run(
    pattern: Pattern,
    lines: usize,
    memory_latency: u64,
    message_latency: u64,
) -> Run {
    Run {
        seed: 0,
        messages: 0,
        lines,
        pattern,
        max_memory_latency: memory_latency,
        max_message_latency: message_latency,
        ready_rate: 16,
        operation_rate: 0,
        first_target: 0,
        illegal_rate: 0,
        has_fixed_latency: true,
    }
}

/// Returns an upper bound of the cycles that a directory of this size takes to clear itself after reset.
pub(super) fn clearing_cycles(setup: &Setup) -> u64 {
    (setup.shape.ways as u64) << setup.shape.set_bits
}

/// Measures each operation once, on a separate line.
///
/// # Errors
/// [`RunError`], also if the home deviates from the controllers.
pub fn latencies(setup: &Setup) -> Result<Vec<Latency>, RunError> {
    // The first store of a line obtains write permission, the second one writes.
    let [load, store, evict] =
        [Access::Load, Access::Store, Access::Evict].map(LineOperation::Access);
    let mut operations = vec![
        ("read, not held".to_string(), vec![], load),
        ("write, not held".to_string(), vec![], store),
        ("upgrade".to_string(), vec![load], store),
        ("write-back".to_string(), vec![store, store], evict),
    ];
    for (number, local) in setup.home.locals.iter().enumerate() {
        for (state, preparation) in [
            ("not held", vec![]),
            ("held clean", vec![load]),
            ("held dirty", vec![store, store]),
        ] {
            let lock = if local.locks { " with lock" } else { "" };
            let description = format!("{}{lock}, {state}", local.name);
            operations.push((description, preparation, LineOperation::Local(number as u8)));
        }
    }
    let run = deterministic_run(Pattern::Spread, operations.len(), 1, 0);
    setup.run_bench(run, |bench| {
        let mut latencies = Vec::new();
        for (line_index, (description, preparation, operation)) in
            operations.into_iter().enumerate()
        {
            for operation in preparation {
                run_single_operation(bench, line_index, operation)?;
            }
            let port_events = run_single_operation(bench, line_index, operation)?;
            if let Some(cycles) = latency(&port_events) {
                latencies.push(Latency {
                    operation: description,
                    cycles,
                });
            }
        }
        Ok(latencies)
    })
}

/// Returns the cycles from the first port event to the answer: of a local operation to its response, of a message to
/// the header of the home's message or, without one, to the write of memory. Returns `None` without an answer.
fn latency(port_events: &[Crossing]) -> Option<u64> {
    let first = port_events.first()?;
    let cycles_to = |matches_event: fn(&PortEvent) -> bool| {
        port_events
            .iter()
            .find(|crossing| matches_event(&crossing.event))
            .map(|crossing| crossing.cycle - first.cycle)
    };
    match first.event {
        PortEvent::LocalRequest(_) => {
            cycles_to(|event| matches!(event, PortEvent::LocalResponse(_)))
        }
        _ => cycles_to(|event| matches!(event, PortEvent::TxHeader(_)))
            .or_else(|| cycles_to(|event| matches!(event, PortEvent::WriteTransferred(_)))),
    }
}

/// Latencies of parts of the home in cycles, for the simulator's model of a home, which receives whole messages and
/// whole lines of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parts {
    /// From a request at the home's port, for a line without holder, to the read request to memory.
    pub latency: u64,
    /// From memory's answer at the home's port to the last beat of the message with its data.
    pub completion_latency: u64,
    /// Cycles for which such a request occupies its unit, before the unit accepts the next event.
    pub occupancy: u64,
    /// Cycles for which such an answer of memory occupies its unit.
    pub completion_occupancy: u64,
    /// Additional latency of a local operation that takes a line from the remote. It excludes the remote's latency, and
    /// twice `latency`: once for the operation, and once for the remote's answer.
    pub local: u64,
}

/// Number of lines that are read back to back from one unit, to measure its occupancy.
const BURST: usize = 16;

/// Measures the parameters of the simulator's model of the home. Accesses to a single line give the latencies. A burst
/// of requests to one unit gives its occupancy: the minimum time between the ends of two consecutive events.
///
/// # Errors
/// [`RunError`], also if the home deviates from the controllers.
pub fn parts(setup: &Setup) -> Result<Parts, RunError> {
    let run = deterministic_run(Pattern::OneUnit, BURST, 1, 0);
    let (read, recall, burst) = setup.run_bench(run, |bench| {
        let read = run_single_operation(bench, 0, LineOperation::Access(Access::Load))?;
        let recall = run_single_operation(bench, 0, LineOperation::Local(setup.rom.evict))?;
        Ok((read, recall, run_read_burst(bench)?))
    })?;
    derive_parts(&read, &recall, &burst)
        .ok_or_else(|| RunError::Tool("the latency of a part of the home cannot be derived".into()))
}

/// Derives the latencies from the port events of a read, a recall and a burst of reads. Returns `None` if an expected
/// event is missing.
fn derive_parts(read: &[Crossing], recall: &[Crossing], burst: &[Crossing]) -> Option<Parts> {
    let cycle_of = |port_events: &[Crossing], matches_event: fn(&PortEvent) -> bool| {
        let crossing = port_events
            .iter()
            .find(|crossing| matches_event(&crossing.event));
        crossing.map(|crossing| crossing.cycle)
    };
    let is_rx_header = |event: &PortEvent| matches!(event, PortEvent::RxHeader(_));
    let is_tx_last = |event: &PortEvent| matches!(event, PortEvent::TxLastBeat(_));
    let is_memory_request = |event: &PortEvent| matches!(event, PortEvent::ReadAddress(_));
    let is_memory_data = |event: &PortEvent| matches!(event, PortEvent::ReadFirstBeat(_));
    let is_local_request = |event: &PortEvent| matches!(event, PortEvent::LocalRequest(_));
    let is_local_answer = |event: &PortEvent| matches!(event, PortEvent::LocalResponse(_));
    let latency = cycle_of(read, is_memory_request)?.checked_sub(cycle_of(read, is_rx_header)?)?;
    // A recall has two parts: from the operation to the forward, and from the remote's answer to the response.
    let forward_cycles =
        cycle_of(recall, is_tx_last)?.checked_sub(cycle_of(recall, is_local_request)?)?;
    let answer_cycles =
        cycle_of(recall, is_local_answer)?.checked_sub(cycle_of(recall, is_rx_header)?)?;
    let occupancy = |is_kind: fn(Event) -> bool| {
        let handled = burst.iter().filter_map(|crossing| match crossing.event {
            PortEvent::EventHandled(_, event) => Some((crossing.cycle, event)),
            _ => None,
        });
        let handled: Vec<(u64, Event)> = handled.collect();
        let pairs = handled.windows(2).filter(|pair| is_kind(pair[1].1));
        pairs.map(|pair| pair[1].0 - pair[0].0).min()
    };
    Some(Parts {
        latency,
        completion_latency: cycle_of(read, is_tx_last)?
            .checked_sub(cycle_of(read, is_memory_data)?)?,
        occupancy: occupancy(|event| matches!(event, Event::Message(_)))?,
        completion_occupancy: occupancy(|event| matches!(event, Event::MemoryData(_)))?,
        local: (forward_cycles + answer_cycles).saturating_sub(2 * latency),
    })
}

/// Measures the throughput of a scenario, after its preparation.
///
/// # Errors
/// [`RunError`], also if the home deviates from the controllers.
pub fn rate(setup: &Setup, scenario: &Scenario) -> Result<Rate, RunError> {
    let Scenario {
        traffic,
        preparation,
        pattern,
        lines,
        memory,
        delay,
        max_active,
    } = *scenario;
    let run = deterministic_run(pattern, lines, memory, delay);
    setup.run_bench(run, |bench| {
        if let Some(preparation) = preparation {
            run_traffic(bench, preparation, max_active)?;
        }
        run_traffic(bench, traffic, max_active)
    })
}
