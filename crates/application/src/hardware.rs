//! Scenarios with the application in RTL, behind a home in RTL. Threads and final checks are unchanged; a monitor
//! replaces the application.

use crate::interface::{Actions, Application, Contents, Event, Line, Placement, Scenario, Table};

/// A scenario whose application also exists in hardware.
pub trait HardwareScenario: Scenario + Clone {
    /// Counts the application's operations from an event that reaches it, and appends statistics to `actions`.
    /// `operations` accumulates the count for [`HardwareScenario::judge`].
    fn observe(&self, event: &Event, operations: &mut u64, actions: &mut Actions);

    /// Checks the final threads and data, given the number of operations that the application has made.
    ///
    /// # Errors
    /// A sentence that describes the first failure.
    fn judge(
        &self,
        operations: u64,
        threads: &[Self::Thread],
        contents: &dyn Contents,
    ) -> Result<(), String>;
}

/// The scenario with its application in hardware. The clocked home of the run must contain that application.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Hardware<S>(pub S);

/// Monitor that replaces the application: it receives all of the application's events and only counts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Monitor<S> {
    /// Scenario whose application is replaced.
    scenario: S,
    /// Name of the application, for messages.
    name: String,
    /// Position of the replaced application.
    placement: Placement,
    /// Operations counted so far; see [`HardwareScenario::observe`].
    operations: u64,
}

impl<S: HardwareScenario> Application for Monitor<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn placement(&self) -> Placement {
        self.placement.clone()
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        self.scenario.observe(&event, &mut self.operations, actions);
    }
}

impl<S: HardwareScenario> Scenario for Hardware<S> {
    type Application = Monitor<S>;
    type Thread = S::Thread;

    fn lines(&self) -> Line {
        self.0.lines()
    }

    fn words(&self) -> u64 {
        self.0.words()
    }

    fn terminates(&self) -> bool {
        self.0.terminates()
    }

    fn application(&self) -> Monitor<S> {
        let application = self.0.application();
        Monitor {
            scenario: self.0.clone(),
            name: format!("{} in hardware", application.name()),
            placement: application.placement(),
            operations: 0,
        }
    }

    fn threads(&self) -> Vec<S::Thread> {
        self.0.threads()
    }

    fn verify(
        &self,
        application: &Monitor<S>,
        threads: &[S::Thread],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        self.0.judge(application.operations, threads, contents)
    }

    fn tables(&self, threads: &[S::Thread]) -> Vec<Table> {
        self.0.tables(threads)
    }
}
