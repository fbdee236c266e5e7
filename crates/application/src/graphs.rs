//! Page rank and shortest paths on a graph that the threads share: each has a part of the vertices, and stores what it finds
//! of a vertex in the memory of every host with a neighbour of it, word by word, and tells that host once a round: its
//! threads all acquire the same flag.
//!
//! The graph is given, or generated: vertices on a ring have the two before and the two behind as neighbours, and others
//! anywhere.
//! What has to come out is calculated beforehand, once, and each thread compares its part with that.

use crate::interface::{Line, Time};
use crate::kernel::{
    mixed, Array, Barrier, Core, Findings, Grain, Hosts, Kernel, Memory, Place, Stream,
};
use crate::matrix_market::Edges;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// What is calculated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum What {
    /// The rank of vertices after so many rounds: each gives what it has to its neighbours in equal parts.
    PageRank,
    /// The length of the shortest path from vertex 0, edges being of different lengths.
    Paths,
}

/// What is calculated, and of which graph.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Graph {
    /// What is calculated.
    pub what: What,
    /// Hosts and threads.
    pub hosts: Hosts,
    /// The graph; if none is given, one is generated.
    pub edges: Option<Arc<Edges>>,
    /// Vertices.
    pub vertices: u32,
    /// Neighbours anywhere that each vertex is given, beside those on the ring and those that are given it.
    pub far: u32,
    /// Rounds of page rank; paths take as many as they need.
    pub rounds: u32,
    /// Bytes of stores between two releases.
    pub every: u32,
    /// Picoseconds of calculation for an edge.
    pub work: Time,
}

/// A rank of one.
const ONE: u64 = 1 << 32;
/// The length of no path.
const FAR: u64 = 1 << 60;

/// The kernel: a graph, and what all threads know of it.
#[derive(Clone)]
pub struct Graphs {
    of: Graph,
    /// It follows from the rest, and all threads share it.
    plan: Arc<Plan>,
}

impl Graphs {
    /// Plans the calculation.
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

/// What all threads know.
struct Plan {
    neighbours: Vec<Vec<u32>>,
    /// What has to come out, and the rounds that it takes.
    right: Vec<u64>,
    rounds: u32,
    /// `sent[from][host]`: the vertices of a thread that others of a host need, in order.
    sent: Vec<Vec<Vec<u32>>>,
    /// `copies[from][host]`: where they are, in even and in odd rounds.
    copies: Vec<Vec<[Array; 2]>>,
    /// `needs[to][from]`: those that one thread needs, each with its place among what its host is sent.
    needs: Vec<Vec<Vec<(u32, u32)>>>,
    /// `flags[host][from]`.
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
            (What::PageRank, _) => ONE,
            (What::Paths, 0) => 0,
            (What::Paths, _) => FAR,
        }
    }

    /// What becomes of a vertex, of what it and its neighbours had.
    fn next(&self, neighbours: &[Vec<u32>], vertex: u32, had: &[u64]) -> u64 {
        let around = neighbours[vertex as usize].iter();
        match self.what {
            What::PageRank => {
                let given = around
                    .map(|&other| had[other as usize] / neighbours[other as usize].len() as u64);
                ONE * 15 / 100 + given.fold(0, u64::wrapping_add) / 100 * 85
            }
            What::Paths => around.fold(had[vertex as usize], |least, &other| {
                let edge = u64::from(vertex.min(other)) << 32 | u64::from(vertex.max(other));
                least.min(had[other as usize].wrapping_add(1 + mixed(edge) % 16))
            }),
        }
    }

    /// What has to come out, and the rounds that it takes.
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
                What::PageRank => rounds == self.rounds,
                What::Paths => next == has,
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
            // Lengths only fall, so a copy may be overwritten before it has been read; ranks have two copies. Neighbours
            // are so both ways: who has told of a round has read the copies of the round before the last.
            let copy = match of.what {
                What::PageRank => round as usize % 2,
                What::Paths => 0,
            };
            places.fill(0);
            for vertex in of.part(core.number) {
                let value = has[vertex as usize];
                let new = of.what == What::PageRank || stored[vertex as usize] != value;
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
                core.hear(plan.flags[host][from], round + 1).await;
                let array = plan.copies[from][host][copy];
                for &(vertex, at) in needs {
                    has[vertex as usize] = core.look(array, at).await;
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
        let mut findings = Findings::default();
        for vertex in of.part(core.number) {
            let (found, right) = (has[vertex as usize], plan.right[vertex as usize]);
            findings.value(found, right, || format!("what it finds of vertex {vertex}"));
        }
        findings.come()
    }
}
