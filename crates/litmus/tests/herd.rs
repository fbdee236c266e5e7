//! Tests as the herd tools write them.

use cohkit_litmus::axioms::{self, Model};
use cohkit_litmus::cores::Cores;
use cohkit_litmus::herd::read;
use cohkit_litmus::models::{self, ends, ends_within};
use cohkit_litmus::print::print;
use cohkit_litmus::program::Program;
use std::collections::BTreeSet;

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

#[test]
fn the_condition_is_that_of_the_file() {
    let test = read(SB).unwrap();
    assert_eq!((test.name.as_str(), test.threads.len()), ("SB", 2));
    assert!(!test.fulfilled(&ends(&test, Cores::InOrder)));
    assert!(test.fulfilled(&ends(&test, Cores::StoreBuffer)));
    // A barrier takes it away, one for stores alone does not.
    let barrier = |kind: &str| {
        let row = format!("DMB {kind} | DMB {kind};\n LDR W2,[X3] |");
        let text = SB.replace("LDR W2,[X3] |", &row);
        let test = read(&text).unwrap_or_else(|e| panic!("{}", e.render("t", &text, false)));
        test.fulfilled(&ends(&test, Cores::StoreBuffer))
    };
    assert!(!barrier("SY"));
    assert!(barrier("ST"));
    // So do an acquire after a release, and an atomic access.
    let ordered = SB.replace("STR", "STLR").replace("LDR", "LDAR");
    let test = read(&ordered).unwrap();
    assert!(!test.fulfilled(&ends(&test, Cores::StoreBuffer)));
    let swapped = SB.replace("STR W0,[X1]", "SWPAL W0,W4,[X1]");
    let test = read(&swapped).unwrap();
    assert!(!test.fulfilled(&ends(&test, Cores::StoreBuffer)));
}

#[test]
fn all_that_is_read_means_what_it_says() {
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
    assert!(test.fulfilled(&ends(&test, Cores::InOrder)));
    let other = text.replace("0:X4=7", "0:X4=8");
    assert!(!read(&other)
        .unwrap()
        .fulfilled(&ends(&test, Cores::InOrder)));
    let none = text.replace("forall", "~exists");
    assert!(!read(&none).unwrap().fulfilled(&ends(&test, Cores::InOrder)));
}

/// The same test with ends of lines as other systems have them, with blanks in its condition, and with types before registers.
#[test]
fn what_differs_in_form_alone_is_the_same_test() {
    let right = read(SB).unwrap();
    // Registers may be numbered otherwise.
    let shown = |test: &Program| {
        let ends = ends(test, Cores::StoreBuffer).into_iter();
        let shown = ends.map(|end| (test.words(&end), test.holds(&end)));
        shown.collect::<BTreeSet<_>>()
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
        assert_eq!(shown(&test), shown(&right), "{to}");
    }
}

/// A branch on what was read keeps writes behind it, and reads only if instructions are fetched anew in between.
#[test]
fn reads_behind_a_branch_and_a_barrier_of_what_is_fetched_come_after_what_it_depends_on() {
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
        let ends = axioms::ends(&program, Model::Rc).unwrap();
        assert_eq!(program.fulfilled(&ends), allowed, "{between}");
        // It is no fence: stores may still wait in their buffer.
        assert_eq!(
            axioms::ends(&program, Model::Tso).unwrap(),
            models::ends(&program, Cores::StoreBuffer),
            "{between}"
        );
        let again = print(&program).unwrap();
        assert_eq!(
            axioms::ends(&read(&again).unwrap(), Model::Rc).unwrap(),
            ends
        );
    }
    let buffered = SB.replace("LDR W2,[X3] |", "ISB | ISB;\n LDR W2,[X3] |");
    let test = read(&buffered).unwrap();
    assert!(test.fulfilled(&ends(&test, Cores::StoreBuffer)));
}

/// Eight threads that write and read have millions of states, and one that reads often has as many ways.
#[test]
fn what_is_too_large_is_told_before_it_takes_all_memory() {
    let test = read(SB).unwrap();
    let all = ends(&test, Cores::StoreBuffer);
    assert_eq!(ends_within(&test, Cores::StoreBuffer, 100), Some(all));
    assert_eq!(ends_within(&test, Cores::StoreBuffer, 10), None);
    let reads = " | LDR W5,[X1] ;\n".repeat(50);
    let text = SB.replace("exists", &format!("{reads}exists"));
    let said = axioms::ends(&read(&text).unwrap(), Model::Rc).unwrap_err();
    assert_eq!(said, "SB has too many executions to look at each");
}

