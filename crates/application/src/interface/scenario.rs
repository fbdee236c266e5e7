//! Interface of a scenario: a device application with the threads that use it, and the verification of a run.

use super::{Application, Line, Operation, Thread};

/// A device application with the threads that use it, and the verification of a run.
pub trait Scenario {
    /// Type of the application.
    type Application: Application;
    /// Type of the threads.
    type Thread: Thread;

    /// Number of home lines that the scenario uses, starting at line 0.
    fn lines(&self) -> Line;

    /// Number of words per line that the scenario uses, starting at word 0.
    fn words(&self) -> u64 {
        1
    }

    /// True if the scenario terminates by itself.
    fn terminates(&self) -> bool;

    /// Local operations that the application requests, each with a flag that is true if it locks. A home that lacks one
    /// is rejected before the run starts. An operation that is missing here is rejected only when the application
    /// requests it.
    fn requested_operations(&self) -> Vec<(Operation, bool)> {
        Vec::new()
    }

    /// True if the application depends on changes of permissions
    /// ([`Event::PermissionChange`](super::Event::PermissionChange)), which only a home that is constructed from a
    /// policy can report. Otherwise the scenario runs with any home.
    fn needs_change_events(&self) -> bool {
        true
    }

    /// Number of threads, at the end of the list, that are engines of a device that caches lines of the CPU's memory.
    /// If it is not zero, no application is behind the home, and the application receives no events.
    fn engines(&self) -> u32 {
        0
    }

    /// True if the scenario consists of threads only: nothing is behind the home, and there may be several homes.
    fn is_threads_only(&self) -> bool {
        self.engines() > 0
    }

    /// Number of words of host memory that application and threads access, starting at word 0, if host memory is a line
    /// space that the device caches. 0 if they need none.
    fn host_words(&self) -> u64 {
        0
    }

    /// Returns the application in its initial state.
    fn application(&self) -> Self::Application;

    /// Returns the threads in their initial states.
    fn threads(&self) -> Vec<Self::Thread>;

    /// Checks the final states of application and threads, and the final data.
    ///
    /// # Errors
    /// A sentence that describes the first failure.
    fn verify(
        &self,
        application: &Self::Application,
        threads: &[Self::Thread],
        contents: &dyn Contents,
    ) -> Result<(), String>;

    /// Returns the values that threads have observed and computed, for verification by other programs.
    fn tables(&self, _threads: &[Self::Thread]) -> Vec<Table> {
        Vec::new()
    }
}

/// Final contents of memory, for verification when nothing is in flight.
pub trait Contents {
    /// Returns the value that a load of this word would return.
    fn word(&self, line: Line, word: u16) -> u64;

    /// Returns the initial value of the word.
    fn initial(&self, line: Line, word: u16) -> u64;

    /// Returns the value that a host's load of this word of host memory would return; `None` if host memory is not a
    /// line space of its own.
    fn host(&self, _word: u32) -> Option<u64> {
        None
    }
}

/// A table of numbers that a run produces, for verification by other programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Name of the table.
    pub name: &'static str,
    /// Rows, in order.
    pub rows: Vec<Vec<u64>>,
}
