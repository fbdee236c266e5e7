//! Measures the interpreter: `cargo run --release --example rate -- [processes] [threads]`.

use cohkit_check::{check, Options};
use std::time::Instant;

#[path = "../tests/models/mod.rs"]
mod models;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<usize>().ok());
    let mut next = |default| arguments.next().flatten().unwrap_or(default);
    let (processes, threads) = (next(6), next(1));
    let mut model = models::peterson(processes.clamp(2, 8) as i32);
    model.quiescent = None;
    let began = Instant::now();
    let report = check(
        &model,
        &Options {
            threads,
            ..Options::default()
        },
    )
    .expect("the model is valid");
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{}: {} states, {} firings, depth {}, {:.0} bytes per state; {seconds:.2} s, {:.2} M states/s, {:.2} M firings/s",
        model.name,
        report.states,
        report.transitions,
        report.depth,
        report.memory as f64 / report.states as f64,
        report.states as f64 / seconds / 1e6,
        report.transitions as f64 / seconds / 1e6,
    );
}
