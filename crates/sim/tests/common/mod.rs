//! The shipped protocol texts, and short hard runs of them.

#![allow(dead_code)]

use cohkit_protocol::controller::Access;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::text;
use cohkit_sim::agents::device::DeviceWorkload;
use cohkit_sim::components::traffic::{Pattern, Workload};
use cohkit_sim::kernel::NANOSECOND;
use cohkit_sim::oracle::Level;
use cohkit_sim::platform::Platform;
use cohkit_sim::simulation::Setup;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../protocols")
}

/// Names of all shipped protocols, in order.
pub fn protocols() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let coh = path.extension().is_some_and(|extension| extension == "coh");
            coh.then(|| path.file_stem().unwrap().to_string_lossy().into_owned())
        })
        .collect();
    names.sort();
    assert!(!names.is_empty());
    names
}

/// The text of a shipped protocol.
pub fn source(name: &str) -> String {
    std::fs::read_to_string(folder().join(format!("{name}.coh"))).unwrap()
}

/// A protocol from its text.
pub fn parse(text: &str) -> Protocol {
    text::parse(text).unwrap_or_else(|errors| {
        let errors = errors.iter().map(|error| error.render("text", text, false));
        panic!("{}", errors.collect::<String>())
    })
}

/// A shipped protocol.
pub fn protocol(name: &str) -> Protocol {
    parse(&source(name))
}

/// Accesses of a short run.
pub const ACCESSES: u64 = 1_500;
/// Local operations of the device in a short run: it goes on when the cores have done.
pub const DEVICE_OPERATIONS: u64 = 600;

/// A short run that makes races likely.
pub fn torture(protocol: Protocol, remotes: u8, seed: u64) -> Result<Setup, String> {
    let workload = Workload {
        pattern: Pattern::Random,
        mix: vec![
            (Access::Load, 8),
            (Access::Store, 8),
            (Access::Evict, 2),
            (Access::Demote, 1),
            (Access::Clean, 1),
            (Access::ReadOnce, 2),
            (Access::WriteLine, 1),
            (Access::WritePartial, 1),
        ],
        lines: 1 + (seed % 7) as u32,
        accesses: ACCESSES,
        cores: 2 * u32::from(remotes),
        outstanding: 3,
        prefetch: 0,
        write_hints: 100,
    };
    let device = DeviceWorkload {
        operations: DEVICE_OPERATIONS,
        lines: workload.lines,
        pause: 300 * NANOSECOND,
        seed,
    };
    let mut platform = Platform::torture(remotes);
    // Every second group of three seeds has something between the cores and their caches.
    let line = u64::from(protocol.line_bytes);
    if seed / 3 % 2 == 1 {
        platform.cores.write_buffer.value = 2 * line;
        platform.cores.l1.value = 4 * line;
    }
    Ok(Setup {
        device,
        seed,
        oracle: Level::Bytes,
        ..Setup::new(protocol, platform, workload)?
    })
}
