//! Shapes with mixes of what stands between their accesses, as files in assembly and in C.

use crate::axioms::{allowed, Model};
use crate::cycles::{alike, varied, Between, FAMILIES};
use crate::print::{print, print_c};
use crate::program::{Program, Quantifier};

/// What is mixed in shapes of two threads.
const MIXED: [Between; 6] = [
    Between::Nothing,
    Between::Fence,
    Between::Weak,
    Between::Orders,
    Between::LaterOrders,
    Between::HandsOver,
];
/// What is mixed in larger ones with two places for it, and in `ISA2`, which tells orders between two points from those at
/// homes.
const HANDED_ON: [Between; 4] = [
    Between::Nothing,
    Between::Fence,
    Between::Orders,
    Between::HandsOver,
];
/// What C11 has words for.
const IN_C: [Between; 4] = [
    Between::Nothing,
    Between::Fence,
    Between::Orders,
    Between::LaterOrders,
];

/// The texts that the files are run on, by their names; each guarantees the model that their ends are compared with.
pub const ORDERINGS: [(&str, &str); 10] = [
    ("so", include_str!("../../../ordering/so.coh")),
    ("seq", include_str!("../../../ordering/seq.coh")),
    ("cord", include_str!("../../../ordering/cord.coh")),
    ("mp", include_str!("../../../ordering/mp.coh")),
    ("wb", include_str!("../../../ordering/wb.coh")),
    ("tso/so", include_str!("../../../ordering/tso/so.coh")),
    ("tso/cord", include_str!("../../../ordering/tso/cord.coh")),
    ("tso/wb", include_str!("../../../ordering/tso/wb.coh")),
    ("tso/seq", include_str!("../../../ordering/tso/seq.coh")),
    ("tso/mp", include_str!("../../../ordering/tso/mp.coh")),
];
/// The names of the files that show on `mp` what release consistency forbids, in their order.
pub const SHOWN_ON_MP: &str = include_str!("../../../litmus/shapes/shown-on-mp.txt");

/// A file of a test.
pub struct File {
    /// Its folder and name.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// All files, in the order of their shapes, those in assembly first. The condition of each is `exists` where release
/// consistency allows the cycle of the shape, and `~exists` where it does not.
///
/// # Errors
/// What cannot be made of a shape, with its name.
pub fn files() -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    for program in shapes(&MIXED, &HANDED_ON)? {
        files.push(File {
            path: format!("aarch64/{}.litmus", program.name),
            text: print(&program)?,
        });
    }
    for mut program in shapes(&IN_C, &IN_C)? {
        if program.threads.len() > 2 {
            continue;
        }
        program.name.insert_str(0, "C-");
        files.push(File {
            path: format!("c11/{}.litmus", program.name),
            text: print_c(&program)?,
        });
    }
    Ok(files)
}

/// The shapes with every mix where they have two places, and of `ISA2`; the others with one thing everywhere. Those that are
/// the same program stand once.
fn shapes(mixed: &[Between], handed_on: &[Between]) -> Result<Vec<Program>, String> {
    let mut all: Vec<Program> = Vec::new();
    for (family, cycle) in FAMILIES {
        let places = cycle.matches("Po").count();
        let threads = cycle.matches('e').count();
        let mixes = match (threads, places) {
            (0..=2, _) => mixes(mixed, places),
            (_, 2) => mixes(handed_on, places),
            _ if family == "ISA2" => mixes(handed_on, places),
            _ => mixed.iter().map(|&one| vec![one; places]).collect(),
        };
        let mut of_family: Vec<Program> = Vec::new();
        for between in mixes {
            let mut program = varied(family, cycle, &between)?;
            if of_family
                .iter()
                .any(|other| alike(other) == alike(&program))
            {
                continue;
            }
            let ends = allowed(&program, Model::Rc)?;
            program.quantifier = match ends.iter().any(|end| program.holds(end)) {
                true => Quantifier::Exists,
                false => Quantifier::NotExists,
            };
            of_family.push(program);
        }
        all.append(&mut of_family);
    }
    Ok(all)
}

/// Every choice of one for each of so many places.
fn mixes(of: &[Between], places: usize) -> Vec<Vec<Between>> {
    let mut all = vec![Vec::new()];
    for _ in 0..places {
        let longer = all.iter().flat_map(|before: &Vec<Between>| {
            of.iter().map(move |&next| [&before[..], &[next]].concat())
        });
        all = longer.collect();
    }
    all
}
