//! Sends of rows: the receivers of messages, and their storage until they are consumed.

use cohkit_base::words::counted;
use cohkit_protocol::controller::{Target, Value};
use cohkit_protocol::execute::Fault;
use cohkit_protocol::protocol::MessageId;
use cohkit_protocol::rows::fault_words;

use super::execution::Execution;
use super::expressions::Context;
use super::layout::{ends, lock, Direction, Flow, Storage, System};
use super::story::Act;
use super::SystemError;
use cohkit_engine::build::{assert, when};
use cohkit_engine::model::{Expr, Place, Stmt, VariableId, Violation};

/// Receiver of a message.
enum Receiver {
    /// The home of the current line.
    Home,
    /// The home with this number.
    HomeAt(Expr),
    /// The remote with this index.
    Remote(Expr),
}

/// A message to be stored.
struct OutgoingMessage {
    /// Line of the message, or the number of a home in its place.
    line: Expr,
    /// Sender and receiver; `None` for a home.
    from: Option<Expr>,
    to: Option<Expr>,
    /// Values of the stored fields.
    stored: Vec<Expr>,
    /// Ticket of its store, if it is stored.
    ticket: Option<Expr>,
    /// Current bit of its copy of the line, if it has one.
    current: Option<Expr>,
}

impl System<'_> {
    /// Lowers a send statement.
    pub fn send_to(
        &mut self,
        execution: &mut Execution,
        message: MessageId,
        to: &Target,
        fields: &[Value],
        out: &mut Vec<Stmt>,
    ) -> Result<(), SystemError> {
        let context = execution.context;
        let to = match to {
            Target::Home => Receiver::Home,
            Target::HomeAt(home) => Receiver::HomeAt(self.number(context, home)),
            Target::Remote(to) => {
                if context.known(to).is_none() {
                    let fails = self.no_receiver(context, message);
                    out.push(when(self.number(context, to).is(0), fails));
                }
                Receiver::Remote(self.remote_index(context, to))
            }
            Target::Each(set) => {
                let sends = self.with_bound(self.remote_type, |system, to| {
                    let member = system.member(context, set, to.into());
                    let receiver = Receiver::Remote(to.into());
                    let send = system.send(execution, message, receiver, fields)?;
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
    fn no_receiver(&mut self, context: &Context, message: MessageId) -> Vec<Stmt> {
        let (messages, controller) = (&self.protocol.messages, self.side(context.home).controller);
        let fault = Fault::NoReceiver(message);
        let describe = |agent: &str| fault_words(agent, messages, controller, &fault);
        self.unexpected_message_error(context, &describe)
    }

    /// Puts a message into its channel.
    fn send(
        &mut self,
        execution: &mut Execution,
        message: MessageId,
        to: Receiver,
        fields: &[Value],
    ) -> Result<Vec<Stmt>, SystemError> {
        let context = execution.context;
        let direction = match (context.home, &to) {
            (true, Receiver::HomeAt(_)) => Direction::BetweenHomes,
            (true, _) => Direction::ToRemote,
            (false, Receiver::Remote(_)) => Direction::Between,
            (false, _) => Direction::ToHome,
        };
        // A message about no line has the number of the home that takes or sends it in place of the line.
        let line = match &to {
            _ if self.protocol.message(message).about_line => context.line.clone(),
            Receiver::HomeAt(home) => home.clone(),
            Receiver::Remote(_) if !context.home => Expr::Int(0),
            _ => self.home_of(&context.line),
        };
        let to = match to {
            Receiver::Remote(to) => Some(to),
            Receiver::Home | Receiver::HomeAt(_) => None,
        };
        let flow = self
            .flows
            .iter()
            .position(|f| f.message == message && f.direction == direction);
        let Some(flow) = flow else {
            return Err(self.unsupported_expression("sends a message that has no channel", context));
        };
        let from = context.remote.clone();
        let values: Vec<Expr> = fields.iter().map(|f| self.sent_value(context, f)).collect();
        let kind = self.protocol.message(message);
        let carries = kind.carries.line();
        let sends = Act::Send {
            message: self.words(message, &values),
            to: self.agent(to.as_ref(), &line),
        };
        let sender = self.agent(from.as_ref(), &context.line);
        let note = self.note_message(message, sender, sends, &context.line, context.home);
        let mut out = vec![note];
        if carries && self.facts.is_single_use[message.index()] {
            let message = format!(
                "{} carries a stale copy for an access that does not cache it",
                kind.name
            );
            out.push(assert(
                Violation::new("data value", message),
                execution.copy.clone(),
            ));
        }
        // Split memory is read in a separate step.
        if carries
            && context.home
            && self.slot.is_none()
            && self.facts.is_single_use[message.index()]
        {
            let message =
                "memory is read for a remote while the device may write it under its lock";
            out.extend(self.assert_unlocked(&context.line, &[lock::WRITE], message));
        }
        if let (true, Some(to)) = (carries, &to) {
            let (line, copy) = (context.line.clone(), execution.copy.clone());
            out.extend(self.check_response(&line, to, message, &copy));
        }
        let mut after_send = Vec::new();
        let ticket = self.send_store(execution, flow, (&mut out, &mut after_send));
        let stored = values.into_iter().zip(&self.flows[flow].constants);
        let stored = stored.filter(|(_, constant)| constant.is_none());
        let outgoing = OutgoingMessage {
            line,
            from,
            to,
            stored: stored.map(|(value, _)| value).collect(),
            ticket,
            current: carries.then(|| execution.copy.clone()),
        };
        match self.flows[flow].storage {
            Storage::Counted(variable) => {
                self.increment_counter(flow, variable, &outgoing, &mut out);
                let ends = (outgoing.from.as_ref(), outgoing.to.as_ref());
                out.extend(self.mark_followers(message, direction, &outgoing.line, ends));
            }
            Storage::Queued(index, label) => {
                let place = match self.queues[index].senders {
                    Some(_) => {
                        let sender = self.home_of(&context.line);
                        self.queue_between(index, &outgoing.line, &sender)
                    }
                    None => {
                        let (from, to) = (outgoing.from.as_ref(), outgoing.to.as_ref());
                        self.queue_at(index, &outgoing.line, from, to)
                    }
                };
                self.append_message(&self.flows[flow], (index, label), place, outgoing, &mut out);
            }
        }
        out.extend(after_send);
        Ok(out)
    }

    /// Increments the counter of equal messages.
    fn increment_counter(
        &self,
        flow: usize,
        variable: VariableId,
        outgoing: &OutgoingMessage,
        out: &mut Vec<Stmt>,
    ) {
        let (flow, current) = (&self.flows[flow], &outgoing.current);
        let place = ends(
            variable.at(&outgoing.line),
            outgoing.from.as_ref(),
            outgoing.to.as_ref(),
        );
        let place = outgoing.stored.iter().cloned().fold(place, Place::at);
        // The capacity covers all cells: those with and without a message behind them, and those with other tickets.
        let follower_cells = |place: Place| match flow.has_ordered_followers {
            true => vec![place.clone().at(false), place.at(true)],
            false => vec![place],
        };
        let tickets = flow.tickets.filter(|tickets| tickets.ty.is_some());
        let cells: Vec<Place> = match tickets {
            Some(tickets) => (tickets.low..=tickets.high)
                .flat_map(|ticket| follower_cells(place.clone().at(ticket)))
                .collect(),
            None => follower_cells(place.clone()),
        };
        let place = match &outgoing.ticket {
            Some(ticket) => place.at(ticket.clone()),
            None => place,
        };
        let place = match flow.has_ordered_followers {
            true => place.at(false),
            false => place,
        };
        let copies = |cell: Place| match current {
            Some(_) => cell.clone().at(false) + cell.at(true),
            None => cell.into(),
        };
        let count = cells.iter().cloned().map(copies).reduce(|a, b| a + b);
        let count = count.unwrap_or(Expr::Int(0));
        let place = match current {
            Some(current) => place.at(current.clone()),
            None => place,
        };
        let (capacity, name) = (flow.capacity, &self.protocol.message(flow.message).name);
        let exceeded = format!("more than {capacity} {name} in flight");
        let exceeded = match &flow.bound {
            Some(bound) => Violation::new(bound, exceeded),
            None => Violation::limit(exceeded),
        };
        out.push(assert(exceeded, count.lt(capacity)));
        out.push(place.clone().set(place + 1));
    }

    /// Appends a message to its queue.
    fn append_message(
        &self,
        flow: &Flow,
        (queue, label): (usize, u32),
        place: Place,
        outgoing: OutgoingMessage,
        out: &mut Vec<Stmt>,
    ) {
        let queue = &self.queues[queue];
        let length = place.clone().field("length");
        let capacity_text = counted(queue.capacity as u32, "message");
        let message = format!("more than {capacity_text} in flight on {}", queue.name);
        let has_room = length.clone().lt(queue.capacity);
        out.push(assert(Violation::limit(message), has_room));
        let entry = place.field("slot").at(&length);
        let mut part = |name: &str, value: Expr| {
            out.push(entry.clone().field(name).set(value));
        };
        part("kind", queue.kinds.nth(label));
        if !queue.per_line {
            part("line", outgoing.line);
        }
        for (column, value) in flow.columns.iter().zip(outgoing.stored) {
            part(&format!("field{column}"), value);
        }
        if let Some(current) = outgoing.current {
            part("current", current);
        }
        if let Some(ticket) = outgoing.ticket {
            part("ticket", ticket);
        }
        out.push(length.clone().set(length + 1));
    }

    /// Marks the messages in flight that a new message stays behind.
    fn mark_followers(
        &mut self,
        message: MessageId,
        direction: Direction,
        line: &Expr,
        (from, to): (Option<&Expr>, Option<&Expr>),
    ) -> Vec<Stmt> {
        let mut out = Vec::new();
        for (flow, variable) in self.preceding_flows(message, direction) {
            let place = ends(variable.at(line), from, to);
            let carries = self.carries_line(flow);
            let mut stored = self.flows[flow].stored.clone();
            stored.pop();
            out.extend(self.nest_statements(&stored, place, &mut |_, place| {
                let (unfollowed, followed) = (place.clone().at(false), place.at(true));
                let moved = |unfollowed: Place, followed: Place| {
                    let sum = followed.clone().set(followed + unfollowed.clone());
                    when(unfollowed.clone().gt(0), vec![sum, unfollowed.set(0)])
                };
                match carries {
                    true => [false, true]
                        .map(|bit| moved(unfollowed.clone().at(bit), followed.clone().at(bit)))
                        .to_vec(),
                    false => vec![moved(unfollowed, followed)],
                }
            }));
        }
        out
    }

    /// True if no message is in flight that the message must stay behind.
    pub fn has_no_predecessor(
        &mut self,
        message: MessageId,
        direction: Direction,
        line: &Expr,
        (from, to): (Option<&Expr>, Option<&Expr>),
    ) -> Expr {
        let mut has_none = Expr::Bool(true);
        for (flow, variable) in self.preceding_flows(message, direction) {
            let place = ends(variable.at(line), from, to);
            let carries = self.carries_line(flow);
            let mut stored = self.flows[flow].stored.clone();
            stored.pop();
            let exists = self.nest_claim(&stored, place, &mut |_, place| {
                let followed = place.at(true);
                match carries {
                    true => followed.clone().at(false).gt(0).or(followed.at(true).gt(0)),
                    false => followed.gt(0),
                }
            });
            has_none = has_none.and(!exists);
        }
        has_none
    }

    /// The counted flows that a message stays behind.
    fn preceding_flows(
        &self,
        message: MessageId,
        direction: Direction,
    ) -> Vec<(usize, VariableId)> {
        let predecessors = self.protocol.earlier_messages(message);
        let flows = self.flows.iter().enumerate();
        let matching = flows.filter(|(_, flow)| {
            flow.direction == direction && predecessors.contains(&flow.message)
        });
        matching
            .filter_map(|(index, flow)| match flow.storage {
                Storage::Counted(variable) => Some((index, variable)),
                Storage::Queued(..) => None,
            })
            .collect()
    }
}
