//! Fingerprints of many small runs. A change of the simulator's structure keeps every one of them: statistics, latency
//! breakdowns, timelines and traces, byte for byte.
//!
//! A change of behaviour refreshes the list with `UPDATE_EXPECT=1`.

use cohkit_testing::setups;

use cohkit_application::rpc::Calls;
use cohkit_protocol::controller::Access;
use cohkit_sim::agents::device::DeviceWorkload;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::{Platform, Translation};
use cohkit_sim::simulation::{
    draw_while, explain_while, home, play_while, run, trace, HostSpace, LowerLevelSetup, Setup,
};
use cohkit_timeline::{Filter, Side};
use cohkit_units::Quantity;
use std::fmt::{Debug, Write};
use std::sync::Arc;

/// Returns the 64-bit FNV-1a hash of a text.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the fingerprint of a result as Rust prints it.
fn result_fingerprint(result: &impl Debug) -> String {
    format!("{:016x}", fingerprint(&format!("{result:?}")))
}

/// Adds a line for a setup: a plain run, a latency breakdown, a timeline and a trace of line 1.
fn add_runs(list: &mut String, label: &str, setup: &Setup) {
    let plain = result_fingerprint(&run(setup));
    let breakdown = result_fingerprint(&explain_while(setup, true, &mut |_| true));
    let timeline = result_fingerprint(&draw_while(setup, &Filter::default(), &mut |_| true));
    let traced = result_fingerprint(&trace(setup, Side::Device, 1));
    writeln!(list, "{label}: {plain} {breakdown} {timeline} {traced}")
        .expect("writing to a string succeeds");
}

/// Returns a translation with few entries and frequent invalidations.
fn translation() -> Translation {
    let mut quantities = Translation::new();
    let given = |value| Quantity::given(value, "a test");
    quantities.enabled = given(1);
    quantities.atc_entries = given(2);
    quantities.ats_latency = given(20_000);
    quantities.iommu_tlb_latency = given(5_000);
    quantities.invalidation_interval = given(600_000);
    quantities
}

/// Adds short runs of a protocol that make races likely.
fn add_protocol(list: &mut String, name: &str) {
    let protocol = setups::protocol(name);
    for seed in [1, 4] {
        let Ok(mut setup) = setups::torture(protocol.clone(), 2, seed) else {
            return;
        };
        setup.workload.accesses = 250;
        setup.device.operations = 80;
        add_runs(list, &format!("{name} {seed}"), &setup);
        if seed == 1 {
            setup.platform.cache.translation = Some(translation());
            add_runs(list, &format!("{name} translated"), &setup);
        }
    }
}

/// Adds a platform with a protocol, if they fit.
fn add_platform(list: &mut String, name: &str, protocol: &str) {
    let platform = Platform::shipped(name).expect("shipped platform");
    if platform.below.is_some() || platform.all_remotes() > 16 {
        return;
    }
    let cores = platform.cores.count.value as u32;
    let mut workload = Workload::pass(Pattern::Random, Access::Load, 200, cores, 2);
    workload.mix = vec![(Access::Load, 3), (Access::Store, 1)];
    workload.accesses = 1_000;
    if let Ok(setup) = Setup::new(setups::protocol(protocol), platform, workload) {
        add_runs(list, &format!("{name} {protocol}"), &setup);
    }
}

/// Returns a short run of two levels.
fn two_levels(name: &str) -> Setup {
    let upper = setups::protocol(name);
    let size = format!("line {} bytes", upper.line_bytes);
    let text = setups::source("mesi-l1").replace("line 64 bytes", &size);
    let mut setup = setups::torture(upper, 2, 1).expect("protocol with a home");
    setup.device = DeviceWorkload::default();
    setup.platform = Platform::torture(2);
    setup.workload.cores = 8;
    setup.workload.accesses = 500;
    setup.workload.mix = vec![(Access::Load, 8), (Access::Store, 8), (Access::Evict, 2)];
    let protocol = setups::parse(&text);
    setup.below = Some(Box::new(LowerLevelSetup {
        home: home(&protocol, 2).expect("protocol with a home"),
        platform: Platform::torture(2),
        protocol,
    }));
    setup
}

/// Returns a short run of two address spaces.
fn two_spaces() -> Setup {
    let [device, host] = ["enzian-dc-ddr", "enzian-cpu-home"]
        .map(|name| Platform::shipped(name).expect("shipped platform"));
    let platform = device.with_host(host).expect("the platforms combine");
    let work = |access, cores| Workload::pass(Pattern::Random, access, 1000, cores, 2);
    let host = HostSpace::new(setups::protocol("eci-near"), &platform);
    let mut host = host.expect("protocol with a home");
    host.workloads = [work(Access::Store, 4), work(Access::Load, 1)];
    let eci = setups::protocol("eci");
    let setup = Setup::new(eci, platform, work(Access::Load, 4));
    let mut setup = setup.expect("protocol with a home");
    setup.host = Some(Box::new(host));
    setup
}

/// Returns a short run of remote procedure calls.
fn calls() -> Setup {
    let mut platform = Platform::torture(2);
    platform.lines = 4096;
    let scenario = Arc::new(Calls::new(2, 2, Some(40)));
    let setup = Setup::with_scenario(setups::protocol("eci"), platform, scenario);
    let mut setup = setup.expect("protocol with a home");
    setup.oracle = Level::Bytes;
    setup
}

#[test]
fn small_runs_keep_their_fingerprints() {
    let mut list = String::new();
    for name in setups::protocols() {
        add_protocol(&mut list, &name);
    }
    for name in Platform::shipped_names() {
        for protocol in ["eci", "mesi", "cxl-cache", "ccix"] {
            add_platform(&mut list, name, protocol);
        }
    }
    for name in ["eci", "mesi", "token"] {
        add_runs(
            &mut list,
            &format!("{name} of two levels"),
            &two_levels(name),
        );
    }
    add_runs(&mut list, "two spaces", &two_spaces());
    let setup = calls();
    add_runs(&mut list, "calls", &setup);
    let performance = play_while(&setup, &mut |_| true).expect("run without violation");
    let performance = result_fingerprint(&(performance.tally.counts, performance.end));
    writeln!(list, "performance of calls: {performance}").expect("writing to a string succeeds");
    expect_test::expect_file!["fingerprints.txt"].assert_eq(&list);
}
