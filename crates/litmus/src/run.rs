//! What a program shows on a protocol.

use cohkit_protocol::controller::{Access, Controller, Event};
use cohkit_protocol::protocol::{Protocol, Right};
use cohkit_system::data::{Data, Extent};
use cohkit_system::world::{Ended, Step, System, World, Wrong};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

use crate::cores::{Core, Cores, Wish};
use crate::models::end;
use crate::program::{End, Program, Update};

/// A copy of a line: the number of the write that left it, counted from 1, and its value. The default is no copy.
pub type Copy = (u16, i64);

/// Each line's last write and its value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Values {
    last: Vec<Copy>,
}

/// What an access writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Written(Update);

impl Default for Written {
    fn default() -> Written {
        Written(Update::Add(0))
    }
}

impl Data for Values {
    type Copy = Copy;
    type Write = Written;
    const KEEPS: bool = true;
    const AGES: bool = false;

    fn new(lines: u8) -> Values {
        Values {
            last: vec![(1, 0); usize::from(lines)],
        }
    }

    fn initial(&self, line: u8) -> Copy {
        self.last[usize::from(line)]
    }

    fn current(&self, line: u8, copy: &Copy) -> bool {
        self.last[usize::from(line)] == *copy
    }

    fn write(&mut self, line: u8, on: &Copy, _extent: Extent, what: &Written) -> Copy {
        let last = &mut self.last[usize::from(line)];
        *last = (last.0 + 1, what.0.of(on.1));
        *last
    }

    fn aged(copy: &Copy) -> Copy {
        *copy
    }
}

/// How a program is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// What stands between threads and caches.
    pub cores: Cores,
    /// How often, in all, caches give up lines, or rights, that they were not asked for.
    pub gives_up: u8,
    /// Equal messages, and messages of one order, that there is room for.
    pub room: u16,
    /// States to visit, at most.
    pub most: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cores: Cores::InOrder,
            gives_up: 1,
            room: 7,
            most: 1_000_000,
        }
    }
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// All ends.
    Ends {
        /// The ends.
        ends: BTreeSet<End>,
        /// States visited.
        states: usize,
    },
    /// Something is wrong with the protocol.
    Wrong(Wrong),
    /// From some state nothing leads on.
    Stuck {
        /// What the threads ask for there.
        waiting: Vec<Option<Wish>>,
    },
    /// There are more states than were to be visited.
    TooMany,
    /// It was told to stop.
    Interrupted,
    /// The protocol has no access with which it could be run.
    Cannot(String),
}

/// The accesses by which threads read and write.
struct Accesses {
    read: Access,
    write: Access,
}

