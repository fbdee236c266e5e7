//! A materialised view: sums per customer over a table of orders, maintained by the device.
//!
//! Base table and view are two ranges of coherent memory at the device. The base table may be in the host's memory
//! instead, behind a header with the number of rows: the device then reads both coherently over the link.
//!
//! The CPU appends rows to the base table and then reads a synchronisation address. The device delays the response: it
//! clean-invalidates the lines of its memory that the CPU may have written, reads the base table or only its new rows,
//! updates the view, and responds. The CPU then reads the view: `SELECT SUM(O_TOTALPRICE) FROM ORDERS GROUP BY O_CUSTKEY ORDER BY O_CUSTKEY`.

mod device;
mod orders;

use crate::interface::{Contents, Line, Operation, Scenario, Step, Table, Thread};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

pub use device::Maintainer;
pub use orders::{orders, Order, ROWS};

/// Parameters of the table and of the transactions on it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct View {
    /// All rows. Rows that are not appended are present from the start.
    pub orders: Arc<[Order]>,
    /// Rows appended per transaction.
    pub updates: u64,
    /// Number of transactions.
    pub transactions: u64,
    /// True if the device reads only the new rows of the base table, false if it reads all rows.
    pub incremental: bool,
    /// Words used per line, at most all of them.
    pub words: u64,
    /// Maximum number of outstanding local operations.
    pub outstanding: usize,
    /// True if the base table is in the host's memory, false if it is in the device's.
    pub in_host: bool,
}

impl View {
    /// Number of rows present from the start.
    fn initial_rows(&self) -> usize {
        let appended = self.updates.saturating_mul(self.transactions);
        self.orders
            .len()
            .saturating_sub(usize::try_from(appended).unwrap_or(usize::MAX))
    }

    /// Returns the address layout of the table and the view.
    fn layout(&self) -> Layout {
        let mut customers: Vec<u64> = self.orders.iter().map(|order| order.customer).collect();
        customers.sort_unstable();
        customers.dedup();
        Layout {
            words: self.words,
            rows: self.orders.len() as u64,
            groups: customers.len() as u64,
            in_host: self.in_host,
        }
    }
}

/// Address layout: two synchronisation addresses, the base table, the view. A row occupies two words, a sum one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Layout {
    /// Words used per line.
    words: u64,
    /// Maximum number of rows of the base table.
    rows: u64,
    /// Maximum number of sums of the view: the number of customers.
    groups: u64,
    /// True if the base table is in the host's memory. Its lines then are numbered as if they were at the device.
    in_host: bool,
}

/// Number of synchronisation addresses. Transactions alternate between them, because each read must miss in the CPU's
/// cache.
const SYNC_LINES: Line = 2;

impl Layout {
    /// Returns the number of lines that this number of words occupies.
    fn lines(&self, words: u64) -> Line {
        words.div_ceil(self.words) as Line
    }

    /// Returns the lines of the base table.
    fn base_table(&self) -> Range<Line> {
        SYNC_LINES..SYNC_LINES + self.lines(2 * self.rows)
    }

    /// Returns the lines of the view.
    fn view_table(&self) -> Range<Line> {
        let first = self.base_table().end;
        first..first + self.lines(self.groups)
    }

    /// Returns the index in the host's memory of a word of the base table. A header of `words` words precedes the
    /// table; its word 0 is the number of rows.
    fn host_word(&self, word: u64) -> u32 {
        (self.words + word) as u32
    }

    /// Returns the line, and the index within it, of a word of a range.
    fn line_and_word(&self, range: Range<Line>, word: u64) -> (Line, u16) {
        let line = range.start + (word / self.words) as Line;
        (line, (word % self.words) as u16)
    }
}

/// Sums of prices by customer.
type Sums = BTreeMap<u64, u64>;

/// Adds the price of an order to the sum of its customer.
fn add_order(sums: &mut Sums, order: Order) {
    let sum = sums.entry(order.customer).or_default();
    *sum = sum.wrapping_add(order.price);
}

