//! Utilisation of the machine's resources, and the bottleneck.

use super::*;
use crate::attribution::{Contended, Limit, Part, Resource};

/// Minimum utilisation of a resource that is reported as the bottleneck.
const MIN_BOTTLENECK_UTILISATION: f64 = 0.8;
/// Minimum share of the latency of a component that is reported as dominant.
const MOST: f64 = 0.5;

/// Name of the cores' slots for outstanding accesses.
const IN_FLIGHT: &str = "accesses in flight";

/// Description of resources of one kind.
struct ResourceKind<'n> {
    name: &'n str,
    /// Name of a single one.
    one: &'n str,
    works: bool,
}

impl ResourceKind<'_> {
    /// Describes resources that work while they are in use.
    fn working<'n>(name: &'n str, one: &'n str) -> ResourceKind<'n> {
        let works = true;
        ResourceKind { name, one, works }
    }

    /// Describes resources that are held, even while their holder waits.
    fn held<'n>(name: &'n str, one: &'n str) -> ResourceKind<'n> {
        let works = false;
        ResourceKind { name, one, works }
    }

    /// Returns the most used resource, given the busy time of each. `long` is the time for which each was available.
    fn most(&self, times: &[Time], long: f64) -> Option<Resource> {
        let (number, &most) = (times.iter().enumerate())
            .max_by_key(|&(number, time)| (time, std::cmp::Reverse(number)))?;
        let share = |time: f64| {
            if long > 0.0 {
                (time / long).min(1.0)
            } else {
                0.0
            }
        };
        let sum: u64 = times.iter().sum();
        Some(Resource {
            name: self.name.into(),
            which: (times.len() > 1).then(|| format!("{} {number}", self.one)),
            count: times.len(),
            utilisation: share(most as f64),
            mean: share(sum as f64 / times.len() as f64),
            works: self.works,
        })
    }
}

impl Simulation {
    /// Returns the most used resource of each kind, in descending order of utilisation.
    pub(super) fn resources(&self) -> Vec<Resource> {
        let mut all = self.link_utilisation();
        all.extend(self.home_utilisation());
        all.extend(self.contended());
        all.extend(self.core_utilisation());
        all.sort_by(|one, other| other.utilisation.total_cmp(&one.utilisation));
        all
    }

    fn link_utilisation(&self) -> Vec<Resource> {
        let end = self.counters.end as f64;
        let network = &self.network;
        // All directions have equally many links.
        let times = |directions: &[&Direction], ports: usize, side: usize| -> Vec<Time> {
            let number = |(number, direction): (usize, &&Direction)| {
                let port = network.ports.get(ports + number).and_then(Option::as_ref);
                let busy = direction.busy + port.map_or(0, |port| port.busy(side));
                busy / direction.links().max(1) as u64
            };
            directions.iter().enumerate().map(number).collect()
        };
        let (up, down): (Vec<_>, Vec<_>) =
            (network.up.iter().collect(), network.down.iter().collect());
        let mut all = vec![
            ResourceKind::working("links from caches", "cache").most(&times(&up, 0, 0), end),
            ResourceKind::working("links to caches", "cache").most(&times(&down, 0, 1), end),
        ];
        let sides = [("links from homes", 0), ("links to homes", 1)];
        for (name, side) in sides {
            let of_homes = network.of_homes(side);
            let times = times(&of_homes, up.len(), side);
            all.push(ResourceKind::working(name, "home").most(&times, end));
        }
        all.into_iter().flatten().collect()
    }

    fn home_utilisation(&self) -> Vec<Resource> {
        let end = self.counters.end as f64;
        let mut all: Vec<Option<Resource>> = Vec::new();
        let Some(of) = &self.attribution else {
            return Vec::new();
        };
        if self.clocked.is_none() {
            let units: Vec<Time> = self.units.iter().map(|unit| unit.occupied).collect();
            all.push(ResourceKind::working("units of the home", "unit").most(&units, end));
            let home = &self.platform.home;
            let most =
                |quantity: &Option<platform::Quantity>| quantity.as_ref().map_or(1, |q| q.value);
            let slots = [
                ("memory reads of units", most(&home.reads)),
                ("memory writes of units", most(&home.writes)),
                ("coherence transactions of units", 1),
            ];
            for ((name, slots), which) in slots.into_iter().zip(0..) {
                let times: Vec<Time> = of.slots.iter().map(|times| times[which]).collect();
                let used = ResourceKind::held(name, "unit");
                all.push(used.most(&times, end * slots as f64));
            }
        }
        for (name, what) in [
            ("buses of memory", "bus"),
            ("banks of memory", "bank"),
            ("ports of memory", "port"),
        ] {
            let its = of.memory.iter().filter(|((_, kind, _), _)| *kind == what);
            let mut its: Vec<_> = its
                .map(|(&(home, _, place), &time)| ((home, place), time))
                .collect();
            its.sort_unstable();
            let each = self.memories.first().map_or(0, |memory| memory.count(what));
            let mut times = vec![0; each * self.memories.len()];
            for ((home, place), time) in its {
                times[home * each + place] += time;
            }
            all.push(ResourceKind::working(name, what).most(&times, end));
        }
        all.into_iter().flatten().collect()
    }

