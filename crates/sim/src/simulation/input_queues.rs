//! Input queues of networks: each receiver takes the messages of a network in one order, from all senders.
//!
//! A message enters its receiver's input queue when it arrives, and frees its place in its circuit. The first message
//! is presented to the receiver like a message of any other channel. All others wait behind it until it is taken.
//! Messages of one sender reach the front in send order, even if links deliver them in another order.
//!
//! A message occupies a place of the input queue from its sending until it is taken. An agent whose row would send more
//! than there is room for waits. It tries again whenever a message of that queue is taken.

use std::collections::VecDeque;

use cohkit_protocol::protocol::MessageId;

use super::*;
use crate::agents::program::{number_of, Act, Transition};

/// One input queue.
#[derive(Clone, Default)]
struct InputQueue {
    /// Indices of the messages that have arrived. The first one has been presented to its receiver if `presented`.
    arrived: VecDeque<u32>,
    /// True from when a message is presented until the event after it has been taken.
    presented: bool,
    /// Number of messages sent and not taken yet.
    occupied: usize,
    /// Numbers of the agents with rows that wait for room, in order of arrival: caches, then homes.
    waiting: Vec<usize>,
}

/// The input queues of all agents of a machine.
pub(crate) struct InputQueues {
    /// Networks of the protocol file.
    networks: Vec<protocol::Network>,
    /// Number of caching agents and homes.
    agents: usize,
    /// The queues of all agents for the first network, then those for the second one, and so on.
    queues: Vec<InputQueue>,
}

impl InputQueues {
    /// Creates an empty input queue for each network and each caching agent or home.
    pub fn new(protocol: &Protocol, caches: u16, homes: u64) -> InputQueues {
        let agents = usize::from(caches) + homes as usize;
        InputQueues {
            networks: protocol.networks.clone(),
            agents,
            queues: vec![InputQueue::default(); protocol.networks.len() * agents],
        }
    }

    /// True if the protocol has no networks.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// True if a network has a capacity.
    pub fn is_limited(&self) -> bool {
        self.networks
            .iter()
            .any(|network| network.capacity.is_some())
    }

    /// Returns the network of an input queue, and the number of the agent that owns the queue: caches, then homes.
    pub fn owner(&self, number: usize) -> (&protocol::Network, usize) {
        (&self.networks[number / self.agents], number % self.agents)
    }

    /// True if an arrived message has not been taken.
    pub fn has_messages(&self) -> bool {
        self.queues.iter().any(|queue| !queue.arrived.is_empty())
    }

    /// Returns the number of the input queue of an agent for messages of this kind; `None` if the kind uses no
    /// network.
    fn find(&self, tables: &Tables, kind: MessageId, to: Agent, line: Line) -> Option<usize> {
        let network = tables.kinds[kind.index()].network?;
        Some(usize::from(network) * self.agents + tables.agent_number(to, line))
    }

    /// Returns the number of the input queue of a message's receiver; `None` if the message uses no network.
    pub fn of_receiver(&self, tables: &Tables, message: &Message) -> Option<usize> {
        self.find(tables, message.kind, message.to, message.line)
    }

    /// Occupies a place of the receiver's input queue for a message that is sent.
    pub fn occupy_place(&mut self, tables: &Tables, message: &Message) {
        if let Some(number) = self.of_receiver(tables, message) {
            self.queues[number].occupied += 1;
        }
    }

    /// Appends an arrived message to an input queue.
    pub fn add(&mut self, number: usize, index: u32) {
        self.queues[number].arrived.push_back(index);
    }

    /// Returns the message of an input queue to present to its receiver, unless one is presented already.
    pub fn next_message(
        &mut self,
        number: usize,
        context: &Context,
        order_tracker: &OrderTracker,
    ) -> Option<u32> {
        let queue = &mut self.queues[number];
        if queue.presented {
            return None;
        }
        let first_in_order = queue.arrived.iter().position(|&index| {
            let message = &context.local.messages[index];
            !order_tracker.holds_back(context.tables.kind_of(message), message)
        });
        let index = queue.arrived.remove(first_in_order?)?;
        queue.arrived.push_front(index);
        queue.presented = true;
        Some(index)
    }

