//! Exchange of stores: every thread stores to the memory of some other hosts and releases a flag after a fixed number
//! of stores. A thread that acquires the last flag checks the values. It then notifies the threads on the other hosts
//! that were written, which may check theirs.
//!
//! A thread stores to hosts at equal distances from its own, the first being the next host. The cores that check have
//! the same number within their host as the thread's core.

use crate::interface::Line;
use crate::kernel::{mix64, Array, Core, FirstMismatch, Granularity, Hosts, Kernel, WordAddress};

/// Parameters of the exchange.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Exchange {
    /// Hosts and threads, with the same number of threads on each host.
    pub hosts: Hosts,
    /// Number of hosts that each thread stores to, less than the number of hosts.
    pub fanout: u32,
    /// Granularity of a store.
    pub granularity: Granularity,
    /// Stores between two releases, distributed over the hosts in turn.
    pub stores: u32,
    /// Number of releases, all to a flag in the first of these hosts.
    pub releases: u32,
}

/// Memory of a thread in a host that it stores to.
struct Block {
    /// Flag in the block's first line.
    flag: WordAddress,
    /// Values of all stores, in order.
    values: Array,
}

impl Exchange {
    /// Maximum number of stores to one host between two releases.
    fn slots(&self) -> u32 {
        self.stores.div_ceil(self.fanout)
    }

    /// Lines per block.
    fn length(&self) -> Line {
        1 + self.granularity.lines(self.releases * self.slots())
    }

    /// Distance of a target host, 1 to the number of homes minus 1.
    fn distance(&self, target: u32) -> u32 {
        1 + target * ((self.hosts.homes - 1) / self.fanout)
    }

    /// Returns the block of a thread at one of its targets. Blocks do not overlap: threads of one core number that
    /// store to the same host do so as different targets.
    fn block(&self, thread: u32, target: u32) -> Block {
        let homes = self.hosts.homes;
        let home = (thread % homes + self.distance(target)) % homes;
        let number = thread / homes * self.fanout + target;
        let first = homes * (number * self.length()) + home;
        let values = Array::starting_at(homes, first + homes, self.granularity);
        let flag = Array::starting_at(homes, first, Granularity::Line).at(0);
        Block { flag, values }
    }

    /// Returns the thread with the same core number that stores to this thread's host as its target number `target`.
    fn source(&self, thread: u32, target: u32) -> u32 {
        let homes = self.hosts.homes;
        let host = (thread % homes + homes - self.distance(target)) % homes;
        thread / homes * homes + host
    }

    /// Returns the value of a thread's store.
    fn value(&self, thread: u32, number: u32) -> u64 {
        mix64(u64::from(thread) << 32 | u64::from(number))
    }
}

impl Kernel for Exchange {
    fn hosts(&self) -> Hosts {
        self.hosts
    }

    fn lines(&self) -> Line {
        self.hosts.threads * self.fanout * self.length()
    }

    /// Stores and releases to `fanout` targets, then acquires the flags of as many sources and checks their values.
    /// The thread that has acquired a source's releases passes them on to the source's other targets.
    async fn run(self, core: Core) -> Result<(), String> {
        let (me, slots) = (core.number, self.slots());
        let mut mismatch = FirstMismatch::default();
        core.begin().await;
        let own_blocks: Vec<Block> = (0..self.fanout)
            .map(|target| self.block(me, target))
            .collect();
        for released in 0..self.releases {
            for store in 0..self.stores {
                let number = released * slots + store / self.fanout;
                let target_block = &own_blocks[(store % self.fanout) as usize];
                let value = self.value(me, released * self.stores + store);
                core.store(target_block.values, number, value).await;
            }
            core.release_flag(own_blocks[0].flag, released + 1).await;
        }
        for target in 0..self.fanout {
            let source = self.source(me, target);
            let block = self.block(source, target);
            let count = if target == 0 { self.releases } else { 1 };
            core.acquire_flag(block.flag, count).await;
            for released in 0..self.releases {
                for store in (target..self.stores).step_by(self.fanout as usize) {
                    let number = released * slots + store / self.fanout;
                    let actual = core.load_value(block.values, number).await;
                    let expected = self.value(source, released * self.stores + store);
                    mismatch.check_value(actual, expected, || {
                        format!(
                            "store {store} of thread {source} before release {}",
                            released + 1
                        )
                    });
                }
            }
            // The thread that has acquired the last flag releases the other targets to check.
            for further_target in 1..self.fanout {
                if target == 0 {
                    core.release_flag(self.block(source, further_target).flag, 1)
                        .await;
                }
            }
        }
        core.end("done").await;
        mismatch.into_result()
    }
}
