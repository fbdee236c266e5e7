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

use crate::executions::{for_each, Event, Execution, Kind};
use crate::program::{
    Acquire, Address, Change, Claim, Fence, Instruction, Location, Observable, Operand, Operation,
    Program, Quantifier, StoreVariant, Thread,
};

/// Named shapes with their cycles. The last relation of a cycle leads back to the first access, and from another thread
/// if there are several.
pub(crate) const FAMILIES: [(&str, &str); 36] = [
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

/// Relation from an access to the next one of a cycle. `external` is true between different threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Edge {
    /// Reads-from: from a write to a read.
    Rf { external: bool },
    /// From-read: from a read to a write.
    Fr { external: bool },
    /// Coherence order: from a write to a write.
    Co { external: bool },
    /// Program order, with the same location or another.
    Po { same: bool, from: Kind, to: Kind },
}

impl Edge {
    /// Parses a relation in the notation of diy; `None` if it is unknown.
    fn parse(word: &str) -> Option<Edge> {
        let external = word.ends_with('e');
        let kind = |letter: u8| match letter {
            b'R' => Some(Kind::Read),
            b'W' => Some(Kind::Write),
            _ => None,
        };
        Some(match word {
            "Rfe" | "Rfi" => Edge::Rf { external },
            "Fre" | "Fri" => Edge::Fr { external },
            "Coe" | "Coi" => Edge::Co { external },
            _ => match *word.strip_prefix("Po")?.as_bytes() {
                [location @ (b'd' | b's'), from, to] => Edge::Po {
                    same: location == b's',
                    from: kind(from)?,
                    to: kind(to)?,
                },
                _ => return None,
            },
        })
    }

    /// Returns true if the relation leads to another thread.
    fn is_external(self) -> bool {
        match self {
            Edge::Rf { external } | Edge::Fr { external } | Edge::Co { external } => external,
            Edge::Po { .. } => false,
        }
    }

    /// Returns the kinds of the first and of the second access.
    fn kinds(self) -> (Kind, Kind) {
        match self {
            Edge::Rf { .. } => (Kind::Write, Kind::Read),
            Edge::Fr { .. } => (Kind::Read, Kind::Write),
            Edge::Co { .. } => (Kind::Write, Kind::Write),
            Edge::Po { from, to, .. } => (from, to),
        }
    }

    /// Returns true if the relation holds from event `a` to event `b`. The caller has checked program order.
    fn holds(self, execution: &Execution, a: usize, b: usize) -> bool {
        match self {
            Edge::Rf { .. } => execution.reads_from(a, b),
            Edge::Fr { .. } => execution.reads_before(a, b),
            Edge::Co { .. } => execution.coherence(a, b),
            Edge::Po { .. } => true,
        }
    }
}

/// Order between two adjacent accesses of a thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EdgeOrder {
    /// Program order alone.
    ProgramOrder,
    /// A full fence.
    Fence,
    /// The weakest fence that orders two accesses of these kinds.
    WeakestFence,
    /// Data dependency of a write on the read; a full fence between other accesses.
    Data,
    /// Control dependency of a write on the read; a full fence between other accesses.
    Control,
    /// Acquiring reads ([`Acquire::Rcsc`]) and releasing writes.
    AcquireRelease,
    /// Acquiring reads that may pass earlier releases ([`Acquire::Rcpc`]), and releasing writes.
    RcpcAcquireRelease,
    /// Acquire if the first access is a read, and release if the second is a write: the minimum for message passing.
    MessagePassing,
    /// Atomic exchanges instead of writes. They acquire and release.
    Exchange,
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
            EdgeOrder::ProgramOrder => "po",
            EdgeOrder::WeakestFence if reads(from) => "dmb.ld",
            EdgeOrder::WeakestFence if !reads(to) => "dmb.st",
            EdgeOrder::Data if reads(from) && !reads(to) => "data",
            EdgeOrder::Control if reads(from) && !reads(to) => "ctrl",
            EdgeOrder::Fence | EdgeOrder::WeakestFence | EdgeOrder::Data | EdgeOrder::Control => {
                "dmb.sy"
            }
            EdgeOrder::AcquireRelease => return letters('a'),
            EdgeOrder::RcpcAcquireRelease => return letters('q'),
            EdgeOrder::MessagePassing => {
                let first = if reads(from) { 'a' } else { 'p' };
                let second = if reads(to) { 'p' } else { 'l' };
                return format!("po{first}{second}");
            }
            EdgeOrder::Exchange => "swp",
        };
        name.to_string()
    }
}

