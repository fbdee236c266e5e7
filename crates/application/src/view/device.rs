//! The device's side of the view: it recalls written lines, reads the base table and writes the view.

use super::{add_order, Layout, Order, Sums, View, SYNC_LINES};
use crate::interface::{Actions, Application, Event, Line, Operation, Placement, Words};
use cohkit_protocol::protocol::Permission;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Lines per memory burst.
const BURST_LINES: Line = 64;
/// Maximum distance of fetches ahead of the scan, in bursts: enough to keep memory busy.
const MAX_BURSTS_AHEAD: Line = 8;

/// Tag of memory reads that answer the CPU.
const CPU_READ: u32 = 0;
/// Tag of memory reads of lines to be summed.
const SCAN: u32 = 1;

/// Activity of the device.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Writes the initial rows to memory: the next line, and the number of outstanding writes.
    Load { next: Line, in_flight: usize },
    /// Waits for a read of a synchronisation address.
    Idle,
    /// Recalls lines from the CPU: those not yet requested, and the number of outstanding operations.
    Recall {
        remaining: VecDeque<Line>,
        in_flight: usize,
    },
    /// Reads the number of rows of a base table in the host's memory.
    CountRows,
    /// Reads the base table.
    Scan(Scan),
    /// Writes these lines of the view, each under its lock: those not yet requested, the number of lines in progress,
    /// and the sums in the order of customers.
    Write {
        remaining: VecDeque<Line>,
        in_flight: usize,
        column: Vec<u64>,
    },
}

/// Progress of a scan of the base table.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Scan {
    /// Next line to request.
    next_request: Line,
    /// End (exclusive) of the range.
    end: Line,
    /// Next line to sum.
    next: Line,
    /// Lines that arrived ahead of the next one.
    early_lines: BTreeMap<Line, Words>,
    /// Index of the next word of the base table.
    word_index: u64,
    /// Customer of the row whose price is the next word; `None` if that word is a customer.
    customer: Option<u64>,
    /// True once a word 0 in a customer column has marked the end of the rows.
    end_reached: bool,
    /// Customers whose sum has changed.
    changed: BTreeSet<u64>,
    /// Lowest customer that had no sum before the scan.
    lowest_new_customer: Option<u64>,
}

impl Scan {
    /// Requests bursts up to the maximum distance ahead of the next line to sum, of a table with this number of rows.
    fn request_bursts(&mut self, layout: &Layout, rows: u64, actions: &mut Actions) {
        let limit = self.next.saturating_add(BURST_LINES * MAX_BURSTS_AHEAD);
        while self.next_request < self.end && self.next_request + BURST_LINES <= limit {
            let lines = BURST_LINES.min(self.end - self.next_request);
            layout.fetch_base_table(self.next_request, lines, rows, actions);
            self.next_request += lines;
        }
    }
}

impl Layout {
    /// Requests lines of the base table from the device's memory, or the rows in them from the host's memory.
    fn fetch_base_table(&self, first: Line, lines: Line, rows: u64, actions: &mut Actions) {
        if !self.in_host {
            return actions.fetch(SCAN, first, lines);
        }
        let (first_word, words) = self.host_words_of(first, lines, rows);
        actions.coherent_load(first, first_word, words, false);
    }

    /// Returns the words of the host's memory that hold these lines of a base table with this number of rows: the first
    /// word, and their number.
    fn host_words_of(&self, first: Line, lines: Line, rows: u64) -> (u32, u32) {
        let begin = u64::from(first - self.base_table().start) * self.words;
        let end = (2 * rows).min(begin + u64::from(lines) * self.words);
        (self.host_word(begin), end.saturating_sub(begin) as u32)
    }
}

/// Requests clean-invalidates of the remaining lines, with at most `limit` of them in flight. If `lock` is true, each
/// also locks its line.
fn request_invalidations(
    remaining: &mut VecDeque<Line>,
    in_flight: &mut usize,
    limit: usize,
    lock: bool,
    actions: &mut Actions,
) {
    while *in_flight < limit {
        let Some(line) = remaining.pop_front() else {
            break;
        };
        actions.local(line, Operation::CleanInvalidate, lock);
        *in_flight += 1;
    }
}

