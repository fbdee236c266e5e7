//! The scenarios that ship, by name, each built from named parameters.

mod catalogue;

use crate::broadcast::Broadcast;
use crate::dma::Copies;
use crate::exchange::Exchange;
use crate::gather::Gather;
use crate::graphs::{Graph, GraphAlgorithm, Graphs};
use crate::histogram::Histogram;
use crate::interface::{Application, Scenario, Thread};
use crate::invalidation::Invalidation;
use crate::kernel::{Granularity, Hosts, KernelScenario};
use crate::locks::LockTable;
use crate::matrix_market::Edges;
use crate::messages::{Messages, Program};
use crate::padding::Padding;
use crate::prefetcher::Prefetch;
use crate::remote_writes::RemoteWrites;
use crate::rpc::Calls;
use crate::rpc_bus::BusCalls;
use crate::shared_table::SharedTable;
use crate::task_queue::TaskQueue;
use crate::transpose::Transpose;
use crate::view::{orders, View, ROWS};
use catalogue::MAX_LINES;
use cohkit_base::words::did_you_mean;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

pub use catalogue::{Parameter, ShippedScenario, SCENARIOS};

/// An operation on a scenario of any type.
pub trait Visitor {
    /// Result of the operation.
    type Output;

    /// Performs the operation on the scenario.
    fn visit<S>(self, scenario: S) -> Self::Output
    where
        S: Scenario + Clone + Send + Sync + 'static,
        S::Application: Application + Clone + Eq + Hash,
        S::Thread: Thread + Clone + Eq + Hash;
}

/// Builds the named scenario from the given parameter values, with defaults for the others, and passes it to a visitor.
///
/// # Errors
/// A sentence: the scenario or a parameter is unknown (the sentence lists the known ones), or values are invalid.
pub fn visit<V: Visitor>(
    name: &str,
    values: &BTreeMap<String, u64>,
    visitor: V,
) -> Result<V::Output, String> {
    visit_with_graph(name, values, None, visitor)
}

/// Parameters that apply only to generated graphs.
pub const GENERATED_GRAPH_PARAMETERS: [&str; 3] = ["vertices", "near", "far"];

/// Builds a scenario as [`visit`] does, on the given graph, if any. Only `pagerank` and `sssp` take a graph.
///
/// # Errors
/// As [`visit`] does; also if the scenario takes no graph, or a parameter of generated graphs is set together with a
/// graph.
pub fn visit_with_graph<V: Visitor>(
    name: &str,
    values: &BTreeMap<String, u64>,
    graph: Option<Arc<Edges>>,
    visitor: V,
) -> Result<V::Output, String> {
    let shipped = validate_values(name, values, graph.is_some())?;
    let values = Values {
        shipped,
        given: values,
    };
    Ok(match name {
        "shared-table" => visitor.visit(shared_table(&values)?),
        "prefetcher" => visitor.visit(prefetch(&values)?),
        "invalidation" => visitor.visit(invalidation(&values)?),
        "rpc" => visitor.visit(calls(&values)),
        "rpc-registers" => visitor.visit(bus_calls(&values, false)),
        "rpc-descriptors" => visitor.visit(bus_calls(&values, true)),
        "locks" => visitor.visit(lock_table(&values)?),
        "gather" => visitor.visit(Gather {
            threads: values.count("threads"),
            nodes: values.count("nodes"),
            queries: values.limit("queries"),
            cached: values.flag("cached"),
        }),
        "dma" => visitor.visit(copies(&values)?),
        "view" => visitor.visit(view(&values)?),
        "remote-writes" => visitor.visit(remote_writes(&values)?),
        "broadcast" => visitor.visit(broadcast(&values)?),
        "exchange" => visitor.visit(KernelScenario(exchange(&values)?)),
        _ => return visit_kernel(name, &values, graph, visitor),
    })
}

/// Values of a scenario's parameters, which are within their ranges. A parameter that the scenario lacks has the value 0.
struct Values<'a> {
    shipped: &'static ShippedScenario,
    /// Given values by name; the other parameters have their defaults.
    given: &'a BTreeMap<String, u64>,
}

