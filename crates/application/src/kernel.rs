//! Kernels: what each thread of a machine of several hosts does, written as an `async` function over memory that all share.
//!
//! A kernel awaits each access that gives a word, and each that may have to wait. Its threads are state machines like all
//! others: a thread keeps what its accesses have given, so that a copy of it is the same function, brought to the same
//! place by the same words, and two of them are equal if they have been given the same.
//!
//! Lines are interleaved among homes: line L is home L mod their number's. Thread T is of host T mod that number.

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

/// Words of a line that kernels use.
pub const WORDS: u32 = 8;
/// For which a thread does something else before it looks at a flag again, picoseconds.
const PAUSE: Time = 10_000;
/// What flags hold beside their count: no word that memory begins with is likely to look so.
const FLAG: u64 = 0xf1a6_0000_0000_0000;

/// Words that look like nothing else: a mixing function (SplitMix64) of a number.
pub fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 27
}

/// A word in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    line: Line,
    word: u16,
}

/// What a store writes: one word, or all words of a line with one value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Grain {
    /// One word.
    Word,
    /// A line.
    Line,
}

impl Grain {
    /// Bytes that a store writes.
    pub fn bytes(self) -> u32 {
        match self {
            Grain::Word => 8,
            Grain::Line => 8 * WORDS,
        }
    }

    /// Lines that so many values take.
    pub fn lines(self, values: u32) -> Line {
        match self {
            Grain::Word => values.div_ceil(WORDS),
            Grain::Line => values,
        }
    }
}

/// Values in the memory of one host, each of a grain.
#[derive(Clone, Copy, Debug)]
pub struct Array {
    homes: Line,
    first: Line,
    grain: Grain,
}

impl Array {
    /// Values from a line on, in the memory of the host that it is of, without a [`Memory`] that gives it away.
    pub fn placed(homes: Line, first: Line, grain: Grain) -> Array {
        Array {
            homes,
            first,
            grain,
        }
    }

    /// Where a value is; of a line its first word.
    pub fn at(self, number: u32) -> Place {
        let (lines, word) = match self.grain {
            Grain::Word => (number / WORDS, number % WORDS),
            Grain::Line => (number, 0),
        };
        let line = self.first + self.homes * lines;
        Place {
            line,
            word: word as u16,
        }
    }
}

/// Memory of all hosts that is not given away.
#[derive(Clone, Debug)]
pub struct Memory {
    homes: Line,
    used: Vec<Line>,
}

impl Memory {
    /// All of it, of so many hosts.
    pub fn new(homes: Line) -> Memory {
        let used = vec![0; homes as usize];
        Memory { homes, used }
    }

    /// So many values in a host's memory.
    pub fn array(&mut self, host: Line, values: u32, grain: Grain) -> Array {
        let host = host % self.homes;
        let used = &mut self.used[host as usize];
        let first = self.homes * *used + host;
        *used += grain.lines(values);
        Array::placed(self.homes, first, grain)
    }

    /// A flag in a host's memory, of a line of its own.
    pub fn flag(&mut self, host: Line) -> Place {
        self.array(host, 1, Grain::Line).at(0)
    }

    /// For each of so many hosts, or of threads, each in its host's memory, a flag for each thread: that of `into[to][from]`.
    pub fn flags(&mut self, to: u32, threads: u32) -> Vec<Vec<Place>> {
        let into = |to| (0..threads).map(|_| self.flag(to)).collect();
        (0..to).map(into).collect()
    }

    /// Lines that are given away, those between them included.
    pub fn lines(&self) -> Line {
        self.homes * self.used.iter().max().copied().unwrap_or(0)
    }
}

/// Between a kernel and who drives its thread: the step that it waits for, and what that gave.
#[derive(Default)]
struct Port {
    step: Cell<Option<Step>>,
    result: Cell<u64>,
}

/// What a kernel does its work with: the thread that it is.
#[derive(Clone)]
pub struct Core {
    /// The thread's number.
    pub number: u32,
    port: Rc<Port>,
}

impl Core {
    async fn step(&self, step: Step) -> u64 {
        let mut asked = false;
        poll_fn(|_| match std::mem::replace(&mut asked, true) {
            true => Poll::Ready(self.port.result.get()),
            false => {
                self.port.step.set(Some(step));
                Poll::Pending
            }
        })
        .await
    }

    /// Loads a word.
    pub async fn load(&self, Place { line, word }: Place) -> u64 {
        self.step(Step::Load { line, word }).await
    }

    /// Loads a value of which all words of a line are to be copies, from the word that the number falls on.
    pub async fn look(&self, array: Array, number: u32) -> u64 {
        let Place { line, word } = array.at(number);
        let word = match array.grain {
            Grain::Word => word,
            Grain::Line => (number % WORDS) as u16,
        };
        self.step(Step::Load { line, word }).await
    }

    /// Stores a value.
    pub async fn store(&self, array: Array, number: u32, value: u64) {
        let Place { line, word } = array.at(number);
        let step = match array.grain {
            Grain::Word => Step::Store { line, word, value },
            Grain::Line => Step::StoreWords {
                line,
                word,
                words: WORDS as u16,
                value,
            },
        };
        self.step(step).await;
    }

