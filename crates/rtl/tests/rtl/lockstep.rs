//! Checks that the RTL behaves as the controllers, and that deviations are detected.
//!
//! These tests build the RTL with Verilator.

use crate::homes;
use cohkit_testing::seeded_traces;

use cohkit_protocol::protocol::{Bound, Protocol};
use cohkit_rtl::lockstep::bench::{DelayedResponse, Run};
use cohkit_rtl::lockstep::model::{Inputs, Outputs};
use cohkit_rtl::lockstep::reachability::ReachabilityGraph;
use cohkit_rtl::lockstep::setup::{RunError, Setup};
use cohkit_rtl::lockstep::shapes::Shape;
use cohkit_rtl::lockstep::shapes::{named, SHIPPED};
use cohkit_rtl::registers::{is_present, COUNTERS, COUNTER_POSITIONS, REGISTERS};
use cohkit_rtl::rom::{Effect, Row};
use cohkit_rtl::sources::{HOME, SOURCES};
use cohkit_trace::Trace;
use homes::{build_home, compile_shipped, compile_text, require, Built, Compiled, NEVER};
use std::path::Path;
use std::process::Command;

/// Builds the home of ECI with the smallest shape.
fn eci() -> Option<Built> {
    build_home(compile_shipped("eci.coh"), SOURCES, Shape::default())
}

/// Results of the runs with the first seeds, of 2000 messages each, all without a mismatch.
struct Runs {
    /// Messages that entered or left the home, over all runs.
    messages: u64,
    /// Lines evicted by the directory, over all runs.
    evictions: u64,
    /// Rows that the checker can reach but no run has used.
    unused_rows: Vec<String>,
    /// Sums of the home's counters, by position.
    counters: Vec<u64>,
    /// Number of stalled events with a unique possible cause.
    explained_stalls: u64,
    /// Number of stalled events with several possible causes.
    ambiguous_stalls: u64,
}

/// Performs the runs with seeds 0 to `seeds` - 1, and panics on a mismatch.
fn runs(built: &Built, seeds: u64) -> Runs {
    let setup = built.setup();
    let Compiled { rom, graph, .. } = &built.compiled;
    let mut runs = Runs {
        messages: 0,
        evictions: 0,
        unused_rows: Vec::new(),
        counters: vec![0; COUNTER_POSITIONS],
        explained_stalls: 0,
        ambiguous_stalls: 0,
    };
    let mut unused_rows: Vec<(usize, usize)> = graph.rows().to_vec();
    for seed in 0..seeds {
        let run = Run::new(seed, 2000);
        let report = setup
            .run(run, None)
            .unwrap_or_else(|failed| panic!("{run:?}: {failed:#?}"));
        runs.messages += report.messages;
        runs.evictions += report.evictions;
        runs.explained_stalls += report.explained_stalls;
        runs.ambiguous_stalls += report.ambiguous_stalls;
        for (sum, counted) in runs.counters.iter_mut().zip(&report.counters) {
            *sum += counted;
        }
        unused_rows.retain(|&(state, event)| !report.covered[state][event]);
    }
    let name = |&(state, event): &(usize, usize)| {
        format!("{} on {}", rom.states[state], rom.events[event].name)
    };
    runs.unused_rows = unused_rows.iter().map(name).collect();
    runs
}

/// Mutates every `step`-th reachable row, and returns those whose mutation was not detected.
fn undetected_mutations(built: &Built, step: usize) -> Vec<(usize, usize)> {
    let setup = built.setup();
    let rows = built.compiled.graph.rows().iter().copied().step_by(step);
    rows.filter(|&(state, event)| {
        !setup
            .detects_mutation(state, event, 0)
            .expect("built library")
    })
    .collect()
}

