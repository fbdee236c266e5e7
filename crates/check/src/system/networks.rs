//! Networks: input queues that several senders share.
//!
//! Messages of one sender to one receiver have a queue of their own, in the order in which they were sent. Their order
//! with messages of other senders is decided as late as possible. A message becomes the head of the receiver's input
//! queue when it is consumed, or when it stalls and the input queue has no head. While there is a head, no message of
//! another sender is consumed. This allows every order in which messages may enter the input queue, and no other.

use cohkit_protocol::controller::{Expression, Statement};
use cohkit_protocol::protocol::MessageId;

use super::expressions::Context;
use super::input_queues::Input;
use super::layout::{ends, Direction, System};
use super::prior_values::{sent, Sent};
use super::SystemError;
use cohkit_engine::explain::Remark;
use cohkit_engine::model::{Expr, Piece, Place, Rule, Stmt, VariableId};

/// Relation of a message in a queue of a network to the head of the receiver's input queue.
pub(super) struct Entry {
    network: String,
    /// True if the input queue has no head.
    has_no_head: Expr,
    /// True if the first message of this sender is the head.
    is_head: Expr,
    /// Makes that message the head.
    enter_statement: Stmt,
    /// Removes the head.
    leaves: Vec<Stmt>,
}

impl Entry {
    /// True if the message may be consumed.
    pub fn can_be_consumed(&self) -> Expr {
        self.has_no_head.clone().or(self.is_head.clone())
    }

    /// Statements for a consumed message.
    pub fn removal(&self) -> Vec<Stmt> {
        self.leaves.clone()
    }
}

