//! The table *SPIN*: models of the library beside the same models in Promela, in `models/bench/spin`.
//!
//! The processes of a Promela model take the steps of the rules of its Murphi model. SPIN's default, partial-order
//! reduction, is on. It omits no state of these models, which the benchmark checks: SPIN stores the states of the Murphi
//! model, and two in which it initialises variables and starts processes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use cohkit_engine::report::Outcome;

use super::{
    library, search_every_state, search_up_to_symmetry, Measurement, Ratios, Selection,
    RUNS_OF_LONG_SEARCHES,
};

/// Models that exist in both languages.
const MODELS: [&str; 3] = ["filter_5", "mcs_lock", "ricart_agrawala"];

/// States of a Promela model before its processes run.
const INITIAL_STATES: u128 = 2;

/// A verifier that SPIN has generated from a model, compiled.
struct Verifier(PathBuf);

impl Verifier {
    /// Generates and compiles a verifier. `None` if SPIN is missing.
    ///
    /// # Panics
    /// If SPIN or the C compiler rejects the model.
    fn new(name: &str, folder: &Path) -> Option<Verifier> {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/bench/spin");
        let text = models.join(format!("{name}.pml")).canonicalize().unwrap();
        let mut generate = Command::new("spin");
        generate.arg("-a").arg(&text).current_dir(folder);
        let version = Command::new("spin").arg("-V").output().ok()?;
        if !String::from_utf8_lossy(&version.stdout).contains("Spin Version") {
            // Another program has the same name.
            return None;
        }
        let generated = generate.output().ok()?;
        assert!(generated.status.success(), "{name}: {generated:?}");
        let file = folder.join("pan");
        let mut compile = Command::new("cc");
        compile.args(["-O3", "-w", "-DSAFETY", "-DMEMLIM=8192", "-o"]);
        compile.arg(&file).arg("pan.c").current_dir(folder);
        assert!(compile.status().unwrap().success(), "{name}");
        Some(Verifier(file))
    }

    /// Runs the verifier. Returns the number of states that it stores.
    ///
    /// # Panics
    /// If the verifier reports an error or a truncated search.
    fn run(&self) -> Measurement<u128> {
        let start = Instant::now();
        let mut command = Command::new(&self.0);
        // The depth limit exceeds the depth of each model.
        let output = command
            .arg("-m1000000")
            .current_dir(self.0.parent().unwrap());
        let output = output.output().unwrap();
        let seconds = start.elapsed().as_secs_f64();
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.contains("errors: 0"), "{output}");
        assert!(!output.contains("max search depth too small"), "{output}");
        assert!(output.contains("+ Partial Order Reduction"), "{output}");
        let stored = output
            .lines()
            .find_map(|line| line.strip_suffix(" states, stored"));
        let result = stored.and_then(|number| number.trim().parse().ok());
        Measurement {
            seconds,
            result: result.unwrap_or_else(|| panic!("no number of states: {output}")),
        }
    }
}

/// Prints the table.
pub fn print_table(selection: &Selection, folder: &Path) {
    println!(
        "{:22}{:>9}{:>11}{:>11}{:>11}{:>9}{:>9}",
        "SPIN", "states", "ours", "orbits", "spin", "ratio", "orbits"
    );
    let (mut of_states, mut of_orbits) = (Ratios::default(), Ratios::default());
    for name in MODELS {
        if !selection.selects("SPIN", name) {
            continue;
        }
        let model = library(name);
        let runs = 0..RUNS_OF_LONG_SEARCHES;
        let every_state = runs.clone().map(|_| search_every_state(&model, 1));
        let every_state = every_state.reduce(Measurement::faster).unwrap();
        let orbits = runs.clone().map(|_| search_up_to_symmetry(&model));
        let orbits = orbits.reduce(Measurement::faster).unwrap();
        for report in [&every_state.result, &orbits.result.report] {
            assert_eq!(report.outcome, Outcome::Verified, "{name}");
        }
        let states = every_state.result.states;
        let comparison = match Verifier::new(name, folder) {
            None => format!("{:>11}", "-"),
            Some(verifier) => {
                let theirs = runs.map(|_| verifier.run()).reduce(Measurement::faster);
                let theirs = theirs.unwrap();
                assert_eq!(theirs.result, states + INITIAL_STATES, "{name}");
                format!(
                    "{:>9.4} s{:>9}{:>9}",
                    theirs.seconds,
                    of_states.add(every_state.seconds, theirs.seconds),
                    of_orbits.add(orbits.seconds, theirs.seconds),
                )
            }
        };
        println!(
            "{name:22}{states:>9}{:>9.4} s{:>9.4} s{comparison}",
            every_state.seconds, orbits.seconds
        );
    }
    of_states.print_summary(
        "every state on both sides, with SPIN's partial-order reduction; compilation is left out of SPIN's time alone",
    );
    of_orbits.print_summary("our search up to symmetry, which SPIN does not have");
}