/// The main comparison: 100 runs with the smallest shape use every reachable row and nearly every counter.
#[test]
fn rtl_messages_bytes_and_rows_match_the_controllers() {
    let Some(built) = eci() else {
        return;
    };
    let runs = runs(&built, 100);
    assert!(runs.messages >= 200_000, "{} messages", runs.messages);
    assert!(runs.evictions >= 1000, "{} evictions", runs.evictions);
    assert_eq!(built.compiled.graph.rows().len(), 1556);
    assert_eq!(runs.unused_rows, [""; 0]);
    // Each run compares the home's counters with its port activity, and the stall causes that units report with the
    // resources that are in use. The latter always had a unique explanation.
    assert!(
        runs.explained_stalls >= 100_000,
        "{}",
        runs.explained_stalls
    );
    assert_eq!(runs.ambiguous_stalls, 0);
    // Every counter was exercised.
    let mut never = Vec::new();
    for register in REGISTERS
        .iter()
        .filter(|candidate| candidate.address >= COUNTERS)
    {
        let first = (register.address - COUNTERS) as usize / 8;
        for number in 0..register.count {
            if is_present(&built.compiled.rom, register, number)
                && runs.counters[first + number] == 0
            {
                never.push(format!("{}[{number}]", register.name));
            }
        }
    }
    // The home sends a message in the step of the request if it answers without memory; ECI has no such message.
    let rom = &built.compiled.rom;
    let at_once =
        |(state, event)| rom.row(state, event).grant.is_some() && rom.events[event].request;
    assert!(!rom.used().any(at_once));
    // A read with a wrong number of beats is lost with its line, so these runs contain none: see `illegal_traffic`.
    assert_eq!(never, ["StallsSend[0]", "WrongBursts[0]"]);
}

/// The shape that ships, and one with several groups of ways, narrow beats and different numbers of all resources. (The
/// campaign of `cohkit rtl test` uses all shapes in turn.)
#[test]
fn other_home_shapes_match_the_controllers() {
    for (name, seeds) in [(SHIPPED, 6), ("mixed", 20)] {
        let shape = named(name).expect("home shape with this name");
        let Some(built) = build_home(compile_shipped("eci.coh"), SOURCES, shape) else {
            return;
        };
        let runs = runs(&built, seeds);
        assert!(runs.messages >= 2000 * seeds, "{name}: {}", runs.messages);
        assert_eq!(runs.ambiguous_stalls, 0, "{name}");
        // A directory that is smaller than the set of lines in use overflows.
        assert!(name == SHIPPED || runs.evictions > 0);
    }
}

/// The mutated field of a row is determined by the row and the seed. Over all rows and a few seeds, every field is
/// mutated at least once.
#[test]
fn row_mutation_is_deterministic() {
    let compiled = compile_shipped("eci.coh");
    let rom = &compiled.rom;
    let setup = Setup {
        protocol: &compiled.protocol,
        home: &compiled.home,
        rom,
        library: Path::new("there is none"),
        shape: Shape::default(),
        graph: None,
        argument: "",
        folder: Path::new("there is none"),
        stop: &NEVER,
    };
    let fields = |row: Row, other: Row| {
        [
            row.effect != other.effect,
            row.memory != other.memory,
            row.acknowledge != other.acknowledge,
            row.grant != other.grant,
            row.forward != other.forward,
            row.permission_bounds.old_permission != other.permission_bounds.old_permission,
            row.permission_bounds.new_permission != other.permission_bounds.new_permission,
            row.next != other.next,
        ]
    };
    let mut counts = [0; 8];
    let mut differ = 0;
    for (state, event) in rom.used() {
        let row = rom.row(state, event);
        let mutated = [0, 0, 1].map(|seed| setup.mutated_row(state, event, seed));
        assert_eq!(mutated[0], mutated[1]);
        differ += u32::from(mutated[0] != mutated[2]);
        for mutated in mutated {
            let differs = fields(row, mutated);
            let field = differs
                .iter()
                .position(|&differs| differs)
                .expect("mutated row");
            assert_eq!(differs.iter().filter(|&&differs| differs).count(), 1);
            // The hardware ignores the other fields of a row that consumes nothing.
            assert!(field == 0 || row.effect == Effect::Take);
            counts[field] += 1;
        }
    }
    assert!(differ > 1000, "{differ}");
    assert!(counts.iter().all(|&counts| counts > 100), "{counts:?}");
}

