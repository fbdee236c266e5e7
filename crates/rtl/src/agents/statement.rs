//! Statements of rows as SystemVerilog.

use super::expression::{bare, Scope};
use cohkit_protocol::controller::{Event, Expression, Set, Statement, Target, Value};
use cohkit_protocol::pending_access::CompletionKind;
use cohkit_protocol::protocol::{Carries, MessageId};
use cohkit_protocol::terms::{StateId, Type, VariableId};
use cohkit_protocol::unroll::Homes;
use cohkit_system::plan::CompletionEffect;

/// Statements of one row being printed.
pub(super) struct RowPrinter<'a> {
    /// The row, in the current iteration of a loop.
    scope: Scope<'a>,
    /// Number of the row in its table.
    rule: usize,
    /// Spaces before each line.
    indent: usize,
    /// Lines so far.
    lines: Vec<String>,
    /// Number of sends so far.
    sends: usize,
    /// Number of bulk transitions so far.
    bulk_transitions: usize,
    /// True after a statement that performs a write.
    has_written: bool,
    /// True if memory holds the line of the message.
    has_written_line: bool,
}

impl<'a> RowPrinter<'a> {
    /// Prints the statements of a row that takes its event, indented by this many spaces.
    pub fn lines(scope: Scope<'a>, rule: usize, body: &[Statement], indent: usize) -> Vec<String> {
        let mut printer = RowPrinter {
            scope,
            rule,
            indent,
            lines: Vec::new(),
            sends: 0,
            bulk_transitions: 0,
            has_written: false,
            has_written_line: false,
        };
        printer.body(body);
        if !scope.agent.is_home {
            printer.remote_effects();
        }
        printer.lines
    }

    /// Appends a line.
    fn line(&mut self, text: &str) {
        self.lines.push(format!("{:1$}{text}", "", self.indent));
    }

    /// Appends a check that the row can be executed.
    fn fault(&mut self, condition: Option<String>) {
        if let Some(condition) = condition {
            self.line(&format!("if ({}) fault_o = 1'b1;", bare(&condition)));
        }
    }

    /// Name of the package.
    fn name(&self, word: &str) -> String {
        self.scope.agents.name(&[word])
    }

    /// True if the row's message carries a copy of the line, or its event is data from memory.
    fn receives_line(&self) -> bool {
        match self.scope.rule.event {
            Event::Message(message) => self.carries(message).line(),
            Event::MemoryData(_) => true,
            _ => false,
        }
    }

    /// Data that a message carries.
    fn carries(&self, message: MessageId) -> Carries {
        self.scope.agents.protocol.message(message).carries
    }

    /// Prints statements in order.
    fn body(&mut self, body: &[Statement]) {
        body.iter().for_each(|statement| self.statement(statement));
    }

