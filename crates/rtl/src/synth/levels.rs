//! The longest paths of a netlist, in levels of logic.
//!
//! A path begins at the output of a register, at that of a memory block, or at a port of the design, which is taken for
//! a register's; it ends at an input of a register or a memory, or at a port. Each LUT on it is a level, and so is each
//! cell of a carry chain, which is four bits long. The muxes that join the LUTs of one slice are none.
//! A memory made of LUTs is a level when it is read.

use super::netlist::{Netlist, Part};
use super::primitives::{addresses, is_clock, Kind};

/// Where a path begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// At a register's output, or a port.
    Register,
    /// At the output of a memory block that has no register there.
    Memory,
}

/// The longest path to an end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// Where it begins.
    pub start: Start,
    /// Levels of logic on it.
    pub levels: u32,
    /// The net it begins at.
    pub from: String,
    /// Where it ends: the instance, and what the register there is called.
    pub to: String,
    /// The module of the source that it ends in.
    pub module: String,
    /// The primitives on it, in order, which are not free.
    pub through: Vec<String>,
}

/// The longest way to a net from one kind of start: its levels, and the primitive and net it came by.
#[derive(Clone, Copy)]
struct Reached {
    levels: u32,
    by: Option<(usize, usize)>,
}

/// Every end's longest path from each kind of start that has one, the longest first; equal ones in a fixed order.
/// Of ends that differ in numbers only (bits, instances of a generate loop) there is one.
///
/// # Errors
/// If logic goes round in a circle without a register; the error names a net of it.
pub fn paths(netlist: &Netlist) -> Result<Vec<Path>, String> {
    let nets = netlist.names.len();
    let mut drivers = vec![usize::MAX; nets];
    for (at, part) in netlist.parts.iter().enumerate() {
        for pin in part.pins.iter().filter(|pin| pin.output) {
            drivers[pin.net] = at;
        }
    }
    let mut reached = [vec![None; nets], vec![None; nets]];
    for &(net, _) in &netlist.inputs {
        reached[0][net] = Some(Reached {
            levels: 0,
            by: None,
        });
    }
    for at in order(netlist, &drivers)? {
        reach(&netlist.parts[at], at, &mut reached);
    }

    let mut found: Vec<Path> = Vec::new();
    let mut consider = |net: usize, name: String, module: &str| {
        for (start, reached) in [Start::Register, Start::Memory].into_iter().zip(&reached) {
            if let Some(last) = reached[net] {
                let (from, through) = trace(netlist, reached, net);
                found.push(Path {
                    start,
                    levels: last.levels,
                    from,
                    to: name.clone(),
                    module: module.to_string(),
                    through,
                });
            }
        }
    };
    for part in &netlist.parts {
        if matches!(part.primitive.kind, Kind::Logic(_)) {
            continue;
        }
        let instance = &netlist.instances[part.instance];
        let output = part.pins.iter().find(|pin| pin.output);
        let own = output.map_or_else(
            || format!("{}{}", dotted(&instance.path), part.kind),
            |pin| name(netlist, pin.net),
        );
        for pin in part
            .pins
            .iter()
            .filter(|pin| !pin.output && !is_clock(&pin.name))
        {
            consider(
                pin.net,
                format!("{own} ({}.{})", part.kind, pin.name),
                &instance.module,
            );
        }
    }
    for (net, name) in &netlist.outputs {
        consider(*net, name.clone(), &netlist.instances[0].module);
    }
    found.sort_by(|a, b| {
        (b.levels, &a.to, &a.from, a.start == Start::Memory).cmp(&(
            a.levels,
            &b.to,
            &b.from,
            b.start == Start::Memory,
        ))
    });
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|path| {
        seen.insert((
            path.start == Start::Memory,
            path.module.clone(),
            without_numbers(&path.to),
        ))
    });
    Ok(found)
}

