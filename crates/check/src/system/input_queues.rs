//! Input queues that several senders share: those of the networks.
//!
//! Messages of one sender to one receiver have a queue of their own, in the order in which they were sent. Their order
//! with messages of other senders is decided as late as possible. A message becomes the head of the receiver's input
//! queue when it is consumed, or when it stalls and the input queue has no head. While there is a head, no message of
//! another sender is consumed. This allows every order in which messages may enter the input queue, and no other.

use cohkit_engine::model::{Expr, Place, Stmt, VariableId};
use std::rc::Rc;

use super::flows::{Direction, Endpoints};
use super::frame::Frame;

/// The input queues of a network at the homes, or at the remotes.
struct Input {
    /// Index of the network's order in the protocol.
    order: usize,
    /// True for the queues of homes, false for those of remotes.
    home: bool,
    /// The remote whose message is at the head and stalls: its index plus 1; 0 if there is none.
    remote: VariableId,
    /// The home whose message is at the head and stalls: its number plus 1; 0 if there is none. Only remotes receive
    /// from homes.
    sender: Option<VariableId>,
}

/// Relation of a message in a queue of a network to the head of the receiver's input queue.
pub(super) struct Entry {
    /// Name of the network in the protocol file.
    pub network: String,
    /// True if the input queue has no head.
    pub has_no_head: Expr,
    /// True if the first message of this sender is the head.
    pub is_head: Expr,
    /// Statement that makes that message the head.
    pub enter_statement: Stmt,
    /// Statements that remove the head, if it is consumed.
    pub removal: Vec<Stmt>,
}

impl Entry {
    /// True if the message may be consumed.
    pub fn can_be_consumed(&self) -> Expr {
        self.has_no_head.clone().or(self.is_head.clone())
    }
}

/// The heads of all input queues.
pub(super) struct InputQueues<'p> {
    /// Fixed parts of the system.
    frame: Rc<Frame<'p>>,
    /// At most one for each network and kind of receiver.
    inputs: Vec<Input>,
}

impl<'p> InputQueues<'p> {
    /// Creates an empty set. [`InputQueues::declare`] adds the input queues.
    pub fn new(frame: &Rc<Frame<'p>>) -> InputQueues<'p> {
        InputQueues {
            frame: frame.clone(),
            inputs: Vec::new(),
        }
    }

    /// Declares the input queue of an order group at one kind of receiver, if it is a network and has none yet.
    pub fn declare(&mut self, order: usize, direction: Direction) {
        let home = !direction.is_to_remote();
        let Frame {
            protocol, scope, ..
        } = &*self.frame;
        let Some(network) = protocol.network_of(order) else {
            return;
        };
        if self.input(order, home).is_some() {
            return;
        }
        let receiver = if home { "home" } else { "remote" };
        let name = format!("{}_first_at_{receiver}", network.name);
        let remotes = scope.range("first", 0, self.frame.remotes);
        scope.add_optional(remotes);
        let sender = (!home).then(|| {
            let senders = scope.range("first_home", 0, i32::from(protocol.homes));
            (format!("{name}_from_home"), senders)
        });
        let declare = |name: String, element| {
            let ty = match home {
                true => self.frame.per_home(&name, element),
                false => scope.array(&name, self.frame.remote_type, element),
            };
            scope.state(name, ty)
        };
        let input = Input {
            order,
            home,
            remote: declare(name, remotes),
            sender: sender.map(|(name, senders)| declare(name, senders)),
        };
        self.inputs.push(input);
    }

    /// The input queues of a network at the homes, or at the remotes.
    fn input(&self, order: usize, home: bool) -> Option<&Input> {
        let mut inputs = self.inputs.iter();
        inputs.find(|input| (input.order, input.home) == (order, home))
    }

    /// Returns the relation of a message to its receiver's input queue. `None` if its channels form no network.
    /// `order` is the index of their group in the protocol. `endpoints` are those of the message.
    pub fn entry(
        &self,
        order: usize,
        direction: Direction,
        line: &Expr,
        endpoints: Endpoints,
    ) -> Option<Entry> {
        let input = self.input(order, !direction.is_to_remote())?;
        let place = |variable: VariableId| -> Place {
            match endpoints.to {
                Some(to) => variable.at(to),
                None => self.frame.part_of_home(variable, line),
            }
        };
        let remote = place(input.remote);
        let sender = input.sender.map(place);
        let mut has_no_head = remote.clone().is(0);
        let mut removal = vec![remote.clone().set(0)];
        if let Some(sender) = &sender {
            has_no_head = has_no_head.and(sender.clone().is(0));
            removal.push(sender.clone().set(0));
        }
        let (head_variable, number) = match (endpoints.from, sender) {
            (Some(from), _) => (remote, from.clone() + 1),
            (None, Some(sender)) => (sender, self.frame.home_of(line) + 1),
            (None, None) => return None,
        };
        Some(Entry {
            network: self.frame.protocol.network_of(order)?.name.clone(),
            has_no_head,
            is_head: head_variable.clone().is(number.clone()),
            enter_statement: head_variable.set(number),
            removal,
        })
    }
}
