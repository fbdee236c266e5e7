//! Reader for tests in the format of the herd tools.

use cohkit_litmus::axioms::{self, Model};
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::executions;
use cohkit_litmus::herd::read;
use cohkit_litmus::models::{self, outcomes, outcomes_within};
use cohkit_litmus::print::print;
use cohkit_litmus::program::Program;
use std::collections::BTreeSet;

/// Store buffering, in Intel syntax.
const SB: &str = "\
AArch64 SB
\"PodWR Fre PodWR Fre\"
(* Both write, then read what the other writes. *)
{
0:X1=x; 0:X3=y;
1:X1=y; 1:X3=x;
}
 P0          | P1          ;
 MOV W0,#1   | MOV W0,#1   ;
 STR W0,[X1] | STR W0,[X1] ;
 LDR W2,[X3] | LDR W2,[X3] ;
exists (0:X2=0 /\\ 1:X2=0)
";

/// The condition, and the fences and orders between the accesses, decide the verdict.
#[test]
fn condition_is_read_from_the_file() {
    let test = read(SB).unwrap();
    assert_eq!((test.name.as_str(), test.threads.len()), ("SB", 2));
    assert!(!test.is_satisfied(&outcomes(&test, CoreKind::InOrder)));
    assert!(test.is_satisfied(&outcomes(&test, CoreKind::StoreBuffer)));
    // A full barrier forbids the outcome, a barrier of stores alone does not.
    let barrier = |kind: &str| {
        let row = format!("DMB {kind} | DMB {kind};\n LDR W2,[X3] |");
        let text = SB.replace("LDR W2,[X3] |", &row);
        let test = read(&text).unwrap_or_else(|e| panic!("{}", e.render("t", &text, false)));
        test.is_satisfied(&outcomes(&test, CoreKind::StoreBuffer))
    };
    assert!(!barrier("SY"));
    assert!(barrier("ST"));
    // An acquire after a release forbids it too, and so does an atomic access.
    let ordered = SB.replace("STR", "STLR").replace("LDR", "LDAR");
    let test = read(&ordered).unwrap();
    assert!(!test.is_satisfied(&outcomes(&test, CoreKind::StoreBuffer)));
    let swapped = SB.replace("STR W0,[X1]", "SWPAL W0,W4,[X1]");
    let test = read(&swapped).unwrap();
    assert!(!test.is_satisfied(&outcomes(&test, CoreKind::StoreBuffer)));
}

/// Each instruction and each form of initial value and condition has the value that its definition gives.
#[test]
fn supported_constructs_have_their_semantics() {
    let text = "\
AArch64 all
{ int x=5; uint64_t y; 0:X1=x; 0:X2=y; 0:X9=0x10; }
P0 ;
LDADD WZR,W3,[X1] ;
ADD W4,W3,#2 ;
SUB W5,W4,W3 ;
EOR W6,W5,W5 ;
CBNZ W6,L1 ;
STR W4,[X2] ;
L1: ORR W7,W5,#1 ;
AND W8,W7,#2 ;
forall (0:X3=5 /\\ 0:X4=7 /\\ 0:X5=2 /\\ (not x=4) /\\ [y]=7 /\\ 0:X9=16 /\\ 0:X7=3 /\\ (0:X8=2 \\/ 0:X8=3))
";
    let test = read(text).unwrap();
    assert!(test.is_satisfied(&outcomes(&test, CoreKind::InOrder)));
    let changed = text.replace("0:X4=7", "0:X4=8");
    assert!(!read(&changed)
        .unwrap()
        .is_satisfied(&outcomes(&test, CoreKind::InOrder)));
    let negated = text.replace("forall", "~exists");
    assert!(!read(&negated)
        .unwrap()
        .is_satisfied(&outcomes(&test, CoreKind::InOrder)));
}

