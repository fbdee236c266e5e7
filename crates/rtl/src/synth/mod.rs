//! Synthesis for UltraScale+: how large the RTL is, and how many levels of logic lie between its registers.
//!
//! [`yosys`] has Yosys map a slice to the primitives of the FPGA; [`netlist`] reads what comes out and counts it;
//! [`levels`] finds the longest paths. All figures are of the mapped netlist, before placement.

pub mod levels;
pub mod netlist;
mod primitives;
mod size;
pub mod yosys;
