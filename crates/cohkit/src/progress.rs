//! Progress of long work, shown only on a terminal.

use crate::console::Terminal;
use cohkit_engine::search::{Phase, Progress};
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Progress bar on standard error; hidden without a terminal. `length` is the amount of work, if known, and
/// `template` is in the syntax of the crate `indicatif`.
fn progress_bar(length: Option<u64>, template: &str, terminal: &Terminal) -> ProgressBar {
    let target = if terminal.progress {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(length, target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(match terminal.ascii {
            true => style.tick_chars("-\\|/ ").progress_chars("#>-"),
            false => style,
        });
    }
    if terminal.progress {
        bar.enable_steady_tick(Duration::from_millis(100));
    }
    bar
}

/// Progress bar for a known amount of work; cleared when dropped.
pub(crate) struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// Creates a bar for `total` units of work; `unit` is their plural, and `name` begins the line. Hidden
    /// without a terminal.
    pub fn new(name: String, total: u64, unit: &str, terminal: &Terminal) -> ProgressLine {
        let template = format!(
            "{{spinner}} {{msg}}: {{bar:24}} {{human_pos}} of {{human_len}} {unit}, {{per_sec}}, {{eta}} to go"
        );
        let bar = progress_bar(Some(total), &template, terminal);
        bar.set_message(name);
        ProgressLine(bar)
    }

    /// Shows the number of units of work done.
    pub fn show(&self, position: u64) {
        self.0.set_position(position);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Status line for work of unknown length; cleared when dropped.
pub(crate) struct StatusLine(ProgressBar);

impl StatusLine {
    /// Creates a line with this text; hidden without a terminal.
    pub fn new(status: String, terminal: &Terminal) -> StatusLine {
        let bar = progress_bar(None, "{spinner} {msg}, {elapsed}", terminal);
        bar.set_message(status);
        StatusLine(bar)
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Status line of a search; cleared when dropped.
pub(crate) struct SearchStatusLine {
    /// Bar that shows the line.
    bar: ProgressBar,
    /// Name of the searched system, which begins the line.
    name: String,
}

impl SearchStatusLine {
    /// Creates a line for the search of the system with this name; hidden without a terminal.
    pub fn new(name: String, terminal: &Terminal) -> SearchStatusLine {
        let bar = progress_bar(None, "{spinner} {msg}", terminal);
        SearchStatusLine { bar, name }
    }

    /// Shows the state of the search.
    pub fn show(&self, progress: &Progress) {
        let status = match progress.phase {
            Phase::Explore => "exploring",
            Phase::Drain => "looking for requests that cannot complete",
            Phase::Walk => "walking",
        };
        let (waiting, unit) = match progress.phase {
            Phase::Walk => ("steps to go", "steps"),
            _ => ("waiting", "states"),
        };
        // Without data nothing is predicted: the number of states ahead is only a trend.
        let ahead = match (progress.phase, progress.ahead) {
            (Phase::Explore, Some(ahead)) => {
                format!(", about {} ahead as levels shrink", HumanCount(ahead))
            }
            _ => String::new(),
        };
        self.bar.set_message(format!(
            "{}: {status}: {} states, depth {}, {} {waiting}{ahead}, {} {unit}/s, {} MiB",
            self.name,
            HumanCount(progress.states),
            progress.depth,
            HumanCount(progress.queue),
            HumanCount(progress.rate as u64),
            progress.memory >> 20,
        ));
    }
}

impl Drop for SearchStatusLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
