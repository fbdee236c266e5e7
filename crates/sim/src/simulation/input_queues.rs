//! Input queues of networks: each receiver takes the messages of a network one after the other, from all senders.
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
use crate::agents::program::{number_of, Act, Answer, Transition};
use crate::attribution::Step;

/// One input queue.
#[derive(Clone, Default)]
struct InputQueue {
    /// Messages that have arrived. The first one has been presented to its receiver if `presented`.
    arrived: VecDeque<u32>,
    /// True from when a message is presented until the event after it has been taken.
    presented: bool,
    /// Messages sent and not taken yet.
    occupied: usize,
    /// Agents with rows that wait for room, in order of arrival.
    waiting: Vec<usize>,
}

/// The input queues of all agents of a machine.
pub(crate) struct InputQueues {
    networks: Vec<protocol::Network>,
    /// Number of caching agents and homes.
    agents: usize,
    /// The queues of all agents for the first network, then those for the second one, and so on.
    queues: Vec<InputQueue>,
}

impl InputQueues {
    /// Returns empty input queues for each network and each caching agent or home.
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

    /// Returns the network of an input queue, and the agent that owns the queue.
    fn owner(&self, number: usize) -> (&protocol::Network, usize) {
        (&self.networks[number / self.agents], number % self.agents)
    }

    /// True if an arrived message has not been taken.
    pub fn has_messages(&self) -> bool {
        self.queues.iter().any(|queue| !queue.arrived.is_empty())
    }
}

impl Simulation {
    /// Returns the input queue of an agent for messages of this kind.
    fn input_queue(&self, kind: MessageId, to: Agent, line: Line) -> Option<usize> {
        let network = self.tables.kinds[kind.index()].network?;
        Some(usize::from(network) * self.input_queues.agents + self.agent_number(to, line))
    }

    fn receiver_queue(&self, message: &Message) -> Option<usize> {
        self.input_queue(message.kind, message.to, message.line)
    }

    /// Occupies a place of the receiver's input queue for a message that is sent.
    pub(super) fn occupy_place(&mut self, message: &Message) {
        if let Some(number) = self.receiver_queue(message) {
            self.input_queues.queues[number].occupied += 1;
        }
    }

    /// Puts an arrived message into its input queue; without one, presents it to its receiver.
    pub(super) fn enter_input_queue(&mut self, index: u32) {
        let Some(number) = self.receiver_queue(&self.local.messages[index]) else {
            return self.present_message(index);
        };
        self.dequeue_from_circuit(index);
        self.observe(Fact::Deferred {
            index,
            step: Step::InputQueue,
        });
        self.input_queues.queues[number].arrived.push_back(index);
        self.present_first(number);
    }

    /// Presents the first message of an input queue to its receiver, unless one is presented already.
    fn present_first(&mut self, number: usize) {
        let queue = &self.input_queues.queues[number];
        if queue.presented {
            return;
        }
        let first_in_order = queue.arrived.iter().position(|&index| {
            let message = &self.local.messages[index];
            let kind = &self.tables.kinds[message.kind.index()];
            !self.interconnect.order_tracker.holds_back(kind, message)
        });
        let queue = &mut self.input_queues.queues[number];
        let Some(index) = first_in_order.and_then(|position| queue.arrived.remove(position)) else {
            return;
        };
        queue.arrived.push_front(index);
        queue.presented = true;
        let step = match self.local.messages[index].to {
            HOME => Step::Unit,
            _ => Step::LineAtCache,
        };
        self.observe(Fact::Deferred { index, step });
        self.present_message(index);
    }

    /// Removes the first message of an input queue, which has been taken, and frees its place.
    pub(super) fn dequeue_from_input_queue(&mut self, message: &Message) {
        let Some(number) = self.receiver_queue(message) else {
            return;
        };
        let queue = &mut self.input_queues.queues[number];
        queue.arrived.pop_front();
        queue.occupied -= 1;
        let event = Event::InputQueue(number as u32);
        self.local.queue.push(self.local.now, event);
    }

    /// Presents the next message of an input queue, and retries the rows that wait for room in it.
    pub(super) fn advance_input_queue(&mut self, number: usize) {
        let queue = &mut self.input_queues.queues[number];
        queue.presented = false;
        let waiting = std::mem::take(&mut queue.waiting);
        self.present_first(number);
        for agent in waiting {
            self.retry_waiting(agent);
        }
    }

