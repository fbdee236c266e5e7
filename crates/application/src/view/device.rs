//! The device's side of the view: it takes written lines, reads the base table and writes the view.

use super::{add, Layout, Order, Sums, View, ADDRESSES};
use crate::interface::{Actions, Application, Event, Line, Operation, Placement, Words};
use cohkit_protocol::protocol::Right;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Lines per memory burst, and the maximum distance of fetches ahead of the scan, in bursts: enough to keep memory
/// busy.
const BURST: Line = 64;
const BURSTS: Line = 8;

/// Tags of memory reads: answers to the CPU, or lines to be summed.
const ANSWER: u32 = 0;
const SCAN: u32 = 1;

/// Activity of the device.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Writes the initial rows to memory: the next line, and the number of outstanding writes.
    Load { next: Line, open: usize },
    /// Waits for a read of a synchronisation address.
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

/// Progress of a scan of the base table.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Scan {
    /// Next line to request, and the end of the range.
    ask: Line,
    end: Line,
    /// Next line to sum, and lines that arrived ahead of it.
    next: Line,
    early: BTreeMap<Line, Words>,
    /// Index of the next word of the base table, and the customer of a row whose price is that word.
    at: u64,
    customer: Option<u64>,
    /// True once a word 0 in a customer column has marked the end of the rows.
    over: bool,
    /// Customers whose sum has changed, and the lowest new customer.
    changed: BTreeSet<u64>,
    grown: Option<u64>,
}

/// Device side of a [`View`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Maintainer {
    layout: Layout,
    /// All rows; the first `first` are present from the start.
    orders: Arc<[Order]>,
    first: usize,
    incremental: bool,
    outstanding: usize,
    /// 64-bit words per line.
    words: usize,
    phase: Phase,
    /// True once memory is initialised and the view of the initial rows is written.
    ready: bool,
    /// Reads of the CPU that wait for the initialisation.
    early: Vec<(Line, Right)>,
    /// Outstanding reads of synchronisation addresses.
    waiting: VecDeque<Line>,
    /// Lines of the base table for which the CPU acquired write permission since they were last taken.
    taken: BTreeSet<Line>,
    /// End of the lines that may contain rows.
    end: Line,
    /// Rows summed so far.
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

    /// Returns the number of rows summed so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Builds a line whose words are those of the range that starts at line `first`; missing words are zero.
    fn line(&self, word: impl Fn(u64) -> Option<u64>, line: Line, first: Line) -> Words {
        let used = self.layout.words;
        let begin = u64::from(line - first) * used;
        let mut words = vec![0; self.words].into_boxed_slice();
        for (place, at) in words.iter_mut().zip(begin..begin + used) {
            *place = word(at).unwrap_or(0);
        }
        words
    }

    /// Continues the current activity until it must wait for an event.
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

    /// Continues the initialisation of memory. Returns true once it is complete and the scan for the first view has
    /// started.
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

    /// Starts to take the lines that the CPU may have written and the other synchronisation address. Returns false if
    /// no synchronisation is outstanding.
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

    /// Starts the scan: all writes of the CPU are in memory.
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

    /// Handles a fetched line of the base table.
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

    /// Starts to write the changed lines of the view, or all lines if not incremental.
    fn begin_write(&mut self, actions: &mut Actions) {
        let Phase::Scan(scan) = &self.phase else {
            return;
        };
        let first = self.layout.view().start;
        let mut lines = BTreeSet::new();
        for (place, customer) in self.sums.keys().enumerate() {
            // A new customer shifts all sums that follow.
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

    /// Writes a line of the view, which is locked.
    fn write(&mut self, line: Line, actions: &mut Actions) {
        let Phase::Write { column, .. } = &self.phase else {
            return;
        };
        let word = |at: u64| column.get(at as usize).copied();
        let words = self.line(word, line, self.layout.view().start);
        actions.store(line, line, words);
    }

    /// Answers the synchronisation with the number of sums, or the early reads after initialisation.
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

    /// Handles a read of the CPU.
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

    /// Handles the completion of a memory write.
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
            // The CPU writes nothing in the other ranges.
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
