//! All engines agree on small random models. See `examples/fuzz_models` for the long runs.

#[path = "../examples/fuzz_models/generate.rs"]
mod generate;
#[path = "../examples/fuzz_models/judge.rs"]
mod judge;
mod tools;

use judge::{Agreed, Trouble};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Numbers of verified, violated and rejected models, and the failures with the command that reproduces each.
#[derive(Default)]
struct Found {
    verified: usize,
    violated: usize,
    refused: usize,
    reduced: usize,
    failures: Vec<String>,
}

fn judge_all(count: usize, against: &str) -> Found {
    let next = AtomicUsize::new(0);
    let work = || {
        let folder = tempfile::tempdir().unwrap();
        let mut found = Found::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                return found;
            }
            let text = generate::model(seed as u64, against == "rumur" || seed.is_multiple_of(2));
            let judged = match against {
                "rumur" => judge::rumur(&text, folder.path()),
                _ => judge::ours(&text),
            };
            match judged {
                Ok(Agreed::Verified { states, orbits }) => {
                    found.verified += 1;
                    found.reduced += usize::from(orbits < states);
                }
                Ok(Agreed::Violated) => found.violated += 1,
                Err(Trouble::Refused(why)) => {
                    eprintln!("model {seed}: {why}");
                    found.refused += 1;
                }
                Err(Trouble::Differ(what, why)) => {
                    let command = format!("cargo run -p cohkit-murphi --example fuzz_models -- --seed {seed} --count 1 --against {against}");
                    found.failures.push(format!("{what}\n{why}\n{command}"));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        let mut all = Found::default();
        for thread in threads {
            let found = thread.join().unwrap();
            all.verified += found.verified;
            all.violated += found.violated;
            all.refused += found.refused;
            all.reduced += found.reduced;
            all.failures.extend(found.failures);
        }
        all
    })
}

/// Checks that no model fails, few are rejected, and enough have each verdict for a significant comparison.
fn expect_agreement(found: &Found, count: usize) {
    assert!(found.failures.is_empty(), "{}", found.failures.join("\n\n"));
    assert!(found.refused * 100 <= count, "{} refused", found.refused);
    assert!(found.verified * 4 >= count, "{} verified", found.verified);
    assert!(found.violated * 10 >= count, "{} violated", found.violated);
}

#[test]
fn own_engines_agree_on_random_models() {
    const COUNT: usize = 20_000;
    let found = judge_all(COUNT, "ours");
    expect_agreement(&found, COUNT);
    assert!(
        found.reduced * 50 >= COUNT,
        "{} have symmetry",
        found.reduced
    );
}

#[test]
fn rumur_agrees() {
    const COUNT: usize = 300;
    if tools::require("rumur") {
        expect_agreement(&judge_all(COUNT, "rumur"), COUNT);
    }
}

/// Random numbers near both ends of 64 bits, in cells that may be undefined and in computed indices.
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
                truth(below, depth - 1),
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
    fn truth(below: &mut dyn FnMut(u64) -> u64, depth: u32) -> String {
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
            let at = index(&mut below, 1);
            body += &match below(7) {
                0 => format!("w := {e}; "),
                1 => format!("a[{at}] := {e}; "),
                2 => format!("undefine a[{at}]; undefine x; "),
                3 => format!("x := {}; w := x; ", EDGES[below(8) as usize]),
                4 => format!(
                    "if {} then w := {e}; else undefine w; end; ",
                    truth(&mut below, 1)
                ),
                5 => "i := (i + 1) % 3; ".into(),
                _ => format!("for k := 0 to {} do a[k] := {e}; end; ", below(3)),
            };
        }
        rules += &format!(
            "rule {} ==> var x: wide; begin x := 1; b := !b; {body} end;\n",
            truth(&mut below, 1).replace('x', "w")
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

#[test]
fn numbers_near_both_ends_are_the_same_in_machine_code() {
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
        let (one, other) = (run(Engine::Interpreter), run(Engine::Native));
        assert_eq!(one, other, "{text}");
        match one.outcome {
            cohkit_engine::Outcome::Violated { .. } => violated += 1,
            _ => verified += 1,
        }
    }
    assert!(verified > 20 && violated > 100, "{verified} {violated}");
}

/// A construct that is never generated is never compared.
#[test]
fn every_construct_is_made() {
    let all: String = (0..1000).map(|seed| generate::model(seed, false)).collect();
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
        assert!(all.contains(word), "`{word}` is never made");
    }
    // A function calls itself with a smaller number.
    assert!(all.contains("_0 - 1"), "no recursion is made");
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
            let judged = judge::ours(&text);
            assert!(judged.is_ok(), "{}: {judged:?}", path.display());
            models += 1;
        }
    }
    assert!(models > 1);
}

/// A shrunk text keeps the cause of its failure, and little else.
#[test]
fn shrinking_keeps_the_cause_of_failure() {
    let text = generate::model(3, true) + "rule \"kept\" (1 < (2 + 3)) ==>\nbegin\nend;\n";
    let small = judge::shrink(&text, |t| t.contains("kept") && t.contains("<"));
    assert_eq!(small, "rule \"kept\" (1 < 0) ==>\n");
}