/// An access of a shape.
#[derive(Clone, Copy, Debug)]
struct Access {
    /// Number of the thread.
    thread: usize,
    /// Read or write.
    kind: Kind,
    /// Location accessed.
    at: Location,
    /// Value written by a write; unused for a read.
    value: i64,
    /// Order before and after the access in its thread; `None` at the first or last access of the thread.
    orders: [Option<EdgeOrder>; 2],
}

/// Creates the shape of a cycle. `edge_orders` has one order per program-order relation of the cycle.
///
/// # Errors
/// The cycle has an unknown relation, does not close, or has no execution.
pub fn shape(name: &str, cycle: &str, edge_orders: &[EdgeOrder]) -> Result<Program, String> {
    let words: Vec<&str> = cycle.split_whitespace().collect();
    let edges: Option<Vec<Edge>> = words.iter().map(|word| Edge::parse(word)).collect();
    let edges = edges.ok_or_else(|| format!("`{cycle}` names an unknown relation"))?;
    let mut accesses = accesses(&edges, edge_orders)
        .ok_or_else(|| format!("`{cycle}` is not a cycle of accesses of threads"))?;
    // The cycle fixes the coherence order. Values increase in that order.
    let ranks = |execution: &Execution, events: &[usize]| -> Vec<i64> {
        let ranks = events.iter().map(|&event| execution.rank[event] as i64 + 1);
        ranks.collect()
    };
    let mut value_lists = Vec::new();
    for_each_with_cycle(
        &program(name, &accesses),
        &edges,
        &accesses,
        |execution, events| {
            value_lists.push(ranks(execution, events));
        },
    )?;
    let Some(values) = value_lists.first() else {
        return Err(format!("no execution has the cycle `{cycle}`"));
    };
    for (access, value) in accesses.iter_mut().zip(values) {
        if access.kind == Kind::Write {
            access.value = *value;
        }
    }
    let mut program = program(name, &accesses);
    let mut claims = BTreeSet::new();
    let observables = observed_by_condition(&program, &accesses);
    for_each_with_cycle(&program, &edges, &accesses, |execution, _| {
        let Some(outcome) = execution.outcome(&program) else {
            return;
        };
        let values = observables
            .iter()
            .map(|observed| (observed.clone(), outcome.0[observed]));
        claims.insert(values.collect::<Vec<_>>());
    })?;
    let conjunction = |claim: Vec<(Observable, i64)>| {
        let parts = claim
            .into_iter()
            .map(|(observed, value)| Claim::Equals(observed, value));
        parts.reduce(|a, b| Claim::And(Box::new(a), Box::new(b)))
    };
    let disjunction = claims.into_iter().filter_map(conjunction);
    let disjunction = disjunction.reduce(|a, b| Claim::Or(Box::new(a), Box::new(b)));
    program.claim = disjunction.unwrap_or(Claim::True);
    // Old values of exchanges are not part of the cycle, but models restrict them too.
    for (number, thread) in program.threads.iter().enumerate() {
        for instruction in &thread.code {
            if let Instruction::Atomic { to, .. } = *instruction {
                program.listed.push(Observable::Register(number, to));
            }
        }
    }
    Ok(program)
}

/// Returns the accesses of a cycle, or `None` if the cycle does not close.
fn accesses(edges: &[Edge], edge_orders: &[EdgeOrder]) -> Option<Vec<Access>> {
    let changes_location = |edge: &&Edge| matches!(edge, Edge::Po { same: false, .. });
    let locations = edges.iter().filter(changes_location).count().max(1);
    let (last, earlier) = edges.split_last()?;
    let closes = last.is_external() || earlier.iter().all(|edge| !edge.is_external());
    let orders = edges.iter().filter(|edge| matches!(edge, Edge::Po { .. }));
    if !closes || matches!(last, Edge::Po { .. }) || orders.count() != edge_orders.len() {
        return None;
    }
    let mut edge_orders = edge_orders.iter();
    let mut accesses: Vec<Access> = Vec::new();
    let (mut thread, mut location) = (0, 0);
    for (number, edge) in edges.iter().enumerate() {
        let previous = edges[(number + edges.len() - 1) % edges.len()];
        let kind = edge.kinds().0;
        if previous.kinds().1 != kind {
            return None;
        }
        let order_before = accesses.last().and_then(|access| access.orders[1]);
        let order_after = match edge {
            Edge::Po { .. } => edge_orders.next().copied(),
            _ => None,
        };
        accesses.push(Access {
            thread,
            kind,
            at: location,
            value: number as i64 + 1,
            orders: [order_before, order_after],
        });
        thread += usize::from(edge.is_external());
        location = (location + Location::from(changes_location(&edge))) % locations as Location;
    }
    (location == 0).then_some(accesses)
}

