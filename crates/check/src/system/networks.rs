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
    free: Expr,
    /// True if the first message of this sender is the head.
    own: Expr,
    /// Makes that message the head.
    enters: Stmt,
    /// Removes the head.
    leaves: Vec<Stmt>,
}

impl Entry {
    /// True if the message may be consumed.
    pub fn open(&self) -> Expr {
        self.free.clone().or(self.own.clone())
    }

    /// Statements for a consumed message.
    pub fn leaves(&self) -> Vec<Stmt> {
        self.leaves.clone()
    }
}

impl System<'_> {
    /// Declares the input queue of an order group at one sort of receiver, if it is a network and has none yet.
    pub fn input(&mut self, order: usize, direction: Direction) {
        let home = !direction.is_to_remote();
        let known = |input: &Input| (input.order, input.home) == (order, home);
        let Some(network) = self.protocol.network_of(order) else {
            return;
        };
        if self.inputs.iter().any(known) {
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
        let mut free = remote.clone().is(0);
        let mut leaves = vec![remote.clone().set(0)];
        if let Some(sender) = &sender {
            free = free.and(sender.clone().is(0));
            leaves.push(sender.clone().set(0));
        }
        let (first, number) = match (from, sender) {
            (Some(from), _) => (remote, from.clone() + 1),
            (None, Some(sender)) => (sender, self.home_of(line) + 1),
            (None, None) => return None,
        };
        Some(Entry {
            network: self.protocol.network_of(order)?.name.clone(),
            free,
            own: first.clone().is(number.clone()),
            enters: first.set(number),
            leaves,
        })
    }

    /// The order group of a message whose network has a capacity, and the capacity.
    fn limited(&self, message: MessageId) -> Option<(usize, i32)> {
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
        (taken, chosen): (Option<MessageId>, &Option<Expr>),
        body: &[Statement],
    ) -> Result<Expr, SystemError> {
        let Ok(all) = sent(body, &|message| self.limited(message).is_some()) else {
            let what = "sends on a network with a capacity, to a receiver that the same row computes in an unsupported way";
            return Err(self.unsupported_expression(what, context));
        };
        if all.is_empty() {
            return Ok(Expr::Bool(true));
        }
        let context = Context {
            each: chosen.clone(),
            ..context.clone()
        };
        let mut orders: Vec<(usize, i32)> = Vec::new();
        for (message, _) in &all {
            orders.extend(self.limited(*message).filter(|of| !orders.contains(of)));
        }
        let mut room = Expr::Bool(true);
        for (order, capacity) in orders {
            let its = all.iter().filter(|(message, _)| {
                self.limited(*message)
                    .is_some_and(|(other, _)| other == order)
            });
            let (homes, remotes): (Vec<&Sent>, Vec<&Sent>) = its
                .map(|(_, to)| to)
                .partition(|to| matches!(to, Sent::Home));
            if !homes.is_empty() {
                let there = self.entered(order, &context.line, None);
                room = room.and((there + homes.len() as i32).le(capacity));
            }
            if !remotes.is_empty() {
                let taken = taken.and_then(|message| self.limited(message));
                let frees = context
                    .own
                    .clone()
                    .filter(|_| taken == Some((order, capacity)));
                let free = self.with_bound(self.remote_type, |system, to| {
                    let mut there = system.entered(order, &context.line, Some(&to.into()));
                    if let Some(own) = frees {
                        there = there - own.is(Expr::from(to)).as_number();
                    }
                    let mut some = Expr::Bool(false);
                    for sent in remotes {
                        let its = match sent {
                            Sent::Home => continue,
                            Sent::Remote(Expression::Each) if chosen.is_none() => continue,
                            Sent::Remote(remote) => {
                                system.number(&context, remote).is(Expr::from(to) + 1)
                            }
                            Sent::Each(set) => system.member(&context, set, to.into()),
                        };
                        there = there + its.clone().as_number();
                        some = some.or(its);
                    }
                    to.all(some.implies(there.le(capacity)))
                });
                room = room.and(free);
            }
        }
        Ok(room)
    }

    /// Number of messages of a network in flight to a receiver.
    fn entered(&mut self, order: usize, line: &Expr, to: Option<&Expr>) -> Expr {
        let mut all = Expr::Int(0);
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
                    all = all + Expr::from(place.field("length"));
                }
            }
        }
        all
    }

    /// Adds the rule by which a message becomes the head of its input queue and stalls there. `taken` is true if the
    /// message would be consumed.
    pub fn blocks(
        &mut self,
        message: MessageId,
        entry: Entry,
        (parameters, present, taken): (Vec<VariableId>, Expr, Expr),
        context: &Context,
    ) {
        let receiver = self.agent(context.own.as_ref(), &context.line);
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
            when: present.clone().and(entry.own),
            words,
        });
        let name = &self.protocol.message(message).name;
        self.build.rule(Rule {
            name: format!("{name} waits first in {}", entry.network),
            parameters,
            guard: present.and(entry.free).and(!taken),
            body: vec![entry.enters],
            spontaneous: false,
            priority: 0,
        });
    }
}
