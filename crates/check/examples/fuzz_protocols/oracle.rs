//! All that a system of one line with a hand-written home can reach, by executing its controllers and nothing else.
//!
//! Plain and slow: it shares no code with the checker, whose lowering it judges. It knows what the texts of
//! [`super::generate`] use: unordered and ordered channels, memory that acts at once, no device, no stores that travel.

use cohkit_protocol::controller::{Access, Controller, Effect, Event, Statement};
use cohkit_protocol::execute::{Act, Configuration, Machine, Occasion, Outcome, Receiver};
use cohkit_protocol::protocol::{Amount, Claim, Comparison, Home, MessageId, Protocol, Right};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A message under way. A remote is its index, the home none.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Flight {
    message: MessageId,
    from: Option<u8>,
    to: Option<u8>,
    fields: Vec<u16>,
    /// Whether the copy of the line that it carries is current.
    current: bool,
}

/// An order of channels from one agent to another.
type Order = (usize, Option<u8>, Option<u8>);

/// Everything at some moment.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub home: Configuration,
    pub remotes: Vec<Configuration>,
    /// Whether each remote's copy, and memory, has the effect of every write so far.
    pub current: Vec<bool>,
    pub memory: bool,
    /// Sorted.
    unordered: Vec<Flight>,
    ordered: BTreeMap<Order, Vec<Flight>>,
}

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wrong {
    /// A claim or the execution of a row.
    Violation,
    /// More messages than there is room for.
    Exceeded,
}

/// What was found.
#[derive(Debug)]
pub enum Found {
    /// Every claim about states and steps holds.
    Safe {
        states: Vec<State>,
        /// Whether there is a state from which rest cannot be reached by what must happen.
        lost: bool,
    },
    /// In the first steps in which something is wrong, these things are.
    Wrong { what: BTreeSet<Wrong>, steps: usize },
    /// There are more states than were to be visited.
    TooMany,
}

/// Room for equal messages, and in each order, as the checker has it by default.
const CAPACITY: usize = 7;

/// A system being explored.
pub struct System<'p> {
    protocol: &'p Protocol,
    home: &'p Controller,
    remotes: u8,
    machines: (Machine<'p>, Machine<'p>),
}

