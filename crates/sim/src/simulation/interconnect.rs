//! The interconnect of a machine: links, switches, framed ports and input queues, with the order of messages on them.
//!
//! Messages come in through [`Interconnect::send`] and leave through events: [`Event::Deliver`] at the receiver. A
//! receiver removes a message with [`Interconnect::take_message`], which frees its place and may send the next one. The
//! interconnect calls no other component; it pushes events, counts stalls, draws random delays, and reports to the
//! observer.

use super::*;
use crate::attribution::Step;
use crate::scenario;

/// Messages admitted from framed links, and messages left for another space.
pub(crate) struct Admission {
    /// Messages that reach their receivers at once, in order of arrival. Their list is returned with
    /// [`Interconnect::complete_admission`].
    pub arrivals: Vec<u32>,
    /// Messages taken by this space, or left for the other one.
    pub unclaimed: Unclaimed,
}

/// All paths of messages, and the order on them.
pub(crate) struct Interconnect {
    /// Links, and a switch if the machine has one.
    pub network: Network,
    /// Interconnect in place of `network` where the machine has hosts; `None` otherwise.
    pub hosts: Option<Box<Hosts>>,
    /// Ordered messages in flight, behind which later messages must wait.
    pub order_tracker: OrderTracker,
    /// Input queues of networks; empty if the protocol file has no networks.
    pub input_queues: InputQueues,
    /// Number of messages sent of each kind.
    pub sent_by_kind: Vec<u64>,
    /// Window in which traffic is measured for a scenario; `None` without a scenario.
    pub traffic_window: Option<TrafficWindow>,
}

/// Window in which traffic on links is measured. It opens with the first message sent after warm-up.
pub(crate) struct TrafficWindow {
    /// End of the warm-up, in picoseconds.
    pub warm_up: Time,
    /// Traffic so far of each kind of caching agents when the window opened; `None` before.
    opening: Option<Vec<scenario::Traffic>>,
    /// Traffic so far of each kind when the window closed; `None` before.
    closing: Option<Vec<scenario::Traffic>>,
}

impl TrafficWindow {
    /// Creates a window that has not opened.
    pub fn new(warm_up: Time) -> TrafficWindow {
        TrafficWindow {
            warm_up,
            opening: None,
            closing: None,
        }
    }
}

impl Interconnect {
    /// Creates idle paths of a setup.
    ///
    /// # Errors
    /// A sentence, if the protocol's messages do not fit the framing of a link.
    pub fn new(
        setup: &Setup,
        tables: &Tables,
        quantities: &[KindQuantities],
    ) -> Result<Interconnect, String> {
        let (platform, protocol) = (&setup.platform, &setup.protocol);
        let (groups, kinds) = (&tables.groups, &tables.kinds);
        Ok(Interconnect {
            network: Network::new(platform, groups, quantities, protocol, kinds, setup.seed)?,
            hosts: Hosts::new(platform, kinds).map(Box::new),
            order_tracker: OrderTracker::default(),
            input_queues: InputQueues::new(protocol, groups.caches(), platform.homes()),
            sent_by_kind: vec![0; kinds.len()],
            traffic_window: (setup.play.as_ref()).map(|play| TrafficWindow::new(play.warm_up)),
        })
    }

    /// Sends a message that is ready at time `ready`, which is not before now. Sets its flight number and its
    /// credit.
    #[inline]
    pub fn send(&mut self, context: &mut Context, mut message: Message, ready: Time) {
        if self.traffic_window.is_some() {
            self.open_traffic_window(context);
        }
        context.local.flights = context.local.flights.wrapping_add(1);
        message.flight = context.local.flights;
        message.credit = true;
        let kind = context.tables.kind_of(&message);
        self.sent_by_kind[message.kind.index()] += 1;
        self.order_tracker.record_sent(kind, &message);
        if kind.network.is_some() {
            self.input_queues.occupy_place(context.tables, &message);
        }
        context.observe(Fact::Sent {
            message: &message,
            ready,
        });
        self.transport(context, message, ready);
        if context.tables.bounds.in_flight.is_some() {
            check_in_flight(context, &message);
        }
    }

