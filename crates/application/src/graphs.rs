//! Page rank and shortest paths on a graph that the threads share. Each thread owns a part of the vertices. It stores
//! its results for a vertex, word by word, in the memory of every host with a neighbour of that vertex. It notifies
//! each such host once per round; all threads of a host acquire the same flag.
//!
//! The graph is given or generated. In a generated graph the vertices form a ring: each has those before it and those
//! after it as neighbours, as many on each side, and random others.
//! The expected result is computed once, before the run; each thread compares its part with it.

use crate::interface::{Line, Time};
use crate::kernel::{
    mix64, Array, Barrier, Core, FirstMismatch, Granularity, Hosts, Kernel, Memory, Stream,
    WordAddress,
};
use crate::matrix_market::Edges;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// The algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GraphAlgorithm {
    /// Ranks after [`Graph::rounds`] rounds. In each round a vertex distributes its rank equally among its neighbours.
    PageRank,
    /// Lengths of the shortest paths from vertex 0; edges have different lengths.
    Paths,
}

/// Parameters of a graph kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Graph {
    /// The algorithm.
    pub algorithm: GraphAlgorithm,
    /// Hosts and threads.
    pub hosts: Hosts,
    /// The graph; generated if `None`.
    pub edges: Option<Arc<Edges>>,
    /// Number of vertices.
    pub vertices: u32,
    /// Neighbours on each side of a vertex on the ring of a generated graph.
    pub ring_neighbours: u32,
    /// Random neighbours per vertex of a generated graph, in addition to ring neighbours and those that other vertices
    /// choose.
    pub random_neighbours: u32,
    /// Rounds of page rank. Shortest paths run until they converge.
    pub rounds: u32,
    /// Bytes stored between two releases.
    pub release_bytes: u32,
    /// Computation time per edge, in picoseconds.
    pub work: Time,
}

/// Fixed-point representation of rank 1.
const RANK_ONE: u64 = 1 << 32;
/// Initial length: no path is known.
const UNREACHED: u64 = 1 << 60;

/// The kernel: its parameters and the plan that all threads share.
#[derive(Clone)]
pub struct Graphs {
    graph: Graph,
    /// Derived from the parameters, hence not part of equality and hash; shared by all threads.
    plan: Arc<Plan>,
}

impl Graphs {
    /// Creates the kernel and computes its plan.
    pub fn new(graph: Graph) -> Graphs {
        let plan = Arc::new(graph.plan());
        Graphs { graph, plan }
    }
}

impl PartialEq for Graphs {
    fn eq(&self, other: &Self) -> bool {
        self.graph == other.graph
    }
}

impl Eq for Graphs {}

impl Hash for Graphs {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.graph.hash(state);
    }
}

impl fmt::Debug for Graphs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.graph.fmt(f)
    }
}

/// Layout and expected result, common to all threads.
struct Plan {
    /// Neighbours of each vertex, in ascending order.
    neighbours: Vec<Vec<u32>>,
    /// Expected value of each vertex.
    expected: Vec<u64>,
    /// Number of rounds until the result.
    rounds: u32,
    /// `sent[from][host]`: vertices of a thread that other threads of a host need, in ascending order.
    sent: Vec<Vec<Vec<u32>>>,
    /// `copies[from][host]`: location of these vertices' values, for even and for odd rounds.
    copies: Vec<Vec<[Array; 2]>>,
    /// `needs[to][from]`: vertices that one thread needs of another, each with its index in `sent`.
    needs: Vec<Vec<Vec<(u32, u32)>>>,
    /// `flags[host][from]`: the flag that a thread raises in a host.
    flags: Vec<Vec<WordAddress>>,
    /// Barrier at the end of the run.
    barrier: Barrier,
    /// Number of lines of all memory.
    lines: Line,
}

