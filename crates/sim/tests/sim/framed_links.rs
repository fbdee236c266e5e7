//! Links with frames, credits and retransmission.

use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::{Class, Protocol};
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::{Platform, Switch};
use cohkit_sim::simulation::{run, Setup};
use cohkit_sim::statistics::Statistics;
use cohkit_testing::setups::{protocol, protocols, restrict_to_protocol, seeds, torture};
use cohkit_units::Quantity;

/// Bytes of one GiB.
const GIB: f64 = (1u64 << 30) as f64;

/// Sets quantities of a platform, by name.
fn set_quantities(platform: &mut Platform, settings: &[(&str, &str)]) {
    for (name, value) in settings {
        platform
            .set(name, value)
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Runs a short random setup of a shipped protocol on links with these quantities. The oracle checks every byte.
fn run_torture(name: &str, seed: u64, settings: &[(&str, &str)]) -> Statistics {
    let mut setup = torture(protocol(name), 2, seed).unwrap();
    set_quantities(&mut setup.platform, settings);
    setup.workload.accesses = 300;
    setup.oracle = Level::Bytes;
    run(&setup).unwrap_or_else(|failure| {
        panic!(
            "COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim framed_links::\n{name}: {failure}"
        )
    })
}

/// Returns the message of the error with which a run of sequential loads fails.
fn run_error(protocol: Protocol, platform: Platform) -> Option<String> {
    let workload = Workload::pass(Pattern::Sequential, Access::Load, 8, 1, 1);
    run(&Setup::new(protocol, platform, workload).unwrap())
        .err()
        .map(|error| error.to_string())
}

/// Runs a workload on a machine in which only the links limit the bandwidth.
fn run_reads(protocol_name: &str, settings: &[(&str, &str)], accesses: u64) -> Statistics {
    let mut platform = Platform::shipped("enzian-dc-bram").unwrap();
    let link_bound = [
        ("cores.compute_time", "0ns"),
        ("cores.max_outstanding", "16"),
        ("cores.prefetch_distance", "0"),
        ("cache.sets", "1"),
        ("home.slices", "8"),
        ("home.units", "64"),
        ("home.occupancy", "0ns"),
        ("home.latency", "1ns"),
        ("home.memory_round_trip", "0ns"),
        ("bram.ports", "16"),
        ("bram.bandwidth", "1000GB/s"),
        ("link.latency", "50ns"),
        ("link.credits", "0"),
    ];
    set_quantities(&mut platform, &link_bound);
    set_quantities(&mut platform, settings);
    let mut workload = Workload::pass(Pattern::Chunked, Access::ReadOnce, 1 << 16, 48, 16);
    workload.accesses = accesses;
    let setup = Setup::new(protocol(protocol_name), platform, workload).unwrap();
    run(&setup).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads reach the bandwidth of ECI's lanes: 12.02 GiB/s of words per link. One word in 17 is a header, and credits and
/// acknowledgements in that direction take their share.
#[test]
fn eci_read_bandwidth_matches_its_formula() {
    let rate = |links: &str| {
        let settings = [("link.layer", "eci"), ("link.count", links)];
        let statistics = run_reads("eci", &settings, 40_000);
        statistics.get("bandwidth_bytes_per_s").unwrap() / GIB
    };
    for (links, limit) in [("1", 12.02 * 16.0 / 17.0), ("2", 24.04 * 16.0 / 17.0)] {
        let rate = rate(links);
        assert!(
            rate < limit && rate > 0.97 * limit,
            "{links}: {rate:.2} of {limit:.2} GiB/s"
        );
    }
}

/// A single read takes the sum of its parts: one block in each direction, and for a line the blocks of its 17 words.
#[test]
fn read_occupies_its_number_of_blocks() {
    let latency = |layer: &str| {
        let statistics = run_reads(
            "eci",
            &[
                ("link.layer", layer),
                ("link.count", "1"),
                ("cores.max_outstanding", "1"),
            ],
            1,
        );
        statistics.get("latency_mean_ns").unwrap()
    };
    // Lanes of 10.3125 Gb/s with 64 of 67 bits, 2044 of 2048 words: a block of 512 bits on 12 of them.
    let block = 512.0 / (12.0 * 10.3125 * 64.0 / 67.0 * 2044.0 / 2048.0);
    let framed = latency("eci");
    // The pipe's 8 and 136 bytes at 9.8 GiB/s do not apply.
    let pipe = latency("none") - (8.0 + 136.0) / (9.8 * GIB) * 1e9;
    // One block for the request; three for the line's words; one and six receiver clocks at 322 MHz.
    let expected = pipe + 4.0 * block + 7.0 / 0.322265625;
    assert!(
        (framed - expected).abs() < 1.5 * block,
        "{framed:.2}, expected {expected:.2}"
    );
}

/// No frame is sent again unless it was lost, however long the latency.
#[test]
fn long_latency_causes_no_retransmission() {
    for layer in ["eci", "ccix"] {
        let settings = [("link.layer", layer), ("link.latency", "5us")];
        let statistics = run_reads("eci", &settings, 5_000);
        assert_eq!(statistics.get("link_units_replayed"), Some(0.0), "{layer}");
    }
}

/// Messages of one line may leave either link, and merging takes a configured time at each side; with one link it takes
/// none.
#[test]
fn merging_two_links_takes_the_configured_time() {
    for layer in ["eci", "ccix"] {
        let latency = |links: &str, join: &str, join_back: &str| {
            let settings = [
                ("link.layer", layer),
                ("link.count", links),
                ("link.merge_latency", join),
                ("link.merge_latency_back", join_back),
                ("cores.max_outstanding", "1"),
            ];
            run_reads("eci", &settings, 1)
                .get("latency_mean_ns")
                .unwrap()
        };
        for (links, to_home, from_home) in [("2", 30.0, 7.0), ("1", 0.0, 0.0)] {
            let unmerged = latency(links, "0ns", "0ns");
            let cases = [("30ns", "0ns", to_home), ("0ns", "7ns", from_home)];
            for (join, join_back, expected) in cases {
                let added = latency(links, join, join_back) - unmerged;
                // Messages caused by a merged message wait for the start of a block.
                let tolerance = if join == "0ns" { 1e-6 } else { 64.0 / 14.747 };
                assert!(
                    (added - expected).abs() < tolerance,
                    "{layer}, {links}: {added}, {expected}"
                );
            }
        }
    }
}

#[test]
fn every_protocol_is_coherent_on_every_framing() {
    let mut completed = 0;
    for name in protocols() {
        for seed in seeds(5) {
            let remotes = 1 + (seed % 3) as u16;
            let mut setup = torture(protocol(&name), remotes, seed).unwrap();
            let framing = ["eci", "ccix", "cxl-256", "cxl-68", "cxl-cache-68"][(seed % 5) as usize];
            setup.platform.set("link.layer", framing).unwrap();
            // Half of these setups have a switch, with one or two homes behind it.
            if (seed / 4 + name.len() as u64).is_multiple_of(2) {
                let latency = Quantity::given(20_000, "a test");
                setup.platform.switch = Some(Switch { latency });
                setup.device.operations = 0;
                setup.platform.home.count = Some(Quantity::given(1 + seed % 2, "a test"));
            }
            // Bit errors are so frequent that a few percent of the blocks are sent again.
            setup
                .platform
                .set("link.bit_errors_per_1e15", "20000000000")
                .unwrap();
            setup.workload.accesses = 60;
            setup.device.operations = setup.device.operations.min(20);
            setup.oracle = Level::Bytes;
            match run(&restrict_to_protocol(setup)) {
                Ok(statistics) => {
                    let total = statistics.get("accesses").unwrap() + statistics.get("accesses_skipped").unwrap();
                    assert_eq!(total, 60.0);
                    completed += 1;
                }
                Err(cohkit_sim::simulation::RunError::Setup(error)) => {
                    let reasons = ["which links of", "has no class, but links of", "links do not carry", "which are unordered"];
                    assert!(reasons.iter().any(|reason| error.contains(reason)), "{name}: {error}");
                }
                Err(failure) => panic!("COHKIT_SEED={seed} cargo test -p cohkit-sim --test sim framed_links::\n{name} {framing}: {failure}"),
            }
        }
    }
    assert!(completed > 15, "{completed}");
}

#[test]
fn setups_that_do_not_fit_a_framing_are_rejected() {
    let setup_error = |name: &str, platform: &str, layer: &str| {
        let mut platform = Platform::shipped(platform).unwrap();
        platform.set("link.layer", layer).unwrap();
        run_error(protocol(name), platform).unwrap()
    };
    assert_eq!(
        setup_error("eci", "enzian-dc-ddr", "cxl-256"),
        "a line of eci has 128 bytes, which links of cxl-256 do not carry"
    );
    let back_invalidate_error = setup_error("cxl-mem", "enzian-dc-ddr", "cxl-68");
    assert!(
        back_invalidate_error.ends_with(
            "is a back-invalidate message, which cxl-68 links do not carry; use cxl-256"
        ),
        "{back_invalidate_error}"
    );
    assert_eq!(
        setup_error("cxl-mem", "cxl-8x8", "cxl-256"),
        "cxl-8x8 has hosts with meshes, whose links are shared pipes: set `link.layer` to none"
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/cxl-cache.coh");
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.replace("d2h_req   as request          remote", "d2h_req   remote");
    let unclassed = cohkit_protocol::text::parse(&text).unwrap();
    let mut platform = Platform::shipped("peers-host-memory").unwrap();
    platform
        .set("agents.device.link.layer", "cxl-cache-68")
        .unwrap();
    assert_eq!(
        run_error(unclassed, platform).unwrap(),
        "channel `d2h_req` has no class, but links of cxl-cache-68 need it to distinguish requests from responses: declare `d2h_req as request`, or as another class"
    );
    let mut platform = Platform::shipped("enzian-dc-ddr").unwrap();
    assert_eq!(
        platform.set("link.layer", "usb").unwrap_err(),
        "`link.layer` is eci, ccix, cxl-68, cxl-256, cxl-cache-68 or none, not `usb`"
    );
    assert_eq!(
        platform.set("link.lanes", "4").unwrap_err(),
        "`link.lanes` needs a layer of the link: `link.layer` is one of eci, ccix, cxl-68, cxl-256, cxl-cache-68"
    );
    platform.set("link.layer", "eci").unwrap();
    assert_eq!(platform.set("link.lanes", "4"), Ok(()));
}

/// Half the lanes give half the bandwidth, and bit errors cost the bandwidth of retransmissions.
#[test]
fn bandwidth_follows_lanes_and_bit_errors() {
    let rate = |changes: &[(&str, &str)]| {
        let settings = [&[("link.layer", "eci"), ("link.count", "1")], changes].concat();
        let statistics = run_reads("eci", &settings, 10_000);
        (
            statistics.get("bandwidth_bytes_per_s").unwrap(),
            statistics.get("link_units_replayed").unwrap(),
        )
    };
    let (full_rate, clean_replays) = rate(&[]);
    let (half_rate, _) = rate(&[("link.lanes", "6")]);
    assert!(
        (half_rate / full_rate - 0.5).abs() < 0.02,
        "{half_rate} of {full_rate}"
    );
    let (noisy_rate, replayed) = rate(&[("link.bit_errors_per_1e15", "10000000000")]);
    assert!(clean_replays == 0.0 && replayed > 100.0, "{replayed}");
    assert!(noisy_rate < 0.97 * full_rate, "{noisy_rate} of {full_rate}");
}

/// Consecutive lines fill both links, although lines of one parity occur at even steps: each circuit uses the link with
/// the shorter queue.
#[test]
fn engine_saturates_both_links() {
    let platform = Platform::shipped("enzian-cpu-home").unwrap();
    let mut setup = Setup::new(protocol("eci-near"), platform, Workload::idle()).unwrap();
    for access in [Access::ReadOnce, Access::WriteLine] {
        let mut reads = Workload::pass(Pattern::Chunked, access, 1 << 15, 1, 128);
        reads.accesses = 20_000;
        setup.others = vec![reads];
        let rate = run(&setup).unwrap().get("bandwidth_bytes_per_s").unwrap() / GIB;
        assert!((21.5..22.7).contains(&rate), "{access:?}: {rate:.2} GiB/s");
    }
}

/// Hosts and memory devices behind a switch, over flits: as with pipes, all data arrive, and a miss crosses two links
/// in each direction.
#[test]
fn hosts_reach_memory_devices_over_flits_and_a_switch() {
    let latency = |layer: &str, accesses: u64, cores: u32| {
        let mut platform = Platform::shipped("hosts-8x8").unwrap();
        platform.set("link.layer", layer).unwrap();
        let mut reads = Workload::pass(Pattern::Random, Access::Load, 1 << 12, cores, 1);
        reads.mix.push((Access::Store, u32::from(cores > 1)));
        reads.accesses = accesses;
        let mut setup = Setup::new(protocol("cxl-mem"), platform, reads).unwrap();
        setup.oracle = Level::Bytes;
        let statistics = run(&setup).unwrap_or_else(|failure| panic!("{layer}: {failure}"));
        assert_eq!(statistics.get("accesses"), Some(accesses as f64));
        statistics.get("latency_mean_ns").unwrap()
    };
    for layer in ["none", "cxl-256"] {
        assert!(latency(layer, 20_000, 64) > 100.0);
    }
    let (pipe, flits) = (latency("none", 1, 1), latency("cxl-256", 1, 1));
    // A flit of 256 bytes takes 4.06 ns on 16 lanes of 32 Gb/s; a pipe's 16 and 80 bytes take 0.5 and 2.5 ns. Each of
    // the four flits waits for the end of the idle flit in progress.
    let flit = 256.0 / (16.0 * 32.0 / 8.0 * 128.0 / 130.0 * 1534.0 / 1538.0);
    let extra_flits = (flits - pipe + 2.0 * (16.0 + 80.0) / 31.5) / flit;
    assert!(
        (4.0..8.0).contains(&extra_flits),
        "{flits} and {pipe}: {extra_flits:.2} flits"
    );
}

/// Snoops and GO travel in different slots of flits, so either may arrive first: the receiver holds a snoop back for
/// the GO of its line. Bit errors delay some of them further by retransmission.
#[test]
fn snoops_wait_for_the_go_of_their_line() {
    for seed in seeds(6) {
        let settings = [
            ("link.layer", "cxl-cache-68"),
            ("link.bit_errors_per_1e15", "20000000000"),
        ];
        let statistics = run_torture("cxl-cache", seed, &settings);
        assert!(statistics.get("link_units_replayed").unwrap() > 0.0);
        assert!(statistics.sent("SnpInv").unwrap() > 0);
    }
}

/// Links go down, lose the messages in flight, and come up with fewer lanes or with all. No message is lost for good or
/// delivered twice, as the data oracle checks, and reads return the last write.
#[test]
fn link_failures_lose_no_message() {
    let mut replayed = 0.0;
    let layers = [
        ("eci", "eci"),
        ("ccix", "ccix"),
        ("cxl-mem", "cxl-256"),
        ("cxl-bias", "cxl-68"),
        ("cxl-cache", "cxl-cache-68"),
    ];
    for (name, layer) in layers {
        for seed in seeds(2) {
            let settings = [
                ("link.layer", layer),
                ("link.degraded_lanes", "4"),
                ("link.mean_uptime", "3us"),
                ("link.retrain_time", "500ns"),
                ("link.bit_errors_per_1e15", "10000000000"),
            ];
            let statistics = run_torture(name, seed, &settings);
            let get = |name: &str| statistics.get(name).unwrap();
            assert_eq!(get("accesses") + get("accesses_skipped"), 300.0);
            assert!(get("link_downs") > 0.0, "{name}");
            replayed += get("link_units_replayed");
        }
    }
    assert!(replayed > 100.0, "{replayed}");
}

/// Protocols for a link give each channel the class of the link's formats.
#[test]
fn link_protocols_assign_channel_classes() {
    let request_names = |name: &str| {
        let protocol = protocol(name);
        let requests = protocol
            .message_ids()
            .filter(|&id| matches!(protocol.class(id), Some(Class::Request | Class::Forward)));
        let names: Vec<&str> = requests
            .map(|id| protocol.message(id).name.as_str())
            .collect();
        names.join(" ")
    };
    let names_by_protocol = ["ccix", "cxl-cache", "cxl-mem", "cxl-bias"].map(request_names);
    assert_eq!(
        names_by_protocol,
        [
            "ReadShared ReadUnique CleanUnique ReadOnce WriteUnique Evict WriteBack SnpShared SnpUnique",
            "RdAny RdOwn RdCurr WrInv CleanEvictNoData CleanEvict DirtyEvict SnpInv SnpData",
            "MemRdS MemRdA MemRdCur MemInv BISnpInv BISnpData",
            "MemRdS MemRdA MemRdCur MemInv MemRdFwdI MemRdFwdS RdOwnNoData RdShared",
        ]
    );
}

/// A link that is down half the time, or has half its lanes half the time, has a correspondingly lower bandwidth.
#[test]
fn bandwidth_follows_link_uptime() {
    let rate = |changes: &[(&str, &str)]| {
        let settings = [&[("link.layer", "eci"), ("link.count", "1")], changes].concat();
        let statistics = run_reads("eci", &settings, 10_000);
        statistics.get("bandwidth_bytes_per_s").unwrap()
    };
    let full_rate = rate(&[]);
    // Down for 10 us of each 20 on average; credits and lost messages must then be sent again.
    let share_with_downtime =
        rate(&[("link.mean_uptime", "20us"), ("link.retrain_time", "10us")]) / full_rate;
    assert!(
        (0.4..0.55).contains(&share_with_downtime),
        "{share_with_downtime}"
    );
    let share_with_fewer_lanes =
        rate(&[("link.mean_uptime", "20us"), ("link.degraded_lanes", "6")]) / full_rate;
    assert!(
        (0.6..0.8).contains(&share_with_fewer_lanes),
        "{share_with_fewer_lanes}"
    );
    let mut platform = Platform::shipped("enzian-dc-bram").unwrap();
    let too_many_lanes = [
        ("link.layer", "eci"),
        ("link.mean_uptime", "1us"),
        ("link.degraded_lanes", "13"),
    ];
    set_quantities(&mut platform, &too_many_lanes);
    assert_eq!(
        run_error(protocol("eci"), platform).unwrap(),
        "a link of 12 lanes cannot come up with 13: `link.degraded_lanes` must be 1 to 12"
    );
}

/// Packets and flits need a lane count of PCIe; blocks of ECI are spread over any number.
#[test]
fn links_accept_only_supported_lane_counts() {
    let setup_error = |settings: &[(&str, &str)]| {
        let mut platform = Platform::shipped("enzian-dc-ddr").unwrap();
        set_quantities(&mut platform, settings);
        run_error(protocol("eci"), platform)
    };
    for lanes in ["1", "5", "12", "16"] {
        let eci = [("link.layer", "eci"), ("link.lanes", lanes)];
        assert_eq!(setup_error(&eci), None);
    }
    for lanes in ["1", "2", "4", "8", "16"] {
        let ccix = [("link.layer", "ccix"), ("link.lanes", lanes)];
        assert_eq!(setup_error(&ccix), None);
    }
    let layer = ("link.layer", "ccix");
    assert_eq!(
        setup_error(&[layer, ("link.lanes", "3")]).unwrap(),
        "a link of ccix has 1, 2, 4, 8 or 16 lanes, not 3: `link.lanes`"
    );
    // The number of lanes after a failure matters only if links fail.
    let lanes_left = ("link.degraded_lanes", "6");
    assert_eq!(setup_error(&[layer, lanes_left]), None);
    assert_eq!(
        setup_error(&[layer, lanes_left, ("link.mean_uptime", "1us")]).unwrap(),
        "a link of ccix has 1, 2, 4, 8 or 16 lanes, not 6: `link.degraded_lanes`"
    );
    let mut platform = Platform::shipped("enzian-dc-ddr").unwrap();
    platform.set("link.layer", "eci").unwrap();
    assert_eq!(
        platform.set("link.lanes", "17").unwrap_err(),
        "link.lanes must be 1 to 16, not 17"
    );
}