    /// Opens the window of traffic at the first message sent after warm-up; earlier traffic does not count.
    fn open_traffic_window(&mut self, context: &Context) {
        let window = self.traffic_window.as_ref();
        if window.is_some_and(|window| window.opening.is_none() && context.now() >= window.warm_up)
        {
            let traffic = self.traffic(&context.tables.groups);
            if let Some(window) = &mut self.traffic_window {
                window.opening = Some(traffic);
            }
        }
    }

    /// Closes the window of traffic.
    pub fn close_traffic_window(&mut self, groups: &Groups) {
        let traffic = self.traffic(groups);
        if let Some(window) = &mut self.traffic_window {
            window.closing.get_or_insert(traffic);
        }
    }

    /// Returns the traffic in the window, which ends now unless it has been closed; `None` if it has not opened.
    pub fn window_traffic(&self, groups: &Groups) -> Option<Vec<scenario::Traffic>> {
        let window = self.traffic_window.as_ref()?;
        let opening = window.opening.as_ref()?;
        let closing = (window.closing.clone()).unwrap_or_else(|| self.traffic(groups));
        let window_traffic = closing.iter().zip(opening);
        let window_traffic = window_traffic.map(|(closing, opening)| scenario::Traffic {
            messages: closing.messages - opening.messages,
            bytes: closing.bytes - opening.bytes,
        });
        Some(window_traffic.collect())
    }

    /// Returns the traffic so far on the links of each kind of caching agents.
    fn traffic(&self, groups: &Groups) -> Vec<scenario::Traffic> {
        let network = &self.network;
        let cache_traffic = |cache: Agent| {
            let number = cache.index();
            let directions = [&network.up[number], &network.down[number]];
            let port = network.ports.get(number).and_then(Option::as_ref);
            let bytes = |side: usize| port.map_or(directions[side].bytes, |port| port.bytes(side));
            (
                directions[0].messages + directions[1].messages,
                bytes(0) + bytes(1),
            )
        };
        let kind_traffic = |group: &Group| {
            let traffic = group.caches.iter().map(cache_traffic);
            let add = |sum: scenario::Traffic, (messages, bytes)| scenario::Traffic {
                messages: sum.messages + messages,
                bytes: sum.bytes + bytes,
            };
            traffic.fold(scenario::Traffic::default(), add)
        };
        groups.groups.iter().map(kind_traffic).collect()
    }

    /// Starts the transport of a numbered message at time `ready`.
    #[inline(always)]
    fn transport(&mut self, context: &mut Context, mut message: Message, ready: Time) {
        let kind = context.tables.kind_of(&message);
        let (circuit, order) = (kind.circuit, kind.order(&message));
        if self.hosts.is_some() {
            return self.send_by_hosts(context, message, ready, order);
        }
        let switched = self.network.is_switched();
        if message.from == HOME && message.to == HOME && !switched {
            // Without a switch, all homes are in one place.
            message.credit = false;
            let index = context.local.messages.insert(message);
            return context.schedule(ready, Event::Deliver(index));
        }
        let index = context.local.messages.insert(message);
        if self.network.framed_links(&message, false).is_some() {
            return self.schedule_offer(context, index, ready, false);
        }
        let now = context.now();
        let sent = Sent { now, ready };
        let direction = self.network.links_from_sender(&message);
        if direction.take_credit(circuit) {
            let arrival = direction.send(
                sent,
                (message.kind, extra_bytes(&message)),
                &mut context.local.random,
                order,
            );
            let event = match switched {
                true => Event::Switch(index, SwitchHop::First),
                false => Event::Deliver(index),
            };
            context.schedule(arrival, event);
        } else {
            direction.queue(circuit, ready, index);
            context.tally.counters.stall(Stall::NoCredit);
        }
    }

    /// Sends a message in a machine with hosts.
    fn send_by_hosts(
        &mut self,
        context: &mut Context,
        mut message: Message,
        ready: Time,
        order: Option<Order>,
    ) {
        let Some(hosts) = &mut self.hosts else { return };
        // Receivers have room for all messages.
        message.credit = false;
        let now = context.now();
        let sent = Sent { now, ready };
        let (arrival, has_switch) = hosts.send(sent, &message, &mut context.local.random, order);
        let index = context.local.messages.insert(message);
        context.schedule(
            arrival,
            match has_switch {
                true => Event::Switch(index, SwitchHop::First),
                false => Event::Deliver(index),
            },
        );
    }

