//! Litmus tests on hardware: the outcomes at its processor ports are compared with those of the exhaustive run.

use super::{
    cores_text, judge, kinds_text, observation_text, outcome_list, outcome_values,
    unsupported_test, CoreModel, ExploredTest, LitmusRequest, MemorySystem, OutcomeBasis, Report,
    Test, TestError, DEFAULT_MAX_SPONTANEOUS_EVICTIONS, DEFAULT_MAX_STATES,
};
use crate::named_value::NamedValue;
use crate::outcome::{ExitStatus, Failure};
use crate::shell_word::quoted;
use crate::source::Source;
use cohkit_base::words::counted;
use cohkit_chart::Text;
use cohkit_litmus::cores::CoreKind;
use cohkit_litmus::kinds::Kinds;
use cohkit_litmus::port_runs::{observe, unsupported, PortRunError};
use cohkit_litmus::program::Outcome;
use cohkit_litmus::run::RunResult;
use cohkit_litmus::timed::SeedOutcomes;
use cohkit_system::ports::Ports;
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Hardware systems of one protocol.
pub trait PortSystems {
    /// Returns the processor ports of the system with caches of these kinds.
    ///
    /// # Errors
    /// The protocol has no hardware, or the system cannot be built.
    fn ports(&mut self, kinds: &Kinds) -> Result<&mut dyn Ports, Failure>;

    /// Options of the command line that select the systems, each after a space, for the command that repeats a run.
    fn options(&self) -> String;
}

/// Runs one test on hardware, `runs` times with consecutive seeds from `seed` on, and in every order of events within
/// the limits of the request. An outcome of the hardware that the second run does not have is a violation.
///
/// # Errors
/// Errors of [`super::run_test`] and of the systems, and tests that the ports cannot run.
pub fn run_test_on_ports(
    test: &Test,
    memory_system: MemorySystem,
    request: &LitmusRequest,
    (systems, seed, runs): (&mut dyn PortSystems, u64, u64),
    charts: &Text,
    should_continue: &mut dyn FnMut() -> bool,
) -> Result<Report, TestError> {
    let options = memory_system.litmus_options(request, test);
    let source = check_request(memory_system)?;
    let (program, kinds) = (&test.program, test.kinds());
    if let Some(reason) = unsupported(&source.protocol, &kinds, program) {
        return Err(unsupported_test(source, program, &reason).into());
    }
    let selection = systems.options();
    let ports = systems.ports(&kinds)?;
    let seeds = (seed, runs);
    let observed = observe(
        ports,
        &source.protocol,
        &kinds,
        (program, options.cores),
        seeds,
        should_continue,
    );
    let observed = observed.map_err(|error| match error {
        PortRunError::Unsupported(reason) => unsupported_test(source, program, &reason),
        PortRunError::Failed(reason) => {
            Failure::new(ExitStatus::CouldNotRun, format!("error: {reason}"))
        }
        PortRunError::Interrupted => Failure::new(ExitStatus::Interrupted, "interrupted"),
    })?;
    let explored = judge(
        test,
        memory_system,
        &options,
        request.chart,
        should_continue,
    );
    let explored = explored.map_err(|error| with_hardware_failure(error, &observed))?;
    let tested = HardwareTest {
        store_variants: test.store_variants.as_deref(),
        memory_system,
        request,
        selection,
        explored,
        observed,
        seed,
    };
    Ok(Report {
        outcome: tested.outcome(),
        text: tested.text() + &tested.explored.path_text(charts),
        json: tested.json(),
    })
}

/// Adds a failure of the hardware to the reason for which there is no exhaustive run.
fn with_hardware_failure(error: TestError, observed: &SeedOutcomes) -> TestError {
    match (error, &observed.failure) {
        (TestError::Failure(other), Some((failure, seed)))
            if other.outcome != ExitStatus::Interrupted =>
        {
            let message = format!("violated: with seed {seed}: {failure}\n{}", other.message);
            Failure::new(ExitStatus::Violated, message).into()
        }
        (error, _) => error,
    }
}

