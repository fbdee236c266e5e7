//! A table in coherent memory, one row per line, whose rows both CPU and device increment.
//!
//! The CPU scans the table and increments every row. The device increments a given share of the rows in the same order:
//! it locks a row by a locking clean-invalidate, reads it, writes it and unlocks it.
//! A table in the CPU's memory is cached by the device: its engines increment rows as threads do.

use crate::hardware::HardwareScenario;
use crate::interface::{
    Actions, Application, Contents, Event, Line, Operation, Placement, Scenario, Step, Thread,
    Update,
};
use std::collections::BTreeSet;

/// Parameters of the table and of the clients.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SharedTable {
    /// Number of rows; row R is line R.
    pub rows: Line,
    /// Rows per thousand that the device also increments, evenly distributed.
    pub contended: u32,
    /// Engines of the device, over which rows are distributed in turn; a power of two.
    pub engines: u32,
    /// Concurrent rows per engine.
    pub outstanding: u32,
    /// Increments per engine; unlimited if `None`.
    pub device: Option<u64>,
    /// Threads of the CPU, which partition the rows.
    pub threads: u32,
    /// Increments per thread; unlimited if `None`.
    pub thread: Option<u64>,
    /// True if the table is in the CPU's memory and the device caches its lines. The device then has `outstanding`
    /// engines with one row each.
    pub cached: bool,
}

impl SharedTable {
    /// Returns the number of contended rows among the first `rows`.
    fn contended_rows(&self, rows: Line) -> u64 {
        u64::from(rows) * u64::from(self.contended) / 1000
    }

    /// Returns true if the device also increments this row.
    fn is_contended(&self, row: Line) -> bool {
        self.contended_rows(row + 1) > self.contended_rows(row)
    }

    /// Returns true if the device must make a given number of increments but the table has no contended row.
    pub(crate) fn has_nothing_to_increment(&self) -> bool {
        self.device.is_some() && self.contended_rows(self.rows) == 0
    }
}

/// The device's side of the table.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Device {
    table: SharedTable,
    /// State of each engine.
    engines: Vec<Engine>,
    /// Rows in progress.
    busy: BTreeSet<Line>,
    /// Number of completed increments.
    increments: u64,
}

/// An engine of the device.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Engine {
    /// Next candidate row.
    row: Line,
    /// Increments still to start; unlimited if `None`.
    remaining: Option<u64>,
}

impl Device {
    /// Starts an increment of an engine's next contended row that is not busy.
    fn start_increment(&mut self, number: u32, actions: &mut Actions) {
        let SharedTable { rows, engines, .. } = self.table;
        let engine = &mut self.engines[number as usize];
        if engine.remaining == Some(0) {
            return;
        }
        for _ in (number..rows).step_by(engines as usize) {
            let row = engine.row;
            engine.row = match row + engines < rows {
                true => row + engines,
                false => number,
            };
            if self.table.is_contended(row) && self.busy.insert(row) {
                engine.remaining = engine.remaining.map(|remaining| remaining - 1);
                return actions.local(row, Operation::CleanInvalidate, true);
            }
        }
    }
}

impl Application for Device {
    fn name(&self) -> &str {
        "shared table"
    }

    fn placement(&self) -> Placement {
        Placement::Observer
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            // With a caching device, its engines do all the work.
            _ if self.table.cached => {}
            Event::Start { .. } => {
                for _ in 0..self.table.outstanding {
                    for engine in 0..self.table.engines {
                        self.start_increment(engine, actions);
                    }
                }
            }
            Event::LocalCompletion { line, dirty, .. } => {
                actions.count("taken dirty", dirty.into());
                actions.fetch(line, line, 1);
            }
            Event::FetchCompletion {
                line, mut words, ..
            } => {
                words[0] = words[0].wrapping_add(1);
                actions.store(line, line, words);
            }
            Event::StoreCompletion { tag } => {
                self.increments += 1;
                self.busy.remove(&tag);
                actions.count("device increments", 1);
                actions.unlock(tag);
                self.start_increment(tag % self.table.engines, actions);
            }
            Event::Stop => self
                .engines
                .iter_mut()
                .for_each(|engine| engine.remaining = Some(0)),
            _ => {}
        }
    }
}

/// Rows of one scanner, a subset of the contended rows or of all rows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Rows {
    /// Index of its first row within the set.
    first: Line,
    /// Distance between its rows within the set.
    step: Line,
    /// Number of rows.
    count: Line,
    /// Rows of the table in the set, per thousand.
    rows_per_thousand: u32,
}

impl Rows {
    /// Returns the scanner's row number `number`.
    fn nth(&self, number: Line) -> Line {
        // Inverse of `contended_rows`: the first row whose inclusion raises the number of rows in the set above `rank`.
        let rank = u64::from(self.first) + u64::from(number) * u64::from(self.step);
        ((rank + 1) * 1000).div_ceil(self.rows_per_thousand.into()) as Line - 1
    }
}

