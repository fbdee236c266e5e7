//! The search beside Rumur's, on the same models, one thread each, in the same run.
//!
//! Rumur generates C from the exported model, compiled here with `-O3` and not timed.
//! Both explore without symmetry reduction and judge the same safety properties; our drain check comes on top.
//! Without Rumur our own speed is printed alone.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use cohkit_check::model::{Deadlock, Model};
use cohkit_check::murphi::{print, rumur_options, Style};
use cohkit_check::report::{check, Outcome};
use cohkit_check::search::Options;
use cohkit_check::system;
use cohkit_protocol::construct::construct;
use cohkit_protocol::protocol::Home;
use cohkit_protocol::text;

#[path = "../tests/models/mod.rs"]
mod models;

/// The model of a system of a shipped text.
fn shipped(protocol: &str, system: &str) -> Model {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
    let text = std::fs::read_to_string(folder.join(format!("{protocol}.coh"))).unwrap();
    let protocol = text::parse(&text).unwrap();
    let system = protocol.systems.iter().find(|s| s.name == system).unwrap();
    let home = match &protocol.home {
        Home::Controller(home) => home.clone(),
        Home::Policy(_) => {
            let construction = construct(&protocol).ok().unwrap();
            match system.remotes {
                1 => construction.flat(true),
                _ => construction.factored(true),
            }
        }
    };
    let options = system::Options::default();
    system::model(&protocol, &home, system.remotes, system.lines, &options).unwrap()
}

/// Seconds Rumur's checker takes, and its number of states.
fn rumur(model: &Model, folder: &Path) -> Option<(f64, u64)> {
    let (text, c, checker) = (folder.join("m.m"), folder.join("m.c"), folder.join("m"));
    std::fs::write(&text, print(model, Style::Plain).ok()?).ok()?;
    let mut generate = Command::new("rumur");
    generate
        .args(rumur_options(model, Style::Plain))
        .args(["--threads", "1", "--output"]);
    let generated = generate.arg(&c).arg(&text).status().ok()?.success();
    let mut compile = Command::new("cc");
    compile
        .args(["-O3", "-w", "-o"])
        .arg(&checker)
        .arg(&c)
        .arg("-lpthread");
    if !generated || !compile.status().ok()?.success() {
        return None;
    }
    let start = Instant::now();
    let output = Command::new(&checker).output().ok()?;
    let seconds = start.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let words: Vec<&str> = said.split_whitespace().collect();
    let states = words.windows(2).find(|pair| pair[1] == "states,")?[0]
        .parse()
        .ok()?;
    Some((seconds, states))
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let models = [
        ("Peterson, 5 processes", models::peterson(5)),
        ("eci one_line", shipped("eci", "one_line")),
        ("eci two_cpus", shipped("eci", "two_cpus")),
        ("msi three_caches", shipped("msi", "three_caches")),
        ("mesi three_caches", shipped("mesi", "three_caches")),
        ("moesi three_caches", shipped("moesi", "three_caches")),
    ];
    println!(
        "{:24}{:>10}{:>12}{:>12}{:>8}",
        "model", "states", "ours", "rumur", "ratio"
    );
    let mut logarithms = Vec::new();
    for (name, mut model) in models {
        // The plain export judges safety only; so do we here.
        model.quiescent = None;
        model.deadlock = Deadlock::Off;
        let options = Options {
            threads: 1,
            decompose: false,
            ..Options::default()
        };
        let start = Instant::now();
        let report = check(&model, &options).unwrap();
        let ours = start.elapsed().as_secs_f64();
        assert!(matches!(report.outcome, Outcome::Verified));
        let beside = match rumur(&model, folder.path()) {
            None => format!("{:>12}{:>8}", "not there", ""),
            Some((theirs, states)) => {
                assert_eq!(u128::from(states), report.states, "both explore the same");
                logarithms.push((theirs / ours).ln());
                format!("{theirs:>10.2} s{:>8.1}", theirs / ours)
            }
        };
        println!("{name:24}{:>10}{ours:>10.2} s{beside}", report.states);
    }
    if !logarithms.is_empty() {
        let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
        println!("{:24}{:>42.1}", "geometric mean", mean);
    }
}
