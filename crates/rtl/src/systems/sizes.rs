//! Sizes of a system: parameters of the printed top, and their limits.

use super::directory::Directory;
use super::queues::{Queues, Rooms};
use crate::agents::layout::Agents;

/// Policy that chooses the victim of a set of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Replacement {
    /// Each eviction of a set advances its victim.
    #[default]
    RoundRobin,
    /// Tree pseudo-LRU.
    PseudoLru,
    /// Random number of the cache.
    Random,
}

/// Sizes of the caches and queues of a system. Each test bench has its own where these are `None`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Sizes {
    /// Bits of a set's number in each cache.
    pub set_width: Option<u32>,
    /// Lines of a set.
    pub ways: Option<u32>,
    /// Outstanding accesses of each cache.
    pub mshrs: Option<u32>,
    /// Replacement policy of each cache, of the test bench of [`super::build::Bench::Lockstep`].
    pub replacement: Replacement,
    /// Messages in each queue, of the same test bench.
    pub depth: Option<u32>,
}

impl Sizes {
    /// Sizes of the test benches.
    pub const DEFAULT: Sizes = Sizes {
        set_width: None,
        ways: None,
        mshrs: None,
        replacement: Replacement::RoundRobin,
        depth: None,
    };

    /// Returns the sizes of the test bench [`super::build::Bench::Lockstep`] with these parameters of the printed top.
    ///
    /// # Errors
    /// A parameter that the test bench sets itself, or that is outside its limits, as [`check_parameters`] returns it.
    pub fn new(
        agents: &Agents,
        directory: Directory,
        parameters: &[(String, u64)],
    ) -> Result<Sizes, String> {
        let mut sizes = Sizes::DEFAULT;
        let lines = ("LineWidth".to_string(), BENCH_LINE_WIDTH);
        let all: Vec<(String, u64)> = [lines].into_iter().chain(parameters.to_vec()).collect();
        for (name, value) in parameters {
            let value = *value as u32;
            match name.as_str() {
                "SetWidth" => sizes.set_width = Some(value),
                "Ways" => sizes.ways = Some(value),
                "Mshrs" => sizes.mshrs = Some(value),
                "Depth" => sizes.depth = Some(value),
                "Replacement" => {
                    sizes.replacement = match value {
                        0 => Replacement::RoundRobin,
                        1 => Replacement::PseudoLru,
                        _ => Replacement::Random,
                    }
                }
                name => {
                    return Err(format!(
                        "the test bench sets `{name}` itself\n  \
                         help: it has the parameters SetWidth, Ways, Mshrs, Replacement and Depth"
                    ))
                }
            }
        }
        check_parameters(agents, directory, &all)?;
        Ok(sizes)
    }
}

/// Bits of a line's number in the test bench.
const BENCH_LINE_WIDTH: u64 = 3;

/// Names of the parameters of the printed top.
pub const PARAMETERS: [&str; 10] = [
    "LineWidth",
    "DataWidth",
    "SetWidth",
    "Ways",
    "Mshrs",
    "Replacement",
    "TagWidth",
    "Depth",
    "DirectorySetWidth",
    "DirectoryWays",
];

/// Default of `LineWidth`.
const LINE_WIDTH: u64 = 8;
/// Default of `SetWidth`.
const SET_WIDTH: u64 = 2;
/// Default of `Mshrs`.
const MSHRS: u64 = 4;
/// Maximum of parameters that are widths of numbers, in bits.
const MAX_WIDTH: u64 = 30;
/// Maximum of parameters that are numbers of entries.
const MAX_ENTRIES: u64 = 1 << 12;

/// Checks that the parameters of a printed top are within their limits. Parameters that are not given have their defaults.
///
/// # Errors
/// The first parameter outside its limits, with its value and the limits.
pub fn check_parameters(
    agents: &Agents,
    directory: Directory,
    parameters: &[(String, u64)],
) -> Result<(), String> {
    let given = |name: &str| {
        let mut parameters = parameters.iter();
        parameters
            .find(|(other, _)| other == name)
            .map(|(_, value)| *value)
    };
    let mut rest = parameters.iter();
    while let Some((name, _)) = rest.next() {
        if rest.clone().any(|(other, _)| other == name) {
            return Err(format!("`--parameter` has {name} twice"));
        }
        if directory == Directory::Full && name.starts_with("Directory") {
            return Err(format!(
                "the top has no parameter {name}\n  help: `--directory set-associative` has it"
            ));
        }
    }
    let line_width = given("LineWidth").unwrap_or(LINE_WIDTH);
    let mshrs = given("Mshrs").unwrap_or(MSHRS);
    let rooms = Rooms::new(agents, &Queues::new(agents.protocol));
    let answers = rooms
        .answers
        .map_or(0, |answers| answers.of(mshrs.min(MAX_ENTRIES) as usize));
    let depth = rooms.fixed.max(answers) as u64;
    for (name, low, high) in [
        ("LineWidth", 1, MAX_WIDTH),
        ("SetWidth", 0, line_width),
        ("Ways", 1, MAX_ENTRIES),
        ("Mshrs", 1, MAX_ENTRIES),
        ("Replacement", 0, 2),
        ("TagWidth", 1, MAX_WIDTH),
        ("Depth", depth, u64::from(u32::MAX >> 1)),
        ("DirectorySetWidth", 0, line_width),
        ("DirectoryWays", 1, MAX_ENTRIES),
    ] {
        match given(name) {
            Some(value) if !(low..=high).contains(&value) => {
                return Err(format!(
                    "parameter `{name}` is {value}, but must be from {low} to {high}"
                ))
            }
            _ => {}
        }
    }
    let set_width = given("SetWidth").unwrap_or(SET_WIDTH);
    if set_width > line_width {
        return Err(format!(
            "parameter `LineWidth` is {line_width}, but must be at least `SetWidth`, which is {set_width}"
        ));
    }
    match given("DataWidth") {
        Some(bits) if bits < 8 || !bits.is_power_of_two() => Err(format!(
            "parameter `DataWidth` is {bits}, but must be 8 times a power of two, at least 8"
        )),
        _ => Ok(()),
    }
}
