//! Thread symmetries of programs.

use std::collections::BTreeMap;

use crate::program::{
    Address, Change, Claim, Instruction, Location, Observed, Operand, Program, Register,
};

/// Returns the permutations of threads that preserve code, initial values and claim, up to renaming of locations and
/// registers. The first is the identity.
///
/// Addresses as values also name locations, so a program that uses addresses has only the identity.
pub fn symmetries(program: &Program) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    if program.has_addresses() {
        return vec![(0..program.threads.len()).collect()];
    }
    extend(program, &PartialSymmetry::default(), &mut found);
    found
}

/// Partial symmetry: images of threads, of locations, and of the registers of each thread.
#[derive(Clone, Default)]
struct PartialSymmetry {
    threads: Vec<usize>,
    locations: BTreeMap<Location, Location>,
    registers: Vec<BTreeMap<Register, Register>>,
}

fn extend(program: &Program, turned: &PartialSymmetry, found: &mut Vec<Vec<usize>>) {
    let next = turned.threads.len();
    if next == program.threads.len() {
        if turned.keeps(program) {
            found.push(turned.threads.clone());
        }
        return;
    }
    // Try the thread itself first, so that the identity is found first.
    let others = (0..program.threads.len()).filter(|other| *other != next);
    for other in std::iter::once(next).chain(others) {
        let mut longer = turned.clone();
        if !turned.threads.contains(&other) && longer.takes(program, next, other) {
            extend(program, &longer, found);
        }
    }
}

/// Maps `one` to `other`. Returns false if either is already in a different pair.
fn pair<T: Ord + Copy>(all: &mut BTreeMap<T, T>, one: T, other: T) -> bool {
    match all.get(&one) {
        Some(known) => *known == other,
        None => {
            let free = !all.values().any(|taken| *taken == other);
            all.insert(one, other);
            free
        }
    }
}

impl PartialSymmetry {
    /// Maps thread `one` to `other`. Returns false if their code does not match.
    fn takes(&mut self, program: &Program, one: usize, other: usize) -> bool {
        let [a, b] = [one, other].map(|number| &program.threads[number].code);
        self.threads.push(other);
        self.registers.push(BTreeMap::new());
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.instruction(a, b))
    }

    fn instruction(&mut self, a: &Instruction, b: &Instruction) -> bool {
        use Instruction::{
            Atomic, Branch, Compute, Fence, Load, LoadReserved, Select, Store, StoreConditional,
        };
        let same = match (a.address(), b.address()) {
            (Some(Address::Direct(a)), Some(Address::Direct(b))) => pair(&mut self.locations, a, b),
            (Some(Address::Indirect(a)), Some(Address::Indirect(b))) => self.register(a, b),
            (a, b) => a == b,
        };
        if !same {
            return false;
        }
        match (*a, *b) {
            (
                Load { to, acquire, .. },
                Load {
                    to: t, acquire: q, ..
                },
            ) => acquire == q && self.register(to, t),
            (
                LoadReserved {
                    to,
                    acquire,
                    release,
                    ..
                },
                LoadReserved {
                    to: t,
                    acquire: q,
                    release: r,
                    ..
                },
            ) => (acquire, release) == (q, r) && self.register(to, t),
            (
                StoreConditional {
                    status,
                    value,
                    acquire,
                    release,
                    ..
                },
                StoreConditional {
                    status: s,
                    value: v,
                    acquire: q,
                    release: r,
                    ..
                },
            ) => (acquire, release) == (q, r) && self.operand(value, v) && self.register(status, s),
            (
                Select {
                    to,
                    on,
                    then,
                    otherwise,
                },
                Select {
                    to: t,
                    on: o,
                    then: n,
                    otherwise: w,
                },
            ) => {
                self.register(on, o)
                    && self.operand(then, n)
                    && self.operand(otherwise, w)
                    && self.register(to, t)
            }
            (
                Store {
                    value,
                    release,
                    via,
                    ..
                },
                Store {
                    value: v,
                    release: r,
                    via: w,
                    ..
                },
            ) => (release, via) == (r, w) && self.operand(value, v),
            (
                Atomic {
                    to,
                    change,
                    value,
                    acquire,
                    release,
                    returns,
                    via,
                    ..
                },
                Atomic {
                    to: t,
                    change: c,
                    value: v,
                    acquire: q,
                    release: r,
                    returns: n,
                    via: w,
                    ..
                },
            ) => {
                let changes = match (change, c) {
                    (Change::SetIf(a), Change::SetIf(b)) => self.operand(a, b),
                    (a, b) => a == b,
                };
                changes
                    && (acquire, release, returns, via) == (q, r, n, w)
                    && self.operand(value, v)
                    && self.register(to, t)
            }
            (Fence(a), Fence(b)) => a == b,
            (
                Compute {
                    to,
                    operation,
                    a,
                    b,
                },
                Compute {
                    to: t,
                    operation: o,
                    a: c,
                    b: d,
                },
            ) => operation == o && self.operand(a, c) && self.operand(b, d) && self.register(to, t),
            (
                Branch { on, zero, to },
                Branch {
                    on: o,
                    zero: z,
                    to: t,
                },
            ) => (zero, to) == (z, t) && self.register(on, o),
            _ => false,
        }
    }

    fn operand(&mut self, a: Operand, b: Operand) -> bool {
        match (a, b) {
            (Operand::Register(a), Operand::Register(b)) => self.register(a, b),
            (a, b) => a == b,
        }
    }

    /// Maps a register of the thread mapped last.
    fn register(&mut self, a: Register, b: Register) -> bool {
        let last = self.registers.last_mut();
        last.is_some_and(|registers| pair(registers, a, b))
    }

    /// Returns true if the symmetry preserves initial values, claim, filter and listed observations.
    fn keeps(&self, program: &Program) -> bool {
        let value = |at: Location| program.initial[usize::from(at)];
        let mut locations = self.locations.iter();
        let registers = self.registers.iter().zip(&self.threads).enumerate();
        let mut registers = registers.flat_map(|(one, (pairs, other))| {
            pairs.iter().map(move |(a, b)| ((one, *a), (*other, *b)))
        });
        let first = |(thread, register): (usize, Register)| {
            let thread = &program.threads[thread];
            // Temporaries of the reader are not observed.
            let hidden = thread.names[register].starts_with('.');
            (thread.registers[register], hidden)
        };
        locations.all(|(a, b)| value(*a) == value(*b))
            && registers.all(|(a, b)| first(a) == first(b))
            && [&program.claim, &program.filter]
                .into_iter()
                .all(|claim| self.turned(claim) == Some(words(claim)))
            && (program.listed.iter()).all(|listed| {
                let image = self.observed(listed);
                image.is_some_and(|image| program.listed.contains(&image))
            })
    }

    /// Returns the image of a claim in normal form, if the symmetry maps everything that it names.
    fn turned(&self, claim: &Claim) -> Option<String> {
        Some(words(&self.image(claim)?))
    }

    fn observed(&self, observed: &Observed) -> Option<Observed> {
        Some(match observed {
            Observed::Location(at) => Observed::Location(*self.locations.get(at)?),
            Observed::Register(thread, register) => Observed::Register(
                self.threads[*thread],
                *self.registers[*thread].get(register)?,
            ),
        })
    }

    fn image(&self, claim: &Claim) -> Option<Claim> {
        let both =
            |a: &Claim, b: &Claim| Some((Box::new(self.image(a)?), Box::new(self.image(b)?)));
        Some(match claim {
            Claim::Is(observed, value) => Claim::Is(self.observed(observed)?, *value),
            Claim::And(a, b) => both(a, b).map(|(a, b)| Claim::And(a, b))?,
            Claim::Or(a, b) => both(a, b).map(|(a, b)| Claim::Or(a, b))?,
            Claim::Not(a) => Claim::Not(Box::new(self.image(a)?)),
            Claim::True => Claim::True,
        })
    }
}