/// Every fortieth reachable row is mutated in one field; some run directed to it must detect each mutation.
#[test]
fn mutated_row_is_detected() {
    let Some(built) = eci() else {
        return;
    };
    assert_eq!(undetected_mutations(&built, 40), []);
}

/// Another protocol, with different messages, circuits and lines, an ordered circuit and no lock.
#[test]
fn second_home_passes_with_the_same_rtl() {
    let home = compile_shipped("back-invalidate.coh");
    let Some(built) = build_home(home, SOURCES, Shape::default()) else {
        return;
    };
    let runs = runs(&built, 30);
    assert!(runs.messages >= 60_000, "{} messages", runs.messages);
    assert!(runs.evictions >= 300, "{} evictions", runs.evictions);
    assert_eq!(runs.unused_rows, [""; 0]);
    assert!(runs.explained_stalls >= 10_000, "{}", runs.explained_stalls);
    assert_eq!(runs.ambiguous_stalls, 0);
    assert_eq!(undetected_mutations(&built, 10), []);
}

/// A home that relies on the protocol's bounds: a second victim of a kind waits until the first one has arrived.
#[test]
fn bounds_of_the_protocol_are_respected() {
    let file = "../../protocols/eci.coh";
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
    let text = text.expect("readable protocol file");
    // A read is served while the victim that the reader sent earlier is in flight, so a second victim is possible.
    let policy = "reach I with ForwardInvalid\n";
    let bounds = "bounds {\n  VictimShared 1\n}\n\nremote cpu";
    let text = text.replace(policy, &format!("{policy}  serve past VictimShared\n"));
    let text = text.replace("remote cpu", bounds);
    let home = compile_text("eci-bounded.coh", &text);
    // Rows that only a second victim of a kind would use are unreachable.
    let mut unbounded = home.protocol.clone();
    unbounded.bounds.per_message.clear();
    let unbounded_graph = ReachabilityGraph::new(&unbounded, &home.home, &home.rom)
        .expect("small reachability graph");
    assert!(unbounded_graph.line_states() > home.graph.line_states());
    let Some(built) = build_home(home, SOURCES, Shape::default()) else {
        return;
    };
    let runs = runs(&built, 10);
    assert!(runs.messages >= 20_000, "{} messages", runs.messages);
    let first_mismatch = |protocol: &Protocol| {
        let setup = Setup {
            protocol,
            ..built.setup()
        };
        // With illegal traffic, the assertion is ignored, and the comparison of steps reports the error in other words.
        let run = |seed| Run {
            illegal_rate: 0,
            ..Run::new(seed, 2000)
        };
        let failure = (0..10).find_map(|seed| setup.run(run(seed), None).err());
        match failure {
            Some(RunError::Mismatch(first_mismatch)) => first_mismatch.description,
            other => panic!("nothing is noticed: {other:?}"),
        }
    };
    // A remote that sends a second victim reaches a row that the home lacks.
    assert!(first_mismatch(&unbounded).contains("the ROM has no row"));
    let span = built.compiled.protocol.bounds.per_message[0].1.span;
    unbounded.bounds.in_flight = Some(Bound { limit: 1, span });
    assert!(first_mismatch(&unbounded).contains("more than 1 message in flight"));
}

/// Both control lines of an application in one unit with the maximum of deferred requests. The application answers only
/// after a third line of that unit was used.
#[test]
fn late_application_blocks_no_other_line() {
    let Some(built) = eci() else {
        return;
    };
    let locks = built.setup().control_lines(DelayedResponse::Locks);
    locks.unwrap_or_else(|failed| panic!("{failed:#?}"));
}

/// Withheld reads occupy read entries of the unit, so the unit needs one more entry.
#[test]
fn application_may_withhold_all_but_one_read_of_a_unit() {
    let with_reads = |reads| {
        let shape = Shape {
            reads,
            ..Shape::default()
        };
        let built = build_home(compile_shipped("eci.coh"), SOURCES, shape)?;
        Some(built.setup().control_lines(DelayedResponse::Reads))
    };
    let (Some(three), Some(two)) = (with_reads(3), with_reads(2)) else {
        return;
    };
    three.unwrap_or_else(|failed| panic!("{failed:#?}"));
    let Err(RunError::Mismatch(stopped)) = two else {
        panic!("two withheld reads leave no place, and yet: {two:?}");
    };
    assert!(
        stopped.description.contains("no agent can make progress"),
        "{stopped:?}"
    );
}

