//! The module of an agent's step function.

use super::expression::{bare, Scope};
use super::layout::{Agent, Agents};
use super::statement::RowPrinter;
use crate::print::{describe, Origin};
use cohkit_diagnostics::line_column;
use cohkit_protocol::controller::{Effect, Event};
use cohkit_protocol::rows::{rows, Row};
use cohkit_protocol::terms::StateId;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Spaces before the statements of a row.
const ROW_INDENT: usize = 10;

/// Prints the module `PROTOCOL_AGENT_step`. Each row is one branch, with its line in the protocol file.
pub fn step(agents: &Agents, agent: &Agent, origin: &Origin) -> String {
    let printer = StepPrinter {
        agents,
        agent,
        origin,
        descriptions: descriptions(agents, agent),
    };
    printer.module()
}

/// A step function being printed.
struct StepPrinter<'a> {
    /// Agents of the protocol.
    agents: &'a Agents<'a>,
    /// Agent whose rows are printed.
    agent: &'a Agent,
    /// Origin of the rows.
    origin: &'a Origin<'a>,
    /// Rows as text, by number in the table; unreachable rows have none.
    descriptions: BTreeMap<usize, Row>,
}

/// Returns the rows of an agent's table as text, by their number in the table, without unreachable rows.
fn descriptions(agents: &Agents, agent: &Agent) -> BTreeMap<usize, Row> {
    let controller = agents.controller(agent);
    let mut numbers: Vec<usize> = (0..controller.rules.len()).collect();
    numbers.retain(|&number| controller.rules[number].effect != Effect::Never);
    numbers.sort_by_key(|&number| controller.rules[number].state);
    let described = rows(agents.protocol, controller).rows;
    numbers.into_iter().zip(described).collect()
}

