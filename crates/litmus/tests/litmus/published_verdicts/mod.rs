//! Published verdicts of test suites and manuals on named tests, compared with those of `--model`. The tests are
//! rewritten, not copied.

use cohkit_litmus::axioms::{self, Model};
use cohkit_litmus::cycles::classic;
use cohkit_litmus::herd::read;
use cohkit_litmus::program::Program;

/// Published verdict: the outcome is allowed.
const ALLOWED: bool = true;
/// Published verdict: the outcome is forbidden.
const FORBIDDEN: bool = false;

/// A test: name, code of its threads (rows separated by `;`), condition, and published verdict.
type Published = (&'static str, &'static [&'static str], &'static str, bool);

/// Creates a test from the columns of its threads.
fn test(architecture: &str, initial: &str, threads: &[&str], condition: &str) -> Program {
    let columns: Vec<Vec<&str>> = threads
        .iter()
        .map(|thread| thread.split(';').map(str::trim).collect())
        .collect();
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = format!("{architecture} test\n{{ {initial} }}\n");
    let headers: Vec<String> = (0..threads.len())
        .map(|number| format!("P{number}"))
        .collect();
    text += &format!("{} ;\n", headers.join(" | "));
    for row in 0..rows {
        let cells = columns.iter().map(|column| *column.get(row).unwrap_or(&""));
        text += &format!("{} ;\n", cells.collect::<Vec<_>>().join(" | "));
    }
    text += &format!("exists ({condition})\n");
    read(&text).unwrap_or_else(|error| panic!("{}", error.render("test", &text, false)))
}

/// Returns the tests on which a model disagrees with the published verdict.
fn differences(
    model: Model,
    (architecture, initial): (&str, &str),
    published: &[Published],
) -> Vec<String> {
    let differs = |(name, threads, condition, allowed): &&Published| {
        let test = test(architecture, initial, threads, condition);
        let outcomes = axioms::outcomes(&test, model).unwrap();
        let is_allowed = outcomes.iter().any(|outcome| test.holds(outcome));
        (is_allowed != *allowed).then(|| {
            format!(
                "{name}: {}",
                if is_allowed { "allowed" } else { "forbidden" }
            )
        })
    };
    published
        .iter()
        .filter_map(|test_case| differs(&test_case))
        .collect()
}

/// Returns initial values: in all threads, the four named registers hold the addresses of x, y, z and w.
fn addresses(threads: usize, names: [&str; 4]) -> String {
    let thread_addresses = |thread: usize| {
        let pairs = names.iter().zip(["x", "y", "z", "w"]);
        let pairs =
            pairs.map(move |(register, location)| format!("{thread}:{register}={location};"));
        pairs.collect::<String>()
    };
    (0..threads).map(thread_addresses).collect()
}

/// Thread that stores 1 to x.
const STORE_X: &str = "MOV W0,#1; STR W0,[X1]";

/// Compares `--model armv8` with the verdicts of Armv8's model.
#[test]
fn armv8_matches_published_verdicts() {
    const MP_DMB: &str = "MOV W0,#1; STR W0,[X1]; DMB SY; MOV W2,#1; STR W2,[X3]";
    const MP_PO: &str = "MOV W0,#1; STR W0,[X1]; MOV W2,#1; STR W2,[X3]";
    const MP_REL: &str = "MOV W0,#1; STR W0,[X1]; MOV W2,#1; STLR W2,[X3]";
    const MP: &str = "1:X0=1 /\\ 1:X2=0";
    const SB_DMB: &str = "MOV W0,#1; STR W0,[X1]; DMB SY; LDR W2,[X3]";
    const LB_DMB: &str = "LDR W0,[X1]; DMB SY; MOV W2,#1; STR W2,[X3]";
    const LB_REL: &str = "LDR W0,[X1]; MOV W2,#1; STLR W2,[X3]";
    const LB: &str = "0:X0=1 /\\ 1:X0=1";
    let two_threads: &[Published] = &[
        ("CoRR", &[STORE_X, "LDR W0,[X1]; LDR W2,[X1]"], MP, FORBIDDEN),
        ("CoRW1", &["LDR W0,[X1]; MOV W2,#1; STR W2,[X1]", ""], "0:X0=1", FORBIDDEN),
        ("CoWR", &["MOV W0,#1; STR W0,[X1]; LDR W2,[X1]", "MOV W0,#2; STR W0,[X1]"], "x=1 /\\ 0:X2=2 /\\ 0:X0=7", FORBIDDEN),
        ("CoWW", &["MOV W0,#1; STR W0,[X1]; MOV W2,#2; STR W2,[X1]", ""], "x=1", FORBIDDEN),
        ("MP", &[MP_PO, "LDR W0,[X3]; LDR W2,[X1]"], MP, ALLOWED),
        ("MP+dmb.sys", &[MP_DMB, "LDR W0,[X3]; DMB SY; LDR W2,[X1]"], MP, FORBIDDEN),
        ("MP+dmb.sy+po", &[MP_DMB, "LDR W0,[X3]; LDR W2,[X1]"], MP, ALLOWED),
        ("MP+po+dmb.sy", &[MP_PO, "LDR W0,[X3]; DMB SY; LDR W2,[X1]"], MP, ALLOWED),
        ("MP+dmb.sy+addr", &[MP_DMB, "LDR W0,[X3]; EOR W4,W0,W0; LDR W2,[X1,W4,SXTW]"], MP, FORBIDDEN),
        ("MP+dmb.sy+ctrl", &[MP_DMB, "LDR W0,[X3]; CBNZ W0,L; L: LDR W2,[X1]"], MP, ALLOWED),
        ("MP+dmb.sy+ctrlisb", &[MP_DMB, "LDR W0,[X3]; CBNZ W0,L; L: ISB; LDR W2,[X1]"], MP, FORBIDDEN),
        ("MP+rel+acq", &[MP_REL, "LDAR W0,[X3]; LDR W2,[X1]"], MP, FORBIDDEN),
        ("MP+rel+acqpc", &[MP_REL, "LDAPR W0,[X3]; LDR W2,[X1]"], MP, FORBIDDEN),
        ("MP+rel+SWPacq", &[MP_REL, "MOV W4,#2; SWPA W4,W0,[X3]; LDR W2,[X1]"], MP, FORBIDDEN),
        ("MP+rel+SWPacq-noret", &[MP_REL, "MOV W4,#2; SWPA W4,WZR,[X3]; LDR W2,[X1]"], "y=2 /\\ 1:X2=0", ALLOWED),
        ("MP+rel+SWP-dmb.ld", &[MP_REL, "MOV W4,#2; SWP W4,W0,[X3]; DMB LD; LDR W2,[X1]"], MP, FORBIDDEN),
        ("MP+rel+SWPnoret-dmb.ld", &[MP_REL, "MOV W4,#2; SWP W4,WZR,[X3]; DMB LD; LDR W2,[X1]"], "y=2 /\\ 1:X2=0", ALLOWED),
        ("MP+rel+LDADD-dmb.ld", &[MP_REL, "MOV W4,#1; LDADD W4,W0,[X3]; DMB LD; LDR W2,[X1]"], MP, FORBIDDEN),
        ("MP+rel+LDADDnoret-dmb.ld", &[MP_REL, "MOV W4,#1; STADD W4,[X3]; DMB LD; LDR W2,[X1]"], "y=2 /\\ 1:X2=0", ALLOWED),
        ("MP+rel+CAS-ok-MRs-addr", &[MP_REL, "MOV W0,#1; CAS W0,WZR,[X3]; EOR W4,W0,W0; LDR W2,[X1,W4,SXTW]"], MP, ALLOWED),
        ("MP+rel+CAS-ok-dmb.ld", &[MP_REL, "MOV W0,#1; CAS W0,WZR,[X3]; DMB LD; LDR W2,[X1]"], "y=0 /\\ 1:X0=1 /\\ 1:X2=0", FORBIDDEN),
        ("MP+rel+CAS-addr", &[MP_REL, "LDR W0,[X3]; EOR W4,W0,W0; CAS W4,W6,[X5]; LDR W8,[X5]; EOR W8,W8,W8; LDR W2,[X1,W8,SXTW]"], MP, ALLOWED),
        ("MP+rel+CAS-ok-bothRs-addr", &[MP_REL, "MOV W6,#5; LDR W0,[X3]; EOR W4,W0,W0; CAS W4,W6,[X5]; EOR W8,W4,W4; LDR W2,[X1,W8,SXTW]"], "1:X0=1 /\\ 1:X2=0 /\\ 1:X4=0 /\\ z=5", FORBIDDEN),
        ("MP+rel+addr-po-loc-addr", &[MP_REL, "LDR W0,[X3]; EOR W4,W0,W0; LDR W6,[X5,W4,SXTW]; LDR W8,[X5]; EOR W10,W8,W8; LDR W2,[X1,W10,SXTW]"], MP, ALLOWED),
        ("LB+rel+CAS-ok-RsM-addr", &[LB_REL, "LDR W0,[X3]; EOR W4,W0,W0; CAS W4,W6,[X5]; LDR W8,[X5]; EOR W8,W8,W8; MOV W10,#1; STR W10,[X1,W8,SXTW]"], LB, FORBIDDEN),
        ("LB+rel+CAS-ok-RtM-data", &[LB_REL, "LDR W0,[X3]; EOR W4,W0,W0; ADD W4,W4,#1; CAS W6,W4,[X1]"], LB, FORBIDDEN),
        ("LB+csel-data-lrs-acq+acq", &["LDR W0,[X1]; CMP W0,#1; CSEL W2,W4,W6,EQ; STR W2,[X5]; LDAR W8,[X5]; MOV W2,#1; STR W2,[X3]", "LDAR W0,[X3]; MOV W2,#1; STR W2,[X1]"], LB, FORBIDDEN),
        ("LB+rel+CAS-ok-MRs-addr", &[LB_REL, "MOV W0,#1; CAS W0,WZR,[X3]; EOR W4,W0,W0; MOV W6,#1; STR W6,[X1,W4,SXTW]"], LB, FORBIDDEN),
        ("LB+rel+STADD", &[LB_REL, "LDR W0,[X3]; ORR W4,W0,#1; STADD W4,[X1]"], LB, FORBIDDEN),
        ("LB+SWP-RsRt-addr+rel", &["LDR W0,[X1]; SWP W0,W4,[X5]; EOR W4,W4,W4; ADD W2,W4,#1; STR W2,[X3]", "LDR W0,[X3]; MOV W2,#1; STLR W2,[X1]"], LB, ALLOWED),
        ("LB+dmb.sy+data-amo.swp", &[LB_DMB, "LDR W0,[X3]; EOR W4,W0,W0; ADD W4,W4,#1; SWP W4,W6,[X1]"], LB, FORBIDDEN),
        ("SB+rfi-dmb.lds", &["MOV W0,#1; STR W0,[X1]; LDR W2,[X1]; DMB LD; LDR W4,[X3]", "MOV W0,#1; STR W0,[X3]; LDR W2,[X3]; DMB LD; LDR W4,[X1]"], "0:X2=1 /\\ 0:X4=0 /\\ 1:X2=1 /\\ 1:X4=0", ALLOWED),
        ("MP+rel+addr-lrs-acq", &[MP_REL, "LDR W0,[X3]; EOR W4,W0,W0; MOV W6,#1; STR W6,[X5,W4,SXTW]; LDAR W8,[X5]; LDR W2,[X1]"], MP, FORBIDDEN),
        ("MP+rel+data-lrs-acq", &[MP_REL, "LDR W0,[X3]; STR W0,[X5]; LDAR W8,[X5]; LDR W2,[X1]"], MP, FORBIDDEN),
        ("MP+rel+ctrl-lrs-acq", &[MP_REL, "LDR W0,[X3]; CBNZ W0,L; L: MOV W6,#1; STR W6,[X5]; LDAR W8,[X5]; LDR W2,[X1]"], MP, ALLOWED),
        ("MP+rel+rmw-lrs-acq", &[MP_REL, "MOV W6,#2; SWP W6,W0,[X3]; LDAR W8,[X3]; LDR W2,[X1]"], MP, FORBIDDEN),
        ("PPOCA", &[MP_DMB, "LDR W0,[X3]; CBNZ W0,L; L: MOV W4,#1; STR W4,[X5]; LDR W6,[X5]; EOR W8,W6,W6; LDR W2,[X1,W8,SXTW]"], MP, ALLOWED),
        ("PPODA", &[MP_DMB, "LDR W0,[X3]; EOR W4,W0,W0; ADD W4,W4,#1; STR W4,[X5]; LDR W6,[X5]; EOR W8,W6,W6; LDR W2,[X1,W8,SXTW]"], MP, FORBIDDEN),
        ("RSW", &[MP_DMB, "LDR W0,[X3]; EOR W4,W0,W0; LDR W6,[X5,W4,SXTW]; LDR W8,[X5]; EOR W10,W8,W8; LDR W2,[X1,W10,SXTW]"], MP, ALLOWED),
        ("SB", &["MOV W0,#1; STR W0,[X1]; LDR W2,[X3]", "MOV W0,#1; STR W0,[X3]; LDR W2,[X1]"], "0:X2=0 /\\ 1:X2=0", ALLOWED),
        ("SB+dmb.sys", &[SB_DMB, "MOV W0,#1; STR W0,[X3]; DMB SY; LDR W2,[X1]"], "0:X2=0 /\\ 1:X2=0", FORBIDDEN),
        ("SB+dmb.sy+po", &[SB_DMB, "MOV W0,#1; STR W0,[X3]; LDR W2,[X1]"], "0:X2=0 /\\ 1:X2=0", ALLOWED),
        ("SB+dmb.sy+rel-acq", &[SB_DMB, "MOV W0,#1; STLR W0,[X3]; LDAR W2,[X1]"], "0:X2=0 /\\ 1:X2=0", FORBIDDEN),
        ("SB+dmb.sy+rel-acqpc", &[SB_DMB, "MOV W0,#1; STLR W0,[X3]; LDAPR W2,[X1]"], "0:X2=0 /\\ 1:X2=0", ALLOWED),
        ("LB", &["LDR W0,[X1]; MOV W2,#1; STR W2,[X3]", "LDR W0,[X3]; MOV W2,#1; STR W2,[X1]"], LB, ALLOWED),
        ("LB+dmb.sys", &[LB_DMB, "LDR W0,[X3]; DMB SY; MOV W2,#1; STR W2,[X1]"], LB, FORBIDDEN),
        ("LB+dmb.sy+po", &[LB_DMB, "LDR W0,[X3]; MOV W2,#1; STR W2,[X1]"], LB, ALLOWED),
        ("LB+datas", &["LDR W0,[X1]; STR W0,[X3]", "LDR W0,[X3]; STR W0,[X1]"], LB, FORBIDDEN),
        ("LB+addrs", &["LDR W0,[X1]; EOR W4,W0,W0; MOV W2,#1; STR W2,[X3,W4,SXTW]", "LDR W0,[X3]; EOR W4,W0,W0; MOV W2,#1; STR W2,[X1,W4,SXTW]"], LB, FORBIDDEN),
        ("LB+ctrls", &["LDR W0,[X1]; CBNZ W0,L; L: MOV W2,#1; STR W2,[X3]", "LDR W0,[X3]; CBNZ W0,L; L: MOV W2,#1; STR W2,[X1]"], LB, FORBIDDEN),
        ("LB+rel+data-post", &[LB_REL, "LDR W0,[X3]; ORR W2,W0,#1; STR W2,[X1],#4"], LB, FORBIDDEN),
        ("LB+rel+BEQ", &[LB_REL, "LDR W0,[X3]; CMP X6,#0; MOV X8,#7; B.EQ over; MOV X8,X0; over: STR W8,[X1]"], "0:X0=7 /\\ 1:X0=1", ALLOWED),
        ("LB+rel+CSEL", &[LB_REL, "LDR W0,[X3]; CMP X6,#0; MOV X8,#7; CSEL X8,X8,X0,EQ; STR W8,[X1]"], "0:X0=7 /\\ 1:X0=1", ALLOWED),
        ("LB+CSEL4", &[LB_REL, "LDR W0,[X3]; CMP W0,#0; CSEL W0,W0,W0,EQ; MOV W4,#1; STR W4,[X1]"], LB, ALLOWED),
        ("LB+BEQ4", &[LB_REL, "LDR W0,[X3]; CMP W0,#0; B.EQ L; L: MOV W4,#1; STR W4,[X1]"], LB, FORBIDDEN),
        ("S", &["MOV W0,#2; STR W0,[X1]; MOV W2,#1; STR W2,[X3]", "LDR W0,[X3]; MOV W2,#1; STR W2,[X1]"], "x=2 /\\ 1:X0=1", ALLOWED),
        ("S+dmb.sy+po", &["MOV W0,#2; STR W0,[X1]; DMB SY; MOV W2,#1; STR W2,[X3]", "LDR W0,[X3]; MOV W2,#1; STR W2,[X1]"], "x=2 /\\ 1:X0=1", ALLOWED),
        ("S+dmb.sys", &["MOV W0,#2; STR W0,[X1]; DMB SY; MOV W2,#1; STR W2,[X3]", "LDR W0,[X3]; DMB SY; MOV W2,#1; STR W2,[X1]"], "x=2 /\\ 1:X0=1", FORBIDDEN),
        ("R", &[MP_PO, "MOV W0,#2; STR W0,[X3]; LDR W2,[X1]"], "y=2 /\\ 1:X2=0", ALLOWED),
        ("R+dmb.sys", &[MP_DMB, "MOV W0,#2; STR W0,[X3]; DMB SY; LDR W2,[X1]"], "y=2 /\\ 1:X2=0", FORBIDDEN),
        ("R+dmb.sy+po", &[MP_DMB, "MOV W0,#2; STR W0,[X3]; LDR W2,[X1]"], "y=2 /\\ 1:X2=0", ALLOWED),
        ("R+po+dmb.sy", &[MP_PO, "MOV W0,#2; STR W0,[X3]; DMB SY; LDR W2,[X1]"], "y=2 /\\ 1:X2=0", ALLOWED),
        ("2+2W", &["MOV W0,#2; STR W0,[X1]; MOV W2,#1; STR W2,[X3]", "MOV W0,#2; STR W0,[X3]; MOV W2,#1; STR W2,[X1]"], "x=2 /\\ y=2", ALLOWED),
        ("2+2W+dmb.sys", &["MOV W0,#2; STR W0,[X1]; DMB SY; MOV W2,#1; STR W2,[X3]", "MOV W0,#2; STR W0,[X3]; DMB SY; MOV W2,#1; STR W2,[X1]"], "x=2 /\\ y=2", FORBIDDEN),
        ("2+2W+dmb.sy+po", &["MOV W0,#2; STR W0,[X1]; DMB SY; MOV W2,#1; STR W2,[X3]", "MOV W0,#2; STR W0,[X3]; MOV W2,#1; STR W2,[X1]"], "x=2 /\\ y=2", ALLOWED),
        // A pair of load-reserved and store-conditional is atomic.
        ("ATOM", &["LDXR W0,[X1]; MOV W2,#1; STXR W4,W2,[X1]", "MOV W2,#2; STR W2,[X1]"], "0:X0=0 /\\ 0:X4=0 /\\ x=1 /\\ 1:X2=3", FORBIDDEN),
        ("lost update", &["LDXR W0,[X1]; ADD W2,W0,#1; STXR W4,W2,[X1]", "LDXR W0,[X1]; ADD W2,W0,#1; STXR W4,W2,[X1]"], "0:X4=0 /\\ 1:X4=0 /\\ x=1", FORBIDDEN),
        ("one fails", &["LDXR W0,[X1]; ADD W2,W0,#1; STXR W4,W2,[X1]", "LDXR W0,[X1]; ADD W2,W0,#1; STXR W4,W2,[X1]"], "0:X4=0 /\\ 1:X4=1 /\\ x=1", ALLOWED),
    ];
    let initial = addresses(2, ["X1", "X3", "X5", "X7"]);
    let mut disagreements = differences(Model::Armv8, ("AArch64", &initial), two_threads);
    let more_threads: &[Published] = &[
        ("WRC", &[STORE_X, "LDR W0,[X1]; MOV W2,#1; STR W2,[X3]", "LDR W0,[X3]; LDR W2,[X1]", ""], "1:X0=1 /\\ 2:X0=1 /\\ 2:X2=0", ALLOWED),
        ("WRC+addrs", &[STORE_X, "LDR W0,[X1]; EOR W4,W0,W0; MOV W2,#1; STR W2,[X3,W4,SXTW]", "LDR W0,[X3]; EOR W4,W0,W0; LDR W2,[X1,W4,SXTW]", ""], "1:X0=1 /\\ 2:X0=1 /\\ 2:X2=0", FORBIDDEN),
        ("RDW", &["MOV W0,#1; STR W0,[X1]; DMB SY; MOV W2,#1; STR W2,[X3]", "LDR W0,[X3]; EOR W4,W0,W0; LDR W6,[X5,W4,SXTW]; LDR W8,[X5]; EOR W10,W8,W8; LDR W2,[X1,W10,SXTW]", "MOV W0,#1; STR W0,[X5]", ""], "1:X0=1 /\\ 1:X6=0 /\\ 1:X8=1 /\\ 1:X2=0", FORBIDDEN),
        ("ISA2+dmb.sy+addrs", &["MOV W0,#1; STR W0,[X1]; DMB SY; MOV W2,#1; STR W2,[X3]", "LDR W0,[X3]; EOR W4,W0,W0; MOV W2,#1; STR W2,[X5,W4,SXTW]", "LDR W0,[X5]; EOR W4,W0,W0; LDR W2,[X1,W4,SXTW]", ""], "1:X0=1 /\\ 2:X0=1 /\\ 2:X2=0", FORBIDDEN),
        ("IRIW", &[STORE_X, "LDR W0,[X1]; LDR W2,[X3]", "MOV W0,#1; STR W0,[X3]", "LDR W0,[X3]; LDR W2,[X1]"], "1:X0=1 /\\ 1:X2=0 /\\ 3:X0=1 /\\ 3:X2=0", ALLOWED),
        ("IRIW+addrs", &[STORE_X, "LDR W0,[X1]; EOR W4,W0,W0; LDR W2,[X3,W4,SXTW]", "MOV W0,#1; STR W0,[X3]", "LDR W0,[X3]; EOR W4,W0,W0; LDR W2,[X1,W4,SXTW]"], "1:X0=1 /\\ 1:X2=0 /\\ 3:X0=1 /\\ 3:X2=0", FORBIDDEN),
    ];
    let initial = addresses(4, ["X1", "X3", "X5", "X7"]);
    disagreements.extend(differences(
        Model::Armv8,
        ("AArch64", &initial),
        more_threads,
    ));
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}

/// Compares `--model riscv` with the verdicts of RVWMO.
#[test]
fn risc_v_matches_published_verdicts() {
    const W_FENCE_W: &str = "li x5,1; sw x5,0(x6); fence w,w; sw x5,0(x7)";
    const MP: &str = "1:x5=1 /\\ 1:x8=0";
    const SB: &str = "0:x8=0 /\\ 1:x8=0";
    const LB: &str = "0:x5=1 /\\ 1:x5=1";
    let two_threads: &[Published] = &[
        ("MP", &["li x5,1; sw x5,0(x6); sw x5,0(x7)", "lw x5,0(x7); lw x8,0(x6)"], MP, ALLOWED),
        ("MP+fence.rw.rws", &["li x5,1; sw x5,0(x6); fence rw,rw; sw x5,0(x7)", "lw x5,0(x7); fence rw,rw; lw x8,0(x6)"], MP, FORBIDDEN),
        ("MP+fence.w.w+fence.r.r", &[W_FENCE_W, "lw x5,0(x7); fence r,r; lw x8,0(x6)"], MP, FORBIDDEN),
        ("MP+fence.r.r+fence.r.r", &["li x5,1; sw x5,0(x6); fence r,r; sw x5,0(x7)", "lw x5,0(x7); fence r,r; lw x8,0(x6)"], MP, ALLOWED),
        ("MP+fence.tsos", &["li x5,1; sw x5,0(x6); fence.tso; sw x5,0(x7)", "lw x5,0(x7); fence.tso; lw x8,0(x6)"], MP, FORBIDDEN),
        ("MP+fence.w.w+addr", &[W_FENCE_W, "lw x5,0(x7); xor x9,x5,x5; add x10,x6,x9; lw x8,0(x10)"], MP, FORBIDDEN),
        ("MP+fence.w.w+ctrl", &[W_FENCE_W, "lw x5,0(x7); bne x5,x0,L; L: lw x8,0(x6)"], MP, ALLOWED),
        ("MP+fence.w.w+ctrlfencei", &[W_FENCE_W, "lw x5,0(x7); bne x5,x0,L; L: fence.i; lw x8,0(x6)"], MP, ALLOWED),
        ("MP+rl+aq", &["li x5,1; sw x5,0(x6); amoswap.w.rl x0,x5,(x7)", "amoor.w.aq x5,x0,(x7); lw x8,0(x6)"], MP, FORBIDDEN),
        ("PPOCA", &[W_FENCE_W, "lw x5,0(x7); bne x5,x0,L; L: li x9,1; sw x9,0(x11); lw x10,0(x11); xor x12,x10,x10; add x13,x6,x12; lw x8,0(x13)"], MP, ALLOWED),
        ("PPODA", &[W_FENCE_W, "lw x5,0(x7); xor x9,x5,x5; ori x9,x9,1; sw x9,0(x11); lw x10,0(x11); xor x12,x10,x10; add x13,x6,x12; lw x8,0(x13)"], MP, FORBIDDEN),
        ("SB", &["li x5,1; sw x5,0(x6); lw x8,0(x7)", "li x5,1; sw x5,0(x7); lw x8,0(x6)"], SB, ALLOWED),
        ("SB+fence.rw.rws", &["li x5,1; sw x5,0(x6); fence rw,rw; lw x8,0(x7)", "li x5,1; sw x5,0(x7); fence rw,rw; lw x8,0(x6)"], SB, FORBIDDEN),
        ("SB+fence.w.rs", &["li x5,1; sw x5,0(x6); fence w,r; lw x8,0(x7)", "li x5,1; sw x5,0(x7); fence w,r; lw x8,0(x6)"], SB, FORBIDDEN),
        ("SB+fence.tsos", &["li x5,1; sw x5,0(x6); fence.tso; lw x8,0(x7)", "li x5,1; sw x5,0(x7); fence.tso; lw x8,0(x6)"], SB, ALLOWED),
        ("SB+rfi-addrs", &["li x5,1; sw x5,0(x6); lw x9,0(x6); xor x10,x9,x9; add x11,x7,x10; lw x8,0(x11)", "li x5,1; sw x5,0(x7); lw x9,0(x7); xor x10,x9,x9; add x11,x6,x10; lw x8,0(x11)"], SB, ALLOWED),
        ("SB+aqrls", &["li x5,1; amoswap.w.aq.rl x9,x5,(x6); amoor.w.aq.rl x8,x0,(x7)", "li x5,1; amoswap.w.aq.rl x9,x5,(x7); amoor.w.aq.rl x8,x0,(x6)"], SB, FORBIDDEN),
        ("LB", &["lw x5,0(x6); li x8,1; sw x8,0(x7)", "lw x5,0(x7); li x8,1; sw x8,0(x6)"], LB, ALLOWED),
        ("LB+fence.r.ws", &["lw x5,0(x6); fence r,w; li x8,1; sw x8,0(x7)", "lw x5,0(x7); fence r,w; li x8,1; sw x8,0(x6)"], LB, FORBIDDEN),
        ("LB+datas", &["lw x5,0(x6); sw x5,0(x7)", "lw x5,0(x7); sw x5,0(x6)"], LB, FORBIDDEN),
        ("LB+ctrls", &["lw x5,0(x6); bne x5,x0,L; L: li x8,1; sw x8,0(x7)", "lw x5,0(x7); bne x5,x0,L; L: li x8,1; sw x8,0(x6)"], LB, FORBIDDEN),
        ("2+2W", &["li x5,2; sw x5,0(x6); li x8,1; sw x8,0(x7)", "li x5,2; sw x5,0(x7); li x8,1; sw x8,0(x6)"], "x=2 /\\ y=2", ALLOWED),
        ("2+2W+fence.w.ws", &["li x5,2; sw x5,0(x6); fence w,w; li x8,1; sw x8,0(x7)", "li x5,2; sw x5,0(x7); fence w,w; li x8,1; sw x8,0(x6)"], "x=2 /\\ y=2", FORBIDDEN),
        ("lost update", &["lr.w x5,0(x6); addi x8,x5,1; sc.w x9,x8,0(x6)", "lr.w x5,0(x6); addi x8,x5,1; sc.w x9,x8,0(x6)"], "0:x9=0 /\\ 1:x9=0 /\\ x=1", FORBIDDEN),
    ];
    let initial = addresses(2, ["x6", "x7", "x11", "x12"]);
    let disagreements = differences(Model::RiscV, ("RISCV", &initial), two_threads);
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}

/// Compares `--model tso` with the verdicts of x86-TSO.
#[test]
fn x86_matches_published_tso_verdicts() {
    let two_threads: &[Published] = &[
        (
            "SB",
            &["MOV [x],$1; MOV EAX,[y]", "MOV [y],$1; MOV EAX,[x]"],
            "0:EAX=0 /\\ 1:EAX=0",
            ALLOWED,
        ),
        (
            "SB+mfences",
            &[
                "MOV [x],$1; MFENCE; MOV EAX,[y]",
                "MOV [y],$1; MFENCE; MOV EAX,[x]",
            ],
            "0:EAX=0 /\\ 1:EAX=0",
            FORBIDDEN,
        ),
        (
            "SB+rfi-pos",
            &[
                "MOV [x],$1; MOV EAX,[x]; MOV EBX,[y]",
                "MOV [y],$1; MOV EAX,[y]; MOV EBX,[x]",
            ],
            "0:EAX=1 /\\ 0:EBX=0 /\\ 1:EAX=1 /\\ 1:EBX=0",
            ALLOWED,
        ),
        (
            "MP",
            &["MOV [x],$1; MOV [y],$1", "MOV EAX,[y]; MOV EBX,[x]"],
            "1:EAX=1 /\\ 1:EBX=0",
            FORBIDDEN,
        ),
        (
            "LB",
            &["MOV EAX,[x]; MOV [y],$1", "MOV EAX,[y]; MOV [x],$1"],
            "0:EAX=1 /\\ 1:EAX=1",
            FORBIDDEN,
        ),
        (
            "R",
            &["MOV [x],$1; MOV [y],$1", "MOV [y],$2; MOV EAX,[x]"],
            "y=2 /\\ 1:EAX=0",
            ALLOWED,
        ),
        (
            "R+po+mfence",
            &["MOV [x],$1; MOV [y],$1", "MOV [y],$2; MFENCE; MOV EAX,[x]"],
            "y=2 /\\ 1:EAX=0",
            FORBIDDEN,
        ),
        (
            "R+mfence+rfi-po",
            &[
                "MOV [x],$1; MFENCE; MOV [y],$1",
                "MOV [y],$2; MOV EAX,[y]; MOV EBX,[x]",
            ],
            "y=2 /\\ 1:EAX=2 /\\ 1:EBX=0",
            ALLOWED,
        ),
        (
            "xadd",
            &[
                "MOV EAX,$1; LOCK XADD [x],EAX",
                "MOV EAX,$1; LOCK XADD [x],EAX",
            ],
            "0:EAX=0 /\\ 1:EAX=0",
            FORBIDDEN,
        ),
        ("inc", &["INC [x]", "INC [x]"], "x=1", ALLOWED),
        (
            "lock inc",
            &["LOCK INC [x]", "LOCK INC [x]"],
            "x=1",
            FORBIDDEN,
        ),
        (
            "cmpxchg",
            &[
                "MOV EAX,$0; MOV EBX,$1; LOCK CMPXCHG [x],EBX; JNE L; MOV ECX,$1; L:",
                "MOV EAX,$0; MOV EBX,$2; LOCK CMPXCHG [x],EBX; JNE L; MOV ECX,$1; L:",
            ],
            "0:ECX=1 /\\ 1:ECX=1",
            FORBIDDEN,
        ),
    ];
    let disagreements = differences(Model::Tso, ("X86", ""), two_threads);
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}

/// On the classic shapes, Armv8 allows no outcome that `rc` forbids. It allows fewer only on shapes with exchanges.
#[test]
fn armv8_and_rc_differ_as_documented() {
    let mut stricter = Vec::new();
    let shapes = classic()
        .into_iter()
        .filter(|shape| shape.threads.len() <= 3);
    for shape in shapes {
        let [armv8, rc] =
            [Model::Armv8, Model::Rc].map(|model| axioms::outcomes(&shape, model).unwrap());
        assert!(armv8.is_subset(&rc), "{}", shape.name);
        if armv8 != rc {
            stricter.push(shape.name);
        }
    }
    let has_swap = |name: &String| name.contains("swp");
    let without_swap: Vec<&String> = stricter.iter().filter(|name| !has_swap(name)).collect();
    assert!(without_swap.is_empty(), "{without_swap:?}");
    assert!(!stricter.is_empty());
}
