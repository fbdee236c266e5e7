//! Applications behind a home, with threads before it, in every order of events.
//!
//! A [`Scenario`] is what the simulator plays with time; here its application and its threads take part in a search of
//! all that can happen: messages overtake each other as their channels allow, memory takes as long as it likes, caches
//! give lines up when they like. The same code runs in both, so what is found here is what runs there.
//!
//! The home's units are part of it: a unit has so many memory reads, one memory write and one coherence transaction at
//! a time, keeps so many requests waiting, and stops its circuit of requests at the next one.
//!
//! Claims: the application's contract; the protocol's (single writer, every load sees the last write, no unexpected
//! message); at the end, what the scenario itself claims; and from everywhere the end can be reached without the
//! help of caches that give lines up.
//!
//! A state is a value of Rust, not a packed one, as an application's state may be anything: for some hundred thousand
//! states, not for a hundred million.

mod state;

use cohkit_application::interface::{Application, Scenario, Thread};
use cohkit_protocol::construct::rights::KnownRights;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::rc::Rc;

use state::{Machines, State};

/// What is explored.
pub struct Game<'a, S> {
    /// The protocol; its remotes' controller is executed by the caches.
    pub protocol: &'a Protocol,
    /// The home's controller, constructed from a policy.
    pub home: &'a Controller,
    /// What it knows of rights.
    pub rights: &'a KnownRights,
    /// The application and its threads.
    pub scenario: &'a S,
    /// Caches; thread `n` is before cache `n` modulo this.
    pub remotes: u16,
    /// Lines of the home, from 0.
    pub lines: u32,
    /// Words of a line.
    pub words: u16,
    /// The home's units; a line belongs to unit (line mod units).
    pub units: u32,
    /// Requests that a unit keeps waiting, at most.
    pub waiting: usize,
    /// Reads of memory that a unit has in hand, at most; one that the application withholds is one of them.
    pub reads: usize,
    /// States to visit, at most.
    pub most_states: usize,
}

/// How an exploration ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// All claims hold in all states.
    Verified {
        /// How many states there are.
        states: usize,
        /// In how many of them everything has ended.
        ends: usize,
    },
    /// A claim does not hold.
    Violated {
        /// Which, in a sentence.
        what: String,
        /// The shortest way there.
        steps: Vec<String>,
    },
    /// A step is taken that has no meaning here, said in a sentence: what is beside coherence.
    NotExplored(String),
    /// There are more states than were to be visited; so far all claims but that of the end held.
    Undecided {
        /// How many were visited.
        states: usize,
    },
}

/// Visits all states of a game.
pub fn explore<S: Scenario>(game: &Game<S>) -> Ending
where
    S::Application: Application + Clone + Eq + Hash,
    S::Thread: Thread + Clone + Eq + Hash,
{
    explore_while(game, &mut || true).expect("nothing stops it")
}

/// The same for as long as `go_on` says so, which is asked now and then; nothing if it was stopped.
pub fn explore_while<S: Scenario>(game: &Game<S>, go_on: &mut dyn FnMut() -> bool) -> Option<Ending>
where
    S::Application: Application + Clone + Eq + Hash,
    S::Thread: Thread + Clone + Eq + Hash,
{
    let machines = Machines::new(game);
    let mut search = Search {
        states: Vec::new(),
        numbers: FxHashMap::default(),
        parents: Vec::new(),
        reached: Vec::new(),
        dead: Vec::new(),
    };
    let mut ends = Vec::new();
    match machines.initial() {
        Ok(state) => {
            search.enter(state, None);
        }
        Err(what) => return Some(ending(what, Vec::new())),
    }
    let mut next = 0;
    while let Some(state) = search.states.get(next).cloned() {
        if next % 256 == 0 && !go_on() {
            return None;
        }
        let this = next as u32;
        if state.ended() {
            ends.push(this);
            if let Err(what) = machines.verify(&state) {
                return Some(search.violated(&machines, this, None, what));
            }
        }
        let mut place = 0;
        let mut leads_on = false;
        let mut wrong = None;
        machines.successors(&state, &mut |spontaneous, _, successor| {
            match successor {
                Ok(successor) => {
                    let number = search.enter(successor, Some((this, place)));
                    if !spontaneous {
                        leads_on = true;
                        search.reached.push((number, this));
                    }
                }
                Err(what) => wrong = wrong.take().or(Some((place, what))),
            }
            place += 1;
        });
        if let Some((place, what)) = wrong {
            return Some(search.violated(&machines, this, Some(place), what));
        }
        search.dead.push(!leads_on);
        next += 1;
        if search.states.len() > game.most_states {
            let states = next;
            return Some(Ending::Undecided { states });
        }
    }
    let states = search.states.len();
    Some(match search.lost(&ends) {
        Some(lost) => {
            let what = machines.stuck(&search.states[lost as usize]);
            search.violated(&machines, lost, None, what)
        }
        None => Ending::Verified {
            states,
            ends: ends.len(),
        },
    })
}

