//! Programs whose threads store several times before they synchronise.
//!
//! Some faults of protocols that count stores need more than one store before a release. The second acknowledgement is
//! not awaited, a count is not reset, or an epoch has two releases. These programs have up to four accesses per thread;
//! classic shapes have two.
//!
//! The name of a program is its code, thread by thread: `WxWyLz+AzRxRy` stores x, stores y and releases z in one
//! thread, and acquires z, reads x and reads y in the other. `W` is a store, `L` a release, `R` a load, `A` an acquire,
//! `Q` an acquire that may pass earlier releases, `F` a full fence. All outcomes are of interest, so the condition is
//! empty.

use std::collections::BTreeSet;

use crate::axioms::Model;
use crate::program::{
    Acquire, Claim, Fence, Instruction, Location, Operand, Program, Quantifier, StoreVariant,
    Thread,
};

/// Names of the locations, in the order of their first use.
const LOCATIONS: [char; 4] = ['x', 'y', 'z', 'w'];

/// Maximum number of threads of a program read from its name.
const MAX_THREADS: usize = 4;

/// Maximum number of accesses of a thread.
const MAX_ACCESSES: usize = 4;

/// Reads a program from its name. Returns `None` if the name is not such a code.
pub fn named(name: &str) -> Option<Program> {
    let mut program = Program {
        name: name.to_string(),
        locations: Vec::new(),
        initial: Vec::new(),
        threads: Vec::new(),
        quantifier: Quantifier::Exists,
        claim: Claim::True,
        listed: Vec::new(),
        filter: Claim::True,
    };
    let mut written = [0; LOCATIONS.len()];
    for code in name.split('+') {
        let mut thread = Thread::default();
        let mut letters = code.chars();
        let mut accesses = 0;
        while let Some(letter) = letters.next() {
            if letter == 'F' {
                thread.code.push(Instruction::Fence(Fence::Full));
                continue;
            }
            let location_letter = letters.next()?;
            let index = LOCATIONS.iter().position(|&name| name == location_letter)?;
            while program.locations.len() <= index {
                let next = LOCATIONS[program.locations.len()];
                program.locations.push(next.to_string());
                program.initial.push(0);
            }
            accesses += 1;
            let mut store = |release| {
                written[index] += 1;
                Instruction::Store {
                    to: (index as Location).into(),
                    value: Operand::Number(written[index]),
                    release,
                    via: StoreVariant::ProtocolDefault,
                }
            };
            let instruction = match letter {
                'W' => store(false),
                'L' => store(true),
                'R' | 'A' | 'Q' => {
                    let to = thread.registers.len();
                    thread.registers.push(0);
                    thread.names.push(format!("X{}", 2 * to));
                    Instruction::Load {
                        to,
                        from: (index as Location).into(),
                        acquire: match letter {
                            'A' => Acquire::Rcsc,
                            'Q' => Acquire::Rcpc,
                            _ => Acquire::None,
                        },
                    }
                }
                _ => return None,
            };
            thread.code.push(instruction);
        }
        if !(1..=MAX_ACCESSES).contains(&accesses) {
            return None;
        }
        program.threads.push(thread);
    }
    (program.threads.len() <= MAX_THREADS).then_some(program)
}

/// Returns the programs that check a protocol against a model, unique up to the order of threads and the names of
/// locations:
///
/// * two or three stores and releases, the last a release, whose effects another thread acquires; the same with a
///   fence;
/// * the same before an acquire of another thread's release (store buffering);
/// * two stores and a release, which a second thread acquires and passes on to a third by its own release;
/// * two stores and a release while other threads have copies of the stored locations;
/// * two rounds of a store and a release, and two threads that both release and acquire.
pub fn programs(model: Model) -> Vec<Program> {
    let mut names = Vec::new();
    let (two, three) = (all_bursts(2, 0), all_bursts(3, 0));
    for burst in all_bursts(2, 2).iter().chain(&all_bursts(3, 1)) {
        let (code, flag, reads) = (
            burst.code(),
            burst.first_unused_location(),
            burst.access_each('R'),
        );
        names.push(format!("{code}L{flag}+A{flag}{reads}"));
    }
    for burst in &all_bursts(2, 2) {
        let (code, flag, acquires) = (
            burst.code(),
            burst.first_unused_location(),
            burst.access_each('A'),
        );
        let second_flag = LOCATIONS[burst.location_count + 1];
        names.push(format!(
            "{code}L{flag}A{second_flag}+L{second_flag}{acquires}"
        ));
    }
    for burst in two.iter().chain(&three) {
        let (code, flag) = (burst.code(), burst.first_unused_location());
        let (reads, acquires) = (burst.access_each('R'), burst.access_each('A'));
        names.push(format!("{code}FW{flag}+R{flag}F{reads}"));
        names.push(format!("{code}FR{flag}+W{flag}F{reads}"));
        names.push(format!("{code}A{flag}+L{flag}{acquires}"));
    }
    for burst in &two {
        let (code, flag, reads) = (
            burst.code(),
            burst.first_unused_location(),
            burst.access_each('R'),
        );
        let second_flag = LOCATIONS[burst.location_count + 1];
        names.push(format!(
            "{code}L{flag}+A{flag}L{second_flag}+A{second_flag}{reads}"
        ));
        names.push(format!("{code}L{flag}+RxA{flag}{reads}"));
        names.push(format!("{code}L{flag}+RxA{flag}Rx+Rx"));
    }
    let rounds = ["WxLyWxLy+AyRx", "WxLzWyLz+AzRxRy", "WxLyAzRw+WwLzAyRx"];
    names.extend(rounds.map(String::from));
    let mut canonical_names = BTreeSet::new();
    let distinct = names.into_iter().filter_map(|name| {
        let name = match model {
            // Sequential consistency preserves all program order, so acquires, releases and fences add nothing.
            Model::Sc => plain_code(&name),
            Model::Tso | Model::Rc | Model::Armv8 | Model::RiscV => name,
        };
        canonical_names.insert(canonical(&name)).then_some(name)
    });
    distinct.filter_map(|name| named(&name)).collect()
}

