//! Owner of a row, its errors, and the triggers of events that are no messages.

use cohkit_protocol::controller::{Controller, Event};
use cohkit_protocol::execute::{RowError, Trigger};
use cohkit_protocol::rows::{event_words, fault_words};

use crate::agent::Violation;
use crate::state::{StepError, System};

/// The trigger of an event that is no message.
pub(super) fn trigger(event: Event, remote: Option<u8>, home: u16) -> Trigger<'static> {
    Trigger {
        home,
        event,
        sender: None,
        executing_remote: remote.map(u16::from),
        fields: &[],
    }
}

/// The agent whose row executes.
#[derive(Clone, Copy)]
pub(super) enum RowOwner {
    /// The remote with this number.
    Remote(u8),
    /// The home of the line.
    Home,
}

impl RowOwner {
    /// Name of the remote's kind, or of the home, and the controller with its rows.
    fn name_and_controller<'s>(self, system: &'s System) -> (&'s str, &'s Controller) {
        match self {
            RowOwner::Remote(number) => {
                let (kind, _) = system.of_each.kind(number.into());
                let name = &system.protocol.kinds[kind.index()].name;
                (name, &system.protocol.remote)
            }
            RowOwner::Home => (&system.home.name, system.home),
        }
    }

    /// Returns the violation of a controller without a row for the event.
    pub(super) fn unexpected(self, system: &System, event: Event) -> StepError {
        let (name, controller) = self.name_and_controller(system);
        let event = event_words(system.protocol, controller, event);
        let description = format!("{name} has no rule for {event}");
        StepError::Violated(Violation::new("no unexpected message", description))
    }

    /// The remote's number, or `None` for the home.
    pub(super) fn number(self) -> Option<u8> {
        match self {
            RowOwner::Remote(number) => Some(number),
            RowOwner::Home => None,
        }
    }

    /// Returns the violation of a row that cannot be executed.
    pub(super) fn row_fault(self, system: &System, interrupted: &RowError) -> StepError {
        let (name, controller) = self.name_and_controller(system);
        let messages = &system.protocol.messages;
        let description = fault_words(name, messages, controller, &interrupted.fault);
        StepError::Violated(Violation::new("no unexpected message", description))
    }
}
