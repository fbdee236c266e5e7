//! The device: it takes what was written, reads the base table, and writes the view.

use super::{add, Layout, Order, Sums, View, ADDRESSES};
use crate::interface::{Actions, Application, Event, Line, Operation, Placement, Words};
use cohkit_protocol::protocol::Right;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Lines of a burst from memory, and bursts that are asked for at a time: enough that memory always has work.
const BURST: Line = 64;
const BURSTS: Line = 8;

/// Tags of what is read from memory: for the CPU, or to be summed.
const ANSWER: u32 = 0;
const SCAN: u32 = 1;

/// What the device is doing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Puts the rows that are there from the start into memory; this line comes next, and so many are on their way.
    Load { next: Line, open: usize },
    /// Waits for the CPU to synchronise.
    Rest,
    /// Takes lines from the CPU.
    Take { left: VecDeque<Line>, open: usize },
    /// Reads the base table.
    Scan(Scan),
    /// Writes these lines of the view, each under its lock.
    Write {
        left: VecDeque<Line>,
        open: usize,
        column: Vec<u64>,
    },
}

/// How far the base table has been read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Scan {
    /// The line to ask for next, and the end.
    ask: Line,
    end: Line,
    /// The line to sum next, and those that came before their turn.
    next: Line,
    early: BTreeMap<Line, Words>,
    /// The word of the base table that comes next, and the customer of a row whose price comes next.
    at: u64,
    customer: Option<u64>,
    /// Whether the last row has been seen.
    over: bool,
    /// Customers whose sum has changed, and the first that had none.
    changed: BTreeSet<u64>,
    grown: Option<u64>,
}

/// The device's half of a [`View`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Maintainer {
    layout: Layout,
    /// Rows that are there from the start.
    orders: Arc<[Order]>,
    first: usize,
    incremental: bool,
    outstanding: usize,
    /// Words of a line.
    words: usize,
    phase: Phase,
    /// Whether memory is filled and the view is that of the first rows.
    ready: bool,
    /// Reads of the CPU that wait until then.
    early: Vec<(Line, Right)>,
    /// Reads of synchronisation addresses that wait for their answer.
    waiting: VecDeque<Line>,
    /// Lines of the base table that the CPU may write since they were taken last.
    taken: BTreeSet<Line>,
    /// The end of the lines that may have rows.
    end: Line,
    /// Rows that have been summed.
    rows: u64,
    sums: Sums,
}

impl Maintainer {
    pub(super) fn new(view: &View) -> Maintainer {
        let layout = view.layout();
        let first = view.first();
        Maintainer {
            end: ADDRESSES + layout.lines(2 * first as u64),
            phase: Phase::Load {
                next: ADDRESSES,
                open: 0,
            },
            layout,
            orders: Arc::clone(&view.orders),
            first,
            incremental: view.incremental,
            outstanding: view.outstanding,
            words: 0,
            ready: false,
            early: Vec::new(),
            waiting: VecDeque::new(),
            taken: BTreeSet::new(),
            rows: 0,
            sums: Sums::new(),
        }
    }

    /// Rows that have been summed.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// A line of memory with these words of the range, from one on; zeros where there are none.
    fn line(&self, word: impl Fn(u64) -> Option<u64>, line: Line, first: Line) -> Words {
        let used = self.layout.words;
        let begin = u64::from(line - first) * used;
        let mut words = vec![0; self.words].into_boxed_slice();
        for (place, at) in words.iter_mut().zip(begin..begin + used) {
            *place = word(at).unwrap_or(0);
        }
        words
    }

    /// Goes on with what it is doing, as far as that does not wait for anything.
    fn go_on(&mut self, actions: &mut Actions) {
        loop {
            let again = match &mut self.phase {
                Phase::Load { .. } => self.load(actions),
                Phase::Rest => self.begin(actions),
                Phase::Take { left, open } => {
                    while *open < self.outstanding {
                        let Some(line) = left.pop_front() else { break };
                        actions.local(line, Operation::CleanInvalidate, false);
                        *open += 1;
                    }
                    let over = *open == 0;
                    if over {
                        self.begin_scan();
                    }
                    over
                }
                Phase::Scan(scan) => {
                    let most = scan.next.saturating_add(BURST * BURSTS);
                    while scan.ask < scan.end && scan.ask + BURST <= most {
                        let lines = BURST.min(scan.end - scan.ask);
                        actions.fetch(SCAN, scan.ask, lines);
                        scan.ask += lines;
                    }
                    let over = scan.next == scan.end;
                    if over {
                        self.begin_write(actions);
                    }
                    over
                }
                Phase::Write { left, open, .. } => {
                    while *open < self.outstanding {
                        let Some(line) = left.pop_front() else { break };
                        actions.local(line, Operation::CleanInvalidate, true);
                        *open += 1;
                    }
                    let over = *open == 0;
                    if over {
                        self.respond(actions);
                    }
                    over
                }
            };
            if !again {
                return;
            }
        }
    }

    /// Fills memory; whether that is over, so that the first view is made.
    fn load(&mut self, actions: &mut Actions) -> bool {
        let Phase::Load { mut next, mut open } = self.phase else {
            return false;
        };
        let base = self.layout.base();
        while next < self.layout.view().end && open < self.outstanding {
            let word = |at: u64| {
                let order = self.orders[..self.first].get((at / 2) as usize)?;
                Some([order.customer, order.price][(at % 2) as usize])
            };
            let words = match base.contains(&next) {
                true => self.line(word, next, base.start),
                false => vec![0; self.words].into(),
            };
            actions.store(next, next, words);
            (next, open) = (next + 1, open + 1);
        }
        self.phase = Phase::Load { next, open };
        let over = open == 0;
        if over {
            self.begin_scan();
        }
        over
    }

