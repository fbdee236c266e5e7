//! The platforms that ship.

use super::{text, Platform};

/// Platforms that ship with the simulator: name and contents of the file.
const SHIPPED: [(&str, &str); 16] = [
    (
        "clusters-4x4",
        include_str!("../../../../platforms/clusters-4x4.toml"),
    ),
    (
        "cxl-512x8",
        include_str!("../../../../platforms/cxl-512x8.toml"),
    ),
    (
        "cxl-8x8",
        include_str!("../../../../platforms/cxl-8x8.toml"),
    ),
    (
        "enzian-cohkit",
        include_str!("../../../../platforms/enzian-cohkit.toml"),
    ),
    (
        "enzian-cpu-home",
        include_str!("../../../../platforms/enzian-cpu-home.toml"),
    ),
    (
        "enzian-dc-bram",
        include_str!("../../../../platforms/enzian-dc-bram.toml"),
    ),
    (
        "enzian-dc-ddr",
        include_str!("../../../../platforms/enzian-dc-ddr.toml"),
    ),
    (
        "hosts-512x8",
        include_str!("../../../../platforms/hosts-512x8.toml"),
    ),
    (
        "hosts-8x8",
        include_str!("../../../../platforms/hosts-8x8.toml"),
    ),
    (
        "n1sdp-u280",
        include_str!("../../../../platforms/n1sdp-u280.toml"),
    ),
    (
        "n1sdp-vck5000",
        include_str!("../../../../platforms/n1sdp-vck5000.toml"),
    ),
    (
        "peers-device-memory",
        include_str!("../../../../platforms/peers-device-memory.toml"),
    ),
    (
        "peers-host-memory",
        include_str!("../../../../platforms/peers-host-memory.toml"),
    ),
    (
        "thunderx1-2s",
        include_str!("../../../../platforms/thunderx1-2s.toml"),
    ),
    (
        "thunderx1-2s-eci",
        include_str!("../../../../platforms/thunderx1-2s-eci.toml"),
    ),
    (
        "upi-8x8",
        include_str!("../../../../platforms/upi-8x8.toml"),
    ),
];

impl Platform {
    /// Names of the platforms that ship with the simulator, in alphabetical order.
    pub fn shipped_names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// Returns the description of a shipped platform: the first line of its file.
    pub fn description(name: &str) -> Option<&'static str> {
        Platform::shipped_text(name)?
            .lines()
            .next()?
            .strip_prefix("# ")
    }

    /// Returns the file of a shipped platform, to be copied and changed.
    pub fn shipped_text(name: &str) -> Option<&'static str> {
        let (_, text) = SHIPPED.iter().find(|(shipped, _)| *shipped == name)?;
        Some(text)
    }

    /// Returns the shipped platform of a name, if there is one.
    pub fn shipped(name: &str) -> Option<Platform> {
        text::read(Platform::shipped_text(name)?).ok()
    }
}
