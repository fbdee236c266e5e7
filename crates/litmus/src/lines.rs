//! One line of a protocol's caches, apart from all others.
//!
//! What happens to a line depends on no other line, but for the order of messages in channels that are ordered across
//! lines. So the worlds of single lines are numbered, and what each leads to is worked out once, however often the line is
//! met beside others: what is explored besides are rows of numbers.

use cohkit_protocol::controller::{Access, Controller, Event};
use cohkit_protocol::protocol::{Protocol, Right};
use cohkit_system::data::{Data, Extent};
use cohkit_system::world::{Arrival, Ended, Order, Step, System, World, Wrong};
use rustc_hash::FxHashMap;
use std::rc::Rc;

use crate::cores::Wish;
use crate::numbered::Numbered;
use crate::program::Update;

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

/// The number of a line's world.
pub type Line = u32;

/// What happens to a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Move {
    /// What the line is then.
    pub to: Line,
    /// The threads whose accesses end, and the values found; `None` if the home has performed a write, and gives none back.
    pub ended: Vec<(u8, Option<i64>)>,
    /// Whether a cache gives up what it was not asked for.
    pub gives_up: bool,
    /// The order whose first message arrives.
    pub takes: Option<Order>,
    /// The orders that messages are put in.
    pub puts: Vec<Order>,
}

/// The lines of a protocol's caches, one cache for each of so many threads.
pub struct Lines<'p> {
    system: System<'p>,
    accesses: Accesses,
    worlds: Numbered<World<Values>>,
    moves: FxHashMap<Line, Rc<[Move]>>,
    begun: FxHashMap<(Line, u8, Update, Access), Option<Rc<Move>>>,
}

impl<'p> Lines<'p> {
    /// None met so far. There is `room` for so many equal messages of a line, and for so many of an order.
    ///
    /// # Errors
    /// What the protocol lacks to be run.
    pub fn new(
        protocol: &'p Protocol,
        home: &'p Controller,
        threads: u8,
        room: u16,
    ) -> Result<Lines<'p>, String> {
        if protocol.several_tables() {
            let several =
                "has several kinds of remotes, and a test does not say which a thread is before";
            return Err(format!("{} {several}", protocol.name));
        }
        if let Some(what) = protocol.joins_lines() {
            let name = &protocol.name;
            return Err(format!(
                "{name} has {what}, with which programs are not run yet"
            ));
        }
        Ok(Lines {
            accesses: Accesses::of(protocol)?,
            system: System::new(protocol, home, u16::from(threads), 1, room),
            worlds: Numbered::default(),
            moves: FxHashMap::default(),
            begun: FxHashMap::default(),
        })
    }

    /// The protocol's name.
    pub fn protocol(&self) -> &'p str {
        &self.system.protocol.name
    }

    /// How many caches there are.
    pub fn caches(&self) -> u8 {
        self.system.remotes
    }

    /// The line that nobody has read or written, with this value in memory.
    ///
    /// # Errors
    /// What does not hold of it.
    pub fn first(&mut self, value: i64) -> Result<Line, Wrong> {
        let mut world = World::<Values>::new(&self.system);
        world.data.last[0].1 = value;
        world.lines[0].memory.1 = value;
        self.number(world)
    }

    /// The value that was written last.
    pub fn value(&self, line: Line) -> i64 {
        self.worlds.thing(line).data.last[0].1
    }

    /// What holds of every world is asked of each once.
    fn number(&mut self, world: World<Values>) -> Result<Line, Wrong> {
        let (number, new) = self.worlds.number(world);
        if new {
            self.worlds.thing(number).claims(&self.system)?;
        }
        Ok(number)
    }

    /// What may happen to a line without its threads.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn moves(&mut self, line: Line) -> Result<Rc<[Move]>, Wrong> {
        if let Some(moves) = self.moves.get(&line) {
            return Ok(Rc::clone(moves));
        }
        let world = self.worlds.thing(line);
        let mut moves = Vec::new();
        for step in world.steps(&self.system) {
            match step {
                // Threads begin these.
                Step::Access(_, _, access) if access.needs() > Right::None => continue,
                // There is no device.
                Step::Hit(..) | Step::Asks(..) | Step::Writes(_) | Step::Unlock(_) => continue,
                _ => {}
            }
            let mut next = World::clone(&world);
            let mut ended = Vec::new();
            if next.take_and_tell(&self.system, step, &mut ended)? {
                let takes = match step {
                    // One of a single line binds no others.
                    Step::Arrives(Arrival::Ordered(order)) => order.3.is_none().then_some(order),
                    _ => None,
                };
                moves.push(self.told(&world, next, ended, takes, step.spontaneous())?);
            }
        }
        let moves: Rc<[Move]> = moves.into();
        self.moves.insert(line, Rc::clone(&moves));
        Ok(moves)
    }

    /// A thread begins an access, or performs it at once. `None` if it has to be tried again.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn begin(&mut self, line: Line, thread: u8, wish: Wish) -> Result<Option<Rc<Move>>, Wrong> {
        let (access, what) = match wish {
            Wish::Read(_) => (self.accesses.read, Update::Add(0)),
            Wish::Write(_, value) => (self.accesses.write, Update::Set(value)),
            Wish::Update(_, update) => (self.accesses.write, update),
        };
        let key = (line, thread, what, access);
        if let Some(known) = self.begun.get(&key) {
            return Ok(known.clone());
        }
        let world = self.worlds.thing(line);
        let mut next = World::clone(&world);
        let mut ended = Vec::new();
        let (at, what) = ((0, thread), Written(what));
        let begun = match next.begin(&self.system, at, access, what, &mut ended)? {
            true => Some(Rc::new(self.told(&world, next, ended, None, false)?)),
            false => None,
        };
        self.begun.insert(key, begun.clone());
        Ok(begun)
    }

    fn told(
        &mut self,
        before: &World<Values>,
        after: World<Values>,
        ended: Vec<Ended<Values>>,
        takes: Option<Order>,
        gives_up: bool,
    ) -> Result<Move, Wrong> {
        let ended = ended.into_iter();
        let ended = ended.map(|one| (one.remote, one.found.map(|copy| copy.1)));
        let mut puts = Vec::new();
        for arrival in after.network.arrivals(self.system.protocol) {
            if let Arrival::Ordered(order @ (.., None)) = arrival {
                let kept = before.network.queued(order) - usize::from(takes == Some(order));
                let put = after.network.queued(order) - kept;
                puts.extend(std::iter::repeat_n(order, put));
            }
        }
        Ok(Move {
            to: self.number(after)?,
            ended: ended.collect(),
            gives_up,
            takes,
            puts,
        })
    }
}
