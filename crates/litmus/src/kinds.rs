//! Placement of threads on kinds of remotes.
//!
//! If the kinds of a protocol have different rows, the accesses and outcomes of a thread depend on the kind of its
//! cache. A program is therefore run in every placement of its threads on kinds. Symmetric placements are run once.

use cohkit_base::words::counted;
use cohkit_diagnostics::suggestion;
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::{KindId, Remotes};
use cohkit_protocol::threads::Accesses;
use std::ops::Range;

use crate::program::{Acquire, Instruction, Program, Rcu, StoreVariant};
use crate::symmetry::symmetries;

/// Kind of remote of each thread of a program.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Kinds(Vec<KindId>);

/// Places this number of threads on the first kind.
impl From<u8> for Kinds {
    fn from(threads: u8) -> Kinds {
        Kinds(vec![KindId(0); threads.into()])
    }
}

/// Maximum number of placements of a program's threads.
const MAX_PLACEMENTS: usize = 4096;

impl Kinds {
    /// Returns every placement of a program's threads on the kinds of a protocol, up to symmetry of the program. The
    /// first kind represents all kinds that share its rows.
    ///
    /// # Errors
    /// There are more than 4096 placements before symmetry.
    pub fn all_placements(protocol: &Protocol, program: &Program) -> Result<Vec<Kinds>, String> {
        let kinds = (0..protocol.kinds.len() as u8).map(KindId);
        let kinds: Vec<KindId> = kinds
            .filter(|&kind| table_representative(protocol, kind) == kind)
            .collect();
        Kinds::placements(&kinds, program)
    }

    /// Returns every placement of a program's threads on these kinds, up to symmetry of the program.
    ///
    /// # Errors
    /// There are more than 4096 placements before symmetry.
    pub fn placements(kinds: &[KindId], program: &Program) -> Result<Vec<Kinds>, String> {
        let threads = program.threads.len();
        let count = kinds.len().checked_pow(threads as u32);
        if count.is_none_or(|count| count > MAX_PLACEMENTS) {
            let (threads, kinds) = (counted(threads as u64, "thread"), kinds.len());
            return Err(format!(
                "{threads} can be placed on {kinds} kinds of remotes in more than {MAX_PLACEMENTS} ways; `--kinds` names one"
            ));
        }
        let mut placements: Vec<Vec<KindId>> = vec![Vec::new()];
        for _ in 0..threads {
            let extended = placements.iter().flat_map(|prefix| {
                kinds
                    .iter()
                    .map(move |kind| [&prefix[..], &[*kind]].concat())
            });
            placements = extended.collect();
        }
        let symmetries = symmetries(program);
        let is_representative = |placement: &Vec<KindId>| {
            let permuted = |symmetry: &Vec<usize>| -> Vec<KindId> {
                symmetry.iter().map(|&thread| placement[thread]).collect()
            };
            symmetries
                .iter()
                .all(|symmetry| *placement <= permuted(symmetry))
        };
        Ok(placements
            .into_iter()
            .filter(is_representative)
            .map(Kinds)
            .collect())
    }

    /// Parses kinds by name, one for each thread: `cpu,device`.
    ///
    /// # Errors
    /// The number of names is not that of the program's threads, or the protocol has no kind of a name.
    pub fn parse(text: &str, protocol: &Protocol, program: &Program) -> Result<Kinds, String> {
        let kind_names: Vec<&str> = protocol
            .kinds
            .iter()
            .map(|kind| kind.name.as_str())
            .collect();
        let missing = format!("{} has no kind of remotes", protocol.name);
        Kinds::parse_names(text, (&kind_names, &missing), program)
    }

    /// Parses kinds by name, one for each thread, among `kind_names`. `missing` begins the sentence about a name that
    /// is not among them.
    ///
    /// # Errors
    /// The number of names is not that of the program's threads, or a name is unknown.
    pub fn parse_names(
        text: &str,
        (kind_names, missing): (&[&str], &str),
        program: &Program,
    ) -> Result<Kinds, String> {
        let names: Vec<&str> = text.split(',').map(str::trim).collect();
        let threads = program.threads.len();
        if names.len() != threads {
            let (given_count, needed_count) = (
                counted(names.len() as u64, "kind"),
                counted(threads as u64, "thread"),
            );
            return Err(format!(
                "`{text}` names {given_count}, and {} has {needed_count}",
                program.name
            ));
        }
        let kind = |name: &str| {
            let index = kind_names.iter().position(|candidate| *candidate == name);
            index.map(|index| KindId(index as u8)).ok_or_else(|| {
                let help = suggestion(name, "kind", kind_names.iter().copied());
                format!("{missing} `{name}`: {help}")
            })
        };
        names
            .into_iter()
            .map(kind)
            .collect::<Result<_, _>>()
            .map(Kinds)
    }