/// Next step of the thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Starts the time measurement of the appended rows.
    StartAppend,
    /// Writes this word of the base table.
    Append(u64),
    /// Writes the number of rows in front of a base table in the host's memory.
    WriteRows,
    /// Waits until the rows are written.
    Fence,
    /// Ends the time measurement of the appended rows.
    EndAppend,
    /// Starts the time measurement of the synchronisation.
    StartSync,
    /// Loads a synchronisation address.
    LoadSync,
    /// Stores the number of sums, and ends the time measurement of the synchronisation.
    EndSync,
    /// Starts the time measurement of the view's read.
    StartRead,
    /// Loads this word of the view; the preceding word is in `result`.
    ReadView(u64),
    /// Counts the rows of the transaction.
    CountRows,
}

/// The thread that appends rows and reads the view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Client {
    view: View,
    layout: Layout,
    phase: Phase,
    /// Completed transactions.
    completed: u64,
    /// Expected sums over the rows of the base table, computed by the thread.
    sums: Sums,
    /// The view as last read.
    last_view: Vec<u64>,
    /// Number of sums reported by the device.
    reported_groups: u64,
    /// Transactions after which the view was wrong.
    mismatches: u64,
}

impl Client {
    /// Returns the number of rows of the base table after the given number of transactions.
    fn rows(&self, transactions: u64) -> u64 {
        self.view.initial_rows() as u64 + self.view.updates * transactions
    }

    /// Compares the view that was read with the expected sums.
    fn check_view(&mut self) {
        let is_correct = self.last_view.iter().eq(self.sums.values());
        self.mismatches += u64::from(!is_correct);
        self.completed += 1;
    }
}

impl Thread for Client {
    /// For each transaction: appends rows to the table, loads a line that the device answers once the view is current,
    /// reads the view, and checks it.
    fn step(&mut self, result: u64) -> Step {
        let (next, step) = match self.phase {
            Phase::StartAppend if self.completed == self.view.transactions => return Step::Stop,
            Phase::StartAppend => (Phase::Append(2 * self.rows(self.completed)), Step::Begin),
            Phase::Append(word) if word == 2 * self.rows(self.completed + 1) => {
                self.phase = match self.view.in_host {
                    true => Phase::WriteRows,
                    false => Phase::Fence,
                };
                return self.step(0);
            }
            Phase::Append(word_index) => {
                let order = self.view.orders[(word_index / 2) as usize];
                if word_index % 2 == 1 {
                    add_order(&mut self.sums, order);
                }
                let (line, word) = self
                    .layout
                    .line_and_word(self.layout.base_table(), word_index);
                let value = [order.customer, order.price][(word_index % 2) as usize];
                let step = match self.view.in_host {
                    true => Step::StoreHost {
                        word: self.layout.host_word(word_index),
                        value,
                    },
                    false => Step::Store { line, word, value },
                };
                (Phase::Append(word_index + 1), step)
            }
            Phase::WriteRows => {
                let value = self.rows(self.completed + 1);
                (Phase::Fence, Step::StoreHost { word: 0, value })
            }
            Phase::Fence => (Phase::EndAppend, Step::Fence),
            Phase::EndAppend => (Phase::StartSync, Step::End { name: "append" }),
            Phase::StartSync => (Phase::LoadSync, Step::Begin),
            Phase::LoadSync => {
                let line = (self.completed % u64::from(SYNC_LINES)) as Line;
                (Phase::EndSync, Step::Load { line, word: 0 })
            }
            Phase::EndSync => {
                self.reported_groups = result;
                self.last_view.clear();
                // The device writes the initial rows and computes their view before its first response.
                let name = match self.completed {
                    0 => "first response",
                    _ => "response",
                };
                (Phase::StartRead, Step::End { name })
            }
            Phase::StartRead => (Phase::ReadView(0), Step::Begin),
            Phase::ReadView(word_index) => {
                if word_index > 0 {
                    self.last_view.push(result);
                }
                // Limits a wrong count from the device to the size of the view.
                if word_index >= self.reported_groups.min(self.layout.groups) {
                    self.check_view();
                    self.phase = Phase::CountRows;
                    return Step::End { name: "view read" };
                }
                let (line, word) = self
                    .layout
                    .line_and_word(self.layout.view_table(), word_index);
                (Phase::ReadView(word_index + 1), Step::Load { line, word })
            }
            Phase::CountRows => {
                let (name, by) = ("rows appended", self.view.updates);
                (Phase::StartAppend, Step::Count { name, by })
            }
        };
        self.phase = next;
        step
    }
}

