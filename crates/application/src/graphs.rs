//! Page rank and shortest paths on a graph that the threads share. Each thread owns a part of the vertices. It stores
//! its results for a vertex, word by word, in the memory of every host with a neighbour of that vertex. It notifies
//! each such host once per round; all threads of a host acquire the same flag.
//!
//! The graph is given or generated. In a generated graph the vertices form a ring: each has the two before it and the
//! two after it as neighbours, and random others.
//! The expected result is computed once, before the run; each thread compares its part with it.

use crate::interface::{Line, Time};
use crate::kernel::{
    mixed, Array, Barrier, Core, FirstMismatch, Grain, Hosts, Kernel, Memory, Place, Stream,
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
    pub what: GraphAlgorithm,
    /// Hosts and threads.
    pub hosts: Hosts,
    /// The graph; generated if `None`.
    pub edges: Option<Arc<Edges>>,
    /// Number of vertices.
    pub vertices: u32,
    /// Random neighbours per vertex of a generated graph, in addition to ring neighbours and those that other vertices
    /// choose.
    pub far: u32,
    /// Rounds of page rank. Shortest paths run until they converge.
    pub rounds: u32,
    /// Bytes stored between two releases.
    pub every: u32,
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
    of: Graph,
    /// Derived from the parameters, hence not part of equality and hash; shared by all threads.
    plan: Arc<Plan>,
}

impl Graphs {
    /// Creates the kernel and computes its plan.
    pub fn new(of: Graph) -> Graphs {
        let plan = Arc::new(of.plan());
        Graphs { of, plan }
    }
}

impl PartialEq for Graphs {
    fn eq(&self, other: &Self) -> bool {
        self.of == other.of
    }
}

impl Eq for Graphs {}

impl Hash for Graphs {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.hash(state);
    }
}

impl fmt::Debug for Graphs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of.fmt(f)
    }
}

/// Layout and expected result, common to all threads.
struct Plan {
    neighbours: Vec<Vec<u32>>,
    /// The expected value of each vertex, and the number of rounds.
    right: Vec<u64>,
    rounds: u32,
    /// `sent[from][host]`: vertices of a thread that other threads of a host need, in ascending order.
    sent: Vec<Vec<Vec<u32>>>,
    /// `copies[from][host]`: location of these vertices' values, for even and for odd rounds.
    copies: Vec<Vec<[Array; 2]>>,
    /// `needs[to][from]`: vertices that one thread needs of another, each with its index in `sent`.
    needs: Vec<Vec<Vec<(u32, u32)>>>,
    /// `flags[host][from]`: the flag that a thread raises in a host.
    flags: Vec<Vec<Place>>,
    barrier: Barrier,
    lines: Line,
}

impl Graph {
    fn neighbours(&self) -> Vec<Vec<u32>> {
        let n = self.vertices;
        let mut sets = vec![BTreeSet::new(); n as usize];
        for &(one, other) in self.edges.iter().flat_map(|edges| &edges.ends) {
            if one != other {
                sets[one as usize].insert(other);
                sets[other as usize].insert(one);
            }
        }
        let generated = if self.edges.is_some() { 0 } else { n };
        for vertex in 0..generated {
            let far = (0..self.far).map(|number| {
                (mixed(u64::from(vertex) << 16 | u64::from(number)) % u64::from(n)) as u32
            });
            let near = [(vertex + 1) % n, (vertex + 2) % n];
            for other in far.chain(near).filter(|&other| other != vertex) {
                sets[vertex as usize].insert(other);
                sets[other as usize].insert(vertex);
            }
        }
        sets.into_iter()
            .map(|set| set.into_iter().collect())
            .collect()
    }

    fn part(&self, thread: u32) -> Range<u32> {
        let each = self.vertices.div_ceil(self.hosts.threads);
        let end = |thread: u32| (thread * each).min(self.vertices);
        end(thread)..end(thread + 1)
    }

    fn owner(&self, vertex: u32) -> usize {
        (vertex / self.vertices.div_ceil(self.hosts.threads)) as usize
    }

