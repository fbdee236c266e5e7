//! Thread symmetries of programs.

use std::collections::BTreeMap;

use crate::program::{
    Address, Change, Claim, Instruction, Location, Observable, Operand, Program, Register,
};

/// Returns the permutations of threads that preserve code, initial values and claim, up to renaming of locations and
/// registers. The first is the identity.
///
/// Addresses as values also name locations, so a program that uses addresses has only the identity.
pub fn symmetries(program: &Program) -> Vec<Vec<usize>> {
    let mut symmetries = Vec::new();
    if program.has_addresses() {
        return vec![(0..program.threads.len()).collect()];
    }
    extend_symmetry(program, &PartialSymmetry::default(), &mut symmetries);
    symmetries
}

/// Partial symmetry: images of the first threads, of their locations, and of their registers.
#[derive(Clone, Default)]
struct PartialSymmetry {
    /// Image of each thread, by thread.
    threads: Vec<usize>,
    /// Image of each location that a mapped thread accesses.
    locations: BTreeMap<Location, Location>,
    /// Image of each register that a mapped thread uses, by thread.
    registers: Vec<BTreeMap<Register, Register>>,
}

/// Maps the next thread in every way, and collects the complete symmetries.
fn extend_symmetry(program: &Program, partial: &PartialSymmetry, symmetries: &mut Vec<Vec<usize>>) {
    let next = partial.threads.len();
    if next == program.threads.len() {
        if partial.preserves(program) {
            symmetries.push(partial.threads.clone());
        }
        return;
    }
    // Try the thread itself first, so that the identity is found first.
    let candidates = (0..program.threads.len()).filter(|image| *image != next);
    for image in std::iter::once(next).chain(candidates) {
        let mut extended = partial.clone();
        if !partial.threads.contains(&image) && extended.map_thread(program, next, image) {
            extend_symmetry(program, &extended, symmetries);
        }
    }
}

/// Maps `from` to `to`. Returns false if either is already in a different pair.
fn map_pair<T: Ord + Copy>(images: &mut BTreeMap<T, T>, from: T, to: T) -> bool {
    match images.get(&from) {
        Some(image) => *image == to,
        None => {
            let is_free = !images.values().any(|used| *used == to);
            images.insert(from, to);
            is_free
        }
    }
}

