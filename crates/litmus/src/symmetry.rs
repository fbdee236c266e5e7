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
    /// Maps a thread to its image. Returns false if their code does not match.
    fn map_thread(&mut self, program: &Program, thread: usize, image: usize) -> bool {
        let [code, image_code] = [thread, image].map(|number| &program.threads[number].code);
        self.threads.push(image);
        self.registers.push(BTreeMap::new());
        let mut pairs = code.iter().zip(image_code);
        code.len() == image_code.len() && pairs.all(|(from, to)| self.map_instruction(from, to))
    }

    /// Maps the registers and locations of an instruction of the last mapped thread to those of its image. Returns
    /// false if the instructions do not match. Operations of read-copy-update never match.
    fn map_instruction(&mut self, instruction: &Instruction, image: &Instruction) -> bool {
        if matches!(instruction, Instruction::Rcu(_)) {
            return false;
        }
        let (names, template) = extract_names(*instruction);
        let (image_names, image_template) = extract_names(*image);
        if template != image_template {
            return false;
        }
        // Equal templates have the same number of registers and locations.
        let mut locations = names.location.into_iter().zip(image_names.location);
        let mut registers = names.registers.into_iter().zip(image_names.registers);
        locations.all(|(from, to)| map_pair(&mut self.locations, from, to))
            && registers.all(|(from, to)| self.map_register(from, to))
    }

    /// Maps a register of the thread mapped last.
    fn map_register(&mut self, from: Register, to: Register) -> bool {
        let last = self.registers.last_mut();
        last.is_some_and(|registers| map_pair(registers, from, to))
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

    /// Returns the image of an observed location or register, or `None` if no mapped thread uses it.
    fn observed_image(&self, observed: &Observable) -> Option<Observable> {
        Some(match observed {
            Observable::Location(at) => Observable::Location(*self.locations.get(at)?),
            Observable::Register(thread, register) => Observable::Register(
                self.threads[*thread],
                *self.registers[*thread].get(register)?,
            ),
        })
    }

    /// Returns the image of a claim, or `None` if it names something that no mapped thread uses.
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

/// Registers and locations that an instruction names.
#[derive(Default)]
struct InstructionNames {
    /// Registers, in the order of the instruction's fields; a register that is named twice is listed twice.
    registers: Vec<Register>,
    /// Location of an access with a direct address.
    location: Option<Location>,
}

impl InstructionNames {
    /// Moves a register from the instruction to the list, and leaves register 0 in its place.
    fn extract_register(&mut self, register: &mut Register) {
        self.registers.push(std::mem::take(register));
    }

    /// Extracts the register of an operand. Numbers stay in the instruction.
    fn extract_operand(&mut self, operand: &mut Operand) {
        if let Operand::Register(register) = operand {
            self.extract_register(register);
        }
    }

    /// Extracts the location of a direct address, or the register of an indirect one.
    fn extract_address(&mut self, address: &mut Address) {
        match address {
            Address::Direct(location) => self.location = Some(std::mem::take(location)),
            Address::Indirect(register) => self.extract_register(register),
        }
    }
}

/// Splits an instruction into its registers and locations, and a template with 0 in place of each. Two instructions are
/// equal up to renaming if their templates are equal.
fn extract_names(mut instruction: Instruction) -> (InstructionNames, Instruction) {
    let mut names = InstructionNames::default();
    match &mut instruction {
        Instruction::Load { to, from, .. } | Instruction::LoadReserved { to, from, .. } => {
            names.extract_register(to);
            names.extract_address(from);
        }
        Instruction::Store { to, value, .. } => {
            names.extract_address(to);
            names.extract_operand(value);
        }
        Instruction::StoreConditional {
            status, to, value, ..
        } => {
            names.extract_register(status);
            names.extract_address(to);
            names.extract_operand(value);
        }
        Instruction::Atomic {
            to,
            at,
            change,
            value,
            ..
        } => {
            names.extract_register(to);
            names.extract_address(at);
            names.extract_operand(value);
            if let Change::CompareAndSwap(expected) = change {
                names.extract_operand(expected);
            }
        }
        Instruction::Select {
            to,
            on,
            then,
            otherwise,
        } => {
            names.extract_register(to);
            names.extract_register(on);
            names.extract_operand(then);
            names.extract_operand(otherwise);
        }
        Instruction::Compute { to, a, b, .. } => {
            names.extract_register(to);
            names.extract_operand(a);
            names.extract_operand(b);
        }
        Instruction::Branch { on, .. } => names.extract_register(on),
        Instruction::Fence(_) | Instruction::Rcu(_) => {}
    }
    (names, instruction)
}

/// Formats a claim in a normal form: independent of the order and repetition of operands.
fn normal_form(claim: &Claim) -> String {
    /// Adds the operands of nested conjunctions.
    fn push_conjuncts(claim: &Claim, operands: &mut Vec<String>) {
        match claim {
            Claim::And(a, b) => [a, b]
                .into_iter()
                .for_each(|part| push_conjuncts(part, operands)),
            other => operands.push(normal_form(other)),
        }
    }
    /// Adds the operands of nested disjunctions.
    fn push_disjuncts(claim: &Claim, operands: &mut Vec<String>) {
        match claim {
            Claim::Or(a, b) => [a, b]
                .into_iter()
                .for_each(|part| push_disjuncts(part, operands)),
            other => operands.push(normal_form(other)),
        }
    }
    let join_operands = |push_operands: fn(&Claim, &mut Vec<String>), separator: &str| {
        let mut operands = Vec::new();
        push_operands(claim, &mut operands);
        operands.sort();
        operands.dedup();
        format!("({})", operands.join(separator))
    };
    match claim {
        Claim::Equals(observed, value) => format!("{observed:?}={value}"),
        Claim::And(..) => join_operands(push_conjuncts, " and "),
        Claim::Or(..) => join_operands(push_disjuncts, " or "),
        Claim::Not(a) => format!("not {}", normal_form(a)),
        Claim::True => "true".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::symmetries;
    use crate::cycles::named;
    use crate::program::{Claim, Observable};

    /// The number of symmetries of each shape is that of the automorphisms of its cycle.
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
