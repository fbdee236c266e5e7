//! Reader for tests in C, with the atomic accesses of C11.

use cohkit_litmus::axioms::{self, Model};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::herd::read;
use cohkit_litmus::models::outcomes;
use cohkit_litmus::print::print;
use cohkit_litmus::program::Program;

/// Message passing: release consistency forbids the outcome of its condition.
const MP: &str = "\
C MP
{}

// Message passing.
P0 (atomic_int* x, atomic_int* y) {
  atomic_store_explicit(x, 1, memory_order_relaxed);
  atomic_store_explicit(y, 1, memory_order_release);
}

P1 (atomic_int* x, atomic_int* y) {
  int r0 = atomic_load_explicit(y, memory_order_acquire);
  int r1 = atomic_load_explicit(x, memory_order_relaxed);
}

exists (1:r0=1 /\\ 1:r1=0)
";

/// Reads a test that has no errors.
fn test(text: &str) -> Program {
    read(text).unwrap_or_else(|e| panic!("{}", e.render("t", text, false)))
}

/// Returns true if a model allows an outcome that satisfies the condition of the test, as written and as printed in
/// assembly.
fn allowed(text: &str, model: Model) -> bool {
    let test = test(text);
    let outcomes = axioms::outcomes(&test, model).unwrap();
    // The test printed in assembly has the same verdict.
    let printed = print(&test).unwrap();
    let printed_outcomes = axioms::outcomes(&self::test(&printed), model).unwrap();
    let satisfies = |program: &Program, outcomes: &std::collections::BTreeSet<_>| {
        outcomes.iter().any(|outcome| program.holds(outcome))
    };
    let is_allowed = satisfies(&test, &outcomes);
    assert_eq!(
        is_allowed,
        satisfies(&self::test(&printed), &printed_outcomes),
        "{printed}"
    );
    is_allowed
}

/// Each weakened order of `MP` makes the outcome possible; fences of the same order forbid it again.
#[test]
fn orders_of_accesses_are_kept() {
    let relaxed = |text: &str, order: &str| text.replace(order, "memory_order_relaxed");
    assert!(!allowed(MP, Model::Rc));
    assert!(allowed(&relaxed(MP, "memory_order_release"), Model::Rc));
    assert!(allowed(&relaxed(MP, "memory_order_acquire"), Model::Rc));
    assert!(!allowed(&relaxed(MP, "memory_order_release"), Model::Tso));
    // Fences instead of ordered accesses have the same effect.
    let all_relaxed = relaxed(&relaxed(MP, "memory_order_release"), "memory_order_acquire");
    let fences = |release: &str, acquire: &str| {
        let anchor = "  atomic_store_explicit(y";
        let text = all_relaxed.replace(
            anchor,
            &format!("  atomic_thread_fence({release});\n{anchor}"),
        );
        let anchor = "  int r1";
        text.replace(
            anchor,
            &format!("  atomic_thread_fence({acquire});\n{anchor}"),
        )
    };
    assert!(!allowed(
        &fences("memory_order_release", "memory_order_acquire"),
        Model::Rc
    ));
    assert!(!allowed(
        &fences("memory_order_seq_cst", "memory_order_acq_rel"),
        Model::Rc
    ));
    assert!(allowed(
        &fences("memory_order_relaxed", "memory_order_acquire"),
        Model::Rc
    ));
}

/// The functions without an order are sequentially consistent. Release and acquire are weaker.
#[test]
fn seq_cst_accesses_forbid_store_buffering() {
    let sb = |store: &str, load: &str| {
        let thread = |number: u8, a: &str, b: &str| {
            format!("P{number} (atomic_int* x, atomic_int* y) {{ {store}({a}, 1); int r0 = {load}({b}); }}\n")
        };
        let threads = [thread(0, "x", "y"), thread(1, "y", "x")].concat();
        format!("C SB\n{{ x = 0; }}\n{threads}exists (0:r0=0 /\\ 1:r0=0)\n")
    };
    let plain = sb("atomic_store", "atomic_load");
    for (model, _) in Model::ALL {
        assert!(!allowed(&plain, model), "{model}");
    }
    let weak = plain.replace("(x, 1)", "_explicit(x, 1, memory_order_release)");
    let weak = weak.replace(
        "atomic_load(y)",
        "atomic_load_explicit(y, memory_order_acquire)",
    );
    assert!(allowed(&weak, Model::Tso));
    assert!(allowed(&weak, Model::Rc));
}

