//! A table of record locks that transactions of the CPU and the device take: in coherent memory, or at the device by
//! messages.
//!
//! In coherent memory, a record's lock is one word in a line of its own: 0, or the mark of the holder.
//! A thread takes the lock by an atomic compare-and-swap. The device takes it by a locking clean-invalidate, a read, a
//! write and an unlock; read and write access the line, or the word in one memory operation.
//! With messages, the device owns the table. A thread writes a register to request or release a lock, and polls a word
//! of its own memory, into which the device writes the grant.
//! A table in the CPU's memory is cached by the device: its engines take locks as threads do.
//! The holder that releases a lock checks that the lock is still its own.

use crate::interface::{
    Actions, Application, Contents, Event, Line, Operation, Placement, Scenario, Step, Thread,
    Time, Update,
};
use std::collections::{BTreeMap, VecDeque};

/// Parameters of the lock table and of the transactions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LockTable {
    /// Number of records, each with one lock.
    pub records: Line,
    /// Number of threads, each with one transaction at a time.
    pub threads: u32,
    /// Concurrent transactions of the device.
    pub device: u32,
    /// Time for which a transaction holds its lock, in picoseconds.
    pub hold: Time,
    /// Delay after which the device retries a lock that a thread holds, in picoseconds.
    pub pause: Time,
    /// Transactions per thread and per transaction slot of the device; unlimited if `None`.
    pub transactions: Option<u64>,
    /// True if threads access the table by messages.
    pub messages: bool,
    /// True if the table is in the CPU's memory and the device caches its lines.
    pub cached: bool,
    /// True if the device updates a lock's word in one memory operation; otherwise it reads and writes the line.
    pub words: bool,
}

impl LockTable {
    /// Returns the record that a transaction locks.
    fn record(&self, client: u32, transaction: u64) -> Line {
        // A mixing function (SplitMix64), so that no two clients walk the table in step.
        let mut mixed = (u64::from(client) << 40 | transaction).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % u64::from(self.records)) as Line
    }
}

/// Returns the value of a lock's word while client `client` holds the lock.
fn mark(client: u32) -> u64 {
    u64::from(client) + 1
}

impl LockTable {
    /// Returns true if `word` marks no holder. In the CPU's memory the table is not cleared, and an initial value
    /// matches no mark.
    fn is_free(&self, word: u64) -> bool {
        !(1..=mark(self.threads + self.device - 1)).contains(&word)
    }
}

/// A client that takes locks at the device: a transaction slot of the device, or a thread that sends messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Client {
    /// Record of the current transaction.
    record: Line,
    /// True from the write of the client's mark to the write of its release.
    holds: bool,
    /// Transactions started.
    started: u64,
    /// Record that a thread requests while its previous release is still being written.
    next: Option<Line>,
}

/// The device. Clients are numbered: threads first, then the device's transaction slots.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LockDevice {
    table: LockTable,
    /// State of each client.
    clients: Vec<Client>,
    /// Clients queued for each record at the device; the first one is taking, holding or releasing the lock.
    queues: BTreeMap<Line, VecDeque<u32>>,
    /// Number of lines not yet cleared.
    uncleared: Line,
    /// Lines whose reads by the CPU wait for the clearing.
    deferred_reads: Vec<Line>,
    /// 64-bit words per line.
    words: usize,
    /// True once no transaction may start.
    stopped: bool,
    /// Number of released locks that were not the client's own.
    mismatches: u64,
}

/// Tag of fetches for the CPU; all other tags are client numbers.
const CPU_READ: u32 = u32::MAX;

/// Register value that releases the thread's lock.
const RELEASE_REQUEST: u64 = 0;
/// Register value that requests the lock of record 0; that of record R is this value plus R.
const LOCK_REQUEST: u64 = 1;

impl LockDevice {
    /// Returns the tag of a line stored for the CPU, or cleared.
    fn tag(&self, line: Line) -> u32 {
        self.clients.len() as u32 + line
    }

    /// True if a client is a thread of the CPU.
    fn is_thread(&self, client: u32) -> bool {
        client < self.table.threads
    }

    /// Starts the next transaction of one of the device's slots.
    fn begin(&mut self, client: u32, actions: &mut Actions) {
        let transaction = self.clients[client as usize].started;
        if self.stopped || self.table.transactions == Some(transaction) {
            return;
        }
        self.clients[client as usize].started += 1;
        self.clients[client as usize].record = self.table.record(client, transaction);
        actions.begin(client);
        self.enqueue_client(client, actions);
    }

