//! The library of Murphi models under `models/`: the first lines of each model are complete, its README lists them, and
//! our results agree with them.
//!
//! `UPDATE_EXPECT=1` rewrites the rows of the README from the models.

use cohkit_engine::model::{Deadlock, Model};
use cohkit_engine::trace::replay;
use cohkit_engine::{check, Options, Outcome, Property, Report};
use cohkit_murphi::{read, Dialect};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A model with its header: the keys and the description in its first lines.
struct LibraryModel {
    /// File name of the model.
    file: String,
    /// Whole file.
    text: String,
    /// Values by key.
    keys: BTreeMap<String, String>,
    /// The comment after the keys, as one line.
    description: String,
}

/// Permitted keys in their order.
const KEYS: [&str; 9] = [
    "verdict",
    "property",
    "deadlock",
    "states",
    "orbits",
    "steps",
    "dialect",
    "counted by",
    "slow",
];

/// Folder of the library.
fn models_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

/// Reads all models, sorted by file name.
fn library_models() -> Vec<LibraryModel> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(models_folder())
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "m"))
        .collect();
    paths.sort();
    paths.iter().map(|path| read_library_model(path)).collect()
}

/// Reads a model. Fails the test if the header is not as `models/README.md` requires.
fn read_library_model(path: &Path) -> LibraryModel {
    let file = path.file_name().unwrap().to_str().unwrap().to_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().peekable();
    let mut order = Vec::new();
    let mut keys = BTreeMap::new();
    while let Some((key, value)) = lines
        .peek()
        .and_then(|line| line.strip_prefix("-- "))
        .and_then(|line| line.split_once(": "))
    {
        let position = KEYS.iter().position(|known| *known == key);
        order
            .push(position.unwrap_or_else(|| panic!("{file}: the keys are {KEYS:?}, not `{key}`")));
        keys.insert(key.to_owned(), value.to_owned());
        lines.next();
    }
    assert!(
        order.windows(2).all(|w| w[0] < w[1]),
        "{file}: keys in the order {KEYS:?}"
    );
    assert_eq!(
        lines.next(),
        Some("--"),
        "{file}: an empty comment line after the keys"
    );
    let description: Vec<&str> = lines.map_while(|line| line.strip_prefix("-- ")).collect();
    assert!(
        !description.is_empty(),
        "{file}: a description is expected after the keys"
    );
    LibraryModel {
        file,
        description: description.join(" "),
        keys,
        text,
    }
}

impl LibraryModel {
    /// Value of a key, if the header has it.
    fn get(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }

    /// Value of a key that must be a number, if the header has it.
    fn number(&self, key: &str) -> Option<u64> {
        self.get(key).map(|value| {
            value
                .parse()
                .unwrap_or_else(|_| panic!("{}: `{key}` is a number", self.file))
        })
    }

    /// The first sentence of the description, without text in parentheses.
    fn title(&self) -> String {
        let mut title = String::new();
        let mut depth = 0;
        let mut characters = self.description.chars().peekable();
        while let Some(c) = characters.next() {
            match c {
                '(' => {
                    depth += 1;
                    title.truncate(title.trim_end().len());
                }
                ')' => depth -= 1,
                // A full stop after a single letter ends an initial, not the sentence.
                '.' if title.rsplit(' ').next().is_some_and(|word| word.len() == 1) => {
                    title.push(c)
                }
                '.' | ':' if depth == 0 && characters.peek().is_none_or(|next| *next == ' ') => {
                    break
                }
                _ if depth == 0 => title.push(c),
                _ => {}
            }
        }
        title
    }

    /// The row of the model in a table of the README.
    fn row(&self) -> String {
        let verdict = match (self.get("property"), self.number("steps")) {
            (Some(property), Some(steps)) => format!("violated after {steps}: {property}"),
            (Some(property), None) => format!("violated: {property}"),
            _ => self.get("verdict").unwrap().to_owned(),
        };
        format!(
            "| [`{0}`]({0}) | {1} | {2} | {verdict} | {3} | {4} |",
            self.file,
            self.title(),
            self.get("dialect").unwrap(),
            self.get("states").unwrap_or(""),
            self.get("orbits").unwrap_or(""),
        )
    }
}

