//! Gather: the device follows linked lists through the host's memory and returns the results through its own lines.
//!
//! A thread writes the nodes of its list, then loads a line of the device. The device follows the list from its head
//! and marks each node with the number of the query. It answers with a value that depends on all node values and on
//! their order. Both sides access the same words, and nodes of different threads share lines. As with remote calls, a
//! thread loads two lines in turn, and the device takes the other line back before it answers.

use crate::interface::{
    Actions, Application, Contents, Event, Line, Operation, Placement, Scenario, Step, Thread,
};

/// Parameters of the gather: one list per thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Gather {
    /// Number of threads.
    pub threads: u32,
    /// Nodes per list.
    pub nodes: u32,
    /// Queries per thread; unlimited if `None`.
    pub queries: Option<u64>,
    /// True if the device's cache keeps the lines that it accesses.
    pub cached: bool,
}

/// Words of a node: the index of the next node plus one (0 at the end), its value, and the query that marked it.
const NODE_WORDS: u32 = 4;
/// Index of the value within a node.
const VALUE_WORD: u32 = 1;
/// Index of the mark within a node.
const MARK_WORD: u32 = 2;

impl Gather {
    /// Returns the first word of a thread's node. Nodes of all threads are interleaved.
    fn node(&self, thread: u32, node: u32) -> u32 {
        NODE_WORDS * (node * self.threads + thread)
    }

    /// Returns the word that holds the head of a thread's list.
    fn head(&self, thread: u32) -> u32 {
        NODE_WORDS * (self.nodes * self.threads + thread)
    }

    /// Returns the value of a node in a query.
    fn value(&self, thread: u32, query: u64, node: u32) -> u64 {
        (query << 32 | u64::from(thread) << 16).wrapping_add(node.into())
    }

    /// Returns the first node of the list in a query; the others follow in index order, wrapping around.
    fn first_node(&self, query: u64) -> u32 {
        (query % u64::from(self.nodes)) as u32
    }

    /// Returns the result of a query over all nodes, in list order.
    fn expected_answer(&self, thread: u32, query: u64) -> u64 {
        let first = self.first_node(query);
        let nodes = (first..self.nodes).chain(0..first);
        nodes.fold(0, |accumulated, node| {
            fold_value(accumulated, self.value(thread, query, node))
        })
    }
}

/// Combines the result so far with the next value. The operation is not commutative, so the order of nodes matters.
fn fold_value(accumulated: u64, value: u64) -> u64 {
    accumulated.rotate_left(5) ^ value
}

/// State of a thread's query at the device.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Query {
    /// Number of the query, from 1.
    number: u64,
    /// Line that the thread loads.
    line: Line,
    /// Line that the CPU may still hold; `None` once it has been taken back.
    cpu_line: Option<Line>,
    /// The node being read; `None` while the head is read.
    node: Option<u32>,
    /// Result over the nodes read so far.
    accumulated: u64,
    /// True once the end of the list has been read, until the query is answered.
    list_end_reached: bool,
    /// Number of marks that are not yet performed.
    marks: u32,
}

/// The device, which follows the lists.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GatherDevice {
    gather: Gather,
    /// 64-bit words per line.
    words: usize,
    /// Current query of each thread.
    queries: Vec<Query>,
}

impl GatherDevice {
    /// Starts the next query of a thread, which has loaded one of its two lines.
    fn start_query(&mut self, line: Line, actions: &mut Actions) {
        let thread = line / 2;
        let query = &mut self.queries[thread as usize];
        query.number += 1;
        query.line = line;
        (query.node, query.accumulated, query.list_end_reached) = (None, 0, false);
        if let Some(cpu_line) = query.cpu_line {
            actions.local(cpu_line, Operation::CleanInvalidate, false);
        }
        let Gather { cached, .. } = self.gather;
        actions.coherent_load(thread, self.gather.head(thread), 1, cached);
    }

    /// Handles the head of a list, or a node, that has been read.
    fn handle_words(&mut self, thread: u32, words: &[u64], actions: &mut Actions) {
        let gather = &self.gather;
        let query = &mut self.queries[thread as usize];
        if let Some(node) = query.node {
            query.accumulated = fold_value(query.accumulated, words[VALUE_WORD as usize]);
            query.marks += 1;
            let (mark, number) = (gather.node(thread, node) + MARK_WORD, query.number);
            actions.coherent_store(thread, mark, [number].into(), gather.cached);
            actions.count("nodes followed", 1);
        }
        match words[0].checked_sub(1) {
            Some(next) => {
                let next = next as u32 % gather.nodes;
                query.node = Some(next);
                let first = gather.node(thread, next);
                actions.coherent_load(thread, first, VALUE_WORD + 1, gather.cached);
            }
            None => {
                query.list_end_reached = true;
                self.answer_if_ready(thread, actions);
            }
        }
    }

    /// Answers the query once its list has been followed, its marks are performed and the other line has been taken
    /// back.
    fn answer_if_ready(&mut self, thread: u32, actions: &mut Actions) {
        let query = &mut self.queries[thread as usize];
        if !query.list_end_reached || query.marks > 0 || query.cpu_line.is_some() {
            return;
        }
        let mut words = vec![0; self.words];
        words[0] = query.accumulated;
        query.list_end_reached = false;
        query.cpu_line = Some(query.line);
        actions.answer(query.line, words.into());
    }
}

impl Application for GatherDevice {
    fn name(&self) -> &str {
        "gather"
    }

    fn placement(&self) -> Placement {
        Placement::MemoryPath(0..2 * self.gather.threads)
    }

