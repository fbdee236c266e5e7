//! Views: the home and some remotes, cut out of a configuration with any number of remotes.
//!
//! A view of one cell is a state of a system with two remotes. Remote 0 is the *cell*: a remote with its messages.
//! Remote 1 stands for all other remotes together, holds nothing and sends nothing. A set of remotes has the member 1
//! exactly if some other remote is in it (its *rest bit*), and a pointer names remote 1 if it names some other remote.
//! If the home is constructed, a pointer to another remote also has the block of this remote's knowledge.
//!
//! An *extension* is the same for two cells, with remote 2 for the others.

use cohkit_protocol::execute::Configuration;
use cohkit_protocol::protocol::{Protocol, Type};
use cohkit_system::data::Current;
use cohkit_system::state::{
    CopyOnWrite, DeferredStore, InFlightMessage, Line, Network, Remote, System, SystemState,
};

use crate::blocks::{BlockSet, Blocks, MAX_BLOCKS};
use crate::lift::LiftedHome;

/// A configuration, view or extension.
pub(crate) type State = SystemState<Current>;

/// Number of slots for the blocks of remotes outside.
const BLOCK_SLOTS: usize = MAX_BLOCKS / 16;

/// Form of a home's slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// All remotes are explicit, and the slots are those of the executor.
    Explicit,
    /// The last remote stands for all others. The knowledge of cells is behind all other variables, followed by the
    /// blocks that occur outside. Without knowledge, the slots are those of the executor.
    Summarised,
}

/// Position of the pointers and sets among the slots of a home that do not hold knowledge of remotes.
pub(crate) struct Layout {
    /// Slots of variables that name one remote, or none.
    pub(crate) pointers: Vec<usize>,
    /// Slots of sets of remotes.
    pub(crate) sets: Vec<usize>,
    /// Slot of the ghost pointer to the requester, if there is one. It is among the pointers.
    pub(crate) requester: Option<usize>,
    /// Blocks of knowledge indices, if the home is constructed. Its first slots are then the knowledge of each remote.
    pub(crate) blocks: Option<Blocks>,
}

/// Variables of a home, in the parts that a view treats differently.
pub(crate) struct HomeParts {
    /// Slots of the variables that are no knowledge of remotes.
    pub(crate) scalars: Vec<u16>,
    /// Knowledge of each explicit remote, if the home is constructed.
    pub(crate) knowledge: Vec<u16>,
    /// Blocks with the knowledge of some remote that is not explicit.
    pub(crate) outside: BlockSet,
}

impl Layout {
    /// Finds the pointers and sets of a home. Up to 16 remotes, each variable except knowledge has one slot.
    pub(crate) fn new(home: &LiftedHome, system: &System) -> Layout {
        let knowledge_slots = match home.blocks {
            Some(_) => usize::from(system.remotes),
            None => 0,
        };
        let slot_of = |variable: u16| system.slots_of_home(variable).start - knowledge_slots;
        let slots_of = |ty: Type| {
            let variables = (0..).zip(&home.controller.variables);
            let variables = variables.filter(move |(_, variable)| variable.ty == ty);
            variables.map(|(index, _)| slot_of(index)).collect()
        };
        Layout {
            pointers: slots_of(Type::Remote),
            sets: slots_of(Type::RemoteSet),
            requester: home.requester.map(|requester| slot_of(requester.0)),
            blocks: home.blocks.clone(),
        }
    }

    /// Takes the slots of a line's home apart.
    pub(crate) fn parts(&self, line: &Line<Current>, form: Form) -> HomeParts {
        let slots = &line.home.slots;
        let (explicit, outside_slots) = match (&self.blocks, form) {
            (None, _) => (0, 0),
            (Some(_), Form::Explicit) => (line.remotes.len(), 0),
            (Some(_), Form::Summarised) => (line.remotes.len() - 1, BLOCK_SLOTS),
        };
        let (knowledge, scalars, outside) = match form {
            Form::Explicit => (&slots[..explicit], &slots[explicit..], &slots[..0]),
            Form::Summarised => {
                let (rest, outside) = slots.split_at(slots.len() - outside_slots);
                let (scalars, knowledge) = rest.split_at(rest.len() - explicit);
                (knowledge, scalars, outside)
            }
        };
        let word = |(index, &word): (usize, &u16)| BlockSet::from(word) << (16 * index);
        HomeParts {
            scalars: scalars.to_vec(),
            knowledge: knowledge.to_vec(),
            outside: outside.iter().enumerate().map(word).sum(),
        }
    }

