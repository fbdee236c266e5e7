//! Messages that enter and leave their channels.

use cohkit_base::words::counted;
use cohkit_engine::build::{assert, when};
use cohkit_engine::model::{Expr, Place, Stmt, TypeId, VariableId, Violation};
use cohkit_protocol::protocol::MessageId;

use super::channels::Channels;
use super::flows::{Direction, Endpoints, Flow, Storage};

/// A message to be stored.
pub(super) struct OutgoingMessage {
    /// Line of the message, or the number of a home in its place.
    pub line: Expr,
    /// Index of the sending remote; `None` for a home.
    pub from: Option<Expr>,
    /// Index of the receiving remote; `None` for a home.
    pub to: Option<Expr>,
    /// Number of the sending home, between homes.
    pub sending_home: Expr,
    /// Values of the stored fields.
    pub stored: Vec<Expr>,
    /// Ticket of its store, if it is stored.
    pub ticket: Option<Expr>,
    /// Current bit of its copy of the line, if it has one.
    pub current: Option<Expr>,
}

/// Expressions and statements that take a message out of its channel.
pub(super) struct Arrival {
    /// Parameters of the rule that identify the message: its stored values if unordered, the sending home between
    /// homes.
    pub parameters: Vec<VariableId>,
    /// Condition under which the message may leave its channel next.
    pub present: Expr,
    /// Statements that save the fields of the message in temporaries, before `removal`. Empty for an unordered
    /// channel.
    pub field_saves: Vec<Stmt>,
    /// Statements that remove the message from its channel.
    pub removal: Vec<Stmt>,
    /// Stored fields as guards read them, in the channel.
    pub before: Vec<Expr>,
    /// Stored fields as bodies read them, after `field_saves` and `removal`.
    pub after: Vec<Expr>,
    /// Ticket of the message's store, if it is stored.
    pub ticket: Option<Expr>,
    /// Current bit of the message's copy of the line.
    pub current: Option<Expr>,
}

impl OutgoingMessage {
    /// Sender and receiver.
    fn endpoints(&self) -> Endpoints<'_> {
        Endpoints {
            from: self.from.as_ref(),
            to: self.to.as_ref(),
        }
    }
}

