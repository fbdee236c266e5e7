//! DMA copies whose completion precedes their data.

use cohkit_application::dma::{Copies, CopyThread, Engine};
use cohkit_application::interface::{
    Action, Actions, Application, Contents, Event, Line, Placement, Scenario,
};

/// DMA copies whose engine writes the completion, and interrupts, before the data.
#[derive(Clone)]
pub(super) struct EarlyCopies(pub(super) Copies);

/// DMA engine with the fault: it delays the stores of data by 3 us, and stores
/// completions at once.
pub(super) struct EarlyEngine {
    /// Correct engine.
    inner: Engine,
    /// Stores of data that are still to be issued, in order.
    delayed: Vec<Action>,
}

/// Tag of the timer after which the delayed data are written.
const DATA_TIMER: u32 = u32::MAX;

impl Application for EarlyEngine {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn placement(&self) -> Placement {
        self.inner.placement()
    }
    fn handle(&mut self, event: Event, actions: &mut Actions) {
        if event == (Event::Timer { tag: DATA_TIMER }) {
            actions.push(self.delayed.remove(0));
            return;
        }
        let mut inner_actions = Actions::new();
        self.inner.handle(event, &mut inner_actions);
        for action in inner_actions.take() {
            match action {
                // A completion is one word; data are several.
                Action::HostStore { ref words, .. } if words.len() > 1 => {
                    self.delayed.push(action);
                    actions.wake(DATA_TIMER, 3_000_000);
                }
                action => actions.push(action),
            }
        }
    }
}

impl Scenario for EarlyCopies {
    type Application = EarlyEngine;
    type Thread = CopyThread;
    fn lines(&self) -> Line {
        0
    }
    fn terminates(&self) -> bool {
        true
    }
    fn application(&self) -> EarlyEngine {
        EarlyEngine {
            inner: self.0.application(),
            delayed: Vec::new(),
        }
    }
    fn threads(&self) -> Vec<CopyThread> {
        self.0.threads()
    }
    fn verify(
        &self,
        application: &EarlyEngine,
        threads: &[CopyThread],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        self.0.verify(&application.inner, threads, contents)
    }
}