/// A CPU thread or a device engine that scans its rows repeatedly and increments each.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scanner {
    /// Rows that the scanner increments.
    rows: Rows,
    /// Number of the next row, an argument of [`Rows::nth`].
    next: Line,
    /// Increments still to start; unlimited if `None`.
    remaining: Option<u64>,
    /// Name of the counter of its increments.
    counter: &'static str,
    /// True while an increment is outstanding.
    increment_outstanding: bool,
    /// Number of completed increments.
    increments: u64,
}

impl Scanner {
    /// Creates a scanner before its first increment.
    fn new(rows: Rows, remaining: Option<u64>, counter: &'static str) -> Scanner {
        Scanner {
            rows,
            next: 0,
            remaining,
            counter,
            increment_outstanding: false,
            increments: 0,
        }
    }
}

impl Thread for Scanner {
    /// Increments its rows one after the other, and counts each increment.
    fn step(&mut self, _result: u64) -> Step {
        if std::mem::take(&mut self.increment_outstanding) {
            self.increments += 1;
            return Step::Count {
                name: self.counter,
                by: 1,
            };
        }
        if self.remaining == Some(0) || self.rows.count == 0 {
            return Step::Stop;
        }
        self.remaining = self.remaining.map(|remaining| remaining - 1);
        self.increment_outstanding = true;
        let line = self.rows.nth(self.next);
        self.next = (self.next + 1) % self.rows.count;
        Step::Update {
            line,
            word: 0,
            update: Update::Add(1),
        }
    }
}

impl Scenario for SharedTable {
    type Application = Device;
    type Thread = Scanner;

    fn lines(&self) -> Line {
        self.rows
    }

    fn terminates(&self) -> bool {
        self.thread.is_some() && (self.device.is_some() || self.contended == 0)
    }

    fn requested_operations(&self) -> Vec<(Operation, bool)> {
        let needs_local_operation =
            !self.cached && self.contended_rows(self.rows) > 0 && self.device != Some(0);
        Vec::from_iter(needs_local_operation.then_some((Operation::CleanInvalidate, true)))
    }

    fn application(&self) -> Device {
        let engine = |row| Engine {
            row,
            remaining: self.device,
        };
        Device {
            engines: (0..self.engines).map(engine).collect(),
            busy: BTreeSet::new(),
            increments: 0,
            table: self.clone(),
        }
    }

    fn needs_change_events(&self) -> bool {
        false
    }

    fn engines(&self) -> u32 {
        match self.cached {
            true => self.outstanding,
            false => 0,
        }
    }

    fn threads(&self) -> Vec<Scanner> {
        let threads = u64::from(self.threads);
        let begin = |thread| (u64::from(self.rows) * thread / threads) as Line;
        let threads = (0..threads).map(|thread| {
            let rows = Rows {
                first: begin(thread),
                step: 1,
                // With more threads than rows, several threads share a row.
                count: (begin(thread + 1) - begin(thread)).max(1),
                rows_per_thousand: 1000,
            };
            Scanner::new(rows, self.thread, "increments")
        });
        let (engines, contended_rows) = (self.engines(), self.contended_rows(self.rows) as Line);
        let engines = (0..engines).map(|engine| {
            let rows = Rows {
                first: engine,
                step: engines,
                count: contended_rows.saturating_sub(engine).div_ceil(engines),
                rows_per_thousand: self.contended,
            };
            // The first engines make the remainder of the increments; an engine without rows makes none.
            let (active_engines, engine_index) =
                (u64::from(engines.min(contended_rows)), u64::from(engine));
            let increments = self.device.filter(|_| active_engines > engine_index);
            let increments = increments
                .map(|total| (total + active_engines - 1 - engine_index) / active_engines);
            Scanner::new(rows, increments, "device increments")
        });
        threads.chain(engines).collect()
    }

    fn verify(
        &self,
        application: &Device,
        threads: &[Scanner],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        self.judge(application.increments, threads, contents)
    }
}

impl HardwareScenario for SharedTable {
    fn observe(&self, event: &Event, increments: &mut u64, actions: &mut Actions) {
        match event {
            Event::LocalCompletion { dirty, .. } => actions.count("taken dirty", (*dirty).into()),
            Event::StoreCompletion { .. } => {
                *increments += 1;
                actions.count("device increments", 1);
            }
            _ => {}
        }
    }

    /// Checks that no increment was lost or made twice.
    fn judge(
        &self,
        increments: u64,
        threads: &[Scanner],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        let gained = |row| contents.word(row, 0).wrapping_sub(contents.initial(row, 0));
        let gained: u64 = (0..self.rows).map(gained).fold(0, u64::wrapping_add);
        let scanned: u64 = threads.iter().map(|thread| thread.increments).sum();
        let increments = increments + scanned;
        match gained == increments {
            true => Ok(()),
            false => Err(format!(
                "the table has gained {gained}, of {increments} increments ({scanned} by threads)"
            )),
        }
    }
}
