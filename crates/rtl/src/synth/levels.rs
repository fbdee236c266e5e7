//! Longest paths of a netlist, in levels of logic.
//!
//! A path starts at the output of a register or of a memory block, or at a port of the design, which counts as a
//! register. It ends at an input of a register or a memory, or at a port. Each LUT is one level, and so is each cell of
//! a carry chain, which is four bits long. The muxes that combine the LUTs of one slice have no level.
//! Reading a memory made of LUTs is one level.

use super::netlist::{Netlist, Part};
use super::primitives::{addresses, is_clock, Kind};

/// Start of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Output of a register, or a port.
    Register,
    /// Output of a memory block without an output register.
    Memory,
}

/// A longest path to an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// Start of the path.
    pub start: Start,
    /// Number of logic levels.
    pub levels: u32,
    /// Net at the start.
    pub from: String,
    /// Endpoint: the instance and the name of its register.
    pub to: String,
    /// Module of the source that contains the endpoint.
    pub module: String,
    /// Primitives on the path with a level, in order.
    pub through: Vec<String>,
}

/// Longest path to a net from one kind of start: its levels, and the preceding primitive and net.
#[derive(Clone, Copy)]
struct Reached {
    levels: u32,
    by: Option<(usize, usize)>,
}

/// Returns the longest path to every endpoint for each kind of start, longest first, in a deterministic order.
/// Endpoints that differ only in indices (bits, instances of a generate loop) are reported once.
///
/// # Errors
/// The logic contains a combinational loop; the error names a net of it.
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

/// Returns all parts in topological order of combinational paths.
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
                        "combinational loop at `{}`",
                        name(netlist, pin.net)
                    ))
                }
                Visit::Done => {}
            }
        }
    }
    Ok(order)
}

/// True if a pin affects an output combinationally.
fn passes(part: &Part, pin: &str, output: &str) -> bool {
    match part.primitive.kind {
        Kind::Logic(_) => true,
        Kind::Distributed => addresses(pin, output),
        Kind::Register | Kind::Memory => false,
    }
}

/// Propagates path lengths from a part's inputs to its outputs.
fn reach(part: &Part, at: usize, reached: &mut [Vec<Option<Reached>>; 2]) {
    for (start, reached) in [Start::Register, Start::Memory].into_iter().zip(reached) {
        let own = match part.primitive.kind {
            Kind::Logic(_) => None,
            // A memory of LUTs is read combinationally even if its address is constant.
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

/// Returns the start of the longest path to a net, and the primitives on it.
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

/// Returns the hierarchical name of a net.
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

/// Removes bracketed indices from a name.
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
