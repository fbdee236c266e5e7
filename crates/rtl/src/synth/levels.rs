//! Longest paths of a netlist, in levels of logic.
//!
//! A path starts at the output of a register or of a memory block, or at a port of the design, which counts as a
//! register. It ends at an input of a register or a memory, or at a port. Each LUT is one level, and so is each cell of
//! a carry chain, which is four bits long. The muxes that combine the LUTs of one slice have no level.
//! Reading a memory made of LUTs is one level.

use super::netlist::{Netlist, Part};
use super::primitives::{addresses, is_clock, Kind};
use std::collections::BTreeSet;

/// Start of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Output of a register, or a port.
    Register,
    /// Output of a memory block without an output register.
    Memory,
}

/// All kinds of starts.
const STARTS: [Start; 2] = [Start::Register, Start::Memory];

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
struct LongestPath {
    /// Number of levels of logic.
    levels: u32,
    /// Primitive and net before the last one; `None` at the start of the path.
    predecessor: Option<(usize, usize)>,
}

/// Returns the longest path to every endpoint for each kind of start, longest first, in a deterministic order.
/// Endpoints that differ only in indices (bits, instances of a generate loop) are reported once.
///
/// # Errors
/// The logic contains a combinational loop; the error names a net of it.
pub fn paths(netlist: &Netlist) -> Result<Vec<Path>, String> {
    let reached = longest_paths_to_nets(netlist)?;
    let mut longest: Vec<Path> = Vec::new();
    for endpoint in endpoints(netlist) {
        for (start, reached) in STARTS.into_iter().zip(&reached) {
            if let Some(end) = reached[endpoint.net] {
                let (from, through) = trace(netlist, reached, endpoint.net);
                longest.push(Path {
                    start,
                    levels: end.levels,
                    from,
                    to: endpoint.name.clone(),
                    module: endpoint.module.to_string(),
                    through,
                });
            }
        }
    }
    longest.sort_by(|a, b| {
        (b.levels, &a.to, &a.from, a.start == Start::Memory).cmp(&(
            a.levels,
            &b.to,
            &b.from,
            b.start == Start::Memory,
        ))
    });
    let mut reported = BTreeSet::new();
    longest.retain(|path| {
        reported.insert((
            path.start == Start::Memory,
            path.module.clone(),
            without_numbers(&path.to),
        ))
    });
    Ok(longest)
}

/// Returns the longest path to each net, by kind of start in the order of [`STARTS`]; `None` for nets that none
/// reaches.
///
/// # Errors
/// The logic contains a combinational loop.
fn longest_paths_to_nets(netlist: &Netlist) -> Result<[Vec<Option<LongestPath>>; 2], String> {
    let nets = netlist.names.len();
    let mut drivers = vec![usize::MAX; nets];
    for (part_index, part) in netlist.parts.iter().enumerate() {
        for pin in part.pins.iter().filter(|pin| pin.output) {
            drivers[pin.net] = part_index;
        }
    }
    let mut reached = [vec![None; nets], vec![None; nets]];
    // The input ports count as registers.
    for &(net, _) in &netlist.inputs {
        reached[0][net] = Some(LongestPath {
            levels: 0,
            predecessor: None,
        });
    }
    for part_index in topological_order(netlist, &drivers)? {
        propagate_levels(&netlist.parts[part_index], part_index, &mut reached);
    }
    Ok(reached)
}

/// Endpoint of paths: an input of a register or a memory, or an output port.
struct Endpoint<'a> {
    /// Net at the endpoint.
    net: usize,
    /// Hierarchical name of the endpoint.
    name: String,
    /// Module of the source that contains it.
    module: &'a str,
}

/// Returns all endpoints of a netlist.
fn endpoints(netlist: &Netlist) -> Vec<Endpoint<'_>> {
    let mut endpoints = Vec::new();
    for part in &netlist.parts {
        if matches!(part.primitive.kind, Kind::Logic(_)) {
            continue;
        }
        let instance = &netlist.instances[part.instance];
        let output = part.pins.iter().find(|pin| pin.output);
        let register = output.map_or_else(
            || format!("{}{}", dotted(&instance.path), part.kind),
            |pin| net_name(netlist, pin.net),
        );
        let data_inputs = part
            .pins
            .iter()
            .filter(|pin| !pin.output && !is_clock(&pin.name));
        endpoints.extend(data_inputs.map(|pin| Endpoint {
            net: pin.net,
            name: format!("{register} ({}.{})", part.kind, pin.name),
            module: &instance.module,
        }));
    }
    endpoints.extend(netlist.outputs.iter().map(|(net, name)| Endpoint {
        net: *net,
        name: name.clone(),
        module: &netlist.instances[0].module,
    }));
    endpoints
}

