//! Hosts that write to each other's memory and synchronise by releases, with protocols of `ordering`.

use cohkit_testing::orderings;
use cohkit_testing::setups;

use cohkit_application::broadcast::Broadcast;
use cohkit_application::exchange::Exchange;
use cohkit_application::kernel::{Granularity, Hosts, KernelScenario};
use cohkit_application::remote_writes::RemoteWrites;
use cohkit_protocol::protocol::Protocol;
use cohkit_sim::components::hosts::TrafficTotals;
use cohkit_sim::explain::FailureKind;
use cohkit_sim::platform::{Memory, Platform};
use cohkit_sim::scenario::Performance;
use cohkit_sim::simulation::{play_while, RunError, Setup};
use orderings::{correct_orderings, machine, ordering, orderings, setup};
use setups::seeds;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Runs a setup; a failure names the label.
fn play_or_panic(setup: &Setup, label: &str) -> Performance {
    play_while(setup, &mut |_| true).unwrap_or_else(|error| panic!("{label}: {error}"))
}

/// Returns a scenario of stores to `fanout` hosts, with releases.
fn write_scenario(fanout: u32, stores: u32, releases: u32) -> RemoteWrites {
    RemoteWrites {
        homes: 8,
        fanout,
        words: 8,
        stores,
        releases,
        releases_per_check: 1,
    }
}

/// Returns the traffic between hosts of one message.
fn traffic_of(performance: &Performance, message: &str) -> TrafficTotals {
    let traffic = &performance.statistics.traffic;
    let entry = traffic.iter().find(|(name, _)| name == message);
    entry.unwrap_or_else(|| panic!("no traffic of {message}")).1
}

#[test]
fn flag_acquire_observes_released_stores() {
    for (name, protocol) in &correct_orderings(8) {
        for seed in seeds(8) {
            let mut platform = machine();
            platform.link.jitter.value = 300_000;
            for fanout in [1, 3, 7] {
                let scenario = Arc::new(write_scenario(fanout, 12, 4));
                let mut setup = setup(protocol, &platform, scenario);
                setup.seed = seed;
                play_or_panic(
                    &setup,
                    &format!("{name}, COHKIT_SEED={seed}, fanout {fanout}"),
                );
            }
            let broadcast = Broadcast {
                homes: 8,
                threads: 8,
                rounds: 4,
            };
            let mut setup = setup(protocol, &platform, Arc::new(broadcast));
            setup.seed = seed;
            play_or_panic(&setup, &format!("{name}, COHKIT_SEED={seed}, broadcast"));
        }
    }
}

/// Sequence numbers order stores at a single directory.
#[test]
fn numbered_stores_are_in_order_at_one_home() {
    let protocol = ordering("seq", &[("numbers", 256), ("most", 255)]);
    for seed in seeds(8) {
        let mut platform = machine();
        platform.link.jitter.value = 300_000;
        let mut scenario = write_scenario(1, 40, 10);
        scenario.homes = 1;
        let mut setup = setup(&protocol, &platform, Arc::new(scenario));
        setup.seed = seed;
        let performance = play_or_panic(&setup, &format!("COHKIT_SEED={seed}"));
        // More stores than numbers: the last of each series requests an acknowledgement.
        assert!(performance.statistics.sent("Last").unwrap() >= 1);
    }
}

/// Point-to-point order is not sufficient: a host reads an old value at a second home after a third host has notified
/// it of the store (litmus test ISA2).
#[test]
fn late_posted_stores_at_one_home_are_detected() {
    let mut platform = machine();
    let hosts = platform.hosts.as_mut().unwrap();
    (hosts.extra_latency_from.value, hosts.extra_latency_to.value) = (2, 1);
    hosts.extra_latency.value = 2_000_000;
    for (name, protocol) in orderings(8) {
        let mut scenario = write_scenario(2, 8, 4);
        scenario.releases_per_check = 1;
        let setup = setup(&protocol, &platform, Arc::new(scenario));
        match (name, play_while(&setup, &mut |_| true)) {
            ("mp", Err(RunError::Failure(failure))) => {
                assert_eq!(failure.kind, FailureKind::Result);
                let expected = "release violated: thread 1 acquired the flag of release ";
                assert!(failure.text.contains(expected), "{}", failure.text);
            }
            ("mp", Ok(_)) => panic!("the late store is not detected"),
            (_, Ok(_)) => {}
            (_, Err(error)) => panic!("{name}: {error}"),
        }
    }
}

