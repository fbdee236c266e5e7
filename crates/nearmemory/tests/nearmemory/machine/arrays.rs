//! Arrays in far memory and typed channels, which hide cache management from programs.

use super::{compile, root, run_watched, try_compile};
use cohkit_nearmemory::{Evictions, Platform, RunOutcome};
use cohkit_testing::require;

/// Programs that apply each operation of `arrays.h` and verify its results.
const HOST: &str = "crates/nearmemory/tests/programs/arrays-host.c";
const CHANNEL: &str = "crates/nearmemory/tests/programs/arrays.c";

/// Results are correct with and without random evictions, and no race is reported.
#[test]
fn array_operations_survive_evictions_without_races() {
    if !require::require("riscv-gcc") {
        return;
    }
    let (host, channel) = (compile("host", HOST, &[]), compile("channel", CHANNEL, &[]));
    for interval in [None, Some(50)] {
        let evictions = interval.map(|interval| Evictions {
            mean_interval: interval,
            seed: 1,
        });
        let result = run_watched(
            &Platform::enzian(),
            &host,
            "",
            &[("arrays", &channel)],
            evictions,
        );
        assert_eq!(
            result.outcomes,
            [RunOutcome::Exit(0)],
            "{interval:?}: {}",
            result.text
        );
        assert_eq!(result.text, "all is right\n");
    }
}

/// Each seeded fault in `arrays.h` is found as a race or by the program's verification.
#[test]
fn faults_of_the_array_layer_are_found() {
    if !require::require("riscv-gcc") {
        return;
    }
    let layer =
        std::fs::read_to_string(root().join("nearmemory/arrays.h")).expect("the file can be read");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let include_folder = folder.path().join("nearmemory");
    std::fs::create_dir(&include_folder).expect("the folder can be created");
    // Faults: the host does not clean its stores, or reads stale lines of a result; the core stores too little; or a
    // part is accessed beyond the end of an array.
    for (original, mutated) in [
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
        assert_eq!(layer.matches(original).count(), 1, "{original}");
        std::fs::write(
            include_folder.join("arrays.h"),
            layer.replace(original, mutated),
        )
        .expect("the file can be written");
        let include_option = format!("-I{}", folder.path().display());
        let options = [
            "-iquote",
            folder.path().to_str().expect("a name"),
            include_option.as_str(),
        ];
        let (host, channel) = (
            compile("host", HOST, &options),
            compile("channel", CHANNEL, &options),
        );
        let result = run_watched(
            &Platform::enzian(),
            &host,
            "",
            &[("arrays", &channel)],
            None,
        );
        let has_race = result
            .outcomes
            .iter()
            .any(|outcome| matches!(outcome, RunOutcome::Race(_)));
        assert!(
            has_race || result.text.contains("wrong: "),
            "{original}: {}",
            result.text
        );
    }
}

/// Elements of an array may not cross a line: other sizes are errors of the compiler.
#[test]
fn elements_across_two_parts_fail_to_compile() {
    if !require::require("riscv-gcc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("elements.c");
    let compile_element = |bytes: u64, operation: &str| {
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
        std::fs::write(&source, text).expect("the file can be written");
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
            let output = compile_element(bytes, operation);
            assert!(output.is_ok(), "{bytes} {operation}: {output:?}");
        }
        for bytes in [3, 12, 96, 256] {
            let output = compile_element(bytes, operation).expect_err("it is refused");
            let message = "the size of an element is a power of two, from 1 to 128 bytes";
            assert!(output.contains(message), "{bytes} {operation}: {output}");
        }
    }
}
