//! All engines agree on small random models. See `examples/fuzz_models` for the long runs.

use cohkit_testing::random_models::generate;
use cohkit_testing::random_models::judge;
use cohkit_testing::rumur;

use judge::{AgreedVerdict, JudgeError};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Numbers of verified, violated and rejected models, and the failures with the command that reproduces each.
#[derive(Default)]
struct Tally {
    /// Number of models that all engines verify.
    verified: usize,
    /// Number of models in which all engines find a violation.
    violated: usize,
    /// Number of models that the front end or the checker rejects.
    rejected: usize,
    /// Number of verified models with fewer states up to symmetry.
    with_symmetry: usize,
    /// Disagreements, each with the command that repeats the comparison.
    failures: Vec<String>,
}

/// Compares the models with the seeds from 0 to `count` - 1: our engines with each other, or with Rumur if `against`
/// is `rumur`.
fn compare_all(count: usize, against: &str) -> Tally {
    let next = AtomicUsize::new(0);
    let compare_models = || {
        let folder = tempfile::tempdir().unwrap();
        let mut tally = Tally::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                return tally;
            }
            let text = generate::model(seed as u64, against == "rumur" || seed.is_multiple_of(2));
            let result = match against {
                "rumur" => judge::rumur(&text, folder.path()),
                _ => judge::compare_engines(&text),
            };
            match result {
                Ok(AgreedVerdict::Verified { states, orbits }) => {
                    tally.verified += 1;
                    tally.with_symmetry += usize::from(orbits < states);
                }
                Ok(AgreedVerdict::Violated) => tally.violated += 1,
                Err(JudgeError::Rejected(details)) => {
                    eprintln!("model {seed}: {details}");
                    tally.rejected += 1;
                }
                Err(JudgeError::Disagreement(kind, details)) => {
                    let command = format!("cargo run -p cohkit-murphi --example fuzz_models -- --seed {seed} --count 1 --against {against}");
                    tally.failures.push(format!("{kind}\n{details}\n{command}"));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(compare_models)).collect();
        let mut total = Tally::default();
        for thread in threads {
            let tally = thread.join().unwrap();
            total.verified += tally.verified;
            total.violated += tally.violated;
            total.rejected += tally.rejected;
            total.with_symmetry += tally.with_symmetry;
            total.failures.extend(tally.failures);
        }
        total
    })
}

/// Checks that no model fails, few are rejected, and enough have each verdict for a significant comparison.
fn assert_agreement(tally: &Tally, count: usize) {
    assert!(tally.failures.is_empty(), "{}", tally.failures.join("\n\n"));
    assert!(tally.rejected * 100 <= count, "{} refused", tally.rejected);
    assert!(tally.verified * 4 >= count, "{} verified", tally.verified);
    assert!(tally.violated * 10 >= count, "{} violated", tally.violated);
}

/// Interpreted, compiled, parallel and symmetric searches of many small models.
#[test]
fn own_engines_agree_on_random_models() {
    const COUNT: usize = 20_000;
    let tally = compare_all(COUNT, "ours");
    assert_agreement(&tally, COUNT);
    assert!(
        tally.with_symmetry * 50 >= COUNT,
        "{} have symmetry",
        tally.with_symmetry
    );
}

/// An independent checker, on a small sample.
#[test]
fn rumur_agrees_on_random_models() {
    const COUNT: usize = 300;
    if rumur::require("rumur") {
        assert_agreement(&compare_all(COUNT, "rumur"), COUNT);
    }
}