    /// Starts a query at a read of its line; answers once all nodes are visited, marked, and the CPU has lost the
    /// other line.
    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            Event::Start { words } => self.words = words.into(),
            Event::Read { line, .. } => self.start_query(line, actions),
            Event::Write { line, .. } => actions.accept(line),
            Event::CoherentLoadCompletion { tag, words } => self.handle_words(tag, &words, actions),
            Event::CoherentStoreCompletion { tag } => {
                self.queries[tag as usize].marks -= 1;
                self.answer_if_ready(tag, actions);
            }
            Event::LocalCompletion { line, .. } => {
                self.queries[line as usize / 2].cpu_line = None;
                self.answer_if_ready(line / 2, actions);
            }
            _ => {}
        }
    }
}

/// Next step of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Starts a query.
    StartQuery,
    /// Writes the link of this node.
    WriteLink(u32),
    /// Writes the value of this node.
    WriteValue(u32),
    /// Writes the head of the list.
    WriteHead,
    /// Loads a line of the device, which is the query.
    LoadAnswer,
    /// Checks the answer.
    CheckAnswer,
    /// Reads the mark of this node and checks the mark of the preceding one.
    CheckMark(u32),
}

/// A thread that issues queries repeatedly.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct QueryThread {
    gather: Gather,
    /// Index of the thread.
    thread: u32,
    phase: Phase,
    /// Queries started.
    query: u64,
    /// Queries completed.
    completed: u64,
    /// Number of wrong answers and marks.
    mismatches: u64,
}

impl QueryThread {
    /// Returns the index of the node after `node` in the list, plus one; 0 after the last.
    fn next_link(&self, node: u32) -> u64 {
        let next = (node + 1) % self.gather.nodes;
        match next == self.gather.first_node(self.query) {
            true => 0,
            false => u64::from(next) + 1,
        }
    }
}

impl Thread for QueryThread {
    /// For each query: links the nodes of the list, loads the answer, which the device gives after it has visited
    /// them, and checks the answer and the marks in the nodes. `result` is the word that the last step loaded.
    fn step(&mut self, result: u64) -> Step {
        let (thread, query) = (self.thread, self.query);
        let store = |word, value| Step::StoreHost { word, value };
        let (phase, step) = match self.phase {
            Phase::StartQuery if self.gather.queries == Some(query) => return Step::Stop,
            Phase::StartQuery => {
                self.query += 1;
                (Phase::WriteLink(0), Step::Begin)
            }
            Phase::WriteLink(node) => {
                let word = self.gather.node(thread, node);
                (Phase::WriteValue(node), store(word, self.next_link(node)))
            }
            Phase::WriteValue(node) => {
                let word = self.gather.node(thread, node) + VALUE_WORD;
                let next = match node + 1 < self.gather.nodes {
                    true => Phase::WriteLink(node + 1),
                    false => Phase::WriteHead,
                };
                (next, store(word, self.gather.value(thread, query, node)))
            }
            Phase::WriteHead => {
                let first = u64::from(self.gather.first_node(query)) + 1;
                (Phase::LoadAnswer, store(self.gather.head(thread), first))
            }
            Phase::LoadAnswer => {
                let line = 2 * thread + (query % 2) as Line;
                (Phase::CheckAnswer, Step::Load { line, word: 0 })
            }
            Phase::CheckAnswer => {
                self.mismatches += u64::from(result != self.gather.expected_answer(thread, query));
                (Phase::CheckMark(0), Step::End { name: "query" })
            }
            Phase::CheckMark(node) => {
                self.mismatches += u64::from(node > 0 && result != query);
                if node == self.gather.nodes {
                    self.completed += 1;
                    self.phase = Phase::StartQuery;
                    let (name, by) = ("queries", 1);
                    return Step::Count { name, by };
                }
                let word = self.gather.node(thread, node) + MARK_WORD;
                (Phase::CheckMark(node + 1), Step::LoadHost { word })
            }
        };
        self.phase = phase;
        step
    }
}

impl Scenario for Gather {
    type Application = GatherDevice;
    type Thread = QueryThread;

    fn lines(&self) -> Line {
        2 * self.threads
    }

    fn terminates(&self) -> bool {
        self.queries.is_some()
    }

    fn requested_operations(&self) -> Vec<(Operation, bool)> {
        vec![(Operation::CleanInvalidate, false)]
    }

    fn host_words(&self) -> u64 {
        u64::from(NODE_WORDS) * u64::from(self.threads) * (u64::from(self.nodes) + 1)
    }

    fn application(&self) -> GatherDevice {
        GatherDevice {
            gather: self.clone(),
            words: 0,
            queries: vec![Query::default(); self.threads as usize],
        }
    }

    fn threads(&self) -> Vec<QueryThread> {
        let threads = (0..self.threads).map(|thread| QueryThread {
            gather: self.clone(),
            thread,
            phase: Phase::StartQuery,
            query: 0,
            completed: 0,
            mismatches: 0,
        });
        threads.collect()
    }

    /// Checks that every query returned the value of its list and marked all nodes.
    fn verify(
        &self,
        _application: &GatherDevice,
        threads: &[QueryThread],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        for query_thread in threads {
            let QueryThread {
                thread,
                mismatches,
                query,
                completed,
                ..
            } = *query_thread;
            if mismatches > 0 {
                return Err(format!(
                    "{mismatches} answers and marks of thread {thread} were wrong"
                ));
            }
            // The last query may still be in progress.
            for node in (0..self.nodes).filter(|_| query == completed) {
                let mark = contents.host(self.node(thread, node) + MARK_WORD);
                if mark != Some(completed) {
                    return Err(format!(
                        "node {node} of thread {thread} is marked {mark:?} after query {completed}"
                    ));
                }
            }
        }
        Ok(())
    }
}
