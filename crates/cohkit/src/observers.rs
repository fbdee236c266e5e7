//! Reports on a run in addition to its result, as text: latency breakdown, and timelines.

use crate::options::{ReportOptions, TimelineOptions};
use crate::streaming_file::{self, StreamingFile};
use crate::table::wrap;
use cohkit_api::latency_breakdown::{mean, nanoseconds};
use cohkit_api::outcome::Failure;
use cohkit_api::simulation::StartError;
use cohkit_sim::attribution::{Explanation, Part, Step, Transaction};
use cohkit_sim::statistics::Statistics;
use cohkit_timeline::{Filter, Recorded};
use cohkit_units::{self as units, Unit};
use std::fmt::Write;

impl ReportOptions {
    /// First of these options that was given.
    pub fn given_option(&self) -> Option<&'static str> {
        self.explain
            .then_some("--explain")
            .or(self.timeline_options.given_option())
    }
}

impl TimelineOptions {
    /// Option that records a timeline, if it was given.
    pub fn given_option(&self) -> Option<&'static str> {
        self.timeline.as_ref().map(|_| "--timeline")
    }

    /// Selection of the timeline's events; `None` if no timeline is recorded.
    ///
    /// # Errors
    /// An option of the timeline is invalid.
    pub fn filter(&self) -> Result<Option<Filter>, StartError> {
        let Some(file) = &self.timeline else {
            return Ok(None);
        };
        let extension = file
            .extension()
            .map(|extension| extension.to_string_lossy().to_lowercase());
        let text_formats = ["json", "jsonl", "txt", "csv", "html", "svg", "md"];
        if let Some(extension) =
            extension.filter(|extension| text_formats.contains(&extension.as_str()))
        {
            return Err(StartError::input(
                format!("--timeline: the timeline is a binary Perfetto trace, but `.{extension}` is a text format"),
                "name a file such as run.pftrace",
            ));
        }
        let option_error = |option: &str, reason: String, help: &str| {
            StartError::input(format!("--{option}: {reason}"), help)
        };
        let size = units::parse(&self.timeline_size, Unit::Bytes);
        let mut filter = Filter {
            line: self.timeline_line.map(|(_, line)| line),
            side: self.timeline_line.map(|(side, _)| side),
            agent: self.timeline_agent.clone(),
            bytes: size.map_err(|reason| {
                option_error("timeline-size", reason, "give a number with its unit")
            })? as usize,
            ..Filter::default()
        };
        if let Some(window) = &self.timeline_window {
            let help = "give two times with their units, the earlier first, such as 10us..12us";
            let window_error = |reason| option_error("timeline-window", reason, help);
            let Some((from, to)) = window.split_once("..") else {
                return Err(window_error(format!("`{window}` is not `FROM..TO`")));
            };
            let time =
                |text: &str| units::parse(text.trim(), Unit::Picoseconds).map_err(window_error);
            filter.window = time(from)?..time(to)?;
            if filter.window.is_empty() {
                return Err(window_error(format!("`{window}` must end after it begins")));
            }
        }
        Ok(Some(filter))
    }

    /// Creates the file for the events that the filter selects, and connects the filter to it. `None` if no timeline
    /// is recorded, or if its target must be written at once.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create_file(
        &self,
        filter: &mut Option<Filter>,
    ) -> Result<Option<StreamingFile>, Failure> {
        match (&self.timeline, filter) {
            (Some(file), Some(filter)) => StreamingFile::new(file, filter),
            _ => Ok(None),
        }
    }

    /// Writes the end of the timeline, if one was recorded. `file_writer` is the result of
    /// [`TimelineOptions::create_file`].
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish_file(
        &self,
        file_writer: Option<StreamingFile>,
        timeline: Option<&mut Recorded>,
    ) -> Result<(), Failure> {
        match (&self.timeline, timeline) {
            (Some(file), Some(timeline)) => streaming_file::write(file, file_writer, timeline),
            _ => Ok(()),
        }
    }
}

/// Reports that follow the result: the size of the timeline and the latency breakdown, if they were recorded. `width`
/// is in columns.
pub(crate) fn text(statistics: &Statistics, width: usize) -> String {
    let timeline = statistics.timeline.as_ref();
    let mut text = timeline.map_or(String::new(), |timeline| {
        timeline_summary(timeline, ["access", "accesses"])
    });
    if let Some(explanation) = &statistics.explanation {
        text.push_str(&explanation_text(explanation, width));
    }
    let host = statistics.host.as_ref();
    if let Some(explanation) = host.and_then(|host| host.explanation.as_ref()) {
        text.push_str("\nof the host's memory:\n");
        text.push_str(&explanation_text(explanation, width));
    }
    text
}

