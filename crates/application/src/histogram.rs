//! Histogram: each thread counts its own values. It stores its counts, one per line, at the few threads that add them
//! up, or adds them to shared sums there by atomic accesses.

use crate::interface::{Line, Time};
use crate::kernel::{
    mix64, Array, Barrier, Core, FirstMismatch, Granularity, Hosts, Kernel, Memory, Stream,
    WordAddress,
};

/// Parameters of the histogram.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Histogram {
    /// Hosts and threads.
    pub hosts: Hosts,
    /// Number of threads that add up; each owns a part of the bins.
    pub fanout: u32,
    /// Number of bins.
    pub bins: u32,
    /// Values per thread and round.
    pub values: u32,
    /// Number of rounds.
    pub rounds: u32,
    /// True if threads add their counts to the sums themselves, by atomic accesses.
    pub atomic: bool,
    /// Bytes stored between two releases.
    pub release_bytes: u32,
    /// Computation time per value, in picoseconds.
    pub work: Time,
}

/// Memory layout, the same for all threads.
struct Plan {
    /// `counts[thread][owner]`: counts for even and odd rounds; with atomic accesses, `counts[0]` holds the sums.
    counts: Vec<Vec<[Array; 2]>>,
    /// `flags[to][from]`: the counts of a thread are stored.
    flags: Vec<Vec<WordAddress>>,
    /// `sums_ready[to][from]`: an owner has added up a round.
    sums_ready: Vec<Vec<WordAddress>>,
    /// Barrier after the sums have been cleared.
    barrier: Barrier,
    memory: Memory,
}

impl Histogram {
    /// Computes the layout.
    fn plan(&self) -> Plan {
        let mut memory = Memory::new(self.hosts.homes);
        let bins_per_owner = self.bins.div_ceil(self.fanout);
        let threads = 0..if self.atomic { 1 } else { self.hosts.threads };
        let owner_arrays = |_| {
            let to = 0..self.fanout;
            to.map(|to| [(); 2].map(|()| memory.array(to, bins_per_owner, Granularity::Line)))
                .collect()
        };
        let counts = threads.map(owner_arrays).collect();
        let threads = self.hosts.threads;
        let flags = memory.flags(threads, threads);
        let sums_ready = memory.flags(threads, threads);
        let barrier = Barrier::new(&mut memory, self.hosts.threads);
        Plan {
            counts,
            flags,
            sums_ready,
            barrier,
            memory,
        }
    }

    /// Returns the counts of a thread in a round.
    fn counts(&self, thread: u32, round: u32) -> Vec<u64> {
        let mut counts = vec![0; self.bins as usize];
        for number in 0..self.values {
            let value_number =
                (u64::from(thread) << 20 | u64::from(round)) << 32 | u64::from(number);
            counts[(mix64(value_number) % u64::from(self.bins)) as usize] += 1;
        }
        counts
    }

    /// Returns the counts of all threads in a round. With atomic accesses, they include all earlier rounds of the same
    /// parity, which share the same sums.
    fn all_counts(&self, round: u32) -> Vec<u64> {
        let first_round = if self.atomic { round % 2 } else { round };
        let mut sums = vec![0; self.bins as usize];
        for round in (first_round..=round).step_by(2) {
            for thread in 0..self.hosts.threads {
                let counts = self.counts(thread, round);
                sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
            }
        }
        sums
    }

    /// Sums the thread's part of the bins, once the flags of all threads show that their counts are stored.
    async fn sum_counts(&self, core: &Core, plan: &Plan, round: u32, mismatch: &mut FirstMismatch) {
        let (me, threads) = (core.number, self.hosts.threads);
        let bins = || (me..self.bins).step_by(self.fanout as usize);
        let mut sums = vec![0_u64; self.bins as usize];
        for from in 0..threads {
            core.acquire_flag(plan.flags[me as usize][from as usize], round + 1)
                .await;
            // The shared sums are complete only after the last thread's flag.
            if self.atomic && from + 1 < threads {
                continue;
            }
            let array = plan.array(from, me, round);
            for bin in bins() {
                let number = bin / self.fanout;
                let count = match self.atomic {
                    true => core.load(array.at(number)).await,
                    false => core.load_value(array, number).await,
                };
                sums[bin as usize] = sums[bin as usize].wrapping_add(count);
            }
        }
        for from in 0..threads {
            core.release_flag(plan.sums_ready[from as usize][me as usize], round + 1)
                .await;
        }
        let expected = self.all_counts(round);
        for bin in bins() {
            let (actual, expected) = (sums[bin as usize], expected[bin as usize]);
            mismatch.check_value(actual, expected, || {
                format!("the count of bin {bin} in round {round}")
            });
        }
    }
}

impl Plan {
    /// Returns the location of the counts of thread `from` at the thread `to` that adds them up.
    fn array(&self, from: u32, to: u32, round: u32) -> Array {
        let from = &self.counts[from as usize % self.counts.len()];
        from[to as usize][round as usize % 2]
    }
}

impl Kernel for Histogram {
    fn hosts(&self) -> Hosts {
        self.hosts
    }

    fn lines(&self) -> Line {
        self.plan().memory.lines()
    }

    /// In each round: adds its counts to the bins of their owners, by atomic additions or by stores to arrays of its
    /// own, and releases. An owner then sums the counts of all threads and checks them.
    async fn run(self, core: Core) -> Result<(), String> {
        let mut plan = self.plan();
        let me = core.number;
        let owners: Vec<u32> = (0..self.fanout).collect();
        let flags = plan.flags.iter().map(|flags| flags[me as usize]).collect();
        let mut stream = Stream::new(&core, flags, self.release_bytes);
        let mut mismatch = FirstMismatch::default();
        if self.atomic && me < self.fanout {
            for array in plan.counts[0][me as usize] {
                for number in 0..self.bins.div_ceil(self.fanout) {
                    core.store(array, number, 0).await;
                }
            }
        }
        if self.atomic {
            plan.barrier.wait(&core).await;
        }
        core.begin().await;
        for round in 0..self.rounds {
            core.work(self.work * Time::from(self.values)).await;
            if round > 1 {
                for &to in &owners {
                    core.acquire_flag(plan.sums_ready[me as usize][to as usize], round - 1)
                        .await;
                }
            }
            for (value, bin) in self.counts(me, round).into_iter().zip(0..) {
                let (to, number) = (bin % self.fanout, bin / self.fanout);
                let array = plan.array(me, to, round);
                match self.atomic {
                    true => _ = core.add(array.at(number), value).await,
                    false => stream.store(to, array, number, value).await,
                }
            }
            stream.release_flags(&owners).await;
            if me < self.fanout {
                self.sum_counts(&core, &plan, round, &mut mismatch).await;
            }
        }
        core.end("done").await;
        mismatch.into_result()
    }
}