    /// Sends a message that now has the room it waited for: behind its first links, or behind its last ones if
    /// `to_receiver`.
    fn send_queued(&mut self, context: &mut Context, index: u32, ready: Time, to_receiver: bool) {
        let message = context.local.messages[index];
        let now = context.now();
        if context.observer.is_enabled() {
            context.observer.record_credit(now, &message, ready);
        }
        let order = context.tables.kind_of(&message).order(&message);
        let sent = Sent { now, ready };
        let direction = match to_receiver {
            true => self.network.links_to_receiver(&message),
            false => self.network.links_from_sender(&message),
        };
        let arrival = direction.send(
            sent,
            (message.kind, extra_bytes(&message)),
            &mut context.local.random,
            order,
        );
        let event = match to_receiver {
            true => Event::Deliver(index),
            false => Event::Switch(index, SwitchHop::First),
        };
        context.schedule(arrival, event);
    }

    /// Handles the arrival of a message at a switch. The message continues when there is room behind its last links.
    pub fn handle_switch_arrival(&mut self, context: &mut Context, index: u32, switch: SwitchHop) {
        if switch == SwitchHop::First {
            self.observe_arrival(context, index, false);
        }
        let message = context.local.messages[index];
        let (now, kind) = (context.now(), context.tables.kind_of(&message));
        let ready = now + context.tables.times.switch;
        if let Some(hosts) = &mut self.hosts {
            let order = kind.order(&message);
            let sent = Sent { now, ready };
            let (arrival, next_hop) =
                hosts.send_from_switch(switch, sent, &message, &mut context.local.random, order);
            let event = match next_hop {
                Some(hop) => Event::Switch(index, hop),
                None => Event::Deliver(index),
            };
            return context.schedule(arrival, event);
        }
        let circuit = kind.circuit;
        if self.network.framed_links(&message, true).is_some() {
            return self.schedule_offer(context, index, ready, true);
        }
        let direction = self.network.links_to_receiver(&message);
        if direction.take_credit(circuit) {
            self.send_from_switch(context, index, ready);
        } else {
            direction.queue(circuit, ready, index);
            context.tally.counters.stall(Stall::NoCredit);
        }
    }

    /// Sends a message from the switch to its receiver, and frees its place at the switch.
    fn send_from_switch(&mut self, context: &mut Context, index: u32, ready: Time) {
        self.send_queued(context, index, ready, true);
        let message = context.local.messages[index];
        self.free_switch_place(context, &message);
    }

    /// Reports the arrival of a message at its receiver or at the switch.
    #[inline(always)]
    fn observe_arrival(&mut self, context: &mut Context, index: u32, at_receiver: bool) {
        if !context.observer.is_enabled() {
            return;
        }
        let message = context.local.messages[index];
        let is_switched = self.network.is_switched();
        // Without a switch all homes are at one place.
        if (message.from, message.to) == (HOME, HOME) && !is_switched || self.hosts.is_some() {
            return;
        }
        let direction = match at_receiver {
            true => self.network.links_to_receiver(&message),
            false => self.network.links_from_sender(&message),
        };
        let path = PathTimes {
            at_receiver,
            is_switched,
            uncontended: direction.uncontended_times(message.kind),
            is_random: direction.is_random(),
        };
        context.observe(Fact::Arrived { index, path });
    }

    /// Handles the arrival of a message at its receiver. Returns the message that is presented to its receiver now: this
    /// one, or the first of its input queue, if any.
    #[inline(always)]
    pub fn handle_arrival(&mut self, context: &mut Context, index: u32) -> Option<u32> {
        self.observe_arrival(context, index, true);
        match self.input_queues.is_empty() {
            true => Some(index),
            false => self.enter_input_queue(context, index),
        }
    }

    /// Puts an arrived message into its input queue, if it has one. Returns the message to present, as
    /// [`Interconnect::handle_arrival`].
    fn enter_input_queue(&mut self, context: &mut Context, index: u32) -> Option<u32> {
        let message = context.local.messages[index];
        let Some(number) = self.input_queues.of_receiver(context.tables, &message) else {
            return Some(index);
        };
        self.dequeue_from_circuit(context, index);
        context.observe(Fact::Deferred {
            index,
            step: Step::InputQueue,
        });
        self.input_queues.add(number, index);
        self.next_of_input_queue(context, number)
    }

