//! Kernels: programs that all threads of a machine of several hosts run together, each an `async` function over shared
//! memory.
//!
//! A kernel awaits each access that returns a word or may block. Its threads are state machines like all others. A
//! thread records the results of its steps, so a copy is rebuilt by running the function again on the same results. Two
//! threads are equal if their recorded results are equal.
//!
//! Lines are interleaved among homes: line L belongs to home L modulo the number of homes, thread T to host T modulo
//! that number.

use crate::interface::{
    Actions, Application, Contents, Event, Line, Placement, Scenario, Step, Thread, Time, Update,
};
use std::cell::Cell;
use std::fmt::Debug;
use std::future::{poll_fn, Future};
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Words per line that kernels use.
pub const WORDS: u32 = 8;
/// Polling interval of a flag, in picoseconds.
const POLL_INTERVAL: Time = 10_000;
/// Upper half of every raised flag; initial memory contents are unlikely to match it.
const FLAG_TAG: u64 = 0xf1a6_0000_0000_0000;

/// Mixes a number into a pseudo-random word (SplitMix64), so that values are unlikely to coincide by accident.
pub fn mix64(number: u64) -> u64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 27
}

/// Location of a word in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WordAddress {
    /// Index of the line.
    line: Line,
    /// Index of the word within the line.
    word: u16,
}

/// Granularity of a store: one word, or all words of a line with the same value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Granularity {
    /// One word.
    Word,
    /// A line.
    Line,
}

impl Granularity {
    /// Returns the number of bytes per store.
    pub fn bytes(self) -> u32 {
        match self {
            Granularity::Word => 8,
            Granularity::Line => 8 * WORDS,
        }
    }

    /// Returns the number of lines that `values` values occupy.
    pub fn lines(self, values: u32) -> Line {
        match self {
            Granularity::Word => values.div_ceil(WORDS),
            Granularity::Line => values,
        }
    }
}

/// An array of values in the memory of one host.
#[derive(Clone, Copy, Debug)]
pub struct Array {
    /// Number of homes: consecutive lines of a host's memory are this many lines apart.
    homes: Line,
    /// First line.
    first: Line,
    /// Space of a value.
    granularity: Granularity,
}

impl Array {
    /// Creates an array that starts at line `first`, in the memory of that line's host, without allocation by a
    /// [`Memory`].
    pub fn starting_at(homes: Line, first: Line, granularity: Granularity) -> Array {
        Array {
            homes,
            first,
            granularity,
        }
    }

    /// Returns the location of a value; with [`Granularity::Line`], the first word of its line. An index beyond the
    /// array's length is not detected.
    pub fn at(self, number: u32) -> WordAddress {
        let (lines, word) = match self.granularity {
            Granularity::Word => (number / WORDS, number % WORDS),
            Granularity::Line => (number, 0),
        };
        let line = self.first + self.homes * lines;
        WordAddress {
            line,
            word: word as u16,
        }
    }
}

/// Allocator of the memory of all hosts.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Number of homes.
    homes: Line,
    /// Number of allocated lines of each host.
    used_lines: Vec<Line>,
}

impl Memory {
    /// Creates an allocator for `homes` hosts with no line allocated.
    pub fn new(homes: Line) -> Memory {
        let used_lines = vec![0; homes as usize];
        Memory { homes, used_lines }
    }

    /// Allocates an array of `values` values in a host's memory; `host` is taken modulo the number of homes.
    pub fn array(&mut self, host: Line, values: u32, granularity: Granularity) -> Array {
        let host = host % self.homes;
        let used_lines = &mut self.used_lines[host as usize];
        let first = self.homes * *used_lines + host;
        *used_lines += granularity.lines(values);
        Array::starting_at(self.homes, first, granularity)
    }

    /// Allocates a flag in a host's memory, in a line of its own.
    pub fn flag(&mut self, host: Line) -> WordAddress {
        self.array(host, 1, Granularity::Line).at(0)
    }

    /// Allocates one flag per thread for each of `to` hosts or threads, in that host's memory: `flags[to][from]`.
    pub fn flags(&mut self, to: u32, threads: u32) -> Vec<Vec<WordAddress>> {
        let host_flags = |to| (0..threads).map(|_| self.flag(to)).collect();
        (0..to).map(host_flags).collect()
    }

    /// Returns the number of lines up to the last allocated one, including unused lines between homes.
    pub fn lines(&self) -> Line {
        self.homes * self.used_lines.iter().max().copied().unwrap_or(0)
    }
}

/// Exchange between a kernel and its driver: the pending step, and the result of the last step.
#[derive(Default)]
struct StepPort {
    /// Step that the kernel has issued, until the driver takes it.
    step: Cell<Option<Step>>,
    /// Result of the last step, as in [`Thread::step`].
    result: Cell<u64>,
}