/// Stores and releases of a thread, in order.
struct Burst {
    /// True for a release.
    releases: Vec<bool>,
    /// Location of each access.
    access_locations: Vec<usize>,
    /// Number of distinct locations.
    location_count: usize,
}

impl Burst {
    /// Returns the code of the accesses.
    fn code(&self) -> String {
        let accesses = self.releases.iter().zip(&self.access_locations);
        let access = |(&release, &location): (&bool, &usize)| {
            let letter = if release { 'L' } else { 'W' };
            [letter, LOCATIONS[location]]
        };
        accesses.flat_map(access).collect()
    }

    /// Returns the first location that the burst does not access.
    fn first_unused_location(&self) -> char {
        LOCATIONS[self.location_count]
    }

    /// Returns the code of one access to each location.
    fn access_each(&self, letter: char) -> String {
        let locations = LOCATIONS[..self.location_count].iter();
        locations.flat_map(|&location| [letter, location]).collect()
    }
}

/// Returns all bursts of a length with at most `max_releases` releases, up to the names of locations.
fn all_bursts(length: usize, max_releases: usize) -> Vec<Burst> {
    let mut bursts = vec![Burst {
        releases: Vec::new(),
        access_locations: Vec::new(),
        location_count: 0,
    }];
    for _ in 0..length {
        let mut extended = Vec::new();
        for burst in &bursts {
            for location in 0..=burst.location_count {
                for release in [false, true] {
                    extended.push(Burst {
                        releases: [&burst.releases[..], &[release]].concat(),
                        access_locations: [&burst.access_locations[..], &[location]].concat(),
                        location_count: burst.location_count.max(location + 1),
                    });
                }
            }
        }
        bursts = extended;
    }
    let releases = |burst: &Burst| burst.releases.iter().filter(|&&release| release).count();
    bursts.retain(|burst| releases(burst) <= max_releases);
    bursts
}

/// Returns the code with plain accesses instead of acquires and releases, and without fences.
fn plain_code(name: &str) -> String {
    let letter = |letter| match letter {
        'L' => Some('W'),
        'A' | 'Q' => Some('R'),
        'F' => None,
        other => Some(other),
    };
    name.chars().filter_map(letter).collect()
}

/// Returns the canonical name of a program: equal for programs that differ only in the order of threads and the names
/// of locations.
fn canonical(name: &str) -> String {
    let threads: Vec<&str> = name.split('+').collect();
    let with_canonical_letters = |order: &[&str]| {
        let mut letters_seen: Vec<char> = Vec::new();
        let letter = |letter: char| {
            if !letter.is_lowercase() {
                return letter;
            }
            let index = letters_seen
                .iter()
                .position(|&seen_letter| seen_letter == letter);
            let index = index.unwrap_or_else(|| {
                letters_seen.push(letter);
                letters_seen.len() - 1
            });
            LOCATIONS[index]
        };
        order.join("+").chars().map(letter).collect::<String>()
    };
    let orders = permutations(threads);
    let names = orders.iter().map(|order| with_canonical_letters(order));
    names.min().unwrap_or_default()
}

/// Returns all permutations.
fn permutations<T: Clone>(items: Vec<T>) -> Vec<Vec<T>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all_orders = Vec::new();
    for first in 0..items.len() {
        let mut rest = items.clone();
        let item = rest.remove(first);
        for mut order in permutations(rest) {
            order.insert(0, item.clone());
            all_orders.push(order);
        }
    }
    all_orders
}

#[cfg(test)]
mod tests {
    use super::{all_bursts, canonical, named, programs};
    use crate::axioms::Model;
    use std::collections::BTreeSet;

    /// A reported name identifies its program, and can be given to the command.
    #[test]
    fn program_names_are_unique_and_parse_back() {
        for model in [Model::Sc, Model::Tso, Model::Rc] {
            let programs = programs(model);
            let names: BTreeSet<String> = programs.iter().map(|p| canonical(&p.name)).collect();
            assert_eq!(names.len(), programs.len(), "{model}");
            for program in &programs {
                assert_eq!(named(&program.name).as_ref(), Some(program));
            }
            println!("{model}: {}", programs.len());
        }
        assert_eq!(canonical("AzRx+WxLz"), canonical("WyLx+AxRy"));
        for name in ["", "SB", "MP+poll+poaa", "Wx", "WxWxWxWxWx", "Wq", "Wx+"] {
            assert_eq!(named(name).is_some(), name == "Wx", "{name}");
        }
    }

    /// Fails if the generator leaves out a pattern.
    #[test]
    fn bursts_have_every_pattern_of_locations() {
        let codes = |length, releases| {
            let bursts = all_bursts(length, releases);
            let codes = bursts.iter().map(|burst| burst.code());
            codes.collect::<Vec<_>>()
        };
        assert_eq!(codes(2, 0), ["WxWx", "WxWy"]);
        assert_eq!(
            codes(3, 0),
            ["WxWxWx", "WxWxWy", "WxWyWx", "WxWyWy", "WxWyWz"]
        );
        assert_eq!(codes(2, 2).len(), 8);
        assert_eq!(codes(3, 1).len(), 20);
    }
}
