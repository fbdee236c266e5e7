//! The classic shapes, generated from cycles of relations.
//!
//! A cycle names the relation from each access to the next, in the notation of herd's diy:
//!
//! * `Rfe`, `Fre`, `Coe`: reads-from, from-read or coherence order, between threads;
//! * `Rfi`, `Fri`, `Coi`: the same within a thread;
//! * `PodWR`: program order, from a write to a read, with different locations;
//! * `PosWR`: program order, with the same location.
//!
//! No sequentially consistent execution has such a cycle. The condition of a shape is that an execution has it.
//! Variations put fences or dependencies between two accesses of a thread, or change the accesses themselves.

use std::collections::BTreeSet;

use crate::executions::{each, Execution, Kind};
use crate::program::{
    Acquire, Address, Change, Claim, Fence, Instruction, Location, Observed, Operand, Operation,
    Program, Quantifier, StoreVariant, Thread,
};

/// Named shapes with their cycles. The last relation of a cycle leads back to the first access, and from another thread
/// if there are several.
pub const FAMILIES: [(&str, &str); 36] = [
    ("CoWW", "PosWW Coi"),
    ("CoRW1", "PosRW Rfi"),
    ("CoWR", "PosWR Fri"),
    ("CoRR", "PosRR Fre Rfe"),
    ("CoRW2", "PosRW Coe Rfe"),
    ("CoWR2", "PosWR Fre Coe"),
    ("CoRR2", "PosRR Fre Rfe PosRR Fre Rfe"),
    ("SB", "PodWR Fre PodWR Fre"),
    ("MP", "PodWW Rfe PodRR Fre"),
    ("LB", "PodRW Rfe PodRW Rfe"),
    ("S", "PodWW Rfe PodRW Coe"),
    ("R", "PodWW Coe PodWR Fre"),
    ("2+2W", "PodWW Coe PodWW Coe"),
    ("WRC", "Rfe PodRW Rfe PodRR Fre"),
    ("WWC", "Rfe PodRW Rfe PodRW Coe"),
    ("RWC", "Rfe PodRR Fre PodWR Fre"),
    ("WRW+WR", "Rfe PodRW Coe PodWR Fre"),
    ("WRR+2W", "Rfe PodRR Fre PodWW Coe"),
    ("WRW+2W", "Rfe PodRW Coe PodWW Coe"),
    ("ISA2", "PodWW Rfe PodRW Rfe PodRR Fre"),
    ("W+RWC", "PodWW Rfe PodRR Fre PodWR Fre"),
    ("Z6.0", "PodWW Rfe PodRW Coe PodWR Fre"),
    ("Z6.1", "PodWW Coe PodWW Rfe PodRW Coe"),
    ("Z6.2", "PodWW Rfe PodRW Rfe PodRW Coe"),
    ("Z6.3", "PodWW Coe PodWW Rfe PodRR Fre"),
    ("Z6.4", "PodWW Coe PodWR Fre PodWR Fre"),
    ("Z6.5", "PodWW Coe PodWW Coe PodWR Fre"),
    ("3.SB", "PodWR Fre PodWR Fre PodWR Fre"),
    ("3.LB", "PodRW Rfe PodRW Rfe PodRW Rfe"),
    ("3.2W", "PodWW Coe PodWW Coe PodWW Coe"),
    ("IRIW", "Rfe PodRR Fre Rfe PodRR Fre"),
    ("IRRWIW", "Rfe PodRR Fre Rfe PodRW Coe"),
    ("IRWIW", "Rfe PodRW Coe Rfe PodRW Coe"),
    ("4.SB", "PodWR Fre PodWR Fre PodWR Fre PodWR Fre"),
    ("4.LB", "PodRW Rfe PodRW Rfe PodRW Rfe PodRW Rfe"),
    ("4.2W", "PodWW Coe PodWW Coe PodWW Coe PodWW Coe"),
];

/// Relation from an access to the next one of a cycle. `outside` is true between different threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Edge {
    /// Reads-from: from a write to a read.
    Rf { outside: bool },
    /// From-read: from a read to a write.
    Fr { outside: bool },
    /// Coherence order: from a write to a write.
    Co { outside: bool },
    /// Program order, with the same location or another.
    Po { same: bool, from: Kind, to: Kind },
}