/// Handle by which a kernel issues its steps, as one thread.
#[derive(Clone)]
pub struct Core {
    /// Index of the thread.
    pub number: u32,
    /// Exchange with the thread's [`KernelThread`].
    port: Rc<StepPort>,
}

impl Core {
    /// Issues a step and returns its result. The first poll issues the step, the second one returns.
    async fn step(&self, step: Step) -> u64 {
        let mut is_issued = false;
        poll_fn(|_| match std::mem::replace(&mut is_issued, true) {
            true => Poll::Ready(self.port.result.get()),
            false => {
                self.port.step.set(Some(step));
                Poll::Pending
            }
        })
        .await
    }

    /// Loads a word.
    pub async fn load(&self, WordAddress { line, word }: WordAddress) -> u64 {
        self.step(Step::Load { line, word }).await
    }

    /// Loads one copy of a value. With [`Granularity::Line`], the copies fill a line, and `number` modulo the words per
    /// line selects one.
    pub(crate) async fn load_value(&self, array: Array, number: u32) -> u64 {
        let WordAddress { line, word } = array.at(number);
        let word = match array.granularity {
            Granularity::Word => word,
            Granularity::Line => (number % WORDS) as u16,
        };
        self.step(Step::Load { line, word }).await
    }

    /// Stores a value; with [`Granularity::Line`], in all words of its line.
    pub async fn store(&self, array: Array, number: u32, value: u64) {
        let WordAddress { line, word } = array.at(number);
        let step = match array.granularity {
            Granularity::Word => Step::Store { line, word, value },
            Granularity::Line => Step::StoreWords {
                line,
                word,
                words: WORDS as u16,
                value,
            },
        };
        self.step(step).await;
    }

    /// Updates a word atomically and returns its previous value. The update executes at the home if the protocol has
    /// rows for that, otherwise in a cached copy. Later accesses of the thread wait for it; earlier ones may be
    /// performed after it.
    pub async fn update(&self, WordAddress { line, word }: WordAddress, update: Update) -> u64 {
        self.step(Step::Update { line, word, update }).await
    }

    /// Adds to a word atomically and returns its previous value.
    pub async fn add(&self, address: WordAddress, by: u64) -> u64 {
        self.update(address, Update::Add(by)).await
    }

    /// Adds to a word atomically after all earlier accesses of the thread, and returns its previous value.
    pub async fn add_ordered(&self, address: WordAddress, by: u64) -> u64 {
        self.step(Step::Fence).await;
        self.add(address, by).await
    }

    /// Releases a flag with a count, after all earlier accesses of the thread.
    pub async fn release_flag(&self, WordAddress { line, word }: WordAddress, count: u32) {
        let value = FLAG_TAG | u64::from(count);
        self.step(Step::Release { line, word, value }).await;
    }

    /// Acquires a flag, polling until its count is at least `count`; later accesses of the thread wait.
    pub async fn acquire_flag(&self, WordAddress { line, word }: WordAddress, count: u32) {
        loop {
            let flag = self.step(Step::Acquire { line, word }).await;
            if flag & !0xffff_ffff == FLAG_TAG && flag as u32 >= count {
                return;
            }
            self.work(POLL_INTERVAL).await;
        }
    }

    /// Computes for `time` picoseconds.
    pub async fn work(&self, time: Time) {
        self.step(Step::Work(time)).await;
    }

    /// Starts the timed interval.
    pub async fn begin(&self) {
        self.step(Step::Begin).await;
    }

    /// Ends the timed interval with the label `name`.
    pub async fn end(&self, name: &'static str) {
        self.step(Step::End { name }).await;
    }
}

/// A thread's stores to other hosts, with a release after a fixed number of bytes.
///
/// A release within a round raises the flag of the host that is about to be written, with its present count.
/// [`Stream::release_flags`], at the end of a round, notifies every host that was written: all earlier stores are then
/// visible there.
pub struct Stream {
    /// Thread that stores.
    core: Core,
    /// Flags of this thread, one per destination.
    flags: Vec<WordAddress>,
    /// Number of completed rounds at each destination.
    counts: Vec<u32>,
    /// Bytes stored between two releases.
    release_bytes: u32,
    /// Bytes stored since the last release.
    bytes: u32,
}

impl Stream {
    /// Creates a stream with one flag per destination and `release_bytes` bytes between two releases.
    pub fn new(core: &Core, flags: Vec<WordAddress>, release_bytes: u32) -> Stream {
        let counts = vec![0; flags.len()];
        let core = core.clone();
        let bytes = 0;
        Stream {
            core,
            flags,
            counts,
            release_bytes,
            bytes,
        }
    }