/// Sixteen hosts, eight at each of two switches below a third.
fn two_levels() -> Platform {
    let mut platform = Platform::shipped("cxl-512x8").unwrap();
    platform.remotes = 16;
    platform.hosts.as_mut().unwrap().count.value = 16;
    platform.home.count.as_mut().unwrap().value = 16;
    platform.switch.as_mut().unwrap().latency.value = 10_000;
    platform
}

/// A message to another switch crosses one more, with its links in both directions.
#[test]
fn hosts_on_other_switches_have_higher_latency() {
    let protocol = ordering("so-strict", &[]);
    let mean_write_time = |hosts_per_switch: u64| {
        let mut platform = two_levels();
        let uplink = platform.uplink.as_mut().unwrap();
        (uplink.hosts.value, uplink.bandwidth.value) = (hosts_per_switch, 0);
        // The writer is on host 8; its targets are hosts 0 to 7.
        let mut scenario = write_scenario(8, 1, 1);
        scenario.homes = 16;
        let performance = play_or_panic(&setup(&protocol, &platform, Arc::new(scenario)), "so");
        performance.tally.times["written"].mean()
    };
    // A store with its acknowledgement, and a release with its own.
    let extra_latency_ns = 4.0 * (2.0 * 37.5 + 2.0 * 10.0);
    assert_eq!(
        mean_write_time(8) - mean_write_time(16),
        1000.0 * extra_latency_ns
    );
}

/// All messages between switches occupy their links.
#[test]
fn links_between_switches_have_a_bandwidth() {
    let protocol = ordering("so-strict", &[]);
    let end_with = |links: u64, bandwidth: u64| {
        let mut platform = two_levels();
        let uplink = platform.uplink.as_mut().unwrap();
        (uplink.links.value, uplink.bandwidth.value) = (links, bandwidth);
        let scenario = KernelScenario(Exchange {
            hosts: Hosts {
                homes: 16,
                threads: 16,
            },
            fanout: 2,
            granularity: Granularity::Line,
            stores: 32,
            releases: 2,
        });
        play_or_panic(&setup(&protocol, &platform, Arc::new(scenario)), "so").end
    };
    // Each of a switch's eight threads stores 32 lines to the host eight further on; a line is 80 bytes with its
    // header.
    let min_end = 8 * 32 * 80 * 1000;
    assert!(end_with(1, 1_000_000_000) > min_end);
    assert!(end_with(2, 1_000_000_000) < end_with(1, 1_000_000_000));
    assert!(end_with(8, 64_000_000_000) < min_end);
}

/// With one home, the writes of one core there are in order, for any lines.
#[test]
fn posted_stores_to_one_home_are_in_order() {
    let (name, protocol) = &orderings(8)[3];
    for seed in seeds(16) {
        let mut platform = machine();
        platform.link.jitter.value = 300_000;
        let mut setup = setup(protocol, &platform, Arc::new(write_scenario(1, 12, 8)));
        setup.seed = seed;
        play_or_panic(&setup, &format!("{name}, COHKIT_SEED={seed}"));
    }
}

/// With one addressed home, a release notifies no other. It costs an acknowledgement and its own bytes.
#[test]
fn one_home_release_costs_its_fields_and_acknowledgement() {
    let (releases, stores) = (10, 16);
    let platform = machine();
    let protocols = orderings(8);
    let play_ordering = |number: usize| {
        let (name, protocol): &(_, Protocol) = &protocols[number];
        let scenario = write_scenario(1, stores, releases);
        play_or_panic(&setup(protocol, &platform, Arc::new(scenario)), name)
    };
    let (cord, mp) = (play_ordering(2), play_ordering(3));
    for message in ["NotifyRequest", "Notify", "EmptyRelease"] {
        assert_eq!(cord.statistics.sent(message), Some(0), "{message}");
    }
    let header = platform.link.header_bytes.value;
    let (relaxed, release) = (traffic_of(&cord, "Relaxed"), traffic_of(&cord, "Release"));
    let (relaxed_count, release_count) = (u64::from(stores * releases), u64::from(releases));
    assert_eq!(relaxed.between, relaxed_count);
    assert_eq!(relaxed.between_bytes, relaxed_count * (header + 64));
    // An epoch, a count of at most 255, a sequence number and a number of homes: 8, 8, 8 and 4 bits, of which 8 fit
    // into the header.
    assert_eq!(release.between_bytes, release_count * (header + 8 + 3));
    let acks = traffic_of(&cord, "ReleaseAck");
    assert_eq!(acks.between_bytes, release_count * header);
    let posted = traffic_of(&mp, "Write");
    let extra_bytes = relaxed.between_bytes + release.between_bytes - posted.between_bytes;
    assert_eq!(extra_bytes, release_count * 3);
}

