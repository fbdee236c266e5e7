//! Variants of programs by the access that performs each write. The access is the protocol's default store, a
//! write-back in the core's own copy, or a write that the home performs and acknowledges.

use cohkit_base::words::counted;
use cohkit_protocol::controller::Access;
use cohkit_protocol::orders::Issue;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::threads::Accesses;

use crate::kinds::Kinds;
use crate::program::{Fence, Instruction, Program, StoreVariant};

/// Store variants, each with its letter in a mix and its description.
pub const VARIANTS: [(StoreVariant, char, &str); 3] = [
    (
        StoreVariant::ProtocolDefault,
        't',
        "by the default store of the protocol",
    ),
    (StoreVariant::WriteBack, 'b', "written back"),
    (StoreVariant::Acknowledged, 'a', "acknowledged by the home"),
];

/// Returns the descriptions of the store variants that a protocol has in addition to the default.
pub fn optional_variants(protocol: &Protocol) -> Vec<&'static str> {
    let accesses = Accesses::of(protocol);
    let has = |via: StoreVariant| match via {
        StoreVariant::ProtocolDefault => false,
        StoreVariant::WriteBack => accesses.write_back.is_some(),
        StoreVariant::Acknowledged => accesses.acknowledged_write.is_some(),
    };
    let variants = VARIANTS.iter().filter(|(via, ..)| has(*via));
    variants.map(|&(_, _, words)| words).collect()
}

/// Formats a mix as letters, one per write.
pub fn format_mix(mix: &[StoreVariant]) -> String {
    let letter = |via: &StoreVariant| VARIANTS.iter().find(|(variant, ..)| variant == via);
    mix.iter()
        .filter_map(letter)
        .map(|(_, letter, _)| letter)
        .collect()
}

/// Returns the store variants that a protocol has for each write of a program, thread by thread.
fn variants_by_write(
    protocol: &Protocol,
    kinds: &Kinds,
    program: &Program,
) -> Vec<Vec<StoreVariant>> {
    let variants_of = |accesses: &Accesses, instruction: &Instruction| {
        let mut variants = vec![StoreVariant::ProtocolDefault];
        match instruction {
            Instruction::Store { .. } => {
                variants.extend(accesses.write_back.map(|_| StoreVariant::WriteBack));
                variants.extend(
                    accesses
                        .acknowledged_write
                        .map(|_| StoreVariant::Acknowledged),
                );
            }
            // A write that the home performs without returning the old value cannot implement an atomic access.
            Instruction::Atomic { .. } if accesses.atomic == Some(Access::Atomic) => {
                variants.extend(accesses.write_back.map(|_| StoreVariant::WriteBack));
            }
            _ => {}
        }
        variants
    };
    let mut all_choices = Vec::new();
    for (thread, accesses) in program.threads.iter().zip(kinds.accesses(protocol)) {
        let writes = thread
            .code
            .iter()
            .filter(|instruction| instruction.writes());
        all_choices.extend(writes.map(|instruction| variants_of(&accesses, instruction)));
    }
    all_choices
}

/// Returns every mix of the protocol's store variants over the writes of a program, thread by thread.
pub fn all_mixes(protocol: &Protocol, kinds: &Kinds, program: &Program) -> Vec<Vec<StoreVariant>> {
    let mut mixes = vec![Vec::new()];
    for choices in variants_by_write(protocol, kinds, program) {
        let extended = mixes.iter().flat_map(|prefix: &Vec<StoreVariant>| {
            let variants = choices.iter();
            variants.map(move |&via| [&prefix[..], &[via]].concat())
        });
        mixes = extended.collect();
    }
    mixes
}

/// Parses a mix from its letters.
///
/// # Errors
/// The number of letters is not that of the program's writes, a letter is unknown, or the protocol lacks a variant.
pub fn parse_mix(
    text: &str,
    protocol: &Protocol,
    kinds: &Kinds,
    program: &Program,
) -> Result<Vec<StoreVariant>, String> {
    let choices = variants_by_write(protocol, kinds, program);
    let letter_count = text.chars().count();
    if letter_count != choices.len() {
        return Err(format!(
            "`{text}` has {}, and {} writes {}",
            counted(letter_count as u64, "letter"),
            program.name,
            counted(choices.len() as u64, "time")
        ));
    }
    let mut mix = Vec::new();
    for ((index, letter), choices) in text.chars().enumerate().zip(&choices) {
        let entry = VARIANTS
            .iter()
            .find(|(_, candidate, _)| *candidate == letter);
        match entry {
            Some((via, ..)) if choices.contains(via) => mix.push(*via),
            Some((_, _, description)) => {
                return Err(format!(
                    "write {} of {} cannot be {description} on {}",
                    index + 1,
                    program.name,
                    protocol.name
                ))
            }
            None => {
                let descriptions =
                    VARIANTS.map(|(_, letter, description)| format!("`{letter}` ({description})"));
                return Err(format!(
                    "`{letter}` is not one of {}",
                    descriptions.join(", ")
                ));
            }
        }
    }
    Ok(mix)
}