/// Traces of lockstep are a third opinion: the trace checker shares no code with the controllers' interpreter. Faults
/// are seeded into the recorded traces, not into the RTL.
#[test]
fn trace_check_accepts_runs_and_rejects_faults() {
    let Some(built) = eci() else {
        return;
    };
    let Compiled { protocol, home, .. } = &built.compiled;
    let (mut rows, mut values, mut refused) = (0, 0, 0);
    for seed in 0..6 {
        let run = Run::new(seed, 2000);
        let sequences = built.setup().traces(run).expect("run without mismatch");
        for sequence in sequences.into_iter().take(8) {
            let description = format!("seed {seed}");
            let trace = Trace {
                sequence,
                ends_quiescent: true,
            };
            let summary = seeded_traces::check_sound_trace(protocol, home, &trace, &description);
            (rows, values) = (rows + summary.rows, values + summary.values);
            refused += seeded_traces::count_rejected_faults(
                protocol,
                home,
                &trace,
                (seed, 40),
                &description,
            );
        }
    }
    assert!(
        rows > 2000 && values > 100 && refused > 500,
        "{rows} rows, {values} values, {refused} faults"
    );
}

/// A seed determines a run to the cycle.
#[test]
fn runs_repeat_themselves() {
    let Some(built) = eci() else {
        return;
    };
    let cycles = || {
        let report = built.setup().run(Run::new(6, 1000), None);
        report.expect("run without mismatch").cycles
    };
    assert_eq!(cycles(), cycles());
}

/// Several sizes, because some warnings arise only with one unit, one entry or an endpoint.
#[test]
fn verilator_lint_has_no_warnings() {
    if !require("verilator") {
        return;
    }
    for file in ["eci.coh", "back-invalidate.coh"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let compiled = compile_shipped(file);
        let package = format!("{}_pkg", compiled.protocol.name);
        let package_file = format!("{package}.sv");
        std::fs::write(folder.path().join(&package_file), &compiled.package)
            .expect("writable file");
        let mut files = vec!["home_pkg.sv", &package_file];
        for (name, text) in SOURCES {
            std::fs::write(folder.path().join(name), text).expect("writable file");
            assert!(!text.contains("lint_off"), "{name} waives a warning");
            if *name != "home_pkg.sv" {
                files.push(name);
            }
        }
        // One unit, a few, many with a directory of the published size, and odd numbers of resources.
        for parameters in [
            "-GUnits=1 -GSetWidth=1 -GWays=4 -GReads=1 -GLocals=1",
            "-GUnits=4 -GSetWidth=3 -GWays=8 -GReads=4 -GLocals=3",
            "-GUnits=16 -GSetWidth=8 -GWays=16 -GReads=2 -GLocals=2",
            "-GUnits=2 -GReads=3 -GWrites=2 -GMaxDeferred=3 -GStoreSlots=4",
            "-GUnits=4 -GWays=8 -GWaysPerStep=1 -GUnitsPerPort=3 -GTagWidth=20 -GPayloadWidth=64 -GChangeDepth=16",
            "-GUnits=1 -GWaysPerStep=2 -GPayloadWidth=256",
            "-GUnits=2 -GEndpoint=4",
        ] {
            let output = Command::new("verilator")
                .args([
                    "--lint-only",
                    "-Wall",
                    "--assert",
                    "--top-module",
                    "lockstep",
                ])
                .arg(format!("-DPROTOCOL_PKG={package}"))
                .args(parameters.split(' '))
                .args(&files)
                .current_dir(folder.path())
                .output()
                .expect("running Verilator");
            let output_text = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() && output_text.is_empty(),
                "{file} {parameters}:\n{output_text}"
            );
        }
    }
}