    /// Slots of a summarised home.
    fn summarise(&self, parts: HomeParts) -> Vec<u16> {
        let mut slots = parts.scalars;
        if self.blocks.is_some() {
            slots.extend(parts.knowledge);
            slots.extend((0..BLOCK_SLOTS).map(|index| (parts.outside >> (16 * index)) as u16));
        }
        slots
    }

    /// Block of a knowledge index; 0 if the home is not constructed.
    pub(crate) fn block_number(&self, index: u16) -> u16 {
        let blocks = self.blocks.as_ref();
        blocks.map_or(0, |blocks| blocks.block_of[usize::from(index)])
    }

    /// The set with the block of a knowledge index.
    pub(crate) fn block(&self, index: u16) -> BlockSet {
        1 << self.block_number(index)
    }
}

/// Slot value of a pointer to a remote.
pub(crate) fn pointer_to(remote: u8) -> u16 {
    u16::from(remote) + 1
}

/// A line with other parts that name remotes, and with the parts of `line` that name none.
///
/// All parts are listed, so that a new one does not compile before it is decided whether it names remotes.
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
    /// The view of some remotes, with one more for all others. `form` is the form of the state.
    pub(crate) fn cut(&self, state: &State, form: Form, cells: &[u8]) -> State {
        let number = |remote: u8| {
            let position = cells.iter().position(|&cell| cell == remote);
            position.unwrap_or(cells.len()) as u8
        };
        let (line, mut network) = (&state.lines[0], Network::new());
        let mut parts = self.layout.parts(line, form);
        let scalars = &mut parts.scalars;
        for &slot in &self.layout.pointers {
            let Some(target) = scalars[slot].checked_sub(1) else {
                continue;
            };
            let position = cells.iter().position(|&cell| u16::from(cell) == target);
            scalars[slot] = match position {
                Some(position) => pointer_to(position as u8),
                None => {
                    let block = match parts.knowledge.get(usize::from(target)) {
                        Some(&index) => self.layout.block_number(index),
                        None if self.layout.blocks.is_none() => 0,
                        // Behind the explicit remotes, a summarised home has the block already.
                        None => target - parts.knowledge.len() as u16,
                    };
                    pointer_to(cells.len() as u8) + block
                }
            };
        }
        for &slot in &self.layout.sets {
            let set = scalars[slot];
            let members = (0..line.remotes.len() as u8).filter(|member| set >> member & 1 != 0);
            scalars[slot] = members.fold(0, |bits, member| bits | 1 << number(member));
        }
        for (remote, &index) in (0..).zip(&parts.knowledge) {
            if !cells.contains(&remote) {
                parts.outside |= self.layout.block(index);
            }
        }
        if self.layout.blocks.is_some() {
            let of_cell = |&cell: &u8| parts.knowledge[usize::from(cell)];
            parts.knowledge = cells.iter().map(of_cell).collect();
        }
        let home = Configuration {
            state: line.home.state,
            slots: self.layout.summarise(parts),
        };
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
        let scalars = self.layout.parts(line, Form::Summarised).scalars.len();
        home.slots[scalars..].fill(0);
        if let Some(deferred) = &mut deferred_store {
            deferred.from = 0;
        }
        with_home(line, home, deferred_store, Vec::new())
    }

    /// All extensions whose first cell has the view `first` and whose second cell has the view `second`. The views have
    /// equal homes, except for references.
    pub(crate) fn join(&self, first: &State, second: &State) -> Vec<State> {
        let lines = [&first.lines[0], &second.lines[0]];
        let parts = lines.map(|line| self.layout.parts(line, Form::Summarised));
        let outside_blocks = self.joined_blocks(&parts);
        if outside_blocks.is_empty() {
            return Vec::new();
        }
        let mut scalars = parts[0].scalars.clone();
        let mut deferred_store = lines[0].deferred_store.clone();
        for &slot in &self.layout.pointers {
            let values = [0, 1].map(|cell: usize| parts[cell].scalars[slot]);
            match self.joined_pointer(values, &parts) {
                Some(pointer) => scalars[slot] = pointer,
                None => return Vec::new(),
            }
        }
        if let (Some(deferred), Some(other)) = (&mut deferred_store, &lines[1].deferred_store) {
            match joined_reference(deferred.from, other.from) {
                Some(remote) => deferred.from = remote,
                None => return Vec::new(),
            }
        }
        let mut choices = vec![scalars];
        for &slot in &self.layout.sets {
            let sets = joined_sets(parts[0].scalars[slot], parts[1].scalars[slot]);
            let with_set = |scalars: &Vec<u16>, set: u16| {
                let mut scalars = scalars.clone();
                scalars[slot] = set;
                scalars
            };
            let choices_with_set = choices.iter().flat_map(|scalars| {
                let choices = sets.iter();
                choices
                    .map(|&set| with_set(scalars, set))
                    .collect::<Vec<_>>()
            });
            choices = choices_with_set.collect();
        }
        // The first cell keeps its number, and the placeholder of its view has no messages.
        let mut network = first.network.clone();
        for flight in second.network.flights() {
            self.put(&mut network, flight, |_| 1);
        }
        let extension = |scalars: &Vec<u16>, outside: BlockSet| {
            let home = Configuration {
                state: lines[0].home.state,
                slots: self.layout.summarise(HomeParts {
                    scalars: scalars.clone(),
                    knowledge: parts
                        .iter()
                        .flat_map(|parts| parts.knowledge.clone())
                        .collect(),
                    outside,
                }),
            };
            let remotes = lines.map(|line| line.remotes[0].clone()).into_iter();
            let remotes = remotes.chain([self.idle.clone()]).collect();
            let line = with_home(lines[0], home, deferred_store.clone(), remotes);
            SystemState {
                data: Current,
                lines: vec![CopyOnWrite::new(line)],
                network: network.clone(),
            }
        };
        let with_blocks = |scalars| {
            outside_blocks
                .iter()
                .map(move |&outside| (scalars, outside))
        };
        let choices = choices.iter().flat_map(with_blocks);
        choices
            .map(|(scalars, outside)| extension(scalars, outside))
            .collect()
    }

    /// Pointer of an extension, from those of the views of its cells; `None` if they contradict each other.
    fn joined_pointer(&self, [one, other]: [u16; 2], parts: &[HomeParts; 2]) -> Option<u16> {
        /// Value of a view's pointer to its cell.
        const CELL: u16 = 1;
        /// Smallest value of a view's pointer to another remote. The block of this remote is added.
        const OUTSIDE: u16 = 2;
        let is_of_block = |value: u16, cell: usize| {
            let knowledge = parts[cell].knowledge.first();
            let block = knowledge.map_or(0, |&index| self.layout.block_number(index));
            value == OUTSIDE + block
        };
        match (one, other) {
            (0, 0) => Some(0),
            (0, _) | (_, 0) | (CELL, CELL) => None,
            (CELL, other) => is_of_block(other, 0).then_some(pointer_to(0)),
            (one, CELL) => is_of_block(one, 1).then_some(pointer_to(1)),
            (one, other) => (one == other).then_some(one + 1),
        }
    }

    /// Blocks that may occur outside an extension whose cells have views with these parts. There is one choice if the
    /// home is not constructed.
    fn joined_blocks(&self, parts: &[HomeParts; 2]) -> Vec<BlockSet> {
        if self.layout.blocks.is_none() {
            return vec![0];
        }
        let [one, other] = parts;
        let [of_one, of_other] = parts
            .each_ref()
            .map(|parts| self.layout.block(parts.knowledge[0]));
        // The remotes outside the first view are the second cell and those outside the extension.
        let fits = |outside: &BlockSet| {
            outside | of_other == one.outside && outside | of_one == other.outside
        };
        let candidates = [one.outside, one.outside & !of_other];
        let distinct = match candidates[0] == candidates[1] {
            true => &candidates[..1],
            false => &candidates[..],
        };
        distinct.iter().copied().filter(fits).collect()
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
