//! Each model of `tests/murphi` has the result that its first lines state.
//!
//! Each file there is a test. It begins with lines `-- key: value`, followed by a description.
//!
//! | Key | Value |
//! |---|---|
//! | `verdict` | `verified`, `violated` or `rejected` |
//! | `states` | number of reachable states of a verified model, without symmetry |
//! | `dialect` | `cmurphi` or `rumur`, if it is to be read in this dialect |
//! | `deadlock` | `stuck` or `off`, if it is not stuttering |
//! | `rumur` | `refuses` if Rumur rejects the text, or `differs` and a reason if it gives it another meaning |
//!
//! A violation with its trace, the reason of a rejection, and warnings are in a file beside the model that ends in
//! `.txt`. Rumur must agree on the texts that it accepts. It gets the others as we print them, if they can be printed.

use cohkit_testing::rumur;

use cohkit_engine::model::{Deadlock, Model};
use cohkit_engine::search::Engine;
use cohkit_engine::trace::replay;
use cohkit_engine::{check, Options, Outcome, Report};
use cohkit_murphi::{
    print, read, rumur_options, undefined_read, Diagnostic, Dialect, ReadOutput, Style,
};
use expect_test::expect_file;
use rumur::{require, rumur_text, Compiled};
use std::path::{Path, PathBuf};

/// A test case: a file of `tests/murphi`.
struct Case {
    /// Path of the file.
    path: PathBuf,
    /// Whole file.
    text: String,
}

impl Case {
    /// File name without extension.
    fn name(&self) -> String {
        self.path.file_stem().unwrap().to_string_lossy().into()
    }

    /// The value of a key in the first lines.
    fn key(&self, key: &str) -> Option<&str> {
        let header_lines = self.text.lines().take_while(|line| line.contains(": "));
        let mut pairs = header_lines.filter_map(|line| line.strip_prefix("-- ")?.split_once(": "));
        pairs.find(|pair| pair.0 == key).map(|pair| pair.1)
    }

    /// The model, without the warnings.
    fn read(&self) -> Result<Model, Vec<Diagnostic>> {
        Ok(self.read_with_warnings()?.model)
    }

    /// The model, read in the dialect and with the definition of a deadlock that the first lines state.
    fn read_with_warnings(&self) -> Result<ReadOutput, Vec<Diagnostic>> {
        let dialect = match self.key("dialect") {
            None => Dialect::Any,
            Some("cmurphi") => Dialect::CMurphi,
            Some("rumur") => Dialect::Rumur,
            Some(other) => panic!("{}: no dialect {other}", self.name()),
        };
        let mut read = read(&self.name(), &self.text, dialect)?;
        read.model.deadlock = match self.key("deadlock") {
            None => Deadlock::Stuttering,
            Some("stuck") => Deadlock::Stuck,
            Some("off") => Deadlock::Off,
            Some(other) => panic!("{}: no deadlock {other}", self.name()),
        };
        Ok(read)
    }

    /// Diagnostics as they are printed.
    fn render_all(&self, diagnostics: &[Diagnostic]) -> String {
        let file = format!("{}.m", self.name());
        let rendered: Vec<_> = diagnostics
            .iter()
            .map(|d| d.render(&file, &self.text, false))
            .collect();
        rendered.join("\n\n") + "\n"
    }

    /// Compares a text with the `.txt` file of the case.
    fn assert_golden(&self, text: &str) {
        expect_file![self.path.with_extension("txt")].assert_eq(text);
    }
}

/// Returns all test cases, sorted by path.
fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/murphi");
    let files = std::fs::read_dir(&folder)
        .unwrap()
        .map(|f| f.unwrap().path());
    // Reduced models that `fuzz_models` found.
    let reduced_models = std::fs::read_dir(folder.join("found")).unwrap();
    let files = files.chain(reduced_models.map(|f| f.unwrap().path()));
    let mut files: Vec<PathBuf> = files
        .filter(|f| f.extension().is_some_and(|e| e == "m"))
        .collect();
    files.sort();
    let case = |path: PathBuf| Case {
        text: std::fs::read_to_string(&path).unwrap(),
        path,
    };
    files.into_iter().map(case).collect()
}

/// Report on a model that is valid.
fn run(model: &Model, options: &Options) -> Report {
    check(model, options).unwrap_or_else(|errors| panic!("{}: {errors:?}", model.name))
}