/// Derived by hand: with one addressed home, `cord` sends between hosts the same bytes as posted stores, and two items
/// per release. These are a header for its acknowledgement, and whole bytes for its fields beyond the free bits of a
/// header. The fields are a published epoch of 8 bits and counter of 32, and a sequence number as wide as an epoch. The
/// last is a number of homes, 0 to 8, of 4 bits. Stores are no longer than posted ones, and neither the readers nor the
/// flag access another host.
#[test]
fn cord_traffic_exceeds_posted_stores_as_derived() {
    let sizes = [
        ("homes", 8),
        ("epochs", 16),
        ("entries", 8),
        ("most", 65535),
    ];
    let tables = [("counters", 8), ("slots", 8), ("notes", 16)];
    let cord = ordering("cord", &[&sizes[..], &tables].concat());
    let posted = ordering("mp", &[("homes", 8), ("credits", 65535)]);
    let published = machine();
    let hosts = published.hosts.as_ref().unwrap();
    assert_eq!((hosts.number_bits.value, hosts.counter_bits.value), (8, 32));
    let (header, free) = (&published.link.header_bytes, &hosts.free_bits);
    assert_eq!((header.value, free.value), (16, 8));
    // Bytes of a header, its free bits, bits of a counter and of an epoch, and the extra bytes of a release.
    for (header, free, counter, epoch, extra_bytes) in [
        // 8 + 32 + 8 + 4 bits, of which 8 are free: 44, in 6 bytes. The counter alone has 4 of them.
        (16, 8, 32, 8, 16 + 6),
        (8, 8, 32, 8, 8 + 6),
        (16, 0, 32, 8, 16 + 7),
        (16, 16, 32, 8, 16 + 5),
        (16, 8, 16, 8, 16 + 4),
        (16, 8, 32, 4, 16 + 5),
    ] {
        let mut platform = published.clone();
        platform.link.header_bytes.value = header;
        let hosts = platform.hosts.as_mut().unwrap();
        (hosts.free_bits.value, hosts.counter_bits.value) = (free, counter);
        hosts.number_bits.value = epoch;
        for (words, stores, releases) in [(1, 1, 6), (8, 3, 9), (8, 64, 20), (4, 300, 2)] {
            let traffic_between_hosts = |protocol| {
                let mut scenario = write_scenario(1, stores, releases);
                (scenario.words, scenario.releases_per_check) = (words, 0);
                let performance =
                    play_or_panic(&setup(protocol, &platform, Arc::new(scenario)), "stores");
                let traffic = performance.statistics.traffic;
                // A credit only indicates room, which `cord` assumes.
                let counted = traffic.iter().filter(|(name, _)| name != "Credit");
                let (mut bytes, mut messages) = (0, 0);
                for (_, totals) in counted {
                    bytes += totals.between_bytes;
                    messages += totals.between;
                }
                (bytes, messages)
            };
            let (with_cord, with_posted) =
                (traffic_between_hosts(&cord), traffic_between_hosts(&posted));
            let releases = u64::from(releases);
            let (stores, words) = (u64::from(stores), u64::from(words));
            // A release writes one word.
            let posted_bytes = releases * (stores * (header + 8 * words) + header + 8);
            // If no bit is free, the epoch of each store takes a byte.
            let epochs = if free == 0 { releases * stores } else { 0 };
            assert_eq!(with_posted, (posted_bytes, releases * (stores + 1)));
            let label = format!("{header} {free} {counter} {epoch} {words} {stores} {releases}");
            assert_eq!(
                with_cord.0,
                posted_bytes + epochs + releases * extra_bytes,
                "{label}"
            );
            assert_eq!(with_cord.1, with_posted.1 + releases, "{label}");
        }
    }
}

