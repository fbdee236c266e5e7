//! Gather scenario whose device has a fault.

use cohkit_application::gather::{Gather, GatherDevice, QueryThread};
use cohkit_application::interface::{
    Action, Actions, Application, Contents, Event, Line, Placement, Scenario, Words,
};
use std::collections::{BTreeMap, VecDeque};

/// Fault of a device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Fault {
    /// The device treats its stores as performed when they are issued.
    EarlyCompletion,
    /// The device keeps the values that it has read, and receives no invalidation for the host's writes.
    IgnoredInvalidation,
}

/// A gathering device with a fault.
#[derive(Clone)]
pub(super) struct FaultyGather(pub(super) Gather, pub(super) Fault);

/// Device with the fault, which changes the events and actions of a correct device.
pub(super) struct FaultyGatherDevice {
    /// Correct device.
    inner: GatherDevice,
    /// Fault of this device.
    fault: Fault,
    /// First word of each load, by tag.
    requested: BTreeMap<u32, u32>,
    /// Words of earlier loads, by first word.
    stale_words: BTreeMap<u32, Words>,
}

impl Application for FaultyGatherDevice {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn placement(&self) -> Placement {
        self.inner.placement()
    }
    fn handle(&mut self, event: Event, actions: &mut Actions) {
        match &event {
            Event::CoherentStoreCompletion { .. } if self.fault == Fault::EarlyCompletion => return,
            Event::CoherentLoadCompletion { tag, words } => {
                self.stale_words.insert(self.requested[tag], words.clone());
            }
            _ => {}
        }
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let mut inner_actions = Actions::new();
            self.inner.handle(event, &mut inner_actions);
            for action in inner_actions.take() {
                match (self.fault, &action) {
                    (Fault::EarlyCompletion, Action::CoherentStore { tag, .. }) => {
                        events.push_back(Event::CoherentStoreCompletion { tag: *tag });
                    }
                    (Fault::IgnoredInvalidation, Action::CoherentLoad { tag, first, .. }) => {
                        self.requested.insert(*tag, *first);
                        if let Some(words) = self.stale_words.get(first) {
                            let (tag, words) = (*tag, words.clone());
                            events.push_back(Event::CoherentLoadCompletion { tag, words });
                            continue;
                        }
                    }
                    _ => {}
                }
                if let (Fault::EarlyCompletion, Action::CoherentLoad { tag, first, .. }) =
                    (self.fault, &action)
                {
                    self.requested.insert(*tag, *first);
                }
                actions.push(action);
            }
        }
    }
}

impl Scenario for FaultyGather {
    type Application = FaultyGatherDevice;
    type Thread = QueryThread;
    fn lines(&self) -> Line {
        self.0.lines()
    }
    fn terminates(&self) -> bool {
        true
    }
    fn host_words(&self) -> u64 {
        Scenario::host_words(&self.0)
    }
    fn application(&self) -> FaultyGatherDevice {
        FaultyGatherDevice {
            inner: self.0.application(),
            fault: self.1,
            requested: BTreeMap::new(),
            stale_words: BTreeMap::new(),
        }
    }
    fn threads(&self) -> Vec<QueryThread> {
        self.0.threads()
    }
    fn verify(
        &self,
        application: &FaultyGatherDevice,
        threads: &[QueryThread],
        contents: &dyn Contents,
    ) -> Result<(), String> {
        self.0.verify(&application.inner, threads, contents)
    }
}
