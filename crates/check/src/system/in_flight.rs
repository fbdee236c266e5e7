//! Questions about the messages in flight: existence, number, order, and whether their copies are current.

use cohkit_engine::build::when;
use cohkit_engine::model::{Expr, Place, Stmt, TypeId, VariableId};
use cohkit_protocol::protocol::MessageId;

use super::channels::Channels;
use super::context::Context;
use super::flows::{Direction, Endpoints, Queue, Storage};

impl Channels<'_> {
    /// Returns the index of the flow of a message type in one direction; `None` if no row sends such a message.
    pub fn flow_of(&self, message: MessageId, direction: Direction) -> Option<usize> {
        let mut flows = self.flows.iter();
        flows.position(|flow| (flow.message, flow.direction) == (message, direction))
    }

    /// Returns all queues of a group for messages about a line. `queue` is an index into `queues`.
    pub fn queues_of(&self, queue: usize, line: &Expr) -> Place {
        let queue = &self.queues[queue];
        match queue.per_line {
            true => queue.variable.at(line),
            false => self.frame.part_of_home(queue.variable, line),
        }
    }

    /// The queue between two homes. `line` is the number of the receiving home, or one of its lines.
    pub fn queue_between(&self, queue: usize, line: &Expr, sender: &Expr) -> Place {
        self.queues_of(queue, line).at(sender)
    }

    /// Returns the queue between two endpoints for messages about a line.
    pub fn queue_at(&self, queue: usize, line: &Expr, endpoints: Endpoints) -> Place {
        endpoints.index(self.queues_of(queue, line))
    }

    /// True if the messages of a flow carry a copy of the line.
    pub fn carries_line(&self, flow: usize) -> bool {
        self.frame
            .protocol
            .message(self.flows[flow].message)
            .carries
            .line()
    }

    /// Marks the copies of a line in all messages as stale.
    pub fn mark_copies_stale(&self, line: &Expr) -> Vec<Stmt> {
        let mut out = Vec::new();
        for (flow, variable) in self.counted_copies() {
            let (types, place) = (self.cell_types(flow), variable.at(line));
            out.extend(self.frame.for_each_cell(&types, place, &|place| {
                let (stale, current) = (place.clone().at(false), place.at(true));
                let moved = [
                    stale.clone().set(stale + current.clone()),
                    current.clone().set(0),
                ];
                vec![when(current.gt(0), moved.to_vec())]
            }));
        }
        for (index, queue) in self.queued_copies() {
            let (types, place) = (self.queue_types(queue), self.queues_of(index, line));
            out.extend(self.frame.for_each_cell(&types, place, &|place| {
                let outdating = self.frame.scope.with_bound(queue.positions, |i| {
                    let entry = place.field("slot").at(i);
                    let stale = entry.clone().field("current").set(false);
                    i.each(vec![when(queue.is_about(&entry, line), vec![stale])])
                });
                vec![outdating]
            }));
        }
        out
    }

    /// Returns, for each flow and queue, a condition: it holds a current copy of a line.
    pub fn current_copies(&self, line: &Expr) -> Vec<Expr> {
        let mut out = Vec::new();
        for (flow, variable) in self.counted_copies() {
            let place = variable.at(line);
            out.push(self.any_cell(flow, place, &|place| place.at(true).gt(0)));
        }
        for (index, queue) in self.queued_copies() {
            out.push(self.any_queue(index, line, &|place| {
                self.frame.scope.with_bound(queue.positions, |i| {
                    let entry = place.field("slot").at(i);
                    i.any(queue.is_about(&entry, line).and(entry.field("current")))
                })
            }));
        }
        out
    }

    /// The counted flows whose messages carry a copy of the line.
    fn counted_copies(&self) -> impl Iterator<Item = (usize, VariableId)> + '_ {
        let flows = (0..self.flows.len()).filter(|&flow| self.carries_line(flow));
        flows.filter_map(|flow| Some((flow, self.flows[flow].storage.counter()?)))
    }

    /// The queues whose messages carry a copy of the line.
    fn queued_copies(&self) -> impl Iterator<Item = (usize, &Queue)> {
        let queues = self.queues.iter().enumerate();
        queues.filter(|(_, queue)| queue.carries_line)
    }

    /// Returns the condition that a message of these types is in flight to the current agent.
    pub fn any_in_flight(&self, messages: &[MessageId], context: &Context) -> Expr {
        let flows = self.flows_to_remotes(messages);
        flows.fold(Expr::Bool(false), |exists, flow| {
            exists.or(self.in_flight_to(flow, context, false))
        })
    }

    /// Returns, for each flow of these messages to remotes, the condition that one with a stale copy is in flight to
    /// the current agent.
    pub fn stale_in_flight(&self, messages: &[MessageId], context: &Context) -> Vec<Expr> {
        let flows = self.flows_to_remotes(messages);
        flows
            .map(|flow| self.in_flight_to(flow, context, true))
            .collect()
    }

    /// The flows of these messages to remotes, as indices into `flows`.
    fn flows_to_remotes<'c>(
        &'c self,
        messages: &'c [MessageId],
    ) -> impl Iterator<Item = usize> + 'c {
        (0..self.flows.len()).filter(|&flow| {
            let flow = &self.flows[flow];
            messages.contains(&flow.message) && flow.direction.is_to_remote()
        })
    }

    /// Returns the condition that a message of a flow is in flight to the current agent; with `stale_only`, one with a
    /// stale copy of the line.
    fn in_flight_to(&self, flow: usize, context: &Context, stale_only: bool) -> Expr {
        match self.flows[flow].direction.is_from_remote() {
            false => self.in_flight_from(flow, context, None, stale_only),
            true => self.frame.any_remote(|from| {
                self.in_flight_from(flow, context, Some(&from.into()), stale_only)
            }),
        }
    }

    /// Returns the condition that a message of a flow is in flight from a sender (`None` for a home) to the current
    /// agent.
    fn in_flight_from(
        &self,
        flow: usize,
        context: &Context,
        from: Option<&Expr>,
        stale_only: bool,
    ) -> Expr {
        let line = &context.line;
        let to = context.remote.as_ref();
        let endpoints = Endpoints { from, to };
        match self.flows[flow].storage {
            Storage::Counted(variable) => {
                let place = endpoints.index(variable.at(line));
                (self.frame).any_cell(&self.flows[flow].stored, place, &|place| {
                    let matches = place.clone().at(false).gt(0);
                    match stale_only {
                        true => matches,
                        false => matches.or(place.at(true).gt(0)),
                    }
                })
            }
            Storage::Queued(index, label) => {
                let place = self.queue_at(index, line, endpoints);
                let queue = &self.queues[index];
                self.frame.scope.with_bound(queue.positions, |i| {
                    let entry = place.field("slot").at(i);
                    let matches = queue.holds(&entry, label, line);
                    i.any(match stale_only {
                        true => matches.and(!Expr::from(entry.field("current"))),
                        false => matches,
                    })
                })
            }
        }
    }

    /// The types that index a counted flow between the line and the current bit.
    fn cell_types(&self, flow: usize) -> Vec<TypeId> {
        let flow = &self.flows[flow];
        let mut types = vec![self.frame.remote_type; flow.direction.remote_ends()];
        types.extend(&flow.stored);
        types
    }

    /// Returns the condition that `claim` holds for some cell of a counted flow. `place` is the counter, indexed by
    /// the line.
    pub fn any_cell(&self, flow: usize, place: Place, claim: &dyn Fn(Place) -> Expr) -> Expr {
        self.frame.any_cell(&self.cell_types(flow), place, claim)
    }

    /// The types that index the queues of a group.
    fn queue_types(&self, queue: &Queue) -> Vec<TypeId> {
        let mut types = vec![self.frame.remote_type; queue.direction.remote_ends()];
        types.extend(queue.senders);
        types
    }

    /// True if `claim` holds for some queue of a group for messages about a line.
    pub fn any_queue(&self, queue: usize, line: &Expr, claim: &dyn Fn(Place) -> Expr) -> Expr {
        let types = self.queue_types(&self.queues[queue]);
        self.frame
            .any_cell(&types, self.queues_of(queue, line), claim)
    }

    /// Returns the condition that no message is in flight that a message must stay behind, between the same sender and
    /// receiver.
    pub fn has_no_predecessor(
        &self,
        message: MessageId,
        direction: Direction,
        line: &Expr,
        endpoints: Endpoints,
    ) -> Expr {
        let mut has_none = Expr::Bool(true);
        for (flow, variable) in self.preceding_flows(message, direction) {
            let place = endpoints.index(variable.at(line));
            let carries = self.carries_line(flow);
            let [stored @ .., _] = &self.flows[flow].stored[..] else {
                continue;
            };
            let exists = self.frame.any_cell(stored, place, &|place| {
                let followed = place.at(true);
                match carries {
                    true => followed.clone().at(false).gt(0).or(followed.at(true).gt(0)),
                    false => followed.gt(0),
                }
            });
            has_none = has_none.and(!exists);
        }
        has_none
    }

    /// The counted flows that a message stays behind. The last of their stored values is the bit of their followers.
    pub fn preceding_flows(
        &self,
        message: MessageId,
        direction: Direction,
    ) -> Vec<(usize, VariableId)> {
        let predecessors = self.frame.protocol.earlier_messages(message);
        let flows = self.flows.iter().enumerate();
        let matching = flows.filter(|(_, flow)| {
            flow.direction == direction && predecessors.contains(&flow.message)
        });
        matching
            .filter_map(|(index, flow)| Some((index, flow.storage.counter()?)))
            .collect()
    }

    /// Returns the number of messages about a line in flight from or to the remote with index `remote`.
    pub fn in_flight_of(&self, line: &Expr, remote: i32) -> Expr {
        sum((0..self.flows.len()).map(|flow| self.count_flow(flow, line, Some(remote))))
    }

    /// Returns the number of messages of a flow about a line in flight; with `remote`, only
    /// those from or to the remote with this index.
    pub fn count_flow(&self, flow: usize, line: &Expr, remote: Option<i32>) -> Expr {
        let direction = self.flows[flow].direction;
        let indices = |is_remote: bool| match is_remote {
            true => (0..self.frame.remotes).map(Some).collect(),
            false => vec![None],
        };
        let mut counts = Vec::new();
        for from in indices(direction.is_from_remote()) {
            for to in indices(direction.is_to_remote()) {
                if remote.is_some() && from != remote && to != remote {
                    continue;
                }
                let (from, to) = (from.map(Expr::from), to.map(Expr::from));
                let endpoints = Endpoints {
                    from: from.as_ref(),
                    to: to.as_ref(),
                };
                counts.push(match self.flows[flow].storage {
                    Storage::Counted(variable) => {
                        self.count_cells(flow, endpoints.index(variable.at(line)))
                    }
                    Storage::Queued(queue, label) if self.queues[queue].senders.is_some() => {
                        let homes = 0..i32::from(self.frame.protocol.homes);
                        let places =
                            homes.map(|from| self.queue_between(queue, line, &from.into()));
                        sum(places.map(|place| self.count_queued(queue, label, place, line)))
                    }
                    Storage::Queued(queue, label) => {
                        let place = self.queue_at(queue, line, endpoints);
                        self.count_queued(queue, label, place, line)
                    }
                });
            }
        }
        sum(counts)
    }

    /// Number of messages in the cells of a counted flow below a place indexed by sender and receiver.
    pub fn count_cells(&self, flow: usize, place: Place) -> Expr {
        let mut places = vec![place];
        for &ty in &self.flows[flow].stored {
            let bounds = self.frame.scope.model().bounds(ty);
            let (low, high) = bounds.unwrap_or((0, 0));
            places = places
                .into_iter()
                .flat_map(|place| (low..=high).map(move |value| place.clone().at(value)))
                .collect();
        }
        if self.carries_line(flow) {
            places = places
                .into_iter()
                .flat_map(|place| [place.clone().at(false), place.at(true)])
                .collect();
        }
        sum(places.into_iter().map(Expr::from))
    }

    /// Number of messages of one type and line in a queue.
    pub fn count_queued(&self, queue: usize, label: u32, place: Place, line: &Expr) -> Expr {
        let queue = &self.queues[queue];
        sum((0..queue.capacity).map(|i| {
            let entry = place.clone().field("slot").at(i);
            queue.holds(&entry, label, line).as_number()
        }))
    }
}

/// Maximum number of terms in one chain of a sum. Longer sums are added up in halves, as deep expressions are costly to
/// evaluate.
const MAX_TERMS: usize = 64;

/// Sum of numbers; 0 if there are none.
pub(super) fn sum(numbers: impl IntoIterator<Item = Expr>) -> Expr {
    let mut numbers: Vec<Expr> = numbers.into_iter().collect();
    if numbers.len() > MAX_TERMS {
        let rest = numbers.split_off(numbers.len() / 2);
        return sum(numbers) + sum(rest);
    }
    numbers
        .into_iter()
        .reduce(|a, b| a + b)
        .unwrap_or(Expr::Int(0))
}
