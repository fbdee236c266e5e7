//! Many runs with different seeds, and runs with a spoilt ROM, which have to be noticed.

use super::bench::{Bench, Mismatch, Pattern, Report, Run, Withheld, Wrong, LINES};
use super::build::Shape;
use super::chance::Chance;
use super::measure;
use super::model::Model;
use super::ways::Ways;
use crate::rom::{Effect, Memory, Rom, Row};
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Protocol, Right};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Most runs in which a spoilt row may be noticed.
const ATTEMPTS: u64 = 20;

/// A home that was built, and what it is compared with.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The protocol.
    pub protocol: &'a Protocol,
    /// Its home.
    pub home: &'a Controller,
    /// The same as a ROM.
    pub rom: &'a Rom,
    /// The library of [`super::build::build`].
    pub library: &'a Path,
    /// The size it was built in.
    pub shape: Shape,
    /// The ways to its rows, by which runs are guided to rare ones; without them chance rules alone.
    pub ways: Option<&'a Ways>,
    /// What the RTL is told at its start besides the image, as Verilog's `$value$plusargs` reads it without the `+`.
    pub argument: &'a str,
    /// A folder for images of ROMs.
    pub folder: &'a Path,
    /// Runs end soon after this is set.
    pub stop: &'a AtomicBool,
}

/// Why a run has no report.
#[derive(Debug)]
pub enum Failed {
    /// The RTL did something else than the controllers.
    Mismatch(Box<Mismatch>),
    /// The library or a file could not be used; why.
    Tool(String),
    /// It was told to stop.
    Stopped,
}

/// Where the waveform of a run goes, and the cycle from which on it is kept.
#[derive(Clone, Copy, Debug)]
pub struct Waveform<'a> {
    /// The file, of the kind that GTKWave reads (FST).
    pub file: &'a Path,
    /// The first cycle.
    pub from: u64,
}

