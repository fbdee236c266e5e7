//! Start-up time of the command: the fastest of many runs, as the rest is due to the machine.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn main() {
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/tiny.coh");
    for arguments in [&["--help"][..], &["table", text], &["check", text]] {
        let time = || {
            let start = Instant::now();
            let status = Command::new(env!("CARGO_BIN_EXE_cohkit"))
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .status()
                .expect("the command starts");
            assert!(status.success());
            start.elapsed()
        };
        let fastest = (0..50).map(|_| time()).fold(Duration::MAX, Duration::min);
        let milliseconds = fastest.as_secs_f64() * 1e3;
        println!("cohkit {}: {milliseconds:.1} ms", arguments[0]);
    }
}