/// Returns the protocol of a request that hardware can run.
fn check_request(memory_system: MemorySystem<'_>) -> Result<&Source, Failure> {
    let bad = |message: &str| Failure::new(ExitStatus::BadInput, format!("error: {message}"));
    if !memory_system.lower.is_empty() {
        return Err(bad(
            "hardware has one level of caches, but the specification has two",
        ));
    }
    let source = memory_system.source;
    source.ok_or_else(|| bad("runs in hardware need a protocol, but none is given"))
}

/// Value of the option `--cores` that selects these cores.
fn core_model(cores: CoreKind) -> &'static str {
    match cores {
        CoreKind::InOrder => CoreModel::InOrder.name(),
        CoreKind::StoreBuffer => CoreModel::StoreBuffer.name(),
        CoreKind::Relaxed(_) => CoreModel::Relaxed.name(),
    }
}

/// Result of a test on hardware.
struct HardwareTest<'t> {
    /// One letter for the variant of each write; the program's name ends with them.
    store_variants: Option<&'t str>,
    /// Protocol and its file.
    memory_system: MemorySystem<'t>,
    /// Options of the exhaustive run.
    request: &'t LitmusRequest,
    /// Options that select the hardware, as in [`PortSystems::options`].
    selection: String,
    /// Result of the exhaustive run.
    explored: ExploredTest,
    /// Observed outcomes, and the first failure.
    observed: SeedOutcomes,
    /// Seed of the first run.
    seed: u64,
}