/// Values that depend on each other must be consistent.
#[test]
fn headers_have_valid_keys() {
    for entry in library_models() {
        let file = &entry.file;
        let (states, orbits, steps) = (
            entry.number("states"),
            entry.number("orbits"),
            entry.number("steps"),
        );
        match entry.get("verdict") {
            Some("verified") => {
                assert!(states.is_some(), "{file}: a verified model needs `states`");
                assert!(
                    steps.is_none() && entry.get("property").is_none(),
                    "{file}: a verified model has no `property` and no `steps`"
                );
                assert!(orbits <= states, "{file}: `orbits` exceeds `states`");
            }
            Some("violated") => {
                let property = entry
                    .get("property")
                    .unwrap_or_else(|| panic!("{file}: a violated model needs `property`"));
                // These properties are judged after the whole search, and have no counterexample that is a path.
                if property.starts_with("cover") || property.starts_with("liveness") {
                    assert!(
                        states.is_some() && steps.is_none(),
                        "{file}: this property needs `states` and has no `steps`"
                    );
                } else {
                    assert!(
                        states.is_none() && orbits.is_none() && steps.is_some(),
                        "{file}: this property needs `steps` and has neither `states` nor `orbits`"
                    );
                }
            }
            other => panic!("{file}: the verdict is verified or violated, not {other:?}"),
        }
        assert!(
            matches!(entry.get("dialect"), Some("both" | "rumur" | "cmurphi")),
            "{file}: `dialect` is both, rumur or cmurphi"
        );
        assert!(
            matches!(entry.get("counted by"), Some("rumur" | "brute_force.py")),
            "{file}: `counted by` is rumur or brute_force.py"
        );
        assert!(
            matches!(entry.get("deadlock"), None | Some("off" | "stuck")),
            "{file}: `deadlock` is off or stuck"
        );
        assert!(
            matches!(entry.get("slow"), None | Some("yes")),
            "{file}: `slow` can only be yes"
        );
    }
}

/// Compares the rows of the README with the headers. Its headings, which group the rows, are written by hand.
#[test]
fn readme_lists_every_model() {
    let path = models_folder().join("README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut rows: BTreeMap<String, String> = library_models()
        .iter()
        .map(|entry| (entry.file.clone(), entry.row()))
        .collect();
    let mut expected = String::new();
    for line in text.lines() {
        let listed = line
            .strip_prefix("| [`")
            .and_then(|rest| rest.split_once('`'))
            .map(|(file, _)| file);
        let row = listed.map(|file| {
            rows.remove(file)
                .unwrap_or_else(|| panic!("{file}: not a model, or listed twice"))
        });
        expected.push_str(row.as_deref().unwrap_or(line));
        expected.push('\n');
    }
    assert!(
        rows.is_empty(),
        "add to a table of models/README.md: {:?}",
        rows.keys()
    );
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, expected).unwrap();
        return;
    }
    assert!(
        text == expected,
        "rows of models/README.md differ from the models; UPDATE_EXPECT=1 rewrites them"
    );
}

/// Models that the independent checker does not read are counted by a program of our own, which this test runs; `make
/// soak` runs both over the whole library.
#[test]
fn brute_force_confirms_headers_that_rumur_cannot() {
    let tool = models_folder().join("../tests/murphi/tools/brute_force.py");
    let models: Vec<PathBuf> = library_models()
        .iter()
        .filter(|entry| entry.get("counted by") == Some("brute_force.py"))
        .map(|entry| models_folder().join(&entry.file))
        .collect();
    assert!(
        models.len() >= 4,
        "too few models are counted by brute_force.py"
    );
    let output = Command::new("python3")
        .arg(tool)
        .args(models)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

impl LibraryModel {
    /// The model, read in the dialect of its header.
    fn model(&self) -> Result<Model, String> {
        let dialect = match self.get("dialect") {
            Some("rumur") => Dialect::Rumur,
            Some("cmurphi") => Dialect::CMurphi,
            _ => Dialect::Any,
        };
        self.model_as(dialect)
    }

    /// The model, read in this dialect, with the definition of a deadlock of its header.
    fn model_as(&self, dialect: Dialect) -> Result<Model, String> {
        let name = self.file.trim_end_matches(".m");
        let mut model = read(name, &self.text, dialect)
            .map_err(|errors| {
                let rendered = errors
                    .iter()
                    .map(|e| e.render(&self.file, &self.text, false));
                rendered.collect::<Vec<_>>().join("\n")
            })?
            .model;
        model.deadlock = match self.get("deadlock") {
            Some("stuck") => Deadlock::Stuck,
            Some("off") => Deadlock::Off,
            _ => Deadlock::Stuttering,
        };
        Ok(model)
    }

    /// Differences between a report and the header.
    fn differences(&self, model: &Model, report: &Report, symmetry: bool) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |key: &str, expected: String, found: String| {
            if expected != found {
                differences.push(format!(
                    "{}: {key}: {expected} in the header, found {found}",
                    self.file
                ));
            }
        };
        let verdict = match &report.outcome {
            Outcome::Verified => "verified",
            Outcome::Violated { .. } => "violated",
            _ => "undecided",
        };
        compare(
            "verdict",
            self.get("verdict").unwrap().into(),
            verdict.into(),
        );
        // Without scalarsets every state is an orbit.
        let count_key = if symmetry && self.get("orbits").is_some() {
            "orbits"
        } else {
            "states"
        };
        if let Some(states) = self.get(count_key) {
            compare(count_key, states.into(), report.states.to_string());
        }
        if let Outcome::Violated {
            property,
            message,
            trace,
        } = &report.outcome
        {
            let property = header_property(property, message);
            compare(
                "property",
                self.get("property").unwrap_or("none").into(),
                property,
            );
            if let Some(steps) = self.get("steps") {
                compare("steps", steps.into(), trace.steps.len().to_string());
            }
            let rules: Vec<u32> = trace.steps.iter().map(|step| step.rule_index).collect();
            if replay(model, trace.start_index, &rules).as_ref() != Ok(&**trace) {
                differences.push(format!(
                    "{}: its counterexample differs from its replay",
                    self.file
                ));
            }
        }
        differences
    }
}

