//! Utilisation of the machine's resources, and the bottleneck that follows from them.

use super::*;
use crate::attribution::{Contended, Limit, Part, Resource};
use crate::message::CoreId;
use cohkit_units::Quantity;

/// Minimum utilisation of a resource that is reported as the bottleneck, 0 to 1: a convention, stated in
/// `docs/output.md`.
const MIN_BOTTLENECK_UTILISATION: f64 = 0.8;
/// Minimum share of a component in the latency of accesses that is reported as dominant, 0 to 1: as much as all others
/// together.
const MIN_DOMINANT_SHARE: f64 = 0.5;

/// Name of the cores' slots for outstanding accesses.
const IN_FLIGHT: &str = "accesses in flight";

/// Description of resources of one kind.
struct ResourceKind<'n> {
    /// Name of the kind in reports, in the plural.
    name: &'n str,
    /// Name of a single one.
    unit_name: &'n str,
    /// True if the resources work while they are in use; false if they are held, even while their holder waits.
    works: bool,
}

impl ResourceKind<'_> {
    /// Describes resources that work while they are in use.
    fn working<'n>(name: &'n str, unit_name: &'n str) -> ResourceKind<'n> {
        let works = true;
        ResourceKind {
            name,
            unit_name,
            works,
        }
    }

    /// Describes resources that are held, even while their holder waits.
    fn held<'n>(name: &'n str, unit_name: &'n str) -> ResourceKind<'n> {
        let works = false;
        ResourceKind {
            name,
            unit_name,
            works,
        }
    }

    /// Returns the most used resource, given the busy time of each in picoseconds. `available` is the time for
    /// which each was available. Returns `None` if there are no resources.
    fn busiest(&self, times: &[Time], available: f64) -> Option<Resource> {
        let (number, &busiest) = (times.iter().enumerate())
            .max_by_key(|&(number, time)| (time, std::cmp::Reverse(number)))?;
        let share = |time: f64| {
            if available > 0.0 {
                (time / available).min(1.0)
            } else {
                0.0
            }
        };
        let sum: u64 = times.iter().sum();
        Some(Resource {
            name: self.name.into(),
            which: (times.len() > 1).then(|| format!("{} {number}", self.unit_name)),
            count: times.len(),
            utilisation: share(busiest as f64),
            mean: share(sum as f64 / times.len() as f64),
            works: self.works,
        })
    }
}

/// Returns the most used resource of each kind, in descending order of utilisation.
pub(super) fn resources(simulation: &Simulation) -> Vec<Resource> {
    let mut resources = link_utilisation(simulation);
    resources.extend(home_utilisation(simulation));
    resources.extend(contention_utilisation(simulation));
    resources.extend(core_utilisation(simulation));
    resources.sort_by(|left, right| right.utilisation.total_cmp(&left.utilisation));
    resources
}

/// Returns the most used links of each direction: of caches, and of homes at a switch.
fn link_utilisation(simulation: &Simulation) -> Vec<Resource> {
    let end = simulation.tally.counters.end as f64;
    let network = &simulation.interconnect.network;
    // All directions have equally many links.
    let times = |directions: &[&Direction], ports: usize, side: usize| -> Vec<Time> {
        let busy_time = |(number, direction): (usize, &&Direction)| {
            let port = network.ports.get(ports + number).and_then(Option::as_ref);
            let busy = direction.busy + port.map_or(0, |port| port.busy(side));
            busy / direction.links().max(1) as u64
        };
        directions.iter().enumerate().map(busy_time).collect()
    };
    let (up, down): (Vec<_>, Vec<_>) = (network.up.iter().collect(), network.down.iter().collect());
    let mut resources = vec![
        ResourceKind::working("links from caches", "cache").busiest(&times(&up, 0, 0), end),
        ResourceKind::working("links to caches", "cache").busiest(&times(&down, 0, 1), end),
    ];
    let sides = [("links from homes", 0), ("links to homes", 1)];
    for (name, side) in sides {
        let of_homes = network.of_homes(side);
        let times = times(&of_homes, up.len(), side);
        resources.push(ResourceKind::working(name, "home").busiest(&times, end));
    }
    resources.into_iter().flatten().collect()
}

/// Returns the most used unit, slots of units, and buses, banks or ports of memory. Slots are in use while a memory
/// operation or a coherence transaction of the unit is in progress. A home in hardware has no units.
fn home_utilisation(simulation: &Simulation) -> Vec<Resource> {
    let end = simulation.tally.counters.end as f64;
    let mut resources: Vec<Option<Resource>> = Vec::new();
    let Some(attribution) = &simulation.observer.attribution else {
        return Vec::new();
    };
    if simulation.home.clocked.is_none() {
        let units: Vec<Time> = simulation
            .home
            .units
            .iter()
            .map(|unit| unit.occupied)
            .collect();
        resources.push(ResourceKind::working("units of the home", "unit").busiest(&units, end));
        let home = &simulation.tables.platform.home;
        let capacity = |quantity: &Option<Quantity>| quantity.as_ref().map_or(1, |q| q.value);
        let slots = [
            ("memory reads of units", capacity(&home.max_reads)),
            ("memory writes of units", capacity(&home.max_writes)),
            ("coherence transactions of units", 1),
        ];
        for ((name, slots), slot_kind) in slots.into_iter().zip(0..) {
            let times: Vec<Time> = attribution
                .slots
                .iter()
                .map(|times| times[slot_kind])
                .collect();
            let slot_resource = ResourceKind::held(name, "unit");
            resources.push(slot_resource.busiest(&times, end * slots as f64));
        }
    }
    for (name, kind) in [
        ("buses of memory", "bus"),
        ("banks of memory", "bank"),
        ("ports of memory", "port"),
    ] {
        let busy_times = attribution
            .memory
            .iter()
            .filter(|((_, resource_kind, _), _)| *resource_kind == kind);
        let mut busy_times: Vec<_> = busy_times
            .map(|(&(home, _, place), &time)| ((home, place), time))
            .collect();
        busy_times.sort_unstable();
        let (memories, count_per_memory) = simulation.memory.count(kind);
        let mut times = vec![0; count_per_memory * memories];
        for ((home, place), time) in busy_times {
            times[home * count_per_memory + place] += time;
        }
        resources.push(ResourceKind::working(name, kind).busiest(&times, end));
    }
    resources.into_iter().flatten().collect()
}

