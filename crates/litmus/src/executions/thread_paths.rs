//! Paths of each thread by itself, with one choice of the values that its reads return.

use std::collections::BTreeSet;

use super::event::{Event, Kind};
use super::limits::{MAX_CANDIDATES, MAX_PATH_EVENTS};
use crate::program::{
    location_at, Acquire, Address, Change, Class, Instruction, Location, Operand, Program, Rcu,
    Register,
};

/// Path of a thread by itself, with one choice of the values that its reads return.
#[derive(Clone)]
pub(super) struct ThreadPath {
    /// Events in program order.
    pub(super) events: Vec<Event>,
    /// Fences: classes that they order, and number of events before the fence.
    pub(super) fences: Vec<(Class, Class, usize)>,
    /// Values at the end of the path, by register.
    pub(super) registers: Vec<i64>,
    /// Read-side critical sections: number of events before the begin and before the end.
    pub(super) sections: Vec<(usize, usize)>,
    /// Begins of open critical sections, outermost first.
    open_sections: Vec<usize>,
    /// Grace periods: number of events before each.
    pub(super) grace_periods: Vec<usize>,
}

/// Returns all paths of each thread by itself, where loads return any value that some path writes. `None` if there are
/// too many, or if an access is to the address of no location.
pub(super) fn thread_paths(program: &Program) -> Option<Vec<Vec<ThreadPath>>> {
    find_thread_paths(program, &mut false)
}

/// Returns the paths of [`thread_paths`]. Sets `has_invalid_address` if an access is to the address of no location.
pub(super) fn find_thread_paths(
    program: &Program,
    has_invalid_address: &mut bool,
) -> Option<Vec<Vec<ThreadPath>>> {
    let initial_values = program.initial.iter().map(|&value| BTreeSet::from([value]));
    let mut values: Vec<BTreeSet<i64>> = initial_values.collect();
    let writes = |i: &&Instruction| i.writes();
    let code = program.threads.iter().flat_map(|thread| &thread.code);
    // No value is the result of more writes than the program has.
    let rounds = code.filter(writes).count() + 1;
    for _ in 0..rounds {
        let paths = thread_paths_with_values(program, &values, has_invalid_address)?;
        let previous = values.clone();
        for event in paths.iter().flatten().flat_map(|path| &path.events) {
            if event.kind == Kind::Write {
                values[usize::from(event.at)].insert(event.value);
            }
        }
        if values == previous {
            return Some(paths);
        }
    }
    thread_paths_with_values(program, &values, has_invalid_address)
}

/// Returns all paths of each thread, where a read of location L returns any value of `values[L]`. `None` if there are
/// too many, or after an access to the address of no location.
fn thread_paths_with_values(
    program: &Program,
    values: &[BTreeSet<i64>],
    has_invalid_address: &mut bool,
) -> Option<Vec<Vec<ThreadPath>>> {
    let mut paths_by_thread = Vec::new();
    for (number, thread) in program.threads.iter().enumerate() {
        let mut search = PathSearch {
            code: &thread.code,
            thread: number,
            values,
            path: ThreadPath {
                events: Vec::new(),
                fences: Vec::new(),
                registers: thread.registers.clone(),
                sections: Vec::new(),
                open_sections: Vec::new(),
                grace_periods: Vec::new(),
            },
            depends: vec![0; thread.registers.len()],
            picks: vec![0; thread.registers.len()],
            reserved: None,
            control: 0,
            control_picks: 0,
            synchronised: 0,
            paths: Vec::new(),
            event_count: 0,
            has_invalid_address: false,
        };
        search.search_from(0);
        *has_invalid_address |= search.has_invalid_address;
        if search.has_too_many() || search.has_invalid_address {
            return None;
        }
        paths_by_thread.push(search.paths);
    }
    Some(paths_by_thread)
}