impl Values<'_> {
    /// Value of a parameter.
    fn number(&self, name: &str) -> u64 {
        let mut parameters = self.shipped.parameters.iter();
        let default = parameters.find(|p| p.name == name).map_or(0, |p| p.default);
        self.given.get(name).copied().unwrap_or(default)
    }

    /// Value of a parameter whose range fits 32 bits, such as a number of threads or of lines.
    fn count(&self, name: &str) -> u32 {
        self.number(name) as u32
    }

    /// Value of a parameter that is 0 or 1.
    fn flag(&self, name: &str) -> bool {
        self.number(name) == 1
    }

    /// Value of a parameter for which 0 means unlimited; `None` if unlimited.
    fn limit(&self, name: &str) -> Option<u64> {
        Some(self.number(name)).filter(|&count| count > 0)
    }

    /// Hosts and threads of a kernel.
    fn hosts(&self) -> Hosts {
        Hosts {
            homes: self.count("homes"),
            threads: self.count("threads"),
        }
    }
}

/// Returns the named scenario after validation: all values are known parameters within their ranges, and a graph is
/// given only to a scenario that takes one.
fn validate_values(
    name: &str,
    values: &BTreeMap<String, u64>,
    has_graph: bool,
) -> Result<&'static ShippedScenario, String> {
    let Some(shipped) = SCENARIOS.iter().find(|shipped| shipped.name == name) else {
        let names = SCENARIOS.map(|shipped| shipped.name);
        let suggestion = did_you_mean(name, names);
        let names = names.join(", ");
        return Err(format!(
            "there is no application `{name}`; {suggestion}there are {names}"
        ));
    };
    for (parameter_name, &value) in values {
        let Some(parameter) = shipped.parameters.iter().find(|p| p.name == parameter_name) else {
            let names: Vec<&str> = shipped.parameters.iter().map(|p| p.name).collect();
            let suggestion = did_you_mean(parameter_name, names.iter().copied());
            let names = names.join(", ");
            return Err(format!(
                "{name} has no number `{parameter_name}`; {suggestion}it has {names}"
            ));
        };
        let Parameter { low, high, .. } = *parameter;
        if !(low..=high).contains(&value) {
            return Err(format!(
                "{parameter_name} must be {low} to {high}, not {value}"
            ));
        }
    }
    if has_graph {
        if !matches!(name, "pagerank" | "sssp") {
            return Err(format!("{name} does not use a graph; pagerank and sssp do"));
        }
        if let Some(parameter_name) = GENERATED_GRAPH_PARAMETERS
            .iter()
            .find(|parameter_name| values.contains_key(**parameter_name))
        {
            return Err(format!(
                "{parameter_name} applies only to a generated graph, but a graph file is given"
            ));
        }
    }
    Ok(shipped)
}

/// Scenario `shared-table`.
fn shared_table(values: &Values) -> Result<SharedTable, String> {
    let table = SharedTable {
        rows: values.count("rows"),
        contended: values.count("contended"),
        engines: 1,
        outstanding: values.count("outstanding"),
        device: values.limit("device"),
        threads: values.count("threads"),
        thread: values.limit("thread"),
        cached: values.flag("cached"),
    };
    match table.has_nothing_to_increment() {
        true => Err(format!(
            "the device has to make {} increments, but {} per thousand rows is zero rows of {}",
            values.number("device"),
            values.number("contended"),
            values.number("rows")
        )),
        false => Ok(table),
    }
}

/// Scenario `prefetcher`.
fn prefetch(values: &Values) -> Result<Prefetch, String> {
    let block = values.count("block");
    if !block.is_power_of_two() {
        return Err(format!("block must be a power of two, not {block}"));
    }
    Ok(Prefetch {
        lines: values.count("lines"),
        blocks: values.count("blocks"),
        block,
        burst: values.count("burst"),
        threads: values.count("threads"),
        reads: values.limit("reads"),
        written: values.count("written"),
        hints: values.count("hints"),
    })
}

/// Scenario `invalidation`.
fn invalidation(values: &Values) -> Result<Invalidation, String> {
    let cached = values.flag("cached");
    if cached && values.number("after") == 0 {
        return Err(
            "after must be given when the device caches the memory: no thread signals the start"
                .into(),
        );
    }
    if cached && values.number("outstanding") > 4095 {
        return Err("outstanding must be 1 to 4095 when the device caches the memory".into());
    }
    Ok(Invalidation {
        lines: values.count("lines"),
        outstanding: values.count("outstanding"),
        dirty: values.flag("dirty"),
        held: values.flag("held"),
        // The parameter is in nanoseconds.
        start_delay: 1000 * values.number("after"),
        cached,
    })
}

