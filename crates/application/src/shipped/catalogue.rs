//! Names, descriptions and parameters of the scenarios that ship.

/// A numeric parameter of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: &'static str,
    /// Description of the parameter with its unit, for listings.
    pub text: &'static str,
    /// Default value.
    pub default: u64,
    /// Minimum value, which is permitted.
    pub low: u64,
    /// Maximum value, which is permitted.
    pub high: u64,
}

/// A scenario that ships.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShippedScenario {
    /// Name of the scenario.
    pub name: &'static str,
    /// Description of the scenario, for listings.
    pub text: &'static str,
    /// Parameters of the scenario.
    pub parameters: &'static [Parameter],
}

/// All scenarios that ship.
pub const SCENARIOS: [ShippedScenario; 23] = [
    ShippedScenario {
        name: "shared-table",
        text: "threads increment all rows of a table, one line each; the device increments some of these rows under its lock",
        parameters: &[
            parameter("rows", 65_536, (1, MAX_LINES), "rows of the table"),
            parameter("contended", 100, (0, 1000), "per thousand rows, the number that the device increments too"),
            parameter("outstanding", 1, COUNTS, "rows that the device works on at a time"),
            parameter("device", 0, REPETITIONS, "increments by the device; 0: unlimited"),
            parameter("threads", 1, COUNTS, "threads; each increments an equal part of the rows"),
            parameter("thread", 0, REPETITIONS, "increments by each thread; 0: unlimited"),
            parameter("cached", 0, (0, 1), "1: the table is in the CPU's memory and the device caches it"),
        ],
    },
    ShippedScenario {
        name: "prefetcher",
        text: "threads read a region in address order; the device reads ahead into blocks and answers from them",
        parameters: &[
            parameter("lines", 524_288, (1, MAX_LINES), "lines of the region"),
            parameter("blocks", 8, (0, 4096), "prefetch blocks; 0: every read goes to memory"),
            parameter("block", 64, (1, 4096), "lines of a block, a power of two"),
            parameter("burst", 32, (1, 4096), "lines that one burst reads"),
            parameter("threads", 1, COUNTS, "threads, each with its own part of the region"),
            parameter("reads", 0, REPETITIONS, "lines that each thread reads or writes; 0: unlimited"),
            parameter("written", 0, (0, 1000), "per thousand lines, the number written instead of read"),
            parameter("hints", 0, (0, 4096), "lines by which a thread's prefetch precedes its access; 0: no prefetches"),
        ],
    },
    ShippedScenario {
        name: "invalidation",
        text: "a thread accesses lines, then the device clean-invalidates all of them",
        parameters: &[
            parameter("lines", 4096, (1, MAX_LINES), "lines"),
            parameter("outstanding", 1, (1, 1 << 20), "maximum outstanding clean-invalidates"),
            parameter("dirty", 0, (0, 1), "1: the thread writes the lines; 0: it reads them"),
            parameter("held", 1, (0, 1), "1: the thread accesses the lines; 0: it does not"),
            parameter("after", 0, (0, 1 << 30), "nanoseconds after which the device begins; 0: on a signal of the thread"),
            parameter("cached", 0, (0, 1), "1: the lines are in the CPU's memory and the device caches them"),
        ],
    },
    ShippedScenario {
        name: "rpc",
        text: "threads call the device through pairs of lines that both sides pass back and forth",
        parameters: &[
            parameter("contexts", 1, COUNTS, "threads, each with its own pair of lines"),
            parameter("payload", 1, (1, 200), "lines of arguments, and of results"),
            parameter("calls", 0, REPETITIONS, "calls of each thread; 0: unlimited"),
            parameter("hints", 0, (0, 200), "lines of results by which a prefetch precedes its load; 0: no prefetches"),
        ],
    },
    ShippedScenario {
        name: "rpc-registers",
        text: "threads call the device through registers on a bus",
        parameters: &BUS_PARAMETERS,
    },
    ShippedScenario {
        name: "rpc-descriptors",
        text: "threads call the device through descriptors in their memory, which it fetches over a bus",
        parameters: &BUS_PARAMETERS,
    },
    ShippedScenario {
        name: "locks",
        text: "threads and the device take the locks of a table of records",
        parameters: &[
            parameter("records", 1024, (1, 1 << 24), "records, with a lock each"),
            parameter("threads", 1, COUNTS, "threads, each with one transaction at a time"),
            parameter("device", 1, (0, 4096), "transactions of the device at a time"),
            parameter("hold", 500, (0, 1 << 30), "nanoseconds for which a lock is held"),
            parameter("pause", 100, (0, 1 << 30), "nanoseconds after which the device tries again"),
            parameter("transactions", 0, REPETITIONS, "transactions of each thread and of each slot of the device; 0: unlimited"),
            parameter("messages", 0, (0, 1), "1: threads access the table by messages over a bus; 0: in coherent memory"),
            parameter("cached", 0, (0, 1), "1: the table is in the CPU's memory and the device takes locks in its own cache"),
            parameter("words", 0, (0, 1), "1: the device changes a lock by an atomic operation of its memory; 0: it reads and writes the line"),
        ],
    },
    ShippedScenario {
        name: "gather",
        text: "threads write linked lists into the host's memory; the device traverses them and answers through its own lines",
        parameters: &[
            parameter("threads", 1, COUNTS, "threads, with a list each"),
            parameter("nodes", 16, (1, 1 << 16), "nodes of each list"),
            parameter("queries", 0, REPETITIONS, "queries of each thread; 0: unlimited"),
            parameter("cached", 1, (0, 1), "1: the device caches the lines that it reads and writes there"),
        ],
    },
    ShippedScenario {
        name: "dma",
        text: "after a doorbell, an engine of the device executes descriptors that copy words of the host's memory over a bus",
        parameters: &[
            parameter("threads", 1, COUNTS, "threads, with descriptors and buffers each"),
            parameter("words", 64, (1, 1 << 16), "words of a copy"),
            parameter("descriptors", 4, (1, 4096), "descriptors of each ring of the doorbell"),
            parameter("rings", 0, REPETITIONS, "rings of each thread; 0: unlimited"),
            parameter("interrupts", 0, (0, 1), "1: the engine interrupts the thread on completion; 0: the thread polls"),
        ],
    },
    ShippedScenario {
        name: "view",
        text: "a thread appends rows to TPC-H ORDERS and reads sums per customer, which the device keeps up to date",
        parameters: &[
            parameter("scale", 10, (1, 10_000), "thousandths of TPC-H's scale factor; 1500 rows each"),
            parameter("updates", 100, (1, 1 << 30), "rows that a transaction appends, the last of the table"),
            parameter("transactions", 3, (1, 1 << 30), "transactions"),
            parameter("incremental", 1, (0, 1), "1: the device reads only the new rows; 0: it reads all rows"),
            parameter("words", 16, (1, 1 << 16), "words used of each line"),
            parameter("outstanding", 64, COUNTS, "maximum outstanding local operations"),
            parameter("host", 0, (0, 1), "1: the base table is in the host's memory, and the device reads it over the link; 0: in the device's memory"),
        ],
    },
    ShippedScenario {
        name: "remote-writes",
        text: "a thread stores to the memory of other hosts and periodically releases a flag; the acquiring thread checks the data",
        parameters: &[
            HOMES,
            parameter("fanout", 1, (1, 4095), "homes written to, fewer than there are: home 0 and the following ones; their threads check the data"),
            parameter("words", 8, (1, 512), "words of 8 bytes per store, each in its own line"),
            parameter("stores", 64, (1, 1 << 20), "stores between two releases, round-robin over the homes"),
            parameter("releases", 16, (1, 1 << 16), "releases, all to a flag of home 0"),
            parameter("every", 1, (0, 1 << 16), "releases between two checks; 0: one check after the last release"),
        ],
    },
    ShippedScenario {
        name: "broadcast",
        text: "every thread stores a word in the memory of each other host and releases a flag there, in rounds; all check all words",
        parameters: &[
            HOMES,
            parameter("threads", 8, (2, 4096), "threads, assigned to hosts in round-robin order; at least as many as homes"),
            parameter("rounds", 16, (1, 1 << 20), "rounds"),
        ],
    },
    ShippedScenario {
        name: "exchange",
        text: "every thread stores to the memory of other hosts and periodically releases a flag; the acquiring thread checks the values",
        parameters: &[
            HOMES,
            parameter("threads", 8, (2, 4096), "threads, assigned to hosts in round-robin order, equally many on each"),
            parameter("fanout", 1, (1, 4095), "hosts that each thread writes to, fewer than there are: the next host and others at equal distances; their threads check the values"),
            parameter("lines", 1, (0, 1), "1: a store writes a line of 64 bytes; 0: a word of 8 bytes"),
            parameter("stores", 64, (1, 1 << 20), "stores between two releases, to one host after the other"),
            parameter("releases", 16, (1, 1 << 16), "releases of each thread, all to a flag of the first of these hosts"),
        ],
    },
    ShippedScenario {
        name: "pagerank",
        text: "threads share a graph and rank its vertices: each stores ranks, word by word, in the memory of all hosts with neighbours",
        parameters: &[
            HOMES,
            KERNEL_THREADS,
            WORK,
            parameter("vertices", 4096, (16, 1 << 22), "vertices, in equal parts"),
            NEAR,
            parameter("far", 3, (0, 64), "random neighbours that each vertex chooses, in addition to those on a ring"),
            parameter("rounds", 4, (1, 1 << 16), "rounds"),
            parameter("release", 5120, RELEASE_BYTES, "bytes of stores between two releases"),
        ],
    },
    ShippedScenario {
        name: "sssp",
        text: "threads share a graph and find the shortest paths from one vertex: each stores the path lengths that have changed",
        parameters: &[
            HOMES,
            KERNEL_THREADS,
            WORK,
            parameter("vertices", 4096, (16, 1 << 22), "vertices, in equal parts"),
            NEAR,
            parameter("far", 1, (0, 64), "random neighbours that each vertex chooses, in addition to those on a ring"),
            parameter("release", 704, RELEASE_BYTES, "bytes of stores between two releases"),
        ],
    },
    ShippedScenario {
        name: "padding",
        text: "threads pad the rows of a matrix in place, part by part from its end",
        parameters: &[
            HOMES,
            KERNEL_THREADS,
            WORK,
            parameter("rows", 64, (1, 1 << 16), "rows"),
            parameter("columns", 60, (1, 1 << 12), "lines of a row"),
            parameter("pad", 4, (0, 1 << 12), "lines of padding after each row"),
            parameter("part", 16, (1, 1 << 12), "lines of a part; a release follows the stores of each part"),
            parameter("block", 8, (1, 1 << 12), "consecutive lines in one host's memory"),
        ],
    },
    ShippedScenario {
        name: "task-queue",
        text: "threads of one half store tasks in another host's memory; those of the other half take them and count their values",
        parameters: &[
            HOMES,
            KERNEL_THREADS,
            WORK,
            parameter("tasks", 128, (1, 1 << 20), "tasks of each producing thread"),
            parameter("slots", 4, (1, 4096), "maximum outstanding tasks of a queue"),
            parameter("most", 32, (1, 4096), "lines of the largest task"),
            parameter("bins", 64, (1, 1 << 16), "bins of the histogram"),
        ],
    },
    ShippedScenario {
        name: "histogram",
        text: "threads count values and store their counts to the few threads that sum them",
        parameters: &[
            HOMES,
            KERNEL_THREADS,
            WORK,
            parameter("fanout", 3, (1, 4096), "threads that sum the counts; at most all threads"),
            parameter("bins", 256, (1, 1 << 16), "bins, a line each"),
            parameter("values", 1024, (1, 1 << 20), "values of a thread in a round"),
            parameter("rounds", 8, (1, 1 << 16), "rounds"),
            parameter("atomic", 0, (0, 1), "1: each thread adds its own counts by atomic accesses"),
            parameter("release", 1024, RELEASE_BYTES, "bytes of stores between two releases"),
        ],
    },
    ShippedScenario {
        name: "transpose",
        text: "threads transpose matrices: each stores the elements of its rows, one line each, to the transposed positions",
        parameters: &[
            HOMES,
            KERNEL_THREADS,
            WORK,
            parameter("size", 64, (1, 1 << 12), "rows, and columns"),
            parameter("rounds", 2, (1, 1 << 16), "matrices"),
            parameter("release", 512, RELEASE_BYTES, "bytes of stores between two releases"),
        ],
    },
    ShippedScenario {
        name: "mocfe",
        text: "threads pass messages: some words or lines to all others, and sums",
        parameters: &MESSAGE_PARAMETERS,
    },
    ShippedScenario {
        name: "cmc2d",
        text: "threads pass messages: up to 14 KB to all others, and sums",
        parameters: &MESSAGE_PARAMETERS,
    },
    ShippedScenario {
        name: "bigfft",
        text: "threads pass messages: 10 KB with one partner after the other",
        parameters: &MESSAGE_PARAMETERS,
    },
    ShippedScenario {
        name: "crystal-router",
        text: "threads pass messages: up to 2 KB with the partners of a hypercube",
        parameters: &MESSAGE_PARAMETERS,
    },
];

