//! Reports on a run beside its result, as text: latency breakdown, and timelines.

use crate::explained::{mean, nanoseconds};
use crate::options::{Drawn, ReportOptions};
use crate::outcome::Failure;
use crate::simulate::NotRun;
use crate::streaming_file::{self, StreamingFile};
use crate::table::wrap;
use cohkit_sim::attribution::{Explanation, Part, Step};
use cohkit_sim::platform::{units, Unit};
use cohkit_sim::statistics::Statistics;
use cohkit_sim::timeline::{Filter, Recorded};
use std::fmt::Write;

impl ReportOptions {
    /// First of these options that was given.
    pub fn asked(&self) -> Option<&'static str> {
        self.explain.then_some("--explain").or(self.drawn.asked())
    }
}

impl Drawn {
    /// Option that records a timeline, if it was given.
    pub fn asked(&self) -> Option<&'static str> {
        self.timeline.as_ref().map(|_| "--timeline")
    }

    /// Selection of the timeline's events, if a timeline is recorded.
    pub fn filter(&self) -> Result<Option<Filter>, NotRun> {
        let Some(file) = &self.timeline else {
            return Ok(None);
        };
        let ending = file
            .extension()
            .map(|ending| ending.to_string_lossy().to_lowercase());
        let text = ["json", "jsonl", "txt", "csv", "html", "svg", "md"];
        if let Some(ending) = ending.filter(|ending| text.contains(&ending.as_str())) {
            return Err(NotRun::input(
                format!("--timeline: the timeline is a binary Perfetto trace, but `.{ending}` is a text format"),
                "name a file such as run.pftrace",
            ));
        }
        let wrong = |option: &str, what: String, help: &str| {
            NotRun::input(format!("--{option}: {what}"), help)
        };
        let size = units::parse(&self.timeline_size, Unit::Bytes);
        let mut filter = Filter {
            line: self.timeline_line.map(|(_, line)| line),
            side: self.timeline_line.map(|(side, _)| side),
            agent: self.timeline_agent.clone(),
            bytes: size
                .map_err(|what| wrong("timeline-size", what, "give a number with its unit"))?
                as usize,
            ..Filter::default()
        };
        if let Some(window) = &self.timeline_window {
            let help = "give two times with their units, the earlier first, such as 10us..12us";
            let wrong = |what| wrong("timeline-window", what, help);
            let Some((from, to)) = window.split_once("..") else {
                return Err(wrong(format!("`{window}` is not `FROM..TO`")));
            };
            let time = |text: &str| units::parse(text.trim(), Unit::Picoseconds).map_err(wrong);
            filter.window = time(from)?..time(to)?;
            if filter.window.is_empty() {
                return Err(wrong(format!("`{window}` must end after it begins")));
            }
        }
        Ok(Some(filter))
    }

    /// Creates the file for the events that the filter selects, if a timeline is recorded.
    pub fn begin(&self, filter: &mut Option<Filter>) -> Result<Option<StreamingFile>, Failure> {
        match (&self.timeline, filter) {
            (Some(file), Some(filter)) => StreamingFile::new(file, filter),
            _ => Ok(None),
        }
    }

    /// Writes the timeline, if one was recorded.
    pub fn end(
        &self,
        growing: Option<StreamingFile>,
        timeline: Option<&mut Recorded>,
    ) -> Result<(), Failure> {
        match (&self.timeline, timeline) {
            (Some(file), Some(timeline)) => streaming_file::write(file, growing, timeline),
            _ => Ok(()),
        }
    }
}

/// Reports that follow the result.
pub(crate) fn text(statistics: &Statistics, width: usize) -> String {
    let timeline = statistics.timeline.as_ref();
    let mut text = timeline.map_or(String::new(), |timeline| {
        told_of(timeline, ["access", "accesses"])
    });
    if let Some(explanation) = &statistics.explanation {
        text.push_str(&explained(explanation, width));
    }
    let host = statistics.host.as_ref();
    if let Some(explanation) = host.and_then(|host| host.explanation.as_ref()) {
        text.push_str("\nof the host's memory:\n");
        text.push_str(&explained(explanation, width));
    }
    text
}