    /// Handles the removal of an input queue's first message. Returns the message to present next, and the agents that
    /// wait for room.
    pub fn advance_input_queue(
        &mut self,
        context: &mut Context,
        number: usize,
    ) -> (Option<u32>, Vec<usize>) {
        let waiting = self.input_queues.release_first(number);
        (self.next_of_input_queue(context, number), waiting)
    }

    /// Returns the message of an input queue to present to its receiver, unless one is presented already.
    fn next_of_input_queue(&mut self, context: &mut Context, number: usize) -> Option<u32> {
        let index = (self.input_queues).next_message(number, context, &self.order_tracker)?;
        let step = match context.local.messages[index].to {
            HOME => Step::Unit,
            _ => Step::LineAtCache,
        };
        context.observe(Fact::Deferred { index, step });
        Some(index)
    }

    /// Removes a message that a controller takes. If its order spans lines, returns the line of the next message of the
    /// order.
    #[inline(always)]
    pub fn take_message(
        &mut self,
        context: &mut Context,
        index: u32,
        message: &Message,
    ) -> Option<Line> {
        self.free_circuit_place(context, message);
        let kind = context.tables.kind_of(message);
        let next = self.order_tracker.record_taken(kind, message);
        if kind.network.is_some() {
            self.input_queues.remove_first(context, message);
        }
        context.local.messages.remove(index);
        next
    }

    /// Takes a message out of its circuit at the receiver. It stays in the pool.
    pub fn dequeue_from_circuit(&mut self, context: &mut Context, index: u32) {
        let message = context.local.messages[index];
        context.local.messages[index].credit = false;
        self.free_circuit_place(context, &message);
    }

    /// Frees a message's place in its circuit at the receiver. The next message in its queue may be sent.
    #[inline(always)]
    pub fn free_circuit_place(&mut self, context: &mut Context, message: &Message) {
        if !message.credit {
            return;
        }
        let now = context.now();
        let circuit = context.tables.kind_of(message).circuit;
        let next = (self.network.links_to_receiver(message)).return_credit(circuit);
        if let Some((number, _, port)) = self.network.framed_links(message, true) {
            // Messages that arrived on the links without finding room may enter now.
            if std::mem::take(&mut port.blocked) {
                port.set_due(now);
                context.schedule(now, Event::Lanes(number as u32));
            }
            return;
        }
        if let Some((ready, next)) = next {
            let ready = ready.max(now);
            match self.network.is_switched() {
                true => self.send_from_switch(context, next, ready),
                false => self.send_queued(context, next, ready, true),
            }
        }
    }

    /// Schedules the offer of a message to framed links at time `ready`, which is not before now. `to_receiver`: these
    /// are the last links on its path.
    fn schedule_offer(
        &mut self,
        context: &mut Context,
        index: u32,
        ready: Time,
        to_receiver: bool,
    ) {
        let message = context.local.messages[index];
        let Some((number, side, port)) = self.network.framed_links(&message, to_receiver) else {
            return;
        };
        let entry_time = match port.entry_time(side, message.kind, ready) {
            Some(entry_time) => entry_time,
            None if ready > context.now() => ready,
            None => return self.offer_to_links(context, index, to_receiver),
        };
        // Messages that wait for its place are notified when it leaves.
        if to_receiver {
            return context.schedule(entry_time, Event::Offer(index));
        }
        let next_arrival = port.offer_later(entry_time, side, message.kind, message.line, index);
        if next_arrival < port.due() {
            port.set_due(next_arrival);
            context.schedule(next_arrival, Event::Lanes(number as u32));
        }
        let direction = self.network.links_from_sender(&message);
        direction.count((message.kind, extra_bytes(&message)));
    }

    /// Offers a message to framed links now. `to_receiver`: these are the last links on its path.
    pub fn offer_to_links(&mut self, context: &mut Context, index: u32, to_receiver: bool) {
        let (message, now) = (context.local.messages[index], context.now());
        let direction = match to_receiver {
            true => self.network.links_to_receiver(&message),
            false => self.network.links_from_sender(&message),
        };
        direction.count((message.kind, extra_bytes(&message)));
        let Some((number, side, port)) = self.network.framed_links(&message, to_receiver) else {
            return;
        };
        port.advance(now);
        let due = port.offer(side, message.kind, message.line, index);
        self.schedule_lanes(context, number, due);
        if to_receiver {
            self.free_switch_place(context, &message);
        }
    }

