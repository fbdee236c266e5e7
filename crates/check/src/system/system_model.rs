//! A model and the data for reports on it: the rows of its marks, and descriptions of what waits.

use cohkit_engine::coverage::Coverage;
use cohkit_engine::explain::Remark;
use cohkit_engine::model::Model;
use cohkit_protocol::controller::{Controller, Event};

/// A model and the data for reports on it.
#[derive(Clone, Debug)]
pub struct SystemModel {
    /// The model.
    pub model: Model,
    /// Rows of each group of its [`cohkit_engine::model::Note::Mark`]: the group's number is the index.
    pub marks: Vec<Mark>,
    /// Descriptions of waiting agents and messages, agents first.
    pub remarks: Vec<Remark>,
}

/// Rows for one event that are one case of the model. The members of the mark's group are their states.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    /// True for rows of the home.
    pub home: bool,
    /// Event of the rows.
    pub event: Event,
    /// Index of the rows among the rows of this event and their state, in the order of the protocol file.
    pub case: usize,
    /// States of the rows: indices into the controller's states.
    pub states: Vec<usize>,
}

impl SystemModel {
    /// Returns the number of times that each row of one agent's controller was taken, by its index in
    /// [`Controller::rules`]. `None` for rows that are no step of the model: rows that stall or never occur, and
    /// accesses without effect. `home` is true for the home's controller; `coverage` is that of a search of this
    /// model.
    pub fn row_counts(
        &self,
        home: bool,
        controller: &Controller,
        coverage: &Coverage,
    ) -> Vec<Option<u128>> {
        let rows = controller.rules.iter().enumerate();
        let counts = rows.map(|(index, row)| {
            let earlier_rows = controller.rules[..index].iter();
            let case = earlier_rows
                .filter(|earlier| earlier.event == row.event && earlier.state == row.state)
                .count();
            let state = row.state.index();
            let marks = self.marks.iter().enumerate().filter(|(_, mark)| {
                let is_same_case = (mark.home, mark.event, mark.case) == (home, row.event, case);
                is_same_case && mark.states.contains(&state)
            });
            let row_counts = marks.map(|(group, _)| {
                let member = (group as u32, state as i64);
                coverage.marks.get(&member).copied().unwrap_or(0)
            });
            row_counts.reduce(|a, b| a.saturating_add(b))
        });
        counts.collect()
    }
}
