//! An application behind the home, and threads on the cores, in a simulation.

use cohkit_application::interface::{
    Application, Contents, Operation, Refused, Scenario, Step, Table, Thread,
};
use cohkit_protocol::construct::rights::KnownRights;
use cohkit_protocol::controller::Access;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::course::Course;
use crate::kernel::Time;
use crate::message::Line;
use crate::statistics::{Histogram, Statistics};

/// What takes the place of traffic and device.
#[derive(Clone)]
pub struct Play {
    /// The application and its threads; thread `n` runs on core `n`.
    pub scenario: Arc<dyn Playable>,
    /// What the home knows of rights; nothing where it is not constructed, and then its application hears of no changes.
    pub rights: Option<KnownRights>,
    /// Picoseconds after which threads and application begin nothing more; without end if not given.
    pub until: Option<Time>,
    /// What is counted and timed before this moment does not count, picoseconds.
    pub warm_up: Time,
    /// Whether it is asked for its tables at the end.
    pub tables: bool,
}

/// What comes of a scenario.
pub struct Performance {
    /// As for every run.
    pub statistics: Statistics,
    /// What was counted and timed.
    pub tally: Tally,
    /// What it has left for other programs to judge, if it was asked to.
    pub tables: Vec<Table>,
    /// When it ended, picoseconds.
    pub end: Time,
}

/// A scenario of any kind.
pub trait Playable: Send + Sync {
    /// Lines of the home that it uses, from 0.
    fn uses(&self) -> Line;

    /// Words of each line that it uses, from 0.
    fn words_used(&self) -> u64;

    /// Whether it ends by itself.
    fn has_end(&self) -> bool;

    /// The local operations, with lock or without, that its application is known to ask for. A home that lacks one
    /// is told before anything runs.
    fn asked_for(&self) -> Vec<(Operation, bool)> {
        Vec::new()
    }

    /// Whether its application has to hear of what becomes of the CPU's rights.
    fn hears_changes(&self) -> bool {
        true
    }

    /// How many of its threads, the last ones, run before caches of the second kind: engines of a device.
    fn engines(&self) -> u32 {
        0
    }

    /// Words of the host's memory, from 0, that it accesses where that is a space of its own; 0 if it needs none.
    fn host_words(&self) -> u64 {
        0
    }

    /// Whether there are threads only: then nothing is behind a home, and there may be several.
    fn threads_only(&self) -> bool {
        self.engines() > 0
    }

    /// Its application and threads at the start.
    fn begin(&self) -> Box<dyn Played>;
}

/// A scenario of any kind at some moment.
pub trait Played {
    /// The application.
    fn application(&mut self) -> &mut dyn Application;

    /// Number of threads.
    fn threads(&self) -> usize;

    /// A thread's next step after one that gave `result`.
    fn step(&mut self, thread: usize, result: u64) -> Step;

    /// A thread's next step after one whose access was refused; nothing if it cannot go on.
    fn refused(&mut self, _thread: usize, _why: Refused) -> Option<Step> {
        None
    }

    /// By which of the text's accesses the thread makes its present write, or reads and writes at once, if not as others do.
    fn writes_by(&self, _thread: usize) -> Option<Access> {
        None
    }

    /// Whether all is as it has to be at the end.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn verify(&self, contents: &dyn Contents) -> Result<(), String>;

    /// What threads have been given and have made of it, where other programs can judge it.
    fn tables(&self) -> Vec<Table>;
}

impl<S: Scenario + Clone + Send + Sync + 'static> Playable for S {
    fn uses(&self) -> Line {
        self.lines()
    }

    fn words_used(&self) -> u64 {
        self.words()
    }

    fn has_end(&self) -> bool {
        self.ends()
    }

    fn asked_for(&self) -> Vec<(Operation, bool)> {
        self.asks()
    }

    fn hears_changes(&self) -> bool {
        self.hears()
    }

    fn engines(&self) -> u32 {
        Scenario::engines(self)
    }

    fn threads_only(&self) -> bool {
        self.alone()
    }

    fn host_words(&self) -> u64 {
        Scenario::host_words(self)
    }

    fn begin(&self) -> Box<dyn Played> {
        Box::new(InPlay {
            application: self.application(),
            threads: self.threads(),
            scenario: self.clone(),
        })
    }
}

struct InPlay<S: Scenario> {
    scenario: S,
    application: S::Application,
    threads: Vec<S::Thread>,
}

impl<S: Scenario> Played for InPlay<S> {
    fn application(&mut self) -> &mut dyn Application {
        &mut self.application
    }

    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn step(&mut self, thread: usize, result: u64) -> Step {
        self.threads[thread].step(result)
    }

    fn refused(&mut self, thread: usize, why: Refused) -> Option<Step> {
        self.threads[thread].refused(why)
    }

    fn verify(&self, contents: &dyn Contents) -> Result<(), String> {
        let (application, threads) = (&self.application, &self.threads);
        self.scenario.verify(application, threads, contents)
    }

    fn tables(&self) -> Vec<Table> {
        self.scenario.tables(&self.threads)
    }
}

/// What a scenario has counted and timed between the end of its warm-up and its end.
#[derive(Clone, Default)]
pub struct Tally {
    /// Sums of what threads and application have counted, by name.
    pub counts: BTreeMap<&'static str, u64>,
    /// When it was counted, by name; what caches held then is not kept here.
    pub courses: BTreeMap<&'static str, Course>,
    /// What threads have timed, by name, and the local operations: from asking to completion at the application.
    pub times: BTreeMap<&'static str, Histogram>,
    /// What has travelled on the links of the caching agents of each kind, in their order, from the first message that was sent
    /// in this time to its end. There is none where there was no such message.
    pub traffic: Vec<Traffic>,
    /// The time in which this happened, picoseconds.
    pub window: Time,
}

/// What has travelled on links, both ways.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Messages.
    pub messages: u64,
    /// Bytes: headers and payload on pipes; on framed links units that say something, all that frames them included.
    pub bytes: u64,
}

impl Tally {
    /// How often something was counted in a second; 0 if never.
    pub fn rate(&self, what: &str) -> f64 {
        let count = self.counts.get(what).copied().unwrap_or(0);
        match self.window {
            0 => 0.0,
            window => count as f64 * crate::kernel::SECOND as f64 / window as f64,
        }
    }
}