    /// Stores a value for destination `to`, an index of the flags. The last release of a round is left to
    /// [`Stream::release_flags`].
    pub async fn store(&mut self, to: u32, array: Array, number: u32, value: u64) {
        if self.bytes >= self.release_bytes {
            self.bytes = 0;
            // The count of completed rounds is unchanged: a flag within a round reports nothing new.
            let flag = self.flags[to as usize];
            self.core.release_flag(flag, self.counts[to as usize]).await;
        }
        self.core.store(array, number, value).await;
        self.bytes += array.granularity.bytes();
    }

    /// Notifies the given destinations that the round is complete.
    pub async fn release_flags(&mut self, to: &[u32]) {
        for &to in to {
            let count = &mut self.counts[to as usize];
            *count += 1;
            self.core
                .release_flag(self.flags[to as usize], *count)
                .await;
        }
        self.bytes = 0;
    }
}

/// The first wrong value that a thread has found. The thread continues nevertheless, because others wait for it.
#[derive(Default)]
pub struct FirstMismatch(Option<String>);

impl FirstMismatch {
    /// Compares a value with the expected one and records the first mismatch.
    pub(crate) fn check_value(
        &mut self,
        actual: u64,
        expected: u64,
        describe: impl FnOnce() -> String,
    ) {
        if actual != expected && self.0.is_none() {
            self.0 = Some(format!(
                "{} is {actual:#x} instead of {expected:#x}",
                describe()
            ));
        }
    }

    /// Returns the recorded mismatch, if any, as an error.
    ///
    /// # Errors
    /// A sentence that describes the first mismatch.
    pub(crate) fn into_result(self) -> Result<(), String> {
        self.0.map_or(Ok(()), Err)
    }
}

/// A dissemination barrier of all threads: in round k a thread signals the thread at distance 2^k.
#[derive(Clone, Debug)]
pub struct Barrier {
    /// `flags[thread][round]`: flag that the thread waits for in a round of the dissemination.
    flags: Vec<Vec<WordAddress>>,
    /// Number of waits so far, which is the value that flags are raised to.
    rounds: u32,
}

impl Barrier {
    /// Allocates a barrier for `threads` threads.
    pub fn new(memory: &mut Memory, threads: u32) -> Barrier {
        let rounds = threads.next_power_of_two().trailing_zeros();
        let thread_flags = |to| (0..rounds).map(|_| memory.flag(to)).collect();
        let flags = (0..threads).map(thread_flags).collect();
        Barrier { flags, rounds: 0 }
    }

    /// Waits until all threads have arrived.
    pub async fn wait(&mut self, core: &Core) {
        self.rounds += 1;
        let threads = self.flags.len();
        let thread = core.number as usize;
        for round in 0..self.flags[thread].len() {
            let partner = (thread + (1 << round)) % threads;
            core.release_flag(self.flags[partner][round], self.rounds)
                .await;
            core.acquire_flag(self.flags[thread][round], self.rounds)
                .await;
        }
    }
}

/// A counting barrier: each thread increments one word atomically, and the last arrival signals all threads.
#[derive(Clone, Debug)]
pub struct CountingBarrier {
    /// Number of arrivals, summed over all waits.
    count: Array,
    /// Flag of each thread.
    flags: Vec<WordAddress>,
    /// Number of waits so far, which is the value that flags are raised to.
    rounds: u32,
}

impl CountingBarrier {
    /// Allocates a barrier for `threads` threads, with its counter in the memory of host 0.
    pub fn new(memory: &mut Memory, threads: u32) -> CountingBarrier {
        CountingBarrier {
            count: memory.array(0, 1, Granularity::Line),
            flags: (0..threads).map(|to| memory.flag(to)).collect(),
            rounds: 0,
        }
    }

    /// Clears the counter. One thread calls this before any thread waits.
    pub async fn begin(&self, core: &Core) {
        core.store(self.count, 0, 0).await;
    }

    /// Waits until all threads have arrived.
    pub async fn wait(&mut self, core: &Core) {
        self.rounds += 1;
        let threads = self.flags.len() as u64;
        let arrivals_before = core.add_ordered(self.count.at(0), 1).await;
        if arrivals_before + 1 == threads * u64::from(self.rounds) {
            for &flag in &self.flags {
                core.release_flag(flag, self.rounds).await;
            }
        }
        core.acquire_flag(self.flags[core.number as usize], self.rounds)
            .await;
    }
}

/// Numbers of hosts and threads of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hosts {
    /// Number of homes, one per host.
    pub homes: Line,
    /// Number of threads, assigned to the hosts in turn.
    pub threads: u32,
}

