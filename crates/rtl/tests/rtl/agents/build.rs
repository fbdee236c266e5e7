//! A Verilated library of many step functions.

#![allow(unsafe_code)]

use super::Printed;
use cohkit_rtl::agents::layout::{bits, Agent, Agents};
use libloading::Library;
use std::ffi::c_void;
use std::fmt::Write;
use std::process::Command;

/// Words of 32 bits of the input and of the output of a step function.
const WORDS: usize = 32;

/// A printed module.
pub struct Module {
    /// Name of the module.
    pub name: String,
    /// Text of the module.
    pub text: String,
}

/// Modules to be built, and the text of the top module around them.
#[derive(Default)]
pub struct Steps {
    /// Printed files, in the order in which they are compiled: name and text.
    files: Vec<(String, String)>,
    /// Names of the modules, by number.
    modules: Vec<String>,
    /// Instances of the modules.
    instances: String,
}

/// Widths of the variables of an agent, from the lowest bit, each with its number of elements.
pub fn variable_widths(agents: &Agents, agent: &Agent) -> Vec<(u32, u32)> {
    let variables = &agents.controller(agent).variables;
    let types = agent
        .variables
        .iter()
        .rev()
        .map(|v| variables[v.index()].ty);
    types
        .map(|ty| (agents.width(ty), agents.elements(ty)))
        .collect()
}

/// Width of all variables of an agent together; at least 1.
pub fn variables_width(agents: &Agents, agent: &Agent) -> u32 {
    let widths = variable_widths(agents, agent);
    widths
        .iter()
        .map(|(width, count)| width * count)
        .sum::<u32>()
        .max(1)
}

/// Width of the fields of messages together; at least 1.
pub fn fields_width(agents: &Agents) -> u32 {
    agents
        .fields
        .iter()
        .map(|(_, width)| width)
        .sum::<u32>()
        .max(1)
}

/// Width of an agent's state.
pub fn state_width(agent: &Agent) -> u32 {
    bits(agent.states.len() as u64 - 1)
}

/// Width of a sent message.
pub fn send_width(agents: &Agents) -> u32 {
    agents.event_bits() + 1 + u32::from(agents.total()) + fields_width(agents) + 2 + 1
}

/// Input ports of an agent's module, with their widths.
pub fn inputs(agents: &Agents, agent: &Agent) -> Vec<(&'static str, u32)> {
    let mut ports = vec![
        ("state_i", state_width(agent)),
        ("variables_i", variables_width(agents, agent)),
        ("event_i", agents.event_bits()),
        ("sender_i", agents.remote_bits()),
        ("fields_i", fields_width(agents)),
    ];
    if !agent.is_home {
        ports.push(("self_i", agents.remote_bits()));
    }
    ports
}

/// Output ports of an agent's module, with their widths.
pub fn outputs(agents: &Agents, agent: &Agent) -> Vec<(&'static str, u32)> {
    let mut ports = vec![
        ("effect_o", 2),
        ("fault_o", 1),
        ("state_o", state_width(agent)),
        ("variables_o", variables_width(agents, agent)),
        ("sends_o", agent.sends as u32 * send_width(agents)),
    ];
    match agent.is_home {
        true => ports.extend([
            ("memory_o", 7),
            ("acknowledge_o", 1),
            ("operation_o", agents.event_bits()),
        ]),
        false => ports.extend([
            ("copy_o", 2),
            ("done_o", 2),
            ("perform_o", 1),
            ("abandon_o", 1),
        ]),
    }
    if agent.bulk_transitions > 0 {
        let width = 1 + 2 * state_width(agent);
        ports.push(("bulk_o", agent.bulk_transitions as u32 * width));
    }
    ports
}

impl Steps {
    /// Adds the package and the modules of a protocol.
    pub fn add(&mut self, printed: &Printed, package: String, modules: Vec<Module>) {
        let name = format!("{}_agents_pkg.sv", printed.protocol.name);
        self.files.push((name, package));
        let agents = printed.agents().expect("every row has hardware");
        for (module, agent) in modules.into_iter().zip(&agents.agents) {
            self.add_module(&agents, agent, module);
        }
    }

    /// Adds a module of an agent. Returns its number.
    pub fn add_module(&mut self, agents: &Agents, agent: &Agent, module: Module) -> usize {
        let number = self.modules.len();
        let mut connections = Vec::new();
        let mut offset = 0;
        // A module that is not selected has the initial state and the first event.
        let mut signals = format!(
            "    logic [{0}:0] in;\n    assign in = select_i == 32'd{number} ? in_i : '0;\n",
            32 * WORDS - 1
        );
        for (port, width) in inputs(agents, agent) {
            let value = format!("in[{offset} +: {width}]");
            let value = match port {
                "state_i" => {
                    format!("{}_{}_state_e'({value})", agents.protocol.name, agent.name)
                }
                "event_i" => format!("{}_event_e'({value})", agents.protocol.name),
                _ => value,
            };
            connections.push(format!(".{port}({value})"));
            offset += width;
        }
        assert!(
            offset as usize <= 32 * WORDS,
            "{} has many inputs",
            module.name
        );
        if (offset as usize) < 32 * WORDS {
            let _ = writeln!(
                signals,
                "    logic unused;\n    assign unused = ^in[{}:{offset}];",
                32 * WORDS - 1
            );
        }
        offset = 0;
        for (port, width) in outputs(agents, agent) {
            connections.push(format!(".{port}(out[{number}][{offset} +: {width}])"));
            offset += width;
        }
        assert!(
            (offset as usize) < 32 * WORDS,
            "{} has many outputs",
            module.name
        );
        let _ = writeln!(
            self.instances,
            "  if (1) begin : gen_{number}\n    import {}_agents_pkg::*;\n{signals}    {} u_step ({});\n    \
             assign out[{number}][{} : {offset}] = '0;\n  end",
            agents.protocol.name,
            module.name,
            connections.join(", "),
            32 * WORDS - 1,
        );
        self.files
            .push((format!("{}.sv", module.name), module.text));
        self.modules.push(module.name);
        number
    }

