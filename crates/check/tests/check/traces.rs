//! Traces of the checker's models: random paths and counterexamples, judged by the tables alone. A rejected path means
//! that model and trace checker read the tables differently. An accepted fault means that the trace checker is too
//! lenient.

use crate::support::{parse_valid, replace_once};
use cohkit_base::sequence::{Action, Step};
use cohkit_check::system;
use cohkit_engine::graph::{graph, Graph};
use cohkit_engine::model::Model;
use cohkit_engine::trace::replay;
use cohkit_protocol::construct;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::text::composes;
use cohkit_testing::seeded_traces::{check_sound_trace, count_rejected_faults};
use cohkit_trace::{Rejection, Trace};

/// A system whose traces are checked.
struct TracedSystem {
    /// Protocol of the system.
    protocol: Protocol,
    /// Home that the model executes.
    home: Controller,
    /// Model that makes the traces.
    model: Model,
    /// All states and transitions of the model.
    graph: Graph,
}

/// Numbers of a checked trace.
struct Checked {
    /// Rows that the trace takes.
    rows: usize,
    /// Seeded faults that the trace check rejects: all that have an effect.
    rejections: usize,
}

impl TracedSystem {
    /// Builds a system. `None` if it has more than `max_states` states.
    fn new(
        protocol: &Protocol,
        remotes: Remotes,
        lines: u8,
        max_states: usize,
    ) -> Option<TracedSystem> {
        let home = construct::home(protocol, remotes.total()).expect("protocol with a home");
        let options = system::Options::default();
        let model = system::model(protocol, &home, remotes, lines, &options);
        let model = model.expect("model of the system");
        let graph = graph(&model, max_states, None).ok()?;
        Some(TracedSystem {
            protocol: protocol.clone(),
            home,
            model,
            graph,
        })
    }

    /// Builds a system of at most 200,000 states.
    fn small(protocol: &Protocol, remotes: u16, lines: u8) -> TracedSystem {
        let system = TracedSystem::new(protocol, Remotes::from(remotes), lines, 200_000);
        system.unwrap_or_else(|| panic!("{} has too many states", protocol.name))
    }

    /// Returns a random path of at most `steps` steps. The path depends on `seed` alone.
    fn random_path(&self, steps: usize, seed: u64) -> Trace {
        let (mut state, mut random, mut rules) = (0, seed, Vec::new());
        for _ in 0..steps {
            // Edges are sorted by their first state.
            let first_edge = (self.graph.edges).partition_point(|edge| edge.from < state);
            let edges = self.graph.edges[first_edge..].iter();
            let edges = edges.take_while(|edge| edge.from == state);
            let edges: Vec<_> = edges
                .filter_map(|edge| Some((edge.rule_index, edge.to?)))
                .collect();
            // Knuth's linear congruential generator, of which the upper 31 bits are used.
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let Some(&(rule, to)) = edges.get((random >> 33) as usize % edges.len().max(1)) else {
                break;
            };
            rules.push(rule);
            state = to;
        }
        let trace = replay(&self.model, 0, &rules).expect("replayable path of the model");
        Trace {
            sequence: trace.sequence,
            ends_quiescent: false,
        }
    }

    /// Checks a trace, which must be accepted, and `faults` faults seeded into it, which must be rejected. `context` is
    /// for messages.
    fn check_trace(&self, trace: &Trace, seed: u64, faults: usize, context: &str) -> Checked {
        let (protocol, home) = (&self.protocol, &self.home);
        let rows = check_sound_trace(protocol, home, trace, context).rows;
        let rejections = count_rejected_faults(protocol, home, trace, (seed, faults), context);
        Checked { rows, rejections }
    }

    /// Returns the rejection of a trace by a protocol, with the home of this system.
    fn rejection_by(&self, protocol: &Protocol, trace: &Trace) -> Option<Rejection> {
        cohkit_trace::judge(protocol, &self.home, &trace.sequence, false).err()
    }
}