/// Calls `visit` with the candidate executions that have the cycle, and with the events of its accesses.
fn for_each_with_cycle(
    program: &Program,
    edges: &[Edge],
    accesses: &[Access],
    mut visit: impl FnMut(&Execution, &[usize]),
) -> Result<(), String> {
    for_each(program, &mut |execution| {
        // Accesses and events are in the same order. The event of an exchange is its write.
        let mut event_indices = Vec::new();
        for access in accesses {
            let start = event_indices.last().map_or(0, |last| last + 1);
            let events = execution.events.iter().enumerate().skip(start);
            let is_event = |(_, event): &(usize, &Event)| {
                (event.thread, event.kind, event.at) == (access.thread, access.kind, access.at)
                    && !(event.atomic && event.kind == Kind::Read)
            };
            let mut events = events.filter(is_event);
            match events.next() {
                Some((event, _)) => event_indices.push(event),
                None => return,
            }
        }
        let holds = |number: usize| {
            let next = (number + 1) % edges.len();
            edges[number].holds(execution, event_indices[number], event_indices[next])
        };
        if (0..edges.len()).all(holds) {
            visit(execution, &event_indices);
        }
    })
}

/// Returns the registers and locations of the condition: all values read, and all locations with several writes.
fn observed_by_condition(program: &Program, accesses: &[Access]) -> Vec<Observable> {
    let mut observed = Vec::new();
    for (number, thread) in program.threads.iter().enumerate() {
        for instruction in &thread.code {
            if let Instruction::Load { to, .. } = *instruction {
                observed.push(Observable::Register(number, to));
            }
        }
    }
    for location in 0..program.locations.len() as Location {
        let writes = accesses
            .iter()
            .filter(|access| access.kind == Kind::Write && access.at == location);
        if writes.count() > 1 {
            observed.push(Observable::Location(location));
        }
    }
    observed
}