/// Coverage of a run by its timeline: number of accesses, size in bytes, and time when it was full.
pub(crate) fn timeline_summary(timeline: &Recorded, [singular, plural]: [&str; 2]) -> String {
    let count_text = match timeline.accesses {
        1 => format!("1 {singular}"),
        count => format!("{count} {plural}"),
    };
    let bytes = timeline.length;
    match timeline.full {
        None => format!("\nthe timeline shows {count_text} in {bytes} bytes\n"),
        Some(time) => {
            let time = units::show(time, Unit::Picoseconds);
            format!(
                "\nthe timeline shows {count_text} in {bytes} bytes, and was full at {time}; `--timeline-window`, `--timeline-line` and `--timeline-agent` restrict it, `--timeline-size` raises the limit\n"
            )
        }
    }
}

/// Latency breakdown of accesses, use of resources, and the bottleneck.
fn explanation_text(explanation: &Explanation, width: usize) -> String {
    let mut text = String::from("\n");
    let Some(slowest) = &explanation.slowest else {
        text.push_str("no access with a measured latency was performed\n");
        return text;
    };
    write_breakdown(&mut text, explanation, slowest, width);
    let _ = writeln!(
        text,
        "\nthe slowest: {} of line {} by core {}, issued at {} ns",
        slowest.access.name(),
        slowest.line,
        slowest.core,
        nanoseconds(slowest.issued),
    );
    let limit = &explanation.limit;
    let limit_text = format!(
        "limited by {}, {:.1} % of the time: {}",
        limit.name,
        100.0 * limit.utilisation,
        limit.reason
    );
    for line in wrap(&limit_text, width) {
        let _ = writeln!(text, "{line}");
    }
    write_resources(&mut text, explanation, width);
    text
}

/// Writes a table of the parts of the latency and their steps: the share in the mean access, and the time in the slowest
/// one.
fn write_breakdown(
    text: &mut String,
    explanation: &Explanation,
    slowest: &Transaction,
    width: usize,
) {
    let _ = writeln!(
        text,
        "latency breakdown           mean access           the slowest"
    );
    // Sums over all accesses, and times in the slowest access, are in picoseconds.
    let mut row = |name: &str, total: u128, in_slowest: u64, description: &str| {
        let share = 100.0 * total as f64 / explanation.latency.max(1) as f64;
        let (mean, in_slowest) = (mean(explanation, total), nanoseconds(in_slowest));
        let numbers = format!("{name:19} {mean:>12.3} ns {share:>5.1} % {in_slowest:>12.3} ns");
        write_row(text, &numbers, description, width);
    };
    for part in Part::ALL {
        let belongs_to_part = |step: Step| step.part() == part;
        let total = explanation.of_part(part);
        if total == 0 {
            continue;
        }
        row(part.name(), total, slowest.spent(belongs_to_part), "");
        for &step in Step::ALL.iter().filter(|step| belongs_to_part(**step)) {
            let total = explanation.total(step);
            if total > 0 {
                let in_slowest = slowest.spent(|candidate| candidate == step);
                row(
                    &format!("  {}", step.name()),
                    total,
                    in_slowest,
                    step.text(),
                );
            }
        }
    }
    row("all", explanation.latency, slowest.latency(), "");
}

/// Writes a table of the resources in use: utilisation of the most used member, and mean over all members.
fn write_resources(text: &mut String, explanation: &Explanation, width: usize) {
    let _ = writeln!(text, "\nin use                               most    mean");
    let resources = explanation.resources.iter();
    for resource in resources.filter(|resource| resource.utilisation > 0.0) {
        let (utilisation, mean) = (100.0 * resource.utilisation, 100.0 * resource.mean);
        let member = match &resource.which {
            Some(member) if resource.count > 1 => {
                format!("{member}, the most used of {}", resource.count)
            }
            Some(member) => member.clone(),
            None => format!("of {}", resource.count),
        };
        let numbers = format!("{:32} {utilisation:>6.1} % {mean:>5.1} %", resource.name);
        write_row(text, &numbers, &member, width);
    }
}

/// Writes a row, whose description continues on indented lines.
fn write_row(text: &mut String, numbers: &str, description: &str, width: usize) {
    let indent = numbers.len() + 2;
    let width = width.saturating_sub(indent).max(20);
    let lines = wrap(description, width);
    let first_line = lines.first().map_or("", |line| line.as_str());
    let _ = writeln!(text, "{}", format!("{numbers}  {first_line}").trim_end());
    for line in lines.iter().skip(1) {
        let _ = writeln!(text, "{:indent$}{line}", "");
    }
}