/// Returns the indices of all parts in topological order of combinational paths. `drivers` has the part that drives
/// each net, or `usize::MAX`.
///
/// # Errors
/// The logic contains a combinational loop.
fn topological_order(netlist: &Netlist, drivers: &[usize]) -> Result<Vec<usize>, String> {
    /// Progress of the depth-first search at a part.
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        /// Not reached yet.
        No,
        /// On the stack. An input driven by such a part closes a loop.
        Open,
        /// Emitted, with all parts that it depends on.
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
        while let Some((part_index, next)) = stack.last_mut() {
            let part = &netlist.parts[*part_index];
            let Some(pin) = part.pins.get(*next) else {
                visits[*part_index] = Visit::Done;
                order.push(*part_index);
                stack.pop();
                continue;
            };
            *next += 1;
            let affects_output = part
                .pins
                .iter()
                .any(|out| out.output && affects_output(part, &pin.name, &out.name));
            if pin.output || !affects_output || drivers[pin.net] == usize::MAX {
                continue;
            }
            let driver = drivers[pin.net];
            match visits[driver] {
                Visit::No => {
                    visits[driver] = Visit::Open;
                    stack.push((driver, 0));
                }
                Visit::Open => {
                    return Err(format!(
                        "combinational loop at `{}`",
                        net_name(netlist, pin.net)
                    ))
                }
                Visit::Done => {}
            }
        }
    }
    Ok(order)
}

/// True if a pin affects an output combinationally.
fn affects_output(part: &Part, pin: &str, output: &str) -> bool {
    match part.primitive.kind {
        Kind::Logic(_) => true,
        Kind::Distributed => addresses(pin, output),
        Kind::Register | Kind::Memory => false,
    }
}

/// Propagates path lengths from a part's inputs to its outputs.
fn propagate_levels(part: &Part, part_index: usize, reached: &mut [Vec<Option<LongestPath>>; 2]) {
    for (start, reached) in STARTS.into_iter().zip(reached) {
        let start_path = match part.primitive.kind {
            Kind::Logic(_) => None,
            // A memory of LUTs is read combinationally even if its address is constant.
            Kind::Distributed => (start == Start::Register).then_some(1),
            Kind::Register => (start == Start::Register).then_some(0),
            Kind::Memory => ((start == Start::Register) == part.registered).then_some(0),
        };
        let start_path = start_path.map(|levels| LongestPath {
            levels,
            predecessor: None,
        });
        // Levels of the part itself.
        let own_levels = match part.primitive.kind {
            Kind::Logic(levels) => levels,
            _ => 1,
        };
        for output in part.pins.iter().filter(|pin| pin.output) {
            let longest_input = part
                .pins
                .iter()
                .filter(|pin| !pin.output && affects_output(part, &pin.name, &output.name))
                .filter_map(|pin| {
                    Some(LongestPath {
                        levels: reached[pin.net]?.levels + own_levels,
                        predecessor: Some((part_index, pin.net)),
                    })
                })
                .fold(None::<LongestPath>, |best, next| match best {
                    Some(best) if best.levels >= next.levels => Some(best),
                    _ => Some(next),
                });
            reached[output.net] = match (start_path, longest_input) {
                (Some(start_path), Some(longest_input))
                    if longest_input.levels > start_path.levels =>
                {
                    Some(longest_input)
                }
                (Some(start_path), _) => Some(start_path),
                (None, longest_input) => longest_input,
            };
        }
    }
}

/// Returns the start of the longest path to a net, and the primitives on it.
fn trace(
    netlist: &Netlist,
    reached: &[Option<LongestPath>],
    mut net: usize,
) -> (String, Vec<String>) {
    let mut through = Vec::new();
    while let Some(LongestPath {
        predecessor: Some((part, from)),
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
    (net_name(netlist, net), through)
}

/// Returns the hierarchical name of a net.
fn net_name(netlist: &Netlist, net: usize) -> String {
    match &netlist.names[net] {
        Some((instance, name)) => {
            format!("{}{name}", dotted(&netlist.instances[*instance].path))
        }
        None => format!("net {net}"),
    }
}

/// Returns a path followed by a dot; the empty text for the top.
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
        .filter(|character| match character {
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
