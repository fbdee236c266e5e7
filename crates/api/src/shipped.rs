//! Files of the repository that the library contains: protocol files, and the C library for near-memory cores.

use cohkit_sim::platform::Platform;
use std::path::Path;

macro_rules! files {
    ($($path:literal,)*) => {
        &[$(($path, include_str!(concat!("../../../", $path)))),*]
    };
}

/// Shipped protocol files: path and contents.
pub const PROTOCOLS: &[(&str, &str)] = files![
    "protocols/back-invalidate.coh",
    "protocols/ccix.coh",
    "protocols/cxl-bias.coh",
    "protocols/cxl-cache.coh",
    "protocols/cxl-mem.coh",
    "protocols/cxl-type2.coh",
    "protocols/eci-both.coh",
    "protocols/eci-near.coh",
    "protocols/eci.coh",
    "protocols/mesi-l1.coh",
    "protocols/mesi.coh",
    "protocols/moesi.coh",
    "protocols/msi-policy.coh",
    "protocols/msi.coh",
    "protocols/self-invalidate.coh",
    "protocols/token-recall.coh",
    "protocols/token.coh",
    "protocols/two-level.coh",
    "protocols/write-through-two-step.coh",
    "protocols/write-through.coh",
];

/// Name of the shipped protocol that a platform runs by default.
pub fn default_protocol(platform: &Platform) -> &str {
    platform.protocol.as_deref().unwrap_or("eci")
}

/// C library and the programs of its guide: path in a checkout, and contents.
pub const LIBRARY: &[(&str, &str)] = files![
    "docs/riscv/accumulator/host.c",
    "docs/riscv/accumulator/sum.c",
    "docs/riscv/arrays/arrays.c",
    "docs/riscv/arrays/host.c",
    "nearmemory/arrays.h",
    "nearmemory/channel.flags",
    "nearmemory/channel.h",
    "nearmemory/channel.ld",
    "nearmemory/cores.h",
    "nearmemory/enzian.toml",
    "nearmemory/far-pipe.h",
    "nearmemory/host.flags",
    "nearmemory/host.h",
    "nearmemory/native-channel.h",
    "nearmemory/native-host.h",
    "nearmemory/native.flags",
    "nearmemory/native.h",
    "nearmemory/pipe.h",
    "nearmemory/programs/bench.h",
    "nearmemory/programs/bulk-host.c",
    "nearmemory/programs/bulk.c",
    "nearmemory/programs/compute-host.c",
    "nearmemory/programs/compute.c",
    "nearmemory/programs/graph.h",
    "nearmemory/programs/gups-host.c",
    "nearmemory/programs/gups.c",
    "nearmemory/programs/measure-host.c",
    "nearmemory/programs/measure.c",
    "nearmemory/programs/mixture.h",
    "nearmemory/programs/pagerank-host.c",
    "nearmemory/programs/pagerank.c",
    "nearmemory/programs/pagerank.h",
    "nearmemory/programs/pipes-host.c",
    "nearmemory/programs/pipes.c",
    "nearmemory/programs/rows-host.c",
    "nearmemory/programs/rows.c",
    "nearmemory/programs/spawn-host.c",
    "nearmemory/programs/spawn.c",
    "nearmemory/programs/team.h",
    "nearmemory/programs/tree.h",
    "nearmemory/programs/uts-host.c",
    "nearmemory/programs/uts.c",
    "nearmemory/programs/uts.h",
    "nearmemory/scratchpad.h",
    "nearmemory/stream.h",
    "nearmemory/typed.h",
];

const PROTOCOL_FOLDER: &str = "protocols/";
const PROTOCOL_EXTENSION: &str = ".coh";

/// Names of the shipped protocols: file names without folder and extension.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().map(|(file, _)| short_name(file))
}

/// Contents of the shipped protocol of this name: `msi`, or `protocols/msi.coh` as in a checkout.
pub fn protocol(name: &Path) -> Option<&'static str> {
    let name = name.to_str()?;
    let mut texts = PROTOCOLS.iter();
    let entry = texts.find(|(file, _)| *file == name || short_name(file) == name);
    entry.map(|(_, text)| *text)
}

fn short_name(file: &'static str) -> &'static str {
    let name = file.strip_prefix(PROTOCOL_FOLDER).unwrap_or(file);
    name.strip_suffix(PROTOCOL_EXTENSION).unwrap_or(name)
}
