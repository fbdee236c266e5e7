//! The models of `models/bench`, whose speed `make bench` measures, have the verdicts and numbers of states that their
//! first lines state, by our search and by Rumur.

use cohkit_engine::model::Model;
use cohkit_engine::{check, Options, Outcome};
use cohkit_murphi::{read, Dialect};
use cohkit_testing::rumur::{require, rumur_text, Compiled};
use std::path::{Path, PathBuf};

/// Largest number of states for which Rumur's search without symmetry reduction is compared.
const MAX_COMPARED_STATES: u64 = 450_000;

/// Styles of models, each with several of them.
const STYLES: [&str; 5] = ["textbook", "generated", "multiset", "list", "dash"];

/// A model with the values of its first lines.
struct BenchModel {
    /// Name of the model.
    name: String,
    /// Whole file.
    text: String,
    /// Style of the model: one of [`STYLES`].
    style: String,
    /// Number of reachable states.
    states: u64,
    /// Number of reachable states up to symmetry.
    orbits: u64,
}

impl BenchModel {
    /// Reads the model for a search.
    fn model(&self) -> Model {
        match read(&self.name, &self.text, Dialect::Any) {
            Ok(output) => {
                let warnings: Vec<&String> = output.warnings.iter().map(|w| &w.message).collect();
                assert!(warnings.is_empty(), "{}: {warnings:?}", self.name);
                output.model
            }
            Err(errors) => panic!("{}: {:?}", self.name, errors.first().map(|e| &e.message)),
        }
    }
}

/// Returns all models, sorted by name.
fn bench_models() -> Vec<BenchModel> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/bench");
    let mut paths: Vec<PathBuf> = (std::fs::read_dir(folder).unwrap())
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "m"))
        .collect();
    paths.sort();
    let read_model = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let value = |key: &str| {
            let prefix = format!("-- {key}: ");
            let value = text.lines().find_map(|line| line.strip_prefix(&prefix));
            value
                .unwrap_or_else(|| panic!("{}: no `{key}`", path.display()))
                .to_owned()
        };
        assert_eq!(value("verdict"), "verified", "{}", path.display());
        BenchModel {
            name: path.file_stem().unwrap().to_string_lossy().into(),
            style: value("style"),
            states: value("states").parse().unwrap(),
            orbits: value("orbits").parse().unwrap(),
            text,
        }
    };
    paths.iter().map(read_model).collect()
}

#[test]
fn each_style_has_models() {
    let models = bench_models();
    assert_eq!(models.len(), 24);
    for style in STYLES {
        let count = models.iter().filter(|model| model.style == style).count();
        assert!(count >= 4, "{style}: {count} models");
    }
    assert!(models.iter().all(|model| STYLES.contains(&&*model.style)));
}

#[test]
fn searches_have_the_stated_numbers_of_states() {
    for bench_model in bench_models() {
        let model = bench_model.model();
        for (symmetry, states) in [(true, bench_model.orbits), (false, bench_model.states)] {
            let options = Options {
                symmetry,
                decompose: false,
                ..Options::default()
            };
            let report = check(&model, &options).unwrap();
            let name = &bench_model.name;
            assert_eq!(report.outcome, Outcome::Verified, "{name}");
            assert_eq!(report.symmetric, symmetry, "{name}");
            assert_eq!(report.lost_symmetry, [], "{name}");
            assert_eq!(
                report.states,
                u128::from(states),
                "{name}, symmetry: {symmetry}"
            );
        }
    }
}

/// Rumur reads all models without multisets.
#[test]
fn rumur_agrees_on_the_stated_numbers_of_states() {
    if !require("rumur") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for bench_model in bench_models() {
        let name = &bench_model.name;
        if bench_model.style == "multiset" {
            continue;
        }
        let is_large = bench_model.states > MAX_COMPARED_STATES;
        let options: &[&str] = match is_large {
            true => &[],
            false => &["--symmetry-reduction", "off"],
        };
        let result = rumur_text(
            &bench_model.text,
            options,
            Compiled::Optimised,
            folder.path(),
        );
        let (verified, states, output) = result.unwrap_or_else(|output| panic!("{name}: {output}"));
        assert!(verified, "{name}: {output}");
        match is_large {
            // Its reduction is a heuristic.
            true => assert!(
                (bench_model.orbits..=bench_model.states).contains(&states),
                "{name}: {states}"
            ),
            false => assert_eq!(states, bench_model.states, "{name}"),
        }
    }
}