    /// Takes what the CPU may have written, and the other synchronisation address, if it waits for an answer.
    fn begin(&mut self, actions: &mut Actions) -> bool {
        let Some(&line) = self.waiting.front() else {
            return false;
        };
        let other = ADDRESSES - 1 - line;
        let taken = std::mem::take(&mut self.taken);
        actions.count("lines taken", taken.len() as u64);
        let left = std::iter::once(other).chain(taken).collect();
        self.phase = Phase::Take { left, open: 0 };
        true
    }

    /// Everything that the CPU has written is in memory.
    fn begin_scan(&mut self) {
        if !self.incremental {
            self.rows = 0;
            self.sums.clear();
        }
        let at = 2 * self.rows;
        let (first, _) = self.layout.place(self.layout.base(), at);
        self.phase = Phase::Scan(Scan {
            ask: first,
            end: self.end.max(first),
            next: first,
            early: BTreeMap::new(),
            at,
            customer: None,
            over: false,
            changed: BTreeSet::new(),
            grown: None,
        });
    }

    /// A line of the base table comes.
    fn scanned(&mut self, line: Line, words: Words, actions: &mut Actions) {
        let Phase::Scan(scan) = &mut self.phase else {
            return;
        };
        scan.early.insert(line, words);
        while let Some(words) = scan.early.remove(&scan.next) {
            let used = words.iter().take(self.layout.words as usize);
            for &word in used.skip((scan.at % self.layout.words) as usize) {
                scan.over |= scan.customer.is_none() && word == 0;
                if scan.over {
                    break;
                }
                scan.at += 1;
                let Some(customer) = scan.customer.take() else {
                    scan.customer = Some(word);
                    continue;
                };
                if !self.sums.contains_key(&customer) {
                    scan.grown = Some(scan.grown.map_or(customer, |first| first.min(customer)));
                }
                let price = word;
                add(&mut self.sums, Order { customer, price });
                scan.changed.insert(customer);
                self.rows += 1;
            }
            scan.next += 1;
            actions.count("lines scanned", 1);
        }
        self.go_on(actions);
    }

    /// The sums are known: those lines of the view are written that are not what they were.
    fn begin_write(&mut self, actions: &mut Actions) {
        let Phase::Scan(scan) = &self.phase else {
            return;
        };
        let first = self.layout.view().start;
        let mut lines = BTreeSet::new();
        for (place, customer) in self.sums.keys().enumerate() {
            // A new group moves those that follow.
            let moved = scan.grown.is_some_and(|first| first <= *customer);
            if moved || !self.incremental || scan.changed.contains(customer) {
                lines.insert(first + (place as u64 / self.layout.words) as Line);
            }
        }
        actions.count("lines of the view written", lines.len() as u64);
        self.phase = Phase::Write {
            left: lines.into_iter().collect(),
            open: 0,
            column: self.sums.values().copied().collect(),
        };
    }

    /// A line of the view is locked.
    fn write(&mut self, line: Line, actions: &mut Actions) {
        let Phase::Write { column, .. } = &self.phase else {
            return;
        };
        let word = |at: u64| column.get(at as usize).copied();
        let words = self.line(word, line, self.layout.view().start);
        actions.store(line, line, words);
    }

    /// The view is up to date: the CPU hears how many sums there are.
    fn respond(&mut self, actions: &mut Actions) {
        self.phase = Phase::Rest;
        if !std::mem::replace(&mut self.ready, true) {
            for (line, wants) in std::mem::take(&mut self.early) {
                self.read(line, wants, actions);
            }
        } else if let Some(line) = self.waiting.pop_front() {
            let mut words = vec![0; self.words].into_boxed_slice();
            words[0] = self.sums.len() as u64;
            actions.count("transactions", 1);
            actions.answer(line, words);
        }
    }

    /// The CPU reads.
    fn read(&mut self, line: Line, wants: Right, actions: &mut Actions) {
        if !self.ready {
            return self.early.push((line, wants));
        }
        if line < ADDRESSES {
            self.waiting.push_back(line);
            if self.phase == Phase::Rest {
                self.go_on(actions);
            }
            return;
        }
        if self.layout.base().contains(&line) && wants == Right::Write {
            self.taken.insert(line);
            self.end = self.end.max(line + 1);
        }
        actions.fetch(ANSWER, line, 1);
    }

    /// Memory has a line.
    fn stored(&mut self, line: Line, actions: &mut Actions) {
        match &mut self.phase {
            Phase::Load { open, .. } => *open -= 1,
            Phase::Write { open, .. } if self.layout.view().contains(&line) => {
                *open -= 1;
                actions.unlock(line);
            }
            _ => return actions.accept(line),
        }
        self.go_on(actions);
    }
}

impl Application for Maintainer {
    fn name(&self) -> &str {
        "materialised view"
    }

    fn placement(&self) -> Placement {
        Placement::Between(0..self.layout.view().end)
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            Event::Start { words } => {
                self.words = words.into();
                self.go_on(actions);
            }
            Event::Read { line, wants, .. } => self.read(line, wants, actions),
            Event::Write { line, words, .. } if self.layout.base().contains(&line) => {
                actions.store(line, line, words);
            }
            // The rest is the device's, and the CPU writes nothing there.
            Event::Write { line, .. } => actions.accept(line),
            Event::Stored { tag } => self.stored(tag, actions),
            Event::Fetched { tag, line, words } => match tag {
                SCAN => self.scanned(line, words, actions),
                _ => actions.answer(line, words),
            },
            Event::Done { line, .. } => match &mut self.phase {
                Phase::Take { open, .. } => {
                    *open -= 1;
                    self.go_on(actions);
                }
                _ => self.write(line, actions),
            },
            _ => {}
        }
    }
}