impl Hosts {
    /// Returns the host of a thread.
    pub fn host_of(self, thread: u32) -> u32 {
        thread % self.homes
    }

    /// Returns the number of hosts that have threads.
    pub fn used_count(self) -> u32 {
        self.threads.min(self.homes)
    }
}

/// A program that all threads run together. Each thread returns an error if its results are wrong.
pub trait Kernel: Clone + PartialEq + Eq + Hash + Debug + Send + Sync + 'static {
    /// Returns the numbers of hosts and threads.
    fn hosts(&self) -> Hosts;

    /// Returns the number of lines that the kernel uses, starting at line 0.
    fn lines(&self) -> Line;

    /// Runs the program of one thread, whose number is that of `core`. The same results of the steps must lead to the
    /// same further steps.
    ///
    /// # Errors
    /// A sentence that describes the first failure.
    fn run(self, core: Core) -> impl Future<Output = Result<(), String>> + 'static;

    /// Checks the final contents of memory, which `word` returns.
    ///
    /// # Errors
    /// A sentence that describes the first failure.
    fn check(&self, _word: &dyn Fn(WordAddress) -> u64) -> Result<(), String> {
        Ok(())
    }
}

/// Scenario of a kernel's threads, with nothing behind the home.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KernelScenario<K>(pub K);

/// State of one thread of a kernel.
pub struct KernelThread<K> {
    kernel: K,
    /// Index of the thread.
    number: u32,
    /// Exchange with the running function.
    port: Rc<StepPort>,
    /// Results of all steps so far, which determine the thread's state.
    results: Vec<u64>,
    /// The running function; not polled after its end.
    future: Pin<Box<dyn Future<Output = Result<(), String>>>>,
    /// Result of the function, once it has ended.
    outcome: Option<Result<(), String>>,
}

impl<K: Kernel> KernelThread<K> {
    /// Creates a thread before its first step.
    fn new(kernel: &K, number: u32) -> KernelThread<K> {
        let port = Rc::<StepPort>::default();
        let core = Core {
            number,
            port: Rc::clone(&port),
        };
        KernelThread {
            kernel: kernel.clone(),
            number,
            port,
            results: Vec::new(),
            future: Box::pin(kernel.clone().run(core)),
            outcome: None,
        }
    }
}

impl<K: Kernel> Thread for KernelThread<K> {
    fn step(&mut self, result: u64) -> Step {
        if self.outcome.is_some() {
            return Step::Stop;
        }
        self.results.push(result);
        self.port.result.set(result);
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(outcome) = self.future.as_mut().poll(&mut context) {
            self.outcome = Some(outcome);
        }
        self.port.step.take().unwrap_or(Step::Stop)
    }
}

impl<K: Kernel> Clone for KernelThread<K> {
    fn clone(&self) -> Self {
        let mut copy = KernelThread::new(&self.kernel, self.number);
        for &result in &self.results {
            copy.step(result);
        }
        copy
    }
}

impl<K: Kernel> PartialEq for KernelThread<K> {
    fn eq(&self, other: &Self) -> bool {
        let is_same_thread = self.kernel == other.kernel && self.number == other.number;
        is_same_thread && self.results == other.results
    }
}

impl<K: Kernel> Eq for KernelThread<K> {}

impl<K: Kernel> Hash for KernelThread<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
        self.results.hash(state);
    }
}

/// Empty application: nothing is behind the home.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NoApplication;

impl Application for NoApplication {
    fn name(&self) -> &str {
        "threads"
    }

    fn placement(&self) -> Placement {
        Placement::Observer
    }

    fn handle(&mut self, _event: Event, _actions: &mut Actions) {}
}

impl<K: Kernel> Scenario for KernelScenario<K> {
    type Application = NoApplication;
    type Thread = KernelThread<K>;

    fn lines(&self) -> Line {
        self.0.lines()
    }

    fn words(&self) -> u64 {
        WORDS.into()
    }

    fn terminates(&self) -> bool {
        true
    }

    fn is_threads_only(&self) -> bool {
        true
    }

    fn application(&self) -> NoApplication {
        NoApplication
    }

    fn threads(&self) -> Vec<KernelThread<K>> {
        let threads = 0..self.0.hosts().threads;
        threads
            .map(|number| KernelThread::new(&self.0, number))
            .collect()
    }

    fn verify(
        &self,
        _application: &NoApplication,
        threads: &[KernelThread<K>],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        for thread in threads {
            let number = thread.number;
            match &thread.outcome {
                None => return Err(format!("thread {number} has not ended")),
                Some(Err(reason)) => return Err(format!("thread {number}: {reason}")),
                Some(Ok(())) => {}
            }
        }
        self.0
            .check(&|WordAddress { line, word }| contents.word(line, word))
    }
}
