//! Charts as SVG: wires first, then labels, states and marks over them.

use crate::layout::{Item, Layout, LifelinePoint};
use cohkit_base::sequence::Sequence;
use std::fmt::Write;

/// Height of a row in pixels.
const ROW_HEIGHT: f64 = 28.0;
/// Height of the area above the first row, with the names of the agents, in pixels.
const HEADING_HEIGHT: f64 = 64.0;
/// Empty border at the left, right and bottom, in pixels.
const MARGIN: f64 = 24.0;
/// Mean character width of the font in pixels. Slightly too large, so that labels do not overlap.
const CHARACTER_WIDTH: f64 = 7.4;

/// Style sheet of the document.
const STYLE: &str = "\
text{font:12px ui-sans-serif,system-ui,'DejaVu Sans',sans-serif;fill:#1f2933}\
.name{font-weight:600;font-size:13px}\
.head{fill:#e8eef7;stroke:#5b7aa6}\
.life{stroke:#9aa9bc;stroke-width:1}\
.wire{stroke:#23527c;stroke-width:1.5;fill:none}\
.tip{fill:#23527c}\
.label{fill:#123a5e}\
.note{fill:#52606d;font-style:italic}\
.halo{fill:#fff;stroke:#fff;stroke-width:4px;stroke-linejoin:round}\
.line{fill:#7b8794;font-size:11px}\
.state{fill:#fff7e0;stroke:#c08a1e}\
.unseen{fill:#fff;stroke:#c08a1e;stroke-dasharray:3 2}\
.act{fill:#23527c}\
.dot{fill:#8792a2}\
.lost{stroke-dasharray:5 4}";

/// Draws the sequence as one self-contained SVG document with this title.
pub fn svg(sequence: &Sequence, title: &str) -> String {
    let layout = Layout::new(sequence);
    let left = MARGIN + if layout.has_lines { 48.0 } else { 0.0 };
    let (lifeline_x, right) = lifeline_positions(&layout, left);
    let height = HEADING_HEIGHT + ROW_HEIGHT * (layout.rows.len() as f64 + 1.0);
    let mut page = Page {
        lifeline_x,
        svg_text: String::new(),
        layout: &layout,
        bottom: height,
    };
    let height = height + MARGIN;
    let title = escape(title);
    let _ = writeln!(
        page.svg_text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{right:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {right:.0} {height:.0}\" role=\"img\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
    );
    page.draw_lifelines();
    // Draw the wires first, so that labels and states cover them.
    for row in 0..layout.rows.len() {
        page.draw_wires(row);
    }
    for row in 0..layout.rows.len() {
        page.draw_labels(row);
    }
    page.svg_text += "</svg>\n";
    page.svg_text
}

/// Horizontal position of each lifeline, and the width of the drawing, in pixels. `left` is the start of the first
/// lifeline's text.
fn lifeline_positions(layout: &Layout, left: f64) -> (Vec<f64>, f64) {
    let agents = layout.names.len();
    let text_width = |text: &str| text.chars().count() as f64 * CHARACTER_WIDTH;
    let mut half: Vec<f64> = layout
        .names
        .iter()
        .map(|name| text_width(name) / 2.0 + 16.0)
        .collect();
    let mut notes = vec![0.0_f64; agents];
    let mut spans = Vec::new();
    for row in &layout.rows {
        match &row.item {
            Item::Arrow { from, to, message } => {
                spans.push((from.agent, to.agent, text_width(message) + 36.0))
            }
            Item::Departure(flight) => {
                let flight = &layout.flights[*flight];
                // The label is beside the sender, where the wire slopes away.
                spans.push((
                    flight.from.agent,
                    flight.to.agent,
                    text_width(&flight.label(&layout.names)) + 60.0,
                ));
            }
            Item::Arrival(_) => {}
            Item::Stray { to, message, .. } => {
                notes[to.agent] = notes[to.agent].max(text_width(message) + 40.0)
            }
            Item::Note { point, text } => {
                notes[point.agent] = notes[point.agent].max(text_width(text) + 24.0)
            }
            Item::States(states) => {
                for (point, state) in states {
                    half[point.agent] = half[point.agent].max(text_width(state) / 2.0 + 14.0);
                }
            }
        }
    }
    let mut gaps: Vec<f64> = (1..agents)
        .map(|right| {
            notes[right - 1]
                .max(half[right - 1] + half[right])
                .max(110.0)
        })
        .collect();
    spans.sort_by_key(|&(from, to, _)| from.abs_diff(to));
    for (from, to, required_width) in spans {
        let span = &mut gaps[from.min(to)..from.max(to)];
        let missing = (required_width - span.iter().sum::<f64>()).max(0.0) / span.len() as f64;
        span.iter_mut().for_each(|gap| *gap += missing);
    }
    let mut x = left + half.first().unwrap_or(&0.0);
    let mut lifeline_x = Vec::new();
    for (agent, half) in half.iter().enumerate() {
        lifeline_x.push(x);
        x += match gaps.get(agent) {
            Some(gap) => *gap,
            None => half.max(notes[agent]),
        };
    }
    (lifeline_x, x + MARGIN)
}

/// A document being drawn.
struct Page<'a> {
    /// Rows and lifelines.
    layout: &'a Layout,
    /// Horizontal position of each lifeline, in pixels.
    lifeline_x: Vec<f64>,
    /// Vertical position at which the lifelines end, in pixels.
    bottom: f64,
    /// Document, as far as it is written.
    svg_text: String,
}

