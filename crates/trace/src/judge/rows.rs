//! Rows: the response of an agent's table to an event, compared with the steps that follow in the trace.

use super::messages::InFlightMessage;
use super::{CheckResult, Line, TraceChecker};
use crate::table::{Agent, Response, RowEffect, Table, Trigger};
use cohkit_base::sequence::Action;
use cohkit_protocol::controller::Event;

/// Trigger of a row.
pub(super) struct Cause {
    /// Event that triggers the row.
    pub(super) event: Event,
    /// Remote whose row it is; `None` for the home.
    pub(super) actor: Option<usize>,
    /// Received message, if any.
    pub(super) received: Option<InFlightMessage>,
}

impl TraceChecker<'_> {
    /// Applies an event to an agent. The following steps must report the effects that its table requires. `position`
    /// is that of the step after the event.
    pub(super) fn apply_row(&mut self, line: &mut Line, cause: Cause) -> CheckResult {
        let Cause {
            event,
            actor,
            received,
        } = cause;
        if let Event::Local(local) = event {
            let requested_operation = line.requested_operation.take();
            if self.is_complete && requested_operation != Some(local.into()) {
                return Err("the device has not requested this operation".into());
            }
        }
        let (table, agent) = self.table_and_agent(actor, line);
        let no_fields = Vec::new();
        let trigger = Trigger {
            event,
            sender: received.as_ref().and_then(|flight| flight.from),
            actor,
            home: self.home_number(),
            fields: received
                .as_ref()
                .map_or(&no_fields, |flight| &flight.sent.fields),
        };
        let state = &table.controller.states[agent.state];
        let response = match table.controller.rules.iter().any(|row| row.chooses()) {
            true => self.respond_with_choice(actor, table, agent, &trigger)?,
            false => table.respond(agent, &trigger)?,
        };
        let (next_agent, effects) = match response {
            Response::Row {
                next_agent,
                effects,
            } => (next_agent, effects),
            Response::Refuse if actor.is_none() => {
                let Event::Local(local) = event else {
                    line.unreported_answers.push("is refused its unlock".into());
                    return Ok(());
                };
                let name = &self.home_table.controller.locals[usize::from(local)].name;
                line.unreported_answers.push(format!("is refused {name}"));
                return self.check_report(None, &format!("refuses {name}"));
            }
            Response::NoRow => {
                return Err(format!("there is no row for this in {}", state.name));
            }
            Response::Stall | Response::Refuse => {
                return Err(format!("in {} this has to wait", state.name));
            }
        };
        self.summary.rows += 1;
        match actor {
            Some(actor) => self.apply_remote_row(line, actor, event, received, next_agent, effects),
            None => self.apply_home_row(line, event, received, next_agent, effects),
        }
    }

    /// Response of a table whose rows may choose a member of a set. Selects the choice with the messages that follow in
    /// the trace, and the lowest one of several.
    fn respond_with_choice(
        &self,
        actor: Option<usize>,
        table: &Table,
        agent: &Agent,
        trigger: &Trigger,
    ) -> CheckResult<Response> {
        let acting_lifeline = self.lifeline(actor);
        let steps = &self.sequence.steps[self.position.min(self.sequence.steps.len())..];
        let steps = steps.iter().take_while(|step| {
            step.agent == acting_lifeline && !matches!(step.action, Action::Receive { .. })
        });
        let reported_receivers: Vec<usize> = steps
            .filter_map(|step| match &step.action {
                Action::Send { to, .. } => Some(*to),
                _ => None,
            })
            .collect();
        let matches_sends = |response: &Response| {
            let Response::Row { effects, .. } = response else {
                return false;
            };
            let mut receivers = reported_receivers.iter();
            effects.iter().all(|effect| match effect {
                RowEffect::Send(sent) => match (sent.to, receivers.next()) {
                    (Some(to), Some(&receiver)) => to == receiver,
                    (None, next) => next.is_some(),
                    (Some(_), None) => false,
                },
                _ => true,
            })
        };
        let first = table.respond(agent, trigger)?;
        if matches_sends(&first) {
            return Ok(first);
        }
        for choice in 1..table.kinds.len() {
            match table.respond_choosing(agent, trigger, choice) {
                Ok(Some(response)) if matches_sends(&response) => return Ok(response),
                _ => {}
            }
        }
        Ok(first)
    }

    /// Checks the state after a row. The trace must report a changed state, and may report an unchanged one.
    pub(super) fn check_next_state(
        &mut self,
        line: &mut Line,
        actor: Option<usize>,
        next_agent: Agent,
    ) -> CheckResult {
        let (table, current) = self.table_and_agent(actor, line);
        let next_step = self.sequence.steps.get(self.position);
        let next_step = next_step
            .filter(|step| step.agent == self.lifeline(actor) && self.belongs_to_row(step));
        let state_text = self.state_text(table, &next_agent);
        let state_changes = state_text != self.state_text(table, current);
        match next_step.map(|step| &step.action) {
            Some(Action::Becomes { state }) => {
                if state_text != *state {
                    let agent = self.name(actor);
                    return Err(format!(
                        "{agent} becomes {state}; its row leads to {state_text}"
                    ));
                }
                self.position += 1;
            }
            _ if state_changes => {
                return Err(format!(
                    "{} must enter {state_text} in this step",
                    self.name(actor)
                ))
            }
            _ => {}
        }
        let lifeline = self.lifeline(actor);
        if let Some(registers) = &mut self.registers {
            registers[lifeline].clone_from(&next_agent.values);
        }
        match actor {
            Some(actor) => line.remotes[actor].agent = next_agent,
            None => line.home = next_agent,
        }
        Ok(())
    }
}
