//! The event queue with its observers: race detector, timeline and livelock detection.

use crate::events::Event;
use crate::events::Queue as Events;
use crate::polling::Window;
use crate::races::RaceDetector;
use crate::timeline::Timeline;
use cohkit_units::Time;

/// Pending events, and the observers of the machine.
#[derive(Default)]
pub(crate) struct Queue {
    pending_events: Events,
    /// Race detector, if enabled.
    pub(crate) races: Option<Box<RaceDetector>>,
    /// Timeline under construction, if recording is enabled.
    pub(crate) timeline: Option<Box<Timeline>>,
    /// The open window of the livelock detection, if any.
    pub(crate) polling: Option<Box<Window>>,
}

impl Queue {
    /// Schedules an event at a time in picoseconds.
    pub(crate) fn add(&mut self, time: Time, event: Event) {
        self.pending_events.add(time, event);
    }

    /// Removes the earliest event and returns it with its time; `None` if no event is scheduled.
    pub(crate) fn next(&mut self) -> Option<(Time, Event)> {
        self.pending_events.next()
    }

    /// Returns the time of the next event; `Time::MAX` if there is none.
    #[inline(always)]
    pub(crate) fn next_event_time(&self) -> Time {
        self.pending_events.next_event_time()
    }

    /// True if no pending event changes state that a core may read.
    pub(crate) fn is_read_only(&self) -> bool {
        !self.pending_events.any(|event| !event.is_read_only())
    }

    /// Records a change of state that a core may read.
    #[inline(always)]
    pub(crate) fn change(&mut self) {
        if let Some(polling) = &mut self.polling {
            polling.change();
        }
    }
}
