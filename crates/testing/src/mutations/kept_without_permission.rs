//! Protocol in which the bytes of a message are used at once and also kept, in a state without permission to read.

/// Returns ECI with a state `K`: a load reads without caching, and the line stays without permission until it is loaded
/// again or evicted.
pub fn kept_without_permission(eci: &str) -> String {
    let changes = [
        (
            "    IS  waits DataShared",
            "    K   holds\n    IS  waits DataShared",
        ),
        (
            "  I                    | load                     | send ReadShared           | IS",
            "  I | load | send ReadOnce | IR\n  K | load | send ReadShared | IS",
        ),
        (
            "  I                    | store ",
            "  I K                  | store ",
        ),
        (
            "  I                    | read_once ",
            "  I K                  | read_once ",
        ),
        (
            "  S                    | evict ",
            "  K                    | evict |  | I\n  S                    | evict ",
        ),
        (
            "| DataOnce                 | done                      | I",
            "| DataOnce | done | K",
        ),
        (
            "  I IS IE IU IR IW IP  | ForwardShared",
            "  I K IS IE IU IR IW IP | ForwardShared",
        ),
        (
            "  I IS IE IU IR IW IP  | ForwardInvalid",
            "  I K IS IE IU IR IW IP | ForwardInvalid",
        ),
    ];
    with_changes(eci, &changes)
}

/// Returns the same with an owner that swaps its answers to `ForwardShared`, so that memory stays stale: bytes that are
/// used once are then stale, and are kept without permission.
pub fn kept_without_permission_and_stale(eci: &str) -> String {
    let row = "ForwardShared            | send Ack";
    let changes = [
        (
            format!("M                    | {row}DirtyShared "),
            format!("M | {row}CleanShared "),
        ),
        (
            format!("E                    | {row}CleanShared "),
            format!("E | {row}DirtyShared "),
        ),
    ];
    let changes = changes
        .each_ref()
        .map(|(old, new)| (old.as_str(), new.as_str()));
    with_changes(&kept_without_permission(eci), &changes)
}

/// Replaces texts, each of which must occur.
fn with_changes(text: &str, changes: &[(&str, &str)]) -> String {
    let mut text = text.to_string();
    for (old, new) in changes {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    text
}
