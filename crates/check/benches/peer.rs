//! The search beside Rumur's, on the same models, one thread each, in the same run; and two threads beside two
//! searches at once. `cargo bench -p cohkit-check --bench peer -- NAME` measures the models whose names contain the word.
//!
//! Rumur generates C from the exported model, compiled here with `-O3` and not timed.
//! Both explore without symmetry reduction and judge the same safety properties; our drain check comes on top.
//! Without Rumur our own speed is printed alone.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use cohkit_check::model::{Deadlock, Model};
use cohkit_check::murphi::{print, rumur_options, Style};
use cohkit_check::report::{check, Outcome, Report};
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

/// Seconds a search takes, and what it finds.
fn ours(model: &Model, threads: usize) -> (f64, Report) {
    let options = Options {
        threads,
        decompose: false,
        symmetry: false,
        ..Options::default()
    };
    let start = Instant::now();
    let report = check(model, &options).unwrap();
    (start.elapsed().as_secs_f64(), report)
}

/// Seconds that two searches with one thread each take side by side.
fn side_by_side(model: &Model) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| ours(model, 1));
        ours(model, 1);
        other.join().unwrap();
    });
    start.elapsed().as_secs_f64()
}

fn main() {
    let wanted: Vec<String> = (std::env::args().skip(1))
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let models = [
        ("Peterson, 5 processes", models::peterson(5)),
        ("Peterson, 6 processes", models::peterson(6)),
        ("five token rings", models::copies(5, false)),
        ("eci one_line", shipped("eci", "one_line")),
        ("eci two_cpus", shipped("eci", "two_cpus")),
        ("msi three_caches", shipped("msi", "three_caches")),
        ("msi two_lines", shipped("msi", "two_lines")),
        ("mesi three_caches", shipped("mesi", "three_caches")),
        ("mesi two_lines", shipped("mesi", "two_lines")),
        ("moesi three_caches", shipped("moesi", "three_caches")),
        ("moesi two_lines", shipped("moesi", "two_lines")),
    ];
    println!(
        "{:22}{:>9}{:>8}{:>9}{:>9}{:>9}{:>7}{:>13}",
        "model", "states", "bytes", "ours", "M/s", "rumur", "ratio", "two threads"
    );
    let mut logarithms = Vec::new();
    for (name, mut model) in models {
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        // The plain export judges safety only; so do we here.
        model.quiescent = None;
        model.deadlock = Deadlock::Off;
        let (seconds, report) = ours(&model, 1);
        assert!(matches!(report.outcome, Outcome::Verified));
        let beside = match rumur(&model, folder.path()) {
            None => format!("{:>9}{:>7}", "not there", ""),
            Some((theirs, states)) => {
                assert_eq!(u128::from(states), report.states, "both explore the same");
                logarithms.push((theirs / seconds).ln());
                format!("{theirs:>7.2} s{:>7.1}", theirs / seconds)
            }
        };
        // What two threads reach of two independent searches.
        let independent = side_by_side(&model);
        let (together, same) = ours(&model, 2);
        assert_eq!(same, report, "any number of threads gives the same report");
        println!(
            "{name:22}{:>9}{:>8.1}{seconds:>7.2} s{:>9.2}{beside}{:>11.0} %",
            report.states,
            report.memory as f64 / report.states as f64,
            report.states as f64 / seconds / 1e6,
            independent / together / 2.0 * 100.0,
        );
    }
    if !logarithms.is_empty() {
        let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
        println!("{:66}{:>7.1}", "geometric mean", mean);
    }
}