impl System<'_> {
    /// Declares the input queue of an order group at one sort of receiver, if it is a network and has none yet.
    pub fn declare_input_queue(&mut self, order: usize, direction: Direction) {
        let home = !direction.is_to_remote();
        let is_declared = |input: &Input| (input.order, input.home) == (order, home);
        let Some(network) = self.protocol.network_of(order) else {
            return;
        };
        if self.inputs.iter().any(is_declared) {
            return;
        }
        let homes = i32::from(self.protocol.homes);
        let receiver = if home { "home" } else { "remote" };
        let name = format!("{}_first_at_{receiver}", network.name);
        let remotes = self.build.range("first", 0, self.remotes);
        self.optional.push(remotes);
        let mut types = vec![(name.clone(), remotes)];
        if !home {
            let senders = self.build.range("first_home", 0, homes);
            types.push((format!("{name}_from_home"), senders));
        }
        let variables: Vec<VariableId> = types
            .into_iter()
            .map(|(name, mut ty)| {
                if !home {
                    ty = self.build.array(&name, self.remote_type, ty);
                } else if homes > 1 {
                    let number = self.build.range("home", 0, homes - 1);
                    ty = self.build.array(&name, number, ty);
                }
                self.build.state(name, ty)
            })
            .collect();
        self.inputs.push(Input {
            order,
            home,
            remote: variables[0],
            sender: variables.get(1).copied(),
        });
    }

    /// Relation of a message of a queue to its receiver's input queue, if its channels form a network.
    pub fn entry(
        &self,
        order: usize,
        direction: Direction,
        line: &Expr,
        (from, to): (Option<&Expr>, Option<&Expr>),
    ) -> Option<Entry> {
        let home = !direction.is_to_remote();
        let mut inputs = self.inputs.iter();
        let input = inputs.find(|input| (input.order, input.home) == (order, home))?;
        let place = |variable: VariableId| -> Place {
            match to {
                Some(to) => variable.at(to),
                None if self.protocol.homes == 1 => variable.into(),
                None => variable.at(self.home_of(line)),
            }
        };
        let remote = place(input.remote);
        let sender = input.sender.map(place);
        let mut has_no_head = remote.clone().is(0);
        let mut leaves = vec![remote.clone().set(0)];
        if let Some(sender) = &sender {
            has_no_head = has_no_head.and(sender.clone().is(0));
            leaves.push(sender.clone().set(0));
        }
        let (head_variable, number) = match (from, sender) {
            (Some(from), _) => (remote, from.clone() + 1),
            (None, Some(sender)) => (sender, self.home_of(line) + 1),
            (None, None) => return None,
        };
        Some(Entry {
            network: self.protocol.network_of(order)?.name.clone(),
            has_no_head,
            is_head: head_variable.clone().is(number.clone()),
            enter_statement: head_variable.set(number),
            leaves,
        })
    }

    /// The order group of a message whose network has a capacity, and the capacity.
    fn network_capacity(&self, message: MessageId) -> Option<(usize, i32)> {
        let order = self
            .protocol
            .order_of(self.protocol.message(message).channel)?;
        let capacity = self.protocol.network_of(order)?.capacity?;
        Some((order, capacity.into()))
    }

    /// Returns true if the input queues have room for the messages of a row. The message that the row consumes frees
    /// its place. The receivers may depend on the remote that the row chooses.
    pub fn room(
        &mut self,
        context: &Context,
        (consumed, chosen): (Option<MessageId>, &Option<Expr>),
        body: &[Statement],
    ) -> Result<Expr, SystemError> {
        let Ok(sends) = sent(body, &|message| self.network_capacity(message).is_some()) else {
            let action = "sends on a network with a capacity, to a receiver that the same row computes in an unsupported way";
            return Err(self.unsupported_expression(action, context));
        };
        if sends.is_empty() {
            return Ok(Expr::Bool(true));
        }
        let context = Context {
            each: chosen.clone(),
            ..context.clone()
        };
        let mut orders: Vec<(usize, i32)> = Vec::new();
        for (message, _) in &sends {
            orders.extend(
                self.network_capacity(*message)
                    .filter(|group| !orders.contains(group)),
            );
        }
        let mut room = Expr::Bool(true);
        for (order, capacity) in orders {
            let to_order = sends.iter().filter(|(message, _)| {
                self.network_capacity(*message)
                    .is_some_and(|(sent_order, _)| sent_order == order)
            });
            let (homes, remotes): (Vec<&Sent>, Vec<&Sent>) = to_order
                .map(|(_, to)| to)
                .partition(|to| matches!(to, Sent::Home));
            if !homes.is_empty() {
                let count = self.count_in_flight_to(order, &context.line, None);
                room = room.and((count + homes.len() as i32).le(capacity));
            }
            if !remotes.is_empty() {
                let consumed = consumed.and_then(|message| self.network_capacity(message));
                let freeing_remote = context
                    .remote
                    .clone()
                    .filter(|_| consumed == Some((order, capacity)));
                let has_room = self.with_bound(self.remote_type, |system, to| {
                    let mut count =
                        system.count_in_flight_to(order, &context.line, Some(&to.into()));
                    if let Some(freeing_remote) = freeing_remote {
                        count = count - freeing_remote.is(Expr::from(to)).as_number();
                    }
                    let mut is_receiver = Expr::Bool(false);
                    for sent in remotes {
                        let receives = match sent {
                            Sent::Home => continue,
                            Sent::Remote(Expression::Each) if chosen.is_none() => continue,
                            Sent::Remote(remote) => {
                                system.number(&context, remote).is(Expr::from(to) + 1)
                            }
                            Sent::Each(set) => system.member(&context, set, to.into()),
                        };
                        count = count + receives.clone().as_number();
                        is_receiver = is_receiver.or(receives);
                    }
                    to.all(is_receiver.implies(count.le(capacity)))
                });
                room = room.and(has_room);
            }
        }
        Ok(room)
    }

    /// Number of messages of a network in flight to a receiver.
    fn count_in_flight_to(&mut self, order: usize, line: &Expr, to: Option<&Expr>) -> Expr {
        let mut count = Expr::Int(0);
        for index in 0..self.queues.len() {
            let queue = &self.queues[index];
            if queue.order != order || queue.direction.is_to_remote() != to.is_some() {
                continue;
            }
            let mut places = vec![self.queues_of(index, line)];
            // Messages to a remote come from any home.
            if to.is_some() && self.protocol.homes > 1 {
                let homes = 0..i32::from(self.protocol.homes);
                places = homes.map(|home| queue.variable.at(home)).collect();
            }
            let from = queue.direction.is_from_remote();
            for place in places {
                let senders = if from { self.remotes } else { 1 };
                for sender in 0..senders {
                    let sender = from.then(|| Expr::from(sender));
                    let place = ends(place.clone(), sender.as_ref(), to);
                    count = count + Expr::from(place.field("length"));
                }
            }
        }
        count
    }

    /// Adds the rule by which a message becomes the head of its input queue and stalls there. `is_taken` is true if the
    /// message would be consumed.
    pub fn add_blocking_rule(
        &mut self,
        message: MessageId,
        entry: Entry,
        (parameters, present, is_taken): (Vec<VariableId>, Expr, Expr),
        context: &Context,
    ) {
        let receiver = self.agent(context.remote.as_ref(), &context.line);
        let sender = self.agent(context.sender.as_ref(), &context.line);
        let text = |words: String| Piece::Text(words);
        let mut words = self.words(message, &context.fields);
        words.extend([
            text(" from ".into()),
            Piece::Agent(sender),
            text(format!(" is the first in network {} at ", entry.network)),
            Piece::Agent(receiver),
            text(", and all others wait behind it".into()),
        ]);
        self.remarks.push(Remark {
            parameters: parameters.clone(),
            when: present.clone().and(entry.is_head),
            phrase: words,
        });
        let name = &self.protocol.message(message).name;
        self.build.rule(Rule {
            name: format!("{name} waits first in {}", entry.network),
            parameters,
            guard: present.and(entry.has_no_head).and(!is_taken),
            body: vec![entry.enter_statement],
            spontaneous: false,
            priority: 0,
        });
    }
}