/// A property in the notation of headers.
fn header_property(property: &Property, message: &str) -> String {
    match property {
        Property::Invariant(name) => format!("invariant \"{name}\""),
        Property::Assertion(name) if message.contains("error") => format!("error \"{name}\""),
        Property::Assertion(name) => format!("assert \"{name}\""),
        Property::Cover(name) => format!("cover \"{name}\""),
        Property::Liveness(name) => format!("liveness \"{name}\""),
        Property::NoDeadlock => "deadlock".into(),
        Property::Drain => "drain".into(),
        Property::HigherLayer(property) => property.kind.into(),
        Property::WellDefined => {
            let kinds = [
                ("division by zero", "division by zero"),
                ("has room for", "multiset full"),
                ("read but undefined", "undefined"),
                ("the index", "index"),
                ("the value", "range"),
            ];
            let known_kind = kinds.iter().find(|(phrase, _)| message.contains(phrase));
            known_kind.map_or_else(|| message.to_owned(), |(_, kind)| (*kind).to_owned())
        }
    }
}

/// Explores the models, and compares the results with their headers. Slow models are explored only if
/// `COHKIT_WHOLE_LIBRARY` is set, or if they have few states up to symmetry.
#[test]
fn models_match_their_headers() {
    let include_slow = std::env::var_os("COHKIT_WHOLE_LIBRARY").is_some();
    let mut errors_found = Vec::new();
    let mut explored = 0;
    for entry in library_models() {
        let model = match entry.model() {
            Ok(model) => model,
            Err(reason) => {
                errors_found.push(reason);
                continue;
            }
        };
        let slow = !include_slow && entry.get("slow").is_some();
        explored += usize::from(!slow);
        for symmetry in [false, true] {
            // `make soak` explores these too; some have few orbits.
            let has_few_orbits =
                symmetry && entry.number("orbits").is_some_and(|orbits| orbits < 20_000);
            if slow && !has_few_orbits {
                continue;
            }
            let options = Options {
                decompose: false,
                symmetry,
                ..Options::default()
            };
            match check(&model, &options) {
                Ok(report) => errors_found.extend(entry.differences(&model, &report, symmetry)),
                Err(errors) => errors_found.push(format!("{}: {errors:?}", entry.file)),
            }
        }
    }
    assert!(explored > 40, "only {explored} models are small enough");
    assert!(errors_found.is_empty(), "{}", errors_found.join("\n"));
}

/// A shared model is accepted in both dialects. A model for CMurphi alone is rejected in Rumur's dialect.
#[test]
fn shared_models_are_read_in_every_dialect() {
    for entry in library_models() {
        let (accepting_dialects, rejecting_dialect): (&[Dialect], _) = match entry.get("dialect") {
            Some("both") => (&[Dialect::CMurphi, Dialect::Rumur], None),
            Some("rumur") => (&[Dialect::Any], None),
            _ => (&[Dialect::Any], Some(Dialect::Rumur)),
        };
        for dialect in accepting_dialects {
            if let Err(reason) = entry.model_as(*dialect) {
                panic!("{}, {dialect:?}: {reason}", entry.file);
            }
        }
        if let Some(dialect) = rejecting_dialect {
            assert!(
                entry.model_as(dialect).is_err(),
                "{}: accepted as {dialect:?}",
                entry.file
            );
        }
    }
}

/// Probable mistakes in shipped models would be misleading examples.
#[test]
fn library_models_have_no_warnings() {
    for entry in library_models() {
        let warnings = read(&entry.file, &entry.text, Dialect::Any)
            .unwrap()
            .warnings;
        let rendered = warnings
            .iter()
            .map(|w| w.render(&entry.file, &entry.text, false));
        assert_eq!(rendered.collect::<String>(), "", "{}", entry.file);
    }
}
