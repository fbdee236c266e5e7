//! The queue of events with its observers: the race detector, the timeline, and the search for cores that poll for ever.

use crate::events::Queue as Events;
use crate::events::{Event, Time};
use crate::polling::Window;
use crate::races::Races;
use crate::timeline::Timeline;

/// Events to come, and observers of those that happen.
#[derive(Default)]
pub(crate) struct Queue {
    events: Events,
    pub(crate) watch: Option<Box<Races>>,
    pub(crate) timeline: Option<Box<Timeline>>,
    /// The window in which polling for ever is looked for, while one is open.
    pub(crate) polling: Option<Box<Window>>,
}

impl Queue {
    pub(crate) fn add(&mut self, time: Time, event: Event) {
        self.events.add(time, event);
    }

    pub(crate) fn next(&mut self) -> Option<(Time, Event)> {
        self.events.next()
    }

    /// Returns the time of the next event; the end of time if there is none.
    #[inline(always)]
    pub(crate) fn soonest(&self) -> Time {
        self.events.soonest()
    }

    /// True if all events that are to come change nothing that a core may read.
    pub(crate) fn only_reads(&self) -> bool {
        !self.events.any(|event| !event.only_reads())
    }

    /// Notes that something changes that a core may read.
    #[inline(always)]
    pub(crate) fn change(&mut self) {
        if let Some(polling) = &mut self.polling {
            polling.change();
        }
    }
}