/// Returns the program of the accesses, without its condition.
fn program(name: &str, accesses: &[Access]) -> Program {
    let threads = accesses
        .iter()
        .map(|access| access.thread + 1)
        .max()
        .unwrap_or(0);
    let locations = accesses
        .iter()
        .map(|access| usize::from(access.at) + 1)
        .max();
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
        add_access(&mut program.threads[access.thread], access);
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

/// Adds an access to a thread, with the fence or the dependency before it.
fn add_access(thread: &mut Thread, access: &Access) {
    let [order_before, order_after] = access.orders;
    let reads = access.kind == Kind::Read;
    let last_read = thread.code.iter().rev().find_map(|i| match *i {
        Instruction::Load { to, .. } => Some(to),
        _ => None,
    });
    let dependency = last_read.filter(|_| !reads);
    let has_order = |order: EdgeOrder| order_before == Some(order) || order_after == Some(order);
    match (order_before, dependency) {
        (Some(EdgeOrder::WeakestFence), _) => {
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
        let is_rcsc =
            has_order(EdgeOrder::AcquireRelease) || order_after == Some(EdgeOrder::MessagePassing);
        let acquire = match has_order(EdgeOrder::RcpcAcquireRelease) {
            _ if is_rcsc => Acquire::Rcsc,
            true => Acquire::Rcpc,
            false => Acquire::None,
        };
        thread.code.push(Instruction::Load {
            to,
            from: access.at.into(),
            acquire,
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
    match (order_before, dependency) {
        (Some(EdgeOrder::Data), Some(last_read)) => {
            let last_read = Operand::Register(last_read);
            thread
                .code
                .push(compute(Operation::Xor, last_read, last_read));
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
    if has_order(EdgeOrder::Exchange) {
        let to = register(thread);
        thread.code.push(Instruction::Atomic {
            to,
            at: access.at.into(),
            change: Change::Exchange,
            value: operand,
            acquire: true,
            release: true,
            returns: true,
            via: StoreVariant::ProtocolDefault,
        });
    } else {
        thread.code.push(Instruction::Store {
            to: access.at.into(),
            value: operand,
            release: has_order(EdgeOrder::AcquireRelease)
                || has_order(EdgeOrder::RcpcAcquireRelease)
                || order_before == Some(EdgeOrder::MessagePassing),
            via: StoreVariant::ProtocolDefault,
        });
    }
}

/// Creates a variation of a family, with a name such as `MP+dmb.sys` that states the orders.
pub(crate) fn create_variation(
    family: &str,
    cycle: &str,
    edge_orders: &[EdgeOrder],
) -> Result<Program, String> {
    let edges = cycle.split_whitespace().filter_map(Edge::parse);
    let orders = edges.filter(|edge| matches!(edge, Edge::Po { .. }));
    let parts = orders.zip(edge_orders).map(|(edge, order)| {
        let (from, to) = edge.kinds();
        order.name(from, to)
    });
    let parts: Vec<String> = parts.collect();
    let name = match parts.split_first() {
        _ if edge_orders
            .iter()
            .all(|order| *order == EdgeOrder::ProgramOrder) =>
        {
            family.to_string()
        }
        Some((first, rest)) if !rest.is_empty() && rest.iter().all(|part| part == first) => {
            format!("{family}+{first}s")
        }
        _ => format!("{family}+{}", parts.join("+")),
    };
    shape(&name, cycle, edge_orders)
}

/// Returns all classic shapes without duplicates. Each family has the same order between all accesses. Families with
/// two program-order relations also have variations with one full fence.
///
/// # Panics
/// Never: a test checks that the families' cycles close.
pub fn classic() -> Vec<Program> {
    // Orders that a variation has between all accesses of a thread.
    let uniform_orders = [
        EdgeOrder::ProgramOrder,
        EdgeOrder::Fence,
        EdgeOrder::WeakestFence,
        EdgeOrder::Data,
        EdgeOrder::Control,
        EdgeOrder::AcquireRelease,
        EdgeOrder::RcpcAcquireRelease,
        EdgeOrder::MessagePassing,
        EdgeOrder::Exchange,
    ];
    let mut programs: Vec<Program> = Vec::new();
    for (family, cycle) in FAMILIES {
        let count = cycle.matches("Po").count();
        let mut variations: Vec<Vec<EdgeOrder>> = uniform_orders
            .iter()
            .map(|&order| vec![order; count])
            .collect();
        if count == 2 {
            let one_fence = [EdgeOrder::Fence, EdgeOrder::ProgramOrder];
            variations.extend([one_fence.to_vec(), [one_fence[1], one_fence[0]].to_vec()]);
        }
        for edge_orders in variations {
            let program = create_variation(family, cycle, &edge_orders)
                .unwrap_or_else(|error| unreachable!("{family}: {error}"));
            let is_same = |existing: &Program| canonical_key(existing) == canonical_key(&program);
            if !programs.iter().any(is_same) {
                programs.push(program);
            }
        }
    }
    programs
}

/// Returns a key that is equal for programs that differ only in the order of threads and in a rotation of locations.
pub(crate) fn canonical_key(program: &Program) -> Vec<Vec<Instruction>> {
    let count = program.locations.len() as Location;
    let rotate = |offset: Location| {
        let rotate_location = |at: Address| match at {
            Address::Direct(at) => Address::Direct((at + offset) % count),
            indirect => indirect,
        };
        let instruction = |instruction: &Instruction| match *instruction {
            Instruction::Load { to, from, acquire } => Instruction::Load {
                to,
                from: rotate_location(from),
                acquire,
            },
            Instruction::Store {
                to,
                value,
                release,
                via,
            } => Instruction::Store {
                to: rotate_location(to),
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
                at: rotate_location(at),
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
            .map(|thread| thread.code.iter().map(instruction).collect());
        let mut code: Vec<Vec<Instruction>> = code.collect();
        code.sort();
        code
    };
    (0..count).map(rotate).min().unwrap_or_default()
}

/// Returns the classic shape with this name.
pub fn named(name: &str) -> Option<Program> {
    classic().into_iter().find(|shape| shape.name == name)
}