    /// Changes a word in one atomic step, and gives what it held: at its home, if the text has rows for that, and otherwise
    /// in a copy. All that the thread does later waits for that; what it has done before may be performed later.
    pub async fn update(&self, Place { line, word }: Place, update: Update) -> u64 {
        self.step(Step::Update { line, word, update }).await
    }

    /// Adds to a word in one atomic step, and gives what it held.
    pub async fn add(&self, place: Place, by: u64) -> u64 {
        self.update(place, Update::Add(by)).await
    }

    /// The same after all that the thread has done before.
    pub async fn add_after(&self, place: Place, by: u64) -> u64 {
        self.step(Step::Fence).await;
        self.add(place, by).await
    }

    /// Raises a flag to a count, after all that the thread has done before.
    pub async fn tell(&self, Place { line, word }: Place, count: u32) {
        let value = FLAG | u64::from(count);
        self.step(Step::Release { line, word, value }).await;
    }

    /// Waits until a flag has been raised to a count or beyond, before all that the thread does later.
    pub async fn hear(&self, Place { line, word }: Place, count: u32) {
        loop {
            let told = self.step(Step::Acquire { line, word }).await;
            if told & !0xffff_ffff == FLAG && told as u32 >= count {
                return;
            }
            self.work(PAUSE).await;
        }
    }

    /// Works for so many picoseconds.
    pub async fn work(&self, time: Time) {
        self.step(Step::Work(time)).await;
    }

    /// What is timed begins.
    pub async fn begin(&self) {
        self.step(Step::Begin).await;
    }

    /// What is timed ends.
    pub async fn end(&self, what: &'static str) {
        self.step(Step::End { what }).await;
    }
}

/// A thread's stores to other hosts, with a release after so many bytes.
///
/// It raises the flag of the host that it has stored to last, so that of a host that is told all that was stored there
/// before is there; at the end of a round all hosts that were stored to are told.
pub struct Stream {
    core: Core,
    /// Flags of this thread, one for each that it may store to.
    flags: Vec<Place>,
    told: Vec<u32>,
    every: u32,
    bytes: u32,
}

impl Stream {
    /// One with these flags, and so many bytes between two releases.
    pub fn new(core: &Core, flags: Vec<Place>, every: u32) -> Stream {
        let told = vec![0; flags.len()];
        let core = core.clone();
        let bytes = 0;
        Stream {
            core,
            flags,
            told,
            every,
            bytes,
        }
    }

    /// Stores a value for one of those it may store to. The last release of a round is left to [`Stream::tell`].
    pub async fn store(&mut self, to: u32, array: Array, number: u32, value: u64) {
        if self.bytes >= self.every {
            self.bytes = 0;
            // What was told at the end of rounds stays; a flag within a round says no more than they did.
            let flag = self.flags[to as usize];
            self.core.tell(flag, self.told[to as usize]).await;
        }
        self.core.store(array, number, value).await;
        self.bytes += array.grain.bytes();
    }

    /// Tells these that the round is over.
    pub async fn tell(&mut self, to: &[u32]) {
        for &to in to {
            let told = &mut self.told[to as usize];
            *told += 1;
            self.core.tell(self.flags[to as usize], *told).await;
        }
        self.bytes = 0;
    }
}

/// The first thing that is not as it has to be. A thread goes on nevertheless, as others wait for it.
#[derive(Default)]
pub struct Findings(Option<String>);

impl Findings {
    /// A value is found where another one may have to be.
    pub fn value(&mut self, found: u64, right: u64, what: impl FnOnce() -> String) {
        if found != right && self.0.is_none() {
            self.0 = Some(format!("{} is {found:#x} instead of {right:#x}", what()));
        }
    }

    /// What is wrong, if something is.
    ///
    /// # Errors
    /// In a sentence.
    pub fn come(self) -> Result<(), String> {
        self.0.map_or(Ok(()), Err)
    }
}

/// A barrier of all threads: in each of its rounds a thread tells one twice as far away as in the round before.
#[derive(Clone, Debug)]
pub struct Barrier {
    flags: Vec<Vec<Place>>,
    times: u32,
}

impl Barrier {
    /// One of so many threads.
    pub fn new(memory: &mut Memory, threads: u32) -> Barrier {
        let rounds = threads.next_power_of_two().trailing_zeros();
        let into = |to| (0..rounds).map(|_| memory.flag(to)).collect();
        let flags = (0..threads).map(into).collect();
        Barrier { flags, times: 0 }
    }

    /// A thread waits until all have come.
    pub async fn wait(&mut self, core: &Core) {
        self.times += 1;
        let threads = self.flags.len();
        let mine = core.number as usize;
        for round in 0..self.flags[mine].len() {
            let other = (mine + (1 << round)) % threads;
            core.tell(self.flags[other][round], self.times).await;
            core.hear(self.flags[mine][round], self.times).await;
        }
    }
}

/// A barrier of all threads that counts who has come, each by an atomic access to one word; the last one tells the others.
#[derive(Clone, Debug)]
pub struct Count {
    count: Array,
    flags: Vec<Place>,
    times: u32,
}

