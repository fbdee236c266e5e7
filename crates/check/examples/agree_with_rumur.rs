//! Compares systems of shipped texts with Rumur: `cargo run --release --example agree_with_rumur -- msi/two_lines ...`.
//!
//! For systems that take too long for a test. The last line is the result as JSON; the exit status is 1 if the two
//! differ.

use std::path::Path;

use cohkit_check::system;
use cohkit_engine::{check, Options, Outcome};
use cohkit_murphi::Style;
use cohkit_protocol::construct::construct;
use cohkit_protocol::protocol::Home;
use cohkit_protocol::text;

use cohkit_testing::rumur;

fn main() {
    assert!(rumur::require("rumur"), "nothing else is done here");
    let mut results = Vec::new();
    let mut all_agree = true;
    for name in std::env::args().skip(1) {
        let (file, system) = name.split_once('/').expect("PROTOCOL/SYSTEM");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
        let source =
            std::fs::read_to_string(folder.join(format!("{file}.coh"))).expect("a shipped text");
        let protocol = text::parse(&source).expect("a text without errors");
        let system = protocol
            .systems
            .iter()
            .find(|s| s.name == system)
            .expect("a system of the text");
        let home = match &protocol.home {
            Home::Controller(home) => home.clone(),
            Home::Policy(_) => {
                let construction = construct(&protocol).unwrap_or_else(|e| panic!("{e:?}"));
                match system.remotes.total() {
                    1 => construction.flat(true),
                    _ => construction.factored(true),
                }
            }
        };
        let options = system::Options::default();
        let model = system::model(&protocol, &home, system.remotes, system.lines, &options)
            .expect("a model");
        let every_state = Options {
            symmetry: false,
            ..Options::default()
        };
        let report = check(&model, &every_state).expect("the model is valid");
        let folder = tempfile::tempdir().expect("a folder for the generated checker");
        let (rumur_verified, rumur_states, _) = rumur::rumur(
            &model,
            Style::Plain,
            rumur::Compiled::Optimised,
            folder.path(),
        );
        let verified = report.outcome == Outcome::Verified;
        let agrees =
            verified == rumur_verified && (!verified || report.states == u128::from(rumur_states));
        eprintln!(
            "{name}: ours {} ({verified}), rumur {rumur_states} ({rumur_verified})",
            report.states
        );
        all_agree &= agrees;
        results.push(format!(
            "{{\"system\": \"{name}\", \"verified\": {verified}, \"states\": {}, \"rumur_verified\": {rumur_verified}, \"rumur_states\": {rumur_states}}}",
            report.states
        ));
    }
    println!("[{}]", results.join(", "));
    if !all_agree {
        std::process::exit(1);
    }
}
