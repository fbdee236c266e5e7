//! Views: the home and some remotes, cut out of a configuration with any number of remotes.
//!
//! A view of one cell is a state of a system with two remotes. Remote 0 is the *cell*: a remote with its messages.
//! Remote 1 stands for all other remotes together, holds nothing and sends nothing. A set of remotes has the member 1
//! exactly if some other remote is in it (its *rest bit*), and a pointer names remote 1 if it names some other remote.
//!
//! An *extension* is the same for two cells, with remote 2 for the others.

use cohkit_protocol::execute::Configuration;
use cohkit_protocol::protocol::{Protocol, Type};
use cohkit_system::data::Current;
use cohkit_system::state::{
    CopyOnWrite, DeferredStore, InFlightMessage, Line, Network, Remote, System, SystemState,
};

use crate::lift::LiftedHome;

/// A configuration, view or extension.
pub(crate) type State = SystemState<Current>;

/// Position of the pointers and sets among the slots of a home.
pub(crate) struct Layout {
    /// Slots of variables that name one remote, or none.
    pub(crate) pointers: Vec<usize>,
    /// Slots of sets of remotes.
    pub(crate) sets: Vec<usize>,
    /// Slot of the ghost pointer to the requester, if there is one. It is among the pointers.
    pub(crate) requester: Option<usize>,
}

impl Layout {
    /// Finds the pointers and sets of a home. Up to 16 remotes, each variable has one slot.
    pub(crate) fn new(home: &LiftedHome, system: &System) -> Layout {
        let slots_of = |ty: Type| {
            let variables = (0..).zip(&home.controller.variables);
            let variables = variables.filter(move |(_, variable)| variable.ty == ty);
            variables.map(|(index, _)| system.slots_of_home(index).start)
        };
        Layout {
            pointers: slots_of(Type::Remote).collect(),
            sets: slots_of(Type::RemoteSet).collect(),
            requester: (home.requester).map(|requester| system.slots_of_home(requester.0).start),
        }
    }
}

/// Slot value of a pointer to a remote.
pub(crate) fn pointer_to(remote: u8) -> u16 {
    u16::from(remote) + 1
}

/// A line with other parts that name remotes, and with the parts of `line` that name none. All parts are listed, so that
/// a new one does not compile before it is decided whether it names remotes.
pub(crate) fn with_home(
    line: &Line<Current>,
    home: Configuration,
    deferred_store: Option<DeferredStore<Current>>,
    remotes: Vec<Remote<Current>>,
) -> Line<Current> {
    Line {
        home,
        memory: line.memory,
        backing_permission: line.backing_permission,
        remotes,
        operation: line.operation.clone(),
        deferred_store,
        consumed_value: line.consumed_value,
        requested: line.requested,
        accepted: line.accepted,
        lock: line.lock,
    }
}

/// Cuts views out of configurations, and joins them.
pub(crate) struct Projection<'p> {
    /// Protocol of the configurations.
    pub(crate) protocol: &'p Protocol,
    /// Pointers and sets of the home.
    pub(crate) layout: Layout,
    /// A remote in its initial state.
    pub(crate) idle: Remote<Current>,
}