/// Returns options for a search of every state.
fn unreduced_options() -> Options<'static> {
    Options {
        decompose: false,
        symmetry: false,
        ..Options::default()
    }
}

/// `verified` or `violated`.
fn verdict(report: &Report) -> &'static str {
    match report.outcome {
        Outcome::Verified => "verified",
        Outcome::Violated { .. } => "violated",
        _ => "undecided",
    }
}

/// Compares verdict, states, diagnostics and trace of each case with its first lines and its `.txt` file.
#[test]
fn test_cases_have_their_stated_verdicts() {
    let mut mismatches = Vec::new();
    for case in cases() {
        let name = case.name();
        let expected = case.key("verdict").unwrap_or_default();
        let ReadOutput {
            model, warnings, ..
        } = match case.read_with_warnings() {
            Ok(read) => read,
            Err(errors) if expected == "rejected" => {
                case.assert_golden(&case.render_all(&errors));
                continue;
            }
            Err(errors) => {
                mismatches.push(format!("{name}: rejected\n{}", case.render_all(&errors)));
                continue;
            }
        };
        let mut golden_text = match warnings.is_empty() {
            true => String::new(),
            false => case.render_all(&warnings),
        };
        let report = run(&model, &unreduced_options());
        let actual = verdict(&report);
        if let Outcome::Violated {
            property,
            message,
            trace,
        } = &report.outcome
        {
            if expected == "violated" {
                golden_text += &format!("{property}: {message}\n{trace}");
            }
            let rules: Vec<u32> = trace.steps.iter().map(|s| s.rule_index).collect();
            assert_eq!(
                replay(&model, trace.start_index, &rules).as_ref(),
                Ok(&**trace),
                "{name}"
            );
        }
        if !golden_text.is_empty() || case.path.with_extension("txt").exists() {
            case.assert_golden(&golden_text);
        }
        let states = case.key("states").map(|n| n.parse().unwrap());
        if actual != expected || actual == "verified" && states != Some(report.states) {
            mismatches.push(format!(
                "{name}: {actual}, {} states\n{:?}",
                report.states, report.outcome
            ));
        }
    }
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
}

/// Constructs on which the dialects disagree cause a warning if no dialect is chosen.
#[test]
fn undefined_scalarset_read_causes_a_warning() {
    let text = |condition| {
        format!(
            "type node: scalarset(2);\nvar owner: node; steps: 0..3;\nstartstate begin steps := 0; end;\n\
             rule steps < 3 ==> begin steps := steps + 1; end;\n\
             ruleset n: node do\n  rule steps = 3 & {condition} ==> begin owner := n; steps := 0; end;\nend;"
        )
    };
    let unguarded_text = text("owner != n");
    let warning = undefined_read(&unguarded_text, Dialect::Any).unwrap();
    assert!(warning.is_warning && warning.message.contains("`owner` is read"));
    let (start, end) = (warning.span.start as usize, warning.span.end as usize);
    assert!(unguarded_text[start..end].starts_with("rule steps = 3 & owner != n"));
    for dialect in [Dialect::CMurphi, Dialect::Rumur] {
        assert_eq!(undefined_read(&unguarded_text, dialect), None);
    }
    for guarded_condition in ["(isundefined(owner) | owner != n)", "true"] {
        assert_eq!(undefined_read(&text(guarded_condition), Dialect::Any), None);
    }
    // The variable is read where it always has a value.
    let initialised = unguarded_text.replace(
        "startstate begin",
        "ruleset n: node do startstate begin owner := n;",
    );
    let initialised = initialised.replacen("end;\nrule", "end; end;\nrule", 1);
    assert_eq!(undefined_read(&initialised, Dialect::Any), None);
    // A text that cannot be read.
    assert_eq!(undefined_read("rule", Dialect::Any), None);
}

/// Two threads give the same report as one, and decomposition the same verdict and size.
#[test]
fn threads_and_decomposition_agree() {
    for case in cases() {
        let Ok(model) = case.read() else { continue };
        let serial = run(&model, &unreduced_options());
        let parallel = run(
            &model,
            &Options {
                threads: 2,
                ..unreduced_options()
            },
        );
        assert_eq!(serial, parallel, "{}", case.name());
        let decomposed = Options {
            decompose: true,
            ..unreduced_options()
        };
        let decomposed = run(&model, &decomposed);
        assert_eq!(verdict(&serial), verdict(&decomposed), "{}", case.name());
        if serial.outcome == Outcome::Verified {
            assert_eq!(
                (serial.states, serial.transitions),
                (decomposed.states, decomposed.transitions),
                "{}",
                case.name()
            );
        }
    }
}