/// With one home, `cord` takes longer than posted stores for two reasons only: the extra bytes of its releases, and the
/// waits for its tables, which are counted. At several slices of that home both keep releases behind earlier stores.
#[test]
fn one_home_cord_overhead_is_release_bytes_and_table_stalls() {
    let platform = machine();
    let posted = ordering("mp", &[("homes", 8), ("credits", 65535)]);
    let cord = |entries| {
        let sizes = [("homes", 8), ("epochs", 64), ("most", 255), ("counters", 8)];
        let tables = [("entries", entries), ("slots", 64), ("notes", 64)];
        ordering("cord", &[&sizes[..], &tables].concat())
    };
    // Nanoseconds until the last release is acquired, and of waiting for tables. The acquirer polls, so the time is the
    // minimum over several latencies that are up to 64 ns longer; the extra latency is subtracted again.
    let times = |protocol: &Protocol, slices, stores, releases| {
        let mut scenario = write_scenario(1, stores, releases);
        scenario.releases_per_check = 0;
        let scenario = Arc::new(scenario);
        let measurements = (0..64).map(|extra_latency| {
            let mut platform = machine();
            // A message crosses two links, which take 150 ns.
            platform.link.latency.value = 75_000 + extra_latency * 500;
            platform.home.slices.value = slices;
            // Memory takes a line per clock of 2 GHz, and loads of the reader find no L1.
            platform.cores.l1_size.value = 0;
            platform.set("bram.bandwidth", "128GB/s").unwrap();
            let performance =
                play_or_panic(&setup(protocol, &platform, scenario.clone()), "stores");
            let waits = performance.statistics.get("register_wait_ns").unwrap();
            let delivered = performance.tally.times["delivered"].mean() / 1000.0;
            (delivered - extra_latency as f64, waits)
        });
        measurements
            .min_by(|(left, _), (right, _)| left.total_cmp(right))
            .unwrap()
    };
    let ns_per_byte = 2.0 * 1e9 / platform.link.bandwidth.value as f64;
    for (slices, entries, stores, releases) in [
        (1, 32, 64, 32),
        (1, 8, 64, 32),
        (1, 8, 4, 64),
        (1, 2, 64, 32),
        (1, 1, 16, 16),
        (8, 32, 64, 32),
        (8, 8, 64, 32),
        (8, 8, 4, 64),
    ] {
        let (with_posted, posted_waits) = times(&posted, slices, stores, releases);
        let (with_cord, waits) = times(&cord(entries), slices, stores, releases);
        let byte_time = f64::from(releases) * 3.0 * ns_per_byte;
        let overhead = with_cord - with_posted;
        assert_eq!(
            (posted_waits, waits > 0.0),
            (0.0, entries < 32),
            "{entries} entries"
        );
        let max_overhead = byte_time + waits + 1.0;
        // Each posted store waits for the previous one at that one's slice; the stores of `cord` do not.
        let min_overhead = if slices == 1 { -1.0 } else { -4.0 };
        let label = format!("{slices} slices, {entries} entries: {overhead} ns, waits {waits} ns");
        assert!((min_overhead..max_overhead).contains(&overhead), "{label}");
        // With one entry, each release waits for the previous one.
        assert!(entries > 1 || overhead > waits / 2.0, "{label}");
    }
}

/// A release notifies each other home with stores of its core, and each of these notifies the release's home.
#[test]
fn release_costs_two_messages_per_other_home() {
    let protocol = &orderings(8)[2].1;
    for fanout in [3, 7] {
        let mut scenario = write_scenario(fanout, 4 * fanout, 6);
        scenario.releases_per_check = 0;
        let performance = play_or_panic(&setup(protocol, &machine(), Arc::new(scenario)), "cord");
        let sent = |message| performance.statistics.sent(message).unwrap();
        let other_homes = u64::from(fanout) - 1;
        // Threads that pass the release on notify no home: their only store is the release itself.
        let requests = sent("NotifyRequest");
        assert!(requests >= 6 * other_homes, "{requests}");
        assert_eq!(requests, sent("Notify"));
        let epoch_ends = sent("Release") + sent("EmptyRelease");
        assert_eq!(sent("ReleaseAck"), epoch_ends);
    }
}