/// Returns a system of each shipped protocol: two agents, or its smallest system if these have too many states.
fn shipped_systems() -> Vec<TracedSystem> {
    let folder = format!("{}/../../protocols", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("folder of protocols")
        .map(|entry| entry.expect("readable folder entry").path())
        .filter(|file| file.extension().is_some_and(|ending| ending == "coh"))
        .collect();
    files.sort();
    let texts = files
        .iter()
        .map(|file| std::fs::read_to_string(file).expect("protocol file"));
    // A composition has the systems of its parts.
    let texts = texts.filter(|text| !composes(text));
    let systems = texts.map(|text| {
        let protocol = parse_valid(&text);
        let two_agents = (!protocol.several_tables()).then(|| Remotes::from(2));
        let declared = protocol.systems.iter().map(|system| system.remotes);
        let declared = declared.min_by_key(Remotes::total);
        let mut sizes = two_agents.into_iter().chain(declared);
        let system = sizes.find_map(|remotes| TracedSystem::new(&protocol, remotes, 1, 30_000));
        system.expect("system small enough for a graph")
    });
    systems.collect()
}

/// The trace check reads the tables independently. It accepts every path of a model, and rejects seeded faults of a
/// trace.
#[test]
fn trace_check_accepts_model_paths_and_rejects_faults() {
    let (mut rows, mut rejections) = (0, 0);
    for system in shipped_systems() {
        for seed in 0..3 {
            let context = format!("{} {seed}", system.protocol.name);
            let trace = system.random_path(150, seed);
            let checked = system.check_trace(&trace, seed, 150, &context);
            rows += checked.rows;
            rejections += checked.rejections;
        }
    }
    assert!(
        rows > 3000 && rejections > 3000,
        "only {rows} rows and {rejections} faults"
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
        let parsed = parse_valid(&text);
        for declared in &parsed.systems {
            let protocol = declared.resized_protocol.as_deref().unwrap_or(&parsed);
            assert!(
                protocol.line_coupling().is_some(),
                "{name} has independent lines"
            );
            let (remotes, lines) = (declared.remotes, declared.lines);
            let Some(system) = TracedSystem::new(protocol, remotes, lines, 60_000) else {
                continue;
            };
            sizes.push((protocol.homes, lines));
            for seed in 0..4 {
                let context = format!("{name} {} {seed}", declared.name);
                let trace = system.random_path(200, seed);
                rejections += system.check_trace(&trace, seed, 60, &context).rejections;
            }
        }
    }
    assert!(
        sizes.contains(&(2, 2)) && sizes.len() > 9,
        "homes and lines of the systems: {sizes:?}"
    );
    assert!(rejections > 2000, "only {rejections} faults");
}

/// Copies that are written in place, independently.
#[test]
fn trace_check_tracks_stale_copies_written_in_place() {
    let protocol = parse_valid(include_str!("../../../../tests/accesses/in-place.coh"));
    let system = TracedSystem::small(&protocol, 2, 1);
    let mut rejections = 0;
    for seed in 0..6 {
        let trace = system.random_path(150, seed);
        rejections += system
            .check_trace(&trace, seed, 60, &seed.to_string())
            .rejections;
    }
    assert!(rejections > 150, "only {rejections} faults");
}

/// Caches that drop all copies at an acquire, by rows that change every line.
const SELF_INVALIDATE: &str = include_str!("../../../../protocols/self-invalidate.coh");

/// Rows that change every line are reported line by line, in their order.
#[test]
fn bulk_transitions_are_traced_line_by_line() {
    let protocol = parse_valid(SELF_INVALIDATE);
    let mut rejections = 0;
    for (remotes, lines) in [(1, 2), (2, 2)] {
        let system = TracedSystem::small(&protocol, remotes, lines);
        let mut acquires = 0;
        for seed in 0..10 {
            let trace = system.random_path(200, seed);
            let context = format!("{remotes} remotes, {lines} lines, seed {seed}");
            rejections += system.check_trace(&trace, seed, 100, &context).rejections;
            let is_acquire =
                |step: &&Step| matches!(&step.action, Action::Does { what } if what == "acquired");
            acquires += trace.sequence.steps.iter().filter(is_acquire).count();
        }
        assert!(
            acquires > 10,
            "only {acquires} acquires with {remotes} remotes"
        );
    }
    assert!(rejections > 300, "only {rejections} faults");
}

/// Returns the protocol [`SELF_INVALIDATE`] with changes. Each replaced string occurs once.
fn changed_protocol(changes: &[(&str, &str)]) -> Protocol {
    let change = |text: String, (from, to): &(&str, &str)| replace_once(&text, from, to);
    parse_valid(&changes.iter().fold(SELF_INVALIDATE.to_string(), change))
}

/// The shipped protocol rejects the trace of a cache that keeps a line which it should drop.
#[test]
fn copy_kept_at_an_acquire_is_detected() {
    let correct = parse_valid(SELF_INVALIDATE);
    let faulty = changed_protocol(&[(
        "every V becomes I, every IV becomes IN",
        "every IV becomes IN",
    )]);
    let system = TracedSystem::small(&faulty, 2, 1);
    let mut detections = 0;
    for seed in 0..60 {
        let trace = system.random_path(300, seed);
        assert_eq!(system.rejection_by(&faulty, &trace), None, "seed {seed}");
        let rejection = system.rejection_by(&correct, &trace);
        detections += usize::from(
            rejection.is_some_and(|found| found.reason.contains("must enter I in this step")),
        );
    }
    assert!(
        detections > 10,
        "only {detections} kept copies are detected"
    );
}

/// Returns the index of the first step in which an agent enters `to` after the state `from`.
fn find_transition(steps: &[Step], from: &str, to: &str) -> Option<usize> {
    let state_after = |step: &Step, agent: usize| match &step.action {
        Action::Becomes { state } if step.agent == agent => Some(state.clone()),
        _ => None,
    };
    (0..steps.len()).find(|&index| {
        let agent = steps[index].agent;
        let mut earlier = steps[..index].iter().rev();
        let earlier = earlier.find_map(|step| state_after(step, agent));
        state_after(&steps[index], agent).as_deref() == Some(to) && earlier.as_deref() == Some(from)
    })
}

/// A cache may read older data than it has written, by its own rows. The trace is rejected if a memory model is
/// promised.
#[test]
fn read_older_than_its_core_has_observed_is_rejected() {
    // In VW a store is outstanding over a copy that is kept.
    let rows = (
        "  I V     | store write_partial | send Write     | IW\n",
        "  I | store write_partial | send Write | IW\n  V | store write_partial | send Write | VW\n  VW | Ack | done | V\n",
    );
    let states = (
        "    IW  waits Ack ",
        "    VW  holds, waits Ack\n    IW  waits Ack ",
    );
    let ordered = changed_protocol(&[rows, states]);
    let unordered = changed_protocol(&[rows, states, ("guarantee none, rc", "guarantee none")]);
    let system = TracedSystem::small(&ordered, 2, 1);
    let mut detections = 0;
    for seed in 0..20 {
        let mut trace = system.random_path(300, seed);
        check_sound_trace(&ordered, &system.home, &trace, &format!("seed {seed}"));
        // Models leave out loads that hit. One is inserted where a store has just completed over a copy that is kept.
        let Some(index) = find_transition(&trace.sequence.steps, "VW", "V") else {
            continue;
        };
        let load = Step {
            action: Action::Does {
                what: "load".to_string(),
            },
            ..trace.sequence.steps[index].clone()
        };
        trace.sequence.steps.insert(index + 1, load);
        let rejection = system.rejection_by(&ordered, &trace);
        let rejection = rejection.expect("rejection by the protocol with a memory model");
        // The fault is reported at this step or the next one. Rejections count steps from 1.
        assert!(
            (index + 2..=index + 3).contains(&rejection.step),
            "seed {seed}: the load is step {}, but {rejection:?}",
            index + 2
        );
        let reason = &rejection.reason;
        assert!(
            reason.contains("the remote has already seen write"),
            "{reason}"
        );
        assert_eq!(system.rejection_by(&unordered, &trace), None, "seed {seed}");
        detections += 1;
    }
    assert!(detections > 5, "only {detections} old reads are detected");
}
