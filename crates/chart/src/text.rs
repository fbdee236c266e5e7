//! Charts as text for terminals, drawn row by row into lines of characters.

use crate::layout::{Item, Layout, LifelinePoint};
use cohkit_base::sequence::Sequence;
use std::ops::Range;

/// Options of text charts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Text {
    /// Maximum width in columns, if possible. Names that do not fit are shortened, and listed in full below the chart.
    /// `None` uses the width that the names need.
    pub width: Option<usize>,
    /// True to use ASCII characters only.
    pub ascii: bool,
}

/// Maximum width of a note that may push lifelines apart, in columns; longer notes are wrapped.
const MAX_NOTE_WIDTH: usize = 24;
/// Charts with more rows than this repeat the agents' names at the bottom.
const MAX_ROWS_ON_SCREEN: usize = 24;

/// Draws the sequence as text, with a newline after each row.
///
/// Returns an empty string for a sequence without agents.
pub fn text(sequence: &Sequence, options: &Text) -> String {
    let layout = Layout::new(sequence);
    if layout.names.is_empty() {
        return String::new();
    }
    let glyphs = if options.ascii { &ASCII } else { &UNICODE };
    let columns = Columns::new(&layout, options.width);
    Page {
        layout: &layout,
        columns,
        glyphs,
        lines: Vec::new(),
        shortened: Vec::new(),
    }
    .draw()
}

/// Characters of a drawing.
struct Glyphs {
    /// Lifeline.
    life: char,
    /// Vertical part of a flight.
    flight: char,
    /// Horizontal part of a message.
    wire: char,
    /// Crossing of a horizontal part with a lifeline or a flight.
    cross: char,
    /// Arrowhead to the right.
    right: char,
    /// Arrowhead to the left.
    left: char,
    /// Start of a message to the right.
    leaves_right: char,
    /// Start of a message to the left.
    leaves_left: char,
    /// Corner of a wire that turns down, coming from the left and from the right.
    down: [char; 2],
    /// Corner of a wire that turns into the receiver, to the right and to the left.
    turn: [char; 2],
    /// Mark of a local action.
    action: char,
    /// Mark of a step that the home cannot observe.
    hidden: char,
    /// End of a shortened name.
    ellipsis: char,
    /// True if other characters in names must be replaced.
    ascii: bool,
}

/// Box-drawing characters.
const UNICODE: Glyphs = Glyphs {
    life: '│',
    flight: '╎',
    wire: '─',
    cross: '┼',
    right: '▶',
    left: '◀',
    leaves_right: '├',
    leaves_left: '┤',
    down: ['┐', '┌'],
    turn: ['└', '┘'],
    action: '■',
    hidden: '•',
    ellipsis: '…',
    ascii: false,
};

/// Characters for terminals without Unicode.
const ASCII: Glyphs = Glyphs {
    life: '|',
    flight: ':',
    wire: '-',
    cross: '+',
    right: '>',
    left: '<',
    leaves_right: '+',
    leaves_left: '+',
    down: ['.', '.'],
    turn: ['\'', '\''],
    action: '#',
    hidden: '*',
    ellipsis: '~',
    ascii: true,
};

/// Horizontal positions, in columns from the left.
struct Columns {
    /// Lifelines.
    life: Vec<usize>,
    /// Vertical part of each flight.
    lane: Vec<usize>,
    /// Width for notes to the right of the last lifeline.
    right: usize,
    /// Width of the column with the names of cache lines.
    gutter: usize,
    /// Half the width of the text centred on each lifeline.
    half: Vec<usize>,
}

/// Width of a text in columns.
fn width(text: &str) -> usize {
    text.chars().count()
}

/// Widths of the texts of a chart, in columns.
struct LabelWidths {
    /// Half the width of the text centred on each lifeline.
    half: Vec<usize>,
    /// Width of the widest note to the right of each lifeline.
    notes: Vec<usize>,
    /// Labels of arrows between two lifelines.
    arrows: Vec<ArrowLabel>,
}

/// Label of an arrow.
struct ArrowLabel {
    /// Index of the sender's lifeline.
    from: usize,
    /// Index of the receiver's lifeline.
    to: usize,
    /// Width of the label, in columns.
    width: usize,
}

