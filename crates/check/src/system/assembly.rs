//! Assembly of a system's model: its size, its rules, and the data for reports.

use cohkit_base::words::counted;
use cohkit_engine::explain::Remark;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::{Protocol, System as Sized};
use cohkit_protocol::remotes::Remotes;

use super::access_flow;
use super::accesses::add_accesses;
use super::deliveries::add_deliveries;
use super::device_steps::add_device_steps;
use super::layout::Layout;
use super::memory_steps::add_memory_steps;
use super::options::{Options, SystemError};
use super::outer_level::add_outer_level_steps;
use super::reactions::Reactions;
use super::system_model::{Mark, SystemModel};
use super::wait_for::other_remarks;

/// Returns the layout of a system of this size, which has no rules yet.
///
/// # Errors
/// A size or the channel capacity is out of range, the number of remotes of some kind is
/// missing, or a component cannot be declared.
pub(super) fn sized_layout<'p>(
    protocol: &'p Protocol,
    home: &'p Controller,
    remotes: impl Into<Remotes>,
    lines: u8,
    options: &'p Options,
) -> Result<Layout<'p>, SystemError> {
    let remotes_by_kind = remotes.into();
    let (kinds, remotes) = (protocol.kinds.len(), remotes_by_kind.total());
    if remotes_by_kind.kinds() != kinds && protocol.several_tables() {
        let names: Vec<&str> = protocol
            .kinds
            .iter()
            .map(|kind| kind.name.as_str())
            .collect();
        let names = names.join(", ");
        return Err(SystemError::Size(format!(
            "give the number of remotes of each kind: {names}"
        )));
    }
    let max_lines = u16::from(Sized::MAX_LINES).max(access_flow::lines(protocol).into());
    for (number, max, noun) in [
        (remotes, Sized::MAX_REMOTES.into(), "remotes"),
        (lines.into(), max_lines, "lines"),
    ] {
        if !(1..=max).contains(&number) {
            let error = format!("a system has 1 to {max} {noun}, not {number}");
            return Err(SystemError::Size(error));
        }
    }
    if u16::from(lines) < protocol.homes {
        let error = format!(
            "{} share the lines and each needs at least one: {lines} is too few",
            counted(protocol.homes, "home")
        );
        return Err(SystemError::Size(error));
    }
    if options.effective_capacity() == 0 {
        return Err(SystemError::Size(
            "a channel has a capacity of at least 1".into(),
        ));
    }
    Layout::new(protocol, home, remotes_by_kind, lines, options)
}

/// Data of the rules for reports on a model.
pub(super) struct Reports {
    /// Rows of each group of marks.
    marks: Vec<Mark>,
    /// Descriptions of messages in flight.
    remarks: Vec<Remark>,
}

/// Adds all rules. Returns the data for reports on them.
///
/// # Errors
/// A row has no meaning in its place.
pub(super) fn rules_of(layout: &Layout) -> Result<Reports, SystemError> {
    let mut reactions = Reactions::new(layout);
    add_accesses(&mut reactions)?;
    add_deliveries(&mut reactions)?;
    add_memory_steps(&mut reactions)?;
    add_device_steps(&mut reactions)?;
    add_outer_level_steps(layout)?;
    let Reactions { marks, remarks, .. } = reactions;
    Ok(Reports { marks, remarks })
}

/// Returns the finished model, with the data for reports on it.
///
/// # Errors
/// Something could not be lowered, or the model is not well formed.
pub(super) fn assemble(layout: Layout, reports: Reports) -> Result<SystemModel, SystemError> {
    // Agents come before messages in flight, as readers look for them first.
    let mut remarks = other_remarks(&layout);
    remarks.extend(reports.remarks);
    Ok(SystemModel {
        model: layout.finish()?,
        marks: reports.marks,
        remarks,
    })
}
