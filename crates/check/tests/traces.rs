//! Traces of the checker's models: ways through them at random, and counterexamples, judged by the tables alone.

#[path = "../../../tests/traces.rs"]
mod traces;

use cohkit_check::system;
use cohkit_engine::graph::{graph, Graph};
use cohkit_engine::model::Model;
use cohkit_engine::trace::replay;
use cohkit_protocol::construct;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::text::{composes, parse};
use cohkit_trace::Trace;

fn modelled(protocol: &Protocol, remotes: Remotes, lines: u8) -> (Controller, Model) {
    let home = construct::home(protocol, remotes.total()).expect("there is a home");
    let options = system::Options::default();
    let model = system::model(protocol, &home, remotes, lines, &options);
    (home, model.expect("it is a system"))
}

/// A way of so many steps through a model, drawn at random.
fn walk(model: &Model, graph: &Graph, steps: usize, seed: u64) -> Trace {
    let (mut state, mut random, mut rules) = (0, seed, Vec::new());
    for _ in 0..steps {
        let here = graph.edges.partition_point(|edge| edge.from < state);
        let edges = graph.edges[here..].iter();
        let edges = edges.take_while(|edge| edge.from == state);
        let edges: Vec<_> = edges
            .filter_map(|edge| Some((edge.rule_index, edge.to?)))
            .collect();
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let Some(&(rule, to)) = edges.get((random >> 33) as usize % edges.len().max(1)) else {
            break;
        };
        rules.push(rule);
        state = to;
    }
    let walked = replay(model, 0, &rules).expect("the model goes there");
    Trace {
        sequence: walked.sequence,
        at_rest: false,
    }
}

/// Of each text that ships two agents, or the smallest system of the text where these have too many states.
fn systems() -> Vec<(Protocol, Controller, Model, Graph)> {
    let folder = format!("{}/../../protocols", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|file| file.extension().is_some_and(|ending| ending == "coh"))
        .collect();
    files.sort();
    let mut systems = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("it is text");
        // What composes others has their systems.
        if composes(&text) {
            continue;
        }
        let protocol = parse(&text).expect("the text is right");
        let two = (!protocol.several_tables()).then(|| Remotes::from(2));
        let of_text = protocol.systems.iter().map(|system| system.remotes);
        let of_text = of_text.min_by_key(Remotes::total);
        let system = two.into_iter().chain(of_text).find_map(|remotes| {
            let (home, model) = modelled(&protocol, remotes, 1);
            let graph = graph(&model, 30_000, None).ok()?;
            Some((home, model, graph))
        });
        let (home, model, graph) = system.expect("some system is small");
        systems.push((protocol, home, model, graph));
    }
    systems
}

#[test]
fn ways_through_models_are_in_order_and_faults_in_them_are_not() {
    let (mut rows, mut refused) = (0, 0);
    for (protocol, home, model, graph) in systems() {
        for seed in 0..3 {
            let of = format!("{} {seed}", protocol.name);
            let trace = walk(&model, &graph, 150, seed);
            if let Some(what) = protocol.joins_lines() {
                let judged = cohkit_trace::judge(&protocol, &home, &trace.sequence, trace.at_rest);
                let why = judged.expect_err("traces do not tell of it").why;
                assert!(why.contains(what), "{why}");
                continue;
            }
            rows += traces::sound(&protocol, &home, &trace, &of).rows;
            refused += traces::faults_are_refused(&protocol, &home, &trace, (seed, 150), &of);
        }
    }
    assert!(
        rows > 3000 && refused > 3000,
        "{rows} rows, {refused} faults"
    );
}