    /// Returns the line, and the cache, for which others waited longest.
    fn contended(&self) -> Vec<Resource> {
        let Some(of) = &self.attribution else {
            return Vec::new();
        };
        let end = self.counters.end;
        let contended = of.contended(end);
        let all = [("contended lines", "line"), ("ways of caches", "cache")];
        let of_kind = |(is_line, (name, one)): (bool, (&str, &str))| {
            let its = contended.iter().filter_map(|&(what, time)| match what {
                Contended::Line(line) => is_line.then_some((u64::from(line), time)),
                Contended::Ways(cache) => (!is_line).then_some((u64::from(cache.0), time)),
            });
            let its: Vec<(u64, Time)> = its.collect();
            let (number, _) = *its.first()?;
            let times: Vec<Time> = its.iter().map(|&(_, time)| time).collect();
            let most = ResourceKind::held(name, one).most(&times, end as f64)?;
            Some(Resource {
                which: Some(format!("{one} {number}")),
                ..most
            })
        };
        [true, false]
            .into_iter()
            .zip(all)
            .filter_map(of_kind)
            .collect()
    }

    /// Returns the utilisation of write buffers and of the cores' outstanding accesses.
    fn core_utilisation(&self) -> Vec<Resource> {
        let end = self.counters.end as f64;
        let mut all = Vec::new();
        let buffers = self.cores.places() as usize;
        if buffers > 0 {
            let mean = ResourceKind::held("lines of write buffers", "line");
            let mean = mean.most(&[self.counters.buffered], buffers as f64 * end);
            all.extend(mean.map(|mean| Resource {
                count: buffers,
                ..mean
            }));
        }
        let Some(of) = &self.attribution else {
            return all;
        };
        // Cores have different amounts of work. Each counts until it has completed its own.
        let (mut places, mut taken, mut share) = (0, 0, 0.0);
        for (core, &(latency, last)) in of.cores.iter().enumerate() {
            let most = self.groups.of_core(core as u16).outstanding;
            places += most as usize;
            if last > 0 {
                taken += 1;
                // Threads may have more accesses in flight than cores of a workload.
                share += (latency as f64 / (f64::from(most) * last as f64)).min(1.0);
            }
        }
        let mean = share / f64::from(taken.max(1));
        all.push(Resource {
            name: IN_FLIGHT.into(),
            which: None,
            count: places,
            utilisation: mean,
            mean,
            works: false,
        });
        all
    }

    /// Returns the bottleneck. Working resources come before held ones, which may be held because of the former.
    pub(super) fn limit(&self, resources: &[Resource]) -> Limit {
        let busy = |works: bool| {
            let mut its = resources
                .iter()
                .filter(move |of| of.works == works && of.name != IN_FLIGHT);
            its.find(|of| of.utilisation >= MIN_BOTTLENECK_UTILISATION)
        };
        if let Some(of) = busy(true).or_else(|| busy(false)) {
            let which = of.which.as_ref();
            let who = match which {
                Some(which) if of.count > 1 => format!("of {}, {which}", of.count),
                Some(which) => which.clone(),
                None => "it".into(),
            };
            return Limit {
                name: of.name.clone(),
                utilisation: of.utilisation,
                reason: match of.works {
                    true => format!("{who} is busy nearly all the time"),
                    false => {
                        format!("{who} is occupied nearly all the time, and no other component is as busy")
                    }
                },
            };
        }
        let places = resources.iter().find(|of| of.name == IN_FLIGHT);
        let utilisation = places.map_or(0.0, |of| of.utilisation);
        if utilisation < MIN_BOTTLENECK_UTILISATION {
            return Limit {
                name: "work of cores".into(),
                utilisation: 1.0 - utilisation,
                reason: "cores are below their limit of outstanding accesses, and no component is saturated"
                    .into(),
            };
        }
        let parts = Part::ALL.into_iter().filter(|&part| part != Part::Queue);
        let share = |part: &Part| self.attribution.as_ref().map_or(0.0, |of| of.share(*part));
        let slow = parts
            .map(|part| (part, share(&part)))
            .find(|&(_, share)| share >= MOST);
        Limit {
            name: match slow {
                Some((part, _)) => describe_dominant_part(part).into(),
                None => IN_FLIGHT.into(),
            },
            utilisation,
            reason: match slow {
                Some((_, share)) => format!("cores are at their limit of outstanding accesses, and this component is {:.1} % of their latency", 100.0 * share),
                None => "cores are at their limit of outstanding accesses; no single component dominates the latency".into(),
            },
        }
    }
}

/// Describes the bottleneck if a component dominates the latency of accesses.
fn describe_dominant_part(part: Part) -> &'static str {
    match part {
        Part::Core => "latency of cores and caches",
        Part::Translation => "latency of translations",
        Part::Link => "latency of links",
        Part::Queue => "queues",
        Part::Home => "latency of the home",
        Part::Memory => "latency of memory",
        Part::Forward => "latency of forwards",
        Part::Retry => "contention for lines",
        Part::Other => "threads, applications or devices",
    }
}
