//! Cycles of accesses at the processor ports of a system without random delays, and their rate with more requesters.

use super::build::{MSHRS, TIMING_SET_WIDTH};
use super::ports::SystemPorts;
use cohkit_system::ports::{PortError, PortOperation, PortRequest, Ports};

/// Accesses of each port for a rate.
const ACCESSES: u64 = 256;

/// Time of one access in an otherwise idle system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Latency {
    /// The access, and the state of its line before.
    pub access: &'static str,
    /// Cycles from the request to the answer at the port; 1 for an answer in the next cycle.
    pub cycles: u64,
}

/// Rates at which ports complete accesses, in accesses per cycle of all ports together. Each port alternates between two
/// lines of one set with one way, so that each access evicts the other line if the protocol keeps lines in caches. With
/// several outstanding accesses, a port does so in as many sets.
#[derive(Clone, PartialEq, Debug)]
pub struct Rate {
    /// Number of ports with accesses.
    pub requesters: usize,
    /// Number of outstanding accesses of each of these ports.
    pub outstanding: usize,
    /// Rate of loads.
    pub loads: f64,
    /// Rate of stores.
    pub stores: f64,
}

/// An access of a sequence: its name, port, line, and true for a store.
type Step = (&'static str, usize, usize, bool);

/// Numbers of outstanding accesses of a port for rates; at most the MSHRs of the test bench.
const OUTSTANDING: [usize; 3] = [1, 2, MSHRS];
/// Number of sets of a cache, each with one way.
const SETS: usize = 1 << TIMING_SET_WIDTH;

/// Accesses of one cache, in this order. Lines 0 and `SETS` are in one set of one way.
const ALONE: [Step; 5] = [
    ("load, not in a cache", 0, 0, false),
    ("load, in this cache", 0, 0, false),
    ("store, in this cache alone, only read so far", 0, 0, true),
    ("store, in this cache, written before", 0, 0, true),
    (
        "load, not in a cache, evicts a written line",
        0,
        SETS,
        false,
    ),
];
/// Accesses of two caches, in this order after those of one.
const TOGETHER: [Step; 4] = [
    ("store, not in a cache", 1, 1, true),
    ("load, written by another cache", 0, 1, false),
    ("store, in this cache and in another", 0, 1, true),
    ("store, written by another cache", 1, 1, true),
];

/// A system and the last written words.
struct Measured<'p, 's> {
    ports: &'p mut SystemPorts<'s>,
    words: Vec<u64>,
}

impl Measured<'_, '_> {
    /// Begins with a new system.
    fn reset(&mut self) -> Result<(), PortError> {
        self.words = (0..self.ports.lines() as u64).collect();
        self.ports.reset(0, &self.words)
    }

    /// Begins an access. A store writes another word than the last one.
    fn begin(
        &mut self,
        (port, tag): (usize, usize),
        line: usize,
        write: bool,
    ) -> Result<(), PortError> {
        if write {
            self.words[line] += 0x100;
        }
        self.ports.begin(PortRequest {
            port,
            tag,
            delay: 0,
            operation: PortOperation::LoadStore,
            write,
            uncached: false,
            line,
            data: self.words[line],
        })
    }

    /// Performs an access in an idle system. Returns its cycles.
    fn perform(&mut self, (name, port, line, write): Step) -> Result<Latency, PortError> {
        self.begin((port, 0), line, write)?;
        let completion = self.ports.next_completion()?;
        self.check(name, line, write, completion.data)?;
        let cycles = self.ports.last_timing().cycles;
        self.ports.end()?;
        Ok(Latency {
            access: name,
            cycles,
        })
    }

    /// Checks the word that a load has returned.
    fn check(&self, name: &str, line: usize, write: bool, data: u64) -> Result<(), PortError> {
        if write || data == self.words[line] {
            return Ok(());
        }
        let expected = self.words[line];
        let text = format!("{name}: line {line} has {data:#x}, not {expected:#x}");
        Err(PortError::Violated(text))
    }

    /// Measures the rate of accesses by some ports with this number of outstanding accesses each. The accesses with one
    /// tag alternate between two lines of one set of one way, which no other port uses.
    fn rate(
        &mut self,
        requesters: usize,
        outstanding: usize,
        write: bool,
    ) -> Result<f64, PortError> {
        self.reset()?;
        let line = |port: usize, tag: usize, number: u64| {
            2 * SETS * port + tag + SETS * (number % 2) as usize
        };
        let mut begun = vec![vec![1; outstanding]; requesters];
        for port in 0..requesters {
            for tag in 0..outstanding {
                self.begin((port, tag), line(port, tag, 0), write)?;
            }
        }
        let mut times = Vec::new();
        // The rate is that until the first tag has performed all its accesses, so that all are busy.
        let mut is_measured = true;
        for _ in 0..(requesters * outstanding) as u64 * ACCESSES {
            let completion = self.ports.next_completion()?;
            let (port, tag) = (completion.port, completion.tag);
            let begun = &mut begun[port][tag];
            let last = line(port, tag, *begun - 1);
            self.check("load", last, write, completion.data)?;
            if is_measured {
                times.push(self.ports.last_timing().time);
            }
            if *begun < ACCESSES {
                let next = line(port, tag, *begun);
                *begun += 1;
                self.begin((port, tag), next, write)?;
            } else {
                is_measured = false;
            }
        }
        self.ports.end()?;
        let cycles = times[times.len() - 1] - times[0];
        Ok((times.len() - 1) as f64 / cycles as f64)
    }
}

/// Measures a system of [`super::build::Bench::Timing`] with some caches, at most 16.
///
/// # Errors
/// [`PortError`], also for a load that returns a wrong word.
pub fn measure(
    ports: &mut SystemPorts,
    caches: usize,
) -> Result<(Vec<Latency>, Vec<Rate>), PortError> {
    let mut measured = Measured {
        ports,
        words: Vec::new(),
    };
    measured.reset()?;
    let together = if caches > 1 { &TOGETHER[..] } else { &[] };
    let steps = ALONE.iter().chain(together);
    let latencies = steps
        .map(|&step| measured.perform(step))
        .collect::<Result<_, _>>()?;
    let loads = (1..=caches).flat_map(|requesters| OUTSTANDING.map(|tags| (requesters, tags)));
    let rates = loads.map(|(requesters, outstanding)| {
        Ok(Rate {
            requesters,
            outstanding,
            loads: measured.rate(requesters, outstanding, false)?,
            stores: measured.rate(requesters, outstanding, true)?,
        })
    });
    let rates = rates.collect::<Result<_, _>>()?;
    Ok((latencies, rates))
}