impl Graph {
    /// Returns the neighbours of each vertex, in ascending order.
    fn neighbours(&self) -> Vec<Vec<u32>> {
        let vertex_count = self.vertices;
        let mut sets = vec![BTreeSet::new(); vertex_count as usize];
        for &(first, second) in self.edges.iter().flat_map(|edges| &edges.ends) {
            if first != second {
                sets[first as usize].insert(second);
                sets[second as usize].insert(first);
            }
        }
        let generated_vertices = if self.edges.is_some() {
            0
        } else {
            vertex_count
        };
        for vertex in 0..generated_vertices {
            let random = (0..self.random_neighbours).map(|number| {
                (mix64(u64::from(vertex) << 16 | u64::from(number)) % u64::from(vertex_count))
                    as u32
            });
            let ring = (1..=self.ring_neighbours).map(|step| (vertex + step) % vertex_count);
            for neighbour in random.chain(ring).filter(|&neighbour| neighbour != vertex) {
                sets[vertex as usize].insert(neighbour);
                sets[neighbour as usize].insert(vertex);
            }
        }
        sets.into_iter()
            .map(|set| set.into_iter().collect())
            .collect()
    }

    /// Returns the vertices of a thread.
    fn part(&self, thread: u32) -> Range<u32> {
        let part_size = self.vertices.div_ceil(self.hosts.threads);
        let end = |thread: u32| (thread * part_size).min(self.vertices);
        end(thread)..end(thread + 1)
    }

    /// Returns the thread that owns a vertex.
    fn owner(&self, vertex: u32) -> usize {
        (vertex / self.vertices.div_ceil(self.hosts.threads)) as usize
    }

    /// Computes the plan. All threads derive the same layout.
    fn plan(&self) -> Plan {
        let threads = self.hosts.threads as usize;
        let neighbours = self.neighbours();
        let hosts = self.hosts.used_count();
        let mut sent = vec![vec![Vec::new(); hosts as usize]; threads];
        let mut needs = vec![vec![Vec::new(); threads]; threads];
        for vertex in 0..self.vertices {
            let from = self.owner(vertex);
            let neighbour_vertices = neighbours[vertex as usize].iter();
            let to: BTreeSet<usize> = neighbour_vertices.map(|&other| self.owner(other)).collect();
            for to in to.into_iter().filter(|&to| to != from) {
                let sent = &mut sent[from][self.hosts.host_of(to as u32) as usize];
                if sent.last() != Some(&vertex) {
                    sent.push(vertex);
                }
                needs[to][from].push((vertex, sent.len() as u32 - 1));
            }
        }
        let mut memory = Memory::new(self.hosts.homes);
        let mut copies: Vec<Vec<[Array; 2]>> = Vec::new();
        for from in &sent {
            let to = from.iter().zip(0..).map(|(vertices, to)| {
                [(); 2].map(|()| memory.array(to, vertices.len() as u32, Granularity::Word))
            });
            copies.push(to.collect());
        }
        let (expected, rounds) = self.expected_values(&neighbours);
        Plan {
            flags: memory.flags(hosts, self.hosts.threads),
            barrier: Barrier::new(&mut memory, self.hosts.threads),
            lines: memory.lines(),
            neighbours,
            expected,
            rounds,
            sent,
            copies,
            needs,
        }
    }

    /// Returns the value of a vertex before the first round.
    fn initial_value(&self, vertex: u32) -> u64 {
        match (self.algorithm, vertex) {
            (GraphAlgorithm::PageRank, _) => RANK_ONE,
            (GraphAlgorithm::Paths, 0) => 0,
            (GraphAlgorithm::Paths, _) => UNREACHED,
        }
    }

    /// Returns the next value of a vertex, from its own and its neighbours' previous values.
    fn next_value(&self, neighbours: &[Vec<u32>], vertex: u32, values: &[u64]) -> u64 {
        let adjacent = neighbours[vertex as usize].iter();
        match self.algorithm {
            GraphAlgorithm::PageRank => {
                let shares = adjacent
                    .map(|&other| values[other as usize] / neighbours[other as usize].len() as u64);
                RANK_ONE * 15 / 100 + shares.fold(0, u64::wrapping_add) / 100 * 85
            }
            GraphAlgorithm::Paths => adjacent.fold(values[vertex as usize], |shortest, &other| {
                let edge = u64::from(vertex.min(other)) << 32 | u64::from(vertex.max(other));
                shortest.min(values[other as usize].wrapping_add(1 + mix64(edge) % 16))
            }),
        }
    }

