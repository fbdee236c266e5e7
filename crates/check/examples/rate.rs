//! Measures one engine: `cargo run --release --example rate -- [processes] [threads] [interpreter|native|adaptive]`.

use cohkit_check::search::Engine;
use cohkit_check::{check, Options};
use std::time::Instant;

#[path = "../tests/models/mod.rs"]
mod models;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default| {
        let given = arguments.get(i).and_then(|a| a.parse::<usize>().ok());
        given.unwrap_or(default)
    };
    let (processes, threads) = (number(0, 6), number(1, 1));
    let engine = match arguments.get(2).map(String::as_str) {
        Some("interpreter") => Engine::Interpreter,
        Some("native") => Engine::Native,
        _ => Engine::Adaptive,
    };
    let mut model = models::peterson(processes.clamp(2, 8) as i32);
    model.quiescent = None;
    let began = Instant::now();
    let options = Options {
        threads,
        engine,
        ..Options::default()
    };
    let report = check(&model, &options).expect("the model is valid");
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