impl PartialSymmetry {
    /// Maps thread `thread` to `image`. Returns false if their code does not match.
    fn map_thread(&mut self, program: &Program, thread: usize, image: usize) -> bool {
        let [a, b] = [thread, image].map(|number| &program.threads[number].code);
        self.threads.push(image);
        self.registers.push(BTreeMap::new());
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.map_instruction(a, b))
    }

    /// Maps the registers and locations of an instruction of the last mapped thread to those of its image. Returns
    /// false if the instructions do not match.
    fn map_instruction(&mut self, a: &Instruction, b: &Instruction) -> bool {
        use Instruction::{
            Atomic, Branch, Compute, Fence, Load, LoadReserved, Select, Store, StoreConditional,
        };
        let same_address = match (a.address(), b.address()) {
            (Some(Address::Direct(a)), Some(Address::Direct(b))) => {
                map_pair(&mut self.locations, a, b)
            }
            (Some(Address::Indirect(a)), Some(Address::Indirect(b))) => self.map_register(a, b),
            (a, b) => a == b,
        };
        if !same_address {
            return false;
        }
        match (*a, *b) {
            (
                Load { to, acquire, .. },
                Load {
                    to: t, acquire: q, ..
                },
            ) => acquire == q && self.map_register(to, t),
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
            ) => (acquire, release) == (q, r) && self.map_register(to, t),
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
            ) => {
                (acquire, release) == (q, r)
                    && self.map_operand(value, v)
                    && self.map_register(status, s)
            }
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
                self.map_register(on, o)
                    && self.map_operand(then, n)
                    && self.map_operand(otherwise, w)
                    && self.map_register(to, t)
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
            ) => (release, via) == (r, w) && self.map_operand(value, v),
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
                    (Change::CompareAndSwap(a), Change::CompareAndSwap(b)) => {
                        self.map_operand(a, b)
                    }
                    (a, b) => a == b,
                };
                changes
                    && (acquire, release, returns, via) == (q, r, n, w)
                    && self.map_operand(value, v)
                    && self.map_register(to, t)
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
            ) => {
                operation == o
                    && self.map_operand(a, c)
                    && self.map_operand(b, d)
                    && self.map_register(to, t)
            }
            (
                Branch { on, zero, to },
                Branch {
                    on: o,
                    zero: z,
                    to: t,
                },
            ) => (zero, to) == (z, t) && self.map_register(on, o),
            _ => false,
        }
    }

    fn map_operand(&mut self, a: Operand, b: Operand) -> bool {
        match (a, b) {
            (Operand::Register(a), Operand::Register(b)) => self.map_register(a, b),
            (a, b) => a == b,
        }
    }

    /// Maps a register of the thread mapped last.
    fn map_register(&mut self, a: Register, b: Register) -> bool {
        let last = self.registers.last_mut();
        last.is_some_and(|registers| map_pair(registers, a, b))
    }

    /// Returns true if the symmetry preserves initial values, claim, filter and listed observations.
    fn preserves(&self, program: &Program) -> bool {
        let value = |at: Location| program.initial[usize::from(at)];
        let mut locations = self.locations.iter();
        let registers = self.registers.iter().zip(&self.threads).enumerate();
        let mut registers = registers.flat_map(|(thread, (pairs, image))| {
            pairs.iter().map(move |(a, b)| ((thread, *a), (*image, *b)))
        });
        let initial_state = |(thread, register): (usize, Register)| {
            let thread = &program.threads[thread];
            // Temporaries of the reader are not observed.
            let is_temporary = thread.names[register].starts_with('.');
            (thread.registers[register], is_temporary)
        };
        locations.all(|(a, b)| value(*a) == value(*b))
            && registers.all(|(a, b)| initial_state(a) == initial_state(b))
            && [&program.claim, &program.filter]
                .into_iter()
                .all(|claim| self.image_text(claim) == Some(normal_form(claim)))
            && (program.listed.iter()).all(|listed| {
                let image = self.observed_image(listed);
                image.is_some_and(|image| program.listed.contains(&image))
            })
    }

    /// Returns the image of a claim in normal form, if the symmetry maps everything that it names.
    fn image_text(&self, claim: &Claim) -> Option<String> {
        Some(normal_form(&self.claim_image(claim)?))
    }

    fn observed_image(&self, observed: &Observable) -> Option<Observable> {
        Some(match observed {
            Observable::Location(at) => Observable::Location(*self.locations.get(at)?),
            Observable::Register(thread, register) => Observable::Register(
                self.threads[*thread],
                *self.registers[*thread].get(register)?,
            ),
        })
    }

    fn claim_image(&self, claim: &Claim) -> Option<Claim> {
        let map_both = |a: &Claim, b: &Claim| {
            Some((
                Box::new(self.claim_image(a)?),
                Box::new(self.claim_image(b)?),
            ))
        };
        Some(match claim {
            Claim::Equals(observed, value) => Claim::Equals(self.observed_image(observed)?, *value),
            Claim::And(a, b) => map_both(a, b).map(|(a, b)| Claim::And(a, b))?,
            Claim::Or(a, b) => map_both(a, b).map(|(a, b)| Claim::Or(a, b))?,
            Claim::Not(a) => Claim::Not(Box::new(self.claim_image(a)?)),
            Claim::True => Claim::True,
        })
    }
}

/// Formats a claim in a normal form: independent of the order and repetition of operands.
fn normal_form(claim: &Claim) -> String {
    fn parts(claim: &Claim, and: bool, operands: &mut Vec<String>) {
        match claim {
            Claim::And(a, b) if and => [a, b].into_iter().for_each(|c| parts(c, and, operands)),
            Claim::Or(a, b) if !and => [a, b].into_iter().for_each(|c| parts(c, and, operands)),
            other => operands.push(normal_form(other)),
        }
    }
    let join_operands = |and: bool, separator: &str| {
        let mut operands = Vec::new();
        parts(claim, and, &mut operands);
        operands.sort();
        operands.dedup();
        format!("({})", operands.join(separator))
    };
    match claim {
        Claim::Equals(observed, value) => format!("{observed:?}={value}"),
        Claim::And(..) => join_operands(true, " and "),
        Claim::Or(..) => join_operands(false, " or "),
        Claim::Not(a) => format!("not {}", normal_form(a)),
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
            let found = symmetries(&named(name).expect("a shape"));
            assert_eq!(found.len(), count, "{name}: {found:?}");
            let threads = found[0].len();
            assert_eq!(found[0], (0..threads).collect::<Vec<_>>(), "{name}");
        }
    }

    /// Claims and initial values restrict symmetry.
    #[test]
    fn claims_and_initial_values_restrict_symmetry() {
        let sb = named("SB").expect("a shape");
        let mut with_claim = sb.clone();
        with_claim.claim = Claim::Equals(Observable::Location(0), 1);
        assert_eq!(symmetries(&with_claim).len(), 1);
        let mut with_initial_value = sb;
        with_initial_value.initial[1] = 7;
        assert_eq!(symmetries(&with_initial_value).len(), 1);
    }
}
