//! Exhaustive generation of small programs on two locations.

use crate::program::{
    Acquire, Claim, Fence, Instruction, Operand, Program, Quantifier, StoreVariant, Thread,
};

/// A read or write of a location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// True for a write.
    pub writes: bool,
    /// Location: 0 for `x`, 1 for `y`.
    pub at: u8,
}

/// Returns every program of `threads` threads with `accesses` accesses each on two locations. Programs that differ
/// only in the names of locations or in the order of threads count once. Programs without reads or without writes are
/// left out. `fenced` puts a full fence before each thread's last access. The condition is trivial: all outcomes are
/// of interest.
pub fn all(threads: usize, accesses: usize, fenced: bool) -> Vec<Program> {
    // An access is a two-bit digit: location, and 1 for a write. A thread is a number of such digits.
    let kinds = 1usize << (2 * accesses);
    let mut programs = Vec::new();
    for number in 0..kinds.pow(threads as u32) {
        let digits: Vec<usize> = (0..threads)
            .map(|thread| number / kinds.pow(thread as u32) % kinds)
            .collect();
        // Keep one program per symmetry class: threads sorted, and the smaller of the two namings of locations.
        let mut swapped: Vec<usize> = digits
            .iter()
            .map(|digit| digit ^ (0..accesses).map(|a| 1 << (2 * a)).sum::<usize>())
            .collect();
        swapped.sort_unstable();
        if !digits.is_sorted() || swapped < digits {
            continue;
        }
        let steps: Vec<Vec<Step>> = digits
            .iter()
            .map(|digit| {
                let step = |access: usize| Step {
                    at: (digit >> (2 * access) & 1) as u8,
                    writes: digit >> (2 * access + 1) & 1 != 0,
                };
                (0..accesses).map(step).collect()
            })
            .collect();
        // Without writes there is one outcome. Without reads, only the final values of the locations vary.
        let flat = || steps.iter().flatten();
        if flat().any(|s| s.writes) && flat().any(|s| !s.writes) {
            programs.push(program(&steps, fenced));
        }
    }
    programs
}

/// Returns the program with these accesses, by thread. All writes have different values, from 1 on. `fenced` is that
/// of [`all`].
pub fn program(threads: &[Vec<Step>], fenced: bool) -> Program {
    let mut value = 0;
    let mut name = Vec::new();
    let threads: Vec<Thread> = threads
        .iter()
        .map(|steps| {
            let mut thread = Thread::default();
            let mut words = String::new();
            for (index, step) in steps.iter().enumerate() {
                if fenced && index + 1 == steps.len() {
                    thread.code.push(Instruction::Fence(Fence::Full));
                    words.push('f');
                }
                let location = ["x", "y"][usize::from(step.at)];
                words.push(if step.writes { 'W' } else { 'R' });
                words.push_str(location);
                thread.code.push(match step.writes {
                    true => {
                        value += 1;
                        Instruction::Store {
                            to: step.at.into(),
                            value: Operand::Number(value),
                            release: false,
                            via: StoreVariant::ProtocolDefault,
                        }
                    }
                    false => {
                        thread.names.push(format!("r{}", thread.registers.len()));
                        thread.registers.push(0);
                        Instruction::Load {
                            to: thread.registers.len() - 1,
                            from: step.at.into(),
                            acquire: Acquire::None,
                        }
                    }
                });
            }
            name.push(words);
            thread
        })
        .collect();
    Program {
        name: name.join("+"),
        locations: vec!["x".into(), "y".into()],
        initial: vec![0, 0],
        threads,
        quantifier: Quantifier::Exists,
        claim: Claim::True,
        listed: Vec::new(),
        filter: Claim::True,
    }
}