impl ArrowLabel {
    /// Gaps between lifelines that the arrow crosses. Gap N lies between lifelines N and N + 1.
    fn gaps(&self) -> Range<usize> {
        self.from.min(self.to)..self.from.max(self.to)
    }
}

/// Two numbers for a lifeline: one for its left side, one for its right side.
#[derive(Clone, Copy)]
struct Sides {
    left: usize,
    right: usize,
}

impl LabelWidths {
    /// Measures all texts of a layout.
    fn new(layout: &Layout) -> LabelWidths {
        let mut half: Vec<usize> = layout
            .names
            .iter()
            .map(|name| width(name).div_ceil(2))
            .collect();
        let mut arrows = Vec::new();
        let mut notes = vec![0; layout.names.len()];
        for row in &layout.rows {
            match &row.item {
                Item::Arrow { from, to, message } => {
                    arrows.push(ArrowLabel {
                        from: from.agent,
                        to: to.agent,
                        width: width(message),
                    });
                }
                Item::Departure(flight) => {
                    let flight = &layout.flights[*flight];
                    arrows.push(ArrowLabel {
                        from: flight.from.agent,
                        to: flight.to.agent,
                        width: width(&flight.message),
                    });
                }
                Item::Arrival(flight) => {
                    let flight = &layout.flights[*flight];
                    let note = &mut notes[flight.to.agent];
                    *note = (*note).max(width(&flight.message));
                }
                Item::Stray { to, message, .. } => {
                    notes[to.agent] = notes[to.agent].max(width(message) + 4);
                }
                Item::Note { point, text } => {
                    notes[point.agent] = notes[point.agent].max(width(text).min(MAX_NOTE_WIDTH));
                }
                Item::States(states) => {
                    for (end, state) in states {
                        half[end.agent] = half[end.agent].max(width(state).div_ceil(2) + 1);
                    }
                }
            }
        }
        LabelWidths {
            half,
            notes,
            arrows,
        }
    }
}

/// Columns of the vertical parts of flights. `life` are the columns of the lifelines; `lanes` and `clearance` are the
/// results of [`lanes`] and [`clearances`].
fn lane_positions(
    layout: &Layout,
    life: &[usize],
    lanes: &[usize],
    clearance: &[Sides],
) -> Vec<usize> {
    layout
        .flights
        .iter()
        .zip(lanes)
        .map(|(flight, lane)| {
            let to = life[flight.to.agent];
            let Sides { left, right } = clearance[flight.to.agent];
            if flight.from.agent < flight.to.agent {
                to - left - 2 * lane
            } else {
                to + right + 2 * lane
            }
        })
        .collect()
}

impl Columns {
    /// Assigns columns. With a `limit` on the total width, gaps and margins shrink towards their minimum.
    fn new(layout: &Layout, limit: Option<usize>) -> Columns {
        let (lanes, lane_counts) = lanes(layout);
        let clearance = clearances(layout);
        let labels = LabelWidths::new(layout);
        let mut widths = Widths::new(&labels, &flight_columns(&lane_counts, &clearance));
        let last = layout.names.len() - 1;
        widths.right += 2 * lane_counts[last].right;

        // Column with the names of cache lines.
        let names = (0..layout.rows.len()).filter_map(|row| layout.line_name(row));
        let gutter = names.map(|name| width(&name) + 2).max().unwrap_or(0);
        if let Some(limit) = limit {
            widths.shrink(limit.saturating_sub(gutter));
        }

        let mut life = vec![gutter + widths.start];
        for gap in &widths.gaps {
            life.push(life[life.len() - 1] + gap);
        }
        let lane = lane_positions(layout, &life, &lanes, &clearance);
        Columns {
            life,
            lane,
            right: widths.right,
            gutter,
            half: labels.half,
        }
    }
}

/// Columns of each gap between lifelines that are used by flights to the lifelines on either side.
fn flight_columns(lane_counts: &[Sides], clearance: &[Sides]) -> Vec<usize> {
    let lanes_width = |lanes: usize, clearance: usize| match lanes {
        0 => 0,
        _ => 2 * lanes + clearance - 3,
    };
    (0..lane_counts.len() - 1)
        .map(|gap| {
            lanes_width(lane_counts[gap].right, clearance[gap].right)
                + lanes_width(lane_counts[gap + 1].left, clearance[gap + 1].left)
        })
        .collect()
}