impl Edge {
    fn read(word: &str) -> Option<Edge> {
        let outside = word.ends_with('e');
        let kind = |letter: u8| match letter {
            b'R' => Some(Kind::Read),
            b'W' => Some(Kind::Write),
            _ => None,
        };
        Some(match word {
            "Rfe" | "Rfi" => Edge::Rf { outside },
            "Fre" | "Fri" => Edge::Fr { outside },
            "Coe" | "Coi" => Edge::Co { outside },
            _ => match *word.strip_prefix("Po")?.as_bytes() {
                [place @ (b'd' | b's'), from, to] => Edge::Po {
                    same: place == b's',
                    from: kind(from)?,
                    to: kind(to)?,
                },
                _ => return None,
            },
        })
    }

    fn outside(self) -> bool {
        match self {
            Edge::Rf { outside } | Edge::Fr { outside } | Edge::Co { outside } => outside,
            Edge::Po { .. } => false,
        }
    }

    fn ends(self) -> (Kind, Kind) {
        match self {
            Edge::Rf { .. } => (Kind::Write, Kind::Read),
            Edge::Fr { .. } => (Kind::Read, Kind::Write),
            Edge::Co { .. } => (Kind::Write, Kind::Write),
            Edge::Po { from, to, .. } => (from, to),
        }
    }

    /// Returns true if the relation holds from event `a` to event `b`. Assumes program order.
    fn holds(self, execution: &Execution, a: usize, b: usize) -> bool {
        match self {
            Edge::Rf { .. } => execution.reads_from(a, b),
            Edge::Fr { .. } => execution.from_read(a, b),
            Edge::Co { .. } => execution.coherence(a, b),
            Edge::Po { .. } => true,
        }
    }
}

/// Order between two adjacent accesses of a thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EdgeOrder {
    /// Program order alone.
    Nothing,
    /// A full fence.
    Fence,
    /// The weakest fence that orders two accesses of these kinds.
    Weak,
    /// Data dependency of a write on the read; a full fence between other accesses.
    Data,
    /// Control dependency of a write on the read; a full fence between other accesses.
    Control,
    /// Acquiring reads ([`Acquire::Full`]) and releasing writes.
    Orders,
    /// Acquiring reads that may pass earlier releases ([`Acquire::Later`]), and releasing writes.
    LaterOrders,
    /// Acquire if the first access is a read, and release if the second is a write: the minimum for message passing.
    HandsOver,
    /// Atomic exchanges instead of writes. They acquire and release.
    Swaps,
}

impl EdgeOrder {
    /// Returns the name of the order between accesses of these kinds.
    fn name(self, from: Kind, to: Kind) -> String {
        let reads = |kind| kind == Kind::Read;
        let letters = |read: char| -> String {
            let letter = |kind| if reads(kind) { read } else { 'l' };
            ["po".to_string(), letter(from).into(), letter(to).into()].concat()
        };
        let name = match self {
            EdgeOrder::Nothing => "po",
            EdgeOrder::Weak if reads(from) => "dmb.ld",
            EdgeOrder::Weak if !reads(to) => "dmb.st",
            EdgeOrder::Data if reads(from) && !reads(to) => "data",
            EdgeOrder::Control if reads(from) && !reads(to) => "ctrl",
            EdgeOrder::Fence | EdgeOrder::Weak | EdgeOrder::Data | EdgeOrder::Control => "dmb.sy",
            EdgeOrder::Orders => return letters('a'),
            EdgeOrder::LaterOrders => return letters('q'),
            EdgeOrder::HandsOver => {
                let first = if reads(from) { 'a' } else { 'p' };
                let second = if reads(to) { 'p' } else { 'l' };
                return format!("po{first}{second}");
            }
            EdgeOrder::Swaps => "swp",
        };
        name.to_string()
    }
}

/// An access of a shape.
#[derive(Clone, Copy, Debug)]
struct Access {
    thread: usize,
    kind: Kind,
    at: Location,
    /// Value written by a write.
    value: i64,
    /// Order before and after the access in its thread.
    around: [Option<EdgeOrder>; 2],
}