/// A model with random numbers near both limits of 64 bits, in cells that may be undefined and in computed indices.
fn edge_model(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = move |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) % bound
    };
    const EDGES: [&str; 8] = [
        "9223372036854775807",
        "(-9223372036854775807)",
        "9223372036854775800",
        "(-9223372036854775800)",
        "4611686018427387904",
        "1",
        "(-1)",
        "0",
    ];
    fn number(below: &mut dyn FnMut(u64) -> u64, depth: u32) -> String {
        let kinds = if depth == 0 { 4 } else { 8 };
        match below(kinds) {
            0 => EDGES[below(8) as usize].into(),
            1 => ["w", "l", "h", "x"][below(4) as usize].into(),
            2 => format!("a[{}]", index(below, depth)),
            3 => format!("(isundefined(w) ? {} : w)", EDGES[below(8) as usize]),
            4 => format!(
                "({} ? {} : {})",
                boolean(below, depth - 1),
                number(below, depth - 1),
                number(below, depth - 1)
            ),
            _ => format!(
                "({} {} {})",
                number(below, depth - 1),
                ["+", "-", "*", "/", "%", "-"][below(6) as usize],
                number(below, depth - 1)
            ),
        }
    }
    fn boolean(below: &mut dyn FnMut(u64) -> u64, depth: u32) -> String {
        match below(4) {
            0 => "b".into(),
            1 => format!("isundefined(a[{}])", below(3)),
            2 => ["isundefined(w)", "isundefined(x)", "isundefined(l)"][below(3) as usize].into(),
            _ if depth == 0 => "!b".into(),
            _ => format!(
                "({} < {})",
                number(below, depth - 1),
                number(below, depth - 1)
            ),
        }
    }
    fn index(below: &mut dyn FnMut(u64) -> u64, depth: u32) -> String {
        match below(4) {
            0 => below(3).to_string(),
            1 => "i".into(),
            2 => "(b ? i : 0)".into(),
            _ if depth == 0 => "(2 - i)".into(),
            _ => format!("({} % 3)", number(below, depth - 1)),
        }
    }
    let mut rules = String::new();
    for _ in 0..3 + below(3) {
        let mut body = String::new();
        for _ in 0..1 + below(3) {
            let e = number(&mut below, 2);
            let array_index = index(&mut below, 1);
            body += &match below(7) {
                0 => format!("w := {e}; "),
                1 => format!("a[{array_index}] := {e}; "),
                2 => format!("undefine a[{array_index}]; undefine x; "),
                3 => format!("x := {}; w := x; ", EDGES[below(8) as usize]),
                4 => format!(
                    "if {} then w := {e}; else undefine w; end; ",
                    boolean(&mut below, 1)
                ),
                5 => "i := (i + 1) % 3; ".into(),
                _ => format!("for k := 0 to {} do a[k] := {e}; end; ", below(3)),
            };
        }
        rules += &format!(
            "rule {} ==> var x: wide; begin x := 1; b := !b; {body} end;\n",
            boolean(&mut below, 1).replace('x', "w")
        );
    }
    format!(
        "type wide: -9223372036854775807..9223372036854775807; idx: 0..2;
        low: -9223372036854775807..-9223372036854775800; high: 9223372036854775800..9223372036854775807;
        var a: array [idx] of wide; w: wide; l: low; h: high; i: idx; b: boolean;
        startstate begin i := 0; b := true; h := 9223372036854775807; end;
        startstate begin i := 1; b := false; l := -9223372036854775807; h := 9223372036854775800; a[1] := l; w := h; end;
        {rules}"
    )
    .replace("isundefined(x)", "isundefined(w)")
}

/// Overflow and undefined values must be the same errors in compiled code.
#[test]
fn native_engine_matches_interpreter_near_number_limits() {
    let (mut verified, mut violated) = (0, 0);
    for seed in 0..400 {
        let text = edge_model(seed);
        let mut model = cohkit_murphi::read("edges", &text, Default::default())
            .unwrap_or_else(|errors| panic!("{}\n{text}", errors[0].message))
            .model;
        model.deadlock = cohkit_engine::model::Deadlock::Off;
        let run = |engine| {
            let options = cohkit_engine::Options {
                engine,
                max_states: Some(200),
                ..Default::default()
            };
            cohkit_engine::check(&model, &options).unwrap()
        };
        use cohkit_engine::search::Engine;
        let (interpreted, native) = (run(Engine::Interpreter), run(Engine::Native));
        assert_eq!(interpreted, native, "{text}");
        match interpreted.outcome {
            cohkit_engine::Outcome::Violated { .. } => violated += 1,
            _ => verified += 1,
        }
    }
    assert!(verified > 20 && violated > 100, "{verified} {violated}");
}

/// Constructs that are not generated are not compared.
#[test]
fn every_construct_is_generated() {
    let generated_text: String = (0..1000).map(|seed| generate::model(seed, false)).collect();
    for word in [
        "scalarset(",
        "union {",
        "record ",
        "multiset [",
        "multisetadd(",
        "multisetremove(",
        "multisetremovepred(",
        "multisetcount(",
        "choose ",
        "alias ",
        "ruleset ",
        "forall ",
        "exists ",
        "switch ",
        "while ",
        "clear ",
        "undefine ",
        "isundefined(",
        "function ",
        "procedure ",
        "assume ",
        "cover ",
        "liveness ",
        "invariant ",
        "error ",
        "by -1 do",
    ] {
        assert!(generated_text.contains(word), "`{word}` is never made");
    }
    // A function calls itself with a smaller number.
    assert!(generated_text.contains("_0 - 1"), "no recursion is made");
}

/// Models that once failed, by all engines.
#[test]
fn engines_agree_on_formerly_failing_models() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/murphi/found");
    let mut models = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|e| e == "m") {
            let text = std::fs::read_to_string(&path).unwrap();
            let result = judge::compare_engines(&text);
            assert!(result.is_ok(), "{}: {result:?}", path.display());
            models += 1;
        }
    }
    assert!(models > 1);
}

/// A shrunk text keeps the cause of its failure, and almost nothing else.
#[test]
fn shrinking_keeps_the_cause_of_failure() {
    let text = generate::model(3, true) + "rule \"kept\" (1 < (2 + 3)) ==>\nbegin\nend;\n";
    let shrunk = judge::shrink(&text, |t| t.contains("kept") && t.contains("<"));
    assert_eq!(shrunk, "rule \"kept\" (1 < 0) ==>\n");
}
