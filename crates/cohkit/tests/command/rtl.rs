//! Tests of `cohkit rtl`.

mod emit;
mod lockstep;
mod machines;
mod measurements;
mod tools;

use expect_test::expect;
use std::fs;

/// Folder where the tests of the RTL keep their builds.
pub(crate) fn build_folder() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("lockstep")
}

/// Options of a size that other tests build, too.
const SMALL_SHAPE_OPTIONS: [&str; 6] = [
    "--set",
    "home.units=2",
    "--set",
    "cache.sets=8",
    "--set",
    "cache.ways=4",
];

/// Interrupts a command after it has started, and checks that nothing stays in its temporary folder.
#[cfg(unix)]
fn interrupt(
    command: &mut std::process::Command,
    folder: &std::path::Path,
    has_started: impl Fn() -> bool,
) {
    use std::process::{Command, Stdio};
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    while !has_started() {
        if let Some(status) = child.try_wait().expect("the command can be polled") {
            panic!("it ends by itself: {status}");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let kill_status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill_status.expect("kill runs").success());
    let output = child.wait_with_output().expect("the command ends");
    expect![[r#"
        exit code 130
        --- stderr
        interrupted; nothing was written
    "#]]
    .assert_eq(&crate::transcript(&output));
    let leftovers: Vec<_> = fs::read_dir(folder).expect("the folder exists").collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

/// Example in the help of `rtl synth`: a minute of work, which both tests share.
pub(crate) const SYNTHESIS: &str = "cohkit rtl synth protocols/eci.coh --units 1";