impl Accesses {
    fn of(protocol: &Protocol) -> Result<Accesses, String> {
        let remote = &protocol.remote;
        let has = |access: Access| {
            let hits = matches!(access, Access::Load | Access::Store)
                && remote.states.iter().any(|s| s.right >= access.needs());
            hits || remote
                .rules
                .iter()
                .any(|row| row.event == Event::Access(access))
        };
        let first = |all: &[Access], what: &str| {
            let found = all.iter().copied().find(|&access| has(access));
            found.ok_or_else(|| format!("{} has no access that {what}", protocol.name))
        };
        let writes = [Access::Store, Access::WritePartial, Access::WriteLine];
        Ok(Accesses {
            read: first(&[Access::Load, Access::ReadOnce], "reads")?,
            write: first(&writes, "writes")?,
        })
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    world: World<Values>,
    cores: Vec<Core>,
    /// How often caches may still give up what they were not asked for.
    gives_up: u8,
}

/// All ends of a program whose threads run on the caches of a protocol, one on each. `goes_on` is asked now and then.
pub fn run(
    protocol: &Protocol,
    home: &Controller,
    program: &Program,
    options: &Options,
    goes_on: &mut dyn FnMut() -> bool,
) -> Found {
    let accesses = match Accesses::of(protocol) {
        Ok(accesses) => accesses,
        Err(what) => return Found::Cannot(what),
    };
    let (remotes, lines) = (program.threads.len() as u8, program.locations.len() as u8);
    let system = System::new(protocol, home, remotes, lines, options.room);
    let mut world = World::<Values>::new(&system);
    for (line, &value) in program.initial.iter().enumerate() {
        world.data.last[line].1 = value;
        world.lines[line].memory.1 = value;
    }
    let mut cores = Core::all(program);
    for (core, thread) in cores.iter_mut().zip(&program.threads) {
        core.settle(&thread.code, options.cores);
    }
    let first = State {
        world,
        cores,
        gives_up: options.gives_up,
    };
    let runner = Runner {
        system,
        accesses,
        program,
        cores: options.cores,
    };
    let mut met = FxHashSet::from_iter([first.clone()]);
    let mut work = vec![first];
    let mut ends = BTreeSet::new();
    let mut count = 0u32;
    while let Some(state) = work.pop() {
        count += 1;
        if count.is_multiple_of(1024) && !goes_on() {
            return Found::Interrupted;
        }
        let cores = state.cores.iter().zip(&program.threads);
        if cores
            .clone()
            .all(|(core, thread)| core.stopped(&thread.code))
        {
            let memory: Vec<i64> = state.world.data.last.iter().map(|last| last.1).collect();
            ends.insert(end(program, &state.cores, &memory));
            continue;
        }
        let mut leads_on = false;
        let mut each = |next: State, spontaneous: bool| {
            leads_on |= !spontaneous;
            if met.insert(next.clone()) {
                work.push(next);
            }
        };
        if let Err(wrong) = runner.successors(&state, &mut each) {
            return Found::Wrong(wrong);
        }
        if !leads_on {
            let waiting = cores.map(|(core, thread)| core.access(&thread.code).or(core.drain()));
            return Found::Stuck {
                waiting: waiting.collect(),
            };
        }
        if met.len() > options.most {
            return Found::TooMany;
        }
    }
    let states = met.len();
    Found::Ends { ends, states }
}

struct Runner<'p> {
    system: System<'p>,
    accesses: Accesses,
    program: &'p Program,
    cores: Cores,
}

impl Runner<'_> {
    fn successors(&self, state: &State, each: &mut dyn FnMut(State, bool)) -> Result<(), Wrong> {
        for (number, thread) in (0..).zip(&self.program.threads) {
            let core = &state.cores[usize::from(number)];
            let mut next = state.clone();
            if next.cores[usize::from(number)].forward(&thread.code) {
                next.cores[usize::from(number)].settle(&thread.code, self.cores);
                each(next, false);
            }
            // One access of a thread at a time: what its buffer sends waits for what it reads, and the reverse,
            // where they are of one line.
            for wish in [core.access(&thread.code), core.drain()]
                .into_iter()
                .flatten()
            {
                let mut next = state.clone();
                let (access, what) = match wish {
                    Wish::Read(_) => (self.accesses.read, Update::Add(0)),
                    Wish::Write(_, value) => (self.accesses.write, Update::Set(value)),
                    Wish::Update(_, update) => (self.accesses.write, update),
                };
                let mut ended = Vec::new();
                let at = (wish.location(), number);
                let begun =
                    next.world
                        .begin(&self.system, at, access, Written(what), &mut ended)?;
                if begun {
                    self.goes_on(&mut next, ended);
                    each(next, false);
                }
            }
        }
        for step in state.world.steps(&self.system) {
            let mut next = state.clone();
            match step {
                Step::Access(_, _, access) if access.needs() > Right::None => continue,
                Step::Access(..) if state.gives_up == 0 => continue,
                Step::Access(..) => next.gives_up -= 1,
                Step::Hit(..) | Step::Asks(..) | Step::Writes(_) | Step::Unlock(_) => continue,
                _ => {}
            }
            let mut ended = Vec::new();
            if next.world.take_and_tell(&self.system, step, &mut ended)? {
                self.goes_on(&mut next, ended);
                next.world.claims(&self.system)?;
                each(next, step.spontaneous());
            }
        }
        Ok(())
    }

    /// Threads hear that their accesses have ended, and go on to their next ones.
    fn goes_on(&self, state: &mut State, ended: Vec<Ended<Values>>) {
        for Ended {
            line,
            remote,
            found,
        } in ended
        {
            let code = &self.program.threads[usize::from(remote)].code;
            let core = &mut state.cores[usize::from(remote)];
            let here = |wish: &Wish| wish.location() == line;
            match core.access(code).filter(here) {
                Some(_) => core.ended(code, found.unwrap_or_default().1),
                None => core.drained(),
            }
            core.settle(code, self.cores);
        }
    }
}