/// Returns the program with a mix of store variants.
pub fn with_mix(program: &Program, mix: &[StoreVariant]) -> Program {
    let mut program = program.clone();
    let code = program.threads.iter_mut().flat_map(|t| &mut t.code);
    let writes = code.filter_map(|instruction| match instruction {
        Instruction::Store { via, .. } | Instruction::Atomic { via, .. } => Some(via),
        _ => None,
    });
    for (via, variant) in writes.zip(mix) {
        *via = *variant;
    }
    program
}

/// Returns the program as the cores of a protocol run it.
///
/// If caches take part in fences, a completed store is not necessarily visible to others, and the rows order only the
/// accesses that request it. A fence of stores is therefore inserted before each ordered write that is not the
/// protocol's default store.
pub fn with_fences(protocol: &Protocol, kinds: &Kinds, program: &Program) -> Program {
    with_fences_of(&kinds.of_one_protocol(protocol), kinds, program)
}

/// As [`with_fences`], with the protocol of each thread's cache.
pub(crate) fn with_fences_of(protocols: &[&Protocol], kinds: &Kinds, program: &Program) -> Program {
    let mut program = program.clone();
    let needs_fence = |instruction: &Instruction, orders_stores: bool| match *instruction {
        Instruction::Store { release, via, .. } => {
            via != StoreVariant::ProtocolDefault && (release || orders_stores)
        }
        Instruction::Atomic {
            acquire, release, ..
        } => acquire || release || orders_stores,
        _ => false,
    };
    let accesses = kinds.accesses_of(protocols);
    let threads = program.threads.iter_mut().zip(accesses).zip(protocols);
    for ((thread, _), protocol) in threads.filter(|((_, accesses), _)| accesses.fence.is_some()) {
        let orders = protocol.program_order.unwrap_or_default();
        let orders_stores = orders.waits(Issue::Store, Issue::Store);
        let code = std::mem::take(&mut thread.code);
        // New index of each instruction, and of the end.
        let mut new_index = Vec::new();
        for instruction in &code {
            new_index.push(thread.code.len());
            if needs_fence(instruction, orders_stores) {
                thread.code.push(Instruction::Fence(Fence::Stores));
            }
            thread.code.push(*instruction);
        }
        new_index.push(thread.code.len());
        for instruction in &mut thread.code {
            if let Instruction::Branch { to, .. } = instruction {
                *to = new_index[*to];
            }
        }
    }
    program
}

#[cfg(test)]
mod tests {
    use super::{all_mixes, format_mix, parse_mix, with_fences, with_mix};
    use crate::cycles::named;
    use crate::program::{Instruction, StoreVariant};
    use cohkit_protocol::protocol::Protocol;
    use cohkit_protocol::text::parse;

    fn cord() -> Protocol {
        parse(include_str!("../../../ordering/cord.coh")).unwrap()
    }

    /// The letters of a mix can be given to the command as they are printed.
    #[test]
    fn mixes_round_trip_and_invalid_ones_are_rejected() {
        let (protocol, program) = (cord(), named("MP+popl+poap").unwrap());
        let mixes = all_mixes(&protocol, &2.into(), &program);
        assert_eq!(mixes.len(), 9);
        for mix in &mixes {
            assert_eq!(
                &parse_mix(&format_mix(mix), &protocol, &2.into(), &program).unwrap(),
                mix
            );
        }
        for (text, expected) in [
            ("t", "`t` has 1 letter, and MP+popl+poap writes 2 times"),
            ("tx", "`x` is not one of `t`"),
        ] {
            let message = parse_mix(text, &protocol, &2.into(), &program).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
        let seq = parse(include_str!("../../../ordering/seq.coh")).unwrap();
        let message = parse_mix("tb", &seq, &2.into(), &program).unwrap_err();
        assert_eq!(
            message,
            "write 2 of MP+popl+poap cannot be written back on seq"
        );
    }

    /// Inserted fences must not change the target of a branch.
    #[test]
    fn unordered_releases_get_fences_and_branches_keep_targets() {
        let (protocol, program) = (cord(), named("MP+popl+poap").unwrap());
        let fences = |mix: &str| {
            let mix = parse_mix(mix, &protocol, &2.into(), &program).unwrap();
            let program = with_fences(&protocol, &2.into(), &with_mix(&program, &mix));
            let code = program.threads.iter().flat_map(|t| &t.code);
            code.filter(|i| matches!(i, Instruction::Fence(_))).count()
        };
        assert_eq!(["tt", "bt", "tb", "ta"].map(fences), [0, 0, 1, 1]);
        let mut branches = program.clone();
        let code = &mut branches.threads[0].code;
        let end = code.len() + 1;
        code.insert(
            0,
            Instruction::Branch {
                on: 0,
                zero: true,
                to: end,
            },
        );
        let ordered_program = with_fences(
            &protocol,
            &2.into(),
            &with_mix(
                &branches,
                &[StoreVariant::ProtocolDefault, StoreVariant::WriteBack],
            ),
        );
        let Instruction::Branch { to, .. } = ordered_program.threads[0].code[0] else {
            panic!("the branch")
        };
        assert_eq!(
            (to, ordered_program.threads[0].code.len()),
            (end + 1, end + 1)
        );
    }
}
