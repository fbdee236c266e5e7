//! The interconnect of a machine: links, switches and framed ports, with the order of messages on them.
//!
//! Messages come in through [`Interconnect::send`] and leave through events: [`Event::Deliver`] at the receiver. A
//! receiver returns the place of a message with [`Interconnect::free_circuit_place`], which may send the next one. The
//! interconnect calls no other component; it pushes events, counts stalls, draws random delays, and reports to the
//! observer.

use super::*;

/// Parts of a run that the interconnect uses, borrowed for one call.
pub(crate) struct Context<'c> {
    pub tables: &'c Tables,
    pub local: &'c mut LocalState,
    pub counters: &'c mut Counters,
    pub observer: &'c mut Observer,
}

/// Messages that framed links have let in, and messages left for another space.
pub(crate) struct Admission {
    /// Messages that reach their receivers at once, in order of arrival. Their list is returned with
    /// [`Interconnect::complete_admission`].
    pub arrivals: Vec<u32>,
    pub unclaimed: Unclaimed,
}

/// All paths of messages, and the order on them.
pub(crate) struct Interconnect {
    pub network: Network,
    /// Interconnect in place of `network` where the machine has hosts.
    pub hosts: Option<Box<Hosts>>,
    /// Ordered messages in flight, behind which later messages must wait.
    pub order_tracker: OrderTracker,
    /// Number of messages sent of each kind.
    pub sent_by_kind: Vec<u64>,
}

impl Interconnect {
    /// Assigns a message its number, and counts it.
    #[inline(always)]
    pub fn number(&mut self, context: &mut Context, message: &mut Message) {
        context.local.flights = context.local.flights.wrapping_add(1);
        message.flight = context.local.flights;
        message.credit = true;
        let kind = &context.tables.kinds[message.kind.index()];
        self.sent_by_kind[message.kind.index()] += 1;
        self.order_tracker.record_sent(kind, message);
    }

    /// Sends a numbered message at time `ready`, which is not before now.
    #[inline(always)]
    pub fn send(&mut self, context: &mut Context, mut message: Message, ready: Time) {
        let kind = &context.tables.kinds[message.kind.index()];
        let (circuit, order) = (kind.circuit, kind.order(&message));
        if self.hosts.is_some() {
            return self.send_by_hosts(context, message, ready, order);
        }
        let switched = self.network.is_switched();
        if message.from == HOME && message.to == HOME && !switched {
            // Without a switch, all homes are in one place.
            message.credit = false;
            let index = context.local.messages.insert(message);
            return context.local.queue.push(ready, Event::Deliver(index));
        }
        let index = context.local.messages.insert(message);
        if self.network.framed_links(&message, false).is_some() {
            return self.schedule_offer(context, index, ready, false);
        }
        let now = context.local.now;
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
            context.local.queue.push(arrival, event);
        } else {
            direction.queue(circuit, ready, index);
            context.counters.stall(Stall::NoCredit);
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
        let now = context.local.now;
        let sent = Sent { now, ready };
        let (arrival, has_switch) = hosts.send(sent, &message, &mut context.local.random, order);
        let index = context.local.messages.insert(message);
        context.local.queue.push(
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
        let now = context.local.now;
        if context.observer.is_enabled() {
            context.observer.record_credit(now, &message, ready);
        }
        let order = context.tables.kinds[message.kind.index()].order(&message);
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
        context.local.queue.push(arrival, event);
    }

    /// Handles the arrival of a message at a switch. The message continues when there is room behind its last links.
    pub fn handle_switch_arrival(&mut self, context: &mut Context, index: u32, switch: SwitchHop) {
        let message = context.local.messages[index];
        let (now, kind) = (
            context.local.now,
            &context.tables.kinds[message.kind.index()],
        );
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
            return context.local.queue.push(arrival, event);
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
            context.counters.stall(Stall::NoCredit);
        }
    }

    /// Sends a message from the switch to its receiver, and frees its place at the switch.
    fn send_from_switch(&mut self, context: &mut Context, index: u32, ready: Time) {
        self.send_queued(context, index, ready, true);
        let message = context.local.messages[index];
        self.free_switch_place(context, &message);
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
        let now = context.local.now;
        let circuit = context.tables.kinds[message.kind.index()].circuit;
        let next = (self.network.links_to_receiver(message)).return_credit(circuit);
        if let Some((number, _, port)) = self.network.framed_links(message, true) {
            // Messages that arrived on the links without finding room may enter now.
            if std::mem::take(&mut port.blocked) {
                port.set_due(now);
                context.local.queue.push(now, Event::Lanes(number as u32));
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
            None if ready > context.local.now => ready,
            None => return self.offer_to_links(context, index, to_receiver),
        };
        // Messages that wait for its place are notified when it leaves.
        if to_receiver {
            return context.local.queue.push(entry_time, Event::Offer(index));
        }
        let next_arrival = port.offer_later(entry_time, side, message.kind, message.line, index);
        if next_arrival < port.due() {
            port.set_due(next_arrival);
            (context.local.queue).push(next_arrival, Event::Lanes(number as u32));
        }
        let direction = self.network.links_from_sender(&message);
        direction.count((message.kind, extra_bytes(&message)));
    }

    /// Offers a message to framed links.
    pub fn offer_to_links(&mut self, context: &mut Context, index: u32, to_receiver: bool) {
        let (message, now) = (context.local.messages[index], context.local.now);
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
        let now = context.local.now;
        let circuit = context.tables.kinds[message.kind.index()].circuit;
        let next = (self.network.links_from_sender(message)).return_credit(circuit);
        if let Some((number, _, port)) = self.network.framed_links(message, false) {
            if std::mem::take(&mut port.blocked) {
                port.set_due(now);
                context.local.queue.push(now, Event::Lanes(number as u32));
            }
        } else if let Some((ready, next)) = next {
            self.send_queued(context, next, ready.max(now), false);
        }
    }

    /// True if framed links are due. They are not if they have been advanced since the event was scheduled.
    pub fn is_due(&self, number: usize, now: Time) -> bool {
        let port = self.network.ports[number].as_ref();
        port.is_some_and(|port| port.due() <= now)
    }

    /// Lets messages in that have arrived on framed links, as far as there is room at the switch or at their receivers.
    pub fn admit_from_lanes(&mut self, context: &mut Context, number: usize) -> Admission {
        let network = &mut self.network;
        let LocalState {
            messages,
            queue,
            now,
            ..
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
        let unclaimed = port.take(*now, can_enter, |to, index| match join[to] {
            _ if switched && to == 1 => queue.push(*now, Event::Switch(index, SwitchHop::First)),
            0 => arrivals.push(index),
            join => queue.push(*now + join, Event::Deliver(index)),
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
        let due = due.max(context.local.now);
        if let Some(port) = (self.network.ports[number].as_mut()).filter(|port| due < port.due()) {
            port.set_due(due);
            context.local.queue.push(due, Event::Lanes(number as u32));
        }
    }
}
