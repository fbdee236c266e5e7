//! In-place padding of a matrix: rows are moved apart, so that each gains free space behind it. Threads take parts of
//! the matrix from its end. They load a part, and store it at its new position once all elements there have been
//! loaded.

use crate::interface::{Line, Time};
use crate::kernel::{
    mix64, Array, Barrier, Core, FirstMismatch, Granularity, Hosts, Kernel, Memory, WordAddress,
};

/// Parameters of the padding.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Padding {
    /// Hosts and threads.
    pub hosts: Hosts,
    /// Number of rows.
    pub rows: u32,
    /// Lines per row; each line is one element.
    pub columns: u32,
    /// Lines of free space added behind each row.
    pub pad: u32,
    /// Lines per part, the unit of work and of synchronisation.
    pub part: u32,
    /// Consecutive lines in the memory of one host; the next block is in that of the next host.
    pub block: u32,
    /// Computation time per element, in picoseconds.
    pub work: Time,
}

/// Memory layout, the same for all threads.
struct Plan {
    /// Blocks of the padded matrix; the initial matrix occupies the first lines.
    blocks: Vec<Array>,
    /// Flag per ticket: its part, and all parts after it in the matrix, have been loaded.
    loaded: Vec<WordAddress>,
    /// Next ticket. Ticket 0 is the last part of the matrix.
    next_part: Array,
    /// Barrier before and after the padding.
    barrier: Barrier,
    memory: Memory,
}

impl Padding {
    /// Returns the number of elements.
    fn elements(&self) -> u32 {
        self.rows * self.columns
    }

    /// Returns the number of parts.
    fn parts(&self) -> u32 {
        self.elements().div_ceil(self.part)
    }

    /// Computes the layout.
    fn plan(&self) -> Plan {
        let mut memory = Memory::new(self.hosts.homes);
        let lines = self.rows * (self.columns + self.pad);
        let block = |block| memory.array(block, self.block, Granularity::Line);
        let blocks = (0..lines.div_ceil(self.block)).map(block).collect();
        let loaded = (0..self.parts()).map(|part| memory.flag(part)).collect();
        Plan {
            blocks,
            loaded,
            next_part: memory.array(0, 1, Granularity::Word),
            barrier: Barrier::new(&mut memory, self.hosts.threads),
            memory,
        }
    }

    /// Returns the new position of an element, in lines.
    fn padded_position(&self, element: u32) -> u32 {
        element + element / self.columns * self.pad
    }

    /// Returns the array of a line, and its index there.
    fn array_and_line(&self, plan: &Plan, line: u32) -> (Array, u32) {
        (plan.blocks[(line / self.block) as usize], line % self.block)
    }

    /// Returns the elements that a thread initialises and verifies.
    fn own_elements(&self, thread: u32) -> impl Iterator<Item = u32> {
        (thread..self.elements()).step_by(self.hosts.threads as usize)
    }
}

impl Kernel for Padding {
    fn hosts(&self) -> Hosts {
        self.hosts
    }

    fn lines(&self) -> Line {
        self.plan().memory.lines()
    }

    /// Takes parts of the array, last one first, from a shared counter: loads a part, waits until all earlier parts
    /// are loaded, and stores it at its padded position. Finally checks its own elements.
    async fn run(self, core: Core) -> Result<(), String> {
        let mut plan = self.plan();
        for element in self.own_elements(core.number) {
            let (array, line) = self.array_and_line(&plan, element);
            core.store(array, line, mix64(element.into())).await;
        }
        if core.number == 0 {
            core.store(plan.next_part, 0, 0).await;
        }
        plan.barrier.wait(&core).await;
        core.begin().await;
        loop {
            let ticket = core.add(plan.next_part.at(0), 1).await;
            if ticket >= self.parts().into() {
                break;
            }
            let ticket = ticket as u32;
            let part = self.parts() - 1 - ticket;
            let elements = part * self.part..((part + 1) * self.part).min(self.elements());
            let mut values = Vec::new();
            for element in elements.clone() {
                let (array, line) = self.array_and_line(&plan, element);
                values.push(core.load_value(array, line).await);
            }
            core.work(self.work * Time::from(self.part)).await;
            if ticket > 0 {
                core.acquire_flag(plan.loaded[ticket as usize - 1], 1).await;
            }
            core.release_flag(plan.loaded[ticket as usize], 1).await;
            for (element, value) in elements.zip(values) {
                let (array, line) = self.array_and_line(&plan, self.padded_position(element));
                core.store(array, line, value).await;
            }
        }
        plan.barrier.wait(&core).await;
        core.end("done").await;
        let mut mismatch = FirstMismatch::default();
        for element in self.own_elements(core.number) {
            let (array, line) = self.array_and_line(&plan, self.padded_position(element));
            let (actual, expected) = (core.load_value(array, line).await, mix64(element.into()));
            mismatch.check_value(actual, expected, || format!("element {element}"));
        }
        mismatch.into_result()
    }
}
