//! Programs whose writes are made by several of a text's accesses: as its cores store, in a copy of the core's own, or at
//! the home with an acknowledgement.

use cohkit_base::words::counted;
use cohkit_protocol::controller::Access;
use cohkit_protocol::orders::Issue;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::threads::Accesses;

use crate::kinds::Kinds;
use crate::program::{Fence, Instruction, Program, Via};

/// All ways to write with their letters in a mix, and what each is.
pub const LETTERS: [(Via, char, &str); 3] = [
    (Via::Text, 't', "as the text's cores store"),
    (Via::Back, 'b', "written back"),
    (Via::Acknowledged, 'a', "acknowledged by the home"),
];

/// The ways to write that a text has beside that of its cores, in words.
pub fn others(protocol: &Protocol) -> Vec<&'static str> {
    let accesses = Accesses::of(protocol);
    let has = |via: Via| match via {
        Via::Text => false,
        Via::Back => accesses.back.is_some(),
        Via::Acknowledged => accesses.acknowledged.is_some(),
    };
    let ways = LETTERS.iter().filter(|(via, ..)| has(*via));
    ways.map(|&(_, _, words)| words).collect()
}

/// A mix in letters, one for each write.
pub fn letters(mix: &[Via]) -> String {
    let letter = |via: &Via| LETTERS.iter().find(|(its, ..)| its == via);
    mix.iter()
        .filter_map(letter)
        .map(|(_, letter, _)| letter)
        .collect()
}

/// By which accesses each write of a program may be made on a text, thread by thread.
fn choices(protocol: &Protocol, kinds: &Kinds, program: &Program) -> Vec<Vec<Via>> {
    let of = |accesses: &Accesses, instruction: &Instruction| {
        let mut all = vec![Via::Text];
        match instruction {
            Instruction::Store { .. } => {
                all.extend(accesses.back.map(|_| Via::Back));
                all.extend(accesses.acknowledged.map(|_| Via::Acknowledged));
            }
            // What the home performs without telling what it found is no atomic access.
            Instruction::Atomic { .. } if accesses.update == Some(Access::Atomic) => {
                all.extend(accesses.back.map(|_| Via::Back));
            }
            _ => {}
        }
        all
    };
    let mut all = Vec::new();
    for (thread, accesses) in program.threads.iter().zip(kinds.accesses(protocol)) {
        let writes = thread.code.iter().filter(|one| one.writes());
        all.extend(writes.map(|one| of(&accesses, one)));
    }
    all
}

/// Every mix of the accesses by which a text's cores may write, for the writes of a program thread by thread.
pub fn every(protocol: &Protocol, kinds: &Kinds, program: &Program) -> Vec<Vec<Via>> {
    let mut all = vec![Vec::new()];
    for choices in choices(protocol, kinds, program) {
        let longer = all.iter().flat_map(|before: &Vec<Via>| {
            let more = choices.iter();
            more.map(move |&via| [&before[..], &[via]].concat())
        });
        all = longer.collect();
    }
    all
}

/// The mix of these letters.
///
/// # Errors
/// What is wrong with it for this program on this text.
pub fn read(
    text: &str,
    protocol: &Protocol,
    kinds: &Kinds,
    program: &Program,
) -> Result<Vec<Via>, String> {
    let choices = choices(protocol, kinds, program);
    let given = text.chars().count();
    if given != choices.len() {
        return Err(format!(
            "`{text}` has {}, and {} writes {}",
            counted(given as u64, "letter"),
            program.name,
            counted(choices.len() as u64, "time")
        ));
    }
    let mut mix = Vec::new();
    for ((at, letter), choices) in text.chars().enumerate().zip(&choices) {
        let known = LETTERS.iter().find(|(_, its, _)| *its == letter);
        match known {
            Some((via, ..)) if choices.contains(via) => mix.push(*via),
            Some((_, _, what)) => {
                return Err(format!(
                    "write {} of {} cannot be {what} on {}",
                    at + 1,
                    program.name,
                    protocol.name
                ))
            }
            None => {
                let all = LETTERS.map(|(_, letter, what)| format!("`{letter}` ({what})"));
                return Err(format!("`{letter}` is none of {}", all.join(", ")));
            }
        }
    }
    Ok(mix)
}