    /// Prints one statement.
    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Send {
                message,
                to,
                fields,
            } => self.send(*message, to, fields),
            Statement::Assign(variable, value) => {
                let ty = self.scope.ty(*variable);
                let target = self.scope.variable(*variable);
                self.assign(target, ty, value);
            }
            Statement::AssignSet(variable, set) => {
                self.fault(self.scope.set_fault(set));
                self.set_variable(*variable, self.scope.set(set));
            }
            Statement::Choose(variable, set) => {
                self.fault(self.scope.set_fault(set));
                let lowest = format!("{}({})", self.name("lowest"), self.scope.set(set));
                self.set_variable(*variable, lowest);
            }
            Statement::AssignElement(variable, indices, value) => {
                self.fault(self.scope.element_fault(*variable, indices));
                let ty = self.scope.ty(*variable);
                self.assign(self.scope.element(*variable, indices), ty, value);
            }
            Statement::AssignAll(variable, value) => self.assign_all(*variable, value),
            Statement::ForEach { condition, body } => self.for_each(condition, body),
            Statement::If {
                condition,
                then,
                otherwise,
            } => {
                self.fault(self.scope.fault(condition));
                self.line(&format!(
                    "if ({}) begin",
                    bare(&self.scope.condition(condition))
                ));
                self.block(|printer| printer.body(then));
                if !otherwise.is_empty() {
                    self.line("end else begin");
                    self.block(|printer| printer.body(otherwise));
                }
                self.line("end");
            }
            Statement::BulkTransition { from, to } => self.bulk_transition(*from, *to),
            Statement::Done => self.done(),
            // The access is retried by the unit, because the row does not complete it.
            Statement::Retry => {}
            Statement::AssignHomes(..) | Statement::ForHomes { .. } => {
                let variables = &self.scope.agents.controller(self.scope.agent).variables;
                if let Some(unrolled) = Homes(1).statement(statement, variables) {
                    self.statement(&unrolled);
                }
            }
            _ => self.home_statement(statement),
        }
    }

    /// Prints a statement that only homes have.
    fn home_statement(&mut self, statement: &Statement) {
        let memory = match statement {
            Statement::WriteMemory => {
                self.has_written_line = self.receives_line();
                self.has_written |= !self.has_written_line;
                "write"
            }
            Statement::CommitDeferred => {
                self.has_written_line = false;
                self.has_written = true;
                "commit"
            }
            Statement::DeferStore => "defer",
            Statement::StartRead => "start_read",
            Statement::StartWrite => "start_write",
            Statement::StartStore { whole } => {
                if *whole {
                    self.line("memory_o.whole = 1'b1;");
                }
                "start_store"
            }
            Statement::Acknowledge(local) => {
                let event = self.scope.agents.event_name(Event::Local(*local));
                return self.acknowledge(&event);
            }
            _ => {
                let event = self.scope.agents.event_name(Event::Unlock);
                return self.acknowledge(&event);
            }
        };
        self.line(&format!("memory_o.{memory} = 1'b1;"));
    }

    /// Prints the acknowledgement of an operation of the device.
    fn acknowledge(&mut self, event: &str) {
        self.line("acknowledge_o = 1'b1;");
        self.line(&format!("operation_o = {event};"));
    }

    /// Prints lines that are indented further.
    fn block(&mut self, print: impl FnOnce(&mut Self)) {
        self.indent += 2;
        print(self);
        self.indent -= 2;
    }

    /// Prints the assignment of a single value, which must fit the type.
    fn assign(&mut self, target: String, ty: Type, value: &Expression) {
        let max = self.scope.agents.max(ty);
        let faults = [self.scope.fault(value), self.scope.range_fault(value, max)];
        faults.into_iter().for_each(|fault| self.fault(fault));
        let width = self.scope.agents.width(ty);
        let form = self.scope.form(&[value], max);
        let value = self.scope.unsigned(value, form, width);
        self.line(&format!("{target} = {value};"));
    }

    /// Prints the assignment of a value that fits the variable.
    fn set_variable(&mut self, variable: VariableId, value: String) {
        let target = self.scope.variable(variable);
        self.line(&format!("{target} = {value};"));
    }

    /// Prints the assignment of one value to all elements of an array.
    fn assign_all(&mut self, variable: VariableId, value: &Expression) {
        let ty = self.scope.ty(variable);
        let max = self.scope.agents.max(ty);
        let faults = [self.scope.fault(value), self.scope.range_fault(value, max)];
        faults.into_iter().for_each(|fault| self.fault(fault));
        let form = self.scope.form(&[value], max);
        let value = self
            .scope
            .unsigned(value, form, self.scope.agents.width(ty));
        let elements = self.scope.agents.elements(ty);
        self.set_variable(variable, format!("{{{elements}{{{value}}}}}"));
    }

    /// Prints a loop over remotes, one remote after the other.
    fn for_each(&mut self, condition: &Expression, body: &[Statement]) {
        let outer = self.scope;
        for scope in outer.iterations() {
            self.scope = scope;
            self.fault(scope.fault(condition));
            self.line(&format!("if ({}) begin", bare(&scope.condition(condition))));
            self.block(|printer| printer.body(body));
            self.line("end");
        }
        self.scope = outer;
    }

    /// Prints a message, with its receivers, its fields and the source of its data.
    fn send(&mut self, message: MessageId, to: &Target, fields: &[Value]) {
        let slot = format!("sends_o[{}]", self.sends);
        self.sends += 1;
        let event = self.scope.agents.event_name(Event::Message(message));
        self.line(&format!("{slot}.message = {event};"));
        let receivers = match to {
            Target::Home | Target::HomeAt(_) => {
                self.line(&format!("{slot}.to_home = 1'b1;"));
                None
            }
            Target::Remote(remote) => {
                self.fault(self.scope.fault(remote));
                self.fault(self.scope.none_fault(remote));
                let singleton = Set::Singleton(Box::new(remote.clone()));
                Some(self.scope.set(&singleton))
            }
            Target::Each(set) => {
                self.fault(self.scope.set_fault(set));
                Some(self.scope.set(set))
            }
        };
        if let Some(receivers) = receivers {
            self.line(&format!("{slot}.to_remotes = {receivers};"));
        }
        let declared = &self.scope.agents.protocol.message(message).fields;
        for (field, value) in declared.iter().zip(fields) {
            let name = crate::print::identifier(&field.name);
            let mut widths = self.scope.agents.fields.iter();
            let width = widths
                .find(|(other, _)| *other == name)
                .map_or(1, |(_, width)| *width);
            let target = format!("{slot}.fields.{name}");
            self.field(target, width, value);
        }
        if let Some(data) = self.data(message) {
            self.line(&format!("{slot}.data = {};", self.name(data)));
            if self.has_written && data != "store" {
                self.line(&format!("{slot}.after_write = 1'b1;"));
            }
        }
    }

    /// Prints a field of a sent message.
    fn field(&mut self, target: String, width: u32, value: &Value) {
        let text = match value {
            Value::Single(value, ty) => {
                let max = self.scope.agents.max(*ty);
                let faults = [self.scope.fault(value), self.scope.range_fault(value, max)];
                faults.into_iter().for_each(|fault| self.fault(fault));
                let form = self.scope.form(&[value], max);
                self.scope.unsigned(value, form, width)
            }
            Value::Set(set) => {
                self.fault(self.scope.set_fault(set));
                match width == u32::from(self.scope.agents.total()) {
                    true => self.scope.set(set),
                    false => format!("{width}'({})", self.scope.set(set)),
                }
            }
        };
        self.line(&format!("{target} = {text};"));
    }

    /// Source of the data of a sent message; `None` if it carries none.
    fn data(&self, message: MessageId) -> Option<&'static str> {
        match self.carries(message) {
            Carries::Nothing => None,
            Carries::Store | Carries::PartialStore => Some("store"),
            Carries::Line | Carries::DirtyLine => {
                let is_received = match (self.scope.agent.is_home, self.scope.rule.event) {
                    (true, Event::MemoryData(_)) => true,
                    (true, _) => self.has_written_line,
                    (false, _) => self.receives_line(),
                };
                Some(if is_received { "received" } else { "own" })
            }
        }
    }

    /// Prints the transition of all lines of a remote that are in one state.
    fn bulk_transition(&mut self, from: StateId, to: StateId) {
        let slot = format!("bulk_o[{}]", self.bulk_transitions);
        self.bulk_transitions += 1;
        let agent = self.scope.agent;
        let states = [from, to].map(|state| self.scope.agents.state_name(agent, state));
        self.line(&format!("{slot}.valid = 1'b1;"));
        self.line(&format!("{slot}.from = {};", states[0]));
        self.line(&format!("{slot}.to = {};", states[1]));
    }

    /// Prints the completion of the outstanding access.
    fn done(&mut self) {
        let CompletionEffect::Completes(kind) = self.scope.agent.plans[self.rule].effects.done
        else {
            return;
        };
        self.has_written |= kind == CompletionKind::Write;
        let kind = match kind {
            CompletionKind::Read => "read_done",
            CompletionKind::Write => "write_done",
            CompletionKind::Sent => "sent_done",
        };
        self.line(&format!("done_o = {};", self.name(kind)));
    }

    /// Prints the effects of a remote's row on its copy and its access that its statements do not state.
    fn remote_effects(&mut self) {
        let effects = self.scope.agent.plans[self.rule].effects;
        let copy = match (effects.holds_after, effects.performs, self.receives_line()) {
            (false, ..) => None,
            (true, false, true) => Some("received"),
            (true, ..) => Some("own"),
        };
        if let Some(copy) = copy {
            self.line(&format!("copy_o = {};", self.name(copy)));
        }
        if effects.performs && effects.holds_after {
            self.line("perform_o = 1'b1;");
        }
        if effects.abandons_write {
            self.line("abandon_o = 1'b1;");
        }
    }
}