/// Coverage of a run by its timeline: number of accesses, size in bytes, and time when it was full.
pub(crate) fn told_of(timeline: &Recorded, [one, many]: [&str; 2]) -> String {
    let shown = match timeline.accesses {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    let bytes = timeline.length;
    match timeline.full {
        None => format!("\nthe timeline shows {shown} in {bytes} bytes\n"),
        Some(time) => {
            let time = units::show(time, Unit::Picoseconds);
            format!(
                "\nthe timeline shows {shown} in {bytes} bytes, and was full at {time}; `--timeline-window`, `--timeline-line` and `--timeline-agent` restrict it, `--timeline-size` raises the limit\n"
            )
        }
    }
}

/// Latency breakdown of accesses, use of resources, and the bottleneck.
fn explained(of: &Explanation, width: usize) -> String {
    let mut text = String::from("\n");
    let Some(slowest) = &of.slowest else {
        text.push_str("no access with a measured latency was performed\n");
        return text;
    };
    let row = |text: &mut String, name: &str, total: u128, slowest: u64, what: &str| {
        let share = 100.0 * total as f64 / of.latency.max(1) as f64;
        let (mean, slowest) = (mean(of, total), nanoseconds(slowest));
        let numbers = format!("{name:19} {mean:>12.3} ns {share:>5.1} % {slowest:>12.3} ns");
        put(text, &numbers, what, width);
    };
    let _ = writeln!(
        text,
        "latency breakdown           mean access           the slowest"
    );
    for part in Part::ALL {
        let its = |step: Step| step.part() == part;
        if of.of_part(part) == 0 {
            continue;
        }
        row(
            &mut text,
            part.name(),
            of.of_part(part),
            slowest.spent(its),
            "",
        );
        for &step in Step::ALL.iter().filter(|step| its(**step)) {
            let name = format!("  {}", step.name());
            let own = slowest.spent(|other| other == step);
            if of.total(step) > 0 {
                row(&mut text, &name, of.total(step), own, step.text());
            }
        }
    }
    row(&mut text, "all", of.latency, slowest.latency(), "");
    let _ = writeln!(
        text,
        "\nthe slowest: {} of line {} by core {}, issued at {} ns",
        slowest.access.name(),
        slowest.line,
        slowest.core,
        nanoseconds(slowest.issued),
    );
    let limit = &of.limit;
    let says = format!(
        "limited by {}, {:.1} % of the time: {}",
        limit.name,
        100.0 * limit.utilisation,
        limit.reason
    );
    for line in wrap(&says, width) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "\nin use                               most    mean");
    for used in of.resources.iter().filter(|used| used.utilisation > 0.0) {
        let (most, mean) = (100.0 * used.utilisation, 100.0 * used.mean);
        let which = match &used.which {
            Some(which) if used.count > 1 => format!("{which}, the most used of {}", used.count),
            Some(which) => which.clone(),
            None => format!("of {}", used.count),
        };
        let numbers = format!("{:32} {most:>6.1} % {mean:>5.1} %", used.name);
        put(&mut text, &numbers, &which, width);
    }
    text
}

/// Writes a row, whose description continues on indented lines.
fn put(text: &mut String, numbers: &str, what: &str, width: usize) {
    let indent = numbers.len() + 2;
    let room = width.saturating_sub(indent).max(20);
    let lines = wrap(what, room);
    let first = lines.first().map_or("", |line| line.as_str());
    let _ = writeln!(text, "{}", format!("{numbers}  {first}").trim_end());
    for line in lines.iter().skip(1) {
        let _ = writeln!(text, "{:indent$}{line}", "");
    }
}
