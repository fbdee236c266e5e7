//! Limits on the structure of the crate's source.

use cohkit_testing::structure::{sources, violations};
use std::collections::BTreeSet;

/// No type or function of the crate exceeds a limit.
#[test]
fn types_and_functions_are_small() {
    let sources = sources(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(violations(&sources, &[]), BTreeSet::new());
}
