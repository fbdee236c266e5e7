//! Random walks of two states at once: in one a copy is one bit, in the other it is words.
//!
//! The bit says whether the words are those of the last write. If this abstraction is exact, both states always have
//! the same steps, and each bit agrees with the words.

use cohkit_base::random::SplitMix64;
use cohkit_protocol::construct;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text::parse;
use cohkit_system::data::{Current, Data, Words};
use cohkit_system::state::{Operation, Payload, Step, System, SystemState};
use std::path::Path;

/// Pseudo-random numbers of a seed.
struct Random(SplitMix64);

impl Random {
    /// Returns a number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.0.modulo(bound as u64) as usize
    }
}

/// Reads a protocol file without errors.
fn read(path: &Path) -> Protocol {
    let text = std::fs::read_to_string(path).unwrap();
    parse(&text).unwrap_or_else(|errors| {
        let messages = errors.iter().map(|e| e.render("text", &text, false));
        panic!("{}", messages.collect::<String>())
    })
}

/// For each copy of a remote, memory, operation or message, true if it is current; copies of messages last, sorted.
fn copies<D: Data>(system_state: &SystemState<D>) -> Vec<bool> {
    let lines = (0..).zip(&system_state.lines);
    let mut copies: Vec<bool> = lines
        .flat_map(|(number, line)| {
            let remotes = line.remotes.iter().map(|remote| &remote.copy);
            let slot = match &line.operation {
                Operation::Sampled(copy) | Operation::Write(copy) => Some(copy),
                _ => None,
            };
            let copies = remotes.chain([&line.memory]).chain(slot);
            let current = copies.map(|copy| system_state.data.is_current(number, copy));
            current.collect::<Vec<_>>()
        })
        .collect();
    // The order of equal messages with different copies does not matter.
    let mut flights: Vec<bool> = (system_state.network.flights())
        .filter_map(|flight| match &flight.carried {
            Payload::Line(copy) => Some(system_state.data.is_current(flight.line, copy)),
            _ => None,
        })
        .collect();
    flights.sort_unstable();
    copies.extend(flights);
    copies
}

/// Takes up to `steps` random steps in both states, and compares the results, properties and copies after each.
/// Returns false if the walk ended early at a violation in both states.
fn walk(protocol: &Protocol, system: &System, seed: u64, steps: usize) -> bool {
    let mut random = Random(SplitMix64::new(seed));
    let mut bits = SystemState::<Current>::new(system);
    let mut words = SystemState::<Words>::new(system);
    for _ in 0..steps {
        let mut candidates = words.steps(system);
        let step = candidates.swap_remove(random.below(candidates.len()));
        let (mut next_bits, mut next_words) = (bits.clone(), words.clone());
        let name = &protocol.name;
        // Messages in flight are sorted by their contents, including their copies.
        let bits_step = match step {
            Step::Deliver(arrival) => {
                let flight = words.network.at(arrival).expect("deliverable message");
                let current = |copy| words.data.is_current(flight.line, copy);
                let carries = match &flight.carried {
                    Payload::Line(copy) => Payload::Line(current(copy)),
                    Payload::Write((), ticket) => Payload::Write((), *ticket),
                    Payload::Nothing => Payload::Nothing,
                };
                let is_same_message = |arrival| {
                    let bits_flight = bits.network.at(arrival).expect("deliverable message");
                    (
                        bits_flight.line,
                        bits_flight.message,
                        bits_flight.from,
                        bits_flight.to,
                    ) == (flight.line, flight.message, flight.from, flight.to)
                        && (&bits_flight.fields, &bits_flight.carried) == (&flight.fields, &carries)
                };
                let matching = bits
                    .network
                    .arrivals(system.protocol)
                    .find(|&arrival| is_same_message(arrival));
                Step::Deliver(matching.unwrap_or_else(|| panic!("{name}, seed {seed}: {step:?}")))
            }
            bits_flight => bits_flight,
        };
        let results = (
            next_bits.take(system, bits_step),
            next_words.take(system, step),
        );
        let (a, b) = match &results {
            (Ok(a), Ok(b)) => (a, b),
            (Err(a), Err(b)) if a == b => return false,
            _ => panic!("{name}, seed {seed}, {step:?}: {results:?}"),
        };
        assert_eq!(a, b, "{name}, seed {seed}: {step:?}");
        if *a {
            (bits, words) = (next_bits, next_words);
            assert_eq!(bits.claims(system), Ok(()), "{name}, seed {seed}: {step:?}");
            assert_eq!(
                copies(&bits),
                copies(&words),
                "{name}, seed {seed}: {step:?}"
            );
        }
    }
    true
}

/// Walks in every shipped protocol that guarantees coherence.
#[test]
fn data_bit_equals_comparison_of_words() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
    for text in std::fs::read_dir(folder).unwrap() {
        let path = text.unwrap().path();
        if cohkit_protocol::text::composes(&std::fs::read_to_string(&path).unwrap()) {
            continue;
        }
        let protocol = read(&path);
        // Without the coherence guarantee (`guarantee none`) no write makes a copy stale, so the bit says nothing about
        // the last write.
        if !protocol.guarantee.coherent {
            continue;
        }
        for (remotes, lines) in [(1, 1), (2, 1), (3, 2)] {
            let home = construct::home(&protocol, remotes).unwrap();
            let system = System::new(&protocol, &home, remotes, lines, 7);
            for seed in 0..20 {
                assert!(
                    walk(&protocol, &system, seed, 1000),
                    "{}, seed {seed}",
                    protocol.name
                );
            }
        }
    }
}

/// In the first protocol a store in a stale copy made that copy current by the bit, though one of its words was stale.
/// In the second a read may complete with bytes that were stale before it began.
#[test]
fn data_bit_and_words_find_a_fault_at_the_same_step() {
    for text in [
        include_str!("../../../../tests/accesses/early.coh"),
        include_str!("../../../../tests/accesses/answered.coh"),
    ] {
        let protocol = parse(text).unwrap();
        let home = construct::home(&protocol, 2).unwrap();
        let system = System::new(&protocol, &home, 2, 1, 7);
        let ended = (0..100).filter(|&seed| !walk(&protocol, &system, seed, 1000));
        assert!(ended.count() > 50);
    }
}