/// Device side of a [`View`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Maintainer {
    /// Address layout.
    layout: Layout,
    /// All rows; the first `initial_rows` are present from the start.
    orders: Arc<[Order]>,
    /// Number of rows present from the start.
    initial_rows: usize,
    /// True if a scan reads only the rows that have not been summed.
    incremental: bool,
    /// Maximum number of outstanding local operations or writes.
    outstanding: usize,
    /// 64-bit words per line.
    words: usize,
    /// Current activity.
    phase: Phase,
    /// True once memory is initialised and the view of the initial rows is written.
    is_initialised: bool,
    /// Reads of the CPU that wait for the initialisation.
    deferred_reads: Vec<(Line, Permission)>,
    /// Synchronisation addresses whose reads are not answered, in the order of arrival.
    waiting: VecDeque<Line>,
    /// Lines of the base table for which the CPU acquired write permission since they were last recalled.
    written_lines: BTreeSet<Line>,
    /// End (exclusive) of the lines that may contain rows.
    end: Line,
    /// Number of rows of a base table in the host's memory, as last read. The device does not read the rows that
    /// follow, because the CPU may be writing them.
    host_rows: u64,
    /// Rows summed so far.
    rows: u64,
    /// Sums over these rows.
    sums: Sums,
}

impl Maintainer {
    /// Creates the device before its first event.
    pub(super) fn new(view: &View) -> Maintainer {
        let layout = view.layout();
        let initial_rows = view.initial_rows();
        Maintainer {
            end: SYNC_LINES + layout.lines(2 * initial_rows as u64),
            phase: Phase::Load {
                next: SYNC_LINES,
                in_flight: 0,
            },
            host_rows: initial_rows as u64,
            layout,
            orders: Arc::clone(&view.orders),
            initial_rows,
            incremental: view.incremental,
            outstanding: view.outstanding,
            words: 0,
            is_initialised: false,
            deferred_reads: Vec::new(),
            waiting: VecDeque::new(),
            written_lines: BTreeSet::new(),
            rows: 0,
            sums: Sums::new(),
        }
    }

    /// Returns the number of rows summed so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Builds a line whose words are those of the range that starts at line `first`; missing words are zero.
    fn build_line(&self, word: impl Fn(u64) -> Option<u64>, line: Line, first: Line) -> Words {
        let used = self.layout.words;
        let begin = u64::from(line - first) * used;
        let mut words = vec![0; self.words].into_boxed_slice();
        for (slot, index) in words.iter_mut().zip(begin..begin + used) {
            *slot = word(index).unwrap_or(0);
        }
        words
    }

    /// Continues the current activity until it must wait for an event.
    fn advance(&mut self, actions: &mut Actions) {
        loop {
            let has_advanced = match &mut self.phase {
                Phase::Load { .. } => self.initialise(actions),
                Phase::Idle => self.start_synchronisation(actions),
                Phase::Recall {
                    remaining,
                    in_flight,
                } => {
                    let limit = self.outstanding;
                    request_invalidations(remaining, in_flight, limit, false, actions);
                    let is_over = *in_flight == 0;
                    if is_over {
                        self.count_rows_or_scan(actions);
                    }
                    is_over
                }
                Phase::CountRows => false,
                Phase::Scan(scan) => {
                    scan.request_bursts(&self.layout, self.host_rows, actions);
                    let is_over = scan.next == scan.end;
                    if is_over {
                        self.begin_write(actions);
                    }
                    is_over
                }
                Phase::Write {
                    remaining,
                    in_flight,
                    ..
                } => {
                    let limit = self.outstanding;
                    request_invalidations(remaining, in_flight, limit, true, actions);
                    let is_over = *in_flight == 0;
                    if is_over {
                        self.respond(actions);
                    }
                    is_over
                }
            };
            if !has_advanced {
                return;
            }
        }
    }

    /// Continues the initialisation of memory. Returns true once it is complete and the scan for the first view has
    /// started.
    fn initialise(&mut self, actions: &mut Actions) -> bool {
        let Phase::Load {
            mut next,
            mut in_flight,
        } = self.phase
        else {
            return false;
        };
        let base = self.layout.base_table();
        while next < self.layout.view_table().end && in_flight < self.outstanding {
            if self.layout.in_host && (self.end..base.end).contains(&next) {
                // The CPU already writes the rows of these lines.
                next = base.end;
                continue;
            }
            match base.contains(&next) {
                true => self.store_initial_rows(next, actions),
                false => actions.store(next, next, vec![0; self.words].into()),
            }
            (next, in_flight) = (next + 1, in_flight + 1);
        }
        self.phase = Phase::Load { next, in_flight };
        let is_over = in_flight == 0;
        if is_over {
            self.begin_scan();
        }
        is_over
    }