/// A lock by compare-and-exchange: one thread acquires it, and the other reads the owner's value.
#[test]
fn supported_constructs_have_their_semantics() {
    let text = "\
C lock
{ int l = 0; [n] = 5; }
static void P0 (atomic_int* l, atomic_int* n) {
  int r0 = 0;
  int r1 = atomic_compare_exchange_strong_explicit(l, &r0, 7, memory_order_acq_rel, memory_order_relaxed);
  int r2; /* what was there */
  if (r1 == 1 & r0 != 3) {
    r2 = atomic_fetch_add_explicit(n, 2 + 1, memory_order_relaxed);
  } else
    r2 = -1;
  int r3 = atomic_fetch_sub(n, 1) - r2;
}
P1 (atomic_int* l) {
  int r0 = 0;
  int r1 = !atomic_compare_exchange_strong(l, &r0, 8);
  atomic_exchange(l, r1 ^ 1 | 4);
}
forall ((0:r1=1 /\\ 0:r2=5 /\\ 0:r3=3 /\\ n=7 /\\ (1:r1=1 /\\ 1:r0=7 /\\ l=4 \\/ 1:r1=0 /\\ l=7))
     \\/ (0:r1=1 /\\ 0:r2=5 /\\ 1:r1=1 /\\ 1:r0=7 /\\ l=4)
     \\/ (0:r1=0 /\\ 0:r2=-1 /\\ 0:r3=6 /\\ n=4 /\\ 1:r1=0 /\\ l=5))
";
    let program = test(text);
    for cores in [CoreKind::InOrder, CoreKind::StoreBuffer] {
        let outcomes = outcomes(&program, cores);
        let texts: Vec<String> = outcomes
            .iter()
            .map(|outcome| program.format_outcome(outcome))
            .collect();
        assert!(program.is_satisfied(&outcomes), "{}", texts.join("\n"));
        assert!(outcomes.len() >= 2, "{}", texts.join("\n"));
    }
    let sc = axioms::outcomes(&program, Model::Sc).unwrap();
    assert_eq!(sc, outcomes(&program, CoreKind::InOrder));
}

/// A failed compare-and-exchange has its failure order: with an acquire, a later read does not return an old value.
#[test]
fn failed_exchange_has_its_failure_order() {
    let is_allowed = |orders: &str| {
        let exchange =
            format!("0;\n  int r9 = atomic_compare_exchange_strong_explicit(y, &r0, 2, {orders})");
        let text = MP.replace("atomic_load_explicit(y, memory_order_acquire)", &exchange);
        assert_ne!(text, MP);
        let program = test(&text);
        let outcomes = axioms::outcomes(&program, Model::Rc).unwrap();
        outcomes.iter().any(|outcome| program.holds(outcome))
    };
    let [relaxed, release] = ["relaxed", "release"].map(|order| format!("memory_order_{order}"));
    for success in [&relaxed, &release] {
        assert!(is_allowed(&format!("{success}, memory_order_relaxed")));
        assert!(!is_allowed(&format!("{success}, memory_order_acquire")));
        assert!(!is_allowed(&format!("{success}, memory_order_seq_cst")));
    }
    assert!(!is_allowed("memory_order_acquire, memory_order_relaxed"));
}

/// `(*x` among statements does not begin a comment, even if a comment ends later. Before, between and after threads it
/// does.
#[test]
fn parenthesised_dereference_is_no_comment() {
    let text = MP.replace("exists", "(* what is asked *)\nexists");
    let comments = text.replace("P1 (", "(* the other one: { *)\nP1 (");
    assert_eq!(test(&comments), test(MP));
    // The kernel's access, a plain access, and an access to a location by its name are equivalent here.
    for store in ["WRITE_ONCE(*y, 1)", "*y = 1", "WRITE_ONCE(y, 1)"] {
        let [release, relaxed] = ["release", "relaxed"]
            .map(|order| format!("atomic_store_explicit(y, 1, memory_order_{order})"));
        let with_store = test(&text.replace(&release, store));
        assert_eq!(
            with_store,
            test(&text.replace(&release, &relaxed)),
            "{store}"
        );
    }
    // The end of a comment is searched for once, not for each `(*`.
    let unclosed_comments = MP.replace("P1 (", &format!("{} P1 (", "(*".repeat(100_000)));
    assert!(read(&unclosed_comments).is_err());
}