impl Setup<'_> {
    /// Does one run with the ROM as it is.
    ///
    /// # Errors
    /// [`Failed`].
    pub fn run(&self, run: Run, waveform: Option<Waveform>) -> Result<Report, Failed> {
        let image = self.image(None)?;
        self.run_with(&image, run, waveform)
    }

    /// Plays an application that answers late. See [`Withheld`].
    ///
    /// # Errors
    /// [`Failed`], also if nothing moves any more.
    pub fn control_lines(&self, withheld: Withheld) -> Result<(), Failed> {
        let mut bench = self.bench(measure::run(Pattern::OneUnit, LINES, 4, 8))?;
        let result = bench
            .begin(measure::settle(self))
            .and_then(|()| bench.control_lines(withheld));
        result.map_err(|wrong| bench.failed(wrong))
    }

    /// Has the invalidation engine take all lines, half of them dirty, while the remote rests, or not.
    /// Gives the cycles that it took.
    ///
    /// # Errors
    /// [`Failed`].
    pub fn sweep(&self, run: Run, rests: bool) -> Result<u64, Failed> {
        self.play(run, |bench| bench.sweep(rests))
    }

    /// Does remote procedure calls in both slices, and gives the cycles of all together.
    ///
    /// # Errors
    /// [`Failed`], also if a result is wrong.
    pub fn calls(&self, run: Run, calls: u64) -> Result<u64, Failed> {
        self.play(run, |bench| bench.calls(calls))
    }

    fn play<T>(
        &self,
        run: Run,
        plays: impl FnOnce(&mut Bench) -> Result<T, Wrong>,
    ) -> Result<T, Failed> {
        let mut bench = self.bench(run)?;
        let result = bench
            .begin(measure::settle(self))
            .and_then(|()| plays(&mut bench));
        result.map_err(|wrong| bench.failed(wrong))
    }

    /// Spoils a row and lets runs be led to it, until one notices it. False if none of them does.
    ///
    /// # Errors
    /// [`Failed`], but for a mismatch.
    pub fn notices(&self, state: usize, event: usize) -> Result<bool, Failed> {
        let aim = self.ways.and_then(|ways| ways.aim((state, event)));
        // A way may be barred, and a row that is used where something is lacking does nothing; other runs use it again.
        for seed in 0..ATTEMPTS {
            let run = match aim {
                Some(aim) => Run::toward(aim, seed),
                None => Run::new(seed, 2000),
            };
            match self.run_spoilt(run, state, event) {
                Ok(_) => {}
                Err(Failed::Mismatch(_)) => return Ok(true),
                Err(failed) => return Err(failed),
            }
        }
        Ok(false)
    }

    /// Does one run with one row of the ROM spoilt; which way follows from the seed.
    ///
    /// # Errors
    /// [`Failed`]; this is what is hoped for.
    pub fn run_spoilt(&self, run: Run, state: usize, event: usize) -> Result<Report, Failed> {
        let row = spoil(
            self.rom,
            self.rom.row(state, event),
            &mut Chance::new(run.seed ^ (state << 8 | event) as u64),
        );
        let image = self.image(Some((self.rom.address(state, event), self.rom.word(row))))?;
        self.run_with(&image, run, None)
    }

    fn run_with(
        &self,
        image: &Path,
        run: Run,
        waveform: Option<Waveform>,
    ) -> Result<Report, Failed> {
        let bench = self.bench_with(image, run)?;
        bench.finish(waveform)
    }

    /// A home that has not yet been reset, with the ROM as it is.
    pub(super) fn bench(&self, run: Run) -> Result<Bench<'_>, Failed> {
        let image = self.image(None)?;
        self.bench_with(&image, run)
    }

    fn bench_with(&self, image: &Path, run: Run) -> Result<Bench<'_>, Failed> {
        let model = Model::open(self.library, image, self.argument).map_err(Failed::Tool)?;
        Ok(Bench::new(self, model, run))
    }

    /// The image of the ROM, with another word at an address if asked for.
    fn image(&self, other: Option<(usize, u64)>) -> Result<PathBuf, Failed> {
        let mut text = String::new();
        for (state, event) in self.rom.used() {
            let address = self.rom.address(state, event);
            let mut word = self.rom.word(self.rom.row(state, event));
            if let Some((_, spoilt)) = other.filter(|other| other.0 == address) {
                word = spoilt;
            }
            let _ = writeln!(text, "@{address:x} {word:x}");
        }
        let name = format!(
            "{}-{}.mem",
            self.protocol.name,
            if other.is_some() { "spoilt" } else { "whole" }
        );
        let file = self.folder.join(name);
        std::fs::write(&file, text)
            .map_err(|error| Failed::Tool(format!("{}: {error}", file.display())))?;
        Ok(file)
    }
}

/// A row that differs in something that matters when it is used.
fn spoil(rom: &Rom, row: Row, chance: &mut Chance) -> Row {
    let mut other = |count: usize, not: u16| {
        let value = chance.below(count as u64 - 1) as u16;
        value + u16::from(value >= not)
    };
    let mut spoilt = row;
    if row.effect != Effect::Take {
        spoilt.effect = match (row.effect, other(3, 2)) {
            (_, 0) => Effect::Take,
            (Effect::Leave, _) => Effect::Refuse,
            _ => Effect::Leave,
        };
        return spoilt;
    }
    let mut right = |not: Right| {
        let rights = [Right::None, Right::Read, Right::Write];
        rights[usize::from(other(3, not as u16))]
    };
    let known = [right(row.known.before), right(row.known.after)];
    match other(8, 7) {
        0 => {
            spoilt.effect = [Effect::Never, Effect::Leave, Effect::Refuse][usize::from(other(4, 3))]
        }
        1 => {
            spoilt.memory = if row.memory == Memory::Read {
                Memory::None
            } else {
                Memory::Read
            }
        }
        2 => spoilt.acknowledge = !row.acknowledge,
        3 if rom.sends.len() > 1 => {
            spoilt.grant = row
                .grant
                .map_or(Some(0), |grant| Some(other(rom.sends.len(), grant)))
        }
        5 => spoilt.known.before = known[0],
        6 => spoilt.known.after = known[1],
        4 => spoilt.forward = row.forward.map_or(Some(0), |_| None),
        _ => spoilt.next = other(rom.states.len(), row.next),
    }
    spoilt
}
