//! Many runs with different seeds, and runs with a mutated ROM row, which must be detected.

use super::bench::{
    call_procedure, invalidate_range, play_control_lines, Bench, BenchError, DelayedResponse,
    Pattern, Report, Run, LINES,
};
use super::measure;
use super::model::Model;
use super::random::RandomGenerator;
use super::setup::{RunError, Setup, Waveform};
use crate::rom::{Effect, Memory, PermissionBounds, Rom, Row};
use cohkit_base::sequence::Sequence;
use cohkit_protocol::protocol::Permission;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Maximum number of runs for the detection of a mutated row.
const ATTEMPTS: u64 = 20;

/// Number of messages of a run for the detection of a mutated row without directed lines.
const UNDIRECTED_MESSAGES: u64 = 2000;

impl Setup<'_> {
    /// Performs one run with the unmodified ROM.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run(&self, run: Run, waveform: Option<Waveform>) -> Result<Report, RunError> {
        let image = self.image(None)?;
        self.run_with(&image, run, waveform)
    }

    /// Performs one run and returns the complete trace of each line, with the values of words read and written. The
    /// traces end at quiescence.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn traces(&self, run: Run) -> Result<Vec<Sequence>, RunError> {
        self.bench(run)?.traces()
    }

    /// Plays an application that answers late; see [`DelayedResponse`].
    ///
    /// # Errors
    /// [`RunError`], also for a deadlock.
    pub fn control_lines(&self, withheld: DelayedResponse) -> Result<(), RunError> {
        let run = measure::deterministic_run(Pattern::OneUnit, LINES, 4, 8);
        self.run_bench(run, |bench| play_control_lines(bench, withheld))
    }

    /// Lets the invalidation engine recall all lines, half of them dirty. `remote_is_idle` is true if the remote starts
    /// no accesses meanwhile. Returns the duration in cycles.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn invalidate_range(&self, run: Run, remote_is_idle: bool) -> Result<u64, RunError> {
        self.run_bench(run, |bench| invalidate_range(bench, remote_is_idle))
    }

    /// Performs `calls` remote procedure calls in each slice and returns their total duration in cycles.
    ///
    /// # Errors
    /// [`RunError`], also if a result is wrong.
    pub fn call_procedure(&self, run: Run, calls: u64) -> Result<u64, RunError> {
        self.run_bench(run, |bench| call_procedure(bench, calls))
    }

    /// Runs `body` on a home with the unmodified ROM, after its reset.
    ///
    /// # Errors
    /// [`RunError`]; the failure of `body` with the history of its line.
    pub(super) fn run_bench<T>(
        &self,
        run: Run,
        body: impl FnOnce(&mut Bench) -> Result<T, BenchError>,
    ) -> Result<T, RunError> {
        let mut bench = self.bench(run)?;
        let result = bench
            .reset_and_settle(measure::clearing_cycles(self))
            .and_then(|()| body(&mut bench));
        result.map_err(|error| bench.to_failure(error))
    }

    /// Mutates a row as in [`Setup::mutated_row`] and directs runs to it until one detects it. Returns false if none
    /// does.
    ///
    /// # Errors
    /// [`RunError`], except for a mismatch.
    pub fn detects_mutation(
        &self,
        state: usize,
        event: usize,
        seed: u64,
    ) -> Result<bool, RunError> {
        let first_target = self
            .graph
            .and_then(|graph| graph.index_from_last((state, event)));
        let mutated = self.mutated_row(state, event, seed);
        // A path may be blocked, and a row has no effect if a resource is missing; further runs use it again.
        for attempt in 0..ATTEMPTS {
            let seed = seed.wrapping_add(attempt);
            let run = match first_target {
                Some(first_target) => Run::directed_run(first_target, seed),
                None => Run::new(seed, UNDIRECTED_MESSAGES),
            };
            match self.run_mutated(run, state, event, mutated) {
                Ok(_) => {}
                Err(RunError::Mismatch(_)) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Returns the mutated row. It is determined by the position and a seed, so that no run can select a mutation that
    /// it detects.
    pub fn mutated_row(&self, state: usize, event: usize, seed: u64) -> Row {
        // Derive an own generator per position, because consecutive seeds would share random numbers.
        let position_seed =
            RandomGenerator::new(seed).bits() ^ self.rom.address(state, event) as u64;
        mutate_row(
            self.rom,
            self.rom.row(state, event),
            &mut RandomGenerator::new(position_seed),
        )
    }

    /// Performs one run with a mutated row in the ROM.
    ///
    /// # Errors
    /// [`RunError`]; a mismatch is the desired result.
    pub fn run_mutated(
        &self,
        run: Run,
        state: usize,
        event: usize,
        mutated: Row,
    ) -> Result<Report, RunError> {
        let address = self.rom.address(state, event);
        let image = self.image(Some((address, self.rom.word(mutated))))?;
        self.run_with(&image, run, None)
    }

    /// Performs one run with this image of the ROM.
    fn run_with(
        &self,
        image: &Path,
        run: Run,
        waveform: Option<Waveform>,
    ) -> Result<Report, RunError> {
        let bench = self.bench_with(image, run)?;
        bench.finish(waveform)
    }

    /// Creates a home before reset, with the unmodified ROM.
    fn bench(&self, run: Run) -> Result<Bench<'_>, RunError> {
        let image = self.image(None)?;
        self.bench_with(&image, run)
    }

    /// Creates a home before reset, with this image of the ROM.
    fn bench_with(&self, image: &Path, run: Run) -> Result<Bench<'_>, RunError> {
        let model = Model::open(self.library, image, self.argument).map_err(RunError::Tool)?;
        Ok(Bench::new(self, model, run))
    }

    /// Writes the image of the ROM to the setup's folder, optionally with a replaced word at one address. Returns its
    /// path.
    fn image(&self, replacement: Option<(usize, u64)>) -> Result<PathBuf, RunError> {
        let mut text = String::new();
        for (state, event) in self.rom.used() {
            let address = self.rom.address(state, event);
            let mut word = self.rom.word(self.rom.row(state, event));
            if let Some((_, mutated)) = replacement.filter(|replacement| replacement.0 == address) {
                word = mutated;
            }
            let _ = writeln!(text, "@{address:x} {word:x}");
        }
        let name = format!(
            "{}-{}.mem",
            self.protocol.name,
            if replacement.is_some() {
                "mutated"
            } else {
                "original"
            }
        );
        let file = self.folder.join(name);
        std::fs::write(&file, text)
            .map_err(|error| RunError::Tool(format!("{}: {error}", file.display())))?;
        Ok(file)
    }
}