    /// True if the row of a transition must wait because an input queue has too little room for its messages.
    #[inline(always)]
    pub(crate) fn waits_for_room(
        &mut self,
        agent: Agent,
        line: Line,
        transition: &Transition,
        consumed: Option<&Message>,
    ) -> bool {
        if self.input_queues.is_empty() {
            return false;
        }
        let full_queue = self.full_queue(agent, line, transition, consumed);
        if let Some(full_queue) = full_queue {
            self.wait_for_room(full_queue, agent, line);
        }
        full_queue.is_some()
    }

    /// Counts a stall, and lets an agent retry when a message of a full input queue is taken.
    fn wait_for_room(&mut self, full_queue: usize, agent: Agent, line: Line) {
        self.tally.counters.stall(Stall::InputQueue);
        let agent = self.agent_number(agent, line);
        let waiting = &mut self.input_queues.queues[full_queue].waiting;
        if !waiting.contains(&agent) {
            waiting.push(agent);
        }
    }

    /// Returns an input queue with too little room for the messages of a transition. The message that the row consumes
    /// frees its place first.
    fn full_queue(
        &self,
        agent: Agent,
        line: Line,
        transition: &Transition,
        consumed: Option<&Message>,
    ) -> Option<usize> {
        let program = match agent {
            HOME => &self.home.program,
            _ => &self.remote,
        };
        let target_queues = transition.acts().filter_map(|act| match program.act(act) {
            Act::Send { message, to, .. } => {
                self.input_queue(message, number_of(to), self.line_of(message, line, to))
            }
            _ => None,
        });
        let mut target_queues: Vec<usize> = target_queues.collect();
        target_queues.sort_unstable();
        let freed = consumed.and_then(|message| self.receiver_queue(message));
        let is_full = |target_queues: &&[usize]| {
            let number = target_queues[0];
            let occupied = self.input_queues.queues[number].occupied + target_queues.len() - 1;
            let (network, _) = self.input_queues.owner(number);
            !network.has_room(occupied - usize::from(freed == Some(number)))
        };
        target_queues
            .chunk_by(usize::eq)
            .find(is_full)
            .map(|target_queues| target_queues[0])
    }

    /// Describes the blocked input queues: the first message of each, the reason why it is not taken, and the agents
    /// that wait for room.
    pub(crate) fn blocked_input_queues(&mut self) -> Vec<String> {
        let names = self.local_lifelines();
        let mut sentences = Vec::new();
        for number in 0..self.input_queues.queues.len() {
            let (network, receiver) = self.input_queues.owner(number);
            let place = format!("network {} at {}", network.name, names[receiver]);
            let occupancy = network.capacity.map(|capacity| {
                let occupied = self.input_queues.queues[number].occupied;
                format!("{occupied} of {capacity} places are occupied")
            });
            let queue = &self.input_queues.queues[number];
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
            let (message, queued) = (self.local.messages[head], queue.arrived.len() - 1);
            let message_text = self.message_text(&message);
            let from = &names[self.agent_number(message.from, message.sender_line())];
            let reason = self.head_block_reason(&message, &names);
            sentences.push(format!(
                "{message_text} of line {} from {from} is the first in {place}, {queued} behind it: {reason}",
                message.line
            ));
        }
        sentences
    }

    /// Returns the reason why the first message of an input queue is not taken.
    fn head_block_reason(&mut self, message: &Message, names: &[String]) -> String {
        let (agent, line) = (message.to, message.line);
        let input = Self::input(message);
        let configuration = match agent {
            HOME => self.home.directory.get(line),
            cache => self.caches.configuration(cache, line),
        };
        let transition = match agent {
            HOME => self.home_step(line, configuration, &input),
            cache => self.remote_step(cache, line, configuration, &input),
        };
        let full_queue = match transition.answer {
            Answer::Take => self.full_queue(agent, line, &transition, Some(message)),
            _ => None,
        };
        if let Some(full_queue) = full_queue {
            let (network, receiver) = self.input_queues.owner(full_queue);
            let (name, receiver) = (&network.name, &names[receiver]);
            return format!("its row waits for room in network {name} at {receiver}");
        }
        let receiver = &names[self.agent_number(agent, line)];
        let state = self.state_text(agent, line, configuration);
        match self.awaited_messages(agent, configuration) {
            Some(awaited) => format!("{receiver} is in {state} and waits for {awaited}"),
            None => format!("{receiver} is in {state}"),
        }
    }
}
