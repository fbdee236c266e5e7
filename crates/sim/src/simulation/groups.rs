//! Caching agents and cores by kind: members and latencies.

use cohkit_protocol::controller::Access;
use cohkit_protocol::remotes::{KindId, Remotes};
use std::ops::Range;

use crate::agents::program::ConfigurationId;
use crate::kernel::Time;
use crate::message::{Agent, Agents, CoreId};
use crate::platform::{Cache, Cores, Link, Platform};

/// Platform quantities of the caching agents of one kind.
#[derive(Clone, Copy)]
pub(crate) struct KindQuantities<'p> {
    /// Cores in front of each agent.
    pub cores: &'p Cores,
    /// Cache of each agent.
    pub cache: &'p Cache,
    /// Links between each agent and the home.
    pub link: &'p Link,
}

impl KindQuantities<'_> {
    /// Returns the platform quantities of each of the first `kinds` kinds.
    pub fn of_platform(platform: &Platform, kinds: usize) -> Vec<KindQuantities<'_>> {
        let first_kind = KindQuantities {
            cores: &platform.cores,
            cache: &platform.cache,
            link: &platform.link,
        };
        let other_kinds = platform.agents.iter().map(|agents| KindQuantities {
            cores: &agents.cores,
            cache: &agents.cache,
            link: &agents.link,
        });
        std::iter::once(first_kind)
            .chain(other_kinds)
            .take(kinds)
            .collect()
    }
}

/// The caching agents of a kind, and the cores in front of them.
pub(crate) struct Group {
    /// Numbers of the caching agents.
    pub caches: Agents,
    /// Numbers of the cores. They are assigned to the caches in turn.
    pub cores: Range<u16>,
    /// Initial configuration of every line in these agents.
    pub initial_configuration: ConfigurationId,
    /// Latency from a core to its cache, in picoseconds.
    pub request: Time,
    /// Latency from the cache back to the core after a hit of a load, in picoseconds.
    pub hit: Time,
    /// The same for an access that writes.
    pub store_hit: Time,
    /// Latency from the cache back to the core after a fill, in picoseconds.
    pub fill: Time,
    /// Time between the completion of an access and the next issue, in picoseconds.
    pub work: Time,
    /// Round trip of a load that is performed in front of the cache, in picoseconds.
    pub l1_hit: Time,
    /// Minimum interval between two accesses that leave a core, in picoseconds.
    pub issue: Time,
    /// Maximum number of outstanding stores while their thread continues; 0 if it waits for each.
    pub posted: u32,
    /// Prefetch distance in accesses; 0 for no prefetches.
    pub prefetch: u32,
    /// Maximum number of outstanding accesses of a core.
    pub outstanding: u32,
    /// Maximum number of outstanding accesses of a core's thread, prefetches included.
    pub thread_accesses: u32,
    /// True if each core has its own sequence of lines.
    pub streams: bool,
}

impl Group {
    /// Returns the latency from the cache back to the core after an access, which hit or waited for a fill.
    #[inline]
    pub fn return_latency(&self, access: Access, hit: bool) -> Time {
        match hit {
            true if access.writes() => self.store_hit,
            true => self.hit,
            false => self.fill,
        }
    }

    /// Returns the cache that serves a core of the kind.
    #[inline]
    fn cache_of(&self, core: CoreId) -> Agent {
        let index = (core.0 - self.cores.start) % self.caches.count().max(1) as u16;
        Agent(self.caches.first().0 + index)
    }

    /// Returns the cores that one of the caches serves.
    pub fn cores_of(&self, cache: Agent) -> impl Iterator<Item = usize> {
        let first_core = self.cores.start + self.caches.place(cache);
        (usize::from(first_core)..self.cores.end.into()).step_by(self.caches.count().max(1))
    }
}

/// All caching agents and cores of a machine.
pub(crate) struct Groups {
    /// Groups by kind, in the order of the protocol file.
    pub groups: Vec<Group>,
}

impl Groups {
    /// Creates the groups of all kinds. `begins` has the initial configuration of each kind; the
    /// workloads give the number of cores used.
    pub fn new(
        remotes: Remotes,
        quantities: &[KindQuantities],
        begins: &[ConfigurationId],
        workloads: &[&crate::components::traffic::Workload],
    ) -> Groups {
        let mut cores = 0;
        let kinds = quantities.iter().zip(begins).zip(workloads).zip(0..);
        let groups = kinds.map(|(((kind_quantities, &begins), workload), kind)| {
            let first_core = cores;
            cores += workload.cores as u16;
            Group {
                caches: Agents::new(remotes.numbers(KindId(kind))),
                cores: first_core..cores,
                initial_configuration: begins,
                request: kind_quantities.cache.request_latency.value,
                hit: kind_quantities.cache.hit_latency.value,
                store_hit: kind_quantities
                    .cache
                    .store_hit_latency
                    .as_ref()
                    .unwrap_or(&kind_quantities.cache.hit_latency)
                    .value,
                fill: kind_quantities.cache.fill_latency.value,
                work: kind_quantities.cores.compute_time.value,
                l1_hit: kind_quantities.cores.l1_hit_latency.value,
                issue: kind_quantities
                    .cores
                    .issue_interval
                    .as_ref()
                    .map_or(0, |issue| issue.value),
                posted: kind_quantities
                    .cores
                    .max_posted_stores
                    .as_ref()
                    .map_or(0, |posted| posted.value as u32),
                prefetch: workload.prefetch,
                outstanding: workload.outstanding,
                thread_accesses: (kind_quantities.cores.max_outstanding.value
                    + kind_quantities.cores.prefetch_distance.value)
                    as u32,
                streams: workload.pattern != crate::components::traffic::Pattern::Sequential,
            }
        });
        Groups {
            groups: groups.collect(),
        }
    }

    /// Returns the first group for which `is_member` is true. With a single group, the function
    /// is not called.
    #[inline(always)]
    fn find(&self, is_member: impl Fn(&Group) -> bool) -> &Group {
        match &self.groups[..] {
            [group] => group,
            groups => {
                let found = groups.iter().find(|group| is_member(group));
                found.unwrap_or(&groups[0])
            }
        }
    }

    /// Returns the group of a cache.
    #[inline(always)]
    pub fn of_cache(&self, cache: Agent) -> &Group {
        self.find(|group| group.caches.contains(cache))
    }

    /// Returns the group of a core.
    #[inline(always)]
    pub fn of_core(&self, core: CoreId) -> &Group {
        self.find(|group| group.cores.contains(&core.0))
    }

    /// Returns the index of a core's group.
    pub fn kind_of(&self, core: CoreId) -> usize {
        let index = self
            .groups
            .iter()
            .position(|group| group.cores.contains(&core.0));
        index.unwrap_or(0)
    }

    /// Returns the cache that serves a core.
    #[inline]
    pub fn cache_of(&self, core: CoreId) -> Agent {
        self.of_core(core).cache_of(core)
    }

    /// Number of caching agents.
    #[inline]
    pub fn caches(&self) -> u16 {
        self.groups.last().map_or(0, |group| group.caches.end())
    }

    /// Number of cores used.
    pub fn cores(&self) -> u16 {
        self.groups.last().map_or(0, |group| group.cores.end)
    }
}