impl StepPrinter<'_> {
    /// Prints the module.
    fn module(&self) -> String {
        let (agents, agent) = (self.agents, self.agent);
        let protocol = &agents.protocol.name;
        let name = format!("{protocol}_{}_step", agent.name);
        let title = match agent.is_home {
            true => format!("Step function of the home of {protocol}"),
            false => format!("Step function of the agent {} of {protocol}", agent.name),
        };
        let option = format!(
            "--agent {} --remotes {}",
            agent.name,
            agents.remotes_option()
        );
        let mut text = self
            .origin
            .header(&format!("{title}, combinational."), &option);
        let _ = writeln!(text, "module {name}\n  import {protocol}_agents_pkg::*;\n(");
        text += &self.ports();
        let _ = writeln!(text, ");");
        let type_of = |word: &str| agents.name(&[&agent.name, word]);
        let _ = writeln!(
            text,
            "  {} state;\n  {} trigger;\n  {} v;\n\n  always_comb begin",
            type_of("state_e"),
            agents.name(&["event_e"]),
            type_of("variables_t")
        );
        text += &self.defaults();
        text += &self.states();
        text += "    variables_o = v;\n  end\n\n";
        text += "  // Inputs of which the rows read a part.\n  logic unused;\n";
        let identity = if agent.is_home { "" } else { ", self_i" };
        let _ = writeln!(
            text,
            "  assign unused = ^{{state_i, variables_i, event_i, sender_i, fields_i{identity}}};\n\
             endmodule : {name}"
        );
        text
    }

    /// Prints the ports.
    fn ports(&self) -> String {
        let (agents, agent) = (self.agents, self.agent);
        let common = |word: &str| agents.name(&[word]);
        let own = |word: &str| agents.name(&[&agent.name, word]);
        let mut ports = vec![
            ("input ", own("state_e"), "state_i"),
            ("input ", own("variables_t"), "variables_i"),
            ("input ", common("event_e"), "event_i"),
            ("input ", common("remote_t"), "sender_i"),
        ];
        if !agent.is_home {
            ports.push(("input ", common("remote_t"), "self_i"));
        }
        let sends = format!("{} [{}:0]", own("send_t"), agent.sends - 1);
        ports.extend([
            ("input ", common("fields_t"), "fields_i"),
            ("output", common("effect_e"), "effect_o"),
            ("output", own("state_e"), "state_o"),
            ("output", own("variables_t"), "variables_o"),
            ("output", sends, "sends_o"),
        ]);
        match agent.is_home {
            true => ports.extend([
                ("output", common("memory_t"), "memory_o"),
                ("output", "logic".to_string(), "acknowledge_o"),
                ("output", common("event_e"), "operation_o"),
            ]),
            false => ports.extend([
                ("output", common("data_e"), "copy_o"),
                ("output", common("done_e"), "done_o"),
                ("output", "logic".to_string(), "perform_o"),
                ("output", "logic".to_string(), "abandon_o"),
            ]),
        }
        if agent.bulk_transitions > 0 {
            let bulk = format!("{} [{}:0]", own("bulk_t"), agent.bulk_transitions - 1);
            ports.push(("output", bulk, "bulk_o"));
        }
        ports.push(("output", "logic".to_string(), "fault_o"));
        let width = ports.iter().map(|(_, ty, _)| ty.len()).max().unwrap_or(0);
        let mut text = String::new();
        for (number, (direction, ty, name)) in ports.iter().enumerate() {
            let comma = if number + 1 < ports.len() { "," } else { "" };
            let _ = writeln!(text, "  {direction} {ty:width$} {name}{comma}");
        }
        text
    }

    /// Prints the outputs of an event that no row takes.
    fn defaults(&self) -> String {
        let agents = self.agents;
        let first_event = agents.event_name(agents.events[0]);
        // Verilator checks that a case covers the type of its signal, but not that of a port.
        let mut values = vec![
            ("state", "state_i".to_string()),
            ("trigger", "event_i".to_string()),
            ("v", "variables_i".to_string()),
            ("effect_o", agents.name(&["no_row"])),
            ("state_o", "state_i".to_string()),
            ("sends_o", "'0".to_string()),
        ];
        match self.agent.is_home {
            true => values.extend([
                ("memory_o", "'0".to_string()),
                ("acknowledge_o", "1'b0".to_string()),
                ("operation_o", first_event),
            ]),
            false => values.extend([
                ("copy_o", agents.name(&["no_data"])),
                ("done_o", agents.name(&["not_done"])),
                ("perform_o", "1'b0".to_string()),
                ("abandon_o", "1'b0".to_string()),
            ]),
        }
        if self.agent.bulk_transitions > 0 {
            values.push(("bulk_o", "'0".to_string()));
        }
        values.push(("fault_o", "1'b0".to_string()));
        let mut text = String::new();
        for (name, value) in values {
            let _ = writeln!(text, "    {name:13} = {value};");
        }
        text
    }

    /// Prints the branches of all states.
    fn states(&self) -> String {
        let mut text = String::from("    unique case (state)\n");
        let mut without_rows = Vec::new();
        for state in self.agent.states.clone() {
            match self.state(state) {
                Some(branches) => text += &branches,
                None => without_rows.push(self.state_name(state)),
            }
        }
        if !without_rows.is_empty() {
            let _ = writeln!(text, "      {}: ;", without_rows.join(", "));
        }
        text + "    endcase\n"
    }

    /// Name of a state of the table.
    fn state_name(&self, state: usize) -> String {
        self.agents.state_name(self.agent, StateId(state as u16))
    }

    /// Prints the branches of one state; `None` if it has no rows.
    fn state(&self, state: usize) -> Option<String> {
        let agents = self.agents;
        let groups = self.groups(state);
        if groups.is_empty() {
            return None;
        }
        let mut text = format!("      {}: unique case (trigger)\n", self.state_name(state));
        for (events, rules) in &groups {
            let names: Vec<String> = events.iter().map(|&e| agents.event_name(e)).collect();
            let names = names.join(", ");
            match self.scope(rules[0]).rule.guard {
                Some(_) => {
                    let _ = writeln!(text, "        {names}: begin");
                    text += &self.branches(rules);
                }
                None => {
                    let comment = self.comment(rules[0]);
                    let _ = writeln!(text, "        {names}: begin  // {comment}");
                    text += &self.row(rules[0], ROW_INDENT);
                }
            }
            text += "        end\n";
        }
        let has_row = |event: &Event| groups.iter().any(|(events, _)| events.contains(event));
        let mut without_row = agents
            .events
            .iter()
            .filter(|event| !has_row(event))
            .peekable();
        if without_row.peek().is_some() {
            let names: Vec<String> = without_row.map(|&e| agents.event_name(e)).collect();
            let _ = writeln!(
                text,
                "        // No row.\n        {}: ;",
                names.join(",\n        ")
            );
        }
        Some(text + "      endcase\n")
    }

    /// Returns the events that a state takes, with their rows in order. Events that one row of the file always stalls
    /// or refuses are one group.
    fn groups(&self, state: usize) -> Vec<(Vec<Event>, Vec<usize>)> {
        let rules = &self.agents.controller(self.agent).rules;
        let mut rows: BTreeMap<Event, Vec<usize>> = BTreeMap::new();
        for (number, rule) in rules.iter().enumerate() {
            if rule.state.index() == state {
                rows.entry(rule.event).or_default().push(number);
            }
        }
        // An event that no row takes is unexpected, so unreachable rows matter only before others.
        rows.retain(|_, numbers| {
            while let Some(&last) = numbers.last() {
                if rules[last].effect != Effect::Never {
                    break;
                }
                numbers.pop();
            }
            !numbers.is_empty()
        });
        let waiting_row = |numbers: &[usize]| match numbers {
            [number] => {
                let rule = &rules[*number];
                let is_taken = matches!(rule.effect, Effect::Take { .. });
                (!is_taken && rule.guard.is_none()).then_some((&rule.effect, rule.span))
            }
            _ => None,
        };
        let mut groups: Vec<(Vec<Event>, Vec<usize>)> = Vec::new();
        for (event, numbers) in rows {
            let row = waiting_row(&numbers);
            let same =
                |(_, other): &&mut (_, Vec<usize>)| row.is_some() && waiting_row(other) == row;
            match groups.iter_mut().find(same) {
                Some((events, _)) => events.push(event),
                None => groups.push((vec![event], numbers)),
            }
        }
        groups
    }

    /// A row of the agent's table.
    fn scope(&self, number: usize) -> Scope<'_> {
        Scope {
            agents: self.agents,
            agent: self.agent,
            rule: &self.agents.controller(self.agent).rules[number],
            each: None,
        }
    }

    /// Prints the rows of an event, the first of which with a true guard is taken.
    fn branches(&self, rules: &[usize]) -> String {
        let mut text = String::new();
        let mut keyword = "";
        for &number in rules {
            let scope = self.scope(number);
            let guard = scope.rule.guard.as_ref();
            if let Some(fault) = guard.and_then(|guard| scope.fault(guard)) {
                let _ = writeln!(
                    text,
                    "{:ROW_INDENT$}{keyword}if ({}) begin\n{:ROW_INDENT$}  fault_o = 1'b1;",
                    "",
                    bare(&fault),
                    ""
                );
                keyword = "end else ";
            }
            let condition = guard.map(|guard| {
                let condition = scope.condition(guard);
                format!("if ({}) ", bare(&condition))
            });
            let _ = writeln!(
                text,
                "{:ROW_INDENT$}{keyword}{}begin  // {}",
                "",
                condition.as_deref().unwrap_or_default(),
                self.comment(number)
            );
            text += &self.row(number, ROW_INDENT + 2);
            keyword = "end else ";
            if condition.is_none() {
                break;
            }
        }
        let _ = writeln!(text, "{:ROW_INDENT$}end", "");
        text
    }

    /// Prints the effects of a row, indented by this many spaces.
    fn row(&self, number: usize, indent: usize) -> String {
        let scope = self.scope(number);
        let effect = |word: &str| {
            let value = self.agents.name(&[word]);
            format!("{:indent$}effect_o = {value};\n", "")
        };
        let (body, next) = match &scope.rule.effect {
            Effect::Take { body, next } => (body, next),
            Effect::Stall => return effect("stall"),
            Effect::Refuse => return effect("refuse"),
            Effect::Never => return String::new(),
        };
        let mut text = effect("take");
        if let Some(next) = next {
            let next = self.agents.state_name(self.agent, *next);
            let _ = writeln!(text, "{:indent$}state_o = {next};", "");
        }
        for line in RowPrinter::lines(scope, number, body, indent) {
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Returns the origin of a row, and the row as text.
    fn comment(&self, number: usize) -> String {
        let rule = &self.agents.controller(self.agent).rules[number];
        let (line, _) = line_column(self.origin.text, rule.span.start);
        let row = match self.descriptions.get(&number) {
            Some(row) => describe(row),
            None => "unreachable".to_string(),
        };
        format!("{}:{line}: {row}", self.origin.file)
    }
}