/// A model that is printed and read again has the same verdict and number of states.
#[test]
fn printed_models_round_trip() {
    let mut printed = 0;
    for case in cases() {
        let Ok(model) = case.read() else { continue };
        let Ok(text) = print(&model, Style::Plain) else {
            continue;
        };
        printed += 1;
        let reread = read(&case.name(), &text, Dialect::Any).unwrap_or_else(|errors| {
            let errors: Vec<_> = errors
                .iter()
                .map(|e| e.render("printed.m", &text, false))
                .collect();
            panic!("{}: {}\n{text}", case.name(), errors.join("\n"))
        });
        let mut reread = reread.model;
        reread.deadlock = model.deadlock;
        let (a, b) = (
            run(&model, &unreduced_options()),
            run(&reread, &unreduced_options()),
        );
        assert_eq!(verdict(&a), verdict(&b), "{}\n{text}", case.name());
        if a.outcome == Outcome::Verified {
            assert_eq!(a.states, b.states, "{}\n{text}", case.name());
        }
    }
    assert!(printed > 20, "only {printed}");
}

/// An independent checker gives the same verdict and number of states.
#[test]
fn rumur_agrees_on_test_cases() {
    if !require("rumur") {
        return;
    }
    let cases = cases();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let compare_cases = || {
        let folder = tempfile::tempdir().unwrap();
        let mut mismatches = Vec::new();
        loop {
            let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(case) = cases.get(i) else {
                return mismatches;
            };
            if let Err(reason) = compare_with_rumur(case, folder.path()) {
                mismatches.push(format!("{}: {reason}", case.name()));
            }
        }
    };
    let mismatches = std::thread::scope(|scope| {
        let second_thread = scope.spawn(compare_cases);
        let mut mismatches = compare_cases();
        mismatches.extend(second_thread.join().unwrap());
        mismatches
    });
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
}

/// Only calls that convert a value that may be undefined cannot be printed.
#[test]
fn conversions_of_defined_values_are_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/murphi/found");
    for (name, is_printed) in [
        ("member-passed-to-union", true),
        ("undefined-member-of-union", true),
        ("undefined-passed-to-union", false),
        ("choice-passed-to-union", false),
    ] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.m"))).expect(name);
        let Ok(read) = read(name, &text, Dialect::CMurphi) else {
            panic!("{name} cannot be read");
        };
        let printed = print(&read.model, Style::Plain);
        assert_eq!(printed.is_ok(), is_printed, "{name}: {printed:?}");
        if let Err(reason) = printed {
            assert!(reason.contains("may be undefined"), "{name}: {reason}");
        }
    }
}

/// Compares our result for a case with Rumur's. The error describes the difference. Cases that declare a difference
/// are skipped.
fn compare_with_rumur(case: &Case, folder: &Path) -> Result<(), String> {
    let Ok(model) = case.read() else {
        return Ok(());
    };
    let expected_relation = case.key("rumur").unwrap_or_default();
    if expected_relation.starts_with("differs ") {
        return Ok(());
    }
    let options = rumur_options(&model, Style::Plain);
    let rumur_result = match rumur_text(&case.text, &options, Compiled::Unoptimised, folder) {
        Ok(_) if expected_relation == "refuses" => return Err("Rumur accepts it".into()),
        Ok(rumur_result) => rumur_result,
        Err(reason) if expected_relation != "refuses" => {
            return Err(format!("Rumur rejects it: {reason}"))
        }
        Err(_) => match print(&model, Style::Plain) {
            Ok(text) => rumur_text(&text, &options, Compiled::Unoptimised, folder)
                .map_err(|reason| format!("{reason}\n{text}"))?,
            Err(_) => return Ok(()),
        },
    };
    let report = run(&model, &unreduced_options());
    let (no_violation, states, printed) = rumur_result;
    if no_violation != (report.outcome == Outcome::Verified) {
        return Err(format!(
            "Rumur does not agree with {:?}: {printed}",
            report.outcome
        ));
    }
    if no_violation && states as u128 != report.states {
        return Err(format!(
            "Rumur has {states} states, we have {}",
            report.states
        ));
    }
    Ok(())
}

