//! The protocol texts that the command carries.

use std::path::Path;

/// The protocol texts that ship, with the files' names.
pub(crate) const PROTOCOLS: [(&str, &str); 18] = [
    (
        "protocols/back-invalidate.coh",
        include_str!("../../../protocols/back-invalidate.coh"),
    ),
    (
        "protocols/ccix.coh",
        include_str!("../../../protocols/ccix.coh"),
    ),
    (
        "protocols/cxl-cache.coh",
        include_str!("../../../protocols/cxl-cache.coh"),
    ),
    (
        "protocols/cxl-mem.coh",
        include_str!("../../../protocols/cxl-mem.coh"),
    ),
    (
        "protocols/eci-both.coh",
        include_str!("../../../protocols/eci-both.coh"),
    ),
    (
        "protocols/eci-near.coh",
        include_str!("../../../protocols/eci-near.coh"),
    ),
    (
        "protocols/eci.coh",
        include_str!("../../../protocols/eci.coh"),
    ),
    (
        "protocols/mesi-l1.coh",
        include_str!("../../../protocols/mesi-l1.coh"),
    ),
    (
        "protocols/mesi.coh",
        include_str!("../../../protocols/mesi.coh"),
    ),
    (
        "protocols/moesi.coh",
        include_str!("../../../protocols/moesi.coh"),
    ),
    (
        "protocols/msi-policy.coh",
        include_str!("../../../protocols/msi-policy.coh"),
    ),
    (
        "protocols/msi.coh",
        include_str!("../../../protocols/msi.coh"),
    ),
    (
        "protocols/self-invalidate.coh",
        include_str!("../../../protocols/self-invalidate.coh"),
    ),
    (
        "protocols/token-recall.coh",
        include_str!("../../../protocols/token-recall.coh"),
    ),
    (
        "protocols/token.coh",
        include_str!("../../../protocols/token.coh"),
    ),
    (
        "protocols/two-level.coh",
        include_str!("../../../protocols/two-level.coh"),
    ),
    (
        "protocols/write-through-two-step.coh",
        include_str!("../../../protocols/write-through-two-step.coh"),
    ),
    (
        "protocols/write-through.coh",
        include_str!("../../../protocols/write-through.coh"),
    ),
];

const FOLDER: &str = "protocols/";
const ENDING: &str = ".coh";

/// The names by which they are known: those of the files, without folder and ending.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.into_iter().map(|(file, _)| short(file))
}

/// The text that ships under this name: `msi`, or `protocols/msi.coh` as in a checkout.
pub(crate) fn protocol(name: &Path) -> Option<&'static str> {
    let name = name.to_str()?;
    let mut texts = PROTOCOLS.into_iter();
    let found = texts.find(|&(file, _)| file == name || short(file) == name);
    found.map(|(_, text)| text)
}

fn short(file: &'static str) -> &'static str {
    let name = file.strip_prefix(FOLDER).unwrap_or(file);
    name.strip_suffix(ENDING).unwrap_or(name)
}
