//! The platforms that ship with the simulator: TOML files that are part of the program.

use super::{text, Platform};

macro_rules! platforms {
    ($($name:literal,)*) => {
        &[$(($name, include_str!(concat!("../../../../platforms/", $name, ".toml")))),*]
    };
}

/// Platforms that ship with the simulator, in alphabetical order: name and contents of the file.
const SHIPPED: &[(&str, &str)] = platforms![
    "clusters-4x4",
    "cxl-512x8",
    "cxl-8x8",
    "enzian-cohkit",
    "enzian-cpu-home",
    "enzian-dc-bram",
    "enzian-dc-ddr",
    "hosts-512x8",
    "hosts-8x8",
    "n1sdp-u280",
    "n1sdp-vck5000",
    "peers-device-memory",
    "peers-host-memory",
    "thunderx1-2s",
    "thunderx1-2s-eci",
    "upi-8x8",
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

    /// Returns the shipped platform of a name, if there is one. All shipped files are valid.
    pub fn shipped(name: &str) -> Option<Platform> {
        text::read(Platform::shipped_text(name)?).ok()
    }
}