    /// Writes a line of the base table at the device, with zeros after the initial rows. In the host's memory, writes
    /// only the initial rows in the line, because the CPU may already write the rows that follow.
    fn store_initial_rows(&self, line: Line, actions: &mut Actions) {
        let word = |index: u64| {
            let order = self.orders[..self.initial_rows].get((index / 2) as usize)?;
            Some([order.customer, order.price][(index % 2) as usize])
        };
        let first = self.layout.base_table().start;
        if !self.layout.in_host {
            return actions.store(line, line, self.build_line(word, line, first));
        }
        let rows = self.initial_rows as u64;
        let (first_word, count) = self.layout.host_words_of(line, 1, rows);
        let begin = u64::from(line - first) * self.layout.words;
        let words = (begin..begin + u64::from(count)).filter_map(word).collect();
        actions.coherent_store(line, first_word, words, false);
    }

    /// Reads the number of rows of a base table in the host's memory, or starts the scan of one at the device.
    fn count_rows_or_scan(&mut self, actions: &mut Actions) {
        if !self.layout.in_host {
            return self.begin_scan();
        }
        self.phase = Phase::CountRows;
        actions.coherent_load(0, 0, 1, false);
    }

    /// Handles words of the host's memory: the number of rows of the base table, or lines of it from line `first`.
    fn handle_host_words(&mut self, first: Line, words: &[u64], actions: &mut Actions) {
        if self.phase == Phase::CountRows {
            // Limits a wrong count to the size of the table.
            self.host_rows = words.first().map_or(0, |rows| *rows).min(self.layout.rows);
            self.end = SYNC_LINES + self.layout.lines(2 * self.host_rows);
            self.begin_scan();
            return self.advance(actions);
        }
        for (line, words) in (first..).zip(words.chunks(self.layout.words as usize)) {
            self.handle_scanned_line(line, words.into(), actions);
        }
    }

    /// Starts to recall the lines that the CPU may have written and the other synchronisation address. Returns false if
    /// no synchronisation is outstanding.
    fn start_synchronisation(&mut self, actions: &mut Actions) -> bool {
        let Some(&line) = self.waiting.front() else {
            return false;
        };
        let other_address = SYNC_LINES - 1 - line;
        let written_lines = std::mem::take(&mut self.written_lines);
        actions.count("lines taken", written_lines.len() as u64);
        let remaining = std::iter::once(other_address)
            .chain(written_lines)
            .collect();
        self.phase = Phase::Recall {
            remaining,
            in_flight: 0,
        };
        true
    }

    /// Starts the scan: all writes of the CPU are in memory.
    fn begin_scan(&mut self) {
        if !self.incremental {
            self.rows = 0;
            self.sums.clear();
        }
        let word_index = 2 * self.rows;
        let (first, _) = self
            .layout
            .line_and_word(self.layout.base_table(), word_index);
        self.phase = Phase::Scan(Scan {
            next_request: first,
            end: self.end.max(first),
            next: first,
            early_lines: BTreeMap::new(),
            word_index,
            customer: None,
            end_reached: false,
            changed: BTreeSet::new(),
            lowest_new_customer: None,
        });
    }

    /// Handles a fetched line of the base table.
    fn handle_scanned_line(&mut self, line: Line, words: Words, actions: &mut Actions) {
        let Phase::Scan(scan) = &mut self.phase else {
            return;
        };
        scan.early_lines.insert(line, words);
        while let Some(words) = scan.early_lines.remove(&scan.next) {
            let used = words.iter().take(self.layout.words as usize);
            for &word in used.skip((scan.word_index % self.layout.words) as usize) {
                scan.end_reached |= scan.customer.is_none() && word == 0;
                if scan.end_reached {
                    break;
                }
                scan.word_index += 1;
                let Some(customer) = scan.customer.take() else {
                    scan.customer = Some(word);
                    continue;
                };
                if !self.sums.contains_key(&customer) {
                    scan.lowest_new_customer = Some(
                        scan.lowest_new_customer
                            .map_or(customer, |lowest| lowest.min(customer)),
                    );
                }
                let price = word;
                add_order(&mut self.sums, Order { customer, price });
                scan.changed.insert(customer);
                self.rows += 1;
            }
            scan.next += 1;
            actions.count("lines scanned", 1);
        }
        self.advance(actions);
    }

