//! Recalls of a set-associative directory: the operation must free the entry of its line.

use super::queues::Queues;
use crate::agents::layout::Agents;
use crate::rom::{refuse, Refusal};
use cohkit_protocol::controller::{Controller, Event};
use cohkit_protocol::execute::{Act, Configuration, Machine, Outcome, Receiver, Trigger};
use cohkit_protocol::protocol::{MessageId, StateId};
use rustc_hash::FxHashSet;

/// Maximum number of states of a line that are explored.
const MAX_STATES: usize = 200_000;

/// Messages in flight from which on no access begins.
const MAX_FLIGHTS: usize = 4;

/// Checks that the operation `recall` always leads to the initial configuration of the home, which needs no entry: in
/// every state of a line at rest that one cache of each kind can reach alone, and in every order of the messages that
/// follow. States that need several caches, such as those after a downgrade, are not checked.
///
/// # Errors
/// A state in which the operation keeps the entry, does not begin or does not end, or a line with too many states.
pub fn check_recall(agents: &Agents, recall: Event) -> Result<(), Refusal> {
    let Event::Local(operation) = recall else {
        return Ok(());
    };
    let name = &agents.home.locals[usize::from(operation)].name;
    let system = LineSystem::new(agents);
    let initial = system.machines[1].initial();
    for cache in system.first_caches() {
        let accesses = system.accesses(cache);
        let begins = |line: &Line| system.successors(line, &accesses, cache);
        let Some(lines) = explore(system.initial(), &begins) else {
            return system.too_many_states();
        };
        let has_entry = |line: &&Line| system.is_at_rest(line) && line.home != initial;
        for line in lines.iter().filter(has_entry) {
            let Some((rule, started)) = system.home_step(line, recall, None, &[]) else {
                let feature = format!("`{name}` does not begin in a state of a line at rest");
                return refuse(agents.home.span, feature);
            };
            let ends = |line: &Line| system.successors(line, &[], cache);
            let Some(ends) = explore(started, &ends) else {
                return system.too_many_states();
            };
            let ends = ends.iter().filter(|line| system.is_at_rest(line));
            let ends: Vec<&Line> = ends.collect();
            if ends.is_empty() || ends.iter().any(|end| end.home != initial) {
                let feature = format!("`{name}` does not end in the initial state of the home");
                return refuse(agents.home.rules[rule].span, feature);
            }
        }
    }
    Ok(())
}

/// Returns the states that these successors reach; `None` if there are too many.
fn explore(start: Line, successors: &dyn Fn(&Line) -> Vec<Line>) -> Option<Vec<Line>> {
    let mut seen = FxHashSet::default();
    seen.insert(start.clone());
    let mut lines = vec![start];
    let mut next = 0;
    while next < lines.len() {
        for line in successors(&lines[next]) {
            if seen.insert(line.clone()) {
                lines.push(line);
            }
        }
        if lines.len() > MAX_STATES {
            return None;
        }
        next += 1;
    }
    Some(lines)
}

/// A message in flight.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Flight {
    /// Sender; `None` for the home.
    from: Option<u16>,
    /// Receiver; `None` for the home.
    to: Option<u16>,
    /// Message type.
    message: MessageId,
    /// Values of its fields.
    fields: Vec<u16>,
}

/// State of a line, without data.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Line {
    /// State of the home.
    home: Configuration,
    /// States of the caches.
    caches: Vec<Configuration>,
    /// Messages in flight, in the order in which they were sent.
    flights: Vec<Flight>,
    /// End of the memory operation in progress.
    operation: Option<Event>,
}

/// A line of a system in which one cache begins accesses.
struct LineSystem<'a> {
    /// Agents of the system.
    agents: &'a Agents<'a>,
    /// Queues of the network.
    queues: Queues,
    /// Executors of rows: of the caches, and of the home.
    machines: [Machine<'a>; 2],
}