/// Scenario `rpc`.
fn calls(values: &Values) -> Calls {
    let contexts = values.count("contexts");
    let payload = values.count("payload");
    Calls {
        hints: values.count("hints"),
        ..Calls::new(contexts, payload, values.limit("calls"))
    }
}

/// Scenario `rpc-descriptors` if `descriptors` is true, else `rpc-registers`.
fn bus_calls(values: &Values, descriptors: bool) -> BusCalls {
    BusCalls {
        contexts: values.count("contexts"),
        words: values.count("words"),
        calls: values.limit("calls"),
        descriptors,
    }
}

/// Scenario `locks`.
fn lock_table(values: &Values) -> Result<LockTable, String> {
    let cached = values.flag("cached");
    if cached && values.flag("messages") {
        return Err("cached must be 0 when threads access the table by messages".into());
    }
    if cached && values.number("device") == 0 {
        return Err("device must be 1 to 4096 when the device caches the memory".into());
    }
    if cached && values.flag("words") {
        return Err("words must be 0 when the device caches the memory".into());
    }
    Ok(LockTable {
        cached,
        records: values.count("records"),
        threads: values.count("threads"),
        device: values.count("device"),
        // The parameters are in nanoseconds.
        hold: 1000 * values.number("hold"),
        pause: 1000 * values.number("pause"),
        transactions: values.limit("transactions"),
        messages: values.flag("messages"),
        words: values.flag("words"),
    })
}

/// Scenario `dma`.
fn copies(values: &Values) -> Result<Copies, String> {
    // A descriptor has 4 words, and its copy two buffers.
    let words_per_thread = values.number("descriptors") * (4 + 2 * values.number("words"));
    if words_per_thread.saturating_mul(values.number("threads")) > u32::MAX.into() {
        return Err("descriptors and buffers take more words than the CPU's memory has".into());
    }
    Ok(Copies {
        threads: values.count("threads"),
        words: values.count("words"),
        descriptors: values.count("descriptors"),
        rings: values.limit("rings"),
        interrupts: values.flag("interrupts"),
    })
}

/// Scenario `view`.
fn view(values: &Values) -> Result<View, String> {
    let (updates, transactions) = (values.number("updates"), values.number("transactions"));
    let rows = values.number("scale") * ROWS;
    let appended = updates.saturating_mul(transactions);
    if appended > rows {
        return Err(format!(
            "{transactions} transactions of {updates} updates append {appended} rows, of {rows} at this scale"
        ));
    }
    Ok(View {
        orders: orders(values.number("scale")),
        updates,
        transactions,
        incremental: values.flag("incremental"),
        words: values.number("words"),
        outstanding: values.count("outstanding") as usize,
        in_host: values.flag("host"),
    })
}

/// Rejects stores to more than [`MAX_LINES`] lines.
fn check_stored_lines(lines: u64) -> Result<(), String> {
    match lines > MAX_LINES {
        true => Err(format!(
            "the stores cover {lines} lines, but the maximum is {MAX_LINES}"
        )),
        false => Ok(()),
    }
}

/// Scenario `remote-writes`.
fn remote_writes(values: &Values) -> Result<RemoteWrites, String> {
    let (homes, fanout) = (values.number("homes"), values.number("fanout"));
    // With one home, that home serves as the target although it is the writer's own.
    let max_fanout = homes.saturating_sub(1).max(1);
    if fanout > max_fanout {
        return Err(format!(
            "fanout must be 1 to {max_fanout} with {homes} homes, not {fanout}"
        ));
    }
    // Each home has a line for the flag, and one for each store of each release.
    let slots = values.number("stores").div_ceil(fanout);
    check_stored_lines(homes * (1 + values.number("releases") * slots))?;
    Ok(RemoteWrites {
        homes: values.count("homes"),
        fanout: values.count("fanout"),
        words: values.number("words") as u16,
        stores: values.count("stores"),
        releases: values.count("releases"),
        releases_per_check: values.count("every"),
    })
}

/// Scenario `broadcast`.
fn broadcast(values: &Values) -> Result<Broadcast, String> {
    let Hosts { homes, threads } = values.hosts();
    if threads < homes || homes < 2 {
        return Err(format!(
            "broadcast needs at least two homes, and at least as many threads as homes, not {homes} and {threads}"
        ));
    }
    Ok(Broadcast {
        homes,
        threads,
        rounds: values.count("rounds"),
    })
}

