//! Comparison of rules with one piece of code for all parameter values and rules with separate code for each.

use cohkit_engine::model::{Deadlock, Model};
use cohkit_engine::search::Engine;
use cohkit_engine::simulate::{simulate, Simulation};
use cohkit_engine::trace::replay;
use cohkit_engine::{check, Options, Outcome, Report};
use cohkit_murphi::{read, Dialect};
use std::path::{Path, PathBuf};

/// All models that the Murphi front end accepts.
fn models() -> Vec<Model> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["models", "tests/murphi", "tests/murphi/found"].map(|folder| root.join(folder));
    let files = folders.iter().flat_map(std::fs::read_dir);
    let mut files: Vec<PathBuf> = files.flatten().map(|file| file.unwrap().path()).collect();
    files.sort();
    let models = files.iter().filter_map(|file| {
        let name = file.file_stem()?.to_string_lossy().into_owned();
        let text = (file.extension()? == "m").then(|| std::fs::read_to_string(file))?;
        let text = text.unwrap();
        let dialect = match () {
            () if text.contains("-- dialect: cmurphi") => Dialect::CMurphi,
            () if text.contains("-- dialect: rumur") => Dialect::Rumur,
            () => Dialect::Any,
        };
        let mut model = read(&name, &text, dialect).ok()?.model;
        model.deadlock = match () {
            () if text.contains("-- deadlock: stuck") => Deadlock::Stuck,
            () if text.contains("-- deadlock: off") => Deadlock::Off,
            () => Deadlock::Stuttering,
        };
        Some(model)
    });
    models.collect()
}

/// A report without the memory.
fn without_memory(report: Report) -> Report {
    Report {
        memory: 0,
        ..report
    }
}

/// With `max_nodes: 0`, every rule with parameters has one piece of code for all combinations.
#[test]
fn shared_and_separate_code_give_equal_reports() {
    let (mut compared, mut violated) = (0, 0);
    for model in models() {
        let options = Options {
            max_states: Some(3_000),
            decompose: false,
            engine: Engine::Interpreter,
            ..Options::default()
        };
        let separate = without_memory(check(&model, &options).unwrap());
        for engine in [Engine::Interpreter, Engine::Native] {
            for symmetry in [true, false] {
                let options = Options {
                    symmetry,
                    ..options
                };
                let separate = match symmetry {
                    true => separate.clone(),
                    false => without_memory(check(&model, &options).unwrap()),
                };
                let options = Options {
                    engine,
                    max_nodes: 0,
                    ..options
                };
                let shared = without_memory(check(&model, &options).unwrap());
                assert_eq!(shared, separate, "{} {engine:?} {symmetry}", model.name);
                compared += 1;
            }
        }
        if let Outcome::Violated { trace, .. } = &separate.outcome {
            if !trace.steps.is_empty() {
                let rules: Vec<u32> = trace.steps.iter().map(|step| step.rule_index).collect();
                assert_eq!(
                    replay(&model, trace.start_index, &rules).as_ref(),
                    Ok(&**trace)
                );
                violated += 1;
            }
        }
    }
    assert!(compared > 400 && violated > 20, "{compared}, {violated}");
}

/// Each random choice is made among all combinations, in the order of their numbers.
#[test]
fn random_walks_are_independent_of_shared_rule_code() {
    let simulation = Simulation {
        seed: 5,
        steps: 500,
        length: 50,
    };
    for model in models() {
        let separate = simulate(&model, &simulation, &Options::default()).unwrap();
        for engine in [Engine::Interpreter, Engine::Native] {
            let options = Options {
                engine,
                max_nodes: 0,
                ..Options::default()
            };
            let mut shared = simulate(&model, &simulation, &options).unwrap();
            // Instances that can never fire are counted if they share their code with others.
            if let (Some(shared), Some(separate)) = (&mut shared.walks, &separate.walks) {
                assert!(shared.rules >= separate.rules, "{}", model.name);
                shared.rules = separate.rules;
            }
            assert_eq!(shared, separate, "{} {engine:?}", model.name);
        }
    }
}

/// A model with too many rule instances for separate pieces of code.
const MANY: &str = "
const N: 1200;
var a, b, c: 0..N;
startstate begin a := 1; b := 1; c := 0; end;
ruleset i: 0..N; j: 0..N; k := 0 to N by 300 do
  rule \"step {j}\" a = i & b = j & i < 40 & k = 600 ==> begin a := i + 1; b := N - j; end;
end;
rule \"wrap\" a = 40 ==> begin a := 1; c := (c + 1) % 3; end;
";

/// Model of a Murphi text without errors.
fn many_model(text: &str) -> Model {
    read("many", text, Dialect::Any).unwrap().model
}

#[test]
fn rules_may_have_more_instances_than_code_pieces() {
    for engine in [Engine::Interpreter, Engine::Native] {
        let options = Options {
            engine,
            ..Options::default()
        };
        let report = check(&many_model(MANY), &options).unwrap();
        assert_eq!(report.outcome, Outcome::Verified);
        // `a` runs from 1 to 40, and `c` takes 3 values. `b` changes at each of the 39 steps of a cycle, so it
        // alternates over two cycles: 240 states.
        assert_eq!(report.states, 240);
    }
}

#[test]
fn counterexample_of_many_instances_replays() {
    let text = format!("{MANY} invariant \"low\" a < 5;");
    let model = many_model(&text);
    let report = check(&model, &Options::default()).unwrap();
    let Outcome::Violated { trace, .. } = report.outcome else {
        panic!("{:?}", report.outcome);
    };
    let names: Vec<&str> = trace.steps.iter().map(|step| step.rule.as_str()).collect();
    let expected = ["1", "1199", "1", "1199"];
    let expected = (1..)
        .zip(expected)
        .map(|(i, j)| format!("step {j} (i={i}, k=600)"));
    assert_eq!(names, expected.collect::<Vec<_>>());
    let rules: Vec<u32> = trace.steps.iter().map(|step| step.rule_index).collect();
    assert_eq!(replay(&model, trace.start_index, &rules), Ok(*trace));
}

#[test]
fn too_many_rule_instances_are_rejected() {
    let text = "var x: 0..1; startstate begin x := 0; end;
        ruleset i, j: 0..100000 do rule x = 1 ==> begin x := 0; end; end;";
    let errors = read(
        "many",
        &text.replace("i, j: 0..100000", "i: 0..100000; j: 0..100000"),
        Dialect::Any,
    );
    let errors = errors.err().unwrap();
    assert!(
        errors[0].message.contains("there are 10000200001 rules"),
        "{}",
        errors[0].message
    );
}