/// Returns the line, and the cache, for which others waited longest.
fn contention_utilisation(simulation: &Simulation) -> Vec<Resource> {
    let Some(attribution) = &simulation.observer.attribution else {
        return Vec::new();
    };
    let end = simulation.tally.counters.end;
    let contention_times = attribution.contention_times(end);
    let kinds = [("contended lines", "line"), ("ways of caches", "cache")];
    let most_contended = |(is_line, (name, unit_name)): (bool, (&str, &str))| {
        let waits = contention_times
            .iter()
            .filter_map(|&(contended, time)| match contended {
                Contended::Line(line) => is_line.then_some((u64::from(line), time)),
                Contended::Ways(cache) => (!is_line).then_some((u64::from(cache.0), time)),
            });
        let waits: Vec<(u64, Time)> = waits.collect();
        let (number, _) = *waits.first()?;
        let times: Vec<Time> = waits.iter().map(|&(_, time)| time).collect();
        let busiest = ResourceKind::held(name, unit_name).busiest(&times, end as f64)?;
        Some(Resource {
            which: Some(format!("{unit_name} {number}")),
            ..busiest
        })
    };
    [true, false]
        .into_iter()
        .zip(kinds)
        .filter_map(most_contended)
        .collect()
}

/// Returns the utilisation of write buffers and of the cores' outstanding accesses.
fn core_utilisation(simulation: &Simulation) -> Vec<Resource> {
    let end = simulation.tally.counters.end as f64;
    let mut resources = Vec::new();
    let buffers = simulation.frontend.cores.buffer_entries() as usize;
    if buffers > 0 {
        let mean = ResourceKind::held("lines of write buffers", "line");
        let mean = mean.busiest(&[simulation.tally.counters.buffered], buffers as f64 * end);
        resources.extend(mean.map(|mean| Resource {
            count: buffers,
            ..mean
        }));
    }
    let Some(attribution) = &simulation.observer.attribution else {
        return resources;
    };
    // Cores have different amounts of work. Each counts until it has completed its own.
    let (mut places, mut active_cores, mut share) = (0, 0, 0.0);
    for (core, &(latency, last_done)) in attribution.cores.iter().enumerate() {
        let capacity = simulation
            .tables
            .groups
            .of_core(CoreId(core as u16))
            .outstanding;
        places += capacity as usize;
        if last_done > 0 {
            active_cores += 1;
            // Threads may have more accesses in flight than cores of a workload.
            share += (latency as f64 / (f64::from(capacity) * last_done as f64)).min(1.0);
        }
    }
    let mean = share / f64::from(active_cores.max(1));
    resources.push(Resource {
        name: IN_FLIGHT.into(),
        which: None,
        count: places,
        utilisation: mean,
        mean,
        works: false,
    });
    resources
}

/// Returns the bottleneck. Working resources come before held ones, because a resource may be held while its holder
/// waits for a working one.
pub(super) fn limit(simulation: &Simulation, resources: &[Resource]) -> Limit {
    let busy = |works: bool| {
        let mut candidates = resources
            .iter()
            .filter(move |resource| resource.works == works && resource.name != IN_FLIGHT);
        candidates.find(|resource| resource.utilisation >= MIN_BOTTLENECK_UTILISATION)
    };
    if let Some(resource) = busy(true).or_else(|| busy(false)) {
        let which = resource.which.as_ref();
        let subject = match which {
            Some(which) if resource.count > 1 => format!("of {}, {which}", resource.count),
            Some(which) => which.clone(),
            None => "it".into(),
        };
        return Limit {
            name: resource.name.clone(),
            utilisation: resource.utilisation,
            reason: match resource.works {
                true => format!("{subject} is busy nearly all the time"),
                false => {
                    format!("{subject} is occupied nearly all the time, and no other component is as busy")
                }
            },
        };
    }
    let places = resources.iter().find(|resource| resource.name == IN_FLIGHT);
    let utilisation = places.map_or(0.0, |resource| resource.utilisation);
    if utilisation < MIN_BOTTLENECK_UTILISATION {
        return Limit {
            name: "work of cores".into(),
            utilisation: 1.0 - utilisation,
            reason:
                "cores are below their limit of outstanding accesses, and no component is saturated"
                    .into(),
        };
    }
    let parts = Part::ALL.into_iter().filter(|&part| part != Part::Queue);
    let share = |part: &Part| {
        simulation
            .observer
            .attribution
            .as_ref()
            .map_or(0.0, |attribution| attribution.share(*part))
    };
    let slow = parts
        .map(|part| (part, share(&part)))
        .find(|&(_, share)| share >= MIN_DOMINANT_SHARE);
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
