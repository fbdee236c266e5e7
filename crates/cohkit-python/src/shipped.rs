//! Files of the repository that the package brings with it, so that it needs no other folder.

use pyo3::prelude::*;

macro_rules! files {
    ($($path:literal,)*) => {
        &[$(($path, include_str!(concat!("../../../", $path))),)*]
    };
}

/// Paths in the repository, in alphabetical order, and their texts.
const FILES: &[(&str, &str)] = files![
    "experiments/published.toml",
    "nearmemory/arrays.h",
    "nearmemory/channel.flags",
    "nearmemory/channel.h",
    "nearmemory/channel.ld",
    "nearmemory/cores.h",
    "nearmemory/enzian.toml",
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
    "ordering/cord.coh",
    "ordering/mp.coh",
    "ordering/seq.coh",
    "ordering/so.coh",
    "ordering/tso/cord.coh",
    "ordering/tso/mp.coh",
    "ordering/tso/so.coh",
    "ordering/tso/wb.coh",
    "ordering/wb.coh",
    "protocols/back-invalidate.coh",
    "protocols/ccix.coh",
    "protocols/cxl-cache.coh",
    "protocols/cxl-mem.coh",
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
    "protocols/write-through-two-step.coh",
    "protocols/write-through.coh",
    "tests/construction/base.coh",
];

/// The shipped files: `(path, text)`.
#[pyfunction]
pub(crate) fn shipped() -> Vec<(&'static str, &'static str)> {
    FILES.to_vec()
}
