//! Judgement of a selection of mutants, with the list of equivalent mutants.

use super::equivalent::EquivalentMutants;
use cohkit_mutants::{mutants, Judge, Mutant, MutantVerdict};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// Returns the name and source of each shipped protocol file with rows of its own, sorted by name.
pub fn shipped(root: &Path) -> Vec<(String, String)> {
    let entries =
        std::fs::read_dir(root.join("protocols")).expect("the folder of protocols can be read");
    let mut texts: Vec<(String, String)> = entries
        .filter_map(|entry| {
            let path = entry.expect("a directory entry").path();
            let name = path
                .file_name()?
                .to_str()?
                .strip_suffix(".coh")?
                .to_string();
            let text = std::fs::read_to_string(&path).expect("the file can be read");
            // A composition of other protocol files has no rows of its own.
            (!cohkit_protocol::text::composes(&text)).then_some((name, text))
        })
        .collect();
    texts.sort();
    texts
}

/// Reads the list of equivalent mutants.
pub fn known(root: &Path) -> EquivalentMutants {
    let path = root.join("tests/mutations/equivalent.txt");
    let list = std::fs::read_to_string(path).expect("the list of known mutants can be read");
    EquivalentMutants::parse(&list).unwrap_or_else(|error| panic!("{error}"))
}

/// Verdicts on the mutants of a protocol file.
pub struct JudgedSelection {
    /// Number of mutants by mutation operator and verdict.
    pub kinds: BTreeMap<&'static str, BTreeMap<&'static str, usize>>,
    /// Errors, one sentence each: unlisted survivors, and wrong entries of the list.
    pub problems: Vec<String>,
}

impl JudgedSelection {
    /// Returns the number of mutants by verdict.
    pub fn sums(&self) -> BTreeMap<&'static str, usize> {
        let mut sums = BTreeMap::new();
        for (verdict, count) in self.kinds.values().flatten() {
            *sums.entry(*verdict).or_default() += count;
        }
        sums
    }
}

/// A selection of the mutants of a protocol file.
#[derive(Clone)]
pub struct MutantSelection {
    /// Mutation operators; `None` for all.
    pub kinds: Option<Vec<String>>,
    /// Number of the first mutant.
    pub from: usize,
    /// Distance between the numbers of selected mutants; 0 counts as 1.
    pub every: usize,
}

/// Judges the selected mutants of a protocol file on this number of threads. `name` is the file's name in the list of
/// equivalent mutants. A protocol that is not verified without a mutation is itself a problem.
pub fn judge(
    name: &str,
    text: &str,
    known: &EquivalentMutants,
    selection: &MutantSelection,
    threads: usize,
) -> JudgedSelection {
    let mut problems = Vec::new();
    let mut kinds: BTreeMap<_, BTreeMap<_, usize>> = BTreeMap::new();
    let judge = match Judge::new(text) {
        Ok(judge) => judge,
        Err(reason) => {
            problems.push(format!(
                "{name}: the unmutated specification is not verified: {reason}"
            ));
            return JudgedSelection { kinds, problems };
        }
    };
    let mutants = mutants(text);
    check_list(name, &mutants, known, &mut problems);
    let is_selected = |number: &usize| match &selection.kinds {
        Some(kinds) => kinds.iter().any(|kind| kind == mutants[*number].kind),
        None => true,
    };
    let numbers = (selection.from..mutants.len()).step_by(selection.every.max(1));
    let selected: Vec<usize> = numbers.filter(is_selected).collect();
    for (number, verdict) in verdicts(&judge, &mutants, &selected, threads) {
        let mutant = &mutants[number];
        let key = key(name, mutant);
        let listed = known.entry(&key);
        let lists_whole_row = listed.is_some_and(|entry| entry.ends_with(": *"));
        let category = match (verdict, listed) {
            (MutantVerdict::Survived | MutantVerdict::Bisimilar, Some(_)) => "equivalent",
            (MutantVerdict::Survived, None) => {
                problems.push(format!(
                    "{key}\n    survives, and is not listed; --text {name} --print {number}"
                ));
                "survived"
            }
            // A change of a row that is never taken can still make the specification invalid.
            (MutantVerdict::Rejected, Some(_)) if lists_whole_row => "rejected",
            (verdict, listed) => {
                if let Some(entry) = listed {
                    problems.push(format!("{key}: {verdict:?}, but listed as `{entry}`"));
                }
                verdict.name()
            }
        };
        *kinds
            .entry(mutant.kind)
            .or_default()
            .entry(category)
            .or_default() += 1;
    }
    JudgedSelection { kinds, problems }
}

/// Returns the entry of a mutant in the list of equivalent mutants.
fn key(file: &str, mutant: &Mutant) -> String {
    format!("{file}: {}", mutant.description)
}

/// Reports mutants with equal descriptions, and entries of the list without a mutant.
fn check_list(
    file: &str,
    mutants: &[Mutant],
    known: &EquivalentMutants,
    problems: &mut Vec<String>,
) {
    let mut keys = BTreeSet::new();
    for mutant in mutants {
        if !keys.insert(key(file, mutant)) {
            problems.push(format!("{}: two mutants are called so", key(file, mutant)));
        }
    }
    let listed_entries: BTreeSet<&str> = keys.iter().filter_map(|key| known.entry(key)).collect();
    let missing = known
        .of_file(file)
        .filter(|entry| !listed_entries.contains(entry));
    problems.extend(missing.map(|entry| format!("{entry}: listed, but there is no such mutant")));
}

/// Judges the selected mutants on several threads. Returns the verdicts by number of the mutant.
fn verdicts(
    judge: &Judge,
    mutants: &[Mutant],
    selected: &[usize],
    threads: usize,
) -> BTreeMap<usize, MutantVerdict> {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let Some(&number) = selected.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                let verdict = judge.verdict(&mutants[number]);
                verdicts
                    .lock()
                    .expect("no worker panicked")
                    .insert(number, verdict);
            });
        }
    });
    verdicts.into_inner().expect("no worker panicked")
}
