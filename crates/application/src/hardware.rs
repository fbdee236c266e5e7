//! Scenarios whose application is hardware behind a home in hardware: threads and what has to hold are the same,
//! and in the place of the application stands a monitor.

use crate::interface::{Actions, Application, Contents, Event, Line, Placement, Scenario, Table};

/// A scenario whose application there is in hardware.
pub trait InHardware: Scenario + Clone {
    /// Counts what the application does, from what reaches it; `made` is for [`InHardware::judge`].
    fn observe(&self, event: &Event, made: &mut u64, actions: &mut Actions);

    /// Whether threads and data are as they have to be at the end, after the application has `made` so much.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn judge(
        &self,
        made: u64,
        threads: &[Self::Thread],
        contents: &dyn Contents,
    ) -> Result<(), String>;
}

/// The scenario with its application in hardware. The clocked home of the run has to have that in it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Hardware<S>(pub S);

/// In the place of the application: it hears everything that reaches that, and does nothing but count.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Monitor<S> {
    scenario: S,
    name: String,
    placement: Placement,
    made: u64,
}

impl<S: InHardware> Application for Monitor<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn placement(&self) -> Placement {
        self.placement.clone()
    }

    fn handle(&mut self, event: Event, actions: &mut Actions) {
        self.scenario.observe(&event, &mut self.made, actions);
    }
}

impl<S: InHardware> Scenario for Hardware<S> {
    type Application = Monitor<S>;
    type Thread = S::Thread;

    fn lines(&self) -> Line {
        self.0.lines()
    }

    fn words(&self) -> u64 {
        self.0.words()
    }

    fn ends(&self) -> bool {
        self.0.ends()
    }

    fn application(&self) -> Monitor<S> {
        let application = self.0.application();
        Monitor {
            scenario: self.0.clone(),
            name: format!("{} in hardware", application.name()),
            placement: application.placement(),
            made: 0,
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
        self.0.judge(application.made, threads, contents)
    }

    fn tables(&self, threads: &[S::Thread]) -> Vec<Table> {
        self.0.tables(threads)
    }
}
