//! Systems that a check adds, with more lines or caches than the declared ones.

use super::verdict_folder;
use crate::{cohkit, text};
use std::path::Path;

/// Two faults that need two caches and two lines at once, in protocols whose systems have only one of both; and one
/// fault that needs the parameters of the second system.
#[test]
fn joined_lines_are_checked_with_two_caches_and_two_lines() {
    for (file, system) in [
        (
            "lines_joined_with_one_remote.coh",
            "p117_lines_joined_with_one_remote two_widened: violated",
        ),
        ("widened_takes_one_remote.coh", "two_widened: violated"),
        ("widened_takes_first_sizes.coh", "b_widened: violated"),
    ] {
        let output = cohkit(["check"])
            .arg(verdict_folder().join(file))
            .output()
            .expect("the command starts");
        let printed = text(&output.stdout);
        assert!(printed.contains(system), "{file}: {printed}");
        assert_eq!(output.status.code(), Some(1), "{file}");
    }
}

/// A note names the system of two caches and two lines that is too large; a smaller one is checked.
#[test]
fn systems_that_are_too_large_to_be_added_are_named() {
    let check_output = |name: &str| {
        let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ordering");
        let output = cohkit(["check"])
            .arg(text.join(name))
            .output()
            .expect("the command starts");
        self::text(&output.stdout)
    };
    let mp_output = check_output("mp.coh");
    assert!(
        mp_output.contains("note: 2 remotes and 2 lines together were not judged"),
        "{mp_output}"
    );
    let seq_output = check_output("seq.coh");
    assert!(
        seq_output.contains("shared_widened: verified"),
        "{seq_output}"
    );
    assert!(
        seq_output.contains("not covered: more than 1 line evicted spontaneously"),
        "{seq_output}"
    );
}
