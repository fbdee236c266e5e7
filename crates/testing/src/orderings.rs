//! Protocols of the folder `ordering`, which order stores to several homes in different ways, and their
//! runs.

use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text;
use cohkit_sim::platform::Platform;
use cohkit_sim::scenario::Playable;
use cohkit_sim::simulation::Setup;
use std::path::PathBuf;
use std::sync::Arc;

/// Returns a protocol of `ordering` with these parameters; `name` is that of its file, without
/// extension.
pub fn ordering(name: &str, sizes: &[(&str, u16)]) -> Protocol {
    changed_ordering(name, sizes, &[])
}

/// Returns a protocol of `ordering` with these parameters and textual changes, each from a text that
/// must occur.
pub fn changed_ordering(name: &str, sizes: &[(&str, u16)], changes: &[(&str, &str)]) -> Protocol {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../ordering");
    let mut text = std::fs::read_to_string(folder.join(format!("{name}.coh"))).unwrap();
    for (old, new) in changes {
        assert!(text.contains(old), "{name} has no `{old}`");
        text = text.replace(old, new);
    }
    let sizes: Vec<_> = sizes
        .iter()
        .map(|&(name, n)| (name.to_string(), n))
        .collect();
    text::parse_sized(&text, &sizes).unwrap_or_else(|errors| panic!("{name}: {errors:?}"))
}

/// Returns the protocols for release consistency on this number of homes. The last one, `mp`, does not
/// keep it.
pub fn orderings(homes: u16) -> [(&'static str, Protocol); 4] {
    let homes = ("homes", homes);
    [
        ("so", ordering("so", &[homes, ("most", 128)])),
        ("wb", ordering("wb", &[])),
        (
            "cord",
            ordering(
                "cord",
                &[homes, ("epochs", 16), ("entries", 8), ("most", 255)],
            ),
        ),
        ("mp", ordering("mp", &[homes, ("credits", 64)])),
    ]
}

/// Returns the protocols that keep their guarantees, including those for total store order and the strict source order.
pub fn correct_orderings(homes: u16) -> Vec<(&'static str, Protocol)> {
    let sizes = [
        ("homes", homes),
        ("epochs", 16),
        ("entries", 8),
        ("notes", 16),
    ];
    let further = [
        ("so-strict", ordering("so-strict", &[])),
        ("tso/so", ordering("tso/so", &[])),
        ("tso/wb", ordering("tso/wb", &[])),
        ("tso/cord", ordering("tso/cord", &sizes)),
    ];
    let release_consistent = orderings(homes).into_iter().take(3);
    release_consistent.chain(further).collect()
}

/// Returns eight hosts with one core each.
pub fn machine() -> Platform {
    let mut platform = Platform::shipped("cxl-8x8").unwrap();
    platform.remotes = 8;
    platform
}

/// Returns the setup of a scenario. If the protocol couples lines, the machine has as many homes as the
/// protocol.
pub fn setup(protocol: &Protocol, platform: &Platform, scenario: Arc<dyn Playable>) -> Setup {
    let mut platform = platform.clone();
    // A protocol without other homes runs once at each home.
    if protocol.joins_lines().is_some() {
        if let Some(count) = &mut platform.home.count {
            count.value = protocol.homes.into();
        }
    }
    Setup::with_scenario(protocol.clone(), platform, scenario).unwrap()
}
