//! Matrix transposition: each thread owns rows and stores each element, one per line, into the row of the transposed
//! matrix. A host is notified once per round, regardless of the number of its waiting threads.

use crate::interface::{Line, Time};
use crate::kernel::{
    mix64, Array, Core, FirstMismatch, Granularity, Hosts, Kernel, Memory, Stream, WordAddress,
};

/// Parameters of the transposition.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Transpose {
    /// Hosts and threads.
    pub hosts: Hosts,
    /// Number of rows and columns. Thread T owns row R if R modulo the number of threads equals T.
    pub size: u32,
    /// Number of matrices, transposed one after the other.
    pub rounds: u32,
    /// Bytes stored between two releases.
    pub release_bytes: u32,
    /// Computation time per element, in picoseconds.
    pub work: Time,
}

/// Memory layout, the same for all threads.
struct Plan {
    /// Rows of the result, for even and odd rounds.
    rows: Vec<[Array; 2]>,
    /// `flags[host][thread]`: the thread has stored all elements of a round for this host.
    flags: Vec<Vec<WordAddress>>,
    memory: Memory,
}

impl Transpose {
    /// Computes the layout.
    fn plan(&self) -> Plan {
        let mut memory = Memory::new(self.hosts.homes);
        let row = |row| {
            let host = row % self.hosts.threads;
            [(); 2].map(|()| memory.array(host, self.size, Granularity::Line))
        };
        let rows = (0..self.size).map(row).collect();
        let flags = memory.flags(self.hosts.used_count(), self.hosts.threads);
        Plan {
            rows,
            flags,
            memory,
        }
    }

    /// Returns the value of an element in a round.
    fn element(&self, round: u32, row: u32, column: u32) -> u64 {
        let size = u64::from(self.size);
        mix64((u64::from(round) * size + u64::from(row)) * size + u64::from(column))
    }

    /// Returns the rows of a thread.
    fn rows(&self, thread: u32) -> impl Iterator<Item = u32> {
        (thread..self.size).step_by(self.hosts.threads as usize)
    }
}

impl Kernel for Transpose {
    fn hosts(&self) -> Hosts {
        self.hosts
    }

    fn lines(&self) -> Line {
        self.plan().memory.lines()
    }

    /// In each round: stores its rows of a new matrix as columns at the hosts of these, releases, acquires the flags
    /// of all threads, and checks its columns. Two copies alternate.
    async fn run(self, core: Core) -> Result<(), String> {
        let plan = self.plan();
        let (me, threads) = (core.number as usize, self.hosts.threads);
        let host_flags = &plan.flags[self.hosts.host_of(core.number) as usize];
        let all_hosts: Vec<u32> = (0..self.hosts.used_count()).collect();
        let flags = plan.flags.iter().map(|flags| flags[me]).collect();
        let mut stream = Stream::new(&core, flags, self.release_bytes);
        let mut mismatch = FirstMismatch::default();
        core.begin().await;
        for round in 0..self.rounds {
            let copy = round as usize % 2;
            for row in self.rows(core.number) {
                for column in 0..self.size {
                    core.work(self.work).await;
                    let (array, value) = (
                        plan.rows[column as usize][copy],
                        self.element(round, row, column),
                    );
                    let host = self.hosts.host_of(column % threads);
                    stream.store(host, array, row, value).await;
                }
            }
            stream.release_flags(&all_hosts).await;
            for &flag in host_flags {
                core.acquire_flag(flag, round + 1).await;
            }
            for column in self.rows(core.number) {
                for row in 0..self.size {
                    let actual = core.load_value(plan.rows[column as usize][copy], row).await;
                    let expected = self.element(round, row, column);
                    mismatch.check_value(actual, expected, || {
                        format!("element {row}, {column} of matrix {round}")
                    });
                }
            }
        }
        core.end("done").await;
        mismatch.into_result()
    }
}
