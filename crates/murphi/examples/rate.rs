//! Measures one engine: `cargo run --release --example rate -- MODEL [threads] [interpreter|native|adaptive] [all]`.
//! With `all`, the search visits every state, even if scalarsets would allow one per orbit. The model is a Murphi text
//! or a number of processes for Peterson's mutual exclusion.

use cohkit_engine::search::Engine;
use cohkit_engine::{check, Options};
use cohkit_murphi as murphi;
use std::time::Instant;

use cohkit_testing::models;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let model_argument = arguments.first().map_or("6", String::as_str);
    let mut model = match model_argument.parse::<i32>() {
        Ok(processes) => models::peterson(processes.clamp(2, 8)),
        Err(_) => {
            let text = std::fs::read_to_string(model_argument).expect("a Murphi text");
            let read = murphi::read(model_argument, &text, murphi::Dialect::Any);
            read.expect("a text without errors").model
        }
    };
    model.quiescent = None;
    let threads = arguments.get(1).and_then(|a| a.parse().ok()).unwrap_or(1);
    let engine = match arguments.get(2).map(String::as_str) {
        Some("interpreter") => Engine::Interpreter,
        Some("native") => Engine::Native,
        _ => Engine::Adaptive,
    };
    let start = Instant::now();
    let options = Options {
        threads,
        engine,
        decompose: false,
        symmetry: arguments.get(3).map(String::as_str) != Some("all"),
        ..Options::default()
    };
    let report = check(&model, &options).expect("the model is valid");
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{}: {} states, {} firings, depth {}, {:.1} bytes per state; {seconds:.3} s, {:.2} M states/s, {:.2} M firings/s",
        model.name,
        report.states,
        report.transitions,
        report.depth,
        report.memory as f64 / report.states as f64,
        report.states as f64 / seconds / 1e6,
        report.transitions as f64 / seconds / 1e6,
    );
}