/// The top with parameters and unconnected ports.
const TOP: &str = "module top #(
  parameter int unsigned NumRemotes = 1, Units = 2, SetWidth = 1, TagWidth = 16, Ways = 4, WaysPerStep = 4, Reads = 2,
  Writes = 2, Locals = 2, MaxDeferred = 2, StoreSlots = 2, ChangeDepth = 16, UnitsPerPort = 8, PayloadWidth = 512,
  AxiIdWidth = 8, AxiAddrWidth = 36, RecallDelayLog2 = 8, LocalQueueDepth = 8, NoProtocol = 0, NoTypes = 0
);
  if (NoTypes == 1) begin : gen_untyped
    home #(
      .Protocol(eci_pkg::Protocol)
    ) u_home ();
  end else begin : gen_typed
    home #(
      .Protocol(NoProtocol == 1 ? '0 : eci_pkg::Protocol), .state_e(eci_pkg::state_e), .event_e(eci_pkg::event_e), .send_e(eci_pkg::send_e),
      .row_t(eci_pkg::row_t), .NumRemotes(NumRemotes), .Units(Units), .SetWidth(SetWidth), .TagWidth(TagWidth),
      .Ways(Ways), .WaysPerStep(WaysPerStep), .Reads(Reads), .Writes(Writes), .Locals(Locals), .MaxDeferred(MaxDeferred),
      .StoreSlots(StoreSlots), .ChangeDepth(ChangeDepth), .UnitsPerPort(UnitsPerPort), .PayloadWidth(PayloadWidth),
      .AxiIdWidth(AxiIdWidth), .AxiAddrWidth(AxiAddrWidth), .RecallDelayLog2(RecallDelayLog2),
      .LocalQueueDepth(LocalQueueDepth)
    ) u_home ();
  end
endmodule
";

/// The message of each illegal parameter, and legal parameters at the limits.
#[test]
fn parameter_out_of_range_is_reported() {
    if !require("verilator") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let package = compile_shipped("eci.coh").package;
    let sources = [("eci_pkg.sv", package.as_str()), ("top.sv", TOP)];
    for (name, text) in HOME.iter().chain(&sources) {
        std::fs::write(folder.path().join(name), text).expect("writable file");
    }
    let modules = HOME.iter().map(|(name, _)| *name);
    let files: Vec<&str> = ["home_pkg.sv", "eci_pkg.sv"]
        .into_iter()
        .chain(modules.filter(|name| *name != "home_pkg.sv"))
        .chain(["top.sv"])
        .collect();
    let lint = |parameters: &str| {
        let output = Command::new("verilator")
            .args(["--lint-only", "-Wno-PINMISSING", "--top-module", "top"])
            .args(
                parameters
                    .split(' ')
                    .map(|parameter| format!("-G{parameter}")),
            )
            .args(&files)
            .current_dir(folder.path())
            .output()
            .expect("running Verilator");
        let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), output_text)
    };
    for parameters in ["NumRemotes=1", "Ways=128", "Reads=123 AxiIdWidth=12"] {
        let (fits, output_text) = lint(parameters);
        assert!(fits, "{parameters}:\n{output_text}");
    }
    for (parameters, message) in [
        ("NoProtocol=1", "Protocol, state_e, event_e, send_e and"),
        ("NoTypes=1", "Protocol, state_e, event_e, send_e and"),
        ("NumRemotes=2", "NumRemotes must be 1: "),
        ("Units=3", "Units must be a power of two"),
        ("Units=0", "Units must be a power of two"),
        ("Units=512", "Units must be a power of two up to 256"),
        ("Ways=6", "Ways and WaysPerStep must be powers of two"),
        ("Ways=256", "Ways and WaysPerStep must be powers of two"),
        ("Ways=512", "must be powers of two up to 128"),
        ("WaysPerStep=3", "Ways and WaysPerStep must be powers of"),
        ("WaysPerStep=0", "WaysPerStep must be at least 1"),
        ("WaysPerStep=8", "and WaysPerStep at most Ways"),
        ("UnitsPerPort=0", "UnitsPerPort and WaysPerStep must be"),
        ("Reads=0", "Reads, Writes, Locals, SetWidth and TagWidth"),
        ("Writes=0", "Reads, Writes, Locals, SetWidth and TagWidth"),
        ("Locals=0", "Reads, Writes, Locals, SetWidth and TagWidth"),
        ("TagWidth=0", "Reads, Writes, Locals, SetWidth and TagWidth"),
        ("Reads=124", "Reads, Writes and Locals must be at most 127"),
        ("Writes=200", "Reads, Writes and Locals must be at most 127"),
        ("Locals=200", "Reads, Writes and Locals must be at most 127"),
        ("SetWidth=25", "SetWidth must be at most 24"),
        ("SetWidth=0", "Reads, Writes, Locals, SetWidth and TagWidth"),
        (
            "MaxDeferred=4",
            "MaxDeferred must be at least 1 and less than Ways",
        ),
        (
            "MaxDeferred=0",
            "MaxDeferred must be at least 1 and less than Ways",
        ),
        ("MaxDeferred=3", "StoreSlots must be at least MaxDeferred"),
        ("ChangeDepth=3", "ChangeDepth must be a power of two"),
        ("ChangeDepth=1", "ChangeDepth must be a power of two"),
        ("ChangeDepth=256", "power of two from 2 to 128"),
        ("RecallDelayLog2=33", "RecallDelayLog2 must be at most 32"),
        ("LocalQueueDepth=0", "LocalQueueDepth must be from 1 to 64"),
        ("LocalQueueDepth=65", "LocalQueueDepth must be from 1 to 64"),
        ("PayloadWidth=500", "PayloadWidth must be a line's bits"),
        ("PayloadWidth=32", "PayloadWidth must be a line's bits"),
        ("PayloadWidth=2048", "PayloadWidth must be a line's bits"),
        ("AxiIdWidth=1", "AxiIdWidth must have room"),
        ("TagWidth=40", "beyond the header's or AxiAddrWidth's"),
        ("AxiAddrWidth=20", "beyond the header's or AxiAddrWidth's"),
    ] {
        let (fits, output_text) = lint(parameters);
        assert!(
            !fits && output_text.contains(message),
            "{parameters}:\n{output_text}"
        );
    }
}

