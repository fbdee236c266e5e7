//! Queues of a system's network: one for each channel, or for channels whose messages have an order.

use crate::agents::layout::{Agent, Agents};
use cohkit_protocol::controller::{Effect, Event, Expression, Statement, Target};
use cohkit_protocol::protocol::{ChannelId, End, MessageId, Protocol};
use std::fmt;

/// Queues between each pair of agents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Queues {
    /// Queue of each channel.
    pub of_channel: Vec<usize>,
    /// Each queue.
    pub queues: Vec<Queue>,
}

/// A queue between each pair of agents that its channels join.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Queue {
    /// Names of its channels.
    pub channels: Vec<String>,
    /// True if its messages keep their order.
    pub ordered: bool,
    /// True if it keeps more order than the file declares: an order of each line, or of single messages, is an order of
    /// all messages of the queue.
    pub exceeds_order: bool,
    /// True if it leads from caches to the home.
    pub up: bool,
    /// True if it leads from the home to caches.
    pub down: bool,
    /// True if it leads from caches to caches.
    pub between: bool,
}

impl Queues {
    /// Assigns the channels of a protocol to queues.
    pub fn new(protocol: &Protocol) -> Queues {
        let count = protocol.channels.len();
        let mut root: Vec<usize> = (0..count).collect();
        let mut ordered = vec![false; count];
        let mut join = |channels: &[usize]| {
            let Some(&first) = channels.iter().min() else {
                return;
            };
            for &channel in channels {
                ordered[channel] = true;
                let (old, new) = (
                    root[channel].max(root[first]),
                    root[channel].min(root[first]),
                );
                root.iter_mut()
                    .filter(|r| **r == old)
                    .for_each(|r| *r = new);
            }
        };
        let mut exceeds_order = vec![false; count];
        for (order, &per_line) in protocol.orders.iter().zip(&protocol.per_line) {
            for channel in order.iter().filter(|_| per_line) {
                exceeds_order[channel.index()] = true;
            }
            join(
                &order
                    .iter()
                    .map(|channel| channel.index())
                    .collect::<Vec<_>>(),
            );
        }
        let channel_of = |message: &MessageId| protocol.message(*message).channel.index();
        for order in &protocol.point_orders {
            exceeds_order[channel_of(&order.message)] = true;
            let earlier = order.earlier.iter().map(channel_of);
            join(
                &earlier
                    .chain([channel_of(&order.message)])
                    .collect::<Vec<_>>(),
            );
        }
        let mut roots = root.clone();
        roots.sort_unstable();
        roots.dedup();
        let number = |channel: usize| roots.iter().position(|r| *r == root[channel]);
        let of_channel: Vec<usize> = (0..count).filter_map(number).collect();
        let mut queues = vec![Queue::default(); roots.len()];
        for (channel, &queue) in of_channel.iter().enumerate() {
            let (queue, declared) = (&mut queues[queue], &protocol.channels[channel]);
            let leads = |from: End, to: End| {
                [from, End::Any].contains(&declared.from) && [to, End::Any].contains(&declared.to)
            };
            queue.channels.push(declared.name.clone());
            queue.ordered |= ordered[channel];
            queue.exceeds_order |= exceeds_order[channel];
            queue.up |= leads(End::Remote, End::Home);
            queue.down |= leads(End::Home, End::Remote);
            queue.between |= leads(End::Remote, End::Remote);
        }
        Queues { of_channel, queues }
    }

    /// Queue of a message.
    pub fn of(&self, protocol: &Protocol, message: MessageId) -> usize {
        let ChannelId(channel) = protocol.message(message).channel;
        self.of_channel[usize::from(channel)]
    }
}

/// Places that queues need, so that no step overflows one. Those of a constructed home also exclude that waits for places
/// form a cycle, if each answer is one message in a queue of answers alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rooms {
    /// Free places that a step of a cache needs in each of its queues.
    pub cache: usize,
    /// Free places that a step of the home needs in each of its queues. In a home that starts memory operations, half
    /// of them are left for the step that ends the operation.
    pub home: usize,
    /// Minimum number of places of a queue, without those for answers.
    pub fixed: usize,
    /// Minimum number of places of a queue for answers, of a home that starts memory operations.
    pub answers: Option<Answers>,
}