impl Projection<'_> {
    /// The view of some remotes, with one more for all others.
    pub(crate) fn cut(&self, state: &State, cells: &[u8]) -> State {
        let number = |remote: u8| {
            let position = cells.iter().position(|&cell| cell == remote);
            position.unwrap_or(cells.len()) as u8
        };
        let (line, mut network) = (&state.lines[0], Network::new());
        let mut home = line.home.clone();
        for &slot in &self.layout.pointers {
            if home.slots[slot] > 0 {
                home.slots[slot] = pointer_to(number(home.slots[slot] as u8 - 1));
            }
        }
        for &slot in &self.layout.sets {
            let set = home.slots[slot];
            let members = (0..line.remotes.len() as u8).filter(|member| set >> member & 1 != 0);
            home.slots[slot] = members.fold(0, |bits, member| bits | 1 << number(member));
        }
        for flight in state.network.flights() {
            let is_outside = |end: Option<u8>| end.is_some_and(|remote| !cells.contains(&remote));
            if !is_outside(flight.from) && !is_outside(flight.to) {
                self.put(&mut network, flight, number);
            }
        }
        let remotes = cells
            .iter()
            .map(|&cell| line.remotes[usize::from(cell)].clone());
        let mut deferred_store = line.deferred_store.clone();
        if let Some(deferred) = &mut deferred_store {
            deferred.from = number(deferred.from);
        }
        let remotes = remotes.chain([self.idle.clone()]).collect();
        SystemState {
            data: Current,
            lines: vec![CopyOnWrite::new(with_home(
                line,
                home,
                deferred_store,
                remotes,
            ))],
            network,
        }
    }

    /// Adds a message to a network, with new numbers of its sender and receiver.
    fn put(
        &self,
        network: &mut Network<Current>,
        flight: &InFlightMessage<Current>,
        number: impl Fn(u8) -> u8,
    ) {
        let flight = InFlightMessage {
            line: flight.line,
            message: flight.message,
            from: flight.from.map(&number),
            to: flight.to.map(&number),
            home: flight.home,
            // No field names a remote.
            fields: flight.fields.clone(),
            early: flight.early,
            first: flight.first,
            carried: flight.carried.clone(),
        };
        network.insert_keeping_marks(self.protocol, CopyOnWrite::new(flight));
    }

    /// The home of a view without its references to remotes. Only views with equal homes in this sense can be joined.
    pub(crate) fn home_without_references(&self, view: &State) -> Line<Current> {
        let line = &view.lines[0];
        let (mut home, mut deferred_store) = (line.home.clone(), line.deferred_store.clone());
        for &slot in self.layout.pointers.iter().chain(&self.layout.sets) {
            home.slots[slot] = 0;
        }
        if let Some(deferred) = &mut deferred_store {
            deferred.from = 0;
        }
        with_home(line, home, deferred_store, Vec::new())
    }

    /// All extensions whose first cell has the view `first` and whose second cell has the view `second`. The views have
    /// equal homes, except for references.
    pub(crate) fn join(&self, first: &State, second: &State) -> Vec<State> {
        let lines = [&first.lines[0], &second.lines[0]];
        let remotes = vec![
            lines[0].remotes[0].clone(),
            lines[1].remotes[0].clone(),
            self.idle.clone(),
        ];
        let (mut home, mut deferred_store) =
            (lines[0].home.clone(), lines[0].deferred_store.clone());
        let numbers = |slot: usize| lines.map(|line| line.home.slots[slot]);
        for &slot in &self.layout.pointers {
            let [one, other] = numbers(slot).map(|value| value.checked_sub(1));
            home.slots[slot] = match (one, other) {
                (None, None) => 0,
                (Some(one), Some(other)) => match joined_reference(one as u8, other as u8) {
                    Some(remote) => pointer_to(remote),
                    None => return Vec::new(),
                },
                (None, Some(_)) | (Some(_), None) => return Vec::new(),
            };
        }
        if let (Some(deferred), Some(other)) = (&mut deferred_store, &lines[1].deferred_store) {
            match joined_reference(deferred.from, other.from) {
                Some(remote) => deferred.from = remote,
                None => return Vec::new(),
            }
        }
        let mut network = first.network.clone();
        for flight in second.network.flights() {
            self.put(&mut network, flight, |_| 1);
        }
        let mut extensions = vec![SystemState {
            data: Current,
            lines: vec![CopyOnWrite::new(with_home(
                lines[0],
                home,
                deferred_store,
                remotes,
            ))],
            network: Network::new(),
        }];
        for &slot in &self.layout.sets {
            let [one, other] = numbers(slot);
            let sets = joined_sets(one, other);
            extensions = extensions
                .iter()
                .flat_map(|extension| {
                    sets.iter().map(move |&set| {
                        let mut extension = extension.clone();
                        extension.lines[0].home.slots[slot] = set;
                        extension
                    })
                })
                .collect();
        }
        for extension in &mut extensions {
            // The first cell keeps its number, and the placeholder of its view has no messages.
            extension.network = network.clone();
        }
        extensions
    }
}

/// Reference of an extension, from those of the views of its cells: 0 names the cell, and 1 another remote.
fn joined_reference(one: u8, other: u8) -> Option<u8> {
    match (one, other) {
        (0, 0) => None,
        (0, _) => Some(0),
        (_, 0) => Some(1),
        (_, _) => Some(2),
    }
}

/// Sets of an extension, from those of the views of its cells: bit 0 of a view is for the cell, and bit 1 for all
/// others.
fn joined_sets(one: u16, other: u16) -> Vec<u16> {
    let (in_one, in_other) = (one & 1, other & 1);
    let has_others = |set: u16| set >> 1 & 1 != 0;
    let fits = |outside: &u16| {
        (in_other | outside != 0) == has_others(one) && (in_one | outside != 0) == has_others(other)
    };
    let outside = [0, 1].into_iter().filter(fits);
    outside
        .map(|outside| in_one | in_other << 1 | outside << 2)
        .collect()
}