    /// Returns the index of each thread's kind.
    pub fn indices(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(|kind| kind.index())
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> u8 {
        self.0.len() as u8
    }

    /// Returns the names of the kinds, thread by thread.
    pub fn names<'p>(&self, protocol: &'p Protocol) -> Vec<&'p str> {
        let name = |kind: &KindId| protocol.kinds[kind.index()].name.as_str();
        self.0.iter().map(name).collect()
    }

    /// Returns the number of remotes of each kind.
    pub fn remotes(&self, protocol: &Protocol) -> Remotes {
        let mut counts = vec![0; protocol.kinds.len()];
        self.0.iter().for_each(|kind| counts[kind.index()] += 1);
        Remotes::new(&counts).unwrap_or_else(|| u16::from(self.threads()).into())
    }

    /// Returns the number of each thread's remote. Remotes are numbered kind by kind, and within a kind in the order of
    /// their threads.
    pub fn numbers(&self) -> Vec<u8> {
        let remote_number = |(thread, kind): (usize, &KindId)| {
            let lower = self.0.iter().filter(|other| *other < kind).count();
            let same = self.0[..thread]
                .iter()
                .filter(|other| *other == kind)
                .count();
            (lower + same) as u8
        };
        self.0.iter().enumerate().map(remote_number).collect()
    }

    /// Returns true if all threads run on the first kind.
    pub(crate) fn all_on_first_kind(&self) -> bool {
        self.0.iter().all(|kind| *kind == KindId(0))
    }

    /// Returns true if any thread runs on the first kind.
    pub(crate) fn any_on_first_kind(&self) -> bool {
        self.0.contains(&KindId(0))
    }

    /// Returns the numbers of the remotes of each kind in use.
    pub(crate) fn remotes_by_kind(&self) -> Vec<Range<u8>> {
        let mut kinds = self.0.clone();
        kinds.sort_unstable();
        let numbered = kinds.chunk_by(|a, b| a == b).scan(0, |next, group| {
            let remotes = *next..*next + group.len() as u8;
            *next = remotes.end;
            Some(remotes)
        });
        numbered.collect()
    }

    /// Returns the accesses by which each thread reads, writes and fences.
    pub fn accesses(&self, protocol: &Protocol) -> Vec<Accesses> {
        self.accesses_of(&self.of_one_protocol(protocol))
    }

    /// As [`Kinds::accesses`], with the protocol of each thread's cache.
    pub(crate) fn accesses_of(&self, protocols: &[&Protocol]) -> Vec<Accesses> {
        let threads = self.0.iter().zip(protocols);
        let accesses = threads.map(|(kind, protocol)| Accesses::of_kind(protocol, *kind));
        accesses.collect()
    }

    /// The same protocol for each thread.
    pub(crate) fn of_one_protocol<'p>(&self, protocol: &'p Protocol) -> Vec<&'p Protocol> {
        vec![protocol; self.0.len()]
    }

    /// Describes the first access that a program needs and for which the kind of its thread has no row, if any.
    pub fn unsupported_access(&self, protocol: &Protocol, program: &Program) -> Option<String> {
        self.unsupported_access_of(&self.of_one_protocol(protocol), program)
    }

    /// As [`Kinds::unsupported_access`], with the protocol of each thread's cache.
    pub(crate) fn unsupported_access_of(
        &self,
        protocols: &[&Protocol],
        program: &Program,
    ) -> Option<String> {
        let accesses = self.accesses_of(protocols).into_iter();
        let threads = accesses.zip(&program.threads).zip(&self.0).zip(protocols);
        for (number, (((accesses, thread), kind), protocol)) in threads.enumerate() {
            let missing_access =
                |instruction: &Instruction| match needed_access(&accesses, instruction) {
                    Some((None, description)) => Some(description),
                    _ => None,
                };
            if let Some(description) = thread.code.iter().find_map(missing_access) {
                let (text, kind) = (&protocol.name, &protocol.kinds[kind.index()].name);
                return Some(match protocol.several_tables() {
                    true => format!("`{kind}` of {text} has no row for an access that {description}, and P{number} needs one"),
                    false => format!("{text} has no access that {description}"),
                });
            }
        }
        None
    }
}

/// Returns the first of the kinds that share the rows of `kind`.
fn table_representative(protocol: &Protocol, kind: KindId) -> KindId {
    protocol.kind_of(protocol.kinds[kind.index()].initial)
}

/// Returns the access that performs a write. Only writes with [`StoreVariant::ProtocolDefault`] use the protocol's
/// release; the thread orders other releases.
pub(crate) fn write_access(
    accesses: &Accesses,
    via: StoreVariant,
    release: bool,
) -> Option<Access> {
    match via {
        StoreVariant::ProtocolDefault if release => accesses.release,
        StoreVariant::ProtocolDefault => accesses.write,
        StoreVariant::WriteBack => accesses.write_back,
        StoreVariant::Acknowledged => accesses.acknowledged_write,
    }
}

/// Returns the access that an instruction needs, if the cache has it, and its description. `None` if the instruction
/// needs no access.
fn needed_access(
    accesses: &Accesses,
    instruction: &Instruction,
) -> Option<(Option<Access>, &'static str)> {
    let description = |via: StoreVariant| match via {
        StoreVariant::ProtocolDefault => "writes",
        StoreVariant::WriteBack => "writes in a copy of its own",
        StoreVariant::Acknowledged => "writes with an acknowledgement",
    };
    Some(match *instruction {
        Instruction::Load {
            acquire: Acquire::None,
            ..
        } => (accesses.read, "reads"),
        Instruction::Load { .. } => (accesses.acquire, "reads"),
        Instruction::Store { release, via, .. } => {
            (write_access(accesses, via, release), description(via))
        }
        Instruction::Atomic {
            via: StoreVariant::ProtocolDefault,
            ..
        } => (accesses.atomic, description(StoreVariant::ProtocolDefault)),
        Instruction::Atomic { via, .. } => (write_access(accesses, via, false), description(via)),
        Instruction::LoadReserved { .. } | Instruction::StoreConditional { .. } => {
            (None, "reserves a line and writes it if no other cache has")
        }
        Instruction::Rcu(Rcu::Synchronize) => (None, "waits for the readers of other threads"),
        Instruction::Rcu(_)
        | Instruction::Fence(_)
        | Instruction::Compute { .. }
        | Instruction::Select { .. }
        | Instruction::Branch { .. } => return None,
    })
}