/// Number of answers that a cache owes at most, with room for those of one more step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answers {
    /// Number of caches, each of which has a request outstanding for each of its MSHRs.
    pub caches: usize,
    /// Answers to a recall, and those of one step.
    pub others: usize,
}

impl Answers {
    /// Number of answers in a system whose caches have this number of MSHRs.
    pub fn of(self, mshrs: usize) -> usize {
        self.caches * mshrs + self.others
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{} * Mshrs + {}", self.caches, self.others)
    }
}

impl Rooms {
    /// Derives the places from the rows of all agents.
    ///
    /// A home that starts memory operations needs places for the answers to all its forwards, because an answer may
    /// wait until a cache has received another message. A cache answers each forward once, and the home sends it one
    /// forward at a time for each line of a transaction. Each cache has one request outstanding for each of its MSHRs,
    /// and the home one recall, so a cache owes at most one answer for each MSHR of all caches and one for the recall.
    pub fn new(agents: &Agents, queues: &Queues) -> Rooms {
        let of = |agent: &Agent| {
            let numbers = 0..queues.queues.len();
            numbers
                .map(|queue| messages_of_step(agents, agent, queues, queue))
                .max()
                .unwrap_or(0)
                .max(1)
        };
        let cache = agents.agents[1..].iter().map(of).max().unwrap_or(1);
        let step = of(&agents.agents[0]);
        let has_operations = agents
            .home
            .rules
            .iter()
            .any(|row| matches!(row.event, Event::MemoryData(_) | Event::MemoryDone));
        let (home, answers) = match has_operations {
            true => {
                let caches = usize::from(agents.total());
                let others = 1 + cache;
                (2 * step, Some(Answers { caches, others }))
            }
            false => (step, None),
        };
        Rooms {
            cache,
            home,
            fixed: cache.max(home).max(2),
            answers,
        }
    }

    /// Prints the minimum number of places of a queue, as an expression of the parameter `Mshrs` where it depends on it.
    pub fn minimum(self) -> String {
        match self.answers {
            None => self.fixed.to_string(),
            // A cache has one MSHR at least.
            Some(answers) if answers.of(1) >= self.fixed => answers.to_string(),
            Some(answers) => format!("{} and {answers}", self.fixed),
        }
    }
}

/// Returns the maximum number of messages that one row of an agent puts into one queue to one receiver.
fn messages_of_step(agents: &Agents, agent: &Agent, queues: &Queues, queue: usize) -> usize {
    let rows = agents.controller(agent).rules.iter();
    let rows = rows.filter(|row| agent.states.contains(&row.state.index()));
    let bodies = rows.filter_map(|row| match &row.effect {
        Effect::Take { body, .. } => Some(body),
        _ => None,
    });
    let is_in = |message: MessageId| queues.of(agents.protocol, message) == queue;
    let loops = usize::from(agents.total().max(agents.protocol.homes));
    let counts = bodies.map(|body| messages_to_one_receiver(body, &is_in, 1, loops));
    counts.max().unwrap_or(0)
}

/// Returns the maximum number of messages for which `is_in` holds that these statements send to one receiver. `times`
/// is the number of their iterations, and `loops` that of a loop. Each iteration sends to another receiver if its
/// number is the receiver.
fn messages_to_one_receiver(
    body: &[Statement],
    is_in: &dyn Fn(MessageId) -> bool,
    times: usize,
    loops: usize,
) -> usize {
    let count = |statement: &Statement| match statement {
        Statement::Send { message, to, .. } if is_in(*message) => match to {
            Target::Remote(Expression::Each) | Target::HomeAt(Expression::Each) => 1,
            _ => times,
        },
        Statement::ForEach { body, .. } | Statement::ForHomes { body, .. } => {
            messages_to_one_receiver(body, is_in, loops, loops)
        }
        Statement::If {
            then, otherwise, ..
        } => {
            let branch = |body| messages_to_one_receiver(body, is_in, times, loops);
            branch(then).max(branch(otherwise))
        }
        _ => 0,
    };
    body.iter().map(count).sum()
}