/// Creates the shape of a cycle. `between` has one order per program-order relation of the cycle.
///
/// # Errors
/// The cycle has an unknown relation, does not close, or has no execution.
pub fn shape(name: &str, cycle: &str, between: &[EdgeOrder]) -> Result<Program, String> {
    let words: Vec<&str> = cycle.split_whitespace().collect();
    let edges: Option<Vec<Edge>> = words.iter().map(|word| Edge::read(word)).collect();
    let edges = edges.ok_or_else(|| format!("`{cycle}` names an unknown relation"))?;
    let mut accesses = accesses(&edges, between)
        .ok_or_else(|| format!("`{cycle}` is not a cycle of accesses of threads"))?;
    // The cycle fixes the coherence order. Values increase in that order.
    let ranks = |execution: &Execution, places: &[usize]| -> Vec<i64> {
        let ranks = places.iter().map(|&place| execution.rank[place] as i64 + 1);
        ranks.collect()
    };
    let mut found = Vec::new();
    fitting(&program(name, &accesses), &edges, &accesses, |e, places| {
        found.push(ranks(e, places));
    })?;
    let Some(first) = found.first() else {
        return Err(format!("no execution has the cycle `{cycle}`"));
    };
    for (access, value) in accesses.iter_mut().zip(first) {
        if access.kind == Kind::Write {
            access.value = *value;
        }
    }
    let mut program = program(name, &accesses);
    let mut claims = BTreeSet::new();
    let asked = asked(&program, &accesses);
    fitting(&program, &edges, &accesses, |execution, _| {
        let Some(end) = execution.end(&program) else {
            return;
        };
        let values = asked
            .iter()
            .map(|observed| (observed.clone(), end.0[observed]));
        claims.insert(values.collect::<Vec<_>>());
    })?;
    let all = |claim: Vec<(Observed, i64)>| {
        let parts = claim.into_iter().map(|(o, value)| Claim::Is(o, value));
        parts.reduce(|a, b| Claim::And(Box::new(a), Box::new(b)))
    };
    let any = claims.into_iter().filter_map(all);
    let any = any.reduce(|a, b| Claim::Or(Box::new(a), Box::new(b)));
    program.claim = any.unwrap_or(Claim::True);
    // Old values of exchanges are not part of the cycle, but models restrict them too.
    for (number, thread) in program.threads.iter().enumerate() {
        for instruction in &thread.code {
            if let Instruction::Atomic { to, .. } = *instruction {
                program.listed.push(Observed::Register(number, to));
            }
        }
    }
    Ok(program)
}

/// Returns the accesses of a cycle, or `None` if the cycle does not close.
fn accesses(edges: &[Edge], between: &[EdgeOrder]) -> Option<Vec<Access>> {
    let moves = |edge: &&Edge| matches!(edge, Edge::Po { same: false, .. });
    let locations = edges.iter().filter(moves).count().max(1);
    let (last, before) = edges.split_last()?;
    let closes = last.outside() || before.iter().all(|edge| !edge.outside());
    let orders = edges.iter().filter(|edge| matches!(edge, Edge::Po { .. }));
    if !closes || matches!(last, Edge::Po { .. }) || orders.count() != between.len() {
        return None;
    }
    let mut between = between.iter();
    let mut all: Vec<Access> = Vec::new();
    let (mut thread, mut at) = (0, 0);
    for (number, edge) in edges.iter().enumerate() {
        let previous = edges[(number + edges.len() - 1) % edges.len()];
        let kind = edge.ends().0;
        if previous.ends().1 != kind {
            return None;
        }
        let before = all.last().and_then(|access| access.around[1]);
        let behind = match edge {
            Edge::Po { .. } => between.next().copied(),
            _ => None,
        };
        all.push(Access {
            thread,
            kind,
            at,
            value: number as i64 + 1,
            around: [before, behind],
        });
        thread += usize::from(edge.outside());
        at = (at + Location::from(moves(&edge))) % locations as Location;
    }
    (at == 0).then_some(all)
}

/// Calls `show` with the candidate executions that have the cycle, and with the events of its accesses.
fn fitting(
    program: &Program,
    edges: &[Edge],
    accesses: &[Access],
    mut show: impl FnMut(&Execution, &[usize]),
) -> Result<(), String> {
    each(program, &mut |execution| {
        // Accesses and events are in the same order. The event of an exchange is its write.
        let mut places = Vec::new();
        for access in accesses {
            let from = places.last().map_or(0, |last| last + 1);
            let events = execution.events.iter().enumerate().skip(from);
            let its = |(_, event): &(usize, &crate::executions::Event)| {
                (event.thread, event.kind, event.at) == (access.thread, access.kind, access.at)
                    && !(event.atomic && event.kind == Kind::Read)
            };
            let mut events = events.filter(its);
            match events.next() {
                Some((place, _)) => places.push(place),
                None => return,
            }
        }
        let holds = |number: usize| {
            let next = (number + 1) % edges.len();
            edges[number].holds(execution, places[number], places[next])
        };
        if (0..edges.len()).all(holds) {
            show(execution, &places);
        }
    })
}

