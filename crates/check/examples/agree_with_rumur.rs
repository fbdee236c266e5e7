//! Compares systems of shipped protocols with Rumur, which take too long for a test.
//!
//! ```text
//! cargo run --release -p cohkit-check --example agree_with_rumur -- msi/two_lines ...
//! ```
//!
//! Each argument is a protocol and one of its systems. The last line of output is the result as JSON. The exit code is
//! 1 if the two differ for some system.

use cohkit_check::system;
use cohkit_engine::model::Model;
use cohkit_engine::{check, Options, Outcome};
use cohkit_murphi::Style;
use cohkit_protocol::construct::construct;
use cohkit_protocol::protocol::Home;
use cohkit_protocol::text;
use cohkit_testing::rumur;
use std::path::Path;

fn main() {
    assert!(rumur::require("rumur"), "nothing else is done here");
    let comparisons: Vec<Comparison> = std::env::args()
        .skip(1)
        .map(|name| Comparison::new(&name))
        .collect();
    let results: Vec<String> = comparisons.iter().map(Comparison::json).collect();
    println!("[{}]", results.join(", "));
    if !comparisons.iter().all(Comparison::agrees) {
        std::process::exit(1);
    }
}

/// Results of both checkers for a system.
struct Comparison {
    /// Protocol and system, as in the argument.
    name: String,
    /// True if our checker verifies the system.
    verified: bool,
    /// Number of states that our checker finds.
    states: u128,
    /// True if Rumur verifies the system.
    rumur_verified: bool,
    /// Number of states that Rumur finds.
    rumur_states: u64,
}

impl Comparison {
    /// Runs both checkers, without symmetry reduction. `name` is `PROTOCOL/SYSTEM`.
    fn new(name: &str) -> Comparison {
        let model = shipped_model(name);
        let every_state = Options {
            symmetry: false,
            ..Options::default()
        };
        let report = check(&model, &every_state).expect("the model is valid");
        let folder = tempfile::tempdir().expect("a folder for the generated checker");
        let compiled = rumur::Compiled::Optimised;
        let (rumur_verified, rumur_states, _) =
            rumur::rumur(&model, Style::Plain, compiled, folder.path());
        let (verified, states) = (report.outcome == Outcome::Verified, report.states);
        eprintln!("{name}: ours {states} ({verified}), rumur {rumur_states} ({rumur_verified})");
        Comparison {
            name: name.to_string(),
            verified,
            states,
            rumur_verified,
            rumur_states,
        }
    }

    /// True if both verify the system with the same number of states, or both find a violation.
    fn agrees(&self) -> bool {
        self.verified == self.rumur_verified
            && (!self.verified || self.states == u128::from(self.rumur_states))
    }

    /// The results as a JSON object.
    fn json(&self) -> String {
        let Comparison {
            name,
            verified,
            states,
            rumur_verified,
            rumur_states,
        } = self;
        format!(
            "{{\"system\": \"{name}\", \"verified\": {verified}, \"states\": {states}, \"rumur_verified\": {rumur_verified}, \"rumur_states\": {rumur_states}}}"
        )
    }
}

/// Returns the model of a system of a shipped protocol. `name` is `PROTOCOL/SYSTEM`.
fn shipped_model(name: &str) -> Model {
    let (file, system) = name.split_once('/').expect("PROTOCOL/SYSTEM");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
    let source =
        std::fs::read_to_string(folder.join(format!("{file}.coh"))).expect("a shipped protocol");
    let protocol = text::parse(&source).expect("a protocol without errors");
    let mut systems = protocol.systems.iter();
    let system = systems
        .find(|declared| declared.name == system)
        .expect("a system of the protocol");
    let home = match &protocol.home {
        Home::Controller(home) => home.clone(),
        Home::Policy(_) => {
            let construction = construct(&protocol).unwrap_or_else(|error| panic!("{error:?}"));
            match system.remotes.total() {
                1 => construction.flat(true),
                _ => construction.factored(true),
            }
        }
    };
    let options = system::Options::default();
    system::model(&protocol, &home, system.remotes, system.lines, &options).expect("a model")
}
