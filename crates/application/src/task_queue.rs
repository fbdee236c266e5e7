//! Task queues: one half of the threads creates tasks, blocks of values in the memory of another host. The other half
//! takes tasks from the queues by tickets and counts their values in a shared histogram.

use crate::interface::{Line, Time};
use crate::kernel::{
    mix64, Array, Barrier, Core, CountingBarrier, FirstMismatch, Granularity, Hosts, Kernel,
    Memory, WordAddress,
};

/// Parameters of the task queues.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TaskQueue {
    /// Hosts and threads; the first half of the threads creates tasks.
    pub hosts: Hosts,
    /// Tasks per creating thread.
    pub tasks: u32,
    /// Capacity of a queue in tasks.
    pub slots: u32,
    /// Lines of the largest task; the smallest has one line.
    pub max_lines: u32,
    /// Number of bins of the histogram.
    pub bins: u32,
    /// Computation time per value, in picoseconds.
    pub work: Time,
}

/// A queue of one producer. A block is used again after `slots` tasks.
#[derive(Clone)]
struct Queue {
    /// Blocks of values, in the memory of the consumer's host.
    blocks: Vec<Array>,
    /// Flag per block that counts its tasks, in the consumer's host.
    full: Vec<WordAddress>,
    /// Flag per block that counts its completed tasks, in the producer's host.
    empty: Vec<WordAddress>,
    /// Ticket counter: the next task to take.
    next: Array,
}

/// Memory layout and barriers, the same for all threads.
struct Plan {
    /// Queue of each producer.
    queues: Vec<Queue>,
    /// The histogram.
    bins: Array,
    /// Barrier after the initialisation.
    barrier: Barrier,
    /// Barrier at the end of the run.
    end_barrier: CountingBarrier,
    memory: Memory,
}

impl TaskQueue {
    /// Returns the number of threads that create tasks.
    fn producers(&self) -> u32 {
        self.hosts.threads / 2
    }

    /// Computes the layout.
    fn plan(&self) -> Plan {
        let mut memory = Memory::new(self.hosts.homes);
        let producers = self.producers();
        let queue = |producer| {
            let consumer = producer + producers;
            let slots = 0..self.slots;
            Queue {
                blocks: slots
                    .clone()
                    .map(|_| memory.array(consumer, self.max_lines, Granularity::Line))
                    .collect(),
                full: slots.clone().map(|_| memory.flag(consumer)).collect(),
                empty: slots.map(|_| memory.flag(producer)).collect(),
                next: memory.array(consumer, 1, Granularity::Line),
            }
        };
        Plan {
            queues: (0..producers).map(queue).collect(),
            bins: memory.array(0, self.bins, Granularity::Word),
            barrier: Barrier::new(&mut memory, self.hosts.threads),
            end_barrier: CountingBarrier::new(&mut memory, self.hosts.threads),
            memory,
        }
    }

    /// Returns the global number of a task.
    fn number(&self, queue: u32, task: u32) -> u64 {
        u64::from(queue) * u64::from(self.tasks) + u64::from(task)
    }

    /// Returns the values of a task, one per line.
    fn values(&self, queue: u32, task: u32) -> impl Iterator<Item = u64> {
        let number = self.number(queue, task);
        let lines = 1 + mix64(number) % u64::from(self.max_lines);
        (0..lines).map(move |line| mix64(number << 20 | line))
    }

    /// Returns the bin of a value.
    fn bin(&self, value: u64) -> usize {
        (value % u64::from(self.bins)) as usize
    }

    /// Creates the tasks of a thread.
    async fn produce(&self, core: &Core, plan: &Plan) {
        let queue = &plan.queues[core.number as usize];
        for task in 0..self.tasks {
            let (slot, turn) = ((task % self.slots) as usize, task / self.slots);
            if turn > 0 {
                core.acquire_flag(queue.empty[slot], turn).await;
            }
            for (value, line) in self.values(core.number, task).zip(0..) {
                core.work(self.work).await;
                core.store(queue.blocks[slot], line, value).await;
            }
            core.release_flag(queue.full[slot], turn + 1).await;
        }
    }

    /// Takes tasks until the queue has no more, and returns the counts of their values.
    async fn consume(&self, core: &Core, plan: &Plan, mismatch: &mut FirstMismatch) -> Vec<u64> {
        let mut counts = vec![0; self.bins as usize];
        let queue_number = (core.number - self.producers()) % self.producers();
        let queue = &plan.queues[queue_number as usize];
        loop {
            let task = core.add(queue.next.at(0), 1).await;
            if task >= self.tasks.into() {
                return counts;
            }
            let task = task as u32;
            let (slot, turn) = ((task % self.slots) as usize, task / self.slots);
            core.acquire_flag(queue.full[slot], turn + 1).await;
            for (expected, line) in self.values(queue_number, task).zip(0..) {
                let actual = core.load_value(queue.blocks[slot], line).await;
                mismatch.check_value(actual, expected, || {
                    format!("value {line} of task {task} of queue {queue_number}")
                });
                counts[self.bin(actual)] += 1;
                core.work(self.work).await;
            }
            core.release_flag(queue.empty[slot], turn + 1).await;
        }
    }
}

impl Kernel for TaskQueue {
    fn hosts(&self) -> Hosts {
        self.hosts
    }

    fn lines(&self) -> Line {
        self.plan().memory.lines()
    }

    /// Initialises its part of the queues and bins; then produces tasks, or consumes them and adds its counts to the
    /// bins.
    async fn run(self, core: Core) -> Result<(), String> {
        let mut plan = self.plan();
        let mut mismatch = FirstMismatch::default();
        if core.number == 0 {
            plan.end_barrier.begin(&core).await;
            for bin in 0..self.bins {
                core.store(plan.bins, bin, 0).await;
            }
        }
        if let Some(queue) = plan.queues.get(core.number as usize) {
            core.store(queue.next, 0, 0).await;
        }
        plan.barrier.wait(&core).await;
        core.begin().await;
        if core.number < self.producers() {
            self.produce(&core, &plan).await;
        } else {
            let counts = self.consume(&core, &plan, &mut mismatch).await;
            for (&count, bin) in counts.iter().zip(0..) {
                core.add(plan.bins.at(bin), count).await;
            }
        }
        plan.end_barrier.wait(&core).await;
        core.end("done").await;
        mismatch.into_result()
    }

    fn check(&self, word: &dyn Fn(WordAddress) -> u64) -> Result<(), String> {
        let mut expected = vec![0; self.bins as usize];
        for queue in 0..self.producers() {
            for task in 0..self.tasks {
                self.values(queue, task)
                    .for_each(|value| expected[self.bin(value)] += 1);
            }
        }
        let bins = self.plan().bins;
        let mut mismatch = FirstMismatch::default();
        for (&expected, bin) in expected.iter().zip(0..) {
            mismatch.check_value(word(bins.at(bin)), expected, || {
                format!("the count of bin {bin}")
            });
        }
        mismatch.into_result()
    }
}
