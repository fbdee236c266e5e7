//! Lists of shipped items: protocol files, experiments, and the C library for near-memory cores.

use cohkit_sim::platform::Platform;
use std::path::Path;

/// Expands paths in the checkout to pairs of path and contents, which are compiled in.
macro_rules! files {
    ($($path:literal,)*) => {
        &[$(($path, include_str!(concat!("../../../", $path)))),*]
    };
}

/// Shipped protocol files: path and contents.
pub const PROTOCOLS: &[(&str, &str)] = files![
    "protocols/back-invalidate.coh",
    "protocols/ccix.coh",
    "protocols/chi.coh",
    "protocols/clusters.coh",
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
    "protocols/tilelink.coh",
    "protocols/token-recall.coh",
    "protocols/token.coh",
    "protocols/two-level.coh",
    "protocols/write-through-two-step.coh",
    "protocols/write-through.coh",
];

/// Name of the shipped protocol that a platform runs by default.
pub(crate) fn default_protocol(platform: &Platform) -> &str {
    platform.protocol.as_deref().unwrap_or("eci")
}

/// Experiments of the Python package, in the order in which it runs them: name and title.
pub const EXPERIMENTS: &[(&str, &str)] = &[
    ("eci-home", "the home of ECI, constructed from its policy"),
    (
        "cckit-table2",
        "latency of a read, one at a time, each line of 1 GiB once or as many drawn at random",
    ),
    (
        "cckit-fig6",
        "throughput of reads and writes, each line of 1 GiB once or as many drawn at random",
    ),
    (
        "cckit-table3",
        "clean-invalidates by the device: latency of one, and rate of many",
    ),
    (
        "cckit-fig7",
        "increments of a shared table by a CPU thread, by the share of rows that the other side increments too",
    ),
    (
        "cckit-fig8",
        "sequential reads of memory behind the home, with a prefetcher and without",
    ),
    (
        "cckit-fig9",
        "response time of a materialised view, against rows that a transaction appends",
    ),
    (
        "cckit-fig10",
        "latency of calls through pairs of lines, and over a bus",
    ),
    (
        "rpc-payload",
        "calls through pairs of lines, and over a bus, by the size of arguments and results",
    ),
    (
        "locktable",
        "record locks of both sides, by parallelism",
    ),
    (
        "eci-link",
        "uncached coherent transfers of an FPGA over ECI, by their size, and two sockets beside them",
    ),
    (
        "ccix-exp1",
        "uncached transfers of a card over CCIX and by DMA, by their size",
    ),
    (
        "ccix-exp2",
        "cost of address translation for a card over CCIX",
    ),
    (
        "ccix-exp3",
        "a hit in the system cache of a card on CCIX, and a miss",
    ),
    (
        "ccix-exp4",
        "host and card access and modify the same lines at the same time over CCIX",
    ),
    (
        "ccix-locktable",
        "record locks of a host and a card in the host's memory over CCIX, by parallelism",
    ),
    (
        "cord-fig8",
        "stores to other hosts' memory, ordered in three ways, relative to stores ordered at directories",
    ),
    (
        "cord-fig9",
        "time of stores ordered at their source, relative to ordering at directories, by latency between hosts",
    ),
    (
        "cord-fig10",
        "stores ordered by epochs and counters, by their bits, relative to sequence numbers of 40 and 8 bits",
    ),
    (
        "cord-fig2",
        "cost of waiting for store acknowledgements in programs whose stores are ordered at their source",
    ),
    (
        "cord-fig7",
        "programs whose stores are ordered in three ways, relative to stores ordered at directories",
    ),
    (
        "cord-fig13",
        "the same programs under total store order",
    ),
    (
        "cord-fig11",
        "the smallest tables of cores and directories that cost programs no time, by the number of hosts",
    ),
    (
        "cord-fig12",
        "the same for a broadcast from all to all, by table, with buffers for releases that wait",
    ),
    (
        "cord-table3",
        "area and power of the published tables, estimated from their bits",
    ),
    (
        "cord-scale",
        "stores by all cores to the memory of other hosts, by the number of hosts behind switches in two levels",
    ),
    (
        "symmetric-vs-asymmetric",
        "a shared table and an invalidation engine over ECI, CXL.mem, its bias and CXL.cache, with their lines and framing",
    ),
    (
        "symmetric-vs-asymmetric-64",
        "the same with lines of 64 bytes over a pipe",
    ),
    (
        "proxics-table1",
        "latency and bandwidth of far memory, to the host and to a core beside it",
    ),
    (
        "proxics-bulk",
        "memory set, cleared and copied by the host and by a core beside far memory, by size",
    ),
    (
        "proxics-gups",
        "random updates of a table in local and in far memory, by its size",
    ),
    (
        "proxics-pipes",
        "words to a core beside far memory by pipes of lines and of registers, by their number",
    ),
    (
        "proxics-spawn",
        "starting a program on a core beside far memory, by its length, verified or trusted",
    ),
    (
        "proxics-sum",
        "the sum of a column of a table in local and in far memory, by the bytes of a row",
    ),
    (
        "proxics-filter",
        "rows below a balance of a table in far memory, copied there or streamed, by how many there are",
    ),
    (
        "proxics-compute",
        "a mixture of instructions like that of Dhrystone, by a core of the host and by one beside far memory",
    ),
    (
        "proxics-uts",
        "search of unbalanced trees in far memory, by the host and by one and four cores beside it",
    ),
    (
        "proxics-pagerank",
        "PageRank that pulls, on five shapes of graphs, with scores added up by the host or beside far memory",
    ),
];

/// C library and the programs of its guide: path in a checkout, and contents.
pub const LIBRARY: &[(&str, &str)] = files![
    "docs/riscv/accumulator/host.c",
    "docs/riscv/accumulator/sum.c",
    "docs/riscv/arrays/arrays.c",
    "docs/riscv/arrays/host.c",
    "docs/riscv/hosts/host.c",
    "nearmemory/arrays.h",
    "nearmemory/channel-pipe.h",
    "nearmemory/channel.flags",
    "nearmemory/channel.h",
    "nearmemory/channel.ld",
    "nearmemory/cores.h",
    "nearmemory/enzian.toml",
    "nearmemory/far-pipe.h",
    "nearmemory/host-pipe.h",
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

/// Folder of protocol files in a checkout; short names omit it.
const PROTOCOL_FOLDER: &str = "protocols/";
/// File name extension of protocol files; short names omit it.
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

/// Name of a protocol file without folder and extension.
fn short_name(file: &'static str) -> &'static str {
    let name = file.strip_prefix(PROTOCOL_FOLDER).unwrap_or(file);
    name.strip_suffix(PROTOCOL_EXTENSION).unwrap_or(name)
}