/// An alias of a removed element must not refer to the next element, or to the first value of its type.
#[test]
fn use_of_a_removed_element_is_an_error() {
    let body = |body: &str| {
        format!(
            "type who: scalarset(3); msg: record dst: who; n: 0..3; end; slots: array [0..1] of multiset [3] of msg;
             var nets: slots; got: who; num: 0..3; a: msg;
             function first(var m: msg): who; begin return m.dst; end;
             procedure take(var m: msg); begin multisetremovepred(i: nets[0], true); num := m.n; end;
             procedure deep(left: 0..2; var n: 0..3);
             begin if left > 0 then multisetremovepred(i: nets[0], true); deep(left - 1, n); else num := n; end; end;
             startstate begin undefine nets; undefine got; undefine a; num := 0; end;
             ruleset w: who do rule \"send\" multisetcount(i: nets[0], true) < 2 ==>
               begin a.dst := w; a.n := 1; multisetadd(a, nets[0]); undefine a; end; end;
             choose i: nets[0] do rule \"take\" true ==> begin {body} undefine got; num := 0; end; end;"
        )
    };
    let use_message = "is used after its element was removed from `nets[0]`";
    let limit_message = "calls itself, removes elements";
    for (text, expected_message) in [
        (
            "alias m: nets[0][i] do multisetremove(i, nets[0]); got := m.dst; end;",
            Some(use_message),
        ),
        (
            "alias m: nets[0][i]; d: m.dst do multisetremove(i, nets[0]); got := d; end;",
            Some(use_message),
        ),
        (
            "alias m: nets[0][i] do multisetremove(i, nets[0]); got := first(m); end;",
            Some(use_message),
        ),
        (
            "alias m: nets[0][i] do multisetremove(i, nets[0]); m.n := 2; end;",
            Some(use_message),
        ),
        (
            "alias m: nets[0][i] do undefine nets[0]; num := m.n; end;",
            Some(use_message),
        ),
        (
            "alias m: nets[0][i] do nets[0] := nets[1]; num := m.n; end;",
            Some(use_message),
        ),
        (
            "alias m: nets[0][i] do multisetremovepred(j: nets[0], true); a := m; undefine a; end;",
            Some(use_message),
        ),
        ("take(nets[0][i]);", Some(use_message)),
        ("deep(1, nets[0][i].n);", Some(limit_message)),
        (
            "alias m: nets[0][i] do got := m.dst; num := m.n; multisetremove(i, nets[0]); end;",
            None,
        ),
        (
            "alias m: nets[0][i] do multisetremovepred(j: nets[1], true); num := m.n; end;",
            None,
        ),
    ] {
        let model = read("text", &body(text), Dialect::Any);
        let mut model = model
            .unwrap_or_else(|errors| panic!("{text}: {}", errors[0].message))
            .model;
        model.deadlock = Deadlock::Off;
        for symmetry in [false, true] {
            for engine in [Engine::Interpreter, Engine::Native] {
                let options = Options {
                    symmetry,
                    engine,
                    ..Options::default()
                };
                let report = run(&model, &options);
                let message_text = match &report.outcome {
                    Outcome::Violated { message, .. } => message.clone(),
                    Outcome::Exceeded { limit, .. } => limit.clone(),
                    Outcome::Verified => "verified".into(),
                    Outcome::Undecided { reason } => format!("{reason:?}"),
                };
                assert!(
                    message_text.contains(expected_message.unwrap_or("verified")),
                    "{text}: {message_text}"
                );
            }
        }
    }
}

/// Loops over scalarsets in start states do not distinguish values, and neither does a `clear` there.
#[test]
fn loop_order_in_start_states_keeps_symmetry() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/murphi/order-in-start.m");
    let text = std::fs::read_to_string(path).unwrap();
    let cleared = text.replace("for n: node do home := n;", "clear home; for n: node do");
    let early_return = text.replace(
        "for n: node do home",
        "for n: node do if n = home then return; end; home",
    );
    for text in [&text, &cleared, &early_return] {
        let ReadOutput {
            model, warnings, ..
        } = read("start", text, Dialect::Any).unwrap();
        assert!(warnings.is_empty());
        let report = run(&model, &Options::default());
        assert_eq!(report.outcome, Outcome::Verified);
        // Up to symmetry there are three states.
        assert!(report.symmetric && report.states == 3, "{}", report.states);
    }
}