/// Each with the line and column it is told at, and what is said.
#[test]
fn what_is_wrong_has_a_place() {
    let faults = [
        (
            "AArch64 SB",
            "X86 SB",
            "1:1",
            "`X86` is not an architecture",
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
            "`LDX` is no instruction",
        ),
        (
            "LDR W2,[X3] |",
            "LDR W2 |",
            "11:2",
            "`LDR` takes 2 operands, and here are 1",
        ),
        (
            "LDR W2,[X3] |",
            "LDR W2,[X3,W4,SXTW] |",
            "11:9",
            "an address with an index",
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
        (" | P1 ", " | P2 ", "8:16", "`P1` should stand here"),
        (
            "STR W0,[X1] | STR W0,[X1] ;",
            "STR W0,[X1] ;",
            "10:2",
            "1 column, and 2 threads",
        ),
        ("0:X2=0", "0:X2", "12:9", "a value is asked for"),
        ("0:X2=0", "0:X2 => 0", "12:9", "a value is asked for"),
        ("0:X2=0", "0:X2==0", "12:14", "`=0` is no number"),
        ("0:X2=0", "0:X2=", "12:15", "`` is no number"),
        ("0:X2=0", "z=0", "12:9", "there is no location `z`"),
        ("0:X1=x;", "0:X1;", "5:1", "a register has a first value"),
        (
            "0:X1=x;",
            "int x[2]={1,1}; 0:X1=x;",
            "5:10",
            "a list of values is not read here",
        ),
        (
            "1:X2=0)",
            "1:X2=0",
            "12:8",
            "this parenthesis is not closed",
        ),
        ("1:X2=0)", "1:X2=0) more", "12:27", "nothing should follow"),
        ("exists (", "filter (", "12:1", "`filter` is not read here"),
        (
            "read what the other writes. *)",
            "",
            "3:1",
            "this comment has no end",
        ),
        ("}\n", "\n", "4:1", "this block has no end"),
        // The second was not heard, or the first.
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
        // An address was taken for the number 0: stored, branched on, asked for.
        (
            "STR W0,[X1] |",
            "STR X1,[X3] |",
            "10:6",
            "`X1` holds an address here",
        ),
        (
            "LDR W2,[X3] |",
            "CBZ X3,end |",
            "11:6",
            "`X3` holds an address here",
        ),
        ("0:X2=0", "0:X1=0", "12:11", "`X1` holds an address here"),
        (
            "LDR W2,[X3] |",
            "CBZ W0,L | ; MOV X3,#1 | ; L: ADD W2,W3,#0 |",
            "11:15",
            "an address is overwritten here after a branch",
        ),
    ];
    let mut wrong: Vec<String> = Vec::new();
    for (from, to, place, said) in faults {
        let text = SB.replace(from, to);
        assert_ne!(text, SB, "{from}");
        let error = read(&text).expect_err(to);
        let shown = error.render("sb.litmus", &text, false);
        let there = shown.contains(&format!("sb.litmus:{place}\n"));
        if !there || !error.message.contains(said) {
            wrong.push(format!("`{to}`, {place}: {said}\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Parts left out, doubled and put elsewhere: an answer each time, and never a panic.
#[test]
fn no_text_makes_the_reader_fail() {
    let bytes = SB.as_bytes();
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
}

/// What the herd tools read and we do not, in files of our own: each is refused at its line with the words for it.
#[test]
fn what_is_not_read_is_said_with_its_line() {
    let said = [
        ("byte", "5:2", "`STRB` is no instruction that is read here"),
        (
            "exclusive",
            "5:2",
            "`LDXR` is no instruction that is read here",
        ),
        ("fault", "6:9", "a value is asked for here"),
        ("implies", "6:16", "`=>` is not read in a condition"),
        (
            "indexed",
            "6:24",
            "an address with an index or an offset is not read here",
        ),
        (
            "kernel",
            "4:3",
            "`WRITE_ONCE` is no function that is read here",
        ),
        ("loop", "6:24", "a branch goes forward here"),
        ("pair", "5:2", "`STP` is no instruction that is read here"),
        (
            "plain",
            "4:3",
            "what is shared is accessed by atomic functions only",
        ),
        ("pointer", "2:10", "`x` is no number"),
        ("shift", "5:2", "`LSL` is no instruction that is read here"),
        ("table", "2:3", "`[PTE(x)]` is no name of a location"),
        (
            "weak",
            "5:12",
            "`atomic_compare_exchange_weak_explicit` is no function",
        ),
        ("while", "8:3", "`while` is not read here"),
        (
            "x86",
            "1:1",
            "`X86` is not an architecture that is read here",
        ),
    ];
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus/refused");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), said.len());
    for (name, place, words) in said {
        let text = std::fs::read_to_string(folder.join(format!("{name}.litmus"))).unwrap();
        let error = read(&text).expect_err(name).render(name, &text, false);
        assert!(error.contains(&format!("{name}:{place}\n")), "{error}");
        assert!(error.contains(words), "{error}");
    }
}
