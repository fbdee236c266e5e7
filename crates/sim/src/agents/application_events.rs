//! Events on their way to the application of the device.

use cohkit_application::interface::Event;
use rustc_hash::FxHashMap;

use crate::kernel::Time;
use crate::simulation::{Context, Event as KernelEvent};

/// Events scheduled for the application, by the number of their kernel event.
#[derive(Default)]
pub(crate) struct ApplicationEvents {
    /// Events that have not been delivered, by number.
    pending: FxHashMap<u32, Event>,
    /// Number of the next event.
    next_number: u32,
}

impl ApplicationEvents {
    /// Schedules the delivery of an event to the application at `delivery`, which is not in the past.
    pub fn schedule(&mut self, context: &mut Context, delivery: Time, event: Event) {
        let event = self.add(event);
        context.tally.postpone_watchdog(delivery);
        context.schedule(delivery, event);
    }

    /// Adds an event. Returns the kernel event that delivers it, which the caller schedules.
    pub fn add(&mut self, event: Event) -> KernelEvent {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        self.pending.insert(number, event);
        KernelEvent::Application(number)
    }

    /// Returns true if no event is on its way.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Removes and returns the event with this number.
    pub fn take(&mut self, number: u32) -> Option<Event> {
        self.pending.remove(&number)
    }
}