    /// Removes the first message of an input queue, which has been taken, and frees its place.
    pub fn remove_first(&mut self, context: &mut Context, message: &Message) {
        let Some(number) = self.of_receiver(context.tables, message) else {
            return;
        };
        let queue = &mut self.queues[number];
        queue.arrived.pop_front();
        queue.occupied -= 1;
        context.schedule(context.now(), Event::InputQueue(number as u32));
    }

    /// Lets an input queue present its next message. Returns the agents that wait for room in it.
    pub fn release_first(&mut self, number: usize) -> Vec<usize> {
        let queue = &mut self.queues[number];
        queue.presented = false;
        std::mem::take(&mut queue.waiting)
    }

    /// True if the row of a transition must wait because an input queue has too little room for its messages.
    #[inline(always)]
    pub fn waits_for_room(
        &mut self,
        context: &mut Context,
        program: &Program,
        (agent, line): (Agent, Line),
        transition: &Transition,
        consumed: Option<&Message>,
    ) -> bool {
        if self.is_empty() {
            return false;
        }
        let full_queue = self.full_queue(context.tables, program, line, transition, consumed);
        if let Some(full_queue) = full_queue {
            self.wait_for_room(context, full_queue, agent, line);
        }
        full_queue.is_some()
    }

    /// Counts a stall, and lets an agent retry when a message of a full input queue is taken.
    fn wait_for_room(
        &mut self,
        context: &mut Context,
        full_queue: usize,
        agent: Agent,
        line: Line,
    ) {
        context.tally.counters.stall(Stall::InputQueue);
        let agent = context.tables.agent_number(agent, line);
        let waiting = &mut self.queues[full_queue].waiting;
        if !waiting.contains(&agent) {
            waiting.push(agent);
        }
    }

    /// Returns the number of an input queue with too little room for the messages of a transition, if there is one.
    /// The message that the row consumes frees its place first.
    pub fn full_queue(
        &self,
        tables: &Tables,
        program: &Program,
        line: Line,
        transition: &Transition,
        consumed: Option<&Message>,
    ) -> Option<usize> {
        let target_queues = transition.acts().filter_map(|act| match program.act(act) {
            Act::Send { message, to, .. } => self.find(
                tables,
                message,
                number_of(to),
                tables.line_of(message, line, to),
            ),
            _ => None,
        });
        let mut target_queues: Vec<usize> = target_queues.collect();
        target_queues.sort_unstable();
        let freed = consumed.and_then(|message| self.of_receiver(tables, message));
        let is_full = |target_queues: &&[usize]| {
            let number = target_queues[0];
            let occupied = self.queues[number].occupied + target_queues.len() - 1;
            let (network, _) = self.owner(number);
            !network.has_room(occupied - usize::from(freed == Some(number)))
        };
        target_queues
            .chunk_by(usize::eq)
            .find(is_full)
            .map(|target_queues| target_queues[0])
    }

    /// Describes the blocked input queues: the first message of each, the reason why it is not taken, and the agents
    /// that wait for room. `head_block_reason` returns the reason for a message.
    pub fn describe_blocked(
        &self,
        tables: &Tables,
        messages: &Pool<Message>,
        mut head_block_reason: impl FnMut(&Message) -> String,
    ) -> Vec<String> {
        let names = &tables.names.local_lifelines;
        let mut sentences = Vec::new();
        for (number, queue) in self.queues.iter().enumerate() {
            let (network, receiver) = self.owner(number);
            let place = format!("network {} at {}", network.name, names[receiver]);
            let occupancy = network
                .capacity
                .map(|capacity| format!("{} of {capacity} places are occupied", queue.occupied));
            let waiting = queue.waiting.iter().map(|&agent| names[agent].as_str());
            let waiting: Vec<&str> = waiting.collect();
            if let (false, Some(occupancy)) = (waiting.is_empty(), occupancy) {
                let waiting = waiting.join(", ");
                sentences.push(format!(
                    "{waiting}: waiting for room in {place}, of which {occupancy}"
                ));
            }
            let Some(&head) = queue.arrived.front() else {
                continue;
            };
            let (message, queued) = (messages[head], queue.arrived.len() - 1);
            let message_text = tables.message_text(&message);
            let sender = tables.agent_number(message.from, message.sender_line());
            let (from, line) = (&names[sender], message.line);
            let reason = head_block_reason(&message);
            sentences.push(format!(
                "{message_text} of line {line} from {from} is the first in {place}, {queued} behind it: {reason}"
            ));
        }
        sentences
    }
}
