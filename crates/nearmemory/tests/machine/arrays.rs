//! Arrays in far memory and channels of a type, which hide what caches need.

use crate::{compile, require, root, run_watched};
use cohkit_nearmemory::{Evictions, Happened, Platform};

const HOST: &str = "crates/nearmemory/tests/programs/arrays-host.c";
const CHANNEL: &str = "crates/nearmemory/tests/programs/arrays.c";

#[test]
fn arrays_are_mapped_filtered_and_reduced_whatever_is_evicted_and_race_nowhere() {
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
        assert_eq!(ran.happened, [Happened::Exit(0)], "{every:?}: {}", ran.text);
        assert_eq!(ran.text, "all is right\n");
    }
}

#[test]
fn what_the_layer_forgets_is_found() {
    if !require::require("riscv-gcc") {
        return;
    }
    let layer = std::fs::read_to_string(root().join("nearmemory/arrays.h")).expect("a source");
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("nearmemory");
    std::fs::create_dir(&place).expect("room");
    // The host does not clean what it has written, or reads what it has of a result; the core stores too little, or a part of an
    // array is looked at that is not there.
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
            .any(|happened| matches!(happened, Happened::Race(_)));
        assert!(
            raced || ran.text.contains("wrong: "),
            "{right}: {}",
            ran.text
        );
    }
}
