//! Caching agents and cores by kind: which ones are of a kind, and how long things take there.

use cohkit_protocol::remotes::{KindId, Remotes};
use std::ops::Range;

use crate::agents::program::ConfigurationId;
use crate::kernel::Time;
use crate::message::{Agent, Agents};
use crate::platform::{Cache, Cores, Link, Platform};

/// What a platform says of the caching agents of one kind.
#[derive(Clone, Copy)]
pub(crate) struct Described<'p> {
    pub cores: &'p Cores,
    pub cache: &'p Cache,
    pub link: &'p Link,
}

impl Described<'_> {
    /// What a platform says of each of so many kinds.
    pub fn of(platform: &Platform, kinds: usize) -> Vec<Described<'_>> {
        let first = Described {
            cores: &platform.cores,
            cache: &platform.cache,
            link: &platform.link,
        };
        let others = platform.agents.iter().map(|agents| Described {
            cores: &agents.cores,
            cache: &agents.cache,
            link: &agents.link,
        });
        std::iter::once(first).chain(others).take(kinds).collect()
    }
}

/// The caching agents of a kind, and the cores before them.
pub(crate) struct Group {
    pub caches: Agents,
    pub cores: Range<u16>,
    /// The configuration in which each of them begins with each line.
    pub begins: ConfigurationId,
    /// From a core to its cache, and back after a hit and after a fill.
    pub request: Time,
    pub hit: Time,
    pub fill: Time,
    /// Between two accesses of a core.
    pub work: Time,
    /// From a core's load to what is before its cache and back.
    pub l1_hit: Time,
    /// Between two accesses that leave a core.
    pub issue: Time,
    /// Stores of a thread that may be under way while it goes on; 0 if it waits for each.
    pub posted: u32,
    /// How many accesses before it is read a line is asked for, and most accesses of a core in flight.
    pub prefetch: u32,
    pub outstanding: u32,
    /// Whether each core has a sequence of lines of its own.
    pub streams: bool,
}

impl Group {
    /// The cache that serves a core of the kind.
    #[inline]
    fn cache_of(&self, core: u16) -> Agent {
        let place = (core - self.cores.start) % self.caches.count().max(1) as u16;
        Agent(self.caches.first().0 + place)
    }

    /// The cores that one of its caches serves.
    pub fn cores_of(&self, cache: Agent) -> impl Iterator<Item = usize> {
        let first = self.cores.start + self.caches.place(cache);
        (usize::from(first)..self.cores.end.into()).step_by(self.caches.count().max(1))
    }
}

/// All caching agents and cores of a machine.
pub(crate) struct Groups {
    /// When the next access may leave each core, where that takes time.
    leaves: Vec<Time>,
    pub groups: Vec<Group>,
}

impl Groups {
    /// Those of each kind, of which so many cores are used.
    pub fn new(
        remotes: Remotes,
        described: &[Described],
        begins: &[ConfigurationId],
        workloads: &[&crate::components::traffic::Workload],
    ) -> Groups {
        let mut cores = 0;
        let kinds = described.iter().zip(begins).zip(workloads).zip(0..);
        let groups = kinds.map(|(((of, &begins), workload), kind)| {
            let first = cores;
            cores += workload.cores as u16;
            Group {
                caches: Agents::new(remotes.numbers(KindId(kind))),
                cores: first..cores,
                begins,
                request: of.cache.request.value,
                hit: of.cache.hit.value,
                fill: of.cache.fill.value,
                work: of.cores.work.value,
                l1_hit: of.cores.l1_hit.value,
                issue: of.cores.issue.as_ref().map_or(0, |issue| issue.value),
                posted: of
                    .cores
                    .posted
                    .as_ref()
                    .map_or(0, |posted| posted.value as u32),
                prefetch: workload.prefetch,
                outstanding: workload.outstanding,
                streams: workload.pattern != crate::components::traffic::Pattern::Sequential,
            }
        });
        let groups: Vec<Group> = groups.collect();
        let timed = groups.iter().any(|group| group.issue > 0);
        Groups {
            leaves: vec![0; if timed { cores.into() } else { 0 }],
            groups,
        }
    }

    /// When an access that is there at this time leaves its core.
    #[inline(always)]
    pub fn leaves(&mut self, core: u16, at: Time) -> Time {
        if self.leaves.is_empty() {
            return at;
        }
        let issue = self.of_core(core).issue;
        let free = &mut self.leaves[usize::from(core)];
        let leaves = at.max(*free);
        *free = leaves + issue;
        leaves
    }

    #[inline(always)]
    fn find(&self, is_of: impl Fn(&Group) -> bool) -> &Group {
        match &self.groups[..] {
            [group] => group,
            groups => {
                let found = groups.iter().find(|group| is_of(group));
                found.unwrap_or(&groups[0])
            }
        }
    }

    /// The kind of a cache.
    #[inline(always)]
    pub fn of_cache(&self, cache: Agent) -> &Group {
        self.find(|group| group.caches.contains(cache))
    }

    /// The kind of the cache that serves a core.
    #[inline(always)]
    pub fn of_core(&self, core: u16) -> &Group {
        self.find(|group| group.cores.contains(&core))
    }

    /// The number of that kind.
    pub fn kind_of(&self, core: u16) -> usize {
        let place = self
            .groups
            .iter()
            .position(|group| group.cores.contains(&core));
        place.unwrap_or(0)
    }

    /// The cache that serves a core.
    #[inline]
    pub fn cache_of(&self, core: u16) -> Agent {
        self.of_core(core).cache_of(core)
    }

    /// How many caching agents there are.
    #[inline]
    pub fn caches(&self) -> u16 {
        self.groups.last().map_or(0, |group| group.caches.end())
    }

    /// How many cores are used.
    pub fn cores(&self) -> u16 {
        self.groups.last().map_or(0, |group| group.cores.end)
    }
}