/// Widths of the parts of a chart from left to right, in columns.
struct Widths {
    /// Text to the left of the first lifeline.
    start: usize,
    /// Gaps between neighbouring lifelines.
    gaps: Vec<usize>,
    /// Minimum of each gap.
    min_gaps: Vec<usize>,
    /// Text to the right of the last lifeline.
    right: usize,
}

impl Widths {
    /// Widths at which no text is shortened or wrapped. `flight_columns` are the columns of each gap that flights use.
    fn new(labels: &LabelWidths, flight_columns: &[usize]) -> Widths {
        let LabelWidths {
            half,
            notes,
            arrows,
        } = labels;
        let min_gaps: Vec<usize> = flight_columns.iter().map(|columns| 6 + columns).collect();
        let mut gaps: Vec<usize> = (0..min_gaps.len())
            .map(|gap| {
                min_gaps[gap]
                    .max(half[gap] + half[gap + 1] + 3)
                    .max(notes[gap] + 4 + flight_columns[gap])
            })
            .collect();
        // Labels that span a single gap come first; longer ones share what is missing among their gaps.
        let mut arrows: Vec<&ArrowLabel> = arrows.iter().collect();
        arrows.sort_by_key(|arrow| arrow.gaps().len());
        for arrow in arrows {
            let crossed = arrow.gaps();
            let available: usize = gaps[crossed.clone()].iter().sum();
            let flight_columns: usize = flight_columns[crossed.clone()].iter().sum();
            let missing = (arrow.width + 6 + flight_columns).saturating_sub(available);
            let share = missing.div_ceil(crossed.len());
            for gap in &mut gaps[crossed] {
                *gap += share;
            }
        }
        let last = half.len() - 1;
        Widths {
            start: half[0],
            gaps,
            min_gaps,
            right: half[last].max(notes[last] + 2),
        }
    }

    /// Shrinks all parts in proportion until the chart fits in `limit` columns, but none below its minimum.
    fn shrink(&mut self, limit: usize) {
        let total = self.start + self.gaps.iter().sum::<usize>() + 1 + self.right;
        if total <= limit {
            return;
        }
        let min_right = self.right.min(12);
        let min_start = self.start.min(3);
        let fixed = min_start + self.min_gaps.iter().sum::<usize>() + 1 + min_right;
        let spare_width = limit.saturating_sub(fixed);
        let excess = (total - fixed).max(1);
        let shrink = |preferred: usize, minimum: usize| {
            minimum + (preferred - minimum) * spare_width.min(excess) / excess
        };
        for (gap, min_gap) in self.gaps.iter_mut().zip(&self.min_gaps) {
            *gap = shrink(*gap, *min_gap);
        }
        self.right = shrink(self.right, min_right);
        self.start = shrink(self.start, min_start);
    }
}

/// Lane of each flight, counted from the receiver's lifeline, and the number of lanes to the left and right of each
/// lifeline.
fn lanes(layout: &Layout) -> (Vec<usize>, Vec<Sides>) {
    let mut lanes: Vec<usize> = Vec::new();
    let mut lane_counts = vec![Sides { left: 0, right: 0 }; layout.names.len()];
    for (index, flight) in layout.flights.iter().enumerate() {
        let from_left = flight.from.agent < flight.to.agent;
        let used_lanes: Vec<usize> = (0..index)
            .filter(|&earlier| {
                let earlier_flight = &layout.flights[earlier];
                earlier_flight.to.agent == flight.to.agent
                    && (earlier_flight.from.agent < earlier_flight.to.agent) == from_left
                    && earlier_flight
                        .received_row
                        .is_none_or(|row| row >= flight.sent_row)
            })
            .map(|earlier| lanes[earlier])
            .collect();
        let lane = (0..).find(|lane| !used_lanes.contains(lane)).unwrap_or(0);
        let Sides { left, right } = &mut lane_counts[flight.to.agent];
        let side = if from_left { left } else { right };
        *side = (*side).max(lane + 1);
        lanes.push(lane);
    }
    (lanes, lane_counts)
}