/// Returns the registers and locations of the condition: all values read, and all locations with several writes.
fn asked(program: &Program, accesses: &[Access]) -> Vec<Observed> {
    let mut asked = Vec::new();
    for (number, thread) in program.threads.iter().enumerate() {
        for instruction in &thread.code {
            if let Instruction::Load { to, .. } = *instruction {
                asked.push(Observed::Register(number, to));
            }
        }
    }
    for at in 0..program.locations.len() as Location {
        let writes = accesses
            .iter()
            .filter(|a| a.kind == Kind::Write && a.at == at);
        if writes.count() > 1 {
            asked.push(Observed::Location(at));
        }
    }
    asked
}

fn program(name: &str, accesses: &[Access]) -> Program {
    let threads = accesses.iter().map(|a| a.thread + 1).max().unwrap_or(0);
    let locations = accesses.iter().map(|a| usize::from(a.at) + 1).max();
    let locations = ["x", "y", "z", "w"][..locations.unwrap_or(1)].iter();
    let locations: Vec<String> = locations.map(|name| name.to_string()).collect();
    let mut program = Program {
        name: name.to_string(),
        initial: vec![0; locations.len()],
        locations,
        threads: vec![Thread::default(); threads],
        quantifier: Quantifier::Exists,
        claim: Claim::True,
        listed: Vec::new(),
        filter: Claim::True,
    };
    for access in accesses {
        add(&mut program.threads[access.thread], access);
    }
    program
}

/// Adds a register to a thread and returns it.
fn register(thread: &mut Thread) -> usize {
    // Printed programs keep addresses in the registers of odd number.
    thread.names.push(format!("X{}", 2 * thread.names.len()));
    thread.registers.push(0);
    thread.names.len() - 1
}

fn add(thread: &mut Thread, access: &Access) {
    let [before, behind] = access.around;
    let reads = access.kind == Kind::Read;
    let read = thread.code.iter().rev().find_map(|i| match *i {
        Instruction::Load { to, .. } => Some(to),
        _ => None,
    });
    let depends = read.filter(|_| !reads);
    let with = |order: EdgeOrder| before == Some(order) || behind == Some(order);
    match (before, depends) {
        (Some(EdgeOrder::Weak), _) => {
            let after_read = matches!(thread.code.last(), Some(Instruction::Load { .. }));
            thread
                .code
                .push(Instruction::Fence(match (after_read, reads) {
                    (true, _) => Fence::Loads,
                    (false, false) => Fence::Stores,
                    (false, true) => Fence::Full,
                }));
        }
        (Some(EdgeOrder::Fence), _) | (Some(EdgeOrder::Data | EdgeOrder::Control), None) => {
            thread.code.push(Instruction::Fence(Fence::Full));
        }
        _ => {}
    }
    if reads {
        let to = register(thread);
        thread.code.push(Instruction::Load {
            to,
            from: access.at.into(),
            acquire: match () {
                () if with(EdgeOrder::Orders) => Acquire::Full,
                () if behind == Some(EdgeOrder::HandsOver) => Acquire::Full,
                () if with(EdgeOrder::LaterOrders) => Acquire::Later,
                () => Acquire::No,
            },
        });
        return;
    }
    let value = register(thread);
    let number = Operand::Number(access.value);
    let compute = |operation, a, b| Instruction::Compute {
        to: value,
        operation,
        a,
        b,
    };
    match (before, depends) {
        (Some(EdgeOrder::Data), Some(read)) => {
            let read = Operand::Register(read);
            thread.code.push(compute(Operation::Xor, read, read));
            let zero = Operand::Register(value);
            thread.code.push(compute(Operation::Add, zero, number));
        }
        (Some(EdgeOrder::Control), Some(on)) => {
            let to = thread.code.len() + 1;
            let zero = false;
            thread.code.push(Instruction::Branch { on, zero, to });
            thread
                .code
                .push(compute(Operation::Add, number, Operand::Number(0)));
        }
        _ => thread
            .code
            .push(compute(Operation::Add, number, Operand::Number(0))),
    }
    let operand = Operand::Register(value);
    if with(EdgeOrder::Swaps) {
        let to = register(thread);
        thread.code.push(Instruction::Atomic {
            to,
            at: access.at.into(),
            change: Change::Set,
            value: operand,
            acquire: true,
            release: true,
            returns: true,
            via: StoreVariant::Text,
        });
    } else {
        thread.code.push(Instruction::Store {
            to: access.at.into(),
            value: operand,
            release: with(EdgeOrder::Orders)
                || with(EdgeOrder::LaterOrders)
                || before == Some(EdgeOrder::HandsOver),
            via: StoreVariant::Text,
        });
    }
}