    /// Queues a client for its record, and serves it if it is the first.
    fn enqueue_client(&mut self, client: u32, actions: &mut Actions) {
        let record = self.clients[client as usize].record;
        let queue = self.queues.entry(record).or_default();
        queue.push_back(client);
        if queue.len() == 1 {
            self.serve_client(record, client, actions);
        }
    }

    /// Starts to take or release the lock for the first client of the queue.
    fn serve_client(&mut self, record: Line, client: u32, actions: &mut Actions) {
        match self.table.messages {
            true => self.access_lock_word(client, actions),
            false => actions.local(record, Operation::CleanInvalidate, true),
        }
    }

    /// Accesses the word of a client's lock, for which the client has exclusive access.
    fn access_lock_word(&mut self, client: u32, actions: &mut Actions) {
        let Client { record, holds, .. } = self.clients[client as usize];
        let (old, new) = (0, mark(client));
        match (self.table.words, holds) {
            (false, _) => actions.fetch(client, record, 1),
            (true, false) => {
                actions.update_word(client, record, 0, Update::CompareSwap { old, new });
            }
            (true, true) => actions.update_word(client, record, 0, Update::Swap(0)),
        }
    }

    /// Removes the first client of the queue and starts the next one.
    fn dequeue_client(&mut self, record: Line, actions: &mut Actions) {
        let next = self.queues.get_mut(&record).and_then(|queue| {
            queue.pop_front();
            queue.front().copied()
        });
        match next {
            Some(next) => self.serve_client(record, next, actions),
            None => drop(self.queues.remove(&record)),
        }
    }

    /// Releases the home's lock of a line; with messages there is none.
    fn unlock(&self, record: Line, actions: &mut Actions) {
        if !self.table.messages {
            actions.unlock(record);
        }
    }

    /// Evaluates the word of a client's lock. Returns its new value, or `None` if another client holds the lock and
    /// this one must wait.
    fn check_word(&mut self, client: u32, word: u64, actions: &mut Actions) -> Option<u64> {
        let Client { record, holds, .. } = self.clients[client as usize];
        match (holds, word) {
            (false, 0) => Some(mark(client)),
            (false, _) => {
                // A thread holds the lock.
                actions.count("device waits", 1);
                self.unlock(record, actions);
                actions.wake(client, self.table.pause);
                None
            }
            (true, owner) => {
                self.mismatches += u64::from(owner != mark(client));
                Some(0)
            }
        }
    }

    /// Handles the previous value of a lock's word after an atomic update in memory.
    fn handle_updated_word(&mut self, client: u32, word: u64, actions: &mut Actions) {
        if self.check_word(client, word, actions).is_some() {
            self.handle_word_write(client, actions);
        }
    }

    /// Handles the completed write of a client's lock word.
    fn handle_word_write(&mut self, client: u32, actions: &mut Actions) {
        let is_thread = self.is_thread(client);
        let state = &mut self.clients[client as usize];
        let record = state.record;
        state.holds = !state.holds;
        let (holds, started) = (state.holds, state.started);
        self.unlock(record, actions);
        match (holds, is_thread) {
            (true, true) => actions.host_store(client, [started].into()),
            (true, false) => {
                actions.end(client, "device lock");
                actions.wake(client, self.table.hold);
            }
            (false, _) => {
                self.dequeue_client(record, actions);
                if !is_thread {
                    actions.count("device locks", 1);
                    self.begin(client, actions);
                } else if let Some(record) = self.clients[client as usize].next.take() {
                    self.queue_thread(client, record, actions);
                }
            }
        }
    }

    /// Handles the end of a slot's hold time or of its retry delay.
    fn handle_timer(&mut self, client: u32, actions: &mut Actions) {
        let Client { record, holds, .. } = self.clients[client as usize];
        match self.stopped && !holds {
            true => self.dequeue_client(record, actions),
            false => self.serve_client(record, client, actions),
        }
    }

    /// Handles the clearing of a line. Once all lines are clear, the pending reads and the transactions start.
    fn handle_cleared_line(&mut self, actions: &mut Actions) {
        self.uncleared -= 1;
        if self.uncleared > 0 {
            return;
        }
        for line in std::mem::take(&mut self.deferred_reads) {
            actions.fetch(CPU_READ, line, 1);
        }
        for client in self.table.threads..self.clients.len() as u32 {
            self.begin(client, actions);
        }
        // Requests that arrived earlier now find a cleared table.
        for (record, queue) in self.queues.clone() {
            match queue.front() {
                Some(&client) if self.is_thread(client) => {
                    self.serve_client(record, client, actions)
                }
                _ => {}
            }
        }
    }