/// Distance to the left and right of each lifeline at which flights descend, so that they are clear of the states shown
/// in the meantime.
fn clearances(layout: &Layout) -> Vec<Sides> {
    // At larger distances, a flight passes behind the state.
    const MAX_CLEARANCE: usize = 10;
    let mut clearance = vec![Sides { left: 3, right: 3 }; layout.names.len()];
    for flight in &layout.flights {
        let end = flight.received_row.unwrap_or(layout.rows.len());
        for row in &layout.rows[flight.sent_row..end] {
            let Item::States(states) = &row.item else {
                continue;
            };
            for (_, state) in states
                .iter()
                .filter(|(point, _)| point.agent == flight.to.agent)
            {
                let Sides { left, right } = &mut clearance[flight.to.agent];
                let half = width(state).div_ceil(2);
                *left = (*left).max(half + 2).min(MAX_CLEARANCE);
                *right = (*right).max(half + 3).min(MAX_CLEARANCE);
            }
        }
    }
    clearance
}

/// A chart being written.
struct Page<'a> {
    /// Rows and lifelines.
    layout: &'a Layout,
    /// Horizontal positions.
    columns: Columns,
    /// Characters of the drawing.
    glyphs: &'a Glyphs,
    /// Lines drawn so far, as characters.
    lines: Vec<Vec<char>>,
    /// Shortened names, with the full names.
    shortened: Vec<(String, String)>,
}

