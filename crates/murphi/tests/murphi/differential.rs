//! All engines agree on small random models. See `examples/fuzz_models` for the long runs.

use cohkit_base::random::SplitMix64;
use cohkit_engine::model::Deadlock;
use cohkit_engine::search::Engine;
use cohkit_engine::{check, Options, Outcome};
use cohkit_testing::random_models::judge::{self, AgreedVerdict, JudgeError};
use cohkit_testing::random_models::{generate, multisets};
use cohkit_testing::rumur;
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

/// Checkers whose verdicts are compared.
#[derive(Clone, Copy, PartialEq)]
enum Comparison {
    /// Our engines with each other.
    Engines,
    /// Our engines with Rumur.
    Rumur,
    /// Our engines with each other, on models with multisets and loops over scalarsets.
    Orbits,
}

/// Compares the verdicts on the models with the seeds from 0 to `count` - 1.
fn compare_all(count: usize, comparison: Comparison) -> Tally {
    // Rumur reads models of its own dialect only; our engines alternate between this dialect and all constructs.
    let is_for_rumur = comparison == Comparison::Rumur;
    // Argument of `fuzz_models` for this comparison.
    let against = match comparison {
        Comparison::Engines => "ours",
        Comparison::Rumur => "rumur",
        Comparison::Orbits => "orbits",
    };
    let next = AtomicUsize::new(0);
    let compare_models = || {
        let folder = tempfile::tempdir().unwrap();
        let mut tally = Tally::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                return tally;
            }
            let text = match comparison {
                Comparison::Orbits => multisets::model(seed as u64),
                _ => generate::model(seed as u64, is_for_rumur || seed.is_multiple_of(2)),
            };
            let result = match comparison {
                Comparison::Engines | Comparison::Orbits => judge::compare_engines(&text),
                Comparison::Rumur => judge::rumur(&text, folder.path()),
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
    assert!(
        tally.rejected * 100 <= count,
        "{} rejected, at most 1 % expected",
        tally.rejected
    );
    assert!(
        tally.verified * 4 >= count,
        "{} verified, at least 25 % expected",
        tally.verified
    );
    assert!(
        tally.violated * 10 >= count,
        "{} violated, at least 10 % expected",
        tally.violated
    );
}

/// Interpreted, compiled, parallel and symmetric searches of many small models.
#[test]
fn own_engines_agree_on_random_models() {
    const COUNT: usize = 20_000;
    let tally = compare_all(COUNT, Comparison::Engines);
    assert_agreement(&tally, COUNT);
    assert!(
        tally.with_symmetry * 50 >= COUNT,
        "{} have symmetry, at least 2 % expected",
        tally.with_symmetry
    );
}

/// Verdicts and numbers of orbits of models in which slot numbers and the order of loops can become observable.
#[test]
fn searches_with_symmetry_agree_on_random_models_with_multisets() {
    const COUNT: usize = 1_000;
    let tally = compare_all(COUNT, Comparison::Orbits);
    assert_agreement(&tally, COUNT);
    assert!(
        tally.with_symmetry * 10 >= COUNT,
        "{} have symmetry, at least 10 % expected",
        tally.with_symmetry
    );
}

/// An independent checker, on a small sample.
#[test]
fn rumur_agrees_on_random_models() {
    const COUNT: usize = 300;
    if rumur::require("rumur") {
        assert_agreement(&compare_all(COUNT, Comparison::Rumur), COUNT);
    }
}

/// Numbers at and near both limits of 64 bits, and small ones.
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

/// Generator of models with random numbers near both limits of 64 bits, in cells that may be undefined and in computed
/// indices.
struct EdgeGenerator {
    /// Source of random numbers.
    random: SplitMix64,
}

impl EdgeGenerator {
    /// Creates the generator of the model with this seed.
    fn new(seed: u64) -> EdgeGenerator {
        EdgeGenerator {
            random: SplitMix64::new(seed),
        }
    }

    /// A number below a bound.
    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// One of [`EDGES`].
    fn edge(&mut self) -> &'static str {
        EDGES[self.below(8) as usize]
    }

    /// An expression of a number with up to `depth` levels of operators.
    fn number(&mut self, depth: u32) -> String {
        let kinds = if depth == 0 { 4 } else { 8 };
        match self.below(kinds) {
            0 => self.edge().into(),
            1 => ["w", "l", "h", "x"][self.below(4) as usize].into(),
            2 => format!("a[{}]", self.index(depth)),
            3 => format!("(isundefined(w) ? {} : w)", self.edge()),
            4 => format!(
                "({} ? {} : {})",
                self.boolean(depth - 1),
                self.number(depth - 1),
                self.number(depth - 1)
            ),
            _ => format!(
                "({} {} {})",
                self.number(depth - 1),
                ["+", "-", "*", "/", "%", "-"][self.below(6) as usize],
                self.number(depth - 1)
            ),
        }
    }

    /// A condition with up to `depth` levels of operators.
    fn boolean(&mut self, depth: u32) -> String {
        match self.below(4) {
            0 => "b".into(),
            1 => format!("isundefined(a[{}])", self.below(3)),
            2 => ["isundefined(w)", "isundefined(x)", "isundefined(l)"][self.below(3) as usize]
                .into(),
            _ if depth == 0 => "!b".into(),
            _ => format!("({} < {})", self.number(depth - 1), self.number(depth - 1)),
        }
    }

    /// An index of the array, constant or computed.
    fn index(&mut self, depth: u32) -> String {
        match self.below(4) {
            0 => self.below(3).to_string(),
            1 => "i".into(),
            2 => "(b ? i : 0)".into(),
            _ if depth == 0 => "(2 - i)".into(),
            _ => format!("({} % 3)", self.number(depth - 1)),
        }
    }

    /// A statement.
    fn statement(&mut self) -> String {
        let e = self.number(2);
        let array_index = self.index(1);
        match self.below(7) {
            0 => format!("w := {e}; "),
            1 => format!("a[{array_index}] := {e}; "),
            2 => format!("undefine a[{array_index}]; undefine x; "),
            3 => format!("x := {}; w := x; ", self.edge()),
            4 => format!(
                "if {} then w := {e}; else undefine w; end; ",
                self.boolean(1)
            ),
            5 => "i := (i + 1) % 3; ".into(),
            _ => format!("for k := 0 to {} do a[k] := {e}; end; ", self.below(3)),
        }
    }

    /// A whole model.
    fn model(&mut self) -> String {
        let mut rules = String::new();
        for _ in 0..3 + self.below(3) {
            let mut body = String::new();
            for _ in 0..1 + self.below(3) {
                body += &self.statement();
            }
            rules += &format!(
                "rule {} ==> var x: wide; begin x := 1; b := !b; {body} end;\n",
                self.boolean(1).replace('x', "w")
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
}

/// Overflow and undefined values must be the same errors in compiled code.
#[test]
fn native_engine_matches_interpreter_near_number_limits() {
    let (mut verified, mut violated) = (0, 0);
    for seed in 0..500 {
        let text = EdgeGenerator::new(seed).model();
        let mut model = cohkit_murphi::read("edges", &text, Default::default())
            .unwrap_or_else(|errors| panic!("{}\n{text}", errors[0].message))
            .model;
        model.deadlock = Deadlock::Off;
        let run = |engine| {
            let options = Options {
                engine,
                max_states: Some(200),
                ..Options::default()
            };
            check(&model, &options).unwrap()
        };
        let (interpreted, native) = (run(Engine::Interpreter), run(Engine::Native));
        assert_eq!(interpreted, native, "{text}");
        match interpreted.outcome {
            Outcome::Violated { .. } => violated += 1,
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
        "ismember(",
    ] {
        assert!(generated_text.contains(word), "`{word}` is never made");
    }
    let is_alias_of_part = |line: &str| {
        let place = line.trim().strip_prefix("alias ");
        place.is_some_and(|place| place.contains('.') || place.contains('['))
    };
    assert!(
        generated_text.lines().any(is_alias_of_part),
        "no alias of an element or field is made"
    );
    assert_has_union_of_scalarsets(&generated_text);
    // A function calls itself with a smaller number.
    assert!(generated_text.contains("_0 - 1"), "no recursion is made");
}

/// Checks that the text has a union of two scalarsets.
fn assert_has_union_of_scalarsets(text: &str) {
    let mut sets: Vec<&str> = Vec::new();
    let mut found = false;
    for line in text.lines().map(str::trim) {
        if line == "type" {
            sets.clear();
        } else if let Some((name, _)) = line.split_once(": scalarset(") {
            sets.push(name);
        } else if let Some((_, members)) = line.split_once(": union { ") {
            let members = members.trim_end_matches(" };");
            found |= members.split(", ").all(|member| sets.contains(&member));
        }
    }
    assert!(found, "no union of scalarsets is made");
}

/// The models with multisets have records, arrays and unions as well.
#[test]
fn every_construct_is_generated_beside_multisets() {
    let text: String = (0..300).map(multisets::model).collect();
    for construct in [
        "U: union { S, T };",
        "U: union { S, T, N };",
        "U: union { S, N };",
        "M: multiset [3] of E;",
        "E: U;",
        "ismember(who, S)",
        "for u: U do",
        "who := ",
        "cards[owner] := saved;",
        "kept := flag;",
        "set_flag(cards[",
        "swap(saved.s, ",
        "note(cards[",
        "copy(flag, kept, ",
        "if taken(flag[",
        "].s do",
        "].b do",
        ": saved do",
        ": heard[",
    ] {
        assert!(text.contains(construct), "`{construct}` is never made");
    }
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