    /// Frees a message's place at the switch.
    fn free_switch_place(&mut self, context: &mut Context, message: &Message) {
        let now = context.now();
        let circuit = context.tables.kind_of(message).circuit;
        let next = (self.network.links_from_sender(message)).return_credit(circuit);
        if let Some((number, _, port)) = self.network.framed_links(message, false) {
            if std::mem::take(&mut port.blocked) {
                port.set_due(now);
                context.schedule(now, Event::Lanes(number as u32));
            }
        } else if let Some((ready, next)) = next {
            self.send_queued(context, next, ready.max(now), false);
        }
    }

    /// True if framed links are due at `now`. They are not if they have been advanced since the event was
    /// scheduled.
    pub fn is_due(&self, number: usize, now: Time) -> bool {
        let port = self.network.ports[number].as_ref();
        port.is_some_and(|port| port.due() <= now)
    }

    /// Lets messages in that have arrived on framed links, as far as there is room at the switch or at their receivers.
    pub fn admit_from_lanes(&mut self, context: &mut Context, number: usize) -> Admission {
        let (network, now) = (&mut self.network, context.now());
        let LocalState {
            messages, queue, ..
        } = &mut *context.local;
        let kinds = &context.tables.kinds;
        // The closure below needs other parts of the network for the room at receivers.
        let mut ports = std::mem::take(&mut network.ports);
        let Some(port) = &mut ports[number] else {
            network.ports = ports;
            return Admission {
                arrivals: Vec::new(),
                unclaimed: Unclaimed::default(),
            };
        };
        port.set_due(Time::MAX);
        let (join, mut blocked) = (port.join, false);
        let switched = network.is_switched();
        let can_enter = |to: usize, index: u32| {
            let message = &messages[index];
            let circuit = kinds[message.kind.index()].circuit;
            let has_room = match switched && to == 1 {
                true => network.links_from_sender(message).take_credit(circuit),
                false => network.links_to_receiver(message).take_credit(circuit),
            };
            blocked |= !has_room;
            has_room
        };
        let mut arrivals = std::mem::take(&mut port.arrived_messages);
        let unclaimed = port.take(now, can_enter, |to, index| match join[to] {
            _ if switched && to == 1 => queue.push(now, Event::Switch(index, SwitchHop::First)),
            0 => arrivals.push(index),
            join => queue.push(now + join, Event::Deliver(index)),
        });
        port.blocked = blocked;
        network.ports = ports;
        Admission {
            arrivals,
            unclaimed,
        }
    }

    /// Schedules the next progress of framed links after all arrivals of an admission have been handled. Takes back
    /// their list, which is empty.
    pub fn complete_admission(&mut self, context: &mut Context, number: usize, arrivals: Vec<u32>) {
        if let Some(port) = &mut self.network.ports[number] {
            port.arrived_messages = arrivals;
            let due = port.next_event().unwrap_or(Time::MAX);
            self.schedule_lanes(context, number, due);
        }
    }

    /// Schedules the next progress of framed links, unless an earlier one is scheduled.
    fn schedule_lanes(&mut self, context: &mut Context, number: usize, due: Time) {
        let due = due.max(context.now());
        if let Some(port) = (self.network.ports[number].as_mut()).filter(|port| due < port.due()) {
            port.set_due(due);
            context.schedule(due, Event::Lanes(number as u32));
        }
    }
}

/// Checks the bound on messages in flight for a message that has just been sent.
#[cold]
fn check_in_flight(context: &mut Context, sent: &Message) {
    for remote in [sent.from, sent.to] {
        let uses_remote = |message: &Message| {
            message.line == sent.line && (message.from == remote || message.to == remote)
        };
        let messages = context.local.messages.iter();
        let count = messages.filter(|(_, m)| uses_remote(m)).count();
        let exceeded = context.tables.bounds.exceeded(count);
        if let Some(excess) = exceeded.filter(|_| remote != HOME) {
            let text = format!("{excess}, from or to {}", context.agent_name(remote));
            context.fail(FailureKind::InFlight, sent.line, text);
        }
    }
}
