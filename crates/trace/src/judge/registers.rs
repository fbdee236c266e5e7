//! Registers: variables that an agent has once for all lines.

use super::{Line, TraceChecker};
use crate::table::Agent;
use cohkit_base::sequence::Action;

impl TraceChecker<'_> {
    /// Sets the initial values of registers, and determines whether this trace reports them along with states.
    pub(super) fn begin_registers(&mut self) {
        let tables =
            [&self.remote_table, &self.home_table].map(|table| &table.controller.variables);
        let registers = tables
            .into_iter()
            .flatten()
            .filter(|variable| variable.register);
        // A scalar is shown as `name=value`, an element of an array as `name[index]=value`.
        let names: Vec<String> = registers
            .flat_map(|variable| {
                [
                    format!(" {}=", variable.name),
                    format!(" {}[", variable.name),
                ]
            })
            .collect();
        if names.is_empty() {
            return;
        }
        self.has_register_reports = self.sequence.steps.iter().any(|step| match &step.action {
            Action::Becomes { state } => names.iter().any(|name| state.contains(name)),
            _ => false,
        });
        let Line { remotes, home, .. } = self.initial_line();
        let remotes = remotes.into_iter().map(|remote| remote.agent.values);
        let homes = vec![home.values; self.protocol.homes.into()];
        self.registers = Some(remotes.chain(homes).collect());
    }

    /// Updates the registers in the agents of a line, which may have changed since the line was last used.
    pub(super) fn refresh_registers(&self, line: &mut Line) {
        if self.registers.is_none() {
            return;
        }
        for (remote_index, remote) in line.remotes.iter_mut().enumerate() {
            self.refresh_agent(Some(remote_index), &mut remote.agent);
        }
        self.refresh_agent(None, &mut line.home);
    }

    /// Updates the registers in one agent, a remote or the current home.
    pub(super) fn refresh_agent(&self, actor: Option<usize>, agent: &mut Agent) {
        let Some(registers) = &self.registers else {
            return;
        };
        let table = if actor.is_some() {
            &self.remote_table
        } else {
            &self.home_table
        };
        let current_values = &registers[self.lifeline(actor)];
        let values_and_registers = agent
            .values
            .iter_mut()
            .zip(current_values)
            .zip(&table.controller.variables);
        for ((value, current_value), _) in
            values_and_registers.filter(|(_, variable)| variable.register)
        {
            value.clone_from(current_value);
        }
    }
}