/// Other line endings, blanks in the condition, and types before registers do not change the test.
#[test]
fn layout_does_not_change_a_test() {
    let original = read(SB).unwrap();
    // Compare by name: register numbers may differ.
    let named_outcomes = |test: &Program| {
        let outcomes = outcomes(test, CoreKind::StoreBuffer).into_iter();
        let outcomes = outcomes.map(|end| (test.format_outcome(&end), test.holds(&end)));
        outcomes.collect::<BTreeSet<_>>()
    };
    for (from, to) in [
        ("\n", "\r\n"),
        ("exists (", "exists\r\n("),
        ("=0 /\\", " = 0 /\\"),
        ("=0)", "=\t0 )"),
        ("0:X1=x;", "int64_t 0:X2; uint64_t 1:X2; int x; 0:X1=x;"),
        ("0:X1=x;", "int *0:X1=x;"),
    ] {
        let text = SB.replace(from, to);
        assert_ne!(text, SB, "{from}");
        let test = read(&text).unwrap_or_else(|e| panic!("{}", e.render("t", &text, false)));
        assert_eq!(named_outcomes(&test), named_outcomes(&original), "{to}");
    }
}

/// A branch on a loaded value orders later writes. It orders later reads only with a fence of instruction fetches in
/// between.
#[test]
fn branch_and_instruction_fence_order_later_reads() {
    let test = |between: &str| {
        let text = format!(
            "AArch64 MP\n{{ 0:X1=x; 0:X3=y; 1:X1=y; 1:X3=x; }}\n P0 | P1 ;\n MOV W0,#1 | LDR W0,[X1] ;\n \
             STR W0,[X1] | {between} ;\n DMB ST | LDR W2,[X3] ;\n STR W0,[X3] | ;\nexists (1:X0=1 /\\ 1:X2=0)\n"
        );
        read(&text).unwrap_or_else(|e| panic!("{}", e.render("t", &text, false)))
    };
    for (between, allowed) in [
        ("CBNZ W0,L ;\n | L: ISB", false),
        ("CBNZ W0,L ;\n | L: NOP", true),
        ("ISB", true),
        ("ISB ;\n | CBNZ W0,L ;\n | L: NOP", true),
        ("CBZ W0,L ;\n | ISB ;\n | L: NOP", false),
        ("CBZ W5,L ;\n | L: ISB", true),
        ("DMB LD", false),
    ] {
        let program = test(between);
        let outcomes = axioms::outcomes(&program, Model::Rc).unwrap();
        assert_eq!(program.is_satisfied(&outcomes), allowed, "{between}");
        // `ISB` is not a memory fence: stores may remain in the store buffer.
        assert_eq!(
            axioms::outcomes(&program, Model::Tso).unwrap(),
            models::outcomes(&program, CoreKind::StoreBuffer),
            "{between}"
        );
        let printed = print(&program).unwrap();
        assert_eq!(
            axioms::outcomes(&read(&printed).unwrap(), Model::Rc).unwrap(),
            outcomes
        );
    }
    let buffered = SB.replace("LDR W2,[X3] |", "ISB | ISB;\n LDR W2,[X3] |");
    let test = read(&buffered).unwrap();
    assert!(test.is_satisfied(&outcomes(&test, CoreKind::StoreBuffer)));
}

/// Size limits are reported before memory runs out. Eight threads that write and read have millions of states, and a
/// thread with many reads has millions of paths.
#[test]
fn oversized_tests_are_rejected_before_memory_runs_out() {
    let test = read(SB).unwrap();
    let outcomes = outcomes(&test, CoreKind::StoreBuffer);
    assert_eq!(
        outcomes_within(&test, CoreKind::StoreBuffer, 100),
        Some(outcomes)
    );
    assert_eq!(outcomes_within(&test, CoreKind::StoreBuffer, 10), None);
    let reads = " | LDR W5,[X1] ;\n".repeat(50);
    let text = SB.replace("exists", &format!("{reads}exists"));
    let error = axioms::outcomes(&read(&text).unwrap(), Model::Rc).unwrap_err();
    assert_eq!(error, "SB has too many executions to examine each");
}