    /// Starts to write the changed lines of the view, or all lines if not incremental.
    fn begin_write(&mut self, actions: &mut Actions) {
        let Phase::Scan(scan) = &self.phase else {
            return;
        };
        let first = self.layout.view_table().start;
        let mut lines = BTreeSet::new();
        for (position, customer) in self.sums.keys().enumerate() {
            // A new customer shifts all sums that follow.
            let is_shifted = scan
                .lowest_new_customer
                .is_some_and(|lowest| lowest <= *customer);
            if is_shifted || !self.incremental || scan.changed.contains(customer) {
                lines.insert(first + (position as u64 / self.layout.words) as Line);
            }
        }
        actions.count("lines of the view written", lines.len() as u64);
        self.phase = Phase::Write {
            remaining: lines.into_iter().collect(),
            in_flight: 0,
            column: self.sums.values().copied().collect(),
        };
    }

    /// Writes a line of the view, which is locked.
    fn write_view_line(&mut self, line: Line, actions: &mut Actions) {
        let Phase::Write { column, .. } = &self.phase else {
            return;
        };
        let word = |index: u64| column.get(index as usize).copied();
        let words = self.build_line(word, line, self.layout.view_table().start);
        actions.store(line, line, words);
    }

    /// Answers the synchronisation with the number of sums, or the early reads after initialisation.
    fn respond(&mut self, actions: &mut Actions) {
        self.phase = Phase::Idle;
        if !std::mem::replace(&mut self.is_initialised, true) {
            for (line, wants) in std::mem::take(&mut self.deferred_reads) {
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
    fn read(&mut self, line: Line, wants: Permission, actions: &mut Actions) {
        if !self.is_initialised {
            return self.deferred_reads.push((line, wants));
        }
        if line < SYNC_LINES {
            self.waiting.push_back(line);
            if self.phase == Phase::Idle {
                self.advance(actions);
            }
            return;
        }
        if self.layout.base_table().contains(&line) && wants == Permission::Write {
            self.written_lines.insert(line);
            self.end = self.end.max(line + 1);
        }
        actions.fetch(CPU_READ, line, 1);
    }

    /// Handles the completion of a memory write.
    fn handle_stored_line(&mut self, line: Line, actions: &mut Actions) {
        match &mut self.phase {
            Phase::Load { in_flight, .. } => *in_flight -= 1,
            Phase::Write { in_flight, .. } if self.layout.view_table().contains(&line) => {
                *in_flight -= 1;
                actions.unlock(line);
            }
            _ => return actions.accept(line),
        }
        self.advance(actions);
    }
}

impl Application for Maintainer {
    fn name(&self) -> &str {
        "materialised view"
    }

    fn placement(&self) -> Placement {
        Placement::MemoryPath(0..self.layout.view_table().end)
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            Event::Start { words } => {
                self.words = words.into();
                self.advance(actions);
            }
            Event::Read { line, wants, .. } => self.read(line, wants, actions),
            Event::Write { line, words, .. } if self.layout.base_table().contains(&line) => {
                actions.store(line, line, words);
            }
            // The CPU writes nothing in the other ranges.
            Event::Write { line, .. } => actions.accept(line),
            Event::StoreCompletion { tag } | Event::CoherentStoreCompletion { tag } => {
                self.handle_stored_line(tag, actions)
            }
            Event::CoherentLoadCompletion { tag, words } => {
                self.handle_host_words(tag, &words, actions)
            }
            Event::FetchCompletion { tag, line, words } => match tag {
                SCAN => self.handle_scanned_line(line, words, actions),
                _ => actions.answer(line, words),
            },
            Event::LocalCompletion { line, .. } => match &mut self.phase {
                Phase::Recall { in_flight, .. } => {
                    *in_flight -= 1;
                    self.advance(actions);
                }
                _ => self.write_view_line(line, actions),
            },
            _ => {}
        }
    }
}