impl Page<'_> {
    /// Draws the whole chart.
    fn draw(mut self) -> String {
        self.write_names();
        self.draw_lifelines(0);
        for row in 0..self.layout.rows.len() {
            self.draw_row(row);
        }
        let end = self.layout.rows.len();
        if end > 0 {
            self.draw_lifelines(end);
        }
        if end > MAX_ROWS_ON_SCREEN {
            self.write_names();
        }
        let indent = |line: &Vec<char>| line.iter().take_while(|&&c| c == ' ').count();
        let margin = self.lines.iter().map(indent).min().unwrap_or(0);
        let mut text = String::new();
        for line in &self.lines {
            let line: String = line[margin..].iter().collect();
            text += line.trim_end();
            text.push('\n');
        }
        text += &self.lost_flights_text();
        if !self.shortened.is_empty() {
            text += "\nshortened:\n";
            for (short, full) in &self.shortened {
                text += &format!("  {short} is {full}\n");
            }
        }
        if self.glyphs.ascii {
            text = text
                .chars()
                .map(|c| if c.is_ascii() { c } else { '?' })
                .collect();
        }
        text
    }

    /// Sentence below the chart with the messages that never arrive; empty if there are none.
    fn lost_flights_text(&self) -> String {
        let names = &self.layout.names;
        let flights = self.layout.flights.iter();
        let lost_flights = flights.filter(|flight| flight.received_row.is_none());
        let messages: Vec<String> = lost_flights
            .map(|flight| {
                let (from, to) = (&names[flight.from.agent], &names[flight.to.agent]);
                format!("{} from {from} to {to}", flight.message)
            })
            .collect();
        match messages.is_empty() {
            true => String::new(),
            false => format!("\nstill in flight: {}\n", messages.join(", ")),
        }
    }

    /// Writes the names of the agents.
    fn write_names(&mut self) {
        let mut line = Vec::new();
        for agent in 0..self.layout.names.len() {
            let name = self.shorten(&self.layout.names[agent], self.max_text_width(agent));
            overwrite(
                &mut line,
                centred_start(self.columns.life[agent], &name),
                &name,
            );
        }
        self.lines.push(line);
    }

    /// Maximum width of text centred on a lifeline.
    fn max_text_width(&self, agent: usize) -> usize {
        let Columns {
            life,
            half,
            right,
            gutter,
            ..
        } = &self.columns;
        // Neighbours share the gap; a label that needs less leaves the remainder to its neighbour.
        let width_towards = |neighbour: usize| {
            let gap = life[agent].abs_diff(life[neighbour]).saturating_sub(3);
            gap - half[neighbour].min(gap / 2)
        };
        let left = if agent == 0 {
            life[0] - gutter
        } else {
            width_towards(agent - 1)
        };
        let right = if agent + 1 == life.len() {
            *right
        } else {
            width_towards(agent + 1)
        };
        2 * left.min(right) + 1
    }

    /// Writes a line with only the lifelines and the flights of that row.
    fn draw_lifelines(&mut self, row: usize) {
        let mut line = Vec::new();
        for (flight, &lane) in self.layout.flights.iter().zip(&self.columns.lane) {
            if flight.sent_row < row && flight.received_row.is_none_or(|received| received >= row) {
                overwrite(&mut line, lane, &self.glyphs.flight.to_string());
            }
        }
        for &life in &self.columns.life {
            overwrite(&mut line, life, &self.glyphs.life.to_string());
        }
        self.lines.push(line);
    }

    /// Draws a row of the layout.
    fn draw_row(&mut self, row: usize) {
        self.draw_lifelines(row);
        let (layout, glyphs) = (self.layout, self.glyphs);
        if let Some(name) = layout.line_name(row) {
            self.write(0, &name);
        }
        match &layout.rows[row].item {
            Item::Arrow { from, to, message } => {
                let (start, end) = (self.lifeline_column(from), self.lifeline_column(to));
                self.draw_wire(start, end, message);
                self.draw_tail(start, end, from);
                self.draw_head(start, end, to);
            }
            Item::Departure(index) => {
                let flight = &layout.flights[*index];
                let (start, end) = (
                    self.lifeline_column(&flight.from),
                    self.columns.lane[*index],
                );
                self.draw_wire(start, end, &flight.message);
                self.draw_tail(start, end, &flight.from);
                self.write_char(end, glyphs.down[usize::from(start > end)]);
            }
            Item::Arrival(index) => {
                let flight = &layout.flights[*index];
                let (start, end) = (self.columns.lane[*index], self.lifeline_column(&flight.to));
                self.draw_wire(start, end, "");
                self.write_char(start, glyphs.turn[usize::from(start > end)]);
                self.draw_head(start, end, &flight.to);
                self.write_note(row, &flight.to, &flight.message);
            }
            Item::Stray {
                to,
                from_left,
                message,
            } => {
                let end = self.lifeline_column(to);
                let start = if *from_left {
                    end.saturating_sub(3)
                } else {
                    end + 3
                };
                self.draw_wire(start, end, "");
                self.write_char(start, '?');
                self.draw_head(start, end, to);
                self.write_note(row, to, message);
            }
            Item::Note { point, text } => {
                let mark = if point.visible {
                    glyphs.action
                } else {
                    glyphs.hidden
                };
                self.write_char(self.lifeline_column(point), mark);
                self.write_note(row, point, text);
            }
            Item::States(states) => {
                for (point, state) in states {
                    let available = self.max_text_width(point.agent).saturating_sub(3);
                    let state = format!("[{}]", self.shorten(state, available));
                    let column = centred_start(self.lifeline_column(point), &state);
                    self.write(column, &state);
                    if !point.visible {
                        self.write_char(column + width(&state), glyphs.hidden);
                    }
                }
            }
        }
    }

    /// Column of a lifeline.
    fn lifeline_column(&self, end: &LifelinePoint) -> usize {
        self.columns.life[end.agent]
    }

    /// Line being written.
    fn current_line(&mut self) -> &mut Vec<char> {
        if self.lines.is_empty() {
            self.lines.push(Vec::new());
        }
        let last = self.lines.len() - 1;
        &mut self.lines[last]
    }

    /// Writes text into the current line.
    fn write(&mut self, column: usize, text: &str) {
        overwrite(self.current_line(), column, text);
    }

    /// Writes a character into the current line.
    fn write_char(&mut self, column: usize, glyph: char) {
        overwrite(self.current_line(), column, glyph.encode_utf8(&mut [0; 4]));
    }

    /// Draws a horizontal line between two columns, exclusive, with a label.
    fn draw_wire(&mut self, start: usize, end: usize, label: &str) {
        let (left, right) = (start.min(end) + 1, start.max(end));
        let glyphs = self.glyphs;
        for column in left..right {
            let crossed = self
                .current_line()
                .get(column)
                .is_some_and(|&glyph| glyph != ' ');
            self.write_char(column, if crossed { glyphs.cross } else { glyphs.wire });
        }
        if label.is_empty() {
            return;
        }
        // Place the label in the first gap that is wide enough. If there is none, it covers lifelines.
        let mut gaps: Vec<(usize, usize)> = Vec::new();
        let mut from = left;
        for &life in self
            .columns
            .life
            .iter()
            .filter(|life| (left..right).contains(life))
        {
            gaps.push((from, life));
            from = life + 1;
        }
        gaps.push((from, right));
        if start > end {
            gaps.reverse();
        }
        let fits = |&(from, to): &(usize, usize)| to - from >= width(label) + 4;
        let (from, to) = gaps.into_iter().find(fits).unwrap_or((left, right));
        let label = self.shorten(label, (to - from).saturating_sub(3));
        let label = format!(" {label} ");
        self.write(from + (to - from).saturating_sub(width(&label)) / 2, &label);
    }

    /// Draws the mark where a message leaves a lifeline.
    fn draw_tail(&mut self, start: usize, end: usize, point: &LifelinePoint) {
        let mark = match (point.visible, start < end) {
            (false, _) => self.glyphs.hidden,
            (true, true) => self.glyphs.leaves_right,
            (true, false) => self.glyphs.leaves_left,
        };
        self.write_char(start, mark);
    }

    /// Draws the arrowhead before a lifeline, and a dot if the home cannot observe the arrival.
    fn draw_head(&mut self, start: usize, end: usize, point: &LifelinePoint) {
        if start < end {
            self.write_char(end - 1, self.glyphs.right);
        } else {
            self.write_char(end + 1, self.glyphs.left);
        }
        if !point.visible {
            self.write_char(end, self.glyphs.hidden);
        }
    }

    /// Writes a note to the right of a lifeline, wrapped over further lines if necessary.
    fn write_note(&mut self, row: usize, point: &LifelinePoint, text: &str) {
        let life = self.lifeline_column(point);
        let next = match self.columns.life.get(point.agent + 1) {
            Some(next) => *next,
            None => life + self.columns.right + 1,
        };
        // Keep flights visible that descend beside the lifeline.
        let flights = self.layout.flights.iter().zip(&self.columns.lane);
        let start = flights
            .filter(|(flight, &lane)| {
                flight.sent_row <= row
                    && flight.received_row.is_none_or(|received| received >= row)
                    && lane > life
                    && flight.to.agent == point.agent
            })
            .map(|(_, &lane)| lane + 2)
            .chain(self.note_start(row, life))
            .fold(life + 2, usize::max);
        let available = next.saturating_sub(start + 1).max(4);
        for (index, line) in wrap(text, available).iter().enumerate() {
            if index > 0 {
                self.draw_lifelines(row + 1);
            }
            let line = self.shorten(line, available);
            self.write(start, &line);
        }
    }

    /// Start column of a note beside a message of unknown origin from the right.
    fn note_start(&self, row: usize, life: usize) -> Option<usize> {
        matches!(
            self.layout.rows[row].item,
            Item::Stray {
                from_left: false,
                ..
            }
        )
        .then_some(life + 5)
    }

    /// Shortens a name to fit, and records the full name for the list below the chart.
    fn shorten(&mut self, name: &str, max_width: usize) -> String {
        if width(name) <= max_width {
            return name.to_string();
        }
        let mut short: String = name.chars().take(max_width.saturating_sub(1)).collect();
        short.push(self.glyphs.ellipsis);
        let entry = (short.clone(), name.to_string());
        if !self.shortened.contains(&entry) {
            self.shortened.push(entry);
        }
        short
    }
}

/// Start column of text centred on a lifeline.
fn centred_start(life: usize, text: &str) -> usize {
    life.saturating_sub((width(text) - usize::from(width(text) > 0)) / 2)
}

/// Overwrites a line from a column on.
fn overwrite(line: &mut Vec<char>, column: usize, text: &str) {
    for (column, c) in (column..).zip(text.chars()) {
        if line.len() <= column {
            line.resize(column + 1, ' ');
        }
        line[column] = c;
    }
}

/// Wraps words into lines of at most `max_width` characters; no word may be longer.
fn wrap(text: &str, max_width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= max_width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}