/// Kernel of the scenario `exchange`.
fn exchange(values: &Values) -> Result<Exchange, String> {
    let (homes, threads) = (values.number("homes"), values.number("threads"));
    let fanout = values.number("fanout");
    if homes < 2 || threads % homes != 0 {
        return Err(format!(
            "exchange needs at least two homes, and equally many threads on each host, not {homes} and {threads}"
        ));
    }
    if fanout >= homes {
        return Err(format!(
            "fanout must be 1 to {} with {homes} homes, not {fanout}",
            homes - 1
        ));
    }
    let blocks = values.number("releases") * values.number("stores").div_ceil(fanout);
    check_stored_lines(threads * fanout * (1 + blocks))?;
    Ok(Exchange {
        hosts: values.hosts(),
        fanout: values.count("fanout"),
        granularity: match values.flag("lines") {
            true => Granularity::Line,
            false => Granularity::Word,
        },
        stores: values.count("stores"),
        releases: values.count("releases"),
    })
}

/// Builds the scenario of a kernel that computes. All of them have a time of calculation for each value.
fn visit_kernel<V: Visitor>(
    name: &str,
    values: &Values,
    graph: Option<Arc<Edges>>,
    visitor: V,
) -> Result<V::Output, String> {
    let hosts = values.hosts();
    let (release_bytes, work) = (values.count("release"), values.number("work"));
    let needs_power_of_two = matches!(
        name,
        "task-queue" | "mocfe" | "cmc2d" | "bigfft" | "crystal-router"
    );
    if needs_power_of_two && !hosts.threads.is_power_of_two() {
        return Err(format!(
            "threads must be a power of two, not {}",
            hosts.threads
        ));
    }
    Ok(match name {
        "pagerank" => {
            let graph = shared_graph(GraphAlgorithm::PageRank, values, graph);
            visitor.visit(KernelScenario(Graphs::new(graph)))
        }
        "sssp" => {
            let graph = shared_graph(GraphAlgorithm::Paths, values, graph);
            visitor.visit(KernelScenario(Graphs::new(graph)))
        }
        "padding" => visitor.visit(KernelScenario(Padding {
            hosts,
            rows: values.count("rows"),
            columns: values.count("columns"),
            pad: values.count("pad"),
            part: values.count("part"),
            block: values.count("block"),
            work,
        })),
        "task-queue" => visitor.visit(KernelScenario(TaskQueue {
            hosts,
            tasks: values.count("tasks"),
            slots: values.count("slots"),
            max_lines: values.count("most"),
            bins: values.count("bins"),
            work,
        })),
        "histogram" => visitor.visit(KernelScenario(histogram(values)?)),
        "transpose" => visitor.visit(KernelScenario(Transpose {
            hosts,
            size: values.count("size"),
            rounds: values.count("rounds"),
            release_bytes,
            work,
        })),
        _ => visitor.visit(KernelScenario(Messages {
            hosts,
            program: match name {
                "mocfe" => Program::Mocfe,
                "cmc2d" => Program::Cmc2d,
                "bigfft" => Program::BigFft,
                _ => Program::Router,
            },
            steps: values.count("steps"),
            work,
        })),
    })
}

/// Graph of `pagerank` and `sssp`: the given one, or one that is generated from the parameters.
fn shared_graph(algorithm: GraphAlgorithm, values: &Values, edges: Option<Arc<Edges>>) -> Graph {
    Graph {
        algorithm,
        hosts: values.hosts(),
        vertices: match &edges {
            Some(edges) => edges.vertices,
            None => values.count("vertices"),
        },
        edges,
        ring_neighbours: values.count("near"),
        random_neighbours: values.count("far"),
        rounds: values.count("rounds"),
        release_bytes: values.count("release"),
        work: values.number("work"),
    }
}

/// Kernel of the scenario `histogram`.
fn histogram(values: &Values) -> Result<Histogram, String> {
    let (hosts, fanout) = (values.hosts(), values.count("fanout"));
    if fanout > hosts.threads {
        return Err(format!(
            "fanout must be 1 to {} with this number of threads, not {fanout}",
            hosts.threads
        ));
    }
    Ok(Histogram {
        hosts,
        fanout,
        bins: values.count("bins"),
        values: values.count("values"),
        rounds: values.count("rounds"),
        atomic: values.flag("atomic"),
        release_bytes: values.count("release"),
        work: values.number("work"),
    })
}