    /// Handles a thread's message: a request for a record's lock, or a release.
    fn handle_message(&mut self, client: u32, message: u64, actions: &mut Actions) {
        if !self.is_thread(client) {
            return;
        }
        let Client { record, holds, .. } = self.clients[client as usize];
        match message.checked_sub(LOCK_REQUEST) {
            None if holds => self.serve_client(record, client, actions),
            None => {}
            Some(requested) => match requested as Line % self.table.records {
                requested if holds => self.clients[client as usize].next = Some(requested),
                requested => self.queue_thread(client, requested, actions),
            },
        }
    }

    /// Queues a thread for a lock.
    fn queue_thread(&mut self, client: u32, record: Line, actions: &mut Actions) {
        let state = &mut self.clients[client as usize];
        state.record = record;
        state.started += 1;
        match self.uncleared {
            0 => self.enqueue_client(client, actions),
            _ => self.queues.entry(record).or_default().push_back(client),
        }
    }
}

impl Application for LockDevice {
    fn name(&self) -> &str {
        "lock table"
    }

    fn placement(&self) -> Placement {
        match self.table.cached {
            true => Placement::Observer,
            false => Placement::MemoryPath(0..self.table.records),
        }
    }

    /// Clears the records at the start, and defers reads until then. Serves reads and writes of the CPU, and the lock
    /// operations of its own clients and of messages.
    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match event {
            // With a caching device, its engines do all the work.
            _ if self.table.cached => {}
            Event::Start { words } => {
                self.words = words.into();
                for line in 0..self.table.records {
                    actions.store(self.tag(line), line, vec![0; self.words].into());
                }
            }
            Event::Read { line, .. } if self.uncleared > 0 => self.deferred_reads.push(line),
            Event::Read { line, .. } => actions.fetch(CPU_READ, line, 1),
            Event::Write { line, words, .. } => actions.store(self.tag(line), line, words),
            Event::FetchCompletion {
                tag,
                line,
                mut words,
            } => match tag {
                CPU_READ => actions.answer(line, words),
                client => {
                    if let Some(word) = self.check_word(client, words[0], actions) {
                        words[0] = word;
                        actions.store(client, line, words);
                    }
                }
            },
            Event::ReadCompletion { tag, words } => {
                self.handle_updated_word(tag, words[0], actions)
            }
            Event::StoreCompletion { tag } => match tag.checked_sub(self.clients.len() as u32) {
                None => self.handle_word_write(tag, actions),
                Some(_) if self.uncleared > 0 => self.handle_cleared_line(actions),
                Some(line) => actions.accept(line),
            },
            Event::LocalCompletion { line, .. } => {
                let serving = self.queues.get(&line).and_then(|queue| queue.front());
                if let Some(&client) = serving {
                    self.access_lock_word(client, actions);
                }
            }
            Event::Timer { tag } => self.handle_timer(tag, actions),
            Event::RegisterWrite { register, value } => {
                self.handle_message(register, value, actions);
            }
            Event::Stop => self.stopped = true,
            _ => {}
        }
    }
}

/// Next step of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Starts a transaction.
    StartTransaction,
    /// Requests the lock.
    TryLock,
    /// Checks the result of the attempt to take the lock.
    CheckAttempt,
    /// Polls the lock.
    Poll,
    /// Checks the polled word.
    CheckPoll,
    /// Holds the lock for the hold time.
    Hold,
    /// Releases the lock.
    Release,
    /// Checks that the released lock was the thread's own.
    CheckRelease,
}

/// A thread that runs one transaction after the other.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LockThread {
    table: LockTable,
    /// Index of the thread, which is also its client number; engines of the device follow the CPU's threads.
    number: u32,
    /// Transactions started.
    started: u64,
    phase: Phase,
    /// Latest value of the word while the lock was free.
    free_value: u64,
    /// Number of released locks that were not the thread's own.
    mismatches: u64,
}

impl LockThread {
    /// True if the thread is an engine of the device.
    fn is_engine(&self) -> bool {
        self.number >= self.table.threads
    }

    /// Returns the record of the current transaction.
    fn record(&self) -> Line {
        self.table.record(self.number, self.started - 1)
    }

    /// Requests the lock of the thread's record, or releases it.
    fn request(&self, old: u64, new: u64) -> Step {
        let line = self.record();
        match self.table.messages {
            true => Step::WriteRegister {
                register: self.number,
                value: match new {
                    0 => RELEASE_REQUEST,
                    _ => LOCK_REQUEST + u64::from(line),
                },
            },
            false => Step::Update {
                line,
                word: 0,
                update: Update::CompareSwap { old, new },
            },
        }
    }