/// Errors with their line, column and message.
#[test]
fn syntax_errors_have_positions() {
    let faults = [
        (
            "AArch64 SB",
            "MIPS SB",
            "1:1",
            "`MIPS` is not an architecture",
        ),
        ("AArch64 SB", "AArch64", "1:1", "a test begins with"),
        (
            "0:X1=x;",
            "2:X1=x;",
            "5:1",
            "there is no thread `2`; there are 2",
        ),
        ("0:X1=x;", "0:X31=x;", "5:3", "`X31` is no register"),
        (
            "0:X1=x;",
            "",
            "10:9",
            "`X1` holds the address of no location",
        ),
        (
            "LDR W2,[X3] |",
            "LDX W2,[X3] |",
            "11:2",
            "`LDX` is not a supported instruction",
        ),
        (
            "LDR W2,[X3] |",
            "LDR W2 |",
            "11:2",
            "`LDR` takes 2 operands, and here are 1",
        ),
        (
            "LDR W2,[X3] |",
            "LDR W2,[X3,W4,SXTW #2] |",
            "11:16",
            "`SXTW #2` is not supported",
        ),
        (
            "LDR W2,[X3] |",
            "LDR W2,[X3,#4] |",
            "11:9",
            "this is the address of no location",
        ),
        (
            "LDR W2,[X3] |",
            "LDRB W2,[X3] |",
            "11:2",
            "`LDRB` is not a supported instruction",
        ),
        (
            "LDR W2,[X3] |",
            "CBZ W2,end |",
            "11:9",
            "there is no label `end`",
        ),
        (
            "MOV W0,#1   |",
            "MOV W0,#one |",
            "9:10",
            "`one` is no number",
        ),
        (" | P1 ", " | P2 ", "8:16", "`P1` is expected here"),
        (
            "STR W0,[X1] | STR W0,[X1] ;",
            "STR W0,[X1] ;",
            "10:2",
            "1 column, and 2 threads",
        ),
        ("0:X2=0", "0:X2", "12:9", "a value is expected"),
        ("0:X2=0", "0:X2 => 0", "12:9", "a value is expected"),
        ("0:X2=0", "0:X2!=", "12:16", "`` is no number"),
        ("0:X2=0", "0:X2=", "12:15", "`` is no number"),
        ("0:X2=0", "z=0", "12:9", "there is no location `z`"),
        ("0:X1=x;", "0:X1;", "5:1", "a register has a first value"),
        (
            "0:X1=x;",
            "int x[2]={1,1}; 0:X1=x;",
            "5:10",
            "a list of values is not supported",
        ),
        (
            "1:X2=0)",
            "1:X2=0",
            "12:8",
            "this parenthesis is not closed",
        ),
        ("1:X2=0)", "1:X2=0) more", "12:27", "nothing should follow"),
        ("exists (", "filter (", "12:1", "a filter needs a condition"),
        (
            "read what the other writes. *)",
            "",
            "3:1",
            "this comment has no end",
        ),
        ("}\n", "\n", "4:1", "this block has no end"),
        // Repeated initial values are rejected: one of them would have no effect.
        (
            "0:X1=x;",
            "0:X1=x; 0:W1=y;",
            "5:9",
            "this register has a first value already",
        ),
        (
            "0:X1=x;",
            "x=1; int x=2; 0:X1=x;",
            "5:6",
            "this location has a first value already",
        ),
        (
            "LDR W2,[X3] |",
            "LDR W2,[X1,W4,SXTW] | ;\n ADD X5,X3,X2 | ;\n LDR W6,[X5] |",
            "13:9",
            "this may be the address of no location",
        ),
    ];
    let mut failures: Vec<String> = Vec::new();
    for (from, to, place, expected) in faults {
        let text = SB.replace(from, to);
        assert_ne!(text, SB, "{from}");
        let error = read(&text).expect_err(to);
        let rendered = error.render("sb.litmus", &text, false);
        let has_position = rendered.contains(&format!("sb.litmus:{place}\n"));
        if !has_position || !error.message.contains(expected) {
            failures.push(format!("`{to}`, {place}: {expected}\n{rendered}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Reads the files of a folder of `litmus`, sorted by name.
fn folder(name: &str) -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus");
    let files = std::fs::read_dir(folder.join(name)).unwrap();
    let file = |entry: std::fs::DirEntry| {
        let path = entry.path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_string();
        (name, std::fs::read_to_string(entry.path()).unwrap())
    };
    let mut tests: Vec<(String, String)> = files.map(|entry| file(entry.unwrap())).collect();
    tests.sort();
    tests
}

/// Tests of all dialects with parts removed, repeated or moved are parsed or rejected without a panic.
#[test]
fn mutated_texts_never_make_the_reader_panic() {
    let mut texts = vec![("SB".to_string(), SB.to_string())];
    texts.extend(folder("dialects"));
    for (name, text) in texts {
        let is_exhaustive = name == "SB";
        let bytes = text.as_bytes();
        // A sample suffices for the other tests, because there are many.
        let (step, lengths) = if is_exhaustive {
            (1, &[1, 2, 7, 40][..])
        } else {
            (3, &[4][..])
        };
        for begin in (0..bytes.len()).step_by(step) {
            for length in lengths {
                let end = (begin + length).min(bytes.len());
                let out = [&bytes[..begin], &bytes[end..]].concat();
                let twice = [&bytes[..end], &bytes[begin..]].concat();
                let moved = [&bytes[end..], &bytes[..end]].concat();
                for text in [out, twice, moved] {
                    let text = String::from_utf8(text).unwrap();
                    match read(&text) {
                        Err(error) => assert!(!error.render("t", &text, false).is_empty()),
                        // Printing may fail: the test can be too large, or have no equivalent in AArch64.
                        Ok(test) => _ = print(&test),
                    }
                }
            }
        }
    }
    for part in [
        "x=1 /\\ ",
        "x=1 => ",
        "x=1 \\/ ",
        "not ",
        "(",
        "locations [x;] ",
    ] {
        let text = SB.replace("exists (", &format!("exists ({}", part.repeat(50_000)));
        assert!(read(&text).is_err(), "{part}");
    }
    let filters = SB.replace(
        "exists (",
        &format!("{} exists (", "locations [x;]\n".repeat(50_000)),
    );
    assert!(read(&filters).is_ok());
}

/// Returns the outcomes of a test under a model, formatted.
fn formatted_outcomes(test: &Program, model: Model) -> BTreeSet<String> {
    let outcomes = axioms::allowed(test, model).unwrap();
    outcomes
        .iter()
        .map(|outcome| test.format_outcome(outcome))
        .collect()
}

/// Reads a test that has no errors.
fn parse_test(text: &str) -> Program {
    read(text).unwrap_or_else(|e| panic!("{}", e.render("t", text, false)))
}

/// Intel syntax has the destination first, AT&T syntax last.
#[test]
fn both_orders_of_operands_of_x86_are_the_same_test() {
    let intel = "\
X86 both
{ x=0; y=3; 1:ESI=y; }
 P0             | P1            ;
 MOV [x],$1     | MOV EAX,[ESI] ;
 MOV ECX,$2     | MOV EBX,EAX   ;
 XCHG [y],ECX   | SUB EBX,$1    ;
 MOV EDX,[y]    | CMP EBX,$1    ;
 JMP L          | JNE M         ;
 MOV [x],$9     | MOV EDX,[x]   ;
 L:             | M:            ;
exists (0:ECX=3 /\\ 0:EDX=2 /\\ 1:EAX=2 /\\ 1:EBX=1 /\\ 1:EDX=1 /\\ x=1 /\\ y=2)
";
    let att = "\
X86_64 both
{ x=0; y=3; 1:rsi=y; }
 P0              | P1               ;
 movl $1,x(%rip) | movl (%rsi),%eax ;
 movl $2,%ecx    | movl %eax,%ebx   ;
 xchgl %ecx,(y)  | subl $1,%ebx     ;
 movq (y),%rdx   | cmpl $1,%ebx     ;
 ret             | jne M            ;
 movl $9,(x)     | movl (x),%edx    ;
 nop             | M: endbr64       ;
exists (0:ecx=3 /\\ 0:edx=2 /\\ 1:eax=2 /\\ 1:ebx=1 /\\ 1:rdx=1 /\\ x=1 /\\ y=2)
";
    let tests = [intel, att].map(parse_test);
    let [intel, att] = tests
        .each_ref()
        .map(|test| formatted_outcomes(test, Model::Tso));
    assert_eq!(intel, att);
    let outcomes = axioms::allowed(&tests[1], Model::Tso).unwrap();
    assert!(tests[1].is_satisfied(&outcomes));
}

/// Executions that the filter excludes have no outcome, with the operational and with the axiomatic models.
#[test]
fn filters_exclude_executions_from_the_outcomes() {
    let condition = "exists (0:X2=0 /\\ 1:X2=0)";
    let with_filter = "locations [1:X2;]\nfilter (0:X2=1)\nforall (0:X2=1)";
    let filtered = parse_test(&SB.replace(condition, with_filter));
    assert_eq!(formatted_outcomes(&filtered, Model::Armv8).len(), 2);
    for (model, count) in [(Model::Sc, 2), (Model::Tso, 2), (Model::Rc, 2)] {
        let outcomes = axioms::outcomes(&filtered, model).unwrap();
        assert_eq!(outcomes.len(), count, "{model}");
        assert_eq!(
            axioms::allowed(&filtered, model).unwrap(),
            outcomes,
            "{model}"
        );
        assert!(
            outcomes.iter().all(|outcome| filtered.holds(outcome)),
            "{model}"
        );
    }
}

/// A waiting loop has the outcomes of its unrolling to three iterations, without the executions that need a fourth.
#[test]
fn waiting_loop_equals_its_unrolling() {
    let test = |rows: &str, filter: &str| {
        parse_test(&format!(
            "AArch64 MP\n{{ 0:X1=x; 0:X3=y; 1:X1=y; 1:X3=x; 2:X1=y; 2:X3=x; }}\n P0 | P1 | P2 ;\n MOV W0,#1 | | MOV W0,#2 ;\n \
             STR W0,[X3] | | STR W0,[X3] ;\n STR W0,[X1] | | ;\n{rows}{filter}exists (1:X2=1 /\\ 1:X4=0)\n"
        ))
    };
    for load in ["LDR W0,[X1]", "LDAR W0,[X1]"] {
        let later_loads = "| LDR W2,[X3] | ;\n | LDR W4,[X3] | ;\n";
        let looped = test(
            &format!(" | L: {load} | ;\n | CBZ W0,L | ;\n {later_loads}"),
            "",
        );
        let round = format!(" | {load} | ;\n | CBNZ W0,M | ;\n");
        let rounds = round.repeat(3);
        let rounds = test(
            &format!("{rounds} | M: | ;\n {later_loads}"),
            "filter (1:X0=1)\n",
        );
        for model in [Model::Sc, Model::Tso, Model::Rc, Model::Armv8] {
            assert_eq!(
                formatted_outcomes(&looped, model),
                formatted_outcomes(&rounds, model),
                "{load}, {model}"
            );
        }
    }
    // A loop that stores, or passes a value to its next iteration, is not a waiting loop.
    for round in [
        "ADD W5,W5,#1",
        "LDR W0,[X1],#4",
        "STR W0,[X3]",
        "SWP W6,W7,[X3]",
        "CBZ W6,N ;\n | MOV W5,#1 | ;\n | N:",
    ] {
        let text = format!(
            "AArch64 wait\n{{ 0:X1=y; 1:X1=y; 1:X3=x; }}\n P0 | P1 ;\n | L: LDR W0,[X1] ;\n | {round} ;\n | CBZ W0,L ;\nexists (1:X0=1)\n"
        );
        let text = text.replace("| ;", ";");
        let error = read(&text).expect_err(round);
        assert!(error.message.contains("does more than wait"), "{error:?}");
    }
    // A loop may repeat a failed store-conditional, but not a successful one.
    let retry = |branch: &str| {
        format!(
            "RISCV retry\n{{ 0:x5=x; }}\n P0 ;\n L: lr.w x6,(x5) ;\n sc.w x7,x6,(x5) ;\n {branch} x7,L ;\nexists (x=0)\n"
        )
    };
    assert!(read(&retry("bnez")).is_ok());
    assert!(read(&retry("beqz")).is_err());
}

/// A cycle of read-side critical sections and grace periods is forbidden if and only if it has at least as many grace
/// periods as sections.
#[test]
fn grace_periods_forbid_cycles_with_no_more_critical_sections() {
    let thread = |number: usize, kind: char, threads: usize| {
        let (read, write) = (number, (number + 1) % threads);
        let (load, store) = (
            format!("int r0 = READ_ONCE(*x{read});"),
            format!("WRITE_ONCE(*x{write}, 1);"),
        );
        let body = match kind {
            'G' => format!("{load} synchronize_rcu(); {store}"),
            'R' => format!("rcu_read_lock(); {load} {store} rcu_read_unlock();"),
            'N' => format!(
                "rcu_read_lock(); rcu_read_lock(); {load} rcu_read_unlock(); {store} rcu_read_unlock();"
            ),
            'T' => format!(
                "rcu_read_lock(); {load} rcu_read_unlock(); rcu_read_lock(); {store} rcu_read_unlock();"
            ),
            'A' => format!("rcu_read_lock(); {store} rcu_read_unlock(); {load}"),
            _ => format!("{load} {store}"),
        };
        format!("P{number} (int *x{read}, int *x{write}) {{ {body} }}\n")
    };
    for (threads, allowed) in [
        ("GR", false),
        ("GN", false),
        ("GG", false),
        ("GRR", true),
        ("GGR", false),
        ("GGRR", false),
        ("GRGR", false),
        // The order covers accesses of the thread before the end of its critical section, but not later ones.
        ("GT", false),
        ("GA", true),
        ("GP", true),
        ("RR", true),
    ] {
        let count = threads.len();
        let kinds = threads.chars().enumerate();
        let code: String = kinds
            .map(|(number, kind)| thread(number, kind, count))
            .collect();
        let claims = (0..count).map(|number| format!("{number}:r0=1"));
        let claims: Vec<String> = claims.collect();
        let test = parse_test(&format!(
            "C {threads}\n{{ }}\n{code}exists ({})\n",
            claims.join(" /\\ ")
        ));
        for model in [Model::Armv8, Model::RiscV, Model::Rc] {
            let outcomes = axioms::allowed(&test, model).unwrap();
            assert_eq!(test.is_satisfied(&outcomes), allowed, "{threads}, {model}");
        }
        let outcomes = axioms::allowed(&test, Model::Sc).unwrap();
        assert_eq!(test.is_satisfied(&outcomes), threads == "GA", "{threads}");
    }
}

/// The coherent candidates, enumerated location by location, have the same allowed outcomes as all candidates.
#[test]
fn coherent_candidates_have_all_allowed_outcomes() {
    let shapes = cohkit_litmus::cycles::classic().into_iter();
    let mut tests: Vec<Program> = shapes.take(40).collect();
    tests.extend(folder("dialects").iter().map(|(_, text)| parse_test(text)));
    tests.retain(|test| {
        let code = test.threads.iter().flat_map(|thread| &thread.code);
        code.filter(|instruction| instruction.address().is_some())
            .count()
            <= 6
    });
    let mut compared = 0;
    for test in tests {
        for model in [Model::Tso, Model::Armv8, Model::RiscV] {
            let mut outcomes = BTreeSet::new();
            let result = executions::for_each(&test, &mut |execution| {
                if axioms::allows(model, execution) {
                    outcomes.extend(execution.outcome(&test));
                }
            });
            if result.is_ok() {
                assert_eq!(
                    axioms::outcomes(&test, model).unwrap(),
                    outcomes,
                    "{}, {model}",
                    test.name
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

/// Tests in the dialects of public suites, with their verdicts under the model of their architecture.
#[test]
fn dialects_of_public_suites_have_their_verdicts() {
    let verdicts = [
        ("arm", Model::Armv8, false),
        ("blanks", Model::Sc, false),
        ("c-expected", Model::Armv8, true),
        ("cmp", Model::Armv8, false),
        ("exclusive", Model::Armv8, true),
        ("filter", Model::Armv8, true),
        ("implies", Model::Sc, true),
        ("indexed", Model::Armv8, false),
        ("kernel", Model::Armv8, false),
        ("kernel-atomics", Model::Sc, true),
        ("kernel-lock", Model::Armv8, false),
        ("kernel-pointer", Model::Armv8, false),
        ("kernel-rcu", Model::Armv8, false),
        ("kernel-trylock", Model::Armv8, true),
        ("kernel-unless", Model::Armv8, true),
        ("kernel-wait", Model::Armv8, false),
        ("own-writes-in-order", Model::Rc, false),
        ("plain", Model::Armv8, false),
        ("pointer", Model::Sc, true),
        ("power", Model::Rc, false),
        ("riscv", Model::RiscV, false),
        ("riscv-lock", Model::RiscV, false),
        ("riscv-reserved", Model::RiscV, true),
        ("riscv-retry", Model::RiscV, true),
        ("riscv-words", Model::RiscV, true),
        ("select", Model::Armv8, true),
        ("shift", Model::Sc, true),
        ("spin", Model::Armv8, false),
        ("unequal", Model::Sc, true),
        ("x86", Model::Tso, true),
        ("x86-att", Model::Tso, false),
        ("x86-locked", Model::Tso, false),
        ("zero", Model::Armv8, true),
    ];
    let files = folder("dialects");
    assert_eq!(files.len(), verdicts.len());
    let mut failures = Vec::new();
    for ((file, text), (name, model, is_satisfied)) in files.iter().zip(verdicts) {
        assert_eq!(file, name);
        let test = read(text).unwrap_or_else(|e| panic!("{}", e.render(file, text, false)));
        let outcomes = axioms::allowed(&test, model).unwrap();
        if test.is_satisfied(&outcomes) != is_satisfied {
            let outcomes: Vec<String> = outcomes
                .iter()
                .map(|outcome| test.format_outcome(outcome))
                .collect();
            failures.push(format!("{name}, {model}:\n  {}", outcomes.join("\n  ")));
        }
        // The operational and the axiomatic models agree.
        for (model, cores) in [
            (Model::Sc, CoreKind::InOrder),
            (Model::Tso, CoreKind::StoreBuffer),
        ] {
            if !test.requires_axiomatic_model() {
                let axioms = axioms::outcomes(&test, model).unwrap();
                assert_eq!(axioms, models::outcomes(&test, cores), "{name}, {model}");
            }
        }
        // The printed test has the same verdict.
        if let Ok(printed) = print(&test) {
            let reread =
                read(&printed).unwrap_or_else(|e| panic!("{}", e.render(file, &printed, false)));
            let count = |test: &Program| {
                axioms::outcomes(test, Model::Sc)
                    .unwrap()
                    .iter()
                    .filter(|outcome| test.holds(outcome))
                    .count()
            };
            assert_eq!(count(&test) > 0, count(&reread) > 0, "{printed}");
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Constructs that the herd tools support and this reader does not, in tests of our own. Each is rejected with its line
/// and reason.
#[test]
fn herd_only_constructs_are_rejected_with_their_line() {
    let expected = [
        ("astray", "5:9", "this may be the address of no location"),
        ("byte", "5:2", "`STRB` is not a supported instruction"),
        ("fault", "6:9", "a value is expected here"),
        (
            "grace",
            "5:3",
            "`synchronize_srcu` is no function that is supported here",
        ),
        (
            "lock",
            "4:3",
            "`write_lock` is no function that is supported here",
        ),
        (
            "loop",
            "7:24",
            "a loop that does more than wait is not supported",
        ),
        (
            "mips",
            "1:1",
            "`MIPS` is not an architecture that is supported here",
        ),
        ("narrow", "4:2", "`movb` is not a supported instruction"),
        ("pair", "5:2", "`STP` is not a supported instruction"),
        ("table", "2:3", "`[PTE(x)]` is no name of a location"),
        (
            "weak",
            "5:12",
            "`atomic_compare_exchange_weak_explicit` is no function",
        ),
        (
            "while",
            "5:3",
            "a loop that does more than wait is not supported",
        ),
    ];
    let files = folder("refused");
    assert_eq!(files.len(), expected.len());
    for ((_, text), (name, place, words)) in files.iter().zip(expected) {
        let error = read(text).expect_err(name).render(name, text, false);
        assert!(error.contains(&format!("{name}:{place}\n")), "{error}");
        assert!(error.contains(words), "{error}");
    }
}
