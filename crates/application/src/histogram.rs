//! Threads count values: each counts its own, and stores its counts, a line each, at the few threads that add them up.

use crate::interface::{Line, Time};
use crate::kernel::{mixed, Array, Core, Findings, Grain, Hosts, Kernel, Memory, Place, Stream};

/// The kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Histogram {
    /// Hosts and threads.
    pub hosts: Hosts,
    /// Threads that add up, each its part of the bins.
    pub fanout: u32,
    /// Bins.
    pub bins: u32,
    /// Values of a thread in a round.
    pub values: u32,
    /// Rounds.
    pub rounds: u32,
    /// Bytes of stores between two releases.
    pub every: u32,
    /// Picoseconds of calculation for a value.
    pub work: Time,
}

/// Counts of each thread at each that adds up, in even and odd rounds; flags of the former, and those that tell them that
/// a round has been added up.
struct Plan {
    counts: Vec<Vec<[Array; 2]>>,
    flags: Vec<Vec<Place>>,
    added: Vec<Vec<Place>>,
    memory: Memory,
}

impl Histogram {
    fn plan(&self) -> Plan {
        let mut memory = Memory::new(self.hosts.homes);
        let each = self.bins.div_ceil(self.fanout);
        let threads = 0..self.hosts.threads;
        let from = |_| {
            let to = 0..self.fanout;
            to.map(|to| [(); 2].map(|()| memory.array(to, each, Grain::Line)))
                .collect()
        };
        let counts = threads.map(from).collect();
        let flags = memory.flags(self.hosts.threads);
        let added = memory.flags(self.hosts.threads);
        Plan {
            counts,
            flags,
            added,
            memory,
        }
    }

    /// The counts of a thread in a round.
    fn counts(&self, thread: u32, round: u32) -> Vec<u64> {
        let mut counts = vec![0; self.bins as usize];
        for number in 0..self.values {
            let of = (u64::from(thread) << 20 | u64::from(round)) << 32 | u64::from(number);
            counts[(mixed(of) % u64::from(self.bins)) as usize] += 1;
        }
        counts
    }
}

impl Kernel for Histogram {
    fn hosts(&self) -> Hosts {
        self.hosts
    }

    fn lines(&self) -> Line {
        self.plan().memory.lines()
    }

    async fn run(self, core: Core) -> Result<(), String> {
        let plan = self.plan();
        let (me, threads) = (core.number, self.hosts.threads);
        let owners: Vec<u32> = (0..self.fanout).collect();
        let flags = plan.flags.iter().map(|into| into[me as usize]).collect();
        let mut stream = Stream::new(&core, flags, self.every);
        let mut findings = Findings::default();
        core.begin().await;
        for round in 0..self.rounds {
            let copy = round as usize % 2;
            core.work(self.work * Time::from(self.values)).await;
            if round > 1 {
                for &to in &owners {
                    core.hear(plan.added[me as usize][to as usize], round - 1)
                        .await;
                }
            }
            for (value, bin) in self.counts(me, round).into_iter().zip(0..) {
                let to = bin % self.fanout;
                let array = plan.counts[me as usize][to as usize][copy];
                stream.store(to, array, bin / self.fanout, value).await;
            }
            stream.tell(&owners).await;
            if me >= self.fanout {
                continue;
            }
            let mut sums = vec![0_u64; self.bins as usize];
            for from in 0..threads {
                core.hear(plan.flags[me as usize][from as usize], round + 1)
                    .await;
                let array = plan.counts[from as usize][me as usize][copy];
                for bin in (me..self.bins).step_by(self.fanout as usize) {
                    let count = core.look(array, bin / self.fanout).await;
                    sums[bin as usize] = sums[bin as usize].wrapping_add(count);
                }
            }
            for from in 0..threads {
                core.tell(plan.added[from as usize][me as usize], round + 1)
                    .await;
            }
            let mut right = vec![0; self.bins as usize];
            for from in 0..threads {
                let counts = self.counts(from, round);
                right
                    .iter_mut()
                    .zip(counts)
                    .for_each(|(sum, count)| *sum += count);
            }
            for bin in (me..self.bins).step_by(self.fanout as usize) {
                let (found, right) = (sums[bin as usize], right[bin as usize]);
                findings.value(found, right, || {
                    format!("the count of bin {bin} in round {round}")
                });
            }
        }
        core.end("done").await;
        findings.come()
    }
}