    /// Continues in another phase.
    fn continue_in(&mut self, phase: Phase) -> Step {
        self.phase = phase;
        self.step(0)
    }

    /// Loads the word that shows whether the lock is free or was granted.
    fn load_value(&self) -> Step {
        match self.table.messages {
            true => Step::LoadHost { word: self.number },
            false => Step::Load {
                line: self.record(),
                word: 0,
            },
        }
    }
}

impl Thread for LockThread {
    /// Takes a lock by compare-and-swap or by a message, holds it, and releases it. Polls while the lock is not free.
    fn step(&mut self, result: u64) -> Step {
        let (messages, mark) = (self.table.messages, mark(self.number));
        let (lock, locks) = match self.is_engine() {
            true => ("device lock", "device locks"),
            false => ("host lock", "host locks"),
        };
        let lock_taken = (Phase::Hold, Step::End { name: lock });
        let (next, step) = match self.phase {
            Phase::StartTransaction if self.table.transactions == Some(self.started) => {
                return Step::Stop
            }
            Phase::StartTransaction => {
                self.started += 1;
                self.free_value = 0;
                (Phase::TryLock, Step::Begin)
            }
            Phase::TryLock if messages => (Phase::Poll, self.request(0, mark)),
            Phase::TryLock => (Phase::CheckAttempt, self.request(self.free_value, mark)),
            Phase::Poll => (Phase::CheckPoll, self.load_value()),
            // `result` is the number of the granted transaction with messages, otherwise the previous or present value
            // of the lock's word.
            Phase::CheckPoll if messages && result == self.started => lock_taken,
            Phase::CheckAttempt if result == self.free_value => lock_taken,
            Phase::CheckPoll if !messages && self.table.is_free(result) => {
                self.free_value = result;
                return self.continue_in(Phase::TryLock);
            }
            Phase::CheckAttempt | Phase::CheckPoll => return self.continue_in(Phase::Poll),
            Phase::Hold => (Phase::Release, Step::Work(self.table.hold)),
            Phase::Release => (Phase::CheckRelease, self.request(mark, 0)),
            Phase::CheckRelease => {
                self.mismatches += u64::from(!messages && result != mark);
                let (name, by) = (locks, 1);
                (Phase::StartTransaction, Step::Count { name, by })
            }
        };
        self.phase = next;
        step
    }
}

impl Scenario for LockTable {
    type Application = LockDevice;
    type Thread = LockThread;

    fn lines(&self) -> Line {
        self.records
    }

    fn terminates(&self) -> bool {
        self.transactions.is_some()
    }

    fn requested_operations(&self) -> Vec<(Operation, bool)> {
        // With messages, the device serves lock requests in memory and needs no local operation.
        let needs_local_operation = !self.messages && !self.cached && self.device > 0;
        Vec::from_iter(needs_local_operation.then_some((Operation::CleanInvalidate, true)))
    }

    fn engines(&self) -> u32 {
        match self.cached {
            true => self.device,
            false => 0,
        }
    }

    fn application(&self) -> LockDevice {
        let client = Client {
            record: 0,
            holds: false,
            started: 0,
            next: None,
        };
        LockDevice {
            clients: vec![client; (self.threads + self.device) as usize],
            table: self.clone(),
            queues: BTreeMap::new(),
            uncleared: self.records,
            deferred_reads: Vec::new(),
            words: 0,
            stopped: false,
            mismatches: 0,
        }
    }

    fn threads(&self) -> Vec<LockThread> {
        let threads = (0..self.threads + self.engines()).map(|number| LockThread {
            table: self.clone(),
            number,
            started: 0,
            phase: Phase::StartTransaction,
            free_value: 0,
            mismatches: 0,
        });
        threads.collect()
    }

    /// Checks that every released lock was still held by its releaser.
    fn verify(
        &self,
        application: &LockDevice,
        threads: &[LockThread],
        _contents: &dyn Contents,
    ) -> Result<(), String> {
        if application.mismatches > 0 {
            let mismatches = application.mismatches;
            return Err(format!(
                "{mismatches} locks of the device belonged to another owner when they were released"
            ));
        }
        match threads.iter().find(|thread| thread.mismatches > 0) {
            None => Ok(()),
            Some(LockThread { number, mismatches, .. }) => Err(format!(
                "{mismatches} locks of thread {number} belonged to another owner when they were released"
            )),
        }
    }
}