/// Vertical centre of a row, in pixels.
fn middle(row: usize) -> f64 {
    HEADING_HEIGHT + ROW_HEIGHT * (row as f64 + 0.5)
}

impl Page<'_> {
    /// Draws the lifelines with their names.
    fn draw_lifelines(&mut self) {
        for (name, x) in self.layout.names.iter().zip(&self.lifeline_x) {
            let half = name.chars().count() as f64 * CHARACTER_WIDTH / 2.0 + 10.0;
            let (box_x, box_w, bottom) = (x - half, 2.0 * half, self.bottom);
            let _ = writeln!(
                self.svg_text,
                "<path class=\"life\" d=\"M{x:.1} 48V{bottom:.1}\"/>\n\
                 <rect class=\"head\" x=\"{box_x:.1}\" y=\"22\" width=\"{box_w:.1}\" height=\"26\" rx=\"4\"/>\n\
                 <text class=\"name\" x=\"{x:.1}\" y=\"39.5\" text-anchor=\"middle\">{}</text>",
                escape(name)
            );
        }
    }

    /// Draws the lines of a row.
    fn draw_wires(&mut self, row: usize) {
        let y = middle(row);
        match &self.layout.rows[row].item {
            Item::Arrow { from, to, .. } => {
                self.draw_wire((self.x(from), y), (self.x(to), y), to.visible, "");
            }
            Item::Departure(index) => {
                let flight = &self.layout.flights[*index];
                let (start, end) = (self.x(&flight.from), self.x(&flight.to));
                match flight.received_row {
                    Some(received) => {
                        self.draw_wire((start, y), (end, middle(received)), flight.to.visible, "");
                    }
                    // A message that never arrives ends between the lifelines.
                    None => {
                        let open_end = start + 40.0 * (end - start).signum();
                        self.draw_wire((start, y), (open_end, y + 0.7 * ROW_HEIGHT), true, " lost");
                    }
                }
            }
            Item::Stray { to, from_left, .. } => {
                let end = self.x(to);
                let start = if *from_left { end - 26.0 } else { end + 26.0 };
                self.draw_wire((start, y), (end, y), to.visible, " lost");
            }
            Item::Arrival(_) | Item::Note { .. } | Item::States(_) => {}
        }
    }

    /// Draws the labels, actions and states of a row.
    fn draw_labels(&mut self, row: usize) {
        let y = middle(row);
        if let Some(line) = self.layout.line_name(row) {
            self.draw_text("line", "start", (MARGIN, y + 4.0), &line);
        }
        let layout = self.layout;
        match &layout.rows[row].item {
            Item::Arrow { from, to, message } => {
                let middle = (self.x(from) + self.x(to)) / 2.0;
                self.draw_text("label", "middle", (middle, y - 5.0), message);
                self.draw_dot(from, y);
                self.draw_dot(to, y);
            }
            Item::Departure(index) => {
                let flight = &layout.flights[*index];
                let start = self.x(&flight.from);
                let label = flight.label(&layout.names);
                if start < self.x(&flight.to) {
                    self.draw_text("label", "start", (start + 10.0, y - 4.0), &label);
                } else {
                    self.draw_text("label", "end", (start - 10.0, y - 4.0), &label);
                }
                self.draw_dot(&flight.from, y);
            }
            Item::Arrival(index) => self.draw_dot(&layout.flights[*index].to, y),
            Item::Stray {
                to,
                from_left,
                message,
            } => {
                let x = self.x(to) + if *from_left { 10.0 } else { 32.0 };
                self.draw_text("label", "start", (x, y + 4.0), message);
                self.draw_dot(to, y);
            }
            Item::Note { point, text } => self.draw_note(point, y, text),
            Item::States(states) => {
                for (point, state) in states {
                    self.draw_state(point, y, state);
                }
            }
        }
    }

    /// Draws a local action: its mark, and the note beside it.
    fn draw_note(&mut self, point: &LifelinePoint, y: f64, text: &str) {
        let x = self.x(point);
        if point.visible {
            let _ = writeln!(
                self.svg_text,
                "<rect class=\"act\" x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"/>",
                x - 3.5,
                y - 3.5
            );
        }
        self.draw_dot(point, y);
        self.draw_text("note", "start", (x + 10.0, y + 4.0), text);
    }

    /// Draws a state in a box on its lifeline; dashed if the home cannot observe the step.
    fn draw_state(&mut self, point: &LifelinePoint, y: f64, state: &str) {
        let half = state.chars().count() as f64 * CHARACTER_WIDTH / 2.0 + 8.0;
        let x = self.x(point);
        let _ = writeln!(
            self.svg_text,
            "<rect class=\"{}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"20\" rx=\"10\"/>",
            if point.visible { "state" } else { "unseen" },
            x - half,
            y - 10.0,
            2.0 * half
        );
        self.draw_text("value", "middle", (x, y + 4.0), state);
    }

    /// Horizontal position of a point's lifeline, in pixels.
    fn x(&self, end: &LifelinePoint) -> f64 {
        self.lifeline_x[end.agent]
    }

    /// Draws a line with an arrowhead, which keeps clearance of a dot at its end. `visible` is false if there is
    /// such a dot; `class` is appended to the class names of the line.
    fn draw_wire(
        &mut self,
        (x0, y0): (f64, f64),
        (x1, y1): (f64, f64),
        visible: bool,
        class: &str,
    ) {
        let length = (x1 - x0).hypot(y1 - y0).max(1.0);
        let (dx, dy) = ((x1 - x0) / length, (y1 - y0) / length);
        let clearance = if visible { 0.0 } else { 3.5 };
        let (x1, y1) = (x1 - clearance * dx, y1 - clearance * dy);
        let (base_x, base_y) = (x1 - 9.0 * dx, y1 - 9.0 * dy);
        let _ = writeln!(
            self.svg_text,
            "<path class=\"wire{class}\" d=\"M{x0:.1} {y0:.1}L{base_x:.1} {base_y:.1}\"/>\n\
             <path class=\"tip\" d=\"M{x1:.1} {y1:.1}L{:.1} {:.1}L{:.1} {:.1}Z\"/>",
            base_x - 4.0 * dy,
            base_y + 4.0 * dx,
            base_x + 4.0 * dy,
            base_y - 4.0 * dx
        );
    }

    /// Draws the dot of a step that the home cannot observe; nothing for other steps.
    fn draw_dot(&mut self, end: &LifelinePoint, y: f64) {
        if !end.visible {
            let x = self.x(end);
            let _ = writeln!(
                self.svg_text,
                "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>"
            );
        }
    }

    /// Draws text with this CSS class. `anchor` is that of SVG: `start`, `middle` or `end`.
    fn draw_text(&mut self, class: &str, anchor: &str, (x, y): (f64, f64), text: &str) {
        let text = escape(text);
        let attributes = format!("x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"");
        // A white halo separates the text from lines below. It is a separate text element, because renderers without
        // `paint-order` would draw the halo over the letters.
        if matches!(class, "label" | "note") {
            let _ = writeln!(
                self.svg_text,
                "<text class=\"{class} halo\" aria-hidden=\"true\" {attributes}>{text}</text>"
            );
        }
        let _ = writeln!(
            self.svg_text,
            "<text class=\"{class}\" {attributes}>{text}</text>"
        );
    }
}

/// Escapes text as XML character data. Characters that XML does not allow become the replacement character.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ if character.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}