/// Creates a variation of a family, with a name such as `MP+dmb.sys` that states the orders.
pub(crate) fn create_variation(
    family: &str,
    cycle: &str,
    between: &[EdgeOrder],
) -> Result<Program, String> {
    let edges = cycle.split_whitespace().filter_map(Edge::read);
    let orders = edges.filter(|edge| matches!(edge, Edge::Po { .. }));
    let parts = orders.zip(between).map(|(edge, between)| {
        let (from, to) = edge.ends();
        between.name(from, to)
    });
    let parts: Vec<String> = parts.collect();
    let name = match parts.split_first() {
        _ if between.iter().all(|b| *b == EdgeOrder::Nothing) => family.to_string(),
        Some((first, rest)) if !rest.is_empty() && rest.iter().all(|part| part == first) => {
            format!("{family}+{first}s")
        }
        _ => format!("{family}+{}", parts.join("+")),
    };
    shape(&name, cycle, between)
}

/// Returns all classic shapes without duplicates. Each family has the same order between all accesses. Families with
/// two program-order relations also have variations with one full fence.
///
/// # Panics
/// Never: a test checks that the families' cycles close.
pub fn classic() -> Vec<Program> {
    let everywhere = [
        EdgeOrder::Nothing,
        EdgeOrder::Fence,
        EdgeOrder::Weak,
        EdgeOrder::Data,
        EdgeOrder::Control,
        EdgeOrder::Orders,
        EdgeOrder::LaterOrders,
        EdgeOrder::HandsOver,
        EdgeOrder::Swaps,
    ];
    let mut all: Vec<Program> = Vec::new();
    for (family, cycle) in FAMILIES {
        let count = cycle.matches("Po").count();
        let mut variations: Vec<Vec<EdgeOrder>> = everywhere
            .iter()
            .map(|&between| vec![between; count])
            .collect();
        if count == 2 {
            let one = [EdgeOrder::Fence, EdgeOrder::Nothing];
            variations.extend([one.to_vec(), [one[1], one[0]].to_vec()]);
        }
        for between in variations {
            let program = create_variation(family, cycle, &between)
                .unwrap_or_else(|what| unreachable!("{family}: {what}"));
            let same = |other: &Program| canonical_key(other) == canonical_key(&program);
            if !all.iter().any(same) {
                all.push(program);
            }
        }
    }
    all
}

/// Returns a key that is equal for programs that differ only in the order of threads and in a rotation of locations.
pub(crate) fn canonical_key(program: &Program) -> Vec<Vec<Instruction>> {
    let count = program.locations.len() as Location;
    let turned = |by: Location| {
        let place = |at: Address| match at {
            Address::Direct(at) => Address::Direct((at + by) % count),
            indirect => indirect,
        };
        let instruction = |instruction: &Instruction| match *instruction {
            Instruction::Load { to, from, acquire } => Instruction::Load {
                to,
                from: place(from),
                acquire,
            },
            Instruction::Store {
                to,
                value,
                release,
                via,
            } => Instruction::Store {
                to: place(to),
                value,
                release,
                via,
            },
            Instruction::Atomic {
                to,
                at,
                change,
                value,
                acquire,
                release,
                returns,
                via,
            } => Instruction::Atomic {
                to,
                at: place(at),
                change,
                value,
                acquire,
                release,
                returns,
                via,
            },
            other => other,
        };
        let code = program
            .threads
            .iter()
            .map(|t| t.code.iter().map(instruction).collect());
        let mut code: Vec<Vec<Instruction>> = code.collect();
        code.sort();
        code
    };
    (0..count).map(turned).min().unwrap_or_default()
}

/// Returns the classic shape with this name.
pub fn named(name: &str) -> Option<Program> {
    classic().into_iter().find(|shape| shape.name == name)
}