impl<'p> System<'p> {
    /// None if the home is not written by hand.
    pub fn new(protocol: &'p Protocol, remotes: u8) -> Option<System<'p>> {
        let Home::Controller(home) = &protocol.home else {
            return None;
        };
        Some(System {
            protocol,
            home,
            remotes,
            machines: (
                Machine::new(&protocol.remote, remotes),
                Machine::new(home, remotes),
            ),
        })
    }

    fn initial(&self) -> State {
        let remotes = usize::from(self.remotes);
        State {
            home: self.machines.1.initial(),
            remotes: vec![self.machines.0.initial(); remotes],
            current: vec![false; remotes],
            memory: true,
            unordered: Vec::new(),
            ordered: BTreeMap::new(),
        }
    }

    /// Visits all states, breadth first.
    pub fn explore(&self, most: usize) -> Found {
        let mut states = vec![self.initial()];
        let mut numbers: HashMap<State, usize> = HashMap::from([(self.initial(), 0)]);
        // Steps that must happen, from their ends to their begins.
        let mut back: Vec<Vec<usize>> = vec![Vec::new()];
        let (mut first, mut steps) = (0, 0);
        while first < states.len() {
            // One level, so that all that is wrong at the same distance is known.
            let (last, mut wrong) = (states.len(), BTreeSet::new());
            if !states[first..].iter().all(|state| self.claims(state)) {
                wrong.insert(Wrong::Violation);
            }
            if !wrong.is_empty() {
                return Found::Wrong { what: wrong, steps };
            }
            for number in first..last {
                let state = states[number].clone();
                self.successors(&state, &mut |must, next| match next {
                    Err(what) => {
                        wrong.insert(what);
                    }
                    Ok(next) => {
                        let new = states.len();
                        let to = *numbers.entry(next.clone()).or_insert(new);
                        if to == new {
                            states.push(next);
                            back.push(Vec::new());
                        }
                        if must {
                            back[to].push(number);
                        }
                    }
                });
                if states.len() > most {
                    return Found::TooMany;
                }
            }
            steps += 1;
            if !wrong.is_empty() {
                // Claims that fail in the states of this distance are as near.
                if states[last..].iter().any(|state| !self.claims(state)) {
                    wrong.insert(Wrong::Violation);
                }
                return Found::Wrong { what: wrong, steps };
            }
            first = last;
        }
        let mut saved = vec![false; states.len()];
        let mut work: Vec<usize> = (0..states.len())
            .filter(|&number| self.rests(&states[number]))
            .collect();
        while let Some(number) = work.pop() {
            if !std::mem::replace(&mut saved[number], true) {
                work.extend(&back[number]);
            }
        }
        let lost = saved.contains(&false);
        Found::Safe { states, lost }
    }

    /// Whether nothing is under way.
    fn rests(&self, state: &State) -> bool {
        let stable =
            |of: &Controller, at: &Configuration| of.states[usize::from(at.state)].stable();
        state.unordered.is_empty()
            && state.ordered.is_empty()
            && stable(self.home, &state.home)
            && (state.remotes.iter()).all(|remote| stable(&self.protocol.remote, remote))
    }

    fn right(&self, remote: &Configuration) -> Right {
        self.protocol.remote.states[usize::from(remote.state)].right
    }

    fn claims(&self, state: &State) -> bool {
        let rights: Vec<Right> = state.remotes.iter().map(|r| self.right(r)).collect();
        let alone = !rights.contains(&Right::Write)
            || rights.iter().filter(|&&right| right > Right::None).count() == 1;
        let mut copies = rights.iter().zip(&state.current);
        let current = copies.all(|(&right, &current)| right == Right::None || current);
        let within = self.protocol.bounds.in_flight.is_none_or(|bound| {
            (0..self.remotes).all(|remote| {
                let its = |flight: &&Flight| [flight.from, flight.to].contains(&Some(remote));
                state.flights().filter(its).count() <= usize::from(bound.limit)
            })
        });
        let mut stated = self.protocol.invariants.iter();
        alone && current && within && stated.all(|invariant| self.claim(&invariant.holds, state))
    }

    fn claim(&self, claim: &Claim, state: &State) -> bool {
        match claim {
            Claim::Compare(a, comparison, b) => {
                let (a, b) = (self.amount(a, state), self.amount(b, state));
                match comparison {
                    Comparison::Equal => a == b,
                    Comparison::NotEqual => a != b,
                    Comparison::Less => a < b,
                    Comparison::LessOrEqual => a <= b,
                    Comparison::Greater => a > b,
                    Comparison::GreaterOrEqual => a >= b,
                }
            }
            Claim::And(a, b) => self.claim(a, state) && self.claim(b, state),
            Claim::Or(a, b) => self.claim(a, state) || self.claim(b, state),
            Claim::Not(a) => !self.claim(a, state),
            Claim::Implies(a, b) => !self.claim(a, state) || self.claim(b, state),
            // There is no device.
            Claim::Locked => false,
        }
    }

    fn amount(&self, amount: &Amount, state: &State) -> usize {
        match amount {
            Amount::Constant(c) => usize::from(*c),
            Amount::RemotesIn(states) => {
                let inside = |remote: &&Configuration| states.iter().any(|s| s.0 == remote.state);
                state.remotes.iter().filter(inside).count()
            }
            Amount::InFlight(messages) => {
                let one = |flight: &&Flight| messages.contains(&flight.message);
                state.flights().filter(one).count()
            }
        }
    }

    /// All that can happen next; `each` hears whether it must happen.
    fn successors(&self, state: &State, each: &mut dyn FnMut(bool, Result<State, Wrong>)) {
        for remote in 0..self.remotes {
            for (access, _) in Access::ALL {
                if let Some(next) = self.access(state, remote, access) {
                    each(false, next);
                }
            }
            if let Some(next) = self.hit(state, remote) {
                each(false, Ok(next));
            }
        }
        let mut last = None;
        for (place, flight) in state.unordered.iter().enumerate() {
            if last.replace(flight) == Some(flight) {
                continue;
            }
            let mut next = state.clone();
            next.unordered.remove(place);
            if let Some(next) = self.delivered(next, flight) {
                each(true, next);
            }
        }
        for (order, flights) in &state.ordered {
            let mut next = state.clone();
            let rest = flights[1..].to_vec();
            match rest.is_empty() {
                true => next.ordered.remove(order),
                false => next.ordered.insert(*order, rest),
            };
            if let Some(next) = self.delivered(next, &flights[0]) {
                each(true, next);
            }
        }
    }

    fn access(&self, state: &State, remote: u8, access: Access) -> Option<Result<State, Wrong>> {
        let occasion = Occasion {
            event: Event::Access(access),
            sender: None,
            own: Some(remote),
            fields: &[],
        };
        let at = usize::from(remote);
        let mut next = state.clone();
        let mut tables = &self.protocol.remote;
        let stepped = (self.machines.0).step(&mut next.remotes[at], occasion, &mut tables);
        let (rule, acts) = match stepped {
            Ok(Outcome::Taken { rule, acts }) => (rule, acts),
            Ok(_) => return None,
            Err(_) => return Some(Err(Wrong::Violation)),
        };
        let (from, to) = (&state.remotes[at], &next.remotes[at]);
        let writes = self.right(from) == Right::Write && self.right(to) == Right::Write;
        let stores = access.writes() && writes;
        let rule = &self.protocol.remote.rules[rule];
        let empty = matches!(&rule.effect, Effect::Take { body, .. } if body.is_empty());
        if empty && from.state == to.state && !(stores && another_is_current(state, remote)) {
            return None;
        }
        Some(self.reacted(next, remote, None, stores, from, acts))
    }

    /// A store without a row, where it makes another copy old.
    fn hit(&self, state: &State, remote: u8) -> Option<State> {
        let own = &state.remotes[usize::from(remote)];
        let row = self.protocol.remote.rules.iter().any(|rule| {
            let store = rule.event == Event::Access(Access::Store);
            let taken = matches!(rule.effect, Effect::Take { .. });
            store && taken && rule.state.0 == own.state
        });
        let hits = !row && self.right(own) == Right::Write && another_is_current(state, remote);
        hits.then(|| {
            let mut next = state.clone();
            next.store();
            next.current[usize::from(remote)] = true;
            next
        })
    }

    /// A message that has left its channel is taken; `None` if it would have stayed there.
    fn delivered(&self, mut next: State, flight: &Flight) -> Option<Result<State, Wrong>> {
        let occasion = Occasion {
            event: Event::Message(flight.message),
            sender: flight.from,
            own: flight.to,
            fields: &flight.fields,
        };
        let (machine, mut tables) = match flight.to {
            Some(_) => (&self.machines.0, &self.protocol.remote),
            None => (&self.machines.1, self.home),
        };
        let before = match flight.to {
            Some(remote) => &mut next.remotes[usize::from(remote)],
            None => &mut next.home,
        };
        let from = before.clone();
        let acts = match machine.step(before, occasion, &mut tables) {
            Ok(Outcome::Taken { acts, .. }) => acts,
            Ok(Outcome::Leave) => return None,
            Ok(_) | Err(_) => return Some(Err(Wrong::Violation)),
        };
        let carries = self.protocol.message(flight.message).carries.line();
        let brought = carries.then_some(flight.current);
        Some(match flight.to {
            Some(remote) => self.reacted(next, remote, brought, false, &from, acts),
            None => self.home_acts(next, brought, acts),
        })
    }

    /// What a remote does, whose configuration has moved on.
    fn reacted(
        &self,
        mut next: State,
        remote: u8,
        brought: Option<bool>,
        stores: bool,
        from: &Configuration,
        acts: Vec<Act>,
    ) -> Result<State, Wrong> {
        let at = usize::from(remote);
        for act in acts {
            match act {
                Act::Send {
                    message,
                    to,
                    fields,
                } => {
                    let copy = brought.unwrap_or(next.current[at]);
                    let to = match to {
                        Receiver::Home => None,
                        Receiver::Remote(to) => Some(to),
                    };
                    self.send(&mut next, message, Some(remote), to, fields, copy)?;
                }
                // The accesses that end so in these texts only read.
                Act::Done => {}
                other => unreachable!("a remote does not {other:?}"),
            }
        }
        let states = &self.protocol.remote.states;
        let holds = |of: &Configuration| states[usize::from(of.state)].holds_line;
        if !holds(&next.remotes[at]) {
            if holds(from) {
                next.current[at] = false;
            }
        } else if stores {
            next.store();
            next.current[at] = true;
        } else if let Some(brought) = brought {
            next.current[at] = brought;
        }
        Ok(next)
    }

    fn home_acts(
        &self,
        mut next: State,
        brought: Option<bool>,
        acts: Vec<Act>,
    ) -> Result<State, Wrong> {
        for act in acts {
            match (act, brought) {
                (
                    Act::Send {
                        message,
                        to: Receiver::Remote(to),
                        fields,
                    },
                    _,
                ) => {
                    let copy = next.memory;
                    self.send(&mut next, message, None, Some(to), fields, copy)?;
                }
                (Act::WriteMemory, Some(brought)) => next.memory = brought,
                (other, _) => unreachable!("a home does not {other:?}"),
            }
        }
        Ok(next)
    }

    fn send(
        &self,
        next: &mut State,
        message: MessageId,
        from: Option<u8>,
        to: Option<u8>,
        fields: Vec<u16>,
        copy: bool,
    ) -> Result<(), Wrong> {
        let kind = self.protocol.message(message);
        let carries = kind.carries.line();
        let mut rules = self.protocol.remote.rules.iter();
        let once = rules.any(|rule| {
            let done = matches!(&rule.effect, Effect::Take { body, .. } if body.contains(&Statement::Done));
            rule.event == Event::Message(message) && done
        });
        if carries && once && !copy {
            return Err(Wrong::Violation);
        }
        let flight = Flight {
            message,
            from,
            to,
            fields,
            current: carries && copy,
        };
        match self.protocol.order_of(kind.channel) {
            Some(order) => {
                let queue = next.ordered.entry((order, from, to)).or_default();
                if queue.len() >= CAPACITY {
                    return Err(Wrong::Exceeded);
                }
                queue.push(flight);
            }
            None => {
                // Those that say the same, whatever copy of the line they carry.
                let same = |other: &&Flight| {
                    Flight {
                        current: flight.current,
                        ..(*other).clone()
                    } == flight
                };
                let stated = self
                    .protocol
                    .bounds
                    .in_flight
                    .map(|bound| usize::from(bound.limit));
                let room = stated.filter(|&limit| limit <= CAPACITY);
                if next.unordered.iter().filter(same).count() >= room.unwrap_or(CAPACITY) {
                    return Err(match room {
                        Some(_) => Wrong::Violation,
                        None => Wrong::Exceeded,
                    });
                }
                let place = next.unordered.partition_point(|other| *other < flight);
                next.unordered.insert(place, flight);
            }
        }
        Ok(())
    }
}

impl State {
    fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.unordered.iter().chain(self.ordered.values().flatten())
    }

    /// A write makes all copies old.
    fn store(&mut self) {
        self.current.fill(false);
        self.memory = false;
        let ordered = self.ordered.values_mut().flatten();
        for flight in self.unordered.iter_mut().chain(ordered) {
            flight.current = false;
        }
        self.unordered.sort_unstable();
    }
}

/// Whether a copy other than one remote's is current.
fn another_is_current(state: &State, remote: u8) -> bool {
    let mut others = state.current.iter().enumerate();
    state.memory
        || others.any(|(other, &current)| current && other != usize::from(remote))
        || state.flights().any(|flight| flight.current)
}