impl Channels<'_> {
    /// Puts a message of a flow into its channel, and asserts that the capacity is not exceeded. Adds the statements
    /// to `out`.
    pub fn insert(&self, flow: usize, outgoing: OutgoingMessage, out: &mut Vec<Stmt>) {
        let (message, direction) = (self.flows[flow].message, self.flows[flow].direction);
        let endpoints = outgoing.endpoints();
        match self.flows[flow].storage {
            Storage::Counted(variable) => {
                self.increment_counter(flow, variable, &outgoing, out);
                out.extend(self.mark_followers(message, direction, &outgoing.line, endpoints));
            }
            Storage::Queued(index, label) => {
                let place = match self.queues[index].senders {
                    Some(_) => self.queue_between(index, &outgoing.line, &outgoing.sending_home),
                    None => self.queue_at(index, &outgoing.line, endpoints),
                };
                self.append_message(&self.flows[flow], (index, label), place, outgoing, out);
            }
        }
    }

    /// Increments the counter of equal messages, and asserts that the flow has capacity left.
    fn increment_counter(
        &self,
        flow: usize,
        variable: VariableId,
        outgoing: &OutgoingMessage,
        out: &mut Vec<Stmt>,
    ) {
        let (flow, current) = (&self.flows[flow], &outgoing.current);
        let place = outgoing.endpoints().index(variable.at(&outgoing.line));
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
        let (capacity, name) = (
            flow.capacity,
            &self.frame.protocol.message(flow.message).name,
        );
        let exceeded = format!("more than {capacity} {name} in flight");
        let exceeded = match &flow.bound {
            Some(bound) => Violation::new(bound, exceeded),
            None => Violation::limit(exceeded),
        };
        out.push(assert(exceeded, count.lt(capacity)));
        out.push(place.clone().set(place + 1));
    }

    /// Appends a message to its queue, and asserts that the queue has capacity left.
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

    /// Marks the messages in flight that a new message stays behind: sets their follower bit.
    fn mark_followers(
        &self,
        message: MessageId,
        direction: Direction,
        line: &Expr,
        endpoints: Endpoints,
    ) -> Vec<Stmt> {
        let mut out = Vec::new();
        for (flow, variable) in self.preceding_flows(message, direction) {
            let place = endpoints.index(variable.at(line));
            let carries = self.carries_line(flow);
            let [stored @ .., _] = &self.flows[flow].stored[..] else {
                continue;
            };
            out.extend(self.frame.for_each_cell(stored, place, &|place| {
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

    /// Returns the message of a flow about a line that may arrive next. `flow` is an index into `flows`.
    pub fn arrival(&self, flow: usize, line: &Expr, endpoints: Endpoints) -> Arrival {
        let (message, direction) = (self.flows[flow].message, self.flows[flow].direction);
        match self.flows[flow].storage {
            Storage::Counted(variable) => {
                let mut arrival = self.counted_arrival(flow, endpoints.index(variable.at(line)));
                let no_predecessor = self.has_no_predecessor(message, direction, line, endpoints);
                arrival.present = arrival.present.and(no_predecessor);
                arrival
            }
            Storage::Queued(queue, label) => {
                let sending_home = (self.queues[queue].senders)
                    .map(|homes| self.frame.scope.parameter("h", homes));
                let place = match sending_home {
                    Some(sending_home) => self.queue_between(queue, line, &sending_home.into()),
                    None => self.queue_at(queue, line, endpoints),
                };
                let mut arrival = self.queued_arrival(flow, queue, label, place, line);
                arrival.parameters.extend(sending_home);
                arrival
            }
        }
    }

    /// Returns the arrival at an unordered channel: any message may be next, so its stored values are parameters of
    /// the rule.
    fn counted_arrival(&self, flow: usize, mut place: Place) -> Arrival {
        let carries = self.carries_line(flow);
        let flow = &self.flows[flow];
        let has_ordered_followers = flow.has_ordered_followers;
        let tickets = flow.tickets.and_then(|tickets| tickets.ty);
        let fields = &self.frame.protocol.message(flow.message).fields;
        let names = fields.iter().zip(&flow.constants);
        let stored: Vec<(&str, TypeId)> = names
            .filter(|(_, constant)| constant.is_none())
            .map(|(field, _)| field.name.as_str())
            .zip(flow.stored.iter().copied())
            .collect();
        let mut parameters = Vec::new();
        for (name, ty) in stored {
            parameters.push(self.frame.scope.parameter(name, ty));
        }
        let before: Vec<Expr> = parameters
            .iter()
            .map(|&parameter| parameter.into())
            .collect();
        let ticket = tickets.map(|ty| self.frame.scope.parameter("ticket", ty));
        parameters.extend(ticket);
        let follower_bit =
            has_ordered_followers.then(|| self.frame.scope.parameter("early", TypeId::BOOL));
        parameters.extend(follower_bit);
        let current = carries.then(|| self.frame.scope.parameter("current", TypeId::BOOL));
        parameters.extend(current);
        for &parameter in &parameters {
            place = place.at(parameter);
        }
        Arrival {
            parameters,
            present: place.clone().gt(0),
            field_saves: Vec::new(),
            removal: vec![place.clone().set(place - 1)],
            after: before.clone(),
            before,
            ticket: ticket.map(Expr::from),
            current: current.map(Expr::from),
        }
    }

    /// Returns the arrival at a queue: only the head may be next, and its fields are read before it is removed.
    fn queued_arrival(
        &self,
        flow: usize,
        queue: usize,
        label: u32,
        place: Place,
        line: &Expr,
    ) -> Arrival {
        let carries = self.carries_line(flow);
        let tickets = self.flows[flow].tickets.and_then(|tickets| tickets.ty);
        let columns = self.flows[flow].columns.clone();
        let stored = self.flows[flow].stored.clone();
        let head = place.clone().field("slot").at(0);
        let kinds = self.queues[queue].kinds;
        let mut present = head.clone().field("kind").is(kinds.nth(label));
        if self.frame.lines > 1 {
            present = present.and(self.queues[queue].is_about(&head, line));
        }
        let (mut field_saves, mut before, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for (column, ty) in columns.into_iter().zip(stored) {
            let name = format!("field{column}");
            let value = head.clone().field(&name);
            let local = self.frame.scope.local(&name, ty);
            field_saves.push(local.begin(&value));
            before.push(value.into());
            after.push(local.into());
        }
        let ticket = tickets.map(|ty| self.frame.scope.local("ticket", ty));
        if let Some(ticket) = ticket {
            field_saves.push(ticket.begin(head.clone().field("ticket")));
        }
        let current = carries.then(|| self.frame.scope.local("brought", TypeId::BOOL));
        if let Some(current) = current {
            field_saves.push(current.begin(head.field("current")));
        }
        let positions = self.queues[queue].positions;
        let length = place.clone().field("length");
        let slots = place.field("slot");
        let shift = self.frame.scope.with_bound(positions, |i| {
            let moved = slots.clone().at(i).set(slots.clone().at(i + 1));
            i.each(vec![when((i + 1).lt(&length), vec![moved])])
        });
        let removal = vec![
            shift,
            slots.at(length.clone() - 1).clear(),
            length.clone().set(length - 1),
        ];
        Arrival {
            parameters: Vec::new(),
            present,
            field_saves,
            removal,
            before,
            after,
            ticket: ticket.map(Expr::from),
            current: current.map(Expr::from),
        }
    }
}
