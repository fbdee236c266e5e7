//! Arrays in far memory and typed channels, which hide cache management from programs.

use crate::{compile, require, root, run_watched, try_compile};
use cohkit_nearmemory::{Evictions, Platform, RunOutcome};

const HOST: &str = "crates/nearmemory/tests/programs/arrays-host.c";
const CHANNEL: &str = "crates/nearmemory/tests/programs/arrays.c";

#[test]
fn array_operations_survive_evictions_without_races() {
    if !require::require("riscv-gcc") {
        return;
    }
    let (host, channel) = (compile("host", HOST, &[]), compile("channel", CHANNEL, &[]));
    for every in [None, Some(50)] {
        let evictions = every.map(|every| Evictions { every, seed: 1 });
        let ran = run_watched(
            &Platform::enzian(),
            &host,
            "",
            &[("arrays", &channel)],
            evictions,
        );
        assert_eq!(
            ran.happened,
            [RunOutcome::Exit(0)],
            "{every:?}: {}",
            ran.text
        );
        assert_eq!(ran.text, "all is right\n");
    }
}

#[test]
fn faults_of_the_array_layer_are_found() {
    if !require::require("riscv-gcc") {
        return;
    }
    let layer = std::fs::read_to_string(root().join("nearmemory/arrays.h")).expect("a source");
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("nearmemory");
    std::fs::create_dir(&place).expect("room");
    // Faults: the host does not clean its stores, or reads stale lines of a result; the core stores too little; or a
    // part is accessed beyond the end of an array.
    for (right, wrong) in [
        ("  nm_flush_all(in.far, in.room * in.size);\n", ""),
        ("  nm_flush_all(out->far, out->room * out->size);\n", ""),
        (
            "(writer->bytes + NM_LINE - 1) / NM_LINE;",
            "writer->bytes / NM_LINE;",
        ),
        (
            "reader->far + part * NM_PART_BYTES",
            "reader->far + part / 2 * NM_PART_BYTES",
        ),
    ] {
        assert_eq!(layer.matches(right).count(), 1, "{right}");
        std::fs::write(place.join("arrays.h"), layer.replace(right, wrong)).expect("room");
        let before = format!("-I{}", folder.path().display());
        let options = [
            "-iquote",
            folder.path().to_str().expect("a name"),
            before.as_str(),
        ];
        let (host, channel) = (
            compile("host", HOST, &options),
            compile("channel", CHANNEL, &options),
        );
        let ran = run_watched(
            &Platform::enzian(),
            &host,
            "",
            &[("arrays", &channel)],
            None,
        );
        let raced = ran
            .happened
            .iter()
            .any(|happened| matches!(happened, RunOutcome::Race(_)));
        assert!(
            raced || ran.text.contains("wrong: "),
            "{right}: {}",
            ran.text
        );
    }
}

#[test]
fn elements_across_two_parts_fail_to_compile() {
    if !require::require("riscv-gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("elements.c");
    let compiled = |bytes: u64, operation: &str| {
        let text = format!(
            "#include \"nearmemory/channel.h\"\n#include \"nearmemory/arrays.h\"\n\
             struct element {{ uint8_t bytes[{bytes}]; }};\n\
             static struct element same(struct element e) {{ return e; }}\n\
             static struct element of(uint8_t x) {{ return (struct element){{{{x}}}}; }}\n\
             static uint8_t first(struct element e) {{ return e.bytes[0]; }}\n\
             static int is_odd(struct element e) {{ return e.bytes[0] & 1; }}\n\
             static uint64_t sum(uint64_t value, struct element e) {{ return value + first(e) + same(of(is_odd(e))).bytes[0]; }}\n\
             {operation}\nNM_ARRAYS(4096, done)\n"
        );
        std::fs::write(&source, text).expect("room");
        let name = source.to_str().expect("a name");
        try_compile("channel", name, &["-Wno-unused-function"])
    };
    for operation in [
        "NM_MAP(done, struct element, uint8_t, first)",
        "NM_MAP(done, uint8_t, struct element, of)",
        "NM_FILTER(done, struct element, is_odd)",
        "NM_REDUCE(done, struct element, uint64_t, 0, sum)",
    ] {
        for bytes in [1, 2, 64, 128] {
            let said = compiled(bytes, operation);
            assert!(said.is_ok(), "{bytes} {operation}: {said:?}");
        }
        for bytes in [3, 12, 96, 256] {
            let said = compiled(bytes, operation).expect_err("it is refused");
            let told = "an element has 1, 2, 4 or as many bytes as are a power of two, up to 128";
            assert!(said.contains(told), "{bytes} {operation}: {said}");
        }
    }
}