/// Enumeration of the paths of one thread.
struct PathSearch<'w> {
    /// Instructions of the thread.
    code: &'w [Instruction],
    /// Number of the thread.
    thread: usize,
    /// Values that a read may return, by location.
    values: &'w [BTreeSet<i64>],
    /// The path so far.
    path: ThreadPath,
    /// Events that each register depends on, as a bit set of their numbers in the thread.
    depends: Vec<u64>,
    /// Events that only selected each register's value, in the same form.
    picks: Vec<u64>,
    /// Number in the thread of the read that holds the reservation; `None` without a reservation.
    reserved: Option<usize>,
    /// Events that earlier branches depend on, in the same form.
    control: u64,
    /// Events that only selected the values that `control` depends on.
    control_picks: u64,
    /// Control and address dependencies at the last instruction-synchronisation fence.
    synchronised: u64,
    /// Complete paths found so far.
    paths: Vec<ThreadPath>,
    /// Number of events of all paths found.
    event_count: usize,
    /// True after an access to the address of no location.
    has_invalid_address: bool,
}

/// Location of an access, with the events that it depends on and those that selected it, as bit sets.
#[derive(Clone, Copy)]
struct ResolvedAddress {
    /// Location of the access.
    location: Location,
    /// Events that the address depends on.
    depends: u64,
    /// Events that only selected the address.
    picks: u64,
}

/// Saved state of a [`PathSearch`], for backtracking. The fields are those of the search.
struct SavedState {
    path: ThreadPath,
    depends: Vec<u64>,
    picks: Vec<u64>,
    reserved: Option<usize>,
    control: u64,
    control_picks: u64,
    synchronised: u64,
}

