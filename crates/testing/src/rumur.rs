//! Rumur, the independent checker that verdicts and numbers of states are compared with.

use crate::require;

use cohkit_engine::model::Model;
use cohkit_murphi::{print, rumur_options, Style};
pub use require::require;
use std::path::Path;
use std::process::Command;

/// Optimization of Rumur's program: low if compilation is most of the work, high for many states.
#[derive(Clone, Copy)]
pub enum Compiled {
    /// `-O0`.
    Unoptimised,
    /// `-O2`.
    Optimised,
}

/// Checks a model with Rumur. Returns true if there is no violation, the number of states, and
/// the output. `folder` receives the source, the generated program and its binary.
///
/// # Panics
/// If Rumur or the compiler rejects the model.
pub fn rumur(
    model: &Model,
    style: Style,
    optimisation: Compiled,
    folder: &Path,
) -> (bool, u64, String) {
    let printed = print(model, style).unwrap();
    let options = rumur_options(model, style);
    let result = rumur_text(&printed, &options, optimisation, folder);
    result.unwrap_or_else(|output| panic!("{output}\n{printed}"))
}

/// Checks a model given as text, like [`rumur`], with these command-line options of Rumur.
///
/// # Errors
/// The output of Rumur or the compiler for a text that it rejects.
pub fn rumur_text(
    printed: &str,
    options: &[&str],
    optimisation: Compiled,
    folder: &Path,
) -> Result<(bool, u64, String), String> {
    let (text, c, program) = (folder.join("m.m"), folder.join("m.c"), folder.join("m"));
    std::fs::write(&text, printed).unwrap();
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let (success, output_text) = run(Command::new("rumur")
        .args(options)
        .args(["--threads", "1", "--output"])
        .arg(&c)
        .arg(&text));
    if !success {
        return Err(output_text);
    }
    let (success, output_text) = run(Command::new("cc")
        .args([
            match optimisation {
                Compiled::Unoptimised => "-O0",
                Compiled::Optimised => "-O2",
            },
            "-w",
            "-o",
        ])
        .arg(&program)
        .arg(&c)
        .arg("-lpthread"));
    if !success {
        return Err(output_text);
    }
    let (success, output_text) = run(&mut Command::new(&program));
    // "State Space Explored:\n\n\t20 states, 34 rules fired in 0s."
    let words: Vec<&str> = output_text.split_whitespace().collect();
    let states = words
        .windows(2)
        .filter(|w| w[1] == "states,")
        .find_map(|w| w[0].parse().ok());
    Ok((
        success,
        states.unwrap_or_else(|| panic!("{output_text}")),
        output_text,
    ))
}
