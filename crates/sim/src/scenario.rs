//! An application behind the home, and threads on the cores, in a simulation.

use cohkit_application::interface::{
    Application, Contents, Operation, PageFault, Scenario, Step, Table, Thread,
};
use cohkit_protocol::construct::permissions::KnownPermissions;
use cohkit_protocol::controller::Access;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::kernel::Time;
use crate::message::Line;
use crate::rate_sampler::RateSampler;
use crate::statistics::{Histogram, Statistics};

/// Scenario that replaces the traffic and the device of a setup.
#[derive(Clone)]
pub struct Play {
    /// The application and its threads; thread `n` runs on core `n`.
    pub scenario: Arc<dyn Playable>,
    /// Permissions that a constructed home can derive from its states. `None` for other homes, whose applications are
    /// not notified of changes.
    pub permissions: Option<KnownPermissions>,
    /// Time after which threads and application start nothing more, in picoseconds; `None` for no limit.
    pub until: Option<Time>,
    /// End of the warm-up, in picoseconds. Earlier counts and times are not reported.
    pub warm_up: Time,
    /// True if the scenario's tables are requested at the end.
    pub tables: bool,
}

/// Result of a scenario.
pub struct Performance {
    /// Statistics of the simulation.
    pub statistics: Statistics,
    /// Counts and times of the scenario.
    pub tally: Tally,
    /// Tables for other programs to judge, if requested.
    pub tables: Vec<Table>,
    /// End of the run, in picoseconds.
    pub end: Time,
}

/// A scenario of any type.
pub trait Playable: Send + Sync {
    /// Number of lines of the home that it uses, from line 0.
    fn line_count(&self) -> Line;

    /// Number of words of each line that it uses, from word 0.
    fn words_used(&self) -> u64;

    /// True if it ends by itself.
    fn has_end(&self) -> bool;

    /// Local operations that its application may request, each with true if it locks the line. A home that lacks one is
    /// rejected before the run.
    fn operation_requirements(&self) -> Vec<(Operation, bool)> {
        Vec::new()
    }

    /// True if its application must be notified of changes of the CPU's permissions.
    fn observes_changes(&self) -> bool {
        true
    }

    /// Number of its threads, the last ones, that run on caches of the second kind: engines of a device.
    fn engines(&self) -> u32 {
        0
    }

    /// Number of words of the host's memory that it uses, from word 0, where that is a space of its own. 0 if it uses
    /// none.
    fn host_words(&self) -> u64 {
        0
    }

    /// True if it consists of threads only. Then there is nothing behind a home, and several homes are possible.
    fn threads_only(&self) -> bool {
        self.engines() > 0
    }

    /// Returns its application and threads in their initial state.
    fn begin(&self) -> Box<dyn ScenarioRun>;
}

/// State of a scenario of any type.
pub trait ScenarioRun {
    /// The application.
    fn application(&mut self) -> &mut dyn Application;

    /// Number of threads.
    fn threads(&self) -> usize;

    /// Returns a thread's next step. `result` is the value that the previous step returned, 0 if it returned none.
    fn step(&mut self, thread: usize, result: u64) -> Step;

    /// Returns a thread's next step after a refused access, or `None` if it cannot continue.
    fn handle_page_fault(&mut self, _thread: usize, _reason: PageFault) -> Option<Step> {
        None
    }

    /// Access type of the protocol file for the thread's current write or atomic, if it is not the default one.
    fn write_access(&self, _thread: usize) -> Option<Access> {
        None
    }

    /// Checks the final state of application, threads and data.
    ///
    /// # Errors
    /// A sentence that describes the violation.
    fn verify(&self, contents: &dyn Contents) -> Result<(), String>;

    /// Returns the inputs and results of threads, where other programs can judge them.
    fn tables(&self) -> Vec<Table>;
}

impl<S: Scenario + Clone + Send + Sync + 'static> Playable for S {
    fn line_count(&self) -> Line {
        self.lines()
    }

    fn words_used(&self) -> u64 {
        self.words()
    }

    fn has_end(&self) -> bool {
        self.terminates()
    }

    fn operation_requirements(&self) -> Vec<(Operation, bool)> {
        self.requested_operations()
    }

    fn observes_changes(&self) -> bool {
        self.needs_change_events()
    }

    fn engines(&self) -> u32 {
        Scenario::engines(self)
    }

    fn threads_only(&self) -> bool {
        self.is_threads_only()
    }

    fn host_words(&self) -> u64 {
        Scenario::host_words(self)
    }

    fn begin(&self) -> Box<dyn ScenarioRun> {
        Box::new(TypedScenarioRun {
            application: self.application(),
            threads: self.threads(),
            scenario: self.clone(),
        })
    }
}

/// State of a scenario of a known type.
struct TypedScenarioRun<S: Scenario> {
    /// The scenario, which verifies the final state.
    scenario: S,
    /// State of the application.
    application: S::Application,
    /// States of the threads, by thread number.
    threads: Vec<S::Thread>,
}

impl<S: Scenario> ScenarioRun for TypedScenarioRun<S> {
    fn application(&mut self) -> &mut dyn Application {
        &mut self.application
    }

    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn step(&mut self, thread: usize, result: u64) -> Step {
        self.threads[thread].step(result)
    }

    fn handle_page_fault(&mut self, thread: usize, reason: PageFault) -> Option<Step> {
        self.threads[thread].handle_page_fault(reason)
    }

    fn verify(&self, contents: &dyn Contents) -> Result<(), String> {
        let (application, threads) = (&self.application, &self.threads);
        self.scenario.verify(application, threads, contents)
    }

    fn tables(&self) -> Vec<Table> {
        self.scenario.tables(&self.threads)
    }
}

/// Counts and times of a scenario between the end of its warm-up and its end.
#[derive(Clone, Default)]
pub struct Tally {
    /// Sums of the counts of threads and application, by name.
    pub counts: BTreeMap<&'static str, u64>,
    /// Timestamps of the counts, by name. They do not record the number of cached lines.
    pub rate_samplers: BTreeMap<&'static str, RateSampler>,
    /// Durations measured by threads, by name, and those of local operations, from request to completion at the
    /// application.
    pub times: BTreeMap<&'static str, Histogram>,
    /// Traffic on the links of each kind of caching agents, in the order of kinds. The measurement starts with the
    /// first message sent after the warm-up. Empty if there was no such message.
    pub traffic: Vec<Traffic>,
    /// Duration of the measurement, from the end of the warm-up to the end of the run or its time limit, in
    /// picoseconds.
    pub window: Time,
}

/// Traffic on links, both directions together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Number of messages.
    pub messages: u64,
    /// Number of bytes: headers and payload on pipes; on framed links, all units that are not idle, including their
    /// framing.
    pub bytes: u64,
}

impl Tally {
    /// Returns the rate of a count per second; 0 if it was never counted.
    pub fn rate(&self, count_name: &str) -> f64 {
        let count = self.counts.get(count_name).copied().unwrap_or(0);
        match self.window {
            0 => 0.0,
            window => count as f64 * crate::kernel::SECOND as f64 / window as f64,
        }
    }
}
