//! A table in coherent memory whose rows, of one line each, both sides increment.
//!
//! The CPU scans the table and increments every row. The device increments a chosen share of them in the same order:
//! it takes a row by a locking clean-invalidate, reads it, writes it and unlocks.
//! Of a table in the CPU's memory the device caches lines, too: its engines increment rows as threads do.

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
    /// Whether the table is in the CPU's memory, of which the device has copies of its own. Then there are as many engines
    /// with a row each as rows that it works on at a time.
    pub cached: bool,
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
            // The engines do everything.
            _ if self.table.cached => {}
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

/// Rows that one of several goes through: of those that are contended, or of all.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Rows {
    /// Which of them is its first.
    first: Line,
    /// It takes each of so many.
    step: Line,
    count: Line,
    /// Of each thousand rows, so many are among them.
    among: u32,
}

impl Rows {
    /// The row that is its own after so many others.
    fn nth(&self, number: Line) -> Line {
        // Of the first rows, so many are among them: the next one ends the first of which there is one more.
        let before = u64::from(self.first) + u64::from(number) * u64::from(self.step);
        ((before + 1) * 1000).div_ceil(self.among.into()) as Line - 1
    }
}

/// A thread of the CPU, or an engine of the device, that scans its rows again and again, and increments each.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scanner {
    rows: Rows,
    next: Line,
    left: Option<u64>,
    /// What its increments are counted as.
    what: &'static str,
    /// Whether an increment is on its way.
    adding: bool,
    made: u64,
}

impl Scanner {
    fn new(rows: Rows, left: Option<u64>, what: &'static str) -> Scanner {
        Scanner {
            rows,
            next: 0,
            left,
            what,
            adding: false,
            made: 0,
        }
    }
}

impl Thread for Scanner {
    fn step(&mut self, _result: u64) -> Step {
        if std::mem::take(&mut self.adding) {
            self.made += 1;
            return Step::Count {
                what: self.what,
                by: 1,
            };
        }
        if self.left == Some(0) || self.rows.count == 0 {
            return Step::Stop;
        }
        self.left = self.left.map(|left| left - 1);
        self.adding = true;
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

    fn ends(&self) -> bool {
        self.thread.is_some() && (self.device.is_some() || self.contended == 0)
    }

    fn asks(&self) -> Vec<(Operation, bool)> {
        let asks = !self.cached && self.share(self.rows) > 0 && self.device != Some(0);
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

    fn hears(&self) -> bool {
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
                // With more threads than rows some share one.
                count: (begin(thread + 1) - begin(thread)).max(1),
                among: 1000,
            };
            Scanner::new(rows, self.thread, "increments")
        });
        let (engines, all) = (self.engines(), self.share(self.rows) as Line);
        let engines = (0..engines).map(|engine| {
            let rows = Rows {
                first: engine,
                step: engines,
                count: all.saturating_sub(engine).div_ceil(engines),
                among: self.contended,
            };
            // What cannot be shared evenly is the first ones', and those without a row have nothing to do.
            let (every, more) = (u64::from(engines.min(all)), u64::from(engine));
            let left = self.device.filter(|_| every > more);
            let left = left.map(|all| (all + every - 1 - more) / every);
            Scanner::new(rows, left, "device increments")
        });
        threads.chain(engines).collect()
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
