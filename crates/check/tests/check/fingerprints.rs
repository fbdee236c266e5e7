//! Fingerprints of many models. A change of the lowering's structure keeps every one of them: variables, rules,
//! invariants, notes and their order.
//!
//! A change of behaviour refreshes the list with `UPDATE_EXPECT=1`.

use cohkit_check::system::progress::{
    begin_model, core_accesses, kinds, lines_of, restart_model, watch_model,
};
use cohkit_check::system::{system_model, Options};
use cohkit_protocol::construct;
use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::{Home, Protocol};
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::text::parse;
use cohkit_testing::random_protocols::generate::{self, COMBINED};
use cohkit_testing::setups;
use std::fmt::{Debug, Write};

/// 64-bit FNV-1a hash of the text that is written to it.
struct Fingerprint(u64);

impl Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

impl Fingerprint {
    fn new() -> Fingerprint {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a value as Rust prints it.
    fn add(&mut self, value: &impl Debug) {
        write!(self, "{value:?}").expect("writing to a hash succeeds");
    }
}

/// Returns the fingerprint of the models of a system: that of its properties, and those of its progress.
fn fingerprint(protocol: &Protocol, remotes: &Remotes, lines: u8, options: &Options) -> u64 {
    let mut fingerprint = Fingerprint::new();
    let home = match construct::home(protocol, remotes.total()) {
        Ok(home) => home,
        Err(_) => return 0,
    };
    fingerprint.add(&system_model(protocol, &home, *remotes, lines, options));
    let size = || (*remotes, lines_of(protocol, lines));
    for kind in kinds(protocol, &home) {
        fingerprint.add(&watch_model(protocol, &home, size(), kind, options));
    }
    let accesses: Vec<Access> = core_accesses(&protocol.remote).collect();
    fingerprint.add(&restart_model(protocol, &home, size(), &accesses, options));
    for access in accesses {
        fingerprint.add(&begin_model(protocol, &home, size(), access, options));
    }
    fingerprint.0
}

/// Adds a line for each of several systems of a shipped protocol.
fn add_protocol(list: &mut String, name: &str) {
    let text = setups::protocol(name);
    let plain = Options::default();
    let small = Options {
        trial: Some(2),
        overlaps_requests: false,
        ..Options::default()
    };
    let outer = Options {
        parent_any: true,
        ..Options::default()
    };
    for system in &text.systems {
        let protocol = system.resized_protocol.as_deref().unwrap_or(&text);
        let (remotes, lines) = (&system.remotes, system.lines);
        let values =
            [&plain, &small, &outer].map(|options| fingerprint(protocol, remotes, lines, options));
        let [plain, small, outer] = values.map(|value| format!("{value:016x}"));
        let size = format!("{}x{lines}", remotes.total());
        writeln!(list, "{name} {size}: {plain} {small} {outer}").expect("a string");
    }
}

/// Adds a line for a number of random protocols, without those that are rejected.
fn add_random(list: &mut String, first: u64, count: u64) {
    let mut fingerprints = Fingerprint::new();
    for seed in first..first + count {
        let Ok(protocol) = parse(&generate::protocol(seed)) else {
            continue;
        };
        let Home::Controller(home) = &protocol.home else {
            continue;
        };
        for system in &protocol.systems {
            let (remotes, lines) = (system.remotes, system.lines);
            let options = Options::default();
            fingerprints.add(&system_model(&protocol, home, remotes, lines, &options));
        }
    }
    writeln!(list, "random from {first}: {:016x}", fingerprints.0).expect("a string");
}

/// Compares the fingerprints of shipped, test and random protocols with the stored list.
#[test]
fn models_keep_their_fingerprints() {
    let mut list = String::new();
    for name in setups::protocols() {
        add_protocol(&mut list, &name);
    }
    add_random(&mut list, 0, 100);
    add_random(&mut list, generate::ARRAYS, 20);
    add_random(&mut list, generate::DEFERRED_STORES, 40);
    add_random(&mut list, generate::POSTED, 40);
    add_random(&mut list, COMBINED, 200);
    expect_test::expect_file!["fingerprints.txt"].assert_eq(&list);
}