    fn plan(&self) -> Plan {
        let threads = self.hosts.threads as usize;
        let neighbours = self.neighbours();
        let hosts = self.hosts.used();
        let mut sent = vec![vec![Vec::new(); hosts as usize]; threads];
        let mut needs = vec![vec![Vec::new(); threads]; threads];
        for vertex in 0..self.vertices {
            let from = self.owner(vertex);
            let others = neighbours[vertex as usize].iter();
            let to: BTreeSet<usize> = others.map(|&other| self.owner(other)).collect();
            for to in to.into_iter().filter(|&to| to != from) {
                let sent = &mut sent[from][self.hosts.of(to as u32) as usize];
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
                [(); 2].map(|()| memory.array(to, vertices.len() as u32, Grain::Word))
            });
            copies.push(to.collect());
        }
        let (right, rounds) = self.right(&neighbours);
        Plan {
            flags: memory.flags(hosts, self.hosts.threads),
            barrier: Barrier::new(&mut memory, self.hosts.threads),
            lines: memory.lines(),
            neighbours,
            right,
            rounds,
            sent,
            copies,
            needs,
        }
    }

    fn start(&self, vertex: u32) -> u64 {
        match (self.what, vertex) {
            (GraphAlgorithm::PageRank, _) => RANK_ONE,
            (GraphAlgorithm::Paths, 0) => 0,
            (GraphAlgorithm::Paths, _) => UNREACHED,
        }
    }

    /// Returns the next value of a vertex, from its own and its neighbours' previous values.
    fn next(&self, neighbours: &[Vec<u32>], vertex: u32, had: &[u64]) -> u64 {
        let around = neighbours[vertex as usize].iter();
        match self.what {
            GraphAlgorithm::PageRank => {
                let given = around
                    .map(|&other| had[other as usize] / neighbours[other as usize].len() as u64);
                RANK_ONE * 15 / 100 + given.fold(0, u64::wrapping_add) / 100 * 85
            }
            GraphAlgorithm::Paths => around.fold(had[vertex as usize], |least, &other| {
                let edge = u64::from(vertex.min(other)) << 32 | u64::from(vertex.max(other));
                least.min(had[other as usize].wrapping_add(1 + mixed(edge) % 16))
            }),
        }
    }

    /// Returns the expected values and the number of rounds.
    fn right(&self, neighbours: &[Vec<u32>]) -> (Vec<u64>, u32) {
        let mut has: Vec<u64> = (0..self.vertices)
            .map(|vertex| self.start(vertex))
            .collect();
        let mut rounds = 0;
        loop {
            let vertices = 0..self.vertices;
            let next: Vec<u64> = vertices.map(|of| self.next(neighbours, of, &has)).collect();
            rounds += 1;
            let ends = match self.what {
                GraphAlgorithm::PageRank => rounds == self.rounds,
                GraphAlgorithm::Paths => next == has,
            };
            has = next;
            if ends {
                return (has, rounds);
            }
        }
    }
}

impl Kernel for Graphs {
    fn hosts(&self) -> Hosts {
        self.of.hosts
    }

    fn lines(&self) -> Line {
        self.plan.lines
    }

    async fn run(self, core: Core) -> Result<(), String> {
        let Graphs { of, plan } = self;
        let (me, host) = (core.number as usize, of.hosts.of(core.number) as usize);
        let hosts = 0..of.hosts.used();
        let with: Vec<u32> = hosts
            .filter(|&to| !plan.sent[me][to as usize].is_empty())
            .collect();
        let flags = plan.flags.iter().map(|into| into[me]).collect();
        let mut stream = Stream::new(&core, flags, of.every);
        let mut has: Vec<u64> = (0..of.vertices).map(|vertex| of.start(vertex)).collect();
        let mut places = vec![0; of.hosts.used() as usize];
        let mut stored = vec![u64::MAX; of.vertices as usize];
        core.begin().await;
        for round in 0..plan.rounds {
            // Path lengths only decrease, so a copy may be overwritten before it has been read; ranks alternate between
            // two copies. Neighbourhood is symmetric: a thread that signals a round has read the copies of the round
            // before the last.
            let copy = match of.what {
                GraphAlgorithm::PageRank => round as usize % 2,
                GraphAlgorithm::Paths => 0,
            };
            places.fill(0);
            for vertex in of.part(core.number) {
                let value = has[vertex as usize];
                let new = of.what == GraphAlgorithm::PageRank || stored[vertex as usize] != value;
                stored[vertex as usize] = value;
                for &to in &with {
                    let (at, sent) = (&mut places[to as usize], &plan.sent[me][to as usize]);
                    if sent.get(*at as usize) == Some(&vertex) {
                        if new {
                            let array = plan.copies[me][to as usize][copy];
                            stream.store(to, array, *at, value).await;
                        }
                        *at += 1;
                    }
                }
            }
            stream.tell(&with).await;
            for (from, needs) in plan.needs[me].iter().enumerate() {
                if needs.is_empty() {
                    continue;
                }
                core.acquire_flag(plan.flags[host][from], round + 1).await;
                let array = plan.copies[from][host][copy];
                for &(vertex, at) in needs {
                    has[vertex as usize] = core.load_value(array, at).await;
                }
            }
            let mine = of.part(core.number);
            let edges: usize = mine
                .clone()
                .map(|vertex| plan.neighbours[vertex as usize].len())
                .sum();
            core.work(of.work * edges as Time).await;
            let next: Vec<u64> = mine
                .clone()
                .map(|vertex| of.next(&plan.neighbours, vertex, &has))
                .collect();
            has[mine.start as usize..mine.end as usize].copy_from_slice(&next);
        }
        plan.barrier.clone().wait(&core).await;
        core.end("done").await;
        let mut findings = FirstMismatch::default();
        for vertex in of.part(core.number) {
            let (found, right) = (has[vertex as usize], plan.right[vertex as usize]);
            findings.value(found, right, || format!("its result for vertex {vertex}"));
        }
        findings.into_result()
    }
}
