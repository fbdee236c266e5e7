//! Queues of a system's network: one for each channel, or for channels whose messages have an order.

use cohkit_protocol::protocol::{ChannelId, End, MessageId, Protocol};

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