impl Count {
    /// One of so many threads, counted in the memory of host 0.
    pub fn new(memory: &mut Memory, threads: u32) -> Count {
        Count {
            count: memory.array(0, 1, Grain::Line),
            flags: (0..threads).map(|to| memory.flag(to)).collect(),
            times: 0,
        }
    }

    /// One thread does this before any waits.
    pub async fn begin(&self, core: &Core) {
        core.store(self.count, 0, 0).await;
    }

    /// A thread waits until all have come.
    pub async fn wait(&mut self, core: &Core) {
        self.times += 1;
        let threads = self.flags.len() as u64;
        let before = core.add_after(self.count.at(0), 1).await;
        if before + 1 == threads * u64::from(self.times) {
            for &flag in &self.flags {
                core.tell(flag, self.times).await;
            }
        }
        core.hear(self.flags[core.number as usize], self.times)
            .await;
    }
}

/// What a kernel is over: how many hosts and threads there are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hosts {
    /// Homes of the machine, which is one for each host.
    pub homes: Line,
    /// Threads, one host after the other.
    pub threads: u32,
}

impl Hosts {
    /// The host that a thread is of.
    pub fn of(self, thread: u32) -> u32 {
        thread % self.homes
    }

    /// How many hosts have threads.
    pub fn used(self) -> u32 {
        self.threads.min(self.homes)
    }
}

/// Something that threads do together. Each returns whether it has found what it has to.
pub trait Kernel: Clone + PartialEq + Eq + Hash + Debug + Send + Sync + 'static {
    /// Hosts and threads.
    fn hosts(&self) -> Hosts;

    /// Lines that it uses, from 0.
    fn lines(&self) -> Line;

    /// What a thread does.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn run(self, core: Core) -> impl Future<Output = Result<(), String>> + 'static;

    /// Whether memory is as it has to be at the end.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn check(&self, _word: &dyn Fn(Place) -> u64) -> Result<(), String> {
        Ok(())
    }
}

/// A kernel's threads, with nothing behind the home.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Kernels<K>(pub K);

/// A thread of a kernel.
pub struct Running<K> {
    kernel: K,
    number: u32,
    port: Rc<Port>,
    /// What its steps have given, which is all that its state comes from.
    given: Vec<u64>,
    future: Pin<Box<dyn Future<Output = Result<(), String>>>>,
    came: Option<Result<(), String>>,
}

impl<K: Kernel> Running<K> {
    fn new(kernel: &K, number: u32) -> Running<K> {
        let port = Rc::<Port>::default();
        let core = Core {
            number,
            port: Rc::clone(&port),
        };
        Running {
            kernel: kernel.clone(),
            number,
            port,
            given: Vec::new(),
            future: Box::pin(kernel.clone().run(core)),
            came: None,
        }
    }
}

impl<K: Kernel> Thread for Running<K> {
    fn step(&mut self, result: u64) -> Step {
        if self.came.is_some() {
            return Step::Stop;
        }
        self.given.push(result);
        self.port.result.set(result);
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(came) = self.future.as_mut().poll(&mut context) {
            self.came = Some(came);
        }
        self.port.step.take().unwrap_or(Step::Stop)
    }
}

impl<K: Kernel> Clone for Running<K> {
    fn clone(&self) -> Self {
        let mut copy = Running::new(&self.kernel, self.number);
        for &given in &self.given {
            copy.step(given);
        }
        copy
    }
}

impl<K: Kernel> PartialEq for Running<K> {
    fn eq(&self, other: &Self) -> bool {
        let same = self.kernel == other.kernel && self.number == other.number;
        same && self.given == other.given
    }
}

impl<K: Kernel> Eq for Running<K> {}

impl<K: Kernel> Hash for Running<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
        self.given.hash(state);
    }
}

/// Nothing is behind the home.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Nobody;

impl Application for Nobody {
    fn name(&self) -> &str {
        "threads"
    }

    fn placement(&self) -> Placement {
        Placement::Beside
    }

    fn handle(&mut self, _event: Event, _actions: &mut Actions) {}
}

impl<K: Kernel> Scenario for Kernels<K> {
    type Application = Nobody;
    type Thread = Running<K>;

    fn lines(&self) -> Line {
        self.0.lines()
    }

    fn words(&self) -> u64 {
        WORDS.into()
    }

    fn ends(&self) -> bool {
        true
    }

    fn alone(&self) -> bool {
        true
    }

    fn application(&self) -> Nobody {
        Nobody
    }

    fn threads(&self) -> Vec<Running<K>> {
        let threads = 0..self.0.hosts().threads;
        threads
            .map(|number| Running::new(&self.0, number))
            .collect()
    }

    fn verify(
        &self,
        _application: &Nobody,
        threads: &[Running<K>],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        for thread in threads {
            let number = thread.number;
            match &thread.came {
                None => return Err(format!("thread {number} has not come to its end")),
                Some(Err(wrong)) => return Err(format!("thread {number}: {wrong}")),
                Some(Ok(())) => {}
            }
        }
        self.0
            .check(&|Place { line, word }| contents.word(line, word))
    }
}