/// The program with its writes made so.
pub fn mixed(program: &Program, mix: &[Via]) -> Program {
    let mut program = program.clone();
    let code = program.threads.iter_mut().flat_map(|t| &mut t.code);
    let writes = code.filter_map(|instruction| match instruction {
        Instruction::Store { via, .. } | Instruction::Atomic { via, .. } => Some(via),
        _ => None,
    });
    for (via, given) in writes.zip(mix) {
        *via = *given;
    }
    program
}

/// The program as the cores of a text run it: where caches take part in fences, stores that have ended need not be where
/// others find them, and the rows order only what they are asked to. So a fence of stores comes before each write that has
/// an order to keep and is none of the text's stores.
pub fn ordered(protocol: &Protocol, kinds: &Kinds, program: &Program) -> Program {
    let mut program = program.clone();
    let kept = protocol.kept.unwrap_or_default();
    let always = kept.waits(Issue::Store, Issue::Store);
    let fenced = |instruction: &Instruction| match *instruction {
        Instruction::Store { release, via, .. } => via != Via::Text && (release || always),
        Instruction::Atomic {
            acquire, release, ..
        } => acquire || release || always,
        _ => false,
    };
    let accesses = kinds.accesses(protocol);
    let threads = program.threads.iter_mut().zip(accesses);
    for (thread, _) in threads.filter(|(_, accesses)| accesses.fence.is_some()) {
        let before = std::mem::take(&mut thread.code);
        // Where each instruction is then, and where the end is.
        let mut places = Vec::new();
        for instruction in &before {
            places.push(thread.code.len());
            if fenced(instruction) {
                thread.code.push(Instruction::Fence(Fence::Stores));
            }
            thread.code.push(*instruction);
        }
        places.push(thread.code.len());
        for instruction in &mut thread.code {
            if let Instruction::Branch { to, .. } = instruction {
                *to = places[*to];
            }
        }
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycles::named;
    use cohkit_protocol::text::parse;

    fn cord() -> Protocol {
        parse(include_str!("../../../ordering/cord.coh")).unwrap()
    }

    #[test]
    fn mixes_are_read_as_they_are_told_and_what_is_wrong_with_them_is_said() {
        let (protocol, program) = (cord(), named("MP+popl+poap").unwrap());
        let all = every(&protocol, &2.into(), &program);
        assert_eq!(all.len(), 9);
        for mix in &all {
            assert_eq!(
                &read(&letters(mix), &protocol, &2.into(), &program).unwrap(),
                mix
            );
        }
        for (text, says) in [
            ("t", "`t` has 1 letter, and MP+popl+poap writes 2 times"),
            ("tx", "`x` is none of `t`"),
        ] {
            let said = read(text, &protocol, &2.into(), &program).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
        let seq = parse(include_str!("../../../ordering/seq.coh")).unwrap();
        let said = read("tb", &seq, &2.into(), &program).unwrap_err();
        assert_eq!(
            said,
            "write 2 of MP+popl+poap cannot be written back on seq"
        );
    }

    #[test]
    fn fences_come_before_releases_that_no_row_orders_and_branches_go_where_they_went() {
        let (protocol, program) = (cord(), named("MP+popl+poap").unwrap());
        let fences = |mix: &str| {
            let mix = read(mix, &protocol, &2.into(), &program).unwrap();
            let program = ordered(&protocol, &2.into(), &mixed(&program, &mix));
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
        let after = ordered(
            &protocol,
            &2.into(),
            &mixed(&branches, &[Via::Text, Via::Back]),
        );
        let Instruction::Branch { to, .. } = after.threads[0].code[0] else {
            panic!("the branch")
        };
        assert_eq!((to, after.threads[0].code.len()), (end + 1, end + 1));
    }
}
