//! A table in coherent memory whose rows, of one line each, both sides increment.
//!
//! The CPU scans the table and increments every row. The device increments a chosen share of them in the same order:
//! it takes a row by a locking clean-invalidate, reads it, writes it and unlocks.

use crate::hardware::InHardware;
use crate::interface::{
    Actions, Application, Contents, Event, Line, Operation, Placement, Scenario, Step, Thread,
    Update,
};
use std::collections::BTreeSet;

/// How large the table is and who does what.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SharedTable {
    /// Rows, which are the lines from 0.
    pub rows: Line,
    /// Of each thousand rows, so many are also incremented by the device, spread evenly.
    pub contended: u32,
    /// Engines of the device, among which rows are dealt out in turn; a power of two.
    pub engines: u32,
    /// Rows that each engine works on at a time.
    pub outstanding: u32,
    /// Rows that each engine increments; without end if not given.
    pub device: Option<u64>,
    /// Threads of the CPU, which divide the rows among themselves.
    pub threads: u32,
    /// Rows that each thread increments; without end if not given.
    pub thread: Option<u64>,
}

impl SharedTable {
    /// Of the first rows, those that the device increments, too.
    fn share(&self, rows: Line) -> u64 {
        u64::from(rows) * u64::from(self.contended) / 1000
    }

    /// Whether the device increments a row, too.
    fn contends(&self, row: Line) -> bool {
        self.share(row + 1) > self.share(row)
    }

    /// Whether the device is to increment rows, of which it has none.
    pub fn has_nothing_to_increment(&self) -> bool {
        self.device.is_some() && self.share(self.rows) == 0
    }
}

/// The device's half.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Device {
    table: SharedTable,
    engines: Vec<Engine>,
    /// Rows in work.
    busy: BTreeSet<Line>,
    made: u64,
}

/// One engine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Engine {
    /// The row to look at next.
    row: Line,
    /// Increments to begin.
    left: Option<u64>,
}

impl Device {
    /// An engine takes the next row that it is to increment.
    fn next(&mut self, number: u32, actions: &mut Actions) {
        let SharedTable { rows, engines, .. } = self.table;
        let engine = &mut self.engines[number as usize];
        if engine.left == Some(0) {
            return;
        }
        for _ in (number..rows).step_by(engines as usize) {
            let row = engine.row;
            engine.row = match row + engines < rows {
                true => row + engines,
                false => number,
            };
            if self.table.contends(row) && self.busy.insert(row) {
                engine.left = engine.left.map(|left| left - 1);
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
        Placement::Beside
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            Event::Start { .. } => {
                for _ in 0..self.table.outstanding {
                    for engine in 0..self.table.engines {
                        self.next(engine, actions);
                    }
                }
            }
            Event::Done { line, dirty, .. } => {
                actions.count("taken dirty", dirty.into());
                actions.fetch(line, line, 1);
            }
            Event::Fetched {
                line, mut words, ..
            } => {
                words[0] = words[0].wrapping_add(1);
                actions.store(line, line, words);
            }
            Event::Stored { tag } => {
                self.made += 1;
                self.busy.remove(&tag);
                actions.count("device increments", 1);
                actions.unlock(tag);
                self.next(tag % self.table.engines, actions);
            }
            Event::Stop => self.engines.iter_mut().for_each(|e| e.left = Some(0)),
            _ => {}
        }
    }
}

/// A thread that scans its rows again and again, and increments each.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scanner {
    first: Line,
    rows: Line,
    row: Line,
    left: Option<u64>,
    /// Whether an increment is on its way.
    adding: bool,
    made: u64,
}

impl Thread for Scanner {
    fn step(&mut self, _result: u64) -> Step {
        if std::mem::take(&mut self.adding) {
            self.made += 1;
            return Step::Count {
                what: "increments",
                by: 1,
            };
        }
        if self.left == Some(0) {
            return Step::Stop;
        }
        self.left = self.left.map(|left| left - 1);
        self.adding = true;
        let line = self.first + self.row;
        self.row = (self.row + 1) % self.rows;
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

    fn ends(&self) -> bool {
        self.thread.is_some() && (self.device.is_some() || self.contended == 0)
    }

    fn asks(&self) -> Vec<(Operation, bool)> {
        let asks = self.share(self.rows) > 0 && self.device != Some(0);
        Vec::from_iter(asks.then_some((Operation::CleanInvalidate, true)))
    }

    fn application(&self) -> Device {
        let engine = |row| Engine {
            row,
            left: self.device,
        };
        Device {
            engines: (0..self.engines).map(engine).collect(),
            busy: BTreeSet::new(),
            made: 0,
            table: self.clone(),
        }
    }

    fn threads(&self) -> Vec<Scanner> {
        let threads = u64::from(self.threads);
        let begin = |thread| (u64::from(self.rows) * thread / threads) as Line;
        let threads = (0..threads).map(|thread| Scanner {
            first: begin(thread),
            // With more threads than rows some share one.
            rows: (begin(thread + 1) - begin(thread)).max(1),
            row: 0,
            left: self.thread,
            adding: false,
            made: 0,
        });
        threads.collect()
    }

    fn verify(
        &self,
        application: &Device,
        threads: &[Scanner],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        self.judge(application.made, threads, contents)
    }
}

impl InHardware for SharedTable {
    fn observe(&self, event: &Event, made: &mut u64, actions: &mut Actions) {
        match event {
            Event::Done { dirty, .. } => actions.count("taken dirty", (*dirty).into()),
            Event::Stored { .. } => {
                *made += 1;
                actions.count("device increments", 1);
            }
            _ => {}
        }
    }

    /// No increment is lost, and none is made twice.
    fn judge(&self, made: u64, threads: &[Scanner], contents: &dyn Contents) -> Result<(), String> {
        let gained = |row| contents.word(row, 0).wrapping_sub(contents.initial(row, 0));
        let gained: u64 = (0..self.rows).map(gained).fold(0, u64::wrapping_add);
        let scanned: u64 = threads.iter().map(|thread| thread.made).sum();
        let made = made + scanned;
        match gained == made {
            true => Ok(()),
            false => Err(format!(
                "the table has gained {gained}, of {made} increments ({scanned} by threads)"
            )),
        }
    }
}
