//! Synthesis for UltraScale+: size of the RTL, and levels of logic between its registers.
//!
//! [`yosys`] runs Yosys to map a slice to the primitives of the FPGA, and [`system`] a coherent memory system.
//! [`netlist`] reads the result and counts resources; [`levels`] finds the longest paths. All figures are of the mapped
//! netlist, before placement.

pub mod levels;
pub mod netlist;
mod primitives;
mod size;
pub mod system;
pub mod yosys;
