//! Other checkers to compare with.

#[path = "../../../../tests/require.rs"]
mod require;

use cohkit_engine::model::Model;
use cohkit_murphi::{print, rumur_options, Style};
pub use require::require;
use std::path::Path;
use std::process::Command;

/// Optimization of Rumur's program: low if compilation is most of the work, high for many states.
#[derive(Clone, Copy)]
pub enum Compiled {
    #[allow(dead_code)]
    Fast,
    #[allow(dead_code)]
    Well,
}

/// Result of Rumur: true if there is no violation, the number of states, and its output.
#[allow(dead_code)]
pub fn rumur(
    model: &Model,
    style: Style,
    compiled: Compiled,
    folder: &Path,
) -> (bool, u64, String) {
    let printed = print(model, style).unwrap();
    let options = rumur_options(model, style);
    let found = rumur_text(&printed, &options, compiled, folder);
    found.unwrap_or_else(|said| panic!("{said}\n{printed}"))
}

/// Like [`rumur`], for a text. The error is Rumur's output for a text that it rejects.
pub fn rumur_text(
    printed: &str,
    options: &[&str],
    compiled: Compiled,
    folder: &Path,
) -> Result<(bool, u64, String), String> {
    let (text, c, checker) = (folder.join("m.m"), folder.join("m.c"), folder.join("m"));
    std::fs::write(&text, printed).unwrap();
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let (fine, said) = run(Command::new("rumur")
        .args(options)
        .args(["--threads", "1", "--output"])
        .arg(&c)
        .arg(&text));
    if !fine {
        return Err(said);
    }
    let (fine, said) = run(Command::new("cc")
        .args([
            match compiled {
                Compiled::Fast => "-O0",
                Compiled::Well => "-O2",
            },
            "-w",
            "-o",
        ])
        .arg(&checker)
        .arg(&c)
        .arg("-lpthread"));
    if !fine {
        return Err(said);
    }
    let (fine, said) = run(&mut Command::new(&checker));
    // "State Space Explored:\n\n\t20 states, 34 rules fired in 0s."
    let words: Vec<&str> = said.split_whitespace().collect();
    let states = words
        .windows(2)
        .filter(|w| w[1] == "states,")
        .find_map(|w| w[0].parse().ok());
    Ok((fine, states.unwrap_or_else(|| panic!("{said}")), said))
}
