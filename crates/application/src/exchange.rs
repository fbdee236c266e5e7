//! Every thread stores to the memory of some other hosts and releases a flag after every so many stores; who acquires the
//! last of them checks the values, and passes on that those of the other hosts may check theirs.
//!
//! The hosts that a thread stores to are that after its own and those at equal distances from it. Its core's number among
//! those of its host is that of the cores that check.

use crate::interface::Line;
use crate::kernel::{mixed, Array, Core, Findings, Grain, Hosts, Kernel, Place};

/// The kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Exchange {
    /// Hosts, and threads: as many on each.
    pub hosts: Hosts,
    /// Hosts that each stores to, less than there are.
    pub fanout: u32,
    /// What a store writes.
    pub grain: Grain,
    /// Stores between two releases, to one host after the other.
    pub stores: u32,
    /// Releases, all to a flag of the first of these hosts.
    pub releases: u32,
}

/// What a thread has in the memory of a host that it stores to.
struct Block {
    flag: Place,
    values: Array,
}

impl Exchange {
    /// Stores to one host between two releases, at most.
    fn slots(&self) -> u32 {
        self.stores.div_ceil(self.fanout)
    }

    /// Lines of a block.
    fn length(&self) -> Line {
        1 + self.grain.lines(self.releases * self.slots())
    }

    /// How far a host is that is stored to: one to their number less one.
    fn distance(&self, target: u32) -> u32 {
        1 + target * ((self.hosts.homes - 1) / self.fanout)
    }

    /// What a thread has at one of the hosts that it stores to. No two have the same, as the hosts of those that store to
    /// one as the same of theirs are different.
    fn block(&self, thread: u32, target: u32) -> Block {
        let homes = self.hosts.homes;
        let home = (thread % homes + self.distance(target)) % homes;
        let number = thread / homes * self.fanout + target;
        let first = homes * (number * self.length()) + home;
        let values = Array::placed(homes, first + homes, self.grain);
        let flag = Array::placed(homes, first, Grain::Line).at(0);
        Block { flag, values }
    }

    /// The thread of the same core that stores to a thread's host as one of its own.
    fn source(&self, thread: u32, target: u32) -> u32 {
        let homes = self.hosts.homes;
        let host = (thread % homes + homes - self.distance(target)) % homes;
        thread / homes * homes + host
    }

    fn value(&self, thread: u32, number: u32) -> u64 {
        mixed(u64::from(thread) << 32 | u64::from(number))
    }
}

impl Kernel for Exchange {
    fn hosts(&self) -> Hosts {
        self.hosts
    }

    fn lines(&self) -> Line {
        self.hosts.threads * self.fanout * self.length()
    }

    async fn run(self, core: Core) -> Result<(), String> {
        let (me, slots) = (core.number, self.slots());
        let mut findings = Findings::default();
        core.begin().await;
        let own: Vec<Block> = (0..self.fanout).map(|to| self.block(me, to)).collect();
        for released in 0..self.releases {
            for store in 0..self.stores {
                let number = released * slots + store / self.fanout;
                let to = &own[(store % self.fanout) as usize];
                let value = self.value(me, released * self.stores + store);
                core.store(to.values, number, value).await;
            }
            core.tell(own[0].flag, released + 1).await;
        }
        for target in 0..self.fanout {
            let from = self.source(me, target);
            let block = self.block(from, target);
            let told = if target == 0 { self.releases } else { 1 };
            core.hear(block.flag, told).await;
            for released in 0..self.releases {
                for store in (target..self.stores).step_by(self.fanout as usize) {
                    let number = released * slots + store / self.fanout;
                    let found = core.look(block.values, number).await;
                    let right = self.value(from, released * self.stores + store);
                    findings.value(found, right, || {
                        format!(
                            "store {store} of thread {from} before release {}",
                            released + 1
                        )
                    });
                }
            }
            // The first of them passes on that the others may check.
            for other in 1..self.fanout {
                if target == 0 {
                    core.tell(self.block(from, other).flag, 1).await;
                }
            }
        }
        core.end("done").await;
        findings.come()
    }
}