/// All parts, each after those whose outputs reach its own at once.
fn order(netlist: &Netlist, drivers: &[usize]) -> Result<Vec<usize>, String> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        No,
        Open,
        Done,
    }
    let mut visits = vec![Visit::No; netlist.parts.len()];
    let mut order = Vec::with_capacity(netlist.parts.len());
    for root in 0..netlist.parts.len() {
        if visits[root] != Visit::No {
            continue;
        }
        let mut stack = vec![(root, 0)];
        visits[root] = Visit::Open;
        while let Some((at, next)) = stack.last_mut() {
            let part = &netlist.parts[*at];
            let Some(pin) = part.pins.get(*next) else {
                visits[*at] = Visit::Done;
                order.push(*at);
                stack.pop();
                continue;
            };
            *next += 1;
            let passes = part
                .pins
                .iter()
                .any(|out| out.output && passes(part, &pin.name, &out.name));
            if pin.output || !passes || drivers[pin.net] == usize::MAX {
                continue;
            }
            let before = drivers[pin.net];
            match visits[before] {
                Visit::No => {
                    visits[before] = Visit::Open;
                    stack.push((before, 0));
                }
                Visit::Open => {
                    return Err(format!(
                        "logic goes round in a circle at `{}`",
                        name(netlist, pin.net)
                    ))
                }
                Visit::Done => {}
            }
        }
    }
    Ok(order)
}

/// Whether what is at a pin can be seen at an output in the same cycle.
fn passes(part: &Part, pin: &str, output: &str) -> bool {
    match part.primitive.kind {
        Kind::Logic(_) => true,
        Kind::Distributed => addresses(pin, output),
        Kind::Register | Kind::Memory => false,
    }
}

/// Carries what has reached a part's inputs to its outputs.
fn reach(part: &Part, at: usize, reached: &mut [Vec<Option<Reached>>; 2]) {
    for (start, reached) in [Start::Register, Start::Memory].into_iter().zip(reached) {
        let own = match part.primitive.kind {
            Kind::Logic(_) => None,
            // What a memory of LUTs holds is looked up even if its address stands still.
            Kind::Distributed => (start == Start::Register).then_some(1),
            Kind::Register => (start == Start::Register).then_some(0),
            Kind::Memory => ((start == Start::Register) == part.registered).then_some(0),
        };
        let own = own.map(|levels| Reached { levels, by: None });
        let cost = match part.primitive.kind {
            Kind::Logic(levels) => levels,
            _ => 1,
        };
        for out in part.pins.iter().filter(|pin| pin.output) {
            let through = part
                .pins
                .iter()
                .filter(|pin| !pin.output && passes(part, &pin.name, &out.name))
                .filter_map(|pin| {
                    Some(Reached {
                        levels: reached[pin.net]?.levels + cost,
                        by: Some((at, pin.net)),
                    })
                })
                .fold(None::<Reached>, |best, next| match best {
                    Some(best) if best.levels >= next.levels => Some(best),
                    _ => Some(next),
                });
            reached[out.net] = match (own, through) {
                (Some(own), Some(through)) if through.levels > own.levels => Some(through),
                (Some(own), _) => Some(own),
                (None, through) => through,
            };
        }
    }
}

/// Where a path to a net begins, and what it goes through.
fn trace(netlist: &Netlist, reached: &[Option<Reached>], mut net: usize) -> (String, Vec<String>) {
    let mut through = Vec::new();
    while let Some(Reached {
        by: Some((part, from)),
        ..
    }) = reached[net]
    {
        let part = &netlist.parts[part];
        if part.primitive.kind != Kind::Logic(0) {
            through.push(part.kind.clone());
        }
        net = from;
    }
    through.reverse();
    (name(netlist, net), through)
}

/// A net's name with the instance it is in.
fn name(netlist: &Netlist, net: usize) -> String {
    match &netlist.names[net] {
        Some((instance, name)) => {
            format!("{}{name}", dotted(&netlist.instances[*instance].path))
        }
        None => format!("net {net}"),
    }
}

fn dotted(path: &str) -> String {
    match path.is_empty() {
        true => String::new(),
        false => format!("{path}."),
    }
}

/// A name with what stands in brackets left out.
fn without_numbers(name: &str) -> String {
    let mut depth = 0u32;
    name.chars()
        .filter(|sign| match sign {
            '[' => {
                depth += 1;
                false
            }
            ']' => {
                depth = depth.saturating_sub(1);
                false
            }
            _ => depth == 0,
        })
        .collect()
}
