//! Sizes and paths of small hand-written netlists, whose results can be verified on paper.

use cohkit_rtl::synth::levels::{paths, Path, Start};
use cohkit_rtl::synth::netlist::{Netlist, Size};
use serde_json::{json, Value};

/// Returns a cell of a netlist in the format of Yosys, with one net per pin.
fn cell(kind: &str, inputs: &[(&str, usize)], outputs: &[(&str, usize)]) -> Value {
    let mut directions = serde_json::Map::new();
    let mut connections = serde_json::Map::new();
    for (pins, direction) in [(inputs, "input"), (outputs, "output")] {
        for &(pin, net) in pins {
            directions.insert(pin.into(), json!(direction));
            connections.insert(pin.into(), json!([net]));
        }
    }
    json!({ "type": kind, "port_directions": directions, "connections": connections })
}

/// Returns a register with the clock on net 2.
fn register(data: usize, output: usize) -> Value {
    cell("FDRE", &[("C", 2), ("D", data)], &[("Q", output)])
}

/// Returns a LUT with these input nets.
fn lut(inputs: &[usize], output: usize) -> Value {
    let pins: Vec<(String, usize)> = inputs
        .iter()
        .enumerate()
        .map(|(index, &net)| (format!("I{index}"), net))
        .collect();
    let pins: Vec<(&str, usize)> = pins.iter().map(|(pin, net)| (pin.as_str(), *net)).collect();
    cell(&format!("LUT{}", inputs.len()), &pins, &[("O", output)])
}

/// A design of one module with these cells and net names; the first two lists are its ports.
fn design(
    inputs: &[usize],
    outputs: &[usize],
    cells: &[Value],
    names: &[(&str, usize)],
) -> Netlist {
    let cells: serde_json::Map<String, Value> = cells
        .iter()
        .enumerate()
        .map(|(index, cell)| (format!("cell{index}"), cell.clone()))
        .collect();
    let names: serde_json::Map<String, Value> = names
        .iter()
        .map(|(name, net)| (name.to_string(), json!({ "hide_name": 0, "bits": [net] })))
        .collect();
    let text = json!({ "modules": { "top": {
        "ports": {
            "in": { "direction": "input", "bits": inputs },
            "out": { "direction": "output", "bits": outputs },
        },
        "cells": cells,
        "netnames": names,
    } } });
    Netlist::read(&text.to_string(), "top").expect("valid netlist")
}

/// Returns the levels of the longest paths from one kind of start, longest first.
fn levels(netlist: &Netlist, start: Start) -> Vec<u32> {
    let paths = paths(netlist).expect("netlist without combinational loops");
    paths
        .iter()
        .filter(|path| path.start == start)
        .map(|path| path.levels)
        .collect()
}

/// A path has the levels, ends, module and cells of the longest of several paths.
#[test]
fn longest_path_is_reported() {
    // There are paths of one and of three levels from a_q to b_q.
    let netlist = design(
        &[2],
        &[],
        &[
            register(20, 10),
            lut(&[10], 11),
            lut(&[11], 12),
            lut(&[10, 12], 13),
            register(13, 14),
        ],
        &[("a_q", 10), ("b_q", 14)],
    );
    assert_eq!(
        paths(&netlist).expect("netlist without combinational loops"),
        [Path {
            start: Start::Register,
            levels: 3,
            from: "a_q".into(),
            to: "b_q (FDRE.D)".into(),
            module: "top".into(),
            through: ["LUT1", "LUT1", "LUT2"].map(String::from).into(),
        }]
    );
    assert_eq!(
        netlist.size(),
        Size {
            lut: 3,
            ff: 2,
            ..Size::default()
        }
    );
}

/// A carry chain and two LUTs are four levels; the multiplexer behind them is none.
#[test]
fn carry_cells_count_as_levels_and_slice_muxes_do_not() {
    let netlist = design(
        &[2],
        &[],
        &[
            register(20, 10),
            lut(&[10], 11),
            cell("CARRY4", &[("S", 11)], &[("CO", 12)]),
            cell("CARRY4", &[("CI", 12)], &[("O", 13)]),
            lut(&[13], 14),
            cell("MUXF7", &[("I0", 14), ("S", 10)], &[("O", 15)]),
            register(15, 16),
        ],
        &[],
    );
    assert_eq!(levels(&netlist, Start::Register), [4]);
}