impl PathSearch<'_> {
    /// Returns true if the search exceeds a limit on paths or events.
    fn has_too_many(&self) -> bool {
        self.paths.len() > MAX_CANDIDATES || self.event_count > MAX_PATH_EVENTS
    }

    /// Returns the value of an operand, and the events that it depends on, one bit each.
    fn value(&self, operand: Operand) -> (i64, u64) {
        match operand {
            Operand::Number(value) => (value, 0),
            Operand::Register(register) => (self.path.registers[register], self.depends[register]),
        }
    }

    /// Returns the events that selected the value of an operand, one bit each.
    fn picks(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Number(_) => 0,
            Operand::Register(register) => self.picks[register],
        }
    }

    /// Returns the location of an access, the events that it depends on, and those that selected it.
    fn locate(&mut self, address: Address) -> Option<ResolvedAddress> {
        match address {
            Address::Direct(location) => Some(ResolvedAddress {
                location,
                depends: 0,
                picks: 0,
            }),
            Address::Indirect(register) => {
                let location = location_at(self.path.registers[register]);
                let location =
                    location.filter(|&location| usize::from(location) < self.values.len());
                self.has_invalid_address |= location.is_none();
                Some(ResolvedAddress {
                    location: location?,
                    depends: self.depends[register],
                    picks: self.picks[register],
                })
            }
        }
    }

    /// Adds an event with the dependencies of its address and of earlier branches. The caller completes it.
    fn event(
        &mut self,
        instruction_index: usize,
        kind: Kind,
        access: ResolvedAddress,
    ) -> &mut Event {
        self.path.events.push(Event {
            thread: self.thread,
            instruction_index,
            kind,
            at: access.location,
            value: 0,
            acquire: Acquire::None,
            release: false,
            atomic: false,
            exclusive: false,
            returns: true,
            acquire_release: false,
            paired_read: None,
            data: 0,
            address: access.depends,
            pick: access.picks | self.control_picks,
            control: self.control,
            synchronised: self.synchronised,
        });
        let last = self.path.events.len() - 1;
        &mut self.path.events[last]
    }

    /// Bit of the last event.
    fn last_event_bit(&self) -> u64 {
        1 << (self.path.events.len() - 1).min(63)
    }

    /// Writes a register. The value depends on the events `depends`, and the events `picks` selected it.
    fn set_register(&mut self, to: Register, value: i64, depends: u64, picks: u64) {
        self.path.registers[to] = value;
        self.depends[to] = depends;
        self.picks[to] = picks;
    }

    /// Saves the state before a choice.
    fn save(&self) -> SavedState {
        SavedState {
            path: self.path.clone(),
            depends: self.depends.clone(),
            picks: self.picks.clone(),
            reserved: self.reserved,
            control: self.control,
            control_picks: self.control_picks,
            synchronised: self.synchronised,
        }
    }

    /// Restores the state before a choice, to explore its next alternative.
    fn restore(&mut self, saved: &SavedState) {
        self.path.clone_from(&saved.path);
        self.depends.clone_from(&saved.depends);
        self.picks.clone_from(&saved.picks);
        self.reserved = saved.reserved;
        self.control = saved.control;
        self.control_picks = saved.control_picks;
        self.synchronised = saved.synchronised;
    }

    /// Continues the path at an instruction, and records each complete path.
    fn search_from(&mut self, mut instruction_index: usize) {
        while let Some(&instruction) = self.code.get(instruction_index) {
            if self.has_too_many() || self.has_invalid_address {
                return;
            }
            match instruction {
                Instruction::Compute {
                    to,
                    operation,
                    a,
                    b,
                } => {
                    let picks = self.picks(a) | self.picks(b);
                    let ((a, a_sources), (b, b_sources)) = (self.value(a), self.value(b));
                    self.set_register(to, operation.apply(a, b), a_sources | b_sources, picks);
                }
                Instruction::Select {
                    to,
                    on,
                    then,
                    otherwise,
                } => {
                    let (value, sources) = self.value(Operand::Register(on));
                    let chosen = if value != 0 { then } else { otherwise };
                    let picks = sources | self.picks[on] | self.picks(chosen);
                    let (value, sources) = self.value(chosen);
                    self.set_register(to, value, sources, picks);
                }
                Instruction::Branch { on, zero, to } => {
                    let (value, sources) = self.value(Operand::Register(on));
                    self.control |= sources;
                    self.control_picks |= self.picks[on];
                    if (value == 0) == zero {
                        instruction_index = to;
                        continue;
                    }
                }
                Instruction::Fence(fence) => match fence.sides() {
                    None => {
                        let events = self.path.events.iter();
                        let addresses = events.fold(0, |bits, event| bits | event.address);
                        self.synchronised = self.control | addresses;
                    }
                    Some((before, after)) => {
                        self.path
                            .fences
                            .push((before, after, self.path.events.len()));
                    }
                },
                Instruction::Rcu(operation) => self.rcu(operation),
                Instruction::Store {
                    to, value, release, ..
                } => {
                    let Some(access) = self.locate(to) else {
                        return;
                    };
                    self.add_write(instruction_index, access, value).release = release;
                }
                Instruction::StoreConditional { .. } => {
                    return self.store_conditional(instruction_index, instruction)
                }
                Instruction::Load { .. }
                | Instruction::Atomic { .. }
                | Instruction::LoadReserved { .. } => {
                    return self.read_each_value(instruction_index, instruction)
                }
            }
            instruction_index += 1;
        }
        self.event_count += self.path.events.len();
        self.paths.push(self.path.clone());
    }

    /// Records an RCU operation. Only outermost critical sections count: an inner one is part of its outer section.
    fn rcu(&mut self, operation: Rcu) {
        let events = self.path.events.len();
        let path = &mut self.path;
        match operation {
            Rcu::ReadLock => path.open_sections.push(events),
            Rcu::ReadUnlock => {
                if let (Some(begin), true) =
                    (path.open_sections.pop(), path.open_sections.is_empty())
                {
                    path.sections.push((begin, events));
                }
            }
            Rcu::Synchronize => {
                path.grace_periods.push(events);
                path.fences.push((Class::All, Class::All, events));
            }
        }
    }

    /// Adds the event of a write of an operand.
    fn add_write(
        &mut self,
        instruction_index: usize,
        access: ResolvedAddress,
        value: Operand,
    ) -> &mut Event {
        let (picks, (value, sources)) = (self.picks(value), self.value(value));
        let event = self.event(instruction_index, Kind::Write, access);
        (event.value, event.data) = (value, sources);
        event.pick |= picks;
        event
    }

    /// Continues after a store-conditional: once as failed, and once as performed if the reservation is for its
    /// location.
    fn store_conditional(&mut self, instruction_index: usize, instruction: Instruction) {
        let Instruction::StoreConditional {
            status,
            to,
            value,
            acquire,
            release,
        } = instruction
        else {
            return;
        };
        let Some(access) = self.locate(to) else {
            return;
        };
        let reserved = self.reserved.take();
        let saved = self.save();
        self.set_register(status, 1, 0, 0);
        self.search_from(instruction_index + 1);
        self.restore(&saved);
        if let Some(read) = reserved.filter(|&read| self.path.events[read].at == access.location) {
            let write = self.add_write(instruction_index, access, value);
            (write.exclusive, write.release, write.paired_read) = (true, release, Some(read));
            if acquire {
                write.acquire = Acquire::Rcsc;
            }
            let read_bit = self.last_event_bit();
            self.set_register(status, 0, read_bit, 0);
            self.search_from(instruction_index + 1);
            self.restore(&saved);
        }
    }

    /// Continues after a read, once for each value that it may return.
    fn read_each_value(&mut self, instruction_index: usize, instruction: Instruction) {
        let Some(access) = instruction
            .address()
            .and_then(|address| self.locate(address))
        else {
            return;
        };
        let saved = self.save();
        for &read_value in &self.values[usize::from(access.location)] {
            let read = self.event(instruction_index, Kind::Read, access);
            read.value = read_value;
            match instruction {
                Instruction::Load { to, acquire, .. } => {
                    read.acquire = acquire;
                    let read_bit = self.last_event_bit();
                    self.set_register(to, read_value, read_bit, 0);
                }
                Instruction::LoadReserved {
                    to,
                    acquire,
                    release,
                    ..
                } => {
                    (read.acquire, read.release, read.exclusive) = (acquire, release, true);
                    self.reserved = Some(self.path.events.len() - 1);
                    let read_bit = self.last_event_bit();
                    self.set_register(to, read_value, read_bit, 0);
                }
                Instruction::Atomic { .. } => {
                    self.read_atomic(instruction_index, instruction, access, read_value);
                }
                _ => {}
            }
            self.search_from(instruction_index + 1);
            self.restore(&saved);
        }
    }

    /// Completes the last event, the read of an atomic access, and adds the write, if the access writes.
    fn read_atomic(
        &mut self,
        instruction_index: usize,
        instruction: Instruction,
        access: ResolvedAddress,
        read_value: i64,
    ) {
        let Instruction::Atomic {
            to,
            change,
            value,
            acquire,
            release,
            returns,
            ..
        } = instruction
        else {
            return;
        };
        let read_number = self.path.events.len() - 1;
        let read = &mut self.path.events[read_number];
        (read.atomic, read.returns) = (true, returns);
        read.acquire_release = acquire && release;
        if acquire {
            read.acquire = Acquire::Rcsc;
        }
        let read_bit = self.last_event_bit();
        let (operand, _) = self.value(value);
        let mut expects = (0, 0);
        // A compare-and-swap that succeeds returns the expected value: the read only selected it.
        let mut result = (read_bit, 0);
        let new_value = match change {
            Change::Exchange => Some(operand),
            Change::FetchAdd => Some(read_value.wrapping_add(operand)),
            Change::FetchOp(operation) => Some(operation.apply(read_value, operand)),
            Change::CompareAndSwap(expected) => {
                let (expected_value, depends) = self.value(expected);
                expects = (depends, self.picks(expected));
                if read_value == expected_value {
                    result = (depends, expects.1 | read_bit);
                }
                (read_value == expected_value).then_some(operand)
            }
        };
        if let Some(new_value) = new_value {
            let write = self.add_write(instruction_index, access, value);
            (write.atomic, write.release) = (true, release);
            (write.acquire_release, write.paired_read) = (acquire && release, Some(read_number));
            write.value = new_value;
            // The comparison decides if the write happens.
            write.pick |= expects.0 | expects.1;
        }
        self.set_register(to, read_value, result.0, result.1);
    }
}