impl HardwareTest<'_> {
    /// Outcomes of the exhaustive run; `None` if it has none, as with too many states.
    fn checked(&self) -> Option<&BTreeSet<Outcome>> {
        match &self.explored.found {
            RunResult::Outcomes { outcomes, .. } => Some(outcomes),
            _ => None,
        }
    }

    /// Returns true if an observed outcome is not one of the exhaustive run.
    fn is_outside(&self, outcome: &Outcome) -> bool {
        self.checked()
            .is_some_and(|checked| !checked.contains(outcome))
    }

    /// First seed that shows an outcome which the exhaustive run does not have, or a failure.
    fn violating_seed(&self) -> Option<u64> {
        let failure = self.observed.failure.iter().map(|(_, seed)| *seed);
        let outside = self.observed.counts.iter();
        let outside = outside.filter(|(outcome, _)| self.is_outside(outcome));
        failure.chain(outside.map(|(_, (_, seed))| *seed)).min()
    }

    /// Outcome for the exit code.
    fn outcome(&self) -> ExitStatus {
        match self.violating_seed() {
            Some(_) => ExitStatus::Violated,
            None => self.explored.outcome(),
        }
    }

    /// Orders of events that the exhaustive run covers.
    fn covered_orders(&self) -> String {
        let evictions = u64::from(self.request.max_spontaneous_evictions);
        let evictions = counted(evictions, "spontaneous eviction");
        format!("every order with at most {evictions}")
    }

    /// Command that repeats the run with the first violation, with all options that determine its verdict.
    fn reproduce_command(&self) -> Option<String> {
        let seed = self.violating_seed()?;
        let name = &self.explored.program.name;
        let plain = self
            .store_variants
            .and_then(|variants| name.strip_suffix(variants));
        let test = self.explored.file.as_deref();
        let test = quoted(test.unwrap_or(plain.unwrap_or(name).trim_end()));
        let path = quoted(&self.memory_system.file?.display().to_string());
        let kinds = self.explored.kinds.as_ref();
        let kinds = kinds.map(|kinds| format!(" --kinds {}", kinds.join(",")));
        let variants = self
            .store_variants
            .map(|letters| format!(" --store-variants {letters}"));
        let mut command = format!(
            "cohkit litmus {test} --protocol {path}{}{}{} --cores {}",
            kinds.unwrap_or_default(),
            variants.unwrap_or_default(),
            self.selection,
            core_model(self.explored.options.cores),
        );
        let request = self.request;
        if let Some(model) = request.model {
            let _ = write!(command, " --model {}", model.name());
        }
        if request.basis != OutcomeBasis::Condition {
            let _ = write!(command, " --expect {}", request.basis.name());
        }
        if request.max_spontaneous_evictions != DEFAULT_MAX_SPONTANEOUS_EVICTIONS {
            let evictions = request.max_spontaneous_evictions;
            let _ = write!(command, " --max-spontaneous-evictions {evictions}");
        }
        if request.max_states != DEFAULT_MAX_STATES {
            let _ = write!(command, " --max-states {}", request.max_states);
        }
        if request.chart {
            command += " --chart";
        }
        Some(format!("{command} --rtl-runs 1 --seed {seed}"))
    }

    /// Result as text: the verdict, each outcome with its number of runs, and the command that repeats a violation.
    fn text(&self) -> String {
        let (explored, observed) = (&self.explored, &self.observed);
        let program = &explored.program;
        let protocol = self.memory_system.name();
        let Some(checked) = self.checked() else {
            let seen = counted(observed.counts.len() as u64, "outcome");
            let runs = counted(observed.runs, "run");
            let text = format!(
                "{}  {seen} in {runs} of the hardware, not compared\n",
                explored.text(protocol)
            );
            return text + &self.violation_text();
        };
        let kinds = kinds_text(explored.kinds.as_deref());
        let cores = cores_text(explored.options.cores);
        let verdict = match self.violating_seed() {
            Some(_) => "violated: ",
            None if explored.breaks_guarantee() => "violated: ",
            None => "",
        };
        let mut text = format!(
            "{} on {} in hardware{kinds}, cores {cores}: {verdict}{}\n",
            program.name,
            protocol.unwrap_or_default(),
            observation_text(program, checked.iter())
        );
        let all: BTreeSet<&Outcome> = checked.iter().chain(observed.counts.keys()).collect();
        let rows = all.into_iter().map(|outcome| {
            let suffix = match observed.counts.get(outcome) {
                None => ": not seen".to_string(),
                Some((count, seed)) => {
                    let times = counted(*count, "time");
                    let outside = match self.is_outside(outcome) {
                        true => format!(", and {} excludes it", self.covered_orders()),
                        false => String::new(),
                    };
                    format!(": {times}, first with seed {seed}{outside}")
                }
            };
            (outcome, suffix)
        });
        text += &outcome_list(program, rows, &explored.options, &explored.allowed);
        let seen = checked
            .iter()
            .filter(|outcome| observed.counts.contains_key(*outcome))
            .count();
        let runs = counted(observed.runs, "run");
        let _ = writeln!(
            text,
            "  {seen} of {} outcomes of {} seen in {runs}",
            checked.len(),
            self.covered_orders()
        );
        text + &self.violation_text()
    }

    /// The failure of the hardware, and the command that repeats the first violation; empty without a violation.
    fn violation_text(&self) -> String {
        let mut text = String::new();
        if let Some((failure, seed)) = &self.observed.failure {
            let _ = writeln!(text, "  with seed {seed}: {failure}");
        }
        if let Some(command) = self.reproduce_command() {
            let _ = writeln!(text, "  again: {command}");
        }
        text
    }

    /// JSON value of the test, described in `docs/output.md`.
    fn json(&self) -> Value {
        let (explored, observed) = (&self.explored, &self.observed);
        let program = &explored.program;
        let mut value = explored.json(self.memory_system.name());
        let checked = self.checked().into_iter().flatten();
        let all: BTreeSet<&Outcome> = checked.chain(observed.counts.keys()).collect();
        let outcomes = all.into_iter().map(|outcome| {
            let seen = observed.counts.get(outcome);
            json!({
                "values": outcome_values(program, outcome),
                "satisfies": program.holds(outcome),
                "allowed": explored.allowed.contains(outcome),
                "checked": self.checked().map(|checked| checked.contains(outcome)),
                "count": seen.map_or(0, |(count, _)| *count),
                "seed": seen.map(|(_, seed)| *seed),
            })
        });
        value["outcomes"] = outcomes.collect();
        if self.violating_seed().is_some() {
            let failure = observed
                .failure
                .as_ref()
                .map(|(failure, _)| failure.clone());
            value["outcome"] = json!("violated");
            value["reason"] = json!(failure.unwrap_or_else(|| "hardware".to_string()));
        }
        value["runs"] = json!(observed.runs);
        value["seed"] = json!(self.seed);
        value["run"]["reproduce_command"] = json!(self.reproduce_command());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus::MemoryModel;
    use cohkit_system::ports::{PortCompletion, PortError, PortOperation, PortRequest};
    use std::path::Path;

    /// A memory that performs one access at a time. With `stale`, ports keep copies, which writes of other ports do not
    /// change. With a `failure`, no run ends.
    struct Memory {
        stale: bool,
        words: Vec<u64>,
        copies: Vec<Vec<Option<u64>>>,
        now: u64,
        outstanding: Vec<(u64, PortRequest)>,
        failure: Option<&'static str>,
    }

    impl Memory {
        fn new(stale: bool) -> Memory {
            Memory {
                stale,
                words: Vec::new(),
                copies: Vec::new(),
                now: 0,
                outstanding: Vec::new(),
                failure: None,
            }
        }
    }

    impl Ports for Memory {
        fn lines(&self) -> usize {
            8
        }

        fn outstanding(&self) -> usize {
            4
        }

        fn reset(&mut self, _: u64, memory: &[u64]) -> Result<(), PortError> {
            self.words = memory.to_vec();
            self.copies = vec![vec![None; memory.len()]; 4];
            self.outstanding.clear();
            Ok(())
        }

        fn begin(&mut self, request: PortRequest) -> Result<(), PortError> {
            self.outstanding.push((self.now + request.delay, request));
            Ok(())
        }

        fn next_completion(&mut self) -> Result<PortCompletion, PortError> {
            let first = (0..self.outstanding.len()).min_by_key(|&index| self.outstanding[index].0);
            let (now, request) = self
                .outstanding
                .remove(first.expect("an outstanding access"));
            self.now = now;
            let (word, copy) = (
                &mut self.words[request.line],
                &mut self.copies[request.port][request.line],
            );
            let former = *word;
            match request.operation {
                PortOperation::LoadStore if !request.write => {}
                PortOperation::Add => *word = former.wrapping_add(request.data),
                PortOperation::CompareAndSwap(expected) if former != expected => {}
                _ => *word = request.data,
            }
            if request.write || !self.stale || copy.is_none() {
                *copy = Some(*word);
            }
            let PortRequest { port, tag, .. } = request;
            let data = match request.operation {
                PortOperation::LoadStore => copy.expect("a copy"),
                _ => former,
            };
            Ok(PortCompletion { port, tag, data })
        }

        fn end(&mut self) -> Result<(), PortError> {
            match self.failure {
                Some(failure) => Err(PortError::Violated(failure.to_string())),
                None => Ok(()),
            }
        }
    }

    impl PortSystems for Memory {
        fn ports(&mut self, _: &Kinds) -> Result<&mut dyn Ports, Failure> {
            Ok(self)
        }

        fn options(&self) -> String {
            " --build-cache target/rtl".to_string()
        }
    }

    /// Protocol file of the tests.
    const MSI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocols/msi.coh");

    /// Runs a shape on `msi` and on a memory, 100 times.
    fn run(name: &str, memory: &mut Memory) -> Result<Report, TestError> {
        run_within(name, memory, 100_000)
    }

    /// Runs a test as `run` does, with at most this number of states of the exhaustive run.
    fn run_within(name: &str, memory: &mut Memory, max_states: usize) -> Result<Report, TestError> {
        let test = Test::shape(name).expect("a shape");
        let source = Source::read(Path::new(MSI), false).expect("a shipped protocol");
        let memory_system = MemorySystem {
            source: Some(&source),
            lower: &[],
            file: Some(Path::new("msi")),
        };
        let request = LitmusRequest {
            cores: None,
            model: None::<MemoryModel>,
            max_spontaneous_evictions: 0,
            max_states,
            chart: false,
            simulate: None,
            basis: OutcomeBasis::File,
        };
        let charts = Text::default();
        run_test_on_ports(
            &test,
            memory_system,
            &request,
            (memory, 7, 100),
            &charts,
            &mut || true,
        )
    }

    /// Outcomes of a correct memory agree, and all are seen. Those of stale copies are violations with a command.
    #[test]
    fn stale_copies_are_violations_and_a_correct_memory_is_not() {
        for name in ["MP", "SB", "2+2W", "WRC", "CoRR"] {
            let report = run(name, &mut Memory::new(false)).ok().expect("a report");
            assert_eq!(report.outcome, ExitStatus::Success, "{}", report.text);
            assert_eq!(
                (&report.json["runs"], &report.json["seed"]),
                (&json!(100), &json!(7))
            );
            assert!(!report.text.contains("not seen"), "{}", report.text);
        }
        let report = run("MP", &mut Memory::new(true)).ok().expect("a report");
        assert_eq!(report.outcome, ExitStatus::Violated);
        assert!(
            report.text.contains("violated: ")
                && report
                    .text
                    .contains("every order with at most 0 spontaneous evictions excludes it")
        );
        let command = report.json["run"]["reproduce_command"]
            .as_str()
            .expect("a command");
        assert!(
            report.text.contains(&format!("again: {command}")),
            "{}",
            report.text
        );
        let seed = command.strip_prefix(
            "cohkit litmus MP --protocol msi --build-cache target/rtl --cores in-order --expect file \
             --max-spontaneous-evictions 0 --max-states 100000 --rtl-runs 1 --seed ",
        );
        let seed: u64 = seed.expect(command).parse().expect("a seed");
        let outcomes = report.json["outcomes"].as_array().expect("outcomes");
        let excluded: Vec<&Value> = outcomes.iter().filter(|o| o["checked"] == false).collect();
        assert_eq!(excluded.len(), 1, "{outcomes:?}");
        assert_eq!(excluded[0]["seed"], json!(seed));
        assert_eq!(
            (&report.json["outcome"], &report.json["reason"]),
            (&json!("violated"), &json!("hardware"))
        );
    }

    /// A failure of the hardware is reported, and is a violation, also if the exhaustive run reaches its limit.
    #[test]
    fn failures_of_undecided_tests_are_violations() {
        let failure = "cache 1 signals `unexpected_o`";
        let mut memory = Memory::new(false);
        let report = run_within("MP", &mut memory, 10).ok().expect("a report");
        assert_eq!(report.outcome, ExitStatus::Undecided, "{}", report.text);
        memory.failure = Some(failure);
        let report = run_within("MP", &mut memory, 10).ok().expect("a report");
        assert_eq!(report.outcome, ExitStatus::Violated, "{}", report.text);
        assert_eq!(
            (&report.json["outcome"], &report.json["reason"]),
            (&json!("violated"), &json!(failure))
        );
        let expected = format!("with seed 7: {failure}\n  again: cohkit litmus MP");
        assert!(report.text.contains(&expected), "{}", report.text);
    }

    /// Atomic accesses run at the ports.
    #[test]
    fn tests_with_atomic_accesses_run() {
        let report = run("SB+swps", &mut Memory::new(false)).ok();
        let report = report.expect("a report");
        assert_eq!(report.outcome, ExitStatus::Success, "{}", report.text);
        assert!(!report.text.contains("not seen"), "{}", report.text);
    }
}