/// Generated models may join thousands of conditions.
#[test]
fn ten_thousand_joined_conditions_are_supported() {
    for (join, neutral_condition, deciding_condition) in [
        (" | ", "x = 9", "x < 4"),
        (" & ", "x != 9", "x < 4"),
        (" || ", "x = 9", "x < 4"),
        (" && ", "x != 9", "x < 4"),
        // Errors behind the deciding operand are not evaluated.
        (" | ", "x < 4", "a[9] = 0"),
        (" & ", "x < 4", "x != 9 & (x < 4 | a[9] = 0)"),
    ] {
        let guard = [vec![neutral_condition; 9_999], vec![deciding_condition]]
            .concat()
            .join(join);
        let text = format!(
            "var x: 0..3; a: array [0..3] of 0..3;
            startstate begin x := 0; for i := 0 to 3 do a[i] := i; end; end;
            rule {guard} ==> begin x := (x + 1) % 4; end;"
        );
        let read = read("chain", &text, Dialect::Any);
        let model = read
            .unwrap_or_else(|errors| panic!("{join}: {}", errors[0].message))
            .model;
        let report = run(&model, &Options::default());
        assert_eq!(
            (report.outcome, report.states),
            (Outcome::Verified, 4),
            "{join}"
        );
    }
}

/// Generated models nest conditions, cases and statements more deeply than people do.
#[test]
fn ten_thousand_levels_of_nesting_are_supported() {
    let nested =
        |n: usize, open: &str, inner: &str, close: &str| open.repeat(n) + inner + &close.repeat(n);
    let rule = |guard: String| format!("rule {guard} ==> begin x := (x + 1) % 4; end;");
    let body = |body: String| {
        format!("rule true ==> begin x := (x + 1) % 4; {body} end; invariant x < 4;")
    };
    let levels = |n: usize| -> Vec<(&str, String)> {
        vec![
            ("parentheses", rule(nested(n, "(", "x < 4", ")"))),
            ("sums", rule(format!("x{} < 4", " + 0".repeat(n)))),
            ("negations", rule(nested(n, "!", "(x < 4)", ""))),
            ("implications", rule("x < 4 -> ".repeat(n) + "x < 4")),
            (
                "conditions",
                body(format!("x := {}x;", "x = 9 ? 0 : ".repeat(n / 2))),
            ),
            ("indices", rule(nested(n, "a[", "x", "]") + " < 4")),
            (
                "cases",
                body(format!(
                    "if x = 9 then {} end;",
                    "elsif x = 8 then x := 0; ".repeat(n)
                )),
            ),
            ("statements", body(nested(n, "if x < 4 then ", "", "end; "))),
            (
                "quantifiers",
                rule(nested(n / 2, "forall i: one do ", "x < 4", " end")),
            ),
        ]
    };
    let text = |part: &str| {
        format!(
            "type one: 1..1; t: 0..3; var x: t; a: array [t] of t;
            startstate begin x := 0; for i: t do a[i] := i; end; end; {part}"
        )
    };
    for (name, part) in levels(9_980) {
        let model = read(name, &text(&part), Dialect::Any)
            .unwrap_or_else(|errors| panic!("{name}: {}", errors[0].message))
            .model;
        let report = run(&model, &Options::default());
        assert_eq!(
            (report.outcome, report.states),
            (Outcome::Verified, 4),
            "{name}"
        );
        // A thread with a small stack can free the model.
        let small = std::thread::Builder::new().stack_size(128 << 10);
        let thread = small.spawn(move || drop(model)).expect("a thread");
        thread.join().expect("no panic");
    }
    // The printed model has more parentheses, and long indentation.
    for (name, part) in levels(900) {
        let parse = |text: &str| {
            read(name, text, Dialect::Any)
                .unwrap_or_else(|errors| panic!("{name}: {}", errors[0].message))
                .model
        };
        let printed = print(&parse(&text(&part)), Style::Plain)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let report = run(&parse(&printed), &Options::default());
        assert_eq!(
            (report.outcome, report.states),
            (Outcome::Verified, 4),
            "{name}"
        );
    }
    for (name, part) in levels(20_200) {
        let Err(errors) = read(name, &text(&part), Dialect::Any) else {
            panic!("{name}: more than 10000 levels are accepted")
        };
        assert_eq!(errors[0].label, "at most 10000 levels", "{name}");
    }
}
