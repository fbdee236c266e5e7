//! State of a scenario in a run: the programs of its threads and its application, and their measurements.

use cohkit_application::contract::Contract;

use crate::kernel::Time;
use crate::message::Line;
use crate::scenario::{ScenarioRun, Tally};

/// State of a scenario, which its threads and its application share.
pub(crate) struct ScenarioState {
    /// Programs of threads and application.
    pub run: Box<dyn ScenarioRun>,
    /// Name of the application.
    pub name: String,
    /// Contract that the application keeps.
    pub contract: Contract,
    /// Counts and durations so far.
    pub tally: Tally,
    /// End of the warm-up and start of the measurement window, in picoseconds.
    pub warm_up: Time,
    /// End of the measurement window, after which no new work starts, in picoseconds; `Time::MAX` for no
    /// limit.
    pub until: Time,
}

impl ScenarioState {
    /// Returns the outstanding obligations of the application's contract as (line, description).
    pub fn open_obligations(&self) -> Vec<(Line, String)> {
        let obligations = self.contract.obligations();
        obligations
            .map(|obligation| {
                (
                    obligation.line,
                    format!("{} {}", self.name, obligation.description),
                )
            })
            .collect()
    }

    /// Adds `increment` to a counter if `time` is within the measurement window. Counters saturate.
    pub fn add_count(&mut self, counter: &'static str, increment: u64, time: Time) {
        if (self.warm_up..=self.until).contains(&time) {
            let count = self.tally.counts.entry(counter).or_default();
            *count = count.saturating_add(increment);
            let sampler = self.tally.rate_samplers.entry(counter).or_default();
            if sampler.count_events(increment) {
                sampler.take_samples(time, 0);
            }
        }
    }

    /// Records the duration from `since` to `end` if both are within the measurement window.
    pub fn record_duration(&mut self, name: &'static str, since: Time, end: Time) {
        if since >= self.warm_up && end <= self.until {
            let times = self.tally.times.entry(name);
            times.or_default().record(end - since);
        }
    }

    /// Closes the measurement window of counts and durations, at the end of the run.
    pub fn close_window(&mut self, end: Time) {
        self.tally.window = self.until.min(end).saturating_sub(self.warm_up);
    }
}