    /// Number of the module with this name.
    pub fn number(&self, name: &str) -> usize {
        let found = self.modules.iter().position(|module| module == name);
        found.expect("module of the build")
    }

    /// Text of the printed module with this number.
    pub fn text(&self, module: usize) -> &str {
        let name = format!("{}.sv", self.modules[module]);
        let file = self.files.iter().find(|(file, _)| *file == name);
        &file.expect("file of the module").1
    }

    /// Builds the library with Verilator, which also lints the printed files.
    ///
    /// # Panics
    /// If Verilator has a warning.
    pub fn build(&self) -> StepLibrary {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let top = format!(
            "module steps (\n  input  logic [{0}:0] in_i,\n  input  logic [31:0] select_i,\n  \
             output logic [{0}:0] out_o\n);\n  logic [{0}:0] out [{1}];\n{2}  assign out_o = out[select_i[{3}:0]];\n  \
             logic unused;\n  assign unused = ^{{in_i, select_i}};\nendmodule\n",
            32 * WORDS - 1,
            self.modules.len(),
            self.instances,
            bits(self.modules.len() as u64 - 1) - 1,
        );
        let files = self
            .files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()));
        for (name, text) in files.chain([("steps.sv", top.as_str()), ("driver.cpp", DRIVER)]) {
            std::fs::write(folder.path().join(name), text).expect("writable file");
        }
        let mut command = Command::new("verilator");
        command.args(["--cc", "--exe", "--build", "-j", "2", "--assert", "-Wall"]);
        command.args([
            "-O3",
            "-MAKEFLAGS",
            "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1",
        ]);
        command.args([
            "--output-split",
            "20000",
            "--top-module",
            "steps",
            "--Mdir",
            "made",
        ]);
        command.args([
            "-o",
            "../steps.so",
            "-LDFLAGS",
            "-shared",
            "-CFLAGS",
            "-fPIC",
        ]);
        command.args(self.files.iter().map(|(name, _)| name.as_str()));
        command.args(["steps.sv", "driver.cpp"]);
        let output = command
            .current_dir(folder.path())
            .output()
            .expect("Verilator starts");
        let text = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        let start = text.find('%').unwrap_or(0);
        let shown: String = text[start..].chars().take(4000).collect();
        assert!(
            output.status.success() && !text.contains("%Warning"),
            "{shown}"
        );
        StepLibrary::open(folder)
    }
}

/// C interface of the Verilated modules.
const DRIVER: &str = r#"
#include "Vsteps.h"
#include "verilated.h"
#include <cstring>

extern "C" void* steps_create() { return new Vsteps; }
extern "C" void steps_delete(void* steps) { delete static_cast<Vsteps*>(steps); }
extern "C" void steps_eval(void* steps, uint32_t module, const uint32_t* in, uint32_t* out) {
  Vsteps* const top = static_cast<Vsteps*>(steps);
  top->select_i = module;
  std::memcpy(&top->in_i, in, sizeof(top->in_i));
  top->eval();
  std::memcpy(out, &top->out_o, sizeof(top->out_o));
}
"#;

/// Bits of a port, from the lowest.
pub type Words = [u32; WORDS];

/// Built step functions.
pub struct StepLibrary {
    /// Instance of the top module.
    steps: *mut c_void,
    /// Function that evaluates a module.
    eval: unsafe extern "C" fn(*mut c_void, u32, *const u32, *mut u32),
    /// The library, which must stay open.
    library: Library,
    /// Folder of the library, removed at the end.
    _folder: tempfile::TempDir,
}

impl StepLibrary {
    /// Opens the library in a folder.
    fn open(folder: tempfile::TempDir) -> StepLibrary {
        // SAFETY: the functions have the types of `DRIVER`.
        unsafe {
            let library = Library::new(folder.path().join("steps.so")).expect("built library");
            let create: libloading::Symbol<unsafe extern "C" fn() -> *mut c_void> = library
                .get(b"steps_create")
                .expect("function of the driver");
            let steps = create();
            let eval = *library.get(b"steps_eval").expect("function of the driver");
            StepLibrary {
                steps,
                eval,
                library,
                _folder: folder,
            }
        }
    }

    /// Evaluates a module.
    pub fn eval(&self, module: usize, input: &Words) -> Words {
        let mut output = [0; WORDS];
        // SAFETY: both arrays have the size of the ports.
        unsafe {
            (self.eval)(
                self.steps,
                module as u32,
                input.as_ptr(),
                output.as_mut_ptr(),
            )
        };
        output
    }
}

impl Drop for StepLibrary {
    fn drop(&mut self) {
        // SAFETY: the instance was created by this library, and is used no more.
        unsafe {
            if let Ok(delete) = self
                .library
                .get::<unsafe extern "C" fn(*mut c_void)>(b"steps_delete")
            {
                delete(self.steps);
            }
        }
    }
}