/// Creates a parameter with its default, its range and its description.
const fn parameter(
    name: &'static str,
    default: u64,
    (low, high): (u64, u64),
    text: &'static str,
) -> Parameter {
    Parameter {
        name,
        text,
        default,
        low,
        high,
    }
}

/// Maximum number of lines of a scenario.
pub(super) const MAX_LINES: u64 = 1 << 30;
/// Range of small counts, such as numbers of threads.
const COUNTS: (u64, u64) = (1, 4096);
/// Range of repetition counts; 0 means unlimited.
const REPETITIONS: (u64, u64) = (0, u64::MAX);

/// Parameters of remote calls over a bus.
const BUS_PARAMETERS: [Parameter; 3] = [
    parameter("contexts", 1, COUNTS, "threads"),
    parameter("words", 1, (1, 4096), "words of arguments, and of results"),
    parameter(
        "calls",
        0,
        REPETITIONS,
        "calls of each thread; 0: unlimited",
    ),
];

/// Neighbours on a ring of a generated graph.
const NEAR: Parameter = parameter(
    "near",
    2,
    (1, 15),
    "neighbours on each side of a vertex on a ring",
);

/// Number of threads of a kernel.
const KERNEL_THREADS: Parameter =
    parameter("threads", 8, (2, 4096), "threads, one host after the other");
/// Computation time of a kernel per value.
const WORK: Parameter = parameter(
    "work",
    1000,
    (0, 1 << 30),
    "picoseconds of calculation for each value",
);
/// Range of the bytes between two releases.
const RELEASE_BYTES: (u64, u64) = (8, 1 << 30);
/// Parameters of the message-passing programs.
const MESSAGE_PARAMETERS: [Parameter; 4] = [
    HOMES,
    KERNEL_THREADS,
    WORK,
    parameter("steps", 8, (1, 1 << 20), "steps"),
];

/// Number of homes, for scenarios that consist of threads only.
const HOMES: Parameter = parameter(
    "homes",
    8,
    (1, 4096),
    "homes of the machine: the home of line L is L modulo this number",
);