/// Returns the row with a change in one field that the hardware evaluates when it uses the row.
fn mutate_row(rom: &Rom, row: Row, random: &mut RandomGenerator) -> Row {
    let effects = [Effect::Never, Effect::Stall, Effect::Refuse, Effect::Take];
    let mut fields = vec![effects.map(|effect| Row { effect, ..row }).to_vec()];
    // A unit ignores the other fields unless it consumes the event.
    if row.effect == Effect::Take {
        let memories = [Memory::None, Memory::Read, Memory::Write];
        let permissions = [Permission::None, Permission::Read, Permission::Write];
        let sends = || std::iter::once(None).chain((0..rom.sends.len() as u16).map(Some));
        let with_bounds = |permission_bounds| Row {
            permission_bounds,
            ..row
        };
        fields.extend([
            memories.map(|memory| Row { memory, ..row }).to_vec(),
            [false, true]
                .map(|acknowledge| Row { acknowledge, ..row })
                .to_vec(),
            sends().map(|grant| Row { grant, ..row }).collect(),
            sends().map(|forward| Row { forward, ..row }).collect(),
            permissions
                .map(|old_permission| {
                    with_bounds(PermissionBounds {
                        old_permission,
                        ..row.permission_bounds
                    })
                })
                .to_vec(),
            permissions
                .map(|new_permission| {
                    with_bounds(PermissionBounds {
                        new_permission,
                        ..row.permission_bounds
                    })
                })
                .to_vec(),
            (0..rom.states.len() as u16)
                .map(|next| Row { next, ..row })
                .collect(),
        ]);
    }
    for variants in &mut fields {
        variants.retain(|&variant| variant != row);
    }
    // A home with one state has no alternative next state.
    fields.retain(|variants| !variants.is_empty());
    let field = &fields[random.below(fields.len() as u64) as usize];
    field[random.below(field.len() as u64) as usize]
}