    /// Returns the expected values and the number of rounds.
    fn expected_values(&self, neighbours: &[Vec<u32>]) -> (Vec<u64>, u32) {
        let mut values: Vec<u64> = (0..self.vertices)
            .map(|vertex| self.initial_value(vertex))
            .collect();
        let mut rounds = 0;
        loop {
            let vertices = 0..self.vertices;
            let next: Vec<u64> = vertices
                .map(|vertex| self.next_value(neighbours, vertex, &values))
                .collect();
            rounds += 1;
            let is_done = match self.algorithm {
                GraphAlgorithm::PageRank => rounds == self.rounds,
                GraphAlgorithm::Paths => next == values,
            };
            values = next;
            if is_done {
                return (values, rounds);
            }
        }
    }
}

impl Kernel for Graphs {
    fn hosts(&self) -> Hosts {
        self.graph.hosts
    }

    fn lines(&self) -> Line {
        self.plan.lines
    }

    /// In each round: sends the values of its vertices that other hosts need, releases, acquires the flags of the
    /// threads whose values it needs, and computes the next values of its vertices. Finally compares them with the
    /// expected ones.
    async fn run(self, core: Core) -> Result<(), String> {
        let Graphs { graph, plan } = self;
        let (me, host) = (
            core.number as usize,
            graph.hosts.host_of(core.number) as usize,
        );
        let hosts = 0..graph.hosts.used_count();
        let targets: Vec<u32> = hosts
            .filter(|&to| !plan.sent[me][to as usize].is_empty())
            .collect();
        let flags = plan.flags.iter().map(|host_flags| host_flags[me]).collect();
        let mut stream = Stream::new(&core, flags, graph.release_bytes);
        let mut values: Vec<u64> = (0..graph.vertices)
            .map(|vertex| graph.initial_value(vertex))
            .collect();
        let mut positions = vec![0; graph.hosts.used_count() as usize];
        let mut stored = vec![u64::MAX; graph.vertices as usize];
        core.begin().await;
        for round in 0..plan.rounds {
            // Path lengths only decrease, so a copy may be overwritten before it has been read; ranks alternate between
            // two copies. Neighbourhood is symmetric: a thread that signals a round has read the copies of the round
            // before the last.
            let copy = match graph.algorithm {
                GraphAlgorithm::PageRank => round as usize % 2,
                GraphAlgorithm::Paths => 0,
            };
            positions.fill(0);
            for vertex in graph.part(core.number) {
                let value = values[vertex as usize];
                let is_changed =
                    graph.algorithm == GraphAlgorithm::PageRank || stored[vertex as usize] != value;
                stored[vertex as usize] = value;
                for &to in &targets {
                    let (position, sent) =
                        (&mut positions[to as usize], &plan.sent[me][to as usize]);
                    if sent.get(*position as usize) == Some(&vertex) {
                        if is_changed {
                            let array = plan.copies[me][to as usize][copy];
                            stream.store(to, array, *position, value).await;
                        }
                        *position += 1;
                    }
                }
            }
            stream.release_flags(&targets).await;
            for (from, needs) in plan.needs[me].iter().enumerate() {
                if needs.is_empty() {
                    continue;
                }
                core.acquire_flag(plan.flags[host][from], round + 1).await;
                let array = plan.copies[from][host][copy];
                for &(vertex, index) in needs {
                    values[vertex as usize] = core.load_value(array, index).await;
                }
            }
            let part = graph.part(core.number);
            let edges: usize = part
                .clone()
                .map(|vertex| plan.neighbours[vertex as usize].len())
                .sum();
            core.work(graph.work * edges as Time).await;
            let next: Vec<u64> = part
                .clone()
                .map(|vertex| graph.next_value(&plan.neighbours, vertex, &values))
                .collect();
            values[part.start as usize..part.end as usize].copy_from_slice(&next);
        }
        plan.barrier.clone().wait(&core).await;
        core.end("done").await;
        let mut mismatch = FirstMismatch::default();
        for vertex in graph.part(core.number) {
            let (actual, expected) = (values[vertex as usize], plan.expected[vertex as usize]);
            mismatch.check_value(actual, expected, || {
                format!("its result for vertex {vertex}")
            });
        }
        mismatch.into_result()
    }
}