/// Each of the eight slices of a host has a directory of its own if each is a home. A release then notifies the slices
/// in which the thread has stored since the last release, except that of the flag; each of them notifies that one. With
/// one directory for all slices of a host, a release notifies none.
#[test]
fn directories_of_slices_notify_each_other() {
    let tables = [("counters", 8), ("slots", 16), ("notes", 16)];
    let sizes = [("epochs", 32), ("entries", 16), ("most", 255)];
    let cord = |homes| ordering("cord", &[&[("homes", homes)][..], &sizes, &tables].concat());
    let (slices, releases) = (8, 10);
    let mut by_slice = machine();
    by_slice.home.slices.value = 1;
    if let Memory::Bram(channels) = &mut by_slice.memory {
        channels.ports.value = 1;
    }
    for stores in [1, 3, 8, 20] {
        let mut scenario = write_scenario(1, stores, releases);
        scenario.releases_per_check = 0;
        let scenario = Arc::new(scenario);
        let sent = |protocol: &Protocol, platform: &Platform| {
            let performance = play_or_panic(&setup(protocol, platform, scenario.clone()), "cord");
            assert_eq!(
                performance.statistics.sent("Release"),
                Some(releases.into())
            );
            ["NotifyRequest", "Notify", "EmptyRelease"]
                .map(|message| performance.statistics.sent(message).unwrap())
        };
        // Successive lines of a host are in successive slices. The flag is in the first line, before those of the data.
        let notified = |release: u32| {
            let lines = (0..stores).map(|store| 1 + release * stores + store);
            let stored: BTreeSet<u32> = lines.map(|line| line % slices).collect();
            stored.iter().filter(|slice| **slice != 0).count() as u64
        };
        let expected = (0..releases).map(notified).sum();
        let label = format!("{stores} stores");
        assert_eq!(
            sent(&cord(64), &by_slice),
            [expected, expected, 0],
            "{label}"
        );
        assert_eq!(sent(&cord(8), &machine()), [0, 0, 0], "{label}");
    }
}

/// A message inside a host uses no link between hosts, and takes the hop latency for each hop.
#[test]
fn host_latency_follows_the_hops() {
    let protocol = &ordering("so-strict", &[]);
    let time = |latency: u64| {
        let mut platform = machine();
        platform.link.latency.value = latency;
        let mut scenario = write_scenario(1, 1, 20);
        scenario.releases_per_check = 0;
        let performance = play_or_panic(&setup(protocol, &platform, Arc::new(scenario)), "so");
        performance.tally.times["written"].mean()
    };
    // The first store, and 20 releases, each in flight together with the next store: 21 round trips.
    assert_eq!((time(75_000) - time(25_000)) as u64, 21 * 2 * 2 * 50_000);
}

/// Stores of one thread to the words of a line are in flight together, except in the strict form. So the time until a
/// release is acquired grows by the bytes of a store for each of them, and not by a round trip.
#[test]
fn stores_to_one_line_overlap() {
    let acquired_after = |protocol: &Protocol, stores: u32| {
        let scenario = KernelScenario(Exchange {
            hosts: Hosts {
                homes: 8,
                threads: 8,
            },
            fanout: 1,
            granularity: Granularity::Word,
            stores,
            releases: 1,
        });
        let performance = play_or_panic(&setup(protocol, &machine(), Arc::new(scenario)), "words");
        performance.end as f64 / 1000.0
    };
    let platform = machine();
    // Four links on the way to another host and back.
    let round_trip_ns = 4.0 * platform.link.latency.value as f64 / 1000.0;
    let (overlapping, strict) = (
        ordering("so", &[("homes", 8), ("most", 128)]),
        ordering("so-strict", &[]),
    );
    let added = |protocol: &Protocol| acquired_after(protocol, 8) - acquired_after(protocol, 1);
    assert!(added(&strict) > 7.0 * round_trip_ns, "{}", added(&strict));
    assert!(
        added(&overlapping) < round_trip_ns,
        "{}",
        added(&overlapping)
    );
}

/// Outstanding stores are not waited for one by one; a release waits for all.
#[test]
fn stores_of_a_thread_overlap() {
    let protocol = &ordering("so-strict", &[]);
    let time = |posted: Option<u64>| {
        let mut platform = machine();
        match posted {
            Some(posted) => platform.cores.max_posted_stores.as_mut().unwrap().value = posted,
            None => platform.cores.max_posted_stores = None,
        }
        let performance = play_or_panic(
            &setup(protocol, &platform, Arc::new(write_scenario(1, 32, 4))),
            "so",
        );
        performance.tally.times["written"].mean() / 1000.0
    };
    let round_trip_ns = 150.0;
    assert!(time(None) > 4.0 * 33.0 * round_trip_ns);
    assert!(time(Some(32)) < 4.0 * 3.0 * round_trip_ns);
    assert!(time(Some(8)) > 4.0 * 5.0 * round_trip_ns);
}
