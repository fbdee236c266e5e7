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
        moment: &mut Execution,
        message: MessageId,
        to: &Target,
        fields: &[Value],
        out: &mut Vec<Stmt>,
    ) -> Result<(), SystemError> {
        let context = moment.context;
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
                let each = self.with_bound(self.remote_type, |system, to| {
                    let member = system.member(context, set, to.into());
                    let receiver = Receiver::Remote(to.into());
                    let send = system.send(moment, message, receiver, fields)?;
                    Ok(to.each(vec![when(member, send)]))
                })?;
                out.push(each);
                return Ok(());
            }
        };
        out.extend(self.send(moment, message, to, fields)?);
        Ok(())
    }

    /// Violation: the row cannot be executed, as its message has no receiver.
    fn no_receiver(&mut self, context: &Context, message: MessageId) -> Vec<Stmt> {
        let (messages, controller) = (&self.protocol.messages, self.side(context.home).controller);
        let fault = Fault::NoReceiver(message);
        let what = |agent: &str| fault_words(agent, messages, controller, &fault);
        self.fails(context, &what)
    }

    /// Puts a message into its channel.
    fn send(
        &mut self,
        moment: &mut Execution,
        message: MessageId,
        to: Receiver,
        fields: &[Value],
    ) -> Result<Vec<Stmt>, SystemError> {
        let context = moment.context;
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
        let from = context.own.clone();
        let values: Vec<Expr> = fields.iter().map(|f| self.given(context, f)).collect();
        let kind = self.protocol.message(message);
        let carries = kind.carries.line();
        let sends = Act::Send {
            message: self.words(message, &values),
            to: self.agent(to.as_ref(), &line),
        };
        let sender = self.agent(from.as_ref(), &context.line);
        let note = self.note_message(message, sender, sends, &context.line, context.home);
        let mut out = vec![note];
        if carries && self.facts.used_once[message.index()] {
            let old = format!(
                "{} carries a stale copy for an access that does not cache it",
                kind.name
            );
            out.push(assert(
                Violation::new("data value", old),
                moment.copy.clone(),
            ));
        }
        // Split memory is read in a separate step.
        if carries && context.home && self.slot.is_none() && self.facts.used_once[message.index()] {
            let said = "memory is read for a remote while the device may write it under its lock";
            out.extend(self.unlocked(&context.line, &[lock::WRITE], said));
        }
        if let (true, Some(to)) = (carries, &to) {
            let (line, copy) = (context.line.clone(), moment.copy.clone());
            out.extend(self.answers(&line, to, message, &copy));
        }
        let mut after = Vec::new();
        let ticket = self.store_is_sent(moment, flow, (&mut out, &mut after));
        let stored = values.into_iter().zip(&self.flows[flow].constants);
        let stored = stored.filter(|(_, constant)| constant.is_none());
        let letter = OutgoingMessage {
            line,
            from,
            to,
            stored: stored.map(|(value, _)| value).collect(),
            ticket,
            current: carries.then(|| moment.copy.clone()),
        };
        match self.flows[flow].storage {
            Storage::Counted(variable) => {
                self.count(flow, variable, &letter, &mut out);
                let ends = (letter.from.as_ref(), letter.to.as_ref());
                out.extend(self.mark_followers(message, direction, &letter.line, ends));
            }
            Storage::Queued(index, label) => {
                let place = match self.queues[index].senders {
                    Some(_) => {
                        let sender = self.home_of(&context.line);
                        self.queue_between(index, &letter.line, &sender)
                    }
                    None => {
                        let (from, to) = (letter.from.as_ref(), letter.to.as_ref());
                        self.queue_at(index, &letter.line, from, to)
                    }
                };
                self.append_message(&self.flows[flow], (index, label), place, letter, &mut out);
            }
        }
        out.extend(after);
        Ok(out)
    }

    /// Increments the counter of equal messages.
    fn count(
        &self,
        flow: usize,
        variable: VariableId,
        letter: &OutgoingMessage,
        out: &mut Vec<Stmt>,
    ) {
        let (flow, current) = (&self.flows[flow], &letter.current);
        let place = ends(
            variable.at(&letter.line),
            letter.from.as_ref(),
            letter.to.as_ref(),
        );
        let place = letter.stored.iter().cloned().fold(place, Place::at);
        // The capacity covers all cells: those with and without a message behind them, and those with other tickets.
        let behind = |place: Place| match flow.has_ordered_followers {
            true => vec![place.clone().at(false), place.at(true)],
            false => vec![place],
        };
        let tickets = flow.tickets.filter(|tickets| tickets.ty.is_some());
        let cells: Vec<Place> = match tickets {
            Some(tickets) => (tickets.low..=tickets.high)
                .flat_map(|ticket| behind(place.clone().at(ticket)))
                .collect(),
            None => behind(place.clone()),
        };
        let place = match &letter.ticket {
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
        let over = format!("more than {capacity} {name} in flight");
        let over = match &flow.bound {
            Some(bound) => Violation::new(bound, over),
            None => Violation::limit(over),
        };
        out.push(assert(over, count.lt(capacity)));
        out.push(place.clone().set(place + 1));
    }

    /// Appends a message to its queue.
    fn append_message(
        &self,
        flow: &Flow,
        (queue, label): (usize, u32),
        place: Place,
        letter: OutgoingMessage,
        out: &mut Vec<Stmt>,
    ) {
        let queue = &self.queues[queue];
        let length = place.clone().field("length");
        let many = counted(queue.capacity as u32, "message");
        let over = format!("more than {many} in flight on {}", queue.name);
        let room = length.clone().lt(queue.capacity);
        out.push(assert(Violation::limit(over), room));
        let entry = place.field("slot").at(&length);
        let mut part = |name: &str, value: Expr| {
            out.push(entry.clone().field(name).set(value));
        };
        part("kind", queue.kinds.nth(label));
        if !queue.per_line {
            part("line", letter.line);
        }
        for (column, value) in flow.columns.iter().zip(letter.stored) {
            part(&format!("field{column}"), value);
        }
        if let Some(current) = letter.current {
            part("current", current);
        }
        if let Some(ticket) = letter.ticket {
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
        for (flow, variable) in self.before(message, direction) {
            let place = ends(variable.at(line), from, to);
            let carries = self.carries_line(flow);
            let mut stored = self.flows[flow].stored.clone();
            stored.pop();
            out.extend(self.nest_statements(&stored, place, &mut |_, place| {
                let (later, early) = (place.clone().at(false), place.at(true));
                let moved = |later: Place, early: Place| {
                    let sum = early.clone().set(early + later.clone());
                    when(later.clone().gt(0), vec![sum, later.set(0)])
                };
                match carries {
                    true => [false, true]
                        .map(|bit| moved(later.clone().at(bit), early.clone().at(bit)))
                        .to_vec(),
                    false => vec![moved(later, early)],
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
        let mut free = Expr::Bool(true);
        for (flow, variable) in self.before(message, direction) {
            let place = ends(variable.at(line), from, to);
            let carries = self.carries_line(flow);
            let mut stored = self.flows[flow].stored.clone();
            stored.pop();
            let some = self.nest_claim(&stored, place, &mut |_, place| {
                let early = place.at(true);
                match carries {
                    true => early.clone().at(false).gt(0).or(early.at(true).gt(0)),
                    false => early.gt(0),
                }
            });
            free = free.and(!some);
        }
        free
    }

    /// The counted flows that a message stays behind.
    fn before(&self, message: MessageId, direction: Direction) -> Vec<(usize, VariableId)> {
        let earlier = self.protocol.stays_behind(message);
        let flows = self.flows.iter().enumerate();
        let its = flows
            .filter(|(_, flow)| flow.direction == direction && earlier.contains(&flow.message));
        its.filter_map(|(index, flow)| match flow.storage {
            Storage::Counted(variable) => Some((index, variable)),
            Storage::Queued(..) => None,
        })
        .collect()
    }
}