impl<'a> LineSystem<'a> {
    /// The line of a system.
    fn new(agents: &'a Agents<'a>) -> LineSystem<'a> {
        LineSystem {
            agents,
            queues: Queues::new(agents.protocol),
            machines: [
                Machine::new(&agents.protocol.remote, agents.remotes),
                Machine::new(agents.home, agents.remotes),
            ],
        }
    }

    /// The first cache of each kind.
    fn first_caches(&self) -> Vec<u16> {
        let kinds: Vec<_> = (0..self.agents.total())
            .map(|cache| self.agents.remotes.kind(cache).0)
            .collect();
        let is_first = |&cache: &usize| !kinds[..cache].contains(&kinds[cache]);
        (0..kinds.len())
            .filter(is_first)
            .map(|c| c as u16)
            .collect()
    }

    /// Initial state of a cache.
    fn initial_state(&self, cache: u16) -> StateId {
        let (kind, _) = self.agents.remotes.kind(cache);
        self.agents.protocol.kinds[kind.index()].initial
    }

    /// The line before all accesses.
    fn initial(&self) -> Line {
        let caches = 0..self.agents.total();
        let initial = |cache| self.machines[0].initial_in(self.initial_state(cache));
        Line {
            home: self.machines[1].initial(),
            caches: caches.map(initial).collect(),
            flights: Vec::new(),
            operation: None,
        }
    }

    /// Accesses of a line that the rows of a cache have.
    fn accesses(&self, cache: u16) -> Vec<Event> {
        let start = self.initial_state(cache).index();
        let mut agents = self.agents.agents[1..].iter();
        let agent = agents.find(|agent| agent.states.start == start);
        let events = agent.into_iter().flat_map(|agent| agent.events.iter());
        let about_line =
            |event: &&Event| matches!(event, Event::Access(access) if access.about_line());
        events.filter(about_line).copied().collect()
    }

    /// True if no agent waits, and nothing is in flight.
    fn is_at_rest(&self, line: &Line) -> bool {
        let states = &self.agents.protocol.remote.states;
        let is_stable = |cache: &Configuration| states[usize::from(cache.state)].is_stable();
        line.flights.is_empty() && line.operation.is_none() && line.caches.iter().all(is_stable)
    }

    /// Refuses a line that has too many states.
    fn too_many_states<T>(&self) -> Result<T, Refusal> {
        let feature =
            format!("a line has more than {MAX_STATES} states, so that recalls are not checked");
        refuse(self.agents.home.span, feature)
    }

    /// States after one event: an access of `cache` among `accesses`, a message, or the end of a memory operation.
    fn successors(&self, line: &Line, accesses: &[Event], cache: u16) -> Vec<Line> {
        let mut next = Vec::new();
        if line.flights.len() < MAX_FLIGHTS {
            let after = |event: &Event| self.cache_step(line, cache, *event, None, &[]);
            next.extend(accesses.iter().filter_map(after));
        }
        for position in (0..line.flights.len()).filter(|&at| self.may_arrive(line, at)) {
            let mut rest = line.clone();
            let Flight {
                from,
                to,
                message,
                fields,
            } = rest.flights.remove(position);
            let event = Event::Message(message);
            next.extend(match to {
                Some(cache) => self.cache_step(&rest, cache, event, from, &fields),
                None => self
                    .home_step(&rest, event, from, &fields)
                    .map(|(_, line)| line),
            });
        }
        if let Some(event) = line.operation {
            let rest = Line {
                operation: None,
                ..line.clone()
            };
            next.extend(
                self.home_step(&rest, event, None, &[])
                    .map(|(_, line)| line),
            );
        }
        next
    }

    /// True if no order keeps a message behind an earlier one.
    fn may_arrive(&self, line: &Line, position: usize) -> bool {
        let protocol = self.agents.protocol;
        let flight = &line.flights[position];
        let queue = self.queues.of(protocol, flight.message);
        let mut earlier = line.flights[..position].iter();
        !self.queues.queues[queue].ordered
            || !earlier.any(|other| {
                (other.from, other.to) == (flight.from, flight.to)
                    && self.queues.of(protocol, other.message) == queue
            })
    }

    /// Executes the row of an event. Returns its number and its acts; `None` if no row takes the event.
    fn step(
        machine: &Machine,
        table: &Controller,
        configuration: &mut Configuration,
        trigger: Trigger,
    ) -> Option<(usize, Vec<Act>)> {
        match machine.step(configuration, trigger, &mut &*table) {
            Ok(Outcome::Taken { rule, acts }) => Some((rule, acts)),
            _ => None,
        }
    }

    /// Returns the line after an event at a cache.
    fn cache_step(
        &self,
        line: &Line,
        cache: u16,
        event: Event,
        sender: Option<u16>,
        fields: &[u16],
    ) -> Option<Line> {
        let mut next = line.clone();
        let trigger = Trigger {
            event,
            sender,
            executing_remote: Some(cache),
            home: 0,
            fields,
        };
        let configuration = &mut next.caches[usize::from(cache)];
        let table = &self.agents.protocol.remote;
        let (_, acts) = Self::step(&self.machines[0], table, configuration, trigger)?;
        next.apply(acts, Some(cache));
        Some(next)
    }

    /// Returns the row of an event at the home, and the line after it.
    fn home_step(
        &self,
        line: &Line,
        event: Event,
        sender: Option<u16>,
        fields: &[u16],
    ) -> Option<(usize, Line)> {
        let mut next = line.clone();
        let trigger = Trigger {
            event,
            sender,
            executing_remote: None,
            home: 0,
            fields,
        };
        let table = self.agents.home;
        let (rule, acts) = Self::step(&self.machines[1], table, &mut next.home, trigger)?;
        next.apply(acts, None);
        Some((rule, next))
    }
}

impl Line {
    /// Applies the acts of an agent's row; `from` is `None` for the home.
    fn apply(&mut self, acts: Vec<Act>, from: Option<u16>) {
        for act in acts {
            match act {
                Act::Send {
                    message,
                    to,
                    fields,
                } => self.flights.push(Flight {
                    from,
                    to: match to {
                        Receiver::Remote(remote) => Some(remote),
                        Receiver::Home | Receiver::HomeAt(_) => None,
                    },
                    message,
                    fields,
                }),
                Act::StartRead => self.operation = Some(Event::MemoryData(0)),
                Act::StartWrite | Act::StartStore { .. } => {
                    self.operation = Some(Event::MemoryDone);
                }
                _ => {}
            }
        }
    }
}
