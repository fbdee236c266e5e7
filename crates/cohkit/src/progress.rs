//! How far a search has come, shown on a terminal and nowhere else.

use crate::console::Terminal;
use cohkit_check::search::{Phase, Progress};
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A line on standard error that says what a search is doing; it goes when this is dropped.
pub(crate) struct Line {
    bar: ProgressBar,
    name: String,
}

impl Line {
    /// A line for the search of the system with this name; hidden where there is no terminal.
    pub fn new(name: String, terminal: &Terminal) -> Line {
        let target = if terminal.progress {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        if terminal.progress {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Line { bar, name }
    }

    /// Shows how far something other than a search is.
    pub fn say(&self, how_far: &str) {
        self.bar.set_message(format!("{}: {how_far}", self.name));
    }

    /// Shows where the search is.
    pub fn show(&self, progress: &Progress) {
        let doing = match progress.phase {
            Phase::Explore => "exploring",
            Phase::Drain => "looking for requests that cannot complete",
        };
        self.bar.set_message(format!(
            "{}: {doing}: {} states, depth {}, {} waiting, {} states/s, {} MiB",
            self.name,
            HumanCount(progress.states),
            progress.depth,
            HumanCount(progress.queue),
            HumanCount(progress.rate as u64),
            progress.memory >> 20,
        ));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