/// Latency in cycles from the request's header to the header of its answer, with an idle home and memory that answers
/// in the next cycle.
#[test]
fn read_of_an_unshared_line_takes_at_most_20_cycles() {
    let Some(built) = eci() else {
        return;
    };
    let mut model = built.model();
    let (mut inputs, mut outputs) = (Inputs::default(), Outputs::default());
    inputs.tx_ready = [3, 3];
    inputs.ar_ready = [1, 1];
    inputs.reset = 1;
    model
        .step(&inputs, &mut outputs)
        .expect("cycle without failed assertions");
    inputs.reset = 0;
    for _ in 0..50 {
        model
            .step(&inputs, &mut outputs)
            .expect("cycle without failed assertions");
    }
    let request = built
        .compiled
        .rom
        .event("ReadShared")
        .expect("event ReadShared") as u64;
    let mut beats = 0..0;
    let mut departure_cycle = None;
    for cycle in 0..100 {
        inputs.rx_valid[0] = u64::from(cycle == 0);
        inputs.rx_last[0] = 1;
        inputs.rx_header[0][0] = 0xffff << 48 | request << 40;
        let beat = beats.next();
        inputs.r_valid[0] = u64::from(beat.is_some());
        inputs.r_last[0] = u64::from(beat == Some(1));
        model
            .step(&inputs, &mut outputs)
            .expect("cycle without failed assertions");
        if outputs.ar_valid[0] != 0 {
            inputs.r_id[0] = outputs.ar_id[0];
            beats = 0..2;
        }
        if outputs.tx_valid[0] != 0 && departure_cycle.is_none() {
            departure_cycle = Some(cycle);
        }
    }
    let departure_cycle: u64 = departure_cycle.expect("the request is answered");
    // The directory of this home has one group of ways; one with 16 ways has four, which are compared one after the
    // other.
    assert_eq!(departure_cycle, 17);
    assert!(departure_cycle + 3 <= 20);
}