impl Scenario for View {
    type Application = Maintainer;
    type Thread = Client;

    fn lines(&self) -> Line {
        self.layout().view_table().end
    }

    fn words(&self) -> u64 {
        self.words
    }

    fn terminates(&self) -> bool {
        true
    }

    fn host_words(&self) -> u64 {
        match self.in_host {
            true => self.words + 2 * self.orders.len() as u64,
            false => 0,
        }
    }

    fn requested_operations(&self) -> Vec<(Operation, bool)> {
        // The device reads appended rows without a lock, and locks lines of the view while it writes them.
        match self.updates == 0 || self.transactions == 0 {
            true => Vec::new(),
            false => vec![
                (Operation::CleanInvalidate, false),
                (Operation::CleanInvalidate, true),
            ],
        }
    }

    fn application(&self) -> Maintainer {
        Maintainer::new(self)
    }

    fn threads(&self) -> Vec<Client> {
        let mut sums = Sums::new();
        for &order in &self.orders[..self.initial_rows()] {
            add_order(&mut sums, order);
        }
        vec![Client {
            layout: self.layout(),
            view: self.clone(),
            phase: Phase::StartAppend,
            completed: 0,
            sums,
            last_view: Vec::new(),
            reported_groups: 0,
            mismatches: 0,
        }]
    }

    /// Checks the view after each transaction against the rows appended so far.
    fn verify(
        &self,
        application: &Maintainer,
        threads: &[Client],
        _contents: &dyn Contents,
    ) -> Result<(), String> {
        for thread in threads {
            if thread.mismatches > 0 {
                let (mismatches, completed) = (thread.mismatches, thread.completed);
                return Err(format!(
                    "the view was wrong after {mismatches} of {completed} transactions"
                ));
            }
            let (device_rows, rows) = (application.rows(), thread.rows(thread.completed));
            if device_rows < rows {
                return Err(format!(
                    "the device has processed {device_rows} of {rows} rows"
                ));
            }
        }
        Ok(())
    }

    /// Returns the rows of the base table and the view as last read.
    fn tables(&self, threads: &[Client]) -> Vec<Table> {
        let orders = |thread: &Client| {
            let rows = &self.orders[..thread.rows(thread.completed) as usize];
            rows.iter()
                .map(|row| vec![row.customer, row.price])
                .collect()
        };
        let tables = threads.iter().flat_map(|thread| {
            let view = thread.last_view.iter().map(|&sum| vec![sum]).collect();
            [("orders", orders(thread)), ("view", view)]
        });
        tables.map(|(name, rows)| Table { name, rows }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{orders, Order, ROWS};

    /// The benchmark specifies ten orders per customer on average, and that a third of the customers have no orders.
    #[test]
    fn order_counts_match_the_benchmark() {
        let orders = orders(10);
        assert_eq!(orders.len() as u64, 10 * ROWS);
        assert!(orders
            .iter()
            .all(|order| (1..=1500).contains(&order.customer)));
        assert!(orders
            .iter()
            .all(|order| order.customer % 3 != 0 && order.price > 0));
        // First row of ORDERS at this scale.
        let first = Order {
            customer: 370,
            price: 17_279_949,
        };
        assert_eq!(orders[0], first);
    }
}
