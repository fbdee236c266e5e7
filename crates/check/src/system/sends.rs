//! Sends of rows: the receivers of messages, and the checks and updates that a send entails.

use cohkit_engine::build::{assert, when};
use cohkit_engine::model::{Expr, Stmt, Violation};
use cohkit_protocol::controller::{Target, Value};
use cohkit_protocol::execute::Fault;
use cohkit_protocol::protocol::MessageId;
use cohkit_protocol::rows::fault_words;

use super::charts::Act;
use super::context::Context;
use super::device::lock;
use super::effects::Effects;
use super::execution::Execution;
use super::flows::Direction;
use super::options::SystemError;
use super::transfers::OutgoingMessage;

/// Receiver of a message.
enum Receiver {
    /// The home of the current line.
    Home,
    /// The home with this number.
    HomeAt(Expr),
    /// The remote with this index.
    Remote(Expr),
}

impl Effects<'_, '_> {
    /// Lowers a send statement, to one receiver or to each remote of a set, and adds its effects to `out`.
    pub fn send_to(
        &self,
        execution: &mut Execution,
        message: MessageId,
        to: &Target,
        fields: &[Value],
        out: &mut Vec<Stmt>,
    ) -> Result<(), SystemError> {
        let context = execution.context;
        let to = match to {
            Target::Home => Receiver::Home,
            Target::HomeAt(home) => Receiver::HomeAt(self.agents.number(context, home)),
            Target::Remote(to) => {
                if context.known(to).is_none() {
                    let fails = self.no_receiver(context, message);
                    out.push(when(self.agents.number(context, to).is(0), fails));
                }
                Receiver::Remote(self.agents.remote_index(context, to))
            }
            Target::Each(set) => {
                let sends = self.frame.scope.with_bound(self.frame.remote_type, |to| {
                    let member = self.agents.member(context, set, to.into());
                    let receiver = Receiver::Remote(to.into());
                    let send = self.send(execution, message, receiver, fields)?;
                    Ok(to.each(vec![when(member, send)]))
                })?;
                out.push(sends);
                return Ok(());
            }
        };
        out.extend(self.send(execution, message, to, fields)?);
        Ok(())
    }

    /// Violation: the row cannot be executed, as its message has no receiver.
    fn no_receiver(&self, context: &Context, message: MessageId) -> Vec<Stmt> {
        let (messages, controller) = (
            &self.frame.protocol.messages,
            self.agents.side(context.home).controller,
        );
        let fault = Fault::NoReceiver(message);
        let describe = |agent: &str| fault_words(agent, messages, controller, &fault);
        self.agents.unexpected_message_error(context, &describe)
    }

    /// Puts a message into its channel, with the note for charts, and the checks of the copy and the store that it
    /// carries.
    fn send(
        &self,
        execution: &mut Execution,
        message: MessageId,
        to: Receiver,
        fields: &[Value],
    ) -> Result<Vec<Stmt>, SystemError> {
        let context = execution.context;
        let (frame, agents) = (self.frame, self.agents);
        let channels = &self.layout.channels;
        let direction = match (context.home, &to) {
            (true, Receiver::HomeAt(_)) => Direction::BetweenHomes,
            (true, _) => Direction::ToRemote,
            (false, Receiver::Remote(_)) => Direction::Between,
            (false, _) => Direction::ToHome,
        };
        let Some(flow) = channels.flow_of(message, direction) else {
            let action = "sends a message that has no channel";
            return Err(agents.unsupported_expression(action, context));
        };
        let kind = frame.protocol.message(message);
        // A message about no line has the number of the home that consumes or sends it in place of the line; between
        // remotes, 0.
        let line = match &to {
            _ if kind.about_line => context.line.clone(),
            Receiver::HomeAt(home) => home.clone(),
            Receiver::Remote(_) if !context.home => Expr::Int(0),
            _ => frame.home_of(&context.line),
        };
        let to = match to {
            Receiver::Remote(to) => Some(to),
            Receiver::Home | Receiver::HomeAt(_) => None,
        };
        let from = context.remote.clone();
        let values: Vec<Expr> = fields
            .iter()
            .map(|field| agents.sent_value(context, field))
            .collect();
        let sends = Act::Send {
            message: frame.words(message, &values),
            to: frame.agent(to.as_ref(), &line),
        };
        let sender = frame.agent(from.as_ref(), &context.line);
        let note = frame.note_message(message, sender, sends, &context.line, context.home);
        let mut out = vec![note];
        if kind.carries.line() {
            out.extend(self.check_sent_copy(execution, message, to.as_ref()));
        }
        let mut after_send = Vec::new();
        let ticket = self
            .stores
            .send_store(execution, flow, &mut out, &mut after_send);
        let stored = values.into_iter().zip(&channels.flows[flow].constants);
        let stored = stored.filter(|(_, constant)| constant.is_none());
        let outgoing = OutgoingMessage {
            line,
            from,
            to,
            sending_home: frame.home_of(&context.line),
            stored: stored.map(|(value, _)| value).collect(),
            ticket,
            current: kind.carries.line().then(|| execution.copy.clone()),
        };
        channels.insert(flow, outgoing, &mut out);
        out.extend(after_send);
        Ok(out)
    }

    /// Checks a copy of the line that is sent.
    fn check_sent_copy(
        &self,
        execution: &Execution,
        message: MessageId,
        to: Option<&Expr>,
    ) -> Vec<Stmt> {
        let (context, line) = (execution.context, &execution.context.line);
        let frame = self.frame;
        let mut out = Vec::new();
        if frame.facts.is_single_use[message.index()] {
            let name = &frame.protocol.message(message).name;
            let message =
                format!("{name} carries a stale copy for an access that does not cache it");
            let violation = Violation::new("data value", message);
            out.push(assert(violation, execution.copy.clone()));
            // Split memory is read in a separate step.
            if context.home && self.copies.memory.slot.is_none() {
                let message =
                    "memory is read for a remote while the device may write it under its lock";
                out.extend(self.layout.assert_unlocked(line, &[lock::WRITE], message));
            }
        }
        if let Some(to) = to {
            out.extend(
                self.stores
                    .check_response(line, to, message, &execution.copy),
            );
        }
        out
    }
}
