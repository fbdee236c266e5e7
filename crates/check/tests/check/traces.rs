//! Traces of the checker's models: random paths and counterexamples, judged by the tables alone.

use cohkit_testing::seeded_traces;

use cohkit_base::sequence::{Action, Step};
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

/// Builds the home and the model of a system.
fn build_model(protocol: &Protocol, remotes: Remotes, lines: u8) -> (Controller, Model) {
    let home = construct::home(protocol, remotes.total()).expect("protocol with a home");
    let options = system::Options::default();
    let model = system::model(protocol, &home, remotes, lines, &options);
    (home, model.expect("model of the system"))
}

/// Returns a random path of at most `steps` steps through a model. The path depends on `seed` alone.
fn random_path(model: &Model, graph: &Graph, steps: usize, seed: u64) -> Trace {
    let (mut state, mut random, mut rules) = (0, seed, Vec::new());
    for _ in 0..steps {
        let first_edge = graph.edges.partition_point(|edge| edge.from < state);
        let edges = graph.edges[first_edge..].iter();
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
    let trace = replay(model, 0, &rules).expect("replayable path of the model");
    Trace {
        sequence: trace.sequence,
        ends_quiescent: false,
    }
}

/// Returns a system of each shipped protocol: two agents, or its smallest system if these have too many states.
fn shipped_systems() -> Vec<(Protocol, Controller, Model, Graph)> {
    let folder = format!("{}/../../protocols", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("folder of protocols")
        .map(|entry| entry.expect("readable folder entry").path())
        .filter(|file| file.extension().is_some_and(|ending| ending == "coh"))
        .collect();
    files.sort();
    let mut systems = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("protocol file");
        // A composition has the systems of its parts.
        if composes(&text) {
            continue;
        }
        let protocol = parse(&text).expect("protocol without errors");
        let two_agents = (!protocol.several_tables()).then(|| Remotes::from(2));
        let declared = protocol.systems.iter().map(|system| system.remotes);
        let declared = declared.min_by_key(Remotes::total);
        let system = two_agents.into_iter().chain(declared).find_map(|remotes| {
            let (home, model) = build_model(&protocol, remotes, 1);
            let graph = graph(&model, 30_000, None).ok()?;
            Some((home, model, graph))
        });
        let (home, model, graph) = system.expect("system small enough for a graph");
        systems.push((protocol, home, model, graph));
    }
    systems
}

/// The trace check reads the tables independently. It accepts every path of a model, and rejects seeded faults of a
/// trace.
#[test]
fn trace_check_accepts_model_paths_and_rejects_faults() {
    let (mut rows, mut rejections) = (0, 0);
    for (protocol, home, model, graph) in shipped_systems() {
        for seed in 0..3 {
            let context = format!("{} {seed}", protocol.name);
            let trace = random_path(&model, &graph, 150, seed);
            rows += seeded_traces::check_sound_trace(&protocol, &home, &trace, &context).rows;
            rejections += seeded_traces::count_rejected_faults(
                &protocol,
                &home,
                &trace,
                (seed, 150),
                &context,
            );
        }
    }
    assert!(
        rows > 3000 && rejections > 3000,
        "{rows} rows, {rejections} faults"
    );
}

/// Registers, messages about no line and several homes: the effect of a row on one line depends on all lines.
#[test]
fn trace_check_tracks_lineless_state_over_all_lines() {
    let root = format!("{}/../..", env!("CARGO_MANIFEST_DIR"));
    let (mut sizes, mut rejections) = (Vec::new(), 0);
    for name in [
        "tests/homes/told",
        "tests/homes/budget",
        "tests/homes/in-order",
        "tests/homes/ordered-at-homes",
        "ordering/cord",
        "ordering/mp",
        "ordering/seq",
    ] {
        let text = std::fs::read_to_string(format!("{root}/{name}.coh")).expect("ordering file");
        let parsed = parse(&text).expect("protocol without errors");
        for system in &parsed.systems {
            let protocol = system.resized_protocol.as_deref().unwrap_or(&parsed);
            assert!(protocol.line_coupling().is_some(), "{name}");
            let (home, model) = build_model(protocol, system.remotes, system.lines);
            let Ok(graph) = graph(&model, 60_000, None) else {
                continue;
            };
            sizes.push((protocol.homes, system.lines));
            for seed in 0..4 {
                let context = format!("{name} {} {seed}", system.name);
                let trace = random_path(&model, &graph, 200, seed);
                seeded_traces::check_sound_trace(protocol, &home, &trace, &context);
                rejections += seeded_traces::count_rejected_faults(
                    protocol,
                    &home,
                    &trace,
                    (seed, 60),
                    &context,
                );
            }
        }
    }
    assert!(sizes.contains(&(2, 2)) && sizes.len() > 9, "{sizes:?}");
    assert!(rejections > 2000, "{rejections}");
}

/// Copies that are written in place, independently.
#[test]
fn trace_check_tracks_stale_copies_written_in_place() {
    let text = include_str!("../../../../tests/accesses/in-place.coh");
    let protocol = parse(text).expect("protocol without errors");
    let (home, model) = build_model(&protocol, Remotes::from(2), 1);
    let graph = graph(&model, 30_000, None).unwrap_or_else(|_| panic!("it is small"));
    let mut rejections = 0;
    for seed in 0..6 {
        let (trace, context) = (random_path(&model, &graph, 150, seed), seed.to_string());
        seeded_traces::check_sound_trace(&protocol, &home, &trace, &context);
        rejections +=
            seeded_traces::count_rejected_faults(&protocol, &home, &trace, (seed, 60), &context);
    }
    assert!(rejections > 150, "{rejections}");
}

/// Caches that drop all copies at an acquire, by rows that change every line.
const SELF_INVALIDATE: &str = include_str!("../../../../protocols/self-invalidate.coh");

/// Rows that change every line are reported line by line, in their order.
#[test]
fn bulk_transitions_are_traced_line_by_line() {
    let protocol = parse(SELF_INVALIDATE).expect("protocol without errors");
    let mut rejections = 0;
    for (remotes, lines) in [(1, 2), (2, 2)] {
        let (home, model) = build_model(&protocol, Remotes::from(remotes), lines);
        let graph = graph(&model, 200_000, None).unwrap_or_else(|_| panic!("it is small"));
        let mut acquires = 0;
        for seed in 0..10 {
            let trace = random_path(&model, &graph, 200, seed);
            let context = format!("{remotes} and {lines}, {seed}");
            seeded_traces::check_sound_trace(&protocol, &home, &trace, &context);
            rejections += seeded_traces::count_rejected_faults(
                &protocol,
                &home,
                &trace,
                (seed, 100),
                &context,
            );
            let acquired =
                |step: &Step| matches!(&step.action, Action::Does { what } if what == "acquired");
            acquires += trace
                .sequence
                .steps
                .iter()
                .filter(|step| acquired(step))
                .count();
        }
        assert!(acquires > 10, "{acquires}");
    }
    assert!(rejections > 300, "{rejections}");
}

/// Returns the protocol with changes.
fn changed_protocol(changes: &[(&str, &str)]) -> Protocol {
    let change = |text: String, (from, to): &(&str, &str)| {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text.replace(from, to)
    };
    let text = changes.iter().fold(SELF_INVALIDATE.to_string(), change);
    parse(&text).unwrap_or_else(|errors| panic!("{}", errors[0].render("text", &text, false)))
}

/// The shipped protocol rejects the trace of a cache that keeps a line which it should drop.
#[test]
fn copy_kept_at_an_acquire_is_detected() {
    let correct = parse(SELF_INVALIDATE).expect("protocol without errors");
    let faulty = changed_protocol(&[(
        "every V becomes I, every IV becomes IN",
        "every IV becomes IN",
    )]);
    let (home, model) = build_model(&faulty, Remotes::from(2), 1);
    let graph = graph(&model, 200_000, None).unwrap_or_else(|_| panic!("it is small"));
    let mut detections = 0;
    for seed in 0..60 {
        let trace = random_path(&model, &graph, 300, seed);
        let rejection = |protocol: &Protocol| {
            cohkit_trace::judge(protocol, &home, &trace.sequence, false).err()
        };
        assert_eq!(rejection(&faulty), None, "{seed}");
        let error = rejection(&correct);
        detections +=
            usize::from(error.is_some_and(|r| r.reason.contains("must enter I in this step")));
    }
    assert!(detections > 10, "{detections}");
}

/// A cache may read older data than it has written, by its own rows. The trace is rejected if a memory model is
/// promised.
#[test]
fn read_older_than_its_core_has_observed_is_rejected() {
    let changes = [
        (
            "  I V     | store write_partial | send Write     | IW\n",
            "  I | store write_partial | send Write | IW\n  V | store write_partial | send Write | VW\n  VW | Ack | done | V\n",
        ),
        (
            "    IW  waits Ack ",
            "    VW  holds, waits Ack\n    IW  waits Ack ",
        ),
    ];
    let ordered = changed_protocol(&changes);
    let unordered = changed_protocol(&[
        changes[0],
        changes[1],
        ("guarantee none, rc", "guarantee none"),
    ]);
    let (home, model) = build_model(&ordered, Remotes::from(2), 1);
    let graph = graph(&model, 200_000, None).unwrap_or_else(|_| panic!("it is small"));
    let mut detections = 0;
    for seed in 0..20 {
        let mut trace = random_path(&model, &graph, 300, seed);
        seeded_traces::check_sound_trace(&ordered, &home, &trace, &format!("{seed}"));
        // Models leave out loads that hit. One is inserted where a store has just completed over a copy that is kept.
        let steps = &trace.sequence.steps;
        let state_after = |step: &Step, agent: usize| match &step.action {
            Action::Becomes { state } if step.agent == agent => Some(state.clone()),
            _ => None,
        };
        let position = (0..steps.len()).find(|&index| {
            let agent = steps[index].agent;
            let mut earlier = steps[..index].iter().rev();
            let earlier = earlier.find_map(|step| state_after(step, agent));
            state_after(&steps[index], agent).as_deref() == Some("V")
                && earlier.as_deref() == Some("VW")
        });
        let Some(index) = position else { continue };
        let load = Action::Does {
            what: "load".to_string(),
        };
        let step = Step {
            action: load,
            ..steps[index].clone()
        };
        trace.sequence.steps.insert(index + 1, step);
        let rejection = |protocol: &Protocol| {
            cohkit_trace::judge(protocol, &home, &trace.sequence, false).err()
        };
        let error = rejection(&ordered).expect("rejection by the protocol with a memory model");
        // The fault is reported at this step, or just behind it.
        assert!(
            (index + 2..=index + 3).contains(&error.step),
            "{error:?}, {index}"
        );
        assert!(
            error.reason.contains("the remote has already seen write"),
            "{}",
            error.reason
        );
        assert_eq!(rejection(&unordered), None, "{seed}");
        detections += 1;
    }
    assert!(detections > 5, "{detections}");
}