/// Paths from a memory block without output register are listed apart from those of registers.
#[test]
fn memory_block_starts_its_own_kind_of_path() {
    let block = |registered: &str| {
        let mut block = cell("RAMB18E2", &[("ADDRARDADDR", 10)], &[("DOUTADOUT", 11)]);
        block["parameters"] = json!({ "DOA_REG": registered, "DOB_REG": 1 });
        block
    };
    let between_registers = |block| {
        let cells = [
            register(20, 10),
            block,
            lut(&[11, 10], 12),
            lut(&[12], 13),
            register(13, 14),
        ];
        design(&[2], &[], &cells, &[("end_q", 14)])
    };
    // The address is an endpoint too, and the second LUT is also reached from a register.
    let netlist = between_registers(block("00000000"));
    assert_eq!(levels(&netlist, Start::Memory), [2]);
    assert_eq!(levels(&netlist, Start::Register), [2, 0]);
    assert_eq!(netlist.size().bram36(), 0.5);
    // With an output register, the memory block counts as a register.
    assert!(levels(&between_registers(block("00000001")), Start::Memory).is_empty());
}

/// A path through the read port of a LUT memory continues; at its write ports, paths end.
#[test]
fn lut_memory_is_a_level_for_reads_and_an_endpoint_for_writes() {
    let netlist = design(
        &[2],
        &[],
        &[
            register(20, 10),
            lut(&[10], 11),
            cell(
                "RAM32M16",
                &[
                    ("ADDRA", 11),
                    ("ADDRH", 15),
                    ("DIA", 11),
                    ("WE", 10),
                    ("WCLK", 2),
                ],
                &[("DOA", 12)],
            ),
            lut(&[12], 13),
            register(13, 14),
            // A write address does not affect the read data of another port.
            lut(&[11], 15),
        ],
        &[("words", 12), ("end_q", 14)],
    );
    let paths = paths(&netlist).expect("netlist without combinational loops");
    let to: Vec<(&str, u32)> = paths
        .iter()
        .map(|path| (path.to.as_str(), path.levels))
        .collect();
    assert_eq!(
        to,
        [
            ("end_q (FDRE.D)", 3),
            ("words (RAM32M16.ADDRH)", 2),
            ("words (RAM32M16.ADDRA)", 1),
            ("words (RAM32M16.DIA)", 1),
            ("words (RAM32M16.WE)", 0),
        ]
    );
    assert_eq!(netlist.size().lut, 11);
}

/// A path between ports of the top module counts as one between registers.
#[test]
fn ports_count_as_registers() {
    let netlist = design(&[3], &[5], &[lut(&[3], 4), lut(&[4], 5)], &[]);
    assert_eq!(levels(&netlist, Start::Register), [2]);
}

/// Cells of a submodule are counted for each of its instances, and paths lead through them.
#[test]
fn submodules_are_traversed_and_counted_by_name() {
    // Two instances of one specialised module, which share a definition.
    let text = json!({ "modules": {
        "top": {
            "ports": { "in": { "direction": "input", "bits": [2, 3] } },
            "cells": {
                "gen[0].u_half": { "type": "half$top.gen[0]", "connections": { "clk": [2], "d": [3], "q": [4] } },
                "gen[1].u_half": { "type": "half$top.gen[0]", "connections": { "clk": [2], "d": [4], "q": [5] } },
            },
            "netnames": { "between": { "bits": [4] } },
        },
        "half$top.gen[0]": {
            "ports": {
                "clk": { "direction": "input", "bits": [2] },
                "d": { "direction": "input", "bits": [3] },
                "q": { "direction": "output", "bits": [5] },
            },
            "cells": { "a": lut(&[3], 4), "b": register(4, 5) },
            "netnames": { "q_q": { "bits": [5] } },
        },
        "LUT1": { "attributes": { "blackbox": "1" } },
    } });
    let netlist = Netlist::read(&text.to_string(), "top").expect("valid netlist");
    let half = &netlist.modules()[0];
    assert_eq!(
        (
            half.module.as_str(),
            half.instances,
            half.size.lut,
            half.size.ff
        ),
        ("half", 2, 2, 2)
    );
    // The two endpoints differ only in indices, so one path is reported.
    let paths = paths(&netlist).expect("netlist without combinational loops");
    assert_eq!(paths.len(), 1, "{paths:#?}");
    assert!(paths
        .iter()
        .all(|path| path.levels == 1 && path.module == "half"));
}

/// Each error names the problem: no JSON, no top module, or an unknown primitive.
#[test]
fn invalid_netlists_are_rejected() {
    let error = |text: &str| match Netlist::read(text, "top") {
        Ok(_) => panic!("it is none"),
        Err(error) => error,
    };
    assert!(error("{").contains("EOF"));
    assert_eq!(
        error(r#"{"modules": {}}"#),
        "the netlist has no module `top`"
    );
    let odd = r#"{"modules": {"top": {"cells": {"c": {"type": "ODD", "connections": {}}}}}}"#;
    assert_eq!(
        error(odd),
        "`ODD` is an unknown primitive (cell `c` of `top`)"
    );
    let circle = design(
        &[],
        &[],
        &[lut(&[11], 10), lut(&[10], 11)],
        &[("round", 10)],
    );
    assert!(paths(&circle)
        .expect_err("error for a combinational loop")
        .contains("combinational loop"));
}