struct Search<A, T> {
    states: Vec<Rc<State<A, T>>>,
    numbers: FxHashMap<Rc<State<A, T>>, u32>,
    /// Predecessor and place among its successors.
    parents: Vec<Option<(u32, u32)>>,
    /// Steps that nobody has to be so kind as to take, from their end to their begin.
    reached: Vec<(u32, u32)>,
    /// Whether nothing can be relied on to lead on from a state.
    dead: Vec<bool>,
}

impl<A: Application + Clone + Eq + Hash, T: Thread + Clone + Eq + Hash> Search<A, T> {
    fn enter(&mut self, state: State<A, T>, parent: Option<(u32, u32)>) -> u32 {
        let state = Rc::new(state);
        let new = self.states.len() as u32;
        let number = *self.numbers.entry(Rc::clone(&state)).or_insert(new);
        if number == new {
            self.states.push(state);
            self.parents.push(parent);
        }
        number
    }

    /// The first state from which none of the ends can be reached; one where nothing more happens says most.
    fn lost(&self, ends: &[u32]) -> Option<u32> {
        let mut reached = self.reached.clone();
        reached.sort_unstable();
        let mut saved = vec![false; self.states.len()];
        let mut stack = ends.to_vec();
        while let Some(number) = stack.pop() {
            if std::mem::replace(&mut saved[number as usize], true) {
                continue;
            }
            let first = reached.partition_point(|&(to, _)| to < number);
            let from = reached[first..].iter().take_while(|&&(to, _)| to == number);
            stack.extend(from.map(|&(_, from)| from));
        }
        let mut lost = (0..saved.len()).filter(|&number| !saved[number]);
        let first = lost.clone().next();
        let dead = lost.find(|&number| self.dead[number]);
        dead.or(first).map(|lost| lost as u32)
    }

    /// The way to a state, and one step further.
    fn violated<S: Scenario<Application = A, Thread = T>>(
        &self,
        machines: &Machines<S>,
        last: u32,
        further: Option<u32>,
        what: String,
    ) -> Ending {
        let mut way: Vec<(u32, u32)> = further.map(|place| (last, place)).into_iter().collect();
        let mut number = last;
        while let Some((parent, place)) = self.parents[number as usize] {
            way.push((parent, place));
            number = parent;
        }
        let mut steps = Vec::new();
        for &(state, taken) in way.iter().rev() {
            let mut place = 0;
            machines.successors(&self.states[state as usize], &mut |_, label, _| {
                if place == taken {
                    steps.push(label());
                }
                place += 1;
            });
        }
        ending(what, steps)
    }
}

/// What is wrong, or what has no meaning here.
fn ending(what: String, steps: Vec<String>) -> Ending {
    let absent = [state::NO_BUS, state::NO_HOST];
    match absent.iter().any(|absent| what.ends_with(absent)) {
        true => Ending::NotExplored(what),
        false => Ending::Violated { what, steps },
    }
}