/// Formats a claim in a normal form: independent of the order and repetition of operands.
fn words(claim: &Claim) -> String {
    fn parts(claim: &Claim, and: bool, all: &mut Vec<String>) {
        match claim {
            Claim::And(a, b) if and => [a, b].into_iter().for_each(|c| parts(c, and, all)),
            Claim::Or(a, b) if !and => [a, b].into_iter().for_each(|c| parts(c, and, all)),
            other => all.push(words(other)),
        }
    }
    let joined = |and: bool, by: &str| {
        let mut all = Vec::new();
        parts(claim, and, &mut all);
        all.sort();
        all.dedup();
        format!("({})", all.join(by))
    };
    match claim {
        Claim::Is(observed, value) => format!("{observed:?}={value}"),
        Claim::And(..) => joined(true, " and "),
        Claim::Or(..) => joined(false, " or "),
        Claim::Not(a) => format!("not {}", words(a)),
        Claim::True => "true".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycles::named;

    #[test]
    fn equivalent_threads_are_symmetric() {
        for (name, count) in [
            ("SB", 2),
            ("MP", 1),
            ("LB", 2),
            ("2+2W", 2),
            ("R", 1),
            ("3.SB", 3),
            ("IRIW", 2),
            ("SB+dmb.sys", 2),
            ("SB+dmb.sy+po", 1),
        ] {
            let all = symmetries(&named(name).expect("a shape"));
            assert_eq!(all.len(), count, "{name}: {all:?}");
            let threads = all[0].len();
            assert_eq!(all[0], (0..threads).collect::<Vec<_>>(), "{name}");
        }
    }

    /// Claims and initial values restrict symmetry.
    #[test]
    fn claims_and_initial_values_restrict_symmetry() {
        let sb = named("SB").expect("a shape");
        let mut asked = sb.clone();
        asked.claim = Claim::Is(Observed::Location(0), 1);
        assert_eq!(symmetries(&asked).len(), 1);
        let mut begun = sb;
        begun.initial[1] = 7;
        assert_eq!(symmetries(&begun).len(), 1);
    }
}