/// Rejected constructs with their line, column and message.
#[test]
fn unsupported_constructs_are_rejected_with_their_position() {
    let faults = [
        ("P0 (", "P2 (", "5:1", "`P0` is expected here"),
        (
            "memory_order_release",
            "memory_order_consume",
            "7:31",
            "`memory_order_consume` is no order",
        ),
        (
            "memory_order_release",
            "memory_order_acquire",
            "7:31",
            "is no order of `atomic_store_explicit`",
        ),
        (
            "atomic_store_explicit(y, 1",
            "atomic_store_explicit(z, 1",
            "7:25",
            "`z` is no location that this thread",
        ),
        (
            "atomic_store_explicit(y, 1",
            "atomic_stare_explicit(y, 1",
            "7:3",
            "`atomic_stare_explicit` is no function",
        ),
        (
            "atomic_store_explicit(y, 1, memory_order_release)",
            "*1 = 1",
            "7:4",
            "this is the address of no location",
        ),
        (
            "atomic_store_explicit(y, 1, memory_order_release)",
            "y = 1",
            "7:3",
            "`y` is the address of a location here",
        ),
        (
            "atomic_store_explicit(y, 1, memory_order_release)",
            "while (1) { }",
            "7:3",
            "this depends on nothing",
        ),
        (
            "atomic_store_explicit(y, 1, memory_order_release)",
            "if (1) { }",
            "7:3",
            "this depends on nothing",
        ),
        (
            "y, 1,",
            "y, 1 && *x,",
            "7:30",
            "the access after `&&` depends on the operand before it",
        ),
        ("int r1 =", "int r0 =", "12:7", "`r0` is declared already"),
        ("int r1 =", "r2 =", "12:3", "there is no variable `r2`"),
        (
            "memory_order_relaxed);\n}",
            "memory_order_relaxed)\n}",
            "13:1",
            "`;` is expected here",
        ),
        ("1:r1=0", "1:r9=0", "15:21", "there is no variable `r9`"),
        ("y, 1,", "y, 1 % 2,", "7:30", "`%` is not supported"),
        ("{}", "{ x y z = 1.5; }", "2:11", "`1.5` is no number"),
        (
            "{}",
            "{ x = 1; int x = 2; }",
            "2:10",
            "this location has a first value already",
        ),
        ("C MP", "LISA MP", "1:1", "`LISA` is not an architecture"),
    ];
    let mut failures: Vec<String> = Vec::new();
    for (from, to, place, expected) in faults {
        let text = MP.replace(from, to);
        assert_ne!(text, MP, "{from}");
        match read(&text) {
            Ok(_) => failures.push(format!("`{to}` is read")),
            Err(error) => {
                let rendered = error.render("mp.litmus", &text, false);
                let has_position = rendered.contains(&format!("mp.litmus:{place}\n"));
                if !has_position || !error.message.contains(expected) {
                    failures.push(format!("`{to}`, {place}: {expected}\n{rendered}"));
                }
            }
        }
    }
    let weak = MP.replace(
        "atomic_load_explicit(y,",
        "atomic_compare_exchange_weak(y, &r0,",
    );
    let error = read(&weak).unwrap_err();
    assert!(
        error.help[0].contains("may fail for no reason"),
        "{error:?}"
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Tests with parts removed, repeated, moved or deeply nested are parsed or rejected without a panic.
#[test]
fn mutated_texts_never_make_the_reader_panic() {
    let bytes = MP.as_bytes();
    for begin in 0..bytes.len() {
        for length in [1, 2, 7, 40] {
            let end = (begin + length).min(bytes.len());
            let out = [&bytes[..begin], &bytes[end..]].concat();
            let twice = [&bytes[..end], &bytes[begin..]].concat();
            let moved = [&bytes[end..], &bytes[..end]].concat();
            for text in [out, twice, moved] {
                let text = String::from_utf8(text).unwrap();
                if let Err(error) = read(&text) {
                    assert!(!error.render("t", &text, false).is_empty());
                }
            }
        }
    }
    for deep in [
        "(",
        "-",
        "!",
        "{",
        "if (r0) ",
        "void ",
        "if (r0) {} else ",
        "atomic_load(",
        "1+",
    ] {
        let deep = deep.repeat(10_000);
        for text in [
            MP.replace("int r1 = ", &format!("int r1 = {deep}")),
            MP.replace("int r1 = ", &format!("{deep} int r1 = ")),
            MP.replace("P1 (", &format!("{deep} P1 (")),
        ] {
            let _ = read(&text);
        }
    }
}
